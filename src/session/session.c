/* SPDX-License-Identifier: MIT */

/*
 * The flow of a session: requests become calls, the backend answers calls in any order, and replies
 * are sent in the order of the requests. Failures:
 *
 *   - No memory for a call: the request waits until another call ends. A session always owns one.
 *   - No memory for the words of a command: the reply is FULL.
 *   - No memory for a reply, or it is too large: the reply is FULL instead, and its deliveries are
 *     released. If even FULL does not fit, the connection is dropped.
 *   - The client does not read: parsing stops when the output reaches its limit.
 *   - The connection is closed: claims are withdrawn, the replies of other commands are discarded,
 *     and deliveries whose reply was not written are released, one after the other, with the
 *     request of their claim.
 */
#include "session/session.h"

#include "session/call.h"
#include "session/reply.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    OUTPUT_BYTES_KEPT = 16 << 10, /* memory of a session whose output is written */
};

static uint64_t written(const struct bel_session *session)
{
    assert(session->appended >= session->out.count);
    return session->appended - session->out.count;
}

/* --- replies --- */

/* Abandons all answered calls of a dropped session. */
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

/* The client has read the reply to its last claim, or is thought to. */
static void forget_unread(struct bel_session *session)
{
    struct bel_call *call = session->unread;
    session->unread = NULL;
    if (call != NULL) bel__call_give(session, call);
}

/* Returns claims whose replies are written. If the session is dropped, abandons the others. */
static void settle_unwritten(struct bel_session *session)
{
    struct bel_link *link;
    while ((link = bel__list_first(&session->unwritten)) != NULL) {
        struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        assert(call->state == BEL_CALL_UNWRITTEN && call->unsent.count > 0);
        bool is_written = call->end <= written(session);
        if (!is_written && session->state < BEL_SESSION_DROPPED) return;
        bel__link_remove(link);
        if (is_written && call->request.command.claim.wait_ms > 0) {
            forget_unread(session);
            session->unread = call;
        } else if (is_written) {
            bel__call_give(session, call);
        } else {
            bel__call_abandon(session, call);
        }
    }
}

/* Drops the connection: discards input and output, and does not count the output as written. */
static void drop(struct bel_session *session)
{
    if (session->state >= BEL_SESSION_DROPPED) return;
    session->state = BEL_SESSION_DROPPED;
    session->appended -= session->out.count;
    bel__buffer_finish(&session->out);
    bel__buffer_finish(&session->in);
    session->request_bytes = 0;
    bel__session_count_output(session);
    bel__session_count_input(session);
    bel__input_share_unblock(&session->input);
    settle_unwritten(session);
    drop_calls(session);
    assert(session->out.count == 0 && bel__list_is_empty(&session->unwritten));
}

static bool is_first(const struct bel_session *session, const struct bel_call *call)
{
    return bel__list_first(&session->calls) == &call->link;
}

/* Removes the first call, whose reply is complete and in the output. */
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

/* Makes room in the output for all replies that flush() moves to it, so that it grows once. */
static void reserve_kept(struct bel_session *session)
{
    size_t bytes = 0;
    struct bel_link *link = bel__list_first(&session->calls);
    for (; link != NULL; link = bel__list_next(&session->calls, link)) {
        const struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        if (call->state != BEL_CALL_ANSWERED) break;
        bytes += call->reply.count;
    }
    (void)!bel__buffer_reserve(&session->out, bytes); /* flush() tries again, reply by reply */
}

