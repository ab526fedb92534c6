/* SPDX-License-Identifier: MIT */

/*
 * The first words are positional arguments, as many as the table has; a repeated positional ends
 * where an option begins. The remaining words are options, each followed by as many words as its
 * type has. Values are parsed after all words are assigned, because parsing a time depends on GAP
 * and FOLD, which may follow it.
 */
#include "session/bind.h"

#include "belfry/duration.h"
#include "belfry/instant.h"
#include "core/parse.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    SHOWN_MAX = 40, /* bytes of a word that an error quotes */
    USAGE_BYTES = 120,
};

int bel__refusal(struct bel_why *why, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)bel__why_vsay(why, BEL_EINVAL, format, args);
    va_end(args);
    why->code = code;
    return BEL_EINVAL;
}

/* Returns how many bytes of a word an error quotes. */
static int shown(struct bel_view word)
{
    return (int)(word.bytes < SHOWN_MAX ? word.bytes : SHOWN_MAX);
}

static bool is_option(const struct bel_argument *argument)
{
    return argument->name[0] >= 'A' && argument->name[0] <= 'Z';
}

static bool is_word(struct bel_view word, const char *name)
{
    return word.bytes == strlen(name) && strncasecmp(word.data, name, word.bytes) == 0;
}

/* Finds the option of this name; NULL if the command has none. */
static const struct bel_argument *find_option(const struct bel_command_entry *entry,
                                              struct bel_view word)
{
    const struct bel_argument *end = entry->arguments + entry->arguments_count;
    for (const struct bel_argument *option = entry->arguments; option < end; option++) {
        if (bel__name_is(option->name, word)) return option;
    }
    return NULL;
}

static void take_value(struct bel_bound *bound, size_t place, struct bel_view text)
{
    bound->there |= UINT32_C(1) << place;
    bound->values[place].text = text;
}

static int refuse_usage(const struct bel_command_entry *entry, const char *what,
                        struct bel_why *why)
{
    char usage[USAGE_BYTES];
    size_t needed = bel__command_usage(entry, usage, sizeof usage);
    return bel__refusal(why, "ERR", "wrong number of arguments for '%s', %s: %s%s", entry->name,
                        what, usage, needed < sizeof usage ? "" : "...");
}

/* --- positions --- */

/* Returns whether an option begins at `at`. */
static bool begins_option(const struct bel_command_entry *entry, const struct bel_words *words,
                          size_t at)
{
    return at > words->values_count && find_option(entry, words->items[at]) != NULL;
}

/* Returns the number of words of a repeated positional at `at`: up to the first option. */
static size_t count_repeated(const struct bel_command_entry *entry, const struct bel_words *words,
                             size_t at)
{
    size_t end = at;
    while (end < words->count && !begins_option(entry, words, end)) {
        end++;
    }
    return end - at;
}

static int take_repeated(struct bel_bound *bound, size_t place, const struct bel_words *words,
                         size_t *at, struct bel_why *why)
{
    const struct bel_argument *argument = &bound->entry->arguments[place];
    bool is_last = bound->entry->arguments_count == place + 1;
    size_t count = words->count - *at;
    if (!is_last) count = count_repeated(bound->entry, words, *at);
    if (count == 0 && argument->is_optional) return 0;
    if (count == 0) return refuse_usage(bound->entry, "too few", why);
    if (argument->type == BEL_ARGUMENT_PAIR && count % 2 != 0) {
        return bel__refusal(why, "ERR", "'%.*s' needs a value",
                            shown(words->items[*at + count - 1]),
                            (const char *)words->items[*at + count - 1].data);
    }
    bound->repeated = &words->items[*at];
    bound->repeated_count = count;
    take_value(bound, place, words->items[*at]);
    *at += count;
    return 0;
}

static int take_positions(struct bel_bound *bound, const struct bel_words *words, size_t *at,
                          struct bel_why *why)
{
    const struct bel_command_entry *entry = bound->entry;
    for (size_t i = 0; i < entry->arguments_count && !is_option(&entry->arguments[i]); i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        if (argument->is_repeated) return take_repeated(bound, i, words, at, why);
        if (*at == words->count) {
            return argument->is_optional ? 0 : refuse_usage(entry, "too few", why);
        }
        if (argument->yields && begins_option(entry, words, *at)) return 0;
        take_value(bound, i, words->items[(*at)++]);
    }
    return 0;
}

