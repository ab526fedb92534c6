/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_PRINT_H
#define BEL_CLI_PRINT_H

/*
 * print - prints untrusted values to standard output, as JSON or as text. Control characters and
 * invalid UTF-8 are escaped, so that no value can control a terminal.
 */

#include "belfry/client.h"
#include "belfry/text.h"
#include "belfry/view.h"
#include "commands/fields.h"

#include <stdbool.h>
#include <stdint.h>

/* Return whether standard output is a terminal, whether to print colours (a terminal, and NO_COLOR
 * is not set), and the width of the terminal. */
bool bel__cli_is_terminal(void);
bool bel__cli_has_color(void);
unsigned bel__cli_columns(void);

/* Returns the text of an errno, valid until the next call in this thread. */
const char *bel__cli_problem(int number);

/* Print a text as a JSON string, with quotes. Invalid UTF-8 is printed as U+FFFD. */
void bel__cli_print_json(const char *text);
void bel__cli_print_json_view(struct bel_view view);

/* Prints a value as JSON. In a map, a text that is not UTF-8 is printed in base64, with _base64
 * appended to its name; the list `headers` is printed as an object. */
void bel__cli_print_value(const struct bel_value *value);

/* Prints a list of fields as a JSON object, with the names of the table of fields. A nil is left
 * out if the field is BEL_EMPTY_ABSENT, and printed as null otherwise. */
void bel__cli_print_places(enum bel_shown_kind kind, const struct bel_value *list);

/* Returns a number of a reply to TOPIC, by the name of a field of the table; 0 if it is absent. */
int64_t bel__cli_topic_number(const struct bel_value *topic, const char *name);

/* Prints a text on one line, with escapes: \t, \n, \\, \x1b. Prints at most `columns` characters,
 * then "..."; 0: no limit. */
void bel__cli_print_line(struct bel_view view, size_t columns);

/* Prints a value as text; a list or a map as JSON. */
void bel__cli_print_plain(const struct bel_value *value);

/* Prints a time in UTC. */
void bel__cli_print_time(int64_t ms);

/* Prints the name of a state, padded to `columns`, in colour on a terminal. */
void bel__cli_print_state(struct bel_view state, int columns);

/* Prints a text to standard error, and a mark below the byte at `position`. */
void bel__cli_point_at(struct bel_view text, size_t position);

/* Prints a syntax error to standard error: what was expected, the text, and a mark below the
 * position. Returns CLI_USAGE. */
int bel__cli_refuse(const char *what, const char *text, const struct bel_text_error *why);

/* Like bel__cli_refuse(), with the name of the option or setting in front of the error. */
int bel__cli_refuse_value(const char *name, const char *what, const char *text,
                          const struct bel_text_error *why);

#endif
