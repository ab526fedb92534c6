/* SPDX-License-Identifier: MIT */

/*
 * belfry next: explains a rule in English, and prints its next times and what clock changes (e.g.
 * daylight saving) do to it. Needs no server.
 */
#include "cli/cli.h"

#include "belfry/clock.h"
#include "belfry/instant.h"
#include "belfry/plan.h"
#include "cli/duration.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/rule_hint.h"
#include "cli/value.h"
#include "cli/zone_hint.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMES_DEFAULT = 5,
    TIMES_MAX = 10000,
    NOTES_MAX = 20,
    NOTES_AHEAD_MS = 3 * 3600 * 1000, /* a clock change just after the last time is noted, too */
    TEXT_BYTES = 1024,
    SECONDS_DIGITS = 9, /* of an epoch in seconds, from 1973 to 2286 */
    SECONDS_DIGITS_MAX = 10,
    BACK_MS_FIRST = 3600 * 1000, /* how far --back looks first */
};

#define BACK_MS_MAX (INT64_C(800) * 366 * 24 * 3600 * 1000)

static const char usage[] =
    "usage: belfry next RULE [--tz ZONE] [--from TIME] [-n N] [--back] [--gap P] [--fold P]\n"
    "                   [--json]\n"
    "\n"
    "    RULE         a cron rule '0 9 * * 1-5' or '@daily', an interval '5m' or '@every 5m',\n"
    "                 or a recurrence rule 'FREQ=WEEKLY;BYDAY=MO,WE'\n"
    "    --tz ZONE    time zone of the rule, e.g. Europe/Berlin (default UTC)\n"
    "    --from TIME  print times after TIME (default now), e.g. 2026-06-01T09:00:00Z, or\n"
    "                 local in ZONE: '2026-06-01 09:00', 'tomorrow 09:00'\n"
    "    -n N         number of times to print (default 5)\n"
    "    --back       print the N times up to TIME instead: when did it last run\n"
    "    --gap P      what to do with a local time that a clock change skips: next\n"
    "                 (default), skip\n"
    "    --fold P     what to do with a local time that a clock change repeats: first\n"
    "                 (default), second, both\n"
    "    --json       print {\"rule\", \"sentence\", \"times\", \"notes\"}, times in UTC\n";

struct arguments {
    const char *rule, *zone, *from;
    enum bel_gap gap;
    enum bel_fold fold;
    long count;
    bool is_json, is_back;
};

static int refuse_option(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "belfry: %s %s: expected %s\n", name, value, expected);
    return CLI_USAGE;
}

/* Returns the index of a word in a list that ends with NULL; -1 if it is not in the list. */
static int find_word(const char *word, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) return i;
    }
    return -1;
}

static int read_option(struct arguments *arguments, int name)
{
    static const char *const gaps[] = {"next", "skip", NULL};
    static const char *const folds[] = {"first", "second", "both", NULL};
    char *end;
    int found;
    switch (name) {
    case 'z':
        arguments->zone = optarg;
        return CLI_OK;
    case 'f':
        arguments->from = optarg;
        return CLI_OK;
    case 'j':
        arguments->is_json = true;
        return CLI_OK;
    case 'b':
        arguments->is_back = true;
        return CLI_OK;
    case 'g':
        found = find_word(optarg, gaps);
        if (found < 0) return refuse_option("--gap", optarg, "next or skip");
        arguments->gap = (enum bel_gap)found;
        return CLI_OK;
    case 'F':
        found = find_word(optarg, folds);
        if (found < 0) return refuse_option("--fold", optarg, "first, second or both");
        arguments->fold = (enum bel_fold)found;
        return CLI_OK;
    case 'n':
        arguments->count = strtol(optarg, &end, 10);
        if (*end == '\0' && end != optarg && arguments->count >= 0 &&
            arguments->count <= TIMES_MAX) {
            return CLI_OK;
        }
        return refuse_option("-n", optarg, "a number from 0 to 10000");
    default:
        fputs(usage, stderr);
        return CLI_USAGE;
    }
}

/* Refuses an option that is unknown or has no value. */
static void refuse_argument(const char *argument, bool is_known)
{
    static const char *const rules[] = {"--cron", "--every", "--rrule", "--rule"};
    const char *what = is_known ? "option needs a value: " : "unknown option ";
    const char *advice = "";
    for (unsigned i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        size_t bytes = strlen(rules[i]);
        bool is_name = strncmp(argument, rules[i], bytes) == 0;
        if (!is_name || (argument[bytes] != '\0' && argument[bytes] != '=')) continue;
        argument = rules[i];
        advice = ": the rule is a word, as in belfry next '0 9 * * 1' or belfry next '@every 5m'";
    }
    if (argument[0] == '-') {
        (void)bel__options_complain("next", "%s%s%s", what, argument, advice);
    } else { /* one of several letters */
        (void)bel__options_complain("next", "%s-%c", what, optopt);
    }
}

