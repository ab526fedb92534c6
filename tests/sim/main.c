/* SPDX-License-Identifier: MIT */

/*
 * The simulator: one thread, one seed, one history.
 *
 *     sim --seed 7                     one history, and whether it was right
 *     sim --seeds 1-2000               many
 *     sim --seed 7 --faults crash,sync --ops 500 --loud
 *     sim --seed 7 --sessions          asked in bytes by clients, as half of the seeds are
 *     sim --seeds 1-40 --bug ties      with a bug of bugs.txt (runs sim_bugs beside it)
 *     sim --test 1-2000                as a test; twenty times as many with BEL_TEST_LONG
 *     sim --long 1-5000 --ops 2000     as a test that is skipped without BEL_TEST_LONG
 *     sim_bugs --test 80               every bug of bugs.txt must be found within 80 seeds
 */
#include "world.h"

#ifdef SIM_BUGS
#    include "bugs.h"
#endif

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ORDERS_DEFAULT = 220,
    SHOWN_MAX = 5,
    TWICE_EVERY = 100,
    SKIPPED = 77,
    SECONDS_MAX = 60, /* of processor time for one turn of the engine or the model */
};

struct task {
    uint64_t first, last, orders;
    const char *faults; /* as given, or NULL: as drawn */
    const char *bug;    /* its name, or NULL: none */
    bool is_loud, is_swarm, is_quiet, is_test, is_long, is_spoken;
};

/* The history that runs, and its command, for the message of one that dies. */
static struct world world;
static char doing[300];

static void print_command(const struct task *task, uint64_t seed, char *out, size_t room)
{
    int bytes =
        snprintf(out, room, "build/sim --seed %" PRIu64 " --ops %" PRIu64, seed, task->orders);
    if (task->faults != NULL && bytes > 0 && (size_t)bytes < room) {
        bytes += snprintf(out + bytes, room - (size_t)bytes, " --faults %s", task->faults);
    }
    if (task->is_spoken && bytes > 0 && (size_t)bytes < room) {
        bytes += snprintf(out + bytes, room - (size_t)bytes, " --sessions");
    }
    if (task->bug != NULL && bytes > 0 && (size_t)bytes < room) {
        (void)snprintf(out + bytes, room - (size_t)bytes, " --bug %s", task->bug);
    }
}

static void died(int number)
{
    const char *what = number == SIGVTALRM ? "endless" : "abort";
    char line[500];
    int bytes = snprintf(line, sizeof line, "FAIL %s invariant=%s\n", doing, what);
    if (bytes > 0) (void)!write(STDOUT_FILENO, line, (size_t)bytes);
    _exit(1);
}

/* Comes with every second of processor time, whatever the clock on the wall says. */
static void tick(int number)
{
    static uint64_t work;
    static unsigned seconds;
    seconds = world.work == work ? seconds + 1 : 0;
    work = world.work;
    if (seconds == SECONDS_MAX) died(number);
}

/* On a stack of its own, because what dies may have used up the other. */
static void catch_signals(void)
{
    static char stack[64 << 10];
    static const int numbers[] = {SIGABRT, SIGSEGV};
    struct sigaction action = {.sa_handler = died, .sa_flags = SA_ONSTACK};
    (void)sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)sigaction(numbers[i], &action, NULL);
    }
    action.sa_handler = tick;
    action.sa_flags |= SA_RESTART;
    (void)sigaction(SIGVTALRM, &action, NULL);
}

/* Begins to tick, in this process: one that is forked does not. */
static void start_ticking(void)
{
    struct timeval second = {.tv_sec = 1};
    (void)setitimer(ITIMER_VIRTUAL, &(struct itimerval){second, second}, NULL);
}

/* What comes and goes with every history stays with the process: twice as fast. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30); /* NOLINT(concurrency-mt-unsafe) */
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30); /* NOLINT(concurrency-mt-unsafe) */
}

static bool read_faults(const char *list, bool *out)
{
    for (int i = 0; i < FAULTS; i++) {
        out[i] = strcmp(list, "all") == 0;
    }
    if (strcmp(list, "all") == 0 || strcmp(list, "none") == 0) return true;
    for (const char *at = list; *at != 0;) {
        size_t bytes = strcspn(at, ",");
        enum fault fault;
        if (!fault_find(at, bytes, &fault)) return false;
        out[fault] = true;
        at += bytes + (at[bytes] == ',');
    }
    return true;
}

