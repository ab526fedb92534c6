/* SPDX-License-Identifier: MIT */
#include "jobs/parser.h"

#include "../check.h"
#include "belfry/zone.h"

#include <string.h>
#include <time.h>

static struct bel_zones *zones;

struct parsed {
    int err;
    char why[BEL_WHY_BYTES];
    struct bel_job_graph *graph;
};

static struct bel_job_parser_options options_of(struct bel_view text)
{
    return (struct bel_job_parser_options){
        .text = text, .made_id = BEL_VIEW("made"), .zones = zones, .now = {INT64_C(1800000000000)}};
}

static struct parsed parse_with(const struct bel_job_parser_options *options, uint32_t work)
{
    struct parsed parsed = {0};
    struct bel_job_parser *parser;
    CHECK(bel__job_parser_create(options, &parser) == 0);
    do {
        parsed.err = bel__job_parser_step(parser, work);
    } while (parsed.err == BEL_JOB_PARSER_MORE);
    (void)snprintf(parsed.why, sizeof parsed.why, "%s", bel__job_parser_why(parser));
    if (parsed.err == 0) parsed.graph = bel__job_parser_take(parser);
    if (parsed.graph != NULL) CHECK(bel__job_graph_valid(parsed.graph));
    bel__job_parser_destroy(parser);
    return parsed;
}

static struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static struct bel_job_graph *graph_of(const char *text)
{
    struct bel_job_parser_options options = options_of(view(text));
    struct parsed parsed = parse_with(&options, BEL_JOB_PARSER_WORK);
    CHECK_NOTE("%.100s: %.140s", text, parsed.why);
    CHECK(parsed.err == 0);
    return parsed.graph;
}

/* Checks that a text is refused with this message, however the work is cut. */
static void refuses(int err, const char *text, const char *why)
{
    struct bel_job_parser_options options = options_of(view(text));
    for (uint32_t work = 1; work < 1000; work *= 7) {
        struct parsed parsed = parse_with(&options, work);
        CHECK_NOTE("%.100s: %d %.130s", text, parsed.err, parsed.why);
        CHECK(parsed.err == err);
        CHECK(strcmp(parsed.why, why) == 0);
    }
}

static void is(struct bel_view got, const char *want)
{
    CHECK_NOTE("got '%.*s', want '%s'", (int)got.bytes, (const char *)got.data, want);
    CHECK(got.bytes == strlen(want) && memcmp(got.data, want, got.bytes) == 0);
}

/* --- what a job has --- */

/* Jobs of `then` and recurring jobs are stored as texts, which earlier versions have accepted. */
static void a_stored_text_may_have_a_duration_without_a_unit(void)
{
    struct bel_job_parser_options options = options_of(
        view("{\"timeout\":\"7000\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\",\"idle\":\"30\"}]}"));
    struct parsed parsed = parse_with(&options, 1000);
    CHECK(parsed.err == BEL_EINVAL);
    options.is_stored = true;
    parsed = parse_with(&options, 1000);
    CHECK(parsed.err == 0);
    CHECK_EQ(parsed.graph->timeout_ms, 7000);
    CHECK_EQ(parsed.graph->tasks[0].idle_ms, 30);
    bel__job_graph_destroy(parsed.graph);
}

static void a_job_has_its_fields_and_defaults(void)
{
    struct bel_job_graph *graph =
        graph_of("{\"id\":\"nightly\",\"priority\":3,\"timeout\":\"2h\",\"pace\":2000,"
                 "\"retry\":\"exp(10s,2,1h) max(3)\",\"cooldown\":\"1m\",\"tasks\":[]}");
    is(graph->id, "nightly");
    CHECK_EQ(graph->priority, 3);
    CHECK_EQ(graph->timeout_ms, 7200000);
    CHECK_EQ(graph->pace_ms, 2000);
    CHECK_EQ(graph->cooldown_ms, 60000);
    is(graph->retry, "exp(10s,2,1h) max(3)");
    CHECK(!graph->is_recurring && graph->tasks_count == 0 && graph->then_count == 0);
    bel__job_graph_destroy(graph);

    graph = graph_of(" { \"tasks\" : [ ] } \n");
    is(graph->id, "made");
    CHECK_EQ(graph->priority, 5);
    CHECK_EQ(graph->cooldown_ms, 5000);
    CHECK(graph->timeout_ms == 0 && graph->pace_ms == 0 && graph->retry.bytes == 0);
    bel__job_graph_destroy(graph);
}

