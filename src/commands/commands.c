/* SPDX-License-Identifier: MIT */

/*
 * The table. A command stands where the order of reading wants it; its arguments stand by
 * position, then by name. Words are in the order of the enums that they become.
 */
#include "commands/commands.h"

#include "commands/arguments.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARGUMENT(title, kind, text) .name = (title), .type = BEL_ARGUMENT_##kind, .help = (text)
#define WORDS(...)                                                                                 \
    .words = (const char *const[])                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const struct bel_argument schedule[] = {
    [BEL_SCHEDULE_TOPIC] = {ARGUMENT("topic", TOPIC, "where workers claim it")},
    [BEL_SCHEDULE_PAYLOAD] = {ARGUMENT("payload", BYTES, "what they are handed, any bytes")},
    [BEL_SCHEDULE_ID] = {ARGUMENT("ID", ID, "its name in the topic; else one is made")},
    [BEL_SCHEDULE_IN] = {ARGUMENT("IN", DURATION, "due after so long")},
    [BEL_SCHEDULE_AT] = {ARGUMENT("AT", TIME, "due then")},
    [BEL_SCHEDULE_EVERY] = {ARGUMENT("EVERY", DURATION, "due again and again, so far apart")},
    [BEL_SCHEDULE_CRON] = {ARGUMENT("CRON", RULE, "due when a cron rule says")},
    [BEL_SCHEDULE_RRULE] = {ARGUMENT("RRULE", RULE, "due when a recurrence rule says")},
    [BEL_SCHEDULE_MODE] = {ARGUMENT("MODE", WORD, "EVERY counts from the start or from the end"),
                           WORDS("rate", "delay")},
    [BEL_SCHEDULE_TZ] = {ARGUMENT("TZ", ZONE, "the zone of the rule; else UTC")},
    [BEL_SCHEDULE_PRIORITY] = {ARGUMENT("PRIORITY", NUMBER, "0 to 255, lower first; else 128")},
    [BEL_SCHEDULE_GROUP] = {ARGUMENT("GROUP", BYTES, "groups of a topic get fair shares")},
    [BEL_SCHEDULE_RESOURCE] = {ARGUMENT("RESOURCE", TOPIC, "what it uses, for limits")},
    [BEL_SCHEDULE_HEADER] = {ARGUMENT("HEADER", PAIR, "a name and a value for the worker"),
                             .is_repeated = true},
    [BEL_SCHEDULE_CORRELATION] = {ARGUMENT("CORRELATION", BYTES, "what it belongs to elsewhere")},
    [BEL_SCHEDULE_RETRY] = {ARGUMENT("RETRY", POLICY, "when to try again; else the topic's")},
    [BEL_SCHEDULE_LEASE] = {ARGUMENT("LEASE", DURATION, "how long a worker has it")},
    [BEL_SCHEDULE_EXPIRES] = {ARGUMENT("EXPIRES", DURATION, "given up so long after it is due")},
    [BEL_SCHEDULE_COUNT] = {ARGUMENT("COUNT", NUMBER, "a plan ends after so many")},
    [BEL_SCHEDULE_UNTIL] = {ARGUMENT("UNTIL", TIME, "a plan ends then")},
    [BEL_SCHEDULE_SPREAD] = {ARGUMENT("SPREAD", DURATION, "a plan's times move in such a window")},
    [BEL_SCHEDULE_MISFIRE] = {ARGUMENT("MISFIRE", WORD, "which missed times are made up for"),
                              WORDS("skip", "last", "all")},
    [BEL_SCHEDULE_OVERLAP] = {ARGUMENT("OVERLAP", WORD, "if the one before is not done"),
                              WORDS("skip", "queue", "allow")},
    [BEL_SCHEDULE_GAP] = {ARGUMENT("GAP", WORD, "a local time that the clocks skip"),
                          WORDS("next", "skip")},
    [BEL_SCHEDULE_FOLD] = {ARGUMENT("FOLD", WORD, "a local time that the clocks show twice"),
                           WORDS("first", "second", "both")},
    [BEL_SCHEDULE_CONFLICT] = {ARGUMENT("CONFLICT", WORD, "if the id is taken"),
                               WORDS("replace", "keep", "reject", "earliest", "latest")},
};
static_assert(sizeof schedule / sizeof schedule[0] == BEL_ARGUMENTS_MAX, "every place is taken");

