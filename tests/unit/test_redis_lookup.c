/* SPDX-License-Identifier: MIT */

/*
 * Names, with a getaddrinfo() of the test: it answers when the test lets it, with addresses that
 * the test has chosen.
 */
#include "redis_rig.h"

#include "redis/link/lookup.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *wanted,
                       struct addrinfo **out);
void __wrap_freeaddrinfo(struct addrinfo *found);

enum {
    ADDRESSES_MAX = 20,
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_held;          /* getaddrinfo() waits */
static unsigned asked, freed; /* calls */
static int problem;           /* what getaddrinfo() returns */
static unsigned addresses;    /* that it finds: 127.0.0.2, 127.0.0.3 ... and the last 127.0.0.1 */

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *wanted,
                       struct addrinfo **out)
{
    CHECK(strcmp(host, "name.example") == 0 && wanted->ai_socktype == SOCK_STREAM);
    (void)pthread_mutex_lock(&mutex);
    asked++;
    while (is_held) {
        (void)pthread_cond_wait(&changed, &mutex);
    }
    struct addrinfo *list = NULL;
    for (unsigned i = addresses; i > 0 && problem == 0; i--) {
        struct {
            struct addrinfo info;
            struct sockaddr_in address;
        } *one = calloc(1, sizeof *one);
        CHECK(one != NULL);
        one->address.sin_family = AF_INET;
        one->address.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
        one->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (i == addresses ? 0 : i));
        one->info = (struct addrinfo){.ai_family = AF_INET,
                                      .ai_addr = (struct sockaddr *)&one->address,
                                      .ai_addrlen = sizeof one->address,
                                      .ai_next = list};
        list = &one->info;
    }
    *out = list;
    int result = problem;
    if (result != 0) freed++; /* nothing to free */
    (void)pthread_mutex_unlock(&mutex);
    return result;
}

void __wrap_freeaddrinfo(struct addrinfo *found)
{
    while (found != NULL) {
        struct addrinfo *next = found->ai_next;
        free(found);
        found = next;
    }
    (void)pthread_mutex_lock(&mutex);
    freed++;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
}

static void hold(bool is_now_held)
{
    (void)pthread_mutex_lock(&mutex);
    is_held = is_now_held;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
}

static void wait_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    CHECK(poll(&poller, 1, -1) == 1);
}

static void numeric_addresses_need_no_lookup(void)
{
    struct bel_address address;
    char text[BEL_ADDRESS_BYTES];
    CHECK(bel__name_lookup_numeric("127.0.0.1", 6379, &address) == 0);
    bel__address_print(&address, text);
    CHECK(strcmp(text, "127.0.0.1:6379") == 0);
    CHECK(bel__name_lookup_numeric("::1", 1, &address) == 0);
    bel__address_print(&address, text);
    CHECK(strcmp(text, "[::1]:1") == 0);
    CHECK(bel__name_lookup_numeric("localhost", 1, &address) == BEL_EINVAL);
    CHECK(bel__name_lookup_numeric("", 1, &address) == BEL_EINVAL);
    CHECK(bel__name_lookup_numeric("1.2.3", 1, &address) == BEL_EINVAL);
}

static void a_lookup_finds_addresses_up_to_a_limit(void)
{
    struct bel_address found[BEL_NAME_ADDRESSES_MAX];
    struct bel_name_lookup *lookup;
    struct bel_why why;
    size_t count = 0;
    problem = 0;
    addresses = ADDRESSES_MAX;
    hold(true);
    CHECK(bel__name_lookup_start("name.example", 77, &lookup) == 0);
    CHECK(!rig_is_readable(bel__name_lookup_descriptor(lookup)));
    CHECK(bel__name_lookup_take(lookup, found, &count, &why) == BEL_EBUSY);
    hold(false);
    wait_readable(bel__name_lookup_descriptor(lookup));
    CHECK(bel__name_lookup_take(lookup, found, &count, &why) == 0);
    CHECK_EQ(count, BEL_NAME_ADDRESSES_MAX);
    CHECK(bel__address_port(&found[0]) == 77);
    bel__name_lookup_drop(lookup);
}

