/* SPDX-License-Identifier: MIT */

/*
 * A crew has three kinds of threads: a claimer, a clerk, and hands that run the callback. The
 * claimer's link is only for CLAIM, which waits and blocks later commands. The clerk's link is for
 * all other commands: it sends the pending ACK, FAIL, RELEASE and EXTEND of all hands in one batch.
 * Each thread reconnects when its link breaks. A link leads to a server (crew_server.c), or to a
 * driver in the same process (local_crew/).
 *
 * To stop, the crew interrupts the claimer's link, and the claim is withdrawn. Deliveries that
 * arrive before that are released. If there is no reply within PATIENCE_MS, both links are
 * interrupted for good, and reports not yet sent are lost.
 *
 * This file starts and stops the threads and has the hands.
 */
#include "client/crew.h"

#include "core/units.h"
#include "core/view.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAUSE_MS_MIN = 10,
    PAUSE_MS_MAX = 30000,
    PAUSES_MAX = 6,        /* the longest pause is reached after 6 doublings */
    PATIENCE_MS = 10000,   /* wait for the server's replies when stopping, after the last hand */
    LOOK_NS = 1000 * 1000, /* polling interval of a clock that is not the system's */
    TROUBLE_BYTES = 512,
};

/* --- shared by the threads --- */

struct bel_mono bel__crew_now(const struct bel_crew *crew)
{
    return bel_clock_mono(crew->clock);
}

struct bel_mono bel__crew_after(const struct bel_crew *crew, uint64_t ms)
{
    struct bel_mono at = bel__crew_now(crew);
    int err = bel_mono_add(at, ms * NS_PER_MS, &at);
    assert(!err); /* 584 years of uptime would overflow */
    (void)err;
    return at;
}

void bel__crew_wait(struct bel_crew *crew, pthread_cond_t *changed, struct bel_mono until)
{
    if (until.ns == BEL_NEVER) {
        (void)pthread_cond_wait(changed, &crew->mutex);
        return;
    }
    if (crew->clock != bel_clock_system()) {
        until.ns = bel_clock_mono(bel_clock_system()).ns + LOOK_NS;
    }
    struct timespec at = {(time_t)(until.ns / NS_PER_S), (long)(until.ns % NS_PER_S)};
    (void)pthread_cond_timedwait(changed, &crew->mutex, &at);
}

void bel__crew_trouble(struct bel_crew *crew, const char *format, ...)
{
    char text[TROUBLE_BYTES];
    va_list args;
    if (crew->options.trouble == NULL) return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    crew->options.trouble(crew->options.context, text);
}

uint64_t bel__crew_pause_ms(const struct bel_crew *crew, uint64_t ms)
{
    for (unsigned i = 0; i < crew->options.hands; i++) {
        const struct bel_slot *slot = &crew->slots[i];
        bool is_busy = slot->state != BEL_SLOT_IDLE && slot->state != BEL_SLOT_TOLD;
        if (!is_busy || slot->is_lost) continue;
        uint32_t third = slot->lease_ms / 3;
        if (third < PAUSE_MS_MIN) third = PAUSE_MS_MIN;
        if (ms > third) ms = third;
    }
    return ms;
}

/* Sleeps after consecutive failures: 1, 2, 4 ... 30 s, or less while hands work, or until the crew
 * is stopped or the server can be reached again. */
static void pause_after(struct bel_crew *crew, const struct bel_failures *failures)
{
    bool is_long = failures->count > PAUSES_MAX;
    uint64_t ms = is_long ? PAUSE_MS_MAX : UINT64_C(1000) << (failures->count - 1);
    if (ms > PAUSE_MS_MAX) ms = PAUSE_MS_MAX;
    (void)pthread_mutex_lock(&crew->mutex);
    struct bel_mono end = bel__crew_after(crew, bel__crew_pause_ms(crew, ms));
    /* The claimer and the clerk both wait on this condition; a stop broadcasts it. */
    while (!crew->stops && bel__crew_now(crew).ns < end.ns) {
        if (failures->is_unreached && crew->connects != failures->connects) break;
        bel__crew_wait(crew, &crew->claimer_wakes, end);
    }
    (void)pthread_mutex_unlock(&crew->mutex);
}

/* Returns whether connecting is still allowed, and counts the attempt in `connecting` if so. */
static bool begin_connecting(struct bel_crew *crew, struct bel_failures *failures)
{
    (void)pthread_mutex_lock(&crew->mutex);
    bool may = !crew->hurries;
    crew->connecting += may;
    failures->connects = crew->connects;
    (void)pthread_mutex_unlock(&crew->mutex);
    return may;
}

/* Ends an attempt to connect. Returns whether the new link may be used. If so, stores it in
 * `*link`, so that a stop can interrupt it. */
