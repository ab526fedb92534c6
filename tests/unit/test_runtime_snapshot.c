/* SPDX-License-Identifier: MIT */

/*
 * Snapshots and restores of pending timers: on a fake clock, with the source compiled in for its
 * checksum and for memory that runs out.
 */
#include "../memory.h"

#include "runtime/found.c"    /* NOLINT(bugprone-suspicious-include) */
#include "runtime/snapshot.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

enum {
    KIND = 7,
    KIND_BOXED = 8,
    LOG_MAX = 1024,
};

/* A process: its own clock and runtime. */
struct world {
    struct bel_clock_fake *fake;
    struct bel_runtime *runtime;
    struct bel_worker *worker;
};

static struct bel_event rung[LOG_MAX];
static size_t rung_count;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    CHECK(rung_count < LOG_MAX);
    rung[rung_count++] = *event;
}

static struct world open_world(int64_t wall_ms, uint64_t boot_ns)
{
    struct world w = {0};
    CHECK(bel_clock_fake_create((struct bel_wall){wall_ms}, &w.fake) == 0);
    bel_clock_fake_set_boot(w.fake, (struct bel_boot){boot_ns});
    struct bel_runtime_options options = {
        .clock = bel_clock_fake_clock(w.fake), .metronome = BEL_METRONOME_MANUAL, .timers_max = 1};
    CHECK(bel_runtime_create(&options, &w.runtime) == 0);
    CHECK(bel_runtime_on(w.runtime, KIND, ring, NULL) == 0);
    CHECK(bel_worker_enter(w.runtime, &w.worker) == 0);
    rung_count = 0;
    return w;
}

static void close_world(struct world *w)
{
    CHECK(bel_worker_leave(w->worker) == 0);
    bel_runtime_destroy(w->runtime);
    bel_clock_fake_destroy(w->fake);
}

static uint64_t now_of(const struct world *w)
{
    return bel_clock_boot(bel_clock_fake_clock(w->fake)).ns;
}

static size_t pass(struct world *w, uint64_t ns)
{
    bel_clock_fake_advance(w->fake, ns);
    return bel_worker_poll(w->worker, LOG_MAX);
}

static bel_timer_t add(struct world *w, struct bel_schedule options)
{
    bel_timer_t timer = BEL_TIMER_NONE;
    options.kind = KIND;
    CHECK(bel_runtime_schedule(w->runtime, &options, &timer) == 0);
    return timer;
}

static bel_timer_t add_delay(struct world *w, uint64_t delay, uint64_t user)
{
    return add(w, (struct bel_schedule){.due = {now_of(w) + delay}, .user = user});
}

static bel_timer_t add_instant(struct world *w, int64_t wall_ms, uint64_t user)
{
    bel_timer_t timer = BEL_TIMER_NONE;
    struct bel_schedule options = {.wall_ms = wall_ms, .user = user, .kind = KIND};
    CHECK(bel_runtime_schedule_wall(w->runtime, &options, &timer) == 0);
    return timer;
}

static uint64_t pending(const struct world *w)
{
    struct bel_runtime_stats stats;
    bel_runtime_stats(w->runtime, NULL, &stats);
    return stats.pending;
}

/* A snapshot in memory of its exact size, so that reads past its end are detected. */
struct bytes {
    uint8_t *at;
    size_t count;
};

static struct bytes take(const struct world *w)
{
    void *at = NULL;
    struct bytes bytes = {0};
    CHECK(bel_runtime_snapshot(w->runtime, &at, &bytes.count) == 0);
    bytes.at = at;
    return bytes;
}

static const struct entry *entry_of(struct bytes bytes, size_t index)
{
    CHECK(HEADER_BYTES + (index + 1) * ENTRY_BYTES <= bytes.count);
    return (const struct entry *)(const void *)(bytes.at + HEADER_BYTES) + index;
}

static size_t entries_of(struct bytes bytes)
{
    return (bytes.count - HEADER_BYTES) / ENTRY_BYTES;
}

static uint64_t user_of(struct bytes bytes, size_t index)
{
    return get(entry_of(bytes, index)->user, 8);
}

