/* SPDX-License-Identifier: MIT */

/* Copies of jobs: every text of the copy is its own and ends in 0; memory that is out. */
#include "../memory.h"

#include "backend/job_copy.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static const struct bel_job_after afters[] = {{TEXT("a"), BEL_EDGE_SUCCESS},
                                              {TEXT("bb"), BEL_EDGE_FAILURE}};

static const struct bel_job_task tasks[] = {
    {.id = TEXT("a"), .topic = TEXT("t"), .state = BEL_DEAD, .reason = TEXT("broken")},
    {.id = TEXT("bb"), .topic = TEXT("tt"), .attempts = 2},
    {.id = TEXT("c"), .topic = TEXT("t"), .after = afters, .after_count = 2},
};

static const struct bel_job jobs[] = {
    {.id = TEXT("one"),
     .state = BEL_JOB_FAILED,
     .reason = TEXT("timeout"),
     .counts = {[BEL_DEAD] = 1},
     .parent = TEXT("father"),
     .clash = TEXT("other"),
     .plan_id = TEXT("plan"),
     .plan = {.rule = TEXT("0 3 * * *"), .zone = TEXT("Europe/Berlin")},
     .tasks = tasks,
     .tasks_count = 3,
     .cursor = TEXT("next")},
    {.id = TEXT("two")},
};

/* Checks that a text was copied. */
static void check_text(struct bel_view copy, struct bel_view from)
{
    CHECK_EQ(copy.bytes, from.bytes);
    CHECK(copy.data != NULL && copy.data != from.data);
    CHECK(from.bytes == 0 || memcmp(copy.data, from.data, from.bytes) == 0);
    CHECK(((const char *)copy.data)[copy.bytes] == '\0');
}

static void check_task(const struct bel_job_task *copy, const struct bel_job_task *from)
{
    check_text(copy->id, from->id);
    check_text(copy->topic, from->topic);
    check_text(copy->reason, from->reason);
    CHECK(copy->state == from->state && copy->attempts == from->attempts);
    CHECK_EQ(copy->after_count, from->after_count);
    for (size_t i = 0; i < from->after_count; i++) {
        check_text(copy->after[i].task, from->after[i].task);
        CHECK(copy->after[i].on == from->after[i].on);
    }
}

static void check_job(const struct bel_job *copy, const struct bel_job *from)
{
    check_text(copy->id, from->id);
    check_text(copy->reason, from->reason);
    check_text(copy->parent, from->parent);
    check_text(copy->clash, from->clash);
    check_text(copy->plan_id, from->plan_id);
    check_text(copy->plan.rule, from->plan.rule);
    check_text(copy->plan.zone, from->plan.zone);
    check_text(copy->cursor, from->cursor);
    CHECK(copy->state == from->state);
    CHECK(memcmp(copy->counts, from->counts, sizeof copy->counts) == 0);
    CHECK_EQ(copy->tasks_count, from->tasks_count);
    for (size_t i = 0; i < from->tasks_count; i++) {
        check_task(&copy->tasks[i], &from->tasks[i]);
    }
}

static void a_job_is_copied_with_everything_in_it(void)
{
    for (size_t i = 0; i < 2; i++) {
        struct bel_job *copy = bel__job_copy(&jobs[i]);
        CHECK(copy != NULL);
        check_job(copy, &jobs[i]);
        bel_job_destroy(copy);
    }
    bel_job_destroy(NULL);
}

static void a_page_is_copied_with_its_cursor(void)
{
    for (size_t count = 0; count <= 2; count++) {
        struct bel_job_page *page = bel__job_page_copy(jobs, count, BEL_VIEW("more"));
        CHECK(page != NULL && page->count == count);
        check_text(page->cursor, BEL_VIEW("more"));
        for (size_t i = 0; i < count; i++) {
            check_job(&page->jobs[i], &jobs[i]);
        }
        bel_job_page_destroy(page);
    }
    bel_job_page_destroy(NULL);
}

static void without_memory_there_is_no_copy(void)
{
    memory_left = 0;
    CHECK(bel__job_copy(&jobs[0]) == NULL);
    CHECK(bel__job_page_copy(jobs, 2, BEL_VIEW("more")) == NULL);
    memory_left = 1;
    bel_job_destroy(bel__job_copy(&jobs[0]));
    CHECK_EQ(memory_left, 0); /* a copy is one block */
    memory_left = UINT64_MAX;
}

int main(void)
{
    RUN(a_job_is_copied_with_everything_in_it);
    RUN(a_page_is_copied_with_its_cursor);
    RUN(without_memory_there_is_no_copy);
    return 0;
}
