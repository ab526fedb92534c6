/* SPDX-License-Identifier: MIT */

/* A line changes one entry. A LINE_TURN settles what was asked in the turns before. */
#include "book.h"

#include "../check.h"
#include "../random.h"

#include <string.h>
#include <sys/mman.h>

struct book *book_create(bool is_shared)
{
    int sharing = is_shared ? MAP_SHARED : MAP_PRIVATE;
    struct book *book =
        mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    CHECK(book != MAP_FAILED);
    return book;
}

void book_copy(const struct book *from, struct book *to)
{
    uint32_t end = from->end > to->end ? from->end : to->end;
    memcpy(to->entries, from->entries, end * sizeof to->entries[0]);
    to->end = from->end;
    to->is_turn_known = from->is_turn_known;
    to->told_count = from->told_count;
}

void book_destroy(struct book *book)
{
    CHECK(munmap(book, sizeof *book) == 0);
}

void book_take(struct book *book, const struct line *line)
{
    struct book_entry *entry = &book->entries[line->number];
    CHECK(line->number < BOOK_TIMERS_MAX);
    switch ((enum line_kind)line->kind) {
    case LINE_TURN:
        book->is_turn_known = false;
        return;
    case LINE_ASK_SCHEDULE:
        CHECK(line->number >= book->end);
        book->end = line->number + 1;
        entry->doubt = LINE_ASK_SCHEDULE;
        return;
    case LINE_ASK_END:
    case LINE_ASK_FAIL:
        CHECK(entry->is_there);
        entry->doubt = (uint8_t)line->kind;
        return;
    case LINE_SCHEDULED:
        *entry = (struct book_entry){.is_there = true, .attempts = line->attempts};
        break;
    case LINE_ENDED:
        *entry = (struct book_entry){.is_gone = true};
        break;
    case LINE_FAILED:
        entry->attempts = line->attempts;
        entry->doubt = 0;
        break;
    case LINE_REFUSED:
        entry->doubt = 0;
        return;
    case LINE_CHECKED:
        return;
    }
    book->is_turn_known = true;
    book->told_count++;
}

const char *book_topic(uint32_t number)
{
    static const char *const topics[BOOK_TOPICS] = {"mail", "web/hooks", "reports"};
    return topics[number % BOOK_TOPICS];
}

struct bel_view book_id(uint32_t number, char out[BOOK_TEXT_BYTES])
{
    int bytes = snprintf(out, BOOK_TEXT_BYTES, "v%" PRIu32, number);
    return (struct bel_view){out, (size_t)bytes};
}

/* Makes a payload: mostly short; some need two rows, and a few need many. */
struct bel_view book_payload(uint32_t number, uint8_t *out)
{
    uint64_t state = number, kind = random_below(&state, 16);
    uint64_t max = kind < 12 ? 200 : kind < 15 ? 2000 : BOOK_PAYLOAD_BYTES_MAX;
    size_t bytes = (size_t)random_below(&state, max);
    random_fill(&state, out, bytes);
    return (struct bel_view){out, bytes};
}

bool book_number(struct bel_view id, uint32_t *out)
{
    char text[BOOK_TEXT_BYTES], back[BOOK_TEXT_BYTES];
    if (id.bytes < 2 || id.bytes >= sizeof text) return false;
    memcpy(text, id.data, id.bytes);
    text[id.bytes] = 0;
    unsigned long long number = strtoull(text + 1, NULL, 10);
    if (number >= BOOK_TIMERS_MAX) return false;
    struct bel_view again = book_id((uint32_t)number, back);
    if (again.bytes != id.bytes || memcmp(back, text, id.bytes) != 0) return false;
    *out = (uint32_t)number;
    return true;
}
