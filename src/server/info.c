/* SPDX-License-Identifier: MIT */

/* Each section is a function that appends its lines. */
#include "server/info.h"

#include "backend/pressure.h"
#include "belfry/instant.h"
#include "belfry/version.h"
#include "core/units.h"
#include "metrics/topic_counts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void bel__info_line(struct bel_info_page *page, const char *format, ...)
{
    va_list args;
    if (page->err != 0) return;
    va_start(args, format);
    page->err = bel__buffer_append_vformat(page->out, format, args);
    va_end(args);
    if (page->err == 0) page->err = bel__buffer_append(page->out, "\r\n", 2);
}

static void print_server(struct bel_info_page *page)
{
    const struct bel_info *info = page->info;
    struct bel_now now = info->clock->now;
    char instant[BEL_INSTANT_BYTES];
    (void)bel_instant_print(now.wall, instant, sizeof instant);
    bel__info_line(page, "belfry_version:%s", bel_version());
    if (page->scope == NULL) bel__info_line(page, "process_id:%ld", (long)getpid());
    bel__info_line(page, "tcp_port:%u", (unsigned)info->resp_port);
    bel__info_line(page, "http_port:%u", (unsigned)info->http_port);
    bel__info_line(page, "uptime_in_seconds:%" PRIu64, (now.real.ns - info->started.ns) / NS_PER_S);
    bel__info_line(page, "clock:%s", info->clock->is_virtual ? "virtual" : "system");
    bel__info_line(page, "time:%s", instant);
    if (page->scope != NULL) return;
    bel__info_line(page, "config_file:%s", info->config->file);
    bel__info_line(page, "keys:%zu", info->keys);
}

static void print_clients(struct bel_info_page *page)
{
    const struct bel_metrics *metrics = page->info->metrics;
    bel__info_line(page, "connected_clients:%" PRIu64, metrics->clients);
    bel__info_line(page, "maxclients:%" PRIu64, metrics->clients_max);
    bel__info_line(page, "requests_under_way:%" PRIu64, page->info->tracker->under_way);
    bel__info_line(page, "http_clients:%" PRIu64, metrics->http_clients);
    bel__info_line(page, "clients_refused:%" PRIu64, metrics->refused);
    bel__info_line(page, "clients_dropped:%" PRIu64, metrics->dropped);
    bel__info_line(page, "clients_unauthenticated_dropped:%" PRIu64, metrics->strangers_dropped);
    bel__info_line(page, "clients_incomplete_dropped:%" PRIu64, metrics->incomplete_dropped);
    bel__info_line(page, "client_output_bytes:%zu", page->info->output_total->bytes);
    bel__info_line(page, "client_input_bytes:%zu", page->info->input_total->bytes);
    bel__info_line(page, "wrong_keys:%" PRIu64, metrics->keys_wrong);
}

/* Prints a quantile of a meter in microseconds; "inf" if it is above the largest bucket. */
static void print_quantile(struct bel_info_page *page, const char *name,
                           const struct bel_meter *meter, unsigned thousandths)
{
    uint64_t ns = bel__meter_quantile(meter, thousandths);
    if (ns == UINT64_MAX) {
        bel__info_line(page, "%s:inf", name);
    } else {
        bel__info_line(page, "%s:%" PRIu64, name, ns / NS_PER_US);
    }
}

static void print_engine(struct bel_info_page *page, const struct bel_engine_stats *stats)
{
    bel__info_line(page, "timers_dead:%" PRIu64, stats->dead);
    bel__info_line(page, "timers_expired:%" PRIu64, stats->expired);
    bel__info_line(page, "leases_lost:%" PRIu64, stats->leases_lost);
    bel__info_line(page, "leases_lapsed:%" PRIu64, stats->leases_lapsed);
    for (unsigned skip = 0; skip < BEL_ENGINE_SKIPS; skip++) {
        bel__info_line(page, "plan_skips_%s:%" PRIu64, bel__skip_name(skip), stats->skips[skip]);
    }
    bel__info_line(page, "disk_low:%d", stats->is_disk_low);
    bel__info_line(page, "clock_steps:%" PRIu64, stats->clock_steps);
}

static uint64_t http_requests(const struct bel_metrics *metrics)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < BEL_HTTP_CLASSES; i++) {
        count += metrics->http_requests[i];
    }
    return count;
}

static void print_errors(struct bel_info_page *page, const struct bel_metrics *metrics)
{
    for (unsigned code = 0; code < BEL_ERROR_CODES; code++) {
        if (metrics->codes[code] == 0) continue;
        bel__info_line(page, "errorstat_%s:count=%" PRIu64, bel__error_code_name(code),
                       metrics->codes[code]);
    }
}

