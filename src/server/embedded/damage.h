/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_EMBEDDED_DAMAGE_H
#define BEL_SERVER_EMBEDDED_DAMAGE_H

/*
 * damage - log lines about damaged data.
 */

#include "server/logger.h"

/* Logs that the data is damaged. */
void bel__damage_log(const struct bel_logger *log, const char *data, const char *why);

/* Makes the process log the same, and exit with status 1, when a page of the tree cannot be read
 * (SIGBUS, SIGSEGV). Both are borrowed until the process ends. Returns 0 or BEL_EIO. */
BEL_CHECKED int bel__damage_watch(const struct bel_logger *log, const char *data);

#endif
