/* SPDX-License-Identifier: MIT */

/*
 * Redis, by the usual recipe: a sorted set of pending timers by due time, one of leased timers by
 * end of lease, and a hash of payloads.
 *
 *     schedule  MULTI, ZADD, HSET, EXEC, in one write
 *     claim     one call of a script, which moves due timers and returns ids and payloads
 *     ack       ZREM and HDEL, for any number of timers, in one write
 *     cancel    MULTI, ZREM, HDEL, EXEC
 *
 * The recipe leaves out, and would cost more with: expiry of leases, counting of attempts, and
 * protection against one id being pending and leased at once.
 */
#include "serve.h"

enum {
    SHA_BYTES = 40,
    MS = 1000 * 1000,
};

static const char script[] =
    "local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])\n"
    "if #ids == 0 then return ids end\n"
    "redis.call('ZREM', KEYS[1], unpack(ids))\n"
    "local leases = {}\n"
    "for i = 1, #ids do\n"
    "  leases[2 * i - 1] = ARGV[3]\n"
    "  leases[2 * i] = ids[i]\n"
    "end\n"
    "redis.call('ZADD', KEYS[2], unpack(leases))\n"
    "return {ids, redis.call('HMGET', KEYS[3], unpack(ids))}\n";

static char script_sha[SHA_BYTES];

static void put_setup(struct serve_buffer *out)
{
    SERVE_PUT(out, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n");
    serve_put_bulk(out, script, sizeof script - 1);
}

static void put_schedule(struct serve_buffer *out, const struct serve_timer *timer)
{
    SERVE_PUT(out, "*1\r\n$5\r\nMULTI\r\n*4\r\n$4\r\nZADD\r\n$7\r\npending\r\n$13\r\n");
    serve_put_digits(out, (uint64_t)timer->due_ns / MS, 13);
    SERVE_PUT(out, "\r\n$20\r\n");
    serve_put(out, timer->id, SERVE_ID_BYTES);
    SERVE_PUT(out, "\r\n*4\r\n$4\r\nHSET\r\n$7\r\npayload\r\n$20\r\n");
    serve_put(out, timer->id, SERVE_ID_BYTES);
    SERVE_PUT(out, "\r\n$100\r\n");
    serve_put_payload(out, timer->due_ns);
    SERVE_PUT(out, "\r\n*1\r\n$4\r\nEXEC\r\n");
}

static void put_claim(struct serve_buffer *out, uint32_t count, uint32_t wait_s)
{
    uint64_t now_ms = (uint64_t)serve_wall_ns() / MS;
    (void)wait_s;
    SERVE_PUT(out, "*9\r\n$7\r\nEVALSHA\r\n$40\r\n");
    serve_put(out, script_sha, SHA_BYTES);
    SERVE_PUT(out, "\r\n$1\r\n3\r\n$7\r\npending\r\n$6\r\nleased\r\n$7\r\npayload\r\n$13\r\n");
    serve_put_digits(out, now_ms, 13);
    SERVE_PUT(out, "\r\n");
    serve_put_bulk_number(out, count);
    SERVE_PUT(out, "$13\r\n");
    serve_put_digits(out, now_ms + SERVE_LEASE_S * UINT64_C(1000), 13);
    SERVE_PUT(out, "\r\n");
}

static void put_ids(struct serve_buffer *out, const struct serve_delivery *deliveries,
                    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        SERVE_PUT(out, "$20\r\n");
        serve_put(out, deliveries[i].token, SERVE_ID_BYTES);
        SERVE_PUT(out, "\r\n");
    }
}

static void put_ack(struct serve_buffer *out, const struct serve_delivery *deliveries,
                    uint32_t count)
{
    serve_put_array(out, 2 + (uint64_t)count);
    SERVE_PUT(out, "$4\r\nZREM\r\n$6\r\nleased\r\n");
    put_ids(out, deliveries, count);
    serve_put_array(out, 2 + (uint64_t)count);
    SERVE_PUT(out, "$4\r\nHDEL\r\n$7\r\npayload\r\n");
    put_ids(out, deliveries, count);
}

