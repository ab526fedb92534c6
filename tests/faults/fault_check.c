/* SPDX-License-Identifier: MIT */

/*
 * The check of a data directory: which inconsistencies it finds, and which folders it refuses. Rows
 * are changed through the store, so that all checksums are right and only the content is wrong.
 */
#include "scene.h"
#include "victim.h"

#include "../ask.h"
#include "../check.h"
#include "core/crc32c.h"
#include "engine/offline/inspect.h"
#include "engine/offline/subprocess.h"
#include "engine/rows/counts.h"
#include "engine/rows/key.h"
#include "store/state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TURNS = 80,
    ANY_LANE = -1,
};

static char folder[SCENE_PATH_BYTES], copy[SCENE_PATH_BYTES];
static struct book *book;

static void open_victim(struct victim *victim, uint64_t round)
{
    struct victim_options options = {
        .folder = folder, .round = round, .book = book, .has_no_thread = true};
    CHECK(victim_open(victim, &options) == 0);
}

static int check(struct bel_engine_why *why)
{
    struct bel_engine_report report;
    return bel_engine_check(folder, &report, why);
}

/* --- inconsistent rows --- */

/* Finds the first row of a table, or of a lane of it. */
static struct bel_key first_of(struct bel_store *store, enum bel_table table, int lane,
                               uint8_t value[BEL_STORE_VALUE_BYTES_MAX], size_t *out_bytes)
{
    struct bel_key from = bel__key_of(&(struct bel_place){.table = table});
    struct bel_store_cursor cursor;
    int err = bel__store_seek(store, &from, &cursor);
    while (err == 0 && lane != ANY_LANE && bel__place_of(&cursor.key).lane != lane) {
        err = bel__store_next(store, &cursor);
    }
    CHECK(err == 0 && bel__place_of(&cursor.key).table == table);
    if (cursor.value.bytes > 0) memcpy(value, cursor.value.data, cursor.value.bytes);
    *out_bytes = cursor.value.bytes;
    return cursor.key;
}

enum harm {
    REMOVE,
    CUT,    /* the last byte is missing */
    CHANGE, /* the last byte is changed */
};

/* Damages a row, and expects the check to report it. */
static void harm(enum bel_table table, int lane, enum harm how, const char *want)
{
    struct bel_store_options options = {.path = copy};
    struct bel_store *store;
    struct bel_engine_report report;
    struct bel_engine_why why;
    uint8_t value[BEL_STORE_VALUE_BYTES_MAX];
    size_t bytes;
    scene_copy(folder, copy);
    CHECK(bel__store_open(&options, &store, NULL) == 0);
    struct bel_key key = first_of(store, table, lane, value, &bytes);
    CHECK(bel__store_reserve(store, 1, sizeof value, BEL_STORE_END) == 0);
    if (how == REMOVE) {
        bel__store_delete(store, &key);
    } else {
        CHECK(bytes > 0);
        if (how == CHANGE) value[bytes - 1] ^= 1;
        struct bel_view changed = {value, how == CUT ? bytes - 1 : bytes};
        bel__store_put(store, &key, changed, BEL_ROW_ANY);
    }
    (void)bel__store_commit(store);
    bel__store_close(store);
    int err = bel_engine_check(copy, &report, &why);
    CHECK_NOTE("table %d, harm %d: %.200s", table, how, why.text);
    CHECK(err == BEL_ECORRUPT);
    CHECK(strstr(why.text, want) != NULL);
}

static void rows_that_do_not_fit_are_named(void)
{
    harm(BEL_TABLE_ALIASES, ANY_LANE, REMOVE, "its id has no alias");
    harm(BEL_TABLE_ALIASES, ANY_LANE, CUT, "it");
    harm(BEL_TABLE_ALIASES, ANY_LANE, CHANGE, "the alias of its id names another row");
    harm(BEL_TABLE_TIMERS, BEL_LANE_ENGINE, REMOVE, "rows cannot be read");
    harm(BEL_TABLE_TIMERS, BEL_LANE_WALL, CUT, "row ");
    harm(BEL_TABLE_LEASES, ANY_LANE, CUT, "rows cannot be read");
    harm(BEL_TABLE_CHUNKS, ANY_LANE, REMOVE, "a chunk of its blob is missing");
    harm(BEL_TABLE_CHUNKS, ANY_LANE, CUT, "a chunk of its blob has a wrong length");
    harm(BEL_TABLE_PLANS, ANY_LANE, REMOVE, "its plan is missing");
    harm(BEL_TABLE_PLAN_STATES, ANY_LANE, REMOVE, "its plan is missing");
    harm(BEL_TABLE_OCCURRENCES, ANY_LANE, REMOVE, "rows of occurrences, but");
    harm(BEL_TABLE_OCCURRENCES, ANY_LANE, CHANGE, "its timer is missing");
    harm(BEL_TABLE_META, ANY_LANE, CUT, "rows cannot be read");
}

