/* SPDX-License-Identifier: MIT */

/*
 * belfry copy: arguments, progress and result. On a terminal a bar is drawn for each step,
 * otherwise a line is printed each second.
 */
#include "cli/copy.h"

#include "belfry/clock.h"
#include "belfry/error.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/store.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: belfry copy --from STORE --to STORE [OPTION ...]\n"
    "\n"
    "Copies all topics, timers and plans from one store to another, and verifies the copy.\n"
    "Stop the servers of both stores first. A copy that was stopped goes on when it is run again.\n"
    "\n"
    "    STORE             embedded:DIR, the folder of belfry serve --data or of a backup; or\n"
    "                      redis://[[USER]:PASSWORD@]HOST[:PORT][/DB][?namespace=NAME],\n"
    "                      rediss://, redis+sentinel:// or redis+cluster://\n"
    "    --from STORE      copy from this store\n"
    "    --to STORE        copy to this store; its topics must have no timers\n"
    "    --merge           keep timers of the target, and add those whose ids are free\n"
    "    --move            delete everything in the source when the copy is verified\n"
    "    --without WORDS   leave out, separated by commas: jobs, groups, resources, concurrency\n"
    "    --force           go on although servers on Redis use a store; what they change\n"
    "                      meanwhile may be lost\n"
    "    --dry-run         only tell what would be copied\n"
    "    --json            print the result as JSON\n";

/* A copy and what is drawn of it. */
struct drawing {
    struct cli_copy copy; /* first */
    struct cli_progress progress;
    const char *step; /* the current one */
    uint64_t began_ns, drawn_ns;
};

static uint64_t now_ns(void)
{
    return bel_clock_mono(bel_clock_system()).ns;
}

static void print_line(const struct drawing *drawing, uint64_t done, uint64_t total,
                       uint64_t elapsed_ms)
{
    char so_far[CLI_GROUPED_BYTES], all[CLI_GROUPED_BYTES], rate[CLI_GROUPED_BYTES];
    double per_second = elapsed_ms > 0 ? (double)done * MS_PER_S / (double)elapsed_ms : 0;
    fprintf(stderr, "belfry copy: %s: %s of %s timers, %s/s\n", drawing->step,
            bel__cli_grouped(done, so_far), bel__cli_grouped(total, all),
            bel__cli_grouped((uint64_t)per_second, rate));
}

static void draw(struct cli_copy *copy, const char *step, uint64_t done, uint64_t total)
{
    struct drawing *drawing = (struct drawing *)copy;
    uint64_t now = now_ns();
    if (drawing->step == NULL || strcmp(drawing->step, step) != 0) {
        bel__progress_end(&drawing->progress);
        bel__progress_start(&drawing->progress, step, total);
        drawing->step = step;
        drawing->began_ns = drawing->drawn_ns = now;
    }
    uint64_t since_ms = (now - drawing->drawn_ns) / NS_PER_MS;
    uint64_t elapsed_ms = (now - drawing->began_ns) / NS_PER_MS;
    bool is_bar = drawing->progress.is_shown;
    if (since_ms < (is_bar ? CLI_PROGRESS_MS : MS_PER_S)) return;
    drawing->drawn_ns = now;
    if (is_bar) {
        drawing->progress.total = total;
        bel__progress_draw(&drawing->progress, done, elapsed_ms);
    } else {
        print_line(drawing, done, total, elapsed_ms);
    }
}

/* Sets what is left out. Returns false for an unknown word, which `*out` then is. */
static bool read_without(struct cli_copy *copy, const char *words, const char **out)
{
    const struct {
        const char *word;
        bool *flag;
    } known[] = {
        {"jobs", &copy->without_jobs},
        {"groups", &copy->without_groups},
        {"resources", &copy->without_resources},
        {"concurrency", &copy->without_concurrency},
    };
    for (const char *at = words; *at != 0;) {
        size_t bytes = strcspn(at, ","), i = 0;
        while (i < 4 &&
               (strlen(known[i].word) != bytes || strncmp(known[i].word, at, bytes) != 0)) {
            i++;
        }
        *out = at;
        if (i == 4) return false;
        *known[i].flag = true;
        at += bytes;
        at += *at == ',';
    }
    return words[0] != 0;
}

