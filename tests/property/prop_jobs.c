/* SPDX-License-Identifier: MIT */

/*
 * Jobs compared with a model that knows nothing but the rules: a task is unblocked when all its
 * dependencies have ended as its edges demand, and skipped as soon as one has not. After every
 * command the model applies the rules to all tasks until nothing changes.
 *
 * The engine does the same in slices of a random size, and is closed and opened again between any
 * two turns. When it has come to rest, every task of every job is as in the model; and whatever it
 * delivers at any time is a task whose dependencies have ended.
 */
#include "../jobs_rig.h"
#include "property.h"

#include <string.h>

enum {
    JOBS = 6,
    TASKS_MAX = 14,
    STEPS = 120,
    CASES = 30,
    DRAIN_MAX = 20000,
};

struct edge {
    int task;
    enum bel_edge_policy on;
};

struct task {
    enum bel_state state; /* BEL_BLOCKED, BEL_READY, BEL_LEASED, or terminal */
    struct edge after[TASKS_MAX];
    int after_count;
    int topic;
};

struct job {
    bool exists, is_paused, is_cancelled;
    struct task tasks[TASKS_MAX];
    int count;
};

static struct job jobs[JOBS];
static struct rig rig;
static uint64_t random_state;
static struct rig_text text;

static uint64_t draw(uint64_t end)
{
    return random_below(&random_state, end);
}

/* --- the model --- */

static bool has_ended(const struct task *task)
{
    return task->state >= BEL_DONE;
}

static bool has_failed(const struct task *task)
{
    return task->state == BEL_DEAD || task->state == BEL_CANCELLED || task->state == BEL_EXPIRED;
}

static bool holds(const struct edge *edge, const struct task *before)
{
    if (edge->on == BEL_EDGE_ALWAYS) return true;
    return edge->on == BEL_EDGE_SUCCESS ? before->state == BEL_DONE : has_failed(before);
}

/* Applies the rules to one task. Returns whether it has changed. */
static bool apply(const struct job *job, struct task *task)
{
    bool is_open = false;
    if (task->state != BEL_BLOCKED) return false;
    for (int i = 0; i < task->after_count; i++) {
        const struct task *before = &job->tasks[task->after[i].task];
        is_open |= !has_ended(before);
        if (has_ended(before) && !holds(&task->after[i], before)) {
            task->state = BEL_SKIPPED;
            return true;
        }
    }
    if (!is_open) task->state = BEL_READY;
    return !is_open;
}

static void apply_all(struct job *job)
{
    bool has_changed = job->exists;
    while (has_changed) {
        has_changed = false;
        for (int i = 0; i < job->count; i++) {
            has_changed |= apply(job, &job->tasks[i]);
        }
    }
}

/* Returns whether a dependent has handled the failure of a task. */
static bool is_handled(const struct job *job, int failed)
{
    for (int i = 0; i < job->count; i++) {
        const struct task *task = &job->tasks[i];
        for (int k = 0; k < task->after_count && task->state == BEL_DONE; k++) {
            bool handles = task->after[k].on != BEL_EDGE_SUCCESS;
            if (task->after[k].task == failed && handles) return true;
        }
    }
    return false;
}

static enum bel_job_state state_of(const struct job *job)
{
    bool is_failed = false;
    for (int i = 0; i < job->count; i++) {
        if (!has_ended(&job->tasks[i])) return job->is_paused ? BEL_JOB_PAUSED : BEL_JOB_RUNNING;
        is_failed |= has_failed(&job->tasks[i]) && !is_handled(job, i);
    }
    if (job->is_cancelled) return BEL_JOB_CANCELLED;
    return is_failed ? BEL_JOB_FAILED : BEL_JOB_DONE;
}

/* --- both --- */

static void print_id(char out[32], int job, int task)
{
    (void)snprintf(out, 32, "j%d/%d", job, task);
}

static struct task *task_of(const char *id, struct job **out_job)
{
    int job, task;
    CHECK(sscanf(id, "j%d/%d", &job, &task) == 2); /* NOLINT(cert-err34-c) */
    CHECK(job >= 0 && job < JOBS && task >= 0 && task < jobs[job].count);
    *out_job = &jobs[job];
    return &jobs[job].tasks[task];
}

static void put_edges(struct task *task, int index)
{
    static const char *const policies[] = {"success", "always", "failure"};
    for (int i = 0; i < index; i++) {
        if (draw(3) != 0) continue;
        struct edge edge = {i, (enum bel_edge_policy)(draw(2) == 0 ? 0 : draw(3))};
        rig_put(&text, "%s{\"task\":\"%d\",\"on\":\"%s\"}", task->after_count > 0 ? "," : "", i,
                policies[edge.on]);
        task->after[task->after_count++] = edge;
    }
}

