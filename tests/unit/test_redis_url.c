/* SPDX-License-Identifier: MIT */
#include "redis/link/url.h"

#include "../check.h"

#include <string.h>
#include <unistd.h>

static struct bel_redis_url url;
static struct bel_why why;

static int parse(const char *text)
{
    CHECK_NOTE("%s", text);
    bel__redis_url_finish(&url);
    memset(&why, 0, sizeof why);
    return bel__redis_url_parse(text, strlen(text), &url, &why);
}

static bool is(const char *text, const char *want)
{
    return want == NULL ? text == NULL : text != NULL && strcmp(text, want) == 0;
}

static void check_host(size_t index, const char *name, uint16_t port)
{
    CHECK(index < url.hosts_count);
    CHECK(is(url.hosts[index].name, name));
    CHECK_EQ(url.hosts[index].port, port);
}

static void a_host_alone_has_defaults(void)
{
    CHECK(parse("redis://example.org") == 0);
    CHECK_EQ(url.hosts_count, 1);
    check_host(0, "example.org", 6379);
    CHECK(url.mode == BEL_REDIS_SINGLE && !url.is_tls && !url.is_insecure);
    CHECK(url.user == NULL && url.password == NULL && url.password_file == NULL);
    CHECK(url.path == NULL && url.name_space == NULL && url.db == 0);
    CHECK(parse("redis://example.org/") == 0 && url.db == 0);
    CHECK(parse("redis+sentinel://s/my%20primary/3") == 0);
    CHECK(is(url.master, "my primary") && url.db == 3);
    bel__redis_url_finish(&url);
    CHECK(parse("redis+sentinel://s/m") == 0);
    CHECK(is(url.master, "m") && url.db == 0);
    bel__redis_url_finish(&url);
    CHECK(parse("redis+sentinel://s?master=m") == 0);
    check_host(0, "s", 26379);
}

static void every_part_is_found(void)
{
    CHECK(parse("rediss+sentinel://bob:p%40%3a%2F%25@a:1,[::1]:2,c_d.e-f/15?master=my%20primary"
                "&ca=%2Fetc/ca.pem&ca_dir=/etc/ca&cert=/c&key=/k&insecure=yes&namespace=app.1") ==
          0);
    CHECK(url.mode == BEL_REDIS_SENTINEL && url.is_tls && url.is_insecure);
    CHECK(is(url.user, "bob"));
    CHECK(is(url.password, "p@:/%"));
    CHECK_EQ(url.hosts_count, 3);
    check_host(0, "a", 1);
    check_host(1, "::1", 2);
    check_host(2, "c_d.e-f", 26379);
    CHECK_EQ(url.db, 15);
    CHECK(is(url.master, "my primary"));
    CHECK(is(url.ca, "/etc/ca.pem") && is(url.ca_dir, "/etc/ca"));
    CHECK(is(url.cert, "/c") && is(url.key, "/k"));
    CHECK(is(url.name_space, "app.1"));
}

