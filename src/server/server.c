/* SPDX-License-Identifier: MIT */

/*
 * Opens the parts from the inside out and closes them in reverse order, with one exception: the
 * loop is created before the engine, whose thread may wake it, and freed after it.
 */
#include "server/server.h"

#include "belfry/engine.h"
#include "belfry/instant.h"
#include "core/units.h"
#include "engine/engine.h"
#include "engine/offline/inspect.h"
#include "server/background.h"
#include "server/damage.h"
#include "server/info.h"
#include "server/key_file.h"
#include "server/loop.h"
#include "server/overlap_log.h"
#include "server/pressure_probe.h"
#include "server/pressure_watch.h"
#include "server/probe.h"
#include "server/tree_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    DESCRIPTORS_BESIDES = 64, /* for files, listeners and so on */
    OVERLAPS_ERROR = 5,       /* in a row, from which on they are logged as errors */
};

struct server {
    struct bel_server_options options;
    struct bel_metrics metrics;
    struct bel_server_clock clock;
    struct bel_request_tracker tracker;
    struct bel_caller http_caller, own_caller; /* own_caller: for the census of the metrics */
    struct bel_service service;
    struct bel_call_pool calls;
    struct bel_output_total output_total;
    struct bel_input_total input_total;
    struct bel_wrong_keys wrong_keys;
    struct bel_info info;
    struct bel_server_places places;
    struct bel_zones *zones;
    struct bel_loop *loop;
    struct bel_engine *engine;
    struct bel_http *http;
    struct bel_background background;
    struct bel_tree_check *tree_check; /* NULL: no tree on disk */
    struct bel_pressure_probe pressure_probe;
    struct bel_pressure_watch pressure_watch;
    uint64_t clock_steps; /* number of clock steps logged */
    uint64_t overlaps;    /* number of skipped overlaps seen */
    struct bel_overlap_log overlap_log;
    bool is_disk_low;     /* the last state logged */
    bool is_tree_checked; /* before the engine was opened */
};

/* Logs a failure, with its reason if `why` is not empty, and returns the error. */
static int fail(const struct server *server, int err, const char *what, const char *why)
{
    BEL_LOG(server->options.log, BEL_LOG_ERROR, what,
            BEL_LOG_TEXT("error", why[0] != 0 ? why : bel_error_text(err)));
    return err;
}

/* --- the service of the sessions --- */

static bool authenticate(void *context, const struct bel_key_attempt *attempt,
                         struct bel_grant *out)
{
    const struct server *server = context;
    return bel__keys_check(server->options.keys, attempt->user, attempt->key, out);
}

/* Counts and logs a wrong key. An address beyond the rate is logged once, not for every key. */
static void report_key(void *context, const struct bel_key_attempt *attempt,
                       enum bel_wrong_keys_verdict verdict)
{
    struct server *server = context;
    struct bel_log_field user = {.name = "user", .text = attempt->user};
    if (user.text.data == NULL) user.text.data = "";
    server->metrics.keys_wrong++;
    if (verdict == BEL_WRONG_KEYS_FEW) {
        BEL_LOG(server->options.log, BEL_LOG_WARN, "wrong key",
                BEL_LOG_TEXT("address", attempt->address), user);
    } else if (verdict == BEL_WRONG_KEYS_MANY_NOW) {
        BEL_LOG(server->options.log, BEL_LOG_WARN, "too many wrong keys; replies are delayed",
                BEL_LOG_TEXT("address", attempt->address), user);
    }
}

static bool regrant(void *context, struct bel_grant *grant)
{
    const struct server *server = context;
    return bel__keys_regrant(server->options.keys, grant);
}

