/* SPDX-License-Identifier: MIT */

/*
 * Each verb prints the fields that can differ between commands; fields with defaults are left out.
 */
#include "transcript.h"

#include <inttypes.h>
#include <string.h>

static void print_view(FILE *out, const char *before, struct bel_view view)
{
    if (view.bytes == 0) return;
    (void)fprintf(out, "%s%.*s", before, (int)view.bytes, (const char *)view.data);
}

static void print_ms(FILE *out, const char *before, uint64_t ms)
{
    if (ms > 0) (void)fprintf(out, "%s%" PRIu64 "ms", before, ms);
}

static void print_time(FILE *out, const char *before, struct bel_wall time, int64_t epoch_ms)
{
    (void)fprintf(out, "%s%+" PRId64, before, time.ms - epoch_ms);
}

static void print_recurrence(FILE *out, const struct bel_recurrence *plan, int64_t epoch_ms)
{
    static const char *const misfires[] = {"skip", "last", "all"};
    static const char *const overlaps[] = {"skip", "queue", "allow"};
    if (plan->rule.bytes == 0) return;
    print_view(out, " plan ", plan->rule);
    if (plan->mode == BEL_PLAN_DELAY) (void)fprintf(out, " mode delay");
    (void)fprintf(out, " misfire %s overlap %s", misfires[plan->misfire], overlaps[plan->overlap]);
    if (plan->count > 0) (void)fprintf(out, " count %" PRIu64, plan->count);
    if (plan->has_until) print_time(out, " until ", plan->until, epoch_ms);
    print_ms(out, " spread ", plan->spread_ms);
}

static void print_schedule(FILE *out, const struct bel_schedule_spec *spec, int64_t epoch_ms)
{
    static const char *const conflicts[] = {"replace", "keep", "reject", "earliest", "latest"};
    print_view(out, " ", spec->topic);
    print_view(out, " id ", spec->id);
    if (spec->when == BEL_WHEN_IN) (void)fprintf(out, " in %" PRIu64 "ms", spec->delay_ms);
    if (spec->when == BEL_WHEN_AT) print_time(out, " at ", spec->at, epoch_ms);
    if (spec->has_priority) (void)fprintf(out, " priority %d", spec->priority);
    (void)fprintf(out, " conflict %s", conflicts[spec->conflict]);
    print_view(out, " group ", spec->group);
    print_view(out, " retry ", spec->retry);
    print_ms(out, " lease ", spec->lease_ms);
    print_ms(out, " expires ", spec->expires_ms);
    print_recurrence(out, &spec->plan, epoch_ms);
}

static void print_claim(FILE *out, const struct bel_claim *claim)
{
    for (size_t i = 0; i < claim->topics_count; i++) {
        print_view(out, " ", claim->topics[i]);
    }
    (void)fprintf(out, " count %u", claim->count);
    print_ms(out, " lease ", claim->lease_ms);
    print_ms(out, " wait ", claim->wait_ms);
}

static void print_reschedule(FILE *out, const struct bel_reschedule *command, int64_t epoch_ms)
{
    print_view(out, " ", command->topic);
    print_view(out, " ", command->id);
    if (command->when == BEL_WHEN_IN) (void)fprintf(out, " in %" PRIu64 "ms", command->delay_ms);
    if (command->when == BEL_WHEN_AT) print_time(out, " at ", command->at, epoch_ms);
}

static void print_fail(FILE *out, const struct bel_fail *command)
{
    static const char *const kinds[] = {"error", "resource", "limited"};
    print_view(out, " ", command->token);
    (void)fprintf(out, " kind %s%s", kinds[command->kind], command->dead ? " dead" : "");
    if (command->has_delay) (void)fprintf(out, " in %" PRIu64 "ms", command->delay_ms);
}

static void print_list(FILE *out, const struct bel_list_query *command, int64_t epoch_ms)
{
    print_view(out, " ", command->topic);
    if (command->has_state) (void)fprintf(out, " state %s", bel_state_name(command->state));
    if (command->has_from) print_time(out, " from ", command->from, epoch_ms);
    if (command->has_to) print_time(out, " to ", command->to, epoch_ms);
}

static void print_purge(FILE *out, const struct bel_purge *command)
{
    print_view(out, " ", command->topic);
    if (command->has_state) (void)fprintf(out, " state %s", bel_state_name(command->state));
}

