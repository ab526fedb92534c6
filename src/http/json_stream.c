/* SPDX-License-Identifier: MIT */

/*
 * A piece is a header and bytes. Adjacent text forms one piece, whose header is written when it
 * ends. A piece of bytes is read in phases:
 *
 *     UTF8 --valid--> JSON --valid--> name, bytes as they are
 *      |                '--invalid--> name, "escaped bytes"
 *      '--invalid--------------------> name_base64, "base64"
 */
#include "http/json_stream.h"

#include "core/base64.h"
#include "core/parse.h"
#include "core/utf8.h"

#include <assert.h>
#include <string.h>

enum {
    STREAM_BYTES_MAX = 512 << 20, /* of all pieces */
    ESCAPE_BYTES_MAX = 6,         /* \u0001 */
    SHORT_BYTES = 128,            /* checked at once */
    PIECES_BYTES_KEPT = 64 << 10, /* not freed before the stream is */
};

enum piece_kind {
    PIECE_TEXT,   /* appended as it is */
    PIECE_STRING, /* UTF-8: quoted and escaped */
    PIECE_BASE64, /* quoted and encoded */
    PIECE_BYTES,  /* a name, and bytes of unknown kind */
};

struct piece {
    uint64_t bytes;
    uint32_t name_bytes;
    uint16_t kind;
    uint16_t may_be_json;
};

enum phase {
    PHASE_START,
    PHASE_UTF8,
    PHASE_JSON,
    PHASE_COPY,
    PHASE_ESCAPE,
    PHASE_ENCODE,
};

void bel__json_init(struct bel_json_stream *stream)
{
    memset(stream, 0, sizeof *stream);
    bel__buffer_init(&stream->pieces, STREAM_BYTES_MAX);
    stream->text = SIZE_MAX;
}

size_t bel__json_memory(const struct bel_json_stream *stream)
{
    return stream->pieces.capacity;
}

void bel__json_finish(struct bel_json_stream *stream)
{
    bel__buffer_finish(&stream->pieces);
}

void bel__json_expect(struct bel_json_stream *stream, size_t bytes)
{
    if (bel__buffer_reserve(&stream->pieces, bytes) != 0) stream->is_lost = true;
}

/* --- recording --- */

static void append(struct bel_json_stream *stream, const void *data, size_t bytes)
{
    if (stream->is_lost || bytes == 0) return;
    stream->is_lost = bel__buffer_append(&stream->pieces, data, bytes) != 0;
}

static void end_text(struct bel_json_stream *stream)
{
    if (stream->text == SIZE_MAX || stream->is_lost) return;
    struct piece piece = {.kind = PIECE_TEXT};
    piece.bytes = stream->pieces.count - stream->text - sizeof piece;
    memcpy(bel__buffer_data(&stream->pieces) + stream->text, &piece, sizeof piece);
    stream->text = SIZE_MAX;
}

static void begin_text(struct bel_json_stream *stream)
{
    static const struct piece piece = {.kind = PIECE_TEXT};
    if (stream->text != SIZE_MAX) return;
    stream->text = stream->pieces.count;
    append(stream, &piece, sizeof piece);
}

static void put(struct bel_json_stream *stream, const void *data, size_t bytes)
{
    begin_text(stream);
    append(stream, data, bytes);
}

static void put_piece(struct bel_json_stream *stream, enum piece_kind kind, struct bel_view data)
{
    struct piece piece = {.kind = (uint16_t)kind, .bytes = data.bytes};
    end_text(stream);
    append(stream, &piece, sizeof piece);
    append(stream, data.data, data.bytes);
}

/* Writes the comma before a value or a name. */
static void begin_value(struct bel_json_stream *stream)
{
    if (stream->needs_comma) put(stream, ",", 1);
    stream->needs_comma = true;
}

void bel__json_raw(struct bel_json_stream *stream, struct bel_view text)
{
    put(stream, text.data, text.bytes);
}

void bel__json_open(struct bel_json_stream *stream, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    begin_value(stream);
    put(stream, &bracket, 1);
    stream->needs_comma = false;
}

void bel__json_close(struct bel_json_stream *stream, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    put(stream, &bracket, 1);
    stream->needs_comma = true;
}

static bool needs_escape(unsigned char c)
{
    return c < ' ' || c == '"' || c == '\\';
}

static bool is_plain(struct bel_view text)
{
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        if (needs_escape(bytes[i])) return false;
    }
    return true;
}

static size_t escape(unsigned char c, char out[ESCAPE_BYTES_MAX])
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                  ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    out[0] = '\\';
    if (c < sizeof shorts && shorts[c] != 0) {
        out[1] = shorts[c];
        return 2;
    }
    out[1] = 'u';
    out[2] = out[3] = '0';
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return ESCAPE_BYTES_MAX;
}

