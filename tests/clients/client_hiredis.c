/* SPDX-License-Identifier: MIT */

/*
 * hiredis as people use it: client_hiredis PORT PORT-WITH-KEYS KEY
 *
 * What waits is the asynchronous half of the library, in a loop of poll() here:
 *
 *     hiredis: "I want to read, to write" --> struct waker --> poll() --> redisAsyncHandleRead()
 */
#include "check.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

enum {
    PATIENCE_S = 30,
    MANY = 1000,
    LARGE_BYTES = 1 << 20,
};

static int port, port_with_keys;
static const char *key;

static redisContext *open_at(int where)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    redisContext *context = redisConnectWithTimeout("127.0.0.1", where, patience);
    CHECK(context != NULL);
    CHECK_NOTE("%s", context->errstr);
    CHECK(context->err == 0);
    CHECK(redisSetTimeout(context, patience) == REDIS_OK);
    return context;
}

/* The next reply; the library has none if the connection is broken. */
static redisReply *next(redisContext *context)
{
    void *reply = NULL;
    int result = redisGetReply(context, &reply);
    CHECK_NOTE("%s", context->errstr);
    CHECK(result == REDIS_OK && reply != NULL);
    return reply;
}

#define ASK(context, ...)                                                                          \
    (CHECK(redisAppendCommand((context), __VA_ARGS__) == REDIS_OK), next(context))

static bool is_text(const redisReply *reply, const char *text)
{
    bool is_string = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
    return is_string && strcmp(reply->str, text) == 0;
}

/* Each takes the reply that it looks at. */
static void expect_text(redisReply *reply, const char *text)
{
    CHECK_NOTE("type %d: %s, not %s", reply->type, reply->str != NULL ? reply->str : "", text);
    CHECK(is_text(reply, text));
    freeReplyObject(reply);
}

static void expect_integer(redisReply *reply, long long number)
{
    CHECK_NOTE("type %d: %lld, not %lld", reply->type, reply->integer, number);
    CHECK(reply->type == REDIS_REPLY_INTEGER && reply->integer == number);
    freeReplyObject(reply);
}

static void expect_error(redisReply *reply, const char *code)
{
    CHECK_NOTE("type %d: %s, not %s", reply->type, reply->str != NULL ? reply->str : "", code);
    CHECK(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, code, strlen(code)) == 0);
    CHECK(strpbrk(reply->str, "\r\n") == NULL);
    freeReplyObject(reply);
}

/* The value of a name in a map, which may be flat. */
static const redisReply *field(const redisReply *map, const char *name)
{
    CHECK_EQ(map->elements % 2, 0);
    for (size_t i = 0; i < map->elements; i += 2) {
        if (is_text(map->element[i], name)) return map->element[i + 1];
    }
    CHECK_NOTE("there is no %s", name);
    CHECK(false);
    return NULL;
}

/* The only delivery of a claim. */
static const redisReply *delivery_of(const redisReply *claim)
{
    CHECK(claim->type == REDIS_REPLY_ARRAY && claim->elements == 1);
    CHECK(claim->element[0]->type == REDIS_REPLY_ARRAY && claim->element[0]->elements >= 7);
    return claim->element[0];
}

static void connects(void)
{
    redisContext *context = open_at(port);
    expect_text(ASK(context, "PING"), "PONG");
    expect_text(ASK(context, "SELECT 0"), "OK");
    expect_text(ASK(context, "ECHO %s", "two words"), "two words");
    redisReply *hello = ASK(context, "HELLO 2");
    CHECK(hello->type == REDIS_REPLY_ARRAY);
    CHECK(is_text(field(hello, "server"), "belfry"));
    CHECK(field(hello, "proto")->integer == 2);
    freeReplyObject(hello);
    expect_error(ASK(context, "HELLO 4"), "NOPROTO ");
    CHECK(redisReconnect(context) == REDIS_OK);
    expect_text(ASK(context, "PING"), "PONG");
    redisFree(context);
}

