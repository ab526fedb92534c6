/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_DRAW_H
#define BEL_TESTS_DRAW_H

/*
 * draw - the parts of random commands that the simulator and prop_engine have in common. Both give
 * the same commands to an engine and to a model. Each side has its own tokens, and its own ids if
 * it made them.
 */

#include "belfry/backend.h"

struct draw {
    uint64_t *random;
    struct bel_wall now;
    unsigned dead_in_100;  /* percentage of failures that are final */
    uint64_t delay_ms_end; /* of failures and releases */
    uint64_t lease_ms_end; /* of extensions */
    struct bel_view (*topic)(void *context);
    void *context;
};

struct draw_weight {
    enum bel_verb verb;
    unsigned weight;
};

/* Draws a verb with a probability proportional to its weight. */
enum bel_verb draw_verb(uint64_t *random, const struct draw_weight *weights, size_t count);

void draw_fail(const struct draw *draw, struct bel_fail *fail);

/* Draws a LIST query of a topic, whose reply fits on one page. */
void draw_list(const struct draw *draw, struct bel_list_query *list);

void draw_agenda(const struct draw *draw, struct bel_agenda *agenda);

/* Draws a resource for a timer, or none; a LIMIT of such a resource or of `*`. */
struct bel_view draw_resource(const struct draw *draw);
void draw_limit(const struct draw *draw, struct bel_limit *limit);

enum {
    DRAW_JOBS = 4,            /* ids of jobs: "x0" and so on */
    DRAW_TASKS_MAX = 7,       /* of a job: "0" and so on */
    DRAW_JOB_BYTES = 4 << 10, /* of its text */
};

/* Draws the id of a job, and the text of one: a small graph in any topics, with resources if
 * `has_resources`, and now and then a job that follows. `out` has DRAW_JOB_BYTES. */
struct bel_view draw_job_id(const struct draw *draw);
struct bel_view draw_job(const struct draw *draw, bool has_resources, char *out);

/* Fills in a command of a verb with few fields: ACK, CANCEL, EXTEND, PURGE, RELEASE, one of JOB
 * other than SUBMIT, or one that has a target. */
void draw_small(const struct draw *draw, struct bel_command *command);

/* Puts the ids and tokens of one side into a command: ids[0], or as many as a CANCEL has, and
 * tokens likewise. */
void draw_give_names(struct bel_command *command, const struct bel_view *ids,
                     const struct bel_view *tokens);

#endif
