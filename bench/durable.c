/* SPDX-License-Identifier: MIT */

/*
 * Measures durable timers. Runs the steps of the command line in turn:
 *
 *     durable_belfry folder=/var/tmp/x pending=1000000 load batch=100 life batch=1 insert
 *
 *     open      opens the folder; measures the time until the first claim is answered
 *     load      schedules `pending` timers, due at random in the 30 days after tomorrow; in due
 *               order after the word `sorted`, until the word `random`
 *     life      bursts of lifecycles: schedule `batch` due timers, claim them, ack them; each of
 *               the three is a commit
 *     insert    bursts of scheduling, due at random as in load
 *     sustain   lifecycles for `seconds`, without a pause
 *     rotate    like sustain, but claims pending timers as they come due and schedules as many
 *               again; the clock runs fast enough for that
 *     linger    lifecycles until the process is killed, with some ready timers never claimed
 *     flood     scheduling at random until the process is killed, which leaves much to recover
 *
 * Each step prints a line of JSON. A step opens the folder if it is not open.
 */
#include "durable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    BURSTS_MAX = 100,
    SAMPLES_MAX = 1 << 24,
    LEFT_READY = 1000, /* ready timers that linger leaves for the next open */
    STEPS = 3,
    SLICE_NS = 100 * 1000,
};

#define DAY_MS  INT64_C(86400000)
#define NS      1e-9
#define PERIODS 30 /* days that due times are spread over */

const char durable_topic[] = "mail";
const char durable_payload[DURABLE_PAYLOAD_BYTES] = "x";
uint64_t durable_refusals;
int64_t durable_ahead_ms;

struct settings {
    const char *folder;
    uint64_t pending, batch, bursts, seconds_x10, rest_ms;
    bool has_ids;
    bool is_sorted; /* load in due order */
};

static struct settings settings = {
    .pending = 1000000, .batch = 100, .bursts = 5, .seconds_x10 = 20, .rest_ms = 500};
static struct bench_random random_state = {.state = 1};
static struct durable_timer timers[DURABLE_BATCH_MAX];
static uint64_t number_next = 1;
static bool is_open;

/* State of the current step. */
static uint32_t *samples; /* microseconds of each commit */
static size_t samples_count;
static uint64_t step_ns[STEPS];

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t durable_now_ms(void)
{
    return (int64_t)(read_clock(CLOCK_REALTIME) / BENCH_MS) + durable_ahead_ms;
}

void durable_print_id(uint64_t number, char out[DURABLE_ID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    memcpy(out, "job-", 4);
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15); /* a pseudorandom order */
    for (int i = DURABLE_ID_BYTES - 1; i >= 4; i--, mixed >>= 4) {
        out[i] = digits[mixed & 15];
    }
}

/* Returns the anonymous memory of this process, in bytes. */
static uint64_t anonymous_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    uint64_t kilobytes = 0;
    if (file == NULL) bench_fail("cannot read /proc/self/status");
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0) kilobytes = strtoull(line + 8, NULL, 10);
    }
    (void)fclose(file);
    return kilobytes * 1024;
}

static void ensure_open(void)
{
    if (is_open) return;
    durable_open(settings.folder, settings.has_ids);
    number_next = (uint64_t)durable_now_ms() << 20; /* above the numbers of earlier runs */
    random_state.state = number_next;
    is_open = true;
}

/* --- measurements --- */

static void begin_step(void)
{
    if (samples == NULL) samples = malloc(SAMPLES_MAX * sizeof *samples); /* touched as used */
    if (samples == NULL) bench_fail("out of memory");
    samples_count = 0;
    durable_refusals = 0;
    memset(step_ns, 0, sizeof step_ns);
}

static uint64_t note(int step, uint64_t began)
{
    uint64_t now = clock_ns();
    if (samples_count < SAMPLES_MAX) {
        samples[samples_count++] = (uint32_t)((now - began) / BENCH_US);
    }
    step_ns[step] += now - began;
    return now;
}

