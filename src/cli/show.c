/* SPDX-License-Identifier: MIT */

/*
 * Prints replies: as JSON with --json, as a table on a terminal, and otherwise as lines with
 * tab-separated columns, whose order is stable. Times are milliseconds since 1970, except on a
 * terminal.
 */
#include "cli/print.h"
#include "cli/remote_verb.h"
#include "commands/fields.h"
#include "core/view.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    DELIVERY_FIELDS = 7, /* at least */
    NAME_COLUMNS = 16,
    NAME_COLUMNS_MAX = 32,
    PAYLOAD_COLUMNS_MIN = 20,
};

int bel__show_nonsense(const struct cli_request *request)
{
    fprintf(stderr, "belfry: the reply of %s to %s has an unexpected form\n",
            bel__connect_address(&request->connect), request->command->name);
    return CLI_FAILED;
}

/* --- one value --- */

int bel__show_id(const struct cli_remote_verb *remote, struct cli_request *request,
                 struct bel_client *client, const struct bel_value *reply)
{
    (void)client;
    if (request->connect.is_json) {
        printf("{\"%s\": ", remote->name);
        bel__cli_print_value(reply);
        printf("}\n");
    } else {
        bel__cli_print_plain(reply);
        printf("\n");
    }
    return CLI_OK;
}

int bel__show_count(const struct cli_remote_verb *remote, struct cli_request *request,
                    struct bel_client *client, const struct bel_value *reply)
{
    if (reply->type != BEL_VALUE_NUMBER) return bel__show_nonsense(request);
    (void)bel__show_id(remote, request, client, reply);
    return reply->number > 0 ? CLI_OK : remote->if_missing;
}

/* Prints the number of acknowledged tokens. Fails if it is less than the number of tokens. */
int bel__show_acks(const struct cli_remote_verb *remote, struct cli_request *request,
                   struct bel_client *client, const struct bel_value *reply)
{
    if (reply->type != BEL_VALUE_NUMBER) return bel__show_nonsense(request);
    (void)bel__show_id(remote, request, client, reply);
    return reply->number >= (int64_t)request->words_count ? CLI_OK : remote->if_missing;
}

int bel__show_ok(const struct cli_remote_verb *remote, struct cli_request *request,
                 struct bel_client *client, const struct bel_value *reply)
{
    (void)remote;
    (void)client;
    (void)reply;
    if (request->connect.is_json) printf("{\"ok\": true}\n");
    return CLI_OK;
}

int bel__show_clock(const struct cli_remote_verb *remote, struct cli_request *request,
                    struct bel_client *client, const struct bel_value *reply)
{
    if (request->connect.is_json) return bel__show_id(remote, request, client, reply);
    if (reply->type != BEL_VALUE_NUMBER) return bel__show_nonsense(request);
    bel__cli_print_time(reply->number);
    printf("\n");
    return CLI_OK;
}

int bel__show_verdict(const struct cli_remote_verb *remote, struct cli_request *request,
                      struct bel_client *client, const struct bel_value *reply)
{
    (void)remote;
    (void)client;
    if (reply->type != BEL_VALUE_LIST || reply->count < 2) return bel__show_nonsense(request);
    const struct bel_value *state = &reply->items[0], *due = &reply->items[1];
    if (request->connect.is_json) {
        bel__cli_print_places(BEL_SHOWN_VERDICT, reply);
        printf("\n");
        return CLI_OK;
    }
    bel__cli_print_state(state->text, 0);
    if (due->type == BEL_VALUE_NUMBER && bel__cli_is_terminal()) {
        printf("\t");
        bel__cli_print_time(due->number);
    } else if (due->type == BEL_VALUE_NUMBER) {
        printf("\t%" PRId64, due->number);
    }
    printf("\n");
    return CLI_OK;
}

/* Prints a field of an explanation: in JSON always, as null if it is absent; else if it is there,
 * on a line of its own. */
static void print_explained(const struct cli_request *request, const struct bel_value *map,
                            const char *name)
{
    static const struct bel_value nil = {.type = BEL_VALUE_NIL};
    const struct bel_value *value = bel_value_find(map, name);
    if (request->connect.is_json) {
        printf("\"%s\": ", name);
        bel__cli_print_value(value == NULL ? &nil : value);
        printf(", ");
    } else if (value != NULL) {
        printf("%s\t", name);
        bel__cli_print_plain(value);
        printf("\n");
    }
}

