/* SPDX-License-Identifier: MIT */

/*
 * The distance of two words is the number of letters to insert, delete or replace, and of
 * neighbours to exchange (optimal string alignment). A short word may have one mistake, a longer
 * word one for every three letters. A name that begins with the word counts as one mistake.
 */
#include "core/similar.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static int lower(char byte)
{
    return tolower((unsigned char)byte);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool begins_with(const char *text, const char *word)
{
    size_t i = 0;
    while (word[i] != '\0' && lower(word[i]) == lower(text[i])) {
        i++;
    }
    return word[i] == '\0';
}

/* Returns the number of letters of a word that the other has in another case at the same place. */
static unsigned cases_of(const char *a, const char *b)
{
    unsigned count = 0;
    for (size_t i = 0; a[i] != '\0' && b[i] != '\0'; i++) {
        count += a[i] != b[i] && lower(a[i]) == lower(b[i]);
    }
    return count;
}

/* Returns the distance of two words of at most BEL_SIMILAR_BYTES_MAX bytes. */
static unsigned distance_of(const char *a, const char *b)
{
    unsigned rows[3][BEL_SIMILAR_BYTES_MAX + 1];
    size_t a_bytes = strlen(a), b_bytes = strlen(b);
    for (size_t j = 0; j <= b_bytes; j++) {
        rows[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_bytes; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_bytes; j++) {
            bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !is_same);
            bool is_swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                              lower(a[i - 2]) == lower(b[j - 1]);
            if (is_swapped) row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_bytes % 3][b_bytes];
}

void bel__similar_begin(struct bel_similar *similar, const char *word)
{
    size_t bytes = strlen(word);
    *similar = (struct bel_similar){.word = word};
    if (bytes == 0 || bytes > BEL_SIMILAR_BYTES_MAX) return; /* nothing has a distance below 0 */
    similar->distance = 1 + (unsigned)(bytes > 3 ? bytes / 3 : bytes / 2);
}

void bel__similar_offer(struct bel_similar *similar, const char *text, const char *name)
{
    if (similar->distance == 0 || strlen(text) > BEL_SIMILAR_BYTES_MAX) return;
    if (strcmp(similar->word, name) == 0) return; /* it is what was typed */
    unsigned distance = distance_of(similar->word, text);
    bool is_begun = strlen(similar->word) >= 3 && begins_with(text, similar->word);
    if (is_begun && distance > 1) distance = 1;
    unsigned cases = cases_of(similar->word, text);
    bool is_tie = similar->has_name && distance == similar->distance && cases < similar->cases;
    if (distance >= similar->distance && !is_tie) return;
    similar->distance = distance;
    similar->cases = cases;
    similar->has_name = true;
    similar->name = name;
}
