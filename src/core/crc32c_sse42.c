/* SPDX-License-Identifier: MIT */

/*
 * Where the processor is an x86 of 64 bits: SSE 4.2 has the step of eight bytes as an
 * instruction. Whether it is there was found out before main() and is only looked up here.
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
