/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_RECORD_H
#define BEL_REDIS_RECORD_H

/*
 * record - the bytes that scripts and nodes exchange about a timer: its record, what its life has
 * left (`att`), and its lease (`tok`). scripts/prelude.lua has the same layouts.
 */

#include "belfry/timer.h"
#include "core/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Return the size of the body of a timer, which is its record without the head; and write it. */
size_t bel__record_body_bytes(const struct bel_schedule_spec *spec);
void bel__record_body_write(const struct bel_schedule_spec *spec, uint8_t *out);

/* The same for the body and the end of the head before it, from the expiry on, which is 0. */
size_t bel__record_rest_bytes(const struct bel_schedule_spec *spec);
void bel__record_rest_write(const struct bel_schedule_spec *spec, bool is_plan, uint8_t *out);

/* Returns the size of payload and headers, which limits what a claim gets. */
size_t bel__record_load(const struct bel_schedule_spec *spec);

/* The parts of a record. Texts are views into it. */
struct bel_stored {
    uint8_t prefix[8]; /* priority and sequence, big-endian */
    int64_t due, created;
    int64_t expiry; /* 0: none */
    uint64_t expires_ms, lease_ms;
    bool is_plan;
    struct bel_view payload, correlation, retry;
    const struct bel_header *headers; /* in the arena */
    size_t headers_count;
};

/* Reads a record. Returns 0, BEL_ECORRUPT, or BEL_ENOMEM. */
BEL_CHECKED int bel__stored_read(struct bel_view record, struct bel_arena *arena,
                                 struct bel_stored *out);

/* What scripts reply about a timer. `att` and `tok` are empty if there is none. */
struct bel_found_timer {
    struct bel_view topic, id;
    enum bel_state state;
    int64_t score; /* due, end of the lease or end of the timer, by state */
    struct bel_view record, att, tok;
};

/* Fills in a timer. Returns 0, BEL_ECORRUPT, or BEL_ENOMEM. */
BEL_CHECKED int bel__record_timer(const struct bel_found_timer *found, int64_t now_ms,
                                  struct bel_arena *arena, struct bel_timer *out);

/* Returns the failed attempts in `att`, which may be empty. */
uint64_t bel__record_attempts(struct bel_view att);

/* Returns the result in `att`; of a plan that is its state and rule. Empty if there is none. */
struct bel_view bel__record_result(struct bel_view att);

/* Splits the id of an occurrence. Returns false if the id is not one. */
bool bel__record_occurrence(struct bel_view id, struct bel_view *out_plan,
                            struct bel_view *out_nominal);

#endif