static bool end_connecting(struct bel_crew *crew, void **link, void *opened)
{
    (void)pthread_mutex_lock(&crew->mutex);
    bool may = !crew->hurries;
    crew->connecting--;
    if (may) *link = opened;
    if (opened != NULL) {
        crew->connects++;
        (void)pthread_cond_broadcast(&crew->claimer_wakes);
    }
    (void)pthread_cond_broadcast(&crew->stopper_wakes);
    (void)pthread_mutex_unlock(&crew->mutex);
    return may;
}

int bel__crew_connect(struct bel_crew *crew, struct bel_failures *failures, void **link)
{
    struct bel_client_why why = {"", ""};
    void *opened = NULL;
    if (failures->count > 0) pause_after(crew, failures);
    if (!begin_connecting(crew, failures)) return BEL_ECLOSED;
    int err = crew->side->open(crew, &opened, &why);
    bool may = end_connecting(crew, link, opened);
    if (err == 0 && may) return 0;
    if (err == 0) {
        crew->side->close(opened);
        return BEL_ECLOSED;
    }
    bel__crew_trouble(crew, "%s%s%s", why.code, why.code[0] != '\0' ? " " : "", why.text);
    if (failures->count < PAUSES_MAX) failures->count++;
    failures->is_unreached = true;
    return err;
}

void bel__crew_disconnect(struct bel_crew *crew, void **link)
{
    (void)pthread_mutex_lock(&crew->mutex);
    void *opened = *link;
    *link = NULL;
    (void)pthread_mutex_unlock(&crew->mutex);
    if (opened != NULL) crew->side->close(opened);
}

/* --- hands --- */

/* Runs the work callback for a slot. The caller holds the mutex; the callback runs without it. */
static void handle(struct bel_slot *slot)
{
    struct bel_crew *crew = slot->crew;
    slot->state = BEL_SLOT_WORKING;
    (void)pthread_mutex_unlock(&crew->mutex);
    slot->report = (struct bel_report){.kind = BEL_REPORT_DONE};
    crew->options.work(crew->options.context, &slot->errand, &slot->report);
    slot->report.has_verdict = false;
    (void)pthread_mutex_lock(&crew->mutex);
    slot->state = BEL_SLOT_WORKED;
}

/* Runs the callback `told` for a slot, without the mutex, and makes the slot idle. */
static void call_told(struct bel_slot *slot)
{
    struct bel_crew *crew = slot->crew;
    (void)pthread_mutex_unlock(&crew->mutex);
    crew->options.told(crew->options.context, &slot->errand, &slot->report);
    (void)pthread_mutex_lock(&crew->mutex);
    bel__slot_clear(slot);
}

static bool is_for_hand(const struct bel_slot *slot)
{
    return slot->state == BEL_SLOT_GIVEN || slot->state == BEL_SLOT_TOLD;
}

static void *work(void *arg)
{
    struct bel_slot *slot = arg;
    struct bel_crew *crew = slot->crew;
    (void)pthread_mutex_lock(&crew->mutex);
    for (;;) {
        while (!is_for_hand(slot) && !crew->ends) {
            bel__crew_wait(crew, &slot->changed, (struct bel_mono){BEL_NEVER});
        }
        if (!is_for_hand(slot)) break;
        if (slot->state == BEL_SLOT_GIVEN) {
            handle(slot);
        } else {
            call_told(slot);
        }
        (void)pthread_cond_signal(&crew->clerk_wakes);
        if (!crew->stops) continue;
        crew->quiet = bel__crew_now(crew);
        (void)pthread_cond_broadcast(&crew->stopper_wakes);
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

bool bel_errand_find(const struct bel_errand *errand, const char *name, struct bel_view *out)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < errand->headers_count; i++) {
        const struct bel_header *header = &errand->headers[i];
        if (header->name.bytes != bytes || memcmp(header->name.data, name, bytes) != 0) continue;
        *out = header->value;
        return true;
    }
    return false;
}

bool bel_errand_result(const struct bel_errand *errand, const char *task, struct bel_view *out)
{
    for (size_t i = 0; i < errand->results_count; i++) {
        const struct bel_task_result *result = &errand->results[i];
        if (!result->has_result || !bel__view_is(result->task, task)) continue;
        *out = result->result;
        return true;
    }
    return false;
}

bool bel_errand_is_lost(const struct bel_errand *errand)
{
    const struct bel_slot *slot =
        (const void *)((const char *)errand - offsetof(struct bel_slot, errand));
    (void)pthread_mutex_lock(&slot->crew->mutex);
    bool is_lost = slot->is_lost;
    (void)pthread_mutex_unlock(&slot->crew->mutex);
    return is_lost;
}

