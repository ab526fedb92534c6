/* SPDX-License-Identifier: MIT */

/*
 * A token at a time, with a stack of frames instead of recursion. A frame is an object or an array
 * of the text that has a meaning; what is inside a payload is only skipped:
 *
 *     {"id": "n", "tasks": [{"id": "a", "after": [{"task": "b"}], "payload": {...}}]}
 *     JOB         TASKS     TASK        AFTERS    AFTER                      skipped
 *
 * The frames also give the place of an error: a frame knows its field or its index. A job that is
 * inside a `then` has a draft of its own. When the object of a job ends, its draft is checked; when
 * the text ends, the ids of all jobs are known, and are checked together.
 */
#include "jobs/parser.h"

#include "belfry/instant.h"
#include "jobs/hints.h"
#include "jobs/objects.h"
#include "jobs/payload.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES_DEFAULT = 16 << 20,
    TASKS_DEFAULT = 10 * 1000,
    EDGES_DEFAULT = 100 * 1000,
    DEPTH_DEFAULT = 128,
    DRAFTS_MAX = 1 + BEL_JOB_THEN_DEPTH_MAX,
    FRAMES_MAX = 3 * DRAFTS_MAX + 3,
    NAME_SHOWN_MAX = 32, /* bytes of an unknown name that a message has */
    PATH_BYTES = 96,
};

enum frame_kind {
    FRAME_JOB,
    FRAME_TASKS,
    FRAME_TASK,
    FRAME_AFTERS,
    FRAME_AFTER,
    FRAME_HEADERS,
    FRAME_THENS,
    FRAME_THEN,
};

struct frame {
    enum frame_kind kind;
    uint32_t index;                    /* of an array: of the element */
    const struct bel_job_field *field; /* of an object: whose value comes */
    struct bel_job_values *values;     /* of an object */
};

/* A job whose draft is complete, for the check of ids. Inner jobs come before outer ones. */
struct job {
    struct bel_job_graph *graph;
    uint32_t longest; /* the task with the longest id */
    uint32_t parent;  /* index; set when the parent is complete; UINT32_MAX: none */
    uint32_t place;   /* in `then` of the parent */
    uint32_t level;   /* of `then` */
    char path[PATH_BYTES];
};

/* A job that is being read, and the values of its innermost task and dependency. */
struct level {
    struct bel_job_draft draft;
    struct bel_job_values job, then;
    size_t start; /* of the text of the job */
};

enum step {
    STEP_TOKENS,
    STEP_SKIP,    /* to the end of a payload */
    STEP_PAYLOAD, /* from text to bytes */
    STEP_CHECK,   /* of a draft */
    STEP_IDS,
    STEP_END,
};

struct bel_job_parser {
    struct bel_job_parser_options options;
    struct bel_json_reader reader;
    enum step step;
    int err; /* the result, from STEP_END on */
    struct frame frames[FRAMES_MAX];
    uint32_t frames_count;
    struct level levels[DRAFTS_MAX];
    uint32_t levels_count;
    struct job jobs[BEL_JOB_THEN_MAX + 1];
    uint32_t jobs_count;
    uint32_t tasks_total, edges_total, then_total;
    struct bel_job_values task, after; /* of the innermost objects */
    struct bel_header headers[BEL_HEADERS_MAX];
    size_t headers_count, headers_bytes;
    struct bel_view header_name;
    struct bel_job_body body;
    struct bel_job_payload payload;
    size_t payload_start;   /* of the value in the text */
    uint32_t payload_depth; /* of the text around the value */
    char time[BEL_INSTANT_BYTES];
    struct bel_job_graph *graph; /* the result */
    struct bel_job_fault fault;
    char why[BEL_WHY_BYTES];
};

static struct frame *top(struct bel_job_parser *parser)
{
    assert(parser->frames_count > 0);
    return &parser->frames[parser->frames_count - 1];
}

