/* SPDX-License-Identifier: MIT */

/*
 * A client is a socket, a buffer for commands and a buffer for replies:
 *
 *     send ---> [ output ] ---> socket ---> [ input: reply | next reply ... ] ---> receive
 *                                   '-----> [ early ] --^
 *
 * A server may stop reading until its replies are read, so a write that has to wait reads as well.
 * The last reply, which the caller may still use, points into the input buffer, so that buffer must
 * not move. Bytes that arrive during a write go to the buffer `early`; the next receive appends
 * them to the input.
 *
 * An API key is wiped from the output buffer after it was sent.
 */
#include "client/client.h"

#include "core/buffer.h"
#include "core/parse.h"
#include "core/view.h"
#include "resp/reader.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 30000,
    MESSAGE_BYTES_MAX = 128 << 20,
    VALUES_MAX = 1 << 20,  /* in a reply; they take 48 MiB */
    SEND_BYTES = 64 << 10, /* output above this is flushed by the next send */
    READ_BYTES = 64 << 10,
    HEAD_BYTES = 1 + BEL_PRINT_BYTES_MAX + 2,
};

struct bel_client {
    int fd;
    int err; /* the error that ended the connection; or 0 */
    uint32_t timeout_ms;
    const struct bel_clock *clock;
    struct bel_buffer output, input, early;
    struct bel_reader reader;
    size_t pending;
    struct bel_client_why why; /* of the last function for a command */
};

/* Records an error that ends the connection. A timeout (BEL_EBUSY) does not end it. */
static int fail(struct bel_client *client, int err)
{
    if (err != BEL_EBUSY) client->err = err;
    return err;
}

/* --- reading and writing --- */

/* Reads available bytes without waiting. Returns 0, even if there are none; or an error. */
static int read_some(struct bel_client *client, struct bel_buffer *into)
{
    int err = bel__buffer_reserve(into, READ_BYTES);
    if (err) return err;
    ssize_t got = recv(client->fd, bel__buffer_space(into), READ_BYTES, MSG_DONTWAIT);
    if (got == 0) return BEL_ECLOSED;
    if (got > 0) {
        bel__buffer_commit(into, (size_t)got);
        return 0;
    }
    if (errno == EAGAIN || errno == EINTR) return 0;
    return errno == ECONNRESET ? BEL_ECLOSED : BEL_EIO;
}

/* Writes as much output as the socket accepts without waiting. */
static int write_some(struct bel_client *client)
{
    struct bel_buffer *output = &client->output;
    if (output->count == 0) return 0;
    ssize_t sent =
        send(client->fd, bel__buffer_data(output), output->count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
        bel__buffer_consume(output, (size_t)sent);
        return 0;
    }
    if (errno == EAGAIN || errno == EINTR) return 0;
    return errno == EPIPE || errno == ECONNRESET ? BEL_ECLOSED : BEL_EIO;
}

/* Writes all output, and reads what arrives meanwhile: a server that closes the connection may have
 * sent the reason first. */
static int flush(struct bel_client *client, struct bel_mono deadline)
{
    short ready;
    int err = write_some(client);
    while (err == 0 && client->output.count > 0) {
        err = bel__client_wait(client->fd, POLLIN | POLLOUT, client->clock, deadline, &ready);
        if (err == 0 && (ready & POLLIN)) err = read_some(client, &client->early);
        if (err == 0 && (ready & (POLLOUT | POLLERR | POLLHUP))) err = write_some(client);
    }
    return err;
}

/* --- commands --- */

static int put_number(struct bel_buffer *output, char letter, size_t number)
{
    char head[HEAD_BYTES];
    head[0] = letter;
    size_t bytes = 1 + bel__print_u64(head + 1, number);
    head[bytes++] = '\r';
    head[bytes++] = '\n';
    return bel__buffer_append(output, head, bytes);
}

