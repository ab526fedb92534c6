/* SPDX-License-Identifier: MIT */

/*
 * Sends a message to many people. Each address is a delivery of its own, with its own retries:
 *
 *     mailer [options] ADDRESS... < message        schedules deliveries, and sends them
 *     mailer [options]                             sends the deliveries left by earlier runs
 *
 * Threads that make blocking calls, around a driver:
 *
 *     main: schedule all ----.                  .---> worker: claim, sendmail, ack
 *                            v                  |
 *                          driver --- engine ---+---> worker: claim, sendmail, release
 *                                               |
 *     main: wait for the end, or a signal       '---> worker: claim, sendmail, fail
 *
 * The mailer may be killed at any time. The id of a delivery is made of the message and the
 * address, so a second run with the same input schedules only missing deliveries; sent deliveries
 * are known for the time of --keep. A delivery that was running at the time of the kill is sent
 * again after its lease has expired: a message may arrive twice, and is never lost.
 *
 * The command is run with the address as its last argument and the message as its input. Its exit
 * status is the outcome: 0 sent, 75 try again without counting an attempt, 65 rejected for good;
 * any other status is a failure, and the retry policy decides when to try again.
 */
#include <belfry/backoff.h>
#include <belfry/driver.h>
#include <belfry/duration.h>
#include <belfry/engine.h>

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EXIT_DEAD = 1, /* some deliveries are dead */
    EXIT_USAGE = 2,
    EXIT_LEFT = 75,  /* stopped before all were sent */
    SENT = 0,        /* what the command exits with */
    SENT_LATER = 75, /* EX_TEMPFAIL */
    SENT_NEVER = 65, /* EX_DATAERR */
    JOBS_MAX = 256,
    WINDOW = 256,                /* requests under way while scheduling */
    ADDRESS_BYTES_MAX = 254,     /* RFC 5321 */
    MESSAGE_BYTES_MAX = 1 << 20, /* BEL_PAYLOAD_BYTES_DEFAULT */
    WAIT_MS = 60 * 60 * 1000,    /* of a claim; a drain ends it sooner */
    BUSY_TRIES = 100,
    BUSY_MS = 25,
};

#define TOPIC BEL_VIEW("mail")

struct mailer {
    const char *folder, *sendmail, *retry, *list;
    uint64_t lease_ms, defer_ms, keep_ms;
    unsigned jobs;
    struct bel_engine *engine;
    struct bel_driver *driver;
    int progress_fd;                          /* rung when a delivery has come to an end */
    atomic_bool is_ended;                     /* workers go home */
    atomic_uint sent, deferred, failed, dead; /* in this run */
};

static const char usage[] =
    "usage: mailer --data DIR --sendmail CMD [options] [ADDRESS...] < message\n"
    "\n"
    "    --data DIR      data directory of the deliveries\n"
    "    --sendmail CMD  command to run; gets the address as last argument, the message as input;\n"
    "                    exit status 0 sent, 75 try again later, 65 rejected, other failed\n"
    "    --list FILE     file with more addresses, one per line\n"
    "    --jobs N        number of parallel deliveries (default 4)\n"
    "    --retry POLICY  retries after failures (default exp(1m,2,4h) jitter(0.2) max(12))\n"
    "    --defer TIME    delay after exit status 75 (default 5m)\n"
    "    --lease TIME    lease duration: delay of a delivery after a crash (default 10s)\n"
    "    --keep TIME     how long sent deliveries are kept (default 30d)\n"
    "\n"
    "Without addresses, mailer sends the deliveries that are left. mailer exits when no delivery\n"
    "is left; after SIGTERM, when the running deliveries have finished. Exit status: 0 all sent,\n"
    "1 some are dead, 2 invalid command line, 75 some are left.\n";

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){.data = text, .bytes = strlen(text)};
}

/* For what cannot go wrong unless the disk does. */
static void must(int error, const char *what)
{
    if (error) errx(EXIT_LEFT, "%s: %s", what, bel_error_text(error));
}

/* --- the command line --- */

static _Noreturn void refuse(const char *option, const char *value, const char *expected)
{
    errx(EXIT_USAGE, "%s %s: expected %s", option, value, expected);
}

