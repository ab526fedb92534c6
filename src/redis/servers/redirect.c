/* SPDX-License-Identifier: MIT */
#include "redis/servers/redirect.h"

#include "redis/servers/slot.h"

#include "core/parse.h"
#include "core/view.h"

#include <string.h>

/* Reads "3999 host:port". The host may be an IPv6 address without brackets. */
static bool read_place(struct bel_view text, struct bel_redirect *out)
{
    uint32_t slot, port;
    const char *start = text.data, *end = start + text.bytes;
    const char *space = text.bytes > 0 ? memchr(start, ' ', text.bytes) : NULL;
    if (space == NULL) return false;
    const char *host = space + 1, *colon = end;
    while (colon > host && colon[-1] != ':') {
        colon--;
    }
    if (colon == host) return false;
    size_t host_bytes = (size_t)(colon - 1 - host);
    if (host_bytes >= sizeof out->host || memchr(host, 0, host_bytes) != NULL) return false;
    if (bel__parse_u32(start, (size_t)(space - start), 0, BEL_SLOTS - 1, &slot) != 0) return false;
    if (bel__parse_u32(colon, (size_t)(end - colon), 1, UINT16_MAX, &port) != 0) return false;
    memcpy(out->host, host, host_bytes);
    out->host[host_bytes] = 0;
    out->slot = (uint16_t)slot;
    out->port = (uint16_t)port;
    return true;
}

void bel__redirect_read(const struct bel_value *error, struct bel_redirect *out)
{
    static const struct {
        const char *code;
        enum bel_redirect_kind kind;
    } codes[] = {
        {"MOVED", BEL_REDIRECT_MOVED},     {"ASK", BEL_REDIRECT_ASK},
        {"TRYAGAIN", BEL_REDIRECT_MOVING}, {"LOADING", BEL_REDIRECT_LATER},
        {"BUSY", BEL_REDIRECT_LATER},      {"CLUSTERDOWN", BEL_REDIRECT_DOWN},
        {"MASTERDOWN", BEL_REDIRECT_DOWN}, {"READONLY", BEL_REDIRECT_REPLICA},
    };
    struct bel_view code = bel_value_code(error);
    *out = (struct bel_redirect){.kind = BEL_REDIRECT_NONE};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (bel__view_is(code, codes[i].code)) out->kind = codes[i].kind;
    }
    bool has_place = out->kind == BEL_REDIRECT_MOVED || out->kind == BEL_REDIRECT_ASK;
    if (has_place && !read_place(bel_value_message(error), out)) out->kind = BEL_REDIRECT_NONE;
}
