/* SPDX-License-Identifier: MIT */

/*
 * A setting is a row of a table: its name, the form of its value, a help line, and a function that
 * parses a value and returns NULL, or what it expected. Files and flags use the same table.
 */
#include "server/config.h"

#include "belfry/duration.h"
#include "belfry/job.h"
#include "belfry/timer.h"
#include "core/parse.h"
#include "core/similar.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES_MAX = BEL_CONFIG_PATH_BYTES + 128,
    CLIENTS_DEFAULT = 10000,
    CLIENTS_MAX = 1000000,
    OUTPUT_BYTES_DEFAULT = 8 << 20,
    OUTPUT_BYTES_MIN = 64 << 10,
    JOB_BYTES_DEFAULT = 16 << 20,
    JOB_BYTES_MAX = 256 << 20,
    JOB_TASKS_DEFAULT = 10 * 1000,
    JOB_TASKS_MAX = 100 * 1000,
    JOB_EDGES_DEFAULT = 100 * 1000,
    JOB_EDGES_MAX = 1000 * 1000,
    OUTPUT_TOTAL_BYTES_DEFAULT = 256 << 20,
    OUTPUT_TOTAL_BYTES_MIN = 1 << 20,
    INPUT_TOTAL_BYTES_DEFAULT = 256 << 20,
    INPUT_TOTAL_BYTES_MIN = 1 << 20,
    AUTH_MS_DEFAULT = 10 * 1000,
    AUTH_MS_MAX = 3600 * 1000,
    INTERVAL_MS_DEFAULT = 1000,
    INTERVAL_MS_MAX = 3600 * 1000,
    VARIABLE_BYTES = 64,
    CHECK_MS_DEFAULT = 100,
    CHECK_MS_MAX = 3600 * 1000,
    STORE_WAIT_MS_DEFAULT = 30 * 1000,
    STORE_WAIT_MS_MAX = 3600 * 1000,
    REPLICAS_MAX = 100,
    HELP_COLUMN = 34,
    HELP_BYTES = 160, /* of a line */
};

#define MEMORY_BYTES_MIN (UINT64_C(1) << 20)

#define JOB_RETENTION_MS_DEFAULT (UINT64_C(24) * 3600 * 1000)
#define JOB_RETENTION_MS_MIN     UINT64_C(1000)
#define JOB_RETENTION_MS_MAX     (UINT64_C(3660) * 24 * 3600 * 1000)

#define SCRUB_MS_DEFAULT (UINT64_C(24) * 3600 * 1000)
#define SCRUB_MS_MIN     UINT64_C(1000)
#define SCRUB_MS_MAX     (UINT64_C(366) * 24 * 3600 * 1000)

void bel__config_init(struct bel_config *config)
{
    *config = (struct bel_config){
        .data = "./belfry-data",
        .has_http = true,
        .log_level = BEL_LOG_INFO,
        .clients_max = CLIENTS_DEFAULT,
        .payload_bytes_max = BEL_PAYLOAD_BYTES_DEFAULT,
        .job_bytes_max = JOB_BYTES_DEFAULT,
        .job_tasks_max = JOB_TASKS_DEFAULT,
        .job_edges_max = JOB_EDGES_DEFAULT,
        .job_depth_max = BEL_JOB_THEN_DEPTH_DEFAULT,
        .job_retention_ms = JOB_RETENTION_MS_DEFAULT,
        .output_bytes_max = OUTPUT_BYTES_DEFAULT,
        .output_total_bytes_max = OUTPUT_TOTAL_BYTES_DEFAULT,
        .input_total_bytes_max = INPUT_TOTAL_BYTES_DEFAULT,
        .auth_ms_max = AUTH_MS_DEFAULT,
        .durability_interval_ms = INTERVAL_MS_DEFAULT,
        .check_ms = CHECK_MS_DEFAULT,
        .scrub_ms = SCRUB_MS_DEFAULT,
        .store_wait_ms = STORE_WAIT_MS_DEFAULT,
    };
    int err = bel__address_parse("127.0.0.1:7878", &config->resp);
    if (err == 0) err = bel__address_parse("127.0.0.1:7879", &config->http);
    assert(err == 0);
    (void)err;
}

