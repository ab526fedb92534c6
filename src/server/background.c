/* SPDX-License-Identifier: MIT */

/* An errand is in the list of those that move the clock, or is the backup. */
#include "server/background.h"

#include "core/units.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    BACKUP_POLL_MS = 10,
};

void bel__errands_init(struct bel_errands *errands, struct bel_engine *engine,
                       struct bel_loop *loop, const struct bel_moment *moment,
                       const struct bel_log *log)
{
    *errands = (struct bel_errands){.engine = engine, .loop = loop, .moment = moment, .log = log};
    bel__list_init(&errands->advances);
}

/* --- BACKUP --- */

int bel__errands_backup(struct bel_errands *errands, struct bel_view path,
                        struct bel_errand *errand, char why[160])
{
    char folder[BEL_ERRANDS_PATH_BYTES];
    struct bel_engine_why found = {{0}};
    if (path.bytes == 0 || path.bytes >= sizeof folder || memchr(path.data, 0, path.bytes)) {
        (void)snprintf(why, 160, "expected a path");
        return BEL_EINVAL;
    }
    memcpy(folder, path.data, path.bytes);
    folder[path.bytes] = 0;
    int err = bel_engine_backup_begin(errands->engine, folder, &found);
    if (err) {
        (void)snprintf(why, 160, "%.150s", found.text[0] != 0 ? found.text : bel_error_text(err));
        return err;
    }
    assert(errands->backup == NULL);
    errands->backup = errand;
    errands->backup_begun = bel_clock_mono(errands->moment->clock);
    memcpy(errands->backup_folder, folder, path.bytes + 1);
    BEL_LOG(errands->log, BEL_LOG_INFO, "backing up", BEL_LOG_TEXT("folder", folder));
    bel__loop_begin_chore(errands->loop);
    return BEL_ERRAND_LATER;
}

static void run_backup(struct bel_errands *errands)
{
    struct bel_errand *errand = errands->backup;
    struct bel_engine_why why = {{0}};
    int err = bel_engine_backup_poll(errands->engine, &why);
    if (err == BEL_EBUSY) return;
    if (err == 0) {
        err = bel__moment_copy(errands->moment, errands->backup_folder);
        if (err) (void)snprintf(why.text, sizeof why.text, "virtual-clock cannot be written");
    }
    uint64_t ns = bel_clock_mono(errands->moment->clock).ns - errands->backup_begun.ns;
    errands->backup = NULL;
    if (err) {
        BEL_LOG(errands->log, BEL_LOG_WARN, "the backup has failed",
                BEL_LOG_TEXT("error", bel_error_text(err)), BEL_LOG_TEXT("why", why.text));
    } else {
        BEL_LOG(errands->log, BEL_LOG_INFO, "backed up", BEL_LOG_NUMBER("ms", ns / NS_PER_MS));
    }
    errand->done(errand, err, why.text);
}

/* --- CLOCK --- */

static struct bel_errand *errand_of(struct bel_link *link)
{
    return link == NULL ? NULL : BEL_CONTAINER_OF(link, struct bel_errand, link);
}

int bel__errands_advance(struct bel_errands *errands, const struct bel_clock_move *move,
                         struct bel_errand *errand)
{
    struct bel_wall start = errands->moment->now.wall; /* where it will be then */
    if (!bel__list_is_empty(&errands->advances)) {
        struct bel_link *last = errands->advances.head.prev;
        start = BEL_CONTAINER_OF(last, struct bel_errand, link)->to;
    }
    errand->to = move->to;
    if (!move->is_set && bel_wall_add(start, move->by_ms, &errand->to) != 0) return BEL_EINVAL;
    if (errand->to.ms < start.ms) return BEL_EINVAL;
    if (bel__list_is_empty(&errands->advances)) errands->advance_turns = 0;
    bel__list_append(&errands->advances, &errand->link);
    bel__loop_begin_chore(errands->loop);
    return BEL_ERRAND_LATER;
}

static void run_advance(struct bel_errands *errands, struct bel_errand *errand)
{
    uint64_t left = BEL_MOMENT_TURNS_MAX - errands->advance_turns;
    uint64_t turns = left;
    int err = bel__loop_advance(errands->loop, errand->to, &turns);
    errands->advance_turns += turns;
    if (err == BEL_EBUSY && turns < left) return;
    if (err == BEL_EBUSY) err = BEL_EFULL;
    errands->advance_turns = 0;
    bel__link_remove(&errand->link);
    errand->done(errand, err, err == BEL_EFULL ? "too much is due on the way: go in steps" : "");
}

/* --- all of them --- */

uint64_t bel__errands_run(struct bel_errands *errands)
{
    struct bel_errand *advance = errand_of(bel__list_first(&errands->advances));
    if (advance != NULL) run_advance(errands, advance);
    if (errands->backup != NULL) run_backup(errands);
    if (!bel__list_is_empty(&errands->advances)) return 0;
    return errands->backup != NULL ? BACKUP_POLL_MS : UINT64_MAX;
}

void bel__errands_end(struct bel_errands *errands)
{
    struct bel_errand *errand;
    while ((errand = errand_of(bel__list_take_first(&errands->advances))) != NULL) {
        errand->done(errand, BEL_ECLOSED, "the server stops");
    }
    errand = errands->backup;
    errands->backup = NULL;
    if (errand != NULL) errand->done(errand, BEL_ECLOSED, "the server stops");
}
