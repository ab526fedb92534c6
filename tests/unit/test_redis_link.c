/* SPDX-License-Identifier: MIT */

/* What a link does while the server behaves: greeting, calls, messages, limits, moving. */
#include "redis_rig.h"

#include <netinet/in.h>

/* --- greeting --- */

static void a_link_is_idle_until_it_is_used(void)
{
    rig_open((struct bel_redis_link_options){0});
    rig_settle();
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_IDLE);
    CHECK(rig.next.ns == BEL_NEVER);
    struct rig_call call;
    rig_send(&call, "PING");
    rig_settle();
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_GREETING);
    rig_greet();
    rig_hear("*1\r\n$4\r\nPING\r\n");
    rig_say("+PONG\r\n");
    rig_expect("ready PING+PONG ");
    CHECK(bel__redis_link_connections(rig.link) == 1);
    CHECK(rig.next.ns == BEL_NEVER);
    rig_end();
}

static void a_server_tells_about_itself(void)
{
    rig_open((struct bel_redis_link_options){0});
    bel__redis_link_connect(rig.link);
    rig_settle();
    rig_accept();
    rig_say("%7\r\n+server\r\n+valkey\r\n$7\r\nversion\r\n$5\r\n9.1.2\r\n$5\r\nproto\r\n:3\r\n"
            "$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$7\r\nreplica\r\n"
            "$7\r\nmodules\r\n*0\r\n");
    const struct bel_redis_server *server = bel__redis_link_server(rig.link);
    CHECK(strcmp(server->name, "valkey") == 0 && strcmp(server->version, "9.1.2") == 0);
    CHECK(strcmp(server->mode, "cluster") == 0 && strcmp(server->role, "replica") == 0);
    CHECK(server->is_resp3);
    rig_end();
}

static void credentials_name_and_database_are_sent(void)
{
    rig_open((struct bel_redis_link_options){
        .user = "bob", .password = "secret", .name = "belfry", .db = 3});
    bel__redis_link_connect(rig.link);
    rig_settle();
    rig_accept();
    rig_settle();
    rig_hear("*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$6\r\nsecret\r\n"
             "$7\r\nSETNAME\r\n$6\r\nbelfry\r\n");
    rig_say("%0\r\n");
    rig_hear("*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n");
    rig_expect("");
    rig_say("+OK\r\n");
    rig_expect("ready ");
    rig_end();

    rig_open((struct bel_redis_link_options){.password = "secret"});
    bel__redis_link_connect(rig.link);
    rig_settle();
    rig_accept();
    rig_settle();
    rig_hear("*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n");
    rig_end();
}

static void a_server_without_hello_is_greeted_in_resp2(void)
{
    static const char *refusals[] = {"-ERR unknown command `HELLO`, with args beginning with:\r\n",
                                     "-NOPROTO unsupported protocol version\r\n"};
    for (size_t i = 0; i < 2; i++) {
        rig_open((struct bel_redis_link_options){.password = "secret", .name = "n", .db = 1});
        bel__redis_link_connect(rig.link);
        rig_settle();
        rig_accept();
        rig_say(refusals[i]);
        rig_hear("*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n"
                 "$7\r\nSETNAME\r\n$1\r\nn\r\n*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n");
        rig_say("+OK\r\n");
        rig_hear("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$1\r\nn\r\n");
        rig_say("-ERR unknown subcommand\r\n"); /* a name is not needed */
        rig_hear("*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n");
        rig_say("+OK\r\n");
        rig_expect("ready ");
        CHECK(!bel__redis_link_server(rig.link)->is_resp3);
        rig_end();
    }
}

static void without_resp3_nothing_can_be_subscribed(void)
{
    struct rig_call early, late, other;
    rig_open((struct bel_redis_link_options){0});
    rig_prepare(&early, "early");
    early.call.confirmed_by = "subscribe";
    CHECK(rig_try_send(&early) == 0);
    rig_send(&other, "other");
    rig_settle();
    rig_accept();
    rig_say("-ERR unknown command 'HELLO'\r\n");
    rig_expect("early!-12 ready ");
    rig_prepare(&late, "late");
    late.call.confirmed_by = "subscribe";
    CHECK(rig_try_send(&late) == BEL_EUNSUPPORTED);
    rig_say("+OK\r\n");
    rig_expect("other+OK ");
    rig_end();
}

