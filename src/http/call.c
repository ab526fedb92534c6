/* SPDX-License-Identifier: MIT */

/*
 * A call is admitted by its head alone: route, origin, key and size are checked before a byte of
 * the body is kept. A claim whose response cannot be sent is released.
 */
#include "http/call.h"

#include "core/view.h"
#include "session/key_check.h"
#include "session/reply.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_BYTES_BESIDES = 256 << 10, /* maximum size of a body without its payload */
    METRICS_BYTES_MAX = 8 << 20,
    OPENAPI_BYTES_MAX = 8 << 20,
};

/* --- the life of a call --- */

struct bel_http_call *bel__http_call_create(struct bel_http_site *site,
                                            const struct bel_http_caller *caller)
{
    struct bel_http_call *call = calloc(1, sizeof *call);
    if (call == NULL) return NULL;
    call->site = site;
    call->caller = *caller;
    call->backend = site->options.backend;
    call->service = site->options.service;
    bel__json_init(&call->page.body);
    bel__buffer_init(&call->body,
                     2 * (size_t)call->service->payload_bytes_max + BODY_BYTES_BESIDES);
    return call;
}

static void call_destroy(struct bel_http_call *call)
{
    assert(call->state != BEL_HTTP_CALL_RUNNING && call->state != BEL_HTTP_CALL_ORPHANED);
    bel__http_page_finish(&call->page);
    bel__http_words_finish(call);
    bel__buffer_finish(&call->body);
    free(call->tokens);
    free(call->texts);
    free(call);
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

/* Returns whether a call is a claim that may wait. */
static bool is_waiting(const struct bel_http_call *call)
{
    const struct bel_command *command = &call->request.command;
    return call->state == BEL_HTTP_CALL_RUNNING && command->verb == BEL_VERB_CLAIM &&
           command->claim.wait_ms > 0;
}

void bel__http_call_end(struct bel_http_call *call, bool is_sent)
{
    if (bel__link_is_linked(&call->waiting)) bel__link_remove(&call->waiting);
    bool is_unwanted = call->site->is_stopping || is_waiting(call);
    call->site = NULL;
    if (call->state == BEL_HTTP_CALL_RUNNING) {
        call->state = BEL_HTTP_CALL_ORPHANED;
        if (!is_unwanted || !bel_backend_withdraw(call->backend, &call->request)) return;
        call->state = BEL_HTTP_CALL_ANSWERED;
    }
    if (is_sent && !call->is_lost) {
        call_destroy(call);
    } else {
        abandon(call);
    }
}

bool bel__http_call_is_fresh(const struct bel_http_call *call)
{
    return call->state == BEL_HTTP_CALL_RUNNING &&
           call->turns == call->site->options.metrics->turns;
}

bool bel__http_call_hang_up(struct bel_http_call *call)
{
    assert(call->site != NULL);
    if (!is_waiting(call)) return false;
    /* A claim that finds a timer in its first turn is answered, even after a half-close. */
    if (bel__http_call_is_fresh(call)) return false;
    if (!bel_backend_withdraw(call->backend, &call->request)) return false;
    call->state = BEL_HTTP_CALL_ANSWERED;
    call->page.is_lost = true;
    assert(call->unsent.count == 0);
    return true;
}

/* --- answers --- */

/* Sets the answer and takes ownership of it. */
static void set_page(struct bel_http_call *call, struct bel_http_page page)
{
    assert(call->page.status == 0 && !call->page.is_lost);
    bel__http_page_finish(&call->page);
    call->page = page;
    call->state = BEL_HTTP_CALL_ANSWERED;
}

static void set_problem(struct bel_http_call *call, const char *code, const char *text)
{
    set_page(call, bel__http_problem(code, text));
}

/* Sets a problem whose status is not that of its code. Returns false, for use in a check. */
static bool refuse_as(struct bel_http_call *call, unsigned status, const char *code,
                      const char *text)
{
    set_page(call, bel__http_problem_as(status, code, text));
    return false;
}

static bool refuse(struct bel_http_call *call, const char *code, const char *text)
{
    return refuse_as(call, 0, code, text);
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

/* Returns the page of an error of the backend, which names the fields that the client has sent. */
static struct bel_http_page explain(const struct bel_http_call *call, const struct bel_reply *reply)
{
    char text[BEL_REPLY_WHY_BYTES];
    bel__http_name_fields(call->route, reply->why, text, sizeof text);
    return bel__http_problem(bel__reply_code(reply->err), text);
}

static void on_reply(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_http_call *call = BEL_CONTAINER_OF(request, struct bel_http_call, request);
    bool is_orphaned = call->state == BEL_HTTP_CALL_ORPHANED;
    assert(is_orphaned || call->state == BEL_HTTP_CALL_RUNNING);
    assert(is_orphaned == (call->site == NULL));
    call->state = BEL_HTTP_CALL_ANSWERED;
    bool has_deliveries = request->command.verb == BEL_VERB_CLAIM && reply->err == 0;
    if (has_deliveries) keep_tokens(call, reply);
    if (is_orphaned) {
        abandon(call);
        return;
    }
    struct bel_http_question question = {.command = &request->command,
                                         .topic = call->captures[0].text,
                                         .is_create = call->route->is_create};
    bool is_explained = reply->err != 0 && reply->why[0] != 0;
    set_page(call, is_explained ? explain(call, reply) : bel__http_page(&question, reply));
    if (bel__output_owed(call->service, &request->command) > 0) {
        bel__output_total_learn(call->service->output_total, bel__json_memory(&call->page.body));
    }
    if (has_deliveries) call->is_lost = call->page.is_problem || call->page.is_lost;
    call->caller.answered(call->caller.context);
}

/* Refuses a command before the backend sees it. */
static void refuse_command(struct bel_http_call *call, const char *code, const char *text)
{
    enum bel_verb verb;
    if (bel__build_has(&bel__commands[call->route->command], &verb)) {
        bel__metrics_count_refused(call->site->options.metrics, verb);
    }
    set_problem(call, code, text);
}

/* Reserves memory for the answer. A claim that waits reserves none: thousands of workers may wait,
 * and get little. */
static void reserve(struct bel_http_call *call)
{
    const struct bel_command *command = &call->request.command;
    size_t owed = bel__output_owed(call->service, command);
    bel__output_total_expect(call->service->output_total, command->verb, owed);
    call->owed_bytes = is_waiting(call) ? 0 : owed;
}

bool bel__http_call_must_wait(const struct bel_http_call *call, bool do_others)
{
    const struct bel_command_entry *entry = &bel__commands[call->route->command];
    if (call->route->own != BEL_HTTP_COMMAND || !bel__output_may_be_long(entry)) return false;
    return do_others ||
           bel__output_total_crowd(call->service->output_total, entry) != BEL_SESSION_CROWD_NONE;
}

size_t bel__http_call_output_bytes(const struct bel_http_call *call)
{
    return call->state == BEL_HTTP_CALL_RUNNING ? call->owed_bytes
                                                : bel__json_memory(&call->page.body);
}

static void submit(struct bel_http_call *call)
{
    struct bel_why why;
    if (bel__http_words(call, &call->request.command, &why) != 0) {
        refuse_command(call, why.code, why.text);
        return;
    }
    bel__scope_set(call->grant.scope, &call->request.command);
    if (!bel__grant_allows(&call->grant, &call->request.command)) {
        refuse_command(call, "NOPERM", "changing a limit needs the permission 'admin'");
        return;
    }
    if (!bel__scope_has(call->grant.scope, &call->request.command)) {
        refuse_command(call, "NOPERM",
                       "this key is limited to certain topics and does not allow this command");
        return;
    }
    call->request.done = on_reply;
    call->state = BEL_HTTP_CALL_RUNNING;
    reserve(call);
    call->turns = call->site->options.metrics->turns;
    bel_backend_submit(call->backend, &call->request);
}

/* --- resources of the server itself --- */

static void print_metrics(struct bel_http_call *call)
{
    struct bel_buffer text;
    bel__buffer_init(&text, METRICS_BYTES_MAX);
    int err = bel__metrics_print(call->site->options.metrics, call->service->now->real, &text);
    if (err) {
        set_problem(call, "FULL", "the metrics are too large");
    } else {
        struct bel_view view = {bel__buffer_data(&text), text.count};
        set_page(call, bel__http_page_of_text(200, "text/plain; version=0.0.4", view));
    }
    bel__buffer_finish(&text);
}

static void begin_metrics(struct bel_http_call *call)
{
    struct bel_http_site *site = call->site;
    bel__metrics_begin(site->options.metrics, call->service->now->real);
    if (bel__metrics_is_ready(site->options.metrics)) {
        print_metrics(call);
        return;
    }
    bel__list_append(&site->counting, &call->waiting);
    call->state = BEL_HTTP_CALL_COUNTING;
}

void bel__http_end_census(struct bel_http_site *site)
{
    struct bel_link *link;
    if (!bel__metrics_is_ready(site->options.metrics)) return;
    while ((link = bel__list_take_first(&site->counting)) != NULL) {
        struct bel_http_call *call = BEL_CONTAINER_OF(link, struct bel_http_call, waiting);
        assert(call->state == BEL_HTTP_CALL_COUNTING);
        print_metrics(call);
        call->caller.answered(call->caller.context);
    }
}

static void set_state(struct bel_http_call *call, struct bel_view json, unsigned status)
{
    set_page(call, bel__http_page_of_text(status, "application/json", json));
}

/* Makes the description and keeps its text. */
static int make_description(struct bel_buffer *out)
{
    json_t *json = bel__http_openapi();
    char *text = json != NULL ? bel__http_dump(json, JSON_COMPACT) : NULL;
    bel__buffer_init(out, OPENAPI_BYTES_MAX);
    int err = text != NULL ? bel__buffer_append(out, text, strlen(text)) : BEL_ENOMEM;
    free(text);
    json_decref(json);
    return err;
}

static void set_description(struct bel_http_call *call)
{
    struct bel_buffer *text = &call->site->openapi;
    if (text->count == 0 && make_description(text) != 0) {
        set_problem(call, "FULL", "out of memory: try again");
        return;
    }
    struct bel_view view = {bel__buffer_data(text), text->count};
    set_page(call, bel__http_page_of_text(200, "application/json", view));
}

static void tell_readiness(struct bel_http_call *call)
{
    const struct bel_service *service = call->service;
    if (call->site->is_draining) {
        set_state(call, BEL_VIEW("{\"status\":\"stopping\"}"), 503);
    } else if (service->is_ready != NULL && !service->is_ready(service->context)) {
        set_state(call, BEL_VIEW("{\"status\":\"store unreachable\"}"), 503);
    } else {
        set_state(call, BEL_VIEW("{\"status\":\"ok\"}"), 200);
    }
}

void bel__http_call_begin(struct bel_http_call *call)
{
    assert(call->state == BEL_HTTP_CALL_RECEIVING);
    switch (call->route->own) {
    case BEL_HTTP_COMMAND:
        submit(call);
        break;
    case BEL_HTTP_LIVEZ:
        set_state(call, BEL_VIEW("{\"status\":\"ok\"}"), 200);
        break;
    case BEL_HTTP_READYZ:
        tell_readiness(call);
        break;
    case BEL_HTTP_METRICS:
        begin_metrics(call);
        break;
    case BEL_HTTP_OPENAPI:
        set_description(call);
        break;
    }
}

/* --- checks of the head --- */

/* Returns whether a host, with or without a port, is an IP address or localhost. A DNS name could
 * belong to an attacker who points it to this machine (DNS rebinding). */
static bool is_own_host(struct bel_view host)
{
    char text[BEL_ADDRESS_BYTES];
    unsigned char raw[16];
    if (host.bytes >= sizeof text) return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)host.bytes, (const char *)host.data);
    char *name = text[0] == '[' ? text + 1 : text;
    name[strcspn(name, text[0] == '[' ? "]" : ":")] = 0;
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, raw) == 1 ||
           inet_pton(AF_INET6, name, raw) == 1;
}

