/* SPDX-License-Identifier: MIT */

/* Standard output is buffered by stdio. cli.c checks it for errors once, at the end. */
#include "cli/print.h"

#include "belfry/instant.h"
#include "cli/cli.h"
#include "core/base64.h"
#include "core/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    DEPTH_MAX = 16,       /* more than BEL_READER_DEPTH_MAX of the client */
    NAME_BYTES_MAX = 140, /* of a name that gets _base64 at its end */
    COLUMNS_DEFAULT = 80,
    COLUMNS_MIN = 40,
    COLUMNS_MAX = 400,
};

/* --- the terminal --- */

bool bel__cli_is_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

bool bel__cli_has_color(void)
{
    const char *no = getenv("NO_COLOR");   /* NOLINT(concurrency-mt-unsafe): nothing calls setenv */
    const char *terminal = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe) */
    if (no != NULL && no[0] != '\0') return false;
    return bel__cli_is_terminal() && (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

unsigned bel__cli_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return COLUMNS_DEFAULT;
    if (size.ws_col < COLUMNS_MIN) return COLUMNS_MIN;
    return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

const char *bel__cli_problem(int number)
{
    static _Thread_local char text[128];
    return strerror_r(number, text, sizeof text);
}

/* --- JSON --- */

void bel__cli_print_json_view(struct bel_view view)
{
    const unsigned char *text = view.data;
    size_t at = 0;
    (void)putchar('"');
    while (at < view.bytes) {
        size_t bytes = bel__utf8_bytes(text + at, view.bytes - at);
        if (bytes == 0) {
            printf("\\ufffd");
            at++;
        } else if (text[at] == '"' || text[at] == '\\') {
            printf("\\%c", text[at++]);
        } else if (bytes == 1 && bel__utf8_is_control(text + at, 1)) {
            printf("\\u%04x", text[at++]);
        } else {
            (void)fwrite(text + at, 1, bytes, stdout);
            at += bytes;
        }
    }
    (void)putchar('"');
}

void bel__cli_print_json(const char *text)
{
    bel__cli_print_json_view((struct bel_view){text, strlen(text)});
}

static void print_base64(struct bel_view view)
{
    const uint8_t *bytes = view.data;
    char group[BEL_BASE64_CHARS];
    (void)putchar('"');
    for (size_t i = 0; i < view.bytes; i += BEL_BASE64_BYTES) {
        bel__base64_group(bytes + i, view.bytes - i, group);
        (void)fwrite(group, 1, sizeof group, stdout);
    }
    (void)putchar('"');
}

/* A list that is being printed. */
struct frame {
    const struct bel_value *items;
    size_t count, next;
    bool is_map;
};

static void print_scalar(const struct bel_value *value, bool is_bytes)
{
    switch (value->type) {
    case BEL_VALUE_NUMBER:
        printf("%" PRId64, value->number);
        break;
    case BEL_VALUE_BOOLEAN:
        printf(value->number ? "true" : "false");
        break;
    case BEL_VALUE_DECIMAL: /* as a string: JSON has no inf and nan */
    case BEL_VALUE_TEXT:
    case BEL_VALUE_STATUS:
    case BEL_VALUE_ERROR:
        if (is_bytes) {
            print_base64(value->text);
        } else {
            bel__cli_print_json_view(value->text);
        }
        break;
    default:
        printf("null");
    }
}

static bool is_bytes_of(const struct bel_value *value)
{
    return value->type == BEL_VALUE_TEXT && !bel__utf8_is_text(value->text);
}

/* Prints a name. Returns whether its value is to be printed in base64. */
static bool print_name(const struct bel_value *name, const struct bel_value *value)
{
    bool is_bytes = is_bytes_of(value);
    if (is_bytes) {
        char long_name[NAME_BYTES_MAX + sizeof "_base64"];
        size_t bytes = name->text.bytes < NAME_BYTES_MAX ? name->text.bytes : NAME_BYTES_MAX;
        (void)snprintf(long_name, sizeof long_name, "%.*s_base64", (int)bytes,
                       (const char *)name->text.data);
        bel__cli_print_json(long_name);
    } else if (name->type == BEL_VALUE_NUMBER) {
        printf("\"%" PRId64 "\"", name->number);
    } else {
        bel__cli_print_json_view(name->text);
    }
    printf(": ");
    return is_bytes;
}

static bool is_list(const struct bel_value *value)
{
    return value->type == BEL_VALUE_LIST || value->type == BEL_VALUE_MAP;
}

/* Returns whether two pairs of name and value are printed under one name. */
static bool is_namesake(const struct bel_value *a, const struct bel_value *b)
{
    bool is_same = a->text.bytes == b->text.bytes &&
                   (a->text.bytes == 0 || memcmp(a->text.data, b->text.data, a->text.bytes) == 0);
    return is_same && is_bytes_of(a + 1) == is_bytes_of(b + 1);
}

/* Returns the index, from `at` on, of the first pair printed under a name; the count if none is. */
static size_t find_namesake(const struct bel_value *list, const struct bel_value *name, size_t at)
{
    while (at < list->count && !is_namesake(&list->items[at], name)) {
        at += 2;
    }
    return at;
}

/* Prints headers, a flat list of names and values, as an object. A name with several values has an
 * array, at the place of its first value. */
static void print_headers(const struct bel_value *list)
{
    (void)putchar('{');
    for (size_t i = 0; i < list->count; i += 2) {
        const struct bel_value *name = &list->items[i];
        if (find_namesake(list, name, 0) < i) continue;
        size_t again = find_namesake(list, name, i + 2);
        bool is_array = again < list->count;
        if (i > 0) printf(", ");
        bool is_bytes = print_name(name, name + 1);
        if (is_array) (void)putchar('[');
        print_scalar(name + 1, is_bytes);
        for (; again < list->count; again = find_namesake(list, name, again + 2)) {
            printf(", ");
            print_scalar(&list->items[again + 1], is_bytes);
        }
        if (is_array) (void)putchar(']');
    }
    (void)putchar('}');
}

static bool is_headers_of(const struct bel_value *name, const struct bel_value *value)
{
    if (!is_list(value)) return false;
    const struct bel_field *field = bel__field_find(BEL_SHOWN_TIMER, name->text);
    return field != NULL && field->type == BEL_FIELD_HEADERS;
}

/* Returns the name of the second of each two values in a list that JSON shows as objects with a
 * task: "on" for `after`, "result" for `results`; NULL for other lists. */
static const char *second_of(const struct bel_value *name, const struct bel_value *value)
{
    if (!is_list(value) || value->count % 2 != 0) return NULL;
    const struct bel_field *after = bel__field_find(BEL_SHOWN_TASK, name->text);
    if (after != NULL && after->type == BEL_FIELD_AFTERS) return "on";
    const struct bel_field *results = bel__field_find(BEL_SHOWN_DELIVERY, name->text);
    return results != NULL && results->type == BEL_FIELD_RESULTS ? "result" : NULL;
}

static void print_couples(const struct bel_value *list, const char *second)
{
    const struct bel_value name = {.type = BEL_VALUE_TEXT, .text = {second, strlen(second)}};
    (void)putchar('[');
    for (size_t i = 0; i < list->count; i += 2) {
        printf("%s{\"task\": ", i > 0 ? ", " : "");
        print_scalar(&list->items[i], false);
        printf(", ");
        print_scalar(&list->items[i + 1], print_name(&name, &list->items[i + 1]));
        (void)putchar('}');
    }
    (void)putchar(']');
}

void bel__cli_print_value(const struct bel_value *value)
{
    struct frame stack[DEPTH_MAX] = {{.items = value, .count = 1}};
    unsigned depth = 0;
    for (;;) {
        struct frame *top = &stack[depth];
        if (top->next == top->count) {
            if (depth == 0) return;
            (void)putchar(top->is_map ? '}' : ']');
            depth--;
            continue;
        }
        bool is_bytes = false, is_headers = false;
        const char *second = NULL;
        if (top->next > 0) printf(", ");
        if (top->is_map) {
            const struct bel_value *name = &top->items[top->next++];
            is_headers = is_headers_of(name, &top->items[top->next]);
            second = second_of(name, &top->items[top->next]);
            is_bytes = print_name(name, &top->items[top->next]);
        }
        const struct bel_value *item = &top->items[top->next++];
        if (!is_list(item)) {
            print_scalar(item, is_bytes);
            continue;
        }
        if (is_headers && item->count % 2 == 0) {
            print_headers(item);
            continue;
        }
        if (second != NULL) {
            print_couples(item, second);
            continue;
        }
        bool is_map = item->count % 2 == 0 && item->type == BEL_VALUE_MAP;
        (void)putchar(is_map ? '{' : '[');
        assert(depth + 1 < DEPTH_MAX);
        stack[++depth] = (struct frame){item->items, item->count, 0, is_map};
    }
}

void bel__cli_print_places(enum bel_shown_kind kind, const struct bel_value *list)
{
    const struct bel_shown *shown = &bel__shown[kind];
    struct bel_value items[2 * BEL_SHOWN_FIELDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < shown->count && i < list->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        bool is_nil = list->items[i].type == BEL_VALUE_NIL;
        if (is_nil && field->empty == BEL_EMPTY_ABSENT) continue;
        if (field->type == BEL_FIELD_RESULTS && list->items[i].count == 0) continue;
        items[count++] = (struct bel_value){.type = BEL_VALUE_TEXT, .text = field->name};
        items[count++] = list->items[i];
    }
    struct bel_value map = {.type = BEL_VALUE_MAP, .items = items, .count = count};
    bel__cli_print_value(&map);
}

int64_t bel__cli_topic_number(const struct bel_value *topic, const char *name)
{
    const struct bel_value *value = bel_value_find(topic, name);
    assert(bel__field_find(BEL_SHOWN_TOPIC, (struct bel_view){name, strlen(name)}) != NULL);
    return value != NULL ? value->number : 0;
}

/* --- lines --- */

static void print_escaped(unsigned char byte)
{
    static const char known[] = "\tt\nn\rr\\\\";
    const char *found = memchr(known, byte, sizeof known - 1);
    if (found != NULL && (found - known) % 2 == 0) {
        printf("\\%c", found[1]);
    } else {
        printf("\\x%02x", byte);
    }
}

void bel__cli_print_line(struct bel_view view, size_t columns)
{
    const unsigned char *text = view.data;
    size_t at = 0, printed = 0;
    while (at < view.bytes) {
        size_t bytes = bel__utf8_bytes(text + at, view.bytes - at);
        if (columns > 0 && ++printed > columns) {
            printf("...");
            return;
        }
        if (bytes == 0 || text[at] == '\\' || bel__utf8_is_control(text + at, bytes)) {
            for (unsigned i = 0; i < (bytes > 0 ? bytes : 1); i++) {
                print_escaped(text[at + i]);
            }
        } else {
            (void)fwrite(text + at, 1, bytes, stdout);
        }
        at += bytes > 0 ? bytes : 1;
    }
}

void bel__cli_print_plain(const struct bel_value *value)
{
    switch (value->type) {
    case BEL_VALUE_NUMBER:
        printf("%" PRId64, value->number);
        break;
    case BEL_VALUE_BOOLEAN:
        printf(value->number ? "yes" : "no");
        break;
    case BEL_VALUE_LIST:
    case BEL_VALUE_MAP:
        bel__cli_print_value(value);
        break;
    default:
        bel__cli_print_line(value->text, 0);
    }
}

void bel__cli_print_time(int64_t ms)
{
    char text[BEL_INSTANT_BYTES];
    (void)bel_instant_print((struct bel_wall){ms}, text, sizeof text);
    printf("%s", text);
}

void bel__cli_print_state(struct bel_view state, int columns)
{
    static const struct {
        const char *name, *color;
    } colors[] = {{"ready", "32"}, {"leased", "33"}, {"dead", "31"}, {"expired", "31"}};
    const char *color = NULL;
    for (unsigned i = 0; i < sizeof colors / sizeof colors[0]; i++) {
        size_t bytes = strlen(colors[i].name);
        if (bytes != state.bytes || memcmp(colors[i].name, state.data, bytes) != 0) continue;
        color = colors[i].color;
    }
    if (color != NULL && bel__cli_has_color()) printf("\033[%sm", color);
    bel__cli_print_line(state, 0);
    if (color != NULL && bel__cli_has_color()) printf("\033[0m");
    printf("%*s", state.bytes < (size_t)columns ? columns - (int)state.bytes : 0, "");
}

void bel__cli_point_at(struct bel_view text, size_t position)
{
    const unsigned char *bytes = text.data;
    fputs("    ", stderr);
    for (size_t i = 0; i < text.bytes; i++) {
        (void)fputc(bytes[i] < ' ' || bytes[i] == 0x7f ? ' ' : bytes[i], stderr);
    }
    fprintf(stderr, "\n    %*s^\n", (int)position, "");
}

int bel__cli_refuse_value(const char *name, const char *what, const char *text,
                          const struct bel_text_error *why)
{
    fprintf(stderr, "belfry: %s%snot %s: expected %s\n", name, name[0] != '\0' ? ": " : "", what,
            why->expected);
    bel__cli_point_at((struct bel_view){text, strlen(text)}, why->position);
    return CLI_USAGE;
}

int bel__cli_refuse(const char *what, const char *text, const struct bel_text_error *why)
{
    return bel__cli_refuse_value("", what, text, why);
}
