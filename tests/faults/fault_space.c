/* SPDX-License-Identifier: MIT */

/*
 * A disk that becomes full and has room again. It is a small tmpfs, mounted only for this process;
 * without the permission to mount, the test is skipped. Another file fills it:
 *
 *     |  log, tree  |  free  |  ballast  |
 *                   |reserve|
 *
 * With less than the reserve free, commands that add timers are refused, and those that end timers
 * are not. With nothing free the tree cannot grow, and the log has room for a while; then all
 * commands are refused. No failure is final: with room again the same process continues.
 */
#include "scene.h"
#include "victim.h"

#include "store/state.h"

#include "../ask.h"
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    DISK_BYTES = 48 << 20,
    RESERVE_BYTES = 4 << 20,
    SKIPPED = 77,
    TURNS = 60,
    TURNS_MAX = 100, /* times TURNS, at most */
    CHUNK_BYTES = 64 << 10,
};

static char folder[SCENE_PATH_BYTES], disk[SCENE_PATH_BYTES], ballast[2 * SCENE_PATH_BYTES];
static struct victim victim;
static struct book *book;
static uint64_t seed = 1;

static bool mount_disk(void)
{
    char options[64];
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    (void)snprintf(options, sizeof options, "size=%d,mode=0700", DISK_BYTES);
    return mount("belfry", disk, "tmpfs", 0, options) == 0;
}

static uint64_t free_bytes(void)
{
    struct statvfs info;
    CHECK(statvfs(disk, &info) == 0);
    return (uint64_t)info.f_bavail * info.f_frsize;
}

/* Fills the disk until only `bytes` are free. */
static void leave(uint64_t bytes)
{
    static char chunk[CHUNK_BYTES];
    int file = open(ballast, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    while (free_bytes() > bytes) {
        uint64_t more = free_bytes() - bytes;
        ssize_t done = write(file, chunk, more < sizeof chunk ? more : sizeof chunk);
        CHECK(done > 0 || errno == ENOSPC);
        if (done <= 0) break;
    }
    CHECK(close(file) == 0);
}

static void give_back(void)
{
    CHECK(unlink(ballast) == 0);
}

/* The victim's time as the clock of its store. */
static uint64_t victim_mono_ns(struct bel_io *io)
{
    (void)io;
    return victim.now.boot.ns;
}

static void open_victim(uint64_t round)
{
    struct victim_options options = {.folder = folder,
                                     .round = round,
                                     .book = book,
                                     .disk_reserve_bytes = RESERVE_BYTES,
                                     .never_waits = true};
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    victim.store->io->mono_ns = victim_mono_ns;
    victim.may_fail = true;
}

static void work(void)
{
    memset(victim.taken_by, 0, sizeof victim.taken_by);
    memset(victim.refused_by, 0, sizeof victim.refused_by);
    victim.refused = 0;
    victim_work(&victim, seed++, TURNS);
    CHECK_NOTE("%s", bel_error_text(victim.last_error));
    CHECK(victim.refused == 0 || victim.last_error == BEL_EFULL);
}

/* Works until no command is refused. */
static void work_until_well(void)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        work();
        if (victim.refused == 0) return;
    }
    CHECK(false);
}

static void who_adds_is_refused_and_who_ends_is_not(void)
{
    work_until_well();
    leave(RESERVE_BYTES / 2);
    for (int i = 0; i < TURNS_MAX && victim.refused_by[BEL_VERB_SCHEDULE] == 0; i++) {
        work();
    }
    CHECK(victim.refused_by[BEL_VERB_SCHEDULE] > 0);
    CHECK(bel_engine_stats(victim.engine)->is_disk_low);
    CHECK(strcmp(victim.last_why, "the disk of the data directory is nearly full") == 0);
    work();
    CHECK_EQ(victim.taken_by[BEL_VERB_SCHEDULE], 0);
    CHECK(victim.taken_by[BEL_VERB_ACK] > 0 && victim.taken_by[BEL_VERB_CANCEL] > 0);
    CHECK_EQ(victim.refused_by[BEL_VERB_ACK], 0);
    CHECK_EQ(victim.refused_by[BEL_VERB_CANCEL], 0);
    CHECK_EQ(victim.refused_by[BEL_VERB_FAIL], 0);
    CHECK_EQ(victim.refused_by[BEL_VERB_CLAIM], 0);
    (void)victim_check(&victim);
    give_back();
    work();
    CHECK_EQ(victim.refused, 0);
    CHECK(victim.taken_by[BEL_VERB_SCHEDULE] > 0);
    CHECK(!bel_engine_stats(victim.engine)->is_disk_low);
}

