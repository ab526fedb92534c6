/* SPDX-License-Identifier: MIT */

/* The table of verbs that send a command to a server, and how such a verb runs. */
#include "cli/remote_verb.h"

#include "belfry/instant.h"
#include "belfry/zone.h"
#include "cli/duration.h"
#include "cli/job_hint.h"
#include "cli/print.h"
#include "cli/resource_hint.h"
#include "cli/topic_hint.h"
#include "commands/arguments.h"
#include "commands/option_names.h"
#include "commands/settings.h"
#include "core/similar.h"
#include "core/view.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MESSAGE_BYTES = 1024,
    SETTING_BYTES = 64,
    PAST_MS = 60 * 1000, /* a time just now is no mistake */
};

static const struct cli_remote_verb remotes[] = {
    {"schedule", "SCHEDULE", NULL, bel__show_id, "id", CLI_OK},
    {"cancel", "CANCEL", NULL, bel__show_count, "cancelled", CLI_NOT_FOUND},
    {"reschedule", "RESCHEDULE", NULL, bel__show_count, "rescheduled", CLI_NOT_FOUND},
    {"get", "GET", NULL, bel__show_map, NULL, CLI_NOT_FOUND},
    {"list", "LIST", NULL, bel__show_list, NULL, CLI_OK},
    {"explain", "EXPLAIN", NULL, bel__show_explanation, "lines", CLI_OK},
    {"claim", "CLAIM", NULL, bel__show_deliveries, NULL, CLI_TIMED_OUT},
    {"ack", "ACK", NULL, bel__show_acks, "acked", CLI_CONFLICT},
    {"fail", "FAIL", NULL, bel__show_verdict, NULL, CLI_OK},
    {"release", "RELEASE", NULL, bel__show_count, "released", CLI_CONFLICT},
    {"extend", "EXTEND", NULL, bel__show_count, "lease_ms", CLI_CONFLICT},
    {"topics", "TOPICS", "TOPIC", bel__show_topics, NULL, CLI_NOT_FOUND},
    {"configure", "CONFIGURE", NULL, bel__show_ok, NULL, CLI_OK},
    {"pause", "PAUSE", NULL, bel__show_ok, NULL, CLI_OK},
    {"resume", "RESUME", NULL, bel__show_ok, NULL, CLI_OK},
    {"revive", "REVIVE", NULL, bel__show_count, "revived", CLI_NOT_FOUND},
    {"purge", "PURGE", NULL, bel__show_count, "purged", CLI_OK},
    {"agenda", "AGENDA", NULL, bel__show_agenda, NULL, CLI_OK},
    {"limit", "LIMIT", NULL, bel__show_limits, "changed", CLI_OK},
    {"clock", "CLOCK", NULL, bel__show_clock, "now_ms", CLI_OK},
    {"backup", "BACKUP", NULL, bel__show_ok, NULL, CLI_OK},
};

enum {
    REMOTES = sizeof remotes / sizeof remotes[0]
};

const struct cli_remote_verb *bel__remote_verb_find(const char *verb)
{
    for (unsigned i = 0; i < REMOTES; i++) {
        if (strcmp(remotes[i].verb, verb) == 0) return &remotes[i];
    }
    return NULL;
}

const struct cli_remote_verb *bel__remote_verb_next(const struct cli_remote_verb *remote)
{
    if (remote == NULL) return remotes;
    return remote + 1 < remotes + REMOTES ? remote + 1 : NULL;
}

static const struct bel_command_entry *entry_of(const char *name)
{
    const struct bel_command_entry *entry =
        bel__command_find((struct bel_view){name, strlen(name)});
    assert(entry != NULL);
    return entry;
}

void bel__remote_verb_help(const struct cli_remote_verb *remote)
{
    const struct bel_command_entry *other = NULL;
    if (remote->other != NULL) other = entry_of(remote->other);
    bel__request_help(remote->verb, entry_of(remote->command), other);
}

const char *bel__remote_verb_summary(const struct cli_remote_verb *remote)
{
    return entry_of(remote->command)->help;
}

