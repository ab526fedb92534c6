/* SPDX-License-Identifier: MIT */

/*
 * A client at one end of a socket pair; the test is the server at the other end. Replies arrive
 * split at every byte. Nothing sleeps, and an alarm ends a case that blocks.
 */
#include "belfry/client.h"

#include "resp/reader.h"

#include "../check.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    PATIENCE_S = 60,
    TEXT_BYTES = 1024,
    LARGE_BYTES = 8 << 20,
};

static struct bel_client *client;
static int far; /* the server's end */

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static void start_with(const struct bel_client_options *options)
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    far = pair[1];
    CHECK(bel_client_adopt(pair[0], options, &client, NULL) == 0);
}

static void start(void)
{
    (void)alarm(PATIENCE_S);
    start_with(NULL);
}

static void end(void)
{
    bel_client_close(client);
    (void)close(far);
}

static void say(const char *text, size_t bytes)
{
    CHECK(send(far, text, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}

static void send_word(const char *word)
{
    struct bel_view view = view_of(word);
    CHECK(bel_client_send(client, &view, 1) == 0);
}

/* Prints values as text, so that a case can compare them. */
static void print_value(const struct bel_value *value, char *out, size_t room)
{
    static const char letters[] = "N+-:#,$*%";
    size_t used = strlen(out);
    (void)snprintf(out + used, room - used, "%c", letters[value->type]);
    used = strlen(out);
    if (value->type == BEL_VALUE_NUMBER || value->type == BEL_VALUE_BOOLEAN) {
        (void)snprintf(out + used, room - used, "%" PRId64, value->number);
    } else if (value->text.bytes > 0) {
        (void)snprintf(out + used, room - used, "%.*s", (int)value->text.bytes,
                       (const char *)value->text.data);
    }
}

static const char *print(const struct bel_value *value)
{
    static char text[TEXT_BYTES];
    text[0] = '\0';
    print_value(value, text, sizeof text);
    for (size_t i = 0; i < value->count; i++) {
        print_value(&value->items[i], text, sizeof text);
        const struct bel_value *inner = &value->items[i];
        for (size_t k = 0; k < inner->count; k++) {
            print_value(&inner->items[k], text, sizeof text);
        }
    }
    return text;
}

static const struct example {
    const char *bytes, *wanted;
} examples[] = {
    {"+OK\r\n", "+OK"},
    {"-NOTFOUND there is none\r\n", "-NOTFOUND there is none"},
    {":-42\r\n", ":-42"},
    {"$5\r\nhe\r\no\r\n", "$he\r\no"},
    {"$0\r\n\r\n", "$"},
    {"$-1\r\n", "N"},
    {"*-1\r\n", "N"},
    {"_\r\n", "N"},
    {"#t\r\n", "#1"},
    {"#f\r\n", "#0"},
    {",3.25\r\n", ",3.25"},
    {"(123456789012345678901234567890\r\n", ",123456789012345678901234567890"},
    {"=7\r\ntxt:abc\r\n", "$abc"},
    {"!6\r\nERR no\r\n", "-ERR no"},
    {"*0\r\n", "*"},
    {"*2\r\n:1\r\n$1\r\na\r\n", "*:1$a"},
    {"~1\r\n+x\r\n", "*+x"},
    {"%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:7\r\n:8\r\n", "%+a:1+b*:7:8"},
    {"*3\r\n*1\r\n:1\r\n*0\r\n*2\r\n:2\r\n:3\r\n", "**:1**:2:3"},
    {">2\r\n+message\r\n+hi\r\n+OK\r\n", "+OK"},
    {"|1\r\n+ttl\r\n:3\r\n:5\r\n", ":5"},
    {"*1\r\n*1\r\n*0\r\n", "***"},
};

enum {
    EXAMPLES = sizeof examples / sizeof examples[0]
};

static void replies_come_whole(void)
{
    for (unsigned i = 0; i < EXAMPLES; i++) {
        const struct bel_value *reply;
        CHECK_NOTE("example %u", i);
        start();
        send_word("PING");
        say(examples[i].bytes, strlen(examples[i].bytes));
        CHECK(bel_client_receive(client, &reply) == 0);
        CHECK(strcmp(print(reply), examples[i].wanted) == 0);
        CHECK_EQ(bel_client_pending(client), 0);
        end();
    }
}

/* The second part arrives after a timeout of the client, which loses nothing. */
static void replies_come_split_at_every_byte(void)
{
    for (unsigned i = 0; i < EXAMPLES; i++) {
        size_t bytes = strlen(examples[i].bytes);
        for (size_t cut = 0; cut < bytes; cut++) {
            const struct bel_value *reply;
            CHECK_NOTE("example %u at %zu", i, cut);
            start();
            bel_client_set_timeout(client, 0);
            send_word("PING");
            say(examples[i].bytes, cut);
            CHECK(bel_client_receive(client, &reply) == BEL_EBUSY);
            say(examples[i].bytes + cut, bytes - cut);
            CHECK(bel_client_receive(client, &reply) == 0);
            CHECK(strcmp(print(reply), examples[i].wanted) == 0);
            end();
        }
    }
}

static void what_is_no_reply_ends_it(void)
{
    static const char *const bad[] = {
        "hello\r\n",
        "+OK\n",
        ":x\r\n",
        ":\r\n",
        "$-2\r\n",
        "$x\r\n",
        "$2\r\nabcd",
        "*-2\r\n",
        "*x\r\n",
        "#x\r\n",
        "_x\r\n",
        ",\r\n",
        "=2\r\nab\r\n",
        "$?\r\n",
        "*?\r\n",
        "*1\r\n>0\r\n",
        "+a\rb\r\n",
        "\r\n",
        ":99999999999999999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct bel_value *reply;
        CHECK_NOTE("%s", bad[i]);
        start();
        send_word("PING");
        say(bad[i], strlen(bad[i]));
        CHECK(bel_client_receive(client, &reply) == BEL_EINVAL);
        CHECK(bel_client_receive(client, &reply) == BEL_EINVAL);
        CHECK(bel_client_flush(client) == BEL_EINVAL);
        end();
    }
}

static void what_says_that_it_is_large_is_not_believed(void)
{
    static const char *const large[] = {"$2000000\r\n", "*99999999\r\n",
                                        "%18446744073709551615\r\n",
                                        "$99999999999999999999999\r\n"};
    for (unsigned i = 0; i < sizeof large / sizeof large[0]; i++) {
        const struct bel_value *reply;
        CHECK_NOTE("%s", large[i]);
        start_with(&(struct bel_client_options){.reply_bytes_max = 1 << 20});
        send_word("PING");
        say(large[i], strlen(large[i]));
        CHECK(bel_client_receive(client, &reply) == BEL_EFULL);
        end();
    }
}

static void a_line_that_does_not_end_is_refused(void)
{
    static char line[BEL_READER_LINE_BYTES + 2];
    struct bel_reader reader;
    memset(line, '+', sizeof line);
    bel__reader_init(&reader, 1 << 20, 100);
    CHECK(bel__reader_scan(&reader, (uint8_t *)line, sizeof line - 1) == BEL_EBUSY);
    CHECK(bel__reader_scan(&reader, (uint8_t *)line, sizeof line) == BEL_EINVAL);
    bel__reader_finish(&reader);
}

static void many_values_are_refused(void)
{
    static const char text[] = "*3\r\n:1\r\n*2\r\n:1\r\n:1\r\n:1\r\n";
    struct bel_reader reader;
    for (size_t max = 1; max < 7; max++) {
        CHECK_NOTE("%zu values", max);
        bel__reader_init(&reader, 1 << 20, max);
        int err = bel__reader_scan(&reader, (const uint8_t *)text, sizeof text - 1);
        CHECK(err == (max < 6 ? BEL_EFULL : 0));
        bel__reader_finish(&reader);
    }
}

static void commands_are_arrays_of_bytes(void)
{
    static const char wanted[] = "*3\r\n$4\r\nECHO\r\n$0\r\n\r\n$3\r\na\r\n\r\n";
    char got[sizeof wanted];
    struct bel_view args[] = {BEL_VIEW("ECHO"), {NULL, 0}, BEL_VIEW("a\r\n")};
    start();
    CHECK(bel_client_send(client, args, 3) == 0);
    CHECK(bel_client_flush(client) == 0);
    CHECK(recv(far, got, sizeof got, 0) == (ssize_t)sizeof wanted - 1);
    CHECK(memcmp(got, wanted, sizeof wanted - 1) == 0);
    CHECK_EQ(bel_client_pending(client), 1);
    end();
}

static void many_commands_wait_for_their_answers_in_order(void)
{
    const struct bel_value *reply;
    char text[16 * 1000];
    size_t bytes = 0;
    start();
    for (int i = 0; i < 1000; i++) {
        send_word("PING");
    }
    CHECK_EQ(bel_client_pending(client), 1000);
    CHECK(bel_client_flush(client) == 0);
    for (int i = 0; i < 1000; i++) {
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, ":%d\r\n", i);
    }
    say(text, bytes);
    for (int i = 0; i < 1000; i++) {
        CHECK(bel_client_receive(client, &reply) == 0);
        CHECK_EQ((uint64_t)reply->number, (uint64_t)i);
    }
    end();
}

/* Neither side reads before it has written: if the client did not read too, both would deadlock.
 * The reply that it is using must not move. */
static void a_client_that_writes_reads_as_well(void)
{
    static char payload[LARGE_BYTES], answer[LARGE_BYTES];
    struct bel_view args[] = {BEL_VIEW("ECHO"), {payload, sizeof payload}};
    const struct bel_value *first, *second;
    start();
    send_word("PING");
    say("+first\r\n", 8);
    CHECK(bel_client_receive(client, &first) == 0);
    bel_client_set_timeout(client, 0);
    CHECK(bel_client_send(client, args, 2) == 0);
    CHECK(bel_client_flush(client) == BEL_EBUSY);
    say("+second\r\n", 9);
    CHECK(bel_client_flush(client) == BEL_EBUSY);
    while (recv(far, answer, sizeof answer, MSG_DONTWAIT) > 0) {
        int err = bel_client_flush(client);
        CHECK(err == 0 || err == BEL_EBUSY);
    }
    CHECK(bel_value_is(first, "first"));
    CHECK(bel_client_receive(client, &second) == 0);
    CHECK(bel_value_is(second, "second"));
    end();
}

static void a_command_that_is_too_large_is_not_sent(void)
{
    static const char big[200];
    struct bel_view args[] = {BEL_VIEW("ECHO"), {big, sizeof big}};
    const struct bel_value *reply;
    start_with(&(struct bel_client_options){.request_bytes_max = 100});
    CHECK(bel_client_send(client, args, 2) == BEL_EFULL);
    CHECK_EQ(bel_client_pending(client), 0);
    say("+OK\r\n", 5);
    CHECK(bel_client_call(client, args, 1, &reply) == 0);
    end();
}

static void a_server_that_closes_is_heard_to_the_end(void)
{
    const struct bel_value *reply;
    start();
    send_word("PING");
    send_word("PING");
    say("-ERR goodbye\r\n", 14);
    CHECK(shutdown(far, SHUT_RDWR) == 0);
    CHECK(bel_client_receive(client, &reply) == 0);
    CHECK(reply->type == BEL_VALUE_ERROR);
    CHECK(bel_client_receive(client, &reply) == BEL_ECLOSED);
    CHECK(bel_client_send(client, &BEL_VIEW("PING"), 1) == BEL_ECLOSED);
    end();
}

static void errors_have_a_code_and_a_message(void)
{
    static const struct {
        const char *text, *code, *message;
    } cases[] = {
        {"NOTFOUND there is none", "NOTFOUND", "there is none"},
        {"IO", "IO", ""},
        {"something else", "", "something else"},
        {"Not a code", "", "Not a code"},
    };
    for (unsigned i = 0; i < 4; i++) {
        struct bel_value error = {.type = BEL_VALUE_ERROR, .text = view_of(cases[i].text)};
        struct bel_view code = bel_value_code(&error), message = bel_value_message(&error);
        CHECK(code.bytes == strlen(cases[i].code));
        CHECK(memcmp(code.data, cases[i].code, code.bytes) == 0);
        CHECK(message.bytes == strlen(cases[i].message));
        CHECK(memcmp(message.data, cases[i].message, message.bytes) == 0);
    }
}

static void names_are_found_in_maps_and_lists(void)
{
    struct bel_value items[] = {{.type = BEL_VALUE_TEXT, .text = BEL_VIEW("id")},
                                {.type = BEL_VALUE_NUMBER, .number = 7},
                                {.type = BEL_VALUE_TEXT, .text = BEL_VIEW("odd")}};
    struct bel_value map = {.type = BEL_VALUE_MAP, .items = items, .count = 3};
    CHECK(bel_value_find(&map, "id") == &items[1]);
    CHECK(bel_value_find(&map, "odd") == NULL);
    CHECK(bel_value_find(&items[1], "id") == NULL);
    map.type = BEL_VALUE_LIST;
    CHECK(bel_value_find(&map, "id") == &items[1]);
}

/* --- connecting --- */

static void the_key_goes_first(void)
{
    static const char wanted[] = "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsecret\r\n"
                                 "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    struct bel_client_options options = {
        .user = BEL_VIEW("ann"), .key = BEL_VIEW("secret"), .protocol = 3};
    char got[sizeof wanted];
    int pair[2];
    (void)alarm(PATIENCE_S);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    far = pair[1];
    say("+OK\r\n-ERR unknown command\r\n", 27);
    CHECK(bel_client_adopt(pair[0], &options, &client, NULL) == 0);
    CHECK(recv(far, got, sizeof got, 0) == (ssize_t)sizeof wanted - 1);
    CHECK(memcmp(got, wanted, sizeof wanted - 1) == 0);
    end();
}

