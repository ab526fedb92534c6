/* SPDX-License-Identifier: MIT */

/* Memory that is counted: what a part takes, it gives back, and a large part is seen. */
#include "core/memory_use.h"

#include "../ask.h"
#include "../check.h"
#include "belfry/engine.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "core/map.h"
#include "core/slab.h"
#include "core/sorted.h"

enum {
    ITEMS = 10000,
    TIMERS = 20000,
    PAYLOAD = 10000,
};

#define START INT64_C(1767225600000)

static void a_slab_counts_its_memory(void)
{
    struct bel__slab slab;
    uint64_t before = bel__memory_used();
    CHECK(bel__slab_init(&slab, 64, 1 << 20) == 0);
    CHECK_EQ(bel__memory_used(), before);
    CHECK(bel__slab_grow(&slab, ITEMS) == 0);
    CHECK(bel__memory_used() - before >= 64 * (uint64_t)ITEMS);
    bel__slab_finish(&slab);
    CHECK_EQ(bel__memory_used(), before);
}

static void a_map_and_a_sorted_map_count_theirs(void)
{
    struct bel_map map;
    struct bel_sorted sorted;
    uint64_t before = bel__memory_used();
    bel__map_init(&map, (struct bel_siphash_key){{1, 2}});
    bel__sorted_init(&sorted);
    static uint64_t keys[ITEMS];
    for (uint64_t i = 0; i < ITEMS; i++) {
        struct bel_key key = {{0, 0, i}};
        keys[i] = i;
        CHECK(bel__map_put(&map, &keys[i], sizeof keys[i], i) == 0);
        CHECK(bel__sorted_reserve(&sorted, 1) == 0);
        bel__sorted_put(&sorted, &key, i + 1, NULL);
    }
    CHECK(bel__memory_used() - before >= 48 * (uint64_t)ITEMS);
    uint64_t full = bel__memory_used();
    for (uint64_t i = 0; i < ITEMS; i++) {
        CHECK(bel__map_remove(&map, &keys[i], sizeof keys[i], NULL));
    }
    CHECK(bel__memory_used() < full);
    bel__map_finish(&map);
    bel__sorted_finish(&sorted);
    CHECK_EQ(bel__memory_used(), before);
}

static void an_arena_and_a_buffer_count_theirs(void)
{
    struct bel_arena arena = {0};
    struct bel_buffer buffer;
    uint64_t before = bel__memory_used();
    CHECK(bel__arena_take(&arena, 1 << 20) != NULL);
    CHECK(bel__memory_used() - before >= 1 << 20);
    bel__arena_reset(&arena);
    bel__arena_finish(&arena);
    CHECK_EQ(bel__memory_used(), before);
    bel__buffer_init(&buffer, 1 << 20);
    for (int i = 0; i < ITEMS; i++) {
        CHECK(bel__buffer_append(&buffer, "0123456789", 10) == 0);
    }
    CHECK(bel__memory_used() - before >= 10 * (uint64_t)ITEMS);
    bel__buffer_consume(&buffer, 10 * ((size_t)ITEMS - 1));
    bel__buffer_trim(&buffer, 100);
    CHECK(bel__memory_used() - before < 1000);
    bel__buffer_finish(&buffer);
    CHECK_EQ(bel__memory_used(), before);
}

static void timers_in_memory_count_and_go(void)
{
    static char payload[PAYLOAD];
    struct bel_now now = {{1000000}, {START}, {1}, 0};
    struct bel_next next;
    struct bel_engine *engine;
    uint64_t before = bel__memory_used();
    CHECK(bel_engine_open(&(struct bel_engine_options){.now = now}, &engine, NULL) == 0);
    struct bel_backend *backend = bel_engine_backend(engine);
    uint64_t empty = bel__memory_used();
    for (int i = 0; i < TIMERS; i++) {
        struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
        command.schedule.topic = view("mail");
        command.schedule.payload = (struct bel_view){payload, sizeof payload};
        CHECK(ask_backend(backend, now, &next, command).err == 0);
    }
    uint64_t full = bel__memory_used();
    CHECK(full - empty >= (uint64_t)TIMERS * PAYLOAD);
    struct bel_command purge = {.verb = BEL_VERB_PURGE};
    purge.purge = (struct bel_purge){.topic = view("mail"), .has_state = true, .state = BEL_READY};
    CHECK(ask_backend(backend, now, &next, purge).count == TIMERS);
    struct bel_pressure_sample sample = {.memory = {.used = 9, .limit = 10}};
    for (int i = 0; i < 1000 && bel_engine_pressure(engine, &sample); i++) {
        (void)bel_backend_turn(backend, now);
    }
    CHECK(bel__memory_used() - empty < (full - empty) / 10);
    bel_engine_close(engine);
    CHECK_EQ(bel__memory_used(), before);
}

int main(void)
{
    RUN(a_slab_counts_its_memory);
    RUN(a_map_and_a_sorted_map_count_theirs);
    RUN(an_arena_and_a_buffer_count_theirs);
    RUN(timers_in_memory_count_and_go);
    return 0;
}
