/* SPDX-License-Identifier: MIT */
#include "redis/origin.h"

#include "redis/link/command.h"
#include "redis/servers/slot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    COMMAND_BYTES_MAX = 1024,
};

static void begin(struct bel_origin *origin, struct bel_redis_command *command, size_t count)
{
    bel__buffer_finish(&origin->command);
    bel__redis_command_begin(command, &origin->command, count);
}

static void send(struct bel_origin *origin, struct bel_mono now,
                 void (*done)(struct bel_server_call *call, const struct bel_redis_reply *reply))
{
    origin->call = (struct bel_server_call){
        .command = {bel__buffer_data(&origin->command), origin->command.count},
        .slot = bel__slot_of((struct bel_view){origin->key, strlen(origin->key)}),
        .done = done};
    origin->is_under_way = bel__redis_send(origin->redis, &origin->call, now) == 0;
}

static void keep(struct bel_origin *origin, struct bel_view text)
{
    size_t bytes = text.bytes < sizeof origin->text ? text.bytes : sizeof origin->text - 1;
    memcpy(origin->text, text.data, bytes);
    origin->text[bytes] = 0;
}

/* SET NX GET: the text of another node that was faster, or nothing. */
static void made(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct bel_origin *origin = BEL_CONTAINER_OF(call, struct bel_origin, call);
    origin->is_under_way = false;
    if (reply->err) return; /* the next look tries again */
    if (reply->value->type == BEL_VALUE_NIL) {
        keep(origin, (struct bel_view){origin->made, strlen(origin->made)});
    } else if (reply->value->type == BEL_VALUE_TEXT && reply->value->text.bytes > 0) {
        keep(origin, reply->value->text);
    }
}

static void make(struct bel_origin *origin)
{
    struct bel_redis_command command;
    uint64_t words[2];
    if (bel__entropy_fill(bel__entropy_system(), words, sizeof words) != 0) return;
    (void)snprintf(origin->made, sizeof origin->made, "%016" PRIx64 "%016" PRIx64, words[0],
                   words[1]);
    begin(origin, &command, 5);
    bel__redis_command_word(&command, "SET");
    bel__redis_command_word(&command, origin->key);
    bel__redis_command_word(&command, origin->made);
    bel__redis_command_word(&command, "NX");
    bel__redis_command_word(&command, "GET");
    if (bel__redis_command_end(&command) != 0) return;
    send(origin, (struct bel_mono){0}, made);
}

static void got(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct bel_origin *origin = BEL_CONTAINER_OF(call, struct bel_origin, call);
    origin->is_under_way = false;
    if (reply->err) return;
    bool is_known = origin->text[0] != 0;
    struct bel_view text = reply->value->text;
    if (reply->value->type == BEL_VALUE_NIL) {
        if (is_known) origin->losses++;
        origin->text[0] = 0;
        make(origin);
    } else if (reply->value->type == BEL_VALUE_TEXT && text.bytes > 0) {
        size_t bytes = strlen(origin->text);
        bool is_same = text.bytes == bytes && memcmp(text.data, origin->text, bytes) == 0;
        if (is_known && !is_same) origin->losses++;
        keep(origin, text);
    }
}

void bel__origin_init(struct bel_origin *origin, const char *name_space)
{
    *origin = (struct bel_origin){.losses = 0};
    bel__buffer_init(&origin->command, COMMAND_BYTES_MAX);
    (void)snprintf(origin->key, sizeof origin->key, "{%s}:origin", name_space);
}

void bel__origin_finish(struct bel_origin *origin)
{
    bel__buffer_finish(&origin->command);
}

void bel__origin_look(struct bel_origin *origin, struct bel_redis *redis, struct bel_mono now)
{
    struct bel_redis_command command;
    if (origin->is_under_way) return;
    origin->redis = redis;
    begin(origin, &command, 2);
    bel__redis_command_word(&command, "GET");
    bel__redis_command_word(&command, origin->key);
    if (bel__redis_command_end(&command) != 0) return;
    send(origin, now, got);
}
