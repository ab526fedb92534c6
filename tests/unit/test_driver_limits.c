/* SPDX-License-Identifier: MIT */

/* LIMIT as a function of a driver, with an engine in memory and a clock that the test moves. */
#include "driver_rig.h"

#include <string.h>

enum {
    RESOURCES = 5,
};

static struct bel_limit of_api(enum bel_limit_action action)
{
    return (struct bel_limit){.action = action, .resource = BEL_VIEW("api")};
}

static void schedule(void)
{
    struct bel_request request = {.command = {.verb = BEL_VERB_SCHEDULE,
                                              .schedule = {.topic = BEL_VIEW("t"),
                                                           .when = BEL_WHEN_IN,
                                                           .resource = BEL_VIEW("api")}}};
    CHECK(bel_driver_call(driver, &request) == 0);
}

static struct bel_delivery *claim(void)
{
    struct bel_delivery *due = NULL;
    CHECK(bel_driver_claim(driver, "t", 0, &due) == 0);
    return due;
}

static void a_resource_is_limited_shown_and_cleared(void)
{
    struct bel_limit_reply *reply = NULL;
    start();
    struct bel_limit limit = of_api(BEL_LIMIT_SET);
    CHECK(bel_driver_limit(driver, &limit, &reply) == BEL_ENOTFOUND && reply == NULL);
    limit.has_concurrency = true;
    limit.concurrency = 2;
    CHECK(bel_driver_limit(driver, &limit, NULL) == 0);
    schedule();
    struct bel_delivery *due = claim();
    CHECK(due != NULL && bel_driver_limited(driver, due, 20000) == 0);
    bel_delivery_destroy(due);
    CHECK(claim() == NULL);

    limit = of_api(BEL_LIMIT_SET);
    CHECK(bel_driver_limit(driver, &limit, &reply) == 0 && reply->count == 1);
    const struct bel_limit_state *state = &reply->items[0];
    CHECK(strcmp(state->name.data, "api") == 0 && state->concurrency == 2);
    CHECK(state->limited_until.ms == START.ms + 20000);
    CHECK_EQ(state->reports_count, 1);
    CHECK_EQ(state->reports[0].for_ms, 20000);
    bel_limit_reply_destroy(reply);

    limit = of_api(BEL_LIMIT_CLEAR);
    CHECK(bel_driver_limit(driver, &limit, &reply) == 0 && reply->count == 1);
    CHECK(reply->items[0].limited_until.ms == 0 && reply->items[0].concurrency == 2);
    bel_limit_reply_destroy(reply);
    due = claim();
    CHECK(due != NULL && bel_driver_ack(driver, due) == 0);
    bel_delivery_destroy(due);

    limit = of_api(BEL_LIMIT_DELETE);
    CHECK(bel_driver_limit(driver, &limit, &reply) == 0 && reply->changed == 1);
    bel_limit_reply_destroy(reply);
    CHECK(bel_driver_limit(driver, &limit, &reply) == 0 && reply->changed == 0);
    bel_limit_reply_destroy(reply);
    end();
}

static void resources_are_listed_in_pages(void)
{
    struct bel_limit query = {.action = BEL_LIMIT_LIST, .count = 2};
    struct bel_limit_reply *page = NULL, *last;
    unsigned seen = 0, pages = 0;
    start();
    for (unsigned i = 0; i < RESOURCES; i++) {
        char name[] = {'r', (char)('0' + i)};
        struct bel_limit limit = {.action = BEL_LIMIT_SET,
                                  .resource = {name, sizeof name},
                                  .has_until = true,
                                  .until_ms = 1000};
        CHECK(bel_driver_limit(driver, &limit, NULL) == 0);
    }
    do {
        last = page;
        CHECK(bel_driver_limit(driver, &query, &page) == 0);
        bel_limit_reply_destroy(last); /* the cursor of the query pointed into it */
        for (size_t i = 0; i < page->count; i++) {
            CHECK(((const char *)page->items[i].name.data)[1] == (char)('0' + seen));
            seen++;
        }
        query.cursor = page->cursor;
        pages++;
        CHECK(pages <= RESOURCES);
    } while (page->cursor.bytes > 0);
    bel_limit_reply_destroy(page);
    CHECK_EQ(seen, RESOURCES);
    struct bel_limit clear = {.action = BEL_LIMIT_CLEAR_ALL};
    CHECK(bel_driver_limit(driver, &clear, &page) == 0);
    CHECK_EQ(page->changed, RESOURCES);
    bel_limit_reply_destroy(page);
    end();
}

int main(void)
{
    RUN(a_resource_is_limited_shown_and_cleared);
    RUN(resources_are_listed_in_pages);
    return 0;
}
