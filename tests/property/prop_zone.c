/* SPDX-License-Identifier: MIT */

/*
 * Conversion to local time, compared with the C library in a subprocess, which may set TZ: in every
 * zone of the system around every change, on a grid that would find a missing change, and at
 * random; then random rules, likewise.
 *
 * Conversion from local time, compared with trying every offset: around every change of the
 * system's zones, and in random files in which changes are seconds or days apart.
 *
 * A case is a zone, by its number, and a random rule and file.
 */
#include "plan/zone.h"

#include "../check.h"
#include "../random.h"
#include "../zone_file.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    NAMES_MAX = 2000,
    TZ_BYTES = 256,
    INSTANTS_MAX = 8192,
    OFFSETS_MAX = 300,
    RANDOM_INSTANTS = 200,
    DAY = 86400,
    GRID = 21 * DAY,
    APART_MAX = 3 * DAY, /* changes of a random file */
};

static const char folder[] = "/usr/share/zoneinfo";
static const int64_t year_2100 = INT64_C(4102444800), year_9999 = INT64_C(253370764800);

/* A question to the C library, and the answer. */
struct question {
    char tz[TZ_BYTES];
    size_t count;
    int64_t instants[INSTANTS_MAX];
};

static struct question question;
static int32_t answers[INSTANTS_MAX];
static int to_library, from_library;

/* Offsets that a zone has been seen to have. */
static int32_t offsets[OFFSETS_MAX];
static size_t offset_count;

static char (*names)[BEL_ZONE_NAME_MAX + 1];
static ino_t inodes[NAMES_MAX];
static size_t name_count;
static struct bel_zones *zones;

static bool read_fully(int fd, void *out, size_t bytes)
{
    uint8_t *next = out;
    while (bytes > 0) {
        ssize_t got = read(fd, next, bytes);
        if (got <= 0) return false;
        next += got;
        bytes -= (size_t)got;
    }
    return true;
}

static void write_fully(int fd, const void *data, size_t bytes)
{
    const uint8_t *next = data;
    while (bytes > 0) {
        ssize_t put = write(fd, next, bytes);
        CHECK(put > 0);
        next += put;
        bytes -= (size_t)put;
    }
}

/* The subprocess: answers questions with the C library's offsets until there are none. */
static int answer_questions(void)
{
    while (read_fully(STDIN_FILENO, &question, sizeof question)) {
        CHECK(setenv("TZ", question.tz, 1) == 0); /* NOLINT(concurrency-mt-unsafe) */
        tzset();
        for (size_t i = 0; i < question.count; i++) {
            struct tm local;
            time_t instant = question.instants[i];
            CHECK(localtime_r(&instant, &local) != NULL);
            answers[i] = (int32_t)local.tm_gmtoff;
        }
        write_fully(STDOUT_FILENO, answers, question.count * sizeof *answers);
    }
    return 0;
}

static void start_library(void)
{
    int there[2], back[2];
    char self[] = "prop_zone", mode[] = "--library";
    char *const arguments[] = {self, mode, NULL};
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(dup2(there[0], STDIN_FILENO) == STDIN_FILENO);
        CHECK(dup2(back[1], STDOUT_FILENO) == STDOUT_FILENO);
        (void)close(there[1]);
        (void)execv("/proc/self/exe", arguments);
        _exit(127);
    }
    (void)close(there[0]);
    (void)close(back[1]);
    to_library = there[1];
    from_library = back[0];
}

static void ask(int64_t instant)
{
    CHECK(question.count < INSTANTS_MAX);
    question.instants[question.count++] = instant;
}

static void remember_offset(int32_t offset)
{
    for (size_t i = 0; i < offset_count; i++) {
        if (offsets[i] == offset) return;
    }
    CHECK(offset_count < OFFSETS_MAX);
    offsets[offset_count++] = offset;
}

