/* SPDX-License-Identifier: MIT */

/*
 * A build as a job in this process: four tasks in a diamond, which hand on their results, in a data
 * directory. If the program is killed, even by kill -9, start it again: what was done stays done.
 *
 *                 .--> compile-main --.
 *     configure --|                   |--> link
 *                 '--> compile-util --'
 *
 *     pipeline FOLDER             runs the build, or continues it; prints the result of link
 *     pipeline FOLDER --again     builds once more, also if the build is done
 *     pipeline FOLDER --slow MS   each task takes this long, so that there is time to kill it
 *
 * The "compilers" only write names. A task that was running when the program was killed is run
 * again after its lease, so a handler must not mind to be called twice.
 */
#include <belfry/engine.h>
#include <belfry/job_builder.h>
#include <belfry/jobs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long slow_ms;

/* Says that a task begins, and takes its time. */
static void begin(const struct bel_errand *errand)
{
    struct timespec time = {slow_ms / 1000, slow_ms % 1000 * 1000000};
    printf("%s, attempt %llu\n", (const char *)errand->id.data,
           (unsigned long long)errand->attempt);
    (void)nanosleep(&time, NULL);
}

static void give(struct bel_report *report, const char *text)
{
    int err = bel_report_result(report, (struct bel_view){text, strlen(text)});
    if (err) bel_report_fail(report, bel_error_text(err));
}

static void configure(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    (void)context;
    begin(errand);
    give(report, "-O2");
}

/* The payload is the source file. */
static void compile(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    struct bel_view flags = {0};
    char object[100];
    (void)context;
    begin(errand);
    if (!bel_errand_result(errand, "configure", &flags)) {
        bel_report_fail(report, "configure gave no flags");
        return;
    }
    (void)snprintf(object, sizeof object, "%s.o(%s)", (const char *)errand->payload.data,
                   (const char *)flags.data);
    give(report, object);
}

/* The results come in the order of `after`. */
static void link_objects(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    char program[300] = "program:";
    (void)context;
    begin(errand);
    for (size_t i = 0; i < errand->results_count; i++) {
        size_t used = strlen(program);
        (void)snprintf(program + used, sizeof program - used, " %s",
                       (const char *)errand->results[i].result.data);
    }
    give(report, program);
}

static void show_progress(void *context, const struct bel_job *job)
{
    (void)context;
    printf("%llu of %llu tasks done\n", (unsigned long long)job->counts[BEL_DONE],
           (unsigned long long)job->tasks_total);
}

/* Writes the text of the job. A lease of 1 s: a task of a killed program runs again after it. */
static int describe(struct bel_job_builder *builder, struct bel_view *out)
{
    static const char *const sources[] = {"main", "util"};
    bel_job_builder_task(
        builder, &(struct bel_task_spec){.id = "configure", .topic = "build", .idle_ms = 1000});
    for (int i = 0; i < 2; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "compile-%s", sources[i]);
        bel_job_builder_task(builder,
                             &(struct bel_task_spec){.id = id,
                                                     .topic = "build",
                                                     .payload = {sources[i], strlen(sources[i])},
                                                     .idle_ms = 1000});
        bel_job_builder_after(builder, "configure", BEL_EDGE_SUCCESS);
    }
    bel_job_builder_task(builder,
                         &(struct bel_task_spec){.id = "link", .topic = "build", .idle_ms = 1000});
    bel_job_builder_after(builder, "compile-main", BEL_EDGE_SUCCESS);
    bel_job_builder_after(builder, "compile-util", BEL_EDGE_SUCCESS);
    return bel_job_builder_end(builder, out);
}

/* Runs the build and prints its end. Returns the exit status. */
static int build(struct bel_driver *driver, const struct bel_job_submit *submit)
{
    const struct bel_job_handler handlers[] = {
        {.topic = "build", .task = "configure", .work = configure},
        {.topic = "build", .task = "link", .work = link_objects},
        {.topic = "build", .work = compile}};
    struct bel_jobs_options options = {
        .handlers = handlers, .handlers_count = 3, .hands = 2, .progress = show_progress};
    struct bel_job_receipt receipt;
    struct bel_job *job = NULL;
    char *program = NULL;
    size_t bytes;

    int err = bel_jobs_run(driver, &options, submit, &receipt, &job);
    if (err) {
        fprintf(stderr, "pipeline: %s\n",
                receipt.why[0] != '\0' ? receipt.why : bel_error_text(err));
        return 1;
    }
    printf("build is %s\n", bel_job_state_name(job->state));
    int status = job->state == BEL_JOB_DONE ? 0 : 1;
    bel_job_destroy(job);
    if (bel_driver_result(driver, "build", "build/link", &program, &bytes) == 0) puts(program);
    free(program);
    return status;
}

int main(int argc, char **argv)
{
    struct bel_job_submit submit = {.id = BEL_VIEW("build")};
    struct bel_engine_options options = {.now = bel_clock_now(bel_clock_system())};
    struct bel_job_builder *builder;
    struct bel_engine_why why;
    struct bel_engine *engine;
    struct bel_driver *driver;

    for (int i = 2; i < argc; i++) {
        submit.is_replacement = submit.is_replacement || strcmp(argv[i], "--again") == 0;
        if (strcmp(argv[i], "--slow") == 0 && i + 1 < argc) slow_ms = strtol(argv[++i], NULL, 10);
    }
    if (argc < 2) {
        fprintf(stderr, "usage: pipeline FOLDER [--again] [--slow MS]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    options.folder = argv[1];
    if (bel_engine_open(&options, &engine, &why) != 0) {
        fprintf(stderr, "pipeline: %s\n", why.text);
        return 1;
    }
    if (bel_driver_start(bel_engine_backend(engine), NULL, &driver) != 0) return 1;
    if (bel_job_builder_create(NULL, &builder) != 0) return 1;
    int status = describe(builder, &submit.text) == 0 ? build(driver, &submit) : 1;
    bel_job_builder_destroy(builder);
    bel_driver_destroy(driver);
    bel_engine_close(engine);
    return status;
}
