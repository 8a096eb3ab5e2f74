/* Lists that grow one entry at a time. */
#include "base/list.h"
#include "tests/unit/base_check.h"

struct wide {
    double a[3];
    int tag;
};

static void an_entry_is_zero_and_in_its_place(void **state)
{
    (void)state;
    struct wide *list = NULL;
    int count = 0;
    for (int i = 0; i < 1000; i++) {
        struct wide *added = K25_LIST_ADD(list, count);
        assert_non_null(added);
        assert_int_equal(count, i + 1);
        assert_ptr_equal(added, &list[i]); /* the entry, not the list */
        assert_int_equal(added->tag, 0);
        assert_true(added->a[0] == 0 && added->a[2] == 0);
        *added = (struct wide){{i, i, i}, i};
    }
    for (int i = 0; i < 1000; i++)
        assert_true(list[i].tag == i && list[i].a[1] == i);
    free(list);
}

/* Entries taken off the end and added again, at every border between two sizes; the room must follow. */
static void the_end_can_be_taken_off(void **state)
{
    (void)state;
    for (size_t top = 1; top < 140; top++) {
        for (size_t kept = 0; kept < top; kept++) {
            size_t *list = NULL, count = 0;
            while (count < top) {
                size_t *added = K25_LIST_ADD(list, count);
                assert_non_null(added);
                *added = count;
            }
            count = kept;
            while (count < top + 1) {
                size_t *added = K25_LIST_ADD(list, count);
                assert_non_null(added);
                assert_int_equal(*added, 0);
                *added = count;
            }
            for (size_t i = 0; i < count; i++)
                assert_int_equal(list[i], i + 1);
            free(list);
        }
    }
}

static void too_many_is_no_overflow(void **state)
{
    (void)state;
    assert_null(k25_list_grow(NULL, SIZE_MAX / 8 + 1, 64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_zero_and_in_its_place),
        cmocka_unit_test(the_end_can_be_taken_off),
        cmocka_unit_test(too_many_is_no_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
