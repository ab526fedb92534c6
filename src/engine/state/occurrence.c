/* SPDX-License-Identifier: MIT */

/*
 * Occurrences are timers like others. A row marks each unfinished occurrence, under a hash of its
 * plan's id and its nominal time, so that the current plan with that id finds it:
 *
 *     OCCURRENCES | plan | 09:00    the id
 *     OCCURRENCES | plan | 10:00    the id
 *
 * The end of an occurrence may unblock another one (overlap `queue`), or set the plan's next time
 * (mode delay). These consequences are looked up before the change and carried out after it.
 */
#include "engine/state/occurrence.h"

#include "core/view.h"
#include "engine/rows/blob.h"
#include "engine/state/plan.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The consequences of the end of an occurrence. */
struct bel_occurrence_end {
    struct bel_key row; /* of the occurrence in OCCURRENCES */
    bool unblocks;
    struct bel_found blocked; /* the next in the queue, and its new key parts */
    struct bel_place place;
    bool goes_on, ends;
    struct bel_found plan; /* if goes_on: its next time is `next`; if ends: it has no more */
    uint64_t next;
};

static struct bel_key row_key(const struct bel_engine *engine, uint32_t topic, struct bel_view plan,
                              uint64_t nominal)
{
    uint64_t hash = bel__siphash(engine->alias_keys[0], plan.data, plan.bytes);
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_OCCURRENCES, .topic = topic, .time = hash, .sequence = nominal});
}

struct bel_view bel__occurrence_plan(struct bel_view id)
{
    const char *sign = memrchr(id.data, '@', id.bytes);
    assert(sign != NULL && sign != id.data);
    return bel__view_head(id, (size_t)(sign - (const char *)id.data));
}

struct bel_view bel__occurrence_id(const struct bel_record *plan, uint64_t nominal,
                                   char out[BEL_ID_BYTES])
{
    int bytes = snprintf(out, BEL_ID_BYTES, "%.*s@%llu", (int)plan->id.bytes,
                         (const char *)plan->id.data, (unsigned long long)nominal);
    assert(bytes > 0 && bytes < BEL_ID_BYTES);
    return (struct bel_view){.data = out, .bytes = (size_t)bytes};
}

/* Lowers the bounds of the plan of a row in OCCURRENCES to a nominal time. */
static void lower_bounds(struct bel_engine *engine, const struct bel_key *row, uint64_t nominal)
{
    struct bel_place place = bel__place_of(row);
    bel__plan_bounds_lower(&engine->bounds, place.topic, place.time, nominal);
}

void bel__occurrence_put(struct bel_engine *engine, const struct bel_topic_state *topic,
                         const struct bel_record *record)
{
    assert(record->kind == BEL_RECORD_TIMER && record->plan != 0);
    struct bel_key key =
        row_key(engine, topic->number, bel__occurrence_plan(record->id), record->nominal);
    bel__rows_put(&engine->rows, &key, record->id, BEL_ROW_ANY);
    lower_bounds(engine, &key, record->nominal);
}

/* Returns whether two rows belong to the same plan. */
static bool is_same_plan(const struct bel_key *key, const struct bel_key *from)
{
    struct bel_place place = bel__place_of(key), start = bel__place_of(from);
    return place.table == start.table && place.topic == start.topic && place.time == start.time;
}

static struct bel_plan_bound *bounds_of(struct bel_engine *engine, const struct bel_key *row)
{
    struct bel_place place = bel__place_of(row);
    return bel__plan_bounds_of(&engine->bounds, place.topic, place.time);
}

/* Returns the key of a plan's row at a nominal time: where a search begins. */
static struct bel_key bound_key(const struct bel_key *row, uint64_t nominal)
{
    struct bel_place place = bel__place_of(row);
    place.sequence = nominal;
    return bel__key_of(&place);
}

/* Counts one more occurrence. Returns true if the search can stop. */
static bool look_at(const struct bel_found *found, enum bel_look look, struct bel_occurrences *out)
{
    out->has_any = true;
    out->blocked += found->state == BEL_BLOCKED;
    return look == BEL_LOOK_ANY || out->blocked == BEL_OVERLAP_QUEUE_MAX;
}

int bel__occurrences_look(struct bel_engine *engine, struct bel_topic_state *topic,
                          struct bel_view plan, enum bel_look look, struct bel_occurrences *out)
{
    struct bel_key row = row_key(engine, topic->number, plan, 0);
    struct bel_key from = bound_key(&row, bounds_of(engine, &row)->from[BEL_PLAN_BOUNDS_ROW]);
    struct bel_store_cursor cursor;
    uint64_t first = BEL_SEQUENCE_MAX;
    *out = (struct bel_occurrences){0};
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_found found;
        if (!is_same_plan(&cursor.key, &from)) break;
        err = bel__timer_peek(engine, topic, cursor.value, &found);
        if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        if (bel__timer_is_expired(engine, &found)) {
            err = bel__timer_expire(engine, &found);
            if (err) return err;
            continue;
        }
        if (!out->has_any) first = bel__place_of(&cursor.key).sequence;
        if (look_at(&found, look, out)) break;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    assert(out->has_any || first == BEL_SEQUENCE_MAX);
    bounds_of(engine, &row)->from[BEL_PLAN_BOUNDS_ROW] = first;
    return 0;
}

