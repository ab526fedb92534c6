/* SPDX-License-Identifier: MIT */

/*
 * belfry import: reads lines, converts each to a SCHEDULE command, and sends them in batches
 * (import_batch.h). Reports what became of lines by their numbers:
 *
 *     imported, replaced, unchanged     the timer is now as the line says
 *     kept                              the timer differs from the line
 *     left out, or an error             there is no timer of the line
 *
 * A bad line is reported, and the import continues. An error that would repeat for every line (a
 * limit, a missing permission, a lost connection) ends the import, and the message names the line
 * to continue with.
 */
#include "cli/import_batch.h"
#include "cli/import_prune.h"

#include "belfry/client.h"
#include "belfry/clock.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/zone_hint.h"
#include "commands/arguments.h"
#include "commands/option_names.h"
#include "core/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES_MAX = 96 << 20, /* 64 MiB of payload in base64, and the other fields */
    LINE_BYTES_FIRST = 4096,
    TOLD_MAX = 100,   /* lines that are reported; further ones are only counted */
    TELL_BYTES = 100, /* more than any text around an id */
    REFUSAL_BYTES = 1024,
};

static const char usage[] =
    "usage: belfry import [FILE] [OPTION ...]\n"
    "       belfry import --crontab FILE --topic NAME --tz ZONE [OPTION ...]\n"
    "\n"
    "Schedules a timer for each JSON line of a file or of standard input. A line has the\n"
    "fields that belfry export prints, or the options of belfry schedule; a duration needs\n"
    "its unit. A file can be imported again: a line without an id gets one from its number\n"
    "and content. Prints how many lines were imported, replaced, unchanged, kept (the timer\n"
    "exists and differs), left out (finished) and bad; reports the unusual lines.\n"
    "\n"
    "    --topic NAME        topic of all timers, overrides that of a line\n"
    "    --conflict WORD     if the id exists: keep (default), update (replace if the line\n"
    "                        differs; default for a crontab), replace, reject, earliest,\n"
    "                        latest\n"
    "    --verbose           report every line\n"
    "    --start N           number of the first line to import (default 1)\n"
    "    --crontab FILE      import a crontab: each line is a plan, its command the payload;\n"
    "                        belfry work NAME -- sh runs the commands\n"
    "    --tz ZONE           time zone of the crontab; a line CRON_TZ= or TZ= changes it\n"
    "    --system            the crontab has a user before each command, which is left out\n"
    "    --prune             cancel the plans of earlier crontabs in the topic that are not in\n"
    "                        the file; without it they are named\n";

struct import {
    struct cli_connect connect;
    struct import_rules rules;
    const char *path; /* NULL: standard input */
    bool is_crontab, prunes;
    struct import_seen seen; /* of a crontab */
    uint64_t cancelled;
    uint64_t start;
    uint64_t bad; /* number of the first bad line, also of one before `start`; or 0 */
    FILE *file;
    char *line;
    size_t line_room;
    bool is_verbose;
    struct bel_client *client;
    struct import_batch batch;
    uint64_t sums[IMPORT_FATES];
    uint64_t told, began_ns, drawn_ns;
    struct cli_progress progress;
};

static uint64_t now_ns(void)
{
    return bel_clock_mono(bel_clock_system()).ns;
}

/* --- arguments --- */

static bool is_conflict(const char *word)
{
    static const char *const words[] = {"keep",   "update",   "replace",
                                        "reject", "earliest", "latest"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], word) == 0) return true;
    }
    return false;
}

