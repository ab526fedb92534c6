/* SPDX-License-Identifier: MIT */

/* The source is compiled in, with memory that can run out. */
#include "../memory.h"

#include "core/buffer.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"

static struct bel_buffer buffer;

static void setup(size_t count_max)
{
    memory_left = UINT64_MAX;
    bel__buffer_init(&buffer, count_max);
}

static void append(const char *text)
{
    CHECK(bel__buffer_append(&buffer, text, strlen(text)) == 0);
}

static void check_content(const char *want)
{
    CHECK_EQ(buffer.count, strlen(want));
    CHECK(buffer.count == 0 || memcmp(bel__buffer_data(&buffer), want, buffer.count) == 0);
}

static void a_new_buffer_is_empty_and_has_no_memory(void)
{
    setup(100);
    check_content("");
    CHECK(bel__buffer_data(&buffer) == NULL);
    CHECK(bel__buffer_append(&buffer, NULL, 0) == 0);
    bel__buffer_consume(&buffer, 0);
    CHECK(bel__buffer_data(&buffer) == NULL);
    bel__buffer_finish(&buffer);
}

static void bytes_come_out_in_the_order_they_went_in(void)
{
    setup(100);
    append("tick");
    append("tock");
    check_content("ticktock");
    bel__buffer_consume(&buffer, 3);
    check_content("ktock");
    append("!");
    check_content("ktock!");
    bel__buffer_consume(&buffer, 6);
    check_content("");
    bel__buffer_finish(&buffer);
}

static void the_maximum_is_reached_and_not_passed(void)
{
    setup(8);
    append("ticktock");
    CHECK(bel__buffer_append(&buffer, "!", 1) == BEL_EFULL);
    CHECK(bel__buffer_append_format(&buffer, "%d", 1) == BEL_EFULL);
    CHECK(bel__buffer_reserve(&buffer, 1) == BEL_EFULL);
    CHECK(bel__buffer_reserve(&buffer, SIZE_MAX) == BEL_EFULL);
    check_content("ticktock");
    bel__buffer_consume(&buffer, 1);
    append("!");
    check_content("icktock!");
    bel__buffer_finish(&buffer);
}

static void what_is_refused_is_refused_whole(void)
{
    setup(8);
    append("tick");
    CHECK(bel__buffer_append(&buffer, "tock!", 5) == BEL_EFULL);
    CHECK(bel__buffer_append_format(&buffer, "%s", "tock!") == BEL_EFULL);
    check_content("tick");
    bel__buffer_finish(&buffer);
}

static void text_is_printed_of_any_length(void)
{
    char want[301];
    setup(1000);
    CHECK(bel__buffer_append_format(&buffer, "%s", "") == 0);
    CHECK(bel__buffer_append_format(&buffer, "%d bells", 8) == 0);
    check_content("8 bells");
    bel__buffer_consume(&buffer, 7);
    CHECK(bel__buffer_append_format(&buffer, "%0300d", 7) == 0);
    memset(want, '0', 299);
    want[299] = '7';
    want[300] = '\0';
    check_content(want);
    bel__buffer_finish(&buffer);
}

static void text_that_just_fits_is_printed(void)
{
    for (size_t before = 0; before < 70; before++) {
        setup(1000);
        for (size_t i = 0; i < before; i++) {
            append("-");
        }
        CHECK(bel__buffer_append_format(&buffer, "%s", "tick") == 0);
        CHECK_EQ(buffer.count, before + 4);
        CHECK(memcmp(bel__buffer_data(&buffer) + before, "tick", 4) == 0);
        bel__buffer_finish(&buffer);
    }
}

static void bytes_can_be_written_straight_into_the_space(void)
{
    setup(100);
    append("tick");
    CHECK(bel__buffer_reserve(&buffer, 50) == 0);
    memcpy(bel__buffer_space(&buffer), "tock", 4);
    check_content("tick");
    bel__buffer_commit(&buffer, 4);
    check_content("ticktock");
    bel__buffer_finish(&buffer);
}

static void what_was_appended_can_be_taken_back(void)
{
    setup(100);
    append("tick");
    size_t mark = buffer.count;
    append("tock");
    bel__buffer_truncate(&buffer, mark);
    check_content("tick");
    bel__buffer_truncate(&buffer, 0);
    check_content("");
    bel__buffer_finish(&buffer);
}

static void without_memory_nothing_is_added_or_lost(void)
{
    setup(1000);
    memory_left = 0;
    CHECK(bel__buffer_append(&buffer, "tick", 4) == BEL_ENOMEM);
    CHECK(bel__buffer_append_format(&buffer, "tick") == BEL_ENOMEM);
    check_content("");
    memory_left = 1;
    append("tick");
    CHECK(bel__buffer_append_format(&buffer, "%0500d", 0) == BEL_ENOMEM);
    CHECK(bel__buffer_reserve(&buffer, 500) == BEL_ENOMEM);
    check_content("tick");
    bel__buffer_finish(&buffer);
}

static void memory_stays_within_twice_the_maximum(void)
{
    setup(1000);
    for (int i = 0; i < 10000; i++) {
        append("seven b");
        if (buffer.count > 990) bel__buffer_consume(&buffer, 7);
        CHECK(buffer.capacity <= 2000);
    }
    bel__buffer_finish(&buffer);
    CHECK_EQ(buffer.capacity, 0);
}

static void a_finished_buffer_can_be_used_again(void)
{
    setup(8);
    append("ticktock");
    bel__buffer_finish(&buffer);
    append("tick");
    check_content("tick");
    CHECK(bel__buffer_append(&buffer, "tock!", 5) == BEL_EFULL);
    bel__buffer_finish(&buffer);
}

int main(void)
{
    RUN(a_new_buffer_is_empty_and_has_no_memory);
    RUN(bytes_come_out_in_the_order_they_went_in);
    RUN(the_maximum_is_reached_and_not_passed);
    RUN(what_is_refused_is_refused_whole);
    RUN(text_is_printed_of_any_length);
    RUN(text_that_just_fits_is_printed);
    RUN(bytes_can_be_written_straight_into_the_space);
    RUN(what_was_appended_can_be_taken_back);
    RUN(without_memory_nothing_is_added_or_lost);
    RUN(memory_stays_within_twice_the_maximum);
    RUN(a_finished_buffer_can_be_used_again);
    return 0;
}
