/* SPDX-License-Identifier: MIT */

/*
 * Converts a line of a crontab to a plan: the rule, and the command as the payload, so that
 *
 *     belfry work TOPIC -- sh
 *
 * runs it. The id is a hash of the rule and the command, so that importing a line again finds its
 * plan. A line CRON_TZ= or TZ= sets the time zone of the lines below it; before a rule it sets that
 * of the rule alone. A system crontab has a user before each command, which is left out. Other
 * variables and @reboot are left out. As in cron, \% in a command is a %. A line with a bare % is
 * bad: the text after it would be the standard input of the command, for which a payload has no
 * field.
 */
#include "cli/import.h"
#include "cli/program.h"

#include "belfry/cron.h"
#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIELDS = 5,
    NAME_BYTES = 64, /* more than a user or a program has */
    ACCOUNT_BYTES = 4096,
};

/* Returns the length of the word at the start of a text. */
static size_t word_bytes(const char *text)
{
    return strcspn(text, " \t");
}

/* Handles NAME=VALUE, quoted or not: sets the time zone, or leaves the line out. If a rule follows
 * the time zone, sets that of the command alone, and `*out_rule` to the rule. */
static enum import_verdict take_variable(struct import_command *command, const char *text,
                                         const char *equals, struct import_rules *rules,
                                         const char **out_rule)
{
    size_t name_bytes =
        word_bytes(text) < (size_t)(equals - text) ? word_bytes(text) : (size_t)(equals - text);
    bool is_zone = (name_bytes == 7 && memcmp(text, "CRON_TZ", 7) == 0) ||
                   (name_bytes == 2 && memcmp(text, "TZ", 2) == 0);
    const char *value = equals + 1 + strspn(equals + 1, " \t\"'");
    size_t bytes = strcspn(value, " \t\"'\r");
    if (!is_zone) {
        return bel__import_refuse(command, IMPORT_LEFT_OUT, "variables are not imported: %.*s",
                                  (int)(name_bytes < 60 ? name_bytes : 60), text);
    }
    if (bytes == 0 || bytes >= sizeof rules->zone) {
        return bel__import_refuse(command, IMPORT_BAD, "expected the name of a time zone");
    }
    const char *rest = value + bytes + strspn(value + bytes, " \t\"'\r");
    char *zone = *rest == '\0' || *rest == '#' ? rules->zone : command->zone;
    memcpy(zone, value, bytes);
    zone[bytes] = '\0';
    if (zone == rules->zone) return IMPORT_BLANK;
    *out_rule = rest;
    return IMPORT_GOOD;
}

/* Finds the '=' of NAME=VALUE. Returns NULL if the line is not a variable. */
static const char *find_equals(const char *text)
{
    const char *at = text;
    if (!isalpha((unsigned char)*at) && *at != '_') return NULL;
    while (isalnum((unsigned char)*at) || *at == '_') {
        at++;
    }
    at += strspn(at, " \t");
    return *at == '=' ? at : NULL;
}

/* Returns the length of the rule at the start of a line; 0 if no command follows it. */
static size_t rule_bytes(const char *text)
{
    unsigned fields = text[0] == '@' ? 1 : FIELDS;
    size_t bytes = 0;
    for (unsigned i = 0; i < fields; i++) {
        if (i > 0) bytes += strspn(text + bytes, " \t");
        size_t word = word_bytes(text + bytes);
        if (word == 0) return 0;
        bytes += word;
    }
    const char *rest = text + bytes;
    return rest[strspn(rest, " \t\r")] != '\0' ? bytes : 0;
}

/* Copies the command, with \% as %, which is how cron would run it. */
static enum import_verdict read_body(struct import_command *command, struct bel_view text,
                                     struct bel_view *out)
{
    const char *from = text.data;
    char *body = malloc(text.bytes + 1);
    size_t bytes = 0;
    bool is_escaped = false;
    if (body == NULL) return bel__import_refuse(command, IMPORT_BAD, "out of memory");
    command->made[command->made_count++] = body;
    for (size_t i = 0; i < text.bytes; i++) {
        if (from[i] == '%' && !is_escaped) {
            return bel__import_refuse(
                command, IMPORT_BAD,
                "a bare %% starts the standard input of the command, which is not imported; "
                "write \\%% for a percent sign");
        }
        if (from[i] == '%') bytes--; /* overwrite the backslash */
        body[bytes++] = from[i];
        is_escaped = from[i] == '\\' && !is_escaped;
    }
    *out = (struct bel_view){body, bytes};
    return IMPORT_GOOD;
}

/* Copies a word that may be a name. Returns false if the word is too long for one. */
static bool copy_name(char name[NAME_BYTES], const char *word, size_t bytes)
{
    if (bytes == 0 || bytes >= NAME_BYTES) return false;
    memcpy(name, word, bytes);
    name[bytes] = '\0';
    return true;
}

