/* SPDX-License-Identifier: MIT */

/*
 * Words and options may be mixed on the command line. They are separated first, then written in the
 * order that the server expects: positional arguments, then options. "--" ends the options; the
 * payload "-" is read from standard input.
 */
#include "cli/request.h"

#include "belfry/backend.h"
#include "belfry/cron.h"
#include "cli/date_time.h"
#include "cli/local_time.h"
#include "cli/option_hint.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/relative_time.h"
#include "cli/rule_hint.h"
#include "cli/value.h"
#include "cli/zone_hint.h"
#include "commands/arguments.h"
#include "commands/settings.h"
#include "core/parse.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    ARGS_SPARE = 8,
    PAYLOAD_BYTES_MAX = 64 << 20,
    PAYLOAD_STEP = 64 << 10,
    HELP_COLUMN = 24,
    STATES_OF_LINE = 6,
    NAME_BYTES = 64,
    NEXT_MAX = 1000, /* as LIST has at most */
};

static bool is_option(const struct bel_argument *argument)
{
    return argument->name[0] >= 'A' && argument->name[0] <= 'Z';
}

static bool takes_payload(const struct bel_command_entry *command)
{
    return strcmp(command->name, "SCHEDULE") == 0;
}

/* Returns whether local times may be given, though the server takes no zone for them. */
static bool takes_zone(const struct bel_command_entry *command)
{
    bool has_time = false;
    for (size_t i = 0; i < command->arguments_count; i++) {
        if (command->arguments[i].type == BEL_ARGUMENT_ZONE) return false;
        has_time = has_time || command->arguments[i].type == BEL_ARGUMENT_TIME;
    }
    return has_time;
}

static bool lists(const struct bel_command_entry *command)
{
    return command == &bel__commands[BEL_COMMAND_LIST];
}

static bool shows_next(const struct bel_command_entry *command)
{
    return command == &bel__commands[BEL_COMMAND_AGENDA];
}

static bool may_create(const struct bel_command_entry *command)
{
    return command == &bel__commands[BEL_COMMAND_PAUSE] ||
           command == &bel__commands[BEL_COMMAND_CONFIGURE];
}

/* --- help --- */

/* The placeholder of a value in a help line, by the type of its argument. */
static const char *placeholder(const struct bel_argument *argument)
{
    switch (argument->type) {
    case BEL_ARGUMENT_DURATION:
        return "DURATION";
    case BEL_ARGUMENT_TIME:
        return "TIME";
    case BEL_ARGUMENT_NUMBER:
        return "N";
    case BEL_ARGUMENT_STATE:
        return "STATE";
    case BEL_ARGUMENT_RULE:
        return "RULE";
    case BEL_ARGUMENT_ZONE:
        return "ZONE";
    case BEL_ARGUMENT_POLICY:
        return "POLICY";
    case BEL_ARGUMENT_PAIR:
        return "NAME=VALUE";
    case BEL_ARGUMENT_ID:
        return "ID";
    case BEL_ARGUMENT_TOPIC:
        return "NAME";
    case BEL_ARGUMENT_WORD:
        return "WORD";
    default:
        return "TEXT";
    }
}

static int print_lower(const char *name)
{
    int printed = 0;
    for (; *name != '\0'; name++, printed++) {
        (void)putchar(*name >= 'A' && *name <= 'Z' ? *name + 'a' - 'A' : *name);
    }
    return printed;
}

static int print_upper(const char *name)
{
    int printed = 0;
    for (; *name != '\0'; name++, printed++) {
        (void)putchar(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
    }
    return printed;
}

/* Returns whether an option takes a state: PURGE refuses two. */
static bool takes_state(const struct bel_command_entry *command, unsigned state)
{
    bool is_purge = command == &bel__commands[BEL_COMMAND_PURGE];
    return !is_purge || (state != BEL_LEASED && state != BEL_BLOCKED);
}

/* Prints the states that an option takes. belfry list also has plan. */
static void help_states(const struct bel_command_entry *command)
{
    unsigned shown = 0;
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (!takes_state(command, i)) continue;
        printf(shown == 0 ? ":" : ",");
        if (shown % STATES_OF_LINE == 0) printf("\n%*s", HELP_COLUMN - 1, "");
        printf(" %s", bel_state_name((enum bel_state)i));
        shown++;
    }
    if (lists(command)) printf("; or plan: only plans");
}

