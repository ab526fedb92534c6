/* SPDX-License-Identifier: MIT */

/* The table of verbs that are not server commands, the help, and the dispatch to a verb. */
#include "cli/cli.h"

#include "belfry/version.h"
#include "cli/completion.h"
#include "cli/examples.h"
#include "cli/print.h"
#include "cli/remote_verb.h"
#include "cli/store.h"
#include "core/similar.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int show_version(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf("usage: belfry version [--json]: print the version\n");
    } else if (argc > 1 && strcmp(argv[1], "--json") == 0) {
        printf("{\"version\": \"%s\"}\n", bel_version());
    } else {
        printf("belfry %s\n", bel_version());
    }
    return CLI_OK;
}

static const struct cli_verb verbs[] = {
    {"work", bel__cli_work, "run a program for each due timer"},
    {"job", bel__cli_job, "submit, show and control jobs: tasks that wait for each other"},
    {"export", bel__cli_export, "print the timers of a topic as JSON lines"},
    {"import", bel__cli_import, "schedule timers from JSON lines or from a crontab"},
    {"top", bel__cli_top, "show live figures of a server"},
    {"bench", bel__cli_bench, "measure the throughput and latency of a server"},
    {"ping", bel__cli_ping, "check that a server answers"},
    {"info", bel__cli_info, "show the state of a server"},
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

/* The verbs of the help, by what they are for. */
static const struct {
    const char *title, *verbs[12];
} groups[] = {
    {"Timers, plans and jobs",
     {"schedule", "cancel", "reschedule", "get", "list", "explain", "next", "agenda", "revive",
      "purge", "job"}},
    {"Working", {"work", "claim", "ack", "fail", "release", "extend"}},
    {"Topics and resources", {"topics", "configure", "pause", "resume", "limit"}},
    {"Servers and their data",
     {"serve", "doctor", "backup", "copy", "export", "import", "ping", "info", "clock", "top",
      "bench"}},
    {"The program", {"help", "completion", "version"}},
};

/* Returns the one-line help of a verb. */
static const char *summary(const char *name, const struct cli_verb *others)
{
    const struct cli_remote_verb *remote = bel__remote_verb_find(name);
    if (remote != NULL) return bel__remote_verb_summary(remote);
    const struct cli_verb *verb = find_verb(verbs, name);
    if (verb == NULL) verb = find_verb(others, name);
    return verb != NULL ? verb->help : "list the verbs, or with VERB its options";
}

static bool is_in_group(const char *name)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (size_t k = 0; groups[i].verbs[k] != NULL; k++) {
            if (strcmp(groups[i].verbs[k], name) == 0) return true;
        }
    }
    return false;
}

/* Lists the verbs that are in no group. */
static void list_others(const struct cli_verb *others)
{
    for (const struct cli_remote_verb *remote = NULL;
         (remote = bel__remote_verb_next(remote)) != NULL;) {
        if (is_in_group(remote->verb)) continue;
        printf("    %-10s %s\n", remote->verb, bel__remote_verb_summary(remote));
    }
    for (const struct cli_verb *verb = verbs; verb->name != NULL; verb++) {
        if (!is_in_group(verb->name)) printf("    %-10s %s\n", verb->name, verb->help);
    }
    for (; others->name != NULL; others++) {
        if (!is_in_group(others->name)) printf("    %-10s %s\n", others->name, others->help);
    }
}

static void show_help(const struct cli_verb *others)
{
    printf("belfry is a durable timer server and its command-line client.\n"
           "usage: belfry VERB [ARGUMENT ...]\n");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        printf("\n%s\n", groups[i].title);
        for (size_t k = 0; groups[i].verbs[k] != NULL; k++) {
            const char *verb = groups[i].verbs[k];
            printf("    %-10s %s\n", verb, summary(verb, others));
        }
    }
    list_others(others);
    printf("\nls, rm, ps, status: list, cancel, topics, info. belfry help VERB: its options.\n");
}

static void offer_verbs(struct bel_similar *similar, const struct cli_verb *among)
{
    for (; among->name != NULL; among++) {
        bel__similar_offer(similar, among->name, among->name);
    }
}

