/* SPDX-License-Identifier: MIT */

/*
 * Each change of the two keys is a script that compares the owner first: a server that was
 * suspended for a while must not move a clock that another one has taken over.
 */
#include "redis/virtual_clock.h"

#include "redis/link/command.h"
#include "redis/servers/slot.h"

#include "core/entropy.h"
#include "core/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    OWNER_MS = 5000, /* until a server that does not renew its ownership has lost it */
    COMMAND_BYTES_MAX = 4096,
    NUMBER_BYTES = 32,
};

static const char keep_script[] = "#!lua flags=allow-oom\n"
                                  "local owner = redis.call('GET', KEYS[2])\n"
                                  "if owner and owner ~= ARGV[1] then return 0 end\n"
                                  "redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])\n"
                                  "if ARGV[3] ~= '' then redis.call('SET', KEYS[1], ARGV[3]) end\n"
                                  "return 1\n";

static const char release_script[] =
    "#!lua flags=allow-oom\n"
    "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end\n"
    "return 1\n";

void bel__virtual_clock_key(const char *name_space, char out[BEL_VIRTUAL_CLOCK_KEY_BYTES])
{
    (void)snprintf(out, BEL_VIRTUAL_CLOCK_KEY_BYTES, "{%s}:clock", name_space);
}

static uint16_t slot_of(const struct bel_virtual_clock *clock)
{
    return bel__slot_of((struct bel_view){clock->time_key, strlen(clock->time_key)});
}

/* --- taking --- */

static void take_owned(void *owner, const struct bel_value *value)
{
    struct bel_virtual_clock *clock = owner;
    clock->is_taken = value->type == BEL_VALUE_NUMBER && value->number == 1;
}

static void take_time(void *owner, const struct bel_value *value)
{
    struct bel_virtual_clock *clock = owner;
    const struct bel_view *text = &value->text;
    if (value->type != BEL_VALUE_TEXT) return;
    int err = bel__parse_i64(text->data, text->bytes, 0, INT64_MAX / 2, &clock->time.ms);
    clock->has_time = err == 0;
}

static int ask(struct bel_virtual_clock *clock, struct bel_asking *asking)
{
    char ms[NUMBER_BYTES];
    (void)snprintf(ms, sizeof ms, "%d", OWNER_MS);
    const char *own[] = {"EVAL", keep_script, "2", clock->time_key, clock->owner_key, clock->id,
                         ms,     "",          NULL};
    const char *read[] = {"GET", clock->time_key, NULL};
    int err = 0;
    while (err == 0 && !clock->is_taken) {
        err = bel__asking_ask(asking, slot_of(clock), own, take_owned, clock);
        if (err == 0 && asking->error[0] != 0) return BEL_EIO;
        if (err == 0 && !clock->is_taken) {
            err = bel__asking_pause(asking, "another server has the virtual clock");
            if (err) return BEL_ECONFLICT;
        }
    }
    if (err == 0) err = bel__asking_ask(asking, slot_of(clock), read, take_time, clock);
    return err;
}

static int make_id(struct bel_virtual_clock *clock)
{
    uint64_t words[2];
    int err = bel__entropy_fill(bel__entropy_system(), words, sizeof words);
    if (err) return err;
    (void)snprintf(clock->id, sizeof clock->id, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    return 0;
}

int bel__virtual_clock_take(struct bel_virtual_clock *clock, const char *name_space,
                            const struct bel_asking_options *options, struct bel_why *why)
{
    struct bel_asking asking;
    struct bel_asking_options patient = *options;
    if (patient.wait_ms < OWNER_MS + BEL_VIRTUAL_CLOCK_KEEP_MS) {
        patient.wait_ms = OWNER_MS + BEL_VIRTUAL_CLOCK_KEEP_MS;
    }
    *clock = (struct bel_virtual_clock){.has_time = false};
    bel__buffer_init(&clock->command, COMMAND_BYTES_MAX);
    bel__virtual_clock_key(name_space, clock->time_key);
    (void)snprintf(clock->owner_key, sizeof clock->owner_key, "{%s}:clock-owner", name_space);
    int err = make_id(clock);
    if (err) return bel__why_say(why, err, "%s", bel_error_text(err));
    err = bel__asking_open(&asking, &patient);
    if (err == 0) err = ask(clock, &asking);
    if (err) {
        (void)bel__why_say(why, err, "%s", asking.error[0] != 0 ? asking.error : asking.why);
    }
    bel__asking_close(&asking);
    return err;
}

void bel__virtual_clock_release(struct bel_virtual_clock *clock,
                                const struct bel_asking_options *options)
{
    struct bel_asking asking;
    const char *words[] = {"EVAL", release_script, "1", clock->owner_key, clock->id, NULL};
    if (!clock->is_taken || clock->is_lost) return;
    int err = bel__asking_open(&asking, options);
    /* If it fails, the ownership expires. */
    if (err == 0) err = bel__asking_ask(&asking, slot_of(clock), words, take_owned, clock);
    (void)err;
    bel__asking_close(&asking);
}

/* --- keeping --- */

static void send(struct bel_virtual_clock *clock, struct bel_mono now);

static void kept(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct bel_virtual_clock *clock = BEL_CONTAINER_OF(call, struct bel_virtual_clock, call);
    clock->is_under_way = false;
    if (reply->err) return; /* the next renewal tries again */
    if (reply->value->type == BEL_VALUE_NUMBER && reply->value->number == 0) clock->is_lost = true;
    if (clock->is_stale) send(clock, (struct bel_mono){0}); /* now, whenever that is */
}

static int encode(struct bel_virtual_clock *clock)
{
    struct bel_redis_command command;
    bel__buffer_finish(&clock->command);
    bel__redis_command_begin(&command, &clock->command, 8);
    bel__redis_command_word(&command, "EVAL");
    bel__redis_command_word(&command, keep_script);
    bel__redis_command_word(&command, "2");
    bel__redis_command_word(&command, clock->time_key);
    bel__redis_command_word(&command, clock->owner_key);
    bel__redis_command_word(&command, clock->id);
    bel__redis_command_u64(&command, OWNER_MS);
    bel__redis_command_i64(&command, clock->wanted.ms);
    return bel__redis_command_end(&command);
}

static void send(struct bel_virtual_clock *clock, struct bel_mono now)
{
    clock->is_stale = false;
    if (encode(clock) != 0) return;
    clock->call = (struct bel_server_call){
        .command = {bel__buffer_data(&clock->command), clock->command.count},
        .slot = slot_of(clock),
        .is_write = true,
        .done = kept};
    clock->is_under_way = bel__redis_send(clock->redis, &clock->call, now) == 0;
}

void bel__virtual_clock_keep(struct bel_virtual_clock *clock, struct bel_redis *redis,
                             struct bel_wall time, struct bel_mono now)
{
    clock->redis = redis;
    clock->wanted = time;
    clock->is_stale = clock->is_under_way;
    if (!clock->is_under_way) send(clock, now);
}

void bel__virtual_clock_finish(struct bel_virtual_clock *clock)
{
    bel__buffer_finish(&clock->command);
}
