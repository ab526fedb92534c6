/* SPDX-License-Identifier: MIT */

/*
 * A crew, and a thread that plays the server: it delivers what a case has queued, keeps claims
 * waiting if there is nothing, and writes down whatever else it is told. Cases wait for what they
 * expect to be written down; one that waits in vain is ended by an alarm.
 */
#include "belfry/crew.h"

#include "client/reader.h"

#include "../check.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    PATIENCE_S = 60,
    CONNECTIONS = 8,
    LINES = 200,
    LINE_BYTES = 300,
    INPUT_BYTES = 64 << 10,
    GRACE_MS = 50000,
};

/* --- the server --- */

struct connection {
    int fd;         /* -1: none */
    bool is_closed; /* the other has closed, and nobody has noticed */
    size_t bytes;
    unsigned claims; /* deliveries that are waited for; 0: no claim waits */
    char input[INPUT_BYTES];
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    char folder[64], path[96];
    int listener, pipe[2];
    struct connection connections[CONNECTIONS];
    unsigned queued, numbered; /* deliveries to come, and made */
    const char *extend_reply, *claim_start;
    bool drops, ends;
    bool is_mute; /* does not answer, and does not notice that others close */
    char lines[LINES][LINE_BYTES];
    unsigned lines_count;
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void answer(struct connection *connection, const char *text)
{
    if (!server.is_mute) (void)send(connection->fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Answers a claim that waits, if there is something. */
static void deliver(struct connection *connection)
{
    unsigned count = server.queued < connection->claims ? server.queued : connection->claims;
    char text[LINE_BYTES];
    if (count == 0) return;
    (void)snprintf(text, sizeof text, "*%u\r\n", count);
    answer(connection, text);
    for (unsigned i = 0; i < count; i++) {
        unsigned number = ++server.numbered;
        int digits = snprintf(NULL, 0, "%u", number);
        (void)snprintf(text, sizeof text,
                       "*7\r\n$%d\r\nt%u\r\n$4\r\nmail\r\n$%d\r\ni%u\r\n$5\r\na\r\nbc\r\n:%u\r\n"
                       ":1\r\n*2\r\n$5\r\ncolor\r\n$3\r\nred\r\n",
                       digits + 1, number, digits + 1, number, 1000 + number);
        answer(connection, text);
    }
    server.queued -= count;
    connection->claims = 0;
}

static void obey(struct connection *connection, const struct bel_value *command)
{
    char line[LINE_BYTES] = "";
    for (size_t i = 0; i < command->count; i++) {
        size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, "%s%.*s", i > 0 ? " " : "",
                       (int)command->items[i].text.bytes,
                       (const char *)command->items[i].text.data);
    }
    if (strncmp(line, "CLAIM ", 6) == 0) {
        const struct bel_value *count = &command->items[command->count - 7];
        CHECK(strstr(line, server.claim_start) == line);
        connection->claims = (unsigned)strtoul(count->text.data, NULL, 10);
    } else if (strncmp(line, "EXTEND", 6) == 0) {
        answer(connection, server.extend_reply);
    } else {
        answer(connection, strncmp(line, "FAIL", 4) == 0 ? "*2\r\n$4\r\ndead\r\n:0\r\n" : ":1\r\n");
    }
    if (connection->claims == 0 && server.lines_count < LINES) {
        memcpy(server.lines[server.lines_count++], line, sizeof line);
    }
    (void)pthread_cond_broadcast(&server.changed);
}

static void drop(struct connection *connection)
{
    (void)close(connection->fd);
    connection->fd = -1;
    connection->claims = 0;
}

static void hear(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->input + connection->bytes,
                       INPUT_BYTES - connection->bytes, MSG_DONTWAIT);
    connection->is_closed = got <= 0;
    if (got <= 0 && !server.is_mute) drop(connection);
    if (got <= 0) return;
    connection->bytes += (size_t)got;
    struct bel_reader reader;
    bel__reader_init(&reader, INPUT_BYTES, 100);
    while (bel__reader_scan(&reader, (uint8_t *)connection->input, connection->bytes) == 0) {
        const struct bel_value *command;
        CHECK(bel__reader_build(&reader, (uint8_t *)connection->input, &command) == 0);
        obey(connection, command);
        connection->bytes -= reader.bytes;
        memmove(connection->input, connection->input + reader.bytes, connection->bytes);
        bel__reader_reset(&reader);
    }
    bel__reader_finish(&reader);
}

static void welcome(void)
{
    struct connection *connection = server.connections;
    while (connection->fd >= 0) {
        connection++;
    }
    CHECK(connection < server.connections + CONNECTIONS);
    connection->fd = accept(server.listener, NULL, NULL);
    connection->bytes = connection->claims = 0;
    connection->is_closed = false;
}

static void *serve(void *arg)
{
    struct pollfd sets[CONNECTIONS + 2] = {{.fd = server.pipe[0], .events = POLLIN},
                                           {.fd = server.listener, .events = POLLIN}};
    (void)arg;
    (void)pthread_mutex_lock(&server.mutex);
    while (!server.ends) {
        for (int i = 0; i < CONNECTIONS; i++) {
            if (server.drops && server.connections[i].fd >= 0) drop(&server.connections[i]);
            if (server.connections[i].claims > 0) deliver(&server.connections[i]);
            int fd = server.connections[i].is_closed ? -1 : server.connections[i].fd;
            sets[i + 2] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
        server.drops = false;
        (void)pthread_mutex_unlock(&server.mutex);
        (void)poll(sets, CONNECTIONS + 2, -1);
        (void)pthread_mutex_lock(&server.mutex);
        char wakes[16];
        if (sets[0].revents) (void)!read(server.pipe[0], wakes, sizeof wakes);
        for (int i = 0; i < CONNECTIONS; i++) {
            if (sets[i + 2].revents && server.connections[i].fd >= 0) hear(&server.connections[i]);
        }
        if (sets[1].revents) welcome();
    }
    (void)pthread_mutex_unlock(&server.mutex);
    return NULL;
}

static void wake(void)
{
    CHECK(write(server.pipe[1], "", 1) == 1);
}

static void queue(unsigned count)
{
    (void)pthread_mutex_lock(&server.mutex);
    server.queued += count;
    (void)pthread_mutex_unlock(&server.mutex);
    wake();
}

/* Whether a line that starts so was written down. */
static bool was_told(const char *start)
{
    for (unsigned i = 0; i < server.lines_count; i++) {
        if (strncmp(server.lines[i], start, strlen(start)) == 0) return true;
    }
    return false;
}

static void wait_for(const char *line)
{
    CHECK_NOTE("waits for %s", line);
    (void)pthread_mutex_lock(&server.mutex);
    while (!was_told(line)) {
        (void)pthread_cond_wait(&server.changed, &server.mutex);
    }
    (void)pthread_mutex_unlock(&server.mutex);
}

static unsigned count_told(const char *start)
{
    unsigned count = 0;
    (void)pthread_mutex_lock(&server.mutex);
    for (unsigned i = 0; i < server.lines_count; i++) {
        count += strncmp(server.lines[i], start, strlen(start)) == 0;
    }
    (void)pthread_mutex_unlock(&server.mutex);
    return count;
}

static void start_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)alarm(PATIENCE_S);
    (void)snprintf(server.folder, sizeof server.folder, "/tmp/test_crew.XXXXXX");
    CHECK(mkdtemp(server.folder) != NULL);
    (void)snprintf(server.path, sizeof server.path, "%s/socket", server.folder);
    memcpy(address.sun_path, server.path, sizeof server.path);
    server.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(server.listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(server.listener, 8) == 0);
    CHECK(pipe(server.pipe) == 0);
    server.ends = server.drops = server.is_mute = false;
    server.claim_start = "CLAIM mail COUNT ";
    server.queued = server.numbered = server.lines_count = 0;
    server.extend_reply = ":30000\r\n";
    for (int i = 0; i < CONNECTIONS; i++) {
        server.connections[i].fd = -1;
        server.connections[i].claims = 0;
    }
    CHECK(pthread_create(&server.thread, NULL, serve, NULL) == 0);
}

