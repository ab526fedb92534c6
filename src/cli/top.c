/* SPDX-License-Identifier: MIT */

/*
 * belfry top: draws the screen. Lines about the server, then the topics, as many as fit:
 *
 *     belfry 0.1.0 at 127.0.0.1:7878, memory, up 1h, 3 clients       2026-06-01T09:00:00Z
 *     182 commands/s  90 schedule/s  12 claim/s  90 ack/s  late p50 1 ms p99 10 ms
 *
 *     SCHEDULED      READY     LEASED       DEAD   OLDEST DUE   CHANGE/S TOPIC
 *
 * A narrow screen leaves out columns, so that the topic has at least TOPIC_COLUMNS.
 * If the connection is lost the screen keeps the last figures, shows the error and reconnects.
 */
#include "cli/top.h"

#include "belfry/clock.h"
#include "belfry/duration.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "core/units.h"

#include <curses.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INTERVAL_MS = 1000,
    INTERVAL_MS_MIN = 100,
    INTERVAL_MS_MAX = 3600 * 1000,
    HEAD_LINES = 5, /* lines above the topics */
    LINE_BYTES = 512,
    TOPIC_COLUMNS = 20, /* for the name of a topic, at least */
};

static const char usage[] =
    "usage: belfry top [OPTION ...]\n"
    "\n"
    "Shows live figures of a server: per topic the timers by state, the age of the oldest\n"
    "ready timer and the change per second; commands per second; and the lateness of\n"
    "deliveries since the last update. A narrow terminal shows fewer columns. q quits,\n"
    "s sorts by name, ready or oldest, arrows and page keys scroll, space updates now.\n"
    "--json prints one line for one interval instead; a lateness above 60 s, which is not\n"
    "measured, is \"inf\" there, and null without a delivery.\n"
    "\n"
    "    -i, --interval DURATION\n"
    "                        time between updates (default 1s)\n";

enum sorting {
    SORT_NAME,
    SORT_READY,
    SORT_OLDEST,
    SORTS,
};

struct top {
    struct cli_connect connect;
    uint64_t interval_ms;
    struct bel_client *client; /* NULL: the connection is lost */
    struct top_sample samples[2];
    unsigned now;           /* index of the newer sample */
    struct bel_why problem; /* why the last sample failed; or empty */
    enum sorting sorting;
    size_t first; /* index in `order` of the first topic shown */
    const struct top_topic *order[TOP_TOPICS_MAX];
};

static volatile sig_atomic_t was_told; /* a signal has asked to quit */

static void hear_signal(int number)
{
    (void)number;
    was_told = 1;
}

/* --- samples --- */

static const struct top_sample *newer(const struct top *top)
{
    return &top->samples[top->now];
}

static const struct top_sample *older(const struct top *top)
{
    return &top->samples[1 - top->now];
}

/* Takes a sample, which replaces the older one. Returns 0 or an error. */
static int take_sample(struct top *top, bool is_fresh)
{
    unsigned next = 1 - top->now;
    int err = bel__top_sample(top->client, is_fresh, &top->samples[next], &top->problem);
    if (err) {
        top->samples[next].at_ns = 0; /* mark it invalid: it may be half filled */
        return err;
    }
    top->now = next;
    return 0;
}

/* Connects again. Prints nothing, because standard error is the screen. */
static void reconnect(struct top *top)
{
    struct bel_client_options options = {.timeout_ms = INTERVAL_MS, .protocol = 3};
    struct bel_client_why why;
    char key[CLI_KEY_BYTES_MAX];
    if (bel__connect_key(&top->connect, key, &options.key.bytes) != CLI_OK) return;
    options.key.data = key;
    int err = bel_client_connect(bel__connect_target(&top->connect), &options, &top->client, &why);
    explicit_bzero(key, sizeof key);
    if (err == 0) return;
    top->client = NULL;
    (void)bel__why_say(&top->problem, err, "%s", why.text);
}