static void each_scheme_is_known(void)
{
    static const struct {
        const char *text;
        enum bel_redis_mode mode;
        bool is_tls;
    } rows[] = {
        {"redis://h", BEL_REDIS_SINGLE, false},
        {"rediss://h", BEL_REDIS_SINGLE, true},
        {"redis+sentinel://h?master=m", BEL_REDIS_SENTINEL, false},
        {"rediss+sentinel://h?master=m", BEL_REDIS_SENTINEL, true},
        {"redis+cluster://h", BEL_REDIS_CLUSTER, false},
        {"rediss+cluster://h", BEL_REDIS_CLUSTER, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(parse(rows[i].text) == 0);
        CHECK(url.mode == rows[i].mode && url.is_tls == rows[i].is_tls);
        CHECK(url.path == NULL);
    }
    CHECK(parse("unix:///run/redis%20a.sock?db=3") == 0);
    CHECK(is(url.path, "/run/redis a.sock"));
    CHECK(url.hosts_count == 0 && url.db == 3);
}

static void a_password_needs_no_user(void)
{
    CHECK(parse("redis://:pw@h") == 0);
    CHECK(url.user == NULL && is(url.password, "pw"));
    CHECK(parse("redis://a@b:pw@h") == 0); /* the last @ ends the credentials */
    CHECK(is(url.user, "a@b"));
    CHECK(parse("redis://a:p:w@h") == 0);
    CHECK(is(url.password, "p:w"));
}

static void a_wrong_url_is_refused_by_name(void)
{
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"", "expected a URL"},
        {"example.org:6379", "expected a URL"},
        {"http://h", "unknown scheme 'http'"},
        {"re dis://h", "unknown scheme '?'"},
        {"redis://", "host 1"},
        {"redis://h,", "host 2"},
        {"redis://h h", "host 1"},
        {"redis://a,[::1", "host 2"},
        {"redis://[::1]x", "host 1"},
        {"redis://[]", "host 1"},
        {"redis://::1", "host 1"},
        {"redis://h:", "port of host 1"},
        {"redis://h:0", "port of host 1"},
        {"redis://a,h:65536", "port of host 2"},
        {"redis://h/x", "database"},
        {"redis://h/-1", "database"},
        {"redis://h/1/2", "database"},
        {"redis+cluster://h/1", "cluster has only database 0"},
        {"redis://h?", "unknown option"},
        {"redis://h?colour=red", "unknown option 'colour'"},
        {"redis://h?namespace", "option 'namespace' has no value"},
        {"redis://h?namespace=", "option 'namespace' has no value"},
        {"redis://h?namespace=a&namespace=a", "option 'namespace' is there twice"},
        {"redis://h?namespace={a}", "option 'namespace' is"},
        {"redis://h?namespace=%zz", "option 'namespace': a %"},
        {"redis://h?namespace=%00", "option 'namespace': a %"},
        {"redis://h?namespace=a%4", "option 'namespace': a %"},
        {"redis://h?ca=x", "option 'ca' is only for TLS"},
        {"redis://h?insecure=yes", "option 'insecure' is only for TLS"},
        {"rediss://h?insecure=true", "'insecure' is yes or no"},
        {"rediss://h?cert=x", "'cert' needs option 'key'"},
        {"rediss://h?key=x", "'key' needs 'cert'"},
        {"redis+sentinel://h", "master="},
        {"redis+sentinel://h//3", "/name/db"},
        {"redis+sentinel://h/m/x", "database"},
        {"redis+sentinel://h/m?master=n", "database"},
        {"redis+sentinel://h/m?sentinel_user=u", "needs sentinel_password_file"},
        {"redis://h?sentinel_user=u", "'sentinel_user' is only for"},
        {"redis://h?master=m", "'master' is only for"},
        {"redis://h?db=1", "'db' is only for unix"},
        {"redis://u@h", "a user needs a password"},
        {"redis://@h", "are empty"},
        {"redis://u:@h", "password before the @ is empty"},
        {"redis://u:p@h?password_file=x", "use one"},
        {"redis://:%@h", "two hexadecimal digits"},
        {"redis://h#x", "percent-encoded"},
        {"unix://h", "unix:///path"},
        {"unix:///", "unix:///path"},
        {"unix://h/path", "unix:///path"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(parse(rows[i].text) == BEL_EINVAL);
        CHECK_NOTE("%s: %.150s", rows[i].text, why.text);
        CHECK(strstr(why.text, rows[i].said) != NULL);
    }
    char many[] = "redis://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a";
    CHECK(parse(many) == BEL_EINVAL && strstr(why.text, "more than 16 hosts") != NULL);
    many[strlen(many) - 2] = 0;
    CHECK(parse(many) == 0 && url.hosts_count == BEL_REDIS_HOSTS_MAX);
    static char large[BEL_REDIS_URL_BYTES_MAX + 2];
    memset(large, 'a', sizeof large - 1);
    CHECK(parse(large) == BEL_EINVAL && strstr(why.text, "more than 4096 bytes") != NULL);
    CHECK(bel__redis_url_parse("redis://a\0b", 11, &url, &why) == BEL_EINVAL);
    CHECK(strstr(why.text, "byte 0") != NULL);
}

