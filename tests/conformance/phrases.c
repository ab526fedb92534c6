/* SPDX-License-Identifier: MIT */

/*
 * The phrases of the transcripts: each submits a command, and checks what every reply of its kind
 * must have.
 */
#include "conformance.h"

#include <string.h>

enum {
    OCCURRENCES_MAX = 8, /* names that are valid at the same time */
    LISTED_MAX = 1000,
    PAGE = 3, /* small, so that cursors are used */
};

void at_line(const char *file, int line)
{
    CHECK_NOTE("in %s, at %s:%d", conformance_case, file, line);
}

struct bel_view view(const char *text)
{
    return (struct bel_view){text, text != NULL ? strlen(text) : 0};
}

bool is_text(struct bel_view a, const char *text)
{
    return heard_same(a, view(text));
}

static struct bel_recurrence recurrence_of(const struct scheduled *what)
{
    struct bel_recurrence plan = {
        .zone = view(what->zone),
        .mode = what->mode,
        .gap = what->gap,
        .fold = what->fold,
        .misfire = what->misfire,
        .overlap = what->overlap,
        .has_until = what->until != 0,
        .until = {START + what->until},
        .count = what->count,
        .spread_ms = what->spread,
    };
    if (what->every != NULL) {
        plan.kind = BEL_PLAN_EVERY;
        plan.rule = view(what->every);
    } else if (what->cron != NULL) {
        plan.kind = BEL_PLAN_CRON;
        plan.rule = view(what->cron);
    } else if (what->rrule != NULL) {
        plan.kind = BEL_PLAN_RRULE;
        plan.rule = view(what->rrule);
    }
    return plan;
}

static const struct heard *ask_schedule(struct subject *s, const struct scheduled *what)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    enum bel_when when = what->at != 0 ? BEL_WHEN_AT : BEL_WHEN_NOW;
    command.schedule = (struct bel_schedule_spec){
        .topic = view(what->topic),
        .id = view(what->id),
        .payload = view(what->payload),
        .when = what->in != 0 ? BEL_WHEN_IN : when,
        .delay_ms = what->in,
        .at = {START + what->at},
        .plan = recurrence_of(what),
        .has_priority = what->priority != 0,
        .priority = (uint8_t)(what->priority > 0 ? what->priority : 0),
        .conflict = what->conflict,
        .group = view(what->group),
        .resource = view(what->resource),
        .correlation = view(what->correlation),
        .headers = what->headers,
        .headers_count = what->headers_count,
        .retry = view(what->retry),
        .lease_ms = what->lease,
        .expires_ms = what->expires,
    };
    return ask(s, &command);
}

/* An id in a reply has no final 0; ids in requests have one. */
const char *schedule_as(struct subject *s, const struct scheduled *what)
{
    static char id[BEL_ID_BYTES + 1];
    const struct heard *heard = ask_schedule(s, what);
    CHECK_EQ((uint64_t)-heard->reply.err, 0);
    CHECK(heard->reply.id.bytes > 0 && heard->reply.id.bytes <= BEL_ID_BYTES);
    if (what->id != NULL) CHECK(is_text(heard->reply.id, what->id));
    memset(id, 0, sizeof id);
    memcpy(id, heard->reply.id.data, heard->reply.id.bytes);
    return id;
}

int schedule_error_as(struct subject *s, const struct scheduled *what)
{
    return ask_schedule(s, what)->reply.err;
}

struct waiter *submit_claim_as(struct subject *s, const struct claimed *what)
{
    struct bel_view topics[] = {view(what->topic), view(what->and_topic), view(what->and_third)};
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){
        .topics = topics,
        .topics_count = what->and_third != NULL   ? 3
                        : what->and_topic != NULL ? 2
                                                  : 1,
        .count = what->count,
        .lease_ms = what->lease,
        .wait_ms = what->wait,
        .worker = view(what->worker),
    };
    return submit(s, &command);
}

const struct heard *claim_as(struct subject *s, const struct claimed *what)
{
    CHECK_EQ(what->wait, 0);
    struct waiter *waiter = submit_claim_as(s, what);
    turn(s);
    CHECK(waiter->heard != NULL);
    return waiter->heard;
}

void expect_ids_of(const struct heard *heard, const char *const *ids)
{
    bool is_claim = heard->verb == BEL_VERB_CLAIM;
    CHECK(heard->reply.err == 0);
    size_t count = is_claim ? heard->reply.deliveries.count : heard->reply.timers.count;
    for (size_t i = 0; i < count; i++) {
        struct bel_view id =
            is_claim ? heard->reply.deliveries.items[i].id : heard->reply.timers.items[i].id;
        if (ids[i] == NULL || !is_text(id, ids[i])) {
            fprintf(stderr, "number %zu is %.*s, want %s\n", i + 1, (int)id.bytes,
                    (const char *)id.data, ids[i] != NULL ? ids[i] : "none");
        }
        CHECK(ids[i] != NULL && is_text(id, ids[i]));
    }
    if (ids[count] != NULL) fprintf(stderr, "%s is not there\n", ids[count]);
    CHECK(ids[count] == NULL);
}

