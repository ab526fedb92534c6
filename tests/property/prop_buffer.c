/* SPDX-License-Identifier: MIT */

/*
 * The buffer compared with an array that moves all its bytes whenever one is consumed. Sizes are
 * around the maximum, which is often small, so that buffers become full, become empty and wrap.
 * Some allocations fail.
 */
#include "../memory.h"
#include "property.h"

#include "core/buffer.c" /* NOLINT(bugprone-suspicious-include) */

enum {
    COUNT_MAX = 2000,
    STEPS = 500,
    CASES = 500,
};

struct model {
    uint8_t bytes[COUNT_MAX];
    size_t count, count_max;
};

/* Adds to both in one of the four ways, and checks that both succeed or fail. */
static void add(struct bel_buffer *buffer, struct model *m, uint64_t *random_state)
{
    static char bytes[2 * COUNT_MAX + 1];
    uint8_t *space = NULL;
    size_t count = random_below(random_state, 1 + random_below(random_state, m->count_max + 2));
    int want = count > m->count_max - m->count ? BEL_EFULL : 0, err;
    memory_left = random_below(random_state, 20) > 0;
    memset(bytes, 'a' + (int)random_below(random_state, 26), count);
    bytes[count] = '\0';
    switch (random_below(random_state, count > 0 ? 4 : 3)) {
    case 0:
        err = bel__buffer_append(buffer, bytes, count);
        break;
    case 1:
        err = bel__buffer_append_format(buffer, "%s", bytes);
        break;
    case 3:
        err = bel__buffer_extend(buffer, count, &space);
        if (err == 0) memcpy(space, bytes, count);
        break;
    default:
        err = bel__buffer_reserve(buffer, count);
        if (err == 0 && count > 0) memcpy(bel__buffer_space(buffer), bytes, count);
        if (err == 0) bel__buffer_commit(buffer, count);
    }
    CHECK(err == want || (want == 0 && err == BEL_ENOMEM && memory_left == 0));
    if (err) return;
    memcpy(m->bytes + m->count, bytes, count);
    m->count += count;
}

static void drop(struct bel_buffer *buffer, struct model *m, uint64_t *random_state)
{
    size_t count = random_below(random_state, m->count + 1);
    if (random_below(random_state, 8) == 0) {
        bel__buffer_truncate(buffer, m->count - count);
    } else {
        bel__buffer_consume(buffer, count);
        memmove(m->bytes, m->bytes + count, m->count - count);
    }
    m->count -= count;
}

static void run_case(uint64_t seed)
{
    static struct model m;
    struct bel_buffer buffer;
    uint64_t random_state = seed;
    m.count = 0;
    m.count_max = random_below(&random_state, 2) ? random_below(&random_state, 100)
                                                 : random_below(&random_state, COUNT_MAX + 1);
    bel__buffer_init(&buffer, m.count_max);
    for (int step = 0; step < STEPS; step++) {
        if (random_below(&random_state, 2) == 0) {
            add(&buffer, &m, &random_state);
        } else {
            drop(&buffer, &m, &random_state);
        }
        if (random_below(&random_state, 8) == 0) {
            memory_left = random_below(&random_state, 2);
            size_t before = buffer.capacity;
            bool is_short = memory_left == 0;
            bel__buffer_trim(&buffer, 16);
            CHECK(buffer.capacity <= 16 || buffer.capacity < 2 * m.count ||
                  (is_short && buffer.capacity == before));
        }
        CHECK(is_sound(&buffer));
        CHECK(buffer.capacity <= 2 * m.count_max);
        CHECK_EQ(buffer.count, m.count);
        CHECK(m.count == 0 || memcmp(bel__buffer_data(&buffer), m.bytes, m.count) == 0);
    }
    bel__buffer_finish(&buffer);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
