/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_PROPERTY_H
#define BEL_TESTS_PROPERTY_H

/*
 * property - the main loop of a property test.
 *
 *     int main(int argc, char **argv)
 *     {
 *         return run_cases(argc, argv, 2000, run_case, "histories");
 *     }
 */

#include "../check.h"
#include "../random.h"

/* Runs a case for every seed; a failure prints the command that runs its seed again. Prints how
 * many cases there were, and of what. Returns the exit status. */
static inline int run_cases(int argc, char **argv, uint64_t count, void (*run_case)(uint64_t seed),
                            const char *of_what)
{
    struct cases cases = cases_of(argc, argv, count);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        CHECK_NOTE("again with: %s %" PRIu64, argv[0], seed);
        run_case(seed);
    }
    printf("ok   %" PRIu64 " %s\n", cases.last - cases.first + 1, of_what);
    return 0;
}

#endif
