/* SPDX-License-Identifier: MIT */

/*
 * A plan without a limit jumps to its newest missed times. A plan with a limit has to visit each of
 * its times, in slices; those of an interval are counted at once.
 */
#include "plan/missed.h"

#include "plan/misfire_slice.h"

#include <assert.h>

enum {
    VISITS_MAX = 10000, /* missed times of a plan with a limit that one call visits */
};

/* The times to come: first `next`, then the times of the rule. */
struct rule_context {
    const struct bel_plan *plan;
    int64_t next;
};

static bool next_by_rule(void *context, struct bel_wall after, struct bel_wall *out)
{
    const struct rule_context *rule = context;
    if (after.ms < rule->next) {
        out->ms = rule->next;
        return true;
    }
    return bel_plan_next(rule->plan, after, 0, out) == 0;
}

/* Counts the missed times of an interval that its policy does not make, without visiting them.
 * Moves the range and the rule's next time to the first of the others. */
static uint64_t pass_over(const struct bel_missed_plan *plan, struct bel_misfire_range *range,
                          struct rule_context *rule)
{
    uint32_t kept = bel__misfire_made_max(plan->policy);
    int64_t end = range->until.ms;
    struct bel_wall first = {rule->next}, second;
    if (kept == 0) kept = 1;
    if (plan->has_until && plan->until.ms < end) end = plan->until.ms;
    if (bel_plan_kind(plan->plan) != BEL_PLAN_EVERY) return 0;
    if (bel_plan_next(rule->plan, first, 0, &second) != 0 || second.ms > end) return 0;
    int64_t period = second.ms - first.ms;
    uint64_t total = (uint64_t)((end - first.ms) / period) + 1;
    if (total > plan->left) total = plan->left;
    if (total <= kept) return 0;
    rule->next = first.ms + (int64_t)(total - kept) * period;
    range->after.ms = rule->next - 1;
    return total - kept;
}

/* With a limit, the first `left` times of the rule are the times of the plan, whether they are
 * made, skipped or missed. */
static struct bel_missed choose_limited(const struct bel_missed_plan *plan,
                                        struct bel_misfire_range range, struct rule_context *rule,
                                        struct bel_wall out_times[BEL_MISFIRE_MAX])
{
    uint64_t passed = pass_over(plan, &range, rule);
    struct bel_misfire_slice slice =
        bel__misfire_slice(plan->policy, plan->left - passed, VISITS_MAX,
                           &(struct bel_misfire_plan){next_by_rule, rule}, range, out_times);
    return (struct bel_missed){.made_count = slice.made_count,
                               .skipped_count = passed + slice.skipped_count,
                               .is_cut = !slice.is_last,
                               .has_next = slice.has_next,
                               .next = slice.next};
}

struct bel_missed bel__missed_choose(const struct bel_missed_plan *plan, struct bel_wall end,
                                     struct bel_wall out_times[BEL_MISFIRE_MAX])
{
    struct rule_context rule = {plan->plan, plan->next.ms};
    struct bel_misfire_range range = {.after = {plan->next.ms - 1}, .until = end};
    assert(plan->next.ms <= end.ms);
    if (plan->left > 0) return choose_limited(plan, range, &rule, out_times);
    struct bel_misfire_result result =
        bel_misfire_choose(plan->policy, BEL_MISFIRE_MAX,
                           &(struct bel_misfire_plan){next_by_rule, &rule}, range, out_times);
    return (struct bel_missed){.made_count = result.made_count,
                               .skipped_count = result.skipped_count,
                               .has_next = result.has_next,
                               .next = result.next};
}
