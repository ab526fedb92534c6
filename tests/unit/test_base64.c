/* SPDX-License-Identifier: MIT */

/* The vectors of RFC 4648, every byte value, and invalid texts. */
#include "../check.h"

#include "core/base64.h"

#include <stdlib.h>
#include <string.h>

static const char *const vectors[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
};

static void the_vectors_of_the_standard(void)
{
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const char *plain = vectors[i][0], *coded = vectors[i][1];
        char *text = bel__base64_encode((struct bel_view){plain, strlen(plain)});
        size_t bytes = 99;
        CHECK(text != NULL && strcmp(text, coded) == 0);
        CHECK(bel__base64_decode((struct bel_view){text, strlen(text)}, text, &bytes));
        CHECK(bytes == strlen(plain) && memcmp(text, plain, bytes) == 0);
        free(text);
    }
}

static void every_byte_comes_back(void)
{
    uint8_t all[256], again[258];
    size_t bytes;
    for (size_t i = 0; i < sizeof all; i++) {
        all[i] = (uint8_t)i;
    }
    char *text = bel__base64_encode((struct bel_view){all, sizeof all});
    CHECK(text != NULL);
    CHECK(bel__base64_decode((struct bel_view){text, strlen(text)}, again, &bytes));
    CHECK(bytes == sizeof all && memcmp(all, again, bytes) == 0);
    free(text);
}

static void what_is_none_is_refused(void)
{
    static const char *const wrong[] = {
        "Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zg= ", "Zm9-", "Zm_v", "=Zg=", "Zm9v\n"};
    uint8_t out[16];
    size_t bytes;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_NOTE("%s", wrong[i]);
        CHECK(!bel__base64_decode((struct bel_view){wrong[i], strlen(wrong[i])}, out, &bytes));
    }
}

int main(void)
{
    RUN(the_vectors_of_the_standard);
    RUN(every_byte_comes_back);
    RUN(what_is_none_is_refused);
    return 0;
}
