/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_RECORD_H
#define BEL_ENGINE_ROWS_RECORD_H

/*
 * record - what is written down of a timer, a plan, a lease; and how.
 *
 * A record has a head and a body. The head changes in the timer's life: attempts, outcomes. The
 * body does not: payload, headers, correlation, retry policy. A body that is large lies in chunks
 * of its own (BEL_TABLE_CHUNKS), so that a retry does not write it again.
 *
 * A decoded record has views into the row that it was read from; whoever has the key knows an id
 * that is not there.
 */

#include "belfry/timer.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_RECORD_BYTES_MAX = BEL_STORE_VALUE_BYTES_MAX,
    BEL_BODY_INLINE_MAX = 1200, /* bytes of a body that stay with the head */
    BEL_CHUNK_BYTES = 1900,     /* of a larger one: so that a page of the tree takes two */
};

enum bel_record_kind {
    BEL_RECORD_TIMER,
    BEL_RECORD_PLAN,
    BEL_RECORD_TICK, /* where a plan waits among the timers: has nothing but the plan's number */
};

/* Bytes that are in the row itself, or in chunks. */
struct bel_blob {
    uint64_t number; /* of the chunks; 0: in the row */
    uint64_t bytes;
    struct bel_view here; /* if in the row */
};

struct bel_record {
    enum bel_record_kind kind;
    bool is_id_made; /* of an unfinished timer: from its very key, and so not in the row */
    struct bel_view id, group, resource;
    int64_t created;                 /* wall ms */
    uint64_t lease_ms;               /* 0: the topic's */
    uint64_t expires_ms, expires_at; /* 0: never; on the lane below */
    uint8_t expires_lane;
    uint64_t attempts, crashes;
    uint64_t plan;      /* of an occurrence or a tick: the plan's number; of a plan: its own */
    uint64_t nominal;   /* of an occurrence: wall ms */
    uint64_t spread_ms; /* of an occurrence: what it is due after that */
    struct bel_blob body;

    uint8_t priority; /* of a plan, and of what has ended: the others have it in their key */
    uint64_t due;     /* of what has ended: wall ms */
    struct bel_view reason;
    struct bel_blob result;

    struct bel_recurrence rule; /* of a plan */
    bool has_start;
    int64_t start;                  /* wall ms */
    uint64_t made, skipped, missed; /* of a plan that has ended */

    size_t outcomes_count;
    struct bel_outcome outcomes[BEL_OUTCOMES_MAX]; /* last: those beyond the count are not set */
};

/* What changes in the life of a plan. */
struct bel_plan_state {
    bool has_next;
    uint64_t next;       /* nominal, wall ms */
    uint64_t last;       /* the nominal time before; 0: none */
    struct bel_key tick; /* where it waits in BEL_TABLE_TIMERS */
    uint64_t sequence;   /* of the tick */
    uint64_t made, skipped, missed;
    bool is_catching_up; /* it makes missed times that were chosen before */
};

struct bel_lease_row {
    uint64_t end; /* open time */
    uint64_t lease_ms;
    uint64_t due; /* as it was delivered, wall ms */
    uint8_t secret[12];
    struct bel_view worker;
};

struct bel_body {
    struct bel_view correlation, retry, headers, payload; /* headers: see bel__headers_next() */
    uint64_t headers_count;
};

/* An empty one of a kind. */
void bel__record_begin(struct bel_record *record, enum bel_record_kind kind);

/* Each writes into `out` and returns how many bytes. */
size_t bel__record_write(const struct bel_record *record, uint8_t out[BEL_RECORD_BYTES_MAX]);
size_t bel__plan_state_write(const struct bel_plan_state *state, uint8_t out[BEL_RECORD_BYTES_MAX]);
size_t bel__lease_write(const struct bel_lease_row *lease, uint8_t out[BEL_RECORD_BYTES_MAX]);

/* Each returns 0, or BEL_ECORRUPT for what was not written by the above; then `*out` has part of
 * it. */
BEL_CHECKED int bel__record_read(struct bel_view row, struct bel_record *out);
BEL_CHECKED int bel__plan_state_read(struct bel_view row, struct bel_plan_state *out);
BEL_CHECKED int bel__lease_read(struct bel_view row, struct bel_lease_row *out);

/* What kind a row of BEL_TABLE_TIMERS is, without reading all of it. */
enum bel_record_kind bel__record_kind(struct bel_view row);

/* How many bytes the body of `spec` has, and the body, into so many bytes. */
size_t bel__body_bytes(const struct bel_schedule_spec *spec);
void bel__body_write(const struct bel_schedule_spec *spec, uint8_t *out);
BEL_CHECKED int bel__body_read(struct bel_view bytes, struct bel_body *out);

/* Takes the first header off `*headers`. Returns false at the end. */
bool bel__headers_next(struct bel_view *headers, struct bel_header *out);

/* Appends an outcome; the oldest goes if there are too many. */
void bel__record_note(struct bel_record *record, struct bel_outcome outcome);

/* Returns whether the record of a timer is bare: the timer is a row and nothing else. It has
 * neither an alias nor a group, chunks or a plan, and will not get them. */
bool bel__record_is_bare(const struct bel_record *record);

#endif
