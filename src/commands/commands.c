/* SPDX-License-Identifier: MIT */

/*
 * The table, in the order of enum bel_command_place. The positional arguments of a command come
 * first, then its options. The words of a WORD argument are in the order of the enum that they are
 * converted to; the default of an option is its first word.
 */
#include "commands/commands.h"

#include "belfry/job.h"
#include "commands/arguments.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    GROUP_BYTES = 16, /* longer than the first word of any name with two */
};

#define ARGUMENT(title, kind, text) .name = (title), .type = BEL_ARGUMENT_##kind, .help = (text)
#define WORDS(...)                                                                                 \
    .words = (const char *const[])                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const struct bel_argument schedule[] = {
    [BEL_SCHEDULE_TOPIC] = {ARGUMENT("topic", TOPIC,
                                     "topic of the timer; workers claim timers by topic")},
    [BEL_SCHEDULE_PAYLOAD] = {ARGUMENT("payload", BYTES, "bytes that are delivered to the worker")},
    [BEL_SCHEDULE_ID] = {ARGUMENT("ID", ID,
                                  "name of the timer, unique in its topic (default: generated)"),
                         .max = BEL_ID_BYTES_MAX},
    [BEL_SCHEDULE_IN] = {ARGUMENT(
        "IN", DURATION, "delay until due, for a plan until its first time, e.g. 30s, 5m")},
    [BEL_SCHEDULE_AT] = {ARGUMENT("AT", TIME,
                                  "due time (RFC 3339, local with [zone], epoch ms); for a plan, "
                                  "its first time"),
                         .refuses_seconds = true},
    [BEL_SCHEDULE_EVERY] = {ARGUMENT("EVERY", DURATION, "repeat at this interval")},
    [BEL_SCHEDULE_CRON] = {ARGUMENT("CRON", RULE,
                                    "repeat at the times of a cron rule, e.g. '0 9 * * 1-5'"),
                           .max = BEL_RULE_BYTES_MAX},
    [BEL_SCHEDULE_RRULE] = {ARGUMENT("RRULE", RULE,
                                     "repeat by an RFC 5545 recurrence rule, e.g. FREQ=DAILY"),
                            .max = BEL_RULE_BYTES_MAX},
    [BEL_SCHEDULE_MODE] =
        {ARGUMENT(
             "MODE", WORD,
             "measure EVERY from the previous time, or from the end of its run (default rate)"),
         WORDS("rate", "delay")},
    [BEL_SCHEDULE_TZ] = {ARGUMENT("TZ", ZONE,
                                  "time zone of the rule, e.g. Europe/Berlin (default UTC)")},
    [BEL_SCHEDULE_PRIORITY] = {ARGUMENT("PRIORITY", NUMBER,
                                        "0 to 255, lower is delivered first (default 128)"),
                               .max = UINT8_MAX},
    [BEL_SCHEDULE_GROUP] = {ARGUMENT(
                                "GROUP", BYTES,
                                "group in the topic; groups get fair shares of the deliveries"),
                            .max = BEL_GROUP_BYTES_MAX},
    [BEL_SCHEDULE_RESOURCE] = {ARGUMENT(
        "RESOURCE", TOPIC, "resource that the work uses, e.g. a database, for limits")},
    [BEL_SCHEDULE_HEADER] = {ARGUMENT("HEADER", PAIR,
                                      "name and value that are delivered with the timer"),
                             .is_repeated = true, .max = BEL_HEADERS_MAX},
    [BEL_SCHEDULE_CORRELATION] = {ARGUMENT("CORRELATION", BYTES,
                                           "id in another system, delivered with the timer"),
                                  .max = BEL_TEXT_BYTES_MAX},
    [BEL_SCHEDULE_RETRY] = {ARGUMENT("RETRY", POLICY, "retry policy (default: that of the topic)")},
    [BEL_SCHEDULE_LEASE] = {ARGUMENT("LEASE", DURATION,
                                     "how long a claim lasts (default: that of the topic)")},
    [BEL_SCHEDULE_EXPIRES] = {ARGUMENT("EXPIRES", DURATION,
                                       "give up the timer when it is overdue by this long")},
    [BEL_SCHEDULE_COUNT] = {ARGUMENT("COUNT", NUMBER, "end the plan after N nominal times")},
    [BEL_SCHEDULE_UNTIL] = {ARGUMENT("UNTIL", TIME, "the last time that the plan may have"),
                            .refuses_seconds = true},
    [BEL_SCHEDULE_SPREAD] = {ARGUMENT("SPREAD", DURATION,
                                      "shift a plan's times by a fixed offset within this window")},
    [BEL_SCHEDULE_MISFIRE] =
        {ARGUMENT("MISFIRE", WORD,
                  "what to do with times missed while down or by a clock step (default skip)"),
         WORDS("skip", "last", "all")},
    [BEL_SCHEDULE_OVERLAP] =
        {ARGUMENT("OVERLAP", WORD,
                  "what to do if the previous occurrence is unfinished (default skip)"),
         WORDS("skip", "queue", "allow")},
    [BEL_SCHEDULE_GAP] =
        {ARGUMENT("GAP",
                  WORD, "what to do with a local time that a clock change skips (default next)"),
         WORDS("next", "skip")},
    [BEL_SCHEDULE_FOLD] =
        {ARGUMENT("FOLD",
                  WORD, "what to do with a local time that a clock change repeats (default first)"),
         WORDS("first", "second", "both")},
    [BEL_SCHEDULE_CONFLICT] = {ARGUMENT("CONFLICT", WORD,
                                        "what to do if the id exists (default replace)"),
                               WORDS("replace", "keep", "reject", "earliest", "latest")},
    [BEL_SCHEDULE_IMPORTED] = {ARGUMENT("IMPORTED", FLAG,
                                        "allow reserved headers, which an export may have")},
};
static_assert(sizeof schedule / sizeof schedule[0] == BEL_ARGUMENTS_MAX,
              "every argument has an entry");

