/* SPDX-License-Identifier: MIT */

/*
 * belfry ping and belfry info: whether a server answers, and its state. ping --wait is for scripts
 * that have just started a server.
 */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/print.h"

#include <stdio.h>
#include <string.h>

enum {
    WAIT_MAX_MS = 3600 * 1000,
    COUNT_OF_WORDS = 1,
};

#define SECTIONS "server, clients, stats, lateness, store, topics, capabilities, pressure"

static const char ping_usage[] =
    "usage: belfry ping [--wait DURATION]: check that a server answers\n"
    "    --wait DURATION     try to connect for this long (default: once)\n";

static const char info_usage[] = "usage: belfry info [SECTION]: show the state of a server\n"
                                 "    SECTION             " SECTIONS "\n";

/* Splits off the first line of a text, without its line end. Returns false at the end. */
static bool next_line(struct bel_view *text, struct bel_view *out)
{
    if (text->bytes == 0) return false;
    const char *data = text->data, *end = memchr(data, '\n', text->bytes);
    size_t bytes = end != NULL ? (size_t)(end - data) : text->bytes;
    size_t used = end != NULL ? bytes + 1 : bytes;
    if (bytes > 0 && data[bytes - 1] == '\r') bytes--;
    *out = (struct bel_view){data, bytes};
    *text = (struct bel_view){data + used, text->bytes - used};
    return true;
}

static void print_lines(struct bel_view text)
{
    struct bel_view line;
    while (next_line(&text, &line)) {
        bel__cli_print_line(line, 0);
        printf("\n");
    }
}

/* Prints lines of the form name:value as one object; a text without a colon as a string. */
static void print_json(struct bel_view text)
{
    struct bel_view line;
    bool is_first = true;
    if (memchr(text.data, ':', text.bytes) == NULL) {
        bel__cli_print_json_view(text);
        printf("\n");
        return;
    }
    while (next_line(&text, &line)) {
        const char *data = line.data, *colon = memchr(data, ':', line.bytes);
        if (colon == NULL) continue; /* the name of a section */
        size_t bytes = (size_t)(colon - data);
        printf(is_first ? "{" : ", ");
        bel__cli_print_json_view((struct bel_view){data, bytes});
        printf(": ");
        bel__cli_print_json_view((struct bel_view){colon + 1, line.bytes - bytes - 1});
        is_first = false;
    }
    printf("}\n");
}

/* A server replies with an empty text to a section that it does not have. */
static int refuse_section(struct bel_view section)
{
    fprintf(stderr, "belfry: unknown section '%.*s'; the sections are " SECTIONS "\n",
            (int)section.bytes, (const char *)section.data);
    return CLI_USAGE;
}

/* Sends a command and prints the text of its reply. */
static int ask(const struct cli_connect *connect, const struct bel_view *args, size_t count)
{
    struct bel_client *client;
    const struct bel_value *reply;
    int status = bel__connect_open(connect, &client);
    if (status != CLI_OK) return status;
    int err = bel_client_call(client, args, count, &reply);
    if (err) {
        status = bel__connect_failed(connect, err);
    } else if (reply->type == BEL_VALUE_ERROR) {
        status = bel__connect_refused(reply);
    } else if (reply->text.bytes == 0 && count == 2) {
        status = refuse_section(args[1]);
    } else if (connect->is_json) {
        print_json(reply->text);
    } else {
        print_lines(reply->text);
    }
    bel_client_close(client);
    return status;
}

int bel__cli_ping(int argc, char **argv)
{
    struct cli_connect connect = {0};
    uint64_t wait_ms = 0;
    const struct cli_option items[] = {
        {"wait", 0, CLI_OPTION_SPAN, 0, WAIT_MAX_MS, {.number = &wait_ms}}};
    struct cli_options options = {
        .verb = "ping", .usage = ping_usage, .items = items, .count = 1, .connect = &connect};
    int status = bel__options_read(&options, argc, argv);
    if (status >= 0) return status;
    connect.patience_ms = (uint32_t)wait_ms;
    struct bel_view args[] = {BEL_VIEW("PING")};
    return ask(&connect, args, 1);
}

int bel__cli_info(int argc, char **argv)
{
    struct cli_connect connect = {0};
    const char *words[COUNT_OF_WORDS];
    struct cli_options options = {.verb = "info",
                                  .usage = info_usage,
                                  .connect = &connect,
                                  .words = words,
                                  .words_max = COUNT_OF_WORDS};
    int status = bel__options_read(&options, argc, argv);
    if (status >= 0) return status;
    struct bel_view args[] = {BEL_VIEW("INFO"), {NULL, 0}};
    if (options.words_count > 0) args[1] = (struct bel_view){words[0], strlen(words[0])};
    return ask(&connect, args, 1 + options.words_count);
}
