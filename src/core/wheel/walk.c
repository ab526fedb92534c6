/* SPDX-License-Identifier: MIT */

/*
 * The slots hold the definitive state, so a walk reads all of them and sorts the armed ones. A walk
 * does not change the wheel. Nothing else in the wheel orders timers with a plain sort.
 */
#include "belfry/wheel.h"

#include "core/wheel/wheel.h"

#include <stdlib.h>

struct bel_wheel_walk {
    const struct bel_wheel *wheel;
    size_t next, count;
    struct key keys[];
};

static int compare(const void *a, const void *b)
{
    return key_before(a, b) ? -1 : 1; /* no two keys are equal */
}

int bel_wheel_walk_open(const struct bel_wheel *wheel, struct bel_wheel_walk **out)
{
    size_t armed = wheel->slots.armed;
    struct bel_wheel_walk *walk = malloc(sizeof *walk + armed * sizeof walk->keys[0]);
    if (walk == NULL) return BEL_ENOMEM;
    walk->wheel = wheel;
    walk->next = walk->count = 0;
    for (uint32_t i = 0; i < wheel->slots.slab.used; i++) {
        const struct slot *slot = slot_at(&wheel->slots, i);
        if (!is_armed(slot)) continue;
        walk->keys[walk->count++] = (struct key){slot->due, slot->order, i, 0};
    }
    assert(walk->count == armed);
    qsort(walk->keys, walk->count, sizeof walk->keys[0], compare);
    *out = walk;
    return 0;
}

bool bel_wheel_walk_next(struct bel_wheel_walk *walk, struct bel_wheel_timer *out)
{
    if (walk->next == walk->count) return false;
    uint32_t index = walk->keys[walk->next++].slot;
    const struct slot *slot = slot_at(&walk->wheel->slots, index);
    return bel_wheel_find(walk->wheel, handle_of(&walk->wheel->slots, slot, index), out);
}

void bel_wheel_walk_close(struct bel_wheel_walk *walk)
{
    free(walk);
}
