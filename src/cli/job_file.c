/* SPDX-License-Identifier: MIT */

/*
 * A file that cannot be JSON is refused here with what to do instead; everything else is checked by
 * the server. A byte order mark at the start of the file is left out.
 */
#include "cli/job_file.h"

#include "cli/cli.h"
#include "cli/print.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES_MAX = 256 << 20,
    TEXT_STEP = 64 << 10,
    WORD_BYTES_MAX = 60, /* of a word that is shown */
};

const char *bel__job_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static int read_all(struct cli_job_file *file)
{
    bool is_stdin = strcmp(file->path, "-") == 0;
    FILE *stream = is_stdin ? stdin : fopen(file->path, "re");
    size_t bytes = 0, room = 0, got = 1;
    while (stream != NULL && got > 0 && bytes <= TEXT_BYTES_MAX) {
        if (bytes == room) {
            char *larger = realloc(file->data, room = 2 * room + TEXT_STEP);
            if (larger == NULL) break;
            file->data = larger;
        }
        got = fread(file->data + bytes, 1, room - bytes, stream);
        bytes += got;
    }
    bool is_read = stream != NULL && got == 0 && ferror(stream) == 0;
    if (!is_read) {
        fprintf(stderr, "belfry: cannot read %s: %s\n", bel__job_file_name(file->path),
                bel__cli_problem(errno));
    }
    if (stream != NULL && !is_stdin) (void)fclose(stream);
    file->text = (struct bel_view){file->data, bytes};
    return is_read ? CLI_OK : CLI_FAILED;
}

static void skip(struct bel_view *text, size_t bytes)
{
    *text = (struct bel_view){(const char *)text->data + bytes, text->bytes - bytes};
}

static bool begins_with(struct bel_view text, const char *prefix)
{
    size_t bytes = strlen(prefix);
    return text.bytes >= bytes && memcmp(text.data, prefix, bytes) == 0;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t bytes = strlen(text), end = strlen(suffix);
    return bytes >= end && strcmp(text + bytes - end, suffix) == 0;
}

/* Returns the text from the first byte that is neither space nor in a comment. */
static struct bel_view content_of(struct bel_view text)
{
    bool is_comment = false;
    for (; text.bytes > 0; skip(&text, 1)) {
        char byte = *(const char *)text.data;
        if (byte == '\n') is_comment = false;
        if (byte == '#') is_comment = true;
        if (!is_comment && strchr(" \t\r\n", byte) == NULL) break;
    }
    return text;
}

static bool is_yaml(const char *path, struct bel_view content)
{
    return ends_with(path, ".yaml") || ends_with(path, ".yml") || begins_with(content, "---") ||
           begins_with(content, "tasks:") || begins_with(content, "id:");
}

/* Returns whether the first line is like 'load: fetch', which JSON is not. */
static bool is_rule(struct bel_view content)
{
    const char *text = content.data;
    if (strchr("{[\"", text[0]) != NULL) return false;
    const char *end = memchr(text, '\n', content.bytes);
    return memchr(text, ':', end != NULL ? (size_t)(end - text) : content.bytes) != NULL;
}

/* Refuses a file that is not JSON, if it is known what it is instead. */
static int check_json(const struct cli_job_file *file)
{
    const char *name = bel__job_file_name(file->path);
    struct bel_view content = content_of(file->text);
    if (content.bytes > 0 && *(const char *)content.data == '{') return CLI_OK;
    if (content.bytes == 0) {
        fprintf(stderr, "belfry: no job in %s: expected {\"tasks\": [...]}\n", name);
    } else if (is_yaml(file->path, content)) {
        fprintf(stderr, "belfry: %s is YAML, and a job is JSON; convert it, for example with yq\n",
                name);
    } else if (is_rule(content)) {
        fprintf(stderr,
                "belfry: %s is not JSON; for lines in the style of make give --topic NAME\n", name);
    } else {
        return CLI_OK;
    }
    return CLI_USAGE;
}

