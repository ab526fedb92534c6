/* SPDX-License-Identifier: MIT */

/* The source is compiled in; malloc() is wrapped, so that memory can run out. */
#include "engine/state/picker.c" /* NOLINT(bugprone-suspicious-include) */

#include "../ask.h"
#include "../check.h"

static uint64_t memory_left = UINT64_MAX; /* allocations that still succeed */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    if (memory_left == 0) return NULL;
    memory_left--;
    return __real_malloc(bytes);
}

static const struct bel_siphash_key secret = {"a secret of ours"};
static struct bel_picker picker;

static void setup(void)
{
    memory_left = UINT64_MAX;
    bel__picker_init(&picker, secret);
}

static void teardown(void)
{
    CHECK(bel__picker_valid(&picker));
    bel__picker_finish(&picker);
    CHECK_EQ(bel__picker_bytes(&picker), 0);
}

static struct bel_ready timer(int64_t due, uint8_t priority, uint64_t sequence)
{
    return (struct bel_ready){
        .due_ms = due, .priority = priority, .sequence = sequence, .user = sequence * 10};
}

static void add(const char *group, struct bel_ready ready)
{
    CHECK(bel__picker_add(&picker, view(group), &ready) == 0);
}

static bool drop(const char *group, struct bel_ready ready)
{
    return bel__picker_remove(&picker, view(group), &ready);
}

/* Returns the sequence of the next timer, or 0. */
static uint64_t next(uint32_t concurrency, uint64_t shares)
{
    struct bel_ready ready;
    if (!bel__picker_pick(&picker, concurrency, shares, &ready)) return 0;
    CHECK_EQ(ready.user, ready.sequence * 10);
    return ready.sequence;
}

/* Leases and removes a timer of a group. */
static struct bel_share *claim(const char *group, struct bel_ready ready)
{
    struct bel_share *share;
    CHECK(bel__picker_lease(&picker, view(group), &share) == 0);
    CHECK(drop(group, ready));
    return share;
}

static void an_empty_picker_has_nothing(void)
{
    struct bel_ready ready;
    struct bel_key place = {{0, 0, 0}};
    setup();
    CHECK_EQ(bel__picker_count(&picker), 0);
    CHECK_EQ(next(0, 0), 0);
    CHECK_EQ(next(5, 1), 0);
    CHECK(!bel__picker_first(&picker, &ready));
    CHECK(!bel__picker_next(&picker, &place, &ready));
    CHECK(!drop("", timer(1, 1, 1)));
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    bel__picker_clear(&picker);
    teardown();
}

static void one_share_is_in_order_of_due_priority_sequence(void)
{
    static const struct {
        int64_t due;
        uint8_t priority;
        uint64_t sequence;
    } rows[] = {
        {INT64_MIN, 255, 9}, {-5, 0, 8},  {0, 0, 3},  {0, 0, 4},
        {0, 1, 1},           {0, 255, 2}, {7, 0, 10}, {INT64_MAX, 0, (UINT64_C(1) << 56) - 1}};
    enum {
        ROWS = sizeof rows / sizeof rows[0]
    };
    setup();
    for (unsigned i = 0; i < ROWS; i++) {
        unsigned j = i * 3 % ROWS;
        add("", timer(rows[j].due, rows[j].priority, rows[j].sequence));
    }
    CHECK_EQ(bel__picker_count(&picker), ROWS);
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK_EQ(next(0, 1), rows[i].sequence);
        CHECK(drop("", timer(rows[i].due, rows[i].priority, rows[i].sequence)));
    }
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    teardown();
}

static void a_single_timer_costs_its_share_alone(void)
{
    struct bel_ready ready;
    struct bel_key place = {{0, 0, 0}};
    setup();
    add("", timer(5, 128, 1));
    CHECK(bel__picker_bytes(&picker) <= 64);
    CHECK_EQ(next(0, 1), 1);
    CHECK(bel__picker_first(&picker, &ready) && ready.due_ms == 5);
    CHECK(bel__picker_next(&picker, &place, &ready) && ready.sequence == 1);
    CHECK(!bel__picker_next(&picker, &place, &ready));
    CHECK(!drop("", timer(5, 128, 2)));
    CHECK(!drop("x", timer(5, 128, 1)));
    CHECK_EQ(bel__picker_count(&picker), 1);
    CHECK(drop("", timer(5, 128, 1)));
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    teardown();
}

