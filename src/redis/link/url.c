/* SPDX-License-Identifier: MIT */

/*
 * The URL is copied once and taken apart in that copy. Every part is cut off by a 0, and decoding
 * makes a part shorter, never longer.
 *
 *     scheme :// user : password @ host : port , host : port / db ? name = value & name = value
 *                '--- credentials   '------- hosts -------'    '--- options
 *
 * A password with an unencoded / or ? would end the part with the hosts too early, and a message
 * that quotes a "host" or an "option" could then show the password. Such a URL has an @ after the
 * hosts, which is refused before anything is quoted; and hosts and ports are never quoted.
 */
#include "redis/link/url.h"

#include "core/parse.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAMESPACE_BYTES_MAX = 64,
    HOST_BYTES_MAX = 255,
    QUOTED_BYTES_MAX = 40,
    PORT_DEFAULT = 6379,
    SENTINEL_PORT_DEFAULT = 26379,
};

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

struct scheme {
    const char *name;
    enum bel_redis_mode mode;
    bool is_tls, is_path;
};

static const struct scheme schemes[] = {
    {"redis", BEL_REDIS_SINGLE, false, false},
    {"rediss", BEL_REDIS_SINGLE, true, false},
    {"redis+sentinel", BEL_REDIS_SENTINEL, false, false},
    {"rediss+sentinel", BEL_REDIS_SENTINEL, true, false},
    {"redis+cluster", BEL_REDIS_CLUSTER, false, false},
    {"rediss+cluster", BEL_REDIS_CLUSTER, true, false},
    {"unix", BEL_REDIS_SINGLE, false, true},
};

/* --- texts --- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Decodes %XX in place. Returns false if a % is not followed by two digits or stands for a 0. */
static bool decode(char *text)
{
    char *out = text;
    for (const char *at = text; *at != 0; at++, out++) {
        *out = *at;
        if (*at != '%') continue;
        int high = digit_of(at[1]), low = high < 0 ? -1 : digit_of(at[2]);
        if (low < 0 || (high == 0 && low == 0)) return false;
        *out = (char)(high * 16 + low);
        at += 2;
    }
    *out = 0;
    return true;
}

/* Cuts a text at the first `c`. Returns what follows, or NULL if there is no `c`. */
static char *cut(char *text, char c)
{
    char *at = strchr(text, c);
    if (at == NULL) return NULL;
    *at = 0;
    return at + 1;
}

static bool consists_of(const char *text, const char *allowed)
{
    return text[0] != 0 && text[strspn(text, allowed)] == 0;
}

/* --- parts --- */

static int parse_scheme(struct bel_redis_url *url, const char *name, bool *out_is_path,
                        struct bel_why *why)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(name, schemes[i].name) != 0) continue;
        url->mode = schemes[i].mode;
        url->is_tls = schemes[i].is_tls;
        *out_is_path = schemes[i].is_path;
        return 0;
    }
    if (strlen(name) > QUOTED_BYTES_MAX || !consists_of(name, LETTERS DIGITS "+")) name = "?";
    return bel__why_say(why, BEL_EINVAL,
                        "unknown scheme '%s' of the store; known are redis, rediss, "
                        "redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster, unix",
                        name);
}

static int parse_credentials(struct bel_redis_url *url, char *text, struct bel_why *why)
{
    char *password = cut(text, ':');
    if (!decode(text) || (password != NULL && !decode(password))) {
        return bel__why_say(why, BEL_EINVAL,
                            "user or password: a %% must be followed by two hexadecimal digits, "
                            "not 00; write %%25 for a percent sign");
    }
    if (text[0] == 0 && (password == NULL || password[0] == 0)) {
        return bel__why_say(why, BEL_EINVAL, "user and password before the @ are empty");
    }
    if (password != NULL && password[0] == 0) {
        return bel__why_say(why, BEL_EINVAL, "the password before the @ is empty");
    }
    if (text[0] != 0) url->user = text;
    url->password = password;
    return 0;
}

