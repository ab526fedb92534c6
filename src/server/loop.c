/* SPDX-License-Identifier: MIT */

/*
 * libuv polls. One function, which it calls after each poll, does all the work. Another function,
 * called before each poll, checks whether there is more to do; if so, an idle handle keeps the poll
 * from waiting. So code that has work for the loop only has to record it.
 *
 * Time: a timerfd on the boot clock instead of a libuv timer, whose clock stops while the machine
 * is suspended, and whose resolution would make deliveries up to 1 ms late. The timerfd is set only
 * if it would ring too late; if it rings early, the loop sets it again.
 */
#include "server/loop_state.h"

#include "core/units.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    POLLS_MAX = 4,        /* most polls before a turn, while more input arrives */
    BATCH_MAX = 8192,     /* requests that start a turn without another poll */
    DRAIN_MS_MAX = 10000, /* limit for clients that do not read their replies */
    END_MS_MAX = 3000,    /* limit for requests of closed clients */
};

static struct bel_now now_of(const struct bel_loop *loop)
{
    return loop->options.clock->now;
}

/* --- sleeping --- */

static void set_alarm(struct bel_loop *loop, uint64_t until_ns)
{
    assert(until_ns < loop->armed_ns);
    struct itimerspec at = {
        .it_value = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)}};
    int failed = timerfd_settime(loop->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL);
    assert(!failed);
    (void)failed;
    loop->armed_ns = until_ns;
}

static void on_alarm(uv_poll_t *poll, int status, int events)
{
    struct bel_loop *loop = poll->data;
    uint64_t times;
    (void)status;
    (void)events;
    ssize_t bytes = read(loop->alarm_fd, &times, sizeof times);
    (void)bytes; /* may fail if the timer was set again meanwhile */
    loop->armed_ns = BEL_NEVER;
}

/* Returns when the next turn is needed, by the system's boot clock. The ends of waits are on
 * another clock, which stops during suspend; then the loop wakes too early, and checks again. */
static uint64_t end_of_sleep(const struct bel_loop *loop)
{
    struct bel_now now = now_of(loop);
    bool is_virtual = loop->options.clock->is_virtual;
    struct bel_boot boot = is_virtual ? bel_clock_boot(loop->options.clock->system) : now.boot;
    struct bel_boot wait = {BEL_NEVER};
    uint64_t due = is_virtual ? BEL_NEVER : loop->next.due.ns;
    if (loop->next.wait.ns != BEL_NEVER &&
        bel_boot_add(boot, loop->next.wait.ns - now.real.ns, &wait) != 0) {
        wait.ns = BEL_NEVER;
    }
    return due < wait.ns ? due : wait.ns;
}

static bool needs_turn(const struct bel_loop *loop)
{
    struct bel_now now = now_of(loop);
    return loop->options.tracker->fresh > 0 || loop->is_woken || loop->next.due.ns <= now.boot.ns ||
           loop->next.wait.ns <= now.real.ns;
}

static void on_awake(uv_idle_t *idle)
{
    (void)idle; /* the running handle keeps the poll from waiting */
}

static void on_http_time(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    loop->is_http_due = true;
}

static void sleep_until_needed(struct bel_loop *loop)
{
    assert(bel__list_is_empty(&loop->active) && loop->options.tracker->fresh == 0);
    uint64_t until_ns = end_of_sleep(loop);
    (void)uv_idle_stop(&loop->awake);
    if (until_ns < loop->armed_ns) set_alarm(loop, until_ns);
    if (loop->http == NULL) return;
    uint64_t wait_ms = bel__http_wait_ms(loop->http);
    if (wait_ms == UINT64_MAX) {
        (void)uv_timer_stop(&loop->http_timer);
    } else {
        (void)uv_timer_start(&loop->http_timer, on_http_time, wait_ms, 0);
    }
}

/* --- a round --- */

static void step_active(struct bel_loop *loop)
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&loop->active); link != NULL; link = next) {
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, active);
        bel__crowd_step(connection);
        next = bel__list_next(&loop->active, link); /* a step may add active connections */
        bel__connection_end_waits(connection);
    }
}

/* Writes the replies of active connections, and steps them once more: a session may have waited
 * for its reply. */
static void flush_active(struct bel_loop *loop)
{
    struct bel_list active;
    struct bel_link *link;
    bel__list_init(&active);
    bel__list_splice(&active, &loop->active);
    while ((link = bel__list_take_first(&active)) != NULL) {
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, active);
        if (!connection->has_more) bel__crowd_step(connection);
        if (bel__connection_flush(connection)) bel__connection_activate(connection);
    }
}

