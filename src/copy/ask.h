/* SPDX-License-Identifier: MIT */
#ifndef BEL_COPY_ASK_H
#define BEL_COPY_ASK_H

/*
 * ask - requests to a backend from a program that has nothing else to do: takes turns until they
 * are answered.
 */

#include "belfry/backend.h"

#include "core/why.h"

/* A store that takes part in a copy. Both are borrowed. */
struct bel_copy_store {
    struct bel_backend *backend;
    const struct bel_clock *clock;
};

/* Submits requests, whose `done` is called as usual, and takes turns until the last one was
 * answered; `left` is the number of answers that are missing, which `done` counts down. */
void bel__ask_all(const struct bel_copy_store *store, struct bel_request *requests, size_t count,
                  const size_t *left);

/* Asks one command. `see`, unless it is NULL, gets the reply, whose memory is valid until it
 * returns; it may ask other stores, and returns 0 or an error. Returns the error of the reply, with
 * its message in `why`, or what `see` has returned. */
typedef int bel_ask_see(void *context, const struct bel_reply *reply);
BEL_CHECKED int bel__ask(const struct bel_copy_store *store, const struct bel_command *command,
                         bel_ask_see *see, void *context, struct bel_why *why);

#endif
