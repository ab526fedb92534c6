/* SPDX-License-Identifier: MIT */

/*
 * Converts a JSON line to SCHEDULE. Fields are the options of SCHEDULE from the table of commands,
 * the fields of GET that correspond to an option (due_ms), and the fields of GET that only report
 * (attempts), which are ignored. Any other field is an error, so that a typo is not dropped.
 */
#include "cli/import.h"

#include "belfry/instant.h"
#include "belfry/timer.h"
#include "cli/duration.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/fields.h"
#include "core/base64.h"
#include "core/parse.h"
#include "core/shorten.h"
#include "core/siphash.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BASE64_END "_base64"

enum {
    COUNT_MAX = 1 << 30, /* above the limit of any rule */
};

/* --- shared with crontab.c --- */

void bel__import_add(struct import_command *command, struct bel_view word)
{
    assert(command->count < IMPORT_ARGS_MAX);
    command->args[command->count++] = word;
}

struct bel_view bel__import_id(struct import_command *command, const char *prefix, uint64_t number,
                               struct bel_view text)
{
    static const struct bel_siphash_key key = {"belfry import id"};
    uint64_t hash = bel__siphash(key, text.data, text.bytes);
    int bytes = number > 0 ? snprintf(command->id, sizeof command->id, "%s-%llu-%016llx", prefix,
                                      (unsigned long long)number, (unsigned long long)hash)
                           : snprintf(command->id, sizeof command->id, "%s-%016llx", prefix,
                                      (unsigned long long)hash);
    return (struct bel_view){command->id, (size_t)bytes};
}

enum import_verdict bel__import_refuse(struct import_command *command, enum import_verdict verdict,
                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)bel__why_vsay(&command->problem, BEL_EINVAL, format, args);
    va_end(args);
    return verdict;
}

void bel__import_clear(struct import_command *command)
{
    if (command->root != NULL) json_decref(command->root);
    command->root = NULL;
    for (size_t i = 0; i < command->made_count; i++) {
        free(command->made[i]);
    }
    command->made_count = command->texts_count = command->count = 0;
}

/* --- values --- */

/* Decodes base64 into memory that the command owns. Returns false if it is not valid base64. */
static bool decode(struct import_command *command, const char *text, size_t bytes,
                   struct bel_view *out)
{
    size_t room = sizeof command->made / sizeof command->made[0];
    if (command->made_count == room) return false;
    char *data = malloc(bytes + 1);
    if (data == NULL) return false;
    command->made[command->made_count++] = data;
    *out = (struct bel_view){.data = data};
    if (!bel__base64_decode((struct bel_view){text, bytes}, data, &out->bytes)) return false;
    data[out->bytes] = '\0';
    return true;
}

/* Converts a string or an integer to an argument. Returns false for any other value. */
static bool word_of(struct import_command *command, const json_t *value, struct bel_view *out)
{
    if (json_is_string(value)) {
        *out = (struct bel_view){json_string_value(value), json_string_length(value)};
        return true;
    }
    if (!json_is_integer(value) || command->texts_count == IMPORT_TEXTS_MAX) return false;
    char *text = command->texts[command->texts_count++];
    *out = (struct bel_view){text, bel__print_i64(text, json_integer_value(value))};
    text[out->bytes] = '\0';
    return true;
}

/* Converts a payload to an argument: a string to its text, any other value to JSON. */
static bool payload_of(struct import_command *command, const json_t *value, struct bel_view *out)
{
    size_t room = sizeof command->made / sizeof command->made[0];
    if (json_is_string(value)) return word_of(command, value, out);
    if (command->made_count == room) return false;
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL) return false;
    bel__shorten_numbers(text);
    command->made[command->made_count++] = text;
    *out = (struct bel_view){text, strlen(text)};
    return true;
}

/* --- names --- */

static const struct bel_command_entry *schedule(void)
{
    return &bel__commands[BEL_COMMAND_SCHEDULE];
}

