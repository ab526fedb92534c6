/* SPDX-License-Identifier: MIT */

/*
 * A field is looked up in a table of other schedulers' names, then in the other objects, then among
 * similar names. Only the ids of tasks whose length is close to that of the name are compared, and
 * only the first of these, because a comparison takes time and the text is the client's.
 */
#include "jobs/hints.h"

#include "core/similar.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    COMPARED_MAX = 200, /* ids of tasks */
    LENGTH_APART_MAX = 3,
};

/* Names that other schedulers give to a field. */
static const struct {
    const char *other, *field;
} synonyms[] = {
    {"depends_on", "after"},
    {"dependsOn", "after"},
    {"depends", "after"},
    {"dependencies", "after"},
    {"deps", "after"},
    {"needs", "after"},
    {"requires", "after"},
    {"name", "id"},
    {"key", "id"},
    {"queue", "topic"},
    {"type", "topic"},
    {"channel", "topic"},
    {"data", "payload"},
    {"args", "payload"},
    {"body", "payload"},
    {"input", "payload"},
    {"steps", "tasks"},
    {"nodes", "tasks"},
    {"jobs", "tasks"},
    {"retries", "retry"},
    {"attempts", "retry"},
    {"max_retries", "retry"},
    {"max_attempts", "retry"},
    {"delay", "in"},
    {"run_at", "at"},
    {"schedule", "cron"},
    {"timezone", "tz"},
    {"interval", "every"},
    {"next", "then"},
    {"lease", "idle"},
    {"when", "on"},
    {"id", "task"},
};

static const char *const objects[] = {
    [BEL_JOB_OBJECT_JOB] = "a job",
    [BEL_JOB_OBJECT_TASK] = "a task",
    [BEL_JOB_OBJECT_AFTER] = "an element of after",
    [BEL_JOB_OBJECT_THEN] = "an element of then",
};
static_assert(sizeof objects / sizeof objects[0] == BEL_JOB_OBJECTS, "every object has a name");

static bool has_field(enum bel_job_object object, const char *name)
{
    const struct bel_job_fields *table = &bel__job_fields[object];
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->fields[i].name, name) == 0) return true;
    }
    return false;
}

static const char *synonym_of(enum bel_job_object object, const char *name)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcasecmp(synonyms[i].other, name) != 0) continue;
        if (has_field(object, synonyms[i].field)) return synonyms[i].field;
    }
    return NULL;
}

static const char *similar_field(enum bel_job_object object, const char *name)
{
    const struct bel_job_fields *table = &bel__job_fields[object];
    struct bel_similar similar;
    bel__similar_begin(&similar, name);
    for (size_t i = 0; i < table->count; i++) {
        bel__similar_offer(&similar, table->fields[i].name, table->fields[i].name);
    }
    return similar.name;
}

int bel__job_refuse_field(enum bel_job_object object, const struct bel_json_token *name,
                          struct bel_job_fault *fault)
{
    char text[BEL_SIMILAR_BYTES_MAX + 1];
    size_t bytes = name->raw.bytes;
    if (bytes == 0 || bytes >= sizeof text || memchr(name->raw.data, '\\', bytes) != NULL) {
        return bel__job_fault(fault, BEL_EINVAL, "unknown field");
    }
    memcpy(text, name->raw.data, bytes);
    text[bytes] = 0;
    const char *meant = synonym_of(object, text);
    for (int other = 0; meant == NULL && other < BEL_JOB_OBJECT_AFTER; other++) {
        if (!has_field((enum bel_job_object)other, text)) continue;
        return bel__job_fault(fault, BEL_EINVAL, "unknown field: a field of %s, not of %s",
                              objects[other], objects[object]);
    }
    if (meant == NULL) meant = similar_field(object, text);
    if (meant == NULL) return bel__job_fault(fault, BEL_EINVAL, "unknown field");
    return bel__job_fault(fault, BEL_EINVAL, "unknown field; did you mean '%s'?", meant);
}

/* Copies a view that ends in 0. Returns false if it is too long to be compared. */
static bool copy_name(struct bel_view name, char out[BEL_SIMILAR_BYTES_MAX + 1])
{
    if (name.bytes == 0 || name.bytes > BEL_SIMILAR_BYTES_MAX) return false;
    memcpy(out, name.data, name.bytes);
    out[name.bytes] = 0;
    return true;
}

static bool is_close(size_t one, size_t other)
{
    return (one > other ? one - other : other - one) <= LENGTH_APART_MAX;
}

/* Writes the id that is most similar to a name; nothing if there is none. */
static void find_similar(const struct bel_job_draft *draft, const char *name,
                         char best[BEL_SIMILAR_BYTES_MAX + 1])
{
    struct bel_similar similar;
    char id[BEL_SIMILAR_BYTES_MAX + 1];
    uint32_t compared = 0;
    bel__similar_begin(&similar, name);
    for (uint32_t i = 0; i < draft->tasks_count && compared < COMPARED_MAX; i++) {
        struct bel_view text = draft->tasks[i].id;
        if (!is_close(text.bytes, strlen(name)) || !copy_name(text, id)) continue;
        compared++;
        similar.name = NULL;
        bel__similar_offer(&similar, id, id);
        if (similar.name != NULL) memcpy(best, id, text.bytes + 1);
    }
}

int bel__job_refuse_task(const struct bel_job_draft *draft, struct bel_view name,
                         struct bel_job_fault *fault)
{
    char text[BEL_SIMILAR_BYTES_MAX + 1], best[BEL_SIMILAR_BYTES_MAX + 1] = "";
    size_t bytes = name.bytes < BEL_JOB_IDS_BYTES_MAX ? name.bytes : BEL_JOB_IDS_BYTES_MAX;
    if (copy_name(name, text)) find_similar(draft, text, best);
    if (best[0] == 0) {
        return bel__job_fault(fault, BEL_EINVAL, "'%.*s' is not a task of this job", (int)bytes,
                              (const char *)name.data);
    }
    return bel__job_fault(fault, BEL_EINVAL, "'%.*s' is not a task of this job; did you mean '%s'?",
                          (int)bytes, (const char *)name.data, best);
}
