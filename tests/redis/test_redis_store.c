/* SPDX-License-Identifier: MIT */

/* The store of a program that uses the library, by its public functions alone. */
#include "../check.h"
#include "belfry/driver.h"
#include "belfry/redis_store.h"
#include "redis_server.h"

#include <stdlib.h>
#include <string.h>

enum {
    SKIPPED = 77,
    URL_BYTES = 128,
    WAIT_MS = 60000,
    SHORT_MS = 50,
};

static struct redis_server server;
static char url[URL_BYTES];
static unsigned warnings;

static void count(void *context, const struct bel_redis_store_finding *finding)
{
    CHECK(strcmp(context, "mine") == 0);
    CHECK(finding->about[0] != 0 && finding->what[0] != 0 && finding->advice[0] != 0);
    warnings++;
}

static struct bel_redis_store *open_store(const char *name_space)
{
    struct bel_redis_store_options options = {.url = url, .name_space = name_space};
    struct bel_redis_store_why why = {""};
    struct bel_redis_store *store = NULL;
    CHECK_NOTE("%s", why.text);
    CHECK(bel_redis_store_open(&options, &store, &why) == 0);
    return store;
}

static struct bel_driver *start(struct bel_redis_store *store)
{
    struct bel_driver *driver;
    CHECK(bel_driver_start(bel_redis_store_backend(store), NULL, &driver) == 0);
    return driver;
}

static void stop(struct bel_redis_store *store, struct bel_driver *driver)
{
    bel_driver_destroy(driver);
    bel_redis_store_close(store);
}

static int open_with(const struct bel_redis_store_options *options, char text[BEL_WHY_BYTES])
{
    struct bel_redis_store_why why = {""};
    struct bel_redis_store *store = NULL;
    int err = bel_redis_store_open(options, &store, &why);
    CHECK(store == NULL);
    memcpy(text, why.text, sizeof why.text);
    CHECK(bel_redis_store_open(options, &store, NULL) == err);
    return err;
}

static void two_stores_share_timers(void)
{
    struct bel_redis_store *one = open_store(NULL), *two = open_store(NULL);
    struct bel_driver *producer = start(one), *worker = start(two);
    struct bel_delivery *due = NULL;
    bool was_there = false;
    CHECK(bel_driver_schedule(producer, "mail", "a", BEL_VIEW("hello"), SHORT_MS) == 0);
    CHECK(bel_driver_claim(worker, "mail", WAIT_MS, &due) == 0);
    CHECK(due != NULL && strcmp(due->id.data, "a") == 0 && strcmp(due->payload.data, "hello") == 0);
    CHECK(bel_driver_ack(producer, due) == 0);
    CHECK(bel_driver_ack(worker, due) == BEL_ESTALE);
    bel_delivery_destroy(due);
    CHECK(bel_driver_schedule(worker, "mail", "b", BEL_VIEW("x"), WAIT_MS) == 0);
    CHECK(bel_driver_cancel(producer, "mail", "b", &was_there) == 0 && was_there);
    stop(one, producer);
    stop(two, worker);
}

static void a_namespace_is_its_own(void)
{
    struct bel_redis_store *one = open_store("one"), *two = open_store("two");
    struct bel_driver *producer = start(one), *worker = start(two);
    struct bel_delivery *due = NULL;
    CHECK(bel_driver_schedule(producer, "mail", "a", BEL_VIEW("x"), 0) == 0);
    CHECK(bel_driver_claim(worker, "mail", SHORT_MS, &due) == 0 && due == NULL);
    CHECK(bel_driver_claim(producer, "mail", 0, &due) == 0 && due != NULL);
    bel_delivery_destroy(due);
    stop(one, producer);
    stop(two, worker);
}

static void a_program_without_a_driver_makes_calls(void)
{
    struct bel_redis_store *store = open_store("calls");
    struct bel_backend *backend = bel_redis_store_backend(store);
    struct bel_request request = {
        .command = {BEL_VERB_SCHEDULE,
                    .schedule = {.topic = BEL_VIEW("mail"), .id = BEL_VIEW("a")}}};
    CHECK(bel_backend_descriptor(backend) >= 0);
    CHECK(bel_backend_call(backend, bel_clock_system(), &request) == 0);
    request.command.verb = BEL_VERB_JOB_LIST;
    request.command.job_list = (struct bel_job_list){.count = 1};
    CHECK(bel_backend_call(backend, bel_clock_system(), &request) == BEL_EUNSUPPORTED);
    bel_redis_store_close(store);
}

static int end; /* of the request below */

static void ended(struct bel_request *request, const struct bel_reply *reply)
{
    (void)request;
    end = reply->err;
}

