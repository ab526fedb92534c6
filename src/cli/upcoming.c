/* SPDX-License-Identifier: MIT */

/*
 * Each topic lists its first ready and its first scheduled timers in the order of their dues; the
 * earliest of all topics are kept, in a sorted array, and so are the next times of recurring jobs,
 * which have no topic of their own. The server's clock says how long is left.
 */
#include "cli/upcoming.h"

#include "belfry/duration.h"
#include "belfry/plan.h"
#include "cli/names.h"
#include "cli/print.h"
#include "core/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 50, /* topics that are asked at once */
    CURSOR_BYTES = 512,
    SENTENCE_BYTES = 256,
    LEFT_BYTES = 64,
};

struct item {
    int64_t due_ms;
    struct bel_view topic, id; /* in `text`; the topic of a recurring job is empty */
    char *text;                /* owned: the topic, the id and the sentence */
    const char *sentence;      /* of a plan; otherwise empty */
};

struct upcoming {
    struct item *items; /* sorted by due */
    size_t count, room;
    struct bel_zones *zones; /* or NULL */
};

/* --- sentences --- */

static struct bel_view text_of(const struct bel_value *timer, const char *name)
{
    const struct bel_value *value = bel_value_find(timer, name);
    return value != NULL ? value->text : (struct bel_view){"", 0};
}

/* Writes the sentence of a plan whose next time is `due_ms`; nothing for a timer, or if the zone is
 * unknown here. A recurrence rule takes what it leaves open, such as the minute, from its start,
 * and every one of its times shows that. */
static void describe(const struct upcoming *upcoming, const struct bel_value *timer, int64_t due_ms,
                     char out[SENTENCE_BYTES])
{
    static const char *const rules[] = {"every", "cron", "rrule"};
    struct bel_plan_options options = {.zone = bel_zone_utc(), .now = {due_ms}};
    struct bel_view zone = text_of(timer, "tz"), rule = {"", 0};
    struct bel_plan *plan;
    out[0] = '\0';
    for (unsigned i = 0; i < 3 && rule.bytes == 0; i++) {
        rule = text_of(timer, rules[i]);
    }
    if (rule.bytes == 0) return;
    bool has_zone = zone.bytes == 0 ||
                    (upcoming->zones != NULL &&
                     bel_zones_find(upcoming->zones, zone.data, zone.bytes, &options.zone) == 0);
    if (!has_zone || bel_plan_create(rule.data, rule.bytes, &options, &plan, NULL) != 0) {
        (void)snprintf(out, SENTENCE_BYTES, "%.*s", (int)rule.bytes, (const char *)rule.data);
        return;
    }
    (void)bel_plan_explain(plan, out, SENTENCE_BYTES);
    bel_plan_destroy(plan);
}

/* --- collecting --- */

/* Adds a timer or a recurring job, by its field `time`, if it is among the first; the last then
 * leaves. Returns 0 or BEL_ENOMEM. */
static int add(struct upcoming *upcoming, const struct bel_value *timer, const char *time)
{
    const struct bel_value *due = bel_value_find(timer, time);
    struct bel_view topic = text_of(timer, "topic"), id = text_of(timer, "id");
    char sentence[SENTENCE_BYTES];
    if (due == NULL) return 0;
    bool is_full = upcoming->count == upcoming->room;
    if (is_full && upcoming->items[upcoming->count - 1].due_ms <= due->number) return 0;
    describe(upcoming, timer, due->number, sentence);
    char *text = malloc(topic.bytes + id.bytes + strlen(sentence) + 1);
    if (text == NULL) return BEL_ENOMEM;
    memcpy(text, topic.data, topic.bytes);
    memcpy(text + topic.bytes, id.data, id.bytes);
    char *end = text + topic.bytes + id.bytes;
    memcpy(end, sentence, strlen(sentence) + 1);
    size_t at = is_full ? upcoming->count - 1 : upcoming->count;
    free(upcoming->items[at].text); /* NULL in a place that was free */
    upcoming->items[at].text = NULL;
    upcoming->count = at + 1;
    for (; at > 0 && upcoming->items[at - 1].due_ms > due->number; at--) {
        upcoming->items[at] = upcoming->items[at - 1];
    }
    upcoming->items[at] = (struct item){.due_ms = due->number,
                                        .topic = {text, topic.bytes},
                                        .id = {text + topic.bytes, id.bytes},
                                        .text = text,
                                        .sentence = end};
    return 0;
}

