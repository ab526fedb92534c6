/* SPDX-License-Identifier: MIT */

/*
 * Builds the commands of a backend from parsed values. Refuses what the table cannot express:
 * options that exclude each other or need another one, and values of 0 or empty values where the
 * backend would use its default. The backend checks all other values.
 */
#include "session/bind.h"

#include "belfry/cron.h"
#include "belfry/rrule.h"
#include "core/view.h"

#include "belfry/duration.h"
#include "core/parse.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    SHOWN_MAX = 40, /* bytes of a word that an error quotes */
};

typedef int build_fn(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why);

static const char *name_of(const struct bel_bound *bound, size_t place)
{
    return bound->entry->arguments[place].name;
}

/* Refuses an empty value. */
static int check_text(const struct bel_bound *bound, size_t place, struct bel_why *why)
{
    if (!bel__bound_has(bound, place) || bound->values[place].text.bytes > 0) return 0;
    return bel__refusal(why, "BADARG", "%s is empty: leave it out, or give it a value",
                        name_of(bound, place));
}

/* Refuses a number that is not from 1 to `max`. */
static int check_number(const struct bel_bound *bound, size_t place, uint64_t max,
                        struct bel_why *why)
{
    uint64_t number = bound->values[place].number;
    if (!bel__bound_has(bound, place) || (number >= 1 && number <= max)) return 0;
    if (number == 0) {
        return bel__refusal(why, "BADARG", "%s is 0: give at least 1, or leave it out",
                            name_of(bound, place));
    }
    return bel__refusal(why, "BADARG", "%s must be at most %llu", name_of(bound, place),
                        (unsigned long long)max);
}

static int exclude(const struct bel_bound *bound, size_t a, size_t b, struct bel_why *why)
{
    if (!bel__bound_has(bound, a) || !bel__bound_has(bound, b)) return 0;
    return bel__refusal(why, "ERR", "%s and %s exclude each other: give one of them",
                        name_of(bound, a), name_of(bound, b));
}

/* --- SCHEDULE --- */

/* The set that contains one argument of SCHEDULE. */
#define IS(place) (UINT32_C(1) << BEL_SCHEDULE_##place)

static const size_t plan_places[] = {BEL_SCHEDULE_EVERY, BEL_SCHEDULE_CRON, BEL_SCHEDULE_RRULE};
static const enum bel_plan_kind plan_kinds[] = {BEL_PLAN_EVERY, BEL_PLAN_CRON, BEL_PLAN_RRULE};

enum {
    PLANS = sizeof plan_places / sizeof plan_places[0],
};

static int check_exclusions(const struct bel_bound *bound, struct bel_why *why)
{
    int err = exclude(bound, BEL_SCHEDULE_AT, BEL_SCHEDULE_IN, why);
    if (err == 0) err = exclude(bound, BEL_SCHEDULE_EVERY, BEL_SCHEDULE_CRON, why);
    if (err == 0) err = exclude(bound, BEL_SCHEDULE_EVERY, BEL_SCHEDULE_RRULE, why);
    if (err == 0) err = exclude(bound, BEL_SCHEDULE_CRON, BEL_SCHEDULE_RRULE, why);
    return err;
}

/* Refuses options that only plans have. */
static int check_no_plan(const struct bel_bound *bound, struct bel_why *why)
{
    uint32_t misplaced =
        bound->there & (IS(MODE) | IS(COUNT) | IS(UNTIL) | IS(SPREAD) | IS(MISFIRE) | IS(OVERLAP));
    if (misplaced != 0) {
        return bel__refusal(why, "ERR", "%s needs EVERY, CRON or RRULE",
                            name_of(bound, bel__place_take(&misplaced)));
    }
    if (bel__bound_has(bound, BEL_SCHEDULE_TZ)) {
        return bel__refusal(why, "ERR",
                            "TZ needs CRON or RRULE: give the zone of a time as in "
                            "AT 2026-03-29T02:30[Europe/Berlin]");
    }
    bool is_local =
        bel__bound_has(bound, BEL_SCHEDULE_GAP) || bel__bound_has(bound, BEL_SCHEDULE_FOLD);
    if (is_local && !bel__bound_has(bound, BEL_SCHEDULE_AT)) {
        return bel__refusal(why, "ERR", "GAP and FOLD need AT, EVERY, CRON or RRULE");
    }
    if (bound->values[BEL_SCHEDULE_FOLD].number != BEL_FOLD_BOTH) return 0;
    return bel__refusal(
        why, "ERR",
        "FOLD both needs EVERY, CRON or RRULE: a timer is due once, at the first or "
        "the second of two equal local times");
}

