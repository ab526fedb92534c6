/* SPDX-License-Identifier: MIT */

/*
 * Random graphs of tasks as JSON texts, read in random slices, compared with a model that knows
 * which task can reach which:
 *
 *   - a task that reaches itself is a cycle, and the text is refused with a path whose steps are
 *     edges; otherwise the order is topological;
 *   - the depth of a task is the longest path, found by trying as many rounds as there are tasks;
 *   - edges go both ways, with their policies.
 */
#include "jobs/parser.h"
#include "property.h"

#include <string.h>

enum {
    TASKS_MAX = 40,
    TEXT_BYTES = 256 << 10,
    NONE = -1,
};

struct model {
    unsigned count;
    int on[TASKS_MAX][TASKS_MAX]; /* [a][b]: b comes after a, with this policy; or NONE */
    bool reaches[TASKS_MAX][TASKS_MAX];
    unsigned depth[TASKS_MAX];
    unsigned name[TASKS_MAX]; /* shuffled, so that names say nothing about order */
    unsigned edges;
};

/* Half of the graphs have edges only from low to high in a hidden order: these have no cycle. */
static void draw(struct model *model, uint64_t *random_state)
{
    unsigned rank[TASKS_MAX];
    model->count = (unsigned)random_below(random_state, TASKS_MAX + 1);
    bool is_ordered = random_below(random_state, 2) == 0;
    uint64_t density = 1 + random_below(random_state, 40);
    for (unsigned i = 0; i < model->count; i++) {
        unsigned other = (unsigned)random_below(random_state, i + 1);
        rank[i] = i;
        model->name[i] = i;
        unsigned swap = rank[other];
        rank[other] = rank[i];
        rank[i] = swap;
        other = (unsigned)random_below(random_state, i + 1);
        swap = model->name[other];
        model->name[other] = model->name[i];
        model->name[i] = swap;
    }
    model->edges = 0;
    for (unsigned a = 0; a < model->count; a++) {
        for (unsigned b = 0; b < model->count; b++) {
            bool may = a != b && (!is_ordered || rank[a] < rank[b]);
            bool is = may && random_below(random_state, density) == 0;
            model->on[a][b] = is ? (int)random_below(random_state, BEL_EDGE_POLICIES) : NONE;
            model->edges += is;
        }
    }
}

static void close_over(struct model *model)
{
    for (unsigned a = 0; a < model->count; a++) {
        model->depth[a] = 0;
        for (unsigned b = 0; b < model->count; b++) {
            model->reaches[a][b] = model->on[a][b] != NONE;
        }
    }
    for (unsigned via = 0; via < model->count; via++) {
        for (unsigned a = 0; a < model->count; a++) {
            for (unsigned b = 0; b < model->count; b++) {
                if (model->reaches[a][via] && model->reaches[via][b]) model->reaches[a][b] = true;
            }
        }
    }
    for (unsigned round = 0; round < model->count; round++) {
        for (unsigned a = 0; a < model->count; a++) {
            for (unsigned b = 0; b < model->count; b++) {
                if (model->on[a][b] == NONE || model->depth[b] > model->depth[a]) continue;
                model->depth[b] = model->depth[a] + 1;
            }
        }
    }
}

static bool has_cycle(const struct model *model)
{
    for (unsigned a = 0; a < model->count; a++) {
        if (model->reaches[a][a]) return true;
    }
    return false;
}

static size_t print_after(const struct model *model, unsigned task, char *out, size_t room)
{
    static const char *const policies[] = {"success", "always", "failure"};
    size_t used = (size_t)snprintf(out, room, ", \"after\":[");
    for (unsigned a = 0, count = 0; a < model->count; a++) {
        if (model->on[a][task] == NONE) continue;
        const char *comma = count++ > 0 ? "," : "";
        if (model->on[a][task] == BEL_EDGE_SUCCESS && a % 2 == 0) {
            used += (size_t)snprintf(out + used, room - used, "%s\"n%u\"", comma, model->name[a]);
        } else {
            used += (size_t)snprintf(out + used, room - used, "%s{\"on\":\"%s\",\"task\":\"n%u\"}",
                                     comma, policies[model->on[a][task]], model->name[a]);
        }
    }
    return used + (size_t)snprintf(out + used, room - used, "]");
}