void bel_report_fail(struct bel_report *report, const char *reason)
{
    report->kind = BEL_REPORT_FAILED;
    (void)snprintf(report->reason, sizeof report->reason, "%s", reason);
}

int bel_report_result(struct bel_report *report, struct bel_view result)
{
    free(report->result);
    report->result_bytes = 0;
    report->result = malloc(result.bytes + 1);
    if (report->result == NULL) return BEL_ENOMEM;
    if (result.bytes > 0) memcpy(report->result, result.data, result.bytes);
    report->result[result.bytes] = '\0';
    report->result_bytes = result.bytes;
    return 0;
}

/* --- starting --- */

static void *copy(char **place, const void *data, size_t bytes)
{
    char *at = *place;
    if (bytes > 0) memcpy(at, data, bytes);
    at[bytes] = '\0';
    *place = at + bytes + 1;
    return at;
}

static struct bel_view copy_view(char **place, struct bel_view view)
{
    return (struct bel_view){copy(place, view.data, view.bytes), view.bytes};
}

/* Copies the options, and what they point to into one block of memory. */
static int keep_options(struct bel_crew *crew, const struct bel_crew_options *options)
{
    const char *name = options->name != NULL ? options->name : "";
    const char *address = options->address != NULL ? options->address : "";
    size_t args_count = options->topics_count + BEL_CREW_CLAIM_ARGS;
    size_t bytes = args_count * sizeof crew->claim[0];
    for (size_t i = 0; i < options->topics_count; i++) {
        bytes += strlen(options->topics[i]) + 1;
    }
    bytes += strlen(address) + strlen(name) + 2;
    bytes += options->client.user.bytes + options->client.key.bytes + 2;
    crew->memory = malloc(bytes);
    if (crew->memory == NULL) return BEL_ENOMEM;

    crew->claim = crew->memory;
    crew->claim[0] = BEL_VIEW("CLAIM");
    char *place = (char *)(crew->claim + args_count);
    for (size_t i = 0; i < options->topics_count; i++) {
        size_t topic_bytes = strlen(options->topics[i]);
        crew->claim[1 + i] = copy_view(&place, (struct bel_view){options->topics[i], topic_bytes});
    }
    crew->options = *options;
    crew->options.address = copy(&place, address, strlen(address));
    crew->options.name = copy(&place, name, strlen(name));
    crew->options.client.user = copy_view(&place, options->client.user);
    crew->options.client.key = copy_view(&place, options->client.key);
    assert(place == (char *)crew->memory + bytes);
    return 0;
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t how;
    (void)pthread_condattr_init(&how);
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &how);
    (void)pthread_condattr_destroy(&how);
}

static void init(struct bel_crew *crew)
{
    crew->clock = crew->options.client.clock;
    if (crew->clock == NULL) crew->clock = bel_clock_system();
    (void)pthread_mutex_init(&crew->mutex, NULL);
    init_condition(&crew->clerk_wakes);
    init_condition(&crew->claimer_wakes);
    init_condition(&crew->stopper_wakes);
    for (unsigned i = 0; i < crew->options.hands; i++) {
        crew->slots[i].crew = crew;
        init_condition(&crew->slots[i].changed);
    }
}

