/* SPDX-License-Identifier: MIT */

/*
 * getaddrinfo() blocks, for as long as name servers do not answer, and cannot be cancelled. So a
 * thread of its own calls it, once, and ends. getaddrinfo_a() would do the same inside of glibc
 * alone; its request must stay in memory until it ends, which its owner cannot wait for either, and
 * it reports the end by a signal or by another thread, not by a descriptor.
 *
 *     owner                thread
 *     start -------------> getaddrinfo
 *                          lock, result, is_ended, unlock; write to the eventfd
 *     take <-------------- (readable)
 *     drop                                 the one of the two that is last frees the memory
 */
#include "redis/link/lookup.h"

#include "core/thread.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    PORT_BYTES = 8,
};

struct bel_name_lookup {
    pthread_mutex_t mutex; /* for the next four */
    bool is_ended, is_dropped;
    int problem; /* of getaddrinfo() */
    struct addrinfo *found;
    int event; /* an eventfd */
    char port[PORT_BYTES];
    char host[];
};

int bel__name_lookup_numeric(const char *host, uint16_t port, struct bel_address *out)
{
    struct bel_address address = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&address.socket;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address.socket;
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        address.socket_bytes = sizeof *four;
    } else if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        address.socket_bytes = sizeof *six;
    } else {
        return BEL_EINVAL;
    }
    bel__address_set_port(&address, port);
    *out = address;
    return 0;
}

static void free_lookup(struct bel_name_lookup *lookup)
{
    if (lookup->found != NULL) freeaddrinfo(lookup->found);
    if (lookup->event >= 0) (void)close(lookup->event);
    (void)pthread_mutex_destroy(&lookup->mutex);
    free(lookup);
}

static void *run(void *context)
{
    struct bel_name_lookup *lookup = context;
    struct addrinfo *found = NULL,
                    wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int problem = getaddrinfo(lookup->host, lookup->port, &wanted, &found);
    (void)pthread_mutex_lock(&lookup->mutex);
    lookup->problem = problem;
    lookup->found = problem == 0 ? found : NULL;
    lookup->is_ended = true;
    bool is_dropped = lookup->is_dropped;
    /* Inside the lock: after it the owner may free the lookup. */
    ssize_t written = write(lookup->event, &(uint64_t){1}, sizeof(uint64_t));
    assert(written == sizeof(uint64_t));
    (void)written;
    (void)pthread_mutex_unlock(&lookup->mutex);
    if (is_dropped) free_lookup(lookup);
    return NULL;
}

int bel__name_lookup_start(const char *host, uint16_t port, struct bel_name_lookup **out)
{
    size_t bytes = strlen(host) + 1;
    pthread_t thread = {0};
    struct bel_name_lookup *lookup = calloc(1, sizeof *lookup + bytes);
    if (lookup == NULL) return BEL_ENOMEM;
    memcpy(lookup->host, host, bytes);
    (void)snprintf(lookup->port, sizeof lookup->port, "%u", (unsigned)port);
    (void)pthread_mutex_init(&lookup->mutex, NULL);
    lookup->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = lookup->event < 0 ? BEL_ENOMEM : bel__thread_start(&thread, run, lookup);
    if (err) {
        free_lookup(lookup);
        return err;
    }
    (void)pthread_detach(thread);
    *out = lookup;
    return 0;
}

int bel__name_lookup_descriptor(const struct bel_name_lookup *lookup)
{
    return lookup->event;
}

int bel__name_lookup_take(struct bel_name_lookup *lookup,
                          struct bel_address out[BEL_NAME_ADDRESSES_MAX], size_t *out_count,
                          struct bel_why *why)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&lookup->mutex);
    bool is_ended = lookup->is_ended; /* after that the thread changes nothing */
    (void)pthread_mutex_unlock(&lookup->mutex);
    if (!is_ended) return BEL_EBUSY;
    for (const struct addrinfo *at = lookup->found; at != NULL; at = at->ai_next) {
        if (count == BEL_NAME_ADDRESSES_MAX) break;
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
        memcpy(&out[count].socket, at->ai_addr, at->ai_addrlen);
        out[count++].socket_bytes = at->ai_addrlen;
    }
    if (count == 0) {
        return bel__why_say(why, BEL_EIO, "cannot find %s: %s", lookup->host,
                            gai_strerror(lookup->problem == 0 ? EAI_NONAME : lookup->problem));
    }
    *out_count = count;
    return 0;
}

void bel__name_lookup_drop(struct bel_name_lookup *lookup)
{
    if (lookup == NULL) return;
    (void)pthread_mutex_lock(&lookup->mutex);
    lookup->is_dropped = true;
    bool is_ended = lookup->is_ended;
    (void)pthread_mutex_unlock(&lookup->mutex);
    if (is_ended) free_lookup(lookup);
}
