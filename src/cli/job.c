/* SPDX-License-Identifier: MIT */

/* belfry job: submits, shows and controls jobs. */
#include "cli/job.h"

#include "cli/cli.h"
#include "cli/job_file.h"
#include "cli/job_hint.h"
#include "cli/options.h"
#include "cli/print.h"
#include "core/similar.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INTERVAL_MS = 1000,
    INTERVAL_MS_MAX = 3600 * 1000,
    ARGS_MAX = 12,
    PICTURE_ROWS = 10001 + 1, /* a job with all its tasks */
};

static const char usage[] =
    "usage: belfry job submit FILE|-      start a job: tasks that wait for each other\n"
    "       belfry job get ID             show a job and its tasks\n"
    "       belfry job watch ID           show a job until it has ended\n"
    "       belfry job explain ID         say what a job waits for, and its critical path\n"
    "       belfry job list               list the jobs\n"
    "       belfry job cancel ID          cancel a job and its unfinished tasks\n"
    "       belfry job pause ID           start no more tasks of a job\n"
    "       belfry job resume ID          start tasks of a paused job again\n"
    "\n"
    "A file is a JSON object with tasks, see docs/JOBS.md; or with --topic lines in the\n"
    "style of make, 'load: fetch clean'. get and watch draw the graph, each task indented\n"
    "by its depth and followed by the tasks that it comes after. watch prints a line for\n"
    "each change if the output is not a terminal, and exits with 0 only if the job is done.\n"
    "explain says why each task that could run has not ended; the critical path is the\n"
    "longest chain of unfinished tasks.\n"
    "\n"
    "    --id ID             submit: id of the job, if the file has none\n"
    "    --replace           submit: replace a job with this id\n"
    "    --topic NAME        submit: topic of all tasks; the file has lines in the style of\n"
    "                        make\n"
    "    --state STATE       list: running, paused, done, failed, cancelled or scheduled\n"
    "    --count N           list: maximum number of jobs (default: all)\n"
    "    --interval DURATION watch: time between updates (default 1s)\n";

struct job_options {
    struct cli_connect connect;
    const char *id, *topic, *state;
    bool replaces;
    uint64_t count, interval_ms;
    const char *words[2]; /* the subcommand and its argument */
};

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* Sends a command. Returns CLI_OK and sets `*out`, or an exit status after printing an error. */
static int call(struct bel_client *client, const struct job_options *options,
                const struct bel_view *args, size_t count, const struct bel_value **out)
{
    int err = bel_client_call(client, args, count, out);
    if (err) return bel__connect_failed(&options->connect, err);
    if ((*out)->type != BEL_VALUE_ERROR) return CLI_OK;
    if (options->words[1] != NULL) return bel__job_hint_refused(client, options->words[1], *out);
    return bel__connect_refused(*out);
}

/* --- submit --- */

static int show_submitted(const struct job_options *options, const struct bel_value *reply)
{
    const struct bel_value *id = bel_value_find(reply, "id");
    if (options->connect.is_json) {
        bel__cli_print_value(reply);
        printf("\n");
    } else if (id != NULL) {
        bel__cli_print_line(id->text, 0);
        printf("\n");
    }
    return CLI_OK;
}

static int submit_text(const struct job_options *options, struct bel_client *client,
                       struct bel_view text)
{
    struct bel_view args[ARGS_MAX] = {BEL_VIEW("JOB"), BEL_VIEW("SUBMIT"), text};
    const struct bel_value *reply;
    size_t count = 3;
    if (options->replaces) args[count++] = BEL_VIEW("REPLACE");
    if (options->id != NULL && options->topic == NULL) {
        args[count++] = BEL_VIEW("ID");
        args[count++] = view_of(options->id);
    }
    int err = bel_client_call(client, args, count, &reply);
    if (err) return bel__connect_failed(&options->connect, err);
    if (reply->type != BEL_VALUE_ERROR) return show_submitted(options, reply);
    return bel__connect_refused_in(bel__job_file_name(options->words[1]), reply);
}

/* Returns the id in the JSON text of a job, or NULL. */
static const char *id_of(const json_t *job)
{
    return json_string_value(json_object_get(job, "id"));
}

/* After a conflict, says what the job with this id does and how to replace it. */
static void hint_at_replace(const struct job_options *options, struct bel_client *client,
                            struct bel_view text)
{
    char state[CLI_JOB_STATE_BYTES];
    json_t *job = json_loadb(text.data, text.bytes, 0, NULL);
    const char *id = options->id != NULL ? options->id : id_of(job);
    if (id != NULL && !options->replaces && bel__job_hint_state(client, view_of(id), state)) {
        fprintf(stderr, "belfry: job '%s' is %s; replace it with --replace, or choose another id\n",
                id, state);
    }
    json_decref(job);
}

