/* SPDX-License-Identifier: MIT */

/*
 * The components of the description: a schema for each type of value, for each request body and for
 * each response. What the tables of commands, settings and fields say comes from there.
 */
#include "http/openapi.h"

#include "commands/fields.h"
#include "commands/settings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    PARSE_BYTES_MAX = 2048, /* of a literal */
};

/* --- helpers --- */

void bel__openapi_put(json_t *object, const char *name, json_t *value, bool *lost)
{
    if (json_object_set_new(object, name, value) != 0) *lost = true;
}

void bel__openapi_add(json_t *array, json_t *value, bool *lost)
{
    if (json_array_append_new(array, value) != 0) *lost = true;
}

json_t *bel__openapi_parse(const char *text, bool *lost)
{
    char copy[PARSE_BYTES_MAX];
    size_t bytes = strlen(text);
    assert(bytes < sizeof copy);
    for (size_t i = 0; i <= bytes; i++) {
        copy[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    }
    json_t *json = json_loads(copy, JSON_DECODE_ANY, NULL);
    assert(json != NULL);
    if (json == NULL) *lost = true;
    return json;
}

json_t *bel__openapi_reference(const char *part, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "#/components/%s/%s", part, name);
    return json_pack("{s:s}", "$ref", path);
}

bool bel__openapi_is_in_path(const struct bel_http_route *route, const char *name)
{
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t bytes = strcspn(at + 1, "}");
        if (bytes == strlen(name) && memcmp(at + 1, name, bytes) == 0) return true;
    }
    return false;
}

void bel__openapi_request_name(const struct bel_http_route *route, char out[64])
{
    (void)snprintf(out, 64, "%c%sRequest", route->name[0] & ~0x20, route->name + 1);
}

/* --- types of values --- */