/* --- values; each function returns NULL, or what it expected --- */

static const char *read_path(const char *value, char out[BEL_CONFIG_PATH_BYTES])
{
    size_t bytes = strlen(value);
    if (bytes == 0 || bytes >= BEL_CONFIG_PATH_BYTES) return "a path";
    memcpy(out, value, bytes + 1);
    return NULL;
}

/* Returns the index of a word in a list that ends with NULL; -1 if it is not in the list. */
static int find_word(const char *word, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) return i;
    }
    return -1;
}

/* Parses a number of bytes: 65536, 64K, 1M or 1G. */
static bool read_bytes(const char *value, uint64_t min, uint64_t max, uint64_t *out)
{
    size_t digits = strspn(value, "0123456789");
    const char *unit = value + digits;
    unsigned shift = strcmp(unit, "K") == 0   ? 10
                     : strcmp(unit, "M") == 0 ? 20
                     : strcmp(unit, "G") == 0 ? 30
                                              : 0;
    uint64_t number;
    if (*unit != 0 && shift == 0) return false;
    if (bel__parse_u64(value, digits, 0, UINT64_MAX >> shift, &number) != 0) return false;
    number <<= shift;
    if (number < min || number > max) return false;
    *out = number;
    return true;
}

static const char *set_data(struct bel_config *config, const char *value)
{
    return read_path(value, config->data);
}

static const char *set_keys(struct bel_config *config, const char *value)
{
    return read_path(value, config->keys);
}

static const char *set_file(struct bel_config *config, const char *value)
{
    return read_path(value, config->file);
}

static const char *set_port_file(struct bel_config *config, const char *value)
{
    return read_path(value, config->port_file);
}

static const char *set_resp(struct bel_config *config, const char *value)
{
    if (bel__address_parse(value, &config->resp) == 0) return NULL;
    return "an address and a port, e.g. 127.0.0.1:7878 or [::1]:7878";
}

static const char *set_port(struct bel_config *config, const char *value)
{
    uint32_t port;
    int err = bel__parse_u32(value, strlen(value), 0, UINT16_MAX, &port);
    if (err) return "a port from 0 to 65535";
    bel__address_set_port(&config->resp, (uint16_t)port);
    return NULL;
}

static const char *set_http(struct bel_config *config, const char *value)
{
    config->has_http = strcmp(value, "none") != 0;
    config->was_http_asked = config->has_http;
    if (!config->has_http || bel__address_parse(value, &config->http) == 0) return NULL;
    return "an address and a port, e.g. 127.0.0.1:7879, or none";
}

static const char *set_store(struct bel_config *config, const char *value)
{
    static const char *const words[] = {"embedded", "memory", NULL};
    int found = find_word(value, words);
    bool is_url = strstr(value, "://") != NULL;
    size_t bytes = strlen(value);
    if (!is_url && found < 0) return "embedded, memory, or a URL such as redis://HOST:6379";
    if (bytes >= sizeof config->store_url) return "a shorter URL";
    config->store = is_url ? BEL_CONFIG_REDIS : (enum bel_config_store)found;
    memcpy(config->store_url, value, is_url ? bytes + 1 : 1);
    if (!is_url) config->store_url[0] = 0;
    return NULL;
}

static const char *set_password_file(struct bel_config *config, const char *value)
{
    return read_path(value, config->store_password_file);
}

static const char *set_namespace(struct bel_config *config, const char *value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    size_t bytes = strlen(value);
    if (bytes == 0 || bytes > BEL_CONFIG_NAMESPACE_BYTES || strspn(value, letters) < bytes) {
        return "1 to 64 letters, digits and . _ -";
    }
    memcpy(config->store_namespace, value, bytes + 1);
    return NULL;
}

static const char *set_replicas(struct bel_config *config, const char *value)
{
    int err = bel__parse_u32(value, strlen(value), 1, REPLICAS_MAX, &config->replicas);
    return err == 0 ? NULL : "a number from 1 to 100";
}

