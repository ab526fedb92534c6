/* SPDX-License-Identifier: MIT */

/*
 * Durable reminders: short commands schedule, list and cancel; `remind run` prints due reminders.
 *
 *     remind in 10m "tea"
 *     remind at 2026-12-01T09:00[Europe/Berlin] "call Ada"
 *     remind every weekday at 9:15 "stand up"
 *     remind run
 *
 * This file has the short commands; remind_run.c has `remind run`. A data directory belongs to one
 * engine: while `remind run` has it open, the short commands send it their arguments over a socket
 * and print its reply.
 *
 * A short command needs no loop: it opens the engine, calls bel_backend_call(), and closes it.
 */
#include "remind.h"

#include <belfry/duration.h>
#include <belfry/instant.h>
#include <belfry/plan.h>

#include <assert.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ID_BYTES = 5,
    ID_TRIES = 100,
    BUSY_TRIES = 200,
    BUSY_MS = 25,
    PAGE = 100,
};

static const char usage[] =
    "usage: remind [--data DIR] [--tz ZONE] COMMAND\n"
    "\n"
    "    in TIME TEXT              after a delay: 10m, 1h30m, 2d\n"
    "    at TIME TEXT              2026-12-01T09:00, 2026-12-01T09:00[Europe/Berlin], ...Z\n"
    "    every day [at H:MM] TEXT  also hour, weekday, monday ... sunday (default 9:00)\n"
    "    every RULE TEXT           '0 9 1 * *', '90m', 'FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9'\n"
    "    list                      list pending reminders\n"
    "    cancel ID...              cancel reminders\n"
    "    run [--exec CMD] [--once] print due reminders, or run CMD with the text as its argument,\n"
    "                              until SIGTERM; --once: only reminders that are due now\n"
    "\n"
    "    --data DIR   data directory (default ~/.local/share/belfry-remind)\n"
    "    --tz ZONE    time zone of times (default: the system's)\n"
    "\n"
    "Exit status: 0 success, 1 failure, 2 invalid command line.\n";

static int refuse_usage(const struct order *order)
{
    (void)fputs(usage, order->out);
    return EXIT_USAGE;
}

/* Shows where a text is wrong. */
static int refuse(const struct order *order, const char *text, const struct bel_text_error *why)
{
    (void)fprintf(order->out, "remind: expected %s\n    %s\n    %*s^\n", why->expected, text,
                  (int)why->position, "");
    return EXIT_USAGE;
}

static void print_time(const struct remind *remind, FILE *out, struct bel_wall at)
{
    char text[BEL_INSTANT_BYTES];
    (void)bel_instant_print_zoned(at, remind->zone, text, sizeof text);
    (void)fputs(text, out);
}

/* --- in, at, every --- */

/* Four letters or digits that look unlike each other, and are easily typed. */
static int make_id(char id[ID_BYTES])
{
    static const char letters[] = "23456789abcdefghijkmnpqrstuvwxyz";
    static_assert(sizeof letters == 33, "a letter is five bits");
    unsigned char bytes[ID_BYTES - 1];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return BEL_EIO;
    for (size_t i = 0; i < sizeof bytes; i++) {
        id[i] = letters[bytes[i] % 32];
    }
    id[ID_BYTES - 1] = 0;
    return 0;
}

static void note_why(struct bel_request *request, const struct bel_reply *reply)
{
    if (reply->err) (void)snprintf(request->user, sizeof reply->why, "%s", reply->why);
}

struct found {
    bool is_there;
    struct bel_wall due;
};

static void note_due(struct bel_request *request, const struct bel_reply *reply)
{
    struct found *found = request->user;
    if (reply->err != 0 || reply->timers.count == 0) return;
    found->is_there = true;
    found->due = reply->timers.items[0].due;
}

static struct found find(struct remind *remind, const char *id)
{
    struct found found = {0};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_GET, .target = {.topic = BEL_VIEW(TOPIC), .id = view_of(id)}},
        .done = note_due,
        .user = &found};
    return call(remind, &request) == 0 ? found : (struct found){0};
}

/* Schedules under an id that nothing else has. */
static int schedule(struct remind *remind, const struct order *order,
                    const struct bel_schedule_spec *spec)
{
    char id[ID_BYTES], why[160] = "";
    int error = BEL_ECONFLICT;
    for (int i = 0; i < ID_TRIES && error == BEL_ECONFLICT; i++) {
        struct bel_request request = {.command = {.verb = BEL_VERB_SCHEDULE, .schedule = *spec},
                                      .done = note_why,
                                      .user = why};
        error = make_id(id);
        if (error) break;
        request.command.schedule.topic = BEL_VIEW(TOPIC);
        request.command.schedule.id = view_of(id);
        request.command.schedule.conflict = BEL_CONFLICT_REJECT;
        error = call(remind, &request);
    }
    if (error) {
        (void)fprintf(order->out, "remind: %s\n", why[0] != 0 ? why : bel_error_text(error));
        return error == BEL_EINVAL ? EXIT_USAGE : EXIT_FAILED;
    }
    struct found found = find(remind, id);
    (void)fprintf(order->out, "%s  ", id);
    if (found.is_there) print_time(remind, order->out, found.due);
    (void)fputc('\n', order->out);
    return 0;
}

