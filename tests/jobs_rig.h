/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_JOBS_RIG_H
#define BEL_TESTS_JOBS_RIG_H

/*
 * jobs_rig - an engine on a simulated disk, and the commands of jobs in one line each.
 *
 *     struct rig rig = {0};
 *     rig_open(&rig);
 *     CHECK(rig_submit(&rig, "{...}") == 0);
 *     CHECK_TEXT(rig_claim(&rig, "t"), "nightly/fetch");
 *     rig_ack(&rig, "nightly/fetch");
 *     rig_finish(&rig);
 */

#include "ask.h"
#include "check.h"
#include "engine/engine.h"
#include "engine/jobs/state.h"
#include "engine_valid.h"
#include "random.h"
#include "sim/disk.h"
#include "store/tree/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    RIG_LEASES = 32,
    RIG_SEGMENT_BYTES = 1 << 20,
    RIG_TURNS_MAX = 20000,
    RIG_TEXT = 1024,
    RIG_REOPENS_MAX = 300, /* the simulated disk has a limit of files */
};

#define RIG_START INT64_C(1767225600000)

struct rig_task {
    char id[BEL_ID_BYTES], topic[32], reason[BEL_TEXT_BYTES_MAX + 1];
    enum bel_state state;
    uint64_t attempts;
};

/* The reply that came last. */
struct rig_seen {
    bool is_done;
    int err;
    char why[BEL_REPLY_WHY_BYTES];
    uint64_t count;
    char id[BEL_ID_BYTES], token[BEL_TOKEN_BYTES_MAX + 1], text[4096];
    struct bel_job job; /* without its views */
    char reason[BEL_TEXT_BYTES_MAX + 1], parent[BEL_ID_BYTES], clash[BEL_ID_BYTES],
        plan_id[BEL_ID_BYTES];
    struct rig_task tasks[BEL_JOB_GET_COUNT_MAX];
    size_t tasks_count;
    char cursor[64];
    char results[RIG_TEXT]; /* of a delivery: "task=result " each */
    char headers[RIG_TEXT];
    uint64_t counts[BEL_STATES];
};

struct rig {
    struct bel_engine *engine;
    struct bel_now now;
    struct bel_next next;
    struct disk *disk;
    struct bel_tree *tree;
    struct rig_seen seen;
    struct {
        char id[BEL_ID_BYTES], token[BEL_TOKEN_BYTES_MAX + 1];
    } leases[RIG_LEASES];
    uint64_t turns;     /* of the last call */
    uint32_t work_max;  /* units of work in a turn; 0: the default */
    uint32_t reopen_in; /* one of so many turns is followed by a restart; 0: none */
    uint64_t random;    /* for that */
    uint32_t reopens;
    uint64_t job_retention_ms; /* 0: the default */
    uint64_t segment_bytes;    /* of the log; 0: RIG_SEGMENT_BYTES */
};

/* A text that grows. */
struct rig_text {
    size_t used;
    char bytes[1 << 20];
};

__attribute__((format(printf, 2, 3))) static inline void rig_put(struct rig_text *text,
                                                                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof text->bytes - text->used;
    int bytes = vsnprintf(text->bytes + text->used, room, format, args);
    va_end(args);
    CHECK(bytes >= 0 && (size_t)bytes < room);
    text->used += (size_t)bytes;
}

static inline void rig_open(struct rig *rig)
{
    struct bel_engine_options options = {.job_retention_ms = rig->job_retention_ms};
    struct bel_store *store;
    if (rig->now.wall.ms == 0) rig->now = (struct bel_now){{1000000}, {RIG_START}, {1}, 0};
    options.now = rig->now;
    if (rig->disk == NULL) {
        rig->disk = disk_create(1);
        disk_plan(rig->disk)->free_bytes = UINT64_C(1) << 40;
        CHECK(bel__tree_memory_create_lasting(&rig->tree) == 0);
    }
    struct bel_store_options store_options = {
        .io = disk_io(rig->disk), .tree = rig->tree, .segment_bytes = RIG_SEGMENT_BYTES};
    if (rig->segment_bytes > 0) store_options.segment_bytes = rig->segment_bytes;
    CHECK(bel__store_open(&store_options, &store, NULL) == 0);
    CHECK(bel__engine_open_on(&options, store, bel__entropy_system(), &rig->engine) == 0);
    if (rig->work_max > 0) rig->engine->jobs->work_max = rig->work_max;
}

static inline void rig_check(struct rig *rig)
{
    const char *fault = engine_fault(rig->engine);
    CHECK_NOTE("%s", fault == NULL ? "" : fault);
    CHECK(fault == NULL);
}

static inline void rig_reopen(struct rig *rig)
{
    bel_engine_close(rig->engine);
    rig_open(rig);
}

static inline void rig_finish(struct rig *rig)
{
    rig_check(rig);
    bel_engine_close(rig->engine);
    bel__tree_memory_destroy(rig->tree);
    disk_destroy(rig->disk);
}

static inline void rig_copy(struct bel_view from, char *to, size_t room)
{
    CHECK(from.bytes < room);
    if (from.bytes > 0) memcpy(to, from.data, from.bytes);
    to[from.bytes] = 0;
}

