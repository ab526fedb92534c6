/* SPDX-License-Identifier: MIT */

/* The parts are opened from the inside out, and closed in the reverse order. */
#include "local_node/redis_node.h"

#include "belfry/version.h"
#include "belfry/zone.h"
#include "local_node/local_node.h"
#include "redis/examine.h"
#include "redis/presence.h"

#include <stdlib.h>

struct bel_redis_node {
    struct bel_redis_options options;
    struct bel_redis *redis;
    struct bel_zones *zones;
    struct bel_local_node *local;
    struct bel_examination examination;
    char shown[BEL_REDIS_SHOWN_BYTES];
    char name[BEL_PRESENCE_NAME_BYTES]; /* of the connections */
};

/* INFO: what is known of the store. */
static int inform(void *context, struct bel_view section, const struct bel_scope *scope,
                  struct bel_buffer *out)
{
    const struct bel_redis_node *node = context;
    (void)section;
    (void)scope;
    return bel__buffer_append_format(
        out,
        "# Server\r\nbelfry_version:%s\r\nnode:in this process\r\n\r\n# Store\r\nstore:redis\r\n"
        "store_url:%s\r\nstore_namespace:%s\r\nstore_server:%s\r\nstore_primaries:%zu\r\n"
        "store_replicas:%llu\r\n",
        bel_version(), node->shown, node->options.name_space, node->examination.server,
        node->examination.primaries, (unsigned long long)node->examination.replicas);
}

/* Refuses servers that must not be used. */
static int examine(struct bel_redis_node *node, uint32_t wait_ms, struct bel_why *why)
{
    struct bel_examine_options options = {
        .redis = &node->options, .clock = bel_clock_system(), .wait_ms = wait_ms};
    const struct bel_examination *found = &node->examination;
    int err = bel__redis_examine(&options, &node->examination, why);
    if (err == BEL_EINVAL) err = BEL_ECONFLICT;
    for (size_t i = 0; err == 0 && i < found->findings_count; i++) {
        const struct bel_finding *finding = &found->findings[i];
        if (!finding->is_refusal) continue;
        err = bel__why_say(why, BEL_ECONFLICT, "%s; %s", finding->what, finding->advice);
    }
    return err;
}

static int open_node(struct bel_redis_node *node, struct bel_why *why)
{
    if (bel_zones_open(NULL, &node->zones) != 0) node->zones = NULL; /* UTC only */
    node->options.zones = node->zones;
    bel__presence_name(node->options.name_space, node->name);
    node->options.servers.name = node->name;
    int err = bel__redis_open(&node->options, bel_clock_now(bel_clock_system()), &node->redis);
    if (err) return bel__why_say(why, err, "%s", bel_error_text(err));
    struct bel_local_node_options options = {.backend = bel__redis_backend(node->redis),
                                             .clock = bel_clock_system(),
                                             .zones = node->zones,
                                             .payload_bytes_max = BEL_PAYLOAD_BYTES_MAX,
                                             .info = inform,
                                             .context = node};
    return bel__local_node_open(&options, &node->local, why);
}

int bel__redis_node_open(const struct bel_redis_place *place, uint32_t wait_ms,
                         struct bel_redis_node **out, struct bel_why *why)
{
    int err = bel__redis_place_check(place, why);
    if (err) return err;
    struct bel_redis_node *node = calloc(1, sizeof *node);
    if (node == NULL) return bel__why_say(why, BEL_ENOMEM, "memory has run out");
    bel__redis_place_print(place, node->shown);
    err = bel__redis_place_parse(place, &node->options, why);
    if (err == 0) err = examine(node, wait_ms, why);
    node->options.payload_bytes_max = BEL_PAYLOAD_BYTES_MAX;
    if (err == 0) err = open_node(node, why);
    if (err) {
        bel__redis_node_close(node);
        return err;
    }
    *out = node;
    return 0;
}

const char *bel__redis_node_address(const struct bel_redis_node *node)
{
    return bel__local_node_address(node->local);
}

void bel__redis_node_close(struct bel_redis_node *node)
{
    if (node == NULL) return;
    if (node->local != NULL) bel__local_node_stop(node->local);
    bel__redis_close(node->redis);
    bel__local_node_destroy(node->local);
    bel_zones_close(node->zones);
    bel__redis_forget(&node->options);
    free(node);
}
