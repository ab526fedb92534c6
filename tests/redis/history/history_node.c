/* SPDX-License-Identifier: MIT */

/*
 * A node whose clients write down all that they do, for the judge (history.py).
 *
 *     history_node SOCKET LOG SEED [name=number ...]
 *
 * It opens the backend on a Redis server, and has producers, which schedule, replace, move and
 * cancel timers, and workers, which claim them and do all that workers do, right or wrong. SIGTERM
 * ends it when the requests under way are answered; any other end is a fault that the test wants.
 * With `drain=1` there are workers only, until no timer is unfinished, or for `patience` ms; then
 * it writes down every timer that there is. The log has a line for each start and end, written
 * before the request is submitted and after it was answered:
 *
 *     S op time verb ...             a request starts; time in us
 *     D op time topic id token due attempt lease      a delivery of a claim
 *     E op time outcome count        ok, stale, no (nothing was done) or unknown
 *     L topic id state               at the end of a drain, of each timer
 *     P topic id made skipped missed                  and of each plan
 */
#include "../../check.h"
#include "../../random.h"

#include "belfry/backend.h"
#include "redis/redis.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ACTORS_MAX = 64,
    LEASES_MAX = 5, /* of one claim */
    RECENT = 32,    /* ids that a producer remembers */
    TOPICS = 2,
    LINE_BYTES = 8192,
    STEP_MS = 500, /* of a poll, if nothing is to be done before */
    PAYLOAD_MAX = 1 << 20,
    LEASE_MS_MIN = 300,
    EXTENSION_MS = 1200, /* so that no extension shortens a lease */
};

struct lease {
    char token[BEL_TOKEN_BYTES_MAX + 1];
    uint64_t end_us; /* at the latest */
    bool is_acked;
};

enum role {
    SETUP,
    PRODUCER,
    WORKER,
    JUDGE
};

struct actor {
    struct bel_request request; /* first */
    enum role role;
    unsigned number, step;
    bool is_busy, is_over;
    bool is_retried; /* of a producer: the last schedule has an unknown outcome */
    unsigned made;   /* by a producer */
    uint64_t random, wake_us, op;
    char ids[RECENT][BEL_ID_BYTES]; /* of a producer */
    unsigned topics[RECENT];
    struct bel_view tokens[LEASES_MAX]; /* of a worker */
    struct lease leases[LEASES_MAX];
    size_t leases_count, acked_count;
    struct bel_view cursor; /* of the judge */
    char cursor_text[512];
};

static struct bel_redis *redis;
static struct bel_backend *backend;
static int log_fd;
static uint64_t ops, seed, start_us;
static int64_t skew_ms;
static uint64_t workers = 10, producers = 2, plans = 2, gap_ms = 20, payload = 10, crashes = 1000,
                is_drain, count_max = LEASES_MAX, call_ms, patience_ms;
static struct actor actors[ACTORS_MAX];
static size_t actors_count;
static bool is_set_up, is_drained;
static volatile sig_atomic_t is_ending;
static char payload_bytes[PAYLOAD_MAX];
static const struct bel_view topics[TOPICS] = {{"a", 1}, {"b", 1}};

static uint64_t time_us(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_REALTIME, &time) == 0);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* --- the log --- */

/* Writes a line with one call, so that it is there as a whole if the process is killed. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    CHECK(bytes > 0 && (size_t)bytes < sizeof line);
    CHECK(write(log_fd, line, (size_t)bytes) == bytes);
}

static const char *outcome_of(const struct bel_reply *reply)
{
    switch (reply->err) {
    case 0:
        return "ok";
    case BEL_ESTALE:
        return "stale";
    case BEL_EFULL:
    case BEL_EINVAL:
    case BEL_ECONFLICT:
    case BEL_ENOTFOUND:
        return "no";
    default:
        return "unknown";
    }
}

static void note_timers(const struct bel_reply *reply)
{
    for (size_t i = 0; i < reply->timers.count; i++) {
        const struct bel_timer *timer = &reply->timers.items[i];
        int topic = (int)timer->topic.bytes, id = (int)timer->id.bytes;
        const char *topic_text = timer->topic.data, *id_text = timer->id.data;
        if (timer->plan.rule.bytes == 0) {
            note("L %.*s %.*s %s\n", topic, topic_text, id, id_text, bel_state_name(timer->state));
        } else {
            note("P %.*s %.*s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", topic, topic_text, id,
                 id_text, timer->made, timer->skipped, timer->missed);
        }
    }
}

/* --- actors --- */

