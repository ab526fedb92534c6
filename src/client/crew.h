/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_CREW_H
#define BEL_CLIENT_CREW_H

/*
 * crew - shared by the threads of a crew. Each hand has a slot, which holds a delivery and its
 * state:
 *
 *     idle --claimer--> given --hand--> working --hand--> worked --clerk--> told --hand--> idle
 *
 * The state `told` is used only if the options have a callback `told`; otherwise the slot becomes
 * idle at once. The thread named on an arrow owns the slot until that transition. The state, the
 * times and `is_lost` are protected by the mutex, and every thread may read them.
 */

#include "belfry/crew.h"

#include <pthread.h>

enum bel_slot_state {
    BEL_SLOT_IDLE,
    BEL_SLOT_GIVEN,
    BEL_SLOT_WORKING,
    BEL_SLOT_WORKED,
    BEL_SLOT_TOLD,
};

struct bel_crew;

/* A command of the clerk. */
struct bel_notice {
    struct bel_slot *slot;
    struct bel_view token;
    const struct bel_report *report; /* NULL: extend the lease */
    struct bel_mono asked;           /* when it was sent */
};

/*
 * What keeps the timers of a crew: a server, or a driver in the same process. The claimer and the
 * clerk have a link each. An error of `claim` or `tell` ends the link; BEL_EINVAL means that the
 * function has already reported the trouble.
 */
struct bel_crew_side {
    const char *lost; /* what an error of a link means, for people */
    /* Opens a link. Returns 0 and sets `*out`, or sets `*why`. */
    int (*open)(struct bel_crew *crew, void **out, struct bel_client_why *why);
    void (*close)(void *link);
    /* Called by another thread with the mutex held. Ends a claim that waits, and lets no other
     * begin; `is_last`: ends every call. */
    void (*interrupt)(void *link, bool is_last);
    /* Claims up to `count` timers, and calls bel__crew_give() for each delivery. */
    int (*claim)(struct bel_crew *crew, void *link, unsigned count);
    /* Sends notices in one batch, and calls bel__crew_answered() for each that has a reply. */
    int (*tell)(struct bel_crew *crew, void *link, struct bel_notice *notices, size_t count);
};

extern const struct bel_crew_side bel__crew_server; /* by the address in the options */

struct bel_slot {
    struct bel_crew *crew;
    pthread_t thread;
    pthread_cond_t changed; /* wakes the hand */
    enum bel_slot_state state;
    uint32_t lease_ms;             /* from the delivery */
    struct bel_mono extend_at;     /* when to send EXTEND, while given or working */
    struct bel_mono end;           /* end of the lease; if not extended by then it is lost */
    bool is_asked;                 /* the clerk's: a command of this slot is in flight */
    bool is_last;                  /* the clerk's: that command is not EXTEND */
    bool is_lost;                  /* the lease is lost */
    bool is_returned;              /* claimed while stopping: released without reaching a hand */
    struct bel_delivery *delivery; /* owned; the errand points into it */
    struct bel_errand errand;
    struct bel_report report;
};

struct bel_crew {
    struct bel_crew_options options; /* its pointers point into `memory` */
    void *memory;
    struct bel_view *claim;     /* CLAIM, the topics, and BEL_CREW_CLAIM_ARGS free arguments */
    struct bel_notice *notices; /* the clerk's: room for one of each hand */
    const struct bel_crew_side *side;
    void *side_context;
    const struct bel_clock *clock;
    pthread_mutex_t mutex;
    pthread_cond_t clerk_wakes, claimer_wakes, stopper_wakes;
    pthread_t claimer, clerk;
    bool stops;       /* no more claims */
    bool has_claimed; /* the claimer has ended */
    bool has_ended;   /* the clerk has ended: all reports are sent or given up */
    bool ends;        /* the hands are to exit */
    bool is_joined;
    bool hurries;                 /* no more waiting for replies */
    struct bel_mono quiet;        /* when a hand has last finished, if the crew is stopping */
    unsigned connecting;          /* number of threads that are connecting */
    unsigned connects;            /* how often one has succeeded */
    void *claim_link, *tell_link; /* of the claimer and the clerk, to interrupt them; or NULL */
    unsigned hands_started;
    struct bel_slot slots[];
};

