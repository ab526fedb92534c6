/* SPDX-License-Identifier: MIT */

/*
 * Power failures of an engine that replies before it syncs (durability `interval` and `none`). Its
 * file operations and replies are recorded, and disk images are made as they may be after a power
 * cut at some event. The content of each must be the state after one of the turns:
 *
 *     turn 1   turn 2   turn 3   sync   turn 4   turn 5   turn 6   cut
 *                                  |------------------------------|
 *                                   the state after one of these; never 4 and 6 without 5
 *
 * and not before the last turn that had been answered when the log was last synced.
 *
 *     fault_prefix 4711       runs only that seed
 *
 * Two controls: some images must have lost timers, or the test is too weak; and on a disk that
 * ignores the syncs of the log, the check must find the tree ahead of the log.
 */
#include "images.h"
#include "scene.h"
#include "shim.h"
#include "victim.h"

#include "../check.h"
#include "../random.h"

#include <string.h>
#include <sys/mman.h>

enum {
    SEEDS = 2,
    TURNS = 250,
    CUTS = 60, /* per seed */
    SEGMENT_BYTES = 192 << 10,
    INTERVAL_NS = 2 * 1000 * 1000,
};

/* A recording and a position in it. */
struct tape {
    struct shim_record record;
    size_t at;
    size_t turns;        /* number of turns begun */
    size_t turns_synced; /* number of turns answered at the last sync of the log */
    bool is_answered;    /* the last turn was answered */
};

/* The result of an image; in memory shared with the process that opens it. */
struct found {
    size_t turns; /* number of turns whose effects are there */
    bool is_lost; /* acknowledged changes are lost */
};

static char folder[SCENE_PATH_BYTES], image[SCENE_PATH_BYTES];
static uint64_t chance, interval_ns, image_count, lost_count, wrong_count;
static bool is_control;
static struct tape tape;
static struct book *book; /* with all lines so far */
static struct found *found;

static void tell(void *context, const struct line *line)
{
    (void)context;
    shim_say(line, sizeof *line);
}

static struct shim_record record_work(void)
{
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true, .is_recording = true};
    struct book *all = book_create(false);
    struct victim_options options = {.folder = folder,
                                     .book = all,
                                     .tell = tell,
                                     .segment_bytes = SEGMENT_BYTES,
                                     .is_lazy = true,
                                     .sync_interval_ns = interval_ns};
    shim_watch(folder, &plan);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    victim_work(&victim, random_u64(&chance), TURNS);
    victim_close(&victim);
    shim_stop();
    book_destroy(all);
    return shim_take_record();
}

static struct line line_of(const struct shim_event *event)
{
    struct line line;
    CHECK(event->bytes == sizeof line);
    memcpy(&line, event->data, sizeof line);
    return line;
}

static bool is_answer(const struct line *line)
{
    return line->kind == LINE_SCHEDULED || line->kind == LINE_ENDED || line->kind == LINE_FAILED;
}

/* Returns whether an entry of a book differs from what was seen. */
static bool differs(const struct book *then, const struct book *seen, uint32_t number)
{
    const struct book_entry *a = &then->entries[number], *b = &seen->entries[number];
    if (a->is_there != b->is_seen) return true;
    return a->is_there && a->attempts != b->attempts_seen;
}

/* Returns the line of the reply to a request, as if it had succeeded and been received. */
static struct line done_of(const struct book *then, struct line line)
{
    switch (line.kind) {
    case LINE_ASK_SCHEDULE:
        return (struct line){line.number, 0, LINE_SCHEDULED};
    case LINE_ASK_END:
        return (struct line){line.number, 0, LINE_ENDED};
    case LINE_ASK_FAIL:
        line.attempts = (uint16_t)(then->entries[line.number].attempts + 1);
        line.kind = LINE_FAILED;
        return line;
    default:
        return line;
    }
}

/* Finds the turn whose state matches what was seen, from the last turn backwards. Every request of
 * a turn succeeds; in this work none is refused. */
