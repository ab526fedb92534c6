/* SPDX-License-Identifier: MIT */

/*
 * The switch itself is swapcontext(). The rest is for the sanitizers, which must be told that the
 * stack or the thread has changed. The build defines which of them is active, because this file is
 * compiled without any: they must not check what it shares between coroutines.
 */
#include "coroutine.h"

#include "../check.h"

#include <stddef.h>

#ifdef INTERLEAVE_ASAN
#    include <sanitizer/asan_interface.h>
#    include <sanitizer/common_interface_defs.h>
#endif
#ifdef INTERLEAVE_TSAN
#    include <sanitizer/tsan_interface.h>
#endif

static struct coroutine *current; /* NULL while none runs */

static struct { /* the resumer of the current one */
    ucontext_t context;
    void *fiber, *fakes;
    const void *stack;
    size_t stack_bytes;
} resumer;

/* Called on the stack that is left for a while, or for ever if `fakes` is NULL. */
static void before_switch(void **fakes, const void *stack, size_t stack_bytes, void *fiber)
{
    (void)fakes, (void)stack, (void)stack_bytes, (void)fiber;
#ifdef INTERLEAVE_ASAN
    __sanitizer_start_switch_fiber(fakes, stack, stack_bytes);
#endif
#ifdef INTERLEAVE_TSAN
    __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

/* Called on the stack that is entered again, or for the first time if `fakes` is NULL. */
static void after_switch(void *fakes)
{
    (void)fakes;
#ifdef INTERLEAVE_ASAN
    const void *left;
    size_t left_bytes;
    __sanitizer_finish_switch_fiber(fakes, &left, &left_bytes);
    if (left != current->stack) {
        resumer.stack = left;
        resumer.stack_bytes = left_bytes;
    }
#endif
}

static void enter(void)
{
    after_switch(NULL);
    current->body();
    current->ended = true;
    coroutine_give_way();
}

void coroutine_start(struct coroutine *coroutine, void (*body)(void))
{
    CHECK(current == NULL);
    CHECK(getcontext(&coroutine->context) == 0);
    coroutine->context.uc_stack.ss_sp = coroutine->stack;
    coroutine->context.uc_stack.ss_size = sizeof coroutine->stack;
    coroutine->context.uc_link = NULL;
    makecontext(&coroutine->context, enter, 0);
    coroutine->body = body;
    coroutine->ended = false;

#ifdef INTERLEAVE_ASAN
    /* A coroutine that was finished halfway has left the red zones of its frames. */
    __asan_unpoison_memory_region(coroutine->stack, sizeof coroutine->stack);
#endif
#ifdef INTERLEAVE_TSAN
    resumer.fiber = __tsan_get_current_fiber();
    if (coroutine->fiber == NULL) coroutine->fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(coroutine->fiber, 0); /* it sees everything done before */
    __tsan_switch_to_fiber(resumer.fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

void coroutine_resume(struct coroutine *coroutine)
{
    CHECK(current == NULL && !coroutine->ended);
    current = coroutine;
    before_switch(&resumer.fakes, coroutine->stack, sizeof coroutine->stack, coroutine->fiber);
    CHECK(swapcontext(&resumer.context, &coroutine->context) == 0);
    after_switch(resumer.fakes);
    current = NULL;
}

void coroutine_give_way(void)
{
    struct coroutine *self = current;
    before_switch(self->ended ? NULL : &self->fakes, resumer.stack, resumer.stack_bytes,
                  resumer.fiber);
    CHECK(swapcontext(&self->context, &resumer.context) == 0);
    after_switch(self->fakes);
}

void coroutine_finish(struct coroutine *coroutine)
{
    CHECK(current == NULL);
#ifdef INTERLEAVE_TSAN
    __tsan_switch_to_fiber(coroutine->fiber, __tsan_switch_to_fiber_no_sync);
    __tsan_switch_to_fiber(resumer.fiber, 0); /* its effects are visible from now on */
    if (!coroutine->ended) {                  /* its calls would accumulate */
        __tsan_destroy_fiber(coroutine->fiber);
        coroutine->fiber = NULL;
    }
#endif
    coroutine->ended = true;
}
