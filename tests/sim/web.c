/* SPDX-License-Identifier: MIT */

/*
 * Orders over HTTP, without a socket: a command becomes a method, a path and a query or a JSON
 * body, as a client would write them, by the tables of commands and routes; these become a command
 * again, which must be the same, and which the engine gets. The JSON of its answer must be valid
 * and have the ids, tokens and payloads that the engine gave.
 *
 *     order --words--> method, path, body --http/arguments.c--> command --> engine
 *     checked <--jansson-- JSON <--http/page.c-- reply
 */
#include "world.h"

#include "../session/spoken.h"
#include "core/base64.h"
#include "core/parse.h"
#include "http/call.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 64,
    TEXT_BYTES = 2048,
    BODY_BYTES_MAX = 1 << 20,
    READ_BYTES = 1 << 10, /* of an answer at a time */
};

struct web {
    struct bel_http_call call;
    struct bel_service service;
    char path[TEXT_BYTES];
};

/* A request that is being written. */
struct writing {
    struct bel_view words[WORDS_MAX];
    size_t count, at; /* of words, and the next */
    const struct bel_command_entry *entry;
    struct bel_view topic, id, token; /* which belong into the path, if it has a place for them */
    json_t *fields;
};

/* --- the words of a command --- */

static size_t read_length(const char **at)
{
    size_t length = strtoul(*at + 1, NULL, 10);
    *at = strstr(*at, "\r\n") + 2;
    return length;
}

static bool read_words(struct writing *writing, const struct bel_buffer *said)
{
    const char *at = (const char *)bel__buffer_data(said);
    writing->count = read_length(&at);
    if (writing->count > WORDS_MAX) return false;
    for (size_t i = 0; i < writing->count; i++) {
        size_t bytes = read_length(&at);
        writing->words[i] = (struct bel_view){at, bytes};
        at += bytes + 2;
    }
    return true;
}

static bool is_option(const struct bel_argument *argument)
{
    return isupper((unsigned char)argument->name[0]) != 0;
}

/* The option that the next word names; NULL if it names none. */
static const struct bel_argument *next_option(const struct writing *writing)
{
    if (writing->at == writing->count) return NULL;
    for (size_t i = 0; i < writing->entry->arguments_count; i++) {
        const struct bel_argument *argument = &writing->entry->arguments[i];
        if (!is_option(argument)) continue;
        if (heard_same(writing->words[writing->at], view_of(argument->name))) return argument;
    }
    return NULL;
}

/* --- fields --- */

static bool is_text(struct bel_view bytes)
{
    for (size_t i = 0; i < bytes.bytes; i++) {
        if (((const unsigned char *)bytes.data)[i] - 1U >= 0x7e) return false;
    }
    return true;
}

static void set(json_t *fields, const char *name, json_t *value)
{
    char lower[64];
    size_t i = 0;
    for (; name[i] != 0 && i + 1 < sizeof lower; i++) {
        lower[i] = name[i];
        if (lower[i] >= 'A' && lower[i] <= 'Z') lower[i] |= 0x20;
    }
    lower[i] = 0;
    if (json_object_set_new(fields, lower, value) != 0) abort();
}

static json_t *text_of(struct bel_view text)
{
    json_t *json = json_stringn_nocheck(text.bytes > 0 ? text.data : "", text.bytes);
    if (json == NULL) abort();
    return json;
}

/* A number, also in a body. One beyond 63 bits is written as a text, which is refused. */
static json_t *number_of(struct bel_view text)
{
    int64_t number;
    if (bel__parse_i64(text.data, text.bytes, 0, INT64_MAX, &number) != 0) return text_of(text);
    json_t *json = json_integer(number);
    if (json == NULL) abort();
    return json;
}

