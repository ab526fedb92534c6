/* SPDX-License-Identifier: MIT */

/*
 * Plans ring: the node asks for the plans that are due, computes which of their times are made and
 * what comes next, and the script does it if no other node was faster.
 *
 *     sweep ---> {plan, state} ... ---> compute ---> ring, with the next time that was seen
 *
 * The topic is held until then, so that later requests see the occurrences.
 */
#include "redis/batch.h"
#include "redis/node.h"
#include "redis/record.h"
#include "redis/rule.h"

#include "core/parse.h"
#include "plan/missed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLANS_MAX = 10,  /* in one call, as scripts/sweep.lua has it */
    TIMES_MAX = 100, /* of one plan in one call */
    PLAN_FIELDS = 4, /* id, record, att, misfire_after */
    AGAIN_MS = 1000, /* after an error of a rule; other timers of the partition wait as long */
};

struct ringing {
    struct bel_redis *node;
    struct bel_redis_partition *partition;
    struct bel_item item;
    struct ring {
        struct bel_item item;
        struct ringing *ringing;
    } rings[PLANS_MAX];
    size_t left; /* rings without an answer */
    bool has_failed;
};

/* What a ring does. */
struct decision {
    struct bel_wall times[BEL_MISFIRE_MAX];
    size_t count; /* of times to make now */
    uint64_t missed;
    bool has_next, is_catching_up;
    struct bel_wall next;
};

/* --- Computing --- */

/* Sets what comes after a nominal time. */
static void look_ahead(const struct bel_plan *plan, struct bel_wall after, struct decision *out)
{
    out->has_next = bel_plan_next(plan, after, 0, &out->next) == 0;
}

/* Chooses among missed times. */
static void choose(const struct bel_rule *rule, const struct bel_plan *plan, struct bel_wall end,
                   struct decision *out)
{
    struct bel_missed_plan asked = {.plan = plan,
                                    .policy = rule->said.misfire,
                                    .next = rule->next,
                                    .has_until = rule->said.has_until,
                                    .until = rule->said.until};
    uint64_t used = rule->made + rule->skipped + rule->missed;
    if (rule->said.count > 0) asked.left = rule->said.count > used ? rule->said.count - used : 1;
    struct bel_missed missed = bel__missed_choose(&asked, end, out->times);
    out->missed = missed.skipped_count;
    out->count = missed.made_count;
    out->has_next = missed.has_next;
    out->next = missed.next;
    if (out->count <= TIMES_MAX) return;
    out->count = TIMES_MAX; /* the rest is made by the next rings */
    out->has_next = out->is_catching_up = true;
    out->next = out->times[TIMES_MAX];
}

/* Makes up for missed times that were chosen before. */
static void catch_up(const struct bel_rule *rule, const struct bel_plan *plan, struct bel_wall end,
                     struct decision *out)
{
    out->next = rule->next;
    out->has_next = true;
    while (out->has_next && out->next.ms <= end.ms && out->count < TIMES_MAX) {
        out->times[out->count++] = out->next;
        look_ahead(plan, out->next, out);
    }
    out->is_catching_up = out->has_next && out->next.ms <= end.ms;
}

/* Decides what a plan does whose misfires are the times up to and including `end`. */
static void decide(const struct bel_rule *rule, const struct bel_plan *plan, struct bel_wall end,
                   struct decision *out)
{
    bool is_late = rule->next.ms <= end.ms;
    *out = (struct decision){.count = 0};
    if (is_late && rule->said.mode == BEL_PLAN_DELAY && rule->said.misfire == BEL_MISFIRE_SKIP) {
        out->missed = 1;
    } else if (is_late && rule->said.mode != BEL_PLAN_DELAY) {
        if (rule->is_catching_up) {
            catch_up(rule, plan, end, out);
        } else {
            choose(rule, plan, end, out);
        }
    } else {
        out->times[out->count++] = rule->next;
        look_ahead(plan, rule->next, out);
    }
    if (out->has_next && out->next.ms > BEL_REDIS_TIME_END_MS) out->has_next = false;
}

/* --- Calls --- */

static void end(struct ringing *ringing)
{
    struct bel_redis_partition *partition = ringing->partition;
    assert(partition->topic->held > 0);
    partition->topic->held--;
    bel__partition_swept(ringing->node, partition);
    if (ringing->has_failed) {
        partition->ring_ms = bel__partition_now(ringing->node, partition) + AGAIN_MS;
        bel__partition_expect(ringing->node, partition, partition->ring_ms);
    }
    bel__node_mark(ringing->node, partition);
    free(ringing);
}

static void rang(struct bel_item *item, const struct bel_results *results)
{
    struct ring *ring = BEL_CONTAINER_OF(item, struct ring, item);
    struct ringing *ringing = ring->ringing;
    if (results->err && !results->is_moved) ringing->has_failed = true;
    assert(ringing->left > 0);
    if (--ringing->left == 0) end(ringing);
}

