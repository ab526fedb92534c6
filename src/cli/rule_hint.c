/* SPDX-License-Identifier: MIT */

#include "cli/rule_hint.h"

#include "belfry/cron.h"
#include "core/parse.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    FIELDS_MIN = 5,
    FIELDS_MAX = 7,
    MINUTES = 60,
    HOURS = 24,
};

/* Splits a rule into its fields. Returns their number; 0 if it is not that of a cron rule. */
static size_t split(const char *text, struct bel_view fields[FIELDS_MAX])
{
    struct bel_view rule = {text, strlen(text)}, zone;
    size_t count = 0;
    if (strchr(text, '=') != NULL && !bel_cron_split_zone(&rule, &zone)) return 0;
    const char *at = rule.data, *end = at + rule.bytes;
    while (at < end) {
        size_t blanks = strspn(at, " \t"), bytes = strcspn(at + blanks, " \t");
        if (bytes == 0) break;
        if (count == FIELDS_MAX) return 0;
        fields[count++] = (struct bel_view){at + blanks, bytes};
        at += blanks + bytes;
    }
    return count >= FIELDS_MIN ? count : 0;
}

/* Returns whether a field has the number of a weekday: not the 2 of MON#2, nor a step. */
static bool has_weekday_number(struct bel_view field)
{
    const char *text = field.data;
    for (size_t i = 0; i < field.bytes; i++) {
        if (!isdigit((unsigned char)text[i])) continue;
        if (i == 0 || (text[i - 1] != '#' && text[i - 1] != '/')) return true;
    }
    return false;
}

/* Returns whether the step of a field leads out of it, so that only its start is left. */
static bool is_beyond(struct bel_view field, uint64_t size)
{
    const char *slash = field.bytes > 0 ? memchr(field.data, '/', field.bytes) : NULL;
    uint64_t step;
    if (slash == NULL) return false;
    size_t bytes = field.bytes - (size_t)(slash + 1 - (const char *)field.data);
    return bel__parse_u64(slash + 1, bytes, size, UINT64_MAX, &step) == 0;
}

size_t bel__rule_notes(const char *rule, const char *out[CLI_RULE_NOTES_MAX])
{
    struct bel_view fields[FIELDS_MAX];
    size_t fields_count = split(rule, fields), count = 0;
    bool has_question = false;
    if (fields_count == 0) return 0;
    size_t minute = fields_count == FIELDS_MIN ? 0 : 1, weekday = minute + 4;
    for (size_t i = 0; i < fields_count; i++) {
        has_question |= memchr(fields[i].data, '?', fields[i].bytes) != NULL;
    }
    if (has_question && has_weekday_number(fields[weekday])) {
        out[count++] = "numbers of weekdays are those of cron, 1 is Monday; in Quartz 1 is Sunday: "
                       "write names, such as MON-FRI";
    }
    if (is_beyond(fields[minute], MINUTES) || is_beyond(fields[minute + 1], HOURS)) {
        out[count++] = "a step that is longer than its field has no effect; for an interval, such "
                       "as 90 minutes, use every: schedule --every 90m, next '@every 90m'";
    }
    return count;
}
