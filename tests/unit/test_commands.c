/* SPDX-License-Identifier: MIT */

/*
 * The command table: it is complete, the parsers that use it can read it, and its one-line
 * descriptions are right.
 */
#include "../check.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/option_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum {
    USAGE_BYTES = 1024,
    HELP_BYTES_MAX = 80,
};

static const struct bel_command_entry *find(const char *name)
{
    return bel__command_find((struct bel_view){name, strlen(name)});
}

static bool is_option(const struct bel_argument *argument)
{
    return isupper((unsigned char)argument->name[0]) != 0;
}

static void a_command_is_found_in_any_case(void)
{
    CHECK(find("SCHEDULE") == &bel__commands[BEL_COMMAND_SCHEDULE]);
    CHECK(find("schedule") == find("SCHEDULE"));
    CHECK(find("ScHeDuLe") == find("SCHEDULE"));
    CHECK(find("topic") == &bel__commands[BEL_COMMAND_TOPIC]);
    CHECK(find("topics") == &bel__commands[BEL_COMMAND_TOPICS]);
    for (size_t i = 0; i < bel__commands_count; i++) {
        CHECK(find(bel__commands[i].name) == &bel__commands[i]);
    }
}

static void a_subcommand_is_found_by_two_words(void)
{
    const struct bel_command_entry *submit = &bel__commands[BEL_COMMAND_JOB_SUBMIT];
    CHECK(find("JOB SUBMIT") == submit && find("job|Submit") == submit);
    CHECK(bel__command_find_pair(BEL_VIEW("job"), BEL_VIEW("submit")) == submit);
    CHECK(bel__command_find_pair(BEL_VIEW("jo"), BEL_VIEW("submit")) == NULL);
    CHECK(bel__command_find_pair(BEL_VIEW("job"), BEL_VIEW("")) == NULL);
    CHECK(bel__command_is_group(BEL_VIEW("Job")) && !bel__command_is_group(BEL_VIEW("jobs")));
}

static void what_is_no_command_is_not_found(void)
{
    static const char *const wrong[] = {"",        "S",        "SCHEDUL", "SCHEDULES", " GET",
                                        "GET ",    "topicss",  "JOB",     "JOB ",      "JOB|",
                                        " SUBMIT", "JOB  GET", "JOB GETS"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_NOTE("%s", wrong[i]);
        CHECK(find(wrong[i]) == NULL);
    }
    CHECK(bel__command_find((struct bel_view){"GET\0", 4}) == NULL);
    CHECK(bel__command_find((struct bel_view){"GET\0\0\0\0", 7}) == NULL);
    CHECK(bel__command_find((struct bel_view){NULL, 0}) == NULL);
}

static void all_of_the_contract_is_there(void)
{
    static const char *const names[] = {
        "SCHEDULE",   "CANCEL",    "RESCHEDULE", "GET",     "CLAIM",      "ACK",      "FAIL",
        "RELEASE",    "EXTEND",    "LIST",       "REVIVE",  "PURGE",      "TOPICS",   "TOPIC",
        "PAUSE",      "CONFIGURE", "JOB SUBMIT", "JOB GET", "JOB CANCEL", "JOB LIST", "JOB PAUSE",
        "JOB RESUME", "RESUME",    "AGENDA",     "EXPLAIN", "CLOCK",      "BACKUP",   "PING",
        "ECHO",       "HELLO",     "AUTH",       "CLIENT",  "COMMAND",    "INFO",     "SELECT",
        "RESET",      "QUIT",      "SHUTDOWN",   "LIMIT",
    };
    CHECK_EQ(bel__commands_count, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_NOTE("%s", names[i]);
        CHECK(find(names[i]) != NULL);
    }
}

/* Upper and lower case must differ in one bit only. */
static void check_letters(const char *name)
{
    bool is_small = islower((unsigned char)name[0]) != 0;
    for (const char *c = name; *c != 0; c++) {
        CHECK_NOTE("%s", name);
        bool is_gap = *c == ' ' && c > name && c[1] != 0; /* before a subcommand */
        CHECK(is_gap || (is_small ? islower((unsigned char)*c) : isupper((unsigned char)*c)));
    }
}

