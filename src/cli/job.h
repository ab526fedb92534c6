/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_JOB_H
#define BEL_CLI_JOB_H

/*
 * job - what the files of belfry job share: a job with all its tasks, read page by page, and its
 * picture.
 */

#include "belfry/backend.h"
#include "belfry/client.h"
#include "cli/connect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_job_task {
    char *id, *topic, *reason; /* owned by the job */
    char *after;               /* "fetch clean? report!", as in lines in the style of make */
    char state[16];
    int64_t attempts, due_ms;
    uint32_t depth;
};

struct cli_job {
    char *id, *state, *reason;
    char *rule, *zone;                    /* of a recurring job; otherwise empty */
    int64_t next_ms;                      /* its next time; 0: none */
    int64_t made, skipped, missed;        /* its times so far */
    int64_t total, progress, estimate_ms; /* estimate_ms -1: unknown */
    int64_t counts[BEL_STATES];
    int64_t failures, crashes, completions_per_minute;
    int64_t waited_ms_p50, waited_ms_p99, ran_ms_p50, ran_ms_p99; /* 0: no task is done */
    struct cli_job_task *tasks;
    size_t tasks_count;
};

/* Reads a job and all its tasks. Returns CLI_OK, or an exit status after printing an error. Call
 * bel__job_finish() in either case; *out must be zeroed. */
int bel__job_fetch(struct bel_client *client, const struct cli_connect *connect, const char *id,
                   struct cli_job *out);
void bel__job_finish(struct cli_job *job);

/* Returns whether a job of this state does not change any more. */
bool bel__job_has_ended(const struct cli_job *job);

/* Prints how many tasks have ended otherwise than done: " (1 dead, 2 skipped)"; nothing if none. */
void bel__job_print_lost(const struct cli_job *job);

/* Prints the times of a recurring job: "2 made, 0 skipped, 1 missed". */
void bel__job_print_times(int64_t made, int64_t skipped, int64_t missed);

/* Prints the job in lines of at most `columns` characters: a bar, or the times of a recurring job;
 * then a line for each task, indented by its depth. Of more tasks than `rows` those that have
 * failed or are under way are shown first, then those that come next, and how many are in each
 * state. Returns the number of lines. */
size_t bel__job_draw(const struct cli_job *job, unsigned columns, size_t rows);

/* belfry job explain: prints what a job waits for now, and its critical path. Returns the exit
 * status. */
int bel__job_explain(struct bel_client *client, const struct cli_connect *connect, const char *id);

/* Prints a line about what workers did with the tasks; nothing if none was done or failed. */
void bel__job_print_work(const struct cli_job *job);

/* belfry job watch: prints what happens to a job until it has ended. Returns the exit status: that
 * of the job. */
int bel__job_watch(struct bel_client *client, const struct cli_connect *connect, const char *id,
                   uint64_t interval_ms);

#endif
