/* SPDX-License-Identifier: MIT */

/*
 * Merge sort is stable: rows with equal keys keep the order of the log, so the last of them wins.
 * It is also fast on rows that are already sorted, such as those of timers scheduled in due order.
 */
#include "store/replay.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_ROWS = 1024,
    RUN_ROWS = 16, /* sorted by insertion */
};

void bel__replay_init(struct bel_replay *replay, struct bel_delta *delta)
{
    *replay = (struct bel_replay){.delta = delta};
}

void bel__replay_finish(struct bel_replay *replay)
{
    free(replay->rows);
    bel__replay_init(replay, replay->delta);
}

static int grow(struct bel_replay *replay)
{
    assert(replay->count <= replay->capacity);
    if (replay->count < replay->capacity) return 0;
    size_t capacity = replay->capacity == 0 ? FIRST_ROWS : 2 * replay->capacity;
    if (capacity > SIZE_MAX / 4 / sizeof replay->rows[0]) return BEL_ENOMEM;
    struct bel_replay_row *rows = realloc(replay->rows, capacity * sizeof rows[0]);
    if (rows == NULL) return BEL_ENOMEM;
    replay->rows = rows;
    replay->capacity = capacity;
    return 0;
}

/* Replayed rows are never marked new. A row that was put and deleted in the log may be in the tree,
 * if a checkpoint was interrupted in between, and has to be deleted there. */
int bel__replay_add(struct bel_replay *replay, const struct bel_frame_row *row)
{
    int err = grow(replay);
    if (err) return err;
    err = bel__delta_reserve(replay->delta, 1, row->value.bytes);
    if (err) return err;
    replay->rows[replay->count++] = (struct bel_replay_row){
        .key = row->key,
        .entry = bel__delta_make(replay->delta, row->value, row->is_gone ? BEL_DELTA_GONE : 0)};
    return 0;
}

/* --- sorting --- */

static void insert_each(struct bel_replay_row *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct bel_replay_row row = rows[i];
        size_t at = i;
        while (at > 0 && bel__key_compare(&rows[at - 1].key, &row.key) > 0) {
            rows[at] = rows[at - 1];
            at--;
        }
        rows[at] = row;
    }
}

/* Merges two adjacent sorted runs, of `first` and `count - first` rows. Copies the first aside. */
static void merge(struct bel_replay_row *rows, size_t first, size_t count,
                  struct bel_replay_row *aside)
{
    size_t left = 0, right = first, at = 0;
    if (bel__key_compare(&rows[first - 1].key, &rows[first].key) <= 0) return;
    memcpy(aside, rows, first * sizeof rows[0]);
    while (left < first && right < count) {
        bool is_right = bel__key_compare(&rows[right].key, &aside[left].key) < 0;
        rows[at++] = is_right ? rows[right++] : aside[left++];
    }
    memcpy(rows + at, aside + left, (first - left) * sizeof rows[0]);
}

static int sort(struct bel_replay_row *rows, size_t count)
{
    struct bel_replay_row *aside = malloc((count + 1) * sizeof aside[0]);
    if (aside == NULL) return BEL_ENOMEM;
    for (size_t at = 0; at < count; at += RUN_ROWS) {
        insert_each(rows + at, count - at < RUN_ROWS ? count - at : RUN_ROWS);
    }
    for (size_t run = RUN_ROWS; run < count; run *= 2) {
        for (size_t at = 0; count - at > run; at += 2 * run) {
            size_t both = count - at < 2 * run ? count - at : 2 * run;
            merge(rows + at, run, both, aside);
            if (both < 2 * run) break;
        }
    }
    free(aside);
    return 0;
}

int bel__replay_end(struct bel_replay *replay)
{
    const struct bel_replay_row *rows = replay->rows;
    int err = sort(replay->rows, replay->count);
    for (size_t i = 0; i < replay->count && err == 0; i++) {
        bool is_last = i + 1 == replay->count || bel__key_compare(&rows[i].key, &rows[i + 1].key);
        if (!is_last) continue;
        err = bel__delta_reserve(replay->delta, 1, 0);
        if (err == 0) bel__delta_place(replay->delta, &rows[i].key, rows[i].entry);
    }
    return err;
}
