/* SPDX-License-Identifier: MIT */

/* The usual requests as functions, with an engine in memory and a clock that the test moves. */
#include "driver_rig.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>

#define HOUR UINT64_C(3600000) /* ms */

static void timers_are_scheduled_claimed_failed_and_acknowledged(void)
{
    struct bel_delivery *due = NULL;
    bool was_there = false;
    start();
    CHECK(bel_driver_schedule(driver, "mail", "a", BEL_VIEW("one\0two"), 0) == 0);
    CHECK(bel_driver_schedule(driver, "mail", "b", BEL_VIEW("later"), HOUR) == 0);
    CHECK(bel_driver_schedule(driver, "mail", NULL, BEL_VIEW(""), HOUR) == 0);
    CHECK(bel_driver_schedule(driver, "no topic", "a", BEL_VIEW(""), 0) == BEL_EINVAL);
    CHECK(bel_driver_cancel(driver, "mail", "b", &was_there) == 0 && was_there);
    CHECK(bel_driver_cancel(driver, "mail", "b", &was_there) == 0 && !was_there);
    CHECK(bel_driver_cancel(driver, "mail", "b", NULL) == 0);

    CHECK(bel_driver_claim(driver, "mail", 0, &due) == 0 && due != NULL);
    CHECK(strcmp(due->id.data, "a") == 0 && strcmp(due->topic.data, "mail") == 0);
    CHECK(due->payload.bytes == 7 && memcmp(due->payload.data, "one\0two", 8) == 0);
    CHECK_EQ(due->attempt, 1);
    CHECK(bel_driver_fail(driver, due, "the relay is down") == 0);
    CHECK(bel_driver_fail(driver, due, NULL) == BEL_ESTALE);
    CHECK(bel_driver_ack(driver, due) == BEL_ESTALE);
    bel_delivery_destroy(due);

    CHECK(bel_driver_claim(driver, "mail", 0, &due) == 0 && due == NULL); /* it is retried later */
    bel_clock_fake_advance(fake, 30000 * MS);
    bel_driver_wake(driver);
    CHECK(bel_driver_claim(driver, "mail", 0, &due) == 0 && due != NULL);
    CHECK_EQ(due->attempt, 2);
    CHECK(bel_driver_ack(driver, due) == 0);
    bel_delivery_destroy(due);
    bel_delivery_destroy(NULL);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(bel_driver_claim(driver, "mail", 0, &due) == BEL_ECLOSED);
    end();
}

/* What a claim was answered with. */
struct answer {
    sem_t is_done;
    size_t count;
    int err;
};

static void note_answer(struct bel_request *request, const struct bel_reply *reply)
{
    struct answer *answer = request->user;
    answer->err = reply->err;
    answer->count = reply->deliveries.count;
    (void)sem_post(&answer->is_done);
}

/* The fake clock stands still: without the call the claims would wait for ever. */
static void the_wait_of_one_claim_is_ended(void)
{
    struct answer answers[2] = {{.err = 1}, {.err = 1}};
    struct bel_request claims[2];
    struct bel_view topic = BEL_VIEW("mail");
    start();
    for (int i = 0; i < 2; i++) {
        CHECK(sem_init(&answers[i].is_done, 0, 0) == 0);
        claims[i] = (struct bel_request){
            .command = {.verb = BEL_VERB_CLAIM,
                        .claim = {.topics = &topic, .topics_count = 1, .wait_ms = HOUR}},
            .done = note_answer,
            .user = &answers[i]};
        CHECK(bel_driver_submit(driver, &claims[i]) == 0);
    }
    CHECK(bel_driver_end_wait(driver, &claims[0]) == 0);
    CHECK(sem_trywait(&answers[0].is_done) == 0);
    CHECK(answers[0].err == 0 && answers[0].count == 0);
    CHECK(bel_driver_end_wait(driver, &claims[0]) == 0); /* it is done already */
    CHECK(sem_trywait(&answers[1].is_done) != 0);

    CHECK(bel_driver_schedule(driver, "mail", "a", BEL_VIEW(""), 0) == 0); /* for the other one */
    while (sem_wait(&answers[1].is_done) != 0) {
        CHECK(errno == EINTR);
    }
    CHECK(answers[1].err == 0 && answers[1].count == 1);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(bel_driver_end_wait(driver, &claims[1]) == BEL_ECLOSED);
    end();
}

int main(void)
{
    RUN(the_wait_of_one_claim_is_ended);
    RUN(timers_are_scheduled_claimed_failed_and_acknowledged);
    return 0;
}
