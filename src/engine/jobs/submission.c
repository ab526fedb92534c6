/* SPDX-License-Identifier: MIT */

/*
 * A job is written in slices, and nobody sees it before the last one:
 *
 *     parse ---> check ids and limits ---> begin ---> write tasks ---> complete
 *                                            |             |               |
 *                    rows, in batches:       |             |               |
 *                    JOBS, submitting -------'             |               '---- JOBS, live
 *                    JOB_WORK, remove                      |                     JOB_WORK, start
 *                                   TIMERS, TASKS, EDGES --'                     numbers of topics
 *
 * The first batch has a row that removes the job. The last batch deletes that row: if it does not
 * become durable, the engine that is opened next removes what there is. All tasks are written as
 * blocked timers that no number counts. The last batch counts them, and its work unblocks those
 * without dependencies, in slices. Commands and claims see the job when that is done, and the reply
 * of SUBMIT follows: a claim after it finds every task that is ready, in the order of the job.
 *
 * A job that replaces another one has the same id, and often the same ids of tasks. It is written
 * without ids. One batch then lets it follow the old one, which is removed in slices; after that,
 * the new one gets its ids in slices. Nobody sees either meanwhile.
 */
#include "engine/jobs/submission.h"

#include "core/view.h"
#include "engine/jobs/job_topics.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/jobs/state.h"
#include "engine/jobs/task.h"
#include "engine/jobs/then.h"
#include "engine/jobs/work.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"
#include "jobs/parser.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOPICS_MAX = 1000,  /* of a job: all their numbers change in one batch */
    ID_BYTES = 160,     /* of a job's id and a slash */
    PARSE_UNITS = 8000, /* of a full step of the parser */
    BYTES_OF_PARSE_UNIT = 32,
    BYTES_OF_UNIT = 128, /* of payloads: copied into the batch, the delta and the log */
};

enum stage {
    STAGE_PARSE,
    STAGE_ID,
    STAGE_RECUR,
    STAGE_TOPICS,
    STAGE_CHECK,
    STAGE_BEGIN,
    STAGE_THEN,
    STAGE_WRITE,
    STAGE_COMPLETE,
    STAGE_SWAP,
    STAGE_WAIT,
    STAGE_DONE,
};

struct bel_submission {
    struct bel_submission *next; /* in the list of all */
    const struct bel_job_submit *submit;
    enum stage stage;
    struct bel_job_parser *parser; /* until the graph is ready */
    struct bel_job_graph *graph;
    struct bel_job_topics topics; /* of the graph; found before they are made */
    struct bel_job_found job;     /* its id is that of the graph */
    uint32_t position;            /* the next task */
    uint64_t number;              /* of the job */
    uint64_t old, old_chain;      /* number of the job to replace, and its chain; 0: none */
    bool is_own;                  /* made by the engine, without a request */
    uint64_t parent, chain;       /* of a follower; else 0 */
    uint64_t plan;                /* if a recurring job makes it */
    bool has_nominal;             /* its id has a nominal time */
    struct bel_wall nominal;
    struct bel_job_submit own; /* of a follower: `submit` */
    char *text;                /* of a follower: what `own` points to */
    char by_id[BEL_ID_BYTES];  /* of the parent or the recurring job */
    size_t by_id_bytes;
    char made_id[BEL_MADE_ID_BYTES];
};

static bool has_begun(const struct bel_submission *submission)
{
    return submission->stage > STAGE_BEGIN && submission->stage < STAGE_DONE;
}

static uint32_t *left_of(const struct bel_engine *engine)
{
    return &engine->jobs->left;
}

static void spend(const struct bel_engine *engine, uint64_t units)
{
    *left_of(engine) -= *left_of(engine) < units ? *left_of(engine) : (uint32_t)units;
}

/* --- the stages --- */

static int parse(struct bel_engine *engine, struct bel_submission *submission,
                 struct bel_reply *reply)
{
    uint64_t units = 1 + submission->submit->text.bytes / BYTES_OF_PARSE_UNIT;
    spend(engine, units < PARSE_UNITS ? units : PARSE_UNITS);
    int err = bel__job_parser_step(submission->parser, BEL_JOB_PARSER_WORK);
    if (err == BEL_JOB_PARSER_MORE) return BEL_SUBMISSION_MORE;
    if (err) return bel__refuse(reply, err, "%s", bel__job_parser_why(submission->parser));
    submission->graph = bel__job_parser_take(submission->parser);
    bel__job_parser_destroy(submission->parser);
    submission->parser = NULL;
    submission->stage = STAGE_ID;
    return 0;
}

