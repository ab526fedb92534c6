/* SPDX-License-Identifier: MIT */

/* Stands in where HTTP is not built: there is none, and it says so. */
#include "server/http.h"

#include <assert.h>
#include <stddef.h>

int bel__http_start(const struct bel_http_options *options, struct bel_http **out)
{
    assert(options->service != NULL);
    (void)out;
    return BEL_EUNSUPPORTED;
}

/* The others cannot be called: there is nothing to call them with. */

uint16_t bel__http_port(const struct bel_http *http)
{
    assert(http == NULL);
    return 0;
}

int bel__http_fd(const struct bel_http *http)
{
    assert(http == NULL);
    return -1;
}

void bel__http_run(struct bel_http *http)
{
    assert(http == NULL);
    (void)http;
}

uint64_t bel__http_wait_ms(const struct bel_http *http)
{
    assert(http == NULL);
    return UINT64_MAX;
}

void bel__http_drain(struct bel_http *http)
{
    assert(http == NULL);
    (void)http;
}

bool bel__http_is_idle(const struct bel_http *http)
{
    assert(http == NULL);
    return true;
}

void bel__http_stop(struct bel_http *http)
{
    assert(http == NULL);
    (void)http;
}
