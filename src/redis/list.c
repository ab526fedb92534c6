/* SPDX-License-Identifier: MIT */

/*
 * LIST: one call for each page. A cursor is where the page before has ended, in base64:
 *
 *     version 1 | section 1 | score 8 | member
 */
#include "redis/operation.h"
#include "redis/reading.h"

#include "core/base64.h"
#include "core/endian.h"
#include "core/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    CURSOR_HEAD = 10,
    MEMBER_PREFIX = 8,
    CURSOR_MAX = CURSOR_HEAD + MEMBER_PREFIX + BEL_ID_BYTES,
    CURSOR_TEXT_MAX = (CURSOR_MAX + 2) / 3 * 4,
    COUNT_DEFAULT = 100,
    PAGE_BYTES = 1 << 20, /* after which a page ends */
    SECTIONS = BEL_STATES,
};

/* The place before all others: no due is before it. */
#define FIRST_SCORE (-(INT64_C(1) << 53))

struct place {
    uint8_t bytes[CURSOR_MAX + 3];
    size_t count;
};

static bool parse_cursor(struct bel_view text, struct place *out)
{
    if (text.bytes > CURSOR_TEXT_MAX || text.bytes % 4 != 0) return false;
    if (!bel__base64_decode(text, out->bytes, &out->count)) return false;
    return out->count > CURSOR_HEAD + MEMBER_PREFIX && out->count <= CURSOR_MAX &&
           out->bytes[0] == VERSION && out->bytes[1] < SECTIONS;
}

static int prepare(struct bel_operation *operation)
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
    if (command->cursor.bytes > 0 && !parse_cursor(command->cursor, &place)) {
        return bel__operation_refuse(operation, BEL_EINVAL, "invalid cursor");
    }
    return 0;
}

/* Sets the cursor of the reply from the end of the page: {section, score, member}. */
static int print_cursor(struct bel_operation *operation, const struct bel_value *last)
{
    uint8_t bytes[CURSOR_MAX];
    int64_t score;
    if (last->type != BEL_VALUE_LIST) return 0;
    if (last->count != 3) return BEL_EIO;
    struct bel_view text = last->items[1].text, member = last->items[2].text;
    if (member.bytes > sizeof bytes - CURSOR_HEAD ||
        bel__parse_i64(text.data, text.bytes, INT64_MIN, INT64_MAX, &score) != 0) {
        return BEL_EIO;
    }
    bytes[0] = VERSION;
    bytes[1] = (uint8_t)last->items[0].number;
    bel__store_be64(bytes + 2, (uint64_t)score);
    memcpy(bytes + CURSOR_HEAD, member.data, member.bytes);
    char *cursor = bel__base64_encode((struct bel_view){bytes, CURSOR_HEAD + member.bytes});
    if (cursor == NULL) return BEL_ENOMEM;
    struct bel_view copy =
        bel__arena_copy(&operation->arena, (struct bel_view){cursor, strlen(cursor)});
    free(cursor);
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
        err = bel__reading_timers(operation, page->items, page->count);
    }
    if (err == 0) err = print_cursor(operation, &results->items[1]);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    bel__operation_answer(operation);
}

static void add_place(struct bel_batch *batch, struct bel_view cursor)
{
    struct place place;
    if (cursor.bytes == 0) {
        bel__batch_number(batch, 0);
        bel__batch_number(batch, FIRST_SCORE);
        bel__batch_word(batch, "");
        return;
    }
    bool is_valid = parse_cursor(cursor, &place);
    assert(is_valid);
    (void)is_valid;
    struct bel_view member = {place.bytes + CURSOR_HEAD, place.count - CURSOR_HEAD};
    bel__batch_number(batch, place.bytes[1]);
    bel__batch_number(batch, (int64_t)bel__load_be64(place.bytes + 2));
    bel__batch_text(batch, member);
}

static void add_bound(struct bel_batch *batch, bool has_bound, struct bel_wall bound)
{
    if (has_bound) {
        bel__batch_number(batch, bound.ms);
    } else {
        bel__batch_word(batch, "");
    }
}

static void begin(struct bel_operation *operation)
{
    const struct bel_list_query *command = &operation->command.list;
    struct bel_batch *batch = bel__batch_alone(operation->node, operation->topic, BEL_SCRIPT_LIST);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = listed;
    bel__batch_add(batch, &operation->item, 0);
    add_place(batch, command->cursor);
    bel__batch_number(batch, command->count > 0 ? command->count : COUNT_DEFAULT);
    bel__batch_number(batch, command->has_state ? (int64_t)command->state : -1);
    add_bound(batch, command->has_from, command->from);
    add_bound(batch, command->has_to, command->to);
    bel__batch_number(batch, PAGE_BYTES);
}

const struct bel_redis_verb bel__redis_list = {prepare, begin};
