/* SPDX-License-Identifier: MIT */

/*
 * What a turn makes of long replies, if many clients ask for them at once: a bounded number of
 * bytes, so that a client with a short command waits for a few milliseconds.
 */
#include "../check.h"
#include "session/session.h"
#include "talk.h"

#include <string.h>

static struct talk talk;

/* Says something, and does not listen. */
static void say(unsigned number, const char *text)
{
    talk_receive(&talk, number, text, strlen(text));
}

static void say_often(unsigned number, const char *text, int count)
{
    for (int i = 0; i < count; i++) {
        say(number, text);
    }
}

/* Returns the bytes of replies that the sessions got, and reads them. */
static size_t read_all(unsigned count)
{
    size_t bytes = 0;
    for (unsigned number = 1; number <= count; number++) {
        struct bel_session *session = talk_session(&talk, number);
        struct bel_buffer *out = bel__session_output(session);
        bytes += out->count;
        bel__buffer_consume(out, out->count);
        bel__session_trim(session);
    }
    return bytes;
}

/* Steps the sessions and takes a turn. Returns the bytes of their replies. */
static size_t take_turn(unsigned count)
{
    for (unsigned number = 1; number <= count; number++) {
        while (bel__session_step(talk_session(&talk, number), 16)) {}
    }
    talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
    bel__output_total_end_turn(talk.service.output_total);
    return read_all(count);
}

/* Takes turns until all is answered. Returns the most bytes of replies of a turn; the first may
 * make more, because nothing is known of the replies before it. */
static size_t most_of_a_turn(unsigned count, size_t *sum)
{
    size_t most = 0;
    for (unsigned i = 0;; i++) {
        size_t bytes = take_turn(count);
        if (bytes == 0) return most;
        if (i > 0 && bytes > most) most = bytes;
        *sum += bytes;
    }
}

/* However many ask for long replies, a turn makes a bounded number of bytes. */
static void a_turn_makes_few_long_replies(void)
{
    enum {
        PAYLOAD = 500000,
        GETS = 20,
    };
    static char text[PAYLOAD + 100];
    struct bel_output_total total = {.bytes_max = 1U << 30};
    talk_open(&talk);
    talk.service.payload_bytes_max = PAYLOAD;
    talk.service.output_total = &total;
    int bytes = snprintf(text, sizeof text, "*5\r\n$8\r\nSCHEDULE\r\n$1\r\nt\r\n$%d\r\n", PAYLOAD);
    CHECK(bytes > 0);
    memset(text + bytes, 'x', PAYLOAD);
    (void)snprintf(text + bytes + PAYLOAD, sizeof text - PAYLOAD - (size_t)bytes,
                   "\r\n$2\r\nID\r\n$1\r\na\r\n");
    say(1, text);
    say(1, "SCHEDULE t x ID b\r\nGET t a\r\n"); /* from now on, long replies are expected */
    size_t sum = 0;
    (void)most_of_a_turn(8, &sum);
    for (unsigned number = 1; number <= 8; number++) {
        say_often(number, "GET t a\r\n", GETS);
        say(number, "LIST t\r\nPING\r\n");
    }
    sum = 0;
    size_t most = most_of_a_turn(8, &sum);
    CHECK_NOTE("%zu bytes of a turn, of %zu", most, sum);
    CHECK(sum > (size_t)PAYLOAD * (GETS + 1) * 8);
    CHECK(most <= BEL_TURN_BYTES_MAX + PAYLOAD + 1000);
    for (unsigned number = 1; number <= 8; number++) { /* short ones share turns again */
        say_often(number, "GET t b\r\n", 300);
    }
    (void)most_of_a_turn(8, &sum);
    CHECK(total.turn_bytes == 0 && total.reply_most[0] < 1000 && total.reply_most[1] < 1000000);
    talk_close(&talk);
}