/* Moves the replies of answered calls to the output, up to the first call that is not answered. */
static void flush(struct bel_session *session)
{
    struct bel_link *link;
    reserve_kept(session);
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

/* Completes the reply of a call. `before` is the size of the writer's buffer before the reply. */
static void end_reply(struct bel_session *session, struct bel_call *call,
                      struct bel_resp_writer *writer, size_t before)
{
    assert(session->state < BEL_SESSION_DROPPED && call->state == BEL_CALL_UNDER_WAY);
    call->state = BEL_CALL_ANSWERED;
    if (call->owed_bytes > 0) {
        bel__output_total_learn(session->service->output_total, writer->out->count - before);
    }
    bel__call_owe(session, call, 0);
    call->is_lost = writer->err != 0;
    if (call->is_lost) {
        bool is_large = writer->err == BEL_EFULL;
        bel__buffer_truncate(writer->out, before);
        writer->err = 0;
        bel__resp_error(writer, "FULL",
                        is_large ? "the reply is too large: request fewer timers at once"
                                 : "out of memory: try again");
    }
    if (writer->code != NULL && session->service->metrics != NULL) {
        bel__metrics_count_error(session->service->metrics, writer->code);
    }
    if (writer->out == &session->out) {
        session->appended += session->out.count - before;
    } else {
        session->kept_bytes += call->reply.capacity;
    }
    if (writer->err) {
        drop(session);
    } else {
        flush(session);
        bel__session_count_output(session);
    }
}

/* Returns whether a reply can be written. If the session is dropped, abandons the call and returns
 * false; the session may then be freed. */
static bool can_reply(struct bel_session *session, struct bel_call *call)
{
    if (session->state >= BEL_SESSION_DROPPED) {
        bel__call_leave(session, call);
        bel__call_abandon(session, call);
        return false;
    }
    settle_unwritten(session);
    return true;
}

static void notify_owner(const struct bel_session *session)
{
    if (session->owner.ready != NULL) session->owner.ready(session->owner.context);
}

/* Callback of the backend: writes the reply. */
static void on_reply(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_call *call = BEL_CONTAINER_OF(request, struct bel_call, request);
    struct bel_session *session = call->session;
    enum bel_verb verb = request->command.verb;
    if (verb == BEL_VERB_CLAIM && reply->err == 0) bel__call_keep_tokens(call, reply);
    if (!can_reply(session, call)) return;
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    bel__reply_write(&writer, verb, reply, call->has_reason);
    end_reply(session, call, &writer, before);
    notify_owner(session);
}

/* Replies to a call with an error. */
static void refuse(struct bel_session *session, struct bel_call *call, const char *code,
                   const char *text)
{
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    bel__resp_error(&writer, code, text);
    end_reply(session, call, &writer, before);
}

/* Replies with an error to a request that the backend would execute, and does not see. */
static void refuse_verb(struct bel_session *session, struct bel_call *call,
                        const struct bel_command_entry *entry, const char *code, const char *text)
{
    enum bel_verb verb;
    if (session->service->metrics != NULL && bel__build_has(entry, &verb)) {
        bel__metrics_count_refused(session->service->metrics, verb);
    }
    refuse(session, call, code, text);
}

/* --- commands --- */

/* Copies the words of the request into the call's block, and reserves memory for pairs. */
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
    *out = (struct bel_words){
        .items = items, .count = count, .pairs = items + count, .zones = session->service->zones};
    return 0;
}

