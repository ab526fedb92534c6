/* SPDX-License-Identifier: MIT */

/* A key is read from a file: every user of the machine can see the command line of a process. */
#include "cli/connect.h"

#include "cli/duration.h"
#include "cli/print.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SERVER_DEFAULT "127.0.0.1:7878"

enum {
    RETRY_MS = 20,
    STORE_WAIT_MS = 1000, /* for a store that cannot be reached */
    URL_SCHEME_SHOWN = 24,
};

#define HELP_SERVER                                                                                \
    "    --server ADDR       host:port (default $BELFRY_SERVER, then\n"                            \
    "                        " SERVER_DEFAULT "); --key-file or $BELFRY_KEY_FILE has the key\n"
#define HELP_REPLY                                                                                 \
    "    --timeout DURATION  how long to wait for a reply (default 30s)\n"                         \
    "    --json              print JSON\n"

const char bel__connect_help_server[] = HELP_SERVER HELP_REPLY;
const char bel__connect_help[] =
    HELP_SERVER "    --store URL         work on redis://host:port without a server (default\n"
                "                        $BELFRY_STORE, if that is a URL); also\n"
                "    --store-namespace NAME, --store-password-file FILE\n" HELP_REPLY;

/* Finds where the value of an option goes that is a text. Returns whether it is such an option. */
static bool find_text(struct cli_connect *connect, const char *name, const char ***out)
{
    const struct {
        const char *name, **text;
    } options[] = {
        {"server", &connect->server},
        {"key-file", &connect->key_file},
        {"store", &connect->store.url},
        {"store-namespace", &connect->store.name_space},
        {"store-password-file", &connect->store.password_file},
    };
    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(options[i].name, name) != 0) continue;
        *out = options[i].text;
        return true;
    }
    return false;
}

int bel__connect_option(struct cli_connect *connect, const char *name, const char *value,
                        bool *out_has, bool *out_used)
{
    struct bel_text_error why;
    uint64_t ms;
    bool is_timeout = strcmp(name, "timeout") == 0;
    const char **text = NULL;
    bool is_text = find_text(connect, name, &text);
    *out_used = is_timeout || is_text;
    *out_has = *out_used || strcmp(name, "json") == 0;
    if (!*out_has) return CLI_OK;
    if (!*out_used) {
        connect->is_json = true;
        return CLI_OK;
    }
    if (value == NULL) {
        fprintf(stderr, "belfry: option needs a value: --%s\n", name);
        return CLI_USAGE;
    }
    if (is_text) {
        *text = value;
        return CLI_OK;
    }
    int err = bel__cli_duration(value, &ms, &why);
    if (err) return bel__cli_refuse_value("--timeout", "a duration", value, &why);
    connect->timeout_ms = ms < UINT32_MAX / 2 ? (uint32_t)ms : UINT32_MAX / 2;
    if (connect->timeout_ms == 0) connect->timeout_ms = 1;
    return CLI_OK;
}

void bel__connect_offer(struct bel_similar *similar)
{
    static const char *const names[] = {
        "server", "store", "store-namespace", "store-password-file", "key-file", "timeout", "json"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        bel__similar_offer(similar, names[i], names[i]);
    }
}

