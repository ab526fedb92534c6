/* SPDX-License-Identifier: MIT */

/* Measures the same rules as recurrence rules, iterated by libical. */
#include "plan.h"

#include "harness.h"

#include <libical/ical.h>

void bench_libical(const char *what, const char *rule, uint32_t count)
{
    struct icalrecurrencetype parsed = icalrecurrencetype_from_string(rule);
    struct icaltimetype start = icaltime_from_string("20260101T000000");
    double begun = bench_plan_cpu_ns();
    for (uint32_t done = 0; done < count;) {
        icalrecur_iterator *iterator = icalrecur_iterator_new(parsed, start);
        if (iterator == NULL) bench_fail(rule);
        for (uint32_t i = 0; i < 500 && done < count; i++, done++) {
            struct icaltimetype next = icalrecur_iterator_next(iterator);
            if (icaltime_is_null_time(next)) break;
        }
        icalrecur_iterator_free(iterator);
    }
    bench_plan_report(what, "libical", (bench_plan_cpu_ns() - begun) / count);
}
