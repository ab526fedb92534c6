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

/* Makes the JSON text of a job from lines in the style of make. */
static int build(struct cli_job_file *file)
{
    const char *name = bel__job_file_name(file->path);
    struct bel_job_spec job = {.id = file->id};
    struct bel_view content = content_of(file->text);
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
        fprintf(stderr,
                "belfry: line %u of %s: expected 'TASK: TASK ...', with one line for each task\n",
                line, name);
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