static uint64_t below(struct actor *actor, uint64_t end)
{
    return random_below(&actor->random, end);
}

static void rest(struct actor *actor, uint64_t ms)
{
    actor->wake_us = time_us() + ms * 1000;
}

static void answered(struct bel_request *request, const struct bel_reply *reply);

/* Submits a command, with the rest of its line in the log. */
__attribute__((format(printf, 3, 4))) static void
submit(struct actor *actor, const struct bel_command *command, const char *format, ...)
{
    char what[LINE_BYTES / 2];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(what, sizeof what, format, args);
    va_end(args);
    CHECK(bytes > 0 && (size_t)bytes < sizeof what);
    actor->op = ++ops;
    actor->is_busy = true;
    note("S %d.%" PRIu64 " %" PRIu64 " %s\n", (int)getpid(), actor->op, time_us(), what);
    actor->request = (struct bel_request){.command = *command, .done = answered};
    bel_backend_submit(backend, &actor->request);
}

/* --- set-up: all nodes configure the topics alike --- */

static void set_up(struct actor *actor)
{
    static char crashes_text[24];
    static struct bel_setting settings[3];
    struct bel_command command = {.verb = BEL_VERB_CONFIGURE};
    int bytes = snprintf(crashes_text, sizeof crashes_text, "%" PRIu64, crashes);
    struct bel_view limit = {crashes_text, (size_t)bytes};
    settings[0] = (struct bel_setting){BEL_VIEW("retention"), BEL_VIEW("1h")};
    settings[1] = (struct bel_setting){BEL_VIEW("retry"), BEL_VIEW("fixed(50ms)")};
    settings[2] = (struct bel_setting){BEL_VIEW("crashes"), limit};
    command.configure.topic = topics[actor->step];
    command.configure.settings = settings;
    command.configure.settings_count = sizeof settings / sizeof settings[0];
    submit(actor, &command, "configure %s", actor->step == 0 ? "a" : "b");
}

static void end_set_up(struct actor *actor, const struct bel_reply *reply)
{
    if (reply->err) {
        rest(actor, 50);
        return;
    }
    if (++actor->step < TOPICS) return;
    is_set_up = actor->is_over = true;
}

/* --- producers --- */

static struct bel_command schedule_of(const struct actor *actor, unsigned slot)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    const char *id = actor->ids[slot];
    command.schedule.topic = topics[actor->topics[slot]];
    command.schedule.id = (struct bel_view){id, strlen(id)};
    command.schedule.payload = (struct bel_view){payload_bytes, payload};
    command.schedule.when = BEL_WHEN_IN;
    return command;
}

static const char *topic_name(const struct actor *actor, unsigned slot)
{
    return actor->topics[slot] == 0 ? "a" : "b";
}

/* Schedules the timer in a slot; also again, if nobody knows what became of it. */
static void schedule(struct actor *actor, unsigned slot, enum bel_conflict conflict)
{
    struct bel_command command = schedule_of(actor, slot);
    command.schedule.conflict = conflict;
    command.schedule.delay_ms = below(actor, 4) > 0 ? below(actor, 1500) : 0;
    command.schedule.has_priority = true;
    command.schedule.priority = (uint8_t)below(actor, 3);
    submit(actor, &command, "schedule %s %s %" PRIu64 " %s", topic_name(actor, slot),
           actor->ids[slot], command.schedule.delay_ms,
           conflict == BEL_CONFLICT_KEEP ? "keep" : "replace");
}

