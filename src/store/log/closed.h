/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_CLOSED_H
#define BEL_STORE_LOG_CLOSED_H

/*
 * closed - the file CLOSED: the last batch of the log at the last clean close. Private to the log.
 *
 * A log never loses a synced batch, so a log that ends before this batch is damaged: its end was
 * overwritten, for example with zeros, which look like a log that was never longer. The file need
 * not be removed when the store is opened, since batches are only added. A file that is missing,
 * invalid, or of another store says nothing.
 */

#include "store/log/log.h"

/* Reads the file into `log->closed_batch`; 0 if it says nothing. */
void bel__closed_read(struct bel_log *log);

/* Writes the last batch, which must be synced, unless the file has it. An error is ignored. */
void bel__closed_write(struct bel_log *log);

#endif