static const char *set_durability(struct bel_config *config, const char *value)
{
    static const char *const words[] = {"commit", "interval", "none", "async", "wait", NULL};
    int found = find_word(value, words);
    if (found < 0) return "commit, interval or none; with Redis, async or wait";
    config->durability = (enum bel_config_durability)found;
    return NULL;
}

/* Parses a duration from `min` to `max` ms. A number other than 0 needs a unit: people who leave it
 * out mean seconds. */
static bool read_span(const char *value, uint64_t min, uint64_t max, uint64_t *out)
{
    bool has_unit = strspn(value, "0123456789") < strlen(value) || strcmp(value, "0") == 0;
    int err = bel_duration_parse(value, strlen(value), out, NULL);
    return err == 0 && has_unit && *out >= min && *out <= max;
}

static const char *set_store_wait(struct bel_config *config, const char *value)
{
    uint64_t ms;
    if (!read_span(value, 0, STORE_WAIT_MS_MAX, &ms)) return "a duration up to 1h, e.g. 30s";
    config->store_wait_ms = (uint32_t)ms;
    return NULL;
}

static const char *set_interval(struct bel_config *config, const char *value)
{
    uint64_t ms;
    if (!read_span(value, 1, INTERVAL_MS_MAX, &ms)) return "a duration from 1ms to 1h";
    config->durability_interval_ms = (uint32_t)ms;
    return NULL;
}

static const char *set_sync(struct bel_config *config, const char *value)
{
    static const char *const words[] = {"auto", "loop", "thread", NULL};
    int found = find_word(value, words);
    if (found < 0) return "auto, loop or thread";
    config->sync = (enum bel_config_sync)found;
    return NULL;
}

static const char *set_clock(struct bel_config *config, const char *value)
{
    static const char *const words[] = {"system", "virtual", NULL};
    int found = find_word(value, words);
    if (found < 0) return "system or virtual";
    config->is_virtual = found == 1;
    return NULL;
}

static const char *set_log(struct bel_config *config, const char *value)
{
    return bel__logger_format_find(value, &config->log_format) ? NULL : "text or json";
}

static const char *set_log_level(struct bel_config *config, const char *value)
{
    return bel__logger_level_find(value, &config->log_level) ? NULL : "error, warn, info or debug";
}

static const char *set_clients(struct bel_config *config, const char *value)
{
    int err = bel__parse_u32(value, strlen(value), 1, CLIENTS_MAX, &config->clients_max);
    return err == 0 ? NULL : "a number from 1 to 1000000";
}

static const char *set_payload(struct bel_config *config, const char *value)
{
    uint64_t bytes;
    if (!read_bytes(value, 1, BEL_PAYLOAD_BYTES_MAX, &bytes)) return "bytes, from 1 to 64M";
    config->payload_bytes_max = (uint32_t)bytes;
    return NULL;
}

static const char *set_job(struct bel_config *config, const char *value)
{
    uint64_t bytes;
    if (!read_bytes(value, 1, JOB_BYTES_MAX, &bytes)) return "bytes, from 1 to 256M";
    config->job_bytes_max = (size_t)bytes;
    return NULL;
}

static const char *set_job_tasks(struct bel_config *config, const char *value)
{
    int err = bel__parse_u32(value, strlen(value), 1, JOB_TASKS_MAX, &config->job_tasks_max);
    return err == 0 ? NULL : "a number from 1 to 100000";
}

static const char *set_job_edges(struct bel_config *config, const char *value)
{
    int err = bel__parse_u32(value, strlen(value), 1, JOB_EDGES_MAX, &config->job_edges_max);
    return err == 0 ? NULL : "a number from 1 to 1000000";
}

static const char *set_job_depth(struct bel_config *config, const char *value)
{
    static_assert(BEL_JOB_THEN_DEPTH_MAX == 20, "as the message says");
    uint32_t *out = &config->job_depth_max;
    int err = bel__parse_u32(value, strlen(value), 1, BEL_JOB_THEN_DEPTH_MAX, out);
    return err == 0 ? NULL : "a number from 1 to 20";
}

