/* SPDX-License-Identifier: MIT */

/*
 * libmicrohttpd implements the protocol; the loop drives it. The loop polls an outer epoll that
 * contains the epoll of the library and the sockets of waiting claims.
 *
 *     outer epoll: [library epoll] [socket of a waiting claim] ...      bel__http_fd()
 *                         |
 *                         '--> sockets of connections that are not suspended
 *
 * A connection whose request needs the backend is suspended until the backend replies. The library
 * does not poll the socket of a suspended connection, so it would not notice that the client hung
 * up. A claim can wait long; its socket is therefore polled by the outer epoll. A claim whose
 * response cannot be sent is released.
 */
#include "http/call.h"

#include "session/key_check.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    BODY_BYTES_BESIDES = 256 << 10, /* maximum size of a body without its payload */
    IDLE_S_MAX = 75,                /* idle timeout of a connection */
    CONNECTION_BYTES = 32 << 10,    /* memory for the request line and the headers */
    METRICS_BYTES_MAX = 8 << 20,
    EVENTS_MAX = 64,
    LOCATION_BYTES = 3 * (BEL_TOPIC_BYTES_MAX + BEL_ID_BYTES) + 32,
};

struct bel_http {
    struct bel_http_options options;
    struct MHD_Daemon *daemon;
    struct bel_list calls, counting; /* all calls; the calls that wait for a census */
    int epoll_fd;
    MHD_socket listener; /* owned while draining; the library owns it before */
    bool is_draining;
};

/* --- answers --- */

static struct MHD_Response *make_response(char *text, size_t bytes, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return NULL;
    }
    if (type != NULL) (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    return response;
}

/* Appends a percent-encoded path segment. Returns the new length. */
static size_t put_segment(char *out, size_t used, struct bel_view text)
{
    static const char hex[] = "0123456789ABCDEF";
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes && used + 4 < LOCATION_BYTES; i++) {
        bool is_plain = bytes[i] > ' ' && bytes[i] < 0x7f && strchr("/%?#", bytes[i]) == NULL;
        if (is_plain) {
            out[used++] = (char)bytes[i];
        } else {
            out[used++] = '%';
            out[used++] = hex[bytes[i] >> 4];
            out[used++] = hex[bytes[i] & 15];
        }
    }
    out[used] = 0;
    return used;
}

static void add_location(const struct bel_http_call *call, struct bel_view id)
{
    char text[LOCATION_BYTES] = "/v1/topics/";
    size_t used = put_segment(text, strlen(text), call->captures[0].text);
    used += (size_t)snprintf(text + used, sizeof text - used, "/timers/");
    (void)put_segment(text, used, id);
    (void)MHD_add_response_header(call->response, "Location", text);
}

/* Creates the response of a page and takes ownership of the page. If memory runs out there is no
 * response, and the connection will be closed. */
static void set_page(struct bel_http_call *call, struct bel_http_page page)
{
    if (page.is_lost) return;
    assert(call->state != BEL_HTTP_CALL_SENDING && call->state != BEL_HTTP_CALL_ORPHANED);
    char *text = page.json != NULL ? bel__http_dump(page.json, JSON_COMPACT) : calloc(1, 1);
    const char *type = page.is_problem ? "application/problem+json" : "application/json";
    if (page.json == NULL) type = NULL;
    assert(call->response == NULL);
    json_decref(page.json);
    if (text == NULL) return;
    call->response = make_response(text, strlen(text), type);
    call->status = page.status;
    if (call->response == NULL) return;
    if (page.created_id.bytes > 0) add_location(call, page.created_id);
    if (page.status == MHD_HTTP_UNAUTHORIZED) {
        (void)MHD_add_response_header(call->response, "WWW-Authenticate", "Bearer");
    }
    if (call->is_last || (call->http != NULL && call->http->is_draining)) {
        (void)MHD_add_response_header(call->response, "Connection", "close");
    }
}

static void set_problem(struct bel_http_call *call, const char *code, const char *text)
{
    set_page(call, bel__http_problem(code, text));
}