/* Frees the disk until the victim works again, so that it has timers to end; then fills it. */
static void fill_up(void)
{
    give_back();
    work_until_well();
    leave(0);
}

static void a_disk_that_is_quite_full_refuses_and_loses_nothing(void)
{
    uint64_t refused = 0, ended = 0;
    leave(0);
    for (int i = 0; i < TURNS_MAX; i++) {
        work();
        refused += victim.refused;
        ended += victim.taken_by[BEL_VERB_ACK] + victim.taken_by[BEL_VERB_CANCEL];
        if (victim.refused_by[BEL_VERB_SCHEDULE] > 0 && i % 10 == 9) fill_up();
    }
    CHECK(refused > 0 && ended > 0);
    (void)victim_check(&victim);
    give_back();
    work_until_well();
    CHECK(victim.taken_by[BEL_VERB_SCHEDULE] > 0);
}

static void all_that_was_acknowledged_is_there_after_all(void)
{
    (void)victim_check(&victim);
    victim_close(&victim);
    open_victim(1);
    CHECK(victim_check(&victim) > 0);
    work();
    CHECK_EQ(victim.refused, 0);
    leave(0);
    work();
    victim_close(&victim); /* with a full disk */
    give_back();
    open_victim(2);
    (void)victim_check(&victim);
    victim_close(&victim);
}

/* --- backups to and from a full disk --- */

static char small[2 * SCENE_PATH_BYTES], copy[3 * SCENE_PATH_BYTES];

static void mount_small(uint64_t bytes)
{
    char options[64];
    (void)snprintf(options, sizeof options, "size=%" PRIu64 ",mode=0700", bytes);
    CHECK(mkdir(small, 0700) == 0);
    CHECK(mount("belfry", small, "tmpfs", 0, options) == 0);
}

static void unmount_small(void)
{
    CHECK(umount2(small, MNT_DETACH) == 0);
    CHECK(rmdir(small) == 0);
}

/* Mapped files of a full disk kill a process that touches them, which no error code tells. */
static void a_copy_that_does_not_fit_is_told(void)
{
    struct bel_engine_why why = {{0}};
    struct bel_engine_report report;
    int err = BEL_EFULL, tries = 0;
    open_victim(3);
    work();
    for (uint64_t bytes = 4096; err != 0; bytes += bytes < 65536 ? 4096 : bytes / 2) {
        CHECK(tries++ < TURNS_MAX);
        mount_small(bytes);
        err = bel_engine_backup(victim.engine, copy, &why);
        CHECK_NOTE("%" PRIu64 " bytes: %s: %.150s", bytes, bel_error_text(err), why.text);
        CHECK(err == 0 || (err == BEL_EFULL && strstr(why.text, copy) != NULL));
        int found = bel_engine_check(copy, &report, &why);
        CHECK(err == 0 ? found == 0 : found == BEL_ENOTFOUND || found == BEL_ECORRUPT);
        unmount_small();
        work();
        CHECK_EQ(victim.refused, 0);
    }
    CHECK(tries > 16);
}

/* The log has its space, so that the original works while it is copied. */
static void who_is_full_can_be_copied(void)
{
    struct bel_engine_why why = {{0}};
    struct victim other;
    struct book *then = book_create(false);
    struct victim_options options = {.folder = copy, .round = 3, .book = then};
    mount_small(DISK_BYTES);
    leave(0);
    for (int i = 0; i < TURNS_MAX && victim.refused_by[BEL_VERB_SCHEDULE] == 0; i++) {
        work();
    }
    int err = bel_engine_backup_begin(victim.engine, copy, &why);
    CHECK(err == 0);
    book_copy(book, then);
    while ((err = bel_engine_backup_poll(victim.engine, &why)) == BEL_EBUSY) {
        work();
    }
    CHECK_NOTE("%s: %.200s", bel_error_text(err), why.text);
    CHECK(err == 0);
    CHECK(victim_open(&other, &options) == 0);
    CHECK(victim_see(&other) > 0);
    victim_close(&other);
    CHECK(bel_engine_check(copy, &(struct bel_engine_report){0}, &why) == 0);
    (void)victim_check(&victim);
    unmount_small();
    give_back();
    victim_close(&victim);
    book_destroy(then);
}

