/* SPDX-License-Identifier: MIT */

/* Replaces the recurrence rules in a build without libical. */
#include "belfry/rrule.h"
#include "plan/explain.h"
#include "plan/rrule.h"
#include "plan/text.h"

#include <assert.h>

bool bel_rrule_is_supported(void)
{
    return false;
}

int bel__rrule_parse(struct bel_view text, const struct bel_civil *start, const char *zone,
                     struct bel_rrule **out, struct bel_text_error *why)
{
    (void)zone;
    return bel_rrule_parse(text.data, text.bytes, start, out, why);
}

int bel_rrule_parse(const char *text, size_t bytes, const struct bel_civil *start,
                    struct bel_rrule **out, struct bel_text_error *why)
{
    (void)text;
    (void)bytes;
    (void)start;
    (void)out;
    return bel__text_refuse(why, 0, "another kind of rule: RRULE is not in this build");
}

void bel_rrule_destroy(struct bel_rrule *rrule)
{
    assert(rrule == NULL);
}

const char *bel_rrule_text(const struct bel_rrule *rrule)
{
    assert(rrule == NULL);
    return "";
}

int bel_rrule_next(const struct bel_rrule *rrule, const struct bel_zone_when *when, int64_t utc,
                   int64_t *out) /* NOLINT(readability-non-const-parameter) */
{
    assert(rrule == NULL);
    (void)when;
    (void)utc;
    (void)out;
    return BEL_ERANGE;
}

int64_t bel__rrule_local_after(const struct bel_rrule *rrule, int64_t local)
{
    assert(rrule == NULL);
    return local;
}

bool bel__rrule_is_real_time(const struct bel_rrule *rrule)
{
    assert(rrule == NULL);
    return true;
}

void bel__explain_rrule(struct writer *writer, const struct bel_rrule *rrule)
{
    assert(rrule == NULL);
    (void)writer;
}