static int put_command(struct bel_buffer *output, const struct bel_view *args, size_t count)
{
    int err = put_number(output, '*', count);
    for (size_t i = 0; err == 0 && i < count; i++) {
        err = put_number(output, '$', args[i].bytes);
        if (err == 0 && args[i].bytes > 0) {
            err = bel__buffer_append(output, args[i].data, args[i].bytes);
        }
        if (err == 0) err = bel__buffer_append(output, "\r\n", 2);
    }
    return err;
}

int bel_client_send(struct bel_client *client, const struct bel_view *args, size_t args_count)
{
    assert(args_count > 0);
    if (client->err) return client->err;
    size_t before = client->output.count;
    if (before >= SEND_BYTES) {
        int err = flush(client, bel__client_deadline(client->clock, client->timeout_ms));
        if (err) return fail(client, err);
        before = 0;
    }
    int err = put_command(&client->output, args, args_count);
    if (err) {
        bel__buffer_truncate(&client->output, before);
        return err;
    }
    client->pending++;
    return 0;
}

int bel_client_flush(struct bel_client *client)
{
    if (client->err) return client->err;
    int err = flush(client, bel__client_deadline(client->clock, client->timeout_ms));
    return err ? fail(client, err) : 0;
}

/* --- replies --- */

/* Drops the previous reply, and appends the bytes of `early` to the input. */
static int drop_reply(struct bel_client *client)
{
    if (client->reader.bytes > 0) {
        bel__buffer_consume(&client->input, client->reader.bytes);
        bel__reader_reset(&client->reader);
    }
    if (client->early.count == 0) return 0;
    int err =
        bel__buffer_append(&client->input, bel__buffer_data(&client->early), client->early.count);
    if (err == 0) bel__buffer_consume(&client->early, client->early.count);
    return err;
}

/* Scans the input up to the end of a reply, skipping pushed messages. Returns 0, BEL_EBUSY if the
 * reply is incomplete, or an error. */
static int scan(struct bel_client *client)
{
    for (;;) {
        const uint8_t *data = bel__buffer_data(&client->input);
        int err = bel__reader_scan(&client->reader, data, client->input.count);
        if (err || !client->reader.is_aside) return err;
        bel__buffer_consume(&client->input, client->reader.bytes);
        bel__reader_reset(&client->reader);
    }
}

static int receive(struct bel_client *client, const struct bel_value **out)
{
    struct bel_mono deadline = bel__client_deadline(client->clock, client->timeout_ms);
    short ready;
    int err = drop_reply(client);
    int sent = err == 0 ? flush(client, deadline) : 0;
    if (sent != 0 && sent != BEL_ECLOSED) return sent;
    if (err == 0) err = drop_reply(client);
    if (err == 0) err = scan(client);
    while (err == BEL_EBUSY) {
        if (sent == 0) sent = bel__client_wait(client->fd, POLLIN, client->clock, deadline, &ready);
        if (sent != 0 && sent != BEL_ECLOSED) return sent;
        err = read_some(client, &client->input);
        if (err == 0) err = scan(client);
        if (err == BEL_EBUSY && sent == BEL_ECLOSED) return sent;
    }
    if (err) return err;
    return bel__reader_build(&client->reader, bel__buffer_data(&client->input), out);
}

int bel_client_receive(struct bel_client *client, const struct bel_value **out)
{
    assert(client->pending > 0);
    if (client->err) return client->err;
    int err = receive(client, out);
    if (err) return fail(client, err);
    client->pending--;
    return 0;
}

int bel_client_call(struct bel_client *client, const struct bel_view *args, size_t args_count,
                    const struct bel_value **out)
{
    assert(client->pending == 0 || client->err != 0);
    int err = bel_client_send(client, args, args_count);
    return err ? err : bel_client_receive(client, out);
}

/* --- opening and closing --- */

