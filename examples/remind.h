/* SPDX-License-Identifier: MIT */
#ifndef BEL_EXAMPLES_REMIND_H
#define BEL_EXAMPLES_REMIND_H

/*
 * remind - what the commands (remind.c) and the loop (remind_run.c) share.
 */

#include <belfry/clock.h>
#include <belfry/engine.h>
#include <belfry/zone.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

enum {
    EXIT_FAILED = 1, /* it cannot be done */
    EXIT_USAGE = 2,  /* it was said wrong */
    CHILDREN_MAX = 16,
};

#define TOPIC "reminders"

/* A command that was started for a reminder. */
struct child {
    pid_t pid;            /* 0: none */
    struct bel_boot beat; /* when the lease was last prolonged */
    char token[BEL_TOKEN_BYTES_MAX];
    size_t token_bytes;
};

struct remind {
    const char *folder, *command; /* NULL: print */
    bool once;
    struct bel_engine *engine;
    struct bel_backend *backend;
    struct bel_zones *zones;
    const struct bel_zone *zone;
    struct child children[CHILDREN_MAX];
    int signal_fd, timer_fd, listen_fd;
};

/* Words of a command line, and where its answer goes. Commands return what to exit with. */
struct order {
    char **words; /* end in NULL */
    FILE *out;
};

/* What a user has asked for, done by whoever has the folder. */
int do_order(struct remind *remind, const struct order *order);

/* Whether somebody runs in the folder. */
bool has_runner(const struct remind *remind);

/* Lets the one who has the folder do it. -1 if there is nobody. */
int ask_runner(const struct remind *remind, const struct order *order);

/* Says what is due, until told to end. */
int run(struct remind *remind);

static inline struct bel_view view_of(const char *text)
{
    return (struct bel_view){.data = text, .bytes = strlen(text)};
}

/* Asks the engine. */
static inline int call(struct remind *remind, struct bel_request *request)
{
    return bel_backend_call(remind->backend, bel_clock_system(), request);
}

#endif