static void without_concurrency_the_fewest_leases_are_first(void)
{
    struct bel_share *shares[3];
    setup();
    for (uint64_t i = 1; i <= 3; i++) {
        add("a", timer(1, 128, i));
        add("b", timer(2, 128, 10 + i));
        add("", timer(3, 128, 20 + i));
    }
    CHECK_EQ(next(0, 3), 1);
    shares[0] = claim("a", timer(1, 128, 1));
    CHECK_EQ(next(0, 3), 11);
    shares[1] = claim("b", timer(2, 128, 11));
    CHECK_EQ(next(0, 3), 21);
    shares[2] = claim("", timer(3, 128, 21));
    CHECK_EQ(next(0, 3), 2); /* all have one lease: the head decides */
    CHECK(bel__picker_valid(&picker));
    bel__picker_unlease(&picker, shares[2]);
    CHECK_EQ(next(0, 3), 22);
    bel__picker_unlease(&picker, shares[0]);
    CHECK_EQ(next(0, 3), 2);
    bel__picker_unlease(&picker, shares[1]);
    teardown();
}

/* Claims up to `count` timers of the groups a to e, each with `each` timers that came group by
 * group, and checks the groups of the claimed ones. */
static void check_claims(uint32_t concurrency, unsigned groups, unsigned each, const char *want)
{
    static const char *names[] = {"a", "b", "c", "d", "e"};
    char got[32] = "";
    size_t count = 0;
    setup();
    for (unsigned i = 0; i < groups * each; i++) {
        add(names[i / each], timer(0, 128, i + 1));
    }
    for (uint64_t sequence; (sequence = next(concurrency, groups)) != 0; count++) {
        const char *name = names[(sequence - 1) / each];
        CHECK(count < sizeof got - 1);
        got[count] = name[0];
        claim(name, timer(0, 128, sequence));
    }
    CHECK_NOTE("got %s, want %s", got, want);
    CHECK(strcmp(got, want) == 0);
    CHECK_NOTE("%s", "");
    teardown();
}

static void a_concurrency_is_shared_fairly(void)
{
    check_claims(4, 2, 3, "aabb");
    check_claims(2, 5, 1, "ab");
    check_claims(10, 1, 12, "aaaaaaaaaa");
    check_claims(1, 1, 3, "a");
    check_claims(5, 2, 5, "aaabb"); /* fair is 2.5 */
    check_claims(3, 2, 9, "aab");   /* 1.5 */
}

static void a_share_at_its_cap_is_passed_over(void)
{
    setup();
    for (uint64_t i = 1; i <= 9; i++) {
        add("a", timer(0, 128, i));
    }
    for (uint64_t i = 1; i <= 4; i++) { /* three shares have unfinished timers: 6 / 3 x 2 */
        CHECK_EQ(next(6, 3), i);
        claim("a", timer(0, 128, i));
    }
    CHECK_EQ(next(6, 3), 0);
    CHECK_EQ(next(6, 2), 5); /* one has finished */
    CHECK_EQ(next(0, 3), 5);
    add("b", timer(9, 128, 20));
    CHECK_EQ(next(6, 3), 20);
    CHECK_EQ(next(6, 100), 20); /* even if there are fewer leases than shares */
    claim("b", timer(9, 128, 20));
    CHECK_EQ(next(6, 3), 0);
    CHECK_EQ(next(5, 1), 0); /* all are leased */
    teardown();
}

static void a_score_decides_before_the_heads(void)
{
    setup();
    add("a", timer(1, 0, 1));
    add("a", timer(1, 0, 2));
    add("a", timer(1, 0, 3));
    add("b", timer(9, 255, 4));
    add("c", timer(8, 255, 5));
    claim("a", timer(1, 0, 1));
    CHECK_EQ(next(6, 3), 2); /* fair is 2 */
    claim("a", timer(1, 0, 2));
    CHECK_EQ(next(6, 3), 5);
    claim("c", timer(8, 255, 5));
    add("c", timer(20, 255, 6));
    CHECK_EQ(next(6, 3), 4); /* no lease and one lease: the same score */
    claim("b", timer(9, 255, 4));
    CHECK_EQ(next(6, 3), 6);
    CHECK(drop("c", timer(20, 255, 6)));
    CHECK_EQ(next(6, 3), 3);
    teardown();
}

