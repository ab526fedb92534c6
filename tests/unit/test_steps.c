/* SPDX-License-Identifier: MIT */

/*
 * The steps of an AGENDA: the times of a plan are the same however small the slices are in which
 * they are added.
 */
#include "../check.h"
#include "telling/steps.h"

#include "core/units.h"

#include <string.h>

enum {
    STEPS = 300,
    TIMES_MANY = 1 << 20,
};

#define START INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static struct bel_agenda_step whole[STEPS], sliced[STEPS];

struct subject {
    enum bel_plan_kind kind;
    const char *rule;
    uint64_t count, used;
    int64_t place, step_ms;
};

static struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static void divide(struct bel_steps *steps, int64_t step_ms, struct bel_agenda_step *items)
{
    struct bel_reply reply;
    struct bel_agenda command = {.step_ms = (uint64_t)step_ms, .has_to = true};
    command.to.ms = START + STEPS * step_ms;
    CHECK(bel__steps_divide(steps, &command, (struct bel_wall){START}, &reply) == 0);
    CHECK(steps->count == STEPS);
    bel__steps_begin(steps, items);
}

/* Adds a plan in slices of `slice` times. Returns the number of slices. */
static unsigned add(const struct subject *subject, uint32_t slice, struct bel_agenda_step *items)
{
    struct bel_recurrence rule = {
        .kind = subject->kind, .rule = view(subject->rule), .count = subject->count};
    struct bel_plan_options options = {.now = {START}};
    struct bel_coming coming = {.rule = &rule,
                                .zone = bel_zone_utc(),
                                .at = START + INT64_C(7) * MS_PER_MINUTE,
                                .place = subject->place,
                                .used = subject->used};
    struct bel_plan *plan;
    struct bel_steps steps = {0};
    unsigned slices = 0;
    int err;
    CHECK(bel_plan_create(rule.rule.data, rule.rule.bytes, &options, &plan, NULL) == 0);
    divide(&steps, subject->step_ms, items);
    coming.plan = plan;
    do {
        steps.slice_left = slice;
        err = bel__steps_add_plan(&steps, &coming);
        CHECK(err == 0 || (err == BEL_EBUSY && steps.slice_left == 0));
        slices++;
    } while (err != 0);
    bel_plan_destroy(plan);
    return slices;
}

static void slices_do_not_change_the_times(void)
{
    static const struct subject subjects[] = {
        {BEL_PLAN_CRON, "* * * * *", 0, 0, 0, MS_PER_MINUTE},
        {BEL_PLAN_CRON, "* * * * *", 0, 0, 12345, MS_PER_HOUR},
        {BEL_PLAN_CRON, "*/7 9-17 * * 1-5", 0, 0, 0, MS_PER_HOUR},
        {BEL_PLAN_CRON, "*/7 * * * *", 40, 3, INT64_C(90) * MS_PER_MINUTE, MS_PER_HOUR},
        {BEL_PLAN_EVERY, "90s", 0, 0, 0, MS_PER_MINUTE},
        {BEL_PLAN_EVERY, "90s", 17, 5, 1000, MS_PER_MINUTE},
        {BEL_PLAN_EVERY, "1d", 0, 0, 0, MS_PER_HOUR},
    };
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        CHECK(add(&subjects[i], TIMES_MANY, whole) == 1);
        for (uint32_t slice = 1; slice < 70; slice += 1 + slice / 3) {
            CHECK_NOTE("%s in slices of %u", subjects[i].rule, (unsigned)slice);
            CHECK(add(&subjects[i], slice, sliced) > (slice == 1));
            for (size_t k = 0; k < STEPS; k++) {
                CHECK_EQ(sliced[k].count, whole[k].count);
            }
        }
    }
}

static void too_many_times_are_refused(void)
{
    struct bel_recurrence rule = {.kind = BEL_PLAN_CRON, .rule = view("* * * * *")};
    struct bel_plan_options options = {.now = {START}};
    struct bel_coming coming = {.rule = &rule, .zone = bel_zone_utc(), .at = START};
    struct bel_plan *plan;
    struct bel_steps steps = {0};
    CHECK(bel_plan_create(rule.rule.data, rule.rule.bytes, &options, &plan, NULL) == 0);
    divide(&steps, MS_PER_MINUTE, whole);
    coming.plan = plan;
    steps.times_left = STEPS - 1;
    CHECK(bel__steps_add_plan(&steps, &coming) == BEL_EFULL);
    bel_plan_destroy(plan);
}

int main(void)
{
    RUN(slices_do_not_change_the_times);
    RUN(too_many_times_are_refused);
    return 0;
}
