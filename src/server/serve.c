/* SPDX-License-Identifier: MIT */

/*
 * belfry serve: reads the settings, runs a server, and prints its addresses to standard output:
 *
 *     resp 127.0.0.1:7878
 *     http 127.0.0.1:7879
 *     data /var/lib/belfry
 *
 * With --hash-key it prints a line for the key file instead.
 */
#include "server/serve.h"

#include "core/entropy.h"
#include "server/key_file.h"
#include "server/notify.h"
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SERVE_OK = 0,
    SERVE_FAILED = 1,
    SERVE_USAGE = 2,
};

static void print_line(const char *line)
{
    (void)fputs(line, stdout);
}

static void show_help(void)
{
    print_line("usage: belfry serve [FLAG VALUE ...]\n"
               "       belfry serve --hash-key [NAME [PERMISSIONS]] < KEY\n\n");
    bel__config_print_help(print_line);
    print_line("    --hash-key                         read a key, print its line for --keys\n"
               "\nADDR:PORT may be a port alone, of 127.0.0.1. Port 0 is any free port, which the\n"
               "server prints. Each flag can be a variable, --max-clients as BELFRY_MAX_CLIENTS,\n"
               "or a line of the --config file. Flags override variables, variables the file.\n"
               "With --store redis://HOST, --durability is async (default) or wait.\n");
}

/* Prints an error, with control characters replaced by '?'. Returns SERVE_USAGE. */
static int refuse(const char *text)
{
    (void)fputs("belfry serve: ", stderr);
    for (const char *byte = text; *byte != 0; byte++) {
        (void)fputc((unsigned char)*byte < ' ' || *byte == 0x7f ? '?' : *byte, stderr);
    }
    (void)fputc('\n', stderr);
    return SERVE_USAGE;
}

static int refuse_file(const char *flag, const char *path, const char *why)
{
    char text[1400];
    (void)snprintf(text, sizeof text, "%s %s: %s", flag, path, why);
    return refuse(text);
}

/* --- files --- */

/* Uses the credential `keys` of a systemd unit (LoadCredential=keys:PATH) as the key file, unless
 * another file is given. */
static void use_credential(struct bel_config *config)
{
    char path[BEL_CONFIG_PATH_BYTES];
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing calls setenv */
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    if (folder == NULL || config->keys[0] != 0) return;
    int bytes = snprintf(path, sizeof path, "%s/keys", folder);
    if (bytes < 0 || (size_t)bytes >= sizeof path || access(path, F_OK) != 0) return;
    memcpy(config->keys, path, (size_t)bytes + 1);
}

static int read_config(struct bel_config *config, char **flags)
{
    struct bel_why error = {0};
    struct bel_config first;
    bel__config_init(&first);
    bel__config_init(config);
    if (bel__config_read_environment(&first, &error) != 0 ||
        bel__config_read_flags(&first, flags, &error) != 0) {
        return refuse(error.text);
    }
    if (first.file[0] != 0) {
        size_t bytes;
        char *text = bel__file_read(first.file, BEL_CONFIG_FILE_BYTES_MAX, NULL, &bytes);
        if (text == NULL) return refuse_file("--config", first.file, strerrordesc_np(errno));
        int err = bel__config_read_file(config, first.file, (struct bel_view){text, bytes}, &error);
        free(text);
        if (err) return refuse(error.text);
    }
    if (bel__config_read_environment(config, &error) != 0 ||
        bel__config_read_flags(config, flags, &error) != 0) {
        return refuse(error.text);
    }
    use_credential(config);
    if (bel__config_check(config, &error) != 0) return refuse(error.text);
    return SERVE_OK;
}

static int read_keys(const struct bel_config *config, const struct bel_logger *log,
                     struct bel_keys **out)
{
    struct bel_why why = {0};
    if (config->keys[0] == 0) return SERVE_OK;
    int err = bel__key_file_read(config->keys, log, out, &why);
    return err ? refuse_file("--keys", config->keys, why.text) : SERVE_OK;
}

/* --- --hash-key --- */

/* Reads the first line of standard input. Returns its length. */
static size_t read_key(char out[BEL_KEY_BYTES_MAX + 2])
{
    if (fgets(out, BEL_KEY_BYTES_MAX + 2, stdin) == NULL) out[0] = 0;
    size_t bytes = strlen(out);
    while (bytes > 0 && (out[bytes - 1] == '\n' || out[bytes - 1] == '\r')) {
        bytes--;
    }
    return bytes;
}