static void stop_server(void)
{
    (void)pthread_mutex_lock(&server.mutex);
    server.ends = true;
    (void)pthread_mutex_unlock(&server.mutex);
    wake();
    CHECK(pthread_join(server.thread, NULL) == 0);
    for (int i = 0; i < CONNECTIONS; i++) {
        if (server.connections[i].fd >= 0) drop(&server.connections[i]);
    }
    (void)close(server.listener);
    (void)close(server.pipe[0]);
    (void)close(server.pipe[1]);
    (void)unlink(server.path);
    (void)rmdir(server.folder);
}

/* --- the crew --- */

static const char *const topics[] = {"mail", "post"};
static size_t topics_count = 1;
static struct bel_crew *crew;

/* A clock that is set, and that counts how often it was asked: whoever has asked since has seen
 * what it says now, and if it has asked twice it has decided to go on waiting. */
static struct {
    struct bel_clock clock;
    pthread_mutex_t mutex;
    pthread_cond_t asked;
    uint64_t ns;
    unsigned reads;
    bool has_reader; /* only those of one thread are counted */
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

/* Waits until the clock was asked so often. */
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
    bool is_open; /* else they wait for it */
    unsigned inside, inside_max, troubles;
    uint64_t trouble_ns; /* when the last was */
    bool was_lost;
} yard = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void check_errand(const struct bel_errand *errand)
{
    struct bel_view color = {0};
    CHECK(errand->payload.bytes == 5 && memcmp(errand->payload.data, "a\r\nbc", 6) == 0);
    CHECK(strcmp(errand->topic.data, "mail") == 0);
    CHECK(strcmp((const char *)errand->token.data + 1, (const char *)errand->id.data + 1) == 0);
    CHECK((uint64_t)errand->due.ms == 1000 + strtoul((const char *)errand->id.data + 1, NULL, 10));
    CHECK_EQ(errand->attempt, 1);
    CHECK_EQ(errand->headers_count, 1);
    CHECK(bel_errand_find(errand, "color", &color) && strcmp(color.data, "red") == 0);
    CHECK(!bel_errand_find(errand, "colo", &color));
}

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
    yard.was_lost = bel_errand_is_lost(errand);
    yard.inside--;
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void trouble(void *context, const char *text)
{
    CHECK(context == &yard && text[0] != '\0');
    (void)pthread_mutex_lock(&yard.mutex);
    yard.troubles++;
    yard.trouble_ns = read_watch();
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

/* Waits for the n-th trouble, and returns when it was. */
static uint64_t wait_trouble(unsigned count)
{
    (void)pthread_mutex_lock(&yard.mutex);
    while (yard.troubles < count) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    CHECK_EQ(yard.troubles, count);
    uint64_t ns = yard.trouble_ns;
    (void)pthread_mutex_unlock(&yard.mutex);
    return ns;
}

static void wait_troubled(void)
{
    (void)pthread_mutex_lock(&yard.mutex);
    while (yard.troubles == 0) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    (void)pthread_mutex_unlock(&yard.mutex);
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
                                       .context = &yard};
    yard.report = (struct bel_report){.kind = BEL_REPORT_DONE};
    yard.is_open = true;
    yard.inside = yard.inside_max = yard.troubles = 0;
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
    wait_troubled();
    set_yard(true);
    wait_for("ACK t1");
    stop_crew();
    CHECK(yard.was_lost);
    CHECK_EQ(count_told("EXTEND"), 1);
    stop_server();
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
    CHECK_EQ(count_told(""), server.numbered); /* what came in between was given back */
    stop_server();
}

