/* SPDX-License-Identifier: MIT */

/*
 * Checks a draft whose text has ended, in phases. Each phase is a loop over tasks or dependencies
 * that can stop after any element:
 *
 *     index      the ids of tasks into a map; an id that occurs twice is an error
 *     resolve    names of dependencies to indices; counts the dependents of each task
 *     starts     from counts to the places of dependents
 *     fill       each dependency into its place among the dependents of the other task
 *     order      Kahn's algorithm: a task follows when all that it comes after are in order, at
 *                one more than the greatest depth of these
 *     cycle      only if tasks are left over: each has a dependency among them, so following these
 *                leads into a cycle; in one piece, because it ends the work
 *
 * A unit of work is an element of the loop.
 */
#include "jobs/draft.h"
#include "jobs/hints.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum phase {
    PHASE_BEGIN,
    PHASE_INDEX,
    PHASE_RESOLVE,
    PHASE_STARTS,
    PHASE_FILL,
    PHASE_ROOTS,
    PHASE_ORDER,
    PHASE_CYCLE,
    PHASE_END,
};

#define VISITED UINT32_MAX /* as the depth of a task, while a cycle is searched */

enum {
    CYCLE_SHOWN_MAX = 8, /* tasks of a cycle that a message names at most */
    NAME_SHOWN_MAX = 24, /* bytes of each name */
};

static int shown(struct bel_view name)
{
    return (int)(name.bytes < BEL_JOB_IDS_BYTES_MAX ? name.bytes : BEL_JOB_IDS_BYTES_MAX);
}

static void next_phase(struct bel_job_draft *draft, enum phase phase)
{
    draft->check.phase = (int)phase;
    draft->check.at = 0;
}

/* Allocates the arrays of the graph. */
static int begin(struct bel_job_draft *draft)
{
    size_t tasks = draft->tasks_count, edges = draft->wishes_count;
    draft->check.after = bel__job_draft_take(draft, edges * sizeof *draft->check.after);
    draft->check.dependents = bel__job_draft_take(draft, edges * sizeof *draft->check.dependents);
    draft->check.order = bel__job_draft_take(draft, tasks * sizeof *draft->check.order);
    draft->check.stamps = calloc(tasks > 0 ? tasks : 1, sizeof *draft->check.stamps);
    if (draft->check.after == NULL || draft->check.dependents == NULL) return BEL_ENOMEM;
    if (draft->check.order == NULL || draft->check.stamps == NULL) return BEL_ENOMEM;
    struct bel_siphash_key secret = draft->names.secret;
    bel__map_finish(&draft->names);
    bel__map_init(&draft->names, secret);
    next_phase(draft, PHASE_INDEX);
    return 0;
}

static int index_task(struct bel_job_draft *draft, struct bel_job_fault *fault)
{
    uint32_t at = draft->check.at;
    struct bel_view id = draft->tasks[at].id;
    const uint64_t *found = bel__map_find(&draft->names, id.data, id.bytes);
    if (found != NULL) {
        (void)bel__job_fault_at(fault, 0, "tasks[%u].id", at);
        return bel__job_fault(fault, BEL_EINVAL, "duplicate: tasks[%u] has the id '%.*s' too",
                              (unsigned)*found, shown(id), (const char *)id.data);
    }
    if (id.bytes > draft->tasks[draft->longest].id.bytes) draft->longest = at;
    return bel__map_put(&draft->names, id.data, id.bytes, at) == 0 ? 0 : BEL_ENOMEM;
}

static int refuse_wish(const struct bel_job_wish *wish, struct bel_job_fault *fault,
                       const char *what)
{
    (void)bel__job_fault_at(fault, 0, "tasks[%u].after[%u]", wish->task, wish->place);
    return bel__job_fault(fault, BEL_EINVAL, "'%.*s' %s", shown(wish->name),
                          (const char *)wish->name.data, what);
}

