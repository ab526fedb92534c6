/* SPDX-License-Identifier: MIT */

/*
 * The schemas of a job as it is submitted. They follow the fields that src/jobs reads: a test sends
 * every field that a schema names.
 */
#include "http/openapi.h"

#define ID             BEL_OPENAPI_JOB_ID
#define DURATION       "{'$ref': '#/components/schemas/Duration'}"
#define JOB            "{'$ref': '#/components/schemas/Job'}"
#define NEW_DEPENDENCY "{'$ref': '#/components/schemas/NewDependency'}"
#define NEW_JOB        "{'$ref': '#/components/schemas/NewJob'}"
#define NEW_TASK       "{'$ref': '#/components/schemas/NewTask'}"
#define NEW_THEN       "{'$ref': '#/components/schemas/NewThen'}"
#define POLICY         "{'$ref': '#/components/schemas/Policy'}"
#define RULE           "{'$ref': '#/components/schemas/Rule'}"
#define TIME           "{'$ref': '#/components/schemas/Time'}"
#define TOPIC          "{'$ref': '#/components/schemas/TopicName'}"
#define ZONE           "{'$ref': '#/components/schemas/Zone'}"
#define ON                                                                                         \
    "{'type': 'string', 'enum': ['success', 'always', 'failure'], 'description': 'how the one "    \
    "before must end'}"

static const struct {
    const char *name, *schema;
} types[] = {
    {"JobState", "{'type': 'string', 'description': 'state of a job', 'enum': ['running', "
                 "'paused', 'done', 'failed', 'cancelled', 'scheduled']}"},
    {"Counts", "{'type': 'object', 'description': 'tasks by state', 'additionalProperties': "
               "{'type': 'integer', 'format': 'int64', 'minimum': 0}}"},
    {"Dependency", "{'type': 'object', 'required': ['task', 'on'], 'properties': {'task': "
                   "{'type': 'string'}, 'on': " ON "}}"},
    {"Result", "{'type': 'object', 'description': 'of a task; null: none, or it did not fit', "
               "'required': ['task'], 'properties': {'task': {'type': 'string'}, 'result': "
               "{'type': ['string', 'null']}, 'result_base64': {'type': 'string', "
               "'contentEncoding': 'base64'}}}"},
    {"JobPage", "{'type': 'object', 'required': ['jobs', 'cursor'], 'properties': {'jobs': "
                "{'type': 'array', 'items': " JOB "}, 'cursor': {'type': ['string', 'null'], "
                "'description': 'for the next page; null: this is the last'}}}"},
    {"ResourcePage",
     "{'type': 'object', 'required': ['resources', 'cursor'], 'properties': {'resources': {'type': "
     "'array', 'items': {'$ref': '#/components/schemas/Resource'}}, 'cursor': {'type': ['string', "
     "'null'], 'description': 'for the next page; null: this is the last'}}}"},
    {"NewDependency", "{'type': 'object', 'additionalProperties': false, 'required': ['task'], "
                      "'properties': {'task': " ID ", 'on': " ON "}}"},
    {"NewTask",
     "{'type': 'object', 'additionalProperties': false, 'required': ['id', 'topic'], 'properties': "
     "{'id': " ID ", 'topic': " TOPIC ", 'payload': {'description': 'bytes for the worker: a "
     "string, or any JSON value'}, 'payload_base64': {'type': 'string', 'contentEncoding': "
     "'base64'}, 'after': {'type': 'array', 'description': 'tasks that come before this one', "
     "'items': {'anyOf': [" ID ", " NEW_DEPENDENCY "]}}, 'resource': {'type': 'string', "
     "'minLength': 1, 'maxLength': 200, 'pattern': '^" BEL_OPENAPI_RESOURCE "$'}, 'cost': {'type': "
     "'integer', 'minimum': 0, 'maximum': 1000000}, 'priority': {'type': 'integer', 'minimum': 0, "
     "'maximum': 255}, 'retry': " POLICY ", 'idle': " DURATION ", 'headers': {'type': 'object', "
     "'maxProperties': 100, 'additionalProperties': {'type': 'string'}}, 'correlation': {'type': "
     "'string', 'minLength': 1, 'maxLength': 256}, 'in': " DURATION ", 'at': " TIME "}}"},
    {"NewThen", "{'type': 'object', 'additionalProperties': false, 'required': ['job'], "
                "'properties': {'job': " NEW_JOB ", 'on': " ON "}}"},
};

/* In two parts, because a compiler need not take longer literals. */
static const char new_job[] =
    "{'type': 'object', 'additionalProperties': false, 'required': ['tasks'], 'description': "
    "'tasks that wait for each other; with every, cron or rrule a recurring job', 'properties': "
    "{'id': " ID ", 'priority': {'type': 'integer', 'minimum': 1, 'maximum': 10}, "
    "'timeout': " DURATION ", 'pace': " DURATION ", 'cooldown': " DURATION ", 'retry': " POLICY
    ", 'tasks': {'type': 'array', 'maxItems': 10000, 'items': " NEW_TASK "}, "
    "'then': {'type': 'array', 'items': " NEW_THEN "}}}";
static const char recurring[] =
    "{'every': " DURATION ", 'cron': " RULE ", 'rrule': " RULE ", 'tz': " ZONE ", 'at': " TIME
    ", 'until': " TIME ", 'count': {'type': 'integer', 'minimum': 1}, "
    "'misfire': {'type': 'string', 'enum': ['skip', 'last', 'all']}, "
    "'overlap': {'type': 'string', 'enum': ['skip', 'queue', 'allow']}, "
    "'gap': {'type': 'string', 'enum': ['next', 'skip']}, "
    "'fold': {'type': 'string', 'enum': ['first', 'second', 'both']}, 'spread': " DURATION "}";

void bel__openapi_put_jobs(json_t *schemas, bool *lost)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        json_t *schema = bel__openapi_parse(types[i].schema, lost);
        bel__openapi_put(schemas, types[i].name, schema, lost);
    }
    json_t *job = bel__openapi_parse(new_job, lost), *more = bel__openapi_parse(recurring, lost);
    if (json_object_update(json_object_get(job, "properties"), more) != 0) *lost = true;
    json_decref(more);
    bel__openapi_put(schemas, "NewJob", job, lost);
}
