/* SPDX-License-Identifier: MIT */

/* The input is a text. If it parses, it must print and parse again as the same number. */
#include "core/parse.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_u64(const char *text, size_t text_bytes)
{
    char printed[BEL_PRINT_BYTES_MAX];
    uint64_t number, again;
    if (bel__parse_u64(text, text_bytes, 0, UINT64_MAX, &number) != 0) return;
    size_t printed_bytes = bel__print_u64(printed, number);
    assert(printed_bytes <= text_bytes);
    assert(memcmp(text + (text_bytes - printed_bytes), printed, printed_bytes) == 0);
    int err = bel__parse_u64(printed, printed_bytes, number, number, &again);
    assert(err == 0 && again == number);
}

static void check_i64(const char *text, size_t text_bytes)
{
    char printed[BEL_PRINT_BYTES_MAX];
    int64_t number, again;
    if (bel__parse_i64(text, text_bytes, INT64_MIN, INT64_MAX, &number) != 0) return;
    size_t printed_bytes = bel__print_i64(printed, number);
    assert(printed_bytes <= text_bytes);
    int err = bel__parse_i64(printed, printed_bytes, number, number, &again);
    assert(err == 0 && again == number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    uint64_t wide;
    uint32_t narrow = 0;
    check_u64(text, size);
    check_i64(text, size);
    int wide_err = bel__parse_u64(text, size, 0, UINT64_MAX, &wide);
    int narrow_err = bel__parse_u32(text, size, 0, UINT32_MAX, &narrow);
    assert((wide_err == BEL_EINVAL) == (narrow_err == BEL_EINVAL));
    assert(narrow_err != 0 || narrow == wide);
    return 0;
}
