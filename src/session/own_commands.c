/* SPDX-License-Identifier: MIT */

/*
 * Commands that the session executes itself, without the backend: the handshake of Redis clients,
 * and commands for the whole server. Most reply at once. A barrier command waits until all earlier
 * commands are answered, so that it sees their effects.
 */
#include "belfry/instant.h"
#include "belfry/version.h"
#include "core/units.h"
#include "core/view.h"
#include "session/call.h"
#include "session/key_check.h"
#include "session/reply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    MUTE_MS = 1000, /* delay of a reply after too many wrong keys */
    CLIENT_BYTES = 512,
    CLOCK_ERROR_BYTES = 256,
    INFO_BYTES_MAX = 1 << 20,
};

typedef void own_fn(struct bel_call *call, const struct bel_bound *bound,
                    struct bel_resp_writer *writer);

static bool has_permission(const struct bel_session *session, enum bel_permission permission)
{
    return (session->grant.permissions & 1U << permission) != 0;
}

/* Makes this the last command: the session accepts no more. */
static void stop_commands(struct bel_call *call)
{
    assert(call->session->state == BEL_SESSION_OPEN);
    call->session->state = BEL_SESSION_ENDING;
}

/* --- authentication --- */

/* Resets a session to the state of a new connection. */
static void reset_grant(struct bel_session *session)
{
    session->is_authenticated = session->service->authenticate == NULL;
    session->grant = (struct bel_grant){.permissions = session->is_authenticated ? ~0U : 0};
    session->parser.limits = bel__session_limits(session->service, session->is_authenticated);
    bel__session_begin_stranger(session);
}

/* Authenticates a client. On failure writes the error and returns false. */
static bool authenticate(struct bel_call *call, struct bel_view user, struct bel_view key,
                         struct bel_resp_writer *writer)
{
    struct bel_session *session = call->session;
    const struct bel_service *service = session->service;
    struct bel_grant grant = {0};
    if (service->authenticate == NULL) return true; /* without keys any key is right */
    struct bel_key_attempt attempt = {user, key, session->address};
    enum bel_key_result result = bel__key_check(service, &attempt, &session->keys_wrong, &grant);
    if (result != BEL_KEY_RIGHT) {
        bel__resp_error(writer, "NOAUTH", "wrong user or key");
        if (result == BEL_KEY_WRONG_MANY) {
            session->mute_end.ns = service->now->real.ns + (uint64_t)MUTE_MS * NS_PER_MS;
        }
        if (result != BEL_KEY_WRONG) stop_commands(call);
        return false;
    }
    session->is_authenticated = true;
    session->auth_end.ns = BEL_NEVER;
    session->grant = grant;
    session->parser.limits = bel__session_limits(service, true);
    return true;
}

static void do_auth(struct bel_call *call, const struct bel_bound *bound,
                    struct bel_resp_writer *writer)
{
    struct bel_view user = {0}, key = bound->repeated[bound->repeated_count - 1];
    if (bound->repeated_count > 2) {
        bel__resp_error(writer, "ERR", "AUTH takes a key, or a user and a key");
        return;
    }
    if (bound->repeated_count == 2) user = bound->repeated[0];
    if (authenticate(call, user, key, writer)) bel__resp_simple(writer, "OK");
}

/* Sets the name of a client. A line of CLIENT LIST contains the name, so it must have no spaces. On
 * failure writes the error and returns false. */
static bool set_name(struct bel_session *session, struct bel_view name,
                     struct bel_resp_writer *writer)
{
    const unsigned char *text = name.data;
    bool is_fine = name.bytes < sizeof session->name;
    for (size_t i = 0; i < name.bytes && is_fine; i++) {
        is_fine = text[i] > ' ' && text[i] < 0x7f;
    }
    if (!is_fine) {
        bel__resp_error(writer, "ERR", "a name has at most 63 printable characters, no spaces");
        return false;
    }
    memset(session->name, 0, sizeof session->name);
    if (name.bytes > 0) memcpy(session->name, name.data, name.bytes);
    return true;
}

