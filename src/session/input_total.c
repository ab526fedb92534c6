/* SPDX-License-Identifier: MIT */

/*
 * The order in which requests became large is the order in which they go on:
 *
 *     receiving   a  b  c  d  e  f        above half of the limit, with places_of() == 2:
 *                 '--'                    a and b are read
 *                       '--------'        c to f are blocked, until a or b is complete or dropped
 *
 * Below half of the limit all are read. Above the limit, which needs requests that run or requests
 * of other connections that wait for something else, the first alone is read, and only if none
 * runs: those that run end by themselves and make room.
 */
#include "session/input_total.h"

#include "core/units.h"

#include <assert.h>

enum {
    PLACES_MAX = 64,  /* requests that go on above half of the limit */
    RESUMED_MAX = 16, /* at once, so that they do not all find it full again */
    DROPPED_MAX = 64, /* in a tick */
};

static struct bel_input_share *share_of(struct bel_link *link)
{
    return BEL_CONTAINER_OF(link, struct bel_input_share, receiving);
}

static bool is_crowded(const struct bel_input_total *total)
{
    return total->bytes > total->bytes_max / 2;
}

/* Returns how many requests, from the oldest on, may go on; 0: all. */
static size_t places_of(const struct bel_input_total *total)
{
    if (!is_crowded(total)) return 0;
    if (total->bytes > total->bytes_max) return 1;
    size_t places = total->bytes_max / 2 / total->request_bytes_max;
    if (places > PLACES_MAX) places = PLACES_MAX;
    return places > 0 ? places : 1;
}

/* Returns whether those that run make room without the help of a client. */
static bool must_wait(const struct bel_input_total *total)
{
    return total->bytes > total->bytes_max && total->running_bytes > 0;
}

static bool may_go_on(const struct bel_input_share *share)
{
    const struct bel_input_total *total = share->total;
    size_t places = places_of(total);
    if (places == 0) return true;
    if (must_wait(total) || !bel__link_is_linked(&share->receiving)) return false;
    struct bel_link *link = bel__list_first(&total->receiving);
    for (size_t i = 0; i < places && link != NULL; i++) {
        if (link == &share->receiving) return true;
        link = bel__list_next(&total->receiving, link);
    }
    return false;
}

void bel__input_total_init(struct bel_input_total *total, size_t bytes_max,
                           size_t request_bytes_max)
{
    assert(bytes_max > 0 && request_bytes_max > 0);
    *total =
        (struct bel_input_total){.bytes_max = bytes_max, .request_bytes_max = request_bytes_max};
    bel__list_init(&total->receiving);
    bel__list_init(&total->blocked);
}

void bel__input_share_init(struct bel_input_share *share, struct bel_input_total *total,
                           const struct bel_input_owner *owner)
{
    *share = (struct bel_input_share){.total = total, .owner = owner};
}

void bel__input_share_set(struct bel_input_share *share, const struct bel_input_state *state,
                          struct bel_mono now)
{
    struct bel_input_total *total = share->total;
    if (total == NULL) return;
    size_t running = state->running_bytes >= BEL_INPUT_SMALL_BYTES ? state->running_bytes : 0;
    size_t bytes = state->bytes >= BEL_INPUT_SMALL_BYTES ? state->bytes : 0;
    bool is_receiving = state->is_receiving && bytes > 0;
    assert(total->bytes >= share->bytes && total->running_bytes >= share->running_bytes);
    total->bytes += bytes + running - share->bytes;
    total->running_bytes += running - share->running_bytes;
    share->bytes = bytes + running;
    share->running_bytes = running;
    if (state->progress != share->progress) share->moved = now;
    share->progress = state->progress;
    bool was_receiving = bel__link_is_linked(&share->receiving);
    if (is_receiving && !was_receiving) {
        share->moved = now;
        bel__list_append(&total->receiving, &share->receiving);
    } else if (!is_receiving && was_receiving) {
        bel__link_remove(&share->receiving);
    }
}

