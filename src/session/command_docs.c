/* SPDX-License-Identifier: MIT */

/*
 * COMMAND: the table of commands in the format of Redis. Clients use it to complete and to explain
 * what users type.
 */
#include "session/call.h"

#include <string.h>

enum {
    INFO_FIELDS = 10, /* of a command, in the order of Redis 7 */
    NAME_BYTES = 32,
};

static bool is_option(const struct bel_argument *argument)
{
    return argument->name[0] >= 'A' && argument->name[0] <= 'Z';
}

/* Writes a name in lower case, with a bar before a subcommand, as clients of Redis expect it. */
static void write_name(struct bel_resp_writer *writer, const char *name)
{
    char small[NAME_BYTES];
    size_t bytes = strlen(name);
    for (size_t i = 0; i < bytes && i < sizeof small; i++) {
        bool is_large = name[i] >= 'A' && name[i] <= 'Z';
        small[i] = (char)(is_large ? name[i] | 0x20 : name[i]);
        if (name[i] == ' ') small[i] = '|';
    }
    bel__resp_bulk(writer, (struct bel_view){small, bytes});
}

/* Returns the number of words of a command, including its name; negative if it is a minimum. */
static int64_t arity(const struct bel_command_entry *entry)
{
    int64_t least = strchr(entry->name, ' ') != NULL ? 2 : 1;
    bool is_exact = true;
    for (size_t i = 0; i < entry->arguments_count; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        bool is_must = !is_option(argument) && !argument->is_optional;
        if (is_must) least += argument->type == BEL_ARGUMENT_PAIR ? 2 : 1;
        if (!is_must || argument->is_repeated) is_exact = false;
    }
    return is_exact ? least : -least;
}

static const char *flag_of(const struct bel_command_entry *entry)
{
    switch (entry->permission) {
    case BEL_PERMISSION_NONE:
        return "no_auth";
    case BEL_PERMISSION_ADMIN:
        return "admin";
    case BEL_PERMISSION_WRITE:
    case BEL_PERMISSION_WORK:
        return "write";
    default:
        return "readonly";
    }
}

/* Returns the category of Redis that is nearest to the permission of a command. */
static const char *category_of(const struct bel_command_entry *entry)
{
    switch (entry->permission) {
    case BEL_PERMISSION_READ:
        return "@read";
    case BEL_PERMISSION_WRITE:
    case BEL_PERMISSION_WORK:
        return "@write";
    case BEL_PERMISSION_ADMIN:
        return "@admin";
    default:
        return "@connection";
    }
}

static void write_info(struct bel_resp_writer *writer, const struct bel_command_entry *entry)
{
    bel__resp_array(writer, INFO_FIELDS);
    write_name(writer, entry->name);
    bel__resp_integer(writer, arity(entry));
    bel__resp_array(writer, 1);
    bel__resp_simple(writer, flag_of(entry));
    bel__resp_integer(writer, 0); /* first key, last key, step: commands have no cluster keys */
    bel__resp_integer(writer, 0);
    bel__resp_integer(writer, 0);
    bel__resp_array(writer, 1);
    bel__resp_simple(writer, category_of(entry));
    bel__resp_array(writer, 0); /* tips, key specifications, subcommands */
    bel__resp_array(writer, 0);
    bel__resp_array(writer, 0);
}

/* --- DOCS --- */

static const char *type_of(const struct bel_argument *argument)
{
    switch (argument->type) {
    case BEL_ARGUMENT_NUMBER:
        return "integer";
    case BEL_ARGUMENT_FLAG:
        return "pure-token";
    default:
        return "string";
    }
}

static void write_flags(struct bel_resp_writer *writer, const struct bel_argument *argument)
{
    bool is_optional = argument->is_optional || is_option(argument);
    bel__resp_array(writer, (size_t)is_optional + argument->is_repeated);
    if (is_optional) bel__resp_simple(writer, "optional");
    if (argument->is_repeated) bel__resp_simple(writer, "multiple");
}

static void write_argument(struct bel_resp_writer *writer, const struct bel_argument *argument)
{
    bel__resp_map(writer, is_option(argument) ? 5 : 4);
    bel__resp_text(writer, "name");
    write_name(writer, argument->name);
    bel__resp_text(writer, "type");
    bel__resp_text(writer, type_of(argument));
    if (is_option(argument)) {
        bel__resp_text(writer, "token");
        bel__resp_text(writer, argument->name);
    }
    bel__resp_text(writer, "summary");
    bel__resp_text(writer, argument->help);
    bel__resp_text(writer, "flags");
    write_flags(writer, argument);
}

static void write_docs(struct bel_resp_writer *writer, const struct bel_command_entry *entry)
{
    write_name(writer, entry->name);
    bel__resp_map(writer, entry->arguments_count > 0 ? 3 : 2);
    bel__resp_text(writer, "summary");
    bel__resp_text(writer, entry->help);
    bel__resp_text(writer, "group");
    bel__resp_text(writer, bel__permission_name(entry->permission));
    if (entry->arguments_count == 0) return;
    bel__resp_text(writer, "arguments");
    bel__resp_array(writer, entry->arguments_count);
    for (size_t i = 0; i < entry->arguments_count; i++) {
        write_argument(writer, &entry->arguments[i]);
    }
}

/* --- all commands, or the named ones --- */

static void write_infos(const struct bel_bound *bound, struct bel_resp_writer *writer)
{
    size_t count = bound->repeated_count;
    bel__resp_array(writer, count > 0 ? count : bel__commands_count);
    for (size_t i = 0; i < bel__commands_count && count == 0; i++) {
        write_info(writer, &bel__commands[i]);
    }
    for (size_t i = 0; i < count; i++) {
        const struct bel_command_entry *entry = bel__command_find(bound->repeated[i]);
        if (entry != NULL) {
            write_info(writer, entry);
        } else {
            bel__resp_null_array(writer);
        }
    }
}

static bool is_named(const struct bel_bound *bound, const struct bel_command_entry *entry)
{
    for (size_t i = 0; i < bound->repeated_count; i++) {
        if (bel__command_find(bound->repeated[i]) == entry) return true;
    }
    return bound->repeated_count == 0;
}

static void write_all_docs(const struct bel_bound *bound, struct bel_resp_writer *writer)
{
    size_t count = 0;
    for (size_t i = 0; i < bel__commands_count; i++) {
        count += is_named(bound, &bel__commands[i]);
    }
    bel__resp_map(writer, count);
    for (size_t i = 0; i < bel__commands_count; i++) {
        if (is_named(bound, &bel__commands[i])) write_docs(writer, &bel__commands[i]);
    }
}

void bel__command_docs_write(const struct bel_bound *bound, struct bel_resp_writer *writer)
{
    if (!bel__bound_has(bound, 0)) {
        write_infos(bound, writer);
        return;
    }
    switch (bound->values[0].number) {
    case BEL_COMMAND_WORD_COUNT:
        bel__resp_count(writer, bel__commands_count);
        break;
    case BEL_COMMAND_WORD_LIST:
        bel__resp_array(writer, bel__commands_count);
        for (size_t i = 0; i < bel__commands_count; i++) {
            write_name(writer, bel__commands[i].name);
        }
        break;
    case BEL_COMMAND_WORD_DOCS:
        write_all_docs(bound, writer);
        break;
    default:
        write_infos(bound, writer);
        break;
    }
}