static inline void rig_see_job(struct rig_seen *seen, const struct bel_job *job)
{
    seen->job = *job;
    rig_copy(job->id, seen->id, sizeof seen->id);
    rig_copy(job->reason, seen->reason, sizeof seen->reason);
    rig_copy(job->parent, seen->parent, sizeof seen->parent);
    rig_copy(job->clash, seen->clash, sizeof seen->clash);
    rig_copy(job->plan_id, seen->plan_id, sizeof seen->plan_id);
    rig_copy(job->cursor, seen->cursor, sizeof seen->cursor);
    seen->tasks_count = job->tasks_count;
    for (size_t i = 0; i < job->tasks_count; i++) {
        struct rig_task *task = &seen->tasks[i];
        rig_copy(job->tasks[i].id, task->id, sizeof task->id);
        rig_copy(job->tasks[i].topic, task->topic, sizeof task->topic);
        rig_copy(job->tasks[i].reason, task->reason, sizeof task->reason);
        task->state = job->tasks[i].state;
        task->attempts = job->tasks[i].attempts;
    }
}

/* Appends "name=value " if there is room. */
static inline void rig_append(char text[RIG_TEXT], struct bel_view name, struct bel_view value)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, RIG_TEXT - used, "%.*s=%.*s ", (int)name.bytes,
                   (const char *)name.data, (int)value.bytes, (const char *)value.data);
}

static inline void rig_see_delivery(struct rig_seen *seen, const struct bel_delivery *delivery)
{
    rig_copy(delivery->id, seen->id, sizeof seen->id);
    rig_copy(delivery->token, seen->token, sizeof seen->token);
    rig_copy(delivery->payload, seen->text, sizeof seen->text);
    for (size_t i = 0; i < delivery->results_count; i++) {
        const struct bel_task_result *result = &delivery->results[i];
        rig_append(seen->results, result->task, result->has_result ? result->result : view("nil"));
    }
    for (size_t i = 0; i < delivery->headers_count; i++) {
        rig_append(seen->headers, delivery->headers[i].name, delivery->headers[i].value);
    }
}

static inline void rig_see(struct bel_request *request, const struct bel_reply *reply)
{
    struct rig_seen *seen = request->user;
    memset(seen, 0, sizeof *seen);
    seen->is_done = true;
    seen->err = reply->err;
    memcpy(seen->why, reply->why, sizeof seen->why);
    if (reply->err) return;
    switch (request->command.verb) {
    case BEL_VERB_JOB_GET:
        rig_see_job(seen, reply->job);
        break;
    case BEL_VERB_JOB_SUBMIT:
        rig_copy(reply->submitted.id, seen->id, sizeof seen->id);
        seen->count = reply->submitted.tasks;
        break;
    case BEL_VERB_JOB_LIST:
        seen->count = reply->jobs.count;
        if (seen->count > 0) rig_see_job(seen, &reply->jobs.items[0]);
        rig_copy(reply->jobs.cursor, seen->cursor, sizeof seen->cursor);
        break;
    case BEL_VERB_CLAIM:
        seen->count = reply->deliveries.count;
        if (seen->count > 0) rig_see_delivery(seen, &reply->deliveries.items[0]);
        break;
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
        seen->count = reply->timers.count;
        if (seen->count > 0) {
            seen->counts[0] = reply->timers.items[0].state;
            rig_copy(reply->timers.items[0].result, seen->text, sizeof seen->text);
        }
        break;
    case BEL_VERB_TOPIC:
        memcpy(seen->counts, reply->topic->counts, sizeof seen->counts);
        break;
    case BEL_VERB_EXPLAIN:
        for (size_t i = 0, at = 0; i < reply->names.count; i++) {
            rig_copy(reply->names.items[i], seen->text + at, sizeof seen->text - at);
            at += reply->names.items[i].bytes;
        }
        break;
    case BEL_VERB_FAIL:
        seen->count = reply->verdict.state;
        break;
    case BEL_VERB_SCHEDULE:
    case BEL_VERB_CONFIGURE:
        break;
    default:
        seen->count = reply->count;
        break;
    }
}

static inline void rig_maybe_reopen(struct rig *rig)
{
    if (rig->reopen_in == 0 || random_below(&rig->random, rig->reopen_in) > 0) return;
    if (rig->reopens++ < RIG_REOPENS_MAX) rig_reopen(rig);
}

static inline int rig_ask(struct rig *rig, struct bel_command command)
{
    struct bel_request request = {.command = command, .done = rig_see, .user = &rig->seen};
    memset(&rig->seen, 0, sizeof rig->seen);
    bel_backend_submit(bel_engine_backend(rig->engine), &request);
    for (rig->turns = 0; rig->turns < RIG_TURNS_MAX && !rig->seen.is_done; rig->turns++) {
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
    }
    CHECK(rig->seen.is_done);
    rig_maybe_reopen(rig);
    return rig->seen.err;
}

