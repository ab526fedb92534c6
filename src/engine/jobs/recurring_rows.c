/* SPDX-License-Identifier: MIT */

/*
 * One batch writes all of a recurring job:
 *
 *     JOBS      phase plan
 *     EDGES     its text, like that of a job of `then`; the topics in it
 *     PLANS     its plan, with the id of the job, in a topic of its own
 *
 * The row of a recurring job has no tasks. Its `unhandled` counts the times in a row that overlap
 * has skipped. When the plan has no more times and all its jobs have ended, the job ends, too. The
 * plan stays until the job is removed, with the numbers of its times.
 *
 * A nominal time is counted when the plan rings: as made, if there is an occurrence. The batch that
 * ends an occurrence without a job counts it as skipped instead.
 *
 * The batch that replaces a recurring job leaves its queue as it is, so that nothing can fail after
 * the first change. The queue is dropped when the old job is removed, while nobody sees it, or when
 * the plan of the new one rings before that.
 */
#include "engine/jobs/recurring_rows.h"

#include "core/view.h"
#include "engine/jobs/then.h"
#include "engine/rows/blob.h"
#include "engine/state/occurrence.h"
#include "engine/state/plan.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"

#include <assert.h>
#include <string.h>

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
    if (err == BEL_EINVAL) return bel__refuse(reply, err, "invalid plan: %s", why.expected);
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
    struct bel_plan_state state = {
        .has_next = true, .next = first, .sequence = bel__rows_sequence(&engine->rows)};
    bel__plan_add(engine, topic, record, &state);
}

int bel__recurring_check(struct bel_engine *engine, const struct bel_job_graph *graph,
                         struct bel_reply *reply)
{
    struct bel_record record;
    uint64_t first = 0;
    return fill_plan(engine, graph, reply, &record, &first);
}

/* Finds the plan with the id of a job, also one that has ended. */
static int find_plan(struct bel_engine *engine, struct bel_view id, struct bel_found *out)
{
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC);
    if (topic == NULL) return BEL_ENOTFOUND;
    return bel__timer_peek(engine, topic, id, out);
}

int bel__recurring_forget(struct bel_engine *engine, struct bel_view id)
{
    struct bel_found plan;
    int err = find_plan(engine, id, &plan);
    if (err == BEL_ENOTFOUND || (err == 0 && plan.record.kind != BEL_RECORD_PLAN)) return 0;
    if (err == 0) err = bel__timer_reserve(engine, &plan, 0, BEL_STORE_END);
    if (err == 0) bel__timer_remove(engine, &plan);
    return err;
}

/* Returns whether two plans have the same times and policies. `next` is made of a new text. */
static bool is_same_rule(const struct bel_record *old, const struct bel_record *next)
{
    const struct bel_recurrence *a = &old->rule, *b = &next->rule;
    return a->kind == b->kind && a->mode == b->mode && a->gap == b->gap && a->fold == b->fold &&
           a->misfire == b->misfire && a->overlap == b->overlap && a->has_until == b->has_until &&
           a->until.ms == b->until.ms && a->count == b->count && a->spread_ms == b->spread_ms &&
           bel__view_equal(a->rule, b->rule) && bel__view_equal(a->zone, b->zone) &&
           old->has_start == next->has_start && old->start == next->start;
}

/* Ends an occurrence that REPLACE has dropped, unless it has made its job. */
static int drop(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_job_found job;
    bool is_made = found->state == BEL_LEASED;
    int err = is_made ? 0 : bel__occurrence_job(engine, found, &job, &is_made);
    if (err != 0 || is_made) return err;
    err = bel__occurrence_finish(engine, found);
    if (err == 0) engine->stats.skips[BEL_ENGINE_SKIP_QUEUE]++;
    return err;
}

