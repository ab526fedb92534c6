/* SPDX-License-Identifier: MIT */

/*
 * What a conversation cannot show: frames split at every byte, long pipelines, clients that do not
 * read, connections that are cut, and exact bytes.
 */
#include "../check.h"
#include "session/session.h"
#include "talk.h"

#include <string.h>

enum {
    PIPELINE = 100 * 1000,
    REQUEST_BYTES = 256,
};

static struct talk talk;

static void expect_bytes(unsigned number, struct bel_view want)
{
    struct bel_buffer *out = bel__session_output(talk_session(&talk, number));
    CHECK_NOTE("heard %.*s", (int)(out->count < 200 ? out->count : 200),
               (const char *)bel__buffer_data(out));
    CHECK_EQ(out->count, want.bytes);
    CHECK(memcmp(bel__buffer_data(out), want.data, want.bytes) == 0);
    bel__buffer_consume(out, out->count);
}

/* Says something, and does not listen. */
static void say(unsigned number, const char *text)
{
    talk_receive(&talk, number, text, strlen(text));
}

static void frames_can_be_split_at_every_byte(void)
{
    static const char said[] =
        "*6\r\n$8\r\nSCHEDULE\r\n$4\r\nmail\r\n$7\r\na\r\n*1\r\n\r\n$2\r\nID\r\n$1\r\na\r\n"
        "$0\r\n\r\n*3\r\n$3\r\nGET\r\n$4\r\nmail\r\n$1\r\nb\r\nPING\r\n*0\r\n*1\r\n$4\r\nPING\r\n"
        "*4\r\n$6\r\nCANCEL\r\n$4\r\nmail\r\n$1\r\na\r\n$1\r\nb\r\n";
    static const char heard[] = "-ERR SCHEDULE has no option '': see COMMAND DOCS "
                                "SCHEDULE\r\n*-1\r\n+PONG\r\n+PONG\r\n:0\r\n";
    for (size_t split = 1; split < sizeof said - 1; split++) {
        talk_open(&talk);
        talk_receive(&talk, 1, said, split);
        talk_settle(&talk);
        talk_receive(&talk, 1, said + split, sizeof said - 1 - split);
        talk_settle(&talk);
        expect_bytes(1, BEL_VIEW(heard));
        talk_close(&talk);
    }
}

static void replies_have_these_bytes(void)
{
    talk_open(&talk);
    say(1,
        "SCHEDULE mail \"a\\r\\n+OK\" ID x\r\nCLOCK\r\nGET mail y\r\nCLAIM none\r\nLIST none\r\n");
    talk_settle(&talk);
    expect_bytes(1, BEL_VIEW("$1\r\nx\r\n:1767225600000\r\n*-1\r\n*0\r\n*2\r\n$0\r\n\r\n*0\r\n"));
    say(1, "HELLO 3\r\nGET mail y\r\nGET mail x\r\nPURGE mail STATE ready\r\n");
    talk_settle(&talk);
    expect_bytes(
        1, BEL_VIEW("%7\r\n$6\r\nserver\r\n$6\r\nbelfry\r\n$7\r\nversion\r\n$5\r\n0.1.0\r\n"
                    "$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
                    "$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n_\r\n"
                    "%9\r\n$2\r\nid\r\n$1\r\nx\r\n$5\r\ntopic\r\n$4\r\nmail\r\n$5\r\nstate\r\n"
                    "$5\r\nready\r\n$7\r\npayload\r\n$6\r\na\r\n+OK\r\n$6\r\ndue_ms\r\n"
                    ":1767225600000\r\n$8\r\npriority\r\n:128\r\n$8\r\nattempts\r\n:0\r\n"
                    "$7\r\ncrashes\r\n:0\r\n$10\r\ncreated_ms\r\n:1767225600000\r\n:1\r\n"));
    talk_close(&talk);
}

