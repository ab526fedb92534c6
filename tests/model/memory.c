/* SPDX-License-Identifier: MIT */

/*
 * Memory of the model. Some lives as long as the object that it is part of, some until the turn has
 * answered. A test that runs out of memory is aborted.
 */
#include "core/utf8.h"
#include "inside.h"

#include <stdlib.h>
#include <string.h>

void *model_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (memory == NULL) abort();
    return memory;
}

/* The array doubles when its length is a power of two. */
void model_list_add(struct list *list, void *item)
{
    size_t count = list->count;
    if ((count & (count - 1)) == 0) {
        size_t room = count > 0 ? 2 * count : 1;
        list->items = realloc(list->items, room * sizeof *list->items);
    }
    if (list->items == NULL) abort();
    list->items[list->count++] = item;
}

void model_list_remove(struct list *list, size_t index)
{
    list->count--;
    memmove(&list->items[index], &list->items[index + 1],
            (list->count - index) * sizeof *list->items);
}

struct bel_view model_cut(struct bel_view text)
{
    const unsigned char *bytes = text.data;
    size_t at = 0;
    while (at < text.bytes) {
        size_t whole = bel__utf8_bytes(bytes + at, text.bytes - at);
        size_t next = at + (whole > 0 ? whole : 1);
        if (next > BEL_TEXT_BYTES_MAX) break;
        at = next;
    }
    return (struct bel_view){bytes, at};
}

struct bytes model_copy(struct bel_view view)
{
    struct bytes copy = {NULL, view.bytes};
    if (view.bytes == 0) return copy;
    copy.data = model_alloc(view.bytes);
    memcpy(copy.data, view.data, view.bytes);
    return copy;
}

void model_free(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){NULL, 0};
}

struct bel_view model_text(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

void *model_piece(struct model *model, size_t bytes)
{
    void *piece = model_alloc(bytes);
    model_list_add(&model->pieces, piece);
    return piece;
}

struct bel_view model_kept(struct model *model, struct bytes bytes)
{
    if (bytes.count == 0) return (struct bel_view){NULL, 0};
    void *piece = model_piece(model, bytes.count);
    memcpy(piece, bytes.data, bytes.count);
    return (struct bel_view){piece, bytes.count};
}
