/* SPDX-License-Identifier: MIT */

/*
 * kill -9, repeatedly. A victim process works in a folder and reports each request and each reply
 * to the judge through a pipe. It is killed at a random moment. Then another process opens the
 * folder and compares it with the judge's book. Sometimes that process is killed as well, and
 * another one repeats the comparison.
 *
 *     fault_kill 4711        runs only that seed
 */
#include "scene.h"
#include "victim.h"

#include "../check.h"
#include "../random.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILLS = 100, /* per seed */
    SEEDS = 1,
    WORK_MS_MAX = 150,
    OPEN_MS_MAX = 8,
    TURNS = 1000 * 1000, /* more than fit into the time */
};

static struct book *book;
static char folder[SCENE_PATH_BYTES];
static uint64_t chance, interrupted;

/* In the victim: sends a line to the judge. */
static void tell(void *context, const struct line *line)
{
    CHECK(write(*(int *)context, line, sizeof *line) == (ssize_t)sizeof *line);
}

struct round {
    uint64_t number, seed;
    bool is_check, closes;
};

static void live(const struct round *round, int pipe_end)
{
    struct victim victim;
    struct victim_options options = {
        .folder = folder, .round = round->number, .book = book, .tell = tell, .context = &pipe_end};
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    if (round->is_check) {
        (void)victim_check(&victim);
    } else {
        victim_work(&victim, round->seed, TURNS);
    }
    if (round->closes) victim_close(&victim);
    _exit(0);
}

/* Reads lines until a time, if it is not 0. Returns whether the pipe has ended. */
static bool listen_until(int pipe_end, uint64_t until)
{
    struct line line;
    for (;;) {
        struct pollfd what = {.fd = pipe_end, .events = POLLIN};
        uint64_t now = until > 0 ? scene_ms() : 0;
        if (until > 0 && (now >= until || poll(&what, 1, (int)(until - now)) == 0)) return false;
        ssize_t bytes = read(pipe_end, &line, sizeof line);
        if (bytes == 0) return true;
        CHECK(bytes == (ssize_t)sizeof line);
        book_take(book, &line);
        if (line.kind == LINE_CHECKED) until = 0; /* after it the process only closes */
    }
}

/* Runs a process, for at most `ms` if that is not negative. Returns whether it has exited. */
static bool run(const struct round *round, int ms)
{
    int ends[2], status;
    CHECK(pipe(ends) == 0);
    (void)fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)close(ends[0]);
        live(round, ends[1]);
    }
    (void)close(ends[1]);
    if (!listen_until(ends[0], ms < 0 ? 0 : scene_ms() + (uint64_t)ms)) {
        (void)kill(child, SIGKILL);
        (void)listen_until(ends[0], 0);
    }
    (void)close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) || was_killed);
    return !was_killed;
}

static void kill_and_check(uint64_t number)
{
    struct round work = {.number = 2 * number, .seed = random_u64(&chance)};
    struct round check = {.number = 2 * number + 1, .is_check = true};
    CHECK_NOTE("kill %" PRIu64, number);
    CHECK(!run(&work, (int)random_below(&chance, WORK_MS_MAX)));
    scene_check(folder);
    check.closes = random_below(&chance, 2) == 0;
    if (random_below(&chance, 2) == 0) {
        interrupted += !run(&check, (int)random_below(&chance, OPEN_MS_MAX));
    }
    CHECK(run(&check, -1));
}

static void run_seed(uint64_t seed)
{
    chance = seed;
    book = book_create(false);
    scene_make(folder);
    for (uint64_t i = 0; i < KILLS; i++) {
        kill_and_check(i);
    }
    CHECK(book->told_count > KILLS); /* it has done work between the kills */
    printf("ok   nothing_acknowledged_is_lost_or_comes_back (seed %" PRIu64 ": %d kills, %" PRIu64
           " more while it recovered, %" PRIu64 " acknowledgements)\n",
           seed, KILLS, interrupted, book->told_count);
    scene_remove(folder);
    book_destroy(book);
}

/* --- the judge must notice errors --- */

static void check_quietly(void *context)
{
    struct victim victim;
    (void)context;
    CHECK(freopen("/dev/null", "we", stderr) != NULL);
    struct victim_options options = {.folder = folder, .round = 1, .book = book};
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    (void)victim_check(&victim);
    victim_close(&victim);
}

static bool is_acquitted(void)
{
    return scene_is_well(scene_fork(check_quietly, NULL));
}

static uint32_t find(bool is_there)
{
    for (uint32_t i = 0; i < book->end; i++) {
        const struct book_entry *entry = &book->entries[i];
        if (is_there ? entry->is_there : entry->is_gone) return i;
    }
    CHECK(false);
    return 0;
}

static void the_check_finds_what_is_wrong(void)
{
    struct victim victim;
    book = book_create(false);
    scene_make(folder);
    struct victim_options options = {.folder = folder, .book = book};
    int err = victim_open(&victim, &options);
    CHECK_NOTE("%s", victim.why);
    CHECK(err == 0);
    victim_work(&victim, 1, 200);
    victim_close(&victim);
    CHECK(is_acquitted());
    struct book_entry *there = &book->entries[find(true)], *gone = &book->entries[find(false)];
    there->attempts++;
    CHECK(!is_acquitted()); /* a FAIL is lost */
    there->attempts--;
    there->is_there = false;
    CHECK(!is_acquitted()); /* an ended timer is back */
    there->is_there = true;
    gone->is_there = true;
    CHECK(!is_acquitted()); /* a timer is lost */
    gone->is_there = false;
    book_take(book, &(struct line){.kind = LINE_TURN});
    there->doubt = LINE_ASK_SCHEDULE;
    CHECK(is_acquitted());
    gone->doubt = LINE_ASK_SCHEDULE;
    CHECK(!is_acquitted()); /* half of a batch */
    there->doubt = 0;
    CHECK(is_acquitted());
    book->is_turn_known = true;
    CHECK(!is_acquitted()); /* half of a batch that was acknowledged */
    scene_remove(folder);
    book_destroy(book);
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, SEEDS);
    RUN(the_check_finds_what_is_wrong);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        run_seed(seed);
    }
    return 0;
}