static void run_http(struct bel_loop *loop)
{
    loop->is_http_due = false;
    if (loop->http != NULL) bel__http_run(loop->http);
}

static void take_turn(struct bel_loop *loop)
{
    struct bel_request_tracker *tracker = loop->options.tracker;
    assert(loop->state == BEL_LOOP_LISTENING || loop->state == BEL_LOOP_DRAINING);
    loop->is_woken = false;
    loop->next = bel__request_tracker_turn(tracker, now_of(loop));
    loop->err = tracker->broken;
    if (loop->err == 0 && loop->options.broken != NULL) {
        loop->err = loop->options.broken(loop->options.context);
    }
}

static void on_chore_time(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    loop->is_chore_due = true;
}

void bel__loop_begin_chore(struct bel_loop *loop)
{
    loop->is_chore_due = true;
}

static void do_chore(struct bel_loop *loop)
{
    assert(loop->is_chore_due);
    loop->is_chore_due = false;
    uint64_t ms = loop->options.chore(loop->options.context);
    if (ms == 0) loop->is_chore_due = true;
    if (ms != 0 && ms != UINT64_MAX) (void)uv_timer_start(&loop->chore_timer, on_chore_time, ms, 0);
    loop->is_http_due = true; /* the turn may have answered HTTP requests */
    if (loop->options.broken != NULL) loop->err = loop->options.broken(loop->options.context);
}

/* Returns whether to poll once more, so that more requests share the turn. */
static bool is_worth_polling(const struct bel_loop *loop)
{
    uint64_t fresh = loop->options.tracker->fresh;
    return loop->has_news && fresh > 0 && fresh < BATCH_MAX && loop->polls < POLLS_MAX;
}

static bool has_drained(const struct bel_loop *loop)
{
    return loop->state == BEL_LOOP_DRAINING && bel__list_is_empty(&loop->connections) &&
           loop->options.tracker->under_way == 0 &&
           (loop->http == NULL || bel__http_is_idle(loop->http));
}

static void on_after_poll(uv_check_t *check)
{
    struct bel_loop *loop = check->data;
    if (loop->state == BEL_LOOP_ENDING) return;
    bel__server_clock_read(loop->options.clock);
    if (loop->is_http_due) run_http(loop);
    step_active(loop);
    if (is_worth_polling(loop)) {
        loop->polls++;
        loop->has_news = false;
        return;
    }
    loop->polls = 0;
    loop->has_news = false;
    if (loop->is_chore_due) do_chore(loop);
    if (needs_turn(loop)) {
        take_turn(loop);
        if (loop->http != NULL) run_http(loop);
    }
    bel__output_total_end_turn(loop->options.service->output_total);
    flush_active(loop);
    bel__crowd_admit(loop);
    bel__incomplete_admit(loop);
    if (loop->err != 0 || has_drained(loop)) uv_stop(&loop->uv);
}

/* Returns whether there is work for the next round, so that the poll must not wait. */
static bool has_more_to_do(const struct bel_loop *loop)
{
    return needs_turn(loop) || loop->is_http_due || loop->is_chore_due ||
           !bel__list_is_empty(&loop->active) || bel__crowd_can_go_on(loop) ||
           bel__incomplete_can_go_on(loop) || has_drained(loop);
}

static void on_before_poll(uv_prepare_t *prepare)
{
    struct bel_loop *loop = prepare->data;
    if (loop->state == BEL_LOOP_ENDING) return;
    if (has_more_to_do(loop)) {
        (void)uv_idle_start(&loop->awake, on_awake);
    } else {
        sleep_until_needed(loop);
    }
}

/* --- signals and events --- */

static void on_woken(uv_async_t *async)
{
    struct bel_loop *loop = async->data;
    loop->is_woken = true;
}

void bel__loop_wake(struct bel_loop *loop)
{
    (void)uv_async_send(&loop->woken);
}

int bel__loop_advance(struct bel_loop *loop, struct bel_wall to, uint64_t *turns)
{
    struct bel_loop_options *options = &loop->options;
    return bel__server_clock_advance(options->clock, options->tracker, to, turns, &loop->next);
}

static void on_http(uv_poll_t *poll, int status, int events)
{
    struct bel_loop *loop = poll->data;
    (void)status;
    (void)events;
    loop->is_http_due = true;
    loop->has_news = true;
}

static void close_all(struct bel_loop *loop)
{
    struct bel_link *link;
    while ((link = bel__list_first(&loop->connections)) != NULL) {
        bel__connection_close(BEL_CONTAINER_OF(link, struct bel_connection, all));
    }
    assert(bel__list_is_empty(&loop->active) && bel__list_is_empty(&loop->lingering));
}

