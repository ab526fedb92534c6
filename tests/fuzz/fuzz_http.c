/* SPDX-License-Identifier: MIT */

/*
 * A request without a connection: a byte selects the method, lines follow, and the rest is the
 * body.
 *
 *     0x01 /v1/topics/mail/timers/a \n  in=5s&x=%41 \n  Content-Length: 5 \n  \n  {"in": "5s"}
 *
 * A request that becomes a command must be valid as RESP words, too: they are copied, each into a
 * block of its own, so that reading past the end is noticed, and bound again. An error must have a
 * code and a text that can be printed as JSON.
 */
#include "core/base64.h"
#include "http/call.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BODY_BYTES_MAX = 1 << 20,
    PAGE_BYTES_MAX = 1 << 16,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"};

/* Copies the next line, without its end, up to a NUL. */
static char *take_line(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size > 0 ? memchr(*data, '\n', *size) : NULL;
    size_t bytes = end != NULL ? (size_t)(end - *data) : *size;
    char *line = malloc(bytes + 1);
    if (line == NULL) abort();
    if (bytes > 0) memcpy(line, *data, bytes);
    line[bytes] = 0;
    *data += end != NULL ? bytes + 1 : bytes;
    *size -= end != NULL ? bytes + 1 : bytes;
    return line;
}

static void take_headers(const uint8_t **data, size_t *size)
{
    struct bel_http_headers headers = {0};
    for (char *line = take_line(data, size);; line = take_line(data, size)) {
        char *value = strchr(line, ':');
        size_t bytes = strlen(line);
        if (value != NULL) {
            bel__http_headers_take(&headers, (struct bel_view){line, (size_t)(value - line)},
                                   (struct bel_view){value + 1, strlen(value + 1)});
            assert(headers.fault == NULL || strlen(headers.fault) > 0);
            assert(headers.fault != NULL || !headers.is_chunked || headers.length == 0);
        }
        free(line);
        if (bytes == 0) return;
    }
}

/* Copies the words into blocks of their own and binds them again. */
static void say_again(const struct bel_http_call *call, enum bel_verb verb)
{
    size_t count = call->words_count;
    struct bel_view *copies = calloc(count, sizeof *copies);
    void *pairs = calloc(count, sizeof(struct bel_header));
    if (copies == NULL || pairs == NULL) abort();
    for (size_t i = 0; i < count; i++) {
        char *copy = malloc(call->words[i].bytes);
        if (copy == NULL && call->words[i].bytes > 0) abort();
        if (call->words[i].bytes > 0) memcpy(copy, call->words[i].data, call->words[i].bytes);
        copies[i] = (struct bel_view){copy, call->words[i].bytes};
    }
    struct bel_words words = {
        .items = copies, .count = count, .pairs = pairs, .values_count = call->values_count};
    struct bel_bound bound;
    struct bel_command command;
    struct bel_why why;
    const struct bel_command_entry *entry = bel__command_find(copies[0]);
    assert(entry == &bel__commands[call->route->command]);
    int err = bel__bind(entry, &words, &bound, &why);
    assert(err == 0);
    err = bel__build(&bound, &command, &why);
    assert(err == 0 && command.verb == verb);
    (void)verb;
    for (size_t i = 0; i < count; i++) {
        void *copy = (void *)(uintptr_t)copies[i].data;
        free(copy);
    }
    free(copies);
    free(pairs);
}

static void check_problem(const struct bel_why *why)
{
    struct bel_http_page page = bel__http_problem(why->code, why->text);
    struct bel_buffer text;
    assert(strlen(why->text) > 0 && page.is_problem && page.status >= 400 && page.status < 600);
    bel__buffer_init(&text, PAGE_BYTES_MAX);
    if (bel__buffer_reserve(&text, PAGE_BYTES_MAX) != 0) abort();
    (void)bel__json_read(&page.body, &text, PAGE_BYTES_MAX - BEL_JSON_SLACK);
    assert(bel__json_is_over(&page.body));
    json_t *json = json_loadb((char *)bel__buffer_data(&text), text.count, 0, NULL);
    assert(json != NULL && json_object_get(json, "code") != NULL);
    json_decref(json);
    bel__buffer_finish(&text);
    bel__http_page_finish(&page);
}

static void check_base64(const struct bel_http_call *call)
{
    const char *sent = json_string_value(json_object_get(call->fields, "payload_base64"));
    if (call->payload == NULL || sent == NULL) return;
    size_t bytes = strlen(sent);
    char *copy = strdup(sent);
    if (copy == NULL) abort();
    if (bel__base64_decode((struct bel_view){sent, bytes}, copy, &bytes)) {
        char *again = bel__base64_encode((struct bel_view){copy, bytes});
        assert(again != NULL && strlen(again) == strlen(sent));
        free(again);
    }
    free(copy);
}

static void ask(struct bel_http_call *call, const uint8_t *body, size_t bytes)
{
    struct bel_why why = {.code = "", .text = ""};
    struct bel_command command;
    bel__buffer_init(&call->body, BODY_BYTES_MAX);
    if (bel__buffer_append(&call->body, body, bytes) != 0) return;
    int err = bel__http_words(call, &command, &why);
    assert(err == 0 || err == BEL_EINVAL);
    if (err == 0) {
        say_again(call, command.verb);
    } else {
        check_problem(&why);
    }
    check_base64(call);
    bel__buffer_finish(&call->body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct bel_service service;
    struct bel_http_call call = {.service = &service};
    char allow[BEL_HTTP_ALLOW_BYTES];
    if (size < 1) return 0;
    const char *method = methods[*data++ % (sizeof methods / sizeof methods[0])];
    size--;
    call.texts = take_line(&data, &size);
    char *query = take_line(&data, &size);
    take_headers(&data, &size);
    struct bel_view name = {method, strlen(method)};
    call.route = bel__http_route(name, call.texts, false, call.captures, allow);
    assert(call.route == NULL || allow[0] == 0 || strlen(allow) < sizeof allow);
    if (call.route != NULL && call.route->own == BEL_HTTP_COMMAND) {
        if (query[0] != 0) bel__http_query(&call, (struct bel_view){query, strlen(query)});
        ask(&call, data, size);
    }
    bel__http_words_finish(&call);
    free(query);
    free(call.texts);
    return 0;
}