static int read_arguments(struct import *import, int argc, char **argv)
{
    const char *words[1], *crontab = NULL, *zone = NULL;
    const struct cli_option items[] = {
        {"topic", 0, CLI_OPTION_TEXT, 0, 0, {.text = &import->rules.topic}},
        {"conflict", 0, CLI_OPTION_TEXT, 0, 0, {.text = &import->rules.conflict}},
        {"verbose", 'v', CLI_OPTION_FLAG, 0, 0, {.flag = &import->is_verbose}},
        {"start", 0, CLI_OPTION_NUMBER, 1, UINT64_MAX, {.number = &import->start}},
        {"crontab", 0, CLI_OPTION_TEXT, 0, 0, {.text = &crontab}},
        {"tz", 0, CLI_OPTION_TEXT, 0, 0, {.text = &zone}},
        {"system", 0, CLI_OPTION_FLAG, 0, 0, {.flag = &import->rules.has_users}},
        {"prune", 0, CLI_OPTION_FLAG, 0, 0, {.flag = &import->prunes}},
    };
    struct cli_options options = {.verb = argv[0],
                                  .usage = usage,
                                  .items = items,
                                  .count = sizeof items / sizeof items[0],
                                  .connect = &import->connect,
                                  .words = words,
                                  .words_max = 1};
    int status = bel__options_read(&options, argc, argv);
    if (status >= 0) return status;
    import->is_crontab = crontab != NULL;
    if (import->is_crontab && strcmp(crontab, "--system") == 0) { /* --crontab --system FILE */
        import->rules.has_users = true;
        crontab = options.words_count > 0 ? words[--options.words_count] : NULL;
        if (crontab == NULL) {
            return bel__options_complain(argv[0], "option needs a value: --crontab");
        }
    }
    if (import->is_crontab && options.words_count > 0) {
        return bel__options_complain(argv[0], "unexpected argument %s", words[0]);
    }
    import->path = options.words_count > 0 ? words[0] : crontab;
    if (import->is_crontab && import->rules.topic == NULL) {
        return bel__options_complain(argv[0], "--crontab needs --topic");
    }
    if (!import->is_crontab && import->prunes) {
        return bel__options_complain(argv[0], "--prune needs --crontab");
    }
    if (!import->is_crontab && zone != NULL) {
        return bel__options_complain(argv[0], "--tz needs --crontab; a JSON line has a field tz");
    }
    if (import->rules.conflict == NULL) {
        import->rules.conflict = import->is_crontab ? "update" : "keep";
    }
    if (!is_conflict(import->rules.conflict)) {
        return bel__options_complain(argv[0],
                                     "--conflict %s: expected keep, update, replace, reject, "
                                     "earliest or latest",
                                     import->rules.conflict);
    }
    if (import->path != NULL && strcmp(import->path, "-") == 0) import->path = NULL;
    if (zone != NULL && bel__zone_hint_any(zone)) return CLI_USAGE;
    int bytes = snprintf(import->rules.zone, IMPORT_ZONE_BYTES, "%s", zone != NULL ? zone : "");
    if (bytes < 0 || bytes >= IMPORT_ZONE_BYTES) {
        return bel__options_complain(argv[0], "--tz: too long for the name of a time zone");
    }
    return -1;
}

/* --- lines --- */

/* Reads a line into `line` and adds a 0. Returns 0; BEL_ENOTFOUND at the end of the file; BEL_EFULL
 * if the line was too long, and was skipped; or BEL_ENOMEM. */
static int read_line(struct import *import, size_t *out_bytes)
{
    size_t bytes = 0;
    int c, err = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((c = getc_unlocked(import->file)) != EOF && c != '\n') {
        if (bytes + 1 >= import->line_room && err == 0) {
            size_t room = import->line_room > 0 ? 2 * import->line_room : LINE_BYTES_FIRST;
            char *larger = room <= 2 * (size_t)LINE_BYTES_MAX ? realloc(import->line, room) : NULL;
            if (larger == NULL) {
                err = room <= 2 * (size_t)LINE_BYTES_MAX ? BEL_ENOMEM : BEL_EFULL;
                continue;
            }
            import->line = larger;
            import->line_room = room;
        }
        if (err == 0) import->line[bytes++] = (char)c;
    }
    if (c == EOF && bytes == 0 && err == 0) return BEL_ENOTFOUND;
    if (err) return err;
    if (import->line == NULL) {
        import->line = calloc(1, LINE_BYTES_FIRST);
        if (import->line == NULL) return BEL_ENOMEM;
        import->line_room = LINE_BYTES_FIRST;
    }
    import->line[bytes] = '\0';
    *out_bytes = bytes;
    return 0;
}

/* Returns the number of lines, if the file is seekable; otherwise 0. */
static uint64_t count_lines(FILE *file)
{
    char chunk[16384];
    uint64_t lines = 0;
    size_t got;
    if (fseek(file, 0, SEEK_SET) != 0) return 0;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        for (const char *at = chunk; (at = memchr(at, '\n', (size_t)(chunk + got - at))) != NULL;) {
            at++;
            lines++;
        }
    }
    return fseek(file, 0, SEEK_SET) == 0 ? lines : 0;
}

static int open_file(struct import *import)
{
    import->file = import->path != NULL ? fopen(import->path, "re") : stdin;
    if (import->file == NULL) {
        fprintf(stderr, "belfry: cannot read %s: %s\n", import->path, bel__cli_problem(errno));
        return CLI_FAILED;
    }
    bel__progress_start(&import->progress, "import", 0);
    if (import->progress.is_shown && import->path != NULL) {
        import->progress.total = count_lines(import->file);
    }
    return CLI_OK;
}

/* --- reporting --- */

/* Notes a bad line. The server may refuse a line after later lines were read. */
static void note_bad(struct import *import, uint64_t number)
{
    if (import->bad == 0 || number < import->bad) import->bad = number;
}

