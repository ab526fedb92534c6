/* SPDX-License-Identifier: MIT */

/* The source is compiled in; malloc() is wrapped, so that memory can run out. */
#include "engine/state/picker.c"       /* NOLINT(bugprone-suspicious-include) */
#include "engine/state/picker_check.c" /* NOLINT(bugprone-suspicious-include) */
#include "engine/state/share.c"        /* NOLINT(bugprone-suspicious-include) */

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

/* A timer on the wall lane. */
static struct bel_ready timer(uint64_t due, uint8_t priority, uint64_t sequence)
{
    return (struct bel_ready){.time = due, .lane = 1, .priority = priority, .sequence = sequence};
}

/* A job's timer. */
static struct bel_ready task(double score, uint8_t priority, uint64_t sequence)
{
    return (struct bel_ready){
        .time = 1, .lane = 1, .priority = priority, .sequence = sequence, .score = score};
}

/* A name that begins with `job ` is a job's. */
static struct bel_standing in(const char *name)
{
    struct bel_view share = view(name);
    bool is_job = share.bytes > 4 && memcmp(share.data, "job ", 4) == 0;
    return (struct bel_standing){.share = share, .is_job = is_job};
}

static void add(const char *group, struct bel_ready ready)
{
    struct bel_standing standing = in(group);
    CHECK(bel__picker_add(&picker, &standing, &ready) == 0);
}

static bool drop(const char *group, struct bel_ready ready)
{
    struct bel_standing standing = in(group);
    return bel__picker_remove(&picker, &standing, &ready);
}

static int lease(const char *group, struct bel_share **out)
{
    struct bel_standing standing = in(group);
    return bel__picker_lease(&picker, &standing, 1, out);
}

/* Leases and removes a timer of a group whose turns have `turn` deliveries. */
static struct bel_share *deliver(const char *group, uint32_t turn, struct bel_ready ready)
{
    struct bel_standing standing = in(group);
    struct bel_share *share;
    CHECK(bel__picker_lease(&picker, &standing, turn, &share) == 0);
    CHECK(drop(group, ready));
    return share;
}

/* Returns the sequence of the next timer, or 0. */
static uint64_t next(uint32_t concurrency, uint64_t shares)
{
    struct bel_pick pick;
    if (!bel__picker_pick(&picker, concurrency, shares, &pick)) return 0;
    return pick.ready.sequence;
}

/* Leases and removes a timer of a group. */
static struct bel_share *claim(const char *group, struct bel_ready ready)
{
    struct bel_share *share;
    CHECK(lease(group, &share) == 0);
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
    CHECK(!bel__picker_next(&picker, &place, &ready));
    CHECK(!drop("", timer(1, 1, 1)));
    CHECK_EQ(bel__picker_bytes(&picker), 0);
    bel__picker_clear(&picker);
    teardown();
}

static void one_share_is_in_order_of_due_priority_sequence(void)
{
    static const struct {
        uint64_t due;
        uint8_t priority;
        uint64_t sequence;
    } rows[] = {{0, 255, 9}, {1, 0, 8},   {5, 0, 3},  {5, 0, 4},
                {5, 1, 1},   {5, 255, 2}, {7, 0, 10}, {INT64_MAX, 0, (UINT64_C(1) << 56) - 1}};
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
    CHECK(bel__picker_bytes(&picker) <= 88);
    CHECK_EQ(next(0, 1), 1);
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
    CHECK_EQ(next(0, 3), 2); /* all have one lease: a was served longest ago */
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
        deliver(name, bel__picker_turn(concurrency, groups), timer(0, 128, sequence));
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
    check_claims(10, 3, 9, "aaaabbbbcc");
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
    deliver("a", 2, timer(1, 0, 1));
    CHECK_EQ(next(6, 3), 2); /* fair is 2, and a turn */
    deliver("a", 2, timer(1, 0, 2));
    CHECK_EQ(next(6, 3), 5);
    deliver("c", 2, timer(8, 255, 5));
    add("c", timer(20, 255, 6));
    CHECK_EQ(next(6, 3), 4); /* no lease and one lease: the same score */
    deliver("b", 2, timer(9, 255, 4));
    CHECK_EQ(next(6, 3), 6);
    CHECK(drop("c", timer(20, 255, 6)));
    CHECK_EQ(next(6, 3), 3);
    teardown();
}

static void a_share_stays_while_it_is_leased(void)
{
    struct bel_share *first, *second;
    setup();
    CHECK(lease("a", &first) == 0);
    CHECK(lease("a", &second) == 0);
    CHECK(first == second);
    add("a", timer(1, 128, 1));
    CHECK(drop("a", timer(1, 128, 1)));
    bel__picker_unlease(&picker, first);
    CHECK(bel__picker_bytes(&picker) > 0);
    bel__picker_unlease(&picker, second);
    CHECK(bel__picker_bytes(&picker) <= 96); /* it was served */
    teardown();
}

