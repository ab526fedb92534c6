/* SPDX-License-Identifier: MIT */

/*
 * The engine, and what watches over it: the check of the data before the start, the checks of the
 * tree while the server runs, the pressure, and the log of what the engine counts.
 */
#include "server/embedded/embedded.h"

#include "belfry/engine.h"
#include "belfry/instant.h"
#include "core/units.h"
#include "engine/engine.h"
#include "engine/offline/inspect.h"
#include "server/embedded/damage.h"
#include "server/embedded/overlap_log.h"
#include "server/embedded/pressure_probe.h"
#include "server/embedded/pressure_watch.h"
#include "server/embedded/probe.h"
#include "server/embedded/tree_check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    OVERLAPS_ERROR = 5, /* in a row, from which on they are logged as errors */
};

struct embedded {
    struct bel_server_store store; /* first */
    struct bel_server_store_options options;
    struct bel_loop *loop;
    struct bel_engine *engine;
    struct bel_tree_check *tree_check; /* NULL: no tree on disk */
    struct bel_pressure_probe pressure_probe;
    struct bel_pressure_watch pressure_watch;
    struct bel_overlap_log overlap_log;
    uint64_t clock_steps; /* number of clock steps logged */
    uint64_t overlaps;    /* number of skipped overlaps seen */
    uint64_t sync_us;     /* measured duration of a sync; 0: not measured */
    bool is_sync_in_thread;
    bool is_sync_adaptive; /* a thread takes over when the disk becomes slow */
    bool is_disk_low;      /* the last state logged */
    bool is_tree_checked;  /* before the engine was opened */
};

static struct embedded *embedded_of(struct bel_server_store *store)
{
    return (struct embedded *)store;
}

static const struct embedded *const_of(const struct bel_server_store *store)
{
    return (const struct embedded *)store;
}

static bool is_in_memory(const struct embedded *embedded)
{
    return embedded->options.config->store == BEL_CONFIG_MEMORY;
}

/* Returns the data directory; NULL: in memory. */
static const char *folder_of(const struct embedded *embedded)
{
    return is_in_memory(embedded) ? NULL : embedded->options.config->data;
}

/* --- creating --- */

/* Checks as much of the data as fits into the configured time. */
static int check_data(struct embedded *embedded)
{
    const struct bel_config *config = embedded->options.config;
    const struct bel_logger *log = embedded->options.log;
    struct bel_engine_checked checked = {0};
    struct bel_why why = {0};
    if (is_in_memory(embedded)) return 0;
    if (bel__damage_watch(log, config->data) != 0) {
        bel__logger_write(log, BEL_LOG_WARN,
                          "cannot handle SIGBUS: an unreadable page will not be named", NULL, 0);
    }
    struct bel_mono start = bel_clock_mono(bel_clock_system());
    int err = bel__engine_check_for(config->data, config->check_ms, &checked, &why);
    struct bel_mono end = bel_clock_mono(bel_clock_system());
    if (err == BEL_ECORRUPT) {
        bel__damage_log(log, config->data, why.text);
        return err;
    }
    embedded->is_tree_checked = checked.is_tree_checked;
    if (checked.report.rows > 0) {
        BEL_LOG(log, BEL_LOG_INFO, "data checked", BEL_LOG_NUMBER("rows", checked.report.rows),
                BEL_LOG_NUMBER("ms", (end.ns - start.ns) / NS_PER_MS));
    }
    return 0; /* opening reports any other error */
}

static const struct bel_server_store_functions functions;

static int create(const struct bel_server_store_options *options, struct bel_server_store **out)
{
    struct embedded *embedded = calloc(1, sizeof *embedded);
    if (embedded == NULL) return BEL_ENOMEM;
    embedded->options = *options;
    embedded->store.functions = &functions;
    embedded->store.place_name = "data";
    embedded->store.lacks[BEL_ABILITY_BACKUP] = is_in_memory(embedded);
    int err = check_data(embedded);
    if (err) {
        free(embedded);
        return err;
    }
    *out = &embedded->store;
    return 0;
}

static int open_clock(struct bel_server_store *store)
{
    const struct embedded *embedded = const_of(store);
    struct bel_server_clock *clock = embedded->options.clock;
    if (!embedded->options.config->is_virtual) return 0;
    int err = bel__server_clock_init_virtual(clock, bel_clock_system(), folder_of(embedded));
    if (err) {
        BEL_LOG(embedded->options.log, BEL_LOG_ERROR, "cannot read the virtual clock",
                BEL_LOG_TEXT("error", bel_error_text(err)));
    }
    return err;
}

/* --- opening --- */

