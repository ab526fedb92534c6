/* SPDX-License-Identifier: MIT */

/*
 * A backend whose server answers anything: replies that are wrong, of other types, too many, split,
 * late, or none. Each byte of the input decides what comes next; the shapes are those that the
 * scripts reply with, so that a byte or two make a reply that is almost right.
 *
 * Every request is answered exactly once, at the latest when the backend is closed, and everything
 * that an answer points to can be read.
 */
#include "redis/faststream_token.h"
#include "redis/redis.h"
#include "redis/token.h"

#include "core/buffer.h"
#include "core/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BYTES_MAX = 4096,
    REQUESTS_MAX = 64,
    ROUNDS_MAX = 200,
    DEPTH_MAX = 4,
    OUTPUT_MAX = 1 << 20,
    COMMANDS_MAX = 8 << 20,
    VERBS = BEL_VERB_AGENDA + 1,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *input;
static size_t input_left;
static struct bel_now now;
static struct bel_redis *redis;
static struct bel_backend *backend;
static unsigned asked, answered;
static struct bel_request requests[REQUESTS_MAX];
static char token[BEL_TOKEN_BYTES_MAX], shared_token[BEL_TOKEN_BYTES_MAX];
static struct bel_view tokens[2]; /* of a native topic; of one of the layout faststream */
static int listener, server = -1;
static struct bel_buffer commands; /* what the server has received */

static unsigned take(void)
{
    if (input_left == 0) return 0;
    input_left--;
    return *input++;
}

static uint64_t take_number(unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++) {
        number = number << 8 | take();
    }
    return number;
}

/* --- requests --- */

static volatile uint8_t sum;

static void look(struct bel_view text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        sum = (uint8_t)(sum + ((const uint8_t *)text.data)[i]);
    }
}

static void look_at_timers(const struct bel_reply *reply)
{
    for (size_t i = 0; i < reply->timers.count; i++) {
        const struct bel_timer *timer = &reply->timers.items[i];
        const struct bel_view texts[] = {timer->topic,     timer->id,    timer->payload,
                                         timer->reason,    timer->retry, timer->correlation,
                                         timer->plan.rule, timer->result};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
            look(texts[k]);
        }
        for (size_t k = 0; k < timer->headers_count; k++) {
            look(timer->headers[k].name);
            look(timer->headers[k].value);
        }
        for (size_t k = 0; k < timer->outcomes_count; k++) {
            look(timer->outcomes[k].reason);
        }
    }
    look(reply->timers.cursor);
}

static void look_at_deliveries(const struct bel_reply *reply)
{
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        const struct bel_delivery *delivery = &reply->deliveries.items[i];
        look(delivery->id);
        look(delivery->payload);
        look(delivery->token);
        look(delivery->correlation);
        for (size_t k = 0; k < delivery->headers_count; k++) {
            look(delivery->headers[k].name);
            look(delivery->headers[k].value);
        }
    }
}

static void look_at(enum bel_verb verb, const struct bel_reply *reply)
{
    if (reply->err) {
        assert(memchr(reply->why, 0, sizeof reply->why) != NULL);
        return;
    }
    switch (verb) {
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
        look_at_timers(reply);
        break;
    case BEL_VERB_CLAIM:
        look_at_deliveries(reply);
        break;
    case BEL_VERB_SCHEDULE:
        look(reply->id);
        break;
    case BEL_VERB_TOPICS:
    case BEL_VERB_EXPLAIN:
        for (size_t i = 0; i < reply->names.count; i++) {
            look(reply->names.items[i]);
        }
        break;
    case BEL_VERB_TOPIC:
        for (size_t i = 0; i < reply->topic->settings_count; i++) {
            look(reply->topic->settings[i].value);
        }
        break;
    default:
        break;
    }
}

static void done(struct bel_request *request, const struct bel_reply *reply)
{
    assert(request->user != NULL); /* not answered yet */
    request->user = NULL;
    answered++;
    look_at(request->command.verb, reply);
}