/* The reply before a change of version is in the old one. */
static void a_version_holds_from_its_hello_on(void)
{
    talk_open(&talk);
    say(1, "GET mail a\r\nHELLO 3\r\nGET mail a\r\nRESET\r\nGET mail a\r\n");
    talk_settle(&talk);
    struct bel_buffer *out = bel__session_output(talk_session(&talk, 1));
    const char *bytes = (const char *)bel__buffer_data(out);
    CHECK(strncmp(bytes, "*-1\r\n%7\r\n", 9) == 0);
    CHECK(strncmp(bytes + out->count - 16, "_\r\n+RESET\r\n*-1\r\n", 16) == 0);
    talk_close(&talk);
}

/* Everything at once, and a reader that reads now and then. */
static void a_long_pipeline_is_answered_in_order(void)
{
    char text[REQUEST_BYTES];
    struct bel_buffer said, heard;
    talk_open(&talk);
    bel__buffer_init(&said, 64 << 20);
    bel__buffer_init(&heard, 64 << 20);
    for (int i = 0; i < PIPELINE; i++) {
        int bytes =
            snprintf(text, sizeof text, i % 2 ? "PING %d\r\n" : "SCHEDULE t x ID %d\r\n", i);
        CHECK(bel__buffer_append(&said, text, (size_t)bytes) == 0);
    }
    struct bel_session *session = talk_session(&talk, 1);
    struct bel_buffer *out = bel__session_output(session);
    size_t wanted = 0;
    while (heard.count < said.count_max) {
        size_t room = bel__session_room(session);
        size_t piece = room < said.count ? room : said.count;
        if (piece > 0) talk_receive(&talk, 1, bel__buffer_data(&said), piece);
        bel__buffer_consume(&said, piece);
        talk_settle(&talk);
        CHECK(!bel__session_is_closing(session));
        if (out->count == 0 && said.count == 0) break;
        CHECK(bel__buffer_append(&heard, bel__buffer_data(out), out->count) == 0);
        bel__buffer_consume(out, out->count);
    }
    for (int i = 0; i < PIPELINE; i++) {
        int digits = snprintf(text, sizeof text, "%d", i);
        int bytes = snprintf(text, sizeof text, "$%d\r\n%d\r\n", digits, i);
        CHECK_NOTE("reply %d", i);
        CHECK(memcmp(bel__buffer_data(&heard) + wanted, text, (size_t)bytes) == 0);
        wanted += (size_t)bytes;
    }
    CHECK_EQ(heard.count, wanted);
    bel__buffer_finish(&said);
    bel__buffer_finish(&heard);
    talk_close(&talk);
}

static void commands_under_way_have_a_limit(void)
{
    talk_open(&talk);
    talk.service.commands_max = 3;
    struct bel_session *session = talk_session(&talk, 1);
    for (int i = 0; i < 5; i++) {
        say(1, "GET mail a\r\n");
    }
    CHECK(!bel__session_step(session, 100));
    CHECK(!bel__session_is_idle(session));
    talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
    expect_bytes(1, BEL_VIEW("*-1\r\n*-1\r\n*-1\r\n"));
    talk_settle(&talk);
    expect_bytes(1, BEL_VIEW("*-1\r\n*-1\r\n"));
    CHECK(bel__session_is_idle(session));
    talk_close(&talk);
}

/* It stops parsing, then wanting input, and goes on when somebody reads. */
static void a_client_that_does_not_read_is_not_listened_to(void)
{
    talk_open(&talk);
    talk.service.output_bytes_max = 1000;
    struct bel_session *session = talk_session(&talk, 1);
    struct bel_buffer *out = bel__session_output(session);
    for (int i = 0; i < 1000; i++) {
        say(1, "PING\r\n");
    }
    talk_settle(&talk);
    CHECK(out->count > 1000 && out->count < 1010);
    CHECK(bel__session_room(session) == 0);
    size_t heard = 0;
    while (out->count > 0) {
        heard += out->count;
        bel__buffer_consume(out, out->count);
        talk_settle(&talk);
    }
    CHECK_EQ(heard, 1000 * strlen("+PONG\r\n"));
    CHECK(bel__session_room(session) > 0);
    talk_close(&talk);
}

