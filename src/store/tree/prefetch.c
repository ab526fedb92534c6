/* SPDX-License-Identifier: MIT */

/*
 * What is known of the file, all of it in the machine's own byte order and 64-bit sizes:
 *
 *     record of a table     6   u16   levels, leaves included
 *                          40   u64   page of the root
 *     page                 10   u16   flags: 1 if it is a branch
 *                          12   u16   end of the list of nodes that follows the header
 *                          16   u16[] where in the page each node is, in the order of keys
 *     node of a branch      0   u16   child page, bits 0 to 15
 *                           2   u16                    16 to 31
 *                           4   u16                    32 to 47
 *                           6   u16   bytes of the key
 *                           8         the key: the first one that is under the child
 *
 * The first node's key is empty and stands for all that is before the second's. This is the
 * format that the library has had since its first release, and it refuses others. Everything
 * read is checked against the page, because pages are used again while the scout looks.
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

#define NUMBER_MAX (UINT64_C(1) << 47) /* of a page, so that its place fits into an offset */

static_assert((UINT64_C(1) << 47) * PAGE_BYTES_MAX <= INT64_MAX / 2 + UINT64_C(1), "as it says");

static unsigned u16_at(const unsigned char *bytes, size_t offset)
{
    uint16_t number;
    memcpy(&number, bytes + offset, sizeof number);
    return number;
}

int bel__prefetch_init(struct bel_prefetch *scout, int file, size_t page_bytes)
{
    assert(page_bytes >= PAGE_LIST);
    *scout = (struct bel_prefetch){.file = file, .page_bytes = page_bytes};
    scout->pages = malloc(BEL_PREFETCH_LEVELS_MAX * page_bytes);
    return scout->pages == NULL ? BEL_ENOMEM : 0;
}

void bel__prefetch_finish(struct bel_prefetch *scout)
{
    free(scout->pages);
    scout->pages = NULL;
}

void bel__prefetch_start(struct bel_prefetch *scout, struct bel_view record)
{
    scout->branch_levels = 0;
    if (sizeof(size_t) != 8 || scout->page_bytes > PAGE_BYTES_MAX) return;
    if (record.bytes != RECORD_BYTES) return;
    unsigned levels = u16_at(record.data, RECORD_LEVELS);
    if (levels < 2 || levels > BEL_PREFETCH_LEVELS_MAX + 1) return;
    memcpy(&scout->root, (const unsigned char *)record.data + RECORD_ROOT, sizeof scout->root);
    memset(scout->numbers, 0, sizeof scout->numbers);
    scout->branch_levels = levels - 1;
    scout->leaf = 0;
    scout->from = scout->until = (struct bel_key){{0, 0, 0}};
}

/* The page of a level, read unless it is the one read last; or NULL if it is no branch. */
static const unsigned char *read_branch(struct bel_prefetch *scout, unsigned level, uint64_t number)
{
    unsigned char *page = scout->pages + level * scout->page_bytes;
    if (number == 0 || number > NUMBER_MAX) return NULL;
    if (scout->numbers[level] == number) return page;
    scout->numbers[level] = 0;
    ssize_t got = pread(scout->file, page, scout->page_bytes, (off_t)(number * scout->page_bytes));
    if (got != (ssize_t)scout->page_bytes) return NULL;
    if (u16_at(page, PAGE_FLAGS) != PAGE_IS_BRANCH) return NULL;
    scout->numbers[level] = number;
    return page;
}

/* Node `index` of a branch, or NULL if it is not wholly in the page. */
static const unsigned char *node_at(const struct bel_prefetch *scout, const unsigned char *page,
                                    unsigned index)
{
    size_t offset = u16_at(page, PAGE_LIST + 2 * index);
    if (offset + NODE_KEY > scout->page_bytes) return NULL;
    if (offset + NODE_KEY + u16_at(page, offset + NODE_KEY_BYTES) > scout->page_bytes) return NULL;
    return page + offset;
}

/* The child under which a key belongs, and the next one's first key, if there is a next; 0 if the
 * page makes no sense. */
static uint64_t child_of(const struct bel_prefetch *scout, const unsigned char *page,
                         const unsigned char *key, struct bel_key *until)
{
    unsigned end = u16_at(page, PAGE_LIST_END);
    if (end < PAGE_LIST + 2 || end > scout->page_bytes) return 0;
    unsigned first = 0, behind = (end - PAGE_LIST) / 2;
    const unsigned char *next = NULL;
    while (behind - first > 1) { /* node `first` is not behind the key, node `behind` is */
        unsigned middle = first + (behind - first) / 2;
        const unsigned char *node = node_at(scout, page, middle);
        if (node == NULL || u16_at(node, NODE_KEY_BYTES) != BEL_KEY_BYTES) return 0;
        if (memcmp(node + NODE_KEY, key, BEL_KEY_BYTES) <= 0) {
            first = middle;
        } else {
            behind = middle;
            next = node;
        }
    }
    if (next != NULL) *until = bel__key_read(next + NODE_KEY);
    const unsigned char *node = node_at(scout, page, first);
    if (node == NULL) return 0;
    return u16_at(node, 0) | (uint64_t)u16_at(node, 2) << 16 | (uint64_t)u16_at(node, 4) << 32;
}

/* Whether a key is in the leaf that was found last. */
static bool is_beside_last(const struct bel_prefetch *scout, const struct bel_key *key)
{
    return bel__key_compare(&scout->from, key) <= 0 && bel__key_compare(key, &scout->until) < 0;
}

void bel__prefetch_expect(struct bel_prefetch *scout, const struct bel_key *key)
{
    unsigned char bytes[BEL_KEY_BYTES];
    struct bel_key until = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    if (scout->branch_levels == 0 || is_beside_last(scout, key)) return;
    bel__key_write(key, bytes);
    uint64_t number = scout->root;
    for (unsigned level = 0; level < scout->branch_levels; level++) {
        const unsigned char *page = read_branch(scout, level, number);
        if (page == NULL) return;
        number = child_of(scout, page, bytes, &until);
    }
    if (number == 0 || number > NUMBER_MAX) return;
    scout->from = *key;
    scout->until = until;
    if (number == scout->leaf) return;
    scout->leaf = number;
    (void)posix_fadvise(scout->file, (off_t)(number * scout->page_bytes), (off_t)scout->page_bytes,
                        POSIX_FADV_WILLNEED);
}