static void the_first_is_found_whoever_is_next(void)
{
    struct bel_ready ready;
    setup();
    add("a", timer(1, 128, 1));
    add("a", timer(2, 128, 2));
    add("b", timer(3, 128, 3));
    add("c", timer(4, 128, 4));
    claim("a", timer(1, 128, 1));
    CHECK_EQ(next(0, 3), 3);
    CHECK(bel__picker_first(&picker, &ready) && ready.sequence == 2);
    CHECK(drop("a", timer(2, 128, 2)));
    CHECK(bel__picker_first(&picker, &ready) && ready.sequence == 3);
    teardown();
}

static void a_share_stays_while_it_is_leased(void)
{
    struct bel_share *first, *second;
    setup();
    CHECK(bel__picker_lease(&picker, view("a"), &first) == 0);
    CHECK(bel__picker_lease(&picker, view("a"), &second) == 0);
    CHECK(first == second);
    add("a", timer(1, 128, 1));
    CHECK(drop("a", timer(1, 128, 1)));
    bel__picker_unlease(&picker, first);
    CHECK(bel__picker_bytes(&picker) > 0);
    bel__picker_unlease(&picker, second);
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    teardown();
}

static void clearing_keeps_the_leases(void)
{
    struct bel_share *share, *other;
    setup();
    CHECK(bel__picker_lease(&picker, view("a"), &share) == 0);
    add("a", timer(1, 128, 1));
    bel__picker_clear(&picker);
    CHECK_EQ(bel__picker_count(&picker), 0);
    CHECK(bel__picker_valid(&picker));
    CHECK(bel__picker_lease(&picker, view("b"), &other) == 0);
    for (uint64_t i = 1; i < 100; i++) {
        add(i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", timer(1, 128, i));
    }
    bel__picker_clear(&picker);
    CHECK_EQ(bel__picker_count(&picker), 0);
    CHECK(bel__picker_valid(&picker));
    add("c", timer(1, 128, 5));
    add("b", timer(1, 128, 4));
    CHECK_EQ(next(0, 3), 5);
    bel__picker_unlease(&picker, share);
    bel__picker_unlease(&picker, other);
    CHECK_EQ(next(0, 3), 4);
    bel__picker_clear(&picker);
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    teardown();
}

static void a_walk_visits_each_that_stays_once(void)
{
    struct bel_ready ready;
    struct bel_key place = {{0, 0, 0}};
    unsigned seen[101] = {0};
    setup();
    for (uint64_t i = 1; i <= 100; i++) {
        add(i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", timer((int64_t)(i * 37 % 101), 128, i));
    }
    for (uint64_t i = 1; bel__picker_next(&picker, &place, &ready); i++) {
        seen[ready.sequence]++;
        const char *group = ready.sequence % 3 == 0 ? "a" : ready.sequence % 3 == 1 ? "b" : "c";
        CHECK(ready.due_ms == (int64_t)(ready.sequence * 37 % 101));
        if (i % 2 == 0) CHECK(drop(group, ready));
    }
    for (unsigned i = 1; i <= 100; i++) {
        CHECK_EQ(seen[i], 1);
    }
    CHECK_EQ(bel__picker_count(&picker), 50);
    teardown();
}

static void names_are_bytes(void)
{
    struct bel_ready one = timer(1, 128, 1), two = timer(2, 128, 2);
    struct bel_view short_name = {.data = "\0", .bytes = 1},
                    long_name = {.data = "\0\0", .bytes = 2};
    setup();
    CHECK(bel__picker_add(&picker, short_name, &one) == 0);
    CHECK(bel__picker_add(&picker, long_name, &two) == 0);
    CHECK(!bel__picker_remove(&picker, short_name, &two));
    CHECK(!bel__picker_remove(&picker, (struct bel_view){.bytes = 0}, &one));
    CHECK(bel__picker_remove(&picker, long_name, &two));
    CHECK(bel__picker_remove(&picker, short_name, &one));
    teardown();
}

static void many_timers_cost_at_most_48_bytes_each(void)
{
    enum {
        MANY = 50000
    };
    static const char *names[] = {"", "a", "b", "c", "d"};
    for (unsigned groups = 1; groups <= 5; groups += 4) {
        for (unsigned step = 1; step < 8000; step += 7918) { /* in order; scattered */
            setup();
            for (uint64_t i = 0; i < MANY; i++) {
                uint64_t j = i * step % MANY;
                add(names[j % groups], timer((int64_t)j, 128, j));
            }
            CHECK(bel__picker_bytes(&picker) <= (size_t)48 * MANY);
            teardown();
        }
    }
}

static void many_shares_cost_some_hundred_bytes_each(void)
{
    enum {
        MANY = 20000
    };
    struct bel_ready ready;
    setup();
    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "group %u", (unsigned)i);
        add(name, timer((int64_t)i, 128, i + 1));
    }
    CHECK(bel__picker_bytes(&picker) <= (size_t)320 * MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "group %u", (unsigned)i);
        CHECK(bel__picker_pick(&picker, 0, MANY, &ready));
        CHECK_EQ(ready.sequence, i + 1);
        CHECK(drop(name, ready));
    }
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    teardown();
}

