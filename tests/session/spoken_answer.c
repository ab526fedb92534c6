/* SPDX-License-Identifier: MIT */

/*
 * Answers become replies again. Every field is looked up by its name, so that an answer that has
 * lost one makes a reply that has lost it, too.
 */
#include "../check.h"
#include "belfry/duration.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "spoken.h"

#include <string.h>

static void *piece(struct spoken_reply *spoken, size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    CHECK(memory != NULL && spoken->pieces_count < SPOKEN_PIECES_MAX);
    spoken->pieces[spoken->pieces_count++] = memory;
    return memory;
}

void spoken_free(struct spoken_reply *reply)
{
    for (size_t i = 0; i < reply->pieces_count; i++) {
        free(reply->pieces[i]);
    }
}

/* --- fields --- */

static struct bel_view text_of(const struct answer *map, const char *name)
{
    const struct answer *value = answer_field(map, name);
    if (value == NULL) return (struct bel_view){0};
    CHECK(value->kind == ANSWER_BULK);
    return value->text;
}

static int64_t number_of(const struct answer *map, const char *name)
{
    const struct answer *value = answer_field(map, name);
    if (value == NULL) return 0;
    CHECK(value->kind == ANSWER_INTEGER || value->kind == ANSWER_BOOLEAN);
    return value->number;
}

static uint64_t count_of(const struct answer *map, const char *name)
{
    int64_t number = number_of(map, name);
    CHECK(number >= 0);
    return (uint64_t)number;
}

static struct bel_wall time_of(const struct answer *map, const char *name)
{
    return (struct bel_wall){number_of(map, name)};
}

/* Which of SCHEDULE's words it is. */
static unsigned word_of(const struct answer *map, const char *name, size_t place)
{
    const char *const *words = bel__commands[BEL_COMMAND_SCHEDULE].arguments[place].words;
    struct bel_view text = text_of(map, name);
    CHECK(text.bytes > 0);
    for (unsigned i = 0; words[i] != NULL; i++) {
        if (text.bytes != strlen(words[i])) continue;
        if (memcmp(text.data, words[i], text.bytes) == 0) return i;
    }
    CHECK(false);
    return 0;
}

static enum bel_state state_of(struct bel_view text)
{
    enum bel_state state = BEL_STATES;
    CHECK(bel_state_find(text, &state));
    return state;
}

static const struct bel_header *headers_of(struct spoken_reply *spoken, const struct answer *array,
                                           size_t *out_count)
{
    *out_count = 0;
    if (array == NULL) return NULL;
    CHECK(array->kind == ANSWER_ARRAY && array->count % 2 == 0);
    struct bel_header *headers = piece(spoken, array->count * sizeof *headers);
    for (size_t i = 0; i < array->count; i += 2) {
        headers[i / 2] = (struct bel_header){array->items[i].text, array->items[i + 1].text};
    }
    *out_count = array->count / 2;
    return headers;
}

/* --- timers --- */

static struct bel_recurrence plan_of(const struct answer *map)
{
    static const char *const kinds[] = {"every", "cron", "rrule"};
    struct bel_recurrence plan = {0};
    for (unsigned i = 0; i < 3; i++) {
        if (answer_field(map, kinds[i]) == NULL) continue;
        plan.kind = (enum bel_plan_kind)i;
        plan.rule = text_of(map, kinds[i]);
    }
    if (plan.rule.bytes == 0) return plan;
    plan.zone = text_of(map, "tz");
    plan.mode = (enum bel_plan_mode)word_of(map, "mode", BEL_SCHEDULE_MODE);
    plan.gap = (enum bel_gap)word_of(map, "gap", BEL_SCHEDULE_GAP);
    plan.fold = (enum bel_fold)word_of(map, "fold", BEL_SCHEDULE_FOLD);
    plan.misfire = (enum bel_misfire)word_of(map, "misfire", BEL_SCHEDULE_MISFIRE);
    plan.overlap = (enum bel_overlap)word_of(map, "overlap", BEL_SCHEDULE_OVERLAP);
    plan.has_until = answer_field(map, "until_ms") != NULL;
    plan.until = time_of(map, "until_ms");
    plan.count = count_of(map, "count");
    plan.spread_ms = count_of(map, "spread_ms");
    return plan;
}

static void take_outcomes(const struct answer *array, struct bel_timer *out)
{
    if (array == NULL) return;
    CHECK(array->count <= BEL_OUTCOMES_MAX);
    for (size_t i = 0; i < array->count; i++) {
        const struct answer *item = &array->items[i];
        CHECK(item->count == 3);
        bool has_crashed = item->items[0].text.bytes == strlen("crashed");
        out->outcomes[i] =
            (struct bel_outcome){.kind = has_crashed ? BEL_OUTCOME_CRASHED : BEL_OUTCOME_FAILED,
                                 .at = {item->items[1].number},
                                 .reason = item->items[2].text};
    }
    out->outcomes_count = array->count;
}