static const struct bel_argument cancel[] = {
    {ARGUMENT("topic", TOPIC, "topic of the timer")},
    {ARGUMENT("id", ID, "id of a timer or a plan"), .is_repeated = true},
};

static const struct bel_argument reschedule[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "topic of the timer")},
    [BEL_TARGET_ID] = {ARGUMENT("id", ID, "id of the timer")},
    [BEL_RESCHEDULE_IN] = {ARGUMENT("IN", DURATION,
                                    "delay until the timer is due, e.g. 30s, 5m, 1h30m")},
    [BEL_RESCHEDULE_AT] =
        {ARGUMENT("AT", TIME,
                  "when the timer is due (RFC 3339, or local with [zone], or epoch ms)"),
         .refuses_seconds = true},
};

static const struct bel_argument target[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "topic of the timer")},
    [BEL_TARGET_ID] = {ARGUMENT("id", ID, "id of the timer")},
};

static const struct bel_argument explain[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "topic of the timer")},
    [BEL_TARGET_ID] = {ARGUMENT("id", ID, "id of the timer")},
    [BEL_EXPLAIN_REASON] = {ARGUMENT("REASON", FLAG,
                                     "give the reason as a word, its end and its cause, too")},
};

static const struct bel_argument claim[] = {
    [BEL_CLAIM_TOPIC] = {ARGUMENT("topic", TOPIC, "topic to claim from; several topics take turns"),
                         .is_repeated = true},
    [BEL_CLAIM_COUNT] = {ARGUMENT("COUNT", NUMBER,
                                  "maximum number of timers to claim, 1 to 1000 (default 1)"),
                         .max = BEL_CLAIM_COUNT_MAX},
    [BEL_CLAIM_LEASE] = {ARGUMENT(
        "LEASE", DURATION, "how long the claim lasts (default: that of the timer or the topic)")},
    [BEL_CLAIM_WAIT] = {ARGUMENT("WAIT", DURATION,
                                 "how long to wait if no timer is due (default 0)")},
    [BEL_CLAIM_WORKER] = {ARGUMENT(
        "WORKER", TEXT, "name of the worker, shown with the timer; cut after 256 bytes")},
};

static const struct bel_argument ack[] = {
    [BEL_ACK_TOKEN] = {ARGUMENT("token", TOKEN, "token of the delivery"), .is_repeated = true},
    [BEL_ACK_RESULT] = {ARGUMENT(
                            "RESULT", BYTES,
                            "result to keep with the timer, up to 64 KiB; with one token only"),
                        .max = BEL_RESULT_BYTES_MAX},
};

