/* SPDX-License-Identifier: MIT */

/*
 * The script of each shell lists the options of each verb, whether an option takes a value, and
 * which values it takes. A struct choice is one option. The options of verbs that are not server
 * commands are in tables here; tests/cli/completion.sh compares them with the help of the verb.
 *
 * To complete a topic the script runs belfry topics; an id, belfry list; a job, belfry job list; a
 * resource, belfry limit; each with a timeout of 1 s.
 */
#include "cli/completion.h"

#include "cli/remote_verb.h"
#include "commands/arguments.h"
#include "commands/settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TOPICS_COMMAND     "belfry topics --timeout 1s 2>/dev/null | cut -f 1"
#define IDS_COMMAND(topic) "belfry list " topic " --count 1000 --timeout 1s 2>/dev/null | cut -f 1"

#define RESOURCES_COMMAND                                                                          \
    "belfry limit --count 1000 --timeout 1s 2>/dev/null | sed \"s/.*[[:space:]]//\""

#define JOB_WORDS    "submit get watch explain list cancel pause resume"
#define JOBS_COMMAND "belfry job list --count 1000 --timeout 1s 2>/dev/null | cut -f 1"

static const char usage[] =
    "usage: belfry completion bash|zsh|fish\n"
    "\n"
    "Prints a script that completes verbs, options, their values and topics. To install:\n"
    "\n"
    "    bash    source <(belfry completion bash), in ~/.bashrc\n"
    "    zsh     belfry completion zsh > _belfry, in a folder of $fpath\n"
    "    fish    belfry completion fish > ~/.config/fish/completions/belfry.fish\n";

/* --- options --- */

enum follows {
    FOLLOWS_NOTHING,
    FOLLOWS_VALUE, /* one of `words`, if not NULL */
    FOLLOWS_PATH,
};

struct choice {
    const char *name; /* without the dashes */
    const char *help;
    enum follows follows;
    const char *const *words; /* ends with NULL; or NULL */
};

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const states[] = {"scheduled", "ready",     "leased",  "blocked", "done",
                                     "dead",      "cancelled", "expired", "skipped", NULL};
static const char *const purge_states[] = {"scheduled", "ready",   "done",    "dead",
                                           "cancelled", "expired", "skipped", NULL};
static const char *const list_states[] = {"scheduled", "ready", "leased",    "blocked",
                                          "done",      "dead",  "cancelled", "expired",
                                          "skipped",   "plan",  NULL};

