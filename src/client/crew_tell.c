/* SPDX-License-Identifier: MIT */

/*
 * The clerk: reports finished work to the server and extends the leases of work in progress. The
 * commands of all slots are sent in one batch; a slot has at most one command in flight. A command
 * without a reply is sent again on the next connection. Sending it twice is safe: a token is valid
 * for one ACK, FAIL or RELEASE.
 */
#include "client/crew.h"

#include "core/parse.h"

#include <assert.h>
#include <string.h>

enum {
    ARGS_MAX = 6,
    RETRY_MS = 1000,
};

/* The command of a slot. */
struct request {
    struct bel_view args[ARGS_MAX];
    size_t count;
    char delay[BEL_PRINT_BYTES_MAX];
};

static void add(struct request *request, struct bel_view arg)
{
    assert(request->count < ARGS_MAX);
    request->args[request->count++] = arg;
}

static void add_delay(struct request *request, const struct bel_report *report)
{
    if (!report->has_delay) return;
    add(request, BEL_VIEW("IN"));
    size_t bytes = bel__print_u64(request->delay, report->delay_ms);
    add(request, (struct bel_view){request->delay, bytes});
}

static void put(struct request *request, const struct bel_slot *slot)
{
    static const char *const names[] = {[BEL_REPORT_DONE] = "ACK",
                                        [BEL_REPORT_FAILED] = "FAIL",
                                        [BEL_REPORT_RELEASED] = "RELEASE",
                                        [BEL_REPORT_REJECTED] = "FAIL"};
    const struct bel_report *report = &slot->report;
    bool has_worked = slot->state == BEL_SLOT_WORKED;
    const char *name = has_worked ? names[report->kind] : "EXTEND";
    bool is_bad = has_worked && strcmp(name, "FAIL") == 0;
    request->count = 0;
    add(request, (struct bel_view){name, strlen(name)});
    add(request, slot->errand.token);
    if (!has_worked || report->kind == BEL_REPORT_DONE) return;
    if (report->kind == BEL_REPORT_REJECTED) {
        add(request, BEL_VIEW("DEAD"));
    } else {
        add_delay(request, report);
    }
    if (is_bad && report->reason[0] != '\0' && request->count + 2 <= ARGS_MAX) {
        add(request, BEL_VIEW("REASON"));
        add(request, (struct bel_view){report->reason, strlen(report->reason)});
    }
}

static bool has_command(const struct bel_slot *slot, struct bel_mono now)
{
    if (slot->state == BEL_SLOT_IDLE || slot->state == BEL_SLOT_TOLD) return false;
    return slot->state == BEL_SLOT_WORKED || (!slot->is_lost && slot->extend_at.ns <= now.ns);
}

/* Ends a slot whose report was sent or given up; `is_taken` is whether the server accepted it. If
 * there is a callback `told`, the hand calls it, so that the clerk does not wait for it. The mutex
 * is held. */
static void close_slot(struct bel_slot *slot, bool is_taken)
{
    slot->is_lost = !is_taken;
    if (slot->crew->options.told == NULL || slot->is_returned) {
        bel__slot_clear(slot);
        return;
    }
    slot->state = BEL_SLOT_TOLD;
    (void)pthread_cond_signal(&slot->changed);
}

/* Selects the slots that have a command to send. Waits until there are some. Returns false if all
 * reports are sent and the claimer has ended. */