void expect_no_ids(const struct heard *heard)
{
    const char *const none[] = {NULL};
    expect_ids_of(heard, none);
}

void expect_claim_of(struct subject *s, const char *const *topic_and_ids)
{
    uint32_t count = 0;
    while (topic_and_ids[1 + count] != NULL) {
        count++;
    }
    struct claimed what = {.topic = topic_and_ids[0], .count = count > 0 ? count : 1};
    expect_ids_of(claim_as(s, &what), topic_and_ids + 1);
}

const char *token_of(struct subject *s, const char *id)
{
    static char copy[BEL_TOKEN_BYTES_MAX + 1 + sizeof "token:"];
    for (size_t i = 0; i < TOKENS_MAX && i < s->tokens_count; i++) {
        if (strcmp(s->tokens[i].id, id) != 0) continue;
        (void)snprintf(copy, sizeof copy, "token:%s", s->tokens[i].text);
        return copy;
    }
    CHECK(false);
    return NULL;
}

static struct bel_view token(struct subject *s, const char *id)
{
    const char *text = strncmp(id, "token:", 6) == 0 ? id : token_of(s, id);
    return view(text + 6);
}

uint64_t ack_result(struct subject *s, const char *id, const char *result)
{
    struct bel_view tokens[] = {token(s, id)};
    struct bel_command command = {.verb = BEL_VERB_ACK};
    command.ack = (struct bel_ack){tokens, 1, result != NULL, view(result)};
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0);
    return heard->reply.count;
}

static const struct heard *ask_fail(struct subject *s, const struct failed *what)
{
    struct bel_command command = {.verb = BEL_VERB_FAIL};
    command.fail = (struct bel_fail){
        .token = token(s, what->id),
        .reason = view(what->reason),
        .kind = what->kind,
        .dead = what->dead,
        .has_delay = what->at_once || what->in != 0,
        .delay_ms = what->in,
    };
    return ask(s, &command);
}

struct bel_verdict fail_as(struct subject *s, const struct failed *what)
{
    const struct heard *heard = ask_fail(s, what);
    CHECK(heard->reply.err == 0);
    return heard->reply.verdict;
}

int fail_error_as(struct subject *s, const struct failed *what)
{
    return ask_fail(s, what)->reply.err;
}

int release_as(struct subject *s, const char *id, bool has_delay, uint64_t delay_ms)
{
    struct bel_command command = {.verb = BEL_VERB_RELEASE};
    command.release = (struct bel_release){token(s, id), has_delay, delay_ms};
    const struct heard *heard = ask(s, &command);
    if (heard->reply.err == 0) CHECK_EQ(heard->reply.count, 1);
    return heard->reply.err;
}

int extend(struct subject *s, const char *id, uint64_t ms, uint64_t *out_left_ms)
{
    struct bel_command command = {.verb = BEL_VERB_EXTEND};
    command.extend = (struct bel_extend){token(s, id), ms};
    const struct heard *heard = ask(s, &command);
    if (heard->reply.err == 0) *out_left_ms = heard->reply.count;
    return heard->reply.err;
}

uint64_t cancel_one(struct subject *s, const char *topic, const char *id)
{
    struct bel_view ids[] = {view(id)};
    struct bel_command command = {.verb = BEL_VERB_CANCEL};
    command.cancel = (struct bel_cancel){view(topic), ids, 1};
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0);
    return heard->reply.count;
}

uint64_t reschedule(struct subject *s, const char *topic, const char *id, uint64_t in, int64_t at)
{
    struct bel_command command = {.verb = BEL_VERB_RESCHEDULE};
    command.reschedule = (struct bel_reschedule){
        .topic = view(topic),
        .id = view(id),
        .when = in != 0 ? BEL_WHEN_IN : BEL_WHEN_AT,
        .delay_ms = in,
        .at = {START + at},
    };
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0);
    return heard->reply.count;
}

const struct bel_timer *get(struct subject *s, const char *topic, const char *id)
{
    struct bel_command command = {.verb = BEL_VERB_GET};
    command.target = (struct bel_target){view(topic), view(id)};
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0 && heard->reply.timers.count <= 1);
    if (heard->reply.timers.count == 0) return NULL;
    CHECK(is_text(heard->reply.timers.items[0].topic, topic));
    CHECK(is_text(heard->reply.timers.items[0].id, id));
    return &heard->reply.timers.items[0];
}

const struct bel_timer *must_get(struct subject *s, const char *topic, const char *id)
{
    const struct bel_timer *timer = get(s, topic, id);
    CHECK(timer != NULL);
    return timer;
}