static const char *const long_answers[] = {
    "GET t a",     "LIST t COUNT 1000",       "LIST t COUNT 1", "CLAIM t COUNT 1000",
    "CLAIM t",     "SCHEDULE t x ID b IN 1h", "AGENDA STEP 1s", "TOPICS",
    "EXPLAIN t a",
};

/* What is under way is still answered, and is not more than there is room for. */
static void check_unread(size_t limit, size_t answer)
{
    struct bel_session *session = talk_session(&talk, 1);
    struct bel_buffer *out = bel__session_output(session);
    size_t heard = 0, unread_max = 0;
    for (int i = 0; i < 10000; i++) {
        talk_settle(&talk);
        CHECK(!bel__session_is_closing(session));
        size_t count = out->count;
        if (count == 0 && bel__session_is_idle(session)) break;
        if (count > unread_max) unread_max = count;
        count = count < 1000 ? count : 1000; /* slowly */
        heard += count;
        bel__buffer_consume(out, count);
    }
    CHECK_NOTE("%zu unread, of %zu", unread_max, heard);
    CHECK(bel__session_is_idle(session) && out->count == 0);
    CHECK(unread_max <= 2 * limit + answer);
}

static void long_answers_wait_for_their_reader(void)
{
    static const size_t limits[] = {1000, 10000, 100000};
    enum {
        KINDS = sizeof long_answers / sizeof long_answers[0]
    };
    char text[4096];
    for (unsigned i = 0; i < 3 * (KINDS + 1); i++) {
        talk_open(&talk);
        talk.service.output_bytes_max = limits[i % 3];
        talk.service.payload_bytes_max = 5000;
        for (int k = 0; k < 20; k++) {
            (void)snprintf(text, sizeof text, "SCHEDULE t %02000d ID %d\r\n", 7, k);
            say(1, text);
        }
        (void)snprintf(text, sizeof text, "SCHEDULE t %02000d ID a IN 1h\r\n", 7);
        say(1, text);
        for (unsigned k = 0; k < 200; k++) {
            unsigned kind = i / 3 < KINDS ? i / 3 : k % KINDS;
            (void)snprintf(text, sizeof text, "%s\r\n", long_answers[kind]);
            say(1, text);
        }
        CHECK_NOTE("limit %zu, %s", limits[i % 3], i / 3 < KINDS ? long_answers[i / 3] : "all");
        check_unread(limits[i % 3], 150000);
        talk_close(&talk);
    }
}

/* Of one who does not read nothing more is done than there is room for. */
static void a_client_that_never_reads_is_left_waiting(void)
{
    char text[4096];
    talk_open(&talk);
    talk.service.output_bytes_max = 10000;
    talk.service.payload_bytes_max = 4000;
    struct bel_session *session = talk_session(&talk, 1);
    (void)snprintf(text, sizeof text, "SCHEDULE t %02000d ID a IN 1h\r\n", 7);
    talk_go_on(&talk, "2> PING\nPONG\n");
    say(1, text);
    for (int i = 0; i < 500; i++) {
        say(1, "GET t a\r\n");
    }
    for (int i = 0; i < 100; i++) {
        talk_settle(&talk);
    }
    CHECK(!bel__session_is_closing(session));
    CHECK(bel__session_output(session)->count > 10000);
    CHECK(bel__session_output(session)->count < 20000);
    CHECK(bel__session_room(session) == 0);
    talk_go_on(&talk, "2> PING\nPONG\n");
    talk_close(&talk);
}

