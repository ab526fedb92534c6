/* SPDX-License-Identifier: MIT */
#include "engine/state/share.h"

#include <stdlib.h>

enum {
    NAME_BYTES_MAX = 1 << 20,
    IDLE_MAX = 256, /* shares that are kept without timers and leases */
};

/* Items */

static uint64_t rank_word(const struct bel_ready *ready)
{
    assert(ready->sequence >> BEL_RANK_SEQUENCE_BITS == 0);
    return (uint64_t)ready->priority << BEL_RANK_SEQUENCE_BITS | ready->sequence;
}

struct bel_item bel__item_of(const struct bel_picker *picker, bool is_job,
                             const struct bel_ready *ready)
{
    assert(ready->time >> 63 == 0 && ready->lane <= 1);
    struct bel_item item = {.rank = rank_word(ready), .value = ready->time << 1 | ready->lane};
    item.order = is_job ? bel__score_word(ready->score) : bel__item_due(picker, item.value);
    return item;
}

struct bel_ready bel__item_ready(bool is_job, const struct bel_item *item)
{
    return (struct bel_ready){
        .time = item->value >> 1,
        .lane = (uint8_t)(item->value & 1),
        .priority = (uint8_t)(item->rank >> BEL_RANK_SEQUENCE_BITS),
        .sequence = item->rank & ((UINT64_C(1) << BEL_RANK_SEQUENCE_BITS) - 1),
        .score = is_job ? bel__score_of(item->order) : BEL_SCORE_PLAIN,
    };
}

/* Trees */

/* Draws the weight of a node. The secret keeps users from choosing the shape of a tree. */
static uint32_t draw_weight(const struct bel_picker *picker, uint64_t number)
{
    uint64_t word;
    memcpy(&word, picker->secret.bytes, sizeof word);
    word += number * UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(word >> 32);
}

static int compare_gates(const struct bel_treap_node *a, const struct bel_treap_node *b)
{
    return bel__words_compare((uintptr_t)BEL_CONTAINER_OF_CONST(a, struct bel_line, by_gate)->gate,
                              (uintptr_t)BEL_CONTAINER_OF_CONST(b, struct bel_line, by_gate)->gate);
}

static bool is_gate_before(const struct bel_treap_node *node, const void *gate)
{
    return (uintptr_t)BEL_CONTAINER_OF_CONST(node, struct bel_line, by_gate)->gate <
           (uintptr_t)gate;
}

int bel__lines_compare(const struct bel_treap_node *a, const struct bel_treap_node *b)
{
    return bel__items_compare(&BEL_CONTAINER_OF_CONST(a, struct bel_line, by_head)->queue.head,
                              &BEL_CONTAINER_OF_CONST(b, struct bel_line, by_head)->queue.head);
}

static int compare_fronts(const struct bel_seat *a, const struct bel_seat *b)
{
    int order = bel__words_compare(a->due, b->due);
    return order != 0 ? order : bel__words_compare(a->rank, b->rank);
}

int bel__seats_compare_ties(const struct bel_seat *a, const struct bel_seat *b)
{
    int order = bel__words_compare(a->served, b->served);
    return order != 0 ? order : compare_fronts(a, b);
}

int bel__seats_compare(const struct bel_treap_node *one, const struct bel_treap_node *other)
{
    const struct bel_seat *a = BEL_CONTAINER_OF_CONST(one, struct bel_seat, node),
                          *b = BEL_CONTAINER_OF_CONST(other, struct bel_seat, node);
    int order = bel__words_compare(a->leased, b->leased);
    if (order == 0) order = bel__words_compare(a->score, b->score);
    return order != 0 ? order : bel__seats_compare_ties(a, b);
}

static bool has_fewer(const struct bel_treap_node *node, const void *leased)
{
    return BEL_CONTAINER_OF_CONST(node, struct bel_seat, node)->leased < *(const uint32_t *)leased;
}

const struct bel_seat *bel__seat_from(const struct bel_crowd *crowd, uint32_t leased)
{
    struct bel_treap_node *node = bel__treap_seek(crowd->seats, has_fewer, &leased);
    return node == NULL ? NULL : BEL_CONTAINER_OF(node, struct bel_seat, node);
}