/* LMDB creates its file of locks anew and maps it. */
static void a_full_disk_can_be_read_and_is_no_reason_to_die(void)
{
    char name[2 * SCENE_PATH_BYTES];
    struct bel_engine_report report;
    struct bel_engine_why why = {{0}};
    struct victim_options options = {
        .folder = folder, .round = 3, .book = book, .disk_reserve_bytes = RESERVE_BYTES};
    (void)snprintf(name, sizeof name, "%s/tree/lock.mdb", folder);
    for (int i = 0; i < 2; i++) { /* as it was left, and without the file of locks */
        leave(0);
        if (i == 1) {
            CHECK(unlink(name) == 0);
            leave(0);
        }
        int err = bel_engine_check(folder, &report, &why);
        CHECK_NOTE("%s: %.200s", bel_error_text(err), why.text);
        CHECK(err == 0);
        err = victim_open(&victim, &options);
        CHECK(i == 0 ? err == 0 : err == BEL_EFULL && strstr(victim.why, "tree") != NULL);
        if (err == 0) victim_close(&victim);
        give_back();
    }
    CHECK(victim_open(&victim, &options) == 0);
    (void)victim_check(&victim);
    victim_close(&victim);
}

/* --- a disk that the timers fill --- */

static char last_why[BEL_REPLY_WHY_BYTES];

/* Runs a command on the victim's engine, with turns until it is answered. */
static int ask(struct bel_command command)
{
    struct bel_request request = {.command = command};
    struct reply_seen answer;
    ask_submit(victim.backend, &request, &answer);
    while (!answer.is_done) {
        victim.now.wall.ms += 10;
        victim.now.boot.ns += UINT64_C(10000000);
        (void)bel_backend_turn(victim.backend, victim.now);
    }
    (void)snprintf(last_why, sizeof last_why, "%s", answer.why);
    return answer.err;
}

static int schedule(void)
{
    static char payload[8 << 10];
    return ask((struct bel_command){.verb = BEL_VERB_SCHEDULE,
                                    .schedule = {.topic = BEL_VIEW("filled"),
                                                 .payload = {payload, sizeof payload},
                                                 .when = BEL_WHEN_IN,
                                                 .delay_ms = 1000000000}});
}

static void who_has_filled_it_and_empties_it_is_let_in_again(void)
{
    struct victim_options options = {.folder = folder,
                                     .round = 4,
                                     .book = book,
                                     .disk_reserve_bytes = RESERVE_BYTES,
                                     .has_no_thread = true};
    CHECK(victim_open(&victim, &options) == 0);
    int scheduled = 0;
    for (int refused = 0; refused < TURNS;) { /* some only until the tree has what is accepted */
        bool is_refused = schedule() != 0;
        refused = is_refused ? refused + 1 : 0;
        scheduled += !is_refused;
    }
    uint64_t before = free_bytes();
    CHECK_NOTE("%d scheduled, %" PRIu64 " bytes free", scheduled, before);
    CHECK(before < (uint64_t)2 * RESERVE_BYTES && scheduled > 100);
    CHECK(before + bel_engine_reusable_bytes(victim.engine) / 2 > RESERVE_BYTES / 4);
    CHECK(ask((struct bel_command){
              .verb = BEL_VERB_PURGE,
              .purge = {.topic = BEL_VIEW("filled"), .has_state = true, .state = BEL_SCHEDULED}}) ==
          0);
    int tries = 0;
    while (tries < TURNS_MAX * TURNS && schedule() != 0) {
        tries++;
        struct bel_view id = BEL_VIEW("none");
        CHECK(ask((struct bel_command){
                  .verb = BEL_VERB_CANCEL,
                  .cancel = {.topic = BEL_VIEW("filled"), .ids = &id, .ids_count = 1}}) == 0);
    }
    CHECK(free_bytes() <= before); /* no file has shrunk */
    int again = 0;
    for (int i = 0; i < scheduled; i++) {
        if (schedule() == 0) again++;
    }
    CHECK(again > scheduled / 2); /* some are refused because the tree is behind */
    victim_close(&victim);
}

/* --- the time until it recovers --- */

/* Takes the turns that the engine asks for, and no others, for a second. Returns their number. */
static int idle_for_a_second(void)
{
    uint64_t end = victim.now.boot.ns + UINT64_C(1000000000);
    int turns = 0;
    for (;;) {
        struct bel_next next = bel_backend_turn(victim.backend, victim.now);
        turns++;
        CHECK(turns < TURNS_MAX * TURNS);
        if (next.due.ns > end) return turns;
        CHECK(next.due.ns >= victim.now.boot.ns);
        victim.now.wall.ms += (int64_t)((next.due.ns - victim.now.boot.ns) / 1000000);
        victim.now.boot.ns = next.due.ns;
    }
}