static void tell(struct import *import, uint64_t number, const char *what, struct bel_view text)
{
    if (import->told++ >= TOLD_MAX && !import->is_verbose) return;
    if (import->progress.is_shown) fputs("\r\033[K", stderr);
    fprintf(stderr, "belfry: line %" PRIu64 ": %s", number, what);
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        (void)fputc(bytes[i] < ' ' || bytes[i] == 0x7f ? ' ' : bytes[i], stderr);
    }
    (void)fputc('\n', stderr);
}

/* Tells a fate with the id of the line between two texts. */
static void tell_fate(struct import *import, const struct import_line *line,
                      const struct import_command *command, const char *before, const char *after)
{
    char text[IMPORT_ID_BYTES + TELL_BYTES];
    const struct bel_view *id = &command->args[IMPORT_ID];
    int bytes = snprintf(text, sizeof text, "%s'%.*s'%s", before,
                         (int)(id->bytes < IMPORT_ID_BYTES ? id->bytes : IMPORT_ID_BYTES),
                         (const char *)id->data, after);
    tell(import, line->number, "", (struct bel_view){text, (size_t)bytes});
}

static void draw(struct import *import)
{
    uint64_t now = now_ns();
    if (now - import->drawn_ns < (uint64_t)CLI_PROGRESS_MS * NS_PER_MS) return;
    import->drawn_ns = now;
    uint64_t lines = 0;
    for (unsigned i = 0; i < IMPORT_FATES; i++) {
        lines += import->sums[i];
    }
    bel__progress_draw(&import->progress, lines, (now - import->began_ns) / NS_PER_MS);
}

/* Tells the error of the server, with the names of the fields for those of the options. */
static void tell_refusal(struct import *import, uint64_t number, struct bel_view error)
{
    const struct bel_command_entry *schedule = &bel__commands[BEL_COMMAND_SCHEDULE];
    char text[REFUSAL_BYTES];
    bel__option_names_replace_error(schedule, error, bel__option_name_small, NULL, text,
                                    sizeof text);
    tell(import, number, "", (struct bel_view){text, strlen(text)});
}

/* Tells what became of a line. Lines of a crontab are few, and all are reported. */
static void tell_line(void *context, const struct import_line *line,
                      const struct import_command *command, struct bel_view error)
{
    struct import *import = context;
    struct bel_view problem = {command->problem.text, strlen(command->problem.text)};
    import->sums[line->fate]++;
    draw(import);
    switch (line->fate) {
    case IMPORT_REFUSED:
        note_bad(import, line->number);
        if (error.bytes > 0) {
            tell_refusal(import, line->number, error);
        } else {
            tell(import, line->number, "", problem);
        }
        break;
    case IMPORT_SKIPPED:
        if (import->is_crontab || import->is_verbose) {
            tell(import, line->number, "left out: ", problem);
        }
        break;
    case IMPORT_KEPT:
        tell_fate(import, line, command, "kept ", ", which differs from the line; see --conflict");
        break;
    case IMPORT_REPLACED:
        tell_fate(import, line, command, "replaced ", "");
        break;
    default:
        if (!import->is_crontab && !import->is_verbose) break;
        tell_fate(import, line, command,
                  line->fate == IMPORT_UNCHANGED ? "unchanged " : "imported ", "");
    }
    bool has_warning = line->verdict == IMPORT_GOOD && problem.bytes > 0;
    if (has_warning) tell(import, line->number, "warning: ", problem);
}

/* --- lines --- */

static enum import_verdict convert(struct import *import, struct import_line *line, size_t bytes)
{
    struct import_command *command = &import->batch.commands[import->batch.count];
    struct bel_view view = {line->text, bytes};
    command->problem.text[0] = '\0';
    if (import->is_crontab) return bel__import_crontab(command, view, &import->rules);
    return bel__import_json(command, view, line->number, &import->rules);
}

/* Adds the line that was read to the batch, which runs before that if it has the same timer, and
 * after that if it is full. */
static int import_line(struct import *import, size_t bytes, uint64_t number)
{
    struct import_batch *batch = &import->batch;
    struct import_command *command = &batch->commands[batch->count];
    struct import_line line = {.number = number, .text = malloc(bytes + 1)};
    int status = CLI_OK;
    if (line.text == NULL) {
        fprintf(stderr, "belfry: line %" PRIu64 ": out of memory\n", number);
        return CLI_FAILED;
    }
    memcpy(line.text, import->line, bytes + 1);
    line.verdict = convert(import, &line, bytes);
    bool is_plan = import->is_crontab && line.verdict == IMPORT_GOOD;
    if (is_plan && bel__import_seen_add(&import->seen, command->args[IMPORT_ID]) != 0) {
        fprintf(stderr, "belfry: line %" PRIu64 ": out of memory\n", number);
        status = CLI_FAILED;
    }
    if (line.verdict == IMPORT_BAD) note_bad(import, number);
    if (number < import->start) line.verdict = IMPORT_BLANK; /* though its CRON_TZ= has effect */
    if (status == CLI_OK && line.verdict == IMPORT_GOOD && bel__import_batch_has(batch, command)) {
        bel__import_clear(command);
        status = bel__import_batch_run(batch);
        if (status == CLI_OK) line.verdict = convert(import, &line, bytes);
    }
    if (status != CLI_OK || line.verdict == IMPORT_BLANK) {
        bel__import_clear(&batch->commands[batch->count]);
        free(line.text);
        return status;
    }
    batch->lines[batch->count++] = line;
    batch->bytes += bytes;
    bool is_full = batch->count == IMPORT_BATCH_MAX || batch->bytes >= IMPORT_BATCH_BYTES;
    return is_full ? bel__import_batch_run(batch) : CLI_OK;
}

