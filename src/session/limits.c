/* SPDX-License-Identifier: MIT */

/*
 * The limits of a session: unparsed input, running commands, unread output. The limits are lower
 * before a client has authenticated, and its replies are limited by what it sends. The room for a
 * long reply is reserved (owed) when its command is submitted, so that the output has room for all
 * replies. A command whose reply has an unknown length runs alone.
 *
 * The total of all connections (output_total.h) counts memory, also of bytes that are written and
 * not freed yet, and what is owed. A claim that waits owes nothing to it: thousands of workers may
 * wait, and get little.
 */
#include "core/units.h"
#include "session/call.h"

#include <assert.h>

enum {
    COMMANDS_MAX = 1024,
    REPLY_BYTES_MAX = 256 << 20, /* of one reply */
    ARGUMENTS_MAX = 16384,
    REQUEST_BYTES_MORE = 1 << 20, /* in addition to the payload, or the text of a job */
    UNAUTHENTICATED_ARGUMENTS_MAX = 10,
    UNAUTHENTICATED_ARGUMENT_BYTES_MAX = 4096,
    UNAUTHENTICATED_REQUEST_BYTES_MAX = 8 << 10,
    UNAUTHENTICATED_BYTES_MAX = 16 << 10, /* unparsed input */
    UNAUTHENTICATED_OUTPUT_BYTES_MAX = 16 << 10,
    UNAUTHENTICATED_MS_MAX = 10 * 1000,
    /* A client without a key gets at most ANSWER_RATIO times the bytes that it sent, and a few
     * replies more. */
    ANSWER_RATIO = 2,
    ANSWER_BYTES_MORE = 512,
    ANSWER_BYTES = 64,     /* of a typical reply */
    READ_BYTES = 64 << 10, /* unparsed input after an incomplete request */
};

static size_t payload_max(const struct bel_service *service)
{
    size_t max = service->payload_bytes_max;
    return max > 0 ? max : BEL_PAYLOAD_BYTES_DEFAULT;
}

size_t bel__session_unread_bytes(const struct bel_session *session)
{
    return session->out.capacity + session->kept_bytes;
}

void bel__session_count_output(struct bel_session *session)
{
    struct bel_output_total *total = session->service->output_total;
    if (total == NULL) return;
    size_t bytes = bel__session_unread_bytes(session);
    if (session->holder == NULL) bytes += session->owed_bytes;
    if (session->state >= BEL_SESSION_DROPPED) bytes = 0;
    bel__output_total_recount(total, &session->counted_bytes, bytes);
}

void bel__session_count_input(struct bel_session *session)
{
    struct bel_input_share *share = &session->input;
    bool is_small = session->in.capacity < BEL_INPUT_SMALL_BYTES && session->running_bytes == 0;
    if (is_small && share->bytes == 0) return;
    struct bel_input_state state = {
        .bytes = session->in.capacity,
        .running_bytes = session->running_bytes,
        .is_receiving = session->state == BEL_SESSION_OPEN && session->holder == NULL &&
                        session->request_bytes == 0 && bel__session_may_add(session) &&
                        session->crowd == BEL_SESSION_CROWD_NONE &&
                        session->in.count >= BEL_INPUT_SMALL_BYTES,
        .missing = bel__resp_missing(&session->parser, session->in.count),
        .progress = 2 * session->consumed + session->in.count,
    };
    bel__input_share_set(share, &state, session->service->now->real);
}

static size_t unread(const struct bel_session *session)
{
    return session->out.count + session->kept_bytes;
}

struct bel_resp_limits bel__session_limits(const struct bel_service *service, bool is_authenticated)
{
    size_t largest = payload_max(service);
    if (service->job_bytes_max > largest) largest = service->job_bytes_max;
    size_t request = largest + REQUEST_BYTES_MORE;
    if (is_authenticated) {
        return (struct bel_resp_limits){.arguments_max = ARGUMENTS_MAX,
                                        .argument_bytes_max = request,
                                        .request_bytes_max = request,
                                        .is_lenient = true};
    }
    return (struct bel_resp_limits){.arguments_max = UNAUTHENTICATED_ARGUMENTS_MAX,
                                    .argument_bytes_max = UNAUTHENTICATED_ARGUMENT_BYTES_MAX,
                                    .request_bytes_max = UNAUTHENTICATED_REQUEST_BYTES_MAX};
}

