/* SPDX-License-Identifier: MIT */

/*
 * Bad input: invalid values are refused, and nothing changes.
 */
#include "conformance.h"

#include <string.h>

#define YEAR_10000 INT64_C(253402300800000)

static struct bel_command scheduling(void)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view("mail");
    command.schedule.id = view("a");
    return command;
}

static void expect_refused(struct subject *s, const struct bel_command *command)
{
    CHECK(ask(s, command)->reply.err == BEL_EINVAL);
    CHECK(get(s, "mail", "a") == NULL);
}

static void names_that_cannot_be_a_topics_are_refused_everywhere(struct subject *s)
{
    static char longest[BEL_TOPIC_BYTES_MAX + 2];
    memset(longest, 'x', BEL_TOPIC_BYTES_MAX + 1);
    static const char *const wrong[] = {"", "a b", "a@b", "caf\xc3\xa9", "a\n", "count", longest};
    static const enum bel_verb verbs[] = {BEL_VERB_GET,   BEL_VERB_REVIVE, BEL_VERB_TOPIC,
                                          BEL_VERB_PAUSE, BEL_VERB_RESUME, BEL_VERB_EXPLAIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(schedule_error(s, wrong[i], .id = "a") == BEL_EINVAL);
        CHECK(claim(s, wrong[i])->reply.err == BEL_EINVAL);
        CHECK(claim(s, "mail", .and_topic = wrong[i])->reply.err == BEL_EINVAL);
        CHECK(list(s, wrong[i])->reply.err == BEL_EINVAL);
        CHECK(configure_error(s, wrong[i], "lease", "1s") == BEL_EINVAL);
        for (size_t j = 0; j < sizeof verbs / sizeof verbs[0]; j++) {
            CHECK(target(s, verbs[j], wrong[i], "a") == BEL_EINVAL);
        }
        struct bel_command command = {.verb = BEL_VERB_PURGE};
        command.purge.topic = view(wrong[i]);
        CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
        command = (struct bel_command){.verb = BEL_VERB_CANCEL};
        command.cancel.topic = view(wrong[i]);
        CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
        command = (struct bel_command){.verb = BEL_VERB_RESCHEDULE};
        command.reschedule.topic = view(wrong[i]);
        command.reschedule.id = view("a");
        command.reschedule.when = BEL_WHEN_IN;
        CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    }
    longest[BEL_TOPIC_BYTES_MAX] = 0;
    schedule(s, longest, .id = "a");
    struct bel_command command = {.verb = BEL_VERB_TOPICS};
    CHECK_EQ(ask(s, &command)->reply.names.count, 1);
}

static void what_is_no_id_is_refused(struct subject *s)
{
    static char longest[BEL_ID_BYTES_MAX + 2];
    memset(longest, 'x', BEL_ID_BYTES_MAX + 1);
    static const char *const wrong[] = {"a b", "a@1", "@", "\xff", longest};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(schedule_error(s, "mail", .id = wrong[i]) == BEL_EINVAL);
    }
    longest[BEL_ID_BYTES_MAX] = 0;
    schedule(s, "mail", .id = longest);
    schedule(s, "mail", .id = "A-z.0_9:/");
}

static void what_is_too_long_is_refused(struct subject *s)
{
    static char bytes[BEL_PAYLOAD_BYTES_DEFAULT + 1];
    memset(bytes, 'x', sizeof bytes);
    struct bel_command command = scheduling();
    command.schedule.payload = (struct bel_view){bytes, sizeof bytes};
    expect_refused(s, &command);
    if (can(s, CAN_GROUP | CAN_LIMIT)) {
        command = scheduling();
        command.schedule.group = (struct bel_view){bytes, BEL_GROUP_BYTES_MAX + 1};
        expect_refused(s, &command);
        command = scheduling();
        command.schedule.resource = (struct bel_view){bytes, BEL_GROUP_BYTES_MAX + 1};
        expect_refused(s, &command);
    }
    command = scheduling();
    command.schedule.correlation = (struct bel_view){bytes, BEL_TEXT_BYTES_MAX + 1};
    expect_refused(s, &command);
    command.schedule.correlation.bytes = BEL_TEXT_BYTES_MAX;
    if (can(s, CAN_GROUP | CAN_LIMIT)) {
        command.schedule.group = (struct bel_view){bytes, BEL_GROUP_BYTES_MAX};
        command.schedule.resource = (struct bel_view){bytes, BEL_GROUP_BYTES_MAX};
    }
    command.schedule.payload = (struct bel_view){bytes, BEL_PAYLOAD_BYTES_DEFAULT};
    CHECK(ask(s, &command)->reply.err == 0);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->payload.bytes == BEL_PAYLOAD_BYTES_DEFAULT);
    CHECK(timer->correlation.bytes == BEL_TEXT_BYTES_MAX);
}