/* The stamp of a task is 1 + the last task that names it as a dependency. */
static int resolve_wish(struct bel_job_draft *draft, struct bel_job_fault *fault)
{
    const struct bel_job_wish *wish = &draft->wishes[draft->check.at];
    const uint64_t *found = bel__map_find(&draft->names, wish->name.data, wish->name.bytes);
    if (found == NULL) {
        (void)bel__job_fault_at(fault, 0, "tasks[%u].after[%u]", wish->task, wish->place);
        return bel__job_refuse_task(draft, wish->name, fault);
    }
    uint32_t target = (uint32_t)*found;
    if (target == wish->task) return refuse_wish(wish, fault, "comes after itself");
    if (draft->check.stamps[target] == wish->task + 1) {
        return refuse_wish(wish, fault, "is named twice");
    }
    draft->check.stamps[target] = wish->task + 1;
    draft->check.after[draft->check.at] = (struct bel_job_edge){target, wish->on};
    draft->tasks[target].dependents_count++;
    return 0;
}

/* Afterwards the stamp of a task is the number of its dependents that are in place. */
static void start_task(struct bel_job_draft *draft)
{
    uint32_t at = draft->check.at;
    struct bel_job_node *task = &draft->tasks[at];
    draft->check.stamps[at] = 0;
    if (at > 0) task->dependents_start = task[-1].dependents_start + task[-1].dependents_count;
}

static void fill_edge(struct bel_job_draft *draft)
{
    uint32_t at = draft->check.at, target = draft->check.after[at].task;
    uint32_t place = draft->tasks[target].dependents_start + draft->check.stamps[target]++;
    draft->check.dependents[place] =
        (struct bel_job_edge){draft->wishes[at].task, draft->wishes[at].on};
}

/* Afterwards the stamp of a task is the number of its dependencies that are not in order. */
static void begin_order(struct bel_job_draft *draft)
{
    uint32_t at = draft->check.at;
    draft->check.stamps[at] = draft->tasks[at].after_count;
    if (draft->check.stamps[at] == 0) draft->check.order[draft->check.ordered++] = at;
}

/* Returns the units of work that the task at this place of the order has taken. */
static uint32_t order_task(struct bel_job_draft *draft)
{
    const struct bel_job_node *task = &draft->tasks[draft->check.order[draft->check.at]];
    const struct bel_job_edge *dependents = draft->check.dependents + task->dependents_start;
    for (uint32_t i = 0; i < task->dependents_count; i++) {
        uint32_t index = dependents[i].task;
        struct bel_job_node *dependent = &draft->tasks[index];
        if (dependent->depth <= task->depth) dependent->depth = task->depth + 1;
        if (--draft->check.stamps[index] == 0) draft->check.order[draft->check.ordered++] = index;
    }
    return 1 + task->dependents_count;
}

/* --- cycles --- */

/* Returns a dependency of a task that is not in order. There is one if the task is not. */
static uint32_t left_before(const struct bel_job_draft *draft, uint32_t index)
{
    const struct bel_job_edge *edge = draft->check.after + draft->tasks[index].after_start;
    while (draft->check.stamps[edge->task] == 0) {
        edge++;
    }
    return edge->task;
}

/* Finds a cycle by walking from dependent to dependency until a task comes again, and writes its
 * tasks to `order`, in the direction of the edges; `at` is the place of the task that the text
 * names first. Returns their number. Looks at each edge twice at most. */
static uint32_t find_cycle(struct bel_job_draft *draft)
{
    uint32_t *order = draft->check.order, count = 0, first = 0;
    uint32_t start = 0;
    while (draft->check.stamps[start] == 0) {
        start++;
    }
    for (; draft->tasks[start].depth != VISITED; start = left_before(draft, start)) {
        draft->tasks[start].depth = VISITED;
    }
    uint32_t at = start;
    do {
        order[count++] = at;
        at = left_before(draft, at);
    } while (at != start);
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t other = order[i];
        order[i] = order[count - 1 - i];
        order[count - 1 - i] = other;
    }
    for (uint32_t i = 1; i < count; i++) {
        if (order[i] < order[first]) first = i;
    }
    draft->check.at = first;
    return count;
}

