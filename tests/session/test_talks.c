/* SPDX-License-Identifier: MIT */

/*
 * Holds the conversations of the files that it is given. A file that ends in .md is a document
 * with conversations in it, in blocks that begin with ```transcript; each begins anew. It has to
 * have a heading for each command of the table, and under it each of its options.
 */
#include "../check.h"
#include "commands/commands.h"
#include "talk.h"

#include <string.h>

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) fprintf(stderr, "%s cannot be read\n", path);
    CHECK(file != NULL);
    char *text = calloc(1, TALK_TEXT_BYTES);
    CHECK(text != NULL);
    CHECK(fread(text, 1, TALK_TEXT_BYTES - 1, file) > 0);
    CHECK(fclose(file) == 0);
    return text;
}

/* The part of a document that is about a command, which ends where the next one begins. */
static void check_entry(const char *text, const struct bel_command_entry *entry)
{
    static char part[TALK_TEXT_BYTES];
    (void)snprintf(part, sizeof part, "\n### %s\n", entry->name);
    const char *start = strstr(text, part);
    CHECK_NOTE("the document has %s", entry->name);
    CHECK(start != NULL);
    (void)snprintf(part, sizeof part, "%s", start + 1);
    char *end = strstr(part, "\n#");
    if (end != NULL) *end = 0;
    for (size_t i = 0; i < entry->arguments_count; i++) {
        const char *name = entry->arguments[i].name;
        CHECK_NOTE("the document has %s %s", entry->name, name);
        bool is_option = name[0] >= 'A' && name[0] <= 'Z';
        if (is_option) CHECK(strstr(part, name) != NULL);
    }
}

/* The text between the fences; there has to be some. */
static void run_document(char *text)
{
    unsigned count = 0;
    char *at = text;
    for (size_t i = 0; i < bel__commands_count; i++) {
        check_entry(text, &bel__commands[i]);
    }
    while ((at = strstr(at, "```transcript\n")) != NULL) {
        at += strlen("```transcript\n");
        char *end = strstr(at, "```");
        CHECK(end != NULL);
        *end = 0;
        talk_run(at);
        at = end + 1;
        count++;
    }
    CHECK(count > 0);
    (void)printf("     %u conversations\n", count);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    for (int i = 1; i < argc; i++) {
        char *text = read_file(argv[i]);
        const char *name = strrchr(argv[i], '/');
        name = name != NULL ? name + 1 : argv[i];
        fprintf(stderr, "%s\n", name);
        if (strstr(name, ".md") != NULL) {
            run_document(text);
        } else {
            talk_run(text);
        }
        (void)printf("ok   %s\n", name);
        free(text);
    }
    return 0;
}