/* Every byte at every position of the password; the message must not show the rest of it. */
static void a_message_never_shows_the_password(void)
{
    static const char start[] = "redis://user:", secret[] = "sEcReTsEcReT", end[] = "@h:x/y?z=1";
    for (int byte = 1; byte < 256; byte++) {
        for (size_t at = 0; at <= strlen(secret); at++) {
            char text[64];
            (void)snprintf(text, sizeof text, "%s%.*s%c%s%s", start, (int)at, secret, byte,
                           secret + at, end);
            CHECK(parse(text) == BEL_EINVAL);
            CHECK_NOTE("%s: %.150s", text, why.text);
            CHECK(why.text[0] != 0);
            CHECK(strstr(why.text, "sEc") == NULL && strstr(why.text, "ReT") == NULL);
        }
    }
}

static void a_printed_url_has_no_password(void)
{
    char text[128];
    CHECK(parse("rediss+cluster://bob:secret@a,[::1]:7?insecure=yes") == 0);
    CHECK_EQ(bel__redis_url_print(&url, text, sizeof text),
             strlen("rediss+cluster://a:6379,[::1]:7"));
    CHECK(strcmp(text, "rediss+cluster://a:6379,[::1]:7") == 0);
    CHECK(parse("redis://a/3") == 0);
    CHECK_EQ(bel__redis_url_print(&url, text, 5), strlen("redis://a:6379/3"));
    CHECK(strcmp(text, "redi") == 0);
    CHECK(parse("unix:///run/s?db=2") == 0);
    (void)bel__redis_url_print(&url, text, sizeof text);
    CHECK(strcmp(text, "unix:///run/s?db=2") == 0);
}

static void write_file(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    CHECK(fwrite(text, 1, bytes, file) == bytes);
    CHECK(fclose(file) == 0);
}

static void a_password_file_is_its_first_line(void)
{
    char path[] = "/tmp/belfry-password-XXXXXX", text[128];
    static char large[BEL_REDIS_PASSWORD_BYTES_MAX + 1];
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    (void)snprintf(text, sizeof text, "redis://u@h?password_file=%s", path);
    CHECK(parse(text) == 0);
    CHECK(url.password == NULL && is(url.password_file, path));

    write_file(path, "p w\r\nmore\n", 10);
    CHECK(bel__redis_url_read_password(&url, &why) == 0 && is(url.password, "p w"));
    write_file(path, "again", 5);
    CHECK(bel__redis_url_read_password(&url, &why) == 0 && is(url.password, "again"));
    memset(large, 'x', sizeof large);
    write_file(path, large, sizeof large - 1);
    CHECK(bel__redis_url_read_password(&url, &why) == 0);
    CHECK_EQ(strlen(url.password), BEL_REDIS_PASSWORD_BYTES_MAX);

    write_file(path, large, sizeof large);
    CHECK(bel__redis_url_read_password(&url, &why) == BEL_EINVAL);
    CHECK(strstr(why.text, path) != NULL && strstr(why.text, "xxx") == NULL);
    write_file(path, "\nx", 2);
    CHECK(bel__redis_url_read_password(&url, &why) == BEL_EINVAL);
    write_file(path, "a\0b", 3);
    CHECK(bel__redis_url_read_password(&url, &why) == BEL_EINVAL);
    CHECK(unlink(path) == 0);
    CHECK(bel__redis_url_read_password(&url, &why) == BEL_EIO && strstr(why.text, path) != NULL);
    CHECK_EQ(strlen(url.password), BEL_REDIS_PASSWORD_BYTES_MAX);
    CHECK(parse("redis://h") == 0);
    CHECK(bel__redis_url_read_password(&url, &why) == 0 && url.password == NULL);
}

int main(void)
{
    RUN(a_host_alone_has_defaults);
    RUN(every_part_is_found);
    RUN(each_scheme_is_known);
    RUN(a_password_needs_no_user);
    RUN(a_wrong_url_is_refused_by_name);
    RUN(a_message_never_shows_the_password);
    RUN(a_printed_url_has_no_password);
    RUN(a_password_file_is_its_first_line);
    bel__redis_url_finish(&url);
    return EXIT_SUCCESS;
}
