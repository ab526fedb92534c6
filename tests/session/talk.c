/* SPDX-License-Identifier: MIT */

/*
 * The stage for conversations: sessions, an engine, and a loop that does what the server's does,
 * without a socket or a clock.
 */
#include "talk.h"

#include "../check.h"
#include "belfry/duration.h"
#include "commands/commands.h"
#include "core/units.h"
#include "decode.h"

#include <string.h>

enum {
    ROUNDS_MAX = 1000000,
    STEP = 7, /* commands at a time: a number that divides no other */
};

/* --- the service --- */

static void be_ready(void *context)
{
    struct talk *talk = context;
    talk->ready++;
}

static void be_gone(void *context)
{
    struct talk *talk = context;
    talk->gone++;
}

static void shut(void *context)
{
    struct talk *talk = context;
    talk->is_shut = true;
}

static int inform(void *context, struct bel_view section, const struct bel_scope *scope,
                  struct bel_buffer *out)
{
    (void)context;
    return bel__buffer_append_format(out, "# %.*s\r\n%s\r\n", (int)section.bytes,
                                     (const char *)section.data,
                                     scope != NULL ? "limited:1" : "key:value");
}

static int back_up(void *context, struct bel_view path, struct bel_background_task *task,
                   struct bel_why *why)
{
    struct talk *talk = context;
    if (path.bytes == 0 || path.bytes >= sizeof talk->backup) {
        return bel__why_say(why, BEL_EIO, "there is no such path\r\n+OK");
    }
    memcpy(talk->backup, path.data, path.bytes);
    talk->backup[path.bytes] = 0;
    if (talk->takes_a_while) talk->task = task;
    return talk->takes_a_while ? BEL_BACKGROUND_LATER : 0;
}

static void take_turn(struct talk *talk)
{
    talk->next = bel_backend_turn(bel_engine_backend(talk->engine), talk->now);
}