static int check_graph(const struct bel_submission *submission, struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    if (!bel__job_graph_in_scope(graph, &submission->submit->scope)) {
        return bel__refuse(reply, BEL_ENOTFOUND, "a topic of the job is out of reach of the key");
    }
    if (graph->topics_count > TOPICS_MAX) {
        return bel__refuse(reply, BEL_EFULL, "too many topics: a job has at most %d", TOPICS_MAX);
    }
    return 0;
}

/* Refuses an id that a chain of jobs has reserved. Names the first job of the chain while it is
 * unfinished, if the key may see it. */
static int refuse_reserved(struct bel_engine *engine, const struct bel_submission *submission,
                           uint64_t chain, struct bel_reply *reply)
{
    struct bel_view id = submission->graph->id;
    struct bel_job_found first;
    bool is_shown = false;
    int err = bel__job_load(engine, chain, &first);
    if (err == 0) {
        err = bel__job_is_in_scope(engine, &first, &submission->submit->scope, &is_shown);
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (!is_shown) {
        return bel__refuse(reply, BEL_ECONFLICT, "the id %.*s is reserved by `then` of a job",
                           (int)id.bytes, (const char *)id.data);
    }
    return bel__refuse(reply, BEL_ECONFLICT, "the id %.*s is reserved by `then` of job %.*s",
                       (int)id.bytes, (const char *)id.data, (int)first.row.id.bytes,
                       (const char *)first.row.id.data);
}

/* Checks that the ids of `then` are free, or reserved by this chain or that of the job to
 * replace. */
static int look_at_thens(struct bel_engine *engine, const struct bel_submission *submission,
                         uint64_t chain, struct bel_reply *reply)
{
    const uint64_t chains[2] = {chain, submission->old_chain};
    struct bel_view taken;
    int err = bel__then_look(engine, submission->graph, chains, &taken);
    if (err != 0 || taken.bytes == 0) return err;
    return bel__refuse(reply, BEL_ECONFLICT, "the id %.*s belongs to a job, or to one in `then`",
                       (int)taken.bytes, (const char *)taken.data);
}

/* Sets `*out` to the chain that has reserved the id of the job for another one; 0: none. */
static int find_reserver(struct bel_engine *engine, const struct bel_submission *submission,
                         uint64_t *out)
{
    enum bel_id_use use;
    int err = bel__id_look(engine, submission->graph->id, &use, out);
    assert(err != 0 || use != BEL_ID_RESERVED || *out != 0);
    if (err == 0 && *out == submission->chain) *out = 0;
    return err;
}

/* Checks that neither the id of the job nor those of its `then` belong to others. */
static int look_at_reserved(struct bel_engine *engine, const struct bel_submission *submission,
                            struct bel_reply *reply)
{
    uint64_t chain;
    int err = find_reserver(engine, submission, &chain);
    if (err) return err;
    if (chain != 0) return refuse_reserved(engine, submission, chain, reply);
    return look_at_thens(engine, submission, submission->chain, reply);
}

/* Checks the id: it is free, or belongs to the job to replace. Waits if a job with this id is being
 * removed. */
static int look_at_id(struct bel_engine *engine, struct bel_submission *submission,
                      struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    bool is_in_scope = true;
    struct bel_job_found old = {0};
    int err = check_graph(submission, reply);
    submission->old = submission->old_chain = submission->position = 0;
    if (err == 0 && !submission->is_own) err = bel__pressure_check(engine, NULL, reply);
    if (err) return err;
    err = bel__job_find_any(engine, graph->id, &old);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (err == 0) {
        bool is_hidden = bel__job_is_hidden(&engine->job_marks, old.row.number);
        bool is_submitted = bel__job_is_submitted(&engine->job_marks, old.row.number);
        if (is_hidden && !is_submitted) return BEL_SUBMISSION_MORE;
        if (is_hidden || !submission->submit->is_replacement) {
            return bel__refuse(reply, BEL_ECONFLICT, "a job with the id %.*s already exists",
                               (int)graph->id.bytes, (const char *)graph->id.data);
        }
        err = bel__job_is_in_scope(engine, &old, &submission->submit->scope, &is_in_scope);
        if (err) return err;
        if (!is_in_scope) return bel__job_refuse_unknown(reply, graph->id);
        submission->old = old.row.number;
        submission->old_chain = old.row.chain;
    }
    err = look_at_reserved(engine, submission, reply);
    if (err) return err;
    err = bel__job_topics_init(&submission->topics, graph);
    if (err) return err;
    submission->stage = graph->is_recurring ? STAGE_RECUR : STAGE_TOPICS;
    return 0;
}

static int answer(struct bel_engine *engine, const struct bel_submission *submission,
                  struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    struct bel_view id = bel__answer_copy(engine, graph->id);
    if (id.data == NULL) return BEL_ENOMEM;
    reply->submitted = (struct bel_job_submitted){
        .id = id, .tasks = graph->tasks_count, .edges = graph->edges_count};
    return 0;
}

/* Finds the job to replace. Sets `*out_is_gone` if it was removed since. */
static int find_old(struct bel_engine *engine, const struct bel_submission *submission,
                    struct bel_job_found *out, bool *out_is_gone, struct bel_reply *reply)
{
    int err = bel__job_find_any(engine, submission->graph->id, out);
    *out_is_gone = err == BEL_ENOTFOUND;
    if (err) return *out_is_gone ? look_at_reserved(engine, submission, reply) : err;
    if (out->row.number == submission->old) return 0;
    return bel__refuse(reply, BEL_ECONFLICT, "the job was replaced by another request");
}

/* Sets `*out` to how many unfinished tasks the old job has in a topic. */
static int count_old(struct bel_engine *engine, const struct bel_submission *submission,
                     const struct bel_topic_state *topic, uint64_t *out)
{
    struct bel_share_name share = {submission->graph->id, true};
    struct bel_key key = bel__timer_share_key(engine, topic->number, share);
    struct bel_count *count;
    *out = 0;
    if (submission->old == 0) return 0;
    int err = bel__count_hold(&engine->rows.counts, engine->store, &key, &count);
    if (err == 0) *out = count->numbers[0];
    return err;
}

static int check_depth(struct bel_engine *engine, const struct bel_submission *submission,
                       uint32_t index, struct bel_reply *reply)
{
    const struct bel_topic_state *topic = submission->topics.states[index];
    uint64_t depth = topic == NULL ? 0 : bel__topic_settings(topic)->depth;
    uint64_t old = 0;
    if (depth == 0 || submission->is_own) return 0;
    int err = bel__pressure_check(engine, topic, reply);
    if (err == 0) err = count_old(engine, submission, topic, &old);
    if (err) return err;
    uint64_t count = topic->numbers[BEL_NUMBER_PENDING] + topic->numbers[BEL_NUMBER_BLOCKED] +
                     submission->graph->topics[index].tasks_count;
    if (count <= depth + old) return 0;
    return bel__refuse(reply, BEL_EFULL, "topic %.*s: the job would exceed its depth of %llu",
                       (int)topic->name_bytes, topic->name, (unsigned long long)depth);
}

/* Finds the topics that exist, and checks that the job fits into them. */
static int look_at_topics(struct bel_engine *engine, struct bel_submission *submission,
                          struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    for (uint32_t i = 0; i < graph->topics_count; i++) {
        submission->topics.states[i] = bel__topic_find(&engine->topics, graph->topics[i].name);
        int err = check_depth(engine, submission, i, reply);
        if (err) return err;
    }
    spend(engine, graph->topics_count);
    submission->stage = STAGE_CHECK;
    return 0;
}

/* Writes the id of a task's timer to `out`. */
static struct bel_view timer_id(const struct bel_submission *submission, uint32_t task,
                                char out[BEL_ID_BYTES])
{
    struct bel_view job = submission->graph->id, id = submission->graph->tasks[task].id;
    assert(job.bytes > 0 && job.bytes + 1 + id.bytes <= BEL_ID_BYTES);
    memcpy(out, job.data, job.bytes);
    out[job.bytes] = '/';
    memcpy(out + job.bytes + 1, id.data, id.bytes);
    return (struct bel_view){out, job.bytes + 1 + id.bytes};
}

/* Checks that a task's id is free. */
static int check_id(struct bel_engine *engine, const struct bel_submission *submission,
                    uint32_t task, struct bel_reply *reply)
{
    struct bel_topic_state *topic =
        submission->topics.states[submission->graph->tasks[task].topic_index];
    char bytes[BEL_ID_BYTES];
    struct bel_found found;
    if (topic == NULL) return 0;
    struct bel_view id = timer_id(submission, task, bytes);
    int err = bel__timer_find_any(engine, topic, id, &found);
    if (err == BEL_ENOTFOUND) return 0;
    if (err) return err;
    if (submission->old != 0 && found.record.job.number == submission->old) return 0;
    return bel__refuse(reply, BEL_ECONFLICT,
                       "a timer with the id %.*s already exists in topic %.*s", (int)id.bytes,
                       (const char *)id.data, (int)topic->name_bytes, topic->name);
}

/* Looks for ids that are in use, before anything is written. */
static int check_ids(struct bel_engine *engine, struct bel_submission *submission,
                     struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    for (; submission->position < graph->tasks_count; submission->position++) {
        if (*left_of(engine) == 0) return BEL_SUBMISSION_MORE;
        spend(engine, 2);
        int err = check_id(engine, submission, submission->position, reply);
        if (err) return err;
    }
    submission->stage = STAGE_BEGIN;
    submission->position = 0;
    return 0;
}

static int make_topics(struct bel_engine *engine, struct bel_submission *submission,
                       struct bel_reply *reply)
{
    int err = bel__job_topics_make(engine, &submission->topics, reply);
    return err == BEL_JOB_TOPICS_MORE ? BEL_SUBMISSION_MORE : err;
}

/* Writes the first rows of the job. */
static int begin(struct bel_engine *engine, struct bel_submission *submission,
                 struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    struct bel_job_found *job = &submission->job;
    int err = make_topics(engine, submission, reply);
    if (err) return err;
    uint32_t topics = submission->topics.numbers_count;
    size_t bytes = BEL_JOB_BYTES + bel__edges_rows(topics) * (size_t)BEL_EDGES_ROW_BYTES_MAX;
    err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS + bel__edges_rows(topics), bytes,
                            BEL_STORE_ADD);
    if (err) return err;
    uint64_t number = submission->number;
    err = bel__job_hide_submitted(&engine->job_marks, number);
    if (err) return err;
    job->key = bel__job_key(number);
    job->row = (struct bel_job_row){
        .number = number,
        .phase = BEL_JOB_PHASE_SUBMITTING,
        .priority = graph->priority,
        .created = (uint64_t)engine->now.wall,
        .pace_ms = graph->pace_ms,
        .tasks = graph->tasks_count,
        .edges = graph->edges_count,
        .topics = topics,
        .replaces = submission->old,
        .cooldown_ms = graph->cooldown_ms,
        .thens = graph->then_count,
        .parent = submission->parent,
        .plan = submission->plan,
        .nominal = submission->plan != 0 ? (uint64_t)submission->nominal.ms : 0,
        .chain = submission->chain != 0 ? submission->chain : number,
        .id = graph->id,
    };
    struct bel_view by_id = {submission->by_id, submission->by_id_bytes};
    *(submission->plan != 0 ? &job->row.plan_id : &job->row.parent_id) = by_id;
    bel__job_add_work(engine, job, BEL_WORK_REMOVE, 0, 0);
    bel__job_put(engine, job);
    if (submission->old == 0) bel__job_put_id(engine, job);
    bel__job_topics_put(engine, &submission->topics, number);
    submission->position = 0;
    submission->stage = STAGE_THEN;
    return 0;
}

