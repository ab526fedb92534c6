/* SPDX-License-Identifier: MIT */

/* Texts in the order of belfry/error.h. */
#include "belfry/error.h"

#include <stddef.h>

static const char *const texts[] = {
    [0] = "success",
    [-BEL_ENOMEM] = "out of memory",
    [-BEL_EFULL] = "a configured limit is reached",
    [-BEL_EIO] = "input/output error",
    [-BEL_ECORRUPT] = "stored data is damaged",
    [-BEL_ESTALE] = "the handle or lease has expired",
    [-BEL_EINVAL] = "invalid value",
    [-BEL_ERANGE] = "value out of range",
    [-BEL_ECLOSED] = "closed by the other side",
    [-BEL_EBUSY] = "busy or timed out; try again later",
    [-BEL_ENOTFOUND] = "not found",
    [-BEL_ECONFLICT] = "already exists",
    [-BEL_EUNSUPPORTED] = "not supported by this build or store",
};

const char *bel_error_text(int err)
{
    int count = (int)(sizeof texts / sizeof texts[0]);
    if (err > 0 || err <= -count) return "unknown error";
    return texts[-err];
}
