/* SPDX-License-Identifier: MIT */

/*
 * Requests that have not arrived completely: their memory together has a limit, one can always go
 * on, and those that stand still or trickle are dropped. Clients have a simulated socket, bytes are
 * counted, and the clock is moved by hand.
 */
#include "../check.h"
#include "../random.h"
#include "session/session.h"
#include "talk.h"

#include <string.h>

enum {
    CLIENTS_MAX = 60,
    READ_BYTES = 64 << 10,
    PAYLOAD_MAX = 1 << 20,
    TOTAL = 24 << 20,
    MEDIUM = 600000, /* a payload of a request that does not wait for large ones */
};

struct client {
    struct bel_session *session;
    char head[64];
    size_t head_bytes, payload_bytes; /* of a SCHEDULE */
    size_t sent, received;            /* bytes of it that are in the socket, that were read */
    bool is_reading, is_ready;
    bool is_answered, is_refused;
    char answer[128];
};

static struct talk talk;
static struct bel_input_total total;
static struct client clients[CLIENTS_MAX];
static unsigned clients_count;
static size_t most; /* of total.bytes */

/* --- clients --- */

static void on_ready(void *context)
{
    struct client *client = context;
    client->is_ready = true;
}

static bool on_has_input(void *context)
{
    const struct client *client = context;
    return client->sent > client->received;
}

static size_t length_of(const struct client *client)
{
    return client->head_bytes + client->payload_bytes + 2;
}

static struct client *join(size_t payload_bytes)
{
    struct client *client = &clients[clients_count++];
    CHECK(clients_count <= CLIENTS_MAX && payload_bytes <= PAYLOAD_MAX);
    *client = (struct client){.payload_bytes = payload_bytes, .is_reading = true};
    struct bel_session_owner owner = {.backend = bel_engine_backend(talk.engine),
                                      .ready = on_ready,
                                      .context = client,
                                      .has_input = on_has_input};
    CHECK(bel__session_create(&talk.service, &owner, &client->session) == 0);
    int bytes = snprintf(client->head, sizeof client->head,
                         "*3\r\n$8\r\nSCHEDULE\r\n$1\r\nt\r\n$%zu\r\n", payload_bytes);
    CHECK(bytes > 0);
    client->head_bytes = (size_t)bytes;
    return client;
}

/* The client sends up to `bytes` of its request, but for the last `kept`. */
static void send_some(struct client *client, size_t bytes, size_t kept)
{
    size_t end = length_of(client) - kept;
    if (client->sent >= end) return;
    size_t left = end - client->sent;
    client->sent += bytes < left ? bytes : left;
}

/* Copies the bytes of a request from `from` on. */
static void copy(const struct client *client, size_t from, size_t bytes, char *out)
{
    for (size_t i = 0; i < bytes; i++) {
        size_t at = from + i;
        size_t end = client->head_bytes + client->payload_bytes;
        out[i] = 'x';
        if (at < client->head_bytes) out[i] = client->head[at];
        if (at >= end) out[i] = "\r\n"[at - end];
    }
}

/* --- the loop of a server, without sockets --- */

static void read_some(struct client *client)
{
    static char bytes[READ_BYTES];
    size_t room = bel__session_room(client->session);
    size_t count = client->sent - client->received;
    if (count > room) count = room;
    if (count > READ_BYTES) count = READ_BYTES;
    if (!client->is_reading || count == 0) return;
    copy(client, client->received, count, bytes);
    client->received += count;
    CHECK(bel__session_receive(client->session, bytes, count) == 0);
    if (total.bytes > most) most = total.bytes;
}

static void write_out(struct client *client)
{
    struct bel_buffer *out = bel__session_output(client->session);
    size_t bytes = out->count < sizeof client->answer ? out->count : sizeof client->answer - 1;
    if (bytes > 0) {
        memcpy(client->answer, bel__buffer_data(out), bytes);
        client->answer[bytes] = 0;
        client->is_refused = client->answer[0] == '-';
        client->is_answered = true;
        bel__buffer_consume(out, out->count);
    }
    bel__session_trim(client->session);
    client->is_reading = bel__session_room(client->session) > 0;
    if (!client->is_reading) bel__session_block(client->session);
}

