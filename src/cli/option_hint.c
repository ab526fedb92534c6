/* SPDX-License-Identifier: MIT */

/* Each kind of value is recognised by its beginning, or because it parses. */
#include "cli/option_hint.h"

#include "cli/duration.h"
#include "cli/local_time.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define INTERVAL "@every "

static bool begins_with(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_duration(const char *value)
{
    struct bel_text_error why;
    uint64_t ms;
    if (strspn(value, "0123456789") == strlen(value)) return false; /* milliseconds since 1970 */
    return bel__cli_duration(value, &ms, &why) == 0;
}

static bool is_recurrence(const char *value)
{
    return begins_with(value, "FREQ=") || begins_with(value, "RRULE:") ||
           begins_with(value, "DTSTART");
}

/* Returns whether a value has five fields or more, or is a name such as @daily. */
static bool is_cron(const char *value)
{
    unsigned spaces = 0;
    if (value[0] == '@' && !begins_with(value, INTERVAL)) return true;
    if (strpbrk(value, "*") == NULL) return false;
    for (const char *at = value; *at != '\0'; at++) {
        spaces += *at == ' ' && at[1] != ' ';
    }
    return spaces >= 4;
}

/* Returns the option of a rule; NULL if the value is no rule. */
static const char *rule_of(const char *value)
{
    if (begins_with(value, INTERVAL) && is_duration(value + strlen(INTERVAL))) return "EVERY";
    if (is_recurrence(value)) return "RRULE";
    if (is_cron(value)) return "CRON";
    return is_duration(value) ? "EVERY" : NULL;
}

const char *bel__option_hint(const char *option, const char *value, char out[CLI_OPTION_HINT_BYTES])
{
    const char *meant = NULL;
    bool is_rule =
        strcmp(option, "CRON") == 0 || strcmp(option, "RRULE") == 0 || strcmp(option, "EVERY") == 0;
    if (is_rule) meant = rule_of(value);
    if (strcmp(option, "AT") == 0 && is_duration(value)) meant = "IN";
    if (strcmp(option, "IN") == 0 && bel__local_time_is(value)) meant = "AT";
    bool is_interval = meant != NULL && begins_with(value, INTERVAL);
    if (meant == NULL || (strcmp(meant, option) == 0 && !is_interval)) return NULL;
    const char *given = is_interval ? value + strlen(INTERVAL) : value;
    if (strlen(given) >= CLI_OPTION_HINT_BYTES) return NULL;
    (void)snprintf(out, CLI_OPTION_HINT_BYTES, "%s", given);
    return meant;
}