/* Sets the timeout of the call: --timeout, plus --wait, for which the server may hold the reply. */
static int set_timeout(const struct cli_request *request, struct bel_client *client)
{
    struct bel_text_error why;
    uint64_t wait = 0;
    uint32_t timeout =
        request->connect.timeout_ms > 0 ? request->connect.timeout_ms : CLI_TIMEOUT_MS;
    if (request->wait != NULL) {
        int err = bel__cli_duration(request->wait, &wait, &why);
        if (err) return bel__cli_refuse_value("--wait", "a duration", request->wait, &why);
    }
    wait += timeout;
    bel_client_set_timeout(client, wait < UINT32_MAX ? (uint32_t)wait : UINT32_MAX);
    return CLI_OK;
}

/* Returns whether the command is about a topic that exists already: not SCHEDULE, for example. */
static bool needs_topic(const struct cli_request *request)
{
    static const enum bel_command_place places[] = {
        BEL_COMMAND_CANCEL, BEL_COMMAND_RESCHEDULE, BEL_COMMAND_GET,   BEL_COMMAND_LIST,
        BEL_COMMAND_REVIVE, BEL_COMMAND_PURGE,      BEL_COMMAND_TOPIC, BEL_COMMAND_EXPLAIN,
    };
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (request->command == &bel__commands[places[i]]) return true;
    }
    return false;
}

/* Returns whether PAUSE or RESUME would create the topic, which on the command line is a typo; or
 * CONFIGURE one whose name is similar to that of another. */
static bool would_create(const struct cli_request *request, struct bel_client *client)
{
    if (request->command == &bel__commands[BEL_COMMAND_CONFIGURE]) {
        return !request->creates && bel__topic_hint_typo(client, request->args[1]);
    }
    bool is_pause = request->command == &bel__commands[BEL_COMMAND_PAUSE] ||
                    request->command == &bel__commands[BEL_COMMAND_RESUME];
    if (!is_pause || request->creates || !bel__topic_hint(client, request->args[1])) return false;
    (void)bel__job_hint(client, request->args[1], request->verb);
    return true;
}

/* Says that a topic does not exist, or that the id is that of a job. Returns whether the topic does
 * not exist. */
static bool hint_at_missing(const struct cli_request *request, struct bel_client *client)
{
    const char *what = "get";
    if (!needs_topic(request)) return false;
    bool is_missing = bel__topic_hint(client, request->args[1]);
    if (request->words_count < 2) return is_missing;
    if (request->command == &bel__commands[BEL_COMMAND_CANCEL]) what = "cancel";
    if (request->command == &bel__commands[BEL_COMMAND_EXPLAIN]) what = "explain";
    (void)bel__job_hint(client, request->args[2], what);
    return is_missing;
}

/* Says which timer a command has not found in a state that it changes. */
static void hint_at_ids(const struct cli_request *request)
{
    const char *what = NULL;
    if (request->command == &bel__commands[BEL_COMMAND_CANCEL]) what = "unfinished";
    if (request->command == &bel__commands[BEL_COMMAND_RESCHEDULE]) what = "scheduled or ready";
    if (request->command == &bel__commands[BEL_COMMAND_REVIVE]) what = "dead";
    if (what == NULL || request->words_count != 2) return;
    struct bel_view topic = request->args[1], id = request->args[2];
    bool is_revive = request->command == &bel__commands[BEL_COMMAND_REVIVE];
    bool is_all = bel__view_is(id, "*");
    if (is_all && !is_revive) {
        fprintf(stderr,
                "belfry: %s takes ids, and * is none; to delete all timers of a state: belfry "
                "purge %.*s --state scheduled, then --state ready\n",
                request->verb, (int)topic.bytes, (const char *)topic.data);
        return;
    }
    fprintf(stderr, "belfry: topic '%.*s' has no %s timer%s%.*s%s\n", (int)topic.bytes,
            (const char *)topic.data, what, is_all ? "" : " '", is_all ? 0 : (int)id.bytes,
            (const char *)id.data, is_all ? "" : "'");
}

