/* SPDX-License-Identifier: MIT */

/* Copies of deliveries, each in one block of memory: the struct, its headers, its results, its
 * texts. */
#include "core/delivery.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const struct bel_delivery *from)
{
    size_t bytes = sizeof *from + from->headers_count * sizeof from->headers[0];
    bytes += from->results_count * sizeof from->results[0];
    bytes += from->token.bytes + from->topic.bytes + from->id.bytes + from->payload.bytes;
    bytes += from->correlation.bytes + 5;
    for (size_t i = 0; i < from->headers_count; i++) {
        bytes += from->headers[i].name.bytes + from->headers[i].value.bytes + 2;
    }
    for (size_t i = 0; i < from->results_count; i++) {
        bytes += from->results[i].task.bytes + from->results[i].result.bytes + 2;
    }
    return bytes;
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

struct bel_delivery *bel__delivery_copy(const struct bel_delivery *from)
{
    struct bel_delivery *to = malloc(bytes_of(from));
    if (to == NULL) return NULL;
    struct bel_header *headers = (struct bel_header *)(to + 1);
    struct bel_task_result *results = (struct bel_task_result *)(headers + from->headers_count);
    char *place = (char *)(results + from->results_count);
    *to = *from;
    to->token = keep(&place, from->token);
    to->topic = keep(&place, from->topic);
    to->id = keep(&place, from->id);
    to->payload = keep(&place, from->payload);
    to->correlation = keep(&place, from->correlation);
    for (size_t i = 0; i < from->headers_count; i++) {
        headers[i].name = keep(&place, from->headers[i].name);
        headers[i].value = keep(&place, from->headers[i].value);
    }
    for (size_t i = 0; i < from->results_count; i++) {
        results[i].task = keep(&place, from->results[i].task);
        results[i].has_result = from->results[i].has_result;
        results[i].result = keep(&place, from->results[i].result);
    }
    to->headers = headers;
    to->results = results;
    return to;
}

void bel_delivery_destroy(struct bel_delivery *delivery)
{
    free(delivery);
}
