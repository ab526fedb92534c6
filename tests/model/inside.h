/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_MODEL_INSIDE_H
#define BEL_TESTS_MODEL_INSIDE_H

/*
 * inside - what the files of the model share: its data, which are all here, and the functions
 * of one file that another needs.
 */

#include "belfry/backoff.h"
#include "model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOREVER UINT64_MAX

/* 9999-12-31T23:59:59.999Z: no due is later. */
#define TIME_END_MS INT64_C(253402300799999)

enum {
    TOKEN_BYTES = 24,
};

/* Bytes that are ours. */
struct bytes {
    char *data;
    size_t count;
};

/* Which clock a due is compared with. */
enum timeline {
    ENGINE,
    WALL,
};

struct instant {
    enum timeline line;
    int64_t ms;
};

struct settings {
    uint64_t lease_ms, retention_ms, retention_dead_ms, misfire_after_ms;
    uint64_t crashes, concurrency, depth;
    struct bel_backoff retry;
    char deliver[1025]; /* ends in 0, and has none before */
};

struct topic {
    char *name;
    struct settings settings;
    bool paused;
    uint64_t served; /* when it was last: a count of deliveries; 0: never */
};

struct outcome {
    enum bel_outcome_kind kind;
    struct bel_wall at;
    struct bytes reason;
};

struct header {
    struct bytes name, value;
};

/* What makes a timer a plan. */
struct rule {
    struct bytes text, zone;
    struct bel_recurrence said; /* as it was scheduled, without the texts */
    struct bel_plan *plan;      /* NULL: the timer is none */
    struct bel_plan_options options;
    bool has_next;
    int64_t next_ms;
    uint64_t made, skipped, missed;
};

struct timer {
    struct topic *topic;
    struct bytes id, payload, group, resource, correlation, retry_text, worker, reason, result;
    struct bel_backoff retry; /* if there is a text of it */
    struct header *headers;
    size_t headers_count;
    enum bel_state state;
    struct instant due;
    uint8_t priority;
    uint64_t sequence;
    struct bel_wall created, finished;
    uint64_t expires_ms, lease_ms; /* as they were scheduled; 0: none */
    struct instant expires;        /* if expires_ms */
    uint64_t attempts, crashes;
    char token[TOKEN_BYTES + 1]; /* if leased */
    int64_t lease_end_ms;        /* if leased, in open time */
    uint64_t lease_length_ms;    /* if leased: as the claim had it */
    bool lease_is_old;           /* if leased: it was when the model was opened */
    struct outcome outcomes[BEL_OUTCOMES_MAX];
    size_t outcomes_count;
    struct rule rule;
    struct bytes plan_id; /* of an occurrence */
    int64_t nominal_ms;
};

/* A claim that waits. */
struct waiting {
    struct bel_request *request;
    uint64_t end_ns; /* of real time */
};

struct answer {
    struct bel_request *request;
    struct bel_reply reply;
};

/* An array of pointers that grows. */
struct list {
    void **items;
    size_t count;
};

struct model {
    struct bel_backend backend; /* first */
    struct model_options options;
    struct list topics;   /* struct topic, in the order of their making */
    struct list timers;   /* struct timer, likewise */
    struct list requests; /* struct bel_request that were submitted */
    struct list waiting;  /* struct waiting */
    struct list answers;  /* struct answer of this turn */
    struct list pieces;   /* memory that lives until the turn has answered */

    int64_t wall_ms, engine_ms, open_ms; /* of this turn */
    int64_t difference_ms;               /* wall - engine, as of the open or the last step */
    uint64_t real_ns;
    int64_t boot_opened_ms, engine_opened_ms, open_opened_ms;

    uint64_t sequence, tokens, served; /* how many there were */
};

/* memory.c: none of it fails. */
void *model_alloc(size_t bytes);
void model_list_add(struct list *list, void *item);
void model_list_remove(struct list *list, size_t index);
struct bytes model_copy(struct bel_view view);
void model_free(struct bytes *bytes);
struct bel_view model_view(struct bytes bytes);
bool model_same(struct bel_view a, struct bel_view b);
struct bel_view model_text(const char *text);
/* Memory, or a copy, that lives until the turn has answered. */
void *model_piece(struct model *model, size_t bytes);
struct bel_view model_kept(struct model *model, struct bytes bytes);

/* topics.c */
struct topic *model_topic_find(struct model *model, struct bel_view name);
struct topic *model_topic_make(struct model *model, struct bel_view name);
struct settings model_settings_default(void);
int model_configure(struct model *model, const struct bel_configure *command,
                    struct bel_reply *reply);
/* All settings as text, which lives until the turn has answered. */
const struct bel_setting *model_settings_print(struct model *model, const struct topic *topic,
                                               size_t *out_count);

