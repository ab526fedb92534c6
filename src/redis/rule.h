/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_RULE_H
#define BEL_REDIS_RULE_H

/*
 * rule - a plan as scripts store it: its state, which they change, and its rule, which only nodes
 * read.
 */

#include "belfry/timer.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_rule {
    struct bel_recurrence said; /* texts are views into the stored bytes */
    struct bel_view id;         /* of the plan */
    struct bel_wall created;
    bool has_next, has_start, is_catching_up;
    struct bel_wall next, start;
    uint64_t made, skipped, missed;
};

/* Sets start and first time of a new plan, whose other fields are set: `when` is that of the
 * schedule. Returns 0; BEL_EINVAL, with the reason in `why`; BEL_ERANGE if the rule has no time in
 * the future; or BEL_ENOMEM. */
BEL_CHECKED int bel__rule_begin(struct bel_rule *rule, const struct bel_schedule_spec *spec,
                                struct bel_zones *zones, struct bel_text_error *why);

/* Finds the zone of a rule. Returns 0, BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__rule_zone(const struct bel_rule *rule, struct bel_zones *zones,
                               const struct bel_zone **out);

/* Creates the plan of a rule, without its count. The caller destroys it. */
BEL_CHECKED int bel__rule_plan(const struct bel_rule *rule, struct bel_zones *zones,
                               struct bel_plan **out, struct bel_text_error *why);

/* Returns how long after a nominal time the plan rings: its place in the spread window. */
uint64_t bel__rule_place(const struct bel_rule *rule);

/* Return the size of a plan's state and rule as bytes; and write them. */
size_t bel__rule_bytes(const struct bel_rule *rule);
void bel__rule_write(const struct bel_rule *rule, uint8_t *out);

/* Reads them; `id` and `created` are set by the caller. Returns 0 or BEL_ECORRUPT. */
BEL_CHECKED int bel__rule_read(struct bel_view bytes, struct bel_rule *out);

#endif
