/* SPDX-License-Identifier: MIT */

/*
 * The first byte selects the input: a configuration file, a key file, or a value to log. An error
 * must have a message; a printed address must parse as the same address; and a log line must not
 * contain control characters.
 */
#include "server/config.h"
#include "server/keys.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_settings(struct bel_view text)
{
    struct bel_config config;
    struct bel_why error = {0};
    struct bel_address again;
    char address[BEL_ADDRESS_BYTES];
    bel__config_init(&config);
    if (bel__config_read_file(&config, "file", text, &error) != 0) {
        assert(strncmp(error.text, "file", 4) == 0);
        return;
    }
    assert(memchr(config.data, 0, sizeof config.data) != NULL);
    assert(config.clients_max > 0 && config.payload_bytes_max > 0);
    bel__address_print(&config.resp, address);
    int err = bel__address_parse(address, &again);
    assert(err == 0);
    (void)err;
    assert(bel__address_is_loopback(&again) == bel__address_is_loopback(&config.resp));
    err = bel__config_check(&config, &error);
    assert(err != 0 || config.keys[0] != 0 || bel__address_is_loopback(&config.resp));
}

static void read_keys(struct bel_view text)
{
    struct bel_keys *keys;
    struct bel_why why = {0};
    struct bel_grant grant;
    if (bel__keys_parse(text, &keys, &why) != 0) {
        assert(why.text[0] != 0);
        return;
    }
    assert(bel__keys_count(keys) > 0 && bel__keys_count(keys) <= BEL_KEYS_MAX);
    bool is_in = bel__keys_check(keys, (struct bel_view){0}, text, &grant);
    assert(!is_in); /* the file is not a key of itself */
    (void)is_in;
    bel__keys_destroy(keys);
}

static void log_text(struct bel_view text)
{
    static char line[BEL_LOG_LINE_BYTES_MAX];
    struct bel_log_field fields[BEL_LOG_FIELDS_MAX];
    for (unsigned i = 0; i < BEL_LOG_FIELDS_MAX; i++) {
        fields[i] = (struct bel_log_field){.name = "field", .text = text};
    }
    struct bel_log_event event = {{0}, BEL_LOG_INFO, "message", fields, BEL_LOG_FIELDS_MAX};
    for (int format = BEL_LOG_AS_TEXT; format <= BEL_LOG_AS_JSON; format++) {
        size_t bytes = bel__logger_format_line((enum bel_log_format)format, &event, line);
        assert(bytes <= sizeof line && line[bytes - 1] == '\n');
        for (size_t i = 0; i + 1 < bytes; i++) {
            assert((unsigned char)line[i] >= ' ' && line[i] != 0x7f);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    struct bel_view text = {data + 1, size - 1};
    switch (data[0] % 3) {
    case 0:
        read_settings(text);
        break;
    case 1:
        read_keys(text);
        break;
    default:
        log_text(text);
        break;
    }
    return 0;
}
