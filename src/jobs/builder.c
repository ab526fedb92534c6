/* SPDX-License-Identifier: MIT */

/*
 * The text is written in order. A task stays open until the next one begins, because dependencies
 * and headers may follow: dependencies are written at once, headers are kept until the task ends.
 * Jobs of `then` are kept until the text ends.
 *
 *     {"id":"nightly","tasks":[{"id":"load",...,"after":["fetch",  ...  ]  ,"headers":{...}}  ]}
 *                              ^ open        ^ is_in_after
 */
#include "jobs/rules.h"

#include "core/base64.h"
#include "core/buffer.h"
#include "core/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX (UINT64_C(1) << 30)

struct bel_job_builder {
    struct bel_buffer text, headers, then;
    int err;
    unsigned line; /* that bel_job_builder_rules() has refused */
    bool has_fields, has_task, is_in_task, is_in_after, is_ended;
};

static void fail(struct bel_job_builder *builder, int err)
{
    if (builder->err == 0) builder->err = err;
}

static void put(struct bel_job_builder *builder, struct bel_buffer *out, const char *text)
{
    if (builder->err == 0) builder->err = bel__buffer_append(out, text, strlen(text));
}

/* Writes a string with quotes and escapes. */
static void put_string(struct bel_job_builder *builder, struct bel_buffer *out,
                       struct bel_view string)
{
    const unsigned char *text = string.data;
    size_t plain = 0;
    if (!bel__utf8_is_text(string)) fail(builder, BEL_EINVAL);
    put(builder, out, "\"");
    for (size_t i = 0; i <= string.bytes && builder->err == 0; i++) {
        bool is_end = i == string.bytes;
        if (!is_end && text[i] >= ' ' && text[i] != '"' && text[i] != '\\') continue;
        if (i > plain) builder->err = bel__buffer_append(out, text + plain, i - plain);
        plain = i + 1;
        if (is_end || builder->err != 0) break;
        builder->err = text[i] < ' ' ? bel__buffer_append_format(out, "\\u%04x", text[i])
                                     : bel__buffer_append_format(out, "\\%c", text[i]);
    }
    put(builder, out, "\"");
}

static struct bel_view view_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

/* --- fields --- */

static void put_name(struct bel_job_builder *builder, const char *name)
{
    if (builder->has_fields) put(builder, &builder->text, ",");
    builder->has_fields = true;
    put_string(builder, &builder->text, view_of(name));
    put(builder, &builder->text, ":");
}

static void put_text(struct bel_job_builder *builder, const char *name, const char *text)
{
    if (text == NULL) return;
    put_name(builder, name);
    put_string(builder, &builder->text, view_of(text));
}

static void put_number(struct bel_job_builder *builder, const char *name, uint64_t number)
{
    put_name(builder, name);
    if (builder->err != 0) return;
    builder->err = bel__buffer_append_format(&builder->text, "%llu", (unsigned long long)number);
}

static void put_if(struct bel_job_builder *builder, const char *name, uint64_t number)
{
    if (number > 0) put_number(builder, name, number);
}

static void put_job(struct bel_job_builder *builder, const struct bel_job_spec *job)
{
    put_text(builder, "id", job->id);
    put_if(builder, "priority", job->priority);
    put_if(builder, "timeout", job->timeout_ms);
    put_if(builder, "pace", job->pace_ms);
    if (job->has_cooldown) put_number(builder, "cooldown", job->cooldown_ms);
    put_text(builder, "retry", job->retry);
    put_text(builder, "every", job->every);
    put_text(builder, "cron", job->cron);
    put_text(builder, "rrule", job->rrule);
    put_text(builder, "tz", job->tz);
    put_text(builder, "at", job->at);
    put_text(builder, "until", job->until);
    put_text(builder, "misfire", job->misfire);
    put_text(builder, "overlap", job->overlap);
    put_text(builder, "gap", job->gap);
    put_text(builder, "fold", job->fold);
    put_if(builder, "count", job->count);
    put_if(builder, "spread", job->spread_ms);
}

static void put_payload(struct bel_job_builder *builder, const struct bel_task_spec *task)
{
    if (task->payload.bytes == 0) return;
    if (task->is_json) {
        put_name(builder, "payload");
        if (builder->err != 0) return;
        builder->err = bel__buffer_append(&builder->text, task->payload.data, task->payload.bytes);
    } else if (bel__utf8_is_text(task->payload)) {
        put_name(builder, "payload");
        put_string(builder, &builder->text, task->payload);
    } else {
        char *base64 = bel__base64_encode(task->payload);
        if (base64 == NULL) fail(builder, BEL_ENOMEM);
        if (base64 != NULL) put_text(builder, "payload_base64", base64);
        free(base64);
    }
}

/* --- tasks --- */

static void end_after(struct bel_job_builder *builder)
{
    if (builder->is_in_after) put(builder, &builder->text, "]");
    builder->is_in_after = false;
}

static void end_task(struct bel_job_builder *builder)
{
    struct bel_buffer *headers = &builder->headers;
    if (!builder->is_in_task) return;
    end_after(builder);
    if (headers->count > 0) {
        put_name(builder, "headers");
        put(builder, &builder->text, "{");
        if (builder->err == 0) {
            builder->err =
                bel__buffer_append(&builder->text, bel__buffer_data(headers), headers->count);
        }
        put(builder, &builder->text, "}");
        bel__buffer_consume(headers, headers->count);
    }
    put(builder, &builder->text, "}");
    builder->is_in_task = false;
}

