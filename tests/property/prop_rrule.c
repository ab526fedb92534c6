/* SPDX-License-Identifier: MIT */

/*
 * Random rules compared with python3-dateutil, which evaluates all of them at once in a subprocess.
 * The first times of each rule are compared, one after the other and from random points in between,
 * so that a new search must find the same.
 *
 * Rules that the two interpret differently are left out: BYWEEKNO without BYDAY, which means the
 * start's weekday here and all weekdays there, or with an INTERVAL, which counts years of weeks
 * here; the weeks 52 and 53, which dateutil finds in some years that do not have them; and BYSETPOS
 * in the week of a start in midweek, of which dateutil counts only the days from the start on.
 * test_rrule compares all weeks with strftime().
 */
#include "belfry/rrule.h"

#include "../check.h"
#include "../random.h"

#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TIMES_MAX = 24,
    LINE_MAX_BYTES = TIMES_MAX * 20,
    SKIPPED = 77,
    NOT_FOUND = 127,
    DAY = 86400,
};

struct rule {
    char text[2048];
    struct bel_civil start;
    int64_t times[TIMES_MAX];
    unsigned count;
    bool is_read;
};

static void add(struct rule *rule, const char *text)
{
    size_t used = strlen(rule->text);
    CHECK(used + strlen(text) < sizeof rule->text);
    memcpy(rule->text + used, text, strlen(text) + 1);
}

static void add_number(struct rule *rule, uint64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    add(rule, text);
}

static bool one_in(uint64_t *random, uint64_t chance)
{
    return random_below(random, chance) == 0;
}

/* Adds a list of up to `count_max` numbers, some from the end if that is valid. */
static void add_list(struct rule *rule, uint64_t *random, const char *name, unsigned min,
                     unsigned max, unsigned count_max)
{
    bool is_signed = min > 0 && strcmp(name, ";BYMONTH=") != 0;
    uint64_t count = 1 + random_below(random, count_max);
    add(rule, name);
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0) add(rule, ",");
        if (is_signed && one_in(random, 3)) add(rule, "-");
        add_number(rule, min + random_below(random, max - min + 1));
    }
}

static void add_weekdays(struct rule *rule, uint64_t *random, unsigned nth_max)
{
    static const char *const names[] = {"SU", "MO", "TU", "WE", "TH", "FR", "SA"};
    uint64_t count = 1 + random_below(random, 4);
    bool has_nth = nth_max > 0 && one_in(random, 2);
    add(rule, ";BYDAY=");
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0) add(rule, ",");
        if (has_nth) {
            if (one_in(random, 2)) add(rule, "-");
            add_number(rule, 1 + random_below(random, nth_max));
        }
        add(rule, names[random_below(random, 7)]);
    }
}

static void add_times(struct rule *rule, uint64_t *random)
{
    if (one_in(random, 4)) add_list(rule, random, ";BYHOUR=", 0, 23, 4);
    if (one_in(random, 4)) add_list(rule, random, ";BYMINUTE=", 0, 59, 4);
    if (one_in(random, 6)) add_list(rule, random, ";BYSECOND=", 0, 59, 3);
}

/* Moves the start to the beginning of its week. */
static void start_on_monday(struct rule *rule)
{
    struct bel_zone_instants instants;
    CHECK(bel_zone_at(bel_zone_utc(), &rule->start, &instants) == 0);
    int64_t day = instants.first / DAY;
    CHECK(bel_zone_civil(bel_zone_utc(), instants.first - (day + 3) % 7 * DAY, &rule->start) == 0);
}

/* Adds BYSETPOS now and then, if the rule has a part that it can choose from. */
static void add_positions(struct rule *rule, uint64_t *random, unsigned max)
{
    bool is_weekly = strstr(rule->text, "FREQ=WEEKLY") != NULL;
    if (strstr(rule->text, ";BY") == NULL || !one_in(random, 3)) return;
    if (is_weekly && strstr(rule->text, "WKST") != NULL) return;
    if (is_weekly) start_on_monday(rule);
    add_list(rule, random, ";BYSETPOS=", 1, max, 2);
}

static void add_interval(struct rule *rule, uint64_t *random, uint64_t max)
{
    static const char *const week_starts[] = {";WKST=SU", ";WKST=MO", ";WKST=TH"};
    if (one_in(random, 2)) {
        add(rule, ";INTERVAL=");
        add_number(rule, 1 + random_below(random, max));
    }
    if (one_in(random, 4)) add(rule, week_starts[random_below(random, 3)]);
}

