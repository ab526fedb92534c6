/* SPDX-License-Identifier: MIT */

/*
 * A backend on Redis, the examination of its servers before the start, and the log of what becomes
 * of the connections. Nothing here keeps state that another server would miss.
 */
#include "server/redis/redis_store.h"

#include "core/units.h"
#include "redis/examine.h"
#include "redis/origin.h"
#include "redis/place.h"
#include "redis/presence.h"
#include "redis/redis.h"
#include "redis/virtual_clock.h"
#include "server/loop_state.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PRIMARIES_SHOWN = 64,
    CONNECT_MS = 2000,
    CONNECT_POLL_MS = 20,
    WHY_AGAIN_MS = 10000, /* until another reason is logged */
};

struct redis_store {
    struct bel_server_store store; /* first */
    struct bel_server_store_options options;
    struct bel_redis_options redis_options;
    char name[BEL_PRESENCE_NAME_BYTES]; /* of the connections */
    struct bel_redis *redis;
    struct bel_loop *loop;
    struct bel_store_stats stats;
    char shown[BEL_REDIS_SHOWN_BYTES]; /* the URL without credentials */
    char why[BEL_WHY_BYTES];           /* the last reason that was logged */
    struct bel_mono why_logged, lost;  /* lost: when the servers could not be reached any more */
    struct bel_virtual_clock clock;    /* zeroed: the clock is the system's */
    uv_timer_t clock_timer;
    struct bel_origin origin;
    uv_timer_t origin_timer;
    uint64_t losses;   /* of the data, that were logged */
    uint64_t refusals; /* of requests, that were logged */
    struct bel_mono refusal_logged;
    uint64_t looked;   /* the connections there were when the origin was looked at */
    uint64_t replicas; /* that were connected at the start */
    bool was_ready;    /* the last state logged */
    bool was_ailing;
    bool was_ever_ready;
};

static struct redis_store *redis_of(struct bel_server_store *store)
{
    return (struct redis_store *)store;
}

static const struct redis_store *const_of(const struct bel_server_store *store)
{
    return (const struct redis_store *)store;
}

static struct bel_redis_place place_of(const struct bel_config *config)
{
    return (struct bel_redis_place){.url = config->store_url,
                                    .password_file = config->store_password_file,
                                    .name_space = config->store_namespace};
}

static const char *durability_of(const struct bel_config *config)
{
    return config->durability == BEL_CONFIG_DURABILITY_WAIT ? "wait" : "async";
}

/* --- creating --- */

static int check(const struct bel_config *config, struct bel_why *error)
{
    struct bel_redis_place place = place_of(config);
    struct bel_why why = {0};
    int err = bel__redis_place_check(&place, &why);
    return err ? bel__why_say(error, err, "--store: %s", why.text) : 0;
}

/* Names the settings that have no effect with this store, and what the durability promises. */
static void log_settings(const struct redis_store *store)
{
    const struct bel_config *config = store->options.config;
    const struct bel_logger *log = store->options.log;
    const char *name;
    for (unsigned at = 0; (name = bel__config_find_unused(config, &at)) != NULL;) {
        BEL_LOG(log, BEL_LOG_WARN, "setting has no effect with a store on Redis",
                BEL_LOG_TEXT("setting", name));
    }
    BEL_LOG(log, BEL_LOG_INFO, "durability", BEL_LOG_TEXT("durability", durability_of(config)),
            BEL_LOG_TEXT("means", config->durability == BEL_CONFIG_DURABILITY_WAIT
                                      ? "a change is acknowledged when replicas have it"
                                      : "a failover of Redis may lose the latest acknowledged "
                                        "changes"));
}

static void log_waiting(void *context, const char *why)
{
    struct redis_store *store = context;
    if (strcmp(why, store->why) == 0) return;
    (void)snprintf(store->why, sizeof store->why, "%s", why);
    BEL_LOG(store->options.log, BEL_LOG_WARN, "waiting for the store",
            BEL_LOG_TEXT("store", store->shown), BEL_LOG_TEXT("why", why));
}

