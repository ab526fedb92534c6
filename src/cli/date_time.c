/* SPDX-License-Identifier: MIT */

/* A text is a date, a time of day, and then an offset, a zone, or both. */
#include "cli/date_time.h"

#include "belfry/instant.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    DATE_BYTES = 10,
};

/* Returns the length of a date at the start of a text, 2026-12-24, and of what separates it from
 * the time of day; 0 if there is none. */
static size_t date_bytes(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; i < DATE_BYTES; i++) {
        bool is_right = form[i] == 'd' ? isdigit((unsigned char)text[i]) != 0 : text[i] == form[i];
        if (!is_right) return 0;
    }
    const char *rest = text + DATE_BYTES;
    return DATE_BYTES + (*rest == 'T' || *rest == 't' ? 1 : strspn(rest, " "));
}

/* Writes a time of day with two digits for the hour, and with seconds. Returns its length in the
 * text; 0 if there is none. */
static size_t write_clock(const char *text, char *out, size_t room)
{
    size_t hour = strspn(text, "0123456789");
    if (hour < 1 || hour > 2 || text[hour] != ':') return 0;
    size_t minute = strspn(text + hour + 1, "0123456789"), bytes = hour + 1 + minute;
    if (minute != 2) return 0;
    bool has_second = text[bytes] == ':';
    if (has_second) bytes += 1 + strspn(text + bytes + 1, "0123456789.");
    (void)snprintf(out, room, "%s%.*s%s", hour == 1 ? "0" : "", (int)bytes, text,
                   has_second ? "" : ":00");
    return bytes;
}

/* Writes an offset as +HH:MM. Returns its length in the text; 0 if there is none. */
static size_t write_offset(const char *text, char *out, size_t room)
{
    if (*text == 'Z' || *text == 'z') {
        (void)snprintf(out, room, "Z");
        return 1;
    }
    if (*text != '+' && *text != '-') return 0;
    size_t hour = strspn(text + 1, "0123456789"), bytes = 1 + hour;
    const char *minute = "00";
    if (hour == 4) {
        minute = text + 3;
        hour = 2;
    } else if (text[bytes] == ':' && strspn(text + bytes + 1, "0123456789") == 2) {
        minute = text + bytes + 1;
        bytes += 3;
    }
    if (hour < 1 || hour > 2) return 0;
    (void)snprintf(out, room, "%c%s%.*s:%.2s", *text, hour == 1 ? "0" : "", (int)hour, text + 1,
                   minute);
    return bytes;
}

/* Writes a zone in brackets. Returns false if the text is none. */
static bool write_zone(const char *text, char *out, size_t room)
{
    size_t bytes = strlen(text);
    if (bytes > 1 && text[0] == '[' && text[bytes - 1] == ']') {
        (void)snprintf(out, room, "%s", text);
        return true;
    }
    bool is_name = strchr(text, '/') != NULL || strcmp(text, "UTC") == 0;
    if (!is_name || !isalpha((unsigned char)text[0]) || strpbrk(text, " []:") != NULL) return false;
    (void)snprintf(out, room, "[%s]", text);
    return true;
}

bool bel__date_time_rewrite(const char *text, char out[CLI_DATE_TIME_BYTES])
{
    size_t date = date_bytes(text);
    char clock[64] = "", offset[16] = "", zone[CLI_DATE_TIME_BYTES / 2] = "";
    if (date <= DATE_BYTES || strlen(text) >= CLI_DATE_TIME_BYTES / 2) return false;
    const char *at = text + date;
    size_t bytes = write_clock(at, clock, sizeof clock);
    if (bytes == 0) return false;
    at += bytes;
    at += strspn(at, " ");
    at += write_offset(at, offset, sizeof offset);
    at += strspn(at, " ");
    bool has_zone = *at != '\0';
    if (has_zone && !write_zone(at, zone, sizeof zone)) return false;
    if (offset[0] == '\0' && !has_zone) return false; /* a local time */
    (void)snprintf(out, CLI_DATE_TIME_BYTES, "%.*sT%s%s%s", DATE_BYTES, text, clock, offset, zone);
    return strcmp(out, text) != 0;
}

bool bel__date_time_is_instant(const char *text)
{
    const struct bel_instant_options options = {.zones = NULL};
    char rewritten[CLI_DATE_TIME_BYTES];
    struct bel_wall time;
    if (bel__date_time_rewrite(text, rewritten)) text = rewritten;
    if (strchr(text, '[') != NULL) return false;
    return bel_instant_parse(text, strlen(text), &options, &time, NULL) == 0;
}