static bool collect(struct bel_crew *crew)
{
    bool has_any = false, is_over = false;
    (void)pthread_mutex_lock(&crew->mutex);
    while (!has_any && !is_over) {
        struct bel_mono now = bel__crew_now(crew), next = {BEL_NEVER};
        is_over = crew->has_claimed;
        for (unsigned i = 0; i < crew->options.hands; i++) {
            struct bel_slot *slot = &crew->slots[i];
            slot->is_asked = has_command(slot, now);
            has_any = has_any || slot->is_asked;
            if (slot->state == BEL_SLOT_IDLE) continue;
            is_over = false;
            if (slot->state == BEL_SLOT_TOLD) continue;
            if (!slot->is_lost && slot->extend_at.ns < next.ns) next = slot->extend_at;
        }
        if (!has_any && !is_over) bel__crew_wait(crew, &crew->clerk_wakes, next);
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    return has_any;
}

static void report_trouble(struct bel_crew *crew, const struct bel_slot *slot, struct bel_view text)
{
    bel__crew_trouble(crew, "%s %s: %.*s", (const char *)slot->errand.topic.data,
                      (const char *)slot->errand.id.data, (int)text.bytes, (const char *)text.data);
}

/* Handles the reply to the command of a slot, which was sent at `asked`. */
static void handle_reply(struct bel_crew *crew, struct bel_slot *slot,
                         const struct bel_value *reply, struct bel_mono asked)
{
    bool is_error = reply->type == BEL_VALUE_ERROR;
    bool is_late = slot->is_last && reply->type == BEL_VALUE_NUMBER && reply->number == 0;
    (void)pthread_mutex_lock(&crew->mutex);
    slot->is_asked = false;
    if (!slot->is_last && is_error) slot->is_lost = true;
    if (!slot->is_last && !is_error) bel__slot_leased(slot, asked);
    (void)pthread_mutex_unlock(&crew->mutex);

    if (is_error) report_trouble(crew, slot, reply->text);
    if (is_late) {
        report_trouble(crew, slot, BEL_VIEW("STALE lease expired before the work finished"));
    }
    if (!slot->is_last) return;
    (void)pthread_mutex_lock(&crew->mutex);
    close_slot(slot, !is_error && !is_late);
    (void)pthread_mutex_unlock(&crew->mutex);
}

/* Sends the commands of the selected slots and receives the replies. Returns 0, or an error that
 * ends the connection. */
static int send_collected(struct bel_crew *crew, struct bel_client *client)
{
    struct bel_mono asked = bel__crew_now(crew);
    struct request request;
    int err = 0;
    for (unsigned i = 0; i < crew->options.hands && err == 0; i++) {
        struct bel_slot *slot = &crew->slots[i];
        if (!slot->is_asked) continue;
        (void)pthread_mutex_lock(&crew->mutex);
        slot->is_last = slot->state == BEL_SLOT_WORKED;
        put(&request, slot);
        (void)pthread_mutex_unlock(&crew->mutex);
        err = bel_client_send(client, request.args, request.count);
    }
    for (unsigned i = 0; i < crew->options.hands && err == 0; i++) {
        const struct bel_value *reply = NULL;
        struct bel_slot *slot = &crew->slots[i];
        if (!slot->is_asked) continue;
        err = bel_client_receive(client, &reply);
        if (err == 0) handle_reply(crew, slot, reply, asked);
    }
    return err;
}

/* After a failed connection: gives up reports whose lease has expired, or all if the crew is
 * stopping, and marks expired leases as lost. A stopping crew does not pause before it connects, so
 * its extensions are postponed. */
static void give_up(struct bel_crew *crew)
{
    (void)pthread_mutex_lock(&crew->mutex);
    struct bel_mono now = bel__crew_now(crew);
    struct bel_mono later = bel__crew_after(crew, RETRY_MS);
    for (unsigned i = 0; i < crew->options.hands; i++) {
        struct bel_slot *slot = &crew->slots[i];
        bool is_late = slot->end.ns <= now.ns;
        slot->is_asked = false;
        if (slot->state == BEL_SLOT_WORKED && (is_late || crew->stops)) {
            close_slot(slot, false);
        } else if (slot->state != BEL_SLOT_TOLD && is_late) {
            slot->is_lost = true;
        }
        if (crew->stops && slot->extend_at.ns <= now.ns) slot->extend_at = later;
    }
    (void)pthread_mutex_unlock(&crew->mutex);
}

void *bel__crew_tell(void *arg)
{
    struct bel_crew *crew = arg;
    struct bel_client *client = NULL;
    struct bel_failures failures = {0};
    while (collect(crew)) {
        int err = 0;
        if (client == NULL) err = bel__crew_connect(crew, &failures, &crew->tell_fd, &client);
        if (err == 0) {
            err = send_collected(crew, client);
            failures.count = err == 0 ? 0 : failures.count + 1;
            failures.is_unreached = false;
            if (err == 0) continue;
            bel__crew_trouble(crew, "connection to the server lost (reports): %s; reconnecting",
                              bel_error_text(err));
            bel__crew_disconnect(crew, &crew->tell_fd, client);
            client = NULL;
        }
        give_up(crew);
    }
    bel__crew_disconnect(crew, &crew->tell_fd, client);
    (void)pthread_mutex_lock(&crew->mutex);
    crew->has_ended = true;
    (void)pthread_cond_broadcast(&crew->stopper_wakes);
    (void)pthread_mutex_unlock(&crew->mutex);
    return NULL;
}