static int parse_host(struct bel_redis_url *url, char *text, struct bel_why *why)
{
    struct bel_redis_host *host = &url->hosts[url->hosts_count];
    size_t number = url->hosts_count + 1;
    char *port = NULL;
    uint32_t port_number = url->mode == BEL_REDIS_SENTINEL ? SENTINEL_PORT_DEFAULT : PORT_DEFAULT;
    bool is_valid;
    if (text[0] == '[') {
        char *rest = cut(text, ']');
        text++;
        is_valid = rest != NULL && (rest[0] == 0 || rest[0] == ':') &&
                   consists_of(text, DIGITS "abcdefABCDEF:.");
        if (is_valid && rest[0] == ':') port = rest + 1;
    } else {
        port = cut(text, ':');
        is_valid = consists_of(text, LETTERS DIGITS ".-_");
    }
    if (!is_valid || strlen(text) > HOST_BYTES_MAX) {
        return bel__why_say(why, BEL_EINVAL,
                            "host %zu is not a name or an address; an IPv6 address needs brackets, "
                            "and @ : / ? # in a password must be percent-encoded",
                            number);
    }
    if (port != NULL && bel__parse_u32(port, strlen(port), 1, UINT16_MAX, &port_number) != 0) {
        return bel__why_say(why, BEL_EINVAL, "port of host %zu is not a number from 1 to 65535",
                            number);
    }
    *host = (struct bel_redis_host){.name = text, .port = (uint16_t)port_number};
    url->hosts_count++;
    return 0;
}

static int parse_hosts(struct bel_redis_url *url, char *text, struct bel_why *why)
{
    for (char *next; text != NULL; text = next) {
        next = cut(text, ',');
        if (url->hosts_count == BEL_REDIS_HOSTS_MAX) {
            return bel__why_say(why, BEL_EINVAL, "more than %d hosts", BEL_REDIS_HOSTS_MAX);
        }
        int err = parse_host(url, text, why);
        if (err) return err;
    }
    return 0;
}

static int parse_db(struct bel_redis_url *url, const char *text, struct bel_why *why)
{
    if (bel__parse_u32(text, strlen(text), 0, BEL_REDIS_DB_MAX, &url->db) != 0) {
        return bel__why_say(why, BEL_EINVAL, "the database is not a number from 0 to %d",
                            BEL_REDIS_DB_MAX);
    }
    if (url->mode == BEL_REDIS_CLUSTER && url->db != 0) {
        return bel__why_say(why, BEL_EINVAL, "a cluster has only database 0");
    }
    return 0;
}

/* --- options --- */

/* Returns the place of an option that is kept as a text; NULL if there is no such option. */
static const char **option_of(struct bel_redis_url *url, const char *name)
{
    const struct {
        const char *name, **place;
    } options[] = {
        {"password_file", &url->password_file},
        {"namespace", &url->name_space},
        {"master", &url->master},
        {"sentinel_user", &url->sentinel_user},
        {"sentinel_password_file", &url->sentinel_password_file},
        {"ca", &url->ca},
        {"ca_dir", &url->ca_dir},
        {"cert", &url->cert},
        {"key", &url->key},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(name, options[i].name) == 0) return options[i].place;
    }
    return NULL;
}

/* The options that are not kept as a text; `seen` are pointers to their values. */
struct seen {
    const char *db, *insecure;
};

static int parse_option(struct bel_redis_url *url, char *name, struct seen *seen,
                        struct bel_why *why)
{
    char *value = cut(name, '=');
    const char **place = option_of(url, name);
    if (strcmp(name, "db") == 0) place = &seen->db;
    if (strcmp(name, "insecure") == 0) place = &seen->insecure;
    if (place == NULL) {
        bool is_shown = strlen(name) <= QUOTED_BYTES_MAX && consists_of(name, LETTERS DIGITS "_-");
        return bel__why_say(
            why, BEL_EINVAL,
            "unknown option '%s'; known are password_file, namespace, db, master, "
            "sentinel_user, sentinel_password_file, ca, ca_dir, cert, key, insecure",
            is_shown ? name : "?");
    }
    if (value == NULL || value[0] == 0) {
        return bel__why_say(why, BEL_EINVAL, "option '%s' has no value", name);
    }
    if (*place != NULL) return bel__why_say(why, BEL_EINVAL, "option '%s' is there twice", name);
    if (!decode(value)) {
        return bel__why_say(why, BEL_EINVAL,
                            "option '%s': a %% must be followed by two hexadecimal digits, not 00",
                            name);
    }
    *place = value;
    return 0;
}