/* Says why a command that replied with 0 has changed nothing, if that is known. */
static void hint_at_zero(const struct cli_request *request, struct bel_client *client)
{
    char state[CLI_JOB_STATE_BYTES];
    if (request->command == &bel__commands[BEL_COMMAND_ACK]) {
        fputs("belfry: no lease has this token: the lease has expired, the timer was cancelled or "
              "replaced, or the token is wrong\n",
              stderr);
    }
    hint_at_ids(request);
    if (request->command != &bel__commands[BEL_COMMAND_REVIVE]) return;
    struct bel_view id = request->args[2];
    const char *slash = id.bytes > 0 ? memchr(id.data, '/', id.bytes) : NULL;
    if (slash == NULL) return;
    struct bel_view job = {id.data, (size_t)(slash - (const char *)id.data)};
    if (!bel__job_hint_state(client, job, state)) return;
    fprintf(stderr,
            "belfry: '%.*s' is a task of a job, which revive passes over; to run the job again: "
            "belfry job submit FILE --replace\n",
            (int)id.bytes, (const char *)id.data);
}

static void name_option(const void *context, const struct bel_argument *option,
                        char out[BEL_OPTION_NAME_BYTES])
{
    char small[BEL_OPTION_NAME_BYTES];
    bel__option_name_small(context, option, small);
    (void)snprintf(out, BEL_OPTION_NAME_BYTES, "--%.32s", small);
}

/* Points at the place of an error in the rule of a plan. */
static void show_place(const struct cli_request *request, const char *message)
{
    static const char start[] = "BADARG rule: at byte ";
    unsigned long place = 0;
    char *end;
    if (strncmp(message, start, strlen(start)) != 0) return;
    place = strtoul(message + strlen(start), &end, 10);
    for (size_t i = 1 + request->words_count; i + 1 < request->args_count; i++) {
        struct bel_view name = request->args[i], rule = request->args[i + 1];
        bool is_rule = bel__view_is(name, "CRON") || bel__view_is(name, "RRULE");
        if (!is_rule || place < 1 || place > rule.bytes + 1) continue;
        bel__cli_point_at(rule, place - 1);
        return;
    }
}

/* After an unknown setting, names the one that is meant, or all. */
static void hint_at_setting(const struct cli_request *request, const char *message)
{
    static const char partitions[] = "partitions"; /* of topics on Redis; in no table of settings */
    const char *end = strstr(message, ": unknown setting");
    const char *name = strchr(message, ' ');
    struct bel_similar similar;
    char given[SETTING_BYTES];
    bool is_configure = request->command == &bel__commands[BEL_COMMAND_CONFIGURE];
    if (!is_configure || end == NULL || name == NULL || name >= end) return;
    (void)snprintf(given, sizeof given, "%.*s", (int)(end - name - 1), name + 1);
    bel__similar_begin(&similar, given);
    for (const struct bel_setting_entry *at = bel__setting_entries; at->name != NULL; at++) {
        bel__similar_offer(&similar, at->name, at->name);
    }
    bel__similar_offer(&similar, partitions, partitions);
    if (similar.name != NULL) {
        fprintf(stderr, "        did you mean %s?\n", similar.name);
        return;
    }
    fputs("        the settings are ", stderr);
    for (const struct bel_setting_entry *at = bel__setting_entries; at->name != NULL; at++) {
        fprintf(stderr, "%s, ", at->name);
    }
    fprintf(stderr, "%s\n", partitions);
}

/* After an invalid topic, says if its name is an option of CLAIM. */
static void hint_at_reserved(const struct cli_request *request, const char *message)
{
    static const char *const words[] = {"count", "lease", "wait", "worker"};
    if (strncmp(message, "BADARG invalid topic", 20) != 0) return;
    for (size_t i = 1; i < request->args_count; i++) {
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            struct bel_view arg = request->args[i];
            bool is_word =
                arg.bytes == strlen(words[k]) && strncasecmp(arg.data, words[k], arg.bytes) == 0;
            if (!is_word) continue;
            fprintf(stderr, "        '%s' is a reserved word: no topic can have this name\n",
                    words[k]);
            return;
        }
    }
}

