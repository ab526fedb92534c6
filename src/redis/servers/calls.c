/* SPDX-License-Identifier: MIT */

/*
 * A call is in one of two places: with a server (server->calls), or parked.
 *
 *     send --> server --> done
 *       |       ^  |  MOVED, ASK, TRYAGAIN ...
 *       v       |  v
 *       parked -'
 *
 * Order: a slot that has a parked call gets no other call before this one. When a call comes back
 * unexecuted, nothing of its slot is sent before all others have come back, too; then they are sent
 * again in the order in which they came. Calls of a slot are under way at one server at a time. So
 * the calls of a slot keep their order across a redirect: what a server has moved away, or is
 * moving away, it refuses to the calls that follow on the connection, too. A refusal that ends by
 * itself (LOADING, BUSY, CLUSTERDOWN, READONLY) may have ended for those: they had left before the
 * first one came back, and have overtaken it.
 *
 * Callbacks of connections only park; bel__calls_pump() sends, between the halves of a turn, when
 * connections can be opened.
 */
#include "redis/servers/calls.h"

#include "redis/servers/health.h"
#include "redis/servers/proof.h"
#include "redis/servers/redirect.h"
#include "redis/servers/server.h"

#include "core/units.h"
#include "core/view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARKED_BYTES_MAX = BEL_REDIS_CALL_BYTES_MAX,
    TRIES_AT_ONCE = 3, /* redirects that are followed without a wait */
    RETRY_MS_MIN = 20,
    RETRY_MS_MAX = 500,
    QUOTED_BYTES_MAX = 160, /* of an error of a server */
};

static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

static struct bel_server_call *call_of(struct bel_link *link)
{
    return BEL_CONTAINER_OF(link, struct bel_server_call, link);
}

static struct bel_redis_slot *slot_of(const struct bel_server_call *call)
{
    return bel__servers_slot(call->servers, call->slot);
}

/* --- Ending --- */

/* Notes that ASK has named a server for a call; NULL: the server of its slot is to have it. */
static void set_asked(struct bel_server_call *call, struct bel_server *server)
{
    if (call->asked != NULL) call->asked->askers--;
    if (server != NULL) server->askers++;
    call->asked = server;
}

static void end_unsent(struct bel_server_call *call, int err, const char *why)
{
    set_asked(call, NULL);
    struct bel_redis_reply reply = {.err = err, .is_last = true, .why = why};
    bel__server_call_end(call, &reply);
}

/* Returns whether a call is a change that replicas must have before it is answered. */
static bool must_prove(const struct bel_server_call *call)
{
    return call->is_write && call->servers->options.durability == BEL_DURABILITY_WAIT;
}

static struct bel_server *wanted_of(const struct bel_server_call *call)
{
    return call->asked != NULL ? call->asked : slot_of(call)->server;
}

/* Returns why a call was never sent. */
static const char *reason(const struct bel_server_call *call)
{
    const struct bel_servers *servers = call->servers;
    const struct bel_server *server = wanted_of(call);
    if (server != NULL && server->connection != NULL && !bel__server_is_ready(server)) {
        const char *why = bel__redis_link_why(server->connection);
        if (why[0] != 0) return why;
    }
    return servers->why.text[0] != 0 ? servers->why.text : "no server could be reached in time";
}

/* --- Parking --- */

/* Parks a call until a time, after the parked calls that were sent before it. */
static void park(struct bel_server_call *call, struct bel_mono until)
{
    struct bel_servers *servers = call->servers;
    struct bel_link *after = servers->parked.head.prev;
    call->server = NULL;
    call->retry_at = until;
    while (after != &servers->parked.head && call_of(after)->number > call->number) {
        after = after->prev;
    }
    bel__link_insert_after(after, &call->link);
    slot_of(call)->parked++;
    servers->parked_bytes += call->command.bytes;
    servers->pump_at.ns = 0;
}

static void unpark(struct bel_server_call *call)
{
    struct bel_servers *servers = call->servers;
    assert(slot_of(call)->parked > 0 && servers->parked_bytes >= call->command.bytes);
    bel__link_remove(&call->link);
    slot_of(call)->parked--;
    servers->parked_bytes -= call->command.bytes;
}