static const struct bel_field *field_of(const char *name)
{
    return bel__field_find(BEL_SHOWN_TIMER, (struct bel_view){name, strlen(name)});
}

/* Returns the option of SCHEDULE that a field corresponds to; NULL if there is none. The field has
 * the name that replies show, or the name of the option in small letters. */
static const char *option_of(const char *name)
{
    const struct bel_field *field = field_of(name);
    if (field != NULL && field->is_argument) return schedule()->arguments[field->argument].name;
    for (size_t i = 0; i < schedule()->arguments_count; i++) {
        const char *option = schedule()->arguments[i].name;
        bool is_option = option[0] >= 'A' && option[0] <= 'Z' && strcmp(option, "HEADER") != 0;
        if (is_option && name[0] >= 'a' && strcasecmp(option, name) == 0) return option;
    }
    return NULL;
}

/* Returns whether a field is not an option: it is handled elsewhere, or only reports. */
static bool is_no_option(const char *name)
{
    static const char *const elsewhere[] = {"id",      "topic",    "payload",
                                            "headers", "conflict", "count"};
    const struct bel_field *field = field_of(name);
    for (unsigned i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (strcmp(elsewhere[i], name) == 0) return true;
    }
    return field != NULL && !field->is_argument;
}

/* --- a line --- */

static bool has_ended(const json_t *root)
{
    const json_t *value = json_object_get(root, "state");
    struct bel_view name = {json_string_value(value), json_string_length(value)};
    enum bel_state state;
    return name.data != NULL && bel_state_find(name, &state) && state >= BEL_DONE;
}

/* Returns the id of a line. An occurrence of a plan becomes a plain timer: its @, which only ids
 * made by plans may have, is replaced by a colon. */
static struct bel_view id_of(struct import_command *command, struct bel_view line, uint64_t number)
{
    const json_t *value = json_object_get(command->root, "id");
    struct bel_view id;
    if (value == NULL || !word_of(command, value, &id)) {
        return bel__import_id(command, "import", number, line);
    }
    if (id.bytes >= sizeof command->id || memchr(id.data, '@', id.bytes) == NULL) return id;
    memcpy(command->id, id.data, id.bytes);
    *(char *)memchr(command->id, '@', id.bytes) = ':';
    return (struct bel_view){command->id, id.bytes};
}

/* Reduces the COUNT of a recurrence rule by the times already made, skipped and missed, to at least
 * 1, since the plan is unfinished. Returns false if out of memory. */
static bool count_down(struct import_command *command, struct bel_view *rule)
{
    static const char *const uses[] = {"made", "skipped", "missed"};
    size_t room = sizeof command->made / sizeof command->made[0];
    const char *part = strcasestr(rule->data, "COUNT=");
    char *end, *text;
    json_int_t used = 0;
    for (unsigned i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        json_int_t times = json_integer_value(json_object_get(command->root, uses[i]));
        if (times > 0 && times <= COUNT_MAX) used += times;
    }
    if (part == NULL || used == 0) return true;
    const char *digits = part + strlen("COUNT=");
    unsigned long long count = strtoull(digits, &end, 10);
    if (end == digits || count > COUNT_MAX) return true; /* the server reports the error */
    if (command->made_count == room) return false;
    int bytes = asprintf(&text, "%.*s%lld%s", (int)(digits - (const char *)rule->data),
                         (const char *)rule->data,
                         (long long)count > used ? (long long)count - used : 1, end);
    if (bytes < 0) return false;
    command->made[command->made_count++] = text;
    *rule = (struct bel_view){text, (size_t)bytes};
    return true;
}

/* Returns whether a server has exported the line: people do not write when a timer was created. */
static bool is_exported(const struct import_command *command)
{
    return json_object_get(command->root, "created_ms") != NULL;
}