static void clearing_keeps_the_leases(void)
{
    struct bel_share *share, *other;
    setup();
    CHECK(lease("a", &share) == 0);
    add("a", timer(1, 128, 1));
    bel__picker_clear(&picker);
    CHECK_EQ(bel__picker_count(&picker), 0);
    CHECK(bel__picker_valid(&picker));
    CHECK(lease("b", &other) == 0);
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
    CHECK_EQ(next(0, 3), 5); /* c was never served */
    CHECK_EQ(next(5, 3), 5);
    bel__picker_clear(&picker);
    CHECK_EQ(bel__picker_count(&picker), 0);
    teardown();
}

static void a_walk_visits_each_that_stays_once(void)
{
    struct bel_ready ready;
    struct bel_key place = {{0, 0, 0}};
    unsigned seen[101] = {0};
    setup();
    for (uint64_t i = 1; i <= 100; i++) {
        add(i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c", timer(i * 37 % 101, 128, i));
    }
    for (uint64_t i = 1; bel__picker_next(&picker, &place, &ready); i++) {
        seen[ready.sequence]++;
        const char *group = ready.sequence % 3 == 0 ? "a" : ready.sequence % 3 == 1 ? "b" : "c";
        CHECK_EQ(ready.time, ready.sequence * 37 % 101);
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
    struct bel_standing short_name = {.share = {.data = "\0", .bytes = 1}},
                        long_name = {.share = {.data = "\0\0", .bytes = 2}}, no_name = {0};
    setup();
    CHECK(bel__picker_add(&picker, &short_name, &one) == 0);
    CHECK(bel__picker_add(&picker, &long_name, &two) == 0);
    CHECK(!bel__picker_remove(&picker, &short_name, &two));
    CHECK(!bel__picker_remove(&picker, &no_name, &one));
    CHECK(bel__picker_remove(&picker, &long_name, &two));
    CHECK(bel__picker_remove(&picker, &short_name, &one));
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
                add(names[j % groups], timer(j, 128, j));
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
    struct bel_pick pick;
    setup();
    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "group %u", (unsigned)i);
        add(name, timer(i, 128, i + 1));
    }
    CHECK(bel__picker_bytes(&picker) <= (size_t)320 * MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "group %u", (unsigned)i);
        CHECK(bel__picker_pick(&picker, 0, MANY, &pick));
        CHECK_EQ(pick.ready.sequence, i + 1);
        CHECK(drop(name, pick.ready));
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
        struct bel_standing standing = in(group);
        int err = bel__picker_add(&picker, &standing, &ready);
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
        add_in_need(names[i < 50 ? 0 : i % 7], timer(i * 7 % 11, 128, i));
    }
    for (unsigned i = 0; i < 300; i++) { /* existing shares need no memory */
        CHECK(lease(names[i * i % 7], &shares[i]) == 0);
        CHECK(next(0, 7) != 0);
    }
    CHECK(lease("new", &shares[0]) == BEL_ENOMEM);
    CHECK(bel__picker_valid(&picker));
    for (unsigned i = 0; i < 300; i++) {
        bel__picker_unlease(&picker, shares[i]);
    }
    CHECK(bel__picker_valid(&picker));
    for (uint64_t i = 1; i <= 200; i++) {
        CHECK(drop(names[i < 50 ? 0 : i % 7], timer(i * 7 % 11, 128, i)));
    }
    CHECK_EQ(bel__picker_count(&picker), 0);
    teardown();
}

static void shares_take_turns(void)
{
    setup();
    for (uint64_t i = 1; i <= 20; i++) {
        add("a", timer(1, 128, i));
        add("b", timer(2, 128, 100 + i));
        add("c", timer(3, 128, 200 + i));
    }
    for (uint64_t i = 1; i <= 10; i++) { /* one slot, three shares */
        bel__picker_unlease(&picker, claim("a", timer(1, 128, i)));
        CHECK_EQ(next(1, 3), 100 + i);
        bel__picker_unlease(&picker, claim("b", timer(2, 128, 100 + i)));
        CHECK_EQ(next(1, 3), 200 + i);
        bel__picker_unlease(&picker, claim("c", timer(3, 128, 200 + i)));
        CHECK_EQ(next(0, 3), i + 1);
        CHECK_EQ(next(1, 3), i + 1);
    }
    bel__picker_unlease(&picker, claim("a", timer(1, 128, 11)));
    CHECK_EQ(next(3, 3), 111); /* as many slots as shares: a turn is one delivery */
    add("d", timer(9, 128, 300));
    CHECK_EQ(next(1, 4), 300); /* never served */
    teardown();
}

