/* SPDX-License-Identifier: MIT */

/*
 * The lifecycle of a call is drawn in session/call.h.
 *
 * Memory is reused. The block of a call contains the words of its command, and later the tokens of
 * its deliveries, so that releasing them allocates nothing. Each session keeps one unused call, so
 * it can always execute a command. Further unused calls are in a pool that all sessions share: a
 * thousand idle sessions keep a thousand calls, and busy sessions take more from the pool.
 */
#include "session/call.h"

#include <assert.h>
#include <stdlib.h>

enum {
    POOL_MAX = 1024,         /* unused calls */
    BLOCK_BYTES_KEPT = 4096, /* a larger block is freed with its command */
};

static struct bel_call *call_create(const struct bel_session *session)
{
    struct bel_call *call = calloc(1, sizeof *call);
    if (call != NULL) bel__buffer_init(&call->reply, session->out.count_max);
    return call;
}

static void call_destroy(struct bel_call *call)
{
    if (call == NULL) return;
    bel__buffer_finish(&call->reply);
    free(call->block);
    free(call);
}

static struct bel_call *pool_take(struct bel_call_pool *pool)
{
    struct bel_call *call = pool->spare;
    assert((call == NULL) == (pool->spare_count == 0));
    if (call == NULL) return NULL;
    pool->spare = call->next_spare;
    pool->spare_count--;
    return call;
}

static void pool_give(struct bel_call_pool *pool, struct bel_call *call)
{
    if (pool->spare_count == POOL_MAX) {
        call_destroy(call);
        return;
    }
    assert(call->state == BEL_CALL_SPARE && pool->spare_count < POOL_MAX);
    call->next_spare = pool->spare;
    pool->spare = call;
    pool->spare_count++;
}

void bel__call_pool_finish(struct bel_call_pool *pool)
{
    while (pool->spare != NULL) {
        call_destroy(pool_take(pool));
    }
}

static struct bel_call *take_spare(struct bel_session *session)
{
    struct bel_call_pool *pool = session->service->calls;
    struct bel_call *call = session->spare;
    session->spare = NULL;
    return call == NULL && pool != NULL ? pool_take(pool) : call;
}

struct bel_call *bel__call_take(struct bel_session *session)
{
    struct bel_call *call = take_spare(session);
    if (call == NULL) call = call_create(session);
    if (call == NULL) return NULL;
    assert(call->state == BEL_CALL_SPARE && call->reply.count == 0 && call->owed_bytes == 0);
    call->session = session;
    call->version = session->version;
    call->state = BEL_CALL_UNDER_WAY;
    call->is_lost = false;
    call->unsent.count = 0;
    bel__list_append(&session->calls, &call->link);
    session->calls_count++;
    return call;
}

void bel__call_give(struct bel_session *session, struct bel_call *call)
{
    assert(call->session == session && call->state >= BEL_CALL_LEFT);
    call->state = BEL_CALL_SPARE;
    if (call->block_bytes > BLOCK_BYTES_KEPT) {
        free(call->block);
        call->block = NULL;
        call->block_bytes = 0;
    }
    if (call->reply.capacity > 0) bel__buffer_finish(&call->reply);
    if (session->spare == NULL) {
        session->spare = call;
    } else if (session->service->calls != NULL) {
        pool_give(session->service->calls, call);
    } else {
        call_destroy(call);
    }
}

void bel__call_leave(struct bel_session *session, struct bel_call *call)
{
    assert(session->calls_count > 0 && session->kept_bytes >= call->reply.capacity);
    assert(call->state > BEL_CALL_SPARE && call->state < BEL_CALL_LEFT);
    call->state = BEL_CALL_LEFT;
    bel__link_remove(&call->link);
    session->calls_count--;
    session->kept_bytes -= call->reply.capacity;
    bel__call_owe(session, call, 0);
    if (session->holder == call) session->holder = NULL;
    bel__session_count_output(session);
    if (call->running_bytes == 0) return;
    assert(session->running_bytes >= call->running_bytes);
    session->running_bytes -= call->running_bytes;
    call->running_bytes = 0;
    bel__session_count_input(session);
}

void bel__call_owe(struct bel_session *session, struct bel_call *call, size_t bytes)
{
    assert(session->owed_bytes >= call->owed_bytes);
    session->owed_bytes += bytes - call->owed_bytes;
    call->owed_bytes = bytes;
    bel__session_count_output(session);
}

void bel__call_run(struct bel_session *session, struct bel_call *call)
{
    assert(call->running_bytes == 0);
    if (call->request.command.verb == BEL_VERB_CLAIM) return;
    if (call->block_bytes < BEL_INPUT_SMALL_BYTES) return;
    call->running_bytes = call->block_bytes;
    session->running_bytes += call->block_bytes;
}

int bel__call_reserve(struct bel_call *call, size_t bytes)
{
    if (bytes <= call->block_bytes) return 0;
    uint8_t *block = malloc(bytes);
    if (block == NULL) return BEL_ENOMEM;
    free(call->block);
    call->block = block;
    call->block_bytes = bytes;
    return 0;
}

/* --- deliveries whose reply may be lost --- */

void bel__session_free_if_gone(struct bel_session *session)
{
    if (session->state != BEL_SESSION_DESTROYED || session->calls_count > 0) return;
    if (!bel__list_is_empty(&session->releasing)) return;
    assert(bel__list_is_empty(&session->unwritten) && session->kept_bytes == 0);
    assert(session->owed_bytes == 0 && session->running_bytes == 0 && session->input.bytes == 0);
    const struct bel_service *service = session->service;
    call_destroy(session->spare);
    free(session);
    if (service->gone != NULL) service->gone(service->context);
}

void bel__call_keep_tokens(struct bel_call *call, const struct bel_reply *reply)
{
    size_t bytes = bel__unsent_bytes(reply);
    assert(call->state == BEL_CALL_UNDER_WAY && reply->err == 0);
    if (bytes == 0 || bel__call_reserve(call, bytes) != 0) return;
    bel__unsent_keep(&call->unsent, reply, call->block);
}

static void on_released(struct bel_unsent_claims *unsent)
{
    struct bel_call *call = BEL_CONTAINER_OF(unsent, struct bel_call, unsent);
    struct bel_session *session = call->session;
    assert(call->state == BEL_CALL_RELEASING && unsent->count == 0);
    bel__link_remove(&call->link);
    bel__call_give(session, call);
    bel__session_free_if_gone(session);
}

void bel__call_abandon(struct bel_session *session, struct bel_call *call)
{
    assert(call->state == BEL_CALL_LEFT || call->state == BEL_CALL_UNWRITTEN);
    call->state = BEL_CALL_RELEASING;
    bel__list_append(&session->releasing, &call->link);
    bel__unsent_release(&call->unsent, &call->request, session->owner.backend, on_released);
}
