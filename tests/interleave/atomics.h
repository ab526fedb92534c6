/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_ATOMICS_H
#define BEL_TESTS_ATOMICS_H

/*
 * Included before a product source with -include, this file makes each of its atomic operations a
 * step of the explorer: first a call that lets other threads run, then the real operation.
 * Initialisation is not a step, because no other thread knows the object yet.
 *
 * Operands are evaluated before the step, as they would be before the operation. An operand that is
 * itself a step does not compile, because its names shadow. Only integers and pointers are
 * supported, and objects that do not overlap.
 *
 * Operations without an explicit memory order are removed, because they would not be steps: using
 * one does not compile. Plain reads and writes of atomic objects, `a = b` and `a++`, cannot be
 * detected: avoid them.
 *
 * With INTERLEAVE_CAS_IS_LOAD_STORE a compare-and-swap is a load, a comparison and a store: a
 * mutant that every test of a lock-free algorithm must detect.
 */

#include "interleave.h"

#include <stdatomic.h>

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_xor_explicit
#undef atomic_fetch_and_explicit

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_fetch_or
#undef atomic_fetch_xor
#undef atomic_fetch_and
#undef atomic_flag_test_and_set
#undef atomic_flag_test_and_set_explicit
#undef atomic_flag_clear
#undef atomic_flag_clear_explicit

/* The real operations, which the two compilers name differently. */
#ifdef __clang__
#    define INTERLEAVE_REAL(name)   __c11_atomic_##name
#    define INTERLEAVE_REAL_N(name) __c11_atomic_##name
#    define INTERLEAVE_REAL_CAS(object, seen, to, success, failure)                                \
        __c11_atomic_compare_exchange_strong(object, seen, to, success, failure)
#else
#    define INTERLEAVE_REAL(name)   __atomic_##name
#    define INTERLEAVE_REAL_N(name) __atomic_##name##_n
#    define INTERLEAVE_REAL_CAS(object, seen, to, success, failure)                                \
        __atomic_compare_exchange_n(object, seen, to, false, success, failure)
#endif

#define INTERLEAVE_TEXT(token)  #token
#define INTERLEAVE_LINE(number) INTERLEAVE_TEXT(number)
#define INTERLEAVE_WHERE(what)  what " at " __FILE__ ":" INTERLEAVE_LINE(__LINE__)

#define INTERLEAVE_STEP(access, what) interleave_step(object_, access, INTERLEAVE_WHERE(what))

/* The non-atomic type of an atomic object. */
#define INTERLEAVE_TYPE(object) __typeof__(INTERLEAVE_REAL_N(load)(object, memory_order_relaxed))

#define INTERLEAVE_CHANGE(object, value, what, change, order)                                      \
    __extension__({                                                                                \
        __auto_type object_ = (object);                                                            \
        INTERLEAVE_TYPE(object_) value_ = (value);                                                 \
        (void)INTERLEAVE_STEP(INTERLEAVE_WRITE, what);                                             \
        change(object_, value_, order);                                                            \
    })

#ifdef INTERLEAVE_CAS_IS_LOAD_STORE
#    define INTERLEAVE_CAS(object, seen, to, success, failure, access)                             \
        __extension__({                                                                            \
            __auto_type object_ = (object);                                                        \
            __auto_type seen_ = (seen);                                                            \
            INTERLEAVE_TYPE(object_) to_ = (to);                                                   \
            (void)INTERLEAVE_STEP(INTERLEAVE_READ, "half a compare-exchange");                     \
            __auto_type found_ = INTERLEAVE_REAL_N(load)(object_, memory_order_seq_cst);           \
            bool is_same_ = found_ == *seen_;                                                      \
            if (is_same_) {                                                                        \
                (void)INTERLEAVE_STEP(INTERLEAVE_WRITE, "half a compare-exchange");                \
                INTERLEAVE_REAL_N(store)(object_, to_, memory_order_seq_cst);                      \
            }                                                                                      \
            *seen_ = found_;                                                                       \
            is_same_;                                                                              \
        })
#else
#    define INTERLEAVE_CAS(object, seen, to, success, failure, access)                             \
        __extension__({                                                                            \
            __auto_type object_ = (object);                                                        \
            __auto_type seen_ = (seen);                                                            \
            INTERLEAVE_TYPE(object_) to_ = (to);                                                   \
            bool done_ = false;                                                                    \
            if (INTERLEAVE_STEP(access, "compare-exchange")) {                                     \
                *seen_ = INTERLEAVE_REAL_N(load)(object_, failure);                                \
            } else {                                                                               \
                done_ = INTERLEAVE_REAL_CAS(object_, seen_, to_, success, failure);                \
            }                                                                                      \
            done_;                                                                                 \
        })
#endif

#define atomic_load_explicit(object, order)                                                        \
    __extension__({                                                                                \
        __auto_type object_ = (object);                                                            \
        (void)INTERLEAVE_STEP(INTERLEAVE_READ, "load");                                            \
        INTERLEAVE_REAL_N(load)(object_, order);                                                   \
    })
#define atomic_store_explicit(object, value, order)                                                \
    INTERLEAVE_CHANGE(object, value, "store", INTERLEAVE_REAL_N(store), order)
#define atomic_exchange_explicit(object, value, order)                                             \
    INTERLEAVE_CHANGE(object, value, "exchange", INTERLEAVE_REAL_N(exchange), order)
#define atomic_fetch_add_explicit(object, value, order)                                            \
    INTERLEAVE_CHANGE(object, value, "fetch-add", INTERLEAVE_REAL(fetch_add), order)
#define atomic_fetch_sub_explicit(object, value, order)                                            \
    INTERLEAVE_CHANGE(object, value, "fetch-sub", INTERLEAVE_REAL(fetch_sub), order)
#define atomic_fetch_or_explicit(object, value, order)                                             \
    INTERLEAVE_CHANGE(object, value, "fetch-or", INTERLEAVE_REAL(fetch_or), order)
#define atomic_fetch_xor_explicit(object, value, order)                                            \
    INTERLEAVE_CHANGE(object, value, "fetch-xor", INTERLEAVE_REAL(fetch_xor), order)
#define atomic_fetch_and_explicit(object, value, order)                                            \
    INTERLEAVE_CHANGE(object, value, "fetch-and", INTERLEAVE_REAL(fetch_and), order)
#define atomic_compare_exchange_strong_explicit(object, seen, to, success, failure)                \
    INTERLEAVE_CAS(object, seen, to, success, failure, INTERLEAVE_WRITE)
#define atomic_compare_exchange_weak_explicit(object, seen, to, success, failure)                  \
    INTERLEAVE_CAS(object, seen, to, success, failure, INTERLEAVE_WEAK)

#endif
