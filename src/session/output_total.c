/* SPDX-License-Identifier: MIT */
#include "session/output_total.h"

#include "session/bind.h"
#include "session/session.h"

#include <assert.h>

enum {
    OUTPUT_BYTES_MAX = 8 << 20,
    TIMER_BYTES_MORE = 64 << 10, /* of a timer in a reply, in addition to its payload */
    AGENDA_BYTES_MAX = 512 << 10,
    LEARN_REPLIES = 1024,
    EXPECTED_BYTES_MIN = 16 << 10, /* of a reply to a query */
    EXPECTED_CLAIM_BYTES_MIN = 4 << 10,
    JOB_WEIGHT = 16, /* of a byte about jobs: it takes longer, because each task is several rows */
    OWN_WEIGHT = 4,  /* of a byte of INFO or COMMAND: these are written word by word */
};

void bel__output_total_recount(struct bel_output_total *total, size_t *counted, size_t bytes)
{
    if (total == NULL) return;
    assert(total->bytes >= *counted);
    total->bytes += bytes - *counted;
    *counted = bytes;
}

bool bel__output_total_has_room(const struct bel_output_total *total, enum bel_session_crowd crowd)
{
    if (total == NULL) return true;
    if (crowd == BEL_SESSION_CROWD_TURN) return total->turn_bytes < BEL_TURN_BYTES_MAX;
    size_t max = crowd == BEL_SESSION_CROWD_OWN ? total->bytes_max / 2 : total->bytes_max;
    return total->bytes <= max;
}

bool bel__output_may_be_long(const struct bel_command_entry *entry)
{
    enum bel_verb verb;
    if (!bel__build_has(entry, &verb)) {
        return entry == &bel__commands[BEL_COMMAND_ECHO] ||
               entry == &bel__commands[BEL_COMMAND_COMMAND] ||
               entry == &bel__commands[BEL_COMMAND_INFO];
    }
    switch (verb) {
    case BEL_VERB_GET:
    case BEL_VERB_CLAIM:
    case BEL_VERB_LIST:
    case BEL_VERB_TOPICS:
    case BEL_VERB_AGENDA:
    case BEL_VERB_JOB_GET:
    case BEL_VERB_JOB_LIST:
        return true;
    default:
        return false;
    }
}

enum bel_session_crowd bel__output_total_crowd(const struct bel_output_total *total,
                                               const struct bel_command_entry *entry)
{
    bool has_room = bel__output_total_has_room(total, BEL_SESSION_CROWD_FULL);
    bool has_time = bel__output_total_has_room(total, BEL_SESSION_CROWD_TURN);
    if ((has_room && has_time) || !bel__output_may_be_long(entry)) return BEL_SESSION_CROWD_NONE;
    return has_room ? BEL_SESSION_CROWD_TURN : BEL_SESSION_CROWD_FULL;
}

size_t bel__output_client_max(const struct bel_service *service)
{
    return service->output_bytes_max > 0 ? service->output_bytes_max : OUTPUT_BYTES_MAX;
}

size_t bel__output_owed(const struct bel_service *service, const struct bel_command *command)
{
    size_t alone = bel__output_client_max(service) + 1;
    size_t payload = service->payload_bytes_max;
    size_t timer = (payload > 0 ? payload : BEL_PAYLOAD_BYTES_DEFAULT) + TIMER_BYTES_MORE;
    size_t count;
    switch (command->verb) {
    case BEL_VERB_GET:
        count = 1;
        break;
    case BEL_VERB_CLAIM:
        count = command->claim.count > 0 ? command->claim.count : 1;
        break;
    case BEL_VERB_AGENDA:
        return AGENDA_BYTES_MAX < alone ? AGENDA_BYTES_MAX : alone;
    case BEL_VERB_LIST:
    case BEL_VERB_TOPICS:
    case BEL_VERB_JOB_GET:
    case BEL_VERB_JOB_LIST:
        return alone;
    default:
        return 0;
    }
    return count < alone / timer ? count * timer : alone;
}

void bel__output_total_expect(struct bel_output_total *total, enum bel_verb verb, size_t owed)
{
    if (total == NULL || owed == 0) return;
    size_t most = total->reply_most[0], before = total->reply_most[1];
    size_t bytes = verb == BEL_VERB_CLAIM ? EXPECTED_CLAIM_BYTES_MIN : EXPECTED_BYTES_MIN;
    if (bytes < most) bytes = most;
    if (bytes < before) bytes = before;
    if (verb == BEL_VERB_JOB_GET || verb == BEL_VERB_JOB_LIST) bytes *= JOB_WEIGHT;
    total->turn_bytes += bytes < owed ? bytes : owed;
}

void bel__output_total_spend(struct bel_output_total *total, size_t bytes)
{
    if (total != NULL) total->turn_bytes += bytes * OWN_WEIGHT;
}

void bel__output_total_learn(struct bel_output_total *total, size_t bytes)
{
    if (total == NULL) return;
    if (bytes > total->reply_most[0]) total->reply_most[0] = bytes;
    if (++total->replies < LEARN_REPLIES) return;
    total->reply_most[1] = total->reply_most[0];
    total->reply_most[0] = 0;
    total->replies = 0;
}

void bel__output_total_end_turn(struct bel_output_total *total)
{
    if (total != NULL) total->turn_bytes = 0;
}
