/* SPDX-License-Identifier: MIT */

/*
 * The lines of EXPLAIN are sentences for people, one reason in each. The caller tells the reasons
 * in the order in which they count: the first one told is the reason of the reply, and its line
 * begins with the state of the timer. Every sentence names its subject. Text from users is made
 * safe for a terminal and shortened before it is inserted, and lines are copied into the memory of
 * the reply. After an error no line is added.
 */
#include "telling/telling.h"

#include "belfry/duration.h"
#include "core/units.h"
#include "core/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct bel_said_time bel__when(int64_t ms)
{
    struct bel_said_time when = {0};
    (void)bel_instant_print((struct bel_wall){ms}, when.text, sizeof when.text);
    return when;
}

struct bel_said_span bel__lasting(uint64_t ms)
{
    struct bel_said_span span = {0};
    if (ms >= MS_PER_MINUTE) ms = (ms + 500) / 1000 * 1000;
    (void)bel_duration_print(ms, span.text, sizeof span.text);
    return span;
}

struct bel_said bel__said(struct bel_view view)
{
    struct bel_said said;
    const char *text = view.data;
    size_t bytes = bel__utf8_head(view, BEL_SAID_BYTES).bytes;
    for (size_t i = 0; i < bytes; i++) {
        bool is_control = (unsigned char)text[i] < ' ' || text[i] == 0x7f;
        said.text[i] = text[i];
        if (is_control) said.text[i] = ' ';
    }
    (void)snprintf(said.text + bytes, sizeof said.text - bytes, "%s",
                   view.bytes > bytes ? "..." : "");
    return said;
}

const char *bel__plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *bel__subject(const struct bel_telling *telling, bool is_first)
{
    static const char *const subjects[][2] = {
        [BEL_TELLING_TIMER] = {"the timer", "The timer"},
        [BEL_TELLING_PLAN] = {"the plan", "The plan"},
        [BEL_TELLING_TASK] = {"the task", "The task"},
    };
    return subjects[telling->subject][is_first];
}

static void add_line(struct bel_telling *telling, const char *line, int bytes)
{
    size_t most = BEL_TELLING_BYTES - 1;
    if (bytes < 0 || telling->err || telling->count == BEL_TELLING_LINES) return;
    struct bel_view view = {line, (size_t)bytes < most ? (size_t)bytes : most};
    view = telling->copy(telling->memory, view);
    if (view.data == NULL) {
        telling->err = BEL_ENOMEM;
        return;
    }
    telling->lines[telling->count++] = view;
}

void bel__say(struct bel_telling *telling, const char *format, ...)
{
    char line[BEL_TELLING_BYTES];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    add_line(telling, line, bytes);
}

void bel__give_reason(struct bel_telling *telling, const struct bel_reason *reason)
{
    assert(reason->word != NULL && telling->reason.word == NULL);
    telling->reason = *reason;
    if (reason->by.bytes == 0) return;
    telling->reason.by = telling->copy(telling->memory, reason->by);
    if (telling->reason.by.data == NULL) telling->err = BEL_ENOMEM;
}

/* Tells since when a ready timer is due. */
static void tell_due(struct bel_telling *telling)
{
    int64_t due = telling->timer->due.ms;
    uint64_t age = bel__distance((uint64_t)due, (uint64_t)telling->now.ms);
    bel__say(telling, "%s is due since %s, for %s.", bel__subject(telling, true),
             bel__when(due).text, bel__lasting(age).text);
}

void bel__hold(struct bel_telling *telling, const struct bel_reason *reason, const char *clause,
               ...)
{
    char line[BEL_TELLING_BYTES];
    va_list args;
    va_start(args, clause);
    int bytes = vsnprintf(line, sizeof line, clause, args);
    va_end(args);
    if (telling->reason.word == NULL) {
        bel__give_reason(telling, reason);
        bel__say(telling, "%s is ready, but %s", bel__subject(telling, true), line);
        tell_due(telling);
        return;
    }
    if (line[0] >= 'a' && line[0] <= 'z') line[0] = (char)(line[0] - 'a' + 'A');
    add_line(telling, line, bytes);
}
