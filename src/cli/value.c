/* SPDX-License-Identifier: MIT */

#include "cli/value.h"

#include "belfry/instant.h"
#include "belfry/zone.h"
#include "cli/cli.h"
#include "cli/date_time.h"
#include "cli/duration.h"
#include "cli/local_time.h"
#include "cli/print.h"
#include "cli/relative_time.h"
#include "cli/zone_hint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int copy(const char *text, char **out)
{
    *out = strdup(text);
    if (*out != NULL) return CLI_OK;
    fprintf(stderr, "belfry: out of memory\n");
    return CLI_FAILED;
}

static const char *name_of(const struct cli_value_context *context)
{
    return context->name != NULL ? context->name : "";
}

/* After a duration that is wrong, suggests the same one in small letters. */
static void suggest_small(const char *value)
{
    char small[CLI_DURATION_BYTES];
    struct bel_text_error why;
    uint64_t ms;
    size_t bytes = 0;
    for (; bytes < sizeof small - 1 && value[bytes] != '\0'; bytes++) {
        bool is_upper = value[bytes] >= 'A' && value[bytes] <= 'Z';
        small[bytes] = (char)(is_upper ? value[bytes] | 0x20 : value[bytes]);
    }
    small[bytes] = '\0';
    if (bel__cli_duration(small, &ms, &why) != 0) return;
    fprintf(stderr, "        did you mean %s?\n", small);
}

static int rewrite_duration(const char *value, const struct cli_value_context *context, char **out)
{
    char text[CLI_DURATION_BYTES];
    struct bel_text_error why;
    uint64_t ms;
    if (bel__cli_duration(value, &ms, &why) != 0) {
        (void)bel__cli_refuse_value(name_of(context), "a duration", value, &why);
        suggest_small(value);
        return CLI_USAGE;
    }
    return bel__cli_duration_rewrite(value, text) ? copy(text, out) : CLI_OK;
}

/* Finds the time on the clock of the server, which may be a virtual one; on this machine's clock if
 * there is no server, or the key may not ask. */
static int find_now(const struct cli_value_context *context, struct bel_wall *out)
{
    const struct bel_view args[] = {BEL_VIEW("CLOCK")};
    const struct bel_value *reply;
    struct bel_client *client;
    *out = bel_clock_wall(bel_clock_system());
    if (context->connect == NULL) return CLI_OK;
    int status = bel__connect_open(context->connect, &client);
    if (status != CLI_OK) return status;
    int err = bel_client_call(client, args, 1, &reply);
    if (err == 0 && reply->type == BEL_VALUE_NUMBER) out->ms = reply->number;
    bel_client_close(client);
    return err == 0 ? CLI_OK : bel__connect_failed(context->connect, err);
}

static int rewrite_in_zone(struct bel_zones *zones, const char *value, const char *name,
                           const struct cli_value_context *context, char **out)
{
    const struct bel_zone *zone;
    char text[CLI_LOCAL_TIME_BYTES];
    struct bel_wall now = {0};
    int err = bel_zones_find(zones, name, strlen(name), &zone);
    if (err) {
        if (bel__zone_hint_any(name)) return CLI_USAGE;
        fprintf(stderr, "belfry: time zone %s: %s\n", name, bel_error_text(err));
        return CLI_FAILED;
    }
    int status = bel__local_time_needs_now(value) ? find_now(context, &now) : CLI_OK;
    if (status != CLI_OK) return status;
    err = bel__local_time_rewrite(value, zone, now, text);
    if (err == 0) return copy(text, out);
    fprintf(stderr, "belfry: '%s' is not a date that exists\n", value);
    return CLI_USAGE;
}

/* Rewrites a local time. Without --tz, only somebody at a terminal means the machine's zone: a
 * script may run anywhere. */
static int rewrite_local(struct bel_zones *zones, const char *value,
                         const struct cli_value_context *context, char **out)
{
    char name[BEL_ZONE_NAME_MAX + 1];
    if (context->zone != NULL) return rewrite_in_zone(zones, value, context->zone, context, out);
    if (bel__cli_is_terminal()) {
        bel__local_time_zone(name);
        return rewrite_in_zone(zones, value, name, context, out);
    }
    fprintf(stderr,
            "belfry: '%s' is a local time; give its zone with --tz, e.g. --tz Europe/Berlin\n",
            value);
    return CLI_USAGE;
}