/* What earlier versions stored, and exports have, is kept. */
static void reserved_headers_are_refused(struct subject *s)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    struct bel_header header = {BEL_VIEW("Belfry-Plan"), BEL_VIEW("v")};
    command.schedule =
        (struct bel_schedule_spec){.topic = view("mail"), .id = view("a"), .headers = &header};
    command.schedule.headers_count = 1;
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    expect_gone(s, "mail", "a");
    command.schedule.is_imported = true;
    CHECK(ask(s, &command)->reply.err == 0);
    CHECK(is_text(timer_of(s, "mail", "a")->headers[0].name, "Belfry-Plan"));
    header.name = view("belfry");
    command.schedule.is_imported = false;
    CHECK(ask(s, &command)->reply.err == 0);
}

static void too_many_headers_are_refused(struct subject *s)
{
    static struct bel_header headers[BEL_HEADERS_MAX + 1];
    static char value[BEL_HEADERS_BYTES_MAX];
    memset(value, 'x', sizeof value);
    for (size_t i = 0; i <= BEL_HEADERS_MAX; i++) {
        headers[i] = (struct bel_header){BEL_VIEW("n"), BEL_VIEW("v")};
    }
    struct bel_command command = scheduling();
    command.schedule.headers = headers;
    command.schedule.headers_count = BEL_HEADERS_MAX + 1;
    expect_refused(s, &command);
    headers[0].value = (struct bel_view){value, BEL_HEADERS_BYTES_MAX};
    command.schedule.headers_count = 1;
    expect_refused(s, &command);
    headers[0].value.bytes--;
    CHECK(ask(s, &command)->reply.err == 0);
    CHECK(timer_of(s, "mail", "a")->headers[0].value.bytes == BEL_HEADERS_BYTES_MAX - 1);
    expect_claim(s, "mail", "a");
}

static void a_resource_has_the_characters_of_a_topic(struct subject *s)
{
    CHECK(schedule_error(s, "mail", .id = "a", .resource = "a b") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .resource = "\xff") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .resource = "api/v1.2:x_y-z") == 0);
    CHECK(schedule_error(s, "mail", .id = "a", .resource = "worker") == 0);
}

static void times_after_the_year_9999_are_refused(struct subject *s)
{
    struct bel_command command = scheduling();
    command.schedule.when = BEL_WHEN_AT;
    command.schedule.at.ms = YEAR_10000;
    expect_refused(s, &command);
    command.schedule.when = BEL_WHEN_IN;
    command.schedule.delay_ms = (uint64_t)(YEAR_10000 - START);
    expect_refused(s, &command);
    command.schedule.delay_ms = UINT64_MAX;
    expect_refused(s, &command);
    command.schedule.delay_ms = 0;
    command.schedule.lease_ms = UINT64_MAX;
    expect_refused(s, &command);
    command.schedule.lease_ms = 0;
    command.schedule.when = BEL_WHEN_AT;
    command.schedule.at.ms = YEAR_10000 - 1;
    CHECK(ask(s, &command)->reply.err == 0);
    CHECK(timer_of(s, "mail", "a")->due.ms == YEAR_10000 - 1);
}

