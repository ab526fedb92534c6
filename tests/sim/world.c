/* SPDX-License-Identifier: MIT */

/*
 * What a seed is: sizes, rates, which faults and which features there are; and the ground on
 * which the engine stands: clocks, disk, tree, chance.
 */
#include "world.h"

#include "engine/engine.h"
#include "speakers.h"
#include "store/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORK_MIN = 500000, /* turns that no history should need */
    WORK_PER_ORDER = 1000,
    ORDERS_LONG = 1000,
    DISK_SYNC_NS = 20 * 1000 * 1000, /* slow enough for a thread */
};

static const char *const fault_names[] = {
    [FAULT_CRASH] = "crash",   [FAULT_RECOVERY] = "recovery", [FAULT_SYNC] = "sync",
    [FAULT_WRITE] = "write",   [FAULT_CLOCK] = "clock",       [FAULT_SUSPEND] = "suspend",
    [FAULT_REPLY] = "reply",   [FAULT_RETRY] = "retry",       [FAULT_WORKER] = "worker",
    [FAULT_REOPEN] = "reopen", [FAULT_SPACE] = "space",       [FAULT_MEMORY] = "memory",
    [FAULT_TINY] = "tiny",
};

const char *fault_name(enum fault fault)
{
    return fault_names[fault];
}

bool fault_find(const char *name, size_t bytes, enum fault *out)
{
    for (int i = 0; i < FAULTS; i++) {
        if (strlen(fault_names[i]) != bytes || memcmp(fault_names[i], name, bytes) != 0) continue;
        *out = (enum fault)i;
        return true;
    }
    return false;
}

/* What the judge cannot follow is left out together with what it depends on. */
static void draw_features(struct config *config, uint64_t *random)
{
    bool *has = config->features;
    for (int i = 0; i < FEATURE_LIMITS; i++) {
        has[i] = random_below(random, 2) == 0;
    }
    if (random_below(random, 4) == 0) has[FEATURE_EXPIRY] = false;
    if (random_below(random, 3) > 0) has[FEATURE_BIG] = false;
    if (config->faults[FAULT_CLOCK]) has[FEATURE_RETENTION] = false;
    if (!has[FEATURE_LATE_SYNC]) has[FEATURE_SLOW_SYNC] = false;
    if (!has[FEATURE_PLANS]) has[FEATURE_ZONES] = false;
    if (!has[FEATURE_PLANS]) has[FEATURE_RRULE] = false;
    if (random_below(random, 2) > 0) has[FEATURE_LAZY] = false;
    if (random_below(random, 2) > 0) has[FEATURE_BACKUP] = false;
    if (config->faults[FAULT_MEMORY]) has[FEATURE_WEB] = false; /* pages are made in a turn */
    has[FEATURE_LIMITS] = (*random >> 7) % 3 == 0;              /* draws nothing */
    has[FEATURE_JOBS] = (*random >> 13) % 5 < 2;                /* nor does this */
    if (has[FEATURE_LIMITS]) has[FEATURE_WEB] = false;          /* it does not ask for limits */
    if (has[FEATURE_LAZY]) has[FEATURE_LATE_SYNC] = has[FEATURE_SLOW_SYNC] = false;
}

struct bel_zones *world_zones(void)
{
    static struct bel_zones *zones;
    if (zones == NULL && bel_zones_open(NULL, &zones) != 0) abort();
    return zones;
}

/* A little before clocks are put forward or back somewhere. */
static int64_t draw_start(const struct config *config, uint64_t *random)
{
    static const char *const names[] = {"Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"};
    const char *name = names[random_below(random, 3)];
    const struct bel_zone *zone;
    int64_t change = START_MS / 1000 + (int64_t)random_below(random, UINT64_C(365) * 86400);
    int64_t early_ms = (int64_t)random_below(random, 100 * config->pace_ms);
    if (!config->features[FEATURE_ZONES]) return START_MS;
    if (bel_zones_find(world_zones(), name, strlen(name), &zone) != 0) return START_MS;
    if (!bel_zone_next_change(zone, change, &change)) return START_MS;
    return change * 1000 - early_ms;
}