/* Asks the question, and compares the answers with the zone's offsets. */
static void compare_offsets(const struct bel_zone *zone, uint64_t seed)
{
    write_fully(to_library, &question, sizeof question);
    CHECK(read_fully(from_library, answers, question.count * sizeof *answers));
    for (size_t i = 0; i < question.count; i++) {
        int32_t got = bel_zone_offset(zone, question.instants[i]);
        CHECK_NOTE("again with: prop_zone %" PRIu64 " (%.100s at %" PRId64 ": %d, not %d)", seed,
                   question.tz, question.instants[i], got, answers[i]);
        CHECK(got == answers[i]);
        remember_offset(got);
    }
    CHECK_NOTE("again with: prop_zone %" PRIu64 " (%.100s)", seed, question.tz);
}

/* Days since 1970, counted from the beginning of an era of 400 years. */
static int64_t days_of(const struct bel_civil *civil)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t year = (int64_t)civil->year + 10000, past = year - 1;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    int64_t days = past * 365 + past / 4 - past / 100 + past / 400 + before[civil->month - 1];
    return days + (leap && civil->month > 2) + civil->day - 1 - INT64_C(4371587);
}

static int64_t local_of(const struct bel_civil *civil)
{
    return days_of(civil) * DAY + civil->hour * INT64_C(3600) + civil->minute * INT64_C(60) +
           civil->second;
}

/* Checks the instants of a local time, given as the seconds that it would be in UTC. */
static void check_local(const struct bel_zone *zone, int64_t local)
{
    struct bel_civil civil;
    struct bel_zone_instants got;
    int64_t first = INT64_MAX, second = INT64_MIN;
    CHECK(bel_zone_civil(bel_zone_utc(), local, &civil) == 0);
    CHECK(local_of(&civil) == local);
    CHECK(bel_zone_at(zone, &civil, &got) == 0);
    for (size_t i = 0; i < offset_count; i++) {
        int64_t instant = local - offsets[i];
        if (bel_zone_offset(zone, instant) != offsets[i]) continue;
        if (instant < first) first = instant;
        if (instant > second) second = instant;
    }
    if (first == INT64_MAX) {
        CHECK(got.answer == BEL_ZONE_GAP && got.first == got.second);
        CHECK(got.first - 1 + bel_zone_offset(zone, got.first - 1) < local);
        CHECK(got.first + bel_zone_offset(zone, got.first) > local);
        return;
    }
    CHECK(got.answer == (first == second ? BEL_ZONE_EXACT : BEL_ZONE_FOLD));
    CHECK(got.first == first && got.second == second);
}

/* Checks local times around a change, and that the local time at the change leads back to it. */
static void check_change(const struct bel_zone *zone, int64_t change)
{
    int32_t before = bel_zone_offset(zone, change - 1), after = bel_zone_offset(zone, change);
    CHECK(before != after);
    for (int64_t near = -1; near <= 1; near++) {
        check_local(zone, change + before + near);
        check_local(zone, change + after + near);
    }
    check_local(zone, change + ((int64_t)before + after) / 2);
    check_local(zone, change + before - DAY);
    check_local(zone, change + after + DAY);

    struct bel_civil civil;
    CHECK(bel_zone_civil(zone, change, &civil) == 0);
    CHECK(local_of(&civil) == change + after);
}

/* Asks for the changes of a zone from 1970 to 2100. */
static void ask_changes(const struct bel_zone *zone)
{
    int64_t change = -1;
    while (bel_zone_next_change(zone, change, &change) && change < year_2100) {
        for (int64_t near = -1; near <= 1; near++) {
            ask(change + near);
        }
    }
}

static void check_changes(const struct bel_zone *zone)
{
    int64_t change = -1;
    while (bel_zone_next_change(zone, change, &change) && change < year_2100) {
        check_change(zone, change);
    }
}

