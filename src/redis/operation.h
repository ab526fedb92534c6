/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_OPERATION_H
#define BEL_REDIS_OPERATION_H

/*
 * operation - a request that a node is processing.
 *
 * A verb has two functions. `prepare` checks the request and names its topics; it sends nothing.
 * `begin` adds items to batches when no earlier request holds one of the topics. The functions that
 * get the results end the operation with bel__operation_answer().
 */

#include "redis/batch.h"
#include "redis/node.h"
#include "redis/token.h"

#include "core/arena.h"

struct bel_rule;

struct bel_operation {
    struct bel_link link; /* in a list of the node */
    struct bel_redis *node;
    struct bel_request *request; /* NULL: was withdrawn */
    struct bel_command command;  /* a copy, which outlives a withdrawn request */
    struct bel_reply reply;
    struct bel_arena arena; /* for the reply */
    struct bel_redis_topic **topics;
    size_t topics_count;
    struct bel_redis_topic *topic; /* the only topic, or NULL */
    bool holds;                    /* its topics */
    struct bel_item item;          /* of verbs that have one */
    union {
        struct bel_rule *rule;  /* of SCHEDULE; NULL: not a plan */
        struct bel_token token; /* of FAIL, RELEASE, EXTEND */
        struct {
            struct bel_tokens *tokens; /* of ACK */
            size_t left;               /* items without results */
        } many;                        /* ACK, CANCEL */
        struct bel_claiming *claiming;
        struct {
            uint64_t count;   /* so far */
            int64_t until_ms; /* 0: not known yet */
        } slices;             /* REVIVE, PURGE */
    };
};

struct bel_redis_verb {
    int (*prepare)(struct bel_operation *operation); /* on an error, the reply has the message */
    void (*begin)(struct bel_operation *operation);
};

/* Returns the functions of a verb; NULL: not supported. */
const struct bel_redis_verb *bel__redis_verb(enum bel_verb verb);

/* Creates an operation for a request. Returns NULL if memory has run out. */
struct bel_operation *bel__operation_create(struct bel_redis *node, struct bel_request *request);

/* Answers the request, unless it was withdrawn, and frees the operation. */
void bel__operation_answer(struct bel_operation *operation);

/* Sets the error of the reply, and returns it. */
__attribute__((format(printf, 3, 4))) int bel__operation_refuse(struct bel_operation *operation,
                                                                int err, const char *format, ...);

/* Answers with an error. */
void bel__operation_fail(struct bel_operation *operation, int err, const char *why);

/* Names the topics of a request. Return 0, or BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__operation_name(struct bel_operation *operation, struct bel_view topic);
BEL_CHECKED int bel__operation_name_all(struct bel_operation *operation,
                                        const struct bel_view *topics, size_t count);

/* Makes later requests wait until this operation has ended. */
void bel__operation_hold(struct bel_operation *operation);

/* Returns whether now and a delay are before the end of the year 9999. */
bool bel__operation_reaches(const struct bel_operation *operation, uint64_t delay_ms);

/* Returns whether a result is missing or is an error, and then answers with the error. */
bool bel__operation_is_refused(struct bel_operation *operation, const struct bel_results *results);

/* Serve parked claims of a topic; of all topics that are marked; end waits that are over. */
void bel__claims_serve(struct bel_redis *node, struct bel_redis_topic *topic);
void bel__claims_serve_marked(struct bel_redis *node);
void bel__claims_end_waits(struct bel_redis *node);
/* Withdraws a claim that is parked. Returns false if the request is none. */
bool bel__claims_withdraw(struct bel_redis *node, struct bel_request *request);
/* Returns when the first wait ends. */
struct bel_mono bel__claims_next(const struct bel_redis *node);

extern const struct bel_redis_verb bel__redis_schedule, bel__redis_get, bel__redis_cancel,
    bel__redis_reschedule, bel__redis_claim, bel__redis_ack, bel__redis_fail, bel__redis_release,
    bel__redis_extend, bel__redis_revive, bel__redis_purge, bel__redis_list, bel__redis_topics,
    bel__redis_topic, bel__redis_configure, bel__redis_pause, bel__redis_resume;

#endif
