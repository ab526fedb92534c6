/* SPDX-License-Identifier: MIT */

/*
 * Translates a route, a query and a body into the words of a command:
 *
 *     PUT /v1/topics/mail/timers/a  {"payload": {"to": 1}, "in": "5s", "headers": {"x": "y"}}
 *     SCHEDULE mail {"to":1} ID a HEADER content-type application/json IN 5s HEADER x y
 *
 * A positional argument comes from the path or from the field of its name. Every other field must
 * be an option of the command, in lower case. Words point into the path, the fields, or copies that
 * the call keeps.
 */
#include "http/call.h"

#include "commands/option_names.h"
#include "core/base64.h"
#include "core/parse.h"
#include "core/shorten.h"
#include "core/utf8.h"
#include "http/json_memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double WHOLE_MAX = 9007199254740992.0; /* 2^53: beyond, a double skips integers */

enum {
    WORDS_FIRST = 32,
    SHOWN_MAX = 40,
    PARAMETERS_MAX = 100, /* of a query */
    VALUES_MAX = 20000,   /* of a body, with the names: the library takes up to 0.7 us for each */
    JSON_FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
};

/* --- texts --- */

/* A growing text. */
struct text {
    char *bytes;
    size_t count, capacity;
    bool is_lost;
};

static int write_text(const char *bytes, size_t count, void *context)
{
    struct text *text = context;
    if (text->is_lost) return -1;
    if (count >= text->capacity - text->count) {
        size_t capacity = 2 * text->capacity + count + 1;
        char *larger = realloc(text->bytes, capacity);
        text->is_lost = larger == NULL;
        if (larger == NULL) return -1;
        text->bytes = larger;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->count, bytes, count);
    text->count += count;
    text->bytes[text->count] = 0;
    return 0;
}

/* A text that is being parsed. */
struct parsing {
    struct bel_view text;
    json_error_t *error;
    json_t *json; /* NULL: it is not JSON */
};

static void parse(void *context)
{
    struct parsing *parsing = context;
    parsing->json = json_loadb(parsing->text.data, parsing->text.bytes, JSON_FLAGS, parsing->error);
}

/* Parses JSON. Returns NULL on failure: out of memory if `*is_memory`, otherwise invalid JSON and
 * `*error` says where. */
static json_t *load(struct bel_view text, json_error_t *error, bool *is_memory)
{
    struct parsing parsing = {.text = text, .error = error};
    *is_memory = !bel__json_memory_try(parse, &parsing);
    return *is_memory ? NULL : parsing.json;
}

/* Returns whether a text has more than VALUES_MAX values and names, if it is JSON. Each but the
 * first comes after one of the bytes ',', ':', '[' and '{' outside of strings. */
static bool has_many_values(struct bel_view text)
{
    const char *bytes = text.data;
    size_t count = 1;
    bool is_string = false;
    for (size_t i = 0; i < text.bytes; i++) {
        char c = bytes[i];
        if (c == '"') is_string = !is_string;
        if (is_string) {
            i += c == '\\'; /* and the byte after it */
        } else {
            count += c == ',' || c == ':' || c == '[' || c == '{';
        }
    }
    return count > VALUES_MAX;
}

char *bel__http_dump(const json_t *value, size_t flags)
{
    struct text text = {0};
    int failed = json_dump_callback(value, write_text, &text, flags);
    if (failed != 0 || text.is_lost) {
        free(text.bytes);
        return NULL;
    }
    if (text.bytes != NULL) bel__shorten_numbers(text.bytes);
    return text.bytes;
}

/* --- words --- */

static int refuse_memory(struct bel_why *why)
{
    return bel__refusal(why, "FULL", "out of memory: try again");
}