static void a_timer_from_its_making_to_its_end(void)
{
    static const char payload[] = "zero \0 and \r\n end";
    redisContext *context = open_at(port);
    expect_text(ASK(context, "SCHEDULE c/life %b ID a HEADER k v", payload, sizeof payload), "a");
    redisReply *timer = ASK(context, "GET c/life a");
    CHECK(timer->type == REDIS_REPLY_ARRAY);
    CHECK(is_text(field(timer, "state"), "ready"));
    const redisReply *got = field(timer, "payload");
    CHECK(got->len == sizeof payload && memcmp(got->str, payload, sizeof payload) == 0);
    CHECK(field(timer, "due_ms")->type == REDIS_REPLY_INTEGER);
    freeReplyObject(timer);

    redisReply *claim = ASK(context, "CLAIM c/life COUNT 10 WAIT 20s");
    const redisReply *delivery = delivery_of(claim);
    const char *token = delivery->element[0]->str;
    CHECK(is_text(delivery->element[2], "a"));
    CHECK(delivery->element[5]->integer == 1);
    CHECK(delivery->element[6]->elements == 2 && is_text(delivery->element[6]->element[1], "v"));
    expect_integer(ASK(context, "EXTEND %s 1m", token), 60000);
    expect_integer(ASK(context, "ACK %s", token), 1);
    expect_integer(ASK(context, "ACK %s", token), 0);
    freeReplyObject(claim);
    redisReply *gone = ASK(context, "GET c/life a");
    CHECK(gone->type == REDIS_REPLY_NIL);
    freeReplyObject(gone);
    redisReply *none = ASK(context, "CLAIM c/life");
    CHECK(none->type == REDIS_REPLY_ARRAY && none->elements == 0);
    freeReplyObject(none);
    redisFree(context);
}

static void a_large_payload_comes_back(void)
{
    redisContext *context = open_at(port);
    char *payload = malloc(LARGE_BYTES);
    CHECK(payload != NULL);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        payload[i] = (char)(unsigned char)(i * 7);
    }
    expect_text(ASK(context, "SCHEDULE c/large %b ID a", payload, (size_t)LARGE_BYTES), "a");
    redisReply *claim = ASK(context, "CLAIM c/large");
    const redisReply *got = delivery_of(claim)->element[3];
    CHECK(got->len == LARGE_BYTES && memcmp(got->str, payload, LARGE_BYTES) == 0);
    freeReplyObject(claim);
    expect_error(
        ASK(context, "SCHEDULE c/large %b%b", payload, (size_t)LARGE_BYTES, "x", (size_t)1), "");
    expect_text(ASK(context, "PING"), "PONG");
    free(payload);
    redisFree(context);
}

static void a_pipeline_is_answered_in_order(void)
{
    char id[16];
    redisContext *context = open_at(port);
    for (int i = 0; i < MANY; i++) {
        CHECK(redisAppendCommand(context, "SCHEDULE c/pipe x ID %d IN 1h", i) == REDIS_OK);
        CHECK(redisAppendCommand(context, "GET c/pipe %d", i) == REDIS_OK);
        CHECK(redisAppendCommand(context, "NONSENSE") == REDIS_OK);
    }
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        expect_text(next(context), id);
        redisReply *timer = next(context);
        CHECK(is_text(field(timer, "id"), id));
        freeReplyObject(timer);
        expect_error(next(context), "ERR unknown command");
    }
    expect_integer(ASK(context, "PURGE c/pipe STATE scheduled"), MANY);
    redisFree(context);
}

static void errors_have_our_codes(void)
{
    redisContext *context = open_at(port);
    expect_error(ASK(context, "SCHEDULE t x IN soon"), "BADARG ");
    expect_error(ASK(context, "SCHEDULE t x IN %s", "a\r\n+OK"), "BADARG ");
    expect_error(ASK(context, "SCHEDULE t x AT 4000000000000 IN 5"), "ERR ");
    expect_error(ASK(context, "TOPIC c/nowhere"), "NOTFOUND ");
    expect_error(ASK(context, "EXTEND nonsense"), "STALE ");
    expect_error(ASK(context, "GET t"), "ERR wrong number of arguments");
    CHECK(context->err == 0);
    expect_text(ASK(context, "PING"), "PONG");
    redisFree(context);
}

static void keys_are_asked_for(void)
{
    redisContext *context = open_at(port_with_keys);
    expect_error(ASK(context, "PING"), "NOAUTH ");
    expect_error(ASK(context, "AUTH worker wrong"), "NOAUTH ");
    expect_text(ASK(context, "AUTH worker %s", key), "OK");
    expect_text(ASK(context, "PING"), "PONG");
    redisFree(context);
}

/* --- what waits --- */

struct waker {
    redisAsyncContext *context;
    short events;
    bool is_over;
    bool is_done, is_gone;
    char payload[32];
};

static void want_read(void *data)
{
    struct waker *waker = data;
    waker->events |= POLLIN;
}

static void leave_read(void *data)
{
    struct waker *waker = data;
    waker->events = (short)(waker->events & ~POLLIN);
}

static void want_write(void *data)
{
    struct waker *waker = data;
    waker->events |= POLLOUT;
}

static void leave_write(void *data)
{
    struct waker *waker = data;
    waker->events = (short)(waker->events & ~POLLOUT);
}

static void clean_up(void *data)
{
    struct waker *waker = data;
    waker->is_over = true;
}