static void a_turn_is_the_fair_part_rounded_up(void)
{
    CHECK_EQ(bel__picker_turn(0, 5), 1);
    CHECK_EQ(bel__picker_turn(2, 5), 1);
    CHECK_EQ(bel__picker_turn(5, 5), 1);
    CHECK_EQ(bel__picker_turn(6, 5), 2);
    CHECK_EQ(bel__picker_turn(10, 5), 2);
    CHECK_EQ(bel__picker_turn(10, 3), 4);
    CHECK_EQ(bel__picker_turn(7, 0), 1);
    CHECK_EQ(bel__picker_turn(UINT32_MAX, 1), UINT32_MAX);
    CHECK_EQ(bel__picker_turn(UINT32_MAX, UINT64_MAX), 1);
}

static void a_turn_goes_on_until_its_last_delivery(void)
{
    setup();
    for (uint64_t i = 1; i <= 9; i++) {
        add("a", timer(1, 128, i));
        add("b", timer(2, 128, 100 + i));
    }
    for (uint64_t i = 0; i < 3; i++) { /* six slots: three deliveries each */
        for (uint64_t j = 1; j <= 3; j++) {
            CHECK_EQ(next(6, 2), 3 * i + j);
            bel__picker_unlease(&picker, deliver("a", 3, timer(1, 128, 3 * i + j)));
        }
        for (uint64_t j = 1; j <= 3; j++) {
            CHECK_EQ(next(6, 2), 100 + 3 * i + j);
            bel__picker_unlease(&picker, deliver("b", 3, timer(2, 128, 100 + 3 * i + j)));
        }
    }
    CHECK(bel__picker_valid(&picker));
    teardown();
}

static void a_share_that_was_away_goes_on_with_its_turn(void)
{
    setup();
    add("a", timer(1, 128, 1));
    add("b", timer(2, 128, 2));
    bel__picker_unlease(&picker, deliver("a", 2, timer(1, 128, 1))); /* of two; none is left */
    bel__picker_unlease(&picker, deliver("b", 2, timer(2, 128, 2)));
    CHECK(bel__picker_valid(&picker));
    add("a", timer(1, 128, 3));
    add("a", timer(1, 128, 4));
    add("b", timer(2, 128, 5));
    CHECK_EQ(next(4, 2), 3);
    bel__picker_unlease(&picker, deliver("a", 2, timer(1, 128, 3)));
    CHECK_EQ(next(4, 2), 5);
    teardown();
}

static void a_share_that_was_away_keeps_its_turn(void)
{
    setup();
    add("a", timer(1, 128, 1));
    add("b", timer(2, 128, 2));
    add("b", timer(2, 128, 3));
    bel__picker_unlease(&picker, claim("b", timer(2, 128, 2)));
    bel__picker_unlease(&picker, claim("a", timer(1, 128, 1)));
    add("a", timer(1, 128, 4)); /* has had no timer for a while */
    CHECK_EQ(next(0, 2), 3);
    bel__picker_clear(&picker);
    add("a", timer(1, 128, 4));
    add("b", timer(2, 128, 3));
    CHECK_EQ(next(0, 2), 3);
    teardown();
}

static void idle_shares_are_few(void)
{
    setup();
    for (uint64_t i = 1; i <= 2000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "group %u", (unsigned)i);
        add(name, timer(i, 128, i));
        bel__picker_unlease(&picker, claim(name, timer(i, 128, i)));
    }
    CHECK(bel__picker_bytes(&picker) < 100000);
    CHECK(bel__picker_valid(&picker));
    teardown();
}

static void a_job_goes_by_score_priority_sequence(void)
{
    static const struct {
        double score;
        uint8_t priority;
        uint64_t sequence;
    } rows[] = {{-40, 255, 9}, {-0.1, 3, 8},  {0, 3, 7},      {0.1, 0, 6},
                {25, 0, 5},    {49.9, 0, 10}, {50, 1, 3},     {50, 1, 4},
                {50, 2, 1},    {50.1, 0, 2},  {110100, 0, 11}};
    enum {
        ROWS = sizeof rows / sizeof rows[0]
    };
    setup();
    for (unsigned i = 0; i < ROWS; i++) {
        unsigned j = i * 4 % ROWS;
        add("job x", task(rows[j].score, rows[j].priority, rows[j].sequence));
    }
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK_EQ(next(0, 1), rows[i].sequence);
        CHECK(drop("job x", task(rows[i].score, rows[i].priority, rows[i].sequence)));
    }
    teardown();
}