/* Steps sessions and takes turns; the output of the first `silent` is not read. */
static uint64_t read_others(unsigned silent, unsigned count)
{
    uint64_t heard = 0;
    for (int i = 0; i < 200; i++) {
        for (unsigned number = 1; number <= count; number++) {
            struct bel_session *session = talk_session(&talk, number);
            while (bel__session_step(session, 16)) {}
            struct bel_buffer *out = bel__session_output(session);
            if (number > silent) heard += out->count;
            if (number > silent) bel__buffer_consume(out, out->count);
            bel__session_trim(session);
        }
        talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
        bel__output_total_end_turn(talk.service.output_total);
    }
    return heard;
}

static void say_gets(unsigned number, int count)
{
    for (int i = 0; i < count; i++) {
        say(number, "GET t a\r\n");
    }
}

/* The replies of all sessions have a limit, and it counts what is allocated. */
static void silent_clients_share_a_limit(void)
{
    enum {
        PAYLOAD = 500000,
        REPLY = PAYLOAD + (64 << 10) + 1, /* as much is reserved */
        LIMIT = 4000000,
        TOTAL = 6000000,
        GETS = 40,
    };
    static char text[PAYLOAD + 100];
    struct bel_output_total total = {.bytes_max = 100000000};
    talk_open(&talk);
    talk.service.output_bytes_max = LIMIT;
    talk.service.payload_bytes_max = PAYLOAD;
    talk.service.output_total = &total;
    int bytes = snprintf(text, sizeof text, "*7\r\n$8\r\nSCHEDULE\r\n$1\r\nt\r\n$%d\r\n", PAYLOAD);
    CHECK(bytes > 0);
    say(8, text);
    memset(text, 'x', PAYLOAD);
    (void)snprintf(text + PAYLOAD, sizeof text - PAYLOAD,
                   "\r\n$2\r\nID\r\n$1\r\na\r\n$2\r\nIN\r\n");
    say(8, text);
    say(8, "$2\r\n1h\r\n");
    (void)read_others(0, 8);
    CHECK(total.bytes <= (size_t)8 * (16 << 10));
    say_gets(1, GETS);
    (void)read_others(1, 8); /* one alone: its limit, and a reply */
    size_t alone = bel__session_unread_bytes(talk_session(&talk, 1));
    CHECK_NOTE("%zu bytes of one", alone);
    CHECK(alone > LIMIT - REPLY && alone <= (size_t)(LIMIT + REPLY) / 4 * 5);
    CHECK_EQ(bel__session_crowd(talk_session(&talk, 1)), BEL_SESSION_CROWD_NONE);
    total.bytes_max = TOTAL;
    for (unsigned number = 2; number <= 6; number++) {
        say_gets(number, GETS);
    }
    (void)read_others(6, 8);
    CHECK_NOTE("%zu bytes of all", total.bytes);
    CHECK(total.bytes > TOTAL && total.bytes <= (size_t)(TOTAL + REPLY) / 4 * 5);
    size_t sum = 0;
    for (unsigned number = 1; number <= 8; number++) {
        sum += bel__session_unread_bytes(talk_session(&talk, number));
    }
    CHECK_EQ(sum, total.bytes);
    CHECK_EQ(bel__session_crowd(talk_session(&talk, 2)), BEL_SESSION_CROWD_OWN);
    CHECK_EQ(bel__session_crowd(talk_session(&talk, 6)), BEL_SESSION_CROWD_FULL);
    CHECK(bel__session_room(talk_session(&talk, 6)) == 0);
    say(7, "PING\r\nPING\r\nSCHEDULE t x ID b\r\nGET t b\r\n"); /* short ones go on */
    CHECK_EQ(read_others(6, 8), 2 * strlen("+PONG\r\n") + strlen("$1\r\nb\r\n"));
    CHECK_EQ(bel__session_crowd(talk_session(&talk, 7)), BEL_SESSION_CROWD_FULL);
    bel__session_destroy(talk_session(&talk, 1));
    talk.sessions[0] = NULL;
    say_gets(8, GETS);
    uint64_t heard = read_others(6, 8);
    CHECK_NOTE("%" PRIu64 " bytes heard", heard);
    CHECK(heard == 0 || heard > PAYLOAD);
    heard += read_others(0, 8); /* all read: all is answered */
    CHECK(heard > (uint64_t)PAYLOAD * GETS * 2 && total.bytes <= (size_t)8 * (16 << 10));
    talk_close(&talk);
    CHECK_EQ(total.bytes, 0);
}