void expect_state_of(struct subject *s, const char *topic, const char *id, enum bel_state state)
{
    const struct bel_timer *timer = must_get(s, topic, id);
    if (timer->state != state) {
        fprintf(stderr, "it is %s, want %s\n", bel_state_name(timer->state), bel_state_name(state));
    }
    CHECK(timer->state == state);
}

void expect_gone_of(struct subject *s, const char *topic, const char *id)
{
    CHECK(get(s, topic, id) == NULL);
}

const char *occurrence(const char *plan, int64_t nominal)
{
    static char names[OCCURRENCES_MAX][BEL_ID_BYTES + 1];
    static unsigned used;
    char *name = names[used++ % OCCURRENCES_MAX];
    (void)snprintf(name, BEL_ID_BYTES + 1, "%s@%" PRId64, plan, START + nominal);
    return name;
}

static const struct heard *ask_list(struct subject *s, const struct listed *what,
                                    struct bel_view cursor)
{
    struct bel_command command = {.verb = BEL_VERB_LIST};
    command.list = (struct bel_list_query){
        .topic = view(what->topic),
        .has_state = what->has_state,
        .has_from = what->has_from,
        .has_to = what->has_to,
        .state = what->state,
        .from = {START + what->from},
        .to = {START + what->to},
        .count = what->count,
        .cursor = cursor,
    };
    return ask(s, &command);
}

const struct heard *list_as(struct subject *s, const struct listed *what, const char *cursor)
{
    return ask_list(s, what, view(cursor));
}

void expect_list_of(struct subject *s, const char *const *topic_and_ids, enum bel_state state)
{
    static struct bel_timer found[LISTED_MAX];
    struct heard all = {.verb = BEL_VERB_LIST};
    struct listed what = {.topic = topic_and_ids[0], .count = PAGE};
    what.has_state = state != BEL_STATES;
    what.state = what.has_state ? state : BEL_SCHEDULED;
    struct bel_view cursor = {NULL, 0};
    all.reply.timers.items = found;
    do {
        const struct heard *page = ask_list(s, &what, cursor);
        CHECK(page->reply.err == 0 && page->reply.timers.count <= PAGE);
        for (size_t i = 0; i < page->reply.timers.count; i++) {
            CHECK(all.reply.timers.count < LISTED_MAX);
            found[all.reply.timers.count++] = page->reply.timers.items[i];
        }
        cursor = page->reply.timers.cursor;
    } while (cursor.bytes > 0);
    expect_ids_of(&all, topic_and_ids + 1);
}

static uint64_t count_of(const struct heard *heard)
{
    CHECK(heard->reply.err == 0);
    return heard->reply.count;
}

uint64_t revive(struct subject *s, const char *topic, const char *id)
{
    struct bel_command command = {.verb = BEL_VERB_REVIVE};
    command.target = (struct bel_target){view(topic), view(id)};
    return count_of(ask(s, &command));
}

uint64_t purge_state(struct subject *s, const char *topic, enum bel_state state)
{
    struct bel_command command = {.verb = BEL_VERB_PURGE};
    command.purge.topic = view(topic);
    command.purge.has_state = state != BEL_STATES;
    command.purge.state = state;
    return count_of(ask(s, &command));
}

const struct bel_topic *topic(struct subject *s, const char *name)
{
    struct bel_command command = {.verb = BEL_VERB_TOPIC};
    command.target.topic = view(name);
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0);
    CHECK(is_text(heard->reply.topic->name, name));
    return heard->reply.topic;
}

const char *setting(struct subject *s, const char *name, const char *which)
{
    static char value[SETTING_BYTES_MAX + 1];
    const struct bel_topic *found = topic(s, name);
    for (size_t i = 0; i < found->settings_count; i++) {
        if (!is_text(found->settings[i].name, which)) continue;
        CHECK(found->settings[i].value.bytes < sizeof value);
        memset(value, 0, sizeof value);
        if (found->settings[i].value.bytes == 0) return value;
        memcpy(value, found->settings[i].value.data, found->settings[i].value.bytes);
        return value;
    }
    CHECK(false);
    return NULL;
}

int configure_error(struct subject *s, const char *topic, const char *name, const char *value)
{
    struct bel_setting settings[] = {{view(name), view(value)}};
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    command.configure = (struct bel_configure){view(topic), settings, 1};
    return ask(s, &command)->reply.err;
}

void must_configure(struct subject *s, const char *topic, const char *name, const char *value)
{
    CHECK(configure_error(s, topic, name, value) == 0);
}

int target(struct subject *s, enum bel_verb verb, const char *topic, const char *id)
{
    struct bel_command command = {.verb = verb};
    command.target = (struct bel_target){view(topic), view(id)};
    return ask(s, &command)->reply.err;
}
