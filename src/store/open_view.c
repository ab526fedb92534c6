/* SPDX-License-Identifier: MIT */

/*
 * Opens a store read-only. Recovery runs as usual, on files that discard writes (io/view.c) and a
 * tree opened for reading, so the replayed batches stay in memory. A missing tree is replaced by an
 * empty one, as in a new store; if it was lost, recovery notices that the log begins too late.
 */
#include "store/directory.h"
#include "store/state.h"
#include "store/tree/pages.h"

#include <assert.h>
#include <stdlib.h>

/* Returns the folder of the tree, which the caller frees; NULL if out of memory. */
static char *tree_path(const char *path)
{
    size_t bytes = strlen(path) + sizeof "/tree";
    char *name = malloc(bytes);
    if (name != NULL) (void)snprintf(name, bytes, "%s/tree", path);
    return name;
}

static int open_tree(const char *path, struct bel_tree **out, struct bel_why *why)
{
    char *name = tree_path(path);
    if (name == NULL) return BEL_ENOMEM;
    struct bel_tree_options options = {.path = name, .mode = BEL_TREE_READ};
    int err = bel__tree_pages_check(name, why);
    bool is_said = err == BEL_ECORRUPT || err == BEL_EUNSUPPORTED;
    if (err == 0) err = bel__tree_lmdb_open(&options, out);
    free(name);
    if (is_said) return err;
    if (err == BEL_ENOTFOUND) return bel__tree_memory_create(out); /* no checkpoint yet */
    return err ? bel__why_say(why, err, "tree cannot be opened: %s", bel_error_text(err)) : 0;
}

static int check_tree(struct bel_tree *tree, struct bel_tree_stats *out, struct bel_why *why)
{
    int err = bel__tree_check(tree, out);
    if (err != BEL_ECORRUPT) return err;
    return bel__why_say(why, err, "tree is damaged: its rows do not match its counts");
}

/* Checks that the directory has a superblock. */
static int find_superblock(struct bel_io *io, struct bel_why *why)
{
    int err = bel__directory_look(io, why);
    if (err != BEL_ENOTFOUND && err != BEL_ECONFLICT) return err;
    return bel__why_say(why, BEL_ENOTFOUND, "not a Belfry data directory: no superblock file");
}

/* Checks the rows of a tree whose pages have been checked, or takes its counts as they are. */
static int check_rows(const struct bel_store_view *view, struct bel_tree *tree,
                      struct bel_tree_stats *out, struct bel_why *why)
{
    if (!view->is_brief) return check_tree(tree, out, why);
    tree->stats(tree, out);
    return view->pages_checked != NULL ? view->pages_checked(view->context) : 0;
}

static int open_store(const struct bel_store_view *view, struct bel_io *io,
                      struct bel_tree_stats *out_stats, struct bel_store **out, struct bel_why *why)
{
    struct bel_store_options options = {.path = view->path, .io = io, .is_buffered = true};
    int err = bel__directory_lock(io, "the data directory", why); /* a server may be writing */
    if (!err) err = find_superblock(io, why);
    if (!err) err = bel__log_look(io, why); /* an unfinished backup has an unfinished tree */
    if (!err) err = open_tree(view->path, &options.tree, why);
    if (err) return err;
    assert(options.tree != NULL);
    err = check_rows(view, options.tree, out_stats, why);
    if (err) {
        options.tree->close(options.tree);
        return err;
    }
    return bel__store_open(&options, out, why);
}

int bel__store_open_view(const struct bel_store_view *view, struct bel_tree_stats *out_stats,
                         struct bel_store **out, struct bel_why *why)
{
    struct bel_io *io;
    if (why != NULL) why->text[0] = 0;
    int err = bel__io_view_open(view->path, &io);
    if (err == BEL_ENOTFOUND) return bel__why_say(why, err, "no such directory");
    if (err) return bel__why_system(why, err, view->path, "opened");
    err = open_store(view, io, out_stats, out, why);
    if (err) {
        io->destroy(io);
        return err;
    }
    (*out)->own_io = io;
    return 0;
}

/* Reads the row count of the tree. */
static int count_rows(const char *path, uint64_t *out)
{
    char *name = tree_path(path);
    if (name == NULL) return BEL_ENOMEM;
    struct bel_tree_options options = {.path = name, .mode = BEL_TREE_READ};
    struct bel_tree_stats stats = {0};
    struct bel_tree *tree;
    int err = bel__tree_lmdb_open(&options, &tree);
    free(name);
    if (err) return err;
    tree->stats(tree, &stats);
    tree->close(tree);
    *out = stats.rows;
    return 0;
}

int bel__store_glance(const char *path, struct bel_store_glance *out)
{
    struct bel_store_glance glance = {0};
    struct bel_io_file *file;
    struct bel_io *io;
    int err = bel__io_view_open(path, &io);
    if (err) return err;
    err = io->open(io, BEL_OPEN_MARK, BEL_IO_READ, &file);
    if (err == 0) io->close(io, file);
    io->destroy(io);
    glance.was_left_open = err == 0;
    if (err == 0) err = count_rows(path, &glance.tree_rows);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    *out = glance;
    return 0;
}
