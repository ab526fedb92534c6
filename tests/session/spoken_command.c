/* SPDX-License-Identifier: MIT */

/*
 * A client's half of the protocol: what is not said in a command is not said to the server either.
 */
#include "../check.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "spoken.h"

#include <string.h>

/* Words are counted while they are said. */
struct speech {
    struct bel_buffer words;
    unsigned count;
};

static void say(struct speech *speech, struct bel_view word)
{
    CHECK(bel__buffer_append_format(&speech->words, "$%zu\r\n", word.bytes) == 0);
    CHECK(bel__buffer_append(&speech->words, word.data, word.bytes) == 0);
    CHECK(bel__buffer_append(&speech->words, "\r\n", 2) == 0);
    speech->count++;
}

static void say_text(struct speech *speech, const char *text)
{
    say(speech, (struct bel_view){text, strlen(text)});
}

static void say_number(struct speech *speech, const char *name, uint64_t number)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%" PRIu64, number);
    say_text(speech, name);
    say_text(speech, digits);
}

static void say_number_unless_0(struct speech *speech, const char *name, uint64_t number)
{
    if (number > 0) say_number(speech, name, number);
}

static void say_time(struct speech *speech, const char *name, struct bel_wall time)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%" PRId64, time.ms);
    say_text(speech, name);
    say_text(speech, digits);
}

static void say_view(struct speech *speech, const char *name, struct bel_view view)
{
    if (view.bytes == 0) return;
    say_text(speech, name);
    say(speech, view);
}

static void say_views(struct speech *speech, const struct bel_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        say(speech, views[i]);
    }
}

static void say_word(struct speech *speech, size_t place, unsigned index)
{
    const struct bel_argument *argument = &bel__commands[BEL_COMMAND_SCHEDULE].arguments[place];
    say_text(speech, argument->name);
    say_text(speech, argument->words[index]);
}

static void say_when(struct speech *speech, enum bel_when when, uint64_t delay_ms,
                     struct bel_wall at)
{
    if (when == BEL_WHEN_IN) say_number(speech, "IN", delay_ms);
    if (when == BEL_WHEN_AT) say_time(speech, "AT", at);
}

static void say_plan(struct speech *speech, const struct bel_recurrence *plan)
{
    static const char *const kinds[] = {
        [BEL_PLAN_EVERY] = "EVERY", [BEL_PLAN_CRON] = "CRON", [BEL_PLAN_RRULE] = "RRULE"};
    if (plan->rule.bytes == 0) return;
    say_view(speech, kinds[plan->kind], plan->rule);
    say_view(speech, "TZ", plan->zone);
    say_word(speech, BEL_SCHEDULE_MODE, plan->mode);
    say_word(speech, BEL_SCHEDULE_GAP, plan->gap);
    say_word(speech, BEL_SCHEDULE_FOLD, plan->fold);
    say_word(speech, BEL_SCHEDULE_MISFIRE, plan->misfire);
    say_word(speech, BEL_SCHEDULE_OVERLAP, plan->overlap);
    if (plan->has_until) say_time(speech, "UNTIL", plan->until);
    say_number_unless_0(speech, "COUNT", plan->count);
    say_number_unless_0(speech, "SPREAD", plan->spread_ms);
}

static void say_schedule(struct speech *speech, const struct bel_schedule_spec *spec)
{
    say(speech, spec->topic);
    say(speech, spec->payload);
    say_view(speech, "ID", spec->id);
    say_when(speech, spec->when, spec->delay_ms, spec->at);
    say_plan(speech, &spec->plan);
    if (spec->has_priority) say_number(speech, "PRIORITY", spec->priority);
    say_word(speech, BEL_SCHEDULE_CONFLICT, spec->conflict);
    say_view(speech, "GROUP", spec->group);
    say_view(speech, "RESOURCE", spec->resource);
    say_view(speech, "CORRELATION", spec->correlation);
    for (size_t i = 0; i < spec->headers_count; i++) {
        say_text(speech, "HEADER");
        say(speech, spec->headers[i].name);
        say(speech, spec->headers[i].value);
    }
    if (spec->is_imported) say_text(speech, "IMPORTED");
    say_view(speech, "RETRY", spec->retry);
    say_number_unless_0(speech, "LEASE", spec->lease_ms);
    say_number_unless_0(speech, "EXPIRES", spec->expires_ms);
}

