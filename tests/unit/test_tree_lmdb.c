/* SPDX-License-Identifier: MIT */

/*
 * Cases that only a tree on disk has: a full or broken disk, files that are damaged, missing or of
 * another version, too little address space. The system calls that LMDB writes with are defined
 * here, and LMDB links to them.
 */
#include "store/tree/tree.h"

#include "core/crc32c.h"
#include "store/io/row.h"

#include "../check.h"
#include "../trees.h"

#include <errno.h>
#include <lmdb.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* The behaviour of the disk. */
static uint64_t writes_left = UINT64_MAX; /* before they fail */
static int write_error;                   /* 0: they are short */
static bool sync_fails;
static bool is_full; /* result of fstatvfs() */

/* With the names in the system's library, where a header may rename them. */
ssize_t disk_pwrite(int file, const void *bytes, size_t count, off_t offset) __asm__("pwrite");
ssize_t disk_pwrite64(int file, const void *bytes, size_t count, off_t offset) __asm__("pwrite64");
ssize_t disk_writev(int file, const struct iovec *pieces, int count) __asm__("writev");
int disk_sync(int file) __asm__("fdatasync");
int disk_stat(int file, struct statvfs *out) __asm__("fstatvfs");
int disk_stat64(int file, struct statvfs *out) __asm__("fstatvfs64");

/* Returns true if the next write is complete. Otherwise sets errno. */
static bool takes_write(void)
{
    errno = write_error;
    return writes_left > 0 && writes_left-- > 0;
}

ssize_t disk_pwrite(int file, const void *bytes, size_t count, off_t offset)
{
    if (!takes_write()) {
        if (write_error != 0) return -1;
        count /= 2;
    }
    return syscall(SYS_pwrite64, file, bytes, count, offset);
}

ssize_t disk_pwrite64(int file, const void *bytes, size_t count, off_t offset)
{
    return disk_pwrite(file, bytes, count, offset);
}

ssize_t disk_writev(int file, const struct iovec *pieces, int count)
{
    if (!takes_write()) {
        if (write_error != 0) return -1;
        count = 1;
    }
    return syscall(SYS_writev, file, pieces, count);
}

int disk_sync(int file)
{
    if (sync_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, file);
}

int disk_stat(int file, struct statvfs *out)
{
    (void)file;
    *out = (struct statvfs){.f_bavail = is_full ? 1 : 1 << 20, .f_frsize = 4096};
    return 0;
}

int disk_stat64(int file, struct statvfs *out)
{
    return disk_stat(file, out);
}

static struct fixture fixture;
static struct bel_tree *tree;

static void heal(void)
{
    writes_left = UINT64_MAX;
    sync_fails = false;
    is_full = false;
}

static void setup(void)
{
    heal();
    fixture_init(&fixture, TREE_LMDB);
    tree = fixture.tree;
}

static void reopen(void)
{
    fixture_reopen(&fixture);
    tree = fixture.tree;
}

static int try_open(enum bel_tree_mode mode)
{
    struct bel_tree_options options = {
        .path = fixture.path, .mode = mode, .map_bytes = FIXTURE_MAP_BYTES};
    int err = bel__tree_lmdb_open(&options, &fixture.tree);
    tree = fixture.tree;
    return err;
}

static void close_tree(void)
{
    tree->close(tree);
    fixture.tree = NULL;
    tree = NULL;
}

static struct bel_key key_of(uint64_t number)
{
    return (struct bel_key){{UINT64_C(0x6b65792d6b65792d), number, 5}};
}

/* Puts rows, and commits them if all succeed. */
static int put_rows(uint64_t rows, const char *text, uint64_t epoch)
{
    int err = tree->begin(tree);
    if (err) return err;
    for (uint64_t i = 0; i < rows && !err; i++) {
        struct bel_key key = key_of(i);
        err = tree->put(tree, &key, (struct bel_view){text, strlen(text)});
    }
    if (!err) err = tree->commit(tree, epoch);
    if (err) tree->abort(tree);
    return err;
}

static void check_rows(uint64_t rows, const char *text, uint64_t epoch)
{
    struct bel_tree_stats stats;
    CHECK(tree->refresh(tree) == 0);
    CHECK_EQ(tree->epoch(tree), epoch);
    CHECK(bel__tree_check(tree, &stats) == 0);
    CHECK_EQ(stats.rows, rows);
    for (uint64_t i = 0; i < rows; i++) {
        struct bel_key key = key_of(i);
        struct bel_view value;
        CHECK(tree->get(tree, &key, &value) == 0);
        CHECK(value.bytes == strlen(text) && memcmp(value.data, text, value.bytes) == 0);
    }
}