static int do_in(struct remind *remind, const struct order *order)
{
    char **words = order->words;
    struct bel_schedule_spec spec = {.when = BEL_WHEN_IN};
    struct bel_text_error why;
    if (words[1] == NULL || words[2] == NULL || words[3] != NULL) return refuse_usage(order);
    if (bel_duration_parse(words[1], strlen(words[1]), &spec.delay_ms, &why) != 0) {
        return refuse(order, words[1], &why);
    }
    spec.payload = view_of(words[2]);
    return schedule(remind, order, &spec);
}

/* A time without a zone is one on our own clock. */
static int parse_time(struct remind *remind, const char *text, struct bel_wall *out,
                      struct bel_text_error *why)
{
    struct bel_instant_options options = {.zones = remind->zones};
    char zoned[256];
    int error = bel_instant_parse(text, strlen(text), &options, out, why);
    int bytes = snprintf(zoned, sizeof zoned, "%s[%s]", text, bel_zone_name(remind->zone));
    if (error != BEL_EINVAL || bytes >= (int)sizeof zoned) return error;
    return bel_instant_parse(zoned, (size_t)bytes, &options, out, NULL);
}

static int do_at(struct remind *remind, const struct order *order)
{
    char **words = order->words;
    struct bel_schedule_spec spec = {.when = BEL_WHEN_AT};
    struct bel_text_error why = {0};
    if (words[1] == NULL || words[2] == NULL || words[3] != NULL) return refuse_usage(order);
    int error = parse_time(remind, words[1], &spec.at, &why);
    if (error == BEL_EINVAL) return refuse(order, words[1], &why);
    if (error) return (void)fprintf(order->out, "remind: %s\n", bel_error_text(error)), EXIT_FAILED;
    if (spec.at.ms < bel_clock_wall(bel_clock_system()).ms) {
        (void)fprintf(order->out, "remind: %s is over\n", words[1]);
        return EXIT_FAILED;
    }
    spec.payload = view_of(words[2]);
    return schedule(remind, order, &spec);
}

/* The days of a word, as the last fields of a cron rule; NULL if it is none. */
static const char *days_of(const char *word)
{
    static const char *const days[][2] = {
        {"day", "* * *"},     {"weekday", "* * 1-5"}, {"monday", "* * 1"},
        {"tuesday", "* * 2"}, {"wednesday", "* * 3"}, {"thursday", "* * 4"},
        {"friday", "* * 5"},  {"saturday", "* * 6"},  {"sunday", "* * 0"},
    };
    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        if (strcmp(days[i][0], word) == 0) return days[i][1];
    }
    return NULL;
}

/* Makes a rule from `every day at 9:15`, and moves on to the text behind it. */
static bool read_rule(char ***words, char *rule, size_t room)
{
    unsigned hour = 9, minute = 0;
    int end = 0;
    const char *word = *(*words)++, *days = days_of(word);
    if (days == NULL) {
        return snprintf(rule, room, "%s", strcmp(word, "hour") == 0 ? "0 * * * *" : word) <
               (int)room;
    }
    if (**words != NULL && strcmp(**words, "at") == 0) {
        const char *time = *++*words;
        /* NOLINTNEXTLINE(cert-err34-c): what is too large is refused below */
        if (time == NULL || sscanf(time, "%2u:%2u%n", &hour, &minute, &end) != 2) return false;
        if (time[end] != 0 || hour > 23 || minute > 59) return false;
        ++*words;
    }
    return snprintf(rule, room, "%u %u %s", minute, hour, days) < (int)room;
}