/* Lines and seats */

/* Returns the first line of a share that is not parked and has a resource, or NULL. */
struct bel_line *bel__share_first_open(const struct bel_share *share)
{
    struct bel_treap_node *node = bel__treap_first(share->open);
    return node == NULL ? NULL : BEL_CONTAINER_OF(node, struct bel_line, by_head);
}

const struct bel_ready_queue *bel__share_front(const struct bel_share *share,
                                               struct bel_line **out_line)
{
    struct bel_line *line = share->open == NULL ? NULL : bel__share_first_open(share);
    *out_line = line;
    if (share->own.count == 0) return line == NULL ? NULL : &line->queue;
    if (line != NULL && bel__items_compare(&line->queue.head, &share->own.head) < 0) {
        return &line->queue;
    }
    *out_line = NULL;
    return &share->own;
}

void bel__seat_fill(struct bel_picker *picker, struct bel_share *share)
{
    struct bel_seat *seat = share->seat;
    struct bel_line *line;
    if (share->is_held) return;
    const struct bel_ready_queue *front = bel__share_front(share, &line);
    if (front == NULL) return;
    assert(!seat->is_seated && picker->crowd != NULL);
    seat->score = share->is_job ? front->head.order : bel__score_word(BEL_SCORE_PLAIN);
    seat->due = bel__item_due(picker, front->head.value);
    seat->rank = front->head.rank;
    seat->served = share->served;
    seat->leased = share->leased;
    seat->is_seated = true;
    bel__treap_put(&picker->crowd->seats, &seat->node, bel__seats_compare);
}

void bel__seat_empty(struct bel_picker *picker, struct bel_share *share)
{
    struct bel_seat *seat = share->seat;
    if (!seat->is_seated) return;
    bel__treap_remove(&picker->crowd->seats, &seat->node, bel__seats_compare);
    seat->is_seated = false;
}

static struct bel_line *find_line(const struct bel_share *share, const struct bel_gate *gate)
{
    struct bel_treap_node *node = bel__treap_seek(share->lines, is_gate_before, gate);
    if (node == NULL) return NULL;
    struct bel_line *line = BEL_CONTAINER_OF(node, struct bel_line, by_gate);
    return line->gate == gate ? line : NULL;
}

static struct bel_line *make_line(struct bel_picker *picker, struct bel_share *share,
                                  struct bel_gate *gate)
{
    struct bel_line *line = malloc(sizeof *line);
    if (line == NULL) return NULL;
    uint32_t weight = draw_weight(picker, picker->next_number);
    *line = (struct bel_line){
        .queue.number = picker->next_number++ << 1 | share->is_job,
        .picker = picker,
        .share = share,
        .gate = gate,
        .by_gate.weight = weight,
        .by_head.weight = weight,
    };
    bel__treap_put(&share->lines, &line->by_gate, compare_gates);
    gate->lines++;
    return line;
}

void bel__line_free(struct bel_line *line)
{
    assert(line->queue.count == 0 && line->gate->lines > 0);
    if (line->parked_at != NULL) bel__link_remove(&line->parked);
    bel__treap_remove(&line->share->lines, &line->by_gate, compare_gates);
    line->gate->lines--;
    free(line);
}

struct bel_ready_queue *bel__share_queue(struct bel_share *share, const struct bel_gate *gate,
                                         struct bel_line **out_line)
{
    *out_line = NULL;
    if (gate == NULL) return &share->own;
    *out_line = find_line(share, gate);
    return *out_line == NULL ? NULL : &(*out_line)->queue;
}

void bel__line_out(struct bel_line *line)
{
    if (line == NULL || line->parked_at != NULL || line->queue.count == 0) return;
    bel__treap_remove(&line->share->open, &line->by_head, bel__lines_compare);
}

void bel__line_in(struct bel_line *line)
{
    if (line == NULL || line->parked_at != NULL || line->queue.count == 0) return;
    bel__treap_put(&line->share->open, &line->by_head, bel__lines_compare);
}

