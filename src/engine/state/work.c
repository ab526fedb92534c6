/* SPDX-License-Identifier: MIT */

/*
 * Up to four sets of numbers count one lease: of the engine, its topic, its group and its resource.
 * They are made with the first claim; without memory for them, the others count. They are never
 * moved or freed while the engine is open, because replies point to them.
 */
#include "engine/state/work.h"

#include "core/memory_use.h"
#include "core/units.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void free_named(struct bel_named_work *named)
{
    if (named == NULL) return;
    bel__memory_shrink(sizeof *named + named->name.bytes);
    free(named);
}

static void free_names(struct bel_work_names *names)
{
    for (uint32_t i = bel__map_count(&names->map); i-- > 0;) {
        free_named((struct bel_named_work *)(uintptr_t)bel__map_at(&names->map, i)->value);
    }
    free_named(names->others);
    bel__map_finish(&names->map);
}

void bel__work_free(struct bel_topic_work *work)
{
    if (work == NULL) return;
    free_names(&work->groups);
    bel__memory_shrink(sizeof *work);
    free(work);
}

void bel__work_finish(struct bel_engine *engine)
{
    free_names(&engine->resource_work);
    engine->stats.resources = NULL;
}

static struct bel_topic_work *topic_work(struct bel_engine *engine, struct bel_topic_state *topic)
{
    if (topic->work != NULL || engine->work_topics == BEL_WORK_TOPICS_MAX) return topic->work;
    topic->work = calloc(1, sizeof *topic->work);
    if (topic->work == NULL) return NULL;
    bel__memory_grow(sizeof *topic->work);
    bel__map_init(&topic->work->groups.map, engine->topics.by_name.secret);
    engine->work_topics++;
    return topic->work;
}

/* Makes the numbers of a name, not in the map or the list yet; NULL without memory. */
static struct bel_named_work *make_named(struct bel_view name)
{
    struct bel_named_work *named = calloc(1, sizeof *named + name.bytes);
    if (named == NULL) return NULL;
    bel__memory_grow(sizeof *named + name.bytes);
    char *copy = (char *)(named + 1);
    if (name.bytes > 0) memcpy(copy, name.data, name.bytes);
    named->name = (struct bel_view){copy, name.bytes};
    return named;
}

/* Returns the numbers of a name, or those of all others if `*count` has reached `max`; NULL without
 * memory. */
static struct bel_work *work_of(struct bel_work_names *names, struct bel_view name, uint32_t *count,
                                uint32_t max)
{
    const uint64_t *known = bel__map_find(&names->map, name.data, name.bytes);
    if (known != NULL) return &((struct bel_named_work *)(uintptr_t)*known)->work;
    bool has_room = *count < max;
    if (!has_room && names->others != NULL) return &names->others->work;
    struct bel_named_work *named = make_named(has_room ? name : (struct bel_view){0});
    if (named == NULL) return NULL;
    if (has_room) {
        if (bel__map_put(&names->map, named->name.data, name.bytes, (uintptr_t)named) != 0) {
            free_named(named);
            return NULL;
        }
        ++*count;
    } else {
        names->others = named;
    }
    named->next = names->first;
    names->first = named;
    return &named->work;
}

static struct bel_work *resource_work(struct bel_engine *engine, struct bel_view name)
{
    struct bel_work_names *names = &engine->resource_work;
    struct bel_work *work = work_of(names, name, &engine->work_resources, BEL_WORK_RESOURCES_MAX);
    engine->stats.resources = names->first;
    return work;
}

const struct bel_work *bel__work_of_resource(const struct bel_engine *engine, struct bel_view name)
{
    const uint64_t *known = bel__map_find(&engine->resource_work.map, name.data, name.bytes);
    return known == NULL ? NULL : &((const struct bel_named_work *)(uintptr_t)*known)->work;
}

void bel__spans_note(struct bel_spans *spans, uint64_t ms)
{
    unsigned bucket = ms == 0 ? 0 : 64 - (unsigned)__builtin_clzll(ms);
    if (bucket >= BEL_SPAN_BUCKETS) bucket = BEL_SPAN_BUCKETS - 1;
    spans->counts[bucket]++;
    spans->sum_ms += ms;
}

