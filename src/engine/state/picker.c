/* SPDX-License-Identifier: MIT */

/*
 * All timers are in one sorted map, share by share. Each share has a copy of its first timer, its
 * head. Shares with a head are in a second map, the queue, sorted by leases and then by head:
 *
 *     ready   | share 1: a b c d | share 2: e | share 5: f g |
 *                        ^                  ^            ^
 *     queue   (leases 0, head e) (leases 0, head a) | (leases 3, head f)
 *
 * Without a concurrency the first share of the queue is next. With a concurrency, shares with equal
 * numbers of leases have equal penalties, so only the first share of each number has to be
 * compared. If n shares have different numbers of leases, the sum is at least n (n - 1) / 2: with C
 * leases there are at most about sqrt(2 C) shares to compare. No score has to be stored or updated.
 *
 * The first word of a queue key has the leases in its upper half and a score of the head in its
 * lower half. The score is SCORE_PLAIN for all shares now; other scores would sort shares with
 * equal leases.
 *
 * Most topics have one share and few timers. A single share has no queue, and a single timer is
 * only in its share's head. The maps are created with the second share or timer, and freed with the
 * last.
 *
 * Nothing may fail when a lease ends or a timer is removed. Both move a share within the queue,
 * which therefore always has memory for all its shares in any order.
 */
#include "engine/state/picker.h"

#include "core/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCORE_PLAIN = 50,
    SCORE_MIN = 50, /* lowest score without penalty */
    PENALTY = 20,
    SEQUENCE_BITS = 56,
    NAME_BYTES_MAX = 1 << 20,
};

struct bel_share {
    struct bel_ready head; /* valid if `ready_count` is not 0 */
    uint64_t ready_count;
    uint64_t number; /* from 1 on, so that no key is all 0 */
    uint32_t leased;
    uint32_t name_bytes;
    char name[];
};

struct bel_crowd {
    struct bel_map shares;   /* by name */
    struct bel_sorted queue; /* shares with a head */
};

static_assert(sizeof(struct bel_picker) < 150, "there is one for each topic");

/* The fair part of a topic's concurrency for one share. */
struct fairness {
    double fair;
    uint64_t leases_max; /* of a share */
};

static uint64_t due_word(const struct bel_ready *ready)
{
    return (uint64_t)ready->due_ms ^ UINT64_C(1) << 63;
}

static uint64_t rank_word(const struct bel_ready *ready)
{
    assert(ready->sequence >> SEQUENCE_BITS == 0);
    return (uint64_t)ready->priority << SEQUENCE_BITS | ready->sequence;
}

static struct bel_key ready_key(const struct bel_share *share, const struct bel_ready *ready)
{
    return (struct bel_key){{share->number, due_word(ready), rank_word(ready)}};
}

static struct bel_key queue_key(const struct bel_share *share)
{
    uint64_t first = (uint64_t)share->leased << 32 | SCORE_PLAIN;
    return (struct bel_key){{first, due_word(&share->head), rank_word(&share->head)}};
}

/* Returns the timer of an entry in the ready map. */
static struct bel_ready ready_of(const struct bel_sorted_place *place)
{
    return (struct bel_ready){
        .due_ms = (int64_t)(place->key.words[1] ^ UINT64_C(1) << 63),
        .priority = (uint8_t)(place->key.words[2] >> SEQUENCE_BITS),
        .sequence = place->key.words[2] & ((UINT64_C(1) << SEQUENCE_BITS) - 1),
        .user = place->value,
    };
}

static struct bel_share *share_of(uint64_t value)
{
    assert(value != 0);
    return (struct bel_share *)(uintptr_t)value;
}

/* Compares two timers by (due, priority, sequence). Returns a negative number, 0 or a positive
 * number. */
static int compare(const struct bel_ready *a, const struct bel_ready *b)
{
    if (a->due_ms != b->due_ms) return a->due_ms < b->due_ms ? -1 : 1;
    uint64_t rank_a = rank_word(a), rank_b = rank_word(b);
    return rank_a < rank_b ? -1 : rank_a > rank_b;
}

/* Returns whether the only timer is in its share's head and not in the map. */
static bool is_single(const struct bel_picker *picker)
{
    return picker->only != NULL && picker->only->ready_count == 1 &&
           bel__sorted_count(&picker->ready) == 0;
}

/* Shares */

static bool has_name(const struct bel_share *share, struct bel_view name)
{
    return share->name_bytes == name.bytes &&
           (name.bytes == 0 || memcmp(share->name, name.data, name.bytes) == 0);
}