static void on_deadline(uv_timer_t *timer)
{
    struct bel_loop *loop = timer->data;
    BEL_LOG(loop->options.log, BEL_LOG_WARN, "closing connections: clients do not read",
            BEL_LOG_NUMBER("clients", loop->options.metrics->clients));
    close_all(loop);
    uv_stop(&loop->uv);
}

void bel__loop_drain(struct bel_loop *loop)
{
    struct bel_link *next;
    if (loop->state >= BEL_LOOP_DRAINING) return;
    assert(loop->state == BEL_LOOP_LISTENING);
    loop->state = BEL_LOOP_DRAINING;
    uv_close((uv_handle_t *)&loop->listener, NULL);
    bel__request_tracker_drain(loop->options.tracker);
    if (loop->http != NULL) {
        bel__http_drain(loop->http);
        loop->is_http_due = true;
    }
    for (struct bel_link *link = bel__list_first(&loop->connections); link != NULL; link = next) {
        next = bel__list_next(&loop->connections, link);
        bel__connection_activate(BEL_CONTAINER_OF(link, struct bel_connection, all));
    }
    (void)uv_timer_start(&loop->deadline, on_deadline, DRAIN_MS_MAX, 0);
}

/* A second signal: closes all clients, with or without replies, and ends the loop. A third one ends
 * the process, also if the disk hangs. */
static void end_now(struct bel_loop *loop, int number)
{
    BEL_LOG(loop->options.log, BEL_LOG_WARN, "stopping at once: clients are closed",
            BEL_LOG_NUMBER("signal", number),
            BEL_LOG_NUMBER("clients", loop->options.metrics->clients));
    for (unsigned i = 0; i < sizeof loop->signals / sizeof loop->signals[0]; i++) {
        if (loop->signals[i].signum == SIGHUP) continue;
        (void)uv_signal_stop(&loop->signals[i]); /* restores the default */
    }
    close_all(loop);
    uv_stop(&loop->uv);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct bel_loop *loop = handle->data;
    if (loop->state >= BEL_LOOP_DRAINING) {
        end_now(loop, number);
        return;
    }
    BEL_LOG(loop->options.log, BEL_LOG_INFO, "stopping", BEL_LOG_NUMBER("signal", number),
            BEL_LOG_NUMBER("clients", loop->options.metrics->clients));
    bel__loop_drain(loop);
}

static void on_reload(uv_signal_t *handle, int number)
{
    struct bel_loop *loop = handle->data;
    (void)number;
    if (loop->options.reload != NULL) loop->options.reload(loop->options.context);
}

void bel__loop_regrant(struct bel_loop *loop,
                       bool (*regrant)(void *context, struct bel_grant *grant))
{
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&loop->connections); link != NULL; link = next) {
        struct bel_connection *connection = BEL_CONTAINER_OF(link, struct bel_connection, all);
        next = bel__list_next(&loop->connections, link);
        bel__session_regrant(connection->session, regrant);
        bel__connection_activate(connection); /* closes a connection whose session was dropped */
    }
}

/* --- creating and finishing --- */

static int handle_signals(struct bel_loop *loop)
{
    static const struct {
        int number;
        uv_signal_cb handle;
    } rows[] = {{SIGTERM, on_signal}, {SIGINT, on_signal}, {SIGHUP, on_reload}};
    static_assert(sizeof rows / sizeof rows[0] == sizeof loop->signals / sizeof loop->signals[0],
                  "a handle for each signal");
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)uv_signal_init(&loop->uv, &loop->signals[i]);
        loop->signals[i].data = loop;
        if (uv_signal_start(&loop->signals[i], rows[i].handle, rows[i].number) != 0) return BEL_EIO;
    }
    return 0;
}

static int open_handles(struct bel_loop *loop)
{
    uv_loop_t *uv = &loop->uv;
    loop->before_poll.data = loop->after_poll.data = loop->awake.data = loop->woken.data =
        loop->alarm.data = loop;
    loop->linger.data = loop->http_timer.data = loop->deadline.data = loop;
    loop->chore_timer.data = loop->strangers_timer.data = loop->crowd_timer.data = loop;
    loop->input_timer.data = loop;
    int status = uv_async_init(uv, &loop->woken, on_woken);
    if (status == 0) status = uv_poll_init(uv, &loop->alarm, loop->alarm_fd);
    if (status == 0) status = uv_poll_start(&loop->alarm, UV_READABLE, on_alarm);
    if (status != 0) return BEL_EIO;
    (void)uv_prepare_init(uv, &loop->before_poll);
    (void)uv_prepare_start(&loop->before_poll, on_before_poll);
    (void)uv_check_init(uv, &loop->after_poll);
    (void)uv_check_start(&loop->after_poll, on_after_poll);
    (void)uv_idle_init(uv, &loop->awake);
    (void)uv_timer_init(uv, &loop->linger);
    (void)uv_timer_init(uv, &loop->http_timer);
    (void)uv_timer_init(uv, &loop->deadline);
    (void)uv_timer_init(uv, &loop->chore_timer);
    (void)uv_timer_init(uv, &loop->strangers_timer);
    (void)uv_timer_init(uv, &loop->crowd_timer);
    (void)uv_timer_init(uv, &loop->input_timer);
    return handle_signals(loop);
}