/* Submits a job of `count` tasks, each after the one before. */
static void say_job(unsigned number, const char *id, int count)
{
    static char json[1 << 16], line[(1 << 16) + 100];
    int used = snprintf(json, sizeof json, "{\"id\":\"%s\",\"tasks\":[", id);
    for (int i = 0; i < count; i++) {
        used += snprintf(json + used, sizeof json - (size_t)used,
                         i == 0 ? "{\"id\":\"0\",\"topic\":\"t\"}"
                                : ",{\"id\":\"%d\",\"topic\":\"t\",\"after\":[\"%d\"]}",
                         i, i - 1);
    }
    used += snprintf(json + used, sizeof json - (size_t)used, "]}");
    (void)snprintf(line, sizeof line, "*3\r\n$3\r\nJOB\r\n$6\r\nSUBMIT\r\n$%d\r\n%s\r\n", used,
                   json);
    say(number, line);
}

/* A turn describes few large jobs, and a short command of another client does not wait for all. */
static void a_turn_describes_few_jobs(void)
{
    enum {
        CLIENTS = TALK_SESSIONS - 1,
        TASKS = 500
    };
    struct bel_output_total total = {.bytes_max = 1U << 30};
    size_t sum = 0;
    talk_open(&talk);
    talk.service.output_total = &total;
    say_job(1, "j", TASKS);
    say(1, "JOB GET j\r\n");
    for (int i = 0; i < 100 && sum < (size_t)TASKS * 50; i++) { /* a submit takes turns */
        (void)most_of_a_turn(1, &sum);
    }
    CHECK(sum >= (size_t)TASKS * 50);
    size_t reply = sum;
    for (unsigned number = 1; number <= CLIENTS + 1; number++) {
        say(number, number <= CLIENTS ? "JOB GET j\r\n" : "SCHEDULE t x ID short\r\n");
        while (bel__session_step(talk_session(&talk, number), 16)) {}
    }
    (void)bel_backend_turn(bel_engine_backend(talk.engine), talk.now); /* their rows fill a turn */
    talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
    bel__output_total_end_turn(&total);
    CHECK(bel__session_output(talk_session(&talk, CLIENTS + 1))->count > 0);
    sum = read_all(CLIENTS + 1);
    CHECK(sum > reply / 2 && sum <= 5 * reply);
    size_t most = most_of_a_turn(CLIENTS, &sum);
    CHECK(most <= 5 * reply && sum > (CLIENTS - 1) * (reply - 1000));
    talk_close(&talk);
}

/* Replies that the session makes itself count too, and share turns. */
static void a_turn_makes_few_replies_about_commands(void)
{
    enum {
        CLIENTS = TALK_SESSIONS,
        TIMES = 100,
    };
    struct bel_output_total total = {.bytes_max = 1U << 30};
    size_t reply = 0, sum = 0;
    talk_open(&talk);
    talk.service.output_total = &total;
    say(1, "COMMAND DOCS\r\n");
    (void)most_of_a_turn(1, &reply);
    CHECK(reply > 10000);
    for (unsigned number = 1; number <= CLIENTS; number++) {
        say_often(number, "COMMAND DOCS\r\n", TIMES);
    }
    size_t first = take_turn(CLIENTS), most = most_of_a_turn(CLIENTS, &sum);
    CHECK_NOTE("%zu bytes of the first turn, %zu of a later one", first, most);
    CHECK_EQ(first + sum, reply * CLIENTS * TIMES);
    CHECK(first + sum > 2 * (size_t)BEL_TURN_BYTES_MAX);
    CHECK(first <= BEL_TURN_BYTES_MAX / 2 && most <= BEL_TURN_BYTES_MAX / 2);
    talk_close(&talk);
}

int main(void)
{
    RUN(a_turn_makes_few_long_replies);
    RUN(a_turn_describes_few_jobs);
    RUN(a_turn_makes_few_replies_about_commands);
    return 0;
}