static bool is_of_kind(const struct bel_engine *engine, const struct bel_found *found,
                       enum bel_plan_bounds_kind kind)
{
    bool is_blocked = found->state == BEL_BLOCKED;
    return is_blocked == (kind == BEL_PLAN_BOUNDS_BLOCKED) && !bel__timer_is_expired(engine, found);
}

/* Finds the first occurrence of `kind`, other than `except`, whose row is `row`. Passes over
 * expired occurrences without ending them: each end would search again, without a bound on the
 * recursion. */
static int find_first(struct bel_engine *engine, const struct bel_found *except,
                      const struct bel_key *row, enum bel_plan_bounds_kind kind,
                      struct bel_found *out)
{
    uint64_t *bound = &bounds_of(engine, row)->from[kind];
    uint64_t own = except->record.nominal, first = BEL_SEQUENCE_MAX;
    struct bel_key from = bound_key(row, *bound);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        uint64_t nominal = bel__place_of(&cursor.key).sequence;
        if (!is_same_plan(&cursor.key, &from)) {
            err = BEL_ENOTFOUND;
            break;
        }
        if (nominal == own) continue;
        err = bel__timer_peek(engine, except->topic, cursor.value, out);
        if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        if (!is_of_kind(engine, out, kind)) continue;
        first = nominal;
        break;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (own < first && is_of_kind(engine, except, kind)) first = own; /* its end may still fail */
    assert(err != 0 || (out->topic == except->topic && out->record.nominal != own));
    *bound = first;
    return err;
}

/* Plans the move of the next occurrence in the queue: it becomes due. */
static int unblock(struct bel_engine *engine, struct bel_occurrence_end *after)
{
    assert(after->blocked.state == BEL_BLOCKED && after->blocked.lease == NULL);
    after->unblocks = true;
    struct bel_place old = bel__place_of(&after->blocked.key);
    after->place = (struct bel_place){.table = BEL_TABLE_TIMERS,
                                      .topic = old.topic,
                                      .lane = BEL_LANE_WALL,
                                      .priority = old.priority,
                                      .time = after->blocked.record.nominal};
    const struct bel_record *record = &after->blocked.record;
    after->place.time += record->spread_ms;
    return bel__timer_hold(engine, after->blocked.topic, &after->place, bel__record_share(record));
}

/* Finds out whether other occurrences are unfinished. If none of them runs, chooses the blocked one
 * to unblock. */
static int look_at_others(struct bel_engine *engine, const struct bel_found *found,
                          struct bel_occurrence_end *after, bool *out_has_any)
{
    struct bel_found running;
    int err = find_first(engine, found, &after->row, BEL_PLAN_BOUNDS_RUNNING, &running);
    *out_has_any = err == 0;
    if (err != BEL_ENOTFOUND) return err;
    err = find_first(engine, found, &after->row, BEL_PLAN_BOUNDS_BLOCKED, &after->blocked);
    *out_has_any = err == 0;
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    return unblock(engine, after);
}

int bel__occurrence_look(struct bel_engine *engine, struct bel_found *found, size_t *rows)
{
    const struct bel_record *record = &found->record;
    assert(record->kind == BEL_RECORD_TIMER && record->plan != 0);
    struct bel_view plan = bel__occurrence_plan(record->id);
    struct bel_occurrence_end *after = bel__answer_take(engine, sizeof *after);
    bool has_others = false;
    if (after == NULL) return BEL_ENOMEM;
    *after = (struct bel_occurrence_end){
        .row = row_key(engine, found->topic->number, plan, record->nominal)};
    int err = bel__timer_peek(engine, found->topic, plan, &after->plan);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    bool has_plan =
        err == 0 && after->plan.record.kind == BEL_RECORD_PLAN && after->plan.state < BEL_DONE;
    const struct bel_recurrence *rule = &after->plan.record.rule;
    bool waits = has_plan && rule->mode == BEL_PLAN_DELAY && !after->plan.plan.has_next;
    if (waits || found->topic->numbers[BEL_NUMBER_BLOCKED] > 0) {
        err = look_at_others(engine, found, after, &has_others);
        if (err) return err;
    }
    if (waits && !has_others) {
        err = bel__plan_after(engine, &after->plan.record, engine->now.wall, &after->next);
        if (err != 0 && err != BEL_ERANGE && err != BEL_EUNSUPPORTED) return err;
        after->goes_on = err == 0;
        after->ends = err == BEL_ERANGE;
    }
    if (after->ends) *rows += bel__blob_rows(after->plan.record.body.bytes);
    found->after = after;
    return 0;
}

static void move_unblocked(struct bel_engine *engine, struct bel_occurrence_end *after)
{
    after->place.sequence = bel__rows_sequence(&engine->rows);
    bel__timer_move(engine, &after->blocked, &after->place);
    lower_bounds(engine, &after->row, after->blocked.record.nominal);
}

