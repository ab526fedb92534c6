/* SPDX-License-Identifier: MIT */
#ifndef BEL_ERROR_H
#define BEL_ERROR_H

/*
 * error - what a function that can fail returns: 0, or one of these. A name says
 * what to do about it; two conditions that call for the same action share a code.
 */

#pragma GCC visibility push(default)

enum bel_error {
    BEL_ENOMEM = -1,        /* out of memory: free something and retry */
    BEL_EFULL = -2,         /* a configured limit: shed load or raise it */
    BEL_EIO = -3,           /* the disk or network: retry later */
    BEL_ECORRUPT = -4,      /* stored data does not check out: stop and look */
    BEL_ESTALE = -5,        /* the handle or lease has ended: it is not yours any more */
    BEL_EINVAL = -6,        /* a value that can never be right: fix the caller or its input */
    BEL_ERANGE = -7,        /* well formed, but too large or too small to represent */
    BEL_ECLOSED = -8,       /* the other side has closed: go elsewhere, do not retry here */
    BEL_EBUSY = -9,         /* not from here, or not right now: return first, then retry */
    BEL_ENOTFOUND = -10,    /* there is none by that name: look elsewhere, or make it */
    BEL_ECONFLICT = -11,    /* the name is taken: choose another, or say what is to happen */
    BEL_EUNSUPPORTED = -12, /* not in this build or on this store: do without, or change it */
};

/* One line in English for an error, for a log or a user; "success" for 0. Never NULL. */
const char *bel_error_text(int err);

#define BEL_CHECKED __attribute__((warn_unused_result))

#pragma GCC visibility pop
#endif
