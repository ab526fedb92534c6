/* SPDX-License-Identifier: MIT */

/*
 * belfry export: prints the timers of a topic as JSON lines, page by page, in the order of LIST.
 * Finished timers are left out, unless --state asks for them. Tasks of jobs are left out too: a
 * line cannot say what a task waits for. The export is not a snapshot: a timer that moves to a
 * position after the cursor during the export is printed, one that moves before the cursor is not.
 */
#include "belfry/clock.h"
#include "belfry/timer.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CURSOR_BYTES = 512,
};

static const char usage[] =
    "usage: belfry export TOPIC [OPTION ...]\n"
    "\n"
    "Prints the timers and plans of a topic as JSON lines, which belfry import reads.\n"
    "Finished timers are printed only with their --state. Tasks of jobs are left out; belfry\n"
    "backup copies jobs.\n"
    "\n"
    "    --state STATE       only timers in this state (default: all unfinished)\n";

struct export
{
    struct cli_connect connect;
    struct bel_view topic, state; /* empty state: all unfinished timers */
    struct bel_client *client;
    char cursor[CURSOR_BYTES];
    size_t cursor_bytes;
    uint64_t seen, began_ns;
    uint64_t tasks; /* of jobs: left out */
    struct cli_progress progress;
};

static uint64_t now_ns(void)
{
    return bel_clock_mono(bel_clock_system()).ns;
}

static int read_arguments(struct export *export, int argc, char **argv)
{
    const char *words[1], *state = NULL;
    const struct cli_option items[] = {
        {"state", 0, CLI_OPTION_TEXT, 0, 0, {.text = &state}},
    };
    struct cli_options options = {.verb = argv[0],
                                  .usage = usage,
                                  .items = items,
                                  .count = 1,
                                  .connect = &export->connect,
                                  .words = words,
                                  .words_max = 1};
    int status = bel__options_read(&options, argc, argv);
    if (status >= 0) return status;
    if (options.words_count == 0) return bel__options_complain(argv[0], "missing argument topic");
    export->topic = (struct bel_view){words[0], strlen(words[0])};
    if (state != NULL) export->state = (struct bel_view){state, strlen(state)};
    return -1;
}

static int ask(struct export *export, const struct bel_view *args, size_t count,
               const struct bel_value **out)
{
    int err = bel_client_call(export->client, args, count, out);
    if (err) return bel__connect_failed(&export->connect, err);
    return (*out)->type == BEL_VALUE_ERROR ? bel__connect_refused(*out) : CLI_OK;
}

/* Returns the number of timers in a state. */
static uint64_t count_of(const struct bel_value *topic, enum bel_state state)
{
    const struct bel_value *value = bel_value_find(topic, bel_state_name(state));
    return value != NULL && value->number > 0 ? (uint64_t)value->number : 0;
}

/* Checks that the topic exists, and starts the progress with the number of its timers. */
static int begin(struct export *export)
{
    const struct bel_view args[] = {BEL_VIEW("TOPIC"), export->topic};
    const struct bel_value *reply;
    uint64_t total = 0;
    int status = ask(export, args, 2, &reply);
    if (status != CLI_OK) return status;
    for (unsigned i = 0; i < BEL_STATES; i++) {
        enum bel_state state = (enum bel_state)i, wanted = state;
        if (export->state.bytes > 0 && !bel_state_find(export->state, &wanted)) continue;
        if (state == wanted) total += count_of(reply, state);
    }
    bel__progress_start(&export->progress, "export", total);
    if (bel__cli_is_terminal()) export->progress.is_shown = false; /* the lines show it */
    export->began_ns = now_ns();
    return CLI_OK;
}

static bool is_wanted(const struct export *export, const struct bel_value *timer)
{
    const struct bel_value *value = bel_value_find(timer, "state");
    enum bel_state state;
    if (export->state.bytes > 0 || value == NULL) return true;
    return !bel_state_find(value->text, &state) || state < BEL_DONE;
}

static bool is_task(const struct bel_value *timer)
{
    const struct bel_value *headers = bel_value_find(timer, "headers");
    if (headers == NULL) return false;
    struct bel_value map = *headers; /* RESP2 sends a map as a list */
    map.type = BEL_VALUE_MAP;
    return bel_value_find(&map, "belfry-job") != NULL;
}

static void print_page(struct export *export, const struct bel_value *timers)
{
    for (size_t i = 0; i < timers->count; i++) {
        struct bel_value map = timers->items[i]; /* RESP2 sends a map as a list */
        map.type = BEL_VALUE_MAP;
        export->seen++;
        if (!is_wanted(export, &map)) continue;
        if (is_task(&map)) {
            export->tasks++;
            continue;
        }
        bel__cli_print_value(&map);
        printf("\n");
    }
    bel__progress_draw(&export->progress, export->seen, (now_ns() - export->began_ns) / NS_PER_MS);
}

/* Requests and prints the next page. Sets the cursor of the page after it; empty after the last. */
static int export_page(struct export *export)
{
    struct bel_view args[8] = {BEL_VIEW("LIST"), export->topic, BEL_VIEW("COUNT"),
                               BEL_VIEW("1000")};
    const struct bel_value *reply;
    size_t count = 4;
    if (export->state.bytes > 0) {
        args[count++] = BEL_VIEW("STATE");
        args[count++] = export->state;
    }
    if (export->cursor_bytes > 0) {
        args[count++] = BEL_VIEW("CURSOR");
        args[count++] = (struct bel_view){export->cursor, export->cursor_bytes};
    }
    int status = ask(export, args, count, &reply);
    if (status != CLI_OK) return status;
    bool is_page = reply->type == BEL_VALUE_LIST && reply->count == 2 &&
                   reply->items[0].text.bytes <= CURSOR_BYTES;
    if (!is_page) {
        fprintf(stderr, "belfry: the reply of %s to LIST has an unexpected form\n",
                bel__connect_address(&export->connect));
        return CLI_FAILED;
    }
    export->cursor_bytes = reply->items[0].text.bytes;
    if (export->cursor_bytes > 0) {
        memcpy(export->cursor, reply->items[0].text.data, export->cursor_bytes);
    }
    print_page(export, &reply->items[1]);
    return CLI_OK;
}

int bel__cli_export(int argc, char **argv)
{
    struct export export = {.client = NULL};
    int status = read_arguments(&export, argc, argv);
    if (status >= 0) return status;
    status = bel__connect_open(&export.connect, &export.client);
    if (status != CLI_OK) return status;
    status = begin(&export);
    if (status == CLI_OK) {
        do {
            status = export_page(&export);
        } while (status == CLI_OK && export.cursor_bytes > 0 && !ferror(stdout));
    }
    bel__progress_end(&export.progress);
    if (export.tasks > 0) {
        fprintf(stderr,
                "belfry: left out %" PRIu64 " task%s of jobs: an export has no jobs; belfry backup "
                "copies them\n",
                export.tasks, export.tasks == 1 ? "" : "s");
    }
    bel_client_close(export.client);
    return status;
}