static void write_hello(const struct bel_session *session, struct bel_resp_writer *writer)
{
    bel__resp_map(writer, 7);
    bel__resp_text(writer, "server");
    bel__resp_text(writer, "belfry");
    bel__resp_text(writer, "version");
    bel__resp_text(writer, bel_version());
    bel__resp_text(writer, "proto");
    bel__resp_integer(writer, session->version);
    bel__resp_text(writer, "id");
    bel__resp_count(writer, session->id);
    bel__resp_text(writer, "mode");
    bel__resp_text(writer, "standalone");
    bel__resp_text(writer, "role");
    bel__resp_text(writer, "master");
    bel__resp_text(writer, "modules");
    bel__resp_array(writer, 0);
}

static void do_hello(struct bel_call *call, const struct bel_bound *bound,
                     struct bel_resp_writer *writer)
{
    struct bel_session *session = call->session;
    bool has_version = bel__bound_has(bound, BEL_HELLO_VERSION);
    uint64_t version = bound->values[BEL_HELLO_VERSION].number;
    struct bel_view name = bound->values[BEL_HELLO_SETNAME].text;
    if (has_version && version != 2 && version != 3) {
        bel__resp_error(writer, "NOPROTO", "unsupported protocol version: 2 or 3");
        return;
    }
    if (bound->pairs_count > 0 &&
        !authenticate(call, bound->pairs[0].name, bound->pairs[0].value, writer)) {
        return;
    }
    if (!session->is_authenticated) {
        bel__resp_error(writer, "NOAUTH", "HELLO needs a key: HELLO 3 AUTH user key");
        return;
    }
    if (bel__bound_has(bound, BEL_HELLO_SETNAME) && !set_name(session, name, writer)) return;
    if (has_version) session->version = (int)version;
    writer->version = session->version;
    write_hello(session, writer);
}

/* --- CLIENT --- */

/* Prints a line of CLIENT LIST, with all fields that Redis clients expect. */
static size_t print_client(const struct bel_session *session, char out[CLIENT_BYTES])
{
    uint64_t age_ns = session->service->now->real.ns - session->since.ns;
    int printed = snprintf(out, CLIENT_BYTES,
                           "id=%llu addr=%s name=%s age=%llu idle=0 flags=N db=0 sub=0 psub=0 "
                           "multi=-1 qbuf=%zu qbuf-free=%zu argv-mem=0 obl=%zu oll=0 omem=0 "
                           "tot-mem=%zu cmd=client resp=%d commands=%zu\n",
                           (unsigned long long)session->id, session->address, session->name,
                           (unsigned long long)(age_ns / NS_PER_S), session->in.count,
                           bel__session_room(session), session->out.count,
                           session->in.count + session->out.count + session->kept_bytes,
                           session->version, session->calls_count);
    assert(printed > 0 && printed < CLIENT_BYTES);
    return (size_t)printed;
}

static void do_client(struct bel_call *call, const struct bel_bound *bound,
                      struct bel_resp_writer *writer)
{
    struct bel_session *session = call->session;
    char line[CLIENT_BYTES];
    switch (bound->values[0].number) {
    case BEL_CLIENT_ID:
        bel__resp_count(writer, session->id);
        break;
    case BEL_CLIENT_INFO:
    case BEL_CLIENT_LIST:
        bel__resp_bulk(writer, (struct bel_view){line, print_client(session, line)});
        break;
    case BEL_CLIENT_GETNAME:
        if (session->name[0] != 0) {
            bel__resp_text(writer, session->name);
        } else {
            bel__resp_null(writer);
        }
        break;
    case BEL_CLIENT_SETNAME:
        if (bound->repeated_count != 1) {
            bel__resp_error(writer, "ERR", "CLIENT SETNAME takes one name");
        } else if (set_name(session, bound->repeated[0], writer)) {
            bel__resp_simple(writer, "OK");
        }
        break;
    default: /* e.g. SETINFO: accepted and ignored */
        bel__resp_simple(writer, "OK");
        break;
    }
}

/* --- short commands --- */

static void do_ping(struct bel_call *call, const struct bel_bound *bound,
                    struct bel_resp_writer *writer)
{
    (void)call;
    if (bel__bound_has(bound, 0)) {
        bel__resp_bulk(writer, bound->values[0].text);
    } else {
        bel__resp_simple(writer, "PONG");
    }
}

static void do_echo(struct bel_call *call, const struct bel_bound *bound,
                    struct bel_resp_writer *writer)
{
    (void)call;
    bel__resp_bulk(writer, bound->values[0].text);
}

