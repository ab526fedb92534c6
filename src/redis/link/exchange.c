/* SPDX-License-Identifier: MIT */

/*
 * Commands are written from the memory of their calls, many with one system call. So nothing is
 * copied, and a call that has not been sent can be taken out of the queue at any time.
 *
 * `earliest` is a lower bound of all deadlines. A call that ends does not raise it; when the time
 * comes, one pass over the calls finds the calls that are late and the next bound. As all calls
 * have a timeout, passes are rare, however many calls end in between.
 */
#include "redis/link/exchange.h"

#include <assert.h>
#include <string.h>

enum {
    READ_BYTES = 32 << 10,           /* at a time */
    TURN_READ_BYTES_MAX = 512 << 10, /* in a turn */
    TURN_REPLIES_MAX = 2000,
    TURN_REPLY_BYTES_MAX = 8 << 10, /* after which what they lead to is sent first */
    TURN_WRITES_MAX = 64,
    INPUT_BYTES_KEPT = 64 << 10, /* while nothing arrives */
};

void bel__exchange_init(struct bel_exchange *exchange, const struct bel_exchange_options *options,
                        bel_exchange_pushed *pushed, void *owner)
{
    *exchange = (struct bel_exchange){
        .options = *options, .pushed = pushed, .owner = owner, .earliest = {BEL_NEVER}};
    bel__list_init(&exchange->urgent);
    bel__list_init(&exchange->unsent);
    bel__list_init(&exchange->sent);
    bel__buffer_init(&exchange->input, options->reply_bytes_max + READ_BYTES);
    bel__reader_init(&exchange->reader, options->reply_bytes_max, options->reply_values_max);
}

void bel__exchange_finish(struct bel_exchange *exchange)
{
    assert(exchange->calls_count == 0);
    bel__buffer_finish(&exchange->input);
    bel__reader_finish(&exchange->reader);
}

static struct bel_redis_call *call_of(struct bel_link *link)
{
    return link == NULL ? NULL : BEL_CONTAINER_OF(link, struct bel_redis_call, link);
}

static struct bel_redis_call *first_of(const struct bel_list *list)
{
    return call_of(bel__list_first(list));
}

/* --- the queue --- */

bool bel__exchange_has_room(const struct bel_exchange *exchange, size_t bytes)
{
    return exchange->calls_count < exchange->options.calls_max &&
           bytes <= exchange->options.bytes_max &&
           exchange->bytes <= exchange->options.bytes_max - bytes;
}

void bel__exchange_add(struct bel_exchange *exchange, struct bel_redis_call *call)
{
    assert(call->done != NULL && call->command.bytes > 0);
    assert(!call->is_bound || exchange->written == 0 || !bel__list_is_empty(&exchange->urgent));
    call->replied = 0;
    call->is_sent = false;
    bel__list_append(call->is_bound ? &exchange->urgent : &exchange->unsent, &call->link);
    exchange->calls_count++;
    exchange->bytes += call->command.bytes;
    if (call->deadline.ns < exchange->earliest.ns) exchange->earliest = call->deadline;
}

/* Removes a call from its list. It has ended, or will have when its `done` was called. */
static void take_out(struct bel_exchange *exchange, struct bel_redis_call *call)
{
    assert(exchange->calls_count > 0 && exchange->bytes >= call->command.bytes);
    bel__link_remove(&call->link);
    exchange->calls_count--;
    exchange->bytes -= call->command.bytes;
    if (exchange->calls_count == 0) exchange->earliest.ns = BEL_NEVER;
}

static void end_call(struct bel_exchange *exchange, struct bel_redis_call *call, int err,
                     const char *why)
{
    struct bel_redis_reply reply = {
        .err = err, .index = call->replied, .is_last = true, .why = why};
    take_out(exchange, call);
    call->done(call, &reply);
}

/* Returns the call of which a part is written; NULL if there is none. */
static struct bel_redis_call *partial_of(const struct bel_exchange *exchange)
{
    if (exchange->written == 0) return NULL;
    struct bel_redis_call *urgent = first_of(&exchange->urgent);
    return urgent != NULL ? urgent : first_of(&exchange->unsent);
}