/* timers.c */
struct timer *model_timer_at(struct model *model, size_t index);
struct timer *model_timer_find(struct model *model, struct topic *topic, struct bel_view id);
struct timer *model_timer_of_token(struct model *model, struct bel_view token);
void model_timer_free(struct timer *timer);
bool model_is_plan(const struct timer *timer);
bool model_is_unfinished(const struct timer *timer);
bool model_is_occurrence_of(const struct timer *timer, const struct topic *topic,
                            struct bel_view plan_id);
int64_t model_now(const struct model *model, enum timeline line);
int64_t model_in_wall_ms(const struct model *model, struct instant instant);
/* Whether it has a due, as LIST and conflicts understand it; and which, in wall ms: that of a
 * plan is its next nominal time, without the spread. */
bool model_has_due(const struct timer *timer);
int64_t model_due_ms(const struct model *model, const struct timer *timer);
bool model_reaches(const struct model *model, uint64_t delay_ms); /* not after TIME_END_MS */
/* The due from which a timer expires, if it does. */
void model_expires_from(struct timer *timer, struct instant due);
void model_due_again(struct model *model, struct timer *timer, struct instant due);
void model_note(struct model *model, struct timer *timer, enum bel_outcome_kind kind,
                struct bel_view reason);
void model_finish(struct model *model, struct timer *timer, enum bel_state state,
                  struct bel_view reason);
/* Ends a lease that nobody has any more; the timer is as it was before. */
void model_give_back(struct timer *timer);
/* Whether it is past its expiry, which nobody has noticed yet; noticing it. */
bool model_is_expired(const struct model *model, const struct timer *timer);
void model_look(struct model *model, struct timer *timer);
void model_look_at_topic(struct model *model, const struct topic *topic);
/* Makes ready what is due, and nothing else, and rings plans. */
void model_settle(struct model *model);
/* Forgets what has been kept for long enough. */
void model_forget(struct model *model);

/* plans.c */
int model_rule_make(struct model *model, const struct bel_schedule_spec *spec, struct bel_view id,
                    struct rule *out);
void model_rule_free(struct rule *rule);
void model_rule_reschedule(struct model *model, struct timer *plan, int64_t next_ms);
/* The first nominal time after one; false if there is none. */
bool model_rule_next(const struct rule *rule, int64_t after_ms, int64_t *out_ms);
/* When a plan rings that has a next time: then, and at its place in the spread window. */
int64_t model_rings_ms(const struct timer *plan);
/* Rings one plan that is due; false if none is. */
bool model_ring_first(struct model *model);
/* An occurrence of the plan has ended: another may begin, or the plan gets a next time. */
void model_occurrence_ended(struct model *model, struct topic *topic, struct bel_view plan_id);

/* claims.c */
void model_claim(struct model *model, struct bel_request *request);
void model_serve_waiting(struct model *model);
void model_end_waits(struct model *model);

/* The verbs. Each fills in the reply and returns 0, or returns an error. model_refuse() says why
 * and returns it. */
int model_refuse(struct bel_reply *reply, int err, const char *why);
int model_schedule(struct model *model, const struct bel_schedule_spec *spec,
                   struct bel_reply *reply);
int model_cancel(struct model *model, const struct bel_cancel *command, struct bel_reply *reply);
int model_reschedule(struct model *model, const struct bel_reschedule *command,
                     struct bel_reply *reply);
int model_revive(struct model *model, const struct bel_target *command, struct bel_reply *reply);
int model_purge(struct model *model, const struct bel_purge *command, struct bel_reply *reply);
void model_take_back_leases(struct model *model);
int model_ack(struct model *model, const struct bel_ack *command, struct bel_reply *reply);
int model_fail(struct model *model, const struct bel_fail *command, struct bel_reply *reply);
int model_release(struct model *model, const struct bel_release *command, struct bel_reply *reply);
int model_extend(struct model *model, const struct bel_extend *command, struct bel_reply *reply);
int model_get(struct model *model, const struct bel_target *command, struct bel_reply *reply);
int model_list(struct model *model, const struct bel_list_query *command, struct bel_reply *reply);
int model_topics(struct model *model, struct bel_reply *reply);
int model_topic(struct model *model, const struct bel_target *command, struct bel_reply *reply);
int model_pause(struct model *model, const struct bel_target *command, struct bel_reply *reply);
int model_resume(struct model *model, const struct bel_target *command, struct bel_reply *reply);
int model_explain(struct model *model, const struct bel_target *command, struct bel_reply *reply);
int model_agenda(struct model *model, const struct bel_agenda *command, struct bel_reply *reply);

/* Those of a topic that have a state and that a test is for, in the order of LIST. */
size_t model_in_order(struct model *model, const struct topic *topic,
                      bool (*wanted)(const struct timer *timer, const void *context),
                      const void *context, struct timer ***out);

#endif