static void draw_sizes(struct config *config, uint64_t *random)
{
    static const size_t rows[] = {1, 3, 20, 300, 0};
    static const uint32_t changes[] = {0, 0, 1, 3};
    static const uint32_t pages[] = {6, 6, 50, BEL_LIST_COUNT_MAX};
    config->segment_bytes = (24 + 4 * random_below(random, 8)) * BEL_IO_BLOCK;
    config->segment_count = 3 + (uint32_t)random_below(random, 3);
    config->transaction_rows = rows[random_below(random, 5)];
    config->page_timers = pages[random_below(random, 4)];
    config->bulk_changes = changes[random_below(random, 4)];
    config->has_direct = random_below(random, 2) == 0;
    config->turn_max = 1 + (unsigned)random_below(random, 5);
    config->pace_ms = random_below(random, 2) == 0 ? 40 : 4000;
    config->interval_ms = random_below(random, 2) == 0 ? 0 : 1 + random_below(random, 200);
    if (!config->faults[FAULT_TINY]) return;
    config->segment_bytes = (9 + random_below(random, 6)) * BEL_IO_BLOCK;
    config->segment_count = 3;
    config->ready_max = 1 + (uint32_t)random_below(random, 8);
}

/* From chance of its own, so that a seed is the same history whether it is spoken or not. */
static void draw_speech(struct config *config, uint64_t random)
{
    static const size_t output[] = {0, 0, 200, 2000}, commands[] = {0, 0, 1, 3};
    config->is_spoken = random_below(&random, 2) == 0;
    config->speakers_max = 1 + (unsigned)random_below(&random, SPEAKERS_MAX);
    config->hang_up_in_100 =
        random_below(&random, 3) == 0 ? 0 : 5 + (unsigned)random_below(&random, 40);
    config->stall_in_100 =
        random_below(&random, 2) == 0 ? 0 : 1 + (unsigned)random_below(&random, 15);
    config->cut_in_100 =
        random_below(&random, 3) == 0 ? 0 : 5 + (unsigned)random_below(&random, 60);
    config->output_bytes_max = output[random_below(&random, 4)];
    config->commands_max = commands[random_below(&random, 4)];
    config->has_keys = random_below(&random, 3) == 0 && !config->faults[FAULT_MEMORY];
    config->is_calm = random_below(&random, 4) > 0 && config->orders >= ORDERS_LONG;
}

void config_speak(struct config *config)
{
    config->is_spoken = true;
}

struct config config_draw(uint64_t seed, uint64_t orders, const bool *faults)
{
    struct config config = {.seed = seed, .orders = orders};
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < FAULTS; i++) {
        config.faults[i] = random_below(&random, 2) == 0;
    }
    for (int i = FAULT_SPACE; i < FAULTS; i++) { /* what the judge cannot follow: rarer */
        if (random_below(&random, 3) > 0) config.faults[i] = false;
    }
    if (orders >= ORDERS_LONG && random_below(&random, 3) > 0) { /* and rarer if it is long */
        config.faults[FAULT_SPACE] = config.faults[FAULT_MEMORY] = config.faults[FAULT_TINY] =
            false;
    }
    if (faults != NULL) memcpy(config.faults, faults, sizeof config.faults);
    draw_features(&config, &random);
    draw_sizes(&config, &random);
    config.start_ms = draw_start(&config, &random);
    config.crash_in_1000 = 5 + (unsigned)random_below(&random, 60);
    config.sync_in_1000 = 2 + (unsigned)random_below(&random, 30);
    config.reopen_in_1000 = 2 + (unsigned)random_below(&random, 30);
    config.worker_in_100 = 5 + (unsigned)random_below(&random, 50);
    draw_speech(&config, ~seed);
    config.has_pressure = seed % 3 == 1;
    config.is_judged =
        !config.faults[FAULT_SPACE] && !config.faults[FAULT_MEMORY] && !config.faults[FAULT_TINY];
    return config;
}

void world_fail(struct world *world, const char *invariant, const char *format, ...)
{
    va_list list;
    if (world->has_failed) return;
    world->has_failed = true;
    (void)snprintf(world->invariant, sizeof world->invariant, "%s", invariant);
    va_start(list, format);
    (void)vsnprintf(world->detail, sizeof world->detail, format, list);
    va_end(list);
}

void say(const struct world *world, const char *format, ...)
{
    va_list list;
    if (!world->config.is_loud) return;
    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
}

uint64_t below(struct world *world, uint64_t end)
{
    return random_below(&world->random, end);
}

bool chance(struct world *world, unsigned percent)
{
    return below(world, 100) < percent;
}

bool has_fault(const struct world *world, enum fault fault)
{
    return world->config.faults[fault];
}

bool has_feature(const struct world *world, enum feature feature)
{
    return world->config.features[feature];
}

struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

void world_hash(struct world *world, const void *data, size_t bytes)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < bytes; i++) {
        world->hash = (world->hash ^ byte[i]) * UINT64_C(0x100000001b3);
    }
}

void world_work(struct world *world)
{
    uint64_t most = WORK_MIN + WORK_PER_ORDER * world->config.orders;
    if (++world->work == most) world_fail(world, "endless", "%" PRIu64 " turns", most);
}

