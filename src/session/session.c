/* SPDX-License-Identifier: MIT */

/*
 * The flow of a session: requests become calls, calls are answered in any order, and replies leave
 * in the order of the requests. What can go wrong on the way:
 *
 *   - There is no memory for a call: then there is one when another ends, since a session always
 *     has one. None for its words: the command is answered with FULL.
 *   - There is none for a reply, or it is too large: FULL is said in its place, and deliveries that
 *     were in it are released. Not even that: the connection is dropped.
 *   - Nobody reads: parsing stops at the limit, the connection is dropped at twice that.
 *   - The connection is gone: claims are withdrawn, other commands end unheard, and deliveries
 *     whose reply was not written are released, one after the other, with the call's own request.
 */
#include "session/session.h"

#include "session/call.h"
#include "session/reply.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static uint64_t written(const struct bel_session *session)
{
    assert(session->appended >= session->out.count);
    return session->appended - session->out.count;
}

/* --- replies --- */

static void drop_calls(struct bel_session *session)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&session->calls); link != NULL; link = next) {
        struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        next = bel__list_next(&session->calls, link);
        if (call->state != BEL_CALL_ANSWERED) continue;
        bel__call_leave(session, call);
        bel__call_abandon(session, call);
    }
}

/* Gives back claims whose replies are written; and the others too, if they never will be. */
static void settle_unwritten(struct bel_session *session)
{
    struct bel_link *link;
    while ((link = bel__list_first(&session->unwritten)) != NULL) {
        struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        assert(call->state == BEL_CALL_UNWRITTEN && call->unsent.count > 0);
        bool is_written = call->end <= written(session);
        if (!is_written && session->state < BEL_SESSION_DROPPED) return;
        bel__link_remove(link);
        if (is_written) {
            bel__call_give(session, call);
        } else {
            bel__call_abandon(session, call);
        }
    }
}

/* Nobody will write the output. What is in it is not counted as written. */
static void drop(struct bel_session *session)
{
    if (session->state >= BEL_SESSION_DROPPED) return;
    session->state = BEL_SESSION_DROPPED;
    session->appended -= session->out.count;
    bel__buffer_finish(&session->out);
    bel__buffer_finish(&session->in);
    session->request_bytes = 0;
    settle_unwritten(session);
    drop_calls(session);
    assert(session->out.count == 0 && bel__list_is_empty(&session->unwritten));
}

static bool is_first(const struct bel_session *session, const struct bel_call *call)
{
    return bel__list_first(&session->calls) == &call->link;
}

/* A call that is first and answered has its reply in the output. */
static void leave_first(struct bel_session *session, struct bel_call *call)
{
    assert(is_first(session, call) && call->state == BEL_CALL_ANSWERED);
    bel__call_leave(session, call);
    if (call->is_lost) {
        bel__call_abandon(session, call);
    } else if (call->unsent.count > 0) {
        call->end = session->appended;
        call->state = BEL_CALL_UNWRITTEN;
        bel__list_append(&session->unwritten, &call->link);
    } else {
        bel__call_give(session, call);
    }
}

/* Moves the replies that have been waiting for those before them to the output. */
static void flush(struct bel_session *session)
{
    struct bel_link *link;
    while ((link = bel__list_first(&session->calls)) != NULL) {
        struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        if (call->state != BEL_CALL_ANSWERED) return;
        size_t bytes = call->reply.count;
        if (bytes > 0 &&
            bel__buffer_append(&session->out, bel__buffer_data(&call->reply), bytes) != 0) {
            drop(session);
            return;
        }
        session->appended += bytes;
        leave_first(session, call);
    }
}

static struct bel_resp_writer writer_of(struct bel_session *session, struct bel_call *call)
{
    struct bel_buffer *out = is_first(session, call) ? &session->out : &call->reply;
    return (struct bel_resp_writer){.out = out, .version = call->version};
}

/* Ends the reply of a call, of which the output had `before` bytes when it began. */
static void end_reply(struct bel_session *session, struct bel_call *call,
                      struct bel_resp_writer *writer, size_t before)
{
    assert(session->state < BEL_SESSION_DROPPED && call->state == BEL_CALL_UNDER_WAY);
    call->state = BEL_CALL_ANSWERED;
    bel__call_owe(session, call, 0);
    call->is_lost = writer->err != 0;
    if (call->is_lost) {
        bool is_large = writer->err == BEL_EFULL;
        bel__buffer_truncate(writer->out, before);
        writer->err = 0;
        bel__resp_error(writer, "FULL",
                        is_large ? "the answer is too large: ask for less at once"
                                 : "out of memory: try again");
    }
    if (writer->out == &session->out) {
        session->appended += session->out.count - before;
    } else {
        session->kept_bytes += call->reply.count;
    }
    if (writer->err) {
        drop(session);
    } else {
        flush(session);
    }
}

