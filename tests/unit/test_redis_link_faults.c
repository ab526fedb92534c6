/* SPDX-License-Identifier: MIT */

/* What a link does while the server does not behave: split, late, wrong and missing replies. */
#include "redis_rig.h"

/* --- every byte --- */

/* The replies to A, B and C, with a message and attributes in between. */
static const char stream[] =
    "$5\r\nhe\r\no\r\n>2\r\n+message\r\n$1\r\nx\r\n*2\r\n:1\r\n*1\r\n$-1\r\n"
    "|1\r\n+a\r\n+b\r\n-ERR c\r\n";

static void replies_split_at_every_byte_are_the_same(void)
{
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        struct rig_call a, b, c;
        CHECK_NOTE("pieces of %zu bytes", piece);
        rig_start();
        rig_send(&a, "A");
        rig_send(&b, "B");
        rig_send(&c, "C");
        rig_settle();
        for (size_t at = 0; at < strlen(stream); at += piece) {
            size_t left = strlen(stream) - at;
            rig_say_bytes(stream + at, left < piece ? left : piece);
            rig_settle();
        }
        rig_expect("A$he\r\no push[message x] B[ ] C-ERR c ");
        rig_end();
    }
}

/* The server hangs up after every byte. What was complete has ended; D, which was not sent, is sent
 * on the next connection, where replies have their own calls. */
static void a_connection_that_ends_at_any_byte_ends_only_what_was_sent(void)
{
    for (size_t bytes = 0; bytes <= strlen(stream); bytes++) {
        struct rig_call a, b, c, d;
        CHECK_NOTE("ends after %zu bytes", bytes);
        rig_start();
        rig_send(&a, "A");
        rig_send(&b, "B");
        rig_send(&c, "C");
        rig_settle();
        rig_hear("*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n*1\r\n$1\r\nC\r\n");
        rig_say_bytes(stream, bytes);
        rig_hang_up();
        rig_send(&d, "D");
        bel__poller_receive(&rig.poller, rig.now); /* before D could be sent */
        CHECK(a.is_ended && b.is_ended && c.is_ended && !d.is_ended);
        CHECK(a.err == (bytes < 11 ? BEL_EIO : 0));
        CHECK(c.err == (bytes < strlen(stream) ? BEL_EIO : 0));
        CHECK(c.err == 0 || strstr(c.why, "closed the connection") != NULL);
        rig.log[0] = 0;
        rig_settle();
        rig_reconnect();
        rig_greet();
        rig_hear("*1\r\n$1\r\nD\r\n");
        rig_say("+d\r\n");
        rig_expect("ready D+d ");
        CHECK(bel__redis_link_connections(rig.link) == 2);
        rig_end();
    }
}

static void a_greeting_that_ends_at_any_byte_is_tried_again(void)
{
    for (size_t bytes = 0; bytes < strlen(RIG_HELLO_OK); bytes++) {
        rig_open((struct bel_redis_link_options){0});
        bel__redis_link_connect(rig.link);
        rig_settle();
        rig_accept();
        rig_settle();
        rig_say_bytes(RIG_HELLO_OK, bytes);
        rig_hang_up();
        rig_settle();
        rig_expect("");
        rig_reconnect();
        rig_greet();
        rig_expect("ready ");
        rig_end();
    }
}

/* --- silence --- */

static void a_silent_server_is_given_up_and_its_late_reply_is_not_used(void)
{
    struct rig_call a, b, c;
    rig_start();
    rig_send(&a, "A");
    rig_advance(4000);
    rig_send(&b, "B");
    rig_advance(999);
    rig_expect("");
    CHECK(rig.next.ns == rig.now.ns + NS_PER_MS);
    int silent = rig.server;
    rig.server = -1;
    rig_advance(1); /* the deadline of A, not that of B */
    rig_expect("A!-3 B!-3 broken ");
    CHECK(strstr(a.why, "no reply in time") != NULL);
    rig_send(&c, "C");
    rig_reconnect();
    (void)!send(silent, "+late\r\n+late\r\n", 14, MSG_NOSIGNAL);
    rig_greet();
    rig_say("+c\r\n");
    rig_expect("ready C+c ");
    (void)close(silent);
    rig_end();
}

