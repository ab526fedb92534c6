/* SPDX-License-Identifier: MIT */

/*
 * One command after the other (asking.h). In a Cluster the same questions go to slots that are
 * spread evenly, so that each primary of a Cluster with up to SLOTS_ASKED equal parts is asked; one
 * that answers again is known by its run_id.
 */
#include "redis/examine.h"

#include "redis/asking.h"
#include "redis/link/info.h"
#include "redis/news.h"
#include "redis/presence.h"
#include "redis/servers/slot.h"
#include "redis/virtual_clock.h"

#include "core/parse.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SKEW_MS = 5000,  /* from which on it is worth a warning */
    REDIS_MAJOR = 7, /* the first version with flags of scripts */
    SLOTS_ASKED = 32,
    PRIMARIES_MAX = 32,
    RUN_ID_BYTES = 48,
    FIELD_BYTES = 128,
};

/* What a server says about itself. */
struct report {
    char run_id[RUN_ID_BYTES], redis[32], valkey[32], mode[32], role[16], primary[FIELD_BYTES];
    char policy[32], aof[8], snapshot_status[16], aof_status[16], loading[8];
    uint64_t replicas;
};

struct examiner {
    const struct bel_examine_options *options;
    struct bel_examination *out;
    struct bel_asking asking;
    struct report report;
    char snapshots[FIELD_BYTES];
    char seen[PRIMARIES_MAX][RUN_ID_BYTES];
    bool exists; /* the key that was asked for */
};

static int ask(struct examiner *examiner, uint16_t slot, const char *const *words,
               void (*take)(void *owner, const struct bel_value *value))
{
    return bel__asking_ask(&examiner->asking, slot, words, take, examiner);
}

/* --- findings --- */

static struct bel_finding *add(struct examiner *examiner, const char *about, bool is_refusal)
{
    struct bel_examination *out = examiner->out;
    static struct bel_finding none; /* beyond the room, nobody reads it */
    if (is_refusal) out->is_refused = true;
    if (out->findings_count == BEL_FINDINGS_MAX) return &none;
    struct bel_finding *finding = &out->findings[out->findings_count++];
    *finding = (struct bel_finding){.about = about, .is_refusal = is_refusal};
    return finding;
}

__attribute__((format(printf, 2, 3))) static void say(char out[BEL_FINDING_BYTES],
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out, BEL_FINDING_BYTES, format, args);
    va_end(args);
}

/* --- INFO --- */

static void take_info(void *owner, const struct bel_value *value)
{
    struct examiner *examiner = owner;
    struct report *report = &examiner->report;
    struct bel_view info = value->text;
    char number[FIELD_BYTES], port[16];
    *report = (struct report){.replicas = 0};
    if (info.bytes == 0) return;
    bel__info_find(info, "run_id", report->run_id, sizeof report->run_id);
    bel__info_find(info, "redis_version", report->redis, sizeof report->redis);
    bel__info_find(info, "valkey_version", report->valkey, sizeof report->valkey);
    bel__info_find(info, "redis_mode", report->mode, sizeof report->mode);
    if (report->mode[0] == 0) {
        bel__info_find(info, "server_mode", report->mode, sizeof report->mode);
    }
    bel__info_find(info, "role", report->role, sizeof report->role);
    bel__info_find(info, "maxmemory_policy", report->policy, sizeof report->policy);
    bel__info_find(info, "aof_enabled", report->aof, sizeof report->aof);
    bel__info_find(info, "rdb_last_bgsave_status", report->snapshot_status,
                   sizeof report->snapshot_status);
    bel__info_find(info, "aof_last_write_status", report->aof_status, sizeof report->aof_status);
    bel__info_find(info, "loading", report->loading, sizeof report->loading);
    bel__info_find(info, "master_host", number, sizeof number);
    bel__info_find(info, "master_port", port, sizeof port);
    (void)snprintf(report->primary, sizeof report->primary, "%.100s:%s", number, port);
    bel__info_find(info, "connected_slaves", number, sizeof number);
    (void)!bel__parse_u64(number, strlen(number), 0, UINT32_MAX, &report->replicas);
}

