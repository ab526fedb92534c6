/* SPDX-License-Identifier: MIT */

/*
 * remind run: prints due reminders, and executes the commands of other remind processes.
 *
 *     remind in ... --.
 *     remind list   --+--> socket --.
 *                                   v
 *     SIGTERM, SIGCHLD ----------> poll <---- timer: when the engine wants its next turn
 *                                   |
 *                                   '--> claim what is due, print it or run a command, ack
 *
 * A plain loop on one thread. What it asks the engine for, it asks with bel_backend_call(), and
 * before it sleeps a turn says until when. That is on the clock that goes on while the machine is
 * suspended, so it is a timerfd and not the timeout of poll() that ends the sleep.
 */
#include "remind.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS_MAX = 64,
    WORDS_BYTES_MAX = 64 << 10,
    LEASE_MS = 6000, /* a crash delays a reminder by so much; who works on one asks for more */
    BEAT_MS = LEASE_MS / 3,
    NS_PER_S = 1000000000,
    NS_PER_MS = 1000000,
};

/* --- what is due --- */

static void answer(struct remind *remind, struct bel_view token, const char *failure)
{
    struct bel_request request = {
        .command = {.verb = BEL_VERB_ACK, .ack = {.tokens = &token, .tokens_count = 1}}};
    if (failure != NULL) {
        request.command = (struct bel_command){
            .verb = BEL_VERB_FAIL, .fail = {.token = token, .reason = view_of(failure)}};
    }
    int error = call(remind, &request);
    if (error) warnx("%s", bel_error_text(error));
}

static struct child *free_child(struct remind *remind)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (remind->children[i].pid == 0) return &remind->children[i];
    }
    return NULL;
}

/* sh -c 'CMD "$1"' remind TEXT */
static pid_t start_command(const char *command, const char *text)
{
    sigset_t none;
    char *script;
    if (asprintf(&script, "%s \"$1\"", command) < 0) return -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)sigemptyset(&none);
        (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
        (void)execl("/bin/sh", "sh", "-c", script, "remind", text, (char *)NULL);
        _exit(127);
    }
    free(script);
    return pid;
}

/* A reminder that was claimed, copied from the reply. */
struct rung {
    bool is_there;
    char token[BEL_TOKEN_BYTES_MAX];
    size_t token_bytes;
    char *text;
};

static void note_rung(struct bel_request *request, const struct bel_reply *reply)
{
    struct rung *rung = request->user;
    if (reply->err != 0 || reply->deliveries.count == 0) return;
    const struct bel_delivery *delivery = &reply->deliveries.items[0];
    rung->is_there = true;
    rung->token_bytes = delivery->token.bytes;
    memcpy(rung->token, delivery->token.data, delivery->token.bytes);
    rung->text =
        strndup(delivery->payload.bytes > 0 ? delivery->payload.data : "", delivery->payload.bytes);
}

static void ring(struct remind *remind, const struct rung *rung)
{
    struct bel_view token = {.data = rung->token, .bytes = rung->token_bytes};
    if (rung->text == NULL) {
        answer(remind, token, "out of memory");
    } else if (remind->command == NULL) {
        bool is_said = printf("%s\n", rung->text) >= 0 && fflush(stdout) == 0;
        answer(remind, token, is_said ? NULL : "standard output is closed");
    } else {
        struct child *child = free_child(remind);
        pid_t pid = start_command(remind->command, rung->text);
        if (pid < 0) {
            answer(remind, token, "no process");
            return;
        }
        memcpy(child->token, rung->token, rung->token_bytes);
        child->token_bytes = rung->token_bytes;
        child->pid = pid;
        child->beat = bel_clock_boot(bel_clock_system());
    }
}

