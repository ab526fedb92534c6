/* SPDX-License-Identifier: MIT */

/* The backend for programs that use the library: what the URL says is examined, then opened. */
#include "belfry/redis_store.h"

#include "redis/examine.h"
#include "redis/place.h"
#include "redis/presence.h"
#include "redis/redis.h"

#include <assert.h>
#include <stdlib.h>

enum {
    WAIT_MS = 5000
};

struct bel_redis_store {
    struct bel_redis_options options;
    struct bel_redis *redis;
    char name[BEL_PRESENCE_NAME_BYTES]; /* of the connections */
};

static int pass(struct bel_redis_store_why *out, int err, const struct bel_why *why)
{
    return bel__why_pass(out != NULL ? out->text : NULL, err, why);
}

/* Tells of the warnings. Returns BEL_ECONFLICT if there is a refusal. */
static int judge(const struct bel_redis_store_options *options,
                 const struct bel_examination *examination, struct bel_why *why)
{
    int err = 0;
    for (size_t i = 0; i < examination->findings_count; i++) {
        const struct bel_finding *finding = &examination->findings[i];
        if (finding->is_refusal && err == 0) {
            err = bel__why_say(why, BEL_ECONFLICT, "%s; %s", finding->what, finding->advice);
        } else if (!finding->is_refusal && options->warn != NULL) {
            struct bel_redis_store_finding told = {finding->about, finding->what, finding->advice};
            options->warn(options->context, &told);
        }
    }
    return err;
}

static int examine(const struct bel_redis_store *store,
                   const struct bel_redis_store_options *options, struct bel_why *why)
{
    struct bel_examine_options examine = {.redis = &store->options,
                                          .clock = bel_clock_system(),
                                          .wait_ms =
                                              options->wait_ms != 0 ? options->wait_ms : WAIT_MS};
    struct bel_examination examination;
    int err = bel__redis_examine(&examine, &examination, why);
    if (err == BEL_EINVAL) return BEL_ECONFLICT; /* a wrong password and the like */
    return err ? err : judge(options, &examination, why);
}

static int open_store(struct bel_redis_store *store, const struct bel_redis_store_options *options,
                      struct bel_why *why)
{
    struct bel_redis_place place = {options->url, options->password_file, options->name_space};
    int err = bel__redis_place_check(&place, why);
    if (err == 0) err = bel__redis_place_parse(&place, &store->options, why);
    if (err) return err;
    bel__presence_name(store->options.name_space, store->name);
    store->options.servers.name = store->name;
    store->options.servers.health_ms = BEL_REDIS_HEALTH_MS;
    store->options.servers.replicas = options->replicas;
    store->options.servers.durability =
        options->durability == BEL_REDIS_STORE_WAIT ? BEL_DURABILITY_WAIT : BEL_DURABILITY_ASYNC;
    store->options.zones = options->zones;
    store->options.payload_bytes_max = options->payload_bytes_max;
    err = examine(store, options, why);
    if (err) return err;
    err = bel__redis_open(&store->options, bel_clock_now(bel_clock_system()), &store->redis);
    return err ? bel__why_say(why, err, "%s", bel_error_text(err)) : 0;
}

/* Returns why the options are not valid, or NULL. */
static const char *check(const struct bel_redis_store_options *options)
{
    bool waits = options->durability == BEL_REDIS_STORE_WAIT;
    if (options->url == NULL) return "there is no URL";
    if (options->durability != BEL_REDIS_STORE_ASYNC && !waits) return "unknown durability";
    if (options->replicas != 0 && !waits) return "replicas without BEL_REDIS_STORE_WAIT";
    if (options->payload_bytes_max > BEL_PAYLOAD_BYTES_MAX) return "payload_bytes_max is too large";
    return NULL;
}

int bel_redis_store_open(const struct bel_redis_store_options *options,
                         struct bel_redis_store **out, struct bel_redis_store_why *why)
{
    struct bel_why found = {0};
    const char *invalid = check(options);
    if (invalid != NULL) {
        return pass(why, bel__why_say(&found, BEL_EINVAL, "%s", invalid), &found);
    }
    struct bel_redis_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return pass(why, bel__why_say(&found, BEL_ENOMEM, "memory has run out"), &found);
    }
    int err = open_store(store, options, &found);
    if (err) {
        bel_redis_store_close(store);
        return pass(why, err, &found);
    }
    *out = store;
    return 0;
}

void bel_redis_store_close(struct bel_redis_store *store)
{
    if (store == NULL) return;
    bel__redis_close(store->redis);
    bel__redis_forget(&store->options);
    free(store);
}

struct bel_backend *bel_redis_store_backend(struct bel_redis_store *store)
{
    assert(store->redis != NULL);
    return bel__redis_backend(store->redis);
}