/* --- options --- */

static size_t words_of(const struct bel_argument *option)
{
    if (option->type == BEL_ARGUMENT_FLAG) return 0;
    return option->type == BEL_ARGUMENT_PAIR ? 2 : 1;
}

static int take_option(struct bel_bound *bound, const struct bel_words *words, size_t *at,
                       struct bel_why *why)
{
    struct bel_view name = words->items[*at];
    const struct bel_argument *option = find_option(bound->entry, name);
    if (option == NULL) {
        return bel__refusal(why, "ERR", "%s has no option '%.*s': see COMMAND DOCS %s",
                            bound->entry->name, shown(name), (const char *)name.data,
                            bound->entry->name);
    }
    size_t place = (size_t)(option - bound->entry->arguments);
    if (bel__bound_has(bound, place) && !option->is_repeated) {
        return bel__refusal(why, "ERR", "%s is given twice", option->name);
    }
    size_t count = words_of(option);
    if (words->count - *at - 1 < count) {
        return bel__refusal(why, "ERR", "%s needs %s: %s", option->name,
                            count == 2 ? "a name and a value" : "a value", option->help);
    }
    take_value(bound, place, count == 1 ? words->items[*at + 1] : (struct bel_view){0});
    if (count == 2) {
        bound->pairs[bound->pairs_count++] =
            (struct bel_header){words->items[*at + 1], words->items[*at + 2]};
    }
    *at += 1 + count;
    return 0;
}

static bool has_options(const struct bel_command_entry *entry)
{
    size_t count = entry->arguments_count;
    return count > 0 && is_option(&entry->arguments[count - 1]);
}

static int take_all(struct bel_bound *bound, const struct bel_words *words, struct bel_why *why)
{
    size_t at = 1;
    int err = take_positions(bound, words, &at, why);
    if (err) return err;
    if (at < words->count && !has_options(bound->entry)) {
        return refuse_usage(bound->entry, "too many", why);
    }
    while (at < words->count) {
        err = take_option(bound, words, &at, why);
        if (err) return err;
    }
    return 0;
}

/* --- values --- */

/* 1973 in milliseconds, the year 5138 in seconds. */
#define SECONDS_MAX INT64_C(100000000000)

static int read_number(const struct bel_argument *argument, struct bel_bound_value *value,
                       struct bel_why *why)
{
    if (argument->may_be_off && is_word(value->text, "off")) return 0;
    int err = bel__parse_u64(value->text.data, value->text.bytes, 0, UINT64_MAX, &value->number);
    if (err == 0) return 0;
    return bel__refusal(why, "BADARG", "%s: expected a number%s, not '%.*s'", argument->name,
                        argument->may_be_off ? " or off" : "", shown(value->text),
                        (const char *)value->text.data);
}

static int refuse_text(const struct bel_argument *argument, struct bel_view text,
                       const struct bel_text_error *error, struct bel_why *why)
{
    return bel__refusal(why, "BADARG", "%s '%.*s': at byte %zu, expected %s", argument->name,
                        shown(text), (const char *)text.data, error->position + 1, error->expected);
}

static int read_duration(const struct bel_argument *argument, struct bel_bound_value *value,
                         struct bel_why *why)
{
    struct bel_text_error error;
    struct bel_view text = value->text;
    int err = bel_duration_parse(text.data, text.bytes, &value->number, &error);
    return err == 0 ? 0 : refuse_text(argument, text, &error, why);
}

/* Returns what is wrong with a time that is a number; NULL if nothing is, or if it is none. */
static const char *epoch_fault(struct bel_view text)
{
    int64_t number;
    int err = bel__parse_i64(text.data, text.bytes, INT64_MIN, SECONDS_MAX - 1, &number);
    if (err) return NULL;
    return number < 0 ? "is before 1970" : "looks like seconds";
}

