/* SPDX-License-Identifier: MIT */

/*
 * Flipped bits in the pages of a tree that is in use. A folder with timers is closed, one bit of
 * its tree is flipped, and an engine opens it, without a check before, and works on it. Or an
 * engine, which was told that all pages have been checked, works on it, and the bit is flipped
 * between two of its turns:
 *
 *     named      the open or a command fails with BEL_ECORRUPT, and the store tells where; or the
 *                handler of faults in the map names the page and exits
 *     harmless   every reply is right, also after checkpoints and after another open
 *
 * Any other end is a failure: a signal, a wrong reply, another error. Half of the flips are in the
 * first bytes of a page, where the structure is.
 *
 *     fault_page 4711        runs only that seed, in both ways
 */
#include "scene.h"
#include "shim.h"

#include "../ask.h"
#include "../check.h"
#include "../random.h"
#include "core/units.h"
#include "engine/engine.h"
#include "store/state.h"
#include "store/tree/map_fault.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SEEDS = 500,
    SEEDS_RUNNING = 500,
    SEEDS_LONG = 20000,
    FOLDERS = 4, /* different folders; a seed uses one of them */
    TIMERS = 1600,
    TIMERS_MORE = 150,
    CANCELS = 20, /* timers cancelled by one command */
    PAYLOAD_BYTES_MAX = 3200,
    SEGMENT_BYTES = 256 << 10,
    PAGE_BYTES = 4096,
    PAGE_FLAGS = 10, /* offset in a page */
    IS_BRANCH = 1,
    HEAD_BYTES = 96, /* of a page: its header and the list of nodes */
    NAMED = 10,      /* exit status */
    TOPICS = 3,
};

static const char *const topics[TOPICS] = {"mail", "order", "sms"};
static char folders[FOLDERS][SCENE_PATH_BYTES], copy[SCENE_PATH_BYTES];
static bool has_timer[FOLDERS][TIMERS + TIMERS_MORE];

struct host {
    struct bel_store *store;
    struct bel_engine *engine;
    struct bel_backend *backend;
    struct bel_entropy_seeded entropy;
    struct bel_now now;
    bool is_victim;  /* damage is expected */
    bool is_running; /* when the bit is flipped */
    uint64_t chance;
    bool *has; /* of each number, whether the timer exists */
};

/* Ends the process: the damage was named. */
static void end_named(const struct host *host, int err, const char *why)
{
    CHECK_NOTE("%s: %s", bel_error_text(err), why);
    CHECK(host->is_victim);
    CHECK(err == BEL_ECORRUPT || err == BEL_EUNSUPPORTED);
    CHECK(why[0] != 0);
    _exit(NAMED);
}

static void host_open(struct host *host, const char *folder)
{
    struct bel_store_options options = {.path = folder,
                                        .segment_bytes = SEGMENT_BYTES,
                                        .segment_count = 3,
                                        .is_tree_checked = host->is_running,
                                        .transaction_rows = 300};
    struct bel_why why = {0};
    host->now = (struct bel_now){
        .wall = {INT64_C(1767225600000)}, .boot = {NS_PER_MS}, .real = {NS_PER_MS}};
    bel__entropy_seed(&host->entropy, 1);
    int err = bel__store_open(&options, &host->store, &why);
    if (err) end_named(host, err, why.text);
    struct bel_engine_options engine_options = {.now = host->now};
    err = bel__engine_open_on(&engine_options, host->store, &host->entropy.entropy, &host->engine);
    if (err) end_named(host, err, bel__store_damage(host->store));
    host->backend = bel_engine_backend(host->engine);
}

static struct bel_view id_of(unsigned number, char out[32])
{
    return (struct bel_view){out, (size_t)snprintf(out, 32, "timer-%u", number)};
}

/* Most payloads are short; some need an overflow page, or chunks. */
static struct bel_view payload_of(unsigned number, char out[PAYLOAD_BYTES_MAX])
{
    size_t bytes = number % 23 == 0 ? PAYLOAD_BYTES_MAX : 20 + number % 90;
    memset(out, 'a' + (int)(number % 26), bytes);
    return (struct bel_view){out, bytes};
}

static unsigned any(struct host *host)
{
    return (unsigned)random_below(&host->chance, TIMERS + TIMERS_MORE);
}

/* --- commands --- */

struct heard {
    struct bel_request request; /* first */
    struct host *host;
    bool is_done;
    int err;
    uint64_t count; /* of timers */
    char cursor[512];
    size_t cursor_bytes;
};

static void see(struct host *host, const struct bel_timer *timer)
{
    char id[32], payload[PAYLOAD_BYTES_MAX];
    unsigned number = 0;
    (void)snprintf(id, sizeof id, "%.*s", (int)timer->id.bytes, (const char *)timer->id.data);
    CHECK_NOTE("%s", id);
    CHECK(sscanf(id, "timer-%u", &number) == 1 && number < TIMERS + TIMERS_MORE);
    struct bel_view want = payload_of(number, payload);
    CHECK(host->has[number]);
    CHECK(timer->payload.bytes == want.bytes);
    CHECK(memcmp(timer->payload.data, want.data, want.bytes) == 0);
}