/* Logs what waits for the disk. */
static void log_sync(const struct embedded *embedded)
{
    BEL_LOG(embedded->options.log, BEL_LOG_INFO, "syncing",
            BEL_LOG_TEXT("in", embedded->is_sync_in_thread ? "thread" : "loop"),
            BEL_LOG_NUMBER("measured_us", embedded->sync_us));
}

/* Chooses what waits for the disk. With virtual time the loop does, so that an advance is durable
 * when it is answered. */
static enum bel_engine_sync choose_sync(struct embedded *embedded)
{
    const struct bel_config *config = embedded->options.config;
    const struct bel_logger *log = embedded->options.log;
    if (is_in_memory(embedded)) return BEL_ENGINE_SYNC_IN_TURN;
    if (config->durability != BEL_CONFIG_DURABILITY_COMMIT) {
        embedded->is_sync_in_thread = true; /* no reply waits for it */
        bel__logger_write(log, BEL_LOG_WARN,
                          "a power failure may lose the latest acknowledged changes", NULL, 0);
        return BEL_ENGINE_SYNC_IN_THREAD;
    }
    int err = bel__probe_sync(config->data, &embedded->sync_us);
    bool is_slow = err == 0 && embedded->sync_us > BEL_PROBE_LOOP_US;
    bool is_wanted =
        config->sync == BEL_CONFIG_SYNC_AUTO ? is_slow : config->sync == BEL_CONFIG_SYNC_THREAD;
    embedded->is_sync_in_thread = is_wanted && !config->is_virtual;
    embedded->is_sync_adaptive = config->sync == BEL_CONFIG_SYNC_AUTO && !config->is_virtual;
    log_sync(embedded);
    if (embedded->is_sync_in_thread) return BEL_ENGINE_SYNC_IN_THREAD;
    return embedded->is_sync_adaptive ? BEL_ENGINE_SYNC_ADAPTIVE : BEL_ENGINE_SYNC_IN_TURN;
}

/* Names the limit of the address space, if there is one, as the reason for a lack of memory: the
 * tables of an engine take little memory at first, but much address space. */
static void blame_limit(struct bel_engine_why *why)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    (void)snprintf(why->text, sizeof why->text,
                   "out of memory: the address space is limited to %llu MiB; remove the limit: "
                   "ulimit -v unlimited",
                   (unsigned long long)limit.rlim_cur >> 20);
}

static void wake(void *context)
{
    const struct embedded *embedded = context;
    bel__loop_wake(embedded->loop);
}

static int open_engine(struct bel_server_store *store, struct bel_loop *loop)
{
    struct embedded *embedded = embedded_of(store);
    const struct bel_config *config = embedded->options.config;
    static const enum bel_engine_durability durabilities[] = {
        [BEL_CONFIG_DURABILITY_COMMIT] = BEL_ENGINE_DURABILITY_COMMIT,
        [BEL_CONFIG_DURABILITY_INTERVAL] = BEL_ENGINE_DURABILITY_INTERVAL,
        [BEL_CONFIG_DURABILITY_NONE] = BEL_ENGINE_DURABILITY_NONE,
    };
    struct bel_engine_why why;
    embedded->loop = loop;
    struct bel_engine_options options = {
        .folder = folder_of(embedded),
        .zones = embedded->options.zones,
        .payload_bytes_max = config->payload_bytes_max,
        .job_bytes_max = config->job_bytes_max,
        .job_tasks_max = config->job_tasks_max,
        .job_edges_max = config->job_edges_max,
        .job_depth_max = config->job_depth_max,
        .job_retention_ms = config->job_retention_ms,
        .sync = choose_sync(embedded),
        .durability = durabilities[config->durability],
        .sync_interval_ms = config->durability_interval_ms,
        .is_checked = embedded->is_tree_checked,
        .wake = wake,
        .context = embedded,
    };
    bel__server_clock_read_closely(embedded->options.clock);
    options.now = embedded->options.clock->now;
    int err = bel_engine_open(&options, &embedded->engine, &why);
    if (err == BEL_ENOMEM) blame_limit(&why);
    if (err) {
        BEL_LOG(embedded->options.log, BEL_LOG_ERROR, "cannot open the data directory",
                BEL_LOG_TEXT("data", config->data),
                BEL_LOG_TEXT("error", why.text[0] != 0 ? why.text : bel_error_text(err)));
        return err;
    }
    store->backend = bel_engine_backend(embedded->engine);
    store->stats = bel_engine_stats(embedded->engine);
    return 0;
}

/* --- starting --- */

/* Begins to check what the check before the start has not checked. */
static int start_tree_check(struct embedded *embedded)
{
    struct bel_tree_check_options options = {.program = embedded->options.program,
                                             .config = embedded->options.config,
                                             .log = embedded->options.log,
                                             .loop = embedded->loop,
                                             .engine = embedded->engine,
                                             .metrics = embedded->options.metrics,
                                             .is_checked = embedded->is_tree_checked};
    if (is_in_memory(embedded)) return 0;
    return bel__tree_check_start(&options, &embedded->tree_check);
}

