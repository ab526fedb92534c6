/* SPDX-License-Identifier: MIT */

/*
 * tzdata.zi lists all zones: "Z name ..." and "L target name" for a second name. People type the
 * city alone (Berlin), or small letters, so a word is compared with whole names and with their last
 * parts. Abbreviations (PST) and offsets (GMT+1) have no similar name that means the same, so they
 * are explained.
 */
#include "cli/zone_hint.h"

#include "belfry/zone.h"
#include "cli/local_time.h"
#include "core/similar.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ZONES_FILE "/usr/share/zoneinfo/tzdata.zi"

static bool is_zone(const char *name)
{
    struct bel_zones *zones;
    const struct bel_zone *zone;
    if (bel_zones_open(NULL, &zones) != 0) return true; /* unknown: the server decides */
    int err = bel_zones_find(zones, name, strlen(name), &zone);
    bel_zones_close(zones);
    return err != BEL_EINVAL;
}

/* Returns the name in a line of the file, ended by a 0; NULL if the line has none. */
static char *name_in(char *line)
{
    bool is_link = strncmp(line, "L ", 2) == 0;
    if (!is_link && strncmp(line, "Z ", 2) != 0) return NULL;
    char *name = line + 2;
    if (is_link) name += strcspn(name, " ") + 1;
    name[strcspn(name, " \n")] = '\0';
    return name;
}

/* Abbreviations that are no zones, and a place for each. Some are those of several zones. */
static const struct {
    const char *name, *place;
} abbreviations[] = {
    {"ACST", "Australia/Adelaide"},  {"AEDT", "Australia/Sydney"},  {"AEST", "Australia/Sydney"},
    {"AKST", "America/Anchorage"},   {"AWST", "Australia/Perth"},   {"BRT", "America/Sao_Paulo"},
    {"BST", "Europe/London"},        {"CDT", "America/Chicago"},    {"CEST", "Europe/Berlin"},
    {"CST", "America/Chicago"},      {"EDT", "America/New_York"},   {"EEST", "Europe/Athens"},
    {"HKT", "Asia/Hong_Kong"},       {"IST", "Asia/Kolkata"},       {"JST", "Asia/Tokyo"},
    {"KST", "Asia/Seoul"},           {"MDT", "America/Denver"},     {"MSK", "Europe/Moscow"},
    {"NZDT", "Pacific/Auckland"},    {"NZST", "Pacific/Auckland"},  {"PDT", "America/Los_Angeles"},
    {"PST", "America/Los_Angeles"},  {"PT", "America/Los_Angeles"}, {"ET", "America/New_York"},
    {"SAST", "Africa/Johannesburg"}, {"SGT", "Asia/Singapore"},     {"WEST", "Europe/Lisbon"},
};

/* Explains an abbreviation. Returns false if the name is none. */
static bool hint_abbreviation(const char *name)
{
    for (size_t i = 0; i < sizeof abbreviations / sizeof abbreviations[0]; i++) {
        if (strcasecmp(name, abbreviations[i].name) != 0) continue;
        fprintf(stderr,
                "belfry: %s is not a time zone name; give that of a place, for example %s\n", name,
                abbreviations[i].place);
        return true;
    }
    return false;
}

/* Explains an offset such as GMT+1, UTC-5 or +01:00: the sign of Etc/GMT+1 is the opposite one.
 * Returns false if the name is no offset. */
static bool hint_offset(const char *name)
{
    const char *at = name;
    char *end;
    if (strncasecmp(at, "GMT", 3) == 0 || strncasecmp(at, "UTC", 3) == 0) at += 3;
    if ((*at != '+' && *at != '-') || !isdigit((unsigned char)at[1])) return false;
    char sign = *at++;
    long hours = strtol(at, &end, 10);
    bool is_whole = *end == '\0' || strcmp(end, ":00") == 0;
    if (is_whole && hours >= 1 && hours <= (sign == '+' ? 14 : 12)) {
        fprintf(stderr,
                "belfry: %s is not a time zone name; give that of a place, for example "
                "Europe/Berlin, or for %ld h %s UTC all year Etc/GMT%c%ld, which has the "
                "opposite sign\n",
                name, hours, sign == '+' ? "ahead of" : "behind", sign == '+' ? '-' : '+', hours);
    } else {
        fprintf(stderr,
                "belfry: %s is not a time zone name; give that of a place, for example "
                "Europe/Berlin\n",
                name);
    }
    return true;
}

/* Names the zone of the machine. Returns false if the name does not ask for it. */
static bool hint_machine(const char *name)
{
    static const char *const names[] = {"local", "localtime", "system", "here", "auto"};
    char zone[BEL_ZONE_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) != 0) continue;
        bel__local_time_zone(zone);
        fprintf(stderr, "belfry: '%s' is not a time zone name; this machine is in %s\n", name,
                zone);
        return true;
    }
    return false;
}

bool bel__zone_hint_any(const char *name)
{
    if (bel__zone_hint(name)) return true;
    if (is_zone(name)) return false;
    fprintf(stderr, "belfry: unknown time zone '%s'; give that of a place, e.g. Europe/Berlin\n",
            name);
    return true;
}

bool bel__zone_hint(const char *name)
{
    struct bel_similar similar;
    char *line = NULL, best[128] = "";
    size_t room = 0;
    if (is_zone(name)) return false;
    if (hint_abbreviation(name) || hint_offset(name) || hint_machine(name)) return true;
    FILE *file = fopen(ZONES_FILE, "re");
    if (file == NULL) return false;
    bel__similar_begin(&similar, name);
    while (getline(&line, &room, file) > 0) {
        const char *offered = name_in(line);
        if (offered == NULL) continue;
        const char *slash = strrchr(offered, '/');
        similar.name = NULL;
        bel__similar_offer(&similar, offered, offered);
        if (slash != NULL) bel__similar_offer(&similar, slash + 1, offered);
        if (similar.name != NULL) (void)snprintf(best, sizeof best, "%s", similar.name);
    }
    free(line);
    (void)fclose(file);
    if (best[0] == '\0') return false;
    fprintf(stderr, "belfry: unknown time zone '%s'; did you mean '%s'?\n", name, best);
    return true;
}
