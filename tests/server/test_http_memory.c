/* SPDX-License-Identifier: MIT */

/*
 * HTTP with failing allocations: each request is repeated with the n-th allocation failing, for
 * every n, of the server, the engine below it and the JSON library. The server must send the right
 * reply, or an error if nothing has changed, or close the connection; never a part of a reply.
 */
#include "http/call.h"

#include "belfry/engine.h"

#include "../check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_BYTES = 1 << 18,
    ROUNDS_MAX = 100000,
    FAILURES_MAX = 50000,
    DESCRIPTION_STEP = 29, /* the description makes thousands of allocations */
};

static struct bel_engine *engine;
static struct bel_http *http;
static struct bel_metrics metrics;
static struct bel_service service;
static struct bel_now now;
static uint64_t left, taken; /* allocations until one fails (0: none), and made so far */
static bool is_counted;      /* the server is running, not the test */
static char answer[ANSWER_BYTES];

/* The linker replaces the functions of the C library by these. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

/* Returns whether this allocation fails. */
static bool fails(void)
{
    if (!is_counted) return false;
    taken++;
    return left > 0 && --left == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __real_realloc(old, bytes);
}

static void setup(void)
{
    struct bel_http_options options = {
        .service = &service, .metrics = &metrics, .connections_max = 10};
    struct bel_why why;
    now = bel_clock_now(bel_clock_system());
    CHECK(bel__metrics_init(&metrics) == 0);
    CHECK(bel_engine_open(&(struct bel_engine_options){.now = now}, &engine, NULL) == 0);
    service = (struct bel_service){.now = &now, .payload_bytes_max = BEL_PAYLOAD_BYTES_DEFAULT};
    options.backend = metrics.backend = bel_engine_backend(engine);
    CHECK(bel__address_parse("127.0.0.1:0", &options.address) == 0);
    CHECK(bel__http_start(&options, &http, &why) == 0);
}

static void teardown(void)
{
    bel__http_stop(http);
    bel_engine_close(engine);
    bel__metrics_finish(&metrics);
}

static void turn(void)
{
    is_counted = true;
    bel__http_run(http);
    (void)bel_backend_turn(bel_engine_backend(engine), now);
    bel__http_run(http);
    is_counted = false;
}

/* Sends a request with Connection: close and reads until the end. */
static const char *ask(const char *method, const char *path, const char *body)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(bel__http_port(http))};
    char request[1024];
    size_t count = 0;
    int bytes = snprintf(request, sizeof request,
                         "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         method, path, strlen(body), body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(write(fd, request, (size_t)bytes) == bytes && fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    for (int i = 0;; i++) {
        CHECK(i < ROUNDS_MAX);
        turn();
        ssize_t got = read(fd, answer + count, sizeof answer - 1 - count);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) break;
        CHECK(got > 0 || errno == EAGAIN);
        if (got > 0) count += (size_t)got;
    }
    (void)close(fd);
    answer[count] = 0;
    return answer;
}

