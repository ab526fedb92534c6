/* SPDX-License-Identifier: MIT */

/*
 * Clients without a key: how much they get for what they send, how much is kept for them, how long
 * they may stay, and what becomes of those who guess keys. The clock is that of the talk.
 */
#include "../check.h"
#include "core/units.h"
#include "session/session.h"
#include "session/wrong_keys.h"
#include "talk.h"

#include <string.h>

enum {
    FLOOD_BYTES = 1 << 20,
    RATIO = 2,             /* bytes sent to a stranger for each that came */
    BYTES_MORE = 640,      /* and so many, however little came */
    KEPT_BYTES = 64 << 10, /* output that waits for a stranger */
};

static struct talk talk;
static struct bel_wrong_keys wrong_keys;
static unsigned reported[3];

static void report(void *context, const struct bel_key_attempt *attempt,
                   enum bel_wrong_keys_verdict verdict)
{
    (void)context;
    CHECK(attempt->address[0] != 0);
    reported[verdict]++;
}

static void open_with_keys(void)
{
    talk_open(&talk);
    talk_go_on(&talk, "!auth\n");
    memset(&wrong_keys, 0, sizeof wrong_keys);
    memset(reported, 0, sizeof reported);
    talk.service.wrong_keys = &wrong_keys;
    talk.service.report_key = report;
}

/* Says a text again and again until the session closes or enough was said. Sets `*in` to what the
 * session took, and returns what it sent; it is read unless `is_deaf`. */
static uint64_t flood(const char *text, bool is_deaf, uint64_t *in, size_t *kept)
{
    struct bel_session *session = talk_session(&talk, 1);
    struct bel_buffer *out = bel__session_output(session);
    uint64_t sent = 0;
    size_t bytes = strlen(text);
    *in = 0;
    *kept = 0;
    while (!bel__session_is_closing(session) && *in < FLOOD_BYTES) {
        if (bel__session_room(session) < bytes) break;
        CHECK(bel__session_receive(session, text, bytes) == 0);
        *in += bytes;
        talk_settle(&talk);
        if (out->count > *kept) *kept = out->count;
        if (is_deaf) continue;
        sent += out->count;
        bel__buffer_consume(out, out->count);
    }
    return sent + out->count;
}

static const char *const floods[] = {
    "PING\r\n",
    "PING\n",
    "A\n",
    "\n",
    "*1\r\n$1\r\nA\r\n",
    "*1\r\n$4\r\nPING\r\n",
    "*0\r\n",
    "HELLO\n",
    "HELLO 3\n",
    "HELLO 9\n",
    "AUTH\n",
    "AUTH 1\n",
    "AUTH a b c\n",
    "RESET\n",
    "COMMAND\n",
    "INFO\n",
    "MULTI\n",
    "RESET\nAUTH secret\nPING\n",
    "*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n",
    "a b c d e f g h i j\n",
};

static void a_stranger_gets_at_most_twice_what_it_sends(void)
{
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        uint64_t in;
        size_t kept;
        if (strstr(floods[i], "secret") != NULL) continue; /* knows a key */
        open_with_keys();
        uint64_t out = flood(floods[i], false, &in, &kept);
        CHECK_NOTE("%.12s: %llu in, %llu out", floods[i], (unsigned long long)in,
                   (unsigned long long)out);
        CHECK(out <= RATIO * in + BYTES_MORE);
        talk_close(&talk);
    }
}

static void a_stranger_that_does_not_read_costs_little(void)
{
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        uint64_t in;
        size_t kept;
        open_with_keys();
        (void)flood(floods[i], true, &in, &kept);
        CHECK_NOTE("%.12s: %zu kept", floods[i], kept);
        CHECK(kept <= KEPT_BYTES);
        talk_close(&talk);
    }
}

/* Clients that authenticate late, after what stock clients send first. */
static void a_client_that_tries_without_a_key_first_is_let_in(void)
{
    open_with_keys();
    talk_go_on(&talk, "> HELLO 3\n-NOAUTH ...\n"
                      "> CLIENT SETINFO LIB-NAME redis-py\n-NOAUTH ...\n"
                      "> CLIENT SETINFO LIB-VER 5.0.0\n-NOAUTH ...\n"
                      "> PING\n-NOAUTH ...\n"
                      "> AUTH secret\nOK\n> PING\nPONG\n");
    talk_close(&talk);
}

/* --- the time to authenticate --- */

static void a_stranger_has_ten_seconds(void)
{
    open_with_keys();
    struct bel_session *session = talk_session(&talk, 1);
    uint64_t ten_s = UINT64_C(10) * NS_PER_S, start = talk.now.real.ns;
    CHECK_EQ(bel__session_auth_end(session).ns, start + ten_s);
    talk_go_on(&talk, "!wait 9s\n> PING\n-NOAUTH ...\n> AUTH no\n-NOAUTH ...\n");
    CHECK_EQ(bel__session_auth_end(session).ns, start + ten_s); /* talking gives no more time */
    talk_go_on(&talk, "> AUTH secret\nOK\n");
    CHECK(bel__session_auth_end(session).ns == BEL_NEVER);
    talk_go_on(&talk, "!wait 1h\n> RESET\nRESET\n");
    CHECK_EQ(bel__session_auth_end(session).ns, talk.now.real.ns + ten_s);
    talk_close(&talk);
}

static void a_server_without_keys_waits_for_none(void)
{
    talk_open(&talk);
    CHECK(bel__session_auth_end(talk_session(&talk, 1)).ns == BEL_NEVER);
    talk_go_on(&talk, "> RESET\nRESET\n");
    CHECK(bel__session_auth_end(talk_session(&talk, 1)).ns == BEL_NEVER);
    talk_close(&talk);
}

/* --- wrong keys --- */

