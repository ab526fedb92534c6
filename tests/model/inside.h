/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_MODEL_INSIDE_H
#define BEL_TESTS_MODEL_INSIDE_H

/*
 * inside - what the files of the model share: all data structures, and functions that one file uses
 * of another.
 */

#include "belfry/backoff.h"
#include "model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FOREVER UINT64_MAX

/* 9999-12-31T23:59:59.999Z: the latest due time. */
#define TIME_END_MS INT64_C(253402300799999)

enum {
    TOKEN_BYTES = 24,
    MODEL_TEXTS = 10, /* byte strings of a timer */
};

/* A byte string that the model owns. */
struct bytes {
    char *data;
    size_t count;
};

/* Which clock a due time is compared with. */
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
    char deliver[1025]; /* ends in its only 0 */
};

/* A growing array of pointers. */
struct list {
    void **items;
    size_t count;
};

/* The turns of a share. */
struct turn {
    struct bytes group; /* or the id of the job */
    bool is_job;
    uint64_t end;        /* of the last turn: the model's count of deliveries; 0: none has ended */
    uint64_t deliveries; /* since */
};

/* A report of a limit. */
struct report {
    struct bytes who;
    int64_t at_ms; /* engine time */
    uint64_t for_ms;
};

enum {
    MODEL_REPORTS = 8,
};

/* A resource that has, or had, a limit. Times are engine ms, unless they say otherwise. */
struct resource {
    struct bytes name;
    uint64_t rate_count, rate_ms, burst, concurrency; /* 0: none */
    uint64_t breaker_failures, breaker_open_ms, breaker_max_ms;
    int64_t full_us, until_ms, breaker_until_ms;
    bool is_open; /* the breaker, also when half open */
    uint64_t failures, openings;
    char probe[TOKEN_BYTES + 1]; /* token of the probe; empty: none */
    struct report reports[MODEL_REPORTS];
    size_t reports_count;
};

/* How a lease ends, for the resource. All other ways are neither a success nor a failure. */
enum ending {
    ENDING_ACK,
    ENDING_FAIL,
    ENDING_LOST,
};

struct topic {
    char *name;
    struct settings settings;
    bool paused;
    bool is_near_depth; /* at the level critical, as of the last sample of pressure */
    uint64_t served;    /* model's count of deliveries at its last one; 0: never */
    struct list turns;  /* struct turn, of the shares that were served */
};

struct outcome {
    enum bel_outcome_kind kind;
    struct bel_wall at;
    struct bytes reason;
};

struct header {
    struct bytes name, value;
};

/* The rule of a plan. */
struct rule {
    struct bel_plan *plan; /* NULL: the timer is not a plan */
    bool has_next;
    int64_t next_ms;
    struct bytes text, zone;
    struct bel_recurrence said; /* as it was scheduled, without the texts */
    struct bel_plan_options options;
    uint64_t made, skipped, missed;
};

struct bel_job_graph;

/* A job. Its tasks are timers of the model, by their index in the text. */
struct job {
    uint64_t number; /* in the order of submission */
    uint64_t chain;  /* number of the first job of a chain of `then` */
    struct bytes text, id, parent, clash, reason;
    struct bel_job_graph *graph;
    struct timer **tasks;
    size_t tasks_count;       /* of a recurring job: 0 */
    bool *is_new;             /* by task: it has ended, and its dependents do not know */
    bool is_new_job;          /* no task is unblocked yet */
    bool is_ending;           /* by CANCEL or its timeout: no task is told */
    enum bel_job_state end;   /* if is_ending: the state after that */
    enum bel_job_state state; /* BEL_JOB_RUNNING until it has ended */
    bool is_paused;
    int64_t created_ms, finished_ms;                 /* wall */
    int64_t deadline_ms, paced_until_ms, follows_ms; /* engine ms; 0: none */
    int64_t releases_ms; /* when the ids of jobs of `then` that will not begin are free; 0: are */
    size_t followed;     /* jobs of `then` that are dealt with */
    struct timer *plan;  /* of a recurring job: its id and rule, in no list; else NULL */
    int64_t *owed;       /* nominal times that will make jobs, in order */
    size_t owed_count;
    bool has_nominal; /* made by a recurring job, or follows such a job */
    int64_t nominal_ms;
    struct bytes plan_id; /* of the recurring job that made it */
};

