/* SPDX-License-Identifier: MIT */

/*
 * A clock that stands still:
 *
 *     data directory    at the time of its last change: what was due by then has been handled, and
 *                       due times of both clocks mean the same
 *     servers of Redis  at 1970: to their scripts nothing is due, and no lease has ended
 *
 * So a copy sees what the last server has left, and the next server meets a gap, as after any stop.
 */
#include "copy/stores/stores.h"

#include "belfry/engine.h"
#include "belfry/zone.h"
#include "redis/link/url.h"
#include "redis/presence.h"
#include "redis/redis.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    NAME_BYTES = 600,             /* of a store in messages and marks */
    LOOK_MS = 5000,               /* for servers of Redis that cannot be reached */
    PAYLOAD_BYTES_MAX = 16 << 20, /* of a data directory: larger ones need larger log segments */
};

#define TIME_END_MS INT64_C(253402300799999) /* the end of the year 9999 */

static const char embedded[] = "embedded:";

/* A clock that stands still. */
struct still {
    struct bel_clock clock; /* first */
    int64_t wall_ms;
};

struct store {
    const char *text; /* as the user wrote it */
    char name[NAME_BYTES];
    struct still still;
    struct bel_engine *engine; /* or: */
    struct bel_redis *redis;
    struct bel_redis_options redis_options;
};

struct stores {
    struct store source, target;
    struct bel_zones *zones;
    const struct bel_copy_options *options;
};

/* --- clocks --- */

static struct bel_mono mono(const struct bel_clock *clock)
{
    (void)clock;
    return bel_clock_mono(bel_clock_system());
}

static struct bel_boot boot(const struct bel_clock *clock)
{
    (void)clock;
    return (struct bel_boot){0};
}

static struct bel_wall wall(const struct bel_clock *clock)
{
    return (struct bel_wall){((const struct still *)clock)->wall_ms};
}

/* --- data directories --- */

static bool is_embedded(const char *text)
{
    return strncmp(text, embedded, sizeof embedded - 1) == 0;
}

static const char *folder_of(const struct store *store)
{
    return store->text + sizeof embedded - 1;
}

static int check_folder(struct store *store, bool is_source, struct bel_why *why)
{
    struct bel_engine_report report = {0};
    struct bel_engine_why found = {""};
    const char *folder = folder_of(store);
    struct stat info;
    if (folder[0] == 0) {
        return bel__why_say(why, BEL_EINVAL, "%s needs a folder: embedded:DIR", store->text);
    }
    if (!is_source && stat(folder, &info) != 0) return 0;
    int err = bel_engine_check(folder, &report, &found);
    if (err == BEL_ENOTFOUND && !is_source) return 0;
    if (err) {
        const char *text = found.text[0] != 0 ? found.text : bel_error_text(err);
        return bel__why_say(why, err, "%s: %s", folder, text);
    }
    if (report.time_ms > 1) store->still.wall_ms = (int64_t)report.time_ms;
    return 0;
}

static int open_engine(struct store *store, struct bel_zones *zones, struct bel_why *why)
{
    struct bel_engine_options options = {.folder = folder_of(store),
                                         .now = bel_clock_now(&store->still.clock),
                                         .zones = zones,
                                         .payload_bytes_max = PAYLOAD_BYTES_MAX,
                                         .is_checked = true};
    struct bel_engine_why found = {""};
    int err = bel_engine_open(&options, &store->engine, &found);
    if (err == 0) return 0;
    const char *text = found.text[0] != 0 ? found.text : bel_error_text(err);
    return bel__why_say(why, err, "%s: %s", folder_of(store), text);
}

/* Opens a data directory. A target that does not exist is made by make(), when nothing stands
 * against the copy. */
static int open_embedded(struct store *store, bool is_source, struct bel_zones *zones,
                         struct bel_why *why)
{
    char path[PATH_MAX];
    int err = check_folder(store, is_source, why);
    if (err) return err;
    bool is_new = store->still.wall_ms == 1 && !is_source;
    if (!is_new) err = open_engine(store, zones, why);
    if (err) return err;
    const char *folder = realpath(folder_of(store), path);
    (void)snprintf(store->name, sizeof store->name, "%s%s", embedded,
                   folder != NULL ? folder : folder_of(store));
    return 0;
}

