/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_INFO_H
#define BEL_SERVER_INFO_H

/*
 * info - the reply to INFO: lines `name:value` under headings, in the format of Redis. It contains
 * no secrets. A key that is limited to topics sees the totals of these topics, and nothing of other
 * clients or of the machine.
 */

#include "metrics/metrics.h"
#include "server/config.h"
#include "server/server_clock.h"
#include "server/store.h"
#include "session/request_tracker.h"
#include "session/session.h"

/* The sources of the figures. All are borrowed. */
struct bel_info {
    const struct bel_config *config;
    const struct bel_server_store *store;
    const struct bel_metrics *metrics;
    const struct bel_server_clock *clock;
    const struct bel_request_tracker *tracker;
    const struct bel_output_total *output_total;
    const struct bel_input_total *input_total;
    struct bel_mono started;
    size_t keys;
    uint16_t resp_port, http_port; /* http_port: 0 if HTTP is off */
};

/* Appends what a key with this scope may see of a section (NULL: everything). The name of the
 * section may be in any case. All sections if it is empty, "all", "default" or "everything"; the
 * long ones, Topics and Lateness, only for "everything" or by their names. An unknown section
 * appends nothing. Returns 0, BEL_EFULL or BEL_ENOMEM. */
BEL_CHECKED int bel__info_print(const struct bel_info *info, struct bel_view section,
                                const struct bel_scope *scope, struct bel_buffer *out);

#endif
