/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_CIVIL_H
#define BEL_PLAN_CIVIL_H

/*
 * civil - converts dates to day numbers and back, in the proleptic Gregorian calendar, by
 * arithmetic alone: no loops, no tables. Day 0 is 1970-01-01, a Thursday.
 *
 * Years are counted from March, so that the leap day is the last day of a year; 400 years are
 * 146,097 days.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    SECONDS_PER_DAY = 86400,
    CIVIL_YEAR_MIN = -9999,
    CIVIL_YEAR_MAX = 9999,
};

struct civil_date {
    int32_t year;
    uint8_t month; /* 1 .. 12 */
    uint8_t day;   /* 1 .. 31 */
};

/* Floor division, and its remainder, which is never negative. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static inline int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

static inline bool is_leap_year(int32_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline unsigned days_in_month(int32_t year, unsigned month)
{
    if (month == 2) return is_leap_year(year) ? 29 : 28;
    return 30 + ((month + (month >> 3)) & 1);
}

/* Returns the day number of a date. */
static inline int64_t civil_to_days(int32_t year, unsigned month, unsigned day)
{
    int64_t y = year - (month <= 2);
    int64_t era = floor_div(y, 400), of_era = y - era * 400;
    int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Returns the date of a day number. */
static inline struct civil_date civil_from_days(int64_t days)
{
    int64_t shifted = days + 719468, era = floor_div(shifted, 146097), doe = shifted - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    unsigned month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
    return (struct civil_date){
        .year = (int32_t)(yoe + era * 400 + (month <= 2)),
        .month = (uint8_t)month,
        .day = (uint8_t)(doy - (153 * mp + 2) / 5 + 1),
    };
}

/* Returns the weekday of a day number; 0 is Sunday. */
static inline unsigned weekday_of(int64_t days)
{
    return (unsigned)floor_mod(days + 4, 7);
}

#endif