static void help_argument(const struct bel_argument *argument,
                          const struct bel_command_entry *command)
{
    int used = 0;
    printf("    ");
    if (!is_option(argument)) {
        bool is_pair = argument->type == BEL_ARGUMENT_PAIR;
        used += is_pair ? printf("NAME=VALUE") : print_upper(argument->name);
    } else {
        used += printf("--");
        used += print_lower(argument->name);
        if (argument->type != BEL_ARGUMENT_FLAG) used += printf(" %s", placeholder(argument));
    }
    const char *help = argument->help;
    if (argument->type == BEL_ARGUMENT_ZONE) {
        help = "zone of the rule (default UTC) and of local times, e.g. Asia/Tokyo";
    }
    printf("%*s%s", used < HELP_COLUMN - 4 ? HELP_COLUMN - 4 - used : 1, "", help);
    if (argument->type == BEL_ARGUMENT_STATE) help_states(command);
    for (size_t i = 0; argument->words != NULL && argument->words[i] != NULL; i++) {
        if (i == 0) printf(":\n%*s", HELP_COLUMN, "");
        printf("%s%s", i > 0 ? ", " : "", argument->words[i]);
    }
    printf("\n");
}

void bel__request_help(const char *verb, const struct bel_command_entry *command,
                       const struct bel_command_entry *other)
{
    bool has_options = false;
    printf("usage: belfry %s", verb);
    for (size_t i = 0; i < command->arguments_count; i++) {
        const struct bel_argument *argument = &command->arguments[i];
        has_options = has_options || is_option(argument);
        if (is_option(argument)) continue;
        printf(argument->is_optional ? " [" : " ");
        if (argument->type == BEL_ARGUMENT_PAIR) {
            printf("NAME=VALUE");
        } else {
            (void)print_upper(argument->name);
        }
        printf("%s%s", argument->is_repeated ? " ..." : "", argument->is_optional ? "]" : "");
    }
    printf("%s: %s\n", has_options ? " [OPTION ...]" : "", command->help);
    for (size_t i = 0; i < command->arguments_count; i++) {
        help_argument(&command->arguments[i], command);
    }
    for (const struct bel_setting_entry *setting = bel__setting_entries;
         command == &bel__commands[BEL_COMMAND_CONFIGURE] && setting->name != NULL; setting++) {
        printf("      %-*s%s\n", HELP_COLUMN - 6, setting->name, setting->help);
    }
    if (command == &bel__commands[BEL_COMMAND_CONFIGURE]) {
        printf("      %-*s%s\n", HELP_COLUMN - 6, "partitions",
               "parts of a topic on Redis, 1 to 64 (default 1), while it is empty");
    }
    if (takes_payload(command)) {
        printf("    --file PATH         read the payload from a file; PAYLOAD - reads stdin\n");
    }
    if (shows_next(command)) {
        printf("    --next N            list only the N timers that are due next, over all "
               "topics,\n"
               "                        overdue ones first (a terminal and --json show 10 too)\n");
    }
    if (takes_zone(command)) {
        printf("    --tz ZONE           zone of local times, e.g. 18:00 or 'tomorrow 09:00' "
               "(default on\n"
               "                        a terminal: that of the machine)\n");
    }
    if (may_create(command)) {
        bool is_configure = command == &bel__commands[BEL_COMMAND_CONFIGURE];
        printf("    --create            create the topic if it does not exist%s\n",
               is_configure ? ", also if a\n                        similar one does" : "");
    }
    if (other != NULL) printf("or: belfry %s NAME: %s\n", verb, other->help);
    bool has_store = command != &bel__commands[BEL_COMMAND_BACKUP];
    fputs(has_store ? bel__connect_help : bel__connect_help_server, stdout);
}

/* --- reading --- */

static int complain(const struct cli_request *request, const char *what, const char *name)
{
    fprintf(stderr, "belfry %s: %s%s; see belfry help %s\n", request->verb, what, name,
            request->verb);
    return CLI_USAGE;
}

static void add(struct cli_request *request, const char *text, size_t bytes)
{
    request->args[request->args_count++] = (struct bel_view){text, bytes};
}

/* Adds "name=value" as two arguments. */
static int add_pair(struct cli_request *request, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        return complain(request, "expected NAME=VALUE, not ", text);
    }
    add(request, text, (size_t)(equals - text));
    add(request, equals + 1, strlen(equals + 1));
    return CLI_OK;
}