static void make_days(struct rule *rule, uint64_t *random)
{
    bool is_daily = one_in(random, 2);
    add(rule, is_daily ? "FREQ=DAILY" : "FREQ=WEEKLY");
    add_interval(rule, random, 20);
    if (one_in(random, 3)) add_list(rule, random, ";BYMONTH=", 1, 12, 4);
    if (is_daily && one_in(random, 3)) add_list(rule, random, ";BYMONTHDAY=", 1, 31, 4);
    if (one_in(random, 2)) add_weekdays(rule, random, 0);
    add_times(rule, random);
    add_positions(rule, random, is_daily ? 3 : 8);
}

static void make_months(struct rule *rule, uint64_t *random)
{
    add(rule, "FREQ=MONTHLY");
    add_interval(rule, random, 14);
    bool has_days = one_in(random, 2), has_weekdays = one_in(random, 2);
    if (one_in(random, 4)) add_list(rule, random, ";BYMONTH=", 1, 12, 4);
    if (has_days) add_list(rule, random, ";BYMONTHDAY=", 1, 31, 6);
    if (has_weekdays) add_weekdays(rule, random, has_days ? 0 : 5);
    add_times(rule, random);
    add_positions(rule, random, 5);
}

static void make_years(struct rule *rule, uint64_t *random)
{
    uint64_t kind = random_below(random, 5);
    add(rule, "FREQ=YEARLY");
    add_interval(rule, random, kind == 0 ? 1 : 6);
    switch (kind) {
    case 0:
        add_list(rule, random, ";BYWEEKNO=", 1, 51, 4);
        add_weekdays(rule, random, 0);
        break;
    case 1:
        add_list(rule, random, ";BYYEARDAY=", 1, 366, 6);
        if (one_in(random, 3)) add_weekdays(rule, random, 0);
        break;
    case 2:
        add_weekdays(rule, random, 53);
        break;
    default:
        if (one_in(random, 2)) add_list(rule, random, ";BYMONTH=", 1, 12, 3);
        if (one_in(random, 2)) {
            add_list(rule, random, ";BYMONTHDAY=", 1, 31, 4);
            if (one_in(random, 3)) add_weekdays(rule, random, 0);
        }
        break;
    }
    add_times(rule, random);
    if (kind == 0) return; /* weeks: dateutil counts in calendar years */
    add_positions(rule, random, 20);
}

static void make_less_than_days(struct rule *rule, uint64_t *random)
{
    static const char *const names[] = {"FREQ=HOURLY", "FREQ=MINUTELY", "FREQ=SECONDLY"};
    static const uint64_t intervals[] = {30, 200, 5000};
    uint64_t freq = random_below(random, 3);
    add(rule, names[freq]);
    add_interval(rule, random, intervals[freq]);
    if (freq == 0 && one_in(random, 3)) add_list(rule, random, ";BYMONTH=", 1, 12, 4);
    if (freq == 0 && one_in(random, 4)) add_list(rule, random, ";BYMONTHDAY=", 1, 31, 4);
    if (freq < 2 && one_in(random, 3)) add_weekdays(rule, random, 0);
    add_times(rule, random);
    add_positions(rule, random, 4);
}

static void make_rule(struct rule *rule, uint64_t seed)
{
    uint64_t random = seed;
    int64_t start = (int64_t)random_below(&random, INT64_C(40) * 366 * DAY);
    *rule = (struct rule){0};
    CHECK(bel_zone_civil(bel_zone_utc(), start, &rule->start) == 0);
    if (one_in(&random, 2)) rule->start.minute = rule->start.second = 0;
    switch (random_below(&random, 5)) {
    case 0:
        make_less_than_days(rule, &random);
        break;
    case 1:
        make_days(rule, &random);
        break;
    case 2:
        make_years(rule, &random);
        break;
    default:
        make_months(rule, &random);
        break;
    }
    if (one_in(&random, 3)) {
        add(rule, ";COUNT=");
        add_number(rule, 1 + random_below(&random, TIMES_MAX - 1));
    }
}

static int64_t next_of(const struct bel_rrule *rrule, int64_t after)
{
    struct bel_zone_when when = {.zone = bel_zone_utc()};
    int64_t next;
    int err = bel_rrule_next(rrule, &when, after, &next);
    CHECK(err == 0 || err == BEL_ERANGE);
    return err == 0 ? next : INT64_MAX;
}