static uint64_t read_duration(const char *option, const char *text)
{
    struct bel_text_error why;
    uint64_t ms;
    if (bel_duration_parse(text, strlen(text), &ms, &why) != 0) refuse(option, text, why.expected);
    return ms;
}

static unsigned read_jobs(const char *text)
{
    char *end;
    unsigned long jobs = strtoul(text, &end, 10);
    if (end == text || *end != 0 || jobs == 0 || jobs > JOBS_MAX) {
        refuse("--jobs", text, "a number from 1 to 256");
    }
    return (unsigned)jobs;
}

static const char *read_retry(const char *text)
{
    struct bel_text_error why;
    struct bel_backoff policy;
    if (bel_backoff_parse(text, strlen(text), &policy, &why) != 0) {
        refuse("--retry", text, why.expected);
    }
    return text;
}

static void read_option(struct mailer *mailer, int name)
{
    switch (name) {
    case 'd':
        mailer->folder = optarg;
        break;
    case 's':
        mailer->sendmail = optarg;
        break;
    case 'l':
        mailer->list = optarg;
        break;
    case 'j':
        mailer->jobs = read_jobs(optarg);
        break;
    case 'r':
        mailer->retry = read_retry(optarg);
        break;
    case 'D':
        mailer->defer_ms = read_duration("--defer", optarg);
        break;
    case 'L':
        mailer->lease_ms = read_duration("--lease", optarg);
        break;
    case 'k':
        mailer->keep_ms = read_duration("--keep", optarg);
        break;
    case 'h':
        (void)fputs(usage, stdout);
        exit(0); /* NOLINT(concurrency-mt-unsafe) */
    default:
        (void)fputs(usage, stderr);
        exit(EXIT_USAGE); /* NOLINT(concurrency-mt-unsafe) */
    }
}

