/* SPDX-License-Identifier: MIT */
#include "belfry/version.h"

#include "../check.h"

#include <string.h>

static void header_library_and_build_name_one_version(void)
{
    char numbers[32];
    (void)snprintf(numbers, sizeof numbers, "%d.%d.%d", BEL_VERSION_MAJOR, BEL_VERSION_MINOR,
                   BEL_VERSION_PATCH);
    CHECK(strcmp(BEL_VERSION, numbers) == 0);
    CHECK(strcmp(BEL_VERSION, PROJECT_VERSION) == 0);
    CHECK(strcmp(bel_version(), BEL_VERSION) == 0);
}

static void a_later_version_has_a_larger_number(void)
{
    CHECK(bel_version_number() >= 1000);
    CHECK_EQ((uint64_t)bel_version_number() % 1000, BEL_VERSION_PATCH);
}

int main(void)
{
    RUN(header_library_and_build_name_one_version);
    RUN(a_later_version_has_a_larger_number);
    return 0;
}
