/* SPDX-License-Identifier: MIT */

/*
 * Listing: the order, the filters, and cursors while timers change.
 */
#include "conformance.h"

#include <string.h>

/* Schedules one timer of every kind. */
static void fill(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "done");
    schedule(s, "mail", .id = "cancelled");
    schedule(s, "mail", .id = "dead");
    schedule(s, "mail", .id = "expired", .expires = 1);
    schedule(s, "mail", .id = "leased");
    expect_claim(s, "mail", "done", "cancelled", "dead", "expired", "leased");
    CHECK(ack(s, "done") == 1);
    CHECK(cancel(s, "mail", "cancelled") == 1);
    CHECK(fail(s, "dead", .dead = true).state == BEL_DEAD);
    CHECK(fail(s, "expired").state == BEL_EXPIRED);
    schedule(s, "mail", .id = "later", .in = HOUR);
    schedule(s, "mail", .id = "ready");
    schedule(s, "mail", .id = "plan", .every = "30m", .mode = BEL_PLAN_DELAY);
    schedule(s, "mail", .id = "other", .every = "20m", .overlap = BEL_OVERLAP_QUEUE);
}

static void timers_are_listed_by_due_then_what_has_none_then_the_ends(struct subject *s)
{
    fill(s);
    expect_list(s, "mail", "leased", "ready", "other", "plan", "later", "done", "dead", "cancelled",
                "expired");
}

static void a_state_lists_only_those(struct subject *s)
{
    fill(s);
    expect_list_state(s, BEL_SCHEDULED, "mail", "other", "plan", "later");
    expect_list_state(s, BEL_READY, "mail", "ready");
    expect_list_state(s, BEL_LEASED, "mail", "leased");
    expect_list_state(s, BEL_BLOCKED, "mail");
    expect_list_state(s, BEL_DONE, "mail", "done");
    expect_list_state(s, BEL_DEAD, "mail", "dead");
    expect_list_state(s, BEL_CANCELLED, "mail", "cancelled");
    expect_list_state(s, BEL_EXPIRED, "mail", "expired");
    expect_list_state(s, BEL_SKIPPED, "mail");
}

static void what_has_no_due_is_listed_by_sequence(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "20m", .overlap = BEL_OVERLAP_QUEUE);
    schedule(s, "mail", .id = "q", .every = "30m", .mode = BEL_PLAN_DELAY);
    advance(s, 70 * MINUTE);
    expect_list(s, "mail", occurrence("p", 20 * MINUTE), occurrence("q", 30 * MINUTE), "p", "q",
                occurrence("p", 40 * MINUTE), occurrence("p", 60 * MINUTE));
    expect_list_state(s, BEL_SCHEDULED, "mail", "p", "q");
}

static void ends_are_listed_by_when_they_finished(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c");
    expect_claim(s, "mail", "a", "b", "c");
    (void)fail(s, "c", .dead = true);
    (void)fail(s, "b", .dead = true);
    advance(s, SECOND);
    (void)fail(s, "a", .dead = true);
    expect_list(s, "mail", "b", "c", "a");
}

static void from_and_to_compare_with_due(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "done");
    expect_claim(s, "mail", "done");
    CHECK(ack(s, "done") == 1);
    schedule(s, "mail", .id = "a", .at = HOUR);
    schedule(s, "mail", .id = "b", .in = 2 * HOUR);
    schedule(s, "mail", .id = "c", .every = "3h");
    schedule(s, "mail", .id = "d", .at = -HOUR);
    expect_ids(list(s, "mail", .has_from = true, .from = HOUR), "a", "b", "c");
    expect_ids(list(s, "mail", .has_to = true, .to = 2 * HOUR), "d", "a");
    expect_ids(list(s, "mail", .has_from = true, .from = HOUR + 1, .has_to = true, .to = 3 * HOUR),
               "b");
    expect_ids(list(s, "mail", .has_state = true, .state = BEL_SCHEDULED, .has_to = true,
                    .to = 3 * HOUR + 1),
               "a", "b", "c");
    expect_no_ids(list(s, "mail", .has_from = true, .from = 4 * HOUR));
}

static void a_page_has_a_hundred_unless_it_says(struct subject *s)
{
    for (unsigned i = 0; i < 101; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%03u", i);
        schedule(s, "mail", .id = id, .in = HOUR);
    }
    const struct heard *page = list(s, "mail");
    CHECK_EQ(page->reply.timers.count, 100);
    CHECK(page->reply.timers.cursor.bytes > 0);
    page = list(s, "mail", .count = 1000);
    CHECK_EQ(page->reply.timers.count, 101);
    CHECK(is_text(page->reply.timers.items[100].id, "100"));
    CHECK(page->reply.timers.cursor.bytes == 0);
}

/* Lists the page after another one. */
static const struct heard *page_after(struct subject *s, const struct heard *page, uint32_t count)
{
    struct bel_command command = {.verb = BEL_VERB_LIST};
    CHECK(page->reply.timers.cursor.bytes > 0);
    command.list.topic = view("mail");
    command.list.count = count;
    command.list.cursor = page->reply.timers.cursor;
    return ask(s, &command);
}