static const struct bel_argument *find_option(const struct bel_command_entry *command,
                                              const char *name)
{
    for (size_t i = 0; i < command->arguments_count; i++) {
        const struct bel_argument *argument = &command->arguments[i];
        if (!is_option(argument) || strcasecmp(argument->name, name) != 0) continue;
        return name[0] >= 'a' ? argument : NULL; /* options are in lower case */
    }
    return NULL;
}

/* Refuses the name of an option without its two dashes. */
static int suggest_dashes(const struct cli_request *request, const char *name)
{
    char option[NAME_BYTES];
    size_t bytes = 0;
    for (; bytes < sizeof option - 1 && name[bytes] != '\0'; bytes++) {
        bool is_upper = name[bytes] >= 'A' && name[bytes] <= 'Z';
        option[bytes] = (char)(is_upper ? name[bytes] | 0x20 : name[bytes]);
    }
    option[bytes] = '\0';
    return bel__options_complain(request->verb, "%s has two dashes: did you mean --%s?", option,
                                 option);
}

/* Finds an option or a positional argument by its exact name, which may be NULL. */
static const struct bel_argument *find_argument(const struct bel_command_entry *command,
                                                const char *name)
{
    for (size_t i = 0; i < command->arguments_count && name != NULL; i++) {
        if (strcmp(command->arguments[i].name, name) == 0) return &command->arguments[i];
    }
    return NULL;
}

/* Refuses an option whose value is a word without a name. */
static int refuse_for_word(const struct cli_request *request, const char *name, const char *word)
{
    fprintf(stderr,
            "belfry %s: unknown option --%s: the %s is a word without an option; see belfry "
            "help %s\n",
            request->verb, name, word, request->verb);
    return CLI_USAGE;
}

static int refuse_option(const struct cli_request *request, const char *name)
{
    const struct bel_command_entry *command = request->command;
    struct bel_similar similar;
    char lower[NAME_BYTES];
    bel__similar_begin(&similar, name);
    for (size_t i = 0; i < command->arguments_count; i++) {
        const char *option = command->arguments[i].name;
        if (is_option(&command->arguments[i])) bel__similar_offer(&similar, option, option);
    }
    if (takes_payload(command)) bel__similar_offer(&similar, "file", "file");
    const struct bel_argument *meant = find_argument(command, bel__option_synonym(name));
    if (meant != NULL && !is_option(meant)) return refuse_for_word(request, name, meant->name);
    if (meant != NULL) {
        similar.name = meant->name;
        similar.distance = 0;
    }
    if (takes_zone(command)) bel__similar_offer(&similar, "tz", "tz");
    if (shows_next(command)) bel__similar_offer(&similar, "next", "next");
    bel__connect_offer(&similar);
    if (similar.name == NULL) return bel__options_unknown(request->verb, name, NULL);
    size_t bytes = 0;
    for (; bytes < sizeof lower - 1 && similar.name[bytes] != '\0'; bytes++) {
        lower[bytes] = similar.name[bytes];
        if (lower[bytes] >= 'A' && lower[bytes] <= 'Z') lower[bytes] |= 0x20;
    }
    lower[bytes] = '\0';
    return bel__options_unknown(request->verb, name, lower);
}

/* The parsed command line: words, and options with their values, in the order given. */
struct typed {
    const char **words;
    size_t words_count;
    struct choice {
        const struct bel_argument *option;
        const char *value;
    } * choices;
    size_t choices_count;
    bool wants_help;
};

/* Parses an option that the server does not have. Sets `*has` to whether it is one, and
 * `*has_value` to whether it has a value. */
static int take_own(struct cli_request *request, const char *name, const char *value, bool *has,
                    bool *has_value)
{
    const struct bel_command_entry *command = request->command;
    *has = *has_value = true;
    if (takes_payload(command) && strcmp(name, "file") == 0) {
        request->file = value;
    } else if (takes_zone(command) && strcmp(name, "tz") == 0) {
        request->zone = value;
    } else if (may_create(command) && strcmp(name, "create") == 0) {
        request->creates = true;
        *has_value = false;
    } else if (shows_next(command) && strcmp(name, "next") == 0) {
        size_t bytes = value != NULL ? strlen(value) : 0;
        if (value == NULL || bel__parse_u64(value, bytes, 1, NEXT_MAX, &request->next) == 0) {
            return CLI_OK;
        }
        return complain(request, "--next: expected a number from 1 to 1000, not ", value);
    } else {
        *has = *has_value = false;
    }
    return CLI_OK;
}