static int check_tls(const struct bel_redis_url *url, const struct seen *seen, struct bel_why *why)
{
    const char *name = url->ca != NULL          ? "ca"
                       : url->ca_dir != NULL    ? "ca_dir"
                       : url->cert != NULL      ? "cert"
                       : url->key != NULL       ? "key"
                       : seen->insecure != NULL ? "insecure"
                                                : NULL;
    if (!url->is_tls && name != NULL) {
        return bel__why_say(why, BEL_EINVAL, "option '%s' is only for TLS: rediss://", name);
    }
    if ((url->cert == NULL) != (url->key == NULL)) {
        return bel__why_say(why, BEL_EINVAL,
                            "option 'cert' needs option 'key', and 'key' needs "
                            "'cert'");
    }
    return 0;
}

static int check_sentinel(const struct bel_redis_url *url, struct bel_why *why)
{
    const char *name = url->master != NULL                   ? "master"
                       : url->sentinel_user != NULL          ? "sentinel_user"
                       : url->sentinel_password_file != NULL ? "sentinel_password_file"
                                                             : NULL;
    if (url->mode != BEL_REDIS_SENTINEL && name != NULL) {
        return bel__why_say(why, BEL_EINVAL, "option '%s' is only for redis+sentinel://", name);
    }
    if (url->mode == BEL_REDIS_SENTINEL && url->master == NULL) {
        return bel__why_say(why, BEL_EINVAL,
                            "Sentinel needs the name of the primary: "
                            "redis+sentinel://host,host/name or ?master=name");
    }
    if (url->sentinel_user != NULL && url->sentinel_password_file == NULL) {
        return bel__why_say(why, BEL_EINVAL, "sentinel_user needs sentinel_password_file");
    }
    return 0;
}

static int check_options(struct bel_redis_url *url, const struct seen *seen, struct bel_why *why)
{
    int err = check_tls(url, seen, why);
    if (err) return err;
    if (seen->insecure != NULL) {
        url->is_insecure = strcmp(seen->insecure, "yes") == 0;
        if (!url->is_insecure && strcmp(seen->insecure, "no") != 0) {
            return bel__why_say(why, BEL_EINVAL, "option 'insecure' is yes or no");
        }
    }
    if (seen->db != NULL && url->path == NULL) {
        return bel__why_say(why, BEL_EINVAL, "option 'db' is only for unix://; write host/db");
    }
    if (seen->db != NULL) err = parse_db(url, seen->db, why);
    if (err) return err;
    err = check_sentinel(url, why);
    if (err) return err;
    if (url->name_space != NULL && !bel__redis_namespace_is_valid(url->name_space)) {
        return bel__why_say(why, BEL_EINVAL, "option 'namespace' is 1 to %d letters, digits, . _ -",
                            NAMESPACE_BYTES_MAX);
    }
    if (url->password != NULL && url->password_file != NULL) {
        return bel__why_say(why, BEL_EINVAL, "a password and option 'password_file': use one");
    }
    if (url->user != NULL && url->password == NULL && url->password_file == NULL) {
        return bel__why_say(why, BEL_EINVAL, "a user needs a password: user:password@host");
    }
    return 0;
}

/* Parses what follows the hosts: the database; with Sentinel before it the name of the primary,
 * unless an option has that. */
