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
#include "redis/faststream_token.h"
#include "redis/node.h"
#include "redis/token.h"

#include "core/arena.h"

struct bel_burying;
struct bel_configuring;
struct bel_envelope;
struct bel_rule;
struct bel_redis_verb;

struct bel_operation {
    struct bel_link link; /* in a list of the node */
    struct bel_redis *node;
    struct bel_request *request; /* NULL: was withdrawn */
    struct bel_command command;  /* a copy, which outlives a withdrawn request */
    struct bel_mono asked;       /* when it began to wait for other operations */
    struct bel_reply reply;
    struct bel_arena arena; /* for the reply */
    struct bel_redis_topic **topics;
    size_t topics_count;
    struct bel_redis_topic *topic; /* the only topic, or NULL */
    struct bel_redis_partition
        *partition; /* of the only timer, or NULL; see bel__operation_place(). Of LIST the one
                       that has replied last */
    uint32_t restarts;
    struct bel_mono begin_at; /* not before this */
    bool has_moved;           /* one of several items has met a change of partitions */
    bool holds;               /* its topics */
    bool shares_hold;         /* with others of its kind that begin in the same turn */
    const struct bel_redis_verb *functions;
    void (*ended)(struct bel_operation *operation); /* NULL; or called before the answer */
    struct bel_item item;                           /* of verbs that have one */
    union {
        struct bel_rule *rule;  /* of SCHEDULE; NULL: not a plan */
        struct bel_token token; /* of FAIL, RELEASE, EXTEND */
        struct {
            struct bel_tokens *tokens; /* of ACK */
            size_t left;               /* items without results */
        } many;                        /* ACK */
        struct bel_cancelling {
            size_t left; /* items without results */
            int err;     /* the first error */
            struct bel_item items[];
        } * cancelling; /* CANCEL */
        struct bel_claiming *claiming;
        struct bel_agenda_work *agenda;
        struct bel_outlook *outlook;         /* of AGENDA with a layout */
        struct bel_envelope *envelope;       /* of SCHEDULE with a layout */
        struct bel_faststream_token shared;  /* of FAIL, RELEASE, EXTEND with a layout */
        struct bel_burying *burying;         /* of FAIL DEAD with a layout */
        struct bel_configuring *configuring; /* of CONFIGURE with a layout */
        struct bel_listing *listing;
        struct bel_sum *sum; /* TOPIC */
        struct bel_settings_change *change;
        struct {
            uint64_t count;   /* so far */
            int64_t until_ms; /* 0: not known yet */
            uint32_t partition;
        } slices; /* REVIVE, PURGE */
    };
};

struct bel_redis_verb {
    int (*prepare)(struct bel_operation *operation); /* on an error, the reply has the message */
    void (*begin)(struct bel_operation *operation);
};

enum bel_redis_layout_name {
    BEL_LAYOUT_NATIVE,
    BEL_LAYOUT_FASTSTREAM,
};

/* Returns the functions of a verb for topics of a layout; NULL: not supported. Those of verbs that
 * may name several topics are native, and ask each topic. */
const struct bel_redis_verb *bel__redis_verb(enum bel_redis_layout_name layout, enum bel_verb verb);

/* The same, of a command. */
const struct bel_redis_verb *bel__redis_verb_of(enum bel_redis_layout_name layout,
                                                const struct bel_command *command);

/* Creates an operation for a request. Returns NULL if memory has run out. */
struct bel_operation *bel__operation_create(struct bel_redis *node, struct bel_request *request);

/* Answers the request, unless it was withdrawn, and frees the operation. */
void bel__operation_answer(struct bel_operation *operation);

/* Returns the time of the server that has the timer or the topic of an operation, about, in ms. */
int64_t bel__operation_now(const struct bel_operation *operation);

/* Sets the error of the reply, and returns it. */
__attribute__((format(printf, 3, 4))) int bel__operation_refuse(struct bel_operation *operation,
                                                                int err, const char *format, ...);