static void a_task_has_its_fields_and_defaults(void)
{
    struct bel_job_graph *graph = graph_of(
        "{\"tasks\":[{\"id\":\"a\",\"topic\":\"etl\"},"
        "{\"id\":\"b\",\"topic\":\"mail\",\"payload\":\"x\\u00e9\\n\",\"resource\":\"api/s\","
        "\"cost\":1000000,\"priority\":0,\"retry\":\"5s,30s\",\"idle\":\"90s\",\"in\":\"5m\","
        "\"headers\":{\"k\":\"v\",\"l\":\"\"},\"correlation\":\"c 1\"},"
        "{\"id\":\"c\",\"topic\":\"etl\",\"at\":\"2026-06-01T09:00:00+07:00\"}]}");
    CHECK_EQ(graph->tasks_count, 3);
    const struct bel_job_node *task = graph->tasks;
    is(task->id, "a");
    CHECK(task->priority == 128 && task->cost == 0 && task->when == BEL_WHEN_NOW);
    CHECK(task->payload.bytes == 0 && task->headers_count == 0 && task->idle_ms == 0);
    task++;
    is(task->payload, "x\xc3\xa9\n");
    is(task->resource, "api/s");
    is(task->retry, "5s,30s");
    is(task->correlation, "c 1");
    CHECK(task->cost == 1000000 && task->priority == 0 && task->idle_ms == 90000);
    CHECK(task->when == BEL_WHEN_IN && task->delay_ms == 300000);
    CHECK_EQ(task->headers_count, 2);
    is(task->headers[1].name, "l");
    task++;
    CHECK(task->when == BEL_WHEN_AT && task->at.ms == INT64_C(1780279200000));
    CHECK_EQ(graph->topics_count, 2);
    CHECK_EQ(graph->topics[0].tasks_count, 2);
    CHECK_EQ(task->topic_index, 0);
    bel__job_graph_destroy(graph);
}

static void a_payload_that_is_a_value_is_compact_and_has_a_type(void)
{
    struct bel_job_graph *graph = graph_of(
        "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\",\"payload\":{ \"x y\" : [1 , \" \\\" \"] , "
        "\"z\":null }},{\"id\":\"b\",\"topic\":\"t\",\"payload\":-1.5e3},"
        "{\"id\":\"c\",\"topic\":\"t\",\"payload\":[],\"headers\":{\"Content-Type\":\"x\"}},"
        "{\"id\":\"d\",\"topic\":\"t\",\"payload_base64\":\"AP8=\"},"
        "{\"id\":\"e\",\"topic\":\"t\",\"payload\":null}]}");
    is(graph->tasks[0].payload, "{\"x y\":[1,\" \\\" \"],\"z\":null}");
    CHECK_EQ(graph->tasks[0].headers_count, 1);
    is(graph->tasks[0].headers[0].name, "content-type");
    is(graph->tasks[0].headers[0].value, "application/json");
    is(graph->tasks[1].payload, "-1.5e3");
    is(graph->tasks[2].payload, "[]");
    CHECK_EQ(graph->tasks[2].headers_count, 1);
    is(graph->tasks[2].headers[0].value, "x");
    CHECK(graph->tasks[3].payload.bytes == 2);
    CHECK(memcmp(graph->tasks[3].payload.data, "\x00\xff", 2) == 0);
    CHECK_EQ(graph->tasks[3].headers_count, 0);
    is(graph->tasks[4].payload, "null");
    bel__job_graph_destroy(graph);
}

static void edges_go_both_ways_and_may_name_later_tasks(void)
{
    struct bel_job_graph *graph = graph_of(
        "{\"tasks\":[{\"id\":\"4\",\"topic\":\"t\",\"after\":[\"2\",{\"task\":\"3\",\"on\":"
        "\"always\"}]},{\"id\":\"2\",\"topic\":\"t\",\"after\":[\"1\"]},"
        "{\"id\":\"3\",\"topic\":\"t\",\"after\":[{\"on\":\"failure\",\"task\":\"1\"}]},"
        "{\"id\":\"1\",\"topic\":\"t\"}]}");
    CHECK_EQ(graph->edges_count, 4);
    CHECK_EQ(graph->tasks[0].after_count, 2);
    CHECK(bel__job_after(graph, 0)[0].task == 1 && bel__job_after(graph, 0)[1].task == 2);
    CHECK(bel__job_after(graph, 0)[1].on == BEL_EDGE_ALWAYS);
    CHECK_EQ(graph->tasks[3].dependents_count, 2);
    CHECK(bel__job_dependents(graph, 3)[0].task == 1 && bel__job_dependents(graph, 3)[1].task == 2);
    CHECK(bel__job_dependents(graph, 3)[1].on == BEL_EDGE_FAILURE);
    CHECK(graph->tasks[3].depth == 0 && graph->tasks[1].depth == 1 && graph->tasks[0].depth == 2);
    CHECK(graph->order[0] == 3 && graph->order[3] == 0);
    bel__job_graph_destroy(graph);
}

