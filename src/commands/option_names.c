/* SPDX-License-Identifier: MIT */

/* A name is a word of its own: neither letters, digits nor dashes are next to it. */
#include "commands/option_names.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static bool is_part_of_word(char byte)
{
    return isalnum((unsigned char)byte) != 0 || byte == '-' || byte == '_';
}

/* Returns the option whose name begins a text; NULL if there is none. */
static const struct bel_argument *option_at(const struct bel_command_entry *entry,
                                            struct bel_view text)
{
    const char *data = text.data;
    for (size_t i = 0; i < entry->arguments_count; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        size_t bytes = strlen(argument->name);
        bool is_option = argument->name[0] >= 'A' && argument->name[0] <= 'Z';
        if (!is_option || text.bytes < bytes) continue;
        if (memcmp(data, argument->name, bytes) != 0) continue;
        if (text.bytes == bytes || !is_part_of_word(data[bytes])) return argument;
    }
    return NULL;
}

void bel__option_name_small(const void *context, const struct bel_argument *option,
                            char out[BEL_OPTION_NAME_BYTES])
{
    size_t bytes = strlen(option->name);
    (void)context;
    assert(bytes < BEL_OPTION_NAME_BYTES);
    for (size_t i = 0; i <= bytes; i++) {
        char letter = option->name[i];
        out[i] = (char)(letter >= 'A' && letter <= 'Z' ? letter | 0x20 : letter);
    }
}

void bel__option_names_replace(const struct bel_command_entry *entry, struct bel_view message,
                               bel_option_name *name, const void *context, char *out, size_t room)
{
    const char *text = message.data;
    char written[BEL_OPTION_NAME_BYTES];
    size_t used = 0;
    bool is_quoted = false, is_start = true;
    for (size_t at = 0; at < message.bytes && used + 1 < room;) {
        struct bel_view rest = {text + at, message.bytes - at};
        bool may_be_name = !is_quoted && is_start && used + sizeof written < room;
        const struct bel_argument *option = may_be_name ? option_at(entry, rest) : NULL;
        if (option == NULL) {
            is_quoted ^= text[at] == '\'';
            is_start = !is_part_of_word(text[at]);
            out[used++] = text[at++];
            continue;
        }
        name(context, option, written);
        memcpy(out + used, written, strlen(written));
        used += strlen(written);
        at += strlen(option->name);
        is_start = false;
    }
    out[used] = '\0';
}

void bel__option_names_replace_error(const struct bel_command_entry *entry, struct bel_view error,
                                     bel_option_name *name, const void *context, char *out,
                                     size_t room)
{
    const char *text = error.data;
    const char *end = error.bytes > 0 ? memchr(text, ' ', error.bytes) : NULL;
    size_t code = end != NULL ? (size_t)(end - text) : 0;
    if (code >= room) code = 0;
    if (code > 0) memcpy(out, text, code);
    struct bel_view rest = {text + code, error.bytes - code};
    bel__option_names_replace(entry, rest, name, context, out + code, room - code);
}