/* Tries to add or to lease with ever more memory until it succeeds; nothing may change before. */
static void add_in_need(const char *group, struct bel_ready ready)
{
    uint64_t count = bel__picker_count(&picker), before = next(0, 9);
    for (uint64_t left = 0;; left++) {
        memory_left = left;
        int err = bel__picker_add(&picker, view(group), &ready);
        if (err == 0) break;
        CHECK(err == BEL_ENOMEM);
        CHECK(left < 10);
        CHECK(bel__picker_valid(&picker));
        CHECK_EQ(bel__picker_count(&picker), count);
        CHECK_EQ(next(0, 9), before);
    }
    memory_left = 0;
    CHECK(bel__picker_valid(&picker));
}

static void without_memory_nothing_changes_and_later_it_works(void)
{
    static const char *names[] = {"", "a", "b", "c", "d", "e", "f"};
    struct bel_share *shares[300];
    setup();
    for (uint64_t i = 1; i <= 200; i++) {
        add_in_need(names[i < 50 ? 0 : i % 7], timer((int64_t)(i * 7 % 11), 128, i));
    }
    for (unsigned i = 0; i < 300; i++) { /* existing shares need no memory */
        CHECK(bel__picker_lease(&picker, view(names[i * i % 7]), &shares[i]) == 0);
        CHECK(next(0, 7) != 0);
    }
    CHECK(bel__picker_lease(&picker, view("new"), &shares[0]) == BEL_ENOMEM);
    CHECK(bel__picker_valid(&picker));
    for (unsigned i = 0; i < 300; i++) {
        bel__picker_unlease(&picker, shares[i]);
    }
    CHECK(bel__picker_valid(&picker));
    for (uint64_t i = 1; i <= 200; i++) {
        CHECK(drop(names[i < 50 ? 0 : i % 7], timer((int64_t)(i * 7 % 11), 128, i)));
    }
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    teardown();
}

int main(void)
{
    RUN(an_empty_picker_has_nothing);
    RUN(one_share_is_in_order_of_due_priority_sequence);
    RUN(a_single_timer_costs_its_share_alone);
    RUN(without_concurrency_the_fewest_leases_are_first);
    RUN(a_concurrency_is_shared_fairly);
    RUN(a_share_at_its_cap_is_passed_over);
    RUN(a_score_decides_before_the_heads);
    RUN(the_first_is_found_whoever_is_next);
    RUN(a_share_stays_while_it_is_leased);
    RUN(clearing_keeps_the_leases);
    RUN(a_walk_visits_each_that_stays_once);
    RUN(names_are_bytes);
    RUN(many_timers_cost_at_most_48_bytes_each);
    RUN(many_shares_cost_some_hundred_bytes_each);
    RUN(without_memory_nothing_changes_and_later_it_works);
    return 0;
}