/* SIGHUP: reads the key file again. If that fails, the old keys stay valid. */
static void reload(void *context)
{
    struct server *server = context;
    const struct bel_config *config = server->options.config;
    struct bel_why why = {0};
    if (server->options.keys == NULL) {
        bel__logger_write(server->options.log, BEL_LOG_INFO,
                          "SIGHUP ignored: the server was started without keys", NULL, 0);
        return;
    }
    int err = bel__key_file_read(config->keys, server->options.log, &server->options.keys, &why);
    if (err) {
        BEL_LOG(server->options.log, BEL_LOG_ERROR, "cannot read the keys; the old ones stay valid",
                BEL_LOG_TEXT("file", config->keys), BEL_LOG_TEXT("why", why.text));
        return;
    }
    bel__loop_regrant(server->loop, regrant);
    server->info.keys = bel__keys_count(server->options.keys);
    BEL_LOG(server->options.log, BEL_LOG_INFO, "keys read again",
            BEL_LOG_NUMBER("keys", server->info.keys));
}

static int info(void *context, struct bel_view section, const struct bel_scope *scope,
                struct bel_buffer *out)
{
    struct server *server = context;
    bel__metrics_begin(&server->metrics, server->clock.now.real);
    return bel__info_print(&server->info, section, scope, out);
}

static int backup(void *context, struct bel_view path, struct bel_background_task *task,
                  struct bel_why *why)
{
    struct server *server = context;
    return bel__background_backup(&server->background, path, task, why);
}

static void shut_down(void *context)
{
    struct server *server = context;
    bel__logger_write(server->options.log, BEL_LOG_INFO, "stopping: SHUTDOWN received", NULL, 0);
    bel__loop_drain(server->loop);
}

static int advance(void *context, const struct bel_clock_move *move,
                   struct bel_background_task *task)
{
    struct server *server = context;
    return bel__background_advance(&server->background, move, task);
}

static uint64_t run_background(void *context)
{
    struct server *server = context;
    return bel__background_run(&server->background);
}

static void wake(void *context)
{
    struct server *server = context;
    bel__loop_wake(server->loop);
}

/* Logs a change of the disk between low and not low. */
static void log_disk(struct server *server, bool is_low)
{
    if (is_low == server->is_disk_low) return;
    server->is_disk_low = is_low;
    if (is_low) {
        BEL_LOG(server->options.log, BEL_LOG_WARN, "disk nearly full; new timers fail with FULL",
                BEL_LOG_TEXT("data", server->options.config->data));
    } else {
        bel__logger_write(server->options.log, BEL_LOG_INFO, "disk has room again", NULL, 0);
    }
}

/* Logs that recurring jobs made no job at some times, because the one before was unfinished. */
static void log_overlaps(struct server *server, const struct bel_engine_overlaps *overlaps)
{
    uint64_t kept = overlaps->count < BEL_OVERLAPS_KEPT ? overlaps->count : BEL_OVERLAPS_KEPT;
    uint64_t from = server->overlaps;
    if (overlaps->count - from > kept) from = overlaps->count - kept;
    for (; from < overlaps->count; from++) {
        const struct bel_engine_overlap *note = &overlaps->last[from % BEL_OVERLAPS_KEPT];
        uint64_t skipped =
            bel__overlap_log_count(&server->overlap_log, note, server->clock.now.boot);
        bool is_error = note->in_a_row >= OVERLAPS_ERROR;
        if (skipped == 0) continue;
        BEL_LOG(server->options.log, is_error ? BEL_LOG_ERROR : BEL_LOG_WARN,
                "time of a recurring job skipped: its last job is unfinished",
                BEL_LOG_TEXT("job", note->job), BEL_LOG_NUMBER("in_a_row", note->in_a_row),
                BEL_LOG_NUMBER("skipped", skipped));
    }
    server->overlaps = overlaps->count;
}

/* Called after each turn: logs overlaps, disk and clock. Returns the error of a failed engine. */
static int broken(void *context)
{
    struct server *server = context;
    const struct bel_engine_stats *stats = bel_engine_stats(server->engine);
    uint64_t steps = stats->clock_steps;
    log_disk(server, stats->is_disk_low);
    if (stats->overlaps.count != server->overlaps) log_overlaps(server, &stats->overlaps);
    if (steps != server->clock_steps) {
        char now[BEL_INSTANT_BYTES];
        (void)bel_instant_print(server->clock.now.wall, now, sizeof now);
        BEL_LOG(server->options.log, BEL_LOG_WARN, "wall clock step", BEL_LOG_TEXT("now", now));
    }
    server->clock_steps = steps;
    int err = server->engine->broken;
    return err ? err : bel__tree_check_error(server->tree_check);
}

