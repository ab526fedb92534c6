/* SPDX-License-Identifier: MIT */

/*
 * The library's own client against a real server: client_belfry PORT PORT-WITH-KEYS KEY
 *
 * Every function for jobs and limits is called, with both versions of RESP, and so are their
 * errors. The clock of the first server is virtual: time passes only by CLOCK ADVANCE.
 */
#include "belfry/client.h"

#include "check.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE_S = 120,
    TASKS = 1001, /* one more than JOB GET shows at once */
    JOBS = 101,   /* one more than JOB LIST shows at once */
    CURSOR_BYTES = 256,
    JOB_BYTES = TASKS * 32 + 64,
};

static const char *port, *port_with_keys, *key;
static unsigned protocol;
static struct bel_client *client;

/* A cursor that outlives the reply that it was in. */
struct cursor {
    char data[CURSOR_BYTES];
    size_t bytes;
};

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static bool is(struct bel_view view, const char *text)
{
    return view.bytes == strlen(text) && memcmp(view.data, text, view.bytes) == 0;
}

static void keep(struct cursor *cursor, struct bel_view view)
{
    CHECK(view.bytes <= sizeof cursor->data);
    memcpy(cursor->data, view.data, view.bytes);
    cursor->bytes = view.bytes;
}

static struct bel_view kept(const struct cursor *cursor)
{
    return (struct bel_view){cursor->data, cursor->bytes};
}

static int connect_to(const char *where, const char *with_key, struct bel_client **out,
                      struct bel_client_why *why)
{
    char address[64];
    struct bel_client_options options = {.protocol = protocol, .timeout_ms = PATIENCE_S * 1000};
    if (with_key != NULL) {
        options.user = BEL_VIEW("worker");
        options.key = view_of(with_key);
    }
    (void)snprintf(address, sizeof address, "127.0.0.1:%s", where);
    return bel_client_connect(address, &options, out, why);
}

static struct bel_client *open_at(const char *where, const char *with_key)
{
    struct bel_client_why why;
    struct bel_client *opened = NULL;
    int err = connect_to(where, with_key, &opened, &why);
    CHECK_NOTE("%s", err ? why.text : "");
    CHECK(err == 0);
    return opened;
}

/* Checks that a call has returned an error, and with which code and text the server refused it. */
static void refused(int err, int wanted, const char *code, const char *text)
{
    const struct bel_client_why *why = bel_client_error(client);
    CHECK_NOTE("error %d, %.200s", err, why->text);
    CHECK(err == wanted);
    CHECK(strcmp(why->code, code) == 0);
    CHECK(strstr(why->text, text) != NULL);
}

static void done(int err)
{
    CHECK_NOTE("error %d, %.200s", err, bel_client_error(client)->text);
    CHECK(err == 0);
    CHECK(bel_client_error(client)->code[0] == '\0');
}

static void advance(const char *duration)
{
    const struct bel_view args[] = {BEL_VIEW("CLOCK"), BEL_VIEW("ADVANCE"), view_of(duration)};
    const struct bel_value *reply;
    CHECK(bel_client_call(client, args, 3, &reply) == 0);
    CHECK(reply->type != BEL_VALUE_ERROR);
}

static struct bel_client_job get(const char *id)
{
    struct bel_client_job job;
    done(bel_client_job_get(client, id, BEL_VIEW(""), &job));
    CHECK(is(job.id, id));
    return job;
}

static struct bel_delivery *claim(const char *topic, const char *id)
{
    struct bel_delivery *delivery = NULL;
    done(bel_client_claim(client, topic, 0, &delivery));
    CHECK_NOTE("nothing is due in %s", topic);
    CHECK(delivery != NULL);
    CHECK_NOTE("got %s, not %s", (const char *)delivery->id.data, id);
    CHECK(is(delivery->id, id));
    return delivery;
}

static void check_nothing_due(const char *topic)
{
    struct bel_delivery *delivery = NULL;
    done(bel_client_claim(client, topic, 0, &delivery));
    CHECK(delivery == NULL);
}

