/* SPDX-License-Identifier: MIT */

/*
 * The clerk: reports finished work and extends the leases of work in progress. The commands of all
 * slots are sent in one batch; a slot has at most one command in flight. A command without a reply
 * is sent again on the next link. Sending it twice is safe: a token is valid for one ACK, FAIL or
 * RELEASE.
 */
#include "client/crew.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RETRY_MS = 1000,
};

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

/* Makes the report of work whose result was refused failed, to be sent next: otherwise the lease
 * would go on until it expires. Returns false if the report has no result. The slot is the
 * clerk's. */
static bool fail_refused(struct bel_slot *slot, struct bel_view why)
{
    struct bel_report *report = &slot->report;
    if (report->kind != BEL_REPORT_DONE || report->result == NULL) return false;
    free(report->result);
    *report = (struct bel_report){.kind = BEL_REPORT_FAILED};
    (void)snprintf(report->reason, sizeof report->reason, "result refused: %.*s", (int)why.bytes,
                   (const char *)why.data);
    return true;
}

void bel__crew_judged(const struct bel_notice *notice, struct bel_verdict verdict)
{
    struct bel_report *report = &notice->slot->report; /* the clerk's, as the work is finished */
    assert(notice->report == report);
    report->has_verdict = true;
    report->verdict = verdict;
}

void bel__crew_answered(struct bel_crew *crew, struct bel_notice *notice, enum bel_answer answer,
                        struct bel_view why)
{
    struct bel_slot *slot = notice->slot;
    bool is_taken = answer == BEL_ANSWER_TAKEN;
    (void)pthread_mutex_lock(&crew->mutex);
    slot->is_asked = false;
    if (!slot->is_last && !is_taken) slot->is_lost = true;
    if (!slot->is_last && is_taken) bel__slot_leased(slot, notice->asked);
    (void)pthread_mutex_unlock(&crew->mutex);

    if (!is_taken) report_trouble(crew, slot, why);
    if (!slot->is_last) return;
    if (answer == BEL_ANSWER_REFUSED && fail_refused(slot, why)) return;
    (void)pthread_mutex_lock(&crew->mutex);
    close_slot(slot, is_taken);
    (void)pthread_mutex_unlock(&crew->mutex);
}

/* Sends the commands of the selected slots and receives the replies. Returns 0, or an error that
 * ends the link. */
static int send_collected(struct bel_crew *crew)
{
    struct bel_mono asked = bel__crew_now(crew);
    size_t count = 0;
    (void)pthread_mutex_lock(&crew->mutex);
    for (unsigned i = 0; i < crew->options.hands; i++) {
        struct bel_slot *slot = &crew->slots[i];
        if (!slot->is_asked) continue;
        slot->is_last = slot->state == BEL_SLOT_WORKED;
        crew->notices[count++] = (struct bel_notice){.slot = slot,
                                                     .token = slot->errand.token,
                                                     .report = slot->is_last ? &slot->report : NULL,
                                                     .asked = asked};
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    return crew->side->tell(crew, crew->tell_link, crew->notices, count);
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
    struct bel_failures failures = {0};
    bool is_linked = false;
    while (collect(crew)) {
        int err = 0;
        if (!is_linked) err = bel__crew_connect(crew, &failures, &crew->tell_link);
        if (err == 0) {
            err = send_collected(crew);
            is_linked = err == 0;
            failures.count = err == 0 ? 0 : failures.count + 1;
            failures.is_unreached = false;
            if (err == 0) continue;
            bel__crew_trouble(crew, "%s (reports): %s; reconnecting", crew->side->lost,
                              bel_error_text(err));
            bel__crew_disconnect(crew, &crew->tell_link);
        }
        give_up(crew);
    }
    bel__crew_disconnect(crew, &crew->tell_link);
    (void)pthread_mutex_lock(&crew->mutex);
    crew->has_ended = true;
    (void)pthread_cond_broadcast(&crew->stopper_wakes);
    (void)pthread_mutex_unlock(&crew->mutex);
    return NULL;
}