static void set_payload(json_t *fields, struct bel_view bytes)
{
    if (is_text(bytes)) {
        set(fields, "payload", text_of(bytes));
        return;
    }
    char *encoded = bel__base64_encode(bytes);
    if (encoded == NULL) abort();
    set(fields, "payload_base64", text_of(view_of(encoded)));
    free(encoded);
}

static void take_value(struct writing *writing, const struct bel_argument *argument)
{
    struct bel_view word = writing->words[writing->at++];
    if (strcasecmp(argument->name, "topic") == 0 && !is_option(argument)) {
        writing->topic = word;
    } else if (strcasecmp(argument->name, "id") == 0) {
        writing->id = word;
    } else if (strcasecmp(argument->name, "token") == 0) {
        writing->token = word;
    } else if (strcmp(argument->name, "payload") == 0) {
        set_payload(writing->fields, word);
    } else if (argument->type == BEL_ARGUMENT_NUMBER) {
        set(writing->fields, argument->name, number_of(word));
    } else {
        set(writing->fields, argument->name, text_of(word));
    }
}

static void take_pair(struct writing *writing, json_t *fields)
{
    char name[64];
    struct bel_view word = writing->words[writing->at];
    (void)snprintf(name, sizeof name, "%.*s", (int)word.bytes, (const char *)word.data);
    set(fields, name, text_of(writing->words[writing->at + 1]));
    writing->at += 2;
}

/* Arguments with a place. False if there are several for one place, which HTTP has none for. */
static bool take_places(struct writing *writing)
{
    for (size_t i = 0; i < writing->entry->arguments_count; i++) {
        const struct bel_argument *argument = &writing->entry->arguments[i];
        if (is_option(argument)) continue;
        if (argument->type == BEL_ARGUMENT_PAIR) {
            while (writing->at < writing->count) {
                take_pair(writing, writing->fields);
            }
        } else if (writing->at < writing->count && next_option(writing) == NULL) {
            take_value(writing, argument);
        }
    }
    return writing->at == writing->count || next_option(writing) != NULL;
}

/* Returns whether HTTP does without an option: it always gives the reason of EXPLAIN. */
static bool is_implied(const struct writing *writing, const struct bel_argument *option)
{
    return strcmp(writing->entry->name, "EXPLAIN") == 0 && strcmp(option->name, "REASON") == 0;
}

static void take_options(struct writing *writing)
{
    const struct bel_argument *option;
    while ((option = next_option(writing)) != NULL) {
        writing->at++;
        if (is_implied(writing, option)) continue;
        if (option->type == BEL_ARGUMENT_FLAG) {
            set(writing->fields, option->name, json_true());
        } else if (option->type == BEL_ARGUMENT_PAIR) {
            json_t *headers = json_object_get(writing->fields, "headers");
            if (headers == NULL) set(writing->fields, "headers", json_object());
            take_pair(writing, json_object_get(writing->fields, "headers"));
        } else {
            take_value(writing, option);
        }
    }
}

/* --- the path and the query --- */

static void append(char out[TEXT_BYTES], struct bel_view text, bool is_escaped)
{
    size_t used = strlen(out);
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes && used + 4 < TEXT_BYTES; i++) {
        bool is_plain = isalnum(bytes[i]) != 0 || strchr("-._", bytes[i]) != NULL;
        used += (size_t)(is_plain || !is_escaped
                             ? snprintf(out + used, TEXT_BYTES - used, "%c", bytes[i])
                             : snprintf(out + used, TEXT_BYTES - used, "%%%02X", bytes[i]));
    }
}

/* What a {name} of a path stands for. */
static struct bel_view *place_of(struct writing *writing, const char *name)
{
    if (strncmp(name, "{topic}", 7) == 0) return &writing->topic;
    return strncmp(name, "{id}", 4) == 0 ? &writing->id : &writing->token;
}