static void closing_answers_what_is_under_way(void)
{
    struct bel_redis_store *store = open_store("closing");
    struct bel_backend *backend = bel_redis_store_backend(store);
    struct bel_view topic = BEL_VIEW("mail");
    struct bel_request claim = {
        .command = {BEL_VERB_CLAIM,
                    .claim = {.topics = &topic, .topics_count = 1, .wait_ms = WAIT_MS}},
        .done = ended};
    bel_backend_submit(backend, &claim);
    (void)bel_backend_turn(backend, bel_clock_now(bel_clock_system()));
    bel_redis_store_close(store);
    CHECK(end == BEL_ECLOSED);
    bel_redis_store_close(NULL);
}

static void what_is_not_valid_is_refused(void)
{
    char why[BEL_WHY_BYTES];
    CHECK(open_with(&(struct bel_redis_store_options){.url = NULL}, why) == BEL_EINVAL);
    CHECK(open_with(&(struct bel_redis_store_options){.url = "http://x"}, why) == BEL_EINVAL);
    CHECK(strstr(why, "http") != NULL);
    CHECK(open_with(&(struct bel_redis_store_options){.url = url, .name_space = "a b"}, why) ==
          BEL_EINVAL);
    CHECK(open_with(&(struct bel_redis_store_options){.url = url, .name_space = "{a}"}, why) ==
          BEL_EINVAL);
    CHECK(open_with(&(struct bel_redis_store_options){.url = url, .replicas = 1}, why) ==
          BEL_EINVAL);
    CHECK(open_with(&(struct bel_redis_store_options){.url = url, .durability = 7}, why) ==
          BEL_EINVAL);
    CHECK(open_with(&(struct bel_redis_store_options){.url = url, .payload_bytes_max = UINT32_MAX},
                    why) == BEL_EINVAL);
    CHECK(open_with(&(struct bel_redis_store_options){.url = url, .password_file = "/none"}, why) ==
          BEL_EIO);
    CHECK(open_with(&(struct bel_redis_store_options){.url = "unix:///none", .wait_ms = SHORT_MS},
                    why) == BEL_EBUSY);
}

static void servers_are_examined(void)
{
    char why[BEL_WHY_BYTES], reply[256];
    struct bel_redis_store_options options = {
        .url = url, .warn = count, .context = (char[]){"mine"}};
    struct bel_redis_store *store;
    CHECK(bel_redis_store_open(&options, &store, NULL) == 0 && warnings == 1);
    bel_redis_store_close(store);
    CHECK(
        open_with(&(struct bel_redis_store_options){.url = url, .durability = BEL_REDIS_STORE_WAIT},
                  why) == BEL_ECONFLICT);
    CHECK(strstr(why, "no replica") != NULL);
    redis_server_ask(&server, "CONFIG SET maxmemory-policy allkeys-lru", reply, sizeof reply);
    CHECK(open_with(&options, why) == BEL_ECONFLICT && strstr(why, "noeviction") != NULL);
    redis_server_ask(&server, "CONFIG SET maxmemory-policy noeviction", reply, sizeof reply);
    redis_server_ask(&server, "CONFIG SET requirepass secret", reply, sizeof reply);
    CHECK(open_with(&options, why) == BEL_ECONFLICT && strstr(why, "password") != NULL);
}

/* The connection is made by the driver, after the examination. */
static void a_policy_that_evicts_refuses_schedules(void)
{
    char reply[256];
    bool was_there = false;
    struct bel_redis_store *store = open_store(NULL);
    redis_server_ask(&server, "CONFIG SET maxmemory-policy allkeys-lru", reply, sizeof reply);
    struct bel_driver *driver = start(store);
    CHECK(bel_driver_schedule(driver, "mail", "a", BEL_VIEW("x"), WAIT_MS) == BEL_EIO);
    CHECK(bel_driver_cancel(driver, "mail", "a", &was_there) == 0 && !was_there);
    stop(store, driver);
    redis_server_ask(&server, "CONFIG SET maxmemory-policy noeviction", reply, sizeof reply);
}

int main(void)
{
    if (!redis_server_start(&server)) {
        (void)printf("SKIPPED: there is no such server on this machine\n");
        return SKIPPED;
    }
    (void)snprintf(url, sizeof url, "unix://%s", server.path);
    RUN(two_stores_share_timers);
    RUN(a_namespace_is_its_own);
    RUN(a_program_without_a_driver_makes_calls);
    RUN(closing_answers_what_is_under_way);
    RUN(what_is_not_valid_is_refused);
    RUN(a_policy_that_evicts_refuses_schedules);
    RUN(servers_are_examined);
    redis_server_stop(&server);
    return EXIT_SUCCESS;
}
