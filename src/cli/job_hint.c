/* SPDX-License-Identifier: MIT */

/* JOB GET tells whether a job exists; the first page of JOB LIST has the ids that may be meant. */
#include "cli/job_hint.h"

#include "belfry/job.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "core/similar.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = BEL_JOB_IDS_BYTES_MAX + 32, /* with the time of an occurrence */
};

/* Writes the id that is most similar to `id` to `out`; nothing if there is none. */
static void find_similar(struct bel_client *client, const char *id, char out[NAME_BYTES])
{
    const struct bel_view args[] = {BEL_VIEW("JOB"), BEL_VIEW("LIST"), BEL_VIEW("COUNT"),
                                    BEL_VIEW("1000")};
    const struct bel_value *reply;
    struct bel_similar similar;
    char name[NAME_BYTES];
    if (bel_client_call(client, args, 4, &reply) != 0) return;
    if (reply->type != BEL_VALUE_LIST || reply->count != 2) return;
    bel__similar_begin(&similar, id);
    for (size_t i = 0; i < reply->items[1].count; i++) {
        const struct bel_value *value = bel_value_find(&reply->items[1].items[i], "id");
        if (value == NULL || value->text.bytes == 0 || value->text.bytes >= sizeof name) continue;
        memcpy(name, value->text.data, value->text.bytes);
        name[value->text.bytes] = '\0';
        similar.name = NULL;
        bel__similar_offer(&similar, name, name);
        if (similar.name != NULL) memcpy(out, name, value->text.bytes + 1);
    }
}

int bel__job_hint_refused(struct bel_client *client, const char *id, const struct bel_value *error)
{
    char best[NAME_BYTES] = "";
    if (bel__connect_exit(bel_value_code(error)) != CLI_NOT_FOUND) {
        return bel__connect_refused(error);
    }
    find_similar(client, id, best);
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
