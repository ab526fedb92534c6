/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_SCARCE_H
#define BEL_TESTS_FAULTS_SCARCE_H

/*
 * scarce - makes allocations fail on request. The linker redirects the allocations of a program
 * here (--wrap), including those of the store, the engine and the core.
 *
 *     scarce_begin(3, false);      the third allocation fails
 *     ...
 *     if (scarce_end() == 0) ...   there were fewer than three
 */

#include <stdbool.h>
#include <stdint.h>

/* Makes the `first`-th allocation from now on fail, and all later ones if `is_for_good`. */
void scarce_begin(uint64_t first, bool is_for_good);

/* Ends the failures. Returns the number of failed allocations. */
uint64_t scarce_end(void);

/* Suspend and resume the failures, for allocations of the test itself. */
void scarce_suspend(void);
void scarce_resume(void);

#endif