bool bel__exchange_withdraw(struct bel_exchange *exchange, struct bel_redis_call *call)
{
    assert(bel__link_is_linked(&call->link));
    if (call->is_sent || call == partial_of(exchange)) return false;
    take_out(exchange, call);
    return true;
}

/* --- writing --- */

/* Collects what is to be written from a list. Returns the new number of parts. */
static size_t collect(const struct bel_list *list, struct iovec *parts, size_t count)
{
    for (struct bel_link *link = bel__list_first(list);
         link != NULL && count < BEL_STREAM_PARTS_MAX; link = bel__list_next(list, link)) {
        struct bel_view command = call_of(link)->command;
        /* The parts of a write are not const, but a write does not change them. */
        parts[count].iov_base = (void *)(uintptr_t)command.data;
        parts[count++].iov_len = command.bytes;
    }
    return count;
}

/* Counts bytes as written. The calls whose last byte was written are sent. */
static void advance(struct bel_exchange *exchange, size_t bytes)
{
    exchange->written += bytes;
    while (exchange->written > 0) {
        struct bel_redis_call *call = partial_of(exchange);
        assert(call != NULL);
        if (exchange->written < call->command.bytes) break;
        exchange->written -= call->command.bytes;
        bel__link_remove(&call->link);
        call->is_sent = true;
        bel__list_append(&exchange->sent, &call->link);
    }
}

int bel__exchange_write(struct bel_exchange *exchange, struct bel_stream *stream, bool is_open,
                        struct bel_why *why)
{
    for (unsigned i = 0; i < TURN_WRITES_MAX; i++) {
        struct iovec parts[BEL_STREAM_PARTS_MAX];
        size_t written, count = collect(&exchange->urgent, parts, 0);
        if (is_open) count = collect(&exchange->unsent, parts, count);
        if (count == 0) return bel__stream_flush(stream, why);
        parts[0].iov_base = (uint8_t *)parts[0].iov_base + exchange->written;
        parts[0].iov_len -= exchange->written;
        int err = bel__stream_write(stream, parts, count, &written, why);
        if (err) return err;
        advance(exchange, written);
    }
    return BEL_EBUSY;
}

/* --- reading --- */

/* Gives a reply to a call. After an error that stands for the whole call, no more replies come. */
static void reply_to(struct bel_exchange *exchange, struct bel_redis_call *call,
                     const struct bel_value *value)
{
    struct bel_redis_reply reply = {.value = value, .index = call->replied++, .why = ""};
    uint32_t replies = call->replies == 0 ? 1 : call->replies;
    reply.is_last =
        call->replied == replies || (call->confirmed_by != NULL && value->type == BEL_VALUE_ERROR);
    exchange->replies_count++;
    if (reply.is_last) take_out(exchange, call);
    call->done(call, &reply);
}

static int handle_push(struct bel_exchange *exchange, const struct bel_value *value,
                       struct bel_why *why)
{
    struct bel_redis_call *call = first_of(&exchange->sent);
    if (value->count == 0 ||
        (value->items[0].type != BEL_VALUE_TEXT && value->items[0].type != BEL_VALUE_STATUS)) {
        return bel__why_say(why, BEL_EIO, "the server sent a message without a kind");
    }
    if (call != NULL && call->confirmed_by != NULL &&
        bel_value_is(&value->items[0], call->confirmed_by)) {
        reply_to(exchange, call, value);
    } else if (exchange->pushed != NULL) {
        exchange->pushed(exchange->owner, value);
    }
    return 0;
}

/* Returns the call that waits for the next reply; NULL if there is none. A server replies to the
 * first commands of a call before it has received the last one, and a large call may not have been
 * sent completely by then. */
static struct bel_redis_call *waiting_of(const struct bel_exchange *exchange)
{
    struct bel_redis_call *call = first_of(&exchange->sent), *partial = partial_of(exchange);
    if (call != NULL || partial == NULL || partial->confirmed_by != NULL) return call;
    return partial->replied + 1 < partial->replies ? partial : NULL;
}

