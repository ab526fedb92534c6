/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_COROUTINE_H
#define BEL_TESTS_COROUTINE_H

/*
 * coroutine - a function on its own stack, which runs when it is resumed and yields explicitly.
 *
 *     coroutine_start(&it, body);
 *     while (!it.ended) coroutine_resume(&it);
 *     coroutine_finish(&it);
 *
 * To the thread sanitizer each coroutine is a thread. Yielding does not order memory between them;
 * only starting does, after everything the starter did before, and finishing, before everything it
 * does later. So the sanitizer reports races between two coroutines, although they never run at the
 * same time.
 */

#include <stdalign.h>
#include <stdbool.h>
#include <ucontext.h>

enum {
    COROUTINE_STACK_BYTES = 64 * 1024,
};

struct coroutine {
    bool ended; /* the body has returned */

    /* Private from here on. */
    void (*body)(void);
    void *fiber; /* handle of the thread sanitizer */
    void *fakes; /* of the address sanitizer, while the coroutine does not run */
    ucontext_t context;
    alignas(16) char stack[COROUTINE_STACK_BYTES];
};

/* Creates a coroutine that will enter `body`, from zeroed memory or from a finished coroutine. */
void coroutine_start(struct coroutine *coroutine, void (*body)(void));

/* Runs a coroutine until it yields or ends. Not to be called within a coroutine. */
void coroutine_resume(struct coroutine *coroutine);

/* Within a coroutine: yields to its resumer. */
void coroutine_give_way(void);

/* Ends a coroutine, whether its body has returned or not: if not, it is never resumed, and what it
 * holds is lost. */
void coroutine_finish(struct coroutine *coroutine);

#endif