static void measure(void *context, struct bel_pressure_sample *out)
{
    const struct embedded *embedded = context;
    bel__pressure_probe_take(&embedded->pressure_probe, bel_clock_mono(bel_clock_system()), out);
}

static void watch_pressure(struct embedded *embedded)
{
    const struct bel_config *config = embedded->options.config;
    embedded->pressure_probe = (struct bel_pressure_probe){
        .folder = folder_of(embedded),
        .engine = embedded->engine,
        .memory_limit = config->memory_bytes_max,
        .commits = &embedded->options.tracker->commits,
    };
    if (config->memory_bytes_max == 0) {
        embedded->pressure_probe.memory_limit = bel__memory_limit_default();
    }
    embedded->pressure_watch = (struct bel_pressure_watch){
        .engine = embedded->engine,
        .loop = embedded->loop,
        .log = embedded->options.log,
        .measure = measure,
        .context = embedded,
    };
    bel__pressure_watch_start(&embedded->pressure_watch);
}

static int start(struct bel_server_store *store)
{
    struct embedded *embedded = embedded_of(store);
    watch_pressure(embedded);
    return start_tree_check(embedded);
}

/* --- running --- */

/* Logs a change of the disk between low and not low. */
static void log_disk(struct embedded *embedded, bool is_low)
{
    const struct bel_logger *log = embedded->options.log;
    if (is_low == embedded->is_disk_low) return;
    embedded->is_disk_low = is_low;
    if (is_low) {
        BEL_LOG(log, BEL_LOG_WARN, "disk nearly full; new timers fail with FULL",
                BEL_LOG_TEXT("data", embedded->options.config->data));
    } else {
        bel__logger_write(log, BEL_LOG_INFO, "disk has room again", NULL, 0);
    }
}

/* Logs that recurring jobs made no job at some times, because the one before was unfinished. */
static void log_overlaps(struct embedded *embedded, const struct bel_engine_overlaps *overlaps)
{
    uint64_t kept = overlaps->count < BEL_OVERLAPS_KEPT ? overlaps->count : BEL_OVERLAPS_KEPT;
    uint64_t from = embedded->overlaps;
    if (overlaps->count - from > kept) from = overlaps->count - kept;
    for (; from < overlaps->count; from++) {
        const struct bel_engine_overlap *note = &overlaps->last[from % BEL_OVERLAPS_KEPT];
        struct bel_boot now = embedded->options.clock->now.boot;
        uint64_t skipped = bel__overlap_log_count(&embedded->overlap_log, note, now);
        bool is_error = note->in_a_row >= OVERLAPS_ERROR;
        if (skipped == 0) continue;
        BEL_LOG(embedded->options.log, is_error ? BEL_LOG_ERROR : BEL_LOG_WARN,
                "time of a recurring job skipped: its last job is unfinished",
                BEL_LOG_TEXT("job", note->job), BEL_LOG_NUMBER("in_a_row", note->in_a_row),
                BEL_LOG_NUMBER("skipped", skipped));
    }
    embedded->overlaps = overlaps->count;
}

static int watch(struct bel_server_store *store)
{
    struct embedded *embedded = embedded_of(store);
    const struct bel_engine_stats *stats = store->stats;
    log_disk(embedded, stats->is_disk_low);
    if (stats->is_sync_in_thread && !embedded->is_sync_in_thread) {
        embedded->is_sync_in_thread = true;
        embedded->sync_us = stats->slow_sync_us;
        log_sync(embedded);
    }
    if (stats->overlaps.count != embedded->overlaps) log_overlaps(embedded, &stats->overlaps);
    if (stats->clock_steps != embedded->clock_steps) {
        char now[BEL_INSTANT_BYTES];
        (void)bel_instant_print(embedded->options.clock->now.wall, now, sizeof now);
        BEL_LOG(embedded->options.log, BEL_LOG_WARN, "wall clock step", BEL_LOG_TEXT("now", now));
    }
    embedded->clock_steps = stats->clock_steps;
    int err = embedded->engine->broken;
    return err ? err : bel__tree_check_error(embedded->tree_check);
}

static void explain(const struct bel_server_store *store, struct bel_why *why)
{
    bel__engine_explain(const_of(store)->engine, why);
}

/* --- backups --- */

static int say(struct bel_why *why, int err, const struct bel_engine_why *found)
{
    return bel__why_say(why, err, "%s", found->text[0] != 0 ? found->text : bel_error_text(err));
}

