/* SPDX-License-Identifier: MIT */

/*
 * The threads of a bench, called hands, one per connection. A hand fills its pipeline, receives
 * half of the replies and fills the pipeline again, so that commands and replies travel in batches.
 * A FIFO holds the time at which each command was sent:
 *
 *     send ---> [ sent, sent, ... ] ---> receive: latency = now - sent
 *
 * Each delivery is acknowledged as it arrives. At most two claims are in flight, and the FIFO has
 * room for the acks of both. A hand that is stopped sends no more claims but acks what it has
 * claimed: a leased timer could not be purged.
 *
 * The main thread waits for the hands or for a signal, and draws the progress.
 */
#include "cli/bench.h"

#include "cli/print.h"
#include "cli/progress.h"
#include "core/parse.h"
#include "core/units.h"
#include "core/why.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    CLAIMS_MAX = 2, /* in flight, per hand */
    CLAIM_COUNT_MAX = 100,
    ID_BYTES = 2 + 2 * BEL_PRINT_BYTES_MAX,
};

/* A command in flight. */
struct sent {
    uint64_t at_ns;
    bool is_claim;
};

struct hand {
    struct bench *bench;
    pthread_t thread;
    struct bel_client *client;
    unsigned number;
    uint64_t share;    /* number of timers that this hand schedules or cancels */
    struct sent *fifo; /* a ring buffer */
    size_t fifo_room, fifo_at;
    unsigned claims;     /* in flight */
    bool has_found_none; /* a claim returned nothing: the topic is empty */
    uint64_t began, ended;
    _Atomic uint64_t done;              /* timers; the main thread reads it */
    struct bel_histogram first, second; /* latencies of the phase's commands, and of acks */
    int err;                            /* error of the connection; or 0 */
    struct bel_why problem;             /* error reply of the server; or empty */
};

struct bench {
    const struct bench_settings *settings;
    char *payload;
    enum bench_phase phase;
    int over_fd; /* an eventfd that counts the hands that have ended */
    atomic_bool stops;
    _Atomic uint64_t claimed;
    size_t hands_count;
    struct hand hands[];
};

static uint64_t now_ns(void)
{
    return bel_clock_mono(bel_clock_system()).ns;
}

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* --- sending --- */

static void send_command(struct hand *hand, const struct bel_view *args, size_t count,
                         bool is_claim)
{
    size_t pending = bel_client_pending(hand->client);
    assert(pending < hand->fifo_room);
    hand->err = bel_client_send(hand->client, args, count);
    hand->fifo[(hand->fifo_at + pending) % hand->fifo_room] = (struct sent){now_ns(), is_claim};
}

static struct bel_view id_of(const struct hand *hand, uint64_t number, char out[ID_BYTES])
{
    int bytes = snprintf(out, ID_BYTES, "%u-%llu", hand->number, (unsigned long long)number);
    return (struct bel_view){out, (size_t)bytes};
}

/* Sends the command of the phase for timer `number` of the hand. */
static void send_next(struct hand *hand, uint64_t number)
{
    const struct bench_settings *settings = hand->bench->settings;
    const struct bel_view payload = {hand->bench->payload, settings->bytes};
    const struct bel_view later = view_of(settings->later);
    char id[ID_BYTES];
    if (hand->bench->phase == BENCH_SCHEDULE) {
        const struct bel_view args[] = {BEL_VIEW("SCHEDULE"), view_of(settings->due), payload};
        send_command(hand, args, 3, false);
    } else if (hand->bench->phase == BENCH_LATER) {
        const struct bel_view args[] = {
            BEL_VIEW("SCHEDULE"),    later,          payload,       BEL_VIEW("ID"),
            id_of(hand, number, id), BEL_VIEW("IN"), BEL_VIEW("1h")};
        send_command(hand, args, 7, false);
    } else {
        const struct bel_view args[] = {BEL_VIEW("CANCEL"), later, id_of(hand, number, id)};
        send_command(hand, args, 3, false);
    }
}

static uint64_t claim_count(const struct bench_settings *settings)
{
    return settings->pipeline < CLAIM_COUNT_MAX ? settings->pipeline : CLAIM_COUNT_MAX;
}