static const struct {
    const char *name, *schema;
} types[] = {
    {"TopicName",
     "{'type': 'string', 'minLength': 1, 'maxLength': 200, 'description': 'name of a "
     "topic; not one of the options of CLAIM, in any case', 'pattern': '^[A-Za-z0-9._:/-]+$', "
     "'not': {'pattern': '^([Cc][Oo][Uu][Nn][Tt]|[Ll][Ee][Aa][Ss][Ee]|[Ww][Aa][Ii][Tt]|"
     "[Ww][Oo][Rr][Kk][Ee][Rr])$'}, 'examples': ['mail']}"},
    {"Id",
     "{'type': 'string', 'minLength': 1, 'maxLength': 128, 'description': 'name of a timer in "
     "its topic', 'pattern': '^[A-Za-z0-9._:/-]+$', 'examples': ['greeting']}"},
    {"AnyId",
     "{'type': 'string', 'minLength': 1, 'maxLength': 160, 'description': 'name of a timer "
     "or a plan, or PLAN@MS for an occurrence', 'pattern': '^[A-Za-z0-9._:/@-]+$', "
     "'examples': ['greeting', 'daily@1767225600000']}"},
    {"Token", "{'type': 'string', 'minLength': 1, 'maxLength': 400, 'description': 'proof of a "
              "lease, from a delivery', 'pattern': '^[A-Za-z0-9_-]+$', 'examples': ['00k1n5b2']}"},
    {"Duration",
     "{'description': 'a duration with units, ISO 8601, or milliseconds', 'anyOf': [{'type': "
     "'string', 'pattern': '^([0-9]+|([0-9]+(ms|s|m|h|d|w))+|P[0-9DTHMSW]+)$'}, {'type': "
     "'integer', 'format': 'int64', 'minimum': 0}], 'examples': "
     "['30s', "
     "'1h30m', 'PT5M', 500]}"},
    {"Time",
     "{'description': 'a time by RFC 3339, local with its zone in brackets (RFC 9557), or "
     "milliseconds since 1970', 'anyOf': [{'type': 'string'}, {'type': 'integer', 'format': "
     "'int64'}], 'examples': ['2026-06-01T09:00:00+07:00', '2026-03-29T02:30[Europe/Berlin]', "
     "1767225600000]}"},
    {"Policy", "{'type': 'string', 'description': 'when to retry: a list of delays, or exp(base, "
               "factor, cap), then jitter(share) and max(attempts)', 'examples': ['5s,30s,5m', "
               "'exp(10s,2,1h) jitter(0.1) max(20)']}"},
    {"Rule", "{'type': 'string', 'maxLength': 512, 'description': 'a cron rule of five or six "
             "fields, or a recurrence rule (RFC 5545)', 'examples': ['0 9 * * 1-5', '@daily', "
             "'FREQ=WEEKLY;BYDAY=MO']}"},
    {"Zone", "{'type': 'string', 'description': 'name of a time zone', 'examples': "
             "['Europe/Berlin', 'UTC']}"},
    {"Headers",
     "{'type': 'object', 'description': 'names and values; an array for a name that "
     "repeats', 'additionalProperties': {'anyOf': [{'type': 'string'}, {'type': 'array', "
     "'items': {'type': 'string'}}]}, 'examples': [{'lang': 'en'}]}"},
    {"NewHeaders",
     "{'type': 'object', 'description': 'names and values, 100 at most; an array for a name that "
     "repeats', 'maxProperties': 100, 'additionalProperties': {'anyOf': [{'type': ['string', "
     "'integer']}, {'type': 'array', 'minItems': 1, 'items': {'type': ['string', 'integer']}}]}, "
     "'examples': [{'lang': 'en'}]}"},
    {"Problem",
     "{'type': 'object', 'description': 'an error (RFC 9457)', 'required': ['type', 'title', "
     "'status', 'code'], 'properties': {'type': {'type': 'string'}, 'title': {'type': 'string'}, "
     "'status': {'type': 'integer', 'minimum': 400, 'maximum': 599}, 'detail': {'type': 'string', "
     "'description': 'what was wrong, and what to do'}, 'code': {'type': 'string', 'description': "
     "'stable, for programs', 'enum': ['ERR', 'BADARG', 'NOTFOUND', 'CONFLICT', 'STALE', "
     "'LIMITED', "
     "'FULL', 'NOAUTH', 'NOPERM', 'IO', 'UNSUPPORTED']}}, 'examples': [{'type': 'about:blank', "
     "'title': 'Bad "
     "value', 'status': 400, 'detail': 'payload: required', 'code': 'BADARG'}]}"},
    {"Health", "{'type': 'object', 'required': ['status'], 'properties': {'status': {'type': "
               "'string', 'enum': ['ok', 'stopping', "
               "'store unreachable']}}}"},
    {"Created", "{'type': 'object', 'required': ['topic', 'id'], 'properties': {'topic': {'type': "
                "'string'}, 'id': {'type': 'string'}}, 'examples': [{'topic': 'mail', 'id': "
                "'greeting'}]}"},
    {"Count", "{'type': 'object', 'required': ['count'], 'properties': {'count': {'type': "
              "'integer', 'format': 'int64', 'minimum': 0}}, 'examples': [{'count': 1}]}"},
    {"Extended",
     "{'type': 'object', 'required': ['lease_left_ms'], 'properties': {'lease_left_ms': "
     "{'type': 'integer', 'format': 'int64', 'description': 'rest of the lease'}}, "
     "'examples': [{'lease_left_ms': 30000}]}"},
    {"TopicNames", "{'type': 'object', 'required': ['topics'], 'properties': {'topics': {'type': "
                   "'array', 'items': {'type': 'string'}}}, 'examples': [{'topics': ['mail']}]}"},
    {"Explanation",
     "{'type': 'object', 'required': ['reason', 'until_ms', 'by', 'lines'], 'properties': "
     "{'reason': {'type': 'string', 'description': 'why the timer is not running: the first that "
     "holds, in the order of this list; leased is running, ready is about to be delivered', "
     "'enum': ['ended', 'blocked', 'time', 'job paused', 'topic paused', 'pacing', 'pressure', "
     "'limited', 'breaker', 'rate', 'resource concurrency', '*', 'topic concurrency', 'share', "
     "'not loaded', 'no worker', 'leased', 'ready']}, "
     "'until_ms': {'type': ['integer', 'null'], 'format': 'int64', 'description': 'when this ends, "
     "Unix ms; null: not known'}, "
     "'by': {'type': ['string', 'null'], 'description': 'name of what the timer waits for: a "
     "resource, task, plan, job, group, topic, worker or cause of pressure; or the state in which "
     "it ended'}, "
     "'lines': {'type': 'array', 'description': 'for people', 'items': {'type': 'string'}}}}"},
    {"TimerPage",
     "{'type': 'object', 'required': ['timers', 'cursor'], 'properties': {'timers': {'type': "
     "'array', 'items': {'$ref': '#/components/schemas/Timer'}}, 'cursor': {'type': ['string', "
     "'null'], 'description': 'for the next page; null: this is the last'}}}"},
    {"Deliveries", "{'type': 'object', 'required': ['deliveries'], 'properties': {'deliveries': "
                   "{'type': 'array', 'items': {'$ref': '#/components/schemas/Delivery'}}}}"},
    {"Agenda",
     "{'type': 'object', 'required': ['steps'], 'properties': {'steps': {'type': 'array', "
     "'items': {'$ref': '#/components/schemas/Step'}}}}"},
};