/* Returns whether an origin is this server. A page of another site must not send requests in the
 * name of its visitor (cross-site request forgery). */
static bool is_own_origin(struct bel_view origin, struct bel_view host)
{
    static const char slashes[] = "://";
    const char *start = memmem(origin.data, origin.bytes, slashes, sizeof slashes - 1);
    if (start == NULL || host.data == NULL) return false;
    const char *end = (const char *)origin.data + origin.bytes;
    start += sizeof slashes - 1;
    return (size_t)(end - start) == host.bytes && strncasecmp(start, host.data, host.bytes) == 0;
}

static bool check_origin(struct bel_http_call *call, const struct bel_http_headers *headers)
{
    bool is_local = bel__address_is_loopback(&call->site->options.address);
    /* Only HTTP/1.0 may leave out the Host, and no browser does. */
    if (is_local && headers->host.data != NULL && !is_own_host(headers->host)) {
        return refuse(call, "NOPERM", "Host: expected an IP address or localhost");
    }
    if (headers->origin.data != NULL && !is_own_origin(headers->origin, headers->host)) {
        return refuse(call, "NOPERM", "Origin: cross-site requests are not allowed");
    }
    return true;
}

/* Checks the API key and its permission; on failure sets the response. Health checks need none. */
static bool check_key(struct bel_http_call *call, struct bel_view key)
{
    const struct bel_service *service = call->service;
    enum bel_http_own own = call->route->own;
    struct bel_grant *grant = &call->grant;
    call->is_known = service->authenticate == NULL;
    if (call->is_known) grant->permissions = ~0U;
    if (call->is_known || own == BEL_HTTP_LIVEZ || own == BEL_HTTP_READYZ) return true;
    if (key.data == NULL || key.bytes < 7 || strncasecmp(key.data, "Bearer ", 7) != 0) {
        return refuse(call, "NOAUTH", "a key is required: Authorization: Bearer KEY");
    }
    struct bel_view view = {(const char *)key.data + 7, key.bytes - 7};
    struct bel_key_attempt attempt = {.key = view, .address = call->caller.address};
    enum bel_key_result result = bel__key_check(service, &attempt, call->caller.keys_wrong, grant);
    if (result > BEL_KEY_WRONG) call->is_last = true;
    call->is_delayed = result == BEL_KEY_WRONG_MANY;
    call->is_known = result == BEL_KEY_RIGHT;
    if (!call->is_known) return refuse(call, "NOAUTH", "wrong key");
    if (own == BEL_HTTP_OPENAPI) return true;
    bool is_allowed = grant->permissions & 1U << bel__commands[call->route->command].permission;
    if (own == BEL_HTTP_METRICS && grant->scope != NULL) is_allowed = false; /* shows all topics */
    return is_allowed || refuse(call, "NOPERM", "the key does not allow this");
}

