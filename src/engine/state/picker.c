/* SPDX-License-Identifier: MIT */

/* Timers and leases come and go; the next timer is found. share.h has the structure. */
#include "engine/state/picker.h"

#include "engine/state/share.h"

#include <stdlib.h>

enum {
    PENALTY = 20,
};

/* The fair part of a topic's concurrency for one share. */
struct fairness {
    double fair;
    uint64_t leases_max; /* of a share */
};

void bel__picker_init(struct bel_picker *picker, struct bel_siphash_key secret)
{
    assert(picker != NULL);
    *picker = (struct bel_picker){.secret = secret, .next_number = 1};
    bel__sorted_init(&picker->ready);
}

void bel__gate_init(struct bel_gate *gate, struct bel_gate *above)
{
    *gate = (struct bel_gate){.above = above};
    bel__list_init(&gate->parked);
}

void bel__picker_set_offset(struct bel_picker *picker, int64_t offset)
{
    assert(bel__picker_count(picker) == 0);
    picker->offset = offset;
}

void bel__picker_finish(struct bel_picker *picker)
{
    assert(picker != NULL);
    bel__sorted_finish(&picker->ready);
    if (picker->only != NULL) bel__share_empty(picker, picker->only);
    free(picker->only);
    for (int kind = 0; kind < 2 && picker->crowd != NULL; kind++) {
        struct bel_map *shares = &picker->crowd->shares[kind];
        for (uint32_t i = bel__map_count(shares); i-- > 0;) {
            struct bel_share *share = bel__share_of(bel__map_at(shares, i)->value);
            bel__share_empty(picker, share);
            free(share->seat);
            free(share);
        }
    }
    if (picker->crowd != NULL) bel__crowd_free(picker->crowd);
    bel__picker_init(picker, picker->secret);
}

void bel__picker_clear(struct bel_picker *picker)
{
    bel__sorted_finish(&picker->ready);
    if (picker->only != NULL) {
        bel__share_empty(picker, picker->only);
        bel__share_leave(picker, picker->only);
    }
    for (int kind = 0; kind < 2 && picker->crowd != NULL; kind++) {
        struct bel_map *shares = &picker->crowd->shares[kind];
        for (uint32_t i = bel__map_count(shares); i-- > 0 && picker->crowd != NULL;) {
            if (i >= bel__map_count(shares)) continue; /* an idle share was freed, too */
            struct bel_share *share = bel__share_of(bel__map_at(shares, i)->value);
            bel__share_empty(picker, share);
            bel__share_leave(picker, share);
        }
    }
    assert(bel__picker_count(picker) == 0 && picker->parked == 0);
}

uint64_t bel__picker_due(const struct bel_picker *picker, const struct bel_ready *ready)
{
    return bel__item_due(picker, ready->time << 1 | ready->lane);
}

/* Timers */

/* Reserves memory for adding a timer to a share. */
static int reserve(struct bel_picker *picker, const struct bel_share *share,
                   const struct bel_line *line)
{
    if (picker->crowd == NULL && line == NULL && share->own.count == 0 &&
        bel__sorted_count(&picker->ready) == 0) {
        return 0;
    }
    return bel__sorted_reserve(&picker->ready, bel__picker_is_single(picker) ? 2 : 1);
}

