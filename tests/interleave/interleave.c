/* SPDX-License-Identifier: MIT */

/*
 * A schedule is run from the start each time: setup, the threads step by step, check. The choices
 * of the last one are kept as a stack of frames. The next schedule repeats them up to the last
 * frame that has another choice left, and takes that choice:
 *
 *     depth      0   1   2   3   4   5
 *     last       0   0   1   1   2   2
 *     next       0   0   1   2   ...          frames 5 and 4 had nothing left
 *
 * A move is one choice: the next step of a thread, or, for a weak compare-and-swap, its spurious
 * failure.
 *
 * Reduction. Two moves of different threads that touch different objects, or only read, can be
 * exchanged without a visible effect. Of all the schedules that differ only by such exchanges it is
 * enough to run one. Sleep sets do this: once all schedules that continue with the move a have been
 * run, and b is chosen instead, a is asleep until a move is made that cannot be exchanged with a.
 * While a sleeps, continuing with a would only lead to states already seen with a before b. If all
 * possible choices are asleep, the schedule repeats another one and is abandoned. Every reachable
 * state is still reached, including deadlocks (Godefroid, Partial-Order Methods for the
 * Verification of Concurrent Systems, on sleep sets). Three conditions make this valid here:
 *
 *   - A compare-and-swap counts as a write even if it fails. A spurious failure is a read, and
 *     the number of those left belongs to each thread.
 *   - Between its steps a thread shares with others only what the atomics order, and exchanging
 *     moves as above does not change that order.
 *   - Whether a waiting thread can continue depends on one object, which it counts as reading or
 *     writing. So a move that makes it ready also wakes it.
 *
 * Operations that are not steps. An operation need not be a step if the steps order it against all
 * operations of other threads on the same object, except for reads against reads: then it can
 * directly follow the last step of its thread without a visible effect. Such objects are to steps
 * what plain memory is to atomics, and this condition is checked in the same way, by clocks that
 * count the steps that each thread has taken and seen. At first no object has steps. When a
 * schedule shows that one needs them, all earlier results are discarded, and the case starts over
 * with steps for this object.
 */
#include "interleave.h"

#include "../check.h"
#include "coroutine.h"

#include <assert.h>
#include <string.h>

enum {
    SPURIOUS = INTERLEAVE_THREADS_MAX, /* added to a thread's move: the one that fails */
    MOVES_MAX = 2 * INTERLEAVE_THREADS_MAX,
    SCHEDULES_MAX = 20 * 1000 * 1000, /* a case with more is too large for a test */
    OBJECTS_MAX = 2048,               /* a power of two */
    AT_ONCE_MAX = 10 * 1000,          /* operations that are not steps, between two that are */
};

/* The number of steps of each thread that were seen, and of operations directly after them. */
struct clock {
    unsigned steps[INTERLEAVE_THREADS_MAX];
};

struct thread {
    struct coroutine coroutine;
    const volatile void *address; /* of the step it is about to take */
    const char *where;
    bool (*ready)(const volatile void *address); /* NULL unless it waits for something */
    enum interleave_access access;
    unsigned spurious_left;
    bool fails; /* the chosen step must fail spuriously */
    struct clock clock;
};

/* An atomic, and how it has been used in a schedule. */
struct object {
    const volatile void *address; /* NULL: not known yet */
    uint64_t schedule;            /* number of that schedule */
    struct clock reads, writes;
    bool has_steps; /* from the first schedule on */
};

struct frame {
    unsigned options; /* one bit for each possible move */
    unsigned asleep;  /* one bit for each move that need not be tried: tried already, or
                         equivalent to one that was */
    unsigned move;    /* the chosen move */
};

enum phase {
    STARTING,    /* each thread up to its first step */
    CHOOSING,    /* choosing moves */
    RUNNING_OUT, /* the results do not matter any more */
};

static struct {
    const struct interleave_case *subject;
    struct thread threads[INTERLEAVE_THREADS_MAX];
    struct thread *current; /* NULL during setup and check */
    unsigned thread_count;
    struct coroutine guard; /* runs setup and check, so that they can fail too */

    struct frame frames[INTERLEAVE_STEPS_MAX];
    unsigned depth;     /* steps taken in this schedule */
    unsigned given;     /* number of frames repeated from the previous schedule */
    unsigned asleep;    /* moves that sleep at this depth */
    const char *replay; /* the rest of the schedule to replay, unless NULL */
    struct interleave_result *result;

