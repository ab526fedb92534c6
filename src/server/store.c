/* SPDX-License-Identifier: MIT */
#include "server/store.h"

const char *bel__server_ability_name(enum bel_server_ability ability)
{
    static const char *const names[] = {
        [BEL_ABILITY_GROUPS] = "groups", [BEL_ABILITY_CONCURRENCY] = "concurrency",
        [BEL_ABILITY_JOBS] = "jobs",     [BEL_ABILITY_LIMITS] = "limits",
        [BEL_ABILITY_AGENDA] = "agenda", [BEL_ABILITY_EXPLAIN] = "explain",
        [BEL_ABILITY_BACKUP] = "backup",
    };
    return names[ability];
}
