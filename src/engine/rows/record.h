/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_RECORD_H
#define BEL_ENGINE_ROWS_RECORD_H

/*
 * record - the rows of timers, plans and leases as structs, and how they are encoded.
 *
 * A record has a head and a body. The head changes during the timer's life: attempts, outcomes. The
 * body does not: payload, headers, correlation, retry policy. A large body is stored in chunks
 * (BEL_TABLE_CHUNKS), so that a retry does not write it again.
 *
 * A decoded record has views into the row that it was read from. If the row has no id, the id is
 * made from the key: is_id_made.
 */

#include "belfry/timer.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_RECORD_BYTES_MAX = BEL_STORE_VALUE_BYTES_MAX,
    BEL_BODY_INLINE_MAX = 1200, /* a body up to this size stays in the record */
    BEL_CHUNK_BYTES = 1900,     /* so that a page of the tree holds two chunks */
};

enum bel_record_kind {
    BEL_RECORD_TIMER,
    BEL_RECORD_PLAN,
    BEL_RECORD_TICK, /* the position of a plan among the timers; only `plan` is set */
};

/* Bytes that are in the row itself or in chunks. */
struct bel_blob {
    uint64_t number; /* of the chunks; 0 if the bytes are in the row */
    uint64_t bytes;
    struct bel_view here; /* if in the row */
};

/* What a task's timer knows about its job. */
struct bel_task_of {
    uint64_t number; /* of the job; 0: not a task */
    uint32_t index;  /* of the task */
    uint8_t priority;
    uint32_t depth, cost;
};

struct bel_record {
    enum bel_record_kind kind;
    bool is_id_made; /* of an unfinished timer: the id is made from the key and not in the row */
    struct bel_view id, resource;
    struct bel_view group;           /* of a task: the id of its job, which is not in the row */
    int64_t created;                 /* wall ms */
    uint64_t lease_ms;               /* 0: the topic's default */
    uint64_t expires_ms, expires_at; /* 0: never; expires_at is a time of expires_lane */
    uint8_t expires_lane;
    uint64_t attempts, crashes;
    uint64_t plan;          /* of an occurrence or a tick: the plan's number; of a plan: its own */
    uint64_t nominal;       /* of an occurrence: nominal time, wall ms */
    uint64_t spread_ms;     /* of an occurrence: how long after `nominal` it is due */
    struct bel_task_of job; /* of a task; job.number is 0 for other timers */
    struct bel_blob body;

    uint8_t priority; /* of a plan or an ended timer; other timers have it in their key */
    uint64_t due;     /* of an ended timer: wall ms */
    struct bel_view reason;
    struct bel_blob result;
    bool has_result; /* it may be empty */

    struct bel_recurrence rule; /* of a plan */
    bool has_start;
    int64_t start;                  /* wall ms */
    uint64_t made, skipped, missed; /* of a plan that has ended */

    size_t outcomes_count;
    struct bel_outcome outcomes[BEL_OUTCOMES_MAX]; /* last: set up to outcomes_count */
};

/* The part of a plan that changes. */
struct bel_plan_state {
    bool has_next;
    uint64_t next;       /* the next nominal time, wall ms */
    uint64_t last;       /* the nominal time before `next`; 0: none */
    struct bel_key tick; /* the key of the tick in BEL_TABLE_TIMERS */
    uint64_t sequence;   /* of the tick */
    uint64_t made, skipped, missed;
    uint64_t uncounted;  /* times left out that COUNT does not count: those before format 3 */
    bool is_catching_up; /* is making up for missed times that the misfire policy chose */
};

/* Returns how many times COUNT has counted so far. */
static inline uint64_t bel__plan_used(const struct bel_plan_state *state)
{
    return state->made + state->skipped + state->missed - state->uncounted;
}

struct bel_lease_row {
    uint64_t end; /* open time */
    uint64_t lease_ms;
    uint64_t due; /* due time at delivery, wall ms */
    uint8_t secret[12];
    struct bel_view worker;
};

struct bel_body {
    struct bel_view correlation, retry, headers, payload; /* headers: see bel__headers_next() */
    uint64_t headers_count;
};

/* The share of a timer: a group or a job with this name; empty: no group. */
struct bel_share_name {
    struct bel_view name;
    bool is_job;
};

static inline struct bel_share_name bel__record_share(const struct bel_record *record)
{
    return (struct bel_share_name){record->group, record->job.number != 0};
}

/* Makes an empty record of a kind. */
void bel__record_begin(struct bel_record *record, enum bel_record_kind kind);

/* Each encodes a row into `out` and returns its size in bytes. */
size_t bel__record_write(const struct bel_record *record, uint8_t out[BEL_RECORD_BYTES_MAX]);
size_t bel__plan_state_write(const struct bel_plan_state *state, uint8_t out[BEL_RECORD_BYTES_MAX]);
size_t bel__lease_write(const struct bel_lease_row *lease, uint8_t out[BEL_RECORD_BYTES_MAX]);

/* Each decodes a row. Returns 0, or BEL_ECORRUPT if the row is damaged; then `*out` is partly
 * set. */
BEL_CHECKED int bel__record_read(struct bel_view row, struct bel_record *out);
BEL_CHECKED int bel__plan_state_read(struct bel_view row, struct bel_plan_state *out);
BEL_CHECKED int bel__lease_read(struct bel_view row, struct bel_lease_row *out);

/* Returns the kind of a row of BEL_TABLE_TIMERS without decoding all of it. */
enum bel_record_kind bel__record_kind(struct bel_view row);

/* Returns the size of the body of `spec`; encodes the body into that many bytes; decodes it. */
size_t bel__body_bytes(const struct bel_schedule_spec *spec);
void bel__body_write(const struct bel_schedule_spec *spec, uint8_t *out);
BEL_CHECKED int bel__body_read(struct bel_view bytes, struct bel_body *out);

/* Takes the first header off `*headers`. Returns false at the end. */
bool bel__headers_next(struct bel_view *headers, struct bel_header *out);

/* Returns the id of a task without that of its job. */
struct bel_view bel__task_id(const struct bel_record *record);

/* Appends an outcome. Drops the oldest outcome if there are BEL_OUTCOMES_MAX. */
void bel__record_note(struct bel_record *record, struct bel_outcome outcome);

/* Returns whether a timer is bare: its only row is its own. It has no alias, group, chunks, plan or
 * expiry, and will not get any. */
bool bel__record_is_bare(const struct bel_record *record);

#endif