/* Uses the Idempotency-Key of a POST as the timer's id, so that a retry creates no second timer.
 * The key may be quoted, as a structured field is. */
static void take_retry_key(struct bel_http_call *call, struct bel_view key)
{
    const char *text = key.data;
    if (!call->route->is_create || text == NULL) return;
    if (call->route->command != BEL_COMMAND_SCHEDULE) return; /* a job has its id in the body */
    bool is_quoted = key.bytes >= 2 && text[0] == '"' && text[key.bytes - 1] == '"';
    struct bel_view id = {is_quoted ? text + 1 : text, is_quoted ? key.bytes - 2 : key.bytes};
    size_t place = 0;
    while (call->captures[place].name != NULL) {
        place++;
    }
    assert(place < BEL_HTTP_CAPTURES_MAX);
    call->captures[place] = (struct bel_http_capture){"id}", id};
}

/* Returns whether the query names a timer whose id is empty; no other id is in a query. */
static bool has_empty_id(const struct bel_http_head *head)
{
    size_t timers = sizeof "/timers" - 1, bytes = head->path.bytes;
    const char *path = head->path.data;
    return bel__view_is(head->query, "id=") && bytes > timers &&
           memcmp(path + bytes - timers, "/timers", timers) == 0;
}

static bool find_route(struct bel_http_call *call, const struct bel_http_head *head)
{
    struct bel_view method = head->method;
    char allow[BEL_HTTP_ALLOW_BYTES];
    call->route = bel__http_route(method, call->texts, has_empty_id(head), call->captures, allow);
    if (call->route != NULL) return true;
    char text[BEL_HTTP_ALLOW_BYTES + 3 * BEL_HTTP_SHOWN_BYTES];
    int shown = (int)(method.bytes < BEL_HTTP_SHOWN_BYTES ? method.bytes : BEL_HTTP_SHOWN_BYTES);
    if (allow[0] == 0) {
        (void)snprintf(text, sizeof text, "no such resource: %.*s", BEL_HTTP_SHOWN_BYTES,
                       call->texts);
        return refuse(call, "NOTFOUND", text);
    }
    (void)snprintf(text, sizeof text, "%.*s does not support %.*s; use %s", BEL_HTTP_SHOWN_BYTES,
                   call->texts, shown, (const char *)method.data, allow);
    (void)refuse_as(call, 405, "ERR", text);
    memcpy(call->page.allow, allow, sizeof allow);
    return false;
}