static void add_times(struct bel_batch *batch, const struct decision *decision)
{
    char text[TIMES_MAX * (BEL_PRINT_BYTES_MAX + 1)];
    size_t bytes = 0;
    for (size_t i = 0; i < decision->count; i++) {
        bytes += bel__print_i64(text + bytes, decision->times[i].ms);
        text[bytes++] = ' ';
    }
    bel__batch_text(batch, (struct bel_view){text, bytes});
}

static int send_ring(struct ring *ring, const struct bel_rule *rule, const uint8_t *prefix,
                     const struct decision *decision)
{
    struct ringing *ringing = ring->ringing;
    struct bel_batch *batch = bel__batch_join(ringing->node, ringing->partition, BEL_SCRIPT_RING);
    if (batch == NULL) return BEL_ENOMEM;
    ring->item.answered = rang;
    ringing->left++;
    bel__batch_item(batch, &ring->item, 1);
    bel__batch_text(batch, rule->id);
    bel__batch_text(batch, (struct bel_view){prefix, 8});
    bel__batch_number(batch, rule->next.ms);
    bel__batch_number(batch, (int64_t)decision->missed);
    add_times(batch, decision);
    if (decision->has_next) {
        bel__batch_number(batch, decision->next.ms);
    } else {
        bel__batch_word(batch, "");
    }
    bel__batch_number(batch, decision->is_catching_up);
    return 0;
}

/* Computes and sends the ring of a plan. */
static int ring_plan(struct ring *ring, const struct bel_value *fields, struct bel_arena *arena)
{
    static _Thread_local struct decision decision; /* large */
    const struct ringing *ringing = ring->ringing;
    struct bel_redis *node = ringing->node;
    int64_t now = bel__partition_now(node, ringing->partition);
    struct bel_stored stored = {0};
    struct bel_rule rule = {.id = fields[0].text};
    struct bel_text_error why;
    struct bel_plan *plan = NULL;
    if (!bel_id_is_valid(rule.id)) return BEL_ECORRUPT;
    if (!bel__result_is_number(&fields[3], 0, BEL_REDIS_TIME_END_MS)) return BEL_ECORRUPT;
    int err = bel__stored_read(fields[1].text, arena, &stored);
    if (err == 0) err = bel__rule_read(bel__record_result(fields[2].text), &rule);
    rule.created.ms = stored.created;
    if (err == 0) err = bel__rule_plan(&rule, node->options.zones, &plan, &why);
    if (err) return err;
    int64_t late = (int64_t)bel__rule_place(&rule) + fields[3].number;
    decide(&rule, plan, (struct bel_wall){now - late - 1}, &decision);
    bel_plan_destroy(plan);
    return send_ring(ring, &rule, stored.prefix, &decision);
}

/* Plans that cannot be computed, e.g. because this machine does not know their zone, stay due for
 * nodes that can. The next sweep begins after them, so that they do not hide the others. */
static void pass_over(struct bel_redis_partition *partition, size_t failed)
{
    partition->rings_passed = failed == PLANS_MAX ? partition->rings_passed + PLANS_MAX : 0;
}

static void swept(struct bel_item *item, const struct bel_results *results)
{
    struct ringing *ringing = BEL_CONTAINER_OF(item, struct ringing, item);
    struct bel_arena arena = {0};
    size_t failed = 0;
    if (results->err && !results->is_moved) ringing->has_failed = true;
    for (size_t i = 0; results->err == 0 && i < results->count && i < PLANS_MAX; i++) {
        const struct bel_value *plan = &results->items[i];
        struct ring *ring = &ringing->rings[i];
        ring->ringing = ringing;
        bool is_plan = plan->type == BEL_VALUE_LIST && plan->count == PLAN_FIELDS;
        if (!is_plan || ring_plan(ring, plan->items, &arena) != 0) failed++;
    }
    bel__arena_finish(&arena);
    if (failed > 0) ringing->has_failed = true;
    pass_over(ringing->partition, failed);
    if (ringing->left == 0) end(ringing);
}

void bel__rings_begin(struct bel_redis *node, struct bel_redis_partition *partition)
{
    struct ringing *ringing = calloc(1, sizeof *ringing);
    struct bel_batch *batch =
        ringing == NULL ? NULL : bel__batch_alone(node, partition, BEL_SCRIPT_SWEEP);
    if (batch == NULL) {
        free(ringing);
        return;
    }
    ringing->node = node;
    ringing->partition = partition;
    ringing->item.answered = swept;
    bel__batch_item(batch, &ringing->item, 0);
    bel__batch_number(batch, partition->rings_passed);
    partition->topic->held++;
    bel__partition_sweeping(node, partition);
}
