/* SPDX-License-Identifier: MIT */

/*
 * Claims in topics of the layout faststream. Nobody announces what the package has scheduled, so
 * parked claims poll: after 50 ms, then after twice as long each time, up to 5 s, and half to one
 * and a half times that, so that nodes do not poll together. They also look at the first due that
 * they have seen, and after errors: after 1 s, 2 s ... 30 s.
 */
#include "redis/faststream.h"

#include "core/view.h"

#include <assert.h>
#include <string.h>

enum {
    DELIVERY_FIELDS = 4,
    JITTER_PARTS = 1024,
    FAILED_MS = 1000,
    FAILED_MAX_MS = 30000,
    FAILED_DOUBLINGS = 5,
};

int bel__faststream_read(struct bel_operation *operation, struct bel_view id, struct bel_view value,
                         struct bel_faststream_content *out)
{
    struct bel_envelope envelope;
    struct bel_arena *arena = &operation->arena;
    int err = bel__envelope_read(value, arena, &envelope);
    if (err) return err;
    struct bel_header *headers =
        bel__arena_take(arena, (envelope.headers_count + 1) * sizeof *headers);
    if (headers == NULL) return BEL_ENOMEM;
    *out = (struct bel_faststream_content){envelope.body, id, headers, 0};
    for (size_t i = 0; i < envelope.headers_count; i++) {
        if (bel__view_is(envelope.headers[i].name, "correlation_id")) {
            out->correlation = envelope.headers[i].value;
        } else {
            headers[out->headers_count++] = envelope.headers[i];
        }
    }
    return 0;
}

static int make_token(struct bel_operation *operation, const uint8_t *secret, size_t index,
                      struct bel_delivery *out)
{
    struct bel_faststream_token token = {.topic_bytes = out->topic.bytes};
    char *text = bel__arena_take(&operation->arena, BEL_TOKEN_BYTES_MAX);
    if (text == NULL) return BEL_ENOMEM;
    static_assert(BEL_FASTSTREAM_SECRET_BYTES == BEL_TOKEN_SECRET_BYTES + 2, "secret and index");
    memcpy(token.secret, secret, BEL_TOKEN_SECRET_BYTES);
    token.secret[BEL_TOKEN_SECRET_BYTES] = (uint8_t)(index >> 8);
    token.secret[BEL_TOKEN_SECRET_BYTES + 1] = (uint8_t)index;
    memcpy(token.topic, out->topic.data, out->topic.bytes);
    out->token = (struct bel_view){text, bel__faststream_token_print(&token, text)};
    return 0;
}

int bel__faststream_delivery(struct bel_operation *operation, struct bel_view topic,
                             const uint8_t secret[BEL_TOKEN_SECRET_BYTES], size_t index,
                             const struct bel_value *item, struct bel_delivery *out)
{
    struct bel_faststream_content content;
    if (item->type != BEL_VALUE_LIST || item->count != DELIVERY_FIELDS) return BEL_ECORRUPT;
    const struct bel_value *fields = item->items;
    if (fields[0].type != BEL_VALUE_TEXT || fields[1].type != BEL_VALUE_NUMBER ||
        fields[2].type != BEL_VALUE_TEXT || fields[3].type != BEL_VALUE_NUMBER) {
        return BEL_ECORRUPT;
    }
    int err = bel__faststream_read(operation, fields[0].text, fields[2].text, &content);
    if (err) return err;
    *out = (struct bel_delivery){.topic = topic, .id = fields[0].text, .attempt = 1};
    out->payload = content.body;
    out->correlation = content.correlation;
    out->headers = content.headers;
    out->headers_count = content.headers_count;
    out->due.ms = fields[1].number;
    out->lease_ms = (uint64_t)fields[3].number;
    return make_token(operation, secret, index, out);
}

/* Returns a duration times 0.5 to 1.5. Without entropy it stays as it is. */
static uint64_t jitter(struct bel_redis *node, uint64_t ms)
{
    uint64_t word = JITTER_PARTS / 2;
    if (bel__entropy_u64(node->entropy, &word) != 0) return ms;
    return ms / 2 + ms * (word % (JITTER_PARTS + 1)) / JITTER_PARTS;
}

static uint64_t delay_after_failure(const struct bel_redis_topic *topic)
{
    uint32_t doublings = topic->failed_polls - 1;
    uint64_t ms = (uint64_t)FAILED_MS
                  << (doublings < FAILED_DOUBLINGS ? doublings : FAILED_DOUBLINGS);
    return ms < FAILED_MAX_MS ? ms : FAILED_MAX_MS;
}

static uint64_t delay_after_poll(struct bel_redis *node, const struct bel_redis_topic *topic,
                                 uint64_t most_ms)
{
    uint64_t ms = jitter(node, topic->poll_ms);
    return ms < most_ms ? ms : most_ms;
}

void bel__faststream_polled(struct bel_redis *node, struct bel_redis_topic *topic, int err,
                            bool found)
{
    if (topic->layout == NULL) return;
    const struct bel_layout_settings *settings = &topic->layout->settings;
    bool is_another = topic->polled_in != node->turns; /* claims of a turn are one poll */
    int64_t now = bel__partition_now(node, topic->partitions[0]);
    topic->polled_in = node->turns;
    if (err) {
        if (is_another) topic->failed_polls++;
        bel__partition_expect(node, topic->partitions[0],
                              now + (int64_t)delay_after_failure(topic));
        return;
    }
    topic->failed_polls = 0;
    if (found) {
        topic->poll_ms = settings->poll_min_ms;
    } else if (is_another) {
        uint64_t doubled = topic->poll_ms * 2;
        topic->poll_ms = doubled < settings->poll_max_ms ? doubled : settings->poll_max_ms;
    }
    int64_t next = now + (int64_t)delay_after_poll(node, topic, settings->poll_max_ms);
    if (topic->first_ms > now && topic->first_ms < next) next = topic->first_ms;
    bel__partition_expect(node, topic->partitions[0], next);
}
