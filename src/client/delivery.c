/* SPDX-License-Identifier: MIT */

/* Reads a delivery from the reply to CLAIM. */
#include "client/delivery.h"

#include "core/delivery.h"

#include <stdlib.h>

/* Indexes in a delivery: [token, topic, id, payload, due_ms, attempt, headers, lease_ms,
 * correlation, results]. The last three may be missing. */
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
    PLACE_RESULTS,
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

static uint64_t lease_of(const struct bel_value *delivery)
{
    if (!has(delivery, PLACE_LEASE, BEL_VALUE_NUMBER)) return 0;
    int64_t ms = delivery->items[PLACE_LEASE].number;
    return ms > 0 ? (uint64_t)ms : 0;
}

/* Returns the headers of a delivery as an array, which the caller frees; NULL if memory is out. */
static struct bel_header *headers_of(const struct bel_value *headers)
{
    size_t count = headers->count / 2;
    struct bel_header *array = calloc(count + 1, sizeof array[0]);
    for (size_t i = 0; array != NULL && i < count; i++) {
        array[i].name = headers->items[2 * i].text;
        array[i].value = headers->items[2 * i + 1].text;
    }
    return array;
}

/* Returns the results of a delivery as an array, which the caller frees; NULL if memory is out. */
static struct bel_task_result *results_of(const struct bel_value *delivery, size_t *out_count)
{
    bool is_there = has(delivery, PLACE_RESULTS, BEL_VALUE_LIST);
    const struct bel_value *results = is_there ? &delivery->items[PLACE_RESULTS] : NULL;
    size_t count = results != NULL ? results->count / 2 : 0;
    struct bel_task_result *array = calloc(count + 1, sizeof array[0]);
    for (size_t i = 0; array != NULL && i < count; i++) {
        const struct bel_value *result = &results->items[2 * i + 1];
        array[i].task = results->items[2 * i].text;
        array[i].has_result = result->type == BEL_VALUE_TEXT;
        if (array[i].has_result) array[i].result = result->text;
    }
    *out_count = count;
    return array;
}

int bel__client_delivery(const struct bel_value *value, struct bel_delivery **out)
{
    if (!is_delivery(value)) return BEL_EINVAL;
    const struct bel_value *items = value->items;
    size_t results_count;
    struct bel_header *headers = headers_of(&items[PLACE_HEADERS]);
    struct bel_task_result *results = results_of(value, &results_count);
    if (headers == NULL || results == NULL) {
        free(headers);
        free(results);
        return BEL_ENOMEM;
    }
    struct bel_delivery delivery = {.token = items[PLACE_TOKEN].text,
                                    .topic = items[PLACE_TOPIC].text,
                                    .id = items[PLACE_ID].text,
                                    .payload = items[PLACE_PAYLOAD].text,
                                    .correlation = correlation_of(value),
                                    .due = {items[PLACE_DUE].number},
                                    .attempt = (uint64_t)items[PLACE_ATTEMPT].number,
                                    .lease_ms = lease_of(value),
                                    .headers = headers,
                                    .headers_count = items[PLACE_HEADERS].count / 2,
                                    .results = results,
                                    .results_count = results_count};
    *out = bel__delivery_copy(&delivery);
    free(headers);
    free(results);
    return *out != NULL ? 0 : BEL_ENOMEM;
}
