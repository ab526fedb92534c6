/* SPDX-License-Identifier: MIT */
#include "../check.h"
#include "redis/server_clock.h"

/* The server is 5000 ms ahead of the boot clock of the node in all cases. */
enum {
    AHEAD = 5000,
};

static void the_first_time_is_believed(void)
{
    struct bel_server_clock clock = {0};
    CHECK(!clock.is_known);
    bel__server_clock_learn(&clock, 100 + AHEAD, 100, 101);
    CHECK(clock.is_known);
    CHECK(bel__server_clock_now(&clock, 200) == 200 + AHEAD);
}

static void a_reply_that_is_read_late_changes_nothing(void)
{
    struct bel_server_clock clock = {0};
    bel__server_clock_learn(&clock, 100 + AHEAD, 100, 101);
    bel__server_clock_learn(&clock, 301 + AHEAD, 300, 30300); /* the node stood still for 30 s */
    CHECK(bel__server_clock_now(&clock, 30300) == 30300 + AHEAD);
}

static void a_command_that_is_executed_late_changes_nothing(void)
{
    struct bel_server_clock clock = {0};
    bel__server_clock_learn(&clock, 100 + AHEAD, 100, 101);
    bel__server_clock_learn(&clock, 30299 + AHEAD, 300, 30300); /* the server stood still */
    CHECK(bel__server_clock_now(&clock, 30300) == 30300 + AHEAD);
}

static void a_first_time_that_is_read_late_is_corrected(void)
{
    struct bel_server_clock clock = {0};
    bel__server_clock_learn(&clock, 101 + AHEAD, 100, 30100);
    CHECK(bel__server_clock_now(&clock, 30100) >= 30100 + AHEAD); /* rather early than late */
    bel__server_clock_learn(&clock, 30200 + AHEAD, 30200, 30201);
    CHECK(bel__server_clock_now(&clock, 30201) == 30201 + AHEAD);
}

static void a_clock_that_is_set_is_followed(void)
{
    struct bel_server_clock clock = {0};
    bel__server_clock_learn(&clock, 100 + AHEAD, 100, 101);
    bel__server_clock_learn(&clock, 200 - AHEAD, 200, 202);
    int64_t back = bel__server_clock_now(&clock, 202) - (202 - AHEAD);
    CHECK(back >= 0 && back <= 2);
    bel__server_clock_learn(&clock, 300 + AHEAD, 300, 302);
    int64_t ahead = bel__server_clock_now(&clock, 302) - (302 + AHEAD);
    CHECK(ahead >= -2 && ahead <= 0);
}

int main(void)
{
    RUN(the_first_time_is_believed);
    RUN(a_reply_that_is_read_late_changes_nothing);
    RUN(a_command_that_is_executed_late_changes_nothing);
    RUN(a_first_time_that_is_read_late_is_corrected);
    RUN(a_clock_that_is_set_is_followed);
    return EXIT_SUCCESS;
}