static struct bel_share *find_share(const struct bel_picker *picker, struct bel_view name)
{
    if (picker->crowd == NULL) {
        struct bel_share *only = picker->only;
        return only != NULL && has_name(only, name) ? only : NULL;
    }
    const uint64_t *value = bel__map_find(&picker->crowd->shares, name.data, name.bytes);
    return value == NULL ? NULL : share_of(*value);
}

static void free_crowd(struct bel_crowd *crowd)
{
    bel__map_finish(&crowd->shares);
    bel__sorted_finish(&crowd->queue);
    free(crowd);
}

/* Add a share that has a head to the queue, if there is a queue; remove it. */
static void enqueue(struct bel_picker *picker, struct bel_share *share)
{
    if (picker->crowd == NULL || share->ready_count == 0) return;
    struct bel_key key = queue_key(share);
    bool was_there = bel__sorted_put(&picker->crowd->queue, &key, (uintptr_t)share, NULL);
    assert(!was_there);
    (void)was_there;
}

static void dequeue(struct bel_picker *picker, const struct bel_share *share)
{
    if (picker->crowd == NULL || share->ready_count == 0) return;
    struct bel_key key = queue_key(share);
    bool was_there = bel__sorted_remove(&picker->crowd->queue, &key, NULL);
    assert(was_there);
    (void)was_there;
}

/* Reserves memory for adding a timer to a share. */
static int reserve(struct bel_picker *picker, const struct bel_share *share)
{
    if (picker->crowd == NULL && share->ready_count == 0) return 0;
    if (picker->crowd != NULL && share->ready_count == 0) {
        struct bel_sorted *queue = &picker->crowd->queue;
        int err = bel__sorted_provide(queue, bel__sorted_count(queue) + 1);
        if (err) return err;
    }
    return bel__sorted_reserve(&picker->ready, is_single(picker) ? 2 : 1);
}

/* Moves a single timer from its share's head into the map. */
static void unfold(struct bel_picker *picker)
{
    if (!is_single(picker)) return;
    struct bel_key key = ready_key(picker->only, &picker->only->head);
    bel__sorted_put(&picker->ready, &key, picker->only->head.user, NULL);
    assert(!is_single(picker) && bel__sorted_count(&picker->ready) == 1);
}

/* Changes from a single share to a crowd. */
static int make_crowd(struct bel_picker *picker)
{
    struct bel_share *only = picker->only;
    assert(only != NULL && picker->crowd == NULL);
    struct bel_crowd *crowd = malloc(sizeof *crowd);
    if (crowd == NULL) return BEL_ENOMEM;
    bel__map_init(&crowd->shares, picker->secret);
    bel__sorted_init(&crowd->queue);
    int err = bel__map_put(&crowd->shares, only->name, only->name_bytes, (uintptr_t)only);
    if (err) goto fail;
    err = bel__sorted_provide(&crowd->queue, 1);
    if (err) goto fail;
    err = bel__sorted_reserve(&picker->ready, 1);
    if (err) goto fail;

    unfold(picker);
    picker->crowd = crowd;
    picker->only = NULL;
    enqueue(picker, only);
    return 0;

fail:
    free_crowd(crowd);
    return err;
}

static int make_share(struct bel_picker *picker, struct bel_view name, struct bel_share **out)
{
    assert(name.bytes <= NAME_BYTES_MAX);
    if (picker->only != NULL) {
        int err = make_crowd(picker);
        if (err) return err;
    }
    struct bel_share *share = malloc(sizeof *share + name.bytes);
    if (share == NULL) return BEL_ENOMEM;
    *share = (struct bel_share){.number = picker->next_number, .name_bytes = (uint32_t)name.bytes};
    if (name.bytes > 0) memcpy(share->name, name.data, name.bytes);
    assert(picker->only == NULL);
    if (picker->crowd == NULL) {
        picker->only = share;
    } else {
        int err = bel__map_put(&picker->crowd->shares, share->name, name.bytes, (uintptr_t)share);
        if (err) {
            free(share);
            return err;
        }
    }
    picker->next_number++;
    *out = share;
    return 0;
}

static int take_share(struct bel_picker *picker, struct bel_view name, struct bel_share **out)
{
    struct bel_share *share = find_share(picker, name);
    if (share == NULL) return make_share(picker, name, out);
    *out = share;
    return 0;
}

