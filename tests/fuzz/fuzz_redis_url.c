/* SPDX-License-Identifier: MIT */

/*
 * Any text as the URL of a store. What parses is within the limits, and prints as a URL that parses
 * to the same hosts. A failure has a message, which does not show the password: none contains the
 * word sEcReT, wherever the input has it before the last @.
 */
#include "redis/link/url.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(const char *text, const struct bel_why *why)
{
    assert(why->text[0] != 0);
    assert(memchr(why->text, 0, sizeof why->text) != NULL);
    const char *at = strrchr(text, '@'), *secret = strstr(text, "sEcReT");
    const char *start = strstr(text, "://");
    if (start == NULL || secret == NULL || secret < start || at == NULL || secret > at) return;
    if (strstr(at, "sEcReT") != NULL) return; /* then it is also the name of an option */
    assert(strstr(why->text, "sEcReT") == NULL);
}

static void check_url(const struct bel_redis_url *url)
{
    char text[BEL_REDIS_URL_BYTES_MAX * 2];
    struct bel_redis_url again;
    assert((url->hosts_count == 0) == (url->path != NULL));
    assert(url->hosts_count <= BEL_REDIS_HOSTS_MAX);
    assert(url->mode != BEL_REDIS_CLUSTER || url->db == 0);
    assert((url->mode == BEL_REDIS_SENTINEL) == (url->master != NULL));
    assert(url->password == NULL || url->password[0] != 0);
    size_t bytes = bel__redis_url_print(url, text, sizeof text);
    assert(bytes < sizeof text);
    if (url->path != NULL && strpbrk(url->path, "%?#@") != NULL) return; /* for people only */
    if (url->mode == BEL_REDIS_SENTINEL) {
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "?master=m");
    }
    int err = bel__redis_url_parse(text, bytes, &again, NULL);
    assert(err == 0);
    (void)err;
    assert(again.mode == url->mode && again.is_tls == url->is_tls && again.db == url->db);
    assert(again.hosts_count == url->hosts_count);
    for (size_t i = 0; i < url->hosts_count; i++) {
        assert(strcmp(again.hosts[i].name, url->hosts[i].name) == 0);
        assert(again.hosts[i].port == url->hosts[i].port);
    }
    bel__redis_url_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bel_redis_url url = {0};
    struct bel_why why = {{0}, NULL};
    char *text = malloc(size + 1);
    assert(text != NULL);
    if (size > 0) memcpy(text, data, size);
    text[size] = 0;
    int err = bel__redis_url_parse(text, size, &url, &why);
    if (err == 0) {
        check_url(&url);
    } else if (err == BEL_EINVAL) {
        check_failure(text, &why);
    }
    bel__redis_url_finish(&url);
    free(text);
    return 0;
}
