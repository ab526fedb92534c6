/* SPDX-License-Identifier: MIT */

/*
 * Compares an engine with the book. Lists all timers, page by page: each must be in the book, with
 * the same content. Then each timer of the book must exist, or not. What is in doubt may be either
 * way, but all of it the same way, because it was one batch.
 */
#include "victim.h"

#include "../ask.h"
#include "../check.h"

#include <string.h>

enum {
    PAGE = 200,
    GET_EVERY = 7, /* one in 7 is also read with GET */
};

struct look {
    struct bel_request request; /* first */
    struct victim *victim;
    bool is_answered;
    int err;
    char cursor[512];
    size_t cursor_bytes;
    uint64_t seen, counted; /* timers of the topic listed, and counted by TOPIC */
    uint8_t payload[BOOK_PAYLOAD_BYTES_MAX];
};

static void see(struct look *look, const struct bel_timer *timer)
{
    uint32_t number = 0;
    CHECK_NOTE("timer %.*s", (int)timer->id.bytes, (const char *)timer->id.data);
    CHECK(book_number(timer->id, &number));
    struct book *book = look->victim->book;
    CHECK(number < book->end); /* otherwise it was never scheduled */
    struct book_entry *entry = &book->entries[number];
    struct bel_view want = book_payload(number, look->payload);
    CHECK(timer->payload.bytes == want.bytes);
    CHECK(want.bytes == 0 || memcmp(timer->payload.data, want.data, want.bytes) == 0);
    CHECK(timer->state <= BEL_LEASED);
    CHECK(!entry->is_seen || entry->attempts_seen == timer->attempts);
    entry->is_seen = true;
    entry->attempts_seen = (uint16_t)timer->attempts;
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct look *look = (struct look *)request;
    look->is_answered = true;
    look->err = reply->err;
    if (reply->err != 0) {
        CHECK_NOTE("%s: %s", bel_error_text(reply->err), reply->why);
        return;
    }
    if (request->command.verb == BEL_VERB_TOPIC) {
        look->counted = 0;
        for (int i = 0; i < BEL_STATES; i++) {
            look->counted += reply->topic->counts[i];
        }
        return;
    }
    for (size_t i = 0; i < reply->timers.count; i++) {
        see(look, &reply->timers.items[i]);
    }
    look->seen += reply->timers.count;
    if (request->command.verb != BEL_VERB_LIST) return;
    look->cursor_bytes = reply->timers.cursor.bytes;
    CHECK(look->cursor_bytes <= sizeof look->cursor);
    if (look->cursor_bytes > 0) memcpy(look->cursor, reply->timers.cursor.data, look->cursor_bytes);
}

static void ask(struct look *look, const struct bel_command *command)
{
    look->request = (struct bel_request){.command = *command, .done = answered};
    look->is_answered = false;
    bel_backend_submit(look->victim->backend, &look->request);
    while (!look->is_answered) {
        (void)bel_backend_turn(look->victim->backend, look->victim->now);
    }
}

/* Lists a topic. Returns the number of its timers. */
static uint64_t list_topic(struct look *look, const char *topic)
{
    look->seen = look->cursor_bytes = look->counted = 0;
    do {
        struct bel_command command = {
            .verb = BEL_VERB_LIST,
            .list = {.topic = view(topic),
                     .count = PAGE,
                     .cursor = {look->cursor_bytes > 0 ? look->cursor : NULL, look->cursor_bytes}}};
        ask(look, &command);
        CHECK(look->err == 0);
    } while (look->cursor_bytes > 0);
    uint64_t seen = look->seen;
    ask(look, &(struct bel_command){.verb = BEL_VERB_TOPIC, .target = {view(topic), {NULL, 0}}});
    CHECK(look->err == 0 || (look->err == BEL_ENOTFOUND && seen == 0));
    CHECK_NOTE("topic %s", topic);
    CHECK_EQ(look->counted, seen);
    return seen;
}

