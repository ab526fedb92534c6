/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_INFO_PAGE_H
#define BEL_SERVER_INFO_PAGE_H

/*
 * info_page - the text of INFO while it is written.
 */

#include "core/buffer.h"
#include "session/scope.h"

struct bel_info;

struct bel_info_page {
    const struct bel_info *info;   /* private */
    const struct bel_scope *scope; /* of the key that asks; NULL: all topics */
    struct bel_buffer *out;        /* private, as is the next */
    int err;
};

/* Appends a line, formatted as by printf. After the first error nothing more is appended. */
__attribute__((format(printf, 2, 3))) void bel__info_line(struct bel_info_page *page,
                                                          const char *format, ...);

#endif
