/* SPDX-License-Identifier: MIT */

/*
 * The table of verbs, and what all of them need. A verb that does not exist yet is not in it.
 */
#include "cli/cli.h"

#include "belfry/version.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int show_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("belfry %s\n", bel_version());
    return CLI_OK;
}

static const struct cli_verb verbs[] = {
    {"next", bel__cli_next, "when a rule says next, and what clock changes do to it"},
    {"version", show_version, "the version"},
    {NULL, NULL, NULL},
};

static const struct cli_verb *find_verb(const struct cli_verb *among, const char *name)
{
    for (; among->name != NULL; among++) {
        if (strcmp(among->name, name) == 0) return among;
    }
    return NULL;
}

static void list_verbs(const struct cli_verb *among)
{
    for (; among->name != NULL; among++) {
        printf("    %-10s %s\n", among->name, among->help);
    }
}

static int show_help(const struct cli_verb *others)
{
    printf("belfry holds anything that must happen later and rings it when it is due.\n\n"
           "usage: belfry VERB [ARGUMENT ...]\n\n");
    list_verbs(others);
    list_verbs(verbs);
    printf("    %-10s %s\n", "help", "this");
    printf("\nbelfry VERB --help says more about a verb.\n");
    return CLI_OK;
}

int bel__cli_run(int argc, char **argv, const struct cli_verb *others)
{
    if (argc < 2) {
        (void)show_help(others);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    if (strcmp(name, "help") == 0) return show_help(others);
    const struct cli_verb *verb = find_verb(verbs, name);
    if (verb == NULL) verb = find_verb(others, name);
    if (verb != NULL) return verb->run(argc - 1, argv + 1);
    fprintf(stderr, "belfry: there is no verb '%s'; belfry help lists them\n", name);
    return CLI_USAGE;
}

int bel__cli_refuse(const char *what, const char *text, const struct bel_text_error *why)
{
    fprintf(stderr, "belfry: not %s: expected %s\n    ", what, why->expected);
    for (const char *byte = text; *byte != '\0'; byte++) {
        (void)fputc((unsigned char)*byte < ' ' || *byte == 0x7f ? ' ' : *byte, stderr);
    }
    fprintf(stderr, "\n    %*s^\n", (int)why->position, "");
    return CLI_USAGE;
}

/* How many bytes the UTF-8 character at `text` has; 0 if it is none. */
static unsigned character_bytes(const unsigned char *text)
{
    if (text[0] < 0x80) return 1;
    unsigned bytes = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4) return 0;
    for (unsigned i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
    }
    bool is_overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool is_beyond = text[0] == 0xf4 && text[1] > 0x8f;
    bool is_surrogate = text[0] == 0xed && text[1] > 0x9f;
    return is_overlong || is_beyond || is_surrogate ? 0 : bytes;
}

void bel__cli_print_json(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    (void)putchar('"');
    while (*at != '\0') {
        unsigned bytes = character_bytes(at);
        if (bytes == 0) {
            printf("\\ufffd");
            at++;
        } else if (*at == '"' || *at == '\\') {
            printf("\\%c", *at++);
        } else if (*at < ' ' || *at == 0x7f) {
            printf("\\u%04x", *at++);
        } else {
            (void)fwrite(at, 1, bytes, stdout);
            at += bytes;
        }
    }
    (void)putchar('"');
}