    struct object objects[OBJECTS_MAX]; /* by a hash of the address */
    unsigned object_count;
    unsigned at_once;  /* operations since the last step */
    uint64_t schedule; /* number of schedules run in total */
    enum phase phase;
    unsigned left;  /* steps until RUNNING_OUT ends */
    bool learns;    /* an object without steps needs them: start over */
    bool is_inside; /* a coroutine runs */
    bool tells;     /* print each step that is replayed */
} explorer;

static struct {
    const char *file, *what; /* `what` is NULL as long as nothing has failed */
    unsigned line;
} failure;

static void fail(const char *file, unsigned line, const char *what)
{
    if (failure.what != NULL) return;
    failure.file = file;
    failure.line = line;
    failure.what = what;
}

/* Stops this coroutine for ever. */
static _Noreturn void stay_here(void)
{
    while (true) {
        coroutine_give_way();
    }
}

static _Noreturn void fail_here(const char *file, unsigned line, const char *what)
{
    if (!explorer.is_inside) check_that(false, file, (int)line, what);
    fail(file, line, what);
    stay_here();
}

void interleave_require(bool holds, const char *file, unsigned line, const char *what)
{
    if (!holds) fail_here(file, line, what);
}

/* Replaces that of the C library, which would abort. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
    (void)function;
    fail_here(file, line, assertion);
}

bool interleave_is_thread(void)
{
    return explorer.current != NULL;
}

unsigned interleave_self(void)
{
    CHECK(explorer.current != NULL);
    return (unsigned)(explorer.current - explorer.threads);
}

static struct object *find_object(const volatile void *address)
{
    uint64_t hash = (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
    unsigned i = (unsigned)(hash >> 32) % OBJECTS_MAX;
    while (explorer.objects[i].address != NULL && explorer.objects[i].address != address) {
        i = (i + 1) % OBJECTS_MAX;
    }
    struct object *object = &explorer.objects[i];
    if (object->address == NULL) {
        CHECK(++explorer.object_count < OBJECTS_MAX / 2); /* otherwise a case uses new objects
                                                             each time */
        object->address = address;
    }
    if (object->schedule != explorer.schedule) {
        object->schedule = explorer.schedule;
        object->reads = object->writes = (struct clock){0};
    }
    return object;
}

static bool has_seen(const struct clock *clock, const struct clock *events)
{
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        if (events->steps[i] > clock->steps[i]) return false;
    }
    return true;
}

static void join(struct clock *into, const struct clock *from)
{
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        if (into->steps[i] < from->steps[i]) into->steps[i] = from->steps[i];
    }
}

/* A thread uses an object without steps. Returns whether the object needs them. */
static bool needs_steps(struct object *object, const struct thread *self,
                        enum interleave_access access)
{
    unsigned number = interleave_self();
    bool reads = access == INTERLEAVE_READ;
    bool may_fail = access == INTERLEAVE_WEAK && explorer.subject->spurious_max > 0;
    bool is_ordered = has_seen(&self->clock, &object->writes) &&
                      (reads || has_seen(&self->clock, &object->reads));
    bool spins = ++explorer.at_once > AT_ONCE_MAX; /* perhaps until another thread continues */
    struct clock *events = reads ? &object->reads : &object->writes;
    events->steps[number] = self->clock.steps[number];
    return !is_ordered || may_fail || spins || self->ready != NULL || explorer.subject->unreduced;
}

/* Records a step: the thread sees what the object has seen, and later users of the object see the
 * step. */
static void note_step(struct object *object, struct thread *self)
{
    bool reads = self->access == INTERLEAVE_READ || self->fails;
    explorer.at_once = 0;
    join(&self->clock, &object->writes);
    if (!reads) join(&self->clock, &object->reads);
    join(reads ? &object->reads : &object->writes, &self->clock);
    self->clock.steps[interleave_self()]++; /* the step has not seen what comes after it */
}

#ifdef INTERLEAVE_TSAN

enum {
    RUNS_OUT = true /* a thread that is left halfway is expensive for the sanitizer */
};

void __tsan_on_report(void *report);
const char *__tsan_default_options(void);

/* Called by the thread sanitizer in the middle of an access: only records that it was called. */
void __tsan_on_report(void *report)
{
    (void)report;
    fail("thread sanitizer", 0, "a data race");
}

/* A mutant that races is a success, so the explorer decides the exit status; and there are no other
 * threads to wait for. */
