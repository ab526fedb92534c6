/* SPDX-License-Identifier: MIT */

/* Functions of a slot: the delivery in it, the times of its lease, emptying it. */
#include "client/crew.h"

#include "core/units.h"

#include <assert.h>
#include <stdlib.h>

void bel__slot_fill(struct bel_slot *slot, struct bel_delivery *delivery)
{
    uint64_t lease_ms = delivery->lease_ms;
    bool is_leased = lease_ms > 0 && lease_ms <= UINT32_MAX;
    assert(slot->delivery == NULL);
    slot->delivery = delivery;
    slot->lease_ms = is_leased ? (uint32_t)lease_ms : BEL_CREW_LEASE_MS_DEFAULT;
    slot->errand = (struct bel_errand){.token = delivery->token,
                                       .topic = delivery->topic,
                                       .id = delivery->id,
                                       .payload = delivery->payload,
                                       .correlation = delivery->correlation,
                                       .due = delivery->due,
                                       .attempt = delivery->attempt,
                                       .headers = delivery->headers,
                                       .headers_count = delivery->headers_count,
                                       .results = delivery->results,
                                       .results_count = delivery->results_count};
}

void bel__slot_empty(struct bel_slot *slot)
{
    bel_delivery_destroy(slot->delivery);
    slot->delivery = NULL;
    slot->errand = (struct bel_errand){0};
    free(slot->report.result);
    slot->report = (struct bel_report){0};
}

void bel__slot_clear(struct bel_slot *slot)
{
    bel__slot_empty(slot);
    slot->state = BEL_SLOT_IDLE;
    (void)pthread_cond_broadcast(&slot->crew->claimer_wakes);
}

void bel__slot_leased(struct bel_slot *slot, struct bel_mono begin)
{
    uint64_t lease_ns = (uint64_t)slot->lease_ms * NS_PER_MS;
    slot->extend_at.ns = begin.ns + lease_ns / 3;
    slot->end.ns = begin.ns + lease_ns;
}