static void send_claim(struct hand *hand)
{
    const struct bench_settings *settings = hand->bench->settings;
    char text[BEL_PRINT_BYTES_MAX];
    const struct bel_view count = {text, bel__print_u64(text, claim_count(settings))};
    const struct bel_view args[] = {BEL_VIEW("CLAIM"), view_of(settings->due), BEL_VIEW("COUNT"),
                                    count};
    send_command(hand, args, 4, true);
    hand->claims++;
}

/* --- receiving --- */

static void refuse(struct hand *hand, struct bel_view text)
{
    (void)bel__why_say(&hand->problem, BEL_EINVAL, "%.*s", (int)text.bytes,
                       (const char *)text.data);
    atomic_store(&hand->bench->stops, true);
}

/* Acks each delivery. The tokens point into the reply, which is valid until the next receive. */
static void receive_claim(struct hand *hand, const struct bel_value *reply, uint64_t took_ns)
{
    hand->claims--;
    if (reply->type != BEL_VALUE_LIST || reply->count > claim_count(hand->bench->settings)) {
        refuse(hand, BEL_VIEW("ERR the reply to CLAIM has an unexpected form"));
        return;
    }
    if (reply->count == 0) hand->has_found_none = true;
    bel__histogram_record_many(&hand->first, took_ns, reply->count);
    (void)atomic_fetch_add(&hand->bench->claimed, reply->count);
    for (size_t i = 0; i < reply->count && hand->err == 0; i++) {
        const struct bel_value *delivery = &reply->items[i];
        if (delivery->type != BEL_VALUE_LIST || delivery->count == 0) continue;
        const struct bel_view args[] = {BEL_VIEW("ACK"), delivery->items[0].text};
        send_command(hand, args, 2, false);
    }
}

static void receive(struct hand *hand)
{
    const struct bel_value *reply;
    hand->err = bel_client_receive(hand->client, &reply);
    if (hand->err) return;
    struct sent sent = hand->fifo[hand->fifo_at];
    hand->fifo_at = (hand->fifo_at + 1) % hand->fifo_room;
    uint64_t took_ns = now_ns() - sent.at_ns;
    if (sent.is_claim && reply->type != BEL_VALUE_ERROR) {
        receive_claim(hand, reply, took_ns);
        return;
    }
    if (reply->type == BEL_VALUE_ERROR) {
        hand->claims -= sent.is_claim;
        refuse(hand, reply->text);
        return;
    }
    bool is_ack = hand->bench->phase == BENCH_CLAIM;
    bool is_number = is_ack || hand->bench->phase == BENCH_CANCEL;
    if (is_number && (reply->type != BEL_VALUE_NUMBER || reply->number != 1)) {
        refuse(hand, is_ack
                         ? BEL_VIEW("STALE the lease has ended before the ack arrived")
                         : BEL_VIEW("NOTFOUND another client has cancelled a timer of the bench"));
        return;
    }
    bel__histogram_record(is_ack ? &hand->second : &hand->first, took_ns);
    (void)atomic_fetch_add_explicit(&hand->done, 1, memory_order_relaxed);
}

/* --- a hand --- */

static bool goes_on(const struct hand *hand)
{
    return hand->err == 0 && !atomic_load(&hand->bench->stops);
}

static void send_all(struct hand *hand)
{
    uint64_t sent = 0;
    size_t pipeline = (size_t)hand->bench->settings->pipeline;
    while (hand->err == 0) {
        while (goes_on(hand) && sent < hand->share && bel_client_pending(hand->client) < pipeline) {
            send_next(hand, sent++);
        }
        bool is_last = sent == hand->share || !goes_on(hand);
        size_t wanted = is_last ? 0 : pipeline / 2;
        if (bel_client_pending(hand->client) == 0) break;
        while (hand->err == 0 && bel_client_pending(hand->client) > wanted) {
            receive(hand);
        }
    }
}

static void claim_all(struct hand *hand)
{
    const struct bench_settings *settings = hand->bench->settings;
    while (hand->err == 0) {
        while (goes_on(hand) && !hand->has_found_none && hand->claims < CLAIMS_MAX &&
               bel_client_pending(hand->client) < settings->pipeline &&
               atomic_load(&hand->bench->claimed) < settings->timers) {
            send_claim(hand);
        }
        if (hand->err != 0 || bel_client_pending(hand->client) == 0) break;
        receive(hand);
    }
}