/* Writes a recurring job: its row, its text, its topics and its plan, in one batch, which begins to
 * remove the job that it replaces. Its topics are made before, in slices. */
static int recur(struct bel_engine *engine, struct bel_submission *submission,
                 struct bel_reply *reply)
{
    struct bel_recurring_parts parts = {.number = submission->number,
                                        .text = submission->submit->text,
                                        .topics = &submission->topics};
    struct bel_job_found old;
    bool is_gone = true;
    int err = bel__recurring_check(engine, submission->graph, reply);
    if (err == 0) err = make_topics(engine, submission, reply);
    if (err == 0 && submission->old != 0) {
        err = find_old(engine, submission, &old, &is_gone, reply);
    }
    if (err) return err;
    if (!is_gone && old.row.phase != BEL_JOB_PHASE_REMOVING) parts.old = &old;
    err = bel__recurring_write(engine, submission->graph, &parts, reply);
    if (err == 0) submission->stage = STAGE_WAIT;
    return err;
}

static int write_thens(struct bel_engine *engine, struct bel_submission *submission,
                       struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    /* Since the last slice, a follower of the job to replace may have begun. */
    int err = look_at_thens(engine, submission, submission->job.row.chain, reply);
    if (err) return err;
    for (; submission->position < graph->then_count; submission->position++) {
        const struct bel_job_then *then = &graph->then[submission->position];
        if (*left_of(engine) == 0) return BEL_SUBMISSION_MORE;
        err = bel__then_write(engine, &submission->job, then, submission->position);
        if (err) return err;
        spend(engine, BEL_UNITS_TIMER + then->text.bytes / BYTES_OF_UNIT);
    }
    submission->position = 0;
    submission->stage = STAGE_WRITE;
    return 0;
}