void bel_job_builder_task(struct bel_job_builder *builder, const struct bel_task_spec *task)
{
    if (builder->is_ended || task->id == NULL || task->topic == NULL) fail(builder, BEL_EINVAL);
    if (builder->err != 0) return;
    end_task(builder);
    put(builder, &builder->text, builder->has_task ? ",{" : "{");
    builder->has_task = builder->is_in_task = true;
    builder->has_fields = false;
    put_text(builder, "id", task->id);
    put_text(builder, "topic", task->topic);
    put_payload(builder, task);
    put_text(builder, "resource", task->resource);
    put_text(builder, "retry", task->retry);
    put_text(builder, "correlation", task->correlation);
    put_if(builder, "cost", task->cost);
    if (task->has_priority) put_number(builder, "priority", task->priority);
    put_if(builder, "idle", task->idle_ms);
    put_if(builder, "in", task->delay_ms);
    if (!task->has_at) return;
    if (task->at.ms < 0) fail(builder, BEL_EINVAL);
    put_number(builder, "at", (uint64_t)task->at.ms);
}

void bel_job_builder_after(struct bel_job_builder *builder, const char *task,
                           enum bel_edge_policy on)
{
    assert(on < BEL_EDGE_POLICIES);
    if (!builder->is_in_task) fail(builder, BEL_EINVAL);
    if (builder->err != 0) return;
    if (builder->is_in_after) {
        put(builder, &builder->text, ",");
    } else {
        put_name(builder, "after");
        put(builder, &builder->text, "[");
        builder->is_in_after = true;
    }
    if (on == BEL_EDGE_SUCCESS) {
        put_string(builder, &builder->text, view_of(task));
        return;
    }
    put(builder, &builder->text, "{\"task\":");
    put_string(builder, &builder->text, view_of(task));
    put(builder, &builder->text, ",\"on\":");
    put_string(builder, &builder->text, view_of(bel_edge_policy_name(on)));
    put(builder, &builder->text, "}");
}

void bel_job_builder_header(struct bel_job_builder *builder, const char *name, const char *value)
{
    if (!builder->is_in_task) fail(builder, BEL_EINVAL);
    if (builder->err != 0) return;
    if (builder->headers.count > 0) put(builder, &builder->headers, ",");
    put_string(builder, &builder->headers, view_of(name));
    put(builder, &builder->headers, ":");
    put_string(builder, &builder->headers, view_of(value));
}

/* --- the job --- */

void bel_job_builder_then(struct bel_job_builder *builder, struct bel_view job,
                          enum bel_edge_policy on)
{
    assert(on < BEL_EDGE_POLICIES);
    if (builder->is_ended) fail(builder, BEL_EINVAL);
    if (builder->err != 0) return;
    put(builder, &builder->then, builder->then.count > 0 ? ",{\"job\":" : "{\"job\":");
    if (builder->err == 0) builder->err = bel__buffer_append(&builder->then, job.data, job.bytes);
    put(builder, &builder->then, ",\"on\":");
    put_string(builder, &builder->then, view_of(bel_edge_policy_name(on)));
    put(builder, &builder->then, "}");
}

int bel_job_builder_create(const struct bel_job_spec *job, struct bel_job_builder **out)
{
    struct bel_job_builder *builder = calloc(1, sizeof *builder);
    if (builder == NULL) return BEL_ENOMEM;
    bel__buffer_init(&builder->text, TEXT_BYTES_MAX);
    bel__buffer_init(&builder->headers, TEXT_BYTES_MAX);
    bel__buffer_init(&builder->then, TEXT_BYTES_MAX);
    put(builder, &builder->text, "{");
    if (job != NULL) put_job(builder, job);
    put_name(builder, "tasks");
    put(builder, &builder->text, "[");
    *out = builder;
    return 0;
}

void bel_job_builder_destroy(struct bel_job_builder *builder)
{
    if (builder == NULL) return;
    bel__buffer_finish(&builder->text);
    bel__buffer_finish(&builder->headers);
    bel__buffer_finish(&builder->then);
    free(builder);
}

int bel_job_builder_end(struct bel_job_builder *builder, struct bel_view *out)
{
    if (!builder->is_ended) {
        end_task(builder);
        put(builder, &builder->text, "]");
        if (builder->then.count > 0) {
            put(builder, &builder->text, ",\"then\":[");
            if (builder->err == 0) {
                builder->err = bel__buffer_append(&builder->text, bel__buffer_data(&builder->then),
                                                  builder->then.count);
            }
            put(builder, &builder->text, "]");
        }
        put(builder, &builder->text, "}");
        builder->is_ended = true;
    }
    if (builder->err != 0) return builder->err;
    *out = (struct bel_view){bel__buffer_data(&builder->text), builder->text.count};
    return 0;
}

/* --- rules --- */

void bel__job_builder_refuse(struct bel_job_builder *builder, int err, unsigned line)
{
    if (builder->err == 0 && err == BEL_EINVAL) builder->line = line;
    fail(builder, err);
}

bool bel__job_builder_has_failed(const struct bel_job_builder *builder)
{
    return builder->err != 0;
}

unsigned bel_job_builder_line(const struct bel_job_builder *builder)
{
    return builder->line;
}