static bool find_turn(const struct book *seen, size_t *out)
{
    struct book *then = book_create(false);
    uint64_t different = 0;
    size_t turns = 0;
    bool is_found = false;
    for (uint32_t i = 0; i < seen->end; i++) {
        different += differs(then, seen, i);
    }
    for (size_t i = 0; i <= tape.at; i++) {
        bool is_end = i == tape.at;
        if (!is_end && tape.record.events[i].kind != SHIM_SAY) continue;
        struct line line = {.kind = LINE_TURN};
        if (!is_end) line = line_of(&tape.record.events[i]);
        if (line.kind == LINE_TURN) { /* the turns before it are complete */
            if (different == 0) *out = turns;
            if (different == 0) is_found = true;
            turns++;
        }
        if (is_end || line.kind < LINE_ASK_SCHEDULE || line.kind > LINE_ASK_FAIL) continue;
        book_take(then, &line);
        struct line done = done_of(then, line);
        different -= differs(then, seen, line.number);
        book_take(then, &done);
        different += differs(then, seen, line.number);
    }
    book_destroy(then);
    return is_found;
}

static void check_image(void *context)
{
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true};
    struct victim_options options = {
        .folder = image, .round = 1, .book = book, .segment_bytes = SEGMENT_BYTES};
    (void)context;
    if (is_control) CHECK(freopen("/dev/null", "we", stderr) != NULL);
    shim_watch(image, &plan);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    (void)victim_see(&victim);
    victim_close(&victim);
    CHECK(find_turn(book, &found->turns)); /* otherwise the engine never had this state */
    CHECK_NOTE("turn %zu of %zu; %zu were synced", found->turns, tape.turns, tape.turns_synced);
    CHECK(found->turns >= tape.turns_synced);
    found->is_lost = found->turns + !tape.is_answered < tape.turns;
}

static void judge_image(void)
{
    *found = (struct found){0};
    bool is_well = scene_is_well(scene_fork(check_image, NULL));
    image_count++;
    lost_count += found->is_lost;
    wrong_count += !is_well;
    CHECK(is_well || is_control);
}

/* Applies the next event. */
static void pass(struct images *disk)
{
    const struct shim_event *event = &tape.record.events[tape.at++];
    images_apply(disk, event);
    if (event->kind == SHIM_SYNC && strncmp(event->name, "log-", 4) == 0) {
        tape.turns_synced = tape.is_answered || tape.turns == 0 ? tape.turns : tape.turns - 1;
    }
    if (event->kind != SHIM_SAY) return;
    struct line line = line_of(event);
    book_take(book, &line);
    if (line.kind == LINE_TURN) tape.turns++;
    if (line.kind == LINE_TURN) tape.is_answered = false;
    if (is_answer(&line)) tape.is_answered = true;
}

static void run(uint64_t seed, enum images_lie lie)
{
    chance = seed;
    image_count = lost_count = wrong_count = 0;
    is_control = lie != IMAGES_HONEST;
    scene_make(folder);
    scene_make(image);
    tape = (struct tape){.record = record_work()};
    book = book_create(false);
    struct images *disk = images_create(lie);
    uint64_t left = CUTS, events = tape.record.count;
    while (tape.at < tape.record.count && left > 0) {
        while (left > 0 && random_below(&chance, events) < left) {
            CHECK_NOTE("event %zu of %zu", tape.at, tape.record.count);
            images_cut(disk, &tape.record.events[tape.at], image, &chance);
            judge_image();
            left--;
        }
        events--;
        pass(disk);
    }
    images_destroy(disk);
    shim_release_record(&tape.record);
    book_destroy(book);
    scene_remove(folder);
    scene_remove(image);
}

static void check_mode(const char *name, uint64_t interval, const struct cases *cases)
{
    uint64_t images = 0, lost = 0;
    interval_ns = interval;
    for (uint64_t seed = cases->first; seed <= cases->last; seed++) {
        run(seed, IMAGES_HONEST);
        images += image_count;
        lost += lost_count;
    }
    CHECK(lost > 0); /* otherwise replies have waited for syncs */
    printf("ok   what_is_left_is_a_beginning (%s: %" PRIu64 " images, %" PRIu64 " of them had lost "
           "something)\n",
           name, images, lost);
    run(cases->first, IMAGES_NO_LOG_SYNC);
    CHECK(wrong_count > 0);
    printf("ok   a_log_that_is_not_synced_is_noticed (%s: %" PRIu64 " of %" PRIu64 " images)\n",
           name, wrong_count, image_count);
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, SEEDS);
    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(found != MAP_FAILED);
    check_mode("interval", INTERVAL_NS, &cases);
    check_mode("none", 0, &cases);
    return 0;
}