static struct bel_timer timer_of(struct spoken_reply *spoken, const struct answer *map)
{
    struct bel_timer timer = {
        .topic = text_of(map, "topic"),
        .id = text_of(map, "id"),
        .payload = text_of(map, "payload"),
        .group = text_of(map, "group"),
        .resource = text_of(map, "resource"),
        .correlation = text_of(map, "correlation"),
        .retry = text_of(map, "retry"),
        .state = state_of(text_of(map, "state")),
        .due = time_of(map, "due_ms"),
        .created = time_of(map, "created_ms"),
        .finished = time_of(map, "finished_ms"),
        .expires = time_of(map, "expires_ms"),
        .expires_ms = count_of(map, "expires_after_ms"),
        .lease_ms = count_of(map, "lease_ms"),
        .attempts = count_of(map, "attempts"),
        .crashes = count_of(map, "crashes"),
        .lease_left_ms = count_of(map, "lease_left_ms"),
        .worker = text_of(map, "worker"),
        .reason = text_of(map, "reason"),
        .result = text_of(map, "result"),
        .plan = plan_of(map),
        .made = count_of(map, "made"),
        .skipped = count_of(map, "skipped"),
        .missed = count_of(map, "missed"),
        .used = count_of(map, "used"),
        .plan_id = text_of(map, "plan"),
        .nominal = time_of(map, "nominal_ms"),
        .priority = (uint8_t)count_of(map, "priority"),
    };
    timer.has_next = timer.plan.rule.bytes > 0 && answer_field(map, "due_ms") != NULL;
    timer.headers = headers_of(spoken, answer_field(map, "headers"), &timer.headers_count);
    take_outcomes(answer_field(map, "outcomes"), &timer);
    return timer;
}

static void take_timers(struct spoken_reply *spoken, const struct answer *maps, size_t count)
{
    struct bel_timer *timers = piece(spoken, count * sizeof *timers);
    for (size_t i = 0; i < count; i++) {
        timers[i] = timer_of(spoken, &maps[i]);
    }
    spoken->reply.timers.items = timers;
    spoken->reply.timers.count = count;
}

/* --- the other replies --- */

/* Names of tasks and their results, in turn; an empty result is none. */
static void take_results(struct spoken_reply *spoken, const struct answer *array,
                         struct bel_delivery *out)
{
    struct bel_task_result *results = piece(spoken, array->count * sizeof *results);
    out->results = results;
    out->results_count = array->count / 2;
    for (size_t i = 0; i < out->results_count; i++) {
        const struct answer *result = &array->items[2 * i + 1];
        results[i] = (struct bel_task_result){.task = array->items[2 * i].text};
        if (result->kind == ANSWER_NIL) continue;
        results[i].has_result = true;
        results[i].result = result->text;
    }
}

static void take_deliveries(struct spoken_reply *spoken, const struct answer *array)
{
    CHECK(array->kind == ANSWER_ARRAY);
    struct bel_delivery *deliveries = piece(spoken, array->count * sizeof *deliveries);
    for (size_t i = 0; i < array->count; i++) {
        const struct answer *item = &array->items[i];
        const struct answer *fields = item->items;
        CHECK(item->count >= 9);
        deliveries[i] = (struct bel_delivery){.token = fields[0].text,
                                              .topic = fields[1].text,
                                              .id = fields[2].text,
                                              .payload = fields[3].text,
                                              .due = {fields[4].number},
                                              .attempt = (uint64_t)fields[5].number,
                                              .lease_ms = (uint64_t)fields[7].number};
        deliveries[i].headers = headers_of(spoken, &fields[6], &deliveries[i].headers_count);
        if (fields[8].kind != ANSWER_NIL) deliveries[i].correlation = fields[8].text;
        if (item->count > 9) take_results(spoken, &fields[9], &deliveries[i]);
    }
    spoken->reply.deliveries.items = deliveries;
    spoken->reply.deliveries.count = array->count;
}

static void take_names(struct spoken_reply *spoken, const struct answer *array)
{
    struct bel_view *names = piece(spoken, array->count * sizeof *names);
    for (size_t i = 0; i < array->count; i++) {
        names[i] = array->items[i].text;
    }
    spoken->reply.names.items = names;
    spoken->reply.names.count = array->count;
}

