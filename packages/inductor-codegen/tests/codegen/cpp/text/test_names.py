"""Sizes that follow from a kernel's parameters are written once."""

from fx_interface.symbols import symbol
from inductor_codegen.codegen.cpp.text.names import Names, may_be_early

S0, S1 = symbol("s0"), symbol("s1")


def test_numbers_and_parameters_need_no_name():
    names = Names()
    assert [names.size(3), names.size(-3), names.size(S0)] == ["3", "(-3)", "s0"]
    assert not names.declarations()


def test_what_sizes_have_in_common_is_computed_once():
    names = Names()
    half = (S0 + 1) // 2
    assert names.size(half * 64) == names.size(half * 64)
    names.size(half * half + 1)
    assert names.declarations() == [
        "const int64_t n0 = (s0 + 1);",
        "const int64_t n1 = size_floordiv(n0, 2);",
        "const int64_t n2 = 64 * n1;",
        "const int64_t n3 = (n1 * n1 + 1);",
    ]


def test_a_division_that_may_fault_stays_where_it_is_needed():
    names = Names()
    assert not may_be_early(S0 // S1)
    assert names.size((S0 // S1) * 2) == "2 * size_floordiv(s0, s1)"
    assert not names.declarations()


def test_names_differ():
    names = Names()
    assert [names.new("t"), names.new("g"), names.new("t")] == ["t1", "g2", "t3"]
