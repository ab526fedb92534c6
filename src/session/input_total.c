/* SPDX-License-Identifier: MIT */

/*
 * The order in which requests became large is the order in which they go on:
 *
 *     receiving   a  b  c  d  e  f        above a quarter of the limit, with two places:
 *                 '--'                    a and b are read
 *                       '--------'        c to f are blocked, until a or b is complete or dropped,
 *                                         but those of them that are medium are read
 *
 * Below a quarter all are read. There are as many places as there is memory for what the oldest
 * have announced: a place is a reservation. Reservations begin that early because a request that
 * has no place keeps what it has: the less the crowd has before it waits, the more of it has places
 * at a time. The memory for all:
 *
 *     |-- all read --|------ places ------|-- medium --|-- the largest request --|
 *     0             1/4                 large        medium                    limit
 *
 * The oldest always goes on. Above the limit, which needs requests that run or requests of other
 * connections that wait for something else, the first alone is read, and only if none runs: those
 * that run end by themselves and make room. An announcement may be too low, as that of a request
 * with several long arguments: it counts as one read at least, so places end where the memory ends.
 */
#include "session/input_total.h"

#include "core/units.h"

#include <assert.h>

enum {
    PLACES_MAX = 64,    /* requests that go on in a crowd */
    RESUMED_MAX = 16,   /* at once, so that they do not all find it full again */
    DROPPED_MAX = 1024, /* in a tick */
};

static struct bel_input_share *share_of(struct bel_link *link)
{
    return BEL_CONTAINER_OF(link, struct bel_input_share, receiving);
}

/* Returns whether large requests need a place. */
static bool is_crowded(const struct bel_input_total *total)
{
    return total->bytes > total->bytes_max / 4;
}

/* Returns up to which sum medium requests go on. */
static size_t medium_end(const struct bel_input_total *total)
{
    size_t least = total->bytes_max / 4 * 3, largest = total->request_bytes_max;
    size_t end = largest < total->bytes_max ? total->bytes_max - largest : 0;
    return end > least ? end : least;
}

/* Returns up to which sum requests have places. */
static size_t large_end(const struct bel_input_total *total)
{
    return medium_end(total) - total->bytes_max / 8;
}

/* Returns whether those that run make room without the help of a client. */
static bool must_wait(const struct bel_input_total *total)
{
    return total->bytes > total->bytes_max && total->running_bytes > 0;
}

/* Returns whether medium requests go on. */
static bool has_medium_room(const struct bel_input_total *total)
{
    return total->bytes <= medium_end(total);
}

/* Returns up to which size, with what is missing, a request is medium. */
static size_t medium_max(const struct bel_input_share *share)
{
    size_t max = share->total->bytes_max / 32;
    if (max > BEL_INPUT_MEDIUM_BYTES) max = BEL_INPUT_MEDIUM_BYTES;
    bool is_unknown = share->missing == SIZE_MAX || max < BEL_INPUT_UNKNOWN_BYTES;
    return is_unknown ? BEL_INPUT_UNKNOWN_BYTES : max;
}

static bool is_medium(const struct bel_input_share *share)
{
    size_t missing = share->missing == SIZE_MAX ? 0 : share->missing;
    size_t max = medium_max(share);
    return share->bytes < max && missing <= max - share->bytes;
}

/* Returns how much memory a request will need in addition. */
static size_t missing_of(const struct bel_input_share *share)
{
    size_t has = share->bytes - share->running_bytes, max = share->total->request_bytes_max;
    size_t most = has < max ? max - has : 0;
    if (share->missing >= most) return most;
    size_t missing = share->missing + share->missing / 4; /* as a buffer grows */
    if (missing < BEL_INPUT_WINDOW_BYTES) missing = BEL_INPUT_WINDOW_BYTES;
    return missing < most ? missing : most;
}

/* The requests, from the oldest on, that may go on in a crowd. */
struct places {
    struct bel_link *link; /* the last one; NULL before the first */
    size_t room;           /* for what is missing of the next */
    unsigned count;
};

static struct places places_of(const struct bel_input_total *total)
{
    size_t max = large_end(total);
    return (struct places){.room = total->bytes < max ? max - total->bytes : 0};
}

/* Returns the next of them; or NULL. */
static struct bel_input_share *next_place(const struct bel_input_total *total,
                                          struct places *places)
{
    struct bel_link *link = places->link == NULL ? bel__list_first(&total->receiving)
                                                 : bel__list_next(&total->receiving, places->link);
    if (link == NULL || places->count == PLACES_MAX) return NULL;
    struct bel_input_share *share = share_of(link);
    size_t missing = missing_of(share);
    if (places->count > 0 && missing > places->room) return NULL;
    places->room -= missing < places->room ? missing : places->room;
    places->link = link;
    places->count++;
    return share;
}