/* --- opening --- */

/* Raises the limit of descriptors to what the clients need: both ports accept as many clients, and
 * each has its own share, so that neither can take the descriptors of the other. Returns the number
 * of clients of a port that fit. */
static uint32_t make_room(const struct server *server)
{
    const struct bel_config *config = server->options.config;
    uint32_t wanted = config->clients_max;
    rlim_t ports = config->has_http ? 2 : 1, needed = ports * wanted + DESCRIPTORS_BESIDES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= needed) return wanted;
    rlim_t rest = limit.rlim_cur / 2;
    if (limit.rlim_cur > (rlim_t)DESCRIPTORS_BESIDES * 2) {
        rest = limit.rlim_cur - DESCRIPTORS_BESIDES;
    }
    uint32_t possible = (uint32_t)(rest / ports);
    BEL_LOG(server->options.log, BEL_LOG_WARN, "max-clients reduced: too few file descriptors",
            BEL_LOG_NUMBER("wanted", wanted), BEL_LOG_NUMBER("possible", possible));
    return possible;
}

static int open_time(struct server *server)
{
    const struct bel_config *config = server->options.config;
    const char *folder = config->store == BEL_CONFIG_MEMORY ? NULL : config->data;
    if (!config->is_virtual) {
        bel__server_clock_init(&server->clock, bel_clock_system());
        return 0;
    }
    int err = bel__server_clock_init_virtual(&server->clock, bel_clock_system(), folder);
    return err ? fail(server, err, "cannot read the virtual clock", "") : 0;
}

/* Chooses what waits for the disk. With virtual time the loop does, so that an advance is durable
 * when it is answered. */
static enum bel_engine_sync choose_sync(struct server *server)
{
    const struct bel_config *config = server->options.config;
    struct bel_info *about = &server->info;
    if (config->store == BEL_CONFIG_MEMORY) return BEL_ENGINE_SYNC_IN_TURN;
    if (config->durability != BEL_DURABILITY_COMMIT) {
        about->is_sync_in_thread = true; /* no reply waits for it */
        bel__logger_write(server->options.log, BEL_LOG_WARN,
                          "a power failure may lose the latest acknowledged changes", NULL, 0);
        return BEL_ENGINE_SYNC_IN_THREAD;
    }
    int err = bel__probe_sync(config->data, &about->sync_us);
    bool is_slow = err == 0 && about->sync_us > BEL_PROBE_LOOP_US;
    about->is_sync_in_thread = config->sync == BEL_CONFIG_SYNC_AUTO
                                   ? is_slow && !config->is_virtual
                                   : config->sync == BEL_CONFIG_SYNC_THREAD && !config->is_virtual;
    BEL_LOG(server->options.log, BEL_LOG_INFO, "syncing",
            BEL_LOG_TEXT("in", about->is_sync_in_thread ? "thread" : "loop"),
            BEL_LOG_NUMBER("measured_us", about->sync_us));
    return about->is_sync_in_thread ? BEL_ENGINE_SYNC_IN_THREAD : BEL_ENGINE_SYNC_IN_TURN;
}

static int open_loop(struct server *server)
{
    struct bel_loop_options options = {
        .service = &server->service,
        .tracker = &server->tracker,
        .clock = &server->clock,
        .metrics = &server->metrics,
        .log = server->options.log,
        .clients_max = (uint32_t)server->metrics.clients_max,
        .broken = broken,
        .chore = run_background,
        .reload = reload,
        .context = server,
    };
    int err = bel__loop_create(&options, &server->loop);
    return err ? fail(server, err, "cannot create the event loop", "") : 0;
}

