/* SPDX-License-Identifier: MIT */

/*
 * One sync fails; the next one would succeed. From then on nothing is acknowledged, and every
 * command fails, until the engine is opened again. Then nothing that was acknowledged is missing.
 *
 * After a failed sync the kernel marks pages as clean and does not write them again, but a
 * restarted process still reads them from the page cache. So the failure, the next opening and the
 * work after it are recorded, and the power is cut in all of that: later work must not depend on
 * pages that never reached the disk.
 *
 *     fault_sync 17        fails only sync 17
 */
#include "images.h"
#include "scene.h"
#include "shim.h"
#include "victim.h"

#include "../ask.h"
#include "../check.h"
#include "../random.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

enum {
    TURNS = 60,
    TURNS_TREE = 250, /* the tree is synced less often */
    TURNS_AGAIN = 10,
    SEGMENT_BYTES = 192 << 10,
    SYNCS_MAX = 1000,
    CUTS = 2, /* per failure */
};

static char folder[SCENE_PATH_BYTES], image[SCENE_PATH_BYTES];
static struct book *book, *empty;
static uint64_t chance = 1, images_count;
static bool is_tree;

static struct victim_options options_of(const char *where, uint64_t round, struct book *whose,
                                        victim_tell *tell)
{
    return (struct victim_options){.folder = where,
                                   .round = round,
                                   .book = whose,
                                   .tell = tell,
                                   .segment_bytes = SEGMENT_BYTES,
                                   .has_no_thread = true};
}

/* Checks that nothing is acknowledged after the log has failed. A failure of the tree may go
 * unnoticed for a while: what is acknowledged then is in the log. */
static void tell(void *context, const struct line *line)
{
    (void)context;
    bool is_told =
        line->kind == LINE_SCHEDULED || line->kind == LINE_ENDED || line->kind == LINE_FAILED;
    CHECK(!is_told || is_tree || !shim_has_failed());
    shim_say(line, sizeof *line);
}

static void tell_again(void *context, const struct line *line)
{
    (void)context;
    shim_say(line, sizeof *line);
}

/* Checks that every command fails. */
static void expect_errors(struct victim *victim)
{
    static const enum bel_verb verbs[] = {BEL_VERB_SCHEDULE, BEL_VERB_GET, BEL_VERB_TOPICS};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        struct bel_request request = {.command = {.verb = verbs[i]}};
        struct bel_view topic = BEL_VIEW("mail");
        struct reply_seen answer;
        if (verbs[i] == BEL_VERB_SCHEDULE) request.command.schedule.topic = topic;
        if (verbs[i] == BEL_VERB_GET) request.command.target.topic = topic;
        ask_submit(victim->backend, &request, &answer);
        (void)bel_backend_turn(victim->backend, victim->now);
        CHECK(answer.is_done && answer.err == BEL_EIO);
    }
}

/* Works until the sync that fails. Returns false if there are fewer syncs. */
static bool work_failing(uint64_t sync)
{
    struct victim victim;
    struct shim_plan plan = {
        .skips_syncs = true, .fail_sync_at = sync, .fails_tree = is_tree, .is_recording = true};
    struct victim_options options = options_of(folder, 0, book, tell);
    shim_watch(folder, &plan);
    int err = victim_open(&victim, &options);
    if (err) {
        CHECK(err == BEL_EIO && shim_has_failed());
        return true;
    }
    victim.may_fail = true;
    victim_work(&victim, 1, is_tree ? TURNS_TREE : TURNS);
    if (victim.refused > 0) CHECK(victim.last_error == BEL_EIO);
    CHECK(victim.refused == 0 || shim_has_failed());
    if (victim.refused > 0) {
        struct bel_why why;
        expect_errors(&victim);
        bel__store_explain(victim.store, &why);
        CHECK_NOTE("%.200s", why.text);
        CHECK(strstr(why.text, is_tree ? "tree" : "cannot be synced: Input/output error") != NULL);
    }
    victim_close(&victim);
    return shim_has_failed();
}

/* Opens the folder again, as a restarted process that reads from the page cache. */
static void work_again(void)
{
    struct victim victim;
    struct victim_options options = options_of(folder, 1, book, tell_again);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    (void)victim_check(&victim);
    victim_work(&victim, 2, TURNS_AGAIN);
    (void)victim_check(&victim);
    victim_close(&victim);
}

static void check_image(void *context)
{
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true};
    struct victim_options options = options_of(image, 2, context, NULL);
    shim_watch(image, &plan);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    (void)victim_check(&victim);
    victim_close(&victim);
}

/* Cuts the power at events after the failure, from the last one backwards. */
static void cut(const struct shim_record *record)
{
    struct book *then = book_create(false);
    struct images *disk = images_create(IMAGES_HONEST);
    size_t failure = record->count, at[CUTS];
    for (size_t i = 0; i < record->count; i++) {
        if (record->events[i].kind == SHIM_LOSS) failure = i;
    }
    assert(failure < record->count);
    for (size_t i = 0; i < CUTS; i++) {
        at[i] = failure + random_below(&chance, record->count - failure);
    }
    for (size_t i = 0; i < record->count; i++) {
        const struct shim_event *event = &record->events[i];
        for (size_t j = 0; j < CUTS; j++) {
            if (at[j] != i) continue;
            images_cut(disk, event, image, &chance);
            images_count++;
            CHECK(scene_is_well(scene_fork(check_image, then)));
        }
        if (event->kind == SHIM_SAY) {
            struct line line;
            memcpy(&line, event->data, sizeof line);
            book_take(then, &line);
        }
        images_apply(disk, event);
    }
    images_destroy(disk);
    book_destroy(then);
}

static bool fail_at(uint64_t sync)
{
    CHECK_NOTE("sync %" PRIu64 " of the %s", sync, is_tree ? "tree" : "log");
    scene_clear(folder);
    book_copy(empty, book);
    bool has_failed = work_failing(sync);
    shim_heal();
    work_again();
    shim_stop();
    struct shim_record record = shim_take_record();
    if (has_failed) cut(&record);
    shim_release_record(&record);
    return has_failed;
}

static void fail_each(uint64_t only, uint64_t syncs_min)
{
    uint64_t sync = only > 0 ? only : 1;
    while (fail_at(sync) && only == 0) {
        sync++;
        CHECK(sync < SYNCS_MAX);
    }
    CHECK(only > 0 || sync > syncs_min);
    printf("ok   nothing_is_acknowledged_after_a_sync_of_the_%s_that_failed (%" PRIu64
           " syncs, %" PRIu64 " power cuts after)\n",
           is_tree ? "tree" : "log", sync - 1, images_count);
    images_count = 0;
}

int main(int argc, char **argv)
{
    uint64_t only = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    book = book_create(false);
    empty = book_create(false);
    scene_make(folder);
    scene_make(image);
    fail_each(only, TURNS);
    is_tree = true;
    fail_each(only, 8);
    scene_remove(folder);
    scene_remove(image);
    book_destroy(book);
    book_destroy(empty);
    return 0;
}