/* --- time --- */

struct bel_now world_start(const struct world *world)
{
    return (struct bel_now){.boot = {1000 * (uint64_t)NS_PER_MS},
                            .wall = {world->config.start_ms},
                            .real = {NS_PER_MS}};
}

void world_pass(struct world *world, uint64_t ms, bool is_suspended)
{
    world->now.boot.ns += ms * NS_PER_MS;
    world->now.wall.ms += (int64_t)ms;
    if (!is_suspended) world->now.real.ns += ms * NS_PER_MS;
    disk_plan(world->disk)->mono_ns += ms * NS_PER_MS;
    say(world, "      +%llu ms: %lld%s\n", (unsigned long long)ms,
        (long long)(world->now.wall.ms - START_MS), is_suspended ? ", suspended" : "");
}

void world_step_wall(struct world *world, int64_t ms)
{
    world->now.wall.ms += ms;
    if (world->now.wall.ms < 0) world->now.wall.ms = 0;
    say(world, "      the wall clock steps by %lld ms\n", (long long)ms);
}

uint64_t world_open_ms(const struct world *world)
{
    return world->open_ms + (world->now.boot.ns - world->boot_opened_ns) / NS_PER_MS;
}

/* --- chance for the engine --- */

static int fill(struct bel_entropy *entropy, void *out, size_t bytes)
{
    struct sim_entropy *sim = (struct sim_entropy *)entropy;
    if (bytes != sizeof sim->word) return bel__entropy_fill(&sim->seeded.entropy, out, bytes);
    memcpy(out, &sim->word, bytes);
    return 0;
}

/* Whether the data is made that of an earlier version whenever it is opened again. Not drawn, so
 * that histories of other seeds stay as they are. */
static bool is_old(const struct world *world)
{
    return world->opens > 0 && world->config.seed % 4 == 0;
}

static bool is_expiry(const struct bel_store_cursor *cursor)
{
    return bel__place_of(&cursor->key).table == BEL_TABLE_EXPIRIES;
}

/* Removes the expiries, which format 2 did not have and the engine makes again, in one batch, if
 * there is room for it. */