int bel__loop_create(const struct bel_loop_options *options, struct bel_loop **out)
{
    struct bel_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL) return BEL_ENOMEM;
    loop->options = *options;
    loop->armed_ns = BEL_NEVER;
    loop->next = (struct bel_next){.due = {0}, .wait = {BEL_NEVER}}; /* a first turn at once */
    bel__list_init(&loop->connections);
    bel__list_init(&loop->active);
    bel__list_init(&loop->lingering);
    bel__list_init(&loop->strangers);
    bel__list_init(&loop->muted);
    for (unsigned i = 0; i < BEL_SESSION_CROWDS; i++) {
        bel__list_init(&loop->crowds[i]);
    }
    loop->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->alarm_fd < 0 || uv_loop_init(&loop->uv) != 0) {
        if (loop->alarm_fd >= 0) (void)close(loop->alarm_fd);
        free(loop);
        return BEL_EIO;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    int err = open_handles(loop);
    if (err) {
        bel__loop_destroy(loop);
        return err;
    }
    *out = loop;
    return 0;
}

int bel__loop_add_http(struct bel_loop *loop, struct bel_http *http)
{
    assert(loop->http == NULL);
    if (uv_poll_init(&loop->uv, &loop->http_poll, bel__http_fd(http)) != 0) return BEL_EIO;
    loop->http_poll.data = loop;
    loop->http = http;
    return uv_poll_start(&loop->http_poll, UV_READABLE, on_http) == 0 ? 0 : BEL_EIO;
}

static void on_backend(uv_poll_t *poll, int status, int events)
{
    struct bel_loop *loop = poll->data;
    (void)status;
    (void)events;
    loop->is_woken = true;
}

int bel__loop_add_backend(struct bel_loop *loop, const struct bel_backend *backend)
{
    int fd = bel_backend_descriptor(backend);
    assert(!loop->has_backend_poll);
    if (fd < 0) return 0;
    if (uv_poll_init(&loop->uv, &loop->backend_poll, fd) != 0) return BEL_EIO;
    loop->backend_poll.data = loop;
    loop->has_backend_poll = true;
    return uv_poll_start(&loop->backend_poll, UV_READABLE, on_backend) == 0 ? 0 : BEL_EIO;
}

int bel__loop_run(struct bel_loop *loop)
{
    assert(loop->state == BEL_LOOP_LISTENING);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    return loop->err;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

/* Takes turns until the requests of closed clients, which own them, are done. */
static void end_requests(struct bel_loop *loop)
{
    struct bel_server_clock *clock = loop->options.clock;
    struct bel_request_tracker *tracker = loop->options.tracker;
    bel__server_clock_read(clock);
    uint64_t end_ns = clock->now.real.ns + (uint64_t)END_MS_MAX * NS_PER_MS;
    bel__request_tracker_drain(tracker);
    while (tracker->under_way > 0 && clock->now.real.ns < end_ns) {
        (void)bel__request_tracker_turn(tracker, clock->now);
        (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
        bel__server_clock_read(clock);
    }
}

void bel__loop_finish(struct bel_loop *loop)
{
    assert(loop->state != BEL_LOOP_ENDING);
    /* After a failure of the store the loop has not drained, and would go on accepting clients. */
    if (loop->state == BEL_LOOP_LISTENING) uv_close((uv_handle_t *)&loop->listener, NULL);
    loop->state = BEL_LOOP_ENDING;
    close_all(loop);
    if (loop->http != NULL) uv_close((uv_handle_t *)&loop->http_poll, NULL);
    loop->http = NULL;
    if (loop->has_backend_poll) uv_close((uv_handle_t *)&loop->backend_poll, NULL);
    end_requests(loop);
}

void bel__loop_destroy(struct bel_loop *loop)
{
    if (loop == NULL) return;
    assert(bel__list_is_empty(&loop->connections));
    loop->state = BEL_LOOP_ENDING;
    uv_walk(&loop->uv, close_handle, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    int status = uv_loop_close(&loop->uv);
    assert(status == 0);
    (void)status;
    (void)close(loop->alarm_fd);
    free(loop);
}
