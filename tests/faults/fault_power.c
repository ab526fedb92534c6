/* SPDX-License-Identifier: MIT */

/*
 * Power failures. The file operations of a victim are recorded, together with the replies it gets.
 * From the recording, disk images are made as they may be after a power cut at some event, with
 * only a part of the unsynced writes. Each image is opened and compared with what had been
 * acknowledged. For some, the opening and the work after it are recorded as well, and the power is
 * cut again.
 *
 *     fault_power 4711        runs only that seed
 *
 * A control must fail: the same test with a disk that ignores syncs.
 */
#include "images.h"
#include "scene.h"
#include "shim.h"
#include "victim.h"

#include "../check.h"
#include "../random.h"

#include <string.h>
#include <unistd.h>

enum {
    SEEDS = 2,
    TURNS = 250,
    CUTS = 100,       /* per seed */
    AGAIN_EVERY = 5,  /* one in 5 images is cut again */
    CUTS_AGAIN = 3,   /* further cuts of such an image */
    TURNS_AGAIN = 12, /* turns of work before a further cut */
    CONTROL_CUTS = 60,
    SEGMENT_BYTES = 192 << 10,
};

static char folder[SCENE_PATH_BYTES], image[SCENE_PATH_BYTES];
static uint64_t chance, image_count, wrong_count;
static bool is_control;

static void tell(void *context, const struct line *line)
{
    (void)context;
    shim_say(line, sizeof *line);
}

/* Opens the engine, checks it against the book, works, and records all of that. */
static struct shim_record record_work(const char *where, uint64_t round, struct book *book,
                                      uint64_t turns)
{
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true, .is_recording = true};
    struct victim_options options = {.folder = where,
                                     .round = round,
                                     .book = book,
                                     .tell = tell,
                                     .segment_bytes = SEGMENT_BYTES};
    shim_watch(where, &plan);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    if (round > 0) (void)victim_check(&victim);
    victim_work(&victim, random_u64(&chance), turns);
    victim_close(&victim);
    shim_stop();
    return shim_take_record();
}

struct check {
    struct book *book;
    uint64_t round;
};

static void check_image(void *context)
{
    const struct check *check = context;
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true};
    struct victim_options options = {.folder = image,
                                     .round = check->round,
                                     .book = check->book,
                                     .segment_bytes = SEGMENT_BYTES};
    if (is_control) CHECK(freopen("/dev/null", "we", stderr) != NULL);
    shim_watch(image, &plan);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    (void)victim_check(&victim);
    victim_close(&victim);
}

static void judge_image(struct book *book, uint64_t round)
{
    struct check check = {book, round};
    bool is_well = scene_is_well(scene_fork(check_image, &check));
    image_count++;
    wrong_count += !is_well;
    CHECK(is_well || is_control);
}

static void take_say(struct book *book, const struct shim_event *event)
{
    struct line line;
    CHECK(event->bytes == sizeof line);
    memcpy(&line, event->data, sizeof line);
    book_take(book, &line);
}

static void cut_again(const struct book *book, uint64_t round);

/* Cuts a recording at random events. */
static void cut(struct images *disk, const struct shim_record *record, struct book *book,
                uint64_t cuts, uint64_t round)
{
    uint64_t left = cuts, events = 0;
    for (size_t i = 0; i < record->count; i++) {
        events += record->events[i].kind != SHIM_SAY;
    }
    for (size_t i = 0; i < record->count && left > 0; i++) {
        const struct shim_event *event = &record->events[i];
        if (event->kind == SHIM_SAY) {
            take_say(book, event);
            continue;
        }
        while (left > 0 && random_below(&chance, events) < left) { /* `left` of the rest */
            CHECK_NOTE("round %" PRIu64 ", event %zu of %zu", round, i, record->count);
            images_cut(disk, event, image, &chance);
            left--;
            judge_image(book, round + 1);
            if (round > 0 || is_control || left % AGAIN_EVERY != 0) continue;
            images_cut(disk, event, image, &chance); /* opening has changed the image before */
            cut_again(book, round + 1);
        }
        events--;
        images_apply(disk, event);
    }
}

/* Checks that the recording contains writes to the tree. */
static void check_record(const struct shim_record *record)
{
    unsigned log_syncs = 0, tree_syncs = 0;
    for (size_t i = 0; i < record->count; i++) {
        const struct shim_event *event = &record->events[i];
        if (event->kind != SHIM_SYNC) continue;
        *(strncmp(event->name, "tree/", 5) == 0 ? &tree_syncs : &log_syncs) += 1;
    }
    CHECK(log_syncs >= TURNS && tree_syncs >= 5);
}

/* Opens an image, and cuts the power during the opening or the work after it. */
static void cut_again(const struct book *book, uint64_t round)
{
    struct book *then = book_create(false), *before = book_create(false);
    book_copy(book, then);
    book_copy(book, before);
    struct images *disk = images_load(image, IMAGES_HONEST);
    struct shim_record record = record_work(image, round, then, TURNS_AGAIN);
    cut(disk, &record, before, CUTS_AGAIN, round);
    shim_release_record(&record);
    images_destroy(disk);
    book_destroy(then);
    book_destroy(before);
}

static void run(uint64_t seed, enum images_lie lie, uint64_t cuts)
{
    struct book *book = book_create(false), *before = book_create(false);
    chance = seed;
    image_count = wrong_count = 0;
    is_control = lie != IMAGES_HONEST;
    scene_make(folder);
    scene_make(image);
    struct shim_record record = record_work(folder, 0, book, TURNS);
    check_record(&record);
    struct images *disk = images_create(lie);
    cut(disk, &record, before, cuts, 0);
    images_destroy(disk);
    shim_release_record(&record);
    scene_remove(folder);
    scene_remove(image);
    book_destroy(book);
    book_destroy(before);
}

int main(int argc, char **argv)
{
    static const char *const lies[] = {[IMAGES_NO_SYNC] = "any sync",
                                       [IMAGES_NO_LOG_SYNC] = "syncs of the log",
                                       [IMAGES_NO_TREE_SYNC] = "syncs of the tree",
                                       [IMAGES_NO_NAME_SYNC] = "syncs of folders"};
    struct cases cases = cases_of(argc, argv, SEEDS);
    uint64_t images = 0;
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        run(seed, IMAGES_HONEST, CUTS);
        images += image_count;
    }
    printf("ok   a_power_cut_loses_nothing_acknowledged (%" PRIu64 " images)\n", images);
    for (int lie = IMAGES_HONEST + 1; lie < IMAGES_LIES; lie++) {
        run(cases.first, (enum images_lie)lie, CONTROL_CUTS);
        CHECK_NOTE("%s", lies[lie]);
        CHECK(wrong_count > 0);
        printf("ok   a_disk_that_ignores_%s_is_noticed (%" PRIu64 " of %" PRIu64 " images)\n",
               lies[lie], wrong_count, image_count);
    }
    return 0;
}