/* Rings what is due, as far as there is room for it. */
static void ring_all(struct remind *remind)
{
    static const struct bel_view topic = {.data = TOPIC, .bytes = sizeof TOPIC - 1};
    while (free_child(remind) != NULL) {
        struct rung rung = {0};
        struct bel_request request = {
            .command = {.verb = BEL_VERB_CLAIM,
                        .claim = {.topics = &topic, .topics_count = 1, .lease_ms = LEASE_MS}},
            .done = note_rung,
            .user = &rung};
        int error = call(remind, &request);
        if (error) errx(EXIT_FAILED, "%s: %s", remind->folder, bel_error_text(error));
        if (!rung.is_there) return;
        ring(remind, &rung);
        free(rung.text);
    }
}

/* Commands that have ended. */
static void reap(struct remind *remind)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &remind->children[i];
        int status = 0;
        if (child->pid == 0 || waitpid(child->pid, &status, WNOHANG) != child->pid) continue;
        struct bel_view token = {.data = child->token, .bytes = child->token_bytes};
        bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        child->pid = 0;
        answer(remind, token, is_well ? NULL : "the command failed");
    }
}

static bool is_working(const struct remind *remind)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (remind->children[i].pid != 0) return true;
    }
    return false;
}

/* Says of commands that they still run. Returns when to say it again. */
static struct bel_boot beat(struct remind *remind, struct bel_boot now)
{
    struct bel_boot next = {BEL_NEVER};
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &remind->children[i];
        if (child->pid == 0) continue;
        if (now.ns - child->beat.ns >= (uint64_t)BEAT_MS * NS_PER_MS) {
            struct bel_view token = {.data = child->token, .bytes = child->token_bytes};
            struct bel_request request = {
                .command = {.verb = BEL_VERB_EXTEND, .extend = {.token = token}}};
            int error = call(remind, &request);
            if (error) warnx("a command may be started twice: %s", bel_error_text(error));
            child->beat = now;
        }
        uint64_t at = child->beat.ns + (uint64_t)BEAT_MS * NS_PER_MS;
        if (at < next.ns) next.ns = at;
    }
    return next;
}

/* --- orders from others --- */

/* The socket in a folder; false if its name is too long for one. */
static bool name_socket(const char *folder, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(out->sun_path, sizeof out->sun_path, "%s/socket", folder) <
           (int)sizeof out->sun_path;
}

/* We have the folder, so a socket that is there is a dead one's. */
static int open_socket(const char *folder)
{
    struct sockaddr_un address;
    if (!name_socket(folder, &address)) return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(address.sun_path);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, SOMAXCONN) == 0) {
        return fd;
    }
    warn("%s", address.sun_path);
    if (fd >= 0) (void)close(fd);
    return -1;
}

static size_t read_all(int fd, char *bytes, size_t room)
{
    size_t used = 0;
    ssize_t got;
    while (used < room && (got = read(fd, bytes + used, room - used)) > 0) {
        used += (size_t)got;
    }
    return used;
}

/* Cuts what was sent into words, each with a 0 behind it: the zone, and a command line. */
static bool cut(char *bytes, size_t used, char *words[WORDS_MAX + 1])
{
    size_t count = 0;
    if (used == 0 || bytes[used - 1] != 0) return false;
    for (char *word = bytes; word < bytes + used; word += strlen(word) + 1) {
        if (count == WORDS_MAX) return false;
        words[count++] = word;
    }
    words[count] = NULL;
    return count > 1;
}

/* The answer is the exit status, one byte, and text. */
static void obey(struct remind *remind, int fd)
{
    static char bytes[WORDS_BYTES_MAX];
    char *words[WORDS_MAX + 1], *text = NULL;
    size_t text_bytes = 0;
    const struct bel_zone *zone = remind->zone;
    FILE *out = open_memstream(&text, &text_bytes);
    if (out == NULL) return;
    (void)fputc(0, out);
    if (cut(bytes, read_all(fd, bytes, sizeof bytes), words) &&
        bel_zones_find(remind->zones, words[0], strlen(words[0]), &remind->zone) == 0) {
        int status = do_order(remind, &(struct order){.words = words + 1, .out = out});
        if (fclose(out) == 0) {
            text[0] = (char)status;
            (void)send(fd, text, text_bytes, MSG_NOSIGNAL);
        }
    } else {
        (void)fclose(out);
    }
    remind->zone = zone;
    free(text);
}

