/* SPDX-License-Identifier: MIT */

/*
 * A mark exists while it says something. So the map is empty if there are no jobs, and a lookup
 * costs nothing then.
 */
#include "engine/state/job_marks.h"

#include <assert.h>
#include <stdlib.h>

struct bel_job_mark {
    uint64_t number;
    uint32_t leased;
    uint8_t holds;
    bool is_hidden, is_submitted, is_kept;
    uint32_t topics_count, topics_capacity;
    uint32_t *topics; /* in which its share is held */
};

void bel__job_marks_init(struct bel_job_marks *marks, struct bel_siphash_key secret)
{
    *marks = (struct bel_job_marks){0};
    bel__map_init_words(&marks->map, secret);
}

void bel__job_marks_finish(struct bel_job_marks *marks)
{
    for (uint32_t i = bel__map_count(&marks->map); i-- > 0;) {
        struct bel_job_mark *mark = (void *)(uintptr_t)bel__map_at(&marks->map, i)->value;
        free(mark->topics);
        free(mark);
    }
    bel__map_finish(&marks->map);
}

static struct bel_job_mark *find(const struct bel_job_marks *marks, uint64_t job)
{
    if (job == 0 || bel__map_count(&marks->map) == 0) return NULL;
    const uint64_t *value = bel__map_find(&marks->map, &job, sizeof job);
    return value == NULL ? NULL : (struct bel_job_mark *)(uintptr_t)*value;
}

static struct bel_job_mark *take(struct bel_job_marks *marks, uint64_t job)
{
    struct bel_job_mark *mark = find(marks, job);
    assert(job != 0);
    if (mark != NULL) return mark;
    mark = calloc(1, sizeof *mark);
    if (mark == NULL) return NULL;
    mark->number = job;
    if (bel__map_put(&marks->map, &mark->number, sizeof mark->number, (uintptr_t)mark) == 0) {
        return mark;
    }
    free(mark);
    return NULL;
}

/* Frees a mark that says nothing any more. */
static void leave(struct bel_job_marks *marks, struct bel_job_mark *mark)
{
    if (mark->leased > 0 || mark->holds != 0 || mark->topics_count > 0) return;
    if (mark->is_hidden || mark->is_submitted || mark->is_kept) return;
    bel__map_remove(&marks->map, &mark->number, sizeof mark->number, NULL);
    free(mark->topics);
    free(mark);
}

bool bel__job_is_submitted(const struct bel_job_marks *marks, uint64_t job)
{
    const struct bel_job_mark *mark = marks->hidden > 0 ? find(marks, job) : NULL;
    return mark != NULL && mark->is_submitted;
}

bool bel__job_is_hidden(const struct bel_job_marks *marks, uint64_t job)
{
    const struct bel_job_mark *mark = marks->hidden > 0 ? find(marks, job) : NULL;
    return mark != NULL && mark->is_hidden;
}

unsigned bel__job_holds(const struct bel_job_marks *marks, uint64_t job)
{
    const struct bel_job_mark *mark = find(marks, job);
    return mark == NULL ? 0 : mark->holds;
}

uint32_t bel__job_leases(const struct bel_job_marks *marks, uint64_t job)
{
    const struct bel_job_mark *mark = find(marks, job);
    return mark == NULL ? 0 : mark->leased;
}

int bel__job_hide(struct bel_job_marks *marks, uint64_t job)
{
    struct bel_job_mark *mark = take(marks, job);
    if (mark == NULL) return BEL_ENOMEM;
    marks->hidden += !mark->is_hidden;
    mark->is_hidden = true;
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

int bel__job_hide_submitted(struct bel_job_marks *marks, uint64_t job)
{
    struct bel_job_mark *mark = take(marks, job);
    if (mark == NULL) return BEL_ENOMEM;
    marks->hidden += !mark->is_hidden;
    mark->is_hidden = mark->is_submitted = true;
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

void bel__job_leave_submitted(struct bel_job_marks *marks, uint64_t job)
{
    struct bel_job_mark *mark = find(marks, job);
    if (mark == NULL) return;
    mark->is_submitted = false;
    leave(marks, mark);
}

int bel__job_keep_mark(struct bel_job_marks *marks, uint64_t job)
{
    struct bel_job_mark *mark = take(marks, job);
    if (mark == NULL) return BEL_ENOMEM;
    mark->is_kept = true;
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

void bel__job_drop_mark(struct bel_job_marks *marks, uint64_t job)
{
    struct bel_job_mark *mark = find(marks, job);
    if (mark == NULL) return;
    mark->is_kept = false;
    leave(marks, mark);
}

void bel__job_show(struct bel_job_marks *marks, uint64_t job)
{
    struct bel_job_mark *mark = find(marks, job);
    if (mark == NULL) return;
    assert(marks->hidden >= mark->is_hidden);
    marks->hidden -= mark->is_hidden;
    mark->is_hidden = false;
    leave(marks, mark);
}

int bel__job_note_topic(struct bel_job_marks *marks, uint64_t job, uint32_t topic)
{
    struct bel_job_mark *mark = find(marks, job);
    assert(mark != NULL && mark->holds != 0);
    if (mark->topics_count == mark->topics_capacity) {
        uint32_t capacity = mark->topics_capacity == 0 ? 4 : 2 * mark->topics_capacity;
        uint32_t *topics = realloc(mark->topics, capacity * sizeof topics[0]);
        if (topics == NULL) return BEL_ENOMEM;
        mark->topics = topics;
        mark->topics_capacity = capacity;
    }
    mark->topics[mark->topics_count++] = topic;
    return 0;
}

bool bel__job_take_topic(struct bel_job_marks *marks, uint64_t job, uint32_t *out)
{
    struct bel_job_mark *mark = find(marks, job);
    if (mark == NULL || mark->topics_count == 0) return false;
    *out = mark->topics[--mark->topics_count];
    leave(marks, mark);
    return true;
}

int bel__job_hold(struct bel_job_marks *marks, uint64_t job, enum bel_job_hold why)
{
    struct bel_job_mark *mark = take(marks, job);
    if (mark == NULL) return BEL_ENOMEM;
    mark->holds |= (uint8_t)why;
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

void bel__job_unhold(struct bel_job_marks *marks, uint64_t job, enum bel_job_hold why)
{
    struct bel_job_mark *mark = find(marks, job);
    if (mark == NULL) return;
    mark->holds &= (uint8_t)~why;
    leave(marks, mark);
}

int bel__job_lease(struct bel_job_marks *marks, uint64_t job)
{
    if (job == 0) return 0;
    struct bel_job_mark *mark = take(marks, job);
    if (mark == NULL) return BEL_ENOMEM;
    mark->leased++;
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

void bel__job_unlease(struct bel_job_marks *marks, uint64_t job)
{
    if (job == 0) return;
    struct bel_job_mark *mark = find(marks, job);
    assert(mark != NULL && mark->leased > 0);
    mark->leased--;
    leave(marks, mark);
}