/* What to do instead of verbs that people know from other programs. */
static const char *instead_of(const char *name)
{
    static const char stop[] = "to stop a server, send SIGTERM to its process: kill PID, or "
                               "systemctl stop belfry";
    static const char start[] = "to start a server: belfry serve";
    static const char logs[] = "a server logs to standard error, which journalctl -u belfry shows "
                               "for a service";
    static const char show[] = "belfry get TOPIC ID shows a timer, belfry topics NAME a topic";
    static const char gone[] = "belfry cancel TOPIC ID cancels a timer, belfry purge TOPIC deletes "
                               "finished ones";
    static const char again[] = "belfry revive TOPIC ID makes a dead timer due again";
    static const char cron[] = "belfry schedule TOPIC PAYLOAD --cron RULE, or --every DURATION";
    static const char take[] = "belfry claim TOPIC, or belfry work TOPIC -- PROGRAM";
    static const char state[] = "belfry topics, belfry info and belfry top show numbers";
    static const char move[] = "belfry reschedule TOPIC ID --in DURATION, or --at TIME";
    static const char tail[] = "belfry top shows live figures; belfry job watch ID follows a job";
    static const struct {
        const char *name, *text;
    } others[] = {
        {"stop", stop},    {"shutdown", stop}, {"kill", stop},   {"quit", stop},
        {"start", start},  {"run", start},     {"up", start},    {"restart", start},
        {"server", start}, {"daemon", start},  {"log", logs},    {"logs", logs},
        {"journal", logs}, {"tail", tail},     {"watch", tail},  {"follow", tail},
        {"monitor", tail}, {"events", tail},   {"show", show},   {"inspect", show},
        {"delete", gone},  {"del", gone},      {"remove", gone}, {"retry", again},
        {"kick", again},   {"requeue", again}, {"cron", cron},   {"every", cron},
        {"reserve", take}, {"pop", take},      {"stats", state}, {"move", move},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(name, others[i].name) == 0) return others[i].text;
    }
    return NULL;
}

static int refuse_verb(const char *name, const struct cli_verb *others)
{
    struct bel_similar similar;
    const char *instead = instead_of(name);
    if (name[0] == '-') {
        fprintf(stderr, "belfry: unknown option %s before the verb; see belfry help\n", name);
        return CLI_USAGE;
    }
    if (instead != NULL) {
        fprintf(stderr, "belfry: unknown verb '%s'; %s\n", name, instead);
        return CLI_USAGE;
    }
    bool is_schedule = strcmp(name, "add") == 0 || strcmp(name, "enqueue") == 0;
    bel__similar_begin(&similar, name);
    for (const struct cli_remote_verb *remote = NULL;
         (remote = bel__remote_verb_next(remote)) != NULL;) {
        bel__similar_offer(&similar, remote->verb, remote->verb);
    }
    offer_verbs(&similar, others);
    offer_verbs(&similar, verbs);
    if (is_schedule) similar.name = "schedule";
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
    static const char *const with_value[] = {"--server",          "--key-file",
                                             "--timeout",         "--store",
                                             "--store-namespace", "--store-password-file"};
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

/* Returns whether the arguments ask for the help of a verb: not those of a program after "--", nor
 * a value of an option. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        if (is_help && argv[i - 1][0] != '-') return true;
    }
    return false;
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
    bool is_own = argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
                  strcmp(argv[1], "-h") == 0;
    if (is_own) {
        show_help(others);
        return CLI_OK;
    }
    replace_alias(&argv[1]);
    const struct cli_remote_verb *remote = bel__remote_verb_find(argv[1]);
    char *asked[] = {argv[1], flag, NULL};
    int status = CLI_OK;
    if (remote != NULL) {
        bel__remote_verb_help(remote);
    } else {
        status = run(2, asked, others);
    }
    if (status == CLI_OK) bel__examples_print(argv[1]);
    return status;
}

/* A failed write to stdout, other than EPIPE, is a failure of the command. */
static int check_output(int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0) return status;
    if (errno == EPIPE) return status; /* the reader has closed the pipe, e.g. head */
    fprintf(stderr, "belfry: cannot write to standard output: %s\n", bel__cli_problem(errno));
    return status == CLI_OK ? CLI_FAILED : status;
}

int bel__cli_run(int argc, char **argv, const struct cli_verb *others,
                 const struct cli_stores *stores)
{
    char version[] = "version";
    if (argc < 2) {
        show_help(others);
        return CLI_USAGE;
    }
    bel__cli_store_use(stores);
    move_verb(argc, argv);
    replace_alias(&argv[1]);
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) argv[1] = version;
    bool wants_help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (wants_help || strcmp(name, "help") == 0) {
        return check_output(help(argc - 1, argv + 1, others));
    }
    int status = run(argc - 1, argv + 1, others);
    bel__cli_store_close();
    if (status == CLI_OK && asks_for_help(argc - 1, argv + 1)) bel__examples_print(argv[1]);
    return check_output(status);
}