static void schedule_plan(struct actor *actor, unsigned slot)
{
    struct bel_command command = schedule_of(actor, slot);
    command.schedule.when = BEL_WHEN_NOW;
    command.schedule.conflict = BEL_CONFLICT_KEEP;
    command.schedule.plan.kind = BEL_PLAN_EVERY;
    command.schedule.plan.rule = BEL_VIEW("150ms");
    command.schedule.plan.count = 20;
    command.schedule.plan.overlap = BEL_OVERLAP_ALLOW;
    command.schedule.plan.misfire = BEL_MISFIRE_ALL;
    submit(actor, &command, "plan %s %s 150 20", topic_name(actor, slot), actor->ids[slot]);
}

static unsigned new_slot(struct actor *actor, char kind)
{
    unsigned slot = actor->made++ % RECENT;
    actor->topics[slot] = (unsigned)below(actor, TOPICS);
    (void)snprintf(actor->ids[slot], sizeof actor->ids[slot], "%c%d-%u-%u", kind, (int)getpid(),
                   actor->number, actor->made);
    return slot;
}

static void cancel(struct actor *actor, unsigned slot)
{
    struct bel_command command = {.verb = BEL_VERB_CANCEL};
    actor->tokens[0] = (struct bel_view){actor->ids[slot], strlen(actor->ids[slot])};
    command.cancel.topic = topics[actor->topics[slot]];
    command.cancel.ids = actor->tokens;
    command.cancel.ids_count = 1;
    submit(actor, &command, "cancel %s %s", topic_name(actor, slot), actor->ids[slot]);
}

static void reschedule(struct actor *actor, unsigned slot)
{
    struct bel_command command = {.verb = BEL_VERB_RESCHEDULE};
    command.reschedule.topic = topics[actor->topics[slot]];
    command.reschedule.id = (struct bel_view){actor->ids[slot], strlen(actor->ids[slot])};
    command.reschedule.when = BEL_WHEN_IN;
    command.reschedule.delay_ms = below(actor, 1000);
    submit(actor, &command, "reschedule %s %s %" PRIu64, topic_name(actor, slot), actor->ids[slot],
           command.reschedule.delay_ms);
}

static void produce(struct actor *actor)
{
    unsigned last = (actor->made + RECENT - 1) % RECENT;
    unsigned known = actor->made < RECENT ? actor->made : RECENT;
    if (actor->is_retried && actor->ids[last][0] == 'p') {
        schedule_plan(actor, last);
    } else if (actor->is_retried) {
        schedule(actor, last, BEL_CONFLICT_KEEP);
    } else if (actor->made < plans) {
        schedule_plan(actor, new_slot(actor, 'p'));
    } else {
        unsigned slot = known > 0 ? (unsigned)below(actor, known) : 0;
        bool is_plan = known == 0 || actor->ids[slot][0] == 'p';
        uint64_t what = is_plan ? 0 : below(actor, 100);
        if (what < 75) {
            schedule(actor, new_slot(actor, 's'), BEL_CONFLICT_KEEP);
        } else if (what < 88) {
            cancel(actor, slot);
        } else if (what < 94) {
            reschedule(actor, slot);
        } else {
            schedule(actor, slot, BEL_CONFLICT_REPLACE);
        }
    }
}

static void end_produce(struct actor *actor, const struct bel_reply *reply)
{
    bool is_schedule = actor->request.command.verb == BEL_VERB_SCHEDULE;
    bool is_new = is_schedule && actor->request.command.schedule.conflict == BEL_CONFLICT_KEEP;
    bool is_refused = reply->err == BEL_EFULL;
    actor->is_retried = is_new && reply->err != 0 && !is_refused;
    if (is_new && is_refused) actor->made--; /* the next one has its id */
    rest(actor, below(actor, gap_ms + 1) + (reply->err ? gap_ms : 0));
}

/* --- workers --- */

static void claim(struct actor *actor)
{
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    unsigned first = (unsigned)below(actor, TOPICS);
    bool is_both = below(actor, 3) == 0;
    command.claim.topics = is_both ? topics : &topics[first];
    command.claim.topics_count = is_both ? TOPICS : 1;
    command.claim.count = (uint32_t)(1 + below(actor, count_max));
    command.claim.lease_ms = LEASE_MS_MIN + below(actor, EXTENSION_MS - LEASE_MS_MIN);
    command.claim.wait_ms = is_drain ? 50 : below(actor, 1000);
    actor->leases_count = actor->acked_count = 0;
    submit(actor, &command, "claim %s %" PRIu64,
           is_both      ? "a,b"
           : first == 0 ? "a"
                        : "b",
           command.claim.lease_ms);
}

