/* SPDX-License-Identifier: MIT */

/*
 * beanstalkd: a timer is a job with a delay of whole seconds, counted from when the server reads
 * it. There are no batches: several claims or deletions are pipelined.
 */
#include "serve.h"

#include <stdio.h>

static void put_schedule(struct serve_buffer *out, const struct serve_timer *timer)
{
    SERVE_PUT(out, "put 128 ");
    serve_put_number(out, (uint64_t)((timer->delay_ns + SERVE_SECOND_NS / 2) / SERVE_SECOND_NS));
    SERVE_PUT(out, " 60 100\r\n");
    serve_put_payload(out, timer->due_ns);
    SERVE_PUT(out, "\r\n");
}

static void put_claim(struct serve_buffer *out, uint32_t count, uint32_t wait_s)
{
    for (uint32_t i = 0; i < count; i++) {
        SERVE_PUT(out, "reserve-with-timeout ");
        serve_put_number(out, wait_s);
        SERVE_PUT(out, "\r\n");
    }
}

static void put_cancel(struct serve_buffer *out, const char *id, size_t bytes)
{
    SERVE_PUT(out, "delete ");
    serve_put(out, id, bytes);
    SERVE_PUT(out, "\r\n");
}

static void put_ack(struct serve_buffer *out, const struct serve_delivery *deliveries,
                    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_cancel(out, deliveries[i].token, deliveries[i].token_bytes);
    }
}

/* Returns a line without its end; NULL if it is incomplete. */
static const char *take_line(struct serve_reader *reader, size_t *bytes)
{
    const char *line = reader->at;
    const char *end = memchr(line, '\n', (size_t)(reader->end - line));
    if (end == NULL) return NULL;
    *bytes = (size_t)(end - line) - 1;
    reader->at = end + 1;
    return line;
}

static bool begins(const char *line, size_t bytes, const char *word)
{
    size_t word_bytes = strlen(word);
    return bytes >= word_bytes && memcmp(line, word, word_bytes) == 0;
}

static void fail(const char *line, size_t bytes)
{
    (void)fprintf(stderr, "%.*s\n", (int)bytes, line);
    bench_fail("the server replied with an error");
}

/* Reads `RESERVED <id> <bytes>` and the payload, or the reply that no job is ready. */
static bool read_delivery(struct serve_reader *reader, struct serve_answer *out)
{
    size_t bytes;
    const char *line = take_line(reader, &bytes);
    if (line == NULL) return false;
    if (begins(line, bytes, "TIMED_OUT")) return true;
    if (!begins(line, bytes, "RESERVED ")) fail(line, bytes);
    if (reader->end - reader->at < SERVE_PAYLOAD_BYTES + 2) return false;
    const char *id = line + 9, *id_end = memchr(id, ' ', bytes - 9);
    if (id_end == NULL) fail(line, bytes);
    out->deliveries[out->count++] = (struct serve_delivery){id, reader->at, (size_t)(id_end - id)};
    reader->at += SERVE_PAYLOAD_BYTES + 2;
    return true;
}

static bool read_deleted(struct serve_reader *reader, struct serve_answer *out)
{
    size_t bytes;
    const char *line = take_line(reader, &bytes);
    if (line == NULL) return false;
    if (begins(line, bytes, "DELETED")) out->count++;
    return true;
}

static bool read_inserted(struct serve_reader *reader, struct serve_answer *out)
{
    size_t bytes;
    const char *line = take_line(reader, &bytes);
    if (line == NULL) return false;
    if (!begins(line, bytes, "INSERTED ")) fail(line, bytes);
    out->id = line + 9;
    out->id_bytes = bytes - 9;
    return true;
}

static bool read_one(struct serve_reader *reader, enum serve_kind kind, struct serve_answer *out)
{
    if (kind == SERVE_SCHEDULE) return read_inserted(reader, out);
    return kind == SERVE_CLAIM ? read_delivery(reader, out) : read_deleted(reader, out);
}

static size_t read(const char *data, size_t bytes, const struct serve_request *request,
                   struct serve_answer *out)
{
    struct serve_reader reader = {data, data + bytes};
    for (uint32_t i = 0; i < request->count; i++) {
        if (!read_one(&reader, request->kind, out)) return 0;
    }
    return (size_t)(reader.at - data);
}

const struct serve_protocol serve_beanstalkd = {
    .name = "beanstalkd",
    .has_made_ids = true,
    .workers = 50,
    .batch = 1,
    .put_schedule = put_schedule,
    .put_claim = put_claim,
    .put_ack = put_ack,
    .put_cancel = put_cancel,
    .read = read,
};
