/* SPDX-License-Identifier: MIT */
#include "belfry/error.h"

#include "../check.h"

#include <string.h>

static void every_error_has_words_of_its_own(void)
{
    for (int a = 0; a >= BEL_EUNSUPPORTED; a--) {
        CHECK(strlen(bel_error_text(a)) > 0);
        CHECK(strcmp(bel_error_text(a), "unknown error") != 0);
        for (int b = 0; b > a; b--) {
            CHECK(strcmp(bel_error_text(a), bel_error_text(b)) != 0);
        }
    }
}

static void a_number_that_is_no_error_is_said_to_be_unknown(void)
{
    CHECK(strcmp(bel_error_text(1), "unknown error") == 0);
    CHECK(strcmp(bel_error_text(BEL_EUNSUPPORTED - 1), "unknown error") == 0);
    CHECK(strcmp(bel_error_text(-2147483647 - 1), "unknown error") == 0);
}

int main(void)
{
    RUN(every_error_has_words_of_its_own);
    RUN(a_number_that_is_no_error_is_said_to_be_unknown);
    return 0;
}
