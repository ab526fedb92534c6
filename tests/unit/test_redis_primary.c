/* SPDX-License-Identifier: MIT */

/*
 * The primary that Sentinels name, and changes that replicas must have. A and B may be primaries,
 * C, D and E are Sentinels.
 */
#include "redis_fakes.h"

enum {
    A = 0,
    B = 1,
    C = 2,
};

static struct bel_servers_options options;

static void settle_idle(void)
{
    for (unsigned i = 0; i < LOOKS_MAX && !bel__servers_is_idle(servers); i++) {
        settle();
    }
    CHECK(bel__servers_is_ready(servers) && bel__servers_is_idle(servers));
}

static void open_sentinels(void)
{
    open_fakes();
    options = (struct bel_servers_options){.mode = BEL_REDIS_SENTINEL,
                                           .hosts = {{"127.0.0.1", fakes[C].port},
                                                     {"127.0.0.1", fakes[C + 1].port},
                                                     {"127.0.0.1", fakes[C + 2].port}},
                                           .hosts_count = 3,
                                           .master = "m"};
    open_with(&options);
}

static void switch_master(size_t index)
{
    say(fakes[index].peers[0], ">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$1\r\nx\r\n");
}

static void open_single(uint32_t replicas)
{
    open_fakes();
    options = (struct bel_servers_options){.mode = BEL_REDIS_SINGLE,
                                           .hosts = {{"127.0.0.1", fakes[A].port}},
                                           .hosts_count = 1,
                                           .durability = BEL_DURABILITY_WAIT,
                                           .replicas = replicas};
    fakes[A].replicas = 1;
    open_with(&options);
}

static void change(struct sent *sent, const char *name)
{
    prepare_call(sent, name, 0);
    sent->call.is_write = true;
    CHECK(bel__servers_send(servers, &sent->call, now) == 0);
}

/* --- Sentinels --- */

static void calls_go_to_the_primary_that_is_named(void)
{
    struct sent one;
    open_sentinels();
    send_call(&one, "ONE", 0);
    await("ONE=");
    expect("A:ONE ONE=OK ");
    settle_idle();
    end();
}

static void one_of_three_is_not_believed(void)
{
    struct sent one;
    open_sentinels();
    settle_idle();
    fakes[C].primary = B;
    switch_master(C);
    advance(300);
    advance(300);
    send_call(&one, "ONE", 0);
    settle();
    expect("A:ONE ONE=OK ");
    fakes[C + 1].primary = B;
    for (unsigned i = 0; i < 10; i++) {
        advance(100);
    }
    send_call(&one, "TWO", 0);
    await("TWO=");
    expect("B:TWO TWO=OK ");
    end();
}

static void half_is_not_enough_at_the_start(void)
{
    struct sent one;
    open_sentinels();
    die(&fakes[C]);
    fakes[C + 1].primary = B;
    send_call(&one, "ONE", 0);
    await("ONE!");
    expect("ONE!-9 ");
    end();
}

static void what_nobody_knows_is_said(void)
{
    struct sent one;
    open_sentinels();
    for (size_t i = C; i < FAKES; i++) {
        fakes[i].is_ignorant = true;
    }
    send_call(&one, "ONE", 0);
    await("ONE!");
    CHECK(strstr(one.why, "no primary of the name 'm'") != NULL);
    end();
}

static void a_replica_gets_nothing_until_it_is_a_primary(void)
{
    struct sent one;
    open_sentinels();
    fakes[A].role = "replica";
    send_call(&one, "ONE", 0);
    for (unsigned i = 0; i < 5; i++) {
        advance(100);
    }
    expect("");
    fakes[A].role = "master";
    await("ONE=");
    expect("A:ONE ONE=OK ");
    end();
}

static void a_demoted_primary_gets_nothing_more(void)
{
    struct sent one, two;
    open_sentinels();
    settle_idle();
    fakes[A].role = "replica";
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "-READONLY x|");
    send_call(&one, "ONE", 0);
    settle();
    expect("A:ONE ");
    send_call(&two, "TWO", 0);
    advance(400);
    expect("");
    for (size_t i = C; i < FAKES; i++) {
        fakes[i].primary = B;
    }
    await("TWO=");
    CHECK(strstr(text_log, "A:") == NULL && strstr(text_log, "B:ONE ") != NULL);
    end();
}

