/* SPDX-License-Identifier: MIT */

/*
 * tzdata.zi lists all zones: "Z name ..." and "L target name" for a second name. People type the
 * city alone (Berlin), or small letters, so a word is compared with whole names and with their last
 * parts.
 */
#include "cli/zone_hint.h"

#include "belfry/zone.h"
#include "core/similar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

bool bel__zone_hint(const char *name)
{
    struct bel_similar similar;
    char *line = NULL, best[128] = "";
    size_t room = 0;
    FILE *file = is_zone(name) ? NULL : fopen(ZONES_FILE, "re");
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
