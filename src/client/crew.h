/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_CREW_H
#define BEL_CLIENT_CREW_H

/*
 * What the threads of a crew share. A slot is a hand's: a delivery and how far it has come.
 *
 *     idle --claimer--> given --hand--> working --hand--> worked --clerk--> told --hand--> idle
 *
 * It is told only if somebody wants to hear of it, and idle at once otherwise. Whoever is named on
 * an arrow owns the slot up to there, but the state, the times and `is_lost` are under the mutex,
 * and everybody may look at them.
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

struct bel_slot {
    struct bel_crew *crew;
    pthread_t thread;
    pthread_cond_t changed; /* for the hand */
    enum bel_slot_state state;
    uint32_t lease_ms;         /* as the server has said */
    struct bel_mono extend_at; /* while given or working */
    struct bel_mono end;       /* of the lease; by then it is surely lost */
    bool is_asked;             /* the clerk's: a command of it is under way, */
    bool is_last;              /* and it is not EXTEND */
    bool is_lost;
    bool is_returned; /* it came too late for a hand to see it */
    void *memory;     /* of the errand */
    struct bel_errand errand;
    struct bel_report report;
};

struct bel_crew {
    struct bel_crew_options options; /* what it points to is in `memory` */
    void *memory;
    struct bel_view *claim; /* CLAIM, the topics, and room for the rest */
    const struct bel_clock *clock;
    pthread_mutex_t mutex;
    pthread_cond_t clerk_wakes, claimer_wakes, stopper_wakes;
    pthread_t claimer, clerk;
    bool stops;       /* no more claims */
    bool has_claimed; /* the claimer has ended */
    bool has_ended;   /* the clerk has ended: all is told */
    bool ends;        /* the hands may go home */
    bool is_joined;
    bool hurries;          /* no more answers are waited for */
    struct bel_mono quiet; /* when the last hand has finished, if the crew is stopping */
    unsigned connecting;   /* how many threads are making a connection */
    int claim_fd, tell_fd; /* of the claimer and the clerk, to wake them with; or -1 */
    unsigned hands_started;
    struct bel_slot slots[];
};

/* The threads. */
void *bel__crew_claim(void *arg); /* the claimer; both are given the crew */
void *bel__crew_tell(void *arg);  /* the clerk */

/* Connects, after a pause if the last tries have failed: `failures` is how many, to be set to 0 by
 * the caller after something has worked. There is no pause if the crew is stopping. Returns 0, sets
 * `*out` and lets others wake it by its socket in `*fd`, which is one of the crew's; or returns an
 * error, which has been told of. */
BEL_CHECKED int bel__crew_connect(struct bel_crew *crew, unsigned *failures, int *fd,
                                  struct bel_client **out);
void bel__crew_disconnect(struct bel_crew *crew, int *fd, struct bel_client *client);

/* Tells of trouble, as printf. */
void bel__crew_trouble(struct bel_crew *crew, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Waits for a change, or until `until`. The mutex is held. */
void bel__crew_wait(struct bel_crew *crew, pthread_cond_t *changed, struct bel_mono until);

/* The time, and a time after it. */
struct bel_mono bel__crew_now(const struct bel_crew *crew);
struct bel_mono bel__crew_after(const struct bel_crew *crew, uint64_t ms);

/* Sets the times of a lease that began then. */
void bel__slot_leased(struct bel_slot *slot, struct bel_mono begin);

enum {
    BEL_CREW_CLAIM_ARGS = 9, /* besides the topics */
};

/* Copies a delivery into an idle slot. Returns 0, BEL_EINVAL if it is none, or BEL_ENOMEM. */
BEL_CHECKED int bel__slot_fill(struct bel_slot *slot, const struct bel_value *delivery);
void bel__slot_empty(struct bel_slot *slot);

/* Empties a slot and makes it idle. The mutex is held. */
void bel__slot_clear(struct bel_slot *slot);

#endif
