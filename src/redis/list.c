/* SPDX-License-Identifier: MIT */

/*
 * LIST: one call of each partition for each page, whose results are merged by section, score,
 * priority and sequence, and partition. A cursor is where the page before has ended, in base64:
 *
 *     version 1 | section 1 | score 8 | partition 1 | member
 *
 * Sequences are those of a partition. So for each partition the end of a page is a place: after the
 * member in its own; after all with the same priority and sequence in those before, and before all
 * of these in those behind.
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
    VERSION = 2,
    CURSOR_HEAD = 11,
    MEMBER_PREFIX = 8,
    CURSOR_MAX = CURSOR_HEAD + MEMBER_PREFIX + BEL_ID_BYTES,
    CURSOR_TEXT_MAX = (CURSOR_MAX + 2) / 3 * 4,
    COUNT_DEFAULT = 100,
    PAGE_BYTES = 1 << 20,      /* after which a page ends */
    PAGE_BYTES_MIN = 64 << 10, /* of one of many partitions */
    SECTIONS = BEL_STATES,
    PLACE_FIELDS = 3, /* section, score, member */
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

/* --- Merging --- */

/* A timer of a page, and its place. */
struct row {
    int64_t section, score;
    struct bel_view member;
    struct bel_timer timer;
};

/* The page of a partition. */
struct page {
    struct bel_item item;
    struct bel_operation *operation;
    struct bel_redis_partition *partition;
    struct row *rows;
    size_t count, at;
    bool has_more;
};

struct bel_listing {
    size_t left; /* pages without results */
    size_t count;
    int err; /* the first error */
    struct page pages[];
};

static int compare_rows(const struct row *a, const struct row *b)
{
    if (a->section != b->section) return a->section < b->section ? -1 : 1;
    if (a->score != b->score) return a->score < b->score ? -1 : 1;
    return memcmp(a->member.data, b->member.data, MEMBER_PREFIX);
}

/* Returns the page whose next row comes first; NULL if there is none, or if a page has ended before
 * its partition has. */
static struct page *first_page(struct bel_listing *listing)
{
    struct page *first = NULL;
    for (size_t i = 0; i < listing->count; i++) {
        struct page *page = &listing->pages[i];
        if (page->at == page->count && page->has_more) return NULL;
        if (page->at == page->count) continue;
        if (first == NULL || compare_rows(&page->rows[page->at], &first->rows[first->at]) < 0) {
            first = page;
        }
    }
    return first;
}

static bool has_more(const struct bel_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        const struct page *page = &listing->pages[i];
        if (page->has_more || page->at < page->count) return true;
    }
    return false;
}

/* Sets the cursor of the reply from the last row. */
static int print_cursor(struct bel_operation *operation, const struct row *last, unsigned partition)
{
    uint8_t bytes[CURSOR_MAX];
    bytes[0] = VERSION;
    bytes[1] = (uint8_t)last->section;
    bel__store_be64(bytes + 2, (uint64_t)last->score);
    bytes[CURSOR_HEAD - 1] = (uint8_t)partition;
    memcpy(bytes + CURSOR_HEAD, last->member.data, last->member.bytes);
    char *cursor = bel__base64_encode((struct bel_view){bytes, CURSOR_HEAD + last->member.bytes});
    if (cursor == NULL) return BEL_ENOMEM;
    struct bel_view copy =
        bel__arena_copy(&operation->arena, (struct bel_view){cursor, strlen(cursor)});
    free(cursor);
    operation->reply.timers.cursor = copy;
    return copy.data == NULL ? BEL_ENOMEM : 0;
}

static uint32_t count_of(const struct bel_operation *operation)
{
    uint32_t count = operation->command.list.count;
    return count > 0 ? count : COUNT_DEFAULT;
}

static int merge(struct bel_operation *operation)
{
    struct bel_listing *listing = operation->listing;
    size_t most = count_of(operation), count = 0;
    struct bel_timer *timers = bel__arena_take(&operation->arena, (most + 1) * sizeof *timers);
    const struct row *last = NULL;
    unsigned partition = 0;
    if (timers == NULL) return BEL_ENOMEM;
    for (struct page *page; count < most && (page = first_page(listing)) != NULL;) {
        last = &page->rows[page->at++];
        partition = page->partition->index;
        timers[count++] = last->timer;
    }
    operation->reply.timers.items = timers;
    operation->reply.timers.count = count;
    return last != NULL && has_more(listing) ? print_cursor(operation, last, partition) : 0;
}

/* --- Results --- */

/* Copies a timer's fields, because other pages are still to come. */
static int copy_fields(struct bel_arena *arena, const struct bel_value *item, struct bel_value *out)
{
    struct bel_value *fields = bel__arena_take(arena, (item->count + 1) * sizeof *fields);
    if (fields == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < item->count; i++) {
        fields[i] = item->items[i];
        if (fields[i].type != BEL_VALUE_TEXT || fields[i].text.bytes == 0) continue;
        fields[i].text = bel__arena_copy(arena, fields[i].text);
        if (fields[i].text.data == NULL) return BEL_ENOMEM;
    }
    *out = *item;
    out->items = fields;
    return 0;
}