size_t bel__session_request_memory(const struct bel_service *service)
{
    size_t request = bel__session_limits(service, true).request_bytes_max + READ_BYTES;
    size_t body = 2 * payload_max(service) + REQUEST_BYTES_MORE; /* of HTTP, as JSON */
    size_t bytes = request > body ? request : body;
    return bytes + bytes / 4; /* as a buffer grows */
}

void bel__session_begin_stranger(struct bel_session *session)
{
    const struct bel_service *service = session->service;
    uint64_t ms = service->auth_ms_max > 0 ? service->auth_ms_max : UNAUTHENTICATED_MS_MAX;
    session->auth_end.ns =
        session->is_authenticated ? BEL_NEVER : service->now->real.ns + ms * NS_PER_MS;
    session->stranger_in = session->consumed;
    session->stranger_out = session->appended;
}

bool bel__session_may_answer(const struct bel_session *session, size_t bytes)
{
    uint64_t in = session->consumed - session->stranger_in + bytes;
    uint64_t out = session->appended - session->stranger_out + ANSWER_BYTES;
    assert(session->consumed >= session->stranger_in);
    return session->is_authenticated || out <= ANSWER_RATIO * in + ANSWER_BYTES_MORE;
}

static size_t output_max(const struct bel_session *session)
{
    size_t max = session->output_max;
    return session->is_authenticated || max < UNAUTHENTICATED_OUTPUT_BYTES_MAX
               ? max
               : UNAUTHENTICATED_OUTPUT_BYTES_MAX;
}

void bel__session_init_limits(struct bel_session *session)
{
    const struct bel_service *service = session->service;
    struct bel_resp_limits limits = bel__session_limits(service, true);
    session->output_max = bel__output_client_max(service);
    session->commands_max = service->commands_max > 0 ? service->commands_max : COMMANDS_MAX;
    bel__buffer_init(&session->out, 2 * session->output_max + REPLY_BYTES_MAX);
    bel__buffer_init(&session->in, limits.request_bytes_max + READ_BYTES);
}

bool bel__session_may_add(const struct bel_session *session)
{
    assert(session->calls_count <= session->commands_max);
    return session->calls_count < session->commands_max &&
           unread(session) + session->owed_bytes <= output_max(session);
}

bool bel__session_must_wait(struct bel_session *session, const struct bel_command_entry *entry)
{
    const struct bel_output_total *total = session->service->output_total;
    if (total == NULL) return false;
    if (entry != NULL) {
        session->crowd = bel__output_total_crowd(total, entry);
    } else if (!bel__output_total_has_room(total, BEL_SESSION_CROWD_OWN) &&
               unread(session) + session->owed_bytes > 0 && session->in.count > 0) {
        session->crowd = BEL_SESSION_CROWD_OWN;
    }
    return session->crowd != BEL_SESSION_CROWD_NONE;
}

bool bel__session_is_full(const struct bel_session *session)
{
    return unread(session) > output_max(session);
}

size_t bel__session_input_max(const struct bel_session *session)
{
    return session->is_authenticated ? session->in.count_max : UNAUTHENTICATED_BYTES_MAX;
}

size_t bel__session_room(const struct bel_session *session)
{
    if (session->state >= BEL_SESSION_ENDING || bel__session_is_full(session)) return 0;
    if (session->crowd != BEL_SESSION_CROWD_NONE) return 0;
    size_t max = bel__session_input_max(session), count = session->in.count;
    size_t room = count < max ? max - count : 0,
           allowed = bel__input_share_room(&session->input, count);
    return room < allowed ? room : allowed;
}