static void *work(void *arg)
{
    struct hand *hand = arg;
    const uint64_t one = 1;
    hand->began = now_ns();
    if (hand->bench->phase == BENCH_CLAIM) {
        claim_all(hand);
    } else {
        send_all(hand);
    }
    hand->ended = now_ns();
    if (hand->err) atomic_store(&hand->bench->stops, true);
    (void)!write(hand->bench->over_fd, &one, sizeof one);
    return NULL;
}

/* --- the main thread --- */

static const char *name_of(enum bench_phase phase)
{
    static const char *const names[] = {[BENCH_SCHEDULE] = "schedule",
                                        [BENCH_CLAIM] = "claim and ack",
                                        [BENCH_LATER] = "schedule later",
                                        [BENCH_CANCEL] = "cancel"};
    return names[phase];
}

static void draw(const struct bench *bench, const struct cli_progress *progress, uint64_t began)
{
    uint64_t done = 0;
    for (size_t i = 0; i < bench->hands_count; i++) {
        done += atomic_load_explicit(&bench->hands[i].done, memory_order_relaxed);
    }
    bel__progress_draw(progress, done, (now_ns() - began) / NS_PER_MS);
}

/* Waits until `started` hands have ended. Returns whether a signal has arrived meanwhile. */
static bool wait_for_hands(struct bench *bench, size_t started, const sigset_t *signals)
{
    struct signalfd_siginfo told;
    struct cli_progress progress;
    uint64_t ended = 0, more, began = now_ns();
    bool is_told = false;
    int signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    struct pollfd sets[] = {{.fd = bench->over_fd, .events = POLLIN},
                            {.fd = signal_fd, .events = POLLIN}};
    bel__progress_start(&progress, name_of(bench->phase), bench->settings->timers);
    while (ended < started) {
        draw(bench, &progress, began);
        (void)poll(sets, 2, progress.is_shown ? CLI_PROGRESS_MS : -1);
        if (sets[1].revents != 0 && read(signal_fd, &told, sizeof told) == sizeof told) {
            is_told = true;
            atomic_store(&bench->stops, true);
            /* The next signal has its default effect. */
            (void)pthread_sigmask(SIG_UNBLOCK, signals, NULL);
        }
        if (sets[0].revents != 0 && read(bench->over_fd, &more, sizeof more) == sizeof more) {
            ended += more;
        }
    }
    bel__progress_end(&progress);
    if (signal_fd >= 0) (void)close(signal_fd);
    return is_told;
}

static void reset(struct hand *hand)
{
    atomic_store(&hand->done, 0);
    hand->has_found_none = false;
    bel__histogram_init(&hand->first);
    bel__histogram_init(&hand->second);
}

/* Starts the hands, which inherit the signal mask. Returns the number of hands started. */
static size_t start_hands(struct bench *bench)
{
    size_t started = 0;
    for (size_t i = 0; i < bench->hands_count; i++) {
        reset(&bench->hands[i]);
    }
    while (started < bench->hands_count) {
        struct hand *hand = &bench->hands[started];
        if (pthread_create(&hand->thread, NULL, work, hand) != 0) {
            fprintf(stderr, "belfry: cannot start a thread: %s\n", bel__cli_problem(errno));
            atomic_store(&bench->stops, true);
            break;
        }
        started++;
    }
    return started;
}

/* Sums up the measurements of the hands. */
static void add_up(struct bench *bench, struct bench_result results[BENCH_ROWS])
{
    static const enum bench_row rows[] = {[BENCH_SCHEDULE] = BENCH_ROW_SCHEDULE,
                                          [BENCH_CLAIM] = BENCH_ROW_CLAIM,
                                          [BENCH_LATER] = BENCH_ROW_LATER,
                                          [BENCH_CANCEL] = BENCH_ROW_CANCEL};
    struct bench_result *result = &results[rows[bench->phase]];
    struct bench_result *acks = &results[BENCH_ROW_ACK];
    uint64_t began = UINT64_MAX, ended = 0;
    for (size_t i = 0; i < bench->hands_count; i++) {
        const struct hand *hand = &bench->hands[i];
        if (hand->began < began) began = hand->began;
        if (hand->ended > ended) ended = hand->ended;
        bel__histogram_merge(&result->latency_ns, &hand->first);
        if (bench->phase == BENCH_CLAIM) bel__histogram_merge(&acks->latency_ns, &hand->second);
    }
    result->count = bel__histogram_count(&result->latency_ns);
    result->elapsed_ns = ended - began;
    if (bench->phase != BENCH_CLAIM) return;
    acks->count = bel__histogram_count(&acks->latency_ns);
    acks->elapsed_ns = result->elapsed_ns;
}

