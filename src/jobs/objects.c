/* SPDX-License-Identifier: MIT */

/* The rules are those of SCHEDULE, for a task as for a timer. */
#include "jobs/objects.h"

#include "belfry/backend.h"
#include "belfry/instant.h"
#include "belfry/plan.h"
#include "core/parse.h"
#include "plan/zone_meant.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* In milliseconds: a smaller number is a time in seconds, by mistake. */
#define EPOCH_MS_MIN UINT64_C(100000000000)

static const char content_type[] = "content-type", json_type[] = "application/json";

static int refuse(struct bel_job_fault *fault, const char *field, const char *what)
{
    (void)bel__job_fault_at(fault, 0, "%s", field);
    return bel__job_fault(fault, BEL_EINVAL, "%s", what);
}

const char *bel__job_id_fault(struct bel_view id)
{
    static_assert(BEL_JOB_IDS_BYTES_MAX == 100, "the text says so");
    if (bel_job_id_is_valid(id)) return NULL;
    return id.bytes > BEL_JOB_IDS_BYTES_MAX ? "longer than 100 bytes"
                                            : "use A-Z a-z 0-9 . _ : - and neither / nor @";
}

static int check_id(struct bel_view id, struct bel_job_fault *fault)
{
    const char *what = bel__job_id_fault(id);
    return what == NULL ? 0 : refuse(fault, "id", what);
}

/* Returns what is wrong with the name of a topic; NULL if nothing is. A resource may have the name
 * of an option of CLAIM, a topic may not. */
static const char *topic_fault(struct bel_view topic)
{
    static_assert(BEL_TOPIC_BYTES_MAX == 200, "the text says so");
    if (bel_topic_is_valid(topic)) return NULL;
    if (topic.bytes > BEL_TOPIC_BYTES_MAX) return "longer than 200 bytes";
    if (bel_resource_is_valid(topic)) return "an option of CLAIM has this name: use another one";
    return "not a name of a topic: use A-Z a-z 0-9 . _ : / -";
}

/* Parses a time, which may have a zone and depend on the policies for gaps and folds. */
static int parse_time(struct bel_view text, const struct bel_job_context *context,
                      const struct bel_instant_options *policies, struct bel_wall *out,
                      struct bel_job_fault *fault)
{
    struct bel_instant_options options = *policies;
    struct bel_text_error why;
    uint64_t number;
    options.zones = context->zones;
    int err = bel_instant_parse(text.data, text.bytes, &options, out, &why);
    bool is_number = bel__parse_u64(text.data, text.bytes, 0, UINT64_MAX, &number) == 0;
    if (err == 0 && is_number && number < EPOCH_MS_MIN) {
        return bel__job_fault(fault, BEL_EINVAL, "this looks like seconds: give milliseconds");
    }
    if (err == 0 && out->ms < 0) {
        return bel__job_fault(fault, BEL_EINVAL, "this is before 1970");
    }
    if (err == 0 || err == BEL_ENOMEM) return err;
    if (err != BEL_EINVAL) return bel__job_fault(fault, BEL_EINVAL, "cannot read its time zone");
    return bel__job_fault(fault, BEL_EINVAL, "at byte %zu, expected %s", why.position + 1,
                          why.expected);
}

/* --- tasks --- */

int bel__job_check_header(const struct bel_header *header, size_t count, size_t bytes,
                          struct bel_job_fault *fault)
{
    static const char prefix[] = "belfry-";
    if (count == BEL_HEADERS_MAX) {
        return bel__job_fault(fault, BEL_EINVAL, "more than %d headers", BEL_HEADERS_MAX);
    }
    if (header->name.bytes == 0) return bel__job_fault(fault, BEL_EINVAL, "a header needs a name");
    if (header->name.bytes >= sizeof prefix - 1 &&
        strncasecmp(header->name.data, prefix, sizeof prefix - 1) == 0) {
        return bel__job_fault(fault, BEL_EINVAL, "names that begin with belfry- are reserved");
    }
    if (bytes + header->name.bytes + header->value.bytes > BEL_HEADERS_BYTES_MAX) {
        return bel__job_fault(fault, BEL_EINVAL, "headers have more than %d bytes",
                              BEL_HEADERS_BYTES_MAX);
    }
    return 0;
}

