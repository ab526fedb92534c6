/* SPDX-License-Identifier: MIT */

/*
 * A map has every name of the text, as long as the text: 1 if it has a line of its own, 0 if it is
 * only a dependency so far. Tasks are written line by line; those without a line at the end.
 */
#include "jobs/rules.h"

#include "core/map.h"

#include <string.h>

enum {
    HAS_NO_LINE,
    HAS_LINE,
};

struct rules {
    struct bel_job_builder *builder;
    const char *topic;
    struct bel_map names;
    unsigned line;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word of a line, which ends at a space or a colon. Returns false at the end. */
static bool take_word(struct bel_view *line, struct bel_view *out)
{
    const char *text = line->data;
    size_t start = 0, end;
    while (start < line->bytes && is_space(text[start])) {
        start++;
    }
    for (end = start; end < line->bytes && !is_space(text[end]) && text[end] != ':';) {
        end++;
    }
    *out = (struct bel_view){text + start, end - start};
    *line = (struct bel_view){text + end, line->bytes - end};
    return out->bytes > 0;
}

/* Copies a name, which must be a valid id. Returns false if it is not. */
static bool copy_name(const struct rules *rules, struct bel_view name,
                      char out[BEL_JOB_IDS_BYTES_MAX + 1])
{
    if (!bel_job_id_is_valid(name)) {
        bel__job_builder_refuse(rules->builder, BEL_EINVAL, rules->line);
        return false;
    }
    memcpy(out, name.data, name.bytes);
    out[name.bytes] = 0;
    return true;
}

static void note(struct rules *rules, struct bel_view name, uint64_t value)
{
    if (bel__map_put(&rules->names, name.data, name.bytes, value) != 0) {
        bel__job_builder_refuse(rules->builder, BEL_ENOMEM, 0);
    }
}

/* Adds a dependency: a name, perhaps with ? or ! at its end. */
static void add_after(struct rules *rules, struct bel_view word)
{
    char copy[BEL_JOB_IDS_BYTES_MAX + 1];
    enum bel_edge_policy on = BEL_EDGE_SUCCESS;
    const char *text = word.data;
    if (text[word.bytes - 1] == '?') on = BEL_EDGE_ALWAYS;
    if (text[word.bytes - 1] == '!') on = BEL_EDGE_FAILURE;
    if (on != BEL_EDGE_SUCCESS) word.bytes--;
    if (!copy_name(rules, word, copy)) return;
    bel_job_builder_after(rules->builder, copy, on);
    if (bel__map_find(&rules->names, word.data, word.bytes) == NULL) {
        note(rules, word, HAS_NO_LINE);
    }
}

static void add_task(const struct rules *rules, struct bel_view name)
{
    char copy[BEL_JOB_IDS_BYTES_MAX + 1];
    if (!copy_name(rules, name, copy)) return;
    bel_job_builder_task(rules->builder,
                         &(struct bel_task_spec){.id = copy, .topic = rules->topic});
}

static void read_line(struct rules *rules, struct bel_view line)
{
    struct bel_view name, word;
    const char *comment = memchr(line.data, '#', line.bytes);
    if (comment != NULL) line.bytes = (size_t)(comment - (const char *)line.data);
    bool has_name = take_word(&line, &name);
    while (line.bytes > 0 && is_space(*(const char *)line.data)) {
        line = (struct bel_view){(const char *)line.data + 1, line.bytes - 1};
    }
    if (!has_name && line.bytes == 0) return;
    const uint64_t *known = has_name ? bel__map_find(&rules->names, name.data, name.bytes) : NULL;
    bool is_known = known != NULL && *known == HAS_LINE;
    if (!has_name || is_known || line.bytes == 0 || *(const char *)line.data != ':') {
        bel__job_builder_refuse(rules->builder, BEL_EINVAL, rules->line);
        return;
    }
    line = (struct bel_view){(const char *)line.data + 1, line.bytes - 1};
    note(rules, name, HAS_LINE);
    add_task(rules, name);
    while (!bel__job_builder_has_failed(rules->builder) && take_word(&line, &word)) {
        add_after(rules, word);
    }
    if (line.bytes > 0) bel__job_builder_refuse(rules->builder, BEL_EINVAL, rules->line);
}

void bel_job_builder_rules(struct bel_job_builder *builder, struct bel_view text, const char *topic)
{
    struct rules rules = {.builder = builder, .topic = topic};
    const char *at = text.data, *end = at + text.bytes;
    bel__map_init(&rules.names, (struct bel_siphash_key){{0}}); /* the caller's own names */
    while (at < end && !bel__job_builder_has_failed(builder)) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        rules.line++;
        read_line(&rules, (struct bel_view){at, (size_t)(stop - at)});
        at = stop < end ? stop + 1 : end;
    }
    for (uint32_t i = 0; i < bel__map_count(&rules.names); i++) {
        const struct bel_map_entry *entry = bel__map_at(&rules.names, i);
        if (bel__job_builder_has_failed(builder)) break;
        if (entry->value == HAS_NO_LINE) {
            add_task(&rules, (struct bel_view){entry->key, entry->key_bytes});
        }
    }
    bel__map_finish(&rules.names);
}
