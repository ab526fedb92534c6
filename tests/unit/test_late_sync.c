/* SPDX-License-Identifier: MIT */

/*
 * An engine whose batches are synced after their turn: which reply waits for which sync. The linker
 * sends the step that writes and syncs here (--wrap), so that a test decides when a sync ends. It
 * also sends here the question how long commands are held back.
 */
#include "engine/engine.h"
#include "store/log/writer.h"

#include "../ask.h"
#include "../sim/disk.h"

#define MS_NS UINT64_C(1000000)

enum {
    MANY = 1000,
};

void __real_bel__log_writer_step(struct bel_log_writer *writer);
void __wrap_bel__log_writer_step(struct bel_log_writer *writer);
uint64_t __wrap_bel__store_hold_ns(struct bel_store *store, enum bel_store_use use);

static struct disk *disk;
static struct bel_tree *tree;
static struct bel_engine *engine;
static struct bel_backend *backend;
static struct bel_now now;
static struct bel_next next;
static unsigned syncs_allowed;
static uint64_t hold_ns[2];

void __wrap_bel__log_writer_step(struct bel_log_writer *writer)
{
    if (syncs_allowed == 0) return;
    syncs_allowed--;
    __real_bel__log_writer_step(writer);
}

uint64_t __wrap_bel__store_hold_ns(struct bel_store *store, enum bel_store_use use)
{
    (void)store;
    return hold_ns[use];
}

struct asked {
    struct bel_request request;
    struct reply_seen answer;
};

static void submit(struct asked *asked, struct bel_command command)
{
    asked->request = (struct bel_request){.command = command};
    ask_submit(backend, &asked->request, &asked->answer);
}

static void turn(void)
{
    next = bel_backend_turn(backend, now);
}

/* A turn, at whose end everything is synced, and one that gives the answers. */
static void sync(void)
{
    syncs_allowed = 1;
    turn();
    CHECK_EQ(syncs_allowed, 0);
    turn();
}

static void setup_with(enum bel_store_sync sync)
{
    struct bel_store *store;
    now = (struct bel_now){.boot = {UINT64_C(3600) * 1000 * MS_NS},
                           .wall = {1767225600000},
                           .real = {UINT64_C(3600) * 1000 * MS_NS}};
    disk = disk_create(1);
    disk_plan(disk)->free_bytes = UINT64_C(1) << 40;
    CHECK(bel__tree_memory_create_lasting(&tree) == 0);
    struct bel_store_options options = {
        .io = disk_io(disk), .tree = tree, .segment_bytes = 1 << 20, .sync = sync};
    CHECK(bel__store_open(&options, &store, NULL) == 0);
    struct bel_engine_options engine_options = {.now = now};
    CHECK(bel__engine_open_on(&engine_options, store, bel__entropy_system(), &engine) == 0);
    backend = bel_engine_backend(engine);
    hold_ns[0] = hold_ns[1] = 0;
}

static void setup(void)
{
    setup_with(BEL_SYNC_IN_WORK);
}

static void teardown(void)
{
    syncs_allowed = MANY;
    bel_engine_close(engine);
    bel__tree_memory_destroy(tree);
    disk_destroy(disk);
    syncs_allowed = 0;
}

static struct bel_command schedule(const char *topic, const char *id, uint64_t delay_ms)
{
    return (struct bel_command){
        .verb = BEL_VERB_SCHEDULE,
        .schedule = {
            .topic = view(topic), .id = view(id), .when = BEL_WHEN_IN, .delay_ms = delay_ms}};
}

static struct bel_command of_id(enum bel_verb verb, const char *topic, const char *id)
{
    return (struct bel_command){.verb = verb, .target = {.topic = view(topic), .id = view(id)}};
}

static struct bel_command of_topic(enum bel_verb verb, const char *topic)
{
    struct bel_command command = {.verb = verb};
    if (verb == BEL_VERB_LIST) command.list.topic = view(topic);
    if (verb == BEL_VERB_TOPIC) command.target.topic = view(topic);
    if (verb == BEL_VERB_AGENDA) command.agenda.topic = view(topic);
    return command;
}

static struct bel_command claim(const struct bel_view *topic, uint64_t wait_ms)
{
    return (struct bel_command){.verb = BEL_VERB_CLAIM,
                                .claim = {.topics = topic, .topics_count = 1, .wait_ms = wait_ms}};
}

static struct bel_command cancel(const char *topic, const struct bel_view *id)
{
    return (struct bel_command){.verb = BEL_VERB_CANCEL,
                                .cancel = {.topic = view(topic), .ids = id, .ids_count = 1}};
}

