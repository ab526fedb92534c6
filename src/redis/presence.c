/* SPDX-License-Identifier: MIT */

/*
 * The message goes to {namespace:}:wake, which the pattern of nodes covers and no topic has; in a
 * Cluster, to the channel of the registry, with a text that is no name. CLIENT LIST may be
 * forbidden to the user: then the number of receivers has to do, with those of other databases, and
 * whoever else listens to everything.
 */
#include "redis/presence.h"

#include "redis/asking.h"
#include "redis/servers/slot.h"

#include "core/parse.h"
#include "core/view.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    HOST_BYTES = 64,
    PREFIX_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + 16,
};

static const char no_name[] = "\xff"; /* no topic is called so */

struct looking {
    struct bel_presence *out;
    char prefix[PREFIX_BYTES]; /* of the names of connections */
    uint32_t db;
    int64_t receivers;
    bool has_list;
};

void bel__presence_name(const char *name_space, char out[BEL_PRESENCE_NAME_BYTES])
{
    char host[HOST_BYTES];
    if (gethostname(host, sizeof host) != 0) host[0] = 0;
    host[sizeof host - 1] = 0;
    for (char *at = host; *at != 0; at++) { /* as Redis and the parts of the name want it */
        if (*at <= ' ' || *at > '~' || *at == ':') *at = '-';
    }
    (void)snprintf(out, BEL_PRESENCE_NAME_BYTES, "belfry:%s:%s:%ld", name_space, host,
                   (long)getpid());
}

/* --- CLIENT LIST --- */

/* Finds the value of ` name=value` in a line. */
static struct bel_view field(struct bel_view line, const char *name)
{
    size_t name_bytes = strlen(name);
    const char *at = line.data, *end = at + line.bytes;
    while (at < end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        const char *stop = space == NULL ? end : space;
        size_t bytes = (size_t)(stop - at);
        if (bytes > name_bytes && memcmp(at, name, name_bytes) == 0 && at[name_bytes] == '=') {
            return (struct bel_view){at + name_bytes + 1, bytes - name_bytes - 1};
        }
        at = stop + 1;
    }
    return (struct bel_view){NULL, 0};
}

/* Adds the node of a name that begins with the prefix: host:process follow. */
static void add(struct looking *looking, struct bel_view name)
{
    struct bel_presence *out = looking->out;
    size_t skip = strlen(looking->prefix), used = strlen(out->text);
    const char *host = (const char *)name.data + skip;
    const char *colon = memchr(host, ':', name.bytes - skip);
    if (colon == NULL) return;
    size_t host_bytes = (size_t)(colon - host);
    size_t process_bytes = name.bytes - skip - host_bytes - 1;
    out->count++;
    if (out->count > BEL_PRESENCE_SHOWN) return;
    (void)snprintf(out->text + used, sizeof out->text - used, "%sprocess %.*s on %.*s",
                   used > 0 ? ", " : "", (int)process_bytes, colon + 1, (int)host_bytes, host);
}

static void look_at(struct looking *looking, struct bel_view line)
{
    struct bel_view name = field(line, "name"), db = field(line, "db");
    size_t prefix = strlen(looking->prefix);
    uint32_t number = 0;
    if (name.bytes <= prefix || memcmp(name.data, looking->prefix, prefix) != 0) return;
    if (bel__parse_u32(db.data, db.bytes, 0, UINT32_MAX, &number) != 0) return;
    if (number == looking->db) add(looking, name);
}

static void take_list(void *owner, const struct bel_value *value)
{
    struct looking *looking = owner;
    const char *at = value->text.data, *end = at + value->text.bytes;
    looking->has_list = true;
    while (value->text.bytes > 0 && at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (line_end == NULL) line_end = end;
        look_at(looking, (struct bel_view){at, (size_t)(line_end - at)});
        at = line_end + 1;
    }
}

/* --- asking --- */

static void take_receivers(void *owner, const struct bel_value *value)
{
    struct looking *looking = owner;
    if (value->type == BEL_VALUE_NUMBER) looking->receivers = value->number;
}

void bel__presence_message(const struct bel_redis_options *options,
                           struct bel_presence_message *out)
{
    bool is_cluster = options->servers.mode == BEL_REDIS_CLUSTER;
    (void)snprintf(out->channel, sizeof out->channel, is_cluster ? "{%s}:topics" : "{%s:}:wake",
                   options->name_space);
    out->words[0] = is_cluster ? "SPUBLISH" : "PUBLISH";
    out->words[1] = out->channel;
    out->words[2] = no_name;
    out->words[3] = NULL;
}

static int look(struct looking *looking, struct bel_asking *asking,
                const struct bel_presence_message *message)
{
    struct bel_view channel = {message->channel, strlen(message->channel)};
    uint16_t slot = bel__slot_of(channel);
    const char *list[] = {"CLIENT", "LIST", "TYPE", "pubsub", NULL};
    int err = bel__asking_ask(asking, slot, message->words, take_receivers, looking);
    if (err || asking->error[0] != 0 || looking->receivers == 0) return err;
    err = bel__asking_ask(asking, slot, list, take_list, looking);
    if (err == 0 && !looking->has_list) looking->out->count = (size_t)looking->receivers;
    return err;
}

int bel__presence_look(const struct bel_redis_options *options, uint32_t wait_ms,
                       struct bel_presence *out, struct bel_why *why)
{
    struct bel_asking_options how = {
        .servers = &options->servers, .clock = bel_clock_system(), .wait_ms = wait_ms};
    struct looking looking = {.out = out, .db = options->servers.db};
    struct bel_asking asking;
    *out = (struct bel_presence){.count = 0};
    (void)snprintf(looking.prefix, sizeof looking.prefix, "belfry:%s:", options->name_space);
    int err = bel__asking_open(&asking, &how);
    struct bel_presence_message message = {.channel = ""};
    bel__presence_message(options, &message);
    if (err == 0) err = look(&looking, &asking, &message);
    if (err) {
        (void)bel__why_say(why, err, "%s", asking.why);
    } else if (looking.receivers == 0 && asking.error[0] != 0) {
        err = bel__why_say(why, BEL_EIO, "%s", asking.error);
    }
    bel__asking_close(&asking);
    return err;
}