/* --- tasks --- */

static void put_task(struct bel_engine *engine, const struct bel_submission *submission,
                     uint32_t task, const struct bel_key *timer)
{
    const struct bel_job_graph *graph = submission->graph;
    const struct bel_job_node *node = &graph->tasks[task];
    const struct bel_job_edge *after = bel__job_after(graph, task);
    uint64_t number = submission->job.row.number;
    struct bel_task_row row = {
        .key = *timer,
        .open = node->after_count,
        .depth = node->depth,
        .after_count = node->after_count,
        .dependents_count = node->dependents_count,
        .when = node->when,
        .time = node->when == BEL_WHEN_AT ? (uint64_t)(node->at.ms < 0 ? 0 : node->at.ms)
                                          : node->delay_ms,
    };
    for (uint32_t i = 0; i < node->after_count; i++) {
        row.handles |= after[i].on != BEL_EDGE_SUCCESS;
    }
    bel__task_put(engine, number, task, &row);
    bel__edges_put(
        engine, &(struct bel_edge_list){number, BEL_EDGES_AFTER, task, node->after_count}, after);
    bel__edges_put(
        engine, &(struct bel_edge_list){number, BEL_EDGES_DEPENDENTS, task, node->dependents_count},
        bel__job_dependents(graph, task));
}