static enum MHD_Result queue(struct bel_http_call *call)
{
    if (call->response == NULL) return MHD_NO;
    assert(call->state == BEL_HTTP_CALL_ANSWERED || call->state == BEL_HTTP_CALL_REFUSED);
    call->state = BEL_HTTP_CALL_SENDING;
    bel__metrics_count_http(call->http->options.metrics, call->status);
    enum MHD_Result result = MHD_queue_response(call->connection, call->status, call->response);
    MHD_destroy_response(call->response);
    call->response = NULL;
    return result;
}

/* --- waiting --- */

static bool is_suspended(const struct bel_http_call *call)
{
    return call->state == BEL_HTTP_CALL_RUNNING || call->state == BEL_HTTP_CALL_COUNTING;
}

static void suspend(struct bel_http_call *call, enum bel_http_call_state state)
{
    assert(call->state == BEL_HTTP_CALL_RECEIVING);
    MHD_suspend_connection(call->connection);
    call->state = state;
    assert(is_suspended(call));
}

static int socket_of(const struct bel_http_call *call)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

/* Lets the library go on with a connection that was suspended. */
static void resume(struct bel_http_call *call)
{
    if (call->is_watched) {
        (void)epoll_ctl(call->http->epoll_fd, EPOLL_CTL_DEL, socket_of(call), NULL);
    }
    call->is_watched = false;
    MHD_resume_connection(call->connection);
}

