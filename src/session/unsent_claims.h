/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_UNSENT_CLAIMS_H
#define BEL_SESSION_UNSENT_CLAIMS_H

/*
 * unsent_claims - the tokens of claimed timers whose reply has not been written. If the reply is
 * lost with its connection, the timers are released, so that no worker waits until their leases
 * expire.
 *
 *     answered:   bel__unsent_keep(&unsent, reply, memory);
 *     written:    unsent.count = 0;
 *     lost:       bel__unsent_release(&unsent, &request, backend, released);
 *
 * Releasing cannot fail, because it allocates no memory: it reuses the request of the claim, for
 * one token after the other.
 */

#include "belfry/backend.h"

struct bel_unsent_claims {
    struct bel_view *tokens;     /* in memory of the owner */
    size_t count;                /* 0: there are no tokens to release */
    struct bel_backend *backend; /* private, as is the next */
    void (*released)(struct bel_unsent_claims *unsent);
};

/* Returns how much memory the tokens of a reply to CLAIM need; 0 if it has no deliveries. */
size_t bel__unsent_bytes(const struct bel_reply *reply);

/* Copies the tokens of a reply to `memory`, which has bel__unsent_bytes() bytes, is aligned for
 * any type, and belongs to the owner, who keeps it until the tokens are released or count is 0. */
void bel__unsent_keep(struct bel_unsent_claims *unsent, const struct bel_reply *reply,
                      void *memory);

/* Releases every token, then calls `released`, possibly before this function returns. `request`
 * must not be in use by a backend. A token whose lease has ended meanwhile is ignored. */
void bel__unsent_release(struct bel_unsent_claims *unsent, struct bel_request *request,
                         struct bel_backend *backend,
                         void (*released)(struct bel_unsent_claims *unsent));

#endif