/* Fills in the record of a task's timer, without id and body. */
static void fill_record(const struct bel_engine *engine, const struct bel_submission *submission,
                        uint32_t task, struct bel_record *out)
{
    const struct bel_job_node *node = &submission->graph->tasks[task];
    bel__record_begin(out, BEL_RECORD_TIMER);
    out->resource = node->resource;
    out->created = engine->now.wall;
    out->lease_ms = node->idle_ms;
    out->group = submission->job.row.id;
    out->job = (struct bel_task_of){.number = submission->job.row.number,
                                    .index = task,
                                    .priority = submission->graph->priority,
                                    .depth = node->depth,
                                    .cost = node->cost};
}

static struct bel_schedule_spec spec_of(const struct bel_submission *submission, uint32_t task)
{
    const struct bel_job_node *node = &submission->graph->tasks[task];
    return (struct bel_schedule_spec){
        .payload = node->payload,
        .headers = node->headers,
        .headers_count = node->headers_count,
        .correlation = node->correlation,
        .retry = node->retry.bytes > 0 ? node->retry : submission->graph->retry,
    };
}

static int write_task(struct bel_engine *engine, struct bel_submission *submission, uint32_t task,
                      struct bel_reply *reply)
{
    const struct bel_job_node *node = &submission->graph->tasks[task];
    struct bel_topic_state *topic = submission->topics.states[node->topic_index];
    struct bel_schedule_spec spec = spec_of(submission, task);
    struct bel_record record;
    char id[BEL_ID_BYTES];
    int err = check_id(engine, submission, task, reply);
    if (err) return err;
    fill_record(engine, submission, task, &record);
    record.id = timer_id(submission, task, id);
    size_t body_bytes = bel__body_bytes(&spec);
    uint8_t *body = bel__answer_take(engine, body_bytes);
    if (body == NULL) return BEL_ENOMEM;
    bel__body_write(&spec, body);
    size_t lists =
        (size_t)bel__edges_rows(node->after_count) + bel__edges_rows(node->dependents_count);
    size_t rows = 4 + lists + bel__blob_rows(body_bytes);
    size_t bytes = BEL_RECORD_BYTES_MAX + BEL_TASK_ROW_BYTES_MAX + sizeof(struct bel_key) +
                   body_bytes + lists * BEL_EDGES_ROW_BYTES_MAX;
    err = bel__rows_reserve(&engine->rows, rows, bytes, BEL_STORE_ADD);
    if (err) return err;
    struct bel_view view = {.data = body, .bytes = body_bytes};
    record.body = bel__blob_put(&engine->rows, view, BEL_BODY_INLINE_MAX);
    struct bel_place place = bel__timer_place(engine, topic, BEL_LANE_NONE, 0, node->priority);
    place.time = place.sequence; /* blocked timers are listed by sequence */
    struct bel_key key = bel__key_of(&place);
    bel__timer_stage(engine, &place, &record);
    if (submission->old == 0) bel__alias_put(engine, &key, &record, BEL_ROW_NEW);
    put_task(engine, submission, task, &key);
    spend(engine, BEL_UNITS_TIMER + node->after_count / 8 + node->dependents_count / 8 +
                      body_bytes / BYTES_OF_UNIT);
    return 0;
}

