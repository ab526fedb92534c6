/* SPDX-License-Identifier: MIT */

/*
 * Bytes as a payload: the checker must agree with the JSON library on which bytes are JSON, and the
 * page that shows the payload must be JSON and contain the payload again, whatever the size of its
 * slices, which the first byte gives.
 */
#include "core/base64.h"
#include "core/utf8.h"
#include "http/json_stream.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLAGS = JSON_DECODE_ANY | JSON_ALLOW_NUL,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns whether the library accepts the bytes. Its numbers have a limit, the checker's do not. It
 * skips a NUL after a number; the checker does not. */
static bool is_json(struct bel_view bytes, bool *is_number)
{
    json_error_t error;
    *is_number = false;
    if (memchr(bytes.data, 0, bytes.bytes) != NULL) return false;
    json_t *json = json_loadb(bytes.data, bytes.bytes, FLAGS, &error);
    *is_number = json == NULL && json_error_code(&error) == json_error_numeric_overflow;
    json_decref(json);
    return json != NULL;
}

static void check_payload(struct bel_view payload, const json_t *page)
{
    const json_t *text = json_object_get(page, "p"), *base64 = json_object_get(page, "p_base64");
    size_t bytes = json_string_length(base64);
    assert((text != NULL) != (base64 != NULL));
    if (base64 == NULL && json_is_string(text)) {
        assert(json_string_length(text) == payload.bytes);
        assert(memcmp(json_string_value(text), payload.data, payload.bytes) == 0);
        return;
    }
    if (base64 == NULL) return;
    char *copy = malloc(bytes + 1);
    if (copy == NULL) abort();
    struct bel_view view = {json_string_value(base64), bytes};
    bool is_right = bel__base64_decode(view, copy, &bytes);
    assert(is_right && bytes == payload.bytes && memcmp(copy, payload.data, bytes) == 0);
    (void)is_right;
    free(copy);
}

static void show(struct bel_view payload, size_t slice, bool may_be_json)
{
    struct bel_json_stream stream;
    struct bel_buffer out;
    json_error_t error;
    bel__json_init(&stream);
    bel__buffer_init(&out, 1 << 26);
    bel__json_open(&stream, '{');
    bel__json_bytes(&stream, BEL_VIEW("p"), payload,
                    may_be_json ? BEL_JSON_PERHAPS : BEL_JSON_NEVER);
    bel__json_close(&stream, '}');
    if (stream.is_lost) abort();
    while (!bel__json_is_over(&stream)) {
        if (bel__buffer_reserve(&out, slice + BEL_JSON_SLACK) != 0) abort();
        size_t work = bel__json_read(&stream, &out, slice);
        assert(work > 0 && work <= slice + BEL_JSON_SLACK);
        (void)work;
    }
    json_t *page = json_loadb((char *)bel__buffer_data(&out), out.count, JSON_ALLOW_NUL, &error);
    bool is_number = page == NULL && json_error_code(&error) == json_error_numeric_overflow;
    bool is_deep = page == NULL && json_error_code(&error) == json_error_stack_overflow;
    assert(page != NULL || (may_be_json && (is_number || is_deep)));
    if (page != NULL && !may_be_json) check_payload(payload, page);
    json_decref(page);
    bel__buffer_finish(&out);
    bel__json_finish(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    size_t slice = (size_t)data[0] + 1;
    struct bel_view payload = {data + 1, size - 1};
    if (bel__utf8_is_text(payload)) {
        struct bel_json_check check = {0};
        bool got = bel__json_check_take(&check, payload) && bel__json_check_end(&check);
        bool is_number, wanted = is_json(payload, &is_number);
        assert(got == wanted || (is_number && got));
        (void)got;
        (void)wanted;
    }
    show(payload, slice, true);
    show(payload, slice, false);
    return 0;
}
