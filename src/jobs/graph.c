/* SPDX-License-Identifier: MIT */

/* What can be asked of a graph when it is complete. `then` is at most BEL_JOB_THEN_DEPTH_MAX deep,
 * which bounds the recursion. */
#include "jobs/graph.h"

#include <stdlib.h>

/* NOLINTBEGIN(misc-no-recursion): as deep as `then` */
bool bel__job_graph_in_scope(const struct bel_job_graph *graph, const struct bel_job_scope *scope)
{
    if (scope->has == NULL) return true;
    for (uint32_t i = 0; i < graph->topics_count; i++) {
        if (!scope->has(scope->context, graph->topics[i].name)) return false;
    }
    for (uint32_t i = 0; i < graph->then_count; i++) {
        if (!bel__job_graph_in_scope(graph->then[i].graph, scope)) return false;
    }
    return true;
}

size_t bel__job_graph_topics(const struct bel_job_graph *graph, struct bel_view *out)
{
    size_t count = graph->topics_count;
    for (uint32_t i = 0; out != NULL && i < graph->topics_count; i++) {
        out[i] = graph->topics[i].name;
    }
    for (uint32_t i = 0; i < graph->then_count; i++) {
        count += bel__job_graph_topics(graph->then[i].graph, out == NULL ? NULL : out + count);
    }
    return count;
}

size_t bel__job_graph_bytes(const struct bel_job_graph *graph)
{
    size_t bytes = sizeof *graph + graph->bytes;
    for (uint32_t i = 0; i < graph->then_count; i++) {
        bytes += bel__job_graph_bytes(graph->then[i].graph);
    }
    return bytes;
}

/* Returns whether the edges of a task fit those of the tasks at their far ends. */
static bool is_task_valid(const struct bel_job_graph *graph, uint32_t index)
{
    const struct bel_job_node *task = &graph->tasks[index];
    uint32_t depth = 0;
    if (task->after_count > graph->edges_count - task->after_start) return false;
    if (task->dependents_count > graph->edges_count - task->dependents_start) return false;
    if (task->topic_index >= graph->topics_count) return false;
    for (uint32_t i = 0; i < task->after_count; i++) {
        const struct bel_job_edge *edge = &bel__job_after(graph, index)[i];
        if (edge->task >= graph->tasks_count || edge->on >= BEL_EDGE_POLICIES) return false;
        uint32_t beneath = graph->tasks[edge->task].depth + 1;
        if (beneath > depth) depth = beneath;
    }
    for (uint32_t i = 0; i < task->dependents_count; i++) {
        const struct bel_job_edge *edge = &bel__job_dependents(graph, index)[i];
        if (edge->task >= graph->tasks_count) return false;
        if (graph->tasks[edge->task].depth <= task->depth) return false;
    }
    return depth == task->depth;
}

bool bel__job_graph_valid(const struct bel_job_graph *graph)
{
    uint64_t after = 0, dependents = 0, in_topics = 0;
    for (uint32_t i = 0; i < graph->tasks_count; i++) {
        if (!is_task_valid(graph, i) || graph->order[i] >= graph->tasks_count) return false;
        after += graph->tasks[i].after_count;
        dependents += graph->tasks[i].dependents_count;
    }
    for (uint32_t i = 0; i < graph->topics_count; i++) {
        in_topics += graph->topics[i].tasks_count;
    }
    if (after != graph->edges_count || dependents != graph->edges_count) return false;
    for (uint32_t i = 0; i < graph->then_count; i++) {
        if (!bel__job_graph_valid(graph->then[i].graph)) return false;
    }
    return in_topics == graph->tasks_count;
}

void bel__job_graph_destroy(struct bel_job_graph *graph)
{
    if (graph == NULL) return;
    for (uint32_t i = 0; i < graph->then_count; i++) {
        bel__job_graph_destroy(graph->then[i].graph);
    }
    bel__arena_finish(&graph->memory);
    free(graph);
}
/* NOLINTEND(misc-no-recursion) */