static void a_job_from_its_text_to_its_end(void)
{
    struct bel_client_submitted submitted;
    done(bel_client_job_submit(client,
                               BEL_VIEW("{\"id\": \"n\", \"tasks\": ["
                                        "{\"id\": \"fetch\", \"topic\": \"etl\"},"
                                        "{\"id\": \"load\", \"topic\": \"etl\", "
                                        "\"after\": [\"fetch\"]}]}"),
                               &submitted));
    CHECK(is(submitted.id, "n"));
    CHECK_EQ(submitted.tasks, 2);
    CHECK_EQ(submitted.edges, 1);

    struct bel_client_job job = get("n");
    CHECK(is(job.state, "running") && job.reason.bytes == 0 && job.cursor.bytes == 0);
    CHECK(job.progress == 0 && job.total == 2);
    CHECK(job.tasks != NULL && job.tasks->type == BEL_VALUE_LIST && job.tasks->count == 2);
    CHECK(bel_value_is(bel_value_find(&job.tasks->items[1], "state"), "blocked"));
    CHECK(bel_value_find(job.fields, "priority")->number == 5);

    struct bel_delivery *fetch = claim("etl", "n/fetch");
    CHECK_EQ(fetch->results_count, 0);
    done(bel_client_ack_result(client, fetch, BEL_VIEW("20 rows")));
    refused(bel_client_ack(client, fetch), BEL_ESTALE, "", "");
    bel_delivery_destroy(fetch);
    CHECK_EQ(get("n").progress, 50);

    struct bel_delivery *load = claim("etl", "n/load");
    CHECK(load->results_count == 1 && load->results[0].has_result);
    CHECK(is(load->results[0].task, "fetch") && is(load->results[0].result, "20 rows"));
    done(bel_client_ack(client, load));
    bel_delivery_destroy(load);
    job = get("n");
    CHECK(is(job.state, "done") && job.progress == 100);

    bool has_changed = true;
    done(bel_client_job_cancel(client, "n", &has_changed));
    CHECK(!has_changed);
    done(bel_client_job_pause(client, "n", &has_changed));
    CHECK(!has_changed);
}

static void a_job_is_replaced(void)
{
    struct bel_client_submitted submitted = {.tasks = 7};
    struct bel_view one =
        BEL_VIEW("{\"id\": \"r\", \"tasks\": [{\"id\": \"a\", \"topic\": \"r\"}]}");
    done(bel_client_job_submit(client, one, NULL));
    refused(bel_client_job_submit(client, one, &submitted), BEL_ECONFLICT, "CONFLICT", "");
    CHECK_EQ(submitted.tasks, 7); /* untouched */
    struct bel_view none = BEL_VIEW("{\"id\": \"r\", \"tasks\": []}");
    done(bel_client_job_replace(client, none, &submitted));
    CHECK(is(submitted.id, "r") && submitted.tasks == 0 && submitted.edges == 0);
    CHECK(is(get("r").state, "done"));
    done(bel_client_job_replace(client, one, NULL));
    CHECK_EQ(get("r").total, 1);
    done(bel_client_job_cancel(client, "r", NULL));
    struct bel_view unnamed = BEL_VIEW("{\"tasks\": []}");
    done(bel_client_job_submit(client, unnamed, &submitted));
    CHECK(submitted.id.bytes > 0);
}

static void a_job_is_paused_resumed_and_cancelled(void)
{
    bool has_changed = false;
    struct bel_view text =
        BEL_VIEW("{\"id\": \"p\", \"tasks\": [{\"id\": \"a\", \"topic\": \"p\"}]}");
    done(bel_client_job_submit(client, text, NULL));
    done(bel_client_job_pause(client, "p", &has_changed));
    CHECK(has_changed);
    done(bel_client_job_pause(client, "p", &has_changed));
    CHECK(!has_changed);
    CHECK(is(get("p").state, "paused"));
    check_nothing_due("p");
    done(bel_client_job_resume(client, "p", &has_changed));
    CHECK(has_changed);
    done(bel_client_job_resume(client, "p", &has_changed));
    CHECK(!has_changed);
    struct bel_delivery *delivery = claim("p", "p/a");
    done(bel_client_job_cancel(client, "p", &has_changed));
    CHECK(has_changed);
    refused(bel_client_ack(client, delivery), BEL_ESTALE, "", "");
    bel_delivery_destroy(delivery);
    struct bel_client_job job = get("p");
    CHECK(is(job.state, "cancelled") && job.progress == 100);
}

static void a_job_has_a_reason(void)
{
    done(bel_client_job_submit(client,
                               BEL_VIEW("{\"id\": \"late\", \"timeout\": \"5s\", \"tasks\": "
                                        "[{\"id\": \"a\", \"topic\": \"late\"}]}"),
                               NULL));
    advance("6s");
    struct bel_client_job job = get("late");
    CHECK(is(job.state, "failed") && is(job.reason, "timeout"));
}