static void each_call_has_its_own_timeout(void)
{
    struct rig_call a, b;
    rig_start();
    rig_send(&a, "A");
    rig_prepare(&b, "B");
    b.call.timeout_ms = 100;
    CHECK(rig_try_send(&b) == 0);
    rig_advance(99);
    rig_expect("");
    rig_advance(1); /* B is not the oldest, but the connection cannot answer it any more */
    rig_expect("A!-3 B!-3 broken ");
    rig_end();
}

static void a_silent_greeting_is_given_up(void)
{
    rig_open((struct bel_redis_link_options){.connect_ms = 300});
    bel__redis_link_connect(rig.link);
    rig_settle();
    rig_accept();
    rig_advance(299);
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_GREETING);
    rig_advance(1);
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
    CHECK(strstr(bel__redis_link_why(rig.link), "no reply to the greeting") != NULL);
    rig_end();
}

static void calls_wait_for_a_server_until_their_deadline(void)
{
    struct rig_call a, b, c;
    rig_open((struct bel_redis_link_options){0});
    rig_unlisten();
    rig_send(&a, "A");
    rig_prepare(&b, "B");
    b.call.timeout_ms = 1000;
    CHECK(rig_try_send(&b) == 0);
    rig_advance(999);
    rig_expect("");
    rig_advance(1);
    rig_expect("B!-9 ");
    rig_prepare(&c, "C");
    c.call.timeout_ms = 60000;
    CHECK(rig_try_send(&c) == 0);
    rig_advance(3999);
    rig_expect("");
    rig_advance(1);
    rig_expect("A!-9 ");
    CHECK(strstr(bel__redis_link_why(rig.link), "No such file") != NULL);
    rig_listen();
    rig_reconnect();
    rig_greet();
    rig_hear("*1\r\n$1\r\nC\r\n");
    rig_say("+c\r\n");
    rig_expect("ready C+c ");
    rig_end();
}

/* --- wrong replies --- */

static void a_wrong_reply_drops_the_connection_by_name(void)
{
    static const struct {
        const char *said, *reason;
    } rows[] = {
        {"hello\r\n", "not RESP"},
        {"HTTP/1.1 400 Bad Request\r\n", "not RESP"},
        {":x\r\n", "not RESP"},
        {"$5\r\nabcdefg\r\n", "not RESP"},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "not RESP"},
        {"*1\r\n>1\r\n+x\r\n", "not RESP"},
        {"$1001\r\n", "more than 1000 bytes or 20 values"},
        {"*21\r\n", "more than 1000 bytes or 20 values"},
        {"*2147483647\r\n", "more than 1000 bytes or 20 values"},
        {">0\r\n", "message without a kind"},
        {">1\r\n:1\r\n", "message without a kind"},
        {"+a\r\n+b\r\n", "a reply that no call waits for"},
        {"+a\r\n-ERR Protocol error: x\r\n", "no call waits for: ERR Protocol error: x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig_call a;
        rig_open((struct bel_redis_link_options){.reply_bytes_max = 1000, .reply_values_max = 20});
        bel__redis_link_connect(rig.link);
        rig_settle();
        rig_greet();
        rig_send(&a, "A");
        rig_say(rows[i].said);
        CHECK_NOTE("%s: %.200s", rows[i].said, bel__redis_link_why(rig.link));
        CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
        CHECK(strstr(bel__redis_link_why(rig.link), rows[i].reason) != NULL);
        CHECK(a.is_ended);
        CHECK(a.err == 0 || strstr(a.why, rows[i].reason) != NULL);
        rig_end();
    }
}

