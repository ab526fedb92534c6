/* SPDX-License-Identifier: MIT */

/* A text is a day, which may be missing, and a time of day. */
#include "cli/local_time.h"

#include "core/units.h"
#include "plan/civil.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    CLOCK_BYTES = 16, /* more than any time of day has */
};

enum day {
    DAY_NONE, /* the next one on which the time is still to come */
    DAY_TODAY,
    DAY_TOMORROW,
    DAY_WEEKDAY,
    DAY_DATE,
};

struct local_text {
    enum day day;
    unsigned weekday; /* 0 is Sunday */
    unsigned year, month, date;
    unsigned hour, minute, second;
};

/* Reads a number of `min` to `max` digits. Returns false if there is none. */
static bool read_number(const char **at, unsigned min, unsigned max, unsigned *out)
{
    unsigned digits = 0;
    *out = 0;
    for (; **at >= '0' && **at <= '9' && digits < max; digits++) {
        *out = *out * 10 + (unsigned)(*(*at)++ - '0');
    }
    return digits >= min && !(**at >= '0' && **at <= '9');
}

static bool skip(const char **at, char byte)
{
    if (**at != byte) return false;
    ++*at;
    return true;
}

/* Reads "am" or "pm" after an hour from 1 to 12, up to the end. */
static bool read_half(const char *at, struct local_text *out)
{
    bool is_pm = strcasecmp(at, "pm") == 0;
    if (!is_pm && strcasecmp(at, "am") != 0) return false;
    if (out->hour < 1 || out->hour > 12) return false;
    out->hour = out->hour % 12 + (is_pm ? 12 : 0);
    return true;
}

/* Reads HH:MM or HH:MM:SS, both also with am or pm, or 9am, or noon, up to the end. */
static bool read_clock(const char *at, struct local_text *out)
{
    out->minute = out->second = 0;
    out->hour = 12;
    if (strcasecmp(at, "noon") == 0) return true;
    if (!read_number(&at, 1, 2, &out->hour)) return false;
    bool has_minute = skip(&at, ':');
    if (has_minute && !read_number(&at, 2, 2, &out->minute)) return false;
    if (has_minute && skip(&at, ':') && !read_number(&at, 2, 2, &out->second)) return false;
    if (out->hour >= 24 || out->minute >= 60 || out->second >= 60) return false;
    if (*at == '\0') return has_minute;
    return read_half(at + strspn(at, " "), out);
}

/* Reads the word of a day. Returns false if it is not one. */
static bool read_day(const char *word, size_t bytes, struct local_text *out)
{
    static const char *const weekdays[] = {"sunday",   "monday", "tuesday", "wednesday",
                                           "thursday", "friday", "saturday"};
    out->day = DAY_TODAY;
    if (bytes == 5 && strncasecmp(word, "today", bytes) == 0) return true;
    out->day = DAY_TOMORROW;
    if (bytes == 8 && strncasecmp(word, "tomorrow", bytes) == 0) return true;
    out->day = DAY_WEEKDAY;
    for (unsigned i = 0; i < 7; i++) {
        bool is_whole = bytes == 3 || bytes == strlen(weekdays[i]);
        out->weekday = i;
        if (is_whole && strncasecmp(word, weekdays[i], bytes) == 0) return true;
    }
    const char *end = word + bytes;
    out->day = DAY_DATE;
    if (!read_number(&word, 4, 4, &out->year) || !skip(&word, '-')) return false;
    if (!read_number(&word, 2, 2, &out->month) || !skip(&word, '-')) return false;
    return read_number(&word, 2, 2, &out->date) && word == end;
}

/* Reads a time of day before a day: 9am tomorrow. */
static bool read_reversed(const char *text, struct local_text *out)
{
    char clock[CLOCK_BYTES];
    const char *day = strrchr(text, ' ');
    size_t bytes = day != NULL ? (size_t)(day - text) : 0;
    if (bytes == 0 || bytes >= sizeof clock) return false;
    memcpy(clock, text, bytes);
    clock[bytes] = '\0';
    *out = (struct local_text){0};
    return read_clock(clock, out) && read_day(day + 1, strlen(day + 1), out);
}

static bool read_text(const char *text, struct local_text *out)
{
    static const char at[] = "at ";
    size_t bytes = strcspn(text, " ");
    *out = (struct local_text){.day = DAY_NONE};
    if (read_clock(text, out)) return true;
    if (read_reversed(text, out)) return true;
    *out = (struct local_text){.day = DAY_NONE};
    if (text[bytes] == '\0' && bytes > 10 && (text[10] == 'T' || text[10] == 't')) bytes = 10;
    if (text[bytes] == '\0') return false;
    const char *clock = text + bytes + 1;
    clock += strspn(clock, " ");
    if (strncasecmp(clock, at, strlen(at)) == 0) clock += strlen(at);
    return read_day(text, bytes, out) && read_clock(clock, out);
}

