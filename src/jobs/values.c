/* SPDX-License-Identifier: MIT */

/* The tables, in the order of the enums of jobs/values.h, and a function for each type of value. */
#include "jobs/values.h"

#include "belfry/backoff.h"
#include "belfry/duration.h"
#include "belfry/zone.h"
#include "core/parse.h"

#include <assert.h>
#include <string.h>

enum {
    TIME_BYTES_MAX = 200,
    NAME_BYTES_MAX = 64, /* longer than any name of a field */
    ATTEMPTS_SHOWN_MAX = 1000,
    ATTEMPTS_SHOWN = 5, /* in an example */
};

/* A duration ends before the year 9999, counted from 1970. */
#define DURATION_MS_MAX UINT64_C(253402300799999)

#define WORDS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define POLICIES WORDS("success", "always", "failure")

static const struct bel_job_field job_fields[] = {
    [BEL_JOB_ID] = {"id", BEL_JOB_TEXT, .max = BEL_JOB_IDS_BYTES_MAX},
    [BEL_JOB_PRIORITY] = {"priority", BEL_JOB_NUMBER, BEL_JOB_PRIORITY_MIN, BEL_JOB_PRIORITY_MAX,
                          NULL},
    [BEL_JOB_TIMEOUT] = {"timeout", BEL_JOB_DURATION, .min = 1},
    [BEL_JOB_PACE] = {"pace", BEL_JOB_DURATION, .min = 0},
    [BEL_JOB_COOLDOWN] = {"cooldown", BEL_JOB_DURATION, .min = 0},
    [BEL_JOB_RETRIES] = {"retry", BEL_JOB_RETRY, .max = BEL_BACKOFF_BYTES - 1},
    [BEL_JOB_THEN] = {"then", BEL_JOB_THENS, .min = 0},
    [BEL_JOB_TASK_LIST] = {"tasks", BEL_JOB_TASKS, .min = 0},
    [BEL_JOB_EVERY] = {"every", BEL_JOB_DURATION, .min = 1},
    [BEL_JOB_CRON] = {"cron", BEL_JOB_TEXT, .max = BEL_RULE_BYTES_MAX},
    [BEL_JOB_RRULE] = {"rrule", BEL_JOB_TEXT, .max = BEL_RULE_BYTES_MAX},
    [BEL_JOB_TZ] = {"tz", BEL_JOB_TEXT, .max = BEL_ZONE_NAME_MAX},
    [BEL_JOB_AT] = {"at", BEL_JOB_TIME, .max = TIME_BYTES_MAX},
    [BEL_JOB_COUNT] = {"count", BEL_JOB_NUMBER, 1, UINT64_MAX, NULL},
    [BEL_JOB_UNTIL] = {"until", BEL_JOB_TIME, .max = TIME_BYTES_MAX},
    [BEL_JOB_MISFIRE] = {"misfire", BEL_JOB_WORD, .words = WORDS("skip", "last", "all")},
    [BEL_JOB_OVERLAP] = {"overlap", BEL_JOB_WORD, .words = WORDS("skip", "queue", "allow")},
    [BEL_JOB_GAP] = {"gap", BEL_JOB_WORD, .words = WORDS("next", "skip")},
    [BEL_JOB_FOLD] = {"fold", BEL_JOB_WORD, .words = WORDS("first", "second", "both")},
    [BEL_JOB_SPREAD] = {"spread", BEL_JOB_DURATION, .min = 0},
};
static_assert(sizeof job_fields / sizeof job_fields[0] == BEL_JOB_FIELDS_MAX,
              "every field has an entry");

static const struct bel_job_field task_fields[] = {
    [BEL_TASK_ID] = {"id", BEL_JOB_TEXT, .max = BEL_JOB_IDS_BYTES_MAX},
    [BEL_TASK_TOPIC] = {"topic", BEL_JOB_TEXT, .max = BEL_TOPIC_BYTES_MAX},
    [BEL_TASK_PAYLOAD] = {"payload", BEL_JOB_ANY, .min = 0},
    [BEL_TASK_PAYLOAD_BASE64] = {"payload_base64", BEL_JOB_BASE64, .min = 0},
    [BEL_TASK_AFTER] = {"after", BEL_JOB_AFTERS, .min = 0},
    [BEL_TASK_RESOURCE] = {"resource", BEL_JOB_TEXT, .max = BEL_TOPIC_BYTES_MAX},
    [BEL_TASK_COST] = {"cost", BEL_JOB_NUMBER, 0, BEL_JOB_COST_MAX, NULL},
    [BEL_TASK_PRIORITY] = {"priority", BEL_JOB_NUMBER, 0, UINT8_MAX, NULL},
    [BEL_TASK_RETRY] = {"retry", BEL_JOB_RETRY, .max = BEL_BACKOFF_BYTES - 1},
    [BEL_TASK_IDLE] = {"idle", BEL_JOB_DURATION, .min = 1},
    [BEL_TASK_HEADERS] = {"headers", BEL_JOB_HEADERS, .min = 0},
    [BEL_TASK_CORRELATION] = {"correlation", BEL_JOB_TEXT, .max = BEL_TEXT_BYTES_MAX},
    [BEL_TASK_IN] = {"in", BEL_JOB_DURATION, .min = 0},
    [BEL_TASK_AT] = {"at", BEL_JOB_TIME, .max = TIME_BYTES_MAX},
};