static int write_tasks(struct bel_engine *engine, struct bel_submission *submission,
                       struct bel_reply *reply)
{
    for (; submission->position < submission->graph->tasks_count; submission->position++) {
        if (*left_of(engine) == 0) return BEL_SUBMISSION_MORE;
        int err = write_task(engine, submission, submission->position, reply);
        if (err) return err;
    }
    submission->stage = submission->old == 0 ? STAGE_COMPLETE : STAGE_SWAP;
    submission->position = 0;
    return 0;
}

bool bel__submission_replaces(const struct bel_engine *engine, struct bel_view id)
{
    const struct bel_submission *at = engine->jobs->submissions;
    while (at != NULL && !(at->old != 0 && has_begun(at) && bel__view_equal(at->graph->id, id))) {
        at = at->next;
    }
    return at != NULL;
}

/* --- the last batch --- */

static struct bel_share_name share_of(const struct bel_submission *submission)
{
    return (struct bel_share_name){.name = submission->job.row.id, .is_job = true};
}

static int check_last(struct bel_engine *engine, struct bel_submission *submission,
                      struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    uint64_t deadline = 0;
    for (uint32_t i = 0; i < graph->topics_count; i++) {
        struct bel_topic_state *topic = submission->topics.states[i];
        struct bel_place place = {.topic = topic->number, .lane = BEL_LANE_NONE};
        int err = check_depth(engine, submission, i, reply);
        if (err == 0) err = bel__timer_hold(engine, topic, &place, share_of(submission));
        if (err) return err;
    }
    if (graph->timeout_ms == 0) return 0;
    int err = bel__times_after(&engine->now, graph->timeout_ms, &deadline);
    if (err) return bel__refuse(reply, err, "timeout: the time is after the year 9999");
    submission->job.row.deadline = deadline;
    return 0;
}

static void delete_removal(struct bel_engine *engine, struct bel_job_found *job)
{
    struct bel_key removal = bel__work_key(job->row.number, BEL_WORK_REMOVE, 0);
    bel__rows_delete(&engine->rows, &removal);
    assert(job->row.works == 1);
    job->row.works = 0;
    job->row.created = (uint64_t)engine->now.wall;
    bel__job_leave_submitted(&engine->job_marks, job->row.number);
}

/* Removes the old job, and lets the new one follow: from this batch on, also after a crash. */
static int swap(struct bel_engine *engine, struct bel_submission *submission,
                struct bel_reply *reply)
{
    struct bel_job_found *job = &submission->job, old;
    bool is_gone = false;
    int err = check_last(engine, submission, reply);
    if (err == 0) err = find_old(engine, submission, &old, &is_gone, reply);
    if (err) return err;
    err = bel__rows_reserve(&engine->rows, (size_t)4 * BEL_JOB_ROWS + 2 * (size_t)BEL_TIMER_ROWS,
                            (size_t)4 * BEL_JOB_BYTES + 2 * (size_t)BEL_TIMER_BYTES, BEL_STORE_ADD);
    if (err == 0 && !is_gone && old.row.phase != BEL_JOB_PHASE_REMOVING) {
        bool is_plan = old.row.phase == BEL_JOB_PHASE_PLAN;
        err = bel__job_keep_mark(&engine->job_marks, old.row.number);
        if (err == 0 && is_plan) err = bel__recurring_forget(engine, job->row.id);
        if (err == 0) err = bel__job_begin_removal(engine, &old);
    }
    if (err) return err;
    delete_removal(engine, job);
    job->row.phase = BEL_JOB_PHASE_REPLACING;
    bel__job_add_work(engine, job, BEL_WORK_ADOPT, 0, 0);
    bel__job_put(engine, job);
    bel__job_put_id(engine, job);
    submission->stage = STAGE_WAIT;
    return 0;
}

