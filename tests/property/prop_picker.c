/* SPDX-License-Identifier: MIT */

/*
 * The picker compared with a model that computes all scores anew for every pick: an unordered array
 * of timers, ready or leased. For each pick the model finds the head of every share, counts the
 * leases of every share, and takes the lowest score, in doubles, the static part first. Histories
 * have one share or many, a concurrency limit, none, or one that changes; there are few different
 * dues, so that heads often tie; and sometimes all ready timers are dropped.
 */
#include "engine/state/picker.c" /* NOLINT(bugprone-suspicious-include) */
#include "property.h"

#include <math.h>

enum {
    TIMERS_MAX = 300,
    GROUPS_MAX = 40,
    STEPS = 1500,
    CASES = 150,
};

struct timer {
    struct bel_ready ready;
    unsigned group;
    bool is_leased;
    struct bel_share *share; /* if leased */
};

static struct timer timers[TIMERS_MAX];
static size_t timer_count;
static struct bel_picker picker;
static uint64_t random_state, sequence;

/* The kind of history. */
static unsigned groups, dues, adds_in_8;
static uint32_t concurrency;
static uint64_t shares; /* that have unfinished timers */

static struct bel_view name_of(unsigned group)
{
    static char name[16];
    if (group == 0) return (struct bel_view){.data = NULL, .bytes = 0};
    int bytes = snprintf(name, sizeof name, "g%u", group);
    return (struct bel_view){.data = name, .bytes = (size_t)bytes};
}

/* The model */

