/* SPDX-License-Identifier: MIT */

/* Every call goes to the tree behind, unless the power is off. */
#include "tree.h"

#include <stdlib.h>

static struct sim_tree *of(struct bel_tree *tree)
{
    return (struct sim_tree *)tree;
}

static int get(struct bel_tree *tree, const struct bel_key *key, struct bel_view *out)
{
    return of(tree)->inner->get(of(tree)->inner, key, out);
}

static int seek(struct bel_tree *tree, struct bel_key *key, struct bel_view *out)
{
    return of(tree)->inner->seek(of(tree)->inner, key, out);
}

static int refresh(struct bel_tree *tree)
{
    return of(tree)->inner->refresh(of(tree)->inner);
}

static uint64_t epoch(const struct bel_tree *tree)
{
    const struct sim_tree *sim = (const struct sim_tree *)tree;
    return sim->inner->epoch(sim->inner);
}

static int begin(struct bel_tree *tree)
{
    struct sim_tree *sim = of(tree);
    if (disk_is_down(sim->disk)) return BEL_EIO;
    return sim->is_full ? BEL_EFULL : sim->inner->begin(sim->inner);
}

static void expect(struct bel_tree *tree, const struct bel_key *key)
{
    of(tree)->inner->expect(of(tree)->inner, key);
}

static int put(struct bel_tree *tree, const struct bel_key *key, struct bel_view value)
{
    struct sim_tree *sim = of(tree);
    if (disk_is_down(sim->disk)) return BEL_EIO;
    return sim->is_full ? BEL_EFULL : sim->inner->put(sim->inner, key, value);
}

static int take_out(struct bel_tree *tree, const struct bel_key *key)
{
    if (disk_is_down(of(tree)->disk)) return BEL_EIO;
    return of(tree)->inner->remove(of(tree)->inner, key);
}

static int commit(struct bel_tree *tree, uint64_t to)
{
    struct sim_tree *sim = of(tree);
    bool is_done;
    bool is_up = disk_step(sim->disk, &is_done);
    if (!is_done) return BEL_EIO;
    int err = sim->inner->commit(sim->inner, to);
    return err != 0 || is_up ? err : BEL_EIO;
}

static void give_up(struct bel_tree *tree)
{
    of(tree)->inner->abort(of(tree)->inner);
}

/* Copies what the reader sees. */
static int twin(struct bel_tree *tree, struct bel_tree **out)
{
    struct bel_tree *inner = of(tree)->inner, *copy;
    struct bel_key key = {{0, 0, 0}};
    struct bel_view value;
    int err = bel__tree_memory_create(&copy);
    if (err) return err;
    err = copy->begin(copy);
    while (err == 0 && (err = inner->seek(inner, &key, &value)) == 0) {
        err = copy->put(copy, &key, value);
        for (int word = 2; word >= 0 && ++key.words[word] == 0; word--) {}
    }
    if (err == BEL_ENOTFOUND) err = copy->commit(copy, inner->epoch(inner));
    if (err == 0) err = copy->refresh(copy);
    if (err) {
        copy->abort(copy);
        copy->close(copy);
        return err;
    }
    *out = copy;
    return 0;
}

static void stats(struct bel_tree *tree, struct bel_tree_stats *out)
{
    of(tree)->inner->stats(of(tree)->inner, out);
}

static void close_tree(struct bel_tree *tree)
{
    of(tree)->inner->close(of(tree)->inner);
}

void sim_tree_create(struct sim_tree *tree, struct disk *disk)
{
    *tree = (struct sim_tree){
        .tree = {.get = get,
                 .seek = seek,
                 .refresh = refresh,
                 .epoch = epoch,
                 .begin = begin,
                 .expect = expect,
                 .put = put,
                 .remove = take_out,
                 .commit = commit,
                 .abort = give_up,
                 .twin = twin,
                 .stats = stats,
                 .close = close_tree},
        .disk = disk,
    };
    if (bel__tree_memory_create_lasting(&tree->inner) != 0) abort();
}

void sim_tree_destroy(struct sim_tree *tree)
{
    bel__tree_memory_destroy(tree->inner);
}
