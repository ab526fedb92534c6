/* SPDX-License-Identifier: MIT */

/*
 * Compares a SCHEDULE command with the reply to GET, field by field, by the table of fields. Values
 * are compared by their meaning: 60s and 60000 are one interval. An option that the command does
 * not have is compared by its default.
 */
#include "cli/import.h"

#include "belfry/backoff.h"
#include "belfry/duration.h"
#include "belfry/instant.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/fields.h"
#include "core/parse.h"
#include "core/view.h"

#include <string.h>
#include <strings.h>

enum {
    PRIORITY_DEFAULT = 128,
};

static const struct bel_argument *argument_of(const struct bel_field *field)
{
    return &bel__commands[BEL_COMMAND_SCHEDULE].arguments[field->argument];
}

/* Returns the place after an option and its values. */
static size_t skip_option(const struct import_command *command, size_t place)
{
    if (bel__view_equal(command->args[place], BEL_VIEW("HEADER"))) return place + 3;
    if (bel__view_equal(command->args[place], BEL_VIEW("IMPORTED"))) return place + 1;
    return place + 2;
}

/* Finds the value of an option. Returns NULL if the command does not have it. */
static const struct bel_view *find_option(const struct import_command *command, const char *name)
{
    const struct bel_view wanted = {name, strlen(name)};
    for (size_t i = IMPORT_OPTIONS; i + 1 < command->count; i = skip_option(command, i)) {
        if (bel__view_equal(command->args[i], wanted)) return &command->args[i + 1];
    }
    return NULL;
}

static bool is_text(const struct bel_value *value, struct bel_view text)
{
    struct bel_view other = value != NULL ? value->text : (struct bel_view){NULL, 0};
    return bel__view_equal(other, text);
}

/* --- by type --- */

static bool is_duration(struct bel_view text, uint64_t ms)
{
    uint64_t read = 0;
    return bel_duration_parse(text.data, text.bytes, &read, NULL) == 0 && read == ms;
}

static bool is_same_number(const struct bel_view *wanted, const struct bel_value *got,
                           uint64_t otherwise)
{
    uint64_t number = otherwise, shown = got != NULL ? (uint64_t)got->number : otherwise;
    if (wanted != NULL &&
        bel__parse_u64(wanted->data, wanted->bytes, 0, UINT64_MAX, &number) != 0) {
        return false;
    }
    return number == shown;
}

static bool is_same_time(const struct bel_view *wanted, const struct bel_value *got,
                         struct bel_zones *zones)
{
    struct bel_instant_options options = {.zones = zones};
    struct bel_wall time;
    if (wanted == NULL || got == NULL) return wanted == NULL && got == NULL;
    int err = bel_instant_parse(wanted->data, wanted->bytes, &options, &time, NULL);
    return err == 0 && time.ms == got->number;
}

/* Compares words. The default is the first of the words; only plans show theirs. */
static bool is_same_word(const struct bel_argument *argument, const struct bel_view *wanted,
                         const struct bel_value *got)
{
    const char *word = wanted != NULL ? wanted->data : argument->words[0];
    size_t bytes = wanted != NULL ? wanted->bytes : strlen(word);
    if (got == NULL) return wanted == NULL;
    return got->text.bytes == bytes && strncasecmp(got->text.data, word, bytes) == 0;
}

static bool is_same_policy(struct bel_view one, struct bel_view other)
{
    char texts[2][BEL_BACKOFF_BYTES];
    const struct bel_view views[] = {one, other};
    for (unsigned i = 0; i < 2; i++) {
        struct bel_backoff policy;
        if (bel_backoff_parse(views[i].data, views[i].bytes, &policy, NULL) != 0) return false;
        (void)bel_backoff_print(&policy, texts[i], sizeof texts[i]);
    }
    return strcmp(texts[0], texts[1]) == 0;
}

static bool is_same_text(const struct bel_field *field, const struct bel_view *wanted,
                         const struct bel_value *got)
{
    struct bel_view text = wanted != NULL ? *wanted : (struct bel_view){NULL, 0};
    uint64_t ms;
    if (is_text(got, text)) return true;
    if (field->argument == BEL_SCHEDULE_TZ) {
        return got == NULL && bel__view_equal(text, BEL_VIEW("UTC"));
    }
    if (wanted == NULL || got == NULL) return false;
    if (field->argument == BEL_SCHEDULE_RETRY) return is_same_policy(text, got->text);
    if (field->argument != BEL_SCHEDULE_EVERY) return false;
    return bel_duration_parse(got->text.data, got->text.bytes, &ms, NULL) == 0 &&
           is_duration(text, ms);
}

/* --- a timer --- */

static bool has_same_headers(const struct import_command *command, const struct bel_value *timer)
{
    const struct bel_value *headers = bel_value_find(timer, "headers");
    size_t at = 0, count = headers != NULL ? headers->count : 0;
    for (size_t i = IMPORT_OPTIONS; i < command->count; i = skip_option(command, i)) {
        if (!bel__view_equal(command->args[i], BEL_VIEW("HEADER"))) continue;
        if (at + 2 > count) return false;
        if (!is_text(&headers->items[at], command->args[i + 1])) return false;
        if (!is_text(&headers->items[at + 1], command->args[i + 2])) return false;
        at += 2;
    }
    return at == count;
}

static bool has_same_field(const struct import_command *command, const struct bel_value *timer,
                           const struct bel_field *field, struct bel_zones *zones)
{
    const struct bel_argument *argument = argument_of(field);
    const struct bel_view *wanted = find_option(command, argument->name);
    const struct bel_value *got = bel_value_find(timer, field->name.data);
    switch (field->type) {
    case BEL_FIELD_SMALL:
        return is_same_number(wanted, got, PRIORITY_DEFAULT);
    case BEL_FIELD_COUNT:
        return is_same_number(wanted, got, 0);
    case BEL_FIELD_DURATION:
        if (wanted == NULL) return got == NULL || got->number == 0;
        return is_duration(*wanted, got != NULL ? (uint64_t)got->number : 0);
    case BEL_FIELD_INSTANT:
        return is_same_time(wanted, got, zones);
    case BEL_FIELD_WORD:
        return is_same_word(argument, wanted, got);
    default:
        return is_same_text(field, wanted, got);
    }
}

bool bel__import_is_same(const struct import_command *command, const struct bel_value *timer,
                         struct bel_zones *zones)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TIMER];
    bool is_plan = bel_value_find(timer, "every") != NULL ||
                   bel_value_find(timer, "cron") != NULL || bel_value_find(timer, "rrule") != NULL;
    if (!is_text(bel_value_find(timer, "payload"), command->args[IMPORT_PAYLOAD])) return false;
    if (!has_same_headers(command, timer)) return false;
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (!field->is_argument || field->argument == BEL_SCHEDULE_TOPIC) continue;
        if (field->argument == BEL_SCHEDULE_PAYLOAD || field->argument == BEL_SCHEDULE_ID) continue;
        if (field->argument == BEL_SCHEDULE_HEADER) continue;
        bool passes = is_plan || find_option(command, "AT") == NULL;
        if (field->argument == BEL_SCHEDULE_AT && passes) continue;
        if (!has_same_field(command, timer, field, zones)) return false;
    }
    return true;
}