/* Copies the headers of a task, and adds the content type of a payload that is a JSON value. */
static int take_headers(struct bel_job_draft *draft, const struct bel_job_body *body,
                        struct bel_job_node *task)
{
    struct bel_header *headers =
        bel__job_draft_take(draft, (body->headers_count + 1) * sizeof *headers);
    bool has_type = false;
    if (headers == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < body->headers_count; i++) {
        headers[i] = body->headers[i];
        has_type = has_type ||
                   (headers[i].name.bytes == sizeof content_type - 1 &&
                    strncasecmp(headers[i].name.data, content_type, sizeof content_type - 1) == 0);
    }
    task->headers = headers;
    task->headers_count = body->headers_count;
    if (body->is_json && !has_type) {
        headers[task->headers_count++] =
            (struct bel_header){.name = BEL_VIEW(content_type), .value = BEL_VIEW(json_type)};
    }
    return 0;
}

static int check_task(const struct bel_job_values *values, struct bel_job_fault *fault)
{
    struct bel_view topic = values->of[BEL_TASK_TOPIC].text;
    struct bel_view resource = values->of[BEL_TASK_RESOURCE].text;
    if (!bel__job_has(values, BEL_TASK_ID)) return refuse(fault, "id", "missing");
    if (!bel__job_has(values, BEL_TASK_TOPIC)) return refuse(fault, "topic", "missing");
    int err = check_id(values->of[BEL_TASK_ID].text, fault);
    if (err) return err;
    const char *what = topic_fault(topic);
    if (what != NULL) return refuse(fault, "topic", what);
    if (resource.bytes > 0 && !bel_resource_is_valid(resource)) {
        return refuse(fault, "resource",
                      "not a name of a resource: use A-Z a-z 0-9 . _ : / - without an empty part");
    }
    if (bel__job_has(values, BEL_TASK_PAYLOAD) && bel__job_has(values, BEL_TASK_PAYLOAD_BASE64)) {
        return refuse(fault, "payload_base64", "payload is there too: give one of them");
    }
    if (bel__job_has(values, BEL_TASK_IN) && bel__job_has(values, BEL_TASK_AT)) {
        return refuse(fault, "at", "in is there too: give one of them");
    }
    return 0;
}

static int take_when(const struct bel_job_values *values, const struct bel_job_context *context,
                     struct bel_job_node *task, struct bel_job_fault *fault)
{
    struct bel_instant_options none = {0};
    if (bel__job_has(values, BEL_TASK_IN)) {
        task->when = BEL_WHEN_IN;
        task->delay_ms = values->of[BEL_TASK_IN].number;
    }
    if (!bel__job_has(values, BEL_TASK_AT)) return 0;
    task->when = BEL_WHEN_AT;
    int err = parse_time(values->of[BEL_TASK_AT].text, context, &none, &task->at, fault);
    return err == BEL_EINVAL ? bel__job_fault_at(fault, err, "at") : err;
}

int bel__job_build_task(struct bel_job_draft *draft, const struct bel_job_values *values,
                        const struct bel_job_body *body, const struct bel_job_context *context,
                        struct bel_job_fault *fault)
{
    struct bel_job_node *task = &draft->tasks[draft->tasks_count - 1];
    int err = check_task(values, fault);
    if (err == 0) err = take_when(values, context, task, fault);
    if (err) return err;
    task->id = values->of[BEL_TASK_ID].text;
    task->topic = values->of[BEL_TASK_TOPIC].text;
    task->payload = body->payload;
    task->resource = values->of[BEL_TASK_RESOURCE].text;
    task->retry = values->of[BEL_TASK_RETRY].text;
    task->correlation = values->of[BEL_TASK_CORRELATION].text;
    task->cost = (uint32_t)values->of[BEL_TASK_COST].number;
    task->idle_ms = values->of[BEL_TASK_IDLE].number;
    task->priority = BEL_TASK_PRIORITY_DEFAULT;
    if (bel__job_has(values, BEL_TASK_PRIORITY)) {
        task->priority = (uint8_t)values->of[BEL_TASK_PRIORITY].number;
    }
    if (body->headers_count > 0 || body->is_json) err = take_headers(draft, body, task);
    return err == 0 ? bel__job_draft_count_topic(draft, task) : err;
}

