/* SPDX-License-Identifier: MIT */

/*
 * The agenda: how many timers are due in each step of time, with plans expanded.
 */
#include "conformance.h"

static const struct heard *agenda(struct subject *s, const char *topic, int64_t from, int64_t to,
                                  uint64_t step)
{
    struct bel_command command = {.verb = BEL_VERB_AGENDA};
    command.agenda = (struct bel_agenda){
        .has_from = true,
        .has_to = true,
        .from = {START + from},
        .to = {START + to},
        .step_ms = step,
        .topic = view(topic),
    };
    return ask(s, &command);
}

static uint64_t count_in(const struct heard *heard, size_t index)
{
    CHECK(heard->reply.err == 0 && index < heard->reply.steps.count);
    return heard->reply.steps.items[index].count;
}

static void an_agenda_has_the_next_24_hours(struct subject *s)
{
    struct bel_command command = {.verb = BEL_VERB_AGENDA};
    schedule(s, "mail", .id = "a", .in = 90 * MINUTE);
    schedule(s, "push", .id = "b", .at = 23 * HOUR);
    schedule(s, "push", .id = "c", .at = 24 * HOUR);
    const struct heard *heard = ask(s, &command);
    CHECK_EQ(heard->reply.steps.count, 24);
    for (size_t i = 0; i < 24; i++) {
        CHECK(heard->reply.steps.items[i].start.ms == START + (int64_t)i * HOUR);
        CHECK_EQ(count_in(heard, i), i == 1 || i == 23 ? 1 : 0);
    }
}

static void a_step_of_hours_begins_at_a_full_hour(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = HOUR + 1);
    const struct heard *heard = agenda(s, "mail", 90 * MINUTE, 4 * HOUR, 2 * HOUR);
    CHECK_EQ(heard->reply.steps.count, 2);
    CHECK(heard->reply.steps.items[0].start.ms == START + HOUR);
    CHECK(heard->reply.steps.items[1].start.ms == START + 3 * HOUR);
    CHECK_EQ(count_in(heard, 0), 1);
}

static void a_finer_step_begins_where_it_says(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = 10 * MINUTE);
    schedule(s, "mail", .id = "b", .at = 19 * MINUTE);
    schedule(s, "mail", .id = "c", .at = 25 * MINUTE);
    const struct heard *heard = agenda(s, "mail", 5 * MINUTE, 35 * MINUTE, 10 * MINUTE);
    CHECK_EQ(heard->reply.steps.count, 3);
    CHECK(heard->reply.steps.items[1].start.ms == START + 15 * MINUTE);
    CHECK_EQ(count_in(heard, 0), 1);
    CHECK_EQ(count_in(heard, 1), 1);
    CHECK_EQ(count_in(heard, 2), 1);
}

static void ready_and_leased_ones_are_counted_and_ends_are_not(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "ready", .at = 10 * MINUTE);
    schedule(s, "mail", .id = "leased", .at = 5 * MINUTE);
    schedule(s, "mail", .id = "done", .at = MINUTE);
    advance(s, 20 * MINUTE);
    expect_claim(s, "mail", "done", "leased");
    CHECK(ack(s, "done") == 1);
    CHECK_EQ(count_in(agenda(s, "mail", 0, HOUR, HOUR), 0), 2);
    CHECK_EQ(count_in(agenda(s, "push", 0, HOUR, HOUR), 0), 0);
    CHECK_EQ(count_in(agenda(s, NULL, 0, HOUR, HOUR), 0), 2);
}

static void plans_are_expanded(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "20m");
    schedule(s, "mail", .id = "q", .every = "30m", .count = 3);
    schedule(s, "mail", .id = "r", .every = "30m", .mode = BEL_PLAN_DELAY);
    const struct heard *heard = agenda(s, "mail", 0, 3 * HOUR, HOUR);
    CHECK_EQ(count_in(heard, 0), 4);
    CHECK_EQ(count_in(heard, 1), 5);
    CHECK_EQ(count_in(heard, 2), 3);
}

