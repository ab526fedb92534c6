/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_IMPORT_PRUNE_H
#define BEL_CLI_IMPORT_PRUNE_H

/*
 * import_prune - finds the plans that earlier imports of a crontab have left in a topic. The id of
 * a plan follows from its line, so the plan of a line that was edited or deleted goes on until it
 * is cancelled.
 */

#include "cli/connect.h"
#include "cli/import.h"

enum {
    IMPORT_PLAN_ID_BYTES = 40, /* more than the id of a line of a crontab has */
};

/* The ids of the lines of a file. Zeroed: none. */
struct import_seen {
    char (*ids)[IMPORT_PLAN_ID_BYTES];
    size_t count, room;
};

/* Adds an id. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__import_seen_add(struct import_seen *seen, struct bel_view id);
void bel__import_seen_finish(struct import_seen *seen);

/* Names the plans of earlier crontabs in a topic that the file does not have, as far as the first
 * thousands of timers and the permissions of the key show; or cancels all of them, and sets
 * `*out_cancelled` to their number. Sorts `seen`. Returns the exit status, after printing an
 * error. */
int bel__import_prune(const struct cli_connect *connect, struct bel_client *client,
                      const char *topic, struct import_seen *seen, bool cancels,
                      uint64_t *out_cancelled);

#endif
