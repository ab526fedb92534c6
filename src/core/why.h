/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHY_H
#define BEL_CORE_WHY_H

/*
 * why - the message for people that accompanies an error code.
 *
 *     if (size != want) return bel__why_say(why, BEL_ECORRUPT, "%s has %zu bytes", name, size);
 */

#include "belfry/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct bel_why {
    char text[BEL_WHY_BYTES]; /* ends in 0; empty if there is no detail */
    const char *code;         /* of the protocol, "BADARG"; where a request is refused */
};

/* Sets the message, unless `why` is NULL, and returns `err`. */
__attribute__((format(printf, 3, 0))) static inline int
bel__why_vsay(struct bel_why *why, int err, const char *format, va_list args)
{
    if (why == NULL) return err;
    if (vsnprintf(why->text, sizeof why->text, format, args) < 0) why->text[0] = 0;
    return err;
}

__attribute__((format(printf, 3, 4))) static inline int bel__why_say(struct bel_why *why, int err,
                                                                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)bel__why_vsay(why, err, format, args);
    va_end(args);
    return err;
}

/* Ends a text that snprintf() has cut, and has told its whole length, with the last whole word. */
static inline void bel__why_cut(char *text, size_t room, int whole)
{
    static const char dots[] = " ...";
    if (whole < 0 || (size_t)whole < room || room < 2 * sizeof dots) return;
    size_t end = room - sizeof dots;
    while (end > room / 2 && text[end] != ' ') {
        end--;
    }
    memcpy(text + end, dots, sizeof dots);
}

/* Copies the message to a public struct, of which `out` is the text, unless that is NULL. */
static inline int bel__why_pass(char out[BEL_WHY_BYTES], int err, const struct bel_why *why)
{
    if (out != NULL) memcpy(out, why->text, sizeof why->text);
    return err;
}

/* Sets the message for a file operation that has just failed with `errno`, and returns `err`. */
static inline int bel__why_system(struct bel_why *why, int err, const char *name, const char *what)
{
    char text[128];
    if (why == NULL || err == BEL_ENOMEM) return err;
    return bel__why_say(why, err, "%s cannot be %s: %s", name, what,
                        strerror_r(errno, text, sizeof text));
}

#endif
