/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_KEYS_H
#define BEL_SERVER_KEYS_H

/*
 * keys - API keys and their permissions, one per line of the key file.
 *
 *     # name : permissions : hash
 *     mailer:work:sha256$5a0f...$9c1e...
 *     deploy:read,write,admin,@mail,@sms.*:sha256$77ab...$01d2...
 *
 * Permissions are read, write, work, admin, separated by commas, or all. @topic and @prefix* limit
 * them to those topics. The hash is SHA-256 of 16 bytes of salt and the key; salt and hash are
 * hexadecimal. `belfry serve --hash-key` prints the line.
 *
 *     salt: | 0  b e l 1 | 4  tag | 6  random bytes |
 *
 * The tag is a digest of the key that does not depend on the line, so a key is compared with the
 * lines that have its tag, not with all. Two bytes of a digest say nothing about a random key.
 * Lines of older versions have 16 random bytes. They are compared with every key that comes without
 * the name of the line, until a client has used the key: then its tag is known.
 *
 * The hash is a fast one on purpose. A slow hash protects passwords that people invent, but lets
 * any client block the loop with wrong keys. So keys must be random: --hash-key refuses keys
 * shorter than BEL_KEY_BYTES_MIN.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/why.h"
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
    BEL_KEY_LINE_BYTES = 1280, /* the longest line, with a 0 */
};

struct bel_keys; /* opaque */

/* Parses the text of a key file. Returns 0 and sets `*out`; BEL_ENOMEM; or BEL_EINVAL, and sets
 * `why` to the number of the line and what is wrong with it, without the hash. */
BEL_CHECKED int bel__keys_parse(struct bel_view text, struct bel_keys **out, struct bel_why *why);

/* Replaces all keys by those of another text. The scopes of the old keys stay valid. Returns like
 * bel__keys_parse(); on failure the keys are unchanged. */
BEL_CHECKED int bel__keys_replace(struct bel_keys *keys, struct bel_view text, struct bel_why *why);

/* Frees keys; NULL is allowed. */
void bel__keys_destroy(struct bel_keys *keys);

size_t bel__keys_count(const struct bel_keys *keys);

/* Returns whether `key` is a key of `user`, and sets `*out` to its permissions. An empty user, or
 * "default", matches every name. The time depends on the length of the key, and on how many lines
 * have its tag, but not on how similar it is to a valid key. */
bool bel__keys_check(struct bel_keys *keys, struct bel_view user, struct bel_view key,
                     struct bel_grant *out);

/* Updates the permissions of a key that was valid before bel__keys_replace(). Returns false if the
 * key has been removed. */
bool bel__keys_regrant(const struct bel_keys *keys, struct bel_grant *grant);

/* Returns how many hashes all checks have calculated, for tests. */
uint64_t bel__keys_hashes(const struct bel_keys *keys);

/* Prints the line of a key, hashed with `salt`, whose first bytes become the tag. Returns 0;
 * BEL_EINVAL for an invalid name or invalid permissions; or BEL_ERANGE for a key that is too short
 * or too long. */
BEL_CHECKED int bel__keys_print(const char *name, const char *permissions, struct bel_view key,
                                const uint8_t salt[16], char out[BEL_KEY_LINE_BYTES]);

#endif