static int handle_reply(struct bel_exchange *exchange, const struct bel_value *value,
                        struct bel_why *why)
{
    struct bel_redis_call *call = waiting_of(exchange);
    bool is_error = value->type == BEL_VALUE_ERROR;
    if (call == NULL) {
        return bel__why_say(why, BEL_EIO, "the server sent a reply that no call waits for%s%.*s",
                            is_error ? ": " : "",
                            is_error && value->text.bytes < 128 ? (int)value->text.bytes : 0,
                            is_error ? (const char *)value->text.data : "");
    }
    if (call->confirmed_by != NULL && !is_error) {
        return bel__why_say(why, BEL_EIO, "the server replied to '%s' without a message",
                            call->confirmed_by);
    }
    reply_to(exchange, call, value);
    return 0;
}

static int say_reader_error(const struct bel_exchange *exchange, int err, struct bel_why *why)
{
    switch (err) {
    case BEL_EFULL:
        return bel__why_say(why, BEL_EIO,
                            "the server sent a reply of more than %zu bytes or %zu values",
                            exchange->options.reply_bytes_max, exchange->options.reply_values_max);
    case BEL_ENOMEM:
        return bel__why_say(why, BEL_ENOMEM, "out of memory for a reply");
    default:
        return bel__why_say(why, BEL_EIO, "the server sent something that is not RESP");
    }
}

/* Handles the next reply or message in the buffer. Returns 0; BEL_EBUSY if it is incomplete; or an
 * error. */
static int handle_next(struct bel_exchange *exchange, struct bel_why *why)
{
    struct bel_reader *reader = &exchange->reader;
    const struct bel_value *value;
    const uint8_t *data = bel__buffer_data(&exchange->input);
    int err = bel__reader_scan(reader, data, exchange->input.count);
    if (err == BEL_EBUSY) return err;
    if (err == 0) err = bel__reader_build(reader, data, &value);
    if (err) return say_reader_error(exchange, err, why);
    if (!reader->is_aside) {
        err = handle_reply(exchange, value, why);
    } else if (data[0] == '>') {
        err = handle_push(exchange, value, why);
    } /* attributes of a reply have no use here */
    if (err) return err;
    bel__buffer_consume(&exchange->input, reader->bytes);
    bel__reader_reset(reader);
    return 0;
}

/* Reads once. Returns 0, BEL_EBUSY if there is nothing, or an error. */
static int read_once(struct bel_exchange *exchange, struct bel_stream *stream, size_t *out_count,
                     struct bel_why *why)
{
    struct bel_buffer *input = &exchange->input;
    int err = bel__buffer_reserve(input, READ_BYTES);
    if (err) return say_reader_error(exchange, err, why);
    err = bel__stream_read(stream, bel__buffer_space(input), READ_BYTES, out_count, why);
    if (err) return err;
    bel__buffer_commit(input, *out_count);
    return 0;
}

int bel__exchange_read(struct bel_exchange *exchange, struct bel_stream *stream,
                       struct bel_why *why)
{
    size_t bytes = 0, handled = 0;
    unsigned replies = 0;
    exchange->is_pending = false;
    for (;;) {
        int err = exchange->input.count > 0 ? 0 : BEL_EBUSY;
        bool is_enough = false;
        while (err == 0 && !is_enough && exchange->input.count > 0) {
            size_t before = exchange->input.count;
            err = handle_next(exchange, why);
            replies += err == 0;
            handled += before - exchange->input.count;
            is_enough = replies == TURN_REPLIES_MAX || handled >= TURN_REPLY_BYTES_MAX;
        }
        if (err != 0 && err != BEL_EBUSY) return err;
        if (is_enough || bytes >= TURN_READ_BYTES_MAX) {
            exchange->is_pending = true;
            return 0;
        }
        size_t count = 0;
        err = read_once(exchange, stream, &count, why);
        if (err == BEL_EBUSY) {
            bel__buffer_trim(&exchange->input, INPUT_BYTES_KEPT);
            return 0;
        }
        if (err) return err;
        bytes += count;
    }
}

/* --- the ends --- */

