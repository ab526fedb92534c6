/* SPDX-License-Identifier: MIT */

/*
 * Nothing is polled. A resource that is closed until a known time has an entry in a wheel while a
 * line is parked at it; one that waits for a lease is looked at when a lease ends. When it is open
 * again, its lines return, MOVES_SOME at a time: those that were parked first. If it closes
 * meanwhile, the rest stays parked.
 */
#include "engine/state/resource.h"

#include "core/view.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESOURCES_MAX = 1 << 22,
    MOVES_MAX = 16384, /* lines parked or taken back in a turn */
    MOVES_SOME = 1024, /* lines of one resource that return at once */
};

/* --- names --- */

static struct bel_resource *of_name_node(struct bel_treap_node *node)
{
    return node == NULL ? NULL : BEL_CONTAINER_OF(node, struct bel_resource, by_name);
}

static int compare_views(struct bel_view a, struct bel_view b)
{
    size_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = bytes == 0 ? 0 : memcmp(a.data, b.data, bytes);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static int compare_names(const struct bel_treap_node *a, const struct bel_treap_node *b)
{
    return compare_views(
        bel__resource_name(BEL_CONTAINER_OF_CONST(a, struct bel_resource, by_name)),
        bel__resource_name(BEL_CONTAINER_OF_CONST(b, struct bel_resource, by_name)));
}

static bool is_up_to(const struct bel_treap_node *node, const void *name)
{
    const struct bel_resource *resource =
        BEL_CONTAINER_OF_CONST(node, struct bel_resource, by_name);
    return compare_views(bel__resource_name(resource), *(const struct bel_view *)name) <= 0;
}

struct bel_resource *bel__resource_after(const struct bel_engine *engine, struct bel_view name)
{
    return of_name_node(bel__treap_seek(engine->resources.by_name, is_up_to, &name));
}

struct bel_resource *bel__resource_find(const struct bel_engine *engine, struct bel_view name)
{
    const uint64_t *value =
        name.bytes == 0 ? NULL : bel__map_find(&engine->resources.map, name.data, name.bytes);
    return value == NULL ? NULL : (struct bel_resource *)(uintptr_t)*value;
}

static uint32_t draw_weight(struct bel_resources *resources)
{
    return (uint32_t)(++resources->drawn * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Makes a resource below another one. */
static int make(struct bel_engine *engine, struct bel_view name, struct bel_resource *above,
                struct bel_resource **out)
{
    struct bel_resources *resources = &engine->resources;
    struct bel_resource *resource = calloc(1, sizeof *resource + name.bytes);
    if (resource == NULL) return BEL_ENOMEM;
    bel__gate_init(&resource->gate, above == NULL ? NULL : &above->gate);
    resource->limits = bel__limits_default();
    resource->above = above;
    resource->wake = BEL_TIMER_NONE;
    resource->name_bytes = (uint32_t)name.bytes;
    memcpy(resource->name, name.data, name.bytes);
    resource->by_name.weight = draw_weight(resources);
    int err = bel_wheel_reserve(resources->wheel, bel__map_count(&resources->map) + 1);
    if (err == 0) {
        err = bel__map_put(&resources->map, resource->name, name.bytes, (uintptr_t)resource);
    }
    if (err) {
        free(resource);
        return err;
    }
    bel__treap_put(&resources->by_name, &resource->by_name, compare_names);
    resources->is_active |= bel__map_count(&resources->map) > 1;
    if (above != NULL) above->below++;
    *out = resource;
    return 0; /* NOLINT(clang-analyzer-unix.Malloc): the map holds the pointer as a number */
}

int bel__resource_take(struct bel_engine *engine, struct bel_view name, struct bel_resource **out)
{
    struct bel_resource *above = NULL;
    const char *text = name.data;
    uint32_t depth = 1;
    *out = bel__resource_find(engine, name);
    if (*out != NULL || name.bytes == 0) return 0;
    for (size_t i = 1; i <= name.bytes; i++) { /* from the top down */
        struct bel_view part = {text, i};
        if (i < name.bytes && text[i] != '/') continue;
        struct bel_resource *resource = bel__resource_find(engine, part);
        int err = resource == NULL ? make(engine, part, above, &resource) : 0;
        if (err) {
            if (above != NULL) bel__resource_leave(engine, above);
            return err;
        }
        above = resource;
        depth++;
    }
    if (depth > engine->rows.resource_more) engine->rows.resource_more = depth;
    *out = above;
    return 0;
}

static bool is_needed(const struct bel_engine *engine, const struct bel_resource *resource)
{
    return resource == engine->resources.all || resource->has_row || resource->is_dirty ||
           resource->leases > 0 || resource->below > 0 || resource->gate.lines > 0 ||
           resource->has_passed_over || !bel__list_is_empty(&resource->gate.parked) ||
           bel__link_is_linked(&resource->opening);
}

static void drop_limited(struct bel_engine *engine, struct bel_resource *resource)
{
    struct bel_resources *resources = &engine->resources;
    if (!bel__link_is_linked(&resource->limited)) return;
    bel__link_remove(&resource->limited);
    resources->limited_count--;
}

static void free_resource(struct bel_engine *engine, struct bel_resource *resource)
{
    struct bel_resources *resources = &engine->resources;
    if (resource->wake != BEL_TIMER_NONE) bel_wheel_cancel(resources->wheel, resource->wake);
    if (bel__link_is_linked(&resource->opening)) bel__link_remove(&resource->opening);
    drop_limited(engine, resource);
    bel__map_remove(&resources->map, resource->name, resource->name_bytes, NULL);
    bel__treap_remove(&resources->by_name, &resource->by_name, compare_names);
    free(resource->reports);
    free(resource);
}

void bel__resource_leave(struct bel_engine *engine, struct bel_resource *resource)
{
    while (resource != NULL && !is_needed(engine, resource)) {
        struct bel_resource *above = resource->above;
        if (above != NULL) above->below--;
        free_resource(engine, resource);
        resource = above;
    }
}

/* --- rows --- */

struct bel_key bel__resource_key(const struct bel_engine *engine, struct bel_view name)
{
    const struct bel_siphash_key *secrets = engine->alias_keys;
    uint64_t high = bel__siphash(secrets[0], name.data, name.bytes);
    uint64_t low = bel__siphash(secrets[1], name.data, name.bytes);
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_RESOURCES, .time = high, .sequence = low & BEL_SEQUENCE_MAX});
}

/* Counts the resources that have a probe. */
static void count_probe(struct bel_engine *engine, struct bel_resource *resource)
{
    if (resource->is_probed == resource->limits.has_probe) return;
    resource->is_probed = resource->limits.has_probe;
    engine->rows.probes += resource->is_probed ? 1 : SIZE_MAX;
}

static void mark_dirty(struct bel_engine *engine, struct bel_resource *resource)
{
    struct bel_resources *resources = &engine->resources;
    engine->rows.has_changed = resources->is_active = true;
    if (engine->rows.changes.is_on) {
        struct bel_key key = bel__resource_key(engine, bel__resource_name(resource));
        bel__changes_note(&engine->rows.changes, &key);
    }
    count_probe(engine, resource);
    if (resource->is_dirty) return;
    resource->is_dirty = true;
    resource->next_dirty = resources->dirty;
    resources->dirty = resource;
    engine->rows.resource_rows++;
}

static void put_row(struct bel_engine *engine, struct bel_resource *resource)
{
    struct bel_key key = bel__resource_key(engine, bel__resource_name(resource));
    struct bel_resource_row row = {.name = bel__resource_name(resource),
                                   .limits = resource->limits};
    uint8_t bytes[BEL_RESOURCE_ROW_BYTES];
    if (resource->reports != NULL) {
        bel__reports_trim(resource->reports, engine->now.engine);
        row.reports = *resource->reports;
    }
    bool is_kept =
        row.reports.count > 0 || !bel__limits_are_default(&resource->limits, engine->now.engine);
    if (is_kept) {
        struct bel_view value = {bytes, bel__resource_row_write(&row, bytes)};
        bel__store_put(engine->store, &key, value, BEL_ROW_ANY);
    } else {
        bel__store_delete(engine->store, &key); /* if there is one: it was noted as changed */
    }
    resource->has_row = is_kept;
}

void bel__resources_flush(struct bel_engine *engine)
{
    struct bel_resources *resources = &engine->resources;
    while (resources->dirty != NULL) {
        struct bel_resource *resource = resources->dirty;
        resources->dirty = resource->next_dirty;
        put_row(engine, resource);
        resource->is_dirty = false;
        engine->rows.resource_rows--;
        bel__resource_leave(engine, resource);
    }
    assert(engine->rows.resource_rows == 0);
}

/* --- closed and open --- */

static bool is_closed(const struct bel_engine *engine, struct bel_resource *resource,
                      struct bel_closed *out)
{
    out->resource = resource;
    out->by =
        bel__limits_closed(&resource->limits, engine->now.engine, resource->leases, &out->until);
    return out->by != BEL_CLOSED_BY_NOTHING;
}

bool bel__resource_is_closed(const struct bel_engine *engine, struct bel_resource *resource,
                             struct bel_closed *out)
{
    for (; resource != NULL; resource = resource->above) {
        if (is_closed(engine, resource, out)) return true;
    }
    return false;
}

bool bel__resources_are_closed(const struct bel_engine *engine, struct bel_closed *out)
{
    return is_closed(engine, engine->resources.all, out);
}

void bel__resource_expect(struct bel_engine *engine, const struct bel_closed *closed)
{
    struct bel_wheel *wheel = engine->resources.wheel;
    struct bel_resource *resource = closed->resource;
    assert(closed->by != BEL_CLOSED_BY_NOTHING);
    if (closed->until == BEL_NEVER) return; /* until a lease ends */
    if (resource->wake != BEL_TIMER_NONE &&
        bel_wheel_rearm(wheel, resource->wake, closed->until) == 0) {
        return;
    }
    int err = bel_wheel_arm(wheel, closed->until, BEL_PRIORITY_DEFAULT, (uintptr_t)resource,
                            &resource->wake);
    assert(err == 0); /* an entry is reserved for each resource */
    (void)err;
}

bool bel__resource_park(struct bel_engine *engine, struct bel_line *line,
                        const struct bel_closed *closed)
{
    if (engine->resources.moves_left == 0) {
        engine->is_behind = true;
        return false;
    }
    engine->resources.moves_left--;
    bel__picker_park(line, &closed->resource->gate);
    bel__resource_expect(engine, closed);
    return true;
}

bool bel__resource_park_added(struct bel_engine *engine, const struct bel_picker *picker,
                              const struct bel_standing *standing)
{
    struct bel_closed closed;
    struct bel_resource *resource = bel__resource_of(standing->gate);
    if (!bel__resource_is_closed(engine, resource, &closed)) return false;
    struct bel_line *line = bel__picker_open_line(picker, standing);
    if (line == NULL) return true;
    bel__picker_park(line, &closed.resource->gate);
    bel__resource_expect(engine, &closed);
    return true;
}

/* Looks at a resource that may be open: takes back its lines soon, or sets its wake. */
static void look_at(struct bel_engine *engine, struct bel_resource *resource)
{
    struct bel_closed closed;
    bool waits = !bel__list_is_empty(&resource->gate.parked) || resource->has_passed_over;
    if (!waits && resource != engine->resources.all) return;
    if (is_closed(engine, resource, &closed)) {
        bel__resource_expect(engine, &closed);
        return;
    }
    if (bel__link_is_linked(&resource->opening)) return;
    bel__list_append(&engine->resources.opening, &resource->opening);
}

/* Takes back some lines of a resource. Returns whether more are left and it is open. */
static bool take_back(struct bel_engine *engine, struct bel_resource *resource)
{
    struct bel_resources *resources = &engine->resources;
    for (int i = 0; i < MOVES_SOME && resources->moves_left > 0; i++) {
        struct bel_picker *picker = bel__gate_unpark(&resource->gate);
        if (picker == NULL) break;
        resources->moves_left--;
        bel__wait_mark(engine, BEL_CONTAINER_OF(picker, struct bel_topic_state, picker));
    }
    if (resource->has_passed_over) {
        resource->has_passed_over = false;
        resources->must_reread = true;
    }
    return !bel__list_is_empty(&resource->gate.parked);
}

void bel__resources_turn(struct bel_engine *engine)
{
    struct bel_resources *resources = &engine->resources;
    struct bel_wheel_timer timer;
    struct bel_closed closed;
    struct bel_link *next;
    while (bel_wheel_next(resources->wheel) <= engine->now.engine) {
        if (!bel_wheel_pop(resources->wheel, engine->now.engine, &timer)) continue;
        struct bel_resource *resource = (struct bel_resource *)(uintptr_t)timer.user;
        resource->wake = BEL_TIMER_NONE;
        look_at(engine, resource);
    }
    for (struct bel_link *link = bel__list_first(&resources->opening); link != NULL; link = next) {
        struct bel_resource *resource = BEL_CONTAINER_OF(link, struct bel_resource, opening);
        next = bel__list_next(&resources->opening, link);
        if (is_closed(engine, resource, &closed)) {
            bel__resource_expect(engine, &closed);
        } else if (take_back(engine, resource)) {
            engine->is_behind = true;
            continue;
        }
        bel__link_remove(link);
        bel__resource_leave(engine, resource);
    }
}

void bel__resources_begin(struct bel_engine *engine)
{
    engine->resources.moves_left = MOVES_MAX;
}

uint64_t bel__resources_next(const struct bel_engine *engine)
{
    const struct bel_resources *resources = &engine->resources;
    bool is_opening = !bel__list_is_empty(&resources->opening);
    return is_opening ? engine->now.engine : bel_wheel_next(resources->wheel);
}

bool bel__resource_pass_over(struct bel_engine *engine, struct bel_resource *resource)
{
    struct bel_closed closed;
    if (!bel__resource_is_closed(engine, resource, &closed)) return false;
    closed.resource->has_passed_over = true;
    bel__resource_expect(engine, &closed);
    return true;
}

/* --- leases --- */

/* Puts a resource on the list of those that LIMIT CLEAR looks at. */
static void note_limited(struct bel_engine *engine, struct bel_resource *resource)
{
    if (bel__link_is_linked(&resource->limited)) return;
    if (resource->limits.until == 0 && !resource->limits.is_open) return;
    bel__list_append(&engine->resources.limited, &resource->limited);
    engine->resources.limited_count++;
}

uint64_t bel__resources_limited(const struct bel_engine *engine)
{
    return engine->resources.limited_count;
}

struct bel_resource *bel__resources_first_limited(struct bel_engine *engine)
{
    struct bel_link *first = bel__list_first(&engine->resources.limited);
    if (first == NULL) return NULL;
    struct bel_resource *resource = BEL_CONTAINER_OF(first, struct bel_resource, limited);
    drop_limited(engine, resource);
    return resource;
}

bool bel__resource_has_limits(const struct bel_engine *engine, const struct bel_resource *resource)
{
    struct bel_resource_reports reports = {0};
    if (resource->reports != NULL) reports = *resource->reports;
    bel__reports_trim(&reports, engine->now.engine);
    return reports.count > 0 || !bel__limits_are_default(&resource->limits, engine->now.engine);
}

bool bel__resource_is_shown(const struct bel_engine *engine, const struct bel_resource *resource)
{
    return resource->leases > 0 || resource->gate.lines > 0 ||
           bel__resource_has_limits(engine, resource) ||
           !bel__list_is_empty(&resource->gate.parked);
}

void bel__resource_reset(struct bel_engine *engine, struct bel_resource *resource)
{
    resource->limits = bel__limits_default();
    free(resource->reports);
    resource->reports = NULL;
    bel__resource_changed(engine, resource);
}

/* Returns the resource after one in the list: those above it, then `*`, then NULL. */
static struct bel_resource *next_above(const struct bel_engine *engine,
                                       const struct bel_resource *resource)
{
    if (resource == engine->resources.all) return NULL;
    return resource->above != NULL ? resource->above : engine->resources.all;
}

static struct bel_resource *first_of(const struct bel_engine *engine, struct bel_resource *resource)
{
    return resource != NULL ? resource : engine->resources.all;
}

void bel__resource_enter(struct bel_engine *engine, struct bel_resource *resource,
                         const struct bel_key *timer, bool is_delivery)
{
    if (!engine->resources.is_active) {
        engine->resources.all->leases++;
        return;
    }
    for (struct bel_resource *at = first_of(engine, resource); at != NULL;
         at = next_above(engine, at)) {
        at->leases++;
        if (!is_delivery) continue;
        if (bel__limits_take(&at->limits, engine->now.engine, timer)) mark_dirty(engine, at);
    }
}

void bel__resource_end(struct bel_engine *engine, struct bel_resource *resource,
                       const struct bel_key *timer, enum bel_lease_end end)
{
    if (!engine->resources.is_active) {
        engine->resources.all->leases--;
        return;
    }
    for (struct bel_resource *at = first_of(engine, resource); at != NULL;
         at = next_above(engine, at)) {
        assert(at->leases > 0);
        at->leases--;
        if (bel__limits_end(&at->limits, engine->now.engine, timer, end, at == resource)) {
            mark_dirty(engine, at);
            note_limited(engine, at);
        }
        look_at(engine, at);
    }
    if (resource != NULL) bel__resource_leave(engine, resource);
}

void bel__resource_changed(struct bel_engine *engine, struct bel_resource *resource)
{
    mark_dirty(engine, resource);
    note_limited(engine, resource);
    look_at(engine, resource);
}

int bel__resource_limit(struct bel_engine *engine, struct bel_resource *resource, uint64_t ms,
                        struct bel_view who)
{
    if (ms > BEL_LIMITED_MS_MAX) ms = BEL_LIMITED_MS_MAX;
    if (resource->reports == NULL) {
        resource->reports = calloc(1, sizeof *resource->reports);
        if (resource->reports == NULL) return BEL_ENOMEM;
    }
    bel__reports_add(resource->reports, engine->now.engine, ms, who);
    bel__limits_limit(&resource->limits, engine->now.engine_up, ms);
    bel__resource_changed(engine, resource);
    return 0;
}

/* --- opening and closing --- */

static int load(struct bel_engine *engine, struct bel_view value)
{
    struct bel_resource_row row;
    struct bel_resource *resource;
    int err = bel__resource_row_read(value, &row);
    if (err) return err;
    err = bel__resource_take(engine, row.name, &resource);
    if (err) return err;
    resource->has_row = engine->resources.is_active = true;
    resource->limits = row.limits;
    count_probe(engine, resource);
    note_limited(engine, resource);
    if (row.reports.count == 0) return 0;
    resource->reports = malloc(sizeof *resource->reports);
    if (resource->reports == NULL) return BEL_ENOMEM;
    *resource->reports = row.reports;
    return 0;
}

int bel__resources_open(struct bel_engine *engine)
{
    struct bel_resources *resources = &engine->resources;
    struct bel_wheel_options options = {.now = engine->now.engine, .timers_max = RESOURCES_MAX};
    struct bel_key from = bel__key_of(&(struct bel_place){.table = BEL_TABLE_RESOURCES});
    struct bel_store_cursor cursor;
    assert(resources->wheel == NULL);
    bel__map_init(&resources->map, engine->topics.by_name.secret);
    bel__list_init(&resources->opening);
    bel__list_init(&resources->limited);
    int err = bel_wheel_create(&options, &resources->wheel);
    if (err == 0) err = make(engine, BEL_VIEW("*"), NULL, &resources->all);
    if (err) return err;
    err = bel__store_seek(engine->store, &from, &cursor);
    while (err == 0 && bel__place_of(&cursor.key).table == BEL_TABLE_RESOURCES) {
        err = load(engine, cursor.value);
        if (err == 0) err = bel__store_next(engine->store, &cursor);
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

void bel__resources_close(struct bel_engine *engine)
{
    struct bel_resources *resources = &engine->resources;
    for (uint32_t i = bel__map_count(&resources->map); i-- > 0;) {
        struct bel_resource *resource =
            (struct bel_resource *)(uintptr_t)bel__map_at(&resources->map, i)->value;
        free(resource->reports);
        free(resource);
    }
    bel__map_finish(&resources->map);
    bel_wheel_destroy(resources->wheel);
}
