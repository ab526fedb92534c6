/* SPDX-License-Identifier: MIT */

/*
 * The links of a crew to a driver. A claim waits in the driver; an interrupt ends its wait. The
 * notices of a batch are submitted together, so that they share a turn and its commit. Replies are
 * copied on the driver's thread and handled on the thread of the link, which may call callbacks.
 */
#include "belfry/local_crew.h"

#include "client/crew.h"
#include "core/delivery.h"
#include "core/units.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

/* A request of a link, with a copy of its reply, and room for a delivery of a claim. */
struct ask {
    struct bel_request request;
    struct link *link;
    int err;
    uint64_t count;
    struct bel_verdict verdict;
    char why[BEL_REPLY_WHY_BYTES];
    struct bel_delivery *delivery;
};

struct link {
    struct bel_driver *driver;
    pthread_mutex_t mutex;
    sem_t is_done;       /* posted for each request that is done */
    bool is_interrupted; /* with the mutex held: no more claims */
    bool is_short;       /* memory was out for a delivery */
    size_t claimed;      /* deliveries of a claim */
    struct ask asks[];   /* one of each hand; a claim is the first request */
};

/* --- the link --- */

static void close_link(void *arg)
{
    struct link *link = arg;
    (void)sem_destroy(&link->is_done);
    (void)pthread_mutex_destroy(&link->mutex);
    free(link);
}

static int open_link(struct bel_crew *crew, void **out, struct bel_client_why *why)
{
    size_t hands = crew->options.hands;
    struct link *link = calloc(1, sizeof *link + hands * sizeof link->asks[0]);
    if (link == NULL) {
        static const char text[] = "out of memory";
        memcpy(why->text, text, sizeof text);
        return BEL_ENOMEM;
    }
    link->driver = crew->side_context;
    (void)pthread_mutex_init(&link->mutex, NULL);
    (void)sem_init(&link->is_done, 0, 0);
    *out = link;
    return 0;
}

static void interrupt(void *arg, bool is_last)
{
    struct link *link = arg;
    (void)is_last; /* only a claim can wait for long */
    (void)pthread_mutex_lock(&link->mutex);
    link->is_interrupted = true;
    (void)pthread_mutex_unlock(&link->mutex);
    /* After this, either the claim sees the flag, or it was submitted before. A driver that was
     * stopped has ended the wait. */
    int err = bel_driver_end_wait(link->driver, &link->asks[0].request);
    assert(err == 0 || err == BEL_ECLOSED);
    (void)err;
}

static void await(struct link *link)
{
    while (sem_wait(&link->is_done) != 0) {
        assert(errno == EINTR);
    }
}

/* Keeps the error of a reply. On the driver's thread. */
static void note(struct ask *ask, const struct bel_reply *reply)
{
    ask->err = reply->err;
    if (reply->err) memcpy(ask->why, reply->why, sizeof ask->why);
}

/* Returns the message of an error reply. */
static const char *why_of(const struct ask *ask)
{
    return ask->why[0] != '\0' ? ask->why : bel_error_text(ask->err);
}

/* --- claims --- */

static void claim_done(struct bel_request *request, const struct bel_reply *reply)
{
    struct ask *ask = request->user;
    struct link *link = ask->link;
    note(ask, reply);
    for (size_t i = 0; reply->err == 0 && i < reply->deliveries.count; i++) {
        struct bel_delivery *copy = bel__delivery_copy(&reply->deliveries.items[i]);
        if (copy != NULL) link->asks[link->claimed++].delivery = copy;
        if (copy == NULL) link->is_short = true;
    }
    (void)sem_post(&link->is_done);
}

/* Submits a claim, unless the link was interrupted. */
static int submit_claim(struct bel_crew *crew, struct link *link, unsigned count)
{
    struct ask *ask = &link->asks[0];
    struct bel_claim claim = {.topics = crew->claim + 1,
                              .topics_count = crew->options.topics_count,
                              .count = count,
                              .lease_ms = crew->options.lease_ms,
                              .wait_ms = BEL_CREW_WAIT_MS,
                              .worker = {crew->options.name, strlen(crew->options.name)}};
    *ask = (struct ask){.link = link,
                        .request = {.command = {.verb = BEL_VERB_CLAIM, .claim = claim},
                                    .done = claim_done,
                                    .user = ask}};
    link->claimed = 0;
    link->is_short = false;
    (void)pthread_mutex_lock(&link->mutex);
    int err = link->is_interrupted ? BEL_ECLOSED : bel_driver_submit(link->driver, &ask->request);
    (void)pthread_mutex_unlock(&link->mutex);
    return err;
}

/* Returns whether a claim without deliveries ended too early: the driver lets no claim wait. */
static bool is_drained(struct bel_crew *crew, struct link *link, struct bel_mono begin)
{
    (void)pthread_mutex_lock(&link->mutex);
    bool is_interrupted = link->is_interrupted;
    (void)pthread_mutex_unlock(&link->mutex);
    uint64_t waited_ns = bel__crew_now(crew).ns - begin.ns;
    return !is_interrupted && waited_ns < (uint64_t)BEL_CREW_WAIT_MS * NS_PER_MS / 2;
}

