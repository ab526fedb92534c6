/* SPDX-License-Identifier: MIT */

/*
 * The file is parsed into an array. A check calculates the tag of the key and compares its hash
 * with the lines that have the same tag; with none, it calculates one hash in vain, so that right
 * and wrong keys take the same time.
 *
 * Scopes are kept in a list and never freed before the keys: a client may hold a scope while the
 * file is read again. A scope that occurs again is not added twice.
 */
#include "server/keys.h"

#include "commands/commands.h"
#include "core/view.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SALT_BYTES = 16,
    HASH_BYTES = 32,
};

static const char hash_name[] = "sha256$";

/* The first bytes of a salt that contains a tag. */
static const uint8_t tag_mark[4] = {'b', 'e', 'l', '1'};

/* In the place of a salt, for the digest that a tag is cut from. */
static const uint8_t tag_salt[SALT_BYTES] = "belfry key tag 1";

struct key {
    char name[BEL_KEY_NAME_BYTES_MAX + 1];
    unsigned permissions;
    const struct bel_scope *scope; /* NULL: all topics */
    uint8_t salt[SALT_BYTES];
    uint8_t hash[HASH_BYTES];
    uint16_t tag;
    bool has_tag;
};

struct scope_node {
    struct scope_node *next;
    struct bel_scope scope;
};

struct bel_keys {
    struct scope_node *scopes;
    uint64_t hashes; /* calculated by checks */
    size_t count;
    struct key items[BEL_KEYS_MAX];
};

static void hash_key(const uint8_t salt[SALT_BYTES], struct bel_view key, uint8_t out[HASH_BYTES])
{
    uint8_t text[SALT_BYTES + BEL_KEY_BYTES_MAX];
    assert(key.bytes <= BEL_KEY_BYTES_MAX);
    memcpy(text, salt, SALT_BYTES);
    if (key.bytes > 0) memcpy(text + SALT_BYTES, key.data, key.bytes);
    const uint8_t *hash = SHA256(text, SALT_BYTES + key.bytes, out);
    assert(hash == out);
    (void)hash;
    OPENSSL_cleanse(text, sizeof text);
}

static uint16_t tag_of(struct bel_view key)
{
    uint8_t hash[HASH_BYTES];
    hash_key(tag_salt, key, hash);
    return (uint16_t)(hash[0] << 8 | hash[1]);
}

/* Returns a scope of the list that equals `scope`, and adds it if there is none; NULL if out of
 * memory. */
static const struct bel_scope *keep_scope(struct bel_keys *keys, const struct bel_scope *scope)
{
    for (struct scope_node *node = keys->scopes; node != NULL; node = node->next) {
        if (bel__scope_equals(&node->scope, scope)) return &node->scope;
    }
    struct scope_node *node = malloc(sizeof *node);
    if (node == NULL) return NULL;
    *node = (struct scope_node){keys->scopes, *scope};
    keys->scopes = node;
    return &node->scope;
}

static struct bel_view cut_at(struct bel_view *rest, const char *found)
{
    const char *text = rest->data;
    struct bel_view part = {text, found != NULL ? (size_t)(found - text) : rest->bytes};
    size_t used = found != NULL ? part.bytes + 1 : part.bytes;
    *rest = (struct bel_view){text + used, rest->bytes - used};
    return part;
}

/* Cuts off and returns the part before the first `at`; all of `*rest` if there is none. */
static struct bel_view cut_off(struct bel_view *rest, char at)
{
    return cut_at(rest, rest->bytes > 0 ? memchr(rest->data, at, rest->bytes) : NULL);
}

/* Cuts off and returns the part before the last `at`; all of `*rest` if there is none. */
static struct bel_view cut_last(struct bel_view *rest, char at)
{
    return cut_at(rest, rest->bytes > 0 ? memrchr(rest->data, at, rest->bytes) : NULL);
}

static bool parse_name(struct bel_view text, char out[BEL_KEY_NAME_BYTES_MAX + 1])
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *bytes = text.data;
    if (text.bytes == 0 || text.bytes > BEL_KEY_NAME_BYTES_MAX) return false;
    for (size_t i = 0; i < text.bytes; i++) {
        if (bytes[i] == 0 || strchr(set, bytes[i]) == NULL) return false;
    }
    memcpy(out, text.data, text.bytes);
    out[text.bytes] = 0;
    return true;
}