static int refuse(struct bel_client_why *why, const struct bel_value *error)
{
    struct bel_view code = bel_value_code(error), text = bel_value_message(error);
    if (why != NULL && code.bytes > 0 && code.bytes < sizeof why->code) {
        memcpy(why->code, code.data, code.bytes);
        why->code[code.bytes] = '\0';
    }
    return bel__client_say(why, BEL_ECLOSED, "%.*s", (int)(text.bytes < 200 ? text.bytes : 200),
                           (const char *)text.data);
}

/* Returns the error that the code of an error reply stands for. */
static int error_of(struct bel_view code)
{
    static const struct {
        const char *code;
        int err;
    } table[] = {
        {"BADARG", BEL_EINVAL},      {"ERR", BEL_EINVAL},     {"STALE", BEL_ESTALE},
        {"NOTFOUND", BEL_ENOTFOUND}, {"FULL", BEL_EFULL},     {"CONFLICT", BEL_ECONFLICT},
        {"NOAUTH", BEL_ECLOSED},     {"NOPERM", BEL_ECLOSED}, {"UNSUPPORTED", BEL_EUNSUPPORTED}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (bel__view_is(code, table[i].code)) return table[i].err;
    }
    return BEL_EIO;
}

const struct bel_client_why *bel_client_error(const struct bel_client *client)
{
    return &client->why;
}

int bel__client_fails(struct bel_client *client, int err, const char *text)
{
    if (err == BEL_EINVAL) client->err = err;
    return bel__client_say(&client->why, err, "%s", text);
}

int bel__client_refuses(struct bel_client *client, const char *text)
{
    return bel__client_say(&client->why, BEL_EINVAL, "%s", text);
}

/* Calls with a longer timeout. A timeout ends the connection. */
static int call_for(struct bel_client *client, const struct bel_view *args, size_t args_count,
                    uint64_t wait_ms, const struct bel_value **out)
{
    uint32_t timeout_ms = client->timeout_ms, room_ms = UINT32_MAX - timeout_ms;
    client->timeout_ms += wait_ms < room_ms ? (uint32_t)wait_ms : room_ms;
    int err = bel_client_call(client, args, args_count, out);
    client->timeout_ms = timeout_ms;
    if (err == BEL_EBUSY) {
        client->err = BEL_ECLOSED;
        (void)shutdown(client->fd, SHUT_RDWR); /* a claim that waits in the server ends */
    }
    return err;
}

int bel__client_ask(struct bel_client *client, const struct bel_view *args, size_t args_count,
                    uint64_t wait_ms, enum bel_value_type wanted, const struct bel_value **out)
{
    const struct bel_value *reply;
    client->why.code[0] = client->why.text[0] = '\0';
    int err = call_for(client, args, args_count, wait_ms, &reply);
    if (err) return bel__client_fails(client, err, bel_error_text(err));
    if (reply->type == BEL_VALUE_ERROR) {
        (void)refuse(&client->why, reply);
        return error_of(bel_value_code(reply));
    }
    bool is_map = wanted == BEL_VALUE_MAP && reply->type == BEL_VALUE_LIST; /* in RESP2 */
    if (reply->type != wanted && !is_map) {
        return bel__client_fails(client, BEL_EINVAL, "the reply has another type");
    }
    *out = reply;
    return 0;
}

/* Sends AUTH and checks the reply. Wipes the key from the output buffer. */
static int authenticate(struct bel_client *client, const struct bel_client_options *options,
                        struct bel_client_why *why)
{
    struct bel_view args[3] = {BEL_VIEW("AUTH")};
    const struct bel_value *reply = NULL;
    size_t count = 1;
    if (options->user.bytes > 0) args[count++] = options->user;
    args[count++] = options->key;
    int err = bel_client_send(client, args, count);
    uint8_t *sent = bel__buffer_data(&client->output);
    size_t sent_bytes = client->output.count;
    if (err == 0) err = bel_client_flush(client);
    if (sent != NULL) explicit_bzero(sent, sent_bytes);
    if (err == 0) err = bel_client_receive(client, &reply);
    if (err) return bel__client_say(why, err, "no reply to AUTH: %s", bel_error_text(err));
    return reply->type == BEL_VALUE_ERROR ? refuse(why, reply) : 0;
}

