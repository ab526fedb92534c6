/* SPDX-License-Identifier: MIT */

/* The texts of the options stay in the memory of the URL that they came from. */
#include "redis/servers/servers.h"

#include "redis/link/tls.h"

#include <stdlib.h>

struct bel_servers_memory {
    struct bel_redis_url url;
    struct bel_tls *tls;
};

static void free_memory(struct bel_servers_memory *memory)
{
    bel__tls_close(memory->tls);
    bel__redis_url_finish(&memory->url);
    free(memory);
}

static int open_tls(struct bel_servers_memory *memory, struct bel_why *why)
{
    const struct bel_redis_url *url = &memory->url;
    struct bel_tls_options options = {.ca = url->ca,
                                      .ca_dir = url->ca_dir,
                                      .cert = url->cert,
                                      .key = url->key,
                                      .is_insecure = url->is_insecure};
    return url->is_tls ? bel__tls_open(&options, &memory->tls, why) : 0;
}

static void fill(struct bel_servers_memory *memory, struct bel_servers_options *out)
{
    const struct bel_redis_url *url = &memory->url;
    *out = (struct bel_servers_options){.mode = url->mode,
                                        .hosts_count = url->hosts_count,
                                        .path = url->path,
                                        .user = url->user,
                                        .password = url->password,
                                        .db = url->db,
                                        .tls = memory->tls,
                                        .master = url->master,
                                        .sentinel_user = url->sentinel_user,
                                        .sentinel_password = url->sentinel_password,
                                        .name_space = url->name_space,
                                        .memory = memory};
    for (size_t i = 0; i < url->hosts_count; i++) {
        out->hosts[i] = url->hosts[i];
    }
}

int bel__servers_parse(const char *text, size_t bytes, struct bel_servers_options *out,
                       struct bel_why *why)
{
    struct bel_servers_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) return bel__why_say(why, BEL_ENOMEM, "memory has run out");
    int err = bel__redis_url_parse(text, bytes, &memory->url, why);
    if (err == 0) err = bel__redis_url_read_password(&memory->url, why);
    if (err == 0) err = open_tls(memory, why);
    if (err) {
        free_memory(memory);
        return err;
    }
    fill(memory, out);
    return 0;
}

void bel__servers_forget(struct bel_servers_options *options)
{
    if (options->memory != NULL) free_memory(options->memory);
    *options = (struct bel_servers_options){.mode = BEL_REDIS_SINGLE};
}
