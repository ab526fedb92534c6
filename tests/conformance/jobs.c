/* SPDX-License-Identifier: MIT */

/*
 * Jobs: graphs of tasks. Every task is in topic `t`, unless a case says otherwise.
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

/* --- phrases --- */

static const struct heard *submit_text(struct subject *s, const char *text)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT, .job_submit = {.text = view(text)}};
    return ask(s, &command);
}

/* Submits tasks: "a b c:a,b" are a, b, and c after both; "c:!a" runs if a fails, "c:?a" always. */
static int submit_job(struct subject *s, const char *id, const char *tasks)
{
    static const char *const marks = "!?";
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"id\":\"%s\",\"tasks\":[", id);
    bool is_first = true;
    for (const char *at = tasks; *at != 0; at += strspn(at, " ")) {
        size_t bytes = strcspn(at, " :");
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s{\"id\":\"%.*s\",\"topic\":\"t\"",
                             is_first ? "" : ",", (int)bytes, at);
        at += bytes;
        is_first = false;
        for (char before = ':'; *at == before; before = ',') {
            const char *on = at[1] == marks[0]   ? "failure"
                             : at[1] == marks[1] ? "always"
                                                 : "success";
            at += 1 + strspn(at + 1, marks);
            bytes = strcspn(at, " ,");
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "%s{\"task\":\"%.*s\",\"on\":\"%s\"}",
                                     before == ':' ? ",\"after\":[" : ",", (int)bytes, at, on);
            at += bytes;
            if (*at != ',') used += (size_t)snprintf(text + used, sizeof text - used, "]");
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "}");
        CHECK(used < sizeof text);
    }
    (void)snprintf(text + used, sizeof text - used, "]}");
    return submit_text(s, text)->reply.err;
}

static const struct bel_job *job_of(struct subject *s, const char *id)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_GET, .job_get = {.id = view(id)}};
    const struct heard *heard = ask(s, &command);
    return heard->reply.err == 0 ? heard->reply.job : NULL;
}

static int job_verb(struct subject *s, enum bel_verb verb, const char *id)
{
    struct bel_command command = {.verb = verb, .job_target = {.id = view(id)}};
    return ask(s, &command)->reply.err;
}

#define expect_job(s, id, is) (AT, expect_job_of(s, id, is))
static void expect_job_of(struct subject *s, const char *id, enum bel_job_state state)
{
    const struct bel_job *job = job_of(s, id);
    CHECK(job != NULL);
    CHECK_NOTE("%s is %s", id, bel_job_state_name(job->state));
    CHECK(job->state == state);
}

#define expect_task(s, job, task, state, why) (AT, expect_task_of(s, job, task, state, why))
static void expect_task_of(struct subject *s, const char *id, const char *task,
                           enum bel_state state, const char *why)
{
    const struct bel_job *job = job_of(s, id);
    CHECK(job != NULL);
    for (size_t i = 0; i < job->tasks_count; i++) {
        if (!is_text(job->tasks[i].id, task)) continue;
        CHECK_NOTE("%s/%s is %s: %.*s", id, task, bel_state_name(job->tasks[i].state),
                   (int)job->tasks[i].reason.bytes, (const char *)job->tasks[i].reason.data);
        CHECK(job->tasks[i].state == state);
        CHECK(why == NULL || is_text(job->tasks[i].reason, why));
        return;
    }
    CHECK(false);
}

static void expect_nothing(struct subject *s)
{
    expect_no_ids(claim(s, "t"));
}

/* --- dependencies --- */

static void a_chain_has_one_ready_task_at_a_time(struct subject *s)
{
    CHECK(submit_job(s, "c", "1 2:1 3:2") == 0);
    expect_claim(s, "t", "c/1");
    expect_nothing(s);
    ack(s, "c/1");
    expect_claim(s, "t", "c/2");
    expect_nothing(s);
    ack(s, "c/2");
    expect_claim(s, "t", "c/3");
    expect_job(s, "c", BEL_JOB_RUNNING);
    ack(s, "c/3");
    expect_job(s, "c", BEL_JOB_DONE);
}