static const struct bel_job_field after_fields[] = {
    [BEL_AFTER_TASK] = {"task", BEL_JOB_TEXT, .max = BEL_JOB_IDS_BYTES_MAX},
    [BEL_AFTER_ON] = {"on", BEL_JOB_WORD, .words = POLICIES},
};

static const struct bel_job_field then_fields[] = {
    [BEL_THEN_JOB] = {"job", BEL_JOB_JOB, .min = 0},
    [BEL_THEN_ON] = {"on", BEL_JOB_WORD, .words = POLICIES},
};

const struct bel_job_fields bel__job_fields[] = {
    [BEL_JOB_OBJECT_JOB] = {job_fields, sizeof job_fields / sizeof job_fields[0]},
    [BEL_JOB_OBJECT_TASK] = {task_fields, sizeof task_fields / sizeof task_fields[0]},
    [BEL_JOB_OBJECT_AFTER] = {after_fields, sizeof after_fields / sizeof after_fields[0]},
    [BEL_JOB_OBJECT_THEN] = {then_fields, sizeof then_fields / sizeof then_fields[0]},
};

static void copy_text(const struct bel_json_token *token, void *out)
{
    struct bel_json_copy copy = {.from = token->raw.data, .to = out, .is_string = true};
    uint32_t work = UINT32_MAX;
    copy.end = copy.from + token->raw.bytes;
    if (!bel__json_copy(&copy, &work)) assert(false);
    assert((size_t)(copy.to - (unsigned char *)out) == token->decoded_bytes);
}

const struct bel_job_field *bel__job_field_find(enum bel_job_object object,
                                                const struct bel_json_token *name)
{
    const struct bel_job_fields *table = &bel__job_fields[object];
    char text[NAME_BYTES_MAX];
    if (name->decoded_bytes > sizeof text) return NULL;
    copy_text(name, text);
    for (size_t i = 0; i < table->count; i++) {
        const char *field = table->fields[i].name;
        if (strlen(field) != name->decoded_bytes) continue;
        if (memcmp(field, text, name->decoded_bytes) == 0) return &table->fields[i];
    }
    return NULL;
}

int bel__job_text(struct bel_job_draft *draft, const struct bel_json_token *token, size_t bytes_max,
                  struct bel_view *out, struct bel_job_fault *fault)
{
    if (token->kind != BEL_JSON_STRING && token->kind != BEL_JSON_NAME) {
        return bel__job_fault(fault, BEL_EINVAL, "expected a string");
    }
    if (token->decoded_bytes > bytes_max) {
        return bel__job_fault(fault, BEL_EINVAL, "longer than %zu bytes", bytes_max);
    }
    void *copy = bel__job_draft_take(draft, token->decoded_bytes);
    if (copy == NULL) return BEL_ENOMEM;
    copy_text(token, copy);
    *out = (struct bel_view){copy, token->decoded_bytes};
    return 0;
}

static int parse_number(const struct bel_job_field *field, const struct bel_json_token *token,
                        uint64_t *out, struct bel_job_fault *fault)
{
    int err = token->kind == BEL_JSON_NUMBER
                  ? bel__parse_u64(token->raw.data, token->raw.bytes, field->min, field->max, out)
                  : BEL_EINVAL;
    if (err == 0) return 0;
    if (field->max == UINT64_MAX) {
        return bel__job_fault(fault, BEL_EINVAL, "expected a whole number, at least %llu",
                              (unsigned long long)field->min);
    }
    return bel__job_fault(fault, BEL_EINVAL, "expected a whole number from %llu to %llu",
                          (unsigned long long)field->min, (unsigned long long)field->max);
}