static void run_round(void)
{
    for (unsigned i = 0; i < clients_count; i++) {
        struct client *client = &clients[i];
        client->is_ready = false;
        if (client->session == NULL) continue;
        read_some(client);
        while (bel__session_step(client->session, 16)) {}
    }
    talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
    for (unsigned i = 0; i < clients_count; i++) {
        if (clients[i].session != NULL) write_out(&clients[i]);
    }
    bel__input_total_admit(&total);
    for (unsigned i = 0; i < clients_count; i++) {
        if (clients[i].session != NULL && clients[i].is_ready) write_out(&clients[i]);
    }
}

/* Runs until no client can send a byte more. */
static void settle(void)
{
    size_t before = SIZE_MAX, now = 0;
    for (int rounds = 0; before != now || bel__input_total_can_go_on(&total); rounds++) {
        CHECK(rounds < 100000);
        before = now;
        now = 0;
        run_round();
        for (unsigned i = 0; i < clients_count; i++) {
            now += clients[i].received + clients[i].is_answered;
        }
    }
}

/* Moves the clock by seconds, and ticks. Returns how many requests were dropped. */
static unsigned pass(unsigned seconds)
{
    unsigned dropped = 0;
    for (unsigned i = 0; i < seconds; i++) {
        talk.now.real.ns += UINT64_C(1000000000);
        dropped += bel__input_total_tick(&total, talk.now.real);
        settle();
    }
    return dropped;
}

static void open_all(void)
{
    clients_count = 0;
    most = 0;
    talk_open(&talk);
    talk.service.payload_bytes_max = PAYLOAD_MAX;
    talk.service.input_total = &total;
    bel__input_total_init(&total, TOTAL, bel__session_request_memory(&talk.service));
}

static void close_all(void)
{
    for (unsigned i = 0; i < clients_count; i++) {
        bel__session_destroy(clients[i].session);
    }
    talk_close(&talk);
    CHECK_EQ(total.bytes, 0);
    CHECK_EQ(total.running_bytes, 0);
    CHECK(!bel__input_total_is_watched(&total));
}

static bool says(const struct client *client, const char *text)
{
    return strstr(client->answer, text) != NULL;
}

/* --- cases --- */

static void half_sent_requests_share_a_limit(void)
{
    open_all();
    for (int i = 0; i < 40; i++) {
        send_some(join(PAYLOAD_MAX), SIZE_MAX, 1000); /* and stop */
    }
    settle();
    CHECK_NOTE("%zu bytes at most", most);
    CHECK(total.bytes > TOTAL / 2 && most <= TOTAL + READ_BYTES / 4 * 5);

    struct client *small = join(100), *medium = join(MEDIUM), *honest = join(PAYLOAD_MAX);
    send_some(small, SIZE_MAX, 0);
    send_some(medium, SIZE_MAX, 0);
    send_some(honest, SIZE_MAX, 0);
    settle();
    CHECK(small->is_answered && !small->is_refused);   /* small ones never wait */
    CHECK(medium->is_answered && !medium->is_refused); /* nor do these for large ones */
    CHECK(!honest->is_answered);
    CHECK_EQ(pass(BEL_INPUT_STILL_TICKS), 0);
    unsigned dropped = 0, seconds = BEL_INPUT_STILL_TICKS, groups = 0;
    for (; seconds < 300 && !honest->is_answered; seconds++) {
        unsigned now = pass(1);
        dropped += now;
        groups += now > 0;
    }
    CHECK_NOTE("%u s, %u dropped in %u groups, %zu bytes at most", seconds, dropped, groups, most);
    CHECK(honest->is_answered && !honest->is_refused);
    CHECK(seconds <= groups * (BEL_INPUT_STILL_TICKS + 1));
    CHECK(dropped >= groups * 6); /* together, as many as there is room for */
    CHECK(dropped > 0 && most <= TOTAL + READ_BYTES / 4 * 5);
    dropped += pass(40);
    CHECK_EQ(dropped, 40);
    for (int i = 0; i < 40; i++) {
        CHECK(clients[i].is_refused && bel__session_is_closing(clients[i].session));
        CHECK(says(&clients[i], "the request is incomplete, and "));
    }
    CHECK_EQ(total.bytes, 0);
    close_all();
}

