/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_KEYS_H
#define BEL_SERVER_KEYS_H

/*
 * keys - who may come in, and what he may do: a file with a line for each.
 *
 *     # name : permissions : hash
 *     mailer:work:sha256$5a0f...$9c1e...
 *     deploy:read,write,admin,@mail,@sms.*:sha256$77ab...$01d2...
 *
 * Permissions are read, write, work, admin, with commas, or all; with @ and a topic, or @ and the
 * beginning of topics and a *, they are for those topics alone. The hash is SHA-256 of 16 bytes
 * of salt and the key, both as hexadecimal digits; `belfry serve --hash-key` makes the line.
 *
 * The hash is a fast one on purpose. A slow one helps keys that people think up, and lets any
 * stranger hold up the loop with wrong ones. So keys are made by machines: shorter ones than
 * BEL_KEY_BYTES_MIN are refused when they are hashed.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "session/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_KEY_BYTES_MIN = 20,
    BEL_KEY_BYTES_MAX = 1024,
    BEL_KEYS_MAX = 256,
    BEL_KEY_NAME_BYTES_MAX = 64, /* of A-Z a-z 0-9 . _ - */
    BEL_KEY_PERMISSIONS_BYTES_MAX = 1024,
    BEL_KEY_LINE_BYTES = 1280, /* room for any line, with its end */
};

struct bel_keys; /* opaque */

/* Reads keys from the text of a file. Returns 0 and sets `*out`; or BEL_ENOMEM; or BEL_EINVAL,
 * and says in `why` which line is wrong and how. Hashes are not repeated there. */
BEL_CHECKED int bel__keys_parse(struct bel_view text, struct bel_keys **out, char why[160]);

/* Frees keys; NULL is allowed. */
void bel__keys_destroy(struct bel_keys *keys);

size_t bel__keys_count(const struct bel_keys *keys);

/* Whether `user` may come in with `key`. Without a name, or as "default", a key is looked for
 * under all names. Sets `*out` to what it grants. How long it takes does not
 * depend on the key, but for its length, nor on how nearly it was right. */
bool bel__keys_check(const struct bel_keys *keys, struct bel_view user, struct bel_view key,
                     struct bel_grant *out);

/* Prints the line for a key, with `salt`. Returns 0; or BEL_EINVAL for a name or permissions that
 * cannot be, BEL_ERANGE for a key that is too short or too long. */
BEL_CHECKED int bel__keys_print(const char *name, const char *permissions, struct bel_view key,
                                const uint8_t salt[16], char out[BEL_KEY_LINE_BYTES]);

#endif
