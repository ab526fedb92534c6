/* SPDX-License-Identifier: MIT */

/* A crew whose hands work when the test allows it, and the server of crew_server.h. */
#include "belfry/crew.h"

#include "crew_server.h"

#include <strings.h>

enum {
    GRACE_MS = 50000,
};

/* --- the crew --- */

static const char *const topics[] = {"mail", "post"};
static size_t topics_count = 1;
static struct bel_crew *crew;

/* A clock that the test sets, and that counts its reads: a thread that has read it since has seen
 * the current time, and one that has read it twice has decided to keep waiting. */
static struct {
    struct bel_clock clock;
    pthread_mutex_t mutex;
    pthread_cond_t asked;
    uint64_t ns;
    unsigned reads;
    bool has_reader; /* only the reads of one thread are counted */
    pthread_t reader;
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER, .asked = PTHREAD_COND_INITIALIZER};

static const struct bel_clock *crew_clock; /* NULL: the system's */

static struct bel_mono watch_mono(const struct bel_clock *clock)
{
    CHECK(clock == &watch.clock);
    (void)pthread_mutex_lock(&watch.mutex);
    struct bel_mono now = {watch.ns};
    if (!watch.has_reader || pthread_equal(watch.reader, pthread_self())) watch.reads++;
    (void)pthread_cond_broadcast(&watch.asked);
    (void)pthread_mutex_unlock(&watch.mutex);
    return now;
}

static void use_watch(void)
{
    watch.clock.mono = watch_mono;
    watch.ns = 1;
    crew_clock = &watch.clock;
}

/* Waits until the clock was read `times` times. */
static void wait_asked(unsigned times)
{
    (void)pthread_mutex_lock(&watch.mutex);
    unsigned end = watch.reads + times;
    while (watch.reads < end) {
        (void)pthread_cond_wait(&watch.asked, &watch.mutex);
    }
    (void)pthread_mutex_unlock(&watch.mutex);
}

static void set_watch(uint64_t ns)
{
    (void)pthread_mutex_lock(&watch.mutex);
    watch.ns = ns;
    (void)pthread_mutex_unlock(&watch.mutex);
}

static uint64_t read_watch(void)
{
    (void)pthread_mutex_lock(&watch.mutex);
    uint64_t ns = watch.ns;
    (void)pthread_mutex_unlock(&watch.mutex);
    return ns;
}

/* What hands do, and how many of them at once. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct bel_report report;
    bool is_open; /* otherwise hands wait for it */
    unsigned inside, inside_max, troubles;
    uint64_t trouble_ns;        /* when the last was */
    bool is_reader;             /* who has trouble is the reader of the watch */
    bool was_lost;              /* the last errand */
    unsigned lost;              /* errands that were lost when their work ended */
    bool hears;                 /* whether `told` is set */
    bool is_ear_shut;           /* `told` waits while it is set */
    unsigned heard, heard_lost; /* calls of `told`, and how many of them for lost errands */
    unsigned listening;         /* calls of `told` that are running */
    enum bel_report_kind heard_of;
} yard = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void check_errand(const struct bel_errand *errand)
{
    struct bel_view color = {0};
    CHECK(errand->payload.bytes == 5 && memcmp(errand->payload.data, "a\r\nbc", 6) == 0);
    CHECK(strcmp(errand->topic.data, "mail") == 0);
    CHECK(strcmp((const char *)errand->token.data + 1, (const char *)errand->id.data + 1) == 0);
    CHECK((uint64_t)errand->due.ms == 1000 + strtoul((const char *)errand->id.data + 1, NULL, 10));
    CHECK_EQ(errand->attempt, 1);
    CHECK(strcmp(errand->correlation.data, server.is_old ? "" : "order") == 0);
    CHECK_EQ(errand->correlation.bytes, server.is_old ? 0 : 5);
    CHECK_EQ(errand->headers_count, 1);
    CHECK(bel_errand_find(errand, "color", &color) && strcmp(color.data, "red") == 0);
    CHECK(!bel_errand_find(errand, "colo", &color));
}

static _Thread_local bool has_worked;