static void then_has_graphs_texts_and_ids(void)
{
    const char text[] =
        "{\"then\":[{\"job\":{\"tasks\":[{\"id\":\"x\",\"topic\":\"far\"}],"
        "\"then\":[{\"on\":\"failure\",\"job\":{\"tasks\":[]}}]}},"
        "{\"job\":{\"id\":\"named\",\"tasks\":[]},\"on\":\"always\"}],\"id\":\"p\",\"tasks\":[]}";
    struct bel_job_graph *graph = graph_of(text);
    CHECK_EQ(graph->then_count, 2);
    const struct bel_job_then *then = graph->then;
    is(then[0].graph->id, "p.1");
    CHECK(then[0].on == BEL_EDGE_SUCCESS && then[1].on == BEL_EDGE_ALWAYS);
    is(then[0].graph->then[0].graph->id, "p.1.1");
    CHECK(then[0].graph->then[0].on == BEL_EDGE_FAILURE);
    is(then[1].graph->id, "named");
    is(then[1].text, "{\"id\":\"named\",\"tasks\":[]}");
    CHECK(bel__job_graph_bytes(graph) > sizeof *graph);
    bel__job_graph_destroy(graph);
}

static bool is_etl(const void *context, struct bel_view topic)
{
    (void)context;
    return topic.bytes == 3 && memcmp(topic.data, "etl", 3) == 0;
}

static void a_scope_needs_every_topic_also_of_then(void)
{
    struct bel_job_scope all = {0}, etl = {.has = is_etl};
    struct bel_job_graph *graph = graph_of("{\"tasks\":[{\"id\":\"a\",\"topic\":\"etl\"}]}");
    CHECK(bel__job_graph_in_scope(graph, &etl) && bel__job_graph_in_scope(graph, &all));
    bel__job_graph_destroy(graph);
    graph = graph_of("{\"tasks\":[{\"id\":\"a\",\"topic\":\"etl\"}],"
                     "\"then\":[{\"job\":{\"tasks\":[{\"id\":\"a\",\"topic\":\"far\"}]}}]}");
    CHECK(!bel__job_graph_in_scope(graph, &etl) && bel__job_graph_in_scope(graph, &all));
    bel__job_graph_destroy(graph);
}

/* --- recurring jobs --- */

static void a_rule_makes_a_recurring_job(void)
{
    struct bel_job_graph *graph = graph_of(
        "{\"id\":\"n\",\"cron\":\"0 3 * * *\",\"tz\":\"Europe/Berlin\",\"count\":7,"
        "\"misfire\":\"last\",\"overlap\":\"queue\",\"gap\":\"skip\",\"fold\":\"second\","
        "\"spread\":\"10m\",\"until\":\"2030-01-01T00:00:00Z\",\"at\":1880000000000,\"tasks\":[]}");
    CHECK(graph->is_recurring && graph->plan.kind == BEL_PLAN_CRON);
    is(graph->plan.rule, "0 3 * * *");
    is(graph->plan.zone, "Europe/Berlin");
    CHECK(graph->plan.count == 7 && graph->plan.misfire == BEL_MISFIRE_LAST);
    CHECK(graph->plan.overlap == BEL_OVERLAP_QUEUE && graph->plan.gap == BEL_GAP_SKIP);
    CHECK(graph->plan.fold == BEL_FOLD_SECOND && graph->plan.spread_ms == 600000);
    CHECK(graph->plan.has_until && graph->plan.until.ms == INT64_C(1893456000000));
    CHECK(graph->has_start && graph->start.ms == INT64_C(1880000000000));
    bel__job_graph_destroy(graph);

    graph = graph_of("{\"every\":300000,\"tasks\":[]}");
    CHECK(graph->is_recurring && graph->plan.kind == BEL_PLAN_EVERY);
    is(graph->plan.rule, "300000");
    bel__job_graph_destroy(graph);
    refuses(BEL_EINVAL, "{\"cron\":\"0 99 * * *\",\"tasks\":[]}",
            "cron: at byte 3, expected an hour from 0 to 23");
    refuses(BEL_EINVAL, "{\"cron\":\"5m\",\"tasks\":[]}", "cron: not a rule of this kind");
    refuses(BEL_EINVAL, "{\"every\":0,\"tasks\":[]}", "every: must be more than 0");
    refuses(BEL_EINVAL, "{\"every\":\"1m\",\"cron\":\"@daily\",\"tasks\":[]}",
            "cron: give one of every, cron, rrule");
    refuses(BEL_EINVAL, "{\"tz\":\"UTC\",\"tasks\":[]}", "tz: needs every, cron or rrule");
    refuses(BEL_EINVAL, "{\"cron\":\"@daily\",\"tz\":\"Berlin\",\"tasks\":[]}",
            "tz: 'Berlin' is not the name of a time zone: did you mean Europe/Berlin?");
    refuses(BEL_EINVAL, "{\"cron\":\"@daily\",\"tz\":\"Mars/Olympus\",\"tasks\":[]}",
            "tz: 'Mars/Olympus' is not the name of a time zone, e.g. Europe/Berlin");
    refuses(BEL_EINVAL, "{\"cron\":\"@daily\",\"tz\":\"a b\",\"tasks\":[]}",
            "tz: not the name of a time zone, e.g. Europe/Berlin");
    refuses(BEL_EINVAL, "{\"then\":[{\"job\":{\"every\":\"1m\",\"tasks\":[]}}],\"tasks\":[]}",
            "then[0].job.every: a job of then cannot recur");
}