static int parse_path(struct bel_redis_url *url, char *text, struct bel_why *why)
{
    if (text[0] == 0) return 0;
    if (url->mode != BEL_REDIS_SENTINEL || url->master != NULL) return parse_db(url, text, why);
    const char *db = cut(text, '/');
    if (text[0] == 0 || !decode(text)) {
        return bel__why_say(why, BEL_EINVAL, "expected redis+sentinel://host,host/name/db");
    }
    url->master = text;
    return db == NULL || db[0] == 0 ? 0 : parse_db(url, db, why);
}

static int parse_options(struct bel_redis_url *url, char *path, char *text, struct bel_why *why)
{
    struct seen seen = {NULL, NULL};
    for (char *next; text != NULL; text = next) {
        next = cut(text, '&');
        int err = parse_option(url, text, &seen, why);
        if (err) return err;
    }
    int err = parse_path(url, path, why);
    return err ? err : check_options(url, &seen, why);
}

/* --- the whole --- */

/* Parses what follows "://". */
static int parse_rest(struct bel_redis_url *url, char *text, bool is_path, struct bel_why *why)
{
    char *end = text + strcspn(text, "/?#");
    if (strchr(end, '@') != NULL || strchr(text, '#') != NULL) {
        return bel__why_say(why, BEL_EINVAL,
                            "@ after the hosts, or #: the characters @ : / ? # & %% in a password "
                            "or a value must be percent-encoded, e.g. %%2F for /");
    }
    char *options = cut(end, '?'), none[] = "", *path = none;
    int err = 0;
    if (is_path) {
        if (end != text || end[0] == 0 || end[1] == 0 || !decode(end)) {
            return bel__why_say(why, BEL_EINVAL, "expected unix:///path/to/socket");
        }
        url->path = end;
    } else {
        if (end[0] == '/') {
            end[0] = 0;
            path = end + 1;
        }
        char *at = strrchr(text, '@');
        if (at != NULL) {
            *at = 0;
            err = parse_credentials(url, text, why);
            text = at + 1;
        }
        if (err == 0) err = parse_hosts(url, text, why);
    }
    return err ? err : parse_options(url, path, options, why);
}

bool bel__redis_namespace_is_valid(const char *text)
{
    size_t bytes = strlen(text);
    return bytes > 0 && bytes <= NAMESPACE_BYTES_MAX && consists_of(text, LETTERS DIGITS "._-");
}

int bel__redis_url_parse(const char *text, size_t bytes, struct bel_redis_url *out,
                         struct bel_why *why)
{
    struct bel_redis_url url = {0};
    bool is_path = false;
    if (bytes > BEL_REDIS_URL_BYTES_MAX) {
        return bel__why_say(why, BEL_EINVAL, "the URL has more than %d bytes",
                            BEL_REDIS_URL_BYTES_MAX);
    }
    if (bytes > 0 && memchr(text, 0, bytes) != NULL) {
        return bel__why_say(why, BEL_EINVAL, "the URL contains a byte 0");
    }
    char *memory = malloc(bytes + 1);
    if (memory == NULL) return bel__why_say(why, BEL_ENOMEM, "out of memory");
    if (bytes > 0) memcpy(memory, text, bytes);
    memory[bytes] = 0;

    char *rest = strstr(memory, "://");
    int err;
    if (rest == NULL) {
        err = bel__why_say(why, BEL_EINVAL, "expected a URL such as redis://host:6379");
    } else {
        *rest = 0;
        for (char *at = memory; *at != 0; at++) {
            if (*at >= 'A' && *at <= 'Z') *at = (char)(*at | 0x20);
        }
        err = parse_scheme(&url, memory, &is_path, why);
        if (err == 0) err = parse_rest(&url, rest + 3, is_path, why);
    }
    if (err) {
        explicit_bzero(memory, bytes);
        free(memory);
        return err;
    }
    url.memory = memory;
    url.memory_bytes = bytes + 1;
    *out = url;
    return 0;
}

static void free_secret(char *text)
{
    if (text != NULL) explicit_bzero(text, strlen(text));
    free(text);
}

