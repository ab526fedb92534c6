/* SPDX-License-Identifier: MIT */
#ifndef BEL_COMMANDS_FIELD_VALUE_H
#define BEL_COMMANDS_FIELD_VALUE_H

/*
 * field_value - reads fields of commands/fields.h from what a backend has replied. Inline, because
 * every reply to CLAIM, GET and LIST goes through it.
 */

#include "belfry/backend.h"
#include "commands/fields.h"

#include <assert.h>

/* Returns whether a map shows a field of this struct. */
static inline bool bel__field_is_there(const struct bel_field *field, const void *from,
                                       unsigned facts)
{
    const void *size = (const char *)from + field->size_offset;
    if ((field->needs & ~facts) != 0) return false;
    return field->empty == BEL_EMPTY_SHOWN || *(const uint64_t *)size != 0;
}

/* Returns the fields that a map shows of a timer: bit i is set for the i-th. */
uint64_t bel__timer_fields_there(const struct bel_timer *timer);

/* Returns the facts of a verdict, for the field that needs one. */
unsigned bel__verdict_facts(const struct bel_verdict *verdict);

/* Returns the facts of a topic. */
unsigned bel__topic_facts(const struct bel_topic *topic);

/* Return the facts of a job, with its tasks or without, and of a task. */
unsigned bel__job_facts(const struct bel_job *job, bool is_whole);
unsigned bel__task_facts(const struct bel_job_task *task);

/* Returns the facts of a resource and of its breaker. */
unsigned bel__resource_facts(const struct bel_limit_state *state);

/* Returns how many percent of the tasks have ended, rounded down; 100 without tasks. */
uint64_t bel__counts_progress(const uint64_t counts[BEL_STATES]);

/* Reads a field of a struct, each of these for the types that are named. */

/* TEXT, BYTES, PAYLOAD */
static inline struct bel_view bel__field_bytes(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->offset;
    return *(const struct bel_view *)at;
}

/* COUNT, DURATION; of a list: how long it is */
static inline uint64_t bel__field_count(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->size_offset;
    return *(const uint64_t *)at;
}

/* SMALL */
static inline uint8_t bel__field_small(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->offset;
    return *(const uint8_t *)at;
}

/* INSTANT */
static inline int64_t bel__field_ms(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->offset;
    return ((const struct bel_wall *)at)->ms;
}

/* BOOLEAN */
static inline bool bel__field_is_true(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->offset;
    return *(const bool *)at;
}

/* COUNTS, PROGRESS */
static inline const uint64_t *bel__field_counts(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->offset;
    return at;
}

/* HEADERS, SETTINGS, TASKS, AFTERS, RESULTS: the first item */
static inline const void *bel__field_items(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->offset;
    return *(const void *const *)at;
}

/* STATE, JOB_STATE, WORD, OUTCOME */
const char *bel__field_word(const struct bel_field *field, const void *from);

#endif