void talk_advance(struct talk *talk, uint64_t ms)
{
    uint64_t end = talk->now.boot.ns + ms * NS_PER_MS;
    take_turn(talk);
    for (unsigned rounds = 0; talk->next.due.ns <= end; rounds++) {
        CHECK(rounds < ROUNDS_MAX);
        uint64_t now = talk->now.boot.ns;
        uint64_t left = talk->next.due.ns > now ? talk->next.due.ns - now : 0;
        left = (left + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;
        if (left > end - now) left = end - now;
        talk->now.boot.ns += left;
        talk->now.wall.ms += (int64_t)(left / NS_PER_MS);
        take_turn(talk);
    }
    uint64_t left = end - talk->now.boot.ns;
    talk->now.boot.ns += left;
    talk->now.wall.ms += (int64_t)(left / NS_PER_MS);
    take_turn(talk);
}

static int advance_to(void *context, const struct bel_clock_move *move,
                      struct bel_background_task *task)
{
    struct talk *talk = context;
    (void)task;
    if (move->is_set && move->to.ms < talk->now.wall.ms) return BEL_EINVAL;
    talk_advance(talk, move->is_set ? (uint64_t)(move->to.ms - talk->now.wall.ms) : move->by_ms);
    return 0;
}

void talk_wait(struct talk *talk, uint64_t ms)
{
    talk->now.real.ns += ms * NS_PER_MS;
    talk_settle(talk);
}

/* --- the stage --- */

void talk_open(struct talk *talk)
{
    memset(talk, 0, sizeof *talk);
    talk->now.boot.ns = UINT64_C(5000) * 1000 * NS_PER_MS;
    talk->now.real.ns = NS_PER_MS;
    talk->now.wall.ms = TALK_START;
    CHECK(bel_zones_open(NULL, &talk->zones) == 0);
    struct bel_engine_options options = {.now = talk->now, .zones = talk->zones};
    CHECK(bel_engine_open(&options, &talk->engine, NULL) == 0);
    talk->service = (struct bel_service){.zones = talk->zones,
                                         .now = &talk->now,
                                         .calls = &talk->calls,
                                         .payload_bytes_max = BEL_PAYLOAD_BYTES_DEFAULT,
                                         .info = inform,
                                         .backup = back_up,
                                         .shutdown = shut,
                                         .advance = advance_to,
                                         .gone = be_gone,
                                         .context = talk};
}

void talk_close(struct talk *talk)
{
    unsigned made = talk->closed;
    for (unsigned i = 0; i < TALK_SESSIONS; i++) {
        if (talk->sessions[i] != NULL) made++;
        bel__session_destroy(talk->sessions[i]);
    }
    for (unsigned rounds = 0; talk->gone < made; rounds++) {
        CHECK(rounds < ROUNDS_MAX);
        take_turn(talk);
    }
    bel__call_pool_finish(&talk->calls);
    bel_engine_close(talk->engine);
    bel_zones_close(talk->zones);
}

struct bel_session *talk_session(struct talk *talk, unsigned number)
{
    CHECK(number >= 1 && number <= TALK_SESSIONS);
    struct bel_session **session = &talk->sessions[number - 1];
    if (*session == NULL) {
        struct bel_session_owner owner = {
            .backend = bel_engine_backend(talk->engine), .ready = be_ready, .context = talk};
        CHECK(bel__session_create(&talk->service, &owner, session) == 0);
        bel__session_introduce(*session, number, "127.0.0.1:1234");
    }
    return *session;
}

static bool step_all(struct talk *talk)
{
    bool has_moved = false;
    for (unsigned i = 0; i < TALK_SESSIONS; i++) {
        if (talk->sessions[i] == NULL) continue;
        while (bel__session_step(talk->sessions[i], STEP)) {
            has_moved = true;
        }
    }
    return has_moved;
}

void talk_settle(struct talk *talk)
{
    unsigned ready = talk->ready - 1;
    for (unsigned rounds = 0; talk->ready != ready; rounds++) {
        CHECK(rounds < ROUNDS_MAX);
        do {
            ready = talk->ready;
            (void)step_all(talk);
            take_turn(talk);
        } while (talk->next.due.ns <= talk->now.boot.ns);
    }
}

void talk_receive(struct talk *talk, unsigned number, const void *data, size_t bytes)
{
    struct bel_session *session = talk_session(talk, number);
    const char *at = data;
    size_t piece = talk->is_slow ? 1 : bytes;
    for (size_t done = 0; done < bytes; done += piece) {
        CHECK(bel__session_receive(session, at + done, piece) == 0);
        if (talk->is_slow) (void)bel__session_step(session, STEP);
    }
}

const char *talk_heard(struct talk *talk, unsigned number)
{
    static char text[TALK_TEXT_BYTES];
    struct bel_buffer *out = bel__session_output(talk_session(talk, number));
    FILE *file = fmemopen(text, sizeof text, "w");
    CHECK(file != NULL);
    while (out->count > 0) {
        struct answer answer;
        struct bel_view bytes = {bel__buffer_data(out), out->count};
        size_t used = answer_decode(bytes, &answer);
        CHECK(used > 0);
        answer_show(&answer, file);
        (void)fputc('\n', file);
        answer_free(&answer);
        bel__buffer_consume(out, used);
    }
    (void)fputc(0, file);
    CHECK(fclose(file) == 0);
    return text;
}

/* --- names --- */

static char *value_of(struct talk *talk, const char *name, size_t bytes)
{
    for (size_t i = 0; i < talk->names_count; i++) {
        if (strncmp(talk->names[i].name, name, bytes) == 0 && talk->names[i].name[bytes] == 0) {
            return talk->names[i].value;
        }
    }
    return NULL;
}

static void remember(struct talk *talk, struct bel_view name, struct bel_view value)
{
    CHECK(talk->names_count < TALK_NAMES_MAX);
    CHECK(name.bytes < TALK_NAME_BYTES && value.bytes < TALK_VALUE_BYTES);
    size_t at = talk->names_count++;
    memcpy(talk->names[at].name, name.data, name.bytes);
    memcpy(talk->names[at].value, value.data, value.bytes);
    talk->names[at].name[name.bytes] = talk->names[at].value[value.bytes] = 0;
}

/* Puts the values of names in their place. */
static void fill_in(struct talk *talk, const char *line, size_t bytes, char *out, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++) {
        const char *end = line[i] == '{' ? memchr(line + i, '}', bytes - i) : NULL;
        const char *value = NULL;
        if (end != NULL) value = value_of(talk, line + i + 1, (size_t)(end - line) - i - 1);
        CHECK(used + TALK_VALUE_BYTES < room);
        if (value == NULL) {
            out[used++] = line[i];
            continue;
        }
        used += (size_t)snprintf(out + used, room - used, "%s", value);
        i = (size_t)(end - line);
    }
    out[used] = 0;
}