int bel__show_explanation(const struct cli_remote_verb *remote, struct cli_request *request,
                          struct bel_client *client, const struct bel_value *reply)
{
    static const char *const names[] = {"reason", "until_ms", "by"};
    const struct bel_value *found = bel_value_find(reply, remote->name); /* only with REASON */
    const struct bel_value *lines = found != NULL ? found : reply;
    (void)client;
    if (lines->type != BEL_VALUE_LIST) return bel__show_nonsense(request);
    printf(request->connect.is_json ? "{" : "");
    for (unsigned i = 0; found != NULL && i < sizeof names / sizeof names[0]; i++) {
        print_explained(request, reply, names[i]);
    }
    if (request->connect.is_json) {
        printf("\"%s\": ", remote->name);
        bel__cli_print_value(lines);
        printf("}\n");
        return CLI_OK;
    }
    for (size_t i = 0; i < lines->count; i++) {
        bel__cli_print_line(lines->items[i].text, 0);
        printf("\n");
    }
    return CLI_OK;
}

/* --- names and values --- */

/* Returns the type of a field of a timer; text for any other name, such as a setting. */
static enum bel_field_type type_of(struct bel_view name)
{
    const struct bel_field *field = bel__field_find(BEL_SHOWN_TIMER, name);
    return field != NULL ? field->type : BEL_FIELD_TEXT;
}

/* Prints a map within a map, for people: "state closed, failures 0". */
static void print_parts(const struct bel_value *map)
{
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        printf("%s", i > 0 ? ", " : "");
        bel__cli_print_line(map->items[i].text, 0);
        printf(" ");
        bel__cli_print_plain(&map->items[i + 1]);
    }
}

/* Prints a pair; on a terminal with the name in a column. */
static void print_pair(const struct bel_value *name, const struct bel_value *value, int column)
{
    enum bel_field_type type = type_of(name->text);
    struct bel_value headers = *value;
    if (type == BEL_FIELD_HEADERS && value->count % 2 == 0) {
        headers.type = BEL_VALUE_MAP;
        value = &headers;
    }
    if (!bel__cli_is_terminal()) {
        bel__cli_print_line(name->text, 0);
        printf("\t");
        bel__cli_print_plain(value);
    } else if (type == BEL_FIELD_INSTANT && value->type == BEL_VALUE_NUMBER) {
        printf("%-*.*s ", column, (int)name->text.bytes - 3, (const char *)name->text.data);
        bel__cli_print_time(value->number);
    } else {
        printf("%-*.*s ", column, (int)name->text.bytes, (const char *)name->text.data);
        if (type == BEL_FIELD_STATE) {
            bel__cli_print_state(value->text, 0);
        } else if (value->type == BEL_VALUE_MAP && type != BEL_FIELD_HEADERS) {
            print_parts(value);
        } else {
            bel__cli_print_plain(value);
        }
    }
    printf("\n");
}

int bel__show_map(const struct cli_remote_verb *remote, struct cli_request *request,
                  struct bel_client *client, const struct bel_value *reply)
{
    (void)client;
    if (reply->type == BEL_VALUE_NIL) {
        if (request->connect.is_json) printf("null\n");
        struct bel_view topic = request->args[1], id = request->args[2];
        fprintf(stderr, "belfry: NOTFOUND topic '%.*s' has no timer '%.*s'\n", (int)topic.bytes,
                (const char *)topic.data, (int)id.bytes, (const char *)id.data);
        return remote->if_missing;
    }
    if (reply->type != BEL_VALUE_MAP && reply->type != BEL_VALUE_LIST) {
        return bel__show_nonsense(request);
    }
    if (request->connect.is_json) {
        struct bel_value map = *reply; /* RESP2 sends a map as a list */
        map.type = BEL_VALUE_MAP;
        bel__cli_print_value(&map);
        printf("\n");
        return CLI_OK;
    }
    int column = NAME_COLUMNS;
    for (size_t i = 0; i + 1 < reply->count; i += 2) {
        size_t bytes = reply->items[i].text.bytes;
        if (bytes > (size_t)column && bytes <= NAME_COLUMNS_MAX) column = (int)bytes;
    }
    for (size_t i = 0; i + 1 < reply->count; i += 2) {
        print_pair(&reply->items[i], &reply->items[i + 1], column);
    }
    return CLI_OK;
}