/* Returns whether the next command must wait for the reply to this one, to see all its effects. */
static bool blocks_next(const struct bel_command *command)
{
    switch (command->verb) {
    case BEL_VERB_CLAIM:
        return command->claim.wait_ms > 0;
    case BEL_VERB_PURGE:
    case BEL_VERB_JOB_SUBMIT: /* they take many turns */
    case BEL_VERB_JOB_CANCEL:
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
    call->request.done = on_reply;
    call->has_reason = bound->entry == &bel__commands[BEL_COMMAND_EXPLAIN] &&
                       bel__bound_has(bound, BEL_EXPLAIN_REASON);
    if (bel__build(bound, &call->request.command, why) != 0) {
        refuse_verb(session, call, bound->entry, why->code, why->text);
        return;
    }
    bel__scope_set(session->grant.scope, &call->request.command);
    if (!bel__grant_allows(&session->grant, &call->request.command)) {
        refuse_verb(session, call, bound->entry, "NOPERM",
                    "changing a limit needs the permission 'admin', which this key does not have");
        return;
    }
    if (!bel__scope_has(session->grant.scope, &call->request.command)) {
        refuse_verb(session, call, bound->entry, "NOPERM",
                    "this key is limited to certain topics and does not allow this command");
        return;
    }
    assert(call->state == BEL_CALL_UNDER_WAY && session->holder == NULL);
    if (blocks_next(&call->request.command)) session->holder = call;
    size_t owed = bel__output_owed(session->service, &call->request.command);
    bel__call_owe(session, call, owed);
    bel__output_total_expect(session->service->output_total, call->request.command.verb, owed);
    bel__call_run(session, call);
    bel_backend_submit(session->owner.backend, &call->request);
}

/* Callback of a background task that has ended: writes the reply. */
static void on_task_done(struct bel_background_task *task, int err, const char *why)
{
    struct bel_call *call = BEL_CONTAINER_OF(task, struct bel_call, task);
    struct bel_session *session = call->session;
    assert(call->state == BEL_CALL_BACKGROUND && session->holder == call);
    call->state = BEL_CALL_UNDER_WAY;
    if (!can_reply(session, call)) return;
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    bel__own_command_end(call, err, why, &writer);
    end_reply(session, call, &writer, before);
    notify_owner(session);
}

/* Executes a command of the session itself. */
static void run_own(struct bel_session *session, struct bel_call *call,
                    const struct bel_bound *bound)
{
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    call->task = (struct bel_background_task){.done = on_task_done};
    call->entry = bound->entry;
    bel__own_command_do(call, bound, &writer);
    if (call->state == BEL_CALL_BACKGROUND) {
        session->holder = call;
    } else {
        bel__output_total_spend(session->service->output_total, writer.out->count - before);
        end_reply(session, call, &writer, before);
    }
}

static bool has_permission(const struct bel_session *session, const struct bel_command_entry *entry)
{
    if (entry->permission <= BEL_PERMISSION_KNOWN) return true;
    return (session->grant.permissions & 1U << entry->permission) != 0;
}

static void refuse_entry(struct bel_session *session, struct bel_call *call,
                         const struct bel_command_entry *entry)
{
    char text[BEL_WHY_BYTES];
    (void)snprintf(text, sizeof text, "%s needs the permission '%s', which this key does not have",
                   entry->name, bel__permission_name(entry->permission));
    refuse_verb(session, call, entry, "NOPERM", text);
}

static bool is_word(struct bel_view name, const char *text)
{
    return name.bytes == strlen(text) && strncasecmp(name.data, text, name.bytes) == 0;
}

/* Returns the word of the parsed request at this place. */
static struct bel_view word_of(const struct bel_session *session, size_t place)
{
    return bel__resp_argument(&session->parser, bel__buffer_data(&session->in), place);
}

/* Finds the command of the parsed request by its first word, or its first two. */
static const struct bel_command_entry *find_command(const struct bel_session *session)
{
    struct bel_view name = word_of(session, 0);
    if (bel__command_is_group(name)) {
        return session->parser.count > 1 ? bel__command_find_pair(name, word_of(session, 1)) : NULL;
    }
    const struct bel_command_entry *entry = bel__command_find(name);
    return entry != NULL && strchr(entry->name, ' ') == NULL ? entry : NULL;
}

static void refuse_name(struct bel_session *session, struct bel_call *call)
{
    char text[BEL_WHY_BYTES];
    struct bel_view name = word_of(session, 0);
    if (bel__command_is_group(name)) {
        refuse(session, call, "ERR",
               "JOB needs one of SUBMIT, GET, CANCEL, LIST, PAUSE, RESUME after it");
        return;
    }
    (void)snprintf(text, sizeof text, "unknown command '%.*s': see COMMAND LIST",
                   (int)(name.bytes < 64 ? name.bytes : 64), (const char *)name.data);
    refuse(session, call, "ERR", text);
}

static void accept(struct bel_session *session, struct bel_call *call)
{
    struct bel_resp_writer writer = writer_of(session, call);
    size_t before = writer.out->count;
    bel__resp_simple(&writer, "OK");
    end_reply(session, call, &writer, before);
}

/*
 * Transactions are not supported, but Redis clients wrap a pipeline in MULTI and EXEC without
 * waiting for replies, and take an error to MULTI or a reply other than EXECABORT to EXEC as a
 * broken connection. So MULTI is accepted, and every command until EXEC or DISCARD is refused.
 *
 * Returns whether the request was answered here, as a part of a transaction.
 */
static bool take_transaction(struct bel_session *session, struct bel_call *call,
                             const struct bel_command_entry *entry)
{
    struct bel_view name = bel__resp_argument(&session->parser, bel__buffer_data(&session->in), 0);
    bool was_open = session->is_in_multi;
    if (entry == NULL && is_word(name, "MULTI") && !was_open) {
        session->is_in_multi = true;
        accept(session, call);
    } else if (entry == NULL && is_word(name, "EXEC")) {
        session->is_in_multi = false;
        refuse(session, call, was_open ? "EXECABORT" : "ERR",
               was_open ? "transactions are not supported: no command was executed"
                        : "EXEC without MULTI");
    } else if (entry == NULL && is_word(name, "DISCARD")) {
        session->is_in_multi = false;
        if (was_open) {
            accept(session, call);
        } else {
            refuse(session, call, "ERR", "DISCARD without MULTI");
        }
    } else if (was_open && entry != &bel__commands[BEL_COMMAND_RESET] &&
               entry != &bel__commands[BEL_COMMAND_QUIT]) {
        refuse(session, call, "ERR",
               "not executed: transactions are not supported; send DISCARD, and commands without "
               "MULTI");
    } else {
        return false;
    }
    return true;
}

/* Leaves out the first word of a command whose name has two. */
static const struct bel_words *name_is_one(struct bel_words *words,
                                           const struct bel_command_entry *entry)
{
    size_t skipped = strchr(entry->name, ' ') != NULL;
    words->items += skipped;
    words->count -= skipped;
    return words;
}

/* Executes the parsed request, or refuses it. */
static void run(struct bel_session *session, struct bel_call *call,
                const struct bel_command_entry *entry, size_t bytes)
{
    struct bel_words words;
    struct bel_bound bound;
    struct bel_why why;
    enum bel_verb verb;
    if (!session->is_authenticated && (entry == NULL || entry->permission != BEL_PERMISSION_NONE)) {
        refuse(session, call, "NOAUTH", "Authentication required: AUTH user key");
    } else if (take_transaction(session, call, entry)) {
        return;
    } else if (entry == NULL) {
        refuse_name(session, call);
    } else if (!has_permission(session, entry)) {
        refuse_entry(session, call, entry);
    } else if (copy_words(session, call, bytes, &words) != 0) {
        refuse_verb(session, call, entry, "FULL", "out of memory: try again");
    } else if (bel__bind(entry, name_is_one(&words, entry), &bound, &why) != 0) {
        refuse_verb(session, call, entry, why.code, why.text);
    } else if (bel__build_has(entry, &verb)) {
        submit(session, call, &bound, &why);
    } else {
        run_own(session, call, &bound);
    }
}

/* Returns whether a request is HTTP. An attacker's web page can make a browser send a form to this
 * port, with commands in its body, so the connection must be dropped. */
static bool is_http(struct bel_view name)
{
    return (name.bytes == 5 && memcmp(name.data, "Host:", 5) == 0) ||
           (name.bytes == 4 && memcmp(name.data, "POST", 4) == 0);
}

/* Removes parsed bytes from the input, unless the session was dropped meanwhile. */
static void consume(struct bel_session *session, size_t bytes)
{
    if (session->state >= BEL_SESSION_DROPPED) return;
    bel__buffer_consume(&session->in, bytes);
    session->consumed += bytes;
}

/* Executes the parsed request. Returns false if it has to wait for memory or for earlier calls. */
static bool take_request(struct bel_session *session)
{
    size_t bytes = session->request_bytes;
    assert(bytes > 0 && bytes <= session->in.count && session->holder == NULL);
    struct bel_view name = bel__resp_argument(&session->parser, bel__buffer_data(&session->in), 0);
    if (is_http(name)) {
        drop(session);
        return true;
    }
    if (!bel__session_may_answer(session, bytes)) {
        session->state = BEL_SESSION_ENDING;
        session->request_bytes = 0;
        bel__buffer_finish(&session->in);
        return true;
    }
    const struct bel_command_entry *entry = find_command(session);
    bool is_barrier = entry != NULL && bel__own_command_is_barrier(entry);
    if (is_barrier && session->calls_count > 0) return false;
    if (entry != NULL && bel__session_must_wait(session, entry)) return false;
    struct bel_call *call = bel__call_take(session);
    if (call == NULL) return false;
    session->request_bytes = 0;
    run(session, call, entry, bytes);
    consume(session, bytes);
    return true;
}

/* Replies to a malformed or too large request with an error. */
static bool take_refusal(struct bel_session *session, enum bel_resp_event event, size_t used)
{
    char text[BEL_WHY_BYTES];
    bool is_broken = event == BEL_RESP_BROKEN;
    struct bel_call *call = bel__call_take(session);
    if (call == NULL) { /* the request cannot be parsed again later */
        drop(session);
        return false;
    }
    const char *code = is_broken ? "ERR" : "BADARG";
    if (is_broken) {
        (void)snprintf(text, sizeof text, "Protocol error: %s", session->parser.why);
    } else if (session->service->job_bytes_max > 0 &&
               strcasecmp(session->parser.head, "JOB SUBMIT") == 0) {
        code = "FULL";
        (void)snprintf(text, sizeof text,
                       "the text of the job is too large: at most %zu bytes are allowed "
                       "(--max-job)",
                       session->service->job_bytes_max);
    } else {
        (void)snprintf(text, sizeof text, "the request has %s: at most %zu arguments, %zu bytes",
                       session->parser.why, session->parser.limits.arguments_max,
                       session->parser.limits.request_bytes_max);
    }
    assert(session->state == BEL_SESSION_OPEN);
    if (is_broken) session->state = BEL_SESSION_ENDING;
    refuse(session, call, code, text);
    consume(session, used);
    return true;
}

/* Returns whether the session may parse and execute a command now. */
static bool can_step(const struct bel_session *session)
{
    return session->state == BEL_SESSION_OPEN && session->holder == NULL &&
           bel__session_may_add(session);
}

/* Parses and executes one request. Returns false if the session has to wait. */
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
    consume(session, used);
    return event == BEL_RESP_REQUEST;
}

