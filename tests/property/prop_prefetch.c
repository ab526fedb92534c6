/* SPDX-License-Identifier: MIT */

/*
 * A prefetch in a misleading file: pages that are almost valid branches, with random bytes in
 * random places. It may ask for any page, but must not read outside its memory, which the
 * sanitizers check, and must work again in a valid file.
 */
#include "store/tree/prefetch.h"

#include "../check.h"
#include "../random.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 512,
    PAGES = 40,
    LEVELS = 3,
    NODES = 10, /* of a branch */
    EXPECTED = 300,
    CASES = 2000,
};

static unsigned char pages[PAGES][PAGE_BYTES];

static void put_u16(unsigned char *bytes, size_t offset, uint64_t value)
{
    uint16_t number = (uint16_t)value;
    memcpy(bytes + offset, &number, sizeof number);
}

/* A branch whose children are the pages from `child` on, under keys that begin with 0, 1, ... */
static void make_branch(unsigned char *page, unsigned child)
{
    unsigned place = PAGE_BYTES;
    put_u16(page, 10, 1);
    put_u16(page, 12, 16 + 2 * NODES);
    for (unsigned i = 0; i < NODES; i++) {
        unsigned key_bytes = i == 0 ? 0 : BEL_KEY_BYTES;
        place -= 8 + key_bytes;
        put_u16(page, 16 + 2 * i, place);
        put_u16(page, place, child + i);
        put_u16(page, place + 2, 0);
        put_u16(page, place + 4, 0);
        put_u16(page, place + 6, key_bytes);
        memset(page + place + 8, 0, key_bytes);
        if (i > 0) page[place + 8] = (unsigned char)i;
    }
}

/* Page 1 is the root, those from 2 to 11 its children, and all others leaves. */
static void make_pages(void)
{
    memset(pages, 0, sizeof pages);
    make_branch(pages[1], 2);
    for (unsigned i = 2; i < 2 + NODES; i++) {
        make_branch(pages[i], 12 + i);
    }
}

static void damage_pages(uint64_t *random_state)
{
    uint64_t damages = random_below(random_state, 30);
    for (uint64_t i = 0; i < damages; i++) {
        uint64_t page = 1 + random_below(random_state, NODES + 1);
        uint64_t where = random_below(random_state, 4) == 0
                             ? random_below(random_state, PAGE_BYTES)
                             : 8 + random_below(random_state, 16 + 2 * NODES);
        pages[page][where] = (unsigned char)random_u64(random_state);
    }
}

static void write_pages(int file)
{
    CHECK(pwrite(file, pages, sizeof pages, 0) == (ssize_t)sizeof pages);
}

static void start(struct bel_prefetch *scout, unsigned levels, uint64_t root)
{
    unsigned char record[48] = {0};
    put_u16(record, 6, levels);
    memcpy(record + 40, &root, sizeof root);
    bel__prefetch_start(scout, (struct bel_view){record, sizeof record});
}

static struct bel_key key_with(uint64_t first_byte)
{
    return (struct bel_key){{first_byte << 56, 1, 2}};
}

static void run_case(struct bel_prefetch *scout, uint64_t seed)
{
    uint64_t random_state = seed;
    make_pages();
    damage_pages(&random_state);
    write_pages(scout->file);
    start(scout, (unsigned)random_below(&random_state, 12), random_below(&random_state, 20));
    for (int i = 0; i < EXPECTED; i++) {
        struct bel_key key = key_with(random_below(&random_state, 12));
        if (i % 3 == 0) key.words[2] = random_u64(&random_state);
        bel__prefetch_expect(scout, &key);
    }
}

/* Without damage it asks for the leaf that has the key. */
static void check_way(struct bel_prefetch *scout, uint64_t *random_state)
{
    make_pages();
    write_pages(scout->file);
    start(scout, LEVELS, 1);
    for (uint64_t i = 0; i < NODES + 2; i++) {
        struct bel_key key = key_with(i);
        uint64_t child = i < NODES ? i : NODES - 1;
        bel__prefetch_expect(scout, &key);
        CHECK_EQ(scout->leaf, 12 + (2 + child) + child);
        key.words[1] = key.words[2] = 0; /* just the key that is in the branch */
        bel__prefetch_expect(scout, &key);
        CHECK_EQ(scout->leaf, 12 + (2 + child) + child);
    }
    for (int i = 0; i < EXPECTED; i++) { /* in no order, and some twice */
        uint64_t first = random_below(random_state, NODES + 2);
        uint64_t child = first < NODES ? first : NODES - 1;
        struct bel_key key = key_with(first);
        key.words[1] = random_below(random_state, 3);
        bel__prefetch_expect(scout, &key);
        CHECK_EQ(scout->leaf, 12 + (2 + child) + child);
    }
    bel__prefetch_start(scout, (struct bel_view){NULL, 0});
    bel__prefetch_expect(scout, &(struct bel_key){{0, 0, 0}});
    CHECK_EQ(scout->branch_levels, 0);
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, CASES);
    struct bel_prefetch scout;
    int file = memfd_create("pages", MFD_CLOEXEC);
    CHECK(file >= 0);
    CHECK(bel__prefetch_init(&scout, file, PAGE_BYTES) == 0);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        CHECK_NOTE("again with: prop_prefetch %" PRIu64, seed);
        run_case(&scout, seed);
        uint64_t random_state = seed;
        check_way(&scout, &random_state);
    }
    bel__prefetch_finish(&scout);
    CHECK(close(file) == 0);
    printf("ok   %" PRIu64 " files\n", cases.last - cases.first + 1);
    return 0;
}