/* Prints the error of the first hand that has one. Returns the exit status. */
static int judge(const struct bench *bench)
{
    for (size_t i = 0; i < bench->hands_count; i++) {
        const struct hand *hand = &bench->hands[i];
        if (hand->err) return bel__connect_failed(&bench->settings->connect, hand->err);
        if (hand->problem.text[0] == '\0') continue;
        struct bel_value error = {.type = BEL_VALUE_ERROR, .text = view_of(hand->problem.text)};
        return bel__connect_refused(&error);
    }
    return CLI_OK;
}

int bel__bench_run(struct bench *bench, enum bench_phase phase, const sigset_t *signals,
                   struct bench_result results[BENCH_ROWS], bool *out_is_told)
{
    bench->phase = phase;
    size_t started = start_hands(bench);
    bool is_told = wait_for_hands(bench, started, signals);
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(bench->hands[i].thread, NULL);
    }
    if (is_told) *out_is_told = true;
    if (started < bench->hands_count) return CLI_FAILED;
    add_up(bench, results);
    int status = judge(bench);
    uint64_t acked = results[BENCH_ROW_ACK].count;
    if (status != CLI_OK || is_told || phase != BENCH_CLAIM || acked == bench->settings->timers) {
        return status;
    }
    fprintf(stderr, "belfry: claimed %llu of %llu timers: is another worker on this topic?\n",
            (unsigned long long)acked, (unsigned long long)bench->settings->timers);
    return CLI_FAILED;
}

/* --- opening and closing --- */

static int init_hand(struct bench *bench, unsigned number)
{
    const struct bench_settings *settings = bench->settings;
    struct hand *hand = &bench->hands[number];
    uint64_t rest = settings->timers % settings->connections;
    hand->bench = bench;
    hand->number = number;
    hand->share = settings->timers / settings->connections + (number < rest);
    hand->fifo_room = (size_t)(settings->pipeline + CLAIMS_MAX * (claim_count(settings) + 1));
    hand->fifo = calloc(hand->fifo_room, sizeof hand->fifo[0]);
    if (hand->fifo != NULL) return bel__connect_open(&settings->connect, &hand->client);
    fprintf(stderr, "belfry: out of memory\n");
    return CLI_FAILED;
}

int bel__bench_open(const struct bench_settings *settings, struct bench **out)
{
    size_t count = (size_t)settings->connections;
    struct bench *bench = calloc(1, sizeof *bench + count * sizeof bench->hands[0]);
    if (bench == NULL) return CLI_FAILED;
    bench->settings = settings;
    bench->over_fd = eventfd(0, EFD_CLOEXEC);
    bench->payload = malloc((size_t)settings->bytes + 1);
    int status = bench->over_fd < 0 || bench->payload == NULL ? CLI_FAILED : CLI_OK;
    if (status != CLI_OK) fprintf(stderr, "belfry: %s\n", bel__cli_problem(errno));
    for (size_t i = 0; status == CLI_OK && i < settings->bytes; i++) {
        bench->payload[i] = (char)('a' + i % ('z' - 'a' + 1));
    }
    while (status == CLI_OK && bench->hands_count < count) {
        status = init_hand(bench, (unsigned)bench->hands_count++);
    }
    if (status != CLI_OK) {
        bel__bench_close(bench);
        return status;
    }
    *out = bench;
    return CLI_OK;
}

void bel__bench_close(struct bench *bench)
{
    if (bench == NULL) return;
    for (size_t i = 0; i < bench->hands_count; i++) {
        bel_client_close(bench->hands[i].client);
        free(bench->hands[i].fifo);
    }
    if (bench->over_fd >= 0) (void)close(bench->over_fd);
    free(bench->payload);
    free(bench);
}
