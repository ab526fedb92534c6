/* SPDX-License-Identifier: MIT */

/*
 * A request has a connection of its own while it is under way, because one that waits would hold
 * back the others.
 */
#include "speaker.h"

#include "../check.h"
#include "decode.h"
#include "session/session.h"
#include "spoken.h"

#include <string.h>

enum {
    LINES_MAX = 64,
};

/* A connection, and who asks. */
struct line {
    struct bel_session *session;
    struct bel_request *request; /* NULL: it is free */
};

struct speaker {
    struct bel_backend backend; /* first */
    struct bel_backend *inner;
    struct bel_service service;
    struct bel_now now;
    struct line lines[LINES_MAX];
    struct line *order[LINES_MAX]; /* those that were asked, from old to new */
    size_t order_count;
    unsigned made, gone;
};

static int version = 2;

void speaker_set_version(int wanted)
{
    version = wanted;
}

static struct line *find_free(struct speaker *speaker)
{
    for (size_t i = 0; i < LINES_MAX; i++) {
        struct line *line = &speaker->lines[i];
        if (line->request != NULL) continue;
        if (line->session != NULL) return line;
        struct bel_session_owner owner = {.backend = speaker->inner};
        CHECK(bel__session_create(&speaker->service, &owner, &line->session) == 0);
        speaker->made++;
        if (version == 3) CHECK(bel__session_receive(line->session, "HELLO 3\r\n", 9) == 0);
        while (bel__session_step(line->session, 1)) {}
        struct bel_buffer *out = bel__session_output(line->session);
        bel__buffer_consume(out, out->count);
        return line;
    }
    CHECK(false);
    return NULL;
}

static void submit_spoken(struct bel_backend *backend, struct bel_request *request)
{
    struct speaker *speaker = (struct speaker *)backend;
    struct line *line = find_free(speaker);
    struct bel_buffer words;
    bel__buffer_init(&words, 8 << 20);
    spoken_command(&request->command, &words);
    CHECK(bel__session_receive(line->session, bel__buffer_data(&words), words.count) == 0);
    bel__buffer_finish(&words);
    line->request = request;
    speaker->order[speaker->order_count++] = line;
}

static void leave_order(struct speaker *speaker, size_t index)
{
    speaker->order_count--;
    for (size_t i = index; i < speaker->order_count; i++) {
        speaker->order[i] = speaker->order[i + 1];
    }
}

/* Hangs up. What was not parsed is never done, and a claim is taken back. */
static bool withdraw_spoken(struct bel_backend *backend, struct bel_request *request)
{
    struct speaker *speaker = (struct speaker *)backend;
    for (size_t i = 0; i < speaker->order_count; i++) {
        struct line *line = speaker->order[i];
        if (line->request != request) continue;
        leave_order(speaker, i);
        bel__session_destroy(line->session);
        *line = (struct line){0};
        return true;
    }
    return false;
}

/* Hands over the answer of a line, if it is there. */
static bool answer(struct speaker *speaker, size_t index)
{
    struct line *line = speaker->order[index];
    struct bel_buffer *out = bel__session_output(line->session);
    struct answer heard;
    struct spoken_reply spoken;
    if (out->count == 0) return false;
    CHECK_EQ(answer_decode((struct bel_view){bel__buffer_data(out), out->count}, &heard),
             out->count);
    struct bel_request *request = line->request;
    line->request = NULL;
    leave_order(speaker, index);
    spoken_answer(request->command.verb, &heard, &spoken);
    request->done(request, &spoken.reply);
    spoken_free(&spoken);
    answer_free(&heard);
    bel__buffer_consume(out, out->count);
    return true;
}

static struct bel_next turn_spoken(struct bel_backend *backend, struct bel_now now)
{
    struct speaker *speaker = (struct speaker *)backend;
    speaker->now = now;
    for (size_t i = 0; i < speaker->order_count; i++) {
        while (bel__session_step(speaker->order[i]->session, 1)) {}
    }
    struct bel_next next = bel_backend_turn(speaker->inner, now);
    for (size_t i = 0; i < speaker->order_count;) {
        if (!answer(speaker, i)) i++;
    }
    return next;
}

static void be_gone(void *context)
{
    struct speaker *speaker = context;
    speaker->gone++;
}

struct speaker *speaker_open(struct bel_backend *inner, struct bel_zones *zones, struct bel_now now)
{
    struct speaker *speaker = calloc(1, sizeof *speaker);
    CHECK(speaker != NULL);
    speaker->backend = (struct bel_backend){
        .submit = submit_spoken, .withdraw = withdraw_spoken, .turn = turn_spoken};
    speaker->inner = inner;
    speaker->now = now;
    speaker->service = (struct bel_service){.zones = zones,
                                            .now = &speaker->now,
                                            .output_bytes_max = 64 << 20,
                                            .gone = be_gone,
                                            .context = speaker};
    return speaker;
}

struct bel_backend *speaker_backend(struct speaker *speaker)
{
    return &speaker->backend;
}

void speaker_close(struct speaker *speaker, struct bel_now now)
{
    for (size_t i = 0; i < LINES_MAX; i++) {
        bel__session_destroy(speaker->lines[i].session);
    }
    while (speaker->gone < speaker->made) {
        (void)bel_backend_turn(speaker->inner, now);
    }
    free(speaker);
}
