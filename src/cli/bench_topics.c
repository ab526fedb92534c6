/* SPDX-License-Identifier: MIT */

/*
 * The two topics of a bench. Their names are fixed unless --name is given, because a topic cannot
 * be deleted. They must be empty at the start, so that only timers of the bench are purged.
 */
#include "belfry/timer.h"
#include "cli/bench.h"

#include <stdio.h>
#include <string.h>

enum {
    PURGE_TIMEOUT_MS = 10 * 60 * 1000, /* one PURGE may delete all timers */
    LEASED_COUNT = 100,                /* leased timers that one CANCEL names */
    ROUNDS_MAX = 1000000,
};

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* Sends a command. Returns CLI_OK and sets `*out`, or an exit status after printing an error. */
static int ask(const struct bench_settings *settings, struct bel_client *client,
               const struct bel_view *args, size_t count, const struct bel_value **out)
{
    int err = bel_client_call(client, args, count, out);
    if (err) return bel__connect_failed(&settings->connect, err);
    return (*out)->type == BEL_VALUE_ERROR ? bel__connect_refused(*out) : CLI_OK;
}

/* --- before the run --- */

/* Timers in every state, and plans. */
static int64_t count_timers(const struct bel_value *topic)
{
    const struct bel_value *plans = bel_value_find(topic, "plans");
    int64_t count = plans != NULL ? plans->number : 0;
    for (unsigned i = 0; i < BEL_STATES; i++) {
        const struct bel_value *number = bel_value_find(topic, bel_state_name((enum bel_state)i));
        if (number != NULL) count += number->number;
    }
    return count;
}

static int check_topic(const struct bench_settings *settings, struct bel_client *client,
                       const char *topic)
{
    const struct bel_view args[] = {BEL_VIEW("TOPIC"), view_of(topic)};
    const struct bel_value *reply;
    int err = bel_client_call(client, args, 2, &reply);
    if (err) return bel__connect_failed(&settings->connect, err);
    if (reply->type == BEL_VALUE_ERROR) {
        struct bel_view code = bel_value_code(reply);
        return bel__connect_exit(code) == CLI_NOT_FOUND ? CLI_OK : bel__connect_refused(reply);
    }
    int64_t count = count_timers(reply);
    if (count == 0) return CLI_OK;
    fprintf(stderr,
            "belfry: topic %s holds %lld timer%s: another bench is running or was killed; choose "
            "another --name, or delete them with belfry bench --purge\n",
            topic, (long long)count, count == 1 ? "" : "s");
    return CLI_CONFLICT;
}

/* Purges once before the run, so that a key without the permission fails before any timer
 * exists. */
static int check_purge(const struct bench_settings *settings, struct bel_client *client)
{
    const struct bel_view args[] = {BEL_VIEW("PURGE"), view_of(settings->due)};
    const struct bel_value *reply;
    return ask(settings, client, args, 2, &reply);
}

int bel__bench_check(const struct bench_settings *settings)
{
    struct bel_client *client;
    int status = bel__connect_open(&settings->connect, &client);
    if (status != CLI_OK) return status;
    status = check_topic(settings, client, settings->due);
    if (status == CLI_OK) status = check_topic(settings, client, settings->later);
    if (status == CLI_OK) status = check_purge(settings, client);
    bel_client_close(client);
    return status;
}

/* --- after the run --- */

static int purge_state(const struct bench_settings *settings, struct bel_client *client,
                       const char *topic, const char *state, uint64_t *count)
{
    const struct bel_view args[] = {BEL_VIEW("PURGE"), view_of(topic), BEL_VIEW("STATE"),
                                    view_of(state)};
    const struct bel_value *reply;
    int status = ask(settings, client, args, state[0] != '\0' ? 4 : 2, &reply);
    if (status == CLI_OK && reply->number > 0) *count += (uint64_t)reply->number;
    return status;
}

/* Cancels up to LEASED_COUNT leased timers, which a broken connection has left. Sets `*out_count`
 * to their number. */
static int cancel_page(const struct bench_settings *settings, struct bel_client *client,
                       const char *topic, size_t *out_count)
{
    const struct bel_view list[] = {BEL_VIEW("LIST"),   view_of(topic),    BEL_VIEW("STATE"),
                                    BEL_VIEW("leased"), BEL_VIEW("COUNT"), BEL_VIEW("100")};
    struct bel_view cancel[2 + LEASED_COUNT] = {BEL_VIEW("CANCEL"), view_of(topic)};
    const struct bel_value *reply;
    size_t count = 0;
    int status = ask(settings, client, list, 6, &reply);
    if (status != CLI_OK) return status;
    const struct bel_value *timers = reply->count == 2 ? &reply->items[1] : reply;
    for (size_t i = 0; i < timers->count && count < LEASED_COUNT; i++) {
        const struct bel_value *id = bel_value_find(&timers->items[i], "id");
        if (id != NULL) cancel[2 + count++] = id->text;
    }
    *out_count = count;
    return count > 0 ? ask(settings, client, cancel, 2 + count, &reply) : CLI_OK;
}

static int purge_topic(const struct bench_settings *settings, struct bel_client *client,
                       const char *topic, uint64_t *count)
{
    static const char *const states[] = {"scheduled", "ready", ""};
    int status = CLI_OK;
    size_t cancelled = 1;
    for (int i = 0; i < ROUNDS_MAX && cancelled > 0 && status == CLI_OK; i++) {
        status = cancel_page(settings, client, topic, &cancelled);
        *count += cancelled;
    }
    for (unsigned i = 0; i < sizeof states / sizeof states[0] && status == CLI_OK; i++) {
        status = purge_state(settings, client, topic, states[i], count);
    }
    return status;
}

int bel__bench_purge(const struct bench_settings *settings, uint64_t *out_count)
{
    struct bel_client *client;
    int status = bel__connect_open(&settings->connect, &client);
    if (status == CLI_OK) {
        bel_client_set_timeout(client, PURGE_TIMEOUT_MS);
        status = purge_topic(settings, client, settings->due, out_count);
        if (status == CLI_OK) status = purge_topic(settings, client, settings->later, out_count);
        bel_client_close(client);
    }
    if (status != CLI_OK) {
        fprintf(stderr,
                "belfry: %s and %s may still hold timers; belfry bench --purge deletes "
                "them\n",
                settings->due, settings->later);
    }
    return status;
}
