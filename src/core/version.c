/* SPDX-License-Identifier: MIT */

/* The version compiled into the library, which may differ from the caller's header. */
#include "belfry/version.h"

const char *bel_version(void)
{
    return BEL_VERSION;
}

int bel_version_number(void)
{
    return BEL_VERSION_MAJOR * 1000000 + BEL_VERSION_MINOR * 1000 + BEL_VERSION_PATCH;
}
