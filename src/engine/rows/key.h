/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_KEY_H
#define BEL_ENGINE_ROWS_KEY_H

/*
 * key - where rows are in the store, and the names made from it.
 *
 * All rows have keys of one shape, 24 bytes that sort as they should be read:
 *
 *     byte  bytes  what
 *        0      1  table
 *        1      4  topic number
 *        5      1  lane: of a timer its timeline, of one that has ended its state
 *        6      8  time: when it is due, or when it ended
 *       14      1  priority
 *       15      7  sequence
 *       22      2  zeros
 *
 * So the timers of a topic lie side by side in the order in which they are delivered. Tables that
 * need other fields use these (enum bel_table says for what). An alias is the table's byte and a
 * hash of 16 bytes.
 *
 * An id that the engine makes is a timer's first key: time, priority, sequence and lane, written
 * as 26 digits of base 32, so that it sorts by due. It leads to the row without an index.
 */

#include "belfry/view.h"
#include "core/siphash.h"
#include "core/sorted.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum bel_table {
    BEL_TABLE_META = 1,    /* sequence: 0 for the engine's times, 1 for its secrets */
    BEL_TABLE_TOPICS,      /* topic: its name, settings */
    BEL_TABLE_COUNTS,      /* lane: enum bel_count_kind; time: stretch or hash; sequence: hash */
    BEL_TABLE_TIMERS,      /* unfinished timers, and the ticks of plans */
    BEL_TABLE_LEASES,      /* under a timer's own key */
    BEL_TABLE_PLANS,       /* sequence: the plan's number */
    BEL_TABLE_PLAN_STATES, /* the same */
    BEL_TABLE_OCCURRENCES, /* time: a hash of the plan's id; sequence: nominal time */
    BEL_TABLE_ENDED,       /* lane: the state; time: when it finished */
    BEL_TABLE_ALIASES,     /* a hash of topic and id */
    BEL_TABLE_CHUNKS,      /* time: the blob's number; sequence: which chunk */
};

/* Which clock a timer goes by. */
enum bel_lane {
    BEL_LANE_ENGINE,
    BEL_LANE_WALL,
    BEL_LANE_NONE, /* blocked, or a plan that waits: no time will make it due */
};

enum {
    BEL_MADE_ID_BYTES = 26,
    BEL_TOKEN_SECRET_BYTES = 12,
    BEL_TOKEN_BYTES = 44, /* of base 64: 21 bytes of the key and the secret */
};

#define BEL_SEQUENCE_MAX ((UINT64_C(1) << 56) - 1)

/* A key, field by field. */
struct bel_place {
    enum bel_table table;
    uint32_t topic;
    uint8_t lane;
    uint8_t priority;
    uint64_t time;
    uint64_t sequence; /* 56 bits */
};

/*
 * Keys are words, so fields are put in and taken out by shifting:
 *
 *     word 0    table 8 | topic 32 | lane 8 | time, upper 16
 *     word 1    time, lower 48 | priority 8 | sequence, upper 8
 *     word 2    sequence, lower 48 | 0
 */
static inline struct bel_key bel__key_of(const struct bel_place *place)
{
    assert(place->sequence <= BEL_SEQUENCE_MAX);
    return (struct bel_key){{
        (uint64_t)place->table << 56 | (uint64_t)place->topic << 24 | (uint64_t)place->lane << 16 |
            place->time >> 48,
        place->time << 16 | (uint64_t)place->priority << 8 | place->sequence >> 48,
        place->sequence << 16,
    }};
}

static inline struct bel_place bel__place_of(const struct bel_key *key)
{
    const uint64_t *words = key->words;
    return (struct bel_place){
        .table = (enum bel_table)(words[0] >> 56),
        .topic = (uint32_t)(words[0] >> 24),
        .lane = (uint8_t)(words[0] >> 16),
        .priority = (uint8_t)(words[1] >> 8),
        .time = words[0] << 48 | words[1] >> 16,
        .sequence = (words[1] & 0xff) << 48 | words[2] >> 16,
    };
}

/* The same key in another table. */
static inline struct bel_key bel__key_in(const struct bel_key *key, enum bel_table table)
{
    struct bel_key other = *key;
    other.words[0] = (other.words[0] & (UINT64_MAX >> 8)) | (uint64_t)table << 56;
    return other;
}

/* The key right behind `key`. */
struct bel_key bel__key_after(const struct bel_key *key);

/* Where the alias of (topic, id) is. */
struct bel_key bel__key_alias(const struct bel_siphash_key secrets[2], uint32_t topic,
                              struct bel_view id);

/* The id made from a place; the place of a made id, in a topic. False if it is not of that
 * form. */
void bel__made_id(const struct bel_place *place, char out[BEL_MADE_ID_BYTES]);
bool bel__made_id_place(struct bel_view id, uint32_t topic, struct bel_place *out);

/* A token: a leased timer's key and a secret. False if it is none. */
void bel__token_print(const struct bel_key *key, const uint8_t secret[BEL_TOKEN_SECRET_BYTES],
                      char out[BEL_TOKEN_BYTES]);
bool bel__token_parse(struct bel_view token, struct bel_key *out,
                      uint8_t out_secret[BEL_TOKEN_SECRET_BYTES]);

#endif
