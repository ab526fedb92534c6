/* SPDX-License-Identifier: MIT */

/*
 * LIST and PURGE in topics of the layout faststream. A cursor is the place of the last timer of the
 * page, its score as text, a space and its id, in base64.
 */
#include "redis/faststream.h"

#include "core/base64.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT_DEFAULT = 100,
    PAGE_BYTES = 1 << 20, /* after which a page ends */
    SCORE_MAX = 32,
    SLICE = 500,
};

/* --- LIST --- */

struct place {
    struct bel_view score, id;
};

/* Reads a cursor into memory of the arena. */
static bool parse_cursor(struct bel_operation *operation, struct bel_view text, struct place *out)
{
    size_t count;
    *out = (struct place){{NULL, 0}, {NULL, 0}};
    if (text.bytes == 0) return true;
    char *bytes = text.bytes % 4 == 0 ? bel__arena_take(&operation->arena, text.bytes) : NULL;
    if (bytes == NULL || !bel__base64_decode(text, bytes, &count)) return false;
    const char *space = memchr(bytes, ' ', count < SCORE_MAX ? count : SCORE_MAX);
    if (space == NULL || space == bytes) return false;
    out->score = (struct bel_view){bytes, (size_t)(space - bytes)};
    if (strspn(bytes, "0123456789.e+-") != out->score.bytes) return false;
    out->id = (struct bel_view){space + 1, count - out->score.bytes - 1};
    return true;
}

static int prepare_list(struct bel_operation *operation)
{
    const struct bel_list_query *command = &operation->command.list;
    struct place place;
    int err = bel__operation_name(operation, command->topic);
    if (err) return err;
    if (command->count > BEL_LIST_COUNT_MAX) {
        return bel__operation_refuse(operation, BEL_EINVAL, "count too large: at most %d",
                                     BEL_LIST_COUNT_MAX);
    }
    if (command->has_state && (unsigned)command->state >= BEL_STATES) {
        return bel__operation_refuse(operation, BEL_EINVAL, "unknown state");
    }
    if (!parse_cursor(operation, command->cursor, &place)) {
        return bel__operation_refuse(operation, BEL_EINVAL, "invalid cursor");
    }
    return 0;
}

/* Sets the cursor of the reply from {score, id}. */
static int print_cursor(struct bel_operation *operation, const struct bel_value *last)
{
    if (last->type != BEL_VALUE_LIST) return 0;
    if (last->count != 2 || last->items[0].type != BEL_VALUE_TEXT) return BEL_EIO;
    struct bel_view score = last->items[0].text, id = last->items[1].text;
    char *place = bel__arena_take(&operation->arena, score.bytes + 1 + id.bytes);
    if (place == NULL) return BEL_ENOMEM;
    memcpy(place, score.data, score.bytes);
    place[score.bytes] = ' ';
    if (id.bytes > 0) memcpy(place + score.bytes + 1, id.data, id.bytes);
    char *text = bel__base64_encode((struct bel_view){place, score.bytes + 1 + id.bytes});
    if (text == NULL) return BEL_ENOMEM;
    struct bel_view copy =
        bel__arena_copy(&operation->arena, (struct bel_view){text, strlen(text)});
    free(text);
    operation->reply.timers.cursor = copy;
    return copy.data == NULL ? BEL_ENOMEM : 0;
}

static void listed(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (bel__operation_is_refused(operation, results)) return;
    int err = results->count == 2 && results->items[0].type == BEL_VALUE_LIST ? 0 : BEL_EIO;
    if (err == 0) {
        const struct bel_value *page = &results->items[0];
        err = bel__faststream_timers(operation, page->items, page->count);
    }
    if (err == 0) err = print_cursor(operation, &results->items[1]);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    bel__operation_answer(operation);
}

static void add_bound(struct bel_batch *batch, bool has_bound, struct bel_wall bound)
{
    if (has_bound) {
        bel__batch_number(batch, bound.ms);
    } else {
        bel__batch_word(batch, "");
    }
}

/* Returns the word of scripts for a state; NULL: no timer of such a topic is ever in it. */
static const char *word_of(enum bel_state state)
{
    if (state == BEL_SCHEDULED) return "s";
    return state == BEL_READY ? "r" : NULL;
}

static void begin_list(struct bel_operation *operation)
{
    const struct bel_list_query *command = &operation->command.list;
    const char *word = command->has_state ? word_of(command->state) : "";
    struct place place;
    if (word == NULL) {
        bel__operation_answer(operation);
        return;
    }
    bool is_valid = parse_cursor(operation, command->cursor, &place);
    assert(is_valid);
    (void)is_valid;
    struct bel_batch *batch =
        bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_LIST, 0, listed);
    if (batch == NULL) return;
    bel__batch_text(batch, place.score);
    bel__batch_text(batch, place.id);
    bel__batch_number(batch, command->count > 0 ? command->count : COUNT_DEFAULT);
    bel__batch_word(batch, word);
    add_bound(batch, command->has_from, command->from);
    add_bound(batch, command->has_to, command->to);
    bel__batch_number(batch, PAGE_BYTES);
}

const struct bel_redis_verb bel__faststream_list = {prepare_list, begin_list};

/* --- PURGE and REVIVE --- */

static int prepare_purge(struct bel_operation *operation)
{
    const struct bel_purge *command = &operation->command.purge;
    int err = bel__operation_name(operation, command->topic);
    bool is_wrong = (unsigned)command->state >= BEL_STATES || command->state == BEL_LEASED ||
                    command->state == BEL_BLOCKED;
    if (err || !command->has_state || !is_wrong) return err;
    return bel__operation_refuse(operation, BEL_EINVAL,
                                 "timers of this state cannot be purged: cancel them");
}

static void send_slice(struct bel_operation *operation);

static void sliced(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    if (results->err || results->count != 2) {
        int err = results->err ? results->err : BEL_EIO;
        bel__operation_note(operation, err, results->why);
        bel__operation_stop(operation, err, operation->slices.count, "changed");
        return;
    }
    operation->slices.count += (uint64_t)results->items[0].number;
    operation->slices.until_ms = results->items[1].number;
    if (results->items[0].number == SLICE) {
        send_slice(operation);
        return;
    }
    operation->reply.count = operation->slices.count;
    bel__operation_answer(operation);
}

static void send_slice(struct bel_operation *operation)
{
    struct bel_batch *batch =
        bel__faststream_item(operation, BEL_SCRIPT_FASTSTREAM_PURGE, 0, sliced);
    if (batch == NULL) return;
    bel__batch_word(batch, word_of(operation->command.purge.state));
    if (operation->slices.until_ms == 0) {
        bel__batch_word(batch, "");
    } else {
        bel__batch_number(batch, operation->slices.until_ms);
    }
    bel__batch_number(batch, SLICE);
}

static void begin_purge(struct bel_operation *operation)
{
    const struct bel_purge *command = &operation->command.purge;
    operation->slices.count = 0;
    operation->slices.until_ms = 0;
    if (!command->has_state || word_of(command->state) == NULL) {
        bel__operation_answer(operation); /* an ended timer leaves nothing */
        return;
    }
    bel__operation_hold(operation);
    send_slice(operation);
}

const struct bel_redis_verb bel__faststream_purge = {prepare_purge, begin_purge};

static int prepare_revive(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

/* There are no dead timers: they are in `<topic>:dead`. */
static void begin_revive(struct bel_operation *operation)
{
    bel__operation_answer(operation);
}

const struct bel_redis_verb bel__faststream_revive = {prepare_revive, begin_revive};
