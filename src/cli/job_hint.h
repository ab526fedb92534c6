/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_JOB_HINT_H
#define BEL_CLI_JOB_HINT_H

/*
 * job_hint - says which job was meant, after a command that found nothing, and how to name a job
 * where a timer or a topic was expected.
 */

#include "belfry/client.h"

#include <stdbool.h>

enum {
    CLI_JOB_STATE_BYTES = 16,
};

/* Prints an error reply to a command about the job `id`. If the job does not exist, names a similar
 * one. Returns the exit status. */
int bel__job_hint_refused(struct bel_client *client, const char *id, const struct bel_value *error);

/* Asks for the state of a job. Returns false if it does not exist. */
bool bel__job_hint_state(struct bel_client *client, struct bel_view id,
                         char out[CLI_JOB_STATE_BYTES]);

/* Returns whether a job has this id, after printing the command for it: "belfry job WHAT ID". */
bool bel__job_hint(struct bel_client *client, struct bel_view id, const char *what);

#endif