static const char *set_job_retention(struct bel_config *config, const char *value)
{
    uint64_t ms;
    if (!read_span(value, JOB_RETENTION_MS_MIN, JOB_RETENTION_MS_MAX, &ms)) {
        return "a duration from 1s to 3660d, e.g. 7d";
    }
    config->job_retention_ms = ms;
    return NULL;
}

static const char *set_output(struct bel_config *config, const char *value)
{
    if (read_bytes(value, OUTPUT_BYTES_MIN, SIZE_MAX / 4, &config->output_bytes_max)) return NULL;
    return "bytes, 64K or more";
}

static const char *set_output_total(struct bel_config *config, const char *value)
{
    uint64_t *out = &config->output_total_bytes_max;
    return read_bytes(value, OUTPUT_TOTAL_BYTES_MIN, SIZE_MAX / 4, out) ? NULL
                                                                        : "bytes, 1M or more";
}

static const char *set_input_total(struct bel_config *config, const char *value)
{
    uint64_t *out = &config->input_total_bytes_max;
    return read_bytes(value, INPUT_TOTAL_BYTES_MIN, SIZE_MAX / 4, out) ? NULL : "bytes, 1M or more";
}

static const char *set_auth_timeout(struct bel_config *config, const char *value)
{
    uint64_t ms;
    if (!read_span(value, 1, AUTH_MS_MAX, &ms)) return "a duration from 1ms to 1h, e.g. 10s";
    config->auth_ms_max = (uint32_t)ms;
    return NULL;
}

static const char *set_check_time(struct bel_config *config, const char *value)
{
    uint64_t ms;
    if (!read_span(value, 0, CHECK_MS_MAX, &ms)) return "a duration up to 1h, e.g. 100ms";
    config->check_ms = (uint32_t)ms;
    return NULL;
}

/* The former name of check-time, in rows: 0 stays "not before the start". */
static const char *set_check_rows(struct bel_config *config, const char *value)
{
    uint32_t rows;
    if (bel__parse_u32(value, strlen(value), 0, UINT32_MAX, &rows) != 0) return "a number of rows";
    config->check_ms = rows == 0 ? 0 : CHECK_MS_DEFAULT;
    return NULL;
}

static const char *set_memory(struct bel_config *config, const char *value)
{
    if (strcmp(value, "auto") == 0) {
        config->memory_bytes_max = 0;
        return NULL;
    }
    bool is_valid = read_bytes(value, MEMORY_BYTES_MIN, UINT64_MAX / 2, &config->memory_bytes_max);
    return is_valid ? NULL : "1M or more, e.g. 2G, or auto";
}

static const char *set_scrub(struct bel_config *config, const char *value)
{
    uint64_t ms = 0;
    int err = 0;
    if (strcmp(value, "off") != 0) err = bel_duration_parse(value, strlen(value), &ms, NULL);
    if (err || ms > SCRUB_MS_MAX || (ms < SCRUB_MS_MIN && strcmp(value, "off") != 0)) {
        return "a duration from 1s to 366d, or off";
    }
    config->scrub_ms = ms;
    return NULL;
}

/* The stores for which a setting has an effect. */
enum {
    IN_PROCESS = 1U << BEL_CONFIG_EMBEDDED | 1U << BEL_CONFIG_MEMORY,
    ON_REDIS = 1U << BEL_CONFIG_REDIS,
    ANY = IN_PROCESS | ON_REDIS,
};