static struct level *level(struct bel_job_parser *parser)
{
    assert(parser->levels_count > 0);
    return &parser->levels[parser->levels_count - 1];
}

/* --- places of errors --- */

__attribute__((format(printf, 4, 5))) static size_t append(char *out, size_t room, size_t used,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int put = vsnprintf(out + used, room - used, format, args);
    va_end(args);
    if (put < 0) return used;
    return used + (size_t)put < room ? used + (size_t)put : room - 1;
}

/* Prints where the parser is: "then[0].job.tasks[3].after[1]". Returns the length. */
static size_t print_path(const struct bel_job_parser *parser, char *out, size_t room)
{
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < parser->frames_count; i++) {
        const struct frame *frame = &parser->frames[i];
        if (frame->values == NULL && frame->kind != FRAME_HEADERS) {
            used = append(out, room, used, "[%u]", frame->index);
        } else if (frame->field != NULL) {
            used = append(out, room, used, "%s%s", used > 0 ? "." : "", frame->field->name);
        }
    }
    return used;
}

/* Prints the message of the error from the path and the fault. */
static void explain(struct bel_job_parser *parser)
{
    char path[PATH_BYTES];
    const struct bel_job_fault *fault = &parser->fault;
    size_t used = print_path(parser, path, sizeof path);
    if (fault->place[0] != 0) {
        used = append(path, sizeof path, used, "%s%s", used > 0 ? "." : "", fault->place);
    }
    used = append(parser->why, sizeof parser->why, 0, "%s%s", path, used > 0 ? ": " : "");
    (void)append(parser->why, sizeof parser->why, used, "%s", fault->text);
}

/* Copies a name from the text for a message, without bytes that could disturb a terminal. */
static const char *show(const struct bel_json_token *name, char out[NAME_SHOWN_MAX + 1])
{
    const unsigned char *raw = name->raw.data;
    size_t bytes = name->raw.bytes < NAME_SHOWN_MAX ? name->raw.bytes : NAME_SHOWN_MAX;
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (char)(raw[i] > ' ' && raw[i] < 0x7f ? raw[i] : '?');
    }
    out[bytes] = 0;
    return out;
}

/* --- frames --- */

static void push(struct bel_job_parser *parser, enum frame_kind kind, struct bel_job_values *values)
{
    assert(parser->frames_count < FRAMES_MAX);
    parser->frames[parser->frames_count++] = (struct frame){.kind = kind, .values = values};
    if (values != NULL) *values = (struct bel_job_values){0};
}

static int begin_job(struct bel_job_parser *parser)
{
    uint32_t max = parser->options.limits.then_depth_max;
    if (parser->levels_count > max) {
        return bel__job_fault(&parser->fault, BEL_EFULL,
                              "then is more than %u levels deep (--job-depth)", max);
    }
    struct level *made = &parser->levels[parser->levels_count];
    int err = bel__job_draft_init(&made->draft, parser->options.secret);
    if (err) return err;
    made->draft.is_stored = parser->options.is_stored;
    parser->levels_count++;
    made->start = parser->reader.at - 1;
    push(parser, FRAME_JOB, &made->job);
    return 0;
}

static int begin_task(struct bel_job_parser *parser)
{
    uint32_t max = parser->options.limits.tasks_max;
    if (parser->tasks_total++ == max) {
        return bel__job_fault(&parser->fault, BEL_EFULL, "more than %u tasks (--job-tasks)", max);
    }
    if (bel__job_draft_add_task(&level(parser)->draft) == NULL) return BEL_ENOMEM;
    push(parser, FRAME_TASK, &parser->task);
    parser->headers_count = parser->headers_bytes = 0;
    parser->body = (struct bel_job_body){0};
    return 0;
}

static int end_task(struct bel_job_parser *parser)
{
    struct bel_job_context context = {.zones = parser->options.zones};
    parser->body.headers = parser->headers;
    parser->body.headers_count = parser->headers_count;
    return bel__job_build_task(&level(parser)->draft, &parser->task, &parser->body, &context,
                               &parser->fault);
}

