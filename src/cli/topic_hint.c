/* SPDX-License-Identifier: MIT */

/* TOPIC tells whether the topic exists; TOPICS has the names that may be meant. */
#include "cli/topic_hint.h"

#include "core/similar.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 256, /* more than any topic has */
};

static bool exists(struct bel_client *client, struct bel_view topic)
{
    const struct bel_view args[] = {BEL_VIEW("TOPIC"), topic};
    const struct bel_value *reply;
    if (bel_client_call(client, args, 2, &reply) != 0) return true;
    if (reply->type != BEL_VALUE_ERROR) return true;
    struct bel_view code = bel_value_code(reply);
    return code.bytes != strlen("NOTFOUND") || memcmp(code.data, "NOTFOUND", code.bytes) != 0;
}

/* Writes the most similar topic to `out`; nothing if there is none. */
static void find_similar(struct bel_client *client, const char *topic, char out[NAME_BYTES])
{
    const struct bel_view args[] = {BEL_VIEW("TOPICS")};
    const struct bel_value *reply;
    struct bel_similar similar;
    char name[NAME_BYTES];
    if (bel_client_call(client, args, 1, &reply) != 0 || reply->type != BEL_VALUE_LIST) return;
    bel__similar_begin(&similar, topic);
    for (size_t i = 0; i < reply->count; i++) {
        struct bel_view text = reply->items[i].text;
        if (text.bytes == 0 || text.bytes >= sizeof name) continue;
        memcpy(name, text.data, text.bytes);
        name[text.bytes] = '\0';
        similar.name = NULL;
        bel__similar_offer(&similar, name, name);
        if (similar.name != NULL) memcpy(out, name, text.bytes + 1);
    }
}

static bool hint(struct bel_client *client, struct bel_view topic, const char *what)
{
    char name[NAME_BYTES], best[NAME_BYTES] = "";
    if (topic.bytes >= sizeof name || exists(client, topic)) return false;
    memcpy(name, topic.data, topic.bytes);
    name[topic.bytes] = '\0';
    find_similar(client, name, best);
    if (best[0] != '\0') {
        fprintf(stderr, "belfry: topic '%s' %s; did you mean '%s'?\n", name, what, best);
    } else {
        fprintf(stderr, "belfry: topic '%s' %s\n", name, what);
    }
    return true;
}

bool bel__topic_hint_typo(struct bel_client *client, struct bel_view topic)
{
    char name[NAME_BYTES], best[NAME_BYTES] = "";
    if (topic.bytes >= sizeof name || exists(client, topic)) return false;
    memcpy(name, topic.data, topic.bytes);
    name[topic.bytes] = '\0';
    find_similar(client, name, best);
    if (best[0] == '\0') return false;
    fprintf(stderr,
            "belfry: topic '%s' does not exist; did you mean '%s'? --create creates the topic\n",
            name, best);
    return true;
}

bool bel__topic_hint(struct bel_client *client, struct bel_view topic)
{
    return hint(client, topic, "does not exist");
}

bool bel__topic_hint_yet(struct bel_client *client, struct bel_view topic)
{
    return hint(client, topic, "does not exist yet");
}