static void counts_that_are_wrong_are_named(void)
{
    harm(BEL_TABLE_COUNTS, BEL_COUNT_HOURS, REMOVE, "its numbers do not match the timers");
    harm(BEL_TABLE_COUNTS, BEL_COUNT_HOURS, CHANGE, "its numbers do not match the timers");
    harm(BEL_TABLE_COUNTS, BEL_COUNT_GROUP, CHANGE, "count");
    harm(BEL_TABLE_COUNTS, BEL_COUNT_TOPIC, REMOVE, "topic");
    harm(BEL_TABLE_COUNTS, BEL_COUNT_TOPIC, CHANGE, "topic");
}

/* --- the folder --- */

static void a_folder_that_is_in_use_or_missing_is_refused(void)
{
    struct victim victim;
    struct bel_engine_why why;
    open_victim(&victim, 2);
    CHECK(check(&why) == BEL_EBUSY);
    CHECK(strstr(why.text, "in use") != NULL);
    struct bel_engine *second;
    CHECK(bel_engine_open(&(struct bel_engine_options){.folder = folder}, &second, &why) ==
          BEL_EBUSY);
    victim_close(&victim);
    CHECK(check(&why) == 0);
    scene_clear(copy);
    struct bel_engine_report report;
    CHECK(bel_engine_check(copy, &report, &why) == BEL_ENOTFOUND);
    CHECK(bel_engine_check(copy, &report, NULL) == BEL_ENOTFOUND);
}

static void a_newer_format_is_refused_as_that(void)
{
    struct bel_superblock superblock;
    struct bel_engine_report report;
    struct bel_engine_why why;
    uint32_t format;
    size_t bytes;
    scene_copy(folder, copy);
    uint8_t *data = scene_read(copy, "superblock", &bytes);
    CHECK(data != NULL && bel__superblock_read(data, &superblock, &format) == 0);
    data[8]++; /* the format number; the checksum follows */
    uint32_t checksum = bel__crc32c(0, data, 60);
    memcpy(data + 60, &checksum, sizeof checksum);
    scene_write(copy, "superblock", data, bytes);
    CHECK(bel_engine_check(copy, &report, &why) == BEL_EUNSUPPORTED);
    CHECK(strstr(why.text, "format 5") != NULL);
    struct bel_engine *engine;
    CHECK(bel_engine_open(&(struct bel_engine_options){.folder = copy}, &engine, &why) ==
          BEL_EUNSUPPORTED);
    free(data);
}

/* A check changes nothing in the folder, not even the tail of the log, which recovery rewrites. */
static void a_check_changes_nothing(void)
{
    static const char *const names[] = {"superblock", "log-0", "log-1", "log-2", "tree/data.mdb"};
    struct bel_engine_why why;
    scene_copy(folder, copy);
    CHECK(check(&why) == 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes, copy_bytes;
        uint8_t *data = scene_read(folder, names[i], &bytes);
        uint8_t *copied = scene_read(copy, names[i], &copy_bytes);
        CHECK(data != NULL && copied != NULL && bytes == copy_bytes);
        CHECK(memcmp(data, copied, bytes) == 0);
        free(data);
        free(copied);
    }
}

static void it_reports_what_there_is(const struct bel_engine_report *report)
{
    CHECK_EQ(report->topics, BOOK_TOPICS);
    CHECK_EQ(report->plans, 1);
    CHECK(report->timers > 20 && report->leases > 0);
    CHECK(report->rows > report->timers + report->leases);
}

/* --- the dump --- */

struct seen {
    uint64_t lines, timers, lines_max;
    uint32_t number; /* number of the timer to find */
    bool is_there;
};

static bool has(struct bel_view line, const char *text)
{
    return line.data != NULL && memmem(line.data, line.bytes, text, strlen(text)) != NULL;
}

static int see(void *context, struct bel_view line)
{
    struct seen *seen = context;
    char text[BOOK_TEXT_BYTES], want[64];
    (void)book_id(seen->number, text);
    (void)snprintf(want, sizeof want, "\"id\":\"%s\",", text);
    const char *data = line.data;
    CHECK(data != NULL && line.bytes > 2 && strncmp(data, "{\"table\":\"", 10) == 0);
    CHECK(data[line.bytes - 2] == '}' && data[line.bytes - 1] == '\n');
    seen->lines++;
    seen->timers += has(line, "\"table\":\"timers\"");
    seen->is_there |= has(line, want);
    return seen->lines == seen->lines_max ? BEL_EFULL : 0;
}

