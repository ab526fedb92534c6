/* SPDX-License-Identifier: MIT */
#ifndef BENCH_REDIS_H
#define BENCH_REDIS_H

/*
 * redis - shared by the two halves of the program redis: the backend (redis.c) and the recipes
 * (redis_recipes.c).
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_BATCH = 100,
    BENCH_IN_FLIGHT = 64,
    BENCH_LANES = 4,
    BENCH_ID_BYTES = 36,
    BENCH_PAYLOAD_BYTES = 32,
    BENCH_LEASE_MS = 30000,
};

/* The socket of the server, or its port on loopback (0: none), and the prefix of all keys. */
extern const char *bench_path, *bench_space;
extern uint16_t bench_port;
extern char bench_payload[BENCH_PAYLOAD_BYTES];

double bench_now_s(void);
double bench_wall_ms(void);
struct bel_view bench_view(const char *text);
void bench_make_id(char id[BENCH_ID_BYTES + 1], uint64_t number);

/* Notes how late a delivery was. */
void bench_sample(double ms);

/* Connect; close. */
void bench_recipes_open(void);
void bench_recipes_close(void);

/* Return schedules, and claims with their acknowledgements, per second. */
double bench_recipe_schedule(uint64_t count, bool is_multi, double due_s);
double bench_recipe_claim(uint64_t count, bool is_hand);

/* Delivers timers to a worker that polls from 50 ms doubling to 5 s. */
void bench_recipe_late(size_t count);

#endif