static void guess(unsigned number, const char *expected)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%u> AUTH no\n%s\n", number, expected);
    talk_go_on(&talk, text);
}

static void guessing_is_slowed_down_and_a_right_key_is_not(void)
{
    open_with_keys();
    for (unsigned i = 0; i < BEL_WRONG_KEYS_BURST; i++) {
        unsigned number = 1 + i / 5; /* connections of the same address */
        guess(number, "-NOAUTH wrong user or key");
        CHECK_EQ(bel__session_mute_end(talk_session(&talk, number)).ns, 0);
    }
    guess(1, "-NOAUTH wrong user or key");
    CHECK_EQ(bel__session_mute_end(talk_session(&talk, 1)).ns, talk.now.real.ns + NS_PER_S);
    CHECK(bel__session_is_closing(talk_session(&talk, 1)));
    guess(5, "-NOAUTH wrong user or key");
    CHECK(bel__session_is_closing(talk_session(&talk, 5)));
    CHECK_EQ(reported[BEL_WRONG_KEYS_FEW], BEL_WRONG_KEYS_BURST);
    CHECK_EQ(reported[BEL_WRONG_KEYS_MANY_NOW], 1);
    CHECK_EQ(reported[BEL_WRONG_KEYS_MANY], 1);
    talk_go_on(&talk, "6> AUTH secret\nOK\n6> PING\nPONG\n2> AUTH secret\nOK\n");
    CHECK_EQ(bel__session_mute_end(talk_session(&talk, 6)).ns, 0);
    talk_go_on(&talk, "!wait 1s\n");
    guess(7, "-NOAUTH wrong user or key");
    CHECK(!bel__session_is_closing(talk_session(&talk, 7)));
    talk_close(&talk);
}

static enum bel_wrong_keys_verdict verdict(const char *address, uint64_t ms)
{
    return bel__wrong_keys_count(&wrong_keys, address, (struct bel_mono){ms * NS_PER_MS});
}

static void exhaust(const char *address, uint64_t ms)
{
    for (unsigned i = 0; i < BEL_WRONG_KEYS_BURST; i++) {
        CHECK(verdict(address, ms) == BEL_WRONG_KEYS_FEW);
    }
    CHECK(verdict(address, ms) == BEL_WRONG_KEYS_MANY_NOW);
    CHECK(verdict(address, ms) == BEL_WRONG_KEYS_MANY);
}

static void each_address_has_its_own_rate(void)
{
    memset(&wrong_keys, 0, sizeof wrong_keys);
    exhaust("10.0.0.1:1000", 0);
    CHECK(verdict("10.0.0.1:2000", 999) == BEL_WRONG_KEYS_MANY);
    CHECK(verdict("10.0.0.1:2000", 1000) == BEL_WRONG_KEYS_FEW);
    CHECK(verdict("10.0.0.1:2000", 1000) == BEL_WRONG_KEYS_MANY);
    CHECK(verdict("[::ffff:10.0.0.1]:1", 1000) == BEL_WRONG_KEYS_MANY); /* the same machine */
    exhaust("10.0.0.2:1000", 1000);
    exhaust("[2001:db8::1]:1000", 1000);
    CHECK(verdict("[2001:db8::2]:1000", 1000) == BEL_WRONG_KEYS_MANY); /* the same network */
    exhaust("[2001:db8:0:1::1]:1000", 1000);
    exhaust("?", 1000);
    exhaust("10.0.0.1:1000", 1000000); /* after a pause everything is as at first */
}

/* The table is full of addresses that come once. One that keeps guessing stays in it. */
static void many_addresses_need_no_more_memory(void)
{
    char address[32];
    memset(&wrong_keys, 0, sizeof wrong_keys);
    exhaust("10.0.0.1:1000", 0);
    for (unsigned i = 0; i < 100 * 1000; i++) {
        (void)snprintf(address, sizeof address, "11.%u.%u.%u:1", i >> 16, i >> 8 & 255, i & 255);
        CHECK(verdict(address, 0) != BEL_WRONG_KEYS_MANY);
        CHECK(verdict("10.0.0.1:1000", 0) == BEL_WRONG_KEYS_MANY);
    }
}

/* --- keys that are read again --- */

static bool regrant(void *context, struct bel_grant *grant)
{
    (void)context;
    if (grant->key_id == 2) return false; /* "worker" */
    grant->permissions = ~0U;
    return true;
}

static void removed_keys_end_their_sessions(void)
{
    open_with_keys();
    talk_go_on(&talk, "1> AUTH reader secret\nOK\n1> SCHEDULE mail x\n-NOPERM ...\n"
                      "2> AUTH worker secret\nOK\n2> CLAIM mail WAIT 1h\n"
                      "3> PING\n-NOAUTH ...\n");
    for (unsigned number = 1; number <= 3; number++) {
        bel__session_regrant(talk_session(&talk, number), regrant);
    }
    talk_go_on(&talk, "1> SCHEDULE mail x ID a\n\"a\"\n!closing 2\n3> PING\n-NOAUTH ...\n"
                      "!close 2\n1> GET mail a\n[..., \"state\", \"ready\", ...]\n");
    talk_close(&talk);
}

int main(void)
{
    RUN(a_stranger_gets_at_most_twice_what_it_sends);
    RUN(a_stranger_that_does_not_read_costs_little);
    RUN(a_client_that_tries_without_a_key_first_is_let_in);
    RUN(a_stranger_has_ten_seconds);
    RUN(a_server_without_keys_waits_for_none);
    RUN(guessing_is_slowed_down_and_a_right_key_is_not);
    RUN(each_address_has_its_own_rate);
    RUN(many_addresses_need_no_more_memory);
    RUN(removed_keys_end_their_sessions);
    return 0;
}
