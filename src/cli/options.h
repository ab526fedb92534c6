/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_OPTIONS_H
#define BEL_CLI_OPTIONS_H

/*
 * options - what is typed behind a verb that is in no table of commands: words, options by a list
 * of its own, and those of every verb that talks to a server.
 *
 *     belfry bench --timers 1000 -c4 --json
 */

#include "cli/reach.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_option_kind {
    CLI_OPTION_FLAG,   /* sets `flag` */
    CLI_OPTION_TEXT,   /* sets `text` */
    CLI_OPTION_NUMBER, /* sets `number`, from `min` to `max` */
    CLI_OPTION_SPAN,   /* a duration in ms, likewise */
};

struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum cli_option_kind kind;
    uint64_t min, max;
    union {
        bool *flag;
        const char **text;
        uint64_t *number;
    } out;
};

struct cli_options {
    const char *verb;
    const char *usage; /* the help, to which that of reach is added */
    const struct cli_option *items;
    size_t count;
    struct cli_reach *reach;
    const char **words; /* set, with room for `words_max` */
    size_t words_max, words_count;
};

/* Reads what was typed; argv[0] is the verb. Returns -1 to go on; or what to exit with, after help
 * was printed or something was wrong and was said. */
int bel__options_read(struct cli_options *options, int argc, char **argv);

/* Says what is wrong with what was typed, as printf, and where help is. Returns CLI_USAGE. */
int bel__options_complain(const char *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