static bool parse_permissions(struct bel_view text, unsigned *out, struct bel_scope *scope)
{
    static const struct {
        const char *name;
        unsigned set;
    } words[] = {
        {"read", 1U << BEL_PERMISSION_READ},
        {"write", 1U << BEL_PERMISSION_WRITE},
        {"work", 1U << BEL_PERMISSION_WORK},
        {"admin", 1U << BEL_PERMISSION_ADMIN},
        {"all", 1U << BEL_PERMISSION_READ | 1U << BEL_PERMISSION_WRITE | 1U << BEL_PERMISSION_WORK |
                    1U << BEL_PERMISSION_ADMIN},
    };
    unsigned set = 1U << BEL_PERMISSION_NONE | 1U << BEL_PERMISSION_KNOWN;
    if (text.bytes == 0 || text.bytes > BEL_KEY_PERMISSIONS_BYTES_MAX) return false;
    while (text.bytes > 0) {
        struct bel_view word = cut_off(&text, ',');
        const char *start = word.data;
        size_t i = 0;
        if (word.bytes > 0 && start[0] == '@') {
            if (!bel__scope_add(scope, (struct bel_view){start + 1, word.bytes - 1})) return false;
            continue;
        }
        while (i < sizeof words / sizeof words[0] && !bel__view_is(word, words[i].name)) {
            i++;
        }
        if (i == sizeof words / sizeof words[0]) return false;
        set |= words[i].set;
    }
    *out = set;
    return true;
}

static int digit_of(char byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    return -1;
}

static bool parse_hex(struct bel_view text, uint8_t *out, size_t bytes)
{
    const char *digits = text.data;
    if (text.bytes != 2 * bytes) return false;
    for (size_t i = 0; i < bytes; i++) {
        int high = digit_of(digits[2 * i]), low = digit_of(digits[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool parse_hash(struct bel_view text, struct key *out)
{
    size_t name_bytes = strlen(hash_name);
    if (text.bytes < name_bytes || memcmp(text.data, hash_name, name_bytes) != 0) return false;
    text = (struct bel_view){(const char *)text.data + name_bytes, text.bytes - name_bytes};
    struct bel_view salt = cut_off(&text, '$');
    return parse_hex(salt, out->salt, SALT_BYTES) && parse_hex(text, out->hash, HASH_BYTES);
}

/* Parses a line. Returns NULL, or what is wrong with it. */
static const char *parse_line(struct bel_view text, struct key *out, struct bel_scope *scope)
{
    struct bel_view name = cut_off(&text, ':');
    struct bel_view permissions = cut_last(&text, ':'); /* topics may contain colons */
    if (!parse_name(name, out->name)) return "expected a name of letters, digits, . _ -";
    if (!parse_permissions(permissions, &out->permissions, scope)) {
        return "expected read, write, work, admin or all after the name, and @topic or @prefix*";
    }
    if (!parse_hash(text, out)) return "expected a hash made by belfry serve --hash-key";
    out->has_tag = memcmp(out->salt, tag_mark, sizeof tag_mark) == 0;
    if (out->has_tag) out->tag = (uint16_t)(out->salt[4] << 8 | out->salt[5]);
    return NULL;
}

static bool is_known(const struct bel_keys *keys, const char *name)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->items[i].name, name) == 0) return true;
    }
    return false;
}

static const char *add_line(struct bel_keys *keys, struct bel_view line)
{
    struct key key = {0};
    struct bel_scope scope = {0};
    const char *text = line.data;
    if (line.bytes > 0 && text[line.bytes - 1] == '\r') line.bytes--;
    if (line.bytes == 0 || text[0] == '#') return NULL;
    if (keys->count == BEL_KEYS_MAX) return "more than 256 keys";
    const char *wrong = parse_line(line, &key, &scope);
    if (wrong != NULL) return wrong;
    if (is_known(keys, key.name)) return "duplicate name";
    if (scope.count > 0) {
        key.scope = keep_scope(keys, &scope);
        if (key.scope == NULL) return "out of memory";
    }
    keys->items[keys->count++] = key;
    return NULL;
}

int bel__keys_parse(struct bel_view text, struct bel_keys **out, struct bel_why *why)
{
    struct bel_keys *keys = calloc(1, sizeof *keys);
    if (keys == NULL) return BEL_ENOMEM;
    for (unsigned number = 1; text.bytes > 0; number++) {
        const char *wrong = add_line(keys, cut_off(&text, '\n'));
        if (wrong == NULL) continue;
        (void)bel__why_say(why, BEL_EINVAL, "line %u: %s", number, wrong);
        bel__keys_destroy(keys);
        return BEL_EINVAL;
    }
    if (keys->count == 0) {
        (void)bel__why_say(why, BEL_EINVAL, "the file has no keys");
        bel__keys_destroy(keys);
        return BEL_EINVAL;
    }
    *out = keys;
    return 0;
}

