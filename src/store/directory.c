/* SPDX-License-Identifier: MIT */

/*
 * The creation of a store writes LOCK, the segments of the log, superblock.new, which becomes
 * superblock, and only then tree.new, which becomes tree. A tree without a superblock is therefore
 * no interrupted creation: it is a backup that an earlier version left unfinished, or the
 * superblock was deleted.
 */
#include "store/directory.h"

#include <stdbool.h>
#include <string.h>

struct found {
    bool has_log, has_tree;
    char other[64]; /* the first foreign name; or empty */
};

static bool is_segment(const char *name)
{
    static const char prefix[] = "log-";
    size_t bytes = strlen(name), at = sizeof prefix - 1;
    if (bytes <= at || memcmp(name, prefix, at) != 0) return false;
    while (name[at] >= '0' && name[at] <= '9') {
        at++;
    }
    return at == bytes;
}

/* Returns whether a directory without a store may have a file with this name. A file system has
 * "lost+found" in its root. */
static bool is_expected(const char *name)
{
    static const char *const names[] = {"LOCK", "superblock.new", "lost+found"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

static void see(void *context, const char *name)
{
    struct found *found = context;
    if (is_segment(name)) {
        found->has_log = true;
    } else if (strcmp(name, "tree") == 0 || strcmp(name, "tree.new") == 0) {
        found->has_tree = true;
    } else if (!is_expected(name) && found->other[0] == 0) {
        (void)snprintf(found->other, sizeof found->other, "%s", name);
    }
}

static int find_superblock(struct bel_io *io, struct bel_why *why)
{
    struct bel_io_file *file;
    int err = io->open(io, "superblock", BEL_IO_READ, &file);
    if (err == BEL_ENOTFOUND) return err;
    if (err) return bel__why_system(why, err, "superblock", "opened");
    io->close(io, file);
    return 0;
}

int bel__directory_look(struct bel_io *io, struct bel_why *why)
{
    struct found found = {0};
    int err = find_superblock(io, why);
    if (err != BEL_ENOTFOUND) return err;
    err = io->list(io, see, &found);
    if (err) return bel__why_system(why, err, "the data directory", "read");
    bool is_foreign = found.other[0] != 0 && !found.has_log; /* creation checks the segments */
    if (!found.has_tree && !is_foreign) return BEL_ENOTFOUND;

    if (found.has_tree) {
        return bel__why_say(why, BEL_ECORRUPT,
                            "there is a tree but no superblock: an unfinished backup, or the "
                            "superblock was deleted; nothing was changed");
    }
    return bel__why_say(why, BEL_ECONFLICT,
                        "not a Belfry data directory, and not empty: it has '%s'", found.other);
}

static int explain(struct bel_io *io, int err, const char *name, struct bel_why *why)
{
    if (err == 0) return 0;
    if (err != BEL_EBUSY) return bel__why_system(why, err, name, "locked");
    uint64_t pid = io->holder != NULL ? io->holder(io) : 0;
    if (pid == 0) return bel__why_say(why, err, "%.200s is in use", name);
    return bel__why_say(why, err, "%.200s is in use by process %llu", name,
                        (unsigned long long)pid);
}

int bel__directory_lock(struct bel_io *io, const char *name, struct bel_why *why)
{
    return explain(io, io->lock(io), name, why);
}

int bel__directory_sign(struct bel_io *io, const char *name, struct bel_why *why)
{
    return io->sign == NULL ? 0 : explain(io, io->sign(io), name, why);
}