static void put_string(struct bel_json_stream *stream, struct bel_view text)
{
    if (!is_plain(text)) {
        put_piece(stream, PIECE_STRING, text);
        return;
    }
    put(stream, "\"", 1);
    put(stream, text.data, text.bytes);
    put(stream, "\"", 1);
}

void bel__json_name(struct bel_json_stream *stream, struct bel_view name)
{
    begin_value(stream);
    put_string(stream, name);
    put(stream, ":", 1);
    stream->needs_comma = false;
}

void bel__json_name_with(struct bel_json_stream *stream, struct bel_view name, const char *suffix)
{
    const unsigned char *bytes = name.data;
    begin_value(stream);
    put(stream, "\"", 1);
    for (size_t i = 0; i < name.bytes; i++) {
        char text[ESCAPE_BYTES_MAX] = {(char)bytes[i]};
        put(stream, text, needs_escape(bytes[i]) ? escape(bytes[i], text) : 1);
    }
    put(stream, suffix, strlen(suffix));
    put(stream, "\":", 2);
    stream->needs_comma = false;
}

void bel__json_text(struct bel_json_stream *stream, struct bel_view text)
{
    begin_value(stream);
    put_string(stream, text);
}

void bel__json_base64(struct bel_json_stream *stream, struct bel_view bytes)
{
    begin_value(stream);
    put_piece(stream, PIECE_BASE64, bytes);
}

void bel__json_number(struct bel_json_stream *stream, int64_t number)
{
    char text[BEL_PRINT_BYTES_MAX];
    begin_value(stream);
    put(stream, text, bel__print_i64(text, number));
}

void bel__json_word(struct bel_json_stream *stream, const char *word)
{
    begin_value(stream);
    put(stream, word, strlen(word));
}

void bel__json_bytes(struct bel_json_stream *stream, struct bel_view name, struct bel_view bytes,
                     enum bel_json_kind kind)
{
    struct piece piece = {.kind = PIECE_BYTES,
                          .bytes = bytes.bytes,
                          .name_bytes = (uint32_t)name.bytes,
                          .may_be_json = kind == BEL_JSON_PERHAPS};
    assert(name.bytes + 16 < BEL_JSON_SLACK / 2 && is_plain(name));
    if (kind == BEL_JSON_NEVER && bytes.bytes <= SHORT_BYTES && bel__utf8_is_text(bytes)) {
        bel__json_name(stream, name);
        bel__json_text(stream, bytes);
        return;
    }
    begin_value(stream);
    end_text(stream);
    append(stream, &piece, sizeof piece);
    append(stream, name.data, name.bytes);
    append(stream, bytes.data, bytes.bytes);
}

/* --- reading --- */

/* The piece that is being read, and where its output goes. */
struct reader {
    struct bel_json_stream *stream;
    struct bel_buffer *out;
    size_t work, work_max;
    struct piece piece;
    const char *name;
    const unsigned char *bytes;
};

static void emit(struct reader *reader, const void *data, size_t bytes)
{
    int err = bel__buffer_append(reader->out, data, bytes);
    assert(err == 0); /* the caller has made room */
    (void)err;
    reader->work += bytes;
}

static size_t left_of(const struct reader *reader, size_t from)
{
    return (size_t)reader->piece.bytes - from;
}

/* Returns how many of the bytes from `from` on may be worked on: at least one, unless none is
 * left. */
static size_t share_of(const struct reader *reader, size_t from)
{
    size_t left = left_of(reader, from);
    size_t share = reader->work < reader->work_max ? reader->work_max - reader->work : 1;
    return share < left ? share : left;
}

static void check_utf8(struct reader *reader)
{
    struct bel_json_place *at = &reader->stream->at;
    size_t end = at->checked + share_of(reader, at->checked), total = reader->piece.bytes;
    size_t start = at->checked;
    while (at->checked < end) {
        size_t bytes = bel__utf8_bytes(reader->bytes + at->checked, total - at->checked);
        if (bytes == 0) {
            at->phase = PHASE_ENCODE;
            break;
        }
        at->checked += bytes;
    }
    reader->work += at->checked - start;
    if (at->phase != PHASE_UTF8 || at->checked < total) return;
    at->phase = reader->piece.may_be_json ? PHASE_JSON : PHASE_ESCAPE;
    at->checked = 0;
    memset(&reader->stream->check, 0, sizeof reader->stream->check);
}

static void check_json(struct reader *reader)
{
    struct bel_json_stream *stream = reader->stream;
    struct bel_json_place *at = &stream->at;
    size_t bytes = share_of(reader, at->checked);
    struct bel_view part = {reader->bytes + at->checked, bytes};
    bool is_json = bel__json_check_take(&stream->check, part);
    at->checked += bytes;
    reader->work += bytes;
    if (is_json && at->checked < reader->piece.bytes) return;
    at->is_json = is_json && bel__json_check_end(&stream->check);
    at->phase = at->is_json ? PHASE_COPY : PHASE_ESCAPE;
}