static const struct bel_argument fail[] = {
    [BEL_FAIL_TOKEN] = {ARGUMENT("token", TOKEN, "token of the delivery")},
    [BEL_FAIL_REASON] = {ARGUMENT("REASON", TEXT,
                                  "error message, shown with the timer; cut after 256 bytes")},
    [BEL_FAIL_IN] = {ARGUMENT("IN", DURATION,
                              "delay before the retry (default: by the retry policy)")},
    [BEL_FAIL_DEAD] = {ARGUMENT("DEAD", FLAG, "do not retry")},
    [BEL_FAIL_KIND] = {ARGUMENT("KIND", WORD, "cause; limited spends no attempt (default error)"),
                       WORDS("error", "resource", "limited")},
};

static const struct bel_argument release[] = {
    [BEL_RELEASE_TOKEN] = {ARGUMENT("token", TOKEN, "token of the delivery")},
    [BEL_RELEASE_IN] = {ARGUMENT("IN", DURATION,
                                 "delay until the timer is due again (default: due now)")},
};

static const struct bel_argument extend[] = {
    [BEL_EXTEND_TOKEN] = {ARGUMENT("token", TOKEN, "token of the delivery")},
    [BEL_EXTEND_LEASE] = {ARGUMENT(
                              "lease", DURATION,
                              "how long the lease lasts from now on (default: that of the claim)"),
                          .is_optional = true},
};

static const struct bel_argument list[] = {
    [BEL_LIST_TOPIC] = {ARGUMENT("topic", TOPIC, "topic of the timers")},
    [BEL_LIST_STATE] = {ARGUMENT("STATE", STATE, "only timers in this state")},
    [BEL_LIST_FROM] = {ARGUMENT("FROM", TIME, "only timers due at this time or later")},
    [BEL_LIST_TO] = {ARGUMENT("TO", TIME, "only timers due before this time")},
    [BEL_LIST_COUNT] = {ARGUMENT(
                            "COUNT", NUMBER,
                            "maximum number of timers, 1 to 1000 (default 100; belfry list: all)"),
                        .max = BEL_LIST_COUNT_MAX},
    [BEL_LIST_CURSOR] = {ARGUMENT("CURSOR", BYTES,
                                  "cursor of the previous reply, to continue from there")},
};

static const struct bel_argument revive[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "topic of the timer")},
    [BEL_TARGET_ID] = {ARGUMENT("id", ID, "id of the timer; * for all dead timers")},
};

static const struct bel_argument purge[] = {
    [BEL_PURGE_TOPIC] = {ARGUMENT("topic", TOPIC, "topic of the timers")},
    [BEL_PURGE_STATE] = {ARGUMENT("STATE", STATE,
                                  "only this state (default: all finished timers); scheduled "
                                  "also deletes plans")},
};

static const struct bel_argument topic[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "name of the topic")},
};

static const struct bel_argument configure[] = {
    [BEL_CONFIGURE_TOPIC] = {ARGUMENT("topic", TOPIC, "name of the topic")},
    [BEL_CONFIGURE_SETTING] = {ARGUMENT("setting", PAIR, "name and value of a setting"),
                               .is_repeated = true},
};

static const struct bel_argument agenda[] = {
    [BEL_AGENDA_FROM] = {ARGUMENT("FROM", TIME,
                                  "start (default: now); with steps of hours, of that full hour")},
    [BEL_AGENDA_TO] = {ARGUMENT("TO", TIME, "end of the agenda (default: 24 hours after FROM)")},
    [BEL_AGENDA_STEP] = {ARGUMENT("STEP", DURATION, "length of a step (default 1h)")},
    [BEL_AGENDA_TOPIC] = {ARGUMENT("TOPIC", TOPIC,
                                   "only timers of this topic (default: all topics)")},
};

static const struct bel_argument job_submit[] = {
    [BEL_JOB_SUBMIT_TEXT] = {ARGUMENT("json", BYTES, "the job: an object with tasks")},
    [BEL_JOB_SUBMIT_REPLACE] = {ARGUMENT("REPLACE", FLAG, "replace a job with this id")},
    [BEL_JOB_SUBMIT_ID] = {ARGUMENT("ID", ID, "id of the job, if the object has none"),
                           .max = BEL_JOB_IDS_BYTES_MAX},
};

static const struct bel_argument job_target[] = {
    [BEL_JOB_TARGET_ID] = {ARGUMENT("id", ID, "id of the job")},
};

