/* SPDX-License-Identifier: MIT */

/* A numeric address and a path need no lookup, and so no thread. */
#include "redis/link/dial.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int bel__dial_init(struct bel_dial *dial, const char *host, uint16_t port, const char *path)
{
    struct bel_address address;
    *dial = (struct bel_dial){.port = port};
    assert((host == NULL) != (path == NULL));
    if (path != NULL && bel__stream_path(path, &address) != 0) return BEL_EINVAL;
    char *copy = strdup(host != NULL ? host : path);
    if (copy == NULL) return BEL_ENOMEM;
    if (host != NULL) {
        dial->host = copy;
    } else {
        dial->path = copy;
    }
    return 0;
}

static void abandon(struct bel_dial *dial)
{
    bel__name_lookup_drop(dial->lookup);
    dial->lookup = NULL;
    dial->addresses_count = dial->addresses_tried = 0;
}

void bel__dial_finish(struct bel_dial *dial)
{
    abandon(dial);
    free(dial->host);
    free(dial->path);
    dial->host = dial->path = NULL;
}

int bel__dial_begin(struct bel_dial *dial, struct bel_why *why)
{
    abandon(dial);
    int err = dial->path != NULL
                  ? bel__stream_path(dial->path, &dial->addresses[0])
                  : bel__name_lookup_numeric(dial->host, dial->port, &dial->addresses[0]);
    if (err == 0) {
        dial->addresses_count = 1;
        return 0;
    }
    assert(dial->path == NULL); /* its length was checked */
    err = bel__name_lookup_start(dial->host, dial->port, &dial->lookup);
    return err ? bel__why_say(why, err, "cannot look up a name: %s", bel_error_text(err))
               : BEL_EBUSY;
}

int bel__dial_descriptor(const struct bel_dial *dial)
{
    assert(dial->lookup != NULL);
    return bel__name_lookup_descriptor(dial->lookup);
}

int bel__dial_resolve(struct bel_dial *dial, struct bel_why *why)
{
    assert(dial->lookup != NULL);
    int err = bel__name_lookup_take(dial->lookup, dial->addresses, &dial->addresses_count, why);
    if (err == BEL_EBUSY) return err;
    bel__name_lookup_drop(dial->lookup);
    dial->lookup = NULL;
    return err;
}

size_t bel__dial_left(const struct bel_dial *dial)
{
    return dial->addresses_count - dial->addresses_tried;
}

int bel__dial_next(struct bel_dial *dial, struct bel_stream *stream, struct bel_why *why)
{
    while (dial->addresses_tried < dial->addresses_count) {
        const struct bel_address *address = &dial->addresses[dial->addresses_tried++];
        if (bel__stream_connect(stream, address, why) == 0) return 0;
    }
    return BEL_EIO;
}
