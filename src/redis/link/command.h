/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_COMMAND_H
#define BEL_REDIS_LINK_COMMAND_H

/*
 * command - encodes a command in RESP, a list of bulk strings, at the end of a buffer.
 *
 *     bel__redis_command_begin(&command, &buffer, 3);
 *     bel__redis_command_word(&command, "ZADD");
 *     bel__redis_command_join(&command, (struct bel_view[]){tag, BEL_VIEW(":pend")}, 2);
 *     bel__redis_command_u64(&command, due_ms);
 *     err = bel__redis_command_end(&command);
 *
 * Arguments are written directly to the buffer. After a failure the remaining calls do nothing, and
 * bel__redis_command_end() returns the first error and removes the incomplete command from the
 * buffer. A buffer may hold several commands.
 *
 * The number of arguments is given first, because RESP needs it first. A different number of
 * arguments at the end is a bug of the caller.
 */

#include "belfry/error.h"
#include "belfry/view.h"

#include "core/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* A command that is being encoded. All fields are private. */
struct bel_redis_command {
    struct bel_buffer *buffer; /* borrowed */
    size_t start;              /* bytes in the buffer before the command */
    size_t left;               /* arguments that are still missing */
    int err;
};

/* Begins a command with `arguments_count` arguments, at least 1; its name is the first of them. */
void bel__redis_command_begin(struct bel_redis_command *command, struct bel_buffer *buffer,
                              size_t arguments_count);

/* Append an argument: bytes, a string, or a number in decimal. */
void bel__redis_command_view(struct bel_redis_command *command, struct bel_view view);
void bel__redis_command_word(struct bel_redis_command *command, const char *word);
void bel__redis_command_u64(struct bel_redis_command *command, uint64_t number);
void bel__redis_command_i64(struct bel_redis_command *command, int64_t number);

/* Appends one argument that consists of several parts. */
void bel__redis_command_join(struct bel_redis_command *command, const struct bel_view *parts,
                             size_t parts_count);

/* Appends an argument of `bytes` bytes, which the caller must write before the next call. Returns
 * where to write them, or NULL after a failure. */
uint8_t *bel__redis_command_space(struct bel_redis_command *command, size_t bytes);

/* Ends a command. Returns 0; or BEL_EFULL or BEL_ENOMEM, and the buffer is as before. */
BEL_CHECKED int bel__redis_command_end(struct bel_redis_command *command);

#endif