static void print_views(FILE *out, const struct bel_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        print_view(out, " ", views[i]);
    }
}

static void print_configure(FILE *out, const struct bel_configure *command)
{
    print_view(out, " ", command->topic);
    for (size_t i = 0; i < command->settings_count; i++) {
        print_view(out, " ", command->settings[i].name);
        print_view(out, " ", command->settings[i].value);
    }
}

static void print_agenda(FILE *out, const struct bel_agenda *command, int64_t epoch_ms)
{
    print_view(out, " ", command->topic);
    if (command->has_from) print_time(out, " from ", command->from, epoch_ms);
    if (command->has_to) print_time(out, " to ", command->to, epoch_ms);
    print_ms(out, " step ", command->step_ms);
}

static void print_limit(FILE *out, const struct bel_limit *limit)
{
    static const char *const actions[] = {" list", "", " clear", " clear all", " delete"};
    print_view(out, " ", limit->resource);
    (void)fprintf(out, "%s", actions[limit->action]);
    if (limit->has_rate) {
        (void)fprintf(out, " rate %" PRIu64 "/%" PRIu64 "ms", limit->rate_count, limit->rate_ms);
    }
    if (limit->has_burst) (void)fprintf(out, " burst %" PRIu64, limit->burst);
    if (limit->has_concurrency) (void)fprintf(out, " concurrency %" PRIu64, limit->concurrency);
    if (limit->has_until) print_ms(out, " until ", limit->until_ms);
    if (limit->has_breaker) (void)fprintf(out, " breaker %" PRIu64, limit->breaker_failures);
    if (limit->count > 0) (void)fprintf(out, " count %" PRIu32, limit->count);
    print_view(out, " cursor ", limit->cursor);
}

static void print_rest(FILE *out, const struct bel_command *command, int64_t epoch_ms)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        print_schedule(out, &command->schedule, epoch_ms);
        return;
    case BEL_VERB_CLAIM:
        print_claim(out, &command->claim);
        return;
    case BEL_VERB_RESCHEDULE:
        print_reschedule(out, &command->reschedule, epoch_ms);
        return;
    case BEL_VERB_FAIL:
        print_fail(out, &command->fail);
        return;
    case BEL_VERB_LIST:
        print_list(out, &command->list, epoch_ms);
        return;
    case BEL_VERB_PURGE:
        print_purge(out, &command->purge);
        return;
    case BEL_VERB_CONFIGURE:
        print_configure(out, &command->configure);
        return;
    case BEL_VERB_AGENDA:
        print_agenda(out, &command->agenda, epoch_ms);
        return;
    case BEL_VERB_ACK:
        print_views(out, command->ack.tokens, command->ack.tokens_count);
        return;
    case BEL_VERB_CANCEL:
        print_view(out, " ", command->cancel.topic);
        print_views(out, command->cancel.ids, command->cancel.ids_count);
        return;
    case BEL_VERB_RELEASE:
        print_view(out, " ", command->release.token);
        if (command->release.has_delay) {
            (void)fprintf(out, " in %" PRIu64 "ms", command->release.delay_ms);
        }
        return;
    case BEL_VERB_EXTEND:
        print_view(out, " ", command->extend.token);
        print_ms(out, " ", command->extend.lease_ms);
        return;
    case BEL_VERB_LIMIT:
        print_limit(out, &command->limit);
        return;
    case BEL_VERB_TOPICS:
    case BEL_VERB_JOB_LIST:
        return;
    case BEL_VERB_JOB_SUBMIT:
        print_view(out, " ", command->job_submit.text);
        if (command->job_submit.is_replacement) (void)fprintf(out, " REPLACE");
        return;
    case BEL_VERB_JOB_GET:
        print_view(out, " ", command->job_get.id);
        return;
    case BEL_VERB_JOB_CANCEL:
    case BEL_VERB_JOB_PAUSE:
    case BEL_VERB_JOB_RESUME:
        print_view(out, " ", command->job_target.id);
        return;
    default:
        print_view(out, " ", command->target.topic);
        print_view(out, " ", command->target.id);
        return;
    }
}

void transcript_command(FILE *out, const struct bel_command *command, int64_t epoch_ms)
{
    (void)fprintf(out, "%s", bel_verb_name(command->verb));
    print_rest(out, command, epoch_ms);
    (void)fprintf(out, "\n");
}