static const struct bel_argument job_get[] = {
    [BEL_JOB_TARGET_ID] = {ARGUMENT("id", ID, "id of the job")},
    [BEL_JOB_GET_COUNT] = {ARGUMENT("COUNT", NUMBER,
                                    "maximum number of tasks, 1 to 1000 (default 1000)"),
                           .max = BEL_JOB_GET_COUNT_MAX},
    [BEL_JOB_GET_CURSOR] = {ARGUMENT("CURSOR", BYTES,
                                     "cursor of the previous reply, for the next tasks")},
};

static const struct bel_argument job_list[] = {
    [BEL_JOB_LIST_STATE] = {ARGUMENT("STATE", WORD, "only jobs in this state"),
                            WORDS("running", "paused", "done", "failed", "cancelled", "scheduled")},
    [BEL_JOB_LIST_COUNT] = {ARGUMENT("COUNT", NUMBER,
                                     "maximum number of jobs, 1 to 1000 (default 100)"),
                            .max = BEL_LIST_COUNT_MAX},
    [BEL_JOB_LIST_CURSOR] = {ARGUMENT("CURSOR", BYTES,
                                      "cursor of the previous reply, to continue from there")},
};

static const struct bel_argument limit[] = {
    [BEL_LIMIT_RESOURCE] = {ARGUMENT("resource", TOPIC,
                                     "name of the resource; * for all timers (default: list all)"),
                            .is_optional = true, .yields = true},
    [BEL_LIMIT_RATE] = {ARGUMENT("RATE", TEXT,
                                 "deliveries in a duration, e.g. 10/1s or 1000/1h, or off"),
                        .may_be_off = true},
    [BEL_LIMIT_BURST] = {ARGUMENT("BURST", NUMBER,
                                  "deliveries at once after a pause, 1 to 1000000 (default 1)")},
    [BEL_LIMIT_CONCURRENCY] = {ARGUMENT("CONCURRENCY", NUMBER,
                                        "leases at the same time; 0 or off for no limit"),
                               .may_be_off = true},
    [BEL_LIMIT_UNTIL] = {ARGUMENT("UNTIL", DURATION,
                                  "deliver nothing for this long, up to 24h; does not shorten a "
                                  "longer one")},
    [BEL_LIMIT_BREAKER] = {ARGUMENT("BREAKER", NUMBER,
                                    "failures in a row that open the circuit breaker, or off "
                                    "(default 5)"),
                           .may_be_off = true},
    [BEL_LIMIT_OPEN] = {ARGUMENT("OPEN", DURATION,
                                 "how long the breaker opens at first (default 30s)")},
    [BEL_LIMIT_MAX] = {ARGUMENT("MAX", DURATION,
                                "how long it opens at most, after openings in a row (default 5m)")},
    [BEL_LIMIT_CLEARS] = {ARGUMENT("CLEAR", FLAG,
                                   "end UNTIL and close the breaker; without a resource: of all")},
    [BEL_LIMIT_DELETES] = {ARGUMENT("DELETE", FLAG, "forget all limits of the resource")},
    [BEL_LIMIT_COUNT] = {ARGUMENT("COUNT", NUMBER,
                                  "maximum number of resources, 1 to 1000 (default 100)"),
                         .max = BEL_LIST_COUNT_MAX},
    [BEL_LIMIT_CURSOR] = {ARGUMENT("CURSOR", BYTES,
                                   "cursor of the previous reply, to continue from there")},
};

static const struct bel_argument clock_arguments[] = {
    [BEL_CLOCK_ADVANCE] = {ARGUMENT("ADVANCE", DURATION,
                                    "move a virtual clock forward by this much")},
    [BEL_CLOCK_SET] = {ARGUMENT("SET", TIME, "move a virtual clock forward to this time")},
};

static const struct bel_argument backup[] = {
    {ARGUMENT("path", BYTES, "absolute path of a folder for the copy, on the server's machine")},
};

static const struct bel_argument ping[] = {
    {ARGUMENT("message", BYTES, "message to return"), .is_optional = true},
};

static const struct bel_argument echo[] = {
    {ARGUMENT("message", BYTES, "message to return")},
};

static const struct bel_argument hello[] = {
    [BEL_HELLO_VERSION] = {ARGUMENT("version", NUMBER, "RESP version, 2 or 3"),
                           .is_optional = true},
    [BEL_HELLO_AUTH] = {ARGUMENT("AUTH", PAIR, "user and API key")},
    [BEL_HELLO_SETNAME] = {ARGUMENT("SETNAME", TEXT, "name of the connection")},
};

