/* SPDX-License-Identifier: MIT */
#ifndef BEL_ERROR_H
#define BEL_ERROR_H

/*
 * error - the results of functions that can fail: 0, or one of these codes. A code tells the caller
 * what to do; conditions that need the same reaction share a code.
 */

#include "belfry/declare.h"

BEL_BEGIN_DECLARATIONS

enum bel_error {
    BEL_ENOMEM = -1,        /* out of memory: free something and retry */
    BEL_EFULL = -2,         /* a configured limit is reached: shed load or raise the limit */
    BEL_EIO = -3,           /* disk or network error: retry later */
    BEL_ECORRUPT = -4,      /* stored data fails its checks: stop and inspect it */
    BEL_ESTALE = -5,        /* the handle or lease has expired: do not use it any more */
    BEL_EINVAL = -6,        /* an invalid value: fix the caller or its input */
    BEL_ERANGE = -7,        /* valid, but too large or too small to represent */
    BEL_ECLOSED = -8,       /* the other side has closed: do not retry here */
    BEL_EBUSY = -9,         /* not possible in this context or right now: return, then retry */
    BEL_ENOTFOUND = -10,    /* unknown name: use another, or create it */
    BEL_ECONFLICT = -11,    /* the name is in use: use another, or choose a conflict policy */
    BEL_EUNSUPPORTED = -12, /* not supported by this build or this store */
};

/* Room for a message for people that accompanies an error code, with its terminating 0. */
enum {
    BEL_WHY_BYTES = 256,
    BEL_REPLY_WHY_BYTES = 160, /* in a reply, because every request has room for one */
};

/* Returns one line in English for an error, for a log or a user; "success" for 0. Never NULL. */
const char *bel_error_text(int err);

BEL_END_DECLARATIONS
#endif
