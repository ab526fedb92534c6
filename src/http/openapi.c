/* SPDX-License-Identifier: MIT */

/*
 * The paths of the description: an operation for each route, with its parameters, its request body,
 * an example of that, and all of its responses.
 */
#include "http/openapi.h"

#include "belfry/version.h"
#include "http/json_memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- parameters --- */

static json_t *parameter(const char *name, const char *place, json_t *schema, const char *help)
{
    return json_pack("{s:s, s:s, s:b, s:s, s:o}", "name", name, "in", place, "required",
                     strcmp(place, "path") == 0, "description", help, "schema", schema);
}

static json_t *describe_parameters(const struct bel_http_route *route, bool *lost)
{
    const struct bel_command_entry *entry = &bel__commands[route->command];
    bool is_get = strcmp(route->method, "GET") == 0;
    json_t *parameters = json_array();
    for (size_t i = 0; route->own == BEL_HTTP_COMMAND && i < entry->arguments_count; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        char name[BEL_HTTP_FIELD_BYTES];
        if (!bel__http_takes(route, argument)) continue;
        bel__http_field_name(route, argument, name);
        bool is_in_path = bel__openapi_is_in_path(route, name);
        if (!is_in_path && !is_get) continue;
        bool is_new_job = route->command == BEL_COMMAND_JOB_SUBMIT;
        json_t *schema = is_new_job ? bel__openapi_parse(BEL_OPENAPI_JOB_ID, lost)
                                    : bel__openapi_argument(argument, lost);
        bool is_cursor = strcmp(name, "cursor") == 0;
        if (is_cursor) bel__openapi_put(schema, "type", json_string("string"), lost);
        bel__openapi_add(parameters,
                         parameter(name, is_in_path ? "path" : "query", schema, argument->help),
                         lost);
    }
    if (route->is_create && route->command == BEL_COMMAND_SCHEDULE) {
        json_t *schema = bel__openapi_parse("{'type': 'string', 'pattern': "
                                            "'^[A-Za-z0-9._:/-]{1,128}$', 'examples': ['order-7']}",
                                            lost);
        bel__openapi_add(parameters,
                         parameter("Idempotency-Key", "header", schema,
                                   "becomes the id of the timer, so that a request can be sent "
                                   "again without creating a second timer"),
                         lost);
    }
    return parameters;
}

/* --- bodies --- */

static json_t *describe_body(const struct bel_http_route *route, bool *lost)
{
    char name[64];
    bel__openapi_request_name(route, name);
    json_t *media = json_pack("{s:o}", "schema", bel__openapi_reference("schemas", name));
    if (route->example != NULL) {
        bel__openapi_put(media, "example", bel__openapi_parse(route->example, lost), lost);
    }
    bool is_required =
        route->command == BEL_COMMAND_SCHEDULE || route->command == BEL_COMMAND_RESCHEDULE ||
        route->command == BEL_COMMAND_CONFIGURE || route->command == BEL_COMMAND_JOB_SUBMIT;
    return json_pack("{s:b, s:{s:o}}", "required", is_required, "content", "application/json",
                     media);
}

/* --- responses --- */

static json_t *describe_success(const struct bel_http_route *route, bool *lost)
{
    const char *name = bel__openapi_response_name(route);
    json_t *response = json_pack("{s:s}", "description", name != NULL ? name : "done");
    if (route->own == BEL_HTTP_METRICS) {
        bel__openapi_put(response, "content",
                         bel__openapi_parse("{'text/plain': {'schema': {'type': 'string'}}}", lost),
                         lost);
    } else if (route->own == BEL_HTTP_OPENAPI) {
        bel__openapi_put(
            response, "content",
            bel__openapi_parse("{'application/json': {'schema': {'type': 'object'}}}", lost), lost);
    } else if (name != NULL) {
        json_t *content = json_pack("{s:{s:o}}", "application/json", "schema",
                                    bel__openapi_reference("schemas", name));
        bel__openapi_put(response, "content", content, lost);
    }
    if (route->is_create) {
        bel__openapi_put(
            response, "headers",
            bel__openapi_parse("{'Location': {'required': true, 'description': "
                               "'path of what was created', 'schema': {'type': 'string'}}}",
                               lost),
            lost);
    }
    return response;
}

/* Returns whether a route may answer with 404, because a timer or a topic does not exist. */
static bool may_miss(const struct bel_http_route *route)
{
    switch (route->command) {
    case BEL_COMMAND_GET:
    case BEL_COMMAND_RESCHEDULE:
    case BEL_COMMAND_CANCEL:
    case BEL_COMMAND_TOPIC:
    case BEL_COMMAND_EXPLAIN:
    case BEL_COMMAND_JOB_SUBMIT: /* the key's topics do not include those of the job */
    case BEL_COMMAND_JOB_GET:
    case BEL_COMMAND_JOB_CANCEL:
    case BEL_COMMAND_JOB_PAUSE:
    case BEL_COMMAND_JOB_RESUME:
        return route->own == BEL_HTTP_COMMAND;
    case BEL_COMMAND_LIMIT:
        return strchr(route->path, '{') != NULL; /* PUT: an empty body only shows */
    default:
        return false;
    }
}

