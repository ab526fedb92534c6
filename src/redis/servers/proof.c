/* SPDX-License-Identifier: MIT */

/*
 * WAIT proves nothing on a connection that has written nothing: there it only counts replicas. So a
 * WAIT that is left over when a connection breaks must not be sent on the next one, and each script
 * whose answer promises something writes, even if it finds that there is nothing to do.
 */
#include "redis/servers/proof.h"

#include "redis/servers/server.h"

#include "redis/link/command.h"

#include "core/arena.h"
#include "core/buffer.h"

#include <assert.h>
#include <stdlib.h>

enum {
    DEPTH_MAX = 16, /* of a reply */
    LATE_MS = 3000, /* how long after its own timeout WAIT may answer */
};

/* A reply that is kept. */
struct bel_kept {
    struct bel_arena arena;
    struct bel_value value;
};

/* --- Keeping --- */

/* Copies a value. Returns false if memory has run out, or if it is too deep. */
static bool copy(struct bel_arena *arena, const struct bel_value *from, struct bel_value *to,
                 unsigned depth)
{
    *to = *from;
    if (from->text.bytes > 0) {
        to->text = bel__arena_copy(arena, from->text);
        if (to->text.data == NULL) return false;
    }
    if (from->count == 0) return true;
    struct bel_value *items = bel__arena_take(arena, from->count * sizeof *items);
    bool is_done = items != NULL && depth > 0;
    for (size_t i = 0; is_done && i < from->count; i++) {
        is_done = copy(arena, &from->items[i], &items[i], depth - 1);
    }
    to->items = items;
    return is_done;
}

static void free_kept(struct bel_server_call *call)
{
    bel__arena_finish(&call->kept->arena);
    free(call->kept);
    call->kept = NULL;
}

static void end_unproved(struct bel_server_call *call, const char *why)
{
    struct bel_redis_reply reply = {.err = BEL_EIO, .is_last = true, .why = why};
    bel__server_call_end(call, &reply);
}

void bel__proof_keep(struct bel_server *server, struct bel_server_call *call,
                     const struct bel_redis_reply *reply)
{
    call->kept = calloc(1, sizeof *call->kept);
    if (call->kept == NULL) {
        end_unproved(call, "memory has run out: the outcome is unknown");
        return;
    }
    if (!copy(&call->kept->arena, reply->value, &call->kept->value, DEPTH_MAX)) {
        free_kept(call);
        end_unproved(call, "memory has run out: the outcome is unknown");
        return;
    }
    bel__list_append(&server->kept, &call->link);
}

/* --- Proving --- */

/* Ends the kept calls that a WAIT covers; `why` NULL: they are proved. */
static void end_kept(struct bel_server *server, uint64_t covered, const char *why)
{
    for (struct bel_link *link; (link = bel__list_first(&server->kept)) != NULL;) {
        struct bel_server_call *call = BEL_CONTAINER_OF(link, struct bel_server_call, link);
        struct bel_kept *kept = call->kept;
        if (call->change > covered) break; /* replies come in the order of changes */
        bel__link_remove(link);
        struct bel_redis_reply reply = {.value = &kept->value, .is_last = true, .why = ""};
        call->kept = NULL;
        if (why == NULL) {
            bel__server_call_end(call, &reply);
        } else {
            end_unproved(call, why);
        }
        bel__arena_finish(&kept->arena);
        free(kept);
    }
}

/* Reads the reply to WAIT, a number, or to WAITAOF: {own file, files of replicas}. Returns false if
 * it is something else. */
static bool read_count(const struct bel_value *value, int64_t *out_own, int64_t *out_replicas)
{
    *out_own = 1;
    *out_replicas = value->number;
    if (value->type == BEL_VALUE_NUMBER) return true;
    if (value->type != BEL_VALUE_LIST || value->count != 2) return false;
    *out_own = value->items[0].number;
    *out_replicas = value->items[1].number;
    return value->items[0].type == BEL_VALUE_NUMBER && value->items[1].type == BEL_VALUE_NUMBER;
}