static void a_key_that_is_refused_is_not_repeated(void)
{
    struct bel_client_options options = {.key = BEL_VIEW("secret")};
    struct bel_client_why why;
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    far = pair[1];
    say("-NOAUTH wrong key\r\n", 19);
    CHECK(bel_client_adopt(pair[0], &options, &client, &why) == BEL_ECLOSED);
    CHECK(strcmp(why.code, "NOAUTH") == 0);
    CHECK(strcmp(why.text, "wrong key") == 0);
    CHECK(strstr(why.text, "secret") == NULL);
    CHECK(close(pair[0]) == 0); /* it still belongs to the caller */
    CHECK(close(far) == 0);
}

static void addresses_are_understood(void)
{
    static const char *const bad[] = {
        "", ":", "[::1", "[::1]x", "host:", "host:x", "host:123456", "127.0.0.1:73414", "host:0"};
    struct bel_client_why why;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_NOTE("%s", bad[i]);
        CHECK(bel_client_connect(bad[i], NULL, &client, &why) == BEL_EINVAL);
        CHECK(strstr(why.text, "not an address") != NULL);
    }
    CHECK(bel_client_connect("/nowhere/at/all", NULL, &client, &why) == BEL_EIO);
    CHECK(strstr(why.text, "/nowhere/at/all") != NULL);
    CHECK(bel_client_connect("/nowhere/at/all", NULL, &client, NULL) == BEL_EIO);
}