static int do_every(struct remind *remind, const struct order *order)
{
    char rule[BEL_CRON_TEXT_MAX + 1], **words = order->words + 1;
    struct bel_text_error why;
    struct bel_plan *plan;
    struct bel_plan_options options = {.zone = remind->zone};
    if (words[0] == NULL || !read_rule(&words, rule, sizeof rule)) return refuse_usage(order);
    if (words[0] == NULL || words[1] != NULL) return refuse_usage(order);
    int error = bel_plan_create(rule, strlen(rule), &options, &plan, &why);
    if (error == BEL_EINVAL) return refuse(order, rule, &why);
    if (error) return (void)fprintf(order->out, "remind: %s\n", bel_error_text(error)), EXIT_FAILED;
    struct bel_schedule_spec spec = {
        .payload = view_of(words[0]),
        .plan = {.kind = bel_plan_kind(plan),
                 .rule = view_of(rule),
                 .zone = view_of(bel_zone_name(remind->zone)),
                 .misfire = BEL_MISFIRE_LAST, /* once, if nobody was there to say it */
                 .overlap = BEL_OVERLAP_ALLOW},
    };
    bel_plan_destroy(plan);
    return schedule(remind, order, &spec);
}

/* --- list, cancel --- */

struct page {
    struct remind *remind;
    FILE *out;
    char cursor[1024];
    size_t cursor_bytes;
    uint64_t count;
};

static void print_page(struct bel_request *request, const struct bel_reply *reply)
{
    struct page *page = request->user;
    page->cursor_bytes = 0;
    if (reply->err) return;
    for (size_t i = 0; i < reply->timers.count; i++) {
        const struct bel_timer *timer = &reply->timers.items[i];
        (void)fprintf(page->out, "%.*s  ", (int)timer->id.bytes, (const char *)timer->id.data);
        if (timer->state < BEL_DONE) print_time(page->remind, page->out, timer->due);
        if (timer->state != BEL_SCHEDULED) {
            (void)fprintf(page->out, "  (%s)", bel_state_name(timer->state));
        }
        (void)fprintf(page->out, "  %.*s", (int)timer->payload.bytes,
                      (const char *)timer->payload.data);
        if (timer->plan.rule.bytes > 0) {
            (void)fprintf(page->out, "  (every %.*s)", (int)timer->plan.rule.bytes,
                          (const char *)timer->plan.rule.data);
        }
        (void)fputc('\n', page->out);
    }
    page->count += reply->timers.count;
    if (reply->timers.cursor.bytes == 0) return;
    if (reply->timers.cursor.bytes > sizeof page->cursor) return;
    page->cursor_bytes = reply->timers.cursor.bytes;
    memcpy(page->cursor, reply->timers.cursor.data, page->cursor_bytes);
}

static int do_list(struct remind *remind, const struct order *order)
{
    struct page page = {.remind = remind, .out = order->out};
    if (order->words[1] != NULL) return refuse_usage(order);
    do {
        struct bel_request request = {
            .command = {.verb = BEL_VERB_LIST,
                        .list = {.topic = BEL_VIEW(TOPIC),
                                 .count = PAGE,
                                 .cursor = {.data = page.cursor, .bytes = page.cursor_bytes}}},
            .done = print_page,
            .user = &page};
        int error = call(remind, &request);
        if (error) {
            (void)fprintf(order->out, "remind: %s\n", bel_error_text(error));
            return EXIT_FAILED;
        }
    } while (page.cursor_bytes > 0);
    return 0;
}

static void note_count(struct bel_request *request, const struct bel_reply *reply)
{
    if (reply->err == 0) *(uint64_t *)request->user = reply->count;
}

static int do_cancel(struct remind *remind, const struct order *order)
{
    int status = 0;
    if (order->words[1] == NULL) return refuse_usage(order);
    for (char **word = order->words + 1; *word != NULL; word++) {
        uint64_t count = 0;
        struct bel_view id = view_of(*word);
        struct bel_request request = {
            .command = {.verb = BEL_VERB_CANCEL,
                        .cancel = {.topic = BEL_VIEW(TOPIC), .ids = &id, .ids_count = 1}},
            .done = note_count,
            .user = &count};
        int error = call(remind, &request);
        if (error == 0 && count == 1) continue;
        (void)fprintf(order->out, "remind: %s: %s\n", *word,
                      error ? bel_error_text(error) : "there is no such reminder");
        status = EXIT_FAILED;
    }
    return status;
}

int do_order(struct remind *remind, const struct order *order)
{
    static const struct {
        const char *name;
        int (*run)(struct remind *remind, const struct order *order);
    } commands[] = {{"in", do_in},     {"at", do_at},         {"every", do_every},
                    {"list", do_list}, {"cancel", do_cancel}, {NULL, NULL}};
    for (size_t i = 0; order->words[0] != NULL && commands[i].name != NULL; i++) {
        if (strcmp(commands[i].name, order->words[0]) == 0) return commands[i].run(remind, order);
    }
    return refuse_usage(order);
}

/* --- the command line --- */

