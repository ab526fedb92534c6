/* SPDX-License-Identifier: MIT */

/*
 * One byte for the size of the slices and whether this is an occurrence, then the text of a job. A
 * text that is accepted must give a valid graph; the result must not depend on the slices.
 */
#include "jobs/parser.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct parsed {
    int err;
    size_t bytes;
    uint32_t tasks, edges;
    char why[BEL_WHY_BYTES];
};

static struct parsed parse(const struct bel_job_parser_options *options, uint32_t work)
{
    struct parsed parsed = {0};
    struct bel_job_parser *parser;
    parsed.err = bel__job_parser_create(options, &parser);
    assert(parsed.err == 0);
    do {
        parsed.err = bel__job_parser_step(parser, work);
    } while (parsed.err == BEL_JOB_PARSER_MORE);
    size_t bytes = strlen(bel__job_parser_why(parser));
    assert(bytes < sizeof parsed.why && (parsed.err == 0) == (bytes == 0));
    memcpy(parsed.why, bel__job_parser_why(parser), bytes + 1);
    if (parsed.err == 0) {
        struct bel_job_graph *graph = bel__job_parser_take(parser);
        assert(bel__job_graph_valid(graph) && graph->id.bytes > 0);
        parsed.bytes = bel__job_graph_bytes(graph);
        parsed.tasks = graph->tasks_count;
        parsed.edges = graph->edges_count;
        bel__job_graph_destroy(graph);
    } else {
        assert(parsed.err == BEL_EINVAL || parsed.err == BEL_EFULL);
    }
    bel__job_parser_destroy(parser);
    return parsed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct bel_job_parser_options options = {
        .text = {data + 1, size - 1},
        .made_id = BEL_VIEW("made"),
        .limits = {.tasks_max = 100, .edges_max = 200, .payload_bytes_max = 1000, .depth_max = 32},
        .now = {INT64_C(1800000000000)},
        .has_nominal = (data[0] & 1) != 0,
        .nominal = {INT64_C(1700000000000)}};
    struct parsed one = parse(&options, 1 + (uint32_t)(data[0] >> 1));
    struct parsed other = parse(&options, BEL_JOB_PARSER_WORK);
    assert(one.err == other.err && strcmp(one.why, other.why) == 0);
    assert(one.bytes == other.bytes && one.tasks == other.tasks && one.edges == other.edges);
    return 0;
}
