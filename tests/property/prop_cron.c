/* SPDX-License-Identifier: MIT */

/*
 * Random rules in difficult zones, around their clock changes, compared with a scan of every
 * minute:
 *
 *   - with a star for the hour, every minute of real time, by what the clocks show;
 *   - without, every minute of local time, by when the clocks show it and the policies.
 *
 * The scan uses its own lists for a rule, not the bits of the parser. Each rule is also printed and
 * parsed again, and must be the same.
 */
#include "belfry/cron.h"
#include "property.h"

#include <string.h>

#define DAY INT64_C(86400)

enum {
    MINUTE = 60,
    WINDOW_DAYS = 3, /* before and after a change */
    FIRINGS_MAX = 16 * 1440,
};

static const char *const zone_names[] = {
    "America/Santiago", "Australia/Lord_Howe",  "Pacific/Apia",  "Africa/Casablanca",
    "Antarctica/Troll", "Asia/Beirut",          "Europe/Berlin", "America/New_York",
    "Europe/Dublin",    "America/Scoresbysund", "Asia/Gaza",     "UTC",
};

/* A rule as the scan knows it: which values match, and how. */
struct rule {
    char text[512];
    bool minutes[60], hours[24], days[32], months[13], weekdays[7];
    bool last_weekday[7], nth_weekday[6][7];
    bool last_day, nearest[32], nearest_last, nearest_before[31];
    bool has_years, years[300]; /* from 1970 */
    bool hour_star, day_star, weekday_star;
    bool day_extras, weekday_extras;
};

static struct bel_zones *zones;

static void add(struct rule *rule, const char *text)
{
    size_t used = strlen(rule->text);
    CHECK(used + strlen(text) < sizeof rule->text);
    memcpy(rule->text + used, text, strlen(text) + 1);
}

static void add_number(struct rule *rule, const char *format, uint64_t number)
{
    char text[32];
    CHECK_EQ(strlen(format) > 0, 1);
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    add(rule, text);
    add(rule, format + 1);
}

/* Returns a step that is now and then past the end of a field of `values`. */
static uint64_t make_step(uint64_t *random, unsigned values)
{
    return 1 + random_below(random, random_below(random, 8) == 0 ? 999 : values);
}

/* Adds a value: a number, or now and then a name, or the first letters of one. */
static void add_value(struct rule *rule, uint64_t *random, unsigned max, uint64_t value)
{
    static const char *const months[] = {"",        "January",  "february", "March",  "April",
                                         "May",     "June",     "JULY",     "August", "September",
                                         "October", "November", "December"};
    static const char *const weekdays[] = {"sunday",   "Monday", "Tuesday", "Wednesday",
                                           "Thursday", "FRIDAY", "Saturday"};
    const char *const *names = max == 12 ? months : max == 6 ? weekdays : NULL;
    if (names == NULL || random_below(random, 2) == 0) {
        add_number(rule, "n", value);
        return;
    }
    char text[16] = "";
    size_t bytes = 3 + random_below(random, strlen(names[value]) - 2);
    memcpy(text, names[value], bytes);
    add(rule, text);
}

/* A field of plain values: a star with or without a step, or a list of values and ranges. */
static bool make_field(struct rule *rule, uint64_t *random, bool *named, unsigned min, unsigned max,
                       unsigned star_chance)
{
    if (random_below(random, 100) < star_chance) {
        uint64_t step = random_below(random, 3) == 0 ? make_step(random, max - min + 1) : 1;
        add(rule, "*");
        if (step > 1) {
            add(rule, "/");
            add_number(rule, "n", step);
        }
        for (uint64_t value = min; value <= max; value += step) {
            named[value] = true;
        }
        return true;
    }
    uint64_t items = 1 + random_below(random, 3);
    for (uint64_t i = 0; i < items; i++) {
        uint64_t first = min + random_below(random, max - min + 1), last = first, step = 1;
        if (i > 0) add(rule, ",");
        add_value(rule, random, max, first);
        if (random_below(random, 3) == 0) {
            bool wraps = first > min && random_below(random, 3) == 0;
            last = wraps ? min + random_below(random, first - min)
                         : first + random_below(random, max - first + 1);
            add(rule, "-");
            add_value(rule, random, max, last);
            if (wraps) last += max - min + 1;
            if (random_below(random, 2) == 0) {
                step = make_step(random, max - min + 1);
                add(rule, "/");
                add_number(rule, "n", step);
            }
        }
        for (uint64_t value = first; value <= last; value += step) {
            named[value <= max ? value : value - (max - min + 1)] = true;
        }
    }
    return false;
}

static void make_day_extras(struct rule *rule, uint64_t *random)
{
    uint64_t day = 1 + random_below(random, 31);
    switch (random_below(random, 12)) {
    case 0:
        add(rule, ",L");
        rule->last_day = true;
        break;
    case 1:
        add(rule, ",");
        add_number(rule, "nW", day);
        rule->nearest[day] = true;
        break;
    case 2:
        add(rule, ",LW");
        rule->nearest_last = true;
        break;
    case 3:
        add(rule, ",L-");
        add_number(rule, "nW", day - 1);
        if (day == 1) rule->nearest_last = true;
        rule->nearest_before[day - 1] = true;
        break;
    default:
        return;
    }
    rule->day_extras = true;
}