/* Says where the system's clock is, or UTC. */
static const char *find_zone_name(char *path, size_t room)
{
    const char *name = getenv("TZ"); /* NOLINT(concurrency-mt-unsafe): there is one thread */
    if (name != NULL && name[0] != 0) return name[0] == ':' ? name + 1 : name;
    ssize_t bytes = readlink("/etc/localtime", path, room - 1);
    path[bytes > 0 ? bytes : 0] = 0;
    char *found = strstr(path, "zoneinfo/");
    return found != NULL ? found + strlen("zoneinfo/") : "UTC";
}

static void open_zones(struct remind *remind, const char *name)
{
    char path[PATH_MAX];
    bool is_said = name != NULL;
    if (!is_said) name = find_zone_name(path, sizeof path);
    int error = bel_zones_open(NULL, &remind->zones);
    if (error) errx(EXIT_FAILED, "time zones: %s", bel_error_text(error));
    error = bel_zones_find(remind->zones, name, strlen(name), &remind->zone);
    if (error && is_said) errx(EXIT_USAGE, "--tz %s: expected the name of a zone", name);
    if (error) remind->zone = bel_zone_utc();
}

/* Makes a folder, and those above it. */
static void make_folder(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) {
        errx(EXIT_USAGE, "the name of the folder is too long");
    }
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) err(EXIT_FAILED, "%s", path);
}

static const char *default_folder(void)
{
    static char path[PATH_MAX];
    const char *home = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe): there is one thread */
    if (home == NULL) errx(EXIT_USAGE, "there is no HOME; say --data DIR");
    (void)snprintf(path, sizeof path, "%s/.local/share/belfry-remind", home);
    return path;
}

/* Whoever has it for a moment only will give it back. */
static int open_engine(struct remind *remind, const struct order *order, bool runs)
{
    struct bel_engine_why why;
    int error = BEL_EBUSY;
    for (int i = 0; i < BUSY_TRIES && error == BEL_EBUSY; i++) {
        struct bel_engine_options options = {.folder = remind->folder,
                                             .now = bel_clock_now(bel_clock_system()),
                                             .zones = remind->zones};
        error = bel_engine_open(&options, &remind->engine, &why);
        if (error != BEL_EBUSY) break;
        if (runs && has_runner(remind)) errx(EXIT_FAILED, "one runs already in %s", remind->folder);
        int status = runs ? -1 : ask_runner(remind, order);
        if (status >= 0) return status;
        (void)poll(NULL, 0, BUSY_MS);
    }
    if (error == BEL_EBUSY) errx(EXIT_FAILED, "somebody else has %s", remind->folder);
    if (error) errx(EXIT_FAILED, "%s: %s. %s", remind->folder, bel_error_text(error), why.text);
    remind->backend = bel_engine_backend(remind->engine);
    return -1;
}

/* Reads options up to the first word that is none, or up to the last. */
static const char *read_options(struct remind *remind, int argc, char **argv)
{
    static const struct option names[] = {
        {"data", required_argument, NULL, 'd'}, {"tz", required_argument, NULL, 'z'},
        {"exec", required_argument, NULL, 'e'}, {"once", no_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},       {0}};
    const char *zone = NULL;
    int name;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    while ((name = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        switch (name) {
        case 'd':
            remind->folder = optarg;
            break;
        case 'z':
            zone = optarg;
            break;
        case 'e':
            remind->command = optarg;
            break;
        case 'o':
            remind->once = true;
            break;
        default:
            (void)fputs(usage, name == 'h' ? stdout : stderr);
            exit(name == 'h' ? 0 : EXIT_USAGE); /* NOLINT(concurrency-mt-unsafe) */
        }
    }
    return zone;
}

/* What went well is printed on standard output, what did not on standard error. */
int main(int argc, char **argv)
{
    struct remind remind = {0};
    char *text = NULL;
    size_t text_bytes = 0;
    const char *zone = read_options(&remind, argc, argv);
    if (optind == argc) return (void)fputs(usage, stderr), EXIT_USAGE;
    struct order order = {.words = argv + optind, .out = open_memstream(&text, &text_bytes)};
    bool runs = optind < argc && strcmp(argv[optind], "run") == 0 && argv[optind + 1] == NULL;
    if (order.out == NULL) err(EXIT_FAILED, "memory");
    if (remind.folder == NULL) remind.folder = default_folder();
    open_zones(&remind, zone);
    make_folder(remind.folder);
    int status = open_engine(&remind, &order, runs);
    if (status < 0) status = runs ? run(&remind) : do_order(&remind, &order);
    bel_engine_close(remind.engine);
    bel_zones_close(remind.zones);
    (void)fclose(order.out);
    (void)fwrite(text, 1, text_bytes, status == 0 ? stdout : stderr);
    free(text);
    return fflush(stdout) == 0 ? status : EXIT_FAILED;
}