static int push(struct bel_http_call *call, struct bel_view word, struct bel_why *why)
{
    if (call->words_count == call->words_capacity) {
        size_t capacity = call->words_capacity > 0 ? 2 * call->words_capacity : WORDS_FIRST;
        struct bel_view *words = realloc(call->words, capacity * sizeof *words);
        if (words == NULL) return refuse_memory(why);
        call->words = words;
        call->words_capacity = capacity;
    }
    assert(call->words_count < call->words_capacity);
    call->words[call->words_count++] = word;
    return 0;
}

static int push_text(struct bel_http_call *call, const char *text, struct bel_why *why)
{
    return push(call, (struct bel_view){text, strlen(text)}, why);
}

/* Appends a word that points to a copy, which lives as long as the call. */
static int push_copy(struct bel_http_call *call, const char *text, size_t bytes,
                     struct bel_why *why)
{
    json_t *copy = json_stringn_nocheck(text, bytes);
    assert(call->kept != NULL);
    if (json_array_append_new(call->kept, copy) != 0) return refuse_memory(why);
    return push(call, (struct bel_view){json_string_value(copy), bytes}, why);
}

static bool is_option(const struct bel_argument *argument)
{
    return argument->name[0] >= 'A' && argument->name[0] <= 'Z';
}

/* Returns whether a field has the name of an argument in lower case. */
static bool is_called(const char *field, const char *name)
{
    size_t i = 0;
    for (; field[i] != 0 && name[i] != 0; i++) {
        bool is_large = name[i] >= 'A' && name[i] <= 'Z';
        if (field[i] != (is_large ? (char)(name[i] | 0x20) : name[i])) return false;
    }
    return field[i] == name[i];
}

static const struct bel_view *find_capture(const struct bel_http_call *call, const char *name)
{
    for (size_t i = 0; i < BEL_HTTP_CAPTURES_MAX && call->captures[i].name != NULL; i++) {
        size_t bytes = strcspn(call->captures[i].name, "}");
        char known[16];
        (void)snprintf(known, sizeof known, "%.*s", (int)bytes, call->captures[i].name);
        if (is_called(known, name)) return &call->captures[i].text;
    }
    return NULL;
}

/* --- values --- */

static int push_dump(struct bel_http_call *call, const json_t *value, struct bel_why *why)
{
    char *text = bel__http_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL) return refuse_memory(why);
    int err = push_copy(call, text, strlen(text), why);
    free(text);
    return err;
}

/* Returns whether a number has no fraction: 5 or 5.0. */
static bool is_whole(const json_t *value)
{
    double number = json_real_value(value);
    return json_is_integer(value) || (json_is_real(value) && number >= -WHOLE_MAX &&
                                      number <= WHOLE_MAX && number == (double)(json_int_t)number);
}

static int push_whole(struct bel_http_call *call, const json_t *value, struct bel_why *why)
{
    char text[BEL_PRINT_BYTES_MAX];
    json_int_t number =
        json_is_real(value) ? (json_int_t)json_real_value(value) : json_integer_value(value);
    return push_copy(call, text, bel__print_i64(text, number), why);
}

/* Appends a value: a string, a whole number, or any JSON if it stands for bytes. */
static int push_value(struct bel_http_call *call, const char *name, enum bel_argument_type type,
                      const json_t *value, struct bel_why *why)
{
    bool is_number = type == BEL_ARGUMENT_NUMBER || type == BEL_ARGUMENT_DURATION ||
                     type == BEL_ARGUMENT_TIME || type == BEL_ARGUMENT_PAIR;
    bool is_query = call->query != BEL_HTTP_QUERY_NONE;
    if (json_is_string(value) && (type != BEL_ARGUMENT_NUMBER || is_query)) {
        return push(call, (struct bel_view){json_string_value(value), json_string_length(value)},
                    why);
    }
    if (is_number && is_whole(value)) return push_whole(call, value, why);
    if (type == BEL_ARGUMENT_BYTES) return push_dump(call, value, why);
    return bel__refusal(why, "BADARG", "%.*s: expected %s", SHOWN_MAX, name,
                        type == BEL_ARGUMENT_NUMBER ? "an integer"
                        : is_number                 ? "a string or an integer"
                                                    : "a string");
}