static int begin_backup(struct bel_server_store *store, const char *folder, struct bel_why *why)
{
    const struct embedded *embedded = const_of(store);
    struct bel_engine_why found = {{0}};
    int err = bel_engine_backup_begin(embedded->engine, folder, &found);
    if (err) return say(why, err, &found);
    (void)!bel__server_clock_copy(embedded->options.clock, folder); /* before it is complete */
    return 0;
}

static int poll_backup(struct bel_server_store *store, const char *folder, struct bel_why *why)
{
    const struct embedded *embedded = const_of(store);
    struct bel_engine_why found = {{0}};
    int err = bel_engine_backup_poll(embedded->engine, &found);
    if (err == BEL_EBUSY) return err;
    if (err) return bel__why_say(why, err, "%s", found.text);
    err = bel__server_clock_copy(embedded->options.clock, folder);
    return err ? bel__why_say(why, err, "cannot write the file virtual-clock") : 0;
}

/* --- telling --- */

static void tell_tree_check(struct bel_info_page *page, const struct embedded *embedded)
{
    const struct bel_tree_check_stats *stats = &embedded->options.metrics->tree_check;
    uint64_t now_ns = embedded->options.clock->now.real.ns, last_ns = stats->last_done.ns;
    bel__info_line(page, "tree_check:%s",
                   stats->is_running ? "running"
                   : stats->done > 0 ? "done"
                                     : "waiting");
    bel__info_line(page, "tree_checks_done:%" PRIu64, stats->done);
    bel__info_line(page, "tree_checks_failed:%" PRIu64, stats->failed);
    if (stats->done > 0) {
        bel__info_line(page, "tree_check_age_s:%" PRIu64,
                       now_ns > last_ns ? (now_ns - last_ns) / NS_PER_S : 0);
    }
    bel__info_line(page, "tree_check_pages:%" PRIu64, stats->pages);
    bel__info_line(page, "tree_check_pages_done:%" PRIu64, stats->pages_done);
    bel__info_line(page, "tree_check_rows:%" PRIu64, stats->rows);
    bel__info_line(page, "tree_check_growth_bytes:%" PRIu64, stats->growth_bytes);
    bel__info_line(page, "tree_check_growth_bytes_max:%" PRIu64, stats->growth_bytes_max);
    bel__info_line(page, "tree_check_snapshots:%" PRIu64, stats->snapshots);
}

static void tell(const struct bel_server_store *store, struct bel_info_page *page)
{
    static const char *const durabilities[] = {
        [BEL_CONFIG_DURABILITY_COMMIT] = "commit",
        [BEL_CONFIG_DURABILITY_INTERVAL] = "interval",
        [BEL_CONFIG_DURABILITY_NONE] = "none",
    };
    const struct embedded *embedded = const_of(store);
    const struct bel_config *config = embedded->options.config;
    bool is_memory = is_in_memory(embedded);
    bel__info_line(page, "store:%s", is_memory ? "memory" : "embedded");
    bel__info_line(page, "durability:%s", is_memory ? "none" : durabilities[config->durability]);
    bel__info_line(page, "durability_interval_ms:%" PRIu32, config->durability_interval_ms);
    if (page->scope == NULL) bel__info_line(page, "data:%s", is_memory ? "" : config->data);
    bel__info_line(page, "sync:%s", embedded->is_sync_in_thread ? "thread" : "loop");
    bel__info_line(page, "sync_us_measured:%" PRIu64, embedded->sync_us);
    if (!is_memory && page->scope == NULL) tell_tree_check(page, embedded);
}

static void place(const struct bel_server_store *store, char *out, size_t room)
{
    const char *folder = folder_of(const_of(store));
    char *absolute = folder != NULL ? realpath(folder, NULL) : NULL;
    (void)snprintf(out, room, "%s", absolute != NULL ? absolute : folder != NULL ? folder : "");
    free(absolute);
}

/* --- closing --- */

static void stop(struct bel_server_store *store)
{
    bel__tree_check_stop(embedded_of(store)->tree_check);
}

static void close_engine(struct bel_server_store *store)
{
    struct embedded *embedded = embedded_of(store);
    bel_engine_close(embedded->engine);
    embedded->engine = NULL;
}

static void destroy(struct bel_server_store *store)
{
    struct embedded *embedded = embedded_of(store);
    assert(embedded->engine == NULL);
    bel__tree_check_destroy(embedded->tree_check);
    free(embedded);
}

static const struct bel_server_store_functions functions = {
    .open_clock = open_clock,
    .open = open_engine,
    .start = start,
    .watch = watch,
    .begin_backup = begin_backup,
    .poll_backup = poll_backup,
    .tell = tell,
    .place = place,
    .explain = explain,
    .stop = stop,
    .close = close_engine,
    .destroy = destroy,
};

const struct bel_server_store_kind bel__server_embedded = {.create = create};
