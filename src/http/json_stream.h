/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_JSON_STREAM_H
#define BEL_HTTP_JSON_STREAM_H

/*
 * json_stream - a JSON text that is recorded at the cost of a copy and expanded later, in slices.
 *
 *     struct bel_json_stream stream;
 *     bel__json_init(&stream);
 *     bel__json_open(&stream, '{');
 *     bel__json_name(&stream, BEL_VIEW("id"));
 *     bel__json_text(&stream, id);
 *     bel__json_bytes(&stream, BEL_VIEW("payload"), payload, BEL_JSON_PERHAPS);
 *     bel__json_close(&stream, '}');
 *     while (!bel__json_is_over(&stream)) {
 *         bel__json_read(&stream, &out, 64 << 10);   ... let others work, send ...
 *     }
 *
 * A reply with large payloads must be recorded while its memory is valid, in the turn that made it.
 * What takes long is done when the stream is read: to check whether a payload is UTF-8 or JSON, to
 * escape it, or to encode it in base64. JSON text can be six times as long as its bytes.
 *
 *     pieces:  [text |{"id":"a",] [bytes, payload |...megabytes...] [text |}]
 *
 * If memory runs out while recording, `is_lost` is set, and the stream must not be read.
 */

#include "belfry/view.h"
#include "core/buffer.h"
#include "http/json_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What bytes of unknown kind may become: a string if they are UTF-8, otherwise base64. */
enum bel_json_kind {
    BEL_JSON_NEVER,
    BEL_JSON_PERHAPS, /* a JSON value, if they are one */
};

/* How far a piece has been read. */
struct bel_json_place {
    size_t piece;   /* where it begins */
    size_t checked; /* bytes checked to be UTF-8 and perhaps JSON */
    size_t done;    /* bytes expanded */
    uint8_t phase;
    bool is_json;
    bool is_begun; /* its name and quote are written */
};

struct bel_json_stream {
    struct bel_buffer pieces; /* private, as are all but is_lost */
    size_t text;              /* where the open piece of text begins; SIZE_MAX: none is open */
    bool needs_comma;
    bool is_lost; /* memory has run out */
    struct bel_json_place at;
    struct bel_json_check check;
};

/* Initialises an empty stream. Allocates nothing. */
void bel__json_init(struct bel_json_stream *stream);

/* Returns the memory of a stream. That of its pieces is freed as they are read. */
size_t bel__json_memory(const struct bel_json_stream *stream);

/* Frees the memory of a stream. */
void bel__json_finish(struct bel_json_stream *stream);

/* Makes room for about `bytes` bytes, so that recording them does not move the stream often. */
void bel__json_expect(struct bel_json_stream *stream, size_t bytes);

/* Appends any text as it is, which may not be JSON at all. */
void bel__json_raw(struct bel_json_stream *stream, struct bel_view text);

/* Opens or closes an object or an array. */
void bel__json_open(struct bel_json_stream *stream, char bracket);
void bel__json_close(struct bel_json_stream *stream, char bracket);

/* Appends the name of a member, which must be UTF-8; `suffix` is appended to it. */
void bel__json_name(struct bel_json_stream *stream, struct bel_view name);
void bel__json_name_with(struct bel_json_stream *stream, struct bel_view name, const char *suffix);

/* Append a value. A text must be UTF-8. */
void bel__json_text(struct bel_json_stream *stream, struct bel_view text);
void bel__json_base64(struct bel_json_stream *stream, struct bel_view bytes);
void bel__json_number(struct bel_json_stream *stream, int64_t number);
void bel__json_word(struct bel_json_stream *stream, const char *word); /* true, false, null */

/* Appends a member whose bytes are checked when the stream is read: NAME with a JSON value or a
 * string, or NAME_base64. The name must need no escapes. */
void bel__json_bytes(struct bel_json_stream *stream, struct bel_view name, struct bel_view bytes,
                     enum bel_json_kind kind);

/* Expands the next part, and appends it to `out`. Returns the work done: the bytes checked and the
 * bytes appended, about `work_max` at most. `out` must have room for `work_max` + BEL_JSON_SLACK
 * bytes. */
size_t bel__json_read(struct bel_json_stream *stream, struct bel_buffer *out, size_t work_max);

enum {
    BEL_JSON_SLACK = 512, /* a name, an escape or a group beyond the limit of a read */
};

/* Returns whether everything has been read. */
bool bel__json_is_over(const struct bel_json_stream *stream);

#endif