int bel__job_build_after(struct bel_job_draft *draft, struct bel_view name, enum bel_edge_policy on,
                         struct bel_job_fault *fault)
{
    struct bel_job_node *task = &draft->tasks[draft->tasks_count - 1];
    if (name.bytes == 0) return bel__job_fault(fault, BEL_EINVAL, "needs the id of a task");
    struct bel_job_wish *wish = bel__job_draft_add_wish(draft);
    if (wish == NULL) return BEL_ENOMEM;
    if (task->after_count == 0) task->after_start = draft->wishes_count - 1;
    *wish = (struct bel_job_wish){
        .name = name, .task = draft->tasks_count - 1, .place = task->after_count++, .on = on};
    return 0;
}

/* --- jobs --- */

static const size_t rules[] = {BEL_JOB_EVERY, BEL_JOB_CRON, BEL_JOB_RRULE};
static const enum bel_plan_kind kinds[] = {BEL_PLAN_EVERY, BEL_PLAN_CRON, BEL_PLAN_RRULE};

enum {
    RULES = sizeof rules / sizeof rules[0],
    ZONE_SHOWN_MAX = 48,
};

static const char *name_of(size_t place)
{
    return bel__job_fields[BEL_JOB_OBJECT_JOB].fields[place].name;
}

/* Sets the start and the end of a recurring job. */
static int take_limits(const struct bel_job_values *values, const struct bel_job_context *context,
                       struct bel_job_graph *graph, struct bel_job_fault *fault)
{
    struct bel_instant_options policies = {.gap = graph->plan.gap, .fold = graph->plan.fold};
    int err = 0;
    size_t place = BEL_JOB_AT;
    graph->has_start = bel__job_has(values, BEL_JOB_AT);
    graph->plan.has_until = bel__job_has(values, BEL_JOB_UNTIL);
    if (graph->has_start) {
        err = parse_time(values->of[BEL_JOB_AT].text, context, &policies, &graph->start, fault);
    }
    if (err == 0 && graph->plan.has_until) {
        place = BEL_JOB_UNTIL;
        err = parse_time(values->of[BEL_JOB_UNTIL].text, context, &policies, &graph->plan.until,
                         fault);
    }
    return err == BEL_EINVAL ? bel__job_fault_at(fault, err, "%s", name_of(place)) : err;
}

/* Returns how much of a name is quoted: all of it if it could be that of a zone, otherwise none. */
static int shown_bytes(struct bel_view name)
{
    const char *text = name.data;
    if (name.bytes > ZONE_SHOWN_MAX) return 0;
    for (size_t i = 0; i < name.bytes; i++) {
        if (text[i] <= ' ' || text[i] > '~') return 0;
    }
    return (int)name.bytes;
}

/* Refuses the name of a zone, and names the one that is meant. */
static int refuse_zone(struct bel_zones *zones, struct bel_view name, struct bel_job_fault *fault)
{
    char meant[BEL_ZONE_NAME_MAX + 1];
    const char *text = name.data;
    int shown = shown_bytes(name);
    bool is_meant = zones != NULL && bel__zone_meant(zones, text, name.bytes, meant);
    (void)bel__job_fault_at(fault, 0, "tz");
    return bel__job_fault(fault, BEL_EINVAL, "%s%.*s%snot the name of a time zone%s%.48s%s",
                          shown > 0 ? "'" : "", shown, text, shown > 0 ? "' is " : "",
                          is_meant ? ": did you mean " : ", e.g. Europe/Berlin",
                          is_meant ? meant : "", is_meant ? "?" : "");
}

/* Checks the rule by making a plan of it. */
static int check_plan(const struct bel_job_graph *graph, const struct bel_job_context *context,
                      size_t rule, struct bel_job_fault *fault)
{
    const struct bel_recurrence *plan = &graph->plan;
    struct bel_plan_options options = {.gap = plan->gap,
                                       .fold = plan->fold,
                                       .has_start = graph->has_start,
                                       .has_until = plan->has_until,
                                       .now = context->now,
                                       .start = graph->start,
                                       .until = plan->until};
    struct bel_text_error why;
    struct bel_plan *made;
    options.zone = bel_zone_utc();
    bool is_utc = plan->zone.bytes == 3 && memcmp(plan->zone.data, "UTC", 3) == 0;
    if (plan->zone.bytes > 0 && !is_utc) {
        int err = context->zones == NULL ? BEL_EINVAL
                                         : bel_zones_find(context->zones, plan->zone.data,
                                                          plan->zone.bytes, &options.zone);
        if (err == BEL_ENOMEM) return err;
        if (err) return refuse_zone(context->zones, plan->zone, fault);
    }
    int err = bel_plan_create(plan->rule.data, plan->rule.bytes, &options, &made, &why);
    if (err == BEL_ENOMEM) return err;
    (void)bel__job_fault_at(fault, 0, "%s", name_of(rules[rule]));
    if (err) {
        return bel__job_fault(fault, BEL_EINVAL, "at byte %zu, expected %s", why.position + 1,
                              why.expected);
    }
    bool is_kind = bel_plan_kind(made) == kinds[rule];
    struct bel_wall first;
    err = bel_plan_next(made, context->now, 0, &first);
    bel_plan_destroy(made);
    if (!is_kind) return bel__job_fault(fault, BEL_EINVAL, "not a rule of this kind");
    if (err == BEL_ERANGE) return bel__job_fault(fault, BEL_EINVAL, "has no time from now on");
    return err;
}