static void log_findings(const struct redis_store *store, const struct bel_examination *examination)
{
    const struct bel_logger *log = store->options.log;
    for (size_t i = 0; i < examination->findings_count; i++) {
        const struct bel_finding *finding = &examination->findings[i];
        BEL_LOG(log, finding->is_refusal ? BEL_LOG_ERROR : BEL_LOG_WARN,
                finding->is_refusal ? "store cannot be used" : "store",
                BEL_LOG_TEXT("about", finding->about), BEL_LOG_TEXT("why", finding->what),
                BEL_LOG_TEXT("do", finding->advice));
    }
    if (examination->is_refused) return;
    BEL_LOG(log, BEL_LOG_INFO, "store examined", BEL_LOG_TEXT("store", store->shown),
            BEL_LOG_TEXT("server", examination->server),
            BEL_LOG_NUMBER("primaries", examination->primaries),
            BEL_LOG_NUMBER("replicas", examination->replicas),
            BEL_LOG_TEXT("appendonly", examination->appendonly));
}

/* Says why the servers cannot be examined, and what to do. */
static void log_failure(const struct redis_store *store, int err, const char *why)
{
    BEL_LOG(store->options.log, BEL_LOG_ERROR,
            err == BEL_EBUSY ? "store cannot be reached" : "store cannot be used",
            BEL_LOG_TEXT("store", store->shown),
            BEL_LOG_TEXT("why", why[0] != 0 ? why : bel_error_text(err)),
            BEL_LOG_TEXT("do", err == BEL_EBUSY ? "start the server of the store, or wait longer "
                                                  "with --store-wait"
                                                : "check the URL of --store and its credentials"));
}

static int examine(struct redis_store *store)
{
    struct bel_examine_options options = {.redis = &store->redis_options,
                                          .clock = bel_clock_system(),
                                          .context = store,
                                          .wait_ms = store->options.config->store_wait_ms,
                                          .waiting = log_waiting};
    struct bel_examination examination;
    struct bel_why why = {0};
    int err = bel__redis_examine(&options, &examination, &why);
    if (err) {
        log_failure(store, err, why.text);
        return err;
    }
    log_findings(store, &examination);
    store->replicas = examination.replicas;
    store->why[0] = 0;
    return examination.is_refused ? BEL_EINVAL : 0;
}

/* The commands that are sent before there is a backend, and after it. */
static struct bel_asking_options asking_of(struct redis_store *store, uint32_t wait_ms)
{
    return (struct bel_asking_options){.servers = &store->redis_options.servers,
                                       .clock = bel_clock_system(),
                                       .wait_ms = wait_ms,
                                       .waiting = log_waiting,
                                       .context = store};
}

/* Becomes the one server that moves the virtual clock of the namespace. */
static int take_clock(struct redis_store *store)
{
    struct bel_asking_options options = asking_of(store, store->options.config->store_wait_ms);
    struct bel_why why = {0};
    if (!store->options.config->is_virtual) return 0;
    int err =
        bel__virtual_clock_take(&store->clock, store->redis_options.name_space, &options, &why);
    store->why[0] = 0;
    if (err == BEL_ECONFLICT) {
        BEL_LOG(store->options.log, BEL_LOG_ERROR, "store cannot be used",
                BEL_LOG_TEXT("store", store->shown), BEL_LOG_TEXT("about", "clock"),
                BEL_LOG_TEXT("why", "another server moves the virtual clock of this namespace"),
                BEL_LOG_TEXT("do", "stop that server, or use another --store-namespace"));
    } else if (err) {
        log_failure(store, err, why.text);
    }
    return err;
}