static int read_row(struct page *page, const struct bel_value *item, const struct bel_value *place,
                    struct row *out)
{
    struct bel_operation *operation = page->operation;
    struct bel_value copy;
    struct bel_view score = place[1].text, member = place[2].text;
    if (item->type != BEL_VALUE_LIST || place[0].type != BEL_VALUE_NUMBER) return BEL_EIO;
    if (place[0].number < 0 || place[0].number >= SECTIONS) return BEL_EIO;
    if (place[1].type != BEL_VALUE_TEXT || place[2].type != BEL_VALUE_TEXT) return BEL_EIO;
    if (member.bytes <= MEMBER_PREFIX || member.bytes > CURSOR_MAX - CURSOR_HEAD ||
        bel__parse_i64(score.data, score.bytes, INT64_MIN, INT64_MAX, &out->score) != 0) {
        return BEL_EIO;
    }
    out->section = place[0].number;
    out->member = bel__arena_copy(&operation->arena, member);
    if (out->member.data == NULL) return BEL_ENOMEM;
    int err = copy_fields(&operation->arena, item, &copy);
    return err ? err : bel__reading_timer(operation, &copy, &out->timer);
}

static int read_page(struct page *page, const struct bel_results *results)
{
    if (results->err) return results->err;
    page->operation->partition = page->partition;
    const struct bel_value *items = results->items;
    if (results->count != 3 || items[0].type != BEL_VALUE_LIST || items[1].type != BEL_VALUE_LIST ||
        items[2].type != BEL_VALUE_NUMBER || items[1].count != items[0].count * PLACE_FIELDS) {
        return BEL_EIO;
    }
    page->rows =
        bel__arena_take(&page->operation->arena, (items[0].count + 1) * sizeof page->rows[0]);
    if (page->rows == NULL) return BEL_ENOMEM;
    page->has_more = items[2].number == 1;
    for (size_t i = 0; i < items[0].count; i++) {
        int err =
            read_row(page, &items[0].items[i], &items[1].items[i * PLACE_FIELDS], &page->rows[i]);
        if (err) return err;
        page->count++;
    }
    return 0;
}

static void listed(struct bel_item *item, const struct bel_results *results)
{
    struct page *page = BEL_CONTAINER_OF(item, struct page, item);
    struct bel_operation *operation = page->operation;
    struct bel_listing *listing = operation->listing;
    if (results->is_moved) operation->has_moved = true;
    int err = read_page(page, results);
    if (err) bel__operation_note(operation, err, results->why);
    if (err && listing->err == 0) listing->err = err;
    assert(listing->left > 0);
    if (--listing->left > 0) return;
    if (operation->has_moved) {
        bel__operation_restart(operation);
        return;
    }
    err = listing->err ? listing->err : merge(operation);
    if (err) {
        bel__operation_note(operation, err, NULL);
        bel__operation_stop(operation, err, 0, "");
        return;
    }
    bel__operation_answer(operation);
}

/* --- Calls --- */

static void add_place(struct bel_batch *batch, struct bel_view cursor, unsigned partition)
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
    unsigned last = place.bytes[CURSOR_HEAD - 1];
    if (partition != last) member.bytes = MEMBER_PREFIX;
    if (partition < last) place.bytes[CURSOR_HEAD + member.bytes++] = UINT8_MAX; /* after any id */
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

static int ask_page(struct page *page)
{
    struct bel_operation *operation = page->operation;
    const struct bel_list_query *command = &operation->command.list;
    size_t bytes = PAGE_BYTES / operation->listing->count;
    struct bel_batch *batch = bel__batch_alone(operation->node, page->partition, BEL_SCRIPT_LIST);
    if (batch == NULL) return BEL_ENOMEM;
    page->item.answered = listed;
    bel__batch_item(batch, &page->item, 0);
    add_place(batch, command->cursor, page->partition->index);
    bel__batch_number(batch, count_of(operation));
    bel__batch_number(batch, command->has_state ? (int64_t)command->state : -1);
    add_bound(batch, command->has_from, command->from);
    add_bound(batch, command->has_to, command->to);
    bel__batch_number(batch, (int64_t)(bytes < PAGE_BYTES_MIN ? PAGE_BYTES_MIN : bytes));
    return 0;
}

static void begin(struct bel_operation *operation)
{
    const struct bel_redis_topic *topic = operation->topic;
    struct bel_listing *listing = bel__arena_take(
        &operation->arena, sizeof *listing + topic->count * sizeof listing->pages[0]);
    if (listing == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    *listing = (struct bel_listing){.count = topic->count};
    operation->listing = listing;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct page *page = &listing->pages[i];
        *page = (struct page){.operation = operation, .partition = topic->partitions[i]};
        if (ask_page(page) == 0) {
            listing->left++;
        } else {
            listing->err = BEL_ENOMEM;
        }
    }
    if (listing->left == 0) bel__operation_fail(operation, BEL_ENOMEM, NULL);
}

const struct bel_redis_verb bel__redis_list = {prepare, begin};
