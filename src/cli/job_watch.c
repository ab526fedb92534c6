/* SPDX-License-Identifier: MIT */

/*
 * belfry job watch: asks for the job again and again. On a terminal the picture is drawn over the
 * last one; otherwise each change of a task or of the job is a line, or with --json an object.
 */
#include "cli/job.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    ROWS_DEFAULT = 24,
};

static size_t rows_of_terminal(void)
{
    struct winsize size = {0};
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 4;
    return (is_known ? size.ws_row : ROWS_DEFAULT) - 1;
}

static void print_event(bool is_json, const struct cli_job *job, const struct cli_job_task *task)
{
    const char *state = task != NULL ? task->state : job->state;
    const char *reason = task != NULL ? task->reason : job->reason;
    if (is_json) {
        printf("{\"job\": ");
        bel__cli_print_json(job->id);
        if (task != NULL) {
            printf(", \"task\": ");
            bel__cli_print_json(task->id);
        }
        printf(", \"state\": \"%s\"", state);
        if (job->rule[0] == '\0') printf(", \"progress\": %lld", (long long)job->progress);
        if (reason[0] != '\0') {
            printf(", \"reason\": ");
            bel__cli_print_json(reason);
        }
        printf("}\n");
        return;
    }
    bel__cli_print_line((struct bel_view){job->id, strlen(job->id)}, 0);
    if (task != NULL) {
        (void)putchar('/');
        bel__cli_print_line((struct bel_view){task->id, strlen(task->id)}, 0);
    }
    printf("\t%s", state);
    if (task == NULL) bel__job_print_lost(job);
    if (job->rule[0] == '\0') {
        printf("\t%lld %%", (long long)job->progress);
    } else {
        printf("\t-");
    }
    if (reason[0] != '\0') {
        (void)putchar('\t');
        bel__cli_print_line((struct bel_view){reason, strlen(reason)}, 0);
    }
    printf("\n");
}

/* Prints what differs from the last look. Tasks keep their places. */
static void print_events(bool is_json, const struct cli_job *last, const struct cli_job *job)
{
    for (size_t i = 0; i < job->tasks_count; i++) {
        bool is_known = i < last->tasks_count && strcmp(last->tasks[i].id, job->tasks[i].id) == 0;
        bool is_same = is_known && strcmp(last->tasks[i].state, job->tasks[i].state) == 0;
        if (!is_same) print_event(is_json, job, &job->tasks[i]);
    }
    if (last->state == NULL || strcmp(last->state, job->state) != 0) {
        print_event(is_json, job, NULL);
    }
    (void)fflush(stdout);
}

static void draw_over(const struct cli_job *job, size_t *lines)
{
    if (*lines > 0) printf("\033[%zuA\033[J", *lines);
    *lines = bel__job_draw(job, bel__cli_columns(), rows_of_terminal());
    (void)fflush(stdout);
}

int bel__job_watch(struct bel_client *client, const struct cli_connect *connect, const char *id,
                   uint64_t interval_ms)
{
    struct timespec pause = {.tv_sec = (time_t)(interval_ms / 1000),
                             .tv_nsec = (long)(interval_ms % 1000) * 1000000};
    struct cli_job last = {0};
    size_t lines = 0;
    int status = CLI_OK;
    bool is_over = false;
    while (!is_over) {
        struct cli_job job = {0};
        status = bel__job_fetch(client, connect, id, &job);
        if (status != CLI_OK) {
            bel__job_finish(&job);
            break;
        }
        if (bel__cli_is_terminal() && !connect->is_json) {
            draw_over(&job, &lines);
        } else {
            print_events(connect->is_json, &last, &job);
        }
        bel__job_finish(&last);
        last = job;
        is_over = bel__job_has_ended(&job);
        if (!is_over) (void)nanosleep(&pause, NULL);
    }
    if (is_over && strcmp(last.state, "done") != 0) status = CLI_FAILED;
    bel__job_finish(&last);
    return status;
}
