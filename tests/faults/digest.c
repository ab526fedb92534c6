/* SPDX-License-Identifier: MIT */

/* Prints one line per field of a reply. Long values are printed as a checksum and a length. */
#include "digest.h"

#include "../check.h"

#include <stdarg.h>
#include <string.h>

enum {
    SHORT_BYTES = 60,
};

void text_clear(struct text *text)
{
    text->count = 0;
    if (text->bytes != NULL) text->bytes[0] = 0;
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

bool text_is_same(const struct text *one, const struct text *other)
{
    return one->count == other->count &&
           (one->count == 0 || memcmp(one->bytes, other->bytes, one->count) == 0);
}

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    int bytes = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    CHECK(bytes >= 0 && (size_t)bytes < sizeof line);
    if (text->count + (size_t)bytes + 1 > text->room) {
        text->room = 2 * text->room + (size_t)bytes + 4096;
        text->bytes = realloc(text->bytes, text->room);
        CHECK(text->bytes != NULL);
    }
    memcpy(text->bytes + text->count, line, (size_t)bytes + 1);
    text->count += (size_t)bytes;
}

static void put_view(struct text *text, const char *name, struct bel_view view)
{
    uint64_t sum = 5381;
    if (view.bytes == 0) return;
    if (view.bytes <= SHORT_BYTES) {
        put(text, " %s=%.*s", name, (int)view.bytes, (const char *)view.data);
        return;
    }
    for (size_t i = 0; i < view.bytes; i++) {
        sum = sum * 33 + ((const uint8_t *)view.data)[i];
    }
    put(text, " %s=%zu:%" PRIx64, name, view.bytes, sum);
}

static void put_number(struct text *text, const char *name, uint64_t number)
{
    if (number != 0) put(text, " %s=%" PRIu64, name, number);
}

/* Prints a time, or a value that depends on one. */
static void put_time(struct text *text, const char *name, uint64_t number)
{
    if (!text->is_coarse) put_number(text, name, number);
}

static void put_headers(struct text *text, const struct bel_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_view(text, "header", headers[i].name);
        put_view(text, "is", headers[i].value);
    }
}

static void put_plan(struct text *text, const struct bel_timer *timer)
{
    put_view(text, "rule", timer->plan.rule);
    put_view(text, "plan", timer->plan_id);
    put_time(text, "nominal", (uint64_t)timer->nominal.ms);
    put_number(text, "next", timer->has_next);
    put_number(text, "made", timer->made);
    put_number(text, "skipped", timer->skipped);
    put_number(text, "missed", timer->missed);
}

static void put_timer(struct text *text, const struct bel_timer *timer)
{
    put(text, "timer %s", bel_state_name(timer->state));
    put_view(text, "id", timer->id);
    put_view(text, "payload", timer->payload);
    put_view(text, "group", timer->group);
    put_time(text, "due", (uint64_t)timer->due.ms);
    put_time(text, "created", (uint64_t)timer->created.ms);
    put_time(text, "finished", (uint64_t)timer->finished.ms);
    put_time(text, "expires", (uint64_t)timer->expires.ms);
    put_number(text, "attempts", timer->attempts);
    put_number(text, "crashes", timer->crashes);
    put_time(text, "left", timer->lease_left_ms);
    put_view(text, "worker", timer->worker);
    put_view(text, "reason", timer->reason);
    put_view(text, "result", timer->result);
    put_headers(text, timer->headers, timer->headers_count);
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        put_number(text, "outcome", 1 + (uint64_t)timer->outcomes[i].kind);
        put_view(text, "why", timer->outcomes[i].reason);
        put_time(text, "at", (uint64_t)timer->outcomes[i].at.ms);
    }
    put_plan(text, timer);
    put(text, "\n");
}

static void put_delivery(struct text *text, const struct bel_delivery *delivery)
{
    put(text, "delivery");
    put_view(text, "topic", delivery->topic);
    put_view(text, "id", delivery->id);
    put_view(text, "payload", delivery->payload);
    put_number(text, "attempt", delivery->attempt);
    put_number(text, "lease", delivery->lease_ms);
    put_headers(text, delivery->headers, delivery->headers_count);
    put(text, "\n");
}

static void put_topic(struct text *text, const struct bel_topic *topic)
{
    put(text, "topic");
    put_view(text, "name", topic->name);
    put_number(text, "waiting", topic->counts[BEL_SCHEDULED] + topic->counts[BEL_READY]);
    for (int i = BEL_LEASED; i < BEL_STATES; i++) {
        put_number(text, bel_state_name((enum bel_state)i), topic->counts[i]);
    }
    put_number(text, "plans", topic->plans);
    put_number(text, "paused", topic->paused);
    for (size_t i = 0; i < topic->settings_count; i++) {
        put_view(text, "set", topic->settings[i].name);
        put_view(text, "to", topic->settings[i].value);
    }
    put(text, "\n");
}

static void put_list(struct text *text, enum bel_verb verb, const struct bel_reply *reply)
{
    if (verb == BEL_VERB_CLAIM) {
        for (size_t i = 0; i < reply->deliveries.count; i++) {
            put_delivery(text, &reply->deliveries.items[i]);
        }
    } else if (verb == BEL_VERB_GET || verb == BEL_VERB_LIST) {
        for (size_t i = 0; i < reply->timers.count; i++) {
            put_timer(text, &reply->timers.items[i]);
        }
    } else if (verb == BEL_VERB_AGENDA) {
        for (size_t i = 0; i < reply->steps.count; i++) {
            put(text, "step %" PRIi64 " %" PRIu64 "\n", reply->steps.items[i].start.ms,
                reply->steps.items[i].count);
        }
    } else {
        for (size_t i = 0; i < reply->names.count; i++) {
            put_view(text, "name", reply->names.items[i]);
            put(text, "\n");
        }
    }
}

void digest_reply(struct text *text, enum bel_verb verb, const struct bel_reply *reply)
{
    if (reply->err != 0) {
        put(text, "error %s\n", bel_error_text(reply->err));
        return;
    }
    switch (verb) {
    case BEL_VERB_SCHEDULE:
        put_view(text, "id", reply->id);
        break;
    case BEL_VERB_FAIL:
        put(text, "verdict %s", bel_state_name(reply->verdict.state));
        break;
    case BEL_VERB_TOPIC:
        put_topic(text, reply->topic);
        break;
    case BEL_VERB_CLAIM:
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
    case BEL_VERB_AGENDA:
    case BEL_VERB_TOPICS:
    case BEL_VERB_EXPLAIN:
        put_list(text, verb, reply);
        break;
    case BEL_VERB_CONFIGURE:
    case BEL_VERB_PAUSE:
    case BEL_VERB_RESUME:
        break;
    default:
        put_number(text, "count", reply->count);
    }
    put(text, "\n");
}