static int add_after(struct bel_job_parser *parser, struct bel_view name, enum bel_edge_policy on)
{
    uint32_t max = parser->options.limits.edges_max;
    if (parser->edges_total++ == max) {
        return bel__job_fault(&parser->fault, BEL_EFULL, "more than %u dependencies (--job-edges)",
                              max);
    }
    return bel__job_build_after(&level(parser)->draft, name, on, &parser->fault);
}

static int end_after(struct bel_job_parser *parser)
{
    if (!bel__job_has(&parser->after, BEL_AFTER_TASK)) {
        (void)bel__job_fault_at(&parser->fault, 0, "task");
        return bel__job_fault(&parser->fault, BEL_EINVAL, "missing");
    }
    return add_after(parser, parser->after.of[BEL_AFTER_TASK].text,
                     (enum bel_edge_policy)parser->after.of[BEL_AFTER_ON].number);
}

static int begin_then(struct bel_job_parser *parser)
{
    if (parser->then_total++ == BEL_JOB_THEN_MAX) {
        return bel__job_fault(&parser->fault, BEL_EFULL, "more than %d jobs in then",
                              BEL_JOB_THEN_MAX);
    }
    if (bel__job_draft_add_then(&level(parser)->draft) == NULL) return BEL_ENOMEM;
    push(parser, FRAME_THEN, &level(parser)->then);
    return 0;
}

static int end_then(struct bel_job_parser *parser)
{
    struct level *outer = level(parser);
    struct bel_job_then *then = &outer->draft.then[outer->draft.then_count - 1];
    if (!bel__job_has(&outer->then, BEL_THEN_JOB)) {
        (void)bel__job_fault_at(&parser->fault, 0, "job");
        return bel__job_fault(&parser->fault, BEL_EINVAL, "missing");
    }
    then->on = (enum bel_edge_policy)outer->then.of[BEL_THEN_ON].number;
    return 0;
}

/* The object of a job has ended: its values are built, then its draft is checked. */
static int end_job(struct bel_job_parser *parser)
{
    struct level *ended = level(parser);
    struct bel_job_context context = {.zones = parser->options.zones,
                                      .now = parser->options.now,
                                      .is_then = parser->levels_count > 1,
                                      .is_occurrence = parser->options.has_nominal};
    parser->step = STEP_CHECK;
    return bel__job_build_job(&ended->draft, &ended->job, &context, &parser->fault);
}

/* The draft of a job has been checked: it becomes a job of the outer one, or the result. */
static void end_check(struct bel_job_parser *parser)
{
    struct level *ended = level(parser);
    struct bel_job_graph *graph = ended->draft.graph;
    uint32_t depth = --parser->levels_count;
    struct job *job = &parser->jobs[parser->jobs_count++];
    *job = (struct job){
        .graph = graph, .longest = ended->draft.longest, .parent = UINT32_MAX, .level = depth};
    parser->frames_count--;
    (void)print_path(parser, job->path, sizeof job->path);
    for (uint32_t i = 0; i + 1 < parser->jobs_count; i++) { /* its children */
        struct job *inner = &parser->jobs[i];
        if (inner->parent == UINT32_MAX && inner->level == depth + 1) {
            inner->parent = parser->jobs_count - 1;
        }
    }
    ended->draft.graph = NULL;
    bel__job_draft_finish(&ended->draft);
    parser->step = STEP_TOKENS;
    if (depth == 0) {
        parser->graph = graph;
        return;
    }
    struct bel_job_draft *outer = &level(parser)->draft;
    job->place = outer->then_count - 1;
    struct bel_job_then *then = &outer->then[job->place];
    then->graph = graph;
    then->text =
        (struct bel_view){parser->reader.text + ended->start, parser->reader.at - ended->start};
}

