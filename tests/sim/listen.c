/* SPDX-License-Identifier: MIT */

/*
 * What clients hear, byte for byte, against what the engine has told their sessions. The engine's
 * answers are the judge's business; here it is whether they arrive: each as it was given, with the
 * client who asked, in its turn, and not before it was given.
 */
#include "speakers.h"

#include "../session/decode.h"
#include "../session/spoken.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void wrong(const struct speaker *speaker, const struct said *said, const char *what)
{
    static const char *const owns[OWNS] = {"PING", "CLIENT ID", "HELLO",  "GRAZE", "INFO", "MULTI",
                                           "QUIT", "nonsense",  "inside", "EXEC",  "AUTH"};
    const struct order *order = said->order;
    world_fail(speaker->world, "heard", "client %" PRIu64 ", #%" PRIu64 " %s: %s", speaker->number,
               order != NULL ? order->number : said->number,
               order != NULL ? bel_verb_name(order->requests[0].command.verb) : owns[said->own],
               what);
}

/* --- what sessions answer by themselves --- */

static bool begins_with(struct bel_view text, const char *start)
{
    return text.bytes >= strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

static bool is_number(const struct answer *answer, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return answer->kind == ANSWER_BULK && heard_same(answer->text, view_of(text));
}

static bool is_hello(const struct answer *answer, const struct said *said)
{
    if (answer->kind != (said->version == 3 ? ANSWER_MAP : ANSWER_ARRAY)) return false;
    const struct answer *version = answer_field(answer, "proto");
    const struct answer *id = answer_field(answer, "id");
    return version != NULL && version->number == said->version && id != NULL &&
           id->number == (int64_t)said->number;
}

static bool is_own_answer(const struct answer *answer, const struct said *said)
{
    switch (said->own) {
    case OWN_PING:
        return is_number(answer, said->number);
    case OWN_ID:
        return answer->kind == ANSWER_INTEGER && answer->number == (int64_t)said->number;
    case OWN_HELLO:
        return is_hello(answer, said);
    case OWN_UNKNOWN:
        return answer->kind == ANSWER_ERROR && begins_with(answer->text, "ERR unknown command");
    case OWN_INFO:
        return answer->kind == ANSWER_BULK && begins_with(answer->text, "# Server");
    case OWN_TRANSACTION:
    case OWN_AUTH:
    case OWN_QUIT:
        return answer->kind == ANSWER_SIMPLE;
    case OWN_INSIDE:
        return answer->kind == ANSWER_ERROR && begins_with(answer->text, "ERR not executed");
    case OWN_EXEC:
        return answer->kind == ANSWER_ERROR && begins_with(answer->text, "EXECABORT ");
    default:
        return answer->kind == ANSWER_ERROR && begins_with(answer->text, "ERR Protocol error");
    }
}

/* --- what the engine has answered --- */

/* As the protocol has them. */
static int spoken_error(int err)
{
    if (err == BEL_ENOMEM || err == BEL_EBUSY) return BEL_EFULL;
    if (err == BEL_ERANGE) return BEL_EINVAL;
    return err == BEL_ECORRUPT || err == BEL_ECLOSED ? BEL_EIO : err;
}

static bool have_same_tokens(const struct bel_reply *one, const struct bel_reply *other)
{
    for (size_t i = 0; i < one->deliveries.count; i++) {
        if (!heard_same(one->deliveries.items[i].token, other->deliveries.items[i].token)) {
            return false;
        }
    }
    return true;
}

/* What comparing leaves out because backends may differ in it. */
static bool has_same_rest(enum bel_verb verb, const struct bel_reply *one,
                          const struct bel_reply *other)
{
    switch (verb) {
    case BEL_VERB_CLAIM:
        return have_same_tokens(one, other);
    case BEL_VERB_LIST:
        return heard_same(one->timers.cursor, other->timers.cursor);
    case BEL_VERB_EXPLAIN:
        if (one->names.count != other->names.count) return false;
        for (size_t i = 0; i < one->names.count; i++) {
            if (!heard_same(one->names.items[i], other->names.items[i])) return false;
        }
        return true;
    default:
        return true;
    }
}

/* Whether it could have been said in a version: what is not there, and what only the new has. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as an answer */
static bool is_of_version(const struct answer *answer, int version)
{
    bool is_new = answer->mark == '_' || answer->mark == '%' || answer->mark == '#';
    bool is_old = answer->kind == ANSWER_NIL && answer->mark != '_';
    if (version == 3 ? is_old : is_new) return false;
    for (size_t i = 0; i < answer->count; i++) {
        if (!is_of_version(&answer->items[i], version)) return false;
    }
    return true;
}

static void compare(const struct speaker *speaker, const struct said *said,
                    const struct answer *answer, const struct bel_reply *heard)
{
    static struct differ differ;
    struct heard engine = *said->order->passed;
    struct heard client = {.verb = engine.verb, .reply = *heard};
    differ.made_count = 0;
    engine.reply.err = spoken_error(engine.reply.err);
    if (heard->err == BEL_EFULL && has_fault(speaker->world, FAULT_MEMORY)) return;
    if (differ_in(&differ, &engine, &client)) {
        wrong(speaker, said, differ.text);
    } else if (heard->err == 0 && !has_same_rest(engine.verb, &engine.reply, heard)) {
        wrong(speaker, said, "what it hears is not what the engine has said");
    } else if (!is_of_version(answer, said->version) &&
               !has_fault(speaker->world, FAULT_MEMORY)) { /* there was none for HELLO */
        wrong(speaker, said, "the answer is in another version of the protocol");
    }
}

/* The client knows now what it was given. */
static void know(const struct speaker *speaker, const struct order *order)
{
    const struct bel_reply *reply = &order->passed->reply;
    if (order->passed->verb != BEL_VERB_CLAIM || reply->err != 0 || speaker->is_deaf) return;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        speaker->world->handed[order->first_handed + i]->is_known = true;
    }
}

