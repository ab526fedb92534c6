/* SPDX-License-Identifier: MIT */

/*
 * Any bytes as the replies of a server. The first byte is the size of the pieces in which they
 * arrive, the second the number of calls; the rest follows a good greeting, or replaces it if the
 * second byte is odd. Every call ends exactly once, the link stays valid, and a link that is not
 * ready any more has a reason.
 */
#include "redis/link/link.h"

#include "core/entropy.h"
#include "core/units.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CALLS_MAX = 16,
    BYTES_MAX = 1 << 14, /* fits into a socket */
    TURNS_MAX = 100000,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_call {
    struct bel_redis_call call;
    unsigned replies;
    bool is_ended;
};

static struct bel_poller poller;
static struct bel_redis_link *link_under_test;
static struct bel_mono now;
static unsigned messages;

static void look(const struct bel_value *value, unsigned depth)
{
    volatile uint8_t sum = 0;
    assert(depth < 16);
    for (size_t i = 0; i < value->text.bytes; i++) {
        sum = (uint8_t)(sum + ((const uint8_t *)value->text.data)[i]);
    }
    for (size_t i = 0; i < value->count; i++) {
        look(&value->items[i], depth + 1);
    }
}

static void done(struct bel_redis_call *call, const struct bel_redis_reply *reply)
{
    struct fuzz_call *mine = BEL_CONTAINER_OF(call, struct fuzz_call, call);
    assert(!mine->is_ended);
    assert((reply->err == 0) == (reply->value != NULL));
    assert(reply->err == 0 || (reply->is_last && reply->why[0] != 0));
    assert(reply->index == mine->replies);
    mine->replies += reply->err == 0;
    mine->is_ended = reply->is_last;
    if (reply->value != NULL) look(reply->value, 0);
}

static void pushed(struct bel_redis_link *link, void *owner, const struct bel_value *message)
{
    (void)owner;
    assert(link == link_under_test && message->count > 0);
    messages++;
    look(message, 0);
}

/* Takes turns until there is nothing to do at this time. */
static void settle(void)
{
    struct bel_mono next;
    unsigned turns = 0;
    do {
        next = bel__poller_turn(&poller, now);
        bool is_valid = bel__redis_link_valid(link_under_test);
        assert(is_valid && ++turns < TURNS_MAX);
        (void)is_valid;
    } while (next.ns <= now.ns);
    for (int i = 0; i < 3; i++) { /* what has arrived, without asking the kernel */
        (void)bel__poller_turn(&poller, now);
    }
}

static int listen_at(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(address->sun_path, sizeof address->sun_path, "/tmp/belfry-fuzz-link-%d",
                   (int)getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(address->sun_path);
    int failed = bind(fd, (const struct sockaddr *)address, sizeof *address);
    assert(fd >= 0 && failed == 0);
    failed = listen(fd, 4);
    assert(failed == 0);
    (void)failed;
    return fd;
}

static void send_calls(struct fuzz_call calls[CALLS_MAX], unsigned count)
{
    static const char command[] = "*1\r\n$4\r\nPING\r\n";
    for (unsigned i = 0; i < count; i++) {
        calls[i] = (struct fuzz_call){.call = {.command = {command, sizeof command - 1},
                                               .replies = i % 3 == 2 ? 2 : 1,
                                               .confirmed_by = i % 4 == 3 ? "subscribe" : NULL,
                                               .done = done}};
        int err = bel__redis_link_send(link_under_test, &calls[i].call, now);
        assert(err == 0 || err == BEL_EUNSUPPORTED);
        calls[i].is_ended = err != 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char hello[] = "%0\r\n";
    struct fuzz_call calls[CALLS_MAX];
    struct bel_entropy_seeded entropy;
    struct sockaddr_un address;
    if (size < 2 || size > BYTES_MAX) return 0;
    size_t piece = data[0] == 0 ? size : data[0];
    unsigned count = 1 + data[1] / 2 % CALLS_MAX;
    bool is_greeted = data[1] % 2 == 0;
    int listener = listen_at(&address), err = bel__poller_open(&poller);
    assert(err == 0);
    bel__entropy_seed(&entropy, 1);
    struct bel_redis_link_options options = {.poller = &poller,
                                             .entropy = &entropy.entropy,
                                             .path = address.sun_path,
                                             .reply_bytes_max = 4096,
                                             .reply_values_max = 64,
                                             .password = is_greeted ? NULL : "p",
                                             .db = is_greeted ? 0 : 1,
                                             .pushed = pushed};
    now.ns = NS_PER_S;
    err = bel__redis_link_open(&options, &link_under_test);
    assert(err == 0);
    send_calls(calls, count);
    settle();
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert(server >= 0);
    if (is_greeted) {
        (void)!send(server, hello, sizeof hello - 1, MSG_NOSIGNAL);
        settle();
    }
    for (size_t at = 2; at < size; at += piece) {
        size_t bytes = size - at < piece ? size - at : piece;
        (void)!send(server, data + at, bytes, MSG_NOSIGNAL);
        settle();
    }
    if (bel__redis_link_state(link_under_test) == BEL_REDIS_LINK_WAITING) {
        assert(bel__redis_link_why(link_under_test)[0] != 0);
    }
    bel__redis_link_close(link_under_test);
    for (unsigned i = 0; i < count; i++) {
        assert(calls[i].is_ended);
    }
    bel__poller_close(&poller);
    (void)close(server);
    (void)close(listener);
    (void)unlink(address.sun_path);
    return 0;
}