void bel__input_share_clear(struct bel_input_share *share)
{
    bel__input_share_set(share, &(struct bel_input_state){.progress = share->progress},
                         share->moved);
    bel__input_share_unblock(share);
}

size_t bel__input_share_room(const struct bel_input_share *share, size_t bytes)
{
    if (share->total == NULL || may_go_on(share)) return SIZE_MAX;
    return bytes < BEL_INPUT_SMALL_BYTES ? BEL_INPUT_SMALL_BYTES - bytes : 0;
}

void bel__input_share_block(struct bel_input_share *share)
{
    if (share->total == NULL || bel__link_is_linked(&share->blocked)) return;
    bel__list_append(&share->total->blocked, &share->blocked);
}

void bel__input_share_unblock(struct bel_input_share *share)
{
    if (bel__link_is_linked(&share->blocked)) bel__link_remove(&share->blocked);
}

bool bel__input_share_is_blocked(const struct bel_input_share *share)
{
    return bel__link_is_linked(&share->blocked);
}

/* Returns a share that is not read and may go on; or NULL. */
static struct bel_input_share *next_blocked(const struct bel_input_total *total)
{
    size_t places = places_of(total);
    if (places == 0) {
        struct bel_link *link = bel__list_first(&total->blocked);
        return link != NULL ? BEL_CONTAINER_OF(link, struct bel_input_share, blocked) : NULL;
    }
    if (must_wait(total)) return NULL;
    struct bel_link *link = bel__list_first(&total->receiving);
    for (size_t i = 0; i < places && link != NULL; i++) {
        if (bel__link_is_linked(&share_of(link)->blocked)) return share_of(link);
        link = bel__list_next(&total->receiving, link);
    }
    return NULL;
}

bool bel__input_total_can_go_on(const struct bel_input_total *total)
{
    return next_blocked(total) != NULL;
}

void bel__input_total_admit(struct bel_input_total *total)
{
    struct bel_input_share *share;
    for (int i = 0; i < RESUMED_MAX && (share = next_blocked(total)) != NULL; i++) {
        bel__link_remove(&share->blocked);
        share->owner->resume(share);
    }
}

bool bel__input_total_is_watched(const struct bel_input_total *total)
{
    return !bel__list_is_empty(&total->receiving);
}

/* A share that is not read, and whose client has sent bytes, does not stand still. */
static void excuse_blocked(struct bel_input_total *total, struct bel_mono now)
{
    struct bel_link *link = bel__list_first(&total->receiving);
    for (; link != NULL; link = bel__list_next(&total->receiving, link)) {
        struct bel_input_share *share = share_of(link);
        bool is_blocked = bel__link_is_linked(&share->blocked);
        if (is_blocked && share->owner->has_input(share)) share->moved = now;
    }
}

/* Returns the largest share that has stood still for `ms`; or NULL. */
static struct bel_input_share *find_stalled(struct bel_input_total *total, struct bel_mono now,
                                            unsigned ms)
{
    struct bel_input_share *found = NULL;
    struct bel_link *link = bel__list_first(&total->receiving);
    for (; link != NULL; link = bel__list_next(&total->receiving, link)) {
        struct bel_input_share *share = share_of(link);
        if (now.ns - share->moved.ns < (uint64_t)ms * NS_PER_MS) continue;
        if (found == NULL || share->bytes > found->bytes) found = share;
    }
    return found;
}

unsigned bel__input_total_tick(struct bel_input_total *total, struct bel_mono now)
{
    unsigned dropped = 0;
    excuse_blocked(total, now);
    for (; dropped < DROPPED_MAX; dropped++) {
        unsigned ms = is_crowded(total) ? BEL_INPUT_STALL_SOON_MS : BEL_INPUT_STALL_MS;
        struct bel_input_share *share = find_stalled(total, now, ms);
        if (share == NULL) break;
        share->owner->drop(share, ms);
        assert(share->bytes == 0 || !bel__link_is_linked(&share->receiving));
    }
    return dropped;
}