static const struct setting {
    const char *name, *value, *help; /* help is NULL for a former name */
    const char *(*set)(struct bel_config *config, const char *value);
    unsigned stores;
} settings[] = {
    {"data", "DIR", "data directory (default ./belfry-data)", set_data, IN_PROCESS},
    {"resp", "ADDR:PORT", "Redis clients (default 127.0.0.1:7878)", set_resp, ANY},
    {"port", "PORT", "port of --resp alone", set_port, ANY},
    {"http", "ADDR:PORT", "HTTP, or none (default 127.0.0.1:7879)", set_http, ANY},
    {"store", "embedded|memory|URL", "on disk (default), in memory, or redis://", set_store, ANY},
    {"store-namespace", "NAME", "prefix of the keys in Redis (belfry)", set_namespace, ON_REDIS},
    {"store-password-file", "FILE", "has the password of the URL", set_password_file, ON_REDIS},
    {"store-wait", "DURATION", "how long a start waits for Redis (30s)", set_store_wait, ON_REDIS},
    {"replicas", "N", "of Redis that durability wait needs", set_replicas, ON_REDIS},
    {"durability", "commit|interval|none", "commit (default): sync before the reply",
     set_durability, ANY},
    {"durability-interval", "DURATION", "longest time until a sync (default 1s)", set_interval,
     IN_PROCESS},
    {"sync", "auto|loop|thread", "where syncs wait (default: by disk speed)", set_sync, IN_PROCESS},
    {"clock", "system|virtual", "virtual: moved only by CLOCK ADVANCE", set_clock, ANY},
    {"keys", "FILE", "API keys, required beyond localhost", set_keys, ANY},
    {"auth-timeout", "DURATION", "time to send a right key (default 10s)", set_auth_timeout, ANY},
    {"max-clients", "N", "clients of each port (default 10000)", set_clients, ANY},
    {"max-payload", "BYTES", "largest payload, up to 64M (default 1M)", set_payload, ANY},
    {"max-job", "BYTES", "largest job, up to 256M (default 16M)", set_job, IN_PROCESS},
    {"job-tasks", "N", "tasks of a job (default 10000)", set_job_tasks, IN_PROCESS},
    {"job-edges", "N", "dependencies of a job (default 100000)", set_job_edges, IN_PROCESS},
    {"job-depth", "N", "depth of `then`, up to 20 (default 5)", set_job_depth, IN_PROCESS},
    {"job-retention", "DURATION", "how long an ended job is known (24h)", set_job_retention,
     IN_PROCESS},
    {"output-limit", "BYTES", "unread output of a client (default 8M)", set_output, ANY},
    {"output-total", "BYTES", "unread output of all (default 256M)", set_output_total, ANY},
    {"input-total", "BYTES", "incomplete requests of all (default 256M)", set_input_total, ANY},
    {"check-time", "DURATION", "longest check before the start (100ms)", set_check_time,
     IN_PROCESS},
    {"check-rows", "N", NULL, set_check_rows, IN_PROCESS},
    {"memory", "BYTES|auto", "memory limit (default half of the RAM)", set_memory, IN_PROCESS},
    {"scrub", "DURATION|off", "interval of tree checks (default 1d)", set_scrub, IN_PROCESS},
    {"log", "text|json", "format, to standard error (default text)", set_log, ANY},
    {"log-level", "error|warn|info|debug", "least severe level to log (default info)",
     set_log_level, ANY},
    {"port-file", "FILE", "write ports here after start: resp PORT", set_port_file, ANY},
    {"config", "FILE", "file of name = value lines; flags win", set_file, ANY},
};

enum {
    SETTINGS = sizeof settings / sizeof settings[0]
};

static_assert(SETTINGS <= 64, "a bit of `given` for each setting");

/* Sets a value, and notes that it was given. Returns NULL, or what was expected. */
static const char *apply(struct bel_config *config, const struct setting *setting,
                         const char *value)
{
    config->given |= UINT64_C(1) << (setting - settings);
    return setting->set(config, value);
}

static bool is_given(const struct bel_config *config, unsigned i)
{
    return (config->given >> i & 1) != 0;
}

/* Finds a setting by its name, in which hyphens may be underscores. */
static const struct setting *find_setting(const char *name, size_t bytes)
{
    for (unsigned i = 0; i < SETTINGS; i++) {
        const char *known = settings[i].name;
        size_t at = 0;
        while (at < bytes && known[at] != '\0' &&
               (name[at] == known[at] || (name[at] == '_' && known[at] == '-'))) {
            at++;
        }
        if (at == bytes && known[at] == '\0') return &settings[i];
    }
    return NULL;
}

