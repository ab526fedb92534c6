/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_OPENAPI_H
#define BEL_HTTP_OPENAPI_H

/*
 * openapi - the OpenAPI description of the HTTP interface, generated from the tables of routes,
 * commands, settings and fields that the server itself uses. Private to src/http.
 *
 * Functions that make JSON set `*lost` if memory runs out; what they return is then incomplete.
 */

#include "http/call.h"

/* The pattern of a resource's name, without an empty part; the schema of the id of a job or a task.
 */
#define BEL_OPENAPI_RESOURCE "[A-Za-z0-9._:-]+(/[A-Za-z0-9._:-]+)*"
#define BEL_OPENAPI_JOB_ID                                                                         \
    "{'type': 'string', 'minLength': 1, 'maxLength': 100, "                                        \
    "'pattern': '^[A-Za-z0-9._:-]+$'}"

/* Sets a member of an object, or appends to an array. Both take ownership of the value. */
void bel__openapi_put(json_t *object, const char *name, json_t *value, bool *lost);
void bel__openapi_add(json_t *array, json_t *value, bool *lost);

/* Parses JSON that is written with ' instead of ". */
json_t *bel__openapi_parse(const char *text, bool *lost);

/* Returns {"$ref": "#/components/PART/NAME"}. */
json_t *bel__openapi_reference(const char *part, const char *name);

/* Returns whether an argument is in the path of a route. */
bool bel__openapi_is_in_path(const struct bel_http_route *route, const char *name);

/* Returns whether a route takes fields in a body. */
bool bel__openapi_has_body(const struct bel_http_route *route);

/* Returns the schema of an argument. */
json_t *bel__openapi_argument(const struct bel_argument *argument, bool *lost);

/* Returns the name of the schema of a route's response; NULL if it has no JSON body. */
const char *bel__openapi_response_name(const struct bel_http_route *route);

/* Writes the name of the schema of a route's request body: "ScheduleTimerRequest". */
void bel__openapi_request_name(const struct bel_http_route *route, char out[64]);

/* Adds the schemas of jobs. */
void bel__openapi_put_jobs(json_t *schemas, bool *lost);

/* Returns all components: schemas, responses and security schemes. */
json_t *bel__openapi_components(bool *lost);

#endif
