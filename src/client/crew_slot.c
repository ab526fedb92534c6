/* SPDX-License-Identifier: MIT */

/* Functions of a slot: copying a delivery into it, the times of its lease, emptying it. */
#include "client/crew.h"

#include "core/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Indexes in a delivery: [token, topic, id, payload, due_ms, attempt, headers, lease_ms,
 * correlation]. The last two may be missing. */
enum place {
    PLACE_TOKEN,
    PLACE_TOPIC,
    PLACE_ID,
    PLACE_PAYLOAD,
    PLACE_DUE,
    PLACE_ATTEMPT,
    PLACE_HEADERS,
    PLACE_LEASE,
    PLACE_CORRELATION,
};

static bool is_delivery(const struct bel_value *value)
{
    if (value->type != BEL_VALUE_LIST || value->count <= PLACE_HEADERS) return false;
    for (int i = PLACE_TOKEN; i <= PLACE_PAYLOAD; i++) {
        if (value->items[i].type != BEL_VALUE_TEXT) return false;
    }
    const struct bel_value *headers = &value->items[PLACE_HEADERS];
    bool is_list = headers->type == BEL_VALUE_LIST || headers->type == BEL_VALUE_MAP;
    return is_list && value->items[PLACE_DUE].type == BEL_VALUE_NUMBER &&
           value->items[PLACE_ATTEMPT].type == BEL_VALUE_NUMBER;
}

static bool has(const struct bel_value *delivery, enum place place, enum bel_value_type type)
{
    return delivery->count > place && delivery->items[place].type == type;
}

static struct bel_view correlation_of(const struct bel_value *delivery)
{
    return has(delivery, PLACE_CORRELATION, BEL_VALUE_TEXT)
               ? delivery->items[PLACE_CORRELATION].text
               : BEL_VIEW("");
}

static uint32_t lease_of(const struct bel_value *delivery)
{
    if (!has(delivery, PLACE_LEASE, BEL_VALUE_NUMBER)) return BEL_CREW_LEASE_MS_DEFAULT;
    int64_t ms = delivery->items[PLACE_LEASE].number;
    return ms > 0 && ms <= UINT32_MAX ? (uint32_t)ms : BEL_CREW_LEASE_MS_DEFAULT;
}

/* Copies bytes to `*place`, adds a 0, and moves `*place` to the end. */
static struct bel_view keep(char **place, struct bel_view view)
{
    char *at = *place;
    if (view.bytes > 0) memcpy(at, view.data, view.bytes);
    at[view.bytes] = '\0';
    *place = at + view.bytes + 1;
    return (struct bel_view){at, view.bytes};
}

static size_t bytes_of(const struct bel_value *delivery)
{
    const struct bel_value *headers = &delivery->items[PLACE_HEADERS];
    size_t bytes = headers->count / 2 * sizeof(struct bel_errand_header);
    bytes += correlation_of(delivery).bytes + 1;
    for (int i = PLACE_TOKEN; i <= PLACE_PAYLOAD; i++) {
        bytes += delivery->items[i].text.bytes + 1;
    }
    for (size_t i = 0; i < headers->count; i++) {
        bytes += headers->items[i].text.bytes + 1;
    }
    return bytes;
}

int bel__slot_fill(struct bel_slot *slot, const struct bel_value *delivery)
{
    assert(slot->memory == NULL);
    if (!is_delivery(delivery)) return BEL_EINVAL;
    const struct bel_value *items = delivery->items, *headers = &items[PLACE_HEADERS];
    struct bel_errand_header *header = malloc(bytes_of(delivery));
    if (header == NULL) return BEL_ENOMEM;
    size_t count = headers->count / 2;
    char *place = (char *)(header + count);
    slot->memory = header;
    slot->errand = (struct bel_errand){.token = keep(&place, items[PLACE_TOKEN].text),
                                       .due = {items[PLACE_DUE].number},
                                       .attempt = (uint64_t)items[PLACE_ATTEMPT].number,
                                       .headers = header,
                                       .headers_count = count};
    slot->errand.topic = keep(&place, items[PLACE_TOPIC].text);
    slot->errand.id = keep(&place, items[PLACE_ID].text);
    slot->errand.payload = keep(&place, items[PLACE_PAYLOAD].text);
    slot->errand.correlation = keep(&place, correlation_of(delivery));
    slot->lease_ms = lease_of(delivery);
    for (size_t i = 0; i < count; i++) {
        header[i].name = keep(&place, headers->items[2 * i].text);
        header[i].value = keep(&place, headers->items[2 * i + 1].text);
    }
    return 0;
}

void bel__slot_empty(struct bel_slot *slot)
{
    free(slot->memory);
    slot->memory = NULL;
    slot->errand = (struct bel_errand){0};
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