static void accept_order(struct remind *remind)
{
    struct timeval patience = {.tv_sec = 1}; /* of the loop, with whoever stops in the middle */
    int fd = accept4(remind->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    obey(remind, fd);
    (void)close(fd);
}

/* -1 if there is nobody. */
static int connect_runner(const struct remind *remind)
{
    struct sockaddr_un address;
    if (!name_socket(remind->folder, &address)) return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    (void)close(fd);
    return -1;
}

bool has_runner(const struct remind *remind)
{
    int fd = connect_runner(remind);
    if (fd >= 0) (void)close(fd);
    return fd >= 0;
}

int ask_runner(const struct remind *remind, const struct order *order)
{
    char status, bytes[4096];
    const char *zone = bel_zone_name(remind->zone);
    int fd = connect_runner(remind);
    if (fd < 0) return -1;
    (void)send(fd, zone, strlen(zone) + 1, MSG_NOSIGNAL);
    for (char **word = order->words; *word != NULL; word++) {
        (void)send(fd, *word, strlen(*word) + 1, MSG_NOSIGNAL);
    }
    (void)shutdown(fd, SHUT_WR);
    if (read_all(fd, &status, 1) != 1) errx(EXIT_FAILED, "no answer from the one who runs");
    for (size_t used; (used = read_all(fd, bytes, sizeof bytes)) > 0;) {
        (void)fwrite(bytes, 1, used, order->out);
    }
    (void)close(fd);
    return status;
}

/* --- the loop --- */

/* Until when to sleep: the engine says. */
static void set_timer(struct remind *remind, struct bel_boot due)
{
    struct itimerspec at = {0};
    if (due.ns != BEL_NEVER) {
        at.it_value = (struct timespec){(time_t)(due.ns / NS_PER_S), (long)(due.ns % NS_PER_S)};
        if (due.ns == 0) at.it_value.tv_nsec = 1;
    }
    if (timerfd_settime(remind->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) != 0) err(1, "timer");
}

/* True if it was told to end. */
static bool take_signals(struct remind *remind)
{
    struct signalfd_siginfo signal;
    bool ends = false;
    while (read(remind->signal_fd, &signal, sizeof signal) == (ssize_t)sizeof signal) {
        if (signal.ssi_signo != SIGCHLD) ends = true;
    }
    reap(remind);
    return ends;
}

/* What runs is waited for. */
static void run_loop(struct remind *remind)
{
    bool ends = false;
    for (;;) {
        struct pollfd fds[] = {{.fd = remind->signal_fd, .events = POLLIN},
                               {.fd = remind->timer_fd, .events = POLLIN},
                               {.fd = ends ? -1 : remind->listen_fd, .events = POLLIN}};
        if (!ends) ring_all(remind);
        if ((ends || remind->once) && !is_working(remind)) return;
        struct bel_now now = bel_clock_now(bel_clock_system());
        struct bel_boot until = beat(remind, now.boot);
        struct bel_next next = bel_backend_turn(remind->backend, now);
        bool is_full = free_child(remind) == NULL || ends;
        set_timer(remind, is_full || until.ns < next.due.ns ? until : next.due);
        if (poll(fds, 3, -1) < 0 && errno != EINTR) err(EXIT_FAILED, "poll");
        if (take_signals(remind)) ends = true;
        if (fds[2].revents != 0) accept_order(remind);
    }
}

/* The engine's own threads take no signals. */
int run(struct remind *remind)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGCHLD);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    remind->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    remind->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (remind->signal_fd < 0 || remind->timer_fd < 0) err(EXIT_FAILED, "descriptors");
    remind->listen_fd = remind->once ? -1 : open_socket(remind->folder);
    run_loop(remind);
    struct sockaddr_un address;
    if (remind->listen_fd >= 0 && name_socket(remind->folder, &address)) {
        (void)unlink(address.sun_path);
        (void)close(remind->listen_fd);
    }
    (void)close(remind->timer_fd);
    (void)close(remind->signal_fd);
    return 0;
}
