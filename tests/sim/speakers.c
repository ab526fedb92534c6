/* SPDX-License-Identifier: MIT */

/*
 * Clients come, say what is drawn, one command behind the other, and leave: at once, in the middle
 * of a command or an answer; or by saying no more and reading to the end. Some do not read for a
 * while. Around a turn it goes as in the server's loop:
 *
 *     bytes come in, sessions step -> turn -> sessions that were answered step, bytes go out
 */
#include "speakers.h"

#include "../session/spoken.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES_MAX = 64 << 20,
    STRANGER_BYTES = 1000,
    KEYS_WRONG_MAX = 3,
    STALL_MAX = 12,
    DRAIN_TURNS_MAX = 20000, /* a PURGE may make one change in a turn */
    DRAIN_TURNS_FORCE = 30,  /* then those who do not read are left */
};

/* --- into sessions, and out of them --- */

static void enter(struct speaker *speaker)
{
    speaker->world->is_inside = true;
    memory_enter(true);
}

static void leave(struct speaker *speaker)
{
    memory_enter(false);
    speaker->world->is_inside = false;
}

static void step(struct speaker *speaker)
{
    unsigned commands = 1 + (unsigned)below(speaker->world, 8);
    enter(speaker);
    speaker->has_more = bel__session_step(speaker->session, commands);
    leave(speaker);
}

static void be_gone(void *context)
{
    struct speaker *speaker = context;
    bool is_dead = speaker->world->speakers->is_dead;
    memory_enter(false);
    speaker->is_gone = true;
    if (!is_dead) tap_check_gone(speaker);
    memory_enter(speaker->world->is_inside);
}

static void have_left(struct bel_caller *caller)
{
    (void)caller; /* it is the speakers' until the end */
}

static void hang_up(struct speaker *speaker)
{
    struct bel_session *session = speaker->session;
    say(speaker->world, "      client %" PRIu64 " is gone\n", speaker->number);
    speaker->session = NULL;
    enter(speaker);
    bel__session_destroy(session);
    leave(speaker);
    if (!speaker->world->speakers->is_dead) tap_check_waits(speaker);
    bel__caller_leave(&speaker->caller, have_left);
}

/* --- coming --- */

static struct speaker *speaker_create(struct speakers *speakers)
{
    struct speaker *speaker = calloc(1, sizeof *speaker);
    const struct config *config = &speakers->world->config;
    size_t bytes = (speakers->all_count + 1) * sizeof(void *);
    speakers->all = realloc(speakers->all, bytes);
    if (speaker == NULL || speakers->all == NULL) abort();
    speakers->all[speakers->all_count++] = speaker;
    speaker->world = speakers->world;
    speaker->number = speakers->all_count;
    speaker->version = 2;
    bel__caller_init(&speaker->caller, &speakers->tracker);
    speaker->service = (struct bel_service){.now = &speakers->world->now,
                                            .output_bytes_max = config->output_bytes_max,
                                            .commands_max = config->commands_max,
                                            .authenticate = config->has_keys ? key_check : NULL,
                                            .gone = be_gone,
                                            .context = speaker};
    bel__buffer_init(&speaker->wire, BYTES_MAX);
    bel__buffer_init(&speaker->heard, BYTES_MAX);
    return speaker;
}

/* NULL if there was no memory. */
static struct speaker *connect(struct speakers *speakers)
{
    struct speaker *speaker = speaker_create(speakers);
    struct bel_session_owner owner = {.backend = &speaker->caller.backend};
    enter(speaker);
    int err = bel__session_create(&speaker->service, &owner, &speaker->session);
    leave(speaker);
    speaker->is_gone = err != 0;
    if (err) return NULL;
    bel__session_introduce(speaker->session, speaker->number, "the simulator");
    say(speakers->world, "      client %" PRIu64 " is there\n", speaker->number);
    return speaker;
}

/* Somebody who can say something; NULL if there is no memory. */
static struct speaker *find_speaker(struct speakers *speakers)
{
    struct world *world = speakers->world;
    struct speaker **slot = &speakers->slots[below(world, world->config.speakers_max)];
    if (*slot != NULL && ((*slot)->has_ended || (*slot)->is_over)) {
        hang_up(*slot);
        *slot = NULL;
    }
    if (*slot == NULL) *slot = connect(speakers);
    return *slot;
}

/* --- saying --- */