static int check_schedule(const struct bel_bound *bound, struct bel_why *why)
{
    uint32_t texts =
        bound->there & (IS(CRON) | IS(RRULE) | IS(TZ) | IS(GROUP) | IS(RESOURCE) | IS(RETRY));
    uint32_t numbers = bound->there & (IS(LEASE) | IS(EXPIRES) | IS(COUNT));
    int err = check_exclusions(bound, why);
    while (texts != 0 && err == 0) {
        err = check_text(bound, bel__place_take(&texts), why);
    }
    if (err == 0) err = check_text(bound, BEL_SCHEDULE_CORRELATION, why);
    while (numbers != 0 && err == 0) {
        err = check_number(bound, bel__place_take(&numbers), UINT64_MAX, why);
    }
    if (err == 0 && bound->values[BEL_SCHEDULE_PRIORITY].number > UINT8_MAX) {
        err = bel__refusal(why, "BADARG", "PRIORITY must be from 0 to 255");
    }
    return err;
}

static struct bel_recurrence recurrence_of(const struct bel_bound *bound, size_t plan)
{
    const struct bel_bound_value *values = bound->values;
    return (struct bel_recurrence){
        .kind = plan_kinds[plan],
        .rule = values[plan_places[plan]].text,
        .zone = values[BEL_SCHEDULE_TZ].text,
        .mode = (enum bel_plan_mode)values[BEL_SCHEDULE_MODE].number,
        .gap = (enum bel_gap)values[BEL_SCHEDULE_GAP].number,
        .fold = (enum bel_fold)values[BEL_SCHEDULE_FOLD].number,
        .misfire = (enum bel_misfire)values[BEL_SCHEDULE_MISFIRE].number,
        .overlap = (enum bel_overlap)values[BEL_SCHEDULE_OVERLAP].number,
        .has_until = bel__bound_has(bound, BEL_SCHEDULE_UNTIL),
        .until = values[BEL_SCHEDULE_UNTIL].time,
        .count = values[BEL_SCHEDULE_COUNT].number,
        .spread_ms = values[BEL_SCHEDULE_SPREAD].number,
    };
}

/* Reads the zone in a rule: TZ= or CRON_TZ=, which is taken out, or TZID= of a DTSTART. */
static int split_zone(struct bel_recurrence *plan, struct bel_why *why)
{
    struct bel_view zone = {NULL, 0};
    bool has_zone = plan->kind == BEL_PLAN_CRON    ? bel_cron_split_zone(&plan->rule, &zone)
                    : plan->kind == BEL_PLAN_RRULE ? bel_rrule_zone(plan->rule, &zone)
                                                   : false;
    if (!has_zone) return 0;
    if (plan->zone.bytes > 0 && !bel__view_equal(plan->zone, zone)) {
        return bel__refusal(why, "BADARG",
                            "the rule begins with another zone than TZ: give one of them");
    }
    if (zone.bytes == 0 || plan->rule.bytes == 0) {
        return bel__refusal(why, "BADARG", "expected a rule like TZ=Europe/Berlin 0 9 * * *");
    }
    plan->zone = zone;
    return 0;
}

static enum bel_when when_of(const struct bel_bound *bound, size_t in, size_t at)
{
    if (bel__bound_has(bound, in)) return BEL_WHEN_IN;
    return bel__bound_has(bound, at) ? BEL_WHEN_AT : BEL_WHEN_NOW;
}

