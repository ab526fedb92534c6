/* SPDX-License-Identifier: MIT */

/* LIMIT as functions. */
#include "client/client.h"

#include "core/parse.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    ARGS_MAX = 16, /* LIMIT, the resource, and seven options */
    NUMBERS_MAX = 5,
};

/* A command whose arguments are added one by one. */
struct request {
    struct bel_view args[ARGS_MAX];
    size_t count;
    char numbers[NUMBERS_MAX][BEL_PRINT_BYTES_MAX];
    size_t numbers_count;
};

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static void add(struct request *request, struct bel_view arg)
{
    assert(request->count < ARGS_MAX);
    request->args[request->count++] = arg;
}

static void add_text(struct request *request, struct bel_view name, const char *text)
{
    if (text == NULL) return;
    add(request, name);
    add(request, view_of(text));
}

static void add_number(struct request *request, struct bel_view name, bool is_there,
                       uint64_t number)
{
    if (!is_there) return;
    assert(request->numbers_count < NUMBERS_MAX);
    char *text = request->numbers[request->numbers_count++];
    add(request, name);
    add(request, (struct bel_view){text, bel__print_u64(text, number)});
}

/* Return a field of a map, or an empty text and 0 if the map has no such field. */
static struct bel_view text_in(const struct bel_value *map, const char *name)
{
    const struct bel_value *value = map != NULL ? bel_value_find(map, name) : NULL;
    return value != NULL && value->type == BEL_VALUE_TEXT ? value->text : BEL_VIEW("");
}

static int64_t number_in(const struct bel_value *map, const char *name)
{
    const struct bel_value *value = map != NULL ? bel_value_find(map, name) : NULL;
    return value != NULL && value->type == BEL_VALUE_NUMBER ? value->number : 0;
}

static bool is_map(const struct bel_value *value)
{
    return value->type == BEL_VALUE_MAP || value->type == BEL_VALUE_LIST;
}

bool bel_client_resource_read(const struct bel_value *value, struct bel_client_resource *out)
{
    if (!is_map(value)) return false;
    const struct bel_value *breaker = bel_value_find(value, "breaker");
    if (breaker == NULL || !is_map(breaker)) return false;
    struct bel_client_resource resource = {.name = text_in(value, "name"),
                                           .rate = text_in(value, "rate"),
                                           .concurrency = (uint64_t)number_in(value, "concurrency"),
                                           .running = (uint64_t)number_in(value, "running"),
                                           .parked = (uint64_t)number_in(value, "parked"),
                                           .limited_until = {number_in(value, "limited_until_ms")},
                                           .breaker = text_in(breaker, "state"),
                                           .failures = (uint64_t)number_in(breaker, "failures"),
                                           .breaker_until = {number_in(breaker, "until_ms")},
                                           .fields = value};
    if (resource.name.bytes == 0 || resource.breaker.bytes == 0) return false;
    *out = resource;
    return true;
}

/* Refuses a name that the server would take for an option of LIMIT: LIMIT clear ends all limits. */
static int check_resource(struct bel_client *client, struct bel_view name)
{
    static const char *const words[] = {"RATE", "BURST", "CONCURRENCY", "UNTIL", "BREAKER", "OPEN",
                                        "MAX",  "CLEAR", "DELETE",      "COUNT", "CURSOR"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (name.bytes != strlen(words[i])) continue;
        if (strncasecmp(name.data, words[i], name.bytes) != 0) continue;
        return bel__client_refuses(client, "a resource with the name of an option of LIMIT can "
                                           "only be limited by HTTP");
    }
    return 0;
}

/* Sends a command whose reply is a resource. */
static int ask_resource(struct bel_client *client, const struct request *request,
                        struct bel_client_resource *out)
{
    const struct bel_value *reply;
    struct bel_client_resource resource;
    int err = check_resource(client, request->args[1]);
    if (err) return err;
    err = bel__client_ask(client, request->args, request->count, 0, BEL_VALUE_MAP, &reply);
    if (err) return err;
    if (!bel_client_resource_read(reply, &resource)) {
        return bel__client_fails(client, BEL_EINVAL, "the reply is not a resource");
    }
    if (out != NULL) *out = resource;
    return 0;
}

int bel_client_limit(struct bel_client *client, const struct bel_client_limit *limit,
                     struct bel_client_resource *out)
{
    struct request request = {.args = {BEL_VIEW("LIMIT"), view_of(limit->resource)}, .count = 2};
    add_text(&request, BEL_VIEW("RATE"), limit->rate);
    add_number(&request, BEL_VIEW("BURST"), limit->burst > 0, limit->burst);
    add_number(&request, BEL_VIEW("CONCURRENCY"), limit->has_concurrency, limit->concurrency);
    add_number(&request, BEL_VIEW("UNTIL"), limit->until_ms > 0, limit->until_ms);
    add_text(&request, BEL_VIEW("BREAKER"), limit->breaker);
    add_number(&request, BEL_VIEW("OPEN"), limit->breaker_open_ms > 0, limit->breaker_open_ms);
    add_number(&request, BEL_VIEW("MAX"), limit->breaker_max_ms > 0, limit->breaker_max_ms);
    return ask_resource(client, &request, out);
}

int bel_client_limit_clear(struct bel_client *client, const char *resource,
                           struct bel_client_resource *out)
{
    struct request request = {.args = {BEL_VIEW("LIMIT"), view_of(resource), BEL_VIEW("CLEAR")},
                              .count = 3};
    return ask_resource(client, &request, out);
}

int bel_client_limit_clear_all(struct bel_client *client, uint64_t *out_limited)
{
    const struct bel_view args[] = {BEL_VIEW("LIMIT"), BEL_VIEW("CLEAR")};
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, 2, 0, BEL_VALUE_NUMBER, &reply);
    if (err == 0 && out_limited != NULL) *out_limited = (uint64_t)reply->number;
    return err;
}

int bel_client_limit_delete(struct bel_client *client, const char *resource, bool *out_was_there)
{
    const struct bel_view args[] = {BEL_VIEW("LIMIT"), view_of(resource), BEL_VIEW("DELETE")};
    const struct bel_value *reply;
    int err = check_resource(client, args[1]);
    if (err) return err;
    err = bel__client_ask(client, args, 3, 0, BEL_VALUE_NUMBER, &reply);
    if (err == 0 && out_was_there != NULL) *out_was_there = reply->number > 0;
    return err;
}

int bel_client_limit_list(struct bel_client *client, struct bel_view cursor,
                          struct bel_client_resources *out)
{
    const struct bel_view args[] = {BEL_VIEW("LIMIT"), BEL_VIEW("CURSOR"), cursor};
    const struct bel_value *reply;
    int err = bel__client_ask(client, args, cursor.bytes > 0 ? 3 : 1, 0, BEL_VALUE_LIST, &reply);
    if (err) return err;
    bool is_page = reply->count == 2 && reply->items[0].type == BEL_VALUE_TEXT &&
                   reply->items[1].type == BEL_VALUE_LIST;
    if (!is_page) {
        return bel__client_fails(client, BEL_EINVAL, "the reply is not a list of resources");
    }
    *out = (struct bel_client_resources){.items = reply->items[1].items,
                                         .count = reply->items[1].count,
                                         .cursor = reply->items[0].text};
    return 0;
}
