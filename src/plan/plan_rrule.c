/* SPDX-License-Identifier: MIT */

/* Recurrence rules are not read yet: a text that is one is refused, and says so. */
#include "plan/plan.h"
#include "plan/text.h"

#include <assert.h>

int bel__plan_read_rrule(struct bel_plan *plan, const char *text, size_t bytes,
                         struct bel_text_error *why)
{
    (void)plan;
    (void)text;
    (void)bytes;
    return bel__text_refuse(why, 0,
                            "a cron rule or an interval: recurrence rules are not built in");
}

void bel__plan_free_rrule(struct bel_plan *plan)
{
    assert(plan->rrule == NULL);
}

bool bel__plan_next_rrule(const struct bel_plan *plan, int64_t utc, int64_t *out)
{
    assert(plan->rrule == NULL);
    (void)utc;
    (void)out;
    return false;
}

size_t bel__plan_print_rrule(const struct bel_plan *plan, char *out, size_t room)
{
    assert(plan->rrule == NULL && room > 0);
    out[0] = '\0';
    return 0;
}
