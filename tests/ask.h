/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_ASK_H
#define BEL_TESTS_ASK_H

/*
 * ask - a request to a backend, and the part of its reply that tests look at.
 *
 *     struct reply_seen answer = ask_backend(backend, now, &next, command);
 *     CHECK(answer.err == 0);
 *
 * tests/conformance/heard.h copies whole replies.
 */

#include "belfry/backend.h"
#include "check.h"

#include <string.h>

enum {
    SEEN_STEPS_MAX = 400,
    ASK_TURNS_MAX = 1000,
};

struct reply_seen {
    uint64_t count;                 /* of timers changed, or all that an agenda counts */
    size_t deliveries;              /* of a claim; `id` and `token` are those of the first */
    uint64_t counts[BEL_STATES];    /* of a topic */
    uint64_t steps[SEEN_STEPS_MAX]; /* of an agenda */
    size_t steps_count;
    int err;
    bool is_done;
    char id[BEL_ID_BYTES + 1];
    char token[BEL_TOKEN_BYTES_MAX + 1];
    char lines[4096]; /* of EXPLAIN, one after another */
    char why[BEL_REPLY_WHY_BYTES];
};

static inline struct bel_view view(const char *text)
{
    return (struct bel_view){.data = text, .bytes = strlen(text)};
}

static inline void reply_seen_copy(struct bel_view from, char *to, size_t room)
{
    CHECK(from.bytes < room);
    memcpy(to, from.data, from.bytes);
    to[from.bytes] = 0;
}

static inline void reply_seen_note_agenda(struct reply_seen *answer, const struct bel_reply *reply)
{
    answer->steps_count = reply->steps.count;
    CHECK(answer->steps_count <= SEEN_STEPS_MAX);
    for (size_t i = 0; i < answer->steps_count; i++) {
        answer->steps[i] = reply->steps.items[i].count;
        answer->count += answer->steps[i];
    }
}

/* The `done` of a request whose `user` is a struct reply_seen. */
static inline void reply_seen_note(struct bel_request *request, const struct bel_reply *reply)
{
    struct reply_seen *answer = request->user;
    answer->is_done = true;
    answer->err = reply->err;
    memcpy(answer->why, reply->why, sizeof answer->why);
    if (reply->err) return;
    switch (request->command.verb) {
    case BEL_VERB_CLAIM:
        answer->deliveries = reply->deliveries.count;
        if (answer->deliveries == 0) return;
        reply_seen_copy(reply->deliveries.items[0].id, answer->id, sizeof answer->id);
        reply_seen_copy(reply->deliveries.items[0].token, answer->token, sizeof answer->token);
        break;
    case BEL_VERB_TOPIC:
        memcpy(answer->counts, reply->topic->counts, sizeof answer->counts);
        break;
    case BEL_VERB_EXPLAIN:
        for (size_t i = 0, at = 0; i < reply->names.count; i++) {
            reply_seen_copy(reply->names.items[i], answer->lines + at, sizeof answer->lines - at);
            at += reply->names.items[i].bytes;
        }
        break;
    case BEL_VERB_AGENDA:
        reply_seen_note_agenda(answer, reply);
        break;
    case BEL_VERB_PURGE:
    case BEL_VERB_CANCEL:
    case BEL_VERB_ACK:
    case BEL_VERB_REVIVE:
    case BEL_VERB_RESCHEDULE:
        answer->count = reply->count;
        break;
    default:
        break;
    }
}

/* Submits a request; both live until it is answered. */
static inline void ask_submit(struct bel_backend *backend, struct bel_request *request,
                              struct reply_seen *answer)
{
    *answer = (struct reply_seen){0};
    request->done = reply_seen_note;
    request->user = answer;
    bel_backend_submit(backend, request);
}

/* Asks and takes turns, all of them at `now`, until it is answered. */
static inline struct reply_seen ask_backend(struct bel_backend *backend, struct bel_now now,
                                            struct bel_next *out_next, struct bel_command command)
{
    struct bel_request request = {.command = command};
    struct reply_seen answer;
    ask_submit(backend, &request, &answer);
    for (int i = 0; i < ASK_TURNS_MAX && !answer.is_done; i++) {
        *out_next = bel_backend_turn(backend, now);
    }
    CHECK(answer.is_done);
    return answer;
}

#endif
