/* SPDX-License-Identifier: MIT */

/*
 * All ids of a chain of jobs are reserved when its first job is submitted, with a row in JOB_IDS
 * that has the number of that job instead of a key, and a row in EDGES to find it by:
 *
 *     EDGES  job 7, then 0        on success, id b, text
 *     EDGES  job 7, reserved 0    b                         JOB_IDS  b    7
 *     EDGES  job 7, reserved 1    c, in the text of b       JOB_IDS  c    7
 *
 * The row of an id changes when its job is submitted: then it has the key of the job. It is deleted
 * when the job before it ends in another way than the one that it waits for.
 */
#include "engine/jobs/then.h"

#include "core/view.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"

/* --- ids --- */

int bel__id_look(struct bel_engine *engine, struct bel_view id, enum bel_id_use *out,
                 uint64_t *out_chain)
{
    struct bel_key key = bel__job_id_key(engine->alias_keys, id);
    struct bel_view value;
    *out_chain = 0;
    int err = bel__store_get(engine->store, &key, &value);
    if (err == BEL_ENOTFOUND) *out = BEL_ID_FREE;
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    *out = value.bytes == sizeof key.words ? BEL_ID_JOB : BEL_ID_RESERVED;
    return *out == BEL_ID_JOB ? 0 : bel__position_read(value, out_chain);
}

int bel__then_look(struct bel_engine *engine, const struct bel_job_graph *graph,
                   const uint64_t chains[2], struct bel_view *out)
{
    *out = (struct bel_view){0};
    for (uint32_t i = 0; i < graph->then_count; i++) {
        const struct bel_job_graph *follower = graph->then[i].graph;
        enum bel_id_use use;
        uint64_t chain;
        int err = bel__id_look(engine, follower->id, &use, &chain);
        if (err) return err;
        bool is_ours = use == BEL_ID_RESERVED && (chain == chains[0] || chain == chains[1]);
        if (use != BEL_ID_FREE && !is_ours) {
            *out = follower->id;
            return 0;
        }
        err = bel__then_look(engine, follower, chains, out); /* at most BEL_JOB_THEN_DEPTH_MAX */
        if (err != 0 || out->bytes > 0) return err;
    }
    return 0;
}

static void reserve_id(struct bel_engine *engine, struct bel_job_found *job, struct bel_view id)
{
    struct bel_key id_key = bel__job_id_key(engine->alias_keys, id);
    struct bel_key key =
        bel__edges_key(job->row.number, BEL_EDGES_RESERVED, (uint32_t)job->row.reserved, 0);
    uint8_t bytes[BEL_WORK_ROW_BYTES_MAX];
    struct bel_view value = {bytes, bel__position_write(job->row.chain, bytes)};
    bel__rows_put(&engine->rows, &id_key, value, BEL_ROW_ANY);
    bel__rows_put(&engine->rows, &key, id, BEL_ROW_NEW);
    job->row.reserved++;
}

static void reserve_ids(struct bel_engine *engine, struct bel_job_found *job,
                        const struct bel_job_graph *graph)
{
    reserve_id(engine, job, graph->id);
    for (uint32_t i = 0; i < graph->then_count; i++) {
        reserve_ids(engine, job, graph->then[i].graph);
    }
}

/* --- rows --- */

void bel__then_put(struct bel_engine *engine, struct bel_job_found *job,
                   const struct bel_job_then *then, uint32_t index)
{
    uint8_t bytes[BEL_THEN_ROW_BYTES_MAX];
    struct bel_key key = bel__edges_key(job->row.number, BEL_EDGES_THEN, index, 0);
    struct bel_then_row row = {
        .on = then->on, .id = then->graph->id, .text = bel__blob_put(&engine->rows, then->text, 0)};
    struct bel_view value = {bytes, bel__then_row_write(&row, bytes)};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_NEW);
    if (job->row.parent == 0) reserve_ids(engine, job, then->graph);
}

