/* SPDX-License-Identifier: MIT */

/* Settings from files and flags, and the messages of wrong ones. */
#include "server/config.h"

#include "../check.h"

#include <stdlib.h>
#include <string.h>

static struct bel_config config;
static struct bel_why error;

static bool says(const char *text)
{
    CHECK_NOTE("%.200s", error.text);
    return strstr(error.text, text) != NULL;
}

static int read_text(const char *text)
{
    bel__config_init(&config);
    return bel__config_read_file(&config, "a.conf", (struct bel_view){text, strlen(text)}, &error);
}

static int read_flag(const char *name, const char *value)
{
    char first[64], second[2048];
    char *flags[] = {first, value != NULL ? second : NULL, NULL};
    (void)snprintf(first, sizeof first, "%s", name);
    if (value != NULL) (void)snprintf(second, sizeof second, "%s", value);
    bel__config_init(&config);
    return bel__config_read_flags(&config, flags, &error);
}

static void defaults_are_safe(void)
{
    char text[BEL_ADDRESS_BYTES];
    bel__config_init(&config);
    CHECK(bel__config_check(&config, &error) == 0);
    CHECK(bel__address_is_loopback(&config.resp) && bel__address_is_loopback(&config.http));
    CHECK(config.durability == BEL_CONFIG_DURABILITY_COMMIT);
    bel__address_print(&config.resp, text);
    CHECK(strcmp(text, "127.0.0.1:7878") == 0);
}

static void a_file_is_read(void)
{
    CHECK(read_text("# comment\r\n\n  ; another\n[serve]\n\tdata =  /a b \t\r\n"
                    "max-payload=2M # behind\nhttp = none\nkeys=/k#1\nclock=virtual") == 0);
    CHECK(strcmp(config.data, "/a b") == 0);
    CHECK_EQ(config.payload_bytes_max, 2 << 20);
    CHECK(!config.has_http);
    CHECK(strcmp(config.keys, "/k#1") == 0);
    CHECK(config.is_virtual);
}

static void limits_of_jobs(void)
{
    CHECK(read_text("") == 0);
    CHECK_EQ(config.job_tasks_max, 10000U);
    CHECK_EQ(config.job_edges_max, 100000U);
    CHECK_EQ(config.job_depth_max, 5U);
    CHECK_EQ(config.job_retention_ms, UINT64_C(86400000));
    CHECK(read_text("job-tasks = 7\njob_edges = 8\njob-depth=20\njob-retention = 7d") == 0);
    CHECK_EQ(config.job_tasks_max, 7U);
    CHECK_EQ(config.job_edges_max, 8U);
    CHECK_EQ(config.job_depth_max, 20U);
    CHECK_EQ(config.job_retention_ms, UINT64_C(7) * 86400000);
    CHECK(read_flag("--job-tasks", "100001") == BEL_EINVAL && says("from 1 to 100000"));
    CHECK(read_flag("--job-edges", "0") == BEL_EINVAL && says("from 1 to 1000000"));
    CHECK(read_flag("--job-depth", "21") == BEL_EINVAL && says("from 1 to 20"));
    CHECK(read_flag("--job-retention", "0") == BEL_EINVAL && says("from 1s to 3660d"));
}

static void hyphens_may_be_underscores(void)
{
    CHECK(read_text("max_clients = 7\nlog_level=debug") == 0);
    CHECK_EQ(config.clients_max, 7);
    CHECK(read_flag("--max_clients", "8") == 0);
    CHECK_EQ(config.clients_max, 8);
    CHECK(read_text("max clients = 7") == BEL_EINVAL);
}

static void a_port_alone_is_of_this_machine(void)
{
    static const char *const values[] = {"7000", ":7000", "127.0.0.1:7000"};
    char text[BEL_ADDRESS_BYTES];
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
        CHECK(read_flag("--resp", values[i]) == 0);
        bel__address_print(&config.resp, text);
        CHECK(strcmp(text, "127.0.0.1:7000") == 0);
    }
    CHECK(read_flag("--port", "7001") == 0);
    bel__address_print(&config.resp, text);
    CHECK(strcmp(text, "127.0.0.1:7001") == 0);
    CHECK(read_flag("--port", "65536") == BEL_EINVAL && says("a port from 0 to 65535"));
    CHECK(read_flag("--resp", ":") == BEL_EINVAL && read_flag("--resp", "") == BEL_EINVAL);
}

static void durations_need_a_unit(void)
{
    static const char *const names[] = {"--auth-timeout", "--check-time", "--durability-interval",
                                        "--scrub"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(read_flag(names[i], "10") == BEL_EINVAL && says("a duration"));
    }
    CHECK(read_flag("--check-time", "0") == 0 && read_flag("--auth-timeout", "10s") == 0);
    CHECK(read_text("config = other.conf") == BEL_EINVAL && says("cannot include another"));
}