static void take(struct actor *actor, const struct bel_reply *reply)
{
    uint64_t now = time_us();
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        const struct bel_delivery *delivery = &reply->deliveries.items[i];
        struct lease *lease = &actor->leases[actor->leases_count++];
        CHECK(actor->leases_count <= LEASES_MAX && delivery->token.bytes <= BEL_TOKEN_BYTES_MAX);
        memcpy(lease->token, delivery->token.data, delivery->token.bytes);
        lease->token[delivery->token.bytes] = 0;
        lease->end_us = now + delivery->lease_ms * 1000;
        lease->is_acked = false;
        note("D %d.%" PRIu64 " %" PRIu64 " %.*s %.*s %s %" PRId64 " %" PRIu64 " %" PRIu64 "\n",
             (int)getpid(), actor->op, now, (int)delivery->topic.bytes,
             (const char *)delivery->topic.data, (int)delivery->id.bytes,
             (const char *)delivery->id.data, lease->token, delivery->due.ms, delivery->attempt,
             delivery->lease_ms);
    }
    if (actor->leases_count > 0) rest(actor, below(actor, 30));
}

static void ack(struct actor *actor, size_t count)
{
    struct bel_command command = {.verb = BEL_VERB_ACK};
    char texts[LINE_BYTES / 2 - 8];
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        struct lease *lease = &actor->leases[actor->leases_count - 1 - i];
        actor->tokens[i] = (struct bel_view){lease->token, strlen(lease->token)};
        lease->is_acked = true;
        int more = snprintf(texts + bytes, sizeof texts - bytes, " %s", lease->token);
        bytes += (size_t)more;
        CHECK(bytes < sizeof texts);
    }
    actor->acked_count = count;
    command.ack.tokens = actor->tokens;
    command.ack.tokens_count = count;
    submit(actor, &command, "ack%s", texts);
}

static struct bel_view token_of(const struct lease *lease)
{
    return (struct bel_view){lease->token, strlen(lease->token)};
}

static void fail(struct actor *actor, const struct lease *lease)
{
    struct bel_command command = {.verb = BEL_VERB_FAIL};
    command.fail.token = token_of(lease);
    command.fail.reason = BEL_VIEW("by chance");
    command.fail.has_delay = true;
    command.fail.delay_ms = is_drain ? 0 : below(actor, 200);
    submit(actor, &command, "fail %s %" PRIu64, lease->token, command.fail.delay_ms);
}

static void release(struct actor *actor, const struct lease *lease)
{
    struct bel_command command = {.verb = BEL_VERB_RELEASE};
    command.release.token = token_of(lease);
    command.release.has_delay = below(actor, 2) == 0;
    command.release.delay_ms = below(actor, 100);
    if (command.release.has_delay) {
        submit(actor, &command, "release %s %" PRIu64, lease->token, command.release.delay_ms);
    } else {
        submit(actor, &command, "release %s -1", lease->token);
    }
}

static void extend(struct actor *actor, const struct lease *lease)
{
    struct bel_command command = {.verb = BEL_VERB_EXTEND};
    command.extend.token = token_of(lease);
    command.extend.lease_ms = EXTENSION_MS;
    submit(actor, &command, "extend %s %" PRIu64, lease->token, command.extend.lease_ms);
}

/* Works on the last lease: most are acknowledged, and some are lost or treated wrongly. */
static void work(struct actor *actor)
{
    struct lease *lease = &actor->leases[actor->leases_count - 1];
    uint64_t what = is_drain ? 0 : below(actor, 100);
    if (what < 35) {
        ack(actor, actor->leases_count);
    } else if (what < 70 || lease->is_acked) {
        ack(actor, 1);
    } else if (what < 77) {
        fail(actor, lease);
    } else if (what < 82) {
        release(actor, lease);
    } else if (what < 88) {
        extend(actor, lease);
    } else if (what < 94) {
        actor->leases_count--; /* the worker has crashed */
    } else {
        lease->is_acked = true; /* too late: somebody else may have the timer */
        uint64_t now = time_us(), late_us = below(actor, 600) * 1000;
        actor->wake_us = (lease->end_us > now ? lease->end_us : now) + late_us;
    }
}

