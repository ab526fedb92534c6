/* SPDX-License-Identifier: MIT */
#include "redis/link/command.h"

#include "../check.h"

#include <string.h>

static struct bel_buffer buffer;

static void check_buffer(const char *want)
{
    CHECK_EQ(buffer.count, strlen(want));
    CHECK(memcmp(bel__buffer_data(&buffer), want, buffer.count) == 0);
}

static void every_kind_of_argument_is_a_bulk_string(void)
{
    struct bel_redis_command command;
    bel__buffer_init(&buffer, 4096);
    bel__redis_command_begin(&command, &buffer, 7);
    bel__redis_command_word(&command, "SET");
    bel__redis_command_view(&command, (struct bel_view){"a\0\r\n", 4});
    bel__redis_command_view(&command, (struct bel_view){NULL, 0});
    bel__redis_command_u64(&command, UINT64_MAX);
    bel__redis_command_i64(&command, INT64_MIN);
    bel__redis_command_join(&command,
                            (struct bel_view[]){BEL_VIEW("{ns}"), {NULL, 0}, BEL_VIEW(":pend")}, 3);
    uint8_t *space = bel__redis_command_space(&command, 10);
    CHECK(space != NULL);
    memset(space, '9', 10);
    CHECK(bel__redis_command_end(&command) == 0);
    static const char want[] = "*7\r\n$3\r\nSET\r\n$4\r\na\0\r\n\r\n$0\r\n\r\n"
                               "$20\r\n18446744073709551615\r\n$20\r\n-9223372036854775808\r\n"
                               "$9\r\n{ns}:pend\r\n$10\r\n9999999999\r\n";
    CHECK_EQ(buffer.count, sizeof want - 1);
    CHECK(memcmp(bel__buffer_data(&buffer), want, buffer.count) == 0);
    bel__buffer_finish(&buffer);
}

static void a_buffer_holds_several_commands(void)
{
    struct bel_redis_command command;
    bel__buffer_init(&buffer, 4096);
    for (int i = 0; i < 2; i++) {
        bel__redis_command_begin(&command, &buffer, 1);
        bel__redis_command_word(&command, "PING");
        CHECK(bel__redis_command_end(&command) == 0);
    }
    check_buffer("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    bel__buffer_finish(&buffer);
}

/* Tries every size of the buffer, so that every append fails once. */
static void a_command_that_does_not_fit_leaves_the_buffer_as_before(void)
{
    static const char before[] = "before", whole[] = "*3\r\n$3\r\nGET\r\n$2\r\n42\r\n$1\r\nx\r\n";
    size_t bytes = strlen(before) + strlen(whole);
    for (size_t room = strlen(before); room <= bytes; room++) {
        struct bel_redis_command command;
        CHECK_NOTE("room for %zu bytes", room);
        bel__buffer_init(&buffer, room);
        CHECK(bel__buffer_append(&buffer, before, strlen(before)) == 0);
        bel__redis_command_begin(&command, &buffer, 3);
        bel__redis_command_word(&command, "GET");
        bel__redis_command_u64(&command, 42);
        uint8_t *space = bel__redis_command_space(&command, 1);
        if (space != NULL) *space = 'x';
        CHECK((space != NULL) == (room == bytes));
        CHECK(bel__redis_command_end(&command) == (room == bytes ? 0 : BEL_EFULL));
        if (room < bytes) check_buffer(before);
        bel__buffer_finish(&buffer);
    }
    bel__buffer_init(&buffer, SIZE_MAX / 4);
    struct bel_redis_command command;
    bel__redis_command_begin(&command, &buffer, 1);
    CHECK(bel__redis_command_space(&command, SIZE_MAX - 8) == NULL);
    CHECK(bel__redis_command_end(&command) == BEL_EFULL);
    CHECK_EQ(buffer.count, 0);
    bel__buffer_finish(&buffer);
}

int main(void)
{
    RUN(every_kind_of_argument_is_a_bulk_string);
    RUN(a_buffer_holds_several_commands);
    RUN(a_command_that_does_not_fit_leaves_the_buffer_as_before);
    return EXIT_SUCCESS;
}
