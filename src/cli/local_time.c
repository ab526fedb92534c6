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

/* Reads HH:MM or HH:MM:SS, up to the end. */
static bool read_clock(const char *at, struct local_text *out)
{
    if (!read_number(&at, 1, 2, &out->hour) || !skip(&at, ':')) return false;
    if (!read_number(&at, 2, 2, &out->minute)) return false;
    if (skip(&at, ':') && !read_number(&at, 2, 2, &out->second)) return false;
    return *at == '\0' && out->hour < 24 && out->minute < 60 && out->second < 60;
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
    out->day = DAY_DATE;
    if (!read_number(&word, 4, 4, &out->year) || !skip(&word, '-')) return false;
    return read_number(&word, 2, 2, &out->month) && skip(&word, '-') &&
           read_number(&word, 2, 2, &out->date);
}

static bool read_text(const char *text, struct local_text *out)
{
    size_t bytes = strcspn(text, " ");
    *out = (struct local_text){.day = DAY_NONE};
    if (text[bytes] == '\0' && bytes > 10 && (text[10] == 'T' || text[10] == 't')) bytes = 10;
    if (text[bytes] == '\0') return read_clock(text, out);
    const char *clock = text + bytes + 1;
    return read_day(text, bytes, out) && read_clock(clock + strspn(clock, " "), out);
}

bool bel__local_time_is(const char *text)
{
    struct local_text local;
    return read_text(text, &local);
}

int bel__local_time_rewrite(const char *text, const struct bel_zone *zone, struct bel_wall now,
                            char out[CLI_LOCAL_TIME_BYTES])
{
    struct local_text local;
    struct bel_civil civil;
    if (!read_text(text, &local)) return BEL_EINVAL;
    int err = bel_zone_civil(zone, floor_div(now.ms, MS_PER_S), &civil);
    if (err) return err;
    int64_t day = civil_to_days(civil.year, civil.month, civil.day);
    unsigned passed = civil.hour * 3600U + civil.minute * 60U + civil.second;
    bool is_past = local.hour * 3600 + local.minute * 60 + local.second <= passed;
    if (local.day == DAY_DATE) {
        if (local.month < 1 || local.month > 12 || local.date < 1) return BEL_EINVAL;
        if (local.date > days_in_month((int32_t)local.year, local.month)) return BEL_EINVAL;
        day = civil_to_days((int32_t)local.year, local.month, local.date);
    } else if (local.day == DAY_WEEKDAY) {
        unsigned days = (local.weekday + 7 - weekday_of(day)) % 7;
        day += days == 0 && is_past ? 7 : days;
    } else {
        day += local.day == DAY_TOMORROW || (local.day == DAY_NONE && is_past);
    }
    struct civil_date date = civil_from_days(day);
    (void)snprintf(out, CLI_LOCAL_TIME_BYTES, "%04d-%02u-%02uT%02u:%02u:%02u[%s]", date.year,
                   date.month, date.day, local.hour, local.minute, local.second,
                   bel_zone_name(zone));
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
