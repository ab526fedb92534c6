/* SPDX-License-Identifier: MIT */

/*
 * A copy is one block of memory: first the structs, then the texts.
 *
 *     | reply | resources | reports of all resources | texts |
 */
#include "backend/limit_copy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Copies a text to `*place`, which moves to the end of the text. */
static void keep(struct bel_view *view, char **place)
{
    char *at = *place;
    if (view->bytes > 0) memcpy(at, view->data, view->bytes);
    at[view->bytes] = '\0';
    view->data = at;
    *place = at + view->bytes + 1;
}

/* Returns the number of reports, and adds the bytes of all texts to `*bytes`. */
static size_t measure(const struct bel_limit_reply *from, size_t *bytes)
{
    size_t reports = 0;
    *bytes += from->cursor.bytes + 1;
    for (size_t i = 0; i < from->count; i++) {
        const struct bel_limit_state *item = &from->items[i];
        reports += item->reports_count;
        *bytes += item->name.bytes + item->rate.bytes + 2;
        for (size_t k = 0; k < item->reports_count; k++) {
            *bytes += item->reports[k].who.bytes + 1;
        }
    }
    return reports;
}

static_assert(sizeof(struct bel_limit_reply) % _Alignof(struct bel_limit_state) == 0,
              "resources follow a reply");
static_assert(_Alignof(struct bel_limit_state) >= _Alignof(struct bel_limit_report),
              "reports follow resources");

struct bel_limit_reply *bel__limit_reply_copy(const struct bel_limit_reply *from)
{
    size_t bytes = 0, reports_count = measure(from, &bytes);
    bytes += sizeof *from + from->count * sizeof from->items[0];
    bytes += reports_count * sizeof(struct bel_limit_report);
    struct bel_limit_reply *to = malloc(bytes);
    if (to == NULL) return NULL;
    struct bel_limit_state *items = (struct bel_limit_state *)(to + 1);
    struct bel_limit_report *reports = (struct bel_limit_report *)(items + from->count);
    char *place = (char *)(reports + reports_count);
    *to = *from;
    to->items = items;
    keep(&to->cursor, &place);
    for (size_t i = 0; i < from->count; i++) {
        items[i] = from->items[i];
        keep(&items[i].name, &place);
        keep(&items[i].rate, &place);
        for (size_t k = 0; k < items[i].reports_count; k++) {
            reports[k] = from->items[i].reports[k];
            keep(&reports[k].who, &place);
        }
        items[i].reports = reports;
        reports += items[i].reports_count;
    }
    assert(place == (char *)to + bytes);
    return to;
}

void bel_limit_reply_destroy(struct bel_limit_reply *reply)
{
    free(reply);
}
