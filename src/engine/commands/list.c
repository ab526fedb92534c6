/* SPDX-License-Identifier: MIT */

/*
 * LIST walks through sections. A section is one lane of the store, or two lanes merged:
 *
 *     timed     TIMERS engine --.
 *               TIMERS wall ----'--> merged by (due in wall ms, priority, sequence)
 *     none      TIMERS none
 *     done      ENDED done: timers --.
 *               ENDED done: tasks ---'--> merged by (when it ended, sequence)
 *     dead ...  ENDED dead ...
 *
 * A cursor names the section and the next key in each of its lanes: 53 characters, the section's
 * letter and two keys, encoded like made ids. A timer that keeps its key between two calls is
 * listed once, even if a clock step changes the order of the lanes.
 *
 * An expired timer that has not been ended yet ends when the walk meets it, and is listed among the
 * expired ones. Its end may unblock another timer, at a key that the walk has passed. So the walk
 * is repeated then. LIST of the expired timers waits until all have been ended.
 */
#include "engine/commands/commands.h"
#include "engine/commands/describe.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <string.h>

enum {
    COUNT_DEFAULT = 100,
    ROWS_MAX = 10000,    /* rows read in one call */
    ROWS_OF_END = 10,    /* ending an expired timer counts as this many rows */
    BYTES_MAX = 1 << 20, /* of payloads, results and headers; then a reply is full */
    LANES_MAX = 2,
    CURSOR_BYTES = 1 + LANES_MAX * BEL_MADE_ID_BYTES,
};

enum section {
    SECTION_TIMED,
    SECTION_NONE,
    SECTION_ENDED, /* the first section of the terminal states */
    SECTIONS = SECTION_ENDED + BEL_STATES - BEL_DONE,
};

/* A lane that the walk reads. */
struct stream {
    struct bel_place next; /* key parts of the next row */
    uint64_t end;          /* time at which the stream ends */
    struct bel_store_cursor cursor;
    bool has_row; /* the cursor is at a row of the stream */
};

struct walk {
    struct bel_engine *engine;
    struct bel_topic_state *topic;
    const struct bel_list_query *query;
    unsigned section;
    struct stream streams[LANES_MAX];
    unsigned streams_count; /* streams of the current section */
    uint32_t rows_left;
    uint32_t expired; /* expired timers ended in this walk */
    bool is_full;     /* the reply is complete; the cursor continues here */
    struct bel_timer *items;
    size_t count, count_max;
    uint64_t bytes; /* of the items, as far as they have no other limit */
};

/* --- what is wanted --- */

static bool wants_state(const struct bel_list_query *query, enum bel_state state)
{
    return !query->has_state || query->state == state;
}

/* With FROM or TO only timed sections are wanted: other timers have no due time. */
static bool wants_section(const struct bel_list_query *query, unsigned section)
{
    if (section != SECTION_TIMED && (query->has_from || query->has_to)) return false;
    switch (section) {
    case SECTION_TIMED:
        return wants_state(query, BEL_SCHEDULED) || wants_state(query, BEL_READY) ||
               wants_state(query, BEL_LEASED);
    case SECTION_NONE:
        return wants_state(query, BEL_SCHEDULED) || wants_state(query, BEL_BLOCKED);
    default:
        return wants_state(query, (enum bel_state)(BEL_DONE + section - SECTION_ENDED));
    }
}

/* Returns whether all due rows of a lane have been read, and all due plans have rung. */
static bool is_settled(const struct walk *walk, uint8_t lane)
{
    const struct bel_topic_state *topic = walk->topic;
    uint64_t now = bel__lane_now(&walk->engine->now, lane);
    return !topic->is_partial[lane] && !topic->has_late_tick && topic->wake_times[lane] > now;
}

/* --- streams --- */