static void jobs_have_errors(void)
{
    struct bel_client_job job = {.total = 7};
    struct bel_client_jobs page = {.count = 7};
    refused(bel_client_job_submit(client, BEL_VIEW("{\"tasks\": [}"), NULL), BEL_EINVAL, "BADARG",
            "line 1, column 12");
    refused(bel_client_job_submit(client, BEL_VIEW(""), NULL), BEL_EINVAL, "BADARG", "line 1");
    refused(
        bel_client_job_replace(client,
                               BEL_VIEW("{\"id\": \"c\", \"tasks\": ["
                                        "{\"id\": \"1\", \"topic\": \"t\", \"after\": [\"2\"]},"
                                        "{\"id\": \"2\", \"topic\": \"t\", \"after\": [\"1\"]}]}"),
                               NULL),
        BEL_EINVAL, "BADARG", "cycle: 1 -> 2 -> 1");
    refused(bel_client_job_get(client, "none", BEL_VIEW(""), &job), BEL_ENOTFOUND, "NOTFOUND", "");
    CHECK_EQ(job.total, 7);
    refused(bel_client_job_cancel(client, "none", NULL), BEL_ENOTFOUND, "NOTFOUND", "");
    refused(bel_client_job_pause(client, "none", NULL), BEL_ENOTFOUND, "NOTFOUND", "");
    refused(bel_client_job_resume(client, "none", NULL), BEL_ENOTFOUND, "NOTFOUND", "");
    refused(bel_client_job_list(client, "asleep", BEL_VIEW(""), &page), BEL_EINVAL, "BADARG", "");
    refused(bel_client_job_list(client, NULL, BEL_VIEW("?"), &page), BEL_EINVAL, "BADARG", "");
    CHECK_EQ(page.count, 7);
}

static void many_tasks_are_pages(void)
{
    static char text[JOB_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"id\": \"wide\", \"tasks\": [");
    for (int i = 0; i < TASKS; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"id\": \"%d\", \"topic\": \"w\"}", i > 0 ? "," : "", i);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "]}");
    CHECK(used < sizeof text);
    done(bel_client_job_submit(client, (struct bel_view){text, used}, NULL));
    struct bel_client_job job = get("wide");
    CHECK(job.total == TASKS && job.tasks->count == TASKS - 1 && job.cursor.bytes > 0);
    struct cursor cursor;
    keep(&cursor, job.cursor);
    done(bel_client_job_get(client, "wide", kept(&cursor), &job));
    CHECK(job.tasks->count == 1 && job.cursor.bytes == 0);
    CHECK(bel_value_is(bel_value_find(&job.tasks->items[0], "id"), "1000"));
    done(bel_client_job_cancel(client, "wide", NULL));
}

static void many_jobs_are_pages(void)
{
    char text[64];
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(text, sizeof text, "{\"id\": \"m%03d\", \"every\": \"1d\", \"tasks\": []}",
                       i);
        done(bel_client_job_submit(client, view_of(text), NULL));
    }
    struct bel_client_jobs page;
    struct bel_client_job job;
    done(bel_client_job_list(client, "scheduled", BEL_VIEW(""), &page));
    CHECK_EQ(page.count, JOBS - 1);
    CHECK(page.cursor.bytes > 0);
    for (size_t i = 0; i < page.count; i++) {
        CHECK(bel_client_job_read(&page.items[i], &job));
        CHECK(job.id.bytes == 4 && is(job.state, "scheduled") && job.tasks == NULL);
    }
    struct cursor cursor;
    keep(&cursor, page.cursor);
    done(bel_client_job_list(client, "scheduled", kept(&cursor), &page));
    CHECK(page.count == 1 && page.cursor.bytes == 0);
    done(bel_client_job_list(client, NULL, BEL_VIEW(""), &page));
    CHECK_EQ(page.count, JOBS - 1);
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(text, sizeof text, "m%03d", i);
        done(bel_client_job_cancel(client, text, NULL));
    }
    done(bel_client_job_list(client, "scheduled", BEL_VIEW(""), &page));
    CHECK(page.count == 0 && page.cursor.bytes == 0);
}

static void schedule_with(const char *resource, const char *id)
{
    const struct bel_view args[] = {BEL_VIEW("SCHEDULE"), BEL_VIEW("lim"), BEL_VIEW("x"),
                                    BEL_VIEW("ID"),       view_of(id),     BEL_VIEW("RESOURCE"),
                                    view_of(resource)};
    const struct bel_value *reply;
    CHECK(bel_client_call(client, args, 7, &reply) == 0);
    CHECK(bel_value_is(reply, id));
}