/* A transaction that meets a full disk at every one of its writes. */
static void meet_a_full_disk(int error, int want)
{
    enum {
        ROWS = 300
    };
    uint64_t count = 0, ends = 0;
    setup();
    CHECK(put_rows(ROWS, "old", 1) == 0);
    for (bool fails = true; fails; count++) {
        CHECK_NOTE("after %" PRIu64 " writes", count);
        writes_left = count;
        write_error = error;
        is_full = want == BEL_EFULL;
        int err = put_rows(UINT64_C(2) * ROWS, "new", 2);
        CHECK(err == 0 || err == want);
        fails = err != 0;
        heal();
        if (!fails) break;
        /* Only the last write, that of the page that names the root, is fatal to LMDB: no disk
         * refuses it for lack of space. */
        err = tree->refresh(tree);
        CHECK(err == 0 || err == BEL_EIO);
        if (err) ends++;
        if (err) reopen();
        check_rows(ROWS, "old", 1);
        CHECK(put_rows(ROWS, "old", 1) == 0); /* there is space again */
        check_rows(ROWS, "old", 1);
    }
    CHECK_EQ(ends, 1);
    CHECK(count > 2);
    check_rows(UINT64_C(2) * ROWS, "new", 2);
    fixture_finish(&fixture);
}

static void a_full_disk_refuses_a_transaction_and_spares_the_tree(void)
{
    meet_a_full_disk(ENOSPC, BEL_EFULL);
    meet_a_full_disk(EDQUOT, BEL_EFULL);
    meet_a_full_disk(0, BEL_EFULL); /* cut short */
}

static void a_broken_disk_is_told_from_a_full_one(void)
{
    meet_a_full_disk(EIO, BEL_EIO);
    meet_a_full_disk(0, BEL_EIO);
}

static void a_transaction_that_is_not_synced_is_not_there(void)
{
    setup();
    CHECK(put_rows(10, "old", 1) == 0);
    sync_fails = true;
    CHECK(put_rows(10, "new", 2) == BEL_EIO);
    heal();
    check_rows(10, "old", 1);
    reopen();
    check_rows(10, "old", 1);
    fixture_finish(&fixture);
}

static void a_full_map_refuses_a_transaction_and_spares_the_tree(void)
{
    enum {
        TEXT_BYTES = 2000,
        ROWS_MAX = 20000
    };
    static char text[TEXT_BYTES + 1];
    setup();
    close_tree();
    struct bel_tree_options options = {.path = fixture.path, .map_bytes = UINT64_C(1) << 24};
    CHECK(bel__tree_lmdb_open(&options, &fixture.tree) == 0);
    tree = fixture.tree;
    memset(text, 't', TEXT_BYTES);
    CHECK(put_rows(100, "small", 1) == 0);
    CHECK(put_rows(ROWS_MAX, text, 2) == BEL_EFULL);
    check_rows(100, "small", 1);
    CHECK(put_rows(100, text, 2) == 0);
    check_rows(100, text, 2);
    fixture_finish(&fixture);
}