static void done(struct bel_request *request, const struct bel_reply *reply)
{
    struct heard *heard = (struct heard *)request;
    enum bel_verb verb = request->command.verb;
    heard->is_done = true;
    heard->err = reply->err;
    if (reply->err != 0) return;
    if (verb == BEL_VERB_CANCEL) heard->count = reply->count;
    if (verb != BEL_VERB_GET && verb != BEL_VERB_LIST) return;
    heard->count = reply->timers.count;
    for (size_t i = 0; i < reply->timers.count; i++) {
        see(heard->host, &reply->timers.items[i]);
    }
    heard->cursor_bytes = reply->timers.cursor.bytes;
    CHECK(heard->cursor_bytes <= sizeof heard->cursor);
    if (heard->cursor_bytes > 0) {
        memcpy(heard->cursor, reply->timers.cursor.data, heard->cursor_bytes);
    }
}

/* Sends a command, and takes turns until it is answered. Damage ends the process. */
static struct heard *send(struct host *host, const struct bel_command *command)
{
    static struct heard heard;
    char cursor_copy[sizeof heard.cursor];
    memcpy(cursor_copy, heard.cursor, sizeof cursor_copy);
    heard = (struct heard){.host = host, .request = {.command = *command, .done = done}};
    memcpy(heard.cursor, cursor_copy, sizeof cursor_copy);
    bel_backend_submit(host->backend, &heard.request);
    for (unsigned i = 0; i < 100000 && !heard.is_done; i++) {
        (void)bel_backend_turn(host->backend, host->now);
    }
    CHECK(heard.is_done);
    if (heard.err != 0) end_named(host, heard.err, bel__store_damage(host->store));
    return &heard;
}

static void get(struct host *host, unsigned number)
{
    char id[32];
    struct bel_command command = {.verb = BEL_VERB_GET,
                                  .target = {view(topics[number % TOPICS]), id_of(number, id)}};
    CHECK_NOTE("GET %s", id);
    CHECK_EQ(send(host, &command)->count, host->has[number]);
}

/* Cancels timers of one topic, most of them different ones. */
static void cancel_some(struct host *host, unsigned topic)
{
    char texts[CANCELS][32];
    struct bel_view ids[CANCELS];
    uint64_t want = 0;
    for (unsigned i = 0; i < CANCELS; i++) {
        unsigned number = any(host) / TOPICS * TOPICS + topic;
        number = number < TIMERS + TIMERS_MORE ? number : topic;
        ids[i] = id_of(number, texts[i]);
        want += host->has[number];
        host->has[number] = false;
    }
    struct bel_command command = {
        .verb = BEL_VERB_CANCEL,
        .cancel = {.topic = view(topics[topic]), .ids = ids, .ids_count = CANCELS}};
    uint64_t count = send(host, &command)->count;
    CHECK_NOTE("CANCEL from %s on", texts[0]);
    CHECK_EQ(count, want);
}

static void schedule(struct host *host, unsigned number)
{
    char id[32], payload[PAYLOAD_BYTES_MAX];
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE,
                                  .schedule = {.topic = view(topics[number % TOPICS]),
                                               .id = id_of(number, id),
                                               .payload = payload_of(number, payload),
                                               .when = BEL_WHEN_IN,
                                               .delay_ms = 3600000 + number * 7919 % 100000}};
    (void)send(host, &command);
    host->has[number] = true;
}

static void list(struct host *host)
{
    uint64_t want = 0, found = 0;
    for (unsigned i = 0; i < TIMERS + TIMERS_MORE; i++) {
        want += host->has[i];
    }
    for (unsigned i = 0; i < TOPICS; i++) {
        struct bel_command command = {.verb = BEL_VERB_LIST,
                                      .list = {.topic = view(topics[i]), .count = 500}};
        struct heard *heard;
        do {
            heard = send(host, &command);
            found += heard->count;
            command.list.cursor = (struct bel_view){heard->cursor, heard->cursor_bytes};
        } while (heard->cursor_bytes > 0);
    }
    CHECK_EQ(found, want);
}

/* --- sessions --- */

/* Reads and changes timers in an order that the seed determines. */
static void work(struct host *host)
{
    if (random_below(&host->chance, 3) == 0) list(host);
    for (unsigned i = 0; i < 60; i++) {
        get(host, any(host));
    }
    for (unsigned i = 0; i < TOPICS; i++) {
        cancel_some(host, i);
    }
    for (unsigned i = 0; i < 20; i++) {
        schedule(host, TIMERS + (unsigned)random_below(&host->chance, TIMERS_MORE));
    }
}

/* Makes the store write everything to the tree. */
static void checkpoint(struct host *host)
{
    host->store->is_freeze_due = true;
    for (unsigned i = 0; i < 100000; i++) {
        (void)bel__store_work(host->store);
        (void)bel__store_commit(host->store);
        if (bel__store_error(host->store) != 0) {
            end_named(host, bel__store_error(host->store), bel__store_damage(host->store));
        }
        if (host->store->freeze == BEL_FREEZE_NONE && !host->store->is_freeze_due) return;
    }
    CHECK(false);
}