/* Returns whether the versions are too old; a server that tells none is taken as it is. */
static bool is_old(const struct report *report)
{
    uint64_t major = 0;
    if (report->valkey[0] != 0 || report->redis[0] == 0) return false;
    size_t digits = strspn(report->redis, "0123456789");
    return bel__parse_u64(report->redis, digits, 0, UINT32_MAX, &major) == 0 && major < REDIS_MAJOR;
}

static void judge_kind(struct examiner *examiner, const struct report *report)
{
    enum bel_redis_mode mode = examiner->options->redis->servers.mode;
    struct bel_finding *finding;
    if (is_old(report)) {
        finding = add(examiner, "version", true);
        say(finding->what, "the server is Redis %s", report->redis);
        say(finding->advice, "use Redis 7.0 or later, or Valkey");
    }
    if (strcmp(report->mode, "sentinel") == 0) {
        finding = add(examiner, "mode", true);
        say(finding->what, "the server is a Sentinel");
        say(finding->advice, "write redis+sentinel://HOST:26379?master=NAME");
    } else if (strcmp(report->mode, "cluster") == 0 && mode != BEL_REDIS_CLUSTER) {
        finding = add(examiner, "mode", true);
        say(finding->what, "the server is part of a Cluster");
        say(finding->advice, "write redis+cluster://HOST:PORT");
    } else if (strcmp(report->role, "slave") == 0) {
        finding = add(examiner, "role", true);
        say(finding->what, "the server is a replica of %.120s, which accepts no changes",
            report->primary);
        say(finding->advice, "name the primary, or the Sentinels that know it: redis+sentinel://");
    }
}

static void judge_memory(struct examiner *examiner, const struct report *report)
{
    if (report->policy[0] == 0 || strcmp(report->policy, "noeviction") == 0) return;
    struct bel_finding *finding = add(examiner, "eviction", true);
    say(finding->what, "maxmemory-policy is %s: a server whose memory is full may delete timers",
        report->policy);
    say(finding->advice,
        "run CONFIG SET maxmemory-policy noeviction, and set it in the file of the server");
}

static void judge_persistence(struct examiner *examiner, const struct report *report)
{
    const char *snapshots = examiner->snapshots;
    struct bel_finding *finding;
    if (strcmp(report->aof, "0") == 0 && strcmp(snapshots, "off") == 0) {
        finding = add(examiner, "persistence", false);
        say(finding->what, "the server keeps nothing on disk: its restart loses all timers");
        say(finding->advice, "run CONFIG SET appendonly yes, and set it in the file of the server");
    } else if (strcmp(report->aof, "0") == 0) {
        finding = add(examiner, "persistence", false);
        say(finding->what, "without appendonly, a restart loses what changed since a snapshot");
        say(finding->advice, "run CONFIG SET appendonly yes, and set it in the file of the server");
    }
    if (strcmp(report->snapshot_status, "err") == 0 || strcmp(report->aof_status, "err") == 0) {
        finding = add(examiner, "persistence", false);
        say(finding->what, "the last write of the server to its disk has failed");
        say(finding->advice, "look at its log and its disk: it may refuse changes with MISCONF");
    }
}

static void judge_replicas(struct examiner *examiner, const struct report *report)
{
    const struct bel_servers_options *servers = &examiner->options->redis->servers;
    struct bel_finding *finding;
    if (servers->durability != BEL_DURABILITY_WAIT) return;
    if (servers->replicas == 0 && report->replicas == 0) {
        finding = add(examiner, "replicas", true);
        say(finding->what, "durability wait, and no replica is connected to count on");
        say(finding->advice, "connect replicas first, or say how many with --replicas N");
    } else if (report->replicas < servers->replicas) {
        finding = add(examiner, "replicas", false);
        say(finding->what, "%" PRIu64 " replicas are connected, durability wait needs %" PRIu32,
            report->replicas, servers->replicas);
        say(finding->advice, "until they are, changes are answered with IO");
    }
}

