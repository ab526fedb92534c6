/* SPDX-License-Identifier: MIT */

/*
 *     JOB_IDS <--> JOBS         the id of a job names its row
 *                   |  '------> JOB_TIMES, JOB_WORK: as many as the job says
 *                   v
 *     TIMERS  <--> TASKS        as many as the job says, by state; each names its timer
 *     or ENDED      '---------> EDGES: as many rows as the task says
 *
 * A job that is being submitted or removed has only a part of its rows.
 */
#include "engine/offline/inspect_jobs.h"

#include "core/view.h"
#include "engine/engine.h"
#include "engine/jobs/task.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"

#include <string.h>

static int damaged(const char **out, const char *what)
{
    *out = what;
    return BEL_ECORRUPT;
}

/* Counts the tasks of a job by state. */
static int count_tasks(struct bel_engine *engine, uint64_t job, uint64_t counts[BEL_STATES],
                       uint64_t *out_count)
{
    struct bel_key from = bel__task_key(job, 0);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_task_row row;
        if (place.table != BEL_TABLE_TASKS || place.time != job) return 0;
        err = bel__task_row_read(cursor.value, &row);
        if (err) return err;
        counts[bel__task_row_state(&row)]++;
        ++*out_count;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

static int count_works(struct bel_engine *engine, uint64_t job, uint64_t *out)
{
    struct bel_key from = bel__work_key(job, (enum bel_work_kind)0, 0);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != BEL_TABLE_JOB_WORK || place.time != job) return 0;
        ++*out;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Checks that the id of a job names it. The id of a job that replaces another one, or is replaced,
 * names the other one for a while. */
static int check_id(struct bel_engine *engine, const struct bel_key *key,
                    const struct bel_job_row *row, struct bel_jobs_walk *walk, const char **out)
{
    bool is_unnamed = (row->phase == BEL_JOB_PHASE_SUBMITTING && row->replaces != 0) ||
                      row->phase == BEL_JOB_PHASE_REMOVING;
    struct bel_key id_key = bel__job_id_key(engine->alias_keys, row->id);
    struct bel_view value;
    int err = bel__store_get(engine->store, &id_key, &value);
    if (err == BEL_ENOTFOUND) return is_unnamed ? 0 : damaged(out, "its id has no row");
    if (err) return err;
    if (value.bytes == sizeof key->words && memcmp(value.data, key->words, value.bytes) == 0) {
        walk->jobs++;
        return 0;
    }
    return is_unnamed ? 0 : damaged(out, "its id names another job");
}

static int check_job(struct bel_engine *engine, const struct bel_key *key, struct bel_view value,
                     struct bel_jobs_walk *walk, const char **out)
{
    struct bel_place place = bel__place_of(key);
    uint64_t counts[BEL_STATES] = {0}, tasks = 0, works = 0;
    struct bel_job_row row;
    if (bel__job_row_read(value, &row) != 0 || row.number != place.sequence) {
        return damaged(out, "it cannot be read");
    }
    int err = check_id(engine, key, &row, walk, out);
    if (err == 0) err = count_tasks(engine, row.number, counts, &tasks);
    if (err == 0) err = count_works(engine, row.number, &works);
    if (err) return err;
    bool is_whole = row.phase != BEL_JOB_PHASE_SUBMITTING && row.phase != BEL_JOB_PHASE_REMOVING &&
                    row.phase != BEL_JOB_PHASE_REPLACING;
    bool is_ended = place.lane == BEL_JOB_LANE_ENDED;
    walk->tasks_wanted += tasks;
    walk->works_wanted += row.works;
    walk->edges_wanted += bel__edges_rows(row.topics);
    walk->times_wanted += is_whole && !is_ended && row.deadline > 0;
    walk->times_wanted += !is_ended && row.paced_until > 0;
    walk->times_wanted += row.follow_at > 0;
    if (row.works != works) return damaged(out, "its number of works is wrong");
    if (!is_whole) return 0;
    if (is_ended != (row.phase == BEL_JOB_PHASE_ENDED)) return damaged(out, "its phase is wrong");
    if (tasks != row.tasks) return damaged(out, "tasks are missing");
    if (memcmp(counts, row.counts, sizeof counts) != 0) {
        return damaged(out, "its numbers of tasks are wrong");
    }
    if (row.phase == BEL_JOB_PHASE_PLAN) return 0;
    bool is_over = counts[BEL_SCHEDULED] + counts[BEL_BLOCKED] + works == 0;
    return is_over == is_ended ? 0 : damaged(out, "it has ended, or not, against its tasks");
}

static int check_job_id(struct bel_engine *engine, const struct bel_key *key, struct bel_view value,
                        const char **out)
{
    struct bel_key job_key;
    struct bel_job_found job;
    if (value.bytes != sizeof job_key.words) return damaged(out, "its value is not a key");
    memcpy(job_key.words, value.data, sizeof job_key.words);
    if (bel__place_of(&job_key).table != BEL_TABLE_JOBS) return damaged(out, "it names no job");
    int err = bel__job_load_key(engine, &job_key, &job);
    if (err == BEL_ENOTFOUND) return damaged(out, "the job that it names is missing");
    if (err) return err;
    struct bel_key back = bel__job_id_key(engine->alias_keys, job.row.id);
    return bel__key_compare(&back, key) == 0 ? 0 : damaged(out, "its job has another id");
}

static int check_task(struct bel_engine *engine, const struct bel_key *key, struct bel_view value,
                      struct bel_jobs_walk *walk, const char **out)
{
    struct bel_place place = bel__place_of(key);
    struct bel_task_row row;
    struct bel_found found;
    if (bel__task_row_read(value, &row) != 0) return damaged(out, "it cannot be read");
    walk->tasks++;
    walk->edges_wanted += bel__edges_rows(row.after_count);
    walk->edges_wanted += bel__edges_rows(row.dependents_count);
    int err = bel__timer_load(engine, &row.key, &found);
    if (err == BEL_ENOTFOUND) return damaged(out, "its timer is missing");
    if (err) return err;
    const struct bel_task_of *of = &found.record.job;
    bool is_its = of->number == place.time && of->index == place.sequence;
    return is_its ? 0 : damaged(out, "its timer belongs to another task");
}

static int check_edges(struct bel_engine *engine, const struct bel_key *key, struct bel_view value,
                       struct bel_jobs_walk *walk, const char **out)
{
    struct bel_then_row then;
    switch (bel__place_of(key).priority) {
    case BEL_EDGES_THEN:
        if (bel__then_row_read(value, &then) != 0) return damaged(out, "it cannot be read");
        for (uint64_t i = 0; i < bel__blob_rows(then.text.bytes); i++) {
            struct bel_key chunk = bel__key_of(&(struct bel_place){
                .table = BEL_TABLE_CHUNKS, .time = then.text.number, .sequence = i});
            struct bel_view bytes;
            int err = bel__store_get(engine->store, &chunk, &bytes);
            if (err == BEL_ENOTFOUND) return damaged(out, "a chunk of its text is missing");
            if (err) return err;
            walk->chunks++;
        }
        return 0;
    case BEL_EDGES_RESERVED:
        return 0;
    default:
        walk->edges++;
        return 0;
    }
}

int bel__inspect_job_row(struct bel_engine *engine, const struct bel_key *key,
                         struct bel_view value, struct bel_jobs_walk *walk, const char **out)
{
    uint64_t position;
    switch (bel__place_of(key).table) {
    case BEL_TABLE_JOBS:
        return check_job(engine, key, value, walk, out);
    case BEL_TABLE_JOB_IDS:
        if (value.bytes <= BEL_WORK_ROW_BYTES_MAX) return 0; /* reserved */
        walk->ids++;
        return check_job_id(engine, key, value, out);
    case BEL_TABLE_TASKS:
        return check_task(engine, key, value, walk, out);
    case BEL_TABLE_EDGES:
        return check_edges(engine, key, value, walk, out);
    case BEL_TABLE_JOB_WORK:
        walk->works++;
        return bel__position_read(value, &position) == 0 ? 0 : damaged(out, "it cannot be read");
    case BEL_TABLE_JOB_TIMES:
        walk->times++;
        return 0;
    default:
        return damaged(out, "its table is unknown");
    }
}

/* Looks how far a job is that replaces another one: its first tasks are named and counted. */
static int look_at_adoption(struct bel_engine *engine, const struct bel_task_of *of,
                            struct bel_task_standing *out)
{
    struct bel_key key = bel__work_key(of->number, BEL_WORK_ADOPT, 0);
    struct bel_view value;
    uint64_t position = 0;
    int err = bel__store_get(engine->store, &key, &value);
    if (err == 0) err = bel__position_read(value, &position);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    out->is_counted = out->is_named = of->index < position;
    return 0;
}

int bel__inspect_task_timer(struct bel_engine *engine, const struct bel_key *key,
                            const struct bel_record *record, struct bel_task_standing *out_standing,
                            const char **out)
{
    struct bel_task_row row;
    struct bel_job_found job;
    *out_standing = (struct bel_task_standing){true, true};
    if (record->job.number == 0) return 0;
    int err = bel__task_load(engine, record->job.number, record->job.index, &row);
    if (err == BEL_ECORRUPT) return damaged(out, "the row of its task is missing");
    if (err) return err;
    if (bel__key_compare(&row.key, key) != 0) return damaged(out, "its task names another timer");
    if (!bel__job_is_hidden(&engine->job_marks, record->job.number)) return 0;
    err = bel__job_load(engine, record->job.number, &job);
    if (err) return err == BEL_ENOTFOUND ? 0 : err; /* has ended, and is being removed */
    if (job.row.phase == BEL_JOB_PHASE_REPLACING) {
        return look_at_adoption(engine, &record->job, out_standing);
    }
    if (job.row.phase != BEL_JOB_PHASE_SUBMITTING) return 0;
    *out_standing = (struct bel_task_standing){.is_named = job.row.replaces == 0};
    return 0;
}

static int compare(struct bel_why *why, const char *what, uint64_t rows, uint64_t wanted)
{
    if (rows == wanted) return 0;
    return bel__why_say(why, BEL_ECORRUPT, "%llu rows of %s, but %llu that others ask for",
                        (unsigned long long)rows, what, (unsigned long long)wanted);
}

int bel__inspect_jobs_end(const struct bel_jobs_walk *walk, struct bel_why *why)
{
    int err = compare(why, "job ids", walk->ids, walk->jobs);
    if (err == 0) err = compare(why, "tasks", walk->tasks, walk->tasks_wanted);
    if (err == 0) err = compare(why, "edges", walk->edges, walk->edges_wanted);
    if (err == 0) err = compare(why, "job work", walk->works, walk->works_wanted);
    return err ? err : compare(why, "job times", walk->times, walk->times_wanted);
}
