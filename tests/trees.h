/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_TREES_H
#define BEL_TESTS_TREES_H

/*
 * The two trees behind one fixture, so that a test is written once and run against both:
 *
 *     for (int i = 0; i < TREE_KINDS; i++) {
 *         struct fixture fixture;
 *         fixture_init(&fixture, i);       an empty tree: fixture.tree
 *         fixture_reopen(&fixture);        closed, and opened again
 *         fixture_finish(&fixture);        and nothing is left of it
 *     }
 */

#include "store/tree/tree.h"

#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TREE_MEMORY,
    TREE_LMDB,
    TREE_KINDS,
};

static const uint64_t FIXTURE_MAP_BYTES = UINT64_C(1) << 30;

struct fixture {
    struct bel_tree *tree;
    int kind;
    char folder[64];
    char path[72];
};

static inline const char *fixture_name(const struct fixture *fixture)
{
    return fixture->kind == TREE_MEMORY ? "in memory" : "on LMDB";
}

static inline void fixture_open(struct fixture *fixture, enum bel_tree_mode mode)
{
    struct bel_tree_options options = {
        .path = fixture->path, .mode = mode, .map_bytes = FIXTURE_MAP_BYTES};
    CHECK(bel__tree_lmdb_open(&options, &fixture->tree) == 0);
}

static inline void fixture_init(struct fixture *fixture, int kind)
{
    *fixture = (struct fixture){.kind = kind};
    if (kind == TREE_MEMORY) {
        CHECK(bel__tree_memory_create_lasting(&fixture->tree) == 0);
        return;
    }
    (void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/belfry-tree-XXXXXX");
    CHECK(mkdtemp(fixture->folder) != NULL);
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/tree", fixture->folder);
    fixture_open(fixture, BEL_TREE_CREATE);
}

static inline void fixture_reopen(struct fixture *fixture)
{
    fixture->tree->close(fixture->tree);
    if (fixture->kind == TREE_LMDB) fixture_open(fixture, BEL_TREE_OPEN);
}

static inline void fixture_remove_files(const struct fixture *fixture)
{
    char name[96];
    (void)snprintf(name, sizeof name, "%s/data.mdb", fixture->path);
    (void)unlink(name);
    (void)snprintf(name, sizeof name, "%s/lock.mdb", fixture->path);
    (void)unlink(name);
    (void)rmdir(fixture->path);
    (void)rmdir(fixture->folder);
}

static inline void fixture_finish(struct fixture *fixture)
{
    if (fixture->tree != NULL) fixture->tree->close(fixture->tree);
    if (fixture->kind == TREE_MEMORY) {
        bel__tree_memory_destroy(fixture->tree);
    } else {
        fixture_remove_files(fixture);
    }
    fixture->tree = NULL;
}

/* Flips a bit of the byte at `offset` in the file, which is mapped: it is seen at once. */
static inline void fixture_flip_file(const struct fixture *fixture, off_t offset)
{
    char name[96];
    unsigned char byte;
    (void)snprintf(name, sizeof name, "%s/data.mdb", fixture->path);
    int file = open(name, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK(pread(file, &byte, 1, offset) == 1);
    byte ^= 1;
    CHECK(pwrite(file, &byte, 1, offset) == 1);
    CHECK(close(file) == 0);
}

/* Where the file has `bytes`, from `from` on; or -1. */
static inline off_t fixture_find_file(const struct fixture *fixture, struct bel_view bytes,
                                      off_t from)
{
    char name[96];
    struct stat info;
    (void)snprintf(name, sizeof name, "%s/data.mdb", fixture->path);
    int file = open(name, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK(fstat(file, &info) == 0);
    CHECK(from <= info.st_size);
    size_t count = (size_t)(info.st_size - from);
    unsigned char *copy = malloc(count + 1);
    CHECK(copy != NULL);
    CHECK(pread(file, copy, count, from) == (ssize_t)count);
    const unsigned char *found = memmem(copy, count, bytes.data, bytes.bytes);
    off_t offset = found == NULL ? -1 : from + (found - copy);
    free(copy);
    CHECK(close(file) == 0);
    return offset;
}

#endif