static void a_refused_greeting_names_its_reason(void)
{
    static const struct {
        const char *said, *reason;
    } rows[] = {
        {"-WRONGPASS invalid username-password pair\r\n", "HELLO failed: WRONGPASS invalid"},
        {"-NOAUTH HELLO must be called\r\n", "HELLO failed: NOAUTH"},
        {"-ERR max number of clients reached\r\n", "HELLO failed: ERR max number"},
        {"!8\r\n-a\r\n\x01\x7f"
         "b!\r\n",
         "HELLO failed: -a????b!"},
        {"+OK\r\n", "HELLO failed: the reply has an unexpected type"},
        {"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "HELLO failed: the reply has an unexpected type"},
        {":1\r\n", "HELLO failed: the reply has an unexpected type"},
        {"%0\r\n-ERR DB index is out of range\r\n", "SELECT failed: ERR DB index"},
        {"%0\r\n:5\r\n", "SELECT failed: the reply has an unexpected type"},
        {"-ERR unknown command\r\n-ERR invalid password\r\n", "AUTH failed: ERR invalid password"},
        {"%0\r\n%0\r\n", "SELECT failed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_open((struct bel_redis_link_options){.password = "p", .db = 1});
        bel__redis_link_connect(rig.link);
        rig_settle();
        rig_accept();
        for (const char *at = rows[i].said; *at != 0;) { /* a reply for each command */
            const char *end = strstr(at, "\r\n") + 2;
            if (*at == '!' || *at == '*') end = at + strlen(at);
            rig_say_bytes(at, (size_t)(end - at));
            rig_settle();
            at = end;
        }
        CHECK_NOTE("%s: %.200s", rows[i].said, bel__redis_link_why(rig.link));
        CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
        CHECK(strstr(bel__redis_link_why(rig.link), rows[i].reason) != NULL);
        CHECK(strncmp(bel__redis_link_why(rig.link), rig.path, strlen(rig.path)) == 0);
        rig_expect("");
        rig_end();
    }
}

/* --- calls --- */

static void the_calls_of_a_turn_leave_together_and_end_in_order(void)
{
    struct rig_call a, b, c;
    rig_start();
    rig_send(&a, "A");
    rig_send(&b, "B");
    rig_send(&c, "C");
    rig_hear("");
    rig_settle();
    rig_hear("*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n*1\r\n$1\r\nC\r\n");
    CHECK(bel__redis_link_calls(rig.link) == 3);
    rig_say(":1\r\n-ERR no\r\n");
    rig_expect("A:1 B-ERR no ");
    rig_say("*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
    rig_expect("C[x y] ");
    CHECK(bel__redis_link_calls(rig.link) == 0);
    rig_end();
}

static void a_call_of_several_commands_has_several_replies(void)
{
    struct rig_call a, b;
    rig_start();
    rig_prepare(&a, "A");
    a.call.command = BEL_VIEW("*1\r\n$6\r\nASKING\r\n*1\r\n$3\r\nGET\r\n");
    a.call.replies = 2;
    CHECK(rig_try_send(&a) == 0);
    rig_send(&b, "B");
    rig_say("+OK\r\n");
    rig_expect("A/0+OK ");
    CHECK(!a.is_ended);
    rig_say("$1\r\nx\r\n:2\r\n");
    rig_expect("A/1$x B:2 ");
    CHECK(a.is_ended);

    CHECK((rig_prepare(&a, "A"), a.call.replies = 2, rig_try_send(&a)) == 0);
    rig_say("+OK\r\n");
    rig_hang_up(); /* the second reply is lost */
    rig_settle();
    rig_expect("A/0+OK A/1!-3 broken ");
    rig_end();
}

enum {
    LARGE_BYTES = 8 << 20, /* more than a socket takes */
};

/* Prepares a call of two commands of which the second one is large. */
static void prepare_large(struct rig_call *call)
{
    static char command[LARGE_BYTES + 64];
    int head = snprintf(command, sizeof command, "*1\r\n$1\r\nA\r\n*1\r\n$%d\r\n", LARGE_BYTES);
    memset(command + head, 'x', LARGE_BYTES);
    memcpy(command + head + LARGE_BYTES, "\r\n", 3);
    rig_prepare(call, "A");
    call->call.command = (struct bel_view){command, (size_t)head + LARGE_BYTES + 2};
    call->call.replies = 2;
}

/* The server reads all that the link sends. */
static void read_all(void)
{
    static char heard[64 << 10];
    do {
        while (recv(rig.server, heard, sizeof heard, 0) > 0) {}
        rig_settle();
    } while (rig_is_readable(rig.server));
}

static void a_reply_may_come_before_the_last_command_is_sent(void)
{
    struct rig_call a, b;
    rig_start();
    prepare_large(&a);
    CHECK(rig_try_send(&a) == 0);
    rig_send(&b, "B");
    rig_say("+OK\r\n");
    rig_expect("A/0+OK ");
    read_all();
    rig_say("$1\r\nx\r\n:2\r\n");
    rig_expect("A/1$x B:2 ");

    prepare_large(&a);
    CHECK(rig_try_send(&a) == 0);
    rig_say("+OK\r\n+OK\r\n"); /* the second reply cannot be one to the second command */
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_WAITING);
    rig_expect("A/0+OK A/1!-3 broken ");
    rig_end();
}

/* Its first command may have been executed, so it is not sent again. */
static void a_broken_connection_ends_a_call_of_which_a_part_was_sent(void)
{
    struct rig_call a, b;
    rig_start();
    prepare_large(&a);
    CHECK(rig_try_send(&a) == 0);
    rig_send(&b, "B");
    rig_settle();
    rig_hang_up();
    rig_settle();
    rig_expect("A/0!-3 broken ");
    rig_reconnect();
    rig_greet();
    rig_hear("*1\r\n$1\r\nB\r\n");
    rig_end();
}

static struct rig_call again;
static int agains;

static void send_again(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    rig_note("%" PRId64 " ", reply->value->number);
    if (--agains > 0) CHECK(bel__redis_link_send(rig.link, call, rig.now) == 0);
}

static void a_call_can_be_sent_again_by_its_end(void)
{
    rig_start();
    rig_prepare(&again, "N");
    again.call.done = send_again;
    agains = 3;
    CHECK(rig_try_send(&again) == 0);
    rig_say(":1\r\n");
    rig_say(":2\r\n");
    rig_say(":3\r\n");
    rig_hear("*1\r\n$1\r\nN\r\n*1\r\n$1\r\nN\r\n*1\r\n$1\r\nN\r\n");
    rig_expect("1 2 3 ");
    rig_end();
}

static void a_call_that_was_not_sent_can_be_withdrawn(void)
{
    struct rig_call a, b, c;
    rig_start();
    rig_send(&a, "A");
    rig_send(&b, "B");
    rig_send(&c, "C");
    CHECK(bel__redis_link_withdraw(rig.link, &b.call));
    rig_settle();
    rig_hear("*1\r\n$1\r\nA\r\n*1\r\n$1\r\nC\r\n");
    CHECK(!bel__redis_link_withdraw(rig.link, &a.call));
    rig_say("+a\r\n+c\r\n");
    rig_expect("A+a C+c ");
    rig_end();
}

static void calls_and_their_bytes_have_a_limit(void)
{
    struct rig_call calls[4];
    rig_open((struct bel_redis_link_options){.calls_max = 3});
    for (int i = 0; i < 4; i++) {
        rig_prepare(&calls[i], "X");
        CHECK(rig_try_send(&calls[i]) == (i < 3 ? 0 : BEL_EFULL));
    }
    CHECK(bel__redis_link_withdraw(rig.link, &calls[1].call));
    CHECK(rig_try_send(&calls[3]) == 0);
    rig_settle();
    rig_greet();
    rig_say("+1\r\n+2\r\n+3\r\n");
    rig_expect("ready X+1 X+2 X+3 ");
    rig_end();

    size_t bytes = strlen("*1\r\n$1\r\nX\r\n");
    rig_open((struct bel_redis_link_options){.call_bytes_max = 2 * bytes + 1});
    for (int i = 0; i < 3; i++) {
        rig_prepare(&calls[i], "X");
        CHECK(rig_try_send(&calls[i]) == (i < 2 ? 0 : BEL_EFULL));
    }
    calls[3].call.command.bytes = SIZE_MAX;
    CHECK(rig_try_send(&calls[3]) == BEL_EFULL);
    rig_end();
    CHECK(calls[0].err == BEL_ECLOSED && calls[1].err == BEL_ECLOSED);
}

enum {
    MANY = 5000,
};

static void a_turn_handles_a_limited_number_of_replies(void)
{
    static struct rig_call calls[MANY];
    rig_start();
    for (int i = 0; i < MANY; i++) {
        rig_send(&calls[i], "X");
        calls[i].name[0] = 0;
    }
    static char heard[MANY * 16];
    size_t count = 0;
    while (count < MANY * strlen("*1\r\n$1\r\nX\r\n")) {
        rig_turn();
        ssize_t got = recv(rig.server, heard, sizeof heard, 0);
        if (got > 0) count += (size_t)got;
    }
    static char said[MANY * 4];
    for (size_t i = 0; i < sizeof said; i++) {
        said[i] = "+X\r\n"[i % 4];
    }
    rig_say_bytes(said, sizeof said);
    unsigned turns = 0, before = MANY;
    for (; bel__redis_link_calls(rig.link) > 0; turns++) {
        rig.log[0] = 0;
        rig_turn();
        CHECK(before - bel__redis_link_calls(rig.link) <= 2000);
        before = bel__redis_link_calls(rig.link);
        CHECK(before == 0 || rig.next.ns <= rig.now.ns);
    }
    CHECK(turns == 3);
    rig_end();
}

/* --- messages --- */

static void messages_between_replies_are_pushed(void)
{
    struct rig_call a, b;
    rig_start();
    rig_send(&a, "A");
    rig_send(&b, "B");
    rig_say(">2\r\n$10\r\ninvalidate\r\n$1\r\nk\r\n+a\r\n>3\r\n+message\r\n$2\r\nch\r\n$1\r\nx\r\n"
            "|1\r\n+ttl\r\n:3\r\n+b\r\n>1\r\n+end\r\n");
    rig_expect("push[invalidate k] A+a push[message ch x] B+b push[end] ");
    rig_say(">3\r\n+message\r\n$2\r\nch\r\n$1\r\ny\r\n");
    rig_expect("push[message ch y] ");
    rig_end();
}

static void a_subscription_is_confirmed_by_messages(void)
{
    struct rig_call a, b, c;
    rig_start();
    rig_prepare(&a, "A");
    a.call.confirmed_by = "subscribe";
    a.call.replies = 2;
    CHECK(rig_try_send(&a) == 0);
    rig_send(&b, "B");
    rig_say(">3\r\n+subscribe\r\n$1\r\nx\r\n:1\r\n");
    rig_say(">3\r\n+message\r\n$1\r\nx\r\n$1\r\nm\r\n>3\r\n+subscribe\r\n$1\r\ny\r\n:2\r\n");
    rig_say("+b\r\n");
    rig_expect("A/0[subscribe x ] push[message x m] A/1[subscribe y ] B+b ");

    rig_prepare(&c, "C"); /* refused as a whole, so that the next reply is B's */
    c.call.confirmed_by = "ssubscribe";
    c.call.replies = 2;
    CHECK(rig_try_send(&c) == 0);
    rig_send(&b, "B");
    rig_say("-MOVED 1 a:1\r\n+b\r\n");
    rig_expect("C/0-MOVED 1 a:1 B+b ");
    CHECK(c.is_ended);
    rig_end();
}

static struct rig_call first_calls[3];
static unsigned first_count;

static void send_first(void)
{
    if (bel__redis_link_state(rig.link) != BEL_REDIS_LINK_READY) return;
    rig_send(&first_calls[first_count++], "FIRST");
}

static void calls_that_a_new_connection_needs_are_sent_first(void)
{
    struct rig_call a, b;
    first_count = 0;
    rig_open((struct bel_redis_link_options){0});
    rig.on_changed = send_first;
    rig_send(&a, "A");
    rig_settle();
    rig_greet();
    rig_hear("*1\r\n$5\r\nFIRST\r\n*1\r\n$1\r\nA\r\n");
    rig_say("+1\r\n+2\r\n");
    rig_expect("ready FIRST+1 A+2 ");
    rig_hang_up();
    rig_settle();
    rig_expect("broken ");
    rig_send(&b, "B");
    rig_reconnect();
    rig_greet();
    rig_hear("*1\r\n$5\r\nFIRST\r\n*1\r\n$1\r\nB\r\n");
    rig_hang_up();
    rig_settle();
    CHECK(first_calls[1].err == BEL_EIO && b.err == BEL_EIO);
    rig_expect("ready FIRST!-3 B!-3 broken ");
    rig_end();
}

/* --- ends --- */

static void closing_ends_all_calls(void)
{
    struct rig_call a, b;
    rig_start();
    rig_send(&a, "A");
    rig_settle();
    rig_send(&b, "B");
    rig_close_link();
    CHECK(a.err == BEL_EIO && b.err == BEL_ECLOSED);
    rig_expect("A!-3 B!-8 ");
    rig_end();
}

static void a_dropped_connection_is_restored(void)
{
    struct rig_call a, b;
    rig_start();
    rig_send(&a, "A");
    rig_settle();
    rig_send(&b, "B");
    bel__redis_link_drop(rig.link, "it is a replica");
    rig_settle();
    rig_expect("A!-3 broken ");
    CHECK(strstr(a.why, "it is a replica") != NULL);
    rig_reconnect();
    rig_greet();
    rig_hear("*1\r\n$1\r\nB\r\n");
    rig_end();
    CHECK(b.err == BEL_EIO);
}

/* Listens on a free port of the loopback. */
static int listen_tcp(uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, 16) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

/* Waits for the kernel, which connects and delivers over the loopback in its own time. */
static void wait_for(enum bel_redis_link_state state)
{
    struct pollfd poller = {.fd = rig.poller.descriptor, .events = POLLIN};
    for (rig_settle(); bel__redis_link_state(rig.link) != state; rig_settle()) {
        CHECK(poll(&poller, 1, -1) == 1);
    }
}

/* Takes in exactly this; waits for it. */
static void hear_all(const char *want)
{
    char heard[256];
    size_t bytes = strlen(want);
    CHECK(bytes <= sizeof heard);
    CHECK(recv(rig.server, heard, bytes, MSG_WAITALL) == (ssize_t)bytes);
    CHECK(memcmp(heard, want, bytes) == 0);
}

static void a_moved_link_takes_its_calls_along(void)
{
    struct rig_call a, b;
    uint16_t port;
    int listener = listen_tcp(&port);
    rig_start();
    rig_send(&a, "A");
    rig_settle();
    rig_send(&b, "B");
    CHECK(bel__redis_link_move(rig.link, "127.0.0.1", port) == 0);
    wait_for(BEL_REDIS_LINK_GREETING); /* no time passes */
    rig_expect("A!-3 broken ");
    rig_hang_up();
    rig.server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(rig.server >= 0);
    hear_all(RIG_HELLO);
    rig_say_bytes(RIG_HELLO_OK, strlen(RIG_HELLO_OK));
    wait_for(BEL_REDIS_LINK_READY);
    hear_all("*1\r\n$1\r\nB\r\n");
    rig_end();
    (void)close(listener);
}

int main(void)
{
    RUN(a_link_is_idle_until_it_is_used);
    RUN(a_server_tells_about_itself);
    RUN(credentials_name_and_database_are_sent);
    RUN(a_server_without_hello_is_greeted_in_resp2);
    RUN(without_resp3_nothing_can_be_subscribed);
    RUN(a_refused_greeting_names_its_reason);
    RUN(the_calls_of_a_turn_leave_together_and_end_in_order);
    RUN(a_call_of_several_commands_has_several_replies);
    RUN(a_reply_may_come_before_the_last_command_is_sent);
    RUN(a_broken_connection_ends_a_call_of_which_a_part_was_sent);
    RUN(a_call_can_be_sent_again_by_its_end);
    RUN(a_call_that_was_not_sent_can_be_withdrawn);
    RUN(calls_and_their_bytes_have_a_limit);
    RUN(a_turn_handles_a_limited_number_of_replies);
    RUN(messages_between_replies_are_pushed);
    RUN(a_subscription_is_confirmed_by_messages);
    RUN(calls_that_a_new_connection_needs_are_sent_first);
    RUN(closing_ends_all_calls);
    RUN(a_dropped_connection_is_restored);
    RUN(a_moved_link_takes_its_calls_along);
    return EXIT_SUCCESS;
}
