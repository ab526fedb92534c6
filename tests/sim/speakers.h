/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_SIM_SPEAKERS_H
#define BEL_TESTS_SIM_SPEAKERS_H

/*
 * speakers - clients of a server, each with a session of its own, between which and the engine
 * every request and every answer is looked at:
 *
 *     order --say--> wire --cut anywhere--> session --> tracker --> tap --> engine
 *                                              |                  '--> the model gets the same
 *     heard <--decode-- bytes <--cut anywhere--'
 *
 * What must be true of them: a session submits what its client has said, in that order, once, and
 * nothing behind a command that holds back the others; a client hears an answer only after the
 * engine has given it, the one that the engine gave, in the order of its commands; deliveries in
 * an answer that was not written to the end are taken back, all of them, and no others.
 */

#include "session/call.h"
#include "session/request_tracker.h"
#include "world.h"

enum {
    SPEAKERS_MAX = 6,
};

/* The API keys. */
enum key {
    KEY_NONE, /* not authenticated */
    KEY_ALL,
    KEY_READER,
    KEY_TOPIC, /* limited to the first topic */
    KEYS,
};

/* What a session answers by itself. */
enum own {
    OWN_PING,
    OWN_ID,
    OWN_HELLO,
    OWN_UNKNOWN,
    OWN_INFO,
    OWN_TRANSACTION, /* three commands: MULTI, one that is not done, and EXEC */
    OWN_QUIT,
    OWN_BROKEN, /* is no command: the server hangs up */
    OWN_INSIDE, /* of a transaction */
    OWN_EXEC,
    OWN_AUTH,
    OWNS,
};

/* One command. */
struct said {
    struct order *order; /* NULL: one of the session's own */
    enum own own;
    int version;         /* of the protocol, in which it is answered */
    uint64_t number;     /* what is to come back */
    const char *refusal; /* how an error begins that the session itself gives; NULL: none */
    bool is_submitted;   /* to the engine */
    bool is_short;       /* all that was heard is that there is no memory */
};

struct speaker {
    struct world *world;
    struct bel_service service;
    struct bel_caller caller;
    struct bel_session *session; /* NULL: it has hung up */
    uint64_t number;
    struct bel_buffer wire;  /* said, and not yet received */
    struct bel_buffer heard; /* written, and not yet a whole answer */
    struct said *said;
    size_t said_count, answered; /* all, and how many of them from the first */
    int version;
    enum key key;        /* with which it has authenticated */
    unsigned keys_wrong; /* that it has tried */
    bool is_suspect;     /* it was a stranger: the server may hang up before it says who it is */
    unsigned stalled;    /* for so many turns it does not read */
    bool has_more;       /* the session has more to do */
    bool has_ended;      /* it says no more, and still reads */
    bool is_over;        /* the server is to hang up, for what it has said */
    bool is_deaf;        /* what is written is not read any more */
    bool is_gone;        /* nothing of the session is left */
};

struct speakers {
    struct bel_backend tap; /* first */
    struct world *world;
    struct bel_request_tracker tracker;
    struct bel_metrics metrics;
    struct bel_clock clock;
    struct bel_scope scope;              /* of KEY_TOPIC */
    struct speaker *slots[SPEAKERS_MAX]; /* those that are there, or NULL */
    struct speaker **all;
    size_t all_count;
    bool is_dead;                 /* the engine is gone */
    struct bel_request **orphans; /* that came since, or that nobody has said */
    size_t orphans_count;
};

/* --- speakers.c --- */

struct speakers *speakers_create(struct world *world);
void speakers_destroy(struct speakers *speakers);

/* The engine was opened; or is gone, and all sessions with it. */
void speakers_open(struct speakers *speakers);
void speakers_kill(struct speakers *speakers);

/* Some client asks for it. */
void speakers_say(struct speakers *speakers, struct order *order);
/* Before a turn: bytes come in. After it: bytes go out, and clients hang up. */
void speakers_step(struct speakers *speakers);
void speakers_listen(struct speakers *speakers);
/* The server is stopped in order. It may break down on the way. */
void speakers_drain(struct speakers *speakers);

/* --- keys.c --- */

const char *key_user(enum key key);
const char *key_text(enum key key);
/* As a service has it; the context is a speaker. */
bool key_check(void *context, const struct bel_key_attempt *attempt, struct bel_grant *out);
/* Sets the scope of KEY_TOPIC. False if that fails. */
bool key_scope(struct bel_scope *out);
/* Returns how the error begins with which a command is refused; NULL if it is not. */
const char *key_refusal(enum key key, const struct bel_command *command);

/* --- tap.c --- */

void tap_init(struct speakers *speakers);
/* The engine has answered: the session is told. */
void tap_pass(struct order *order, const struct bel_reply *reply);
/* Everybody who still waits is told that it is over. */
void tap_end(struct speakers *speakers);
/* A client has hung up: does nothing wait for it? */
void tap_check_waits(const struct speaker *speaker);
/* A session is gone: was everything taken back? */
void tap_check_gone(const struct speaker *speaker);
/* Names for the model, and for the book, of deliveries that were taken back. */
void tap_name_for_model(const struct order *order);
void tap_name_for_book(struct world *world);

/* --- listen.c --- */

/* Up to so many bytes of what a session has to say are written, and understood. */
void speaker_listen(struct speaker *speaker, size_t bytes);
/* All was written: is there an answer that is not? */
void speaker_check_all(const struct speaker *speaker);

#endif
