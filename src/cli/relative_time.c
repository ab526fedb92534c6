/* SPDX-License-Identifier: MIT */

/* A distance is a duration of the command line, so it needs its unit. */
#include "cli/relative_time.h"

#include "cli/duration.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    TEXT_BYTES = 128,
};

/* Reads the distance from now. Returns false if the text is no such time. */
static bool read_distance(const char *text, uint64_t *out_ms, bool *out_is_past)
{
    static const char in[] = "in ", ago[] = " ago";
    char distance[TEXT_BYTES];
    size_t bytes = strlen(text), skip = 0;
    struct bel_text_error why;
    *out_ms = 0;
    *out_is_past = text[0] == '-';
    if (strcasecmp(text, "now") == 0) return true;
    if (text[0] == '+' || text[0] == '-') {
        skip = 1;
    } else if (strncasecmp(text, in, strlen(in)) == 0) {
        skip = strlen(in);
    } else if (bytes > strlen(ago) && strcasecmp(text + bytes - strlen(ago), ago) == 0) {
        bytes -= strlen(ago);
        *out_is_past = true;
    } else {
        return false;
    }
    if (bytes - skip >= sizeof distance) return false;
    memcpy(distance, text + skip, bytes - skip);
    distance[bytes - skip] = '\0';
    return bel__cli_duration(distance, out_ms, &why) == 0;
}

bool bel__relative_time_is(const char *text)
{
    uint64_t ms;
    bool is_past;
    return read_distance(text, &ms, &is_past);
}

int bel__relative_time(const char *text, struct bel_wall now, struct bel_wall *out)
{
    uint64_t ms;
    bool is_past;
    if (!read_distance(text, &ms, &is_past)) return BEL_EINVAL;
    if (!is_past) return bel_wall_add(now, ms, out);
    if (ms > (uint64_t)INT64_MAX || now.ms < INT64_MIN + (int64_t)ms) return BEL_ERANGE;
    out->ms = now.ms - (int64_t)ms;
    return 0;
}
