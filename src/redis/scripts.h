/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SCRIPTS_H
#define BEL_REDIS_SCRIPTS_H

/*
 * scripts - the Lua scripts of src/redis/scripts, one for each transition.
 */

#include "belfry/view.h"

enum bel_script_name {
    BEL_SCRIPT_ACK,
    BEL_SCRIPT_CANCEL,
    BEL_SCRIPT_CLAIM,
    BEL_SCRIPT_CONFIGURE,
    BEL_SCRIPT_COUNT,
    BEL_SCRIPT_EXTEND,
    BEL_SCRIPT_FAIL,
    BEL_SCRIPT_GET,
    BEL_SCRIPT_LIST,
    BEL_SCRIPT_PEEK,
    BEL_SCRIPT_PURGE,
    BEL_SCRIPT_RELEASE,
    BEL_SCRIPT_RESCHEDULE,
    BEL_SCRIPT_REVIVE,
    BEL_SCRIPT_RING,
    BEL_SCRIPT_SCHEDULE,
    BEL_SCRIPT_SWEEP,
    BEL_SCRIPT_TOPIC,
    BEL_SCRIPTS,
};

struct bel_script {
    const char *name;
    const char *sha; /* SHA-1 in hexadecimal, by which EVALSHA names it */
    struct bel_view text;
};

extern const struct bel_script bel__scripts[BEL_SCRIPTS];

#endif
