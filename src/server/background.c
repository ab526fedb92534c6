/* SPDX-License-Identifier: MIT */

/* A task is the backup, or an entry of the list of clock advances. */
#include "server/background.h"

#include "core/units.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    BACKUP_POLL_MS = 10,
    SETTLE_POLL_MS = 1,
};

void bel__background_init(struct bel_background *background, struct bel_server_store *store,
                          struct bel_loop *loop, const struct bel_server_clock *clock,
                          const struct bel_logger *log)
{
    *background = (struct bel_background){.store = store, .loop = loop, .clock = clock, .log = log};
    bel__list_init(&background->advances);
}

/* --- BACKUP --- */

static void report_failure(const struct bel_background *background, const char *folder, int err,
                           const char *why)
{
    BEL_LOG(background->log, BEL_LOG_WARN, "backup failed", BEL_LOG_TEXT("folder", folder),
            BEL_LOG_TEXT("error", bel_error_text(err)), BEL_LOG_TEXT("why", why));
}

/* Copies the path, as far as there is room, and begins the backup. */
static int begin_backup(struct bel_background *background, struct bel_view path,
                        char folder[BEL_BACKGROUND_PATH_BYTES], struct bel_why *why)
{
    struct bel_server_store *store = background->store;
    size_t room = BEL_BACKGROUND_PATH_BYTES - 1;
    size_t bytes = path.bytes < room ? path.bytes : room;
    if (bytes > 0) memcpy(folder, path.data, bytes);
    folder[bytes] = 0;
    if (bytes == 0 || bytes < path.bytes || strlen(folder) < bytes) {
        return bel__why_say(why, BEL_EINVAL, "expected a path");
    }
    return store->functions->begin_backup(store, folder, why);
}

int bel__background_backup(struct bel_background *background, struct bel_view path,
                           struct bel_background_task *task, struct bel_why *why)
{
    char folder[BEL_BACKGROUND_PATH_BYTES];
    int err = begin_backup(background, path, folder, why);
    if (err) {
        report_failure(background, folder, err, why->text);
        return err;
    }
    assert(background->backup == NULL);
    background->backup = task;
    background->backup_begun = bel_clock_mono(background->clock->system);
    memcpy(background->backup_folder, folder, path.bytes + 1);
    BEL_LOG(background->log, BEL_LOG_INFO, "backup started", BEL_LOG_TEXT("folder", folder));
    bel__loop_begin_chore(background->loop);
    return BEL_BACKGROUND_LATER;
}

static void run_backup(struct bel_background *background)
{
    struct bel_background_task *task = background->backup;
    struct bel_server_store *store = background->store;
    struct bel_why why = {0};
    assert(task != NULL);
    int err = store->functions->poll_backup(store, background->backup_folder, &why);
    if (err == BEL_EBUSY) return;
    uint64_t ns = bel_clock_mono(background->clock->system).ns - background->backup_begun.ns;
    background->backup = NULL;
    if (err) {
        report_failure(background, background->backup_folder, err, why.text);
    } else {
        BEL_LOG(background->log, BEL_LOG_INFO, "backup done", BEL_LOG_NUMBER("ms", ns / NS_PER_MS));
    }
    task->done(task, err, why.text);
}

/* --- CLOCK --- */

static struct bel_background_task *task_of(struct bel_link *link)
{
    return link == NULL ? NULL : BEL_CONTAINER_OF(link, struct bel_background_task, link);
}

int bel__background_advance(struct bel_background *background, const struct bel_clock_move *move,
                            struct bel_background_task *task)
{
    struct bel_wall start = background->clock->now.wall; /* the time when this task will start */
    if (!bel__list_is_empty(&background->advances)) {
        struct bel_link *last = background->advances.head.prev;
        start = BEL_CONTAINER_OF(last, struct bel_background_task, link)->to;
    }
    assert(task->done != NULL && !bel__link_is_linked(&task->link));
    task->to = move->to;
    if (!move->is_set && bel_wall_add(start, move->by_ms, &task->to) != 0) return BEL_EINVAL;
    if (task->to.ms < start.ms) return BEL_EINVAL;
    if (bel__list_is_empty(&background->advances)) background->advance_turns = 0;
    bel__list_append(&background->advances, &task->link);
    bel__loop_begin_chore(background->loop);
    return BEL_BACKGROUND_LATER;
}

static void run_advance(struct bel_background *background, struct bel_background_task *task)
{
    uint64_t left = BEL_SERVER_CLOCK_TURNS_MAX - background->advance_turns;
    uint64_t turns = left;
    int err = bel__loop_advance(background->loop, task->to, &turns);
    background->advance_turns += turns;
    if (err == BEL_EBUSY && turns < left) return;
    if (err == BEL_EBUSY) err = BEL_EFULL;
    background->advance_turns = 0;
    bel__link_remove(&task->link);
    task->done(task, err,
               err == BEL_EFULL ? "too many timers are due: advance in smaller steps" : "");
}

/* --- both --- */

uint64_t bel__background_run(struct bel_background *background)
{
    struct bel_background_task *advance = task_of(bel__list_first(&background->advances));
    if (advance != NULL) run_advance(background, advance);
    if (background->backup != NULL) run_backup(background);
    if (!bel__list_is_empty(&background->advances)) {
        return background->clock->is_waiting ? SETTLE_POLL_MS : 0;
    }
    return background->backup != NULL ? BACKUP_POLL_MS : UINT64_MAX;
}

void bel__background_end(struct bel_background *background)
{
    struct bel_background_task *task;
    while ((task = task_of(bel__list_take_first(&background->advances))) != NULL) {
        task->done(task, BEL_ECLOSED, "the server is stopping");
    }
    task = background->backup;
    background->backup = NULL;
    if (task != NULL) task->done(task, BEL_ECLOSED, "the server is stopping");
}