static struct bel_command schedule_of(unsigned kind)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule = (struct bel_schedule_spec){
        .topic = BEL_VIEW("t"), .id = BEL_VIEW("a"), .payload = BEL_VIEW("payload")};
    if (kind % 2 == 1) {
        command.schedule.plan.kind = BEL_PLAN_EVERY;
        command.schedule.plan.rule = BEL_VIEW("1s");
    }
    return command;
}

static struct bel_command claim_of(unsigned kind)
{
    static struct bel_view topics[2];
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    topics[0] = BEL_VIEW("t");
    topics[1] = BEL_VIEW("u");
    command.claim = (struct bel_claim){.topics = topics, .topics_count = 1 + kind % 2, .count = 3};
    command.claim.wait_ms = kind % 4 < 2 ? 0 : 1000;
    return command;
}

/* Settings of a topic, its number of partitions, or its layout. */
static struct bel_command configure_of(unsigned kind)
{
    static const struct bel_setting settings[] = {
        {{"depth", 5}, {"5", 1}},
        {{"partitions", 10}, {"3", 1}},
        {{"layout", 6}, {"faststream", 10}},
        {{"layout", 6}, {"native", 6}},
    };
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    command.configure = (struct bel_configure){.topic = BEL_VIEW("t")};
    if (kind < 4) return command;
    command.configure.settings = &settings[kind % 4];
    command.configure.settings_count = 1;
    return command;
}

static struct bel_command command_of(enum bel_verb verb, unsigned kind)
{
    static struct bel_view ids[2];
    struct bel_command command = {.verb = verb};
    struct bel_target target = {BEL_VIEW("t"), BEL_VIEW("a")};
    ids[0] = ids[1] = BEL_VIEW("a");
    switch (verb) {
    case BEL_VERB_SCHEDULE:
        return schedule_of(kind);
    case BEL_VERB_CLAIM:
        return claim_of(kind);
    case BEL_VERB_CANCEL:
        command.cancel = (struct bel_cancel){target.topic, ids, 2};
        break;
    case BEL_VERB_RESCHEDULE:
        command.reschedule = (struct bel_reschedule){
            .topic = target.topic, .id = target.id, .when = BEL_WHEN_IN, .delay_ms = 5};
        break;
    case BEL_VERB_ACK:
        command.ack = (struct bel_ack){.tokens = tokens, .tokens_count = 2};
        break;
    case BEL_VERB_FAIL:
        command.fail = (struct bel_fail){.token = tokens[kind / 4], .dead = kind % 4 == 3};
        break;
    case BEL_VERB_RELEASE:
        command.release = (struct bel_release){.token = tokens[kind / 4]};
        break;
    case BEL_VERB_EXTEND:
        command.extend = (struct bel_extend){.token = tokens[kind / 4]};
        break;
    case BEL_VERB_LIST:
        command.list = (struct bel_list_query){.topic = target.topic};
        break;
    case BEL_VERB_PURGE:
        command.purge = (struct bel_purge){.topic = target.topic};
        break;
    case BEL_VERB_CONFIGURE:
        return configure_of(kind);
    case BEL_VERB_AGENDA:
        command.agenda = (struct bel_agenda){.topic = target.topic};
        break;
    default:
        command.target = target;
        break;
    }
    return command;
}

static void submit(unsigned what)
{
    if (asked == REQUESTS_MAX) return;
    struct bel_request *request = &requests[asked++];
    *request = (struct bel_request){.command = command_of((enum bel_verb)(what % VERBS), what / 32),
                                    .done = done,
                                    .user = request};
    bel_backend_submit(backend, request);
}

static void make_tokens(void)
{
    struct bel_token made = {.topic_bytes = 1, .id_bytes = 1, .topic = "t", .id = "a"};
    struct bel_faststream_token shared = {.topic_bytes = 1, .topic = "t"};
    tokens[0] = (struct bel_view){token, bel__lease_token_print(&made, token)};
    tokens[1] = (struct bel_view){shared_token, bel__faststream_token_print(&shared, shared_token)};
}

/* --- replies --- */