static void put_types(json_t *schemas, bool *lost)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        json_t *schema = bel__openapi_parse(types[i].schema, lost);
        bel__openapi_put(schemas, types[i].name, schema, lost);
    }
    json_t *states = json_array();
    for (unsigned i = 0; i < BEL_STATES; i++) {
        bel__openapi_add(states, json_string(bel_state_name((enum bel_state)i)), lost);
    }
    json_t *state = json_pack("{s:s, s:s, s:o}", "type", "string", "description",
                              "state of a timer", "enum", states);
    bel__openapi_put(schemas, "State", state, lost);
}

/* --- arguments --- */

/* Returns the schema that all arguments of a type share; NULL if there is none. */
static const char *type_name(const struct bel_argument *argument)
{
    switch (argument->type) {
    case BEL_ARGUMENT_TOPIC:
        return strcasecmp(argument->name, "RESOURCE") == 0 ? NULL : "TopicName";
    case BEL_ARGUMENT_ID:
        return argument->max > 0 ? "Id" : "AnyId";
    case BEL_ARGUMENT_TOKEN:
        return "Token";
    case BEL_ARGUMENT_DURATION:
        return "Duration";
    case BEL_ARGUMENT_TIME:
        return "Time";
    case BEL_ARGUMENT_STATE:
        return "State";
    case BEL_ARGUMENT_POLICY:
        return "Policy";
    case BEL_ARGUMENT_RULE:
        return "Rule";
    case BEL_ARGUMENT_ZONE:
        return "Zone";
    case BEL_ARGUMENT_PAIR:
        return "NewHeaders";
    default:
        return NULL;
    }
}

static json_t *words_of(const struct bel_argument *argument, bool *lost)
{
    json_t *words = json_array();
    for (size_t i = 0; argument->words[i] != NULL; i++) {
        bel__openapi_add(words, json_string(argument->words[i]), lost);
    }
    return json_pack("{s:s, s:o}", "type", "string", "enum", words);
}