void bel__occurrence_ended(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_occurrence_end *after = found->after;
    assert(after != NULL && !(after->goes_on && after->ends));
    found->after = NULL;
    bel__rows_delete(&engine->rows, &after->row);
    if (after->goes_on) bel__plan_set_next(engine, &after->plan, true, after->next);
    if (after->ends) {
        struct bel_ending ending = {.state = BEL_DONE};
        bel__timer_end(engine, &after->plan, &ending);
    }
    if (after->unblocks) move_unblocked(engine, after);
}

int bel__occurrences_unblock(struct bel_engine *engine, struct bel_topic_state *topic,
                             struct bel_view plan, bool is_alone)
{
    const struct bel_found none = {.topic = topic, .record = {.nominal = BEL_SEQUENCE_MAX}};
    struct bel_occurrence_end after = {.row = row_key(engine, topic->number, plan, 0)};
    struct bel_found running;
    int err = BEL_ENOTFOUND;
    if (topic->numbers[BEL_NUMBER_BLOCKED] == 0) return 0;
    if (is_alone) {
        err = find_first(engine, &none, &after.row, BEL_PLAN_BOUNDS_RUNNING, &running);
    }
    if (err != BEL_ENOTFOUND) return err;
    err = find_first(engine, &none, &after.row, BEL_PLAN_BOUNDS_BLOCKED, &after.blocked);
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    err = unblock(engine, &after);
    if (err == 0) {
        err = bel__rows_reserve(&engine->rows, BEL_TIMER_ROWS, BEL_TIMER_BYTES, BEL_STORE_END);
    }
    if (err == 0) move_unblocked(engine, &after);
    return err;
}

int bel__occurrence_block(struct bel_engine *engine, struct bel_found *found)
{
    const struct bel_record *record = &found->record;
    struct bel_key row =
        row_key(engine, found->topic->number, bel__occurrence_plan(record->id), record->nominal);
    assert(found->lease == NULL && found->state != BEL_BLOCKED);
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    found->after = NULL; /* it does not end */
    struct bel_place place = bel__timer_place(engine, found->topic, BEL_LANE_NONE, 0,
                                              bel__place_of(&found->key).priority);
    place.time = place.sequence; /* blocked timers are listed by sequence */
    bel__timer_move(engine, found, &place);
    lower_bounds(engine, &row, record->nominal);
    return 0;
}

int bel__occurrences_first(struct bel_engine *engine, struct bel_topic_state *topic,
                           struct bel_view plan, struct bel_found *out)
{
    struct bel_key row = row_key(engine, topic->number, plan, 0);
    struct bel_key from = bound_key(&row, bounds_of(engine, &row)->from[BEL_PLAN_BOUNDS_ROW]);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    if (err) return err;
    if (!is_same_plan(&cursor.key, &from)) return BEL_ENOTFOUND;
    bounds_of(engine, &row)->from[BEL_PLAN_BOUNDS_ROW] = bel__place_of(&cursor.key).sequence;
    err = bel__timer_peek(engine, topic, cursor.value, out);
    return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
}

int bel__occurrences_next(struct bel_engine *engine, struct bel_topic_state *topic,
                          struct bel_view plan, uint64_t nominal, struct bel_found *out)
{
    struct bel_key from = row_key(engine, topic->number, plan, nominal);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    if (err) return err;
    if (!is_same_plan(&cursor.key, &from)) return BEL_ENOTFOUND;
    err = bel__timer_peek(engine, topic, cursor.value, out);
    return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
}

/* Cancels an occurrence, or ends it as expired. Skips the consequences for its plan, which is being
 * cancelled too. */
static int cancel(struct bel_engine *engine, struct bel_topic_state *topic, struct bel_view id)
{
    struct bel_ending cancelled = {.state = BEL_CANCELLED};
    struct bel_ending expired = {.state = BEL_EXPIRED, .reason = BEL_VIEW("expired")};
    struct bel_found found;
    int err = bel__timer_peek(engine, topic, id, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    bool is_expired = bel__timer_is_expired(engine, &found);
    err = bel__timer_reserve(engine, &found, 0, BEL_STORE_END);
    if (err) return err;
    assert(found.after != NULL);
    found.after->goes_on = found.after->ends = false;
    found.after->unblocks = false;
    bel__timer_end(engine, &found, is_expired ? &expired : &cancelled);
    return 0;
}

int bel__occurrences_cancel(struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_key row = row_key(engine, found->topic->number, found->record.id, 0);
    struct bel_key from = bound_key(&row, bounds_of(engine, &row)->from[BEL_PLAN_BOUNDS_ROW]);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        if (!is_same_plan(&cursor.key, &from)) return 0;
        bounds_of(engine, &row)->from[BEL_PLAN_BOUNDS_ROW] = bel__place_of(&cursor.key).sequence;
        err = cancel(engine, found->topic, cursor.value);
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}