static int build_schedule(const struct bel_bound *bound, struct bel_command *out,
                          struct bel_why *why)
{
    const struct bel_bound_value *values = bound->values;
    size_t plan = 0;
    int err = check_schedule(bound, why);
    while (plan < PLANS && !bel__bound_has(bound, plan_places[plan])) {
        plan++;
    }
    if (err == 0 && plan == PLANS) err = check_no_plan(bound, why);
    if (err) return err;
    out->schedule = (struct bel_schedule_spec){
        .topic = values[BEL_SCHEDULE_TOPIC].text,
        .id = values[BEL_SCHEDULE_ID].text,
        .payload = values[BEL_SCHEDULE_PAYLOAD].text,
        .when = when_of(bound, BEL_SCHEDULE_IN, BEL_SCHEDULE_AT),
        .delay_ms = values[BEL_SCHEDULE_IN].number,
        .at = values[BEL_SCHEDULE_AT].time,
        .has_priority = bel__bound_has(bound, BEL_SCHEDULE_PRIORITY),
        .priority = (uint8_t)values[BEL_SCHEDULE_PRIORITY].number,
        .conflict = (enum bel_conflict)values[BEL_SCHEDULE_CONFLICT].number,
        .group = values[BEL_SCHEDULE_GROUP].text,
        .resource = values[BEL_SCHEDULE_RESOURCE].text,
        .correlation = values[BEL_SCHEDULE_CORRELATION].text,
        .headers = bound->pairs,
        .headers_count = bound->pairs_count,
        .has_empty_id =
            bel__bound_has(bound, BEL_SCHEDULE_ID) && values[BEL_SCHEDULE_ID].text.bytes == 0,
        .retry = values[BEL_SCHEDULE_RETRY].text,
        .lease_ms = values[BEL_SCHEDULE_LEASE].number,
        .expires_ms = values[BEL_SCHEDULE_EXPIRES].number,
        .is_imported = bel__bound_has(bound, BEL_SCHEDULE_IMPORTED),
    };
    if (plan == PLANS) return 0;
    out->schedule.plan = recurrence_of(bound, plan);
    return split_zone(&out->schedule.plan, why);
}

/* --- other commands --- */

static int build_target(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    (void)why;
    out->target.topic = bound->values[BEL_TARGET_TOPIC].text;
    out->target.id = (struct bel_view){0};
    if (bound->entry->arguments_count > BEL_TARGET_ID) {
        out->target.id = bound->values[BEL_TARGET_ID].text;
    }
    return 0;
}

static int build_nothing(const struct bel_bound *bound, struct bel_command *out,
                         struct bel_why *why)
{
    (void)bound;
    (void)why;
    out->target = (struct bel_target){0};
    return 0;
}

/* Builds REVIVE. The id * means all timers, which the backend expects as an empty id. */
static int build_revive(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    struct bel_view id = bound->values[BEL_TARGET_ID].text;
    if (id.bytes == 0) return bel__refusal(why, "BADARG", "id is empty: give * for all timers");
    bool is_all = id.bytes == 1 && *(const char *)id.data == '*';
    out->target.topic = bound->values[BEL_TARGET_TOPIC].text;
    if (is_all) id.bytes = 0;
    out->target.id = id;
    return 0;
}

static int build_cancel(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    (void)why;
    out->cancel = (struct bel_cancel){.topic = bound->values[BEL_TARGET_TOPIC].text,
                                      .ids = bound->repeated,
                                      .ids_count = bound->repeated_count};
    return 0;
}

static int build_reschedule(const struct bel_bound *bound, struct bel_command *out,
                            struct bel_why *why)
{
    enum bel_when when = when_of(bound, BEL_RESCHEDULE_IN, BEL_RESCHEDULE_AT);
    int err = exclude(bound, BEL_RESCHEDULE_IN, BEL_RESCHEDULE_AT, why);
    if (err) return err;
    if (when == BEL_WHEN_NOW) {
        return bel__refusal(why, "ERR", "RESCHEDULE needs IN or AT");
    }
    out->reschedule = (struct bel_reschedule){.topic = bound->values[BEL_TARGET_TOPIC].text,
                                              .id = bound->values[BEL_TARGET_ID].text,
                                              .when = when,
                                              .delay_ms = bound->values[BEL_RESCHEDULE_IN].number,
                                              .at = bound->values[BEL_RESCHEDULE_AT].time};
    return 0;
}

static int build_claim(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    const struct bel_bound_value *values = bound->values;
    int err = check_number(bound, BEL_CLAIM_COUNT, BEL_CLAIM_COUNT_MAX, why);
    if (err == 0) err = check_number(bound, BEL_CLAIM_LEASE, UINT64_MAX, why);
    if (err) return err;
    out->claim = (struct bel_claim){.topics = bound->repeated,
                                    .topics_count = bound->repeated_count,
                                    .count = (uint32_t)values[BEL_CLAIM_COUNT].number,
                                    .lease_ms = values[BEL_CLAIM_LEASE].number,
                                    .wait_ms = values[BEL_CLAIM_WAIT].number,
                                    .worker = values[BEL_CLAIM_WORKER].text};
    return 0;
}