static const char *version_of(const struct report *report)
{
    return report->valkey[0] != 0 ? report->valkey : report->redis;
}

static void note_facts(struct examiner *examiner, const struct report *report)
{
    struct bel_examination *out = examiner->out;
    if (out->primaries == 0 || report->replicas < out->replicas) out->replicas = report->replicas;
    if (out->primaries > 0) return;
    (void)snprintf(out->server, sizeof out->server, "%s %s",
                   report->valkey[0] != 0 ? "valkey" : "redis", version_of(report));
    (void)snprintf(out->eviction, sizeof out->eviction, "%s", report->policy);
    (void)snprintf(out->appendonly, sizeof out->appendonly, "%s",
                   strcmp(report->aof, "0") == 0   ? "no"
                   : strcmp(report->aof, "1") == 0 ? "yes"
                                                   : "");
    (void)snprintf(out->snapshots, sizeof out->snapshots, "%.60s", examiner->snapshots);
}

/* --- the other questions --- */

/* CONFIG GET save: when a server makes snapshots; empty: never. */
static void take_save(void *owner, const struct bel_value *value)
{
    struct examiner *examiner = owner;
    const struct bel_value *save = bel_value_find(value, "save");
    if (save == NULL) return;
    (void)snprintf(examiner->snapshots, sizeof examiner->snapshots, "%.*s",
                   save->text.bytes == 0 ? 3 : (int)save->text.bytes,
                   save->text.bytes == 0 ? "off" : (const char *)save->text.data);
}

/* The reply of the script: TIME, in seconds and microseconds. */
static void take_time(void *owner, const struct bel_value *value)
{
    struct examiner *examiner = owner;
    int64_t seconds = 0, micros = 0;
    if (value->type != BEL_VALUE_LIST || value->count != 2) return;
    const struct bel_view *first = &value->items[0].text, *second = &value->items[1].text;
    if (bel__parse_i64(first->data, first->bytes, 0, INT64_MAX / 1000000, &seconds) != 0) return;
    if (bel__parse_i64(second->data, second->bytes, 0, 1000000, &micros) != 0) return;
    int64_t own = bel_clock_wall(examiner->options->clock).ms;
    examiner->out->ahead_ms = seconds * 1000 + micros / 1000 - own;
}

static void judge_clock(struct examiner *examiner)
{
    int64_t ahead = examiner->out->ahead_ms;
    if (examiner->options->redis->is_virtual) return;
    if (ahead < SKEW_MS && ahead > -SKEW_MS) return;
    struct bel_finding *finding = add(examiner, "clock", false);
    say(finding->what, "the clock of the server is %" PRId64 " s %s that of this machine",
        (ahead < 0 ? -ahead : ahead) / 1000, ahead < 0 ? "behind" : "ahead of");
    say(finding->advice, "timers follow the clock of the server; set both by NTP");
}

static bool is_seen(const struct examiner *examiner)
{
    size_t count = examiner->out->primaries;
    for (size_t i = 0; i < count && i < PRIMARIES_MAX; i++) {
        if (strcmp(examiner->seen[i], examiner->report.run_id) == 0) return true;
    }
    return false;
}

