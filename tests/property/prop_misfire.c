/* SPDX-License-Identifier: MIT */

/*
 * Missed times of a plan with a limit, chosen in slices, compared with a list of all its times.
 */
#include "plan/misfire_slice.h"
#include "property.h"

#include <string.h>

enum {
    CASES = 3000,
    TIMES_MAX = 4000,
};

/* A plan: times in order. */
struct list {
    struct bel_wall times[TIMES_MAX];
    size_t count;
};

static bool next_in_list(void *context, struct bel_wall after, struct bel_wall *out)
{
    const struct list *list = context;
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->times[middle].ms > after.ms) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == list->count) return false;
    *out = list->times[low];
    return true;
}

static void draw_list(uint64_t *random, struct list *list)
{
    int64_t at = (int64_t)random_below(random, 100);
    list->count = 1 + random_below(random, TIMES_MAX);
    for (size_t i = 0; i < list->count; i++) {
        list->times[i].ms = at;
        at += 1 + (int64_t)random_below(random, 9);
    }
}

/* All slices together. */
struct chosen {
    struct bel_wall times[BEL_MISFIRE_MAX];
    struct bel_misfire_slice last;
    uint64_t skipped;
    uint32_t slices;
};

static void choose(const struct list *list, enum bel_misfire policy, uint64_t left, uint32_t visits,
                   struct bel_misfire_range range, struct chosen *out)
{
    struct bel_misfire_plan plan = {next_in_list, (void *)(uintptr_t)list};
    out->skipped = out->slices = 0;
    do {
        out->last =
            bel__misfire_slice(policy, left - out->skipped, visits, &plan, range, out->times);
        CHECK(out->last.is_last || out->last.skipped_count == visits);
        CHECK(out->last.is_last || out->last.made_count == 0);
        out->skipped += out->last.skipped_count;
        range.after.ms = out->last.next.ms - 1;
        out->slices++;
    } while (!out->last.is_last);
}

static void run_case(uint64_t seed)
{
    static struct list list;
    static struct chosen chosen;
    uint64_t random = seed;
    draw_list(&random, &list);
    enum bel_misfire policy = (enum bel_misfire)random_below(&random, 3);
    uint64_t left =
        random_below(&random, 2) == 0 ? UINT64_MAX : 1 + random_below(&random, TIMES_MAX);
    uint32_t visits = 1 + (uint32_t)random_below(&random, 700);
    int64_t end = list.times[list.count - 1].ms;
    struct bel_misfire_range range = {{(int64_t)random_below(&random, 50)},
                                      {50 + (int64_t)random_below(&random, (uint64_t)end)}};
    choose(&list, policy, left, visits, range, &chosen);

    size_t first = 0, after;
    while (first < list.count && list.times[first].ms <= range.after.ms) {
        first++;
    }
    for (after = first; after < list.count && list.times[after].ms <= range.until.ms;) {
        after++;
    }
    bool is_used_up = after - first >= left;
    if (is_used_up) after = first + (size_t)left;
    size_t made = bel__misfire_made_max(policy);
    if (made > after - first) made = after - first;
    CHECK_EQ(chosen.last.made_count, made);
    CHECK_EQ(chosen.skipped, after - first - made);
    CHECK(made == 0 ||
          memcmp(chosen.times, list.times + after - made, made * sizeof chosen.times[0]) == 0);
    CHECK(chosen.last.is_used_up == is_used_up);
    bool has_next = !is_used_up && after < list.count;
    CHECK(chosen.last.has_next == has_next);
    CHECK(!has_next || chosen.last.next.ms == list.times[after].ms);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "choices among missed times");
}