/* Says that a name is unknown, and which name may be meant. */
static int refuse_name(struct bel_why *error, const char *where, const char *kind, const char *name)
{
    static const struct {
        const char *word, *name;
    } synonyms[] = {{"host", "resp"},     {"bind", "resp"}, {"listen", "resp"},
                    {"address", "resp"},  {"dir", "data"},  {"path", "data"},
                    {"data-dir", "data"}, {"db", "data"},   {"http-port", "http"},
                    {"redis", "store"}};
    struct bel_similar similar;
    const char *word = name + strspn(name, "-");
    bel__similar_begin(&similar, word);
    for (unsigned i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        bool is_it = strcmp(word, synonyms[i].word) == 0;
        if (is_it) bel__similar_offer(&similar, synonyms[i].word, synonyms[i].name);
    }
    for (unsigned i = 0; i < SETTINGS; i++) {
        bel__similar_offer(&similar, settings[i].name, settings[i].name);
    }
    if (similar.name == NULL) {
        return bel__why_say(error, BEL_EINVAL, "%.120sunknown %s %.80s; see belfry serve --help",
                            where, kind, name);
    }
    return bel__why_say(error, BEL_EINVAL, "%.120sunknown %s %.80s; did you mean %.*s%s?", where,
                        kind, name, (int)(word - name), name, similar.name);
}

/* --- files --- */

static int refuse(struct bel_why *error, const char *where, const char *what, const char *expected)
{
    return bel__why_say(error, BEL_EINVAL, "%.120s%.80s: expected %s", where, what, expected);
}

static struct bel_view trim(struct bel_view text)
{
    const char *bytes = text.data;
    size_t start = 0, end = text.bytes;
    while (start < end && strchr(" \t\r", bytes[start]) != NULL && bytes[start] != 0) {
        start++;
    }
    while (end > start && strchr(" \t\r", bytes[end - 1]) != NULL && bytes[end - 1] != 0) {
        end--;
    }
    return (struct bel_view){bytes + start, end - start};
}

/* Cuts off a comment: from a # or ; at the start of the line or after a space. */
static struct bel_view without_comment(struct bel_view text)
{
    const char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        if (bytes[i] != '#' && bytes[i] != ';') continue;
        if (i == 0 || bytes[i - 1] == ' ' || bytes[i - 1] == '\t') {
            text.bytes = i;
            break;
        }
    }
    return trim(text);
}

static int read_line(struct bel_config *config, struct bel_view line, const char *where,
                     struct bel_why *error)
{
    char value[LINE_BYTES_MAX], name[64];
    line = without_comment(line);
    const char *text = line.data;
    if (line.bytes == 0) return 0;
    if (line.bytes >= sizeof value) return refuse(error, where, "long line", "a shorter line");
    if (text[0] == '[') {
        if (line.bytes == 7 && memcmp(text, "[serve]", 7) == 0) return 0;
        return refuse(error, where, "section", "no other than [serve]");
    }
    const char *equals = memchr(text, '=', line.bytes);
    if (equals == NULL) return refuse(error, where, "line", "name = value");
    struct bel_view before = trim((struct bel_view){text, (size_t)(equals - text)});
    struct bel_view after =
        trim((struct bel_view){equals + 1, line.bytes - (size_t)(equals + 1 - text)});
    (void)snprintf(name, sizeof name, "%.*s", (int)before.bytes, (const char *)before.data);
    (void)snprintf(value, sizeof value, "%.*s", (int)after.bytes, (const char *)after.data);
    const struct setting *setting = find_setting(before.data, before.bytes);
    if (setting != NULL && setting->set == set_file) {
        return bel__why_say(error, BEL_EINVAL,
                            "%.120sconfig is only a flag: a file cannot include another", where);
    }
    if (setting == NULL) {
        return refuse_name(error, where, "setting", name);
    }
    const char *expected = apply(config, setting, value);
    return expected == NULL ? 0 : refuse(error, where, name, expected);
}

int bel__config_read_file(struct bel_config *config, const char *name, struct bel_view text,
                          struct bel_why *error)
{
    char where[128];
    if (text.bytes > BEL_CONFIG_FILE_BYTES_MAX) {
        return refuse(error, name, "", "a file of at most 1 MiB");
    }
    for (unsigned number = 1; text.bytes > 0; number++) {
        const char *bytes = text.data;
        const char *end = memchr(bytes, '\n', text.bytes);
        size_t line_bytes = end != NULL ? (size_t)(end - bytes) : text.bytes;
        (void)snprintf(where, sizeof where, "%.100s:%u: ", name, number);
        int err = read_line(config, (struct bel_view){bytes, line_bytes}, where, error);
        if (err) return err;
        size_t used = end != NULL ? line_bytes + 1 : line_bytes;
        text = (struct bel_view){bytes + used, text.bytes - used};
    }
    return 0;
}