/* Starts the threads with all signals blocked. */
static int start_threads(struct bel_crew *crew)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = 0;
    for (unsigned i = 0; i < crew->options.hands && problem == 0; i++) {
        problem = pthread_create(&crew->slots[i].thread, NULL, work, &crew->slots[i]);
        crew->hands_started += problem == 0;
    }
    if (problem == 0) problem = pthread_create(&crew->clerk, NULL, bel__crew_tell, crew);
    if (problem == 0) {
        problem = pthread_create(&crew->claimer, NULL, bel__crew_claim, crew);
        if (problem != 0) { /* make the clerk end; the caller joins the hands */
            (void)pthread_mutex_lock(&crew->mutex);
            crew->stops = crew->has_claimed = true;
            (void)pthread_cond_signal(&crew->clerk_wakes);
            (void)pthread_mutex_unlock(&crew->mutex);
            (void)pthread_join(crew->clerk, NULL);
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem == 0 ? 0 : BEL_ENOMEM;
}

static void join_hands(struct bel_crew *crew)
{
    (void)pthread_mutex_lock(&crew->mutex);
    crew->ends = true;
    for (unsigned i = 0; i < crew->hands_started; i++) {
        (void)pthread_cond_signal(&crew->slots[i].changed);
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    for (unsigned i = 0; i < crew->hands_started; i++) {
        (void)pthread_join(crew->slots[i].thread, NULL);
    }
}

/* Frees what keep_options() and the start allocated. */
static void free_crew(struct bel_crew *crew)
{
    free(crew->notices);
    free(crew->memory);
    free(crew);
}

int bel__crew_start(const struct bel_crew_options *options, const struct bel_crew_side *side,
                    void *context, struct bel_crew **out)
{
    unsigned hands = options->hands > 0 ? options->hands : BEL_CREW_HANDS_DEFAULT;
    assert(options->work != NULL);
    assert(options->topics_count > 0);
    assert(hands <= BEL_CREW_HANDS_MAX);
    struct bel_crew *crew = calloc(1, sizeof *crew + hands * sizeof crew->slots[0]);
    if (crew == NULL) return BEL_ENOMEM;
    int err = keep_options(crew, options);
    crew->notices = calloc(hands, sizeof crew->notices[0]);
    if (err || crew->notices == NULL) {
        free_crew(crew);
        return BEL_ENOMEM;
    }
    crew->options.hands = hands;
    crew->side = side;
    crew->side_context = context;
    init(crew);
    err = start_threads(crew);
    if (err) {
        join_hands(crew);
        crew->is_joined = true;
        bel_crew_destroy(crew);
        return err;
    }
    *out = crew;
    return 0;
}

int bel_crew_start(const struct bel_crew_options *options, struct bel_crew **out)
{
    assert(options->address != NULL);
    return bel__crew_start(options, &bel__crew_server, NULL, out);
}

/* --- stopping --- */

static bool are_all_worked(const struct bel_crew *crew)
{
    for (unsigned i = 0; i < crew->options.hands; i++) {
        if (is_for_hand(&crew->slots[i])) return false;
        if (crew->slots[i].state == BEL_SLOT_WORKING) return false;
    }
    return true;
}

/* Stops claiming: ends a claim that waits. */
static void begin_to_stop(struct bel_crew *crew)
{
    crew->stops = true;
    crew->quiet = bel__crew_now(crew);
    if (crew->claim_link != NULL) crew->side->interrupt(crew->claim_link, false);
    (void)pthread_cond_broadcast(&crew->claimer_wakes);
    (void)pthread_cond_broadcast(&crew->clerk_wakes);
}

/* Stops waiting for replies: interrupts both links, so that a pending call fails. */
static void hurry(struct bel_crew *crew)
{
    crew->hurries = true;
    if (crew->claim_link != NULL) crew->side->interrupt(crew->claim_link, true);
    if (crew->tell_link != NULL) crew->side->interrupt(crew->tell_link, true);
}

/* Waits until the clerk has ended, or until `end`. The mutex is held. */
static void wait_for_end(struct bel_crew *crew, struct bel_mono end)
{
    while (!crew->has_ended) {
        struct bel_mono now = bel__crew_now(crew), next = end;
        struct bel_mono patience = {crew->quiet.ns + (uint64_t)PATIENCE_MS * NS_PER_MS};
        bool is_quiet = are_all_worked(crew);
        if (is_quiet && !crew->hurries && now.ns >= patience.ns) hurry(crew);
        if (crew->hurries && crew->connecting == 0) {
            next.ns = BEL_NEVER; /* no thread can block on the network any more */
        } else if (now.ns >= end.ns) {
            return;
        } else if (is_quiet && !crew->hurries && patience.ns < end.ns) {
            next = patience;
        }
        bel__crew_wait(crew, &crew->stopper_wakes, next);
    }
}

int bel_crew_stop(struct bel_crew *crew, uint32_t grace_ms)
{
    struct bel_mono end = bel__crew_after(crew, grace_ms);
    (void)pthread_mutex_lock(&crew->mutex);
    if (!crew->stops) begin_to_stop(crew);
    wait_for_end(crew, end);
    bool has_ended = crew->has_ended, joins = has_ended && !crew->is_joined;
    if (joins) crew->is_joined = true;
    (void)pthread_mutex_unlock(&crew->mutex);
    if (!has_ended) return BEL_EBUSY;
    if (joins) {
        (void)pthread_join(crew->claimer, NULL);
        (void)pthread_join(crew->clerk, NULL);
        assert(are_all_worked(crew));
        join_hands(crew);
    }
    return 0;
}

void bel_crew_destroy(struct bel_crew *crew)
{
    if (crew == NULL) return;
    assert(crew->is_joined);
    for (unsigned i = 0; i < crew->options.hands; i++) {
        bel__slot_empty(&crew->slots[i]);
        (void)pthread_cond_destroy(&crew->slots[i].changed);
    }
    (void)pthread_cond_destroy(&crew->clerk_wakes);
    (void)pthread_cond_destroy(&crew->claimer_wakes);
    (void)pthread_cond_destroy(&crew->stopper_wakes);
    (void)pthread_mutex_destroy(&crew->mutex);
    explicit_bzero((void *)(uintptr_t)crew->options.client.key.data,
                   crew->options.client.key.bytes);
    free_crew(crew);
}
