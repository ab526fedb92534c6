/* SPDX-License-Identifier: MIT */

/* Each step is one command and one reply. The greeting only encodes commands and looks at replies;
 * the link sends them. */
#include "redis/link/greeting.h"

#include "redis/link/command.h"

#include "core/view.h"

#include <assert.h>
#include <string.h>

enum {
    COMMAND_BYTES_MAX = 64 << 10,
    QUOTED_BYTES_MAX = 160, /* of an error of the server */
};

static void handle(struct bel_redis_call *call, const struct bel_redis_reply *reply);

void bel__greeting_init(struct bel_greeting *greeting, const struct bel_greeting_options *options)
{
    *greeting = (struct bel_greeting){.options = *options, .call = {.done = handle}};
    bel__buffer_init(&greeting->command, COMMAND_BYTES_MAX);
}

/* Overwrites the password in the last command. */
static void clear_command(struct bel_greeting *greeting)
{
    if (greeting->command.count == 0) return;
    explicit_bzero(bel__buffer_data(&greeting->command), greeting->command.count);
    bel__buffer_consume(&greeting->command, greeting->command.count);
}

void bel__greeting_finish(struct bel_greeting *greeting)
{
    clear_command(greeting);
    bel__buffer_finish(&greeting->command);
}

void bel__greeting_reset(struct bel_greeting *greeting)
{
    assert(!greeting->is_waiting);
    greeting->step = BEL_GREETING_HELLO;
    greeting->server = (struct bel_redis_server){.is_resp3 = false};
    greeting->why.text[0] = 0;
}

/* --- replies --- */

static void fail(struct bel_greeting *greeting, const char *what, const struct bel_value *value)
{
    struct bel_view text = {"the reply has an unexpected type", 32};
    bool is_error = value->type == BEL_VALUE_ERROR;
    if (is_error) text = bel__view_head(value->text, QUOTED_BYTES_MAX);
    if (is_error && bel__view_is(bel_value_code(value), "NOAUTH") &&
        greeting->options.password == NULL) {
        (void)bel__why_say(&greeting->why, BEL_EIO,
                           "NOAUTH: the server wants a password: redis://:PASSWORD@HOST or "
                           "--store-password-file; a Sentinel: ?sentinel_password_file=");
    } else {
        (void)bel__why_say(&greeting->why, BEL_EIO, "%s failed: %.*s", what, (int)text.bytes,
                           (const char *)text.data);
    }
    greeting->step = BEL_GREETING_FAILED;
}

/* Copies a word from the reply to HELLO. */
static void copy_word(const struct bel_value *map, const char *name, char out[BEL_REDIS_WORD_BYTES])
{
    const struct bel_value *value = bel_value_find(map, name);
    if (value == NULL || (value->type != BEL_VALUE_TEXT && value->type != BEL_VALUE_STATUS)) return;
    struct bel_view text = bel__view_head(value->text, BEL_REDIS_WORD_BYTES - 1);
    if (text.bytes > 0) memcpy(out, text.data, text.bytes);
    out[text.bytes] = 0;
}

/* Goes on after HELLO, AUTH or SETNAME. */
static void go_on(struct bel_greeting *greeting)
{
    greeting->step = greeting->options.db != 0 ? BEL_GREETING_SELECT : BEL_GREETING_READY;
}

/* A server before version 6 does not know HELLO; others may not speak version 3. */
static bool is_unknown(const struct bel_value *error)
{
    struct bel_view code = bel_value_code(error), message = bel_value_message(error);
    if (bel__view_is(code, "NOPROTO")) return true;
    return bel__view_is(code, "ERR") && message.bytes >= 15 &&
           strncasecmp(message.data, "unknown command", 15) == 0;
}

static void handle_hello(struct bel_greeting *greeting, const struct bel_value *value)
{
    struct bel_redis_server *server = &greeting->server;
    if (value->type == BEL_VALUE_ERROR && is_unknown(value)) {
        greeting->step =
            greeting->options.password != NULL ? BEL_GREETING_AUTH : BEL_GREETING_SETNAME;
        if (greeting->step == BEL_GREETING_SETNAME && greeting->options.name == NULL) {
            go_on(greeting);
        }
        return;
    }
    if (value->type != BEL_VALUE_MAP) {
        fail(greeting, "HELLO", value);
        return;
    }
    server->is_resp3 = true;
    copy_word(value, "server", server->name);
    copy_word(value, "version", server->version);
    copy_word(value, "mode", server->mode);
    copy_word(value, "role", server->role);
    go_on(greeting);
}