static void read_options(struct mailer *mailer, int argc, char **argv)
{
    static const struct option names[] = {
        {"data", required_argument, NULL, 'd'},  {"sendmail", required_argument, NULL, 's'},
        {"list", required_argument, NULL, 'l'},  {"jobs", required_argument, NULL, 'j'},
        {"retry", required_argument, NULL, 'r'}, {"defer", required_argument, NULL, 'D'},
        {"lease", required_argument, NULL, 'L'}, {"keep", required_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},        {0}};
    int name;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet */
    while ((name = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        read_option(mailer, name);
    }
    if (mailer->folder == NULL) errx(EXIT_USAGE, "--data DIR is missing; see --help");
    if (mailer->sendmail == NULL) errx(EXIT_USAGE, "--sendmail CMD is missing; see --help");
    if (mailer->lease_ms < 3) refuse("--lease", "TIME", "at least 3ms");
}

/* --- scheduling: all requests at once, so that they share commits --- */

/* A delivery on its way into the engine. */
struct posting {
    struct bel_request request; /* first */
    struct bel_header to;
    struct outbox *outbox;
    char id[64], address[ADDRESS_BYTES_MAX + 1], domain[ADDRESS_BYTES_MAX + 1];
};

struct outbox {
    struct mailer *mailer;
    struct bel_view message;
    uint64_t message_hash;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned under_way, posted; /* under the mutex, as is the error */
    int err;
    char why[160];
};

static void posted(struct bel_request *request, const struct bel_reply *reply)
{
    struct posting *posting = request->user;
    struct outbox *outbox = posting->outbox;
    (void)pthread_mutex_lock(&outbox->mutex);
    outbox->under_way--;
    if (reply->err == 0) outbox->posted++;
    if (reply->err != 0 && outbox->err == 0) {
        outbox->err = reply->err;
        (void)snprintf(outbox->why, sizeof outbox->why, "%s", reply->why);
    }
    (void)pthread_cond_signal(&outbox->changed);
    (void)pthread_mutex_unlock(&outbox->mutex);
    free(posting);
}

/* A name that is the same each time the same is sent to the same. */
static void name_posting(struct posting *posting)
{
    struct bel_view address = view_of(posting->address);
    (void)snprintf(posting->id, sizeof posting->id, "%016" PRIx64 "-%016" PRIx64,
                   posting->outbox->message_hash,
                   bel_spread_offset(address.data, address.bytes, UINT64_MAX));
}

/* Waits until fewer than so many are under way. */
static void wait_for_room(struct outbox *outbox, unsigned under_way_max)
{
    (void)pthread_mutex_lock(&outbox->mutex);
    while (outbox->under_way > under_way_max) {
        (void)pthread_cond_wait(&outbox->changed, &outbox->mutex);
    }
    if (outbox->err) errx(EXIT_LEFT, "not all are scheduled, run it again: %s", outbox->why);
    (void)pthread_mutex_unlock(&outbox->mutex);
}

/* What is behind the @; NULL if it is no address. */
static const char *domain_of(const char *address)
{
    const char *at = strrchr(address, '@');
    if (at == NULL || at == address || at[1] == 0) return NULL;
    if (strlen(address) > ADDRESS_BYTES_MAX || address[0] == '-') return NULL;
    for (const char *c = address; *c != 0; c++) {
        if (*c <= ' ' || *c == 0x7f) return NULL;
    }
    return at + 1;
}

/* Groups are by domain, so that a slow one does not hold up the others. */
static void post(struct outbox *outbox, const char *address)
{
    const char *domain = domain_of(address);
    struct posting *posting = calloc(1, sizeof *posting);
    if (domain == NULL) errx(EXIT_USAGE, "'%s' is no address", address);
    if (posting == NULL) err(EXIT_LEFT, "%s", address);
    posting->outbox = outbox;
    (void)snprintf(posting->address, sizeof posting->address, "%s", address);
    (void)snprintf(posting->domain, sizeof posting->domain, "%s", domain);
    for (char *c = posting->domain; *c != 0; c++) {
        if (*c >= 'A' && *c <= 'Z') *c ^= 'a' ^ 'A';
    }
    name_posting(posting);
    posting->to = (struct bel_header){BEL_VIEW("to"), view_of(posting->address)};
    posting->request.command.verb = BEL_VERB_SCHEDULE;
    posting->request.command.schedule = (struct bel_schedule_spec){
        .topic = TOPIC,
        .id = view_of(posting->id),
        .payload = outbox->message,
        .conflict = BEL_CONFLICT_KEEP,
        .group = view_of(posting->domain),
        .headers = &posting->to,
        .headers_count = 1,
        .retry = view_of(outbox->mailer->retry),
    };
    posting->request.done = posted;
    posting->request.user = posting;
    wait_for_room(outbox, WINDOW);
    (void)pthread_mutex_lock(&outbox->mutex);
    outbox->under_way++;
    (void)pthread_mutex_unlock(&outbox->mutex);
    must(bel_driver_submit(outbox->mailer->driver, &posting->request), "schedule");
}

/* All addresses, or only a look at whether they are. */
static void go_through(struct outbox *outbox, char **addresses, bool posts)
{
    for (; *addresses != NULL; addresses++) {
        if (domain_of(*addresses) == NULL) errx(EXIT_USAGE, "'%s' is no address", *addresses);
        if (posts) post(outbox, *addresses);
    }
    if (outbox->mailer->list == NULL) return;
    FILE *file = fopen(outbox->mailer->list, "re");
    char *line = NULL;
    size_t room = 0;
    if (file == NULL) err(EXIT_USAGE, "%s", outbox->mailer->list);
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] == 0 || line[0] == '#') continue;
        if (domain_of(line) == NULL) {
            errx(EXIT_USAGE, "%s: '%s' is no address", outbox->mailer->list, line);
        }
        if (posts) post(outbox, line);
    }
    free(line);
    (void)fclose(file);
}

static struct bel_view read_message(void)
{
    char *bytes = malloc(MESSAGE_BYTES_MAX + 1);
    if (bytes == NULL) err(EXIT_LEFT, "message");
    size_t used = fread(bytes, 1, MESSAGE_BYTES_MAX + 1, stdin);
    if (ferror(stdin)) err(EXIT_LEFT, "message");
    if (used == 0) errx(EXIT_USAGE, "there is no message on standard input");
    if (used > MESSAGE_BYTES_MAX) errx(EXIT_USAGE, "the message is larger than 1 MiB");
    return (struct bel_view){.data = bytes, .bytes = used};
}