static void make_weekday_extras(struct rule *rule, uint64_t *random)
{
    uint64_t weekday = random_below(random, 7), nth = 1 + random_below(random, 5);
    switch (random_below(random, 10)) {
    case 0:
        add(rule, ",");
        add_number(rule, "nL", weekday);
        rule->last_weekday[weekday] = true;
        break;
    case 2:
        add(rule, ",L");
        add_number(rule, "n", weekday);
        rule->last_weekday[weekday] = true;
        break;
    case 3:
        add(rule, ",");
        add_number(rule, "n#L", weekday);
        rule->last_weekday[weekday] = true;
        break;
    case 1:
        add(rule, ",");
        add_number(rule, "n#", weekday);
        add_number(rule, "n", nth);
        rule->nth_weekday[nth][weekday] = true;
        break;
    default:
        return;
    }
    rule->weekday_extras = true;
}

static void make_years(struct rule *rule, uint64_t *random)
{
    uint64_t first = random_below(random, 120), last = first + random_below(random, 60);
    uint64_t step = 1 + random_below(random, 3);
    add(rule, " ");
    add_number(rule, "n-", 1970 + first);
    add_number(rule, "n/", 1970 + last);
    add_number(rule, "n", step);
    for (; first <= last; first += step) {
        rule->years[first] = true;
    }
}

static struct rule make_rule(uint64_t *random)
{
    struct rule rule = {.has_years = random_below(random, 6) == 0};
    if (rule.has_years) add(&rule, "0 ");
    (void)make_field(&rule, random, rule.minutes, 0, 59, 30);
    add(&rule, " ");
    rule.hour_star = make_field(&rule, random, rule.hours, 0, 23, 40);
    add(&rule, " ");
    rule.day_star = make_field(&rule, random, rule.days, 1, 31, 60);
    make_day_extras(&rule, random);
    add(&rule, " ");
    (void)make_field(&rule, random, rule.months, 1, 12, 80);
    add(&rule, " ");
    rule.weekday_star = make_field(&rule, random, rule.weekdays, 0, 6, 60);
    make_weekday_extras(&rule, random);
    if (rule.has_years) make_years(&rule, random);
    return rule;
}

/* An independent calendar: days are counted on from a known one. */
struct date {
    int year;
    unsigned month, day, days, weekday;
};

