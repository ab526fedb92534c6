/* SPDX-License-Identifier: MIT */

/*
 * Tasks of jobs in a crew: the results of dependencies in an errand, the result of the work in its
 * report, and the kinds of failures that concern a resource. The server is simulated; nothing
 * sleeps, and an alarm ends a case that blocks.
 */
#include "belfry/crew.h"

#include "crew_server.h"

enum {
    GRACE_MS = 50000,
};

static struct {
    struct bel_report report; /* of the work */
    const char *result;       /* of the work, or NULL */
    unsigned told, told_lost; /* calls of `told`, and how many of them for lost errands */
    enum bel_report_kind told_of;
} yard;

static struct bel_crew *crew;

static void check_results(const struct bel_errand *errand)
{
    struct bel_view result = BEL_VIEW("unchanged");
    CHECK_EQ(errand->results_count, server.is_old ? 0 : 2);
    CHECK(!bel_errand_result(errand, "a", &result) && !bel_errand_result(errand, "c", &result));
    CHECK(strcmp(result.data, "unchanged") == 0);
    CHECK(bel_errand_result(errand, "b", &result) == !server.is_old);
    CHECK(server.is_old || (result.bytes == 3 && memcmp(result.data, "\r\n1", 4) == 0));
}

static void work(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    CHECK(context == &yard);
    CHECK(report->result == NULL);
    check_results(errand);
    *report = yard.report;
    if (yard.result == NULL) return;
    CHECK(bel_report_result(report, BEL_VIEW("replaced by the next")) == 0);
    CHECK(bel_report_result(report, (struct bel_view){yard.result, strlen(yard.result)}) == 0);
}

static void told(void *context, const struct bel_errand *errand, const struct bel_report *report)
{
    CHECK(context == &yard);
    check_results(errand);
    yard.told++;
    yard.told_lost += bel_errand_is_lost(errand);
    yard.told_of = report->kind;
}

/* Starts a server and a crew with one hand. */
static void start(const char *ack_reply)
{
    static const char *const topics[] = {"mail"};
    start_server();
    server.ack_reply = ack_reply;
    yard.told = yard.told_lost = 0;
    struct bel_crew_options options = {.address = server.path,
                                       .topics = topics,
                                       .topics_count = 1,
                                       .hands = 1,
                                       .name = "tester",
                                       .work = work,
                                       .told = told,
                                       .context = &yard};
    CHECK(bel_crew_start(&options, &crew) == 0);
}

static void end(void)
{
    CHECK(bel_crew_stop(crew, GRACE_MS) == 0);
    bel_crew_destroy(crew);
    stop_server();
}

static void a_result_goes_with_the_acknowledgement(void)
{
    static const struct {
        const char *reply, *result, *line;
        enum bel_report_kind kind; /* of which the crew was told */
        bool is_lost;
    } cases[] = {
        {":1\r\n", NULL, "ACK t1", BEL_REPORT_DONE, false},
        {":1\r\n", "20 rows", "ACK t1 RESULT 20 rows", BEL_REPORT_DONE, false},
        {":1\r\n", "", "ACK t1 RESULT ", BEL_REPORT_DONE, false},
        {":0\r\n", "late", "ACK t1 RESULT late", BEL_REPORT_DONE, true},
        {"-STALE it is another's\r\n", "late", "ACK t1 RESULT late", BEL_REPORT_DONE, true},
        /* A result that is refused leaves the lease: the work is reported as failed. */
        {"-FULL 64 MiB\r\n", "big", "FAIL t1 REASON result refused: FULL 64 MiB", BEL_REPORT_FAILED,
         false},
        {"-BADARG too long\r\n", "big", "FAIL t1 REASON result refused: BADARG too long",
         BEL_REPORT_FAILED, false},
        {"-FULL no result\r\n", NULL, "ACK t1", BEL_REPORT_DONE, true},
    };
    yard.report = (struct bel_report){.kind = BEL_REPORT_DONE};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_NOTE("case %u", i);
        yard.result = cases[i].result;
        start(cases[i].reply);
        queue(1);
        wait_for(cases[i].line);
        end();
        CHECK_EQ(yard.told, 1);
        CHECK_EQ(yard.told_lost, cases[i].is_lost);
        CHECK(yard.told_of == cases[i].kind);
    }
    yard.result = NULL;
}

static void a_failure_may_be_one_of_the_resource(void)
{
    static const struct {
        struct bel_report report;
        const char *line;
    } cases[] = {
        {{.kind = BEL_REPORT_LIMITED}, "FAIL t1 KIND limited"},
        {{.kind = BEL_REPORT_LIMITED, .has_delay = true, .delay_ms = 9, .reason = "429"},
         "FAIL t1 IN 9 REASON 429 KIND limited"},
        {{.kind = BEL_REPORT_RESOURCE, .reason = "503"}, "FAIL t1 REASON 503 KIND resource"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        yard.report = cases[i].report;
        start(":1\r\n");
        queue(1);
        wait_for(cases[i].line);
        end();
        CHECK(strcmp(server.lines[0], cases[i].line) == 0);
        CHECK_EQ(server.lines_count, 1);
        CHECK_EQ(yard.told_lost, 0);
    }
}

static void an_old_server_has_no_results(void)
{
    yard.report = (struct bel_report){.kind = BEL_REPORT_DONE};
    start(":1\r\n");
    server.is_old = true;
    queue(1);
    wait_for("ACK t1");
    end();
    CHECK_EQ(yard.told, 1);
}

int main(void)
{
    RUN(a_result_goes_with_the_acknowledgement);
    RUN(a_failure_may_be_one_of_the_resource);
    RUN(an_old_server_has_no_results);
    return 0;
}
