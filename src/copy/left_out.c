/* SPDX-License-Identifier: MIT */

/* What a copy does not have: jobs, groups, resources with their limits, and concurrency. */
#include "copy/topic.h"

#include "core/view.h"

#include <stdio.h>
#include <string.h>

/* What LIMIT gives the breaker of a resource by itself. */
enum {
    BREAKER_FAILURES = 5,
    BREAKER_OPEN_MS = 30 * 1000,
    BREAKER_MAX_MS = 300 * 1000,
};

/* Pages of something that is counted. */
struct seen {
    struct bel_copy *copy;
    char cursor[BEL_COPY_CURSOR_BYTES];
    size_t cursor_bytes;
};

static int keep_cursor(struct seen *seen, struct bel_view cursor)
{
    if (cursor.bytes > sizeof seen->cursor) return BEL_ECORRUPT;
    seen->cursor_bytes = cursor.bytes;
    if (cursor.bytes > 0) memcpy(seen->cursor, cursor.data, cursor.bytes);
    return 0;
}

static int see_jobs(void *context, const struct bel_reply *reply)
{
    struct seen *seen = context;
    seen->copy->counts.jobs += reply->jobs.count;
    return keep_cursor(seen, reply->jobs.cursor);
}

static bool has_limits(const struct bel_limit_state *state)
{
    return state->rate_count > 0 || state->burst > 1 || state->concurrency > 0 ||
           state->limited_until.ms > 0 || state->breaker != BEL_BREAKER_CLOSED ||
           state->breaker_failures != BREAKER_FAILURES ||
           state->breaker_open_ms != BREAKER_OPEN_MS || state->breaker_max_ms != BREAKER_MAX_MS;
}

static void name_limited(struct bel_copy *copy, struct bel_view name)
{
    size_t used = strlen(copy->limited), room = sizeof copy->limited - used;
    if (name.bytes + sizeof ", ..." >= room) {
        (void)snprintf(copy->limited + used, room, used > 0 ? ", ..." : "...");
        return;
    }
    (void)snprintf(copy->limited + used, room, "%s%.*s", used > 0 ? ", " : "", (int)name.bytes,
                   (const char *)name.data);
}

static int see_limits(void *context, const struct bel_reply *reply)
{
    struct seen *seen = context;
    for (size_t i = 0; i < reply->limits.count; i++) {
        const struct bel_limit_state *state = &reply->limits.items[i];
        if (!has_limits(state)) continue;
        bool is_full = strstr(seen->copy->limited, "...") != NULL;
        if (!is_full) name_limited(seen->copy, state->name);
        seen->copy->counts.limits++;
    }
    return keep_cursor(seen, reply->limits.cursor);
}

/* Asks for all pages of a list, whose cursor is in the command. A store without jobs or limits has
 * none. */
static int count_pages(struct bel_copy *copy, const struct bel_command *command,
                       struct bel_view *cursor, bel_ask_see *see)
{
    struct seen seen = {.copy = copy};
    do {
        *cursor = (struct bel_view){seen.cursor, seen.cursor_bytes};
        int err = bel__ask(&copy->source, command, see, &seen, copy->why);
        if (err == BEL_EUNSUPPORTED) {
            copy->why->text[0] = 0;
            return 0;
        }
        if (err) return err;
    } while (seen.cursor_bytes > 0);
    return 0;
}

int bel__copy_count_others(struct bel_copy *copy)
{
    struct bel_command jobs = {.verb = BEL_VERB_JOB_LIST,
                               .job_list = {.count = BEL_LIST_COUNT_MAX}};
    struct bel_command limits = {.verb = BEL_VERB_LIMIT,
                                 .limit = {.action = BEL_LIMIT_LIST, .count = BEL_LIST_COUNT_MAX}};
    int err = count_pages(copy, &jobs, &jobs.job_list.cursor, see_jobs);
    return err ? err : count_pages(copy, &limits, &limits.limit.cursor, see_limits);
}

/* Adds "40 timers with a group" to a list; a '#' in `what` is an s, or left out for 1. */
static void name_left_out(char *text, size_t room, uint64_t number, const char *what)
{
    size_t used = strlen(text), head = strcspn(what, "#");
    if (number == 0) return;
    (void)snprintf(text + used, room - used, "%s%llu %.*s%s%s", used > 0 ? ", " : "",
                   (unsigned long long)number, (int)head, what, number == 1 ? "" : "s",
                   what + head + 1);
}

int bel__copy_check_left_out(const struct bel_copy *copy)
{
    const struct bel_copy_options *options = copy->options;
    const struct bel_copy_counts *counts = &copy->counts;
    char text[600] = "", words[60] = "", limits[40 + BEL_COPY_NAMES_BYTES];
    (void)snprintf(limits, sizeof limits, "resource# with limits (%s)", copy->limited);
    const struct {
        bool is_left_out;
        uint64_t number;
        const char *what, *word;
    } rows[] = {
        {options->without_jobs, counts->jobs, "job#", "jobs"},
        {options->without_jobs, counts->tasks, "task# of jobs", "jobs"},
        {options->without_groups, counts->groups, "timer# with a group", "groups"},
        {options->without_resources, counts->resources, "timer# with a resource", "resources"},
        {options->without_resources, counts->limits, limits, "resources"},
        {options->without_concurrency, counts->settings, "topic# with a concurrency",
         "concurrency"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].is_left_out || rows[i].number == 0) continue;
        name_left_out(text, sizeof text, rows[i].number, rows[i].what);
        if (strstr(words, rows[i].word) != NULL) continue;
        size_t used = strlen(words);
        (void)snprintf(words + used, sizeof words - used, "%s%s", used > 0 ? "," : "",
                       rows[i].word);
    }
    if (text[0] == 0) return 0;
    return bel__why_say(copy->why, BEL_EUNSUPPORTED,
                        "a copy does not have all of the source; to leave it out: --without %s; "
                        "the source has %s",
                        words, text);
}