static void print_stats(struct bel_info_page *page)
{
    const struct bel_metrics *metrics = page->info->metrics;
    uint64_t commands = 0, errors = 0;
    for (unsigned verb = 0; verb < BEL_VERBS; verb++) {
        commands += metrics->commands[verb];
    }
    for (unsigned code = 0; code < BEL_ERROR_CODES; code++) {
        errors += metrics->codes[code];
    }
    bel__info_line(page, "total_connections_received:%" PRIu64, metrics->accepted);
    bel__info_line(page, "total_commands_processed:%" PRIu64, commands);
    bel__info_line(page, "total_error_replies:%" PRIu64, errors);
    bel__info_line(page, "total_http_connections_received:%" PRIu64, metrics->http_accepted);
    bel__info_line(page, "total_http_requests:%" PRIu64, http_requests(metrics));
    bel__info_line(page, "total_net_input_bytes:%" PRIu64, metrics->bytes_in);
    bel__info_line(page, "total_net_output_bytes:%" PRIu64, metrics->bytes_out);
    bel__info_line(page, "deliveries:%" PRIu64, metrics->deliveries);
    if (metrics->engine != NULL) print_engine(page, metrics->engine);
    bel__info_line(page, "turns:%" PRIu64, metrics->turns);
    print_quantile(page, "turn_us_p50", &metrics->turn, 500);
    print_quantile(page, "turn_us_p99", &metrics->turn, 990);
    print_quantile(page, "lateness_us_p50", &metrics->lateness, 500);
    print_quantile(page, "lateness_us_p99", &metrics->lateness, 990);
    struct bel_meter recent =
        bel__recent_sum(&metrics->lateness_recent, page->info->clock->now.real);
    bel__info_line(page, "deliveries_last_minute:%" PRIu64, bel__meter_count(&recent));
    print_quantile(page, "lateness_us_p50_last_minute", &recent, 500);
    print_quantile(page, "lateness_us_p99_last_minute", &recent, 990);
    print_errors(page, metrics);
    for (unsigned verb = 0; verb < BEL_VERBS; verb++) {
        if (metrics->commands[verb] == 0) continue;
        bel__info_line(page, "cmdstat_%s:calls=%" PRIu64 ",failed_calls=%" PRIu64,
                       bel_verb_name(verb), metrics->commands[verb], metrics->errors[verb]);
    }
}

/* Prints the level of pressure, and what each cause contributes to it. */
static void print_pressure(struct bel_info_page *page)
{
    const struct bel_engine_stats *stats = page->info->metrics->engine;
    if (stats == NULL) return;
    const struct bel_pressure_state *state = &stats->pressure;
    bool is_none = state->level == BEL_PRESSURE_NONE;
    bel__info_line(page, "pressure:%s", bel_pressure_level_name(state->level));
    bel__info_line(page, "pressure_cause:%s", is_none ? "" : bel_pressure_cause_name(state->cause));
    bel__info_line(page, "pressure_changes:%" PRIu64, state->changes);
    bel__info_line(page, "pressure_refusals:%" PRIu64, state->refusals);
    for (unsigned i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        const struct bel_pressure_use *use = &state->uses[i];
        bel__info_line(
            page, "pressure_%s:level=%s,percent=%u,used=%" PRIu64 ",limit=%" PRIu64 ",readable=%d",
            bel_pressure_cause_name(i), bel_pressure_level_name(state->levels[i]),
            bel__pressure_percent(use), use->used, use->limit, !use->is_unreadable);
    }
}

static bool has_topic(const void *scope, struct bel_view topic)
{
    return bel__scope_has_topic(scope, topic);
}

/* Prints the totals over the topics of the scope. They are from the last finished count; each INFO
 * starts the next one. */
static void print_sums(struct bel_info_page *page)
{
    struct bel_topic_counts_sums sums;
    struct bel_mono taken, now = page->info->clock->now.real;
    bel_topic_filter *has = page->scope != NULL ? has_topic : NULL;
    if (!bel__metrics_sums(page->info->metrics, has, page->scope, &sums, &taken)) return;
    bel__info_line(page, "census_age_ms:%" PRIu64,
                   now.ns > taken.ns ? (now.ns - taken.ns) / NS_PER_MS : 0);
    bel__info_line(page, "topics:%" PRIu64, sums.topics);
    for (unsigned state = 0; state < BEL_STATES; state++) {
        bel__info_line(page, "timers_%s:%" PRIu64, bel_state_name(state), sums.counts[state]);
    }
    bel__info_line(page, "plans:%" PRIu64, sums.plans);
    bel__info_line(page, "oldest_due_age_ms:%" PRIu64, sums.oldest_age_ms);
}

static void print_store(struct bel_info_page *page)
{
    const struct bel_info *info = page->info;
    info->store->functions->tell(info->store, page);
    bel__info_line(page, "max_payload_bytes:%" PRIu32, info->config->payload_bytes_max);
    print_sums(page);
}