static void a_fan_in_waits_for_all(struct subject *s)
{
    CHECK(submit_job(s, "d", "1 2:1 3:1 4:2,3") == 0);
    expect_claim(s, "t", "d/1");
    ack(s, "d/1");
    expect_claim(s, "t", "d/2", "d/3");
    ack(s, "d/3");
    expect_nothing(s);
    ack(s, "d/2");
    expect_claim(s, "t", "d/4");
}

static void a_fan_out_starts_all_at_once(struct subject *s)
{
    char tasks[256] = "a", ids[21][8];
    const char *expected[23] = {"t"};
    for (int i = 0; i < 20; i++) {
        (void)snprintf(tasks + strlen(tasks), sizeof tasks - strlen(tasks), " %02d:a", i);
        (void)snprintf(ids[i], sizeof ids[i], "f/%02d", i);
        expected[1 + i] = ids[i];
    }
    CHECK(submit_job(s, "f", tasks) == 0);
    expect_claim(s, "t", "f/a");
    ack(s, "f/a");
    AT;
    expect_claim_of(s, expected);
}

static void a_failure_skips_what_needs_success(struct subject *s)
{
    CHECK(submit_job(s, "d", "1 2:1 3:1 4:2,3 5:4") == 0);
    expect_claim(s, "t", "d/1");
    ack(s, "d/1");
    expect_claim(s, "t", "d/2");
    fail(s, "d/2", .dead = true);
    expect_task(s, "d", "4", BEL_SKIPPED, "task 2 is dead");
    expect_task(s, "d", "5", BEL_SKIPPED, "task 4 is skipped");
    expect_claim(s, "t", "d/3");
    ack(s, "d/3");
    expect_job(s, "d", BEL_JOB_FAILED);
}

static void edges_say_which_end_they_wait_for(struct subject *s)
{
    CHECK(submit_job(s, "p", "a yes:a no:!a any:?a") == 0);
    expect_claim(s, "t", "p/a");
    ack(s, "p/a");
    expect_task(s, "p", "no", BEL_SKIPPED, "task a is done");
    expect_claim(s, "t", "p/yes", "p/any");
    CHECK(submit_job(s, "q", "a yes:a no:!a any:?a") == 0);
    expect_claim(s, "t", "q/a");
    fail(s, "q/a", .dead = true);
    expect_task(s, "q", "yes", BEL_SKIPPED, "task a is dead");
    expect_claim(s, "t", "q/no", "q/any");
}

static void a_skipped_task_satisfies_only_always(struct subject *s)
{
    CHECK(submit_job(s, "s", "a b:a c:!b d:?b") == 0);
    expect_claim(s, "t", "s/a");
    fail(s, "s/a", .dead = true);
    expect_task(s, "s", "b", BEL_SKIPPED, NULL);
    expect_task(s, "s", "c", BEL_SKIPPED, NULL);
    expect_claim(s, "t", "s/d");
}

static void a_handled_failure_does_not_fail_the_job(struct subject *s)
{
    CHECK(submit_job(s, "h", "a b:!a") == 0);
    expect_claim(s, "t", "h/a");
    fail(s, "h/a", .dead = true);
    expect_claim(s, "t", "h/b");
    ack(s, "h/b");
    expect_job(s, "h", BEL_JOB_DONE);
}

static void a_cancelled_task_is_a_failure(struct subject *s)
{
    CHECK(submit_job(s, "c", "a b:a c:!a") == 0);
    CHECK(cancel(s, "t", "c/a") == 1);
    expect_task(s, "c", "b", BEL_SKIPPED, "task a is cancelled");
    expect_claim(s, "t", "c/c");
}

static void an_empty_job_is_done_at_once(struct subject *s)
{
    CHECK(submit_job(s, "e", "") == 0);
    expect_job(s, "e", BEL_JOB_DONE);
}