static void a_dump_has_a_line_for_each_row(void)
{
    struct bel_engine_report report;
    struct bel_engine_why why;
    struct seen seen = {0};
    CHECK(bel_engine_check(folder, &report, &why) == 0);
    while (!book->entries[seen.number].is_there) {
        seen.number++;
    }
    int err = bel_engine_dump(folder, see, &seen, &why);
    CHECK_NOTE("%.200s", why.text);
    CHECK(err == 0);
    CHECK_EQ(seen.lines, report.rows);
    CHECK_EQ(seen.timers, report.timers + report.plans); /* a plan has a timer, too */
    CHECK(seen.is_there);
    seen = (struct seen){.lines_max = 7};
    CHECK(bel_engine_dump(folder, see, &seen, &why) == BEL_EFULL);
    CHECK_EQ(seen.lines, 7);
    scene_clear(copy);
    CHECK(bel_engine_dump(copy, see, &seen, NULL) == BEL_ENOTFOUND);
}

/* Adds a plan with OVERLAP queue, whose occurrences are blocked. */
static void add_plan(struct victim *victim)
{
    struct bel_request request = {
        .command = {.verb = BEL_VERB_SCHEDULE,
                    .schedule = {.topic = BEL_VIEW("mail"),
                                 .id = BEL_VIEW("plan"),
                                 .plan = {.kind = BEL_PLAN_EVERY,
                                          .rule = BEL_VIEW("100ms"),
                                          .overlap = BEL_OVERLAP_QUEUE}}}};
    struct reply_seen answer;
    ask_submit(victim->backend, &request, &answer);
    for (int i = 0; i < 4; i++) {
        (void)bel_backend_turn(victim->backend, victim->now);
        victim->now.wall.ms += 100;
        victim->now.boot.ns += UINT64_C(100000000);
    }
    CHECK(answer.is_done && answer.err == 0);
}

/* Data that was not closed is checked before it is opened, unless it has too many rows. */
static void what_was_left_open_is_checked(void)
{
    enum {
        MANY = 1000000
    };
    char mark[SCENE_PATH_BYTES + 8];
    struct bel_engine_report report;
    CHECK(bel_engine_check_if_left(folder, MANY, &report, NULL) == 0);
    CHECK(report.rows == 0); /* closed: not checked */
    scene_copy(folder, copy);
    (void)snprintf(mark, sizeof mark, "%s/OPEN", copy);
    FILE *file = fopen(mark, "w");
    CHECK(file != NULL && fclose(file) == 0);
    CHECK(bel_engine_check_if_left(copy, MANY, &report, NULL) == 0);
    CHECK(report.rows > 0);
    CHECK(bel_engine_check_if_left(copy, report.tree_rows, &report, NULL) == 0);
    CHECK(report.rows > 0);
    CHECK(report.tree_rows == 0 ||
          (bel_engine_check_if_left(copy, report.tree_rows - 1, &report, NULL) == 0 &&
           report.rows == 0));
    CHECK(bel_engine_check_if_left("/nonexistent", MANY, &report, NULL) == 0);
    CHECK(report.rows == 0);

    struct bel_store_options options = {.path = copy};
    struct bel_store *store;
    uint8_t value[BEL_STORE_VALUE_BYTES_MAX];
    size_t bytes;
    CHECK(bel__store_open(&options, &store, NULL) == 0);
    struct bel_key key = first_of(store, BEL_TABLE_TIMERS, ANY_LANE, value, &bytes);
    CHECK(bel__store_reserve(store, 1, 0, BEL_STORE_END) == 0);
    bel__store_delete(store, &key);
    (void)bel__store_commit(store);
    CHECK(access(mark, F_OK) == 0);
    bel__store_close(store);
    CHECK(access(mark, F_OK) != 0);
    CHECK(bel_engine_check_if_left(copy, MANY, &report, NULL) == 0); /* closed: not checked */
    file = fopen(mark, "w");
    CHECK(file != NULL && fclose(file) == 0);
    CHECK(bel_engine_check_if_left(copy, MANY, &report, NULL) == BEL_ECORRUPT);
}

