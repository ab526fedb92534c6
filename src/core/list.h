/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_LIST_H
#define BEL_CORE_LIST_H

/*
 * list - an intrusive doubly linked list: items join and leave in constant time and without memory
 * allocation.
 *
 *     struct conn { int fd; struct bel_link idle; };
 *
 *     bel__list_append(&idle_conns, &conn->idle);
 *
 *     for (link = bel__list_first(&idle_conns); link != NULL; link = next) {
 *         next = bel__list_next(&idle_conns, link);
 *         conn_close(BEL_CONTAINER_OF(link, struct conn, idle));
 *     }
 *
 * The list head is a link too, between the last and the first. A link that is zeroed or was removed
 * is in no list. A list must not be moved or copied. Dropping a list that is not empty leaves its
 * links dangling.
 *
 * Threads: a list and its items belong to one thread.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct bel_link {
    struct bel_link *next, *prev; /* both NULL: in no list */
};

struct bel_list {
    struct bel_link head;
};

/* The item of type `type` whose field `member` is at `link`. */
#define BEL_CONTAINER_OF(link, type, member)                                                       \
    ((type *)(void *)((char *)(link)-offsetof(type, member)))
#define BEL_CONTAINER_OF_CONST(link, type, member)                                                 \
    ((const type *)(const void *)((const char *)(link)-offsetof(type, member)))

static inline void bel__list_init(struct bel_list *list)
{
    list->head = (struct bel_link){&list->head, &list->head};
}

static inline bool bel__list_is_empty(const struct bel_list *list)
{
    assert(list->head.next != NULL); /* otherwise the list is not initialised */
    return list->head.next == &list->head;
}

static inline bool bel__link_is_linked(const struct bel_link *link)
{
    assert((link->next == NULL) == (link->prev == NULL));
    return link->next != NULL;
}

/* Insert `link`, which is in no list, before or after a link that is in one. `at` may be a list's
 * head: before the head is the end, after it the start. */
static inline void bel__link_insert_before(struct bel_link *at, struct bel_link *link)
{
    assert(!bel__link_is_linked(link));
    assert(bel__link_is_linked(at));
    *link = (struct bel_link){.next = at, .prev = at->prev};
    at->prev->next = link;
    at->prev = link;
}

static inline void bel__link_insert_after(struct bel_link *at, struct bel_link *link)
{
    assert(bel__link_is_linked(at));
    bel__link_insert_before(at->next, link);
}

static inline void bel__list_append(struct bel_list *list, struct bel_link *link)
{
    bel__link_insert_before(&list->head, link);
}

/* Removes `link` from its list. */
static inline void bel__link_remove(struct bel_link *link)
{
    assert(bel__link_is_linked(link));
    assert(link->prev->next == link && link->next->prev == link);
    link->prev->next = link->next;
    link->next->prev = link->prev;
    *link = (struct bel_link){NULL, NULL};
}

/* Returns the first link, which stays in the list; NULL if it is empty. */
static inline struct bel_link *bel__list_first(const struct bel_list *list)
{
    return bel__list_is_empty(list) ? NULL : list->head.next;
}

/* Returns the link after `link`, or NULL if it is the last. Call it before removing `link`. */
static inline struct bel_link *bel__list_next(const struct bel_list *list,
                                              const struct bel_link *link)
{
    assert(bel__link_is_linked(link));
    return link->next == &list->head ? NULL : link->next;
}

/* Removes and returns the first link; NULL if the list is empty. */
static inline struct bel_link *bel__list_take_first(struct bel_list *list)
{
    struct bel_link *first = bel__list_first(list);
    if (first != NULL) bel__link_remove(first);
    return first;
}

/* Moves all of `from` to the end of `list`, in constant time. `from` is then empty. */
static inline void bel__list_splice(struct bel_list *list, struct bel_list *from)
{
    assert(list != from);
    if (bel__list_is_empty(from)) return;
    struct bel_link *first = from->head.next, *last = from->head.prev;
    first->prev = list->head.prev;
    list->head.prev->next = first;
    last->next = &list->head;
    list->head.prev = last;
    bel__list_init(from);
}

#endif
