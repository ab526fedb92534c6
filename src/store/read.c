/* SPDX-License-Identifier: MIT */

/*
 * Reads merge three layers. For a key, the uppermost layer that has it decides.
 *
 *     active   . . 3 . x . .          x: deleted (a tombstone)
 *     frozen   1 . . . 5 . 7
 *     tree     1 2 3 . . . .          a tree has no tombstones
 *     result   1 2 3 . . . 7
 *
 * A cursor holds the next key of each layer and returns the smallest. The frozen delta and the tree
 * do not change before the next commit. The active delta may: if rows have changed since, the
 * cursor seeks in it again, from the key after the last one returned.
 */
#include "store/state.h"

enum {
    ACTIVE,
    FROZEN,
};

int bel__store_get(struct bel_store *store, const struct bel_key *key, struct bel_view *out)
{
    store->reads++;
    const struct bel_delta_entry *entry = bel__delta_find(store->active, key);
    if (entry == NULL) bel__delta_miss(store->active);
    if (entry == NULL && store->freeze != BEL_FREEZE_NONE) {
        entry = bel__delta_find(store->frozen, key);
    }
    if (entry == NULL) return store->tree->get(store->tree, key, out);
    if (bel__entry_is_gone(entry)) return BEL_ENOTFOUND;
    *out = bel__entry_value(entry);
    return 0;
}

/* Changes a key to the next possible key. Returns false if there is none. */
static bool increase(struct bel_key *key)
{
    for (int i = 2; i >= 0; i--) {
        if (++key->words[i] != 0) return true;
    }
    return false;
}

static int seek_tree(struct bel_store *store, const struct bel_key *from,
                     struct bel_store_cursor *cursor)
{
    struct bel_key key = *from;
    int err = store->tree->seek(store->tree, &key, &cursor->tree_value);
    if (err != 0 && err != BEL_ENOTFOUND) return err; /* cursor unchanged: next() can retry */
    cursor->has_tree = err == 0;
    cursor->tree_key = key;
    return 0;
}

static void seek_active(const struct bel_store *store, const struct bel_key *from,
                        struct bel_store_cursor *cursor)
{
    cursor->has_place[ACTIVE] = bel__delta_seek(store->active, from, &cursor->places[ACTIVE]);
    cursor->changes = store->changes;
}

/* Advances every layer that is at the current key. */
static int step(struct bel_store *store, struct bel_store_cursor *cursor)
{
    struct bel_key behind = cursor->key;
    if (!increase(&behind)) return BEL_ENOTFOUND;
    if (cursor->changes != store->changes) {
        seek_active(store, &behind, cursor);
    } else if (cursor->has_place[ACTIVE] &&
               bel__key_compare(&cursor->places[ACTIVE].key, &cursor->key) == 0) {
        cursor->has_place[ACTIVE] = bel__delta_next(store->active, &cursor->places[ACTIVE]);
    }
    if (cursor->has_place[FROZEN] &&
        bel__key_compare(&cursor->places[FROZEN].key, &cursor->key) == 0) {
        cursor->has_place[FROZEN] = bel__delta_next(store->frozen, &cursor->places[FROZEN]);
    }
    if (cursor->has_tree && bel__key_compare(&cursor->tree_key, &cursor->key) == 0) {
        return seek_tree(store, &behind, cursor);
    }
    return 0;
}

/* Sets `*out` to the smallest key of all layers. Returns false if all are at their end. */
static bool smallest(const struct bel_store_cursor *cursor, struct bel_key *out)
{
    const struct bel_key *first = cursor->has_tree ? &cursor->tree_key : NULL;
    for (int i = FROZEN; i >= ACTIVE; i--) {
        if (!cursor->has_place[i]) continue;
        const struct bel_key *key = &cursor->places[i].key;
        if (first == NULL || bel__key_compare(key, first) < 0) first = key;
    }
    if (first == NULL) return false;
    *out = *first;
    return true;
}

/* Sets the value from the uppermost layer that has the current key. Returns false if that layer has
 * a tombstone. */
static bool look(struct bel_store_cursor *cursor)
{
    for (int i = ACTIVE; i <= FROZEN; i++) {
        const struct bel_delta_place *place = &cursor->places[i];
        if (!cursor->has_place[i]) continue;
        if (bel__key_compare(&place->key, &cursor->key) != 0) continue;
        if (bel__entry_is_gone(place->entry)) return false;
        cursor->value = bel__entry_value(place->entry);
        return true;
    }
    cursor->value = cursor->tree_value;
    return true;
}

/* Moves to the smallest key that is not deleted. */
static int settle(struct bel_store *store, struct bel_store_cursor *cursor)
{
    while (smallest(cursor, &cursor->key)) {
        if (look(cursor)) return 0;
        store->reads++; /* a deleted row is read, too */
        int err = step(store, cursor);
        if (err) return err;
    }
    return BEL_ENOTFOUND;
}

int bel__store_seek(struct bel_store *store, const struct bel_key *from,
                    struct bel_store_cursor *out)
{
    struct bel_store_cursor cursor;
    store->reads++;
    seek_active(store, from, &cursor);
    cursor.has_place[FROZEN] = store->freeze != BEL_FREEZE_NONE &&
                               bel__delta_seek(store->frozen, from, &cursor.places[FROZEN]);
    int err = seek_tree(store, from, &cursor);
    if (err) return err;
    err = settle(store, &cursor);
    if (err) return err;
    *out = cursor;
    return 0;
}

int bel__store_next(struct bel_store *store, struct bel_store_cursor *cursor)
{
    store->reads++;
    int err = step(store, cursor);
    if (err) return err;
    return settle(store, cursor);
}

uint64_t bel__store_reads(const struct bel_store *store)
{
    return store->reads;
}

uint64_t bel__store_touched(const struct bel_store *store)
{
    return store->reads + store->changes;
}