/* Nothing is scheduled unless all addresses are. */
static void schedule_all(struct mailer *mailer, char **addresses)
{
    struct outbox outbox = {
        .mailer = mailer, .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    go_through(&outbox, addresses, false);
    outbox.message = read_message();
    outbox.message_hash = bel_spread_offset(outbox.message.data, outbox.message.bytes, UINT64_MAX);
    go_through(&outbox, addresses, true);
    wait_for_room(&outbox, 0);
    (void)printf("%u scheduled\n", outbox.posted);
    (void)fflush(stdout);
    free((void *)(uintptr_t)outbox.message.data);
}

/* --- sending: one worker, one delivery at a time --- */

/* What a worker has claimed, copied from the reply. */
struct letter {
    struct mailer *mailer;
    bool is_there;
    char token[BEL_TOKEN_BYTES_MAX], to[ADDRESS_BYTES_MAX + 1];
    size_t token_bytes;
    int message_fd;
};

/* A file in memory to be the input of the command; -1 if there is no room. */
static int make_input(struct bel_view message)
{
    int fd = memfd_create("message", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < message.bytes) {
        ssize_t bytes = write(fd, (const char *)message.data + done, message.bytes - done);
        if (bytes < 0) {
            (void)close(fd);
            return -1;
        }
        done += (size_t)bytes;
    }
    if (fd >= 0) (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

static void claimed(struct bel_request *request, const struct bel_reply *reply)
{
    struct letter *letter = request->user;
    letter->is_there = reply->err == 0 && reply->deliveries.count > 0;
    if (!letter->is_there) return;
    const struct bel_delivery *delivery = &reply->deliveries.items[0];
    letter->token_bytes = delivery->token.bytes;
    memcpy(letter->token, delivery->token.data, delivery->token.bytes);
    (void)snprintf(letter->to, sizeof letter->to, "%.*s", (int)delivery->headers[0].value.bytes,
                   (const char *)delivery->headers[0].value.data);
    letter->message_fd = make_input(delivery->payload);
}

static int claim(struct letter *letter)
{
    static const struct bel_view topic = {.data = "mail", .bytes = 4};
    struct bel_request request = {.command = {.verb = BEL_VERB_CLAIM,
                                              .claim = {.topics = &topic,
                                                        .topics_count = 1,
                                                        .lease_ms = letter->mailer->lease_ms,
                                                        .wait_ms = WAIT_MS}},
                                  .done = claimed,
                                  .user = letter};
    return bel_driver_call(letter->mailer->driver, &request);
}

static struct bel_view token_of(const struct letter *letter)
{
    return (struct bel_view){.data = letter->token, .bytes = letter->token_bytes};
}

/* A signal for us alone does not reach the command, nor does one of the terminal's. */
static int start_command(const struct letter *letter, pid_t *out)
{
    const struct mailer *mailer = letter->mailer;
    char shell[] = "sh", option[] = "-c", name[] = "mailer", address[sizeof letter->to], *script;
    if (asprintf(&script, "%s \"$1\"", mailer->sendmail) < 0) return ENOMEM;
    memcpy(address, letter->to, sizeof address);
    char *const words[] = {shell, option, script, name, address, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, letter->message_fd, STDIN_FILENO);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(out, "/bin/sh", &actions, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    free(script);
    return error;
}

/* Still busy with it. If the lease is lost all the same, somebody else sends it too. */
static void extend(const struct letter *letter)
{
    struct bel_request request = {
        .command = {.verb = BEL_VERB_EXTEND, .extend = {.token = token_of(letter)}}};
    int err = bel_driver_call(letter->mailer->driver, &request);
    if (err) warnx("%s: %s", letter->to, bel_error_text(err));
}

/* Waits for the command, and says from time to time that it is being worked on. */
static int await_command(const struct letter *letter, pid_t pid)
{
    int status = 0, pid_fd = pidfd_open(pid, 0);
    struct pollfd ends = {.fd = pid_fd, .events = POLLIN};
    int beat_ms =
        letter->mailer->lease_ms / 3 > INT32_MAX ? INT32_MAX : (int)(letter->mailer->lease_ms / 3);
    while (pid_fd >= 0 && poll(&ends, 1, beat_ms) == 0) {
        extend(letter);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (pid_fd >= 0) (void)close(pid_fd);
    return status;
}

/* It may have been the last attempt; and it may have been too late. */
static void judged(struct bel_request *request, const struct bel_reply *reply)
{
    struct mailer *mailer = request->user;
    if (reply->err) return; /* is said by who asked */
    switch (request->command.verb) {
    case BEL_VERB_FAIL:
        if (reply->verdict.state == BEL_DEAD) atomic_fetch_add(&mailer->dead, 1);
        break;
    case BEL_VERB_ACK:
        if (reply->count == 0) warnx("the lease has ended: somebody may get it twice");
        break;
    default:
        break;
    }
}

/* Says how it went. */
static int answer(const struct letter *letter, struct bel_command command)
{
    struct bel_request request = {.command = command, .done = judged, .user = letter->mailer};
    return bel_driver_call(letter->mailer->driver, &request);
}

static int report(const struct letter *letter, int status)
{
    struct mailer *mailer = letter->mailer;
    struct bel_view token = token_of(letter);
    char reason[64];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == SENT) {
        atomic_fetch_add(&mailer->sent, 1);
        return answer(letter, (struct bel_command){.verb = BEL_VERB_ACK,
                                                   .ack = {.tokens = &token, .tokens_count = 1}});
    }
    if (code == SENT_LATER) {
        atomic_fetch_add(&mailer->deferred, 1);
        return answer(letter, (struct bel_command){.verb = BEL_VERB_RELEASE,
                                                   .release = {.token = token,
                                                               .has_delay = true,
                                                               .delay_ms = mailer->defer_ms}});
    }
    atomic_fetch_add(&mailer->failed, 1);
    (void)snprintf(reason, sizeof reason, code < 0 ? "killed by signal %d" : "exit status %d",
                   code < 0 ? WTERMSIG(status) : code);
    warnx("%s: %s", letter->to, reason);
    return answer(letter, (struct bel_command){.verb = BEL_VERB_FAIL,
                                               .fail = {.token = token,
                                                        .reason = view_of(reason),
                                                        .dead = code == SENT_NEVER}});
}

static void deliver(const struct letter *letter)
{
    int status = 0xff00; /* as if it had exited with 255 */
    pid_t pid = 0;
    int error = letter->message_fd < 0 ? ENOMEM : start_command(letter, &pid);
    if (error) {
        warnx("%s: %s", letter->to, strerrordesc_np(error));
    } else {
        status = await_command(letter, pid);
    }
    if (letter->message_fd >= 0) (void)close(letter->message_fd);
    error = report(letter, status);
    if (error) warnx("%s: %s", letter->to, bel_error_text(error));
}

static void *work(void *arg)
{
    struct letter letter = {.mailer = arg};
    while (!atomic_load(&letter.mailer->is_ended)) {
        int err = claim(&letter);
        if (err) errx(EXIT_LEFT, "claim: %s", bel_error_text(err));
        if (!letter.is_there) continue;
        deliver(&letter);
        (void)eventfd_write(letter.mailer->progress_fd, 1);
    }
    return NULL;
}

/* --- the end of it --- */

static void counted(struct bel_request *request, const struct bel_reply *reply)
{
    uint64_t *left = request->user;
    if (reply->err) return;
    const uint64_t *counts = reply->topic->counts;
    *left = counts[BEL_SCHEDULED] + counts[BEL_READY] + counts[BEL_LEASED];
}

static uint64_t count_left(struct mailer *mailer)
{
    uint64_t left = 0;
    struct bel_request request = {.command = {.verb = BEL_VERB_TOPIC, .target = {.topic = TOPIC}},
                                  .done = counted,
                                  .user = &left};
    must(bel_driver_call(mailer->driver, &request), "topic");
    return left;
}

/* Until nothing is left, or there is a signal. */
static void wait_for_the_end(struct mailer *mailer, int signal_fd)
{
    struct pollfd fds[] = {{.fd = mailer->progress_fd, .events = POLLIN},
                           {.fd = signal_fd, .events = POLLIN}};
    while (count_left(mailer) > 0) {
        eventfd_t rings;
        if (poll(fds, 2, -1) < 0 && errno != EINTR) err(EXIT_LEFT, "poll");
        if (fds[1].revents != 0) return;
        (void)eventfd_read(mailer->progress_fd, &rings);
    }
}

static void run(struct mailer *mailer, int signal_fd)
{
    pthread_t workers[JOBS_MAX];
    unsigned jobs = 0;
    while (jobs < mailer->jobs && pthread_create(&workers[jobs], NULL, work, mailer) == 0) {
        jobs++;
    }
    if (jobs < mailer->jobs) errx(EXIT_LEFT, "no more than %u threads", jobs);
    wait_for_the_end(mailer, signal_fd);
    atomic_store(&mailer->is_ended, true);
    bel_driver_drain(mailer->driver);
    while (jobs > 0) {
        (void)pthread_join(workers[--jobs], NULL);
    }
}

/* What is done is remembered, so that nobody gets it again when this is run again. */
static void configure(struct mailer *mailer)
{
    char keep[BEL_DURATION_BYTES];
    (void)bel_duration_print(mailer->keep_ms, keep, sizeof keep);
    struct bel_setting settings[] = {{BEL_VIEW("retention"), view_of(keep)},
                                     {BEL_VIEW("retention_dead"), view_of(keep)}};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_CONFIGURE,
                    .configure = {.topic = TOPIC, .settings = settings, .settings_count = 2}}};
    must(bel_driver_call(mailer->driver, &request), "configure");
}

/* One that was just killed may have left a command that was just being started: that has the
 * folder, too, until it is. */
static void open_mailer(struct mailer *mailer)
{
    struct bel_engine_why why;
    int error = BEL_EBUSY;
    for (int i = 0; i < BUSY_TRIES && error == BEL_EBUSY; i++) {
        if (i > 0) (void)poll(NULL, 0, BUSY_MS);
        struct bel_engine_options options = {.folder = mailer->folder,
                                             .now = bel_clock_now(bel_clock_system())};
        error = bel_engine_open(&options, &mailer->engine, &why);
    }
    if (error == BEL_EBUSY) errx(EXIT_LEFT, "another mailer has %s", mailer->folder);
    if (error) {
        errx(EXIT_LEFT, "%s: %s. %s", mailer->folder, bel_error_text(error), why.text);
    }
    must(bel_driver_start(bel_engine_backend(mailer->engine), NULL, &mailer->driver), "driver");
    mailer->progress_fd = eventfd(0, EFD_CLOEXEC);
    if (mailer->progress_fd < 0) err(EXIT_LEFT, "eventfd");
    configure(mailer);
}

int main(int argc, char **argv)
{
    struct mailer mailer = {.retry = "exp(1m,2,4h) jitter(0.2) max(12)",
                            .jobs = 4,
                            .lease_ms = 10000,
                            .defer_ms = 300000,
                            .keep_ms = UINT64_C(30) * 24 * 3600 * 1000};
    sigset_t signals;
    read_options(&mailer, argc, argv);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before there are threads */
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (signal_fd < 0) err(EXIT_LEFT, "signalfd");

    open_mailer(&mailer);
    if (optind < argc || mailer.list != NULL) schedule_all(&mailer, argv + optind);
    run(&mailer, signal_fd);
    uint64_t left = count_left(&mailer);
    bel_driver_destroy(mailer.driver);
    bel_engine_close(mailer.engine);
    (void)printf("%u sent, %u deferred, %u failed, %u given up, %" PRIu64 " left\n",
                 atomic_load(&mailer.sent), atomic_load(&mailer.deferred),
                 atomic_load(&mailer.failed), atomic_load(&mailer.dead), left);
    if (left > 0) return EXIT_LEFT;
    return atomic_load(&mailer.dead) > 0 ? EXIT_DEAD : 0;
}