/* Begins the output of a piece: its name, and the quote. */
static void begin_piece(struct reader *reader)
{
    struct bel_json_place *at = &reader->stream->at;
    at->is_begun = true;
    if (reader->piece.kind == PIECE_BYTES) {
        bool is_base64 = at->phase == PHASE_ENCODE;
        emit(reader, "\"", 1);
        emit(reader, reader->name, reader->piece.name_bytes);
        emit(reader, is_base64 ? "_base64\":" : "\":", is_base64 ? 9 : 2);
    }
    if (at->phase != PHASE_COPY) emit(reader, "\"", 1);
}

static void copy(struct reader *reader)
{
    struct bel_json_place *at = &reader->stream->at;
    size_t bytes = share_of(reader, at->done);
    emit(reader, reader->bytes + at->done, bytes);
    at->done += bytes;
}

static void emit_escaped(struct reader *reader)
{
    struct bel_json_place *at = &reader->stream->at;
    size_t end = at->done + left_of(reader, at->done);
    while (at->done < end && reader->work < reader->work_max) {
        size_t start = at->done, stop = start + share_of(reader, start);
        while (at->done < stop && !needs_escape(reader->bytes[at->done])) {
            at->done++;
        }
        if (at->done > start) emit(reader, reader->bytes + start, at->done - start);
        if (at->done == stop) continue;
        char text[ESCAPE_BYTES_MAX];
        emit(reader, text, escape(reader->bytes[at->done++], text));
    }
}

static void encode(struct reader *reader)
{
    struct bel_json_place *at = &reader->stream->at;
    while (at->done < reader->piece.bytes && reader->work < reader->work_max) {
        char text[BEL_BASE64_CHARS];
        size_t left = left_of(reader, at->done), bytes = left < BEL_BASE64_BYTES ? left : 3;
        bel__base64_group(reader->bytes + at->done, bytes, text);
        emit(reader, text, sizeof text);
        at->done += bytes;
    }
}

/* Expands the next part of a piece. Returns whether the piece is over. */
static bool expand(struct reader *reader)
{
    struct bel_json_place *at = &reader->stream->at;
    if (!at->is_begun) begin_piece(reader);
    if (at->phase == PHASE_COPY) copy(reader);
    if (at->phase == PHASE_ESCAPE) emit_escaped(reader);
    if (at->phase == PHASE_ENCODE) encode(reader);
    if (at->done < reader->piece.bytes) return false;
    if (at->phase != PHASE_COPY) emit(reader, "\"", 1);
    return true;
}

static enum phase first_phase(const struct piece *piece)
{
    switch (piece->kind) {
    case PIECE_TEXT:
        return PHASE_COPY;
    case PIECE_STRING:
        return PHASE_ESCAPE;
    case PIECE_BASE64:
        return PHASE_ENCODE;
    default:
        return piece->bytes > 0 ? PHASE_UTF8 : PHASE_ESCAPE;
    }
}

/* Works on the current piece. Returns whether it is over. */
static bool read_piece(struct reader *reader)
{
    struct bel_json_place *at = &reader->stream->at;
    const uint8_t *start = bel__buffer_data(&reader->stream->pieces) + at->piece;
    memcpy(&reader->piece, start, sizeof reader->piece);
    reader->name = (const char *)start + sizeof reader->piece;
    reader->bytes = start + sizeof reader->piece + reader->piece.name_bytes;
    if (at->phase == PHASE_START) at->phase = (uint8_t)first_phase(&reader->piece);
    if (at->phase == PHASE_UTF8) {
        check_utf8(reader);
        return false;
    }
    if (at->phase == PHASE_JSON) {
        check_json(reader);
        return false;
    }
    return expand(reader);
}

/* Frees the memory of pieces that were read, if it is at least half of all: so each byte is moved
 * once at most. */
static void drop_read(struct bel_json_stream *stream)
{
    struct bel_buffer *pieces = &stream->pieces;
    if (stream->at.piece < pieces->capacity / 2) return;
    bel__buffer_consume(pieces, stream->at.piece);
    stream->at.piece = 0;
    bel__buffer_trim(pieces, PIECES_BYTES_KEPT);
}

size_t bel__json_read(struct bel_json_stream *stream, struct bel_buffer *out, size_t work_max)
{
    struct reader reader = {.stream = stream, .out = out, .work_max = work_max};
    assert(!stream->is_lost && work_max > 0);
    end_text(stream);
    while (!bel__json_is_over(stream) && reader.work < work_max) {
        if (!read_piece(&reader)) continue;
        size_t bytes = sizeof reader.piece + reader.piece.name_bytes + reader.piece.bytes;
        stream->at = (struct bel_json_place){.piece = stream->at.piece + bytes};
    }
    drop_read(stream);
    return reader.work;
}

bool bel__json_is_over(const struct bel_json_stream *stream)
{
    return stream->at.piece >= stream->pieces.count;
}