void bel__redis_url_finish(struct bel_redis_url *url)
{
    if (url->memory != NULL) explicit_bzero(url->memory, url->memory_bytes);
    free(url->memory);
    free_secret(url->password_memory);
    free_secret(url->sentinel_password_memory);
    *url = (struct bel_redis_url){0};
}

/* --- the password file --- */

/* Reads up to `room` bytes of a file. Returns their number, or -1 and sets errno. */
static ssize_t read_file(const char *path, char *out, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t count = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && count < room) {
        got = read(fd, out + count, room - count);
        if (got > 0) count += (size_t)got;
        if (got < 0 && errno == EINTR) got = 1;
    }
    int number = errno;
    if (fd >= 0) (void)close(fd);
    errno = number;
    return got < 0 ? -1 : (ssize_t)count;
}

/* Returns the first line of a file, without its end, as a new text; or NULL and sets the error. */
static char *read_line(const char *path, int *out_err, struct bel_why *why)
{
    char line[BEL_REDIS_PASSWORD_BYTES_MAX + 2], *copy = NULL;
    ssize_t count = read_file(path, line, sizeof line);
    if (count < 0) {
        *out_err = bel__why_system(why, BEL_EIO, path, "read");
        return NULL;
    }
    const char *end = memchr(line, '\n', (size_t)count);
    size_t bytes = end == NULL ? (size_t)count : (size_t)(end - line);
    if (bytes > 0 && line[bytes - 1] == '\r') bytes--;
    if (bytes == 0 || bytes > BEL_REDIS_PASSWORD_BYTES_MAX || memchr(line, 0, bytes) != NULL) {
        *out_err =
            bel__why_say(why, BEL_EINVAL, "%s: the first line must be a password of 1 to %d bytes",
                         path, BEL_REDIS_PASSWORD_BYTES_MAX);
    } else {
        copy = strndup(line, bytes);
        if (copy == NULL) *out_err = bel__why_say(why, BEL_ENOMEM, "out of memory");
    }
    explicit_bzero(line, sizeof line);
    return copy;
}

/* Reads a password from a file, if there is one. */
static int read_password(const char *path, char **memory, const char **out, struct bel_why *why)
{
    int err = 0;
    if (path == NULL) return 0;
    char *line = read_line(path, &err, why);
    if (line == NULL) return err;
    free_secret(*memory);
    *memory = line;
    *out = line;
    return 0;
}

int bel__redis_url_read_password(struct bel_redis_url *url, struct bel_why *why)
{
    int err = read_password(url->password_file, &url->password_memory, &url->password, why);
    return err ? err
               : read_password(url->sentinel_password_file, &url->sentinel_password_memory,
                               &url->sentinel_password, why);
}

/* --- printing --- */

static const char *scheme_of(const struct bel_redis_url *url)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (schemes[i].mode == url->mode && schemes[i].is_tls == url->is_tls &&
            schemes[i].is_path == (url->path != NULL)) {
            return schemes[i].name;
        }
    }
    assert(false); /* every URL has a scheme */
    return "";
}

__attribute__((format(printf, 4, 5))) static size_t add(char *out, size_t room, size_t used,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes =
        vsnprintf(used < room ? out + used : NULL, used < room ? room - used : 0, format, args);
    va_end(args);
    return used + (bytes > 0 ? (size_t)bytes : 0);
}

size_t bel__redis_url_print(const struct bel_redis_url *url, char *out, size_t room)
{
    size_t used = add(out, room, 0, "%s://%s", scheme_of(url), url->path != NULL ? url->path : "");
    for (size_t i = 0; i < url->hosts_count; i++) {
        const struct bel_redis_host *host = &url->hosts[i];
        used = add(out, room, used, strchr(host->name, ':') != NULL ? "%s[%s]:%u" : "%s%s:%u",
                   i > 0 ? "," : "", host->name, (unsigned)host->port);
    }
    if (url->db != 0) {
        used = add(out, room, used, url->path != NULL ? "?db=%u" : "/%u", (unsigned)url->db);
    }
    return used;
}