static int push_header(struct bel_http_call *call, const char *name, const json_t *value,
                       struct bel_why *why)
{
    int err = push_text(call, "HEADER", why);
    if (err == 0) err = push_text(call, name, why);
    return err ? err : push_value(call, name, BEL_ARGUMENT_PAIR, value, why);
}

/* Appends HEADER options. An array gives the values of a repeated header. */
static int push_headers(struct bel_http_call *call, json_t *headers, struct bel_why *why)
{
    const char *name;
    json_t *value;
    if (!json_is_object(headers)) {
        return bel__refusal(why, "BADARG", "headers: expected an object of strings");
    }
    json_object_foreach(headers, name, value)
    {
        size_t count = json_is_array(value) ? json_array_size(value) : 1;
        if (count == 0) return bel__refusal(why, "BADARG", "headers: an array must not be empty");
        for (size_t i = 0; i < count; i++) {
            int err = push_header(call, name,
                                  json_is_array(value) ? json_array_get(value, i) : value, why);
            if (err) return err;
        }
    }
    return 0;
}

static int push_base64(struct bel_http_call *call, const json_t *value, struct bel_why *why)
{
    size_t bytes = json_string_length(value);
    if (!json_is_string(value)) {
        return bel__refusal(why, "BADARG", "payload_base64: expected a string");
    }
    call->payload = malloc(bytes + 1);
    if (call->payload == NULL) return refuse_memory(why);
    struct bel_view text = {json_string_value(value), bytes};
    if (!bel__base64_decode(text, call->payload, &bytes)) {
        return bel__refusal(why, "BADARG", "payload_base64: invalid base64");
    }
    return push(call, (struct bel_view){call->payload, bytes}, why);
}

static int push_payload(struct bel_http_call *call, struct bel_why *why)
{
    const json_t *value = json_object_get(call->fields, "payload");
    const json_t *base64 = json_object_get(call->fields, "payload_base64");
    if (value != NULL && base64 != NULL) {
        return bel__refusal(why, "BADARG", "payload and payload_base64 exclude each other");
    }
    if (base64 != NULL) return push_base64(call, base64, why);
    if (value != NULL) return push_value(call, "payload", BEL_ARGUMENT_BYTES, value, why);
    return bel__refusal(why, "BADARG", "payload: required, may be \"\"; or payload_base64");
}

/* Appends the header content-type: application/json if the payload is a JSON value other than a
 * string, unless the request has a content-type. */
static int push_content_type(struct bel_http_call *call, struct bel_why *why)
{
    const json_t *value = json_object_get(call->fields, "payload");
    const json_t *headers = json_object_get(call->fields, "headers");
    if (value == NULL || json_is_string(value)) return 0;
    if (json_object_get(headers, "content-type") != NULL) return 0;
    int err = push_text(call, "HEADER", why);
    if (err == 0) err = push_text(call, "content-type", why);
    return err == 0 ? push_text(call, "application/json", why) : err;
}

/* Appends CONFLICT keep to a POST with an Idempotency-Key, unless the body has a conflict field: a
 * timer that an earlier attempt created stays unchanged. */
static int push_conflict(struct bel_http_call *call, struct bel_why *why)
{
    if (!call->route->is_create || find_capture(call, "ID") == NULL) return 0;
    if (json_object_get(call->fields, "conflict") != NULL) return 0;
    int err = push_text(call, "CONFLICT", why);
    return err == 0 ? push_text(call, "keep", why) : err;
}

/* --- fields --- */

static int push_settings(struct bel_http_call *call, struct bel_why *why)
{
    const char *name;
    json_t *value;
    json_object_foreach(call->fields, name, value)
    {
        int err = push_text(call, name, why);
        if (err == 0) err = push_value(call, name, BEL_ARGUMENT_PAIR, value, why);
        if (err) return err;
    }
    return 0;
}