static void say_claim(struct speech *speech, const struct bel_claim *claim)
{
    say_views(speech, claim->topics, claim->topics_count);
    say_number_unless_0(speech, "COUNT", claim->count);
    say_number_unless_0(speech, "LEASE", claim->lease_ms);
    say_number_unless_0(speech, "WAIT", claim->wait_ms);
    say_view(speech, "WORKER", claim->worker);
}

static void say_fail(struct speech *speech, const struct bel_fail *fail)
{
    static const char *const kinds[] = {[BEL_FAIL_ERROR] = "error",
                                        [BEL_FAIL_RESOURCE] = "resource",
                                        [BEL_FAIL_LIMITED] = "limited"};
    say(speech, fail->token);
    say_view(speech, "REASON", fail->reason);
    say_text(speech, "KIND");
    say_text(speech, kinds[fail->kind]);
    if (fail->dead) say_text(speech, "DEAD");
    if (fail->has_delay) say_number(speech, "IN", fail->delay_ms);
}

static void say_list(struct speech *speech, const struct bel_list_query *query)
{
    say(speech, query->topic);
    if (query->has_state) {
        say_text(speech, "STATE");
        say_text(speech, bel_state_name(query->state));
    }
    if (query->has_from) say_time(speech, "FROM", query->from);
    if (query->has_to) say_time(speech, "TO", query->to);
    say_number_unless_0(speech, "COUNT", query->count);
    say_view(speech, "CURSOR", query->cursor);
}

static void say_agenda(struct speech *speech, const struct bel_agenda *agenda)
{
    if (agenda->has_from) say_time(speech, "FROM", agenda->from);
    if (agenda->has_to) say_time(speech, "TO", agenda->to);
    say_number_unless_0(speech, "STEP", agenda->step_ms);
    say_view(speech, "TOPIC", agenda->topic);
}

static void say_limit(struct speech *speech, const struct bel_limit *limit)
{
    char text[64];
    bool is_one = limit->action != BEL_LIMIT_LIST && limit->action != BEL_LIMIT_CLEAR_ALL;
    if (is_one) say(speech, limit->resource);
    if (limit->action == BEL_LIMIT_DELETE) say_text(speech, "DELETE");
    if (limit->action == BEL_LIMIT_CLEAR || limit->action == BEL_LIMIT_CLEAR_ALL) {
        say_text(speech, "CLEAR");
    }
    if (limit->action == BEL_LIMIT_LIST) {
        say_number_unless_0(speech, "COUNT", limit->count);
        say_view(speech, "CURSOR", limit->cursor);
    }
    if (limit->action != BEL_LIMIT_SET) return;
    if (limit->has_rate) {
        (void)snprintf(text, sizeof text, "%" PRIu64 "/%" PRIu64 "ms", limit->rate_count,
                       limit->rate_ms);
        say_text(speech, "RATE");
        say_text(speech, limit->rate_count == 0 && limit->rate_ms == 0 ? "off" : text);
    }
    if (limit->has_burst) say_number(speech, "BURST", limit->burst);
    if (limit->has_concurrency) say_number(speech, "CONCURRENCY", limit->concurrency);
    if (limit->has_until) say_number(speech, "UNTIL", limit->until_ms);
    if (!limit->has_breaker) return;
    if (limit->breaker_failures > 0) {
        say_number(speech, "BREAKER", limit->breaker_failures);
    } else {
        say_text(speech, "BREAKER");
        say_text(speech, "off");
    }
    say_number_unless_0(speech, "OPEN", limit->breaker_open_ms);
    say_number_unless_0(speech, "MAX", limit->breaker_max_ms);
}