/* Returns whether a command is answered in the turn in which it is asked, without a sync. */
static bool is_told_at_once(struct bel_command command)
{
    static struct asked asked;
    submit(&asked, command);
    turn();
    if (asked.answer.is_done) return true;
    sync();
    CHECK(asked.answer.is_done); /* and no read waits for more than one */
    return false;
}

/* Topic `old` is synced, and `fresh` is not. */
static void prepare(struct asked *unsynced)
{
    struct asked synced[2];
    setup();
    submit(&synced[0], schedule("old", "a", MS_NS));
    submit(&synced[1], schedule("fresh", "a", MS_NS));
    turn();
    sync();
    CHECK(synced[0].answer.is_done && synced[1].answer.is_done);
    submit(unsynced, schedule("fresh", "b", MS_NS));
    turn();
    CHECK(!unsynced->answer.is_done);
}

static void a_read_of_what_is_synced_waits_for_nothing(void)
{
    struct asked unsynced;
    prepare(&unsynced);
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "old", "a")));
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "old", "none")));
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "none", "a")));
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "fresh", "a"))); /* another row of the topic */
    CHECK(is_told_at_once(of_topic(BEL_VERB_LIST, "old")));
    CHECK(is_told_at_once(of_topic(BEL_VERB_TOPIC, "old")));
    CHECK(is_told_at_once(of_topic(BEL_VERB_TOPIC, "none")));
    CHECK(is_told_at_once(of_topic(BEL_VERB_AGENDA, "old")));
    CHECK(is_told_at_once(of_id(BEL_VERB_EXPLAIN, "old", "a")));
    CHECK(is_told_at_once((struct bel_command){.verb = BEL_VERB_TOPICS}));
    CHECK(is_told_at_once(claim(&(struct bel_view){"old", 3}, 0)));
    CHECK(!unsynced.answer.is_done);
    sync();
    CHECK(unsynced.answer.is_done);
    teardown();
}

/* Statistics are told at once, whatever is not synced; a change never is. */
static void an_early_read_waits_for_nothing(void)
{
    const struct bel_command reads[] = {
        of_topic(BEL_VERB_TOPIC, "fresh"),
        of_topic(BEL_VERB_TOPIC, "new"),
        {.verb = BEL_VERB_TOPICS},
    };
    struct asked unsynced, other, early;
    prepare(&unsynced);
    submit(&other, schedule("new", "a", MS_NS));
    turn();
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        CHECK_NOTE("read %zu", i);
        early.request = (struct bel_request){.command = reads[i], .is_early = true};
        ask_submit(backend, &early.request, &early.answer);
        turn();
        CHECK(early.answer.is_done);
    }
    early.request = (struct bel_request){.command = schedule("new", "b", MS_NS), .is_early = true};
    ask_submit(backend, &early.request, &early.answer);
    turn();
    CHECK(!early.answer.is_done && !unsynced.answer.is_done && !other.answer.is_done);
    sync();
    sync();
    CHECK(early.answer.is_done && unsynced.answer.is_done && other.answer.is_done);
    teardown();
}

/* In the turn of the change, and in a later one. */
static void a_read_waits_for_the_change_that_it_shows(void)
{
    const struct bel_command reads[] = {
        of_id(BEL_VERB_GET, "fresh", "b"),        of_id(BEL_VERB_EXPLAIN, "fresh", "b"),
        of_topic(BEL_VERB_LIST, "fresh"),         of_topic(BEL_VERB_TOPIC, "fresh"),
        of_topic(BEL_VERB_AGENDA, "fresh"),       of_topic(BEL_VERB_AGENDA, ""),
        claim(&(struct bel_view){"fresh", 5}, 0),
    };
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        struct asked unsynced;
        CHECK_NOTE("read %zu", i);
        prepare(&unsynced);
        CHECK(!is_told_at_once(reads[i]));
        CHECK(is_told_at_once(reads[i]));
        submit(&unsynced, schedule("fresh", "b", 2 * MS_NS)); /* another time, in the same turn */
        CHECK(!is_told_at_once(reads[i]));
        CHECK(unsynced.answer.is_done);
        teardown();
    }
}

static void what_is_gone_is_gone_when_that_is_synced(void)
{
    struct asked unsynced, cancelled, claimed, acked;
    struct bel_view id = view("a"), topic = view("ready"), token;
    prepare(&unsynced);
    submit(&cancelled, cancel("old", &id));
    turn();
    CHECK(!is_told_at_once(of_id(BEL_VERB_GET, "old", "a")));
    CHECK(cancelled.answer.is_done && cancelled.answer.count == 1);
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "old", "a")));

    submit(&unsynced, schedule("ready", "c", 0));
    turn();
    sync();
    submit(&claimed, claim(&topic, 0));
    turn();
    CHECK(!is_told_at_once(of_id(BEL_VERB_GET, "ready", "c"))); /* which is leased now */
    CHECK(claimed.answer.is_done && claimed.answer.deliveries == 1);
    token = view(claimed.answer.token);
    submit(&acked, (struct bel_command){.verb = BEL_VERB_RELEASE, .release = {.token = token}});
    turn();
    CHECK(!is_told_at_once(of_id(BEL_VERB_GET, "ready", "c"))); /* which is ready again */
    CHECK(acked.answer.is_done && acked.answer.err == 0);
    teardown();
}