static const struct bel_argument auth[] = {
    {ARGUMENT("key", BYTES, "API key; or a user, then the API key"), .is_repeated = true},
};

static const struct bel_argument client[] = {
    {ARGUMENT("subcommand", WORD, "what to return or set"),
     WORDS("id", "info", "list", "getname", "setname", "setinfo", "no-evict", "no-touch")},
    {ARGUMENT("value", BYTES, "value to set"), .is_optional = true, .is_repeated = true},
};

static const struct bel_argument command[] = {
    {ARGUMENT("subcommand", WORD, "what to return (default info)"),
     WORDS("count", "list", "info", "docs"), .is_optional = true},
    {ARGUMENT("name", BYTES, "name of a command (default: all)"), .is_optional = true,
     .is_repeated = true},
};

static const struct bel_argument info[] = {
    {ARGUMENT("section", TEXT, "section to show (default: all)"), .is_optional = true,
     .is_repeated = true},
};

static const struct bel_argument select_arguments[] = {
    {ARGUMENT("index", NUMBER, "0: there is one database")},
};

static const struct bel_argument shutdown_arguments[] = {
    {ARGUMENT("mode", TEXT, "accepted and ignored: every shutdown is orderly"), .is_optional = true,
     .is_repeated = true},
};

#define WITH(list) .arguments = (list), .arguments_count = sizeof(list) / sizeof(list)[0]
#define COMMAND(title, may, text)                                                                  \
    .name = (title), .help = (text), .permission = BEL_PERMISSION_##may