static void do_select(struct bel_call *call, const struct bel_bound *bound,
                      struct bel_resp_writer *writer)
{
    (void)call;
    if (bound->values[0].number == 0) {
        bel__resp_simple(writer, "OK");
    } else {
        bel__resp_error(writer, "ERR", "DB index is out of range: the only database is 0");
    }
}

static void do_reset(struct bel_call *call, const struct bel_bound *bound,
                     struct bel_resp_writer *writer)
{
    (void)bound;
    struct bel_session *session = call->session;
    session->version = writer->version = 2;
    session->is_in_multi = false;
    memset(session->name, 0, sizeof session->name);
    reset_grant(session);
    bel__resp_simple(writer, "RESET");
}

static void do_quit(struct bel_call *call, const struct bel_bound *bound,
                    struct bel_resp_writer *writer)
{
    (void)bound;
    stop_commands(call);
    bel__resp_simple(writer, "OK");
}

static void do_command(struct bel_call *call, const struct bel_bound *bound,
                       struct bel_resp_writer *writer)
{
    (void)call;
    bel__command_docs_write(bound, writer);
}

/* --- the server --- */

/* Returns whether the modes of SHUTDOWN contain ABORT. The other modes mean the same as none. */
static bool is_abort(const struct bel_bound *bound)
{
    static const char word[] = "ABORT";
    for (size_t i = 0; i < bound->repeated_count; i++) {
        struct bel_view mode = bound->repeated[i];
        if (mode.bytes == sizeof word - 1 && strncasecmp(mode.data, word, mode.bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Writes no reply, as Redis: the connection is closed. */
static void do_shutdown(struct bel_call *call, const struct bel_bound *bound,
                        struct bel_resp_writer *writer)
{
    const struct bel_service *service = call->session->service;
    if (is_abort(bound)) {
        bel__resp_error(writer, "ERR", "no shutdown in progress");
        return;
    }
    if (service->shutdown == NULL) {
        bel__resp_error(writer, "ERR", "SHUTDOWN is not available on this server");
        return;
    }
    stop_commands(call);
    service->shutdown(service->context);
}

static int append_info(const struct bel_session *session, const struct bel_bound *bound,
                       struct bel_buffer *out)
{
    const struct bel_service *service = session->service;
    if (service->info == NULL) {
        return bel__buffer_append_format(out, "# Server\r\nbelfry_version:%s\r\n", bel_version());
    }
    const struct bel_scope *scope = session->grant.scope;
    if (bound->repeated_count == 0) {
        return service->info(service->context, (struct bel_view){0}, scope, out);
    }
    int err = 0;
    for (size_t i = 0; i < bound->repeated_count && err == 0; i++) {
        err = service->info(service->context, bound->repeated[i], scope, out);
    }
    return err;
}

static void do_info(struct bel_call *call, const struct bel_bound *bound,
                    struct bel_resp_writer *writer)
{
    struct bel_buffer text;
    bel__buffer_init(&text, INFO_BYTES_MAX);
    int err = append_info(call->session, bound, &text);
    if (err) {
        bel__resp_error(writer, bel__reply_code(err), bel_error_text(err));
    } else {
        bel__resp_bulk(writer, (struct bel_view){bel__buffer_data(&text), text.count});
    }
    bel__buffer_finish(&text);
}

/* Handles the result of starting a task: waits for the task, or replies if it is already done. */
static void finish_or_wait(struct bel_call *call, int err, const char *why,
                           struct bel_resp_writer *writer)
{
    if (err == BEL_BACKGROUND_LATER) {
        call->state = BEL_CALL_BACKGROUND;
    } else {
        bel__own_command_end(call, err, why, writer);
    }
}

static void do_backup(struct bel_call *call, const struct bel_bound *bound,
                      struct bel_resp_writer *writer)
{
    const struct bel_service *service = call->session->service;
    struct bel_why why = {0};
    if (service->backup == NULL) {
        bel__resp_error(writer, "UNSUPPORTED", "BACKUP needs a store in a data directory");
        return;
    }
    int err = service->backup(service->context, bound->values[0].text, &call->task, &why);
    finish_or_wait(call, err, why.text, writer);
}

/* --- CLOCK --- */

/* Sets `*out` to the requested movement of the clock. On failure writes the error and returns
 * false. */
static bool parse_move(const struct bel_session *session, const struct bel_bound *bound,
                       struct bel_resp_writer *writer, struct bel_clock_move *out)
{
    bool is_set = bel__bound_has(bound, BEL_CLOCK_SET);
    if (bel__bound_has(bound, BEL_CLOCK_ADVANCE) && is_set) {
        bel__resp_error(writer, "ERR", "ADVANCE and SET exclude each other: give one of them");
    } else if (!has_permission(session, BEL_PERMISSION_ADMIN) || session->grant.scope != NULL) {
        bel__resp_error(writer, "NOPERM", "moving the clock needs the permission 'admin'");
    } else if (session->service->advance == NULL) {
        bel__resp_error(writer, "ERR",
                        "the server uses the system clock: start it with --clock virtual");
    } else {
        *out = (struct bel_clock_move){.is_set = is_set,
                                       .to = bound->values[BEL_CLOCK_SET].time,
                                       .by_ms = bound->values[BEL_CLOCK_ADVANCE].number};
        return true;
    }
    return false;
}

static void do_clock(struct bel_call *call, const struct bel_bound *bound,
                     struct bel_resp_writer *writer)
{
    const struct bel_service *service = call->session->service;
    bool is_moved =
        bel__bound_has(bound, BEL_CLOCK_ADVANCE) || bel__bound_has(bound, BEL_CLOCK_SET);
    struct bel_clock_move move;
    if (!is_moved) {
        bel__resp_integer(writer, service->now->wall.ms);
    } else if (parse_move(call->session, bound, writer, &move)) {
        finish_or_wait(call, service->advance(service->context, &move, &call->task), "", writer);
    }
}

void bel__own_command_end(const struct bel_call *call, int err, const char *why,
                          struct bel_resp_writer *writer)
{
    bool is_clock = call->entry == &bel__commands[BEL_COMMAND_CLOCK];
    if (err != 0 && is_clock && err == BEL_EINVAL) {
        char now[BEL_INSTANT_BYTES], text[CLOCK_ERROR_BYTES];
        (void)bel_instant_print(call->session->service->now->wall, now, sizeof now);
        (void)snprintf(text, sizeof text,
                       "the clock only moves forward: it shows %s, and the time is before that or "
                       "too far ahead",
                       now);
        bel__resp_error(writer, "BADARG", text);
    } else if (err != 0) {
        bel__resp_error(writer, bel__reply_code(err), why[0] != 0 ? why : bel_error_text(err));
    } else if (is_clock) {
        bel__resp_integer(writer, call->session->service->now->wall.ms);
    } else {
        bel__resp_simple(writer, "OK");
    }
}

static const struct {
    own_fn *run;
    bool is_barrier;
} own[BEL_COMMANDS] = {
    [BEL_COMMAND_CLOCK] = {do_clock, true},       [BEL_COMMAND_BACKUP] = {do_backup, true},
    [BEL_COMMAND_PING] = {do_ping, false},        [BEL_COMMAND_ECHO] = {do_echo, false},
    [BEL_COMMAND_HELLO] = {do_hello, false},      [BEL_COMMAND_AUTH] = {do_auth, false},
    [BEL_COMMAND_CLIENT] = {do_client, false},    [BEL_COMMAND_COMMAND] = {do_command, false},
    [BEL_COMMAND_INFO] = {do_info, true},         [BEL_COMMAND_SELECT] = {do_select, false},
    [BEL_COMMAND_RESET] = {do_reset, false},      [BEL_COMMAND_QUIT] = {do_quit, false},
    [BEL_COMMAND_SHUTDOWN] = {do_shutdown, true},
};

bool bel__own_command_is_barrier(const struct bel_command_entry *entry)
{
    return own[entry - bel__commands].is_barrier;
}

void bel__own_command_do(struct bel_call *call, const struct bel_bound *bound,
                         struct bel_resp_writer *writer)
{
    size_t place = (size_t)(bound->entry - bel__commands);
    assert(own[place].run != NULL);
    if (bound->entry->permission == BEL_PERMISSION_ADMIN && call->session->grant.scope != NULL) {
        bel__resp_error(writer, "NOPERM", "this command needs a key that is not limited to topics");
        return;
    }
    own[place].run(call, bound, writer);
}
