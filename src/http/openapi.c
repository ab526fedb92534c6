/* SPDX-License-Identifier: MIT */

/*
 * The OpenAPI description of the HTTP interface, generated from the tables of routes, commands and
 * fields that the server itself uses.
 */
#include "http/call.h"

#include "belfry/version.h"
#include "commands/fields.h"

#include <stdio.h>
#include <string.h>

static bool is_in_path(const struct bel_http_route *route, const char *name)
{
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t bytes = strcspn(at + 1, "}");
        if (bytes == strlen(name) && memcmp(at + 1, name, bytes) == 0) return true;
    }
    return false;
}

/* Writes the name of the JSON field or query parameter that sets an argument. */
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

/* put() and add() take ownership of the value. A value of NULL means out of memory. */
static void put(json_t *object, const char *name, json_t *value, bool *lost)
{
    if (json_object_set_new(object, name, value) != 0) *lost = true;
}

static void add(json_t *array, json_t *value, bool *lost)
{
    if (json_array_append_new(array, value) != 0) *lost = true;
}

/* Returns the limit of an argument: its own, or that of its type; 0 if it has none. */
static json_int_t limit_of(const struct bel_argument *argument)
{
    if (argument->max > 0) return argument->max;
    switch (argument->type) {
    case BEL_ARGUMENT_TOPIC:
        return BEL_TOPIC_BYTES_MAX;
    case BEL_ARGUMENT_ID:
        return BEL_ID_BYTES - 1; /* of an occurrence */
    case BEL_ARGUMENT_TOKEN:
        return BEL_TOKEN_BYTES_MAX;
    default:
        return 0;
    }
}

/* Adds the limit of an argument. A text of that many bytes has at most as many characters. */
static void put_limit(json_t *schema, const struct bel_argument *argument, bool *lost)
{
    json_int_t limit = limit_of(argument);
    const char *name = argument->type == BEL_ARGUMENT_NUMBER ? "maximum"
                       : argument->type == BEL_ARGUMENT_PAIR ? "maxProperties"
                                                             : "maxLength";
    if (limit > 0) put(schema, name, json_integer(limit), lost);
}

static json_t *schema_of(const struct bel_argument *argument, bool *lost)
{
    json_t *schema = json_object();
    switch (argument->type) {
    case BEL_ARGUMENT_NUMBER:
        put(schema, "type", json_string("integer"), lost);
        break;
    case BEL_ARGUMENT_FLAG:
        put(schema, "type", json_string("boolean"), lost);
        break;
    case BEL_ARGUMENT_PAIR:
        put(schema, "type", json_string("object"), lost);
        break;
    case BEL_ARGUMENT_BYTES:
        break;
    default:
        put(schema, "type", json_string("string"), lost);
        break;
    }
    put(schema, "description", json_string(argument->help), lost);
    put_limit(schema, argument, lost);
    return schema;
}

static json_t *parameter(const char *name, const char *place, const struct bel_argument *argument,
                         bool *lost)
{
    return json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in", place, "required",
                     strcmp(place, "path") == 0, "schema", schema_of(argument, lost));
}

static void describe_arguments(const struct bel_http_route *route, json_t *parameters,
                               json_t *properties, bool *lost)
{
    const struct bel_command_entry *entry = &bel__commands[route->command];
    bool is_get = strcmp(route->method, "GET") == 0;
    for (size_t i = 0; i < entry->arguments_count; i++) {
        const struct bel_argument *argument = &entry->arguments[i];
        char name[32];
        name_field(route, argument, name);
        if (is_in_path(route, name)) {
            add(parameters, parameter(name, "path", argument, lost), lost);
        } else if (is_get) {
            add(parameters, parameter(name, "query", argument, lost), lost);
        } else if (strcmp(name, "setting") != 0) {
            put(properties, name, schema_of(argument, lost), lost);
        }
    }
    if (route->is_create) {
        json_t *key = json_pack("{s:s, s:s, s:b, s:{s:s}}", "name", "Idempotency-Key", "in",
                                "header", "required", false, "schema", "type", "string");
        add(parameters, key, lost);
    }
    if (route->command == BEL_COMMAND_SCHEDULE) {
        put(properties, "payload_base64", json_pack("{s:s}", "type", "string"), lost);
    }
}

/* --- answers --- */

/* Returns the JSON type of a field; NULL for a payload, which may be any type. */
static const char *json_type_of(enum bel_field_type type)
{
    switch (type) {
    case BEL_FIELD_PAYLOAD:
        return NULL;
    case BEL_FIELD_BOOLEAN:
        return "boolean";
    case BEL_FIELD_SMALL:
    case BEL_FIELD_COUNT:
    case BEL_FIELD_DURATION:
    case BEL_FIELD_INSTANT:
        return "integer";
    case BEL_FIELD_HEADERS:
    case BEL_FIELD_SETTINGS:
        return "object";
    case BEL_FIELD_OUTCOMES:
        return "array";
    default:
        return "string";
    }
}

static json_t *reference_to(enum bel_shown_kind kind)
{
    char path[64];
    (void)snprintf(path, sizeof path, "#/components/schemas/%s", bel__shown[kind].name);
    return json_pack("{s:s}", "$ref", path);
}