/* Waits until everyone sees the job: it has replaced the old one, and its tasks without
 * dependencies are unblocked. A small job need not wait for the next turn. */
static int wait(struct bel_engine *engine, struct bel_submission *submission,
                struct bel_reply *reply)
{
    /* A recurring job has no tasks: its ids are free when the old job is removed. */
    uint64_t number = submission->graph->is_recurring ? submission->old : submission->number;
    if (bel__job_is_hidden(&engine->job_marks, number)) {
        int err = bel__work_turn(engine);
        if (err) return err;
    }
    if (bel__job_is_hidden(&engine->job_marks, number)) return BEL_SUBMISSION_MORE;
    int err = answer(engine, submission, reply);
    if (err == 0) submission->stage = STAGE_DONE;
    return err;
}

static int complete(struct bel_engine *engine, struct bel_submission *submission,
                    struct bel_reply *reply)
{
    const struct bel_job_graph *graph = submission->graph;
    int err = check_last(engine, submission, reply);
    if (err) return err;
    size_t topics = graph->topics_count;
    err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS + 4 + 2 * topics,
                            BEL_JOB_BYTES + topics * 2 * (size_t)BEL_COUNT_ROW_BYTES_MAX,
                            BEL_STORE_ADD);
    if (err) return err;
    for (uint32_t i = 0; i < topics; i++) {
        bel__timer_count_staged(engine, submission->topics.states[i], share_of(submission),
                                graph->topics[i].tasks_count);
        spend(engine, BEL_UNITS_EDGE);
    }
    delete_removal(engine, &submission->job);
    bel__job_begin(engine, &submission->job);
    submission->stage = submission->is_own ? STAGE_DONE : STAGE_WAIT; /* without a request */
    return 0;
}

/* --- from outside --- */

/* The limits of a text that was accepted when it was stored, maybe with other settings. */
static const struct bel_job_limits stored_limits = {.text_bytes_max = UINT64_MAX,
                                                    .payload_bytes_max = BEL_PAYLOAD_BYTES_MAX,
                                                    .tasks_max = UINT32_MAX,
                                                    .edges_max = UINT32_MAX,
                                                    .then_depth_max = BEL_JOB_THEN_DEPTH_MAX};

/* Makes the parser, and enters the submission into the list. */
static int open_submission(struct bel_engine *engine, struct bel_submission *submission)
{
    submission->number = bel__rows_sequence(&engine->rows);
    bel__made_id(&(struct bel_place){.lane = BEL_LANE_NONE, /* no timer has this id */
                                     .time = (uint64_t)engine->now.wall,
                                     .priority = BEL_PRIORITY_DEFAULT,
                                     .sequence = submission->number},
                 submission->made_id);
    struct bel_job_parser_options options = {
        .text = submission->submit->text,
        .id = submission->submit->id,
        .made_id = {submission->made_id, sizeof submission->made_id},
        .zones = engine->zones,
        .now = {engine->now.wall},
        .is_stored = submission->is_own,
        .secret = engine->topics.by_name.secret,
        .has_nominal = submission->has_nominal,
        .nominal = submission->nominal};
    options.limits = submission->is_own ? stored_limits : engine->job_limits;
    int err = bel__job_parser_create(&options, &submission->parser);
    if (err) return err;
    submission->next = engine->jobs->submissions;
    engine->jobs->submissions = submission;
    return 0;
}

int bel__submission_create(struct bel_engine *engine, const struct bel_job_submit *submit,
                           struct bel_submission **out)
{
    struct bel_submission *submission = calloc(1, sizeof *submission);
    if (submission == NULL) return BEL_ENOMEM;
    submission->submit = submit;
    int err = open_submission(engine, submission);
    if (err) free(submission);
    if (err == 0) *out = submission;
    return err;
}

