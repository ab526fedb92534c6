/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_INBOX_H
#define BEL_RUNTIME_INBOX_H

/*
 * inbox - events on their way to the program's own loop; inbox.c.
 */

#include "runtime/runtime.h"

/* Any worker: puts an event at the end. `carrier` is a record without a life, and the
 * inbox's from here on. */
void bel__inbox_put(struct bel_inbox *inbox, struct record *carrier, const struct bel_event *event);

void bel__inbox_destroy(struct bel_inbox *inbox);

/* The inbox that was made before it. */
struct bel_inbox *bel__inbox_next(const struct bel_inbox *inbox);

#endif