/* Describes a field. A field of bytes is also described as NAME_base64, which a reply contains
 * instead if the bytes are not UTF-8. */
static void describe_field(const struct bel_field *field, json_t *properties, bool *lost)
{
    const char *name = field->name.data, *type = json_type_of(field->type);
    json_t *schema = json_object();
    if (type != NULL) put(schema, "type", json_string(type), lost);
    put(schema, "description", json_string(field->help), lost);
    if (field->type == BEL_FIELD_OUTCOMES) {
        put(schema, "items", reference_to(BEL_SHOWN_OUTCOME), lost);
    }
    put(properties, name, schema, lost);
    if (field->type == BEL_FIELD_BYTES || field->type == BEL_FIELD_PAYLOAD) {
        char base64[64];
        (void)snprintf(base64, sizeof base64, "%s_base64", name);
        put(properties, base64,
            json_pack("{s:s, s:s}", "type", "string", "contentEncoding", "base64"), lost);
    }
}

static json_t *describe_shown(const struct bel_shown *shown, bool *lost)
{
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        bool is_always = field->needs == 0 && field->empty == BEL_EMPTY_SHOWN;
        describe_field(field, properties, lost);
        if (is_always && field->type != BEL_FIELD_PAYLOAD) {
            add(required, json_string(field->name.data), lost);
        }
    }
    return json_pack("{s:s, s:s, s:o, s:o}", "type", "object", "description", shown->help,
                     "properties", properties, "required", required);
}

static json_t *describe_components(bool *lost)
{
    json_t *schemas = json_object();
    for (unsigned i = 0; i < BEL_SHOWN_KINDS; i++) {
        put(schemas, bel__shown[i].name, describe_shown(&bel__shown[i], lost), lost);
    }
    return json_pack("{s:o}", "schemas", schemas);
}

/* Adds the schema of a command's reply to `done`, if the table of fields describes the reply. */
static void describe_answer(enum bel_command_place command, json_t *done, bool *lost)
{
    static const struct {
        enum bel_command_place command;
        enum bel_shown_kind kind;
        bool is_list;
    } answers[] = {
        {BEL_COMMAND_GET, BEL_SHOWN_TIMER, false},     {BEL_COMMAND_LIST, BEL_SHOWN_TIMER, true},
        {BEL_COMMAND_CLAIM, BEL_SHOWN_DELIVERY, true}, {BEL_COMMAND_FAIL, BEL_SHOWN_VERDICT, false},
        {BEL_COMMAND_TOPIC, BEL_SHOWN_TOPIC, false},   {BEL_COMMAND_AGENDA, BEL_SHOWN_STEP, true},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (answers[i].command != command) continue;
        json_t *schema = reference_to(answers[i].kind);
        if (answers[i].is_list) {
            schema = json_pack("{s:s, s:{s:{s:s, s:o}}}", "type", "object", "properties",
                               bel__shown[answers[i].kind].list, "type", "array", "items", schema);
        }
        put(done, "content", json_pack("{s:{s:o}}", "application/json", "schema", schema), lost);
    }
}

static json_t *describe_responses(const struct bel_http_route *route, bool *lost)
{
    json_t *done = json_pack("{s:s}", "description", "done");
    if (route->own == BEL_HTTP_COMMAND) describe_answer(route->command, done, lost);
    return json_pack("{s:o, s:{s:s}}", route->is_create ? "201" : "2XX", done, "default",
                     "description", "application/problem+json with a code");
}

/* --- routes --- */

static json_t *describe(const struct bel_http_route *route, bool *lost)
{
    json_t *operation = json_object(), *parameters = json_array(), *properties = json_object();
    if (route->own == BEL_HTTP_COMMAND) {
        put(operation, "summary", json_string(bel__commands[route->command].help), lost);
        put(operation, "x-command", json_string(bel__commands[route->command].name), lost);
        describe_arguments(route, parameters, properties, lost);
    }
    if (json_array_size(parameters) > 0) {
        put(operation, "parameters", json_incref(parameters), lost);
    }
    if (route->own == BEL_HTTP_COMMAND && strcmp(route->method, "GET") != 0) {
        json_t *body = json_pack("{s:{s:{s:{s:s, s:O}}}}", "content", "application/json", "schema",
                                 "type", "object", "properties", properties);
        put(operation, "requestBody", body, lost);
    }
    put(operation, "responses", describe_responses(route, lost), lost);
    json_decref(parameters);
    json_decref(properties);
    return operation;
}

json_t *bel__http_openapi(void)
{
    bool is_lost = false, *lost = &is_lost;
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
            put(paths, route->path, json_object(), lost);
        }
        put(json_object_get(paths, route->path), method, describe(route, lost), lost);
    }
    json_t *all = json_pack("{s:s, s:{s:s, s:s}, s:o, s:o}", "openapi", "3.1.0", "info", "title",
                            "Belfry", "version", bel_version(), "paths", paths, "components",
                            describe_components(lost));
    if (!is_lost) return all;
    json_decref(all);
    return NULL;
}
