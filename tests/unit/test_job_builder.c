/* SPDX-License-Identifier: MIT */
#include "belfry/job_builder.h"

#include "../check.h"
#include "jobs/parser.h"

#include <string.h>

static bool is(struct bel_view got, const char *want)
{
    CHECK_NOTE("got %.*s", (int)(got.bytes < 200 ? got.bytes : 200), (const char *)got.data);
    return got.bytes == strlen(want) && memcmp(got.data, want, got.bytes) == 0;
}

static struct bel_job_builder *builder_of(const struct bel_job_spec *job)
{
    struct bel_job_builder *builder;
    CHECK(bel_job_builder_create(job, &builder) == 0);
    return builder;
}

static struct bel_view end(struct bel_job_builder *builder)
{
    struct bel_view text;
    CHECK(bel_job_builder_end(builder, &text) == 0);
    return text;
}

/* Parses what a builder has written. */
static struct bel_job_graph *graph_of(struct bel_view text)
{
    struct bel_job_parser_options options = {
        .text = text, .made_id = BEL_VIEW("made"), .now = {INT64_C(1700000000000)}};
    struct bel_job_parser *parser;
    int err;
    CHECK(bel__job_parser_create(&options, &parser) == 0);
    do {
        err = bel__job_parser_step(parser, BEL_JOB_PARSER_WORK);
    } while (err == BEL_JOB_PARSER_MORE);
    CHECK_NOTE("%s", bel__job_parser_why(parser));
    CHECK(err == 0);
    struct bel_job_graph *graph = bel__job_parser_take(parser);
    bel__job_parser_destroy(parser);
    return graph;
}

static void a_small_job_is_a_small_text(void)
{
    struct bel_job_builder *builder = builder_of(NULL);
    CHECK(is(end(builder), "{\"tasks\":[]}"));
    CHECK(is(end(builder), "{\"tasks\":[]}")); /* again */
    bel_job_builder_destroy(builder);
    builder = builder_of(&(struct bel_job_spec){.id = "nightly"});
    bel_job_builder_task(builder, &(struct bel_task_spec){.id = "fetch", .topic = "etl"});
    bel_job_builder_task(builder, &(struct bel_task_spec){.id = "load", .topic = "etl"});
    bel_job_builder_header(builder, "k", "v");
    bel_job_builder_after(builder, "fetch", BEL_EDGE_SUCCESS);
    bel_job_builder_after(builder, "other", BEL_EDGE_FAILURE);
    CHECK(is(end(builder),
             "{\"id\":\"nightly\",\"tasks\":[{\"id\":\"fetch\",\"topic\":\"etl\"},"
             "{\"id\":\"load\",\"topic\":\"etl\",\"after\":[\"fetch\",{\"task\":\"other\","
             "\"on\":\"failure\"}],\"headers\":{\"k\":\"v\"}}]}"));
    bel_job_builder_destroy(builder);
    bel_job_builder_destroy(NULL);
}

static void every_field_is_read_back(void)
{
    struct bel_job_builder *inner = builder_of(NULL);
    bel_job_builder_task(inner, &(struct bel_task_spec){.id = "x", .topic = "t"});
    struct bel_job_builder *builder = builder_of(&(struct bel_job_spec){.id = "j",
                                                                        .priority = 2,
                                                                        .timeout_ms = 7,
                                                                        .pace_ms = 8,
                                                                        .has_cooldown = true,
                                                                        .cooldown_ms = 0,
                                                                        .retry = "max(3)",
                                                                        .cron = "@daily",
                                                                        .tz = "UTC",
                                                                        .at = "1800000000000",
                                                                        .until = "1900000000000",
                                                                        .misfire = "all",
                                                                        .overlap = "allow",
                                                                        .gap = "skip",
                                                                        .fold = "both",
                                                                        .count = 3,
                                                                        .spread_ms = 9});
    bel_job_builder_task(builder, &(struct bel_task_spec){.id = "a",
                                                          .topic = "t",
                                                          .payload = BEL_VIEW("\"\\\n\x01é"),
                                                          .resource = "api",
                                                          .retry = "5s",
                                                          .correlation = "c",
                                                          .cost = 4,
                                                          .has_priority = true,
                                                          .priority = 0,
                                                          .idle_ms = 5,
                                                          .delay_ms = 6});
    bel_job_builder_task(builder, &(struct bel_task_spec){.id = "b",
                                                          .topic = "t",
                                                          .is_json = true,
                                                          .payload = BEL_VIEW("{\"x\": [1]}"),
                                                          .has_at = true,
                                                          .at = {INT64_C(1800000000000)}});
    bel_job_builder_after(builder, "a", BEL_EDGE_ALWAYS);
    bel_job_builder_task(
        builder, &(struct bel_task_spec){.id = "c", .topic = "t", .payload = BEL_VIEW("\xff\x00")});
    bel_job_builder_then(builder, end(inner), BEL_EDGE_FAILURE);
    struct bel_job_graph *graph = graph_of(end(builder));
    CHECK(is(graph->id, "j") && graph->priority == 2 && graph->timeout_ms == 7);
    CHECK(graph->pace_ms == 8 && graph->cooldown_ms == 0 && is(graph->retry, "max(3)"));
    CHECK(graph->is_recurring && is(graph->plan.rule, "@daily") && is(graph->plan.zone, "UTC"));
    CHECK(graph->has_start && graph->plan.has_until && graph->plan.misfire == BEL_MISFIRE_ALL);
    CHECK(graph->plan.overlap == BEL_OVERLAP_ALLOW && graph->plan.gap == BEL_GAP_SKIP);
    CHECK(graph->plan.fold == BEL_FOLD_BOTH && graph->plan.count == 3);
    CHECK_EQ(graph->plan.spread_ms, 9);
    const struct bel_job_node *task = graph->tasks;
    CHECK(is(task->payload, "\"\\\n\x01é") && is(task->resource, "api") && is(task->retry, "5s"));
    CHECK(is(task->correlation, "c") && task->cost == 4 && task->priority == 0);
    CHECK(task->idle_ms == 5 && task->when == BEL_WHEN_IN && task->delay_ms == 6);
    CHECK(is(task[1].payload, "{\"x\":[1]}") && task[1].when == BEL_WHEN_AT);
    CHECK(bel__job_after(graph, 1)->on == BEL_EDGE_ALWAYS);
    CHECK(task[2].payload.bytes == 2 && memcmp(task[2].payload.data, "\xff\x00", 2) == 0);
    CHECK(graph->then_count == 1 && graph->then[0].on == BEL_EDGE_FAILURE);
    CHECK(is(graph->then[0].graph->id, "j.1"));
    bel__job_graph_destroy(graph);
    bel_job_builder_destroy(builder);
    bel_job_builder_destroy(inner);
}