static int compare_samples(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static double sample_ms(double share)
{
    if (samples_count == 0) return 0;
    size_t index = (size_t)(share * (double)(samples_count - 1));
    return samples[index] / 1000.0;
}

static void print_begin(const char *step)
{
    (void)printf("{\"engine\": \"%s\", \"step\": \"%s\", \"batch\": %llu, \"ids\": %s",
                 engine_traits.name, step, (unsigned long long)settings.batch,
                 settings.has_ids ? "true" : "false");
}

static void print_number(const char *name, double value)
{
    (void)printf(", \"%s\": %.3f", name, value);
}

static void print_commits(uint64_t operations)
{
    static const char *const names[STEPS] = {"schedule_us", "claim_us", "ack_us"};
    qsort(samples, samples_count, sizeof *samples, compare_samples);
    print_number("p50_ms", sample_ms(0.5));
    print_number("p99_ms", sample_ms(0.99));
    print_number("max_ms", sample_ms(1));
    for (int i = 0; i < STEPS; i++) {
        print_number(names[i], (double)step_ns[i] / BENCH_US / (double)(operations + 1));
    }
    print_number("refusals", (double)durable_refusals);
    print_number("anonymous_bytes", (double)anonymous_bytes());
}

static void print_end(void)
{
    (void)printf("}\n");
    (void)fflush(stdout);
}

/* --- steps --- */

/* Returns a random due time; for a sorted load, one a little later than the last. */
static int64_t random_due(void)
{
    if (settings.is_sorted) {
        uint64_t step = number_next % settings.pending;
        return durable_now_ms() + DAY_MS +
               (int64_t)((double)step / (double)settings.pending * (double)(PERIODS * DAY_MS));
    }
    uint64_t span = (uint64_t)(PERIODS * DAY_MS);
    return durable_now_ms() + DAY_MS + (int64_t)(bench_random_next(&random_state) % span);
}

static void schedule(size_t count, bool is_now)
{
    for (size_t i = 0; i < count; i++) {
        timers[i].number = number_next++;
        timers[i].due_ms = is_now ? 0 : random_due();
    }
    durable_schedule(timers, count);
}

/* Runs one round of lifecycles. Returns their number. */
static size_t live(void)
{
    uint64_t at = clock_ns();
    schedule(settings.batch, true);
    at = note(0, at);
    size_t count = durable_claim(settings.batch);
    at = note(1, at);
    if (count == 0) bench_fail("no timer was due");
    durable_ack();
    note(2, at);
    return count;
}

static size_t insert(void)
{
    uint64_t at = clock_ns();
    schedule(settings.batch, false);
    note(0, at);
    return settings.batch;
}

/* Advances the clock until about a batch of timers is due, claims them and schedules as many. */
static size_t rotate(void)
{
    static size_t count = 0;
    durable_ahead_ms += PERIODS * DAY_MS * (int64_t)settings.batch / (int64_t)settings.pending;
    uint64_t at = clock_ns();
    if (count > 0) schedule(count, false);
    at = note(0, at);
    count = durable_claim(DURABLE_BATCH_MAX);
    at = note(1, at);
    if (count > 0) durable_ack();
    note(2, at);
    return count;
}

typedef size_t round_fn(void);

/* Runs rounds for some time. Returns operations per second. */
static double run_burst(round_fn *round, uint64_t *operations)
{
    uint64_t began = clock_ns(), now = began, done = 0;
    while (now - began < settings.seconds_x10 * 100 * BENCH_MS) {
        done += round();
        now = clock_ns();
    }
    *operations += done;
    return (double)done / ((double)(now - began) * NS);
}

/* Lets background work finish. */
static void rest(void)
{
    uint64_t began = clock_ns();
    while (clock_ns() - began < settings.rest_ms * BENCH_MS) {
        durable_rest();
        (void)usleep(1000);
    }
}

static void run_bursts(const char *step, round_fn *round)
{
    uint64_t operations = 0;
    ensure_open();
    begin_step();
    print_begin(step);
    uint64_t own = 0, all = 0;
    for (uint64_t i = 0; i < settings.bursts; i++) {
        rest();
        uint64_t own_began = read_clock(CLOCK_THREAD_CPUTIME_ID);
        uint64_t all_began = read_clock(CLOCK_PROCESS_CPUTIME_ID);
        double rate = run_burst(round, &operations);
        own += read_clock(CLOCK_THREAD_CPUTIME_ID) - own_began;
        all += read_clock(CLOCK_PROCESS_CPUTIME_ID) - all_began;
        (void)printf("%s%.1f", i == 0 ? ", \"rates\": [" : ", ", rate);
    }
    (void)printf("]");
    print_number("operations", (double)operations);
    print_number("cpu_us", (double)own / BENCH_US / (double)operations);
    print_number("cpu_all_us", (double)all / BENCH_US / (double)operations);
    print_commits(operations);
    print_end();
}

static void run_sustained(const char *step, round_fn *round)
{
    uint64_t operations = 0;
    ensure_open();
    begin_step();
    print_begin(step);
    if (round == rotate && durable_ahead_ms == 0) durable_ahead_ms = DAY_MS;
    print_number("rate", run_burst(round, &operations));
    print_commits(operations);
    print_end();
}

static void show_progress(uint64_t done)
{
    static uint64_t shown_ns, shown;
    uint64_t now = clock_ns();
    bool is_person = isatty(STDERR_FILENO) == 1;
    if (now - shown_ns < (is_person ? 1 : 10) * UINT64_C(1000) * BENCH_MS) return;
    if (shown_ns != 0 && done > shown) {
        (void)fprintf(
            stderr, "%s%s: %llu of %llu, %.0f a second%s", is_person ? "\r\033[K" : "",
            engine_traits.name, (unsigned long long)done, (unsigned long long)settings.pending,
            (double)(done - shown) / ((double)(now - shown_ns) * NS), is_person ? "" : "\n");
        (void)fflush(stderr);
    }
    shown_ns = now;
    shown = done;
}

static void load(void)
{
    uint64_t most = 0;
    ensure_open();
    begin_step();
    uint64_t began = clock_ns();
    durable_load_begin();
    for (uint64_t done = 0; done < settings.pending;) {
        uint64_t left = settings.pending - done;
        uint64_t at = clock_ns();
        schedule(left < DURABLE_BATCH_MAX ? left : DURABLE_BATCH_MAX, false);
        note(0, at);
        done += left < DURABLE_BATCH_MAX ? left : DURABLE_BATCH_MAX;
        if (done % 100000 == 0) {
            uint64_t bytes = anonymous_bytes();
            if (bytes > most) most = bytes;
            show_progress(done);
        }
    }
    durable_load_end();
    print_begin("load");
    double seconds = (double)(clock_ns() - began) * NS;
    print_number("seconds", seconds);
    print_number("rate", (double)settings.pending / seconds);
    print_number("anonymous_bytes_max", (double)most);
    print_commits(settings.pending);
    print_end();
}

/* Runs rounds until the process is killed; prints a line when it is ready for that. */
static void linger(const char *step, round_fn *round)
{
    ensure_open();
    for (size_t left = LEFT_READY; left > 0; left -= DURABLE_BATCH_MAX) {
        schedule(DURABLE_BATCH_MAX, true);
    }
    begin_step();
    uint64_t began = clock_ns();
    bool has_said = false;
    for (;;) {
        (void)round();
        samples_count = 0;
        if (has_said || clock_ns() - began < settings.seconds_x10 * 100 * BENCH_MS) continue;
        has_said = true;
        print_begin(step);
        print_end();
    }
}

static void open_again(void)
{
    uint64_t began = clock_ns();
    durable_open(settings.folder, settings.has_ids);
    is_open = true;
    uint64_t opened = clock_ns();
    if (durable_claim(1) != 1) bench_fail("no timer to claim after opening");
    uint64_t claimed = clock_ns();
    print_begin("open");
    print_number("open_ms", (double)(opened - began) / BENCH_MS);
    print_number("claim_ms", (double)(claimed - began) / BENCH_MS);
    print_number("anonymous_bytes", (double)anonymous_bytes());
    print_end();
    durable_ack();
}

/* --- the command line --- */

static bool set(const char *word)
{
    const struct {
        const char *name;
        uint64_t *value, max;
    } names[] = {
        {"pending=", &settings.pending, UINT64_C(1000000000)},
        {"batch=", &settings.batch, DURABLE_BATCH_MAX},
        {"bursts=", &settings.bursts, BURSTS_MAX},
        {"tenths=", &settings.seconds_x10, 36000},
        {"rest=", &settings.rest_ms, 60000},
    };
    if (strncmp(word, "folder=", 7) == 0) {
        settings.folder = word + 7;
        return true;
    }
    if (strcmp(word, "ids") == 0) {
        settings.has_ids = true;
        return true;
    }
    if (strcmp(word, "sorted") == 0 || strcmp(word, "random") == 0) {
        settings.is_sorted = word[0] == 's';
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes = strlen(names[i].name);
        if (strncmp(word, names[i].name, bytes) != 0) continue;
        *names[i].value = bench_parse_number(word + bytes, names[i].max);
        return true;
    }
    return false;
}

static void run(const char *step)
{
    if (settings.folder == NULL) bench_fail("no folder: give folder=PATH");
    if (strcmp(step, "open") == 0) {
        open_again();
    } else if (strcmp(step, "load") == 0) {
        load();
    } else if (strcmp(step, "life") == 0) {
        run_bursts(step, live);
    } else if (strcmp(step, "insert") == 0) {
        run_bursts(step, insert);
    } else if (strcmp(step, "sustain") == 0) {
        run_sustained(step, live);
    } else if (strcmp(step, "rotate") == 0) {
        run_sustained(step, rotate);
    } else if (strcmp(step, "linger") == 0) {
        linger(step, live);
    } else if (strcmp(step, "flood") == 0) {
        linger(step, insert);
    } else {
        bench_fail("unknown step");
    }
}

/*
 * Asks the scheduler for a short time slice. A thread that waits for a sync is then woken at once,
 * even if another program is computing, which would otherwise dominate the measurement. Older
 * kernels ignore it.
 */
static void ask_short_slice(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof attributes, .runtime = SLICE_NS};
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

int main(int argc, char **argv)
{
    ask_short_slice();
    for (int i = 1; i < argc; i++) {
        if (!set(argv[i])) run(argv[i]);
    }
    if (is_open) durable_close();
    return 0;
}
