/* SPDX-License-Identifier: MIT */

/*
 * Memory that runs out at every place: once, and from then on. Whatever is said is answered, with
 * what it is or with FULL, or the connection is closed; what was acknowledged is there; and when
 * there is memory again, others can go on. The sanitizer sees to it that nothing is lost.
 */
#include "../check.h"
#include "decode.h"
#include "talk.h"

#include <string.h>

static uint64_t memory_left = UINT64_MAX; /* allocations that still succeed */
static bool is_once;                      /* only one fails */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static bool runs_out(void)
{
    if (memory_left == UINT64_MAX) return false;
    if (memory_left > 0) {
        memory_left--;
        return false;
    }
    if (is_once) memory_left = UINT64_MAX;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return runs_out() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return runs_out() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return runs_out() ? NULL : __real_realloc(old, bytes);
}

enum {
    PLACES_MAX = 2000,
    REPLIES_MAX = 64,
    PIPELINE = 64,
};

static struct talk talk;

/* Two connections, so that one holds and the other is answered; all kinds of replies. */
static const char *const said[] = {
    "SCHEDULE mail hello ID a HEADER k v\r\nSCHEDULE mail x ID b IN 1h\r\nPING\r\nCLAIM mail\r\n"
    "GET mail b\r\nLIST mail\r\nTOPIC mail\r\nHELLO 3\r\nCOMMAND DOCS\r\nINFO\r\nTOPICS\r\n"
    "*14\r\n$6\r\nCANCEL\r\n$1\r\nt\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n"
    "$1\r\n6\r\n$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"
    "CONFIGURE mail lease 5s\r\nEXPLAIN mail b\r\n",
    "CLAIM mail WAIT 5s\r\nPURGE mail\r\nECHO behind\r\n",
};
static const unsigned commands[] = {14, 3};

static void take_some_turns(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < 2; j++) {
            while (bel__session_step(talk.sessions[j], 4)) {}
        }
        talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
    }
}

/* How many replies there are; `*out_has_b` is set if b was scheduled. */
static unsigned count_replies(unsigned number, bool *out_has_b)
{
    struct bel_buffer *out = bel__session_output(talk.sessions[number]);
    unsigned count = 0;
    while (out->count > 0) {
        struct answer answer;
        size_t used = answer_decode((struct bel_view){bel__buffer_data(out), out->count}, &answer);
        CHECK(used > 0);
        if (answer.kind == ANSWER_ERROR) {
            CHECK(memcmp(answer.text.data, "FULL ", 5) == 0 ||
                  memcmp(answer.text.data, "NOTFOUND ", 9) == 0 ||
                  memcmp(answer.text.data, "ERR Protocol error: out of memory", 33) == 0);
        }
        if (number == 0 && count == 1) *out_has_b = answer.kind == ANSWER_BULK;
        answer_free(&answer);
        bel__buffer_consume(out, used);
        count++;
    }
    return count;
}

/* Says everything with so much memory. True if it was not enough. */
static bool try_with(uint64_t allocations)
{
    talk_open(&talk);
    (void)talk_session(&talk, 1);
    (void)talk_session(&talk, 2);
    memory_left = allocations;
    for (unsigned i = 0; i < 2; i++) {
        int err = bel__session_receive(talk.sessions[i], said[i], strlen(said[i]));
        CHECK(err == 0 || bel__session_is_closing(talk.sessions[i]));
    }
    take_some_turns(4);
    bool was_short = memory_left == UINT64_MAX || memory_left == 0;
    memory_left = UINT64_MAX;
    take_some_turns(10);
    talk_wait(&talk, 6000);
    bool has_b = false;
    for (unsigned i = 0; i < 2; i++) {
        unsigned replies = count_replies(i, &has_b);
        if (!bel__session_is_closing(talk.sessions[i])) CHECK_EQ(replies, commands[i]);
        CHECK(replies <= commands[i]);
    }
    if (has_b) talk_go_on(&talk, "3> GET mail b\n[\"id\", \"b\", ...]\n");
    talk_go_on(&talk, "3> PING\nPONG\n");
    talk_close(&talk);
    return was_short;
}

static void run_out(bool once)
{
    uint64_t places = 0;
    is_once = once;
    for (bool was_short = true; was_short; places++) {
        CHECK(places < PLACES_MAX);
        CHECK_NOTE("allocation %" PRIu64 " fails", places + 1);
        was_short = try_with(places);
    }
    (void)printf("     %" PRIu64 " places\n", places - 1);
    CHECK(places > 30);
}

static void one_allocation_fails(void)
{
    run_out(true);
}

static void all_allocations_fail_from_one_on(void)
{
    run_out(false);
}

static void a_session_cannot_be_made_without(void)
{
    struct bel_session *session = NULL;
    talk_open(&talk);
    struct bel_session_owner owner = {.backend = bel_engine_backend(talk.engine)};
    is_once = false;
    for (uint64_t i = 0; i < 2; i++) {
        memory_left = i;
        CHECK(bel__session_create(&talk.service, &owner, &session) == BEL_ENOMEM);
        CHECK(session == NULL);
    }
    memory_left = UINT64_MAX;
    talk_close(&talk);
}

static void say_pipeline(struct bel_session *session)
{
    struct bel_buffer *out = bel__session_output(session);
    for (unsigned i = 0; i < PIPELINE; i++) {
        CHECK(bel__session_receive(session, "CANCEL mail none\r\n", 18) == 0);
    }
    while (bel__session_step(session, PIPELINE)) {}
    talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
    for (unsigned i = 0; i < PIPELINE; i++) {
        CHECK(out->count >= 4 && memcmp(bel__buffer_data(out), ":0\r\n", 4) == 0);
        bel__buffer_consume(out, 4);
    }
    CHECK_EQ(out->count, 0);
}

/* Calls are kept, and each has what it needs. */
static void what_was_said_once_needs_no_memory_again(void)
{
    talk_open(&talk);
    struct bel_session *session = talk_session(&talk, 1);
    say_pipeline(session);
    is_once = false;
    memory_left = 0;
    say_pipeline(session);
    memory_left = UINT64_MAX;
    talk_close(&talk);
}

int main(void)
{
    RUN(one_allocation_fails);
    RUN(all_allocations_fail_from_one_on);
    RUN(a_session_cannot_be_made_without);
    RUN(what_was_said_once_needs_no_memory_again);
    return 0;
}
