/* SPDX-License-Identifier: MIT */

/* For processors without a known CRC-32C instruction: nothing calls for it. */
#include "core/crc32c.h"

#include <assert.h>

bool bel__crc32c_has_instruction(void)
{
    return false;
}

uint32_t bel__crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes)
{
    (void)data;
    (void)bytes;
    assert(bel__crc32c_has_instruction()); /* never */
    return crc;
}