static const struct bel_argument cancel[] = {
    {ARGUMENT("topic", TOPIC, "where it was scheduled")},
    {ARGUMENT("id", ID, "which"), .is_repeated = true},
};

static const struct bel_argument reschedule[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "where it was scheduled")},
    [BEL_TARGET_ID] = {ARGUMENT("id", ID, "which")},
    [BEL_RESCHEDULE_IN] = {ARGUMENT("IN", DURATION, "due after so long")},
    [BEL_RESCHEDULE_AT] = {ARGUMENT("AT", TIME, "due then")},
};

static const struct bel_argument target[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "where it was scheduled")},
    [BEL_TARGET_ID] = {ARGUMENT("id", ID, "which")},
};

static const struct bel_argument claim[] = {
    [BEL_CLAIM_TOPIC] = {ARGUMENT("topic", TOPIC, "they take turns"), .is_repeated = true},
    [BEL_CLAIM_COUNT] = {ARGUMENT("COUNT", NUMBER, "at most so many, up to 1000; else 1")},
    [BEL_CLAIM_LEASE] = {ARGUMENT("LEASE", DURATION, "how long to have them")},
    [BEL_CLAIM_WAIT] = {ARGUMENT("WAIT", DURATION, "wait so long if there is none")},
    [BEL_CLAIM_WORKER] = {ARGUMENT("WORKER", TEXT, "who asks, for people to see")},
};

static const struct bel_argument ack[] = {
    [BEL_ACK_TOKEN] = {ARGUMENT("token", TOKEN, "of the delivery"), .is_repeated = true},
    [BEL_ACK_RESULT] = {ARGUMENT("RESULT", BYTES, "of one token, up to 64 KiB")},
};

static const struct bel_argument fail[] = {
    [BEL_FAIL_TOKEN] = {ARGUMENT("token", TOKEN, "of the delivery")},
    [BEL_FAIL_REASON] = {ARGUMENT("REASON", TEXT, "what went wrong, for people")},
    [BEL_FAIL_IN] = {ARGUMENT("IN", DURATION, "try again after so long; else the policy says")},
    [BEL_FAIL_DEAD] = {ARGUMENT("DEAD", FLAG, "do not try again")},
    [BEL_FAIL_KIND] = {ARGUMENT("KIND", WORD, "whose fault it is"),
                       WORDS("error", "resource", "limited")},
};

static const struct bel_argument release[] = {
    [BEL_RELEASE_TOKEN] = {ARGUMENT("token", TOKEN, "of the delivery")},
    [BEL_RELEASE_IN] = {ARGUMENT("IN", DURATION, "due again after so long; else now")},
};

static const struct bel_argument extend[] = {
    [BEL_EXTEND_TOKEN] = {ARGUMENT("token", TOKEN, "of the delivery")},
    [BEL_EXTEND_LEASE] = {ARGUMENT("lease", DURATION, "from now; else as long as the claim's"),
                          .is_optional = true},
};

static const struct bel_argument list[] = {
    [BEL_LIST_TOPIC] = {ARGUMENT("topic", TOPIC, "whose timers")},
    [BEL_LIST_STATE] = {ARGUMENT("STATE", STATE, "only those in this state")},
    [BEL_LIST_FROM] = {ARGUMENT("FROM", TIME, "due then or later")},
    [BEL_LIST_TO] = {ARGUMENT("TO", TIME, "due before")},
    [BEL_LIST_COUNT] = {ARGUMENT("COUNT", NUMBER, "at most so many, up to 1000; else 100")},
    [BEL_LIST_CURSOR] = {ARGUMENT("CURSOR", BYTES, "of the answer before, to go on with")},
};

static const struct bel_argument revive[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "where it was scheduled")},
    [BEL_TARGET_ID] = {ARGUMENT("id", ID, "which; * for all that are dead")},
};

static const struct bel_argument purge[] = {
    [BEL_PURGE_TOPIC] = {ARGUMENT("topic", TOPIC, "whose timers")},
    [BEL_PURGE_STATE] = {ARGUMENT("STATE", STATE, "only those; else all that have ended")},
};

static const struct bel_argument topic[] = {
    [BEL_TARGET_TOPIC] = {ARGUMENT("topic", TOPIC, "which")},
};

