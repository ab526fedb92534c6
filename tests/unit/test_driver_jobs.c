/* SPDX-License-Identifier: MIT */

/* The requests of jobs as functions, with an engine in memory and a clock that the test moves. */
#include "belfry/job_builder.h"

#include "driver_rig.h"

#include <stdlib.h>
#include <string.h>

enum {
    JOBS = 5,
};

static int submit(const char *text, struct bel_job_receipt *out)
{
    return bel_driver_job_submit(driver, &(struct bel_job_submit){.text = {text, strlen(text)}},
                                 out);
}

static struct bel_delivery *claim(const char *id)
{
    struct bel_delivery *due = NULL;
    CHECK(bel_driver_claim(driver, "etl", 0, &due) == 0 && due != NULL);
    CHECK(strcmp(due->id.data, id) == 0);
    return due;
}

static enum bel_job_state state_of(const char *id)
{
    struct bel_job *job = NULL;
    struct bel_job_get query = {.id = {id, strlen(id)}, .count = 1};
    CHECK(bel_driver_job_get(driver, &query, &job) == 0);
    enum bel_job_state state = job->state;
    bel_job_destroy(job);
    return state;
}

/* Submits the job "n": load comes after fetch and clean. */
static void submit_fan_in(void)
{
    struct bel_job_builder *builder;
    struct bel_job_submit job = {.id = BEL_VIEW("n")};
    struct bel_job_receipt receipt;
    CHECK(bel_job_builder_create(NULL, &builder) == 0);
    bel_job_builder_rules(builder, BEL_VIEW("load: fetch clean\n"), "etl");
    CHECK(bel_job_builder_end(builder, &job.text) == 0);
    CHECK(bel_driver_job_submit(driver, &job, &receipt) == 0);
    CHECK(strcmp(receipt.id, "n") == 0 && receipt.why[0] == '\0');
    CHECK_EQ(receipt.tasks, 3);
    CHECK_EQ(receipt.edges, 2);
    bel_job_builder_destroy(builder);
}

static void results_reach_the_tasks_after(void)
{
    char *result = NULL;
    size_t bytes = 0;
    start();
    submit_fan_in();
    struct bel_delivery *first = NULL, *second = NULL;
    CHECK(bel_driver_claim(driver, "etl", 0, &first) == 0 && first != NULL);
    CHECK(bel_driver_claim(driver, "etl", 0, &second) == 0 && second != NULL);
    CHECK(bel_driver_ack_result(driver, first, BEL_VIEW("20\0rows")) == 0);
    CHECK(bel_driver_ack_result(driver, first, BEL_VIEW("late")) == BEL_ESTALE);
    CHECK(bel_driver_ack(driver, second) == 0);

    struct bel_delivery *due = claim("n/load");
    CHECK_EQ(due->results_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct bel_task_result *got = &due->results[i];
        bool is_first = strcmp((const char *)first->id.data + 2, got->task.data) == 0;
        CHECK(got->has_result == is_first);
        CHECK(!is_first ||
              (got->result.bytes == 7 && memcmp(got->result.data, "20\0rows", 8) == 0));
    }
    CHECK(bel_driver_result(driver, "etl", first->id.data, &result, &bytes) == 0);
    CHECK(bytes == 7 && memcmp(result, "20\0rows", 8) == 0);
    free(result);
    CHECK(bel_driver_result(driver, "etl", second->id.data, &result, &bytes) == BEL_ENOTFOUND);
    CHECK(bel_driver_result(driver, "etl", "nobody", &result, &bytes) == BEL_ENOTFOUND);
    CHECK(bel_driver_ack(driver, due) == 0);
    CHECK(state_of("n") == BEL_JOB_DONE);
    bel_delivery_destroy(first);
    bel_delivery_destroy(second);
    bel_delivery_destroy(due);
    end();
}

