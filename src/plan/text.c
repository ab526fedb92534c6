/* SPDX-License-Identifier: MIT */

/* A phrase that does not fit is truncated. */
#include "plan/text.h"

#include <stdarg.h>
#include <stdio.h>

int bel__text_refuse(struct bel_text_error *why, size_t position, const char *format, ...)
{
    if (why == NULL) return BEL_EINVAL;
    va_list arguments;
    va_start(arguments, format);
    why->position = position;
    (void)vsnprintf(why->expected, sizeof why->expected, format, arguments);
    va_end(arguments);
    return BEL_EINVAL;
}
