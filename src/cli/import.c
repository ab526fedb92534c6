/* SPDX-License-Identifier: MIT */

/*
 * belfry import: reads lines, sends each as a SCHEDULE command, and receives the replies, with up
 * to UNDER_WAY_MAX commands in flight. A FIFO holds the line number of each unanswered command:
 *
 *     read ---> send ---> [ 7, 8, 9 ... ] ---> receive: line 7 is good, line 8 is not, because ...
 *
 * A bad line is reported by its number, and the import continues. An error that would repeat for
 * every line (a limit, a missing permission, a lost connection) ends the import, and the message
 * names the line to continue with.
 */
#include "cli/import.h"

#include "belfry/client.h"
#include "belfry/clock.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "core/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES_MAX = 96 << 20, /* 64 MiB of payload in base64, and the other fields */
    LINE_BYTES_FIRST = 4096,
    UNDER_WAY_MAX = 500,
    TOLD_MAX = 100, /* lines that are reported; further ones are only counted */
};

static const char usage[] =
    "usage: belfry import [FILE] [OPTION ...]\n"
    "       belfry import --crontab FILE --topic NAME --tz ZONE [OPTION ...]\n"
    "\n"
    "Schedules a timer for each JSON line of a file or of standard input. A line has the\n"
    "fields that belfry export prints, or the options of belfry schedule. A file can be\n"
    "imported again: an existing id is kept, and a line without an id gets one from its\n"
    "number and content. Bad lines are reported, finished timers are left out.\n"
    "\n"
    "    --topic NAME        topic of all timers, overrides that of a line\n"
    "    --conflict WORD     if the id exists: keep (default), replace, reject, earliest,\n"
    "                        latest\n"
    "    --start N           number of the first line to import (default 1)\n"
    "    --crontab FILE      import a crontab: each line is a plan, its command the payload;\n"
    "                        belfry work NAME -- sh runs the commands\n"
    "    --tz ZONE           time zone of the crontab, up to a line CRON_TZ= or TZ=\n"
    "    --system            the crontab has a user before each command, which is left out\n";

struct import {
    struct cli_connect connect;
    struct import_rules rules;
    const char *path; /* NULL: standard input */
    bool is_crontab;
    uint64_t start;
    FILE *file;
    char *line;
    size_t line_room;
    struct bel_client *client;
    uint64_t fifo[UNDER_WAY_MAX]; /* line numbers; a ring buffer */
    size_t fifo_at;
    uint64_t imported, left_out, bad, began_ns, drawn_ns;
    uint64_t go_on; /* the first unanswered line, if the import ends early; or 0 */
    struct cli_progress progress;
};

static uint64_t now_ns(void)
{
    return bel_clock_mono(bel_clock_system()).ns;
}

/* --- arguments --- */

static bool is_conflict(const char *word)
{
    static const char *const words[] = {"keep", "replace", "reject", "earliest", "latest"};
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
        {"start", 0, CLI_OPTION_NUMBER, 1, UINT64_MAX, {.number = &import->start}},
        {"crontab", 0, CLI_OPTION_TEXT, 0, 0, {.text = &crontab}},
        {"tz", 0, CLI_OPTION_TEXT, 0, 0, {.text = &zone}},
        {"system", 0, CLI_OPTION_FLAG, 0, 0, {.flag = &import->rules.has_users}},
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
    import->path = options.words_count > 0 ? words[0] : crontab;
    if (import->is_crontab && options.words_count > 0) {
        return bel__options_complain(argv[0], "unexpected argument %s", words[0]);
    }
    if (import->is_crontab && import->rules.topic == NULL) {
        return bel__options_complain(argv[0], "--crontab needs --topic");
    }
    if (!import->is_crontab && zone != NULL) {
        return bel__options_complain(argv[0], "--tz needs --crontab; a JSON line has a field tz");
    }
    if (!is_conflict(import->rules.conflict)) {
        return bel__options_complain(argv[0],
                                     "--conflict %s: expected keep, replace, reject, earliest or "
                                     "latest",
                                     import->rules.conflict);
    }
    if (import->path != NULL && strcmp(import->path, "-") == 0) import->path = NULL;
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

static void tell(struct import *import, uint64_t number, const char *what, struct bel_view text)
{
    if (import->bad + import->left_out > TOLD_MAX) return;
    if (import->progress.is_shown) fputs("\r\033[K", stderr);
    fprintf(stderr, "belfry: line %" PRIu64 ": %s", number, what);
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        (void)fputc(bytes[i] < ' ' || bytes[i] == 0x7f ? ' ' : bytes[i], stderr);
    }
    (void)fputc('\n', stderr);
}

static void tell_problem(struct import *import, uint64_t number, const char *what,
                         const char *problem)
{
    tell(import, number, what, (struct bel_view){problem, strlen(problem)});
}

static void draw(struct import *import)
{
    uint64_t now = now_ns();
    if (now - import->drawn_ns < (uint64_t)CLI_PROGRESS_MS * NS_PER_MS) return;
    import->drawn_ns = now;
    bel__progress_draw(&import->progress, import->imported + import->left_out + import->bad,
                       (now - import->began_ns) / NS_PER_MS);
}

