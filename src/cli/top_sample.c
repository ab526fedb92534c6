/* SPDX-License-Identifier: MIT */

/* Takes a sample: INFO, TOPICS, and a pipelined TOPIC for each topic. */
#include "cli/top.h"

#include "belfry/clock.h"
#include "cli/print.h"
#include "core/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 18,
};

/* --- INFO: lines of name:value --- */

/* Returns the start of the value of a name, and sets its end; NULL if the name is missing. */
static const char *find_value(struct bel_view info, const char *name, const char **out_end)
{
    const char *at = info.data, *end = at + info.bytes;
    size_t bytes = strlen(name);
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (line_end == NULL) line_end = end;
        if ((size_t)(line_end - at) > bytes && memcmp(at, name, bytes) == 0) {
            *out_end = line_end;
            return at + bytes;
        }
        at = line_end + 1;
    }
    return NULL;
}

static uint64_t read_count(struct bel_view info, const char *name)
{
    const char *end, *at = find_value(info, name, &end);
    uint64_t number = 0;
    if (at != NULL && end - at >= 3 && memcmp(at, "inf", 3) == 0) return TOP_OVER;
    for (int i = 0; at != NULL && i < DIGITS_MAX && at < end && *at >= '0' && *at <= '9'; i++) {
        number = number * 10 + (uint64_t)(*at++ - '0');
    }
    return number;
}

/* Copies a text as printable ASCII, with '?' for other bytes, cut to the room. */
static void copy_text(struct bel_view text, char *out, size_t room)
{
    const unsigned char *bytes = text.data;
    size_t used = 0;
    for (size_t i = 0; i < text.bytes && used + 1 < room; i++) {
        if (bytes[i] == '\r') continue;
        bool is_shown = bytes[i] >= ' ' && bytes[i] < 0x7f;
        out[used++] = (char)(is_shown ? bytes[i] : '?');
    }
    out[used] = '\0';
}

static void read_text(struct bel_view info, const char *name, char out[TOP_TEXT_BYTES])
{
    const char *end, *at = find_value(info, name, &end);
    out[0] = '\0';
    if (at == NULL) return;
    copy_text((struct bel_view){at, (size_t)(end - at)}, out, TOP_TEXT_BYTES);
}

static void read_info(struct bel_view info, struct top_sample *out)
{
    static const char *const names[TOP_COUNTS] = {
        [TOP_COMMANDS] = "total_commands_processed:",
        [TOP_ERRORS] = "total_error_replies:",
        [TOP_SCHEDULES] = "cmdstat_schedule:calls=",
        [TOP_CLAIMS] = "cmdstat_claim:calls=",
        [TOP_ACKS] = "cmdstat_ack:calls=",
        [TOP_DELIVERIES] = "deliveries:",
        [TOP_CLIENTS] = "connected_clients:",
        [TOP_UPTIME_S] = "uptime_in_seconds:",
        [TOP_LATENESS_US_P50] = "lateness_us_p50:",
        [TOP_LATENESS_US_P99] = "lateness_us_p99:",
        [TOP_TURN_US_P99] = "turn_us_p99:",
        [TOP_LEASES_LOST] = "leases_lost:",
    };
    for (int i = 0; i < TOP_COUNTS; i++) {
        out->counts[i] = read_count(info, names[i]);
    }
    read_text(info, "belfry_version:", out->version);
    read_text(info, "time:", out->time);
    read_text(info, "store:", out->store);
}

/* --- topics --- */

static void read_topic(const struct bel_value *map, struct top_topic *out)
{
    out->is_paused = bel__cli_topic_number(map, "paused") != 0;
    out->scheduled = bel__cli_topic_number(map, "scheduled");
    out->ready = bel__cli_topic_number(map, "ready");
    out->leased = bel__cli_topic_number(map, "leased");
    out->dead = bel__cli_topic_number(map, "dead");
    out->oldest_ms = bel__cli_topic_number(map, "oldest_age_ms");
}

static int compare_names(const void *a, const void *b)
{
    const struct top_topic *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static void read_names(const struct bel_value *names, struct top_sample *out)
{
    size_t count = names->count < TOP_TOPICS_MAX ? names->count : TOP_TOPICS_MAX;
    out->topics_count = count;
    out->topics_left = names->count - count;
    for (size_t i = 0; i < count; i++) {
        copy_text(names->items[i].text, out->topics[i].name, TOP_NAME_BYTES);
    }
}

static int read_topics(struct bel_client *client, struct top_sample *out)
{
    const struct bel_value *reply;
    int err = 0;
    for (size_t i = 0; i < out->topics_count && err == 0; i++) {
        const char *name = out->topics[i].name;
        const struct bel_view args[] = {BEL_VIEW("TOPIC"), {name, strlen(name)}};
        err = bel_client_send(client, args, 2);
    }
    for (size_t i = 0; i < out->topics_count && err == 0; i++) {
        err = bel_client_receive(client, &reply);
        if (err == 0) read_topic(reply, &out->topics[i]); /* an error reply has no fields: zeros */
    }
    return err;
}

/* --- the sample --- */

static int refuse(const struct bel_value *reply, struct bel_why *problem)
{
    copy_text(reply->text, problem->text, sizeof problem->text);
    return BEL_EINVAL;
}

int bel__top_sample(struct bel_client *client, struct top_sample *out, struct bel_why *problem)
{
    const struct bel_view info = BEL_VIEW("INFO"), topics = BEL_VIEW("TOPICS");
    const struct bel_value *reply;
    problem->text[0] = '\0';
    int err = bel_client_call(client, &info, 1, &reply);
    if (err) return err;
    if (reply->type == BEL_VALUE_ERROR) return refuse(reply, problem);
    read_info(reply->text, out);
    err = bel_client_call(client, &topics, 1, &reply);
    if (err) return err;
    if (reply->type == BEL_VALUE_ERROR) return refuse(reply, problem);
    read_names(reply, out);
    err = read_topics(client, out);
    if (err) return err;
    qsort(out->topics, out->topics_count, sizeof out->topics[0], compare_names);
    out->at_ns = bel_clock_mono(bel_clock_system()).ns;
    return 0;
}

static double seconds_between(const struct top_sample *before, const struct top_sample *now)
{
    if (before->at_ns == 0 || now->at_ns <= before->at_ns) return 0;
    return (double)(now->at_ns - before->at_ns) / NS_PER_S;
}

double bel__top_rate(const struct top_sample *before, const struct top_sample *now,
                     enum top_count count)
{
    double seconds = seconds_between(before, now);
    uint64_t was = before->counts[count], is = now->counts[count];
    return seconds > 0 && is >= was ? (double)(is - was) / seconds : 0; /* less after a restart */
}

static int64_t unfinished(const struct top_topic *topic)
{
    return topic->scheduled + topic->ready + topic->leased;
}

double bel__top_change(const struct top_sample *before, const struct top_sample *now,
                       const struct top_topic *topic)
{
    double seconds = seconds_between(before, now);
    if (seconds <= 0) return 0;
    const struct top_topic *was = bsearch(topic, before->topics, before->topics_count,
                                          sizeof before->topics[0], compare_names);
    int64_t grown = unfinished(topic) - (was != NULL ? unfinished(was) : 0);
    return (double)grown / seconds;
}