/* Keeps the first reason for which a step of a command of many steps has failed. */
void bel__operation_note(struct bel_operation *operation, int err, const char *why);

/* Answers such a command with an error and the reason that was kept, after how many steps have
 * succeeded, as in "3 acknowledged". */
void bel__operation_stop(struct bel_operation *operation, int err, uint64_t count,
                         const char *done);

/* Answers with an error. */
void bel__operation_fail(struct bel_operation *operation, int err, const char *why);

/* Answers a request for a timer that does not exist. */
void bel__operation_answer_missing(struct bel_operation *operation);

/* Names the topics of a request. Return 0, or BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__operation_name(struct bel_operation *operation, struct bel_view topic);
BEL_CHECKED int bel__operation_name_all(struct bel_operation *operation,
                                        const struct bel_view *topics, size_t count);

/* Names the topics of a request that has named none, when it has begun. The same returns. */
BEL_CHECKED int bel__operation_name_more(struct bel_operation *operation,
                                         const struct bel_view *topics, size_t count);
/* The same, of a topic that is about to get a layout: its name may be one of no native topic. */
BEL_CHECKED int bel__operation_name_any(struct bel_operation *operation, struct bel_view topic);

/* Sets the partition, when the operation has begun: that of a timer's id in the only topic. */
struct bel_redis_partition *bel__operation_place(struct bel_operation *operation,
                                                 struct bel_view id);

/* Lets the operation begin again, a little later, because a topic has another number of partitions
 * than the node has believed. It must have done nothing. After too many times it fails. */
void bel__operation_restart(struct bel_operation *operation);

/* Makes later requests wait until this operation has ended, but see `shares_hold`. */
void bel__operation_hold(struct bel_operation *operation);

/* Returns whether now and a delay are before the end of the year 9999. */
bool bel__operation_reaches(const struct bel_operation *operation, uint64_t delay_ms);

/* Of SCHEDULE, for topics of every layout: check the headers; make an id that is unique and sorts
 * by due. On an error, the reply has the message. */
BEL_CHECKED int bel__schedule_check_headers(struct bel_operation *operation,
                                            const struct bel_schedule_spec *spec);
BEL_CHECKED int bel__schedule_make_id(struct bel_operation *operation, struct bel_view *out);

/* Returns whether a result is missing or is an error, and then answers with the error or restarts
 * the operation. */
bool bel__operation_is_refused(struct bel_operation *operation, const struct bel_results *results);

/* Serve parked claims from a partition; from all that are marked; end waits that are over. */
void bel__parked_serve(struct bel_redis *node, struct bel_redis_partition *partition);
void bel__parked_serve_marked(struct bel_redis *node);
void bel__claims_end_waits(struct bel_redis *node);
/* Withdraws a claim that is parked. Returns false if the request is none. */
bool bel__claims_withdraw(struct bel_redis *node, struct bel_request *request);
/* Returns when the first wait ends. */
struct bel_mono bel__claims_next(const struct bel_redis *node);

extern const struct bel_redis_verb bel__redis_schedule, bel__redis_get, bel__redis_cancel,
    bel__redis_reschedule, bel__redis_claim, bel__redis_ack, bel__redis_fail, bel__redis_release,
    bel__redis_extend, bel__redis_revive, bel__redis_purge, bel__redis_list, bel__redis_topics,
    bel__redis_topic, bel__redis_agenda, bel__redis_explain, bel__redis_configure, bel__redis_pause,
    bel__redis_resume, bel__redis_restore; /* SCHEDULE of a whole timer */
extern const struct bel_redis_verb bel__faststream_schedule, bel__faststream_get,
    bel__faststream_fail, bel__faststream_release, bel__faststream_extend, bel__faststream_revive,
    bel__faststream_purge, bel__faststream_list, bel__faststream_topic, bel__faststream_configure,
    bel__faststream_pause, bel__faststream_resume, bel__faststream_agenda, bel__faststream_explain;

#endif