static void an_occurrence_has_its_time_in_ids_and_payloads(void)
{
    const char text[] =
        "{\"id\":\"n\",\"cron\":\"@daily\",\"tz\":\"UTC\",\"tasks\":["
        "{\"id\":\"a\",\"topic\":\"t\",\"payload\":\"day {{nominal}}{{nominal}}, {{nomina\"},"
        "{\"id\":\"b\",\"topic\":\"t\",\"payload\":{\"at\": \"{{nominal}}\"}},"
        "{\"id\":\"c\",\"topic\":\"t\",\"payload_base64\":\"e3tub21pbmFsfX0=\"}],"
        "\"then\":[{\"job\":{\"tasks\":[]}}]}";
    struct bel_job_parser_options options = options_of(view(text));
    options.has_nominal = true;
    options.nominal.ms = INT64_C(1780279200000);
    for (uint32_t work = 1; work < 10000; work *= 13) {
        struct parsed parsed = parse_with(&options, work);
        CHECK_NOTE("%s", parsed.why);
        CHECK(parsed.err == 0 && !parsed.graph->is_recurring);
        is(parsed.graph->id, "n@1780279200000");
        is(parsed.graph->then[0].graph->id, "n.1@1780279200000");
        is(parsed.graph->tasks[0].payload,
           "day 2026-06-01T02:00:00Z2026-06-01T02:00:00Z, {{nomina");
        is(parsed.graph->tasks[1].payload, "{\"at\":\"2026-06-01T02:00:00Z\"}");
        is(parsed.graph->tasks[2].payload, "{{nominal}}");
        bel__job_graph_destroy(parsed.graph);
    }
}

/* --- what is refused --- */

#define TASK(rest) "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"" rest "}]}"

static void wrong_values_are_named_by_their_path(void)
{
    refuses(BEL_EINVAL, "{}", "tasks: missing");
    refuses(BEL_EINVAL, "[]", "expected a job, which is an object");
    refuses(BEL_EINVAL, "{\"foo\":1}", "foo: unknown field");
    refuses(BEL_EINVAL, "{\"tasks\":[{},{}]}", "tasks[0].id: missing");
    refuses(BEL_EINVAL, "{\"tasks\":[{\"id\":\"a\"}]}", "tasks[0].topic: missing");
    refuses(BEL_EINVAL, TASK(",\"foo\":1"), "tasks[0].foo: unknown field");
    refuses(BEL_EINVAL, TASK(",\"b\\u001b[1m \":1"), "tasks[0].b\\u001b[1m?: unknown field");
    refuses(BEL_EINVAL, TASK(",\"id\":\"b\""), "tasks[0].id: given twice");
    refuses(BEL_EINVAL, "{\"tasks\":[{\"id\":\"a/b\",\"topic\":\"t\"}]}",
            "tasks[0].id: use A-Z a-z 0-9 . _ : - and neither / nor @");
    refuses(BEL_EINVAL, "{\"id\":\"a@1\",\"tasks\":[]}",
            "id: use A-Z a-z 0-9 . _ : - and neither / nor @");
    refuses(BEL_EINVAL, "{\"tasks\":[{\"id\":\"a\",\"topic\":\"count\"}]}",
            "tasks[0].topic: an option of CLAIM has this name: use another one");
    refuses(BEL_EINVAL, "{\"tasks\":[{\"id\":\"a\",\"topic\":\"a b\"}]}",
            "tasks[0].topic: not a name of a topic: use A-Z a-z 0-9 . _ : / -");
    refuses(BEL_EINVAL, TASK(",\"cost\":1000001"),
            "tasks[0].cost: expected a whole number from 0 to 1000000");
    refuses(BEL_EINVAL, TASK(",\"cost\":-1"),
            "tasks[0].cost: expected a whole number from 0 to 1000000");
    refuses(BEL_EINVAL, TASK(",\"cost\":1.5"),
            "tasks[0].cost: expected a whole number from 0 to 1000000");
    refuses(BEL_EINVAL, TASK(",\"cost\":NaN"), "line 1, column 40: expected a JSON value");
    refuses(BEL_EINVAL, TASK(",\"priority\":256"),
            "tasks[0].priority: expected a whole number from 0 to 255");
    refuses(BEL_EINVAL, "{\"priority\":0,\"tasks\":[]}",
            "priority: expected a whole number from 1 to 10");
    refuses(BEL_EINVAL, TASK(",\"retry\":\"3\""),
            "tasks[0].retry: at byte 2, expected a unit, as in 5s, or max(5) for 5 attempts; also "
            "fixed(1s) max(3)");
    refuses(BEL_EINVAL, TASK(",\"idle\":0"), "tasks[0].idle: must be more than 0");
    refuses(BEL_EINVAL, TASK(",\"idle\":\"30\""), "tasks[0].idle: '30' needs a unit, e.g. 30s");
    refuses(BEL_EINVAL, TASK(",\"in\":\"05\""), "tasks[0].in: '05' needs a unit, e.g. 05s");
    refuses(BEL_EINVAL, TASK(",\"in\":\"1s\",\"at\":1900000000000"),
            "tasks[0].at: in is there too: give one of them");
    refuses(BEL_EINVAL, TASK(",\"at\":1900000000"),
            "tasks[0].at: this looks like seconds: give milliseconds");
    refuses(BEL_EINVAL, TASK(",\"at\":-1"), "tasks[0].at: this is before 1970");
    refuses(BEL_EINVAL, TASK(",\"at\":\"1969-12-31T00:00:00Z\""),
            "tasks[0].at: this is before 1970");
    refuses(BEL_EINVAL, TASK(",\"payload\":1,\"payload_base64\":\"\""),
            "tasks[0].payload_base64: payload is there too: give one of them");
    refuses(BEL_EINVAL, TASK(",\"payload_base64\":\"AP8\""),
            "tasks[0].payload_base64: not base64 with padding (RFC 4648)");
    refuses(BEL_EINVAL, TASK(",\"headers\":{\"Belfry-x\":\"\"}"),
            "tasks[0].headers: names that begin with belfry- are reserved");
    refuses(BEL_EINVAL, TASK(",\"after\":[\"a\"]"), "tasks[0].after[0]: 'a' comes after itself");
    refuses(BEL_EINVAL, TASK(",\"after\":[{\"task\":\"b\",\"on\":\"never\"}]"),
            "tasks[0].after[0].on: expected success, always or failure");
    refuses(BEL_EINVAL, TASK(",\"after\":[{\"on\":\"always\"}]"),
            "tasks[0].after[0].task: missing");
    refuses(BEL_EINVAL, TASK(",\"after\":[7]"),
            "tasks[0].after[0]: expected the id of a task, or an object");
    refuses(BEL_EINVAL, TASK(",\"correlation\":\"\""),
            "tasks[0].correlation: is empty: leave it out, or give it a value");
}

