/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_PROP_ENGINE_H
#define BEL_TESTS_PROP_ENGINE_H

/*
 * Shared by the two files of prop_engine: the state of a case, and its random numbers.
 */

#include "belfry/engine.h"
#include "differ.h"
#include "model.h"

#include "../check.h"
#include "../random.h"

#include <string.h>

enum {
    ENGINE_SIDE,
    MODEL_SIDE,
    SIDES,

    CASES = 300,
    BATCHES = 60,
    BATCH_MAX = 4, /* requests of a turn */
    WAITING_MAX = 6,
    TOKENS_MAX = 24,
    SEEN_MAX = 24, /* ids from replies */
    TURNS_MAX = 1000,
    DIRECTORY_EVERY = 150, /* cases per directory, because opening one is slow */
    LISTED_MAX = 2000,
    JOB_TURNS_MAX = 100,
};

#define START INT64_C(1767225600000)

enum feature {
    PLANS = 1 << 0,
    EXPIRY = 1 << 1,
    STEPS = 1 << 2, /* of the wall clock */
    GROUPS = 1 << 3,
    CONCURRENCY = 1 << 4,
    RETENTION = 1 << 5,
    DEPTH = 1 << 6,
    WAITS = 1 << 7,
    SPREAD = 1 << 8,
    PRESSURE = 1 << 10,
    RESOURCES = 1 << 11,
    JOBS = 1 << 12,
    DIRECTORY = 1 << 9, /* the engine is closed and opened again in it */
};

/* A request to both sides. */
struct asked {
    struct bel_request requests[SIDES]; /* first */
    struct heard *heard[SIDES];
    struct bel_view ids[SIDES][2], tokens[SIDES][2], topics[3];
    struct bel_setting settings[2];
    char id[BEL_ID_BYTES + 1]; /* of an occurrence or a task that was seen */
    char *job;                 /* the text of a job */
};

struct token {
    char texts[SIDES][BEL_TOKEN_BYTES_MAX + 1];
};

struct world {
    uint64_t seed, random;
    uint64_t look;  /* random numbers for when to compare everything, which affect nothing else */
    uint64_t press; /* random numbers for samples of pressure */
    unsigned features;
    bool is_loud;
    struct bel_now now;
    struct bel_backend *backends[SIDES];
    struct bel_engine *engine;
    struct model *model;
    char path[64]; /* of the directory */
    struct bel_next next[SIDES];
    struct asked *asked[BATCH_MAX + WAITING_MAX];
    size_t asked_count;
    struct token tokens[TOKENS_MAX];
    size_t tokens_count; /* in total; the last ones are stored */
    char seen[SEEN_MAX][BEL_ID_BYTES + 1];
    size_t seen_count; /* likewise */
    struct differ differ;
};

extern const char *const topic_names[3];

static inline uint64_t below(struct world *world, uint64_t end)
{
    return random_below(&world->random, end);
}

static inline bool chance(struct world *world, unsigned percent)
{
    return below(world, 100) < percent;
}

static inline bool has(const struct world *world, enum feature feature)
{
    return (world->features & feature) != 0;
}

static inline struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

enum bel_verb choose_verb(struct world *world);

/* Makes a command for a verb and puts it into both requests of `asked`, which have their own tokens
 * and generated ids. */
void choose(struct world *world, enum bel_verb verb, struct asked *asked);

#endif
