/* SPDX-License-Identifier: MIT */

/*
 * Reserving costs as much as a small command. So bel__rows_reserve() reserves more than the caller
 * asks for, if the store has room, and the next commands use up the rest.
 */
#include "engine/rows/rows.h"

#include "engine/rows/encoding.h"

#include <assert.h>

enum {
    NUMBERS_BYTES = BEL_NUMBERS * BEL_ENCODED_NUMBER_BYTES_MAX, /* of a topic's row, at most */
    NUMBERS_MORE = 8, /* rows of counts that one command changes, at most */
    MORE_ROWS = 128,  /* reserved in addition, for the next commands */
    MORE_BYTES = 16 << 10,
};

/* Returns whether the unused reservation is enough. Room reserved for ends is not room for
 * additions. */
static bool has_room(const struct bel_rows *rows, const struct bel_room *wanted)
{
    const struct bel_room *room = &rows->room;
    return room->rows >= wanted->rows && room->bytes >= wanted->bytes &&
           (room->use == BEL_STORE_ADD || wanted->use != BEL_STORE_ADD);
}

static int find_room(struct bel_rows *rows, const struct bel_room *wanted)
{
    assert(wanted->rows > 0);
    int err = bel__store_reserve(rows->store, wanted->rows, wanted->bytes, wanted->use);
    if (err == 0) rows->room = *wanted;
    return err;
}

int bel__rows_reserve(struct bel_rows *rows, size_t count, size_t bytes, enum bel_store_use use)
{
    const struct bel_counts *counts = &rows->counts;
    size_t topics = rows->topic_rows, more = NUMBERS_MORE + 1;
    bool may_change = use != BEL_STORE_ADD || rows->probes > 0;
    size_t resources = rows->resource_rows + (may_change ? rows->resource_more : 0);
    count += topics + counts->dirty_count + more + resources;
    bytes += (topics + more) * NUMBERS_BYTES + bel__counts_row_bytes(counts, more) +
             resources * BEL_RESOURCE_ROW_BYTES;
    struct bel_room wanted = {count, bytes, use};
    struct bel_room ample = {count + MORE_ROWS, bytes + MORE_BYTES, use};
    if (has_room(rows, &wanted) || find_room(rows, &ample) == 0) return 0;
    return find_room(rows, &wanted);
}

static void use_room(struct bel_rows *rows, size_t bytes)
{
    assert(rows->room.rows > 0 && rows->room.bytes >= bytes);
    rows->room.rows--;
    rows->room.bytes -= bytes;
    rows->has_changed = true;
}

/* A put and a delete that are noted, apart from those that are not, which are on the hot path. */
__attribute__((noinline)) static void put_noted(struct bel_rows *rows, const struct bel_key *key,
                                                struct bel_view value, enum bel_row row)
{
    bel__changes_note(&rows->changes, key);
    bel__store_put(rows->store, key, value, row);
}

__attribute__((noinline)) static void delete_noted(struct bel_rows *rows, const struct bel_key *key)
{
    bel__changes_note(&rows->changes, key);
    bel__store_delete(rows->store, key);
}

void bel__rows_put(struct bel_rows *rows, const struct bel_key *key, struct bel_view value,
                   enum bel_row row)
{
    use_room(rows, value.bytes);
    if (rows->changes.is_on) {
        put_noted(rows, key, value, row);
    } else {
        bel__store_put(rows->store, key, value, row);
    }
}

void bel__rows_delete(struct bel_rows *rows, const struct bel_key *key)
{
    use_room(rows, 0);
    if (rows->changes.is_on) {
        delete_noted(rows, key);
    } else {
        bel__store_delete(rows->store, key);
    }
}

uint64_t bel__rows_sequence(struct bel_rows *rows)
{
    assert(rows->sequence < BEL_SEQUENCE_MAX);
    return rows->sequence++;
}

void bel__rows_put_counts(struct bel_rows *rows)
{
    bel__counts_flush(&rows->counts, rows->store);
    assert(rows->counts.dirty_count == 0);
    rows->room = (struct bel_room){0}; /* bytes used by the counts are unknown */
}

void bel__rows_end(struct bel_rows *rows)
{
    rows->room = (struct bel_room){0};
    rows->has_changed = false;
}