/* Writes the path of a route. False if a part of it is not known. */
static bool write_path(struct writing *writing, const char *pattern, char out[TEXT_BYTES])
{
    out[0] = 0;
    while (*pattern != 0) {
        size_t bytes = strcspn(pattern, "{");
        append(out, (struct bel_view){pattern, bytes}, false);
        pattern += bytes;
        if (*pattern == 0) break;
        struct bel_view *place = place_of(writing, pattern);
        if (place->bytes == 0) return false;
        append(out, *place, true);
        pattern += strcspn(pattern, "}") + 1;
    }
    return true;
}

/* The route with the longest path that can be written; NULL if there is none. */
static const struct bel_http_route *write_route(struct writing *writing, char out[TEXT_BYTES])
{
    const struct bel_http_route *found = NULL;
    for (size_t i = 0; i < bel__http_routes_count; i++) {
        const struct bel_http_route *route = &bel__http_routes[i];
        char path[TEXT_BYTES];
        if (route->own != BEL_HTTP_COMMAND) continue;
        if (&bel__commands[route->command] != writing->entry) continue;
        if (!write_path(writing, route->path, path)) continue;
        if (found != NULL && strlen(path) < strlen(out)) continue;
        found = route;
        memcpy(out, path, sizeof path);
    }
    if (found != NULL && strstr(found->path, "{id}") == NULL && writing->id.bytes > 0 &&
        !heard_same(writing->id, view_of("*"))) {
        set(writing->fields, "id", text_of(writing->id));
    }
    return found;
}

static void write_query(const json_t *fields, char out[TEXT_BYTES])
{
    const char *name;
    json_t *value;
    out[0] = 0;
    json_object_foreach((json_t *)(uintptr_t)fields, name, value)
    {
        char digits[BEL_PRINT_BYTES_MAX];
        struct bel_view text = {json_string_value(value), json_string_length(value)};
        if (json_is_integer(value)) {
            text.data = digits;
            text.bytes = bel__print_i64(digits, json_integer_value(value));
        }
        if (out[0] != 0) append(out, view_of("&"), false);
        append(out, view_of(name), true);
        append(out, view_of("="), false);
        append(out, text, true);
    }
}

/* --- asking --- */

static bool is_same(const struct bel_command *one, const struct bel_buffer *said)
{
    struct bel_buffer again;
    bel__buffer_init(&again, BODY_BYTES_MAX);
    spoken_command(one, &again);
    bool is = again.count == said->count &&
              memcmp(bel__buffer_data(&again), bel__buffer_data(said), said->count) == 0;
    bel__buffer_finish(&again);
    return is;
}

/* Gives the query or the body to the call. */
static void send_fields(struct web *web, const json_t *fields)
{
    char query[TEXT_BYTES];
    if (strcmp(web->call.route->method, "GET") == 0) {
        write_query(fields, query);
        if (query[0] != 0) bel__http_query(&web->call, view_of(query));
        return;
    }
    char *body = json_dumps(fields, 0);
    if (body == NULL || bel__buffer_append(&web->call.body, body, strlen(body)) != 0) abort();
    free(body);
}

static bool write_request(struct web *web, struct writing *writing)
{
    char allow[BEL_HTTP_ALLOW_BYTES];
    writing->entry = bel__command_find(writing->words[0]);
    writing->at = 1;
    if (writing->entry == NULL || !take_places(writing)) return false;
    take_options(writing);
    const struct bel_http_route *route = write_route(writing, web->path);
    if (route == NULL) return false;
    struct bel_view method = {route->method, strlen(route->method)};
    web->call.route = bel__http_route(method, web->path, false, web->call.captures, allow);
    if (web->call.route != route) return false;
    send_fields(web, writing->fields);
    return true;
}