/* Flips one bit of the tree's last page that is a leaf. */
static void flip_leaf(const char *where)
{
    enum {
        PAGE = 4096,
        FLAGS = 10,
        LEAF = 2
    };
    size_t bytes, at = 0;
    uint8_t *data = scene_read(where, "tree/data.mdb", &bytes);
    CHECK(data != NULL);
    for (size_t page = (size_t)2 * PAGE; page + PAGE <= bytes; page += PAGE) {
        if (data[page + FLAGS] == LEAF) at = page;
    }
    CHECK(at > 0);
    data[at + PAGE - 5] ^= 1;
    scene_write(where, "tree/data.mdb", data, bytes);
    free(data);
}

/* A start checks data that was closed cleanly, too, and as much as fits into its time. */
static void a_start_checks_what_fits_into_its_time(void)
{
    enum {
        LONG = 60000
    };
    struct bel_engine_checked checked;
    struct bel_why why = {0};
    CHECK(bel__engine_check_for(folder, LONG, &checked, &why) == 0);
    CHECK(checked.is_tree_checked && checked.is_done && checked.report.rows > 0);
    CHECK(bel__engine_check_for(folder, 0, &checked, &why) == 0);
    CHECK(!checked.is_tree_checked && !checked.is_done);
    CHECK(bel__engine_check_for("/nonexistent", LONG, &checked, &why) == 0);
    CHECK(!checked.is_done);
    scene_copy(folder, copy);
    flip_leaf(copy);
    CHECK(bel__engine_check_for(copy, LONG, &checked, &why) == BEL_ECORRUPT);
    CHECK(strstr(why.text, "tree/data.mdb is damaged: page ") != NULL);
}

static int send_and_hang(void *context, struct bel_subprocess *process, struct bel_why *why)
{
    (void)context;
    (void)why;
    int err = bel__subprocess_send(process, (struct bel_view){"", 0});
    for (;;) {
        if (err) return err;
        (void)pause();
    }
}

static int count_piece(void *context, struct bel_view piece)
{
    *(unsigned *)context += 1;
    CHECK_EQ(piece.bytes, 0);
    return 0;
}

static int ignore_piece(void *context, struct bel_view piece)
{
    (void)context;
    (void)piece;
    return 0;
}

static void a_subprocess_that_takes_too_long_is_killed(void)
{
    unsigned pieces = 0;
    struct bel_subprocess_task task = {
        .run = send_and_hang, .receive = count_piece, .context = &pieces, .ms_max = 50};
    CHECK(bel__subprocess_run(&task, NULL) == BEL_EBUSY);
    CHECK(task.is_late);
    CHECK(pieces <= 1);
}

/* Tells the test that the subprocess runs, by a pipe that it keeps open. */
static int write_and_hang(void *context, struct bel_subprocess *process, struct bel_why *why)
{
    if (write(*(int *)context, "x", 1) != 1) return BEL_EIO;
    return send_and_hang(NULL, process, why);
}

static void a_subprocess_ends_with_its_parent(void)
{
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    pid_t parent = fork();
    CHECK(parent >= 0);
    if (parent == 0) {
        struct bel_subprocess_task task = {
            .run = write_and_hang, .receive = ignore_piece, .context = &ends[1]};
        (void)close(ends[0]);
        _exit(bel__subprocess_run(&task, NULL) == 0);
    }
    CHECK(close(ends[1]) == 0);
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(kill(parent, SIGKILL) == 0);
    CHECK(waitpid(parent, NULL, 0) == parent);
    (void)alarm(60);
    CHECK(read(ends[0], &byte, 1) == 0); /* both processes have closed it */
    (void)alarm(0);
    CHECK(close(ends[0]) == 0);
}

int main(void)
{
    struct victim victim;
    struct bel_engine_report report;
    struct bel_engine_why why;
    book = book_create(false);
    scene_make(folder);
    scene_make(copy);
    open_victim(&victim, 0);
    victim_work(&victim, 1, TURNS);
    add_plan(&victim);
    victim_close(&victim);
    int err = bel_engine_check(folder, &report, &why);
    CHECK_NOTE("%.200s", why.text);
    CHECK(err == 0);
    it_reports_what_there_is(&report);
    printf("ok   it_reports_what_there_is\n");
    RUN(rows_that_do_not_fit_are_named);
    RUN(counts_that_are_wrong_are_named);
    RUN(a_check_changes_nothing);
    RUN(a_dump_has_a_line_for_each_row);
    RUN(a_folder_that_is_in_use_or_missing_is_refused);
    RUN(a_newer_format_is_refused_as_that);
    RUN(what_was_left_open_is_checked);
    RUN(a_start_checks_what_fits_into_its_time);
    RUN(a_subprocess_that_takes_too_long_is_killed);
    RUN(a_subprocess_ends_with_its_parent);
    scene_remove(folder);
    scene_remove(copy);
    book_destroy(book);
    return 0;
}