static void submit(int index)
{
    struct job *job = &jobs[index];
    struct job made = {.exists = true, .count = (int)draw(TASKS_MAX + 1)};
    text.used = 0;
    rig_put(&text, "{\"id\":\"j%d\",\"priority\":%d,\"tasks\":[", index, 1 + (int)draw(10));
    for (int i = 0; i < made.count; i++) {
        struct task *task = &made.tasks[i];
        task->state = BEL_BLOCKED;
        task->topic = (int)draw(2);
        rig_put(&text, "%s{\"id\":\"%d\",\"topic\":\"t%d\",\"after\":[", i > 0 ? "," : "", i,
                task->topic);
        put_edges(task, i);
        rig_put(&text, "]}");
    }
    rig_put(&text, "]}");
    int err = rig_submit(&rig, text.bytes);
    CHECK(err == (job->exists ? BEL_ECONFLICT : 0));
    if (err == 0) *job = made;
}

/* Returns whether a topic has a task that can be delivered. */
static bool has_ready(int topic)
{
    for (int i = 0; i < JOBS; i++) {
        for (int k = 0; k < jobs[i].count && jobs[i].exists && !jobs[i].is_paused; k++) {
            const struct task *task = &jobs[i].tasks[k];
            if (task->topic == topic && task->state == BEL_READY) return true;
        }
    }
    return false;
}

/* Claims a task: all that it comes after has ended, and its job is not held. An engine that has
 * come to rest delivers one if there is one. */
static void claim(void)
{
    int topic = (int)draw(2);
    bool is_settled = draw(2) == 0;
    struct job *job;
    if (is_settled) rig_settle(&rig);
    const char *id = rig_claim(&rig, topic == 0 ? "t0" : "t1");
    if (id[0] == 0) {
        CHECK(!is_settled || !has_ready(topic));
        return;
    }
    struct task *task = task_of(id, &job);
    CHECK_NOTE("%s is %s", id, bel_state_name(task->state));
    CHECK(task->state == BEL_READY && !job->is_paused);
    task->state = BEL_LEASED;
}

static void finish_task(void)
{
    unsigned lease = (unsigned)draw(RIG_LEASES);
    char id[BEL_ID_BYTES];
    struct job *job;
    memcpy(id, rig.leases[lease].id, sizeof id);
    if (id[0] == 0) return;
    struct task *task = task_of(id, &job);
    bool is_live = task->state == BEL_LEASED;
    if (draw(3) > 0) {
        CHECK(rig_ack(&rig, id) == is_live);
        if (is_live) task->state = BEL_DONE;
        return;
    }
    char token[BEL_TOKEN_BYTES_MAX + 1];
    struct bel_fail fail = {.token = rig_token(&rig, id, token), .dead = draw(2) == 0};
    fail.has_delay = true;
    int err = rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_FAIL, .fail = fail});
    CHECK(err == (is_live ? 0 : BEL_ESTALE));
    if (is_live) task->state = fail.dead ? BEL_DEAD : BEL_READY;
}

static void cancel_task(void)
{
    int job = (int)draw(JOBS), index = (int)draw(TASKS_MAX);
    char id[32], topic[3] = "t0";
    print_id(id, job, index);
    if (!jobs[job].exists || index >= jobs[job].count) return;
    struct task *task = &jobs[job].tasks[index];
    topic[1] = (char)('0' + task->topic);
    CHECK_EQ(rig_cancel(&rig, topic, id), !has_ended(task));
    if (!has_ended(task)) task->state = BEL_CANCELLED;
}

static void cancel_job(int index)
{
    struct job *job = &jobs[index];
    char id[8];
    (void)snprintf(id, sizeof id, "j%d", index);
    enum bel_job_state state = state_of(job);
    bool is_live = state == BEL_JOB_RUNNING || state == BEL_JOB_PAUSED;
    int err = rig_job(&rig, BEL_VERB_JOB_CANCEL, id);
    CHECK(err == (job->exists ? 0 : BEL_ENOTFOUND));
    if (err) return;
    CHECK_EQ(rig.seen.count, is_live);
    job->is_cancelled |= is_live;
    for (int i = 0; i < job->count; i++) {
        if (!has_ended(&job->tasks[i])) job->tasks[i].state = BEL_CANCELLED;
    }
}

static void pause_job(int index, bool is_pause)
{
    struct job *job = &jobs[index];
    char id[8];
    (void)snprintf(id, sizeof id, "j%d", index);
    int err = rig_job(&rig, is_pause ? BEL_VERB_JOB_PAUSE : BEL_VERB_JOB_RESUME, id);
    CHECK(err == (job->exists ? 0 : BEL_ENOTFOUND));
    if (err == 0 && state_of(job) <= BEL_JOB_PAUSED) job->is_paused = is_pause;
}