static int build_ack(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    bool has_result = bel__bound_has(bound, BEL_ACK_RESULT);
    if (has_result && bound->repeated_count > 1) {
        return bel__refusal(why, "ERR", "RESULT needs exactly one token");
    }
    out->ack = (struct bel_ack){.tokens = bound->repeated,
                                .tokens_count = bound->repeated_count,
                                .has_result = has_result,
                                .result = bound->values[BEL_ACK_RESULT].text};
    return 0;
}

static int build_fail(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    (void)why;
    const struct bel_bound_value *values = bound->values;
    out->fail = (struct bel_fail){.token = values[BEL_FAIL_TOKEN].text,
                                  .reason = values[BEL_FAIL_REASON].text,
                                  .kind = (enum bel_fail_kind)values[BEL_FAIL_KIND].number,
                                  .dead = bel__bound_has(bound, BEL_FAIL_DEAD),
                                  .has_delay = bel__bound_has(bound, BEL_FAIL_IN),
                                  .delay_ms = values[BEL_FAIL_IN].number};
    return 0;
}

static int build_release(const struct bel_bound *bound, struct bel_command *out,
                         struct bel_why *why)
{
    (void)why;
    out->release = (struct bel_release){.token = bound->values[BEL_RELEASE_TOKEN].text,
                                        .has_delay = bel__bound_has(bound, BEL_RELEASE_IN),
                                        .delay_ms = bound->values[BEL_RELEASE_IN].number};
    return 0;
}

static int build_extend(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    int err = check_number(bound, BEL_EXTEND_LEASE, UINT64_MAX, why);
    if (err) return err;
    out->extend = (struct bel_extend){.token = bound->values[BEL_EXTEND_TOKEN].text,
                                      .lease_ms = bound->values[BEL_EXTEND_LEASE].number};
    return 0;
}

/* Builds LIST. The first page has the cursor 0, as SCAN of Redis, or none. */
static int build_list(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    const struct bel_bound_value *values = bound->values;
    struct bel_view cursor = values[BEL_LIST_CURSOR].text;
    int err = check_number(bound, BEL_LIST_COUNT, BEL_LIST_COUNT_MAX, why);
    if (err) return err;
    if (cursor.bytes == 1 && *(const char *)cursor.data == '0') cursor = (struct bel_view){0};
    out->list = (struct bel_list_query){.topic = values[BEL_LIST_TOPIC].text,
                                        .has_state = bel__bound_has(bound, BEL_LIST_STATE),
                                        .has_from = bel__bound_has(bound, BEL_LIST_FROM),
                                        .has_to = bel__bound_has(bound, BEL_LIST_TO),
                                        .state = (enum bel_state)values[BEL_LIST_STATE].number,
                                        .from = values[BEL_LIST_FROM].time,
                                        .to = values[BEL_LIST_TO].time,
                                        .count = (uint32_t)values[BEL_LIST_COUNT].number,
                                        .cursor = cursor};
    return 0;
}

static int build_purge(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    (void)why;
    out->purge = (struct bel_purge){.topic = bound->values[BEL_PURGE_TOPIC].text,
                                    .has_state = bel__bound_has(bound, BEL_PURGE_STATE),
                                    .state = (enum bel_state)bound->values[BEL_PURGE_STATE].number};
    return 0;
}

/* Builds CONFIGURE. Its settings use the memory for pairs, because CONFIGURE has none. */
static int build_configure(const struct bel_bound *bound, struct bel_command *out,
                           struct bel_why *why)
{
    (void)why;
    assert(bound->repeated_count % 2 == 0 && bound->pairs_count == 0);
    struct bel_setting *settings = (void *)bound->pairs;
    for (size_t i = 0; i < bound->repeated_count / 2; i++) {
        settings[i] = (struct bel_setting){bound->repeated[2 * i], bound->repeated[2 * i + 1]};
    }
    out->configure = (struct bel_configure){.topic = bound->values[BEL_CONFIGURE_TOPIC].text,
                                            .settings = settings,
                                            .settings_count = bound->repeated_count / 2};
    return 0;
}