bool bel__local_time_is(const char *text)
{
    struct local_text local;
    return read_text(text, &local);
}

bool bel__local_time_is_day(const char *text)
{
    struct local_text local;
    return read_day(text, strlen(text), &local);
}

bool bel__local_time_needs_now(const char *text)
{
    struct local_text local;
    return read_text(text, &local) && local.day != DAY_DATE;
}

/* A local time on a day, and which of its two instants it is if the clocks show it twice. */
struct moment {
    struct bel_civil civil;
    bool is_second;
    int64_t second; /* in seconds since 1970 */
};

static struct moment moment_on(int64_t day, const struct local_text *local)
{
    struct civil_date date = civil_from_days(day);
    return (struct moment){.civil = {.year = date.year,
                                     .month = (uint8_t)date.month,
                                     .day = (uint8_t)date.day,
                                     .hour = (uint8_t)local->hour,
                                     .minute = (uint8_t)local->minute,
                                     .second = (uint8_t)local->second}};
}

/* Returns whether a moment is later than `utc`, as its second instant if only that is. */
static bool is_later(const struct bel_zone *zone, int64_t utc, struct moment *moment)
{
    struct bel_zone_instants instants;
    if (bel_zone_at(zone, &moment->civil, &instants) != 0) return false;
    if (instants.first > utc) return true;
    moment->second = instants.second;
    moment->is_second = instants.answer == BEL_ZONE_FOLD && instants.second > utc;
    return moment->is_second;
}

/* Writes a moment for the server. Its second instant has the offset of the zone then. */
static void print_moment(const struct moment *moment, const struct bel_zone *zone,
                         char out[CLI_LOCAL_TIME_BYTES])
{
    const struct bel_civil *civil = &moment->civil;
    char offset[16] = "";
    if (moment->is_second) {
        int64_t seconds = civil_to_days(civil->year, civil->month, civil->day) * SECONDS_PER_DAY +
                          civil->hour * INT64_C(3600) + civil->minute * INT64_C(60) + civil->second;
        int64_t ahead = (seconds - moment->second) / 60;
        int64_t minutes = ahead < 0 ? -ahead : ahead;
        (void)snprintf(offset, sizeof offset, "%c%02u:%02u", ahead < 0 ? '-' : '+',
                       (unsigned)(minutes / 60) % 100, (unsigned)(minutes % 60));
    }
    (void)snprintf(out, CLI_LOCAL_TIME_BYTES, "%04d-%02u-%02uT%02u:%02u:%02u%s[%s]", civil->year,
                   civil->month, civil->day, civil->hour, civil->minute, civil->second, offset,
                   bel_zone_name(zone));
}

static int find_date(const struct local_text *local, int64_t *out)
{
    if (local->month < 1 || local->month > 12 || local->date < 1) return BEL_EINVAL;
    if (local->date > days_in_month((int32_t)local->year, local->month)) return BEL_EINVAL;
    *out = civil_to_days((int32_t)local->year, local->month, local->date);
    return 0;
}

int bel__local_time_rewrite(const char *text, const struct bel_zone *zone, struct bel_wall now,
                            char out[CLI_LOCAL_TIME_BYTES])
{
    struct local_text local;
    struct bel_civil civil;
    int64_t utc = floor_div(now.ms, MS_PER_S);
    if (!read_text(text, &local)) return BEL_EINVAL;
    int err = bel_zone_civil(zone, utc, &civil);
    if (err) return err;
    int64_t day = civil_to_days(civil.year, civil.month, civil.day);
    if (local.day == DAY_DATE) err = find_date(&local, &day);
    if (err) return err;
    if (local.day == DAY_TOMORROW) day++;
    if (local.day == DAY_WEEKDAY) day += (local.weekday + 7 - weekday_of(day)) % 7;
    struct moment moment = moment_on(day, &local);
    if (local.day == DAY_NONE && !is_later(zone, utc, &moment)) moment = moment_on(day + 1, &local);
    if (local.day == DAY_WEEKDAY && !is_later(zone, utc, &moment)) {
        moment = moment_on(day + 7, &local);
    }
    print_moment(&moment, zone, out);
    return 0;
}

void bel__local_time_zone(char out[BEL_ZONE_NAME_MAX + 1])
{
    char path[PATH_MAX];
    const char *name = getenv("TZ"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    if (name != NULL) {
        name += *name == ':';
    } else {
        ssize_t bytes = readlink("/etc/localtime", path, sizeof path - 1);
        path[bytes > 0 ? bytes : 0] = '\0';
        const char *folder = strstr(path, "zoneinfo/");
        name = folder != NULL ? folder + strlen("zoneinfo/") : "";
    }
    (void)snprintf(out, BEL_ZONE_NAME_MAX + 1, "%s", *name != '\0' ? name : "UTC");
}