static void a_list_of_many_small_values_has_a_limit_too(void)
{
    struct rig_call a;
    char said[2000];
    rig_open((struct bel_redis_link_options){.reply_bytes_max = 1000});
    bel__redis_link_connect(rig.link);
    rig_settle();
    rig_greet();
    rig_send(&a, "A");
    rig_settle();
    rig_say_bytes("*100\r\n", 6);
    for (size_t i = 0; i < sizeof said; i++) {
        said[i] = "+abcdefghijklmnopq\r\n"[i % 20];
    }
    rig_say_bytes(said, sizeof said);
    rig_settle();
    CHECK(a.err == BEL_EIO && strstr(a.why, "more than 1000 bytes") != NULL);
    rig_end();
}

static void an_ordinary_reply_to_a_subscription_drops_the_connection(void)
{
    struct rig_call a;
    rig_start();
    rig_prepare(&a, "A");
    a.call.confirmed_by = "subscribe";
    CHECK(rig_try_send(&a) == 0);
    rig_say("+OK\r\n");
    CHECK(a.err == BEL_EIO && strstr(a.why, "'subscribe' without a message") != NULL);
    rig_end();
}

/* --- waits --- */

static void waits_are_random_and_double_up_to_five_seconds(void)
{
    uint64_t bound_ms = 50, longest[8] = {0};
    for (uint64_t seed = 1; seed <= 50; seed++) {
        rig_open((struct bel_redis_link_options){0});
        bel__entropy_seed(&rig.entropy, seed);
        rig_unlisten();
        bel__redis_link_connect(rig.link);
        rig_settle();
        bound_ms = 50;
        for (int i = 0; i < 12; i++) {
            CHECK_NOTE("seed %d, attempt %d", (int)seed, i);
            CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
            uint64_t wait_ns = rig.next.ns - rig.now.ns;
            CHECK(wait_ns > 0 && wait_ns <= bound_ms * NS_PER_MS);
            if (i < 8 && wait_ns > longest[i]) longest[i] = wait_ns;
            rig.now = rig.next;
            rig_settle();
            bound_ms = bound_ms * 2 < 5000 ? bound_ms * 2 : 5000;
        }
        rig_end();
    }
    for (int i = 0; i < 8; i++) { /* of 50 waits one is in the upper half */
        uint64_t bound = (uint64_t)50 << i;
        CHECK(longest[i] > (bound < 5000 ? bound : 5000) * NS_PER_MS / 2);
    }
}

/* Returns the longest of many first waits after the connection has broken. */
static uint64_t longest_wait(bool is_used, uint64_t lasts_ms)
{
    uint64_t longest = 0;
    for (int i = 0; i < 30; i++) {
        struct rig_call a;
        if (is_used) {
            rig_send(&a, "A");
            rig_say("+a\r\n");
        }
        rig_advance(lasts_ms);
        rig_hang_up();
        rig_settle();
        CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
        if (rig.next.ns - rig.now.ns > longest) longest = rig.next.ns - rig.now.ns;
        rig.now = rig.next;
        rig_settle();
        rig_greet();
        rig.log[0] = 0;
    }
    return longest;
}

static void a_connection_that_was_good_makes_waits_short_again(void)
{
    rig_start();
    CHECK(longest_wait(true, 0) <= 50 * (uint64_t)NS_PER_MS);
    CHECK(longest_wait(false, 5000) <= 50 * (uint64_t)NS_PER_MS);
    CHECK(longest_wait(false, 0) > 500 * (uint64_t)NS_PER_MS); /* accepts and hangs up */
    rig_end();
}

static int no_entropy(struct bel_entropy *entropy, void *out, size_t bytes)
{
    (void)entropy;
    memset(out, 0, bytes);
    return BEL_EIO;
}

