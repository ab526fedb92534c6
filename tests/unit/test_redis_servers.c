/* SPDX-License-Identifier: MIT */

/* The slots of keys, and the options that a URL says. */
#include "redis/redis.h"
#include "redis/servers/servers.h"
#include "redis/servers/slot.h"

#include "core/crc16.h"

#include "../check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint16_t slot_of(const char *key)
{
    return bel__slot_of((struct bel_view){key, strlen(key)});
}

static void a_slot_is_that_of_redis(void)
{
    CHECK_EQ(bel__crc16(0, "123456789", 9), 0x31c3);
    CHECK_EQ(bel__crc16(bel__crc16(0, "1234", 4), "56789", 5), 0x31c3);
    CHECK_EQ(slot_of("foo"), 12182); /* CLUSTER KEYSLOT foo */
    CHECK_EQ(slot_of("bar"), 5061);
    CHECK_EQ(slot_of(""), 0);
}

static void only_the_hash_tag_counts(void)
{
    CHECK_EQ(slot_of("x{bar}y{foo}"), 5061);
    CHECK_EQ(slot_of("{belfry:mail:0}:pend"), slot_of("{belfry:mail:0}:lease"));
    CHECK_EQ(slot_of("{}foo"), bel__crc16(0, "{}foo", 5) % BEL_SLOTS);
    CHECK_EQ(slot_of("{foo"), bel__crc16(0, "{foo", 4) % BEL_SLOTS);
    CHECK_EQ(slot_of("{{bar}}"), slot_of("{bar"));
}

static int parse(const char *url, struct bel_redis_options *out, struct bel_why *why)
{
    return bel__redis_parse(url, strlen(url), out, why);
}

static void a_url_fills_the_options(void)
{
    struct bel_redis_options options;
    struct bel_why why = {{0}, NULL};
    CHECK(parse("redis://me:secret@a:7000/3?namespace=mail", &options, &why) == 0);
    CHECK(options.servers.mode == BEL_REDIS_SINGLE && options.servers.hosts_count == 1);
    CHECK(strcmp(options.servers.hosts[0].name, "a") == 0);
    CHECK(options.servers.hosts[0].port == 7000 && options.servers.db == 3);
    CHECK(strcmp(options.servers.user, "me") == 0);
    CHECK(strcmp(options.servers.password, "secret") == 0);
    CHECK(strcmp(options.name_space, "mail") == 0 && options.servers.tls == NULL);
    CHECK(options.servers.durability == BEL_DURABILITY_ASYNC);
    bel__redis_forget(&options);
    CHECK(options.servers.user == NULL);
    bel__redis_forget(&options);

    CHECK(parse("rediss+cluster://a,[::1]:7001", &options, &why) == 0);
    CHECK(options.servers.mode == BEL_REDIS_CLUSTER && options.servers.hosts_count == 2);
    CHECK(strcmp(options.servers.hosts[1].name, "::1") == 0 && options.servers.tls != NULL);
    CHECK(strcmp(options.name_space, "belfry") == 0);
    bel__redis_forget(&options);

    CHECK(parse("redis+sentinel://a,b,c/?master=mymaster", &options, &why) == 0);
    CHECK(options.servers.mode == BEL_REDIS_SENTINEL && options.servers.hosts_count == 3);
    CHECK(strcmp(options.servers.master, "mymaster") == 0);
    CHECK(options.servers.hosts[2].port == 26379);
    bel__redis_forget(&options);
}

static void sentinels_have_credentials_of_their_own(void)
{
    struct bel_redis_options options;
    struct bel_why why = {{0}, NULL};
    char path[] = "/tmp/belfry-password-XXXXXX", url[256];
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, "theirs\n", 7) == 7 && close(fd) == 0);
    (void)snprintf(url, sizeof url,
                   "redis+sentinel://me:mine@a,b,c/m?sentinel_user=they&"
                   "sentinel_password_file=%s",
                   path);
    CHECK(parse(url, &options, &why) == 0);
    CHECK(strcmp(options.servers.password, "mine") == 0);
    CHECK(strcmp(options.servers.sentinel_user, "they") == 0);
    CHECK(strcmp(options.servers.sentinel_password, "theirs") == 0);
    bel__redis_forget(&options);
    CHECK(parse("redis+sentinel://:mine@a,b,c/m", &options, &why) == 0);
    CHECK(options.servers.sentinel_user == NULL && options.servers.sentinel_password == NULL);
    bel__redis_forget(&options);
    CHECK(unlink(path) == 0);
}

static void a_bad_url_leaves_the_options_unchanged(void)
{
    struct bel_redis_options options = {.payload_bytes_max = 7};
    struct bel_why why = {{0}, NULL};
    CHECK(parse("http://a", &options, &why) == BEL_EINVAL && why.text[0] != 0);
    CHECK(parse("redis://a?password_file=/no/such/file", &options, &why) == BEL_EIO);
    CHECK(strstr(why.text, "/no/such/file") != NULL);
    CHECK(parse("rediss://a?ca=/no/such/file", &options, &why) == BEL_EINVAL);
    CHECK(options.payload_bytes_max == 7 && options.servers.memory == NULL);
}

int main(void)
{
    RUN(a_slot_is_that_of_redis);
    RUN(only_the_hash_tag_counts);
    RUN(a_url_fills_the_options);
    RUN(sentinels_have_credentials_of_their_own);
    RUN(a_bad_url_leaves_the_options_unchanged);
    return EXIT_SUCCESS;
}