static int parse(struct redis_store *store)
{
    const struct bel_config *config = store->options.config;
    struct bel_redis_place place = place_of(config);
    struct bel_why why = {0};
    bel__redis_place_print(&place, store->shown);
    int err = bel__redis_place_parse(&place, &store->redis_options, &why);
    if (err) {
        log_failure(store, err, why.text);
        return err;
    }
    store->redis_options.zones = store->options.zones;
    store->redis_options.payload_bytes_max = config->payload_bytes_max;
    store->redis_options.is_virtual = config->is_virtual;
    bel__presence_name(store->redis_options.name_space, store->name);
    store->redis_options.servers.name = store->name;
    store->redis_options.servers.health_ms = BEL_REDIS_HEALTH_MS;
    bel__origin_init(&store->origin, store->redis_options.name_space);
    store->redis_options.servers.replicas = config->replicas;
    store->redis_options.servers.durability = config->durability == BEL_CONFIG_DURABILITY_WAIT
                                                  ? BEL_DURABILITY_WAIT
                                                  : BEL_DURABILITY_ASYNC;
    return 0;
}

static const struct bel_server_store_functions functions;

static void set_lacks(bool lacks[BEL_ABILITIES])
{
    lacks[BEL_ABILITY_GROUPS] = true;
    lacks[BEL_ABILITY_CONCURRENCY] = true;
    lacks[BEL_ABILITY_BACKUP] = true;
    lacks[BEL_ABILITY_JOBS] = !bel__redis_does(BEL_VERB_JOB_SUBMIT);
    lacks[BEL_ABILITY_LIMITS] = !bel__redis_does(BEL_VERB_LIMIT);
    lacks[BEL_ABILITY_AGENDA] = !bel__redis_does(BEL_VERB_AGENDA);
    lacks[BEL_ABILITY_EXPLAIN] = !bel__redis_does(BEL_VERB_EXPLAIN);
}

static int create(const struct bel_server_store_options *options, struct bel_server_store **out)
{
    struct redis_store *store = calloc(1, sizeof *store);
    if (store == NULL) return BEL_ENOMEM;
    store->options = *options;
    store->store = (struct bel_server_store){
        .functions = &functions, .place_name = "store", .is_remote = true};
    set_lacks(store->store.lacks);
    log_settings(store);
    int err = parse(store);
    if (err == 0) err = examine(store);
    if (err == 0) err = take_clock(store);
    if (err) {
        bel__origin_finish(&store->origin);
        bel__virtual_clock_finish(&store->clock);
        bel__redis_forget(&store->redis_options);
        free(store);
        return err;
    }
    *out = &store->store;
    return 0;
}

static void keep_time(void *context, struct bel_wall time)
{
    struct redis_store *store = context;
    bel__virtual_clock_keep(&store->clock, store->redis, time, store->options.clock->now.real);
}

static int open_clock(struct bel_server_store *store)
{
    struct redis_store *redis = redis_of(store);
    struct bel_server_clock *clock = redis->options.clock;
    if (!redis->options.config->is_virtual) return 0;
    int err = bel__server_clock_init_virtual(clock, bel_clock_system(), NULL);
    if (redis->clock.has_time) clock->now.wall = redis->clock.time;
    clock->store = keep_time;
    clock->store_context = redis;
    return err;
}

/* Returns whether every timer can be reached. */
static bool is_complete(const struct redis_store *store)
{
    return bel__servers_is_ready(bel__redis_servers(store->redis));
}

/* While a part of a Cluster is away, requests for the others succeed: a load balancer that took all
 * servers out would make it worse. */
static bool is_ready(const struct bel_server_store *store)
{
    struct bel_server_note notes[PRIMARIES_SHOWN];
    const struct bel_servers *servers = bel__redis_servers(const_of(store)->redis);
    size_t count = bel__servers_note(servers, notes, PRIMARIES_SHOWN);
    for (size_t i = 0; i < count && i < PRIMARIES_SHOWN; i++) {
        if (notes[i].is_ready && !notes[i].is_ailing) return true;
    }
    return bel__servers_is_ready(servers) && !bel__servers_ail(servers, NULL);
}