static void a_task_is_retried_before_its_dependents_hear(struct subject *s)
{
    CHECK(submit_job(s, "r", "a b:a") == 0);
    expect_claim(s, "t", "r/a");
    fail(s, "r/a", .in = (uint64_t)(5 * SECOND));
    expect_task(s, "r", "b", BEL_BLOCKED, NULL);
    advance(s, (uint64_t)(5 * SECOND));
    expect_claim(s, "t", "r/a");
    ack(s, "r/a");
    expect_claim(s, "t", "r/b");
}

static void ended_tasks_never_change(struct subject *s)
{
    CHECK(submit_job(s, "n", "a b:a") == 0);
    expect_claim(s, "t", "n/a");
    CHECK(ack(s, "n/a") == 1);
    CHECK(ack(s, "n/a") == 0);
    CHECK(fail_error(s, "n/a") == BEL_ESTALE);
    CHECK(cancel(s, "t", "n/a") == 0);
    CHECK(revive(s, "t", "n/a") == 0);
    expect_task(s, "n", "a", BEL_DONE, NULL);
}

/* --- refusals --- */

static void a_bad_graph_changes_nothing(struct subject *s)
{
    const struct heard *cycle =
        submit_text(s, "{\"id\":\"x\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\",\"after\":[\"3\"]},"
                       "{\"id\":\"2\",\"topic\":\"t\",\"after\":[\"1\"]},"
                       "{\"id\":\"3\",\"topic\":\"t\",\"after\":[\"2\"]}]}");
    CHECK(cycle->reply.err == BEL_EINVAL && strstr(cycle->reply.why, " -> ") != NULL);
    CHECK(submit_job(s, "x", "1:1") == BEL_EINVAL);
    CHECK(submit_job(s, "x", "1 1") == BEL_EINVAL);
    CHECK(submit_job(s, "x", "1:2") == BEL_EINVAL);
    CHECK(job_of(s, "x") == NULL);
    expect_nothing(s);
}

static void ids_are_unique(struct subject *s)
{
    schedule(s, "t", .id = "j/b", .in = (uint64_t)HOUR);
    CHECK(submit_job(s, "j", "a b") == BEL_ECONFLICT);
    CHECK(job_of(s, "j") == NULL);
    CHECK(cancel(s, "t", "j/b") == 1);
    CHECK(submit_job(s, "j", "a b") == 0);
    CHECK(submit_job(s, "j", "a") == BEL_ECONFLICT);
    CHECK(schedule_error(s, "t", .id = "j/a") == BEL_ECONFLICT);
}

static void blocked_tasks_count_for_depth(struct subject *s)
{
    configure(s, "t", "depth", "3");
    CHECK(submit_job(s, "d", "1 2:1 3:2 4:3") == BEL_EFULL);
    CHECK(job_of(s, "d") == NULL && topic(s, "t")->counts[BEL_BLOCKED] == 0);
    CHECK(submit_job(s, "d", "1 2:1 3:2") == 0);
    CHECK(schedule_error(s, "t", .id = "x") == BEL_EFULL);
}

/* --- verbs of jobs --- */

static void cancel_ends_all_tasks(struct subject *s)
{
    CHECK(submit_job(s, "c", "a b c:a") == 0);
    expect_claim(s, "t", "c/a");
    CHECK(job_verb(s, BEL_VERB_JOB_CANCEL, "c") == 0);
    expect_job(s, "c", BEL_JOB_CANCELLED);
    CHECK(ack(s, "c/a") == 0);
    expect_nothing(s);
    CHECK(job_verb(s, BEL_VERB_JOB_CANCEL, "unknown") == BEL_ENOTFOUND);
}