static int add_page(struct upcoming *upcoming, const struct bel_value *reply, const char *time)
{
    int err = 0;
    if (reply->type != BEL_VALUE_LIST || reply->count != 2) return 0; /* the topic has gone */
    for (size_t i = 0; i < reply->items[1].count && err == 0; i++) {
        err = add(upcoming, &reply->items[1].items[i], time);
    }
    return err;
}

static int ask_topics(struct upcoming *upcoming, struct bel_client *client,
                      const struct bel_view *names, size_t count)
{
    static const struct bel_view states[] = {{"ready", 5}, {"scheduled", 9}};
    const struct bel_value *reply;
    char room[BEL_PRINT_BYTES_MAX];
    struct bel_view limit = {room, bel__print_u64(room, upcoming->room)};
    int err = 0;
    for (size_t i = 0; i < 2 * count && err == 0; i++) {
        const struct bel_view args[] = {BEL_VIEW("LIST"), names[i / 2],      BEL_VIEW("STATE"),
                                        states[i % 2],    BEL_VIEW("COUNT"), limit};
        err = bel_client_send(client, args, sizeof args / sizeof args[0]);
    }
    for (size_t i = 0; i < 2 * count && err == 0; i++) {
        err = bel_client_receive(client, &reply);
        if (err == 0) err = add_page(upcoming, reply, "due_ms");
    }
    return err;
}

/* Adds the recurring jobs that are not paused. A server that refuses to list jobs has none. */
static int ask_jobs(struct upcoming *upcoming, struct bel_client *client)
{
    char cursor[CURSOR_BYTES];
    size_t bytes = 0;
    int err;
    do {
        const struct bel_view args[] = {BEL_VIEW("JOB"),    BEL_VIEW("LIST"),
                                        BEL_VIEW("STATE"),  BEL_VIEW("scheduled"),
                                        BEL_VIEW("CURSOR"), {cursor, bytes}};
        const struct bel_value *reply;
        err = bel_client_call(client, args, bytes > 0 ? 6 : 4, &reply);
        if (err == 0) err = add_page(upcoming, reply, "next_ms");
        if (err != 0 || reply->type != BEL_VALUE_LIST || reply->count != 2) break;
        bytes = reply->items[0].text.bytes;
        if (bytes > sizeof cursor) return BEL_EINVAL;
        if (bytes > 0) memcpy(cursor, reply->items[0].text.data, bytes);
    } while (bytes > 0);
    return err;
}

static int collect(struct upcoming *upcoming, struct bel_client *client, struct bel_view topic)
{
    const struct bel_view args[] = {BEL_VIEW("TOPICS")};
    const struct bel_value *reply;
    struct cli_names names;
    if (topic.bytes > 0) return ask_topics(upcoming, client, &topic, 1);
    int err = bel_client_call(client, args, 1, &reply);
    if (err) return err;
    err = bel__names_copy(reply, &names);
    for (size_t i = 0; i < names.count && err == 0; i += BATCH) {
        size_t count = names.count - i < BATCH ? names.count - i : BATCH;
        err = ask_topics(upcoming, client, names.items + i, count);
    }
    bel__names_finish(&names);
    return err ? err : ask_jobs(upcoming, client);
}

/* --- printing --- */

/* Writes how long is left, in its two largest units: 2d3h, 5m10s, 3m ago. */
static void print_left(int64_t left_ms, char out[LEFT_BYTES])
{
    static const uint64_t units[] = {86400000, 3600000, 60000, 1000};
    uint64_t ms = left_ms < 0 ? 0 - (uint64_t)left_ms : (uint64_t)left_ms;
    for (unsigned i = 0; i + 1 < sizeof units / sizeof units[0]; i++) {
        if (ms < units[i]) continue;
        ms -= ms % units[i + 1];
        break;
    }
    if (ms >= 1000) ms -= ms % 1000;
    size_t bytes = bel_duration_print(ms, out, LEFT_BYTES);
    if (left_ms < 0 && bytes + 5 < LEFT_BYTES) memcpy(out + bytes, " ago", 5);
}

