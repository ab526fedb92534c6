/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_INBOX_H
#define BEL_RUNTIME_INBOX_H

/*
 * inbox - a queue of events for the program's own loop; inbox.c.
 */

#include "runtime/runtime.h"

/* Appends an event. Any worker may call it. `carrier` is a free record and belongs to the inbox
 * from here on. */
void bel__inbox_put(struct bel_inbox *inbox, struct record *carrier, const struct bel_event *event);

void bel__inbox_destroy(struct bel_inbox *inbox);

/* Returns the inbox that was created before this one. */
struct bel_inbox *bel__inbox_next(const struct bel_inbox *inbox);

#endif