/* The first pause is a second. */
static void a_connection_that_breaks_is_made_again(void)
{
    start_server();
    start_crew(0, 1);
    queue(1);
    wait_for("ACK t1");
    (void)pthread_mutex_lock(&server.mutex);
    server.drops = true;
    (void)pthread_mutex_unlock(&server.mutex);
    wake();
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
    wait_troubled();
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

/* --- with a clock that is set --- */

static const uint64_t second_ns = 1000000000;

static void pauses_double_up_to_half_a_minute(void)
{
    static const unsigned pauses[] = {1, 2, 4, 8, 16, 30, 30, 30};
    uint64_t wanted = 1;
    start_server();
    stop_server();
    use_watch();
    start_crew(0, 2);
    for (unsigned i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        CHECK_NOTE("pause %u", i);
        CHECK_EQ(wait_trouble(i + 1), wanted);
        wait_asked(2); /* when the pause begins, and whether it is over */
        wanted += pauses[i] * second_ns;
        set_watch(wanted - 1);
        wait_asked(2);
        CHECK_EQ(wait_trouble(i + 1), wanted - pauses[i] * second_ns);
        set_watch(wanted);
    }
    (void)wait_trouble(9);
    stop_crew();
    crew_clock = NULL;
}

static void a_lease_is_extended_after_each_third_of_it(void)
{
    start_server();
    use_watch();
    start_crew(0, 1);
    set_yard(false);
    queue(1);
    wait_inside(1);
    set_watch(10 * second_ns);
    wait_asked(3);
    CHECK_EQ(count_told("EXTEND"), 0);
    for (unsigned i = 1; i < 10; i++) {
        set_watch(10 * second_ns * i + i);
        while (count_told("EXTEND t1") < i) {
            wait_asked(1);
        }
        CHECK_EQ(count_told(""), i);
        wait_asked(5);
    }
    set_yard(true);
    wait_for("ACK t1");
    stop_crew();
    CHECK(!yard.was_lost);
    crew_clock = NULL;
    stop_server();
}

static int stopped; /* what the stop has returned; 1: it has not yet */

static void *stop_after_grace(void *arg)
{
    (void)arg;
    int err = bel_crew_stop(crew, BEL_CREW_GRACE_MS_DEFAULT);
    (void)pthread_mutex_lock(&yard.mutex);
    stopped = err;
    (void)pthread_mutex_unlock(&yard.mutex);
    return NULL;
}

/* Stops the crew, and checks that this takes so long and returns that. */
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
    wait_asked(4); /* when it begins, twice, and whether it is over */
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

/* Neither the claim that waits nor the ack is answered. */
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
    RUN(a_stop_waits_for_hands_and_claims_no_more);
    RUN(a_connection_that_breaks_is_made_again);
    RUN(a_crew_without_a_server_can_be_stopped);
    RUN(work_without_a_server_is_given_up);
    RUN(pauses_double_up_to_half_a_minute);
    RUN(a_lease_is_extended_after_each_third_of_it);
    RUN(a_stop_takes_no_longer_than_the_grace);
    RUN(a_server_that_does_not_answer_is_given_up);
    return 0;
}
