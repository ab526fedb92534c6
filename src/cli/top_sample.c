/* SPDX-License-Identifier: MIT */

/* Takes a sample: one INFO with the sections that are needed. */
#include "cli/top.h"

#include "belfry/clock.h"
#include "core/units.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 18,
    AGE_MS_MAX = 2500, /* of the numbers of the topics */
    TRIES_MAX = 100,   /* INFOs until the topics are counted */
    TRY_PAUSE_MS = 5,  /* between two */
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

/* --- lines that begin alike --- */

/* A line of INFO without its beginning: a name and a value. */
struct line {
    struct bel_view name, value;
};

/* Sets `*out` to the next line that begins with `prefix`, and moves `*rest` after it. The name ends
 * before the last colon. Returns false if there is none. */
static bool next_line(struct bel_view *rest, const char *prefix, struct line *out)
{
    size_t prefix_bytes = strlen(prefix);
    while (rest->bytes > 0) {
        const char *at = rest->data;
        const char *end = memchr(at, '\n', rest->bytes);
        size_t bytes = end != NULL ? (size_t)(end - at) : rest->bytes;
        size_t used = end != NULL ? bytes + 1 : bytes;
        *rest = (struct bel_view){at + used, rest->bytes - used};
        if (bytes <= prefix_bytes || memcmp(at, prefix, prefix_bytes) != 0) continue;
        const char *colon = memrchr(at, ':', bytes);
        if (colon == NULL || colon < at + prefix_bytes) continue;
        out->name = (struct bel_view){at + prefix_bytes, (size_t)(colon - at) - prefix_bytes};
        out->value = (struct bel_view){colon + 1, bytes - (size_t)(colon + 1 - at)};
        return true;
    }
    return false;
}

static uint64_t read_number(struct bel_view text)
{
    const char *at = text.data;
    uint64_t number = 0;
    for (size_t i = 0; i < text.bytes && i < DIGITS_MAX && at[i] >= '0' && at[i] <= '9'; i++) {
        number = number * 10 + (uint64_t)(at[i] - '0');
    }
    return number;
}

/* Lines of "lateness_le_50_us:12". */
static void read_buckets(struct bel_view info, struct top_sample *out)
{
    struct line line;
    out->buckets_count = 0;
    while (out->buckets_count < TOP_BUCKETS_MAX && next_line(&info, "lateness_le_", &line)) {
        bool is_over = line.name.bytes > 0 && *(const char *)line.name.data == 'i';
        out->buckets[out->buckets_count++] = (struct top_bucket){
            .us = is_over ? TOP_OVER : read_number(line.name), .count = read_number(line.value)};
    }
}

/* --- topics --- */

static int64_t read_part(struct bel_view value, const char *name)
{
    const char *at = value.data, *end = at + value.bytes;
    size_t bytes = strlen(name);
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        if ((size_t)(stop - at) > bytes && memcmp(at, name, bytes) == 0) {
            at += bytes;
            return (int64_t)read_number((struct bel_view){at, (size_t)(stop - at)});
        }
        at = stop + 1;
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct top_topic *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* Lines of "topic_mail:paused=0,scheduled=5,ready=0,...". */
static void read_topics(struct bel_view info, struct top_sample *out)
{
    struct line line;
    out->topics_count = 0;
    out->topics_left = (size_t)read_count(info, "topics_left_out:");
    while (next_line(&info, "topic_", &line)) {
        if (out->topics_count == TOP_TOPICS_MAX) {
            out->topics_left++;
            continue;
        }
        struct top_topic *topic = &out->topics[out->topics_count++];
        copy_text(line.name, topic->name, TOP_NAME_BYTES);
        topic->is_paused = read_part(line.value, "paused=") != 0;
        topic->scheduled = read_part(line.value, "scheduled=");
        topic->ready = read_part(line.value, "ready=");
        topic->leased = read_part(line.value, "leased=");
        topic->dead = read_part(line.value, "dead=");
        topic->oldest_ms = read_part(line.value, "oldest_age_ms=");
    }
    qsort(out->topics, out->topics_count, sizeof out->topics[0], compare_names);
}

/* --- the sample --- */

static int refuse(const struct bel_value *reply, struct bel_why *problem)
{
    copy_text(reply->text, problem->text, sizeof problem->text);
    return BEL_EINVAL;
}

static int ask(struct bel_client *client, struct top_sample *out, struct bel_why *problem)
{
    const struct bel_view words[] = {BEL_VIEW("INFO"),  BEL_VIEW("server"),   BEL_VIEW("clients"),
                                     BEL_VIEW("stats"), BEL_VIEW("lateness"), BEL_VIEW("store"),
                                     BEL_VIEW("topics")};
    const struct bel_value *reply;
    const char *end;
    int err = bel_client_call(client, words, sizeof words / sizeof words[0], &reply);
    if (err) return err;
    if (reply->type == BEL_VALUE_ERROR) return refuse(reply, problem);
    read_info(reply->text, out);
    read_buckets(reply->text, out);
    read_topics(reply->text, out);
    out->at_ns = bel_clock_mono(bel_clock_system()).ns;
    bool is_counted = find_value(reply->text, "topics_age_ms:", &end) != NULL;
    uint64_t age_ns = read_count(reply->text, "topics_age_ms:") * NS_PER_MS;
    out->counts_ns = is_counted && out->at_ns > age_ns ? out->at_ns - age_ns : 0;
    return 0;
}

int bel__top_sample(struct bel_client *client, bool is_fresh, struct top_sample *out,
                    struct bel_why *problem)
{
    uint64_t start_ns = bel_clock_mono(bel_clock_system()).ns;
    uint64_t age_ns_max = is_fresh ? 0 : (uint64_t)AGE_MS_MAX * NS_PER_MS;
    problem->text[0] = '\0';
    int err = ask(client, out, problem);
    for (int i = 1; i < TRIES_MAX && err == 0 && out->counts_ns + age_ns_max < start_ns; i++) {
        (void)poll(NULL, 0, TRY_PAUSE_MS);
        err = ask(client, out, problem);
    }
    return err;
}

uint64_t bel__top_lateness(const struct top_sample *before, const struct top_sample *now,
                           unsigned thousandths)
{
    size_t last = now->buckets_count;
    bool has_before = before->at_ns != 0 && before->buckets_count == last && last > 0 &&
                      before->buckets[last - 1].count <= now->buckets[last - 1].count;
    if (last == 0) return TOP_NONE;
    uint64_t all = now->buckets[last - 1].count;
    if (has_before) all -= before->buckets[last - 1].count;
    if (all == 0) return TOP_NONE;
    for (size_t i = 0; i < last; i++) {
        uint64_t below = now->buckets[i].count - (has_before ? before->buckets[i].count : 0);
        if (below * 1000 >= all * thousandths) return now->buckets[i].us;
    }
    return TOP_OVER;
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
    if (before->counts_ns == 0 || now->counts_ns <= before->counts_ns) return 0;
    double seconds = (double)(now->counts_ns - before->counts_ns) / NS_PER_S;
    const struct top_topic *was = bsearch(topic, before->topics, before->topics_count,
                                          sizeof before->topics[0], compare_names);
    int64_t grown = unfinished(topic) - (was != NULL ? unfinished(was) : 0);
    return (double)grown / seconds;
}