/* NOLINTBEGIN(concurrency-mt-unsafe): this program has one thread */
static void every_setting_is_a_variable(void)
{
    CHECK(setenv("BELFRY_MAX_CLIENTS", "9", 1) == 0 && setenv("BELFRY_DATA", "", 1) == 0);
    bel__config_init(&config);
    CHECK(bel__config_read_environment(&config, &error) == 0);
    CHECK_EQ(config.clients_max, 9);
    CHECK(strcmp(config.data, "./belfry-data") == 0); /* an empty variable is none */
    CHECK(setenv("BELFRY_MAX_CLIENTS", "many", 1) == 0);
    CHECK(bel__config_read_environment(&config, &error) == BEL_EINVAL);
    CHECK(says("BELFRY_MAX_CLIENTS=many: expected"));
    CHECK(unsetenv("BELFRY_MAX_CLIENTS") == 0 && unsetenv("BELFRY_DATA") == 0);
}
/* NOLINTEND(concurrency-mt-unsafe) */

static void variables_that_no_setting_has(void)
{
    char path[] = "PATH=/", server[] = "BELFRY_SERVER=x", wrong[] = "BELFRY_MAX_CLIENT=8";
    char header[] = "BELFRY_HEADER_A=b", data[] = "BELFRY_DATA=d", none[] = "BELFRY_";
    char other[] = "BELFRY_ZZZZZZ=1";
    char *variables[] = {path, server, wrong, header, data, none, other, NULL};
    const char *name, *meant;
    size_t at = 0;
    CHECK(bel__config_find_variable(variables, &at, &name, &meant) == 17);
    CHECK(name == wrong && strcmp(meant, "max-clients") == 0);
    CHECK(bel__config_find_variable(variables, &at, &name, &meant) == 7 && meant == NULL);
    CHECK(bel__config_find_variable(variables, &at, &name, &meant) == 13 && name == other);
    CHECK(bel__config_find_variable(variables, &at, &name, &meant) == 0);
}

static void a_mistyped_name_is_answered_with_the_right_one(void)
{
    CHECK(read_flag("--max-client", "8") == BEL_EINVAL && says("did you mean --max-clients?"));
    CHECK(read_flag("--host", "::1") == BEL_EINVAL && says("did you mean --resp?"));
    CHECK(read_flag("--dir", "x") == BEL_EINVAL && says("did you mean --data?"));
    CHECK(read_flag("7878", "x") == BEL_EINVAL && says("a setting is a flag, such as --port 7878"));
    CHECK(read_text("durabilty = none") == BEL_EINVAL &&
          says("a.conf:1: unknown setting durabilty"));
    CHECK(says("did you mean durability?"));
    CHECK(read_flag("--frobnicate", "8") == BEL_EINVAL && says("see belfry serve --help"));
}

static void what_is_wrong_in_a_file_is_named_with_its_line(void)
{
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"data = x\nresp = here\n", "a.conf:2: resp"},
        {"\n\nbogus = 1", "a.conf:3: unknown setting bogus"},
        {"data", "a.conf:1: "},
        {"[other]", "a.conf:1: "},
        {"config = b.conf", "cannot include another"},
        {"data =", "a.conf:1: data"},
        {"max-clients = -1", "a.conf:1: max-clients"},
        {"output-limit = 1K", "a.conf:1: output-limit"},
        {"output-total = 1K", "a.conf:1: output-total"},
        {"input-total = 1K", "a.conf:1: input-total"},
        {"= x", "a.conf:1: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(read_text(rows[i].text) == BEL_EINVAL);
        CHECK(says(rows[i].said));
    }
}

static void rubbish_in_a_file_is_refused(void)
{
    char text[8192];
    memset(text, 'x', sizeof text);
    bel__config_init(&config);
    CHECK(bel__config_read_file(&config, "a", (struct bel_view){text, sizeof text}, &error) ==
          BEL_EINVAL);
    memset(text, 0, sizeof text);
    CHECK(bel__config_read_file(&config, "a", (struct bel_view){text, sizeof text}, &error) ==
          BEL_EINVAL);
    memset(text, '\n', sizeof text);
    CHECK(bel__config_read_file(&config, "a", (struct bel_view){text, sizeof text}, &error) == 0);
}