static void a_request_that_stands_still_is_dropped_after_30_s(void)
{
    open_all();
    struct client *still = join(PAYLOAD_MAX), *slow = join(PAYLOAD_MAX), *idle = join(100);
    send_some(still, SIZE_MAX, 1000);
    send_some(slow, 100000, 0);
    send_some(idle, SIZE_MAX, 10); /* a small one is not counted */
    settle();
    CHECK_EQ(pass(29), 0);
    send_some(slow, BEL_INPUT_WINDOW_BYTES, 0);
    settle();
    CHECK_EQ(pass(1), 1);
    CHECK(still->is_refused &&
          says(still, "-ERR the request is incomplete, and less than 64 KiB of "
                      "it have arrived in 30 s"));
    CHECK(!slow->is_answered && !idle->is_answered);
    close_all();
}

/* 64 KiB in each window are enough, the last bytes may be fewer; a byte now and then is not. */
static void a_request_that_trickles_is_dropped(void)
{
    open_all();
    struct client *slow = join((size_t)3 * BEL_INPUT_WINDOW_BYTES), *drops = join(PAYLOAD_MAX);
    send_some(slow, (size_t)BEL_INPUT_SMALL_BYTES * 2, 0);
    send_some(drops, SIZE_MAX, 1000);
    settle();
    unsigned dropped = 0;
    for (int i = 0; i < 40 && dropped == 0; i++) {
        if (i % 29 == 28) send_some(slow, BEL_INPUT_WINDOW_BYTES, 0);
        send_some(drops, 1, 0);
        settle();
        dropped = pass(1);
        CHECK_EQ(dropped, i == 29);
    }
    CHECK(drops->is_refused && !slow->is_answered);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pass(25), 0);
        send_some(slow, BEL_INPUT_WINDOW_BYTES, 0);
        settle();
    }
    CHECK(slow->is_answered && !slow->is_refused);
    close_all();
}

/* Clients keep half of the limit and send a byte each second. A request of 100 KB goes on beside
 * them at once, a large one when they are dropped: all together, after one window. */
static void trickling_clients_block_nobody(void)
{
    open_all();
    total.request_bytes_max = (size_t)PAYLOAD_MAX / 2 * 3; /* of RESP alone */
    for (int i = 0; i < 16; i++) {
        send_some(join(PAYLOAD_MAX), SIZE_MAX, 1000);
    }
    settle();
    CHECK(total.bytes > TOTAL / 2);
    struct client *honest = join(100000), *large = join(PAYLOAD_MAX);
    send_some(honest, SIZE_MAX, 0);
    send_some(large, SIZE_MAX, 0);
    settle();
    CHECK(honest->is_answered && !honest->is_refused && !large->is_answered);
    unsigned dropped = 0;
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 16; k++) {
            send_some(&clients[k], 1, 0);
        }
        settle();
        unsigned now = pass(1);
        CHECK_NOTE("second %d: %u dropped", i, now);
        CHECK(i >= 4 || now == 0);
        CHECK(i != 4 || now > 1);
        dropped += now;
        CHECK(i < 4 || large->is_answered);
    }
    CHECK(!large->is_refused && dropped > 1);
    CHECK(most <= TOTAL + READ_BYTES / 4 * 5);
    dropped += pass(40);
    CHECK_EQ(dropped, 16);
    close_all();
}

/* Clients that stand still and have nothing in their sockets are dropped in the same tick. */
static void all_that_stand_still_are_dropped_at_once(void)
{
    open_all();
    for (int i = 0; i < 50; i++) {
        send_some(join(300000), 250000, 0);
    }
    settle();
    CHECK(total.bytes > TOTAL / 2);
    CHECK_EQ(pass(4), 0);
    CHECK_EQ(pass(1), 50);
    CHECK_EQ(total.bytes, 0);
    close_all();
}