static void a_paused_job_starts_nothing(struct subject *s)
{
    CHECK(submit_job(s, "p", "a b:a") == 0);
    expect_claim(s, "t", "p/a");
    CHECK(job_verb(s, BEL_VERB_JOB_PAUSE, "p") == 0);
    expect_job(s, "p", BEL_JOB_PAUSED);
    CHECK(ack(s, "p/a") == 1);
    expect_nothing(s);
    CHECK(job_verb(s, BEL_VERB_JOB_RESUME, "p") == 0);
    expect_claim(s, "t", "p/b");
}

static void a_timeout_fails_the_job(struct subject *s)
{
    CHECK(submit_text(s, "{\"id\":\"o\",\"timeout\":\"10s\",\"tasks\":["
                         "{\"id\":\"a\",\"topic\":\"t\"}]}")
              ->reply.err == 0);
    expect_claim(s, "t", "o/a");
    advance(s, (uint64_t)(10 * SECOND));
    advance(s, 1);
    expect_job(s, "o", BEL_JOB_FAILED);
    CHECK(is_text(job_of(s, "o")->reason, "timeout"));
    CHECK(ack(s, "o/a") == 0);
}

static void ended_jobs_are_kept_for_a_day(struct subject *s)
{
    CHECK(submit_job(s, "k", "a") == 0);
    expect_claim(s, "t", "k/a");
    CHECK(ack_result(s, "k/a", "found") == 1);
    advance(s, (uint64_t)(DAY - MINUTE));
    CHECK(is_text(timer_of(s, "t", "k/a")->result, "found"));
    CHECK(purge(s, "t") == 0);
    advance(s, (uint64_t)(2 * MINUTE));
    CHECK(job_of(s, "k") == NULL);
    expect_gone(s, "t", "k/a");
}

static void results_go_to_the_next_tasks(struct subject *s)
{
    CHECK(submit_job(s, "r", "a b d c:b,a,d") == 0);
    expect_claim(s, "t", "r/a", "r/b", "r/d");
    CHECK(ack_result(s, "r/a", "one") == 1);
    CHECK(ack(s, "r/b") == 1);
    CHECK(ack_result(s, "r/d", "") == 1);
    const struct heard *heard = claim(s, "t");
    CHECK(heard->reply.deliveries.count == 1);
    const struct bel_delivery *delivery = &heard->reply.deliveries.items[0];
    CHECK(delivery->results_count == 3);
    CHECK(is_text(delivery->results[0].task, "b") && !delivery->results[0].has_result);
    CHECK(is_text(delivery->results[1].task, "a") && delivery->results[1].has_result);
    CHECK(is_text(delivery->results[1].result, "one"));
    CHECK(is_text(delivery->results[2].task, "d") && delivery->results[2].has_result);
    CHECK(delivery->results[2].result.bytes == 0); /* an empty result is a result */
}

/* --- order, pauses, and jobs that follow --- */

static void blocked_tasks_are_listed_by_sequence(struct subject *s)
{
    CHECK(submit_text(s, "{\"id\":\"l\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},"
                         "{\"id\":\"b\",\"topic\":\"t\",\"after\":[\"a\"],\"priority\":200},"
                         "{\"id\":\"c\",\"topic\":\"t\",\"after\":[\"a\"],\"priority\":1}]}")
              ->reply.err == 0);
    expect_list(s, "t", "l/a", "l/b", "l/c");
}

static void lower_scores_go_first(struct subject *s)
{
    CHECK(submit_text(s, "{\"id\":\"o\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\",\"cost\":20},"
                         "{\"id\":\"b\",\"topic\":\"t\",\"cost\":10,\"priority\":200},"
                         "{\"id\":\"c\",\"topic\":\"t\",\"cost\":10,\"priority\":1}]}")
              ->reply.err == 0);
    expect_claim(s, "t", "o/c", "o/b", "o/a");
}

static void a_job_with_a_pace_pauses_after_a_task(struct subject *s)
{
    CHECK(submit_text(s, "{\"id\":\"p\",\"pace\":\"10s\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},"
                         "{\"id\":\"b\",\"topic\":\"t\",\"after\":[\"a\"]}]}")
              ->reply.err == 0);
    expect_claim(s, "t", "p/a");
    ack(s, "p/a");
    advance(s, (uint64_t)(9 * SECOND));
    expect_nothing(s);
    advance(s, (uint64_t)SECOND);
    expect_claim(s, "t", "p/b");
}