static void watch(struct bel_http_call *call)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = call};
    int fd = socket_of(call);
    assert(call->state == BEL_HTTP_CALL_RUNNING);
    call->is_watched = epoll_ctl(call->http->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* --- the life of a call --- */

static void call_destroy(struct bel_http_call *call)
{
    assert(call->state != BEL_HTTP_CALL_RUNNING && call->state != BEL_HTTP_CALL_ORPHANED);
    assert(call->connection == NULL && !call->is_watched);
    if (call->response != NULL) MHD_destroy_response(call->response);
    bel__http_words_finish(call);
    bel__buffer_finish(&call->body);
    free(call->tokens);
    free(call->path);
    free(call);
}

/* Keeps the tokens of deliveries until the response is sent. If memory runs out and the response
 * cannot be sent, the leases expire instead of being released. */
static void keep_tokens(struct bel_http_call *call, const struct bel_reply *reply)
{
    size_t bytes = bel__unsent_bytes(reply);
    assert(call->tokens == NULL);
    call->tokens = bytes > 0 ? malloc(bytes) : NULL;
    if (call->tokens != NULL) bel__unsent_keep(&call->unsent, reply, call->tokens);
}

static void on_released(struct bel_unsent_claims *unsent)
{
    call_destroy(BEL_CONTAINER_OF(unsent, struct bel_http_call, unsent));
}

/* Releases the unsent claims of a call whose connection is closed, then frees the call. */
static void abandon(struct bel_http_call *call)
{
    bel__unsent_release(&call->unsent, &call->request, call->backend, on_released);
}

static void on_reply(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_http_call *call = BEL_CONTAINER_OF(request, struct bel_http_call, request);
    bool is_orphaned = call->state == BEL_HTTP_CALL_ORPHANED;
    assert(is_orphaned || call->state == BEL_HTTP_CALL_RUNNING);
    assert(is_orphaned == (call->connection == NULL));
    call->state = BEL_HTTP_CALL_ANSWERED;
    struct bel_http_page page = {0};
    if (!is_orphaned) page = bel__http_page(call, reply);
    if (request->command.verb == BEL_VERB_CLAIM && reply->err == 0) {
        keep_tokens(call, reply);
        call->is_lost = page.is_problem || page.is_lost;
    }
    if (is_orphaned) {
        abandon(call);
        return;
    }
    set_page(call, page);
    resume(call);
}

static enum MHD_Result take_query(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    (void)kind;
    bel__http_query(context, name, value);
    return MHD_YES;
}

static void submit(struct bel_http_call *call)
{
    struct bel_why why;
    (void)MHD_get_connection_values(call->connection, MHD_GET_ARGUMENT_KIND, take_query, call);
    if (bel__http_words(call, &call->request.command, &why) != 0) {
        set_problem(call, why.code, why.text);
        return;
    }
    if (!bel__scope_has(call->grant.scope, &call->request.command)) {
        set_problem(call, "NOPERM",
                    "this key is limited to certain topics and does not allow this command");
        return;
    }
    call->request.done = on_reply;
    suspend(call, BEL_HTTP_CALL_RUNNING);
    const struct bel_command *command = &call->request.command;
    if (command->verb == BEL_VERB_CLAIM && command->claim.wait_ms > 0) watch(call);
    bel_backend_submit(call->backend, &call->request);
}

/* --- resources of the server itself --- */

static void print_metrics(struct bel_http_call *call)
{
    struct bel_buffer text;
    bel__buffer_init(&text, METRICS_BYTES_MAX);
    int err = bel__metrics_print(call->http->options.metrics, call->service->now->real, &text);
    char *copy = err == 0 ? malloc(text.count + 1) : NULL;
    if (copy == NULL) {
        set_problem(call, "FULL", "the metrics are too large");
    } else {
        memcpy(copy, bel__buffer_data(&text), text.count);
        call->response = make_response(copy, text.count, "text/plain; version=0.0.4");
        call->status = MHD_HTTP_OK;
    }
    bel__buffer_finish(&text);
}

static void begin_metrics(struct bel_http_call *call)
{
    struct bel_http *http = call->http;
    bel__metrics_begin(http->options.metrics, call->service->now->real);
    if (bel__metrics_is_ready(http->options.metrics)) {
        print_metrics(call);
        return;
    }
    bel__list_append(&http->counting, &call->waiting);
    suspend(call, BEL_HTTP_CALL_COUNTING);
}

static void end_metrics(struct bel_http *http)
{
    struct bel_link *link;
    if (!bel__metrics_is_ready(http->options.metrics)) return;
    while ((link = bel__list_take_first(&http->counting)) != NULL) {
        struct bel_http_call *call = BEL_CONTAINER_OF(link, struct bel_http_call, waiting);
        assert(call->state == BEL_HTTP_CALL_COUNTING);
        call->state = BEL_HTTP_CALL_ANSWERED;
        print_metrics(call);
        resume(call);
    }
}

static void set_state(struct bel_http_call *call, const char *state, unsigned status)
{
    json_t *json = json_pack("{s:s}", "status", state);
    set_page(call, (struct bel_http_page){.status = status, .json = json, .is_lost = json == NULL});
}

static void set_description(struct bel_http_call *call)
{
    json_t *json = bel__http_openapi();
    set_page(call,
             (struct bel_http_page){.status = MHD_HTTP_OK, .json = json, .is_lost = json == NULL});
}

/* Executes a completely received request. */
static void begin(struct bel_http_call *call)
{
    bool is_draining = call->http->is_draining;
    assert(call->state == BEL_HTTP_CALL_RECEIVING);
    switch (call->route->own) {
    case BEL_HTTP_COMMAND:
        submit(call);
        break;
    case BEL_HTTP_LIVEZ:
        set_state(call, "ok", MHD_HTTP_OK);
        break;
    case BEL_HTTP_READYZ:
        set_state(call, is_draining ? "stopping" : "ok",
                  is_draining ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK);
        break;
    case BEL_HTTP_METRICS:
        begin_metrics(call);
        break;
    case BEL_HTTP_OPENAPI:
        set_description(call);
        break;
    }
    if (!is_suspended(call)) call->state = BEL_HTTP_CALL_ANSWERED;
}

/* --- checks of the head --- */

static const char *header_of(const struct bel_http_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

/* Returns whether a host, with or without a port, is an IP address or localhost. A DNS name could
 * belong to an attacker who points it to this machine (DNS rebinding). */
static bool is_own_host(const char *host)
{
    char name[BEL_ADDRESS_BYTES];
    unsigned char raw[16];
    const char *start = host[0] == '[' ? host + 1 : host;
    size_t bytes = strcspn(start, host[0] == '[' ? "]" : ":");
    if (bytes >= sizeof name) return false;
    (void)snprintf(name, sizeof name, "%.*s", (int)bytes, start);
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, raw) == 1 ||
           inet_pton(AF_INET6, name, raw) == 1;
}

/* Returns whether an origin is this server. A page of another site must not send requests in the
 * name of its visitor (cross-site request forgery). */
static bool is_own_origin(const char *origin, const char *host)
{
    const char *rest = strstr(origin, "://");
    return rest != NULL && host != NULL && strcasecmp(rest + 3, host) == 0;
}

static bool check_origin(struct bel_http_call *call)
{
    const char *host = header_of(call, "Host"), *origin = header_of(call, "Origin");
    bool is_local = bel__address_is_loopback(&call->http->options.address);
    if (is_local && (host == NULL || !is_own_host(host))) {
        set_problem(call, "NOPERM", "Host: expected an IP address or localhost");
    } else if (origin != NULL && !is_own_origin(origin, host)) {
        set_problem(call, "NOPERM", "Origin: cross-site requests are not allowed");
    } else {
        return true;
    }
    return false;
}

/* Returns the counter of wrong keys of a connection; NULL if its allocation failed. */
static unsigned *keys_wrong_of(const struct bel_http_call *call)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void print_client(const struct bel_http_call *call, char out[BEL_ADDRESS_BYTES])
{
    struct bel_address address = {0};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    (void)snprintf(out, BEL_ADDRESS_BYTES, "?");
    if (info == NULL || info->client_addr == NULL) return;
    bool is_v6 = info->client_addr->sa_family == AF_INET6;
    memcpy(&address.socket, info->client_addr,
           is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    bel__address_print(&address, out);
}

static bool refuse_key(struct bel_http_call *call, const char *text)
{
    set_problem(call, "NOAUTH", text);
    return false;
}

/* Checks the API key and its permission; on failure sets the response. Health checks need none. */
static bool check_key(struct bel_http_call *call)
{
    const struct bel_service *service = call->service;
    enum bel_http_own own = call->route->own;
    const char *key = header_of(call, "Authorization");
    struct bel_grant *grant = &call->grant;
    if (service->authenticate == NULL || own == BEL_HTTP_LIVEZ || own == BEL_HTTP_READYZ) {
        return true;
    }
    if (key == NULL || strncasecmp(key, "Bearer ", 7) != 0) {
        return refuse_key(call, "a key is required: Authorization: Bearer KEY");
    }
    struct bel_view view = {key + 7, strlen(key + 7)};
    char address[BEL_ADDRESS_BYTES];
    print_client(call, address);
    struct bel_key_attempt attempt = {.key = view, .address = address};
    enum bel_key_result result = bel__key_check(service, &attempt, keys_wrong_of(call), grant);
    if (result > BEL_KEY_WRONG) call->is_last = true;
    if (result != BEL_KEY_RIGHT) return refuse_key(call, "wrong key");
    if (own == BEL_HTTP_OPENAPI) return true;
    bool is_allowed = grant->permissions & 1U << bel__commands[call->route->command].permission;
    if (own == BEL_HTTP_METRICS && grant->scope != NULL) is_allowed = false; /* shows all topics */
    if (is_allowed) return true;
    set_problem(call, "NOPERM", "the key does not allow this");
    return false;
}

/* Uses the Idempotency-Key of a POST as the timer's id, so that a retry creates no second timer.
 * The key may be quoted, as a structured field is. */
static void take_retry_key(struct bel_http_call *call)
{
    const char *key = call->route->is_create ? header_of(call, "Idempotency-Key") : NULL;
    if (key == NULL) return;
    size_t bytes = strlen(key);
    bool is_quoted = bytes >= 2 && key[0] == '"' && key[bytes - 1] == '"';
    struct bel_view id = {is_quoted ? key + 1 : key, is_quoted ? bytes - 2 : bytes};
    size_t place = 0;
    while (call->captures[place].name != NULL) {
        place++;
    }
    assert(place < BEL_HTTP_CAPTURES_MAX);
    call->captures[place] = (struct bel_http_capture){"id}", id};
}

static void refuse_route(struct bel_http_call *call, const char *allow)
{
    if (allow[0] == 0) {
        set_problem(call, "NOTFOUND", "no such resource");
        return;
    }
    set_page(call, bel__http_problem_as(MHD_HTTP_METHOD_NOT_ALLOWED, "ERR",
                                        "this resource does not support this method"));
    if (call->response == NULL) return;
    (void)MHD_add_response_header(call->response, "Allow", allow);
}

static void refuse_size(struct bel_http_call *call)
{
    set_page(call,
             bel__http_problem_as(MHD_HTTP_CONTENT_TOO_LARGE, "BADARG", "the body is too large"));
}

/* NOLINTNEXTLINE(readability-function-size): a callback of the library */
static enum MHD_Result take_header(void *context, enum MHD_ValueKind kind, const char *name,
                                   size_t name_bytes, const char *value, size_t value_bytes)
{
    (void)kind;
    bel__http_headers_take(context, (struct bel_view){name, name_bytes},
                           (struct bel_view){value, value_bytes});
    return MHD_YES;
}

/* Checks the head of a request. Returns false if the request is refused and the response is set. */
static bool admit(struct bel_http_call *call, const char *method)
{
    char allow[64];
    struct bel_http_headers headers = {0};
    (void)MHD_get_connection_values_n(call->connection, MHD_HEADER_KIND, take_header, &headers);
    call->is_last = headers.fault != NULL || headers.is_chunked || headers.length > 0;
    if (headers.fault != NULL) {
        set_problem(call, "ERR", headers.fault);
        return false;
    }
    if (!check_origin(call)) return false;
    call->route = bel__http_route(method, call->path, call->captures, allow);
    if (call->route == NULL) {
        refuse_route(call, allow);
        return false;
    }
    if (!check_key(call)) return false;
    take_retry_key(call);
    if (headers.length > call->body.count_max) {
        refuse_size(call);
        return false;
    }
    call->is_last = false;
    return true;
}

/* --- callbacks of the library --- */

static struct bel_http_call *call_create(struct bel_http *http, struct MHD_Connection *connection,
                                         const char *url)
{
    struct bel_http_call *call = calloc(1, sizeof *call);
    if (call == NULL) return NULL;
    call->path = strdup(url);
    if (call->path == NULL) {
        free(call);
        return NULL;
    }
    call->http = http;
    call->backend = http->options.backend;
    call->service = http->options.service;
    call->connection = connection;
    bel__buffer_init(&call->body,
                     2 * (size_t)call->service->payload_bytes_max + BODY_BYTES_BESIDES);
    bel__list_append(&http->calls, &call->link);
    return call;
}

static void take_body(struct bel_http_call *call, const char *data, size_t bytes)
{
    if (call->state != BEL_HTTP_CALL_RECEIVING) return;
    if (bel__buffer_append(&call->body, data, bytes) != 0) call->state = BEL_HTTP_CALL_TOO_LARGE;
}

/* NOLINTNEXTLINE(readability-function-size): a callback of the library */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *bytes, void **state)
{
    struct bel_http_call *call = *state;
    (void)version;
    if (call == NULL) {
        call = call_create(context, connection, url);
        if (call == NULL) return MHD_NO;
        *state = call;
        if (admit(call, method)) return MHD_YES;
        call->state = BEL_HTTP_CALL_REFUSED;
        /* A response that is queued before the body is received closes the connection. */
        return call->is_last ? queue(call) : MHD_YES;
    }
    if (*bytes > 0) {
        take_body(call, data, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    if (call->state == BEL_HTTP_CALL_TOO_LARGE) {
        refuse_size(call);
        call->state = BEL_HTTP_CALL_ANSWERED;
    } else if (call->state == BEL_HTTP_CALL_RECEIVING) {
        begin(call);
        if (is_suspended(call)) return MHD_YES;
    }
    return queue(call);
}

/* The library is done with a request: the response was sent, or the connection was closed. */
static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct bel_http_call *call = *state;
    (void)context;
    (void)connection;
    if (call == NULL) return;
    *state = NULL;
    bel__link_remove(&call->link);
    if (bel__link_is_linked(&call->waiting)) bel__link_remove(&call->waiting);
    call->http = NULL;
    call->connection = NULL;
    if (call->state == BEL_HTTP_CALL_RUNNING) {
        call->state = BEL_HTTP_CALL_ORPHANED;
    } else if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && !call->is_lost) {
        call_destroy(call);
    } else {
        abandon(call);
    }
}

static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    struct bel_metrics *metrics = ((struct bel_http *)context)->options.metrics;
    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        metrics->http_clients++;
        metrics->http_accepted++;
        *state = calloc(1, sizeof(unsigned)); /* wrong keys */
    } else {
        metrics->http_clients--;
        free(*state);
    }
}