static void say_leases(struct speech *speech, const struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_ACK:
        say_views(speech, command->ack.tokens, command->ack.tokens_count);
        if (command->ack.has_result) {
            say_text(speech, "RESULT");
            say(speech, command->ack.result);
        }
        break;
    case BEL_VERB_FAIL:
        say_fail(speech, &command->fail);
        break;
    case BEL_VERB_RELEASE:
        say(speech, command->release.token);
        if (command->release.has_delay) say_number(speech, "IN", command->release.delay_ms);
        break;
    default: {
        char digits[32];
        (void)snprintf(digits, sizeof digits, "%" PRIu64, command->extend.lease_ms);
        say(speech, command->extend.token);
        if (command->extend.lease_ms > 0) say_text(speech, digits);
        break;
    }
    }
}

static void say_configure(struct speech *speech, const struct bel_configure *configure)
{
    say(speech, configure->topic);
    for (size_t i = 0; i < configure->settings_count; i++) {
        say(speech, configure->settings[i].name);
        say(speech, configure->settings[i].value);
    }
}

static void say_target(struct speech *speech, const struct bel_command *command)
{
    say(speech, command->target.topic);
    if (command->verb == BEL_VERB_REVIVE && command->target.id.bytes == 0) {
        say_text(speech, "*");
    } else if (command->verb == BEL_VERB_GET || command->verb == BEL_VERB_EXPLAIN ||
               command->verb == BEL_VERB_REVIVE) {
        say(speech, command->target.id);
        if (command->verb == BEL_VERB_EXPLAIN) say_text(speech, "REASON");
    }
}

static void say_all(struct speech *speech, const struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        say_schedule(speech, &command->schedule);
        break;
    case BEL_VERB_CANCEL:
        say(speech, command->cancel.topic);
        say_views(speech, command->cancel.ids, command->cancel.ids_count);
        break;
    case BEL_VERB_RESCHEDULE:
        say(speech, command->reschedule.topic);
        say(speech, command->reschedule.id);
        say_when(speech, command->reschedule.when, command->reschedule.delay_ms,
                 command->reschedule.at);
        break;
    case BEL_VERB_CLAIM:
        say_claim(speech, &command->claim);
        break;
    case BEL_VERB_ACK:
    case BEL_VERB_FAIL:
    case BEL_VERB_RELEASE:
    case BEL_VERB_EXTEND:
        say_leases(speech, command);
        break;
    case BEL_VERB_LIST:
        say_list(speech, &command->list);
        break;
    case BEL_VERB_PURGE:
        say(speech, command->purge.topic);
        if (!command->purge.has_state) break;
        say_text(speech, "STATE");
        say_text(speech, bel_state_name(command->purge.state));
        break;
    case BEL_VERB_CONFIGURE:
        say_configure(speech, &command->configure);
        break;
    case BEL_VERB_AGENDA:
        say_agenda(speech, &command->agenda);
        break;
    case BEL_VERB_LIMIT:
        say_limit(speech, &command->limit);
        break;
    case BEL_VERB_TOPICS:
        break;
    default:
        say_target(speech, command);
        break;
    }
}

void spoken_command(const struct bel_command *command, struct bel_buffer *out)
{
    struct speech speech = {.count = 0};
    bel__buffer_init(&speech.words, out->count_max);
    say_text(&speech, bel_verb_name(command->verb));
    say_all(&speech, command);
    CHECK(bel__buffer_append_format(out, "*%u\r\n", speech.count) == 0);
    CHECK(bel__buffer_append(out, bel__buffer_data(&speech.words), speech.words.count) == 0);
    bel__buffer_finish(&speech.words);
}
