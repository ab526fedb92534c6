/* SPDX-License-Identifier: MIT */

/*
 * For each power of two the histogram has 32 cells of equal width, twice as wide as those of the
 * previous power:
 *
 *     cell     0 ..  63    width 1    values 0 .. 63, each its own
 *     cell    64 ..  95    width 2    values 64 .. 127
 *     cell    96 .. 127    width 4    values 128 .. 255
 *     ...
 *     cell  1888 .. 1919   width 2^58 values 2^63 .. 2^64 - 1
 *
 * The cell of a value is its six highest bits, which are 32 to 63 above the first power, plus 32
 * for each bit below them. The width of a cell is at most a 32nd of its smallest value, which is
 * the error.
 *
 * Numbers are atomics only so that a reader gets each of them untorn. All accesses are relaxed: a
 * number orders no other memory, and readers only get values that once existed. There is one
 * writer, so an addition is a load and a store. The count is not stored but summed from the cells,
 * so that a quantile and its count always agree.
 */
#include "core/histogram.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    CELLS_A_POWER = 1 << BEL_HISTOGRAM_BITS,
};

static_assert(BEL_HISTOGRAM_CELLS == 1920, "as drawn above");

/* Any thread; reads the stores of write_number. */
static uint64_t read_number(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* Writer only; read by read_number. */
static void write_number(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply_saturating(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Returns the number of low bits of a value that its cell ignores. */
static unsigned dropped_bits(uint64_t value)
{
    unsigned top_bit = 63 - (unsigned)__builtin_clzll(value | CELLS_A_POWER);
    return top_bit - BEL_HISTOGRAM_BITS;
}

static size_t cell_of(uint64_t value)
{
    unsigned dropped = dropped_bits(value);
    size_t cell = (size_t)dropped * CELLS_A_POWER + (size_t)(value >> dropped);
    assert(cell < BEL_HISTOGRAM_CELLS);
    return cell;
}

/* Returns the largest value of a cell. */
static uint64_t top_of(size_t cell)
{
    assert(cell < BEL_HISTOGRAM_CELLS);
    if (cell < CELLS_A_POWER) return cell;
    unsigned dropped = (unsigned)(cell / CELLS_A_POWER) - 1;
    uint64_t high = cell % CELLS_A_POWER + CELLS_A_POWER;
    return (high << dropped) + ((UINT64_C(1) << dropped) - 1);
}

void bel__histogram_init(struct bel_histogram *histogram)
{
    assert(histogram != NULL);
    atomic_init(&histogram->sum, 0);
    atomic_init(&histogram->min, UINT64_MAX);
    atomic_init(&histogram->max, 0);
    for (size_t i = 0; i < BEL_HISTOGRAM_CELLS; i++) {
        atomic_init(&histogram->cells[i], 0);
    }
}

static void widen(struct bel_histogram *histogram, uint64_t min, uint64_t max)
{
    assert(min <= max);
    if (min < read_number(&histogram->min)) write_number(&histogram->min, min);
    if (max > read_number(&histogram->max)) write_number(&histogram->max, max);
}

static void add_to(_Atomic uint64_t *number, uint64_t more)
{
    write_number(number, add_saturating(read_number(number), more));
}

void bel__histogram_record(struct bel_histogram *histogram, uint64_t value)
{
    bel__histogram_record_many(histogram, value, 1);
}

void bel__histogram_record_many(struct bel_histogram *histogram, uint64_t value, uint64_t times)
{
    assert(histogram != NULL);
    if (times == 0) return;
    widen(histogram, value, value);
    add_to(&histogram->sum, multiply_saturating(value, times));
    add_to(&histogram->cells[cell_of(value)], times);
}

/* A value that `from` records meanwhile may be included in all numbers, in some, or in none. */
void bel__histogram_merge(struct bel_histogram *into, const struct bel_histogram *from)
{
    assert(into != from);
    uint64_t min = read_number(&from->min), max = read_number(&from->max);
    if (min <= max) widen(into, min, max);
    add_to(&into->sum, read_number(&from->sum));
    for (size_t i = 0; i < BEL_HISTOGRAM_CELLS; i++) {
        add_to(&into->cells[i], read_number(&from->cells[i]));
    }
}

uint64_t bel__histogram_count(const struct bel_histogram *histogram)
{
    uint64_t count = 0;
    assert(histogram != NULL);
    for (size_t i = 0; i < BEL_HISTOGRAM_CELLS; i++) {
        count = add_saturating(count, read_number(&histogram->cells[i]));
    }
    return count;
}

uint64_t bel__histogram_sum(const struct bel_histogram *histogram)
{
    assert(histogram != NULL);
    return read_number(&histogram->sum);
}

uint64_t bel__histogram_min(const struct bel_histogram *histogram)
{
    uint64_t min = read_number(&histogram->min), max = read_number(&histogram->max);
    return min <= max ? min : 0; /* otherwise the histogram is empty */
}

uint64_t bel__histogram_max(const struct bel_histogram *histogram)
{
    assert(histogram != NULL);
    return read_number(&histogram->max);
}

/* Returns the number of values that is `millionths` of `count`, rounded up, at least 1. */
static uint64_t rank_of(uint64_t count, uint32_t millionths)
{
    uint64_t million = BEL_HISTOGRAM_QUANTILE_MAX;
    uint64_t rank = count / million * millionths;
    rank += (count % million * millionths + million - 1) / million;
    assert(rank <= count);
    return rank > 0 ? rank : 1;
}

/* Cells only grow, so the second pass reaches the rank computed from the first. */
uint64_t bel__histogram_quantile(const struct bel_histogram *histogram, uint32_t millionths)
{
    assert(millionths <= BEL_HISTOGRAM_QUANTILE_MAX);
    uint64_t count = bel__histogram_count(histogram), passed = 0;
    if (count == 0) return 0;
    if (millionths == 0) return bel__histogram_min(histogram);
    uint64_t rank = rank_of(count, millionths);
    size_t cell = 0;
    while ((passed = add_saturating(passed, read_number(&histogram->cells[cell]))) < rank) {
        cell++;
        assert(cell < BEL_HISTOGRAM_CELLS);
    }
    uint64_t max = bel__histogram_max(histogram);
    return top_of(cell) < max ? top_of(cell) : max;
}