/* Prints "1 -> 2 -> 3 -> 1", or of a long cycle the first tasks and the last. */
static int refuse_cycle(struct bel_job_draft *draft, struct bel_job_fault *fault)
{
    uint32_t count = find_cycle(draft), first = draft->check.at;
    char text[CYCLE_SHOWN_MAX * (NAME_SHOWN_MAX + 8)];
    size_t used = 0;
    for (uint32_t i = 0; i <= count; i++) {
        struct bel_view id = draft->tasks[draft->check.order[(first + i) % count]].id;
        bool is_left_out = count >= CYCLE_SHOWN_MAX && i >= CYCLE_SHOWN_MAX - 3 && i + 1 < count;
        if (is_left_out && i > CYCLE_SHOWN_MAX - 3) continue;
        int bytes = (int)(id.bytes < NAME_SHOWN_MAX ? id.bytes : NAME_SHOWN_MAX);
        int put = snprintf(text + used, sizeof text - used, "%s%.*s", i > 0 ? " -> " : "",
                           is_left_out ? 3 : bytes, is_left_out ? "..." : (const char *)id.data);
        assert(put > 0);
        used += (size_t)put;
        assert(used < sizeof text);
    }
    if (count < CYCLE_SHOWN_MAX) return bel__job_fault(fault, BEL_EINVAL, "cycle: %s", text);
    return bel__job_fault(fault, BEL_EINVAL, "cycle of %u tasks: %s", count, text);
}

/* --- the graph --- */

static int end(struct bel_job_draft *draft)
{
    struct bel_job_graph *graph = draft->graph;
    size_t tasks_bytes = draft->tasks_count * sizeof *draft->tasks;
    size_t topics_bytes = draft->topics_count * sizeof *draft->topics;
    size_t then_bytes = draft->then_count * sizeof *draft->then;
    struct bel_job_node *tasks = bel__job_draft_take(draft, tasks_bytes);
    struct bel_job_topic *topics = bel__job_draft_take(draft, topics_bytes);
    struct bel_job_then *then = bel__job_draft_take(draft, then_bytes);
    if (tasks == NULL || topics == NULL || then == NULL) return BEL_ENOMEM;
    if (tasks_bytes > 0) memcpy(tasks, draft->tasks, tasks_bytes);
    if (topics_bytes > 0) memcpy(topics, draft->topics, topics_bytes);
    if (then_bytes > 0) memcpy(then, draft->then, then_bytes);
    graph->tasks = tasks;
    graph->tasks_count = draft->tasks_count;
    graph->edges_count = draft->wishes_count;
    graph->after = draft->check.after;
    graph->dependents = draft->check.dependents;
    graph->order = draft->check.order;
    graph->topics = topics;
    graph->topics_count = draft->topics_count;
    graph->then = then;
    graph->then_count = draft->then_count;
    draft->then_count = 0; /* they are the graph's now */
    next_phase(draft, PHASE_END);
    return 0;
}

/* Does one element of the current phase. Sets `*used` to the units of work that it took. */
static int do_element(struct bel_job_draft *draft, struct bel_job_fault *fault, uint32_t *used)
{
    switch ((enum phase)draft->check.phase) {
    case PHASE_INDEX:
        *used = 32; /* a hash and a new entry */
        return index_task(draft, fault);
    case PHASE_RESOLVE:
        *used = 16; /* a hash and a cache miss */
        return resolve_wish(draft, fault);
    case PHASE_STARTS:
        start_task(draft);
        return 0;
    case PHASE_FILL:
        fill_edge(draft);
        return 0;
    case PHASE_ROOTS:
        begin_order(draft);
        return 0;
    case PHASE_ORDER:
        *used = order_task(draft);
        return 0;
    default:
        assert(false);
        return 0;
    }
}

static uint32_t elements_of(const struct bel_job_draft *draft)
{
    switch ((enum phase)draft->check.phase) {
    case PHASE_RESOLVE:
    case PHASE_FILL:
        return draft->wishes_count;
    case PHASE_ORDER:
        return draft->check.ordered;
    default:
        return draft->tasks_count;
    }
}

int bel__job_check(struct bel_job_draft *draft, uint32_t *work, struct bel_job_fault *fault)
{
    int err = draft->check.phase == PHASE_BEGIN ? begin(draft) : 0;
    if (err) return err;
    while (draft->check.phase < PHASE_CYCLE) {
        while (draft->check.at < elements_of(draft)) {
            uint32_t used = 1;
            if (*work == 0) return BEL_JOB_MORE;
            err = do_element(draft, fault, &used);
            if (err) return err;
            draft->check.at++;
            *work -= used < *work ? used : *work;
        }
        next_phase(draft, (enum phase)(draft->check.phase + 1));
    }
    if (draft->check.ordered < draft->tasks_count) return refuse_cycle(draft, fault);
    return end(draft);
}
