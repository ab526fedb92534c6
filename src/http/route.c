/* SPDX-License-Identifier: MIT */

/*
 * The table of routes. A path is matched segment by segment before it is percent-decoded: a topic
 * whose name contains a slash is sent with %2F and stays one segment.
 */
#include "http/call.h"

#include "core/view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define TOPIC                "/v1/topics/{topic}"
#define TIMER                "/timers/{id}"
#define LEASE                "/v1/leases/{token}"
#define JOB                  "/v1/jobs/{id}"
#define RESOURCE             "/v1/resources/{resource}"
#define DOES(place)          .command = BEL_COMMAND_##place
#define CALLED(title, group) .name = (title), .tag = (group)

const struct bel_http_route bel__http_routes[] = {
    {"GET", "/livez", .own = BEL_HTTP_LIVEZ, CALLED("livez", "server")},
    {"GET", "/readyz", .own = BEL_HTTP_READYZ, CALLED("readyz", "server")},
    {"GET", "/metrics", .own = BEL_HTTP_METRICS, DOES(INFO), CALLED("metrics", "server")},
    {"GET", "/openapi.json", .own = BEL_HTTP_OPENAPI, CALLED("openapi", "server")},
    {"POST", TOPIC "/timers", DOES(SCHEDULE), .is_create = true, CALLED("scheduleTimer", "timers"),
     .example = "{'payload': {'to': 'ada'}, 'in': '5m', 'headers': {'lang': 'en'}}"},
    {"GET", TOPIC "/timers", DOES(LIST), CALLED("listTimers", "timers")},
    {"PUT", TOPIC TIMER, DOES(SCHEDULE), CALLED("putTimer", "timers"),
     .example = "{'payload': 'report', 'cron': '0 9 * * 1-5', 'tz': 'UTC', 'misfire': 'last'}"},
    {"GET", TOPIC TIMER, DOES(GET), CALLED("getTimer", "timers")},
    {"PATCH", TOPIC TIMER, DOES(RESCHEDULE), CALLED("rescheduleTimer", "timers"),
     .example = "{'in': '1h'}"},
    {"DELETE", TOPIC TIMER, DOES(CANCEL), CALLED("cancelTimer", "timers")},
    {"POST", TOPIC "/claim", DOES(CLAIM), CALLED("claimTimers", "work"),
     .example = "{'count': 10, 'lease': '1m', 'worker': 'mailer-1'}"},
    {"POST", LEASE "/ack", DOES(ACK), CALLED("ackLease", "work"), .example = "{'result': 'sent'}"},
    {"POST", LEASE "/fail", DOES(FAIL), CALLED("failLease", "work"),
     .example = "{'reason': 'no route to host', 'in': '10s'}"},
    {"POST", LEASE "/release", DOES(RELEASE), CALLED("releaseLease", "work"),
     .example = "{'in': '10s'}"},
    {"POST", LEASE "/extend", DOES(EXTEND), CALLED("extendLease", "work"),
     .example = "{'lease': '5m'}"},
    {"GET", "/v1/topics", DOES(TOPICS), CALLED("listTopics", "topics")},
    {"GET", TOPIC, DOES(TOPIC), CALLED("getTopic", "topics")},
    {"PATCH", TOPIC, DOES(CONFIGURE), CALLED("configureTopic", "topics"),
     .example = "{'lease': '1m', 'retry': '5s,30s,5m', 'concurrency': 10}"},
    {"POST", TOPIC "/pause", DOES(PAUSE), CALLED("pauseTopic", "topics")},
    {"POST", TOPIC "/resume", DOES(RESUME), CALLED("resumeTopic", "topics")},
    {"POST", TOPIC "/purge", DOES(PURGE), CALLED("purgeTopic", "topics"),
     .example = "{'state': 'done'}"},
    {"POST", TOPIC "/revive", DOES(REVIVE), CALLED("reviveTimers", "topics"),
     .example = "{'id': 'greeting'}"},
    {"POST", "/v1/jobs", DOES(JOB_SUBMIT), .is_create = true, CALLED("submitJob", "jobs"),
     .example = "{'id': 'nightly', 'tasks': [{'id': 'fetch', 'topic': 'etl'}, {'id': 'load', "
                "'topic': 'etl', 'after': ['fetch']}]}"},
    {"GET", "/v1/jobs", DOES(JOB_LIST), CALLED("listJobs", "jobs")},
    {"PUT", JOB, DOES(JOB_SUBMIT), CALLED("putJob", "jobs"),
     .example = "{'tasks': [{'id': 'fetch', 'topic': 'etl', 'payload': {'page': 1}}]}"},
    {"GET", JOB, DOES(JOB_GET), CALLED("getJob", "jobs")},
    {"DELETE", JOB, DOES(JOB_CANCEL), CALLED("cancelJob", "jobs")},
    {"POST", JOB "/pause", DOES(JOB_PAUSE), CALLED("pauseJob", "jobs")},
    {"POST", JOB "/resume", DOES(JOB_RESUME), CALLED("resumeJob", "jobs")},
    {"GET", "/v1/agenda", DOES(AGENDA), CALLED("agenda", "topics")},
    {"GET", "/v1/resources", DOES(LIMIT), CALLED("listResources", "resources")},
    {"GET", RESOURCE, DOES(LIMIT), CALLED("getResource", "resources")},
    {"PUT", RESOURCE, DOES(LIMIT), CALLED("limitResource", "resources"),
     .example = "{'rate': '10/1s', 'burst': 20, 'concurrency': 5}"},
    {"DELETE", RESOURCE, DOES(LIMIT), .flag = "DELETE", CALLED("deleteLimits", "resources")},
    {"GET", "/v1/explain/{topic}/{id}", DOES(EXPLAIN), CALLED("explainTimer", "timers")},
};
const size_t bel__http_routes_count = sizeof bel__http_routes / sizeof bel__http_routes[0];