/* Called in a signal handler: the page is named. */
static void name_page(uint64_t page)
{
    (void)page;
    _exit(NAMED);
}

/* Chooses a page: sometimes a meta page, often a branch, of which a tree has few. */
static uint64_t choose_page(uint64_t *chance, const uint8_t *data, uint64_t count)
{
    uint64_t kind = random_below(chance, 16), page = random_below(chance, count);
    if (kind == 0) return page % 2;
    for (uint64_t i = 0; kind < 5 && i < count; i++) {
        uint64_t next = (page + i) % count;
        if (data[next * PAGE_BYTES + PAGE_FLAGS] == IS_BRANCH) return next;
    }
    return page;
}

/* Flips a bit of the copy. */
static void flip(uint64_t *chance)
{
    char path[2 * SCENE_PATH_BYTES];
    size_t bytes;
    uint8_t *data = scene_read(copy, "tree/data.mdb", &bytes);
    CHECK(data != NULL);
    uint64_t page = choose_page(chance, data, bytes / PAGE_BYTES);
    uint64_t offset = random_below(chance, random_below(chance, 2) == 0 ? HEAD_BYTES : PAGE_BYTES);
    size_t at = (size_t)(page * PAGE_BYTES + offset);
    unsigned bit = (unsigned)random_below(chance, 8);
    uint8_t byte = (uint8_t)(data[at] ^ 1U << bit);
    free(data);
    (void)snprintf(path, sizeof path, "%s/tree/data.mdb", copy);
    int file = open(path, O_RDWR | O_CLOEXEC);
    CHECK(file >= 0 && pwrite(file, &byte, 1, (off_t)at) == 1 && close(file) == 0);
    CHECK_NOTE("page %llu, byte %llu, bit %u", (unsigned long long)page, (unsigned long long)offset,
               bit);
}

/* --- victims --- */

static void get_all(struct host *host)
{
    for (unsigned i = 0; i < TIMERS + TIMERS_MORE; i++) {
        get(host, i);
    }
    list(host);
}

static void run_victim(struct host *host)
{
    struct shim_plan plan = {.skips_syncs = true};
    shim_watch(copy, &plan);
    CHECK(bel__map_fault_install(name_page) == 0);
    host_open(host, copy);
    work(host);
    checkpoint(host);
    if (host->is_running) flip(&host->chance);
    work(host);
    list(host);
    if (host->is_running) {
        checkpoint(host);
        get_all(host);
    }
    bel_engine_close(host->engine);
    if (host->is_running) _exit(0);
    host_open(host, copy);
    get_all(host);
    bel_engine_close(host->engine);
    _exit(0);
}

static bool run_seed(uint64_t seed, bool is_running)
{
    unsigned which = (unsigned)(seed % FOLDERS);
    struct host host = {
        .is_victim = true, .is_running = is_running, .chance = seed, .has = has_timer[which]};
    scene_copy(folders[which], copy);
    if (!is_running) flip(&host.chance);
    (void)fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) run_victim(&host);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != NAMED)) {
        (void)fprintf(stderr, "seed %llu: status %x\n", (unsigned long long)seed, (unsigned)status);
        abort();
    }
    return WEXITSTATUS(status) == NAMED;
}

/* Makes a folder whose tree has three levels, overflow pages and free pages. */
static void make_folder(unsigned which)
{
    struct host host = {.chance = which, .has = has_timer[which]};
    struct shim_plan plan = {.skips_syncs = true};
    scene_make(folders[which]);
    shim_watch(folders[which], &plan);
    host_open(&host, folders[which]);
    for (unsigned i = 0; i < TIMERS; i++) {
        schedule(&host, i * 7 % TIMERS);
    }
    checkpoint(&host);
    for (unsigned i = 0; i < 8 * TOPICS; i++) {
        cancel_some(&host, i % TOPICS);
        if (i % TOPICS == 0) checkpoint(&host);
    }
    checkpoint(&host);
    list(&host);
    bel_engine_close(host.engine);
    shim_stop();
    scene_check(folders[which]);
}

static void run_seeds(const char *name, struct cases cases, bool is_running)
{
    uint64_t named = 0;
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        named += run_seed(seed, is_running);
    }
    printf("ok   %s (%llu named, %llu harmless)\n", name, (unsigned long long)named,
           (unsigned long long)(cases.last - cases.first + 1 - named));
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, SEEDS), running = cases_of(argc, argv, SEEDS_RUNNING);
    if (argc == 1 && cases_count(1) > 1) cases.last = running.last = SEEDS_LONG;
    for (unsigned i = 0; i < FOLDERS; i++) {
        make_folder(i);
    }
    scene_make(copy);
    run_seeds("bits_of_a_tree_in_use", cases, false);
    run_seeds("bits_of_a_tree_that_was_checked", running, true);
    for (unsigned i = 0; i < FOLDERS; i++) {
        scene_remove(folders[i]);
    }
    scene_remove(copy);
    return 0;
}