static void a_result_that_is_too_large_keeps_the_lease(void)
{
    static const char large[BEL_RESULT_BYTES_MAX + 1];
    start();
    CHECK(submit("{\"id\": \"n\", \"tasks\": [{\"id\": \"a\", \"topic\": \"etl\"}]}", NULL) == 0);
    struct bel_delivery *due = claim("n/a");
    CHECK(bel_driver_ack_result(driver, due, (struct bel_view){large, sizeof large}) == BEL_EINVAL);
    CHECK(bel_driver_ack_result(driver, due, (struct bel_view){large, sizeof large - 1}) == 0);
    bel_delivery_destroy(due);
    end();
}

static void a_job_is_shown_with_its_tasks(void)
{
    struct bel_job *job = NULL;
    start();
    submit_fan_in();
    CHECK(bel_driver_job_get(driver, &(struct bel_job_get){.id = BEL_VIEW("n")}, &job) == 0);
    CHECK(bel_driver_job_cancel(driver, "n", NULL) == 0); /* the copy stays as it is */
    CHECK(strcmp(job->id.data, "n") == 0 && job->state == BEL_JOB_RUNNING);
    CHECK_EQ(job->tasks_count, 3);
    CHECK_EQ(job->counts[BEL_BLOCKED], 1);
    size_t edges = 0;
    for (size_t i = 0; i < job->tasks_count; i++) {
        const struct bel_job_task *task = &job->tasks[i];
        CHECK(strcmp(task->topic.data, "etl") == 0);
        edges += task->after_count;
        if (task->after_count == 0) continue;
        CHECK(strcmp(task->id.data, "load") == 0);
        CHECK(strcmp(task->after[0].task.data, "fetch") == 0);
        CHECK(strcmp(task->after[1].task.data, "clean") == 0);
    }
    CHECK_EQ(edges, 2);
    bel_job_destroy(job);
    bel_job_destroy(NULL);

    struct bel_job_get query = {.id = BEL_VIEW("n"), .count = 2};
    CHECK(bel_driver_job_get(driver, &query, &job) == 0);
    CHECK(job->state == BEL_JOB_CANCELLED && job->cursor.bytes > 0);
    CHECK_EQ(job->tasks_count, 2);
    query.cursor = job->cursor;
    struct bel_job *rest = NULL;
    CHECK(bel_driver_job_get(driver, &query, &rest) == 0);
    CHECK_EQ(rest->tasks_count, 1);
    CHECK_EQ(rest->cursor.bytes, 0);
    bel_job_destroy(job);
    bel_job_destroy(rest);
    query = (struct bel_job_get){.id = BEL_VIEW("m")};
    job = NULL;
    CHECK(bel_driver_job_get(driver, &query, &job) == BEL_ENOTFOUND && job == NULL);
    end();
}

static void jobs_are_listed_in_pages(void)
{
    struct bel_job_list query = {.count = 2};
    struct bel_job_page *page = NULL, *last;
    unsigned seen = 0, pages = 0;
    start();
    for (unsigned i = 0; i < JOBS; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "{\"id\": \"j%u\", \"tasks\": []}", i);
        CHECK(submit(text, NULL) == 0);
    }
    do {
        last = page;
        CHECK(bel_driver_job_list(driver, &query, &page) == 0);
        bel_job_page_destroy(last); /* the cursor of the query pointed into it */
        for (size_t i = 0; i < page->count; i++) {
            CHECK(((const char *)page->jobs[i].id.data)[0] == 'j');
            CHECK(page->jobs[i].state == BEL_JOB_DONE);
            seen++;
        }
        query.cursor = page->cursor;
        pages++;
        CHECK(pages <= JOBS);
    } while (page->cursor.bytes > 0);
    bel_job_page_destroy(page);
    CHECK_EQ(seen, JOBS);
    query = (struct bel_job_list){.has_state = true, .state = BEL_JOB_FAILED};
    CHECK(bel_driver_job_list(driver, &query, &page) == 0 && page->count == 0);
    bel_job_page_destroy(page);
    end();
}

