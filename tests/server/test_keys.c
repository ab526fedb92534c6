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
    /* printf 'belfry key tag 1aaaaaaaaaaaaaaaaaaaa' | sha256sum begins with b48c;
     * (printf 'bel1\\xb4\\x8c'; head -c 10 /dev/zero; printf aaaaaaaaaaaaaaaaaaaa) | sha256sum */
    CHECK(bel__keys_print("n", "work", view("aaaaaaaaaaaaaaaaaaaa"), zeros, line) == 0);
    CHECK_NOTE("%.200s", line);
    CHECK(strcmp(line, "n:work:sha256$62656c31b48c00000000000000000000$"
                       "b2d8e46838923044b0c9c26691ba3909bf10a3577730a32964bb3aabec786cf8") == 0);
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

/* --- how much work a key is --- */

enum {
    MANY = BEL_KEYS_MAX,
};

static char many_file[MANY * BEL_KEY_LINE_BYTES];

static const char *many_key(unsigned number)
{
    static char key[64];
    (void)snprintf(key, sizeof key, "a-random-key-of-number-%u", number);
    return key;
}

static struct bel_keys *parse_many(void)
{
    struct bel_keys *keys;
    char *at = many_file;
    for (unsigned i = 0; i < MANY; i++) {
        char name[16], line[BEL_KEY_LINE_BYTES];
        (void)snprintf(name, sizeof name, "n%u", i);
        CHECK(bel__keys_print(name, "all", view(many_key(i)), salt, line) == 0);
        at += snprintf(at, sizeof line, "%s\n", line);
    }
    CHECK(bel__keys_parse(view(many_file), &keys, NULL) == 0);
    return keys;
}

static uint64_t work_of(struct bel_keys *keys, const char *user, const char *key, bool is_right)
{
    struct bel_grant grant;
    uint64_t before = bel__keys_hashes(keys);
    CHECK(bel__keys_check(keys, view(user), view(key), &grant) == is_right);
    return bel__keys_hashes(keys) - before;
}

static void a_key_among_many_is_as_much_work_as_alone(void)
{
    struct bel_keys *keys = parse_many();
    uint64_t most = 0;
    for (unsigned i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        uint64_t work = work_of(keys, "", many_key(i), true);
        if (work > most) most = work;
        CHECK_EQ(work_of(keys, name, many_key(i), true), 2);
        CHECK_EQ(work_of(keys, "nobody", many_key(i), false), 2);
        CHECK_EQ(work_of(keys, i == 0 ? "n1" : "n0", many_key(i), false), 2);
        work = work_of(keys, "", many_key(MANY + i), false);
        if (work > most) most = work;
    }
    CHECK(most <= 4); /* the tag, the hash, and lines that happen to have the same tag */
    bel__keys_destroy(keys);
}

/* A line of an older version, whose salt has no tag: the key is "key-of-the-reader-123". */
static const char old_line[] = "old:read:sha256$30313233343536373839616263646500$"
                               "8e872d4a42e38eb447c3c324284f8f60849387b5585c544033fe9a08a840330d\n";

static void lines_of_older_versions_are_known(void)
{
    struct bel_keys *keys;
    file[0] = 0;
    add("new", "all", "key-of-root-123456789");
    size_t bytes = strlen(file);
    (void)snprintf(file + bytes, sizeof file - bytes, "%s", old_line);
    CHECK(bel__keys_parse(view(file), &keys, NULL) == 0);
    CHECK_EQ(work_of(keys, "", "key-of-nobody-1234567", false), 2); /* the old line */
    CHECK_EQ(work_of(keys, "", "key-of-root-123456789", true), 3);
    CHECK_EQ(work_of(keys, "", "key-of-the-reader-123", true), 2);
    CHECK_EQ(work_of(keys, "", "key-of-root-123456789", true), 2); /* its tag is known now */
    CHECK_EQ(work_of(keys, "old", "key-of-the-reader-123", true), 2);
    CHECK_EQ(work_of(keys, "old", "key-of-root-123456789", false), 2);
    bel__keys_destroy(keys);
}

static void keys_can_be_replaced(void)
{
    struct bel_grant reader, root;
    struct bel_why why = {0};
    struct bel_command get = {.verb = BEL_VERB_GET, .target.topic = view("mail")};
    file[0] = 0;
    add("reader", "read,@mail", "key-of-the-reader-123");
    add("root", "all", "key-of-root-123456789");
    struct bel_keys *keys = parse();
    CHECK(bel__keys_check(keys, view(""), view("key-of-the-reader-123"), &reader));
    CHECK(bel__keys_check(keys, view(""), view("key-of-root-123456789"), &root));
    CHECK(bel__keys_replace(keys, view("nonsense"), &why) == BEL_EINVAL);
    CHECK_EQ(bel__keys_count(keys), 2);
    file[0] = 0;
    add("reader", "write,@sms", "key-of-the-reader-123");
    CHECK(bel__keys_replace(keys, view(file), &why) == 0);
    CHECK(bel__scope_has(reader.scope, &get)); /* is still there for who holds it */
    CHECK(bel__keys_regrant(keys, &reader));
    CHECK_EQ(reader.permissions, known | 1U << BEL_PERMISSION_WRITE);
    CHECK(!bel__scope_has(reader.scope, &get));
    CHECK(!bel__keys_regrant(keys, &root));
    CHECK(!bel__keys_check(keys, view(""), view("key-of-root-123456789"), &root));
    CHECK(bel__keys_check(keys, view("reader"), view("key-of-the-reader-123"), &reader));
    bel__keys_destroy(keys);
}

int main(void)
{
    RUN(a_key_among_many_is_as_much_work_as_alone);
    RUN(lines_of_older_versions_are_known);
    RUN(keys_can_be_replaced);
    RUN(keys_open_what_is_theirs);
    RUN(others_do_not);
    RUN(keys_may_be_for_some_topics);
    RUN(the_hash_is_sha256_of_salt_and_key);
    RUN(wrong_lines_are_named);
    RUN(a_name_comes_once_and_a_file_is_not_empty);
    RUN(short_keys_are_refused);
    return 0;
}
