/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_UPCOMING_H
#define BEL_CLI_UPCOMING_H

/*
 * upcoming - the timers and plans that are due next, over all topics, overdue ones first:
 *
 *     NEXT                      LEFT        TOPIC    ID       PLAN
 *     2026-06-01T08:57:00Z      3m ago      mail     welcome
 *     2026-06-01T09:00:00Z      30s         reports  daily    At 09:00 on Monday to Friday.
 */

#include "cli/request.h"

#include "belfry/client.h"

enum {
    CLI_UPCOMING_DEFAULT = 10,
};

/* Asks for the first `count` timers of a topic, or of all topics if `topic` is empty, and prints
 * them: as a JSON array, as a table on a terminal, otherwise as lines with tabs. Returns the exit
 * status. */
int bel__upcoming_show(const struct cli_request *request, struct bel_client *client,
                       struct bel_view topic, unsigned count);

#endif