static struct said *add_said(struct speaker *speaker)
{
    speaker->said = realloc(speaker->said, (speaker->said_count + 1) * sizeof *speaker->said);
    if (speaker->said == NULL) abort();
    struct said *said = &speaker->said[speaker->said_count++];
    *said = (struct said){.version = speaker->version};
    return said;
}

static void say_own(struct speaker *speaker, enum own own)
{
    static const struct {
        const char *text;
        bool has_number;
    } lines[OWNS] = {
        [OWN_PING] = {"ping ", true},
        [OWN_ID] = {"CLIENT ID", false},
        [OWN_HELLO] = {"HELLO ", true},
        [OWN_UNKNOWN] = {"GRAZE ", true},
        [OWN_INFO] = {"*1\r\n$4\r\nINFO", false},
        [OWN_TRANSACTION] = {"MULTI", false},
        [OWN_QUIT] = {"QUIT", false},
        [OWN_BROKEN] = {"*1\r\n:", true},
        [OWN_INSIDE] = {"SCHEDULE mail inside ID inside", true},
        [OWN_EXEC] = {"EXEC", false},
        [OWN_AUTH] = {"", false},
    };
    struct world *world = speaker->world;
    struct said *said = add_said(speaker);
    said->own = own;
    said->number = said->own == OWN_PING ? speaker->said_count * 1000 : speaker->number;
    uint64_t number = said->number;
    bool is_stranger = world->config.has_keys && speaker->key == KEY_NONE;
    bool is_open = own == OWN_QUIT || own == OWN_BROKEN || own == OWN_AUTH; /* to everybody */
    if (is_stranger && !is_open) said->refusal = "NOAUTH ";
    if (is_stranger) speaker->is_suspect = true;
    if (said->own == OWN_HELLO && is_stranger) {
        number = 3;
    } else if (said->own == OWN_HELLO) {
        number = 2 + below(world, 2);
        speaker->version = said->version = (int)number;
    }
    speaker->is_over = own == OWN_QUIT || own == OWN_BROKEN;
    char digits[24] = "";
    if (lines[said->own].has_number) (void)snprintf(digits, sizeof digits, "%" PRIu64, number);
    if (bel__buffer_append_format(&speaker->wire, "%s%s\r\n", lines[said->own].text, digits) != 0) {
        abort();
    }
}

