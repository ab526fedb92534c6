/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_IMPORT_BATCH_H
#define BEL_CLI_IMPORT_BATCH_H

/*
 * import_batch - sends some lines of an import together, and finds out what became of each:
 *
 *     GET, GET, ...             which timers exist, and are they as their lines say
 *     SCHEDULE, SCHEDULE, ...   by the conflict word; "update" replaces a timer that differs
 *     GET, ...                  after "earliest" and "latest": which of the two has won
 */

#include "cli/connect.h"
#include "cli/import.h"

enum {
    IMPORT_BATCH_MAX = 250,
    IMPORT_BATCH_BYTES = 8 << 20, /* a batch ends with the line that reaches it */
};

/* What became of a line. */
enum import_fate {
    IMPORT_IMPORTED,
    IMPORT_REPLACED,
    IMPORT_UNCHANGED, /* the timer was as the line says */
    IMPORT_KEPT,      /* the timer differs from the line */
    IMPORT_SKIPPED,   /* left out */
    IMPORT_REFUSED,   /* bad */
    IMPORT_FATES,
};

struct import_line {
    uint64_t number;
    char *text; /* owned */
    enum import_verdict verdict;
    enum import_fate fate;
    bool exists;                /* the rest is private */
    int64_t created_ms, due_ms; /* of the timer that exists */
};

/* A function that is told what became of a line, in the order of the lines. `error` is the reply of
 * the server to a line that it has refused; otherwise empty. */
typedef void import_tell(void *context, const struct import_line *line,
                         const struct import_command *command, struct bel_view error);

struct import_batch {
    struct bel_client *client; /* these five are borrowed */
    const struct cli_connect *connect;
    const char *conflict;
    import_tell *tell;
    void *context;
    struct bel_zones *zones;         /* owned, as are the next two; may be NULL */
    struct import_command *commands; /* IMPORT_BATCH_MAX */
    struct import_line *lines;
    size_t count, bytes;
    uint64_t go_on; /* the first unanswered line, after a failure; or 0 */
};

/* Allocates the memory of a batch, whose borrowed fields are set by the caller. Returns 0 or
 * BEL_ENOMEM. Call bel__import_batch_finish() in either case. */
BEL_CHECKED int bel__import_batch_init(struct import_batch *batch);
void bel__import_batch_finish(struct import_batch *batch);

/* Returns whether a command is about a timer that the batch has already; then the batch must run
 * before the command is added. */
bool bel__import_batch_has(const struct import_batch *batch, const struct import_command *command);

/* Sends the batch, tells what became of each line, and empties the batch. Returns the exit status;
 * a failure that would repeat for every line is printed. */
int bel__import_batch_run(struct import_batch *batch);

#endif
