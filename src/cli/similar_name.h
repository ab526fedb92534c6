/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_SIMILAR_NAME_H
#define BEL_CLI_SIMILAR_NAME_H

/*
 * similar_name - finds the name that a mistyped one means among those that a server lists.
 */

#include "belfry/client.h"

#include <stddef.h>

enum {
    CLI_NAME_BYTES = 256, /* more than any topic, resource or job has */
};

/* Asks for a list of names: TOPICS, LIMIT or JOB LIST. Of the latter two, `field` is the name of
 * the field, and the first page is enough; NULL for a list of texts. Writes the most similar name
 * to `out`, or an empty text if there is none. */
void bel__similar_name(struct bel_client *client, const struct bel_view *command, size_t words,
                       const char *field, const char *name, char out[CLI_NAME_BYTES]);

#endif