/* What every turn looks at comes first: there may be thousands of timers. */
struct timer {
    struct job *job; /* NULL: the timer is not a task */
    struct topic *topic;
    enum bel_state state;
    uint8_t priority;
    bool has_result;        /* it may be empty */
    bool lease_is_old;      /* if leased: since before the model was opened */
    uint64_t expires_ms;    /* as scheduled; 0: not given */
    struct instant expires; /* valid if expires_ms > 0 */
    struct instant due;
    struct rule rule;
    size_t task; /* index in the job */
    struct bytes id, payload, group, resource, correlation, retry_text, worker, reason, result;
    struct bel_backoff retry; /* valid if retry_text is not empty */
    struct header *headers;
    size_t headers_count;
    uint64_t sequence;
    struct bel_wall created, finished;
    uint64_t lease_ms; /* as scheduled; 0: not given */
    uint64_t attempts, crashes;
    char token[TOKEN_BYTES + 1]; /* if leased */
    int64_t lease_end_ms;        /* if leased, in open time */
    uint64_t lease_length_ms;    /* if leased: the length that the claim asked for */
    struct outcome outcomes[BEL_OUTCOMES_MAX];
    size_t outcomes_count;
    struct bytes plan_id; /* of an occurrence */
    int64_t nominal_ms;
};

/* A parked claim. */
struct waiting {
    struct bel_request *request;
    uint64_t end_ns; /* of real time */
};

struct answer {
    struct bel_request *request;
    struct bel_reply reply;
};

struct model {
    struct bel_backend backend; /* first */
    struct model_options options;
    struct list topics;    /* struct topic, in order of creation */
    struct list timers;    /* struct timer, in order of creation */
    struct list resources; /* struct resource */
    struct list jobs;      /* struct job, in order of submission */
    struct list requests;  /* struct bel_request, submitted and not applied yet */
    struct list waiting;   /* struct waiting */
    struct list answers;   /* struct answer of this turn */
    struct list pieces;    /* memory that is freed after the turn's answers */

    int64_t wall_ms, engine_ms, open_ms; /* of this turn */
    int64_t difference_ms;               /* wall - engine, at opening or at the last step */
    uint64_t real_ns;
    int64_t boot_opened_ms, engine_opened_ms, open_opened_ms;

    uint64_t sequence, tokens, served, numbers; /* given so far */
    int pressure[BEL_PRESSURE_CAUSES];          /* levels by cause */
    bool is_unclear; /* a claim got what an engine, which meets closed resources late, may not give
                        it yet */
};

/* memory.c: aborts if there is no memory. */
void *model_alloc(size_t bytes);
void model_list_add(struct list *list, void *item);
void model_list_remove(struct list *list, size_t index);
struct bytes model_copy(struct bel_view view);

/* The characters of a text that fit into BEL_TEXT_BYTES_MAX bytes. */
struct bel_view model_cut(struct bel_view text);
void model_free(struct bytes *bytes);

static inline struct bel_view model_view(struct bytes bytes)
{
    return (struct bel_view){bytes.data, bytes.count};
}