/* --- payloads --- */

static int begin_payload(struct bel_job_parser *parser, struct bel_view raw, bool is_string)
{
    bool is_base64 = top(parser)->field->type == BEL_JOB_BASE64;
    struct bel_job_payload_options options = {
        .raw = raw,
        .is_string = is_string,
        .is_base64 = is_base64,
        .bytes_max = parser->options.limits.payload_bytes_max,
    };
    if (parser->options.has_nominal && !is_base64) {
        options.time = (struct bel_view){parser->time, strlen(parser->time)};
    }
    parser->body.is_json = !is_string;
    parser->step = STEP_PAYLOAD;
    return bel__job_payload_begin(&parser->payload, &level(parser)->draft, &options);
}

static int take_payload(struct bel_job_parser *parser, const struct bel_json_token *token)
{
    bool is_string = token->kind == BEL_JSON_STRING;
    if (top(parser)->field->type == BEL_JOB_BASE64 && !is_string) {
        return bel__job_fault(&parser->fault, BEL_EINVAL, "expected a string");
    }
    if (token->kind == BEL_JSON_BEGIN_OBJECT || token->kind == BEL_JSON_BEGIN_ARRAY) {
        parser->payload_start = parser->reader.at - 1;
        parser->payload_depth = parser->reader.depth - 1;
        parser->step = STEP_SKIP;
        return 0;
    }
    return begin_payload(parser, token->raw, is_string);
}

/* Skips a token inside a payload that is an array or an object. */
static int skip_token(struct bel_job_parser *parser)
{
    size_t end = parser->reader.at;
    if (parser->reader.depth > parser->payload_depth) return 0;
    return begin_payload(
        parser,
        (struct bel_view){parser->reader.text + parser->payload_start, end - parser->payload_start},
        false);
}

/* --- tokens --- */

static int expect(struct bel_job_parser *parser, const char *what)
{
    return bel__job_fault(&parser->fault, BEL_EINVAL, "expected %s", what);
}

static enum bel_job_object object_of(const struct frame *frame)
{
    switch (frame->kind) {
    case FRAME_JOB:
        return BEL_JOB_OBJECT_JOB;
    case FRAME_TASK:
        return BEL_JOB_OBJECT_TASK;
    case FRAME_AFTER:
        return BEL_JOB_OBJECT_AFTER;
    default:
        assert(frame->kind == FRAME_THEN);
        return BEL_JOB_OBJECT_THEN;
    }
}

/* A name in an object: the field whose value comes next. */
static int take_name(struct bel_job_parser *parser, const struct bel_json_token *token)
{
    struct frame *frame = top(parser);
    char shown[NAME_SHOWN_MAX + 1];
    if (frame->kind == FRAME_HEADERS) {
        return bel__job_text(&level(parser)->draft, token, BEL_HEADERS_BYTES_MAX,
                             &parser->header_name, &parser->fault);
    }
    enum bel_job_object object = object_of(frame);
    frame->field = bel__job_field_find(object, token);
    if (frame->field == NULL) {
        (void)bel__job_fault_at(&parser->fault, 0, "%s", show(token, shown));
        return bel__job_refuse_field(object, token, &parser->fault);
    }
    size_t place = (size_t)(frame->field - bel__job_fields[object].fields);
    if (bel__job_has(frame->values, place)) {
        return bel__job_fault(&parser->fault, BEL_EINVAL, "given twice");
    }
    frame->values->seen |= UINT32_C(1) << place;
    return 0;
}

static int take_header(struct bel_job_parser *parser, const struct bel_json_token *token)
{
    struct bel_header header = {.name = parser->header_name};
    int err = bel__job_text(&level(parser)->draft, token, BEL_HEADERS_BYTES_MAX, &header.value,
                            &parser->fault);
    if (err == 0) {
        err = bel__job_check_header(&header, parser->headers_count, parser->headers_bytes,
                                    &parser->fault);
    }
    if (err) return err;
    parser->headers[parser->headers_count++] = header;
    parser->headers_bytes += header.name.bytes + header.value.bytes;
    return 0;
}