json_t *bel__openapi_argument(const struct bel_argument *argument, bool *lost)
{
    const char *name = type_name(argument);
    json_t *schema;
    if (name != NULL) {
        schema = bel__openapi_reference("schemas", name);
    } else if (argument->may_be_off) {
        bool is_number = argument->type == BEL_ARGUMENT_NUMBER;
        schema = bel__openapi_parse(is_number ? "{'type': ['integer', 'string', 'null'], 'format': "
                                                "'int64', 'minimum': 1, 'pattern': "
                                                "'^([1-9][0-9]*|off)$'}"
                                              : "{'type': ['string', 'null']}",
                                    lost);
    } else if (argument->type == BEL_ARGUMENT_NUMBER) {
        schema = json_pack("{s:s, s:s, s:i}", "type", "integer", "format", "int64", "minimum", 1);
        if (argument->max > 0) {
            bel__openapi_put(schema, "maximum", json_integer(argument->max), lost);
        }
    } else if (argument->type == BEL_ARGUMENT_FLAG) {
        schema = json_pack("{s:s}", "type", "boolean");
    } else if (argument->type == BEL_ARGUMENT_WORD) {
        schema = words_of(argument, lost);
    } else if (argument->type == BEL_ARGUMENT_TEXT) {
        schema = json_pack("{s:s}", "type", "string");
    } else if (argument->type == BEL_ARGUMENT_TOPIC) {
        bool is_option = strcmp(argument->name, "RESOURCE") == 0; /* of a timer: not * */
        schema =
            bel__openapi_parse(is_option ? "{'type': 'string', 'minLength': 1, 'maxLength': 200, "
                                           "'pattern': '^" BEL_OPENAPI_RESOURCE "$'}"
                                         : "{'type': 'string', 'minLength': 1, 'maxLength': 200, "
                                           "'pattern': '^([*]|" BEL_OPENAPI_RESOURCE ")$'}",
                               lost);
    } else {
        schema = json_object(); /* bytes: any JSON value */
        if (argument->max > 0) {
            bel__openapi_put(schema, "maxLength", json_integer(argument->max), lost);
        }
    }
    bool has_zero =
        strcmp(argument->name, "PRIORITY") == 0 || strcmp(argument->name, "CONCURRENCY") == 0;
    if (has_zero) bel__openapi_put(schema, "minimum", json_integer(0), lost);
    if (has_zero && argument->may_be_off) {
        bel__openapi_put(schema, "pattern", json_string("^([0-9]+|off)$"), lost);
    }
    bel__openapi_put(schema, "description", json_string(argument->help), lost);
    return schema;
}

/* --- request bodies --- */

/* Returns the schema of a setting as text. A number may be sent as a string. */
static const char *setting_text(const struct bel_setting_entry *entry)
{
    if (strcmp(entry->name, "crashes") == 0) {
        return "{'type': ['integer', 'string'], 'minimum': 1, 'pattern': '^[1-9][0-9]*$'}";
    }
    if (strcmp(entry->name, "misfire_after") == 0) {
        return "{'$ref': '#/components/schemas/Duration'}";
    }
    if (entry->type == BEL_ARGUMENT_NUMBER) return "{'type': ['integer', 'string']}";
    if (entry->type == BEL_ARGUMENT_POLICY) return "{'type': 'string'}";
    return "{'type': ['string', 'integer']}"; /* an integer becomes text */
}

static json_t *settings_schema(bool *lost)
{
    json_t *properties = json_object();
    for (const struct bel_setting_entry *entry = bel__setting_entries; entry->name != NULL;
         entry++) {
        json_t *schema = bel__openapi_parse(setting_text(entry), lost);
        bel__openapi_put(schema, "description", json_string(entry->help), lost);
        bel__openapi_put(properties, entry->name, schema, lost);
    }
    return json_pack("{s:s, s:i, s:b, s:o}", "type", "object", "minProperties", 1,
                     "additionalProperties", 0, "properties", properties);
}

/* Requires exactly one of two fields. Generators of clients understand `oneOf` as a choice between
 * types, and ignore `not`. */
