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
#include <stdarg.h>
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
    CUT_COLUMNS = 3,  /* of "..." */
    PART_BYTES = 160,
    NEXT_INDENT = 2,
    COUNTS_LINES = 2, /* that the counts of all states take at most */
    LOST_BYTES = 160, /* of four numbers and their words */
    ESTIMATE_MS_MIN = 1000,
};

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* Writes "(1 dead, 2 skipped)"; nothing if all ended tasks are done. */
static void print_lost(const struct cli_job *job, char out[LOST_BYTES])
{
    static const enum bel_state states[] = {BEL_DEAD, BEL_EXPIRED, BEL_CANCELLED, BEL_SKIPPED};
    int used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (job->counts[states[i]] == 0) continue;
        used += snprintf(out + used, LOST_BYTES - (size_t)used, "%s%lld %s", used == 0 ? "(" : ", ",
                         (long long)job->counts[states[i]], bel_state_name(states[i]));
    }
    if (used > 0) (void)snprintf(out + used, LOST_BYTES - (size_t)used, ")");
}

void bel__job_print_lost(const struct cli_job *job)
{
    char lost[LOST_BYTES];
    print_lost(job, lost);
    if (lost[0] != '\0') printf(" %s", lost);
}

void bel__job_print_times(int64_t made, int64_t skipped, int64_t missed)
{
    printf("%lld made, %lld skipped, %lld missed", (long long)made, (long long)skipped,
           (long long)missed);
}

/* --- the lines of the job --- */

/* What is printed of a job before its tasks: a part that has no room goes to the next line. */
struct head {
    unsigned columns, used;
    size_t lines;
};

/* Makes room for a part of so many characters, with a gap before it in the same line. */
static void begin_part(struct head *head, const char *gap, size_t bytes)
{
    size_t all = strlen(gap) + bytes;
    if (head->used + all <= head->columns) {
        printf("%s", gap);
        head->used += (unsigned)all;
        return;
    }
    printf("\n%*s", (int)NEXT_INDENT, "");
    head->used = NEXT_INDENT + (unsigned)bytes;
    head->lines++;
}

__attribute__((format(printf, 3, 4))) static void put_part(struct head *head, const char *gap,
                                                           const char *format, ...)
{
    char part[PART_BYTES];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (bytes <= 0) return;
    begin_part(head, gap, strlen(part));
    printf("%s", part);
}

/* Prints a text of somebody else, which is cut if it is longer than a line. */
static void put_text(struct head *head, const char *gap, const char *text)
{
    size_t room = head->columns - NEXT_INDENT, bytes = strlen(text);
    begin_part(head, gap, bytes > room ? room : bytes);
    bel__cli_print_line(view_of(text), bytes > room ? room - CUT_COLUMNS : room);
}

/* Prints "  2 made, 0 skipped, 1 missed  0 9 * * 1 Europe/Berlin, next 2030-01-07T08:00:00Z" of a
 * recurring job. */
static void put_rule(struct head *head, const struct cli_job *job)
{
    put_part(head, "  ", "%lld made, %lld skipped, %lld missed", (long long)job->made,
             (long long)job->skipped, (long long)job->missed);
    put_text(head, "  ", job->rule);
    if (job->zone[0] != '\0') put_text(head, " ", job->zone);
    if (job->next_ms == 0) return;
    begin_part(head, ", ", TIME_COLUMNS + strlen("next "));
    printf("next ");
    bel__cli_print_time(job->next_ms);
}

/* Prints the bar, and how many tasks have ended: in any way, as the progress of JOB GET counts. */
static void put_bar(struct head *head, const struct cli_job *job)
{
    int64_t ended = 0;
    char bar[BAR_COLUMNS + 1] = {0}, left[BEL_DURATION_BYTES];
    for (unsigned i = BEL_DONE; i < BEL_STATES; i++) {
        ended += job->counts[i];
    }
    for (int64_t i = 0; i < BAR_COLUMNS; i++) {
        bar[i] = i * 100 < job->progress * BAR_COLUMNS ? '#' : '-';
    }
    put_part(head, "  ", "[%s]  %lld %%  %lld of %lld", bar, (long long)job->progress,
             (long long)ended, (long long)job->total);
    /* While nobody works the rest is unknown, and less than a second is no estimate. */
    if (job->estimate_ms >= ESTIMATE_MS_MIN && job->counts[BEL_LEASED] > 0) {
        uint64_t rounded = (uint64_t)job->estimate_ms / 1000 * 1000;
        (void)bel_duration_print(rounded, left, sizeof left);
        put_part(head, "  ", "about %s left", left);
    }
}

/* Returns the number of lines. */
static size_t draw_job(const struct cli_job *job, unsigned columns)
{
    struct head head = {.columns = columns, .lines = 1};
    char lost[LOST_BYTES];
    print_lost(job, lost);
    put_text(&head, "", job->id);
    begin_part(&head, "  ", strlen(job->state));
    bel__cli_print_state(view_of(job->state), 0);
    put_part(&head, " ", "%s", lost);
    if (job->rule[0] != '\0') {
        put_rule(&head, job);
    } else {
        put_bar(&head, job);
    }
    if (job->reason[0] != '\0') put_text(&head, ": ", job->reason);
    printf("\n");
    return head.lines;
}

/* Prints how many tasks are in each state. Returns the number of lines. */
static size_t draw_counts(const struct cli_job *job, unsigned columns)
{
    struct head head = {.columns = columns, .lines = 1};
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (job->counts[i] == 0) continue;
        put_part(&head, head.used > 0 ? "  " : "", "%s %lld", bel_state_name((enum bel_state)i),
                 (long long)job->counts[i]);
    }
    printf("\n");
    return head.lines;
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

/* --- the lines of the tasks --- */

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
    unsigned rank; /* if not all tasks can be shown, those of low ranks are */
    uint32_t depth;
    size_t index;
};

/* Tasks that have failed or are under way have the first ranks, those that have ended otherwise the
 * last ones. */
static unsigned rank_of(const struct cli_job_task *task)
{
    static const char *const states[] = {"dead",    "expired",   "leased", "ready",  "scheduled",
                                         "blocked", "cancelled", "done",   "skipped"};
    enum {
        STATES = sizeof states / sizeof states[0]
    };
    bool waits = strcmp(task->state, "ready") == 0 || strcmp(task->state, "scheduled") == 0;
    const char *state = waits && task->attempts > 0 ? "leased" : task->state; /* a retry */
    unsigned rank = 0;
    while (rank < STATES && strcmp(state, states[rank]) != 0) {
        rank++;
    }
    return rank;
}

static int compare_places(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int compare_ranks(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return compare_places(one, other);
}

size_t bel__job_draw(const struct cli_job *job, unsigned columns, size_t rows)
{
    struct place *places = calloc(job->tasks_count + 1, sizeof *places);
    size_t lines = draw_job(job, columns), count = places != NULL ? job->tasks_count : 0;
    bool is_all = places != NULL && lines + count <= rows;
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){rank_of(&job->tasks[i]), job->tasks[i].depth, i};
    }
    if (!is_all && count > 0) {
        size_t room = rows > lines + COUNTS_LINES ? rows - lines - COUNTS_LINES : 0;
        qsort(places, count, sizeof *places, compare_ranks);
        if (count > room) count = room;
    }
    if (count > 0) qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 0; i < count; i++) {
        draw_task(&job->tasks[places[i].index], columns);
    }
    free(places);
    lines += count;
    return is_all ? lines : lines + draw_counts(job, columns);
}
