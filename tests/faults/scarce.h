/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_SCARCE_H
#define BEL_TESTS_FAULTS_SCARCE_H

/*
 * scarce - memory that runs out when it is told. The linker sends the allocations of a program
 * here (--wrap), those of the store, the engine and the core among them.
 *
 *     scarce_begin(3, false);      the third allocation fails
 *     ...
 *     if (scarce_end() == 0) ...   it never came to that
 */

#include <stdbool.h>
#include <stdint.h>

/* The `first`-th allocation from now on fails, and all behind it if it is for good. */
void scarce_begin(uint64_t first, bool is_for_good);

/* There is memory again. Returns how many failed. */
uint64_t scarce_end(void);

/* The test's own allocations in between. */
void scarce_suspend(void);
void scarce_resume(void);

#endif