static void names_that_are_missing_or_double_are_refused(void)
{
    refuses(BEL_EINVAL,
            "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},{\"id\":\"b\",\"topic\":\"t\","
            "\"after\":[\"a\",\"x\"]}]}",
            "tasks[1].after[1]: 'x' is not a task of this job");
    refuses(BEL_EINVAL,
            "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},{\"id\":\"b\",\"topic\":\"t\","
            "\"after\":[\"a\",{\"task\":\"a\",\"on\":\"always\"}]}]}",
            "tasks[1].after[1]: 'a' is named twice");
    refuses(BEL_EINVAL,
            "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},{\"id\":\"b\",\"topic\":\"t\"},"
            "{\"id\":\"a\",\"topic\":\"t\"}]}",
            "tasks[2].id: duplicate: tasks[0] has the id 'a' too");
    refuses(BEL_EINVAL,
            "{\"id\":\"p\",\"tasks\":[],\"then\":[{\"job\":{\"tasks\":[],\"id\":\"p\"}}]}",
            "then[0].job.id: duplicate: the outermost job has the id 'p' too");
    refuses(BEL_EINVAL,
            "{\"id\":\"p\",\"tasks\":[],\"then\":[{\"job\":{\"tasks\":[],\"id\":\"a\"}},"
            "{\"job\":{\"tasks\":[],\"id\":\"b\"}},{\"job\":{\"tasks\":[],\"id\":\"a\"}}]}",
            "then[2].job.id: duplicate: then[0].job has the id 'a' too");
    refuses(BEL_EINVAL,
            "{\"id\":\"p\",\"tasks\":[],\"then\":[{\"job\":{\"tasks\":[],\"id\":\"a\",\"then\":["
            "{\"job\":{\"tasks\":[],\"id\":\"b\"}},{\"job\":{\"tasks\":[],\"id\":\"a\"}}]}}]}",
            "then[0].job.then[1].job.id: duplicate: then[0].job has the id 'a' too");
}

static void what_was_meant_is_named(void)
{
    refuses(BEL_EINVAL, TASK(",\"depends_on\":[\"b\"]"),
            "tasks[0].depends_on: unknown field; did you mean 'after'?");
    refuses(BEL_EINVAL, TASK(",\"dependson\":[\"b\"]"),
            "tasks[0].dependson: unknown field; did you mean 'after'?");
    refuses(BEL_EINVAL, "{\"tasks\":[{\"name\":\"a\",\"topic\":\"t\"}]}",
            "tasks[0].name: unknown field; did you mean 'id'?");
    refuses(BEL_EINVAL, "{\"Tasks\":[]}", "Tasks: unknown field; did you mean 'tasks'?");
    refuses(BEL_EINVAL, TASK(",\"paylaod\":1"),
            "tasks[0].paylaod: unknown field; did you mean 'payload'?");
    refuses(BEL_EINVAL, TASK(",\"after\":[{\"id\":\"b\"}]"),
            "tasks[0].after[0].id: unknown field; did you mean 'task'?");
    refuses(BEL_EINVAL, "{\"topic\":\"t\",\"tasks\":[]}",
            "topic: unknown field: a field of a task, not of a job");
    refuses(BEL_EINVAL, TASK(",\"timeout\":\"1m\""),
            "tasks[0].timeout: unknown field: a field of a job, not of a task");
    refuses(BEL_EINVAL, TASK(",\"retry\":3"),
            "tasks[0].retry: expected a string: \"max(3)\" for 3 attempts");
    refuses(BEL_EINVAL, TASK(",\"retry\":-1"),
            "tasks[0].retry: expected a string: \"max(5)\" for 5 attempts");
    refuses(BEL_EINVAL, TASK(",\"after\":\"b\""), "tasks[0].after: expected an array: [\"b\"]");
    refuses(BEL_EINVAL,
            "{\"tasks\":[{\"id\":\"fetch\",\"topic\":\"t\"},{\"id\":\"load\",\"topic\":\"t\","
            "\"after\":[\"fetsh\"]}]}",
            "tasks[1].after[0]: 'fetsh' is not a task of this job; did you mean 'fetch'?");
}