static void a_job_that_follows_begins_after_the_cooldown(struct subject *s)
{
    CHECK(submit_text(
              s, "{\"id\":\"f\",\"cooldown\":\"10s\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"}],"
                 "\"then\":[{\"on\":\"failure\",\"job\":{\"tasks\":[]}},"
                 "{\"job\":{\"id\":\"g\",\"tasks\":[{\"id\":\"b\",\"topic\":\"t\"}]}}]}")
              ->reply.err == 0);
    CHECK(submit_job(s, "g", "a") == BEL_ECONFLICT);
    expect_claim(s, "t", "f/a");
    ack(s, "f/a");
    expect_job(s, "f", BEL_JOB_DONE);
    advance(s, (uint64_t)(9 * SECOND));
    CHECK(job_of(s, "g") == NULL);
    advance(s, (uint64_t)SECOND);
    expect_claim(s, "t", "g/b");
    const struct bel_job *follower = job_of(s, "g");
    CHECK(follower != NULL && is_text(follower->parent, "f"));
    CHECK(job_of(s, "f.1") == NULL);
    CHECK(submit_job(s, "f.1", "a") == 0); /* nothing reserves the id any more */
}

static void ids_that_will_not_be_used_are_free_before_the_cooldown(struct subject *s)
{
    CHECK(submit_text(
              s, "{\"id\":\"f\",\"cooldown\":\"10s\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"}],"
                 "\"then\":[{\"on\":\"failure\",\"job\":{\"id\":\"g\",\"tasks\":[],"
                 "\"then\":[{\"job\":{\"id\":\"h\",\"tasks\":[]}}]}},"
                 "{\"job\":{\"id\":\"i\",\"tasks\":[{\"id\":\"b\",\"topic\":\"t\"}]}}]}")
              ->reply.err == 0);
    expect_claim(s, "t", "f/a");
    CHECK(submit_job(s, "g", "a") == BEL_ECONFLICT);
    CHECK(submit_job(s, "h", "a") == BEL_ECONFLICT);
    ack(s, "f/a");
    expect_job(s, "f", BEL_JOB_DONE);
    advance(s, (uint64_t)SECOND);
    CHECK(submit_job(s, "g", "a") == 0);
    CHECK(submit_job(s, "h", "a") == 0);
    CHECK(submit_job(s, "i", "a") == BEL_ECONFLICT);
    advance(s, (uint64_t)(8 * SECOND));
    CHECK(job_of(s, "i") == NULL);
    advance(s, (uint64_t)SECOND);
    const struct bel_job *follower = job_of(s, "i");
    CHECK(follower != NULL && is_text(follower->parent, "f"));
    expect_job(s, "g", BEL_JOB_RUNNING); /* the follower took no id of another job */
}

static void a_replacement_makes_tokens_stale(struct subject *s)
{
    CHECK(submit_job(s, "r", "a b:a c:b") == 0);
    expect_claim(s, "t", "r/a");
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    command.job_submit = (struct bel_job_submit){
        .text = view("{\"id\":\"r\",\"tasks\":[{\"id\":\"b\",\"topic\":\"t\"}]}"),
        .is_replacement = true};
    CHECK(ask(s, &command)->reply.err == 0);
    CHECK(ack(s, "r/a") == 0);
    expect_gone(s, "t", "r/a");
    expect_gone(s, "t", "r/c");
    expect_claim(s, "t", "r/b");
    ack(s, "r/b");
    expect_job(s, "r", BEL_JOB_DONE);
}

/* --- recurring jobs --- */

