/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_INTERLEAVE_H
#define BEL_TESTS_INTERLEAVE_H

/*
 * interleave - runs a few small threads in every possible order.
 *
 * Product sources are compiled a second time with atomics.h included first, which makes each atomic
 * operation a step: the thread stops before it and continues when it is chosen. A schedule is the
 * list of choices, and the explorer runs all of them.
 *
 *     static const struct interleave_case cases[] = {
 *         {.name = "two_pushers_and_a_closer",
 *          .setup = start_anew,
 *          .threads = {push_two, push_two, close_it},
 *          .check = check_places},
 *     };
 *
 *     int main(int argc, char **argv)
 *     {
 *         return interleave_main(argc, argv, cases, 1);
 *     }
 *
 * Only objects that threads race for need steps, and the explorer finds them: it starts over with
 * steps for an object when two threads use it, at least one of them changes it, and no other steps
 * determine which of the two comes first.
 *
 * What a thread does between two steps belongs to the first of them, and what it does before its
 * first step comes before everything. So threads may share atomics, and plain memory only as far as
 * the atomics order it. The build with the thread sanitizer checks this: it treats coroutines as
 * threads. To observe the order of other events, a test counts them in an atomic of its own.
 *
 * Every step takes effect at once for all threads, so the schedules do not detect a memory order
 * that is too weak; the thread sanitizer does, if plain memory depends on it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INTERLEAVE_THREADS_MAX = 4,
    INTERLEAVE_STEPS_MAX = 256, /* a longer schedule counts as an endless one */
    INTERLEAVE_WHY_MAX = 256,
};

struct interleave_case {
    const char *name;
    void (*setup)(void);                           /* before each schedule; may be NULL */
    void (*threads[INTERLEAVE_THREADS_MAX])(void); /* those that are not NULL */
    void (*check)(void);                           /* after each schedule; may be NULL */
    unsigned spurious_max; /* how many weak compare-and-swaps of a thread may fail spuriously */
    bool unreduced;        /* also run orders that cannot make a difference */
};

struct interleave_result {
    uint64_t schedules;                      /* run to their end */
    uint64_t repeats;                        /* abandoned, because they would repeat another one */
    uint64_t steps;                          /* in all schedules */
    bool failed;                             /* then `schedule` is the failed one */
    char schedule[INTERLEAVE_STEPS_MAX + 1]; /* the thread of each step: see interleave_replay() */
    char why[INTERLEAVE_WHY_MAX];            /* where and what; "" if it has not failed */
};

/* In setup, check and threads: a schedule in which the condition is false has failed and ends.
 * Failed assertions of the product and deadlocks fail a schedule too. */
#define REQUIRE(cond) interleave_require((cond), __FILE__, __LINE__, #cond)

/* Returns whether the caller is a thread, and not setup or check. */
bool interleave_is_thread(void);

/* In a thread: returns its number, from 0. */
unsigned interleave_self(void);

enum interleave_access {
    INTERLEAVE_READ,
    INTERLEAVE_WRITE,
    INTERLEAVE_WEAK, /* a write that may fail spuriously */
};

/* In a thread: a step that can be taken only while `ready(address)`, which depends only on the
 * atomic at `address`. It simulates sleeping until another thread wakes this one; or, with
 * INTERLEAVE_WRITE, waiting for a resource, which the thread takes directly after the call. In
 * setup and check it fails unless it is ready. */
void interleave_await(const volatile void *address, enum interleave_access access,
                      bool (*ready)(const volatile void *address));

/* Runs all schedules, or up to the first that fails. */
void interleave_explore(const struct interleave_case *subject, struct interleave_result *out);

/* Runs one schedule. A digit is the thread that takes the step; a letter, `a` for thread 0, also
 * makes its compare-and-swap fail spuriously. If the schedule ends before the threads do, the first
 * thread that can continues. */
void interleave_replay(const struct interleave_case *subject, const char *schedule,
                       struct interleave_result *out);

/*
 * The program: all cases have to hold.
 *
 *     inter_X [case ...]                   all or those named
 *     inter_X --mutant NAME                one of the cases has to fail
 *     BEL_INTERLEAVE=0012a1 inter_X case   that schedule of it, told step by step
 */
int interleave_main(int argc, char **argv, const struct interleave_case *cases, size_t count);

/*
 * For the macros here, in atomics.h and in locks.h.
 */

/* Announces a step. Returns true if it must fail spuriously. */
bool interleave_step(const volatile void *address, enum interleave_access access,
                     const char *where);

void interleave_require(bool holds, const char *file, unsigned line, const char *what);

#endif
