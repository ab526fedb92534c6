/* SPDX-License-Identifier: MIT */

/*
 * The recipes: commands over a connection of src/redis/link, encoded by hand.
 */
#include "redis.h"

#include "core/buffer.h"
#include "core/entropy.h"
#include "harness.h"
#include "redis/link/command.h"
#include "redis/link/link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMAND_BYTES_MAX = 1 << 20,
    POLL_MIN_MS = 50,
    POLL_MAX_MS = 5000,
};

/* --- raw commands --- */

static struct bel_poller poller;
static struct bel_redis_link *link_to;
static size_t raw_left; /* calls without their last reply */

/* A lane sends one call after the other. `step` gets the replies of its call, and may send another
 * one. */
struct lane {
    struct bel_redis_call call; /* first */
    struct bel_buffer buffer;
    struct bel_redis_command command;
    uint32_t replies;
    void (*step)(struct lane *lane, const struct bel_value *value);
    char ids[BENCH_BATCH][BENCH_ID_BYTES + 1];
    size_t ids_count, at;
    char *user;
};

static void raw_turn(int wait_ms)
{
    struct pollfd fd = {.fd = poller.descriptor, .events = POLLIN};
    (void)bel__poller_turn(&poller, bel_clock_mono(bel_clock_system()));
    if (wait_ms > 0 && raw_left > 0) (void)poll(&fd, 1, wait_ms);
}

static void raw_open(void)
{
    struct bel_redis_link_options options = {
        .poller = &poller, .entropy = bel__entropy_system(), .path = bench_path, .call_ms = 60000};
    if (bench_port != 0) {
        options.host = "127.0.0.1";
        options.port = bench_port;
    }
    if (bel__poller_open(&poller) != 0) bench_fail("no poller");
    if (bel__redis_link_open(&options, &link_to) != 0) bench_fail("no link");
}

static void nothing(struct lane *lane, const struct bel_value *value)
{
    (void)lane;
    (void)value;
}

void bench_recipes_close(void)
{
    bel__redis_link_close(link_to);
    bel__poller_close(&poller);
}

static void raw_done(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct lane *lane = (struct lane *)call;
    if (reply->err) bench_fail(reply->why);
    if (reply->value->type == BEL_VALUE_ERROR) bench_fail("the server replied with an error");
    if (!reply->is_last) return;
    raw_left--;
    lane->step(lane, reply->value);
}

static void begin(struct lane *lane)
{
    bel__buffer_truncate(&lane->buffer, 0);
    lane->replies = 0;
}

static void words(struct lane *lane, size_t count)
{
    bel__redis_command_begin(&lane->command, &lane->buffer, count);
    lane->replies++;
}

static void word(struct lane *lane, const char *text)
{
    bel__redis_command_word(&lane->command, text);
}

static void key(struct lane *lane, const char *name)
{
    const struct bel_view parts[] = {bench_view("{"), bench_view(bench_space), bench_view("}:"),
                                     bench_view(name)};
    bel__redis_command_join(&lane->command, parts, 4);
}

static void end(struct lane *lane)
{
    if (bel__redis_command_end(&lane->command) != 0) bench_fail("a command is too large");
}

static void send_lane(struct lane *lane)
{
    lane->call =
        (struct bel_redis_call){.command = {bel__buffer_data(&lane->buffer), lane->buffer.count},
                                .replies = lane->replies,
                                .done = raw_done};
    raw_left++;
    if (bel__redis_link_send(link_to, &lane->call, bel_clock_mono(bel_clock_system())) != 0) {
        bench_fail("a call cannot be sent");
    }
}

static struct lane *make_lanes(size_t count,
                               void (*step)(struct lane *lane, const struct bel_value *value))
{
    struct lane *lanes = calloc(count, sizeof *lanes);
    if (lanes == NULL) bench_fail("out of memory");
    for (size_t i = 0; i < count; i++) {
        bel__buffer_init(&lanes[i].buffer, COMMAND_BYTES_MAX);
        lanes[i].step = step;
    }
    return lanes;
}

static void free_lanes(struct lane *lanes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bel__buffer_finish(&lanes[i].buffer);
    }
    free(lanes);
}

static void drain(void)
{
    while (raw_left > 0) {
        raw_turn(1000);
    }
}

static void simple(struct lane *lane, const char *command)
{
    begin(lane);
    words(lane, 1);
    word(lane, command);
    end(lane);
    send_lane(lane);
}

/* Connects before anything is measured. */
void bench_recipes_open(void)
{
    raw_open();
    struct lane *lane = make_lanes(1, nothing);
    simple(lane, "PING");
    drain();
    free_lanes(lane, 1);
}

/* --- schedules of the recipes --- */

static uint64_t raw_next, raw_count;
static bool is_multi;
static double raw_due_s; /* activation time */