static int make_key_line(char **arguments)
{
    const char *name = arguments[0] != NULL ? arguments[0] : "default";
    const char *permissions = arguments[0] != NULL && arguments[1] != NULL ? arguments[1] : "all";
    if (arguments[0] != NULL && arguments[1] != NULL && arguments[2] != NULL) {
        return refuse("--hash-key: expected a name and permissions without spaces, as in mailer "
                      "read,write,@mail*");
    }
    char key[BEL_KEY_BYTES_MAX + 2], line[BEL_KEY_LINE_BYTES];
    uint8_t salt[16];
    if (bel__entropy_fill(bel__entropy_system(), salt, sizeof salt) != 0) return SERVE_FAILED;
    struct bel_view view = {key, read_key(key)};
    int err = bel__keys_print(name, permissions, view, salt, line);
    explicit_bzero(key, sizeof key);
    if (err == BEL_ERANGE) {
        return refuse("--hash-key: expected a random key of 20 to 1024 bytes on standard input, "
                      "e.g. from head -c 24 /dev/urandom | base64");
    }
    if (err) {
        return refuse("--hash-key: expected a name and read,write,work,admin or all, and @topic or "
                      "@prefix* to limit the key to topics");
    }
    printf("%s\n", line);
    return SERVE_OK;
}

/* --- running --- */

static int write_ports(const struct bel_server_places *places, const char *path)
{
    char beside[BEL_CONFIG_PATH_BYTES + 8];
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    FILE *file = fopen(beside, "we");
    if (file == NULL) return BEL_EIO;
    fprintf(file, "resp %u\n", (unsigned)places->resp_port);
    if (places->http_port != 0) fprintf(file, "http %u\n", (unsigned)places->http_port);
    int failed = ferror(file);
    if (fclose(file) != 0 || failed) return BEL_EIO;
    return rename(beside, path) == 0 ? 0 : BEL_EIO;
}

static int say_where(const struct bel_server_places *places, const struct bel_config *config)
{
    int err = config->port_file[0] != 0 ? write_ports(places, config->port_file) : 0;
    if (err) {
        (void)refuse_file("--port-file", config->port_file, strerrordesc_np(errno));
        return err;
    }
    printf("resp %s\n", places->resp);
    if (places->http[0] != 0) printf("http %s\n", places->http);
    printf("%s %s\n", places->store_name, places->store[0] != 0 ? places->store : "in memory");
    if (fflush(stdout) != 0) return BEL_EIO;
    if (bel__notify("READY=1") != 0) {
        fprintf(stderr, "belfry: NOTIFY_SOCKET: %s\n", strerrordesc_np(errno));
    }
    return 0;
}

/* Names the variables that look like those of a setting, and are none. */
static void warn_of_variables(const struct bel_logger *log)
{
    const char *name, *meant;
    size_t at = 0, bytes;
    while ((bytes = bel__config_find_variable(environ, &at, &name, &meant)) > 0) {
        char text[80];
        (void)snprintf(text, sizeof text, "%.*s", (int)bytes, name);
        BEL_LOG(log, BEL_LOG_WARN, "unknown variable", BEL_LOG_TEXT("variable", text),
                BEL_LOG_TEXT("meant", meant != NULL ? meant : ""));
    }
}

int bel__serve(int argc, char **argv, const struct bel_server_stores *stores)
{
    struct bel_config config;
    struct bel_keys *keys = NULL;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        show_help();
        return SERVE_OK;
    }
    if (argc > 1 && strcmp(argv[1], "--hash-key") == 0) return make_key_line(argv + 2);
    int status = read_config(&config, argv + 1);
    if (status != SERVE_OK) return status;
    const struct bel_server_store_kind *kind = stores->kinds[config.store];
    struct bel_why error = {0};
    if (kind->check != NULL && kind->check(&config, &error) != 0) return refuse(error.text);
    struct bel_logger log = {.clock = bel_clock_system(),
                             .level = config.log_level,
                             .format = config.log_format,
                             .fd = STDERR_FILENO};
    warn_of_variables(&log);
    (void)signal(SIGHUP, SIG_IGN); /* until the loop reads the keys again for it */
    status = read_keys(&config, &log, &keys);
    if (status != SERVE_OK) return status;
    struct bel_server_options options = {.config = &config,
                                         .kind = kind,
                                         .keys = keys,
                                         .log = &log,
                                         .program = "/proc/self/exe",
                                         .started = say_where};
    int err = bel__server_run(&options);
    bel__keys_destroy(keys);
    return err ? SERVE_FAILED : SERVE_OK;
}
