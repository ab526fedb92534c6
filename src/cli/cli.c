/* SPDX-License-Identifier: MIT */

/* The table of verbs that are not server commands, the help, and the dispatch to a verb. */
#include "cli/cli.h"

#include "belfry/version.h"
#include "cli/completion.h"
#include "cli/print.h"
#include "cli/remote_verb.h"
#include "core/similar.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int show_version(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--json") == 0) {
        printf("{\"version\": \"%s\"}\n", bel_version());
    } else {
        printf("belfry %s\n", bel_version());
    }
    return CLI_OK;
}

static const struct cli_verb verbs[] = {
    {"work", bel__cli_work, "run a program for each due timer"},
    {"export", bel__cli_export, "print the timers of a topic as JSON lines"},
    {"import", bel__cli_import, "schedule timers from JSON lines or from a crontab"},
    {"top", bel__cli_top, "show live figures of a server"},
    {"bench", bel__cli_bench, "measure the throughput and latency of a server"},
    {"ping", bel__cli_ping, "check that a server answers"},
    {"info", bel__cli_info, "show what a server says about itself"},
    {"next", bel__cli_next, "preview the next times of a rule, clock changes included"},
    {"completion", NULL, "print the shell completion script"}, /* run() passes it the tables */
    {"version", show_version, "print the version"},
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

static void show_help(const struct cli_verb *others)
{
    printf("belfry is a durable timer server and its command-line client.\n\n"
           "usage: belfry VERB [ARGUMENT ...]\n\n");
    list_verbs(others);
    for (const struct cli_remote_verb *remote = NULL;
         (remote = bel__remote_verb_next(remote)) != NULL;) {
        printf("    %-10s %s\n", remote->verb, bel__remote_verb_summary(remote));
    }
    list_verbs(verbs);
    printf("    %-10s %s\n", "help", "list the verbs, or with VERB its options");
    printf("\nls, rm, ps and status are list, cancel, topics and info.\n");
}

static void offer_verbs(struct bel_similar *similar, const struct cli_verb *among)
{
    for (; among->name != NULL; among++) {
        bel__similar_offer(similar, among->name, among->name);
    }
}

static int refuse_verb(const char *name, const struct cli_verb *others)
{
    struct bel_similar similar;
    if (name[0] == '-') {
        fprintf(stderr, "belfry: unknown option %s before the verb; see belfry help\n", name);
        return CLI_USAGE;
    }
    bel__similar_begin(&similar, name);
    for (const struct cli_remote_verb *remote = NULL;
         (remote = bel__remote_verb_next(remote)) != NULL;) {
        bel__similar_offer(&similar, remote->verb, remote->verb);
    }
    offer_verbs(&similar, others);
    offer_verbs(&similar, verbs);
    if (similar.name != NULL) {
        fprintf(stderr, "belfry: unknown verb '%s'; did you mean '%s'?\n", name, similar.name);
    } else {
        fprintf(stderr, "belfry: unknown verb '%s'; belfry help lists the verbs\n", name);
    }
    return CLI_USAGE;
}

/* Replaces the short name of a verb, as other programs have it, by the verb. */
static void replace_alias(char **verb)
{
    static char list[] = "list", cancel[] = "cancel", topics[] = "topics", info[] = "info";
    static const struct {
        const char *alias;
        char *verb;
    } aliases[] = {{"ls", list}, {"rm", cancel}, {"ps", topics}, {"status", info}};
    for (unsigned i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(*verb, aliases[i].alias) == 0) *verb = aliases[i].verb;
    }
}

/* Returns how many arguments an option before the verb has, with its value; 0 if it is unknown. */
static int leading_option(const char *text)
{
    static const char *const with_value[] = {"--server", "--key-file", "--timeout"};
    if (strcmp(text, "--json") == 0) return 1;
    for (unsigned i = 0; i < sizeof with_value / sizeof with_value[0]; i++) {
        size_t bytes = strlen(with_value[i]);
        if (strncmp(text, with_value[i], bytes) != 0) continue;
        if (text[bytes] == '\0') return 2;
        if (text[bytes] == '=') return 1;
    }
    return 0;
}

/* Moves the verb in front of options of all verbs that come before it: belfry --json list mail. */
static void move_verb(int argc, char **argv)
{
    int at = 1, used = 1;
    while (at < argc && argv[at][0] == '-' && used > 0) {
        used = leading_option(argv[at]);
        at += used;
    }
    if (at >= argc || used == 0) return;
    char *verb = argv[at];
    memmove(&argv[2], &argv[1], (size_t)(at - 1) * sizeof argv[0]);
    argv[1] = verb;
}

/* Runs a verb; argv[0] is its name. */
static int run(int argc, char **argv, const struct cli_verb *others)
{
    const struct cli_remote_verb *remote = bel__remote_verb_find(argv[0]);
    if (remote != NULL) return bel__remote_verb_run(remote, argc, argv);
    const struct cli_verb *verb = find_verb(verbs, argv[0]);
    if (verb == NULL) verb = find_verb(others, argv[0]);
    if (verb != NULL && verb->run == NULL) return bel__cli_completion(argc, argv, verbs, others);
    return verb != NULL ? verb->run(argc, argv) : refuse_verb(argv[0], others);
}

static int help(int argc, char **argv, const struct cli_verb *others)
{
    char flag[] = "--help";
    if (argc < 2 || strcmp(argv[1], "help") == 0) {
        show_help(others);
        return CLI_OK;
    }
    replace_alias(&argv[1]);
    const struct cli_remote_verb *remote = bel__remote_verb_find(argv[1]);
    if (remote != NULL) {
        bel__remote_verb_help(remote);
        return CLI_OK;
    }
    char *asked[] = {argv[1], flag, NULL};
    return run(2, asked, others);
}

/* A failed write to stdout, other than EPIPE, is a failure of the command. */
static int check_output(int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0) return status;
    if (errno == EPIPE) return status; /* the reader has closed the pipe, e.g. head */
    fprintf(stderr, "belfry: cannot write to standard output: %s\n", bel__cli_problem(errno));
    return status == CLI_OK ? CLI_FAILED : status;
}

int bel__cli_run(int argc, char **argv, const struct cli_verb *others)
{
    char version[] = "version";
    if (argc < 2) {
        show_help(others);
        return CLI_USAGE;
    }
    move_verb(argc, argv);
    replace_alias(&argv[1]);
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) argv[1] = version;
    bool wants_help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (wants_help || strcmp(name, "help") == 0) {
        return check_output(help(argc - 1, argv + 1, others));
    }
    return check_output(run(argc - 1, argv + 1, others));
}
