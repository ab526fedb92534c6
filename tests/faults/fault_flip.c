/* SPDX-License-Identifier: MIT */

/*
 * Flipped bytes. A folder with timers of every kind is closed. Then one byte of one of its files is
 * changed, and the folder is checked:
 *
 *     found      the check names the damaged file or row
 *     harmless   the check passes, and an engine that opens the folder has all timers
 *
 * Any other result is a failure. The pages of the tree have no checksums, and some changes there
 * crash the process that reads them; so the check runs in a subprocess.
 *
 *     fault_flip 4711        runs only that seed
 */
#include "scene.h"
#include "shim.h"
#include "victim.h"

#include "../check.h"
#include "../random.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    SEEDS = 1,
    TURNS = 174,      /* the last segment is nearly full */
    TURNS_AGAIN = 24, /* a checkpoint begins and ends */
    SEGMENT_BYTES = 192 << 10,
    LOG_FLIPS = 150,
    TREE_FLIPS = 1000,
    USED_IN_4 = 3, /* of four flips in the log or the tree, three are of bytes other than 0 */
};

static char folder[SCENE_PATH_BYTES], copy[SCENE_PATH_BYTES];
static struct book *book;
static uint64_t chance;

struct tally {
    uint64_t found, died, harmless;
};

/* XORs one byte of a file. */
static void flip(const char *name, size_t offset, uint8_t bits)
{
    char path[4 * SCENE_PATH_BYTES];
    uint8_t byte;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK(pread(file, &byte, 1, (off_t)offset) == 1);
    byte ^= bits;
    CHECK(pwrite(file, &byte, 1, (off_t)offset) == 1);
    CHECK(close(file) == 0);
}

static void open_copy(void *context)
{
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true};
    struct victim_options options = {.folder = copy,
                                     .round = 1,
                                     .book = book,
                                     .segment_bytes = SEGMENT_BYTES,
                                     .has_no_thread = true};
    (void)context;
    shim_watch(copy, &plan);
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    (void)victim_check(&victim);
    victim_work(&victim, 1, TURNS_AGAIN);
    (void)victim_check(&victim);
    victim_close(&victim);
}

static bool is_named(const char *why)
{
    static const char *const names[] = {"superblock", "log", "tree", "row", "topic", "chunks"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(why, names[i]) != NULL) return true;
    }
    return false;
}

static void judge(struct tally *tally)
{
    struct bel_engine_report report;
    struct bel_engine_why why;
    int err = bel_engine_check(folder, &report, &why);
    if (err != 0) {
        CHECK(err == BEL_ECORRUPT || err == BEL_EUNSUPPORTED);
        CHECK(is_named(why.text));
        tally->found++;
        tally->died += strstr(why.text, "signal") != NULL;
        return;
    }
    tally->harmless++;
    scene_copy(folder, copy);
    CHECK(scene_is_well(scene_fork(open_copy, NULL)));
}

/* Chooses a byte of a file, mostly one that is not 0. */
static size_t choose(const uint8_t *bytes, size_t count)
{
    bool is_used = random_below(&chance, 4) < USED_IN_4;
    size_t offset = random_below(&chance, count);
    for (size_t i = 0; is_used && bytes[offset] == 0 && i < count; i++) {
        offset = (offset + 1) % count;
    }
    return offset;
}

static struct tally flip_file(const char *name, uint64_t flips)
{
    struct tally tally = {0};
    size_t count;
    uint8_t *bytes = scene_read(folder, name, &count);
    CHECK(bytes != NULL);
    for (uint64_t i = 0; i < flips; i++) {
        size_t offset = count <= flips ? i : choose(bytes, count);
        uint8_t bits = (uint8_t)(1 + random_below(&chance, 255));
        if (i >= count && count <= flips) break;
        flip(name, offset, bits);
        CHECK_NOTE("%s, byte %zu xor %d", name, offset, bits);
        judge(&tally);
        flip(name, offset, bits);
    }
    free(bytes);
    return tally;
}

static void add(struct tally *all, struct tally more)
{
    all->found += more.found;
    all->died += more.died;
    all->harmless += more.harmless;
}

static void say(const char *name, const struct tally *tally)
{
    printf("ok   %s (%" PRIu64 " found, %" PRIu64 " of them by dying, %" PRIu64 " harmless)\n",
           name, tally->found, tally->died, tally->harmless);
}

static void make_folder(uint64_t seed)
{
    struct victim victim;
    struct shim_plan plan = {.skips_syncs = true};
    struct victim_options options = {
        .folder = folder, .book = book, .segment_bytes = SEGMENT_BYTES, .has_no_thread = true};
    shim_watch(folder, &plan);
    CHECK(victim_open(&victim, &options) == 0);
    victim_work(&victim, seed, TURNS);
    victim_close(&victim);
    shim_stop();
    scene_check(folder);
}

static void run_seed(uint64_t seed)
{
    static const char *const logs[] = {"log-0", "log-1", "log-2"};
    struct tally all = {0};
    chance = seed;
    book = book_create(false);
    scene_make(folder);
    scene_make(copy);
    make_folder(seed);
    add(&all, flip_file("superblock", 1000)); /* every byte */
    CHECK_EQ(all.found, 64);
    say("every_byte_of_the_superblock", &all);
    all = (struct tally){0};
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        struct tally one = flip_file(logs[i], LOG_FLIPS / 3);
        add(&all, one);
    }
    CHECK(all.found > 0 && all.died == 0);
    say("bytes_of_the_log", &all);
    all = flip_file("tree/data.mdb", TREE_FLIPS);
    CHECK(all.found > 100);
    say("bytes_of_the_tree", &all);
    scene_check(folder); /* every byte was restored */
    scene_remove(folder);
    scene_remove(copy);
    book_destroy(book);
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, SEEDS);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        run_seed(seed);
    }
    return 0;
}