static uint64_t time_of(struct bytes bytes, size_t index)
{
    return get(entry_of(bytes, index)->time, 8);
}

static void the_checksum_is_crc64_xz(void)
{
    const uint8_t *digits = (const uint8_t *)"123456789";
    CHECK_EQ(crc64(0, digits, 9), UINT64_C(0x995dc9bbdf1939fa));
    CHECK_EQ(crc64(crc64(0, digits, 4), digits + 4, 5), UINT64_C(0x995dc9bbdf1939fa));
    CHECK_EQ(crc64(0, digits, 0), 0);
}

static void a_snapshot_is_these_bytes(void)
{
    static const uint8_t want[] = {
        'B',  'E',  'L',  'S',  'N',  'A',  'P',  0,    /* magic */
        1,    0,    0,    0,    2,    0,    0,    0,    /* version, count */
        0x15, 0xcd, 0x5b, 0x07, 0,    0,    0,    0,    /* wall: 123456789 */
        0x99, 0x2a, 0x6d, 0x39, 0x09, 0x26, 0x1d, 0x83, /* checksum */
        7,    0,    9,    1,    0,    0,    0,    0,    /* kind, priority, repeat, when */
        0x05, 0,    0,    0,    0,    0,    0,    0,    /* 5 ns remain */
        8,    7,    6,    5,    4,    3,    2,    1,    /* user */
        0x00, 0x01, 0,    0,    0,    0,    0,    0,    /* period */
        7,    0,    128,  0,    2,    0,    0,    0,    /* an instant */
        0x16, 0xcd, 0x5b, 0x07, 0,    0,    0,    0,    /* 123456790 */
        1,    0,    0,    0,    0,    0,    0,    0,    /* user */
        0,    0,    0,    0,    0,    0,    0,    0,    /* period */
    };
    struct world w = open_world(123456789, 10 * S);
    (void)add(&w, (struct bel_schedule){.due = {now_of(&w) + 5},
                                        .priority = 9,
                                        .repeat = BEL_RATE_SKIP,
                                        .period_ns = 256,
                                        .user = UINT64_C(0x0102030405060708)});
    bel_timer_t timer;
    struct bel_schedule instant = {
        .wall_ms = 123456790, .user = 1, .kind = KIND, .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule_wall(w.runtime, &instant, &timer) == 0);
    struct bytes bytes = take(&w);
    CHECK_EQ(bytes.count, sizeof want);
    for (size_t i = 0; i < sizeof want; i++) {
        CHECK_NOTE("byte %zu", i);
        CHECK_EQ(bytes.at[i], want[i]);
    }
    free(bytes.at);
    close_world(&w);
}

static void an_empty_snapshot_is_a_header_and_restores_to_nothing(void)
{
    struct world w = open_world(0, 0);
    struct bytes bytes = take(&w);
    CHECK_EQ(bytes.count, HEADER_BYTES);
    CHECK(bel_runtime_restore(w.runtime, bytes.at, bytes.count) == 0);
    CHECK_EQ(pending(&w), 0);
    free(bytes.at);
    close_world(&w);
}

static void a_snapshot_has_what_is_pending_only_sorted_each_with_its_event(void)
{
    struct world w = open_world(0, 10 * S);
    (void)add_delay(&w, 1 * S, 101);
    CHECK_EQ(pass(&w, 1 * S), 1); /* has rung */
    (void)add_delay(&w, 50 * S, 50);
    (void)add_delay(&w, 30 * S, 30);
    bel_timer_t cancelled = add_delay(&w, 10 * S, 10), moved = add_delay(&w, 5 * S, 80);
    (void)add_instant(&w, 1000 + 40000, 40);
    (void)add_delay(&w, 60 * S, 60);
    CHECK(bel_runtime_cancel(w.runtime, cancelled));
    CHECK(bel_runtime_reschedule(w.runtime, moved, (struct bel_boot){now_of(&w) + 80 * S}) == 0);
    struct bytes bytes = take(&w);
    CHECK_EQ(entries_of(bytes), 5);
    for (size_t i = 0; i < 5; i++) {
        static const uint64_t users[] = {30, 40, 50, 60, 80};
        const struct entry *entry = entry_of(bytes, i);
        CHECK_EQ(user_of(bytes, i), users[i]);
        CHECK_EQ(entry->when, users[i] == 40 ? WHEN_INSTANT : WHEN_REMAINS);
        CHECK_EQ(time_of(bytes, i), users[i] == 40 ? 41000 : users[i] * S);
        CHECK_EQ(get(entry->kind, 2), KIND);
    }
    CHECK_EQ(pending(&w), 5); /* and repeats */
    free(bytes.at);
    close_world(&w);
}