/* Checks that a duration that a person has written has a unit, and rewrites units in words. Fields
 * that end with _ms have their unit in the name. */
static enum import_verdict check_unit(struct import_command *command, const char *field,
                                      const char *option, struct bel_view *word)
{
    char text[CLI_DURATION_BYTES];
    const struct bel_argument *argument = schedule()->arguments;
    const char *end = strrchr(field, '_');
    struct bel_text_error why;
    uint64_t ms;
    int err = 0;
    if (is_exported(command) || (end != NULL && strcmp(end, "_ms") == 0)) return IMPORT_GOOD;
    while (strcmp(argument->name, option) != 0) {
        argument++;
    }
    if (memchr(word->data, '\0', word->bytes) != NULL) return IMPORT_GOOD; /* for the server */
    if (argument->type == BEL_ARGUMENT_DURATION) err = bel__cli_duration(word->data, &ms, &why);
    if (argument->type == BEL_ARGUMENT_POLICY) err = bel__cli_policy(word->data, &why);
    if (err) {
        return bel__import_refuse(command, IMPORT_BAD, "%s '%.60s': expected %s", field,
                                  (const char *)word->data, why.expected);
    }
    if (argument->type != BEL_ARGUMENT_DURATION) return IMPORT_GOOD;
    if (!bel__cli_duration_rewrite(word->data, text)) return IMPORT_GOOD;
    size_t room = sizeof command->made / sizeof command->made[0];
    char *made = command->made_count < room ? strdup(text) : NULL;
    if (made == NULL) return bel__import_refuse(command, IMPORT_BAD, "out of memory");
    command->made[command->made_count++] = made;
    *word = (struct bel_view){made, strlen(made)};
    return IMPORT_GOOD;
}

/* Rewrites values that a server exports but SCHEDULE refuses because people mistype them: a retry
 * policy that is only a number, and a time soon after 1970 in milliseconds. Returns false if out of
 * memory. */
static bool make_clear(struct import_command *command, const char *field, const char *option,
                       struct bel_view *word)
{
    size_t room = sizeof command->made / sizeof command->made[0], bytes = strlen(field);
    char instant[BEL_INSTANT_BYTES], *text;
    uint64_t number;
    bool is_ms = bytes > 3 && strcmp(field + bytes - 3, "_ms") == 0;
    bool is_retry = strcmp(option, "RETRY") == 0;
    bool is_time = is_ms && (strcmp(option, "AT") == 0 || strcmp(option, "UNTIL") == 0);
    if (!is_retry && !is_time) return true;
    if (bel__parse_u64(word->data, word->bytes, 0, INT64_MAX, &number) != 0) return true;
    if (is_time && bel_instant_print((struct bel_wall){(int64_t)number}, instant, sizeof instant) >=
                       sizeof instant) {
        return true; /* after the year 9999: the server reports the error */
    }
    if (command->made_count == room) return false;
    int length =
        is_retry ? asprintf(&text, "%" PRIu64 "ms", number) : asprintf(&text, "%s", instant);
    if (length < 0) return false;
    command->made[command->made_count++] = text;
    *word = (struct bel_view){text, (size_t)length};
    return true;
}