static int begin_array(struct bel_job_parser *parser, enum frame_kind kind,
                       const struct bel_json_token *token)
{
    char shown[NAME_SHOWN_MAX + 1];
    if (token->kind == BEL_JSON_STRING && kind == FRAME_AFTERS) {
        return bel__job_fault(&parser->fault, BEL_EINVAL, "expected an array: [\"%s\"]",
                              show(token, shown));
    }
    if (token->kind != BEL_JSON_BEGIN_ARRAY) return expect(parser, "an array");
    push(parser, kind, NULL);
    return 0;
}

/* The value of a field. */
static int take_field(struct bel_job_parser *parser, const struct bel_json_token *token)
{
    struct frame *frame = top(parser);
    const struct bel_job_field *field = frame->field;
    bool is_object = token->kind == BEL_JSON_BEGIN_OBJECT;
    switch (field->type) {
    case BEL_JOB_TASKS:
        return begin_array(parser, FRAME_TASKS, token);
    case BEL_JOB_AFTERS:
        return begin_array(parser, FRAME_AFTERS, token);
    case BEL_JOB_THENS:
        return begin_array(parser, FRAME_THENS, token);
    case BEL_JOB_HEADERS:
        if (!is_object) return expect(parser, "an object of names and values");
        push(parser, FRAME_HEADERS, NULL);
        return 0;
    case BEL_JOB_JOB:
        return is_object ? begin_job(parser) : expect(parser, "a job");
    case BEL_JOB_ANY:
    case BEL_JOB_BASE64:
        return take_payload(parser, token);
    default:
        break;
    }
    size_t place = (size_t)(field - bel__job_fields[object_of(frame)].fields);
    return bel__job_value(&level(parser)->draft, field, token, &frame->values->of[place].text,
                          &frame->values->of[place].number, &parser->fault);
}

/* An element of an array. */
static int take_element(struct bel_job_parser *parser, const struct bel_json_token *token)
{
    bool is_object = token->kind == BEL_JSON_BEGIN_OBJECT;
    struct bel_view name;
    switch (top(parser)->kind) {
    case FRAME_TASKS:
        return is_object ? begin_task(parser) : expect(parser, "a task, which is an object");
    case FRAME_THENS:
        return is_object ? begin_then(parser) : expect(parser, "an object with a job");
    default:
        assert(top(parser)->kind == FRAME_AFTERS);
        break;
    }
    if (is_object) {
        push(parser, FRAME_AFTER, &parser->after);
        return 0;
    }
    if (token->kind != BEL_JSON_STRING) return expect(parser, "the id of a task, or an object");
    int err =
        bel__job_text(&level(parser)->draft, token, BEL_JOB_IDS_BYTES_MAX, &name, &parser->fault);
    if (err == 0) err = add_after(parser, name, BEL_EDGE_SUCCESS);
    if (err == 0) top(parser)->index++;
    return err;
}

/* The end of an object or an array. */
static int take_end(struct bel_job_parser *parser)
{
    struct frame *frame = top(parser);
    int err = 0;
    frame->field = NULL;
    if (frame->kind == FRAME_JOB) return end_job(parser); /* the frame stays until the check ends */
    if (frame->kind == FRAME_TASK) err = end_task(parser);
    if (frame->kind == FRAME_AFTER) err = end_after(parser);
    if (frame->kind == FRAME_THEN) err = end_then(parser);
    if (err) return err;
    bool is_element = frame->values != NULL; /* of an array: its next element comes */
    parser->frames_count--;
    if (is_element) top(parser)->index++;
    return 0;
}