static int submit(const struct job_options *options, struct bel_client *client)
{
    struct cli_job_file file = {
        .path = options->words[1], .topic = options->topic, .id = options->id};
    int status = bel__job_file_read(&file);
    if (status == CLI_OK) {
        status = submit_text(options, client, file.text);
        if (status == CLI_CONFLICT) hint_at_replace(options, client, file.text);
    }
    bel__job_file_finish(&file);
    return status;
}

/* --- get, watch --- */

static int get(const struct job_options *options, struct bel_client *client)
{
    struct bel_view args[] = {BEL_VIEW("JOB"), BEL_VIEW("GET"), view_of(options->words[1])};
    const struct bel_value *reply;
    struct cli_job job = {0};
    int status;
    if (options->connect.is_json) {
        status = call(client, options, args, 3, &reply);
        if (status != CLI_OK) return status;
        bel__cli_print_value(reply);
        printf("\n");
        return CLI_OK;
    }
    status = bel__job_fetch(client, &options->connect, options->words[1], &job);
    if (status == CLI_OK) {
        (void)bel__job_draw(&job, bel__cli_columns(), PICTURE_ROWS);
        bel__job_print_work(&job);
    }
    bel__job_finish(&job);
    return status;
}

static int watch(const struct job_options *options, struct bel_client *client)
{
    return bel__job_watch(client, &options->connect, options->words[1], options->interval_ms);
}

static int explain(const struct job_options *options, struct bel_client *client)
{
    return bel__job_explain(client, &options->connect, options->words[1]);
}

/* --- list --- */

static int64_t number_of(const struct bel_value *job, const char *name)
{
    const struct bel_value *value = bel_value_find(job, name);
    return value != NULL ? value->number : 0;
}

/* Prints the columns of a recurring job, which has no tasks of its own. */
static void print_recurring(const struct bel_value *job, bool is_terminal)
{
    int64_t next_ms = number_of(job, "next_ms");
    printf(is_terminal ? "      -  " : "\t-\t");
    bel__job_print_times(number_of(job, "made"), number_of(job, "skipped"),
                         number_of(job, "missed"));
    if (next_ms == 0) return;
    printf(", next ");
    bel__cli_print_time(next_ms);
}

static void print_row(const struct bel_value *job)
{
    const struct bel_value *id = bel_value_find(job, "id"), *state = bel_value_find(job, "state");
    const struct bel_value *reason = bel_value_find(job, "reason");
    if (id == NULL || state == NULL) return;
    bool is_terminal = bel__cli_is_terminal();
    bel__cli_print_line(id->text, 0);
    printf(is_terminal ? "%*s  " : "\t", (int)(id->text.bytes < 30 ? 30 - id->text.bytes : 0), "");
    bel__cli_print_state(state->text, is_terminal ? 10 : 0);
    if (bel_value_find(job, "made") != NULL) {
        print_recurring(job, is_terminal);
    } else {
        printf(is_terminal ? "  %3lld %%  %6lld tasks" : "\t%lld %%\t%lld",
               (long long)number_of(job, "progress"), (long long)number_of(job, "total"));
    }
    if (reason != NULL) {
        printf(is_terminal ? "  " : "\t");
        bel__cli_print_line(reason->text, is_terminal ? 20 : 0);
    }
    printf("\n");
}

/* Prints a page of jobs. Returns how many. */
static uint64_t print_page(const struct job_options *options, const struct bel_value *jobs,
                           bool is_first)
{
    for (size_t i = 0; i < jobs->count; i++) {
        if (!options->connect.is_json) {
            print_row(&jobs->items[i]);
            continue;
        }
        printf(is_first && i == 0 ? "[" : ",\n");
        bel__cli_print_value(&jobs->items[i]);
    }
    return jobs->count;
}

static int list(const struct job_options *options, struct bel_client *client)
{
    char cursor[BEL_TOKEN_BYTES_MAX] = "";
    uint64_t shown = 0;
    do {
        struct bel_view args[ARGS_MAX] = {BEL_VIEW("JOB"), BEL_VIEW("LIST"), BEL_VIEW("COUNT")};
        char count[24];
        size_t used = 4;
        const struct bel_value *reply;
        uint64_t left = options->count > 0 ? options->count - shown : BEL_LIST_COUNT_MAX;
        if (left > BEL_LIST_COUNT_MAX) left = BEL_LIST_COUNT_MAX;
        (void)snprintf(count, sizeof count, "%llu", (unsigned long long)left);
        args[3] = view_of(count);
        if (options->state != NULL) {
            args[used++] = BEL_VIEW("STATE");
            args[used++] = view_of(options->state);
        }
        if (cursor[0] != '\0') {
            args[used++] = BEL_VIEW("CURSOR");
            args[used++] = view_of(cursor);
        }
        int status = call(client, options, args, used, &reply);
        if (status != CLI_OK) return status;
        if (reply->count != 2) return CLI_FAILED;
        shown += print_page(options, &reply->items[1], shown == 0);
        struct bel_view next = reply->items[0].text;
        (void)snprintf(cursor, sizeof cursor, "%.*s", (int)next.bytes, (const char *)next.data);
    } while (cursor[0] != '\0' && (options->count == 0 || shown < options->count));
    if (options->connect.is_json) {
        printf(shown > 0 ? "]\n" : "[]\n");
    } else if (shown == 0 && bel__cli_is_terminal()) {
        printf("no jobs\n");
    }
    return CLI_OK;
}