/* Returns whether a word is the name of a user of this machine. */
static bool is_user(const char *word, size_t bytes)
{
    char name[NAME_BYTES], room[ACCOUNT_BYTES];
    struct passwd account, *found = NULL;
    if (!copy_name(name, word, bytes)) return false;
    return getpwnam_r(name, &account, room, sizeof room, &found) == 0 && found != NULL;
}

/* Returns whether a word is the name of a program. */
static bool is_program(const char *word, size_t bytes)
{
    char name[NAME_BYTES], path[CLI_PROGRAM_BYTES];
    return copy_name(name, word, bytes) && bel__program_find(name, path);
}

/* Warns if the command begins with the name of a user, which no program has: the line is that of a
 * system crontab then. */
static void warn_of_user(struct import_command *command, const char *word, size_t bytes)
{
    if (!is_user(word, bytes) || is_program(word, bytes)) return;
    (void)bel__import_refuse(
        command, IMPORT_GOOD,
        "'%.*s' is a user here, and no program: a system crontab needs --system", (int)bytes, word);
}

/* Returns whether a rule goes on in the command: it has six fields, with seconds in front. The
 * user of a system crontab may be called as a weekday is. */
static bool is_longer(const char *text, size_t rule, const char *payload, size_t word,
                      bool has_users)
{
    struct bel_cron cron;
    size_t whole = (size_t)(payload - text) + word;
    if (text[0] == '@' || word == 0 || word >= NAME_BYTES || rule > whole) return false;
    if (bel_cron_parse(text, whole, 0, &cron, NULL) != 0) return false;
    return has_users ? !is_user(payload, word) : !is_program(payload, word);
}

/* Converts a rule and its command. */
static enum import_verdict read_plan(struct import_command *command, const char *text,
                                     const struct import_rules *rules)
{
    if (strncmp(text, "@reboot", 7) == 0) {
        return bel__import_refuse(command, IMPORT_LEFT_OUT, "@reboot has no time");
    }
    size_t rule = rule_bytes(text);
    if (rule == 0) {
        return bel__import_refuse(command, IMPORT_BAD, "expected five fields and a command");
    }
    if (command->zone[0] == '\0') {
        return bel__import_refuse(command, IMPORT_BAD,
                                  "no time zone: give --tz, or CRON_TZ= on a line above");
    }
    const char *payload = text + rule + strspn(text + rule, " \t");
    size_t user = word_bytes(payload);
    if (is_longer(text, rule, payload, user, rules->has_users)) {
        return bel__import_refuse(command, IMPORT_BAD,
                                  "'%.*s' looks like a sixth field: a line of a crontab has five, "
                                  "without seconds; schedule --cron takes six",
                                  (int)user, payload);
    }
    if (rules->has_users) {
        payload += user + strspn(payload + user, " \t");
    } else if (user == 4 && memcmp(payload, "root", 4) == 0) {
        return bel__import_refuse(command, IMPORT_BAD,
                                  "'root' is the user of a system crontab: give --system");
    } else {
        warn_of_user(command, payload, user);
    }
    if (*payload == '\0' || *payload == '\r') {
        return bel__import_refuse(command, IMPORT_BAD, "expected a user and a command");
    }
    struct bel_view written = {payload, strcspn(payload, "\r")}, body = written;
    struct bel_view whole = {text, (size_t)(payload - text) + written.bytes};
    enum import_verdict verdict = read_body(command, written, &body);
    if (verdict != IMPORT_GOOD) return verdict;
    const struct bel_view words[] = {BEL_VIEW("SCHEDULE"),
                                     {rules->topic, strlen(rules->topic)},
                                     body,
                                     BEL_VIEW("ID"),
                                     bel__import_id(command, "crontab", 0, whole),
                                     BEL_VIEW("CRON"),
                                     {text, rule},
                                     BEL_VIEW("TZ"),
                                     {command->zone, strlen(command->zone)},
                                     BEL_VIEW("CONFLICT"),
                                     {rules->conflict, strlen(rules->conflict)}};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        bel__import_add(command, words[i]);
    }
    return IMPORT_GOOD;
}

enum import_verdict bel__import_crontab(struct import_command *command, struct bel_view line,
                                        struct import_rules *rules)
{
    const char *text = line.data;
    text += strspn(text, " \t");
    if (*text == '\0' || *text == '#' || *text == '\r') return IMPORT_BLANK;
    memcpy(command->zone, rules->zone, sizeof command->zone);
    const char *equals = find_equals(text);
    if (equals != NULL) {
        enum import_verdict verdict = take_variable(command, text, equals, rules, &text);
        if (verdict != IMPORT_GOOD) return verdict;
    }
    return read_plan(command, text, rules);
}
