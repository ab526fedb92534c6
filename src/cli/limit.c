/* SPDX-License-Identifier: MIT */

/*
 * Prints the reply to LIMIT: a list of resources, one resource, or a number. In RESP2 a map is a
 * list, and so are the breaker and the reports in it.
 */
#include "belfry/duration.h"
#include "cli/print.h"
#include "cli/remote_verb.h"
#include "commands/fields.h"
#include "core/view.h"

#include <stdio.h>
#include <string.h>

enum {
    PAIRS_MAX = 2 * BEL_SHOWN_FIELDS_MAX,
    REPORTS_MAX = 64,
    UNTIL_MS_MAX = 24 * 3600 * 1000,
};

static bool is_named(const struct bel_value *name, const char *text)
{
    return name->text.bytes == strlen(text) && memcmp(name->text.data, text, strlen(text)) == 0;
}

/* Returns the value of a field of a map; NULL if it is absent. */
static const struct bel_value *find(const struct bel_value *map, const char *name)
{
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (is_named(&map->items[i], name)) return &map->items[i + 1];
    }
    return NULL;
}

/* Prints a resource as JSON, with its maps as objects. */
static void print_json(const struct bel_value *resource)
{
    struct bel_value pairs[PAIRS_MAX], reports[REPORTS_MAX], map = *resource;
    size_t count = resource->count < PAIRS_MAX ? resource->count : PAIRS_MAX;
    if (count > 0) memcpy(pairs, resource->items, count * sizeof pairs[0]);
    for (size_t i = 0; i + 1 < count; i += 2) {
        struct bel_value *value = &pairs[i + 1];
        if (is_named(&pairs[i], "breaker")) value->type = BEL_VALUE_MAP;
        if (!is_named(&pairs[i], "reports") || value->count > REPORTS_MAX) continue;
        for (size_t k = 0; k < value->count; k++) {
            reports[k] = value->items[k];
            reports[k].type = BEL_VALUE_MAP;
        }
        value->items = reports;
    }
    map.type = BEL_VALUE_MAP;
    map.items = pairs;
    map.count = count;
    bel__cli_print_value(&map);
}

static void print_cell(const struct bel_value *map, const char *name, int columns, char end)
{
    const struct bel_value *value = map == NULL ? NULL : find(map, name);
    if (value == NULL) {
        printf("%-*s%c", columns, "-", end);
    } else if (value->type == BEL_VALUE_NUMBER) {
        printf("%-*lld%c", columns, (long long)value->number, end);
    } else {
        printf("%-*.*s%c", columns, (int)value->text.bytes, (const char *)value->text.data, end);
    }
}

/* Prints a resource as a line of columns for programs. */
static void print_columns(const struct bel_value *resource)
{
    static const char *const names[] = {"rate", "concurrency", "running", "parked"};
    const struct bel_value *until = find(resource, "limited_until_ms");
    const struct bel_value *name = find(resource, "name");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        print_cell(resource, names[i], 0, '\t');
    }
    print_cell(find(resource, "breaker"), "state", 0, '\t');
    if (until != NULL) {
        printf("%lld\t", (long long)until->number);
    } else {
        printf("-\t");
    }
    if (name != NULL) bel__cli_print_line(name->text, 0);
    printf("\n");
}

static void print_row(const struct bel_value *resource)
{
    if (!bel__cli_is_terminal()) {
        print_columns(resource);
        return;
    }
    const struct bel_value *until = find(resource, "limited_until_ms");
    print_cell(resource, "rate", 12, ' ');
    print_cell(resource, "concurrency", 11, ' ');
    print_cell(resource, "running", 8, ' ');
    print_cell(resource, "parked", 8, ' ');
    print_cell(find(resource, "breaker"), "state", 9, ' ');
    if (until != NULL) {
        bel__cli_print_time(until->number);
        printf(" ");
    } else {
        printf("%-24s ", "-");
    }
    const struct bel_value *name = find(resource, "name");
    if (name != NULL) bel__cli_print_line(name->text, 0);
    printf("\n");
}

static bool is_page(const struct bel_value *reply)
{
    return reply->type == BEL_VALUE_LIST && reply->count == 2 &&
           reply->items[1].type == BEL_VALUE_LIST;
}