static void input_that_nobody_wanted_closes_it(void)
{
    static char much[4 << 20];
    memset(much, 'x', sizeof much);
    talk_open(&talk);
    struct bel_session *session = talk_session(&talk, 1);
    say(1, "CLAIM mail WAIT 1m\r\n");
    talk_settle(&talk);
    size_t room = bel__session_room(session);
    CHECK(room > 0 && room < sizeof much);
    CHECK(bel__session_receive(session, much, room) == 0);
    CHECK(bel__session_room(session) == 0);
    CHECK(bel__session_receive(session, much, 1) == BEL_EFULL);
    CHECK(bel__session_is_closing(session));
    talk_close(&talk);
}

static void strangers_may_send_little(void)
{
    talk_open(&talk);
    talk_go_on(&talk, "!auth\n");
    struct bel_session *session = talk_session(&talk, 1);
    CHECK(bel__session_room(session) == 16 << 10);
    say(1, "*2\r\n$4\r\nAUTH\r\n$1000000\r\n");
    talk_settle(&talk);
    expect_bytes(1, BEL_VIEW("-ERR Protocol error: too many bytes\r\n"));
    CHECK(bel__session_is_closing(session));
    talk_close(&talk);
}

/* A payload over the limit is refused by whoever has the limit, one far over it is passed over. */
static void what_is_too_large_does_not_end_the_connection(void)
{
    static const size_t sizes[] = {BEL_PAYLOAD_BYTES_DEFAULT + 1, 3 << 20, 20 << 20};
    static char piece[1 << 16];
    memset(piece, 'x', sizeof piece);
    talk_open(&talk);
    for (size_t i = 0; i < 3; i++) {
        char head[64];
        (void)snprintf(head, sizeof head, "*3\r\n$8\r\nSCHEDULE\r\n$1\r\nt\r\n$%zu\r\n", sizes[i]);
        say(1, head);
        for (size_t left = sizes[i]; left > 0;) {
            size_t bytes = left < sizeof piece ? left : sizeof piece;
            talk_receive(&talk, 1, piece, bytes);
            talk_settle(&talk);
            left -= bytes;
        }
        say(1, "\r\n");
        talk_settle(&talk);
        CHECK(strncmp(talk_heard(&talk, 1), "-BADARG ", 8) == 0);
    }
    talk_go_on(&talk, "> PING\nPONG\n");
    talk_close(&talk);
}

static void many_can_be_done_at_once(void)
{
    static struct bel_buffer text;
    talk_open(&talk);
    bel__buffer_init(&text, 1 << 20);
    CHECK(bel__buffer_append_format(&text, "*4098\r\n$6\r\nCANCEL\r\n$1\r\nt\r\n") == 0);
    for (int i = 0; i < 4096; i++) {
        CHECK(bel__buffer_append_format(&text, "$4\r\n%04d\r\n", i) == 0);
    }
    talk_go_on(&talk, "> SCHEDULE t x ID 0000\n\"0000\"\n> SCHEDULE t x ID 4095\n\"4095\"\n");
    talk_receive(&talk, 1, bel__buffer_data(&text), text.count);
    talk_settle(&talk);
    CHECK(strcmp(talk_heard(&talk, 1), "2\n") == 0);
    bel__buffer_finish(&text);
    talk_close(&talk);
}

/* --- connections that are cut --- */

