/* SPDX-License-Identifier: MIT */

/*
 * The line about an unreadable page is written by a signal handler, which may call few functions.
 * So the line is made in advance, with a mark where the number of the page belongs. The handler
 * replaces the time and the mark. bel_instant_print() and bel__print_i64() only compute.
 */
#include "server/embedded/damage.h"

#include "belfry/instant.h"
#include "core/parse.h"
#include "engine/engine.h"

#include <string.h>
#include <unistd.h>

static const char message[] = "the data is damaged; nothing was changed";
static const char mark[] = "@page@";

static struct {
    const struct bel_logger *log;
    char line[BEL_LOG_LINE_BYTES_MAX]; /* a copy of it would not fit on the stack of a handler */
    size_t bytes, time_at, mark_at;
} prepared;

void bel__damage_log(const struct bel_logger *log, const char *data, const char *why)
{
    BEL_LOG(log, BEL_LOG_ERROR, message, BEL_LOG_TEXT("data", data), BEL_LOG_TEXT("why", why));
}

static void put(const char *text, size_t bytes)
{
    ssize_t written = write(prepared.log->fd, text, bytes);
    (void)written;
}

/* Called in a signal handler. */
static void name_page(uint64_t page)
{
    char number[BEL_PRINT_BYTES_MAX], time[BEL_INSTANT_BYTES];
    size_t after = prepared.mark_at + sizeof mark - 1;
    size_t bytes = bel_instant_print(bel_clock_wall(prepared.log->clock), time, sizeof time);
    memcpy(prepared.line + prepared.time_at, time, bytes);
    put(prepared.line, prepared.mark_at);
    put(number, bel__print_i64(number, (int64_t)page));
    put(prepared.line + after, prepared.bytes - after);
}

int bel__damage_watch(const struct bel_logger *log, const char *data)
{
    char time[BEL_INSTANT_BYTES];
    const struct bel_log_field fields[] = {
        BEL_LOG_TEXT("data", data),
        BEL_LOG_TEXT("why", "tree/data.mdb is damaged: page @page@ cannot be read"),
    };
    struct bel_log_event event = {bel_clock_wall(log->clock), BEL_LOG_ERROR, message, fields,
                                  sizeof fields / sizeof fields[0]};
    prepared.log = log;
    prepared.bytes = bel__logger_format_line(log->format, &event, prepared.line);
    prepared.line[prepared.bytes] = 0;
    (void)bel_instant_print(event.time, time, sizeof time);
    const char *time_at = strstr(prepared.line, time);
    const char *mark_at = strstr(prepared.line, mark);
    if (time_at == NULL || mark_at == NULL) return BEL_EIO;
    prepared.time_at = (size_t)(time_at - prepared.line);
    prepared.mark_at = (size_t)(mark_at - prepared.line);
    return bel__engine_watch_faults(name_page);
}
