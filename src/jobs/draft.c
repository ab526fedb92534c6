/* SPDX-License-Identifier: MIT */

/* Arrays double when they are full. */
#include "jobs/draft.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM_MIN = 8,
};

int bel__job_fault(struct bel_job_fault *fault, int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vsnprintf(fault->text, sizeof fault->text, format, args) < 0) fault->text[0] = 0;
    va_end(args);
    return err;
}

int bel__job_fault_at(struct bel_job_fault *fault, int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vsnprintf(fault->place, sizeof fault->place, format, args) < 0) fault->place[0] = 0;
    va_end(args);
    return err;
}

int bel__job_draft_init(struct bel_job_draft *draft, struct bel_siphash_key secret)
{
    *draft = (struct bel_job_draft){0};
    draft->graph = calloc(1, sizeof *draft->graph);
    if (draft->graph == NULL) return BEL_ENOMEM;
    bel__map_init(&draft->names, secret);
    return 0;
}

void bel__job_draft_finish(struct bel_job_draft *draft)
{
    for (uint32_t i = 0; i < draft->then_count; i++) {
        bel__job_graph_destroy(draft->then[i].graph);
    }
    bel__job_graph_destroy(draft->graph);
    bel__map_finish(&draft->names);
    free(draft->tasks);
    free(draft->wishes);
    free(draft->topics);
    free(draft->then);
    free(draft->check.stamps);
    *draft = (struct bel_job_draft){0};
}

void *bel__job_draft_take(struct bel_job_draft *draft, size_t bytes)
{
    void *memory = bel__arena_take(&draft->graph->memory, bytes > 0 ? bytes : 1);
    if (memory != NULL) draft->graph->bytes += bytes;
    return memory;
}

/* Makes room for one more element. Returns the array, or NULL if memory has run out; the old array
 * is then still there. */
static void *grow(void *items, uint32_t count, uint32_t *room, size_t item_bytes)
{
    if (count < *room) return items;
    assert(*room <= UINT32_MAX / 2);
    uint32_t more = *room > 0 ? 2 * *room : ROOM_MIN;
    void *grown = reallocarray(items, more, item_bytes);
    if (grown != NULL) *room = more;
    return grown;
}

struct bel_job_node *bel__job_draft_add_task(struct bel_job_draft *draft)
{
    struct bel_job_node *tasks =
        grow(draft->tasks, draft->tasks_count, &draft->tasks_room, sizeof *tasks);
    if (tasks == NULL) return NULL;
    draft->tasks = tasks;
    tasks += draft->tasks_count++;
    *tasks = (struct bel_job_node){0};
    return tasks;
}

struct bel_job_wish *bel__job_draft_add_wish(struct bel_job_draft *draft)
{
    struct bel_job_wish *wishes =
        grow(draft->wishes, draft->wishes_count, &draft->wishes_room, sizeof *wishes);
    if (wishes == NULL) return NULL;
    draft->wishes = wishes;
    wishes += draft->wishes_count++;
    *wishes = (struct bel_job_wish){0};
    return wishes;
}

struct bel_job_then *bel__job_draft_add_then(struct bel_job_draft *draft)
{
    struct bel_job_then *then =
        grow(draft->then, draft->then_count, &draft->then_room, sizeof *then);
    if (then == NULL) return NULL;
    draft->then = then;
    then += draft->then_count++;
    *then = (struct bel_job_then){0};
    return then;
}

int bel__job_draft_count_topic(struct bel_job_draft *draft, struct bel_job_node *task)
{
    const uint64_t *found = bel__map_find(&draft->names, task->topic.data, task->topic.bytes);
    if (found == NULL) {
        struct bel_job_topic *topics =
            grow(draft->topics, draft->topics_count, &draft->topics_room, sizeof *topics);
        if (topics == NULL) return BEL_ENOMEM;
        draft->topics = topics;
        int err =
            bel__map_put(&draft->names, task->topic.data, task->topic.bytes, draft->topics_count);
        if (err) return BEL_ENOMEM;
        topics[draft->topics_count] = (struct bel_job_topic){.name = task->topic};
        task->topic_index = draft->topics_count++;
    } else {
        task->topic_index = (uint32_t)*found;
    }
    draft->topics[task->topic_index].tasks_count++;
    return 0;
}
