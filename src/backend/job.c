/* SPDX-License-Identifier: MIT */

/* The words of jobs that every backend shares: names of states and edge policies, valid ids. */
#include "belfry/job.h"

#include "belfry/backend.h"

#include <assert.h>
#include <string.h>

static const char *const states[] = {
    [BEL_JOB_RUNNING] = "running",     [BEL_JOB_PAUSED] = "paused",
    [BEL_JOB_DONE] = "done",           [BEL_JOB_FAILED] = "failed",
    [BEL_JOB_CANCELLED] = "cancelled", [BEL_JOB_SCHEDULED] = "scheduled",
};
static_assert(sizeof states / sizeof states[0] == BEL_JOB_STATES, "every state has a name");

static const char *const policies[] = {
    [BEL_EDGE_SUCCESS] = "success",
    [BEL_EDGE_ALWAYS] = "always",
    [BEL_EDGE_FAILURE] = "failure",
};
static_assert(sizeof policies / sizeof policies[0] == BEL_EDGE_POLICIES, "every policy has a name");

const char *bel_job_state_name(enum bel_job_state state)
{
    assert(state < BEL_JOB_STATES);
    return states[state];
}

const char *bel_edge_policy_name(enum bel_edge_policy policy)
{
    assert(policy < BEL_EDGE_POLICIES);
    return policies[policy];
}

/* Returns the index of a name in a table, or `count` if it is not there. */
static unsigned find(const char *const *names, unsigned count, struct bel_view name)
{
    unsigned i = 0;
    while (i < count &&
           !(name.bytes == strlen(names[i]) && memcmp(name.data, names[i], name.bytes) == 0)) {
        i++;
    }
    return i;
}

bool bel_job_state_find(struct bel_view name, enum bel_job_state *out)
{
    unsigned found = find(states, BEL_JOB_STATES, name);
    if (found == BEL_JOB_STATES) return false;
    *out = (enum bel_job_state)found;
    return true;
}

bool bel_edge_policy_find(struct bel_view name, enum bel_edge_policy *out)
{
    unsigned found = find(policies, BEL_EDGE_POLICIES, name);
    if (found == BEL_EDGE_POLICIES) return false;
    *out = (enum bel_edge_policy)found;
    return true;
}

bool bel_job_id_is_valid(struct bel_view id)
{
    if (!bel_id_is_valid(id) || id.bytes > BEL_JOB_IDS_BYTES_MAX) return false;
    return memchr(id.data, '/', id.bytes) == NULL;
}
