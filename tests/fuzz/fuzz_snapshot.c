/* SPDX-License-Identifier: MIT */

/*
 * The input is a snapshot. A checksum of 0 is replaced by the right one; otherwise the
 * fuzzer would never get past it.
 *
 * A snapshot that is refused must leave no timers. One that is restored is written again;
 * that, restored elsewhere, must be written the same. Only the first writing may change
 * times that cannot be represented, and the order of instants and delays.
 */
#include "runtime/snapshot.c" /* NOLINT(bugprone-suspicious-include) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    KINDS_KNOWN = 8, /* and the largest possible one */
};

static struct bel_clock_fake *fake;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    (void)event;
}

static struct bel_runtime *make_runtime(void)
{
    struct bel_runtime *runtime;
    struct bel_runtime_options options = {
        .clock = bel_clock_fake_clock(fake), .timers_max = 1, .metronome = BEL_METRONOME_MANUAL};
    int err = bel_runtime_create(&options, &runtime);
    if (err) return NULL;
    for (unsigned kind = 0; kind < KINDS_KNOWN; kind++) {
        err = bel_runtime_on(runtime, (bel_kind_t)kind, ring, NULL);
        assert(err == 0);
    }
    err = bel_runtime_on(runtime, BEL_KINDS_MAX - 1, ring, NULL);
    assert(err == 0);
    return runtime;
}

static uint64_t pending(struct bel_runtime *runtime)
{
    struct bel_runtime_stats stats;
    bel_runtime_stats(runtime, NULL, &stats);
    return stats.pending;
}

/* Restores into a new runtime and writes it again. Returns false if it is refused. */
static bool copy(const uint8_t *snapshot, size_t bytes, void **out, size_t *out_bytes)
{
    struct bel_runtime *runtime = make_runtime();
    if (runtime == NULL) return false;
    int err = bel_runtime_restore(runtime, snapshot, bytes);
    assert(err == 0 || err == BEL_ECORRUPT || err == BEL_EINVAL || err == BEL_ENOMEM);
    assert(pending(runtime) == (err == 0 ? (bytes - HEADER_BYTES) / ENTRY_BYTES : 0));
    if (err == 0) err = bel_runtime_snapshot(runtime, out, out_bytes);
    bel_runtime_destroy(runtime);
    return err == 0;
}

static void check(const uint8_t *snapshot, size_t bytes)
{
    void *first, *second;
    size_t first_bytes, second_bytes;
    if (!copy(snapshot, bytes, &first, &first_bytes)) return;
    assert(first_bytes == bytes);
    if (copy(first, first_bytes, &second, &second_bytes)) {
        assert(second_bytes == first_bytes);
        assert(memcmp(first, second, first_bytes) == 0);
        free(second);
    }
    free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *snapshot = calloc(1, size > 0 ? size : 1); /* the exact size, to notice overruns */
    if (snapshot == NULL) return 0;
    memcpy(snapshot, data, size);
    uint8_t *sum = snapshot + offsetof(struct header, checksum);
    if (size >= HEADER_BYTES && get(sum, sizeof(uint64_t)) == 0) frame_seal(snapshot, size);
    if (bel_clock_fake_create((struct bel_wall){1000000}, &fake) == 0) {
        bel_clock_fake_advance(fake, UINT64_C(1000000000));
        check(snapshot, size);
        bel_clock_fake_destroy(fake);
    }
    free(snapshot);
    return 0;
}