/* Checks that GET returns the same as LIST. */
static void get_some(struct look *look)
{
    const struct book *book = look->victim->book;
    char id[BOOK_TEXT_BYTES];
    for (uint32_t i = 0; i < book->end; i += GET_EVERY) {
        struct bel_command command = {.verb = BEL_VERB_GET,
                                      .target = {view(book_topic(i)), book_id(i, id)}};
        look->seen = 0;
        bool is_listed = book->entries[i].is_seen;
        ask(look, &command);
        CHECK(look->err == 0);
        CHECK_NOTE("timer %s", id);
        CHECK_EQ(look->seen, is_listed);
    }
}

/* --- judging --- */

struct verdict {
    uint32_t in, out; /* number + 1 of a timer in doubt: one that happened, one that did not */
};

static void judge(const struct book_entry *entry, uint32_t number, struct verdict *verdict)
{
    bool is_in = false;
    switch (entry->doubt) {
    case 0:
        CHECK_NOTE("timer v%" PRIu32 " was acknowledged, with %d failures", number,
                   entry->attempts);
        CHECK(entry->is_seen || !entry->is_there); /* otherwise it is lost */
        CHECK(!entry->is_seen || entry->is_there); /* otherwise an ended timer is back */
        CHECK(!entry->is_seen || entry->attempts_seen == entry->attempts);
        return;
    case LINE_ASK_SCHEDULE:
        is_in = entry->is_seen;
        break;
    case LINE_ASK_END:
        is_in = !entry->is_seen;
        break;
    default:
        CHECK_NOTE("timer v%" PRIu32 " was being failed", number);
        CHECK(entry->is_seen);
        is_in = entry->attempts_seen != entry->attempts;
        CHECK(!is_in || entry->attempts_seen == entry->attempts + 1);
    }
    *(is_in ? &verdict->in : &verdict->out) = number + 1;
}

/* Sends the line that settles a timer in doubt. */
static void settle(struct victim *victim, uint32_t number)
{
    struct book_entry *entry = &victim->book->entries[number];
    bool is_seen = entry->is_seen;
    entry->is_seen = false;
    if (entry->doubt == 0) return;
    struct line line = {number, 0, LINE_REFUSED};
    if (entry->doubt == LINE_ASK_SCHEDULE && is_seen) line.kind = LINE_SCHEDULED;
    if (entry->doubt == LINE_ASK_END && !is_seen) line.kind = LINE_ENDED;
    if (entry->doubt == LINE_ASK_FAIL && entry->attempts_seen != entry->attempts) {
        line.kind = LINE_FAILED;
        line.attempts = entry->attempts_seen;
    }
    book_take(victim->book, &line);
    if (victim->options.tell != NULL) victim->options.tell(victim->options.context, &line);
}

uint64_t victim_see(struct victim *victim)
{
    static struct look look;
    uint64_t count = 0;
    look = (struct look){.victim = victim};
    for (uint32_t i = 0; i < BOOK_TOPICS; i++) {
        count += list_topic(&look, book_topic(i));
    }
    get_some(&look);
    return count;
}

uint64_t victim_check(struct victim *victim)
{
    struct verdict verdict = {0, 0};
    uint64_t count = victim_see(victim);
    for (uint32_t i = 0; i < victim->book->end; i++) {
        judge(&victim->book->entries[i], i, &verdict);
    }
    CHECK_NOTE("v%" PRIu32 " has happened and v%" PRIu32 " has not, in one batch", verdict.in - 1,
               verdict.out - 1);
    CHECK(verdict.in == 0 || verdict.out == 0);
    CHECK(verdict.out == 0 || !victim->book->is_turn_known);
    for (uint32_t i = 0; i < victim->book->end; i++) {
        settle(victim, i);
    }
    struct line line = {0, 0, LINE_CHECKED};
    if (victim->options.tell != NULL) victim->options.tell(victim->options.context, &line);
    return count;
}