bool bel__exchange_expire(struct bel_exchange *exchange, struct bel_mono now)
{
    struct bel_list late;
    bool is_late = false;
    if (now.ns < exchange->earliest.ns) return false;
    const struct bel_redis_call *partial = partial_of(exchange);
    struct bel_list *lists[] = {&exchange->sent, &exchange->urgent, &exchange->unsent};
    bel__list_init(&late);
    exchange->earliest.ns = BEL_NEVER;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct bel_link *next;
        for (struct bel_link *link = bel__list_first(lists[i]); link != NULL; link = next) {
            struct bel_redis_call *call = call_of(link);
            next = bel__list_next(lists[i], link);
            bool is_call_late = call->deadline.ns <= now.ns;
            if (is_call_late && (call->is_sent || call == partial)) is_late = true;
            if (is_call_late && !call->is_sent && call != partial) {
                bel__link_remove(link);
                bel__list_append(&late, link);
            } else if (call->deadline.ns < exchange->earliest.ns) {
                exchange->earliest = call->deadline;
            }
        }
    }
    /* Only now: `done` may send calls. */
    for (struct bel_redis_call *call; (call = first_of(&late)) != NULL;) {
        end_call(exchange, call, BEL_EBUSY, "the call could not be sent before its deadline");
    }
    return is_late;
}

void bel__exchange_refuse_pushes(struct bel_exchange *exchange)
{
    struct bel_list refused;
    struct bel_link *next;
    bel__list_init(&refused);
    for (struct bel_link *link = bel__list_first(&exchange->unsent); link != NULL; link = next) {
        next = bel__list_next(&exchange->unsent, link);
        if (call_of(link)->confirmed_by == NULL) continue;
        bel__link_remove(link);
        bel__list_append(&refused, link);
    }
    for (struct bel_redis_call *call; (call = first_of(&refused)) != NULL;) {
        end_call(exchange, call, BEL_EUNSUPPORTED, "the server does not speak RESP3");
    }
}

void bel__exchange_break(struct bel_exchange *exchange, const char *why)
{
    struct bel_list ended;
    bel__list_init(&ended);
    bel__list_splice(&ended, &exchange->sent);
    struct bel_redis_call *partial = partial_of(exchange);
    if (partial != NULL && partial->replies > 1 && !partial->is_bound) {
        bel__link_remove(&partial->link); /* its first commands may have been executed */
        bel__list_append(&ended, &partial->link);
    }
    bel__list_splice(&ended, &exchange->urgent);
    exchange->written = 0;
    exchange->replies_count = 0;
    exchange->is_pending = false;
    bel__buffer_consume(&exchange->input, exchange->input.count);
    bel__buffer_trim(&exchange->input, 0);
    bel__reader_reset(&exchange->reader);
    for (struct bel_redis_call *call; (call = first_of(&ended)) != NULL;) {
        end_call(exchange, call, BEL_EIO, why);
    }
}

void bel__exchange_close(struct bel_exchange *exchange, const char *why)
{
    assert(bel__list_is_empty(&exchange->sent) && bel__list_is_empty(&exchange->urgent));
    for (struct bel_redis_call *call; (call = first_of(&exchange->unsent)) != NULL;) {
        end_call(exchange, call, BEL_ECLOSED, why);
    }
}

/* --- invariants --- */

bool bel__exchange_valid(const struct bel_exchange *exchange)
{
    const struct bel_list *lists[] = {&exchange->sent, &exchange->urgent, &exchange->unsent};
    uint32_t calls = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (struct bel_link *link = bel__list_first(lists[i]); link != NULL;
             link = bel__list_next(lists[i], link)) {
            const struct bel_redis_call *call = call_of(link);
            calls++;
            bytes += call->command.bytes;
            if (call->is_sent != (i == 0)) return false;
            if (i == 1 && !call->is_bound) return false;
            if (i == 2 && call->is_bound) return false;
            if (call->deadline.ns < exchange->earliest.ns) return false;
        }
    }
    const struct bel_redis_call *partial = partial_of(exchange);
    return calls == exchange->calls_count && bytes == exchange->bytes &&
           (exchange->written == 0 ||
            (partial != NULL && exchange->written < partial->command.bytes));
}
