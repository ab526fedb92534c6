/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_UNSENT_CLAIMS_H
#define BEL_SESSION_UNSENT_CLAIMS_H

/*
 * unsent_claims - the tokens of claimed timers whose reply has not been written. If the reply is
 * lost with its connection, the timers are released, so that no worker waits for their leases.
 *
 *     answered:   bel__unsent_keep(&unsent, reply, memory);
 *     written:    unsent.count = 0;
 *     lost:       bel__unsent_release(&unsent, &request, backend, released);
 *
 * Releasing needs no memory, so it cannot fail: it uses the request of the claim again, for one
 * token after the other.
 */

#include "belfry/backend.h"

struct bel_unsent_claims {
    struct bel_view *tokens;     /* in memory of the owner */
    size_t count;                /* 0: nothing is to be released */
    struct bel_backend *backend; /* private, as is the next */
    void (*released)(struct bel_unsent_claims *unsent);
};

/* Returns how much memory the tokens of a reply to CLAIM need; 0 if it has no deliveries. */
size_t bel__unsent_bytes(const struct bel_reply *reply);

/* Copies the tokens of a reply to `memory`, which has bel__unsent_bytes() bytes, is aligned for
 * any type, and belongs to the owner, who keeps it until the tokens are released or forgotten. */
void bel__unsent_keep(struct bel_unsent_claims *unsent, const struct bel_reply *reply,
                      void *memory);

/* Releases every token that is kept, and calls `released` then, which may be now. The request is
 * one that is not under way. A token whose lease has ended meanwhile needs no release. */
void bel__unsent_release(struct bel_unsent_claims *unsent, struct bel_request *request,
                         struct bel_backend *backend,
                         void (*released)(struct bel_unsent_claims *unsent));

#endif
