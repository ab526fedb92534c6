/* SPDX-License-Identifier: MIT */

/*
 * The request parser has a fast path for complete, plain requests, and a state machine for all
 * others. Both get the same input here: numbers spelled in every valid and invalid way, one by one;
 * and streams of requests with such numbers. A stream that arrives byte by byte never uses the fast
 * path, one that arrives at once nearly always does; the results must be the same.
 */
#include "property.h"
#include "session/resp.c" /* NOLINT(bugprone-suspicious-include) */

enum {
    CASES = 40000,
    REQUESTS_MAX = 6,
    ARGUMENTS_MAX = 30, /* more than fit without memory, twice over */
    STREAM_BYTES = 1 << 16,
    HEARD_BYTES = 1 << 17,
};

static const struct bel_resp_limits choices[] = {
    {.arguments_max = 10, .argument_bytes_max = 24, .request_bytes_max = 200},
    {.arguments_max = 20, .argument_bytes_max = 40, .request_bytes_max = 300, .is_lenient = true},
    {.arguments_max = 100,
     .argument_bytes_max = 4000,
     .request_bytes_max = 1 << 20,
     .is_lenient = true},
};

struct stream {
    char text[STREAM_BYTES];
    size_t bytes;
};

static void put(struct stream *stream, const void *data, size_t bytes)
{
    CHECK(stream->bytes + bytes <= sizeof stream->text);
    if (bytes > 0) memcpy(stream->text + stream->bytes, data, bytes);
    stream->bytes += bytes;
}

static void put_text(struct stream *stream, const char *text)
{
    put(stream, text, strlen(text));
}

/* --- one head --- */

/* Writes a number with its line; valid, or once in `odd` invalid in some way. */
static void put_head(struct stream *stream, char mark, size_t number, uint64_t odd,
                     uint64_t *random_state)
{
    static const char *const befores[] = {"-",
                                          "+",
                                          " ",
                                          "0",
                                          "00000",
                                          "0000000",
                                          "00000000",
                                          "0000000000000000000",
                                          "00000000000000000000000",
                                          "x"};
    static const char *const ends[] = {
        "\n",   "\r", "\r\r\n", " \r\n",       "x\r\n",
        "\n\r", "",   "00\r\n", "0000000\r\n", "99999999999999999999\r\n"};
    char digits[BEL_PRINT_BYTES_MAX];
    uint64_t kind = random_below(random_state, odd);
    put(stream, &mark, 1);
    if (kind == 0) put_text(stream, befores[random_below(random_state, 10)]);
    if (kind != 1) put(stream, digits, bel__print_u64(digits, number));
    put_text(stream, kind == 2 ? ends[random_below(random_state, 10)] : "\r\n");
}

/* A number that the fast path reads is read by the state machine too, with the same value. */
static void both_ways_read_the_same_number(uint64_t *random_state)
{
    static struct stream stream;
    struct bel_resp_parser parser;
    stream.bytes = 0;
    put_head(&stream, '$', (size_t)random_magnitude(random_state), 4, random_state);
    put_text(&stream, "tail");
    for (size_t bytes = 1; bytes <= stream.bytes; bytes++) {
        size_t number = 0;
        int64_t want = 0;
        const char *end = read_plain(stream.text + 1, stream.text + bytes, &number);
        if (end == NULL) continue;
        bel__resp_init(&parser, &choices[0]);
        CHECK(read_any_head(&parser, stream.text, bytes, &want) == 0);
        CHECK_EQ(number, (uint64_t)want);
        CHECK_EQ(parser.position, (size_t)(end - stream.text));
    }
}

/* The fast path is for up to eight digits. */
static void what_is_plain_is_read_quickly(void)
{
    for (size_t digits = 1; digits <= 9; digits++) {
        char text[] = "999999999\r\n";
        const char *start = text + 9 - digits, *end = text + sizeof text - 1;
        size_t number = 0;
        bool is_read = read_plain(start, end, &number) == end;
        CHECK(is_read == (digits <= 8));
        CHECK(read_plain(start, end - 1, &number) == NULL);
    }
}

/* --- streams --- */

static void put_argument(struct stream *stream, uint64_t odd, uint64_t *random_state)
{
    static const char bytes[64] = "*3\r\n$1\r\nanything at all, and what looks like a request";
    size_t size = random_below(random_state, 8) == 0 ? random_below(random_state, sizeof bytes)
                                                     : random_below(random_state, 12);
    put_head(stream, random_below(random_state, odd * 4) == 0 ? ':' : '$', size, odd * 4,
             random_state);
    put(stream, bytes, size);
    put_text(stream, random_below(random_state, odd * 8) == 0 ? "\n\r" : "\r\n");
}