/* An answer has come. False if nobody will hear it: then the call is over, and the session may be
 * gone. */
static bool may_answer(struct bel_session *session, struct bel_call *call)
{
    if (session->state >= BEL_SESSION_DROPPED) {
        bel__call_leave(session, call);
        bel__call_abandon(session, call);
        return false;
    }
    settle_unwritten(session);
    return true;
}

static void tell_owner(const struct bel_session *session)
{
    if (session->owner.ready != NULL) session->owner.ready(session->owner.context);
}

/* The backend has answered. */
static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_call *call = BEL_CONTAINER_OF(request, struct bel_call, request);
    struct bel_session *session = call->session;
    enum bel_verb verb = request->command.verb;
    if (verb == BEL_VERB_CLAIM && reply->err == 0) bel__call_keep_tokens(call, reply);
    if (!may_answer(session, call)) return;
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    bel__reply_write(&writer, verb, reply);
    end_reply(session, call, &writer, before);
    tell_owner(session);
}

/* Answers a call at once, with an error. */
static void refuse(struct bel_session *session, struct bel_call *call, const char *code,
                   const char *text)
{
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    bel__resp_error(&writer, code, text);
    end_reply(session, call, &writer, before);
}

/* --- commands --- */

/* Copies the words of the request, and room for pairs, into the call's block. */
static int copy_words(struct bel_session *session, struct bel_call *call, size_t bytes,
                      struct bel_words *out)
{
    size_t count = session->parser.count;
    const uint8_t *data = bel__buffer_data(&session->in);
    int err = bel__call_reserve(call, 2 * count * sizeof(struct bel_view) + bytes);
    if (err) return err;
    struct bel_view *items = (void *)call->block;
    uint8_t *copy = (uint8_t *)(items + 2 * count);
    memcpy(copy, data, bytes);
    for (size_t i = 0; i < count; i++) {
        struct bel_view word = bel__resp_argument(&session->parser, data, i);
        items[i] = (struct bel_view){copy + ((const uint8_t *)word.data - data), word.bytes};
    }
    *out = (struct bel_words){items, count, items + count, session->service->zones};
    return 0;
}

/* Commands behind these see all that they have done. */
static bool does_hold(const struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_CLAIM:
        return command->claim.wait_ms > 0;
    case BEL_VERB_PURGE:
        return true;
    case BEL_VERB_REVIVE:
        return command->target.id.bytes == 0;
    default:
        return false;
    }
}

static void submit(struct bel_session *session, struct bel_call *call,
                   const struct bel_bound *bound, struct bel_why *why)
{
    call->request.done = answered;
    if (bel__build(bound, &call->request.command, why) != 0) {
        refuse(session, call, why->code, why->text);
        return;
    }
    if (!bel__scope_has(session->grant.scope, &call->request.command)) {
        refuse(session, call, "NOPERM", "this key is for some topics alone, and not for this");
        return;
    }
    assert(call->state == BEL_CALL_UNDER_WAY && session->holder == NULL);
    if (does_hold(&call->request.command)) session->holder = call;
    bel__call_owe(session, call, bel__session_owed(session, &call->request.command));
    bel_backend_submit(session->owner.backend, &call->request);
}

/* A task is done. */
static void returned(struct bel_background_task *task, int err, const char *why)
{
    struct bel_call *call = BEL_CONTAINER_OF(task, struct bel_call, task);
    struct bel_session *session = call->session;
    assert(call->state == BEL_CALL_BACKGROUND && session->holder == call);
    call->state = BEL_CALL_UNDER_WAY;
    if (!may_answer(session, call)) return;
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    bel__own_command_end(call, err, why, &writer);
    end_reply(session, call, &writer, before);
    tell_owner(session);
}

/* A command of the session's own. */
static void do_own(struct bel_session *session, struct bel_call *call,
                   const struct bel_bound *bound)
{
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    call->task = (struct bel_background_task){.done = returned};
    call->entry = bound->entry;
    bel__own_command_do(call, bound, &writer);
    if (call->state == BEL_CALL_BACKGROUND) {
        session->holder = call;
    } else {
        end_reply(session, call, &writer, before);
    }
}

static bool may(const struct bel_session *session, const struct bel_command_entry *entry)
{
    if (entry->permission == BEL_PERMISSION_NONE) return true;
    if (!session->is_known) return false;
    if (entry->permission == BEL_PERMISSION_KNOWN) return true;
    return (session->grant.permissions & 1U << entry->permission) != 0;
}