/* --- servers of Redis --- */

static int open_redis(struct store *store, bool is_quiet, struct bel_zones *zones,
                      struct bel_why *why)
{
    store->redis_options.is_quiet = is_quiet;
    store->redis_options.zones = zones;
    store->redis_options.payload_bytes_max = BEL_PAYLOAD_BYTES_MAX;
    const struct bel_clock *clock = is_quiet ? &store->still.clock : bel_clock_system();
    int err = bel__redis_open(&store->redis_options, bel_clock_now(clock), &store->redis);
    if (err) return bel__why_say(why, err, "%s: %s", store->name, bel_error_text(err));
    struct bel_copy_store probe = {bel__redis_backend(store->redis), clock};
    struct bel_command command = {.verb = BEL_VERB_TOPICS};
    struct bel_why found = {0};
    err = bel__ask(&probe, &command, NULL, NULL, &found);
    if (err == 0) return 0;
    err = err == BEL_EIO || err == BEL_EBUSY ? BEL_ECLOSED : err == BEL_EINVAL ? BEL_EIO : err;
    const char *reason = bel__servers_why(bel__redis_servers(store->redis));
    return bel__why_say(why, err, "%s: %s", store->name, reason[0] != 0 ? reason : found.text);
}

/* Refuses a store that nodes use: they would change it while it is copied. */
static int check_use(const struct store *store, const struct bel_copy_options *options,
                     struct bel_why *why)
{
    struct bel_presence presence;
    struct bel_why found = {0};
    if (options->is_forced || options->is_dry) return 0;
    int err = bel__presence_look(&store->redis_options, LOOK_MS, &presence, &found);
    if (err == BEL_EBUSY) err = BEL_ECLOSED;
    if (err == BEL_EINVAL) err = BEL_EIO; /* refused by the servers */
    if (err) return bel__why_say(why, err, "%s: %s", store->name, found.text);
    if (presence.count == 0) return 0;
    char number[32];
    (void)snprintf(number, sizeof number, presence.count == 1 ? "a server" : "%zu servers",
                   presence.count);
    return bel__why_say(why, BEL_EBUSY,
                        "%.80s is in use by %s%s; stop them, or go on with --force: what they "
                        "change meanwhile may be lost",
                        store->name, presence.text[0] != 0 ? presence.text : number,
                        presence.count > BEL_PRESENCE_SHOWN && presence.text[0] != 0 ? " and others"
                                                                                     : "");
}

/* Names servers without their credentials. */
static void name_redis(struct store *store, const struct bel_redis_url *url)
{
    size_t bytes = bel__redis_url_print(url, store->name, sizeof store->name);
    if (bytes >= sizeof store->name) bytes = sizeof store->name - 1;
    (void)snprintf(store->name + bytes, sizeof store->name - bytes, ", db %u, namespace %s",
                   (unsigned)url->db, store->redis_options.name_space);
}

static int parse_redis(struct store *store, struct bel_why *why)
{
    struct bel_redis_url url;
    size_t bytes = strlen(store->text);
    int err = bel__redis_parse(store->text, bytes, &store->redis_options, why);
    if (err) return err;
    err = bel__redis_url_parse(store->text, bytes, &url, why);
    if (err) return err;
    name_redis(store, &url);
    bel__redis_url_finish(&url);
    return 0;
}

static bool is_url(const char *text)
{
    return strstr(text, "://") != NULL;
}

/* --- both --- */

static int open_store(struct stores *stores, struct store *store, const char *text, bool is_source,
                      struct bel_why *why)
{
    store->text = text;
    store->still = (struct still){{mono, boot, wall}, 1};
    if (is_embedded(text)) {
        return open_embedded(store, is_source, stores->zones, why);
    }
    if (!is_url(text)) {
        return bel__why_say(why, BEL_EINVAL,
                            "%.100s is not a store: expected embedded:DIR or redis://HOST[:PORT]",
                            text);
    }
    int err = parse_redis(store, why);
    if (err == 0) err = check_use(store, stores->options, why);
    return err ? err : open_redis(store, true, stores->zones, why);
}

