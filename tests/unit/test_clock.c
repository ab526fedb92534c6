/* SPDX-License-Identifier: MIT */
#include "belfry/clock.h"

#include "../check.h"

static const uint64_t ms = 1000000;

static struct bel_clock_fake *fake_at(int64_t wall_ms)
{
    struct bel_clock_fake *fake = NULL;
    CHECK(bel_clock_fake_create((struct bel_wall){wall_ms}, &fake) == 0);
    return fake;
}

static void check_times(const struct bel_clock_fake *fake, uint64_t mono, uint64_t boot,
                        int64_t wall)
{
    const struct bel_clock *clock = bel_clock_fake_clock(fake);
    CHECK_EQ(bel_clock_mono(clock).ns, mono);
    CHECK_EQ(bel_clock_boot(clock).ns, boot);
    CHECK(bel_clock_wall(clock).ms == wall);
}

static void the_system_clock_does_not_go_back(void)
{
    const struct bel_clock *clock = bel_clock_system();
    struct bel_mono mono = bel_clock_mono(clock);
    struct bel_boot boot = bel_clock_boot(clock);
    for (int i = 0; i < 1000; i++) {
        struct bel_mono later_mono = bel_clock_mono(clock);
        struct bel_boot later_boot = bel_clock_boot(clock);
        CHECK(later_mono.ns >= mono.ns);
        CHECK(later_boot.ns >= boot.ns);
        mono = later_mono;
        boot = later_boot;
    }
}

static void the_system_wall_clock_counts_milliseconds_since_1970(void)
{
    int64_t year_2020 = INT64_C(1577836800000), year_2200 = INT64_C(7258118400000);
    struct bel_wall wall = bel_clock_wall(bel_clock_system());
    CHECK(wall.ms > year_2020);
    CHECK(wall.ms < year_2200);
}

static void a_fake_clock_stands_still(void)
{
    struct bel_clock_fake *fake = fake_at(5000);
    check_times(fake, 0, 0, 5000);
    check_times(fake, 0, 0, 5000);
    bel_clock_fake_destroy(fake);
}

static void time_that_passes_moves_all_three(void)
{
    struct bel_clock_fake *fake = fake_at(5000);
    bel_clock_fake_advance(fake, 3 * ms);
    check_times(fake, 3 * ms, 3 * ms, 5003);
    bel_clock_fake_destroy(fake);
}

static void a_suspended_machine_does_not_work_but_grows_older(void)
{
    struct bel_clock_fake *fake = fake_at(5000);
    bel_clock_fake_suspend(fake, 7 * ms);
    check_times(fake, 0, 7 * ms, 5007);
    bel_clock_fake_advance(fake, 1 * ms);
    check_times(fake, 1 * ms, 8 * ms, 5008);
    bel_clock_fake_destroy(fake);
}

static void a_step_moves_the_wall_alone_and_may_go_back(void)
{
    struct bel_clock_fake *fake = fake_at(5000);
    bel_clock_fake_step(fake, -9000);
    check_times(fake, 0, 0, -4000);
    bel_clock_fake_step(fake, 1);
    check_times(fake, 0, 0, -3999);
    bel_clock_fake_destroy(fake);
}

static void each_time_can_be_set_alone(void)
{
    struct bel_clock_fake *fake = fake_at(0);
    bel_clock_fake_set_mono(fake, (struct bel_mono){11});
    check_times(fake, 11, 0, 0);
    bel_clock_fake_set_boot(fake, (struct bel_boot){BEL_NEVER - 1});
    check_times(fake, 11, BEL_NEVER - 1, 0);
    bel_clock_fake_set_wall(fake, (struct bel_wall){INT64_MIN});
    check_times(fake, 11, BEL_NEVER - 1, INT64_MIN);
    bel_clock_fake_destroy(fake);
}

static void parts_of_a_millisecond_add_up(void)
{
    struct bel_clock_fake *fake = fake_at(0);
    for (int i = 0; i < 2500; i++) {
        bel_clock_fake_advance(fake, 1000);
    }
    check_times(fake, 2500000, 2500000, 2);
    bel_clock_fake_step(fake, 10); /* keeps the half millisecond */
    bel_clock_fake_suspend(fake, 500000);
    check_times(fake, 2500000, 3000000, 13);
    bel_clock_fake_destroy(fake);
}

static void a_delay_is_added(void)
{
    struct bel_mono mono;
    struct bel_boot boot;
    struct bel_wall wall;
    CHECK(bel_mono_add((struct bel_mono){40}, 2, &mono) == 0);
    CHECK_EQ(mono.ns, 42);
    CHECK(bel_boot_add((struct bel_boot){0}, BEL_NEVER - 1, &boot) == 0);
    CHECK_EQ(boot.ns, BEL_NEVER - 1);
    CHECK(bel_wall_add((struct bel_wall){INT64_MIN}, UINT64_MAX, &wall) == 0);
    CHECK(wall.ms == INT64_MAX);
}

static void a_sum_that_does_not_fit_is_refused_and_nothing_is_set(void)
{
    struct bel_mono mono = {7};
    struct bel_boot boot = {7};
    struct bel_wall wall = {7};
    CHECK(bel_mono_add((struct bel_mono){2}, UINT64_MAX - 1, &mono) == BEL_ERANGE);
    CHECK(bel_boot_add((struct bel_boot){UINT64_MAX - 1}, 2, &boot) == BEL_ERANGE);
    CHECK(bel_wall_add((struct bel_wall){1}, INT64_MAX, &wall) == BEL_ERANGE);
    CHECK(bel_wall_add((struct bel_wall){INT64_MAX}, UINT64_MAX, &wall) == BEL_ERANGE);
    CHECK(mono.ns == 7 && boot.ns == 7 && wall.ms == 7);
}

static void never_is_not_the_result_of_a_sum(void)
{
    struct bel_mono mono = {7};
    struct bel_boot boot = {7};
    CHECK(bel_mono_add((struct bel_mono){BEL_NEVER - 1}, 1, &mono) == BEL_ERANGE);
    CHECK(bel_boot_add((struct bel_boot){1}, BEL_NEVER - 1, &boot) == BEL_ERANGE);
    CHECK(mono.ns == 7 && boot.ns == 7);
}

static struct bel_boot noon(const struct bel_clock *clock)
{
    (void)clock;
    return (struct bel_boot){12};
}

static void a_program_may_bring_its_own_clock(void)
{
    struct bel_clock clock = *bel_clock_system();
    clock.boot = noon;
    CHECK_EQ(bel_clock_boot(&clock).ns, 12);
}

int main(void)
{
    RUN(the_system_clock_does_not_go_back);
    RUN(the_system_wall_clock_counts_milliseconds_since_1970);
    RUN(a_fake_clock_stands_still);
    RUN(time_that_passes_moves_all_three);
    RUN(a_suspended_machine_does_not_work_but_grows_older);
    RUN(a_step_moves_the_wall_alone_and_may_go_back);
    RUN(each_time_can_be_set_alone);
    RUN(parts_of_a_millisecond_add_up);
    RUN(a_delay_is_added);
    RUN(a_sum_that_does_not_fit_is_refused_and_nothing_is_set);
    RUN(never_is_not_the_result_of_a_sum);
    RUN(a_program_may_bring_its_own_clock);
    return 0;
}
