/* SPDX-License-Identifier: MIT */
#ifndef BEL_JOBS_PAYLOAD_H
#define BEL_JOBS_PAYLOAD_H

/*
 * payload - makes the bytes of a payload from its JSON value, a slice at a time: a string is
 * decoded, from base64 if the field says so; any other value is copied without insignificant space.
 * In an occurrence of a recurring job, {{nominal}} becomes the nominal time.
 */

#include "core/json_reader.h"
#include "jobs/draft.h"

struct bel_job_payload {
    struct bel_json_copy copy;
    unsigned char *text; /* the copy */
    size_t text_bytes;
    size_t from;        /* bytes of the text that have been decoded, looked at or replaced */
    size_t found;       /* how often {{nominal}} is in the text */
    unsigned char *out; /* the result */
    size_t out_bytes;
    struct bel_view time; /* what replaces {{nominal}}; empty: nothing does */
    size_t bytes_max;
    int phase;
    bool is_base64;
};

struct bel_job_payload_options {
    struct bel_view raw; /* the value in the text; of a string without quotes */
    bool is_string, is_base64;
    struct bel_view time;
    uint64_t bytes_max;
};

/* Begins. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__job_payload_begin(struct bel_job_payload *payload, struct bel_job_draft *draft,
                                       const struct bel_job_payload_options *options);

/* Continues. Returns 0 and sets `*out`; BEL_JOB_MORE; BEL_EINVAL; BEL_EFULL; or BEL_ENOMEM. */
BEL_CHECKED int bel__job_payload_step(struct bel_job_payload *payload, struct bel_job_draft *draft,
                                      uint32_t *work, struct bel_view *out,
                                      struct bel_job_fault *fault);

#endif