/* There was no memory, and that is said. */
static bool is_short(const struct speaker *speaker, const struct answer *answer)
{
    bool is_said = begins_with(answer->text, "FULL ") ||
                   begins_with(answer->text, "ERR Protocol error: out of memory");
    return answer->kind == ANSWER_ERROR && is_said && has_fault(speaker->world, FAULT_MEMORY);
}

/* Of two commands that are the same, there was no memory for the first: the second was taken for
 * it when the session submitted it. */
static bool is_mixed_up(const struct speaker *speaker)
{
    for (size_t i = 0; i < speaker->answered; i++) {
        const struct said *said = &speaker->said[i];
        if (said->order != NULL && said->is_submitted && said->is_short) return true;
    }
    return false;
}

static void hear_order(struct speaker *speaker, const struct said *said,
                       const struct answer *answer)
{
    static struct spoken_reply spoken;
    const struct order *order = said->order;
    enum bel_verb verb = order->requests[ENGINE_SIDE].command.verb;
    bool is_nothing = answer->kind == ANSWER_ARRAY && answer->count == 0;
    if (order->is_sent_home) {
        if (!is_nothing && !said->is_short) {
            wrong(speaker, said, "it is sent home with something");
        }
        return;
    }
    if (order->passed == NULL) {
        if (said->is_short || is_mixed_up(speaker)) return;
        char what[200];
        (void)snprintf(what, sizeof what, "it is answered before the engine has answered: %.*s",
                       answer->text.bytes < 120 ? (int)answer->text.bytes : 120,
                       answer->text.bytes > 0 ? (const char *)answer->text.data : "");
        wrong(speaker, said, what);
        return;
    }
    spoken_answer(verb, answer, &spoken);
    compare(speaker, said, answer, &spoken.reply);
    if (spoken.reply.err == 0) know(speaker, order);
    spoken_free(&spoken);
}

/* --- bytes --- */

static void hear(struct speaker *speaker, const struct answer *answer)
{
    if (speaker->answered == speaker->said_count) {
        world_fail(speaker->world, "heard", "client %" PRIu64 " hears what it has not asked for",
                   speaker->number);
        return;
    }
    struct said *said = &speaker->said[speaker->answered++];
    said->is_short = is_short(speaker, answer);
    if (said->refusal != NULL) {
        bool is_refused = answer->kind == ANSWER_ERROR && begins_with(answer->text, said->refusal);
        if (!is_refused) wrong(speaker, said, "it is not refused as it should be");
    } else if (said->order != NULL) {
        say(speaker->world, "  client %" PRIu64 " hears #%" PRIu64 "\n", speaker->number,
            said->order->number);
        hear_order(speaker, said, answer);
    } else if (!is_own_answer(answer, said) && !said->is_short) {
        wrong(speaker, said, "it is not the answer to what was said");
    }
}

void speaker_listen(struct speaker *speaker, size_t bytes)
{
    struct bel_buffer *out = bel__session_output(speaker->session);
    if (bytes == 0) return;
    world_hash(speaker->world, bel__buffer_data(out), bytes);
    if (bel__buffer_append(&speaker->heard, bel__buffer_data(out), bytes) != 0) abort();
    bel__buffer_consume(out, bytes);
    while (speaker->heard.count > 0 && !speaker->world->has_failed) {
        struct answer answer;
        struct bel_view heard = {bel__buffer_data(&speaker->heard), speaker->heard.count};
        size_t used = answer_decode(heard, &answer);
        if (used == 0) return;
        hear(speaker, &answer);
        answer_free(&answer);
        bel__buffer_consume(&speaker->heard, used);
    }
}

void speaker_check_all(const struct speaker *speaker)
{
    if (has_fault(speaker->world, FAULT_MEMORY)) return;
    if (bel__session_is_closing(speaker->session)) return;
    if (speaker->heard.count > 0) {
        world_fail(speaker->world, "heard", "client %" PRIu64 " hears a part of an answer",
                   speaker->number);
    }
    if (speaker->answered == speaker->said_count) return;
    const struct said *said = &speaker->said[speaker->answered];
    bool is_received = speaker->wire.count == 0 && !speaker->has_more;
    if (said->order == NULL || said->refusal != NULL) {
        if (is_received) wrong(speaker, said, "it is not answered");
    } else if (said->order->passed != NULL) {
        wrong(speaker, said, "the engine has answered, and it is not heard");
    } else if (is_received && !said->is_submitted && !bel__caller_is_held(&speaker->caller)) {
        wrong(speaker, said, "it was said, and is not done");
    }
}