/* Takes a sample, connecting again if necessary. On failure keeps the last one and the problem. */
static void update(struct top *top, bool is_fresh)
{
    if (top->client == NULL) reconnect(top);
    if (top->client == NULL) return;
    int err = take_sample(top, is_fresh);
    if (err == 0) return;
    if (top->problem.text[0] == '\0') {
        (void)bel__why_say(&top->problem, err, "%s: %s", bel__connect_address(&top->connect),
                           bel_error_text(err));
    }
    bel_client_close(top->client);
    top->client = NULL;
}

/* --- sorting --- */

static int compare_ready(const void *a, const void *b)
{
    const struct top_topic *left = *(const struct top_topic *const *)a;
    const struct top_topic *right = *(const struct top_topic *const *)b;
    if (left->ready != right->ready) return left->ready > right->ready ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int compare_oldest(const void *a, const void *b)
{
    const struct top_topic *left = *(const struct top_topic *const *)a;
    const struct top_topic *right = *(const struct top_topic *const *)b;
    if (left->oldest_ms != right->oldest_ms) return left->oldest_ms > right->oldest_ms ? -1 : 1;
    return strcmp(left->name, right->name);
}

static void sort(struct top *top)
{
    const struct top_sample *sample = newer(top);
    for (size_t i = 0; i < sample->topics_count; i++) {
        top->order[i] = &sample->topics[i];
    }
    if (top->sorting == SORT_NAME) return; /* the sample is sorted by name */
    qsort(top->order, sample->topics_count, sizeof(const struct top_topic *),
          top->sorting == SORT_READY ? compare_ready : compare_oldest);
}

/* --- the screen --- */

/* Prints a line, cut off at the edge of the screen. */
static void put(int y, const char *text)
{
    if (y >= LINES) return;
    (void)mvaddnstr(y, 0, text, COLS);
}

/* Prints a duration as "1h30m", with the two largest units. Returns `out`. */
static const char *print_age(uint64_t ms, char out[TOP_TEXT_BYTES])
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
    for (unsigned i = 0; i < 4; i++) {
        if (ms < units[i].ms) continue;
        int bytes = snprintf(out, TOP_TEXT_BYTES, "%" PRIu64 "%s", ms / units[i].ms, units[i].name);
        uint64_t rest = i < 3 ? ms % units[i].ms / units[i + 1].ms : 0;
        if (rest > 0) {
            (void)snprintf(out + bytes, TOP_TEXT_BYTES - (size_t)bytes, "%" PRIu64 "%s", rest,
                           units[i + 1].name);
        }
        return out;
    }
    (void)snprintf(out, TOP_TEXT_BYTES, ms > 0 ? "%" PRIu64 "ms" : "-", ms);
    return out;
}

/* Prints microseconds as "12.5 ms". Returns a text. */
static const char *print_delay(uint64_t us, char out[TOP_TEXT_BYTES])
{
    if (us == TOP_OVER) return "over 60 s";
    if (us == TOP_NONE) return "-";
    (void)snprintf(out, TOP_TEXT_BYTES, "%.1f ms", (double)us / US_PER_MS);
    return out;
}

static void draw_head(const struct top *top)
{
    const struct top_sample *was = older(top), *is = newer(top);
    char line[LINE_BYTES], age[TOP_TEXT_BYTES], delays[4][TOP_TEXT_BYTES];
    (void)snprintf(line, sizeof line,
                   "belfry %s at %s, %s, up %s, %" PRIu64 " clients, %" PRIu64 " leases lost   %s",
                   is->version, bel__connect_address(&top->connect), is->store,
                   print_age(is->counts[TOP_UPTIME_S] * 1000, age), is->counts[TOP_CLIENTS],
                   is->counts[TOP_LEASES_LOST], is->time);
    put(0, line);
    (void)snprintf(line, sizeof line,
                   "%.0f commands/s  %.0f schedule/s  %.0f claim/s  %.0f deliveries/s  %.0f ack/s  "
                   "%.0f errors/s",
                   bel__top_rate(was, is, TOP_COMMANDS), bel__top_rate(was, is, TOP_SCHEDULES),
                   bel__top_rate(was, is, TOP_CLAIMS), bel__top_rate(was, is, TOP_DELIVERIES),
                   bel__top_rate(was, is, TOP_ACKS), bel__top_rate(was, is, TOP_ERRORS));
    put(1, line);
    (void)snprintf(
        line, sizeof line, "late: p50 %s, p99 %s, p99 since start %s; turns: p99 %s; %zu topics%s",
        print_delay(bel__top_lateness(was, is, 500), delays[0]),
        print_delay(bel__top_lateness(was, is, 990), delays[1]),
        print_delay(is->counts[TOP_LATENESS_US_P99], delays[2]),
        print_delay(is->counts[TOP_TURN_US_P99], delays[3]), is->topics_count + is->topics_left,
        is->topics_left > 0 ? ", the first 1000 are shown" : "");
    put(2, line);
    if (top->problem.text[0] == '\0') return;
    (void)attron(A_BOLD);
    put(3, top->problem.text);
    (void)attroff(A_BOLD);
}

