/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_KEY_H
#define BEL_ENGINE_ROWS_KEY_H

/*
 * key - the 24-byte keys of rows, and the ids and tokens made from keys.
 *
 * All keys have one shape. They sort in the order in which rows are read:
 *
 *     byte  bytes  what
 *        0      1  table
 *        1      4  topic number
 *        5      1  lane: which clock a timer follows; of an ended timer its state
 *        6      8  time: when the timer is due, or when it ended
 *       14      1  priority
 *       15      7  sequence
 *       22      2  zeros
 *
 * So the timers of a topic lie side by side in the order of delivery. Tables that need other fields
 * store them in these fields: see enum bel_table. The key of an alias is the table's byte and a
 * hash of 16 bytes.
 *
 * An id that the engine makes encodes a timer's first key: time, priority, sequence and lane, as 26
 * digits of base 32. Such ids sort by due time, and lead to the row without an index.
 */

#include "belfry/view.h"
#include "core/siphash.h"
#include "core/sorted.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum bel_table {
    BEL_TABLE_META = 1,    /* sequence: enum bel_meta */
    BEL_TABLE_TOPICS,      /* topic: the topic's number */
    BEL_TABLE_COUNTS,      /* lane: enum bel_count_kind; time: stretch or hash; sequence: hash */
    BEL_TABLE_TIMERS,      /* unfinished timers, and the ticks of plans */
    BEL_TABLE_LEASES,      /* the key of the leased timer, in this table */
    BEL_TABLE_PLANS,       /* sequence: the plan's number */
    BEL_TABLE_PLAN_STATES, /* as in BEL_TABLE_PLANS */
    BEL_TABLE_OCCURRENCES, /* time: hash of the plan's id; sequence: nominal time */
    BEL_TABLE_ENDED,       /* lane: the state, see bel__ended_lane(); time: when the timer ended */
    BEL_TABLE_ALIASES,     /* all other bytes: a hash of topic and id */
    BEL_TABLE_CHUNKS,      /* time: the blob's number; sequence: index of the chunk */
    BEL_TABLE_EXPIRIES,    /* lane and time: when the timer expires; sequence: the timer's */
    BEL_TABLE_RESOURCES,   /* time and sequence: a hash of the name */
    BEL_TABLE_JOBS,        /* this and the next tables: rows/job.h */
    BEL_TABLE_JOB_IDS,     /* as in BEL_TABLE_ALIASES */
    BEL_TABLE_TASKS,       /* time: the job's number; sequence: the task's index */
    BEL_TABLE_EDGES,       /* time: the job's number; priority: kind; sequence: task and chunk */
    BEL_TABLE_JOB_WORK,    /* time: the job's number; priority: kind; sequence: task */
    BEL_TABLE_JOB_TIMES,   /* lane and time: when; priority: kind; sequence: the job's number */
};

/* Rows in BEL_TABLE_META. */
enum bel_meta {
    BEL_META_TIMES,
    BEL_META_SECRETS,
    BEL_META_EXPIRIES, /* how far BEL_TABLE_EXPIRIES has been made: engine/migration.h */
};

/* Which clock a timer follows. */
enum bel_lane {
    BEL_LANE_ENGINE,
    BEL_LANE_WALL,
    BEL_LANE_NONE, /* never due: a blocked timer, or a plan without a next time */
};

enum {
    BEL_MADE_ID_BYTES = 26,
    BEL_TOKEN_SECRET_BYTES = 12,
    BEL_TOKEN_BYTES = 44, /* base 64 of 21 key bytes and the secret */
};

#define BEL_SEQUENCE_MAX ((UINT64_C(1) << 56) - 1)

/* The parts of a key. */
struct bel_place {
    enum bel_table table;
    uint32_t topic;
    uint8_t lane;
    uint8_t priority;
    uint64_t time;
    uint64_t sequence; /* 56 bits */
};

/*
 * Keys are stored as words. Their parts are shifted in and out:
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

/* Returns the same key in another table. */
static inline struct bel_key bel__key_in(const struct bel_key *key, enum bel_table table)
{
    struct bel_key other = *key;
    other.words[0] = (other.words[0] & (UINT64_MAX >> 8)) | (uint64_t)table << 56;
    return other;
}

/* The lane of an ended timer is its state. Ended tasks of jobs are apart from other timers: they
 * are kept as long as their job. */
enum {
    BEL_ENDED_TASK_LANES = 32,
};

static inline uint8_t bel__ended_lane(unsigned state, bool is_task)
{
    return (uint8_t)(is_task ? BEL_ENDED_TASK_LANES + state : state);
}

static inline bool bel__is_task_lane(uint8_t lane)
{
    return lane >= BEL_ENDED_TASK_LANES;
}

/* Returns the state of an ended timer; not a state if the lane is not valid. */
static inline unsigned bel__ended_state(uint8_t lane)
{
    return lane >= BEL_ENDED_TASK_LANES ? lane - BEL_ENDED_TASK_LANES : lane;
}

static inline struct bel_key bel__key_meta(enum bel_meta which)
{
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_META, .sequence = which});
}

/* Returns the smallest key after `key`. */
struct bel_key bel__key_after(const struct bel_key *key);

/* Returns the key of the alias of (topic, id). */
struct bel_key bel__key_alias(const struct bel_siphash_key secrets[2], uint32_t topic,
                              struct bel_view id);

/* Writes the id that encodes these key parts; reads the key parts of such an id, in a topic.
 * Reading returns false if `id` is not an id that the engine makes. */
void bel__made_id(const struct bel_place *place, char out[BEL_MADE_ID_BYTES]);
bool bel__made_id_place(struct bel_view id, uint32_t topic, struct bel_place *out);

/* Writes and reads a token: a leased timer's key and a secret. Parsing returns false if `token` is
 * not a token. */
void bel__token_print(const struct bel_key *key, const uint8_t secret[BEL_TOKEN_SECRET_BYTES],
                      char out[BEL_TOKEN_BYTES]);
bool bel__token_parse(struct bel_view token, struct bel_key *out,
                      uint8_t out_secret[BEL_TOKEN_SECRET_BYTES]);

#endif