int bel__submission_create_follower(struct bel_engine *engine, const struct bel_follower *follower,
                                    struct bel_submission **out)
{
    struct bel_submission *submission = calloc(1, sizeof *submission);
    char *text = malloc(follower->text.bytes + follower->id.bytes);
    int err = BEL_ENOMEM;
    if (submission == NULL || text == NULL) goto fail;
    memcpy(text, follower->text.data, follower->text.bytes);
    memcpy(text + follower->text.bytes, follower->id.data, follower->id.bytes);
    submission->own =
        (struct bel_job_submit){.text = {text, follower->text.bytes},
                                .id = {text + follower->text.bytes, follower->id.bytes}};
    submission->submit = &submission->own;
    submission->text = text;
    submission->is_own = true;
    submission->parent = follower->parent;
    submission->chain = follower->chain;
    submission->plan = follower->plan;
    submission->has_nominal = follower->has_nominal;
    submission->nominal = follower->nominal;
    struct bel_view by = follower->plan != 0 ? follower->plan_id : follower->parent_id;
    assert(by.bytes <= sizeof submission->by_id);
    memcpy(submission->by_id, by.data, by.bytes);
    submission->by_id_bytes = by.bytes;
    err = open_submission(engine, submission);
    if (err) goto fail;
    *out = submission;
    return 0;

fail:
    free(text);
    free(submission);
    return err;
}

/* Lets all be checked again if another job has got or reserved the id since: a submission that
 * waits for room in the log can be overtaken. */
static int look_again(struct bel_engine *engine, struct bel_submission *submission)
{
    struct bel_job_found job;
    int err = bel__job_find_any(engine, submission->graph->id, &job);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (err == 0 && job.row.number == submission->old) return 0;
    if (err == BEL_ENOTFOUND) {
        uint64_t chain;
        err = find_reserver(engine, submission, &chain);
        if (err != 0 || chain == 0) return err;
    }
    bel__job_topics_finish(&submission->topics);
    submission->stage = STAGE_ID;
    return 0;
}

int bel__submission_step(struct bel_engine *engine, struct bel_submission *submission,
                         struct bel_reply *reply)
{
    static int (*const stages[])(struct bel_engine *, struct bel_submission *,
                                 struct bel_reply *) = {
        [STAGE_PARSE] = parse,       [STAGE_ID] = look_at_id,
        [STAGE_RECUR] = recur,       [STAGE_TOPICS] = look_at_topics,
        [STAGE_CHECK] = check_ids,   [STAGE_BEGIN] = begin,
        [STAGE_THEN] = write_thens,  [STAGE_WRITE] = write_tasks,
        [STAGE_COMPLETE] = complete, [STAGE_SWAP] = swap,
        [STAGE_WAIT] = wait,
    };
    int err = 0;
    while (err == 0 && submission->stage < STAGE_DONE) {
        if (*left_of(engine) == 0) return BEL_SUBMISSION_MORE;
        bool writes = submission->stage == STAGE_BEGIN || submission->stage == STAGE_RECUR;
        if (writes) err = look_again(engine, submission);
        if (err == 0) err = stages[submission->stage](engine, submission, reply);
    }
    bool waits = err == BEL_EFULL && reply->why[0] == 0 && bel__store_makes_room(engine->store);
    return waits ? BEL_SUBMISSION_MORE : err; /* the log was filled by the slices before */
}

void bel__submission_destroy(struct bel_engine *engine, struct bel_submission *submission)
{
    struct bel_submission **at = &engine->jobs->submissions;
    while (*at != submission) {
        at = &(*at)->next;
    }
    *at = submission->next;
    if (has_begun(submission)) {
        bel__job_leave_submitted(&engine->job_marks, submission->job.row.number);
        engine->jobs->has_work = true;
    }
    bel__job_parser_destroy(submission->parser);
    bel__job_graph_destroy(submission->graph);
    bel__job_topics_finish(&submission->topics);
    free(submission->text);
    free(submission);
}

void bel__submissions_destroy(struct bel_engine *engine)
{
    while (engine->jobs->submissions != NULL) {
        bel__submission_destroy(engine, engine->jobs->submissions);
    }
}