static void put_either(json_t *schema, const char *one, const char *other, bool *lost)
{
    char text[256];
    (void)snprintf(
        text, sizeof text,
        "{'anyOf': [{'required': ['%s', '%s']}, {'not': {'anyOf': [{'required': ['%s']}, "
        "{'required': ['%s']}]}}]}",
        one, other, one, other);
    bel__openapi_put(schema, "not", bel__openapi_parse(text, lost), lost);
}

static json_t *request_schema(const struct bel_http_route *route, bool *lost)
{
    const struct bel_command_entry *entry = &bel__commands[route->command];
    json_t *properties = json_object();
    if (route->command == BEL_COMMAND_CONFIGURE || route->command == BEL_COMMAND_JOB_SUBMIT) {
        json_decref(properties);
        return route->command == BEL_COMMAND_CONFIGURE
                   ? settings_schema(lost)
                   : bel__openapi_reference("schemas", "NewJob");
    }
    for (size_t i = 0; i < entry->arguments_count; i++) {
        char name[BEL_HTTP_FIELD_BYTES];
        if (!bel__http_takes(route, &entry->arguments[i])) continue;
        bel__http_field_name(route, &entry->arguments[i], name);
        if (bel__openapi_is_in_path(route, name)) continue;
        json_t *field = bel__openapi_argument(&entry->arguments[i], lost);
        if (route->command == BEL_COMMAND_REVIVE) {
            (void)json_object_del(field, "$ref"); /* an id, or * */
            bel__openapi_put(field, "type", json_string("string"), lost);
            bel__openapi_put(field, "minLength", json_integer(1), lost);
        } else if (route->command == BEL_COMMAND_PURGE) {
            (void)json_object_del(field, "$ref"); /* a state that can be purged */
            bel__openapi_put(field, "type", json_string("string"), lost);
            bel__openapi_put(field, "enum",
                             bel__openapi_parse("['scheduled', 'ready', 'done', 'dead', "
                                                "'cancelled', 'expired', 'skipped']",
                                                lost),
                             lost);
        }
        bel__openapi_put(properties, name, field, lost);
    }
    if (route->command == BEL_COMMAND_SCHEDULE) {
        bel__openapi_put(properties, "payload_base64",
                         bel__openapi_parse("{'type': 'string', 'contentEncoding': 'base64', "
                                            "'pattern': '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|"
                                            "[A-Za-z0-9+/]{3}=)?$', "
                                            "'description': 'payload of any bytes'}",
                                            lost),
                         lost);
    }
    json_t *schema = json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0,
                               "properties", properties);
    if (route->command == BEL_COMMAND_SCHEDULE) {
        put_either(schema, "payload", "payload_base64", lost);
    } else if (route->command == BEL_COMMAND_RESCHEDULE) {
        put_either(schema, "in", "at", lost);
    }
    return schema;
}

bool bel__openapi_has_body(const struct bel_http_route *route)
{
    const struct bel_command_entry *entry = &bel__commands[route->command];
    if (route->own != BEL_HTTP_COMMAND || strcmp(route->method, "GET") == 0) return false;
    for (size_t i = 0; i < entry->arguments_count; i++) {
        char name[BEL_HTTP_FIELD_BYTES];
        if (!bel__http_takes(route, &entry->arguments[i])) continue;
        bel__http_field_name(route, &entry->arguments[i], name);
        if (!bel__openapi_is_in_path(route, name)) return true;
    }
    return false;
}

static void put_requests(json_t *schemas, bool *lost)
{
    for (size_t i = 0; i < bel__http_routes_count; i++) {
        const struct bel_http_route *route = &bel__http_routes[i];
        char name[64];
        if (!bel__openapi_has_body(route)) continue;
        bel__openapi_request_name(route, name);
        bel__openapi_put(schemas, name, request_schema(route, lost), lost);
    }
}

/* --- responses --- */

/* Returns the schema of a field without its description; NULL for a payload, which may be any
 * value. */