static void a_reply_waits_for_its_own_sync_and_no_later_one(void)
{
    struct asked asked[3];
    setup();
    submit(&asked[0], schedule("t", "a", MS_NS));
    turn();
    syncs_allowed = 1;
    submit(&asked[1], schedule("t", "b", MS_NS)); /* in the same sync */
    turn();
    submit(&asked[2], schedule("t", "c", MS_NS)); /* in the next */
    turn();
    CHECK(asked[0].answer.is_done && asked[1].answer.is_done && !asked[2].answer.is_done);
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "t", "b")));
    CHECK(!is_told_at_once(of_id(BEL_VERB_GET, "t", "c")));
    CHECK(asked[2].answer.is_done);
    teardown();
}

/* Turns during a sync are many on a slow disk, and none of them waits for it. */
static void turns_do_not_wait_for_a_sync(void)
{
    static struct asked asked[MANY];
    static char ids[MANY][16];
    setup();
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "i%zu", i);
        submit(&asked[i], schedule("t", ids[i], MS_NS));
        turn();
        CHECK(!asked[i].answer.is_done);
    }
    CHECK(is_told_at_once(of_topic(BEL_VERB_LIST, "other")));
    sync();
    for (size_t i = 0; i < MANY; i++) {
        CHECK(asked[i].answer.is_done);
    }
    teardown();
}

static void an_empty_claim_shows_its_topics(void)
{
    struct asked waits, unsynced;
    struct bel_view old = view("old"), fresh = view("fresh");
    prepare(&unsynced);
    submit(&waits, claim(&old, 1));
    turn();
    now.real.ns += 2 * MS_NS;
    turn();
    CHECK(waits.answer.is_done && waits.answer.deliveries == 0);
    submit(&waits, claim(&fresh, 1));
    turn();
    now.real.ns += 2 * MS_NS;
    turn();
    CHECK(!waits.answer.is_done);
    sync();
    CHECK(waits.answer.is_done && waits.answer.deliveries == 0);
    teardown();
}

/* A claim is served in the turn in which a timer is due; the reply takes the sync that is running
 * then, at most, and its own. */
static void a_delivery_takes_its_own_sync(void)
{
    struct asked scheduled, waits;
    struct bel_view topic = view("t");
    setup();
    submit(&scheduled, schedule("t", "a", 10));
    turn();
    sync();
    submit(&waits, claim(&topic, MS_NS));
    turn();
    now.boot.ns += 10 * MS_NS;
    now.wall.ms += 10;
    now.real.ns += 10 * MS_NS;
    turn();
    CHECK(!waits.answer.is_done);
    sync();
    CHECK(waits.answer.is_done && waits.answer.deliveries == 1);
    teardown();
}

/* --- commands that are held back --- */

static void additions_wait_until_they_may_and_in_order(void)
{
    struct asked before, added, read;
    setup();
    submit(&before, schedule("t", "a", MS_NS));
    turn();
    sync();
    hold_ns[BEL_STORE_ADD] = 5 * MS_NS;
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "t", "a")));
    CHECK_EQ(next.add.ns, now.real.ns + 5 * MS_NS);
    CHECK_EQ(next.change.ns, 0);
    submit(&added, schedule("t", "b", MS_NS));
    submit(&read, of_id(BEL_VERB_GET, "t", "b")); /* of the same caller: after it */
    turn();
    CHECK(!added.answer.is_done && !read.answer.is_done);
    CHECK_EQ(next.wait.ns, now.real.ns + 5 * MS_NS);
    CHECK(next.due.ns > now.boot.ns); /* nobody need turn before */
    now.real.ns += 5 * MS_NS;
    hold_ns[BEL_STORE_ADD] = 0;
    turn();
    CHECK(next.add.ns == 0);
    sync();
    CHECK(added.answer.is_done && read.answer.is_done);
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "t", "b")));
    teardown();
}

