/* SPDX-License-Identifier: MIT */

/* Each kind of value is recognised by its beginning, or because it parses. */
#include "cli/option_hint.h"

#include "cli/duration.h"
#include "cli/local_time.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What may come before an interval. */
static const char *const intervals[] = {"@every ", "every "};

static bool begins_with(const char *text, const char *prefix)
{
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_duration(const char *value)
{
    struct bel_text_error why;
    uint64_t ms;
    /* Milliseconds since 1970, or fields of a cron rule. */
    if (strspn(value, "0123456789 ") == strlen(value)) return false;
    return bel__cli_duration(value, &ms, &why) == 0;
}

static bool is_recurrence(const char *value)
{
    return begins_with(value, "FREQ=") || begins_with(value, "RRULE:") ||
           begins_with(value, "DTSTART");
}

/* Returns an interval without the word before it; the value as it is if there is none. */
static const char *interval_in(const char *value)
{
    for (unsigned i = 0; i < sizeof intervals / sizeof intervals[0]; i++) {
        const char *rest = value + strlen(intervals[i]);
        if (begins_with(value, intervals[i]) && is_duration(rest)) return rest;
    }
    return value;
}

/* Returns the name of a cron rule whose @ is missing; NULL if the value is none. */
static const char *name_in(const char *value)
{
    static const char *const names[] = {"@hourly",  "@daily",  "@midnight", "@weekly",
                                        "@monthly", "@yearly", "@annually"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(value, names[i] + 1) == 0) return names[i];
    }
    return NULL;
}

/* Returns whether a value has five fields or more, or is a name such as @daily. */
static bool is_cron(const char *value)
{
    unsigned spaces = 0;
    if (value[0] == '@' && !begins_with(value, intervals[0])) return true;
    if (strpbrk(value, "*") == NULL) return false;
    for (const char *at = value; *at != '\0'; at++) {
        spaces += *at == ' ' && at[1] != ' ';
    }
    return spaces >= 4;
}

/* Returns the option of a rule; NULL if the value is no rule. */
static const char *rule_of(const char *value)
{
    if (is_recurrence(value)) return "RRULE";
    if (is_cron(value) || name_in(value) != NULL) return "CRON";
    return is_duration(interval_in(value)) ? "EVERY" : NULL;
}

const char *bel__option_hint(const char *option, const char *value, char out[CLI_OPTION_HINT_BYTES])
{
    const char *meant = NULL, *given = value;
    bool is_rule =
        strcmp(option, "CRON") == 0 || strcmp(option, "RRULE") == 0 || strcmp(option, "EVERY") == 0;
    if (is_rule) {
        meant = rule_of(value);
        given = name_in(value) != NULL ? name_in(value) : interval_in(value);
    }
    if (strcmp(option, "AT") == 0 && is_duration(value)) meant = "IN";
    if (strcmp(option, "IN") == 0 && bel__local_time_is(value)) meant = "AT";
    if (meant == NULL || (strcmp(meant, option) == 0 && given == value)) return NULL;
    if (strlen(given) >= CLI_OPTION_HINT_BYTES) return NULL;
    (void)snprintf(out, CLI_OPTION_HINT_BYTES, "%s", given);
    return meant;
}

const char *bel__option_synonym(const char *name)
{
    static const struct {
        const char *name, *option;
    } synonyms[] = {
        {"delay", "IN"},
        {"after", "IN"},
        {"when", "AT"},
        {"date", "AT"},
        {"time", "AT"},
        {"due", "AT"},
        {"run-at", "AT"},
        {"eta", "AT"},
        {"repeat", "EVERY"},
        {"interval", "EVERY"},
        {"period", "EVERY"},
        {"timezone", "TZ"},
        {"time-zone", "TZ"},
        {"zone", "TZ"},
        {"retries", "RETRY"},
        {"retires", "RETRY"},
        {"attempts", "RETRY"},
        {"max-retries", "RETRY"},
        {"max-attempts", "RETRY"},
        {"backoff", "RETRY"},
        {"name", "ID"},
        {"key", "ID"},
        {"job-id", "ID"},
        {"jobid", "ID"},
        {"ttl", "EXPIRES"},
        {"ttr", "LEASE"},
        {"visibility-timeout", "LEASE"},
        {"limit", "COUNT"},
        {"ends", "UNTIL"},
        {"payload", "payload"},
        {"data", "payload"},
        {"body", "payload"},
        {"message", "payload"},
        {"topic", "topic"},
        {"queue", "topic"},
        {"tube", "topic"},
    };
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcmp(synonyms[i].name, name) == 0) return synonyms[i].option;
    }
    return NULL;
}