static const char *environment(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing calls setenv */
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Returns the store of a verb: --store, or $BELFRY_STORE unless --server is given. */
static struct cli_store store_of(const struct cli_connect *connect)
{
    struct cli_store store = connect->store;
    if (connect->server == NULL) bel__cli_store_default(&store);
    return store;
}

bool bel__connect_is_store(const struct cli_connect *connect)
{
    return store_of(connect).url != NULL;
}

const char *bel__connect_address(const struct cli_connect *connect)
{
    struct cli_store store = store_of(connect);
    if (store.url != NULL) return bel__cli_store_shown(&store);
    if (connect->server != NULL) return connect->server;
    const char *named = environment("BELFRY_SERVER");
    return named != NULL ? named : SERVER_DEFAULT;
}

const char *bel__connect_target(const struct cli_connect *connect)
{
    int status = CLI_OK;
    struct cli_store store = store_of(connect);
    if (store.url == NULL) return bel__connect_address(connect);
    return bel__cli_store_address(&store, 0, &status);
}

/* Refuses a URL as the address of a server. It is not printed: it may have a password. */
static int check_server(const char *server)
{
    const char *rest = strstr(server, "://");
    if (rest == NULL) return CLI_OK;
    bool is_http = strncasecmp(server, "http", 4) == 0;
    fprintf(stderr, "belfry: --server takes host:port, not %.*s: %s\n",
            rest - server < URL_SCHEME_SHOWN ? (int)(rest - server) + 3 : URL_SCHEME_SHOWN, server,
            is_http ? "give the port of --resp, by default 7878" : "for a store, use --store URL");
    return CLI_USAGE;
}

/* Opens the store, if there is one. Returns CLI_OK, or an exit status after printing an error. */
static int open_store(const struct cli_connect *connect)
{
    int status = CLI_OK;
    uint32_t wait_ms = connect->patience_ms > STORE_WAIT_MS ? connect->patience_ms : STORE_WAIT_MS;
    struct cli_store store = store_of(connect);
    if (store.url == NULL) {
        bool is_alone = connect->store.name_space != NULL || connect->store.password_file != NULL;
        if (!is_alone) return check_server(bel__connect_address(connect));
        fputs("belfry: --store-namespace and --store-password-file need --store URL\n", stderr);
        return CLI_USAGE;
    }
    if (connect->server != NULL) {
        fputs("belfry: --store and --server exclude each other\n", stderr);
        return CLI_USAGE;
    }
    if (connect->store.url == NULL && environment("BELFRY_SERVER") != NULL) {
        fputs("belfry: BELFRY_SERVER and BELFRY_STORE are both set: give --server or --store, or "
              "unset one\n",
              stderr);
        return CLI_USAGE;
    }
    (void)bel__cli_store_address(&store, wait_ms, &status);
    return status;
}

int bel__connect_key(const struct cli_connect *connect, char key[CLI_KEY_BYTES_MAX],
                     size_t *out_bytes)
{
    const char *path =
        connect->key_file != NULL ? connect->key_file : environment("BELFRY_KEY_FILE");
    *out_bytes = 0;
    if (path == NULL || bel__connect_is_store(connect)) return CLI_OK; /* a store has no keys */
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "belfry: cannot read the key in %s: %s\n", path, bel__cli_problem(errno));
        return CLI_FAILED;
    }
    (void)setvbuf(file, NULL, _IONBF, 0); /* no copy of the key stays in a stdio buffer */
    size_t bytes = fread(key, 1, CLI_KEY_BYTES_MAX, file);
    bool is_bad = ferror(file) != 0 || bytes == CLI_KEY_BYTES_MAX;
    (void)fclose(file);
    while (bytes > 0 && (key[bytes - 1] == '\n' || key[bytes - 1] == '\r')) {
        bytes--;
    }
    if (is_bad || bytes == 0) {
        fprintf(stderr, "belfry: no key in %s: expected one line\n", path);
        return CLI_FAILED;
    }
    *out_bytes = bytes;
    return CLI_OK;
}

int bel__connect_exit(struct bel_view code)
{
    static const struct {
        const char *code;
        int status;
    } exits[] = {
        {"NOTFOUND", CLI_NOT_FOUND}, {"CONFLICT", CLI_CONFLICT},
        {"STALE", CLI_CONFLICT},     {"LIMITED", CLI_LIMIT},
        {"FULL", CLI_LIMIT},         {"NOAUTH", CLI_NOT_ALLOWED},
        {"NOPERM", CLI_NOT_ALLOWED}, {"WRONGPASS", CLI_NOT_ALLOWED},
        {"BADARG", CLI_USAGE},       {"ERR", CLI_USAGE},
        {"UNSUPPORTED", CLI_USAGE},
    };
    for (unsigned i = 0; i < sizeof exits / sizeof exits[0]; i++) {
        size_t bytes = strlen(exits[i].code);
        if (code.bytes == bytes && memcmp(code.data, exits[i].code, bytes) == 0) {
            return exits[i].status;
        }
    }
    return CLI_FAILED;
}

