/* SPDX-License-Identifier: MIT */

/*
 * The description of the interface, made from the table of routes and the table of commands, so
 * that it cannot say anything else than they do.
 */
#include "server/http_call.h"

#include "belfry/version.h"

#include <string.h>

static bool is_in_path(const struct bel_http_route *route, const char *name)
{
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t bytes = strcspn(at + 1, "}");
        if (bytes == strlen(name) && memcmp(at + 1, name, bytes) == 0) return true;
    }
    return false;
}

/* The name of a field for an argument. */
static void name_field(const struct bel_http_route *route, const struct bel_argument *argument,
                       char out[32])
{
    const char *name = argument->name;
    size_t i = 0;
    if (strcmp(name, "HEADER") == 0) name = "headers";
    if (route->command == BEL_COMMAND_LIST && strcmp(name, "COUNT") == 0) name = "limit";
    for (; i < 31 && name[i] != 0; i++) {
        bool is_large = name[i] >= 'A' && name[i] <= 'Z';
        out[i] = (char)(is_large ? name[i] | 0x20 : name[i]);
    }
    out[i] = 0;
}

static json_t *schema_of(const struct bel_argument *argument)
{
    json_t *schema = json_object();
    switch (argument->type) {
    case BEL_ARGUMENT_NUMBER:
        (void)json_object_set_new(schema, "type", json_string("integer"));
        break;
    case BEL_ARGUMENT_FLAG:
        (void)json_object_set_new(schema, "type", json_string("boolean"));
        break;
    case BEL_ARGUMENT_PAIR:
        (void)json_object_set_new(schema, "type", json_string("object"));
        break;
    case BEL_ARGUMENT_BYTES:
        break;
    default:
        (void)json_object_set_new(schema, "type", json_string("string"));
        break;
    }
    (void)json_object_set_new(schema, "description", json_string(argument->help));
    return schema;
}

static json_t *parameter(const char *name, const char *place, const struct bel_argument *argument)
{
    return json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in", place, "required",
                     strcmp(place, "path") == 0, "schema", schema_of(argument));
}

static void describe_arguments(const struct bel_http_route *route, json_t *parameters,
                               json_t *properties)
{
    const struct bel_command_entry *entry = &bel__commands[route->command];
    bool is_get = strcmp(route->method, "GET") == 0;
    for (size_t i = 0; i < entry->arguments_count; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        char name[32];
        name_field(route, argument, name);
        if (is_in_path(route, name)) {
            (void)json_array_append_new(parameters, parameter(name, "path", argument));
        } else if (is_get) {
            (void)json_array_append_new(parameters, parameter(name, "query", argument));
        } else if (strcmp(name, "setting") != 0) {
            (void)json_object_set_new(properties, name, schema_of(argument));
        }
    }
    if (route->command == BEL_COMMAND_SCHEDULE) {
        (void)json_object_set_new(properties, "payload_base64",
                                  json_pack("{s:s}", "type", "string"));
    }
}

static json_t *describe(const struct bel_http_route *route)
{
    json_t *operation = json_object(), *parameters = json_array(), *properties = json_object();
    if (route->own == BEL_HTTP_COMMAND) {
        (void)json_object_set_new(operation, "summary",
                                  json_string(bel__commands[route->command].help));
        (void)json_object_set_new(operation, "x-command",
                                  json_string(bel__commands[route->command].name));
        describe_arguments(route, parameters, properties);
    }
    if (json_array_size(parameters) > 0) {
        (void)json_object_set(operation, "parameters", parameters);
    }
    if (route->own == BEL_HTTP_COMMAND && strcmp(route->method, "GET") != 0) {
        json_t *body = json_pack("{s:{s:{s:{s:s, s:O}}}}", "content", "application/json", "schema",
                                 "type", "object", "properties", properties);
        (void)json_object_set_new(operation, "requestBody", body);
    }
    json_t *responses =
        json_pack("{s:{s:s}, s:{s:s}}", route->is_made ? "201" : "2XX", "description", "done",
                  "default", "description", "application/problem+json with a code");
    (void)json_object_set_new(operation, "responses", responses);
    json_decref(parameters);
    json_decref(properties);
    return operation;
}

json_t *bel__http_openapi(void)
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
            (void)json_object_set_new(paths, route->path, json_object());
        }
        (void)json_object_set_new(json_object_get(paths, route->path), method, describe(route));
    }
    return json_pack("{s:s, s:{s:s, s:s}, s:o}", "openapi", "3.1.0", "info", "title", "Belfry",
                     "version", bel_version(), "paths", paths);
}