/* In a crowd a request ends after a minute, also if each window gets its bytes. */
static void a_slow_request_ends_if_others_wait(void)
{
    open_all();
    struct client *slow = join(PAYLOAD_MAX);
    send_some(slow, 20000, 0);
    settle();
    unsigned dropped = 0, seconds = 0;
    for (; !slow->is_answered && seconds < 100; seconds++) {
        if (seconds % 4 == 0) send_some(slow, BEL_INPUT_WINDOW_BYTES, PAYLOAD_MAX / 50);
        if (seconds % 2 == 0) {
            for (unsigned i = 1; i < clients_count; i++) { /* others that never end */
                bel__session_destroy(clients[i].session);
            }
            clients_count = 1;
            for (int i = 0; i < 16; i++) {
                send_some(join(PAYLOAD_MAX), SIZE_MAX, 1000);
            }
        }
        send_some(slow, 1, PAYLOAD_MAX / 50); /* something each second */
        settle();
        CHECK(total.bytes > TOTAL / 4);
        dropped += pass(1);
    }
    CHECK_NOTE("%u s, %u dropped: %s", seconds, dropped, slow->answer);
    CHECK(slow->is_refused && dropped == 1 && seconds == BEL_INPUT_CROWDED_TICKS_MAX + 1);
    CHECK(says(slow, "the request is incomplete after 60 s, and others wait for its memory"));
    close_all();
}

static void a_request_that_is_not_read_does_not_stand_still(void)
{
    open_all();
    for (int i = 0; i < 40; i++) {
        send_some(join(PAYLOAD_MAX), SIZE_MAX, 0); /* all are sent completely */
        if (i == 0) clients[0].sent -= 1000;       /* but the first */
    }
    for (int i = 0; i < 40; i++) { /* one read for each, so that all are large */
        read_some(&clients[i]);
    }
    settle();
    CHECK_EQ(pass(40), 1);
    CHECK(clients[0].is_refused);
    for (int i = 1; i < 40; i++) {
        CHECK(clients[i].is_answered && !clients[i].is_refused);
    }
    CHECK(most <= TOTAL + READ_BYTES / 4 * 5);
    close_all();
}

static void memory_is_freed_with_the_request(void)
{
    open_all();
    struct client *client = join(PAYLOAD_MAX);
    send_some(client, SIZE_MAX, 0);
    settle();
    CHECK(client->is_answered && most > PAYLOAD_MAX);
    CHECK_EQ(total.bytes, 0);
    close_all();
}

/* Random clients: the limit holds at each read, and who sends is answered. */
static void whoever_sends_is_answered(uint64_t seed)
{
    uint64_t random = seed;
    CHECK_NOTE("seed %" PRIu64, seed);
    open_all();
    unsigned count = 1 + (unsigned)random_below(&random, CLIENTS_MAX);
    bool stops[CLIENTS_MAX] = {0};
    for (unsigned i = 0; i < count; i++) {
        size_t bytes =
            1 + (size_t)random_below(&random, random_below(&random, 4) == 0 ? PAYLOAD_MAX : 100000);
        if (random_below(&random, 3) == 0) bytes = PAYLOAD_MAX;
        (void)join(bytes);
        stops[i] = random_below(&random, 2) == 0;
    }
    for (int second = 0; second < 300; second++) {
        for (unsigned i = 0; i < count; i++) {
            size_t bytes = 1 + (size_t)random_below(&random, 300000);
            send_some(&clients[i], bytes, stops[i] ? 1 : 0);
        }
        settle();
        (void)pass(1);
        CHECK(most <= TOTAL + READ_BYTES / 4 * 5);
    }
    for (unsigned i = 0; i < count; i++) {
        bool is_large = clients[i].payload_bytes > (size_t)2 * BEL_INPUT_SMALL_BYTES;
        CHECK(stops[i] || (clients[i].is_answered && !clients[i].is_refused));
        CHECK(!stops[i] || !is_large || clients[i].is_refused);
    }
    close_all();
}

int main(void)
{
    RUN(half_sent_requests_share_a_limit);
    RUN(a_request_that_stands_still_is_dropped_after_30_s);
    RUN(a_request_that_trickles_is_dropped);
    RUN(trickling_clients_block_nobody);
    RUN(all_that_stand_still_are_dropped_at_once);
    RUN(a_slow_request_ends_if_others_wait);
    RUN(a_request_that_is_not_read_does_not_stand_still);
    RUN(memory_is_freed_with_the_request);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        whoever_sends_is_answered(seed);
    }
    printf("ok   whoever_sends_is_answered\n");
    return 0;
}