static void handle_value(struct bel_greeting *greeting, const struct bel_value *value)
{
    bool is_ok = bel_value_is(value, "OK");
    switch (greeting->step) {
    case BEL_GREETING_HELLO:
        handle_hello(greeting, value);
        break;
    case BEL_GREETING_AUTH:
        if (!is_ok) {
            fail(greeting, "AUTH", value);
        } else if (greeting->options.name != NULL) {
            greeting->step = BEL_GREETING_SETNAME;
        } else {
            go_on(greeting);
        }
        break;
    case BEL_GREETING_SETNAME: /* a name is only for people: an error does not matter */
        go_on(greeting);
        break;
    case BEL_GREETING_SELECT:
        if (!is_ok) fail(greeting, "SELECT", value);
        if (is_ok) greeting->step = BEL_GREETING_READY;
        break;
    default:
        assert(false);
    }
}

static void handle(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct bel_greeting *greeting = BEL_CONTAINER_OF(call, struct bel_greeting, call);
    assert(greeting->is_waiting && reply->is_last);
    greeting->is_waiting = false;
    clear_command(greeting);
    if (reply->err == 0) handle_value(greeting, reply->value);
}

/* --- commands --- */

static int encode_hello(struct bel_greeting *greeting)
{
    const struct bel_greeting_options *options = &greeting->options;
    size_t count = 2U + (options->password != NULL ? 3U : 0U) + (options->name != NULL ? 2U : 0U);
    struct bel_redis_command command;
    bel__redis_command_begin(&command, &greeting->command, count);
    bel__redis_command_word(&command, "HELLO");
    bel__redis_command_word(&command, "3");
    if (options->password != NULL) {
        bel__redis_command_word(&command, "AUTH");
        bel__redis_command_word(&command, options->user != NULL ? options->user : "default");
        bel__redis_command_word(&command, options->password);
    }
    if (options->name != NULL) {
        bel__redis_command_word(&command, "SETNAME");
        bel__redis_command_word(&command, options->name);
    }
    return bel__redis_command_end(&command);
}

static int encode(struct bel_greeting *greeting)
{
    const struct bel_greeting_options *options = &greeting->options;
    struct bel_redis_command command;
    switch (greeting->step) {
    case BEL_GREETING_HELLO:
        return encode_hello(greeting);
    case BEL_GREETING_AUTH:
        bel__redis_command_begin(&command, &greeting->command, options->user != NULL ? 3 : 2);
        bel__redis_command_word(&command, "AUTH");
        if (options->user != NULL) bel__redis_command_word(&command, options->user);
        bel__redis_command_word(&command, options->password);
        break;
    case BEL_GREETING_SETNAME:
        bel__redis_command_begin(&command, &greeting->command, 3);
        bel__redis_command_word(&command, "CLIENT");
        bel__redis_command_word(&command, "SETNAME");
        bel__redis_command_word(&command, options->name);
        break;
    default:
        assert(greeting->step == BEL_GREETING_SELECT);
        bel__redis_command_begin(&command, &greeting->command, 2);
        bel__redis_command_word(&command, "SELECT");
        bel__redis_command_u64(&command, options->db);
        break;
    }
    return bel__redis_command_end(&command);
}

struct bel_redis_call *bel__greeting_next(struct bel_greeting *greeting)
{
    if (greeting->is_waiting || greeting->step >= BEL_GREETING_READY) return NULL;
    int err = encode(greeting);
    if (err) {
        (void)bel__why_say(&greeting->why, err, "greeting: %s", bel_error_text(err));
        greeting->step = BEL_GREETING_FAILED;
        return NULL;
    }
    greeting->is_waiting = true;
    greeting->call.command =
        (struct bel_view){bel__buffer_data(&greeting->command), greeting->command.count};
    greeting->call.is_bound = true;
    return &greeting->call;
}