static void refuse_entry(struct bel_session *session, struct bel_call *call,
                         const struct bel_command_entry *entry)
{
    char text[BEL_WHY_BYTES];
    if (!session->is_known) {
        refuse(session, call, "NOAUTH", "Authentication required: AUTH user key");
        return;
    }
    (void)snprintf(text, sizeof text, "%s needs the permission '%s', which this key has not",
                   entry->name, bel__permission_name(entry->permission));
    refuse(session, call, "NOPERM", text);
}

static bool is_word(struct bel_view name, const char *text)
{
    return name.bytes == strlen(text) && strncasecmp(name.data, text, name.bytes) == 0;
}

/* There are no transactions. Who begins one sends all of it without waiting to hear that; so none
 * of it is done, until it is over. */
static void refuse_name(struct bel_session *session, struct bel_call *call)
{
    char text[BEL_WHY_BYTES];
    struct bel_view name = bel__resp_argument(&session->parser, bel__buffer_data(&session->in), 0);
    bool is_end = is_word(name, "EXEC") || is_word(name, "DISCARD");
    if (is_end && session->is_refusing) {
        session->is_refusing = false;
        refuse(session, call, "EXECABORT", "nothing was done: there are no transactions here");
        return;
    }
    if (is_word(name, "MULTI")) session->is_refusing = true;
    (void)snprintf(text, sizeof text, "unknown command '%.*s': COMMAND LIST names them all",
                   (int)(name.bytes < 64 ? name.bytes : 64), (const char *)name.data);
    refuse(session, call, "ERR", text);
}

/* The request that was parsed, as a call. */
static void run(struct bel_session *session, struct bel_call *call,
                const struct bel_command_entry *entry, size_t bytes)
{
    struct bel_words words;
    struct bel_bound bound;
    struct bel_why why;
    enum bel_verb verb;
    if (entry == NULL) {
        refuse_name(session, call);
    } else if (session->is_refusing && entry->permission != BEL_PERMISSION_NONE) {
        refuse(session, call, "ERR", "not done: MULTI is unknown here, EXEC or DISCARD ends it");
    } else if (!may(session, entry)) {
        refuse_entry(session, call, entry);
    } else if (copy_words(session, call, bytes, &words) != 0) {
        refuse(session, call, "FULL", "out of memory: try again");
    } else if (bel__bind(entry, &words, &bound, &why) != 0) {
        refuse(session, call, why.code, why.text);
    } else if (bel__build_has(entry, &verb)) {
        submit(session, call, &bound, &why);
    } else {
        do_own(session, call, &bound);
    }
}

/* A browser that was told to send its form here: whatever it says next is not meant for us. */
static bool is_http(struct bel_view name)
{
    return (name.bytes == 5 && memcmp(name.data, "Host:", 5) == 0) ||
           (name.bytes == 4 && memcmp(name.data, "POST", 4) == 0);
}

/* Takes the request that was parsed. False if it has to wait: for memory, or for those before. */
static bool take_request(struct bel_session *session)
{
    size_t bytes = session->request_bytes;
    assert(bytes > 0 && bytes <= session->in.count && session->holder == NULL);
    struct bel_view name = bel__resp_argument(&session->parser, bel__buffer_data(&session->in), 0);
    if (is_http(name)) {
        drop(session);
        return true;
    }
    const struct bel_command_entry *entry = bel__command_find(name);
    bool is_barrier = entry != NULL && bel__own_command_is_barrier(entry);
    if (is_barrier && session->calls_count > 0) return false;
    struct bel_call *call = bel__call_take(session);
    if (call == NULL) return false;
    session->request_bytes = 0;
    run(session, call, entry, bytes);
    if (session->state < BEL_SESSION_DROPPED) bel__buffer_consume(&session->in, bytes);
    return true;
}

/* A request that was none, or was too large. */
static bool take_refusal(struct bel_session *session, enum bel_resp_event event, size_t used)
{
    char text[BEL_WHY_BYTES];
    bool is_broken = event == BEL_RESP_BROKEN;
    struct bel_call *call = bel__call_take(session);
    if (call == NULL) { /* it cannot be parsed again */
        drop(session);
        return false;
    }
    (void)snprintf(text, sizeof text,
                   is_broken ? "Protocol error: %s"
                             : "the request is %s: at most %zu arguments, %zu bytes",
                   session->parser.why, session->parser.limits.arguments_max,
                   session->parser.limits.request_bytes_max);
    assert(session->state == BEL_SESSION_OPEN);
    if (is_broken) session->state = BEL_SESSION_ENDING;
    refuse(session, call, is_broken ? "ERR" : "BADARG", text);
    if (session->state < BEL_SESSION_DROPPED) bel__buffer_consume(&session->in, used);
    return true;
}