bool bel__http_takes(const struct bel_http_route *route, const struct bel_argument *argument)
{
    size_t place = (size_t)(argument - bel__commands[route->command].arguments);
    if (route->command == BEL_COMMAND_EXPLAIN) return place != BEL_EXPLAIN_REASON; /* always */
    if (route->command != BEL_COMMAND_LIMIT) return true;
    if (place == BEL_LIMIT_RESOURCE) return strcmp(route->path, RESOURCE) == 0;
    if (strcmp(route->method, "PUT") == 0) {
        return place <= BEL_LIMIT_CLEARS;
    }
    bool is_list = strcmp(route->path, RESOURCE) != 0;
    return is_list && (place == BEL_LIMIT_COUNT || place == BEL_LIMIT_CURSOR);
}

bool bel__http_is_page(const struct bel_http_route *route)
{
    return strcmp(route->method, "GET") == 0 &&
           (route->command == BEL_COMMAND_LIST || route->command == BEL_COMMAND_JOB_LIST ||
            route->command == BEL_COMMAND_JOB_GET || route->command == BEL_COMMAND_LIMIT);
}

void bel__http_field_name(const struct bel_http_route *route, const struct bel_argument *argument,
                          char out[BEL_HTTP_FIELD_BYTES])
{
    const char *name = argument->name;
    size_t i = 0;
    if (strcmp(name, "HEADER") == 0) name = "headers";
    if (bel__http_is_page(route) && strcmp(name, "COUNT") == 0) name = "limit";
    for (; i + 1 < BEL_HTTP_FIELD_BYTES && name[i] != 0; i++) {
        bool is_large = name[i] >= 'A' && name[i] <= 'Z';
        out[i] = (char)(is_large ? name[i] | 0x20 : name[i]);
    }
    out[i] = 0;
}

static size_t segment_of(const char *path)
{
    return strcspn(path, "/");
}

/* Returns whether a path matches a pattern, and sets the captures, still encoded. The path of the
 * timers of a topic matches that of the one whose id is empty, if there is such an id. */
static bool fits(const char *pattern, char *path, bool has_empty_id,
                 struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX])
{
    bool is_timer = strcmp(pattern, TOPIC TIMER) == 0;
    size_t captured = 0;
    while (*pattern == '/' && *path == '/') {
        size_t wanted = segment_of(++pattern), given = segment_of(++path);
        if (*pattern == '{') {
            if (given == 0 || captured == BEL_HTTP_CAPTURES_MAX) return false;
            captures[captured++] = (struct bel_http_capture){pattern + 1, {path, given}};
        } else if (wanted != given || memcmp(pattern, path, given) != 0) {
            return false;
        }
        pattern += wanted;
        path += given;
    }
    if (!has_empty_id) return *pattern == 0 && *path == 0;
    if (!is_timer || *path != 0 || strcmp(pattern, "/{id}") != 0) return false;
    assert(captured == 1);
    captures[captured] = (struct bel_http_capture){pattern + 2, {path, 0}};
    return true;
}

static void decode(char *path, struct bel_http_capture *capture)
{
    if (capture->name == NULL || capture->text.bytes == 0) return;
    char *text = path + ((const char *)capture->text.data - path);
    assert(text > path);
    size_t bytes = bel__http_unescape(text, capture->text.bytes);
    if (bytes != SIZE_MAX) capture->text.bytes = bytes;
}

static bool is_method(struct bel_view method, const char *wanted)
{
    if (bel__view_is(method, wanted)) return true;
    return bel__view_is(method, "HEAD") && strcmp(wanted, "GET") == 0;
}

const struct bel_http_route *
bel__http_route(struct bel_view method, char *path, bool has_empty_id,
                struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX],
                char allow[BEL_HTTP_ALLOW_BYTES])
{
    size_t used = 0;
    allow[0] = 0;
    for (size_t i = 0; i < bel__http_routes_count; i++) {
        const struct bel_http_route *route = &bel__http_routes[i];
        memset(captures, 0, BEL_HTTP_CAPTURES_MAX * sizeof *captures);
        if (!fits(route->path, path, has_empty_id, captures)) continue;
        if (is_method(method, route->method)) {
            for (size_t k = BEL_HTTP_CAPTURES_MAX; k > 0; k--) {
                decode(path, &captures[k - 1]);
            }
            return route;
        }
        bool is_get = strcmp(route->method, "GET") == 0;
        assert(used < BEL_HTTP_ALLOW_BYTES);
        used += (size_t)snprintf(allow + used, BEL_HTTP_ALLOW_BYTES - used, "%s%s%s",
                                 used > 0 ? ", " : "", route->method, is_get ? ", HEAD" : "");
    }
    return NULL;
}
