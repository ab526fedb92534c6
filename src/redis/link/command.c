/* SPDX-License-Identifier: MIT */

/* Every argument reserves its head, its bytes and its line end together and then writes them in
 * place, so that an argument costs one check for room and one copy. */
#include "redis/link/command.h"

#include "core/parse.h"

#include <assert.h>
#include <string.h>

enum {
    HEAD_BYTES = 1 + BEL_PRINT_BYTES_MAX + 2, /* a letter, a number, a line end */
    END_BYTES = 2,
};

/* Writes a letter and a number as a line. Returns the number of bytes. */
static size_t write_head(uint8_t *out, char letter, uint64_t number)
{
    size_t digits = bel__count_digits(number);
    out[0] = (uint8_t)letter;
    bel__print_digits((char *)out + 1, number, digits);
    out[1 + digits] = '\r';
    out[2 + digits] = '\n';
    return 1 + digits + 2;
}

void bel__redis_command_begin(struct bel_redis_command *command, struct bel_buffer *buffer,
                              size_t arguments_count)
{
    uint8_t head[HEAD_BYTES];
    assert(arguments_count > 0);
    *command = (struct bel_redis_command){
        .buffer = buffer, .start = buffer->count, .left = arguments_count};
    size_t bytes = write_head(head, '*', arguments_count);
    command->err = bel__buffer_append(buffer, head, bytes);
}

uint8_t *bel__redis_command_space(struct bel_redis_command *command, size_t bytes)
{
    assert(command->left > 0);
    command->left--;
    if (command->err) return NULL;
    if (bytes > SIZE_MAX - HEAD_BYTES - END_BYTES) {
        command->err = BEL_EFULL;
        return NULL;
    }
    size_t head = 1 + bel__count_digits(bytes) + 2;
    uint8_t *out;
    command->err = bel__buffer_extend(command->buffer, head + bytes + END_BYTES, &out);
    if (command->err) return NULL;
    (void)write_head(out, '$', bytes);
    memcpy(out + head + bytes, "\r\n", END_BYTES);
    return out + head;
}

void bel__redis_command_view(struct bel_redis_command *command, struct bel_view view)
{
    uint8_t *out = bel__redis_command_space(command, view.bytes);
    if (out != NULL && view.bytes > 0) memcpy(out, view.data, view.bytes);
}

void bel__redis_command_word(struct bel_redis_command *command, const char *word)
{
    bel__redis_command_view(command, (struct bel_view){word, strlen(word)});
}

void bel__redis_command_u64(struct bel_redis_command *command, uint64_t number)
{
    size_t digits = bel__count_digits(number);
    uint8_t *out = bel__redis_command_space(command, digits);
    if (out != NULL) bel__print_digits((char *)out, number, digits);
}

void bel__redis_command_i64(struct bel_redis_command *command, int64_t number)
{
    char text[BEL_PRINT_BYTES_MAX];
    size_t bytes = bel__print_i64(text, number);
    bel__redis_command_view(command, (struct bel_view){text, bytes});
}

void bel__redis_command_join(struct bel_redis_command *command, const struct bel_view *parts,
                             size_t parts_count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < parts_count; i++) {
        bytes += parts[i].bytes;
    }
    uint8_t *out = bel__redis_command_space(command, bytes);
    for (size_t i = 0; i < parts_count && out != NULL; i++) {
        if (parts[i].bytes > 0) memcpy(out, parts[i].data, parts[i].bytes);
        out += parts[i].bytes;
    }
}

int bel__redis_command_end(struct bel_redis_command *command)
{
    assert(command->left == 0);
    if (command->err) bel__buffer_truncate(command->buffer, command->start);
    return command->err;
}
