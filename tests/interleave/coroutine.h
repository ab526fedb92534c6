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

    /* Private from here. */
    void (*body)(void);
    void *fiber; /* what the thread sanitizer knows it by */
    void *fakes; /* the address sanitizer's, while it does not run */
    ucontext_t context;
    alignas(16) char stack[COROUTINE_STACK_BYTES];
};

/* Makes a coroutine that is about to enter `body`. Start from zeroed memory or from one
 * that is finished. */
void coroutine_start(struct coroutine *coroutine, void (*body)(void));

/* Runs it until it gives way or ends. Not from within a coroutine. */
void coroutine_resume(struct coroutine *coroutine);

/* From within one: back to who resumed it. */
void coroutine_give_way(void);

/* Done with it, ended or not: if not, it stays where it is for ever, and what it holds
 * is lost. */
void coroutine_finish(struct coroutine *coroutine);

#endif
