/* SPDX-License-Identifier: MIT */

/*
 * A topic's row has the settings that differ from the default, as text:
 *
 *     version | name | paused | name, text | name, text | ...
 *
 * So rows are self-describing, and a new setting changes no existing row. A topic with only
 * defaults has no settings of its own in memory either.
 */
#include "engine/state/topic_row.h"

#include "belfry/duration.h"
#include "engine/rows/encoding.h"

#include <assert.h>
#include <string.h>

enum {
    VERSION = 1,
    NAME_BYTES_MAX = 32, /* of a setting */
};

enum {
    ROW_BYTES_MAX = (int)BEL_TOPIC_BYTES_MAX + 2 * ((int)BEL_SETTING_TEXT_MAX + NAME_BYTES_MAX) +
                    ((int)BEL_SETTINGS - 2) * ((int)BEL_DURATION_BYTES + NAME_BYTES_MAX) +
                    (2 * (int)BEL_SETTINGS + 4) * (int)BEL_ENCODED_NUMBER_BYTES_MAX,
};
static_assert(ROW_BYTES_MAX <= (int)BEL_TOPIC_ROW_BYTES, "a row has room for all settings");

/* Prints a setting. Returns whether it differs from the default. */
static bool print_change(const struct bel_settings *settings, unsigned index,
                         char out[BEL_SETTING_TEXT_MAX], struct bel_view *out_text)
{
    char normal[BEL_SETTING_TEXT_MAX];
    size_t normal_bytes = bel__setting_print(bel__settings_default(), index, normal);
    size_t bytes = bel__setting_print(settings, index, out);
    *out_text = (struct bel_view){out, bytes};
    return bytes != normal_bytes || memcmp(out, normal, bytes) != 0;
}

size_t bel__topic_row_write(const struct bel_topic_row *row, uint8_t out[BEL_TOPIC_ROW_BYTES])
{
    struct bel_row_writer writer = {.at = out, .end = out + BEL_TOPIC_ROW_BYTES};
    bel__write_number(&writer, VERSION);
    bel__write_view(&writer, row->name);
    bel__write_number(&writer, row->is_paused);
    for (unsigned i = 0; i < BEL_SETTINGS; i++) {
        char text[BEL_SETTING_TEXT_MAX];
        struct bel_view value;
        if (!print_change(&row->settings, i, text, &value)) continue;
        bel__write_view(&writer, bel__setting_name(i));
        bel__write_view(&writer, value);
    }
    return (size_t)(writer.at - out);
}

/* Reads version and name. */
static int read_name(struct bel_row_reader *reader, struct bel_view *out)
{
    uint64_t version = bel__read_number(reader);
    if (!reader->bad && version > VERSION) return BEL_EUNSUPPORTED;
    *out = bel__read_view(reader);
    if (reader->bad || version != VERSION) return BEL_ECORRUPT;
    return bel_topic_is_valid(*out) || bel__topic_is_own(*out) ? 0 : BEL_ECORRUPT;
}

static int read_changes(struct bel_row_reader *reader, struct bel_settings *settings)
{
    while (reader->at < reader->end) {
        struct bel_setting setting = {.name = bel__read_view(reader)};
        char why[BEL_EXPECTED_BYTES];
        setting.value = bel__read_view(reader);
        if (reader->bad) return BEL_ECORRUPT;
        if (!bel__setting_is_known(setting.name)) return BEL_EUNSUPPORTED;
        if (bel__setting_set(settings, &setting, why, sizeof why) != 0) return BEL_ECORRUPT;
    }
    return 0;
}

int bel__topic_row_read(struct bel_view row, struct bel_topic_row *out)
{
    struct bel_row_reader reader = bel__reader_of(row);
    int err = read_name(&reader, &out->name);
    if (err) return err;
    uint64_t is_paused = bel__read_number(&reader);
    if (reader.bad || is_paused > 1) return BEL_ECORRUPT;
    out->is_paused = is_paused == 1;
    out->has_settings = reader.at < reader.end;
    out->settings = *bel__settings_default();
    return read_changes(&reader, &out->settings);
}
