/* SPDX-License-Identifier: MIT */

/*
 * A script of some 200 operations, killed at each of its writes, syncs and renames: before the
 * event, and in the middle of a write. Then the folder is opened, and the opening is killed at its
 * first event, at its second, and so on until it completes. Then the folder is compared with what
 * was acknowledged.
 *
 *     fault_script 17        kills only at event 17
 *
 * The book is in shared memory, so that it survives a kill. Syncs are skipped, because they do not
 * matter for a kill.
 */
#include "scene.h"
#include "shim.h"
#include "victim.h"

#include "../check.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURNS = 70,
    ORDERS_MIN = 150,
    SEGMENT_BYTES = 192 << 10, /* small, so that there are checkpoints and segments are reused */
    OPEN_EVENTS_MAX = 200,
    RECOVER_EVERY = 2, /* kills of openings follow every second kill, except in the long test */
};

struct run {
    uint64_t seed, round;
    struct shim_plan plan;
    bool is_check;
};

static struct book *book, *empty;
static char folder[SCENE_PATH_BYTES];
static uint64_t kills, open_kills;

static void live(void *context)
{
    const struct run *run = context;
    struct victim victim;
    struct victim_options options = {.folder = folder,
                                     .round = run->round,
                                     .book = book,
                                     .segment_bytes = SEGMENT_BYTES,
                                     .has_no_thread = true};
    shim_watch(folder, &run->plan);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    if (run->seed != 0) victim_work(&victim, run->seed, TURNS);
    if (run->is_check) (void)victim_check(&victim);
    victim_close(&victim);
}

static bool was_killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Opens and closes the folder, killed at each event in turn; each time what the last kill left. */
static void kill_openings(void)
{
    for (uint64_t event = 1; event < OPEN_EVENTS_MAX; event++) {
        struct run run = {.round = 1,
                          .plan = {.skips_syncs = true,
                                   .kill_at = event,
                                   .when = event % 2 == 0 ? SHIM_HALFWAY : SHIM_BEFORE}};
        int status = scene_fork(live, &run);
        if (scene_is_well(status)) return;
        CHECK(was_killed(status));
        open_kills++;
    }
    CHECK(false);
}

/* Runs the script up to an event. Returns whether it was killed there. */
static bool kill_at(uint64_t event, enum shim_moment when, bool kills_openings)
{
    struct run run = {.seed = 1, .plan = {.skips_syncs = true, .kill_at = event, .when = when}};
    struct run check = {.round = 2, .is_check = true, .plan = {.skips_syncs = true}};
    CHECK_NOTE("event %" PRIu64 ", %s", event, when == SHIM_BEFORE ? "before" : "halfway");
    scene_clear(folder);
    book_copy(empty, book);
    int status = scene_fork(live, &run);
    if (scene_is_well(status)) return false;
    CHECK(was_killed(status));
    kills++;
    scene_check(folder);
    if (kills_openings) kill_openings();
    CHECK(scene_is_well(scene_fork(live, &check)));
    return true;
}

static uint32_t count_ended(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < book->end; i++) {
        count += book->entries[i].is_gone;
    }
    return count;
}

int main(int argc, char **argv)
{
    bool is_long = getenv("BEL_TEST_LONG") != NULL; /* NOLINT(concurrency-mt-unsafe) */
    uint64_t only = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    book = book_create(true);
    empty = book_create(false);
    scene_make(folder);
    CHECK(!kill_at(0, SHIM_BEFORE, false)); /* without a kill */
    CHECK(book->told_count >= ORDERS_MIN);
    CHECK(count_ended() > 20);
    for (uint64_t event = only > 0 ? only : 1;; event++) {
        bool kills_openings = is_long || event % RECOVER_EVERY == 0;
        if (!kill_at(event, SHIM_BEFORE, kills_openings)) break;
        CHECK(kill_at(event, SHIM_HALFWAY, kills_openings && is_long));
        if (only > 0) break;
    }
    CHECK(only > 0 || kills > 100);
    printf("ok   a_kill_at_any_event_leaves_whole_batches (%" PRIu64 " kills, %" PRIu64
           " more of openings)\n",
           kills, open_kills);
    scene_remove(folder);
    book_destroy(book);
    book_destroy(empty);
    return 0;
}
