/* SPDX-License-Identifier: MIT */
#ifndef BEL_BELFRY_H
#define BEL_BELFRY_H

/*
 * belfry - every header of the library. A program that uses one part includes that part's header.
 */

#include "belfry/backend.h"
#include "belfry/backoff.h"
#include "belfry/calendar.h"
#include "belfry/client.h"
#include "belfry/clock.h"
#include "belfry/crew.h"
#include "belfry/cron.h"
#include "belfry/declare.h"
#include "belfry/delivery.h"
#include "belfry/driver.h"
#include "belfry/duration.h"
#include "belfry/duties.h"
#include "belfry/engine.h"
#include "belfry/error.h"
#include "belfry/instant.h"
#include "belfry/job.h"
#include "belfry/job_builder.h"
#include "belfry/jobs.h"
#include "belfry/limit.h"
#include "belfry/local_crew.h"
#include "belfry/misfire.h"
#include "belfry/overlap.h"
#include "belfry/plan.h"
#include "belfry/pressure.h"
#include "belfry/redis_store.h"
#include "belfry/rrule.h"
#include "belfry/runtime.h"
#include "belfry/spread.h"
#include "belfry/stats.h"
#include "belfry/text.h"
#include "belfry/timer.h"
#include "belfry/value.h"
#include "belfry/version.h"
#include "belfry/view.h"
#include "belfry/wheel.h"
#include "belfry/zone.h"

#endif
