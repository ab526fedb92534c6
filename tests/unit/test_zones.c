/* SPDX-License-Identifier: MIT */

/* A directory of zones that the test creates, and what happens when it changes. */
#include "../memory.h"

#include "plan/zones.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"
#include "../zone_file.h"

#include <stdio.h>

static char folder[] = "/tmp/test_zones_XXXXXX";
static struct bel_zones *zones;

static const char *in_folder(const char *name)
{
    static char path[2][512];
    static int turn;
    turn = !turn;
    (void)snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void write_bytes(const char *name, const void *data, size_t bytes)
{
    static int64_t seconds; /* files made at the same instant may even have the same inode */
    seconds++;
    struct timespec modified[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    (void)unlink(in_folder(name)); /* a new file, like a package update */
    FILE *out = fopen(in_folder(name), "wb");
    CHECK(out != NULL);
    CHECK(fwrite(data, 1, bytes, out) == bytes);
    CHECK(fclose(out) == 0);
    CHECK(utimensat(AT_FDCWD, in_folder(name), modified, 0) == 0);
}

/* A zone that is always at one offset. */
static void write_zone(const char *name, int32_t offset)
{
    const struct zone_change first = {0, offset};
    struct zone_file file;
    zone_file_make(&file, '2', &first, 1, "");
    write_bytes(name, file.bytes, file.count);
}

static int find(const char *name, const struct bel_zone **out)
{
    CHECK_NOTE("%s", name);
    return bel_zones_find(zones, name, strlen(name), out);
}

static int32_t offset_of(const char *name)
{
    const struct bel_zone *zone;
    CHECK(find(name, &zone) == 0);
    return bel_zone_offset(zone, 0);
}

static void setup(void)
{
    bel_zones_close(zones);
    write_zone("Here", 3600);
    write_zone("Area/There", 7200);
    CHECK(bel_zones_open(folder, &zones) == 0);
}

static void a_folder_must_be_one(void)
{
    struct bel_zones *none;
    setup();
    CHECK(bel_zones_open("/no/such/folder", &none) == BEL_EIO);
    CHECK(bel_zones_open(in_folder("Here"), &none) == BEL_EIO);
}

static void a_zone_is_read_once(void)
{
    const struct bel_zone *first, *second;
    setup();
    CHECK(find("Area/There", &first) == 0);
    CHECK(bel_zone_offset(first, 0) == 7200);
    CHECK(strcmp(bel_zone_name(first), "Area/There") == 0);
    CHECK(bel_zones_find(zones, "Area/Therefore", 10, &second) == 0);
    CHECK(first == second);
}

static void names_do_not_lead_elsewhere(void)
{
    static const char *const wrong[] = {
        "",
        "/",
        "/Here",
        "Here/",
        "Area//There",
        "../Here",
        "Area/../Here",
        ".",
        "./Here",
        "Area/./There",
        ".hidden",
        "Area/..",
        "Area/There/",
        "None",
        "Area",
        "Here/There",
        "none/Here",
        "here",
    };
    const struct bel_zone *zone = NULL;
    char name[BEL_ZONE_NAME_MAX + 2];
    setup();
    write_zone(".hidden", 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(find(wrong[i], &zone) == BEL_EINVAL);
    }
    CHECK(bel_zones_find(zones, "Here\0", 5, &zone) == BEL_EINVAL);
    memset(name, 'a', sizeof name);
    CHECK(bel_zones_find(zones, name, BEL_ZONE_NAME_MAX + 1, &zone) == BEL_EINVAL);
    name[BEL_ZONE_NAME_MAX] = '\0';
    CHECK(find(name, &zone) == BEL_EINVAL);
    write_zone(name, 60);
    CHECK(find(name, &zone) == 0);
    CHECK(strcmp(bel_zone_name(zone), name) == 0);
    CHECK(unlink(in_folder(name)) == 0 && unlink(in_folder(".hidden")) == 0);
}

static void what_is_no_file_of_a_zone_is_refused(void)
{
    const struct bel_zone *zone;
    static char large[FILE_BYTES_MAX + 1];
    setup();
    write_bytes("Text", "Europe/Berlin", 13);
    CHECK(find("Text", &zone) == BEL_ECORRUPT);
    write_bytes("Text", "", 0);
    CHECK(find("Text", &zone) == BEL_ECORRUPT);
    write_bytes("Text", large, sizeof large);
    CHECK(find("Text", &zone) == BEL_ECORRUPT);
    CHECK(unlink(in_folder("Text")) == 0);
    CHECK(mkfifo(in_folder("Pipe"), 0600) == 0);
    CHECK(find("Pipe", &zone) == BEL_EINVAL);
    CHECK(unlink(in_folder("Pipe")) == 0);
    CHECK(symlink("Loop", in_folder("Loop")) == 0);
    CHECK(find("Loop", &zone) == BEL_EINVAL);
    CHECK(unlink(in_folder("Loop")) == 0);
    write_zone("Text", 60); /* a failure is not cached */
    CHECK(offset_of("Text") == 60);
    CHECK(unlink(in_folder("Text")) == 0);
}

static void a_file_that_changes_makes_another_zone(void)
{
    const struct bel_zone *old, *new;
    setup();
    CHECK(bel_zones_reload(zones) == 0);
    CHECK(find("Here", &old) == 0);
    CHECK(offset_of("Area/There") == 7200);
    CHECK(bel_zones_reload(zones) == 0);
    write_zone("Here", 1800);
    CHECK(offset_of("Here") == 3600);
    CHECK(bel_zones_reload(zones) == 1);
    CHECK(find("Here", &new) == 0);
    CHECK(new != old);
    CHECK(bel_zone_offset(new, 0) == 1800 && bel_zone_offset(old, 0) == 3600);
    CHECK(bel_zones_reload(zones) == 0);
}

static void a_file_that_was_only_touched_makes_the_same_zone(void)
{
    const struct bel_zone *old, *new;
    setup();
    CHECK(find("Here", &old) == 0);
    write_zone("Here", 3600);
    CHECK(bel_zones_reload(zones) == 0);
    CHECK(find("Here", &new) == 0);
    CHECK(new == old);
}

static void a_link_that_leads_elsewhere_is_a_change(void)
{
    setup();
    CHECK(symlink("Here", in_folder("Link")) == 0);
    CHECK(offset_of("Link") == 3600);
    write_zone("Here", 1800);
    CHECK(bel_zones_reload(zones) == 1);
    CHECK(offset_of("Link") == 1800);
    CHECK(unlink(in_folder("Link")) == 0);
    CHECK(symlink("Area/There", in_folder("Link")) == 0);
    CHECK(bel_zones_reload(zones) == 1);
    CHECK(offset_of("Link") == 7200);
    CHECK(unlink(in_folder("Link")) == 0);
}

static void a_file_that_is_gone_is_found_no_more(void)
{
    const struct bel_zone *old, *new;
    setup();
    CHECK(find("Here", &old) == 0);
    CHECK(unlink(in_folder("Here")) == 0);
    CHECK(bel_zones_reload(zones) == 1);
    CHECK(find("Here", &new) == BEL_EINVAL);
    CHECK(bel_zone_offset(old, 0) == 3600);
    write_zone("Here", 60);
    CHECK(offset_of("Here") == 60);
    CHECK(bel_zones_reload(zones) == 0);
}

static void a_damaged_file_changes_nothing_and_is_told_once(void)
{
    setup();
    CHECK(offset_of("Here") == 3600 && offset_of("Area/There") == 7200);
    write_bytes("Here", "TZif", 4);
    write_zone("Area/There", 0);
    CHECK(bel_zones_reload(zones) == BEL_ECORRUPT);
    CHECK(offset_of("Here") == 3600 && offset_of("Area/There") == 0);
    CHECK(bel_zones_reload(zones) == 1); /* Area/There */
    write_zone("Here", 60);
    CHECK(bel_zones_reload(zones) == 1);
    CHECK(offset_of("Here") == 60);
}

static void without_memory_zones_stay_as_they_are(void)
{
    const struct bel_zone *zone;
    setup();
    int failures = 0;
    for (memory_left = 0; find("Here", &zone) != 0;) {
        memory_left = (uint64_t)++failures;
    }
    CHECK(failures == 3); /* path, bytes, and the entry of the list; the zone itself does not
                             count */
    write_zone("Here", 60);
    failures = 0;
    for (memory_left = 0; bel_zones_reload(zones) == BEL_ENOMEM;) {
        CHECK(offset_of("Here") == 3600);
        memory_left = (uint64_t)++failures;
    }
    CHECK(failures == 3);
    CHECK(offset_of("Here") == 60);
    memory_left = 0;
    CHECK(bel_zones_open(folder, &zones) == BEL_ENOMEM);
    memory_left = UINT64_MAX;
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    CHECK(mkdir(in_folder("Area"), 0700) == 0);
    RUN(a_folder_must_be_one);
    RUN(a_zone_is_read_once);
    RUN(names_do_not_lead_elsewhere);
    RUN(what_is_no_file_of_a_zone_is_refused);
    RUN(a_file_that_changes_makes_another_zone);
    RUN(a_file_that_was_only_touched_makes_the_same_zone);
    RUN(a_link_that_leads_elsewhere_is_a_change);
    RUN(a_file_that_is_gone_is_found_no_more);
    RUN(a_damaged_file_changes_nothing_and_is_told_once);
    RUN(without_memory_zones_stay_as_they_are);
    bel_zones_close(zones);
    CHECK(unlink(in_folder("Area/There")) == 0 && unlink(in_folder("Here")) == 0);
    CHECK(rmdir(in_folder("Area")) == 0 && rmdir(folder) == 0);
    return 0;
}