/* Submits the job `h` of every hour, with one task `a`. */
static int submit_hourly(struct subject *s, const char *policies, const char *topic, bool replaces)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"h\",\"every\":\"1h\",%s,\"tasks\":[{\"id\":\"a\","
                   "\"topic\":\"%s\"}]}",
                   policies, topic);
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    command.job_submit = (struct bel_job_submit){.text = view(text), .is_replacement = replaces};
    return ask(s, &command)->reply.err;
}

/* Returns the id of the task of an hour after START. */
static const char *task_at(int hour)
{
    static char ids[8][64];
    static unsigned at;
    char *id = ids[at++ % 8];
    (void)snprintf(id, sizeof ids[0], "h@%lld/a", (long long)(START + hour * HOUR));
    return id;
}

#define expect_times(s, made, skipped, missed) (AT, expect_times_of(s, made, skipped, missed))
static void expect_times_of(struct subject *s, uint64_t made, uint64_t skipped, uint64_t missed)
{
    const struct bel_job *job = job_of(s, "h");
    CHECK(job != NULL);
    CHECK_NOTE("made %d, skipped %d, missed %d", (int)job->made, (int)job->skipped,
               (int)job->missed);
    CHECK(job->made == made && job->skipped == skipped && job->missed == missed);
}

static void work_hour(struct subject *s, int hour)
{
    expect_claim(s, "t", task_at(hour));
    ack(s, task_at(hour));
    turn(s);
}

static void pass_hours(struct subject *s, int hours)
{
    for (int i = 0; i < hours; i++) {
        advance(s, (uint64_t)HOUR);
    }
}

static void a_recurring_job_ends_with_its_last_job(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":2", "t", false) == 0);
    expect_job(s, "h", BEL_JOB_SCHEDULED);
    pass_hours(s, 1);
    work_hour(s, 1);
    pass_hours(s, 1);
    expect_times(s, 2, 0, 0);
    expect_job(s, "h", BEL_JOB_SCHEDULED);
    work_hour(s, 2);
    expect_job(s, "h", BEL_JOB_DONE);
    expect_times(s, 2, 0, 0);
}

static void overlap_skips_times_of_a_job(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":9,\"overlap\":\"skip\"", "t", false) == 0);
    pass_hours(s, 3);
    expect_times(s, 1, 2, 0);
    work_hour(s, 1);
    expect_nothing(s);
    pass_hours(s, 1);
    work_hour(s, 4);
    expect_times(s, 2, 2, 0);
}

static void overlap_allows_times_of_a_job(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":9,\"overlap\":\"allow\"", "t", false) == 0);
    pass_hours(s, 3);
    expect_times(s, 3, 0, 0);
    expect_claim(s, "t", task_at(1), task_at(2), task_at(3));
}

static void overlap_queues_times_of_a_job(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":9,\"overlap\":\"queue\"", "t", false) == 0);
    pass_hours(s, 3);
    expect_times(s, 3, 0, 0);
    work_hour(s, 1);
    work_hour(s, 2);
    work_hour(s, 3);
    expect_nothing(s);
}

static void a_paused_job_owes_its_queue(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":4,\"overlap\":\"queue\"", "t", false) == 0);
    pass_hours(s, 3);
    CHECK(job_verb(s, BEL_VERB_JOB_PAUSE, "h") == 0);
    work_hour(s, 1);
    expect_nothing(s);
    pass_hours(s, 1);
    expect_job(s, "h", BEL_JOB_PAUSED);
    expect_times(s, 3, 1, 0);
    CHECK(job_verb(s, BEL_VERB_JOB_RESUME, "h") == 0);
    turn(s);
    work_hour(s, 2);
    work_hour(s, 3);
    expect_job(s, "h", BEL_JOB_DONE);
    expect_times(s, 3, 1, 0);
}

static void a_new_text_keeps_the_queue(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":9,\"overlap\":\"queue\"", "u", false) == 0);
    pass_hours(s, 2);
    CHECK(submit_hourly(s, "\"count\":9,\"overlap\":\"queue\"", "t", true) == 0);
    expect_times(s, 2, 0, 0);
    expect_claim(s, "u", task_at(1));
    ack(s, task_at(1));
    turn(s);
    work_hour(s, 2);
    pass_hours(s, 1);
    work_hour(s, 3);
    expect_times(s, 3, 0, 0);
}