static void delays_and_leases_that_lead_there_are_refused(struct subject *s)
{
    uint64_t left = 7;
    uint64_t too_far = (uint64_t)(YEAR_10000 - START);
    schedule(s, "mail", .id = "a");
    CHECK(claim(s, "mail", .lease = too_far)->reply.err == BEL_EINVAL);
    CHECK(claim(s, "mail", .lease = UINT64_MAX)->reply.err == BEL_EINVAL);
    expect_claim(s, "mail", "a");
    CHECK(extend(s, "a", UINT64_MAX, &left) == BEL_EINVAL && left == 7);
    CHECK(release_in(s, "a", UINT64_MAX) == BEL_EINVAL);
    CHECK(fail_error(s, "a", .in = UINT64_MAX) == BEL_EINVAL);
    CHECK(fail_error(s, "a", .in = too_far) == BEL_EINVAL);
    CHECK(timer_of(s, "mail", "a")->attempts == 0);
    CHECK(timer_of(s, "mail", "a")->lease_left_ms == 30 * SECOND);
    struct bel_command command = {.verb = BEL_VERB_RESCHEDULE};
    command.reschedule.topic = view("mail");
    command.reschedule.id = view("a");
    command.reschedule.when = BEL_WHEN_AT;
    command.reschedule.at.ms = YEAR_10000;
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    CHECK(ack(s, "a") == 1);
}

static void plans_that_cannot_be_are_refused(struct subject *s)
{
    CHECK(schedule_error(s, "mail", .id = "a", .every = "0s") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .every = "often") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .every = "0 9 * * *") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .cron = "0 25 * * *") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .cron = "5m") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .cron = "0 9 * * *", .zone = "No/Where") ==
          BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .cron = "0 9 * * *", .mode = BEL_PLAN_DELAY) ==
          BEL_EINVAL);
    CHECK(get(s, "mail", "a") == NULL);
}

static void policies_that_cannot_be_are_refused(struct subject *s)
{
    CHECK(schedule_error(s, "mail", .id = "a", .retry = "often") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .retry = "exp(1s,0.5,1h)") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .retry = "5") == BEL_EINVAL);
    CHECK(get(s, "mail", "a") == NULL);
}

static void counts_have_limits(struct subject *s)
{
    struct bel_view topics[101];
    for (size_t i = 0; i < 101; i++) {
        topics[i] = view("mail");
    }
    schedule(s, "mail", .id = "a");
    CHECK(claim(s, "mail", .count = BEL_CLAIM_COUNT_MAX + 1)->reply.err == BEL_EINVAL);
    CHECK(list(s, "mail", .count = BEL_LIST_COUNT_MAX + 1)->reply.err == BEL_EINVAL);
    CHECK(list(s, "mail", .count = BEL_LIST_COUNT_MAX)->reply.err == 0);
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim.topics = topics;
    command.claim.topics_count = 101;
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    command.claim.topics_count = 0;
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    command.claim.topics_count = 100;
    command.claim.count = BEL_CLAIM_COUNT_MAX;
    expect_ids(ask(s, &command), "a");
}

static void a_refusal_changes_nothing(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "old", .in = HOUR);
    CHECK(schedule_error(s, "mail", .id = "a", .payload = "new", .retry = "x") == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "a", .every = "x") == BEL_EINVAL);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "old"));
    CHECK(schedule_error(s, "push", .id = "a", .retry = "x") == BEL_EINVAL);
    CHECK(target(s, BEL_VERB_TOPIC, "push", NULL) == BEL_ENOTFOUND);
}

static const struct test tests[] = {
    TEST(names_that_cannot_be_a_topics_are_refused_everywhere),
    TEST(what_is_no_id_is_refused),
    TEST(what_is_too_long_is_refused),
    TEST(too_many_headers_are_refused),
    TEST(reserved_headers_are_refused),
    TEST(a_resource_has_the_characters_of_a_topic),
    TEST(times_after_the_year_9999_are_refused),
    TEST(delays_and_leases_that_lead_there_are_refused),
    TEST(plans_that_cannot_be_are_refused),
    TEST(policies_that_cannot_be_are_refused),
    TEST(counts_have_limits),
    TEST(a_refusal_changes_nothing),
};

GROUP(refusing, 0, tests);