enum column {
    COLUMN_SCHEDULED,
    COLUMN_READY,
    COLUMN_LEASED,
    COLUMN_DEAD,
    COLUMN_OLDEST,
    COLUMN_CHANGE,
    COLUMNS,
};

static const struct {
    const char *title;
    int width;
} columns[COLUMNS] = {
    [COLUMN_SCHEDULED] = {"SCHEDULED", 11}, [COLUMN_READY] = {"READY", 11},
    [COLUMN_LEASED] = {"LEASED", 9},        [COLUMN_DEAD] = {"DEAD", 9},
    [COLUMN_OLDEST] = {"OLDEST", 10},       [COLUMN_CHANGE] = {"CHANGE/S", 9},
};

/* Returns the set of columns, as 1 << enum column, that leave room for the name of a topic. */
static unsigned fitting_columns(int screen_width)
{
    static const enum column dropped[COLUMNS] = {COLUMN_CHANGE, COLUMN_LEASED,    COLUMN_OLDEST,
                                                 COLUMN_DEAD,   COLUMN_SCHEDULED, COLUMN_READY};
    unsigned set = (1U << COLUMNS) - 1;
    int used = 0;
    for (unsigned i = 0; i < COLUMNS; i++) {
        used += columns[i].width + 1;
    }
    for (unsigned i = 0; i < COLUMNS && screen_width - used < TOPIC_COLUMNS; i++) {
        set &= ~(1U << dropped[i]);
        used -= columns[dropped[i]].width + 1;
    }
    return set;
}

/* Prints the cells of a set of columns and then the name. */
static void print_row(unsigned set, const char *const cells[COLUMNS], const char *name,
                      char out[LINE_BYTES])
{
    size_t bytes = 0;
    for (unsigned i = 0; i < COLUMNS; i++) {
        if ((set & 1U << i) == 0) continue;
        int printed = snprintf(out + bytes, LINE_BYTES - bytes, "%*s ", columns[i].width, cells[i]);
        if (printed > 0) bytes += (size_t)printed;
    }
    (void)snprintf(out + bytes, LINE_BYTES - bytes, "%s", name);
}

static void draw_topic(const struct top *top, int y, const struct top_topic *topic)
{
    char line[LINE_BYTES], age[TOP_TEXT_BYTES], change[TOP_TEXT_BYTES];
    char name[TOP_NAME_BYTES + 16];
    char numbers[4][CLI_GROUPED_BYTES];
    const int64_t counts[4] = {topic->scheduled, topic->ready, topic->leased, topic->dead};
    for (unsigned i = 0; i < 4; i++) {
        (void)bel__cli_grouped(counts[i] > 0 ? (uint64_t)counts[i] : 0, numbers[i]);
    }
    (void)snprintf(change, sizeof change, "%+.0f", bel__top_change(older(top), newer(top), topic));
    (void)snprintf(name, sizeof name, "%s%s", topic->name, topic->is_paused ? " (paused)" : "");
    const char *const cells[COLUMNS] = {
        [COLUMN_SCHEDULED] = numbers[0],
        [COLUMN_READY] = numbers[1],
        [COLUMN_LEASED] = numbers[2],
        [COLUMN_DEAD] = numbers[3],
        [COLUMN_OLDEST] = print_age(topic->oldest_ms > 0 ? (uint64_t)topic->oldest_ms : 0, age),
        [COLUMN_CHANGE] = change,
    };
    print_row(fitting_columns(COLS), cells, name, line);
    put(y, line);
}