static void equal_dues_are_sorted_by_priority_then_by_order_of_scheduling(void)
{
    struct world w = open_world(0, 0);
    for (unsigned i = 0; i < 300; i++) {
        (void)add(&w, (struct bel_schedule){.due = {S}, .user = i, .priority = i % 3 == 0});
    }
    struct bytes bytes = take(&w);
    for (unsigned i = 0; i < 200; i++) {
        CHECK_EQ(user_of(bytes, i), i / 2 * 3 + 1 + i % 2);
    }
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_EQ(user_of(bytes, 200 + i), 3 * i);
    }
    free(bytes.at);
    close_world(&w);
}

static void another_day_keeps_the_remaining_time_of_delays_and_the_wall_time_of_instants(void)
{
    const int64_t midnight = INT64_C(1700006400000), day_ms = 86400000;
    struct world w = open_world(midnight, 500 * S);
    (void)add_delay(&w, 30 * S, 30);
    (void)add_instant(&w, midnight + day_ms + 60000, 60); /* tomorrow, a minute past midnight */
    (void)add_instant(&w, midnight + 3600000, 1);         /* passes in between */
    (void)add(&w, (struct bel_schedule){.due = {now_of(&w) + 45 * S},
                                        .user = 45,
                                        .period_ns = 100 * S,
                                        .repeat = BEL_RATE_SKIP});
    CHECK_EQ(pass(&w, 10 * S), 0); /* 20 s and 35 s remain */
    struct bytes bytes = take(&w);
    close_world(&w);

    w = open_world(midnight + day_ms, 3 * S); /* the machine was started again */
    CHECK(bel_runtime_restore(w.runtime, bytes.at, bytes.count) == 0);
    free(bytes.at);
    CHECK_EQ(pending(&w), 4);
    CHECK_EQ(pass(&w, 0), 1);
    CHECK_EQ(rung[0].user, 1);
    CHECK_EQ(pass(&w, 20 * S - 1), 0);
    CHECK_EQ(pass(&w, 1), 1);
    CHECK_EQ(rung[1].user, 30);
    CHECK_EQ(pass(&w, 15 * S - 1), 0);
    CHECK_EQ(pass(&w, 1), 1);
    CHECK_EQ(rung[2].user, 45);
    CHECK_EQ(pass(&w, 25 * S - 1), 0);
    CHECK_EQ(pass(&w, 1), 1);
    CHECK_EQ(rung[3].user, 60);
    CHECK_EQ(pass(&w, 75 * S - 1), 0);
    CHECK_EQ(pass(&w, 1), 1);
    CHECK_EQ(rung[4].user, 45); /* the phase is kept */
    close_world(&w);
}

static void what_is_restored_is_written_down_the_same(void)
{
    struct world w = open_world(5000, 100 * S), other = open_world(5000, 7 * S);
    for (uint64_t i = 0; i < 500; i++) {
        enum bel_repeat repeat = (enum bel_repeat)(i % 5);
        (void)add(&w, (struct bel_schedule){.due = {95 * S + i % 97 * 100 * MS},
                                            .user = i,
                                            .priority = (uint8_t)(i * 7),
                                            .period_ns = repeat == BEL_ONCE ? 0 : i,
                                            .repeat = (uint8_t)repeat});
        (void)add_instant(&w, 4000 + (int64_t)(i % 89) * 100, i);
    }
    struct bytes first = take(&w);
    CHECK(bel_runtime_restore(other.runtime, first.at, first.count) == 0);
    struct bytes again = take(&other);
    CHECK_EQ(again.count, first.count);
    CHECK(memcmp(first.at, again.at, first.count) == 0);
    free(first.at);
    free(again.at);
    close_world(&w);
    close_world(&other);
}

