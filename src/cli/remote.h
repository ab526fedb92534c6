/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_REMOTE_H
#define BEL_CLI_REMOTE_H

/*
 * remote - the verbs that say a command to a server and show its answer: a table of which command,
 * and how the answer is shown. What can be typed is in the table of commands.
 */

#include "belfry/client.h"
#include "cli/order.h"

/* A verb, its command, and how the answer is shown. */
struct cli_remote {
    const char *verb, *command;
    const char *other; /* the command if a word follows, or NULL */
    /* Shows an answer that is no error, and may ask for more. Returns what to exit with. */
    int (*show)(const struct cli_remote *remote, struct cli_order *order, struct bel_client *client,
                const struct bel_value *reply);
    const char *name; /* in JSON, of an answer that is one value */
    int if_missing;   /* what to exit with if the answer says that there was none */
};

/* The verb of this name; NULL if there is none. */
const struct cli_remote *bel__remote_find(const char *verb);

/* The next verb; NULL starts, NULL ends. */
const struct cli_remote *bel__remote_next(const struct cli_remote *remote);

int bel__remote_run(const struct cli_remote *remote, int argc, char **argv);
void bel__remote_help(const struct cli_remote *remote);

/* One line. */
const char *bel__remote_summary(const struct cli_remote *remote);

/* How answers are shown: show.c, topics.c, agenda.c. */
typedef int cli_show(const struct cli_remote *remote, struct cli_order *order,
                     struct bel_client *client, const struct bel_value *reply);

cli_show bel__show_id;
cli_show bel__show_count;
cli_show bel__show_acks;
cli_show bel__show_ok;
cli_show bel__show_verdict;
cli_show bel__show_map; /* a timer, a topic; or nil */
cli_show bel__show_list;
cli_show bel__show_deliveries;
cli_show bel__show_topics;
cli_show bel__show_lines;
cli_show bel__show_agenda;
cli_show bel__show_clock;

/* Says that an answer is not what it should be. Returns what to exit with. */
int bel__show_nonsense(const struct cli_order *order);

#endif
