/* SPDX-License-Identifier: MIT */

/* Which skipped times of recurring jobs get a line in the log. */
#include "server/embedded/overlap_log.h"

#include "../check.h"

#include <stdio.h>

static struct bel_overlap_log table;

static uint64_t count(const char *job, uint64_t in_a_row, uint64_t ms)
{
    struct bel_engine_overlap note = {.in_a_row = in_a_row};
    (void)snprintf(note.job, sizeof note.job, "%s", job);
    return bel__overlap_log_count(&table, &note, (struct bel_boot){ms * 1000000});
}

static void a_job_has_a_line_in_a_second(void)
{
    uint64_t lines = 0, skipped = 0;
    table = (struct bel_overlap_log){0};
    CHECK(count("a", 1, 5000) == 1); /* at once */
    for (uint64_t ms = 1; ms <= 20000; ms++) {
        uint64_t told = count("a", 1 + ms, 5000 + ms);
        CHECK(told == 0 || told == 1000);
        lines += told > 0;
        skipped += told;
    }
    CHECK(lines == 20 && skipped == 20000);
}

static void lost_notes_and_new_rows_are_counted(void)
{
    table = (struct bel_overlap_log){0};
    CHECK(count("a", 7, 0) == 1);
    CHECK(count("a", 20, 10) == 0);   /* 13 more */
    CHECK(count("a", 2, 20) == 0);    /* a job was made, then 2 */
    CHECK(count("a", 1, 30) == 0);    /* 1 */
    CHECK(count("a", 3, 1000) == 18); /* 2 more of that row */
    CHECK(count("a", 4, 1999) == 0);
    CHECK(count("a", 5, 2000) == 2);
}

static void jobs_do_not_share_a_second(void)
{
    table = (struct bel_overlap_log){0};
    CHECK(count("a", 1, 0) == 1);
    CHECK(count("b", 1, 1) == 1);
    CHECK(count("a", 2, 2) == 0);
    CHECK(count("b", 2, 1000) == 0);
    CHECK(count("a", 3, 1000) == 2);
    CHECK(count("b", 3, 1001) == 2);
}

static void many_jobs_have_few_lines(void)
{
    uint64_t lines = 0;
    table = (struct bel_overlap_log){0};
    for (unsigned i = 0; i < 1000; i++) {
        char job[16];
        (void)snprintf(job, sizeof job, "job%u", i);
        lines += count(job, 1, 100) > 0;
    }
    CHECK(lines == BEL_OVERLAP_LOG_JOBS);
    CHECK(count("job999", 2, 1099) == 0);
    CHECK(count("job999", 3, 1100) == 1); /* the others have been quiet */
}

int main(void)
{
    RUN(a_job_has_a_line_in_a_second);
    RUN(lost_notes_and_new_rows_are_counted);
    RUN(jobs_do_not_share_a_second);
    RUN(many_jobs_have_few_lines);
    return 0;
}