static int claim(struct bel_crew *crew, void *arg, unsigned count)
{
    struct link *link = arg;
    struct bel_mono begin = bel__crew_now(crew);
    int err = submit_claim(crew, link, count);
    if (err) return err;
    await(link);
    if (link->asks[0].err) {
        bel__crew_trouble(crew, "%s", why_of(&link->asks[0]));
        return BEL_EINVAL;
    }
    for (size_t i = 0; i < link->claimed; i++) {
        bel__crew_give(crew, link->asks[i].delivery);
    }
    if (link->is_short) {
        bel__crew_trouble(crew, "dropped a delivery: %s", bel_error_text(BEL_ENOMEM));
    } else if (link->claimed == 0 && is_drained(crew, link, begin)) {
        return BEL_ECLOSED;
    }
    return 0;
}

/* --- notices --- */

static enum bel_fail_kind fail_kind(enum bel_report_kind kind)
{
    if (kind == BEL_REPORT_LIMITED) return BEL_FAIL_LIMITED;
    return kind == BEL_REPORT_RESOURCE ? BEL_FAIL_RESOURCE : BEL_FAIL_ERROR;
}

static struct bel_command command_of(const struct bel_notice *notice)
{
    const struct bel_report *report = notice->report;
    if (report == NULL) {
        return (struct bel_command){.verb = BEL_VERB_EXTEND, .extend = {.token = notice->token}};
    }
    switch (report->kind) {
    case BEL_REPORT_DONE:
        return (struct bel_command){.verb = BEL_VERB_ACK,
                                    .ack = {.tokens = &notice->token,
                                            .tokens_count = 1,
                                            .has_result = report->result != NULL,
                                            .result = {report->result, report->result_bytes}}};
    case BEL_REPORT_RELEASED:
        return (struct bel_command){.verb = BEL_VERB_RELEASE,
                                    .release = {.token = notice->token,
                                                .has_delay = report->has_delay,
                                                .delay_ms = report->delay_ms}};
    case BEL_REPORT_FAILED:
    case BEL_REPORT_REJECTED:
    case BEL_REPORT_LIMITED:
    case BEL_REPORT_RESOURCE:
        break;
    }
    bool is_dead = report->kind == BEL_REPORT_REJECTED;
    return (struct bel_command){.verb = BEL_VERB_FAIL,
                                .fail = {.token = notice->token,
                                         .reason = {report->reason, strlen(report->reason)},
                                         .kind = fail_kind(report->kind),
                                         .dead = is_dead,
                                         .has_delay = !is_dead && report->has_delay,
                                         .delay_ms = is_dead ? 0 : report->delay_ms}};
}

static void notice_done(struct bel_request *request, const struct bel_reply *reply)
{
    struct ask *ask = request->user;
    note(ask, reply);
    if (reply->err == 0 && request->command.verb == BEL_VERB_ACK) ask->count = reply->count;
    if (reply->err == 0 && request->command.verb == BEL_VERB_FAIL) ask->verdict = reply->verdict;
    (void)sem_post(&ask->link->is_done);
}

static void handle_reply(struct bel_crew *crew, struct bel_notice *notice, const struct ask *ask)
{
    bool is_late = ask->err == 0 && ask->request.command.verb == BEL_VERB_ACK && ask->count == 0;
    const char *why = is_late ? BEL_CREW_LATE : why_of(ask);
    enum bel_answer answer = is_late ? BEL_ANSWER_LOST : BEL_ANSWER_TAKEN;
    bool is_fail = ask->request.command.verb == BEL_VERB_FAIL;
    if (ask->err == 0 && is_fail) bel__crew_judged(notice, ask->verdict);
    if (ask->err) answer = BEL_ANSWER_LOST;
    if (ask->err == BEL_EFULL || ask->err == BEL_EINVAL) answer = BEL_ANSWER_REFUSED;
    bel__crew_answered(crew, notice, answer, (struct bel_view){why, strlen(why)});
}

static int tell(struct bel_crew *crew, void *arg, struct bel_notice *notices, size_t count)
{
    struct link *link = arg;
    size_t sent = 0;
    int err = 0;
    while (sent < count && err == 0) {
        struct ask *ask = &link->asks[sent];
        *ask = (struct ask){
            .link = link,
            .request = {.command = command_of(&notices[sent]), .done = notice_done, .user = ask}};
        err = bel_driver_submit(link->driver, &ask->request);
        sent += err == 0;
    }
    for (size_t i = 0; i < sent; i++) {
        await(link);
    }
    for (size_t i = 0; i < sent; i++) {
        handle_reply(crew, &notices[i], &link->asks[i]);
    }
    return err;
}

static const struct bel_crew_side side = {.lost = "the driver was stopped or drained",
                                          .open = open_link,
                                          .close = close_link,
                                          .interrupt = interrupt,
                                          .claim = claim,
                                          .tell = tell};

int bel_local_crew_start(struct bel_driver *driver, const struct bel_crew_options *options,
                         struct bel_crew **out)
{
    return bel__crew_start(options, &side, driver, out);
}