/* The time for the search of a similar id does not depend on the number of tasks. */
static void a_similar_id_is_searched_among_the_first(void)
{
    enum {
        TASKS = 300
    };
    static char text[64 * TASKS];
    for (int place = 0; place < TASKS; place += TASKS - 1) {
        size_t used = (size_t)snprintf(text, sizeof text, "{\"tasks\":[");
        for (int i = 0; i < TASKS; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "{\"id\":\"%s%03d\",\"topic\":\"t\"},",
                                     i == place ? "fetch" : "other", i);
        }
        (void)snprintf(text + used, sizeof text - used,
                       "{\"id\":\"z\",\"topic\":\"t\",\"after\":[\"fetsh%03d\"]}]}", place);
        char why[BEL_WHY_BYTES];
        (void)snprintf(why, sizeof why,
                       "tasks[300].after[0]: 'fetsh%03d' is not a task of this job%s", place,
                       place == 0 ? "; did you mean 'fetch000'?" : "");
        refuses(BEL_EINVAL, text, why);
    }
}

static void wrong_json_is_named_by_line_and_column(void)
{
    refuses(BEL_EINVAL, "{\n  \"id\": \"n\",\n  \"tasks\": [],\n}",
            "line 4, column 1: expected a name in quotes");
    refuses(BEL_EINVAL, "{\"tasks\": [\n\n    {\"id\": 'a'}]}",
            "line 3, column 12: expected a JSON value");
    refuses(BEL_EINVAL, "{\"id\": \"a\nb\"}",
            "line 1, column 10: expected text in UTF-8 without control characters");
    refuses(BEL_EINVAL, "\xef\xbb\xbf{\"tasks\":[]}",
            "the text begins with a byte order mark: leave it out");
}

static void a_cycle_is_named_by_its_path(void)
{
    refuses(BEL_EINVAL,
            "{\"tasks\":[{\"id\":\"0\",\"topic\":\"t\"},"
            "{\"id\":\"1\",\"topic\":\"t\",\"after\":[\"0\",\"3\"]},"
            "{\"id\":\"2\",\"topic\":\"t\",\"after\":[\"1\"]},"
            "{\"id\":\"3\",\"topic\":\"t\",\"after\":[\"2\",\"0\"]},"
            "{\"id\":\"4\",\"topic\":\"t\",\"after\":[\"3\"]}]}",
            "cycle: 1 -> 2 -> 3 -> 1");
    refuses(BEL_EINVAL,
            "{\"tasks\":[],\"then\":[{\"job\":{\"tasks\":["
            "{\"id\":\"1\",\"topic\":\"t\",\"after\":[\"2\"]},"
            "{\"id\":\"2\",\"topic\":\"t\",\"after\":[\"1\"]}]}}]}",
            "then[0].job: cycle: 1 -> 2 -> 1");
}

enum {
    LONG_BYTES = 20 << 20,
};

/* A chain of tasks; if `is_closed`, the first comes after the last. The caller frees the text. */
static char *chain(unsigned count, bool is_closed)
{
    char *text = malloc(LONG_BYTES);
    CHECK(text != NULL);
    int used = snprintf(text, LONG_BYTES, "{\"tasks\":[");
    for (unsigned i = 0; i < count; i++) {
        used += snprintf(text + used, LONG_BYTES - (size_t)used, "%s{\"id\":\"%u\",\"topic\":\"t\"",
                         i > 0 ? "," : "", i);
        if (i > 0 || is_closed) {
            used += snprintf(text + used, LONG_BYTES - (size_t)used, ",\"after\":[\"%u\"]",
                             (i + count - 1) % count);
        }
        text[used++] = '}';
    }
    (void)snprintf(text + used, LONG_BYTES - (size_t)used, "]}");
    return text;
}

