/* SPDX-License-Identifier: MIT */

/*
 * The first byte selects the input: a record, a plan's state, a lease, a body, an id or a token.
 * What decodes must encode and decode again as the same value.
 */
#include "engine/rows/key.h"
#include "engine/rows/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROW_BYTES_MAX = BEL_RECORD_BYTES_MAX - 200, /* room for the other fields of a plan */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(struct bel_view row)
{
    uint8_t once[BEL_RECORD_BYTES_MAX], twice[BEL_RECORD_BYTES_MAX];
    struct bel_record record;
    if (row.bytes > ROW_BYTES_MAX) return;
    int err = bel__record_read(row, &record);
    if (err) {
        assert(err == BEL_ECORRUPT);
        return;
    }
    assert(bel__record_kind(row) == record.kind);
    assert(record.id.bytes <= BEL_ID_BYTES && record.outcomes_count <= BEL_OUTCOMES_MAX);
    size_t bytes = bel__record_write(&record, once);
    err = bel__record_read((struct bel_view){once, bytes}, &record);
    assert(err == 0);
    assert(bel__record_write(&record, twice) == bytes && memcmp(once, twice, bytes) == 0);
}

/* A row of an earlier version is written as one of this version. */
static void check_plan_state(struct bel_view row)
{
    uint8_t once[BEL_RECORD_BYTES_MAX], twice[BEL_RECORD_BYTES_MAX];
    struct bel_plan_state state;
    if (bel__plan_state_read(row, &state) != 0) return;
    size_t bytes = bel__plan_state_write(&state, once);
    int err = bel__plan_state_read((struct bel_view){once, bytes}, &state);
    assert(err == 0);
    (void)err;
    assert(bel__plan_state_write(&state, twice) == bytes && memcmp(once, twice, bytes) == 0);
    bool is_same_version = row.bytes > 0 && *(const uint8_t *)row.data == once[0];
    assert(!is_same_version || (bytes == row.bytes && memcmp(once, row.data, bytes) == 0));
    (void)is_same_version;
}

static void check_lease(struct bel_view row)
{
    uint8_t again[BEL_RECORD_BYTES_MAX];
    struct bel_lease_row lease;
    if (row.bytes > ROW_BYTES_MAX || bel__lease_read(row, &lease) != 0) return;
    size_t bytes = bel__lease_write(&lease, again);
    assert(bytes == row.bytes && memcmp(again, row.data, bytes) == 0);
}

static void check_body(struct bel_view bytes)
{
    struct bel_header headers[BEL_HEADERS_MAX];
    struct bel_body body;
    size_t count = 0;
    if (bel__body_read(bytes, &body) != 0) return;
    struct bel_view rest = body.headers;
    while (count < body.headers_count && bel__headers_next(&rest, &headers[count])) {
        count++;
    }
    if (count < body.headers_count || rest.bytes > 0) return; /* the rest is damaged */
    struct bel_schedule_spec spec = {.correlation = body.correlation,
                                     .retry = body.retry,
                                     .payload = body.payload,
                                     .headers = headers,
                                     .headers_count = count};
    assert(bel__body_bytes(&spec) == bytes.bytes);
    uint8_t *again = malloc(bytes.bytes + 1);
    if (again == NULL) return;
    bel__body_write(&spec, again);
    assert(memcmp(again, bytes.data, bytes.bytes) == 0);
    free(again);
}

static void check_id(struct bel_view id)
{
    char again[BEL_MADE_ID_BYTES];
    struct bel_place place;
    if (!bel__made_id_place(id, 1, &place)) return;
    bel__made_id(&place, again);
    assert(memcmp(again, id.data, sizeof again) == 0);
}

static void check_token(struct bel_view token)
{
    char again[BEL_TOKEN_BYTES];
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
    struct bel_key key;
    if (!bel__token_parse(token, &key, secret)) return;
    assert(bel__place_of(&key).table == BEL_TABLE_TIMERS);
    bel__token_print(&key, secret, again);
    assert(memcmp(again, token.data, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(struct bel_view) = {
        check_record, check_plan_state, check_lease, check_body, check_id, check_token,
    };
    if (size == 0) return 0;
    unsigned what = data[0] % (sizeof checks / sizeof checks[0]);
    checks[what]((struct bel_view){.data = data + 1, .bytes = size - 1});
    return 0;
}