static void judge(struct bel_server *server, const struct bel_value *value)
{
    struct bel_servers *servers = server->servers;
    int64_t own, replicas, wanted = servers->replicas_wanted;
    struct bel_why why = {{0}, NULL};
    if (!read_count(value, &own, &replicas)) {
        end_kept(server, server->covered, "the server replied to WAIT with something else");
        return;
    }
    if (own >= 1 && replicas >= wanted) {
        end_kept(server, server->covered, NULL);
        return;
    }
    (void)bel__why_say(&why, 0,
                       "%lld of %lld replicas have it%s: the outcome is unknown, safe to retry "
                       "with CONFLICT keep",
                       (long long)replicas, (long long)wanted,
                       value->type == BEL_VALUE_LIST ? " in their append-only file" : "");
    server->replicas = replicas < 0 ? 0 : (uint32_t)replicas;
    if (replicas >= wanted) server->replicas = 0; /* its own file is late: ask for its role again */
    server->probe_at = servers->now;
    end_kept(server, server->covered, why.text);
}

static void waited(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_server *server = BEL_CONTAINER_OF(call, struct bel_server, wait);
    server->is_waiting = false;
    if (reply->err) {
        bel__proof_lose(server);
    } else if (reply->value->type == BEL_VALUE_ERROR && !server->is_plain_wait) {
        server->is_plain_wait = true; /* it does not know WAITAOF, or has no such file */
        server->covered = 0;
    } else {
        judge(server, reply->value);
    }
}

static int encode(struct bel_server *server, uint32_t timeout_ms)
{
    struct bel_redis_command command;
    uint32_t wanted = server->servers->replicas_wanted;
    bel__buffer_finish(&server->wait_command);
    bel__redis_command_begin(&command, &server->wait_command, server->is_plain_wait ? 3 : 4);
    bel__redis_command_word(&command, server->is_plain_wait ? "WAIT" : "WAITAOF");
    if (!server->is_plain_wait) bel__redis_command_u64(&command, 1);
    bel__redis_command_u64(&command, wanted);
    bel__redis_command_u64(&command, timeout_ms);
    return bel__redis_command_end(&command);
}

static void ask(struct bel_server *server)
{
    struct bel_servers *servers = server->servers;
    uint32_t timeout_ms = servers->options.call_ms / 2 + 1;
    bool is_needed = server->changes > server->covered;
    if (!is_needed || server->is_waiting || !bel__server_is_ready(server)) return;
    if (encode(server, timeout_ms) != 0) return; /* the next turn tries again */
    server->wait = (struct bel_redis_call){
        .command = {bel__buffer_data(&server->wait_command), server->wait_command.count},
        .timeout_ms = timeout_ms + LATE_MS,
        .done = waited};
    if (bel__redis_link_send(server->connection, &server->wait, servers->now) != 0) return;
    server->is_waiting = true;
    server->covered = server->changes;
}

void bel__proof_ask(struct bel_servers *servers)
{
    if (servers->options.durability != BEL_DURABILITY_WAIT) return;
    for (struct bel_link *link = bel__list_first(&servers->all); link != NULL;
         link = bel__list_next(&servers->all, link)) {
        ask(BEL_CONTAINER_OF(link, struct bel_server, link));
    }
}

void bel__proof_lose(struct bel_server *server)
{
    if (server->is_waiting && bel__redis_link_withdraw(server->connection, &server->wait)) {
        server->is_waiting = false;
    }
    server->is_plain_wait = false;
    server->covered = server->changes;
    end_kept(server, server->changes,
             "the connection broke before replicas had it: the outcome is unknown, safe to retry "
             "with CONFLICT keep");
}

bool bel__proof_refuses(const struct bel_server *server, struct bel_why *why)
{
    uint32_t wanted = server->servers->replicas_wanted;
    char name[BEL_SERVER_NAME_BYTES];
    if (!server->knows_replicas || !bel__server_lacks_replicas(server)) return false;
    bel__server_print(server, name);
    if (wanted == 0) {
        (void)bel__why_say(why, 0, "nothing was changed: %s: no replica is connected", name);
    } else {
        (void)bel__why_say(why, 0, "nothing was changed: %s: %u of %u replicas are connected", name,
                           server->replicas, wanted);
    }
    return true;
}