static void a_long_chain_is_found_to_be_a_cycle_or_not(void)
{
    char *text = chain(1500, false);
    struct bel_job_graph *graph = graph_of(text);
    CHECK_EQ(graph->tasks[1499].depth, 1499);
    bel__job_graph_destroy(graph);
    free(text);
    text = chain(1500, true);
    struct bel_job_parser_options options = options_of(view(text));
    struct parsed parsed = parse_with(&options, 1000);
    CHECK(parsed.err == BEL_EINVAL);
    CHECK(strcmp(parsed.why, "cycle of 1500 tasks: 0 -> 1 -> 2 -> 3 -> 4 -> ... -> 1499 -> 0") ==
          0);
    free(text);
}

static void too_much_is_full(void)
{
    char text[600];
    refuses(BEL_EFULL,
            "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\",\"payload\":"
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
            "line 1, column 168: expected fewer levels of arrays and objects");
    char *long_chain = chain(20, false);
    struct bel_job_parser_options options = options_of(view(long_chain));
    options.limits.tasks_max = 19;
    CHECK(parse_with(&options, 100).err == BEL_EFULL);
    options.limits = (struct bel_job_limits){.edges_max = 18};
    CHECK(parse_with(&options, 100).err == BEL_EFULL);
    options.limits = (struct bel_job_limits){.text_bytes_max = strlen(long_chain) - 1};
    CHECK(parse_with(&options, 100).err == BEL_EFULL);
    options.limits = (struct bel_job_limits){.tasks_max = 20, .edges_max = 19};
    struct parsed parsed = parse_with(&options, 100);
    CHECK(parsed.err == 0);
    bel__job_graph_destroy(parsed.graph);
    free(long_chain);
    (void)snprintf(text, sizeof text, TASK(",\"payload\":\"12345\""));
    options = options_of(view(text));
    options.limits.payload_bytes_max = 4;
    CHECK(parse_with(&options, 100).err == BEL_EFULL);
    options.limits.payload_bytes_max = 5;
    parsed = parse_with(&options, 100);
    CHECK(parsed.err == 0);
    bel__job_graph_destroy(parsed.graph);
    char *cursor = text;
    for (unsigned i = 0; i < 7; i++) {
        cursor += snprintf(cursor, 100, "{\"tasks\":[],\"then\":[{\"job\":");
    }
    refuses(BEL_EFULL, text,
            "then[0].job.then[0].job.then[0].job.then[0].job.then[0].job.then[0].job: "
            "then is more than 5 levels deep (--job-depth)");
}

static void ids_are_limited_together(void)
{
    char text[400], job[101], task[101];
    memset(job, 'j', sizeof job);
    memset(task, 't', sizeof task);
    (void)snprintf(text, sizeof text,
                   "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},{\"id\":\"%.40s\",\"topic\":\"t\"}],"
                   "\"id\":\"%.60s\"}",
                   task, job);
    bel__job_graph_destroy(graph_of(text));
    (void)snprintf(text, sizeof text,
                   "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},{\"id\":\"%.41s\",\"topic\":\"t\"}],"
                   "\"id\":\"%.60s\"}",
                   task, job);
    refuses(BEL_EINVAL, text,
            "tasks[1].id: the ids of job and task are longer than 100 bytes together");
}

static void the_id_of_a_request_must_be_that_of_the_text(void)
{
    struct bel_job_parser_options options = options_of(view("{\"id\":\"a\",\"tasks\":[]}"));
    options.id = BEL_VIEW("b");
    struct parsed parsed = parse_with(&options, 100);
    CHECK(parsed.err == BEL_EINVAL);
    CHECK(strcmp(parsed.why, "id: differs from the id in the request") == 0);
    options.text = view("{\"tasks\":[]}");
    parsed = parse_with(&options, 100);
    CHECK(parsed.err == 0);
    is(parsed.graph->id, "b");
    bel__job_graph_destroy(parsed.graph);
}

static void text_that_is_not_json_is_refused(void)
{
    static const char *const texts[] = {
        "",
        "{",
        "{\"tasks\"",
        "{\"tasks\":",
        "{\"tasks\":[",
        "{\"tasks\":[]",
        "{\"tasks\":[]}}",
        "{\"tasks\":[]} x",
        "{\"tasks\":[],}",
        "{,\"tasks\":[]}",
        "{\"tasks\" []}",
        "{tasks:[]}",
        TASK(",\"payload\":01"),
        TASK(",\"payload\":1."),
        TASK(",\"payload\":.5"),
        TASK(",\"payload\":+1"),
        TASK(",\"payload\":1e"),
        TASK(",\"payload\":tru"),
        TASK(",\"payload\":nan"),
        TASK(",\"payload\":Infinity"),
        TASK(",\"payload\":\"\t\""),
        TASK(",\"payload\":\"\\x\""),
        TASK(",\"payload\":\"\\ud800\""),
        TASK(",\"payload\":\"\\udc00\""),
        TASK(",\"payload\":\"\\ud800\\u0041\""),
        TASK(",\"payload\":\"\xff\""),
        TASK(",\"payload\":\"\xed\xa0\x80\""),
        TASK(",\"payload\":[1,]"),
        TASK(",\"payload\":[1 2]"),
        TASK(",\"payload\":{\"a\"}"),
        TASK(",\"payload\":{\"a\":1]"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bel_job_parser_options options = options_of(view(texts[i]));
        for (uint32_t work = 1; work < 1000; work *= 7) {
            struct parsed parsed = parse_with(&options, work);
            CHECK_NOTE("%.100s: %.140s", texts[i], parsed.why);
            CHECK(parsed.err == BEL_EINVAL && strstr(parsed.why, "line 1, column ") != NULL);
        }
    }
}

static void escapes_are_decoded(void)
{
    struct bel_job_graph *graph =
        graph_of("{\"t\\u0061sks\":[{\"id\":\"\\u0061\",\"topic\":\"t\",\"payload\":"
                 "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u20ac\\ud83d\\ude00\"}]}");
    is(graph->tasks[0].id, "a");
    struct bel_view payload = graph->tasks[0].payload;
    CHECK(payload.bytes == 16);
    CHECK(memcmp(payload.data, "\"\\/\b\f\n\r\t\0\xe2\x82\xac\xf0\x9f\x98\x80", 16) == 0);
    bel__job_graph_destroy(graph);
}

/* --- slices --- */

static double cpu_ms(void)
{
    struct timespec at;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at) == 0);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

