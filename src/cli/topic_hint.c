/* SPDX-License-Identifier: MIT */

/* TOPIC tells whether the topic exists; TOPICS has the names that may be meant. */
#include "cli/topic_hint.h"

#include "cli/similar_name.h"

#include <stdio.h>
#include <string.h>

static bool exists(struct bel_client *client, struct bel_view topic)
{
    const struct bel_view args[] = {BEL_VIEW("TOPIC"), topic};
    const struct bel_value *reply;
    if (bel_client_call(client, args, 2, &reply) != 0) return true;
    if (reply->type != BEL_VALUE_ERROR) return true;
    struct bel_view code = bel_value_code(reply);
    return code.bytes != strlen("NOTFOUND") || memcmp(code.data, "NOTFOUND", code.bytes) != 0;
}

/* Returns whether a topic does not exist; then `name` is its name, and `best` the one of another
 * topic that may be meant, or empty. */
static bool is_missing(struct bel_client *client, struct bel_view topic, char name[CLI_NAME_BYTES],
                       char best[CLI_NAME_BYTES])
{
    const struct bel_view topics[] = {BEL_VIEW("TOPICS")};
    if (topic.bytes >= CLI_NAME_BYTES || exists(client, topic)) return false;
    memcpy(name, topic.data, topic.bytes);
    name[topic.bytes] = '\0';
    bel__similar_name(client, topics, 1, NULL, name, best);
    return true;
}

static bool hint(struct bel_client *client, struct bel_view topic, const char *what)
{
    char name[CLI_NAME_BYTES], best[CLI_NAME_BYTES];
    if (!is_missing(client, topic, name, best)) return false;
    if (best[0] != '\0') {
        fprintf(stderr, "belfry: topic '%s' %s; did you mean '%s'?\n", name, what, best);
    } else {
        fprintf(stderr, "belfry: topic '%s' %s\n", name, what);
    }
    return true;
}

bool bel__topic_hint_typo(struct bel_client *client, struct bel_view topic)
{
    char name[CLI_NAME_BYTES], best[CLI_NAME_BYTES];
    if (!is_missing(client, topic, name, best) || best[0] == '\0') return false;
    fprintf(stderr,
            "belfry: topic '%s' does not exist; did you mean '%s'? --create creates the topic\n",
            name, best);
    return true;
}

void bel__topic_hint_new(struct bel_client *client, struct bel_view topic)
{
    char name[CLI_NAME_BYTES], best[CLI_NAME_BYTES];
    if (!is_missing(client, topic, name, best) || best[0] == '\0') return;
    fprintf(stderr, "belfry: the topic '%s' is new; did you mean '%s'?\n", name, best);
}

bool bel__topic_hint(struct bel_client *client, struct bel_view topic)
{
    return hint(client, topic, "does not exist");
}

bool bel__topic_hint_yet(struct bel_client *client, struct bel_view topic)
{
    return hint(client, topic, "does not exist yet");
}
