/* SPDX-License-Identifier: MIT */
#ifndef BEL_PRESSURE_H
#define BEL_PRESSURE_H

/*
 * pressure - how close an engine is to a limit: memory, disk, depth of a topic, commit latency.
 *
 * An engine measures nothing but the depth of its topics. The program that runs the engine measures
 * the rest, about once a second, and passes it on with bel_engine_pressure(). Each cause has a
 * level of its own; the highest of them is the level of the engine:
 *
 *     use of the limit      level      between two starts of one job
 *     more than 95 %        critical   SCHEDULE and JOB SUBMIT fail with BEL_EFULL
 *     more than 85 %        high       30 s
 *     more than 70 %        medium     10 s
 *     more than 50 %        low        2 s
 *     otherwise             none       0
 *
 * A level rises at once and falls when the use is 5 points below the bound that it rose above: from
 * low to none at 45 %. At critical, a start of a task waits as at high.
 *
 * Pressure slows and refuses only what adds. Plain claims, acknowledgements, cancels and reads work
 * at every level.
 */

#include "belfry/declare.h"

#include <stdbool.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum bel_pressure_level {
    BEL_PRESSURE_NONE,
    BEL_PRESSURE_LOW,
    BEL_PRESSURE_MEDIUM,
    BEL_PRESSURE_HIGH,
    BEL_PRESSURE_CRITICAL,
    BEL_PRESSURE_LEVELS,
};

enum bel_pressure_cause {
    BEL_PRESSURE_MEMORY, /* allocations of the program */
    BEL_PRESSURE_DISK,   /* of the data directory */
    BEL_PRESSURE_DEPTH,  /* timers of the topic that is closest to its `depth` */
    BEL_PRESSURE_COMMIT, /* how long changes take to become durable; at most BEL_PRESSURE_HIGH */
    BEL_PRESSURE_CAUSES,
};

/* How much of a limit is used, in any unit. */
struct bel_pressure_use {
    uint64_t used;
    uint64_t limit;     /* 0: there is no limit, and no pressure */
    bool is_unreadable; /* the use could not be measured, which counts as critical */
};

/* What a program measures. A zeroed use is no pressure. */
struct bel_pressure_sample {
    struct bel_pressure_use memory, disk, commit;
};

/* The pressure of an engine as of the last sample. */
struct bel_pressure_state {
    enum bel_pressure_level level; /* the highest of `levels` */
    enum bel_pressure_cause cause; /* the first cause with that level */
    enum bel_pressure_level levels[BEL_PRESSURE_CAUSES];
    struct bel_pressure_use uses[BEL_PRESSURE_CAUSES];
    uint64_t changes;  /* of `level` since the engine was opened */
    uint64_t refusals; /* requests that failed because of it */
};

/* Return the name in lower case: "critical", "memory". */
const char *bel_pressure_level_name(enum bel_pressure_level level);
const char *bel_pressure_cause_name(enum bel_pressure_cause cause);

BEL_END_DECLARATIONS
#endif
