/* SPDX-License-Identifier: MIT */

/*
 * belfry job explain: what a job waits for now, and its critical path, the longest chain of
 * unfinished tasks:
 *
 *     fetch (done) ---> clean-eu (leased) ---> load (blocked) ---> report (blocked)
 *                 '---> clean-us (leased) ---> alarm (blocked)
 *
 *     height                 3, 2                  2, 1                  1
 *
 * The height of a task is the length of the longest chain that begins with the task. Tasks are
 * visited from the deepest on, so that the height of a task is known before it is passed on to the
 * tasks that come before. A chain of full length begins with a task that is not blocked; EXPLAIN
 * tells why that task has not ended yet.
 */
#include "cli/job.h"
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_MAX = 10,      /* tasks that the job waits for */
    PATH_FIRST_MAX = 10, /* tasks of the path before " -> ... -> ", */
    PATH_LAST_MAX = 5,   /* and after it */
};

struct step {
    const struct cli_job_task *task;
    struct step *next; /* in the longest chain that begins here; NULL: the last */
    size_t height;     /* 0: the task has ended */
};

struct place {
    struct step *step;
};

struct steps {
    struct step *items;   /* by the ids of their tasks */
    struct place *places; /* by depth, the deepest first; then by height, the highest first */
    size_t count;
};

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static bool has_state(const struct cli_job_task *task, enum bel_state state)
{
    return strcmp(task->state, bel_state_name(state)) == 0;
}

static bool has_ended(const struct cli_job_task *task)
{
    return !has_state(task, BEL_SCHEDULED) && !has_state(task, BEL_READY) &&
           !has_state(task, BEL_LEASED) && !has_state(task, BEL_BLOCKED);
}

/* --- the critical path --- */

static int compare_ids(const void *one, const void *other)
{
    const struct step *a = one, *b = other;
    return strcmp(a->task->id, b->task->id);
}

/* The tasks are in one array, in the order of the text. */
static int compare_places(const struct step *a, const struct step *b)
{
    return (a->task > b->task) - (a->task < b->task);
}

static int compare_depths(const void *one, const void *other)
{
    const struct step *a = ((const struct place *)one)->step,
                      *b = ((const struct place *)other)->step;
    if (a->task->depth != b->task->depth) return a->task->depth < b->task->depth ? 1 : -1;
    return compare_places(a, b);
}

static int compare_heights(const void *one, const void *other)
{
    const struct step *a = ((const struct place *)one)->step,
                      *b = ((const struct place *)other)->step;
    if (a->height != b->height) return a->height < b->height ? 1 : -1;
    return compare_places(a, b);
}

/* Finds the step of a task; NULL if there is none. */
static struct step *find(const struct steps *steps, const char *id, size_t bytes)
{
    size_t low = 0, high = steps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct step *step = &steps->items[middle];
        int order = strncmp(step->task->id, id, bytes);
        if (order == 0 && step->task->id[bytes] == '\0') return step;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* Passes the height of a task on to those that it comes after: "fetch clean? report!". */
static void pass_on(const struct steps *steps, struct step *step)
{
    const char *at = step->task->after;
    while (*at != '\0') {
        size_t word = strcspn(at, " "), bytes = strcspn(at, " ?!");
        struct step *before = find(steps, at, bytes);
        if (before != NULL && !has_ended(before->task) && before->height <= step->height) {
            before->height = step->height + 1;
            before->next = step;
        }
        at += word;
        at += strspn(at, " ");
    }
}

/* Sets the heights of all tasks and sorts them. Returns false without memory. */
static bool make_steps(const struct cli_job *job, struct steps *out)
{
    out->count = job->tasks_count;
    out->items = calloc(out->count + 1, sizeof *out->items);
    out->places = calloc(out->count + 1, sizeof *out->places);
    if (out->items == NULL || out->places == NULL) return false;
    for (size_t i = 0; i < out->count; i++) {
        out->items[i].task = &job->tasks[i];
    }
    qsort(out->items, out->count, sizeof *out->items, compare_ids);
    for (size_t i = 0; i < out->count; i++) {
        out->places[i].step = &out->items[i];
    }
    qsort(out->places, out->count, sizeof *out->places, compare_depths);
    for (size_t i = 0; i < out->count; i++) {
        struct step *step = out->places[i].step;
        if (has_ended(step->task)) continue;
        if (step->height == 0) step->height = 1;
        pass_on(out, step);
    }
    qsort(out->places, out->count, sizeof *out->places, compare_heights);
    return true;
}

static void finish_steps(struct steps *steps)
{
    free(steps->items);
    free(steps->places);
}

/* Returns the first task of the critical path; NULL if all have ended. */
static const struct step *first_of(const struct steps *steps)
{
    const struct step *first = steps->count > 0 ? steps->places[0].step : NULL;
    return first != NULL && first->height > 0 ? first : NULL;
}

static void print_path(const struct step *first)
{
    size_t at = 0, count = first->height;
    printf("Critical path, %zu task%s: ", count, count == 1 ? "" : "s");
    for (const struct step *step = first; step != NULL; step = step->next, at++) {
        bool is_left_out = at >= PATH_FIRST_MAX && at + PATH_LAST_MAX < count;
        if (is_left_out && at > PATH_FIRST_MAX) continue;
        if (at > 0) printf(" -> ");
        if (is_left_out) {
            printf("...");
        } else {
            bel__cli_print_line(view_of(step->task->id), 0);
        }
    }
    printf("\n");
}

static void print_path_json(const struct step *first)
{
    printf("\"critical_path\": [");
    for (const struct step *step = first; step != NULL; step = step->next) {
        if (step != first) printf(", ");
        bel__cli_print_json(step->task->id);
    }
    printf("]}\n");
}

/* --- what the job waits for --- */

/* Asks why a task has not ended. Returns CLI_OK and sets `*out`; to NULL if the task is gone. */
static int ask(struct bel_client *client, const struct cli_connect *connect,
               const struct cli_job *job, const struct cli_job_task *task,
               const struct bel_value **out)
{
    char id[BEL_ID_BYTES + 1];
    int bytes = snprintf(id, sizeof id, "%s/%s", job->id, task->id);
    if (bytes < 0 || (size_t)bytes >= sizeof id) return CLI_FAILED;
    struct bel_view args[] = {BEL_VIEW("EXPLAIN"), view_of(task->topic), view_of(id),
                              BEL_VIEW("REASON")};
    int err = bel_client_call(client, args, 4, out);
    if (err) return bel__connect_failed(connect, err);
    if ((*out)->type != BEL_VALUE_ERROR) return CLI_OK;
    if (bel__connect_exit(bel_value_code(*out)) != CLI_NOT_FOUND) {
        return bel__connect_refused(*out);
    }
    *out = NULL;
    return CLI_OK;
}

static const struct bel_value nil = {.type = BEL_VALUE_NIL};

static const struct bel_value *first_line(const struct bel_value *reply)
{
    const struct bel_value *lines = reply != NULL ? bel_value_find(reply, "lines") : NULL;
    return lines != NULL && lines->count > 0 ? &lines->items[0] : &nil;
}

static void print_wait(const struct cli_job_task *task, const struct bel_value *reply)
{
    printf("  ");
    bel__cli_print_line(view_of(task->id), 0);
    printf(": ");
    bel__cli_print_line(first_line(reply)->text, 0);
    printf("\n");
}

static void print_wait_json(const struct cli_job_task *task, const struct bel_value *reply)
{
    static const char *const names[] = {"reason", "until_ms", "by"};
    printf("{\"task\": ");
    bel__cli_print_json(task->id);
    printf(", \"topic\": ");
    bel__cli_print_json(task->topic);
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct bel_value *value = reply != NULL ? bel_value_find(reply, names[i]) : NULL;
        printf(", \"%s\": ", names[i]);
        bel__cli_print_value(value != NULL ? value : &nil);
    }
    printf(", \"line\": ");
    bel__cli_print_value(first_line(reply));
    printf("}");
}

