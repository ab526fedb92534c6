/* SPDX-License-Identifier: MIT */

/*
 * The plans of the topic are listed first, page by page, and cancelled or named afterwards: a plan
 * that is cancelled while its page is open would move the pages that follow.
 *
 * Naming is optional: it looks at the first pages only, since the server cannot list plans alone,
 * and a key without the permission "read" names none.
 */
#include "cli/import_prune.h"

#include "cli/cli.h"
#include "cli/print.h"
#include "core/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CURSOR_BYTES = 512,
    SHOWN_MAX = 20, /* plans that are named */
    TEXT_BYTES = 100,
    IDS_MAX = 100, /* of one CANCEL */
    ROOM_FIRST = 64,
    PAGES_MAX = 10, /* of a list for names only */
    HASH_DIGITS = 16,
};

static const char prefix[] = "crontab-";

/* A plan that is not in the file. */
struct stale {
    char id[IMPORT_PLAN_ID_BYTES], text[TEXT_BYTES]; /* its rule and its command */
};

struct pruning {
    const struct cli_connect *connect;
    struct bel_client *client;
    struct bel_view topic;
    const struct import_seen *seen;
    bool cancels;
    struct stale *stale;
    size_t count, room;
};

/* --- the ids of the file --- */

int bel__import_seen_add(struct import_seen *seen, struct bel_view id)
{
    if (seen->count == seen->room) {
        size_t room = seen->room > 0 ? 2 * seen->room : ROOM_FIRST;
        void *larger = realloc(seen->ids, room * sizeof seen->ids[0]);
        if (larger == NULL) return BEL_ENOMEM;
        seen->ids = larger;
        seen->room = room;
    }
    (void)snprintf(seen->ids[seen->count++], IMPORT_PLAN_ID_BYTES, "%.*s", (int)id.bytes,
                   (const char *)id.data);
    return 0;
}