/* --- deliveries --- */

/* Returns the index of a field in a list of fields. */
static size_t place_of(enum bel_shown_kind kind, struct bel_view name)
{
    const struct bel_field *field = bel__field_find(kind, name);
    assert(field != NULL);
    return (size_t)(field - bel__shown[kind].fields);
}

static void print_delivery_line(const struct bel_value *delivery)
{
    const struct bel_view columns[] = {BEL_VIEW("token"),  BEL_VIEW("topic"),
                                       BEL_VIEW("id"),     BEL_VIEW("attempt"),
                                       BEL_VIEW("due_ms"), BEL_VIEW("payload")};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        if (i > 0) printf("\t");
        bel__cli_print_plain(&delivery->items[place_of(BEL_SHOWN_DELIVERY, columns[i])]);
    }
    printf("\n");
}

int bel__show_deliveries(const struct cli_remote_verb *remote, struct cli_request *request,
                         struct bel_client *client, const struct bel_value *reply)
{
    (void)client;
    if (reply->type != BEL_VALUE_LIST) return bel__show_nonsense(request);
    if (request->connect.is_json) printf("{\"%s\": [", bel__shown[BEL_SHOWN_DELIVERY].list);
    for (size_t i = 0; i < reply->count; i++) {
        const struct bel_value *delivery = &reply->items[i];
        if (delivery->count < DELIVERY_FIELDS) return bel__show_nonsense(request);
        if (!request->connect.is_json) {
            print_delivery_line(delivery);
            continue;
        }
        printf("%s", i > 0 ? ", " : "");
        bel__cli_print_places(BEL_SHOWN_DELIVERY, delivery);
    }
    if (request->connect.is_json) printf("]}\n");
    return reply->count > 0 ? CLI_OK : remote->if_missing;
}

/* --- lists --- */

/* Returns the rule of a plan, and its kind in `*out_kind`; NULL for a timer. */
static const struct bel_value *rule_of(const struct bel_value *timer, const char **out_kind)
{
    static const char *const kinds[] = {"every", "cron", "rrule"};
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct bel_value *rule = bel_value_find(timer, kinds[i]);
        *out_kind = kinds[i];
        if (rule != NULL) return rule;
    }
    return NULL;
}

/* Prints the last column of a plan's line: cron 0 9 * * * Europe/Berlin */
static void print_rule(const struct bel_value *timer)
{
    const char *kind;
    const struct bel_value *rule = rule_of(timer, &kind), *zone = bel_value_find(timer, "tz");
    if (rule == NULL) return;
    printf("\t%s ", kind);
    bel__cli_print_plain(rule);
    if (zone == NULL) return;
    printf(" ");
    bel__cli_print_plain(zone);
}

/* Returns the state of a timer to show; a plan that waits for its next time is marked. */
static struct bel_view state_of(const struct bel_value *timer, struct bel_view state)
{
    const char *kind;
    bool is_plan = rule_of(timer, &kind) != NULL && bel__view_is(state, "scheduled");
    return is_plan ? BEL_VIEW("plan") : state;
}