static int import_lines(struct import *import)
{
    int status = CLI_OK;
    size_t bytes = 0;
    import->began_ns = now_ns();
    for (uint64_t number = 1; status == CLI_OK; number++) {
        int err = read_line(import, &bytes);
        if (err == BEL_ENOTFOUND) break;
        if (err == BEL_ENOMEM) {
            fprintf(stderr, "belfry: line %" PRIu64 ": out of memory\n", number);
            return CLI_FAILED;
        }
        if (err) {
            import->sums[IMPORT_REFUSED]++;
            note_bad(import, number);
            tell(import, number, "", BEL_VIEW("the line is too long"));
            continue;
        }
        status = import_line(import, bytes, number);
    }
    if (status == CLI_OK) status = bel__import_batch_run(&import->batch);
    if (status == CLI_OK && ferror(import->file)) {
        fprintf(stderr, "belfry: cannot read the input: %s\n", bel__cli_problem(errno));
        return CLI_FAILED;
    }
    return status;
}

/* --- the verb --- */

static void print_sums(const struct import *import)
{
    static const char *const names[IMPORT_FATES] = {"imported", "replaced", "unchanged",
                                                    "kept",     "left_out", "bad"};
    if (import->connect.is_json) printf("{");
    for (unsigned i = 0; i < IMPORT_FATES; i++) {
        if (import->connect.is_json) {
            printf("%s\"%s\": %" PRIu64, i > 0 ? ", " : "", names[i], import->sums[i]);
        } else {
            printf("%s\t%" PRIu64 "\n", names[i], import->sums[i]);
        }
    }
    if (import->prunes) {
        printf(import->connect.is_json ? ", \"cancelled\": %" PRIu64 : "cancelled\t%" PRIu64 "\n",
               import->cancelled);
    }
    if (import->connect.is_json) printf("}\n");
}

/* Names or cancels the plans of earlier crontabs. Cancels none if a line is bad, also one before
 * --start: a plan may be that of the bad line. */
static int prune(struct import *import)
{
    bool cancels = import->prunes && import->bad == 0;
    int status = bel__import_prune(&import->connect, import->client, import->rules.topic,
                                   &import->seen, cancels, &import->cancelled);
    if (!import->prunes || cancels) return status;
    fprintf(stderr, "belfry: --prune has cancelled nothing, because line %" PRIu64 " is bad\n",
            import->bad);
    return status == CLI_OK ? CLI_FAILED : status;
}

static int run(struct import *import)
{
    int status = open_file(import);
    if (status != CLI_OK) return status;
    status = bel__connect_open(&import->connect, &import->client);
    if (status != CLI_OK) return status;
    import->batch = (struct import_batch){.client = import->client,
                                          .connect = &import->connect,
                                          .conflict = import->rules.conflict,
                                          .tell = tell_line,
                                          .context = import};
    if (bel__import_batch_init(&import->batch) != 0) {
        fprintf(stderr, "belfry: out of memory\n");
        return CLI_FAILED;
    }
    status = import_lines(import);
    bel__progress_end(&import->progress);
    if (status == CLI_OK && import->is_crontab) status = prune(import);
    if (import->batch.go_on > 0) {
        fprintf(stderr, "belfry: ended early; continue with --start %" PRIu64 "\n",
                import->batch.go_on);
    }
    if (import->told > TOLD_MAX) {
        fprintf(stderr, "belfry: %" PRIu64 " more lines are not reported; see --verbose\n",
                import->told - TOLD_MAX);
    }
    print_sums(import);
    return status == CLI_OK && import->sums[IMPORT_REFUSED] > 0 ? CLI_FAILED : status;
}

int bel__cli_import(int argc, char **argv)
{
    static struct import import = {.start = 1};
    int status = read_arguments(&import, argc, argv);
    if (status >= 0) return status;
    status = run(&import);
    if (import.file != NULL && import.file != stdin) (void)fclose(import.file);
    bel__import_batch_finish(&import.batch);
    bel__import_seen_finish(&import.seen);
    bel_client_close(import.client);
    free(import.line);
    return status;
}