static struct stream timed_stream(const struct walk *walk, uint8_t lane)
{
    const struct bel_list_query *query = walk->query;
    const struct bel_times *now = &walk->engine->now;
    uint64_t due_end = bel__lane_now(now, lane) + 1, from = 0, to = BEL_NEVER;
    bool is_leased = query->has_state && query->state == BEL_LEASED;
    if (query->has_from) from = bel__lane_time(now, lane, query->from);
    if (query->has_to) to = query->to.ms < 0 ? 0 : bel__lane_time(now, lane, query->to);
    if (query->has_state && query->state == BEL_READY && to > due_end) to = due_end;
    if (query->has_state && query->state == BEL_SCHEDULED && is_settled(walk, lane)) {
        if (from < due_end) from = due_end;
    }
    return (struct stream){.next = {.table = is_leased ? BEL_TABLE_LEASES : BEL_TABLE_TIMERS,
                                    .topic = walk->topic->number,
                                    .lane = lane,
                                    .time = from},
                           .end = to};
}

static struct stream ended_tasks_stream(const struct walk *walk, enum bel_state state)
{
    return (struct stream){.next = {.table = BEL_TABLE_ENDED,
                                    .topic = walk->topic->number,
                                    .lane = bel__ended_lane(state, true)},
                           .end = BEL_NEVER};
}

/* Skips timers whose retention is over, which come first. */
static struct stream ended_stream(const struct walk *walk, enum bel_state state)
{
    uint64_t retention = bel__timer_retention(walk->topic, state);
    uint64_t now = (uint64_t)walk->engine->now.wall;
    return (struct stream){.next = {.table = BEL_TABLE_ENDED,
                                    .topic = walk->topic->number,
                                    .lane = (uint8_t)state,
                                    .time = retention <= now ? now - retention + 1 : 0},
                           .end = BEL_NEVER};
}

/* Sets the streams of the section, each to its start. */
static void begin_section(struct walk *walk)
{
    walk->streams_count = 1;
    if (walk->section == SECTION_TIMED) {
        walk->streams[0] = timed_stream(walk, BEL_LANE_ENGINE);
        walk->streams[1] = timed_stream(walk, BEL_LANE_WALL);
        walk->streams_count = 2;
    } else if (walk->section == SECTION_NONE) {
        walk->streams[0] = (struct stream){.next = {.table = BEL_TABLE_TIMERS,
                                                    .topic = walk->topic->number,
                                                    .lane = BEL_LANE_NONE},
                                           .end = BEL_NEVER};
    } else {
        enum bel_state state = (enum bel_state)(BEL_DONE + walk->section - SECTION_ENDED);
        walk->streams[0] = ended_stream(walk, state);
        walk->streams[1] = ended_tasks_stream(walk, state);
        walk->streams_count = 2;
    }
}

/* Sets has_row after a move of the cursor that returned `err`. */
static int settle_stream(struct stream *stream, int err)
{
    stream->has_row = false;
    if (err == BEL_ENOTFOUND) return 0;
    if (err) return err;
    struct bel_place place = bel__place_of(&stream->cursor.key);
    stream->has_row = place.table == stream->next.table && place.topic == stream->next.topic &&
                      place.lane == stream->next.lane && place.time < stream->end;
    if (stream->has_row) stream->next = place;
    return 0;
}

static int seek_stream(const struct walk *walk, struct stream *stream)
{
    struct bel_key from = bel__key_of(&stream->next);
    return settle_stream(stream, bel__store_seek(walk->engine->store, &from, &stream->cursor));
}

static int advance_stream(const struct walk *walk, struct stream *stream)
{
    if (stream->next.sequence < BEL_SEQUENCE_MAX) stream->next.sequence++;
    return settle_stream(stream, bel__store_next(walk->engine->store, &stream->cursor));
}