/* Counts timers of a gate, for those above it too. */
static void count_at(struct bel_gate *gate, uint64_t delta)
{
    for (; gate != NULL; gate = gate->above) {
        gate->timers += delta;
    }
}

void bel__line_count(struct bel_ready_queue *queue, struct bel_line *line, bool is_added)
{
    uint64_t delta = is_added ? 1 : UINT64_MAX;
    queue->count += delta;
    if (line == NULL) return;
    count_at(line->gate, delta);
    if (line->parked_at == NULL) return;
    line->picker->parked += delta;
    line->parked_at->parked_timers += delta;
}

int bel__line_take(struct bel_picker *picker, struct bel_share *share, struct bel_gate *gate,
                   struct bel_line **out)
{
    *out = NULL;
    if (gate == NULL) return 0;
    *out = find_line(share, gate);
    if (*out == NULL) *out = make_line(picker, share, gate);
    return *out == NULL ? BEL_ENOMEM : 0;
}

/* Shares */

static bool is_named(const struct bel_share *share, const struct bel_standing *standing)
{
    return share->is_job == standing->is_job && share->name_bytes == standing->share.bytes &&
           (share->name_bytes == 0 ||
            memcmp(share->name, standing->share.data, share->name_bytes) == 0);
}

struct bel_share *bel__share_find(const struct bel_picker *picker,
                                  const struct bel_standing *standing)
{
    if (picker->crowd == NULL) {
        struct bel_share *only = picker->only;
        return only != NULL && is_named(only, standing) ? only : NULL;
    }
    struct bel_crowd *crowd = picker->crowd;
    if (crowd->last_found != NULL && is_named(crowd->last_found, standing)) {
        return crowd->last_found;
    }
    const uint64_t *value = bel__map_find(&crowd->shares[standing->is_job], standing->share.data,
                                          standing->share.bytes);
    if (value != NULL) crowd->last_found = bel__share_of(*value);
    return value == NULL ? NULL : crowd->last_found;
}

void bel__crowd_free(struct bel_crowd *crowd)
{
    bel__map_finish(&crowd->shares[0]);
    bel__map_finish(&crowd->shares[1]);
    free(crowd);
}

void bel__picker_unfold(struct bel_picker *picker)
{
    if (!bel__picker_is_single(picker)) return;
    const struct bel_ready_queue *own = &picker->only->own;
    struct bel_key key = bel__item_key(own, &own->head);
    bel__sorted_put(&picker->ready, &key, own->head.value, NULL);
    assert(!bel__picker_is_single(picker) && bel__sorted_count(&picker->ready) == 1);
}

/* Adds a share to a crowd, with a seat. */
static int join(struct bel_picker *picker, struct bel_crowd *crowd, struct bel_share *share)
{
    struct bel_seat *seat = malloc(sizeof *seat);
    if (seat == NULL) return BEL_ENOMEM;
    int err = bel__map_put(&crowd->shares[share->is_job], share->name, share->name_bytes,
                           (uintptr_t)share);
    if (err) {
        free(seat);
        return err;
    }
    *seat = (struct bel_seat){.share = share,
                              .node.weight = draw_weight(picker, share->own.number >> 1)};
    share->seat = seat;
    return 0;
}

