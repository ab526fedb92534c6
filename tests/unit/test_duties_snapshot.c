/* SPDX-License-Identifier: MIT */

/*
 * Snapshots of duties: written by one process and restored by another, after another boot.
 */
#include "duties_rig.h"

static void arm_some(void)
{
    CHECK(bel_duties_retry(duties, (struct bel_duty_for){1, 10}, 1) == 0); /* 10 s */
    for (unsigned i = 0; i < 6; i++) { /* opens at the 5th: 30 s */
        CHECK(bel_duties_fail(duties, (struct bel_duty_for){2, 20}) == 0);
    }
    CHECK(bel_duties_fail(duties, (struct bel_duty_for){3, 30}) == 0); /* counted only */
    CHECK(bel_duties_watch(duties, (struct bel_duty_for){4, 40}, 7 * S) == 0);
    struct bel_duty_ticks ticks = {
        .first = {now() + S}, .period_ns = 100 * S, .overlap = BEL_OVERLAP_QUEUE};
    CHECK(bel_duties_cron(duties, (struct bel_duty_for){5, 50}, &ticks) == 0);
    CHECK(bel_duties_start_job(duties, (struct bel_duty_for){6, 60}, 2 * S) == 0);
}

static void a_snapshot_has_the_names_with_all_that_belongs_to_them(void)
{
    void *snapshot;
    size_t bytes;
    open_all();
    arm_some();
    CHECK_EQ(pass(S), 1); /* the first tick: its run has not ended */
    let_ring(S);          /* the job's timeout has rung, and its event is not taken */
    CHECK(bel_duties_snapshot(duties, &snapshot, &bytes) == 0);
    CHECK_EQ(take(), 1);
    close_all();

    open_all();
    bel_clock_fake_advance(fake, 1000 * S); /* another boot */
    (void)bel_worker_poll(worker, 1);
    CHECK(bel_duties_retry(duties, (struct bel_duty_for){1, 99}, 9) == 0); /* is replaced */
    CHECK(bel_duties_restore(duties, snapshot, bytes) == 0);
    CHECK_EQ(pass(0), 1);
    CHECK_EQ(came[0].duty, BEL_DUTY_JOB_TIMEOUT);
    CHECK_EQ(came[0].user, 60);
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 2), 5);
    CHECK(bel_duties_is_pending(duties, BEL_DUTY_BREAKER, 2));
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 3), 1);
    CHECK(!bel_duties_is_pending(duties, BEL_DUTY_BREAKER, 3));
    CHECK_EQ(pass(5 * S - 1), 0);
    CHECK_EQ(pass(1), 1);
    CHECK_EQ(came[0].duty, BEL_DUTY_STALE);
    CHECK_EQ(came[0].key, 4);
    CHECK_EQ(pass(3 * S), 1);
    CHECK_EQ(came[0].duty, BEL_DUTY_RETRY);
    CHECK_EQ(came[0].user, 10);
    CHECK_EQ(pass(20 * S), 1);
    CHECK_EQ(came[0].duty, BEL_DUTY_BREAKER);
    CHECK_EQ(pass(71 * S), 0);            /* a tick, which waits for the run */
    CHECK(bel_duties_end_run(duties, 5)); /* and starts now */
    CHECK_EQ(pass(100 * S), 0);
    CHECK(bel_duties_cancel(duties, BEL_DUTY_CRON, 5));
    free(snapshot);
    close_all();
}

static void a_damaged_snapshot_of_duties_is_refused_and_changes_nothing(void)
{
    void *snapshot;
    size_t bytes;
    open_all();
    arm_some();
    CHECK(bel_duties_snapshot(duties, &snapshot, &bytes) == 0);
    close_all();
    open_all();
    uint8_t *byte = snapshot;
    for (size_t i = 0; i < bytes; i++) {
        byte[i] ^= 0x41;
        CHECK_NOTE("byte %zu", i);
        CHECK(bel_duties_restore(duties, snapshot, bytes) == BEL_ECORRUPT);
        byte[i] ^= 0x41;
    }
    CHECK(bel_duties_restore(duties, snapshot, bytes - 1) == BEL_ECORRUPT);
    CHECK(bel_runtime_restore(runtime, snapshot, bytes) == BEL_ECORRUPT); /* another kind */
    CHECK(!bel_duties_is_pending(duties, BEL_DUTY_RETRY, 1));
    CHECK(bel_duties_restore(duties, snapshot, bytes) == 0);
    CHECK(bel_duties_is_pending(duties, BEL_DUTY_RETRY, 1));
    close_all();
    open_with((struct bel_duties_options){.names_max = 3}); /* no room for all of them */
    CHECK(bel_duties_restore(duties, snapshot, bytes) == BEL_EFULL);
    for (enum bel_duty duty = BEL_DUTY_RETRY; duty < BEL_DUTY_COUNT; duty++) {
        for (uint64_t key = 1; key <= 6; key++) {
            CHECK(!bel_duties_is_pending(duties, duty, key));
        }
    }
    free(snapshot);
    close_all();
}

int main(void)
{
    RUN(a_snapshot_has_the_names_with_all_that_belongs_to_them);
    RUN(a_damaged_snapshot_of_duties_is_refused_and_changes_nothing);
    return 0;
}