static void others_go_on_while_additions_wait(void)
{
    struct asked first, claimed, acked, cancelled;
    struct bel_view topic = view("t"), id = view("b"), token;
    setup();
    submit(&first, schedule("t", "a", 0));
    submit(&cancelled, schedule("t", "b", MS_NS));
    turn();
    sync();
    hold_ns[BEL_STORE_ADD] = MS_NS;
    turn();
    submit(&claimed, claim(&topic, 0));
    turn();
    sync();
    CHECK_EQ(claimed.answer.deliveries, 1);
    token = view(claimed.answer.token);
    submit(&acked, (struct bel_command){.verb = BEL_VERB_ACK,
                                        .ack = {.tokens = &token, .tokens_count = 1}});
    submit(&cancelled, cancel("t", &id));
    turn();
    sync();
    CHECK_EQ(acked.answer.count, 1);
    CHECK_EQ(cancelled.answer.count, 1);

    hold_ns[BEL_STORE_END] = MS_NS; /* the reserve is in use: now all that changes waits */
    turn();
    CHECK_EQ(next.change.ns, now.real.ns + MS_NS);
    submit(&claimed, claim(&topic, 0));
    turn();
    CHECK(!claimed.answer.is_done);
    hold_ns[BEL_STORE_ADD] = hold_ns[BEL_STORE_END] = 0;
    turn();
    CHECK(claimed.answer.is_done);
    teardown();
}

/* --- a disk that becomes slow --- */

/* Schedules a timer, and returns whether the reply comes in the turn of the request. */
static bool is_synced_in_turn(const char *id)
{
    struct asked added;
    submit(&added, schedule("t", id, MS_NS));
    turn();
    bool is_done = added.answer.is_done;
    if (!is_done) sync();
    CHECK(added.answer.is_done && added.answer.err == 0);
    return is_done;
}

static void a_disk_that_becomes_slow_is_left_to_a_thread(void)
{
    static const char payload[100000];
    const struct bel_engine_stats *stats;
    struct asked added, read, list;
    setup_with(BEL_SYNC_ADAPTIVE);
    stats = bel_engine_stats(engine);
    disk_plan(disk)->sync_ns = 4 * MS_NS;
    for (int i = 0; i < 100; i++) {
        CHECK(is_synced_in_turn("fast"));
    }
    for (int i = 0; i < 100; i++) { /* one hiccup in two syncs */
        disk_plan(disk)->sync_ns = i % 2 == 0 ? 300 * MS_NS : MS_NS;
        CHECK(is_synced_in_turn("hiccup"));
    }
    disk_plan(disk)->sync_ns = 5 * MS_NS + MS_NS / 2; /* 100 kB may take that long */
    for (int i = 0; i < 20; i++) {
        struct bel_command large = schedule("t", "large", MS_NS);
        large.schedule.payload = (struct bel_view){payload, sizeof payload};
        submit(&added, large);
        turn();
        CHECK(added.answer.is_done && added.answer.err == 0);
        turn(); /* for the checkpoint */
    }
    CHECK(!stats->is_sync_in_thread && stats->slow_sync_us == 0);
    disk_plan(disk)->sync_ns = 200 * MS_NS;
    unsigned slow = 0;
    while (is_synced_in_turn("slow")) {
        slow++;
    }
    CHECK(slow > 0 && slow <= 8);
    CHECK(stats->is_sync_in_thread);
    CHECK_EQ(stats->slow_sync_us, 200000);

    submit(&added, schedule("t", "a", MS_NS)); /* not durable yet */
    submit(&read, of_id(BEL_VERB_GET, "t", "a"));
    submit(&list, of_topic(BEL_VERB_LIST, "other"));
    turn();
    CHECK(!added.answer.is_done && !read.answer.is_done && list.answer.is_done);
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "t", "fast"))); /* from before the change */
    CHECK(is_told_at_once(of_id(BEL_VERB_GET, "t", "slow")));
    sync();
    CHECK(added.answer.is_done && read.answer.is_done);
    teardown();
}

static void the_thread_is_chosen_only_where_that_is_wanted(void)
{
    setup_with(BEL_SYNC_IN_COMMIT);
    disk_plan(disk)->sync_ns = 200 * MS_NS;
    for (int i = 0; i < 100; i++) {
        CHECK(is_synced_in_turn("a"));
    }
    CHECK(!bel_engine_stats(engine)->is_sync_in_thread);
    teardown();
}

int main(void)
{
    RUN(a_read_of_what_is_synced_waits_for_nothing);
    RUN(an_early_read_waits_for_nothing);
    RUN(a_read_waits_for_the_change_that_it_shows);
    RUN(what_is_gone_is_gone_when_that_is_synced);
    RUN(a_reply_waits_for_its_own_sync_and_no_later_one);
    RUN(turns_do_not_wait_for_a_sync);
    RUN(an_empty_claim_shows_its_topics);
    RUN(a_delivery_takes_its_own_sync);
    RUN(additions_wait_until_they_may_and_in_order);
    RUN(others_go_on_while_additions_wait);
    RUN(a_disk_that_becomes_slow_is_left_to_a_thread);
    RUN(the_thread_is_chosen_only_where_that_is_wanted);
    return 0;
}
