/* SPDX-License-Identifier: MIT */

/*
 * Idle and slow connections besides the measured ones. Half of the slow connections send requests
 * one byte at a time. The other half have requested more than their socket buffers hold, and do not
 * read it.
 */
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TRICKLE_NS = 100 * 1000 * 1000, /* between two bytes of a connection */
    NOISE_BYTES = 256 << 10,        /* of requests, on a connection that does not read */
    RECEIVE_BYTES = 4096,
    SETTLE_US = 500 * 1000, /* time for the server to accept all connections */
};

static int *fds;
static uint32_t fds_count, slow_first;
static uint64_t trickled_ns, trickled;
static struct serve_buffer request;

static bool does_trickle(uint32_t index)
{
    return index >= slow_first && (index - slow_first) % 2 == 0;
}

/* Sends requests with large replies, as many as the socket accepts. */
static void make_noise(int fd)
{
    struct serve_buffer noise = {0};
    while (noise.count < NOISE_BYTES) {
        serve_protocol->put_noise(&noise);
    }
    while (noise.used < noise.count) {
        ssize_t bytes = send(fd, noise.data + noise.used, noise.count - noise.used,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
        if (bytes <= 0) break;
        noise.used += (size_t)bytes;
    }
    free(noise.data);
}

void serve_crowd_gather(void)
{
    uint32_t count = (uint32_t)(serve_settings.idle + serve_settings.slow);
    if (fds_count > 0) serve_crowd_disperse();
    if (serve_settings.slow > 0 && serve_protocol->put_noise == NULL)
        bench_fail("slow connections are not supported by this protocol");
    fds = bench_alloc(count, sizeof *fds);
    slow_first = (uint32_t)serve_settings.idle;
    for (fds_count = 0; fds_count < count; fds_count++) {
        bool is_mute = fds_count >= slow_first && !does_trickle(fds_count);
        fds[fds_count] = serve_dial((uint16_t)serve_settings.port, is_mute ? RECEIVE_BYTES : 0);
        if (fds[fds_count] < 0) bench_fail("cannot open the additional connections");
        if (is_mute) make_noise(fds[fds_count]);
    }
    request.count = 0;
    struct serve_timer timer = {.id = "job-0123456789abcdef",
                                .due_ns = serve_wall_ns(),
                                .delay_ns = 86400 * SERVE_SECOND_NS};
    timer.due_ns += timer.delay_ns;
    serve_protocol->put_schedule(&request, &timer);
    trickled = 0;
    trickled_ns = 0;
    (void)usleep(SETTLE_US);
}

void serve_crowd_disperse(void)
{
    while (fds_count > 0) {
        (void)close(fds[--fds_count]);
    }
    free(fds);
    fds = NULL;
    serve_settings.idle = serve_settings.slow = 0;
}

/* Serves a few connections per call, so that all are served once per TRICKLE_NS. */
void serve_crowd_go(uint64_t now_ns)
{
    uint32_t slow = fds_count - slow_first;
    if (fds_count == 0 || slow == 0) return;
    if (trickled_ns == 0) trickled_ns = now_ns;
    uint64_t wanted = (now_ns - trickled_ns) * slow / TRICKLE_NS;
    for (uint32_t i = 0; trickled < wanted && i < slow; i++, trickled++) {
        uint32_t index = slow_first + (uint32_t)(trickled % slow);
        if (!does_trickle(index)) continue;
        char byte = request.data[trickled / slow % request.count];
        if (send(fds[index], &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
            bench_fail("the server closed a slow connection");
        }
        char answer[256];
        (void)!recv(fds[index], answer, sizeof answer, MSG_DONTWAIT);
    }
}
