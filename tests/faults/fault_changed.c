/* SPDX-License-Identifier: MIT */

/*
 * Another process empties or deletes the files of the log while an engine uses them. The next sync
 * notices that: the engine fails, names the file, and acknowledges nothing any more. Then the
 * directory is refused by name, because batches are missing. A deleted tree is noticed by the next
 * checkpoint, a deleted or changed superblock when the next segment begins.
 */
#include "scene.h"
#include "victim.h"

#include "../check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TURNS = 40,
    ROUNDS_MAX = 200, /* with a checkpoint among them */
    SEGMENTS_MAX = 4,
    SEGMENT_BYTES = 512 << 10,
    FLIPPED_AT = 40,
};

static char folder[SCENE_PATH_BYTES];
static struct book *book, *empty;
static bool is_changed;

static void tell(void *context, const struct line *line)
{
    (void)context;
    bool is_told =
        line->kind == LINE_SCHEDULED || line->kind == LINE_ENDED || line->kind == LINE_FAILED;
    CHECK(!is_told || !is_changed);
}

/* Changes every segment that is there. Returns how many. */
static int change(bool is_deleted)
{
    int count = 0;
    for (int i = 0; i < SEGMENTS_MAX; i++) {
        char path[2 * SCENE_PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/log-%d", folder, i);
        count += (is_deleted ? unlink(path) : truncate(path, 0)) == 0;
    }
    is_changed = true;
    return count;
}

static void expect_failure(bool is_deleted, bool has_no_thread)
{
    struct victim victim;
    struct victim_options options = {.folder = folder,
                                     .book = book,
                                     .tell = tell,
                                     .segment_bytes = SEGMENT_BYTES,
                                     .has_no_thread = has_no_thread};
    struct bel_why why;
    scene_clear(folder);
    book_copy(empty, book);
    is_changed = false;
    CHECK(victim_open(&victim, &options) == 0);
    victim_work(&victim, 1, TURNS);
    CHECK_EQ(victim.refused, 0);
    CHECK(change(is_deleted) > 1);
    victim.may_fail = true;
    victim_work(&victim, 2, TURNS);
    CHECK(victim.refused > 0 && victim.last_error == BEL_EIO);
    bel__store_explain(victim.store, &why);
    CHECK_NOTE("%.200s", why.text);
    CHECK(strstr(why.text, "log-") != NULL);
    CHECK(strstr(why.text, is_deleted ? "was deleted by another process"
                                      : "was changed by another process: it has ") != NULL);
    victim_close(&victim);

    options.tell = NULL;
    CHECK(victim_open(&victim, &options) == BEL_ECORRUPT);
    CHECK_NOTE("%s", victim.why);
    CHECK(strstr(victim.why, is_deleted ? "log-0 is missing" : "instead of 524288") != NULL);
}

static void nothing_is_acknowledged_after_the_log_was_emptied(void)
{
    expect_failure(false, true);
    expect_failure(false, false);
}

static void nothing_is_acknowledged_after_the_log_was_deleted(void)
{
    expect_failure(true, true);
    expect_failure(true, false);
}

static void flip_byte(const char *path)
{
    uint8_t byte = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && pread(fd, &byte, 1, FLIPPED_AT) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, FLIPPED_AT) == 1);
    close(fd);
}

/* Deletes a file, or flips a bit of it, and works until that is noticed with this error. */
static void expect_notice(const char *name, bool is_deleted, int err, bool has_no_thread)
{
    struct victim victim;
    struct victim_options options = {.folder = folder,
                                     .book = book,
                                     .segment_bytes = SEGMENT_BYTES,
                                     .has_no_thread = has_no_thread};
    struct bel_why why;
    char path[2 * SCENE_PATH_BYTES], text[SCENE_PATH_BYTES];
    scene_clear(folder);
    book_copy(empty, book);
    CHECK(victim_open(&victim, &options) == 0);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)snprintf(text, sizeof text, "%s was %s by another process", name,
                   is_deleted ? "deleted" : "changed");
    if (is_deleted) {
        CHECK(unlink(path) == 0);
    } else {
        flip_byte(path);
    }
    victim.may_fail = true;
    for (uint64_t seed = 1; victim.refused == 0 && seed <= ROUNDS_MAX; seed++) {
        victim_work(&victim, seed, TURNS);
    }
    CHECK(victim.refused > 0 && victim.last_error == err);
    bel__store_explain(victim.store, &why);
    CHECK_NOTE("%.200s", why.text);
    CHECK(strstr(why.text, text) != NULL);
    victim_close(&victim);
}

static void a_deleted_tree_is_noticed(void)
{
    expect_notice("tree/data.mdb", true, BEL_ECORRUPT, true);
}

static void a_deleted_superblock_is_noticed(void)
{
    struct victim victim;
    struct victim_options options = {
        .folder = folder, .book = book, .segment_bytes = SEGMENT_BYTES, .has_no_thread = true};
    expect_notice("superblock", true, BEL_EIO, true);
    expect_notice("superblock", true, BEL_EIO, false);
    CHECK(victim_open(&victim, &options) == BEL_ECORRUPT);
    CHECK_NOTE("%s", victim.why);
    CHECK(strstr(victim.why, "no superblock") != NULL);
}

static void a_changed_superblock_is_noticed(void)
{
    expect_notice("superblock", false, BEL_EIO, true);
    expect_notice("superblock", false, BEL_EIO, false);
}

int main(void)
{
    book = book_create(false);
    empty = book_create(false);
    scene_make(folder);
    RUN(nothing_is_acknowledged_after_the_log_was_emptied);
    RUN(nothing_is_acknowledged_after_the_log_was_deleted);
    RUN(a_deleted_tree_is_noticed);
    RUN(a_deleted_superblock_is_noticed);
    RUN(a_changed_superblock_is_noticed);
    scene_remove(folder);
    book_destroy(book);
    book_destroy(empty);
    return 0;
}