static void a_failed_lookup_names_the_host(void)
{
    struct bel_address found[BEL_NAME_ADDRESSES_MAX];
    struct bel_name_lookup *lookup;
    struct bel_why why;
    size_t count;
    for (int i = 0; i < 2; i++) {
        problem = i == 0 ? EAI_AGAIN : 0;
        addresses = 0;
        CHECK(bel__name_lookup_start("name.example", 77, &lookup) == 0);
        wait_readable(bel__name_lookup_descriptor(lookup));
        CHECK(bel__name_lookup_take(lookup, found, &count, &why) == BEL_EIO);
        CHECK(strstr(why.text, "cannot find name.example: ") != NULL);
        bel__name_lookup_drop(lookup);
    }
}

/* The sanitizers see whether the thread frees what its owner has left to it. */
static void a_dropped_lookup_is_freed_by_its_thread(void)
{
    struct bel_name_lookup *lookup;
    problem = 0;
    addresses = 1;
    hold(true);
    (void)pthread_mutex_lock(&mutex);
    unsigned before = freed;
    (void)pthread_mutex_unlock(&mutex);
    CHECK(bel__name_lookup_start("name.example", 77, &lookup) == 0);
    bel__name_lookup_drop(lookup);
    hold(false);
    (void)pthread_mutex_lock(&mutex);
    while (freed == before) {
        (void)pthread_cond_wait(&changed, &mutex);
    }
    (void)pthread_mutex_unlock(&mutex);
}

static void wait_for(enum bel_redis_link_state state)
{
    for (rig_settle(); bel__redis_link_state(rig.link) != state; rig_settle()) {
        wait_readable(rig.poller.descriptor);
    }
}

/* Listens on 127.0.0.1 only, so that the addresses before it are refused. */
static int listen_tcp(uint16_t *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, 16) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

static void all_addresses_of_a_name_are_tried(void)
{
    uint16_t port;
    int listener = listen_tcp(&port);
    problem = 0;
    addresses = 5;
    asked = 0;
    hold(true);
    rig_open((struct bel_redis_link_options){.host = "name.example", .port = port});
    bel__redis_link_connect(rig.link);
    rig_settle();
    CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_RESOLVING);
    CHECK(rig.next.ns == BEL_NEVER); /* only the descriptor wakes it */
    hold(false);
    wait_for(BEL_REDIS_LINK_GREETING);
    CHECK(strstr(bel__redis_link_why(rig.link), "name.example:") != NULL);
    CHECK(strstr(bel__redis_link_why(rig.link), "refused") != NULL);
    rig_end();

    problem = EAI_NONAME; /* and again after a wait */
    asked = 0;
    rig_open((struct bel_redis_link_options){.host = "name.example", .port = port});
    bel__redis_link_connect(rig.link);
    wait_for(BEL_REDIS_LINK_WAITING);
    CHECK(strstr(bel__redis_link_why(rig.link), "cannot find name.example") != NULL);
    problem = 0;
    rig.now = rig.next;
    wait_for(BEL_REDIS_LINK_GREETING);
    CHECK_EQ(asked, 2);
    rig_end();
    (void)close(listener);
}

static void a_link_can_leave_while_its_name_is_looked_up(void)
{
    uint16_t port;
    int listener = listen_tcp(&port);
    problem = 0;
    addresses = 1;
    for (int i = 0; i < 2; i++) {
        hold(true);
        rig_open((struct bel_redis_link_options){.host = "name.example", .port = port});
        bel__redis_link_connect(rig.link);
        rig_settle();
        CHECK(bel__redis_link_state(rig.link) == BEL_REDIS_LINK_RESOLVING);
        if (i == 1) {
            CHECK(bel__redis_link_move(rig.link, "127.0.0.1", port) == 0);
            wait_for(BEL_REDIS_LINK_GREETING); /* does not wait for the lookup */
        }
        (void)pthread_mutex_lock(&mutex);
        unsigned before = freed;
        (void)pthread_mutex_unlock(&mutex);
        rig_end();
        hold(false);
        (void)pthread_mutex_lock(&mutex);
        while (freed == before) {
            (void)pthread_cond_wait(&changed, &mutex);
        }
        (void)pthread_mutex_unlock(&mutex);
    }
    (void)close(listener);
}

int main(void)
{
    RUN(numeric_addresses_need_no_lookup);
    RUN(a_lookup_finds_addresses_up_to_a_limit);
    RUN(a_failed_lookup_names_the_host);
    RUN(a_dropped_lookup_is_freed_by_its_thread);
    RUN(all_addresses_of_a_name_are_tried);
    RUN(a_link_can_leave_while_its_name_is_looked_up);
    return EXIT_SUCCESS;
}