void bel__import_seen_finish(struct import_seen *seen)
{
    free(seen->ids);
    *seen = (struct import_seen){0};
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* --- the plans of the topic --- */

/* Returns whether an id is one that bel__import_id() makes for a line of a crontab: the prefix and
 * a hash of 16 digits. Plans of users may begin with the prefix, too. */
static bool is_made(struct bel_view id)
{
    const char *text = id.data;
    size_t before = sizeof prefix - 1;
    if (id.bytes != before + HASH_DIGITS || memcmp(text, prefix, before) != 0) return false;
    for (size_t i = before; i < id.bytes; i++) {
        if (text[i] == '\0' || strchr("0123456789abcdef", text[i]) == NULL) return false;
    }
    return true;
}

/* Keeps a plan of a crontab that is not in the file. Returns CLI_OK or CLI_FAILED. */
static int keep(struct pruning *pruning, const struct bel_value *timer)
{
    const struct bel_value *id = bel_value_find(timer, "id"), *rule = bel_value_find(timer, "cron");
    const struct bel_value *payload = bel_value_find(timer, "payload");
    char name[IMPORT_PLAN_ID_BYTES];
    if (id == NULL || !is_made(id->text) || rule == NULL) return CLI_OK;
    if (rule->text.bytes == 0 || payload == NULL) return CLI_OK;
    size_t bytes = id->text.bytes;
    memcpy(name, id->text.data, bytes);
    name[bytes] = '\0';
    if (pruning->seen->count > 0 && bsearch(name, pruning->seen->ids, pruning->seen->count,
                                            IMPORT_PLAN_ID_BYTES, compare) != NULL) {
        return CLI_OK;
    }
    if (pruning->count == pruning->room) {
        size_t room = pruning->room > 0 ? 2 * pruning->room : ROOM_FIRST;
        struct stale *larger = realloc(pruning->stale, room * sizeof larger[0]);
        if (larger == NULL) {
            fprintf(stderr, "belfry: out of memory\n");
            return CLI_FAILED;
        }
        pruning->stale = larger;
        pruning->room = room;
    }
    struct stale *stale = &pruning->stale[pruning->count++];
    memcpy(stale->id, name, bytes + 1);
    (void)snprintf(stale->text, sizeof stale->text, "%.*s %.*s", (int)rule->text.bytes,
                   (const char *)rule->text.data, (int)payload->text.bytes,
                   (const char *)payload->text.data);
    return CLI_OK;
}

static int refuse(const struct pruning *pruning, int err, const struct bel_value *reply)
{
    if (err) return bel__connect_failed(pruning->connect, err);
    return bel__connect_refused(reply);
}

/* Returns whether only names were wanted, and the key may not read them. */
static bool is_optional(const struct pruning *pruning, const struct bel_value *reply)
{
    if (pruning->cancels || reply->type != BEL_VALUE_ERROR) return false;
    return bel__view_is(bel_value_code(reply), "NOPERM");
}

static int list(struct pruning *pruning)
{
    char cursor[CURSOR_BYTES];
    size_t bytes = 0;
    unsigned pages = 0;
    do {
        if (!pruning->cancels && pages++ == PAGES_MAX) break;
        const struct bel_view args[] = {BEL_VIEW("LIST"),      pruning->topic,    BEL_VIEW("STATE"),
                                        BEL_VIEW("scheduled"), BEL_VIEW("COUNT"), BEL_VIEW("1000"),
                                        BEL_VIEW("CURSOR"),    {cursor, bytes}};
        const struct bel_value *reply;
        int err = bel_client_call(pruning->client, args, bytes > 0 ? 8 : 6, &reply);
        if (err == 0 && is_optional(pruning, reply)) break;
        bool is_page = err == 0 && reply->type == BEL_VALUE_LIST && reply->count == 2;
        if (!is_page) return refuse(pruning, err, reply);
        for (size_t i = 0; i < reply->items[1].count; i++) {
            if (keep(pruning, &reply->items[1].items[i]) != CLI_OK) return CLI_FAILED;
        }
        bytes = reply->items[0].text.bytes;
        if (bytes > sizeof cursor) return CLI_FAILED;
        if (bytes > 0) memcpy(cursor, reply->items[0].text.data, bytes);
    } while (bytes > 0);
    return CLI_OK;
}

/* --- cancelling and naming --- */

static void name_all(const struct pruning *pruning)
{
    for (size_t i = 0; i < pruning->count && i < SHOWN_MAX; i++) {
        const struct stale *stale = &pruning->stale[i];
        fprintf(stderr,
                "belfry: '%s' of an earlier import is not in the file, and goes on: ", stale->id);
        for (const char *at = stale->text; *at != '\0'; at++) {
            (void)fputc((unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at, stderr);
        }
        (void)fputc('\n', stderr);
    }
    if (pruning->count > SHOWN_MAX) {
        fprintf(stderr, "belfry: %zu more plans are not in the file\n", pruning->count - SHOWN_MAX);
    }
    if (pruning->count == 0) return;
    fprintf(stderr,
            "        to cancel all plans of crontabs that are not in the file: import it with "
            "--prune; or one: belfry cancel %.*s %s\n",
            (int)pruning->topic.bytes, (const char *)pruning->topic.data, pruning->stale[0].id);
}

static int cancel_all(const struct pruning *pruning, uint64_t *out_cancelled)
{
    struct bel_view args[2 + IDS_MAX] = {BEL_VIEW("CANCEL"), pruning->topic};
    for (size_t i = 0; i < pruning->count;) {
        size_t count = 0;
        for (; count < IDS_MAX && i < pruning->count; count++, i++) {
            const char *id = pruning->stale[i].id;
            args[2 + count] = (struct bel_view){id, strlen(id)};
            fprintf(stderr, "belfry: cancelled '%s', which is not in the file\n", id);
        }
        const struct bel_value *reply;
        int err = bel_client_call(pruning->client, args, 2 + count, &reply);
        bool is_done = err == 0 && reply->type == BEL_VALUE_NUMBER;
        if (!is_done) return refuse(pruning, err, reply);
        *out_cancelled += (uint64_t)reply->number;
    }
    return CLI_OK;
}

int bel__import_prune(const struct cli_connect *connect, struct bel_client *client,
                      const char *topic, struct import_seen *seen, bool cancels,
                      uint64_t *out_cancelled)
{
    struct pruning pruning = {.connect = connect,
                              .client = client,
                              .topic = {topic, strlen(topic)},
                              .seen = seen,
                              .cancels = cancels};
    if (seen->count > 0) qsort(seen->ids, seen->count, sizeof seen->ids[0], compare);
    int status = list(&pruning);
    if (status == CLI_OK && cancels) status = cancel_all(&pruning, out_cancelled);
    if (status == CLI_OK && !cancels) name_all(&pruning);
    free(pruning.stale);
    return status;
}