/* Prints a line for each topic of the scope, of the last finished count. The name may contain
 * colons; the values do not. */
static void print_topics(struct bel_info_page *page)
{
    size_t count;
    uint64_t all;
    struct bel_mono taken, now = page->info->clock->now.real;
    const struct bel_topic_counts *census = page->info->metrics->census;
    if (!bel__topic_counts_taken(census, &taken)) return;
    const struct bel_topic_counts_topic *topics = bel__topic_counts_topics(census, &count, &all);
    bel__info_line(page, "topics_age_ms:%" PRIu64,
                   now.ns > taken.ns ? (now.ns - taken.ns) / NS_PER_MS : 0);
    bel__info_line(page, "topics_left_out:%" PRIu64, page->scope == NULL ? all - count : 0);
    for (size_t i = 0; i < count; i++) {
        const struct bel_topic_counts_topic *topic = &topics[i];
        struct bel_view name = {topic->name, strlen(topic->name)};
        if (name.bytes == 0 || !bel__scope_has_topic(page->scope, name)) continue;
        bel__info_line(
            page,
            "topic_%s:paused=%d,scheduled=%" PRIu64 ",ready=%" PRIu64 ",leased=%" PRIu64
            ",blocked=%" PRIu64 ",dead=%" PRIu64 ",plans=%" PRIu64 ",oldest_age_ms=%" PRIu64
            ",claimed=%" PRIu64 ",completed=%" PRIu64 ",failed=%" PRIu64 ",lost=%" PRIu64,
            topic->name, topic->paused, topic->counts[BEL_SCHEDULED], topic->counts[BEL_READY],
            topic->counts[BEL_LEASED], topic->counts[BEL_BLOCKED], topic->counts[BEL_DEAD],
            topic->plans, topic->oldest_age_ms, topic->claimed, topic->completed, topic->failed,
            topic->lost);
    }
}

/* Prints the histogram of lateness since the start: deliveries that were at most so many us
 * late. */
static void print_lateness(struct bel_info_page *page)
{
    const struct bel_meter *meter = &page->info->metrics->lateness;
    uint64_t below = 0;
    for (unsigned i = 0; i < BEL_METER_BOUNDS; i++) {
        below += meter->counts[i];
        bel__info_line(page, "lateness_le_%" PRIu64 "_us:%" PRIu64, bel__meter_bound_us(i), below);
    }
    bel__info_line(page, "lateness_le_inf_us:%" PRIu64, bel__meter_count(meter));
}

static void print_capabilities(struct bel_info_page *page)
{
    const struct bel_info *info = page->info;
    bel__info_line(page, "timers:1");
    bel__info_line(page, "plans:1");
    for (unsigned i = 0; i < BEL_ABILITIES; i++) {
        bel__info_line(page, "%s:%d", bel__server_ability_name(i), !info->store->lacks[i]);
    }
    bel__info_line(page, "clock_advance:%d", info->clock->is_virtual);
    bel__info_line(page, "http:%d", info->http_port != 0);
    bel__info_line(page, "keys:%d", info->keys > 0);
}

int bel__info_print(const struct bel_info *info, struct bel_view section,
                    const struct bel_scope *scope, struct bel_buffer *out)
{
    static const struct {
        const char *name;
        void (*print)(struct bel_info_page *page);
        bool is_for_all; /* for keys with a scope too */
        bool is_long;    /* only if asked for by its name, or by "everything" */
    } sections[] = {
        {"Server", print_server, true, false}, {"Clients", print_clients, false, false},
        {"Stats", print_stats, false, false},  {"Lateness", print_lateness, false, true},
        {"Store", print_store, true, false},   {"Pressure", print_pressure, false, false},
        {"Topics", print_topics, true, true},  {"Capabilities", print_capabilities, true, false},
    };
    struct bel_info_page page = {.info = info, .scope = scope, .out = out};
    char wanted[16] = "all";
    if (section.bytes >= sizeof wanted) return 0;
    if (section.bytes > 0) memcpy(wanted, section.data, section.bytes);
    if (section.bytes > 0) wanted[section.bytes] = 0;
    bool is_everything = strcasecmp(wanted, "everything") == 0;
    bool is_all =
        is_everything || strcasecmp(wanted, "all") == 0 || strcasecmp(wanted, "default") == 0;
    for (unsigned i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        bool is_meant = is_all && (is_everything || !sections[i].is_long);
        if (!is_meant && strcasecmp(wanted, sections[i].name) != 0) continue;
        if (scope != NULL && !sections[i].is_for_all) continue;
        bel__info_line(&page, "# %s", sections[i].name);
        sections[i].print(&page);
        bel__info_line(&page, "%s", "");
    }
    return page.err;
}