/* The largest job: 10,000 tasks, 100,000 edges and nearly 16 MiB. Counts steps rather than time;
 * the time of the longest step is printed for people. */
static void the_largest_job_takes_many_short_steps(void)
{
    char *text = malloc(LONG_BYTES);
    CHECK(text != NULL);
    int used = snprintf(text, LONG_BYTES, "{\"tasks\":[");
    for (unsigned i = 0; i < 10000; i++) {
        used +=
            snprintf(text + used, LONG_BYTES - (size_t)used,
                     "%s{\"id\":\"task-%u\",\"topic\":\"t\",\"payload\":\"%01480u\",\"after\":[",
                     i > 0 ? "," : "", i, i);
        for (unsigned k = 1; k <= 10 && k <= i; k++) {
            used += snprintf(text + used, LONG_BYTES - (size_t)used, "%s\"task-%u\"",
                             k > 1 ? "," : "", i - k);
        }
        used += snprintf(text + used, LONG_BYTES - (size_t)used, "]}");
    }
    used += snprintf(text + used, LONG_BYTES - (size_t)used, "]}");
    CHECK(used > 15 << 20 && used < 16 << 20);
    struct bel_job_parser_options options = options_of((struct bel_view){text, (size_t)used});
    struct bel_job_parser *parser;
    CHECK(bel__job_parser_create(&options, &parser) == 0);
    unsigned steps = 0;
    double longest = 0, total = 0;
    int err = BEL_JOB_PARSER_MORE;
    while (err == BEL_JOB_PARSER_MORE) {
        double start = cpu_ms();
        err = bel__job_parser_step(parser, BEL_JOB_PARSER_WORK);
        double took = cpu_ms() - start;
        if (took > longest) longest = took;
        total += took;
        steps++;
    }
    CHECK_NOTE("%s", bel__job_parser_why(parser));
    CHECK(err == 0 && steps >= 60);
    struct bel_job_graph *graph = bel__job_parser_take(parser);
    CHECK(graph->edges_count == 99945 && graph->tasks[9999].depth == 9999);
    printf("     %u steps, longest %.2f ms of CPU time, all %.1f ms, graph %zu bytes\n", steps,
           longest, total, bel__job_graph_bytes(graph));
    bel__job_graph_destroy(graph);
    bel__job_parser_destroy(parser);
    free(text);
}

int main(void)
{
    CHECK(bel_zones_open(NULL, &zones) == 0);
    RUN(a_job_has_its_fields_and_defaults);
    RUN(a_stored_text_may_have_a_duration_without_a_unit);
    RUN(a_task_has_its_fields_and_defaults);
    RUN(a_payload_that_is_a_value_is_compact_and_has_a_type);
    RUN(edges_go_both_ways_and_may_name_later_tasks);
    RUN(then_has_graphs_texts_and_ids);
    RUN(a_scope_needs_every_topic_also_of_then);
    RUN(a_rule_makes_a_recurring_job);
    RUN(an_occurrence_has_its_time_in_ids_and_payloads);
    RUN(wrong_values_are_named_by_their_path);
    RUN(names_that_are_missing_or_double_are_refused);
    RUN(what_was_meant_is_named);
    RUN(a_similar_id_is_searched_among_the_first);
    RUN(wrong_json_is_named_by_line_and_column);
    RUN(a_cycle_is_named_by_its_path);
    RUN(a_long_chain_is_found_to_be_a_cycle_or_not);
    RUN(too_much_is_full);
    RUN(ids_are_limited_together);
    RUN(the_id_of_a_request_must_be_that_of_the_text);
    RUN(text_that_is_not_json_is_refused);
    RUN(escapes_are_decoded);
    RUN(the_largest_job_takes_many_short_steps);
    bel_zones_close(zones);
    return 0;
}
