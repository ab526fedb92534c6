/* SPDX-License-Identifier: MIT */

/* Calls and channels in a Cluster of two fake servers, A and B. */
#include "redis_fakes.h"

enum {
    HALF = BEL_SLOTS / 2,
    A = 0,
    B = 1,
    LOW = 7, /* a slot of A, and one of B */
    HIGH = HALF + 7,
};

/* Writes a map in which A has the slots below `limit`, and B the others. */
static void draw_map(unsigned limit)
{
    char low[256] = "", high[256] = "";
    if (limit > 0) {
        (void)snprintf(low, sizeof low, "*3\r\n:0\r\n:%u\r\n*3\r\n$9\r\n127.0.0.1\r\n:%u\r\n+a\r\n",
                       limit - 1, fakes[A].port);
    }
    if (limit < BEL_SLOTS) {
        (void)snprintf(high, sizeof high, "*3\r\n:%u\r\n:%d\r\n*3\r\n$-1\r\n:%u\r\n+b\r\n", limit,
                       BEL_SLOTS - 1, fakes[B].port); /* nil: the host that was asked */
    }
    (void)snprintf(map, sizeof map, "*%d\r\n%s%s", (low[0] != 0) + (high[0] != 0), low, high);
}

static struct bel_servers_options options;

static void open_servers(void)
{
    open_fakes();
    options = (struct bel_servers_options){
        .mode = BEL_REDIS_CLUSTER, .hosts = {{"127.0.0.1", fakes[A].port}}, .hosts_count = 1};
    open_with(&options);
}

static void await_idle(void)
{
    for (unsigned i = 0; i < LOOKS_MAX && !bel__servers_is_idle(servers); i++) {
        settle();
    }
    CHECK(bel__servers_is_ready(servers) && bel__servers_is_idle(servers));
}

static void begin(void)
{
    open_servers();
    draw_map(HALF);
    await_idle();
    CHECK_EQ(maps, 1);
}

static void moved(char *out, size_t room, const char *word, unsigned slot, const struct fake *to)
{
    (void)snprintf(out, room, "-%s %u 127.0.0.1:%u|", word, slot, to->port);
}

/* --- Calls --- */

static void a_call_goes_to_the_server_of_its_slot(void)
{
    struct sent one, two;
    begin();
    send_call(&one, "ONE", LOW);
    settle();
    send_call(&two, "TWO", HIGH);
    settle();
    expect("A:ONE ONE=OK B:TWO TWO=OK ");
    end();
}

static void calls_wait_for_the_first_map(void)
{
    struct sent one;
    open_servers();
    (void)snprintf(map, sizeof map, "*0\r\n");
    send_call(&one, "ONE", HIGH);
    settle();
    expect("");
    draw_map(HALF);
    await("ONE");
    expect("B:ONE ONE=OK ");
    end();
}

static void moved_is_followed_and_kept(void)
{
    struct sent one, two;
    begin();
    moved(fakes[A].replies, TEXT_BYTES, "MOVED", LOW, &fakes[B]);
    send_call(&one, "ONE", LOW);
    settle();
    expect("A:ONE B:ONE ONE=OK ");
    CHECK_EQ(maps, 1); /* not at once: a map was asked for just now */
    send_call(&two, "TWO", LOW);
    settle();
    expect("B:TWO TWO=OK ");
    draw_map(0);
    advance(1000);
    CHECK_EQ(maps, 2);
    send_call(&one, "ONE", LOW + 1);
    settle();
    expect("B:ONE ONE=OK ");
    end();
}

static void a_circle_of_moved_ends_with_the_deadline(void)
{
    struct sent one;
    begin();
    for (size_t i = 0; i < 20; i++) {
        size_t a = strlen(fakes[A].replies), b = strlen(fakes[B].replies);
        moved(fakes[A].replies + a, TEXT_BYTES - a, "MOVED", LOW, &fakes[B]);
        moved(fakes[B].replies + b, TEXT_BYTES - b, "MOVED", LOW, &fakes[A]);
    }
    send_call(&one, "ONE", LOW);
    await("ONE!");
    CHECK(one.err == BEL_EBUSY && strstr(one.why, "MOVED") != NULL);
    CHECK(fakes[A].replies[0] != 0); /* not as fast as it can be */
    end();
}

