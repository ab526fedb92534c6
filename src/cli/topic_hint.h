/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_TOPIC_HINT_H
#define BEL_CLI_TOPIC_HINT_H

/*
 * topic_hint - says that a topic does not exist, after a command that found nothing, and which
 * topic may be meant.
 */

#include "belfry/client.h"

#include <stdbool.h>

/* Asks the server whether a topic exists. If not, prints that to standard error and returns true.
 * Returns false also if the server does not say. */
bool bel__topic_hint(struct bel_client *client, struct bel_view topic);

/* Returns whether a topic does not exist and a similar one does, after printing both. */
bool bel__topic_hint_typo(struct bel_client *client, struct bel_view topic);

/* Says, if a topic does not exist and a similar one does, that the topic is new. */
void bel__topic_hint_new(struct bel_client *client, struct bel_view topic);

/* Like bel__topic_hint() for a worker, which goes on waiting: the first timer of the topic may
 * still come. */
bool bel__topic_hint_yet(struct bel_client *client, struct bel_view topic);

#endif