/* Returns the address space that the process uses. */
static uint64_t addresses(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    uint64_t pages = 0;
    CHECK(file != NULL);
    CHECK(fscanf(file, "%" SCNu64, &pages) == 1); /* NOLINT(cert-err34-c) */
    CHECK(fclose(file) == 0);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Runs in a subprocess, because it sets its own limit: half of the limit is more than is left. */
static void open_with_few_addresses(void)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = addresses() + (UINT64_C(1) << 31);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(mmap(NULL, (size_t)7 << 28, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    struct bel_tree_options options = {.path = fixture.path, .mode = BEL_TREE_OPEN};
    CHECK(bel__tree_lmdb_open(&options, &fixture.tree) == 0);
    tree = fixture.tree;
    check_rows(10, "old", 1);
    CHECK(put_rows(20, "new", 2) == 0);
    check_rows(20, "new", 2);
    close_tree();
}

/* Calls a function in a child, which must succeed. */
static void in_a_child(void (*function)(void))
{
    (void)fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        function();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void few_addresses_make_a_smaller_map(void)
{
    setup();
    CHECK(put_rows(10, "old", 1) == 0);
    close_tree();
    in_a_child(open_with_few_addresses);
    CHECK(try_open(BEL_TREE_OPEN) == 0);
    check_rows(20, "new", 2);
    fixture_finish(&fixture);
}

static void read_beside_the_writer(void)
{
    fixture.tree = NULL; /* belongs to the parent */
    CHECK(try_open(BEL_TREE_READ) == 0);
    check_rows(10, "old", 1);
    close_tree();
}

static void another_process_can_read(void)
{
    setup();
    CHECK(put_rows(10, "old", 1) == 0);
    CHECK(tree->begin(tree) == 0);
    struct bel_key key = key_of(3);
    CHECK(tree->put(tree, &key, BEL_VIEW("never seen")) == 0);
    in_a_child(read_beside_the_writer);
    tree->abort(tree);
    fixture_finish(&fixture);
}

static void truncate_file(off_t bytes)
{
    char name[96];
    (void)snprintf(name, sizeof name, "%s/data.mdb", fixture.path);
    CHECK(truncate(name, bytes) == 0);
}

static void what_must_be_there_is_not_made_anew(void)
{
    setup();
    CHECK(put_rows(10, "old", 1) == 0);
    close_tree();
    truncate_file(0);
    CHECK(try_open(BEL_TREE_OPEN) == BEL_ECORRUPT);
    CHECK(try_open(BEL_TREE_READ) == BEL_ECORRUPT);
    truncate_file(8192); /* of zeros */
    CHECK(try_open(BEL_TREE_OPEN) == BEL_ECORRUPT);
    CHECK(try_open(BEL_TREE_CREATE) == BEL_ECORRUPT);
    fixture_remove_files(&fixture);
    CHECK(try_open(BEL_TREE_OPEN) == BEL_ENOTFOUND);
    CHECK(try_open(BEL_TREE_READ) == BEL_ENOTFOUND);
    CHECK(try_open(BEL_TREE_CREATE) == BEL_ENOTFOUND); /* the parent directory does not exist
                                                          either */
    CHECK(fixture.tree == NULL);
    fixture_finish(&fixture);
}

static void one_whose_making_was_cut_short_is_made_again(void)
{
    char folder[96], name[112];
    setup();
    close_tree();
    CHECK(snprintf(folder, sizeof folder, "%s.new", fixture.path) > 0);
    CHECK(rename(fixture.path, folder) == 0);
    CHECK(snprintf(name, sizeof name, "%s/data.mdb", folder) > 0);
    CHECK(truncate(name, 4096) == 0); /* half of what the library writes first */
    CHECK(try_open(BEL_TREE_OPEN) == BEL_ENOTFOUND);
    CHECK(try_open(BEL_TREE_CREATE) == 0);
    CHECK(access(folder, F_OK) != 0);
    CHECK(put_rows(10, "new", 1) == 0);
    check_rows(10, "new", 1);
    fixture_finish(&fixture);
}

/* Replaces the state by one with another format, or removes it. */
static void change_state(uint32_t format)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi states;
    struct {
        uint32_t format, checksum;
        uint64_t numbers[3];
    } state = {.format = format};
    char name[] = "state";
    MDB_val key = {sizeof name - 1, name}, data = {sizeof state, &state};
    state.checksum = bel__crc32c(0, &state, sizeof state);
    CHECK(mdb_env_create(&env) == 0);
    CHECK(mdb_env_set_maxdbs(env, 2) == 0);
    CHECK(mdb_env_open(env, fixture.path, 0, 0600) == 0);
    CHECK(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    CHECK(mdb_dbi_open(txn, "state", 0, &states) == 0);
    CHECK((format == 0 ? mdb_del(txn, states, &key, NULL) : mdb_put(txn, states, &key, &data, 0)) ==
          0);
    CHECK(mdb_txn_commit(txn) == 0);
    mdb_env_close(env);
}

static void a_later_format_is_refused(void)
{
    setup();
    close_tree();
    change_state(2);
    CHECK(try_open(BEL_TREE_OPEN) == BEL_EUNSUPPORTED);
    CHECK(try_open(BEL_TREE_CREATE) == BEL_EUNSUPPORTED);
    change_state(0);
    CHECK(try_open(BEL_TREE_OPEN) == BEL_ECORRUPT);
    change_state(1);
    CHECK(try_open(BEL_TREE_OPEN) == 0);
    fixture_finish(&fixture);
}

static void every_flipped_byte_of_a_row_is_detected(void)
{
    static const char text[] = "a row whose every byte is flipped";
    struct bel_tree_stats stats;
    struct bel_view value;
    unsigned char key[BEL_KEY_BYTES];
    unsigned met = 0;
    setup();
    CHECK(put_rows(3, text, 1) == 0);
    CHECK(tree->refresh(tree) == 0);
    bel__key_write(&(struct bel_key){{UINT64_C(0x6b65792d6b65792d), 1, 5}}, key);
    off_t start = fixture_find_file(&fixture, (struct bel_view){key, sizeof key}, 0);
    CHECK(start > 0);
    CHECK(fixture_find_file(&fixture, (struct bel_view){key, sizeof key}, start + 1) == -1);
    for (off_t i = 0; i < BEL_KEY_BYTES + 4 + (off_t)sizeof text - 1; i++) {
        CHECK_NOTE("byte %d", (int)i);
        fixture_flip_file(&fixture, start + i);
        CHECK(bel__tree_check(tree, &stats) == BEL_ECORRUPT);
        if (i < BEL_KEY_BYTES) key[i] ^= 1;
        struct bel_key flipped = bel__key_read(key);
        int err = tree->get(tree, &flipped, &value);
        CHECK(err == BEL_ECORRUPT || (err == BEL_ENOTFOUND && i < BEL_KEY_BYTES)); /* no order */
        met += err == BEL_ECORRUPT;
        if (i < BEL_KEY_BYTES) key[i] ^= 1;
        fixture_flip_file(&fixture, start + i);
        CHECK(bel__tree_check(tree, &stats) == 0);
    }
    CHECK(met > 4 + sizeof text - 1); /* keys among them */
    fixture_finish(&fixture);
}

static void every_flipped_byte_of_the_state_is_detected(void)
{
    enum {
        STATE_BYTES = 32
    };
    setup();
    CHECK(put_rows(3, "text", UINT64_C(0x1122334455667788)) == 0);
    close_tree();
    static const unsigned char epoch[] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
    off_t start = fixture_find_file(&fixture, (struct bel_view){epoch, sizeof epoch}, 0) - 8;
    CHECK(start > 0);
    for (off_t i = 0; i < STATE_BYTES; i++) {
        CHECK_NOTE("byte %d", (int)i);
        fixture_flip_file(&fixture, start + i);
        CHECK(try_open(BEL_TREE_OPEN) == BEL_ECORRUPT);
        fixture_flip_file(&fixture, start + i);
    }
    CHECK(try_open(BEL_TREE_OPEN) == 0);
    fixture_finish(&fixture);
}

/* Expecting is a hint: it does not change the rows. */
static void expecting_changes_nothing(void)
{
    enum {
        ROWS = 20000
    };
    setup();
    for (int round = 0; round < 3; round++) {
        CHECK(tree->begin(tree) == 0);
        for (uint64_t i = 0; i < ROWS; i++) {
            struct bel_key ahead = key_of(i * 7919 % (UINT64_C(2) * ROWS)), key = key_of(i);
            tree->expect(tree, &ahead);
            CHECK(tree->put(tree, &key, BEL_VIEW("expected")) == 0);
        }
        tree->expect(tree, &(struct bel_key){{0, 0, 0}});
        tree->expect(tree, &(struct bel_key){{UINT64_MAX, UINT64_MAX, UINT64_MAX}});
        CHECK(tree->commit(tree, 1) == 0);
    }
    check_rows(ROWS, "expected", 1);
    fixture_finish(&fixture);
}

int main(void)
{
    RUN(a_full_disk_refuses_a_transaction_and_spares_the_tree);
    RUN(a_broken_disk_is_told_from_a_full_one);
    RUN(a_transaction_that_is_not_synced_is_not_there);
    RUN(a_full_map_refuses_a_transaction_and_spares_the_tree);
    RUN(few_addresses_make_a_smaller_map);
    RUN(another_process_can_read);
    RUN(what_must_be_there_is_not_made_anew);
    RUN(one_whose_making_was_cut_short_is_made_again);
    RUN(a_later_format_is_refused);
    RUN(every_flipped_byte_of_a_row_is_detected);
    RUN(every_flipped_byte_of_the_state_is_detected);
    RUN(expecting_changes_nothing);
    return 0;
}