static enum import_verdict add_field(struct import_command *command, const char *field,
                                     const json_t *value)
{
    char name[IMPORT_TEXT_BYTES];
    struct bel_view word = {0};
    size_t bytes = strlen(field), end = strlen(BASE64_END);
    bool is_base64 = bytes > end && strcmp(field + bytes - end, BASE64_END) == 0;
    (void)snprintf(name, sizeof name, "%.*s", (int)(is_base64 ? bytes - end : bytes), field);
    bool is_skipped = strcmp(name, "payload") == 0 || is_no_option(name) || json_is_null(value);
    if (is_skipped) return IMPORT_GOOD;
    const char *option = option_of(name);
    if (option == NULL) {
        return bel__import_refuse(command, IMPORT_BAD, "unknown field '%.60s'", field);
    }
    bool is_read = is_base64 ? json_is_string(value) && decode(command, json_string_value(value),
                                                               json_string_length(value), &word)
                             : word_of(command, value, &word);
    if (!is_read) {
        return bel__import_refuse(command, IMPORT_BAD, "%s: expected %s", name,
                                  is_base64 ? "base64" : "a string or an integer");
    }
    if (strcmp(option, "RRULE") == 0 && !count_down(command, &word)) {
        return bel__import_refuse(command, IMPORT_BAD, "rrule: out of memory");
    }
    if (check_unit(command, name, option, &word) != IMPORT_GOOD) return IMPORT_BAD;
    if (!make_clear(command, name, option, &word)) {
        return bel__import_refuse(command, IMPORT_BAD, "%s: out of memory", name);
    }
    bel__import_add(command, (struct bel_view){option, strlen(option)});
    bel__import_add(command, word);
    return IMPORT_GOOD;
}

/* Adds the COUNT of a plan, less the times it has counted. Exports of earlier versions, which
 * counted the occurrences that were made, do not have `used`. */
static enum import_verdict add_count(struct import_command *command)
{
    const json_t *value = json_object_get(command->root, "count");
    const json_t *counted = json_object_get(command->root, "used");
    if (counted == NULL) counted = json_object_get(command->root, "made");
    json_int_t used = json_integer_value(counted);
    struct bel_view word;
    if (value == NULL) return IMPORT_GOOD;
    if (!word_of(command, value, &word)) {
        return bel__import_refuse(command, IMPORT_BAD, "count: expected an integer");
    }
    if (json_is_integer(value) && used > 0) {
        json_int_t left = json_integer_value(value) - used;
        if (left <= 0) return bel__import_refuse(command, IMPORT_LEFT_OUT, "the plan is finished");
        char *text = command->texts[command->texts_count - 1];
        word = (struct bel_view){text, bel__print_i64(text, left)};
    }
    bel__import_add(command, BEL_VIEW("COUNT"));
    bel__import_add(command, word);
    return IMPORT_GOOD;
}

/* Adds a header. A name with several values has an array of strings. */
static bool add_header(struct import_command *command, const char *name, const json_t *value,
                       size_t *headers)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(text) || ++*headers > IMPORT_HEADERS_MAX) return false;
        bel__import_add(command, BEL_VIEW("HEADER"));
        bel__import_add(command, (struct bel_view){name, strlen(name)});
        bel__import_add(command,
                        (struct bel_view){json_string_value(text), json_string_length(text)});
    }
    return count > 0;
}

/* Adds content-type: application/json for a JSON payload, unless the headers have a
 * content-type. */
static void add_content_type(struct import_command *command, const json_t *headers)
{
    const json_t *payload = json_object_get(command->root, "payload");
    bool is_base64 = json_object_get(command->root, "payload" BASE64_END) != NULL;
    if (payload == NULL || json_is_string(payload) || is_base64) return;
    if (json_object_get(headers, "content-type") != NULL) return;
    bel__import_add(command, BEL_VIEW("HEADER"));
    bel__import_add(command, BEL_VIEW("content-type"));
    bel__import_add(command, BEL_VIEW("application/json"));
}

static enum import_verdict add_headers(struct import_command *command)
{
    json_t *headers = json_object_get(command->root, "headers"), *value;
    const char *name;
    size_t count = 0;
    bool is_reserved = false;
    add_content_type(command, headers);
    if (headers == NULL) return IMPORT_GOOD;
    if (!json_is_object(headers)) {
        return bel__import_refuse(command, IMPORT_BAD, "headers: expected an object of up to %d",
                                  IMPORT_HEADERS_MAX);
    }
    json_object_foreach(headers, name, value)
    {
        if (strcasecmp(name, "belfry-job") == 0) {
            return bel__import_refuse(command, IMPORT_BAD,
                                      "a task of a job: its dependencies are not in the line; "
                                      "submit the job, or restore a backup");
        }
        is_reserved |= strncasecmp(name, "belfry-", strlen("belfry-")) == 0;
        if (add_header(command, name, value, &count)) continue;
        return bel__import_refuse(command, IMPORT_BAD,
                                  "header %.60s: expected a string, and up to %d headers", name,
                                  IMPORT_HEADERS_MAX);
    }
    if (is_reserved) bel__import_add(command, BEL_VIEW("IMPORTED"));
    return IMPORT_GOOD;
}

