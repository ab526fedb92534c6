/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_INFO_H
#define BEL_SERVER_INFO_H

/*
 * info - what INFO answers: a server in lines of `name:value`, under headings, as clients of Redis
 * read them. Nothing in it is secret.
 */

#include "metrics/metrics.h"
#include "server/config.h"
#include "server/server_clock.h"
#include "session/request_tracker.h"

/* What there is to tell. All of it is borrowed. */
struct bel_info {
    const struct bel_config *config;
    const struct bel_metrics *metrics;
    const struct bel_server_clock *clock;
    const struct bel_request_tracker *tracker;
    struct bel_mono started;
    uint64_t sync_us; /* as it was measured; 0: it was not */
    size_t keys;
    uint16_t resp_port, http_port; /* of HTTP: 0 if there is none */
    bool is_sync_in_thread;
};

/* Appends a section, in any case; all of them if it is empty, "all", "default" or "everything".
 * Of a section that does not exist there is nothing. Returns 0, BEL_EFULL or BEL_ENOMEM. */
BEL_CHECKED int bel__info_print(const struct bel_info *info, struct bel_view section,
                                struct bel_buffer *out);

#endif