/* Parses one option. Sets `*used` to whether its value was in the next argument. */
static int take_option(struct cli_request *request, struct typed *typed, const char *text,
                       const char *next, bool *used)
{
    char name[NAME_BYTES];
    const char *equals = strchr(text, '=');
    size_t bytes = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const char *value = equals != NULL ? equals + 1 : next;
    bool has = false, has_value = false;
    if (bytes >= sizeof name) return complain(request, "unknown option --", text);
    memcpy(name, text, bytes);
    name[bytes] = '\0';

    const struct bel_argument *option = find_option(request->command, name);
    if (option == NULL) {
        int status = bel__connect_option(&request->connect, name, value, &has, &has_value);
        if (status != CLI_OK) return status;
    }
    if (option == NULL && !has) {
        int status = take_own(request, name, value, &has, &has_value);
        if (status != CLI_OK) return status;
    }
    if (option == NULL && !has) return refuse_option(request, name);
    if (option != NULL) has_value = option->type != BEL_ARGUMENT_FLAG;
    if (has_value && value == NULL) return complain(request, "option needs a value: --", name);
    if (!has_value && equals != NULL) return complain(request, "option takes no value: --", name);
    *used = has_value && equals == NULL;
    if (option == NULL) return CLI_OK;
    typed->choices[typed->choices_count++] = (struct choice){option, value};
    if (strcmp(name, "count") == 0) request->count = value;
    if (strcmp(name, "wait") == 0) request->wait = value;
    return CLI_OK;
}

/* Refuses a word that begins with a minus: a payload or an id comes after "--". */
static int refuse_minus(const struct cli_request *request, const char *text)
{
    if (request->command->arguments_count == 0 || is_option(&request->command->arguments[0])) {
        return complain(request, "unknown option ", text);
    }
    return bel__options_complain(request->verb,
                                 "unknown option %s; a word that begins with a minus comes after "
                                 "--, as in belfry %s ... -- %s",
                                 text, request->verb, text);
}

static int sort_out(struct cli_request *request, struct typed *typed, int argc, char **argv)
{
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        bool used = false;
        if (only_words || text[0] != '-' || strcmp(text, "-") == 0) {
            typed->words[typed->words_count++] = text;
        } else if (strcmp(text, "--") == 0) {
            only_words = true;
        } else if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            typed->wants_help = true;
            return CLI_OK;
        } else if (text[1] != '-') {
            return find_option(request->command, text + 1) != NULL
                       ? suggest_dashes(request, text + 1)
                       : refuse_minus(request, text);
        } else {
            int status = take_option(request, typed, text + 2, argv[i + 1], &used);
            if (status != CLI_OK) return status;
            i += used;
        }
    }
    return CLI_OK;
}

/* --- the payload --- */

static int read_all(struct cli_request *request, FILE *file, const char *name, struct bel_view *out)
{
    size_t bytes = 0, room = 0;
    char *data = NULL;
    for (;;) {
        if (bytes == room) {
            room += room < PAYLOAD_STEP ? PAYLOAD_STEP : room;
            char *larger = room > PAYLOAD_BYTES_MAX * (size_t)2 ? NULL : realloc(data, room);
            if (larger == NULL) {
                fprintf(stderr, "belfry: %s is too large for a payload\n", name);
                free(data);
                return CLI_LIMIT;
            }
            data = larger;
        }
        size_t got = fread(data + bytes, 1, room - bytes, file);
        if (got == 0) break;
        bytes += got;
    }
    request->payload = data;
    *out = (struct bel_view){data, bytes};
    if (!ferror(file)) return CLI_OK;
    fprintf(stderr, "belfry: cannot read %s: %s\n", name, bel__cli_problem(errno));
    return CLI_FAILED;
}

static int read_payload(struct cli_request *request, struct bel_view *out)
{
    if (request->file == NULL) return read_all(request, stdin, "standard input", out);
    FILE *file = fopen(request->file, "re");
    if (file == NULL) {
        fprintf(stderr, "belfry: cannot read %s: %s\n", request->file, bel__cli_problem(errno));
        return CLI_FAILED;
    }
    int status = read_all(request, file, request->file, out);
    (void)fclose(file);
    return status;
}

