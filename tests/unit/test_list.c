/* SPDX-License-Identifier: MIT */
#include "core/list.h"

#include "../check.h"

struct letter {
    char name;
    struct bel_link link;
};

static struct letter letters[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}};
static struct bel_link *const a = &letters[0].link, *const b = &letters[1].link,
                              *const c = &letters[2].link, *const d = &letters[3].link;
static struct bel_list list, other;

static void setup(void)
{
    bel__list_init(&list);
    bel__list_init(&other);
    for (unsigned i = 0; i < 4; i++) {
        letters[i].link = (struct bel_link){NULL, NULL};
    }
}

/* Checks that the list reads as `want`, forwards and backwards. */
static void check_list(struct bel_list *l, const char *want)
{
    size_t count = 0;
    for (struct bel_link *link = bel__list_first(l); link; link = bel__list_next(l, link)) {
        CHECK(BEL_CONTAINER_OF(link, struct letter, link)->name == want[count]);
        CHECK(link->next->prev == link);
        CHECK(link->prev->next == link);
        count++;
    }
    CHECK(want[count] == '\0');
    CHECK(bel__list_is_empty(l) == (count == 0));
}

static void a_new_list_is_empty(void)
{
    setup();
    check_list(&list, "");
    CHECK(bel__list_first(&list) == NULL);
    CHECK(bel__list_take_first(&list) == NULL);
}

static void links_can_join_anywhere(void)
{
    setup();
    bel__list_append(&list, b);
    bel__link_insert_before(b, a);
    bel__link_insert_after(b, d);
    bel__link_insert_before(d, c);
    check_list(&list, "abcd");
    CHECK(bel__list_first(&list) == a);
}

static void links_can_leave_from_anywhere_and_know_it(void)
{
    setup();
    bel__list_append(&list, a);
    bel__list_append(&list, b);
    bel__list_append(&list, c);
    bel__link_remove(b);
    check_list(&list, "ac");
    CHECK(!bel__link_is_linked(b));
    CHECK(bel__link_is_linked(c));
    bel__link_remove(a);
    bel__link_remove(c);
    check_list(&list, "");
}

static void a_link_that_left_may_join_again(void)
{
    setup();
    bel__list_append(&list, a);
    bel__list_append(&list, b);
    bel__link_remove(a);
    bel__list_append(&list, a);
    check_list(&list, "ba");
}

static void a_list_is_a_queue(void)
{
    setup();
    bel__list_append(&list, a);
    bel__list_append(&list, b);
    CHECK(bel__list_take_first(&list) == a);
    bel__list_append(&list, c);
    CHECK(bel__list_take_first(&list) == b);
    CHECK(bel__list_take_first(&list) == c);
    CHECK(bel__list_take_first(&list) == NULL);
}

static void a_walk_may_remove_what_it_visits(void)
{
    setup();
    bel__list_append(&list, a);
    bel__list_append(&list, b);
    bel__list_append(&list, c);
    for (struct bel_link *link = bel__list_first(&list), *next; link != NULL; link = next) {
        next = bel__list_next(&list, link);
        if (link != b) bel__link_remove(link);
    }
    check_list(&list, "b");
}

static void a_list_moves_behind_another(void)
{
    setup();
    bel__list_append(&list, a);
    bel__list_append(&other, b);
    bel__list_append(&other, c);
    bel__list_splice(&list, &other);
    check_list(&list, "abc");
    check_list(&other, "");
    bel__list_splice(&list, &other); /* nothing to move */
    check_list(&list, "abc");
    bel__list_splice(&other, &list); /* to an empty one */
    check_list(&other, "abc");
    check_list(&list, "");
}

int main(void)
{
    RUN(a_new_list_is_empty);
    RUN(links_can_join_anywhere);
    RUN(links_can_leave_from_anywhere_and_know_it);
    RUN(a_link_that_left_may_join_again);
    RUN(a_list_is_a_queue);
    RUN(a_walk_may_remove_what_it_visits);
    RUN(a_list_moves_behind_another);
    return 0;
}