static void check_system_zone(uint64_t seed, uint64_t *random_state)
{
    const char *name = names[(seed - 1) % name_count];
    const struct bel_zone *zone;
    CHECK_NOTE("again with: prop_zone %" PRIu64 " (%s)", seed, name);
    CHECK(bel_zones_find(zones, name, strlen(name), &zone) == 0);
    question.count = offset_count = 0;
    (void)snprintf(question.tz, sizeof question.tz, ":%s/%s", folder, name);
    ask_changes(zone);
    int64_t grid = (int64_t)random_below(random_state, GRID);
    for (int64_t instant = grid; instant < year_2100; instant += GRID) {
        ask(instant);
    }
    for (int i = 0; i < RANDOM_INSTANTS; i++) {
        ask((int64_t)random_below(random_state, (uint64_t)(i % 2 ? year_2100 : year_9999)));
    }
    compare_offsets(zone, seed);
    check_changes(zone);
}

/* Writes a time of day or, with a sign, a larger range, as a rule allows. */
static int put_time(char *out, size_t bytes, uint64_t *random_state, int64_t hours_max)
{
    int64_t seconds = (int64_t)random_below(random_state, (uint64_t)(2 * hours_max * 3600));
    seconds -= hours_max * 3600;
    if (random_below(random_state, 2) == 0) seconds -= seconds % 3600;
    int64_t size = seconds < 0 ? -seconds : seconds;
    return snprintf(out, bytes, "%s%d:%02d:%02d", seconds < 0 ? "-" : "", (int)(size / 3600),
                    (int)(size / 60 % 60), (int)(size % 60));
}

/* Writes a day from February to May, or six months later: the C library considers one year alone,
 * so no change may leave its year, and the same one must be first in every year. */
static int put_day(char *out, size_t bytes, uint64_t *random_state, unsigned months_later)
{
    unsigned month = 2 + (unsigned)random_below(random_state, 4) + months_later;
    unsigned day = 28 * month + (unsigned)random_below(random_state, 28);
    unsigned week = 1 + (unsigned)random_below(random_state, 5);
    int used;
    switch (random_below(random_state, 3)) {
    case 0:
        used = snprintf(out, bytes, ",J%u", day);
        break;
    case 1:
        used = snprintf(out, bytes, ",%u", day);
        break;
    default:
        used = snprintf(out, bytes, ",M%u.%u.%u", month, week, day % 7);
        break;
    }
    if (random_below(random_state, 3) == 0) return used;
    out[used++] = '/';
    return used + put_time(out + used, bytes - (size_t)used, random_state, 167);
}

static void make_rule(char *out, size_t bytes, uint64_t *random_state)
{
    size_t used = (size_t)snprintf(out, bytes, "AAA");
    used += (size_t)put_time(out + used, bytes - used, random_state, 12);
    used += (size_t)snprintf(out + used, bytes - used, "<+B1>");
    if (random_below(random_state, 2) == 0) {
        used += (size_t)put_time(out + used, bytes - used, random_state, 12);
    }
    unsigned later = random_below(random_state, 2) == 0 ? 6 : 0;
    used += (size_t)put_day(out + used, bytes - used, random_state, later);
    used += (size_t)put_day(out + used, bytes - used, random_state, 6 - later);
    CHECK(used < bytes);
}

/* Checks a rule without listed changes, which then applies at all times. */
static void check_rule(uint64_t seed, uint64_t *random_state)
{
    const struct zone_change first = {0, 0};
    struct zone_file file;
    struct bel_zone *zone;
    question.count = offset_count = 0;
    make_rule(question.tz, sizeof question.tz, random_state);
    CHECK_NOTE("again with: prop_zone %" PRIu64 " (%.100s)", seed, question.tz);
    zone_file_make(&file, '3', &first, 1, question.tz);
    CHECK(bel__zone_parse("rule", file.bytes, file.count, &zone) == 0);
    ask_changes(zone);
    for (int i = 0; i < RANDOM_INSTANTS; i++) {
        ask((int64_t)random_below(random_state, (uint64_t)year_9999));
    }
    compare_offsets(zone, seed);
    check_changes(zone);
    bel__zone_destroy(zone);
}

/* Returns the offset in a file, by reading it from the front. */
static int32_t offset_in(const struct zone_change *changes, size_t count, int64_t instant)
{
    int32_t offset = changes[0].offset;
    for (size_t i = 1; i < count && changes[i].time <= instant; i++) {
        offset = changes[i].offset;
    }
    return offset;
}

