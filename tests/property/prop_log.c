/* SPDX-License-Identifier: MIT */

/*
 * The store on a faulty disk. Batches of rows are committed, the process is killed and the power is
 * cut at chosen operations, in the middle of writes, syncs, checkpoints and recoveries; syncs and
 * writes fail. Each time the store is opened again, it must be as it was after one of its batches:
 * no synced batch may be missing, none may be there in part, and what one opening did not find must
 * never be found later. If the power was not cut, no acknowledged batch may be missing, synced or
 * not.
 *
 * The model is the content after every batch. What an opening finds is the truth from then on:
 * later batches are removed from the model, and their numbers are reused for other batches, or,
 * because clients retry, for the very same batch, after which an old successor would fit.
 *
 * Each seed chooses its own sizes and faults, often tiny segments, so that segments are reused many
 * times.
 */
#include "property.h"
#include "store/state.h"

#include "../sim/disk.h"

#include <string.h>

enum {
    KEYS = 48,
    BATCHES_MAX = 2000,
    STEPS = 300,
    VALUE_BYTES_MAX = 600,
    CASES = 800,
};

struct content {
    uint64_t values[KEYS]; /* 0: no such row */
};

static struct content contents[BATCHES_MAX + 1]; /* after each batch */
static struct content now;                       /* including the open batch */
static uint64_t seeds[BATCHES_MAX + 2];          /* of the rows of each batch */
static uint64_t last_batch, synced_batch, answered_batch;
static bool tries_again; /* the next batch repeats the lost one */

static uint64_t random_state;
static struct disk *disk;
static struct bel_tree *lasting;
static struct bel_store *store;
static struct bel_entropy_seeded entropy;
static struct bel_store_options options;
static bool has_power_cuts, has_sync_failures, has_crashes;
static uint64_t work_in_8;

/* Commits of the tree are operations of the disk too: the power may fail before or after. */
static int (*commit_lasting)(struct bel_tree *tree, uint64_t epoch);

static int commit_tree(struct bel_tree *tree, uint64_t epoch)
{
    bool is_done;
    bool is_up = disk_step(disk, &is_done);
    if (is_done) {
        int err = commit_lasting(tree, epoch);
        if (err) return err;
    }
    return is_up ? 0 : BEL_EIO;
}

/* Random numbers for everything except the rows of a batch. */
static uint64_t chance(uint64_t end)
{
    return random_below(&random_state, end);
}

static struct bel_key key_of(unsigned i)
{
    return (struct bel_key){{i % 3, i, UINT64_MAX - i}};
}

/* Returns the value for a number: the number, and bytes that follow from it. */
static struct bel_view value_of(uint64_t number, uint8_t out[VALUE_BYTES_MAX])
{
    uint64_t state = number;
    size_t bytes = 8 + random_below(&state, VALUE_BYTES_MAX - 8) * random_below(&state, 2);
    random_fill(&state, out, bytes);
    memcpy(out, &number, sizeof number);
    return (struct bel_view){out, bytes};
}

static void check_content(const struct content *content)
{
    static const struct bel_key first = {{0, 0, 0}};
    struct bel_store_cursor cursor;
    uint8_t bytes[VALUE_BYTES_MAX];
    unsigned count = 0, want = 0;
    int err;
    for (err = bel__store_seek(store, &first, &cursor); err == 0;
         err = bel__store_next(store, &cursor)) {
        uint64_t i = cursor.key.words[1];
        CHECK(i < KEYS);
        CHECK(content->values[i] != 0);
        struct bel_view value = value_of(content->values[i], bytes);
        CHECK_EQ(cursor.value.bytes, value.bytes);
        CHECK(memcmp(cursor.value.data, value.data, value.bytes) == 0);
        count++;
    }
    CHECK(err == BEL_ENOTFOUND);
    for (unsigned i = 0; i < KEYS; i++) {
        struct bel_key key = key_of(i);
        struct bel_view value;
        want += content->values[i] != 0;
        err = bel__store_get(store, &key, &value);
        CHECK(err == (content->values[i] != 0 ? 0 : BEL_ENOTFOUND));
    }
    CHECK_EQ(count, want);
}

/* Plans the next fault, if this seed has any. */
static void plan_faults(void)
{
    struct disk_plan *plan = disk_plan(disk);
    if (has_crashes && chance(2) == 0) plan->crash_in = 1 + chance(chance(2) == 0 ? 12 : 100);
    if (!has_sync_failures) return;
    if (chance(4) == 0) plan->fail_sync_in = 1 + chance(40);
    if (chance(8) == 0) plan->fail_write_in = 1 + chance(40);
}

/* Ends the process, and perhaps the power, and starts again until it succeeds. */
static void reopen(void)
{
    struct bel_why why;
    bool was_cut = false;
    if (chance(2) == 0) disk_stop(disk); /* or it is closed normally */
    bel__store_close(store);
    store = NULL;
    for (int i = 0;; i++) {
        CHECK(i < 100);
        if (has_power_cuts && chance(2) == 0) {
            disk_cut_power(disk);
            was_cut = true;
        } else {
            disk_kill(disk);
        }
        if (i < 90) plan_faults();
        int err = bel__store_open(&options, &store, &why);
        if (err == 0) break;
        if (err != BEL_EIO) fprintf(stderr, "%s\n", why.text);
        CHECK(err == BEL_EIO);
    }
    CHECK(store->batch >= synced_batch);
    CHECK(store->batch >= answered_batch || was_cut);
    CHECK(store->batch <= last_batch);
    last_batch = synced_batch = answered_batch = store->batch;
    now = contents[last_batch];
    tries_again = chance(2) == 0;
    check_content(&now);
}

