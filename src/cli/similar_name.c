/* SPDX-License-Identifier: MIT */

/* A listed name need not end in 0, so each is copied before it is compared. */
#include "cli/similar_name.h"

#include "core/similar.h"

#include <string.h>

void bel__similar_name(struct bel_client *client, const struct bel_view *command, size_t words,
                       const char *field, const char *name, char out[CLI_NAME_BYTES])
{
    const struct bel_value *list;
    struct bel_similar similar;
    char listed[CLI_NAME_BYTES];
    out[0] = '\0';
    if (bel_client_call(client, command, words, &list) != 0) return;
    if (field != NULL && (list->type != BEL_VALUE_LIST || list->count != 2)) return;
    if (field != NULL) list = &list->items[1]; /* after the cursor */
    if (list->type != BEL_VALUE_LIST) return;
    bel__similar_begin(&similar, name);
    for (size_t i = 0; i < list->count; i++) {
        const struct bel_value *value = &list->items[i];
        if (field != NULL) value = bel_value_find(value, field);
        if (value == NULL || value->text.bytes == 0 || value->text.bytes >= sizeof listed) continue;
        memcpy(listed, value->text.data, value->text.bytes);
        listed[value->text.bytes] = '\0';
        similar.name = NULL;
        bel__similar_offer(&similar, listed, listed);
        if (similar.name != NULL) memcpy(out, listed, value->text.bytes + 1);
    }
}
