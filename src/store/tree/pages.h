/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_PAGES_H
#define BEL_STORE_TREE_PAGES_H

/*
 * pages - checks all pages of a snapshot of an LMDB file without LMDB, which does not validate
 * them, in steps.
 *
 *     err = bel__pages_open(file, &pages, &why);
 *     err = bel__pages_begin(pages, 0, NULL, &why);
 *     while ((err = bel__pages_step(pages, 1000, &why)) == BEL_EBUSY) ...
 *
 * Each page is used exactly once, by a table or as a free page; each page is as page.h describes;
 * each table has the counts that its record has; and the rows have the count and the sum that were
 * stored with them. A wrong number in a list of free pages would make LMDB overwrite rows, or write
 * beyond its memory, and reading all rows would not notice that in time.
 *
 * A page that is visited twice is damage, so the check cannot loop. No page can crash the process,
 * but a file that becomes shorter, or that the disk cannot read, can (SIGBUS).
 */

#include "core/sorted.h"
#include "core/why.h"
#include "store/tree/page.h"
#include "store/tree/state.h"

#include <stdbool.h>

struct bel_pages; /* opaque */

struct bel_pages_progress {
    uint64_t pages_done, pages; /* pages_done includes free pages */
    uint64_t rows;
    bool is_whole;       /* one snapshot from the first row on */
    struct bel_key next; /* the rows before this key have been checked */
};

/* Maps an open file, which is borrowed, as long as it is now. Returns 0; BEL_EIO, BEL_ENOMEM, or
 * BEL_ECORRUPT and sets `*why`. */
BEL_CHECKED int bel__pages_open(int file, struct bel_pages **out, struct bel_why *why);
void bel__pages_close(struct bel_pages *pages);

/* Begins to check the snapshot of a transaction, 0 for the last one. The caller keeps its pages
 * from being reused: no process writes, or the caller has a reader of this transaction. With
 * `from`, checks only rows from that key on, and cannot find pages that are used twice or rows that
 * are missing. Returns 0; BEL_ESTALE if the transaction is no longer one of the last two;
 * BEL_ECORRUPT, BEL_EUNSUPPORTED and sets `*why`; BEL_ENOMEM. */
BEL_CHECKED int bel__pages_begin(struct bel_pages *pages, uint64_t transaction,
                                 const struct bel_key *from, struct bel_why *why);

/* Checks up to `pages_max` pages. Returns BEL_EBUSY while there is more; 0 at the end; BEL_ECORRUPT
 * and sets `*why`. */
BEL_CHECKED int bel__pages_step(struct bel_pages *pages, size_t pages_max, struct bel_why *why);

void bel__pages_progress(const struct bel_pages *pages, struct bel_pages_progress *out);

/* What LMDB needs before it can use the rows. */
struct bel_pages_head {
    struct bel_tree_state state;
    size_t state_offset; /* in the file */
    uint64_t page_count;
    unsigned char rows[BEL_RECORD_BYTES]; /* LMDB's record of the table of rows */
};

/* Checks only the meta pages and the tables of tables and of the state, which a few pages hold, of
 * the snapshot of a transaction as begin() does; and for a writer also the table of free pages: the
 * lists are valid, and no page is listed twice. Returns as open() and begin(). */
BEL_CHECKED int bel__pages_read_head(int file, uint64_t transaction, bool writes,
                                     struct bel_pages_head *out, struct bel_why *why);

/* Opens the file of the tree in a folder, for reading. Returns 0 and sets `*out`; BEL_ENOTFOUND if
 * there is no tree: no folder, or nothing in it; BEL_ECORRUPT if the folder has no such file but
 * others, or the file is empty, and sets `*why`; or BEL_EIO. A tree is created in another folder,
 * which is then renamed: so a missing file was deleted. LMDB would take both for a new tree. */
BEL_CHECKED int bel__tree_open_file(const char *path, int *out, struct bel_why *why);

/* Checks all pages of the tree in a folder, which no process may have open for writing. Returns 0;
 * BEL_ECORRUPT or BEL_EUNSUPPORTED, and sets `*why`; or BEL_ENOTFOUND, BEL_EIO, BEL_ENOMEM. */
BEL_CHECKED int bel__tree_pages_check(const char *path, struct bel_why *why);

#endif