static int build_agenda(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    const struct bel_bound_value *values = bound->values;
    int err = check_number(bound, BEL_AGENDA_STEP, UINT64_MAX, why);
    if (err == 0) err = check_text(bound, BEL_AGENDA_TOPIC, why);
    if (err) return err;
    out->agenda = (struct bel_agenda){.has_from = bel__bound_has(bound, BEL_AGENDA_FROM),
                                      .has_to = bel__bound_has(bound, BEL_AGENDA_TO),
                                      .from = values[BEL_AGENDA_FROM].time,
                                      .to = values[BEL_AGENDA_TO].time,
                                      .step_ms = values[BEL_AGENDA_STEP].number,
                                      .topic = values[BEL_AGENDA_TOPIC].text};
    return 0;
}

/* --- jobs --- */

/* The caller sets the scope of each. */

static int build_job_submit(const struct bel_bound *bound, struct bel_command *out,
                            struct bel_why *why)
{
    int err = check_text(bound, BEL_JOB_SUBMIT_ID, why);
    if (err) return err;
    out->job_submit =
        (struct bel_job_submit){.text = bound->values[BEL_JOB_SUBMIT_TEXT].text,
                                .id = bound->values[BEL_JOB_SUBMIT_ID].text,
                                .is_replacement = bel__bound_has(bound, BEL_JOB_SUBMIT_REPLACE)};
    return 0;
}

static int build_job_target(const struct bel_bound *bound, struct bel_command *out,
                            struct bel_why *why)
{
    (void)why;
    out->job_target = (struct bel_job_target){.id = bound->values[BEL_JOB_TARGET_ID].text};
    return 0;
}

static int build_job_get(const struct bel_bound *bound, struct bel_command *out,
                         struct bel_why *why)
{
    int err = check_number(bound, BEL_JOB_GET_COUNT, BEL_JOB_GET_COUNT_MAX, why);
    if (err) return err;
    out->job_get = (struct bel_job_get){.id = bound->values[BEL_JOB_TARGET_ID].text,
                                        .count = (uint32_t)bound->values[BEL_JOB_GET_COUNT].number,
                                        .cursor = bound->values[BEL_JOB_GET_CURSOR].text};
    return 0;
}

static int build_job_list(const struct bel_bound *bound, struct bel_command *out,
                          struct bel_why *why)
{
    int err = check_number(bound, BEL_JOB_LIST_COUNT, BEL_LIST_COUNT_MAX, why);
    if (err) return err;
    out->job_list =
        (struct bel_job_list){.has_state = bel__bound_has(bound, BEL_JOB_LIST_STATE),
                              .state = (enum bel_job_state)bound->values[BEL_JOB_LIST_STATE].number,
                              .count = (uint32_t)bound->values[BEL_JOB_LIST_COUNT].number,
                              .cursor = bound->values[BEL_JOB_LIST_CURSOR].text};
    return 0;
}

/* --- LIMIT --- */

static bool is_off(struct bel_view text)
{
    return text.bytes == 3 && strncasecmp(text.data, "off", 3) == 0;
}

/* Reads the time of a rate: a duration, or a unit alone for one of it. */
static int read_period(const char *text, size_t bytes, uint64_t *out_ms)
{
    char one[4] = "1";
    if (bytes == 0 || bytes > sizeof one - 2 || text[0] < 'a') {
        return bel_duration_parse(text, bytes, out_ms, NULL);
    }
    memcpy(one + 1, text, bytes);
    return bel_duration_parse(one, 1 + bytes, out_ms, NULL);
}

/* Reads a rate: a number, a slash and a duration; or off, for none. */
static int read_rate(struct bel_view text, struct bel_limit *out, struct bel_why *why)
{
    const char *slash = text.bytes == 0 ? NULL : memchr(text.data, '/', text.bytes);
    const char *start = text.data;
    int shown = (int)(text.bytes < SHOWN_MAX ? text.bytes : SHOWN_MAX);
    if (is_off(text)) return 0;
    if (slash != NULL) {
        size_t digits = (size_t)(slash - start), rest = text.bytes - digits - 1;
        if (bel__parse_u64(start, digits, 0, UINT64_MAX, &out->rate_count) == 0 &&
            read_period(slash + 1, rest, &out->rate_ms) == 0 &&
            (out->rate_count > 0 || out->rate_ms > 0)) {
            return 0;
        }
    }
    return bel__refusal(why, "BADARG", "RATE '%.*s': expected n/duration, such as 10/1s, or off",
                        shown, start == NULL ? "" : start);
}

