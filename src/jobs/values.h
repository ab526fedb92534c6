/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_VALUES_H
#define BEL_JOBS_VALUES_H

/*
 * values - the fields of the objects in a job's text, their types, and their parsed values.
 *
 * The values of an object are collected until the object ends, because some depend on others that
 * may follow: the meaning of `at` depends on `gap`.
 */

#include "core/json_reader.h"
#include "jobs/draft.h"

enum bel_job_object {
    BEL_JOB_OBJECT_JOB,
    BEL_JOB_OBJECT_TASK,
    BEL_JOB_OBJECT_AFTER, /* {"task": ..., "on": ...} */
    BEL_JOB_OBJECT_THEN,  /* {"job": ..., "on": ...} */
    BEL_JOB_OBJECTS,
};

enum bel_job_type {
    BEL_JOB_TEXT,
    BEL_JOB_NUMBER,
    BEL_JOB_DURATION, /* a text with its unit, or a number of milliseconds */
    BEL_JOB_TIME,     /* a text, or a number of milliseconds since 1970; parsed at the end */
    BEL_JOB_WORD,
    BEL_JOB_RETRY,
    BEL_JOB_ANY,     /* a payload */
    BEL_JOB_BASE64,  /* a payload */
    BEL_JOB_HEADERS, /* an object */
    BEL_JOB_AFTERS,  /* an array */
    BEL_JOB_TASKS,   /* an array */
    BEL_JOB_THENS,   /* an array */
    BEL_JOB_JOB,     /* an object */
};

/* The places of fields in their objects. */
enum {
    BEL_JOB_ID,
    BEL_JOB_PRIORITY,
    BEL_JOB_TIMEOUT,
    BEL_JOB_PACE,
    BEL_JOB_COOLDOWN,
    BEL_JOB_RETRIES,
    BEL_JOB_THEN,
    BEL_JOB_TASK_LIST,
    BEL_JOB_EVERY,
    BEL_JOB_CRON,
    BEL_JOB_RRULE,
    BEL_JOB_TZ,
    BEL_JOB_AT,
    BEL_JOB_COUNT,
    BEL_JOB_UNTIL,
    BEL_JOB_MISFIRE,
    BEL_JOB_OVERLAP,
    BEL_JOB_GAP,
    BEL_JOB_FOLD,
    BEL_JOB_SPREAD,
    BEL_JOB_FIELDS_MAX,
};

enum {
    BEL_TASK_ID,
    BEL_TASK_TOPIC,
    BEL_TASK_PAYLOAD,
    BEL_TASK_PAYLOAD_BASE64,
    BEL_TASK_AFTER,
    BEL_TASK_RESOURCE,
    BEL_TASK_COST,
    BEL_TASK_PRIORITY,
    BEL_TASK_RETRY,
    BEL_TASK_IDLE,
    BEL_TASK_HEADERS,
    BEL_TASK_CORRELATION,
    BEL_TASK_IN,
    BEL_TASK_AT,
};

enum {
    BEL_AFTER_TASK,
    BEL_AFTER_ON,
};

enum {
    BEL_THEN_JOB,
    BEL_THEN_ON,
};

struct bel_job_field {
    const char *name;
    enum bel_job_type type;
    uint64_t min, max;        /* of a number; of a text: bytes; of a duration: min */
    const char *const *words; /* of a WORD; ends with NULL */
};

struct bel_job_fields {
    const struct bel_job_field *fields;
    size_t count;
};

/* The fields of each object. */
extern const struct bel_job_fields bel__job_fields[];

/* The values of an object: by place in the table. */
struct bel_job_values {
    uint32_t seen; /* a set of 1 << place */
    struct {
        struct bel_view text;
        uint64_t number; /* a number, a duration in ms, or the index of a word */
    } of[BEL_JOB_FIELDS_MAX];
};

static inline bool bel__job_has(const struct bel_job_values *values, size_t place)
{
    return (values->seen >> place & 1) != 0;
}

/* Finds a field by the name in a NAME token. Returns NULL if the object has no such field. */
const struct bel_job_field *bel__job_field_find(enum bel_job_object object,
                                                const struct bel_json_token *name);

/* Copies the text of a NAME or STRING token, which must not be longer than `bytes_max`. Returns 0,
 * BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__job_text(struct bel_job_draft *draft, const struct bel_json_token *token,
                              size_t bytes_max, struct bel_view *out, struct bel_job_fault *fault);

/* Parses a scalar value of a field. Returns 0, BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__job_value(struct bel_job_draft *draft, const struct bel_job_field *field,
                               const struct bel_json_token *token, struct bel_view *out_text,
                               uint64_t *out_number, struct bel_job_fault *fault);

#endif
