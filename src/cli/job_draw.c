/* SPDX-License-Identifier: MIT */

/*
 * The picture of a job:
 *
 *     nightly  running  [##########----------]  50 %  3 of 6  about 40s left
 *     fetch                    done
 *       clean-eu               done       < fetch
 *       clean-us               leased     < fetch
 *         load                 blocked    < clean-eu clean-us
 *
 * A task is indented by its depth, up to a limit, so that a line stays readable in 80 columns.
 */
#include "belfry/duration.h"
#include "cli/job.h"
#include "cli/print.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BAR_COLUMNS = 20,
    INDENT_MAX = 12,
    NAME_COLUMNS = 24,
    STATE_COLUMNS = 10,
    TIME_COLUMNS = 24,
    NOTE_COLUMNS = 6, /* of " < " and "..." */
    ESTIMATE_MS_MIN = 1000,
};

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

void bel__job_print_lost(const struct cli_job *job)
{
    static const enum bel_state states[] = {BEL_DEAD, BEL_EXPIRED, BEL_CANCELLED, BEL_SKIPPED};
    bool is_first = true;
    for (unsigned i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (job->counts[states[i]] == 0) continue;
        printf("%s%lld %s", is_first ? " (" : ", ", (long long)job->counts[states[i]],
               bel_state_name(states[i]));
        is_first = false;
    }
    if (!is_first) (void)putchar(')');
}

void bel__job_print_times(int64_t made, int64_t skipped, int64_t missed)
{
    printf("%lld made, %lld skipped, %lld missed", (long long)made, (long long)skipped,
           (long long)missed);
}

/* Prints "  2 made, 0 skipped, 1 missed  0 9 * * 1 Europe/Berlin, next 2030-01-07T08:00:00Z" of a
 * recurring job. */
static void print_rule(const struct cli_job *job)
{
    printf("  ");
    bel__job_print_times(job->made, job->skipped, job->missed);
    printf("  ");
    bel__cli_print_line(view_of(job->rule), 0);
    if (job->zone[0] != '\0') printf(" %s", job->zone);
    if (job->next_ms == 0) return;
    printf(", next ");
    bel__cli_print_time(job->next_ms);
}

/* Prints the bar, and how many tasks have ended: in any way, as the progress of JOB GET counts. */
static void draw_bar(const struct cli_job *job)
{
    int64_t ended = 0;
    char left[BEL_DURATION_BYTES];
    for (unsigned i = BEL_DONE; i < BEL_STATES; i++) {
        ended += job->counts[i];
    }
    printf("  [");
    for (int64_t i = 0; i < BAR_COLUMNS; i++) {
        (void)putchar(i * 100 < job->progress * BAR_COLUMNS ? '#' : '-');
    }
    printf("]  %lld %%  %lld of %lld", (long long)job->progress, (long long)ended,
           (long long)job->total);
    /* While nobody works the rest is unknown, and less than a second is no estimate. */
    if (job->estimate_ms >= ESTIMATE_MS_MIN && job->counts[BEL_LEASED] > 0) {
        uint64_t rounded = (uint64_t)job->estimate_ms / 1000 * 1000;
        (void)bel_duration_print(rounded, left, sizeof left);
        printf("  about %s left", left);
    }
}

static void draw_job(const struct cli_job *job)
{
    bel__cli_print_line(view_of(job->id), NAME_COLUMNS);
    printf("  ");
    bel__cli_print_state(view_of(job->state), 0);
    bel__job_print_lost(job);
    if (job->rule[0] != '\0') {
        print_rule(job);
    } else {
        draw_bar(job);
    }
    if (job->reason[0] != '\0') printf("  (%s)", job->reason);
    printf("\n");
}

/* Prints " waited < 2ms (p99 < 1s)". */
static void print_quantiles(const char *what, int64_t p50, int64_t p99)
{
    char half[BEL_DURATION_BYTES], most[BEL_DURATION_BYTES];
    (void)bel_duration_print((uint64_t)p50, half, sizeof half);
    (void)bel_duration_print((uint64_t)p99, most, sizeof most);
    printf("%s < %s (p99 < %s)", what, half, most);
}