static void a_timer_that_is_overdue_stays_so(void)
{
    struct world w = open_world(0, 100 * S);
    (void)add(&w, (struct bel_schedule){.due = {98 * S}, .user = 1});
    (void)add(&w, (struct bel_schedule){.due = {10 * S}, .user = 2});
    struct bytes bytes = take(&w);
    CHECK_EQ(entry_of(bytes, 0)->when, WHEN_OVERDUE);
    CHECK_EQ(time_of(bytes, 0), 90 * S);
    close_world(&w);
    w = open_world(0, 50 * S);
    CHECK(bel_runtime_restore(w.runtime, bytes.at, bytes.count) == 0);
    free(bytes.at);
    CHECK_EQ(pass(&w, 0), 2);
    CHECK_EQ(rung[0].user, 2);
    CHECK_EQ(rung[0].due.ns, 0); /* there is no time before the start of the machine */
    CHECK_EQ(rung[1].due.ns, 48 * S);
    close_world(&w);
}

static void what_is_too_far_ahead_is_restored_for_the_last_instant(void)
{
    struct world w = open_world(0, 0);
    (void)add(&w, (struct bel_schedule){.due = {LAST_INSTANT}, .user = 1});
    (void)add_instant(&w, (int64_t)(LAST_INSTANT / MS), 2);
    struct bytes bytes = take(&w);
    CHECK_EQ(time_of(bytes, 1), LAST_INSTANT);
    close_world(&w);
    w = open_world(-1, 1000 * S);
    CHECK(bel_runtime_restore(w.runtime, bytes.at, bytes.count) == 0);
    free(bytes.at);
    CHECK_EQ(pending(&w), 2);
    bel_clock_fake_set_boot(w.fake, (struct bel_boot){LAST_INSTANT});
    CHECK_EQ(pass(&w, 0), 2);
    CHECK_EQ(rung[0].due.ns, LAST_INSTANT);
    CHECK_EQ(rung[1].due.ns, LAST_INSTANT);
    close_world(&w);
}