/* Takes turns until the connections are there, which the examination has seen before, so that the
 * first clients need not wait. */
static void await_connection(struct redis_store *store)
{
    struct bel_server_clock *clock = store->options.clock;
    struct bel_backend *backend = bel__redis_backend(store->redis);
    struct pollfd fd = {.fd = bel_backend_descriptor(backend), .events = POLLIN};
    uint64_t end_ns = clock->now.real.ns + (uint64_t)CONNECT_MS * NS_PER_MS;
    while (!is_complete(store) && clock->now.real.ns < end_ns) {
        (void)bel_backend_turn(backend, clock->now);
        (void)poll(&fd, 1, CONNECT_POLL_MS);
        bel__server_clock_read(clock);
    }
}

static int open_redis(struct bel_server_store *store, struct bel_loop *loop)
{
    struct redis_store *redis = redis_of(store);
    redis->loop = loop;
    bel__server_clock_read(redis->options.clock);
    int err = bel__redis_open(&redis->redis_options, redis->options.clock->now, &redis->redis);
    if (err) {
        log_failure(redis, err, "");
        return err;
    }
    store->backend = bel__redis_backend(redis->redis);
    await_connection(redis);
    redis->options.metrics->store = &redis->stats;
    return 0;
}

/* Renews the ownership of the virtual clock. */
static void on_clock_time(uv_timer_t *timer)
{
    struct redis_store *store = timer->data;
    keep_time(store, store->options.clock->now.wall);
    bel__loop_wake(store->loop);
}

static void look_at_origin(struct redis_store *store)
{
    store->looked = store->stats.connections;
    bel__origin_look(&store->origin, store->redis, store->options.clock->now.real);
    bel__loop_wake(store->loop);
}

static void on_origin_time(uv_timer_t *timer)
{
    look_at_origin(timer->data);
}

static int start(struct bel_server_store *store)
{
    struct redis_store *redis = redis_of(store);
    (void)uv_timer_init(&redis->loop->uv, &redis->origin_timer);
    redis->origin_timer.data = redis;
    look_at_origin(redis);
    (void)uv_timer_start(&redis->origin_timer, on_origin_time, BEL_ORIGIN_LOOK_MS,
                         BEL_ORIGIN_LOOK_MS);
    if (!redis->options.config->is_virtual) return 0;
    (void)uv_timer_init(&redis->loop->uv, &redis->clock_timer);
    redis->clock_timer.data = redis;
    on_clock_time(&redis->clock_timer); /* the key of the time says that the clock is virtual */
    (void)uv_timer_start(&redis->clock_timer, on_clock_time, BEL_VIRTUAL_CLOCK_KEEP_MS,
                         BEL_VIRTUAL_CLOCK_KEEP_MS);
    return 0;
}

/* --- running --- */

static bool is_settled(const struct bel_server_store *store)
{
    return bel__redis_is_idle(const_of(store)->redis);
}

static void log_change(struct redis_store *store, bool is_ready_now, const char *why)
{
    const struct bel_logger *log = store->options.log;
    struct bel_mono now = store->options.clock->now.real;
    if (is_ready_now) {
        if (store->was_ever_ready) {
            BEL_LOG(log, BEL_LOG_INFO, "store connected again", BEL_LOG_TEXT("store", store->shown),
                    BEL_LOG_NUMBER("lost_ms", (now.ns - store->lost.ns) / NS_PER_MS));
        } else {
            BEL_LOG(log, BEL_LOG_INFO, "store connected", BEL_LOG_TEXT("store", store->shown));
        }
        store->stats.connections++;
        store->was_ever_ready = true;
        store->why[0] = 0;
    } else {
        BEL_LOG(log, BEL_LOG_WARN,
                "store lost; requests for its timers fail with IO until it is back",
                BEL_LOG_TEXT("store", store->shown), BEL_LOG_TEXT("why", why));
        store->lost = store->why_logged = now;
        (void)snprintf(store->why, sizeof store->why, "%s", why);
    }
}