static bool may_go_on(const struct bel_input_share *share)
{
    const struct bel_input_total *total = share->total;
    if (!is_crowded(total)) return true;
    if (must_wait(total) || !bel__link_is_linked(&share->receiving)) return false;
    struct places places = places_of(total);
    const struct bel_input_share *other;
    while ((other = next_place(total, &places)) != NULL) {
        if (other == share) return true;
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
    bel__list_init(&total->blocked_large);
}

/* Begins a window. */
static void mark(struct bel_input_share *share, struct bel_mono now)
{
    share->marked = share->progress;
    share->moved = now;
    share->is_spared = false;
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
    share->missing = state->missing;
    share->progress = state->progress;
    if (share->progress - share->marked >= BEL_INPUT_WINDOW_BYTES) mark(share, now);
    bool was_receiving = bel__link_is_linked(&share->receiving);
    if (is_receiving && !was_receiving) {
        mark(share, now);
        share->crowded_ticks = share->still_ticks = 0;
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
    size_t max = BEL_INPUT_SMALL_BYTES;
    if (is_medium(share) && has_medium_room(share->total)) max = medium_max(share);
    return bytes < max ? max - bytes : 0;
}

void bel__input_share_block(struct bel_input_share *share)
{
    struct bel_input_total *total = share->total;
    if (total == NULL || bel__link_is_linked(&share->blocked)) return;
    bel__list_append(is_medium(share) ? &total->blocked : &total->blocked_large, &share->blocked);
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
    struct bel_link *link = has_medium_room(total) ? bel__list_first(&total->blocked) : NULL;
    if (link == NULL && !is_crowded(total)) link = bel__list_first(&total->blocked_large);
    if (link != NULL) return BEL_CONTAINER_OF(link, struct bel_input_share, blocked);
    if (!is_crowded(total) || must_wait(total)) return NULL;
    struct places places = places_of(total);
    struct bel_input_share *share;
    while ((share = next_place(total, &places)) != NULL) {
        if (bel__link_is_linked(&share->blocked)) return share;
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

static bool has_blocked(const struct bel_input_total *total)
{
    return !bel__list_is_empty(&total->blocked) || !bel__list_is_empty(&total->blocked_large);
}

/* Returns whether a share stands still while others wait: no byte has come in some ticks. */
static bool is_still(struct bel_input_share *share)
{
    bool has_moved = share->progress != share->seen || !has_blocked(share->total);
    share->seen = share->progress;
    share->still_ticks = has_moved ? 0 : share->still_ticks + 1;
    return share->still_ticks >= BEL_INPUT_STILL_TICKS && !share->owner->has_input(share);
}

/* Returns why a share must be dropped; or NULL. A share that is not read, and whose client has sent
 * bytes, does not stand still. One that is read gets a tick more if bytes wait: perhaps it was the
 * server that stood still. */
static const char *judge(struct bel_input_share *share, struct bel_mono now, bool was_crowded)
{
    unsigned ms = was_crowded ? BEL_INPUT_STALL_SOON_MS : BEL_INPUT_STALL_MS;
    bool is_blocked = bel__link_is_linked(&share->blocked);
    if (is_blocked && share->owner->has_input(share)) {
        mark(share, now);
        share->still_ticks = 0;
        return NULL;
    }
    if (!is_blocked && is_still(share)) {
        return "the request is incomplete, and nothing of it has arrived in 2 s while others wait";
    }
    if (was_crowded && ++share->crowded_ticks > BEL_INPUT_CROWDED_TICKS_MAX) {
        return "the request is incomplete after 60 s, and others wait for its memory";
    }
    if (now.ns - share->moved.ns < (uint64_t)ms * NS_PER_MS) return NULL;
    if (!is_blocked && !share->is_spared && share->owner->has_input(share)) {
        share->is_spared = true;
        return NULL;
    }
    return was_crowded
               ? "the request is incomplete, and less than 64 KiB of it have arrived in 5 s"
               : "the request is incomplete, and less than 64 KiB of it have arrived in 30 s";
}

unsigned bel__input_total_tick(struct bel_input_total *total, struct bel_mono now)
{
    bool was_crowded =
        total->bytes > total->bytes_max / 2 || (is_crowded(total) && has_blocked(total));
    unsigned dropped = 0;
    struct bel_link *next, *link = bel__list_first(&total->receiving);
    for (; link != NULL && dropped < DROPPED_MAX; link = next) {
        struct bel_input_share *share = share_of(link);
        next = bel__list_next(&total->receiving, link);
        const char *why = judge(share, now, was_crowded);
        if (why == NULL) continue;
        share->owner->drop(share, why);
        assert(share->bytes == 0 || !bel__link_is_linked(&share->receiving));
        dropped++;
    }
    return dropped;
}
