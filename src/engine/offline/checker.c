/* SPDX-License-Identifier: MIT */

/*
 * The process has no descriptor but the standard ones: a lock of LMDB or of the data directory must
 * not be shared with the server. It ends with its parent, by a signal of the kernel; the parent may
 * have ended before that signal was asked for, so its number is compared.
 */
#include "engine/offline/checker.h"

#include "belfry/clock.h"
#include "core/parse.h"
#include "core/units.h"
#include "store/store.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    STEP_PAGES = 512, /* some 2 MB */
    REPORT_MS = 50,   /* between two lines */
    NICENESS = 10,
    FIRST_DESCRIPTOR = 3,
};

struct checker {
    uint64_t parent;
    uint64_t reported_ns;
    struct bel_scrub_progress progress;
};

static int write_line(const char *line, size_t bytes)
{
    return write(STDOUT_FILENO, line, bytes) == (ssize_t)bytes ? 0 : BEL_ECLOSED;
}

static int write_progress(const struct bel_scrub_progress *progress)
{
    char line[BEL_CHECKER_LINE_BYTES];
    int bytes = snprintf(
        line, sizeof line, "progress %llu %llu %llu %llu %llu %llu\n",
        (unsigned long long)progress->pages_done, (unsigned long long)progress->pages,
        (unsigned long long)progress->rows, (unsigned long long)progress->growth_bytes,
        (unsigned long long)progress->growth_bytes_max, (unsigned long long)progress->snapshots);
    return write_line(line, (size_t)bytes);
}

static int report(void *context, const struct bel_scrub_progress *progress)
{
    struct checker *checker = context;
    uint64_t now_ns = bel_clock_mono(bel_clock_system()).ns;
    checker->progress = *progress;
    if ((uint64_t)getppid() != checker->parent) return BEL_ECLOSED;
    if (now_ns - checker->reported_ns < (uint64_t)REPORT_MS * NS_PER_MS) return 0;
    checker->reported_ns = now_ns;
    return write_progress(progress);
}

/* Ends with the parent, prints nothing else, and leaves the processor to others. */
static void settle_in(void)
{
    const struct rlimit none = {0, 0};
    (void)close_range(FIRST_DESCRIPTOR, ~0U, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
}

static int write_result(struct checker *checker, int err, const struct bel_why *why)
{
    char line[BEL_CHECKER_LINE_BYTES];
    const char *text = why->text[0] != 0 ? why->text : bel_error_text(err);
    const char *word = err == BEL_ECORRUPT ? "damaged" : "failed";
    if (err == BEL_ECLOSED) return EXIT_FAILURE;
    if (err == 0) {
        (void)write_progress(&checker->progress);
        return write_line("done\n", strlen("done\n")) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    int bytes = snprintf(line, sizeof line, "%s %.*s\n", word, (int)sizeof line / 2, text);
    (void)write_line(line, (size_t)bytes);
    return EXIT_FAILURE;
}

int bel__checker_main(int argc, char **argv)
{
    enum {
        ARGUMENTS = 5
    };
    struct checker checker = {0};
    struct bel_why why = {0};
    uint64_t growth;
    char path[4096];
    if (argc != ARGUMENTS) return EXIT_FAILURE;
    if (bel__parse_u64(argv[3], strlen(argv[3]), 1, INT32_MAX, &checker.parent) != 0 ||
        bel__parse_u64(argv[4], strlen(argv[4]), 0, UINT64_MAX, &growth) != 0) {
        return EXIT_FAILURE;
    }
    settle_in();
    if ((uint64_t)getppid() != checker.parent) return EXIT_FAILURE;
    int bytes = snprintf(path, sizeof path, "%s/tree", argv[2]);
    if (bytes < 0 || (size_t)bytes >= sizeof path) return EXIT_FAILURE;
    struct bel_scrub_options options = {.path = path,
                                        .growth_bytes_max = growth,
                                        .step_pages = STEP_PAGES,
                                        .report = report,
                                        .context = &checker};
    int err = bel__tree_scrub(&options, &why);
    return write_result(&checker, err, &why);
}