/* Returns the rule's index, or RULES if the job has none. */
static size_t rule_of(const struct bel_job_values *values)
{
    size_t rule = 0;
    while (rule < RULES && !bel__job_has(values, rules[rule])) {
        rule++;
    }
    return rule;
}

/* Refuses fields that only a recurring job has. */
static int check_no_plan(const struct bel_job_values *values, struct bel_job_fault *fault)
{
    for (size_t place = BEL_JOB_TZ; place < BEL_JOB_FIELDS_MAX; place++) {
        if (bel__job_has(values, place)) {
            return refuse(fault, name_of(place), "needs every, cron or rrule");
        }
    }
    return 0;
}

static int take_plan(const struct bel_job_values *values, const struct bel_job_context *context,
                     struct bel_job_graph *graph, struct bel_job_fault *fault)
{
    size_t rule = rule_of(values);
    if (rule == RULES) return check_no_plan(values, fault);
    for (size_t other = rule + 1; other < RULES; other++) {
        if (bel__job_has(values, rules[other])) {
            return refuse(fault, name_of(rules[other]), "give one of every, cron, rrule");
        }
    }
    if (context->is_then) {
        return refuse(fault, name_of(rules[rule]), "a job of then cannot recur");
    }
    if (context->is_occurrence) return 0;
    graph->is_recurring = true;
    graph->plan = (struct bel_recurrence){
        .kind = kinds[rule],
        .rule = values->of[rules[rule]].text,
        .zone = values->of[BEL_JOB_TZ].text,
        .gap = (enum bel_gap)values->of[BEL_JOB_GAP].number,
        .fold = (enum bel_fold)values->of[BEL_JOB_FOLD].number,
        .misfire = (enum bel_misfire)values->of[BEL_JOB_MISFIRE].number,
        .overlap = (enum bel_overlap)values->of[BEL_JOB_OVERLAP].number,
        .count = values->of[BEL_JOB_COUNT].number,
        .spread_ms = values->of[BEL_JOB_SPREAD].number,
    };
    int err = take_limits(values, context, graph, fault);
    return err == 0 ? check_plan(graph, context, rule, fault) : err;
}

int bel__job_build_job(struct bel_job_draft *draft, const struct bel_job_values *values,
                       const struct bel_job_context *context, struct bel_job_fault *fault)
{
    struct bel_job_graph *graph = draft->graph;
    if (!bel__job_has(values, BEL_JOB_TASK_LIST)) return refuse(fault, "tasks", "missing");
    graph->id = values->of[BEL_JOB_ID].text;
    int err = graph->id.bytes > 0 ? check_id(graph->id, fault) : 0;
    if (err) return err;
    graph->priority = BEL_JOB_PRIORITY_DEFAULT;
    if (bel__job_has(values, BEL_JOB_PRIORITY)) {
        graph->priority = (uint8_t)values->of[BEL_JOB_PRIORITY].number;
    }
    graph->timeout_ms = values->of[BEL_JOB_TIMEOUT].number;
    graph->pace_ms = values->of[BEL_JOB_PACE].number;
    graph->cooldown_ms = BEL_JOB_COOLDOWN_MS;
    if (bel__job_has(values, BEL_JOB_COOLDOWN)) {
        graph->cooldown_ms = values->of[BEL_JOB_COOLDOWN].number;
    }
    graph->retry = values->of[BEL_JOB_RETRIES].text;
    return take_plan(values, context, graph, fault);
}
