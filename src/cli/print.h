/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_PRINT_H
#define BEL_CLI_PRINT_H

/*
 * print - what comes from outside, on standard output: as JSON for programs, in lines for people
 * and pipes. Nothing that comes from outside reaches a terminal as it is: control characters and
 * what is not UTF-8 are escaped.
 */

#include "belfry/client.h"
#include "belfry/view.h"
#include "commands/fields.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether standard output is a terminal: then there are tables, and colours unless NO_COLOR says
 * otherwise. */
bool bel__cli_is_terminal(void);
bool bel__cli_has_color(void);
unsigned bel__cli_columns(void);

/* An errno in words, good until the next one of this thread. */
const char *bel__cli_problem(int number);

/* Whether all of it is UTF-8. */
bool bel__cli_is_text(struct bel_view view);

/* Prints a text as a JSON string, quotes included. What is not UTF-8 is printed as U+FFFD. */
void bel__cli_print_json(const char *text);
void bel__cli_print_json_view(struct bel_view view);

/* Prints a value as JSON. In a map, texts that are not UTF-8 are printed in base64, and their
 * names end in _base64; a list by the name of headers is a map. */
void bel__cli_print_value(const struct bel_value *value);

/* Prints a list of fields as a JSON object, with the names that its places have. What is absent
 * because it is empty is left out; what else is absent is null. */
void bel__cli_print_places(enum bel_shown_kind kind, const struct bel_value *list);

/* Prints a text on one line: \t, \n, \\, \x1b. At most `columns` characters, "..." if there are
 * more; 0: all. */
void bel__cli_print_line(struct bel_view view, size_t columns);

/* Prints a value that is not a list, for people. */
void bel__cli_print_plain(const struct bel_value *value);

/* Prints a time in UTC. */
void bel__cli_print_time(int64_t ms);

/* Prints the name of a state, filled up to `columns`, in its colour if there are any. */
void bel__cli_print_state(struct bel_view state, int columns);

#endif
