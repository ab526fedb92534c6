/* SPDX-License-Identifier: MIT */
#include "server/embedded/overlap_log.h"

#include "core/units.h"

#include <string.h>

enum {
    QUIET_MS = 1000, /* between two lines of a job */
};

static bool is_quiet(const struct bel_overlap_log_place *place, struct bel_boot now)
{
    return now.ns - place->logged.ns < (uint64_t)QUIET_MS * NS_PER_MS;
}

/* Returns the place of a job: its own, or a new one; NULL if all are in use. */
static struct bel_overlap_log_place *find(struct bel_overlap_log *log, const char *job,
                                          struct bel_boot now)
{
    struct bel_overlap_log_place *unused = NULL;
    for (unsigned i = 0; i < BEL_OVERLAP_LOG_JOBS; i++) {
        struct bel_overlap_log_place *place = &log->places[i];
        if (strcmp(place->job, job) == 0) return place;
        bool is_unused = place->job[0] == 0 || !is_quiet(place, now);
        if (is_unused && unused == NULL) unused = place;
    }
    if (unused != NULL) memset(unused, 0, sizeof *unused);
    return unused;
}

uint64_t bel__overlap_log_count(struct bel_overlap_log *log, const struct bel_engine_overlap *note,
                                struct bel_boot now)
{
    struct bel_overlap_log_place *place = find(log, note->job, now);
    if (place == NULL) return 0;
    bool is_new = place->job[0] == 0;
    bool goes_on = !is_new && note->in_a_row > place->in_a_row;
    place->skipped += is_new ? 1 : goes_on ? note->in_a_row - place->in_a_row : note->in_a_row;
    place->in_a_row = note->in_a_row;
    if (!is_new && is_quiet(place, now)) return 0;
    memcpy(place->job, note->job, sizeof place->job);
    uint64_t skipped = place->skipped;
    place->logged = now;
    place->skipped = 0;
    return skipped;
}