/* Parks a call for a random time, the longer the more often it was sent. */
static void park_later(struct bel_server_call *call)
{
    struct bel_servers *servers = call->servers;
    uint64_t word, bound_ms = RETRY_MS_MIN;
    for (uint32_t i = 0; i < call->tries && bound_ms < RETRY_MS_MAX; i++) {
        bound_ms *= 2;
    }
    if (bound_ms > RETRY_MS_MAX) bound_ms = RETRY_MS_MAX;
    if (bel__entropy_u64(servers->owner.entropy, &word) != 0) word = 0;
    call->tries++;
    park(call, bel__servers_after(servers->now, bound_ms / 2 + word % (bound_ms / 2)));
}

static void free_joined(struct bel_server_call *call)
{
    free(call->joined);
    call->joined = NULL;
}

/* Counts a call that was sent and has come back, or was taken back. */
static void leave(struct bel_server_call *call)
{
    struct bel_redis_slot *slot = slot_of(call);
    assert(slot->sent > 0 && slot->at == call->server);
    bel__link_remove(&call->link);
    call->server = NULL;
    free_joined(call);
    if (--slot->sent > 0) return;
    slot->is_disturbed = false;
    if (slot->parked > 0) call->servers->pump_at.ns = 0;
}

/* --- Redirects --- */

static void note_trouble(const struct bel_server *from, const struct bel_value *error)
{
    char name[BEL_SERVER_NAME_BYTES];
    struct bel_view text = bel__view_head(error->text, QUOTED_BYTES_MAX);
    bel__server_print(from, name);
    (void)bel__why_say(&from->servers->why, 0, "%s: the server replied: %.*s", name,
                       (int)text.bytes, (const char *)text.data);
}

/* Follows MOVED or ASK, or parks the call if memory has run out. */
static void follow(struct bel_server_call *call, const struct bel_server *from,
                   const struct bel_redirect *redirect)
{
    struct bel_servers *servers = call->servers;
    const char *host = redirect->host[0] != 0 ? redirect->host : from->host;
    struct bel_server *target = bel__server_at(servers, host, redirect->port);
    if (target != NULL) target->used = servers->now;
    if (target != NULL && redirect->kind == BEL_REDIRECT_ASK) set_asked(call, target);
    if (target != NULL && target->connection == NULL) servers->cluster.is_fresh = true;
    if (redirect->kind == BEL_REDIRECT_MOVED) servers->cluster.is_wanted = true;
    if (target != NULL && redirect->kind == BEL_REDIRECT_MOVED) {
        struct bel_redis_slot *slot = bel__servers_slot(servers, redirect->slot);
        if (slot->server != NULL) slot->server->slots_count--;
        slot->server = target;
        target->slots_count++;
        servers->cluster.is_fresh = true;
    }
    if (target == NULL || call->tries >= TRIES_AT_ONCE) {
        park_later(call);
        return;
    }
    call->tries++;
    park(call, servers->now);
}

/* Handles an error reply that says where or when to send the call again. Returns false if it says
 * no such thing. */
static bool redirect(struct bel_server_call *call, struct bel_server *from,
                     const struct bel_value *error)
{
    struct bel_servers *servers = call->servers;
    struct bel_redirect said;
    bel__redirect_read(error, &said);
    bool is_cluster = bel__servers_are_cluster(servers);
    if (said.kind == BEL_REDIRECT_NONE || servers->is_closing) return false;
    if (!is_cluster && (said.kind == BEL_REDIRECT_MOVED || said.kind == BEL_REDIRECT_ASK)) {
        return false;
    }
    note_trouble(from, error);
    slot_of(call)->is_disturbed = slot_of(call)->sent > 0;
    if (said.kind == BEL_REDIRECT_MOVED || said.kind == BEL_REDIRECT_ASK) {
        follow(call, from, &said);
        return true;
    }
    if (said.kind == BEL_REDIRECT_MOVING) call->lacks_keys = call->was_asked;
    bool is_elsewhere = said.kind == BEL_REDIRECT_DOWN || said.kind == BEL_REDIRECT_REPLICA;
    if (is_elsewhere) servers->cluster.is_wanted = true;
    if (said.kind == BEL_REDIRECT_REPLICA && !is_cluster) from->is_replica = true;
    park_later(call);
    return true;
}

/* --- Sending --- */

