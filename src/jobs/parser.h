/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_PARSER_H
#define BEL_JOBS_PARSER_H

/*
 * parser - reads the JSON text of a job and makes a graph, a slice of work at a time.
 *
 *     err = bel__job_parser_create(&options, &parser);
 *     while ((err = bel__job_parser_step(parser, BEL_JOB_PARSER_WORK)) == BEL_JOB_PARSER_MORE) ...
 *     if (err == 0) graph = bel__job_parser_take(parser);
 *     bel__job_parser_destroy(parser);
 *
 * Nothing outside of the parser changes. An error names its place: "tasks[3].foo: unknown field".
 */

#include "core/siphash.h"
#include "jobs/graph.h"

struct bel_zones;
struct bel_job_parser; /* opaque */

enum {
    BEL_JOB_PARSER_MORE = 1,       /* call bel__job_parser_step() again */
    BEL_JOB_PARSER_WORK = 1 << 18, /* units of work for about 2 ms: a byte, or an edge */
};

struct bel_job_parser_options {
    struct bel_view
        text; /* must not change while the parser exists, or `then` of its graph is used */
    struct bel_view id; /* of the job, if the text has none or the same; empty: as in the text */
    struct bel_view made_id; /* of the job, if neither the text nor `id` has one; BEL_EINVAL if it
                                is needed and empty */
    struct bel_job_limits limits;
    struct bel_zones *zones; /* for names of zones; NULL: only UTC */
    struct bel_wall now;     /* for plans */
    bool is_stored; /* accepted earlier: a text of digits may be a duration in milliseconds */
    struct bel_siphash_key secret; /* random, so that a sender cannot choose ids that collide */
    /* An occurrence of a recurring job: the ids of the job and of its `then` get the suffix
     * "@<nominal>", the rule is left out, and {{nominal}} in payloads becomes the time in
     * RFC 3339. */
    bool has_nominal;
    struct bel_wall nominal;
};

/* Creates a parser. Returns 0 and sets `*out`, or returns BEL_ENOMEM. */
BEL_CHECKED int bel__job_parser_create(const struct bel_job_parser_options *options,
                                       struct bel_job_parser **out);

/* Does about `work` units of work. Returns BEL_JOB_PARSER_MORE; 0 if the graph is ready; or
 * BEL_EINVAL, BEL_EFULL or BEL_ENOMEM: see bel__job_parser_why(). After the end, returns the same
 * again. */
BEL_CHECKED int bel__job_parser_step(struct bel_job_parser *parser, uint32_t work);

/* Returns the message of the error. */
const char *bel__job_parser_why(const struct bel_job_parser *parser);

/* Returns the graph, which now belongs to the caller. Only once, after bel__job_parser_step() has
 * returned 0. */
struct bel_job_graph *bel__job_parser_take(struct bel_job_parser *parser);

/* Frees a parser, and its graph unless it was taken; NULL is allowed. */
void bel__job_parser_destroy(struct bel_job_parser *parser);

#endif
