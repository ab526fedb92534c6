/* SPDX-License-Identifier: MIT */

/*
 * The usual requests as functions. Each fills in a request and calls bel_driver_call(). The views
 * of a reply are valid only until `done` returns, so a claim copies its delivery there.
 */
#include "belfry/driver.h"

#include "backend/limit_copy.h"
#include "core/delivery.h"

#include <string.h>

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, text != NULL ? strlen(text) : 0};
}

int bel_driver_schedule(struct bel_driver *driver, const char *topic, const char *id,
                        struct bel_view payload, uint64_t delay_ms)
{
    struct bel_request request = {.command = {.verb = BEL_VERB_SCHEDULE,
                                              .schedule = {.topic = view_of(topic),
                                                           .id = view_of(id),
                                                           .payload = payload,
                                                           .when = BEL_WHEN_IN,
                                                           .delay_ms = delay_ms}}};
    return bel_driver_call(driver, &request);
}

/* Sets the bool of the caller to whether the count of the reply is not 0. */
static void note_count(struct bel_request *request, const struct bel_reply *reply)
{
    bool *out = request->user;
    *out = reply->err == 0 && reply->count > 0;
}

int bel_driver_cancel(struct bel_driver *driver, const char *topic, const char *id,
                      bool *out_was_there)
{
    bool was_there = false;
    struct bel_view ids[] = {view_of(id)};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_CANCEL,
                    .cancel = {.topic = view_of(topic), .ids = ids, .ids_count = 1}},
        .done = note_count,
        .user = &was_there};
    int err = bel_driver_call(driver, &request);
    if (err == 0 && out_was_there != NULL) *out_was_there = was_there;
    return err;
}

/* --- deliveries --- */

/* What a claim got. */
struct claimed {
    struct bel_delivery *delivery;
    bool is_out_of_memory;
};

static void note_delivery(struct bel_request *request, const struct bel_reply *reply)
{
    struct claimed *claimed = request->user;
    if (reply->err != 0 || reply->deliveries.count == 0) return;
    claimed->delivery = bel__delivery_copy(&reply->deliveries.items[0]);
    claimed->is_out_of_memory = claimed->delivery == NULL;
}

int bel_driver_claim(struct bel_driver *driver, const char *topic, uint64_t wait_ms,
                     struct bel_delivery **out)
{
    struct claimed claimed = {0};
    struct bel_view topics[] = {view_of(topic)};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_CLAIM,
                    .claim = {.topics = topics, .topics_count = 1, .wait_ms = wait_ms}},
        .done = note_delivery,
        .user = &claimed};
    int err = bel_driver_call(driver, &request);
    if (err == 0 && claimed.is_out_of_memory) err = BEL_ENOMEM;
    if (err) return err;
    *out = claimed.delivery;
    return 0;
}

static int ack(struct bel_driver *driver, const struct bel_ack *command)
{
    bool was_live = false;
    struct bel_request request = {
        .command = {.verb = BEL_VERB_ACK, .ack = *command}, .done = note_count, .user = &was_live};
    int err = bel_driver_call(driver, &request);
    return err == 0 && !was_live ? BEL_ESTALE : err;
}

int bel_driver_ack(struct bel_driver *driver, const struct bel_delivery *delivery)
{
    return ack(driver, &(struct bel_ack){.tokens = &delivery->token, .tokens_count = 1});
}

int bel_driver_ack_result(struct bel_driver *driver, const struct bel_delivery *delivery,
                          struct bel_view result)
{
    return ack(driver, &(struct bel_ack){.tokens = &delivery->token,
                                         .tokens_count = 1,
                                         .has_result = true,
                                         .result = result});
}

static int fail(struct bel_driver *driver, const struct bel_fail *command)
{
    struct bel_request request = {.command = {.verb = BEL_VERB_FAIL, .fail = *command}};
    return bel_driver_call(driver, &request);
}

int bel_driver_fail(struct bel_driver *driver, const struct bel_delivery *delivery,
                    const char *reason)
{
    return fail(driver, &(struct bel_fail){.token = delivery->token, .reason = view_of(reason)});
}

int bel_driver_fail_resource(struct bel_driver *driver, const struct bel_delivery *delivery,
                             const char *reason)
{
    return fail(driver, &(struct bel_fail){.token = delivery->token,
                                           .reason = view_of(reason),
                                           .kind = BEL_FAIL_RESOURCE});
}

int bel_driver_limited(struct bel_driver *driver, const struct bel_delivery *delivery,
                       uint64_t delay_ms)
{
    return fail(driver, &(struct bel_fail){.token = delivery->token,
                                           .kind = BEL_FAIL_LIMITED,
                                           .has_delay = delay_ms > 0,
                                           .delay_ms = delay_ms});
}

/* --- limits --- */

static void note_limits(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_limit_reply **out = request->user;
    if (reply->err == 0) *out = bel__limit_reply_copy(&reply->limits);
}

int bel_driver_limit(struct bel_driver *driver, const struct bel_limit *limit,
                     struct bel_limit_reply **out)
{
    struct bel_limit_reply *copy = NULL;
    struct bel_request request = {.command = {.verb = BEL_VERB_LIMIT, .limit = *limit},
                                  .done = out != NULL ? note_limits : NULL,
                                  .user = (void *)&copy};
    int err = bel_driver_call(driver, &request);
    if (err != 0 || out == NULL) return err;
    if (copy == NULL) return BEL_ENOMEM;
    *out = copy;
    return 0;
}