/* --- putting it together --- */

/* Adds a value, checked by its type and rewritten for the server. */
static int add_value(struct cli_request *request, enum bel_argument_type type, const char *name,
                     const char *value)
{
    char *made;
    const struct cli_value_context context = {
        .name = name, .zone = request->zone, .connect = &request->connect};
    int status = bel__cli_value(type, value, &context, &made);
    if (status != CLI_OK) return status;
    if (made != NULL) request->made[request->made_count++] = made;
    add(request, made != NULL ? made : value, strlen(made != NULL ? made : value));
    return CLI_OK;
}

/* Adds NAME=VALUE: a header, or a setting, whose value is checked. */
static int add_pair_of(struct cli_request *request, const char *text)
{
    int status = add_pair(request, text);
    bool is_setting = request->command == &bel__commands[BEL_COMMAND_CONFIGURE];
    if (status != CLI_OK || !is_setting) return status;
    const char *value = strchr(text, '=') + 1;
    const struct bel_setting_entry *setting =
        bel__setting_find(request->args[request->args_count - 2]);
    bool is_word = setting == NULL || strcmp(value, "forever") == 0;
    if (is_word) return CLI_OK;
    request->args_count--; /* add_value() adds it again */
    return add_value(request, setting->type, setting->name, value);
}

/* Returns whether a word is the name of an option: the server would take it for the option. */
static bool is_named_option(const struct bel_command_entry *command, const char *word)
{
    for (size_t i = 0; i < command->arguments_count; i++) {
        const struct bel_argument *argument = &command->arguments[i];
        if (is_option(argument) && strcasecmp(argument->name, word) == 0) return true;
    }
    return false;
}

/* Returns the value of an option of SCHEDULE; NULL if it was not given. */
static const char *choice_of(const struct typed *typed, const char *name)
{
    for (size_t i = 0; i < typed->choices_count; i++) {
        if (strcmp(typed->choices[i].option->name, name) == 0) return typed->choices[i].value;
    }
    return NULL;
}

/* Writes the name of an option as it is typed: --in. */
static void write_name(const struct bel_argument *option, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "--%.60s", option->name);
    for (char *byte = out; *byte != '\0'; byte++) {
        if (*byte >= 'A' && *byte <= 'Z') *byte = (char)(*byte | 0x20);
    }
}

/* Refuses a word that is left over: often a part of a cron rule without quotes. */
static int refuse_rest(const struct cli_request *request, const struct typed *typed,
                       const char *word)
{
    const char *cron = choice_of(typed, "CRON");
    bool is_part = cron != NULL && strpbrk(cron, " @") == NULL;
    if (!is_part && is_named_option(request->command, word)) return suggest_dashes(request, word);
    if (!is_part && request->file != NULL) {
        return complain(request, "the payload is that of --file: unexpected argument ", word);
    }
    if (!is_part) return complain(request, "unexpected argument ", word);
    return complain(request, "quote the rule, as in --cron '0 9 * * 1': unexpected argument ",
                    word);
}

/* Adds the positional arguments. Fails if one is missing, or if words are left over. */
static int add_words(struct cli_request *request, const struct typed *typed)
{
    const struct bel_command_entry *command = request->command;
    size_t next = 0;
    for (size_t i = 0; i < command->arguments_count; i++) {
        const struct bel_argument *argument = &command->arguments[i];
        if (is_option(argument)) break;
        bool is_payload = takes_payload(command) && strcmp(argument->name, "payload") == 0;
        if (is_payload && request->file != NULL) {
            add(request, "", 0);
            continue;
        }
        if (next == typed->words_count && !argument->is_optional) {
            bool is_setting = argument->type == BEL_ARGUMENT_PAIR;
            return complain(request, "missing argument ",
                            is_setting ? "NAME=VALUE, e.g. lease=1m" : argument->name);
        }
        size_t end = argument->is_repeated ? typed->words_count : next + 1;
        if (end > typed->words_count) end = typed->words_count;
        for (; next < end; next++) {
            const char *word = typed->words[next];
            if (argument->yields && is_named_option(command, word)) {
                return complain(request, "an argument that is named like an option: ", word);
            }
            bool is_pair = argument->type == BEL_ARGUMENT_PAIR;
            int status = is_pair ? add_pair_of(request, word)
                                 : add_value(request, argument->type, argument->name, word);
            if (status != CLI_OK) return status;
        }
    }
    request->words_count = request->args_count - 1;
    if (next == typed->words_count) return CLI_OK;
    return refuse_rest(request, typed, typed->words[next]);
}

