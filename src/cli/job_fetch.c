/* SPDX-License-Identifier: MIT */

/* Reads a job with JOB GET, a page of tasks at a time. */
#include "cli/job.h"
#include "cli/job_hint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(const struct bel_value *value)
{
    size_t bytes = value != NULL ? value->text.bytes : 0;
    char *copy = malloc(bytes + 1);
    if (copy == NULL) return NULL;
    if (bytes > 0) memcpy(copy, value->text.data, bytes);
    copy[bytes] = '\0';
    return copy;
}

static int64_t number_of(const struct bel_value *map, const char *name, int64_t otherwise)
{
    const struct bel_value *value = bel_value_find(map, name);
    return value != NULL && value->type == BEL_VALUE_NUMBER ? value->number : otherwise;
}

/* Returns the dependencies of a task as one text. */
static char *copy_after(const struct bel_value *list)
{
    size_t count = list != NULL ? list->count / 2 : 0, room = 1, used = 0;
    for (size_t i = 0; i < count; i++) {
        room += list->items[2 * i].text.bytes + 2;
    }
    char *text = malloc(room);
    if (text == NULL) return NULL;
    for (size_t i = 0; i < count; i++) {
        struct bel_view name = list->items[2 * i].text;
        const struct bel_value *on = &list->items[2 * i + 1];
        if (i > 0) text[used++] = ' ';
        memcpy(text + used, name.data, name.bytes);
        used += name.bytes;
        if (bel_value_is(on, "always")) text[used++] = '?';
        if (bel_value_is(on, "failure")) text[used++] = '!';
    }
    text[used] = '\0';
    return text;
}

static bool add_task(struct cli_job *job, const struct bel_value *map)
{
    struct cli_job_task *task = &job->tasks[job->tasks_count];
    const struct bel_value *state = bel_value_find(map, "state");
    *task = (struct cli_job_task){.id = copy_text(bel_value_find(map, "id")),
                                  .topic = copy_text(bel_value_find(map, "topic")),
                                  .reason = copy_text(bel_value_find(map, "reason")),
                                  .after = copy_after(bel_value_find(map, "after")),
                                  .attempts = number_of(map, "attempts", 0),
                                  .due_ms = number_of(map, "due_ms", 0),
                                  .depth = (uint32_t)number_of(map, "depth", 0)};
    job->tasks_count++;
    size_t bytes = state != NULL ? state->text.bytes : 0;
    if (bytes >= sizeof task->state) bytes = sizeof task->state - 1;
    if (bytes > 0) memcpy(task->state, state->text.data, bytes);
    return task->id != NULL && task->topic != NULL && task->reason != NULL && task->after != NULL;
}

static bool add_tasks(struct cli_job *job, const struct bel_value *list)
{
    if (list == NULL || list->count == 0) return true;
    struct cli_job_task *tasks =
        reallocarray(job->tasks, job->tasks_count + list->count, sizeof *tasks);
    if (tasks == NULL) return false;
    job->tasks = tasks;
    for (size_t i = 0; i < list->count; i++) {
        if (!add_task(job, &list->items[i])) return false;
    }
    return true;
}

/* Copies the rule of a recurring job, its zone and its times. */
static bool take_rule(struct cli_job *job, const struct bel_value *map)
{
    static const char *const names[] = {"cron", "every", "rrule"};
    const struct bel_value *rule = NULL;
    for (unsigned i = 0; rule == NULL && i < sizeof names / sizeof names[0]; i++) {
        rule = bel_value_find(map, names[i]);
    }
    job->rule = copy_text(rule);
    job->zone = copy_text(bel_value_find(map, "tz"));
    job->next_ms = number_of(map, "next_ms", 0);
    job->made = number_of(map, "made", 0);
    job->skipped = number_of(map, "skipped", 0);
    job->missed = number_of(map, "missed", 0);
    return job->rule != NULL && job->zone != NULL;
}

static bool take_job(struct cli_job *job, const struct bel_value *map)
{
    const struct bel_value *counts = bel_value_find(map, "counts");
    job->id = copy_text(bel_value_find(map, "id"));
    job->state = copy_text(bel_value_find(map, "state"));
    job->reason = copy_text(bel_value_find(map, "reason"));
    job->total = number_of(map, "total", 0);
    job->progress = number_of(map, "progress", 0);
    job->estimate_ms = number_of(map, "estimate_ms", -1);
    job->failures = number_of(map, "failures", 0);
    job->crashes = number_of(map, "crashes", 0);
    job->completions_per_minute = number_of(map, "completions_per_minute", 0);
    job->waited_ms_p50 = number_of(map, "waited_ms_p50", 0);
    job->waited_ms_p99 = number_of(map, "waited_ms_p99", 0);
    job->ran_ms_p50 = number_of(map, "ran_ms_p50", 0);
    job->ran_ms_p99 = number_of(map, "ran_ms_p99", 0);
    for (unsigned i = 0; counts != NULL && i < BEL_STATES; i++) {
        job->counts[i] = number_of(counts, bel_state_name((enum bel_state)i), 0);
    }
    bool has_rule = take_rule(job, map);
    return has_rule && job->id != NULL && job->state != NULL && job->reason != NULL;
}

static int fail_memory(void)
{
    fputs("belfry: out of memory\n", stderr);
    return CLI_FAILED;
}

int bel__job_fetch(struct bel_client *client, const struct cli_connect *connect, const char *id,
                   struct cli_job *out)
{
    char *cursor = NULL;
    int status = CLI_OK;
    do {
        struct bel_view args[] = {BEL_VIEW("JOB"),
                                  BEL_VIEW("GET"),
                                  {id, strlen(id)},
                                  BEL_VIEW("CURSOR"),
                                  {cursor, cursor != NULL ? strlen(cursor) : 0}};
        const struct bel_value *reply;
        int err = bel_client_call(client, args, cursor != NULL ? 5 : 3, &reply);
        free(cursor);
        cursor = NULL;
        if (err) return bel__connect_failed(connect, err);
        if (reply->type == BEL_VALUE_ERROR) return bel__job_hint_refused(client, id, reply);
        if (out->id == NULL && !take_job(out, reply)) return fail_memory();
        if (!add_tasks(out, bel_value_find(reply, "tasks"))) return fail_memory();
        const struct bel_value *next = bel_value_find(reply, "cursor");
        if (next != NULL && next->text.bytes > 0 && (cursor = copy_text(next)) == NULL) {
            status = fail_memory();
        }
    } while (cursor != NULL);
    return status;
}

void bel__job_finish(struct cli_job *job)
{
    for (size_t i = 0; i < job->tasks_count; i++) {
        free(job->tasks[i].id);
        free(job->tasks[i].topic);
        free(job->tasks[i].reason);
        free(job->tasks[i].after);
    }
    free(job->tasks);
    free(job->id);
    free(job->state);
    free(job->reason);
    free(job->rule);
    free(job->zone);
    *job = (struct cli_job){0};
}

bool bel__job_has_ended(const struct cli_job *job)
{
    static const char *const states[] = {"done", "failed", "cancelled"};
    for (unsigned i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(job->state, states[i]) == 0) return true;
    }
    return false;
}
