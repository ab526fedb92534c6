/* SPDX-License-Identifier: MIT */

/* A call is made again while it cannot be sent, or while the server is only starting. */
#include "redis/asking.h"

#include "redis/link/command.h"

#include "core/entropy.h"
#include "core/units.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    COMMAND_BYTES_MAX = 1024,
    CALL_MS = 2000, /* until an attempt is made again */
    TELL_MS = 1000, /* between two calls of `waiting` */
    PAUSE_MS = 100, /* after a server that is not ready yet */
    STEP_MS = 50,   /* between two looks at why it cannot be reached */
};

static struct bel_mono now_of(const struct bel_asking *asking)
{
    return bel_clock_mono(asking->options.clock);
}

static void set_why(struct bel_asking *asking, const char *why)
{
    (void)snprintf(asking->why, sizeof asking->why, "%s", why);
}

/* Returns whether a server that refuses for this reason will do so tomorrow, too. */
static bool is_lasting(const char *why)
{
    static const char *const reasons[] = {
        "WRONGPASS",
        "NOAUTH",
        "NOPERM",
        "invalid password",
        "without any password",
        "certificate",
        "DB index",
        "the user",
        "NOPROTO",
        "not RESP",
        "cluster support disabled",
        "unknown command",
        "is not a Sentinel",
        "know no primary of the name",
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (strstr(why, reasons[i]) != NULL) return true;
    }
    return false;
}

static void heard(void *owner, struct bel_view channel, struct bel_view text)
{
    (void)owner;
    (void)channel;
    (void)text;
}

static void done(struct bel_server_call *call, const struct bel_redis_reply *reply)
{
    struct bel_asking *asking = BEL_CONTAINER_OF(call, struct bel_asking, call);
    asking->is_under_way = false;
    asking->err = reply->err;
    set_why(asking, reply->why);
    if (reply->err) return;
    if (reply->value->type != BEL_VALUE_ERROR) {
        if (asking->take != NULL) asking->take(asking->owner, reply->value);
        return;
    }
    struct bel_view text = reply->value->text;
    int shown = (int)(text.bytes < sizeof asking->error ? text.bytes : sizeof asking->error - 1);
    (void)snprintf(asking->error, sizeof asking->error, "%.*s", shown, (const char *)text.data);
}

/* Tells, once a second, that the servers cannot be reached. */
static void tell(struct bel_asking *asking, const char *why)
{
    const struct bel_asking_options *options = &asking->options;
    struct bel_mono now = now_of(asking);
    if (options->waiting == NULL || now.ns - asking->told.ns < (uint64_t)TELL_MS * NS_PER_MS) {
        return;
    }
    asking->told = now;
    options->waiting(options->context, why);
}

static void turn(struct bel_asking *asking)
{
    struct pollfd fd = {.fd = bel__servers_descriptor(asking->servers), .events = POLLIN};
    (void)bel__servers_flush(asking->servers, now_of(asking));
    (void)poll(&fd, 1, STEP_MS);
    bel__servers_receive(asking->servers, now_of(asking));
}

/* With Sentinels, it may be a primary soon. */
static int refuse_replica(struct bel_asking *asking)
{
    set_why(asking, "the server is a replica, which accepts no changes: name the primary, or the "
                    "Sentinels that know it (redis+sentinel://)");
    return BEL_EINVAL;
}

/* Sends the command once, and waits for its reply. Returns the error of the call, BEL_EINVAL if the
 * servers refuse for good; BEL_EBUSY if the time is over, perhaps before the call has ended. */
static int send_once(struct bel_asking *asking, uint16_t slot)
{
    asking->error[0] = 0;
    asking->call = (struct bel_server_call){
        .command = {bel__buffer_data(&asking->command), asking->command.count},
        .slot = slot,
        .timeout_ms = CALL_MS,
        .done = done};
    int err = bel__servers_send(asking->servers, &asking->call, now_of(asking));
    if (err) return err;
    asking->is_under_way = true;
    while (asking->is_under_way) {
        const char *why = bel__servers_why(asking->servers);
        if (!bel__servers_is_ready(asking->servers) && why[0] != 0) {
            bool is_single = asking->options.servers->mode == BEL_REDIS_SINGLE;
            set_why(asking, why);
            if (is_lasting(why)) return BEL_EINVAL;
            if (is_single && strstr(why, "is a replica") != NULL) return refuse_replica(asking);
            if (now_of(asking).ns >= asking->deadline.ns) return BEL_EBUSY;
            tell(asking, why);
        }
        turn(asking);
    }
    return asking->err;
}

/* Returns whether a server has begun to run, but is not ready for commands. */
static bool is_starting(const struct bel_asking *asking)
{
    static const char *const codes[] = {"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strncmp(asking->error, codes[i], strlen(codes[i])) == 0) return true;
    }
    return false;
}

static int encode(struct bel_asking *asking, const char *const *words)
{
    struct bel_redis_command command;
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    bel__buffer_finish(&asking->command);
    bel__redis_command_begin(&command, &asking->command, count);
    for (size_t i = 0; i < count; i++) {
        bel__redis_command_word(&command, words[i]);
    }
    return bel__redis_command_end(&command);
}

int bel__asking_pause(struct bel_asking *asking, const char *why)
{
    if (why != asking->why) set_why(asking, why);
    if (now_of(asking).ns >= asking->deadline.ns) return BEL_EBUSY;
    tell(asking, asking->why);
    (void)poll(NULL, 0, PAUSE_MS);
    return 0;
}

int bel__asking_ask(struct bel_asking *asking, uint16_t slot, const char *const *words,
                    void (*take)(void *owner, const struct bel_value *value), void *owner)
{
    int err = encode(asking, words);
    asking->take = take;
    asking->owner = owner;
    while (err == 0) {
        int failed = send_once(asking, slot);
        if (failed == BEL_EINVAL || asking->is_under_way) return failed;
        if (failed == 0 && !is_starting(asking)) return 0;
        err = bel__asking_pause(asking, failed == 0 ? asking->error : asking->why);
    }
    return err;
}

int bel__asking_open(struct bel_asking *asking, const struct bel_asking_options *options)
{
    struct bel_servers_owner owner = {.heard = heard, .entropy = bel__entropy_system()};
    *asking = (struct bel_asking){.options = *options, .servers_options = *options->servers};
    asking->servers_options.durability = BEL_DURABILITY_ASYNC;
    bel__buffer_init(&asking->command, COMMAND_BYTES_MAX);
    asking->told = now_of(asking);
    uint64_t wait_ns = (uint64_t)options->wait_ms * NS_PER_MS;
    if (bel_mono_add(asking->told, wait_ns, &asking->deadline) != 0) {
        asking->deadline.ns = BEL_NEVER;
    }
    int err = bel__servers_open(&asking->servers_options, &owner, &asking->servers);
    if (err) set_why(asking, bel_error_text(err));
    return err;
}

void bel__asking_close(struct bel_asking *asking)
{
    bel__servers_close(asking->servers);
    asking->servers = NULL;
    bel__buffer_finish(&asking->command);
}