static void ask_is_for_one_call(void)
{
    struct sent one, two;
    begin();
    moved(fakes[A].replies, TEXT_BYTES, "ASK", LOW, &fakes[B]);
    send_call(&one, "ONE", LOW);
    settle();
    send_call(&two, "TWO", LOW);
    settle();
    expect("A:ONE B:ASKING B:ONE ONE=OK A:TWO TWO=OK ");
    CHECK_EQ(maps, 1);
    end();
}

static void a_call_is_tried_again_later(void)
{
    static const char *const errors[] = {"TRYAGAIN x", "CLUSTERDOWN x", "LOADING x",
                                         "BUSY x",     "READONLY x",    "MASTERDOWN x"};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct sent one;
        begin();
        (void)snprintf(fakes[A].replies, TEXT_BYTES, "-%s|-%s|", errors[i], errors[i]);
        send_call(&one, "ONE", LOW);
        settle();
        expect("A:ONE "); /* not at once */
        await("ONE=");
        expect("A:ONE A:ONE ONE=OK ");
        end();
    }
}

static void tries_end_with_the_deadline(void)
{
    struct sent one;
    begin();
    for (size_t used = 0; used < TEXT_BYTES - 16; used = strlen(fakes[A].replies)) {
        (void)snprintf(fakes[A].replies + used, TEXT_BYTES - used, "-TRYAGAIN x|");
    }
    send_call(&one, "ONE", LOW);
    uint64_t start = now.ns;
    await("ONE!");
    CHECK(one.err == BEL_EBUSY && strstr(one.why, "TRYAGAIN x") != NULL);
    CHECK((now.ns - start) / NS_PER_MS >= 1000 && (now.ns - start) / NS_PER_MS <= 1020);
    CHECK(strlen(text_log) < strlen("A:ONE ") * 20); /* with a backoff */
    end();
}

static void calls_of_a_slot_keep_their_order(void)
{
    struct sent calls[4];
    begin();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "-TRYAGAIN x|-TRYAGAIN x|");
    send_call(&calls[0], "1", LOW);
    send_call(&calls[1], "2", LOW);
    settle();
    send_call(&calls[2], "3", LOW);
    send_call(&calls[3], "O", LOW + 1); /* another slot does not wait */
    settle();
    expect("A:1 A:2 A:O O=OK ");
    await("3=");
    const char *first = strstr(text_log, "A:1"), *second = strstr(text_log, "A:2");
    CHECK(first != NULL && first < second && second < strstr(text_log, "A:3"));
    end();
}

/* The server replies to the second call much later than to the first one. */
static void hold_replies(struct fake *fake, const char *first)
{
    (void)snprintf(fake->replies, TEXT_BYTES, "%.*s||", (int)strcspn(first, "|"), first);
}

static void reply_late(const struct fake *fake, const char *text)
{
    char line[TEXT_BYTES];
    (void)snprintf(line, sizeof line, "%.*s\r\n", (int)strcspn(text, "|"), text);
    for (size_t i = 0; i < fake->peers_count; i++) {
        if (fake->peers[i] >= 0) say(fake->peers[i], line);
    }
}

/* A call that was sent before the slot moved keeps its place before one that was sent after. */
static void calls_keep_their_order_when_a_slot_moves(void)
{
    struct sent calls[4];
    char error[128];
    begin();
    moved(error, sizeof error, "MOVED", LOW, &fakes[B]);
    hold_replies(&fakes[A], error);
    send_call(&calls[0], "1", LOW);
    send_call(&calls[1], "2", LOW);
    settle();
    expect("A:1 A:2 "); /* the first one waits for the reply to the second one */
    send_call(&calls[2], "3", LOW);
    send_call(&calls[3], "O", HIGH); /* another slot of the new server does not wait */
    settle();
    expect("B:O O=OK ");
    reply_late(&fakes[A], error);
    settle();
    expect("B:1 B:2 B:3 1=OK 2=OK 3=OK ");
    end();
}

