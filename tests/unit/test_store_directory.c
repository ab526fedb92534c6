/* SPDX-License-Identifier: MIT */

/* The store in a real directory, with its threads, and the interface to files. */
#include "store/state.h"

#include "../check.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BATCHES = 120,
    VALUE_BYTES = 500,
};

static char path[64];
static struct bel_store_options options;
static struct bel_store *store;
static struct bel_why why;
static atomic_uint wake_count;

static void remove_directory(const char *directory)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r '%s'", directory);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe) */
}

static void setup(void)
{
    const char *temporary = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
    (void)snprintf(path, sizeof path, "%s/belfry-XXXXXX", temporary ? temporary : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    options = (struct bel_store_options){
        .path = path,
        .segment_bytes = 64 << 10,
        .segment_count = 3,
        .disk_reserve_bytes = 1,
    };
}

static void close_store(void)
{
    bel__store_close(store);
    store = NULL;
}

static void teardown(void)
{
    close_store();
    remove_directory(path);
}

static void open_store(void)
{
    int err = bel__store_open(&options, &store, &why);
    if (err) fprintf(stderr, "%s\n", why.text);
    CHECK(err == 0);
}

static struct bel_key key_of(uint64_t i)
{
    return (struct bel_key){{i * 0x9e3779b97f4a7c15, i, 0}};
}

/* Row i contains its number; every third is deleted by the next batch. */
static void run_batches(uint64_t first, uint64_t last)
{
    uint8_t value[VALUE_BYTES] = {0};
    for (uint64_t i = first; i <= last; i++) {
        struct bel_key key = key_of(i), before = key_of(i - 1);
        memcpy(value, &i, sizeof i);
        CHECK(bel__store_reserve(store, 2, sizeof value, BEL_STORE_END) == 0);
        bel__store_put(store, &key, (struct bel_view){value, sizeof value}, BEL_ROW_NEW);
        if (i % 3 == 0) bel__store_delete(store, &before);
        CHECK_EQ(bel__store_commit(store), i);
        (void)bel__store_work(store);
    }
}

static void check_batches(uint64_t last)
{
    CHECK_EQ(store->batch, last);
    for (uint64_t i = 1; i <= last; i++) {
        struct bel_key key = key_of(i);
        struct bel_view value;
        int err = bel__store_get(store, &key, &value);
        CHECK(err == ((i + 1) % 3 == 0 && i < last ? BEL_ENOTFOUND : 0));
        if (err == 0) CHECK(value.bytes == VALUE_BYTES && memcmp(value.data, &i, 8) == 0);
    }
}

static void a_store_is_there_after_closing_and_after_a_kill(void)
{
    setup();
    open_store();
    run_batches(1, BATCHES);
    CHECK(store->log->use > 3);
    close_store();
    open_store();
    check_batches(BATCHES);
    close_store();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        open_store();
        run_batches(BATCHES + 1, (uint64_t)2 * BATCHES);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    open_store();
    check_batches((uint64_t)2 * BATCHES);
    teardown();
}

/* Creates a file, or a folder if its name ends in a slash. */
static void touch(const char *name)
{
    char command[256];
    (void)snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s/%sx')\" && touch '%s/%s'",
                   path, name, path, name);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe) */
}

static bool has_file(const char *name)
{
    char whole[128];
    (void)snprintf(whole, sizeof whole, "%s/%s", path, name);
    return access(whole, F_OK) == 0;
}

/* Checks that neither a store nor a view can be opened, and that the process is named. */
static void check_in_use(void)
{
    char text[64];
    struct bel_store *second = NULL;
    struct bel_tree_stats stats;
    (void)snprintf(text, sizeof text, "the data directory is in use by process %d", (int)getpid());
    CHECK(bel__store_open(&options, &second, &why) == BEL_EBUSY);
    CHECK_NOTE("%.200s", why.text);
    CHECK(strcmp(why.text, text) == 0);
    CHECK(bel__store_open_view(&(struct bel_store_view){.path = path}, &stats, &second, &why) ==
          BEL_EBUSY);
    CHECK(strcmp(why.text, text) == 0);
}

static void a_directory_has_one_opener(void)
{
    setup();
    open_store();
    check_in_use();
    close_store();
    open_store();
    teardown();
}

/* The lock is that of the directory: whatever is deleted in it, there is no second opener. */
static void deleted_files_let_nobody_in(void)
{
    static const char *const names[] = {"LOCK", "superblock", "tree", "*"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char command[128];
        setup();
        open_store();
        run_batches(1, 10);
        (void)snprintf(command, sizeof command, "rm -r '%s'/%s", path, names[i]);
        CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe) */
        check_in_use();
        CHECK(i != 0 || !has_file("LOCK")); /* a refused open creates nothing */
        close_store();
        teardown();
    }
}

/* LOCK alone is the lock of earlier versions. */
static void a_lock_file_of_an_earlier_version_counts(void)
{
    char name[128];
    setup();
    open_store();
    close_store();
    (void)snprintf(name, sizeof name, "%s/LOCK", path);
    int file = open(name, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0);
    CHECK(bel__store_open(&options, &store, &why) == BEL_EBUSY);
    CHECK(strcmp(why.text, "the data directory is in use") == 0); /* LOCK has no process id */
    CHECK(close(file) == 0);
    open_store();
    teardown();
}

static void a_store_is_not_created_among_other_files(void)
{
    setup();
    touch("lost+found/");
    open_store(); /* the root of a file system is empty otherwise */
    touch("passwd");
    close_store();
    open_store(); /* once there is a store, other files are harmless */
    teardown();

    setup();
    touch("passwd");
    CHECK(bel__store_open(&options, &store, &why) == BEL_ECONFLICT);
    CHECK(strstr(why.text, "not a Belfry data directory, and not empty: it has 'passwd'") != NULL);
    CHECK(!has_file("LOCK") && !has_file("log-0"));
    teardown();
}