/* Takes turns at the current time until the engine has nothing to do at once. */
static inline void rig_settle(struct rig *rig)
{
    for (int i = 0; i < RIG_TURNS_MAX; i++) {
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
        if (rig->next.due.ns > rig->now.boot.ns) return;
        rig_maybe_reopen(rig);
    }
    CHECK_NOTE("%s", "the engine does not come to rest");
    CHECK(false);
}

static inline void rig_move(struct rig *rig, uint64_t ms)
{
    rig->now.boot.ns += ms * 1000000;
    rig->now.wall.ms += (int64_t)ms;
    rig_settle(rig);
}

static inline int rig_submit(struct rig *rig, const char *json)
{
    return rig_ask(
        rig, (struct bel_command){.verb = BEL_VERB_JOB_SUBMIT, .job_submit = {.text = view(json)}});
}

static inline int rig_job(struct rig *rig, enum bel_verb verb, const char *id)
{
    struct bel_command command = {.verb = verb};
    if (verb == BEL_VERB_JOB_GET) {
        command.job_get.id = view(id);
    } else {
        command.job_target.id = view(id);
    }
    return rig_ask(rig, command);
}

static inline enum bel_job_state rig_state(struct rig *rig, const char *id)
{
    return rig_job(rig, BEL_VERB_JOB_GET, id) == 0 ? rig->seen.job.state : BEL_JOB_STATES;
}

/* Returns the task of the job that was seen last. */
static inline const struct rig_task *rig_task(struct rig *rig, const char *job, const char *id)
{
    CHECK(rig_job(rig, BEL_VERB_JOB_GET, job) == 0);
    for (size_t i = 0; i < rig->seen.tasks_count; i++) {
        if (strcmp(rig->seen.tasks[i].id, id) == 0) return &rig->seen.tasks[i];
    }
    CHECK_NOTE("%s", "the job has no such task");
    CHECK(false);
    return NULL;
}

/* Claims one timer of a topic. Returns its id, "" if there is none. */
static inline const char *rig_claim(struct rig *rig, const char *topic)
{
    struct bel_view name = view(topic);
    CHECK(rig_ask(rig, (struct bel_command){.verb = BEL_VERB_CLAIM,
                                            .claim = {.topics = &name, .topics_count = 1}}) == 0);
    for (int i = 0; i < RIG_LEASES && rig->seen.count > 0; i++) {
        if (rig->leases[i].id[0] != 0) continue;
        memcpy(rig->leases[i].id, rig->seen.id, sizeof rig->seen.id);
        memcpy(rig->leases[i].token, rig->seen.token, sizeof rig->seen.token);
        return rig->leases[i].id;
    }
    CHECK(rig->seen.count == 0);
    return "";
}

static inline struct bel_view rig_token(struct rig *rig, const char *id,
                                        char out[BEL_TOKEN_BYTES_MAX + 1])
{
    for (int i = 0; i < RIG_LEASES; i++) {
        if (strcmp(rig->leases[i].id, id) != 0) continue;
        rig->leases[i].id[0] = 0;
        memcpy(out, rig->leases[i].token, sizeof rig->leases[i].token);
        return view(out);
    }
    CHECK_NOTE("%s is not leased", id);
    CHECK(false);
    return view("");
}

static inline uint64_t rig_ack_result(struct rig *rig, const char *id, const char *result)
{
    char token[BEL_TOKEN_BYTES_MAX + 1];
    struct bel_view tokens = rig_token(rig, id, token);
    struct bel_ack ack = {.tokens = &tokens, .tokens_count = 1};
    if (result != NULL) {
        ack.has_result = true;
        ack.result = view(result);
    }
    CHECK(rig_ask(rig, (struct bel_command){.verb = BEL_VERB_ACK, .ack = ack}) == 0);
    return rig->seen.count;
}

static inline uint64_t rig_ack(struct rig *rig, const char *id)
{
    return rig_ack_result(rig, id, NULL);
}

/* Fails a task. Returns its state afterwards. */
static inline enum bel_state rig_fail(struct rig *rig, const char *id, bool is_dead)
{
    char token[BEL_TOKEN_BYTES_MAX + 1];
    struct bel_fail fail = {.token = rig_token(rig, id, token), .dead = is_dead};
    CHECK(rig_ask(rig, (struct bel_command){.verb = BEL_VERB_FAIL, .fail = fail}) == 0);
    return (enum bel_state)rig->seen.count;
}

static inline int rig_target(struct rig *rig, enum bel_verb verb, const char *topic, const char *id)
{
    return rig_ask(rig, (struct bel_command){.verb = verb, .target = {view(topic), view(id)}});
}

static inline uint64_t rig_cancel(struct rig *rig, const char *topic, const char *id)
{
    struct bel_view ids = view(id);
    CHECK(rig_ask(rig, (struct bel_command){.verb = BEL_VERB_CANCEL,
                                            .cancel = {view(topic), &ids, 1}}) == 0);
    return rig->seen.count;
}

static inline int rig_configure(struct rig *rig, const char *topic, const char *name,
                                const char *value)
{
    struct bel_setting setting = {view(name), view(value)};
    return rig_ask(rig, (struct bel_command){.verb = BEL_VERB_CONFIGURE,
                                             .configure = {view(topic), &setting, 1}});
}

#endif