const struct bel_command_entry bel__commands[] = {
    [BEL_COMMAND_SCHEDULE] = {COMMAND("SCHEDULE", WRITE, "schedule a timer or a plan"),
                              WITH(schedule)},
    [BEL_COMMAND_CANCEL] = {COMMAND("CANCEL", WRITE, "cancel timers and plans"), WITH(cancel)},
    [BEL_COMMAND_RESCHEDULE] = {COMMAND("RESCHEDULE", WRITE,
                                        "change when a scheduled or ready timer is due"),
                                WITH(reschedule)},
    [BEL_COMMAND_GET] = {COMMAND("GET", READ, "show a timer"), WITH(target)},
    [BEL_COMMAND_CLAIM] = {COMMAND("CLAIM", WORK, "claim due timers, to work on them"),
                           WITH(claim)},
    [BEL_COMMAND_ACK] = {COMMAND("ACK", WORK, "acknowledge finished work"), WITH(ack)},
    [BEL_COMMAND_FAIL] = {COMMAND("FAIL", WORK, "report failed work; it is retried by its policy"),
                          WITH(fail)},
    [BEL_COMMAND_RELEASE] = {COMMAND("RELEASE", WORK,
                                     "give a claimed timer back, without spending an attempt"),
                             WITH(release)},
    [BEL_COMMAND_EXTEND] = {COMMAND("EXTEND", WORK, "renew a lease (heartbeat)"), WITH(extend)},
    [BEL_COMMAND_LIST] = {COMMAND("LIST", READ, "list the timers of a topic, in order of delivery"),
                          WITH(list)},
    [BEL_COMMAND_REVIVE] = {COMMAND("REVIVE", WRITE, "make dead timers due again"), WITH(revive)},
    [BEL_COMMAND_PURGE] = {COMMAND("PURGE", ADMIN, "delete finished timers, or those in one STATE"),
                           WITH(purge)},
    [BEL_COMMAND_TOPICS] = {COMMAND("TOPICS", READ, "list the topics"), .arguments_count = 0},
    [BEL_COMMAND_TOPIC] = {COMMAND("TOPIC", READ, "show a topic's counts and settings"),
                           WITH(topic)},
    [BEL_COMMAND_CONFIGURE] = {COMMAND("CONFIGURE", ADMIN, "change a topic's settings"),
                               WITH(configure)},
    [BEL_COMMAND_PAUSE] = {COMMAND("PAUSE", ADMIN, "stop the deliveries of a topic"), WITH(topic)},
    [BEL_COMMAND_RESUME] = {COMMAND("RESUME", ADMIN,
                                    "start the deliveries of a paused topic again"),
                            WITH(topic)},
    [BEL_COMMAND_EXPLAIN] = {COMMAND("EXPLAIN", READ,
                                     "explain why a timer is not running, and when it will"),
                             WITH(explain)},
    [BEL_COMMAND_AGENDA] = {COMMAND("AGENDA", READ,
                                    "count the timers that will be due, per step of time"),
                            WITH(agenda)},
    [BEL_COMMAND_JOB_SUBMIT] = {COMMAND("JOB SUBMIT", WRITE,
                                        "start a job: tasks that wait for each other"),
                                WITH(job_submit)},
    [BEL_COMMAND_JOB_GET] = {COMMAND("JOB GET", READ, "show a job and its tasks"), WITH(job_get)},
    [BEL_COMMAND_JOB_CANCEL] = {COMMAND("JOB CANCEL", WRITE,
                                        "cancel a job and its unfinished tasks"),
                                WITH(job_target)},
    [BEL_COMMAND_JOB_LIST] = {COMMAND("JOB LIST", READ, "list the jobs"), WITH(job_list)},
    [BEL_COMMAND_JOB_PAUSE] = {COMMAND("JOB PAUSE", WRITE,
                                       "start no more tasks of a job; running tasks finish"),
                               WITH(job_target)},
    [BEL_COMMAND_JOB_RESUME] = {COMMAND("JOB RESUME", WRITE, "start tasks of a paused job again"),
                                WITH(job_target)},
    [BEL_COMMAND_LIMIT] = {COMMAND("LIMIT", READ,
                                   "list the resources, or show and change the limits of one"),
                           WITH(limit)},
    [BEL_COMMAND_CLOCK] = {COMMAND("CLOCK", READ,
                                   "show the server's time, or move a virtual clock"),
                           WITH(clock_arguments)},
    [BEL_COMMAND_BACKUP] = {COMMAND("BACKUP", ADMIN, "write a consistent copy of the data"),
                            WITH(backup)},
    [BEL_COMMAND_PING] = {COMMAND("PING", KNOWN,
                                  "check the connection: return PONG, or the message"),
                          WITH(ping)},
    [BEL_COMMAND_ECHO] = {COMMAND("ECHO", KNOWN, "return the message"), WITH(echo)},
    [BEL_COMMAND_HELLO] = {COMMAND("HELLO", NONE, "choose the protocol version"), WITH(hello)},
    [BEL_COMMAND_AUTH] = {COMMAND("AUTH", NONE, "authenticate the connection"), WITH(auth)},
    [BEL_COMMAND_CLIENT] = {COMMAND("CLIENT", KNOWN, "show or set properties of the connection"),
                            WITH(client)},
    [BEL_COMMAND_COMMAND] = {COMMAND("COMMAND", KNOWN, "describe the commands"), WITH(command)},
    [BEL_COMMAND_INFO] = {COMMAND("INFO", READ, "show figures and settings of the server"),
                          WITH(info)},
    [BEL_COMMAND_SELECT] = {COMMAND("SELECT", KNOWN, "select database 0, the only one"),
                            WITH(select_arguments)},
    [BEL_COMMAND_RESET] = {COMMAND("RESET", NONE, "reset the connection to its initial state"),
                           .arguments_count = 0},
    [BEL_COMMAND_QUIT] = {COMMAND("QUIT", NONE, "close the connection"), .arguments_count = 0},
    [BEL_COMMAND_SHUTDOWN] = {COMMAND("SHUTDOWN", ADMIN, "stop the server"),
                              WITH(shutdown_arguments)},
};

const size_t bel__commands_count = sizeof bel__commands / sizeof bel__commands[0];
static_assert(sizeof bel__commands / sizeof bel__commands[0] == BEL_COMMANDS,
              "every command has an entry");

const char *bel__permission_name(enum bel_permission permission)
{
    static const char *const names[] = {
        [BEL_PERMISSION_NONE] = "none", [BEL_PERMISSION_KNOWN] = "known",
        [BEL_PERMISSION_READ] = "read", [BEL_PERMISSION_WRITE] = "write",
        [BEL_PERMISSION_WORK] = "work", [BEL_PERMISSION_ADMIN] = "admin",
    };
    assert(permission <= BEL_PERMISSION_ADMIN);
    return names[permission];
}

/* Returns whether two words are the name of an entry with a subcommand. */
static bool is_pair(const char *name, struct bel_view group, struct bel_view word)
{
    const char *space = strchr(name, ' ');
    char first[GROUP_BYTES];
    if (space == NULL || group.bytes != (size_t)(space - name)) return false;
    assert(group.bytes < sizeof first);
    memcpy(first, name, group.bytes);
    first[group.bytes] = 0;
    return bel__name_is(first, group) && bel__name_is(space + 1, word);
}

