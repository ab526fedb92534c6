/* SPDX-License-Identifier: MIT */
#include "plan/zone_meant.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The parts of the world whose zones people name by the city alone. */
static const char *const areas[] = {"",        "Europe/",     "America/",   "Asia/",
                                    "Africa/", "Pacific/",    "Australia/", "Atlantic/",
                                    "Indian/", "Antarctica/", "Arctic/"};

/* Writes a name as zones are spelled: each word with a large letter, and _ for a space. */
static void spell(const char *name, size_t bytes, char out[BEL_ZONE_NAME_MAX + 1])
{
    bool is_start = true;
    for (size_t i = 0; i < bytes; i++) {
        char c = name[i];
        if (c == ' ') c = '_';
        bool is_letter = isalpha((unsigned char)c) != 0;
        if (is_letter) c = (char)(is_start ? c & ~0x20 : c | 0x20);
        is_start = !is_letter;
        out[i] = c;
    }
    out[bytes] = 0;
}

bool bel__zone_meant(struct bel_zones *zones, const char *name, size_t bytes,
                     char out[BEL_ZONE_NAME_MAX + 1])
{
    char spelled[BEL_ZONE_NAME_MAX + 1];
    const struct bel_zone *zone;
    if (bytes == 0 || bytes > BEL_ZONE_NAME_MAX) return false;
    spell(name, bytes, spelled);
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) {
        int length = snprintf(out, BEL_ZONE_NAME_MAX + 1, "%s%s", areas[i], spelled);
        if (length < 0 || length > BEL_ZONE_NAME_MAX) continue;
        if (bel_zones_find(zones, out, (size_t)length, &zone) == 0) return true;
    }
    return false;
}

void bel__zone_refuse(struct bel_zones *zones, struct bel_view name, struct bel_text_error *why)
{
    char meant[BEL_ZONE_NAME_MAX + 1];
    if (why == NULL) return;
    bool is_meant = zones != NULL && bel__zone_meant(zones, name.data, name.bytes, meant);
    (void)snprintf(why->expected, sizeof why->expected, "%s'%.48s'%s",
                   is_meant ? "did you mean " : "give that of a place, e.g. ",
                   is_meant ? meant : "Europe/Berlin", is_meant ? "?" : "");
}
