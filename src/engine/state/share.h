/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_SHARE_H
#define BEL_ENGINE_STATE_SHARE_H

/*
 * share - the parts of a picker: lines of timers, shares, and the order of shares. Private to
 * picker.c, share.c and picker_check.c.
 *
 * All timers are in one sorted map, line by line. Each line has a copy of its first timer, its
 * head. A share has its own line, for timers without a resource, and a tree of lines with one; of
 * these, the lines that are not parked are in a second tree, by head. The first of all their heads
 * is the front of the share.
 *
 *     ready   | line 1: a b c d | line 2: e | line 5: f g |
 *                       ^                 ^           ^
 *     share x   own line 1, lines {2}       front a
 *     share y   own line 4 (empty), {5}     front f
 *
 * Shares with a front have a seat in a tree, sorted by
 *
 *     (leases, static score of the front, end of the share's last turn, due, priority, sequence)
 *
 * Without a concurrency the first share is next. With a concurrency, shares with equal
 * numbers of leases have equal penalties, so only the first share of each number has to be
 * compared. If n shares have different numbers of leases, the sum is at least n (n - 1) / 2: with C
 * leases there are at most about sqrt(2 C) shares to compare. No score has to be stored or updated.
 *
 * Most topics have one share and few timers. A single share has no seat, and a single timer is only
 * in its line's head. The map is created with the second timer, and freed with the last.
 *
 * Nothing may fail when a lease ends, a line is parked or taken back, or a timer is removed. The
 * trees need no memory for that: their nodes are in seats and lines.
 */
#include "core/map.h"
#include "core/treap.h"
#include "engine/state/picker.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    BEL_SCORE_PLAIN = 50,
    BEL_RANK_SEQUENCE_BITS = 56,
};

#define BEL_SIGN_BIT (UINT64_C(1) << 63)

/* A timer as an entry of the map; the first word of its key is the line's number. */
struct bel_item {
    uint64_t order; /* of a job the score, else the due time */
    uint64_t rank;  /* priority and sequence */
    uint64_t value; /* time and lane */
};

/* Timers in order. */
struct bel_ready_queue {
    struct bel_item head; /* valid if `count` is not 0 */
    uint64_t count;
    uint64_t number; /* from 2 on, so that no key is all 0; odd if the share is a job */
};

/* A line with a resource. */
struct bel_line {
    struct bel_ready_queue queue;
    struct bel_picker *picker;
    struct bel_share *share;
    struct bel_gate *gate;
    struct bel_gate *parked_at;    /* NULL: not parked */
    struct bel_link parked;        /* in parked_at->parked */
    bool has_waited;               /* was parked, and none of its timers was delivered since */
    struct bel_treap_node by_gate; /* in share->lines */
    struct bel_treap_node by_head; /* in share->open, unless parked */
};

/* The place of a share in a crowd. */
struct bel_seat {
    struct bel_treap_node node; /* in the crowd's tree, if `is_seated` */
    struct bel_share *share;
    uint64_t score, due, rank; /* of the front */
    uint64_t served;           /* of the share, as is the next: it is sorted by copies, which are in
                                  the cache when seats are compared */
    uint32_t leased;
    bool is_seated;
    struct bel_link idle; /* in the crowd's list of idle shares */
};

struct bel_share {
    struct bel_ready_queue own;   /* timers without a resource */
    struct bel_treap_node *lines; /* by gate */
    struct bel_treap_node *open;  /* lines that are not parked, by head */
    struct bel_seat *seat;        /* NULL: the only share */
    uint64_t served;              /* picker->served at the end of the last turn; 0: none ended */
    uint32_t turn;                /* deliveries in the turn that has not ended */
    uint32_t leased;
    uint32_t name_bytes : 30;
    uint32_t is_job : 1;
    uint32_t is_held : 1;
    char name[];
};

struct bel_crowd {
    struct bel_map shares[2];     /* by name: groups, jobs */
    struct bel_treap_node *seats; /* of shares with a front that are not held */
    struct bel_list idle;         /* shares without timers and leases, first the oldest */
    uint32_t idle_count;
    struct bel_share *last_found; /* the next to be found is often the same; NULL: none */
};

static_assert(sizeof(struct bel_picker) <= 160, "there is one for each topic");
static_assert(sizeof(struct bel_share) <= 88, "there is one for each topic with a timer");

/* Returns a word that sorts as the number does. */
static inline uint64_t bel__score_word(double score)
{
    uint64_t bits;
    assert(!isnan(score));
    score += 0.0; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & BEL_SIGN_BIT ? ~bits : bits | BEL_SIGN_BIT;
}