static int rewrite_relative(const char *value, const struct cli_value_context *context, char **out)
{
    char text[BEL_INSTANT_BYTES];
    struct bel_wall time;
    int status = find_now(context, &time);
    if (status != CLI_OK) return status;
    if (bel__relative_time(value, time, &time) != 0) {
        fprintf(stderr, "belfry: '%s' is too far from now\n", value);
        return CLI_USAGE;
    }
    (void)bel_instant_print(time, text, sizeof text);
    return copy(text, out);
}

/* Refuses the zone in brackets of a time, if it is no name of a zone but similar to one. */
static int check_zone_of(const char *value)
{
    char name[BEL_ZONE_NAME_MAX + 1];
    const char *start = strchr(value, '[') + 1;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "]"), start);
    return name[0] != '!' && bel__zone_hint(name) ? CLI_USAGE : CLI_OK;
}

/* Refuses what is no time in any form, and says which forms there are. The server checks a time in
 * brackets, whose zone may be unknown here. */
static int check_time(struct bel_zones *zones, const char *value,
                      const struct cli_value_context *context)
{
    const struct bel_instant_options options = {.zones = zones};
    struct bel_text_error why;
    struct bel_wall time;
    if (strchr(value, '[') != NULL) return check_zone_of(value);
    if (value[0] != '\0' && strlen(value) <= 2 && strspn(value, "0123456789") == strlen(value)) {
        fprintf(stderr, "belfry: '%s' is not a time; write %s:00, or %sam\n", value, value, value);
        return CLI_USAGE;
    }
    if (bel_instant_parse(value, strlen(value), &options, &time, &why) != BEL_EINVAL) {
        return CLI_OK;
    }
    if (bel__local_time_is_day(value)) {
        fprintf(stderr, "belfry: '%s' needs a time of day, as in '%s 09:00'\n", value, value);
        return CLI_USAGE;
    }
    if (why.position > 0) return bel__cli_refuse_value(name_of(context), "a time", value, &why);
    fprintf(stderr,
            "belfry: '%s' is not a time; a time is 2030-06-01T09:00:00Z, or 18:00, 'tomorrow "
            "09:00' or '2030-06-01 18:00'\n        in the zone of --tz, or a distance from now "
            "such as +2h\n",
            value);
    return CLI_USAGE;
}

static int rewrite_time(const char *value, const struct cli_value_context *context, char **out)
{
    struct bel_zones *zones;
    if (bel__relative_time_is(value)) return rewrite_relative(value, context, out);
    int err = bel_zones_open(NULL, &zones);
    if (err) {
        if (!bel__local_time_is(value)) return CLI_OK; /* for the server, which has zones */
        fprintf(stderr, "belfry: cannot open the time zones; install tzdata: %s\n",
                bel_error_text(err));
        return CLI_FAILED;
    }
    char written[CLI_DATE_TIME_BYTES];
    bool is_written = bel__date_time_rewrite(value, written);
    int status = bel__local_time_is(value)
                     ? rewrite_local(zones, value, context, out)
                     : check_time(zones, is_written ? written : value, context);
    if (status == CLI_OK && is_written) status = copy(written, out);
    bel_zones_close(zones);
    return status;
}

int bel__cli_value(enum bel_argument_type type, const char *value,
                   const struct cli_value_context *context, char **out)
{
    struct bel_text_error why;
    *out = NULL;
    switch (type) {
    case BEL_ARGUMENT_DURATION:
        return rewrite_duration(value, context, out);
    case BEL_ARGUMENT_TIME:
        return rewrite_time(value, context, out);
    case BEL_ARGUMENT_POLICY:
        if (bel__cli_policy(value, &why) == 0) return CLI_OK;
        (void)bel__cli_refuse_value(name_of(context), "a retry policy", value, &why);
        if (strcasecmp(value, "none") == 0 || strcasecmp(value, "off") == 0 ||
            strcasecmp(value, "never") == 0) {
            fputs("        for one attempt and no retry: max(1)\n", stderr);
            return CLI_USAGE;
        }
        fputs(
            "        a policy is exp(10s,2,1h), fixed(30s) or a list, 10s,1m,10m; then, if wanted, "
            "jitter(0.1) and max(20)\n",
            stderr);
        return CLI_USAGE;
    case BEL_ARGUMENT_ZONE:
        return bel__zone_hint(value) ? CLI_USAGE : CLI_OK;
    default:
        return CLI_OK;
    }
}