static void jobs_and_groups_go_by_static_score(void)
{
    setup();
    add("", timer(1, 0, 1));
    add("job urgent", task(10, 128, 2));
    add("job urgent", task(10, 128, 3));
    add("job late", task(100, 128, 4));
    CHECK_EQ(next(0, 3), 2);
    CHECK_EQ(next(8, 3), 2);
    struct bel_share *share = claim("job urgent", task(10, 128, 2));
    CHECK_EQ(next(0, 3), 1); /* fewest leases first */
    CHECK_EQ(next(8, 3), 3); /* below its fair share */
    CHECK_EQ(next(2, 3), 3); /* 10 + 20 */
    bel__picker_unlease(&picker, share);
    CHECK(drop("job urgent", task(10, 128, 3)));
    CHECK_EQ(next(0, 3), 1);
    CHECK(drop("", timer(1, 0, 1)));
    CHECK_EQ(next(0, 3), 4);
    teardown();
}

static void a_closed_gate_parks_lines(void)
{
    struct bel_gate gate;
    struct bel_standing a = {.share = view("a"), .gate = &gate};
    struct bel_standing b = {.share = view("b"), .gate = &gate};
    struct bel_ready ready;
    struct bel_pick pick;
    setup();
    bel__gate_init(&gate, NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        ready = timer(i, 128, i);
        CHECK(bel__picker_add(&picker, &a, &ready) == 0);
        ready = timer(i, 128, 10 + i);
        CHECK(bel__picker_add(&picker, &b, &ready) == 0);
    }
    add("a", timer(9, 128, 20));
    CHECK_EQ(gate.lines, 2);
    while (bel__picker_pick(&picker, 0, 2, &pick) && pick.gate == &gate) {
        bel__picker_park(pick.line, &gate);
    }
    CHECK(bel__picker_valid(&picker));
    CHECK_EQ(next(0, 2), 20);
    CHECK_EQ(gate.parked_timers, 6);
    CHECK_EQ(bel__picker_parked(&picker), 6);
    CHECK_EQ(bel__picker_count(&picker), 7);
    ready = timer(2, 128, 2);
    CHECK(bel__picker_remove(&picker, &a, &ready));
    ready = timer(0, 128, 30);
    CHECK(bel__picker_add(&picker, &a, &ready) == 0);
    CHECK_EQ(next(0, 2), 20);
    CHECK(bel__gate_unpark(&gate) == &picker && bel__gate_unpark(&gate) == &picker);
    CHECK(bel__gate_unpark(&gate) == NULL);
    CHECK_EQ(next(0, 2), 30);
    CHECK_EQ(bel__picker_parked(&picker), 0);
    CHECK(bel__picker_valid(&picker));
    bel__picker_clear(&picker);
    CHECK_EQ(gate.lines, 0);
    teardown();
}

static void a_held_share_is_passed_over(void)
{
    struct bel_standing job = in("job x"), other = in("");
    setup();
    CHECK(bel__picker_hold(&picker, &job, true) == 0);
    CHECK(bel__picker_hold(&picker, &job, true) == 0);
    add("job x", task(1, 128, 1));
    CHECK_EQ(next(0, 1), 0);
    add("", timer(1, 128, 2));
    CHECK_EQ(next(0, 2), 2);
    CHECK_EQ(next(5, 2), 2);
    bel__picker_clear(&picker);
    add("job x", task(1, 128, 1));
    CHECK_EQ(next(0, 2), 0);
    CHECK(bel__picker_hold(&picker, &other, false) == 0);
    CHECK(bel__picker_hold(&picker, &job, false) == 0);
    CHECK_EQ(next(0, 2), 1);
    claim("job x", task(1, 128, 1));
    CHECK_EQ(bel__picker_leases(&picker, &job), 1);
    CHECK_EQ(bel__picker_leases(&picker, &other), 0);
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
    RUN(shares_take_turns);
    RUN(a_turn_is_the_fair_part_rounded_up);
    RUN(a_turn_goes_on_until_its_last_delivery);
    RUN(a_share_that_was_away_goes_on_with_its_turn);
    RUN(a_share_that_was_away_keeps_its_turn);
    RUN(idle_shares_are_few);
    RUN(a_job_goes_by_score_priority_sequence);
    RUN(jobs_and_groups_go_by_static_score);
    RUN(a_closed_gate_parks_lines);
    RUN(a_held_share_is_passed_over);
    RUN(a_share_stays_while_it_is_leased);
    RUN(clearing_keeps_the_leases);
    RUN(a_walk_visits_each_that_stays_once);
    RUN(names_are_bytes);
    RUN(many_timers_cost_at_most_48_bytes_each);
    RUN(many_shares_cost_some_hundred_bytes_each);
    RUN(without_memory_nothing_changes_and_later_it_works);
    return 0;
}
