/* SPDX-License-Identifier: MIT */

/*
 * What a server measures of its limits, and an engine that is taken through all levels by given
 * samples: what INFO, the metrics and the log show, and what is refused.
 */
#include "../ask.h"
#include "../check.h"
#include "core/units.h"
#include "metrics/commit_window.h"
#include "server/embedded/pressure_probe.h"
#include "server/embedded/pressure_watch.h"
#include "server/info.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TEXT_BYTES = 1 << 16,
    GIB = 1 << 30,
};

#define START INT64_C(1767225600000)

static struct bel_mono at(uint64_t ms)
{
    return (struct bel_mono){ms * NS_PER_MS};
}

/* --- commits --- */

static void the_p99_of_ten_seconds_is_a_bound_of_a_bucket(void)
{
    static struct bel_commit_window window;
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(0)), 0);
    for (int i = 0; i < 99; i++) {
        bel__commit_window_record(&window, NS_PER_MS, at(500));
    }
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(500)), 10);
    bel__commit_window_record(&window, UINT64_C(700) * NS_PER_MS, at(500));
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(500)), 10); /* 1 of 100 */
    bel__commit_window_record(&window, UINT64_C(700) * NS_PER_MS, at(1500));
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(1500)), 700); /* 2 of 101 */
    bel__commit_window_record(&window, UINT64_C(700) * NS_PER_MS + 1, at(1500));
    bel__commit_window_record(&window, UINT64_C(700) * NS_PER_MS + 1, at(1500));
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(1500)), 710);
}

static void durations_are_forgotten_after_ten_seconds(void)
{
    static struct bel_commit_window window;
    bel__commit_window_record(&window, UINT64_C(5) * NS_PER_S, at(500));
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(9900)), 1290);
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(10000)), 0);
    bel__commit_window_record(&window, 0, at(10500)); /* the same slot */
    CHECK_EQ(bel__commit_window_p99_ms(&window, at(10500)), 10);
}

/* --- disk and memory --- */

static void a_small_disk_counts_as_a_whole(void)
{
    struct bel_pressure_use use = bel__disk_use(1100, 600, 500, 4096, 0); /* 100 are for root */
    CHECK(use.used == UINT64_C(500) * 4096 && use.limit == UINT64_C(1000) * 4096 &&
          !use.is_unreadable);
    use = bel__disk_use(1000, 0, 0, 4096, 0);
    CHECK(use.used == use.limit && use.limit == UINT64_C(1000) * 4096);
}

static void of_a_large_disk_the_last_16_gib_count(void)
{
    uint64_t gib = GIB / 4096;
    struct bel_pressure_use use = bel__disk_use(1000 * gib, 100 * gib, 100 * gib, 4096, 0);
    CHECK(use.used == 0 && use.limit == 16 * (uint64_t)GIB);
    use = bel__disk_use(1000 * gib, 4 * gib, 4 * gib, 4096, 0);
    CHECK(use.used == 12 * (uint64_t)GIB && use.limit == 16 * (uint64_t)GIB);
}

static void what_is_free_inside_the_files_is_available(void)
{
    uint64_t gib = GIB / 4096;
    struct bel_pressure_use use = bel__disk_use(1000, 0, 0, 4096, UINT64_C(300) * 4096);
    CHECK(use.used == UINT64_C(700) * 4096 && use.limit == UINT64_C(1000) * 4096);
    use = bel__disk_use(1000 * gib, 4 * gib, 4 * gib, 4096, 5 * (uint64_t)GIB);
    CHECK(use.used == 7 * (uint64_t)GIB && use.limit == 16 * (uint64_t)GIB);
    use = bel__disk_use(1000 * gib, 4 * gib, 4 * gib, 4096, UINT64_MAX);
    CHECK(use.used == 0 && use.limit == 16 * (uint64_t)GIB);
}

static void numbers_that_cannot_be_are_unreadable(void)
{
    CHECK(bel__disk_use(0, 0, 0, 4096, 0).is_unreadable);
    CHECK(bel__disk_use(10, 20, 20, 4096, 0).is_unreadable);
    CHECK(bel__disk_use(10, 5, 5, 0, 0).is_unreadable);
}