static void a_cancelled_recurring_job_skips_its_queue(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":9,\"overlap\":\"queue\"", "t", false) == 0);
    pass_hours(s, 3);
    CHECK(job_verb(s, BEL_VERB_JOB_CANCEL, "h") == 0);
    expect_nothing(s);
    expect_job(s, "h", BEL_JOB_CANCELLED);
    expect_times(s, 1, 2, 0);
    pass_hours(s, 1);
    expect_times(s, 1, 2, 0);
}

static void missed_times_of_a_job_are_skipped(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":3,\"misfire\":\"skip\"", "t", false) == 0);
    jump(s, (uint64_t)(5 * HOUR));
    turn(s);
    expect_nothing(s);
    expect_times(s, 0, 0, 3);
    expect_job(s, "h", BEL_JOB_DONE);
}

static void the_last_missed_time_of_a_job_is_made(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":3,\"misfire\":\"last\"", "t", false) == 0);
    jump(s, (uint64_t)(5 * HOUR));
    turn(s);
    expect_times(s, 1, 0, 2);
    work_hour(s, 3);
    expect_job(s, "h", BEL_JOB_DONE);
}

static void all_missed_times_of_a_job_are_made(struct subject *s)
{
    CHECK(submit_hourly(s, "\"count\":3,\"misfire\":\"all\",\"overlap\":\"queue\"", "t", false) ==
          0);
    jump(s, (uint64_t)(5 * HOUR));
    turn(s);
    expect_times(s, 3, 0, 0);
    work_hour(s, 1);
    work_hour(s, 2);
    work_hour(s, 3);
    expect_job(s, "h", BEL_JOB_DONE);
}

static const struct test tests[] = {
    TEST(a_chain_has_one_ready_task_at_a_time),
    TEST(a_fan_in_waits_for_all),
    TEST(a_fan_out_starts_all_at_once),
    TEST(a_failure_skips_what_needs_success),
    TEST(edges_say_which_end_they_wait_for),
    TEST(a_skipped_task_satisfies_only_always),
    TEST(a_handled_failure_does_not_fail_the_job),
    TEST(a_cancelled_task_is_a_failure),
    TEST(an_empty_job_is_done_at_once),
    TEST(a_task_is_retried_before_its_dependents_hear),
    TEST(ended_tasks_never_change),
    TEST(a_bad_graph_changes_nothing),
    TEST(ids_are_unique),
    TEST(blocked_tasks_count_for_depth),
    TEST(cancel_ends_all_tasks),
    TEST(a_paused_job_starts_nothing),
    TEST(a_timeout_fails_the_job),
    TEST(ended_jobs_are_kept_for_a_day),
    TEST(results_go_to_the_next_tasks),
    TEST(blocked_tasks_are_listed_by_sequence),
    TEST(lower_scores_go_first),
    TEST(a_job_with_a_pace_pauses_after_a_task),
    TEST(a_job_that_follows_begins_after_the_cooldown),
    TEST(ids_that_will_not_be_used_are_free_before_the_cooldown),
    TEST(a_replacement_makes_tokens_stale),
    TEST(a_recurring_job_ends_with_its_last_job),
    TEST(overlap_skips_times_of_a_job),
    TEST(overlap_allows_times_of_a_job),
    TEST(overlap_queues_times_of_a_job),
    TEST(a_paused_job_owes_its_queue),
    TEST(a_new_text_keeps_the_queue),
    TEST(a_cancelled_recurring_job_skips_its_queue),
    TEST(missed_times_of_a_job_are_skipped),
    TEST(the_last_missed_time_of_a_job_is_made),
    TEST(all_missed_times_of_a_job_are_made),
};

GROUP(jobs, CAN_JOBS, tests);