static int push_position(struct bel_http_call *call, const struct bel_argument *argument,
                         struct bel_why *why)
{
    const struct bel_view *captured = find_capture(call, argument->name);
    const json_t *value = json_object_get(call->fields, argument->name);
    if (captured != NULL) return push(call, *captured, why);
    if (argument->type == BEL_ARGUMENT_PAIR) return push_settings(call, why);
    if (argument->type == BEL_ARGUMENT_BYTES) return push_payload(call, why);
    if (value != NULL) return push_value(call, argument->name, argument->type, value, why);
    if (argument->is_optional) return 0;
    return push_text(call, "*", why); /* REVIVE without an id */
}

/* Appends the value of an argument that can be off: a number or its text, or null. */
static int push_or_off(struct bel_http_call *call, const struct bel_argument *argument,
                       const json_t *value, struct bel_why *why)
{
    bool is_number = argument->type == BEL_ARGUMENT_NUMBER;
    if (json_is_null(value)) return push_text(call, "off", why);
    if (!is_number || json_is_string(value) || is_whole(value)) {
        enum bel_argument_type type = is_number ? BEL_ARGUMENT_PAIR : argument->type;
        return push_value(call, argument->name, type, value, why);
    }
    return bel__refusal(why, "BADARG", "%s: expected an integer, 'off' or null", argument->name);
}

static int push_option(struct bel_http_call *call, const struct bel_argument *option,
                       const json_t *value, struct bel_why *why)
{
    if (option->type == BEL_ARGUMENT_FLAG) {
        if (json_is_false(value)) return 0;
        if (json_is_true(value)) return push_text(call, option->name, why);
        return bel__refusal(why, "BADARG", "%s: expected true or false", option->name);
    }
    int err = push_text(call, option->name, why);
    if (err) return err;
    if (option->may_be_off) return push_or_off(call, option, value, why);
    return push_value(call, option->name, option->type, value, why);
}

/* Finds the argument that a field sets; NULL if the command has none. */
static const struct bel_argument *find_argument(const struct bel_http_call *call, const char *field)
{
    const struct bel_command_entry *entry = &bel__commands[call->route->command];
    if (strcmp(field, "payload_base64") == 0) field = "payload";
    if (bel__http_is_page(call->route) && strcmp(field, "limit") == 0) field = "count";
    for (size_t i = 0; i < entry->arguments_count; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        if (find_capture(call, argument->name) != NULL) continue;
        if (!bel__http_takes(call->route, argument)) continue;
        if (argument->type == BEL_ARGUMENT_PAIR && strcmp(field, "headers") == 0) return argument;
        if (argument->type != BEL_ARGUMENT_PAIR && is_called(field, argument->name)) {
            return argument;
        }
    }
    return NULL;
}

static int push_fields(struct bel_http_call *call, struct bel_why *why)
{
    const char *name;
    json_t *value;
    int err = 0;
    if (call->route->command == BEL_COMMAND_CONFIGURE) return 0;
    json_object_foreach(call->fields, name, value)
    {
        const struct bel_argument *argument = find_argument(call, name);
        if (argument == NULL) {
            err = bel__refusal(why, "BADARG", "unknown field '%.*s'", SHOWN_MAX, name);
        } else if (argument->type == BEL_ARGUMENT_PAIR) {
            err = push_headers(call, value, why);
        } else if (is_option(argument)) {
            err = push_option(call, argument, value, why);
        }
        if (err) return err;
    }
    return 0;
}

static int push_all(struct bel_http_call *call, struct bel_why *why)
{
    const struct bel_command_entry *entry = &bel__commands[call->route->command];
    int err = push_text(call, entry->name, why);
    for (size_t i = 0; i < entry->arguments_count && err == 0; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        const struct bel_view *captured = find_capture(call, argument->name);
        if (!is_option(argument)) {
            err = push_position(call, argument, why);
            call->values_count = call->words_count - 1;
        } else if (captured != NULL) {
            err = push_text(call, argument->name, why);
            if (err == 0) err = push(call, *captured, why);
        }
    }
    if (err == 0 && call->route->command == BEL_COMMAND_SCHEDULE) {
        err = push_content_type(call, why);
        if (err == 0) err = push_conflict(call, why);
    }
    if (err == 0 && call->route->flag != NULL) err = push_text(call, call->route->flag, why);
    return err == 0 ? push_fields(call, why) : err;
}

