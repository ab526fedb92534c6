/* SPDX-License-Identifier: MIT */

/*
 * Backups of an engine. A backup contains what was acknowledged before it began, can be opened and
 * used, and passes the check, also if the original is in use meanwhile. A backup interrupted by a
 * kill or by a full disk, at each event in turn, cannot be opened, and the original is not damaged;
 * the next backup to the same directory replaces it.
 */
#include "scene.h"
#include "shim.h"
#include "victim.h"

#include "store/state.h"

#include "../check.h"

#include <signal.h>
#include <string.h>
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

static bool exists(const char *name)
{
    char path[2 * SCENE_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", copy, name);
    return access(path, F_OK) == 0;
}

/* Checks that nothing opens the copy, or that it is complete. Returns whether it is complete. */
static bool check_refused(bool may_be_whole)
{
    struct bel_engine_report report;
    struct bel_engine_why why = {{0}};
    struct victim victim;
    struct victim_options options = {.folder = copy, .book = then};
    int err = bel_engine_check(copy, &report, &why);
    CHECK_NOTE("%s: %.200s", bel_error_text(err), why.text);
    if (err == 0) {
        CHECK(may_be_whole);
        return true;
    }
    if (!exists("superblock")) { /* an empty directory would be taken for a new store */
        CHECK(err == BEL_ENOTFOUND && !exists("."));
        return false;
    }
    CHECK(err == BEL_ECORRUPT);
    CHECK(strstr(why.text, "an unfinished backup: ") != NULL);
    CHECK(victim_open(&victim, &options) == BEL_ECORRUPT);
    CHECK(strstr(victim.why, "an unfinished backup: ") != NULL);
    return false;
}

struct cut {
    uint64_t event;
    enum shim_moment when;
};

static void copy_until_killed(void *context)
{
    const struct cut *cut = context;
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true, .kill_at = cut->event, .when = cut->when};
    open_victim(&victim, folder, 3, book);
    shim_watch(copy, &plan);
    CHECK(bel_engine_backup(victim.engine, copy, NULL) == 0);
    victim_close(&victim);
}

static void a_copy_that_was_cut_short_is_refused(void)
{
    for (int when = SHIM_BEFORE; when < SHIM_MOMENTS; when++) {
        struct cut cut = {.when = (enum shim_moment)when};
        bool is_whole = false;
        scene_clear(copy);
        while (!is_whole) {
            cut.event++;
            CHECK(cut.event < EVENTS_MAX);
            int status = scene_fork(copy_until_killed, &cut);
            CHECK_NOTE("event %" PRIu64 ", moment %d", cut.event, when);
            is_whole = scene_is_well(status);
            CHECK(is_whole || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
            if (check_refused(true)) { /* or killed in the last sync */
                book_copy(book, then);
                check_copy(4);
                scene_clear(copy);
            } else if (cut.event % 2 == 0) {
                scene_clear(copy); /* otherwise the next backup replaces it */
            }
            scene_check(folder);
        }
        CHECK(cut.event > 20);
    }
}

static void a_full_disk_of_the_copy_harms_nobody(void)
{
    struct victim victim;
    struct bel_engine_why why = {{0}};
    int err = BEL_EFULL;
    open_victim(&victim, folder, 6, book);
    for (uint64_t event = 1; err != 0; event++) {
        struct shim_plan plan = {.skips_syncs = true, .full_at = event};
        CHECK(event < EVENTS_MAX);
        if (event % 2 == 0) scene_clear(copy); /* otherwise it replaces the failed one */
        shim_watch(copy, &plan);
        err = bel_engine_backup(victim.engine, copy, &why);
        CHECK_NOTE("event %" PRIu64 ": %s: %.150s", event, bel_error_text(err), why.text);
        CHECK(err == 0 || err == BEL_EFULL);
        CHECK(err == 0 || strstr(why.text, "No space left on device") != NULL);
        shim_stop();
        CHECK(check_refused(err == 0) == (err == 0));
        CHECK(exists("superblock") || !exists(".")); /* also if it was full from the beginning */
        CHECK(err == 0 || (!exists("log-0") && !exists("tree/data.mdb")));
        victim_work(&victim, seed++, TURNS_BETWEEN);
        CHECK(victim.refused == 0);
    }
    (void)victim_check(&victim);
    victim_close(&victim);
}

/* The original's tree cannot grow, and the checkpoint of a backup fails: the rows come
 * from tree and log. */
static void a_full_original_is_copied_with_its_log(void)
{
    struct victim victim;
    struct bel_engine_why why = {{0}};
    open_victim(&victim, folder, 7, book);
    for (uint64_t i = 0; i < 6; i++) {
        struct shim_plan plan = {.skips_syncs = true, .full_at = i + 1};
        victim_work(&victim, seed++, TURNS_BETWEEN * (i + 1));
        book_copy(book, then);
        scene_clear(copy);
        shim_watch(folder, &plan);
        int err = bel_engine_backup(victim.engine, copy, &why);
        CHECK_NOTE("%" PRIu64 ": %s: %.200s", i, bel_error_text(err), why.text);
        CHECK(err == 0);
        CHECK(i > 0 || victim.store->retry_err == BEL_EFULL);
        shim_stop();
        check_copy(8);
        (void)victim_check(&victim);
    }
    victim_close(&victim);
    scene_check(folder);
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
    RUN(a_copy_that_was_cut_short_is_refused);
    RUN(a_full_disk_of_the_copy_harms_nobody);
    RUN(a_full_original_is_copied_with_its_log);
    scene_remove(folder);
    scene_remove(copy);
    book_destroy(book);
    book_destroy(then);
    return 0;
}
