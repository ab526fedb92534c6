/* SPDX-License-Identifier: MIT */
#include "session/unsent_claims.h"

#include <assert.h>
#include <string.h>

size_t bel__unsent_bytes(const struct bel_reply *reply)
{
    size_t count = reply->deliveries.count, bytes = count * sizeof(struct bel_view);
    assert(reply->err == 0);
    for (size_t i = 0; i < count; i++) {
        bytes += reply->deliveries.items[i].token.bytes;
    }
    return bytes;
}

/* `memory` contains the views first, then the bytes of the tokens. */
void bel__unsent_keep(struct bel_unsent_claims *unsent, const struct bel_reply *reply, void *memory)
{
    size_t count = reply->deliveries.count;
    assert(unsent->count == 0 && count > 0);
    unsent->tokens = memory;
    char *at = (char *)(unsent->tokens + count);
    for (size_t i = 0; i < count; i++) {
        struct bel_view token = reply->deliveries.items[i].token;
        assert(token.bytes > 0);
        memcpy(at, token.data, token.bytes);
        unsent->tokens[i] = (struct bel_view){at, token.bytes};
        at += token.bytes;
    }
    unsent->count = count;
}

static void on_release_reply(struct bel_request *request, const struct bel_reply *reply);

/* Releases the last of the tokens. */
static void release_next(struct bel_unsent_claims *unsent, struct bel_request *request)
{
    if (unsent->count == 0) {
        unsent->released(unsent);
        return; /* the owner may be freed */
    }
    *request = (struct bel_request){.done = on_release_reply, .user = unsent};
    request->command.verb = BEL_VERB_RELEASE;
    request->command.release.token = unsent->tokens[--unsent->count];
    bel_backend_submit(unsent->backend, request);
}

static void on_release_reply(struct bel_request *request, const struct bel_reply *reply)
{
    (void)reply;
    release_next(request->user, request);
}

void bel__unsent_release(struct bel_unsent_claims *unsent, struct bel_request *request,
                         struct bel_backend *backend,
                         void (*released)(struct bel_unsent_claims *unsent))
{
    assert(backend != NULL && released != NULL);
    unsent->backend = backend;
    unsent->released = released;
    release_next(unsent, request);
}