/* --- comparing --- */

static bool is_same(enum bel_state found, enum bel_state wanted)
{
    if (wanted == BEL_READY) return found == BEL_READY || found == BEL_SCHEDULED;
    return found == wanted;
}

static void compare(int index)
{
    const struct job *job = &jobs[index];
    char id[8];
    (void)snprintf(id, sizeof id, "j%d", index);
    enum bel_job_state state = rig_state(&rig, id);
    CHECK_NOTE("%s", id);
    CHECK_EQ(state, job->exists ? state_of(job) : BEL_JOB_STATES);
    if (!job->exists) return;
    CHECK_EQ(rig.seen.tasks_count, (size_t)job->count);
    uint64_t counts[BEL_STATES] = {0};
    for (int i = 0; i < job->count; i++) {
        const struct rig_task *found = &rig.seen.tasks[i];
        CHECK_NOTE("%s/%s is %s and not %s", id, found->id, bel_state_name(found->state),
                   bel_state_name(job->tasks[i].state));
        CHECK(is_same(found->state, job->tasks[i].state));
        CHECK((found->state == BEL_SKIPPED) == (strstr(found->reason, "task ") != NULL));
        counts[found->state]++;
    }
    CHECK(memcmp(counts, rig.seen.job.counts, sizeof counts) == 0);
}

static void step(void)
{
    if (draw(2) == 0) rig_settle(&rig);
    switch (draw(12)) {
    case 0:
    case 1:
        submit((int)draw(JOBS));
        break;
    case 2:
        rig_settle(&rig); /* otherwise a task may be cancelled before it is skipped */
        cancel_task();
        break;
    case 3:
        rig_settle(&rig);
        if (draw(4) == 0) cancel_job((int)draw(JOBS));
        break;
    case 4:
        pause_job((int)draw(JOBS), draw(3) == 0);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        claim();
        break;
    default:
        finish_task();
        break;
    }
}

static bool is_over(void)
{
    for (int i = 0; i < JOBS; i++) {
        if (jobs[i].exists && state_of(&jobs[i]) <= BEL_JOB_PAUSED) return false;
    }
    return true;
}

/* Lets all jobs come to their end. */
static void drain(void)
{
    for (int k = 0; k < JOBS; k++) {
        if (jobs[k].exists) pause_job(k, false);
    }
    for (int i = 0; i < DRAIN_MAX && !is_over(); i++) {
        if (i % 2 == 0) {
            claim();
        } else {
            finish_task();
        }
        for (int k = 0; k < JOBS; k++) {
            apply_all(&jobs[k]);
        }
    }
    CHECK(is_over());
    rig_settle(&rig);
}

static void run_case(uint64_t seed)
{
    memset(jobs, 0, sizeof jobs);
    memset(&rig, 0, sizeof rig);
    random_state = seed;
    rig_open(&rig);
    uint32_t work_max = 1 + (uint32_t)random_magnitude(&random_state) % 4000;
    rig.reopen_in = draw(3) == 0 ? 0 : 1 + (uint32_t)draw(10);
    rig.work_max = draw(2) == 0 ? 1 + (uint32_t)draw(60) : work_max;
    rig.random = seed;
    for (int i = 0; i < STEPS; i++) {
        step();
        for (int k = 0; k < JOBS; k++) {
            apply_all(&jobs[k]);
        }
        if (draw(4) != 0) continue;
        rig_settle(&rig);
        for (int k = 0; k < JOBS; k++) {
            compare(k);
        }
        if (draw(4) == 0) rig_check(&rig);
    }
    drain();
    for (int k = 0; k < JOBS; k++) {
        compare(k);
    }
    rig_finish(&rig);
}

#ifdef JOB_BUGS

#    include "bugs.h"

#    include <fcntl.h>
#    include <sys/wait.h>
#    include <unistd.h>

enum bug planted_bug;

/* Runs histories with a bug in a process of its own. Returns whether one of them failed. */
static bool is_found(enum bug bug)
{
    pid_t child = fork();
    int status = 0;
    CHECK(child >= 0);
    if (child == 0) {
        int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(quiet, STDERR_FILENO);
        planted_bug = bug;
        for (uint64_t seed = 1; seed <= CASES; seed++) {
            run_case(seed);
        }
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int main(void)
{
    static const char *const names[] = {BUG_NAMES};
    int missed = 0;
    for (unsigned bug = BUG_NONE + 1; bug < BUGS; bug++) {
        bool found = is_found((enum bug)bug);
        printf("%s %s\n", found ? "found " : "MISSED", names[bug]);
        missed += !found;
    }
    return missed > 0;
}

#else

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}

#endif