static void put(struct bel_buffer *out, const char *text)
{
    (void)!bel__buffer_append(out, text, strlen(text));
}

static void put_number(struct bel_buffer *out, int64_t number)
{
    (void)!bel__buffer_append_format(out, ":%lld\r\n", (long long)number);
}

static void put_text(struct bel_buffer *out, const void *bytes, size_t count)
{
    (void)!bel__buffer_append_format(out, "$%zu\r\n", count);
    if (count > 0) (void)!bel__buffer_append(out, bytes, count);
    put(out, "\r\n");
}

/* Bytes of the input, among zeros: lengths and times of records are mostly small. */
static size_t some_bytes(uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = 0;
    }
    for (unsigned i = take() % 8; i > 0; i--) {
        unsigned at = take(); /* a statement of its own, for the order */
        out[at % count] = (uint8_t)take();
    }
    return count;
}

static void put_record(struct bel_buffer *out)
{
    uint8_t bytes[48 + 7 + 64] = {0};
    size_t count = some_bytes(bytes, 48);
    if (take() % 8 > 0) bytes[47] = take() % 2; /* a timer or a plan */
    count += some_bytes(bytes + 48, 7 + take() % 64);
    if (take() % 8 > 0) bytes[48] = 1; /* version */
    put_text(out, bytes, count);
}

/* What `att` has, of a plan if its last part is a rule. */
static void put_att(struct bel_buffer *out)
{
    uint8_t bytes[16 + 2 + 2 + 4 + 81 + 8] = {0};
    bool is_plan = take() % 2 == 1;
    (void)some_bytes(bytes, is_plan ? 20 : sizeof bytes);
    if (is_plan) {
        static const char rule[] = "1s";
        uint8_t *state = bytes + 24;
        bytes[23] = 81 + sizeof rule - 1;
        (void)some_bytes(state, 81);
        state[0] = take() % 2;
        state[3] = 1; /* a next time that is not too long ago */
        memcpy(state + 81, rule, sizeof rule - 1);
        put_text(out, bytes, 24 + 81 + sizeof rule - 1);
        return;
    }
    put_text(out, bytes, sizeof bytes - take() % sizeof bytes);
}

static void put_value(struct bel_buffer *out, unsigned depth);

static void put_list(struct bel_buffer *out, unsigned count, unsigned depth)
{
    (void)!bel__buffer_append_format(out, "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        put_value(out, depth + 1);
    }
}

/* A timer as GET has it, or a delivery, or a plan that rings: almost right. */
static void put_shape(struct bel_buffer *out)
{
    unsigned shape = take() % 4;
    static const char *const ids[] = {"a", "p@1700000000000", "x\x01", ""};
    const char *id = ids[take() % 4];
    put(out, shape == 0 ? "*6\r\n" : "*4\r\n");
    put_text(out, id, strlen(id));
    if (shape == 0) {
        put_number(out, (int64_t)take() % 10);
        put_number(out, (int64_t)take_number(7));
    }
    put_record(out);
    if (take() % 2 == 0) {
        put(out, "_\r\n");
    } else {
        put_att(out);
    }
    if (shape == 0) {
        put(out, "_\r\n");
    } else {
        put_number(out, (int64_t)take_number(take() % 9));
    }
}

static void put_value(struct bel_buffer *out, unsigned depth)
{
    static const char *const words[] = {"new", "kept",   "taken", "full",  "again",
                                        "a",   "paused", "1",     "lease", "lease_ms"};
    uint8_t bytes[32];
    const char *word = words[take() % 10];
    switch (take() % 14) {
    case 0:
        put(out, "_\r\n");
        break;
    case 1:
        put_number(out, take() % 10);
        break;
    case 2:
        put_number(out, (int64_t)take_number(8));
        break;
    case 3:
        put_text(out, bytes, some_bytes(bytes, 1 + take() % sizeof bytes));
        break;
    case 4:
    case 5:
        put_text(out, word, strlen(word));
        break;
    case 6:
        put_record(out);
        break;
    case 7:
        put_att(out);
        break;
    case 8:
    case 9:
        put_shape(out);
        break;
    case 10:
        put(out, "#t\r\n");
        break;
    case 11:
        put(out, "-ERR inside\r\n");
        break;
    case 12:
        put(out, "%1\r\n+a\r\n,1.5\r\n");
        break;
    default:
        put_list(out, depth < DEPTH_MAX ? take() % 10 : 0, depth);
        break;
    }
}

