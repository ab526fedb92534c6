/* SPDX-License-Identifier: MIT */

/* The defaults in the help lines are those of the engine (engine/state/settings.c). */
#include "commands/settings.h"

#include <string.h>
#include <strings.h>

const struct bel_setting_entry bel__setting_entries[] = {
    {"lease", BEL_ARGUMENT_DURATION, "how long a claim lasts (default 30s)"},
    {"retry", BEL_ARGUMENT_POLICY, "retry policy (default exp(10s,2,1h) jitter(0.1) max(20))"},
    {"crashes", BEL_ARGUMENT_NUMBER, "lost leases after which a timer is dead (default 5)"},
    {"concurrency", BEL_ARGUMENT_NUMBER, "leased timers at once, at most (default 0: no limit)"},
    {"retention", BEL_ARGUMENT_DURATION,
     "how long done and cancelled timers are kept (default 0s)"},
    {"retention_dead", BEL_ARGUMENT_DURATION,
     "how long dead timers are kept, or forever (default forever)"},
    {"depth", BEL_ARGUMENT_NUMBER, "unfinished timers, at most (default 0: no limit)"},
    {"misfire_after", BEL_ARGUMENT_DURATION,
     "how late an occurrence is before it is missed (default 1m)"},
    {"deliver", BEL_ARGUMENT_TEXT,
     "text for programs that deliver timers, up to 1,024 bytes (default empty)"},
    {"layout", BEL_ARGUMENT_TEXT,
     "on Redis: native, or faststream to share timers with Python (default native)"},
    {"timeline_key", BEL_ARGUMENT_TEXT,
     "layout faststream: name of the sorted set (default timers_timeline)"},
    {"payloads_key", BEL_ARGUMENT_TEXT,
     "layout faststream: name of the hash (default timers_payloads)"},
    {"prefix", BEL_ARGUMENT_TEXT,
     "layout faststream: text before the topic in keys (default empty)"},
    {"poll_min", BEL_ARGUMENT_DURATION,
     "layout faststream: shortest time between polls (default 50ms)"},
    {"poll_max", BEL_ARGUMENT_DURATION,
     "layout faststream: longest time between polls (default 5s)"},
    {NULL, BEL_ARGUMENT_TEXT, NULL},
};

const struct bel_setting_entry *bel__setting_find(struct bel_view name)
{
    for (const struct bel_setting_entry *entry = bel__setting_entries; entry->name != NULL;
         entry++) {
        bool is_it = strlen(entry->name) == name.bytes &&
                     strncasecmp(name.data, entry->name, name.bytes) == 0;
        if (is_it) return entry;
    }
    return NULL;
}