static void turn(struct waker *waker, int wait_ms)
{
    struct pollfd socket = {.fd = waker->context->c.fd, .events = waker->events};
    int count = poll(&socket, 1, wait_ms);
    CHECK(count >= 0);
    if (socket.revents & ~POLLOUT) redisAsyncHandleRead(waker->context);
    if (!waker->is_over && (socket.revents & POLLOUT)) redisAsyncHandleWrite(waker->context);
}

static void on_acked(redisAsyncContext *context, void *reply, void *data)
{
    struct waker *waker = data;
    const redisReply *ack = reply;
    CHECK(ack != NULL && ack->type == REDIS_REPLY_INTEGER && ack->integer == 1);
    waker->is_done = true;
    redisAsyncDisconnect(context);
}

static void on_claimed(redisAsyncContext *context, void *reply, void *data)
{
    struct waker *waker = data;
    CHECK(reply != NULL);
    const redisReply *delivery = delivery_of(reply);
    (void)snprintf(waker->payload, sizeof waker->payload, "%s", delivery->element[3]->str);
    CHECK(redisAsyncCommand(context, on_acked, waker, "ACK %s", delivery->element[0]->str) ==
          REDIS_OK);
}

static void on_gone(const redisAsyncContext *context, int status)
{
    struct waker *waker = context->ev.data;
    CHECK(status == REDIS_OK);
    waker->is_gone = true;
}

static bool is_waiting(redisContext *context)
{
    redisReply *info = ASK(context, "INFO clients");
    bool is_so = strstr(info->str, "requests_under_way:1\r\n") != NULL;
    freeReplyObject(info);
    return is_so;
}

static void a_claim_waits(void)
{
    redisContext *other = open_at(port);
    struct waker waker = {.context = redisAsyncConnect("127.0.0.1", port)};
    redisAsyncContext *context = waker.context;
    CHECK(context != NULL && context->err == 0);
    context->ev.data = &waker;
    context->ev.addRead = want_read;
    context->ev.delRead = leave_read;
    context->ev.addWrite = want_write;
    context->ev.delWrite = leave_write;
    context->ev.cleanup = clean_up;
    CHECK(redisAsyncSetDisconnectCallback(context, on_gone) == REDIS_OK);
    CHECK(redisAsyncCommand(context, on_claimed, &waker, "CLAIM c/wait WAIT 60s") == REDIS_OK);
    while (!is_waiting(other)) {
        turn(&waker, 1);
    }
    CHECK(waker.payload[0] == 0);
    redisReply *id = ASK(other, "SCHEDULE c/wait %s", "at last");
    CHECK(id->type == REDIS_REPLY_STRING && id->len == 26);
    freeReplyObject(id);
    while (!waker.is_over) {
        turn(&waker, PATIENCE_S * 1000);
    }
    CHECK(waker.is_done && waker.is_gone && strcmp(waker.payload, "at last") == 0);
    redisFree(other);
}

/* --- version 3 --- */

#if HIREDIS_MAJOR >= 1
static void version_3(void)
{
    redisContext *context = open_at(port);
    redisReply *hello = ASK(context, "HELLO 3");
    CHECK(hello->type == REDIS_REPLY_MAP && field(hello, "proto")->integer == 3);
    freeReplyObject(hello);
    expect_text(ASK(context, "SCHEDULE c/three x ID a IN 1h"), "a");
    redisReply *timer = ASK(context, "GET c/three a");
    CHECK(timer->type == REDIS_REPLY_MAP && is_text(field(timer, "state"), "scheduled"));
    freeReplyObject(timer);
    redisReply *topic = ASK(context, "TOPIC c/three");
    CHECK(field(topic, "paused")->type == REDIS_REPLY_BOOL);
    freeReplyObject(topic);
    redisReply *gone = ASK(context, "GET c/three b");
    CHECK(gone->type == REDIS_REPLY_NIL);
    freeReplyObject(gone);
    redisFree(context);
}
#endif

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    port = (int)strtol(argv[1], NULL, 10);
    port_with_keys = (int)strtol(argv[2], NULL, 10);
    key = argv[3];
    RUN(connects);
    RUN(a_timer_from_its_making_to_its_end);
    RUN(a_large_payload_comes_back);
    RUN(a_pipeline_is_answered_in_order);
    RUN(errors_have_our_codes);
    RUN(keys_are_asked_for);
    RUN(a_claim_waits);
#if HIREDIS_MAJOR >= 1
    RUN(version_3);
#else
    (void)printf("SKIPPED version_3: hiredis %d has only version 2\n", HIREDIS_MAJOR);
#endif
    return 0;
}
