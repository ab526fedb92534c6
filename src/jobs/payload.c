/* SPDX-License-Identifier: MIT */

/*
 * Copy, then decode base64 in place, then replace {{nominal}} into new memory; the room for that is
 * known after a first look that only counts.
 */
#include "jobs/payload.h"

#include "core/base64.h"

#include <assert.h>
#include <string.h>

enum phase {
    PHASE_COPY,
    PHASE_BASE64,
    PHASE_COUNT,
    PHASE_REPLACE,
    PHASE_END,
};

enum {
    CHUNK_BYTES = 16 << 10, /* a multiple of the group of base64 */
    CHUNK_WORK = CHUNK_BYTES / 4,
};

static const char nominal[] = "{{nominal}}";

enum {
    NOMINAL_BYTES = sizeof nominal - 1,
};

int bel__job_payload_begin(struct bel_job_payload *payload, struct bel_job_draft *draft,
                           const struct bel_job_payload_options *options)
{
    unsigned char *room = bel__job_draft_take(draft, options->raw.bytes);
    const unsigned char *from = options->raw.data;
    if (room == NULL) return BEL_ENOMEM;
    *payload = (struct bel_job_payload){
        .copy = {.from = from,
                 .end = from + options->raw.bytes,
                 .to = room,
                 .is_string = options->is_string},
        .text = room,
        .out = room,
        .time = options->time,
        .bytes_max = options->bytes_max,
        .is_base64 = options->is_base64,
    };
    return 0;
}

/* Ends the copy: the length of the text is known now. */
static void end_copy(struct bel_job_payload *payload)
{
    payload->text_bytes = (size_t)(payload->copy.to - payload->text);
    if (payload->is_base64) {
        payload->phase = PHASE_BASE64;
    } else {
        payload->out_bytes = payload->text_bytes;
        payload->phase = payload->time.bytes > 0 ? PHASE_COUNT : PHASE_END;
    }
}

/* Decodes the next groups in place: what has been decoded is shorter than its text. */
static int decode_chunk(struct bel_job_payload *payload, struct bel_job_fault *fault)
{
    size_t left = payload->text_bytes - payload->from, decoded;
    size_t bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    const unsigned char *text = payload->text + payload->from;
    bool is_padded = bytes > 0 && text[bytes - 1] == '=';
    if ((is_padded && bytes < left) ||
        !bel__base64_decode((struct bel_view){text, bytes}, payload->out + payload->out_bytes,
                            &decoded)) {
        return bel__job_fault(fault, BEL_EINVAL, "not base64 with padding (RFC 4648)");
    }
    payload->from += bytes;
    payload->out_bytes += decoded;
    if (payload->from == payload->text_bytes) payload->phase = PHASE_END;
    return 0;
}

/* Returns the place of the first {{nominal}} that begins within the next chunk, or else the end of
 * the chunk. */
static size_t find_nominal(const struct bel_job_payload *payload, bool *out_is_there)
{
    size_t left = payload->text_bytes - payload->from;
    size_t chunk = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    size_t bytes = left < CHUNK_BYTES + NOMINAL_BYTES - 1 ? left : CHUNK_BYTES + NOMINAL_BYTES - 1;
    const unsigned char *start = payload->text + payload->from;
    const unsigned char *found = memmem(start, bytes, nominal, NOMINAL_BYTES);
    *out_is_there = found != NULL;
    return found != NULL ? (size_t)(found - payload->text) : payload->from + chunk;
}

static int count_chunk(struct bel_job_payload *payload, struct bel_job_draft *draft)
{
    bool is_there;
    payload->from = find_nominal(payload, &is_there);
    if (is_there) {
        payload->found++;
        payload->from += NOMINAL_BYTES;
    }
    if (payload->from < payload->text_bytes) return 0;
    payload->phase = PHASE_END;
    if (payload->found == 0) return 0;
    size_t room = payload->text_bytes + payload->found * payload->time.bytes;
    payload->out = bel__job_draft_take(draft, room);
    payload->out_bytes = payload->from = 0;
    payload->phase = PHASE_REPLACE;
    return payload->out == NULL ? BEL_ENOMEM : 0;
}

static void put(struct bel_job_payload *payload, const void *data, size_t bytes)
{
    memcpy(payload->out + payload->out_bytes, data, bytes);
    payload->out_bytes += bytes;
}

static void replace_chunk(struct bel_job_payload *payload)
{
    bool is_there;
    size_t at = find_nominal(payload, &is_there);
    put(payload, payload->text + payload->from, at - payload->from);
    payload->from = at;
    if (is_there) {
        put(payload, payload->time.data, payload->time.bytes);
        payload->from += NOMINAL_BYTES;
    }
    if (payload->from == payload->text_bytes) payload->phase = PHASE_END;
}

static int do_chunk(struct bel_job_payload *payload, struct bel_job_draft *draft,
                    struct bel_job_fault *fault)
{
    if (payload->phase == PHASE_BASE64) return decode_chunk(payload, fault);
    if (payload->phase == PHASE_COUNT) return count_chunk(payload, draft);
    assert(payload->phase == PHASE_REPLACE);
    replace_chunk(payload);
    return 0;
}

int bel__job_payload_step(struct bel_job_payload *payload, struct bel_job_draft *draft,
                          uint32_t *work, struct bel_view *out, struct bel_job_fault *fault)
{
    if (payload->phase == PHASE_COPY) {
        if (!bel__json_copy(&payload->copy, work)) return BEL_JOB_MORE;
        end_copy(payload);
    }
    while (payload->phase != PHASE_END) {
        if (*work == 0) return BEL_JOB_MORE;
        int err = do_chunk(payload, draft, fault);
        if (err) return err;
        *work -= *work < CHUNK_WORK ? *work : CHUNK_WORK;
    }
    if (payload->out_bytes > payload->bytes_max) {
        return bel__job_fault(fault, BEL_EFULL, "the payload has more than %zu bytes",
                              payload->bytes_max);
    }
    *out = (struct bel_view){payload->out, payload->out_bytes};
    return 0;
}