static int read_breaker(const struct bel_bound_value *value, struct bel_limit *out,
                        struct bel_why *why)
{
    out->breaker_failures = value->number;
    if (value->number > 0 || is_off(value->text)) return 0;
    return bel__refusal(why, "BADARG", "BREAKER 0: expected a number from 1 on, or off");
}

/* Refuses options of a list with a resource, and options of a resource without one. */
static int check_limit(const struct bel_bound *bound, struct bel_why *why)
{
    bool has_resource = bel__bound_has(bound, BEL_LIMIT_RESOURCE);
    bool is_alone =
        bel__bound_has(bound, BEL_LIMIT_CLEARS) || bel__bound_has(bound, BEL_LIMIT_DELETES);
    for (size_t i = BEL_LIMIT_RATE; i <= BEL_LIMIT_MAX; i++) {
        if (!bel__bound_has(bound, i)) continue;
        if (!has_resource) {
            return bel__refusal(why, "ERR", "%s needs a resource: LIMIT resource %s ...",
                                name_of(bound, i), name_of(bound, i));
        }
        if (is_alone) {
            return bel__refusal(why, "ERR", "%s excludes CLEAR and DELETE", name_of(bound, i));
        }
    }
    if (bel__bound_has(bound, BEL_LIMIT_DELETES) && !has_resource) {
        return bel__refusal(why, "ERR", "DELETE needs a resource");
    }
    if (has_resource || is_alone) {
        size_t paged = bel__bound_has(bound, BEL_LIMIT_COUNT) ? BEL_LIMIT_COUNT : BEL_LIMIT_CURSOR;
        if (bel__bound_has(bound, paged)) {
            return bel__refusal(why, "ERR", "%s is for a list of all resources: LIMIT [COUNT n]",
                                name_of(bound, paged));
        }
    }
    int err = exclude(bound, BEL_LIMIT_CLEARS, BEL_LIMIT_DELETES, why);
    for (size_t i = BEL_LIMIT_OPEN; i <= BEL_LIMIT_MAX && err == 0; i++) {
        if (bel__bound_has(bound, i) && !bel__bound_has(bound, BEL_LIMIT_BREAKER)) {
            err = bel__refusal(why, "ERR", "%s needs BREAKER", name_of(bound, i));
        }
        if (err == 0) err = check_number(bound, i, UINT64_MAX, why);
    }
    return err == 0 ? check_number(bound, BEL_LIMIT_COUNT, BEL_LIST_COUNT_MAX, why) : err;
}

static enum bel_limit_action action_of(const struct bel_bound *bound)
{
    bool has_resource = bel__bound_has(bound, BEL_LIMIT_RESOURCE);
    if (bel__bound_has(bound, BEL_LIMIT_DELETES)) return BEL_LIMIT_DELETE;
    if (!bel__bound_has(bound, BEL_LIMIT_CLEARS)) {
        return has_resource ? BEL_LIMIT_SET : BEL_LIMIT_LIST;
    }
    return has_resource ? BEL_LIMIT_CLEAR : BEL_LIMIT_CLEAR_ALL;
}