/* After NOAUTH, says how to give a key. */
static void hint_at_key(const char *code, size_t bytes)
{
    if (bytes != strlen("NOAUTH") || memcmp(code, "NOAUTH", bytes) != 0) return;
    fputs("        give a key with --key-file FILE, or BELFRY_KEY_FILE=FILE in the environment\n",
          stderr);
}

/* After a refusal in the words of Redis, says how its timers are reached. */
static void hint_at_redis(struct bel_view text)
{
    static const char unknown[] = "ERR unknown command ", end[] = "with args beginning with";
    if (text.bytes < sizeof unknown || memcmp(text.data, unknown, sizeof unknown - 1) != 0) return;
    if (memmem(text.data, text.bytes, end, sizeof end - 1) == NULL) return;
    fputs("        this is a Redis server, not a Belfry server: for a store on it, use --store "
          "redis://host:port\n",
          stderr);
}

/* Connects, and tries again while no server listens and the patience lasts. */
static int dial(const struct cli_connect *connect, const struct bel_client_options *options,
                struct bel_client **out, struct bel_client_why *why)
{
    static const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
    const char *address = bel__connect_target(connect);
    int err = bel_client_connect(address, options, out, why);
    for (uint32_t waited = 0; err == BEL_EIO && waited < connect->patience_ms; waited += RETRY_MS) {
        (void)nanosleep(&pause, NULL);
        err = bel_client_connect(address, options, out, why);
    }
    return err;
}

int bel__connect_open(const struct cli_connect *connect, struct bel_client **out)
{
    struct bel_client_options options = {.timeout_ms = connect->timeout_ms, .protocol = 3};
    struct bel_client_why why;
    char key[CLI_KEY_BYTES_MAX];
    size_t key_bytes = 0;
    int status = open_store(connect);
    if (status == CLI_OK) status = bel__connect_key(connect, key, &key_bytes);
    if (status != CLI_OK) return status;
    options.key = (struct bel_view){key, key_bytes};
    int err = dial(connect, &options, out, &why);
    explicit_bzero(key, sizeof key);
    if (err == 0) return CLI_OK;
    bool is_absent = err == BEL_EIO && why.code[0] == '\0';
    fprintf(stderr, "belfry: %s%s%s%s\n", why.code, why.code[0] != '\0' ? " " : "", why.text,
            is_absent ? "; start a server with belfry serve" : "");
    if (why.code[0] != '\0') {
        hint_at_key(why.code, strlen(why.code));
        return bel__connect_exit((struct bel_view){why.code, strlen(why.code)});
    }
    if (err == BEL_EINVAL && strncmp(why.text, "not an", 6) == 0) return CLI_USAGE;
    if (err == BEL_EINVAL || err == BEL_ENOMEM) return CLI_FAILED;
    return err == BEL_EBUSY ? CLI_TIMED_OUT : CLI_UNREACHABLE;
}

int bel__connect_failed(const struct cli_connect *connect, int err)
{
    const char *address = bel__connect_address(connect);
    if (err == BEL_EBUSY) {
        fprintf(stderr, "belfry: timeout waiting for a reply of %s\n", address);
        return CLI_TIMED_OUT;
    }
    if (err == BEL_EINVAL) {
        fprintf(stderr, "belfry: the reply of %s is not valid RESP\n", address);
        return CLI_FAILED;
    }
    fprintf(stderr, "belfry: lost the connection to %s: %s\n", address, bel_error_text(err));
    return err == BEL_EIO || err == BEL_ECLOSED ? CLI_UNREACHABLE : CLI_FAILED;
}

int bel__connect_refused_in(const char *file, const struct bel_value *error)
{
    const unsigned char *text = error->text.data;
    fprintf(stderr, "belfry: %s%s", file, file[0] != '\0' ? ": " : "");
    for (size_t i = 0; i < error->text.bytes; i++) {
        (void)fputc(text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i], stderr);
    }
    (void)fputc('\n', stderr);
    struct bel_view code = bel_value_code(error);
    hint_at_key(code.data, code.bytes);
    hint_at_redis(error->text);
    return bel__connect_exit(code);
}

int bel__connect_refused(const struct bel_value *error)
{
    return bel__connect_refused_in("", error);
}