static bool has_time(const struct typed *typed, bool (*is)(const char *text))
{
    for (size_t i = 0; i < typed->choices_count; i++) {
        const struct choice *choice = &typed->choices[i];
        if (choice->option->type != BEL_ARGUMENT_TIME) continue;
        if (is(choice->value)) return true;
    }
    return false;
}

/* Takes the zone of local times from the start of a cron rule, TZ=ZONE, which the server reads too.
 */
static int read_zone_of_rule(struct cli_request *request, const struct typed *typed)
{
    const char *cron = choice_of(typed, "CRON");
    struct bel_view rule = {cron, cron != NULL ? strlen(cron) : 0}, zone;
    if (cron == NULL || !bel_cron_split_zone(&rule, &zone)) return CLI_OK;
    char *made = strndup(zone.data, zone.bytes);
    if (made == NULL) return CLI_FAILED;
    request->made[request->made_count++] = made;
    request->zone = made;
    return CLI_OK;
}

/* Reads the zone of local times. A zone that is theirs alone is not sent; a zone of an interval is
 * refused, because it has no effect. */
static int read_zone(struct cli_request *request, struct typed *typed)
{
    const char *zone = choice_of(typed, "TZ");
    if (request->zone != NULL && bel__zone_hint_any(request->zone)) return CLI_USAGE;
    if (zone == NULL) return read_zone_of_rule(request, typed);
    if (bel__zone_hint(zone)) return CLI_USAGE; /* otherwise the server decides */
    request->zone = zone;
    bool has_rule = choice_of(typed, "CRON") != NULL || choice_of(typed, "RRULE") != NULL;
    if (has_rule) return CLI_OK;
    bool has_every = choice_of(typed, "EVERY") != NULL;
    bool is_distance = !has_every && has_time(typed, bel__relative_time_is); /* in every zone */
    if (is_distance || has_time(typed, bel__local_time_is)) {
        if (bel__zone_hint_any(zone)) return CLI_USAGE;
        size_t kept = 0;
        for (size_t i = 0; i < typed->choices_count; i++) {
            bool is_zone = typed->choices[i].option->type == BEL_ARGUMENT_ZONE;
            if (!is_zone) typed->choices[kept++] = typed->choices[i];
        }
        typed->choices_count = kept;
        return CLI_OK;
    }
    if (!has_every && has_time(typed, bel__date_time_is_instant)) {
        return complain(request, "--tz has no effect: the time of --at is the same in every zone",
                        "");
    }
    if (!has_every) return CLI_OK;
    return complain(request, "--tz has no effect on --every",
                    ": an interval is the same in every time zone; use --cron");
}

/* Refuses a value that belongs to another option of the command. */
static int check_place(const struct cli_request *request, const struct choice *choice)
{
    char value[CLI_OPTION_HINT_BYTES], lower[2][NAME_BYTES];
    const char *meant = bel__option_hint(choice->option->name, choice->value, value);
    if (meant == NULL) return CLI_OK;
    const char *names[] = {choice->option->name, meant};
    for (unsigned k = 0; k < 2; k++) {
        size_t bytes = strlen(names[k]);
        for (size_t i = 0; i <= bytes; i++) {
            lower[k][i] = (char)(i < bytes ? names[k][i] | 0x20 : '\0');
        }
    }
    if (find_option(request->command, lower[1]) == NULL) return CLI_OK;
    fprintf(stderr, "belfry %s: --%s '%s': did you mean --%s '%s'?\n", request->verb, lower[0],
            choice->value, lower[1], value);
    return CLI_USAGE;
}

