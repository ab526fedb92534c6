/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_URL_H
#define BEL_REDIS_LINK_URL_H

/*
 * url - parses the address of a Redis or Valkey store.
 *
 *     redis://[[user]:password@]host[:port][,host[:port]...][/db][?name=value[&name=value...]]
 *     redis+sentinel://[[user]:password@]host[:port][,...]/primary[/db][?name=value...]
 *     unix:///path/to/socket[?name=value...]
 *
 * Schemes: redis, redis+sentinel, redis+cluster; the same with `rediss` connect by TLS. The default
 * port is 6379, and 26379 with redis+sentinel. A host is a name, an IPv4 address or an IPv6 address
 * in brackets.
 *
 *     option          value                                                allowed with
 *     password_file   a file whose first line is the password              all
 *     namespace       prefix of all keys: 1 to 64 letters, digits, . _ -   all
 *     db              number of the database, instead of /db               unix
 *     master          name of the primary, instead of /primary             redis+sentinel
 *     sentinel_user, sentinel_password_file
 *                     credentials for the Sentinels, which have none else  redis+sentinel
 *     ca              file of trusted certificates (PEM)                   rediss
 *     ca_dir          folder of trusted certificates, hashed               rediss
 *     cert, key       files of a client's certificate and its key (PEM)    rediss
 *     insecure        yes: the server's certificate is not checked         rediss
 *
 * User, password and values are percent-encoded: `@ : / ? # & %` in them must be encoded.
 * No message of a failure contains a user, a password or a host.
 */

#include "belfry/error.h"

#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_REDIS_HOSTS_MAX = 16,
    BEL_REDIS_URL_BYTES_MAX = 4096,
    BEL_REDIS_PASSWORD_BYTES_MAX = 1024, /* in a file */
    BEL_REDIS_DB_MAX = 1000000,
};

enum bel_redis_mode {
    BEL_REDIS_SINGLE,
    BEL_REDIS_SENTINEL, /* hosts are Sentinels */
    BEL_REDIS_CLUSTER,  /* hosts are some nodes of the cluster */
};

struct bel_redis_host {
    const char *name; /* without brackets */
    uint16_t port;
};

/* A parsed URL. Strings are NULL if the URL does not have them; the URL owns their memory. */
struct bel_redis_url {
    enum bel_redis_mode mode;
    bool is_tls;
    bool is_insecure; /* the certificate of the server is not checked */
    struct bel_redis_host hosts[BEL_REDIS_HOSTS_MAX];
    size_t hosts_count; /* at least 1, or 0 with a path */
    const char *path;   /* of a Unix socket */
    const char *user, *password, *password_file;
    uint32_t db;
    const char *ca, *ca_dir, *cert, *key;
    const char *master;
    const char *sentinel_user, *sentinel_password, *sentinel_password_file;
    const char *name_space; /* the option `namespace` */
    char *memory;           /* private, as are the next two */
    size_t memory_bytes;
    char *password_memory, *sentinel_password_memory;
};

/* Returns whether a text is a namespace; it ends in 0. */
bool bel__redis_namespace_is_valid(const char *text);

/* Parses a whole text, which needs no final 0. Returns 0 and sets `*out`, which the caller must
 * finish; or returns BEL_EINVAL or BEL_ENOMEM, leaves `*out` unchanged and sets `*why`, unless that
 * is NULL. */
BEL_CHECKED int bel__redis_url_parse(const char *text, size_t bytes, struct bel_redis_url *out,
                                     struct bel_why *why);

/* Overwrites the password and frees the memory. A zeroed URL is allowed. */
void bel__redis_url_finish(struct bel_redis_url *url);

/* Sets the password to the first line of `password_file`, if there is one, and that of Sentinels to
 * that of `sentinel_password_file`. Returns 0; or BEL_EIO if a file cannot be read, BEL_EINVAL if
 * its first line is empty or too long, or BEL_ENOMEM. */
BEL_CHECKED int bel__redis_url_read_password(struct bel_redis_url *url, struct bel_why *why);

/* Prints a URL for logs, without credentials and options: "rediss+cluster://a:6379,b:6379". Like
 * snprintf, writes what fits into `room` bytes and returns the full length. */
size_t bel__redis_url_print(const struct bel_redis_url *url, char *out, size_t room);

#endif