static void calls_keep_their_order_while_a_slot_is_moving(void)
{
    struct sent calls[3];
    begin();
    moved(fakes[A].replies, TEXT_BYTES, "ASK", LOW, &fakes[B]);
    (void)snprintf(fakes[B].replies, TEXT_BYTES, "|");
    send_call(&calls[0], "1", LOW);
    settle();
    send_call(&calls[1], "2", LOW); /* belongs to A, and waits for the first one */
    settle();
    send_call(&calls[2], "3", LOW);
    settle();
    expect("A:1 B:ASKING B:1 ");
    reply_late(&fakes[B], "+OK");
    settle();
    expect("1=OK A:2 A:3 2=OK 3=OK ");
    end();
}

/* While the first one waits, the reply to the second one comes, and the third one was not sent. */
static void calls_keep_their_order_when_they_are_tried_again(void)
{
    struct sent calls[3];
    begin();
    hold_replies(&fakes[A], "-TRYAGAIN x");
    send_call(&calls[0], "1", LOW);
    send_call(&calls[1], "2", LOW);
    settle();
    advance(600);
    send_call(&calls[2], "3", LOW);
    settle();
    expect("A:1 A:2 ");
    reply_late(&fakes[A], "-TRYAGAIN x");
    await("3=");
    const char *first = strstr(text_log, "A:1"), *second = strstr(text_log, "A:2");
    CHECK(first != NULL && first < second && second < strstr(text_log, "A:3"));
    end();
}

static struct bel_view birth(struct bel_server_call *call, uint32_t *out_count)
{
    (void)call;
    *out_count = 2;
    return BEL_VIEW("*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nBEAR\r\n");
}

/* No server has the keys: they are created where they will be. */
static void keys_are_created_in_a_slot_that_is_moving(void)
{
    struct sent one;
    char ask[128];
    begin();
    moved(ask, sizeof ask, "ASK", LOW, &fakes[B]);
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "-TRYAGAIN x|%s%s", ask, ask);
    (void)snprintf(fakes[B].replies, TEXT_BYTES, "-TRYAGAIN x|");
    prepare_call(&one, "ONE", LOW);
    one.call.birth = birth;
    CHECK(bel__servers_send(servers, &one.call, now) == 0);
    await("ONE=");
    expect("A:ONE A:ONE B:ASKING B:ONE A:ONE B:ASKING B:BEAR B:ASKING B:ONE ONE=OK ");
    end();
}

/* The server that was left never replies to the second call. */
static void calls_that_keep_their_order_end_in_time(void)
{
    struct sent calls[2];
    char error[128];
    begin();
    draw_map(0);
    moved(error, sizeof error, "MOVED", LOW, &fakes[B]);
    hold_replies(&fakes[A], error);
    send_call(&calls[0], "1", LOW);
    send_call(&calls[1], "2", LOW);
    await("1!");
    await("2!");
    CHECK(calls[0].err == BEL_EBUSY && calls[1].err == BEL_EIO);
    text_log[0] = 0;
    send_call(&calls[0], "3", LOW);
    await("3=");
    expect("B:3 3=OK ");
    end();
}

static void other_errors_are_replies(void)
{
    static const char *const errors[] = {
        "ERR x", "MOVED x", "MOVED 99999 a:1", "ASK 1 a:0", "ASK 1 nohost", "CROSSSLOT x", "OOM x"};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct sent one;
        char want[128];
        begin();
        (void)snprintf(fakes[A].replies, TEXT_BYTES, "-%s|", errors[i]);
        (void)snprintf(want, sizeof want, "A:ONE ONE=%s ", errors[i]);
        send_call(&one, "ONE", LOW);
        settle();
        expect(want);
        end();
    }
}

/* What was sent has an unknown outcome. What was not sent goes to the server that takes over. */
static void calls_follow_a_slot_whose_server_is_lost(void)
{
    struct sent sent, unsent;
    begin();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "|"); /* no reply */
    send_call(&sent, "SENT", LOW);
    settle();
    expect("A:SENT ");
    die(&fakes[A]);
    await("SENT!");
    CHECK(sent.err == BEL_EIO);
    text_log[0] = 0;
    unsigned asked = maps;
    while (maps < asked + 3) {
        advance(10); /* the others do not know yet that A is lost */
    }
    send_call(&unsent, "UNSENT", LOW);
    settle();
    draw_map(0);
    await("UNSENT=");
    expect("B:UNSENT UNSENT=OK ");
    end();
}

