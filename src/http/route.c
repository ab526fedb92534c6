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

#define TOPIC       "/v1/topics/{topic}"
#define LEASE       "/v1/leases/{token}"
#define DOES(place) .command = BEL_COMMAND_##place

const struct bel_http_route bel__http_routes[] = {
    {"GET", "/livez", .own = BEL_HTTP_LIVEZ},
    {"GET", "/readyz", .own = BEL_HTTP_READYZ},
    {"GET", "/metrics", .own = BEL_HTTP_METRICS, DOES(INFO)},
    {"GET", "/openapi.json", .own = BEL_HTTP_OPENAPI},
    {"POST", TOPIC "/timers", DOES(SCHEDULE), .is_create = true},
    {"GET", TOPIC "/timers", DOES(LIST)},
    {"PUT", TOPIC "/timers/{id}", DOES(SCHEDULE)},
    {"GET", TOPIC "/timers/{id}", DOES(GET)},
    {"PATCH", TOPIC "/timers/{id}", DOES(RESCHEDULE)},
    {"DELETE", TOPIC "/timers/{id}", DOES(CANCEL)},
    {"POST", TOPIC "/claim", DOES(CLAIM)},
    {"POST", LEASE "/ack", DOES(ACK)},
    {"POST", LEASE "/fail", DOES(FAIL)},
    {"POST", LEASE "/release", DOES(RELEASE)},
    {"POST", LEASE "/extend", DOES(EXTEND)},
    {"GET", "/v1/topics", DOES(TOPICS)},
    {"GET", TOPIC, DOES(TOPIC)},
    {"PATCH", TOPIC, DOES(CONFIGURE)},
    {"POST", TOPIC "/pause", DOES(PAUSE)},
    {"POST", TOPIC "/resume", DOES(RESUME)},
    {"POST", TOPIC "/purge", DOES(PURGE)},
    {"POST", TOPIC "/revive", DOES(REVIVE)},
    {"GET", "/v1/agenda", DOES(AGENDA)},
    {"GET", "/v1/explain/{topic}/{id}", DOES(EXPLAIN)},
};
const size_t bel__http_routes_count = sizeof bel__http_routes / sizeof bel__http_routes[0];

static size_t segment_of(const char *path)
{
    return strcspn(path, "/");
}

/* Returns whether a path matches a pattern, and sets the captures, still encoded. */
static bool fits(const char *pattern, char *path,
                 struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX])
{
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
    return *pattern == 0 && *path == 0;
}

static void decode(char *path, struct bel_http_capture *capture)
{
    if (capture->name == NULL) return;
    char *text = path + ((const char *)capture->text.data - path);
    assert(text > path && capture->text.bytes > 0);
    size_t bytes = bel__http_unescape(text, capture->text.bytes);
    if (bytes != SIZE_MAX) capture->text.bytes = bytes;
}

static bool is_method(struct bel_view method, const char *wanted)
{
    if (bel__view_is(method, wanted)) return true;
    return bel__view_is(method, "HEAD") && strcmp(wanted, "GET") == 0;
}

const struct bel_http_route *
bel__http_route(struct bel_view method, char *path,
                struct bel_http_capture captures[BEL_HTTP_CAPTURES_MAX],
                char allow[BEL_HTTP_ALLOW_BYTES])
{
    size_t used = 0;
    allow[0] = 0;
    for (size_t i = 0; i < bel__http_routes_count; i++) {
        const struct bel_http_route *route = &bel__http_routes[i];
        memset(captures, 0, BEL_HTTP_CAPTURES_MAX * sizeof *captures);
        if (!fits(route->path, path, captures)) continue;
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