static int take_token(struct bel_job_parser *parser, const struct bel_json_token *token)
{
    if (token->kind == BEL_JSON_END) {
        assert(parser->frames_count == 0 && parser->graph != NULL);
        parser->step = STEP_IDS;
        return 0;
    }
    if (parser->frames_count == 0) {
        return token->kind == BEL_JSON_BEGIN_OBJECT ? begin_job(parser)
                                                    : expect(parser, "a job, which is an object");
    }
    const struct frame *frame = top(parser);
    if (token->kind == BEL_JSON_END_OBJECT || token->kind == BEL_JSON_END_ARRAY) {
        return take_end(parser);
    }
    if (token->kind == BEL_JSON_NAME) return take_name(parser, token);
    if (frame->kind == FRAME_HEADERS) return take_header(parser, token);
    return frame->values != NULL ? take_field(parser, token) : take_element(parser, token);
}

/* --- ids --- */

static int refuse_id(struct bel_job_parser *parser, const struct job *job, const char *what)
{
    (void)bel__job_fault_at(&parser->fault, 0, "%s%sid", job->path, job->path[0] != 0 ? "." : "");
    return bel__job_fault(&parser->fault, BEL_EINVAL, "%s", what);
}

static bool is_same(struct bel_view one, struct bel_view other)
{
    return one.bytes == other.bytes && memcmp(one.data, other.data, one.bytes) == 0;
}

/* Gives the outermost job its id. */
static int name_root(struct bel_job_parser *parser, struct job *job)
{
    struct bel_view given = parser->options.id, *id = &job->graph->id;
    if (given.bytes > 0 && id->bytes > 0 && !is_same(given, *id)) {
        return refuse_id(parser, job, "differs from the id in the request");
    }
    if (id->bytes > 0) return 0;
    const char *what = given.bytes > 0 ? bel__job_id_fault(given) : NULL;
    if (what != NULL) return refuse_id(parser, job, what);
    if (given.bytes == 0) given = parser->options.made_id;
    if (given.bytes == 0) return refuse_id(parser, job, "missing");
    *id = bel__arena_copy(&job->graph->memory, given);
    return id->data != NULL ? 0 : BEL_ENOMEM;
}

/* Gives a job of `then` without an id that of its parent and its place. */
static int name_then(const struct bel_job_parser *parser, struct job *job)
{
    struct bel_view parent = parser->jobs[job->parent].graph->id;
    char text[BEL_JOB_IDS_BYTES_MAX + 16];
    assert(parent.bytes <= BEL_JOB_IDS_BYTES_MAX);
    if (job->graph->id.bytes > 0) return 0;
    int bytes = snprintf(text, sizeof text, "%.*s.%u", (int)parent.bytes, (const char *)parent.data,
                         job->place + 1);
    assert(bytes > 0 && (size_t)bytes < sizeof text);
    job->graph->id = bel__arena_copy(&job->graph->memory, (struct bel_view){text, (size_t)bytes});
    return job->graph->id.data != NULL ? 0 : BEL_ENOMEM;
}

static int check_lengths(struct bel_job_parser *parser, const struct job *job)
{
    const struct bel_job_graph *graph = job->graph;
    size_t task = graph->tasks_count > 0 ? graph->tasks[job->longest].id.bytes : 0;
    if (graph->id.bytes + task <= BEL_JOB_IDS_BYTES_MAX) return 0;
    if (task == 0) return refuse_id(parser, job, "longer than 100 bytes");
    (void)bel__job_fault_at(&parser->fault, 0, "%s%stasks[%u].id", job->path,
                            job->path[0] != 0 ? "." : "", job->longest);
    return bel__job_fault(&parser->fault, BEL_EINVAL,
                          "the ids of job and task are longer than %d bytes together",
                          BEL_JOB_IDS_BYTES_MAX);
}