/* Logs why the servers cannot be reached, when the reason has changed. */
static void log_why(struct redis_store *store, const char *why)
{
    struct bel_mono now = store->options.clock->now.real;
    if (why[0] == 0 || strcmp(why, store->why) == 0) return;
    if (now.ns - store->why_logged.ns < (uint64_t)WHY_AGAIN_MS * NS_PER_MS) return;
    BEL_LOG(store->options.log, BEL_LOG_WARN, "store cannot be reached",
            BEL_LOG_TEXT("store", store->shown), BEL_LOG_TEXT("why", why));
    store->why_logged = now;
    (void)snprintf(store->why, sizeof store->why, "%s", why);
}

/* Logs that the timers are gone, once each time; and looks again after each new connection. */
static void watch_origin(struct redis_store *store)
{
    if (store->losses != store->origin.losses) {
        store->losses = store->origin.losses;
        BEL_LOG(store->options.log, BEL_LOG_ERROR,
                "store has lost its data; timers that were acknowledged are gone",
                BEL_LOG_TEXT("store", store->shown),
                BEL_LOG_TEXT("why", "FLUSHALL, SWAPDB, or a restart of a server without its data"),
                BEL_LOG_TEXT("missing", store->origin.key));
    }
    if (store->looked != store->stats.connections) look_at_origin(store);
}

/* Logs what the servers refuse, at most once in a while. */
static void watch_refusals(struct redis_store *store)
{
    const struct bel_redis_refusals *refusals = bel__redis_refusals(store->redis);
    struct bel_mono now = store->options.clock->now.real;
    uint64_t since_ns = now.ns - store->refusal_logged.ns;
    if (refusals->count == store->refusals || refusals->is_looking) return;
    if (store->refusals > 0 && since_ns < (uint64_t)WHY_AGAIN_MS * NS_PER_MS) return;
    BEL_LOG(store->options.log, BEL_LOG_WARN, "store has refused requests",
            BEL_LOG_TEXT("store", store->shown), BEL_LOG_TEXT("why", refusals->why),
            BEL_LOG_TEXT("key", refusals->key),
            BEL_LOG_NUMBER("requests", refusals->count - store->refusals));
    store->refusals = refusals->count;
    store->refusal_logged = now;
}

/* Logs that servers that can be reached cannot be relied upon, and when they can be again. */
static void watch_health(struct redis_store *store)
{
    struct bel_why why;
    bool is_ailing = bel__servers_ail(bel__redis_servers(store->redis), &why);
    if (is_ailing == store->was_ailing) return;
    store->was_ailing = is_ailing;
    if (is_ailing) {
        BEL_LOG(store->options.log, BEL_LOG_ERROR, "store cannot take timers",
                BEL_LOG_TEXT("store", store->shown), BEL_LOG_TEXT("why", why.text));
    } else {
        BEL_LOG(store->options.log, BEL_LOG_INFO, "store can take timers again",
                BEL_LOG_TEXT("store", store->shown));
    }
}

static int watch(struct bel_server_store *store)
{
    struct redis_store *redis = redis_of(store);
    const char *why = bel__servers_why(bel__redis_servers(redis->redis));
    bool is_ready_now = is_complete(redis);
    redis->stats.is_ready = is_ready_now;
    if (is_ready_now != redis->was_ready) {
        redis->was_ready = is_ready_now;
        log_change(redis, is_ready_now, why);
    } else if (!is_ready_now) {
        log_why(redis, why);
    }
    watch_origin(redis);
    watch_health(redis);
    watch_refusals(redis);
    return redis->clock.is_lost ? BEL_ECONFLICT : 0;
}

/* The only failure that ends the server. */
static void explain(const struct bel_server_store *store, struct bel_why *why)
{
    (void)store;
    (void)bel__why_say(why, BEL_ECONFLICT,
                       "another server has taken over the virtual clock of this namespace");
}