static size_t print(const struct model *model, char *out)
{
    size_t used = (size_t)snprintf(out, TEXT_BYTES, "{\"id\":\"j\",\n\"tasks\":[");
    for (unsigned i = 0; i < model->count; i++) {
        used +=
            (size_t)snprintf(out + used, TEXT_BYTES - used, "%s{\"id\":\"n%u\",\"topic\":\"t%u\"",
                             i > 0 ? "," : "", model->name[i], i % 3);
        used += print_after(model, i, out + used, TEXT_BYTES - used);
        used += (size_t)snprintf(out + used, TEXT_BYTES - used, "}");
    }
    used += (size_t)snprintf(out + used, TEXT_BYTES - used, "]}");
    CHECK(used < TEXT_BYTES);
    return used;
}

static unsigned task_named(const struct model *model, unsigned name)
{
    unsigned i = 0;
    while (i < model->count && model->name[i] != name) {
        i++;
    }
    CHECK(i < model->count);
    return i;
}

/* Follows "n1 -> n2 -> ... -> n9 -> n1": each step is an edge, except around the dots. */
static void check_cycle(const struct model *model, const char *why)
{
    const char *at = strstr(why, ": ");
    unsigned first = UINT32_MAX, last = UINT32_MAX, steps = 0;
    CHECK(strncmp(why, "cycle", 5) == 0 && at != NULL);
    for (at += 2; at != NULL; steps++) {
        if (strncmp(at, "...", 3) == 0) {
            last = UINT32_MAX;
        } else {
            CHECK(*at == 'n');
            unsigned task = task_named(model, (unsigned)strtoul(at + 1, NULL, 10));
            CHECK(last == UINT32_MAX || model->on[last][task] != NONE);
            CHECK(model->reaches[task][task]);
            if (first == UINT32_MAX) first = task;
            last = task;
        }
        at = strstr(at, " -> ");
        if (at != NULL) at += 4;
    }
    CHECK(steps >= 3 && first == last);
}

static void check_graph(const struct model *model, const struct bel_job_graph *graph)
{
    bool is_there[TASKS_MAX] = {0};
    CHECK_EQ(graph->tasks_count, model->count);
    CHECK_EQ(graph->edges_count, model->edges);
    CHECK(bel__job_graph_valid(graph));
    for (uint32_t i = 0; i < graph->tasks_count; i++) {
        const struct bel_job_node *task = &graph->tasks[i];
        uint32_t place = 0, dependent = 0;
        CHECK_EQ(task->depth, model->depth[i]);
        for (uint32_t other = 0; other < graph->tasks_count; other++) {
            if (model->on[other][i] != NONE) {
                const struct bel_job_edge *edge = &bel__job_after(graph, i)[place++];
                CHECK(edge->task == other && (int)edge->on == model->on[other][i]);
            }
            if (model->on[i][other] != NONE) {
                const struct bel_job_edge *edge = &bel__job_dependents(graph, i)[dependent++];
                CHECK(edge->task == other && (int)edge->on == model->on[i][other]);
            }
        }
        CHECK(place == task->after_count && dependent == task->dependents_count);
        uint32_t next = graph->order[i];
        for (uint32_t other = 0; other < graph->tasks_count; other++) {
            CHECK(model->on[other][next] == NONE || is_there[other]);
        }
        CHECK(!is_there[next]);
        is_there[next] = true;
    }
}

static void run_case(uint64_t seed)
{
    static char text[TEXT_BYTES];
    static struct model model;
    uint64_t random_state = seed;
    draw(&model, &random_state);
    close_over(&model);
    struct bel_job_parser_options options = {.text = {text, print(&model, text)}};
    random_fill(&random_state, &options.secret, sizeof options.secret);
    struct bel_job_parser *parser;
    int err;
    CHECK(bel__job_parser_create(&options, &parser) == 0);
    do {
        err = bel__job_parser_step(parser, 1 + (uint32_t)random_below(&random_state, 300));
    } while (err == BEL_JOB_PARSER_MORE);
    if (has_cycle(&model)) {
        CHECK(err == BEL_EINVAL);
        check_cycle(&model, bel__job_parser_why(parser));
    } else {
        CHECK(err == 0);
        struct bel_job_graph *graph = bel__job_parser_take(parser);
        check_graph(&model, graph);
        bel__job_graph_destroy(graph);
    }
    bel__job_parser_destroy(parser);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, 3000, run_case, "graphs");
}