/* --- incomplete requests --- */

static bool has_input(const struct bel_input_share *share)
{
    const struct bel_session *session = BEL_CONTAINER_OF_CONST(share, struct bel_session, input);
    return session->owner.has_input != NULL && session->owner.has_input(session->owner.context);
}

static void resume(struct bel_input_share *share)
{
    notify_owner(BEL_CONTAINER_OF(share, struct bel_session, input));
}

/* Refuses a request that has stood still, and accepts no more commands. */
static void expire(struct bel_input_share *share, const char *why)
{
    struct bel_session *session = BEL_CONTAINER_OF(share, struct bel_session, input);
    assert(session->state == BEL_SESSION_OPEN && session->request_bytes == 0);
    struct bel_call *call = bel__call_take(session);
    if (call == NULL) {
        drop(session);
    } else {
        session->state = BEL_SESSION_ENDING;
        bel__buffer_finish(&session->in);
        refuse(session, call, "ERR", why);
        bel__session_count_input(session);
        bel__input_share_unblock(share);
    }
    notify_owner(session);
}

static const struct bel_input_owner input_owner = {has_input, resume, expire};

void bel__session_block(struct bel_session *session)
{
    if (bel__input_share_room(&session->input, session->in.count) > 0) return;
    bel__input_share_block(&session->input);
}