/* Adds the nominal time to the id of a job that is part of an occurrence. */
static int add_nominal(const struct bel_job_parser *parser, struct bel_job_graph *graph)
{
    char text[BEL_JOB_IDS_BYTES_MAX + 24];
    int bytes = snprintf(text, sizeof text, "%.*s@%lld", (int)graph->id.bytes,
                         (const char *)graph->id.data, (long long)parser->options.nominal.ms);
    assert(bytes > 0 && (size_t)bytes < sizeof text);
    graph->id = bel__arena_copy(&graph->memory, (struct bel_view){text, (size_t)bytes});
    return graph->id.data != NULL ? 0 : BEL_ENOMEM;
}

/* Returns whether a job is inside `then` of another one. */
static bool is_inside(const struct bel_job_parser *parser, const struct job *job, uint32_t other)
{
    while (job->level > 0 && job->parent != other) {
        job = &parser->jobs[job->parent];
    }
    return job->level > 0;
}

/* Refuses the second of two equal ids: that of the inner job, or of the one later in the text. A
 * job has a smaller index than those later in the text and those that it is inside of. */
static int refuse_double(struct bel_job_parser *parser, uint32_t index, uint32_t other)
{
    const struct job *one = &parser->jobs[other], *second = &parser->jobs[index];
    char what[PATH_BYTES + BEL_JOB_IDS_BYTES_MAX + 64];
    if (!is_inside(parser, second, other)) {
        second = one;
        one = &parser->jobs[index];
    }
    (void)snprintf(what, sizeof what, "duplicate: %s has the id '%.*s' too",
                   one->path[0] != 0 ? one->path : "the outermost job", (int)one->graph->id.bytes,
                   (const char *)one->graph->id.data);
    return refuse_id(parser, second, what);
}

/* From the outermost job to the inner ones. At most BEL_JOB_THEN_MAX + 1 jobs, so in one piece. */
static int check_ids(struct bel_job_parser *parser)
{
    for (uint32_t i = parser->jobs_count; i-- > 0;) {
        struct job *job = &parser->jobs[i];
        int err = job->level == 0 ? name_root(parser, job) : name_then(parser, job);
        if (err == 0) err = check_lengths(parser, job);
        for (uint32_t other = i + 1; err == 0 && other < parser->jobs_count; other++) {
            if (is_same(job->graph->id, parser->jobs[other].graph->id)) {
                err = refuse_double(parser, i, other);
            }
        }
        if (err) return err;
    }
    for (uint32_t i = 0; parser->options.has_nominal && i < parser->jobs_count; i++) {
        if (add_nominal(parser, parser->jobs[i].graph) != 0) return BEL_ENOMEM;
    }
    return 0;
}

/* --- steps --- */

/* The place of an error in JSON is a line: the path would be that of the value before it. */
static int refuse_json(struct bel_job_parser *parser, int err)
{
    const struct bel_json_reader *reader = &parser->reader;
    parser->frames_count = 0;
    if (reader->at == 0 && reader->bytes >= 3 && memcmp(reader->text, "\xef\xbb\xbf", 3) == 0) {
        return bel__job_fault(&parser->fault, err,
                              "the text begins with a byte order mark: leave it out");
    }
    return bel__job_fault(&parser->fault, err, "line %u, column %zu: expected %s", reader->line + 1,
                          reader->at - reader->line_start + 1, reader->wanted);
}

static int read_token(struct bel_job_parser *parser, uint32_t *work)
{
    struct bel_json_token token;
    int err = bel__json_next(&parser->reader, work, &token);
    if (err == BEL_JSON_READER_MORE) return BEL_JOB_MORE;
    if (err) return refuse_json(parser, err);
    return parser->step == STEP_SKIP ? skip_token(parser) : take_token(parser, &token);
}

