/* SPDX-License-Identifier: MIT */

/*
 * The file is overwritten in place, without a rename: one that is torn by a power failure is
 * invalid, and says nothing.
 */
#include "store/log/closed.h"

#include "core/crc32c.h"
#include "core/endian.h"

#include <string.h>

enum {
    CLOSED_BYTES = 40,
};

static const char closed_name[] = "CLOSED";
static const char magic[8] = {'B', 'E', 'L', 'C', 'L', 'O', 'S', 'E'};

static void encode(const struct bel_log *log, uint8_t out[CLOSED_BYTES])
{
    memset(out, 0, CLOSED_BYTES);
    memcpy(out, magic, sizeof magic);
    memcpy(out + 8, log->superblock.id, BEL_STORE_ID_BYTES);
    bel__store_le64(out + 24, log->batch);
    bel__store_le32(out + 36, bel__crc32c(0, out, 36));
}

/* Returns the batch; 0 if the bytes are invalid, or of another store. */
static uint64_t decode(const struct bel_log *log, const uint8_t bytes[CLOSED_BYTES])
{
    if (memcmp(bytes, magic, sizeof magic) != 0) return 0;
    if (bel__load_le32(bytes + 36) != bel__crc32c(0, bytes, 36)) return 0;
    if (memcmp(bytes + 8, log->superblock.id, BEL_STORE_ID_BYTES) != 0) return 0;
    return bel__load_le64(bytes + 24);
}

void bel__closed_read(struct bel_log *log)
{
    struct bel_io *io = log->io;
    struct bel_io_file *file;
    uint8_t bytes[CLOSED_BYTES];
    uint64_t size;
    log->closed_batch = 0;
    if (io->open(io, closed_name, BEL_IO_READ, &file) != 0) return;
    int err = io->size(io, file, &size);
    if (!err && size == sizeof bytes && io->read(io, file, 0, bytes, sizeof bytes) == 0) {
        log->closed_batch = decode(log, bytes);
    }
    io->close(io, file);
}

void bel__closed_write(struct bel_log *log)
{
    struct bel_io *io = log->io;
    struct bel_io_file *file;
    uint8_t bytes[CLOSED_BYTES];
    if (log->batch <= log->closed_batch) return;
    encode(log, bytes);
    if (io->open(io, closed_name, BEL_IO_CREATE, &file) != 0) return;
    int err = io->write(io, file, 0, bytes, sizeof bytes);
    if (!err) (void)!io->sync(io, file);
    io->close(io, file);
}