static void without_entropy_waits_are_the_longest(void)
{
    rig_open((struct bel_redis_link_options){0});
    rig.entropy.entropy.fill = no_entropy;
    rig_unlisten();
    bel__redis_link_connect(rig.link);
    rig_settle();
    CHECK_EQ(rig.next.ns - rig.now.ns, 50 * (uint64_t)NS_PER_MS);
    rig_end();
}

/* --- a server that does not read --- */

enum {
    LARGE_BYTES = 4 << 20,
};

/* A command of which only a part was sent is sent as a whole on the next connection. */
static void a_call_that_was_sent_in_part_was_not_executed(void)
{
    static char large[LARGE_BYTES], heard[LARGE_BYTES + 64];
    struct rig_call a, b;
    memset(large, 'x', sizeof large);
    rig_start();
    rig_prepare(&a, "A");
    int head = snprintf(large, 32, "*1\r\n$%d\r\n", LARGE_BYTES - 16);
    memcpy(large + head + LARGE_BYTES - 16, "\r\n", 2);
    a.call.command = (struct bel_view){large, (size_t)head + LARGE_BYTES - 16 + 2};
    CHECK(a.call.command.bytes <= sizeof large);
    CHECK(rig_try_send(&a) == 0);
    rig_send(&b, "B");
    rig_settle();
    CHECK(!bel__redis_link_withdraw(rig.link, &a.call)); /* its rest must follow */
    CHECK(bel__redis_link_withdraw(rig.link, &b.call));
    CHECK(rig_try_send(&b) == 0);
    CHECK(recv(rig.server, heard, 1000, 0) == 1000);
    rig_hang_up();
    rig_settle();
    rig_expect("broken ");
    rig_reconnect();
    rig_greet();
    size_t count = 0, whole = a.call.command.bytes + b.call.command.bytes;
    while (count < whole) {
        rig_turn();
        ssize_t got = recv(rig.server, heard + count, sizeof heard - count, 0);
        if (got > 0) count += (size_t)got;
    }
    CHECK_EQ(count, whole);
    CHECK(memcmp(heard, large, a.call.command.bytes) == 0);
    CHECK(memcmp(heard + a.call.command.bytes, b.command, b.call.command.bytes) == 0);
    rig_say("+a\r\n+b\r\n");
    rig_expect("ready A+a B+b ");
    rig_end();
}

static void a_server_that_does_not_read_is_given_up(void)
{
    static char large[LARGE_BYTES];
    struct rig_call a, b;
    rig_start();
    rig_prepare(&a, "A");
    a.call.command = (struct bel_view){large, sizeof large};
    CHECK(rig_try_send(&a) == 0);
    rig_settle();
    rig_prepare(&b, "B");
    b.call.timeout_ms = 100; /* was not sent: ends alone */
    CHECK(rig_try_send(&b) == 0);
    rig_advance(100);
    rig_expect("B!-9 ");
    rig_advance(4900);
    rig_expect("broken A!-9 ");
    rig_end();
}

int main(void)
{
    RUN(replies_split_at_every_byte_are_the_same);
    RUN(a_connection_that_ends_at_any_byte_ends_only_what_was_sent);
    RUN(a_greeting_that_ends_at_any_byte_is_tried_again);
    RUN(a_silent_server_is_given_up_and_its_late_reply_is_not_used);
    RUN(each_call_has_its_own_timeout);
    RUN(a_silent_greeting_is_given_up);
    RUN(calls_wait_for_a_server_until_their_deadline);
    RUN(a_wrong_reply_drops_the_connection_by_name);
    RUN(a_list_of_many_small_values_has_a_limit_too);
    RUN(an_ordinary_reply_to_a_subscription_drops_the_connection);
    RUN(waits_are_random_and_double_up_to_five_seconds);
    RUN(a_connection_that_was_good_makes_waits_short_again);
    RUN(without_entropy_waits_are_the_longest);
    RUN(a_call_that_was_sent_in_part_was_not_executed);
    RUN(a_server_that_does_not_read_is_given_up);
    return EXIT_SUCCESS;
}