const char *__tsan_default_options(void)
{
    return "exitcode=0:atexit_sleep_ms=0";
}

#else

enum {
    RUNS_OUT = false
};

#endif

static void resume(struct coroutine *coroutine)
{
    explorer.is_inside = true;
    coroutine_resume(coroutine);
    explorer.is_inside = false;
}

static void run_guarded(void (*body)(void))
{
    if (body == NULL || failure.what != NULL) return;
    coroutine_start(&explorer.guard, body);
    resume(&explorer.guard);
    coroutine_finish(&explorer.guard);
}

/* Runs a thread until it is about to take its next step. */
static void run_thread(struct thread *thread)
{
    explorer.current = thread;
    resume(&thread->coroutine);
    explorer.current = NULL;
}

static void start_threads(void)
{
    for (unsigned i = 0; i < explorer.thread_count; i++) {
        struct thread *thread = &explorer.threads[i];
        thread->ready = NULL;
        thread->fails = false;
        thread->clock = (struct clock){0};
        thread->clock.steps[i] = 1;
        thread->spurious_left = explorer.subject->spurious_max;
        coroutine_start(&thread->coroutine, explorer.subject->threads[i]);
    }
    for (unsigned i = 0; i < explorer.thread_count && !explorer.learns; i++) {
        explorer.at_once = 0;
        run_thread(&explorer.threads[i]);
    }
}

static struct thread *thread_of(unsigned move)
{
    return &explorer.threads[move % INTERLEAVE_THREADS_MAX];
}

static bool only_reads(unsigned move)
{
    return move >= SPURIOUS || thread_of(move)->access == INTERLEAVE_READ;
}

/* Returns whether two moves lead to the same state in either order. */
static bool can_change_places(unsigned a, unsigned b)
{
    if (thread_of(a) == thread_of(b)) return false;
    return thread_of(a)->address != thread_of(b)->address || (only_reads(a) && only_reads(b));
}

/* Returns which moves still sleep after the one chosen in `frame`. */
static unsigned asleep_after(const struct frame *frame)
{
    unsigned asleep = 0;
    if (explorer.subject->unreduced) return 0;
    for (unsigned move = 0; move < MOVES_MAX; move++) {
        bool sleeps = (frame->asleep >> move & 1) != 0;
        if (sleeps && can_change_places(move, frame->move)) asleep |= 1U << move;
    }
    return asleep;
}

static bool is_waiting(const struct thread *thread)
{
    return thread->ready != NULL && !thread->ready(thread->address);
}

static unsigned find_options(void)
{
    unsigned options = 0;
    for (unsigned i = 0; i < explorer.thread_count; i++) {
        const struct thread *thread = &explorer.threads[i];
        if (thread->coroutine.ended || is_waiting(thread)) continue;
        options |= 1U << i;
        bool may_fail = thread->access == INTERLEAVE_WEAK && thread->spurious_left > 0;
        if (may_fail) options |= 1U << (SPURIOUS + i);
    }
    return options;
}

static unsigned first_of(unsigned moves)
{
    return (unsigned)__builtin_ctz(moves);
}

static char letter_of(unsigned move)
{
    return (char)(move < SPURIOUS ? '0' + move : 'a' + move - SPURIOUS);
}

static void tell(unsigned move)
{
    const struct thread *thread = thread_of(move);
    fprintf(stderr, "%4u  thread %u  %#" PRIxPTR "  %s%s\n", explorer.depth,
            (unsigned)(thread - explorer.threads), (uintptr_t)thread->address, thread->where,
            move >= SPURIOUS ? ", which fails for no reason" : "");
}

static unsigned replayed_move(unsigned options)
{
    unsigned move = first_of(options);
    if (*explorer.replay != '\0') {
        for (move = 0; move < MOVES_MAX && letter_of(move) != *explorer.replay; move++) {}
        explorer.replay++;
    }
    CHECK_NOTE("step %u: this is not a schedule of the case", explorer.depth);
    CHECK((options >> move & 1) != 0);
    if (explorer.tells) tell(move);
    return move;
}

/* Fills in the frame of this depth. Returns false if all possible choices are asleep. */
static bool choose(unsigned options)
{
    struct frame *frame = &explorer.frames[explorer.depth];
    if (explorer.depth < explorer.given) {
        CHECK_EQ(options, frame->options); /* otherwise the case depends on more than the
                                              schedule */
        return true;
    }
    *frame = (struct frame){.options = options, .asleep = explorer.asleep};
    unsigned choices = options & ~frame->asleep;
    if (choices == 0) return false;
    frame->move = explorer.replay != NULL ? replayed_move(options) : first_of(choices);
    return true;
}

