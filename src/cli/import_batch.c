/* SPDX-License-Identifier: MIT */

/*
 * A key that may schedule but not read gets no replies to GET; its lines count as imported, and
 * "update" then keeps what exists.
 */
#include "cli/import_batch.h"

#include "core/view.h"

#include <stdlib.h>
#include <string.h>

int bel__import_batch_init(struct import_batch *batch)
{
    batch->commands = calloc(IMPORT_BATCH_MAX, sizeof batch->commands[0]);
    batch->lines = calloc(IMPORT_BATCH_MAX, sizeof batch->lines[0]);
    if (batch->commands == NULL || batch->lines == NULL) return BEL_ENOMEM;
    /* Without zones, a time with a zone counts as another time. */
    if (bel_zones_open(NULL, &batch->zones) != 0) batch->zones = NULL;
    return 0;
}

static void clear(struct import_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        bel__import_clear(&batch->commands[i]);
        free(batch->lines[i].text);
        batch->lines[i] = (struct import_line){0};
    }
    batch->count = batch->bytes = 0;
}

void bel__import_batch_finish(struct import_batch *batch)
{
    if (batch->commands != NULL && batch->lines != NULL) clear(batch);
    free(batch->commands);
    free(batch->lines);
    bel_zones_close(batch->zones);
}

bool bel__import_batch_has(const struct import_batch *batch, const struct import_command *command)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct import_command *other = &batch->commands[i];
        if (batch->lines[i].verdict != IMPORT_GOOD) continue;
        if (!bel__view_equal(other->args[IMPORT_ID], command->args[IMPORT_ID])) continue;
        if (bel__view_equal(other->args[IMPORT_TOPIC], command->args[IMPORT_TOPIC])) return true;
    }
    return false;
}

/* --- sending and receiving --- */

static int fail(struct import_batch *batch, size_t line, int err)
{
    batch->go_on = batch->lines[line].number;
    return bel__connect_failed(batch->connect, err);
}

static int send_get(struct import_batch *batch, size_t line)
{
    const struct import_command *command = &batch->commands[line];
    const struct bel_view args[] = {BEL_VIEW("GET"), command->args[IMPORT_TOPIC],
                                    command->args[IMPORT_ID]};
    return bel_client_send(batch->client, args, 3);
}

static int64_t number_of(const struct bel_value *timer, const char *name)
{
    const struct bel_value *value = bel_value_find(timer, name);
    return value != NULL ? value->number : 0;
}

/* Notes what exists: the fate if the line changes nothing. */
static void compare(struct import_batch *batch, size_t index, const struct bel_value *timer)
{
    struct import_line *line = &batch->lines[index];
    line->exists = bel_value_find(timer, "state") != NULL;
    if (!line->exists) return;
    bool is_same = bel__import_is_same(&batch->commands[index], timer, batch->zones);
    line->fate = is_same ? IMPORT_UNCHANGED : IMPORT_KEPT;
    line->created_ms = number_of(timer, "created_ms");
    line->due_ms = number_of(timer, "due_ms");
}

static int look_up(struct import_batch *batch)
{
    const struct bel_value *reply;
    int err = 0;
    for (size_t i = 0; i < batch->count && err == 0; i++) {
        if (batch->lines[i].verdict == IMPORT_GOOD) err = send_get(batch, i);
    }
    for (size_t i = 0; i < batch->count && err == 0; i++) {
        if (batch->lines[i].verdict != IMPORT_GOOD) continue;
        err = bel_client_receive(batch->client, &reply);
        if (err == 0) compare(batch, i, reply);
    }
    return err == 0 ? CLI_OK : fail(batch, 0, err);
}

/* Sets the value of CONFLICT of a line. */
static void choose_conflict(const struct import_batch *batch, size_t index)
{
    struct import_command *command = &batch->commands[index];
    struct bel_view *word = &command->args[command->count - 1];
    if (strcmp(batch->conflict, "update") != 0) return;
    *word = batch->lines[index].fate == IMPORT_KEPT ? BEL_VIEW("replace") : BEL_VIEW("keep");
}

static bool is_contest(const struct import_batch *batch)
{
    return strcmp(batch->conflict, "earliest") == 0 || strcmp(batch->conflict, "latest") == 0;
}

static int send_all(struct import_batch *batch)
{
    int err = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->lines[i].verdict != IMPORT_GOOD) continue;
        choose_conflict(batch, i);
        err = bel_client_send(batch->client, batch->commands[i].args, batch->commands[i].count);
        if (err == 0 && is_contest(batch)) err = send_get(batch, i);
        if (err) return fail(batch, 0, err);
    }
    return CLI_OK;
}

/* Returns whether an error would repeat for every line. */
static bool is_for_all(struct bel_view code)
{
    static const char *const codes[] = {"FULL", "LIMITED", "NOAUTH", "NOPERM", "IO"};
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (bel__view_is(code, codes[i])) return true;
    }
    return false;
}

/* Receives the timer after a contest of the line and the timer that existed. */
static int receive_winner(struct import_batch *batch, struct import_line *line)
{
    const struct bel_value *timer;
    int err = bel_client_receive(batch->client, &timer);
    if (err || line->fate == IMPORT_REFUSED || !line->exists) return err;
    if (number_of(timer, "created_ms") != line->created_ms ||
        number_of(timer, "due_ms") != line->due_ms) {
        line->fate = IMPORT_REPLACED;
    }
    return 0;
}

/* Receives the reply to a line, and tells what became of it. */
static int receive(struct import_batch *batch, size_t index)
{
    struct import_line *line = &batch->lines[index];
    const struct bel_value *reply;
    int err = bel_client_receive(batch->client, &reply);
    if (err) return fail(batch, index, err);
    const struct import_command *command = &batch->commands[index];
    if (reply->type == BEL_VALUE_ERROR) {
        if (is_for_all(bel_value_code(reply))) {
            batch->go_on = line->number;
            return bel__connect_refused(reply);
        }
        line->fate = IMPORT_REFUSED;
        batch->tell(batch->context, line, command, reply->text);
    } else if (line->exists && bel__view_is(command->args[command->count - 1], "replace")) {
        line->fate = IMPORT_REPLACED;
    }
    if (is_contest(batch)) err = receive_winner(batch, line);
    if (err) return fail(batch, index, err);
    if (line->fate != IMPORT_REFUSED) {
        batch->tell(batch->context, line, command, (struct bel_view){NULL, 0});
    }
    return CLI_OK;
}

int bel__import_batch_run(struct import_batch *batch)
{
    int status = look_up(batch);
    if (status == CLI_OK) status = send_all(batch);
    for (size_t i = 0; i < batch->count && status == CLI_OK; i++) {
        struct import_line *line = &batch->lines[i];
        if (line->verdict == IMPORT_GOOD) {
            status = receive(batch, i);
            continue;
        }
        line->fate = line->verdict == IMPORT_BAD ? IMPORT_REFUSED : IMPORT_SKIPPED;
        batch->tell(batch->context, line, &batch->commands[i], (struct bel_view){NULL, 0});
    }
    clear(batch);
    return status;
}