static int put(unsigned i, uint64_t number)
{
    struct bel_key key = key_of(i);
    uint8_t bytes[VALUE_BYTES_MAX];
    struct bel_view value = value_of(number, bytes);
    enum bel_row row = now.values[i] == 0 && chance(2) == 0 ? BEL_ROW_NEW : BEL_ROW_ANY;
    int err = bel__store_reserve(store, 1, value.bytes, chance(2) ? BEL_STORE_ADD : BEL_STORE_END);
    if (err) return err;
    bel__store_put(store, &key, value, row);
    now.values[i] = number;
    return 0;
}

static int take_out(unsigned i)
{
    struct bel_key key = key_of(i);
    int err = bel__store_reserve(store, 1, 0, BEL_STORE_END);
    if (err) return err;
    bel__store_delete(store, &key);
    now.values[i] = 0;
    return 0;
}

static void commit(void)
{
    bool has_rows = store->has_rows;
    uint64_t batch = bel__store_commit(store);
    CHECK_EQ(batch, last_batch + has_rows);
    last_batch = batch;
    CHECK(last_batch <= BATCHES_MAX);
    contents[last_batch] = now;
    uint64_t synced = bel__store_synced(store);
    CHECK(synced >= synced_batch && synced <= last_batch);
    CHECK(synced == last_batch || bel__store_is_late(store) || options.is_lazy ||
          bel__store_error(store) == BEL_EIO);
    if (bel__store_is_slow(store)) CHECK(bel__store_begin_late(store) == 0);
    synced_batch = synced;
    answered_batch = bel__store_answerable(store);
    CHECK(answered_batch >= synced && answered_batch <= last_batch);
    if (!options.is_lazy) CHECK_EQ(answered_batch, synced);
    if (options.is_lazy) CHECK(answered_batch == last_batch || bel__store_error(store) == BEL_EIO);
}

static void run_step(uint64_t rows_max)
{
    uint64_t *seed = &seeds[last_batch + 1];
    if (!tries_again || *seed == 0) *seed = chance(UINT64_MAX);
    tries_again = false;
    uint64_t state = *seed;
    for (uint64_t rows = random_below(&state, rows_max + 1); rows > 0; rows--) {
        unsigned i = (unsigned)random_below(&state, KEYS);
        int err = random_below(&state, 3) == 0 ? take_out(i) : put(i, random_u64(&state) | 1);
        if (err == 0) continue;
        CHECK(err == BEL_EFULL || err == BEL_EBUSY || err == BEL_EIO);
        if (err == BEL_EIO) CHECK(bel__store_error(store) == BEL_EIO);
        break;
    }
    if (chance(8) == 0) check_content(&now);
    commit();
    CHECK(bel__store_pressure(store) <= 1000);
    if (chance(8) > work_in_8) return;
    for (uint64_t slices = 1 + chance(3); slices > 0; slices--) {
        (void)bel__store_work(store);
        synced_batch = bel__store_synced(store);
        answered_batch = bel__store_answerable(store);
    }
}

static void make_world(uint64_t seed)
{
    static const uint64_t sizes[] = {8192, 8192, 12288, 16384, 65536};
    random_state = seed;
    disk = disk_create(chance(UINT64_MAX));
    disk_plan(disk)->has_direct = chance(2) == 0;
    has_power_cuts = chance(2) == 0;
    has_sync_failures = chance(2) == 0;
    has_crashes = chance(4) > 0;
    work_in_8 = chance(9);
    CHECK(bel__tree_memory_create_lasting(&lasting) == 0);
    commit_lasting = lasting->commit;
    lasting->commit = commit_tree;
    bel__entropy_seed(&entropy, chance(UINT64_MAX));
    options = (struct bel_store_options){
        .io = disk_io(disk),
        .tree = lasting,
        .entropy = &entropy.entropy,
        .segment_bytes = sizes[chance(sizeof sizes / sizeof sizes[0])],
        .segment_count = (uint32_t)(3 + chance(3)),
        .transaction_rows = 1 + chance(20),
        .sync = chance(2) == 0 ? BEL_SYNC_IN_COMMIT : BEL_SYNC_IN_WORK,
    };
    if (options.sync == BEL_SYNC_IN_COMMIT && chance(2) == 0) {
        options.sync = BEL_SYNC_ADAPTIVE;
        disk_plan(disk)->sync_ns = chance(3) * 4000000; /* 0, 4 or 8 ms */
    }
    options.is_lazy = options.sync == BEL_SYNC_IN_WORK && chance(2) == 0;
    memset(contents, 0, sizeof contents[0]);
    memset(seeds, 0, sizeof seeds);
    now = contents[0];
    last_batch = synced_batch = answered_batch = 0;
}

static void run_case(uint64_t seed)
{
    make_world(seed);
    reopen();
    uint64_t rows_max = 1 + chance(12);
    for (int step = 0; step < STEPS; step++) {
        run_step(rows_max);
        if (disk_is_down(disk) || bel__store_error(store) != 0 || chance(40) == 0) reopen();
    }
    has_crashes = has_sync_failures = false;
    reopen();
    reopen(); /* replaying twice gives the same */
    bel__store_close(store);
    store = NULL;
    bel__tree_memory_destroy(lasting);
    disk_destroy(disk);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
