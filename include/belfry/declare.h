/* SPDX-License-Identifier: MIT */
#ifndef BEL_DECLARE_H
#define BEL_DECLARE_H

/*
 * declare - surrounds the declarations of every header: the library exports them, and C++ programs
 * link them by their C names.
 */

#ifdef __cplusplus
#    define BEL_BEGIN_DECLARATIONS                                                                 \
        _Pragma("GCC visibility push(default)") extern "C"                                         \
        {
#    define BEL_END_DECLARATIONS                                                                   \
        }                                                                                          \
        _Pragma("GCC visibility pop")
#else
#    define BEL_BEGIN_DECLARATIONS _Pragma("GCC visibility push(default)")
#    define BEL_END_DECLARATIONS   _Pragma("GCC visibility pop")
#endif

/* The result of the function must be used. */
#define BEL_CHECKED __attribute__((warn_unused_result))

#endif