/* Prints the tasks that are not blocked, those of the longest chains first. */
static int print_waits(struct bel_client *client, const struct cli_connect *connect,
                       const struct cli_job *job, const struct steps *steps)
{
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < steps->count && steps->places[i].step->height > 0; i++) {
        const struct cli_job_task *task = steps->places[i].step->task;
        const struct bel_value *reply;
        if (has_state(task, BEL_BLOCKED)) continue;
        if (shown == SHOWN_MAX) {
            more++;
            continue;
        }
        int status = ask(client, connect, job, task, &reply);
        if (status != CLI_OK) return status;
        if (connect->is_json) {
            if (shown > 0) printf(", ");
            print_wait_json(task, reply);
        } else {
            if (shown == 0) printf("The job waits for:\n");
            print_wait(task, reply);
        }
        shown++;
    }
    if (connect->is_json) {
        printf("], \"more\": %zu, ", more);
    } else if (more > 0) {
        printf("  and %zu more\n", more);
    }
    return CLI_OK;
}

/* --- the job --- */

static void print_state(const struct cli_job *job)
{
    int64_t ended = 0;
    for (unsigned i = BEL_DONE; i < BEL_STATES; i++) {
        ended += job->counts[i];
    }
    printf("The job ");
    bel__cli_print_line(view_of(job->id), 0);
    printf(" is %s", job->state);
    bel__job_print_lost(job);
    if (job->reason[0] != '\0') printf(": %s", job->reason);
    if (job->rule[0] != '\0') {
        printf("; its times: ");
        bel__job_print_times(job->made, job->skipped, job->missed);
        if (job->next_ms > 0) printf(", next ");
        if (job->next_ms > 0) bel__cli_print_time(job->next_ms);
    } else if (!bel__job_has_ended(job)) {
        printf("; %lld of %lld tasks have ended", (long long)ended, (long long)job->total);
    }
    printf(".\n");
}

static int explain(struct bel_client *client, const struct cli_connect *connect,
                   const struct cli_job *job, const struct steps *steps)
{
    const struct step *first = first_of(steps);
    if (connect->is_json) {
        printf("{\"id\": ");
        bel__cli_print_json(job->id);
        printf(", \"state\": \"%s\", \"waits_for\": [", job->state);
    } else {
        print_state(job);
    }
    int status = print_waits(client, connect, job, steps);
    if (status != CLI_OK) return status;
    if (connect->is_json) {
        print_path_json(first);
    } else if (first != NULL) {
        print_path(first);
    }
    return CLI_OK;
}

int bel__job_explain(struct bel_client *client, const struct cli_connect *connect, const char *id)
{
    struct cli_job job = {0};
    struct steps steps = {0};
    int status = bel__job_fetch(client, connect, id, &job);
    if (status == CLI_OK && !make_steps(&job, &steps)) {
        fputs("belfry: out of memory\n", stderr);
        status = CLI_FAILED;
    }
    if (status == CLI_OK) status = explain(client, connect, &job, &steps);
    finish_steps(&steps);
    bel__job_finish(&job);
    return status;
}