static void cut(unsigned number)
{
    bel__session_destroy(talk.sessions[number - 1]);
    talk.sessions[number - 1] = NULL;
    talk.closed++;
    talk_settle(&talk);
    talk_settle(&talk);
    CHECK_EQ(talk.gone, talk.closed);
}

static void schedule_some(unsigned count)
{
    char text[REQUEST_BYTES];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(text, sizeof text, "> SCHEDULE mail x ID %u\n\"%u\"\n", i, i);
        talk_go_on(&talk, text);
    }
}

/* Nobody has seen them, so nobody has to wait for their leases; and it is no crash. */
static void deliveries_that_were_not_written_are_released(void)
{
    talk_open(&talk);
    schedule_some(5);
    say(2, "CLAIM mail COUNT 3\r\nCLAIM mail COUNT 1\r\n");
    talk_settle(&talk);
    talk_go_on(&talk, "> TOPIC mail\n[..., \"ready\", 1, \"leased\", 4, ...]\n");
    cut(2);
    for (unsigned i = 0; i < 10; i++) {
        talk_settle(&talk);
    }
    talk_go_on(&talk, "> TOPIC mail\n[..., \"ready\", 5, \"leased\", 0, ...]\n"
                      "> GET mail 0\n[..., \"attempts\", 0, \"crashes\", 0, ...]\n");
    talk_close(&talk);
}

/* One whose reply was partly written is not whole, one that was written is the client's. */
static void deliveries_that_were_written_stay_leased(void)
{
    talk_open(&talk);
    schedule_some(5);
    say(2, "CLAIM mail COUNT 2\r\n");
    talk_settle(&talk);
    struct bel_buffer *out = bel__session_output(talk_session(&talk, 2));
    bel__buffer_consume(out, out->count);
    say(2, "CLAIM mail COUNT 2\r\n");
    talk_settle(&talk);
    bel__buffer_consume(out, out->count - 1);
    cut(2);
    for (unsigned i = 0; i < 10; i++) {
        talk_settle(&talk);
    }
    talk_go_on(&talk, "> TOPIC mail\n[..., \"ready\", 3, \"leased\", 2, ...]\n"
                      "> GET mail 1\n[..., \"state\", \"leased\", ...]\n"
                      "> GET mail 2\n[..., \"state\", \"ready\", ...]\n");
    talk_close(&talk);
}

/* The connection was reset: the last reply to a claim that could wait was not read, unless the
 * client has said something since. */
static void deliveries_that_were_not_read_are_released(void)
{
    talk_open(&talk);
    schedule_some(4);
    struct bel_buffer *out = bel__session_output(talk_session(&talk, 2));
    say(2, "CLAIM mail WAIT 1s\r\n");
    talk_settle(&talk);
    bel__buffer_consume(out, out->count);
    say(2, "CLAIM mail COUNT 2 WAIT 1s\r\n");
    talk_settle(&talk);
    bel__buffer_consume(out, out->count);
    bel__session_take_back(talk_session(&talk, 2));
    cut(2);
    say(3, "CLAIM mail WAIT 1s\r\n");
    talk_settle(&talk);
    out = bel__session_output(talk_session(&talk, 3));
    bel__buffer_consume(out, out->count);
    say(3, "PING\r\n");
    talk_settle(&talk);
    bel__session_take_back(talk_session(&talk, 3));
    cut(3);
    for (unsigned i = 0; i < 10; i++) {
        talk_settle(&talk);
    }
    talk_go_on(&talk, "> TOPIC mail\n[..., \"ready\", 2, \"leased\", 2, ...]\n");
    talk_close(&talk);
}

/* Cut between the submission and the answer: the claim is taken back, what was asked is done. */
static void a_cut_before_the_turn_takes_claims_back(void)
{
    talk_open(&talk);
    schedule_some(2);
    say(2,
        "CLAIM mail\r\nSCHEDULE mail y ID z\r\nCLAIM mail WAIT 1m\r\nSCHEDULE mail y ID never\r\n");
    (void)bel__session_step(talk_session(&talk, 2), 10);
    cut(2);
    talk_go_on(&talk, "> TOPIC mail\n[..., \"ready\", 3, \"leased\", 0, ...]\n"
                      "> GET mail z\n[\"id\", \"z\", ...]\n> GET mail never\nnil\n");
    talk_close(&talk);
}

