/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_COMMANDS_DESCRIBE_H
#define BEL_ENGINE_COMMANDS_DESCRIBE_H

/*
 * describe - fills in struct bel_timer, the public form of a timer.
 */

#include "engine/rows/record.h"
#include "engine/state/timer.h"

struct bel_engine;

/* Describe a timer, and the headers of its body. All memory is the answer's. */
BEL_CHECKED int bel__describe(struct bel_engine *engine, const struct bel_found *found,
                              struct bel_timer *out);
BEL_CHECKED int bel__describe_headers(struct bel_engine *engine, const struct bel_found *found,
                                      const struct bel_body *body, const struct bel_header **out,
                                      size_t *out_count);

#endif
