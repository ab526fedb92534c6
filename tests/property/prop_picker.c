/* SPDX-License-Identifier: MIT */

/*
 * The picker compared with a model that computes all scores anew for every pick: an unordered array
 * of timers, ready or leased. For each pick the model finds the head of every share, counts the
 * leases of every share, and takes the lowest score, in doubles, the static part first. Histories
 * have one share or many, groups and jobs, timers with and without a resource whose gate closes and
 * opens, shares that are held, a concurrency limit, none, or one that changes; there are few
 * different dues and scores, so that shares often tie; and sometimes all ready timers are dropped.
 */
#include "engine/state/picker.c"       /* NOLINT(bugprone-suspicious-include) */
#include "engine/state/picker_check.c" /* NOLINT(bugprone-suspicious-include) */
#include "engine/state/share.c"        /* NOLINT(bugprone-suspicious-include) */
#include "property.h"

#include <math.h>

enum {
    TIMERS_MAX = 300,
    SHARES_MAX = 40, /* the odd ones are jobs */
    GATES = 4,
    STEPS = 1500,
    CASES = 150,
    OFFSET = 3,
};

struct timer {
    struct bel_ready ready;
    unsigned share;
    unsigned gate; /* 0: none */
    bool is_leased;
    struct bel_share *leased_share;
};

static struct timer timers[TIMERS_MAX];
static size_t timer_count;
static struct bel_picker picker;
static uint64_t random_state, sequence;
static struct bel_gate gates[GATES + 1];
static bool is_closed[GATES + 1];
static bool is_held[SHARES_MAX];
static uint64_t turn_ends[SHARES_MAX], turns; /* of a share its last; of all the number */
static unsigned in_turn[SHARES_MAX];          /* deliveries since */

/* The kind of history. */
static unsigned shares_max, dues, adds_in_8;
static uint32_t concurrency;
static uint64_t shares; /* that have unfinished timers */

static bool is_job(unsigned share)
{
    return share % 2 == 1;
}

/* A job and a group can have the same name. */
static struct bel_standing standing_of(unsigned share, unsigned gate)
{
    static char name[16];
    struct bel_standing standing = {.is_job = is_job(share),
                                    .gate = gate == 0 ? NULL : &gates[gate]};
    if (share == 0) return standing;
    int bytes = snprintf(name, sizeof name, "g%u", share / 2);
    standing.share = (struct bel_view){.data = name, .bytes = (size_t)bytes};
    return standing;
}

/* The model */

static int64_t due_ms_of(const struct bel_ready *ready)
{
    return (int64_t)ready->time + (ready->lane == 0 ? OFFSET : 0);
}