static struct bel_client_resource show(const char *name)
{
    struct bel_client_resource resource;
    done(bel_client_limit(client, &(struct bel_client_limit){.resource = name}, &resource));
    CHECK(is(resource.name, name));
    return resource;
}

static void limits_are_set_and_shown(void)
{
    struct bel_client_limit limit = {.resource = "api",
                                     .rate = "10/1s",
                                     .burst = 3,
                                     .has_concurrency = true,
                                     .concurrency = 1,
                                     .breaker = "2",
                                     .breaker_open_ms = 10000,
                                     .breaker_max_ms = 20000};
    struct bel_client_resource resource;
    done(bel_client_limit(client, &limit, &resource));
    CHECK(is(resource.name, "api") && is(resource.rate, "10/1s") && resource.concurrency == 1);
    CHECK(is(resource.breaker, "closed") && resource.failures == 0);
    CHECK(resource.running == 0 && resource.parked == 0 && resource.limited_until.ms == 0);
    CHECK(bel_value_find(resource.fields, "burst")->number == 3);

    schedule_with("api", "a");
    schedule_with("api", "b");
    struct bel_delivery *delivery = claim("lim", "a");
    check_nothing_due("lim");
    resource = show("api");
    CHECK(resource.running == 1 && resource.parked == 1);
    done(bel_client_extend(client, delivery, 60000));
    done(bel_client_limited(client, delivery, 30000));
    bel_delivery_destroy(delivery);
    resource = show("api");
    CHECK(resource.running == 0 && resource.parked == 2 && resource.limited_until.ms > 0);
    check_nothing_due("lim");
    done(bel_client_limit_clear(client, "api", &resource));
    CHECK(is(resource.name, "api") && resource.limited_until.ms == 0 && is(resource.rate, "10/1s"));
    delivery = claim("lim", "a");
    done(bel_client_ack(client, delivery));
    bel_delivery_destroy(delivery);

    limit = (struct bel_client_limit){.resource = "api", .has_concurrency = true};
    done(bel_client_limit(client, &limit, &resource));
    CHECK(resource.concurrency == 0 && is(resource.rate, "10/1s"));
}

/* Follows limits_are_set_and_shown(): b is ready, and two failures open the breaker. */
static void a_breaker_opens_and_is_cleared(void)
{
    for (unsigned i = 0; i < 2; i++) {
        char id[] = {(char)('c' + (char)i), '\0'};
        advance("1s"); /* for the rate */
        if (i > 0) schedule_with("api", id);
        struct bel_delivery *delivery = claim("lim", i == 0 ? "b" : id);
        done(bel_client_fail_resource(client, delivery, "the API is down"));
        bel_delivery_destroy(delivery);
    }
    struct bel_client_resource resource = show("api");
    CHECK(is(resource.breaker, "open") && resource.failures == 2 && resource.breaker_until.ms > 0);
    advance("10s");
    CHECK(is(show("api").breaker, "half_open"));
    struct bel_client_limit limit = {.resource = "other", .until_ms = 60000};
    done(bel_client_limit(client, &limit, NULL));
    uint64_t limited = 0;
    done(bel_client_limit_clear_all(client, &limited));
    CHECK_EQ(limited, 2);
    done(bel_client_limit_clear_all(client, &limited));
    CHECK_EQ(limited, 0);
    done(bel_client_limit_clear_all(client, NULL));
    resource = show("api");
    CHECK(is(resource.breaker, "closed") && resource.breaker_until.ms == 0);
    CHECK(show("other").limited_until.ms == 0);
    done(bel_client_limit_clear(client, "other", NULL));
    for (unsigned i = 0; i < 2; i++) {
        bool was_there = false;
        done(bel_client_cancel(client, "lim", i == 0 ? "b" : "d", &was_there));
        CHECK(was_there);
    }
}

static void limits_have_errors(void)
{
    struct bel_client_resource resource = {.running = 7};
    struct bel_client_limit limit = {.resource = "api", .rate = "fast"};
    refused(bel_client_limit(client, &limit, &resource), BEL_EINVAL, "BADARG", "fast");
    limit = (struct bel_client_limit){.resource = "a//b", .burst = 1};
    refused(bel_client_limit(client, &limit, &resource), BEL_EINVAL, "BADARG", "a//b");
    limit = (struct bel_client_limit){.resource = "nowhere"};
    refused(bel_client_limit(client, &limit, &resource), BEL_ENOTFOUND, "NOTFOUND", "nowhere");
    CHECK_EQ(resource.running, 7);
    struct bel_client_resources page;
    refused(bel_client_limit_delete(client, "a//b", NULL), BEL_EINVAL, "BADARG", "a//b");
    refused(bel_client_limit_delete(client, "clear", NULL), BEL_EINVAL, "BADARG", "HTTP");
    refused(bel_client_limit_list(client, BEL_VIEW("?"), &page), BEL_EINVAL, "BADARG", "cursor");
    refused(bel_client_limit_clear(client, "nowhere", &resource), BEL_ENOTFOUND, "NOTFOUND",
            "nowhere");
    CHECK_EQ(resource.running, 7);
}