static void check_command(const struct order *order, struct web *web, const struct bel_buffer *said)
{
    struct bel_why why = {0};
    int err = bel__http_words(&web->call, &web->call.request.command, &why);
    if (err) {
        world_fail(order->world, "web", "#%" PRIu64 " %s is refused over HTTP: %s", order->number,
                   bel_verb_name(order->requests[ENGINE_SIDE].command.verb), why.text);
    } else if (!is_same(&web->call.request.command, said)) {
        world_fail(order->world, "web", "#%" PRIu64 " %s becomes another command over HTTP",
                   order->number, bel_verb_name(order->requests[ENGINE_SIDE].command.verb));
    }
}

struct bel_request *web_ask(struct order *order)
{
    if (order_is_job(order)) return NULL; /* the body is its text: tests/server has these */
    struct writing writing = {.fields = json_object()};
    struct web *web = calloc(1, sizeof *web);
    struct bel_buffer said;
    if (web == NULL || writing.fields == NULL) abort();
    web->service = (struct bel_service){.zones = world_zones(), .now = &order->world->now};
    web->call.service = &web->service;
    bel__buffer_init(&web->call.body, BODY_BYTES_MAX);
    bel__buffer_init(&said, BODY_BYTES_MAX);
    spoken_command(&order->requests[ENGINE_SIDE].command, &said);
    order->web = web;
    bool is_sent = read_words(&writing, &said) && write_request(web, &writing);
    if (is_sent) check_command(order, web, &said);
    bel__buffer_finish(&said);
    json_decref(writing.fields);
    if (is_sent && !order->world->has_failed) return &web->call.request;
    web_free(web);
    order->web = NULL;
    return NULL;
}

void web_free(struct web *web)
{
    if (web == NULL) return;
    bel__http_words_finish(&web->call);
    bel__buffer_finish(&web->call.body);
    free(web);
}

/* --- the answer --- */

/* What is expected in the JSON, in this order. */
struct expected {
    const struct bel_reply *reply;
    enum bel_verb verb;
    size_t ids, tokens, payloads; /* found so far */
    bool is_wrong;
};

static size_t count_of(const struct expected *expected)
{
    if (expected->verb == BEL_VERB_SCHEDULE) return 1;
    if (expected->verb == BEL_VERB_CLAIM) return expected->reply->deliveries.count;
    bool has_timers = expected->verb == BEL_VERB_LIST || expected->verb == BEL_VERB_GET;
    return has_timers ? expected->reply->timers.count : 0;
}

static struct bel_view id_at(const struct expected *expected, size_t index)
{
    if (expected->verb == BEL_VERB_SCHEDULE) return expected->reply->id;
    if (expected->verb == BEL_VERB_CLAIM) return expected->reply->deliveries.items[index].id;
    return expected->reply->timers.items[index].id;
}

static struct bel_view payload_at(const struct expected *expected, size_t index)
{
    if (expected->verb == BEL_VERB_CLAIM) return expected->reply->deliveries.items[index].payload;
    return expected->reply->timers.items[index].payload;
}

static bool is_payload(const json_t *value, bool is_base64, struct bel_view want)
{
    struct bel_view text = {json_string_value(value), json_string_length(value)};
    if (!is_base64) return json_is_string(value) && heard_same(text, want);
    size_t bytes = text.bytes;
    char *decoded = malloc(bytes + 1);
    if (decoded == NULL) abort();
    bool is = bel__base64_decode(text, decoded, &bytes) &&
              heard_same((struct bel_view){decoded, bytes}, want);
    free(decoded);
    return is;
}

static bool is_counted(enum bel_verb verb)
{
    return verb == BEL_VERB_CANCEL || verb == BEL_VERB_RESCHEDULE || verb == BEL_VERB_ACK ||
           verb == BEL_VERB_RELEASE || verb == BEL_VERB_REVIVE || verb == BEL_VERB_PURGE;
}