static int refuse_backup(struct bel_server_store *store, const char *folder, struct bel_why *why)
{
    (void)store;
    (void)folder;
    return bel__why_say(why, BEL_EUNSUPPORTED,
                        "BACKUP is not supported by a store on Redis; use the means of Redis");
}

/* --- telling --- */

static void tell_primary(struct bel_info_page *page, size_t i, const struct bel_server_note *note)
{
    char port[8] = "";
    if (note->port != 0) (void)snprintf(port, sizeof port, ":%u", (unsigned)note->port);
    bel__info_line(page,
                   "store_primary_%zu:address=%s%s,ready=%d,connections=%" PRIu64
                   ",server=%s,version=%s",
                   i, note->host, port, note->is_ready, note->connections, note->server->name,
                   note->server->version);
}

static void tell(const struct bel_server_store *store, struct bel_info_page *page)
{
    const struct redis_store *redis = const_of(store);
    const struct bel_config *config = redis->options.config;
    const struct bel_servers *servers = bel__redis_servers(redis->redis);
    struct bel_server_note notes[PRIMARIES_SHOWN];
    struct bel_why ailment;
    bel__info_line(page, "store:redis");
    bel__info_line(page, "durability:%s", durability_of(config));
    bel__info_line(page, "store_ready:%d", is_complete(redis));
    bel__info_line(page, "store_data_losses:%" PRIu64, redis->origin.losses);
    (void)bel__servers_ail(servers, &ailment);
    if (page->scope != NULL) return;
    bel__info_line(page, "store_url:%s", redis->shown);
    bel__info_line(page, "store_db:%" PRIu32, redis->redis_options.servers.db);
    bel__info_line(page, "store_namespace:%s", redis->redis_options.name_space);
    bel__info_line(page, "store_replicas_wanted:%" PRIu32, config->replicas);
    bel__info_line(page, "store_replicas_at_start:%" PRIu64, redis->replicas);
    bel__info_line(page, "store_connections:%" PRIu64, redis->stats.connections);
    bel__info_line(page, "store_last_failure:%s", bel__servers_why(servers));
    size_t count = bel__servers_note(servers, notes, PRIMARIES_SHOWN);
    bel__info_line(page, "store_trouble:%s", ailment.text);
    bel__info_line(page, "store_origin:%s", redis->origin.text);
    bel__info_line(page, "store_primaries:%zu", count);
    for (size_t i = 0; i < count && i < PRIMARIES_SHOWN; i++) {
        tell_primary(page, i, &notes[i]);
    }
}

static void place(const struct bel_server_store *store, char *out, size_t room)
{
    (void)snprintf(out, room, "%s", const_of(store)->shown);
}

/* --- closing --- */

static void close_redis(struct bel_server_store *store)
{
    struct redis_store *redis = redis_of(store);
    redis->options.metrics->store = NULL;
    bel__redis_close(redis->redis);
    redis->redis = NULL;
    struct bel_asking_options options = asking_of(redis, 0);
    options.waiting = NULL;
    bel__virtual_clock_release(&redis->clock, &options);
}

static void destroy(struct bel_server_store *store)
{
    struct redis_store *redis = redis_of(store);
    assert(redis->redis == NULL);
    bel__origin_finish(&redis->origin);
    bel__virtual_clock_finish(&redis->clock);
    bel__redis_forget(&redis->redis_options);
    free(redis);
}

static const struct bel_server_store_functions functions = {
    .open_clock = open_clock,
    .open = open_redis,
    .start = start,
    .watch = watch,
    .is_ready = is_ready,
    .is_settled = is_settled,
    .begin_backup = refuse_backup,
    .tell = tell,
    .place = place,
    .explain = explain,
    .close = close_redis,
    .destroy = destroy,
};

const struct bel_server_store_kind bel__server_redis = {.check = check, .create = create};
