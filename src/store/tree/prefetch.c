/* SPDX-License-Identifier: MIT */

/*
 * The parts of LMDB's file format that are used here. Numbers have the machine's byte order:
 *
 *     record of a table     6   u16   levels, leaves included
 *                          40   u64   page of the root
 *     page                 10   u16   flags: 1 if it is a branch
 *                          12   u16   end of the list of nodes that follows the header
 *                          16   u16[] offset of each node in the page, in the order of keys
 *     node of a branch      0   u16   child page, bits 0 to 15
 *                           2   u16                    16 to 31
 *                           4   u16                    32 to 47
 *                           6   u16   bytes of the key
 *                           8         the key: the smallest key below the child
 *
 * The key of the first node is empty: its child has all keys before that of the second node. LMDB
 * has had this format since its first release and refuses others. Every offset is checked against
 * the page size, because LMDB may reuse a page while it is read here.
 */
#include "store/tree/prefetch.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RECORD_BYTES = 48,
    RECORD_LEVELS = 6,
    RECORD_ROOT = 40,
    PAGE_FLAGS = 10,
    PAGE_LIST_END = 12,
    PAGE_LIST = 16,
    PAGE_IS_BRANCH = 1,
    PAGE_BYTES_MAX = 32768,
    NODE_KEY_BYTES = 6,
    NODE_KEY = 8,
};

#define NUMBER_MAX (UINT64_C(1) << 47) /* largest page number whose offset fits into off_t */

static_assert((UINT64_C(1) << 47) * PAGE_BYTES_MAX <= INT64_MAX / 2 + UINT64_C(1), "as it says");

static unsigned u16_at(const unsigned char *bytes, size_t offset)
{
    uint16_t number;
    memcpy(&number, bytes + offset, sizeof number);
    return number;
}

int bel__prefetch_init(struct bel_prefetch *prefetch, int file, size_t page_bytes)
{
    assert(page_bytes >= PAGE_LIST);
    *prefetch = (struct bel_prefetch){.file = file, .page_bytes = page_bytes};
    prefetch->pages = malloc(BEL_PREFETCH_LEVELS_MAX * page_bytes);
    return prefetch->pages == NULL ? BEL_ENOMEM : 0;
}

void bel__prefetch_finish(struct bel_prefetch *prefetch)
{
    free(prefetch->pages);
    prefetch->pages = NULL;
}

void bel__prefetch_start(struct bel_prefetch *prefetch, struct bel_view record)
{
    prefetch->branch_levels = 0;
    if (sizeof(size_t) != 8 || prefetch->page_bytes > PAGE_BYTES_MAX) return;
    if (record.bytes != RECORD_BYTES) return;
    unsigned levels = u16_at(record.data, RECORD_LEVELS);
    if (levels < 2 || levels > BEL_PREFETCH_LEVELS_MAX + 1) return;
    memcpy(&prefetch->root, (const unsigned char *)record.data + RECORD_ROOT,
           sizeof prefetch->root);
    memset(prefetch->numbers, 0, sizeof prefetch->numbers);
    prefetch->branch_levels = levels - 1;
    prefetch->leaf = 0;
    prefetch->from = prefetch->until = (struct bel_key){{0, 0, 0}};
}

/* Returns the branch page `number` of a level, read unless cached; NULL if it is not a branch. */
static const unsigned char *read_branch(struct bel_prefetch *prefetch, unsigned level,
                                        uint64_t number)
{
    unsigned char *page = prefetch->pages + level * prefetch->page_bytes;
    if (number == 0 || number > NUMBER_MAX) return NULL;
    if (prefetch->numbers[level] == number) return page;
    prefetch->numbers[level] = 0;
    ssize_t got =
        pread(prefetch->file, page, prefetch->page_bytes, (off_t)(number * prefetch->page_bytes));
    if (got != (ssize_t)prefetch->page_bytes) return NULL;
    if (u16_at(page, PAGE_FLAGS) != PAGE_IS_BRANCH) return NULL;
    prefetch->numbers[level] = number;
    return page;
}

/* Returns node `index` of a branch; NULL if it exceeds the page. */
static const unsigned char *node_at(const struct bel_prefetch *prefetch, const unsigned char *page,
                                    unsigned index)
{
    size_t offset = u16_at(page, PAGE_LIST + 2 * index);
    if (offset + NODE_KEY > prefetch->page_bytes) return NULL;
    if (offset + NODE_KEY + u16_at(page, offset + NODE_KEY_BYTES) > prefetch->page_bytes) {
        return NULL;
    }
    return page + offset;
}

/* Returns the child page of a key, and sets `*until` to the first key of the next child, if there
 * is one. Returns 0 if the page is invalid. */
static uint64_t child_of(const struct bel_prefetch *prefetch, const unsigned char *page,
                         const unsigned char *key, struct bel_key *until)
{
    unsigned end = u16_at(page, PAGE_LIST_END);
    if (end < PAGE_LIST + 2 || end > prefetch->page_bytes) return 0;
    unsigned first = 0, behind = (end - PAGE_LIST) / 2;
    const unsigned char *next = NULL;
    while (behind - first > 1) { /* node `first` <= key < node `behind` */
        unsigned middle = first + (behind - first) / 2;
        const unsigned char *node = node_at(prefetch, page, middle);
        if (node == NULL || u16_at(node, NODE_KEY_BYTES) != BEL_KEY_BYTES) return 0;
        if (memcmp(node + NODE_KEY, key, BEL_KEY_BYTES) <= 0) {
            first = middle;
        } else {
            behind = middle;
            next = node;
        }
    }
    if (next != NULL) *until = bel__key_read(next + NODE_KEY);
    const unsigned char *node = node_at(prefetch, page, first);
    if (node == NULL) return 0;
    return u16_at(node, 0) | (uint64_t)u16_at(node, 2) << 16 | (uint64_t)u16_at(node, 4) << 32;
}

/* Returns whether a key is in the leaf that was found last. */
static bool is_beside_last(const struct bel_prefetch *prefetch, const struct bel_key *key)
{
    return bel__key_compare(&prefetch->from, key) <= 0 &&
           bel__key_compare(key, &prefetch->until) < 0;
}

void bel__prefetch_expect(struct bel_prefetch *prefetch, const struct bel_key *key)
{
    unsigned char bytes[BEL_KEY_BYTES];
    struct bel_key until = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    if (prefetch->branch_levels == 0 || is_beside_last(prefetch, key)) return;
    bel__key_write(key, bytes);
    uint64_t number = prefetch->root;
    for (unsigned level = 0; level < prefetch->branch_levels; level++) {
        const unsigned char *page = read_branch(prefetch, level, number);
        if (page == NULL) return;
        number = child_of(prefetch, page, bytes, &until);
    }
    if (number == 0 || number > NUMBER_MAX) return;
    prefetch->from = *key;
    prefetch->until = until;
    if (number == prefetch->leaf) return;
    prefetch->leaf = number;
    (void)posix_fadvise(prefetch->file, (off_t)(number * prefetch->page_bytes),
                        (off_t)prefetch->page_bytes, POSIX_FADV_WILLNEED);
}
