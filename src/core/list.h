/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_LIST_H
#define BEL_CORE_LIST_H

/*
 * list - a ring of links inside other things, so that joining and leaving a list
 * takes constant time and no memory.
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
 * A list is a link as well, and stands between its last and its first. A link that is
 * zeroed, or was removed, is in no list. A list must not be moved or copied; one that
 * is dropped while links are in it leaves them dangling.
 *
 * Threads: a list and all in it belong to one thread.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct bel_link {
    struct bel_link *next, *prev; /* both NULL in no list */
};

struct bel_list {
    struct bel_link head;
};

/* The thing of type `type` whose field `member` is at `link`. */
#define BEL_CONTAINER_OF(link, type, member)                                                       \
    ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void bel__list_init(struct bel_list *list)
{
    list->head = (struct bel_link){&list->head, &list->head};
}

static inline bool bel__list_is_empty(const struct bel_list *list)
{
    assert(list->head.next != NULL); /* else it was not initialised */
    return list->head.next == &list->head;
}

static inline bool bel__link_is_linked(const struct bel_link *link)
{
    assert((link->next == NULL) == (link->prev == NULL));
    return link->next != NULL;
}

/* Puts `link`, which is in no list, before or after one that is. `at` may be a list's
 * head: before it is the end, after it the start. */
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

static inline void bel__list_prepend(struct bel_list *list, struct bel_link *link)
{
    bel__link_insert_after(&list->head, link);
}

/* Takes `link` out of the list that it is in. */
static inline void bel__link_remove(struct bel_link *link)
{
    assert(bel__link_is_linked(link));
    assert(link->prev->next == link && link->next->prev == link);
    link->prev->next = link->next;
    link->next->prev = link->prev;
    *link = (struct bel_link){NULL, NULL};
}

/* The ends, which stay in the list; NULL if it is empty. */
static inline struct bel_link *bel__list_first(const struct bel_list *list)
{
    return bel__list_is_empty(list) ? NULL : list->head.next;
}

static inline struct bel_link *bel__list_last(const struct bel_list *list)
{
    return bel__list_is_empty(list) ? NULL : list->head.prev;
}

/* The one behind `link`; NULL if it is the last. Ask before removing `link`. */
static inline struct bel_link *bel__list_next(const struct bel_list *list,
                                              const struct bel_link *link)
{
    assert(bel__link_is_linked(link));
    return link->next == &list->head ? NULL : link->next;
}

/* Takes out the first; NULL if the list is empty. */
static inline struct bel_link *bel__list_take_first(struct bel_list *list)
{
    struct bel_link *first = bel__list_first(list);
    if (first != NULL) bel__link_remove(first);
    return first;
}

/* Moves all of `from` behind all of `list`, in constant time. `from` is then empty. */
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