static void make_old(struct bel_store *store)
{
    struct bel_key from = bel__key_of(&(struct bel_place){.table = BEL_TABLE_EXPIRIES});
    struct bel_key meta = bel__key_meta(BEL_META_EXPIRIES);
    struct bel_store_cursor cursor;
    size_t rows = 1;
    int err = bel__store_seek(store, &from, &cursor);
    for (; err == 0 && is_expiry(&cursor); err = bel__store_next(store, &cursor)) {
        rows++;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return;
    if (bel__store_reserve(store, rows, 0, BEL_STORE_END) != 0) return;
    err = bel__store_seek(store, &from, &cursor);
    for (; err == 0 && is_expiry(&cursor); err = bel__store_next(store, &cursor)) {
        bel__store_delete(store, &cursor.key);
    }
    bel__store_delete(store, &meta);
    (void)bel__store_commit(store);
}

/* --- opening and closing --- */

/* Chooses what syncs. Of the worlds with late syncs, a quarter find out that their disk is slow. */
static enum bel_store_sync choose_sync(struct world *world)
{
    const struct config *config = &world->config;
    if (config->features[FEATURE_LAZY]) return BEL_SYNC_IN_WORK;
    if (!config->features[FEATURE_LATE_SYNC]) return BEL_SYNC_IN_COMMIT;
    if (config->seed % 4 != 1) return BEL_SYNC_IN_WORK;
    disk_plan(world->disk)->sync_ns = DISK_SYNC_NS;
    return BEL_SYNC_ADAPTIVE;
}

int world_open(struct world *world, struct bel_why *why)
{
    const struct config *config = &world->config;
    struct bel_store_options store_options = {
        .io = disk_io(world->disk),
        .tree = &world->tree.tree,
        .entropy = &world->store_entropy.entropy,
        .segment_bytes = config->segment_bytes,
        .segment_count = config->segment_count,
        .transaction_rows = config->transaction_rows,
        .disk_reserve_bytes = 1 << 20,
        .sync = choose_sync(world),
        .is_lazy = config->features[FEATURE_LAZY],
        .sync_interval_ns = config->features[FEATURE_LAZY] ? config->interval_ms * NS_PER_MS : 0,
    };
    struct bel_engine_options options = {
        .now = world->now, .zones = world_zones(), .ready_max = config->ready_max};
    struct bel_store *store;
    memory_enter(true);
    int err = bel__store_open(&store_options, &store, why);
    reads_open(err == 0 && config->features[FEATURE_LATE_SYNC] ? store : NULL);
    if (err == 0) {
        world->recovered = world->synced = store->batch;
        if (is_old(world)) make_old(store);
        err = bel__engine_open_on(&options, store, &world->entropy.entropy, &world->engine);
        /* The model answers every request in the turn in which it was asked. */
        if (err == 0 && world->judge != NULL) world->engine->rows_max = UINT32_MAX;
        if (err) bel__store_close(store);
    }
    if (err == 0 && is_old(world)) world->engine->migration.rows_max = 3;
    memory_enter(false);
    if (err) return err;
    bool is_alone = world->speakers == NULL && !has_feature(world, FEATURE_WAITS); /* see run.c */
    bool may_slice = world->judge == NULL || is_alone;
    if (config->bulk_changes > 0 && may_slice) {
        world->engine->bulk_changes_max = config->bulk_changes;
    }
    if (world->speakers != NULL) speakers_open(world->speakers);
    world->unsynced_ns = UINT64_MAX;
    world->opens++;
    world->boot_opened_ns = world->now.boot.ns;
    return 0;
}

void world_close(struct world *world, bool is_orderly)
{
    if (world->engine == NULL) return;
    world->open_ms = world_open_ms(world);
    if (!is_orderly) disk_stop(world->disk);
    if (!is_orderly) copy_stop(world->copy);
    bel_engine_close(world->engine);
    world->engine = NULL;
    const struct disk_plan *plan = disk_plan(world->disk);
    bool has_failed = (world->is_sync_armed && plan->fail_sync_in == 0) ||
                      (world->is_write_armed && plan->fail_write_in == 0);
    if (!disk_is_down(world->disk) && !has_failed) world->synced = UINT64_MAX; /* all of it */
    if (world->speakers != NULL) speakers_kill(world->speakers);
    copy_end(world->copy);
}

uint64_t world_digest(struct world *world)
{
    return store_digest(world, world->engine->store);
}

uint64_t store_digest(struct world *world, struct bel_store *store)
{
    static const struct bel_key zero = {{0, 0, 0}};
    struct bel_store_cursor cursor;
    uint64_t before = world->hash, digest;
    int err = bel__store_seek(store, &zero, &cursor);
    world->hash = UINT64_C(0xcbf29ce484222325);
    for (; err == 0; err = bel__store_next(store, &cursor)) {
        world_hash(world, &cursor.key, sizeof cursor.key);
        world_hash(world, cursor.value.data, cursor.value.bytes);
    }
    if (err != BEL_ENOTFOUND) world_fail(world, "reading", "rows cannot be read: %d", err);
    digest = world->hash;
    world->hash = before;
    return digest;
}

void world_init(struct world *world, const struct config *config)
{
    bool has_judge = config->is_judged;
    *world = (struct world){
        .config = *config, .random = config->seed, .press_random = ~config->seed / 2};
    world->hash = UINT64_C(0xcbf29ce484222325);
    memory_fail_in(0);
    memory_enter(false);
    thread_hold(false);
    world->now = world_start(world);
    world->disk = disk_create(random_u64(&world->random));
    disk_plan(world->disk)->has_direct = config->has_direct;
    sim_tree_create(&world->tree, world->disk);
    world->entropy.entropy.fill = fill;
    bel__entropy_seed(&world->entropy.seeded, random_u64(&world->random));
    bel__entropy_seed(&world->store_entropy, random_u64(&world->random));
    world->seen = calloc(64, sizeof *world->seen);
    if (world->seen == NULL) abort();
    world->book = book_create(world);
    world->foreman = foreman_create(world);
    world->walk = walk_create(world);
    world->copy = copy_create(world);
    if (has_judge) world->judge = judge_create(world);
    if (!has_judge) world->unjudged = "faults";
    if (config->is_spoken) world->speakers = speakers_create(world);
}

void world_finish(struct world *world)
{
    world_close(world, true);
    judge_destroy(world->judge);
    book_destroy(world->book);
    foreman_destroy(world->foreman);
    walk_destroy(world->walk);
    copy_destroy(world->copy);
    for (size_t i = 0; i < world->orders.count; i++) {
        order_free(world->orders.items[i]);
    }
    speakers_destroy(world->speakers);
    free(world->orders.items);
    free(world->fresh.items);
    free(world->taken.items);
    free(world->asked.items);
    free(world->told.items);
    for (size_t i = 0; i < world->handed_count; i++) {
        free(world->handed[i]);
    }
    free(world->handed);
    free(world->seen);
    sim_tree_destroy(&world->tree);
    disk_destroy(world->disk);
}