/* Follows a rule, in order and from random points. */
static void follow(struct rule *rule, uint64_t seed)
{
    struct bel_rrule *rrule;
    struct bel_text_error why;
    uint64_t random = ~seed;
    CHECK_NOTE("seed %" PRIu64 ": %.200s", seed, rule->text);
    int err = bel_rrule_parse(rule->text, strlen(rule->text), &rule->start, &rrule, &why);
    if (err) {
        CHECK_NOTE("seed %" PRIu64 ": %.80s: at %zu: %s", seed, rule->text, why.position,
                   why.expected);
        CHECK(strstr(why.expected, "400 years") != NULL || strstr(why.expected, "exists") != NULL);
        return;
    }
    rule->is_read = true;
    int64_t at = -DAY;
    for (; rule->count < TIMES_MAX; rule->count++) {
        at = next_of(rrule, at);
        if (at == INT64_MAX) break;
        rule->times[rule->count] = at;
    }
    for (unsigned i = 0; i + 1 < rule->count; i++) {
        uint64_t span = (uint64_t)(rule->times[i + 1] - rule->times[i]);
        int64_t after = rule->times[i] + (int64_t)random_below(&random, span);
        CHECK_EQ((uint64_t)next_of(rrule, after), (uint64_t)rule->times[i + 1]);
    }
    bel_rrule_destroy(rrule);
}

static void print_time(char *out, size_t room, int64_t at)
{
    struct bel_civil civil;
    CHECK(bel_zone_civil(bel_zone_utc(), at, &civil) == 0);
    (void)snprintf(out, room, "%04d%02d%02dT%02d%02d%02d", civil.year, civil.month, civil.day,
                   civil.hour, civil.minute, civil.second);
}

/* Prints the line that dateutil must print for a rule. */
static void print_times(char *out, size_t room, const struct rule *rule)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < rule->count; i++) {
        if (i > 0) out[used++] = ' ';
        print_time(out + used, room - used, rule->times[i]);
        used += strlen(out + used);
    }
}

static void ask(FILE *questions, const struct rule *rule)
{
    char start[32], last[32];
    struct bel_zone_instants instants;
    CHECK(bel_zone_at(bel_zone_utc(), &rule->start, &instants) == 0);
    print_time(start, sizeof start, instants.first);
    print_time(last, sizeof last, rule->times[rule->count - 1]);
    CHECK(fprintf(questions, "%s %s %s\n", start, last, rule->text) > 0);
}

static void compare(FILE *answers, struct cases cases)
{
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        struct rule rule;
        char got[LINE_MAX_BYTES * 2], want[LINE_MAX_BYTES];
        make_rule(&rule, seed);
        follow(&rule, seed);
        if (!rule.is_read) continue;
        print_times(want, sizeof want, &rule);
        if (fgets(got, sizeof got, answers) == NULL) return; /* the end says why */
        got[strcspn(got, "\n")] = '\0';
        if (strcmp(got, want) != 0) fprintf(stderr, "dateutil %s\nbelfry   %s\n", got, want);
        CHECK_NOTE("seed %" PRIu64 ": %.200s", seed, rule.text);
        CHECK(strcmp(got, want) == 0);
    }
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, 2000);
    char path[] = "/tmp/prop_rrule.XXXXXX", command[512];
    uint64_t read_count = 0;
    if (!bel_rrule_is_supported()) {
        printf("SKIPPED: this build has no libical\n");
        return SKIPPED;
    }
    int file = mkstemp(path);
    CHECK(file >= 0);
    FILE *questions = fdopen(file, "w");
    CHECK(questions != NULL);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        struct rule rule;
        make_rule(&rule, seed);
        follow(&rule, seed);
        if (!rule.is_read) continue;
        ask(questions, &rule);
        read_count++;
    }
    CHECK(fclose(questions) == 0);
    (void)snprintf(command, sizeof command, "python3 '%s' <'%s'", DATEUTIL_SCRIPT, path);
    FILE *answers = popen(command, "r");
    CHECK(answers != NULL);
    compare(answers, cases);
    int status = pclose(answers);
    (void)unlink(path);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == SKIPPED || WEXITSTATUS(status) == NOT_FOUND)) {
        printf("SKIPPED: there is no python3-dateutil to compare with\n");
        return SKIPPED;
    }
    CHECK(status == 0);
    CHECK(read_count * 2 > cases.last - cases.first || cases.first == cases.last);
    printf("ok   %" PRIu64 " rules of %" PRIu64 " name the same times as dateutil's\n", read_count,
           cases.last - cases.first + 1);
    return EXIT_SUCCESS;
}