static void work(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    CHECK(context == &yard);
    check_errand(errand);
    (void)pthread_mutex_lock(&yard.mutex);
    yard.inside++;
    if (yard.inside > yard.inside_max) yard.inside_max = yard.inside;
    (void)pthread_cond_broadcast(&yard.changed);
    while (!yard.is_open) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    *report = yard.report;
    has_worked = true;
    yard.was_lost = bel_errand_is_lost(errand);
    yard.lost += yard.was_lost;
    yard.inside--;
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void told(void *context, const struct bel_errand *errand, const struct bel_report *report)
{
    CHECK(context == &yard);
    check_errand(errand);
    (void)pthread_mutex_lock(&yard.mutex);
    CHECK(has_worked); /* this thread */
    yard.listening++;
    (void)pthread_cond_broadcast(&yard.changed);
    while (yard.is_ear_shut) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    yard.listening--;
    has_worked = false;
    yard.heard++;
    yard.heard_lost += bel_errand_is_lost(errand);
    yard.heard_of = report->kind;
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void trouble(void *context, const char *text)
{
    CHECK(context == &yard && text[0] != '\0');
    (void)pthread_mutex_lock(&yard.mutex);
    yard.troubles++;
    yard.trouble_ns = read_watch();
    if (yard.is_reader) {
        (void)pthread_mutex_lock(&watch.mutex);
        watch.has_reader = true;
        watch.reader = pthread_self();
        (void)pthread_mutex_unlock(&watch.mutex);
    }
    (void)pthread_cond_broadcast(&yard.changed);
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void set_yard(bool is_open)
{
    (void)pthread_mutex_lock(&yard.mutex);
    yard.is_open = is_open;
    (void)pthread_cond_broadcast(&yard.changed);
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void wait_inside(unsigned count)
{
    (void)pthread_mutex_lock(&yard.mutex);
    while (yard.inside < count) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    (void)pthread_mutex_unlock(&yard.mutex);
}

/* Waits until there were `count` troubles, and returns when the last one was. */
static uint64_t wait_trouble(unsigned count)
{
    (void)pthread_mutex_lock(&yard.mutex);
    while (yard.troubles < count) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    uint64_t ns = yard.trouble_ns;
    (void)pthread_mutex_unlock(&yard.mutex);
    return ns;
}

static void start_crew(uint32_t lease_ms, unsigned hands)
{
    struct bel_crew_options options = {.address = server.path,
                                       .client = {.clock = crew_clock},
                                       .topics = topics,
                                       .topics_count = topics_count,
                                       .hands = hands,
                                       .lease_ms = lease_ms,
                                       .name = "tester",
                                       .work = work,
                                       .trouble = trouble,
                                       .told = yard.hears ? told : NULL,
                                       .context = &yard};
    yard.report = (struct bel_report){.kind = BEL_REPORT_DONE};
    yard.is_open = true;
    yard.inside = yard.inside_max = yard.troubles = yard.lost = 0;
    yard.heard = yard.heard_lost = yard.listening = 0;
    CHECK(bel_crew_start(&options, &crew) == 0);
}

static void stop_crew(void)
{
    CHECK(bel_crew_stop(crew, GRACE_MS) == 0);
    CHECK(bel_crew_stop(crew, 0) == 0);
    bel_crew_destroy(crew);
}

static void what_is_done_is_acked(void)
{
    start_server();
    start_crew(0, 0);
    queue(20);
    wait_for("ACK t20");
    stop_crew();
    CHECK_EQ(count_told("ACK"), 20);
    CHECK_EQ(count_told(""), 20);
    CHECK(yard.inside_max <= BEL_CREW_HANDS_DEFAULT);
    stop_server();
}

static void a_report_says_how_it_went(void)
{
    static const struct {
        struct bel_report report;
        const char *line;
    } cases[] = {
        {{.kind = BEL_REPORT_DONE}, "ACK t1"},
        {{.kind = BEL_REPORT_FAILED}, "FAIL t1"},
        {{.kind = BEL_REPORT_FAILED, .reason = "no ink"}, "FAIL t1 REASON no ink"},
        {{.kind = BEL_REPORT_FAILED, .has_delay = true, .delay_ms = 9, .reason = "x"},
         "FAIL t1 IN 9 REASON x"},
        {{.kind = BEL_REPORT_RELEASED}, "RELEASE t1"},
        {{.kind = BEL_REPORT_RELEASED, .has_delay = true, .delay_ms = 50}, "RELEASE t1 IN 50"},
        {{.kind = BEL_REPORT_REJECTED, .reason = "bad"}, "FAIL t1 DEAD REASON bad"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start_server();
        start_crew(0, 1);
        yard.report = cases[i].report;
        queue(1);
        wait_for(cases[i].line);
        stop_crew();
        CHECK(strcmp(server.lines[0], cases[i].line) == 0);
        CHECK_EQ(server.lines_count, 1);
        stop_server();
    }
}

static void check_hands(unsigned told, unsigned hands)
{
    start_server();
    start_crew(0, told);
    set_yard(false);
    queue(10);
    wait_inside(hands);
    CHECK_EQ(count_told(""), 0);
    (void)pthread_mutex_lock(&server.mutex);
    CHECK_EQ(server.numbered, hands);
    (void)pthread_mutex_unlock(&server.mutex);
    set_yard(true);
    wait_for("ACK t10");
    stop_crew();
    CHECK_EQ(yard.inside_max, hands);
    stop_server();
}

static void no_more_is_claimed_than_there_are_hands(void)
{
    check_hands(3, 3);
    check_hands(1, 1);
}

static void there_are_five_hands_unless_told(void)
{
    check_hands(0, 5);
}

static void all_topics_are_claimed_from(void)
{
    start_server();
    server.claim_start = "CLAIM mail post COUNT ";
    topics_count = 2;
    start_crew(0, 0);
    queue(1);
    wait_for("ACK t1");
    stop_crew();
    topics_count = 1;
    stop_server();
}

static void a_lease_is_extended_while_a_hand_works(void)
{
    start_server();
    start_crew(30, 1);
    set_yard(false);
    queue(1);
    wait_for("EXTEND t1");
    while (count_told("EXTEND t1") < 3) {
        (void)pthread_mutex_lock(&server.mutex);
        (void)pthread_cond_wait(&server.changed, &server.mutex);
        (void)pthread_mutex_unlock(&server.mutex);
    }
    set_yard(true);
    wait_for("ACK t1");
    stop_crew();
    CHECK(!yard.was_lost);
    stop_server();
}

static void a_lease_that_is_lost_is_known(void)
{
    start_server();
    server.extend_reply = "-STALE it is another's\r\n";
    start_crew(30, 1);
    set_yard(false);
    queue(1);
    (void)wait_trouble(1);
    set_yard(true);
    wait_for("ACK t1");
    stop_crew();
    CHECK(yard.was_lost);
    CHECK_EQ(count_told("EXTEND"), 1);
    stop_server();
}

static void what_the_server_says_to_an_answer_is_heard(void)
{
    static const struct {
        const char *reply, *line;
        enum bel_report_kind kind;
        bool is_lost;
    } cases[] = {
        {":1\r\n", "ACK t1", BEL_REPORT_DONE, false},
        {":0\r\n", "ACK t1", BEL_REPORT_DONE, true},
        {":1\r\n", "RELEASE t1", BEL_REPORT_RELEASED, false},
        {"-STALE it is another's\r\n", "RELEASE t1", BEL_REPORT_RELEASED, true},
        {"", "FAIL t1", BEL_REPORT_FAILED, false},
        {"", "FAIL t1 DEAD", BEL_REPORT_REJECTED, false},
    };
    yard.hears = true;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_NOTE("case %u", i);
        start_server();
        server.ack_reply = cases[i].reply;
        start_crew(0, 1);
        yard.report.kind = cases[i].kind;
        queue(1);
        wait_for(cases[i].line);
        stop_crew();
        CHECK_EQ(yard.heard, 1);
        CHECK_EQ(yard.heard_lost, cases[i].is_lost);
        CHECK(yard.heard_of == cases[i].kind);
        stop_server();
    }
    yard.hears = false;
}

/* A failed EXTEND does not decide the outcome: the server may still accept the report. */
static void the_last_word_is_that_to_the_answer(void)
{
    yard.hears = true;
    start_server();
    server.extend_reply = "-IO the disk is full\r\n";
    start_crew(30, 1);
    set_yard(false);
    queue(1);
    (void)wait_trouble(1);
    set_yard(true);
    wait_for("ACK t1");
    stop_crew();
    CHECK(yard.was_lost);
    CHECK_EQ(yard.heard, 1);
    CHECK_EQ(yard.heard_lost, 0);
    stop_server();
    yard.hears = false;
}

/* A `told` that takes long does not delay others: their leases are extended, and a stop does not
 * wait. */
static void who_hears_holds_nobody_up(void)
{
    yard.hears = yard.is_ear_shut = true;
    start_server();
    start_crew(30, 2);
    queue(1);
    (void)pthread_mutex_lock(&yard.mutex);
    while (yard.listening == 0) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    (void)pthread_mutex_unlock(&yard.mutex);
    unsigned extended = count_told("EXTEND t1"); /* if this machine is slow */
    set_yard(false);
    queue(1);
    wait_for("EXTEND t2");
    set_yard(true);
    wait_for("ACK t2");
    CHECK(bel_crew_stop(crew, 0) == BEL_EBUSY);
    (void)pthread_mutex_lock(&yard.mutex);
    yard.is_ear_shut = false;
    (void)pthread_cond_broadcast(&yard.changed);
    (void)pthread_mutex_unlock(&yard.mutex);
    stop_crew();
    CHECK_EQ(yard.heard, 2);
    CHECK_EQ(yard.heard_lost, 0);
    CHECK_EQ(count_told("EXTEND t1"), extended);
    stop_server();
    yard.hears = false;
}

static void what_no_hand_has_seen_is_not_heard_of(void)
{
    yard.hears = true;
    start_server();
    start_crew(0, 2);
    set_yard(false);
    queue(1);
    wait_inside(1);
    CHECK(bel_crew_stop(crew, 0) == BEL_EBUSY);
    queue(1);
    set_yard(true);
    stop_crew();
    CHECK_EQ(yard.heard, 1);
    stop_server();
    yard.hears = false;
}

static void work_that_nobody_was_told_of_is_lost(void)
{
    yard.hears = true;
    start_server();
    start_crew(0, 1);
    set_yard(false);
    queue(1);
    wait_inside(1);
    stop_server();
    CHECK(bel_crew_stop(crew, 0) == BEL_EBUSY);
    set_yard(true);
    stop_crew();
    CHECK_EQ(yard.heard, 1);
    CHECK_EQ(yard.heard_lost, 1);
    yard.hears = false;
}

static void a_stop_waits_for_hands_and_claims_no_more(void)
{
    start_server();
    start_crew(0, 2);
    set_yard(false);
    queue(1);
    wait_inside(1);
    CHECK(bel_crew_stop(crew, 0) == BEL_EBUSY);
    queue(1);
    set_yard(true);
    stop_crew();
    CHECK_EQ(count_told("ACK t1"), 1);
    CHECK_EQ(count_told("ACK"), 1);
    CHECK_EQ(count_told(""), server.numbered); /* deliveries that came in between were released */
    stop_server();
}

static void a_connection_that_breaks_is_made_again(void)
{
    start_server();
    start_crew(0, 1);
    queue(1);
    wait_for("ACK t1");
    drop_all();
    queue(1);
    wait_for("ACK t2");
    CHECK(yard.troubles > 0);
    stop_crew();
    stop_server();
}

static void a_crew_without_a_server_can_be_stopped(void)
{
    start_server();
    stop_server();
    start_crew(0, 2);
    (void)wait_trouble(1);
    stop_crew();
}

static void work_without_a_server_is_given_up(void)
{
    start_server();
    start_crew(0, 1);
    set_yard(false);
    queue(1);
    wait_inside(1);
    stop_server();
    CHECK(bel_crew_stop(crew, 0) == BEL_EBUSY);
    set_yard(true);
    stop_crew();
}

/* --- with a clock that the test sets --- */

static const uint64_t second_ns = 1000000000;

/* Stops the crew and the server, and uses the clock of the system again. */
static void end_watch(void)
{
    stop_crew();
    yard.is_reader = watch.has_reader = false;
    crew_clock = NULL;
    stop_server();
}

/* Waits for trouble number `count`, and checks that the pause after it lasts `seconds`. */
static void pass_pause(unsigned count, unsigned seconds)
{
    uint64_t began = read_watch();
    CHECK_NOTE("pause %u", count);
    CHECK_EQ(wait_trouble(count), began);
    wait_asked(3); /* reads: the start of the pause, its end, and one by the idle reporter */
    set_watch(began + seconds * second_ns - 1);
    wait_asked(2);
    CHECK_EQ(wait_trouble(count), began);
    set_watch(began + seconds * second_ns);
}

static void pauses_double_up_to_half_a_minute(void)
{
    static const unsigned pauses[] = {1, 2, 4, 8, 16, 30, 30, 30};
    start_server();
    stop_server();
    use_watch();
    start_crew(0, 2);
    for (unsigned i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        pass_pause(i + 1, pauses[i]);
    }
    (void)wait_trouble(9);
    stop_crew();
    crew_clock = NULL;
}

/* Sets whether new connections reach the server. */
static void set_reachable(bool is_reachable)
{
    char aside[sizeof server.path + 1];
    (void)snprintf(aside, sizeof aside, "%s-", server.path);
    CHECK(rename(is_reachable ? aside : server.path, is_reachable ? server.path : aside) == 0);
}

static void pauses_begin_anew_after_a_success(void)
{
    start_server();
    set_reachable(false);
    use_watch();
    start_crew(0, 1);
    pass_pause(1, 1);
    pass_pause(2, 2);
    pass_pause(3, 4);
    (void)wait_trouble(4);
    set_reachable(true);
    queue(1);
    pass_pause(4, 8);
    wait_for("ACK t1");
    wait_for_claim();
    set_reachable(false);
    drop_all();
    pass_pause(5, 1);
    (void)wait_trouble(6);
    set_reachable(true);
    end_watch();
}

/* The lease is 3.3 s and the server away until 3.15 s: attempts after 1.1, 2.1 and 3.2 s. */
static void pauses_are_short_while_a_hand_works(void)
{
    start_server();
    use_watch();
    start_crew(3300, 1);
    set_yard(false);
    queue(1);
    wait_inside(1);
    set_reachable(false);
    for (unsigned i = 1; i <= 2; i++) {
        set_watch(i * second_ns + second_ns / 10 + 1);
        (void)wait_trouble(i);
        wait_asked(8); /* reads: what is due, and at least two of the pause */
    }
    set_reachable(true);
    set_watch(3 * second_ns + second_ns / 5 + 1);
    wait_for("EXTEND t1");
    set_yard(true);
    wait_for("ACK t1");
    end_watch();
    CHECK(!yard.was_lost);
}

static void a_success_of_one_thread_wakes_the_other(void)
{
    start_server();
    use_watch();
    yard.is_reader = true;
    start_crew(90000, 2);
    set_yard(false);
    queue(1);
    wait_inside(1);
    wait_for_claim();
    set_reachable(false);
    drop_all();
    pass_pause(1, 1);
    pass_pause(2, 2);
    pass_pause(3, 4);
    (void)wait_trouble(4); /* the claimer sleeps for 8 s, and the clock stands still */
    set_reachable(true);
    set_yard(true);
    wait_for("ACK t1");
    queue(1);
    wait_for("ACK t2");
    end_watch();
}

static void an_errand_that_comes_again_is_lost(void)
{
    start_server();
    start_crew(0, 2);
    set_yard(false);
    queue(1);
    wait_inside(1);
    queue_again();
    wait_inside(2);
    set_yard(true);
    stop_crew();
    CHECK_EQ(yard.lost, 1);
    stop_server();
}

/* Where the lease time comes from, and how long the lease is. */
static const struct {
    const char *said, *topic;
    uint32_t wanted_ms;
    bool is_old;
    uint64_t third_s;
} leases[] = {
    {"", "30000", 0, false, 10},
    {"", "600000", 0, false, 200},
    {" LEASE 60000", "600000", 60000, false, 20},
    {"", "600000", 0, true, 10},
};

static void a_lease_is_extended_after_each_third_of_it(unsigned place)
{
    uint64_t third_ns = leases[place].third_s * second_ns;
    char end[64];
    start_server();
    (void)snprintf(end, sizeof end, " COUNT 1%s WAIT 10000 WORKER tester", leases[place].said);
    server.claim_end = end;
    server.topic_lease = leases[place].topic;
    server.is_old = leases[place].is_old;
    use_watch();
    start_crew(leases[place].wanted_ms, 1);
    set_yard(false);
    queue(1);
    wait_inside(1);
    set_watch(third_ns);
    wait_asked(3);
    CHECK_EQ(count_told("EXTEND"), 0);
    for (unsigned i = 1; i < 10; i++) {
        set_watch(third_ns * i + i);
        while (count_told("EXTEND t1") < i) {
            wait_asked(1);
        }
        CHECK_EQ(count_told(""), i);
        wait_asked(5);
    }
    set_yard(true);
    wait_for("ACK t1");
    end_watch();
    CHECK(!yard.was_lost);
}

static void leases_are_extended_whoever_says_how_long_they_are(void)
{
    for (unsigned i = 0; i < sizeof leases / sizeof leases[0]; i++) {
        CHECK_NOTE("case %u", i);
        a_lease_is_extended_after_each_third_of_it(i);
    }
}

static int stopped; /* result of the stop; 1: still running */

static void *stop_after_grace(void *arg)
{
    (void)arg;
    int err = bel_crew_stop(crew, BEL_CREW_GRACE_MS_DEFAULT);
    (void)pthread_mutex_lock(&yard.mutex);
    stopped = err;
    (void)pthread_mutex_unlock(&yard.mutex);
    return NULL;
}

/* Stops the crew, and checks the duration and the result. */
static void check_stop(uint64_t wanted_ns, int wanted)
{
    pthread_t thread;
    uint64_t began = read_watch();
    stopped = 1;
    CHECK(pthread_create(&thread, NULL, stop_after_grace, NULL) == 0);
    (void)pthread_mutex_lock(&watch.mutex);
    watch.has_reader = true;
    watch.reader = thread;
    (void)pthread_mutex_unlock(&watch.mutex);
    wait_asked(4); /* reads: the start, twice, and the end */
    set_watch(began + wanted_ns - 1);
    wait_asked(2);
    (void)pthread_mutex_lock(&yard.mutex);
    CHECK(stopped == 1);
    (void)pthread_mutex_unlock(&yard.mutex);
    set_watch(began + wanted_ns);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)pthread_mutex_lock(&watch.mutex);
    watch.has_reader = false;
    (void)pthread_mutex_unlock(&watch.mutex);
    CHECK(stopped == wanted);
}

static void a_stop_takes_no_longer_than_the_grace(void)
{
    start_server();
    use_watch();
    start_crew(60000, 2);
    set_yard(false);
    queue(1);
    wait_inside(1);
    check_stop(15 * second_ns, BEL_EBUSY);
    set_yard(true);
    stop_crew();
    CHECK_EQ(count_told("ACK t1"), 1);
    crew_clock = NULL;
    stop_server();
}

/* Neither the waiting claim nor the ack gets a reply. */
static void a_server_that_does_not_answer_is_given_up(void)
{
    start_server();
    use_watch();
    start_crew(60000, 2);
    set_yard(false);
    queue(1);
    wait_inside(1);
    (void)pthread_mutex_lock(&server.mutex);
    server.is_mute = true;
    (void)pthread_mutex_unlock(&server.mutex);
    set_yard(true);
    wait_for("ACK t1");
    check_stop(10 * second_ns, 0);
    bel_crew_destroy(crew);
    crew_clock = NULL;
    stop_server();
}

int main(void)
{
    RUN(what_is_done_is_acked);
    RUN(a_report_says_how_it_went);
    RUN(no_more_is_claimed_than_there_are_hands);
    RUN(there_are_five_hands_unless_told);
    RUN(all_topics_are_claimed_from);
    RUN(a_lease_is_extended_while_a_hand_works);
    RUN(a_lease_that_is_lost_is_known);
    RUN(what_the_server_says_to_an_answer_is_heard);
    RUN(the_last_word_is_that_to_the_answer);
    RUN(who_hears_holds_nobody_up);
    RUN(what_no_hand_has_seen_is_not_heard_of);
    RUN(work_that_nobody_was_told_of_is_lost);
    RUN(a_stop_waits_for_hands_and_claims_no_more);
    RUN(a_connection_that_breaks_is_made_again);
    RUN(a_crew_without_a_server_can_be_stopped);
    RUN(work_without_a_server_is_given_up);
    RUN(pauses_double_up_to_half_a_minute);
    RUN(pauses_begin_anew_after_a_success);
    RUN(pauses_are_short_while_a_hand_works);
    RUN(a_success_of_one_thread_wakes_the_other);
    RUN(an_errand_that_comes_again_is_lost);
    RUN(leases_are_extended_whoever_says_how_long_they_are);
    RUN(a_stop_takes_no_longer_than_the_grace);
    RUN(a_server_that_does_not_answer_is_given_up);
    return 0;
}