static void calls_follow_the_primary_when_it_dies(void)
{
    struct sent one;
    open_sentinels();
    settle_idle();
    die(&fakes[A]);
    settle();
    send_call(&one, "ONE", 0);
    settle();
    for (size_t i = C; i < FAKES; i++) {
        fakes[i].primary = B;
    }
    await("ONE=");
    expect("B:ONE ONE=OK ");
    end();
}

/* --- Changes that replicas must have --- */

static void a_change_is_answered_after_wait(void)
{
    struct sent one, two, read;
    open_single(0);
    settle_idle();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+1|+2|-ERR unknown command|:1|");
    change(&one, "ONE");
    change(&two, "TWO");
    settle();
    expect("A:ONE A:TWO A:WAITAOF A:WAIT ONE=1 TWO=2 ");
    send_call(&read, "READ", 0);
    settle();
    expect("A:READ READ=OK ");
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+3|:1|");
    change(&one, "ONE");
    settle();
    expect("A:ONE A:WAIT ONE=3 ");
    end();
}

static void files_are_waited_for(void)
{
    struct sent one;
    open_single(1);
    settle_idle();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+1|*2\r\n:1\r\n:1|");
    change(&one, "ONE");
    settle();
    expect("A:ONE A:WAITAOF ONE=1 ");
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+1|*2\r\n:1\r\n:0|");
    change(&one, "ONE");
    settle();
    expect("A:ONE A:WAITAOF ONE!-3 ");
    CHECK(strstr(one.why, "0 of 1 replicas have it in their append-only file") != NULL);
    end();
}

/* After an answer with too few, changes are refused until ROLE names enough. */
static void too_few_replicas_are_told(void)
{
    struct sent one, two;
    open_single(1);
    settle_idle();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+1|-ERR x|:0|");
    fakes[A].replicas = 0;
    change(&one, "ONE");
    settle();
    expect("A:ONE A:WAITAOF A:WAIT ONE!-3 ");
    CHECK(strstr(one.why, "outcome is unknown, safe to retry with CONFLICT keep") != NULL);
    change(&two, "TWO");
    settle();
    expect("TWO!-3 ");
    CHECK(strstr(two.why, "0 of 1 replicas are connected") != NULL);
    CHECK(strncmp(two.why, "nothing was changed: 127.0.0.1:", 31) == 0);
    fakes[A].replicas = 1;
    advance(500);
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+2|:1|");
    change(&two, "TWO");
    settle();
    expect("A:TWO A:WAIT TWO=2 ");
    end();
}

/* WAIT on the next connection would prove nothing. */
static void a_change_is_not_proved_on_another_connection(void)
{
    struct sent one;
    open_single(1);
    settle_idle();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "+1||");
    change(&one, "ONE");
    settle();
    expect("A:ONE A:WAITAOF ");
    hang_up(&fakes[A]);
    await("ONE!");
    expect("ONE!-3 ");
    for (unsigned i = 0; i < LOOKS_MAX && !bel__servers_is_idle(servers); i++) {
        advance(10);
    }
    expect(""); /* no WAIT */
    end();
}

static void an_error_needs_no_proof(void)
{
    struct sent one;
    open_single(1);
    settle_idle();
    (void)snprintf(fakes[A].replies, TEXT_BYTES, "-OOM x|:1|");
    change(&one, "ONE");
    await("ONE=");
    CHECK(strstr(text_log, "ONE=OOM x ") != NULL);
    end();
}

int main(void)
{
    RUN(calls_go_to_the_primary_that_is_named);
    RUN(one_of_three_is_not_believed);
    RUN(half_is_not_enough_at_the_start);
    RUN(what_nobody_knows_is_said);
    RUN(a_replica_gets_nothing_until_it_is_a_primary);
    RUN(a_demoted_primary_gets_nothing_more);
    RUN(calls_follow_the_primary_when_it_dies);
    RUN(a_change_is_answered_after_wait);
    RUN(files_are_waited_for);
    RUN(too_few_replicas_are_told);
    RUN(a_change_is_not_proved_on_another_connection);
    RUN(an_error_needs_no_proof);
    return EXIT_SUCCESS;
}