/* --- cancel, pause, resume --- */

/* Sends a command that replies with 1, or with 0 if it changed nothing. */
static int change(const struct job_options *options, struct bel_client *client, const char *name,
                  const char *what)
{
    struct bel_view args[] = {BEL_VIEW("JOB"), view_of(name), view_of(options->words[1])};
    const struct bel_value *reply;
    int status = call(client, options, args, 3, &reply);
    if (status != CLI_OK) return status;
    if (options->connect.is_json) printf("{\"%s\": %lld}\n", what, (long long)reply->number);
    if (reply->number > 0) return CLI_OK;
    fprintf(stderr, "belfry: nothing to do: the job has ended, or is %s already\n", what);
    return CLI_CONFLICT;
}

static int cancel(const struct job_options *options, struct bel_client *client)
{
    return change(options, client, "CANCEL", "cancelled");
}

static int pause_job(const struct job_options *options, struct bel_client *client)
{
    return change(options, client, "PAUSE", "paused");
}

static int resume(const struct job_options *options, struct bel_client *client)
{
    return change(options, client, "RESUME", "resumed");
}

/* --- the verb --- */

static const struct {
    const char *name;
    int (*run)(const struct job_options *options, struct bel_client *client);
    const char *word; /* its argument; NULL: none */
} subcommands[] = {
    {"submit", submit, "FILE"}, {"get", get, "ID"},       {"watch", watch, "ID"},
    {"explain", explain, "ID"}, {"list", list, NULL},     {"cancel", cancel, "ID"},
    {"pause", pause_job, "ID"}, {"resume", resume, "ID"},
};

enum {
    SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0],
};

static int refuse_word(const char *word)
{
    static const char *const meant[][2] = {{"status", "get"},
                                           {"show", "get"},
                                           {"delete", "cancel"},
                                           {"retry", "submit FILE --replace"}};
    struct bel_similar similar;
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++) {
        if (strcmp(word, meant[i][0]) != 0) continue;
        return bel__options_complain("job", "unknown subcommand '%s'; did you mean '%s'?", word,
                                     meant[i][1]);
    }
    bel__similar_begin(&similar, word);
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        bel__similar_offer(&similar, subcommands[i].name, subcommands[i].name);
    }
    if (similar.name == NULL) {
        return bel__options_complain("job", "unknown subcommand '%s'", word);
    }
    return bel__options_complain("job", "unknown subcommand '%s'; did you mean '%s'?", word,
                                 similar.name);
}

static int run(const struct job_options *options, size_t words_count)
{
    size_t i = 0;
    struct bel_client *client;
    if (words_count == 0) {
        return bel__options_complain("job",
                                     "missing subcommand: submit, get, watch, explain, list, "
                                     "cancel, pause or resume");
    }
    while (i < SUBCOMMANDS && strcmp(subcommands[i].name, options->words[0]) != 0) {
        i++;
    }
    if (i == SUBCOMMANDS) return refuse_word(options->words[0]);
    const char *word = subcommands[i].word;
    if (words_count != (word != NULL ? 2 : 1)) {
        return bel__options_complain("job", "%s takes %s", options->words[0],
                                     word != NULL ? word : "no argument");
    }
    int status = bel__connect_open(&options->connect, &client);
    if (status != CLI_OK) return status;
    status = subcommands[i].run(options, client);
    bel_client_close(client);
    return status;
}

int bel__cli_job(int argc, char **argv)
{
    struct job_options job = {.interval_ms = INTERVAL_MS};
    const struct cli_option items[] = {
        {.name = "id", .kind = CLI_OPTION_TEXT, .out.text = &job.id},
        {.name = "topic", .kind = CLI_OPTION_TEXT, .out.text = &job.topic},
        {.name = "replace", .kind = CLI_OPTION_FLAG, .out.flag = &job.replaces},
        {.name = "state", .kind = CLI_OPTION_TEXT, .out.text = &job.state},
        {.name = "count",
         .kind = CLI_OPTION_NUMBER,
         .min = 1,
         .max = UINT32_MAX,
         .out.number = &job.count},
        {.name = "interval",
         .kind = CLI_OPTION_SPAN,
         .min = 1,
         .max = INTERVAL_MS_MAX,
         .out.number = &job.interval_ms},
    };
    struct cli_options options = {.verb = "job",
                                  .usage = usage,
                                  .items = items,
                                  .count = sizeof items / sizeof items[0],
                                  .connect = &job.connect,
                                  .words = job.words,
                                  .words_max = sizeof job.words / sizeof job.words[0]};
    int status = bel__options_read(&options, argc, argv);
    return status < 0 ? run(&job, options.words_count) : status;
}