static void limits_are_listed_and_deleted(void)
{
    char name[32];
    bool was_there = false;
    done(bel_client_limit_delete(client, "api", NULL));
    done(bel_client_limit_delete(client, "other", NULL));
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(name, sizeof name, "r%03d", i);
        done(bel_client_limit(client, &(struct bel_client_limit){.resource = name, .rate = "1/1m"},
                              NULL));
    }
    struct bel_client_resources page;
    struct bel_client_resource resource;
    done(bel_client_limit_list(client, BEL_VIEW(""), &page));
    CHECK_EQ(page.count, JOBS - 1);
    for (size_t i = 0; i < page.count; i++) {
        (void)snprintf(name, sizeof name, "r%03zu", i);
        CHECK(bel_client_resource_read(&page.items[i], &resource));
        CHECK(is(resource.name, name) && is(resource.rate, "1/1m"));
    }
    struct cursor cursor;
    keep(&cursor, page.cursor);
    done(bel_client_limit_list(client, kept(&cursor), &page));
    CHECK(page.count == 1 && page.cursor.bytes == 0);
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(name, sizeof name, "r%03d", i);
        done(bel_client_limit_delete(client, name, &was_there));
        CHECK(was_there);
        done(bel_client_limit_delete(client, name, &was_there));
        CHECK(!was_there);
    }
    done(bel_client_limit_list(client, BEL_VIEW(""), &page));
    CHECK_EQ(page.count, 0);
}

/* With RESP3 it is HELLO that is refused without a key, with RESP2 the first command. */
static void keys_are_asked_for(void)
{
    struct bel_client *other = client;
    struct bel_client_why why;
    struct bel_client_job job;
    struct bel_client_resources page;
    if (protocol == 3) {
        CHECK(connect_to(port_with_keys, NULL, &client, &why) == BEL_ECLOSED);
        CHECK(strcmp(why.code, "NOAUTH") == 0);
    } else {
        client = open_at(port_with_keys, NULL);
        refused(bel_client_job_get(client, "n", BEL_VIEW(""), &job), BEL_ECLOSED, "NOAUTH", "");
        refused(bel_client_limit_list(client, BEL_VIEW(""), &page), BEL_ECLOSED, "NOAUTH", "");
        bel_client_close(client);
    }
    CHECK(connect_to(port_with_keys, "wrong", &client, &why) == BEL_ECLOSED);
    client = open_at(port_with_keys, key);
    refused(bel_client_job_get(client, "n", BEL_VIEW(""), &job), BEL_ENOTFOUND, "NOTFOUND", "");
    done(bel_client_limit_list(client, BEL_VIEW(""), &page));
    bel_client_close(client);
    client = other;
}

static void forget_jobs(void)
{
    advance("25h"); /* longer than the retention of jobs */
    struct bel_client_jobs page;
    done(bel_client_job_list(client, NULL, BEL_VIEW(""), &page));
    CHECK_EQ(page.count, 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    port = argv[1];
    port_with_keys = argv[2];
    key = argv[3];
    (void)alarm(PATIENCE_S);
    for (protocol = 2; protocol <= 3; protocol++) {
        (void)printf("RESP%u\n", protocol);
        client = open_at(port, NULL);
        RUN(a_job_from_its_text_to_its_end);
        RUN(a_job_is_replaced);
        RUN(a_job_is_paused_resumed_and_cancelled);
        RUN(a_job_has_a_reason);
        RUN(jobs_have_errors);
        RUN(many_tasks_are_pages);
        RUN(many_jobs_are_pages);
        RUN(limits_are_set_and_shown);
        RUN(a_breaker_opens_and_is_cleared);
        RUN(limits_have_errors);
        RUN(limits_are_listed_and_deleted);
        RUN(keys_are_asked_for);
        RUN(forget_jobs);
        bel_client_close(client);
    }
    return 0;
}
