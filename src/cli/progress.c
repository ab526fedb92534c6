/* SPDX-License-Identifier: MIT */

/* The bar fills the columns that the name and the figures leave. The line must not wrap, or \r
 * would not return to its start. */
#include "cli/progress.h"

#include "core/parse.h"
#include "core/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    COLUMNS_DEFAULT = 80,
    NAME_COLUMNS = 14,
    BAR_COLUMNS_MIN = 10,
    BAR_COLUMNS_MAX = 60,
    TAIL_BYTES = 64,
};

const char *bel__cli_grouped(uint64_t number, char out[CLI_GROUPED_BYTES])
{
    char digits[BEL_PRINT_BYTES_MAX];
    size_t count = bel__print_u64(digits, number), used = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

static unsigned columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return COLUMNS_DEFAULT;
    return size.ws_col;
}

void bel__progress_start(struct cli_progress *progress, const char *name, uint64_t total)
{
    const char *terminal = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): nothing calls setenv */
    bool is_dumb = terminal != NULL && strcmp(terminal, "dumb") == 0;
    *progress = (struct cli_progress){
        .name = name, .total = total, .is_shown = isatty(STDERR_FILENO) == 1 && !is_dumb};
}

void bel__progress_draw(const struct cli_progress *progress, uint64_t done, uint64_t elapsed_ms)
{
    char tail[TAIL_BYTES], number[CLI_GROUPED_BYTES], bar[BAR_COLUMNS_MAX + 1];
    if (!progress->is_shown) return;
    double share = 1;
    if (progress->total > 0 && done < progress->total) {
        share = (double)done / (double)progress->total;
    }
    double rate = elapsed_ms > 0 ? (double)done * MS_PER_S / (double)elapsed_ms : 0;
    (void)bel__cli_grouped((uint64_t)rate, number);
    if (progress->total == 0) {
        char so_far[CLI_GROUPED_BYTES];
        fprintf(stderr, "\r%-*s %s   %s/s\033[K", NAME_COLUMNS, progress->name,
                bel__cli_grouped(done, so_far), number);
        return;
    }
    int tail_bytes = snprintf(tail, sizeof tail, " %3u %%   %s/s", (unsigned)(share * 100), number);
    unsigned used = NAME_COLUMNS + 3 + (unsigned)tail_bytes + 1, all = columns();
    unsigned room = all > used + BAR_COLUMNS_MIN ? all - used : BAR_COLUMNS_MIN;
    if (room > BAR_COLUMNS_MAX) room = BAR_COLUMNS_MAX;
    for (unsigned i = 0; i < room; i++) {
        bar[i] = i < (unsigned)(share * room) ? '#' : '.';
    }
    bar[room] = '\0';
    fprintf(stderr, "\r%-*s [%s]%s\033[K", NAME_COLUMNS, progress->name, bar, tail);
}

void bel__progress_end(struct cli_progress *progress)
{
    if (progress->is_shown) fputs("\r\033[K", stderr);
    progress->is_shown = false;
}
