/* SPDX-License-Identifier: MIT */

/* The table of verbs that send a command to a server, and how such a verb runs. */
#include "cli/remote_verb.h"

#include "cli/duration.h"
#include "cli/print.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct cli_remote_verb remotes[] = {
    {"schedule", "SCHEDULE", NULL, bel__show_id, "id", CLI_OK},
    {"cancel", "CANCEL", NULL, bel__show_count, "cancelled", CLI_NOT_FOUND},
    {"reschedule", "RESCHEDULE", NULL, bel__show_count, "rescheduled", CLI_NOT_FOUND},
    {"get", "GET", NULL, bel__show_map, NULL, CLI_NOT_FOUND},
    {"list", "LIST", NULL, bel__show_list, NULL, CLI_OK},
    {"explain", "EXPLAIN", NULL, bel__show_lines, "lines", CLI_OK},
    {"claim", "CLAIM", NULL, bel__show_deliveries, NULL, CLI_TIMED_OUT},
    {"ack", "ACK", NULL, bel__show_acks, "acked", CLI_CONFLICT},
    {"fail", "FAIL", NULL, bel__show_verdict, NULL, CLI_OK},
    {"release", "RELEASE", NULL, bel__show_count, "released", CLI_CONFLICT},
    {"extend", "EXTEND", NULL, bel__show_count, "lease_ms", CLI_CONFLICT},
    {"topics", "TOPICS", "TOPIC", bel__show_topics, NULL, CLI_NOT_FOUND},
    {"configure", "CONFIGURE", NULL, bel__show_ok, NULL, CLI_OK},
    {"pause", "PAUSE", NULL, bel__show_ok, NULL, CLI_OK},
    {"resume", "RESUME", NULL, bel__show_ok, NULL, CLI_OK},
    {"revive", "REVIVE", NULL, bel__show_count, "revived", CLI_NOT_FOUND},
    {"purge", "PURGE", NULL, bel__show_count, "purged", CLI_OK},
    {"agenda", "AGENDA", NULL, bel__show_agenda, NULL, CLI_OK},
    {"clock", "CLOCK", NULL, bel__show_clock, "now_ms", CLI_OK},
    {"backup", "BACKUP", NULL, bel__show_ok, NULL, CLI_OK},
};

enum {
    REMOTES = sizeof remotes / sizeof remotes[0]
};

const struct cli_remote_verb *bel__remote_verb_find(const char *verb)
{
    for (unsigned i = 0; i < REMOTES; i++) {
        if (strcmp(remotes[i].verb, verb) == 0) return &remotes[i];
    }
    return NULL;
}

const struct cli_remote_verb *bel__remote_verb_next(const struct cli_remote_verb *remote)
{
    if (remote == NULL) return remotes;
    return remote + 1 < remotes + REMOTES ? remote + 1 : NULL;
}

static const struct bel_command_entry *entry_of(const char *name)
{
    const struct bel_command_entry *entry =
        bel__command_find((struct bel_view){name, strlen(name)});
    assert(entry != NULL);
    return entry;
}

void bel__remote_verb_help(const struct cli_remote_verb *remote)
{
    bel__request_help(remote->verb, entry_of(remote->command));
    if (remote->other == NULL) return;
    const struct bel_command_entry *other = entry_of(remote->other);
    printf("or: belfry %s NAME: %s\n", remote->verb, other->help);
}

const char *bel__remote_verb_summary(const struct cli_remote_verb *remote)
{
    return entry_of(remote->command)->help;
}

/* Sets the timeout of the call: --timeout, plus --wait, for which the server may hold the reply. */
static int set_timeout(const struct cli_request *request, struct bel_client *client)
{
    struct bel_text_error why;
    uint64_t wait = 0;
    uint32_t timeout =
        request->connect.timeout_ms > 0 ? request->connect.timeout_ms : CLI_TIMEOUT_MS;
    if (request->wait != NULL) {
        int err = bel__cli_duration(request->wait, &wait, &why);
        if (err) return bel__cli_refuse("a duration", request->wait, &why);
    }
    wait += timeout;
    bel_client_set_timeout(client, wait < UINT32_MAX ? (uint32_t)wait : UINT32_MAX);
    return CLI_OK;
}

static int converse(const struct cli_remote_verb *remote, struct cli_request *request)
{
    struct bel_client *client;
    const struct bel_value *reply;
    int status = bel__connect_open(&request->connect, &client);
    if (status != CLI_OK) return status;
    status = set_timeout(request, client);
    if (status == CLI_OK) {
        int err = bel_client_call(client, request->args, request->args_count, &reply);
        if (err) {
            status = bel__connect_failed(&request->connect, err);
        } else if (reply->type == BEL_VALUE_ERROR) {
            status = bel__connect_refused(reply);
        } else {
            status = remote->show(remote, request, client, reply);
        }
    }
    bel_client_close(client);
    return status;
}

int bel__remote_verb_run(const struct cli_remote_verb *remote, int argc, char **argv)
{
    struct cli_request request;
    const struct bel_command_entry *other = NULL;
    if (remote->other != NULL) other = entry_of(remote->other);
    int status = bel__request_read(&request, entry_of(remote->command), other, argc, argv);
    if (status < 0) status = converse(remote, &request);
    bel__request_finish(&request);
    return status;
}