/* Frees a share that has neither ready timers nor leases. */
static void leave_share(struct bel_picker *picker, struct bel_share *share)
{
    if (share->ready_count > 0 || share->leased > 0) return;
    if (picker->crowd == NULL) {
        assert(picker->only == share);
        picker->only = NULL;
    } else {
        assert(picker->only == NULL);
        bel__map_remove(&picker->crowd->shares, share->name, share->name_bytes, NULL);
        if (bel__map_count(&picker->crowd->shares) == 0) {
            free_crowd(picker->crowd);
            picker->crowd = NULL;
        }
    }
    free(share);
}

void bel__picker_init(struct bel_picker *picker, struct bel_siphash_key secret)
{
    assert(picker != NULL);
    *picker = (struct bel_picker){.secret = secret, .next_number = 1};
    bel__sorted_init(&picker->ready);
}

void bel__picker_finish(struct bel_picker *picker)
{
    assert(picker != NULL);
    bel__sorted_finish(&picker->ready);
    free(picker->only);
    if (picker->crowd != NULL) {
        for (uint32_t i = bel__map_count(&picker->crowd->shares); i-- > 0;) {
            free(share_of(bel__map_at(&picker->crowd->shares, i)->value));
        }
        free_crowd(picker->crowd);
    }
    bel__picker_init(picker, picker->secret);
}

/* Timers */

