/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_REMOTE_VERB_H
#define BEL_CLI_REMOTE_VERB_H

/*
 * remote_verb - the verbs that send a command to a server and print its reply: a table of their
 * commands and of the functions that print. The arguments are those of the table of commands.
 */

#include "belfry/client.h"
#include "cli/request.h"

/* A verb, its command, and the function that prints the reply. */
struct cli_remote_verb {
    const char *verb, *command;
    const char *other; /* the command if there is a positional argument; or NULL */
    /* Prints a reply that is not an error; may send more commands. Returns the exit status. */
    int (*show)(const struct cli_remote_verb *remote, struct cli_request *request,
                struct bel_client *client, const struct bel_value *reply);
    const char *name; /* the JSON member of a reply that is one value */
    int if_missing;   /* the exit status if the reply is 0 or nil */
};

/* Finds a verb by its name. Returns NULL if it is not in the table. */
const struct cli_remote_verb *bel__remote_verb_find(const char *verb);

/* Iterates over the table: returns the verb after `remote`, the first for NULL, NULL at the end. */
const struct cli_remote_verb *bel__remote_verb_next(const struct cli_remote_verb *remote);

int bel__remote_verb_run(const struct cli_remote_verb *remote, int argc, char **argv);
void bel__remote_verb_help(const struct cli_remote_verb *remote);

/* Returns the one-line help of a verb. */
const char *bel__remote_verb_summary(const struct cli_remote_verb *remote);

/* The functions that print replies: show.c, topics.c, agenda.c, limit.c. */
typedef int cli_show(const struct cli_remote_verb *remote, struct cli_request *request,
                     struct bel_client *client, const struct bel_value *reply);

cli_show bel__show_id;
cli_show bel__show_count;
cli_show bel__show_acks;
cli_show bel__show_ok;
cli_show bel__show_verdict;
cli_show bel__show_map; /* a timer or a topic; or nil */
cli_show bel__show_list;
cli_show bel__show_deliveries;
cli_show bel__show_topics;
cli_show bel__show_explanation;
cli_show bel__show_agenda;
cli_show bel__show_limits; /* a list of resources, one resource, or a number */
cli_show bel__show_clock;

/* Prints that a reply has an unexpected form. Returns the exit status. */
int bel__show_nonsense(const struct cli_request *request);

#endif