static void a_disk_that_is_gone_is_unreadable(void)
{
    static struct bel_commit_window window;
    struct bel_pressure_probe probe = {
        .folder = "/nowhere/at all", .memory_limit = 100, .commits = &window};
    struct bel_pressure_sample sample;
    bel__pressure_probe_take(&probe, at(0), &sample);
    CHECK(sample.disk.is_unreadable && sample.memory.limit == 100);
    CHECK_EQ(sample.commit.limit, 1000);
    probe.folder = "/";
    bel__pressure_probe_take(&probe, at(0), &sample);
    CHECK(!sample.disk.is_unreadable && sample.disk.limit > 0);
    probe.folder = NULL;
    bel__pressure_probe_take(&probe, at(0), &sample);
    CHECK(!sample.disk.is_unreadable && sample.disk.limit == 0);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void make_folder(const char *folder, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(mkdir(path, 0700) == 0);
}

static void the_least_limit_of_a_cgroup_and_its_parents_holds(void)
{
    char root[] = "/tmp/belfry-cgroup-XXXXXX", command[64];
    CHECK(mkdtemp(root) != NULL);
    CHECK(bel__cgroup_limit("0::/a/b\n", root) == UINT64_MAX);
    make_folder(root, "a");
    make_folder(root, "a/b");
    write_file(root, "a/b/memory.max", "max\n");
    write_file(root, "a/memory.max", "5000\n");
    write_file(root, "memory.max", "7000\n");
    CHECK_EQ(bel__cgroup_limit("0::/a/b\n", root), 5000);
    CHECK_EQ(bel__cgroup_limit("0::/\n", root), 7000);
    CHECK_EQ(bel__cgroup_limit("0::/gone\n", root), 7000);
    make_folder(root, "memory");
    make_folder(root, "memory/c");
    write_file(root, "memory/c/memory.limit_in_bytes", "3000\n");
    CHECK_EQ(bel__cgroup_limit("8:cpu:/c\n7:memory:/c\n", root), 3000);
    CHECK_EQ(bel__cgroup_limit("7:memory:/c\n0::/a\n", root), 3000);
    CHECK(bel__cgroup_limit("", root) == UINT64_MAX);
    CHECK(bel__cgroup_limit("nonsense", root) == UINT64_MAX);
    (void)snprintf(command, sizeof command, "rm -r %s", root);
    CHECK(system(command) == 0); /* NOLINT(concurrency-mt-unsafe) */
    CHECK(bel__memory_limit_default() > 0);
}

/* --- through all levels --- */

struct rig {
    struct bel_engine *engine;
    struct bel_backend *backend;
    struct bel_now now;
    struct bel_pressure_sample sample; /* the next one */
    struct bel_pressure_watch watch;
    struct bel_logger log;
    struct bel_metrics metrics;
};

static void give_sample(void *context, struct bel_pressure_sample *out)
{
    const struct rig *rig = context;
    *out = rig->sample;
}

static void set_up(struct rig *rig)
{
    *rig = (struct rig){.now = {{1000000}, {START}, {1}, 0}};
    CHECK(bel_engine_open(&(struct bel_engine_options){.now = rig->now}, &rig->engine, NULL) == 0);
    rig->backend = bel_engine_backend(rig->engine);
    rig->log = (struct bel_logger){
        .clock = bel_clock_system(), .level = BEL_LOG_INFO, .fd = memfd_create("log", MFD_CLOEXEC)};
    CHECK(rig->log.fd >= 0);
    CHECK(bel__metrics_init(&rig->metrics) == 0);
    rig->metrics.engine = bel_engine_stats(rig->engine);
    rig->watch = (struct bel_pressure_watch){
        .engine = rig->engine, .log = &rig->log, .measure = give_sample, .context = rig};
}

static void tear_down(struct rig *rig)
{
    bel__metrics_finish(&rig->metrics);
    bel_engine_close(rig->engine);
    CHECK(close(rig->log.fd) == 0);
}

static bool does_info_show(const struct rig *rig, const char *text)
{
    static char copy[TEXT_BYTES];
    struct bel_info info = {.metrics = &rig->metrics};
    struct bel_buffer buffer;
    bel__buffer_init(&buffer, TEXT_BYTES);
    CHECK(bel__info_print(&info, view("pressure"), NULL, &buffer) == 0);
    (void)snprintf(copy, sizeof copy, "%.*s", (int)buffer.count,
                   (const char *)bel__buffer_data(&buffer));
    bel__buffer_finish(&buffer);
    CHECK_NOTE("%.200s", copy);
    return strstr(copy, text) != NULL;
}

static bool do_metrics_show(const struct rig *rig, const char *text)
{
    struct bel_buffer buffer;
    bel__buffer_init(&buffer, 1 << 20);
    CHECK(bel__metrics_print(&rig->metrics, at(0), &buffer) == 0);
    bool found = memmem(bel__buffer_data(&buffer), buffer.count, text, strlen(text)) != NULL;
    bel__buffer_finish(&buffer);
    return found;
}

static struct reply_seen ask(struct rig *rig, struct bel_command command)
{
    struct bel_next next;
    return ask_backend(rig->backend, rig->now, &next, command);
}

static struct reply_seen schedule(struct rig *rig)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view("mail");
    return ask(rig, command);
}