static void a_client_that_is_dropped_keeps_nothing(void)
{
    char text[4096];
    talk_open(&talk);
    talk.service.output_bytes_max = 5000;
    (void)snprintf(text, sizeof text, "SCHEDULE mail %02000d ID big IN 1h\r\n", 7);
    say(1, text);
    talk_settle(&talk);
    CHECK(strcmp(talk_heard(&talk, 1), "\"big\"\n") == 0);
    schedule_some(3);
    say(2, "CLAIM mail COUNT 2\r\n");
    say(2, "GET mail big\r\n");
    say(2, "POST mail\r\n"); /* who says that is no client */
    for (unsigned i = 0; i < 10 && !bel__session_is_closing(talk_session(&talk, 2)); i++) {
        talk_settle(&talk);
    }
    CHECK(bel__session_is_closing(talk_session(&talk, 2)));
    for (unsigned i = 0; i < 10; i++) {
        talk_settle(&talk);
    }
    talk_go_on(&talk, "> TOPIC mail\n[..., \"ready\", 3, \"leased\", 0, ...]\n");
    cut(2);
    talk_close(&talk);
}

/* PURGE takes its time; what is behind it comes after it. */
static void what_takes_long_is_answered_in_its_turn(void)
{
    char text[REQUEST_BYTES];
    talk_open(&talk);
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(text, sizeof text, "SCHEDULE mail x ID %d IN 1h\r\n", i);
        say(1, text);
        if (i % 500 == 0) talk_settle(&talk);
    }
    talk_settle(&talk);
    (void)talk_heard(&talk, 1);
    say(1, "PURGE mail STATE scheduled\r\nGET mail 4999\r\nPING\r\nPURGE mail\r\n");
    talk_settle(&talk);
    CHECK(strcmp(talk_heard(&talk, 1), "5000\nnil\nPONG\n0\n") == 0);
    talk_close(&talk);
}

/* What should see all that was done before it waits until it is. */
static void a_backup_has_what_was_said_before_it(void)
{
    talk_open(&talk);
    say(1, "SCHEDULE mail x ID a\r\nBACKUP copy\r\nPING\r\n");
    CHECK(!bel__session_step(talk_session(&talk, 1), 10));
    CHECK(talk.backup[0] == 0 && !bel__session_is_idle(talk_session(&talk, 1)));
    talk.next = bel_backend_turn(bel_engine_backend(talk.engine), talk.now);
    expect_bytes(1, BEL_VIEW("$1\r\na\r\n"));
    CHECK(talk.backup[0] == 0);
    talk_settle(&talk);
    CHECK(strcmp(talk.backup, "copy") == 0);
    expect_bytes(1, BEL_VIEW("+OK\r\n+PONG\r\n"));
    say(1, "SCHEDULE mail x ID b IN 5s\r\nCLOCK ADVANCE 5s\r\nGET mail b\r\n");
    talk_settle(&talk);
    CHECK(strstr(talk_heard(&talk, 1), "\"state\", \"ready\"") != NULL);
    talk_close(&talk);
}