/* Returns the body of a response. */
static const char *body_of(const char *text)
{
    const char *body = strstr(text, "\r\n\r\n");
    return body != NULL ? body + 4 : "";
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Compares lengths, because dates and tokens differ each time. */
static bool is_right(const char *expected, const char *got)
{
    return starts(got, "HTTP/1.1 2") && strncmp(expected, got, 12) == 0 &&
           strlen(body_of(expected)) == strlen(body_of(got));
}

static bool is_refused(const char *got)
{
    return starts(got, "HTTP/1.1 507") && strstr(got, "\"code\":\"FULL\"") != NULL;
}

static void try_all(const char *method, const char *path, const char *body)
{
    char *expected = strdup(ask(method, path, body));
    uint64_t failures = 0, rights = 0;
    CHECK(expected != NULL && starts(expected, "HTTP/1.1 2"));
    for (;; failures++) {
        CHECK(failures < FAILURES_MAX);
        left = failures + 1;
        const char *got = ask(method, path, body);
        bool has_failed = left == 0;
        left = 0;
        CHECK_NOTE("%.9s %.50s, allocation %" PRIu64 ": %.120s", method, path, failures + 1, got);
        CHECK(got[0] == 0 || is_right(expected, got) || is_refused(got));
        rights += is_right(expected, got);
        if (!has_failed) break;
    }
    CHECK(failures > 0);
    CHECK(is_right(expected, answer)); /* no allocation has failed this time */
    printf("     %s %s: %" PRIu64 " allocations, %" PRIu64 " right all the same\n", method, path,
           failures, rights);
    free(expected);
}

static void nothing_is_answered_in_part(void)
{
    setup();
    try_all("PUT", "/v1/topics/t/timers/a",
            "{\"payload\":{\"x\":[1,2]},\"in\":\"1h\",\"headers\":{\"k\":\"v\"}}");
    try_all("GET", "/v1/topics/t/timers/a", "");
    try_all("GET", "/v1/topics/t/timers?limit=5", "");
    try_all("GET", "/v1/topics", "");
    try_all("GET", "/v1/topics/t", "");
    try_all("GET", "/v1/explain/t/a", "");
    try_all("GET", "/livez", "");
    try_all("GET", "/openapi.json", "");
    teardown();
}

/* A payload is stored completely or not at all. */
static void a_payload_is_stored_whole_or_not(void)
{
    static const char body[] = "{\"payload\":\"0123456789012345678901234567890123456789\"}";
    setup();
    for (uint64_t i = 1, failed = 1; failed > 0; i++) {
        CHECK(i < FAILURES_MAX);
        (void)ask("PUT", "/v1/topics/t/timers/a", "{\"payload\":\"old\"}");
        left = i;
        (void)ask("PUT", "/v1/topics/t/timers/a", body);
        failed = left == 0;
        left = 0;
        const char *got = ask("GET", "/v1/topics/t/timers/a", "");
        CHECK_NOTE("allocation %" PRIu64 ": %.200s", i, got);
        CHECK(strstr(got, "\"payload\":\"old\"") != NULL ||
              strstr(got, "\"0123456789012345678901234567890123456789\"") != NULL);
    }
    teardown();
}

/* A delivery whose response could not be sent is released at once. */
static void a_claim_is_told_or_given_back(void)
{
    setup();
    CHECK(starts(ask("PUT", "/v1/topics/t/timers/a", "{\"payload\":\"x\"}"), "HTTP/1.1 200"));
    for (uint64_t i = 1; i < 1000; i++) {
        left = i;
        const char *got = ask("POST", "/v1/topics/t/claim", "{}");
        bool has_failed = left == 0, is_told = strstr(got, "\"id\":\"a\"") != NULL;
        left = 0;
        CHECK(got != NULL);
        CHECK_NOTE("allocation %" PRIu64 ": %.120s", i, got);
        CHECK(got[0] == 0 || is_refused(got) || is_told);
        if (is_told) CHECK(starts(got, "HTTP/1.1 200"));
        if (!has_failed) break;
        if (is_told) {
            CHECK(starts(ask("PUT", "/v1/topics/t/timers/a", "{\"payload\":\"x\"}"), "HTTP"));
        }
        turn();
        CHECK(strstr(ask("GET", "/v1/topics/t/timers/a", ""), "\"state\":\"ready\"") != NULL);
    }
    teardown();
}

/* The description is complete, or there is none. */
static void the_description_is_whole_or_missing(void)
{
    setup(); /* also lets the JSON library use the allocator of the server */
    json_t *whole = bel__http_openapi();
    uint64_t failures = 0;
    CHECK(whole != NULL);
    for (bool has_failed = true; has_failed; failures += DESCRIPTION_STEP) {
        left = failures + 1;
        is_counted = true;
        json_t *json = bel__http_openapi();
        is_counted = false;
        has_failed = left == 0;
        left = 0;
        CHECK_NOTE("allocation %" PRIu64, failures + 1);
        CHECK(json == NULL || json_equal(json, whole));
        CHECK(has_failed || json != NULL);
        json_decref(json);
    }
    CHECK(failures > 1000);
    json_decref(whole);
    teardown();
}

int main(void)
{
    RUN(the_description_is_whole_or_missing);
    RUN(nothing_is_answered_in_part);
    RUN(a_payload_is_stored_whole_or_not);
    RUN(a_claim_is_told_or_given_back);
    return 0;
}