static void a_job_is_paused_resumed_and_cancelled(void)
{
    bool has_changed = false;
    struct bel_delivery *due = NULL;
    start();
    submit_fan_in();
    CHECK(bel_driver_job_pause(driver, "n", &has_changed) == 0 && has_changed);
    CHECK(bel_driver_job_pause(driver, "n", &has_changed) == 0 && !has_changed);
    CHECK(state_of("n") == BEL_JOB_PAUSED);
    CHECK(bel_driver_claim(driver, "etl", 0, &due) == 0 && due == NULL);
    CHECK(bel_driver_job_resume(driver, "n", &has_changed) == 0 && has_changed);
    CHECK(bel_driver_job_resume(driver, "n", NULL) == 0);
    CHECK(bel_driver_job_cancel(driver, "n", &has_changed) == 0 && has_changed);
    CHECK(bel_driver_job_cancel(driver, "n", &has_changed) == 0 && !has_changed);
    CHECK(state_of("n") == BEL_JOB_CANCELLED);
    CHECK(bel_driver_job_cancel(driver, "m", &has_changed) == BEL_ENOTFOUND);
    CHECK(bel_driver_job_pause(driver, "m", &has_changed) == BEL_ENOTFOUND);
    CHECK(bel_driver_job_resume(driver, "m", &has_changed) == BEL_ENOTFOUND);
    end();
}

static void a_wrong_job_names_its_place(void)
{
    struct bel_job_receipt receipt;
    start();
    CHECK(submit("{\"tasks\": [{\"id\": \"a\", \"topic\": \"etl\", \"after\": [\"x\"]}]}",
                 &receipt) == BEL_EINVAL);
    CHECK_NOTE("%s", receipt.why);
    CHECK(strncmp(receipt.why, "tasks[0].after[0]", 17) == 0 && receipt.id[0] == '\0');
    CHECK(submit("{\"id\": \"n\", \"tasks\": []}", NULL) == 0);
    CHECK(submit("{\"id\": \"n\", \"tasks\": []}", &receipt) == BEL_ECONFLICT);
    CHECK(receipt.why[0] != '\0');
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(submit("{\"id\": \"m\", \"tasks\": []}", &receipt) == BEL_ECLOSED);
    end();
}

static void a_rate_limit_uses_up_no_attempt_and_a_broken_resource_does(void)
{
    start();
    CHECK(submit("{\"id\": \"n\", \"tasks\": [{\"id\": \"a\", \"topic\": \"etl\","
                 " \"retry\": \"fixed(1s) max(5)\"}]}",
                 NULL) == 0);
    struct bel_delivery *due = claim("n/a");
    CHECK(bel_driver_limited(driver, due, 500) == 0);
    CHECK(bel_driver_limited(driver, due, 500) == BEL_ESTALE);
    bel_delivery_destroy(due);
    bel_clock_fake_advance(fake, 500 * MS);
    bel_driver_wake(driver);
    due = claim("n/a");
    CHECK_EQ(due->attempt, 1);
    CHECK(bel_driver_fail_resource(driver, due, "503") == 0);
    CHECK(bel_driver_fail_resource(driver, due, NULL) == BEL_ESTALE);
    bel_delivery_destroy(due);
    bel_clock_fake_advance(fake, 10000 * MS);
    bel_driver_wake(driver);
    due = claim("n/a");
    CHECK_EQ(due->attempt, 2);
    CHECK(bel_driver_limited(driver, due, 0) == 0); /* one minute */
    bel_delivery_destroy(due);
    bel_clock_fake_advance(fake, 59999 * MS);
    bel_driver_wake(driver);
    CHECK(bel_driver_claim(driver, "etl", 0, &due) == 0 && due == NULL);
    bel_clock_fake_advance(fake, MS);
    bel_driver_wake(driver);
    bel_delivery_destroy(claim("n/a"));
    end();
}

int main(void)
{
    RUN(results_reach_the_tasks_after);
    RUN(a_result_that_is_too_large_keeps_the_lease);
    RUN(a_job_is_shown_with_its_tasks);
    RUN(jobs_are_listed_in_pages);
    RUN(a_job_is_paused_resumed_and_cancelled);
    RUN(a_wrong_job_names_its_place);
    RUN(a_rate_limit_uses_up_no_attempt_and_a_broken_resource_does);
    return 0;
}