/* Parses the arguments. Returns -1 on success, otherwise the exit status. */
static int read_arguments(struct arguments *arguments, int argc, char **argv)
{
    static const struct option names[] = {{"tz", required_argument, NULL, 'z'},
                                          {"from", required_argument, NULL, 'f'},
                                          {"gap", required_argument, NULL, 'g'},
                                          {"fold", required_argument, NULL, 'F'},
                                          {"count", required_argument, NULL, 'n'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"back", no_argument, NULL, 'b'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    int name;
    opterr = 0; /* complained about here, in the words of all verbs */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the program has one thread by then */
    while ((name = getopt_long(argc, argv, ":n:h", names, NULL)) != -1) {
        if (name == 'h') {
            fputs(usage, stdout);
            return CLI_OK;
        }
        if (name == '?' || name == ':') {
            refuse_argument(argv[optind - 1], name == ':');
            return CLI_USAGE;
        }
        int status = read_option(arguments, name);
        if (status != CLI_OK) return status;
    }
    if (optind + 1 < argc) {
        fputs("belfry next: more than one rule; quote the rule: belfry next '0 9 * * 1'\n", stderr);
        return CLI_USAGE;
    }
    if (optind == argc) {
        fputs(usage, stderr);
        return CLI_USAGE;
    }
    arguments->rule = argv[optind];
    return -1;
}

static int find_zone(struct bel_zones *zones, const char *name, const struct bel_zone **out)
{
    int err = bel_zones_find(zones, name, strlen(name), out);
    if (err == 0) return CLI_OK;
    if (err == BEL_EINVAL && bel__zone_hint(name)) return CLI_USAGE;
    if (err == BEL_EINVAL) {
        return refuse_option("--tz", name, "the name of a time zone, e.g. Europe/Berlin");
    }
    fprintf(stderr, "belfry: zone %s: %s\n", name, bel_error_text(err));
    return CLI_FAILED;
}

static int read_from(const struct arguments *arguments, struct bel_zones *zones,
                     struct bel_wall *out)
{
    struct bel_text_error why;
    struct bel_instant_options options = {zones, arguments->gap, arguments->fold};
    const struct cli_value_context context = {.zone = arguments->zone};
    char *made;
    *out = bel_clock_wall(bel_clock_system());
    if (arguments->from == NULL) return CLI_OK;
    int status = bel__cli_value(BEL_ARGUMENT_TIME, arguments->from, &context, &made);
    if (status != CLI_OK) return status;
    const char *from = made != NULL ? made : arguments->from;
    size_t bytes = strlen(from);
    if (made == NULL && bytes >= SECONDS_DIGITS && bytes <= SECONDS_DIGITS_MAX &&
        strspn(from, "0123456789") == bytes) {
        return refuse_option("--from", arguments->from,
                             "milliseconds since 1970, or a time such as 2026-06-01T09:00:00Z; "
                             "this looks like seconds");
    }
    int err = bel_instant_parse(from, strlen(from), &options, out, &why);
    free(made);
    if (err == 0) return CLI_OK;
    if (err == BEL_EINVAL) return bel__cli_refuse("a time", arguments->from, &why);
    fprintf(stderr, "belfry: --from %s: %s\n", arguments->from, bel_error_text(err));
    return CLI_FAILED;
}

static void print_one(const struct arguments *arguments, const struct bel_zone *zone,
                      struct bel_wall time, bool is_first)
{
    char text[BEL_INSTANT_BYTES];
    (void)bel_instant_print(time, text, sizeof text);
    if (arguments->is_json) {
        printf("%s\"%s\"", is_first ? "" : ", ", text);
        return;
    }
    printf("  %s", text);
    if (zone != bel_zone_utc() && strcmp(bel_zone_name(zone), "UTC") != 0) {
        (void)bel_instant_print_zoned(time, zone, text, sizeof text);
        printf("  %s", text);
    }
    printf("\n");
}

/* Prints the times and sets `*last` to the last of them. Returns 0 or BEL_ENOMEM. */
static int print_times(const struct arguments *arguments, const struct bel_plan *plan,
                       const struct bel_zone *zone, struct bel_wall from, struct bel_wall *last)
{
    int err = 0;
    *last = from;
    for (long i = 0; i < arguments->count; i++) {
        err = bel_plan_next(plan, *last, (uint64_t)i, last);
        if (err) break;
        print_one(arguments, zone, *last, i == 0);
    }
    return err == BEL_ERANGE ? 0 : err; /* BEL_ERANGE: the rule has no more times */
}

/* Prints the last times up to `to`, the latest first. The search begins ever earlier, twice as far
 * each time, until it finds enough; the times are kept in a ring. */
static int print_back(const struct arguments *arguments, const struct bel_plan *plan,
                      const struct bel_zone *zone, struct bel_wall to)
{
    size_t room = (size_t)arguments->count, found = 0;
    struct bel_wall *times = calloc(room + 1, sizeof times[0]);
    int err = times == NULL ? BEL_ENOMEM : 0;
    for (int64_t span = BACK_MS_FIRST; room > 0 && found < room && err == 0; span *= 2) {
        bool is_last = span > BACK_MS_MAX || to.ms < INT64_MIN + span;
        if (is_last) break;
        struct bel_wall at = {to.ms - span};
        for (found = 0; err == 0; found++) {
            err = bel_plan_next(plan, at, 0, &at);
            if (err || at.ms > to.ms) break;
            times[found % room] = at;
        }
        if (err == BEL_ERANGE) err = 0; /* the rule has no more times */
    }
    size_t count = found < room ? found : room;
    for (size_t i = 0; i < count && err == 0; i++) {
        print_one(arguments, zone, times[(found - 1 - i) % room], i == 0);
    }
    free(times);
    return err;
}

static void print_note(const struct arguments *arguments, const char *text, bool is_first)
{
    if (!arguments->is_json) {
        printf("note: %s\n", text);
        return;
    }
    printf("%s", is_first ? "" : ", ");
    bel__cli_print_json(text);
}

/* Returns whether a cron rule has an H, which stands alone: not that of THU or @hourly. */
static bool has_hash(const struct bel_plan *plan, const char *rule)
{
    if (bel_plan_kind(plan) != BEL_PLAN_CRON || strchr(rule, '@') != NULL) return false;
    for (const char *at = strpbrk(rule, "Hh"); at != NULL; at = strpbrk(at + 1, "Hh")) {
        bool is_start = at == rule || !isalpha((unsigned char)at[-1]);
        if (is_start && !isalpha((unsigned char)at[1])) return true;
    }
    return false;
}

/* Returns whether a recurrence rule takes a part of its times from its start, which it does not
 * have. */
static bool lacks_start(const struct bel_plan *plan, const char *rule)
{
    if (bel_plan_kind(plan) != BEL_PLAN_RRULE || strncasecmp(rule, "DTSTART", 7) == 0) return false;
    return strcasestr(rule, "BYSECOND=") == NULL;
}

/* Returns how the times of a timer with this rule may differ from those printed; NULL if not. */
static const char *difference_of(const struct bel_plan *plan, const char *rule)
{
    if (has_hash(plan, rule)) {
        return "H depends on the id of the timer: a timer has other times than these";
    }
    if (!lacks_start(plan, rule)) return NULL;
    return "what the rule leaves out, such as the second, comes from --at, or from when the timer "
           "is scheduled";
}

static void print_notes(const struct arguments *arguments, const struct bel_plan *plan,
                        struct bel_wall from, struct bel_wall last)
{
    char text[TEXT_BYTES];
    const char *texts[CLI_RULE_NOTES_MAX + 1];
    size_t count = 0;
    if (bel_plan_kind(plan) == BEL_PLAN_CRON) count = bel__rule_notes(arguments->rule, texts);
    const char *difference = difference_of(plan, arguments->rule);
    if (difference != NULL) texts[count++] = difference;
    for (size_t i = 0; i < count; i++) {
        print_note(arguments, texts[i], i == 0);
    }
    if (bel_wall_add(last, NOTES_AHEAD_MS, &last) != 0) return;
    for (unsigned i = 0; i < NOTES_MAX && bel_plan_note(plan, &from, last, text, sizeof text);
         i++) {
        print_note(arguments, text, i == 0 && count == 0);
    }
}

static int print_all(const struct arguments *arguments, const struct bel_plan *plan,
                     const struct bel_zone *zone, struct bel_wall from)
{
    char sentence[TEXT_BYTES];
    struct bel_wall last = from;
    (void)bel_plan_explain(plan, sentence, sizeof sentence);
    if (!arguments->is_json) {
        printf("%s\n", sentence);
        if (arguments->is_back) return print_back(arguments, plan, zone, from);
        int err = print_times(arguments, plan, zone, from, &last);
        if (err == 0) print_notes(arguments, plan, from, last);
        return err;
    }
    printf("{\"rule\": ");
    bel__cli_print_json(arguments->rule);
    printf(", \"sentence\": ");
    bel__cli_print_json(sentence);
    printf(", \"times\": [");
    int err = arguments->is_back ? print_back(arguments, plan, zone, from)
                                 : print_times(arguments, plan, zone, from, &last);
    printf("], \"notes\": [");
    if (err == 0 && !arguments->is_back) print_notes(arguments, plan, from, last);
    printf("]}\n");
    return err;
}

/* Finds the zone of the rule: --tz, or TZ= at its start, which is split off. */
static int read_zone(const struct arguments *arguments, struct bel_zones *zones,
                     struct bel_view *rule, const struct bel_zone **out)
{
    struct bel_view zone;
    char name[BEL_ZONE_NAME_MAX + 1];
    if (!bel_cron_split_zone(rule, &zone) && !bel_rrule_zone(*rule, &zone)) {
        return arguments->zone != NULL ? find_zone(zones, arguments->zone, out) : CLI_OK;
    }
    if (arguments->zone != NULL) {
        return refuse_option("--tz", arguments->zone, "no zone: the rule begins with one");
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)zone.bytes, (const char *)zone.data);
    return find_zone(zones, name, out);
}

/* Returns whether a rule has times before now: an interval and a recurrence rule without DTSTART
 * start now. */
static bool has_past(const struct bel_plan *plan, struct bel_view rule)
{
    if (bel_plan_kind(plan) == BEL_PLAN_CRON) return true;
    return rule.bytes > 7 && strncasecmp(rule.data, "DTSTART", 7) == 0;
}

/* Returns whether a text that is no rule is an interval, 'every 5 minutes' or 5m, after printing
 * what to type. */
static bool refuse_interval(const char *text)
{
    char rewritten[CLI_DURATION_BYTES];
    struct bel_text_error why;
    uint64_t ms;
    const char *span = text + (*text == '@');
    span = strncasecmp(span, "every ", 6) == 0 ? span + 6 : text;
    if (span == text && strspn(text, "0123456789 ") == strlen(text)) return false; /* cron fields */
    if (bel__cli_duration(span, &ms, &why) != 0) return false;
    if (bel__cli_duration_rewrite(span, rewritten)) span = rewritten;
    fprintf(stderr, "belfry: '%s' is an interval: type belfry next '@every %s'\n", text, span);
    return true;
}

/* Refuses a number, which the parser of rules takes for an interval in milliseconds. */
static int check_unit(const char *rule)
{
    size_t bytes = strlen(rule);
    if (bytes == 0 || strspn(rule, "0123456789") < bytes) return CLI_OK;
    return refuse_option("rule", rule, "a unit, as in 5m or 300s, or the five fields of cron");
}

static int preview(const struct arguments *arguments, struct bel_zones *zones)
{
    struct bel_plan *plan;
    struct bel_text_error why;
    struct bel_plan_options options = {
        .zone = bel_zone_utc(), .gap = arguments->gap, .fold = arguments->fold};
    struct bel_view rule = {arguments->rule, strlen(arguments->rule)};
    int status = check_unit(arguments->rule);
    if (status == CLI_OK) status = read_from(arguments, zones, &options.now);
    if (status == CLI_OK) status = read_zone(arguments, zones, &rule, &options.zone);
    if (status != CLI_OK) return status;
    int err = bel_plan_create(rule.data, rule.bytes, &options, &plan, &why);
    if (err == BEL_EINVAL && refuse_interval(arguments->rule)) return CLI_USAGE;
    if (err == BEL_EINVAL) {
        why.position += strlen(arguments->rule) - rule.bytes;
        return bel__cli_refuse("a rule", arguments->rule, &why);
    }
    if (err == 0 && arguments->is_back && !has_past(plan, rule)) {
        bel_plan_destroy(plan);
        return refuse_option("--back", arguments->rule,
                             "a cron rule, or a recurrence rule with DTSTART; other rules begin "
                             "when they are scheduled");
    }
    if (err == 0) {
        err = print_all(arguments, plan, options.zone, options.now);
        bel_plan_destroy(plan);
    }
    if (err == 0) return CLI_OK;
    fprintf(stderr, "belfry: %s\n", bel_error_text(err));
    return CLI_FAILED;
}

int bel__cli_next(int argc, char **argv)
{
    struct arguments arguments = {.count = TIMES_DEFAULT};
    struct bel_zones *zones;
    int status = read_arguments(&arguments, argc, argv);
    if (status >= 0) return status;
    int err = bel_zones_open(NULL, &zones);
    if (err) {
        fprintf(stderr, "belfry: cannot open the time zones; install tzdata: %s\n",
                bel_error_text(err));
        return CLI_FAILED;
    }
    status = preview(&arguments, zones);
    bel_zones_close(zones);
    return status;
}