/* Returns whether a route may answer with 409: the id is taken, or the lease has ended. */
static bool may_conflict(const struct bel_http_route *route)
{
    return route->own == BEL_HTTP_COMMAND &&
           (route->command == BEL_COMMAND_SCHEDULE || route->command == BEL_COMMAND_JOB_SUBMIT ||
            strncmp(route->path, "/v1/leases/", strlen("/v1/leases/")) == 0);
}

static void put_problem(json_t *responses, const char *status, bool *lost)
{
    char name[16];
    (void)snprintf(name, sizeof name, "Problem%s", status);
    bel__openapi_put(responses, status, bel__openapi_reference("responses", name), lost);
}

static json_t *describe_responses(const struct bel_http_route *route, bool *lost)
{
    static const char *const common[] = {"400", "401", "403", "408", "413", "414",
                                         "415", "431", "500", "501", "503", "507"};
    json_t *responses = json_object();
    bool is_silent = bel__openapi_response_name(route) == NULL && route->own == BEL_HTTP_COMMAND;
    const char *status = route->is_create ? "201" : is_silent ? "204" : "200";
    bel__openapi_put(responses, status, describe_success(route, lost), lost);
    if (route->own == BEL_HTTP_READYZ) {
        bel__openapi_put(responses, "503", describe_success(route, lost), lost);
    }
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        if (json_object_get(responses, common[i]) == NULL) put_problem(responses, common[i], lost);
    }
    if (may_miss(route)) put_problem(responses, "404", lost);
    if (may_conflict(route)) put_problem(responses, "409", lost);
    return responses;
}

/* --- operations --- */

static json_t *describe(const struct bel_http_route *route, bool *lost)
{
    const struct bel_command_entry *entry = &bel__commands[route->command];
    json_t *operation = json_pack("{s:s, s:[s]}", "operationId", route->name, "tags", route->tag);
    if (route->own == BEL_HTTP_COMMAND) {
        bel__openapi_put(operation, "summary", json_string(entry->help), lost);
        bel__openapi_put(operation, "x-command", json_string(entry->name), lost);
        bel__openapi_put(operation, "x-permission",
                         json_string(bel__permission_name(entry->permission)), lost);
    }
    if (route->own == BEL_HTTP_LIVEZ || route->own == BEL_HTTP_READYZ) {
        bel__openapi_put(operation, "security", json_array(), lost);
    }
    json_t *parameters = describe_parameters(route, lost);
    if (json_array_size(parameters) > 0) {
        bel__openapi_put(operation, "parameters", json_incref(parameters), lost);
    }
    json_decref(parameters);
    if (bel__openapi_has_body(route)) {
        bel__openapi_put(operation, "requestBody", describe_body(route, lost), lost);
    }
    bel__openapi_put(operation, "responses", describe_responses(route, lost), lost);
    return operation;
}

static json_t *describe_paths(bool *lost)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < bel__http_routes_count; i++) {
        const struct bel_http_route *route = &bel__http_routes[i];
        char method[8];
        size_t k = 0;
        for (; k < sizeof method - 1 && route->method[k] != 0; k++) {
            method[k] = (char)(route->method[k] | 0x20);
        }
        method[k] = 0;
        if (json_object_get(paths, route->path) == NULL) {
            bel__openapi_put(paths, route->path, json_object(), lost);
        }
        bel__openapi_put(json_object_get(paths, route->path), method, describe(route, lost), lost);
    }
    return paths;
}

/* Makes the description, unless memory runs out. */
static void describe_all(void *context)
{
    static const char info[] =
        "{'title': 'Belfry', 'license': {'name': 'MIT', 'identifier': 'MIT'}, 'description': "
        "'Durable timers: schedule, claim, acknowledge. A slash in a path parameter is sent as "
        "%2F. Every error is application/problem+json with a stable code.'}";
    bool is_lost = false, *lost = &is_lost;
    json_t **out = context, *all = json_object(), *about = bel__openapi_parse(info, lost);
    bel__openapi_put(all, "openapi", json_string("3.1.0"), lost);
    bel__openapi_put(about, "version", json_string(bel_version()), lost);
    bel__openapi_put(all, "info", about, lost);
    bel__openapi_put(all, "servers", bel__openapi_parse("[{'url': '/'}]", lost), lost);
    bel__openapi_put(all, "security", bel__openapi_parse("[{'key': []}, {}]", lost), lost);
    bel__openapi_put(all, "paths", describe_paths(lost), lost);
    bel__openapi_put(all, "components", bel__openapi_components(lost), lost);
    assert(!is_lost); /* a failed allocation does not come back */
    *out = all;
}

json_t *bel__http_openapi(void)
{
    json_t *all = NULL;
    return bel__json_memory_try(describe_all, &all) ? all : NULL;
}