static void put_request(struct stream *stream, uint64_t odd, uint64_t *random_state)
{
    size_t count = random_below(random_state, 1 + random_below(random_state, ARGUMENTS_MAX));
    if (random_below(random_state, 10) == 0) {
        put_text(stream, "PING \"a line\"\r\n");
        return;
    }
    put_head(stream, '*', count, odd, random_state);
    for (size_t i = 0; i < count; i++) {
        put_argument(stream, odd, random_state);
    }
}

struct heard {
    char text[HEARD_BYTES];
    size_t bytes;
};

static void hear(struct heard *heard, const void *data, size_t bytes)
{
    CHECK(heard->bytes + bytes <= sizeof heard->text);
    if (bytes > 0) memcpy(heard->text + heard->bytes, data, bytes);
    heard->bytes += bytes;
}

static void hear_event(struct heard *heard, enum bel_resp_event event,
                       const struct bel_resp_parser *parser, const void *data)
{
    hear(heard, &event, sizeof event);
    if (event != BEL_RESP_REQUEST) {
        hear(heard, parser->why, strlen(parser->why));
        return;
    }
    for (size_t i = 0; i < parser->count; i++) {
        struct bel_view argument = bel__resp_argument(parser, data, i);
        hear(heard, &argument.bytes, sizeof argument.bytes);
        hear(heard, argument.data, argument.bytes);
    }
}

/* Parses the available bytes. Returns false if the connection is broken. */
static bool drain(struct bel_resp_parser *parser, struct bel_buffer *in, struct heard *heard)
{
    for (;;) {
        size_t used;
        enum bel_resp_event event = bel__resp_parse(parser, bel__buffer_data(in), in->count, &used);
        CHECK(used <= in->count);
        if (event != BEL_RESP_MORE) hear_event(heard, event, parser, bel__buffer_data(in));
        if (event == BEL_RESP_BROKEN) return false;
        bel__buffer_consume(in, used);
        if (event == BEL_RESP_MORE) return true;
    }
}

/* Parses a stream that arrives in pieces with a given range of sizes. */
static void hear_stream(const struct stream *stream, const struct bel_resp_limits *limits,
                        size_t piece_min, size_t piece_max, uint64_t *random_state,
                        struct heard *heard)
{
    struct bel_resp_parser parser;
    struct bel_buffer in;
    bool is_well = true;
    heard->bytes = 0;
    bel__resp_init(&parser, limits);
    bel__buffer_init(&in, STREAM_BYTES);
    for (size_t at = 0; at < stream->bytes && is_well;) {
        size_t piece = piece_min + random_below(random_state, piece_max - piece_min + 1);
        if (piece > stream->bytes - at) piece = stream->bytes - at;
        CHECK(bel__buffer_append(&in, stream->text + at, piece) == 0);
        is_well = drain(&parser, &in, heard);
        at += piece;
    }
    bel__buffer_finish(&in);
    bel__resp_finish(&parser);
}

static void however_it_comes_the_same_is_heard(uint64_t *random_state)
{
    static const size_t pieces_max[] = {1, 3, 40};
    static struct stream stream;
    static struct heard whole, pieces;
    const struct bel_resp_limits *limits = &choices[random_below(random_state, 3)];
    uint64_t odd = random_below(random_state, 2) == 0 ? 20 : 1000;
    stream.bytes = 0;
    for (uint64_t left = 1 + random_below(random_state, REQUESTS_MAX); left > 0; left--) {
        put_request(&stream, odd, random_state);
    }
    hear_stream(&stream, limits, stream.bytes, stream.bytes, random_state, &whole);
    for (unsigned i = 0; i < 3; i++) {
        hear_stream(&stream, limits, 1, pieces_max[i], random_state, &pieces);
        CHECK_EQ(whole.bytes, pieces.bytes);
        CHECK(memcmp(whole.text, pieces.text, whole.bytes) == 0);
    }
}

static void run_case(uint64_t seed)
{
    uint64_t random_state = seed;
    both_ways_read_the_same_number(&random_state);
    however_it_comes_the_same_is_heard(&random_state);
}

int main(int argc, char **argv)
{
    what_is_plain_is_read_quickly();
    return run_cases(argc, argv, CASES, run_case, "streams");
}