static void draw_titles(void)
{
    const char *cells[COLUMNS];
    char line[LINE_BYTES];
    for (unsigned i = 0; i < COLUMNS; i++) {
        cells[i] = columns[i].title;
    }
    print_row(fitting_columns(COLS), cells, "TOPIC", line);
    size_t bytes = strlen(line);
    while (bytes + 1 < LINE_BYTES && bytes < (size_t)COLS) {
        line[bytes++] = ' ';
    }
    line[bytes] = '\0';
    (void)attron(A_REVERSE);
    put(HEAD_LINES - 1, line);
    (void)attroff(A_REVERSE);
}

static void draw(struct top *top)
{
    static const char *const names[SORTS] = {"name", "ready", "oldest"};
    char line[LINE_BYTES];
    size_t count = newer(top)->topics_count;
    size_t room = LINES > HEAD_LINES + 1 ? (size_t)(LINES - HEAD_LINES - 1) : 1;
    size_t last = count > room ? count - room : 0;
    if (top->first > last) top->first = last;
    sort(top);
    (void)erase();
    draw_head(top);
    draw_titles();
    for (size_t i = 0; i < room && top->first + i < count; i++) {
        draw_topic(top, HEAD_LINES + (int)i, top->order[top->first + i]);
    }
    (void)snprintf(line, sizeof line, "q quits   s sorts (by %s)   arrows scroll",
                   names[top->sorting]);
    put(LINES - 1, line);
    (void)refresh();
}

/* --- keys --- */

static void scroll_by(struct top *top, long lines)
{
    size_t count = newer(top)->topics_count;
    long first = (long)top->first + lines;
    if (first < 0) first = 0;
    top->first = (size_t)first < count ? (size_t)first : count;
}

/* Handles a key. Returns false to quit. */
static bool handle_key(struct top *top, int pressed)
{
    long page = LINES > HEAD_LINES + 2 ? LINES - HEAD_LINES - 2 : 1;
    switch (pressed) {
    case 'q':
    case 'Q':
        return false;
    case 's':
        top->sorting = (enum sorting)((top->sorting + 1) % SORTS);
        break;
    case KEY_DOWN:
    case 'j':
        scroll_by(top, 1);
        break;
    case KEY_UP:
    case 'k':
        scroll_by(top, -1);
        break;
    case KEY_NPAGE:
        scroll_by(top, page);
        break;
    case KEY_PPAGE:
        scroll_by(top, -page);
        break;
    default:
        break;
    }
    return true;
}

static uint64_t now_ms(void)
{
    return bel_clock_mono(bel_clock_system()).ns / NS_PER_MS;
}

static void show(struct top *top)
{
    uint64_t next = now_ms() + top->interval_ms;
    for (bool goes_on = true; goes_on && !was_told;) {
        draw(top);
        uint64_t now = now_ms();
        timeout(next > now ? (int)(next - now) : 0);
        int pressed = getch();
        if (pressed != ERR) goes_on = handle_key(top, pressed);
        if (pressed == ' ' || now_ms() >= next) {
            update(top, pressed == ' ');
            next = now_ms() + top->interval_ms;
        }
    }
}

static int show_screen(struct top *top)
{
    const struct sigaction quits = {.sa_handler = hear_signal};
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        const char *name = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): nothing calls setenv */
        fprintf(stderr, "belfry top: unknown terminal type TERM=%s\n", name ? name : "");
        return CLI_FAILED;
    }
    (void)sigaction(SIGINT, &quits, NULL);
    (void)sigaction(SIGTERM, &quits, NULL);
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    show(top);
    (void)endwin();
    delscreen(screen);
    return CLI_OK;
}

/* --- JSON --- */

/* Prints a delay for JSON. TOP_OVER is the string "inf", as in INFO: JSON has no infinity. */
static const char *json_delay(uint64_t us, char out[TOP_TEXT_BYTES])
{
    if (us == TOP_OVER) return "\"inf\"";
    if (us == TOP_NONE) return "null";
    (void)snprintf(out, TOP_TEXT_BYTES, "%" PRIu64, us);
    return out;
}