static void calls_in_the_wrong_order_fail_at_the_end(void)
{
    struct bel_view text;
    struct bel_job_builder *builder = builder_of(NULL);
    bel_job_builder_after(builder, "a", BEL_EDGE_SUCCESS); /* before any task */
    bel_job_builder_task(builder, &(struct bel_task_spec){.id = "a", .topic = "t"});
    CHECK(bel_job_builder_end(builder, &text) == BEL_EINVAL);
    bel_job_builder_destroy(builder);
    builder = builder_of(NULL);
    bel_job_builder_task(builder, &(struct bel_task_spec){.id = "a"}); /* without a topic */
    CHECK(bel_job_builder_end(builder, &text) == BEL_EINVAL);
    bel_job_builder_destroy(builder);
    builder = builder_of(&(struct bel_job_spec){.id = "\xff"});
    CHECK(bel_job_builder_end(builder, &text) == BEL_EINVAL);
    bel_job_builder_destroy(builder);
    builder = builder_of(NULL);
    (void)end(builder);
    bel_job_builder_task(builder, &(struct bel_task_spec){.id = "a", .topic = "t"});
    CHECK(bel_job_builder_end(builder, &text) == BEL_EINVAL);
    bel_job_builder_destroy(builder);
}

static void lines_of_make_become_tasks(void)
{
    static const char lines[] = "# nightly\n"
                                "load : fetch clean?\r\n"
                                "\n"
                                "alarm: load! # only then\n"
                                "fetch:";
    struct bel_job_builder *builder = builder_of(&(struct bel_job_spec){.id = "n"});
    bel_job_builder_rules(builder, BEL_VIEW(lines), "etl");
    CHECK(is(end(builder),
             "{\"id\":\"n\",\"tasks\":[{\"id\":\"load\",\"topic\":\"etl\",\"after\":[\"fetch\","
             "{\"task\":\"clean\",\"on\":\"always\"}]},{\"id\":\"alarm\",\"topic\":\"etl\","
             "\"after\":[{\"task\":\"load\",\"on\":\"failure\"}]},{\"id\":\"fetch\",\"topic\":"
             "\"etl\"},{\"id\":\"clean\",\"topic\":\"etl\"}]}"));
    CHECK_EQ(bel_job_builder_line(builder), 0);
    bel_job_builder_destroy(builder);
}

static void wrong_lines_are_numbered(void)
{
    static const char *const wrong[] = {
        "a: b\nc",    "a: b\n: c",    "a: b\nb c: d",  "a: b\na: c",
        "a: b\nc/d:", "a: b\nc: d/e", "a: b\nc: d: e", "a: b\nc: ?",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct bel_view text;
        struct bel_job_builder *builder = builder_of(NULL);
        bel_job_builder_rules(builder, (struct bel_view){wrong[i], strlen(wrong[i])}, "t");
        CHECK_NOTE("%s", wrong[i]);
        CHECK(bel_job_builder_end(builder, &text) == BEL_EINVAL);
        CHECK_EQ(bel_job_builder_line(builder), 2);
        bel_job_builder_destroy(builder);
    }
}

int main(void)
{
    RUN(a_small_job_is_a_small_text);
    RUN(every_field_is_read_back);
    RUN(calls_in_the_wrong_order_fail_at_the_end);
    RUN(lines_of_make_become_tasks);
    RUN(wrong_lines_are_numbered);
    return 0;
}
