/* SPDX-License-Identifier: MIT */

/* A file of its own for the password becomes an option of the URL, which the parser knows. */
#include "redis/place.h"

#include "redis/link/url.h"

#include <stdio.h>
#include <string.h>

static bool has(const char *text)
{
    return text != NULL && text[0] != 0;
}

/* Writes the whole URL. Returns 0, or BEL_EINVAL if it is too long. */
static int write_url(const struct bel_redis_place *place, char out[BEL_REDIS_URL_BYTES_MAX],
                     struct bel_why *why)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._-/";
    size_t room = BEL_REDIS_URL_BYTES_MAX;
    int begun = snprintf(out, room, "%s", place->url);
    if (begun < 0 || (size_t)begun >= room) goto too_long;
    size_t bytes = (size_t)begun;
    if (!has(place->password_file)) return 0;
    int added = snprintf(out + bytes, room - bytes,
                         "%spassword_file=", strchr(place->url, '?') != NULL ? "&" : "?");
    if (added < 0 || (size_t)added >= room - bytes) goto too_long;
    bytes += (size_t)added;
    for (const char *at = place->password_file; *at != 0; at++) {
        if (room - bytes < 4) goto too_long;
        bool is_plain = strchr(plain, *at) != NULL;
        int more = is_plain ? snprintf(out + bytes, 4, "%c", *at)
                            : snprintf(out + bytes, 4, "%%%02X", (unsigned)(unsigned char)*at);
        bytes += (size_t)more;
    }
    return 0;

too_long:
    return bel__why_say(why, BEL_EINVAL, "the URL is too long");
}

int bel__redis_place_check(const struct bel_redis_place *place, struct bel_why *why)
{
    char text[BEL_REDIS_URL_BYTES_MAX];
    struct bel_redis_url url;
    int err = write_url(place, text, why);
    if (err == 0) err = bel__redis_url_parse(text, strlen(text), &url, why);
    explicit_bzero(text, sizeof text);
    if (err) return err;
    const char *own = place->name_space;
    if (has(own) && !bel__redis_namespace_is_valid(own)) {
        bel__redis_url_finish(&url);
        return bel__why_say(
            why, BEL_EINVAL,
            "'%.80s' is not a namespace: expected 1 to %d letters, digits and . _ -", own,
            BEL_REDIS_NAMESPACE_BYTES_MAX);
    }
    bool is_other = has(own) && url.name_space != NULL && strcmp(own, url.name_space) != 0;
    bel__redis_url_finish(&url);
    return is_other ? bel__why_say(why, BEL_EINVAL, "the URL has another namespace: give one") : 0;
}

int bel__redis_place_parse(const struct bel_redis_place *place, struct bel_redis_options *out,
                           struct bel_why *why)
{
    char text[BEL_REDIS_URL_BYTES_MAX];
    int err = write_url(place, text, why);
    if (err == 0) err = bel__redis_parse(text, strlen(text), out, why);
    explicit_bzero(text, sizeof text);
    if (err == 0 && has(place->name_space)) {
        (void)snprintf(out->name_space, sizeof out->name_space, "%s", place->name_space);
    }
    return err;
}

void bel__redis_place_print(const struct bel_redis_place *place, char out[BEL_REDIS_SHOWN_BYTES])
{
    struct bel_redis_url url;
    out[0] = 0;
    if (bel__redis_url_parse(place->url, strlen(place->url), &url, NULL) != 0) return;
    (void)bel__redis_url_print(&url, out, BEL_REDIS_SHOWN_BYTES);
    bel__redis_url_finish(&url);
}