static void close_store(struct store *store)
{
    bel_engine_close(store->engine);
    bel__redis_close(store->redis);
    bel__redis_forget(&store->redis_options);
}

static struct bel_copy_store copy_store(struct store *store)
{
    struct bel_copy_store out = {.clock = &store->still.clock};
    if (store->engine != NULL) out.backend = bel_engine_backend(store->engine);
    if (store->redis != NULL) out.backend = bel__redis_backend(store->redis);
    return out;
}

/* Makes the data directory of the target. */
static int make(void *context, struct bel_copy_store *out, struct bel_why *why)
{
    struct stores *stores = context;
    int err = open_engine(&stores->target, stores->zones, why);
    if (err == 0) *out = copy_store(&stores->target);
    return err;
}

/* Opens a store of Redis again: the target as a node that others hear of, the source at a time by
 * which everything has ended. */
static int thaw(void *context, struct bel_copy_store *out, struct bel_why *why)
{
    struct stores *stores = context;
    bool is_source = out->clock == &stores->source.still.clock;
    struct store *store = is_source ? &stores->source : &stores->target;
    if (store->redis == NULL) return 0;
    /* A server may have been started meanwhile. On the target it does no harm any more. */
    int err = is_source ? check_use(store, stores->options, why) : 0;
    if (err) return err;
    bel__redis_close(store->redis);
    store->redis = NULL;
    store->still.wall_ms = TIME_END_MS;
    err = open_redis(store, is_source, stores->zones, why);
    if (err) return err;
    if (is_source) out->backend = bel__redis_backend(store->redis);
    if (is_source) return 0;
    *out = (struct bel_copy_store){bel__redis_backend(store->redis), bel_clock_system()};
    return 0;
}

static void progress(void *context, enum bel_copy_step step, uint64_t done, uint64_t total)
{
    const struct stores *stores = context;
    const struct bel_copy_options *options = stores->options;
    if (options->progress != NULL) options->progress(options->context, step, done, total);
}

static int copy(struct stores *stores, struct bel_copy_counts *out, struct bel_why *why)
{
    struct bel_copy_options options = *stores->options;
    if (strcmp(stores->source.name, stores->target.name) == 0) {
        return bel__why_say(why, BEL_EINVAL, "source and target are the same store");
    }
    options.source = copy_store(&stores->source);
    options.target = copy_store(&stores->target);
    options.source_name = stores->source.name;
    options.context = stores;
    options.progress = progress;
    options.make = make;
    options.thaw = thaw;
    return bel__copy(&options, out, why);
}

/* Two names of one data directory: the second one could not be opened, as the first one is. */
static bool are_same(const char *from, const char *to)
{
    char one[PATH_MAX], two[PATH_MAX];
    if (!is_embedded(from) || !is_embedded(to)) return strcmp(from, to) == 0;
    return realpath(from + sizeof embedded - 1, one) != NULL &&
           realpath(to + sizeof embedded - 1, two) != NULL && strcmp(one, two) == 0;
}

int bel__copy_between(const char *from, const char *to, const struct bel_copy_options *options,
                      struct bel_copy_counts *out, struct bel_why *why)
{
    struct stores stores = {.options = options};
    *out = (struct bel_copy_counts){0};
    if (are_same(from, to)) {
        return bel__why_say(why, BEL_EINVAL, "source and target are the same store");
    }
    int err = bel_zones_open(NULL, &stores.zones);
    if (err == BEL_ENOMEM) return bel__why_say(why, err, "memory has run out");
    err = open_store(&stores, &stores.source, from, true, why);
    if (err == 0) err = open_store(&stores, &stores.target, to, false, why);
    if (err == 0) err = copy(&stores, out, why);
    close_store(&stores.target);
    close_store(&stores.source);
    bel_zones_close(stores.zones);
    return err;
}