/* Prepares the chosen move. Returns its thread. */
static struct thread *begin_move(void)
{
    const struct frame *frame = &explorer.frames[explorer.depth];
    struct thread *thread = thread_of(frame->move);
    explorer.asleep = asleep_after(frame);
    thread->fails = frame->move >= SPURIOUS;
    thread->spurious_left -= thread->fails;
    explorer.depth++;
    explorer.result->steps++;
    return thread;
}

static bool somebody_waits(void)
{
    for (unsigned i = 0; i < explorer.thread_count; i++) {
        if (explorer.threads[i].ready != NULL) return true;
    }
    return false;
}

/* Returns whether the next move belongs to the running thread, which then need not yield. If it
 * does not, the same move is chosen again. Waiting threads are checked only from outside. */
static bool goes_on(const struct thread *self)
{
    if (explorer.learns || explorer.replay != NULL || somebody_waits()) return false;
    if (explorer.phase == RUNNING_OUT) {
        if (explorer.left == 0 || thread_of(first_of(find_options())) != self) return false;
        explorer.left--;
        return true;
    }
    if (explorer.phase != CHOOSING || explorer.depth == INTERLEAVE_STEPS_MAX) return false;
    if (!choose(find_options())) return false;
    if (thread_of(explorer.frames[explorer.depth].move) != self) return false;
    (void)begin_move();
    return true;
}

bool interleave_step(const volatile void *address, enum interleave_access access, const char *where)
{
    struct thread *self = explorer.current;
    if (self == NULL) return false;
    if (failure.what != NULL) stay_here(); /* a race: starting over would not find it again */
    struct object *object = find_object(address);
    if (!object->has_steps) {
        if (!needs_steps(object, self, access)) return false;
        object->has_steps = explorer.learns = true;
    }
    self->address = address;
    self->access = access;
    self->where = where;
    if (!goes_on(self)) coroutine_give_way();
    note_step(object, self);
    return self->fails;
}

void interleave_await(const volatile void *address, enum interleave_access access,
                      bool (*ready)(const volatile void *address))
{
    struct thread *self = explorer.current;
    if (self == NULL) {
        REQUIRE(ready(address));
        return;
    }
    self->ready = ready;
    (void)interleave_step(address, access, "await");
    self->ready = NULL;
}

/* Runs the threads of an abandoned schedule to their end. The first thread that can continues, as
 * in a replay. */
static void run_out(void)
{
    unsigned options;
    explorer.phase = RUNNING_OUT;
    explorer.left = INTERLEAVE_STEPS_MAX;
    while (failure.what == NULL && !explorer.learns && (options = find_options()) != 0) {
        struct thread *thread = thread_of(first_of(options));
        if (explorer.left-- == 0) return;
        thread->fails = false;
        run_thread(thread);
    }
}

/* Makes moves until there are none left. Returns false if the schedule was abandoned. */
static bool run_threads(void)
{
    unsigned options;
    explorer.phase = CHOOSING;
    while (failure.what == NULL && !explorer.learns && (options = find_options()) != 0) {
        if (explorer.depth == INTERLEAVE_STEPS_MAX) {
            fail(__FILE__, __LINE__, "the threads come to no end");
        } else if (choose(options)) {
            run_thread(begin_move());
        } else {
            if (RUNS_OUT) run_out();
            return false;
        }
    }
    for (unsigned i = 0; i < explorer.thread_count && !explorer.learns; i++) {
        if (!explorer.threads[i].coroutine.ended) {
            fail(__FILE__, __LINE__, "all threads that are left wait");
        }
    }
    return !explorer.learns;
}

static void run_schedule(void)
{
    explorer.schedule++;
    explorer.phase = STARTING;
    explorer.learns = false;
    explorer.depth = 0;
    explorer.asleep = 0;
    run_guarded(explorer.subject->setup);
    start_threads();
    bool to_its_end = run_threads();
    for (unsigned i = 0; i < explorer.thread_count; i++) {
        coroutine_finish(&explorer.threads[i].coroutine);
    }
    if (to_its_end) run_guarded(explorer.subject->check);
    explorer.result->schedules += to_its_end;
    explorer.result->repeats += !to_its_end;
}