static int read_time(const struct bel_argument *argument, struct bel_bound_value *value,
                     const struct bel_instant_options *options, struct bel_why *why)
{
    struct bel_text_error error;
    struct bel_view text = value->text;
    int err = bel_instant_parse(text.data, text.bytes, options, &value->time, &error);
    const char *fault = err == 0 && argument->refuses_seconds ? epoch_fault(text) : NULL;
    if (fault != NULL) {
        return bel__refusal(why, "BADARG",
                            "%s '%.*s': %s; expected milliseconds since 1970, or a time like "
                            "2030-01-31T09:00:00Z",
                            argument->name, shown(text), (const char *)text.data, fault);
    }
    if (err == 0) return 0;
    if (err == BEL_EINVAL) return refuse_text(argument, text, &error, why);
    return bel__refusal(why, err == BEL_ENOMEM ? "FULL" : "IO", "%s: cannot read its zone: %s",
                        argument->name, bel_error_text(err));
}

static int read_word(const struct bel_argument *argument, struct bel_bound_value *value,
                     struct bel_why *why)
{
    for (size_t i = 0; argument->words[i] != NULL; i++) {
        if (!is_word(value->text, argument->words[i])) continue;
        value->number = i;
        return 0;
    }
    char list[USAGE_BYTES] = "";
    for (size_t i = 0, used = 0; argument->words[i] != NULL && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                 argument->words[i]);
    }
    return bel__refusal(why, "BADARG", "%s: '%.*s' is not one of %s", argument->name,
                        shown(value->text), (const char *)value->text.data, list);
}

static int read_state(const struct bel_argument *argument, struct bel_bound_value *value,
                      struct bel_why *why)
{
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (!is_word(value->text, bel_state_name((enum bel_state)i))) continue;
        value->number = i;
        return 0;
    }
    return bel__refusal(why, "BADARG",
                        "%s: '%.*s' is not one of scheduled, ready, leased, blocked, "
                        "done, dead, cancelled, expired, skipped",
                        argument->name, shown(value->text), (const char *)value->text.data);
}

/* Returns the options for parsing times. GAP and FOLD must have been parsed before. */
static struct bel_instant_options options_of(const struct bel_bound *bound,
                                             const struct bel_words *words)
{
    struct bel_instant_options options = {.zones = words->zones};
    if (bound->entry != &bel__commands[BEL_COMMAND_SCHEDULE]) return options;
    options.gap = (enum bel_gap)bound->values[BEL_SCHEDULE_GAP].number;
    options.fold = (enum bel_fold)bound->values[BEL_SCHEDULE_FOLD].number;
    return options;
}

static int read_value(const struct bel_argument *argument, struct bel_bound_value *value,
                      struct bel_why *why)
{
    switch (argument->type) {
    case BEL_ARGUMENT_NUMBER:
        return read_number(argument, value, why);
    case BEL_ARGUMENT_DURATION:
        return read_duration(argument, value, why);
    case BEL_ARGUMENT_WORD:
        return read_word(argument, value, why);
    case BEL_ARGUMENT_STATE:
        return read_state(argument, value, why);
    default:
        return 0;
    }
}

static int read_times(struct bel_bound *bound, uint32_t places, const struct bel_words *words,
                      struct bel_why *why)
{
    struct bel_instant_options options = options_of(bound, words);
    int err = 0;
    while (places != 0 && err == 0) {
        size_t place = bel__place_take(&places);
        err = read_time(&bound->entry->arguments[place], &bound->values[place], &options, why);
    }
    return err;
}

static int read_all(struct bel_bound *bound, const struct bel_words *words, struct bel_why *why)
{
    uint32_t times = 0;
    for (uint32_t places = bound->there; places != 0;) {
        size_t place = bel__place_take(&places);
        const struct bel_argument *argument = &bound->entry->arguments[place];
        if (argument->type == BEL_ARGUMENT_TIME) times |= UINT32_C(1) << place;
        int err = read_value(argument, &bound->values[place], why);
        if (err) return err;
    }
    return times == 0 ? 0 : read_times(bound, times, words, why);
}

int bel__bind(const struct bel_command_entry *entry, const struct bel_words *words,
              struct bel_bound *out, struct bel_why *why)
{
    assert(words->count > 0);
    out->entry = entry;
    out->there = 0;
    out->repeated = NULL;
    out->repeated_count = 0;
    out->pairs = words->pairs;
    out->pairs_count = 0;
    memset(out->values, 0, entry->arguments_count * sizeof out->values[0]);
    int err = take_all(out, words, why);
    return err ? err : read_all(out, words, why);
}