static int refuse_text(struct bel_job_fault *fault, const struct bel_text_error *why)
{
    return bel__job_fault(fault, BEL_EINVAL, "at byte %zu, expected %s", why->position + 1,
                          why->expected);
}

/* Returns whether a text is a number other than 0, whose unit is missing. */
static bool is_bare(const char *text, size_t bytes)
{
    size_t zeros = 0, digits = 0;
    for (size_t i = 0; i < bytes; i++) {
        zeros += text[i] == '0';
        digits += text[i] >= '0' && text[i] <= '9';
    }
    return digits == bytes && zeros < bytes;
}

static int refuse_bare(struct bel_job_fault *fault, const char *text, size_t bytes)
{
    return bel__job_fault(fault, BEL_EINVAL, "'%.*s' needs a unit, e.g. %.*ss", (int)bytes, text,
                          (int)bytes, text);
}

static int parse_duration(const struct bel_job_field *field, struct bel_view text, uint64_t *out,
                          struct bel_job_fault *fault)
{
    struct bel_text_error why;
    if (bel_duration_parse(text.data, text.bytes, out, &why) != 0) return refuse_text(fault, &why);
    if (*out < field->min) return bel__job_fault(fault, BEL_EINVAL, "must be more than 0");
    if (*out > DURATION_MS_MAX) return bel__job_fault(fault, BEL_EINVAL, "is too long");
    return 0;
}

static int parse_word(const struct bel_job_field *field, struct bel_view text, uint64_t *out,
                      struct bel_job_fault *fault)
{
    const char *const *words = field->words;
    for (uint64_t i = 0; words[i] != NULL; i++) {
        size_t bytes = strlen(words[i]);
        if (bytes != text.bytes || memcmp(words[i], text.data, bytes) != 0) continue;
        *out = i;
        return 0;
    }
    return bel__job_fault(fault, BEL_EINVAL, "expected %s%s%s%s%s", words[0],
                          words[2] != NULL ? ", " : " or ", words[1],
                          words[2] != NULL ? " or " : "", words[2] != NULL ? words[2] : "");
}

static int parse_retry(struct bel_view text, struct bel_job_fault *fault)
{
    struct bel_backoff policy;
    struct bel_text_error why;
    int err = bel_backoff_parse(text.data, text.bytes, &policy, &why);
    return err == 0 ? 0 : refuse_text(fault, &why);
}

/* Refuses a number as a retry policy, which most likely means a number of attempts. */
static int refuse_attempts(const struct bel_json_token *token, struct bel_job_fault *fault)
{
    uint32_t attempts;
    if (bel__parse_u32(token->raw.data, token->raw.bytes, 1, ATTEMPTS_SHOWN_MAX, &attempts) != 0) {
        attempts = ATTEMPTS_SHOWN;
    }
    return bel__job_fault(fault, BEL_EINVAL, "expected a string: \"max(%u)\" for %u attempts",
                          attempts, attempts);
}

int bel__job_value(struct bel_job_draft *draft, const struct bel_job_field *field,
                   const struct bel_json_token *token, struct bel_view *out_text,
                   uint64_t *out_number, struct bel_job_fault *fault)
{
    bool is_time = field->type == BEL_JOB_DURATION || field->type == BEL_JOB_TIME;
    struct bel_json_token text = *token;
    if (field->type == BEL_JOB_NUMBER) return parse_number(field, token, out_number, fault);
    if (is_time && token->kind == BEL_JSON_NUMBER) {
        text.kind = BEL_JSON_STRING; /* digits are a text of milliseconds */
        text.decoded_bytes = token->raw.bytes;
    }
    if (field->type == BEL_JOB_RETRY && token->kind == BEL_JSON_NUMBER) {
        return refuse_attempts(token, fault);
    }
    size_t bytes_max = field->max > 0 ? (size_t)field->max : NAME_BYTES_MAX;
    int err = bel__job_text(draft, &text, bytes_max, out_text, fault);
    if (err) return err;
    bool has_units = token->kind == BEL_JSON_STRING && !draft->is_stored;
    switch (field->type) {
    case BEL_JOB_DURATION:
        if (has_units && is_bare(out_text->data, out_text->bytes)) {
            return refuse_bare(fault, out_text->data, out_text->bytes);
        }
        return parse_duration(field, *out_text, out_number, fault);
    case BEL_JOB_WORD:
        return parse_word(field, *out_text, out_number, fault);
    case BEL_JOB_RETRY:
        return parse_retry(*out_text, fault);
    default:
        if (out_text->bytes > 0) return 0;
        return bel__job_fault(fault, BEL_EINVAL, "is empty: leave it out, or give it a value");
    }
}
