/* SPDX-License-Identifier: MIT */

/*
 * How much a session may hold: unparsed input, commands under way, unread output. A client that has
 * not authenticated may send little. A reply that may become long is owed from when its command is
 * submitted, so that all replies under way have room in the output; one of unknown length is alone.
 */
#include "session/call.h"

#include <assert.h>

enum {
    OUTPUT_BYTES_MAX = 8 << 20,
    COMMANDS_MAX = 1024,
    REPLY_BYTES_MAX = 256 << 20, /* of one */
    TIMER_BYTES_MORE = 64 << 10, /* in a reply, than the payload */
    AGENDA_BYTES_MAX = 512 << 10,
    ARGUMENTS_MAX = 16384,
    REQUEST_BYTES_MORE = 1 << 20, /* than the payload */
    STRANGER_ARGUMENTS_MAX = 10,
    STRANGER_ARGUMENT_BYTES_MAX = 4096,
    STRANGER_BYTES_MAX = 64 << 10, /* unparsed */
    READ_BYTES = 64 << 10,         /* unparsed, besides the request that is being received */
};

static size_t payload_max(const struct bel_service *service)
{
    size_t max = service->payload_bytes_max;
    return max > 0 ? max : BEL_PAYLOAD_BYTES_DEFAULT;
}

static size_t unread(const struct bel_session *session)
{
    return session->out.count + session->kept_bytes;
}

struct bel_resp_limits bel__session_limits(const struct bel_service *service, bool is_known)
{
    size_t request = payload_max(service) + REQUEST_BYTES_MORE;
    if (is_known) {
        return (struct bel_resp_limits){.arguments_max = ARGUMENTS_MAX,
                                        .argument_bytes_max = request,
                                        .request_bytes_max = request,
                                        .is_lenient = true};
    }
    size_t bytes = (size_t)STRANGER_ARGUMENTS_MAX * (STRANGER_ARGUMENT_BYTES_MAX + 32);
    return (struct bel_resp_limits){.arguments_max = STRANGER_ARGUMENTS_MAX,
                                    .argument_bytes_max = STRANGER_ARGUMENT_BYTES_MAX,
                                    .request_bytes_max = bytes};
}

void bel__session_init_limits(struct bel_session *session)
{
    const struct bel_service *service = session->service;
    struct bel_resp_limits limits = bel__session_limits(service, true);
    session->output_max =
        service->output_bytes_max > 0 ? service->output_bytes_max : OUTPUT_BYTES_MAX;
    session->commands_max = service->commands_max > 0 ? service->commands_max : COMMANDS_MAX;
    bel__buffer_init(&session->out, 2 * session->output_max + REPLY_BYTES_MAX);
    bel__buffer_init(&session->in, limits.request_bytes_max + READ_BYTES);
}

size_t bel__session_owed(const struct bel_session *session, const struct bel_command *command)
{
    size_t alone = session->output_max + 1;
    size_t timer = payload_max(session->service) + TIMER_BYTES_MORE;
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
        return alone;
    default:
        return 0;
    }
    return count < alone / timer ? count * timer : alone;
}

bool bel__session_may_add(const struct bel_session *session)
{
    assert(session->calls_count <= session->commands_max);
    return session->calls_count < session->commands_max &&
           unread(session) + session->owed_bytes <= session->output_max;
}

bool bel__session_is_full(const struct bel_session *session)
{
    return unread(session) > session->output_max;
}

size_t bel__session_input_max(const struct bel_session *session)
{
    return session->is_known ? session->in.count_max : STRANGER_BYTES_MAX;
}

size_t bel__session_room(const struct bel_session *session)
{
    if (session->state >= BEL_SESSION_ENDING || bel__session_is_full(session)) return 0;
    size_t max = bel__session_input_max(session);
    return session->in.count < max ? max - session->in.count : 0;
}