static void a_socket_with_a_path_is_reached(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[] = "/tmp/test_client.XXXXXX";
    const struct bel_value *reply;
    (void)alarm(PATIENCE_S);
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(listener, 1) == 0);
    CHECK(bel_client_connect(address.sun_path, NULL, &client, NULL) == 0);
    far = accept(listener, NULL, NULL);
    say("+PONG\r\n", 7);
    CHECK(bel_client_call(client, &BEL_VIEW("PING"), 1, &reply) == 0);
    CHECK(bel_value_is(reply, "PONG"));
    end();
    (void)close(listener);
    (void)unlink(address.sun_path);
    (void)rmdir(folder);
}

int main(void)
{
    RUN(replies_come_whole);
    RUN(replies_come_split_at_every_byte);
    RUN(what_is_no_reply_ends_it);
    RUN(what_says_that_it_is_large_is_not_believed);
    RUN(a_line_that_does_not_end_is_refused);
    RUN(many_values_are_refused);
    RUN(commands_are_arrays_of_bytes);
    RUN(many_commands_wait_for_their_answers_in_order);
    RUN(a_client_that_writes_reads_as_well);
    RUN(a_command_that_is_too_large_is_not_sent);
    RUN(a_server_that_closes_is_heard_to_the_end);
    RUN(errors_have_a_code_and_a_message);
    RUN(names_are_found_in_maps_and_lists);
    RUN(the_key_goes_first);
    RUN(a_key_that_is_refused_is_not_repeated);
    RUN(addresses_are_understood);
    RUN(a_socket_with_a_path_is_reached);
    return 0;
}