static void a_page_ends_after_a_mebibyte(struct subject *s)
{
    static char payload[(300 << 10) + 1];
    memset(payload, 'x', sizeof payload - 1);
    for (unsigned i = 0; i < 6; i++) {
        char id[2] = {(char)('a' + i), 0};
        schedule(s, "mail", .id = id, .payload = payload, .in = HOUR);
    }
    const struct heard *page = list(s, "mail");
    expect_ids(page, "a", "b", "c", "d");
    expect_ids(page_after(s, page, 100), "e", "f");
}

static void what_stays_is_listed_once_while_others_change(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = MINUTE);
    schedule(s, "mail", .id = "b", .in = 2 * MINUTE);
    schedule(s, "mail", .id = "c", .in = 3 * MINUTE);
    schedule(s, "mail", .id = "d", .in = 4 * MINUTE);
    schedule(s, "mail", .id = "e", .in = 5 * MINUTE);
    const struct heard *page = list(s, "mail", .count = 2);
    expect_ids(page, "a", "b");
    CHECK(cancel(s, "mail", "b") == 1 && cancel(s, "mail", "c") == 1);
    schedule(s, "mail", .id = "before", .in = SECOND);
    page = page_after(s, page, 1);
    expect_ids(page, "d");
    advance(s, 4 * MINUTE);
    expect_claim(s, "mail", "before");
    page = page_after(s, page, 9);
    expect_ids(page, "e");
}

static void a_timer_that_becomes_ready_keeps_its_place(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = MINUTE);
    schedule(s, "mail", .id = "b", .at = 2 * MINUTE);
    schedule(s, "mail", .id = "c", .in = 3 * MINUTE);
    const struct heard *page = list(s, "mail", .count = 1);
    expect_ids(page, "a");
    advance(s, 150 * SECOND);
    expect_ids(page_after(s, page, 9), "b", "c");
}

static void cursors_go_from_one_kind_to_the_next(struct subject *s)
{
    fill(s);
    advance(s, 70 * MINUTE);
    const struct heard *page = list(s, "mail", .count = 1);
    unsigned count = 1;
    for (; page->reply.timers.cursor.bytes > 0; count++) {
        page = page_after(s, page, 1);
        if (page->reply.timers.count == 0) break;
        CHECK_EQ(page->reply.timers.count, 1);
    }
    const struct heard *all = list(s, "mail");
    CHECK_EQ(all->reply.timers.count, 13);
    CHECK_EQ(count, 13);
}

static void nothing_is_no_cursor(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    struct bel_command command = {.verb = BEL_VERB_LIST};
    command.list.topic = view("mail");
    command.list.cursor = view("nonsense");
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    command.list.cursor = (struct bel_view){"\0\0\xff", 3};
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
}

static void get_finds_what_there_is(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    CHECK(get(s, "mail", "b") == NULL);
    CHECK(get(s, "push", "a") == NULL);
    CHECK(get(s, "mail", "a b") == NULL);
    CHECK(get(s, "mail", "a@1") == NULL);
    CHECK(get(s, "mail", "a") != NULL);
}

static void a_topic_counts_by_state(struct subject *s)
{
    fill(s);
    const struct bel_topic *counted = topic(s, "mail");
    static const uint64_t want[BEL_STATES] = {3, 1, 1, 0, 1, 1, 1, 1, 0};
    for (size_t i = 0; i < BEL_STATES; i++) {
        CHECK_EQ(counted->counts[i], want[i]);
    }
    CHECK(counted->plans == 2 && !counted->paused && counted->oldest_age_ms == 0);
}

static void a_topic_says_how_old_the_first_ready_one_is(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = -MINUTE);
    schedule(s, "mail", .id = "b", .in = MINUTE);
    CHECK(topic(s, "mail")->oldest_age_ms == MINUTE);
    expect_claim(s, "mail", "a");
    CHECK(topic(s, "mail")->oldest_age_ms == 0);
    CHECK(ack(s, "a") == 1);
    advance(s, 2 * MINUTE);
    CHECK(topic(s, "mail")->oldest_age_ms == MINUTE);
}

static void what_has_no_due_is_not_listed_by_priority(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "20m", .mode = BEL_PLAN_DELAY, .priority = 200);
    schedule(s, "mail", .id = "q", .every = "20m", .overlap = BEL_OVERLAP_QUEUE, .priority = 100);
    advance(s, 40 * MINUTE);
    expect_list(s, "mail", occurrence("q", 20 * MINUTE), occurrence("p", 20 * MINUTE), "q", "p",
                occurrence("q", 40 * MINUTE));
}

static const struct test tests[] = {
    TEST(timers_are_listed_by_due_then_what_has_none_then_the_ends),
    TEST(a_state_lists_only_those),
    TEST(what_has_no_due_is_listed_by_sequence),
    TEST(ends_are_listed_by_when_they_finished),
    TEST(from_and_to_compare_with_due),
    TEST(a_page_has_a_hundred_unless_it_says),
    TEST(a_page_ends_after_a_mebibyte),
    TEST(what_stays_is_listed_once_while_others_change),
    TEST(a_timer_that_becomes_ready_keeps_its_place),
    TEST(cursors_go_from_one_kind_to_the_next),
    TEST(nothing_is_no_cursor),
    TEST(get_finds_what_there_is),
    TEST(a_topic_counts_by_state),
    TEST(a_topic_says_how_old_the_first_ready_one_is),
    TEST(what_has_no_due_is_not_listed_by_priority),
};

GROUP(listing, 0, tests);