static void print_result(const struct task *task, const struct world *was)
{
    char command[300];
    uint64_t seed = was->config.seed;
    if (!was->has_failed) {
        printf("PASS seed=%" PRIu64 " hash=%016" PRIx64 " turns=%" PRIu64 " orders=%" PRIu64
               " deliveries=%" PRIu64 " crashes=%" PRIu64 " opens=%" PRIu64 " refused=%" PRIu64
               " judged=%s\n",
               seed, was->hash, was->turns, was->drawn, was->deliveries, was->crashes, was->opens,
               was->refusals, was->judge != NULL ? "yes" : was->unjudged);
        return;
    }
    print_command(task, seed, command, sizeof command);
    printf("FAIL seed=%" PRIu64 " invariant=%s %s; again with: %s\n", seed, was->invariant,
           was->detail, command);
}

struct totals {
    uint64_t runs, failures, judged, crashes, deliveries, turns, refusals;
};

/* One history. Returns whether it was right. */
static bool run_seed(const struct task *task, uint64_t seed, struct totals *totals,
                     uint64_t *out_hash)
{
    bool faults[FAULTS];
    bool is_given = task->faults != NULL && read_faults(task->faults, faults);
    struct config config = config_draw(seed, task->orders, is_given ? faults : NULL);
    char command[300];
    config.is_loud = task->is_loud;
    if (task->is_spoken) config_speak(&config);
    print_command(task, seed, command, sizeof command);
    (void)snprintf(doing, sizeof doing, "seed=%" PRIu64 " again with: %.250s", seed, command);
    start_ticking();
    world_init(&world, &config);
    run(&world);
    bool is_right = !world.has_failed;
    bool is_shown =
        !task->is_quiet && (!task->is_swarm || (!is_right && totals->failures < SHOWN_MAX));
    if (is_shown) print_result(task, &world);
    *out_hash = world.hash;
    totals->runs++;
    totals->failures += !is_right;
    totals->judged += world.judge != NULL;
    totals->crashes += world.crashes;
    totals->deliveries += world.deliveries;
    totals->turns += world.turns;
    totals->refusals += world.refusals;
    world_finish(&world);
    return is_right;
}

static bool run_swarm(const struct task *task, struct totals *totals)
{
    for (uint64_t seed = task->first; seed <= task->last; seed++) {
        uint64_t hash, again;
        bool is_right = run_seed(task, seed, totals, &hash);
        if (!is_right && task->bug != NULL) return false; /* that is all we wanted to know */
        if (!is_right || !task->is_swarm || seed % TWICE_EVERY != 0) continue;
        struct totals ignored = {0};
        (void)run_seed(task, seed, &ignored, &again);
        if (hash == again) continue;
        printf("FAIL seed=%" PRIu64 " invariant=deterministic hash=%016" PRIx64
               " and then %016" PRIx64 "\n",
               seed, hash, again);
        totals->failures++;
    }
    return totals->failures == 0;
}

static int run_task(const struct task *task)
{
    struct totals totals = {0};
    bool is_right = run_swarm(task, &totals);
    if (task->is_swarm) {
        printf("%s seeds=%" PRIu64 "-%" PRIu64 " runs=%" PRIu64 " failed=%" PRIu64
               " judged=%" PRIu64 " turns=%" PRIu64 " deliveries=%" PRIu64 " crashes=%" PRIu64
               " refused=%" PRIu64 "\n",
               is_right ? "PASS" : "FAIL", task->first, task->last, totals.runs, totals.failures,
               totals.judged, totals.turns, totals.deliveries, totals.crashes, totals.refusals);
    }
    return is_right ? 0 : 1;
}

#ifdef SIM_BUGS
enum bug planted_bug;
static const char *const bug_names[BUGS] = {BUG_NAMES};

/* Switches on the bug of a task. Returns -1, or an exit status if there is no bug of that name. */
static int switch_bug(const struct task *task, char **argv)
{
    (void)argv;
    for (unsigned bug = 1; bug < BUGS; bug++) {
        if (strcmp(bug_names[bug], task->bug) != 0) continue;
        planted_bug = bug;
        return -1;
    }
    fprintf(stderr, "sim: unknown bug '%s'; tests/sim/bugs.txt has all names\n", task->bug);
    return 2;
}