/* Keeps the library from decoding paths and queries, which must be split before. */
static size_t leave_encoded(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* --- start and stop --- */

/* Opens the listening socket; the library would not report why it failed. Returns a socket, or -1
 * and sets errno. Sets the port in `*address` if it was 0. */
static int open_listener(struct bel_address *address)
{
    struct sockaddr *name = (struct sockaddr *)&address->socket;
    bool is_6 = name->sa_family == AF_INET6;
    socklen_t bytes = is_6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int yes = 1, fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, name, bytes) == 0 && listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, name, &bytes) == 0) {
        return fd;
    }
    int failed = errno;
    (void)close(fd);
    errno = failed;
    return -1;
}

static struct MHD_Daemon *start_daemon(struct bel_http *http, int listener)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    const struct bel_http_options *options = &http->options;
    if (options->address.socket.ss_family == AF_INET6) flags |= MHD_USE_IPv6;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_encoded, http, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
}

int bel__http_start(const struct bel_http_options *options, struct bel_http **out,
                    struct bel_why *why)
{
    struct bel_http *http = calloc(1, sizeof *http);
    if (http == NULL) return BEL_ENOMEM;
    http->options = *options;
    http->listener = MHD_INVALID_SOCKET;
    bel__list_init(&http->calls);
    bel__list_init(&http->counting);
    http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int listener = http->epoll_fd >= 0 ? open_listener(&http->options.address) : -1;
    (void)bel__why_say(why, 0, "%s", listener < 0 ? strerrordesc_np(errno) : "");
    if (listener >= 0) http->daemon = start_daemon(http, listener);
    if (http->daemon != NULL) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
        if (epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &event) == 0) {
            *out = http;
            return 0;
        }
    }
    bel__http_stop(http);
    return BEL_EIO;
}