/* --- the interface --- */

int bel__session_create(const struct bel_service *service, const struct bel_session_owner *owner,
                        struct bel_session **out)
{
    assert(owner->backend != NULL);
    struct bel_session *session = calloc(1, sizeof *session);
    if (session == NULL) return BEL_ENOMEM;
    session->service = service;
    session->owner = *owner;
    session->version = 2;
    session->is_authenticated = service->authenticate == NULL;
    session->grant = (struct bel_grant){.permissions = session->is_authenticated ? ~0U : 0};
    bel__session_begin_stranger(session);
    struct bel_resp_limits limits = bel__session_limits(service, session->is_authenticated);
    bel__resp_init(&session->parser, &limits);
    bel__session_init_limits(session);
    bel__input_share_init(&session->input, service->input_total, &input_owner);
    bel__list_init(&session->calls);
    bel__list_init(&session->unwritten);
    bel__list_init(&session->releasing);
    struct bel_call *call = bel__call_take(session); /* becomes the spare call */
    if (call == NULL) {
        free(session);
        return BEL_ENOMEM;
    }
    bel__call_leave(session, call);
    bel__call_give(session, call);
    *out = session;
    return 0;
}

/* Withdraws claims that the backend has not executed. Other commands are executed to their end. */
static void withdraw_claims(struct bel_session *session)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&session->calls); link != NULL; link = next) {
        struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        next = bel__list_next(&session->calls, link);
        assert(call->state != BEL_CALL_ANSWERED);
        if (call->state == BEL_CALL_BACKGROUND || call->request.command.verb != BEL_VERB_CLAIM) {
            continue;
        }
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
    forget_unread(session);
    drop(session);
    withdraw_claims(session);
    bel__resp_finish(&session->parser);
    session->owner.ready = NULL; /* the connection may be freed before a background task ends */
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
    settle_unwritten(session);
    forget_unread(session); /* who goes on has read the reply */
    int err = BEL_EFULL;
    size_t max = bel__session_input_max(session);
    if (session->in.count <= max && bytes <= max - session->in.count) {
        err = bel__buffer_append(&session->in, data, bytes);
    }
    if (err) {
        drop(session);
    } else {
        bel__session_count_input(session);
    }
    return err;
}

