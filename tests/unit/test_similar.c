/* SPDX-License-Identifier: MIT */

/* Which of the verbs of the command line a mistyped word means. */
#include "core/similar.h"

#include "../check.h"

#include <string.h>

static const char *const names[] = {"serve",  "doctor", "schedule", "cancel", "reschedule", "get",
                                    "list",   "claim",  "ack",      "fail",   "topics",     "pause",
                                    "resume", "agenda", "work",     "next",   "top",        NULL};

static const char *guess(const char *word)
{
    struct bel_similar similar;
    bel__similar_begin(&similar, word);
    for (unsigned i = 0; names[i] != NULL; i++) {
        bel__similar_offer(&similar, names[i], names[i]);
    }
    return similar.name != NULL ? similar.name : "";
}

static void a_mistyped_word_finds_its_name(void)
{
    static const char *const rows[][2] = {
        {"schedul", "schedule"},     {"shcedule", "schedule"}, {"Schedule", "schedule"},
        {"scheduel", "schedule"},    {"sched", "schedule"},    {"cancle", "cancel"},
        {"agneda", "agenda"},        {"lst", "list"},          {"topic", "topics"},
        {"reshcedul", "reschedule"}, {"gte", "get"},           {"akc", "ack"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_NOTE("%s: %s", rows[i][0], guess(rows[i][0]));
        CHECK(strcmp(guess(rows[i][0]), rows[i][1]) == 0);
    }
}

static void other_words_find_nothing(void)
{
    static const char *const words[] = {"", "x", "ab", "frobnicate", "hello", "delete", "zzzzzzzz"};
    char longest[BEL_SIMILAR_BYTES_MAX + 2];
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        CHECK_NOTE("%s: %s", words[i], guess(words[i]));
        CHECK(strcmp(guess(words[i]), "") == 0);
    }
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    CHECK(strcmp(guess(longest), "") == 0);
}

static void a_word_never_means_itself(void)
{
    struct bel_similar similar;
    bel__similar_begin(&similar, "get");
    bel__similar_offer(&similar, "get", "get");
    CHECK(similar.name == NULL);
    bel__similar_offer(&similar, "Get", "Get");
    CHECK(strcmp(similar.name, "Get") == 0);
}

static void of_two_cases_the_nearer_one_is_meant(void)
{
    static const char *const both[][2] = {{"Mail", "mail"}, {"mail", "Mail"}};
    for (unsigned i = 0; i < 2; i++) {
        struct bel_similar similar;
        bel__similar_begin(&similar, "maill");
        bel__similar_offer(&similar, both[i][0], both[i][0]);
        bel__similar_offer(&similar, both[i][1], both[i][1]);
        CHECK(strcmp(similar.name, "mail") == 0);
    }
}

static void names_of_any_length_can_be_offered(void)
{
    char word[BEL_SIMILAR_BYTES_MAX + 1], name[BEL_SIMILAR_BYTES_MAX + 2];
    struct bel_similar similar;
    memset(word, 'x', sizeof word);
    memset(name, 'x', sizeof name);
    word[sizeof word - 1] = name[sizeof name - 1] = '\0';
    bel__similar_begin(&similar, word);
    bel__similar_offer(&similar, name, name); /* too long to compare */
    CHECK(similar.name == NULL);
    bel__similar_offer(&similar, name + 1, name);
    CHECK(similar.name == name);
}

int main(void)
{
    RUN(a_mistyped_word_finds_its_name);
    RUN(other_words_find_nothing);
    RUN(a_word_never_means_itself);
    RUN(of_two_cases_the_nearer_one_is_meant);
    RUN(names_of_any_length_can_be_offered);
    return 0;
}