/* Adds SCHEDULE, the topic and the payload. */
static enum import_verdict add_beginning(struct import_command *command,
                                         const struct import_rules *rules)
{
    const json_t *topic = json_object_get(command->root, "topic");
    const json_t *payload = json_object_get(command->root, "payload");
    const json_t *base64 = json_object_get(command->root, "payload" BASE64_END);
    struct bel_view word = {"", 0};
    bel__import_add(command, BEL_VIEW("SCHEDULE"));
    if (rules->topic != NULL) {
        bel__import_add(command, (struct bel_view){rules->topic, strlen(rules->topic)});
    } else if (json_is_string(topic)) {
        bel__import_add(command,
                        (struct bel_view){json_string_value(topic), json_string_length(topic)});
    } else {
        return bel__import_refuse(command, IMPORT_BAD, "no topic: add a field topic, or --topic");
    }
    if (base64 != NULL && (!json_is_string(base64) || !decode(command, json_string_value(base64),
                                                              json_string_length(base64), &word))) {
        return bel__import_refuse(command, IMPORT_BAD, "payload" BASE64_END ": expected base64");
    }
    if (base64 == NULL && payload != NULL && !payload_of(command, payload, &word)) {
        return bel__import_refuse(command, IMPORT_BAD, "payload: out of memory");
    }
    bel__import_add(command, word);
    return IMPORT_GOOD;
}

static enum import_verdict add_all(struct import_command *command, struct bel_view line,
                                   uint64_t number, const struct import_rules *rules)
{
    const char *field;
    json_t *value;
    enum import_verdict verdict = add_beginning(command, rules);
    if (verdict != IMPORT_GOOD) return verdict;
    bel__import_add(command, BEL_VIEW("ID"));
    bel__import_add(command, id_of(command, line, number));
    json_object_foreach(command->root, field, value)
    {
        verdict = add_field(command, field, value);
        if (verdict != IMPORT_GOOD) return verdict;
    }
    verdict = add_count(command);
    if (verdict == IMPORT_GOOD) verdict = add_headers(command);
    bel__import_add(command, BEL_VIEW("CONFLICT"));
    bel__import_add(command, (struct bel_view){rules->conflict, strlen(rules->conflict)});
    return verdict;
}

enum import_verdict bel__import_json(struct import_command *command, struct bel_view line,
                                     uint64_t number, const struct import_rules *rules)
{
    json_error_t why;
    const char *text = line.data;
    if (strspn(text, " \t\r") == line.bytes) return IMPORT_BLANK;
    command->root = json_loadb(text, line.bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (command->root == NULL && strchr("*@#0123456789", *text) != NULL) {
        return bel__import_refuse(command, IMPORT_BAD,
                                  "not JSON; a crontab needs --crontab FILE --topic NAME");
    }
    if (command->root == NULL) {
        return bel__import_refuse(command, IMPORT_BAD, "not JSON, at column %d: %.120s", why.column,
                                  why.text);
    }
    if (!json_is_object(command->root)) {
        return bel__import_refuse(command, IMPORT_BAD, "expected an object");
    }
    if (has_ended(command->root)) {
        return bel__import_refuse(command, IMPORT_LEFT_OUT, "the timer is %s",
                                  json_string_value(json_object_get(command->root, "state")));
    }
    return add_all(command, line, number, rules);
}