static unsigned length_of(int year, unsigned month)
{
    static const unsigned lengths[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return lengths[month] + (month == 2 && leap);
}

static struct date date_of(const struct bel_civil *civil)
{
    static const unsigned shift[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
    int y = civil->year - (civil->month < 3);
    int weekday = (y + y / 4 - y / 100 + y / 400 + (int)shift[civil->month - 1] + civil->day) % 7;
    return (struct date){civil->year, civil->month, civil->day,
                         length_of(civil->year, civil->month), (unsigned)weekday};
}

/* Returns whether a day is the nearest day from Monday to Friday to another of its month. */
static bool is_nearest(const struct date *date, unsigned wanted)
{
    if (wanted > date->days || date->weekday == 0 || date->weekday == 6) return false;
    unsigned weekday = (date->weekday + 35 + wanted - date->day) % 7;
    if (weekday == 6) return date->day == (wanted > 1 ? wanted - 1 : wanted + 2);
    if (weekday == 0) return date->day == (wanted < date->days ? wanted + 1 : wanted - 2);
    return date->day == wanted;
}

static bool names_day(const struct rule *rule, const struct date *date)
{
    bool by_day = rule->days[date->day] || (rule->last_day && date->day == date->days);
    for (unsigned day = 1; day <= 31; day++) {
        by_day = by_day || (rule->nearest[day] && is_nearest(date, day));
    }
    for (unsigned before = 0; before < date->days && before <= 30; before++) {
        by_day = by_day || (rule->nearest_before[before] && is_nearest(date, date->days - before));
    }
    by_day = by_day || (rule->nearest_last && is_nearest(date, date->days));
    bool by_weekday = rule->weekdays[date->weekday] ||
                      (rule->last_weekday[date->weekday] && date->day + 7 > date->days) ||
                      rule->nth_weekday[(date->day - 1) / 7 + 1][date->weekday];
    if (!rule->months[date->month]) return false;
    if (rule->has_years && (date->year < 1970 || !rule->years[date->year - 1970])) return false;
    if (!rule->day_star && !rule->weekday_star) return by_day || by_weekday;
    return by_day && by_weekday;
}

static bool names(const struct rule *rule, const struct bel_civil *civil)
{
    if (!rule->minutes[civil->minute] || !rule->hours[civil->hour] || civil->second != 0) {
        return false;
    }
    struct date date = date_of(civil);
    return names_day(rule, &date);
}

struct firings {
    int64_t times[FIRINGS_MAX];
    size_t count;
};

static void note(struct firings *firings, int64_t time, int64_t from, int64_t to)
{
    if (time <= from || time > to) return;
    for (size_t i = firings->count; i > 0 && firings->times[i - 1] >= time; i--) {
        if (firings->times[i - 1] == time) return;
    }
    CHECK(firings->count < FIRINGS_MAX);
    firings->times[firings->count++] = time;
}

static int compare(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Every minute of real time. */
static void scan_real(const struct rule *rule, const struct bel_zone *zone, int64_t from,
                      int64_t to, struct firings *out)
{
    for (int64_t at = from - from % MINUTE; at <= to; at += MINUTE) {
        struct bel_civil civil;
        CHECK(bel_zone_civil(zone, at, &civil) == 0);
        if (names(rule, &civil)) note(out, at, from, to);
    }
}

/* Every minute of local time. */
static void scan_local(const struct rule *rule, const struct bel_zone_when *when, int64_t from,
                       int64_t to, struct firings *out)
{
    int64_t start = from - 2 * DAY;
    for (int64_t at = start - start % MINUTE; at <= to + 2 * DAY; at += MINUTE) {
        struct bel_civil civil;
        struct bel_zone_instants instants;
        CHECK(bel_zone_civil(bel_zone_utc(), at, &civil) == 0);
        if (!names(rule, &civil)) continue;
        CHECK(bel_zone_at(when->zone, &civil, &instants) == 0);
        if (instants.answer == BEL_ZONE_GAP && when->gap == BEL_GAP_SKIP) continue;
        if (when->fold != BEL_FOLD_SECOND) note(out, instants.first, from, to);
        if (when->fold != BEL_FOLD_FIRST) note(out, instants.second, from, to);
        if (instants.answer != BEL_ZONE_FOLD) note(out, instants.first, from, to);
    }
    qsort(out->times, out->count, sizeof out->times[0], compare);
}

static void compare_with_scan(const struct rule *rule, const struct bel_cron *cron,
                              const struct bel_zone_when *when, int64_t from, int64_t to)
{
    static struct firings firings;
    firings.count = 0;
    if (rule->hour_star) {
        scan_real(rule, when->zone, from, to, &firings);
    } else {
        scan_local(rule, when, from, to, &firings);
    }
    int64_t at = from, next, again;
    for (size_t i = 0; i < firings.count; i++) {
        if (i > 0 && firings.times[i] == firings.times[i - 1]) continue;
        CHECK(bel_cron_next(cron, when, at, &next));
        if (next != firings.times[i]) {
            fprintf(stderr, "after %" PRId64 ": got %" PRId64 ", want %" PRId64 "\n", at, next,
                    firings.times[i]);
        }
        CHECK(next == firings.times[i]);
        /* A search that begins in the second before, possibly in another span, finds it too. */
        CHECK(bel_cron_next(cron, when, next - 1, &again));
        CHECK(again == next);
        at = next;
    }
    CHECK(!bel_cron_next(cron, when, at, &next) || next > to);
}

static void check_printing(const struct bel_cron *cron)
{
    char text[1024];
    struct bel_cron again;
    CHECK(bel_cron_print(cron, text, sizeof text) < sizeof text);
    CHECK(bel_cron_parse(text, strlen(text), 0, &again, NULL) == 0);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): what is between is 0 */
    CHECK(memcmp(cron, &again, sizeof again) == 0);
}

/* Returns a random clock change of the zone between 1970 and 2090, or any time. */
static int64_t pick_moment(const struct bel_zone *zone, uint64_t *random)
{
    int64_t at = (int64_t)random_below(random, UINT64_C(120) * 366 * DAY), change;
    return bel_zone_next_change(zone, at, &change) ? change : at;
}

static void run_case(uint64_t seed)
{
    uint64_t random = seed;
    const char *name = zone_names[random_below(&random, sizeof zone_names / sizeof *zone_names)];
    const struct bel_zone *zone;
    CHECK(bel_zones_find(zones, name, strlen(name), &zone) == 0);
    struct rule rule = make_rule(&random);
    struct bel_zone_when when = {zone, (enum bel_gap)random_below(&random, 2),
                                 (enum bel_fold)random_below(&random, 3)};
    CHECK_NOTE("%.120s in %s, gap %d, fold %d; again with: prop_cron %" PRIu64, rule.text, name,
               (int)when.gap, (int)when.fold, seed);
    struct bel_cron cron;
    int err = bel_cron_parse(rule.text, strlen(rule.text), 0, &cron, NULL);
    if (err) return; /* a date that does not exist: the unit test covers these */
    check_printing(&cron);
    int64_t moment = pick_moment(zone, &random);
    compare_with_scan(&rule, &cron, &when, moment - WINDOW_DAYS * DAY, moment + WINDOW_DAYS * DAY);
}

int main(int argc, char **argv)
{
    CHECK(bel_zones_open(NULL, &zones) == 0);
    int status = run_cases(argc, argv, 3000, run_case, "rules as a scan of every minute");
    bel_zones_close(zones);
    return status;
}
