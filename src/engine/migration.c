/* SPDX-License-Identifier: MIT */

/*
 * The migration walks through TIMERS in the order of keys, and puts a row into EXPIRIES for each
 * timer with EXPIRES. A row of META has the key of the next timer, and changes in the same batch as
 * the rows of the slice. After a crash the walk therefore continues where the last durable slice
 * ended.
 *
 *     done                 next               the rest
 *     have their rows       |     have rows only if they were added or moved since
 *
 * Commands are served meanwhile. A timer that is added, moved or removed changes its row as always,
 * wherever the walk is. A timer after `next` that expires is ended when a command looks at it, or
 * when the walk meets it.
 */
#include "engine/migration.h"

#include "engine/engine.h"
#include "engine/rows/encoding.h"
#include "engine/state/timer.h"

#include <assert.h>

enum {
    ROWS_MAX = 1000,
    RETRY_MS = 1000,  /* delay of a retry after a failure for lack of room or memory */
    STATE_BYTES = 64, /* of the row in META, at most */
};

/* Puts the row that says how far the migration has come: the words of the next key, or no bytes. */
static void put_state(struct bel_engine *engine)
{
    const struct bel_migration *migration = &engine->migration;
    uint8_t bytes[STATE_BYTES];
    struct bel_row_writer writer = {.at = bytes, .end = bytes + sizeof bytes};
    struct bel_key key = bel__key_meta(BEL_META_EXPIRIES);
    for (int i = 0; i < 3 && !migration->is_complete; i++) {
        bel__write_number(&writer, migration->next.words[i]);
    }
    struct bel_view value = {.data = bytes, .bytes = (size_t)(writer.at - bytes)};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_ANY);
}

int bel__migration_skip(struct bel_engine *engine)
{
    int err = bel__rows_reserve(&engine->rows, 1, STATE_BYTES, BEL_STORE_ADD);
    if (err) return err;
    engine->migration.is_complete = true;
    put_state(engine);
    return 0;
}

int bel__migration_open(struct bel_engine *engine)
{
    struct bel_migration *migration = &engine->migration;
    struct bel_key key = bel__key_meta(BEL_META_EXPIRIES);
    struct bel_view row = {0};
    migration->next = bel__key_of(&(struct bel_place){.table = BEL_TABLE_TIMERS});
    migration->rows_max = ROWS_MAX;
    int err = bel__store_get(engine->store, &key, &row);
    if (err == BEL_ENOTFOUND) return 0; /* not begun */
    if (err) return err;
    migration->is_complete = row.bytes == 0;
    if (migration->is_complete) return 0;
    struct bel_row_reader reader = bel__reader_of(row);
    for (int i = 0; i < 3; i++) {
        migration->next.words[i] = bel__read_number(&reader);
    }
    return reader.bad || reader.at != reader.end ? BEL_ECORRUPT : 0;
}

/* Puts the row of one timer. */
static int migrate(struct bel_engine *engine, const struct bel_store_cursor *cursor)
{
    struct bel_record record;
    if (bel__record_kind(cursor->value) != BEL_RECORD_TIMER) return 0;
    int err = bel__record_read(cursor->value, &record);
    if (err) return err;
    struct bel_topic_state *topic =
        bel__topic_at(&engine->topics, bel__place_of(&cursor->key).topic);
    if (topic == NULL) return BEL_ECORRUPT;
    bel__timer_put_expiry(engine, topic, &cursor->key, &record);
    return 0;
}

static int slice(struct bel_engine *engine)
{
    struct bel_migration *migration = &engine->migration;
    struct bel_store_cursor cursor;
    uint32_t left = migration->rows_max;
    int err = bel__rows_reserve(&engine->rows, left + 1,
                                left * sizeof(struct bel_key) + STATE_BYTES, BEL_STORE_ADD);
    if (err) return err;
    err = bel__store_seek(engine->store, &migration->next, &cursor);
    for (; err == 0 && left > 0; left--, err = bel__store_next(engine->store, &cursor)) {
        if (bel__place_of(&cursor.key).table != BEL_TABLE_TIMERS) break;
        err = migrate(engine, &cursor);
        if (err) return err;
        migration->next = bel__key_after(&cursor.key);
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    migration->is_complete = left > 0;
    put_state(engine);
    return 0;
}

int bel__migration_turn(struct bel_engine *engine)
{
    struct bel_migration *migration = &engine->migration;
    if (migration->is_complete || engine->now.engine < migration->time) return 0;
    if (bel__is_held(engine)) return 0;
    int err = slice(engine);
    if (err == BEL_ENOMEM || err == BEL_EFULL) {
        migration->time = engine->now.engine + RETRY_MS;
        return 0;
    }
    return err == BEL_EBUSY ? 0 : err;
}

uint64_t bel__migration_next(const struct bel_engine *engine)
{
    return engine->migration.is_complete ? BEL_NEVER : engine->migration.time;
}