static void plans_that_are_spread_are_counted_when_they_ring(struct subject *s)
{
    const uint64_t place = bel_spread_offset("p", 1, DAY) / MINUTE * MINUTE;
    schedule(s, "mail", .id = "p", .at = HOUR, .every = "1d", .spread = DAY, .count = 3);
    schedule(s, "push", .id = "p", .cron = "0 1 * * *", .spread = DAY);
    int64_t first = HOUR + (int64_t)place; /* it rings in this minute */
    CHECK(place > 0);
    for (int64_t day = 0; day < 3; day++) {
        const struct heard *heard =
            agenda(s, NULL, day * DAY + first - MINUTE, day * DAY + first + 2 * MINUTE, MINUTE);
        CHECK_EQ(count_in(heard, 0), 0);
        CHECK_EQ(count_in(heard, 1), 2);
        CHECK_EQ(count_in(heard, 2), 0);
        heard = agenda(s, NULL, day * DAY + first, day * DAY + first + 1, HOUR);
        CHECK_EQ(count_in(heard, 0), 2);
        CHECK_EQ(count_in(agenda(s, NULL, day * DAY + HOUR, day * DAY + first, MINUTE), 0), 0);
    }
    advance(s, HOUR + MINUTE); /* its nominal time is past, and it has not rung */
    CHECK_EQ(count_in(agenda(s, NULL, first, first + 1, MINUTE), 0), 2);
}

static void what_is_moved_moves_in_the_agenda(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = 30 * MINUTE);
    CHECK(reschedule_at(s, "mail", "a", 90 * MINUTE) == 1);
    const struct heard *heard = agenda(s, "mail", 0, 2 * HOUR, HOUR);
    CHECK(count_in(heard, 0) == 0 && count_in(heard, 1) == 1);
    CHECK(cancel(s, "mail", "a") == 1);
    CHECK_EQ(count_in(agenda(s, "mail", 0, 2 * HOUR, HOUR), 1), 0);
}

static void an_agenda_has_ten_thousand_steps_at_most(struct subject *s)
{
    CHECK(agenda(s, NULL, 0, 10000, 1)->reply.steps.count == 10000);
    CHECK(agenda(s, NULL, 0, 10001, 1)->reply.err == BEL_EINVAL);
    CHECK(agenda(s, "no good", 0, HOUR, 0)->reply.err == BEL_EINVAL);
}

/* Hours are counted in rows that cover several: hours far apart are in several rows, and a whole
 * row is added up at once. */
static void hours_that_are_far_apart_are_found(struct subject *s)
{
    static const int64_t hours[] = {0, 1, 62, 63, 64, 65, 127, 128, 1000, 9999};
    for (size_t i = 0; i < sizeof hours / sizeof hours[0]; i++) {
        schedule(s, "mail", .at = hours[i] * HOUR);
        schedule(s, "mail", .in = (uint64_t)(hours[i] * HOUR));
    }
    const struct heard *heard = agenda(s, "mail", 0, 10000 * HOUR, HOUR);
    for (size_t i = 0, next = 0; i < 10000; i++) {
        bool is_one = next < sizeof hours / sizeof hours[0] && hours[next] == (int64_t)i;
        CHECK_EQ(count_in(heard, i), is_one ? 2 : 0);
        next += is_one;
    }
}

static void an_agenda_may_begin_before_1970(struct subject *s)
{
    schedule(s, "mail", .at = HOUR);
    const struct heard *heard = agenda(s, "mail", -START - 1000 * HOUR, 2 * HOUR, 1000 * HOUR);
    CHECK_EQ(count_in(heard, heard->reply.steps.count - 1), 1);
}

static void an_agenda_of_no_time_has_no_steps(struct subject *s)
{
    CHECK(agenda(s, NULL, HOUR, HOUR, HOUR)->reply.steps.count == 0);
    CHECK(agenda(s, NULL, HOUR, 0, MINUTE)->reply.steps.count == 0);
}

static const struct test tests[] = {
    TEST(an_agenda_has_the_next_24_hours),
    TEST(a_step_of_hours_begins_at_a_full_hour),
    TEST(a_finer_step_begins_where_it_says),
    TEST(ready_and_leased_ones_are_counted_and_ends_are_not),
    TEST(plans_are_expanded),
    TEST(plans_that_are_spread_are_counted_when_they_ring),
    TEST(what_is_moved_moves_in_the_agenda),
    TEST(an_agenda_has_ten_thousand_steps_at_most),
    TEST(hours_that_are_far_apart_are_found),
    TEST(an_agenda_may_begin_before_1970),
    TEST(an_agenda_of_no_time_has_no_steps),
};

GROUP(agenda, 0, tests);