static void schedule_next(struct lane *lane, const struct bel_value *value)
{
    char id[BENCH_ID_BYTES + 1], due[32];
    (void)value;
    if (raw_next == raw_count) return;
    bench_make_id(id, raw_next++);
    (void)snprintf(due, sizeof due, "%.6f", raw_due_s);
    begin(lane);
    if (is_multi) {
        words(lane, 1);
        word(lane, "MULTI");
        end(lane);
    }
    words(lane, 4);
    word(lane, "ZADD");
    key(lane, "timeline");
    word(lane, due);
    word(lane, id);
    end(lane);
    words(lane, 4);
    word(lane, "HSET");
    key(lane, "payloads");
    word(lane, id);
    bel__redis_command_view(&lane->command, (struct bel_view){bench_payload, sizeof bench_payload});
    end(lane);
    if (is_multi) {
        words(lane, 1);
        word(lane, "EXEC");
        end(lane);
    }
    send_lane(lane);
}

/* Returns schedules per second. */
double bench_recipe_schedule(uint64_t count, bool multi, double due_s)
{
    struct lane *lanes = make_lanes(BENCH_IN_FLIGHT, schedule_next);
    raw_next = 0;
    raw_count = count;
    is_multi = multi;
    raw_due_s = due_s;
    double start = bench_now_s();
    for (size_t i = 0; i < BENCH_IN_FLIGHT; i++) {
        schedule_next(&lanes[i], NULL);
    }
    drain();
    double rate = (double)count / (bench_now_s() - start);
    free_lanes(lanes, BENCH_IN_FLIGHT);
    return rate;
}

/* --- claims of the recipes --- */

/* Word by word those of faststream-redis-timers 0.4.0 to 0.5.4. */
static const char recipe_script[] =
    "local score = redis.call('ZSCORE', KEYS[1], ARGV[1])\n"
    "if not score or tonumber(score) > tonumber(ARGV[2]) then return nil end\n"
    "local payload = redis.call('HGET', KEYS[2], ARGV[1])\n"
    "if not payload then\n"
    "    redis.call('ZREM', KEYS[1], ARGV[1])\n"
    "    return nil\n"
    "end\n"
    "redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])\n"
    "return payload\n";
static const char commit_script[] = "redis.call('ZREM', KEYS[1], ARGV[1])\n"
                                    "redis.call('HDEL', KEYS[2], ARGV[1])\n";
static const char hand_script[] =
    "local ids=redis.call('ZRANGEBYSCORE',KEYS[1],'-inf',ARGV[1],'LIMIT',0,ARGV[3]) "
    "if #ids==0 then return {} end "
    "local e,z=tostring(tonumber(ARGV[1])+tonumber(ARGV[2])),{} "
    "for i,id in ipairs(ids) do z[2*i-1]=e z[2*i]=id end "
    "redis.call('ZADD',KEYS[1],unpack(z)) "
    "return {ids,redis.call('HMGET',KEYS[2],unpack(ids))}";

static char sha[48], commit_sha[48];
static uint64_t raw_claimed;

static void loaded(struct lane *lane, const struct bel_value *value)
{
    char *out = lane->user;
    (void)snprintf(out, sizeof sha, "%.*s", (int)value->text.bytes, (const char *)value->text.data);
}

static void load_script(const char *text, char out[sizeof sha])
{
    struct lane *lane = make_lanes(1, loaded);
    lane->user = out;
    begin(lane);
    words(lane, 3);
    word(lane, "SCRIPT");
    word(lane, "LOAD");
    word(lane, text);
    end(lane);
    send_lane(lane);
    drain();
    free_lanes(lane, 1);
}

/* Calls a script with three arguments, or one (the others NULL). */
static void call_script(struct lane *lane, const char *script, const char *const arguments[3])
{
    begin(lane);
    words(lane, arguments[1] != NULL ? 8 : 6);
    word(lane, "EVALSHA");
    word(lane, script);
    word(lane, "2");
    key(lane, "timeline");
    key(lane, "payloads");
    for (size_t i = 0; i < 3 && arguments[i] != NULL; i++) {
        word(lane, arguments[i]);
    }
    end(lane);
    send_lane(lane);
}

static void remove_ids(struct lane *lane)
{
    static const char *const commands[][2] = {{"ZREM", "timeline"}, {"HDEL", "payloads"}};
    begin(lane);
    for (size_t c = 0; c < 2; c++) {
        words(lane, 2 + lane->ids_count);
        word(lane, commands[c][0]);
        key(lane, commands[c][1]);
        for (size_t i = 0; i < lane->ids_count; i++) {
            word(lane, lane->ids[i]);
        }
        end(lane);
    }
    send_lane(lane);
}

static void keep_ids(struct lane *lane, const struct bel_value *list)
{
    lane->ids_count = list->count < BENCH_BATCH ? list->count : BENCH_BATCH;
    for (size_t i = 0; i < lane->ids_count; i++) {
        (void)snprintf(lane->ids[i], sizeof lane->ids[i], "%.*s", (int)list->items[i].text.bytes,
                       (const char *)list->items[i].text.data);
    }
}

