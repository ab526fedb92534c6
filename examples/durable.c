/* SPDX-License-Identifier: MIT */

/*
 * A timer in a data directory: after the first call returns, no crash loses it.
 *
 *     durable             creates the directory "timers", prints "the tea is ready"
 *
 * An engine keeps the timers. A driver is a thread that runs the engine, so that any other thread
 * can call it. If this program is killed after its first call, the next run delivers the timer.
 */
#include <belfry/driver.h>
#include <belfry/engine.h>

#include <stdio.h>
#include <string.h>

static void take(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_view *token = request->user;
    static char copy[BEL_TOKEN_BYTES_MAX]; /* a reply is valid until this returns */
    if (reply->err != 0 || reply->deliveries.count == 0) return;
    const struct bel_delivery *got = &reply->deliveries.items[0];
    printf("%.*s\n", (int)got->payload.bytes, (const char *)got->payload.data);
    *token = (struct bel_view){memcpy(copy, got->token.data, got->token.bytes), got->token.bytes};
}

int main(void)
{
    struct bel_view topic = BEL_VIEW("kitchen"), token = {0};
    struct bel_request schedule = {
        .command = {BEL_VERB_SCHEDULE, .schedule = {.topic = topic,
                                                    .id = BEL_VIEW("tea"),
                                                    .payload = BEL_VIEW("the tea is ready"),
                                                    .when = BEL_WHEN_IN,
                                                    .delay_ms = 100}}};
    struct bel_request claim = {
        .command = {BEL_VERB_CLAIM,
                    .claim = {.topics = &topic, .topics_count = 1, .wait_ms = 60000}},
        .done = take,
        .user = &token};
    struct bel_request ack = {
        .command = {BEL_VERB_ACK, .ack = {.tokens = &token, .tokens_count = 1}}};
    struct bel_engine_options options = {.folder = "timers",
                                         .now = bel_clock_now(bel_clock_system())};
    struct bel_engine *engine;
    struct bel_driver *driver;

    if (bel_engine_open(&options, &engine, NULL) != 0) return 1;
    if (bel_driver_start(bel_engine_backend(engine), NULL, &driver) != 0) return 1;
    int err = bel_driver_call(driver, &schedule);    /* on disk when this returns */
    if (!err) err = bel_driver_call(driver, &claim); /* waits until the timer is due */
    if (!err) err = bel_driver_call(driver, &ack);   /* without this it is delivered again */
    bel_driver_destroy(driver);
    bel_engine_close(engine);
    return err ? 1 : 0;
}