/* Prints an error reply in the words of the command line: --in, where the server says IN. */
static int show_refusal(const struct cli_request *request, const struct bel_value *reply)
{
    char text[MESSAGE_BYTES];
    struct bel_value said = *reply;
    bel__option_names_replace_error(request->command, reply->text, name_option, NULL, text,
                                    sizeof text);
    said.text = (struct bel_view){text, strlen(text)};
    int status = bel__connect_refused(&said);
    show_place(request, text);
    hint_at_reserved(request, text);
    hint_at_setting(request, text);
    return status;
}

/* Prints an error reply. The hints at a missing topic or resource are errors by themselves. */
static int show_error(const struct cli_request *request, struct bel_client *client,
                      const struct bel_value *reply)
{
    bool is_missing = bel__connect_exit(bel_value_code(reply)) == CLI_NOT_FOUND;
    bool is_limit = request->command == &bel__commands[BEL_COMMAND_LIMIT];
    bool says_it = is_limit || request->command == &bel__commands[BEL_COMMAND_TOPIC];
    int status = is_missing && says_it ? CLI_NOT_FOUND : show_refusal(request, reply);
    if (is_missing && is_limit) bel__resource_hint(client, request->args[1]);
    if (is_missing) (void)hint_at_missing(request, client);
    return status;
}

static int show_reply(const struct cli_remote_verb *remote, struct cli_request *request,
                      struct bel_client *client, const struct bel_value *reply)
{
    bool is_zero = reply->type == BEL_VALUE_NUMBER && reply->number == 0;
    bool is_empty_list = remote->show == bel__show_list && reply->type == BEL_VALUE_LIST &&
                         reply->count > 1 && reply->items[1].count == 0;
    bool is_nothing = is_zero || is_empty_list || reply->type == BEL_VALUE_NIL;
    int status = remote->show(remote, request, client, reply);
    bool is_missing = is_nothing && hint_at_missing(request, client);
    if (is_zero && !is_missing) hint_at_zero(request, client);
    return is_missing && status == CLI_OK ? CLI_NOT_FOUND : status;
}

/* Reports the topics of a claim that do not exist, before the claim waits for them. */
static void hint_at_claimed(const struct cli_request *request, struct bel_client *client)
{
    if (request->command != &bel__commands[BEL_COMMAND_CLAIM]) return;
    for (size_t i = 1; i <= request->words_count; i++) {
        (void)bel__topic_hint_yet(client, request->args[i]);
    }
}

/* Returns whether LIMIT is about to create a resource with the name of a topic. */
static bool is_topic_limit(const struct cli_request *request, struct bel_client *client)
{
    const struct bel_value *reply;
    const struct bel_view look[] = {BEL_VIEW("LIMIT"), request->args[1]};
    bool is_change = request->command == &bel__commands[BEL_COMMAND_LIMIT] &&
                     request->words_count == 1 && request->args_count > 2;
    if (!is_change || bel_client_call(client, look, 2, &reply) != 0) return false;
    if (reply->type != BEL_VALUE_ERROR) return false;
    const struct bel_view topic[] = {BEL_VIEW("TOPIC"), request->args[1]};
    return bel_client_call(client, topic, 2, &reply) == 0 && reply->type != BEL_VALUE_ERROR;
}

/* Says what a limit does not do, if it is likely meant for the topic of the same name. */
static void hint_at_topic(const struct cli_request *request)
{
    struct bel_view name = request->args[1];
    fprintf(stderr,
            "belfry: the resource '%.*s' is new, and a topic has this name; to limit the topic: "
            "belfry configure %.*s concurrency=N\n",
            (int)name.bytes, (const char *)name.data, (int)name.bytes, (const char *)name.data);
}

/* Asks for the reason of an explanation too, for JSON: programs read it. */
static void add_reason(struct cli_request *request)
{
    size_t options = 1 + request->words_count;
    bool is_explain = request->command == &bel__commands[BEL_COMMAND_EXPLAIN];
    if (!is_explain || !request->connect.is_json || request->args_count > options) return;
    request->args[request->args_count++] = BEL_VIEW("REASON");
}