static void put_cancel(struct serve_buffer *out, const char *id, size_t bytes)
{
    SERVE_PUT(out, "*1\r\n$5\r\nMULTI\r\n*3\r\n$4\r\nZREM\r\n$7\r\npending\r\n");
    serve_put_bulk(out, id, bytes);
    SERVE_PUT(out, "*3\r\n$4\r\nHDEL\r\n$7\r\npayload\r\n");
    serve_put_bulk(out, id, bytes);
    SERVE_PUT(out, "*1\r\n$4\r\nEXEC\r\n");
}

/* Reads `{ids, payloads}`, or an empty array. */
static bool read_deliveries(struct serve_reader *reader, struct serve_answer *out)
{
    struct serve_piece head, piece;
    if (!serve_read_piece(reader, &head)) return false;
    out->is_refused = serve_is_refusal(&head);
    if (out->is_refused || head.number == 0) return true;
    if (!serve_read_piece(reader, &head)) return false;
    for (int64_t i = 0; i < head.number; i++) {
        if (!serve_read_piece(reader, &piece)) return false;
        out->deliveries[i] = (struct serve_delivery){piece.text, NULL, piece.bytes};
    }
    if (!serve_read_piece(reader, &head)) return false;
    for (int64_t i = 0; i < head.number; i++) {
        if (!serve_read_piece(reader, &piece)) return false;
        out->deliveries[i].payload = piece.text;
    }
    out->count = (uint32_t)head.number;
    return true;
}

/* Reads an integer from a reply, after skipping `before` values, and skips `behind` after it. */
static bool read_count(struct serve_reader *reader, unsigned before, unsigned behind,
                       struct serve_answer *out)
{
    struct serve_piece piece;
    if (!serve_skip(reader, before) || !serve_read_piece(reader, &piece)) return false;
    if (serve_is_refusal(&piece)) bench_fail("the server is full");
    if (piece.type == '*') {
        behind = (unsigned)piece.number - 1;
        if (!serve_read_piece(reader, &piece)) return false;
    }
    out->count = (uint32_t)piece.number;
    return serve_skip(reader, behind);
}

static bool read_sha(struct serve_reader *reader, struct serve_answer *out)
{
    struct serve_piece piece;
    if (!serve_read_piece(reader, &piece)) return false;
    out->is_refused = serve_is_refusal(&piece);
    if (!out->is_refused) memcpy(script_sha, piece.text, SHA_BYTES);
    return true;
}

static bool read_kind(struct serve_reader *reader, enum serve_kind kind, struct serve_answer *out)
{
    switch (kind) {
    case SERVE_SETUP:
        return read_sha(reader, out);
    case SERVE_SCHEDULE:
        return serve_skip(reader, 4); /* OK, QUEUED, QUEUED and the reply of EXEC */
    case SERVE_CLAIM:
        return read_deliveries(reader, out);
    case SERVE_ACK:
        return read_count(reader, 0, 1, out);
    default:
        return read_count(reader, 3, 0, out);
    }
}

static size_t read(const char *data, size_t bytes, const struct serve_request *request,
                   struct serve_answer *out)
{
    struct serve_reader reader = {data, data + bytes};
    return read_kind(&reader, request->kind, out) ? (size_t)(reader.at - data) : 0;
}

const struct serve_protocol serve_redis = {
    .name = "redis",
    .has_own_ids = true,
    .does_poll = true,
    .workers = 1,
    .batch = 1000,
    .put_setup = put_setup,
    .put_schedule = put_schedule,
    .put_claim = put_claim,
    .put_ack = put_ack,
    .put_cancel = put_cancel,
    .put_noise = serve_put_echo,
    .read = read,
};