/* Changes from a single share to a crowd. */
static int make_crowd(struct bel_picker *picker)
{
    struct bel_share *only = picker->only;
    assert(only != NULL && picker->crowd == NULL);
    int err = bel__sorted_reserve(&picker->ready, 1);
    if (err) return err;
    struct bel_crowd *crowd = calloc(1, sizeof *crowd);
    if (crowd == NULL) return BEL_ENOMEM;
    bel__map_init(&crowd->shares[0], picker->secret);
    bel__map_init(&crowd->shares[1], picker->secret);
    bel__list_init(&crowd->idle);
    err = join(picker, crowd, only);
    if (err) {
        bel__crowd_free(crowd);
        return err;
    }
    bel__picker_unfold(picker);
    picker->crowd = crowd;
    picker->only = NULL;
    bel__share_sit_down(picker, only);
    if (bel__share_is_empty(only) && only->leased == 0 && !only->is_held) {
        bel__list_append(&crowd->idle, &only->seat->idle);
        crowd->idle_count++;
    }
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

static int make_share(struct bel_picker *picker, const struct bel_standing *standing,
                      struct bel_share **out)
{
    struct bel_view name = standing->share;
    assert(name.bytes <= NAME_BYTES_MAX);
    if (picker->only != NULL) {
        int err = make_crowd(picker);
        if (err) return err;
    }
    struct bel_share *share = malloc(sizeof *share + name.bytes);
    if (share == NULL) return BEL_ENOMEM;
    *share = (struct bel_share){
        .own.number = picker->next_number << 1 | standing->is_job,
        .name_bytes = (uint32_t)name.bytes & ((1U << 30) - 1),
        .is_job = standing->is_job,
    };
    if (name.bytes > 0) memcpy(share->name, name.data, name.bytes);
    assert(picker->only == NULL);
    if (picker->crowd == NULL) {
        picker->only = share;
    } else {
        int err = join(picker, picker->crowd, share);
        if (err) {
            free(share);
            return err;
        }
    }
    picker->next_number++;
    *out = share;
    return 0;
}

int bel__share_take(struct bel_picker *picker, const struct bel_standing *standing,
                    struct bel_share **out)
{
    struct bel_share *share = bel__share_find(picker, standing);
    if (share == NULL) return make_share(picker, standing, out);
    if (share->seat != NULL && bel__link_is_linked(&share->seat->idle)) {
        bel__link_remove(&share->seat->idle);
        picker->crowd->idle_count--;
    }
    *out = share;
    return 0;
}

/* Frees a share of a crowd, and the crowd with its last share. */
static void free_share(struct bel_picker *picker, struct bel_share *share)
{
    struct bel_crowd *crowd = picker->crowd;
    assert(picker->only == NULL && !share->seat->is_seated);
    if (crowd->last_found == share) crowd->last_found = NULL;
    bel__map_remove(&crowd->shares[share->is_job], share->name, share->name_bytes, NULL);
    free(share->seat);
    free(share);
    if (bel__map_count(&crowd->shares[0]) + bel__map_count(&crowd->shares[1]) > 0) return;
    assert(crowd->idle_count == 0);
    bel__crowd_free(crowd);
    picker->crowd = NULL;
}

void bel__share_leave(struct bel_picker *picker, struct bel_share *share)
{
    struct bel_crowd *crowd = picker->crowd;
    if (!bel__share_is_empty(share) || share->leased > 0 || share->is_held) return;
    if (crowd == NULL) {
        assert(picker->only == share);
        if (bel__share_had_turn(share)) return;
        picker->only = NULL;
        free(share);
        return;
    }
    if (!bel__share_had_turn(share)) {
        free_share(picker, share);
        return;
    }
    if (bel__link_is_linked(&share->seat->idle)) return;
    bel__list_append(&crowd->idle, &share->seat->idle);
    if (++crowd->idle_count <= IDLE_MAX) return;
    struct bel_link *oldest = bel__list_take_first(&crowd->idle);
    assert(oldest != NULL);
    if (oldest == NULL) return;
    crowd->idle_count--;
    free_share(picker, BEL_CONTAINER_OF(oldest, struct bel_seat, idle)->share);
}

void bel__share_empty(struct bel_picker *picker, struct bel_share *share)
{
    bel__share_stand_up(picker, share);
    share->own.count = 0;
    share->open = NULL;
    while (share->lines != NULL) {
        struct bel_line *line = BEL_CONTAINER_OF(share->lines, struct bel_line, by_gate);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the line that was freed has left the tree */
        if (line->parked_at != NULL) {
            picker->parked -= line->queue.count;
            line->parked_at->parked_timers -= line->queue.count;
        }
        count_at(line->gate, 0 - line->queue.count);
        line->queue.count = 0;
        bel__line_free(line);
    }
}