/* Asks for RESP3 with HELLO 3. Ignores an error reply other than NOAUTH: RESP2 works as well. */
static int upgrade(struct bel_client *client, struct bel_client_why *why)
{
    const struct bel_view args[] = {BEL_VIEW("HELLO"), BEL_VIEW("3")};
    const struct bel_value *reply;
    int err = bel_client_call(client, args, 2, &reply);
    if (err == BEL_EINVAL) {
        return bel__client_say(why, err, "this port does not speak RESP; is it the port of HTTP?");
    }
    if (err) return bel__client_say(why, err, "no reply to HELLO: %s", bel_error_text(err));
    if (reply->type != BEL_VALUE_ERROR) return 0;
    struct bel_view code = bel_value_code(reply);
    bool is_refused = code.bytes == 6 && memcmp(code.data, "NOAUTH", 6) == 0;
    return is_refused ? refuse(why, reply) : 0;
}

int bel_client_adopt(int fd, const struct bel_client_options *options, struct bel_client **out,
                     struct bel_client_why *why)
{
    static const struct bel_client_options none = {0};
    if (options == NULL) options = &none;
    if (why != NULL) why->code[0] = why->text[0] = '\0';
    size_t in_max = options->reply_bytes_max ? options->reply_bytes_max : MESSAGE_BYTES_MAX;
    size_t out_max = options->request_bytes_max ? options->request_bytes_max : MESSAGE_BYTES_MAX;
    struct bel_client *client = calloc(1, sizeof *client);
    if (client == NULL) return bel__client_say(why, BEL_ENOMEM, "out of memory");
    client->fd = fd;
    client->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
    client->clock = options->clock ? options->clock : bel_clock_system();
    bel__buffer_init(&client->output, out_max);
    /* The start of the next reply may follow the largest reply. */
    bel__buffer_init(&client->input, in_max + READ_BYTES + READ_BYTES);
    bel__buffer_init(&client->early, in_max);
    bel__reader_init(&client->reader, in_max, VALUES_MAX);
    int err = options->key.bytes > 0 ? authenticate(client, options, why) : 0;
    if (err == 0 && options->protocol == 3) err = upgrade(client, why);
    if (err) {
        client->fd = -1;
        bel_client_close(client);
        return err;
    }
    *out = client;
    return 0;
}

int bel_client_connect(const char *address, const struct bel_client_options *options,
                       struct bel_client **out, struct bel_client_why *why)
{
    bool is_told = options != NULL;
    uint32_t timeout_ms = is_told && options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
    const struct bel_clock *clock = is_told && options->clock ? options->clock : bel_clock_system();
    int fd;
    if (why != NULL) why->code[0] = why->text[0] = '\0';
    int err = bel__client_dial(address, clock, bel__client_deadline(clock, timeout_ms), &fd, why);
    if (err) return err;
    err = bel_client_adopt(fd, options, out, why);
    if (err) (void)close(fd);
    return err;
}

void bel_client_close(struct bel_client *client)
{
    if (client == NULL) return;
    if (client->fd >= 0) (void)close(client->fd);
    bel__buffer_finish(&client->output);
    bel__buffer_finish(&client->input);
    bel__buffer_finish(&client->early);
    bel__reader_finish(&client->reader);
    free(client);
}

int bel_client_fd(const struct bel_client *client)
{
    return client->fd;
}

void bel_client_set_timeout(struct bel_client *client, uint32_t timeout_ms)
{
    client->timeout_ms = timeout_ms;
}

size_t bel_client_pending(const struct bel_client *client)
{
    return client->pending;
}
