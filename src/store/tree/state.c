/* SPDX-License-Identifier: MIT */

/* The checksum covers the format, too: a damaged format is damage, not a newer version. */
#include "store/tree/state.h"

#include "core/crc32c.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

enum {
    FORMAT = 1,
};

struct stored {
    uint32_t format, checksum;
    uint64_t epoch, rows, sum;
};

static_assert(sizeof(struct stored) == BEL_TREE_STATE_BYTES, "the format in state.h");

static uint32_t checksum_of(struct stored stored)
{
    stored.checksum = 0;
    return bel__crc32c(0, &stored, sizeof stored);
}

void bel__tree_state_write(const struct bel_tree_state *state,
                           unsigned char out[BEL_TREE_STATE_BYTES])
{
    struct stored stored = {.format = htole32(FORMAT),
                            .epoch = htole64(state->epoch),
                            .rows = htole64(state->rows),
                            .sum = htole64(state->sum)};
    stored.checksum = htole32(checksum_of(stored));
    memcpy(out, &stored, sizeof stored);
}

int bel__tree_state_read(struct bel_view bytes, struct bel_tree_state *out)
{
    struct stored stored;
    if (bytes.bytes != sizeof stored) return BEL_ECORRUPT;
    memcpy(&stored, bytes.data, sizeof stored);
    if (le32toh(stored.checksum) != checksum_of(stored)) return BEL_ECORRUPT;
    if (le32toh(stored.format) != FORMAT) return BEL_EUNSUPPORTED;
    *out = (struct bel_tree_state){
        .epoch = le64toh(stored.epoch), .rows = le64toh(stored.rows), .sum = le64toh(stored.sum)};
    return 0;
}