static void end_work(struct actor *actor, const struct bel_reply *reply)
{
    enum bel_verb verb = actor->request.command.verb;
    if (verb == BEL_VERB_CLAIM && reply->err == 0) take(actor, reply);
    if (reply->err) rest(actor, 20);
    if (verb == BEL_VERB_CLAIM || verb == BEL_VERB_EXTEND) return;
    bool is_again = verb == BEL_VERB_ACK && actor->acked_count == 1 && below(actor, 20) == 0;
    if (is_again) return; /* acknowledges it once more */
    actor->leases_count -= verb == BEL_VERB_ACK ? actor->acked_count : 1;
}

/* --- the judge: waits until all has ended, then lists all --- */

static void look(struct actor *actor)
{
    struct bel_command command = {.verb = BEL_VERB_TOPIC};
    if (actor->step < TOPICS) {
        command.target.topic = topics[actor->step];
        submit(actor, &command, "topic %u", actor->step);
    } else {
        command.verb = BEL_VERB_LIST;
        command.list.topic = topics[actor->step - TOPICS];
        command.list.count = BEL_LIST_COUNT_MAX;
        command.list.cursor = actor->cursor;
        submit(actor, &command, "list %u", actor->step - TOPICS);
    }
}

static void end_look(struct actor *actor, const struct bel_reply *reply)
{
    bool is_list = actor->step >= TOPICS;
    if (reply->err) {
        (void)fprintf(stderr, "%s: %s\n", is_list ? "LIST" : "TOPIC", reply->why);
        rest(actor, 100);
        return;
    }
    if (!is_list) {
        const uint64_t *counts = reply->topic->counts;
        uint64_t left =
            counts[BEL_SCHEDULED] + counts[BEL_READY] + counts[BEL_LEASED] + counts[BEL_BLOCKED];
        bool is_over = patience_ms > 0 && time_us() > start_us + patience_ms * 1000;
        actor->step = left == 0 || is_over ? actor->step + 1 : 0;
        if (left > 0) rest(actor, 50);
        return;
    }
    note_timers(reply);
    struct bel_view cursor = reply->timers.cursor;
    CHECK(cursor.bytes < sizeof actor->cursor_text);
    if (cursor.bytes > 0) memcpy(actor->cursor_text, cursor.data, cursor.bytes);
    actor->cursor = (struct bel_view){actor->cursor_text, cursor.bytes};
    if (cursor.bytes == 0 && ++actor->step == 2 * TOPICS) is_drained = actor->is_over = true;
}

/* --- all --- */

static void act(struct actor *actor)
{
    switch (actor->role) {
    case SETUP:
        set_up(actor);
        break;
    case PRODUCER:
        if (is_ending) {
            actor->is_over = true;
        } else {
            produce(actor);
        }
        break;
    case WORKER:
        if (is_ending || is_drained) {
            actor->is_over = true;
        } else if (actor->leases_count > 0) {
            work(actor);
        } else {
            claim(actor);
        }
        break;
    case JUDGE:
        look(actor);
        break;
    }
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    struct actor *actor = (struct actor *)request;
    uint64_t count = request->command.verb == BEL_VERB_CLAIM ? reply->deliveries.count
                     : request->command.verb == BEL_VERB_ACK ||
                             request->command.verb == BEL_VERB_CANCEL ||
                             request->command.verb == BEL_VERB_RESCHEDULE
                         ? reply->count
                         : 1;
    void (*const ends[])(struct actor * actor, const struct bel_reply *reply) = {
        [SETUP] = end_set_up, [PRODUCER] = end_produce, [WORKER] = end_work, [JUDGE] = end_look};
    actor->is_busy = false;
    ends[actor->role](actor, reply);
    note("E %d.%" PRIu64 " %" PRIu64 " %s %" PRIu64 "\n", (int)getpid(), actor->op, time_us(),
         outcome_of(reply), reply->err ? 0 : count);
}