int bel__then_write(struct bel_engine *engine, struct bel_job_found *job,
                    const struct bel_job_then *then, uint32_t index)
{
    int err = bel__rows_reserve(
        &engine->rows, 2 * (size_t)BEL_JOB_THEN_MAX + 4 + bel__blob_rows(then->text.bytes),
        then->text.bytes + (size_t)BEL_JOB_THEN_MAX * (BEL_ID_BYTES + BEL_WORK_ROW_BYTES_MAX) +
            BEL_THEN_ROW_BYTES_MAX + BEL_JOB_ROW_BYTES_MAX,
        BEL_STORE_ADD);
    if (err) return err;
    bel__then_put(engine, job, then, index);
    bel__job_put(engine, job);
    return 0;
}

int bel__then_load(struct bel_engine *engine, uint64_t job, uint32_t index,
                   struct bel_then_row *out)
{
    struct bel_key key = bel__edges_key(job, BEL_EDGES_THEN, index, 0);
    struct bel_view value;
    int err = bel__store_get(engine->store, &key, &value);
    if (err == 0) err = bel__then_row_read(value, out);
    return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
}

/* Deletes a reserved id, unless it was reserved again or used since. */
static int unreserve(struct bel_engine *engine, uint64_t chain, struct bel_view id)
{
    struct bel_key key = bel__job_id_key(engine->alias_keys, id);
    enum bel_id_use use;
    uint64_t reserved_by;
    int err = bel__id_look(engine, id, &use, &reserved_by);
    if (err) return err;
    if (use == BEL_ID_RESERVED && reserved_by == chain) bel__rows_delete(&engine->rows, &key);
    return 0;
}

/* Ends the reservation of an id and of those inside it, which follow it in the rows of the job, up
 * to the id `until`. */
static int unreserve_from(struct bel_engine *engine, const struct bel_job_found *job,
                          struct bel_view from, struct bel_view until)
{
    bool is_inside = false;
    for (uint32_t i = 0; i < job->row.reserved; i++) {
        struct bel_key key = bel__edges_key(job->row.number, BEL_EDGES_RESERVED, i, 0);
        struct bel_view id;
        int err = bel__store_get(engine->store, &key, &id);
        if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        if (bel__view_equal(id, until)) return 0;
        is_inside |= bel__view_equal(id, from);
        if (is_inside) err = unreserve(engine, job->row.chain, id);
        if (err) return err;
    }
    return 0;
}

int bel__then_release(struct bel_engine *engine, const struct bel_job_found *job, uint32_t index)
{
    struct bel_then_row then, next = {0};
    int err = bel__then_load(engine, job->row.number, index, &then);
    if (err == 0 && index + 1 < job->row.thens) {
        err = bel__then_load(engine, job->row.number, index + 1, &next);
    }
    if (err == 0) {
        err = bel__rows_reserve(&engine->rows, (size_t)BEL_JOB_THEN_MAX + 1, 0, BEL_STORE_END);
    }
    if (err == 0) err = unreserve_from(engine, job, then.id, next.id);
    if (err == 0 && job->row.reserved == 0) err = unreserve(engine, job->row.chain, then.id);
    return err;
}

int bel__then_remove_one(struct bel_engine *engine, const struct bel_job_found *job)
{
    struct bel_key from = bel__edges_key(job->row.number, BEL_EDGES_THEN, 0, 0);
    struct bel_store_cursor cursor;
    struct bel_then_row row;
    int err = bel__store_seek(engine->store, &from, &cursor);
    if (err) return err;
    struct bel_place place = bel__place_of(&cursor.key);
    if (place.table != BEL_TABLE_EDGES || place.time != job->row.number) return BEL_ENOTFOUND;
    if (place.priority == BEL_EDGES_THEN) {
        err = bel__then_row_read(cursor.value, &row);
        if (err) return err;
        err =
            bel__rows_reserve(&engine->rows, 2 + bel__blob_rows(row.text.bytes), 0, BEL_STORE_END);
        if (err) return err;
        bel__blob_delete(&engine->rows, &row.text);
    } else {
        err = bel__rows_reserve(&engine->rows, 2, 0, BEL_STORE_END);
        if (err == 0) err = unreserve(engine, job->row.chain, cursor.value);
        if (err) return err;
    }
    bel__rows_delete(&engine->rows, &cursor.key);
    return 0;
}
