/* SPDX-License-Identifier: MIT */

/*
 * The check of a tree that another process writes. The writer is this process; the check runs in a
 * forked one, which uses nothing of LMDB that it has inherited. They take turns by two pipes.
 */
#include "store/tree/scrub.h"

#include "../trees.h"

#include <stdlib.h>
#include <sys/wait.h>

enum {
    ROWS = 20000,
    VALUE_BYTES = 60,
    STEP_PAGES = 64,
    DAMAGED = 7, /* exit status */
};

static struct fixture fixture;
static int to_checker[2], to_writer[2];

static void put_all(uint64_t epoch)
{
    struct bel_tree *tree = fixture.tree;
    char value[VALUE_BYTES];
    memset(value, 'a' + (int)(epoch % 26), sizeof value);
    CHECK(tree->begin(tree) == 0);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = {{1, 2, 3 * i}};
        CHECK(tree->put(tree, &key, (struct bel_view){value, sizeof value}) == 0);
    }
    CHECK(tree->commit(tree, epoch) == 0);
    CHECK(tree->refresh(tree) == 0);
}

static uint64_t file_bytes(void)
{
    struct bel_tree_stats stats;
    fixture.tree->stats(fixture.tree, &stats);
    return stats.bytes;
}

static void make(void)
{
    fixture_init(&fixture, TREE_LMDB);
    for (uint64_t epoch = 1; epoch <= 4; epoch++) {
        put_all(epoch);
    }
    CHECK(pipe(to_checker) == 0 && pipe(to_writer) == 0);
}

static void unmake(void)
{
    fixture_finish(&fixture);
    for (int i = 0; i < 2; i++) {
        CHECK(close(to_checker[i]) == 0 && close(to_writer[i]) == 0);
    }
}

static void tell(const int pipe[2])
{
    CHECK(write(pipe[1], "", 1) == 1);
}

static void wait_for(const int pipe[2])
{
    char byte;
    CHECK(read(pipe[0], &byte, 1) == 1);
}

/* --- the checker --- */

struct seen {
    struct bel_scrub_progress last;
    unsigned waits; /* how often to wait for the writer */
    bool dies;
};

static int see(void *context, const struct bel_scrub_progress *progress)
{
    struct seen *seen = context;
    CHECK(progress->pages_done <= progress->pages);
    seen->last = *progress;
    if (progress->rows == 0 || seen->waits == 0) return 0;
    seen->waits--;
    tell(to_writer);
    wait_for(to_checker);
    if (seen->dies) _exit(0); /* still registered as a reader */
    return 0;
}

static int scrub(struct seen *seen, uint64_t growth_bytes_max)
{
    struct bel_why why = {0};
    struct bel_scrub_options options = {.path = fixture.path,
                                        .growth_bytes_max = growth_bytes_max,
                                        .step_pages = STEP_PAGES,
                                        .report = see,
                                        .context = seen};
    int err = bel__tree_scrub(&options, &why);
    if (err == BEL_ECORRUPT) CHECK(strstr(why.text, "tree") != NULL);
    return err;
}

static void join(pid_t child, int want)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == want);
}

static pid_t start(void (*run)(void))
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run();
        _exit(0);
    }
    return child;
}

/* --- cases --- */

static void check_whole(void)
{
    struct seen seen = {0};
    CHECK(scrub(&seen, 1) == 0);
    CHECK_EQ(seen.last.rows, ROWS);
    CHECK_EQ(seen.last.pages_done, seen.last.pages);
    CHECK_EQ(seen.last.snapshots, 1);
    CHECK_EQ(seen.last.growth_bytes_max, 0);
}

static void a_tree_in_use_is_checked_in_one_snapshot(void)
{
    make();
    join(start(check_whole), 0);
    unmake();
}

/* With a limit that is reached, the snapshot is replaced, and the check goes on behind its row. */
static void check_twice(void)
{
    struct seen seen = {.waits = 3};
    CHECK(scrub(&seen, 1 << 20) == 0);
    CHECK_EQ(seen.last.snapshots, 2);
    CHECK(seen.last.rows >= ROWS);
    CHECK(seen.last.rows < (size_t)3 * ROWS);
    CHECK(seen.last.growth_bytes_max > 1 << 20);
}