static bool is_able(const struct bel_session *session)
{
    return session->state == BEL_SESSION_OPEN && session->holder == NULL &&
           bel__session_may_add(session);
}

/* Parses and does one. False if it has to wait. */
static bool step_one(struct bel_session *session)
{
    if (session->request_bytes > 0) return take_request(session);
    size_t used;
    enum bel_resp_event event =
        bel__resp_parse(&session->parser, bel__buffer_data(&session->in), session->in.count, &used);
    if (event == BEL_RESP_REFUSED || event == BEL_RESP_BROKEN) {
        return take_refusal(session, event, used);
    }
    if (event == BEL_RESP_REQUEST && session->parser.count > 0) {
        session->request_bytes = used;
        return take_request(session);
    }
    bel__buffer_consume(&session->in, used);
    return event == BEL_RESP_REQUEST;
}

/* --- what others see --- */

int bel__session_create(const struct bel_service *service, const struct bel_session_owner *owner,
                        struct bel_session **out)
{
    assert(owner->backend != NULL);
    struct bel_session *session = calloc(1, sizeof *session);
    if (session == NULL) return BEL_ENOMEM;
    session->service = service;
    session->owner = *owner;
    session->version = 2;
    session->is_known = service->authenticate == NULL;
    session->grant = (struct bel_grant){session->is_known ? ~0U : 0, NULL};
    struct bel_resp_limits limits = bel__session_limits(service, session->is_known);
    bel__resp_init(&session->parser, &limits);
    bel__session_init_limits(session);
    bel__list_init(&session->calls);
    bel__list_init(&session->unwritten);
    bel__list_init(&session->releasing);
    struct bel_call *call = bel__call_take(session); /* there is always one */
    if (call == NULL) {
        free(session);
        return BEL_ENOMEM;
    }
    bel__call_leave(session, call);
    bel__call_give(session, call);
    *out = session;
    return 0;
}

/* Claims that wait are taken back; the other commands were asked for, and are done. */
static void withdraw_claims(struct bel_session *session)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&session->calls); link != NULL; link = next) {
        struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        next = bel__list_next(&session->calls, link);
        assert(call->state != BEL_CALL_ANSWERED);
        if (call->state == BEL_CALL_BACKGROUND || call->request.command.verb != BEL_VERB_CLAIM)
            continue;
        if (!bel_backend_withdraw(session->owner.backend, &call->request)) continue;
        bel__call_leave(session, call);
        bel__call_give(session, call);
    }
}

void bel__session_destroy(struct bel_session *session)
{
    if (session == NULL) return;
    assert(session->state < BEL_SESSION_DESTROYED);
    settle_unwritten(session);
    drop(session);
    withdraw_claims(session);
    bel__resp_finish(&session->parser);
    session->state = BEL_SESSION_DESTROYED;
    bel__session_free_if_gone(session);
}

void bel__session_introduce(struct bel_session *session, uint64_t id, const char *address)
{
    session->id = id;
    session->since = session->service->now->real;
    (void)snprintf(session->address, sizeof session->address, "%s", address);
}

int bel__session_receive(struct bel_session *session, const void *data, size_t bytes)
{
    assert(session->state < BEL_SESSION_DESTROYED);
    if (session->state >= BEL_SESSION_ENDING) return 0;
    int err = BEL_EFULL;
    size_t max = bel__session_input_max(session);
    if (session->in.count <= max && bytes <= max - session->in.count) {
        err = bel__buffer_append(&session->in, data, bytes);
    }
    if (err) drop(session);
    return err;
}

bool bel__session_step(struct bel_session *session, unsigned commands)
{
    assert(session->state < BEL_SESSION_DESTROYED && commands > 0);
    settle_unwritten(session);
    for (unsigned i = 0; i < commands; i++) {
        if (!is_able(session) || !step_one(session)) return false;
    }
    return is_able(session) && session->in.count > 0;
}

struct bel_buffer *bel__session_output(struct bel_session *session)
{
    return &session->out;
}

bool bel__session_is_closing(const struct bel_session *session)
{
    return session->state >= BEL_SESSION_DROPPED ||
           (session->state == BEL_SESSION_ENDING && session->calls_count == 0);
}

bool bel__session_is_busy(const struct bel_session *session)
{
    return session->holder != NULL && session->holder->state == BEL_CALL_BACKGROUND;
}

bool bel__session_is_idle(const struct bel_session *session)
{
    return session->calls_count == 0 && session->request_bytes == 0 &&
           bel__list_is_empty(&session->releasing);
}