int bel__picker_add(struct bel_picker *picker, const struct bel_standing *standing,
                    const struct bel_ready *ready)
{
    struct bel_share *share;
    struct bel_line *line = NULL;
    int err = bel__share_take(picker, standing, &share);
    if (err) return err;
    err = bel__line_take(picker, share, standing->gate, &line);
    if (err == 0) err = reserve(picker, share, line);
    if (err) {
        if (line != NULL && line->queue.count == 0) bel__line_free(line);
        bel__share_leave(picker, share);
        return err;
    }

    struct bel_ready_queue *queue = line == NULL ? &share->own : &line->queue;
    struct bel_item item = bel__item_of(picker, share->is_job, ready);
    bool is_alone = picker->crowd == NULL && line == NULL && queue->count == 0 &&
                    bel__sorted_count(&picker->ready) == 0;
    if (!is_alone) {
        struct bel_key key = bel__item_key(queue, &item);
        bel__picker_unfold(picker);
        bool was_there = bel__sorted_put(&picker->ready, &key, item.value, NULL);
        assert(!was_there);
        (void)was_there;
    }
    if (queue->count > 0 && bel__items_compare(&queue->head, &item) < 0) {
        bel__line_count(queue, line, true);
        return 0;
    }
    bel__share_stand_up(picker, share);
    bel__line_out(line);
    queue->head = item;
    bel__line_count(queue, line, true);
    bel__line_in(line);
    bel__share_sit_down(picker, share);
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

/* Sets the head of a queue after its head was removed. */
static void set_head(const struct bel_picker *picker, struct bel_ready_queue *queue)
{
    struct bel_sorted_place place;
    if (queue->count == 0) return;
    bool is_there =
        bel__sorted_seek(&picker->ready, &(struct bel_key){{queue->number, 0, 0}}, &place);
    assert(is_there && place.key.words[0] == queue->number);
    if (is_there) queue->head = bel__item_at(&place);
}

bool bel__picker_has(const struct bel_picker *picker, const struct bel_standing *standing,
                     const struct bel_ready *ready)
{
    struct bel_line *line = NULL;
    struct bel_share *share = bel__share_find(picker, standing);
    const struct bel_ready_queue *queue =
        share == NULL ? NULL : bel__share_queue(share, standing->gate, &line);
    if (queue == NULL || queue->count == 0) return false;
    struct bel_item item = bel__item_of(picker, share->is_job, ready);
    if (bel__picker_is_single(picker)) return bel__items_compare(&queue->head, &item) == 0;
    struct bel_key key = bel__item_key(queue, &item);
    return bel__sorted_find(&picker->ready, &key) != NULL;
}

bool bel__picker_remove(struct bel_picker *picker, const struct bel_standing *standing,
                        const struct bel_ready *ready)
{
    struct bel_line *line = NULL;
    struct bel_share *share = bel__share_find(picker, standing);
    struct bel_ready_queue *queue =
        share == NULL ? NULL : bel__share_queue(share, standing->gate, &line);
    if (queue == NULL || queue->count == 0) return false;
    struct bel_item item = bel__item_of(picker, share->is_job, ready);
    bool is_head = bel__items_compare(&queue->head, &item) == 0;
    if (bel__picker_is_single(picker)) {
        if (!is_head) return false;
    } else {
        struct bel_key key = bel__item_key(queue, &item);
        if (!bel__sorted_remove(&picker->ready, &key, NULL)) return false;
    }

    if (is_head) {
        bel__share_stand_up(picker, share);
        bel__line_out(line);
    }
    bel__line_count(queue, line, false);
    if (line != NULL) line->has_waited = line->has_waited && !is_head;
    if (is_head) {
        set_head(picker, queue);
        bel__line_in(line);
        bel__share_sit_down(picker, share);
    }
    if (line != NULL && line->queue.count == 0) bel__line_free(line);
    if (bel__sorted_count(&picker->ready) == 0) bel__sorted_finish(&picker->ready);
    bel__share_leave(picker, share);
    return true;
}

uint64_t bel__picker_count(const struct bel_picker *picker)
{
    assert(picker->only == NULL || picker->crowd == NULL);
    return bel__picker_is_single(picker) ? 1 : bel__sorted_count(&picker->ready);
}

uint64_t bel__picker_parked(const struct bel_picker *picker)
{
    return picker->parked;
}

/* Leases */

uint32_t bel__picker_turn(uint32_t concurrency, uint64_t shares)
{
    if (concurrency <= shares || shares == 0) return 1;
    return (uint32_t)((concurrency - 1) / shares) + 1;
}

int bel__picker_lease(struct bel_picker *picker, const struct bel_standing *standing, uint32_t turn,
                      struct bel_share **out)
{
    struct bel_share *share;
    int err = bel__share_take(picker, standing, &share);
    if (err) return err;
    assert(share->leased < UINT32_MAX);
    bel__share_stand_up(picker, share);
    share->leased++;
    if (turn > 0 && ++share->turn >= turn) {
        share->served = ++picker->served;
        share->turn = 0;
    }
    bel__share_sit_down(picker, share);
    picker->leased++;
    assert(share->leased <= picker->leased);
    *out = share;
    return 0;
}

void bel__picker_unlease(struct bel_picker *picker, struct bel_share *share)
{
    assert(share->leased > 0 && picker->leased >= share->leased);
    bel__share_stand_up(picker, share);
    share->leased--;
    bel__share_sit_down(picker, share);
    picker->leased--;
    bel__share_leave(picker, share);
}

uint32_t bel__picker_leases(const struct bel_picker *picker, const struct bel_standing *standing)
{
    const struct bel_share *share = bel__share_find(picker, standing);
    return share == NULL ? 0 : share->leased;
}

int bel__picker_hold(struct bel_picker *picker, const struct bel_standing *standing, bool is_held)
{
    struct bel_share *share = bel__share_find(picker, standing);
    if (share == NULL && !is_held) return 0;
    int err = bel__share_take(picker, standing, &share);
    if (err) return err;
    bel__share_stand_up(picker, share);
    share->is_held = is_held;
    bel__share_sit_down(picker, share);
    bel__share_leave(picker, share);
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

/* Parking */

struct bel_line *bel__picker_open_line(const struct bel_picker *picker,
                                       const struct bel_standing *standing)
{
    struct bel_line *line = NULL;
    struct bel_share *share = bel__share_find(picker, standing);
    if (share == NULL || bel__share_queue(share, standing->gate, &line) == NULL) return NULL;
    return line == NULL || line->parked_at != NULL ? NULL : line;
}

void bel__picker_park(struct bel_line *line, struct bel_gate *gate)
{
    assert(line->parked_at == NULL && line->queue.count > 0);
    bel__share_stand_up(line->picker, line->share);
    bel__line_out(line);
    line->parked_at = gate;
    if (line->has_waited) {
        bel__link_insert_after(&gate->parked.head,
                               &line->parked); /* before those that came later */
    } else {
        bel__list_append(&gate->parked, &line->parked);
    }
    gate->parked_timers += line->queue.count;
    line->picker->parked += line->queue.count;
    bel__share_sit_down(line->picker, line->share);
}

struct bel_picker *bel__gate_unpark(struct bel_gate *gate)
{
    struct bel_link *link = bel__list_take_first(&gate->parked);
    if (link == NULL) return NULL;
    struct bel_line *line = BEL_CONTAINER_OF(link, struct bel_line, parked);
    assert(line->parked_at == gate && gate->parked_timers >= line->queue.count);
    bel__share_stand_up(line->picker, line->share);
    line->parked_at = NULL;
    line->has_waited = true;
    gate->parked_timers -= line->queue.count;
    line->picker->parked -= line->queue.count;
    bel__line_in(line);
    bel__share_sit_down(line->picker, line->share);
    return line->picker;
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

/* Returns the seat with the lowest score, NULL if all are passed over. Compares the first seat of
 * each number of leases. */
static const struct bel_seat *lowest_score(const struct bel_crowd *crowd,
                                           const struct fairness *fairness)
{
    const struct bel_seat *best = NULL, *seat = bel__seat_from(crowd, 0);
    double best_score = 0;
    while (seat != NULL && seat->leased < fairness->leases_max) {
        double score = bel__score_of(seat->score) + penalty_of(fairness, seat->leased);
        if (best == NULL || score < best_score ||
            (score <= best_score && bel__seats_compare_ties(seat, best) < 0)) {
            best = seat;
            best_score = score;
        }
        seat = bel__seat_from(crowd, seat->leased + 1);
    }
    return best;
}

/* Returns the share to pick from, of several; NULL if none may deliver. */
static const struct bel_share *pick_share(const struct bel_crowd *crowd, uint32_t concurrency,
                                          uint64_t shares)
{
    const struct bel_seat *seat;
    if (concurrency > 0) {
        struct fairness fairness = fairness_of(concurrency, shares);
        seat = lowest_score(crowd, &fairness);
    } else {
        seat = bel__seat_from(crowd, 0);
    }
    return seat == NULL ? NULL : seat->share;
}

bool bel__picker_pick(const struct bel_picker *picker, uint32_t concurrency, uint64_t shares,
                      struct bel_pick *out)
{
    const struct bel_share *share = picker->only;
    if (bel__picker_count(picker) == 0) return false;
    if (concurrency > 0 && picker->leased >= concurrency) return false;
    if (picker->crowd != NULL) {
        share = pick_share(picker->crowd, concurrency, shares);
    } else if (share->is_held ||
               (concurrency > 0 && share->leased >= fairness_of(concurrency, shares).leases_max)) {
        return false;
    }
    struct bel_line *line = NULL;
    const struct bel_ready_queue *queue = share == NULL ? NULL : bel__share_front(share, &line);
    if (queue == NULL) return false;
    *out = (struct bel_pick){.ready = bel__item_ready(share->is_job, &queue->head), .line = line};
    if (line != NULL) out->gate = line->gate;
    return true;
}

/* Counts the timers of a queue before an item, up to `max`. */
static uint64_t count_before(const struct bel_picker *picker, const struct bel_ready_queue *queue,
                             const struct bel_item *item, uint64_t max)
{
    struct bel_key end = bel__item_key(queue, item), from = {{queue->number, 0, 0}};
    struct bel_sorted_place at;
    uint64_t count = 0;
    bool has_more = bel__sorted_seek(&picker->ready, &from, &at);
    while (has_more && count < max && bel__key_compare(&at.key, &end) < 0) {
        count++;
        has_more = bel__sorted_next(&picker->ready, &at);
    }
    assert(count <= queue->count);
    return count;
}

static bool is_head_before(const struct bel_treap_node *node, const void *item)
{
    const struct bel_line *line = BEL_CONTAINER_OF_CONST(node, struct bel_line, by_head);
    return bel__items_compare(&line->queue.head, item) < 0;
}

uint64_t bel__picker_ahead(const struct bel_picker *picker, const struct bel_standing *standing,
                           const struct bel_ready *ready, uint64_t max)
{
    const struct bel_share *share = bel__share_find(picker, standing);
    if (share == NULL || bel__share_is_empty(share) || max == 0) return 0;
    struct bel_item item = bel__item_of(picker, share->is_job, ready);
    if (bel__picker_is_single(picker)) return bel__items_compare(&share->own.head, &item) < 0;
    uint64_t count = 0;
    if (share->own.count > 0) count = count_before(picker, &share->own, &item, max);
    const struct bel_line *line = bel__share_first_open(share);
    while (line != NULL && count < max && bel__items_compare(&line->queue.head, &item) < 0) {
        count += count_before(picker, &line->queue, &item, max - count);
        struct bel_item next = line->queue.head;
        next.rank++; /* sequences are unique: the next line */
        struct bel_treap_node *node = bel__treap_seek(share->open, is_head_before, &next);
        line = node == NULL ? NULL : BEL_CONTAINER_OF(node, struct bel_line, by_head);
    }
    return count;
}

bool bel__picker_next(const struct bel_picker *picker, struct bel_key *place, struct bel_ready *out)
{
    if (bel__picker_is_single(picker)) {
        const struct bel_ready_queue *own = &picker->only->own;
        struct bel_key key = bel__item_key(own, &own->head);
        if (bel__key_compare(&key, place) <= 0) return false;
        *place = key;
        *out = bel__item_ready(picker->only->is_job, &own->head);
        return true;
    }
    struct bel_sorted_place at;
    if (!bel__sorted_seek(&picker->ready, place, &at)) return false;
    if (bel__key_compare(&at.key, place) == 0 && !bel__sorted_next(&picker->ready, &at)) {
        return false;
    }
    assert(bel__key_compare(&at.key, place) > 0);
    struct bel_item item = bel__item_at(&at);
    *place = at.key;
    *out = bel__item_ready((at.key.words[0] & 1) != 0, &item);
    return true;
}
