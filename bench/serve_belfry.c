/* SPDX-License-Identifier: MIT */

/* Belfry: every operation is one command, for one timer or for many. */
#include "serve.h"

#include <stdio.h>

enum {
    FIELDS_MIN = 4, /* of a delivery: token, topic, id, payload; later ones are skipped */
    MS = 1000 * 1000,
};

static void put_schedule(struct serve_buffer *out, const struct serve_timer *timer)
{
    bool is_now = timer->delay_ns == 0;
    serve_put_array(out, 3 + (timer->id != NULL ? 2U : 0) + (is_now ? 0 : 2U));
    SERVE_PUT(out, "$8\r\nSCHEDULE\r\n$5\r\nbench\r\n$100\r\n");
    serve_put_payload(out, timer->due_ns);
    SERVE_PUT(out, "\r\n");
    if (timer->id != NULL) {
        SERVE_PUT(out, "$2\r\nID\r\n$20\r\n");
        serve_put(out, timer->id, SERVE_ID_BYTES);
        SERVE_PUT(out, "\r\n");
    }
    if (!is_now) {
        SERVE_PUT(out, "$2\r\nAT\r\n$13\r\n");
        serve_put_digits(out, (uint64_t)timer->due_ns / MS, 13);
        SERVE_PUT(out, "\r\n");
    }
}

static void put_claim(struct serve_buffer *out, uint32_t count, uint32_t wait_s)
{
    serve_put_array(out, wait_s > 0 ? 8 : 6);
    SERVE_PUT(out, "$5\r\nCLAIM\r\n$5\r\nbench\r\n$5\r\nLEASE\r\n$3\r\n60s\r\n");
    SERVE_PUT(out, "$5\r\nCOUNT\r\n");
    serve_put_bulk_number(out, count);
    if (wait_s == 0) return;
    SERVE_PUT(out, "$4\r\nWAIT\r\n");
    serve_put_bulk_number(out, wait_s * UINT64_C(1000));
}

static void put_ack(struct serve_buffer *out, const struct serve_delivery *deliveries,
                    uint32_t count)
{
    serve_put_array(out, 1 + (uint64_t)count);
    SERVE_PUT(out, "$3\r\nACK\r\n");
    for (uint32_t i = 0; i < count; i++) {
        serve_put_bulk(out, deliveries[i].token, deliveries[i].token_bytes);
    }
}

static void put_cancel(struct serve_buffer *out, const char *id, size_t bytes)
{
    SERVE_PUT(out, "*3\r\n$6\r\nCANCEL\r\n$5\r\nbench\r\n");
    serve_put_bulk(out, id, bytes);
}

static bool read_delivery(struct serve_reader *reader, struct serve_delivery *out)
{
    struct serve_piece head, token, payload;
    if (!serve_read_piece(reader, &head) || !serve_read_piece(reader, &token)) return false;
    if (!serve_skip(reader, 2) || !serve_read_piece(reader, &payload)) return false;
    if (head.number < FIELDS_MIN) bench_fail("invalid delivery in a reply");
    if (!serve_skip(reader, (unsigned)(head.number - FIELDS_MIN))) return false;
    *out = (struct serve_delivery){token.text, payload.text, token.bytes};
    return true;
}

static size_t read(const char *data, size_t bytes, const struct serve_request *request,
                   struct serve_answer *out)
{
    struct serve_reader reader = {data, data + bytes};
    struct serve_piece piece;
    if (!serve_read_piece(&reader, &piece)) return 0;
    out->is_refused = serve_is_refusal(&piece);
    if (request->kind == SERVE_SCHEDULE) {
        out->id = piece.text;
        out->id_bytes = piece.bytes;
    } else if (request->kind == SERVE_CLAIM && !out->is_refused) {
        for (int64_t i = 0; i < piece.number; i++) {
            if (!read_delivery(&reader, &out->deliveries[i])) return 0;
        }
        out->count = (uint32_t)piece.number;
    } else {
        out->count = (uint32_t)piece.number;
    }
    return (size_t)(reader.at - data);
}

const struct serve_protocol serve_belfry = {
    .name = "belfry",
    .has_own_ids = true,
    .has_made_ids = true,
    .workers = 4,
    .batch = 100,
    .put_schedule = put_schedule,
    .put_claim = put_claim,
    .put_ack = put_ack,
    .put_cancel = put_cancel,
    .put_noise = serve_put_echo,
    .read = read,
};