void bel__rate_note(struct bel_rate *rate, uint64_t minute)
{
    if (rate->minute != minute) {
        rate->before = rate->minute + 1 == minute ? rate->current : 0;
        rate->current = 0;
        rate->minute = minute;
    }
    rate->current++;
}

static void begin(struct bel_work *work, const struct bel_lease *lease, uint64_t waited_ms,
                  uint64_t minute)
{
    work->running++;
    if (lease->is_old) return;
    work->claimed++;
    bel__spans_note(&work->waited, waited_ms);
    bel__rate_note(&work->claims, minute);
}

void bel__work_begin(struct bel_engine *engine, struct bel_lease *lease,
                     const struct bel_record *record)
{
    uint64_t wall = (uint64_t)engine->now.wall, minute = engine->now.engine / MS_PER_MINUTE;
    uint64_t waited_ms = wall > lease->due ? wall - lease->due : 0;
    struct bel_topic_work *topic = topic_work(engine, lease->topic);
    begin(&engine->stats.work, lease, waited_ms, minute);
    if (record->resource.bytes > 0) {
        lease->resource_work = resource_work(engine, record->resource);
        if (lease->resource_work != NULL) begin(lease->resource_work, lease, waited_ms, minute);
    }
    if (topic == NULL) return;
    lease->is_counted = true;
    begin(&topic->all, lease, waited_ms, minute);
    bool is_task = record->job.number != 0; /* its group is the job, which has numbers itself */
    if (record->group.bytes > 0 && !is_task) {
        lease->group =
            work_of(&topic->groups, record->group, &engine->work_groups, BEL_WORK_GROUPS_MAX);
    }
    if (lease->group != NULL) begin(lease->group, lease, waited_ms, minute);
}

static void end(struct bel_work *work, const struct bel_lease *lease, uint64_t ran_ms,
                uint64_t minute)
{
    assert(work->running > 0);
    work->running--;
    switch ((enum bel_work_end)lease->end_kind) {
    case BEL_WORK_DONE:
        work->done++;
        if (!lease->is_old) bel__spans_note(&work->ran, ran_ms);
        bel__rate_note(&work->dones, minute);
        return;
    case BEL_WORK_FAILED:
        work->failed++;
        bel__rate_note(&work->fails, minute);
        return;
    case BEL_WORK_RELEASED:
        work->released++;
        return;
    case BEL_WORK_LOST:
        work->lost++;
        return;
    case BEL_WORK_WITHDRAWN:
        work->withdrawn++;
        return;
    }
}

void bel__work_end(struct bel_engine *engine, const struct bel_lease *lease)
{
    uint64_t minute = engine->now.engine / MS_PER_MINUTE;
    uint64_t now = engine->now.open, ran_ms = now > lease->start ? now - lease->start : 0;
    end(&engine->stats.work, lease, ran_ms, minute);
    if (lease->resource_work != NULL) end(lease->resource_work, lease, ran_ms, minute);
    if (!lease->is_counted) return;
    end(&lease->topic->work->all, lease, ran_ms, minute);
    if (lease->group != NULL) end(lease->group, lease, ran_ms, minute);
}

uint64_t bel__spans_count(const struct bel_spans *spans)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < BEL_SPAN_BUCKETS; i++) {
        count += spans->counts[i];
    }
    return count;
}

uint64_t bel__spans_quantile(const struct bel_spans *spans, unsigned thousandths)
{
    uint64_t count = bel__spans_count(spans), below = 0;
    assert(thousandths <= 1000);
    if (count == 0) return 0;
    unsigned bucket = 0;
    for (; bucket + 1 < BEL_SPAN_BUCKETS; bucket++) {
        below += spans->counts[bucket];
        if (below * 1000 >= count * thousandths) break;
    }
    return UINT64_C(1) << bucket;
}

uint64_t bel__rate_of(const struct bel_rate *rate, uint64_t now_ms)
{
    uint64_t minute = now_ms / MS_PER_MINUTE, passed = now_ms % MS_PER_MINUTE;
    uint64_t current = rate->minute == minute ? rate->current : 0;
    uint64_t before = rate->minute == minute       ? rate->before
                      : rate->minute + 1 == minute ? rate->current
                                                   : 0;
    return current + before * (MS_PER_MINUTE - passed) / MS_PER_MINUTE;
}