static bool comes_before(const struct bel_ready *a, const struct bel_ready *b)
{
    if (a->due_ms != b->due_ms) return a->due_ms < b->due_ms;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

static double count_leases(unsigned group)
{
    double count = 0;
    for (size_t i = 0; i < timer_count; i++) {
        if (timers[i].is_leased && timers[i].group == group) count++;
    }
    return count;
}

/* Infinite if the share is passed over. */
static double score_of(unsigned group)
{
    double leases = count_leases(group), score = 50;
    if (concurrency == 0) return leases;
    double fair = (double)concurrency / (double)shares;
    if (fair < 1) fair = 1;
    if (leases >= (double)(uint64_t)(2 * fair)) return HUGE_VAL;
    double penalty = leases >= fair ? 20 * (leases - fair + 1) : 0;
    return score + penalty;
}

/* Returns the next timer, or NULL. */
static struct timer *model_pick(void)
{
    struct timer *best = NULL;
    double best_score = HUGE_VAL, leased = 0;
    for (unsigned group = 0; group < groups; group++) {
        leased += count_leases(group);
    }
    if (concurrency > 0 && leased >= concurrency) return NULL;
    for (unsigned group = 0; group < groups; group++) {
        struct timer *head = NULL;
        for (size_t i = 0; i < timer_count; i++) {
            if (timers[i].group != group || timers[i].is_leased) continue;
            if (head == NULL || comes_before(&timers[i].ready, &head->ready)) head = &timers[i];
        }
        double score = score_of(group);
        if (head == NULL || isinf(score)) continue;
        if (best == NULL || score < best_score ||
            (score == best_score && comes_before(&head->ready, &best->ready))) {
            best = head;
            best_score = score;
        }
    }
    return best;
}

static struct timer *model_first(void)
{
    struct timer *first = NULL;
    for (size_t i = 0; i < timer_count; i++) {
        if (timers[i].is_leased) continue;
        if (first == NULL || comes_before(&timers[i].ready, &first->ready)) first = &timers[i];
    }
    return first;
}

/* The history */

static void check_same(bool is_there, const struct bel_ready *got, const struct timer *want)
{
    CHECK(is_there == (want != NULL));
    if (want == NULL) return;
    CHECK_EQ(got->sequence, want->ready.sequence);
    CHECK(got->due_ms == want->ready.due_ms);
    CHECK_EQ(got->priority, want->ready.priority);
    CHECK_EQ(got->user, want->ready.user);
}

/* Counts the shares with unfinished timers: those in the picker, and maybe some that are not
 * ready. */
static void count_shares(void)
{
    bool has[GROUPS_MAX] = {false};
    shares = random_below(&random_state, 4) == 0 ? random_below(&random_state, 10) : 0;
    for (size_t i = 0; i < timer_count; i++) {
        shares += !has[timers[i].group];
        has[timers[i].group] = true;
    }
    if (shares == 0) shares = 1;
}

static void add(void)
{
    if (timer_count == TIMERS_MAX) return;
    struct timer *timer = &timers[timer_count++];
    *timer = (struct timer){.group = (unsigned)random_below(&random_state, groups)};
    timer->ready.due_ms = (int64_t)random_below(&random_state, dues) - 3;
    timer->ready.priority = (uint8_t)(random_below(&random_state, 3) * 127);
    timer->ready.sequence = sequence++;
    timer->ready.user = random_u64(&random_state);
    CHECK(bel__picker_add(&picker, name_of(timer->group), &timer->ready) == 0);
}

static void forget(struct timer *timer)
{
    *timer = timers[--timer_count];
}

/* Picks the next timer, and usually leases it. */
static void claim(void)
{
    struct bel_ready ready;
    struct timer *want = model_pick();
    bool is_there = bel__picker_pick(&picker, concurrency, shares, &ready);
    check_same(is_there, &ready, want);
    if (!is_there || random_below(&random_state, 8) == 0) return;
    CHECK(bel__picker_lease(&picker, name_of(want->group), &want->share) == 0);
    CHECK(bel__picker_remove(&picker, name_of(want->group), &ready));
    want->is_leased = true;
}

/* Ends a lease, after which its timer is done or ready again; or removes a ready one. */
static void end(void)
{
    if (timer_count == 0) return;
    struct timer *timer = &timers[random_below(&random_state, timer_count)];
    if (!timer->is_leased) {
        CHECK(bel__picker_remove(&picker, name_of(timer->group), &timer->ready));
        CHECK(!bel__picker_remove(&picker, name_of(timer->group), &timer->ready));
        forget(timer);
        return;
    }
    bel__picker_unlease(&picker, timer->share);
    timer->is_leased = false;
    if (random_below(&random_state, 3) > 0) {
        forget(timer);
        return;
    }
    CHECK(bel__picker_add(&picker, name_of(timer->group), &timer->ready) == 0);
}

static void clear(void)
{
    bel__picker_clear(&picker);
    for (size_t i = timer_count; i-- > 0;) {
        if (!timers[i].is_leased) forget(&timers[i]);
    }
}

/* Checks how many timers of its own group are before a timer. */
static void check_ahead(const struct timer *timer)
{
    uint64_t want = 0, max = random_below(&random_state, UINT64_C(2) * TIMERS_MAX);
    for (size_t i = 0; i < timer_count; i++) {
        bool is_there = timers[i].group == timer->group && !timers[i].is_leased;
        want += is_there && comes_before(&timers[i].ready, &timer->ready);
    }
    if (want > max) want = max;
    CHECK_EQ(bel__picker_ahead(&picker, name_of(timer->group), &timer->ready, max), want);
}

static void check_all(void)
{
    struct bel_ready ready;
    struct bel_key place = {{0, 0, 0}};
    uint64_t count = 0, sum = 0, want_count = 0, want_sum = 0;
    CHECK(bel__picker_valid(&picker));
    while (bel__picker_next(&picker, &place, &ready)) {
        count++;
        sum += ready.user ^ ready.sequence;
    }
    for (size_t i = 0; i < timer_count; i++) {
        if (timers[i].is_leased) continue;
        want_count++;
        want_sum += timers[i].ready.user ^ timers[i].ready.sequence;
    }
    CHECK_EQ(count, want_count);
    CHECK_EQ(sum, want_sum);
    CHECK_EQ(bel__picker_count(&picker), count);
    check_same(bel__picker_first(&picker, &ready), &ready, model_first());
    if (timer_count == 0) CHECK_EQ(bel__picker_bytes(&picker), 0);
    if (timer_count > 0) check_ahead(&timers[random_below(&random_state, timer_count)]);
}

static void change_kind(void)
{
    adds_in_8 = (unsigned)random_below(&random_state, 6);
    concurrency = 0;
    if (random_below(&random_state, 3) > 0) {
        concurrency = (uint32_t)random_below(&random_state, 30) + 1;
    }
}

static void run_case(uint64_t seed)
{
    struct bel_siphash_key secret;
    random_state = seed;
    timer_count = sequence = 0;
    random_fill(&random_state, &secret, sizeof secret);
    groups = (unsigned)random_below(&random_state, seed % 3 == 0 ? 2 : GROUPS_MAX) + 1;
    dues = (unsigned)random_below(&random_state, 20) + 1;
    bel__picker_init(&picker, secret);
    for (int step = 0; step < STEPS; step++) {
        if (step % 100 == 0) change_kind();
        count_shares();
        uint64_t what = random_below(&random_state, 8);
        if (what < adds_in_8) {
            add();
        } else if (what % 2 == 0) {
            claim();
        } else {
            end();
        }
        if (random_below(&random_state, 500) == 0) clear();
        if (step % 16 == 0) check_all();
    }
    while (timer_count > 0) {
        end();
    }
    check_all();
    bel__picker_finish(&picker);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
