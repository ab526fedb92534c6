/* SPDX-License-Identifier: MIT */
#ifndef BEL_DELIVERY_H
#define BEL_DELIVERY_H

/*
 * delivery - a claimed timer as a worker receives it, from an engine, a driver or a server.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

struct bel_header {
    struct bel_view name, value;
};

/* The result of a task that a delivered task of a job comes after. */
struct bel_task_result {
    struct bel_view task;   /* its id, without that of the job */
    bool has_result;        /* false: it gave none, or it did not fit; GET of the task has it */
    struct bel_view result; /* if has_result */
};

struct bel_delivery {
    struct bel_view token, topic, id, payload, correlation;
    struct bel_wall due;
    uint64_t attempt;                 /* 1 + failures so far */
    uint64_t lease_ms;                /* duration of the lease */
    const struct bel_header *headers; /* include belfry-plan and belfry-nominal if it recurs */
    size_t headers_count;
    const struct bel_task_result *results; /* of a task of a job, in the order of its `after` */
    size_t results_count;
};

/* Frees a delivery of bel_driver_claim() or bel_client_claim(); NULL is allowed. */
void bel_delivery_destroy(struct bel_delivery *delivery);

BEL_END_DECLARATIONS
#endif
