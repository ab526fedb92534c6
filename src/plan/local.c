/* SPDX-License-Identifier: MIT */

/*
 * Between two changes of the offset, local time and real time advance alike, and the next local
 * time is the result if it comes before the next change:
 *
 *     span 1              | span 2: set back              | span 3: set forward
 *     ...  1:30  2:00 2:30|2:00 2:30 3:00 ...             |...  (no 2:00 to 3:00)   3:00 ...
 *               [1st pass] [2nd pass]                           [   gap    ]^
 *
 * A rule in real time uses all of these times. Any other rule skips the first or the second pass,
 * as its options say, and for a time in the gap returns the end of the gap. Spans in which no time
 * matches are skipped.
 */
#include "plan/local.h"

#include "plan/civil.h"
#include "plan/span.h"

enum {
    SPANS_MAX = 64,                /* spans visited, at most; a few are enough for any rule */
    SHORTLY = 3 * SECONDS_PER_DAY, /* more than the difference of any two offsets */
};

/* The result of a search in a span: the next local time from `start` on, in any span, and its
 * instant if it is in this span. */
struct finding {
    int64_t start;
    int64_t local;
    int64_t instant; /* or LOCAL_NONE */
};

static struct finding look_in_span(const struct local_rule *rule, const struct zone_span *span,
                                   int64_t from)
{
    struct finding found = {.start = from + span->offset, .instant = LOCAL_NONE};
    int64_t end = span->end != INT64_MAX ? span->end + span->offset : INT64_MAX;
    if (!rule->is_real_time) {
        /* Shown before the clocks were set back, and now again. */
        bool is_again = span->offset_before > span->offset && rule->fold == BEL_FOLD_FIRST;
        int64_t again_end = is_again ? span->start + span->offset_before : found.start;
        if (again_end > found.start) found.start = again_end;
        /* Will be shown again. */
        if (span->offset_after < span->offset && rule->fold == BEL_FOLD_SECOND) {
            end = span->end + span->offset_after;
        }
    }
    found.local = rule->next(rule->context, found.start - 1);
    if (found.local != LOCAL_NONE && found.local < end) {
        found.instant = found.local - span->offset;
    }
    return found;
}

/* Returns where to continue after a span. No time matches until shortly before `found->local`, so
 * the spans up to there can be skipped, unless the next one goes back to before the start. */
static int64_t go_on(const struct zone_span *span, const struct finding *found)
{
    if (span->end + span->offset_after < found->start) return span->end;
    int64_t shortly = found->local - SHORTLY;
    return shortly > span->end ? shortly : span->end;
}

/* Returns whether the rule matches a time in the gap of a change of the offset, if there is one,
 * and its options include it. */
static bool is_in_gap(const struct local_rule *rule, int64_t change, int32_t before, int32_t after)
{
    if (rule->is_real_time || rule->gap == BEL_GAP_SKIP) return false;
    if (after <= before) return false;
    int64_t local = rule->next(rule->context, change + before - 1);
    return local != LOCAL_NONE && local < change + after;
}

bool bel__local_next(const struct local_rule *rule, const struct bel_zone *zone, int64_t utc,
                     int64_t *out)
{
    int64_t first = (civil_to_days(CIVIL_YEAR_MIN, 1, 1) + 1) * SECONDS_PER_DAY;
    int64_t last = civil_to_days(CIVIL_YEAR_MAX, 12, 31) * SECONDS_PER_DAY, from;
    if (utc >= last) return false;
    from = utc < first ? first : utc + 1;
    for (unsigned spans = 0; spans < SPANS_MAX && from < last; spans++) {
        struct zone_span span = bel__zone_span(zone, from);
        /* A search that begins with a change has not visited the span before its gap. */
        if (spans == 0 && span.start == from &&
            is_in_gap(rule, from, span.offset_before, span.offset)) {
            *out = from;
            return true;
        }
        struct finding found = look_in_span(rule, &span, from);
        if (found.instant != LOCAL_NONE) {
            *out = found.instant;
            return true;
        }
        if (span.end == INT64_MAX) return false;
        if (is_in_gap(rule, span.end, span.offset, span.offset_after)) {
            *out = span.end;
            return true;
        }
        /* After the last local time, clocks that are set back may show it again. */
        if (found.local == LOCAL_NONE && span.end - from > SHORTLY) return false;
        from = found.local == LOCAL_NONE ? span.end : go_on(&span, &found);
    }
    return false;
}