static const char *field_schema(enum bel_field_type type)
{
    switch (type) {
    case BEL_FIELD_PAYLOAD:
        return "{}";
    case BEL_FIELD_BOOLEAN:
        return "{'type': 'boolean'}";
    case BEL_FIELD_SMALL:
        return "{'type': 'integer', 'minimum': 0, 'maximum': 255}";
    case BEL_FIELD_COUNT:
    case BEL_FIELD_DURATION:
        return "{'type': 'integer', 'format': 'int64', 'minimum': 0}";
    case BEL_FIELD_INSTANT:
        return "{'type': 'integer', 'format': 'int64'}";
    case BEL_FIELD_HEADERS:
        return "{'$ref': '#/components/schemas/Headers'}";
    case BEL_FIELD_STATE:
        return "{'$ref': '#/components/schemas/State'}";
    case BEL_FIELD_OUTCOME:
        return "{'type': 'string', 'enum': ['failed', 'crashed']}";
    case BEL_FIELD_OUTCOMES:
        return "{'type': 'array', 'items': {'$ref': '#/components/schemas/Outcome'}}";
    case BEL_FIELD_SETTINGS:
        return "{'type': 'object', 'additionalProperties': {'type': 'string'}}";
    case BEL_FIELD_JOB_STATE:
        return "{'$ref': '#/components/schemas/JobState'}";
    case BEL_FIELD_COUNTS:
        return "{'$ref': '#/components/schemas/Counts'}";
    case BEL_FIELD_PROGRESS:
        return "{'type': 'integer', 'minimum': 0, 'maximum': 100}";
    case BEL_FIELD_TASKS:
        return "{'type': 'array', 'items': {'$ref': '#/components/schemas/Task'}}";
    case BEL_FIELD_AFTERS:
        return "{'type': 'array', 'items': {'$ref': '#/components/schemas/Dependency'}}";
    case BEL_FIELD_RESULTS:
        return "{'type': 'array', 'items': {'$ref': '#/components/schemas/Result'}}";
    case BEL_FIELD_BREAKER_STATE:
        return "{'type': 'string', 'enum': ['closed', 'open', 'half_open']}";
    case BEL_FIELD_BREAKER:
        return "{'$ref': '#/components/schemas/Breaker'}";
    case BEL_FIELD_REPORTS:
        return "{'type': 'array', 'items': {'$ref': '#/components/schemas/LimitReport'}}";
    default:
        return "{'type': 'string'}";
    }
}

/* Describes a field. A field of bytes is also described as NAME_base64, which a reply contains
 * instead if the bytes are not UTF-8. */
static void put_field(json_t *properties, const struct bel_field *field, bool *lost)
{
    const char *name = field->name.data;
    json_t *schema = bel__openapi_parse(field_schema(field->type), lost);
    bool is_word = field->type == BEL_FIELD_WORD && field->is_argument;
    if (is_word) {
        json_decref(schema);
        schema = words_of(&bel__commands[BEL_COMMAND_SCHEDULE].arguments[field->argument], lost);
    }
    bel__openapi_put(schema, "description", json_string(field->help), lost);
    bel__openapi_put(properties, name, schema, lost);
    if (field->type == BEL_FIELD_BYTES || field->type == BEL_FIELD_PAYLOAD) {
        char base64[64];
        (void)snprintf(base64, sizeof base64, "%s_base64", name);
        bel__openapi_put(properties, base64,
                         json_pack("{s:s, s:s}", "type", "string", "contentEncoding", "base64"),
                         lost);
    }
}

static json_t *shown_schema(const struct bel_shown *shown, bool *lost)
{
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        bool is_always = field->needs == 0 && field->empty == BEL_EMPTY_SHOWN;
        put_field(properties, field, lost);
        if (is_always && field->type != BEL_FIELD_PAYLOAD) {
            bel__openapi_add(required, json_string(field->name.data), lost);
        }
    }
    return json_pack("{s:s, s:s, s:o, s:o}", "type", "object", "description", shown->help,
                     "properties", properties, "required", required);
}