static void put_error(struct bel_buffer *out)
{
    static const char *const errors[] = {
        "NOSCRIPT No matching script.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "READONLY You can't write against a read only replica.",
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "MOVED 1 127.0.0.1:1",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "",
    };
    (void)!bel__buffer_append_format(out, "-%s\r\n", errors[take() % 10]);
}

/* A reply of a script: the three times, then anything. */
static void put_reply(struct bel_buffer *out)
{
    unsigned kind = take() % 16;
    if (kind == 0) {
        put_error(out);
    } else if (kind == 1) {
        put_value(out, 0);
    } else if (kind == 2) {
        put(out, "nonsense\r\n");
    } else {
        unsigned count = take() % 6, times = take();
        int64_t time = now.wall.ms + (times % 4 == 1 ? (int64_t)take_number(8) : 0);
        int64_t next = times / 4 % 4 == 1 ? (int64_t)take_number(8) : time;
        int64_t ring = times / 16 % 4 == 0 ? next : -1;
        if (times / 4 % 4 == 0) next = -1;
        if (times / 64 == 3) { /* nothing was done: again, or another number of partitions */
            next = times % 2 == 0 ? -2 : -3;
            ring = take() % 70;
        }
        (void)!bel__buffer_append_format(out, "*%u\r\n", 3 + count);
        put_number(out, time);
        put_number(out, next);
        put_number(out, ring);
        for (unsigned i = 0; i < count; i++) {
            put_value(out, 0);
        }
    }
}

/* The layout of a topic: mostly none. */
static void put_layout(struct bel_buffer *out)
{
    static const char layout[] = "revision 0123456789abcdef\nlayout faststream\n";
    unsigned kind = take() % 8;
    if (kind == 7) {
        put_text(out, layout, sizeof layout - 1);
    } else if (kind == 6) {
        put_value(out, 0);
    } else {
        put(out, "_\r\n");
    }
}

static bool has_word(const uint8_t *command, size_t bytes, const char *word)
{
    return memmem(command, bytes < 64 ? bytes : 64, word, strlen(word)) != NULL;
}

static void put_answer(struct bel_buffer *out, const uint8_t *command, size_t bytes)
{
    if (has_word(command, bytes, "HELLO")) {
        put(out, "%0\r\n");
    } else if (has_word(command, bytes, "PSUBSCRIBE")) {
        put(out, ">3\r\n+psubscribe\r\n+x\r\n:1\r\n");
    } else if (has_word(command, bytes, "SCRIPT") || has_word(command, bytes, "SADD")) {
        put(out, "+OK\r\n");
    } else if (has_word(command, bytes, "TIME")) {
        (void)!bel__buffer_append_format(out, "*2\r\n+%lld\r\n+0\r\n",
                                         (long long)(now.wall.ms / 1000));
    } else if (has_word(command, bytes, "HGET")) {
        put_layout(out);
    } else if (has_word(command, bytes, "SMEMBERS") && take() % 4 > 0) {
        put(out, "*1\r\n$1\r\nt\r\n");
    } else {
        put_reply(out);
    }
}

/* --- the server --- */

/* Returns the size of the first command; 0: it is not complete. */
static size_t command_bytes(const uint8_t *data, size_t bytes)
{
    size_t at = 0;
    unsigned long words = 1;
    for (unsigned long word = 0; word <= words; word++) {
        const uint8_t *end = memmem(data + at, bytes - at, "\r\n", 2);
        if (end == NULL) return 0;
        unsigned long number = strtoul((const char *)data + at + 1, NULL, 10);
        at = (size_t)(end - data) + 2;
        if (word == 0) words = number;
        if (word > 0) at += number + 2;
        if (at > bytes) return 0;
    }
    return at;
}