int bel__keys_replace(struct bel_keys *keys, struct bel_view text, struct bel_why *why)
{
    struct bel_keys *next;
    int err = bel__keys_parse(text, &next, why);
    if (err) return err;
    for (size_t i = 0; i < next->count && err == 0; i++) {
        struct key *item = &next->items[i];
        if (item->scope == NULL) continue;
        item->scope = keep_scope(keys, item->scope);
        if (item->scope == NULL) err = BEL_ENOMEM;
    }
    if (err == 0) {
        memcpy(keys->items, next->items, sizeof keys->items);
        keys->count = next->count;
    }
    bel__keys_destroy(next);
    return err;
}

void bel__keys_destroy(struct bel_keys *keys)
{
    if (keys == NULL) return;
    while (keys->scopes != NULL) {
        struct scope_node *node = keys->scopes;
        keys->scopes = node->next;
        free(node);
    }
    free(keys);
}

size_t bel__keys_count(const struct bel_keys *keys)
{
    return keys->count;
}

static uint64_t id_of(const struct key *key)
{
    uint64_t id;
    memcpy(&id, key->hash, sizeof id);
    return id;
}

static struct bel_grant grant_of(const struct key *key)
{
    return (struct bel_grant){key->permissions, key->scope, id_of(key)};
}

static bool is_right(struct bel_keys *keys, const struct key *item, struct bel_view key)
{
    uint8_t hash[HASH_BYTES];
    hash_key(item->salt, key, hash);
    keys->hashes++;
    return CRYPTO_memcmp(hash, item->hash, HASH_BYTES) == 0;
}

bool bel__keys_check(struct bel_keys *keys, struct bel_view user, struct bel_view key,
                     struct bel_grant *out)
{
    struct key *found = NULL;
    bool is_anyone = user.bytes == 0 || bel__view_is(user, "default");
    if (key.bytes > BEL_KEY_BYTES_MAX) return false;
    uint16_t tag = tag_of(key);
    uint64_t before = keys->hashes++;
    assert(keys->count > 0);
    for (size_t i = 0; i < keys->count; i++) {
        struct key *item = &keys->items[i];
        if (item->has_tag && item->tag != tag) continue;
        if (!is_anyone && !bel__view_is(user, item->name)) continue;
        if (is_right(keys, item, key)) found = item;
    }
    if (keys->hashes - before == 1) (void)is_right(keys, &keys->items[0], key);
    if (found == NULL) return false;
    found->tag = tag;
    found->has_tag = true;
    *out = grant_of(found);
    return true;
}

bool bel__keys_regrant(const struct bel_keys *keys, struct bel_grant *grant)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (id_of(&keys->items[i]) != grant->key_id) continue;
        *grant = grant_of(&keys->items[i]);
        return true;
    }
    return false;
}

uint64_t bel__keys_hashes(const struct bel_keys *keys)
{
    return keys->hashes;
}

static size_t print_hex(const uint8_t *bytes, size_t count, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = 0;
    return 2 * count;
}

int bel__keys_print(const char *name, const char *permissions, struct bel_view key,
                    const uint8_t salt[16], char out[BEL_KEY_LINE_BYTES])
{
    char checked[BEL_KEY_NAME_BYTES_MAX + 1];
    char salt_text[2 * SALT_BYTES + 1], hash_text[2 * HASH_BYTES + 1];
    uint8_t tagged[SALT_BYTES], hash[HASH_BYTES];
    struct bel_scope scope = {0};
    unsigned set;
    if (!parse_name((struct bel_view){name, strlen(name)}, checked)) return BEL_EINVAL;
    if (!parse_permissions((struct bel_view){permissions, strlen(permissions)}, &set, &scope)) {
        return BEL_EINVAL;
    }
    if (key.bytes < BEL_KEY_BYTES_MIN || key.bytes > BEL_KEY_BYTES_MAX) return BEL_ERANGE;
    uint16_t tag = tag_of(key);
    memcpy(tagged, salt, SALT_BYTES);
    memcpy(tagged, tag_mark, sizeof tag_mark);
    tagged[4] = (uint8_t)(tag >> 8);
    tagged[5] = (uint8_t)tag;
    hash_key(tagged, key, hash);
    (void)print_hex(tagged, SALT_BYTES, salt_text);
    (void)print_hex(hash, HASH_BYTES, hash_text);
    (void)snprintf(out, BEL_KEY_LINE_BYTES, "%s:%s:%s%s$%s", name, permissions, hash_name,
                   salt_text, hash_text);
    return 0;
}