/* --- environment --- */

/* Writes the name of a setting's variable: BELFRY_MAX_CLIENTS. */
static void variable_of(const struct setting *setting, char out[VARIABLE_BYTES])
{
    (void)snprintf(out, VARIABLE_BYTES, "BELFRY_%s", setting->name);
    for (char *byte = out; *byte != '\0'; byte++) {
        if (*byte == '-') *byte = '_';
        if (*byte >= 'a' && *byte <= 'z') *byte = (char)(*byte & ~0x20);
    }
}

int bel__config_read_environment(struct bel_config *config, struct bel_why *error)
{
    char variable[VARIABLE_BYTES], what[VARIABLE_BYTES + 80];
    for (unsigned i = 0; i < SETTINGS; i++) {
        variable_of(&settings[i], variable);
        const char *value = getenv(variable); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
        if (value == NULL || value[0] == '\0') continue;
        const char *expected = apply(config, &settings[i], value);
        if (expected == NULL) continue;
        bool is_secret = settings[i].set == set_store && strchr(value, '@') != NULL;
        (void)snprintf(what, sizeof what, "%s=%.60s", variable, is_secret ? "..." : value);
        return refuse(error, "", what, expected);
    }
    return 0;
}

/* Returns whether a variable, without BELFRY_, is one that other verbs read, or that belfry work
 * sets for a program. */
static bool is_of_verb(const char *name, size_t bytes)
{
    static const char *const names[] = {"SERVER",  "KEY_FILE",    "ID",     "TOPIC",
                                        "ATTEMPT", "DUE_MS",      "TOKEN",  "JOB",
                                        "TASK",    "CORRELATION", "RESULTS"};
    if (strncmp(name, "HEADER_", 7) == 0) return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == bytes && memcmp(names[i], name, bytes) == 0) return true;
    }
    return false;
}

/* Sets `out` to a name in small letters with hyphens, as that of a setting. */
static void small_name(const char *name, size_t bytes, char out[VARIABLE_BYTES])
{
    size_t used = bytes < VARIABLE_BYTES ? bytes : VARIABLE_BYTES - 1;
    for (size_t i = 0; i < used; i++) {
        bool is_upper = name[i] >= 'A' && name[i] <= 'Z';
        out[i] = (char)(is_upper ? name[i] | 0x20 : name[i] == '_' ? '-' : name[i]);
    }
    out[used] = '\0';
}

size_t bel__config_find_variable(char *const *environment, size_t *at, const char **name,
                                 const char **meant)
{
    static const char prefix[] = "BELFRY_";
    char small[VARIABLE_BYTES];
    while (environment[*at] != NULL) {
        const char *variable = environment[(*at)++], *rest = variable + sizeof prefix - 1;
        if (strncmp(variable, prefix, sizeof prefix - 1) != 0) continue;
        size_t bytes = strcspn(rest, "=");
        small_name(rest, bytes, small);
        if (find_setting(small, strlen(small)) != NULL || is_of_verb(rest, bytes)) continue;
        struct bel_similar similar;
        bel__similar_begin(&similar, small);
        for (unsigned i = 0; i < SETTINGS; i++) {
            bel__similar_offer(&similar, settings[i].name, settings[i].name);
        }
        *name = variable;
        *meant = similar.name;
        return bytes + sizeof prefix - 1;
    }
    return 0;
}

/* --- flags --- */

