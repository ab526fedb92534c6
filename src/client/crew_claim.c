/* SPDX-License-Identifier: MIT */

/* The claimer: waits for a free hand, claims for all free hands, and gives each a delivery. */
#include "client/crew.h"

#include "client/delivery.h"
#include "core/parse.h"
#include "core/view.h"

#include <assert.h>
#include <string.h>

enum {
    WAIT_MS = 10000, /* WAIT of a CLAIM; then the claimer sends the next one */
    TIMEOUT_MS = 30000,
};

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

static struct bel_view print(char text[BEL_PRINT_BYTES_MAX], uint64_t number)
{
    return (struct bel_view){text, bel__print_u64(text, number)};
}

static int claim(struct bel_crew *crew, struct bel_client *client, unsigned hands,
                 const struct bel_value **out)
{
    struct bel_view *args = crew->claim;
    char count[BEL_PRINT_BYTES_MAX], lease[BEL_PRINT_BYTES_MAX], wait[BEL_PRINT_BYTES_MAX];
    size_t used = 1 + crew->options.topics_count, name_bytes = strlen(crew->options.name);
    args[used++] = BEL_VIEW("COUNT");
    args[used++] = print(count, hands);
    if (crew->options.lease_ms > 0) {
        args[used++] = BEL_VIEW("LEASE");
        args[used++] = print(lease, crew->options.lease_ms);
    }
    args[used++] = BEL_VIEW("WAIT");
    args[used++] = print(wait, WAIT_MS);
    if (name_bytes > 0) {
        args[used++] = BEL_VIEW("WORKER");
        args[used++] = (struct bel_view){crew->options.name, name_bytes};
    }
    uint32_t timeout = crew->options.client.timeout_ms;
    bel_client_set_timeout(client, WAIT_MS + (timeout > 0 ? timeout : TIMEOUT_MS));
    return bel_client_call(client, args, used, out);
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

/* Gives a delivery to a free hand, or marks it for release if the crew is stopping. */
static void give(struct bel_crew *crew, struct bel_delivery *delivery)
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

/* Gives out a delivery of a reply. If memory is out, the delivery is dropped; the timer is due
 * again when its lease has expired. */
static void give_value(struct bel_crew *crew, const struct bel_value *value)
{
    struct bel_delivery *delivery;
    int err = bel__client_delivery(value, &delivery);
    if (err == 0) {
        give(crew, delivery);
    } else {
        bel__crew_trouble(crew, "dropped a delivery: %s", bel_error_text(err));
    }
}

/* Sends one CLAIM and gives out its deliveries. Returns 0, or an error that ends the connection. */
static int claim_once(struct bel_crew *crew, struct bel_client *client, unsigned hands)
{
    const struct bel_value *reply = NULL;
    int err = claim(crew, client, hands, &reply);
    if (err) return err;
    if (reply->type == BEL_VALUE_ERROR) {
        bel__crew_trouble(crew, "%.*s", (int)reply->text.bytes, (const char *)reply->text.data);
        return BEL_EINVAL;
    }
    if (reply->type != BEL_VALUE_LIST || reply->count > hands) return BEL_EINVAL;
    for (size_t i = 0; i < reply->count; i++) {
        give_value(crew, &reply->items[i]);
    }
    return 0;
}

static bool is_stopping(struct bel_crew *crew)
{
    (void)pthread_mutex_lock(&crew->mutex);
    bool stops = crew->stops;
    (void)pthread_mutex_unlock(&crew->mutex);
    return stops;
}

static void claim_while_connected(struct bel_crew *crew, struct bel_client *client,
                                  struct bel_failures *failures)
{
    unsigned hands;
    int err = 0;
    while (err == 0 && (hands = wait_for_hands(crew)) > 0) {
        err = claim_once(crew, client, hands);
        if (err == 0) failures->count = 0;
    }
    if (err != 0 && !is_stopping(crew)) {
        if (err != BEL_EINVAL) {
            bel__crew_trouble(crew, "connection to the server lost (claims): %s; reconnecting",
                              bel_error_text(err));
        }
        failures->count++;
        failures->is_unreached = false;
    }
    bel__crew_disconnect(crew, &crew->claim_fd, client);
}

void *bel__crew_claim(void *arg)
{
    struct bel_crew *crew = arg;
    struct bel_client *client;
    struct bel_failures failures = {0};
    while (wait_for_hands(crew) > 0) {
        if (bel__crew_connect(crew, &failures, &crew->claim_fd, &client) != 0) continue;
        claim_while_connected(crew, client, &failures);
    }
    (void)pthread_mutex_lock(&crew->mutex);
    crew->has_claimed = true;
    (void)pthread_cond_signal(&crew->clerk_wakes);
    (void)pthread_mutex_unlock(&crew->mutex);
    return NULL;
}