/* What takes a while holds up nobody but who asked for it. */
static void an_errand_is_answered_when_it_is_done(void)
{
    talk_open(&talk);
    talk.takes_a_while = true;
    say(1, "BACKUP copy\r\nPING\r\n");
    say(2, "PING\r\n");
    talk_settle(&talk);
    CHECK(talk.task != NULL && bel__session_is_busy(talk_session(&talk, 1)));
    CHECK(!bel__session_is_idle(talk_session(&talk, 1)));
    CHECK_EQ(bel__session_output(talk_session(&talk, 1))->count, 0);
    expect_bytes(2, BEL_VIEW("+PONG\r\n"));
    talk.task->done(talk.task, 0, "");
    talk_settle(&talk);
    expect_bytes(1, BEL_VIEW("+OK\r\n+PONG\r\n"));
    CHECK(!bel__session_is_busy(talk_session(&talk, 1)));
    say(1, "BACKUP copy\r\n");
    talk_settle(&talk);
    talk.task->done(talk.task, BEL_EBUSY, "not\r\nnow");
    expect_bytes(1, BEL_VIEW("-FULL not  now\r\n"));
    talk_close(&talk);
}

/* Who hangs up meanwhile is not told, and his session goes when it is done. */
static void an_errand_outlives_who_asked_for_it(void)
{
    talk_open(&talk);
    talk.takes_a_while = true;
    say(1, "SCHEDULE mail x\r\nCLAIM mail WAIT 1s\r\n");
    talk_settle(&talk);
    say(1, "BACKUP copy\r\n");
    talk_settle(&talk);
    CHECK(talk.task != NULL);
    bel__session_destroy(talk.sessions[0]);
    talk.sessions[0] = NULL;
    talk.closed++;
    CHECK_EQ(talk.gone, 0);
    talk.task->done(talk.task, 0, "");
    talk_settle(&talk);
    CHECK_EQ(talk.gone, 1);
    talk_close(&talk);
}

/* Replies that have waited for others are no longer counted when they are out. */
static void what_was_read_is_not_held_against_anybody(void)
{
    talk_open(&talk);
    talk.service.output_bytes_max = 1000;
    for (int i = 0; i < 1000; i++) {
        say(1, "GET mail a\r\nPING\r\n");
        talk_settle(&talk);
        CHECK_NOTE("round %d", i);
        expect_bytes(1, BEL_VIEW("*-1\r\n+PONG\r\n"));
    }
    talk_close(&talk);
}

static void who_resets_is_a_stranger_again(void)
{
    talk_open(&talk);
    talk_go_on(&talk, "!auth\n"
                      "> AUTH secret\nOK\n"
                      "> CANCEL t 1 2 3 4 5 6 7 8 9 10 11 12\n0\n"
                      "> RESET\nRESET\n"
                      "> CANCEL t 1 2 3 4 5 6 7 8 9 10 11 12\n"
                      "-ERR Protocol error: too many arguments\n"
                      "!closing 1\n");
    talk_close(&talk);
}

int main(void)
{
    RUN(frames_can_be_split_at_every_byte);
    RUN(replies_have_these_bytes);
    RUN(a_version_holds_from_its_hello_on);
    RUN(a_long_pipeline_is_answered_in_order);
    RUN(commands_under_way_have_a_limit);
    RUN(a_client_that_does_not_read_is_not_listened_to);
    RUN(long_answers_wait_for_their_reader);
    RUN(a_client_that_never_reads_is_left_waiting);
    RUN(silent_clients_share_a_limit);
    RUN(input_that_nobody_wanted_closes_it);
    RUN(strangers_may_send_little);
    RUN(what_is_too_large_does_not_end_the_connection);
    RUN(many_can_be_done_at_once);
    RUN(deliveries_that_were_not_written_are_released);
    RUN(deliveries_that_were_written_stay_leased);
    RUN(deliveries_that_were_not_read_are_released);
    RUN(a_cut_before_the_turn_takes_claims_back);
    RUN(a_client_that_is_dropped_keeps_nothing);
    RUN(what_takes_long_is_answered_in_its_turn);
    RUN(a_backup_has_what_was_said_before_it);
    RUN(an_errand_is_answered_when_it_is_done);
    RUN(an_errand_outlives_who_asked_for_it);
    RUN(what_was_read_is_not_held_against_anybody);
    RUN(who_resets_is_a_stranger_again);
    return 0;
}
