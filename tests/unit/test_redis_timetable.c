/* SPDX-License-Identifier: MIT */

/* A timetable against a list that is searched. */
#include "../check.h"
#include "../random.h"
#include "redis/node.h"
#include "redis/timetable.h"

enum {
    ENTRIES = 200,
    STEPS = 20000,
};

static struct bel_timetable_entry entries[ENTRIES];

static const struct bel_timetable_entry *search(void)
{
    const struct bel_timetable_entry *first = NULL;
    for (int i = 0; i < ENTRIES; i++) {
        if (entries[i].time_ms == BEL_REDIS_NEVER) continue;
        if (first == NULL || entries[i].time_ms < first->time_ms) first = &entries[i];
    }
    return first;
}

static void an_empty_timetable_has_no_first(void)
{
    struct bel_timetable timetable = {.entries = NULL};
    CHECK(bel__timetable_first(&timetable) == NULL);
    CHECK(bel__timetable_join(&timetable, &entries[0]) == 0);
    CHECK(bel__timetable_first(&timetable) == NULL);
    bel__timetable_set(&timetable, &entries[0], BEL_REDIS_NEVER);
    bel__timetable_set(&timetable, &entries[0], 0);
    CHECK(bel__timetable_first(&timetable) == &entries[0]);
    bel__timetable_set(&timetable, &entries[0], BEL_REDIS_NEVER);
    CHECK(bel__timetable_first(&timetable) == NULL);
    bel__timetable_finish(&timetable);
}

static void the_first_is_the_earliest(void)
{
    struct bel_timetable timetable = {.entries = NULL};
    uint64_t random = 1;
    for (int i = 0; i < ENTRIES; i++) {
        CHECK(bel__timetable_join(&timetable, &entries[i]) == 0);
    }
    for (int step = 0; step < STEPS; step++) {
        struct bel_timetable_entry *entry = &entries[random_below(&random, ENTRIES)];
        uint64_t what = random_below(&random, 10);
        int64_t time_ms = what < 3 ? BEL_REDIS_NEVER : (int64_t)random_below(&random, 300);
        if (what == 9 && bel__timetable_first(&timetable) != NULL) {
            entry = bel__timetable_first(&timetable);
        }
        bel__timetable_set(&timetable, entry, time_ms);
        CHECK(entry->time_ms == time_ms);
        const struct bel_timetable_entry *first = bel__timetable_first(&timetable);
        const struct bel_timetable_entry *found = search();
        CHECK((first == NULL) == (found == NULL));
        CHECK(first == NULL || first->time_ms == found->time_ms);
    }
    bel__timetable_finish(&timetable);
}

int main(void)
{
    RUN(an_empty_timetable_has_no_first);
    RUN(the_first_is_the_earliest);
    return EXIT_SUCCESS;
}