/* Refuses a word that is not a state, and names the states that the command takes. */
static int check_state(const struct cli_request *request, const char *value)
{
    bool is_first = true;
    if (lists(request->command) && strcmp(value, "plan") == 0) return CLI_OK;
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (strcasecmp(value, bel_state_name((enum bel_state)i)) == 0) return CLI_OK;
    }
    fprintf(stderr, "belfry %s: --state: '%s' is not one of ", request->verb, value);
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (!takes_state(request->command, i)) continue;
        fprintf(stderr, "%s%s", is_first ? "" : ", ", bel_state_name((enum bel_state)i));
        is_first = false;
    }
    fprintf(stderr, "%s\n", lists(request->command) ? ", plan" : "");
    return CLI_USAGE;
}

static int add_choices(struct cli_request *request, const struct typed *typed)
{
    for (size_t i = 0; i < typed->choices_count; i++) {
        const struct choice *choice = &typed->choices[i];
        enum bel_argument_type type = choice->option->type;
        if (type != BEL_ARGUMENT_FLAG && check_place(request, choice) != CLI_OK) return CLI_USAGE;
        add(request, choice->option->name, strlen(choice->option->name));
        if (type == BEL_ARGUMENT_FLAG) continue;
        const char *value = choice->value;
        if (type == BEL_ARGUMENT_STATE && check_state(request, value) != CLI_OK) return CLI_USAGE;
        if (lists(request->command) && type == BEL_ARGUMENT_STATE && strcmp(value, "plan") == 0) {
            request->only_plans = true; /* among the scheduled timers */
            value = "scheduled";
        }
        char name[NAME_BYTES];
        write_name(choice->option, name);
        int status = type == BEL_ARGUMENT_PAIR ? add_pair(request, value)
                                               : add_value(request, type, name, value);
        if (status != CLI_OK) return status;
    }
    return CLI_OK;
}

/* Warns of a rule that is valid, and most likely means something else. */
static void hint_at_rule(const struct typed *typed)
{
    const char *notes[CLI_RULE_NOTES_MAX], *cron = choice_of(typed, "CRON");
    size_t count = cron != NULL ? bel__rule_notes(cron, notes) : 0;
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "belfry: note: %s\n", notes[i]);
    }
}

/* Refuses two due times. */
static int check_due(const struct cli_request *request, const struct typed *typed)
{
    const char *in = choice_of(typed, "IN"), *at = choice_of(typed, "AT");
    if (in == NULL || at == NULL) return CLI_OK;
    return complain(request, "--in and --at exclude each other: give one of them", "");
}

static int put_together(struct cli_request *request, struct typed *typed)
{
    enum {
        PLACE_PAYLOAD = 2
    };
    add(request, request->command->name, strlen(request->command->name));
    int status = check_due(request, typed);
    if (status == CLI_OK) status = read_zone(request, typed);
    if (status == CLI_OK) status = add_words(request, typed);
    if (status == CLI_OK) status = add_choices(request, typed);
    if (status != CLI_OK || !takes_payload(request->command)) return status;
    hint_at_rule(typed);
    struct bel_view *payload = &request->args[PLACE_PAYLOAD];
    bool is_dash = payload->bytes == 1 && *(const char *)payload->data == '-';
    return request->file != NULL || is_dash ? read_payload(request, payload) : CLI_OK;
}

int bel__request_read(struct cli_request *request, const struct bel_command_entry *command,
                      const struct bel_command_entry *other, int argc, char **argv)
{
    size_t room = 2 * (size_t)argc + ARGS_SPARE;
    struct typed typed = {.words = calloc(room, sizeof typed.words[0]),
                          .choices = calloc(room, sizeof typed.choices[0])};
    *request = (struct cli_request){.verb = argv[0], .command = command};
    request->args = calloc(room, sizeof request->args[0]);
    request->made = calloc(room, sizeof request->made[0]);
    int status = CLI_FAILED;
    if (typed.words != NULL && typed.choices != NULL && request->args != NULL &&
        request->made != NULL) {
        status = sort_out(request, &typed, argc, argv);
        if (other != NULL && typed.words_count > 0) request->command = other;
        if (status == CLI_OK && typed.wants_help) {
            bel__request_help(argv[0], command, other);
        } else if (status == CLI_OK) {
            status = put_together(request, &typed);
        }
    }
    bool goes_on = status == CLI_OK && !typed.wants_help;
    free(typed.words);
    free(typed.choices);
    return goes_on ? -1 : status;
}

void bel__request_finish(struct cli_request *request)
{
    for (size_t i = 0; i < request->made_count; i++) {
        free(request->made[i]);
    }
    free(request->made);
    free(request->args);
    free(request->payload);
}
