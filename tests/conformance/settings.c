/* SPDX-License-Identifier: MIT */

/*
 * Settings: their names, defaults and limits, and that CONFIGURE applies all or none.
 */
#include "conformance.h"

#include <string.h>

static void settings_have_defaults(struct subject *s)
{
    static const char *const defaults[][2] = {
        {"lease", "30s"},    {"retry", "exp(10s,2,1h) jitter(0.1) max(20)"},
        {"crashes", "5"},    {"concurrency", "0"},
        {"retention", "0s"}, {"retention_dead", "forever"},
        {"depth", "0"},      {"misfire_after", "1m"},
        {"deliver", ""},
    };
    schedule(s, "mail", .id = "a");
    CHECK_EQ(topic(s, "mail")->settings_count, 9);
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        CHECK(strcmp(setting(s, "mail", defaults[i][0]), defaults[i][1]) == 0);
    }
}

static void a_setting_is_told_as_it_can_be_set(struct subject *s)
{
    static const char *const values[][2] = {
        {"lease", "1h30m"},         {"retry", "5s,30s,5m"},
        {"crashes", "1000000"},     {"retention", "2w"},
        {"retention_dead", "30d"},  {"depth", "100"},
        {"misfire_after", "500ms"}, {"deliver", "https://a.example/x"},
        {"concurrency", "17"},
    };
    size_t count = sizeof values / sizeof values[0] - (can(s, CAN_GROUP) ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        configure(s, "mail", values[i][0], values[i][1]);
    }
    for (size_t i = 0; i < count; i++) {
        const char *told = setting(s, "mail", values[i][0]);
        CHECK(strcmp(told, values[i][1]) == 0);
        char copy[SETTING_BYTES_MAX + 1];
        (void)snprintf(copy, sizeof copy, "%s", told);
        configure(s, "push", values[i][0], copy);
        CHECK(strcmp(setting(s, "push", values[i][0]), values[i][1]) == 0);
    }
    configure(s, "mail", "retention_dead", "forever");
    CHECK(strcmp(setting(s, "mail", "retention_dead"), "forever") == 0);
}

static void wrong_settings_are_refused(struct subject *s)
{
    static const char *const wrong[][2] = {
        {"lease", "0s"},       {"lease", ""},
        {"lease", "-1s"},      {"lease", "1y"},
        {"retry", "often"},    {"retry", ""},
        {"crashes", "0"},      {"crashes", "1000001"},
        {"crashes", "1s"},     {"crashes", ""},
        {"concurrency", "-1"}, {"concurrency", "1000001"},
        {"concurrency", " 1"}, {"retention", "forever"},
        {"retention", "x"},    {"retention_dead", "x"},
        {"depth", "many"},     {"depth", "99999999999999999999"},
        {"misfire_after", ""}, {"leases", "1s"},
        {"nonsense", "1"},     {"", "1"},
    };
    schedule(s, "mail", .id = "a");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        at_line(wrong[i][0], (int)i);
        CHECK(configure_error(s, "mail", wrong[i][0], wrong[i][1]) == BEL_EINVAL);
    }
    CHECK(strcmp(setting(s, "mail", "lease"), "30s") == 0);
    CHECK(strcmp(setting(s, "mail", "crashes"), "5") == 0);
}

static void names_may_be_in_capitals(struct subject *s)
{
    configure(s, "mail", "LEASE", "7s");
    CHECK(strcmp(setting(s, "mail", "lease"), "7s") == 0);
    configure(s, "mail", "Retention_Dead", "1h");
    CHECK(strcmp(setting(s, "mail", "retention_dead"), "1h") == 0);
}

static void a_long_deliver_is_refused(struct subject *s)
{
    static char text[SETTING_BYTES_MAX + 2];
    memset(text, 'x', SETTING_BYTES_MAX + 1);
    CHECK(configure_error(s, "mail", "deliver", text) == BEL_EINVAL);
    text[SETTING_BYTES_MAX] = 0;
    configure(s, "mail", "deliver", text);
    CHECK(strcmp(setting(s, "mail", "deliver"), text) == 0);
    configure(s, "mail", "deliver", "");
    CHECK(strcmp(setting(s, "mail", "deliver"), "") == 0);
}

static void configure_takes_all_or_none(struct subject *s)
{
    struct bel_setting settings[] = {
        {BEL_VIEW("lease"), BEL_VIEW("5s")},
        {BEL_VIEW("crashes"), BEL_VIEW("none")},
    };
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    schedule(s, "mail", .id = "a");
    command.configure = (struct bel_configure){view("mail"), settings, 2};
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    CHECK(strcmp(setting(s, "mail", "lease"), "30s") == 0);
    settings[1].value = view("7");
    CHECK(ask(s, &command)->reply.err == 0);
    CHECK(strcmp(setting(s, "mail", "lease"), "5s") == 0);
    CHECK(strcmp(setting(s, "mail", "crashes"), "7") == 0);
}

static void of_a_name_that_comes_twice_the_last_counts(struct subject *s)
{
    struct bel_setting settings[] = {
        {BEL_VIEW("lease"), BEL_VIEW("5s")},
        {BEL_VIEW("crashes"), BEL_VIEW("2")},
        {BEL_VIEW("lease"), BEL_VIEW("6s")},
    };
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    command.configure = (struct bel_configure){view("mail"), settings, 3};
    CHECK(ask(s, &command)->reply.err == 0);
    CHECK(strcmp(setting(s, "mail", "lease"), "6s") == 0);
}

static void settings_of_one_topic_are_nobody_elses(struct subject *s)
{
    schedule(s, "push", .id = "a");
    configure(s, "mail", "lease", "5s");
    CHECK(strcmp(setting(s, "push", "lease"), "30s") == 0);
}

static void pause_is_kept_and_said(struct subject *s)
{
    pause_topic(s, "mail");
    pause_topic(s, "mail");
    CHECK(topic(s, "mail")->paused);
    resume_topic(s, "mail");
    resume_topic(s, "mail");
    CHECK(!topic(s, "mail")->paused);
}

static const struct test tests[] = {
    TEST(settings_have_defaults),
    TEST(a_setting_is_told_as_it_can_be_set),
    TEST(wrong_settings_are_refused),
    TEST(names_may_be_in_capitals),
    TEST(a_long_deliver_is_refused),
    TEST(configure_takes_all_or_none),
    TEST(of_a_name_that_comes_twice_the_last_counts),
    TEST(settings_of_one_topic_are_nobody_elses),
    TEST(pause_is_kept_and_said),
};

GROUP(settings, 0, tests);
