/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_REQUEST_LIST_H
#define BEL_ENGINE_STATE_REQUEST_LIST_H

/*
 * request_list - linked lists of requests, and the engine's own fields in a request.
 *
 * The list is linked through request->own.next. A request is in one list at most. A list must not
 * be moved in memory: `last` may point into it.
 */

#include "belfry/backend.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* The stage of a request: request->own.words[BEL_OWN_STAGE]. */
enum bel_stage {
    BEL_STAGE_SUBMITTED,
    BEL_STAGE_WAITING,
    BEL_STAGE_BULK,
    BEL_STAGE_ANSWERED,
};

enum bel_own {
    BEL_OWN_STAGE,
    BEL_OWN_WAITERS, /* of a parked claim: its waiters, wheel timer, order */
    BEL_OWN_TIMER,
    BEL_OWN_PARKED,
    BEL_OWN_AFTER = BEL_OWN_WAITERS,   /* of an answered request: the batch that it waits for */
    BEL_OWN_FREE = BEL_OWN_PARKED + 1, /* this and later words belong to the command */
};

struct bel_request_list {
    struct bel_request *first;
    struct bel_request **last; /* the pointer to set when a request is appended */
};

static inline void bel__request_list_init(struct bel_request_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static inline void bel__request_list_append(struct bel_request_list *list,
                                            struct bel_request *request)
{
    assert(*list->last == NULL);
    request->own.next = NULL;
    *list->last = request;
    list->last = (struct bel_request **)&request->own.next;
}

/* Inserts a request at the front. */
static inline void bel__request_list_push(struct bel_request_list *list,
                                          struct bel_request *request)
{
    request->own.next = list->first;
    if (list->first == NULL) list->last = (struct bel_request **)&request->own.next;
    list->first = request;
}

/* Removes and returns the first request, NULL if the list is empty. */
static inline struct bel_request *bel__request_list_take(struct bel_request_list *list)
{
    struct bel_request *request = list->first;
    if (request == NULL) return NULL;
    list->first = request->own.next;
    if (list->first == NULL) list->last = &list->first;
    return request;
}

/* Moves all requests of `from` to the end of `list`. */
static inline void bel__request_list_join(struct bel_request_list *list,
                                          struct bel_request_list *from)
{
    if (from->first == NULL) return;
    *list->last = from->first;
    list->last = from->last;
    bel__request_list_init(from);
}

/* Removes a request. Returns false if it is not in the list. */
static inline bool bel__request_list_remove(struct bel_request_list *list,
                                            const struct bel_request *request)
{
    for (struct bel_request **at = &list->first; *at != NULL;
         at = (struct bel_request **)&(*at)->own.next) {
        if (*at != request) continue;
        *at = request->own.next;
        if (*at == NULL) list->last = at;
        return true;
    }
    return false;
}

#endif