/* The thread functions; `arg` is the crew. */
void *bel__crew_claim(void *arg); /* the claimer */
void *bel__crew_tell(void *arg);  /* the clerk */

/* The consecutive failures of a thread, which pauses before it connects again. */
struct bel_failures {
    unsigned count;
    bool is_unreached; /* the last one was to connect, not a call */
    unsigned connects; /* of the crew, when that began */
};

/* Starts a crew whose timers are kept by `side`. Otherwise as bel_crew_start(). */
BEL_CHECKED int bel__crew_start(const struct bel_crew_options *options,
                                const struct bel_crew_side *side, void *context,
                                struct bel_crew **out);

/* Gives a delivery, which the crew then owns, to a free hand. If the crew is stopping, marks it for
 * release. For `claim` of a side. */
void bel__crew_give(struct bel_crew *crew, struct bel_delivery *delivery);

/* Why an ACK was too late: its reply, 0, does not say. */
#define BEL_CREW_LATE "the lease has ended: it expired, or the timer was cancelled or replaced"

/* The reply to a notice. */
enum bel_answer {
    BEL_ANSWER_TAKEN,
    BEL_ANSWER_LOST,    /* the lease has ended */
    BEL_ANSWER_REFUSED, /* the command is invalid or exceeds a limit; the lease goes on */
};

/* Notes the reply to a FAIL, for `told`. Call it before bel__crew_answered(). For `tell` of a
 * side. */
void bel__crew_judged(const struct bel_notice *notice, struct bel_verdict verdict);

/* Handles the reply to a notice; `why`, for people, if it was not taken. For `tell` of a side. */
void bel__crew_answered(struct bel_crew *crew, struct bel_notice *notice, enum bel_answer answer,
                        struct bel_view why);

/* Opens a link. After failures sleeps first, unless the crew is stopping; the caller sets the count
 * to 0 after a success. If the last failure was to connect, a success of the other thread ends the
 * sleep. Returns 0 and sets `*link` (claim_link or tell_link); or returns an error after reporting
 * it. */
BEL_CHECKED int bel__crew_connect(struct bel_crew *crew, struct bel_failures *failures,
                                  void **link);
void bel__crew_disconnect(struct bel_crew *crew, void **link);

/* Calls the callback `trouble` with a text formatted as by printf. */
void bel__crew_trouble(struct bel_crew *crew, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Waits for a condition, or until `until`. The mutex is held. */
void bel__crew_wait(struct bel_crew *crew, pthread_cond_t *changed, struct bel_mono until);

/* Return the time, and the time `ms` from now. */
struct bel_mono bel__crew_now(const struct bel_crew *crew);
struct bel_mono bel__crew_after(const struct bel_crew *crew, uint64_t ms);

/* Returns the longest pause, up to `ms`, after which no lease of unfinished work has passed more
 * than a third of its time. The mutex is held. */
uint64_t bel__crew_pause_ms(const struct bel_crew *crew, uint64_t ms);

/* Sets `extend_at` and `end` of a lease that began at `begin`. */
void bel__slot_leased(struct bel_slot *slot, struct bel_mono begin);

enum {
    BEL_CREW_CLAIM_ARGS = 9,  /* arguments of CLAIM besides the topics */
    BEL_CREW_WAIT_MS = 10000, /* WAIT of a CLAIM; then the claimer sends the next one */
};

/* Puts a delivery into an idle slot, which owns it from then on. */
void bel__slot_fill(struct bel_slot *slot, struct bel_delivery *delivery);
void bel__slot_empty(struct bel_slot *slot);

/* Empties a slot and makes it idle. The mutex is held. */
void bel__slot_clear(struct bel_slot *slot);

#endif