static void all_names_are_letters(void)
{
    for (size_t i = 0; i < bel__commands_count; i++) {
        const struct bel_command_entry *entry = &bel__commands[i];
        check_letters(entry->name);
        for (size_t j = 0; j < entry->arguments_count; j++) {
            check_letters(entry->arguments[j].name);
        }
    }
}

static bool is_same_letter(int a, int b)
{
    return tolower(a) == tolower(b);
}

/* Tries every byte at one position of a name, or after its end: only its letter, in either case,
 * matches. */
static void check_place(const char *name, size_t place)
{
    char word[16];
    size_t bytes = strlen(name);
    bool is_behind = place == bytes;
    for (int byte = 0; byte < 256; byte++) {
        memcpy(word, name, bytes + 1);
        word[place] = (char)byte;
        bool is_right = !is_behind && is_same_letter(byte, name[place]);
        CHECK(bel__name_is(name, (struct bel_view){word, bytes + is_behind}) == is_right);
    }
}

static void a_name_is_told_from_all_others(void)
{
    for (size_t place = 0; place <= strlen("RESULT"); place++) {
        check_place("RESULT", place);
    }
    CHECK(!bel__name_is("RESULT", BEL_VIEW("RES")));
    CHECK(!bel__name_is("RESULT", (struct bel_view){NULL, 0}));
}

/* One line, without a full stop, that begins with a small letter. */
static void check_help(const char *help)
{
    size_t bytes = strlen(help);
    CHECK(bytes > 0 && bytes <= HELP_BYTES_MAX);
    CHECK(strpbrk(help, "\r\n\t") == NULL);
    CHECK(help[bytes - 1] != '.');
}

static void every_line_has_help(void)
{
    for (size_t i = 0; i < bel__commands_count; i++) {
        const struct bel_command_entry *entry = &bel__commands[i];
        CHECK_NOTE("%s", entry->name);
        check_help(entry->help);
        CHECK((entry->arguments == NULL) == (entry->arguments_count == 0));
        for (size_t j = 0; j < entry->arguments_count; j++) {
            CHECK_NOTE("%s %s", entry->name, entry->arguments[j].name);
            check_help(entry->arguments[j].help);
            CHECK((entry->arguments[j].type == BEL_ARGUMENT_WORD) ==
                  (entry->arguments[j].words != NULL));
        }
    }
}

/* Positional arguments come first, of these the optional ones last, and only the last is repeated,
 * so that parsing is unambiguous. */
static void arguments_can_be_told_apart(void)
{
    for (size_t i = 0; i < bel__commands_count; i++) {
        const struct bel_command_entry *entry = &bel__commands[i];
        bool has_option = false, has_optional = false, has_repeated = false;
        CHECK(entry->arguments_count <= BEL_ARGUMENTS_MAX);
        for (size_t j = 0; j < entry->arguments_count; j++) {
            const struct bel_argument *argument = &entry->arguments[j];
            CHECK_NOTE("%s %s", entry->name, argument->name);
            for (size_t k = 0; k < j; k++) {
                CHECK(strcmp(argument->name, entry->arguments[k].name) != 0);
            }
            if (is_option(argument)) {
                has_option = true;
                continue;
            }
            CHECK(!has_option && !has_repeated);
            CHECK(!has_optional || argument->is_optional);
            has_optional = argument->is_optional;
            has_repeated = argument->is_repeated;
            CHECK(argument->type != BEL_ARGUMENT_FLAG);
        }
    }
}

static void check_usage(const char *name, const char *want)
{
    char usage[USAGE_BYTES];
    CHECK_NOTE("%s", name);
    CHECK_EQ(bel__command_usage(find(name), usage, sizeof usage), strlen(want));
    CHECK(strcmp(usage, want) == 0);
}

