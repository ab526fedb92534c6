/* SPDX-License-Identifier: MIT */

/* The memory of a picker, and its invariants. */
#include "engine/state/share.h"

static size_t line_bytes(const struct bel_treap_node *node)
{
    size_t bytes = 0;
    for (; node != NULL; node = node->left) {
        bytes += sizeof(struct bel_line) + line_bytes(node->right);
    }
    return bytes;
}

static size_t share_bytes(const struct bel_share *share)
{
    size_t bytes = sizeof *share + share->name_bytes + line_bytes(share->lines);
    return share->seat == NULL ? bytes : bytes + sizeof *share->seat;
}

size_t bel__picker_bytes(const struct bel_picker *picker)
{
    size_t bytes = bel__sorted_bytes(&picker->ready);
    if (picker->only != NULL) bytes += share_bytes(picker->only);
    if (picker->crowd == NULL) return bytes;
    bytes += sizeof *picker->crowd;
    for (int kind = 0; kind < 2; kind++) {
        const struct bel_map *shares = &picker->crowd->shares[kind];
        bytes += bel__map_bytes(shares);
        for (uint32_t i = 0; i < bel__map_count(shares); i++) {
            bytes += share_bytes(bel__share_of(bel__map_at(shares, i)->value));
        }
    }
    return bytes;
}

/* What was counted in the shares of a picker. */
struct census {
    uint64_t ready, leased, parked, seated, idle;
};

/* Returns whether a queue's count is right and its head is its first timer. */
static bool is_queue_valid(const struct bel_picker *picker, const struct bel_ready_queue *queue)
{
    struct bel_sorted_place place;
    uint64_t count = 0;
    if (queue->number < 2 || queue->number >> 1 >= picker->next_number) return false;
    if (bel__picker_is_single(picker)) return queue->count == (queue == &picker->only->own);
    bool is_there =
        bel__sorted_seek(&picker->ready, &(struct bel_key){{queue->number, 0, 0}}, &place);
    while (is_there && place.key.words[0] == queue->number) {
        struct bel_item item = bel__item_at(&place);
        if (count == 0 &&
            (bel__items_compare(&item, &queue->head) != 0 || item.value != queue->head.value)) {
            return false;
        }
        count++;
        is_there = bel__sorted_next(&picker->ready, &place);
    }
    return count == queue->count;
}

/* NOLINTNEXTLINE(misc-no-recursion): for tests */
static bool are_lines_valid(const struct bel_picker *picker, const struct bel_share *share,
                            const struct bel_treap_node *node, struct census *census,
                            uint64_t *open)
{
    if (node == NULL) return true;
    const struct bel_line *line = BEL_CONTAINER_OF_CONST(node, struct bel_line, by_gate);
    if (line->share != share || line->picker != picker || line->queue.count == 0) return false;
    if ((line->queue.number & 1) != share->is_job) return false;
    if ((line->parked_at != NULL) != bel__link_is_linked(&line->parked)) return false;
    if (!is_queue_valid(picker, &line->queue)) return false;
    census->ready += line->queue.count;
    if (line->parked_at != NULL) {
        census->parked += line->queue.count;
    } else {
        ++*open;
    }
    return are_lines_valid(picker, share, node->left, census, open) &&
           are_lines_valid(picker, share, node->right, census, open);
}

/* Returns whether a seat is sorted by what its share has now. */
static bool is_seat_valid(const struct bel_picker *picker, const struct bel_share *share)
{
    const struct bel_seat *seat = share->seat;
    struct bel_line *line;
    const struct bel_ready_queue *front = bel__share_front(share, &line);
    if (seat->share != share) return false;
    if (seat->is_seated != (front != NULL && !share->is_held)) return false;
    if (!seat->is_seated) return true;
    uint64_t score = share->is_job ? front->head.order : bel__score_word(BEL_SCORE_PLAIN);
    return seat->leased == share->leased && seat->served == share->served && seat->score == score &&
           seat->due == bel__item_due(picker, front->head.value) && seat->rank == front->head.rank;
}

static bool is_share_valid(const struct bel_picker *picker, const struct bel_share *share,
                           struct census *census)
{
    uint64_t open = 0, heads = 0;
    bool is_idle = bel__share_is_empty(share) && share->leased == 0 && !share->is_held;
    if (is_idle && !bel__share_had_turn(share)) return false;
    if (share->served > picker->served || (share->own.number & 1) != share->is_job) return false;
    if (!is_queue_valid(picker, &share->own)) return false;
    if (!are_lines_valid(picker, share, share->lines, census, &open)) return false;
    if (!bel__treap_valid(share->open, bel__lines_compare, &heads) || heads != open) return false;
    census->ready += share->own.count;
    census->leased += share->leased;
    if (share->seat == NULL) return picker->only == share;
    census->seated += share->seat->is_seated;
    census->idle += is_idle;
    if (is_idle != bel__link_is_linked(&share->seat->idle)) return false;
    return is_seat_valid(picker, share);
}

/* Returns whether the share that was found last, if there is one, still exists. */
static bool is_last_found_valid(const struct bel_crowd *crowd)
{
    for (int kind = 0; kind < 2 && crowd->last_found != NULL; kind++) {
        for (uint32_t i = 0; i < bel__map_count(&crowd->shares[kind]); i++) {
            if (bel__share_of(bel__map_at(&crowd->shares[kind], i)->value) == crowd->last_found) {
                return true;
            }
        }
    }
    return crowd->last_found == NULL;
}

static bool is_crowd_valid(const struct bel_picker *picker, struct census *census)
{
    const struct bel_crowd *crowd = picker->crowd;
    uint64_t seats;
    for (int kind = 0; kind < 2; kind++) {
        const struct bel_map *shares = &crowd->shares[kind];
        if (!bel__map_valid(shares)) return false;
        for (uint32_t i = 0; i < bel__map_count(shares); i++) {
            const struct bel_share *share = bel__share_of(bel__map_at(shares, i)->value);
            if ((int)share->is_job != kind || share->seat == NULL) return false;
            if (!is_share_valid(picker, share, census)) return false;
        }
    }
    if (!is_last_found_valid(crowd)) return false;
    if (!bel__treap_valid(crowd->seats, bel__seats_compare, &seats)) return false;
    return seats == census->seated && crowd->idle_count == census->idle;
}

bool bel__picker_valid(const struct bel_picker *picker)
{
    struct census census = {0};
    if (!bel__sorted_valid(&picker->ready)) return false;
    if (picker->crowd != NULL) {
        if (picker->only != NULL || !is_crowd_valid(picker, &census)) return false;
    } else if (picker->only != NULL) {
        if (!is_share_valid(picker, picker->only, &census)) return false;
    }
    return census.ready == bel__picker_count(picker) && census.leased == picker->leased &&
           census.parked == picker->parked;
}
