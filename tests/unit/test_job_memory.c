/* SPDX-License-Identifier: MIT */

/* Memory that runs out at every allocation of the parser and of the builder, one after the other:
 * linked with --wrap, so that all layers below count. */
#include "../check.h"
#include "belfry/job_builder.h"
#include "jobs/parser.h"

#include <stdbool.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_reallocarray(void *old, size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_reallocarray(void *old, size_t count, size_t bytes);

static uint64_t left = UINT64_MAX; /* allocations that still succeed */

static bool is_out(void)
{
    if (left == 0) return true;
    left--;
    return false;
}

void *__wrap_malloc(size_t bytes)
{
    return is_out() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_out() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return is_out() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_reallocarray(void *old, size_t count, size_t bytes)
{
    return is_out() ? NULL : __real_reallocarray(old, count, bytes);
}

static const char text[] =
    "{\"id\":\"n\",\"every\":\"5m\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\",\"payload\":[1]},"
    "{\"id\":\"b\",\"topic\":\"u\",\"after\":[\"a\"],\"headers\":{\"k\":\"v\"}}],"
    "\"then\":[{\"job\":{\"tasks\":[{\"id\":\"x\",\"topic\":\"t\"}]}}]}";

/* Parses with so much memory. Returns whether it was enough. */
static bool parses(uint64_t allocations)
{
    struct bel_job_parser_options options = {.text = BEL_VIEW(text)};
    struct bel_job_parser *parser = NULL;
    left = allocations;
    int err = bel__job_parser_create(&options, &parser);
    if (err == 0) {
        do {
            err = bel__job_parser_step(parser, 50);
        } while (err == BEL_JOB_PARSER_MORE);
    }
    left = UINT64_MAX;
    CHECK_NOTE("%llu allocations: %d", (unsigned long long)allocations, err);
    CHECK(err == 0 || err == BEL_ENOMEM);
    if (err == 0) {
        struct bel_job_graph *graph = bel__job_parser_take(parser);
        CHECK(bel__job_graph_valid(graph) && graph->then_count == 1);
        bel__job_graph_destroy(graph);
    }
    bel__job_parser_destroy(parser);
    return err == 0;
}

static bool builds(uint64_t allocations)
{
    struct bel_job_builder *builder = NULL;
    struct bel_view out;
    left = allocations;
    int err = bel_job_builder_create(&(struct bel_job_spec){.id = "n"}, &builder);
    if (err == 0) {
        bel_job_builder_rules(builder, BEL_VIEW("load: fetch\n"), "t");
        bel_job_builder_header(builder, "k", "v");
        bel_job_builder_then(builder, BEL_VIEW("{\"tasks\":[]}"), BEL_EDGE_ALWAYS);
        err = bel_job_builder_end(builder, &out);
    }
    left = UINT64_MAX;
    CHECK_NOTE("%llu allocations: %d", (unsigned long long)allocations, err);
    CHECK(err == 0 || err == BEL_ENOMEM);
    bel_job_builder_destroy(builder);
    return err == 0;
}

static void check_all(bool (*does)(uint64_t allocations), uint64_t least)
{
    uint64_t allocations = 0;
    while (!does(allocations)) {
        allocations++;
    }
    CHECK(allocations >= least);
}

static void a_parser_survives_every_failure(void)
{
    check_all(parses, 10);
}

static void a_builder_survives_every_failure(void)
{
    check_all(builds, 3);
}

int main(void)
{
    RUN(a_parser_survives_every_failure);
    RUN(a_builder_survives_every_failure);
    return 0;
}