/* Checks as much of the data as fits into the configured time. */
static int check_data(struct server *server)
{
    const struct bel_config *config = server->options.config;
    struct bel_engine_checked checked = {0};
    struct bel_why why = {0};
    if (config->store == BEL_CONFIG_MEMORY) return 0;
    if (bel__damage_watch(server->options.log, config->data) != 0) {
        bel__logger_write(server->options.log, BEL_LOG_WARN,
                          "cannot handle SIGBUS: an unreadable page will not be named", NULL, 0);
    }
    struct bel_mono start = bel_clock_mono(bel_clock_system());
    int err = bel__engine_check_for(config->data, config->check_ms, &checked, &why);
    struct bel_mono end = bel_clock_mono(bel_clock_system());
    if (err == BEL_ECORRUPT) {
        bel__damage_log(server->options.log, config->data, why.text);
        return err;
    }
    server->is_tree_checked = checked.is_tree_checked;
    if (checked.report.rows > 0) {
        BEL_LOG(server->options.log, BEL_LOG_INFO, "data checked",
                BEL_LOG_NUMBER("rows", checked.report.rows),
                BEL_LOG_NUMBER("ms", (end.ns - start.ns) / NS_PER_MS));
    }
    return 0; /* opening reports any other error */
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

static int open_engine(struct server *server)
{
    const struct bel_config *config = server->options.config;
    static const enum bel_engine_durability durabilities[] = {
        [BEL_DURABILITY_COMMIT] = BEL_ENGINE_DURABILITY_COMMIT,
        [BEL_DURABILITY_INTERVAL] = BEL_ENGINE_DURABILITY_INTERVAL,
        [BEL_DURABILITY_NONE] = BEL_ENGINE_DURABILITY_NONE,
    };
    struct bel_engine_why why;
    struct bel_engine_options options = {
        .folder = config->store == BEL_CONFIG_MEMORY ? NULL : config->data,
        .zones = server->zones,
        .payload_bytes_max = config->payload_bytes_max,
        .job_bytes_max = config->job_bytes_max,
        .job_tasks_max = config->job_tasks_max,
        .job_edges_max = config->job_edges_max,
        .job_depth_max = config->job_depth_max,
        .job_retention_ms = config->job_retention_ms,
        .sync = choose_sync(server),
        .durability = durabilities[config->durability],
        .sync_interval_ms = config->durability_interval_ms,
        .is_checked = server->is_tree_checked,
        .wake = wake,
        .context = server,
    };
    bel__server_clock_read_closely(&server->clock);
    options.now = server->clock.now;
    int err = bel_engine_open(&options, &server->engine, &why);
    if (err == BEL_ENOMEM) blame_limit(&why);
    if (err) {
        BEL_LOG(server->options.log, BEL_LOG_ERROR, "cannot open the data directory",
                BEL_LOG_TEXT("data", config->data),
                BEL_LOG_TEXT("error", why.text[0] != 0 ? why.text : bel_error_text(err)));
        return err;
    }
    bel__request_tracker_init(&server->tracker, bel_engine_backend(server->engine),
                              &server->metrics, bel_clock_system());
    bel__caller_init(&server->http_caller, &server->tracker);
    bel__caller_init(&server->own_caller, &server->tracker);
    server->own_caller.is_own = true;
    server->http_caller.is_unordered = true; /* each request is of another client */
    server->metrics.backend = &server->own_caller.backend;
    server->metrics.engine = bel_engine_stats(server->engine);
    bel__background_init(&server->background, server->engine, server->loop, &server->clock,
                         server->options.log);
    return 0;
}

static void set_up_service(struct server *server)
{
    const struct bel_config *config = server->options.config;
    server->service = (struct bel_service){
        .zones = server->zones,
        .now = &server->clock.now,
        .metrics = &server->metrics,
        .calls = &server->calls,
        .payload_bytes_max = config->payload_bytes_max,
        .job_bytes_max = config->job_bytes_max,
        .output_bytes_max = (size_t)config->output_bytes_max,
        .output_total = &server->output_total,
        .input_total = &server->input_total,
        .auth_ms_max = config->auth_ms_max,
        .authenticate = server->options.keys != NULL ? authenticate : NULL,
        .wrong_keys = &server->wrong_keys,
        .report_key = report_key,
        .info = info,
        .backup = backup,
        .shutdown = shut_down,
        .advance = config->is_virtual ? advance : NULL,
        .context = server,
    };
    server->output_total.bytes_max = (size_t)config->output_total_bytes_max;
    bel__input_total_init(&server->input_total, (size_t)config->input_total_bytes_max,
                          bel__session_request_memory(&server->service));
    server->info.config = config;
    server->info.output_total = &server->output_total;
    server->info.input_total = &server->input_total;
    server->info.metrics = &server->metrics;
    server->info.clock = &server->clock;
    server->info.tracker = &server->tracker;
    server->info.started = bel_clock_mono(bel_clock_system());
    server->info.keys = server->options.keys != NULL ? bel__keys_count(server->options.keys) : 0;
}

/* --- listening --- */

static void log_http_failure(struct server *server, const struct bel_why *why)
{
    const struct bel_config *config = server->options.config;
    BEL_LOG(server->options.log, BEL_LOG_ERROR, "cannot listen for HTTP",
            BEL_LOG_TEXT("address", server->places.http), BEL_LOG_TEXT("why", why->text),
            BEL_LOG_TEXT("do", config->was_http_asked ? "choose another port with --http"
                                                      : "use --http ADDRESS:PORT or --http none"));
}

static void log_resp_failure(struct server *server, const struct bel_why *why)
{
    BEL_LOG(server->options.log, BEL_LOG_ERROR, "cannot listen",
            BEL_LOG_TEXT("address", server->places.resp), BEL_LOG_TEXT("why", why->text));
}

/* Checks that the ports are free before anything is created on disk. */
static int probe_ports(struct server *server)
{
    const struct bel_config *config = server->options.config;
    struct bel_why why = {0};
    bel__address_print(&config->resp, server->places.resp);
    int err = bel__loop_probe(&config->resp, &why);
    if (err) log_resp_failure(server, &why);
    if (err || !config->has_http) return err;
    bel__address_print(&config->http, server->places.http);
    err = bel__loop_probe(&config->http, &why);
    if (err) log_http_failure(server, &why);
    return err;
}

static int open_all(struct server *server)
{
    server->metrics.clients_max = make_room(server);
    if (bel_zones_open(NULL, &server->zones) != 0) {
        bel__logger_write(server->options.log, BEL_LOG_WARN,
                          "no time zones except UTC: install tzdata", NULL, 0);
    }
    set_up_service(server);
    int err = probe_ports(server);
    if (err == 0) err = open_time(server);
    if (err == 0) err = check_data(server);
    if (err == 0) err = open_loop(server);
    if (err == 0) err = open_engine(server);
    return err;
}

static int listen_http(struct server *server)
{
    const struct bel_config *config = server->options.config;
    struct bel_http_options options = {
        .address = config->http,
        .backend = &server->http_caller.backend,
        .service = &server->service,
        .metrics = &server->metrics,
        .connections_max = (uint32_t)server->metrics.clients_max,
    };
    struct bel_why why = {0};
    if (!config->has_http) return 0;
    bel__address_print(&config->http, server->places.http);
    int err = bel__http_start(&options, &server->http, &why);
    if (err == 0) err = bel__loop_add_http(server->loop, server->http);
    if (err) {
        log_http_failure(server, &why);
        return err;
    }
    server->places.http_port = bel__http_port(server->http);
    bel__address_set_port(&options.address, server->places.http_port);
    bel__address_print(&options.address, server->places.http);
    return 0;
}

static int listen_resp(struct server *server)
{
    struct bel_address address = server->options.config->resp;
    struct bel_why why = {0};
    bel__address_print(&address, server->places.resp);
    int err = bel__loop_listen(server->loop, &address, &why);
    if (err) {
        log_resp_failure(server, &why);
        return err;
    }
    bel__address_print(&address, server->places.resp);
    server->places.resp_port = bel__address_port(&address);
    if (!bel__address_is_loopback(&address)) {
        BEL_LOG(server->options.log, BEL_LOG_WARN,
                "no TLS: traffic on this address is not encrypted",
                BEL_LOG_TEXT("address", server->places.resp));
    }
    return 0;
}

static int listen_all(struct server *server)
{
    const struct bel_config *config = server->options.config;
    struct bel_server_places *places = &server->places;
    int err = listen_resp(server);
    if (err == 0) err = listen_http(server);
    if (err) return err;
    if (config->store != BEL_CONFIG_MEMORY && realpath(config->data, places->data) == NULL) {
        (void)snprintf(places->data, sizeof places->data, "%s", config->data);
    }
    server->info.resp_port = places->resp_port;
    server->info.http_port = places->http_port;
    BEL_LOG(server->options.log, BEL_LOG_INFO, "listening", BEL_LOG_TEXT("resp", places->resp),
            BEL_LOG_TEXT("http", places->http), BEL_LOG_TEXT("data", places->data));
    return server->options.started(places, config);
}

/* Begins to check what the check before the start has not checked. */
static int start_tree_check(struct server *server)
{
    struct bel_tree_check_options options = {.program = server->options.program,
                                             .config = server->options.config,
                                             .log = server->options.log,
                                             .loop = server->loop,
                                             .engine = server->engine,
                                             .metrics = &server->metrics,
                                             .is_checked = server->is_tree_checked};
    if (server->options.config->store == BEL_CONFIG_MEMORY) return 0;
    return bel__tree_check_start(&options, &server->tree_check);
}

static void measure(void *context, struct bel_pressure_sample *out)
{
    const struct server *server = context;
    bel__pressure_probe_take(&server->pressure_probe, bel_clock_mono(bel_clock_system()), out);
}

static void watch_pressure(struct server *server)
{
    const struct bel_config *config = server->options.config;
    server->pressure_probe = (struct bel_pressure_probe){
        .folder = config->store == BEL_CONFIG_MEMORY ? NULL : config->data,
        .engine = server->engine,
        .memory_limit = config->memory_bytes_max,
        .commits = &server->tracker.commits,
    };
    if (config->memory_bytes_max == 0) {
        server->pressure_probe.memory_limit = bel__memory_limit_default();
    }
    server->pressure_watch = (struct bel_pressure_watch){
        .engine = server->engine,
        .loop = server->loop,
        .log = server->options.log,
        .measure = measure,
        .context = server,
    };
    bel__pressure_watch_start(&server->pressure_watch);
}

/* --- closing --- */

static void close_all(struct server *server)
{
    bel__tree_check_stop(server->tree_check);
    if (server->engine != NULL) {
        bel__background_end(&server->background);
        bel__loop_finish(server->loop);
    }
    bel__http_stop(server->http);
    bel_engine_close(server->engine);
    bel__loop_destroy(server->loop);
    bel__tree_check_destroy(server->tree_check);
    bel__call_pool_finish(&server->calls);
    bel_zones_close(server->zones);
    bel__metrics_finish(&server->metrics);
}

int bel__server_run(const struct bel_server_options *options)
{
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) return BEL_ENOMEM;
    server->options = *options;
    int err = bel__metrics_init(&server->metrics);
    if (err == 0) err = open_all(server);
    if (err == 0) watch_pressure(server);
    if (err == 0) err = listen_all(server);
    if (err == 0) err = start_tree_check(server);
    if (err == 0) {
        struct bel_why why = {0};
        err = bel__loop_run(server->loop);
        if (err) {
            bel__engine_explain(server->engine, &why);
            (void)fail(server, err, "store failed; the server acknowledges nothing more", why.text);
        }
    }
    close_all(server);
    if (err == 0) bel__logger_write(options->log, BEL_LOG_INFO, "stopped", NULL, 0);
    free(server);
    return err;
}