/* A key, right or wrong, with or without the user. */
static void say_key(struct speaker *speaker, enum key key, bool is_right)
{
    struct world *world = speaker->world;
    const char *user = chance(world, 50) ? key_user(key) : "";
    const char *text = is_right ? key_text(key) : "no idea";
    struct said *said = add_said(speaker);
    said->own = OWN_AUTH;
    if (is_right) {
        speaker->key = key;
    } else {
        said->refusal = "NOAUTH ";
        speaker->keys_wrong++;
        speaker->is_suspect = true;
    }
    int err = user[0] == 0
                  ? bel__buffer_append_format(&speaker->wire, "*2\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n",
                                              strlen(text), text)
                  : bel__buffer_append_format(&speaker->wire,
                                              "*3\r\n$4\r\nAUTH\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                                              strlen(user), user, strlen(text), text);
    if (err) abort();
}

/* Perhaps authenticates before an order; must, if a stranger may not say anything so long. */
static void say_some_key(struct speaker *speaker, bool is_long)
{
    struct world *world = speaker->world;
    bool is_stranger = speaker->key == KEY_NONE;
    if (!world->config.has_keys) return;
    if (speaker->keys_wrong < KEYS_WRONG_MAX && chance(world, 4)) {
        say_key(speaker, KEY_ALL, false);
    }
    if (!(is_stranger ? is_long || chance(world, 70) : chance(world, 4))) return;
    say_key(speaker, chance(world, 70) ? KEY_ALL : (enum key)(1 + below(world, KEYS - 1)), true);
}

/* Something that sessions answer by themselves. */
static void say_some_own(struct speaker *speaker)
{
    struct world *world = speaker->world;
    bool is_end = chance(world, 4);
    enum own own = (enum own)(is_end ? OWN_QUIT + below(world, 2) : below(world, OWN_QUIT));
    if (own == OWN_UNKNOWN && chance(world, 70)) own = OWN_HELLO;
    if (own == OWN_INFO && speaker->key == KEY_TOPIC) own = OWN_PING; /* what it sees is open */
    say_own(speaker, own);
    if (own != OWN_TRANSACTION) return;
    say_own(speaker, OWN_INSIDE);
    say_own(speaker, OWN_EXEC);
}

/* Whether only clients that have authenticated may say this. */
static bool is_long(const struct bel_buffer *words)
{
    const uint8_t *text = bel__buffer_data(words);
    return words->count > STRANGER_BYTES || text[0] != '*' || text[2] != '\r'; /* ten words */
}

void speakers_say(struct speakers *speakers, struct order *order)
{
    struct world *world = speakers->world;
    struct speaker *speaker = find_speaker(speakers);
    if (speaker == NULL) return;
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    struct bel_buffer words;
    bel__buffer_init(&words, BYTES_MAX);
    spoken_command(command, &words);
    say_some_key(speaker, is_long(&words));
    struct said *said = add_said(speaker);
    said->order = order;
    if (world->config.has_keys) said->refusal = key_refusal(speaker->key, command);
    if (world->config.has_keys && speaker->key == KEY_NONE) speaker->is_suspect = true;
    if (bel__buffer_append(&speaker->wire, bel__buffer_data(&words), words.count) != 0) abort();
    bel__buffer_finish(&words);
    order->speaker = speaker;
    order->is_lost = true; /* until it is heard */
    order->is_over = said->refusal != NULL;
    say(world, "      client %" PRIu64 " says #%" PRIu64 "\n", speaker->number, order->number);
    if (chance(world, 20)) say_some_own(speaker);
}

/* --- before a turn --- */

static void receive(struct speaker *speaker)
{
    struct world *world = speaker->world;
    size_t bytes = speaker->wire.count, room = bel__session_room(speaker->session);
    if (chance(world, world->config.cut_in_100)) bytes = below(world, bytes + 1);
    if (bytes > room) bytes = room;
    if (bytes == 0) return;
    enter(speaker);
    (void)!bel__session_receive(speaker->session, bel__buffer_data(&speaker->wire), bytes);
    leave(speaker);
    bel__buffer_consume(&speaker->wire, bytes);
}

void speakers_step(struct speakers *speakers)
{
    for (unsigned i = 0; i < SPEAKERS_MAX; i++) {
        struct speaker *speaker = speakers->slots[i];
        if (speaker == NULL) continue;
        if (!speakers->tracker.is_draining) receive(speaker);
        step(speaker);
        bool is_quick = speaker->stalled == 0 && chance(speakers->world, 30);
        if (is_quick) speaker_listen(speaker, bel__session_output(speaker->session)->count);
    }
}

/* --- after a turn --- */

/* Whether nothing more will come of it: as the server's loop has it. */
static bool is_over(const struct speaker *speaker)
{
    bool is_draining = speaker->world->speakers->tracker.is_draining;
    bool has_ended = speaker->has_ended && speaker->wire.count == 0;
    bool is_waiting = speaker->caller.under_way == speaker->caller.waiting;
    if (bel__session_is_closing(speaker->session)) return true;
    if (speaker->has_more) return false;
    if (has_ended && is_waiting) return true;
    return (has_ended || is_draining) && bel__session_is_idle(speaker->session);
}

/* A server that hangs up has a reason. */
static void check_reason(const struct speaker *speaker)
{
    const struct world *world = speaker->world;
    if (!bel__session_is_closing(speaker->session)) return;
    if (speaker->is_over || speaker->is_suspect || has_fault(world, FAULT_MEMORY)) return;
    if (world->config.output_bytes_max > 0) return; /* it has not read */
    world_fail(speaker->world, "hung up", "the server hangs up on client %" PRIu64,
               speaker->number);
}

/* Whether it is still there afterwards. */
static bool listen_to(struct speaker *speaker)
{
    struct world *world = speaker->world;
    const struct bel_buffer *out = bel__session_output(speaker->session);
    if (speaker->stalled > 0) {
        speaker->stalled--;
    } else if (!world->speakers->tracker.is_draining && chance(world, world->config.stall_in_100)) {
        speaker->stalled = 1 + (unsigned)below(world, STALL_MAX);
    }
    if (speaker->stalled == 0) {
        bool is_cut = chance(world, world->config.cut_in_100);
        speaker_listen(speaker, is_cut ? below(world, out->count + 1) : out->count);
    }
    step(speaker); /* it may have waited for its answers, or its reader */
    for (int i = 0; i < 8 && speaker->stalled == 0 && out->count > 0; i++) {
        speaker_listen(speaker, out->count);
        step(speaker);
    }
    if (out->count > 0) return true;
    speaker_check_all(speaker);
    check_reason(speaker);
    return !is_over(speaker);
}

/* Somebody leaves; what is written by then may be lost on the way. */
static void leave_by_chance(struct speakers *speakers)
{
    struct world *world = speakers->world;
    struct speaker **slot = &speakers->slots[below(world, world->config.speakers_max)];
    if (*slot == NULL || !chance(world, world->config.hang_up_in_100)) return;
    if (chance(world, 30)) {
        (*slot)->has_ended = true;
        return;
    }
    size_t count = bel__session_output((*slot)->session)->count;
    bool is_nearly_all = count > 0 && chance(world, 50);
    (*slot)->is_deaf = chance(world, 50);
    speaker_listen(*slot, is_nearly_all ? count - 1 : below(world, count + 1));
    hang_up(*slot);
    *slot = NULL;
}

void speakers_listen(struct speakers *speakers)
{
    if (!speakers->tracker.is_draining) leave_by_chance(speakers);
    for (unsigned i = 0; i < SPEAKERS_MAX && !speakers->world->has_failed; i++) {
        struct speaker **slot = &speakers->slots[i];
        if (*slot == NULL || listen_to(*slot)) continue;
        hang_up(*slot);
        *slot = NULL;
    }
}

/* --- ends --- */

static bool is_anybody_there(const struct speakers *speakers)
{
    for (size_t i = 0; i < speakers->all_count; i++) {
        if (!speakers->all[i]->is_gone) return true;
    }
    return false;
}

static void hang_up_all(struct speakers *speakers)
{
    for (unsigned i = 0; i < SPEAKERS_MAX; i++) {
        if (speakers->slots[i] != NULL) hang_up(speakers->slots[i]);
        speakers->slots[i] = NULL;
    }
}

void speakers_drain(struct speakers *speakers)
{
    struct world *world = speakers->world;
    say(world, "      the server is stopped\n");
    world->is_inside = true;
    memory_enter(true);
    bel__request_tracker_drain(&speakers->tracker);
    memory_enter(false);
    world->is_inside = false;
    for (int i = 0; i < DRAIN_TURNS_MAX && is_anybody_there(speakers); i++) {
        if (i == DRAIN_TURNS_FORCE) hang_up_all(speakers);
        run_turn(world);
        if (world->has_failed || run_is_down(world)) return;
    }
    if (is_anybody_there(speakers) || speakers->tracker.under_way > 0) {
        world_fail(world, "drain", "the server is stopped, and does not come to an end");
    }
}

void speakers_kill(struct speakers *speakers)
{
    speakers->is_dead = true;
    hang_up_all(speakers);
    speakers->tracker.next = (struct bel_next){.wait = {BEL_NEVER}}; /* nothing is held back */
    (void)bel__request_tracker_turn(&speakers->tracker, speakers->world->now);
    tap_end(speakers);
    speakers->world->fresh.count = speakers->world->taken.count = 0;
    if (is_anybody_there(speakers)) {
        world_fail(speakers->world, "drain", "a session is left that nobody has");
    }
}

/* --- the beginning and the end --- */

static struct bel_mono stand_still(const struct bel_clock *clock)
{
    (void)clock;
    return (struct bel_mono){0};
}

void speakers_open(struct speakers *speakers)
{
    tap_init(speakers);
    bel__request_tracker_init(&speakers->tracker, &speakers->tap, &speakers->metrics,
                              &speakers->clock);
}

struct speakers *speakers_create(struct world *world)
{
    struct speakers *speakers = calloc(1, sizeof *speakers);
    if (speakers == NULL) abort();
    speakers->world = world;
    speakers->clock.mono = stand_still;
    if (!key_scope(&speakers->scope)) abort();
    return speakers;
}

void speakers_destroy(struct speakers *speakers)
{
    if (speakers == NULL) return;
    for (size_t i = 0; i < speakers->all_count; i++) {
        struct speaker *speaker = speakers->all[i];
        bel__buffer_finish(&speaker->wire);
        bel__buffer_finish(&speaker->heard);
        free(speaker->said);
        free(speaker);
    }
    free(speakers->all);
    free(speakers->orphans);
    free(speakers);
}