/* Claims a timer and acknowledges it. */
static bool does_work(struct rig *rig)
{
    struct bel_view topic = view("mail"), token;
    struct bel_command claim = {.verb = BEL_VERB_CLAIM}, ack = {.verb = BEL_VERB_ACK};
    claim.claim = (struct bel_claim){.topics = &topic, .topics_count = 1};
    struct reply_seen seen = ask(rig, claim);
    if (seen.err != 0 || seen.deliveries != 1) return false;
    token = view(seen.token);
    ack.ack = (struct bel_ack){.tokens = &token, .tokens_count = 1};
    return ask(rig, ack).count == 1;
}

static const struct {
    uint64_t used;
    const char *level;
    bool is_change;
} steps[] = {
    {0, "none", false},      {500, "none", false},     {501, "low", true},  {700, "low", false},
    {701, "medium", true},   {850, "medium", false},   {851, "high", true}, {950, "high", false},
    {951, "critical", true}, {901, "critical", false}, {900, "high", true}, {801, "high", false},
    {800, "medium", true},   {651, "medium", false},   {650, "low", true},  {451, "low", false},
    {450, "none", true},
};

static void every_level_is_shown_and_only_critical_refuses(void)
{
    struct rig rig;
    char text[128];
    set_up(&rig);
    CHECK(schedule(&rig).err == 0 && schedule(&rig).err == 0); /* work for the critical steps */
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bool is_critical = strcmp(steps[i].level, "critical") == 0;
        rig.sample.memory = (struct bel_pressure_use){.used = steps[i].used, .limit = 1000};
        uint64_t changes = rig.metrics.engine->pressure.changes;
        (void)bel__pressure_watch_take(&rig.watch);
        CHECK_NOTE("%u of 1000", (unsigned)steps[i].used);
        CHECK(rig.metrics.engine->pressure.changes - changes == steps[i].is_change);
        (void)snprintf(text, sizeof text, "pressure:%s\r\n", steps[i].level);
        CHECK(does_info_show(&rig, text));
        (void)snprintf(text, sizeof text, "belfry_pressure_level %d\n",
                       (int)rig.metrics.engine->pressure.level);
        CHECK(do_metrics_show(&rig, text));
        struct reply_seen seen = schedule(&rig);
        CHECK(seen.err == (is_critical ? BEL_EFULL : 0));
        CHECK(!is_critical || strstr(seen.why, "memory") != NULL);
        CHECK(!is_critical || strstr(seen.why, "raise --memory") != NULL);
        CHECK(does_work(&rig));
    }
    CHECK(do_metrics_show(&rig, "belfry_pressure_refusals_total 2\n"));
    tear_down(&rig);
}

static void a_change_is_logged_once(void)
{
    static char text[TEXT_BYTES];
    struct rig rig;
    set_up(&rig);
    rig.sample.memory = (struct bel_pressure_use){.used = 960, .limit = 1000};
    CHECK(bel__pressure_watch_take(&rig.watch));
    (void)bel__pressure_watch_take(&rig.watch);
    rig.sample.memory.used = 0;
    rig.sample.disk.is_unreadable = true;
    (void)bel__pressure_watch_take(&rig.watch); /* still critical, by another cause */
    rig.sample.disk.is_unreadable = false;
    CHECK(bel__pressure_watch_take(&rig.watch));
    ssize_t bytes = pread(rig.log.fd, text, sizeof text - 1, 0);
    CHECK(bytes > 0);
    CHECK_NOTE("%.200s", text);
    const char *first =
        strstr(text, "warn  pressure changed level=critical cause=memory percent=96\n");
    CHECK(first != NULL && strstr(first + 40, "level=critical") == NULL);
    CHECK(strstr(first, "info  pressure changed level=none\n") != NULL);
    tear_down(&rig);
}

int main(void)
{
    RUN(the_p99_of_ten_seconds_is_a_bound_of_a_bucket);
    RUN(durations_are_forgotten_after_ten_seconds);
    RUN(a_small_disk_counts_as_a_whole);
    RUN(of_a_large_disk_the_last_16_gib_count);
    RUN(what_is_free_inside_the_files_is_available);
    RUN(numbers_that_cannot_be_are_unreadable);
    RUN(a_disk_that_is_gone_is_unreadable);
    RUN(the_least_limit_of_a_cgroup_and_its_parents_holds);
    RUN(every_level_is_shown_and_only_critical_refuses);
    RUN(a_change_is_logged_once);
    return 0;
}
