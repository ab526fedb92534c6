/* SPDX-License-Identifier: MIT */

/* The claimer: waits for a free hand, claims for all free hands, and gives each a delivery. */
#include "client/crew.h"

#include "core/view.h"

#include <assert.h>

/* Waits until a hand is free. Returns the number of free hands; 0 if the crew is stopping. */
static unsigned wait_for_hands(struct bel_crew *crew)
{
    unsigned free_hands = 0;
    (void)pthread_mutex_lock(&crew->mutex);
    while (!crew->stops) {
        for (unsigned i = 0; i < crew->options.hands; i++) {
            free_hands += crew->slots[i].state == BEL_SLOT_IDLE;
        }
        if (free_hands > 0) break;
        bel__crew_wait(crew, &crew->claimer_wakes, (struct bel_mono){BEL_NEVER});
    }
    if (crew->stops) free_hands = 0;
    (void)pthread_mutex_unlock(&crew->mutex);
    return free_hands;
}

/* Marks the work on a timer that was delivered again as lost: its lease has expired. The mutex is
 * held. */
static void lose_earlier(struct bel_crew *crew, const struct bel_slot *again)
{
    for (unsigned i = 0; i < crew->options.hands; i++) {
        struct bel_slot *slot = &crew->slots[i];
        bool is_busy = slot->state != BEL_SLOT_IDLE && slot->state != BEL_SLOT_TOLD;
        if (slot == again || !is_busy) continue;
        bool is_same = bel__view_equal(slot->errand.id, again->errand.id) &&
                       bel__view_equal(slot->errand.topic, again->errand.topic);
        if (is_same) slot->is_lost = true;
    }
}

void bel__crew_give(struct bel_crew *crew, struct bel_delivery *delivery)
{
    struct bel_slot *slot = crew->slots;
    (void)pthread_mutex_lock(&crew->mutex);
    while (slot->state != BEL_SLOT_IDLE) {
        slot++;
    }
    assert(slot < crew->slots + crew->options.hands);
    bel__slot_fill(slot, delivery);
    slot->is_lost = false;
    lose_earlier(crew, slot);
    slot->is_returned = crew->stops;
    bel__slot_leased(slot, bel__crew_now(crew));
    slot->state = BEL_SLOT_GIVEN;
    if (crew->stops) {
        slot->report = (struct bel_report){.kind = BEL_REPORT_RELEASED};
        slot->state = BEL_SLOT_WORKED;
    }
    (void)pthread_cond_signal(&slot->changed);
    (void)pthread_cond_signal(&crew->clerk_wakes); /* to know when to extend it */
    (void)pthread_mutex_unlock(&crew->mutex);
}

static bool is_stopping(struct bel_crew *crew)
{
    (void)pthread_mutex_lock(&crew->mutex);
    bool stops = crew->stops;
    (void)pthread_mutex_unlock(&crew->mutex);
    return stops;
}

static void claim_while_connected(struct bel_crew *crew, struct bel_failures *failures)
{
    unsigned hands;
    int err = 0;
    while (err == 0 && (hands = wait_for_hands(crew)) > 0) {
        err = crew->side->claim(crew, crew->claim_link, hands);
        if (err == 0) failures->count = 0;
    }
    if (err != 0 && !is_stopping(crew)) {
        if (err != BEL_EINVAL) {
            bel__crew_trouble(crew, "%s (claims): %s; reconnecting", crew->side->lost,
                              bel_error_text(err));
        }
        failures->count++;
        failures->is_unreached = false;
    }
    bel__crew_disconnect(crew, &crew->claim_link);
}

void *bel__crew_claim(void *arg)
{
    struct bel_crew *crew = arg;
    struct bel_failures failures = {0};
    while (wait_for_hands(crew) > 0) {
        if (bel__crew_connect(crew, &failures, &crew->claim_link) != 0) continue;
        claim_while_connected(crew, &failures);
    }
    (void)pthread_mutex_lock(&crew->mutex);
    crew->has_claimed = true;
    (void)pthread_cond_signal(&crew->clerk_wakes);
    (void)pthread_mutex_unlock(&crew->mutex);
    return NULL;
}