static inline bool model_same(struct bel_view a, struct bel_view b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

struct bel_view model_text(const char *text);
/* Memory, or a copy, that is freed after the turn's answers. */
void *model_piece(struct model *model, size_t bytes);
struct bel_view model_kept(struct model *model, struct bytes bytes);

/* topics.c */
struct topic *model_topic_find(struct model *model, struct bel_view name);
struct topic *model_topic_make(struct model *model, struct bel_view name);
struct settings model_settings_default(void);
int model_configure(struct model *model, const struct bel_configure *command,
                    struct bel_reply *reply);
/* Returns all settings as text, which is freed after the turn's answers. */
const struct bel_setting *model_settings_print(struct model *model, const struct topic *topic,
                                               size_t *out_count);

/* timers.c */
static inline struct timer *model_timer_at(struct model *model, size_t index)
{
    return model->timers.items[index];
}

struct timer *model_timer_find(struct model *model, struct topic *topic, struct bel_view id);
struct timer *model_timer_of_token(struct model *model, struct bel_view token);
void model_timer_free(struct timer *timer);
/* Sets `out` to all byte strings of a timer, except those of its headers, outcomes and rule. */
void model_timer_texts(struct timer *timer, struct bytes *out[MODEL_TEXTS]);

static inline bool model_is_plan(const struct timer *timer)
{
    return timer->rule.plan != NULL;
}

static inline bool model_is_unfinished(const struct timer *timer)
{
    return timer->state < BEL_DONE;
}

bool model_is_occurrence_of(const struct timer *timer, const struct topic *topic,
                            struct bel_view plan_id);
int64_t model_now(const struct model *model, enum timeline line);
int64_t model_in_wall_ms(const struct model *model, struct instant instant);
/* Return whether a timer has a due time, as LIST and conflicts understand it; and that time in wall
 * ms. The due time of a plan is its next nominal time, without the spread. */
bool model_has_due(const struct timer *timer);
int64_t model_due_ms(const struct model *model, const struct timer *timer);
bool model_reaches(const struct model *model, uint64_t delay_ms); /* not after TIME_END_MS */
/* Sets the expiry of a timer that can expire, counted from `due`. */
void model_expires_from(struct timer *timer, struct instant due);
void model_due_again(struct model *model, struct timer *timer, struct instant due);
void model_note(struct model *model, struct timer *timer, enum bel_outcome_kind kind,
                struct bel_view reason);
void model_finish(struct model *model, struct timer *timer, enum bel_state state,
                  struct bel_view reason);
/* Ends a lease. The timer keeps its due time and sequence. */
void model_give_back(struct timer *timer);
/* Return whether a timer has expired but has not been ended yet; end such a timer; end all such
 * timers of a topic, in the order in which they expire. */
bool model_is_expired(const struct model *model, const struct timer *timer);
void model_look(struct model *model, struct timer *timer);
void model_expire(struct model *model, const struct topic *topic);
/* Ends expired timers, rings due plans, and makes exactly the due timers ready. */
void model_settle(struct model *model);
/* Deletes ended timers whose retention is over. */
void model_forget(struct model *model);

/* plans.c */
int model_rule_make(struct model *model, const struct bel_schedule_spec *spec, struct bel_view id,
                    struct rule *out);
void model_rule_free(struct rule *rule);
/* Makes what a rule owns anew, after it was copied. */
void model_rule_clone(struct rule *rule);
void model_rule_reschedule(struct model *model, struct timer *plan, int64_t next_ms);
/* Returns how many times of a plan COUNT has counted: made, skipped and missed. */
uint64_t model_rule_used(const struct rule *rule);
/* Sets `*out_ms` to the first nominal time after `after_ms`. Returns false if there is none. */
bool model_rule_next(const struct rule *rule, int64_t after_ms, int64_t *out_ms);

/* Lists all times of a rule up to `until_ms`, or up to the last of COUNT, and lets MISFIRE choose
 * from the end of the list. Counts the others as missed. Returns those chosen, which the caller
 * frees. */
struct bel_wall *model_rule_misfires(struct rule *rule, int64_t until_ms, size_t *out_count);
/* Returns when a plan with a next time rings: the nominal time plus its position in the spread
 * window. */
int64_t model_rings_ms(const struct timer *plan);
/* Rings the first due plan. Returns false if none is due. */
bool model_ring_first(struct model *model);
/* Called when an occurrence of the plan has ended: another may be unblocked, or the plan gets a
 * next time. */
void model_occurrence_ended(struct model *model, struct topic *topic, struct bel_view plan_id);

/* jobs.c */
struct job *model_job_at(struct model *model, size_t index);
void model_job_free(struct job *job);
/* Makes what a job owns anew, after it was copied, except for its tasks. */
void model_job_clone(struct job *job);
/* Called when a task has ended. Those after it are told by model_jobs_work(). */
void model_task_ended(struct model *model, struct timer *timer);
/* Ends a job: its unfinished tasks are cancelled by model_jobs_work(). */
void model_job_end(struct job *job, enum bel_job_state state);
/* Does what follows from a command, or from what was due, for jobs. */
void model_jobs_work(struct model *model);
/* Returns whether no task of a job may be delivered now. */
bool model_job_is_held(const struct model *model, const struct job *job);
/* Returns the static score of a task, and the id of a task without that of its job. */
double model_task_score(const struct timer *timer);
struct bel_view model_task_id(const struct timer *timer);
/* Called when a task is leased: under pressure the next one has to wait. */
void model_job_pace(struct model *model, const struct timer *timer);
/* Sets the results that a delivery of a task carries. */
void model_task_results(struct model *model, const struct timer *timer, struct bel_delivery *out);
/* Handles what is due for jobs: deadlines, jobs that follow, retention. */
void model_jobs_turn(struct model *model);
/* Returns the engine ms until the next of these; negative if there is none. */
int64_t model_jobs_next_in(struct model *model);

/* submit.c */
/* Makes the jobs of `then` of a job that has ended. */
void model_job_follow(struct model *model, struct job *parent);
int model_job_submit(struct model *model, const struct bel_job_submit *command,
                     struct bel_reply *reply);
void model_job_remove(struct model *model, struct job *job);
/* Returns a job that a scope may see, or NULL. */
struct job *model_job_find(struct model *model, struct bel_view id,
                           const struct bel_job_scope *scope);

/* Makes the job of a nominal time. Returns false if that is refused. */
bool model_job_make_at(struct model *model, struct job *plan, int64_t nominal_ms);

/* recurring.c */
/* Makes the plan of a text. Returns 0, or an error if its rule is wrong or has no time. */
int model_recurring_plan(struct model *model, const struct bel_job_graph *graph,
                         struct timer **out);
/* Lets a job have the plan and the owed times of the one that it replaces, if the rule of `*plan`
 * is the same. */
void model_recurring_keep(struct job *old, struct timer **plan, struct job *out);
void model_recurring_free(struct job *job);
void model_recurring_clone(struct job *job);
/* Passes a time of a plan that is due, or all that are late. Returns false if there is none. */
bool model_recurring_ring(struct model *model);
/* Makes the jobs of the times whose turn has come. */
void model_recurring_make(struct model *model);
/* Returns the ms until a recurring job wants a turn; negative: never. */
int64_t model_recurring_next_in(struct model *model, const struct job *job);
/* Ends a recurring job that is cancelled, or has nothing left to do. Returns whether it has. */
bool model_recurring_work(struct model *model, struct job *job);
void model_recurring_show(struct model *model, const struct job *job, struct bel_job *out);

/* job_verbs.c */
int model_job_get(struct model *model, const struct bel_job_get *command, struct bel_reply *reply);
int model_job_list(struct model *model, const struct bel_job_list *command,
                   struct bel_reply *reply);
int model_job_cancel(struct model *model, const struct bel_job_target *command,
                     struct bel_reply *reply);
int model_job_pause(struct model *model, const struct bel_job_target *command,
                    struct bel_reply *reply);
int model_job_resume(struct model *model, const struct bel_job_target *command,
                     struct bel_reply *reply);

/* schedule.c */
/* Returns when a task or timer is due. False if that is out of range or `when` is unknown. */
bool model_find_due(const struct model *model, enum bel_when when, uint64_t delay_ms,
                    struct bel_wall at, struct instant *out);
void model_timer_remove(struct model *model, struct timer *timer);
size_t model_count_unfinished(struct model *model, const struct topic *topic);

/* pressure.c: whether a timer may not be added to a topic, which may be NULL; no pressure. */
bool model_is_pressed(struct model *model, const struct topic *topic);
void model_pressure_forget(struct model *model);

/* claims.c */
void model_claim(struct model *model, struct bel_request *request);
void model_serve_waiting(struct model *model);
void model_end_waits(struct model *model);
/* Forgets when the shares of a topic were served. */
void model_forget_turns(struct topic *topic);
/* Returns the headers of a timer. An occurrence has two more, with its plan and nominal time; a
 * task has two more, with its job and its own id. */
struct bel_header *model_headers(struct model *model, const struct timer *timer, size_t *out_count);

/* resources.c */
/* Returns whether a resource that a timer needs is closed. */
bool model_resource_closed(struct model *model, const struct timer *timer);
void model_resource_take(struct model *model, const struct timer *timer);
/* Called before a timer loses its lease. */
void model_resource_end(struct model *model, const struct timer *timer, enum ending ending);
/* Limits a resource; returns until when. */
int64_t model_resource_limit(struct model *model, struct bel_view name, uint64_t ms,
                             struct bel_view who);
void model_resource_free(struct resource *resource);
int model_limit(struct model *model, const struct bel_limit *limit, struct bel_reply *reply);

/* The verbs. Each fills in the reply and returns 0, or returns an error. model_refuse() sets the
 * text of an error and returns the error. */
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

/* Sets `*out` to the timers of a topic for which `wanted` returns true, in the order of LIST.
 * Returns their number. */
size_t model_in_order(struct model *model, const struct topic *topic,
                      bool (*wanted)(const struct timer *timer, const void *context),
                      const void *context, struct timer ***out);

#endif
