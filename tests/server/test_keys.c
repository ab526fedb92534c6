/* SPDX-License-Identifier: MIT */

/* API keys: the lines of the key file, and the check of a key. */
#include "server/keys.h"

#include "commands/commands.h"

#include "../ask.h"
#include "../check.h"

#include <string.h>

static const uint8_t salt[16] = "0123456789abcde";
static const unsigned known = 1U << BEL_PERMISSION_NONE | 1U << BEL_PERMISSION_KNOWN;
static char file[4096];

static void add(const char *name, const char *permissions, const char *key)
{
    char line[BEL_KEY_LINE_BYTES];
    CHECK(bel__keys_print(name, permissions, view(key), salt, line) == 0);
    size_t bytes = strlen(file);
    (void)snprintf(file + bytes, sizeof file - bytes, "%s\n", line);
}

static struct bel_keys *parse(void)
{
    struct bel_keys *keys;
    struct bel_why why = {0};
    int err = bel__keys_parse(view(file), &keys, &why);
    CHECK_NOTE("%s", why.text);
    CHECK(err == 0);
    return keys;
}

static void keys_open_what_is_theirs(void)
{
    struct bel_grant set = {.permissions = 0};
    (void)snprintf(file, sizeof file, "# a comment\n\n");
    add("reader", "read", "key-of-the-reader-123");
    add("root", "all", "key-of-root-123456789");
    struct bel_keys *keys = parse();
    CHECK_EQ(bel__keys_count(keys), 2);
    CHECK(bel__keys_check(keys, view("reader"), view("key-of-the-reader-123"), &set));
    CHECK_EQ(set.permissions, known | 1U << BEL_PERMISSION_READ);
    CHECK(bel__keys_check(keys, view(""), view("key-of-root-123456789"), &set));
    CHECK_EQ(set.permissions, known | 1U << BEL_PERMISSION_READ | 1U << BEL_PERMISSION_WRITE |
                                  1U << BEL_PERMISSION_WORK | 1U << BEL_PERMISSION_ADMIN);
    CHECK(bel__keys_check(keys, view("default"), view("key-of-the-reader-123"), &set));
    CHECK_EQ(set.permissions, known | 1U << BEL_PERMISSION_READ);
    bel__keys_destroy(keys);
}

static void others_do_not(void)
{
    static char huge[BEL_KEY_BYTES_MAX + 1];
    struct bel_grant set = {.permissions = 77};
    file[0] = 0;
    add("reader", "read", "key-of-the-reader-123");
    add("root", "read,write,work,admin", "key-of-root-123456789");
    struct bel_keys *keys = parse();
    memset(huge, 'x', sizeof huge);
    CHECK(!bel__keys_check(keys, view("root"), view("key-of-the-reader-123"), &set));
    CHECK(!bel__keys_check(keys, view("nobody"), view("key-of-root-123456789"), &set));
    CHECK(!bel__keys_check(keys, view("root"), view("key-of-root-12345678"), &set));
    CHECK(!bel__keys_check(keys, view("root"), view("key-of-root-1234567890"), &set));
    CHECK(!bel__keys_check(keys, view("root"), view(""), &set));
    CHECK(!bel__keys_check(keys, view(""), (struct bel_view){huge, sizeof huge}, &set));
    CHECK(!bel__keys_check(keys, view("root"), (struct bel_view){NULL, 0}, &set));
    CHECK_EQ(set.permissions, 77);
    bel__keys_destroy(keys);
}