static const struct choice connecting[] = {
    {"server", "host:port", FOLLOWS_VALUE, NULL},
    {"key-file", "file with the API key", FOLLOWS_PATH, NULL},
    {"timeout", "how long to wait for a reply (default 30s)", FOLLOWS_VALUE, NULL},
    {"json", "print JSON", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

/* Options for a store, of verbs that work on one: all that connect but top and backup. */
static const struct choice storing[] = {
    {"store", "URL of a store, instead of a server", FOLLOWS_VALUE, NULL},
    {"store-namespace", "prefix of the keys in the store", FOLLOWS_VALUE, NULL},
    {"store-password-file", "file with the password of the store", FOLLOWS_PATH, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

/* The options of verbs that are not server commands. */
static const struct choice work[] = {
    {"jobs", "programs at once (default 5)", FOLLOWS_VALUE, NULL},
    {"lease", "how long a claim lasts", FOLLOWS_VALUE, NULL},
    {"grace", "time to finish after SIGTERM (default 15s)", FOLLOWS_VALUE, NULL},
    {"name", "name of the worker", FOLLOWS_VALUE, NULL},
    {"result", "standard output of the program is the result", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice job[] = {
    {"id", "id of the job, if the file has none", FOLLOWS_VALUE, NULL},
    {"replace", "replace a job with this id", FOLLOWS_NOTHING, NULL},
    {"topic", "topic of all tasks of a file of lines", FOLLOWS_VALUE, NULL},
    {"state", "only jobs in this state", FOLLOWS_VALUE,
     WORDS("running", "paused", "done", "failed", "cancelled", "scheduled")},
    {"count", "maximum number of jobs", FOLLOWS_VALUE, NULL},
    {"interval", "time between updates (default 1s)", FOLLOWS_VALUE, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice bench[] = {
    {"timers", "number of timers (default 100000)", FOLLOWS_VALUE, NULL},
    {"bytes", "size of a payload (default 100)", FOLLOWS_VALUE, NULL},
    {"connections", "number of connections (default 4)", FOLLOWS_VALUE, NULL},
    {"pipeline", "commands in flight per connection (default 64)", FOLLOWS_VALUE, NULL},
    {"name", "use the topics bench/NAME/due and bench/NAME/later", FOLLOWS_VALUE, NULL},
    {"purge", "only delete the timers of a bench that was killed", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice copy[] = {
    {"from", "store to copy from: embedded:DIR or redis://HOST", FOLLOWS_VALUE, NULL},
    {"to", "store to copy to", FOLLOWS_VALUE, NULL},
    {"merge", "keep the timers of the target", FOLLOWS_NOTHING, NULL},
    {"move", "delete everything in the source afterwards", FOLLOWS_NOTHING, NULL},
    {"without", "what to leave out, separated by commas", FOLLOWS_VALUE,
     WORDS("jobs", "groups", "resources", "concurrency")},
    {"force", "although servers on Redis use a store", FOLLOWS_NOTHING, NULL},
    {"dry-run", "only tell what would be copied", FOLLOWS_NOTHING, NULL},
    {"json", "print the result as JSON", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice export[] = {
    {"state", "only timers in this state", FOLLOWS_VALUE, states},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice top[] = {
    {"interval", "time between updates (default 1s)", FOLLOWS_VALUE, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice import[] = {
    {"topic", "topic of all timers, overrides that of a line", FOLLOWS_VALUE, NULL},
    {"conflict", "what to do if the id exists (default keep)", FOLLOWS_VALUE,
     WORDS("keep", "update", "replace", "reject", "earliest", "latest")},
    {"verbose", "report every line", FOLLOWS_NOTHING, NULL},
    {"start", "number of the first line to import", FOLLOWS_VALUE, NULL},
    {"crontab", "import the plans of a crontab", FOLLOWS_PATH, NULL},
    {"tz", "time zone of the crontab", FOLLOWS_VALUE, NULL},
    {"system", "the crontab has a user before each command", FOLLOWS_NOTHING, NULL},
    {"prune", "cancel plans of earlier crontabs that are not in the file", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice next[] = {
    {"tz", "time zone of the rule (default UTC)", FOLLOWS_VALUE, NULL},
    {"from", "print times after this time (default now)", FOLLOWS_VALUE, NULL},
    {"count", "number of times to print (default 5)", FOLLOWS_VALUE, NULL},
    {"back", "print the times up to now instead", FOLLOWS_NOTHING, NULL},
    {"gap", "what to do with a local time that a clock change skips", FOLLOWS_VALUE,
     WORDS("next", "skip")},
    {"fold", "what to do with a local time that a clock change repeats", FOLLOWS_VALUE,
     WORDS("first", "second", "both")},
    {"json", "print JSON", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice ping[] = {
    {"wait", "try to connect for this long", FOLLOWS_VALUE, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice none[] = {
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice doctor[] = {
    {"store", "URL of a store on Redis", FOLLOWS_VALUE, NULL},
    {"store-namespace", "prefix of the keys in the store", FOLLOWS_VALUE, NULL},
    {"store-password-file", "file with the password of the store", FOLLOWS_PATH, NULL},
    {"json", "print JSON", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice only_json[] = {
    {"json", "print JSON", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice serve[] = {
    {"data", "data directory (default ./belfry-data)", FOLLOWS_PATH, NULL},
    {"resp", "Redis clients (default 127.0.0.1:7878)", FOLLOWS_VALUE, NULL},
    {"port", "port of --resp alone", FOLLOWS_VALUE, NULL},
    {"http", "HTTP, or none (default 127.0.0.1:7879)", FOLLOWS_VALUE, NULL},
    {"store", "on disk (default), in memory, or redis://", FOLLOWS_VALUE,
     WORDS("embedded", "memory", "redis://")},
    {"store-namespace", "prefix of the keys in Redis (belfry)", FOLLOWS_VALUE, NULL},
    {"store-password-file", "has the password of the URL", FOLLOWS_PATH, NULL},
    {"store-wait", "how long a start waits for Redis (30s)", FOLLOWS_VALUE, NULL},
    {"replicas", "of Redis that durability wait needs", FOLLOWS_VALUE, NULL},
    {"durability", "commit (default): sync before the reply", FOLLOWS_VALUE,
     WORDS("commit", "interval", "none", "async", "wait")},
    {"durability-interval", "longest time until a sync (default 1s)", FOLLOWS_VALUE, NULL},
    {"sync", "where syncs wait (default: by disk speed)", FOLLOWS_VALUE,
     WORDS("auto", "loop", "thread")},
    {"clock", "virtual: moved only by CLOCK ADVANCE", FOLLOWS_VALUE, WORDS("system", "virtual")},
    {"keys", "API keys, required beyond localhost", FOLLOWS_PATH, NULL},
    {"auth-timeout", "time to send a right key (default 10s)", FOLLOWS_VALUE, NULL},
    {"max-clients", "clients of each port (default 10000)", FOLLOWS_VALUE, NULL},
    {"max-payload", "largest payload, up to 64M (default 1M)", FOLLOWS_VALUE, NULL},
    {"max-job", "largest JSON text of a job, up to 256M (default 16M)", FOLLOWS_VALUE, NULL},
    {"job-tasks", "tasks of a job (default 10000)", FOLLOWS_VALUE, NULL},
    {"job-edges", "dependencies of a job (default 100000)", FOLLOWS_VALUE, NULL},
    {"job-depth", "depth of then, up to 20 (default 5)", FOLLOWS_VALUE, NULL},
    {"job-retention", "how long an ended job is known (default 24h)", FOLLOWS_VALUE, NULL},
    {"output-limit", "unread output of a client (default 8M)", FOLLOWS_VALUE, NULL},
    {"output-total", "unread output of all (default 256M)", FOLLOWS_VALUE, NULL},
    {"input-total", "incomplete requests of all (default 256M)", FOLLOWS_VALUE, NULL},
    {"check-time", "longest check before the start (100ms)", FOLLOWS_VALUE, NULL},
    {"memory", "memory limit (default half of the RAM)", FOLLOWS_VALUE, NULL},
    {"scrub", "interval of tree checks (default 1d)", FOLLOWS_VALUE, NULL},
    {"log", "format, to standard error (default text)", FOLLOWS_VALUE, WORDS("text", "json")},
    {"log-level", "least severe level to log (default info)", FOLLOWS_VALUE,
     WORDS("error", "warn", "info", "debug")},
    {"port-file", "write ports here after start: resp PORT", FOLLOWS_PATH, NULL},
    {"config", "file of name = value lines; flags win", FOLLOWS_PATH, NULL},
    {"hash-key", "read a key, print its line for --keys", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice schedule_file[] = {
    {"file", "read the payload from a file", FOLLOWS_PATH, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice agenda_next[] = {
    {"next", "list the N timers that are due next", FOLLOWS_VALUE, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice zone_of_times[] = {
    {"tz", "zone of local times", FOLLOWS_VALUE, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

static const struct choice create_topic[] = {
    {"create", "create the topic if it does not exist", FOLLOWS_NOTHING, NULL},
    {NULL, NULL, FOLLOWS_NOTHING, NULL},
};

/* What the positional arguments of a verb are. */
enum takes {
    TAKES_ANY,
    TAKES_TOPIC,
    TAKES_IDS, /* of the topic that comes first */
    TAKES_PATH,
    TAKES_VERB,
    TAKES_SHELL,
    TAKES_JOB,
    TAKES_RESOURCE,
    TAKES_SETTINGS, /* of the topic that comes first */
};

static const struct verb {
    const char *name;
    const struct choice *choices;
    bool connects; /* connects to a server, so has the options of connect.h */
    enum takes takes;
} known[] = {
    {"work", work, true, TAKES_TOPIC},        {"job", job, true, TAKES_JOB},
    {"bench", bench, true, TAKES_ANY},        {"ping", ping, true, TAKES_ANY},
    {"info", none, true, TAKES_ANY},          {"next", next, false, TAKES_ANY},
    {"version", only_json, false, TAKES_ANY}, {"doctor", doctor, false, TAKES_PATH},
    {"serve", serve, false, TAKES_ANY},       {"top", top, true, TAKES_ANY},
    {"export", export, true, TAKES_TOPIC},    {"import", import, true, TAKES_PATH},
    {"copy", copy, false, TAKES_ANY},         {"help", NULL, false, TAKES_VERB},
    {"completion", NULL, false, TAKES_SHELL},
};

static const struct verb *find_verb(const char *name)
{
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) return &known[i];
    }
    return NULL;
}

static const struct bel_command_entry *command_of(const char *verb)
{
    const struct cli_remote_verb *remote = bel__remote_verb_find(verb);
    if (remote == NULL) return NULL;
    const char *name = remote->other != NULL ? remote->other : remote->command;
    return bel__command_find((struct bel_view){name, strlen(name)});
}

static bool is_id(const struct bel_argument *argument)
{
    return strcmp(argument->name, "id") == 0;
}

static enum takes takes_of(const char *verb)
{
    const struct bel_command_entry *command = command_of(verb);
    const struct verb *other = find_verb(verb);
    if (command == NULL) return other != NULL ? other->takes : TAKES_ANY;
    if (command == &bel__commands[BEL_COMMAND_LIMIT]) return TAKES_RESOURCE;
    if (command == &bel__commands[BEL_COMMAND_CONFIGURE]) return TAKES_SETTINGS;
    bool is_topic =
        command->arguments_count > 0 && command->arguments[0].type == BEL_ARGUMENT_TOPIC;
    bool has_id = is_topic && command->arguments_count > 1 && is_id(&command->arguments[1]);
    return has_id ? TAKES_IDS : is_topic ? TAKES_TOPIC : TAKES_ANY;
}

/* Returns whether a command has times, and no zone. */
static bool has_only_times(const struct bel_command_entry *command)
{
    bool has_time = false;
    for (size_t i = 0; i < command->arguments_count; i++) {
        if (command->arguments[i].type == BEL_ARGUMENT_ZONE) return false;
        has_time = has_time || command->arguments[i].type == BEL_ARGUMENT_TIME;
    }
    return has_time;
}

/* Is called with each choice of a verb. */
typedef void see_choice(const char *verb, const struct choice *choice);

static void see_all(const char *verb, const struct choice *choices, see_choice *see)
{
    for (; choices != NULL && choices->name != NULL; choices++) {
        see(verb, choices);
    }
}

static void see_argument(const char *verb, const struct bel_argument *argument, see_choice *see)
{
    char name[32];
    size_t bytes = strlen(argument->name);
    if (argument->name[0] < 'A' || argument->name[0] > 'Z' || bytes >= sizeof name) return;
    for (size_t i = 0; i <= bytes; i++) {
        char letter = argument->name[i];
        name[i] = (char)(letter >= 'A' && letter <= 'Z' ? letter + 'a' - 'A' : letter);
    }
    bool is_flag = argument->type == BEL_ARGUMENT_FLAG;
    struct choice choice = {name, argument->help, is_flag ? FOLLOWS_NOTHING : FOLLOWS_VALUE,
                            argument->words};
    if (argument->type == BEL_ARGUMENT_STATE) {
        bool is_purge = strcmp(verb, "purge") == 0;
        choice.words = is_purge ? purge_states : strcmp(verb, "list") == 0 ? list_states : states;
    }
    see(verb, &choice);
}

static void each_choice(const char *verb, see_choice *see)
{
    const struct cli_remote_verb *remote = bel__remote_verb_find(verb);
    const struct verb *other = find_verb(verb);
    if (other != NULL) see_all(verb, other->choices, see);
    if (remote != NULL) {
        const struct bel_command_entry *command =
            bel__command_find((struct bel_view){remote->command, strlen(remote->command)});
        for (size_t i = 0; i < command->arguments_count; i++) {
            see_argument(verb, &command->arguments[i], see);
        }
        if (strcmp(verb, "schedule") == 0) see_all(verb, schedule_file, see);
        if (strcmp(verb, "agenda") == 0) see_all(verb, agenda_next, see);
        if (has_only_times(command)) see_all(verb, zone_of_times, see);
        bool may_create = strcmp(verb, "pause") == 0 || strcmp(verb, "configure") == 0;
        if (may_create) see_all(verb, create_topic, see);
    }
    bool connects = remote != NULL || (other != NULL && other->connects);
    if (connects) see_all(verb, connecting, see);
    if (connects && strcmp(verb, "top") != 0 && strcmp(verb, "backup") != 0) {
        see_all(verb, storing, see);
    }
}

/* --- the verbs --- */

typedef void see_verb(const char *name, const char *help);

static void each_verb(const struct cli_verb *verbs, const struct cli_verb *others, see_verb *see)
{
    for (; others->name != NULL; others++) {
        see(others->name, others->help);
    }
    for (const struct cli_remote_verb *remote = NULL;
         (remote = bel__remote_verb_next(remote)) != NULL;) {
        see(remote->verb, bel__remote_verb_summary(remote));
    }
    for (; verbs->name != NULL; verbs++) {
        see(verbs->name, verbs->help);
    }
    see("help", "list the verbs, or with VERB its options");
}

static void print_name(const char *name, const char *help)
{
    (void)help;
    printf(" %s", name);
}

/* Prints a text for use in single quotes, with a backslash before each character of `escaped`. */
static void print_quoted(const char *text, const char *escaped)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(escaped, *text) != NULL) (void)putchar('\\');
        (void)putchar(*text);
    }
}

static void print_words(const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        printf("%s%s", i > 0 ? " " : "", words[i]);
    }
}

/* --- bash --- */

static void bash_option(const char *verb, const struct choice *choice)
{
    (void)verb;
    printf(" --%s", choice->name);
}

/* Prints the case of an option that takes a value: which words complete it. */
static void bash_value(const char *verb, const struct choice *choice)
{
    if (choice->follows == FOLLOWS_NOTHING) return;
    printf("    %s:--%s) ", verb, choice->name);
    if (choice->words != NULL) {
        printf("words='");
        print_words(choice->words);
        printf("'");
    } else {
        printf("words=%s", choice->follows == FOLLOWS_PATH ? "PATH" : "NONE");
    }
    printf(" ;;\n");
}

static void bash_values(const char *name, const char *help)
{
    (void)help;
    each_choice(name, bash_value);
}

static void bash_options(const char *name, const char *help)
{
    static const char *const takes[] = {[TAKES_ANY] = "",
                                        [TAKES_TOPIC] = "; takes=topic",
                                        [TAKES_IDS] = "; takes=ids",
                                        [TAKES_PATH] = "; takes=path",
                                        [TAKES_VERB] = "; words=$verbs",
                                        [TAKES_SHELL] = "; words='bash zsh fish'",
                                        [TAKES_JOB] = "; takes=job",
                                        [TAKES_RESOURCE] = "; takes=resource",
                                        [TAKES_SETTINGS] = "; takes=settings"};
    (void)help;
    printf("    %s) words='", name);
    each_choice(name, bash_option);
    printf("'%s ;;\n", takes[takes_of(name)]);
}

/* What follows belfry job: a subcommand, then a file or the id of a job. */
static const char bash_job[] =
    "        if [ \"$takes\" = job ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
    "            [[ $current == -* ]] || words='" JOB_WORDS "'\n"
    "        elif [ \"$takes\" = job ] && [ \"${COMP_WORDS[2]}\" = submit ]; then\n"
    "            takes=path\n"
    "        elif [ \"$takes\" = job ] && [[ $current != -* ]]; then\n"
    "            words=$(" JOBS_COMMAND ")\n"
    "        fi\n";

/* Prints "lease= retry= ...". */
static void print_settings(void)
{
    for (const struct bel_setting_entry *setting = bel__setting_entries; setting->name != NULL;
         setting++) {
        printf("%s%s=", setting == bel__setting_entries ? "" : " ", setting->name);
    }
}

/* What follows belfry limit and belfry configure: a resource; a topic and its settings. */
static void bash_settings(void)
{
    printf("        if [ \"$takes\" = resource ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
           "            [[ $current == -* ]] || words=$(" RESOURCES_COMMAND ")\n"
           "        elif [ \"$takes\" = settings ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
           "            takes=topic\n"
           "        elif [ \"$takes\" = settings ] && [[ $current != -* ]]; then\n"
           "            compopt -o nospace 2>/dev/null\n"
           "            words='");
    print_settings();
    printf("'\n"
           "        fi\n");
}

static void print_bash(const struct cli_verb *verbs, const struct cli_verb *others)
{
    printf("# For bash: source <(belfry completion bash)\n"
           "_belfry() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words= takes= verbs\n"
           "    local before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    verbs='");
    each_verb(verbs, others, print_name);
    printf("'\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$verbs\" -- \"$current\")\n"
           "        return\n"
           "    fi\n"
           "    case $verb:$before in\n");
    each_verb(verbs, others, bash_values);
    printf("    esac\n"
           "    [ \"$words\" != NONE ] || return\n"
           "    [ \"$words\" != PATH ] || takes=path\n"
           "    if [ -z \"$words\" ]; then\n"
           "        case $verb in\n");
    each_verb(verbs, others, bash_options);
    printf("        esac\n%s", bash_job);
    bash_settings();
    printf(
        "        if [ \"$takes\" = ids ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
        "            [[ $current == -* ]] || words=$(" IDS_COMMAND(
            "\"${COMP_WORDS[2]}\"") ")\n"
                                    "        elif [ \"$takes\" = topic ] || [ \"$takes\" = ids ]; "
                                    "then\n"
                                    "            [[ $current == -* ]] || words=$(" TOPICS_COMMAND
                                    ")\n"
                                    "        fi\n"
                                    "    fi\n"
                                    "    if [ \"$takes\" = path ] && [[ $current != -* ]]; then\n"
                                    "        compopt -o filenames 2>/dev/null\n"
                                    "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                                    "        return\n"
                                    "    fi\n"
                                    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
                                    "\"$current\")\n"
                                    "}\n"
                                    "complete -F _belfry belfry\n");
}

/* --- zsh --- */

static void zsh_verb(const char *name, const char *help)
{
    printf("        '%s:", name);
    print_quoted(help, "");
    printf("'\n");
}

static void zsh_option(const char *verb, const struct choice *choice)
{
    (void)verb;
    printf(" \\\n            '*--%s[", choice->name);
    print_quoted(choice->help, "[]");
    printf("]");
    if (choice->words != NULL) {
        printf(":value:(");
        print_words(choice->words);
        printf(")");
    } else if (choice->follows != FOLLOWS_NOTHING) {
        printf(choice->follows == FOLLOWS_PATH ? ":path:_files" : ":value: ");
    }
    printf("'");
}

static const char zsh_settings[] = "1:topic:_belfry_topics' '*:setting:_belfry_settings";
static const char zsh_job[] = "1:subcommand:(" JOB_WORDS ")' '*:job:_belfry_job";

static void zsh_options(const char *name, const char *help)
{
    static const char *const takes[] = {[TAKES_ANY] = "*:argument: ",
                                        [TAKES_TOPIC] = "*:topic:_belfry_topics",
                                        [TAKES_IDS] = "1:topic:_belfry_topics' '*:id:_belfry_ids",
                                        [TAKES_PATH] = "*:path:_files",
                                        [TAKES_VERB] = "*:verb:_belfry_verbs",
                                        [TAKES_SHELL] = "*:shell:(bash zsh fish)",
                                        [TAKES_JOB] = zsh_job,
                                        [TAKES_RESOURCE] = "1:resource:_belfry_resources",
                                        [TAKES_SETTINGS] = zsh_settings};
    (void)help;
    printf("    %s)\n        _arguments '%s'", name, takes[takes_of(name)]);
    each_choice(name, zsh_option);
    printf("\n        ;;\n");
}

static void print_zsh(const struct cli_verb *verbs, const struct cli_verb *others)
{
    printf("#compdef belfry\n"
           "# For zsh: belfry completion zsh > _belfry, in a folder of $fpath\n"
           "_belfry_topics() {\n"
           "    local -a topics\n"
           "    topics=(${(f)\"$(" TOPICS_COMMAND ")\"})\n"
           "    compadd -a topics\n"
           "}\n"
           "_belfry_resources() {\n"
           "    local -a resources\n"
           "    resources=(${(f)\"$(" RESOURCES_COMMAND ")\"})\n"
           "    compadd -a resources\n"
           "}\n"
           "_belfry_job() {\n"
           "    local -a jobs\n"
           "    [ \"$words[2]\" = submit ] && { _files; return; }\n"
           "    jobs=(${(f)\"$(" JOBS_COMMAND ")\"})\n"
           "    compadd -a jobs\n"
           "}\n"
           "_belfry_settings() {\n"
           "    compadd -S '' -- ");
    print_settings();
    printf("\n"
           "}\n"
           "_belfry_ids() {\n"
           "    local -a ids\n"
           "    ids=(${(f)\"$(" IDS_COMMAND("\"$words[2]\"") ")\"})\n"
                                                             "    compadd -a ids\n"
                                                             "}\n"
                                                             "_belfry_verbs() {\n"
                                                             "    local -a verbs\n"
                                                             "    verbs=(\n");
    each_verb(verbs, others, zsh_verb);
    printf("    )\n"
           "    _describe -t verbs verb verbs\n"
           "}\n"
           "_belfry() {\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _belfry_verbs\n"
           "        return\n"
           "    fi\n"
           "    local verb=$words[2]\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $verb in\n");
    each_verb(verbs, others, zsh_options);
    printf("    esac\n"
           "}\n"
           "if [ \"$funcstack[1]\" = _belfry ]; then\n"
           "    _belfry \"$@\"\n"
           "else\n"
           "    compdef _belfry belfry\n"
           "fi\n");
}

/* --- fish --- */

static void fish_option(const char *verb, const struct choice *choice)
{
    printf("complete -c belfry -n '__fish_seen_subcommand_from %s' -l %s", verb, choice->name);
    if (choice->follows == FOLLOWS_VALUE) printf(" -x");
    if (choice->follows == FOLLOWS_PATH) printf(" -r -F");
    if (choice->words != NULL) {
        printf(" -a '");
        print_words(choice->words);
        printf("'");
    }
    printf(" -d '");
    print_quoted(choice->help, "\\");
    printf("'\n");
}

static void fish_verb(const char *name, const char *help)
{
    printf("complete -c belfry -n __fish_use_subcommand -a %s -d '", name);
    print_quoted(help, "\\");
    printf("'\n");
    each_choice(name, fish_option);
    enum takes takes = takes_of(name);
    if (takes == TAKES_ANY || takes == TAKES_VERB) return;
    if (takes == TAKES_IDS) {
        const char *count = "test (count (commandline -opc))";
        printf("complete -c belfry -n '__fish_seen_subcommand_from %s; and %s -lt 3' -a '(%s)'\n",
               name, count, TOPICS_COMMAND);
        printf("complete -c belfry -n '__fish_seen_subcommand_from %s; and %s -ge 3' -a '(%s)'\n",
               name, count, IDS_COMMAND("(commandline -opc)[3]"));
        return;
    }
    if (takes == TAKES_SETTINGS) {
        const char *count = "test (count (commandline -opc))";
        printf("complete -c belfry -n '__fish_seen_subcommand_from %s; and %s -lt 3' -a '(%s)'\n",
               name, count, TOPICS_COMMAND);
        printf("complete -c belfry -n '__fish_seen_subcommand_from %s; and %s -ge 3' -a '", name,
               count);
        print_settings();
        printf("'\n");
        return;
    }
    if (takes == TAKES_JOB) {
        const char *count = "test (count (commandline -opc))";
        printf("complete -c belfry -n '__fish_seen_subcommand_from %s; and %s -lt 3' -a '%s'\n",
               name, count, JOB_WORDS);
        printf("complete -c belfry -n '__fish_seen_subcommand_from %s; and %s -ge 3' -F "
               "-a '(%s)'\n",
               name, count, JOBS_COMMAND);
        return;
    }
    printf("complete -c belfry -n '__fish_seen_subcommand_from %s' %s\n", name,
           takes == TAKES_TOPIC      ? "-a '(" TOPICS_COMMAND ")'"
           : takes == TAKES_RESOURCE ? "-a '(" RESOURCES_COMMAND ")'"
           : takes == TAKES_PATH     ? "-F"
                                     : "-a 'bash zsh fish'");
}

static void print_fish(const struct cli_verb *verbs, const struct cli_verb *others)
{
    printf("# For fish: belfry completion fish > ~/.config/fish/completions/belfry.fish\n"
           "complete -c belfry -f\n");
    each_verb(verbs, others, fish_verb);
}

int bel__cli_completion(int argc, char **argv, const struct cli_verb *verbs,
                        const struct cli_verb *others)
{
    const char *shell = argc == 2 ? argv[1] : "";
    if (strcmp(shell, "--help") == 0 || strcmp(shell, "-h") == 0) {
        fputs(usage, stdout);
    } else if (strcmp(shell, "bash") == 0) {
        print_bash(verbs, others);
    } else if (strcmp(shell, "zsh") == 0) {
        print_zsh(verbs, others);
    } else if (strcmp(shell, "fish") == 0) {
        print_fish(verbs, others);
    } else {
        fprintf(stderr, "belfry completion: %s%s%s\n",
                argc < 2   ? "missing the name of a shell"
                : argc > 2 ? "expected one shell"
                           : "unknown shell '",
                shell, argc == 2 ? "'" : "");
        fputs(usage, stderr);
        return CLI_USAGE;
    }
    return CLI_OK;
}