/* Says on a terminal that SCHEDULE is about to create a topic whose name is similar to another. */
static void hint_at_new(const struct cli_request *request, struct bel_client *client)
{
    bool is_asked = request->command == &bel__commands[BEL_COMMAND_SCHEDULE] &&
                    !request->connect.is_json && bel__cli_is_terminal();
    if (is_asked) bel__topic_hint_new(client, request->args[1]);
}

/* Returns the value of an option of a command whose options are pairs; empty if it is absent. */
static struct bel_view value_of(const struct cli_request *request, const char *name)
{
    for (size_t i = 1 + request->words_count; i + 1 < request->args_count; i++) {
        if (bel__view_is(request->args[i], name)) return request->args[i + 1];
    }
    return (struct bel_view){"", 0};
}

/* Says on a terminal that the time of a timer is past: the timer was due at once. */
static void hint_at_past(const struct cli_request *request, struct bel_client *client)
{
    const struct bel_view clock[] = {BEL_VIEW("CLOCK")};
    const struct bel_value *reply;
    struct bel_instant_options options = {.zones = NULL};
    struct bel_wall time;
    struct bel_view at = value_of(request, "AT");
    bool is_asked = request->command == &bel__commands[BEL_COMMAND_SCHEDULE] && at.bytes > 0 &&
                    !request->connect.is_json && bel__cli_is_terminal();
    bool is_plan = value_of(request, "CRON").bytes > 0 || value_of(request, "EVERY").bytes > 0 ||
                   value_of(request, "RRULE").bytes > 0;
    if (!is_asked || is_plan || bel_zones_open(NULL, &options.zones) != 0) return;
    int err = bel_instant_parse(at.data, at.bytes, &options, &time, NULL);
    bel_zones_close(options.zones);
    if (err || bel_client_call(client, clock, 1, &reply) != 0) return;
    if (reply->type != BEL_VALUE_NUMBER || time.ms + PAST_MS > reply->number) return;
    fputs("belfry: note: this time is in the past, so the timer is due at once\n", stderr);
}

static int ask(const struct cli_remote_verb *remote, struct cli_request *request,
               struct bel_client *client)
{
    const struct bel_value *reply;
    int status = set_timeout(request, client);
    if (status != CLI_OK) return status;
    if (would_create(request, client)) return CLI_NOT_FOUND;
    hint_at_claimed(request, client);
    add_reason(request);
    bool is_topic = is_topic_limit(request, client);
    hint_at_new(request, client);
    int err = bel_client_call(client, request->args, request->args_count, &reply);
    if (err) return bel__connect_failed(&request->connect, err);
    if (reply->type == BEL_VALUE_ERROR) return show_error(request, client, reply);
    if (is_topic) hint_at_topic(request);
    int shown = show_reply(remote, request, client, reply);
    hint_at_past(request, client);
    return shown;
}

/* Refuses a relative path of BACKUP: the server would take it from its own working directory. */
static int check_path(const struct cli_request *request)
{
    if (request->command != &bel__commands[BEL_COMMAND_BACKUP]) return CLI_OK;
    struct bel_view path = request->args[1];
    if (path.bytes == 0 || *(const char *)path.data == '/') return CLI_OK;
    fprintf(stderr,
            "belfry backup: '%.*s' is a relative path; give an absolute one, on the server's "
            "machine\n",
            (int)path.bytes, (const char *)path.data);
    return CLI_USAGE;
}

static int converse(const struct cli_remote_verb *remote, struct cli_request *request)
{
    struct bel_client *client;
    int status = bel__connect_open(&request->connect, &client);
    if (status != CLI_OK) return status;
    status = ask(remote, request, client);
    bel_client_close(client);
    return status;
}

int bel__remote_verb_run(const struct cli_remote_verb *remote, int argc, char **argv)
{
    struct cli_request request;
    const struct bel_command_entry *other = NULL;
    if (remote->other != NULL) other = entry_of(remote->other);
    int status = bel__request_read(&request, entry_of(remote->command), other, argc, argv);
    if (status < 0 && check_path(&request) != CLI_OK) status = CLI_USAGE;
    if (status < 0) status = converse(remote, &request);
    bel__request_finish(&request);
    return status;
}