/* Nothing is done but to connect again, until a server is there: settle() sees that. */
static void a_cluster_that_is_gone_is_awaited_at_rest(void)
{
    struct sent one;
    begin();
    uint16_t port = fakes[A].port;
    die(&fakes[A]);
    die(&fakes[B]);
    for (unsigned i = 0; i < 50; i++) {
        advance(100);
    }
    CHECK(!bel__servers_is_ready(servers) && next.ns > now.ns);
    send_call(&one, "ONE", LOW);
    await("ONE!");
    CHECK(strstr(one.why, "127.0.0.1") != NULL);
    text_log[0] = 0;
    listen_on(&fakes[A], port);
    draw_map(BEL_SLOTS);
    for (unsigned i = 0; i < LOOKS_MAX && !bel__servers_is_ready(servers); i++) {
        advance(20);
    }
    send_call(&one, "TWO", LOW);
    await("TWO=");
    expect("A:TWO TWO=OK ");
    end();
}

/* --- Maps --- */

static void an_odd_map_is_not_used(void)
{
    static const char *const maps_of[] = {
        "*0\r\n",
        "+OK\r\n",
        "-ERR This instance has cluster support disabled\r\n",
        "*1\r\n*2\r\n:0\r\n:16383\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nx\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\nx\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:4\r\n*2\r\n$1\r\nx\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\nx\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n:7\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:4\r\n$1\r\nx\r\n",
    };
    for (size_t i = 0; i < sizeof maps_of / sizeof maps_of[0]; i++) {
        struct sent one;
        open_servers();
        (void)snprintf(map, sizeof map, "%s", maps_of[i]);
        for (unsigned k = 0; k < LOOKS_MAX && maps < 2; k++) {
            advance(50);
        }
        CHECK(!bel__servers_is_ready(servers) && maps == 2);
        draw_map(HALF);
        send_call(&one, "ONE", LOW);
        await("ONE=");
        expect("A:ONE ONE=OK ");
        end();
    }
}

static void a_slot_without_a_server_waits_for_one(void)
{
    struct sent one, two;
    open_servers();
    (void)snprintf(map, sizeof map, "*1\r\n*3\r\n:0\r\n:100\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
                   fakes[A].port);
    send_call(&one, "ONE", LOW);
    send_call(&two, "TWO", HIGH);
    settle();
    expect("A:ONE ONE=OK ");
    await("TWO!");
    CHECK(strstr(two.why, "has no server") != NULL);
    end();
}

/* --- Channels --- */

static void listen_to(const char *name)
{
    CHECK(bel__servers_listen(servers, (struct bel_view){name, strlen(name)}) == 0);
}

static void a_channel_is_heard_where_its_slot_is(void)
{
    begin();
    CHECK(bel__servers_is_sharded(servers));
    CHECK(bel__slot_of(BEL_VIEW("bar")) < HALF && bel__slot_of(BEL_VIEW("foo")) >= HALF);
    listen_to("bar");
    listen_to("foo");
    listen_to("foo");
    settle();
    CHECK(strstr(text_log, "A:SSUBSCRIBE:bar ") != NULL);
    CHECK(strstr(text_log, "B:SSUBSCRIBE:foo ") != NULL);
    CHECK(strstr(text_log, "heard:bar: ") != NULL && strstr(text_log, "heard:foo: ") != NULL);
    text_log[0] = 0;
    say(fakes[B].peers[0], ">3\r\n$8\r\nsmessage\r\n$3\r\nfoo\r\n$4\r\n1234\r\n");
    settle();
    expect("heard:foo:1234 ");
    end();
}

static void a_channel_follows_its_slot(void)
{
    begin();
    listen_to("bar");
    settle();
    expect("A:SSUBSCRIBE:bar heard:bar: ");
    draw_map(0); /* the server says that the channel is not its own any more */
    say(fakes[A].peers[0], ">3\r\n$12\r\nsunsubscribe\r\n$3\r\nbar\r\n:0\r\n");
    await("heard");
    expect("B:SSUBSCRIBE:bar heard:bar: ");
    draw_map(BEL_SLOTS);
    hang_up(&fakes[B]); /* the connection is lost */
    await("A:SSUBSCRIBE:bar heard:bar: ");
    end();
}