/* Changes that are close together, some of them to the same offset. */
static void check_file(uint64_t *random_state)
{
    struct zone_change changes[32];
    struct zone_file file;
    struct bel_zone *zone;
    size_t count = 1 + random_below(random_state, sizeof changes / sizeof *changes);
    int64_t time = (int64_t)random_below(random_state, 2000000000), start = time;
    offset_count = 0;
    for (size_t i = 0; i < count; i++) {
        time += 1 + (int64_t)(random_magnitude(random_state) % APART_MAX);
        int32_t quarters = (int32_t)random_below(random_state, 200) - 98;
        changes[i] = (struct zone_change){time, quarters * 900};
        remember_offset(quarters * 900);
    }
    zone_file_make(&file, random_below(random_state, 2) ? 0 : '2', changes, count, "");
    CHECK(bel__zone_parse("file", file.bytes, file.count, &zone) == 0);
    for (size_t i = 1; i < count; i++) {
        for (int64_t near = -1; near <= 1; near++) {
            int64_t instant = changes[i].time + near;
            int32_t offset = offset_in(changes, count, instant);
            CHECK(bel_zone_offset(zone, instant) == offset);
            check_local(zone, instant + offset);
            check_local(zone, instant + offset_in(changes, count, changes[i].time - 1));
        }
        check_local(zone, start + (int64_t)random_below(random_state, (uint64_t)(time - start)));
    }
    bel__zone_destroy(zone);
}

static bool is_known(ino_t inode)
{
    for (size_t i = 0; i < name_count; i++) {
        if (inodes[i] == inode) return true;
    }
    return false;
}

/* Adds a file of the directory, unless it is not a zone or an alias of another. */
static void add_name(const char *name, const struct stat *status)
{
    char path[512], magic[4] = "";
    if (is_known(status->st_ino)) return;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t got = fread(magic, 1, sizeof magic, file);
    (void)fclose(file);
    if (got != sizeof magic || memcmp(magic, "TZif", sizeof magic) != 0) return;
    CHECK(name_count < NAMES_MAX);
    inodes[name_count] = status->st_ino;
    (void)snprintf(names[name_count++], sizeof *names, "%s", name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds everything below a directory, in the order of the names; at most three levels. */
static void add_names(const char *under, int levels)
{
    char path[512];
    struct dirent **entries = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", folder, under);
    int count = scandir(path, &entries, NULL, by_name);
    CHECK(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *entry = entries[i]->d_name;
        char name[BEL_ZONE_NAME_MAX + 1];
        struct stat status;
        bool other = strcmp(entry, "posix") == 0 || strcmp(entry, "right") == 0;
        int used = snprintf(name, sizeof name, "%s%s%s", under, *under ? "/" : "", entry);
        (void)snprintf(path, sizeof path, "%s/%s", folder, name);
        if (entry[0] != '.' && !other && used < (int)sizeof name && stat(path, &status) == 0) {
            if (S_ISREG(status.st_mode)) add_name(name, &status);
            if (S_ISDIR(status.st_mode) && levels > 1) add_names(name, levels - 1);
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--library") == 0) return answer_questions();
    if (bel_zones_open(NULL, &zones) != 0) {
        printf("skipped: there is no zone on this system\n");
        return 77;
    }
    names = calloc(NAMES_MAX, sizeof *names);
    CHECK(names != NULL);
    add_names("", 3);
    CHECK(name_count > 0);
    start_library();

    struct cases cases = cases_of(argc, argv, name_count);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        uint64_t random_state = seed;
        check_system_zone(seed, &random_state);
        check_rule(seed, &random_state);
        CHECK_NOTE("again with: prop_zone %" PRIu64 " (a file)", seed);
        for (int i = 0; i < 20; i++) {
            check_file(&random_state);
        }
    }
    printf("ok   %zu zones, %" PRIu64 " rules\n", name_count, cases.last - cases.first + 1);
    bel_zones_close(zones);
    free(names);
    return 0;
}
