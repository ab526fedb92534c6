/* SPDX-License-Identifier: MIT */

/* The program belfry: passes the verbs of other layers to the command line. */
#include "belfry/engine.h"
#include "cli/cli.h"
#include "cli/copy.h"
#include "cli/doctor.h"
#include "cli/store.h"
#include "copy/stores/stores.h"
#include "core/why.h"
#include "engine/offline/checker.h"
#include "local_node/redis_node.h"
#include "redis/examine.h"
#include "redis/place.h"
#include "server/embedded/embedded.h"
#include "server/redis/redis_store.h"
#include "server/serve.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Checks an engine's data directory, for belfry doctor. */
static int check(const char *folder, struct cli_diagnosis *out)
{
    struct bel_engine_report report = {0};
    struct bel_engine_why why = {""};
    int err = bel_engine_check(folder, &report, &why);
    (void)bel__why_say(&out->why, err, "%s", why.text);
    if (err) return err;
    *out = (struct cli_diagnosis){.facts = {{"topics", report.topics},
                                            {"timers", report.timers},
                                            {"leases", report.leases},
                                            {"plans", report.plans},
                                            {"ended", report.ended},
                                            {"rows", report.rows},
                                            {"tree_rows", report.tree_rows},
                                            {"tree_bytes", report.tree_bytes}},
                                  .facts_count = 8};
    return 0;
}

/* --- stores that verbs work on without a server --- */

static struct bel_redis_node *node; /* NULL: none is open */

static struct bel_redis_place place_of(const struct cli_store *store)
{
    return (struct bel_redis_place){
        .url = store->url, .password_file = store->password_file, .name_space = store->name_space};
}

static int open_store(const struct cli_store *store, uint32_t wait_ms, const char **out_address,
                      struct bel_why *why)
{
    struct bel_redis_place place = place_of(store);
    int err = bel__redis_node_open(&place, wait_ms, &node, why);
    if (err == 0) *out_address = bel__redis_node_address(node);
    return err;
}

static void close_store(void)
{
    bel__redis_node_close(node);
    node = NULL;
}

static void show_store(const struct cli_store *store, char out[CLI_STORE_SHOWN_BYTES])
{
    static_assert((int)CLI_STORE_SHOWN_BYTES >= (int)BEL_REDIS_SHOWN_BYTES,
                  "as much as is printed");
    struct bel_redis_place place = place_of(store);
    bel__redis_place_print(&place, out);
}

/* Passes on what an examination has found. */
static void pass_findings(const struct bel_examination *found, struct cli_examination *out)
{
    static char numbers[3][32];
    (void)snprintf(numbers[0], sizeof numbers[0], "%zu", found->primaries);
    (void)snprintf(numbers[1], sizeof numbers[1], "%llu", (unsigned long long)found->replicas);
    (void)snprintf(numbers[2], sizeof numbers[2], "%lld", (long long)found->ahead_ms);
    *out = (struct cli_examination){.facts = {{"server", found->server, false},
                                              {"primaries", numbers[0], true},
                                              {"replicas", numbers[1], true},
                                              {"eviction", found->eviction, false},
                                              {"appendonly", found->appendonly, false},
                                              {"snapshots", found->snapshots, false},
                                              {"clock_ahead_ms", numbers[2], true}},
                                    .facts_count = 7};
    for (size_t i = 0; i < found->findings_count && i < CLI_FINDINGS_MAX; i++) {
        const struct bel_finding *finding = &found->findings[i];
        out->findings[i].about = finding->about;
        out->findings[i].what = finding->what;
        out->findings[i].advice = finding->advice;
        out->findings[i].is_refusal = finding->is_refusal;
        out->findings_count = i + 1;
    }
}

static int examine_store(const struct cli_store *store, uint32_t wait_ms,
                         struct cli_examination *out, struct bel_why *why)
{
    static struct bel_examination found;
    struct bel_redis_place place = place_of(store);
    struct bel_redis_options redis;
    int err = bel__redis_place_check(&place, why);
    if (err) return err;
    err = bel__redis_place_parse(&place, &redis, why);
    if (err) return err == BEL_EINVAL ? BEL_EIO : err;
    struct bel_examine_options options = {
        .redis = &redis, .clock = bel_clock_system(), .wait_ms = wait_ms};
    err = bel__redis_examine(&options, &found, why);
    bel__redis_forget(&redis);
    if (err) return err == BEL_EINVAL ? BEL_ECONFLICT : err;
    pass_findings(&found, out);
    return 0;
}