static inline double bel__score_of(uint64_t word)
{
    uint64_t bits = word & BEL_SIGN_BIT ? word ^ BEL_SIGN_BIT : ~word;
    double score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static inline uint64_t bel__item_due(const struct bel_picker *picker, uint64_t value)
{
    uint64_t time = value >> 1;
    if ((value & 1) != 0) return time;
    int64_t due = (int64_t)time + picker->offset;
    return due < 0 ? 0 : (uint64_t)due;
}

static inline int bel__words_compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static inline int bel__items_compare(const struct bel_item *a, const struct bel_item *b)
{
    int order = bel__words_compare(a->order, b->order);
    return order != 0 ? order : bel__words_compare(a->rank, b->rank);
}

static inline struct bel_key bel__item_key(const struct bel_ready_queue *queue,
                                           const struct bel_item *item)
{
    return (struct bel_key){{queue->number, item->order, item->rank}};
}

static inline struct bel_item bel__item_at(const struct bel_sorted_place *place)
{
    return (struct bel_item){place->key.words[1], place->key.words[2], place->value};
}

/* --- share.c --- */

/* Return a timer as an entry of the map; an entry as a timer. */
struct bel_item bel__item_of(const struct bel_picker *picker, bool is_job,
                             const struct bel_ready *ready);
struct bel_ready bel__item_ready(bool is_job, const struct bel_item *item);

/* Returns the share that a map of the crowd has as a number. */
static inline struct bel_share *bel__share_of(uint64_t value)
{
    assert(value != 0);
    return (struct bel_share *)(uintptr_t)value;
}

/* Returns whether a share has no timers. */
static inline bool bel__share_is_empty(const struct bel_share *share)
{
    return share->own.count == 0 && share->lines == NULL;
}

/* Returns whether a share had a turn, or part of one. */
static inline bool bel__share_had_turn(const struct bel_share *share)
{
    return share->served != 0 || share->turn != 0;
}

/* Returns whether the only timer is in its share's own head and not in the map. */
static inline bool bel__picker_is_single(const struct bel_picker *picker)
{
    return picker->only != NULL && picker->only->own.count == 1 &&
           bel__sorted_count(&picker->ready) == 0;
}

/* Moves a single timer from its share's head into the map. Memory must have been reserved. */
void bel__picker_unfold(struct bel_picker *picker);

/* Order of lines by head, and of seats. */
int bel__lines_compare(const struct bel_treap_node *a, const struct bel_treap_node *b);
int bel__seats_compare(const struct bel_treap_node *one, const struct bel_treap_node *other);

/* Compares shares with equal scores: by the ends of their turns, then by their fronts. */
int bel__seats_compare_ties(const struct bel_seat *a, const struct bel_seat *b);

/* Returns the first seat of those with at least `leased` leases; NULL if there is none. */
const struct bel_seat *bel__seat_from(const struct bel_crowd *crowd, uint32_t leased);

/* Finds a share, or NULL. */
struct bel_share *bel__share_find(const struct bel_picker *picker,
                                  const struct bel_standing *standing);

/* Finds or makes a share that is about to get a timer or a lease. Call bel__share_leave() if it
 * gets none. */
BEL_CHECKED int bel__share_take(struct bel_picker *picker, const struct bel_standing *standing,
                                struct bel_share **out);

/* Frees a share that has neither timers nor leases, or keeps it to know its turns. */
void bel__share_leave(struct bel_picker *picker, struct bel_share *share);

/* Removes all timers of a share; the caller has emptied the map. */
void bel__share_empty(struct bel_picker *picker, struct bel_share *share);

/* Give a share that has a front its seat, if there is a crowd; take the seat away. Around every
 * change of what seats are sorted by. */
void bel__seat_fill(struct bel_picker *picker, struct bel_share *share);
void bel__seat_empty(struct bel_picker *picker, struct bel_share *share);

static inline void bel__share_sit_down(struct bel_picker *picker, struct bel_share *share)
{
    if (share->seat != NULL) bel__seat_fill(picker, share);
}

static inline void bel__share_stand_up(struct bel_picker *picker, struct bel_share *share)
{
    if (share->seat != NULL) bel__seat_empty(picker, share);
}

/* Returns the queue with the front of a share, NULL if there is none; sets `*out_line` to its line,
 * NULL if it is the share's own. */
const struct bel_ready_queue *bel__share_front(const struct bel_share *share,
                                               struct bel_line **out_line);

/* Returns the first line of a share that has a resource and is not parked, or NULL. */
struct bel_line *bel__share_first_open(const struct bel_share *share);

/* Returns the queue of the timers with a gate; NULL if there is none. Sets `*out_line` to its line,
 * NULL if it is the share's own. */
struct bel_ready_queue *bel__share_queue(struct bel_share *share, const struct bel_gate *gate,
                                         struct bel_line **out_line);

/* Finds or makes the line of a gate; sets `*out` to NULL for the share's own. Returns 0 or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__line_take(struct bel_picker *picker, struct bel_share *share,
                               struct bel_gate *gate, struct bel_line **out);

/* Frees a line without timers. */
void bel__line_free(struct bel_line *line);

/* Take a line out of the heads of its share, and put it back, around a change of its head. The line
 * may be NULL, parked or empty: then they do nothing. */
void bel__line_out(struct bel_line *line);
void bel__line_in(struct bel_line *line);

/* Counts a timer that is added to a queue, or removed. `line`: the line of the queue; NULL if the
 * queue is a share's own. */
void bel__line_count(struct bel_ready_queue *queue, struct bel_line *line, bool is_added);

/* Frees the maps of a crowd and the crowd, but no share. */
void bel__crowd_free(struct bel_crowd *crowd);

#endif
