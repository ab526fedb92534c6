/* SPDX-License-Identifier: MIT */

/* JOB GET tells whether a job exists; the first page of JOB LIST has the ids that may be meant. */
#include "cli/job_hint.h"

#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/similar_name.h"

#include <stdio.h>
#include <string.h>

int bel__job_hint_refused(struct bel_client *client, const char *id, const struct bel_value *error)
{
    const struct bel_view list[] = {BEL_VIEW("JOB"), BEL_VIEW("LIST"), BEL_VIEW("COUNT"),
                                    BEL_VIEW("1000")};
    char best[CLI_NAME_BYTES];
    if (bel__connect_exit(bel_value_code(error)) != CLI_NOT_FOUND) {
        return bel__connect_refused(error);
    }
    bel__similar_name(client, list, 4, "id", id, best);
    if (best[0] != '\0') {
        fprintf(stderr, "belfry: NOTFOUND job '%s' does not exist; did you mean '%s'?\n", id, best);
    } else {
        fprintf(stderr,
                "belfry: NOTFOUND job '%s' does not exist; belfry job list shows the jobs\n", id);
    }
    return CLI_NOT_FOUND;
}

bool bel__job_hint_state(struct bel_client *client, struct bel_view id,
                         char out[CLI_JOB_STATE_BYTES])
{
    const struct bel_view args[] = {BEL_VIEW("JOB"), BEL_VIEW("GET"), id, BEL_VIEW("COUNT"),
                                    BEL_VIEW("1")};
    const struct bel_value *reply;
    if (bel_client_call(client, args, 5, &reply) != 0) return false;
    if (reply->type == BEL_VALUE_ERROR) return false;
    const struct bel_value *state = bel_value_find(reply, "state");
    if (state == NULL || state->text.bytes >= CLI_JOB_STATE_BYTES) return false;
    if (state->text.bytes > 0) memcpy(out, state->text.data, state->text.bytes);
    out[state->text.bytes] = '\0';
    return true;
}

bool bel__job_hint(struct bel_client *client, struct bel_view id, const char *what)
{
    char state[CLI_JOB_STATE_BYTES];
    if (!bel__job_hint_state(client, id, state)) return false;
    fprintf(stderr, "belfry: '%.*s' is a job: belfry job %s %.*s\n", (int)id.bytes,
            (const char *)id.data, what, (int)id.bytes, (const char *)id.data);
    return true;
}