/* Examines the server that has a slot, unless it was examined before. */
static int examine_slot(struct examiner *examiner, uint16_t slot)
{
    static const char *const info[] = {"INFO", NULL};
    static const char *const save[] = {"CONFIG", "GET", "save", NULL};
    int err;
    for (;;) {
        err = ask(examiner, slot, info, take_info);
        if (err || strcmp(examiner->report.loading, "1") != 0) break;
        err = bel__asking_pause(&examiner->asking, "the server is loading its data");
        if (err) break;
    }
    if (err || examiner->asking.error[0] != 0) return err; /* a user that may not ask */
    if (is_seen(examiner)) return 0;
    examiner->snapshots[0] = 0;
    err = ask(examiner, slot, save, take_save);
    if (err) return err;
    note_facts(examiner, &examiner->report);
    judge_kind(examiner, &examiner->report);
    judge_memory(examiner, &examiner->report);
    judge_persistence(examiner, &examiner->report);
    judge_replicas(examiner, &examiner->report);
    size_t count = examiner->out->primaries++;
    if (count < PRIMARIES_MAX) {
        memcpy(examiner->seen[count], examiner->report.run_id, RUN_ID_BYTES);
    }
    return 0;
}

/* Runs a script as those of a node are: with flags, and a key of the namespace. */
static int examine_scripts(struct examiner *examiner, const char *key)
{
    const char *script[] = {"EVAL", "#!lua flags=allow-oom\nreturn redis.call('TIME')", "1", key,
                            NULL};
    int err = ask(examiner, bel__slot_of((struct bel_view){key, strlen(key)}), script, take_time);
    if (err) return err;
    if (examiner->asking.error[0] == 0) {
        judge_clock(examiner);
        return 0;
    }
    struct bel_finding *finding = add(examiner, "scripts", true);
    say(finding->what, "a script does not run: %.150s", examiner->asking.error);
    say(finding->advice, "allow the user EVAL, EVALSHA, SCRIPT and the keys of the namespace");
    return 0;
}

/* Publishes as scripts do. A script that may not has made its change all the same. */
static int examine_publishing(struct examiner *examiner, const char *key)
{
    struct bel_presence_message message = {.channel = ""};
    bel__presence_message(examiner->options->redis, &message);
    const char *script[] = {"EVAL",
                            "#!lua flags=allow-oom\nreturn redis.call(unpack(ARGV))",
                            "1",
                            key,
                            message.words[0],
                            message.words[1],
                            message.words[2],
                            NULL};
    int err = ask(examiner, bel__slot_of((struct bel_view){key, strlen(key)}), script, NULL);
    if (err || examiner->asking.error[0] == 0) return err;
    struct bel_finding *finding = add(examiner, "channels", true);
    say(finding->what, "a script may not publish: %.150s", examiner->asking.error);
    say(finding->advice, "allow the user PUBLISH, SPUBLISH and the channels: ACL SETUSER NAME "
                         "allchannels +publish +spublish");
    return 0;
}

/* Subscribes as nodes do, in a transaction that is thrown away. */
static int examine_subscribing(struct examiner *examiner, const char *key)
{
    const struct bel_redis_options *redis = examiner->options->redis;
    bool is_cluster = redis->servers.mode == BEL_REDIS_CLUSTER;
    char pattern[BEL_NEWS_PATTERN_BYTES], error[BEL_ASKING_ERROR_BYTES] = "";
    const char *begin[] = {"MULTI", NULL}, *end[] = {"DISCARD", NULL};
    const char *words[] = {is_cluster ? "SSUBSCRIBE" : "PSUBSCRIBE", is_cluster ? key : pattern,
                           NULL};
    uint16_t slot = bel__slot_of((struct bel_view){key, strlen(key)});
    bel__news_pattern(redis->name_space, pattern);
    int err = ask(examiner, slot, begin, NULL);
    if (err || examiner->asking.error[0] != 0) return err; /* a user that may not ask */
    err = ask(examiner, slot, words, NULL);
    (void)snprintf(error, sizeof error, "%s", examiner->asking.error);
    if (err == 0) err = ask(examiner, slot, end, NULL);
    if (err || error[0] == 0) return err;
    struct bel_finding *finding = add(examiner, "channels", false);
    say(finding->what, "no messages of other nodes, so timers can be seconds late: %.120s", error);
    say(finding->advice,
        "allow the user to subscribe to the channels: ACL SETUSER NAME allchannels "
        "+psubscribe +ssubscribe");
    return 0;
}

