/* SPDX-License-Identifier: MIT */

/*
 * Prints the reply to LIMIT: a list of resources, one resource, or a number. In RESP2 a map is a
 * list, and so are the breaker and the reports in it.
 */
#include "cli/print.h"
#include "cli/remote_verb.h"
#include "commands/fields.h"
#include "core/view.h"

#include <stdio.h>
#include <string.h>

enum {
    PAIRS_MAX = 2 * BEL_SHOWN_FIELDS_MAX,
    REPORTS_MAX = 64,
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

static void print_cell(const struct bel_value *map, const char *name, int columns)
{
    const struct bel_value *value = map == NULL ? NULL : find(map, name);
    if (value == NULL) {
        printf("%-*s ", columns, "-");
    } else if (value->type == BEL_VALUE_NUMBER) {
        printf("%-*lld ", columns, (long long)value->number);
    } else {
        printf("%-*.*s ", columns, (int)value->text.bytes, (const char *)value->text.data);
    }
}

static void print_row(const struct bel_value *resource)
{
    const struct bel_value *until = find(resource, "limited_until_ms");
    print_cell(resource, "rate", 12);
    print_cell(resource, "concurrency", 11);
    print_cell(resource, "running", 8);
    print_cell(resource, "parked", 8);
    print_cell(find(resource, "breaker"), "state", 9);
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

int bel__show_limits(const struct cli_remote_verb *remote, struct cli_request *request,
                     struct bel_client *client, const struct bel_value *reply)
{
    bool is_resource = reply->type == BEL_VALUE_MAP || reply->type == BEL_VALUE_LIST;
    if (is_resource && !is_page(reply)) hint_at_rate(request, reply);
    if (reply->type == BEL_VALUE_NUMBER) return bel__show_count(remote, request, client, reply);
    if (is_page(reply)) return show_page(request, reply);
    if (!request->connect.is_json) return bel__show_map(remote, request, client, reply);
    if (reply->type != BEL_VALUE_MAP && reply->type != BEL_VALUE_LIST) {
        return bel__show_nonsense(request);
    }
    print_json(reply);
    printf("\n");
    return CLI_OK;
}
