/* SPDX-License-Identifier: MIT */

/*
 * The first byte selects JSON lines or a crontab; the rest are the lines. A good line must become a
 * SCHEDULE whose arguments are readable, and the same line must get the same id again. A bad line
 * must have a message.
 */
#include "cli/import.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum import_verdict read_line(struct import_command *command, struct bel_view line,
                                     uint64_t number, bool is_crontab)
{
    static struct import_rules rules; /* static: the command points into it */
    rules = (struct import_rules){.topic = is_crontab ? "t" : NULL, .conflict = "keep"};
    memcpy(rules.zone, "UTC", 4);
    command->problem.text[0] = '\0';
    return is_crontab ? bel__import_crontab(command, line, &rules)
                      : bel__import_json(command, line, number, &rules);
}

/* Reads every byte of every argument. */
static uint64_t add_up(const struct import_command *command)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < command->count; i++) {
        const unsigned char *bytes = command->args[i].data;
        for (size_t k = 0; k < command->args[i].bytes; k++) {
            sum = sum * 31 + bytes[k];
        }
    }
    return sum;
}

static void check_line(struct bel_view line, uint64_t number, bool is_crontab)
{
    static struct import_command command;
    enum import_verdict verdict = read_line(&command, line, number, is_crontab);
    uint64_t sum = add_up(&command);
    if (verdict == IMPORT_GOOD) {
        assert(command.count >= 5 && command.args[0].bytes == 8);
        assert(memcmp(command.args[0].data, "SCHEDULE", 8) == 0);
    }
    assert((verdict == IMPORT_GOOD || verdict == IMPORT_BLANK) ==
           (command.problem.text[0] == '\0'));
    bel__import_clear(&command);
    enum import_verdict again = read_line(&command, line, number, is_crontab);
    assert(again == verdict && add_up(&command) == sum);
    bel__import_clear(&command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    char *text = malloc(size);
    if (text == NULL) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    uint64_t number = 1;
    for (char *at = text; at < text + size; number++) {
        char *end = memchr(at, '\n', (size_t)(text + size - at));
        if (end == NULL) end = text + size - 1;
        *end = '\0';
        check_line((struct bel_view){at, (size_t)(end - at)}, number, data[0] % 2 == 1);
        at = end + 1;
    }
    free(text);
    return 0;
}