int bel__config_read_flags(struct bel_config *config, char *const *arguments, struct bel_why *error)
{
    for (size_t i = 0; arguments[i] != NULL; i++) {
        const char *flag = arguments[i], *value = strchr(flag, '=');
        size_t bytes = value != NULL ? (size_t)(value - flag) : strlen(flag);
        const struct setting *setting =
            bytes > 2 && strncmp(flag, "--", 2) == 0 ? find_setting(flag + 2, bytes - 2) : NULL;
        if (setting == NULL && flag[0] != '-') {
            return bel__why_say(error, BEL_EINVAL,
                                "unexpected argument %.80s: a setting is a flag, such as --port "
                                "7878 or --data DIR",
                                flag);
        }
        if (setting == NULL) {
            char name[80];
            (void)snprintf(name, sizeof name, "%.*s", (int)(bytes < 79 ? bytes : 79), flag);
            return refuse_name(error, "", "flag", name);
        }
        value = value != NULL ? value + 1 : arguments[++i];
        if (value == NULL) return refuse(error, "", flag, setting->value);
        const char *expected = apply(config, setting, value);
        if (expected == NULL) continue;
        char what[80];
        bool is_secret = setting->set == set_store && strchr(value, '@') != NULL;
        (void)snprintf(what, sizeof what, "--%s %s", setting->name, is_secret ? "..." : value);
        return refuse(error, "", what, expected);
    }
    return 0;
}

static int check_address(const struct bel_config *config, const char *name,
                         const struct bel_address *address, struct bel_why *error)
{
    char text[BEL_ADDRESS_BYTES], what[BEL_ADDRESS_BYTES + 16];
    if (config->keys[0] != 0 || bel__address_is_loopback(address)) return 0;
    bel__address_print(address, text);
    (void)snprintf(what, sizeof what, "%s %s", name, text);
    return refuse(error, "", what, "--keys as well: other machines can reach this address");
}

/* Refuses settings that promise what the store cannot keep. */
static int check_store(struct bel_config *config, struct bel_why *error)
{
    bool is_redis = config->store == BEL_CONFIG_REDIS, is_durability_given = false;
    for (unsigned i = 0; i < SETTINGS; i++) {
        if (!is_given(config, i)) continue;
        if (settings[i].set == set_durability) is_durability_given = true;
        if (!is_redis && settings[i].stores == ON_REDIS) {
            return bel__why_say(error, BEL_EINVAL, "--%s is for a store on Redis: --store redis://",
                                settings[i].name);
        }
    }
    if (is_redis && !is_durability_given) config->durability = BEL_CONFIG_DURABILITY_ASYNC;
    if (is_redis != (config->durability >= BEL_CONFIG_DURABILITY_ASYNC)) {
        return bel__why_say(error, BEL_EINVAL, "--durability: expected %s",
                            is_redis ? "async or wait with a store on Redis"
                                     : "commit, interval or none; async, wait are for Redis");
    }
    if (config->replicas > 0 && config->durability != BEL_CONFIG_DURABILITY_WAIT) {
        return bel__why_say(error, BEL_EINVAL, "--replicas: expected --durability wait as well");
    }
    return 0;
}

const char *bel__config_find_unused(const struct bel_config *config, unsigned *at)
{
    while (*at < SETTINGS) {
        unsigned i = (*at)++;
        if (is_given(config, i) && (settings[i].stores >> config->store & 1) == 0) {
            return settings[i].name;
        }
    }
    return NULL;
}

int bel__config_check(struct bel_config *config, struct bel_why *error)
{
    int err = check_store(config, error);
    if (err == 0) err = check_address(config, "--resp", &config->resp, error);
    if (err || !config->has_http) return err;
    char text[BEL_ADDRESS_BYTES], resp[BEL_ADDRESS_BYTES];
    bel__address_print(&config->http, text);
    bel__address_print(&config->resp, resp);
    if (bel__address_port(&config->http) != 0 && strcmp(text, resp) == 0) {
        return refuse(error, "", "--http", "another address than that of --resp");
    }
    return check_address(config, "--http", &config->http, error);
}

void bel__config_print_help(void (*print)(const char *line))
{
    for (unsigned i = 0; i < SETTINGS; i++) {
        char flag[64], text[HELP_BYTES];
        if (settings[i].help == NULL) continue;
        (void)snprintf(flag, sizeof flag, "--%s %s", settings[i].name, settings[i].value);
        (void)snprintf(text, sizeof text, "    %-*s %s\n", HELP_COLUMN, flag, settings[i].help);
        print(text);
    }
}
