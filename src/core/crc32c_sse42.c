/* SPDX-License-Identifier: MIT */

/*
 * For 64-bit x86: SSE 4.2 has an instruction that processes eight bytes. The compiler's runtime
 * detects it before main(), so the check here is a lookup.
 */
#include "core/crc32c.h"

#include <assert.h>
#include <string.h>

bool bel__crc32c_has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) uint32_t
bel__crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint64_t state = (uint32_t)~crc;
    assert(data != NULL || bytes == 0);
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        state = __builtin_ia32_crc32di(state, word);
    }
    uint32_t rest = (uint32_t)state;
    for (; bytes > 0; bytes--, p++) {
        rest = __builtin_ia32_crc32qi(rest, *p);
    }
    return ~rest;
}