static int do_step(struct bel_job_parser *parser, uint32_t *work)
{
    struct bel_view bytes;
    int err = 0;
    switch (parser->step) {
    case STEP_TOKENS:
    case STEP_SKIP:
        return read_token(parser, work);
    case STEP_PAYLOAD:
        err = bel__job_payload_step(&parser->payload, &level(parser)->draft, work, &bytes,
                                    &parser->fault);
        if (err) return err;
        parser->body.payload = bytes;
        parser->step = STEP_TOKENS;
        return 0;
    case STEP_CHECK:
        err = bel__job_check(&level(parser)->draft, work, &parser->fault);
        if (err == 0) end_check(parser);
        return err;
    case STEP_IDS:
        err = check_ids(parser);
        if (err == 0) parser->step = STEP_END;
        return err;
    default:
        return 0;
    }
}

int bel__job_parser_step(struct bel_job_parser *parser, uint32_t work)
{
    while (parser->step != STEP_END) {
        if (work == 0) return BEL_JOB_PARSER_MORE;
        int err = do_step(parser, &work);
        if (err == BEL_JOB_MORE) return BEL_JOB_PARSER_MORE;
        if (err == 0) continue;
        parser->err = err;
        parser->step = STEP_END;
        if (err == BEL_ENOMEM) (void)bel__job_fault(&parser->fault, err, "out of memory");
        explain(parser);
    }
    return parser->err;
}

const char *bel__job_parser_why(const struct bel_job_parser *parser)
{
    return parser->why;
}

/* --- the parser --- */

static void set_defaults(struct bel_job_limits *limits)
{
    if (limits->text_bytes_max == 0) limits->text_bytes_max = TEXT_BYTES_DEFAULT;
    if (limits->payload_bytes_max == 0) limits->payload_bytes_max = BEL_PAYLOAD_BYTES_DEFAULT;
    if (limits->tasks_max == 0) limits->tasks_max = TASKS_DEFAULT;
    if (limits->edges_max == 0) limits->edges_max = EDGES_DEFAULT;
    if (limits->depth_max == 0) limits->depth_max = DEPTH_DEFAULT;
    if (limits->then_depth_max == 0) limits->then_depth_max = BEL_JOB_THEN_DEPTH_DEFAULT;
    if (limits->then_depth_max > BEL_JOB_THEN_DEPTH_MAX) {
        limits->then_depth_max = BEL_JOB_THEN_DEPTH_MAX;
    }
    if (limits->depth_max > BEL_JSON_READER_DEPTH_MAX) {
        limits->depth_max = BEL_JSON_READER_DEPTH_MAX;
    }
}

int bel__job_parser_create(const struct bel_job_parser_options *options,
                           struct bel_job_parser **out)
{
    struct bel_job_parser *parser = calloc(1, sizeof *parser);
    if (parser == NULL) return BEL_ENOMEM;
    parser->options = *options;
    struct bel_job_limits *limits = &parser->options.limits;
    set_defaults(limits);
    bel__json_reader_init(&parser->reader, options->text, limits->depth_max);
    if (options->has_nominal) {
        (void)bel_instant_print(options->nominal, parser->time, sizeof parser->time);
    }
    if (options->text.bytes > limits->text_bytes_max) {
        parser->step = STEP_END;
        parser->err =
            bel__job_fault(&parser->fault, BEL_EFULL,
                           "the text has %zu bytes: at most %llu are allowed (--max-job)",
                           options->text.bytes, (unsigned long long)limits->text_bytes_max);
        explain(parser);
    }
    *out = parser;
    return 0;
}

struct bel_job_graph *bel__job_parser_take(struct bel_job_parser *parser)
{
    assert(parser->step == STEP_END && parser->err == 0 && parser->graph != NULL);
    struct bel_job_graph *graph = parser->graph;
    parser->graph = NULL;
    return graph;
}

void bel__job_parser_destroy(struct bel_job_parser *parser)
{
    if (parser == NULL) return;
    for (uint32_t i = 0; i < parser->levels_count; i++) {
        bel__job_draft_finish(&parser->levels[i].draft);
    }
    bel__job_graph_destroy(parser->graph);
    free(parser);
}