static void listen_at(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(address->sun_path, sizeof address->sun_path, "/tmp/belfry-fuzz-replies-%d",
                   (int)getpid());
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(address->sun_path);
    int failed = bind(listener, (const struct sockaddr *)address, sizeof *address);
    assert(listener >= 0 && failed == 0);
    failed = listen(listener, 4);
    assert(failed == 0);
    (void)failed;
}

static void hang_up(void)
{
    if (server >= 0) (void)close(server);
    server = -1;
    bel__buffer_consume(&commands, commands.count);
}

static void turn(uint64_t ms)
{
    now.boot.ns += ms * NS_PER_MS;
    now.real.ns += ms * NS_PER_MS;
    now.wall.ms += (int64_t)ms;
    (void)bel_backend_turn(backend, now);
}

static void receive(void)
{
    uint8_t bytes[32 << 10];
    if (server < 0) server = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (;;) {
        ssize_t got = server < 0 ? 0 : recv(server, bytes, sizeof bytes, 0);
        if (got == 0) hang_up();
        if (got <= 0) return;
        int err = bel__buffer_append(&commands, bytes, (size_t)got);
        assert(err == 0);
        (void)err;
    }
}

/* Sends a reply, as a whole or in pieces with turns between them. */
static void send_reply(const struct bel_buffer *out, size_t piece)
{
    const uint8_t *data = bel__buffer_data(out);
    for (size_t at = 0; at < out->count && server >= 0; at += piece) {
        size_t bytes = out->count - at < piece ? out->count - at : piece;
        (void)!send(server, data + at, bytes, MSG_NOSIGNAL);
        if (piece < out->count) turn(0);
    }
}

/* Answers the commands that have arrived. */
static void answer(void)
{
    receive();
    while (server >= 0) {
        struct bel_buffer out;
        if (commands.count == 0) return;
        const uint8_t *data = bel__buffer_data(&commands);
        size_t bytes = command_bytes(data, commands.count);
        if (bytes == 0) return;
        unsigned manner = take();
        bel__buffer_init(&out, OUTPUT_MAX);
        put_answer(&out, data, bytes);
        bel__buffer_consume(&commands, bytes);
        if (manner % 64 == 63) turn(6000); /* late */
        if (manner % 64 == 62) put(&out, ">4\r\n+pmessage\r\n+p\r\n+{fuzz:t:0}:wake\r\n+5\r\n");
        if (manner % 64 == 61) put_value(&out, 0); /* one reply too many */
        send_reply(&out, manner / 64 == 1 ? 7 : OUTPUT_MAX);
        bel__buffer_finish(&out);
        if (manner % 64 == 60) hang_up();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bel_entropy_seeded entropy;
    struct sockaddr_un address;
    if (size > BYTES_MAX) return 0;
    input = data;
    input_left = size;
    asked = answered = 0;
    now = (struct bel_now){{NS_PER_S}, {1700000000000}, {NS_PER_S}, 0};
    bel__entropy_seed(&entropy, 1);
    bel__buffer_init(&commands, COMMANDS_MAX);
    make_tokens();
    listen_at(&address);
    struct bel_redis_options options = {.name_space = "fuzz", .entropy = &entropy.entropy};
    options.servers.path = address.sun_path;
    int err = bel__redis_open(&options, now, &redis);
    assert(err == 0);
    (void)err;
    backend = bel__redis_backend(redis);
    for (unsigned count = 1 + take() % 8; count > 0; count--) {
        submit(take());
    }
    for (unsigned round = 0; round < ROUNDS_MAX && (input_left > 0 || round < 3); round++) {
        turn(round % 8);
        answer();
        if (input_left > 0 && round % 4 == 3) submit(take());
    }
    hang_up();
    turn(1);
    turn(6000);
    turn(6000);
    bel__redis_close(redis);
    assert(answered == asked);
    hang_up();
    (void)close(listener);
    (void)unlink(address.sun_path);
    bel__buffer_finish(&commands);
    return 0;
}
