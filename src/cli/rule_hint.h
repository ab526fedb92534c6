/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_RULE_HINT_H
#define BEL_CLI_RULE_HINT_H

/*
 * rule_hint - finds cron rules that are valid, and most likely mean something else:
 *
 *     0 0 9 ? * 2-6     weekdays by number beside a ?: of Quartz, where 1 is Sunday
 *     0/90 * * * *     a step beyond the end of its field
 */

#include <stddef.h>

enum {
    CLI_RULE_NOTES_MAX = 2,
};

/* Sets `out` to notes about a rule of cron, which are constants. Returns their number. */
size_t bel__rule_notes(const char *rule, const char *out[CLI_RULE_NOTES_MAX]);

#endif