static int show_page(const struct cli_request *request, const struct bel_value *reply)
{
    const struct bel_value *resources = &reply->items[1];
    struct bel_value cursor = reply->items[0];
    if (request->connect.is_json) {
        printf("{\"%s\": [", bel__shown[BEL_SHOWN_RESOURCE].list);
    } else if (bel__cli_is_terminal() && resources->count == 0) {
        printf("no resources; belfry limit NAME --rate 10/1s makes one\n");
    } else if (bel__cli_is_terminal()) {
        printf("%-12s %-11s %-8s %-8s %-9s %-24s %s\n", "RATE", "CONCURRENCY", "RUNNING", "PARKED",
               "BREAKER", "LIMITED UNTIL", "RESOURCE");
    }
    for (size_t i = 0; i < resources->count; i++) {
        if (request->connect.is_json) {
            printf(i > 0 ? ", " : "");
            print_json(&resources->items[i]);
        } else {
            print_row(&resources->items[i]);
        }
    }
    if (cursor.text.bytes == 0) cursor.type = BEL_VALUE_NIL;
    if (request->connect.is_json) {
        printf("], \"cursor\": ");
        bel__cli_print_value(&cursor);
        printf("}\n");
    } else if (cursor.type != BEL_VALUE_NIL) {
        fprintf(stderr, "belfry: more resources follow; continue with --cursor %.*s\n",
                (int)cursor.text.bytes, (const char *)cursor.text.data);
    }
    return CLI_OK;
}

static bool has_argument(const struct cli_request *request, const char *name)
{
    for (size_t i = request->words_count + 1; i < request->args_count; i++) {
        if (bel__view_is(request->args[i], name)) return true;
    }
    return false;
}

/* Says that a burst without a rate limits nothing. */
static void hint_at_rate(const struct cli_request *request, const struct bel_value *resource)
{
    if (!has_argument(request, "BURST") || find(resource, "rate") != NULL) return;
    fputs("belfry: --burst has no effect without a rate; add one, e.g. --rate 10/1s\n", stderr);
}

/* Says that an end which is too far away was moved: the server accepts it. */
static void hint_at_until(const struct cli_request *request)
{
    uint64_t ms;
    for (size_t i = request->words_count + 1; i + 1 < request->args_count; i++) {
        struct bel_view value = request->args[i + 1];
        if (!bel__view_is(request->args[i], "UNTIL")) continue;
        if (bel_duration_parse(value.data, value.bytes, &ms, NULL) != 0) return;
        if (ms <= UNTIL_MS_MAX) return;
        fprintf(stderr, "belfry: --until %.*s is longer than 24h: the limit ends in 24h\n",
                (int)value.bytes, (const char *)value.data);
    }
}

/* Shows how many resources DELETE or CLEAR has changed. */
static int show_changed(const struct cli_remote_verb *remote, struct cli_request *request,
                        struct bel_client *client, const struct bel_value *reply)
{
    int status = bel__show_count(remote, request, client, reply);
    bool is_missing = reply->number == 0 && has_argument(request, "DELETE");
    if (!is_missing || request->words_count == 0) return status;
    fprintf(stderr, "belfry: the resource '%.*s' has no limits\n", (int)request->args[1].bytes,
            (const char *)request->args[1].data);
    return CLI_NOT_FOUND;
}

int bel__show_limits(const struct cli_remote_verb *remote, struct cli_request *request,
                     struct bel_client *client, const struct bel_value *reply)
{
    bool is_resource = reply->type == BEL_VALUE_MAP || reply->type == BEL_VALUE_LIST;
    if (is_resource && !is_page(reply)) hint_at_rate(request, reply);
    if (is_resource && !is_page(reply)) hint_at_until(request);
    if (reply->type == BEL_VALUE_NUMBER) return show_changed(remote, request, client, reply);
    if (is_page(reply)) return show_page(request, reply);
    if (!request->connect.is_json) return bel__show_map(remote, request, client, reply);
    if (reply->type != BEL_VALUE_MAP && reply->type != BEL_VALUE_LIST) {
        return bel__show_nonsense(request);
    }
    print_json(reply);
    printf("\n");
    return CLI_OK;
}
