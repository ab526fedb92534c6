/* SPDX-License-Identifier: MIT */

/*
 * A copy is one block of memory: first the structs, then the texts.
 *
 *     | page | jobs | tasks of all jobs | dependencies of all tasks | texts |
 *
 * The copy of a single job has no page.
 */
#include "backend/job_copy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXTS_OF_JOB = 8, /* views of a job itself, each followed by a 0 byte */
    TEXTS_OF_TASK = 3,
};

/* What is inside jobs. While copying: where the next of each goes. */
struct contents {
    size_t tasks, afters, bytes;
};

struct room {
    struct bel_job_task *task;
    struct bel_job_after *after;
    char *text;
};

static void measure(const struct bel_job *job, struct contents *sum)
{
    sum->tasks += job->tasks_count;
    sum->bytes += job->id.bytes + job->reason.bytes + job->parent.bytes + job->clash.bytes;
    sum->bytes += job->plan_id.bytes + job->plan.rule.bytes + job->plan.zone.bytes;
    sum->bytes += job->cursor.bytes + TEXTS_OF_JOB;
    for (size_t i = 0; i < job->tasks_count; i++) {
        const struct bel_job_task *task = &job->tasks[i];
        sum->afters += task->after_count;
        sum->bytes += task->id.bytes + task->topic.bytes + task->reason.bytes + TEXTS_OF_TASK;
        for (size_t k = 0; k < task->after_count; k++) {
            sum->bytes += task->after[k].task.bytes + 1;
        }
    }
}

/* Copies a text, and moves the place of the next. */
static void keep(struct bel_view *view, struct room *room)
{
    char *at = room->text;
    if (view->bytes > 0) memcpy(at, view->data, view->bytes);
    at[view->bytes] = '\0';
    view->data = at;
    room->text = at + view->bytes + 1;
}

static void copy_task(struct bel_job_task *to, const struct bel_job_task *from, struct room *room)
{
    struct bel_job_after *after = room->after;
    *to = *from;
    keep(&to->id, room);
    keep(&to->topic, room);
    keep(&to->reason, room);
    for (size_t i = 0; i < from->after_count; i++) {
        after[i] = from->after[i];
        keep(&after[i].task, room);
    }
    to->after = after;
    room->after = after + from->after_count;
}

static void copy_job(struct bel_job *to, const struct bel_job *from, struct room *room)
{
    struct bel_job_task *tasks = room->task;
    *to = *from;
    keep(&to->id, room);
    keep(&to->reason, room);
    keep(&to->parent, room);
    keep(&to->clash, room);
    keep(&to->plan_id, room);
    keep(&to->plan.rule, room);
    keep(&to->plan.zone, room);
    keep(&to->cursor, room);
    for (size_t i = 0; i < from->tasks_count; i++) {
        copy_task(&tasks[i], &from->tasks[i], room);
    }
    to->tasks = tasks;
    room->task = tasks + from->tasks_count;
}

/* Copies jobs into a block that begins with `head_bytes` and ends with `cursor`, if that is not
 * NULL. Returns the block, or NULL if memory is out. */
static void *copy_jobs(const struct bel_job *jobs, size_t count, size_t head_bytes,
                       struct bel_view *cursor)
{
    struct contents sum = {.bytes = cursor != NULL ? cursor->bytes + 1 : 0};
    for (size_t i = 0; i < count; i++) {
        measure(&jobs[i], &sum);
    }
    size_t bytes = head_bytes + count * sizeof jobs[0] + sum.tasks * sizeof(struct bel_job_task) +
                   sum.afters * sizeof(struct bel_job_after) + sum.bytes;
    char *block = malloc(bytes);
    if (block == NULL) return NULL;
    struct bel_job *to = (struct bel_job *)(void *)(block + head_bytes);
    struct room room = {.task = (struct bel_job_task *)(to + count)};
    room.after = (struct bel_job_after *)(room.task + sum.tasks);
    room.text = (char *)(room.after + sum.afters);
    for (size_t i = 0; i < count; i++) {
        copy_job(&to[i], &jobs[i], &room);
    }
    if (cursor != NULL) keep(cursor, &room);
    assert(room.text == block + bytes);
    return block;
}

static_assert(_Alignof(struct bel_job) >= _Alignof(struct bel_job_task), "tasks follow jobs");
static_assert(_Alignof(struct bel_job_task) >= _Alignof(struct bel_job_after), "and so on");
static_assert(sizeof(struct bel_job_page) % _Alignof(struct bel_job) == 0, "jobs follow a page");

struct bel_job_page *bel__job_page_copy(const struct bel_job *jobs, size_t count,
                                        struct bel_view cursor)
{
    struct bel_job_page *page = copy_jobs(jobs, count, sizeof *page, &cursor);
    if (page == NULL) return NULL;
    page->jobs = (struct bel_job *)(page + 1);
    page->count = count;
    page->cursor = cursor;
    return page;
}

struct bel_job *bel__job_copy(const struct bel_job *job)
{
    return copy_jobs(job, 1, 0, NULL);
}

void bel_job_destroy(struct bel_job *job)
{
    free(job);
}

void bel_job_page_destroy(struct bel_job_page *page)
{
    free(page);
}