/* --- the body and the query --- */

/* Adds a parameter, still percent-encoded. */
static enum bel_http_query_state take_parameter(json_t *fields, char *text, size_t bytes)
{
    char *equals = memchr(text, '=', bytes);
    size_t name_bytes = equals != NULL ? (size_t)(equals - text) : bytes;
    char *value = equals != NULL ? equals + 1 : text + bytes;
    size_t value_bytes = bel__http_unescape(value, bytes - (size_t)(value - text));
    name_bytes = bel__http_unescape(text, name_bytes);
    if (name_bytes == SIZE_MAX || value_bytes == SIZE_MAX) return BEL_HTTP_QUERY_WRONG;
    if (!bel__utf8_is_text((struct bel_view){text, name_bytes})) return BEL_HTTP_QUERY_WRONG;
    if (json_object_getn(fields, text, name_bytes) != NULL) return BEL_HTTP_QUERY_TWICE;
    json_t *json = json_stringn_nocheck(value, value_bytes);
    int failed = json_object_setn_new_nocheck(fields, text, name_bytes, json);
    return failed ? BEL_HTTP_QUERY_LOST : BEL_HTTP_QUERY_READ;
}

void bel__http_query(struct bel_http_call *call, struct bel_view query)
{
    char *copy = malloc(query.bytes + 1), *end = copy;
    assert(call->state == BEL_HTTP_CALL_RECEIVING && call->fields == NULL);
    call->fields = json_object();
    call->query = BEL_HTTP_QUERY_READ;
    if (copy == NULL || call->fields == NULL) call->query = BEL_HTTP_QUERY_LOST;
    if (copy != NULL) {
        memcpy(copy, query.data, query.bytes);
        copy[query.bytes] = '&';
        end = copy + query.bytes;
    }
    unsigned count = 0;
    for (char *at = copy; at < end && call->query == BEL_HTTP_QUERY_READ;) {
        size_t bytes = (size_t)((char *)rawmemchr(at, '&') - at);
        (void)snprintf(call->culprit, sizeof call->culprit, "%.*s", (int)bytes, at);
        if (bytes > 0) call->query = take_parameter(call->fields, at, bytes);
        if (++count > PARAMETERS_MAX) call->query = BEL_HTTP_QUERY_MANY;
        at += bytes + 1;
    }
    free(copy);
}

static int read_body(struct bel_http_call *call, struct bel_why *why)
{
    json_error_t error;
    if (call->query != BEL_HTTP_QUERY_NONE) {
        return bel__refusal(why, "BADARG", "unexpected query: send the fields in the body");
    }
    if (call->body.count == 0) {
        call->fields = json_object();
        return call->fields != NULL ? 0 : refuse_memory(why);
    }
    struct bel_view text = {bel__buffer_data(&call->body), call->body.count};
    bool is_memory;
    assert(text.data != NULL);
    /* The library skips a NUL after a number. */
    if (memchr(text.data, 0, text.bytes) != NULL) {
        return bel__refusal(why, "BADARG", "the body is not valid JSON: it has a NUL byte");
    }
    if (has_many_values(text)) {
        return bel__refusal(why, "BADARG",
                            "the body has more than %d values: send a large payload as a string, "
                            "or as payload_base64",
                            VALUES_MAX);
    }
    call->fields = load(text, &error, &is_memory);
    if (is_memory) return refuse_memory(why);
    if (call->fields == NULL) {
        return bel__refusal(why, "BADARG", "the body is not valid JSON: line %d, %.100s",
                            error.line, error.text);
    }
    if (json_is_object(call->fields)) return 0;
    return bel__refusal(why, "BADARG", "the body is not a JSON object");
}