static struct bel_now now_of_node(void)
{
    struct bel_now now = bel_clock_now(bel_clock_system());
    now.wall.ms += skew_ms;
    return now;
}

/* Lets every actor begin what it can, and returns when the next one can, in us. */
static uint64_t act_all(void)
{
    uint64_t now = time_us(), next = now + (uint64_t)STEP_MS * 1000;
    for (size_t i = 0; i < actors_count; i++) {
        struct actor *actor = &actors[i];
        if (actor->is_busy || actor->is_over) continue;
        if (!is_set_up && actor->role != SETUP) continue;
        if (actor->wake_us <= now) act(actor);
        if (!actor->is_busy && actor->wake_us < next) next = actor->wake_us;
    }
    return next;
}

static bool is_over(void)
{
    for (size_t i = 0; i < actors_count; i++) {
        if (actors[i].is_busy || (!actors[i].is_over && !is_ending)) return false;
    }
    return true;
}

static void step(void)
{
    uint64_t wake_us = act_all();
    struct bel_now now = now_of_node();
    struct bel_next next = bel_backend_turn(backend, now);
    uint64_t time = time_us(), left_us = wake_us > time ? wake_us - time : 0;
    uint64_t due_us = next.due.ns > now.boot.ns ? (next.due.ns - now.boot.ns) / 1000 + 1 : 0;
    uint64_t wait_us = next.wait.ns > now.real.ns ? (next.wait.ns - now.real.ns) / 1000 + 1 : 0;
    if (due_us < left_us) left_us = due_us;
    if (wait_us < left_us) left_us = wait_us;
    struct pollfd fd = {.fd = bel_backend_descriptor(backend), .events = POLLIN};
    (void)poll(&fd, 1, (int)((left_us + 999) / 1000)); /* or a signal */
}

static void add(enum role role, uint64_t count)
{
    for (uint64_t i = 0; i < count && actors_count < ACTORS_MAX; i++) {
        struct actor *actor = &actors[actors_count];
        actor->role = role;
        actor->number = (unsigned)actors_count++;
        actor->random = seed * 1000 + actor->number;
    }
}

static void end(int number)
{
    (void)number;
    is_ending = 1;
}

static void read_option(const char *text)
{
    const struct {
        const char *name;
        uint64_t *number;
    } options[] = {
        {"workers=", &workers},      {"producers=", &producers}, {"plans=", &plans},
        {"gap=", &gap_ms},           {"payload=", &payload},     {"crashes=", &crashes},
        {"drain=", &is_drain},       {"count=", &count_max},     {"call=", &call_ms},
        {"patience=", &patience_ms},
    };
    if (strncmp(text, "skew=", 5) == 0) {
        skew_ms = strtoll(text + 5, NULL, 10);
        return;
    }
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        size_t bytes = strlen(options[i].name);
        if (strncmp(text, options[i].name, bytes) != 0) continue;
        *options[i].number = strtoull(text + bytes, NULL, 10);
        return;
    }
    CHECK_NOTE("option %s", text);
    CHECK(false);
}

int main(int argc, char **argv)
{
    struct bel_redis_options options = {.name_space = "history"};
    CHECK(argc >= 4);
    options.servers.path = argv[1];
    log_fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(log_fd >= 0);
    seed = strtoull(argv[3], NULL, 10);
    start_us = time_us();
    for (int i = 4; i < argc; i++) {
        read_option(argv[i]);
    }
    CHECK(payload <= PAYLOAD_MAX && count_max >= 1 && count_max <= LEASES_MAX);
    memset(payload_bytes, 'x', sizeof payload_bytes);
    options.servers.call_ms = (uint32_t)call_ms;
    (void)signal(SIGTERM, end);
    CHECK(bel__redis_open(&options, now_of_node(), &redis) == 0);
    backend = bel__redis_backend(redis);
    add(SETUP, 1);
    add(PRODUCER, is_drain ? 0 : producers);
    add(WORKER, workers);
    add(JUDGE, is_drain);
    while (!is_over()) {
        step();
    }
    bel__redis_close(redis);
    return EXIT_SUCCESS;
}