/* --- sending and receiving --- */

/* Returns whether an error would repeat for every line. */
static bool is_for_all(struct bel_view code)
{
    static const char *const codes[] = {"FULL", "LIMITED", "NOAUTH", "NOPERM", "IO"};
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (code.bytes == strlen(codes[i]) && memcmp(code.data, codes[i], code.bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Receives the reply to the oldest line in the FIFO. */
static int receive(struct import *import)
{
    const struct bel_value *reply;
    uint64_t number = import->fifo[import->fifo_at];
    int err = bel_client_receive(import->client, &reply);
    if (err) {
        import->go_on = number;
        return bel__connect_failed(&import->connect, err);
    }
    import->fifo_at = (import->fifo_at + 1) % UNDER_WAY_MAX;
    draw(import);
    if (reply->type != BEL_VALUE_ERROR) {
        import->imported++;
        return CLI_OK;
    }
    if (is_for_all(bel_value_code(reply))) {
        import->go_on = number;
        return bel__connect_refused(reply);
    }
    import->bad++;
    tell(import, number, "", reply->text);
    return CLI_OK;
}

/* Receives replies until at most `count` commands are in flight. */
static int receive_down_to(struct import *import, size_t count)
{
    int status = CLI_OK;
    while (status == CLI_OK && bel_client_pending(import->client) > count) {
        status = receive(import);
    }
    return status;
}

static int send_line(struct import *import, const struct import_command *command, uint64_t number)
{
    size_t pending = bel_client_pending(import->client);
    if (pending == UNDER_WAY_MAX) {
        int status = receive_down_to(import, UNDER_WAY_MAX / 2);
        if (status != CLI_OK) return status;
        pending = bel_client_pending(import->client);
    }
    int err = bel_client_send(import->client, command->args, command->count);
    if (err) {
        import->go_on = pending > 0 ? import->fifo[import->fifo_at] : number;
        return bel__connect_failed(&import->connect, err);
    }
    import->fifo[(import->fifo_at + pending) % UNDER_WAY_MAX] = number;
    return CLI_OK;
}

/* Imports one line. */
static int import_line(struct import *import, struct import_command *command, struct bel_view line,
                       uint64_t number)
{
    enum import_verdict verdict = import->is_crontab
                                      ? bel__import_crontab(command, line, &import->rules)
                                      : bel__import_json(command, line, number, &import->rules);
    int status = CLI_OK;
    if (number < import->start) verdict = IMPORT_BLANK; /* though its CRON_TZ= has effect */
    if (verdict == IMPORT_GOOD) {
        status = send_line(import, command, number);
    } else if (verdict == IMPORT_LEFT_OUT) {
        import->left_out++;
        if (import->is_crontab) tell_problem(import, number, "left out: ", command->problem.text);
    } else if (verdict == IMPORT_BAD) {
        import->bad++;
        tell_problem(import, number, "", command->problem.text);
    }
    bel__import_clear(command);
    return status;
}

static int import_lines(struct import *import)
{
    static struct import_command command; /* large */
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
            import->bad++;
            tell_problem(import, number, "", "the line is too long");
            continue;
        }
        status = import_line(import, &command, (struct bel_view){import->line, bytes}, number);
    }
    if (status == CLI_OK) status = receive_down_to(import, 0);
    if (status == CLI_OK && ferror(import->file)) {
        fprintf(stderr, "belfry: cannot read the input: %s\n", bel__cli_problem(errno));
        return CLI_FAILED;
    }
    return status;
}

/* --- the verb --- */

static void print_sums(const struct import *import)
{
    if (import->connect.is_json) {
        printf("{\"imported\": %" PRIu64 ", \"left_out\": %" PRIu64 ", \"bad\": %" PRIu64 "}\n",
               import->imported, import->left_out, import->bad);
    } else {
        printf("imported\t%" PRIu64 "\nleft_out\t%" PRIu64 "\nbad\t%" PRIu64 "\n", import->imported,
               import->left_out, import->bad);
    }
}

static int run(struct import *import)
{
    int status = open_file(import);
    if (status != CLI_OK) return status;
    status = bel__connect_open(&import->connect, &import->client);
    if (status != CLI_OK) return status;
    status = import_lines(import);
    bel__progress_end(&import->progress);
    if (import->go_on > 0) {
        fprintf(stderr, "belfry: ended early; continue with --start %" PRIu64 "\n", import->go_on);
    }
    if (import->bad + import->left_out > TOLD_MAX && import->bad > 0) {
        fprintf(stderr, "belfry: %" PRIu64 " bad lines in total\n", import->bad);
    }
    print_sums(import);
    return status == CLI_OK && import->bad > 0 ? CLI_FAILED : status;
}

int bel__cli_import(int argc, char **argv)
{
    static struct import import = {.rules = {.conflict = "keep"}, .start = 1};
    int status = read_arguments(&import, argc, argv);
    if (status >= 0) return status;
    status = run(&import);
    if (import.file != NULL && import.file != stdin) (void)fclose(import.file);
    bel_client_close(import.client);
    free(import.line);
    return status;
}