/* Returns whether the row at `a` comes before the row at `b`. */
static bool comes_first(const struct walk *walk, const struct bel_place *a,
                        const struct bel_place *b)
{
    bool is_ended = a->table == BEL_TABLE_ENDED;
    const struct bel_times *now = &walk->engine->now;
    uint64_t a_due = is_ended ? a->time : bel__lane_wall(now, a->lane, a->time);
    uint64_t b_due = is_ended ? b->time : bel__lane_wall(now, b->lane, b->time);
    if (a_due != b_due) return a_due < b_due;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

static struct stream *first_stream(struct walk *walk)
{
    struct stream *first = NULL;
    for (unsigned i = 0; i < walk->streams_count; i++) {
        struct stream *stream = &walk->streams[i];
        if (!stream->has_row) continue;
        if (first == NULL || comes_first(walk, &stream->next, &first->next)) first = stream;
    }
    return first;
}

/* --- rows --- */

static int read_row(const struct walk *walk, const struct stream *stream, struct bel_found *out)
{
    if (stream->next.table != BEL_TABLE_LEASES) {
        return bel__timer_read(walk->engine, &stream->cursor.key, stream->cursor.value, out);
    }
    struct bel_key key = bel__key_in(&stream->cursor.key, BEL_TABLE_TIMERS);
    int err = bel__timer_load(walk->engine, &key, out);
    return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
}

static bool is_wanted(const struct walk *walk, const struct bel_found *found)
{
    if (!wants_state(walk->query, found->state)) return false;
    if (bel__timer_is_hidden(walk->engine, found)) return false;
    return !bel__timer_is_over(walk->engine, found);
}

static int end_expired(struct walk *walk, struct bel_found *found)
{
    walk->expired++;
    walk->rows_left -= walk->rows_left < ROWS_OF_END ? walk->rows_left : ROWS_OF_END;
    return bel__timer_expire(walk->engine, found);
}

static uint64_t bytes_of(const struct bel_timer *timer)
{
    uint64_t bytes = timer->payload.bytes + timer->result.bytes;
    for (size_t i = 0; i < timer->headers_count; i++) {
        bytes += timer->headers[i].name.bytes + timer->headers[i].value.bytes;
    }
    return bytes;
}

/* Handles the row of a stream and advances. Leaves the row if the reply has no room for it. */
static int take_row(struct walk *walk, struct stream *stream)
{
    struct bel_found found;
    int err = read_row(walk, stream, &found);
    if (err) return err;
    if (bel__timer_is_expired(walk->engine, &found)) {
        err = end_expired(walk, &found);
    } else if (is_wanted(walk, &found)) {
        walk->is_full = walk->count == walk->count_max || walk->bytes > BYTES_MAX;
        if (walk->is_full) return 0;
        assert(walk->count < walk->count_max);
        struct bel_timer *item = &walk->items[walk->count];
        err = bel__describe(walk->engine, &found, item);
        if (err) return err;
        walk->bytes += bytes_of(item);
        walk->count++;
    }
    return err ? err : advance_stream(walk, stream);
}

static int walk_section(struct walk *walk)
{
    for (unsigned i = 0; i < walk->streams_count; i++) {
        int err = seek_stream(walk, &walk->streams[i]);
        if (err) return err;
    }
    for (struct stream *stream; (stream = first_stream(walk)) != NULL;) {
        if (walk->rows_left == 0) {
            walk->is_full = true;
            return 0;
        }
        walk->rows_left--;
        int err = take_row(walk, stream);
        if (err || walk->is_full) return err;
    }
    return 0;
}

/* Walks from the current section to the end, or until the reply is full. */
static int walk_on(struct walk *walk)
{
    for (;;) {
        if (wants_section(walk->query, walk->section)) {
            int err = walk_section(walk);
            if (err || walk->is_full) return err;
        }
        if (++walk->section == SECTIONS) return 0;
        begin_section(walk);
    }
}

/* --- cursors --- */

static bool cursor_place(struct bel_view cursor, unsigned lane, struct bel_place *out)
{
    const char *text = cursor.data;
    struct bel_view id = {text + 1 + (size_t)lane * BEL_MADE_ID_BYTES, BEL_MADE_ID_BYTES};
    return bel__made_id_place(id, 0, out) && out->lane == lane;
}

static bool is_cursor(struct bel_view cursor)
{
    const char *text = cursor.data;
    struct bel_place place;
    if (cursor.bytes != CURSOR_BYTES || text[0] < 'a' || text[0] >= 'a' + SECTIONS) return false;
    return cursor_place(cursor, 0, &place) && cursor_place(cursor, 1, &place);
}

/* Moves a new walk to the position of a cursor. */
static void go_to_cursor(struct walk *walk, struct bel_view cursor)
{
    const char *text = cursor.data;
    walk->section = (unsigned)(text[0] - 'a');
    begin_section(walk);
    for (unsigned i = 0; i < walk->streams_count; i++) {
        struct bel_place *next = &walk->streams[i].next, place;
        bool is_place = cursor_place(cursor, i, &place);
        assert(is_place);
        if (!is_place || place.time < next->time) continue; /* before the start of the stream */
        next->time = place.time;
        next->priority = place.priority;
        next->sequence = place.sequence;
    }
}

static int write_cursor(struct bel_engine *engine, const struct walk *walk, struct bel_view *out)
{
    char *text = bel__answer_take(engine, CURSOR_BYTES);
    if (text == NULL) return BEL_ENOMEM;
    text[0] = (char)('a' + walk->section);
    for (unsigned i = 0; i < LANES_MAX; i++) {
        struct bel_place place = {0};
        if (i < walk->streams_count) place = walk->streams[i].next;
        place.lane = (uint8_t)i;
        bel__made_id(&place, text + 1 + (size_t)i * BEL_MADE_ID_BYTES);
    }
    *out = (struct bel_view){text, CURSOR_BYTES};
    return 0;
}

static void begin_walk(struct walk *walk)
{
    walk->section = SECTION_TIMED;
    walk->count = 0;
    walk->bytes = 0;
    walk->expired = 0;
    walk->is_full = false;
    begin_section(walk);
    if (walk->query->cursor.bytes > 0) go_to_cursor(walk, walk->query->cursor);
}

/* --- the command --- */

static int check(const struct bel_list_query *query, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(query->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    if (query->count > BEL_LIST_COUNT_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "the count is at most %d", BEL_LIST_COUNT_MAX);
    }
    if (query->has_state && query->state >= BEL_STATES) {
        return bel__refuse(reply, BEL_EINVAL, "unknown state");
    }
    if (query->cursor.bytes > 0 && !is_cursor(query->cursor)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid cursor");
    }
    return 0;
}

static int list(struct walk *walk, struct bel_reply *reply)
{
    int err = 0;
    do {
        begin_walk(walk);
        err = walk_on(walk);
        if (err) return err;
    } while (walk->expired > 0 && walk->rows_left > 0);
    struct bel_view cursor = {0};
    if (walk->is_full) err = write_cursor(walk->engine, walk, &cursor);
    if (err) return err;
    reply->timers.items = walk->items;
    reply->timers.count = walk->count;
    reply->timers.cursor = cursor;
    return 0;
}

int bel__do_list(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_list_query *query = &request->command.list;
    struct bel_reply *reply = &request->own.reply;
    int err = check(query, reply);
    if (err) return err;
    struct walk walk = {.engine = engine,
                        .topic = bel__topic_find(&engine->topics, query->topic),
                        .query = query,
                        .rows_left = ROWS_MAX,
                        .count_max = query->count == 0 ? COUNT_DEFAULT : query->count};
    if (walk.topic == NULL) return 0;
    bool is_of_expired = query->has_state && query->state == BEL_EXPIRED;
    if (is_of_expired && bel__expiry_is_behind(engine, walk.topic)) return BEL_DO_LATER;
    walk.items = bel__answer_take(engine, walk.count_max * sizeof walk.items[0]);
    return walk.items == NULL ? BEL_ENOMEM : list(&walk, reply);
}