static const struct bel_argument configure[] = {
    [BEL_CONFIGURE_TOPIC] = {ARGUMENT("topic", TOPIC, "which")},
    [BEL_CONFIGURE_SETTING] = {ARGUMENT("setting", PAIR, "a name and a value; TOPIC shows all"),
                               .is_repeated = true},
};

static const struct bel_argument agenda[] = {
    [BEL_AGENDA_FROM] = {ARGUMENT("FROM", TIME, "the first step begins then; else now")},
    [BEL_AGENDA_TO] = {ARGUMENT("TO", TIME, "the last step begins before; else in 24 hours")},
    [BEL_AGENDA_STEP] = {ARGUMENT("STEP", DURATION, "how long a step is; else 1h")},
    [BEL_AGENDA_TOPIC] = {ARGUMENT("TOPIC", TOPIC, "only this one")},
};

static const struct bel_argument clock_arguments[] = {
    [BEL_CLOCK_ADVANCE] = {ARGUMENT("ADVANCE", DURATION, "move a virtual clock by so much")},
    [BEL_CLOCK_SET] = {ARGUMENT("SET", TIME, "move a virtual clock to then")},
};

static const struct bel_argument backup[] = {
    {ARGUMENT("path", BYTES, "of the copy, on the server")},
};

static const struct bel_argument ping[] = {
    {ARGUMENT("message", BYTES, "to be sent back"), .is_optional = true},
};

static const struct bel_argument echo[] = {
    {ARGUMENT("message", BYTES, "to be sent back")},
};

static const struct bel_argument hello[] = {
    [BEL_HELLO_VERSION] = {ARGUMENT("version", NUMBER, "of the protocol, 2 or 3"),
                           .is_optional = true},
    [BEL_HELLO_AUTH] = {ARGUMENT("AUTH", PAIR, "a user and a key")},
    [BEL_HELLO_SETNAME] = {ARGUMENT("SETNAME", TEXT, "a name for the connection")},
};

static const struct bel_argument auth[] = {
    {ARGUMENT("key", BYTES, "a key; or a user, and then the key"), .is_repeated = true},
};

static const struct bel_argument client[] = {
    {ARGUMENT("subcommand", WORD, "what of the connection"),
     WORDS("id", "info", "list", "getname", "setname", "setinfo", "no-evict", "no-touch")},
    {ARGUMENT("value", BYTES, "for those that set something"), .is_optional = true,
     .is_repeated = true},
};

static const struct bel_argument command[] = {
    {ARGUMENT("subcommand", WORD, "what of the commands; else INFO of all"),
     WORDS("count", "list", "info", "docs"), .is_optional = true},
    {ARGUMENT("name", BYTES, "of a command; else all"), .is_optional = true, .is_repeated = true},
};

static const struct bel_argument info[] = {
    {ARGUMENT("section", TEXT, "only this one"), .is_optional = true, .is_repeated = true},
};

static const struct bel_argument select_arguments[] = {
    {ARGUMENT("index", NUMBER, "0, there is only one")},
};

static const struct bel_argument shutdown_arguments[] = {
    {ARGUMENT("mode", TEXT, "taken, and ignored: it is always orderly"), .is_optional = true,
     .is_repeated = true},
};

#define WITH(list) .arguments = (list), .arguments_count = sizeof(list) / sizeof(list)[0]
#define COMMAND(title, may, text)                                                                  \
    .name = (title), .help = (text), .permission = BEL_PERMISSION_##may