static const struct cli_stores cli_stores = {
    .open = open_store, .close = close_store, .examine = examine_store, .show = show_store};

/* Returns whether an argument is an option whose value is a store, or begins with it. */
static bool names_store(const char *argument)
{
    static const char *const options[] = {"--store", "--from", "--to"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        size_t bytes = strlen(options[i]);
        if (strncmp(argument, options[i], bytes) != 0) continue;
        if (argument[bytes] == 0 || argument[bytes] == '=') return true;
    }
    return false;
}

/* Hides a password in the arguments of the process from ps. The verbs get a copy. */
static void hide_credentials(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *start = strstr(argv[i], "://"), *end = strrchr(argv[i], '@');
        bool is_value = names_store(argv[i - 1]) || names_store(argv[i]);
        if (!is_value || start == NULL || end == NULL || end < start + 3) continue;
        char *copy = strdup(argv[i]);
        if (copy == NULL) continue;
        memset(start + 3, '*', (size_t)(end - start) - 3);
        argv[i] = copy;
    }
}

/* --- verbs of other layers --- */

static int doctor(int argc, char **argv)
{
    return bel__cli_doctor(argc, argv, check);
}

static void tell(void *context, enum bel_copy_step step, uint64_t done, uint64_t total)
{
    static const char *const names[] = {[BEL_COPY_LOOK] = "look",
                                        [BEL_COPY_WRITE] = "copy",
                                        [BEL_COPY_VERIFY] = "verify",
                                        [BEL_COPY_REMOVE] = "remove"};
    struct cli_copy *said = context;
    said->progress(said, names[step], done, total);
}

/* Copies a store, for belfry copy. */
static int copy_between(struct cli_copy *said)
{
    struct bel_copy_counts counts;
    struct bel_copy_options options = {.merges = said->merges,
                                       .moves = said->moves,
                                       .is_dry = said->is_dry,
                                       .is_forced = said->is_forced,
                                       .without_jobs = said->without_jobs,
                                       .without_groups = said->without_groups,
                                       .without_resources = said->without_resources,
                                       .without_concurrency = said->without_concurrency,
                                       .context = said,
                                       .progress = tell};
    int err = bel__copy_between(said->from, said->to, &options, &counts, &said->why);
    const struct {
        const char *name;
        uint64_t number;
    } facts[] = {
        {"topics", counts.topics},  {"timers", counts.timers},   {"plans", counts.plans},
        {"leased", counts.leased},  {"ended", counts.ended},     {"jobs", counts.jobs},
        {"tasks", counts.tasks},    {"groups", counts.groups},   {"resources", counts.resources},
        {"limits", counts.limits},  {"written", counts.written}, {"kept", counts.kept},
        {"removed", counts.removed}};
    said->facts_count = sizeof facts / sizeof facts[0];
    for (size_t i = 0; i < said->facts_count; i++) {
        said->facts[i].name = facts[i].name;
        said->facts[i].number = facts[i].number;
    }
    said->digest = counts.digest;
    return err;
}

static int copy(int argc, char **argv)
{
    return bel__cli_copy(argc, argv, copy_between);
}

static int serve(int argc, char **argv)
{
    static const struct bel_server_stores stores = {
        .kinds = {[BEL_CONFIG_EMBEDDED] = &bel__server_embedded,
                  [BEL_CONFIG_MEMORY] = &bel__server_embedded,
                  [BEL_CONFIG_REDIS] = &bel__server_redis}};
    return bel__serve(argc, argv, &stores);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], BEL_CHECKER_VERB) == 0) return bel__checker_main(argc, argv);
    static const struct cli_verb others[] = {
        {"serve", serve, "run a server"},
        {"copy", copy, "copy all timers from one store to another"},
        {"doctor", doctor, "check a data directory that no server uses, or a store on Redis"},
        {NULL, NULL, NULL},
    };
    hide_credentials(argc, argv);
    return bel__cli_run(argc, argv, others, &cli_stores);
}