static void flags_are_read_both_ways(void)
{
    CHECK(read_flag("--sync", "thread") == 0 && config.sync == BEL_CONFIG_SYNC_THREAD);
    CHECK(read_flag("--sync=loop", NULL) == 0 && config.sync == BEL_CONFIG_SYNC_LOOP);
    CHECK(read_flag("--output-limit", "1G") == 0);
    CHECK_EQ(config.output_bytes_max, 1U << 30);
    CHECK(read_flag("--output-total", "4G") == 0);
    CHECK_EQ(config.output_total_bytes_max, UINT64_C(4) << 30);
    CHECK(config.input_total_bytes_max == 256 << 20 && read_flag("--input-total", "1G") == 0);
    CHECK_EQ(config.input_total_bytes_max, 1U << 30);
    CHECK(read_flag("--log-level", "debug") == 0 && config.log_level == BEL_LOG_DEBUG);
    CHECK(read_flag("--durability", "interval") == 0);
    CHECK(config.durability == BEL_CONFIG_DURABILITY_INTERVAL &&
          config.durability_interval_ms == 1000);
    CHECK(bel__config_check(&config, &error) == 0);
    CHECK(read_flag("--durability-interval", "1h") == 0);
    CHECK_EQ(config.durability_interval_ms, UINT32_C(3600000));
}

static void flags_that_are_wrong_are_named(void)
{
    char path[BEL_CONFIG_PATH_BYTES + 1];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    CHECK(read_flag("--sync", "maybe") == BEL_EINVAL && says("--sync maybe: expected auto"));
    CHECK(read_flag("--sync", NULL) == BEL_EINVAL && says("--sync"));
    CHECK(read_flag("sync", "loop") == BEL_EINVAL && says("sync"));
    CHECK(read_flag("--", NULL) == BEL_EINVAL);
    CHECK(read_flag("--data", path) == BEL_EINVAL && says("a path"));
    CHECK(read_flag("--max-payload", "99999999999999999999") == BEL_EINVAL);
    CHECK(read_flag("--max-payload", "1T") == BEL_EINVAL);
    CHECK(read_flag("--durability-interval", "2h") == BEL_EINVAL && says("from 1ms to 1h"));
    CHECK(read_flag("--max-payload", "18014398509481984K") == BEL_EINVAL);
}

static void addresses(void)
{
    static const struct {
        const char *text;
        int loopback; /* -1: not an address */
    } rows[] = {
        {"127.0.0.1:1", 1},
        {"127.9.9.9:1", 1},
        {"[::1]:0", 1},
        {"localhost:1", 1},
        {"0.0.0.0:1", 0},
        {"[::]:1", 0},
        {"10.0.0.1:1", 0},
        {"128.0.0.1:1", 0},
        {"[2001:db8::1]:1", 0},
        {"[::ffff:127.0.0.1]:1", 0},
        {"127.0.0.1", -1},
        {"127.0.0.1:", -1},
        {":1", 1},
        {"127.0.0.1:65536", -1},
        {"::1:1", -1},
        {"[::1]", -1},
        {"[]:1", -1},
        {"[:1", -1},
        {"example.com:1", -1},
        {"127.0.0.1:-1", -1},
        {"", -1},
        {"127.0.0.1 :1", -1},
        {"[0000:0000:0000:0000:0000:0000:0000:0000:0001x]:1", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_address address, again;
        char text[BEL_ADDRESS_BYTES];
        CHECK_NOTE("%s", rows[i].text);
        int err = bel__address_parse(rows[i].text, &address);
        CHECK((err != 0) == (rows[i].loopback < 0));
        if (err) continue;
        CHECK(bel__address_is_loopback(&address) == (rows[i].loopback == 1));
        bel__address_print(&address, text);
        CHECK(bel__address_parse(text, &again) == 0);
        CHECK(memcmp(&again.socket, &address.socket, sizeof again.socket) == 0);
        bel__address_set_port(&address, 4321);
        CHECK_EQ(bel__address_port(&address), 4321);
    }
}

static void beyond_this_machine_keys_are_needed(void)
{
    CHECK(read_text("resp = 0.0.0.0:1") == 0);
    CHECK(bel__config_check(&config, &error) == BEL_EINVAL && says("--resp 0.0.0.0:1"));
    CHECK(read_text("http = [::]:1") == 0);
    CHECK(bel__config_check(&config, &error) == BEL_EINVAL && says("--http [::]:1"));
    CHECK(read_text("resp = 0.0.0.0:1\nkeys = k") == 0);
    CHECK(bel__config_check(&config, &error) == 0);
}

int main(void)
{
    RUN(defaults_are_safe);
    RUN(a_file_is_read);
    RUN(limits_of_jobs);
    RUN(hyphens_may_be_underscores);
    RUN(a_port_alone_is_of_this_machine);
    RUN(durations_need_a_unit);
    RUN(every_setting_is_a_variable);
    RUN(a_mistyped_name_is_answered_with_the_right_one);
    RUN(variables_that_no_setting_has);
    RUN(what_is_wrong_in_a_file_is_named_with_its_line);
    RUN(rubbish_in_a_file_is_refused);
    RUN(flags_are_read_both_ways);
    RUN(flags_that_are_wrong_are_named);
    RUN(addresses);
    RUN(beyond_this_machine_keys_are_needed);
    return 0;
}