const struct bel_command_entry bel__commands[] = {
    [BEL_COMMAND_SCHEDULE] = {COMMAND("SCHEDULE", WRITE, "schedules a timer or a plan"),
                              WITH(schedule)},
    [BEL_COMMAND_CANCEL] = {COMMAND("CANCEL", WRITE, "cancels timers and plans"), WITH(cancel)},
    [BEL_COMMAND_RESCHEDULE] = {COMMAND("RESCHEDULE", WRITE, "moves a timer that waits"),
                                WITH(reschedule)},
    [BEL_COMMAND_GET] = {COMMAND("GET", READ, "says all that is known of a timer"), WITH(target)},
    [BEL_COMMAND_CLAIM] = {COMMAND("CLAIM", WORK, "takes timers that are due, to work on them"),
                           WITH(claim)},
    [BEL_COMMAND_ACK] = {COMMAND("ACK", WORK, "says that work is done"), WITH(ack)},
    [BEL_COMMAND_FAIL] = {COMMAND("FAIL", WORK, "says that work has failed"), WITH(fail)},
    [BEL_COMMAND_RELEASE] = {COMMAND("RELEASE", WORK, "gives work back, no attempt is spent"),
                             WITH(release)},
    [BEL_COMMAND_EXTEND] = {COMMAND("EXTEND", WORK, "asks for more time, and is the heartbeat"),
                            WITH(extend)},
    [BEL_COMMAND_LIST] = {COMMAND("LIST", READ, "lists the timers of a topic, in order"),
                          WITH(list)},
    [BEL_COMMAND_REVIVE] = {COMMAND("REVIVE", WRITE, "makes dead timers due again"), WITH(revive)},
    [BEL_COMMAND_PURGE] = {COMMAND("PURGE", ADMIN, "removes timers without a trace"), WITH(purge)},
    [BEL_COMMAND_TOPICS] = {COMMAND("TOPICS", READ, "names all topics"), .arguments_count = 0},
    [BEL_COMMAND_TOPIC] = {COMMAND("TOPIC", READ, "shows a topic's counts and settings"),
                           WITH(topic)},
    [BEL_COMMAND_CONFIGURE] = {COMMAND("CONFIGURE", ADMIN, "changes a topic's settings"),
                               WITH(configure)},
    [BEL_COMMAND_PAUSE] = {COMMAND("PAUSE", ADMIN, "stops the deliveries of a topic"), WITH(topic)},
    [BEL_COMMAND_RESUME] = {COMMAND("RESUME", ADMIN, "starts them again"), WITH(topic)},
    [BEL_COMMAND_EXPLAIN] = {COMMAND("EXPLAIN", READ, "says why a timer is not running"),
                             WITH(target)},
    [BEL_COMMAND_AGENDA] = {COMMAND("AGENDA", READ, "counts what will be due, step by step"),
                            WITH(agenda)},
    [BEL_COMMAND_CLOCK] = {COMMAND("CLOCK", READ, "says what time it is; moves a virtual clock"),
                           WITH(clock_arguments)},
    [BEL_COMMAND_BACKUP] = {COMMAND("BACKUP", ADMIN, "makes a consistent copy of everything"),
                            WITH(backup)},
    [BEL_COMMAND_PING] = {COMMAND("PING", KNOWN, "answers"), WITH(ping)},
    [BEL_COMMAND_ECHO] = {COMMAND("ECHO", KNOWN, "answers with what it is given"), WITH(echo)},
    [BEL_COMMAND_HELLO] = {COMMAND("HELLO", NONE, "agrees on a version of the protocol"),
                           WITH(hello)},
    [BEL_COMMAND_AUTH] = {COMMAND("AUTH", NONE, "lets a client in"), WITH(auth)},
    [BEL_COMMAND_CLIENT] = {COMMAND("CLIENT", KNOWN, "is about the connection itself"),
                            WITH(client)},
    [BEL_COMMAND_COMMAND] = {COMMAND("COMMAND", KNOWN, "is about the commands themselves"),
                             WITH(command)},
    [BEL_COMMAND_INFO] = {COMMAND("INFO", READ, "is about the server"), WITH(info)},
    [BEL_COMMAND_SELECT] = {COMMAND("SELECT", KNOWN, "chooses a database, of which there is one"),
                            WITH(select_arguments)},
    [BEL_COMMAND_RESET] = {COMMAND("RESET", NONE, "makes the connection as it was at first"),
                           .arguments_count = 0},
    [BEL_COMMAND_QUIT] = {COMMAND("QUIT", NONE, "ends the connection"), .arguments_count = 0},
    [BEL_COMMAND_SHUTDOWN] = {COMMAND("SHUTDOWN", ADMIN, "stops the server"),
                              WITH(shutdown_arguments)},
};

const size_t bel__commands_count = sizeof bel__commands / sizeof bel__commands[0];
static_assert(sizeof bel__commands / sizeof bel__commands[0] == BEL_COMMANDS, "all have an entry");

const struct bel_command_entry *bel__command_find(struct bel_view name)
{
    for (size_t i = 0; i < BEL_COMMANDS; i++) {
        if (bel__name_is(bel__commands[i].name, name)) return &bel__commands[i];
    }
    return NULL;
}

/* --- usage --- */

/* What stands for a value, by its type. */
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

/* Text that is written as far as there is room, and counted all the same. */
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

/* NOLINTNEXTLINE(readability-non-const-parameter): the page writes to it */
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