static void see(struct expected *expected, const char *name, const json_t *value)
{
    struct bel_view text = {json_string_value(value), json_string_length(value)};
    size_t count = count_of(expected);
    bool is_base64 = strcmp(name, "payload_base64") == 0;
    bool is_right = true;
    if (strcmp(name, "id") == 0) {
        size_t i = expected->ids++;
        is_right = i < count && heard_same(text, id_at(expected, i));
    } else if (strcmp(name, "token") == 0) {
        size_t i = expected->tokens++;
        is_right = expected->verb == BEL_VERB_CLAIM && i < count &&
                   heard_same(text, expected->reply->deliveries.items[i].token);
    } else if (is_base64 || strcmp(name, "payload") == 0) {
        size_t i = expected->payloads++;
        is_right = i < count && is_payload(value, is_base64, payload_at(expected, i));
    } else if (strcmp(name, "count") == 0 && is_counted(expected->verb)) {
        is_right = json_integer_value(value) == (json_int_t)expected->reply->count;
    }
    if (!is_right) expected->is_wrong = true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as an answer */
static void walk(struct expected *expected, json_t *json)
{
    const char *name;
    json_t *value;
    size_t i;
    json_array_foreach(json, i, value)
    {
        walk(expected, value);
    }
    json_object_foreach(json, name, value)
    {
        bool is_deep = json_is_object(value) || json_is_array(value);
        if (!is_deep) see(expected, name, value);
        if (is_deep && strcmp(name, "headers") != 0) walk(expected, value);
    }
}

/* Whether an answer says that there is nothing of this name, which is an error over HTTP. */
static bool is_missing(enum bel_verb verb, const struct bel_reply *reply)
{
    if (verb == BEL_VERB_GET) return reply->timers.count == 0;
    bool names_one = verb == BEL_VERB_CANCEL || verb == BEL_VERB_RESCHEDULE || verb == BEL_VERB_ACK;
    return names_one && reply->count == 0;
}

static json_t *read_page(struct bel_http_page *page)
{
    struct bel_buffer text;
    bel__buffer_init(&text, BODY_BYTES_MAX << 4);
    while (!bel__json_is_over(&page->body)) {
        (void)bel__json_read(&page->body, &text, READ_BYTES);
    }
    json_t *json =
        json_loadb((const char *)bel__buffer_data(&text), text.count, JSON_ALLOW_NUL, NULL);
    bel__buffer_finish(&text);
    return json;
}

static void check_page(const struct order *order, struct bel_http_page *page,
                       const struct bel_reply *reply)
{
    struct expected expected = {.reply = reply, .verb = order->web->call.request.command.verb};
    bool is_problem = reply->err != 0 || is_missing(expected.verb, reply);
    const char *verb = bel_verb_name(expected.verb);
    if (page->is_problem != is_problem || page->status / 100 != (is_problem ? 4U : 2U)) {
        bool is_fault = is_problem && page->status / 100 == 5;
        if (!is_fault) {
            world_fail(order->world, "web", "#%" PRIu64 " %s is answered with status %u",
                       order->number, verb, page->status);
        }
    }
    if (page->type == NULL || is_problem) return;
    json_t *json = read_page(page);
    if (json != NULL) walk(&expected, json);
    size_t count = count_of(&expected);
    bool has_all =
        expected.ids == count && (expected.verb != BEL_VERB_CLAIM || expected.tokens == count);
    if (json == NULL || expected.is_wrong || !has_all) {
        world_fail(order->world, "web", "#%" PRIu64 " %s: the JSON is not what the engine said",
                   order->number, verb);
    }
    json_decref(json);
}

void web_told(const struct order *order, const struct bel_reply *reply)
{
    const struct bel_http_call *call = &order->web->call;
    struct bel_http_question question = {.command = &call->request.command,
                                         .topic = call->captures[0].text,
                                         .is_create = call->route->is_create};
    struct bel_http_page page = bel__http_page(&question, reply);
    if (page.is_lost) {
        world_fail(order->world, "web", "#%" PRIu64 ": there is no page", order->number);
    } else {
        check_page(order, &page, reply);
    }
    bel__http_page_finish(&page);
}