static void hand_claim(struct lane *lane, const struct bel_value *value);

static void hand_claimed(struct lane *lane, const struct bel_value *value)
{
    if (value->count < 2) return;
    keep_ids(lane, &value->items[0]);
    raw_claimed += lane->ids_count;
    lane->step = hand_claim;
    remove_ids(lane);
}

static void hand_claim(struct lane *lane, const struct bel_value *value)
{
    char now[32], lease[32];
    (void)value;
    (void)snprintf(now, sizeof now, "%.3f", bench_wall_ms() / 1e3);
    (void)snprintf(lease, sizeof lease, "%d", BENCH_LEASE_MS / 1000);
    lane->step = hand_claimed;
    call_script(lane, sha, (const char *const[]){now, lease, "100"});
}

static void recipe_look(struct lane *lane, const struct bel_value *value);
static void recipe_claimed(struct lane *lane, const struct bel_value *value);

static void recipe_claim(struct lane *lane, const struct bel_value *value)
{
    (void)value;
    if (lane->at == lane->ids_count) {
        recipe_look(lane, NULL);
        return;
    }
    char now[32], lease_end[32];
    double now_s = bench_wall_ms() / 1e3;
    (void)snprintf(now, sizeof now, "%.6f", now_s);
    (void)snprintf(lease_end, sizeof lease_end, "%.6f", now_s + (double)BENCH_LEASE_MS / 1e3);
    lane->step = recipe_claimed;
    call_script(lane, sha, (const char *const[]){lane->ids[lane->at], now, lease_end});
}

static void recipe_claimed(struct lane *lane, const struct bel_value *value)
{
    (void)value;
    raw_claimed++;
    lane->step = recipe_claim;
    call_script(lane, commit_sha, (const char *const[]){lane->ids[lane->at++], NULL, NULL});
}

static void recipe_looked(struct lane *lane, const struct bel_value *value)
{
    keep_ids(lane, value);
    lane->at = 0;
    if (lane->ids_count > 0) recipe_claim(lane, NULL);
}

static void recipe_look(struct lane *lane, const struct bel_value *value)
{
    char now[32];
    (void)value;
    (void)snprintf(now, sizeof now, "%.3f", bench_wall_ms() / 1e3);
    lane->step = recipe_looked;
    begin(lane);
    words(lane, 7);
    word(lane, "ZRANGEBYSCORE");
    key(lane, "timeline");
    word(lane, "-inf");
    word(lane, now);
    word(lane, "LIMIT");
    word(lane, "0");
    word(lane, "1"); /* slots of the worker that are free */
    end(lane);
    send_lane(lane);
}

double bench_recipe_claim(uint64_t count, bool is_hand)
{
    (void)bench_recipe_schedule(count, false, bench_wall_ms() / 1e3 - 60);
    load_script(is_hand ? hand_script : recipe_script, sha);
    load_script(commit_script, commit_sha);
    size_t lanes_count = is_hand ? BENCH_LANES : 1;
    struct lane *lanes = make_lanes(lanes_count, recipe_look);
    raw_claimed = 0;
    double start = bench_now_s();
    for (size_t i = 0; i < lanes_count; i++) {
        if (is_hand) {
            hand_claim(&lanes[i], NULL);
        } else {
            recipe_look(&lanes[i], NULL);
        }
    }
    drain();
    if (raw_claimed != count) bench_fail("not every timer was claimed once");
    free_lanes(lanes, lanes_count);
    return (double)count / (bench_now_s() - start);
}

static bool has_looked;

static void looked(struct lane *lane, const struct bel_value *value)
{
    keep_ids(lane, value);
    has_looked = true;
}

/* Polls as the package does: 50 ms after something was found, doubling up to 5 s. */
void bench_recipe_late(size_t count)
{
    struct lane *lane = make_lanes(1, looked);
    for (size_t i = 0; i < count; i++) {
        double due = bench_wall_ms() + 3000 + (double)(i * 761 % 4000), pause = POLL_MIN_MS;
        (void)bench_recipe_schedule(1, true, due / 1e3);
        for (lane->ids_count = 0; lane->ids_count == 0;) {
            recipe_look(lane, NULL);
            lane->step = looked;
            for (has_looked = false; !has_looked;) {
                raw_turn(1000);
            }
            if (lane->ids_count > 0) break;
            (void)poll(NULL, 0, (int)pause);
            pause = pause * 2 < POLL_MAX_MS ? pause * 2 : POLL_MAX_MS;
        }
        bench_sample(bench_wall_ms() - due);
        lane->step = looked;
        simple(lane, "FLUSHALL");
        drain();
    }
    free_lanes(lane, 1);
}