/* A server that has lost its last slot is needed until replicas have what it has changed. */
static void a_change_is_proved_after_its_slot_has_moved(void)
{
    struct sent one, two, three;
    char replies[256];
    open_fakes();
    options = (struct bel_servers_options){.mode = BEL_REDIS_CLUSTER,
                                           .hosts = {{"127.0.0.1", fakes[A].port}},
                                           .hosts_count = 1,
                                           .durability = BEL_DURABILITY_WAIT,
                                           .replicas = 1};
    fakes[A].replicas = fakes[B].replicas = 1;
    open_with(&options);
    draw_map(1);
    await_idle();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+1|||");
    prepare_call(&one, "ONE", 0);
    prepare_call(&two, "TWO", 0);
    one.call.is_write = two.call.is_write = true;
    CHECK(bel__servers_send(servers, &one.call, now) == 0);
    settle();
    expect("A:ONE A:WAITAOF ");
    CHECK(bel__servers_send(servers, &two.call, now) == 0); /* which that WAITAOF does not cover */
    settle();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "|*2\r\n:1\r\n:1|");
    send_call(&three, "THREE", 0);
    settle();
    expect("A:TWO A:THREE ");
    (void)snprintf(replies, sizeof replies, "*2\r\n:1\r\n:1\r\n+2\r\n-MOVED 0 127.0.0.1:%u\r\n",
                   fakes[B].port);
    say(fakes[A].peers[0], replies);
    settle();
    expect("ONE=1 A:WAITAOF B:THREE TWO=2 THREE=OK ");
    end();
}

static struct sent second;

static void send_second(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    done(call, reply);
    prepare_call(&second, "TWO", LOW);
    CHECK(bel__servers_send(servers, &second.call, (struct bel_mono){0}) == 0);
}

static void the_time_does_not_go_back(void)
{
    struct sent one;
    begin();
    prepare_call(&one, "ONE", LOW);
    one.call.done = send_second;
    CHECK(bel__servers_send(servers, &one.call, now) == 0);
    settle();
    expect("A:ONE ONE=OK A:TWO TWO=OK ");
    end();
}

static void closing_ends_all_calls(void)
{
    struct sent sent, parked;
    begin();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "-TRYAGAIN x|");
    (void)snprintf(fakes[B].replies, TEXT_BYTES, "|");
    send_call(&parked, "PARKED", LOW);
    send_call(&sent, "SENT", HIGH);
    settle();
    listen_to("foo");
    end();
    CHECK(parked.err == BEL_ECLOSED && sent.err == BEL_EIO);
}

int main(void)
{
    RUN(a_call_goes_to_the_server_of_its_slot);
    RUN(calls_wait_for_the_first_map);
    RUN(moved_is_followed_and_kept);
    RUN(a_circle_of_moved_ends_with_the_deadline);
    RUN(ask_is_for_one_call);
    RUN(a_call_is_tried_again_later);
    RUN(tries_end_with_the_deadline);
    RUN(calls_of_a_slot_keep_their_order);
    RUN(calls_keep_their_order_when_a_slot_moves);
    RUN(calls_keep_their_order_while_a_slot_is_moving);
    RUN(calls_keep_their_order_when_they_are_tried_again);
    RUN(keys_are_created_in_a_slot_that_is_moving);
    RUN(calls_that_keep_their_order_end_in_time);
    RUN(other_errors_are_replies);
    RUN(calls_follow_a_slot_whose_server_is_lost);
    RUN(a_cluster_that_is_gone_is_awaited_at_rest);
    RUN(an_odd_map_is_not_used);
    RUN(a_slot_without_a_server_waits_for_one);
    RUN(a_channel_is_heard_where_its_slot_is);
    RUN(a_channel_follows_its_slot);
    RUN(a_change_is_proved_after_its_slot_has_moved);
    RUN(the_time_does_not_go_back);
    RUN(closing_ends_all_calls);
    return EXIT_SUCCESS;
}