uint16_t bel__http_port(const struct bel_http *http)
{
    return bel__address_port(&http->options.address);
}

int bel__http_fd(const struct bel_http *http)
{
    return http->epoll_fd;
}

/* Withdraws a claim whose client hung up. If the backend is already executing it, it replies. */
static void hang_up(struct bel_http_call *call)
{
    if (call->state != BEL_HTTP_CALL_RUNNING) return;
    if (!bel_backend_withdraw(call->backend, &call->request)) return;
    call->state = BEL_HTTP_CALL_ANSWERED;
    assert(call->response == NULL && call->unsent.count == 0);
    resume(call); /* without a response: the library closes the connection */
}

void bel__http_run(struct bel_http *http)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(http->epoll_fd, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr != NULL) hang_up(events[i].data.ptr);
    }
    end_metrics(http);
    (void)MHD_run(http->daemon);
}

uint64_t bel__http_wait_ms(const struct bel_http *http)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    return MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES ? wait_ms : UINT64_MAX;
}

void bel__http_drain(struct bel_http *http)
{
    http->is_draining = true;
    if (http->listener == MHD_INVALID_SOCKET) http->listener = MHD_quiesce_daemon(http->daemon);
}

bool bel__http_is_idle(const struct bel_http *http)
{
    struct bel_link *link = bel__list_first(&http->calls);
    for (; link != NULL; link = bel__list_next(&http->calls, link)) {
        const struct bel_http_call *call = BEL_CONTAINER_OF(link, struct bel_http_call, link);
        if (call->state >= BEL_HTTP_CALL_RUNNING) return false;
    }
    return true;
}

/* Resumes all suspended connections; the library must not be stopped before. */
static void resume_all(struct bel_http *http)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&http->calls); link != NULL; link = next) {
        struct bel_http_call *call = BEL_CONTAINER_OF(link, struct bel_http_call, link);
        next = bel__list_next(&http->calls, link);
        if (!is_suspended(call)) continue;
        bool is_running = call->state == BEL_HTTP_CALL_RUNNING;
        if (is_running && bel_backend_withdraw(call->backend, &call->request)) {
            call->state = BEL_HTTP_CALL_ANSWERED;
        }
        resume(call);
    }
    (void)MHD_run(http->daemon);
}

void bel__http_stop(struct bel_http *http)
{
    if (http == NULL) return;
    if (http->daemon != NULL) {
        resume_all(http);
        MHD_stop_daemon(http->daemon);
    }
    if (http->listener != MHD_INVALID_SOCKET) (void)close(http->listener);
    if (http->epoll_fd >= 0) (void)close(http->epoll_fd);
    free(http);
}