static void print_json(const struct upcoming *upcoming)
{
    printf("[");
    for (size_t i = 0; i < upcoming->count; i++) {
        const struct item *item = &upcoming->items[i];
        printf("%s{\"due_ms\": %" PRId64, i > 0 ? ", " : "", item->due_ms);
        if (item->topic.bytes > 0) {
            printf(", \"topic\": ");
            bel__cli_print_json_view(item->topic);
        }
        printf(item->topic.bytes > 0 ? ", \"id\": " : ", \"job\": ");
        bel__cli_print_json_view(item->id);
        if (item->sentence[0] != '\0') {
            printf(", \"sentence\": ");
            bel__cli_print_json(item->sentence);
        }
        printf("}");
    }
    printf("]");
}

static int widest(const struct upcoming *upcoming, bool is_topic)
{
    size_t most = 5;
    for (size_t i = 0; i < upcoming->count; i++) {
        const struct item *item = &upcoming->items[i];
        size_t bytes = is_topic ? item->topic.bytes : item->id.bytes;
        if (bytes > most) most = bytes;
    }
    return (int)(most < 30 ? most : 30);
}

static void print_table(const struct upcoming *upcoming, int64_t now_ms)
{
    int topic = widest(upcoming, true), id = widest(upcoming, false);
    unsigned used = 24 + 1 + 12 + 1 + (unsigned)topic + 1 + (unsigned)id + 1 + 3;
    unsigned columns = bel__cli_columns();
    printf("%-24s %-12s %-*s %-*s %s\n", "NEXT", "LEFT", topic, "TOPIC", id, "ID", "PLAN");
    for (size_t i = 0; i < upcoming->count; i++) {
        const struct item *item = &upcoming->items[i];
        char left[LEFT_BYTES];
        print_left(item->due_ms - now_ms, left);
        bel__cli_print_time(item->due_ms);
        printf("%*s %-12s %-*.*s %-*.*s ", item->due_ms % 1000 == 0 ? 4 : 0, "", left, topic,
               (int)item->topic.bytes, (const char *)item->topic.data, id, (int)item->id.bytes,
               (const char *)item->id.data);
        bel__cli_print_line((struct bel_view){item->sentence, strlen(item->sentence)},
                            columns > used ? columns - used : 1);
        printf("\n");
    }
}

static void print_lines(const struct upcoming *upcoming)
{
    for (size_t i = 0; i < upcoming->count; i++) {
        const struct item *item = &upcoming->items[i];
        printf("%" PRId64 "\t", item->due_ms);
        bel__cli_print_line(item->topic, 0);
        printf("\t");
        bel__cli_print_line(item->id, 0);
        printf("\t%s\n", item->sentence);
    }
}

static int print(const struct upcoming *upcoming, const struct cli_request *request,
                 struct bel_client *client)
{
    const struct bel_view args[] = {BEL_VIEW("CLOCK")};
    const struct bel_value *now;
    if (request->connect.is_json) {
        print_json(upcoming);
        return CLI_OK;
    }
    if (!bel__cli_is_terminal()) {
        print_lines(upcoming);
        return CLI_OK;
    }
    int err = bel_client_call(client, args, 1, &now);
    if (err) return bel__connect_failed(&request->connect, err);
    if (upcoming->count == 0) {
        printf("no timer is scheduled or ready\n");
    } else {
        print_table(upcoming, now->number);
    }
    return CLI_OK;
}

int bel__upcoming_show(const struct cli_request *request, struct bel_client *client,
                       struct bel_view topic, unsigned count)
{
    struct upcoming upcoming = {.items = calloc(count, sizeof upcoming.items[0]), .room = count};
    if (upcoming.items == NULL) return CLI_FAILED;
    if (bel_zones_open(NULL, &upcoming.zones) != 0) upcoming.zones = NULL;
    int err = collect(&upcoming, client, topic);
    int status =
        err == 0 ? print(&upcoming, request, client) : bel__connect_failed(&request->connect, err);
    for (size_t i = 0; i < upcoming.count; i++) {
        free(upcoming.items[i].text);
    }
    free(upcoming.items);
    bel_zones_close(upcoming.zones);
    return status;
}