void bel__session_take_back(struct bel_session *session)
{
    assert(session->state < BEL_SESSION_DESTROYED);
    settle_unwritten(session);
    struct bel_call *call = session->unread;
    session->unread = NULL;
    if (call != NULL) bel__call_abandon(session, call);
}

static bool step_some(struct bel_session *session, unsigned commands)
{
    for (unsigned i = 0; i < commands; i++) {
        if (!can_step(session) || bel__session_must_wait(session, NULL)) return false;
        if (!step_one(session)) return false;
    }
    return can_step(session) && session->in.count > 0;
}

bool bel__session_step(struct bel_session *session, unsigned commands)
{
    assert(session->state < BEL_SESSION_DESTROYED && commands > 0);
    settle_unwritten(session);
    session->crowd = BEL_SESSION_CROWD_NONE;
    bool has_more = step_some(session, commands);
    bel__session_count_input(session);
    return has_more;
}

struct bel_buffer *bel__session_output(struct bel_session *session)
{
    return &session->out;
}

void bel__session_trim(struct bel_session *session)
{
    bel__buffer_trim(&session->out, OUTPUT_BYTES_KEPT);
    bel__buffer_trim(&session->in, BEL_INPUT_SMALL_BYTES);
    bel__session_count_output(session);
    bel__session_count_input(session);
}

enum bel_session_crowd bel__session_crowd(const struct bel_session *session)
{
    return session->crowd;
}

bool bel__session_is_closing(const struct bel_session *session)
{
    return session->state >= BEL_SESSION_DROPPED ||
           (session->state == BEL_SESSION_ENDING && session->calls_count == 0);
}

struct bel_mono bel__session_auth_end(const struct bel_session *session)
{
    return session->auth_end;
}

struct bel_mono bel__session_mute_end(const struct bel_session *session)
{
    return session->mute_end;
}

void bel__session_regrant(struct bel_session *session,
                          bool (*regrant)(void *context, struct bel_grant *grant))
{
    assert(session->service->authenticate != NULL);
    if (!session->is_authenticated || session->state >= BEL_SESSION_DROPPED) return;
    if (!regrant(session->service->context, &session->grant)) drop(session);
}

bool bel__session_is_busy(const struct bel_session *session)
{
    return session->holder != NULL && session->holder->state == BEL_CALL_BACKGROUND;
}

bool bel__session_has_awaited(const struct bel_session *session)
{
    struct bel_link *link = bel__list_first(&session->unwritten);
    for (; link != NULL; link = bel__list_next(&session->unwritten, link)) {
        const struct bel_call *call = BEL_CONTAINER_OF(link, struct bel_call, link);
        if (call->request.command.claim.wait_ms > 0) return true;
    }
    return false;
}

bool bel__session_is_idle(const struct bel_session *session)
{
    return session->calls_count == 0 && session->request_bytes == 0 &&
           bel__list_is_empty(&session->releasing);
}