static void timers_that_wait_for_a_worker_are_written_down_too(void)
{
    struct world w = open_world(0, 0);
    (void)add_delay(&w, 5 * S, 5);
    CHECK(bel_runtime_shutdown(w.runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
    (void)add_delay(&w, 4 * S, 4);
    struct bytes bytes = take(&w);
    CHECK_EQ(entries_of(bytes), 2);
    CHECK_EQ(user_of(bytes, 0), 4);
    free(bytes.at);
    CHECK(bel_worker_enter(w.runtime, &w.worker) == 0);
    close_world(&w);
}

/* Callbacks that take snapshots. */

static struct bytes seen_inside;

static void ring_and_take(void *context, const struct bel_event *event)
{
    seen_inside = take(context);
    rung[rung_count++] = *event;
}

static void a_ringing_timer_is_written_down_only_if_it_will_ring_again(void)
{
    struct world w = open_world(0, 10 * S);
    bel_timer_t timer;
    CHECK(bel_runtime_on(w.runtime, 1, ring_and_take, &w) == 0);
    struct bel_schedule once = {.due = {now_of(&w)}, .kind = 1};
    CHECK(bel_runtime_schedule(w.runtime, &once, &timer) == 0);
    CHECK_EQ(pass(&w, 0), 1);
    CHECK_EQ(entries_of(seen_inside), 0);
    free(seen_inside.at);
    once.repeat = BEL_RATE_SKIP;
    once.period_ns = 7 * S;
    CHECK(bel_runtime_schedule(w.runtime, &once, &timer) == 0);
    CHECK_EQ(pass(&w, S), 1);
    CHECK_EQ(entries_of(seen_inside), 1);
    CHECK_EQ(entry_of(seen_inside, 0)->when, WHEN_OVERDUE);
    CHECK_EQ(time_of(seen_inside, 0), S); /* the period that it rings for */
    free(seen_inside.at);
    struct bytes after = take(&w);
    CHECK_EQ(time_of(after, 0), 6 * S);
    free(after.at);
    close_world(&w);
}

static void an_event_in_an_inbox_is_not_pending(void)
{
    struct world w = open_world(0, 0);
    struct bel_inbox *inbox;
    bel_timer_t timer;
    CHECK(bel_inbox_create(w.runtime, &inbox) == 0);
    CHECK(bel_runtime_on_inbox(w.runtime, KIND_BOXED, inbox) == 0);
    struct bel_schedule options = {
        .kind = KIND_BOXED, .repeat = BEL_RATE_BURST, .period_ns = S, .user = 9};
    CHECK(bel_runtime_schedule(w.runtime, &options, &timer) == 0);
    options.repeat = BEL_ONCE;
    CHECK(bel_runtime_schedule(w.runtime, &options, &timer) == 0);
    CHECK_EQ(pass(&w, 10 * S), 12);
    struct bytes bytes = take(&w); /* the repeating timer, without its earlier rings */
    CHECK_EQ(entries_of(bytes), 1);
    CHECK_EQ(time_of(bytes, 0), S);
    free(bytes.at);
    close_world(&w);
}

/*
 * Invalid snapshots.
 */

static struct world refusing;

/* Restores a copy of its exact size and expects an error that changes nothing. */
static void expect(const uint8_t *from, size_t count, int want)
{
    uint8_t *copy = malloc(count > 0 ? count : 1);
    CHECK(copy != NULL);
    memcpy(copy, from, count);
    uint64_t before = pending(&refusing);
    CHECK(bel_runtime_restore(refusing.runtime, copy, count) == want);
    CHECK_EQ(pending(&refusing), before);
    free(copy);
}

static struct bytes make_sample(void)
{
    refusing = open_world(77, 10 * S);
    (void)add_delay(&refusing, 3 * S, 3);
    (void)add_delay(&refusing, 2 * S, 2);
    (void)add_instant(&refusing, 99999, 1);
    (void)add(&refusing, (struct bel_schedule){.due = {1}, .repeat = BEL_DELAY, .period_ns = 5});
    return take(&refusing);
}

static void damage_of_every_byte_is_refused(void)
{
    struct bytes bytes = make_sample();
    for (size_t i = 0; i < bytes.count; i++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            CHECK_NOTE("byte %zu ^ %u", i, flip);
            bytes.at[i] ^= (uint8_t)flip;
            expect(bytes.at, bytes.count, BEL_ECORRUPT);
            bytes.at[i] ^= (uint8_t)flip;
        }
    }
    CHECK(bel_runtime_restore(refusing.runtime, bytes.at, bytes.count) == 0); /* it was valid */
    free(bytes.at);
    close_world(&refusing);
}

static void a_snapshot_cut_off_anywhere_is_refused(void)
{
    struct bytes bytes = make_sample();
    for (size_t count = 0; count < bytes.count; count++) {
        CHECK_NOTE("%zu bytes", count);
        expect(bytes.at, count, BEL_ECORRUPT);
        uint8_t resealed[256]; /* the same with a correct checksum */
        memcpy(resealed, bytes.at, count);
        if (count >= HEADER_BYTES) frame_seal(resealed, count);
        expect(resealed, count, BEL_ECORRUPT);
    }
    free(bytes.at);
    close_world(&refusing);
}

static void a_snapshot_with_something_behind_it_is_refused(void)
{
    struct bytes bytes = make_sample();
    for (size_t more = 1; more <= sizeof(struct entry[2]); more++) {
        uint8_t longer[512] = {0};
        memcpy(longer, bytes.at, bytes.count);
        expect(longer, bytes.count + more, BEL_ECORRUPT);
        frame_seal(longer, bytes.count + more);
        expect(longer, bytes.count + more, BEL_ECORRUPT);
    }
    free(bytes.at);
    close_world(&refusing);
}

static void a_count_that_would_overflow_is_refused(void)
{
    struct bytes bytes = make_sample();
    uint64_t count = entries_of(bytes);
    static const uint64_t wrong[] = {0, 1, 5, 1 << 27, 1u << 31, UINT32_MAX};
    for (unsigned i = 0; i < 6; i++) {
        put(bytes.at + offsetof(struct header, count), wrong[i], 4);
        frame_seal(bytes.at, bytes.count);
        expect(bytes.at, bytes.count, BEL_ECORRUPT);
    }
    put(bytes.at + offsetof(struct header, count), count, 4);
    frame_seal(bytes.at, bytes.count);
    CHECK(bel_runtime_restore(refusing.runtime, bytes.at, bytes.count) == 0);
    free(bytes.at);
    close_world(&refusing);
}

/* Sets a byte of an entry, as a faulty writer would. */
static void expect_with(struct bytes bytes, size_t at, uint8_t value, int want)
{
    uint8_t copy[256];
    CHECK_NOTE("byte %zu = %u", at, value);
    memcpy(copy, bytes.at, bytes.count);
    copy[at] = value;
    frame_seal(copy, bytes.count);
    expect(copy, bytes.count, want);
}

static void a_newer_version_is_refused_and_so_is_none(void)
{
    struct bytes bytes = make_sample();
    expect_with(bytes, 8, 2, BEL_EINVAL);
    expect_with(bytes, 11, 1, BEL_EINVAL);
    expect_with(bytes, 8, 0, BEL_ECORRUPT);
    expect_with(bytes, 0, 'b', BEL_ECORRUPT);
    free(bytes.at);
    close_world(&refusing);
}

static void an_entry_that_makes_no_sense_is_refused_before_anything_is_scheduled(void)
{
    struct bytes bytes = make_sample();
    size_t last = bytes.count - ENTRY_BYTES;
    expect_with(bytes, last + 3, BEL_DELAY + 1, BEL_ECORRUPT);    /* repeat */
    expect_with(bytes, last + 4, WHEN_INSTANT + 1, BEL_ECORRUPT); /* when */
    expect_with(bytes, last + 3, BEL_RATE_SKIP, BEL_ECORRUPT);    /* without a period */
    expect_with(bytes, last + 5, 1, BEL_ECORRUPT);                /* zeros */
    expect_with(bytes, last + 7, 1, BEL_ECORRUPT);                /* zeros */
    put(bytes.at + last + 8, (uint64_t)WALL_NONE, 8);             /* no instant */
    expect_with(bytes, last + 4, WHEN_INSTANT, BEL_ECORRUPT);
    free(bytes.at);
    close_world(&refusing);
}

static void a_kind_without_a_meaning_is_refused_before_anything_is_scheduled(void)
{
    struct bytes bytes = make_sample();
    size_t last = bytes.count - ENTRY_BYTES;
    expect_with(bytes, last, KIND + 1, BEL_EINVAL);
    expect_with(bytes, last + 1, 4, BEL_EINVAL); /* 1024 + 7: too large */
    expect_with(bytes, last + 1, 255, BEL_EINVAL);
    free(bytes.at);
    close_world(&refusing);
}

static void a_runtime_that_is_full_is_left_as_it_was(void)
{
    enum {
        EACH = 1000
    };
    struct world w = open_world(0, 0);
    for (uint64_t i = 0; i < EACH; i++) {
        (void)add_delay(&w, S + i, i);
    }
    struct bytes bytes = take(&w);
    int err = 0;
    uint64_t times = 0;
    while (err == 0) { /* magazines allow some more than the limit */
        err = bel_runtime_restore(w.runtime, bytes.at, bytes.count);
        if (err == 0) times++;
        CHECK(times < 100);
    }
    CHECK(err == BEL_EFULL);
    CHECK_EQ(pending(&w), EACH * (times + 1));
    CHECK(bel_runtime_restore(w.runtime, bytes.at, bytes.count) == BEL_EFULL);
    CHECK_EQ(pending(&w), EACH * (times + 1));
    free(bytes.at);
    close_world(&w);
}

static void without_memory_nothing_is_written_and_nothing_scheduled(void)
{
    struct bytes bytes = make_sample();
    void *out = &refusing;
    size_t count = 5;
    for (uint64_t left = 0; left < 2; left++) {
        memory_left = left;
        CHECK(bel_runtime_snapshot(refusing.runtime, &out, &count) == BEL_ENOMEM);
        CHECK(out == &refusing && count == 5);
    }
    memory_left = 0;
    CHECK(bel_runtime_restore(refusing.runtime, bytes.at, bytes.count) == BEL_ENOMEM);
    memory_left = UINT64_MAX;
    CHECK_EQ(pending(&refusing), 4);
    free(bytes.at);
    close_world(&refusing);
}

static void a_snapshot_can_be_read_without_a_runtime(void)
{
    struct world w = open_world(5000, 100 * S);
    struct bel_snapshot_timer timer;
    struct bel_wall taken;
    size_t count;
    (void)add_delay(&w, 2 * S, 1);
    (void)add_instant(&w, 9000, 2);
    (void)add(&w, (struct bel_schedule){.due = {now_of(&w) - S},
                                        .user = 3,
                                        .priority = 7,
                                        .repeat = BEL_RATE_SKIP,
                                        .period_ns = 5 * S});
    struct bytes bytes = take(&w);
    close_world(&w);
    CHECK(bel_snapshot_open(bytes.at, bytes.count, &taken, &count) == 0);
    CHECK(taken.ms == 5000);
    CHECK_EQ(count, 3);
    bel_snapshot_read(bytes.at, 0, &timer);
    CHECK_EQ(timer.user, 3);
    CHECK_EQ(timer.overdue_ns, S);
    CHECK_EQ(timer.remaining_ns, 0);
    CHECK_EQ(timer.period_ns, 5 * S);
    CHECK_EQ(timer.repeat, BEL_RATE_SKIP);
    CHECK_EQ(timer.priority, 7);
    CHECK_EQ(timer.kind, KIND);
    bel_snapshot_read(bytes.at, 1, &timer);
    CHECK_EQ(timer.user, 1);
    CHECK_EQ(timer.remaining_ns, 2 * S);
    CHECK(!timer.is_wall);
    CHECK_EQ(timer.period_ns, 0);
    bel_snapshot_read(bytes.at, 2, &timer);
    CHECK(timer.is_wall && timer.wall.ms == 9000);
    bytes.at[40] ^= 1;
    CHECK(bel_snapshot_open(bytes.at, bytes.count, &taken, &count) == BEL_ECORRUPT);
    CHECK(bel_snapshot_open(bytes.at, 31, &taken, &count) == BEL_ECORRUPT);
    free(bytes.at);
}

int main(void)
{
    RUN(the_checksum_is_crc64_xz);
    RUN(a_snapshot_is_these_bytes);
    RUN(an_empty_snapshot_is_a_header_and_restores_to_nothing);
    RUN(a_snapshot_has_what_is_pending_only_sorted_each_with_its_event);
    RUN(equal_dues_are_sorted_by_priority_then_by_order_of_scheduling);
    RUN(another_day_keeps_the_remaining_time_of_delays_and_the_wall_time_of_instants);
    RUN(what_is_restored_is_written_down_the_same);
    RUN(a_timer_that_is_overdue_stays_so);
    RUN(what_is_too_far_ahead_is_restored_for_the_last_instant);
    RUN(timers_that_wait_for_a_worker_are_written_down_too);
    RUN(a_ringing_timer_is_written_down_only_if_it_will_ring_again);
    RUN(an_event_in_an_inbox_is_not_pending);
    RUN(damage_of_every_byte_is_refused);
    RUN(a_snapshot_cut_off_anywhere_is_refused);
    RUN(a_snapshot_with_something_behind_it_is_refused);
    RUN(a_count_that_would_overflow_is_refused);
    RUN(a_newer_version_is_refused_and_so_is_none);
    RUN(an_entry_that_makes_no_sense_is_refused_before_anything_is_scheduled);
    RUN(a_kind_without_a_meaning_is_refused_before_anything_is_scheduled);
    RUN(a_runtime_that_is_full_is_left_as_it_was);
    RUN(without_memory_nothing_is_written_and_nothing_scheduled);
    RUN(a_snapshot_can_be_read_without_a_runtime);
    return 0;
}