static void keys_may_be_for_some_topics(void)
{
    struct bel_grant grant;
    struct bel_command get = {.verb = BEL_VERB_GET}, all = {.verb = BEL_VERB_TOPICS};
    char line[BEL_KEY_LINE_BYTES];
    file[0] = 0;
    add("some", "read,@a:b,@sms.*", "key-of-the-reader-123");
    add("root", "all", "key-of-root-123456789");
    struct bel_keys *keys = parse();
    CHECK(bel__keys_check(keys, view("some"), view("key-of-the-reader-123"), &grant));
    CHECK_EQ(grant.permissions, known | 1U << BEL_PERMISSION_READ);
    static const struct {
        const char *topic;
        bool is_in;
    } rows[] = {{"a:b", true},   {"a:bc", false}, {"a:", false}, {"sms.", true},
                {"sms.x", true}, {"sms", false},  {"x", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        get.target.topic = view(rows[i].topic);
        CHECK_NOTE("%s", rows[i].topic);
        CHECK(bel__scope_has(grant.scope, &get) == rows[i].is_in);
    }
    CHECK(!bel__scope_has(grant.scope, &all));
    CHECK(bel__keys_check(keys, view("root"), view("key-of-root-123456789"), &grant));
    CHECK(grant.scope == NULL && bel__scope_has(grant.scope, &all));
    bel__keys_destroy(keys);
    CHECK(bel__keys_print("n", "read,@", view("12345678901234567890"), salt, line) == BEL_EINVAL);
    CHECK(bel__keys_print("n", "read,@a b", view("12345678901234567890"), salt, line) ==
          BEL_EINVAL);
    CHECK(bel__keys_print("n", "all,@*", view("12345678901234567890"), salt, line) == BEL_EINVAL);
    CHECK(bel__keys_print("n", "@a,@b,@c,@d,@e,@f,@g,@h,@i", view("12345678901234567890"), salt,
                          line) == BEL_EINVAL);
}

static void the_hash_is_sha256_of_salt_and_key(void)
{
    char line[BEL_KEY_LINE_BYTES];
    uint8_t zeros[16] = {0};
    /* printf '\0%.0s' {1..16}; printf aaaaaaaaaaaaaaaaaaaa | sha256sum */
    CHECK(bel__keys_print("n", "work", view("aaaaaaaaaaaaaaaaaaaa"), zeros, line) == 0);
    CHECK_NOTE("%.200s", line);
    CHECK(strcmp(line, "n:work:sha256$00000000000000000000000000000000$"
                       "33219b743e5b00399d6b0062438b303e9c3a2b1cc08071b0d8c47003458836fc") == 0);
}

static void wrong_lines_are_named(void)
{
    static const char *const lines[] = {
        "name",
        "name:all",
        ":all:sha256$00$00",
        "na me:all:sha256$00$00",
        "name::sha256$00$00",
        "name:fly:sha256$00$00",
        "name:all:md5$00$00",
        "name:all:sha256$0011$22",
        "name:read,:sha256$00000000000000000000000000000000$zz",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct bel_keys *keys;
        struct bel_why why = {0};
        (void)snprintf(file, sizeof file, "# first\n%s\n", lines[i]);
        CHECK(bel__keys_parse(view(file), &keys, &why) == BEL_EINVAL);
        CHECK_NOTE("%s: %.100s", lines[i], why.text);
        CHECK(strncmp(why.text, "line 2: ", 8) == 0);
    }
}

static void a_name_comes_once_and_a_file_is_not_empty(void)
{
    struct bel_keys *keys;
    struct bel_why why = {0};
    file[0] = 0;
    add("n", "all", "key-of-the-reader-123");
    add("n", "read", "key-of-root-123456789");
    CHECK(bel__keys_parse(view(file), &keys, &why) == BEL_EINVAL);
    CHECK(bel__keys_parse(view("# nothing\n"), &keys, &why) == BEL_EINVAL);
}

static void short_keys_are_refused(void)
{
    char line[BEL_KEY_LINE_BYTES];
    CHECK(bel__keys_print("n", "all", view("1234567890123456789"), salt, line) == BEL_ERANGE);
    CHECK(bel__keys_print("n:m", "all", view("12345678901234567890"), salt, line) == BEL_EINVAL);
    CHECK(bel__keys_print("n", "none", view("12345678901234567890"), salt, line) == BEL_EINVAL);
}

int main(void)
{
    RUN(keys_open_what_is_theirs);
    RUN(others_do_not);
    RUN(keys_may_be_for_some_topics);
    RUN(the_hash_is_sha256_of_salt_and_key);
    RUN(wrong_lines_are_named);
    RUN(a_name_comes_once_and_a_file_is_not_empty);
    RUN(short_keys_are_refused);
    return 0;
}
