/* SPDX-License-Identifier: MIT */

/*
 * Opens the parts from the inside out and closes them in reverse order, with one exception: the
 * loop is created before the store is opened, whose threads may wake it, and freed after it.
 */
#include "server/server.h"

#include "belfry/zone.h"
#include "server/background.h"
#include "server/info.h"
#include "server/key_file.h"
#include "server/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    DESCRIPTORS_BESIDES = 64, /* for files, listeners and so on */
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
    struct bel_server_store *store;
    struct bel_http *http;
    struct bel_background background;
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

/* Called after each turn. */
static int broken(void *context)
{
    struct server *server = context;
    return server->store->functions->watch(server->store);
}

static bool is_ready(void *context)
{
    const struct server *server = context;
    const struct bel_server_store *store = server->store;
    return store->functions->is_ready == NULL || store->functions->is_ready(store);
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

static bool is_settled(void *context)
{
    const struct server *server = context;
    const struct bel_server_store *store = server->store;
    return store->functions->is_settled == NULL || store->functions->is_settled(store);
}

static int create_store(struct server *server)
{
    struct bel_server_store_options options = {
        .config = server->options.config,
        .log = server->options.log,
        .clock = &server->clock,
        .metrics = &server->metrics,
        .tracker = &server->tracker,
        .zones = server->zones,
        .program = server->options.program,
    };
    bel__server_clock_init(&server->clock, bel_clock_system());
    int err = server->options.kind->create(&options, &server->store);
    if (err == 0) err = server->store->functions->open_clock(server->store);
    server->info.store = server->store;
    server->clock.is_settled = is_settled;
    server->clock.context = server;
    return err;
}

static int open_store(struct server *server)
{
    struct bel_server_store *store = server->store;
    int err = store->functions->open(store, server->loop);
    if (err) return err;
    bel__request_tracker_init(&server->tracker, store->backend, &server->metrics,
                              bel_clock_system());
    server->tracker.does_recover = store->is_remote;
    bel__caller_init(&server->http_caller, &server->tracker);
    bel__caller_init(&server->own_caller, &server->tracker);
    server->own_caller.is_own = true;
    server->http_caller.is_unordered = true; /* each request is of another client */
    server->metrics.backend = &server->own_caller.backend;
    server->metrics.engine = store->stats;
    bel__background_init(&server->background, store, server->loop, &server->clock,
                         server->options.log);
    return bel__loop_add_backend(server->loop, store->backend);
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
        .is_ready = is_ready,
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
            BEL_LOG_TEXT("address", server->places.resp), BEL_LOG_TEXT("why", why->text),
            BEL_LOG_TEXT("do", "choose another port with --port, if a server is running already"));
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
    if (err == 0) err = create_store(server);
    if (err == 0) err = open_loop(server);
    if (err == 0) err = open_store(server);
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
    const struct bel_server_store *store = server->store;
    struct bel_server_places *places = &server->places;
    int err = listen_resp(server);
    if (err == 0) err = listen_http(server);
    if (err) return err;
    places->store_name = store->place_name;
    store->functions->place(store, places->store, sizeof places->store);
    server->info.resp_port = places->resp_port;
    server->info.http_port = places->http_port;
    BEL_LOG(server->options.log, BEL_LOG_INFO, "listening", BEL_LOG_TEXT("resp", places->resp),
            BEL_LOG_TEXT("http", places->http), BEL_LOG_TEXT(places->store_name, places->store));
    return server->options.started(places, config);
}

/* --- closing --- */

static void close_all(struct server *server)
{
    struct bel_server_store *store = server->store;
    const struct bel_server_store_functions *functions = store != NULL ? store->functions : NULL;
    if (store != NULL && functions->stop != NULL) functions->stop(store);
    if (store != NULL && store->backend != NULL) {
        bel__background_end(&server->background);
        bel__loop_finish(server->loop);
    }
    bel__http_stop(server->http);
    if (store != NULL) functions->close(store);
    bel__loop_destroy(server->loop);
    if (store != NULL) functions->destroy(store);
    bel__call_pool_finish(&server->calls);
    bel_zones_close(server->zones);
    bel__metrics_finish(&server->metrics);
}

/* Runs the loop until it ends. */
static int run(struct server *server)
{
    struct bel_why why = {0};
    int err = bel__loop_run(server->loop);
    if (err == 0) return 0;
    if (server->store->functions->explain != NULL) {
        server->store->functions->explain(server->store, &why);
    }
    return fail(server, err, "store failed; the server acknowledges nothing more", why.text);
}

int bel__server_run(const struct bel_server_options *options)
{
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) return BEL_ENOMEM;
    server->options = *options;
    int err = bel__metrics_init(&server->metrics);
    if (err == 0) err = open_all(server);
    if (err == 0) err = listen_all(server);
    if (err == 0) err = server->store->functions->start(server->store);
    if (err == 0) err = run(server);
    close_all(server);
    if (err == 0) bel__logger_write(options->log, BEL_LOG_INFO, "stopped", NULL, 0);
    free(server);
    return err;
}