int bel__recurring_drop(struct bel_engine *engine, struct bel_view id)
{
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC);
    struct bel_found plan, found;
    uint64_t from = 0, kept = 0;
    if (topic == NULL) return 0;
    int err = find_plan(engine, id, &plan);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (err == 0 && plan.record.kind == BEL_RECORD_PLAN) kept = plan.record.plan;
    while ((err = bel__occurrences_next(engine, topic, id, from, &found)) == 0) {
        from = found.record.nominal + 1;
        if (found.record.plan == kept) continue;
        err = drop(engine, &found);
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Sets `*out` to whether a new text has the plan of the old one: both have the same rule, and there
 * are times to come. */
static int keeps_plan(struct bel_engine *engine, const struct bel_record *record, bool *out)
{
    struct bel_found old;
    int err = find_plan(engine, record->id, &old);
    *out = err == 0 && old.record.kind == BEL_RECORD_PLAN && old.plan.has_next &&
           is_same_rule(&old.record, record);
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Lets a new text have the plan of the old one: the queue and the counts go on. Otherwise the new
 * plan begins, and the old one is gone. */
static int put_plan(struct bel_engine *engine, struct bel_topic_state *topic,
                    struct bel_record *record, uint64_t first, bool keeps)
{
    if (keeps) {
        return bel__occurrences_unblock(engine, topic, record->id,
                                        record->rule.overlap == BEL_OVERLAP_QUEUE);
    }
    int err = bel__recurring_forget(engine, record->id);
    if (err == 0) add_plan(engine, topic, record, first);
    return err;
}

/* Reserves rows for all of a recurring job, and for the job that it replaces: nothing fails after
 * the first change. */
static int reserve(struct bel_engine *engine, const struct bel_recurring_parts *parts)
{
    size_t text = parts->text.bytes, lists = bel__edges_rows(parts->topics->numbers_count);
    size_t rows = (size_t)6 * BEL_TIMER_ROWS + (size_t)4 * BEL_JOB_ROWS;
    size_t bytes = (size_t)6 * BEL_TIMER_BYTES + (size_t)4 * BEL_JOB_BYTES + BEL_TOPIC_ROW_BYTES;
    return bel__rows_reserve(&engine->rows, rows + bel__blob_rows(text) + lists,
                             bytes + text + lists * BEL_EDGES_ROW_BYTES_MAX, BEL_STORE_ADD);
}

/* Writes the rows of a recurring job; all of them are reserved. */
static void put_job(struct bel_engine *engine, struct bel_job_graph *graph,
                    const struct bel_recurring_parts *parts)
{
    const struct bel_job_then then = {.on = BEL_EDGE_ALWAYS, .text = parts->text, .graph = graph};
    uint64_t number = parts->number;
    struct bel_job_found job = {.key = bel__job_key(number),
                                .row = {.number = number,
                                        .phase = BEL_JOB_PHASE_PLAN,
                                        .state = BEL_JOB_SCHEDULED,
                                        .priority = graph->priority,
                                        .created = (uint64_t)engine->now.wall,
                                        .topics = parts->topics->numbers_count,
                                        .replaces = parts->old != NULL ? parts->old->row.number : 0,
                                        .chain = number,
                                        .parent = number, /* so that it reserves no ids */
                                        .id = graph->id}};
    bel__then_put(engine, &job, &then, 0);
    bel__job_topics_put(engine, parts->topics, number);
    job.row.parent = 0;
    bel__job_put(engine, &job);
    bel__job_put_id(engine, &job);
}

int bel__recurring_write(struct bel_engine *engine, struct bel_job_graph *graph,
                         const struct bel_recurring_parts *parts, struct bel_reply *reply)
{
    struct bel_topic_state *topic = NULL;
    struct bel_record record;
    uint64_t first = 0;
    bool is_new = false, keeps = false;
    int err = fill_plan(engine, graph, reply, &record, &first);
    if (err == 0) err = reserve(engine, parts);
    if (err == 0) err = bel__topic_make(engine, BEL_RECURRING_TOPIC, &topic, &is_new);
    if (err) return err;
    if (is_new) bel__topic_save(engine, topic);
    if (parts->old != NULL && parts->old->row.phase == BEL_JOB_PHASE_PLAN) {
        err = keeps_plan(engine, &record, &keeps);
    }
    if (err == 0 && parts->old != NULL) {
        err = bel__job_keep_mark(&engine->job_marks, parts->old->row.number);
    }
    if (err == 0) err = put_plan(engine, topic, &record, first, keeps);
    if (err == 0 && parts->old != NULL) err = bel__job_begin_removal(engine, parts->old);
    if (err) return err;
    put_job(engine, graph, parts);
    return 0;
}

int bel__recurring_plan(struct bel_engine *engine, const struct bel_job_found *job,
                        struct bel_found *out)
{
    if (job->row.tasks > 0 || job->row.plan != 0) return BEL_ENOTFOUND;
    int err = find_plan(engine, job->row.id, out);
    if (err) return err;
    return out->record.kind == BEL_RECORD_PLAN && out->state < BEL_DONE ? 0 : BEL_ENOTFOUND;
}

int bel__recurring_resume(struct bel_engine *engine, const struct bel_job_found *job)
{
    struct bel_found plan;
    int err = bel__recurring_plan(engine, job, &plan);
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    return bel__occurrences_unblock(engine, plan.topic, job->row.id,
                                    plan.record.rule.overlap == BEL_OVERLAP_QUEUE);
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

/* A job that was made for an occurrence has a later number than the occurrence when it became due,
 * whatever was replaced since. A job with its id that the plan before this one has made has not. */
int bel__occurrence_job(struct bel_engine *engine, const struct bel_found *found,
                        struct bel_job_found *out_job, bool *out)
{
    *out = false;
    int err = bel__job_find_any(engine, found->record.id, out_job);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (err == BEL_ENOTFOUND || !bel__job_is_complete(out_job)) {
        *out_job = (struct bel_job_found){0};
        return 0;
    }
    struct bel_view plan = bel__occurrence_plan(found->record.id);
    *out = bel__view_equal(out_job->row.plan_id, plan) &&
           out_job->row.number > bel__place_of(&found->key).sequence;
    return 0;
}

int bel__occurrence_skip(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_found plan;
    int err = find_plan(engine, bel__occurrence_plan(found->record.id), &plan);
    bool has_plan = err == 0 && plan.record.kind == BEL_RECORD_PLAN && plan.state < BEL_DONE &&
                    plan.record.plan == found->record.plan;
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    err = bel__rows_reserve(&engine->rows, (size_t)2 * BEL_TIMER_ROWS, (size_t)2 * BEL_TIMER_BYTES,
                            BEL_STORE_END);
    if (err == 0) err = bel__occurrence_finish(engine, found);
    if (err) return err;
    if (has_plan && plan.plan.made > 0) bel__plan_skip_made(engine, &plan);
    if (!has_plan) engine->stats.skips[BEL_ENGINE_SKIP_QUEUE]++; /* REPLACE has dropped it */
    return 0;
}

int bel__recurring_is_over(struct bel_engine *engine, const struct bel_job_found *job, bool *out)
{
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC);
    struct bel_occurrences others;
    struct bel_found plan;
    *out = false;
    int err = bel__recurring_plan(engine, job, &plan);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (err == 0 && plan.plan.has_next) return 0;
    err = bel__occurrences_look(engine, topic, job->row.id, BEL_LOOK_ANY, &others);
    if (err == 0) *out = !others.has_any;
    return err;
}

int bel__recurring_settle(struct bel_engine *engine, struct bel_view id)
{
    struct bel_job_found job;
    bool is_over;
    int err = bel__job_find_any(engine, id, &job);
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    if (job.row.phase != BEL_JOB_PHASE_PLAN || job.row.works > 0) return 0;
    err = bel__recurring_is_over(engine, &job, &is_over);
    if (err != 0 || !is_over) return err;
    err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    if (err) return err;
    bel__job_add_work(engine, &job, BEL_WORK_REPORT, 0, 0);
    bel__job_put(engine, &job);
    return 0;
}

/* Notes a time that overlap has skipped, for the log of the program around the engine. */
static void note_overlap(struct bel_engine *engine, struct bel_view id, uint64_t in_a_row)
{
    struct bel_engine_overlaps *overlaps = &engine->stats.overlaps;
    struct bel_engine_overlap *note = &overlaps->last[overlaps->count++ % BEL_OVERLAPS_KEPT];
    assert(id.bytes < sizeof note->job);
    *note = (struct bel_engine_overlap){.in_a_row = in_a_row};
    memcpy(note->job, id.data, id.bytes);
}

int bel__recurring_rings(struct bel_engine *engine, const struct bel_found *plan, bool *out_makes)
{
    struct bel_job_found job;
    int err = bel__job_find_any(engine, plan->record.id, &job);
    *out_makes = err == 0 && job.row.phase == BEL_JOB_PHASE_PLAN && !job.row.is_paused;
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    bool has_queue = bel__job_is_hidden(&engine->job_marks, job.row.replaces);
    return has_queue ? bel__recurring_drop(engine, plan->record.id) : 0;
}

void bel__recurring_rang(struct bel_engine *engine, const struct bel_found *plan, bool is_skipped)
{
    struct bel_job_found job;
    assert(bel__view_equal(bel__topic_name(plan->topic), BEL_RECURRING_TOPIC));
    if (bel__job_find_any(engine, plan->record.id, &job) != 0) return; /* bel__jobs_open() looks */
    if (job.row.phase != BEL_JOB_PHASE_PLAN) return;
    uint64_t before = job.row.unhandled;
    bool is_over = !plan->plan.has_next && job.row.works == 0;
    job.row.unhandled = is_skipped ? before + 1 : 0;
    if (is_skipped) note_overlap(engine, job.row.id, job.row.unhandled);
    if (is_over) bel__job_add_work(engine, &job, BEL_WORK_REPORT, 0, 0);
    if (is_over || job.row.unhandled != before) bel__job_put(engine, &job);
}

/* Ends an occurrence of a job that is cancelled. */
static int end_occurrence(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_job_found job;
    bool is_made = false;
    int err = bel__occurrence_job(engine, found, &job, &is_made);
    if (err) return err;
    return is_made ? bel__occurrence_finish(engine, found) : bel__occurrence_skip(engine, found);
}

int bel__recurring_end(struct bel_engine *engine, const struct bel_job_found *job)
{
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC);
    struct bel_found plan, found;
    int err;
    while ((err = bel__occurrences_first(engine, topic, job->row.id, &found)) == 0) {
        err = end_occurrence(engine, &found);
        if (err) return err;
    }
    if (err == BEL_ENOTFOUND) err = bel__recurring_plan(engine, job, &plan);
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    err = bel__timer_reserve(engine, &plan, 0, BEL_STORE_END);
    if (err == 0) bel__plan_set_next(engine, &plan, false, 0);
    return err;
}