void bel__job_print_work(const struct cli_job *job)
{
    if (job->ran_ms_p50 == 0 && job->failures == 0 && job->crashes == 0) return;
    printf("tasks:");
    if (job->ran_ms_p50 > 0) {
        print_quantiles(" waited", job->waited_ms_p50, job->waited_ms_p99);
        print_quantiles(", ran", job->ran_ms_p50, job->ran_ms_p99);
        printf(", about %lld done in the last minute", (long long)job->completions_per_minute);
    }
    if (job->failures > 0 || job->crashes > 0) {
        printf("%s %lld failure%s, %lld crash%s", job->ran_ms_p50 > 0 ? "," : "",
               (long long)job->failures, job->failures == 1 ? "" : "s", (long long)job->crashes,
               job->crashes == 1 ? "" : "es");
    }
    printf("\n");
}

/* Returns whether a task is shown even if not all can be. */
static bool is_remarkable(const struct cli_job_task *task)
{
    return strcmp(task->state, "leased") == 0 || strcmp(task->state, "dead") == 0 ||
           strcmp(task->state, "expired") == 0;
}

/* Prints " < clean-eu clean-us : no route", what a task comes after and its reason, in `room`
 * columns. If both are too long, each has a half. */
static void draw_notes(const struct cli_job_task *task, size_t room)
{
    size_t after = strlen(task->after), reason = strlen(task->reason);
    if (after > 0 && reason > 0 && room / 2 > NOTE_COLUMNS) {
        size_t half = room / 2;
        size_t limit = after + NOTE_COLUMNS <= half ? after : half - NOTE_COLUMNS;
        printf(" < ");
        bel__cli_print_line(view_of(task->after), limit);
        room -= limit + NOTE_COLUMNS;
        after = 0;
    }
    if (after + reason == 0 || room <= NOTE_COLUMNS) return;
    printf(reason > 0 ? " : " : " < ");
    bel__cli_print_line(view_of(reason > 0 ? task->reason : task->after), room - NOTE_COLUMNS);
}

/* Prints an id in `room` columns. Of a longer one the middle is left out: the ids of a job often
 * differ at the end. */
static void draw_name(const char *id, size_t room)
{
    static const char gap[] = "..";
    size_t bytes = strlen(id), kept = room - (sizeof gap - 1), end = kept - kept / 2;
    assert(room > sizeof gap);
    if (bytes <= room) {
        bel__cli_print_line(view_of(id), 0);
        printf("%*s", (int)(room - bytes), "");
        return;
    }
    bel__cli_print_line((struct bel_view){id, kept / 2}, 0);
    printf("%s", gap);
    bel__cli_print_line(view_of(id + bytes - end), 0);
}

static void draw_task(const struct cli_job_task *task, unsigned columns)
{
    unsigned indent = 2 * task->depth < INDENT_MAX ? 2 * task->depth : INDENT_MAX;
    printf("%*s", (int)indent, "");
    draw_name(task->id, NAME_COLUMNS - indent);
    (void)putchar(' ');
    bel__cli_print_state(view_of(task->state), STATE_COLUMNS);
    unsigned used = NAME_COLUMNS + 1 + STATE_COLUMNS;
    if (strcmp(task->state, "scheduled") == 0 && task->attempts > 0) {
        used += (unsigned)printf(" %lld failed, next ", (long long)task->attempts) + TIME_COLUMNS;
        bel__cli_print_time(task->due_ms);
    }
    draw_notes(task, columns > used + 1 ? columns - used - 1 : 0);
    printf("\n");
}

/* A task by its depth, and by its place in the text. */
struct place {
    uint32_t depth;
    size_t index;
};

static int compare_places(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

size_t bel__job_draw(const struct cli_job *job, unsigned columns, size_t rows)
{
    struct place *places = calloc(job->tasks_count + 1, sizeof *places);
    bool is_all = places != NULL && job->tasks_count + 1 <= rows;
    size_t lines = 1, count = places != NULL ? job->tasks_count : 0;
    draw_job(job);
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){job->tasks[i].depth, i};
    }
    if (count > 0) qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 0; i < count && lines + !is_all < rows; i++) {
        const struct cli_job_task *task = &job->tasks[places[i].index];
        if (!is_all && !is_remarkable(task)) continue;
        draw_task(task, columns);
        lines++;
    }
    free(places);
    if (is_all) return lines;
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (job->counts[i] == 0) continue;
        printf("%s %lld  ", bel_state_name((enum bel_state)i), (long long)job->counts[i]);
    }
    printf("\n");
    return lines + 1;
}
