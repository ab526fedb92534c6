/* SPDX-License-Identifier: MIT */

/*
 * The heap of hot topics compared with an array that is searched for its smallest number. Topics
 * are put, changed and removed in any order; numbers are often equal.
 */
#include "engine/state/hot.c" /* NOLINT(bugprone-suspicious-include) */
#include "property.h"

enum {
    TOPICS_MAX = 60,
    STEPS = 400,
    CASES = 300,
};

static struct bel_topic_state *topics[TOPICS_MAX];
static uint64_t numbers[TOPICS_MAX]; /* 0: not hot */

static void check_all(const struct bel_hot *hot, unsigned count)
{
    uint64_t least = 0;
    uint32_t hot_count = 0;
    for (unsigned i = 0; i < count; i++) {
        CHECK((numbers[i] != 0) == (topics[i]->hot_place != 0));
        hot_count += numbers[i] != 0;
        if (numbers[i] != 0 && (least == 0 || numbers[i] < least)) least = numbers[i];
    }
    CHECK(hot->count == hot_count);
    const struct bel_topic_state *first = bel__hot_first(hot);
    CHECK((first == NULL) == (hot_count == 0));
    CHECK(first == NULL || numbers[first->number] == least);
}

static void run_case(uint64_t seed)
{
    struct bel_hot hot = {0};
    uint64_t state = seed, parked = 1;
    unsigned count = 1 + (unsigned)random_below(&state, TOPICS_MAX);
    for (unsigned i = 0; i < count; i++) {
        topics[i] = calloc(1, sizeof *topics[i]);
        CHECK(topics[i] != NULL);
        topics[i]->number = i;
        numbers[i] = 0;
    }
    CHECK(bel__hot_reserve(&hot, count) == 0);
    for (int step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)random_below(&state, count);
        bool is_new = random_below(&state, 2) == 0; /* the youngest waiter, or any */
        uint64_t number = is_new ? ++parked : 1 + random_below(&state, parked);
        if (numbers[i] == 0) {
            bel__hot_put(&hot, topics[i], numbers[i] = number);
        } else if (random_below(&state, 3) > 0) {
            bel__hot_change(&hot, topics[i], numbers[i] = number);
        } else {
            bel__hot_remove(&hot, topics[i]);
            numbers[i] = 0;
        }
        check_all(&hot, count);
    }
    for (uint64_t last = 0; hot.count > 0;) { /* they leave in order */
        struct bel_topic_state *first = bel__hot_first(&hot);
        CHECK(numbers[first->number] >= last);
        last = numbers[first->number];
        bel__hot_remove(&hot, first);
    }
    bel__hot_finish(&hot);
    for (unsigned i = 0; i < count; i++) {
        free(topics[i]);
    }
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories of hot topics");
}