static void print_json(const struct top *top)
{
    char delays[4][TOP_TEXT_BYTES];
    const struct top_sample *was = older(top), *is = newer(top);
    printf("{\"server\": ");
    bel__cli_print_json(bel__connect_address(&top->connect));
    printf(", \"version\": \"%s\", \"uptime_s\": %" PRIu64 ", \"clients\": %" PRIu64
           ", \"commands_per_second\": %.1f, \"schedules_per_second\": %.1f, "
           "\"deliveries_per_second\": %.1f, \"acks_per_second\": %.1f, "
           "\"errors_per_second\": %.1f, \"lateness_us\": {\"p50\": %s, \"p99\": %s}, "
           "\"lateness_us_since_start\": {\"p50\": %s, \"p99\": %s}, \"topics\": [",
           is->version, is->counts[TOP_UPTIME_S], is->counts[TOP_CLIENTS],
           bel__top_rate(was, is, TOP_COMMANDS), bel__top_rate(was, is, TOP_SCHEDULES),
           bel__top_rate(was, is, TOP_DELIVERIES), bel__top_rate(was, is, TOP_ACKS),
           bel__top_rate(was, is, TOP_ERRORS),
           json_delay(bel__top_lateness(was, is, 500), delays[0]),
           json_delay(bel__top_lateness(was, is, 990), delays[1]),
           json_delay(is->counts[TOP_LATENESS_US_P50], delays[2]),
           json_delay(is->counts[TOP_LATENESS_US_P99], delays[3]));
    for (size_t i = 0; i < is->topics_count; i++) {
        const struct top_topic *topic = &is->topics[i];
        printf("%s{\"topic\": ", i > 0 ? ", " : "");
        bel__cli_print_json(topic->name);
        printf(", \"paused\": %s, \"scheduled\": %" PRId64 ", \"ready\": %" PRId64
               ", \"leased\": %" PRId64 ", \"dead\": %" PRId64 ", \"oldest_age_ms\": %" PRId64
               ", \"change_per_second\": %.1f}",
               topic->is_paused ? "true" : "false", topic->scheduled, topic->ready, topic->leased,
               topic->dead, topic->oldest_ms, bel__top_change(was, is, topic));
    }
    printf("]}\n");
}

/* --- the verb --- */

static int fail(const struct top *top, int err)
{
    if (err != BEL_EINVAL || top->problem.text[0] == '\0') {
        return bel__connect_failed(&top->connect, err);
    }
    struct bel_value error = {.type = BEL_VALUE_ERROR,
                              .text = {top->problem.text, strlen(top->problem.text)}};
    return bel__connect_refused(&error);
}

static int run(struct top *top)
{
    if (bel__connect_is_store(&top->connect)) {
        return bel__options_complain("top", "shows figures of a server, not of a store");
    }
    int status = bel__connect_open(&top->connect, &top->client);
    if (status != CLI_OK) return status;
    int err = take_sample(top, true);
    if (err) return fail(top, err);
    if (!top->connect.is_json) return show_screen(top);
    (void)poll(NULL, 0, (int)top->interval_ms);
    err = take_sample(top, true);
    if (err) return fail(top, err);
    print_json(top);
    return CLI_OK;
}

int bel__cli_top(int argc, char **argv)
{
    static struct top top = {.interval_ms = INTERVAL_MS}; /* large */
    const struct cli_option items[] = {
        {"interval",
         'i',
         CLI_OPTION_SPAN,
         INTERVAL_MS_MIN,
         INTERVAL_MS_MAX,
         {.number = &top.interval_ms}},
    };
    struct cli_options options = {.verb = argv[0],
                                  .usage = usage,
                                  .items = items,
                                  .count = 1,
                                  .connect = &top.connect,
                                  .needs_server = true};
    int status = bel__options_read(&options, argc, argv);
    if (status >= 0) return status;
    bool has_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    if (!top.connect.is_json && !has_terminal) {
        return bel__options_complain(argv[0], "not a terminal; use --json");
    }
    status = run(&top);
    bel_client_close(top.client);
    return status;
}
