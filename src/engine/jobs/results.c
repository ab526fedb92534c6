/* SPDX-License-Identifier: MIT */

/*
 * A result is kept with the ended timer of its task. A delivery has the results of the tasks before
 * it in the order of `after`, as long as they fit.
 */
#include "engine/jobs/results.h"

#include "engine/jobs/task.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"

#include <assert.h>

bool bel__results_fit(const struct bel_found *found, uint64_t bytes)
{
    assert(found->task != NULL);
    return found->task->job.row.result_bytes + bytes <= BEL_RESULTS_OF_JOB_MAX;
}

/* Gets the result of one task, unless it is larger than `*left`, which is lowered. */
static int get_one(struct bel_engine *engine, uint64_t job, uint32_t task, uint64_t *left,
                   struct bel_task_result *out)
{
    struct bel_task_row row;
    struct bel_found found;
    int err = bel__task_load(engine, job, task, &row);
    if (err == 0) err = bel__timer_load(engine, &row.key, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    const struct bel_blob *result = &found.record.result;
    *out = (struct bel_task_result){.task = bel__answer_copy(engine, bel__task_id(&found.record))};
    if (out->task.data == NULL) return BEL_ENOMEM;
    if (!found.record.has_result || result->bytes > *left) return 0;
    *left -= result->bytes;
    out->has_result = true;
    if (result->bytes == 0) return 0;
    err = bel__blob_get(engine->store, result, bel__answer_arena(engine), &out->result);
    if (err != 0 || result->number != 0) return err;
    out->result = bel__answer_copy(engine, out->result);
    return out->result.data == NULL ? BEL_ENOMEM : 0;
}

int bel__results_get(struct bel_engine *engine, const struct bel_found *found,
                     const struct bel_task_result **out, size_t *out_count)
{
    const struct bel_task_of *of = &found->record.job;
    uint64_t left = BEL_JOB_RESULTS_BYTES_MAX;
    struct bel_edge edges[BEL_EDGES_OF_ROW];
    struct bel_task_row row;
    assert(of->number != 0);
    if (of->depth == 0) return 0; /* after no other task */
    int err = bel__task_load(engine, of->number, of->index, &row);
    if (err != 0 || row.after_count == 0) return err;
    struct bel_edge_list list = {of->number, BEL_EDGES_AFTER, of->index, row.after_count};
    struct bel_task_result *results = bel__answer_take(engine, list.count * sizeof *results);
    if (results == NULL) return BEL_ENOMEM;
    for (uint64_t at = 0; at < list.count;) {
        size_t count;
        err = bel__edges_get(engine, &list, at, edges, &count);
        for (size_t i = 0; i < count && err == 0; i++, at++) {
            err = get_one(engine, of->number, edges[i].task, &left, &results[at]);
        }
        if (err) return err;
    }
    *out = results;
    *out_count = list.count;
    return 0;
}