static void print_timer_row(const struct bel_value *timer)
{
    static const struct bel_value nothing = {.type = BEL_VALUE_NIL};
    const char *const names[] = {"id", "state", "due_ms", "attempts", "payload"};
    const struct bel_value *fields[5];
    for (unsigned i = 0; i < 5; i++) {
        assert(bel__field_find(BEL_SHOWN_TIMER, (struct bel_view){names[i], strlen(names[i])}));
        fields[i] = bel_value_find(timer, names[i]);
        if (fields[i] == NULL) fields[i] = &nothing;
    }
    if (!bel__cli_is_terminal()) {
        for (unsigned i = 0; i < 5; i++) {
            if (i > 0) printf("\t");
            bel__cli_print_plain(fields[i]);
        }
        print_rule(timer);
        printf("\n");
        return;
    }
    unsigned used = 10 + 1 + 24 + 1 + 8 + 1 + 26 + 1, columns = bel__cli_columns();
    bel__cli_print_state(state_of(timer, fields[1]->text), 10);
    printf(" ");
    if (fields[2]->type == BEL_VALUE_NUMBER) {
        bel__cli_print_time(fields[2]->number);
        printf("%*s", fields[2]->number % 1000 == 0 ? 4 : 0, "");
    } else {
        printf("%-24s", "-");
    }
    printf(" %8" PRId64 " %-26.*s ", fields[3]->number, (int)fields[0]->text.bytes,
           (const char *)fields[0]->text.data);
    bel__cli_print_line(fields[4]->text, columns > used + PAYLOAD_COLUMNS_MIN
                                             ? columns - used - 3
                                             : PAYLOAD_COLUMNS_MIN);
    printf("\n");
}

static void print_page(const struct cli_request *request, const struct bel_value *timers,
                       bool *is_first)
{
    const char *kind;
    for (size_t i = 0; i < timers->count; i++) {
        if (request->only_plans && rule_of(&timers->items[i], &kind) == NULL) continue;
        if (!request->connect.is_json) {
            print_timer_row(&timers->items[i]);
            continue;
        }
        struct bel_value map = timers->items[i];
        map.type = BEL_VALUE_MAP;
        printf("%s", *is_first ? "" : ", ");
        bel__cli_print_value(&map);
        *is_first = false;
    }
}

static bool is_page(const struct bel_value *reply)
{
    return reply->type == BEL_VALUE_LIST && reply->count == 2 &&
           reply->items[1].type == BEL_VALUE_LIST;
}

/* Requests the next page. The cursor points into the last reply, which is valid until then. */
static int request_page(struct cli_request *request, struct bel_client *client,
                        struct bel_view cursor, const struct bel_value **out)
{
    size_t place = request->words_count + 1; /* of the user's CURSOR, or the end */
    while (place < request->args_count) {
        const struct bel_view *name = &request->args[place];
        if (name->bytes == 6 && memcmp(name->data, "CURSOR", 6) == 0) break;
        place += 2; /* all options of LIST have a value */
    }
    request->args[place] = BEL_VIEW("CURSOR");
    request->args[place + 1] = cursor;
    if (place == request->args_count) request->args_count += 2;
    int err = bel_client_call(client, request->args, request->args_count, out);
    if (err) return bel__connect_failed(&request->connect, err);
    if ((*out)->type == BEL_VALUE_ERROR) return bel__connect_refused(*out);
    return is_page(*out) ? CLI_OK : bel__show_nonsense(request);
}

/* Prints all pages; with --count only one page, and the cursor of the next. */
int bel__show_list(const struct cli_remote_verb *remote, struct cli_request *request,
                   struct bel_client *client, const struct bel_value *reply)
{
    bool is_first = true;
    (void)remote;
    if (!is_page(reply)) return bel__show_nonsense(request);
    if (request->connect.is_json) {
        printf("{\"%s\": [", bel__shown[BEL_SHOWN_TIMER].list);
    } else if (bel__cli_is_terminal() && reply->items[1].count == 0) {
        printf("no timers\n");
    } else if (bel__cli_is_terminal()) {
        printf("%-10s %-24s %8s %-26s %s\n", "STATE", "DUE", "ATTEMPTS", "ID", "PAYLOAD");
    }
    for (;;) {
        struct bel_view cursor = reply->items[0].text;
        print_page(request, &reply->items[1], &is_first);
        if (cursor.bytes == 0 || request->count != NULL) break;
        int status = request_page(request, client, cursor, &reply);
        if (status != CLI_OK) return status;
    }
    struct bel_value cursor = reply->items[0];
    if (cursor.text.bytes == 0) cursor.type = BEL_VALUE_NIL;
    if (request->connect.is_json) {
        printf("], \"cursor\": ");
        bel__cli_print_value(&cursor);
        printf("}\n");
    } else if (cursor.type != BEL_VALUE_NIL) {
        fprintf(stderr, "belfry: more timers follow; continue with --cursor %.*s\n",
                (int)cursor.text.bytes, (const char *)cursor.text.data);
    }
    return CLI_OK;
}