static void a_snapshot_for_which_the_file_grows_too_much_is_replaced(void)
{
    make();
    uint64_t before = file_bytes(), grown;
    pid_t child = start(check_twice);
    wait_for(to_writer);
    for (uint64_t epoch = 5; epoch < 9; epoch++) { /* none of these pages can be reused */
        put_all(epoch);
    }
    grown = file_bytes();
    CHECK(grown > before + (1 << 20));
    tell(to_checker);
    wait_for(to_writer); /* it reports the growth */
    tell(to_checker);
    wait_for(to_writer); /* and has taken another snapshot */
    put_all(9);
    put_all(10);
    CHECK(file_bytes() < grown + (1 << 18)); /* pages of the first snapshot are used again */
    tell(to_checker);
    join(child, 0);
    unmake();
}

/* A snapshot that never grows too much is kept, whatever is written. */
static void check_old(void)
{
    struct seen seen = {.waits = 1};
    CHECK(scrub(&seen, UINT64_MAX) == 0);
    CHECK_EQ(seen.last.snapshots, 1);
    CHECK_EQ(seen.last.rows, ROWS);
    CHECK(seen.last.growth_bytes_max > 0);
}

static void a_snapshot_is_not_disturbed_by_writes(void)
{
    make();
    pid_t child = start(check_old);
    wait_for(to_writer);
    for (uint64_t epoch = 5; epoch < 12; epoch++) {
        put_all(epoch);
    }
    tell(to_checker);
    join(child, 0);
    unmake();
}

static void die_in_between(void)
{
    struct seen seen = {.waits = 1, .dies = true};
    (void)!scrub(&seen, UINT64_MAX);
    CHECK(false);
}

static void a_checker_that_is_killed_does_not_hold_pages(void)
{
    make();
    pid_t child = start(die_in_between);
    wait_for(to_writer);
    tell(to_checker);
    join(child, 0);
    put_all(5);
    put_all(6);
    uint64_t before = file_bytes();
    for (uint64_t epoch = 7; epoch < 17; epoch++) {
        put_all(epoch);
    }
    CHECK(file_bytes() < before + (1 << 20));
    unmake();
}

static void check_damaged(void)
{
    struct seen seen = {0};
    _exit(scrub(&seen, UINT64_MAX) == BEL_ECORRUPT ? DAMAGED : 0);
}

static void damage_is_found(void)
{
    enum {
        PAGE = 4096,
        LEAF = 2
    };
    char path[96];
    uint8_t page[PAGE];
    off_t at = (off_t)2 * PAGE;
    make();
    (void)snprintf(path, sizeof path, "%s/data.mdb", fixture.path);
    int file = open(path, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    struct bel_key key = {{1, 2, 0}};
    struct bel_view value;
    CHECK(fixture.tree->get(fixture.tree, &key, &value) == 0);
    for (;; at += PAGE) { /* the leaf that has the row now */
        CHECK(pread(file, page, PAGE, at) == PAGE);
        const void *found = memmem(page, PAGE, value.data, value.bytes);
        if (page[10] != LEAF || found == NULL) continue;
        size_t offset = (size_t)((const uint8_t *)found - page);
        page[offset] ^= 4;
        CHECK(pwrite(file, page + offset, 1, at + (off_t)offset) == 1);
        break;
    }
    CHECK(close(file) == 0);
    join(start(check_damaged), DAMAGED);
    unmake();
}

int main(void)
{
    RUN(a_tree_in_use_is_checked_in_one_snapshot);
    RUN(a_snapshot_for_which_the_file_grows_too_much_is_replaced);
    RUN(a_snapshot_is_not_disturbed_by_writes);
    RUN(a_checker_that_is_killed_does_not_hold_pages);
    RUN(damage_is_found);
    return 0;
}