void transcript_timer(FILE *out, const struct bel_timer *timer, int64_t epoch_ms)
{
    bool is_plan = timer->plan.rule.bytes > 0;
    print_view(out, "", timer->id);
    (void)fprintf(out, " %s", bel_state_name(timer->state));
    if (timer->state <= BEL_LEASED && (!is_plan || timer->has_next)) {
        print_time(out, " due ", timer->due, epoch_ms);
    }
    if (timer->state >= BEL_DONE) print_time(out, " finished ", timer->finished, epoch_ms);
    if (!is_plan) return;
    (void)fprintf(out, " made %" PRIu64 " skipped %" PRIu64 " missed %" PRIu64, timer->made,
                  timer->skipped, timer->missed);
}

static void print_deliveries(FILE *out, const struct bel_reply *reply, int64_t epoch_ms)
{
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        const struct bel_delivery *item = &reply->deliveries.items[i];
        print_view(out, i > 0 ? "; " : " ", item->topic);
        print_view(out, " ", item->id);
        print_view(out, " token ", item->token);
        print_time(out, " due ", item->due, epoch_ms);
        print_ms(out, " lease ", item->lease_ms);
    }
}

static void print_topic(FILE *out, const struct bel_topic *topic)
{
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (topic->counts[i] == 0) continue;
        (void)fprintf(out, " %s %" PRIu64, bel_state_name(i), topic->counts[i]);
    }
    (void)fprintf(out, " plans %" PRIu64 " age %" PRIu64, topic->plans, topic->oldest_age_ms);
}

static void print_job(FILE *out, const struct bel_job *job)
{
    print_view(out, " ", job->id);
    (void)fprintf(out, " %s [", bel_job_state_name(job->state));
    for (size_t i = 0; i < job->tasks_count; i++) {
        print_view(out, i > 0 ? " " : "", job->tasks[i].id);
        (void)fprintf(out, ":%s", bel_state_name(job->tasks[i].state));
    }
    (void)fprintf(out, "]");
}

static void print_answer(FILE *out, const struct heard *heard, int64_t epoch_ms)
{
    const struct bel_reply *reply = &heard->reply;
    switch (heard->verb) {
    case BEL_VERB_SCHEDULE:
        print_view(out, " ", reply->id);
        return;
    case BEL_VERB_CLAIM:
        print_deliveries(out, reply, epoch_ms);
        return;
    case BEL_VERB_TOPIC:
        print_topic(out, reply->topic);
        return;
    case BEL_VERB_FAIL:
        (void)fprintf(out, " %s", bel_state_name(reply->verdict.state));
        if (reply->verdict.state != BEL_SCHEDULED) return;
        print_time(out, " due ", reply->verdict.due, epoch_ms);
        return;
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
        for (size_t i = 0; i < reply->timers.count; i++) {
            (void)fprintf(out, i > 0 ? "; " : " ");
            transcript_timer(out, &reply->timers.items[i], epoch_ms);
        }
        return;
    case BEL_VERB_AGENDA:
        for (size_t i = 0; i < reply->steps.count; i++) {
            (void)fprintf(out, " %" PRIu64, reply->steps.items[i].count);
        }
        return;
    case BEL_VERB_TOPICS:
    case BEL_VERB_EXPLAIN:
        print_views(out, reply->names.items, reply->names.count);
        return;
    case BEL_VERB_CONFIGURE:
    case BEL_VERB_PAUSE:
    case BEL_VERB_RESUME:
        (void)fprintf(out, " ok");
        return;
    case BEL_VERB_JOB_SUBMIT:
        print_view(out, " ", reply->submitted.id);
        return;
    case BEL_VERB_JOB_GET:
        print_job(out, reply->job);
        return;
    case BEL_VERB_JOB_LIST:
        for (size_t i = 0; i < reply->jobs.count; i++) {
            print_job(out, &reply->jobs.items[i]);
        }
        return;
    default:
        (void)fprintf(out, " %" PRIu64, reply->count);
        return;
    }
}

void transcript_reply(FILE *out, const struct heard *heard, int64_t epoch_ms)
{
    (void)fprintf(out, "%s:", bel_verb_name(heard->verb));
    if (heard->reply.err) {
        (void)fprintf(out, " %s", bel_error_text(heard->reply.err));
    } else {
        print_answer(out, heard, epoch_ms);
    }
    (void)fprintf(out, "\n");
}