const struct bel_command_entry *bel__command_find_pair(struct bel_view group, struct bel_view word)
{
    for (size_t i = 0; i < BEL_COMMANDS; i++) {
        if (is_pair(bel__commands[i].name, group, word)) return &bel__commands[i];
    }
    return NULL;
}

bool bel__command_is_group(struct bel_view word)
{
    return bel__name_is("JOB", word);
}

const struct bel_command_entry *bel__command_find(struct bel_view name)
{
    const char *text = name.data;
    for (size_t i = 0; i < BEL_COMMANDS; i++) {
        if (bel__name_is(bel__commands[i].name, name)) return &bel__commands[i];
    }
    for (size_t i = 1; i < name.bytes && i < GROUP_BYTES; i++) {
        if (text[i] != ' ' && text[i] != '|') continue;
        return bel__command_find_pair((struct bel_view){text, i},
                                      (struct bel_view){text + i + 1, name.bytes - i - 1});
    }
    return NULL;
}

/* --- usage --- */

/* The placeholder of a value in a usage line, by the type of its argument. */
static const char *const placeholders[] = {
    [BEL_ARGUMENT_TOPIC] = "topic",     [BEL_ARGUMENT_ID] = "id",
    [BEL_ARGUMENT_BYTES] = "bytes",     [BEL_ARGUMENT_TEXT] = "text",
    [BEL_ARGUMENT_TOKEN] = "token",     [BEL_ARGUMENT_DURATION] = "duration",
    [BEL_ARGUMENT_TIME] = "time",       [BEL_ARGUMENT_NUMBER] = "n",
    [BEL_ARGUMENT_WORD] = "word",       [BEL_ARGUMENT_STATE] = "state",
    [BEL_ARGUMENT_POLICY] = "policy",   [BEL_ARGUMENT_RULE] = "rule",
    [BEL_ARGUMENT_ZONE] = "zone",       [BEL_ARGUMENT_FLAG] = "",
    [BEL_ARGUMENT_PAIR] = "name value",
};

/* An output buffer. Text beyond `room` is dropped, but counted in `needed`. */
struct page {
    char *out;
    size_t room, needed;
};

__attribute__((format(printf, 2, 3))) static void print(struct page *page, const char *format, ...)
{
    size_t used = page->needed < page->room ? page->needed : page->room;
    va_list args;
    va_start(args, format);
    int printed =
        vsnprintf(page->room > 0 ? page->out + used : NULL, page->room - used, format, args);
    va_end(args);
    if (printed > 0) page->needed += (size_t)printed;
}

static bool is_option(const struct bel_argument *argument)
{
    return argument->name[0] >= 'A' && argument->name[0] <= 'Z';
}

static void print_words(struct page *page, const struct bel_argument *argument)
{
    for (const char *const *word = argument->words; *word != NULL; word++) {
        print(page, "%s%s", word == argument->words ? "" : "|", *word);
    }
}

static void print_option(struct page *page, const struct bel_argument *argument)
{
    print(page, " [%s", argument->name);
    if (argument->type == BEL_ARGUMENT_WORD) {
        print(page, " ");
        print_words(page, argument);
    } else if (argument->type != BEL_ARGUMENT_FLAG) {
        print(page, " %s", placeholders[argument->type]);
    }
    print(page, "]%s", argument->is_repeated ? "..." : "");
}

static void print_positional(struct page *page, const struct bel_argument *argument)
{
    print(page, argument->is_optional ? " [" : " ");
    if (argument->type == BEL_ARGUMENT_WORD) {
        print_words(page, argument);
    } else {
        print(page, "%s", argument->type == BEL_ARGUMENT_PAIR ? "name value" : argument->name);
    }
    print(page, "%s%s", argument->is_repeated ? " ..." : "", argument->is_optional ? "]" : "");
}

/* NOLINTNEXTLINE(readability-non-const-parameter): print() writes to it */
size_t bel__command_usage(const struct bel_command_entry *entry, char *out, size_t room)
{
    struct page page = {.out = out, .room = room};
    print(&page, "%s", entry->name);
    for (size_t i = 0; i < entry->arguments_count; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        if (is_option(argument)) {
            print_option(&page, argument);
        } else {
            print_positional(&page, argument);
        }
    }
    return page.needed;
}
