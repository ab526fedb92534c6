/* SPDX-License-Identifier: MIT */
#ifndef BEL_COMMANDS_FIELDS_H
#define BEL_COMMANDS_FIELDS_H

/*
 * fields - the table of the fields of a timer, a delivery, a topic and so on in replies. RESP
 * replies, JSON pages, the OpenAPI schemas and the command line are made from it, and a test
 * compares docs/PROTOCOL.md with it.
 *
 *     const struct bel_shown *shown = &bel__shown[BEL_SHOWN_STEP];
 *     for (size_t i = 0; i < shown->count; i++) {
 *         if (bel__field_is_there(&shown->fields[i], step, 0)) write(&shown->fields[i], step);
 *     }
 *
 * A row of the table has the name and the type of a field, where its value is in the struct that a
 * backend replies with, and when the field is absent. A map leaves an absent field out. An array
 * has a place for each field, and nil in the place of an absent one. The rows are in
 * commands/field_table.h; commands/field_value.h reads values.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the value of a field is, and the C type that it is read from. */
enum bel_field_type {
    BEL_FIELD_TEXT,      /* struct bel_view, always UTF-8 */
    BEL_FIELD_BYTES,     /* struct bel_view, any bytes: base64 in JSON if they are not UTF-8 */
    BEL_FIELD_PAYLOAD,   /* struct bel_view; in JSON a value of its own if a header says so */
    BEL_FIELD_STATE,     /* enum bel_state */
    BEL_FIELD_WORD,      /* an enum with the words of `argument` */
    BEL_FIELD_OUTCOME,   /* enum bel_outcome_kind */
    BEL_FIELD_BOOLEAN,   /* bool */
    BEL_FIELD_SMALL,     /* uint8_t */
    BEL_FIELD_COUNT,     /* uint64_t */
    BEL_FIELD_DURATION,  /* uint64_t, milliseconds */
    BEL_FIELD_INSTANT,   /* struct bel_wall, milliseconds since 1970 */
    BEL_FIELD_HEADERS,   /* const struct bel_header *: a flat list in RESP, an object in JSON */
    BEL_FIELD_OUTCOMES,  /* struct bel_outcome []: a list of what BEL_SHOWN_OUTCOME shows */
    BEL_FIELD_SETTINGS,  /* const struct bel_setting *: in RESP beside the fields of the topic */
    BEL_FIELD_JOB_STATE, /* enum bel_job_state */
    BEL_FIELD_COUNTS,    /* uint64_t [BEL_STATES]: a map from the names of states */
    BEL_FIELD_PROGRESS,  /* uint64_t [BEL_STATES]: percent that are terminal */
    BEL_FIELD_TASKS,     /* const struct bel_job_task *: a list of what BEL_SHOWN_TASK shows */
    BEL_FIELD_AFTERS,    /* const struct bel_job_after *: a flat list in RESP, objects in JSON */
    BEL_FIELD_BREAKER_STATE, /* enum bel_breaker */
    BEL_FIELD_BREAKER,       /* struct bel_limit_state: what BEL_SHOWN_BREAKER shows of it */
    BEL_FIELD_REPORTS, /* const struct bel_limit_report *: a list of what BEL_SHOWN_REPORT shows */
    BEL_FIELD_RESULTS, /* const struct bel_task_result *: a flat list in RESP, objects in JSON */
};

/* Facts about a timer or a verdict; a field is present only if its facts hold. */
enum bel_field_fact {
    BEL_FACT_DUE = 1 << 0, /* a plan with a next time, or a timer that is not blocked */
    BEL_FACT_ENDED = 1 << 1,
    BEL_FACT_LEASED = 1 << 2,
    BEL_FACT_EXPIRES = 1 << 3, /* the time is known */
    BEL_FACT_PLAN = 1 << 4,
    BEL_FACT_EVERY = 1 << 5, /* a plan by EVERY; the next two likewise */
    BEL_FACT_CRON = 1 << 6,
    BEL_FACT_RRULE = 1 << 7,
    BEL_FACT_UNTIL = 1 << 8,
    BEL_FACT_OCCURRENCE = 1 << 9,
    BEL_FACT_DEADLINE = 1 << 10, /* of a job: the next two likewise */
    BEL_FACT_ESTIMATE = 1 << 11,
    BEL_FACT_WHOLE = 1 << 12, /* it is shown with its tasks */
    BEL_FACT_RUN = 1 << 13,   /* it is not a plan */
    BEL_FACT_RATES = 1 << 14, /* of a topic: its store measures times and rates */
};

/* How an empty value, or a 0, is shown. */
enum bel_field_empty {
    BEL_EMPTY_SHOWN,
    BEL_EMPTY_ABSENT,
    BEL_EMPTY_ABSENT_IN_MAPS, /* in an array it is shown */
};

struct bel_field {
    struct bel_view name; /* ends with 0 */
    const char *help;     /* one line */
    enum bel_field_type type;
    enum bel_field_empty empty;
    uint16_t needs;         /* facts, all of which must hold */
    uint16_t offset;        /* of the value */
    uint16_t size_offset;   /* of its length or count: 64 bits, 0 if the value is empty */
    bool is_argument;       /* an argument of SCHEDULE sets it */
    unsigned char argument; /* that argument */
};

enum bel_shown_kind {
    BEL_SHOWN_TIMER,     /* struct bel_timer: a map */
    BEL_SHOWN_DELIVERY,  /* struct bel_delivery: an array in RESP */
    BEL_SHOWN_TOPIC,     /* struct bel_topic: a map */
    BEL_SHOWN_OUTCOME,   /* struct bel_outcome: an array in RESP */
    BEL_SHOWN_VERDICT,   /* struct bel_verdict: an array in RESP */
    BEL_SHOWN_STEP,      /* struct bel_agenda_step: an array in RESP */
    BEL_SHOWN_JOB,       /* struct bel_job: a map */
    BEL_SHOWN_TASK,      /* struct bel_job_task: a map */
    BEL_SHOWN_SUBMITTED, /* struct bel_job_submitted: a map */
    BEL_SHOWN_RESOURCE,  /* struct bel_limit_state: a map */
    BEL_SHOWN_BREAKER,   /* the same: a map */
    BEL_SHOWN_REPORT,    /* struct bel_limit_report: a map */
    BEL_SHOWN_KINDS,
};

struct bel_shown {
    const char *name;               /* "Timer": of its schema in OpenAPI */
    const char *help;               /* one line */
    const char *list;               /* "timers": what JSON calls a list of them */
    const struct bel_field *fields; /* in the order in which they are shown */
    size_t count;
};

enum {
    BEL_SHOWN_FIELDS_MAX = 64, /* of a kind: a bit each */
};

extern const struct bel_shown bel__shown[BEL_SHOWN_KINDS];

/* Finds a field by its name. Returns NULL if it is unknown. */
const struct bel_field *bel__field_find(enum bel_shown_kind kind, struct bel_view name);

#endif