static void ended(struct bel_redis_call *own, const struct bel_redis_reply *reply)
{
    struct bel_server_call *call = BEL_CONTAINER_OF(own, struct bel_server_call, call);
    struct bel_server *server = call->server;
    if (!reply->is_last) return; /* to ASKING: the last reply says whether that was executed */
    leave(call);
    call->from = reply->err == 0 ? server->number : 0;
    bool is_error = reply->err == 0 && reply->value->type == BEL_VALUE_ERROR;
    if (is_error) bel__health_hear(server, reply->value);
    if (reply->err == 0 && !is_error && call->is_write) bel__health_wrote(server);
    if (is_error && redirect(call, server, reply->value)) return;
    if (reply->err == 0 && !is_error && must_prove(call)) {
        bel__proof_keep(server, call, reply);
    } else if (reply->err == BEL_EBUSY) {
        end_unsent(call, BEL_EBUSY, reason(call));
    } else {
        bel__server_call_end(call, reply);
    }
}

static uint32_t left_ms(const struct bel_server_call *call)
{
    uint64_t now = call->servers->now.ns;
    uint64_t ms = call->deadline.ns > now ? (call->deadline.ns - now) / NS_PER_MS : 0;
    return ms == 0 ? 1 : ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* Joins what a server that ASK has named needs: commands that create keys, if no server has them,
 * ASKING, and the command. */
static int join(struct bel_server_call *call, struct bel_redis_call *out)
{
    struct bel_view birth = {NULL, 0};
    uint32_t count = 0;
    if (call->lacks_keys && call->birth != NULL) birth = call->birth(call, &count);
    const struct bel_view parts[] = {birth, {asking, sizeof asking - 1}, call->command};
    char *at = malloc(birth.bytes + sizeof asking + call->command.bytes);
    if (at == NULL) return BEL_ENOMEM;
    call->joined = at;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].bytes > 0) memcpy(at, parts[i].data, parts[i].bytes);
        at += parts[i].bytes;
    }
    out->command = (struct bel_view){call->joined, (size_t)(at - call->joined)};
    out->replies = count + 2;
    return 0;
}

/* Gives a call to a server. */
static int push(struct bel_server_call *call, struct bel_server *server)
{
    struct bel_servers *servers = call->servers;
    call->was_asked = server == call->asked;
    set_asked(call, NULL);
    call->call = (struct bel_redis_call){
        .command = call->command, .timeout_ms = left_ms(call), .done = ended};
    int err = call->was_asked ? join(call, &call->call) : 0;
    if (err == 0) err = bel__redis_link_send(server->connection, &call->call, servers->now);
    if (err) {
        free_joined(call);
        return err;
    }
    call->server = server;
    slot_of(call)->at = server;
    slot_of(call)->sent++;
    if (must_prove(call)) call->change = ++server->changes;
    bel__list_append(&server->calls, &call->link);
    return 0;
}

/* Returns whether a server may evict what is added, or this is not known yet. */
static bool may_lose(const struct bel_server *server)
{
    return bel__health_is_open(server) || bel__health_refuses(server, NULL);
}

/* Returns the server that a call goes to now; NULL if there is none. */
static struct bel_server *target_of(const struct bel_server_call *call)
{
    struct bel_server *server = wanted_of(call);
    if (server == NULL || server->connection == NULL || server->is_replica) return NULL;
    if (call->is_adding && may_lose(server)) return NULL;
    return must_prove(call) && bel__server_lacks_replicas(server) ? NULL : server;
}

/* Returns whether a call sent to a server now could overtake one that is under way. */
static bool may_overtake(const struct bel_redis_slot *slot, const struct bel_server *server)
{
    return slot->sent > 0 && (slot->is_disturbed || slot->at != server);
}

int bel__calls_send(struct bel_servers *servers, struct bel_server_call *call)
{
    uint32_t timeout_ms = call->timeout_ms != 0 ? call->timeout_ms : servers->options.call_ms;
    if (servers->is_closing) return BEL_ECLOSED;
    if (servers->calls_count == BEL_REDIS_CALLS_MAX) return BEL_EFULL;
    call->servers = servers;
    call->asked = NULL;
    call->was_asked = call->lacks_keys = false;
    call->joined = NULL;
    call->from = 0;
    call->tries = 0;
    call->number = ++servers->numbers;
    call->deadline = bel__servers_after(servers->now, timeout_ms);
    struct bel_server *server = target_of(call);
    const struct bel_redis_slot *slot = slot_of(call);
    if (server == NULL || slot->parked > 0 || may_overtake(slot, server)) {
        if (call->command.bytes > PARKED_BYTES_MAX - servers->parked_bytes) return BEL_EFULL;
        park(call, servers->now);
    } else {
        int err = push(call, server);
        if (err) return err;
    }
    servers->calls_count++;
    return 0;
}