static int build_limit(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    const struct bel_bound_value *values = bound->values;
    int err = check_limit(bound, why);
    if (err) return err;
    struct bel_view cursor = values[BEL_LIMIT_CURSOR].text;
    if (cursor.bytes == 1 && *(const char *)cursor.data == '0') cursor = (struct bel_view){0};
    out->limit = (struct bel_limit){
        .action = action_of(bound),
        .resource = values[BEL_LIMIT_RESOURCE].text,
        .has_rate = bel__bound_has(bound, BEL_LIMIT_RATE),
        .has_burst = bel__bound_has(bound, BEL_LIMIT_BURST),
        .has_concurrency = bel__bound_has(bound, BEL_LIMIT_CONCURRENCY),
        .has_until = bel__bound_has(bound, BEL_LIMIT_UNTIL),
        .has_breaker = bel__bound_has(bound, BEL_LIMIT_BREAKER),
        .burst = values[BEL_LIMIT_BURST].number,
        .concurrency = values[BEL_LIMIT_CONCURRENCY].number,
        .until_ms = values[BEL_LIMIT_UNTIL].number,
        .breaker_open_ms = values[BEL_LIMIT_OPEN].number,
        .breaker_max_ms = values[BEL_LIMIT_MAX].number,
        .count = (uint32_t)values[BEL_LIMIT_COUNT].number,
        .cursor = cursor,
    };
    if (out->limit.has_rate) err = read_rate(values[BEL_LIMIT_RATE].text, &out->limit, why);
    if (err == 0 && out->limit.has_breaker) {
        err = read_breaker(&values[BEL_LIMIT_BREAKER], &out->limit, why);
    }
    return err;
}

static const struct {
    build_fn *build; /* NULL: not a command of the backend */
    enum bel_verb verb;
} builds[BEL_COMMANDS] = {
    [BEL_COMMAND_SCHEDULE] = {build_schedule, BEL_VERB_SCHEDULE},
    [BEL_COMMAND_CANCEL] = {build_cancel, BEL_VERB_CANCEL},
    [BEL_COMMAND_RESCHEDULE] = {build_reschedule, BEL_VERB_RESCHEDULE},
    [BEL_COMMAND_GET] = {build_target, BEL_VERB_GET},
    [BEL_COMMAND_CLAIM] = {build_claim, BEL_VERB_CLAIM},
    [BEL_COMMAND_ACK] = {build_ack, BEL_VERB_ACK},
    [BEL_COMMAND_FAIL] = {build_fail, BEL_VERB_FAIL},
    [BEL_COMMAND_RELEASE] = {build_release, BEL_VERB_RELEASE},
    [BEL_COMMAND_EXTEND] = {build_extend, BEL_VERB_EXTEND},
    [BEL_COMMAND_LIST] = {build_list, BEL_VERB_LIST},
    [BEL_COMMAND_REVIVE] = {build_revive, BEL_VERB_REVIVE},
    [BEL_COMMAND_PURGE] = {build_purge, BEL_VERB_PURGE},
    [BEL_COMMAND_TOPICS] = {build_nothing, BEL_VERB_TOPICS},
    [BEL_COMMAND_TOPIC] = {build_target, BEL_VERB_TOPIC},
    [BEL_COMMAND_CONFIGURE] = {build_configure, BEL_VERB_CONFIGURE},
    [BEL_COMMAND_PAUSE] = {build_target, BEL_VERB_PAUSE},
    [BEL_COMMAND_RESUME] = {build_target, BEL_VERB_RESUME},
    [BEL_COMMAND_EXPLAIN] = {build_target, BEL_VERB_EXPLAIN},
    [BEL_COMMAND_AGENDA] = {build_agenda, BEL_VERB_AGENDA},
    [BEL_COMMAND_LIMIT] = {build_limit, BEL_VERB_LIMIT},
    [BEL_COMMAND_JOB_SUBMIT] = {build_job_submit, BEL_VERB_JOB_SUBMIT},
    [BEL_COMMAND_JOB_GET] = {build_job_get, BEL_VERB_JOB_GET},
    [BEL_COMMAND_JOB_CANCEL] = {build_job_target, BEL_VERB_JOB_CANCEL},
    [BEL_COMMAND_JOB_LIST] = {build_job_list, BEL_VERB_JOB_LIST},
    [BEL_COMMAND_JOB_PAUSE] = {build_job_target, BEL_VERB_JOB_PAUSE},
    [BEL_COMMAND_JOB_RESUME] = {build_job_target, BEL_VERB_JOB_RESUME},
};

bool bel__build_has(const struct bel_command_entry *entry, enum bel_verb *out)
{
    size_t place = (size_t)(entry - bel__commands);
    if (builds[place].build == NULL) return false;
    *out = builds[place].verb;
    return true;
}

int bel__build(const struct bel_bound *bound, struct bel_command *out, struct bel_why *why)
{
    size_t place = (size_t)(bound->entry - bel__commands);
    assert(builds[place].build != NULL);
    out->verb = builds[place].verb;
    return builds[place].build(bound, out, why);
}
