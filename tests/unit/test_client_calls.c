/* SPDX-License-Identifier: MIT */

/*
 * The commands that are functions of a client. The test is the server at the other end of a socket
 * pair: the reply is there before the command is sent. Nothing sleeps, and an alarm ends a case
 * that blocks.
 */
#include "belfry/client.h"

#include "../check.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PATIENCE_S = 60,
    TEXT_BYTES = 4096,
};

static struct bel_client *client;
static int far; /* the server's end */

static void start_with(const struct bel_client_options *options)
{
    int pair[2];
    (void)alarm(PATIENCE_S);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    far = pair[1];
    CHECK(bel_client_adopt(pair[0], options, &client, NULL) == 0);
}

static void start(void)
{
    start_with(NULL);
}

static void end(void)
{
    bel_client_close(client);
    (void)close(far);
}

static void say(const char *text)
{
    size_t bytes = strlen(text);
    CHECK(send(far, text, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}

/* Returns the arguments of the command that was sent, with a space after each. */
static const char *heard(void)
{
    static char text[TEXT_BYTES];
    char bytes[TEXT_BYTES];
    size_t used = 0;
    ssize_t got = recv(far, bytes, sizeof bytes - 1, MSG_DONTWAIT);
    CHECK(got > 0 && bytes[0] == '*');
    bytes[got] = '\0';
    const char *at = strchr(bytes, '\n') + 1;
    while (*at == '$') {
        size_t count = strtoul(at + 1, NULL, 10);
        at = strchr(at, '\n') + 1;
        memcpy(text + used, at, count);
        text[used + count] = ' ';
        used += count + 1;
        at += count + 2;
    }
    text[used] = '\0';
    return text;
}

static void check_heard(const char *wanted)
{
    const char *text = heard();
    CHECK_NOTE("heard %s", text);
    CHECK(strcmp(text, wanted) == 0);
}

static void check_error(const char *code, const char *text)
{
    const struct bel_client_why *why = bel_client_error(client);
    CHECK_NOTE("%s: %.200s", why->code, why->text);
    CHECK(strcmp(why->code, code) == 0 && strcmp(why->text, text) == 0);
}

#define DELIVERY                                                                                   \
    "*1\r\n*9\r\n$2\r\nt1\r\n$4\r\nmail\r\n$2\r\ni1\r\n$5\r\na\r\nbc\r\n:1001\r\n:2\r\n"           \
    "*2\r\n$5\r\ncolor\r\n$3\r\nred\r\n:30000\r\n$5\r\norder\r\n"

static struct bel_delivery *claim(void)
{
    struct bel_delivery *due = NULL;
    say(DELIVERY);
    CHECK(bel_client_claim(client, "mail", 0, &due) == 0 && due != NULL);
    (void)heard();
    return due;
}

static void timers_are_scheduled_and_cancelled(void)
{
    bool was_there = false;
    start();
    say("$5\r\nhello\r\n");
    CHECK(bel_client_schedule(client, "mail", "hello", BEL_VIEW("ID x"), 5000) == 0);
    check_heard("SCHEDULE mail ID x IN 5000 ID hello ");
    say("$3\r\nabc\r\n");
    CHECK(bel_client_schedule(client, "mail", NULL, BEL_VIEW(""), UINT64_MAX) == 0);
    check_heard("SCHEDULE mail  IN 18446744073709551615 ");
    say(":1\r\n");
    CHECK(bel_client_cancel(client, "mail", "hello", &was_there) == 0 && was_there);
    check_heard("CANCEL mail hello ");
    say(":0\r\n");
    CHECK(bel_client_cancel(client, "mail", "hello", &was_there) == 0 && !was_there);
    say(":0\r\n");
    CHECK(bel_client_cancel(client, "mail", "hello", NULL) == 0);
    check_error("", "");
    end();
}

static void a_claim_returns_a_copy(void)
{
    struct bel_delivery *due = NULL;
    start();
    say(DELIVERY);
    CHECK(bel_client_claim(client, "mail", 20000, &due) == 0);
    check_heard("CLAIM mail WAIT 20000 ");
    end(); /* the copy does not point into the reply */
    CHECK(strcmp(due->token.data, "t1") == 0 && strcmp(due->topic.data, "mail") == 0);
    CHECK(strcmp(due->id.data, "i1") == 0 && strcmp(due->correlation.data, "order") == 0);
    CHECK(due->payload.bytes == 5 && memcmp(due->payload.data, "a\r\nbc", 6) == 0);
    CHECK(due->due.ms == 1001);
    CHECK_EQ(due->attempt, 2);
    CHECK_EQ(due->lease_ms, 30000);
    CHECK_EQ(due->headers_count, 1);
    CHECK(strcmp(due->headers[0].name.data, "color") == 0);
    CHECK(strcmp(due->headers[0].value.data, "red") == 0);
    bel_delivery_destroy(due);
    bel_delivery_destroy(NULL);
}

static void a_claim_without_a_due_timer_returns_none(void)
{
    struct bel_delivery here, *due = &here;
    start();
    say("*0\r\n");
    CHECK(bel_client_claim(client, "mail", 0, &due) == 0 && due == NULL);
    check_heard("CLAIM mail WAIT 0 ");
    end();
}

static void outcomes_are_reported(void)
{
    start();
    struct bel_delivery *due = claim();
    say(":30000\r\n");
    CHECK(bel_client_extend(client, due, 0) == 0);
    check_heard("EXTEND t1 ");
    say(":60000\r\n");
    CHECK(bel_client_extend(client, due, 60000) == 0);
    check_heard("EXTEND t1 60000 ");
    say("*2\r\n$9\r\nscheduled\r\n:5\r\n");
    CHECK(bel_client_fail(client, due, "no relay") == 0);
    check_heard("FAIL t1 REASON no relay ");
    say("*2\r\n$4\r\ndead\r\n$-1\r\n");
    CHECK(bel_client_fail(client, due, NULL) == 0);
    check_heard("FAIL t1 ");
    say("*2\r\n$9\r\nscheduled\r\n:5\r\n");
    CHECK(bel_client_fail_resource(client, due, "503") == 0);
    check_heard("FAIL t1 KIND resource REASON 503 ");
    say("*2\r\n$9\r\nscheduled\r\n:5\r\n");
    CHECK(bel_client_fail_resource(client, due, NULL) == 0);
    check_heard("FAIL t1 KIND resource ");
    say("*2\r\n$5\r\nready\r\n:5\r\n");
    CHECK(bel_client_limited(client, due, 1500) == 0);
    check_heard("FAIL t1 KIND limited IN 1500 ");
    say("*2\r\n$9\r\nscheduled\r\n:5\r\n");
    CHECK(bel_client_limited(client, due, 0) == 0);
    check_heard("FAIL t1 KIND limited ");
    say(":1\r\n");
    CHECK(bel_client_ack_result(client, due, BEL_VIEW("20 rows")) == 0);
    check_heard("ACK t1 RESULT 20 rows ");
    say(":0\r\n");
    CHECK(bel_client_ack_result(client, due, BEL_VIEW("")) == BEL_ESTALE);
    check_heard("ACK t1 RESULT  ");
    say(":1\r\n");
    CHECK(bel_client_ack(client, due) == 0);
    check_heard("ACK t1 ");
    say(":0\r\n");
    CHECK(bel_client_ack(client, due) == BEL_ESTALE);
    check_error("", "the lease has ended: it expired, or the timer was cancelled or replaced");
    bel_delivery_destroy(due);
    end();
}

static void a_claim_has_the_results_of_dependencies(void)
{
    struct bel_delivery *due = NULL;
    start();
    say("*1\r\n*10\r\n$2\r\nt1\r\n$3\r\netl\r\n$3\r\nn/"
        "c\r\n$0\r\n\r\n:1\r\n:1\r\n*0\r\n:30000\r\n$-1\r\n"
        "*4\r\n$1\r\na\r\n$2\r\n20\r\n$1\r\nb\r\n$-1\r\n");
    CHECK(bel_client_claim(client, "etl", 0, &due) == 0 && due != NULL);
    end();
    CHECK_EQ(due->results_count, 2);
    CHECK(strcmp(due->results[0].task.data, "a") == 0 && due->results[0].has_result);
    CHECK(strcmp(due->results[0].result.data, "20") == 0);
    CHECK(strcmp(due->results[1].task.data, "b") == 0 && !due->results[1].has_result);
    bel_delivery_destroy(due);
}

static void jobs_are_submitted_and_changed(void)
{
    struct bel_client_submitted submitted;
    bool has_changed = false;
    start();
    say("*6\r\n$2\r\nid\r\n$1\r\nn\r\n$5\r\ntasks\r\n:2\r\n$5\r\nedges\r\n:1\r\n");
    CHECK(bel_client_job_submit(client, BEL_VIEW("{}"), &submitted) == 0);
    check_heard("JOB SUBMIT {} ");
    CHECK(submitted.id.bytes == 1 && memcmp(submitted.id.data, "n", 1) == 0);
    CHECK(submitted.tasks == 2 && submitted.edges == 1);
    say("%3\r\n$2\r\nid\r\n$1\r\nn\r\n$5\r\ntasks\r\n:2\r\n$5\r\nedges\r\n:1\r\n");
    CHECK(bel_client_job_replace(client, BEL_VIEW("{}"), NULL) == 0);
    check_heard("JOB SUBMIT {} REPLACE ");
    say("-BADARG tasks: missing\r\n");
    CHECK(bel_client_job_submit(client, BEL_VIEW("{}"), &submitted) == BEL_EINVAL);
    check_heard("JOB SUBMIT {} ");
    check_error("BADARG", "tasks: missing");
    say(":1\r\n:0\r\n:1\r\n");
    CHECK(bel_client_job_pause(client, "n", &has_changed) == 0 && has_changed);
    check_heard("JOB PAUSE n ");
    CHECK(bel_client_job_resume(client, "n", &has_changed) == 0 && !has_changed);
    check_heard("JOB RESUME n ");
    CHECK(bel_client_job_cancel(client, "n", NULL) == 0);
    check_heard("JOB CANCEL n ");
    end();
}

static bool is_text(struct bel_view view, const char *text)
{
    return view.bytes == strlen(text) && memcmp(view.data, text, view.bytes) == 0;
}

#define JOB_N                                                                                      \
    "$2\r\nid\r\n$1\r\nn\r\n$5\r\nstate\r\n$6\r\nfailed\r\n$6\r\nreason\r\n$7\r\ntimeout\r\n"      \
    "$8\r\nprogress\r\n:66\r\n$5\r\ntotal\r\n:3\r\n"

static void jobs_are_shown_and_listed(void)
{
    struct bel_client_job job;
    struct bel_client_jobs page;
    start();
    say("%7\r\n" JOB_N
        "$5\r\ntasks\r\n*1\r\n%1\r\n$2\r\nid\r\n$1\r\na\r\n$6\r\ncursor\r\n$2\r\nc1\r\n");
    CHECK(bel_client_job_get(client, "n", BEL_VIEW(""), &job) == 0);
    check_heard("JOB GET n ");
    CHECK(is_text(job.id, "n") && is_text(job.state, "failed") && is_text(job.reason, "timeout"));
    CHECK(job.progress == 66 && job.total == 3);
    CHECK(job.tasks != NULL && job.tasks->count == 1 && is_text(job.cursor, "c1"));
    CHECK(is_text(bel_value_find(&job.tasks->items[0], "id")->text, "a"));
    CHECK(bel_value_find(job.fields, "total")->number == 3);
    say("*10\r\n" JOB_N);
    CHECK(bel_client_job_get(client, "n", job.cursor, &job) == 0); /* of the previous reply */
    check_heard("JOB GET n CURSOR c1 ");
    CHECK(job.tasks == NULL && job.cursor.bytes == 0);

    say("*2\r\n$2\r\nj2\r\n*2\r\n*10\r\n" JOB_N ":1\r\n");
    CHECK(bel_client_job_list(client, NULL, BEL_VIEW(""), &page) == 0);
    check_heard("JOB LIST ");
    CHECK(page.count == 2 && is_text(page.cursor, "j2"));
    CHECK(bel_client_job_read(&page.items[0], &job) && is_text(job.id, "n"));
    CHECK(!bel_client_job_read(&page.items[1], &job));
    say("*2\r\n$0\r\n\r\n*0\r\n");
    CHECK(bel_client_job_list(client, "failed", page.cursor, &page) == 0);
    check_heard("JOB LIST STATE failed CURSOR j2 ");
    CHECK(page.count == 0 && page.cursor.bytes == 0);
    end();
}

#define RESOURCE_API                                                                               \
    "$4\r\nname\r\n$3\r\napi\r\n$4\r\nrate\r\n$5\r\n10/"                                           \
    "1s\r\n$7\r\nrunning\r\n:3\r\n$16\r\nlimited_until_ms\r\n"                                     \
    ":99\r\n$7\r\nbreaker\r\n*6\r\n$5\r\nstate\r\n$4\r\nopen\r\n$8\r\nfailures\r\n:0\r\n$"         \
    "8\r\nuntil_ms\r\n"                                                                            \
    ":77\r\n"

static void limits_are_set_and_shown(void)
{
    struct bel_client_resource resource;
    start();
    say("*10\r\n" RESOURCE_API);
    CHECK(bel_client_limit(client, &(struct bel_client_limit){.resource = "api"}, &resource) == 0);
    check_heard("LIMIT api ");
    CHECK(is_text(resource.name, "api") && is_text(resource.rate, "10/1s"));
    CHECK(resource.running == 3 && resource.parked == 0 && resource.concurrency == 0);
    CHECK(resource.limited_until.ms == 99 && resource.breaker_until.ms == 77);
    CHECK(is_text(resource.breaker, "open") && resource.failures == 0);
    CHECK(bel_value_find(resource.fields, "running")->number == 3);
    struct bel_client_limit all = {.resource = "api",
                                   .rate = "10/1s",
                                   .burst = 2,
                                   .has_concurrency = true,
                                   .until_ms = 3,
                                   .breaker = "off",
                                   .breaker_open_ms = 4,
                                   .breaker_max_ms = 5};
    say("%5\r\n" RESOURCE_API);
    CHECK(bel_client_limit(client, &all, NULL) == 0);
    check_heard("LIMIT api RATE 10/1s BURST 2 CONCURRENCY 0 UNTIL 3 BREAKER off OPEN 4 MAX 5 ");
    say("-NOTFOUND no such resource\r\n");
    CHECK(bel_client_limit(client, &all, &resource) == BEL_ENOTFOUND);
    check_error("NOTFOUND", "no such resource");
    end();
}

static void limits_are_cleared_deleted_and_listed(void)
{
    struct bel_client_resource resource;
    struct bel_client_resources page;
    uint64_t limited = 0;
    bool was_there = false;
    start();
    say("*10\r\n" RESOURCE_API);
    CHECK(bel_client_limit_clear(client, "api", &resource) == 0);
    check_heard("LIMIT api CLEAR ");
    /* Nothing is sent: the server would clear all limits. */
    CHECK(bel_client_limit(client, &(struct bel_client_limit){.resource = "Clear"}, NULL) ==
          BEL_EINVAL);
    CHECK(bel_client_limit_delete(client, "count", NULL) == BEL_EINVAL);
    say(":2\r\n:1\r\n:0\r\n");
    CHECK(bel_client_limit_clear_all(client, &limited) == 0 && limited == 2);
    check_heard("LIMIT CLEAR ");
    CHECK(bel_client_limit_delete(client, "api", &was_there) == 0 && was_there);
    check_heard("LIMIT api DELETE ");
    CHECK(bel_client_limit_delete(client, "api", &was_there) == 0 && !was_there);
    (void)heard();
    say("*2\r\n$2\r\nr1\r\n*2\r\n*10\r\n" RESOURCE_API "*2\r\n$4\r\nname\r\n$1\r\nx\r\n");
    CHECK(bel_client_limit_list(client, BEL_VIEW(""), &page) == 0);
    check_heard("LIMIT ");
    CHECK(page.count == 2 && bel_client_resource_read(&page.items[0], &resource));
    CHECK(!bel_client_resource_read(&page.items[1], &resource));
    say("*2\r\n$0\r\n\r\n*0\r\n");
    CHECK(bel_client_limit_list(client, page.cursor, &page) == 0 && page.count == 0);
    check_heard("LIMIT CURSOR r1 ");
    say("*1\r\n:1\r\n");
    CHECK(bel_client_limit_list(client, BEL_VIEW(""), &page) == BEL_EINVAL);
    end();
    start();
    say("*2\r\n$4\r\nname\r\n$1\r\nx\r\n");
    CHECK(bel_client_limit_clear(client, "x", NULL) == BEL_EINVAL);
    CHECK(bel_client_cancel(client, "mail", "a", NULL) == BEL_EINVAL);
    end();
}

static void wrong_replies_to_commands_of_jobs_end_the_connection(void)
{
    static const char *const jobs[] = {":1\r\n", "*0\r\n", "*2\r\n$2\r\nid\r\n$1\r\nn\r\n"};
    static const char *const pages[] = {"*1\r\n$0\r\n\r\n", "*2\r\n:1\r\n*0\r\n",
                                        "*2\r\n$0\r\n\r\n:1\r\n"};
    struct bel_client_job job;
    struct bel_client_jobs page;
    for (unsigned i = 0; i < 3; i++) {
        CHECK_NOTE("reply %u", i);
        start();
        say(jobs[i]);
        CHECK(bel_client_job_get(client, "n", BEL_VIEW(""), &job) == BEL_EINVAL);
        CHECK(bel_client_cancel(client, "mail", "a", NULL) == BEL_EINVAL);
        end();
        start();
        say(pages[i]);
        CHECK(bel_client_job_list(client, NULL, BEL_VIEW(""), &page) == BEL_EINVAL);
        CHECK(bel_client_cancel(client, "mail", "a", NULL) == BEL_EINVAL);
        end();
    }
}

static const struct {
    const char *code;
    int err;
} codes[] = {
    {"BADARG", BEL_EINVAL},  {"ERR", BEL_EINVAL},     {"NOTFOUND", BEL_ENOTFOUND},
    {"STALE", BEL_ESTALE},   {"FULL", BEL_EFULL},     {"CONFLICT", BEL_ECONFLICT},
    {"NOAUTH", BEL_ECLOSED}, {"NOPERM", BEL_ECLOSED}, {"IO", BEL_EIO},
    {"NOTFOUNDS", BEL_EIO},
};

static void error_replies_are_errors_and_the_connection_goes_on(void)
{
    start();
    struct bel_delivery *due = claim();
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        char reply[TEXT_BYTES];
        CHECK_NOTE("%s", codes[i].code);
        (void)snprintf(reply, sizeof reply, "-%s because of it\r\n", codes[i].code);
        say(reply);
        CHECK(bel_client_extend(client, due, 0) == codes[i].err);
        check_error(codes[i].code, "because of it");
        say("$1\r\na\r\n");
        CHECK(bel_client_schedule(client, "mail", "a", BEL_VIEW("x"), 0) == 0);
        check_error("", "");
    }
    bel_delivery_destroy(due);
    end();
}

/* A late reply must not be taken for the reply to the next command. */
static void a_timeout_ends_the_connection(void)
{
    struct bel_delivery *due = NULL;
    start();
    bel_client_set_timeout(client, 0);
    CHECK(bel_client_claim(client, "mail", 0, &due) == BEL_EBUSY && due == NULL);
    check_heard("CLAIM mail WAIT 0 ");
    check_error("", bel_error_text(BEL_EBUSY));
    char byte;
    CHECK(recv(far, &byte, 1, 0) == 0); /* the server withdraws the claim */
    CHECK(bel_client_claim(client, "mail", 0, &due) == BEL_ECLOSED);
    check_error("", bel_error_text(BEL_ECLOSED));
    end();
}

static void replies_of_another_type_end_the_connection(void)
{
    static const char *const replies[] = {":1\r\n", "*1\r\n:1\r\n", "+OK\r\n", "*1\r\n*0\r\n"};
    for (unsigned i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        struct bel_delivery *due = NULL;
        CHECK_NOTE("reply %u", i);
        start();
        say(replies[i]);
        CHECK(bel_client_claim(client, "mail", 0, &due) == BEL_EINVAL && due == NULL);
        CHECK(bel_client_error(client)->text[0] != '\0');
        CHECK(bel_client_cancel(client, "mail", "a", NULL) == BEL_EINVAL);
        end();
    }
}

static void a_server_that_closes_ends_every_later_call(void)
{
    start();
    (void)shutdown(far, SHUT_WR);
    CHECK(bel_client_schedule(client, "mail", "a", BEL_VIEW("x"), 0) == BEL_ECLOSED);
    CHECK(bel_client_schedule(client, "mail", "a", BEL_VIEW("x"), 0) == BEL_ECLOSED);
    check_error("", bel_error_text(BEL_ECLOSED));
    end();
}

static void a_command_that_is_too_large_leaves_the_connection(void)
{
    char payload[2048] = {0};
    start_with(&(struct bel_client_options){.request_bytes_max = 1024});
    struct bel_view view = {payload, sizeof payload};
    CHECK(bel_client_schedule(client, "mail", "a", view, 0) == BEL_EFULL);
    check_error("", bel_error_text(BEL_EFULL));
    say("$1\r\na\r\n");
    CHECK(bel_client_schedule(client, "mail", "a", BEL_VIEW("x"), 0) == 0);
    end();
}

int main(void)
{
    RUN(timers_are_scheduled_and_cancelled);
    RUN(a_claim_returns_a_copy);
    RUN(a_claim_without_a_due_timer_returns_none);
    RUN(outcomes_are_reported);
    RUN(a_claim_has_the_results_of_dependencies);
    RUN(jobs_are_submitted_and_changed);
    RUN(jobs_are_shown_and_listed);
    RUN(limits_are_set_and_shown);
    RUN(limits_are_cleared_deleted_and_listed);
    RUN(wrong_replies_to_commands_of_jobs_end_the_connection);
    RUN(error_replies_are_errors_and_the_connection_goes_on);
    RUN(a_timeout_ends_the_connection);
    RUN(replies_of_another_type_end_the_connection);
    RUN(a_server_that_closes_ends_every_later_call);
    RUN(a_command_that_is_too_large_leaves_the_connection);
    return 0;
}
