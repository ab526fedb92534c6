/* SPDX-License-Identifier: MIT */

/*
 * Backups of an engine. A backup contains what was acknowledged before it began, can be opened and
 * used, and passes the check, also if the original is in use meanwhile. A backup interrupted by a
 * kill, at each event in turn, cannot be opened, and the original is not damaged.
 */
#include "scene.h"
#include "shim.h"
#include "victim.h"

#include "../check.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURNS = 150,
    TURNS_BETWEEN = 3, /* two polls */
    POLLS_MAX = 100000,
    SEGMENT_BYTES = 192 << 10,
    EVENTS_MAX = 500,
};

static char folder[SCENE_PATH_BYTES], copy[SCENE_PATH_BYTES];
static struct book *book, *then;
static uint64_t seed = 1;

static void open_victim(struct victim *victim, const char *where, uint64_t round,
                        struct book *whose)
{
    struct victim_options options = {
        .folder = where, .round = round, .book = whose, .segment_bytes = SEGMENT_BYTES};
    int err = victim_open(victim, &options);
    CHECK_NOTE("%s", victim->why);
    CHECK(err == 0);
}

/* Polls until the backup is finished, and works in between. Returns the number of polls. */
static int finish(struct victim *victim)
{
    struct bel_engine_why why;
    for (int i = 1; i < POLLS_MAX; i++) {
        int err = bel_engine_backup_poll(victim->engine, &why);
        CHECK_NOTE("%.200s", why.text);
        CHECK(err == 0 || err == BEL_EBUSY);
        if (err == 0) return i;
        victim_work(victim, seed++, TURNS_BETWEEN);
    }
    CHECK(false);
    return 0;
}

/* Checks that the backup contains what was acknowledged when it began, and that it works. */
static void check_copy(uint64_t round)
{
    struct victim victim;
    struct bel_engine_report report;
    struct bel_engine_why why;
    int err = bel_engine_check(copy, &report, &why);
    CHECK_NOTE("%.200s", why.text);
    CHECK(err == 0);
    open_victim(&victim, copy, round, then);
    CHECK(victim_check(&victim) > 0);
    victim_work(&victim, seed++, TURNS);
    (void)victim_check(&victim);
    victim_close(&victim);
    open_victim(&victim, copy, round + 1, then);
    (void)victim_check(&victim);
    victim_close(&victim);
}

static void a_copy_has_all_that_was_answered(void)
{
    struct victim victim;
    open_victim(&victim, folder, 0, book);
    for (int i = 0; i < 3; i++) {
        struct bel_engine_why why;
        victim_work(&victim, seed++, TURNS);
        book_copy(book, then);
        scene_clear(copy);
        CHECK(bel_engine_backup(victim.engine, copy, &why) == 0);
        check_copy(1);
    }
    victim_close(&victim);
}

static void an_engine_works_while_it_is_copied(void)
{
    struct victim victim;
    struct bel_engine_report report;
    struct bel_engine_why why;
    open_victim(&victim, folder, 2, book);
    CHECK(bel_engine_backup_poll(victim.engine, NULL) == BEL_ENOTFOUND);
    scene_clear(copy);
    CHECK(bel_engine_backup_begin(victim.engine, copy, &why) == 0);
    CHECK(bel_engine_backup_begin(victim.engine, copy, &why) == BEL_EBUSY);
    CHECK(finish(&victim) > 1);
    CHECK(bel_engine_backup_poll(victim.engine, NULL) == BEL_ENOTFOUND);
    CHECK(bel_engine_check(copy, &report, &why) == 0);
    CHECK(report.timers > 0);
    (void)victim_check(&victim);
    CHECK(bel_engine_backup_begin(victim.engine, copy, &why) == BEL_ECONFLICT);
    CHECK(strstr(why.text, "not empty") != NULL);
    CHECK(bel_engine_backup_begin(victim.engine, folder, &why) == BEL_ECONFLICT);
    scene_clear(copy);
    FILE *file = fopen(copy, "w");
    CHECK(file != NULL && fclose(file) == 0);
    CHECK(bel_engine_backup_begin(victim.engine, copy, &why) == BEL_ECONFLICT);
    CHECK(strstr(why.text, "not a folder") != NULL);
    CHECK(unlink(copy) == 0);
    CHECK(bel_engine_backup_begin(victim.engine, copy, &why) == 0);
    victim_close(&victim); /* which stops the backup */
}

static void memory_cannot_be_copied(void)
{
    struct bel_engine *engine;
    CHECK(bel_engine_open(&(struct bel_engine_options){0}, &engine, NULL) == 0);
    CHECK(bel_engine_backup(engine, copy, NULL) == BEL_EUNSUPPORTED);
    bel_engine_close(engine);
}

/* --- interrupted backups --- */

static void copy_until_killed(void *context)
{
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true, .kill_at = *(uint64_t *)context};
    open_victim(&victim, folder, 3, book);
    shim_watch(copy, &plan);
    CHECK(bel_engine_backup(victim.engine, copy, NULL) == 0);
    victim_close(&victim);
}

static void a_copy_that_was_cut_short_is_none(void)
{
    struct bel_engine_report report;
    bool is_whole = false;
    for (uint64_t event = 1; !is_whole; event++) {
        CHECK_NOTE("event %" PRIu64, event);
        CHECK(event < EVENTS_MAX);
        scene_clear(copy);
        int status = scene_fork(copy_until_killed, &event);
        is_whole = scene_is_well(status);
        CHECK(is_whole || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        int err = bel_engine_check(copy, &report, NULL);
        if (err == 0) { /* killed in the last sync: the backup is complete */
            book_copy(book, then);
            check_copy(4);
        }
        CHECK(err == 0 || (err == BEL_ENOTFOUND && !is_whole));
        scene_check(folder);
    }
}

int main(void)
{
    book = book_create(false);
    then = book_create(false);
    scene_make(folder);
    scene_make(copy);
    RUN(a_copy_has_all_that_was_answered);
    RUN(an_engine_works_while_it_is_copied);
    RUN(memory_cannot_be_copied);
    RUN(a_copy_that_was_cut_short_is_none);
    scene_remove(folder);
    scene_remove(copy);
    book_destroy(book);
    book_destroy(then);
    return 0;
}