static int read_arguments(struct cli_copy *copy, bool *is_json, int argc, char **argv)
{
    const char *without = NULL, *wrong = "";
    const struct cli_option items[] = {
        {"from", 0, CLI_OPTION_TEXT, 0, 0, {.text = &copy->from}},
        {"to", 0, CLI_OPTION_TEXT, 0, 0, {.text = &copy->to}},
        {"merge", 0, CLI_OPTION_FLAG, 0, 0, {.flag = &copy->merges}},
        {"move", 0, CLI_OPTION_FLAG, 0, 0, {.flag = &copy->moves}},
        {"force", 0, CLI_OPTION_FLAG, 0, 0, {.flag = &copy->is_forced}},
        {"without", 0, CLI_OPTION_TEXT, 0, 0, {.text = &without}},
        {"dry-run", 0, CLI_OPTION_FLAG, 0, 0, {.flag = &copy->is_dry}},
        {"json", 0, CLI_OPTION_FLAG, 0, 0, {.flag = is_json}},
    };
    struct cli_options options = {
        .verb = argv[0], .usage = usage, .items = items, .count = sizeof items / sizeof items[0]};
    int status = bel__options_read(&options, argc, argv);
    if (status >= 0) return status;
    if (copy->from == NULL) return bel__options_complain(argv[0], "missing option --from STORE");
    if (copy->to == NULL) return bel__options_complain(argv[0], "missing option --to STORE");
    if (without != NULL && !read_without(copy, without, &wrong)) {
        return bel__options_complain(argv[0],
                                     "--without '%s': expected jobs, groups, resources, "
                                     "concurrency, separated by commas",
                                     wrong);
    }
    if (without != NULL && copy->moves) {
        return bel__options_complain(argv[0], "--move deletes everything in the source; it cannot "
                                              "be used with --without");
    }
    return -1;
}

static int exit_of(int err)
{
    switch (err) {
    case 0:
        return CLI_OK;
    case BEL_EINVAL:
        return CLI_USAGE;
    case BEL_ENOTFOUND:
        return CLI_NOT_FOUND;
    case BEL_EBUSY:
    case BEL_ECONFLICT:
        return CLI_CONFLICT;
    case BEL_EFULL:
        return CLI_LIMIT;
    case BEL_ECLOSED:
        return CLI_UNREACHABLE;
    default:
        return CLI_FAILED;
    }
}

static void print_result(const struct cli_copy *copy, int err, bool is_json)
{
    bool is_verified = err == 0 && !copy->is_dry;
    if (is_json) {
        printf("{\"verified\": %s", is_verified ? "true" : "false");
        if (err != 0) {
            printf(", \"problem\": ");
            bel__cli_print_json(copy->why.text);
        }
    }
    for (size_t i = 0; i < copy->facts_count; i++) {
        printf(is_json ? ", \"%s\": %" PRIu64 : "%s\t%" PRIu64 "\n", copy->facts[i].name,
               copy->facts[i].number);
    }
    printf(is_json ? ", \"digest\": \"%016" PRIx64 "\"}\n" : "digest\t%016" PRIx64 "\n",
           copy->digest);
    if (!is_json && is_verified) printf("verified\tyes\n");
}

int bel__cli_copy(int argc, char **argv, cli_copier *copier)
{
    struct drawing drawing = {.copy = {.progress = draw}};
    struct cli_copy *copy = &drawing.copy;
    bool is_json = false;
    int status = read_arguments(copy, &is_json, argc, argv);
    if (status >= 0) return status;
    int err = copier(copy);
    bel__progress_end(&drawing.progress);
    if (err != 0) fprintf(stderr, "belfry copy: %s\n", copy->why.text);
    if (err == 0 || is_json) print_result(copy, err, is_json);
    return err != 0 && bel__cli_store_is_denied(copy->why.text) ? CLI_NOT_ALLOWED : exit_of(err);
}