/* Copies what is needed of the head when it is gone: the path, and after it the Idempotency-Key,
 * which `*key` then points to. */
static bool keep_texts(struct bel_http_call *call, const struct bel_http_head *head,
                       struct bel_view *key)
{
    struct bel_view path = head->path, given = head->headers.retry_key;
    call->texts = malloc(path.bytes + given.bytes + 2);
    if (call->texts == NULL) return refuse(call, "FULL", "out of memory: try again");
    memcpy(call->texts, path.data, path.bytes);
    call->texts[path.bytes] = 0;
    char *copy = call->texts + path.bytes + 1;
    if (given.bytes > 0) memcpy(copy, given.data, given.bytes);
    *key = (struct bel_view){given.data != NULL ? copy : NULL, given.bytes};
    return true;
}

static bool submits_job(const struct bel_http_call *call)
{
    return call->route != NULL && call->route->own == BEL_HTTP_COMMAND &&
           call->route->command == BEL_COMMAND_JOB_SUBMIT;
}

const char *bel__http_call_large_code(const struct bel_http_call *call)
{
    return submits_job(call) ? "FULL" : "BADARG";
}

static bool check_head(struct bel_http_call *call, const struct bel_http_head *head)
{
    const struct bel_http_headers *headers = &head->headers;
    struct bel_view key = {0};
    if (!keep_texts(call, head, &key) || !check_origin(call, headers)) return false;
    if (!find_route(call, head) || !check_key(call, headers->authorization)) return false;
    if (headers->is_encoded) {
        return refuse_as(call, 415, "BADARG", "Content-Encoding: only identity is supported");
    }
    if (submits_job(call) && call->service->job_bytes_max > 0) {
        bel__buffer_init(&call->body, call->service->job_bytes_max + 1);
    }
    if (headers->length > call->body.count_max) {
        return refuse_as(call, 413, bel__http_call_large_code(call), "the body is too large");
    }
    take_retry_key(call, key);
    return true;
}

bool bel__http_call_admit(struct bel_http_call *call, const struct bel_http_head *head)
{
    if (check_head(call, head)) {
        if (head->query.bytes > 0 && !has_empty_id(head)) bel__http_query(call, head->query);
        return true;
    }
    if (head->headers.is_chunked || head->headers.length > 0) call->is_last = true;
    return false;
}
