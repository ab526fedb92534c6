/* SPDX-License-Identifier: MIT */

/* Words and options may be mixed. "--" ends the options; "-" alone is a word. */
#include "cli/options.h"

#include "cli/duration.h"
#include "cli/print.h"
#include "core/parse.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 64,
};

int bel__options_complain(const char *verb, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "belfry %s: ", verb);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "; see belfry help %s\n", verb);
    return CLI_USAGE;
}

int bel__options_unknown(const char *verb, const char *name, const char *similar)
{
    if (similar == NULL) return bel__options_complain(verb, "unknown option --%s", name);
    return bel__options_complain(verb, "unknown option --%s (did you mean --%s?)", name, similar);
}

static int set_number(const struct cli_options *options, const struct cli_option *option,
                      const char *value)
{
    int err = bel__parse_u64(value, strlen(value), option->min, option->max, option->out.number);
    if (err == 0) return CLI_OK;
    return bel__options_complain(options->verb,
                                 "--%s %s: expected a number from %" PRIu64 " to %" PRIu64,
                                 option->name, value, option->min, option->max);
}

static int set_span(const struct cli_options *options, const struct cli_option *option,
                    const char *value)
{
    struct bel_text_error why;
    uint64_t ms;
    int err = bel__cli_duration(value, &ms, &why);
    if (err) {
        char name[NAME_BYTES + 2];
        (void)snprintf(name, sizeof name, "--%.60s", option->name);
        return bel__cli_refuse_value(name, "a duration", value, &why);
    }
    if (ms < option->min || ms > option->max) {
        return bel__options_complain(options->verb,
                                     "--%s %s: expected from %" PRIu64 " to %" PRIu64 " ms",
                                     option->name, value, option->min, option->max);
    }
    *option->out.number = ms;
    return CLI_OK;
}

static int set(const struct cli_options *options, const struct cli_option *option,
               const char *value)
{
    switch (option->kind) {
    case CLI_OPTION_FLAG:
        *option->out.flag = true;
        return CLI_OK;
    case CLI_OPTION_TEXT:
        *option->out.text = value;
        return CLI_OK;
    case CLI_OPTION_NUMBER:
        return set_number(options, option, value);
    default:
        return set_span(options, option, value);
    }
}

static int refuse_option(const struct cli_options *options, const char *name)
{
    struct bel_similar similar;
    bel__similar_begin(&similar, name);
    for (size_t i = 0; i < options->count; i++) {
        bel__similar_offer(&similar, options->items[i].name, options->items[i].name);
    }
    if (options->connect != NULL) bel__connect_offer(&similar);
    return bel__options_unknown(options->verb, name, similar.name);
}

/* Parses "name=value", or "name" with its value in the next argument. Sets `*used` to whether the
 * next argument was consumed. */
static int take_long(const struct cli_options *options, const char *text, const char *next,
                     bool *used)
{
    char name[NAME_BYTES];
    const struct cli_option *option = NULL;
    const char *equals = strchr(text, '=');
    size_t bytes = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const char *value = equals != NULL ? equals + 1 : next;
    bool has = false, has_value = false;
    (void)snprintf(name, sizeof name, "%.*s", (int)(bytes < NAME_BYTES ? bytes : NAME_BYTES), text);
    for (size_t i = 0; i < options->count && option == NULL; i++) {
        if (strcmp(options->items[i].name, name) == 0) option = &options->items[i];
    }
    if (option == NULL && options->connect == NULL) return refuse_option(options, name);
    if (option == NULL) {
        int status = bel__connect_option(options->connect, name, value, &has, &has_value);
        if (status != CLI_OK) return status;
        if (!has) return refuse_option(options, name);
    } else {
        has_value = option->kind != CLI_OPTION_FLAG;
    }
    if (!has_value && equals != NULL) {
        return bel__options_complain(options->verb, "option takes no value: --%s", name);
    }
    *used = has_value && equals == NULL;
    if (option == NULL) return CLI_OK;
    if (has_value && value == NULL) {
        return bel__options_complain(options->verb, "option needs a value: --%s", name);
    }
    return set(options, option, value);
}

/* Parses "-n5", or "-n" with its value in the next argument. */
static int take_short(const struct cli_options *options, const char *text, const char *next,
                      bool *used)
{
    for (size_t i = 0; i < options->count; i++) {
        const struct cli_option *option = &options->items[i];
        if (option->letter == 0 || option->letter != text[1]) continue;
        if (option->kind == CLI_OPTION_FLAG && text[2] != '\0') break;
        if (option->kind == CLI_OPTION_FLAG) return set(options, option, NULL);
        const char *value = text[2] != '\0' ? text + 2 : next;
        *used = text[2] == '\0';
        if (value != NULL) return set(options, option, value);
        return bel__options_complain(options->verb, "option needs a value: -%c", text[1]);
    }
    return bel__options_complain(options->verb, "unknown option %s", text);
}

static int take_word(struct cli_options *options, const char *text)
{
    bool is_full = options->words_count == options->words_max;
    if (is_full && strstr(text, "://") != NULL) { /* which may have a password */
        return bel__options_complain(options->verb, "unexpected argument, a URL without an option");
    }
    if (is_full) {
        return bel__options_complain(options->verb, "unexpected argument %s", text);
    }
    options->words[options->words_count++] = text;
    return CLI_OK;
}

int bel__options_read(struct cli_options *options, int argc, char **argv)
{
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        bool used = false;
        int status;
        if (only_words || text[0] != '-' || text[1] == '\0') {
            status = take_word(options, text);
        } else if (strcmp(text, "--") == 0) {
            only_words = true;
            status = CLI_OK;
        } else if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            fputs(options->usage, stdout);
            if (options->connect != NULL) {
                fputs(options->needs_server ? bel__connect_help_server : bel__connect_help, stdout);
            }
            return CLI_OK;
        } else if (text[1] == '-') {
            status = take_long(options, text + 2, argv[i + 1], &used);
        } else {
            status = take_short(options, text, argv[i + 1], &used);
        }
        if (status != CLI_OK) return status;
        i += used;
    }
    return -1;
}