static void take_explanation(struct spoken_reply *spoken, const struct answer *map)
{
    struct bel_view text = text_of(map, "reason");
    char *word = piece(spoken, text.bytes + 1);
    struct bel_reason *reason = piece(spoken, sizeof *reason);
    if (text.bytes > 0) memcpy(word, text.data, text.bytes);
    word[text.bytes] = '\0';
    *reason = (struct bel_reason){.word = word,
                                  .by = text_of(map, "by"),
                                  .has_until = answer_field(map, "until_ms") != NULL,
                                  .until = time_of(map, "until_ms")};
    take_names(spoken, answer_field(map, "lines"));
    spoken->reply.names.reason = reason;
}

enum {
    TOPIC_NUMBERS = 9, /* fields of a topic besides its states, rates and settings */
    TOPIC_RATES = 6,   /* of all stores but those on Redis */
};

/* Settings are what stands between the last of the counts and the first of what timers wait for. */
static void take_topic(struct spoken_reply *spoken, const struct answer *map)
{
    struct bel_topic *topic = piece(spoken, sizeof *topic);
    struct bel_setting *settings = piece(spoken, map->count * sizeof *settings);
    topic->name = text_of(map, "topic");
    topic->paused = number_of(map, "paused") != 0;
    topic->plans = count_of(map, "plans");
    topic->oldest_age_ms = count_of(map, "oldest_age_ms");
    topic->claimed = count_of(map, "claimed_total");
    topic->completed = count_of(map, "completed_total");
    topic->failed = count_of(map, "failed_total");
    topic->released = count_of(map, "released_total");
    topic->lost = count_of(map, "lost_total");
    topic->settings = settings;
    for (unsigned i = 0; i < BEL_STATES; i++) {
        CHECK(answer_field(map, bel_state_name((enum bel_state)i)) != NULL);
        topic->counts[i] = count_of(map, bel_state_name((enum bel_state)i));
    }
    size_t rates = answer_field(map, "claims_per_minute") != NULL ? TOPIC_RATES : 0;
    size_t end = map->count - 2 * (size_t)BEL_WAITS;
    for (size_t i = 2 * (TOPIC_NUMBERS + rates + BEL_STATES); i < end; i += 2) {
        settings[topic->settings_count++] =
            (struct bel_setting){map->items[i].text, map->items[i + 1].text};
    }
    spoken->reply.topic = topic;
}

static void take_steps(struct spoken_reply *spoken, const struct answer *array)
{
    struct bel_agenda_step *steps = piece(spoken, array->count * sizeof *steps);
    for (size_t i = 0; i < array->count; i++) {
        CHECK(array->items[i].count == 2);
        steps[i].start.ms = array->items[i].items[0].number;
        steps[i].count = (uint64_t)array->items[i].items[1].number;
    }
    spoken->reply.steps.items = steps;
    spoken->reply.steps.count = array->count;
}

static void take_reports(struct spoken_reply *spoken, const struct answer *array,
                         struct bel_limit_state *out)
{
    if (array == NULL) return;
    struct bel_limit_report *reports = piece(spoken, array->count * sizeof *reports);
    for (size_t i = 0; i < array->count; i++) {
        reports[i] = (struct bel_limit_report){.who = text_of(&array->items[i], "who"),
                                               .at = time_of(&array->items[i], "at_ms"),
                                               .for_ms = count_of(&array->items[i], "for_ms")};
    }
    out->reports = reports;
    out->reports_count = array->count;
}

static void read_rate(struct bel_view text, struct bel_limit_state *out)
{
    char *slash = NULL;
    out->rate = text;
    if (text.bytes == 0) return;
    out->rate_count = strtoull(text.data, &slash, 10);
    size_t digits = (size_t)(slash - (const char *)text.data);
    CHECK(*slash == '/');
    CHECK(bel_duration_parse(slash + 1, text.bytes - digits - 1, &out->rate_ms, NULL) == 0);
}

static struct bel_limit_state limit_of(struct spoken_reply *spoken, const struct answer *map)
{
    const struct answer *breaker = answer_field(map, "breaker");
    CHECK(breaker != NULL);
    struct bel_limit_state state = {
        .name = text_of(map, "name"),
        .burst = count_of(map, "burst"),
        .concurrency = count_of(map, "concurrency"),
        .running = count_of(map, "running"),
        .parked = count_of(map, "parked"),
        .limited_until = time_of(map, "limited_until_ms"),
        .breaker_failures = count_of(breaker, "opens_at"),
        .breaker_open_ms = count_of(breaker, "open_ms"),
        .breaker_max_ms = count_of(breaker, "max_ms"),
        .failures = count_of(breaker, "failures"),
        .breaker_until = time_of(breaker, "until_ms"),
    };
    struct bel_view word = text_of(breaker, "state");
    CHECK(word.data != NULL);
    while (state.breaker < BEL_BREAKER_HALF_OPEN &&
           (strlen(bel_breaker_name(state.breaker)) != word.bytes ||
            memcmp(bel_breaker_name(state.breaker), word.data, word.bytes) != 0)) {
        state.breaker++;
    }
    read_rate(text_of(map, "rate"), &state);
    take_reports(spoken, answer_field(map, "reports"), &state);
    return state;
}