int bel__picker_add(struct bel_picker *picker, struct bel_view group, const struct bel_ready *ready)
{
    struct bel_share *share;
    int err = take_share(picker, group, &share);
    if (err) return err;
    err = reserve(picker, share);
    if (err) {
        leave_share(picker, share);
        return err;
    }

    if (picker->crowd != NULL || share->ready_count > 0) {
        struct bel_key key = ready_key(share, ready);
        unfold(picker);
        bool was_there = bel__sorted_put(&picker->ready, &key, ready->user, NULL);
        assert(!was_there);
        (void)was_there;
    }
    if (share->ready_count > 0 && compare(&share->head, ready) < 0) {
        assert(picker->crowd != NULL || bel__sorted_count(&picker->ready) > 1);
        share->ready_count++;
        return 0;
    }
    dequeue(picker, share);
    share->head = *ready;
    share->ready_count++;
    enqueue(picker, share);
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

/* Sets the head of a share after its head was removed. */
static void set_head(const struct bel_picker *picker, struct bel_share *share)
{
    struct bel_sorted_place place;
    if (share->ready_count == 0) return;
    bool is_there =
        bel__sorted_seek(&picker->ready, &(struct bel_key){{share->number, 0, 0}}, &place);
    assert(is_there && place.key.words[0] == share->number);
    if (is_there) share->head = ready_of(&place);
}

bool bel__picker_remove(struct bel_picker *picker, struct bel_view group,
                        const struct bel_ready *ready)
{
    struct bel_share *share = find_share(picker, group);
    if (share == NULL || share->ready_count == 0) return false;
    bool is_head = compare(&share->head, ready) == 0;
    if (is_single(picker)) {
        if (!is_head) return false;
    } else {
        struct bel_key key = ready_key(share, ready);
        if (!bel__sorted_remove(&picker->ready, &key, NULL)) return false;
    }

    if (is_head) dequeue(picker, share);
    share->ready_count--;
    if (is_head) {
        set_head(picker, share);
        enqueue(picker, share);
    }
    if (bel__sorted_count(&picker->ready) == 0) bel__sorted_finish(&picker->ready);
    leave_share(picker, share);
    return true;
}

static void clear_share(struct bel_picker *picker, struct bel_share *share)
{
    dequeue(picker, share);
    share->ready_count = 0;
    leave_share(picker, share);
}

void bel__picker_clear(struct bel_picker *picker)
{
    bel__sorted_finish(&picker->ready);
    if (picker->only != NULL) clear_share(picker, picker->only);
    uint32_t count = picker->crowd == NULL ? 0 : bel__map_count(&picker->crowd->shares);
    for (uint32_t i = count; i-- > 0 && picker->crowd != NULL;) {
        clear_share(picker, share_of(bel__map_at(&picker->crowd->shares, i)->value));
    }
    assert(bel__picker_count(picker) == 0);
}

uint64_t bel__picker_count(const struct bel_picker *picker)
{
    assert(picker->only == NULL || picker->crowd == NULL);
    return is_single(picker) ? 1 : bel__sorted_count(&picker->ready);
}

/* Leases */

static void set_leased(struct bel_picker *picker, struct bel_share *share, uint32_t leased)
{
    dequeue(picker, share);
    share->leased = leased;
    enqueue(picker, share);
}

int bel__picker_lease(struct bel_picker *picker, struct bel_view group, struct bel_share **out)
{
    struct bel_share *share;
    int err = take_share(picker, group, &share);
    if (err) return err;
    assert(share->leased < UINT32_MAX);
    set_leased(picker, share, share->leased + 1);
    picker->leased++;
    assert(share->leased <= picker->leased);
    *out = share;
    return 0;
}

void bel__picker_unlease(struct bel_picker *picker, struct bel_share *share)
{
    assert(share->leased > 0 && picker->leased >= share->leased);
    set_leased(picker, share, share->leased - 1);
    picker->leased--;
    leave_share(picker, share);
}

/* Turns */

static struct fairness fairness_of(uint32_t concurrency, uint64_t shares)
{
    assert(shares > 0);
    double fair = (double)concurrency / (double)shares;
    if (fair < 1) fair = 1;
    uint64_t leases_max = (uint64_t)(2 * fair);
    assert(leases_max >= 2); /* a single share may have a lease */
    return (struct fairness){.fair = fair, .leases_max = leases_max};
}

static double penalty_of(const struct fairness *fairness, uint64_t leased)
{
    double running = (double)leased;
    return running >= fairness->fair ? PENALTY * (running - fairness->fair + 1) : 0;
}

/* Returns the share with the lowest score, NULL if all are passed over. Compares the first share of
 * each number of leases, while a lower score is possible. */
static const struct bel_share *lowest_score(const struct bel_sorted *queue,
                                            const struct fairness *fairness)
{
    const struct bel_share *best = NULL;
    double best_score = 0;
    struct bel_key from = {{0, 0, 0}};
    struct bel_sorted_place place;
    while (bel__sorted_seek(queue, &from, &place)) {
        const struct bel_share *share = share_of(place.value);
        assert(share->ready_count > 0 && place.key.words[0] >> 32 == share->leased);
        if (share->leased >= fairness->leases_max) break;
        double penalty = penalty_of(fairness, share->leased);
        if (best != NULL && SCORE_MIN + penalty > best_score) break;
        double score = (double)(uint32_t)place.key.words[0] + penalty;
        if (best == NULL || score < best_score ||
            (score == best_score && compare(&share->head, &best->head) < 0)) {
            best = share;
            best_score = score;
        }
        from.words[0] = ((uint64_t)share->leased + 1) << 32;
    }
    return best;
}

/* Returns the share to pick from, of several; NULL if none may deliver. */
static const struct bel_share *pick_share(const struct bel_sorted *queue, uint32_t concurrency,
                                          uint64_t shares)
{
    struct bel_sorted_place place;
    if (concurrency > 0) {
        struct fairness fairness = fairness_of(concurrency, shares);
        return lowest_score(queue, &fairness);
    }
    if (!bel__sorted_seek(queue, &(struct bel_key){{0, 0, 0}}, &place)) return NULL;
    return share_of(place.value);
}

bool bel__picker_pick(const struct bel_picker *picker, uint32_t concurrency, uint64_t shares,
                      struct bel_ready *out)
{
    const struct bel_share *share = picker->only;
    if (bel__picker_count(picker) == 0) return false;
    if (concurrency > 0 && picker->leased >= concurrency) return false;
    if (picker->crowd != NULL) {
        share = pick_share(&picker->crowd->queue, concurrency, shares);
    } else if (concurrency > 0 && share->leased >= fairness_of(concurrency, shares).leases_max) {
        return false;
    }
    if (share == NULL) return false;
    assert(share->ready_count > 0);
    *out = share->head;
    return true;
}

bool bel__picker_first(const struct bel_picker *picker, struct bel_ready *out)
{
    const struct bel_share *first = picker->only;
    if (bel__picker_count(picker) == 0) return false;
    struct bel_key from = {{0, 0, 0}};
    struct bel_sorted_place place;
    while (picker->crowd != NULL && bel__sorted_seek(&picker->crowd->queue, &from, &place)) {
        const struct bel_share *share = share_of(place.value);
        if (first == NULL || compare(&share->head, &first->head) < 0) first = share;
        from.words[0] = place.key.words[0] + 1; /* the next number of leases */
    }
    assert(first != NULL && first->ready_count > 0);
    *out = first->head;
    return true;
}

uint64_t bel__picker_ahead(const struct bel_picker *picker, struct bel_view group,
                           const struct bel_ready *ready, uint64_t max)
{
    const struct bel_share *share = find_share(picker, group);
    if (share == NULL || share->ready_count == 0 || max == 0) return 0;
    if (is_single(picker)) return compare(&share->head, ready) < 0;
    struct bel_key end = ready_key(share, ready), from = {{share->number, 0, 0}};
    struct bel_sorted_place at;
    uint64_t count = 0;
    bool has_more = bel__sorted_seek(&picker->ready, &from, &at);
    while (has_more && count < max && bel__key_compare(&at.key, &end) < 0) {
        count++;
        has_more = bel__sorted_next(&picker->ready, &at);
    }
    assert(count <= share->ready_count);
    return count;
}

bool bel__picker_next(const struct bel_picker *picker, struct bel_key *place, struct bel_ready *out)
{
    if (is_single(picker)) {
        struct bel_key key = ready_key(picker->only, &picker->only->head);
        if (bel__key_compare(&key, place) <= 0) return false;
        *place = key;
        *out = picker->only->head;
        return true;
    }
    struct bel_sorted_place at;
    if (!bel__sorted_seek(&picker->ready, place, &at)) return false;
    if (bel__key_compare(&at.key, place) == 0 && !bel__sorted_next(&picker->ready, &at)) {
        return false;
    }
    assert(bel__key_compare(&at.key, place) > 0);
    *place = at.key;
    *out = ready_of(&at);
    return true;
}

/* Checking */

static size_t share_bytes(const struct bel_share *share)
{
    return sizeof *share + share->name_bytes;
}

size_t bel__picker_bytes(const struct bel_picker *picker)
{
    size_t bytes = bel__sorted_bytes(&picker->ready);
    if (picker->only != NULL) bytes += share_bytes(picker->only);
    if (picker->crowd == NULL) return bytes;
    const struct bel_crowd *crowd = picker->crowd;
    bytes += sizeof *crowd + bel__map_bytes(&crowd->shares) + bel__sorted_bytes(&crowd->queue);
    for (uint32_t i = 0; i < bel__map_count(&crowd->shares); i++) {
        bytes += share_bytes(share_of(bel__map_at(&crowd->shares, i)->value));
    }
    return bytes;
}

/* Returns whether a share's count is right and its head is its first timer. */
static bool is_share_valid(const struct bel_picker *picker, const struct bel_share *share)
{
    struct bel_sorted_place place;
    uint64_t count = 0;
    if (share->number == 0 || share->number >= picker->next_number) return false;
    if (share->ready_count == 0 && share->leased == 0) return false;
    if (is_single(picker)) return true;
    bool is_there =
        bel__sorted_seek(&picker->ready, &(struct bel_key){{share->number, 0, 0}}, &place);
    while (is_there && place.key.words[0] == share->number) {
        struct bel_ready ready = ready_of(&place);
        if (count == 0 && (compare(&ready, &share->head) != 0 || ready.user != share->head.user)) {
            return false;
        }
        count++;
        is_there = bel__sorted_next(&picker->ready, &place);
    }
    return count == share->ready_count;
}

static bool is_queued(const struct bel_crowd *crowd, const struct bel_share *share)
{
    struct bel_key key = queue_key(share);
    const uint64_t *value = bel__sorted_find(&crowd->queue, &key);
    return value != NULL && share_of(*value) == share;
}

bool bel__picker_valid(const struct bel_picker *picker)
{
    uint64_t ready_count = 0, leased = 0, queued = 0;
    const struct bel_crowd *crowd = picker->crowd;
    if (!bel__sorted_valid(&picker->ready)) return false;
    if (crowd == NULL) {
        const struct bel_share *only = picker->only;
        if (only == NULL) return picker->leased == 0 && picker->ready.count == 0;
        return is_share_valid(picker, only) && only->leased == picker->leased &&
               (is_single(picker) || picker->ready.count == only->ready_count);
    }
    if (picker->only != NULL || !bel__map_valid(&crowd->shares)) return false;
    for (uint32_t i = 0; i < bel__map_count(&crowd->shares); i++) {
        const struct bel_share *share = share_of(bel__map_at(&crowd->shares, i)->value);
        if (!is_share_valid(picker, share)) return false;
        if (share->ready_count > 0 && !is_queued(crowd, share)) return false;
        ready_count += share->ready_count;
        leased += share->leased;
        queued += share->ready_count > 0;
    }
    return ready_count == picker->ready.count && leased == picker->leased &&
           queued == crowd->queue.count && queued + leased > 0 && bel__sorted_valid(&crowd->queue);
}
