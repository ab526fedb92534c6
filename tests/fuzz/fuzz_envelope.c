/* SPDX-License-Identifier: MIT */

/*
 * Any value as an envelope. It can always be read: texts of headers are UTF-8, the body is a part
 * of the value or what its JSON says. What was read can be written, and is then read as the same.
 */
#include "redis/envelope.h"

#include "core/utf8.h"
#include "core/view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_headers(const struct bel_envelope *envelope, size_t size)
{
    assert(envelope->headers_count <= size);
    for (size_t i = 0; i < envelope->headers_count; i++) {
        assert(bel__utf8_is_text(envelope->headers[i].name));
        assert(bel__utf8_is_text(envelope->headers[i].value));
    }
}

static void check_again(const struct bel_envelope *read, struct bel_arena *arena)
{
    struct bel_envelope made = {.body = read->body}, again;
    if (bel__envelope_arrange(&made, BEL_VIEW("c"), read->headers, read->headers_count, arena)) {
        return; /* a text of JSON may be too long for a header */
    }
    size_t bytes = bel__envelope_bytes(&made);
    uint8_t *out = malloc(bytes);
    assert(out != NULL);
    bel__envelope_write(&made, out);
    int err = bel__envelope_read((struct bel_view){out, bytes}, arena, &again);
    assert(err == 0);
    (void)err;
    assert(bel__view_equal(again.body, read->body));
    assert(again.headers_count == made.headers_count);
    for (size_t i = 0; i < made.headers_count; i++) {
        assert(bel__view_equal(again.headers[i].name, made.headers[i].name));
        assert(bel__view_equal(again.headers[i].value, made.headers[i].value));
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bel_arena arena = {0};
    struct bel_envelope envelope;
    uint8_t *value = malloc(size + 1);
    assert(value != NULL);
    if (size > 0) memcpy(value, data, size);
    int err = bel__envelope_read((struct bel_view){value, size}, &arena, &envelope);
    assert(err == 0);
    (void)err;
    assert(envelope.body.bytes <= size);
    check_headers(&envelope, size);
    check_again(&envelope, &arena);
    bel__arena_finish(&arena);
    free(value);
    return 0;
}