/* Goes back to the last frame with a choice left, and takes it. */
static bool next_schedule(void)
{
    for (unsigned depth = explorer.depth; depth-- > 0;) {
        struct frame *frame = &explorer.frames[depth];
        frame->asleep |= 1U << frame->move;
        unsigned choices = frame->options & ~frame->asleep;
        if (choices != 0) {
            frame->move = first_of(choices);
            explorer.given = depth + 1;
            return true;
        }
    }
    return false;
}

static void begin_anew(const char *replay)
{
    *explorer.result = (struct interleave_result){0};
    failure.what = NULL;
    explorer.replay = replay;
    explorer.given = 0;
}

static void begin(const struct interleave_case *subject, struct interleave_result *result)
{
    explorer.subject = subject;
    explorer.result = result;
    begin_anew(NULL);
    memset(explorer.objects, 0, sizeof explorer.objects);
    explorer.object_count = 0;
    explorer.thread_count = 0;
    while (explorer.thread_count < INTERLEAVE_THREADS_MAX &&
           subject->threads[explorer.thread_count] != NULL) {
        explorer.thread_count++;
    }
}

static void end(void)
{
    struct interleave_result *result = explorer.result;
    if (failure.what == NULL) return;
    result->failed = true;
    (void)snprintf(result->why, sizeof result->why, "%s:%u: %s", failure.file, failure.line,
                   failure.what);
    for (unsigned i = 0; i < explorer.depth; i++) {
        result->schedule[i] = letter_of(explorer.frames[i].move);
    }
    result->schedule[explorer.depth] = '\0';
}

void interleave_explore(const struct interleave_case *subject, struct interleave_result *out)
{
    begin(subject, out);
    CHECK_NOTE("in %s", subject->name);
    do {
        CHECK(out->schedules + out->repeats < SCHEDULES_MAX);
        run_schedule();
        if (explorer.learns) begin_anew(NULL);
    } while (failure.what == NULL && (explorer.learns || next_schedule()));
    end();
}

void interleave_replay(const struct interleave_case *subject, const char *schedule,
                       struct interleave_result *out)
{
    struct interleave_result explored;
    interleave_explore(subject, &explored); /* to find out which objects have steps */
    explorer.result = out;
    do {
        begin_anew(schedule);
        run_schedule();
    } while (explorer.learns);
    end();
    /* A race that was found on the way is not reported again. */
    bool is_the_same = explored.failed && strcmp(explored.schedule, schedule) == 0;
    if (is_the_same && !out->failed) *out = explored;
}

static int run_mutant(const char *mutant, const struct interleave_case *cases, size_t count)
{
    struct interleave_result result;
    for (size_t i = 0; i < count; i++) {
        interleave_explore(&cases[i], &result);
        if (result.failed) {
            printf("ok   %s is found by %s in schedule %" PRIu64 ", %s\n     %s\n", mutant,
                   cases[i].name, result.schedules, result.schedule, result.why);
            return 0;
        }
    }
    fprintf(stderr, "FAILED %s: no case finds it\n", mutant);
    return 1;
}

static int run_case(const char *program, const struct interleave_case *subject)
{
    const char *schedule = getenv("BEL_INTERLEAVE"); /* NOLINT(concurrency-mt-unsafe) */
    struct interleave_result result;
    if (schedule != NULL) {
        explorer.tells = true;
        interleave_replay(subject, schedule, &result);
    } else {
        interleave_explore(subject, &result);
    }
    if (result.failed) {
        fprintf(stderr, "%s\n    again with: BEL_INTERLEAVE=%s %s %s\n", result.why,
                result.schedule, program, subject->name);
        return 1;
    }
    printf("ok   %s, %" PRIu64 " schedules\n", subject->name, result.schedules);
    return 0;
}

static bool is_asked_for(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) return true;
    }
    return argc < 2;
}

int interleave_main(int argc, char **argv, const struct interleave_case *cases, size_t count)
{
    if (argc == 3 && strcmp(argv[1], "--mutant") == 0) return run_mutant(argv[2], cases, count);
    int status = 0, run = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_asked_for(cases[i].name, argc, argv)) continue;
        status |= run_case(argv[0], &cases[i]);
        run++;
    }
    if (run == 0) fprintf(stderr, "%s: there is no such case\n", argv[0]);
    return run == 0 ? 2 : status;
}