static void usage_is_one_line(void)
{
    check_usage("GET", "GET topic id");
    check_usage("TOPICS", "TOPICS");
    check_usage("EXTEND", "EXTEND token [lease]");
    check_usage("CANCEL", "CANCEL topic id ...");
    check_usage("FAIL", "FAIL token [REASON text] [IN duration] [DEAD] "
                        "[KIND error|resource|limited]");
    check_usage("CONFIGURE", "CONFIGURE topic name value ...");
    check_usage("PING", "PING [message]");
    check_usage("COMMAND", "COMMAND [count|list|info|docs] [name ...]");
}

static void usage_is_cut_off_where_there_is_no_room(void)
{
    char usage[USAGE_BYTES];
    const struct bel_command_entry *entry = find("SCHEDULE");
    size_t needed = bel__command_usage(entry, NULL, 0);
    CHECK(needed > 100 && needed < sizeof usage);
    char whole[USAGE_BYTES];
    CHECK_EQ(bel__command_usage(entry, whole, sizeof whole), needed);
    CHECK_EQ(strlen(whole), needed);
    for (size_t room = 1; room <= needed; room++) {
        memset(usage, '#', sizeof usage);
        CHECK_EQ(bel__command_usage(entry, usage, room), needed);
        CHECK_EQ(strlen(usage), room - 1);
        CHECK(memcmp(usage, whole, room - 1) == 0 && usage[room] == '#');
    }
    CHECK(strstr(whole, "[HEADER name value]...") != NULL);
    CHECK(strstr(whole, "[CONFLICT replace|keep|reject|earliest|latest]") != NULL);
}

static void check_names(const char *command, const char *message, const char *want)
{
    char text[80];
    struct bel_view view = {message, strlen(message)};
    CHECK_NOTE("%s", message);
    bel__option_names_replace_error(find(command), view, bel__option_name_small, NULL, text,
                                    sizeof text);
    CHECK(strcmp(text, want) == 0);
}

static void names_of_options_are_replaced_in_messages(void)
{
    check_names("SCHEDULE", "ERR COUNT needs EVERY, CRON or RRULE",
                "ERR count needs every, cron or rrule");
    check_names("SCHEDULE", "CONFLICT CONFLICT is given twice", "CONFLICT conflict is given twice");
    check_names("SCHEDULE", "BADARG GAP: 'IN' is not one of next",
                "BADARG gap: 'IN' is not one of next");
    check_names("SCHEDULE", "ERR INN IN- X-IN IN_ IN.", "ERR INN IN- X-IN IN_ in.");
    check_names("GET", "ERR IN is no option", "ERR IN is no option");
    check_names("SCHEDULE", "ERR", "ERR");
    check_names("SCHEDULE", "", "");
}

static void messages_are_cut_off_where_there_is_no_room(void)
{
    static const char message[] = "ERR COUNT needs EVERY, CRON or RRULE";
    for (size_t room = 1; room < 2 * sizeof message; room++) {
        char text[2 * sizeof message + 1];
        memset(text, '#', sizeof text);
        bel__option_names_replace_error(find("SCHEDULE"),
                                        (struct bel_view){message, strlen(message)},
                                        bel__option_name_small, NULL, text, room);
        CHECK(strlen(text) < room && text[room] == '#');
    }
}

int main(void)
{
    RUN(a_command_is_found_in_any_case);
    RUN(a_subcommand_is_found_by_two_words);
    RUN(what_is_no_command_is_not_found);
    RUN(all_of_the_contract_is_there);
    RUN(all_names_are_letters);
    RUN(a_name_is_told_from_all_others);
    RUN(every_line_has_help);
    RUN(arguments_can_be_told_apart);
    RUN(usage_is_one_line);
    RUN(usage_is_cut_off_where_there_is_no_room);
    RUN(names_of_options_are_replaced_in_messages);
    RUN(messages_are_cut_off_where_there_is_no_room);
    return 0;
}