/* Looks for one bug, in another process, because it may well die of it. */
static bool find_bug(const struct task *task, enum bug bug)
{
    int status;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        struct task hunt = *task;
        if (freopen("/dev/null", "w", stdout) == NULL) _exit(2);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
        if (bug != BUG_NONE) hunt.bug = bug_names[bug];
        planted_bug = bug;
        _exit(run_task(&hunt));
    }
    if (waitpid(child, &status, 0) != child) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static int run_test(const struct task *task)
{
    int missed = find_bug(task, BUG_NONE);
    printf("%s no_bug_is_found_where_there_is_none\n", missed == 0 ? "ok  " : "FOUND");
    for (unsigned bug = 1; bug < BUGS; bug++) {
        bool is_found = find_bug(task, bug);
        printf("%s %s_is_found\n", is_found ? "ok  " : "MISSED", bug_names[bug]);
        missed += !is_found;
    }
    return missed == 0 ? 0 : 1;
}
#else
/* Becomes the program that has the bugs, which lies beside this one. Returns an exit status if it
 * cannot be run. */
static int switch_bug(const struct task *task, char **argv)
{
    char path[4096];
    (void)task;
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 16);
    if (bytes <= 0) return 2;
    path[bytes] = 0;
    (void)snprintf(path + bytes, sizeof path - (size_t)bytes, "_bugs");
    execv(path, argv);
    perror(path);
    return 2;
}

static int run_test(const struct task *task)
{
    struct task all = *task;
    all.first = cases_count(task->first - 1) + 1;
    all.last = cases_count(task->last);
    int status = run_task(&all);
    if (status == 0) printf("ok   histories_%" PRIu64 "_to_%" PRIu64 "\n", all.first, all.last);
    return status;
}
#endif

static bool parse_range(const char *text, struct task *task)
{
    char *end;
    task->first = strtoull(text, &end, 0);
    task->last = task->first;
    if (*end == '-') task->last = strtoull(end + 1, &end, 0);
    return *end == 0 && task->first <= task->last;
}

static bool parse(int argc, char **argv, struct task *task)
{
    bool faults[FAULTS];
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--loud") == 0) {
            task->is_loud = true;
            continue;
        }
        if (strcmp(name, "--sessions") == 0) {
            task->is_spoken = true;
            continue;
        }
        if (value == NULL) return false;
        i++;
        if (strcmp(name, "--seed") == 0) {
            if (!parse_range(value, task)) return false;
        } else if (strcmp(name, "--seeds") == 0) {
            task->is_swarm = true;
            if (!parse_range(value, task)) return false;
        } else if (strcmp(name, "--test") == 0) {
            task->is_swarm = task->is_test = true;
            if (!parse_range(value, task)) return false;
            if (strchr(value, '-') == NULL) task->first = 1;
        } else if (strcmp(name, "--long") == 0) {
            task->is_swarm = task->is_long = true;
            if (!parse_range(value, task)) return false;
        } else if (strcmp(name, "--ops") == 0) {
            task->orders = strtoull(value, NULL, 0);
        } else if (strcmp(name, "--faults") == 0) {
            if (!read_faults(value, faults)) return false;
            task->faults = value;
        } else if (strcmp(name, "--bug") == 0) {
            task->bug = value;
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct task task = {.first = 1, .last = 1, .orders = ORDERS_DEFAULT};
    if (!parse(argc, argv, &task)) {
        fprintf(stderr,
                "usage: sim [--seed N | --seeds A-B] [--ops M] [--faults LIST] [--bug NAME] "
                "[--sessions] [--loud]\n");
        return 2;
    }
    bool is_long = getenv("BEL_TEST_LONG") != NULL; /* NOLINT(concurrency-mt-unsafe) */
    if (task.is_long && !is_long) return SKIPPED;
    int status = task.bug != NULL ? switch_bug(&task, argv) : -1;
    if (status >= 0) return status;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    keep_memory();
    catch_signals();
    return task.is_test ? run_test(&task) : run_task(&task);
}
