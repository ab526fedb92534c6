/* SPDX-License-Identifier: MIT */

/*
 * One batch writes all of a recurring job:
 *
 *     JOBS      phase plan
 *     EDGES     its text, like that of a job of `then`; the topics in it
 *     PLANS     its plan, with the id of the job, in a topic of its own
 */
#include "engine/jobs/recurring_rows.h"

#include "engine/jobs/then.h"
#include "engine/rows/blob.h"
#include "engine/state/occurrence.h"
#include "engine/state/plan.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"

#include <assert.h>

/* Fills in the record of the plan, and sets `*out` to its first time. */
static int fill_plan(struct bel_engine *engine, const struct bel_job_graph *graph,
                     struct bel_reply *reply, struct bel_record *record, uint64_t *out)
{
    struct bel_schedule_spec spec = {.plan = graph->plan, .at = graph->start};
    struct bel_text_error why = {0};
    if (graph->has_start) spec.when = BEL_WHEN_AT;
    bel__record_begin(record, BEL_RECORD_PLAN);
    record->id = graph->id;
    record->created = engine->now.wall;
    record->priority = BEL_PRIORITY_DEFAULT;
    int err = bel__plan_first(engine, &spec, record, &why, out);
    if (err == BEL_EINVAL) return bel__refuse(reply, err, "plan: expected %s", why.expected);
    if (err == BEL_ERANGE) return bel__refuse(reply, BEL_EINVAL, "the rule has no future time");
    return err;
}

static void add_plan(struct bel_engine *engine, struct bel_topic_state *topic,
                     struct bel_record *record, uint64_t first)
{
    struct bel_schedule_spec nothing = {0};
    uint8_t body[16];
    struct bel_view bytes = {body, bel__body_bytes(&nothing)};
    assert(bytes.bytes <= sizeof body);
    bel__body_write(&nothing, body);
    record->body = bel__blob_put(&engine->rows, bytes, BEL_BODY_INLINE_MAX);
    bel__plan_add(engine, topic, record, bel__rows_sequence(&engine->rows), first);
}

int bel__recurring_check(struct bel_engine *engine, const struct bel_job_graph *graph,
                         struct bel_reply *reply)
{
    struct bel_record record;
    uint64_t first = 0;
    return fill_plan(engine, graph, reply, &record, &first);
}

/* Reserves rows for all of a recurring job. */
static int reserve(struct bel_engine *engine, const struct bel_recurring_parts *parts)
{
    size_t text = parts->text.bytes, lists = bel__edges_rows(parts->topics->numbers_count);
    return bel__rows_reserve(
        &engine->rows, (size_t)2 * BEL_TIMER_ROWS + bel__blob_rows(text) + lists,
        (size_t)2 * BEL_TIMER_BYTES + BEL_TOPIC_ROW_BYTES + text + lists * BEL_EDGES_ROW_BYTES_MAX,
        BEL_STORE_ADD);
}

int bel__recurring_write(struct bel_engine *engine, struct bel_job_graph *graph,
                         const struct bel_recurring_parts *parts, struct bel_reply *reply)
{
    const struct bel_job_then then = {.on = BEL_EDGE_ALWAYS, .text = parts->text, .graph = graph};
    uint64_t number = parts->number;
    struct bel_topic_state *topic = NULL;
    struct bel_record record;
    uint64_t first = 0;
    bool is_new = false;
    int err = fill_plan(engine, graph, reply, &record, &first);
    if (err) return err;
    err = reserve(engine, parts);
    if (err == 0) err = bel__topic_make(engine, BEL_RECURRING_TOPIC, &topic, &is_new);
    if (err) return err;
    if (is_new) bel__topic_save(engine, topic);
    add_plan(engine, topic, &record, first);
    struct bel_job_found job = {.key = bel__job_key(number),
                                .row = {.number = number,
                                        .phase = BEL_JOB_PHASE_PLAN,
                                        .state = BEL_JOB_SCHEDULED,
                                        .priority = graph->priority,
                                        .created = (uint64_t)engine->now.wall,
                                        .topics = parts->topics->numbers_count,
                                        .chain = number,
                                        .parent = number, /* so that it reserves no ids */
                                        .id = graph->id}};
    bel__then_put(engine, &job, &then, 0);
    bel__job_topics_put(engine, parts->topics, number);
    job.row.parent = 0;
    bel__job_put(engine, &job);
    bel__job_put_id(engine, &job);
    return 0;
}

int bel__recurring_plan(struct bel_engine *engine, const struct bel_job_found *job,
                        struct bel_found *out)
{
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC);
    int err = bel__timer_peek(engine, topic, job->row.id, out);
    if (err) return err;
    return out->record.kind == BEL_RECORD_PLAN && out->state < BEL_DONE ? 0 : BEL_ENOTFOUND;
}

int bel__occurrence_finish(struct bel_engine *engine, struct bel_found *found)
{
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    struct bel_ending ending = {.state = BEL_DONE};
    bel__timer_end(engine, found, &ending);
    return 0;
}

int bel__recurring_report(struct bel_engine *engine, const struct bel_job_row *row)
{
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC);
    struct bel_found found;
    int err = bel__timer_peek(engine, topic, row->id, &found);
    if (err == BEL_ENOTFOUND || (err == 0 && found.state >= BEL_DONE)) {
        return bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    }
    return err ? err : bel__occurrence_finish(engine, &found);
}

int bel__recurring_end(struct bel_engine *engine, const struct bel_job_found *job)
{
    struct bel_found plan;
    int err = bel__recurring_plan(engine, job, &plan);
    if (err == BEL_ENOTFOUND) return 0;
    if (err == 0) err = bel__occurrences_cancel(engine, &plan);
    if (err == 0) err = bel__timer_reserve(engine, &plan, 0, BEL_STORE_END);
    if (err) return err;
    struct bel_ending ending = {.state = BEL_CANCELLED};
    bel__timer_end(engine, &plan, &ending);
    return 0;
}
