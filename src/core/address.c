/* SPDX-License-Identifier: MIT */

/* The port follows the last colon; an IPv6 address, which contains colons, is in brackets. */
#include "core/address.h"

#include "core/parse.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define LOCAL "127.0.0.1"

static int parse_host(const char *host, uint16_t port, struct bel_address *out)
{
    struct bel_address address = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&address.socket;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address.socket;
    size_t bytes = strlen(host);
    if (strcmp(host, "localhost") == 0) host = "127.0.0.1";
    if (host[0] == '[' && host[bytes - 1] == ']') {
        char inner[INET6_ADDRSTRLEN];
        if (bytes - 2 >= sizeof inner) return BEL_EINVAL;
        (void)snprintf(inner, sizeof inner, "%.*s", (int)bytes - 2, host + 1);
        if (inet_pton(AF_INET6, inner, &six->sin6_addr) != 1) return BEL_EINVAL;
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        address.socket_bytes = sizeof *six;
    } else {
        if (inet_pton(AF_INET, host, &four->sin_addr) != 1) return BEL_EINVAL;
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        address.socket_bytes = sizeof *four;
    }
    *out = address;
    return 0;
}

int bel__address_parse(const char *text, struct bel_address *out)
{
    char host[BEL_ADDRESS_BYTES];
    uint32_t port;
    const char *colon = strrchr(text, ':'), *digits = colon != NULL ? colon + 1 : text;
    bool has_host = colon != NULL && colon != text;
    if (has_host && (size_t)(colon - text) >= sizeof host) return BEL_EINVAL;
    int err = bel__parse_u32(digits, strlen(digits), 0, UINT16_MAX, &port);
    if (err) return BEL_EINVAL;
    (void)snprintf(host, sizeof host, "%.*s", has_host ? (int)(colon - text) : (int)strlen(LOCAL),
                   has_host ? text : LOCAL);
    return parse_host(host, (uint16_t)port, out);
}

void bel__address_print(const struct bel_address *address, char out[BEL_ADDRESS_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool is_six = address->socket.ss_family == AF_INET6;
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address->socket;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->socket;
    const void *raw = is_six ? (const void *)&six->sin6_addr : (const void *)&four->sin_addr;
    (void)inet_ntop(address->socket.ss_family, raw, host, sizeof host);
    (void)snprintf(out, BEL_ADDRESS_BYTES, is_six ? "[%s]:%u" : "%s:%u", host,
                   (unsigned)bel__address_port(address));
}

uint16_t bel__address_port(const struct bel_address *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address->socket;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->socket;
    return ntohs(address->socket.ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

void bel__address_set_port(struct bel_address *address, uint16_t port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)&address->socket;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address->socket;
    if (address->socket.ss_family == AF_INET6) {
        six->sin6_port = htons(port);
    } else {
        four->sin_port = htons(port);
    }
}

bool bel__address_is_loopback(const struct bel_address *address)
{
    if (address->socket.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->socket;
        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    }
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address->socket;
    assert(address->socket.ss_family == AF_INET);
    return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}