/* With the log used up, nothing but a checkpoint helps, and no command may be needed for it. */
static void an_idle_engine_recovers_within_a_second(void)
{
    struct victim_options options = {
        .folder = folder, .round = 5, .book = book, .disk_reserve_bytes = 1, .has_no_thread = true};
    scene_clear(folder);
    CHECK(victim_open(&victim, &options) == 0);
    victim.store->io->mono_ns = victim_mono_ns;
    for (int round = 0; round < 3; round++) {
        leave(0);
        victim.store->unasked_bytes = 0; /* so that it looks at the disk when it has put a MiB */
        int scheduled = 0;
        while (schedule() == 0) {
            scheduled++;
        }
        CHECK(scheduled > 10);
        for (int i = 0; i < 300; i++) { /* longer and longer until it is tried again */
            CHECK(schedule() == BEL_EFULL);
            CHECK(strstr(last_why, "the disk of the data directory") != NULL);
        }
        CHECK(bel_engine_stats(victim.engine)->is_disk_low);
        give_back();
        int turns = idle_for_a_second();
        CHECK_NOTE("%d turns", turns);
        CHECK(!bel_engine_stats(victim.engine)->is_disk_low);
        CHECK(schedule() == 0);
        CHECK(idle_for_a_second() < 100); /* and is idle then */
    }
    victim_close(&victim);
}

/* --- pressure --- */

/* Measures the disk as a server does each second, and lets the engine work for a second if it
 * needs a turn. */
static void sample(void)
{
    uint64_t available = free_bytes() + bel_engine_reusable_bytes(victim.engine);
    struct bel_pressure_sample sample = {
        .disk = {.used = available < DISK_BYTES ? DISK_BYTES - available : 0, .limit = DISK_BYTES}};
    if (bel_engine_pressure(victim.engine, &sample)) (void)idle_for_a_second();
}

static const struct bel_pressure_state *pressure(void)
{
    return &bel_engine_stats(victim.engine)->pressure;
}

/* Purges a few large timers: too few rows for a checkpoint, unless the samples ask for it. Nobody
 * sends a request meanwhile. */
static void pressure_that_the_timers_have_made_ends_with_them(void)
{
    struct victim_options options = {.folder = folder,
                                     .round = 6,
                                     .book = book,
                                     .disk_reserve_bytes = 1,
                                     .segment_bytes = 4 << 20,
                                     .has_no_thread = true};
    scene_clear(folder);
    CHECK(victim_open(&victim, &options) == 0);
    victim.store->io->mono_ns = victim_mono_ns;
    int scheduled = 0;
    while (pressure()->level < BEL_PRESSURE_CRITICAL && scheduled < 100000) {
        CHECK(schedule() == 0);
        scheduled++;
        sample();
    }
    CHECK(schedule() == BEL_EFULL && strstr(last_why, "of the disk is used") != NULL);
    uint64_t before = free_bytes();
    CHECK(ask((struct bel_command){
              .verb = BEL_VERB_PURGE,
              .purge = {.topic = BEL_VIEW("filled"), .has_state = true, .state = BEL_SCHEDULED}}) ==
          0);
    for (int i = 0; i < 5 && pressure()->level == BEL_PRESSURE_CRITICAL; i++) {
        sample();
    }
    CHECK_NOTE("%d scheduled, %u %%", scheduled,
               (unsigned)(pressure()->uses[BEL_PRESSURE_DISK].used * 100 / DISK_BYTES));
    CHECK(pressure()->level < BEL_PRESSURE_CRITICAL);
    CHECK(free_bytes() <= before); /* no file has shrunk */
    CHECK(schedule() == 0);
    victim_close(&victim);
}

int main(void)
{
    scene_make(folder);
    (void)snprintf(disk, sizeof disk, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", disk);
    (void)snprintf(small, sizeof small, "%s/small", disk);
    (void)snprintf(copy, sizeof copy, "%s/copy", small);
    if (!mount_disk()) {
        CHECK(rmdir(disk) == 0);
        printf("skip no small disk can be mounted here\n");
        return SKIPPED;
    }
    book = book_create(false);
    open_victim(0);
    RUN(who_adds_is_refused_and_who_ends_is_not);
    RUN(a_disk_that_is_quite_full_refuses_and_loses_nothing);
    RUN(all_that_was_acknowledged_is_there_after_all);
    RUN(a_copy_that_does_not_fit_is_told);
    RUN(who_is_full_can_be_copied);
    RUN(a_full_disk_can_be_read_and_is_no_reason_to_die);
    RUN(who_has_filled_it_and_empties_it_is_let_in_again);
    RUN(an_idle_engine_recovers_within_a_second);
    RUN(pressure_that_the_timers_have_made_ends_with_them);
    scene_clear(folder);
    CHECK(umount2(disk, MNT_DETACH) == 0);
    CHECK(rmdir(disk) == 0);
    book_destroy(book);
    return 0;
}
