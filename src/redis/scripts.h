/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SCRIPTS_H
#define BEL_REDIS_SCRIPTS_H

/*
 * scripts - the Lua scripts of src/redis/scripts, one for each transition. Those of topics of the
 * layout faststream are in a folder of this name.
 */

#include "belfry/view.h"

#include <stdbool.h>

enum bel_script_name {
    BEL_SCRIPT_ACK,
    BEL_SCRIPT_ADOPT,
    BEL_SCRIPT_AGENDA,
    BEL_SCRIPT_BURY,
    BEL_SCRIPT_CANCEL,
    BEL_SCRIPT_CLAIM,
    BEL_SCRIPT_CONFIGURE,
    BEL_SCRIPT_COUNT,
    BEL_SCRIPT_DIVIDE,
    BEL_SCRIPT_EXPLAIN,
    BEL_SCRIPT_EXTEND,
    BEL_SCRIPT_FAIL,
    BEL_SCRIPT_GET,
    BEL_SCRIPT_KEEP,
    BEL_SCRIPT_LIST,
    BEL_SCRIPT_MARK,
    BEL_SCRIPT_PEEK,
    BEL_SCRIPT_PURGE,
    BEL_SCRIPT_RELEASE,
    BEL_SCRIPT_RESCHEDULE,
    BEL_SCRIPT_RESTORE,
    BEL_SCRIPT_REVIVE,
    BEL_SCRIPT_RING,
    BEL_SCRIPT_SCHEDULE,
    BEL_SCRIPT_SEAL,
    BEL_SCRIPT_SWEEP,
    BEL_SCRIPT_TOPIC,
    BEL_SCRIPT_FASTSTREAM_ACK,
    BEL_SCRIPT_FASTSTREAM_AGENDA,
    BEL_SCRIPT_FASTSTREAM_CANCEL,
    BEL_SCRIPT_FASTSTREAM_CLAIM,
    BEL_SCRIPT_FASTSTREAM_CONFIGURE,
    BEL_SCRIPT_FASTSTREAM_COUNT,
    BEL_SCRIPT_FASTSTREAM_EXPLAIN,
    BEL_SCRIPT_FASTSTREAM_EXTEND,
    BEL_SCRIPT_FASTSTREAM_FORGET,
    BEL_SCRIPT_FASTSTREAM_GET,
    BEL_SCRIPT_FASTSTREAM_KEEP,
    BEL_SCRIPT_FASTSTREAM_LIST,
    BEL_SCRIPT_FASTSTREAM_PEEK,
    BEL_SCRIPT_FASTSTREAM_PURGE,
    BEL_SCRIPT_FASTSTREAM_RELEASE,
    BEL_SCRIPT_FASTSTREAM_RESCHEDULE,
    BEL_SCRIPT_FASTSTREAM_SCHEDULE,
    BEL_SCRIPT_FASTSTREAM_TOPIC,
    BEL_SCRIPTS,
};

struct bel_script {
    const char *name;
    const char *sha; /* SHA-1 in hexadecimal, by which EVALSHA names it */
    struct bel_view text;
    bool is_adding;     /* refused by a server whose memory is full, see embed.py */
    bool is_faststream; /* of topics of this layout: other keys, and the revision as an argument */
};

extern const struct bel_script bel__scripts[BEL_SCRIPTS];

#endif