/* A backup of a version without placeholders was cut short, or the superblock was deleted. */
static void a_tree_without_a_superblock_is_refused(void)
{
    static const char *const folders[] = {"tree/", "tree.new/"};
    for (int i = 0; i < 2; i++) {
        struct bel_tree_stats stats;
        setup();
        touch(folders[i]);
        CHECK(bel__store_open(&options, &store, &why) == BEL_ECORRUPT);
        CHECK(strstr(why.text, "there is a tree but no superblock") != NULL);
        CHECK(!has_file("LOCK") && !has_file("log-0"));
        CHECK(bel__store_open_view(&(struct bel_store_view){.path = path}, &stats, &store, &why) ==
              BEL_ECORRUPT);
        CHECK(strstr(why.text, "there is a tree but no superblock") != NULL);
        teardown();
    }
}

static void a_store_moves_between_direct_and_buffered(void)
{
    for (int i = 0; i < 2; i++) {
        setup();
        options.is_buffered = i == 0;
        open_store();
        run_batches(1, 50);
        close_store();
        options.is_buffered = !options.is_buffered;
        open_store();
        check_batches(50);
        run_batches(51, 150);
        close_store();
        options.is_buffered = !options.is_buffered;
        open_store();
        check_batches(150);
        teardown();
    }
}

static void count_wake(void *context)
{
    atomic_fetch_add((atomic_uint *)context, 1);
}

static void threads_can_sync_and_carry(void)
{
    setup();
    options.has_thread = true;
    options.sync = BEL_SYNC_IN_THREAD;
    options.wake = count_wake;
    options.context = &wake_count;
    atomic_store(&wake_count, 0);
    open_store();
    run_batches(1, BATCHES);
    CHECK(bel__log_wait(store->log) == 0);
    CHECK_EQ(bel__store_synced(store), BATCHES);
    CHECK(bel__store_error(store) == 0);
    check_batches(BATCHES);
    close_store();
    CHECK(atomic_load(&wake_count) > 0 && atomic_load(&wake_count) <= BATCHES);
    open_store();
    check_batches(BATCHES);
    run_batches(BATCHES + 1, BATCHES + 10);
    close_store(); /* waits for the committed batches */
    open_store();
    check_batches(BATCHES + 10);
    teardown();
}

static void what_cannot_be_opened_says_why(void)
{
    char inner[128];
    setup();
    open_store();
    close_store();
    (void)snprintf(inner, sizeof inner, "%s/superblock", path);
    options.path = inner;
    CHECK(bel__store_open(&options, &store, &why) == BEL_EIO);
    CHECK(strstr(why.text, "superblock cannot be opened: Not a directory") != NULL);
    (void)snprintf(inner, sizeof inner, "%s/not/there", path);
    CHECK(bel__store_open(&options, &store, &why) == BEL_EIO);
    CHECK(strstr(why.text, "No such file or directory") != NULL);
    (void)snprintf(inner, sizeof inner, "%s/below", path); /* a directory that is created */
    CHECK(bel__store_open(&options, &store, &why) == 0);
    teardown();
}

static void count_name(void *context, const char *name)
{
    if (strcmp(name, "a") == 0 || strcmp(name, "b") == 0) ++*(int *)context;
}

static void the_door_does_what_it_says(void)
{
    struct bel_io *io;
    struct bel_io_file *file;
    uint64_t size, free_bytes;
    char text[8];
    int names = 0;
    setup();
    CHECK(bel__io_system_open(path, &io) == 0);
    CHECK(io->open(io, "a", BEL_IO_READ, &file) == BEL_ENOTFOUND);
    CHECK(io->open(io, "a", BEL_IO_CREATE, &file) == 0);
    CHECK(io->fill(io, file, 0, 10000) == 0);
    CHECK(io->write(io, file, 9998, "noon", 4) == 0);
    CHECK(io->sync(io, file) == 0);
    CHECK(io->size(io, file, &size) == 0);
    CHECK_EQ(size, 10002);
    CHECK(io->read(io, file, 9996, text, 6) == 0);
    CHECK(memcmp(text, "\0\0noon", 6) == 0);
    CHECK(io->read(io, file, 9998, text, 5) == BEL_EIO); /* there are four */
    io->close(io, file);
    CHECK(io->list(io, count_name, &names) == 0);
    CHECK(names == 1);
    CHECK(io->rename(io, "a", "b") == 0);
    CHECK(io->rename(io, "a", "b") == BEL_ENOTFOUND);
    CHECK(io->sync_directory(io) == 0);
    CHECK(io->open(io, "b", BEL_IO_CREATE, &file) == 0); /* empty again */
    CHECK(io->size(io, file, &size) == 0);
    CHECK_EQ(size, 0);
    io->close(io, file);
    CHECK(io->remove(io, "b") == 0);
    CHECK(io->remove(io, "b") == BEL_ENOTFOUND);
    CHECK(io->free_bytes(io, &free_bytes) == 0);
    CHECK(free_bytes > 0);
    io->destroy(io);
    teardown();
}

int main(void)
{
    RUN(a_store_is_there_after_closing_and_after_a_kill);
    RUN(a_directory_has_one_opener);
    RUN(deleted_files_let_nobody_in);
    RUN(a_lock_file_of_an_earlier_version_counts);
    RUN(a_store_is_not_created_among_other_files);
    RUN(a_tree_without_a_superblock_is_refused);
    RUN(a_store_moves_between_direct_and_buffered);
    RUN(threads_can_sync_and_carry);
    RUN(what_cannot_be_opened_says_why);
    RUN(the_door_does_what_it_says);
    return 0;
}