/* --- Parked calls --- */

/* Sends a parked call, or lets it and those of its slot after it wait on. Returns until when. */
static struct bel_mono try_to_send(struct bel_server_call *call)
{
    struct bel_servers *servers = call->servers;
    struct bel_redis_slot *slot = slot_of(call);
    struct bel_server *server = target_of(call);
    bool is_early = call->retry_at.ns > servers->now.ns;
    bool must_wait = slot->pass == servers->passes || is_early || may_overtake(slot, server);
    if (!must_wait && server != NULL) {
        unpark(call);
        if (push(call, server) == 0) return (struct bel_mono){BEL_NEVER};
        park_later(call); /* the server has too many calls */
    }
    slot->pass = servers->passes;
    bool has_time = server != NULL && is_early;
    if (has_time && call->retry_at.ns < call->deadline.ns) return call->retry_at;
    return call->deadline;
}

/* Returns whether a change cannot be proved or would not last, which is better said before it is
 * made. */
static bool is_refused(const struct bel_server_call *call, struct bel_why *why)
{
    const struct bel_server *server = wanted_of(call);
    if (server == NULL || !bel__server_is_ready(server)) return false;
    bool is_known = !bel__health_is_open(server);
    if (call->is_adding && is_known && bel__health_refuses(server, why)) return true;
    return must_prove(call) && bel__proof_refuses(server, why);
}

struct bel_mono bel__calls_pump(struct bel_servers *servers)
{
    struct bel_list late;
    struct bel_mono first = {BEL_NEVER};
    struct bel_link *next;
    if (servers->now.ns < servers->pump_at.ns) return servers->pump_at;
    bel__list_init(&late);
    servers->passes++;
    for (struct bel_link *link = bel__list_first(&servers->parked); link != NULL; link = next) {
        struct bel_server_call *call = call_of(link);
        next = bel__list_next(&servers->parked, link);
        if (call->deadline.ns <= servers->now.ns || is_refused(call, NULL)) {
            unpark(call);
            bel__list_append(&late, &call->link);
            continue;
        }
        struct bel_mono at = try_to_send(call);
        if (at.ns < first.ns) first = at;
    }
    servers->pump_at = first;
    /* Only now: `done` may send calls, which sets pump_at. */
    for (struct bel_link *link; (link = bel__list_take_first(&late)) != NULL;) {
        struct bel_server_call *call = call_of(link);
        struct bel_why why;
        if (is_refused(call, &why)) {
            end_unsent(call, BEL_EIO, why.text);
        } else {
            end_unsent(call, BEL_EBUSY, reason(call));
        }
    }
    return servers->pump_at;
}

/* Parks a call, unless it has left. */
static void take_back(struct bel_server *server, struct bel_server_call *call)
{
    if (!bel__redis_link_withdraw(server->connection, &call->call)) return;
    leave(call);
    park(call, server->servers->now);
}

void bel__calls_take_back(struct bel_server *server)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&server->calls); link != NULL; link = next) {
        next = bel__list_next(&server->calls, link);
        if (slot_of(call_of(link))->server != server) take_back(server, call_of(link));
    }
}

void bel__calls_take_unfit_back(struct bel_server *server)
{
    struct bel_link *next;
    bool is_after = server->is_replica; /* of a call that is unfit */
    for (struct bel_link *link = bel__list_first(&server->calls); link != NULL; link = next) {
        next = bel__list_next(&server->calls, link);
        struct bel_server_call *call = call_of(link);
        is_after = is_after || must_prove(call) || (call->is_adding && may_lose(server));
        if (is_after) take_back(server, call);
    }
}

void bel__calls_drop(struct bel_servers *servers)
{
    for (struct bel_link *link; (link = bel__list_first(&servers->parked)) != NULL;) {
        unpark(call_of(link));
        end_unsent(call_of(link), BEL_ECLOSED, "the connection was closed");
    }
}
