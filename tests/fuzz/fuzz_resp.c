/* SPDX-License-Identifier: MIT */

/*
 * One byte selects the limits, one is the size of the pieces, and the rest is the input of a
 * client. Read at once or in pieces, it must give the same requests, with all arguments inside the
 * input; and no more may be buffered than the limits allow.
 */
#include "session/resp.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 2,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct bel_resp_limits choices[] = {
    {.arguments_max = 10, .argument_bytes_max = 64, .request_bytes_max = 1024},
    {.arguments_max = 20, .argument_bytes_max = 100, .request_bytes_max = 120, .is_lenient = true},
    {.arguments_max = 1000,
     .argument_bytes_max = 1 << 20,
     .request_bytes_max = 2 << 20,
     .is_lenient = true},
};

/* FNV-1a of the requests, in order. */
struct digest {
    uint64_t hash;
};

static void mix(struct digest *digest, const void *data, size_t bytes)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < bytes; i++) {
        digest->hash = (digest->hash ^ byte[i]) * UINT64_C(1099511628211);
    }
}

static void mix_event(struct digest *digest, enum bel_resp_event event,
                      const struct bel_resp_parser *parser, const struct bel_buffer *in)
{
    mix(digest, &event, sizeof event);
    if (event == BEL_RESP_BROKEN) mix(digest, parser->why, strlen(parser->why));
    if (event != BEL_RESP_REQUEST) return;
    const uint8_t *start = bel__buffer_data(in);
    mix(digest, &parser->count, sizeof parser->count);
    assert(parser->count <= parser->limits.arguments_max);
    for (size_t i = 0; i < parser->count; i++) {
        struct bel_view argument = bel__resp_argument(parser, start, i);
        const uint8_t *at = argument.data;
        assert(at >= start && argument.bytes <= in->count - (size_t)(at - start));
        mix(digest, argument.data, argument.bytes);
        mix(digest, &argument.bytes, sizeof argument.bytes);
    }
}

/* Parses all requests. Returns false if the input is invalid. */
static bool drain(struct bel_resp_parser *parser, struct bel_buffer *in, struct digest *digest)
{
    for (;;) {
        size_t used;
        enum bel_resp_event event = bel__resp_parse(parser, bel__buffer_data(in), in->count, &used);
        assert(used <= in->count);
        if (event != BEL_RESP_MORE) mix_event(digest, event, parser, in);
        if (event == BEL_RESP_BROKEN) return false;
        bel__buffer_consume(in, used);
        if (event == BEL_RESP_MORE) return true;
        assert(used > 0);
    }
}

static uint64_t hear(const struct bel_resp_limits *limits, const uint8_t *data, size_t size,
                     size_t piece)
{
    struct bel_resp_parser parser;
    struct bel_buffer in;
    struct digest digest = {UINT64_C(14695981039346656037)};
    bool is_well = true;
    bel__resp_init(&parser, limits);
    bel__buffer_init(&in, size + 1);
    for (size_t at = 0; at < size && is_well; at += piece) {
        if (piece > size - at) piece = size - at;
        if (bel__buffer_append(&in, data + at, piece) != 0) abort();
        is_well = drain(&parser, &in, &digest);
        if (is_well) assert(in.count <= limits->request_bytes_max + 32 || data[at] != '*');
    }
    bel__buffer_finish(&in);
    bel__resp_finish(&parser);
    return digest.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= HEAD) return 0;
    const struct bel_resp_limits *limits = &choices[data[0] % 3];
    size_t piece = 1 + data[1] % 50;
    uint64_t whole = hear(limits, data + HEAD, size - HEAD, size - HEAD);
    assert(hear(limits, data + HEAD, size - HEAD, piece) == whole);
    (void)whole;
    return 0;
}