const char *bel__openapi_response_name(const struct bel_http_route *route)
{
    if (route->own == BEL_HTTP_LIVEZ || route->own == BEL_HTTP_READYZ) return "Health";
    if (route->own != BEL_HTTP_COMMAND) return NULL;
    switch (route->command) {
    case BEL_COMMAND_SCHEDULE:
        return "Created";
    case BEL_COMMAND_GET:
        return bel__shown[BEL_SHOWN_TIMER].name;
    case BEL_COMMAND_LIST:
        return "TimerPage";
    case BEL_COMMAND_CLAIM:
        return "Deliveries";
    case BEL_COMMAND_FAIL:
        return bel__shown[BEL_SHOWN_VERDICT].name;
    case BEL_COMMAND_EXTEND:
        return "Extended";
    case BEL_COMMAND_TOPICS:
        return "TopicNames";
    case BEL_COMMAND_TOPIC:
        return bel__shown[BEL_SHOWN_TOPIC].name;
    case BEL_COMMAND_AGENDA:
        return "Agenda";
    case BEL_COMMAND_EXPLAIN:
        return "Explanation";
    case BEL_COMMAND_JOB_SUBMIT:
        return bel__shown[BEL_SHOWN_SUBMITTED].name;
    case BEL_COMMAND_JOB_GET:
        return bel__shown[BEL_SHOWN_JOB].name;
    case BEL_COMMAND_JOB_LIST:
        return "JobPage";
    case BEL_COMMAND_LIMIT:
        if (route->flag != NULL) return "Count";
        return strchr(route->path, '{') == NULL ? "ResourcePage"
                                                : bel__shown[BEL_SHOWN_RESOURCE].name;
    case BEL_COMMAND_CONFIGURE:
    case BEL_COMMAND_PAUSE:
    case BEL_COMMAND_RESUME:
        return NULL;
    default:
        return "Count";
    }
}

static json_t *problem_responses(bool *lost)
{
    static const struct {
        const char *status, *help;
    } problems[] = {
        {"400", "a field or value is wrong"},
        {"401", "a key is required, or the key is wrong"},
        {"403", "the key, the host or the origin does not allow this"},
        {"404", "the timer, topic, job or resource does not exist"},
        {"408", "the request was not received in time"},
        {"409", "the id is taken, or the lease has ended"},
        {"413", "the body is too large; the code is FULL for a job, otherwise BADARG"},
        {"414", "the request line is too long"},
        {"415", "the content encoding is not supported"},
        {"431", "the headers are too large"},
        {"500", "the storage has failed"},
        {"501", "this store does not have the operation"},
        {"503", "too many connections"},
        {"507", "a limit is reached: memory, disk, or the depth of the topic"},
    };
    json_t *responses = json_object();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "Problem%s", problems[i].status);
        json_t *content = json_pack("{s:{s:o}}", "application/problem+json", "schema",
                                    bel__openapi_reference("schemas", "Problem"));
        bel__openapi_put(
            responses, name,
            json_pack("{s:s, s:o}", "description", problems[i].help, "content", content), lost);
    }
    return responses;
}

json_t *bel__openapi_components(bool *lost)
{
    json_t *schemas = json_object();
    put_types(schemas, lost);
    bel__openapi_put_jobs(schemas, lost);
    for (unsigned i = 0; i < BEL_SHOWN_KINDS; i++) {
        json_t *schema = shown_schema(&bel__shown[i], lost);
        bel__openapi_put(schemas, bel__shown[i].name, schema, lost);
    }
    put_requests(schemas, lost);
    json_t *security = bel__openapi_parse(
        "{'key': {'type': 'http', 'scheme': 'bearer', 'description': 'an API key; a server that "
        "was started without keys needs none'}}",
        lost);
    return json_pack("{s:o, s:o, s:o}", "schemas", schemas, "responses", problem_responses(lost),
                     "securitySchemes", security);
}