/* Reads the fields: of a GET from the query, of other methods from the body. */
static int read_fields(struct bel_http_call *call, struct bel_why *why)
{
    call->kept = json_array();
    if (call->kept == NULL) return refuse_memory(why);
    if (strcmp(call->route->method, "GET") != 0) return read_body(call, why);
    if (call->body.count > 0) {
        return bel__refusal(why, "BADARG", "unexpected body: send the fields in the query");
    }
    if (call->query == BEL_HTTP_QUERY_LOST) return refuse_memory(why);
    if (call->query == BEL_HTTP_QUERY_WRONG) {
        return bel__refusal(why, "BADARG", "the query has a wrong percent-encoding: '%s'",
                            call->culprit);
    }
    if (call->query == BEL_HTTP_QUERY_MANY) {
        return bel__refusal(why, "BADARG", "the query has more than %d parameters", PARAMETERS_MAX);
    }
    if (call->query == BEL_HTTP_QUERY_TWICE) {
        return bel__refusal(why, "BADARG", "the query has a parameter twice: '%s'; send it once",
                            call->culprit);
    }
    if (call->fields == NULL) call->fields = json_object();
    return call->fields != NULL ? 0 : refuse_memory(why);
}

/* Appends the words of JOB SUBMIT: the body is the text of the job, and is not parsed here. */
static int push_job(struct bel_http_call *call, struct bel_why *why)
{
    const struct bel_view *id = find_capture(call, "ID");
    if (call->query != BEL_HTTP_QUERY_NONE) {
        return bel__refusal(why, "BADARG", "unexpected query: send the job in the body");
    }
    const void *data = bel__buffer_data(&call->body);
    struct bel_view text = {data != NULL ? data : "", call->body.count};
    int err = push_text(call, bel__commands[call->route->command].name, why);
    if (err == 0) err = push(call, text, why);
    if (err != 0 || id == NULL) return err;
    err = push_text(call, "REPLACE", why);
    if (err == 0) err = push_text(call, "ID", why);
    return err == 0 ? push(call, *id, why) : err;
}

static void name_field(const void *route, const struct bel_argument *option,
                       char out[BEL_OPTION_NAME_BYTES])
{
    bel__http_field_name(route, option, out);
}

void bel__http_name_fields(const struct bel_http_route *route, const char *message, char *out,
                           size_t room)
{
    const struct bel_command_entry *entry = &bel__commands[route->command];
    bel__option_names_replace(entry, (struct bel_view){message, strlen(message)}, name_field, route,
                              out, room);
}

static int read_words(struct bel_http_call *call, struct bel_command *out, struct bel_why *why)
{
    struct bel_bound bound;
    bool is_job = call->route->command == BEL_COMMAND_JOB_SUBMIT;
    int err = is_job ? push_job(call, why) : read_fields(call, why);
    if (err == 0 && !is_job) err = push_all(call, why);
    if (err) return err;
    call->pairs = calloc(call->words_count, sizeof(struct bel_header));
    if (call->pairs == NULL) return refuse_memory(why);
    struct bel_words words = {.items = call->words,
                              .count = call->words_count,
                              .pairs = call->pairs,
                              .zones = call->service->zones,
                              .values_count = call->values_count};
    err = bel__bind(&bel__commands[call->route->command], &words, &bound, why);
    return err == 0 ? bel__build(&bound, out, why) : err;
}

int bel__http_words(struct bel_http_call *call, struct bel_command *out, struct bel_why *why)
{
    int err = read_words(call, out, why);
    struct bel_why said = *why;
    if (err) bel__http_name_fields(call->route, said.text, why->text, sizeof why->text);
    return err;
}

void bel__http_words_finish(struct bel_http_call *call)
{
    json_decref(call->fields);
    json_decref(call->kept);
    free(call->payload);
    free(call->pairs);
    free(call->words);
}
