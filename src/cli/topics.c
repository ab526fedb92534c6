/* SPDX-License-Identifier: MIT */

/*
 * belfry topics: TOPICS returns the names. The counts of each topic are requested with TOPIC, in
 * pipelined batches.
 */
#include "cli/names.h"
#include "cli/print.h"
#include "cli/remote_verb.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    BATCH = 100,
    COLUMNS = 6,
};

static const char *const columns[COLUMNS] = {"topic",  "scheduled", "ready",
                                             "leased", "dead",      "paused"};

static void print_row(const struct bel_value *topic)
{
    const struct bel_value *name = bel_value_find(topic, columns[0]);
    bool is_paused = bel__cli_topic_number(topic, "paused") != 0;
    if (bel__cli_is_terminal()) {
        for (int i = 1; i < 5; i++) {
            printf("%10" PRId64 " ", bel__cli_topic_number(topic, columns[i]));
        }
        printf("%-6s ", is_paused ? "paused" : "");
        if (name != NULL) bel__cli_print_plain(name);
    } else {
        if (name != NULL) bel__cli_print_plain(name);
        for (int i = 1; i < 5; i++) {
            printf("\t%" PRId64, bel__cli_topic_number(topic, columns[i]));
        }
        printf("\t%s", is_paused ? "paused" : "");
    }
    printf("\n");
}

/* Prints the reply to one TOPIC. Skips an error: the topic may have been removed meanwhile. */
static void show_one(const struct cli_request *request, const struct bel_value *topic,
                     bool *is_first)
{
    if (topic->type == BEL_VALUE_ERROR) return;
    if (!request->connect.is_json) {
        print_row(topic);
        return;
    }
    struct bel_value map = *topic;
    map.type = BEL_VALUE_MAP;
    printf("%s", *is_first ? "" : ", ");
    bel__cli_print_value(&map);
    *is_first = false;
}

static int show_batch(const struct cli_request *request, struct bel_client *client,
                      const struct bel_view *names, size_t count, bool *is_first)
{
    const struct bel_value *topic;
    int err = 0;
    for (size_t i = 0; i < count && err == 0; i++) {
        const struct bel_view args[] = {BEL_VIEW("TOPIC"), names[i]};
        err = bel_client_send(client, args, 2);
    }
    for (size_t i = 0; i < count && err == 0; i++) {
        err = bel_client_receive(client, &topic);
        if (err == 0) show_one(request, topic, is_first);
    }
    return err;
}

int bel__show_topics(const struct cli_remote_verb *remote, struct cli_request *request,
                     struct bel_client *client, const struct bel_value *reply)
{
    struct cli_names names;
    bool is_first = true;
    if (request->words_count > 0) return bel__show_map(remote, request, client, reply);
    if (reply->type != BEL_VALUE_LIST) return bel__show_nonsense(request);
    int err = bel__names_copy(reply, &names);
    if (request->connect.is_json) {
        printf("{\"topics\": [");
    } else if (bel__cli_is_terminal() && names.count == 0) {
        printf("no topics; belfry schedule TOPIC PAYLOAD makes one\n");
    } else if (bel__cli_is_terminal()) {
        printf("%10s %10s %10s %10s %-6s %s\n", "SCHEDULED", "READY", "LEASED", "DEAD", "",
               "TOPIC");
    }
    for (size_t i = 0; i < names.count && err == 0; i += BATCH) {
        size_t count = names.count - i < BATCH ? names.count - i : BATCH;
        err = show_batch(request, client, names.items + i, count, &is_first);
    }
    bel__names_finish(&names);
    if (err) return bel__connect_failed(&request->connect, err);
    if (request->connect.is_json) printf("]}\n");
    return CLI_OK;
}