static bool is_like(struct talk *talk, const char *pattern, const char *text);

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* Whether what follows a name can follow a value in the text; the shortest is remembered. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as a line has holes */
static bool is_like_named(struct talk *talk, const char *pattern, const char *text)
{
    const char *end = strchr(pattern, '}');
    CHECK(end != NULL);
    struct bel_view name = {pattern + 1, (size_t)(end - pattern) - 1};
    for (size_t bytes = 1; is_letter(text[bytes - 1]); bytes++) {
        if (!is_like(talk, end + 1, text + bytes)) continue;
        remember(talk, name, (struct bel_view){text, bytes});
        return true;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static bool is_like(struct talk *talk, const char *pattern, const char *text)
{
    for (; *pattern != 0; pattern++, text++) {
        if (pattern[0] == '{' && pattern[1] >= 'a' && pattern[1] <= 'z') {
            return is_like_named(talk, pattern, text);
        }
        if (strncmp(pattern, "...", 3) == 0) {
            while (!is_like(talk, pattern + 3, text)) {
                if (*text++ == 0) return false;
            }
            return true;
        }
        if (*pattern != *text) return false;
    }
    return *text == 0;
}

/* --- conversations --- */

/* The number of a line that is said, or 0; what is done to the stage is said to the first. */
static unsigned number_of(const char *line)
{
    if (line[0] == '>' || line[0] == '!') return 1;
    return line[0] >= '1' && line[0] <= '9' && line[1] == '>' ? (unsigned)(line[0] - '0') : 0;
}

static void say(struct talk *talk, unsigned number, const char *line, size_t bytes)
{
    char words[2 * TALK_VALUE_BYTES + 4096];
    if (bytes > 0 && line[0] == ' ') {
        line++;
        bytes--;
    }
    if (bytes > 0) {
        fill_in(talk, line, bytes, words, sizeof words - 2);
        size_t said = strlen(words);
        memcpy(words + said, "\r\n", 3);
        talk_receive(talk, number, words, said + 2);
    }
    talk_settle(talk);
}

/* The next line that is to be heard, which is not empty; false if none is. */
static bool next_expected(const char **at, char *out, size_t room)
{
    while (**at != 0 && number_of(*at) == 0) {
        size_t bytes = strcspn(*at, "\n");
        const char *line = *at;
        *at += bytes + (line[bytes] == '\n');
        if (bytes == 0 || line[0] == '#') continue;
        CHECK(bytes < room);
        memcpy(out, line, bytes);
        out[bytes] = 0;
        return true;
    }
    return false;
}

static void listen(struct talk *talk, unsigned number, const char **at)
{
    static char heard[TALK_TEXT_BYTES], expected[8192], filled[16384];
    (void)snprintf(heard, sizeof heard, "%s", talk_heard(talk, number));
    char *line = heard;
    while (next_expected(at, expected, sizeof expected)) {
        char *end = strchr(line, '\n');
        if (end == NULL) fprintf(stderr, "heard nothing, want %s\n", expected);
        CHECK(end != NULL);
        *end = 0;
        fill_in(talk, expected, strlen(expected), filled, sizeof filled);
        if (!is_like(talk, filled, line)) {
            fprintf(stderr, "heard %s\n want %s\n", line, filled);
            CHECK(false);
        }
        line = end + 1;
    }
    if (*line != 0) fprintf(stderr, "heard as well: %s", line);
    CHECK(*line == 0);
}

static bool let_in(void *context, const struct bel_key_attempt *attempt, struct bel_grant *out)
{
    struct bel_view user = attempt->user, key = attempt->key;
    static const char *const users[] = {"", "reader", "worker", "root", "some"};
    static const unsigned may[] = {1U << BEL_PERMISSION_READ | 1U << BEL_PERMISSION_WRITE |
                                       1U << BEL_PERMISSION_WORK,
                                   1U << BEL_PERMISSION_READ, 1U << BEL_PERMISSION_WORK, ~0U, ~0U};
    static struct bel_scope scope; /* of "some" */
    (void)context;
    if (scope.count == 0) {
        CHECK(bel__scope_add(&scope, BEL_VIEW("mail")));
        CHECK(bel__scope_add(&scope, BEL_VIEW("sms.*")));
    }
    if (key.bytes != 6 || memcmp(key.data, "secret", 6) != 0) return false;
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        if (user.bytes != strlen(users[i])) continue;
        if (user.bytes > 0 && memcmp(user.data, users[i], user.bytes) != 0) continue;
        *out = (struct bel_grant){may[i], i == 4 ? &scope : NULL, i};
        return true;
    }
    return false;
}

/* !auth, !system, !wait 5s, !close 2, !closing 1 */
static void direct(struct talk *talk, const char *line)
{
    char word[16] = "", value[16] = "";
    CHECK(sscanf(line, "!%15s %15[^\n]", word, value) >= 1);
    unsigned number = (unsigned)(value[0] - '0');
    uint64_t ms;
    if (strcmp(word, "auth") == 0) {
        talk->service.authenticate = let_in;
    } else if (strcmp(word, "system") == 0) {
        talk->service.advance = NULL;
    } else if (strcmp(word, "wait") == 0) {
        CHECK(bel_duration_parse(value, strlen(value), &ms, NULL) == 0);
        talk_wait(talk, ms);
    } else if (strcmp(word, "close") == 0) {
        bel__session_destroy(talk_session(talk, number));
        talk->sessions[number - 1] = NULL;
        talk->closed++;
        talk_settle(talk);
    } else {
        CHECK(strcmp(word, "closing") == 0);
        CHECK(bel__session_is_closing(talk_session(talk, number)));
    }
}

void talk_go_on(struct talk *talk, const char *text)
{
    char before[8];
    const char *at = text;
    CHECK(!next_expected(&at, before, sizeof before));
    while (*at != 0) {
        unsigned number = number_of(at);
        size_t bytes = strcspn(at, "\n");
        CHECK_NOTE("at %.*s", (int)(bytes < 200 ? bytes : 200), at);
        bool is_direction = at[0] == '!';
        const char *after = at + bytes + (at[bytes] == '\n');
        if (is_direction) {
            direct(talk, at);
            CHECK(!next_expected(&after, before, sizeof before));
        } else {
            const char *line = strchr(at, '>') + 1;
            say(talk, number, line, bytes - (size_t)(line - at));
        }
        at = after;
        if (!is_direction) listen(talk, number, &at);
    }
}

void talk_run(const char *text)
{
    static struct talk talk;
    for (int i = 0; i < 2; i++) {
        talk_open(&talk);
        talk.is_slow = i == 1;
        talk_go_on(&talk, text);
        talk_close(&talk);
    }
}
