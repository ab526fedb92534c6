/* SPDX-License-Identifier: MIT */

/* Copies of replies to LIMIT: every text of the copy is its own and ends in 0; memory that is out.
 */
#include "../memory.h"

#include "backend/limit_copy.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static const struct bel_limit_report reports[] = {{TEXT("w1"), {5}, 20}, {.at = {3}, .for_ms = 9}};

static const struct bel_limit_state items[] = {
    {.name = TEXT("api"), .rate_count = 5, .rate_ms = 1000, .rate = TEXT("5/1s"), .burst = 1},
    {.name = TEXT("db"), .breaker = BEL_BREAKER_OPEN, .reports = reports, .reports_count = 2},
    {.name = TEXT("x/y"), .reports = reports, .reports_count = 1},
};

/* Checks that a text was copied. */
static void check_text(struct bel_view copy, struct bel_view from)
{
    CHECK_EQ(copy.bytes, from.bytes);
    CHECK(copy.data != NULL && copy.data != from.data);
    CHECK(from.bytes == 0 || memcmp(copy.data, from.data, from.bytes) == 0);
    CHECK(((const char *)copy.data)[copy.bytes] == '\0');
}

static void check_item(const struct bel_limit_state *copy, const struct bel_limit_state *from)
{
    check_text(copy->name, from->name);
    check_text(copy->rate, from->rate);
    CHECK(copy->rate_count == from->rate_count && copy->breaker == from->breaker);
    CHECK_EQ(copy->reports_count, from->reports_count);
    for (size_t i = 0; i < from->reports_count; i++) {
        check_text(copy->reports[i].who, from->reports[i].who);
        CHECK(copy->reports[i].at.ms == from->reports[i].at.ms);
        CHECK_EQ(copy->reports[i].for_ms, from->reports[i].for_ms);
    }
}

static void a_reply_is_copied_with_everything_in_it(void)
{
    for (size_t count = 0; count <= 3; count++) {
        struct bel_limit_reply from = {
            .items = items, .count = count, .cursor = TEXT("next"), .changed = 7};
        struct bel_limit_reply *copy = bel__limit_reply_copy(&from);
        CHECK(copy != NULL && copy->count == count && copy->changed == 7);
        check_text(copy->cursor, from.cursor);
        for (size_t i = 0; i < count; i++) {
            check_item(&copy->items[i], &items[i]);
        }
        bel_limit_reply_destroy(copy);
    }
    bel_limit_reply_destroy(NULL);
}

static void without_memory_there_is_no_copy(void)
{
    struct bel_limit_reply from = {.items = items, .count = 3};
    memory_left = 0;
    CHECK(bel__limit_reply_copy(&from) == NULL);
    memory_left = 1;
    bel_limit_reply_destroy(bel__limit_reply_copy(&from));
    CHECK_EQ(memory_left, 0); /* a copy is one block */
    memory_left = UINT64_MAX;
}

int main(void)
{
    RUN(a_reply_is_copied_with_everything_in_it);
    RUN(without_memory_there_is_no_copy);
    return 0;
}