/* Takes a number, a list of a cursor and resources, or one resource. */
static void take_limits(struct spoken_reply *spoken, const struct answer *answer)
{
    struct bel_limit_reply *limits = &spoken->reply.limits;
    if (answer->kind == ANSWER_INTEGER) {
        limits->changed = (uint64_t)answer->number;
        return;
    }
    bool is_list = answer->kind == ANSWER_ARRAY && answer->count == 2;
    const struct answer *maps = is_list ? answer->items[1].items : answer;
    limits->count = is_list ? answer->items[1].count : 1;
    struct bel_limit_state *states = piece(spoken, limits->count * sizeof *states);
    for (size_t i = 0; i < limits->count; i++) {
        states[i] = limit_of(spoken, &maps[i]);
    }
    limits->items = states;
    if (is_list) limits->cursor = answer->items[0].text;
}

static void take_verdict(struct spoken_reply *spoken, const struct answer *array)
{
    CHECK(array->kind == ANSWER_ARRAY && array->count == 2);
    spoken->reply.verdict.state = state_of(array->items[0].text);
    spoken->reply.verdict.due.ms = array->items[1].number;
}

static void take_error(struct spoken_reply *spoken, const struct answer *answer)
{
    static const struct {
        const char *code;
        int err;
    } codes[] = {
        {"ERR not available", BEL_EUNSUPPORTED},
        {"ERR ", BEL_EINVAL},
        {"BADARG ", BEL_EINVAL},
        {"NOTFOUND ", BEL_ENOTFOUND},
        {"CONFLICT ", BEL_ECONFLICT},
        {"STALE ", BEL_ESTALE},
        {"FULL ", BEL_EFULL},
        {"IO ", BEL_EIO},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0] && spoken->reply.err == 0; i++) {
        size_t bytes = strlen(codes[i].code);
        if (answer->text.bytes < bytes) continue;
        if (memcmp(answer->text.data, codes[i].code, bytes) != 0) continue;
        spoken->reply.err = codes[i].err;
    }
    CHECK(spoken->reply.err != 0);
    (void)snprintf(spoken->reply.why, sizeof spoken->reply.why, "%.*s", (int)answer->text.bytes,
                   (const char *)answer->text.data);
}

static void take(enum bel_verb verb, const struct answer *answer, struct spoken_reply *out)
{
    switch (verb) {
    case BEL_VERB_SCHEDULE:
        out->reply.id = answer->text;
        break;
    case BEL_VERB_GET:
        take_timers(out, answer, answer->kind != ANSWER_NIL);
        break;
    case BEL_VERB_LIST:
        CHECK(answer->count == 2);
        take_timers(out, answer->items[1].items, answer->items[1].count);
        out->reply.timers.cursor = answer->items[0].text;
        break;
    case BEL_VERB_CLAIM:
        take_deliveries(out, answer);
        break;
    case BEL_VERB_FAIL:
        take_verdict(out, answer);
        break;
    case BEL_VERB_TOPICS:
        take_names(out, answer);
        break;
    case BEL_VERB_EXPLAIN:
        take_explanation(out, answer);
        break;
    case BEL_VERB_TOPIC:
        take_topic(out, answer);
        break;
    case BEL_VERB_AGENDA:
        take_steps(out, answer);
        break;
    case BEL_VERB_LIMIT:
        take_limits(out, answer);
        break;
    case BEL_VERB_CONFIGURE:
    case BEL_VERB_PAUSE:
    case BEL_VERB_RESUME:
        CHECK(answer->kind == ANSWER_SIMPLE);
        break;
    default:
        CHECK(answer->kind == ANSWER_INTEGER && answer->number >= 0);
        out->reply.count = (uint64_t)answer->number;
        break;
    }
}

void spoken_answer(enum bel_verb verb, const struct answer *answer, struct spoken_reply *out)
{
    memset(out, 0, sizeof *out);
    if (answer->kind == ANSWER_ERROR) {
        take_error(out, answer);
    } else {
        take(verb, answer, out);
    }
}