static void take_exists(void *owner, const struct bel_value *value)
{
    struct examiner *examiner = owner;
    examiner->exists = value->type == BEL_VALUE_NUMBER && value->number != 0;
}

static int find_key(struct examiner *examiner, const char *key, bool *out)
{
    const char *words[] = {"EXISTS", key, NULL};
    uint16_t slot = bel__slot_of((struct bel_view){key, strlen(key)});
    examiner->exists = false;
    int err = ask(examiner, slot, words, take_exists);
    *out = examiner->exists;
    return err;
}

/* Refuses a namespace whose timers follow another kind of clock. */
static int examine_clock(struct examiner *examiner, const char *registry)
{
    char key[BEL_VIRTUAL_CLOCK_KEY_BYTES];
    bool is_virtual = false, is_used = false;
    const struct bel_redis_options *redis = examiner->options->redis;
    bel__virtual_clock_key(redis->name_space, key);
    int err = find_key(examiner, key, &is_virtual);
    if (err == 0) err = find_key(examiner, registry, &is_used);
    if (err || is_virtual == redis->is_virtual || (!is_virtual && !is_used)) return err;
    struct bel_finding *finding = add(examiner, "namespace", true);
    if (is_virtual) {
        say(finding->what, "the timers of the namespace %s follow a virtual clock",
            redis->name_space);
        say(finding->advice, "use --clock virtual, or another namespace");
    } else {
        say(finding->what, "the timers of the namespace %s follow the clock of the server",
            redis->name_space);
        say(finding->advice, "use another namespace for a virtual clock");
    }
    return 0;
}

static int examine_all(struct examiner *examiner)
{
    char key[BEL_REDIS_NAMESPACE_BYTES_MAX + 16];
    const struct bel_redis_options *redis = examiner->options->redis;
    (void)snprintf(key, sizeof key, "{%s}:topics", redis->name_space);
    int err = examine_slot(examiner, bel__slot_of((struct bel_view){key, strlen(key)}));
    if (err == 0 && !examiner->out->is_refused) err = examine_scripts(examiner, key);
    if (err == 0 && !examiner->out->is_refused) err = examine_publishing(examiner, key);
    if (err == 0 && !examiner->out->is_refused) err = examine_subscribing(examiner, key);
    if (err == 0 && !examiner->out->is_refused) err = examine_clock(examiner, key);
    if (redis->servers.mode != BEL_REDIS_CLUSTER) return err;
    for (unsigned i = 0; err == 0 && i < SLOTS_ASKED; i++) {
        err = examine_slot(examiner, (uint16_t)(i * (BEL_SLOTS / SLOTS_ASKED)));
    }
    return err;
}

int bel__redis_examine(const struct bel_examine_options *options, struct bel_examination *out,
                       struct bel_why *why)
{
    struct examiner *examiner = calloc(1, sizeof *examiner);
    if (examiner == NULL) return bel__why_say(why, BEL_ENOMEM, "memory has run out");
    struct bel_asking_options asking = {.servers = &options->redis->servers,
                                        .clock = options->clock,
                                        .wait_ms = options->wait_ms,
                                        .waiting = options->waiting,
                                        .context = options->context};
    *out = (struct bel_examination){.findings_count = 0};
    examiner->options = options;
    examiner->out = out;
    int err = bel__asking_open(&examiner->asking, &asking);
    if (err == 0) err = examine_all(examiner);
    if (err) {
        const char *text = examiner->asking.why;
        (void)bel__why_say(why, err, "%s", text[0] != 0 ? text : bel_error_text(err));
    }
    bel__asking_close(&examiner->asking);
    free(examiner);
    return err;
}