static bool is_due_before(const struct bel_ready *a, const struct bel_ready *b)
{
    if (due_ms_of(a) != due_ms_of(b)) return due_ms_of(a) < due_ms_of(b);
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

/* Compares timers of one share. */
static bool comes_before(unsigned share, const struct bel_ready *a, const struct bel_ready *b)
{
    if (!is_job(share)) return is_due_before(a, b);
    if (a->score < b->score || a->score > b->score) return a->score < b->score;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

static double count_leases(unsigned share)
{
    double count = 0;
    for (size_t i = 0; i < timer_count; i++) {
        if (timers[i].is_leased && timers[i].share == share) count++;
    }
    return count;
}

/* Returns the first timer of a share whose gate is open, or NULL. */
static struct timer *head_of(unsigned share)
{
    struct timer *head = NULL;
    for (size_t i = 0; i < timer_count; i++) {
        struct timer *timer = &timers[i];
        if (timer->share != share || timer->is_leased || is_closed[timer->gate]) continue;
        if (head == NULL || comes_before(share, &timer->ready, &head->ready)) head = timer;
    }
    return head;
}

/* Returns the score of a share; infinite if the share is passed over. */
static double model_score(unsigned share, const struct timer *head)
{
    double leases = count_leases(share), score = is_job(share) ? head->ready.score : 50;
    double fair = (double)concurrency / (double)shares;
    if (fair < 1) fair = 1;
    if (leases >= (double)(uint64_t)(2 * fair)) return HUGE_VAL;
    double penalty = leases >= fair ? 20 * (leases - fair + 1) : 0;
    return score + penalty;
}

/* Returns whether head `a` goes before head `b`. */
static bool goes_before(const struct timer *a, const struct timer *b)
{
    double a_score = is_job(a->share) ? a->ready.score : 50;
    double b_score = is_job(b->share) ? b->ready.score : 50;
    if (concurrency == 0) {
        double a_leases = count_leases(a->share), b_leases = count_leases(b->share);
        if (a_leases < b_leases || a_leases > b_leases) return a_leases < b_leases;
    } else {
        a_score = model_score(a->share, a);
        b_score = model_score(b->share, b);
    }
    if (a_score < b_score || a_score > b_score) return a_score < b_score;
    if (turn_ends[a->share] != turn_ends[b->share]) {
        return turn_ends[a->share] < turn_ends[b->share];
    }
    return is_due_before(&a->ready, &b->ready);
}

/* Notes a delivery. A turn is the fair part of the concurrency, rounded up. */
static void note_delivery(unsigned share)
{
    double length = concurrency == 0 ? 1 : ceil((double)concurrency / (double)shares);
    if (++in_turn[share] < length) return;
    turn_ends[share] = ++turns;
    in_turn[share] = 0;
}

/* Returns the next timer, or NULL. */
static struct timer *model_pick(void)
{
    struct timer *best = NULL;
    double leased = 0;
    for (unsigned share = 0; share < shares_max; share++) {
        leased += count_leases(share);
    }
    if (concurrency > 0 && leased >= concurrency) return NULL;
    for (unsigned share = 0; share < shares_max; share++) {
        struct timer *head = is_held[share] ? NULL : head_of(share);
        if (head == NULL) continue;
        if (concurrency > 0 && isinf(model_score(share, head))) continue;
        if (best == NULL || goes_before(head, best)) best = head;
    }
    return best;
}

/* The history */

static void check_same(bool is_there, const struct bel_ready *got, const struct timer *want)
{
    CHECK(is_there == (want != NULL));
    if (want == NULL) return;
    CHECK_EQ(got->sequence, want->ready.sequence);
    CHECK_EQ(got->time, want->ready.time);
    CHECK_EQ(got->lane, want->ready.lane);
    CHECK_EQ(got->priority, want->ready.priority);
    double score = is_job(want->share) ? want->ready.score : 50;
    CHECK(!(got->score < score) && !(got->score > score));
}

/* Counts the shares with unfinished timers: those in the picker, and maybe some that are not
 * ready. */
static void count_shares(void)
{
    bool has[SHARES_MAX] = {false};
    shares = random_below(&random_state, 4) == 0 ? random_below(&random_state, 10) : 0;
    for (size_t i = 0; i < timer_count; i++) {
        shares += !has[timers[i].share];
        has[timers[i].share] = true;
    }
    if (shares == 0) shares = 1;
}

/* Returns a score as jobs have it: 10 x priority + depth - 5 x retries + 0.1 x cost. */
static double draw_score(void)
{
    double priority = (double)random_below(&random_state, 3) * 4 + 1;
    double retries = (double)random_below(&random_state, 12) * 5;
    double cost = (double)random_below(&random_state, 4);
    return 10 * priority + (double)random_below(&random_state, 2) - (retries < 50 ? retries : 50) +
           0.1 * cost;
}

static void add(void)
{
    if (timer_count == TIMERS_MAX) return;
    struct timer *timer = &timers[timer_count++];
    *timer = (struct timer){.share = (unsigned)random_below(&random_state, shares_max)};
    timer->gate = (unsigned)random_below(&random_state, GATES + 1);
    timer->ready.time = random_below(&random_state, dues);
    timer->ready.lane = (uint8_t)random_below(&random_state, 2);
    timer->ready.priority = (uint8_t)(random_below(&random_state, 3) * 127);
    timer->ready.sequence = sequence++;
    timer->ready.score = draw_score();
    struct bel_standing standing = standing_of(timer->share, timer->gate);
    CHECK(!bel__picker_has(&picker, &standing, &timer->ready));
    CHECK(bel__picker_add(&picker, &standing, &timer->ready) == 0);
    CHECK(bel__picker_has(&picker, &standing, &timer->ready));
    if (!is_closed[timer->gate] || random_below(&random_state, 2) == 0) return;
    struct bel_line *line = bel__picker_open_line(&picker, &standing);
    if (line != NULL) bel__picker_park(line, standing.gate); /* before it is picked */
    CHECK(bel__picker_open_line(&picker, &standing) == NULL);
}

static void forget(struct timer *timer)
{
    *timer = timers[--timer_count];
}

/* Picks the next timer, parking lines whose gate is closed. Returns whether there is one. */
static bool pick(struct bel_pick *out)
{
    while (bel__picker_pick(&picker, concurrency, shares, out)) {
        CHECK((out->line == NULL) == (out->gate == NULL));
        if (out->line == NULL) return true;
        size_t gate = (size_t)(out->gate - gates);
        if (!is_closed[gate]) return true;
        bel__picker_park(out->line, &gates[gate]);
    }
    return false;
}

/* Picks the next timer, and usually leases it. */
static void claim(void)
{
    struct bel_pick next;
    struct timer *want = model_pick();
    bool is_there = pick(&next);
    check_same(is_there, &next.ready, want);
    if (!is_there || random_below(&random_state, 8) == 0) return;
    struct bel_standing standing = standing_of(want->share, want->gate);
    uint32_t turn = bel__picker_turn(concurrency, shares);
    CHECK(bel__picker_lease(&picker, &standing, turn, &want->leased_share) == 0);
    CHECK(bel__picker_remove(&picker, &standing, &next.ready));
    note_delivery(want->share);
    want->is_leased = true;
}

/* Ends a lease, after which its timer is done or ready again; or removes a ready one. */
static void end(void)
{
    if (timer_count == 0) return;
    struct timer *timer = &timers[random_below(&random_state, timer_count)];
    struct bel_standing standing = standing_of(timer->share, timer->gate);
    if (!timer->is_leased) {
        CHECK(bel__picker_remove(&picker, &standing, &timer->ready));
        CHECK(!bel__picker_remove(&picker, &standing, &timer->ready));
        forget(timer);
        return;
    }
    bel__picker_unlease(&picker, timer->leased_share);
    timer->is_leased = false;
    if (random_below(&random_state, 3) > 0) {
        forget(timer);
        return;
    }
    CHECK(bel__picker_add(&picker, &standing, &timer->ready) == 0);
}

/* Closes or opens a gate; holds or releases a share. */
static void turn_a_switch(void)
{
    if (random_below(&random_state, 2) == 0) {
        unsigned gate = (unsigned)random_below(&random_state, GATES) + 1;
        is_closed[gate] = !is_closed[gate];
        while (!is_closed[gate] && bel__gate_unpark(&gates[gate]) != NULL) {}
        return;
    }
    unsigned share = (unsigned)random_below(&random_state, shares_max);
    struct bel_standing standing = standing_of(share, 0);
    is_held[share] = !is_held[share] && random_below(&random_state, 3) == 0;
    CHECK(bel__picker_hold(&picker, &standing, is_held[share]) == 0);
}

static void clear(void)
{
    bel__picker_clear(&picker);
    for (size_t i = timer_count; i-- > 0;) {
        if (!timers[i].is_leased) forget(&timers[i]);
    }
}

/* Checks how many timers of its own share are before a timer. */
static void check_ahead(const struct timer *timer)
{
    uint64_t want = 0, parked = 0, max = random_below(&random_state, UINT64_C(2) * TIMERS_MAX);
    for (size_t i = 0; i < timer_count; i++) {
        if (timers[i].share != timer->share || timers[i].is_leased) continue;
        if (!comes_before(timer->share, &timers[i].ready, &timer->ready)) continue;
        want += !is_closed[timers[i].gate];
        parked += is_closed[timers[i].gate]; /* maybe not yet */
    }
    struct bel_standing standing = standing_of(timer->share, timer->gate);
    uint64_t got = bel__picker_ahead(&picker, &standing, &timer->ready, max);
    CHECK(got >= (want < max ? want : max) && got <= (want + parked < max ? want + parked : max));
    CHECK_EQ(bel__picker_leases(&picker, &standing), (uint64_t)count_leases(timer->share));
}

/* Returns how many timers that are not leased have a gate, or one below it: 4 is below 2, and 2 and
 * 3 below 1. */
static uint64_t count_ready(unsigned gate)
{
    uint64_t count = 0;
    for (size_t i = 0; i < timer_count; i++) {
        unsigned at = timers[i].is_leased ? 0 : timers[i].gate;
        while (at > gate) {
            at /= 2;
        }
        count += at == gate;
    }
    return count;
}

static void check_gates(void)
{
    uint64_t parked = 0;
    for (unsigned gate = 1; gate <= GATES; gate++) {
        CHECK_EQ(gates[gate].timers, count_ready(gate));
        CHECK(is_closed[gate] || gates[gate].parked_timers == 0);
        CHECK((gates[gate].parked_timers > 0) == !bel__list_is_empty(&gates[gate].parked));
        parked += gates[gate].parked_timers;
    }
    CHECK_EQ(bel__picker_parked(&picker), parked);
}

static void check_all(void)
{
    struct bel_ready ready;
    struct bel_key place = {{0, 0, 0}};
    uint64_t count = 0, sum = 0, want_count = 0, want_sum = 0;
    CHECK(bel__picker_valid(&picker));
    while (bel__picker_next(&picker, &place, &ready)) {
        count++;
        sum += ready.time * 1000 + ready.sequence;
    }
    for (size_t i = 0; i < timer_count; i++) {
        if (timers[i].is_leased) continue;
        want_count++;
        want_sum += timers[i].ready.time * 1000 + timers[i].ready.sequence;
    }
    CHECK_EQ(count, want_count);
    CHECK_EQ(sum, want_sum);
    CHECK_EQ(bel__picker_count(&picker), count);
    check_gates();
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

static void begin(uint64_t seed)
{
    struct bel_siphash_key secret;
    random_state = seed;
    timer_count = sequence = turns = 0;
    random_fill(&random_state, &secret, sizeof secret);
    shares_max = (unsigned)random_below(&random_state, seed % 3 == 0 ? 2 : SHARES_MAX) + 1;
    dues = (unsigned)random_below(&random_state, 20) + 1;
    bel__picker_init(&picker, secret);
    bel__picker_set_offset(&picker, OFFSET);
    for (unsigned gate = 0; gate <= GATES; gate++) {
        bel__gate_init(&gates[gate], gate > 1 ? &gates[gate / 2] : NULL);
        is_closed[gate] = false;
    }
    for (unsigned share = 0; share < SHARES_MAX; share++) {
        is_held[share] = false;
        turn_ends[share] = in_turn[share] = 0;
    }
}

static void run_case(uint64_t seed)
{
    begin(seed);
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
        if (seed % 2 == 0 && random_below(&random_state, 16) == 0) turn_a_switch();
        if (random_below(&random_state, 500) == 0) clear();
        if (step % 16 == 0) check_all();
    }
    while (timer_count > 0) {
        end();
    }
    check_all();
    for (unsigned gate = 1; gate <= GATES; gate++) {
        CHECK_EQ(gates[gate].lines, 0);
    }
    bel__picker_finish(&picker);
    CHECK_EQ(bel__picker_bytes(&picker), 0);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