/* Returns a line of a text by its number, without a comment and without spaces around it. */
static struct bel_view line_of(struct bel_view text, unsigned number)
{
    while (number > 1 && text.bytes > 0) {
        if (*(const char *)text.data == '\n') number--;
        skip(&text, 1);
    }
    const char *bytes = text.data;
    size_t end = 0;
    while (end < text.bytes && bytes[end] != '\n' && bytes[end] != '#') {
        end++;
    }
    text.bytes = end;
    while (text.bytes > 0 && strchr(" \t\r", *(const char *)text.data) != NULL) {
        skip(&text, 1);
    }
    bytes = text.data;
    while (text.bytes > 0 && strchr(" \t\r", bytes[text.bytes - 1]) != NULL) {
        text.bytes--;
    }
    return text;
}

/* Takes the next word off a line, up to a space or a colon. */
static struct bel_view take_word(struct bel_view *line)
{
    const char *bytes = line->data;
    size_t end = 0;
    while (end < line->bytes && strchr(" \t\r:", bytes[end]) == NULL) {
        end++;
    }
    struct bel_view word = {bytes, end};
    skip(line, end);
    while (line->bytes > 0 && strchr(" \t\r", *(const char *)line->data) != NULL) {
        skip(line, 1);
    }
    return word;
}

/* Says what is wrong with a line in the style of make that was refused. */
static void tell_line(struct bel_view line, char *out, size_t room)
{
    struct bel_view task = take_word(&line), word = task;
    bool has_colon = line.bytes > 0 && *(const char *)line.data == ':';
    if (task.bytes == 0) {
        (void)snprintf(out, room, "no task before the colon");
        return;
    }
    if (has_colon) skip(&line, 1);
    line = line_of(line, 1);
    while (has_colon && bel_job_id_is_valid(word) && line.bytes > 0) {
        word = take_word(&line);
        if (word.bytes == 0) {
            (void)snprintf(out, room, "a second colon");
            return;
        }
        const char *bytes = word.data;
        char last = bytes[word.bytes - 1];
        if (last == '?' || last == '!') word.bytes--;
    }
    int bytes = (int)(word.bytes < WORD_BYTES_MAX ? word.bytes : WORD_BYTES_MAX);
    const char *name = word.data;
    if (!bel_job_id_is_valid(word)) {
        (void)snprintf(out, room, "'%.*s' is no id of a task: use A-Z a-z 0-9 . _ -", bytes, name);
    } else if (!has_colon) {
        (void)snprintf(out, room, "no colon after '%.*s'", bytes, name);
    } else {
        bytes = (int)(task.bytes < WORD_BYTES_MAX ? task.bytes : WORD_BYTES_MAX);
        (void)snprintf(out, room, "'%.*s' has a line already", bytes, (const char *)task.data);
    }
}

/* Makes the JSON text of a job from lines in the style of make. */
static int build(struct cli_job_file *file)
{
    const char *name = bel__job_file_name(file->path);
    struct bel_job_spec job = {.id = file->id};
    struct bel_view content = content_of(file->text), rules = file->text;
    if (content.bytes == 0) {
        fprintf(stderr, "belfry: no tasks in %s\n", name);
        return CLI_USAGE;
    }
    if (*(const char *)content.data == '{') {
        fprintf(stderr, "belfry: %s is JSON, where each task has its topic: leave out --topic\n",
                name);
        return CLI_USAGE;
    }
    if (bel_job_builder_create(&job, &file->builder) != 0) return CLI_FAILED;
    bel_job_builder_rules(file->builder, file->text, file->topic);
    int err = bel_job_builder_end(file->builder, &file->text);
    if (err == 0) return CLI_OK;
    unsigned line = bel_job_builder_line(file->builder);
    if (line > 0) {
        char what[WORD_BYTES_MAX + 100];
        tell_line(line_of(rules, line), what, sizeof what);
        fprintf(stderr,
                "belfry: line %u of %s: %s; expected 'TASK: TASK ...', with one line for each "
                "task\n",
                line, name, what);
        return CLI_USAGE;
    }
    fprintf(stderr, "belfry: %s\n", bel_error_text(err));
    return CLI_FAILED;
}

int bel__job_file_read(struct cli_job_file *file)
{
    int status = read_all(file);
    if (status != CLI_OK) return status;
    if (begins_with(file->text, "\xef\xbb\xbf")) skip(&file->text, 3);
    return file->topic != NULL ? build(file) : check_json(file);
}

void bel__job_file_finish(struct cli_job_file *file)
{
    bel_job_builder_destroy(file->builder);
    free(file->data);
}
