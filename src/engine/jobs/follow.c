/* SPDX-License-Identifier: MIT */

/*
 * A job keeps the texts of its `then` in rows. When it has ended, a row in JOB_TIMES frees the ids
 * of those that will not begin. Then it lets the others begin after the cooldown, one after the
 * other:
 *
 *     parent ended --> ids freed, row moved to follow_at --cooldown-->
 *         then 0: submitted --> then 1: submitted --> ... row deleted
 *             ^ row->followed, written after each
 *
 * A follower is submitted like any job, by a submission that has no request. Its row names its
 * parent: after a crash, a follower that exists already is not made again.
 *
 * The ids of a job that a recurring job has made end in "@<ms>", also those of its `then`. The
 * texts have neither that nor the time in payloads: a follower gets both as the made job did.
 */
#include "engine/jobs/follow.h"

#include "core/parse.h"
#include "engine/jobs/state.h"
#include "engine/jobs/submission.h"
#include "engine/jobs/then.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"

#include <string.h>

enum {
    RETRY_MS = 1000, /* delay of a retry after a failure for lack of room or memory */
};

static bool is_wanted(enum bel_edge_policy on, uint64_t state)
{
    if (on == BEL_EDGE_ALWAYS) return true;
    return on == BEL_EDGE_SUCCESS ? state == BEL_JOB_DONE : state == BEL_JOB_FAILED;
}

/* Goes on to the next follower. `clash` is the id of one that could not be made, or empty. */
static int advance(struct bel_engine *engine, struct bel_job_found *parent, struct bel_view clash)
{
    int err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    if (err) return err;
    parent->row.followed++;
    if (parent->row.clash.bytes == 0) parent->row.clash = clash;
    bel__job_put(engine, parent);
    return 0;
}

/* Returns whether a follower exists: it was made before a crash. */
static int is_made(struct bel_engine *engine, const struct bel_job_found *parent,
                   struct bel_view id, bool *out)
{
    struct bel_job_found job;
    int err = bel__job_find_any(engine, id, &job);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    *out = err == 0 && job.row.parent == parent->row.number && bel__job_is_complete(&job);
    return 0;
}

/* Sets the id of a follower, and its nominal time if the id has one. */
static int set_id(struct bel_follower *follower, struct bel_view id)
{
    const char *start = id.data, *sign = memchr(start, '@', id.bytes);
    uint64_t ms = 0;
    follower->id = id;
    if (sign == NULL) return 0;
    follower->id.bytes = (size_t)(sign - start);
    size_t digits = id.bytes - follower->id.bytes - 1;
    if (bel__parse_u64(sign + 1, digits, 0, INT64_MAX, &ms) != 0) return BEL_ECORRUPT;
    follower->has_nominal = true;
    follower->nominal.ms = (int64_t)ms;
    return 0;
}

static int begin(struct bel_engine *engine, struct bel_job_found *parent,
                 const struct bel_then_row *then)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_follower follower = {.parent = parent->row.number, .parent_id = parent->row.id};
    bool is_there;
    int err = is_made(engine, parent, then->id, &is_there);
    if (err) return err;
    if (is_there) return advance(engine, parent, (struct bel_view){0});
    err = bel__blob_get(engine->store, &then->text, bel__answer_arena(engine), &follower.text);
    if (err == 0) err = set_id(&follower, then->id);
    if (err) return err;
    follower.chain = parent->row.chain;
    err = bel__submission_create_follower(engine, &follower, &jobs->follower);
    if (err == 0) jobs->follower_parent = parent->key;
    return err;
}

/* Goes on with the follower that is being submitted. */
static int step(struct bel_engine *engine, struct bel_job_found *parent, struct bel_view id)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_reply reply = {0};
    int err = bel__submission_step(engine, jobs->follower, &reply);
    if (err == BEL_SUBMISSION_MORE || err == BEL_EBUSY) return 0;
    bel__submission_destroy(engine, jobs->follower);
    jobs->follower = NULL;
    if (err == BEL_EIO || err == BEL_ECORRUPT || err == BEL_ENOMEM || err == BEL_EFULL) return err;
    struct bel_view failed = {0};
    if (err) failed = id;
    return advance(engine, parent, failed);
}

static int finish(struct bel_engine *engine, struct bel_job_found *parent,
                  const struct bel_key *time_key)
{
    int err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    if (err) return err;
    parent->row.follow_at = 0;
    bel__rows_delete(&engine->rows, time_key);
    bel__job_put(engine, parent);
    return 0;
}

/* Frees the ids of followers that will not begin, and lets the cooldown begin. After a crash all of
 * it is repeated. */
static int release(struct bel_engine *engine, const struct bel_job_found *parent,
                   const struct bel_key *time_key)
{
    for (uint32_t i = 0; i < parent->row.thens; i++) {
        struct bel_then_row then;
        int err = bel__then_load(engine, parent->row.number, i, &then);
        if (err == 0 && !is_wanted(then.on, parent->row.state)) {
            err = bel__then_release(engine, parent, i);
        }
        if (err) return err;
    }
    int err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    if (err == 0) bel__job_cool_down(engine, parent, time_key);
    return err;
}

static int follow(struct bel_engine *engine, struct bel_job_found *parent,
                  const struct bel_key *time_key)
{
    struct bel_jobs *jobs = engine->jobs;
    bool is_its = bel__key_compare(&jobs->follower_parent, &parent->key) == 0;
    if (jobs->follower != NULL && !is_its) return 0; /* later */
    while (parent->row.followed < parent->row.thens) {
        struct bel_then_row then;
        uint64_t before = parent->row.followed;
        int err = bel__then_load(engine, parent->row.number, (uint32_t)before, &then);
        if (err) return err;
        if (!is_wanted(then.on, parent->row.state)) {
            err = bel__then_release(engine, parent, (uint32_t)before);
            if (err == 0) err = advance(engine, parent, (struct bel_view){0});
            if (err) return err;
            continue;
        }
        if (jobs->follower == NULL) err = begin(engine, parent, &then);
        if (err == 0 && jobs->follower != NULL) err = step(engine, parent, then.id);
        if (err != 0 || parent->row.followed == before) return err;
    }
    return finish(engine, parent, time_key);
}

int bel__follow(struct bel_engine *engine, const struct bel_key *time_key, struct bel_view value)
{
    struct bel_job_found parent;
    struct bel_key key;
    if (value.bytes != sizeof key.words) return BEL_ECORRUPT;
    memcpy(key.words, value.data, sizeof key.words);
    if (bel__place_of(&key).table != BEL_TABLE_JOBS) return BEL_ECORRUPT;
    int err = bel__job_load_key(engine, &key, &parent);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    bool is_early = bel__place_of(time_key).time < parent.row.follow_at;
    err = is_early ? release(engine, &parent, time_key) : follow(engine, &parent, time_key);
    if (err != BEL_ENOMEM && err != BEL_EFULL) return err;
    engine->jobs->retry = engine->now.engine + RETRY_MS;
    return 0;
}

int bel__follow_check(struct bel_engine *engine)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_job_found parent;
    if (jobs->follower == NULL) return 0;
    int err = bel__job_load_key(engine, &jobs->follower_parent, &parent);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (err == 0 && parent.row.follow_at > 0) return 0;
    bel__submission_destroy(engine, jobs->follower);
    jobs->follower = NULL;
    return 0;
}
