"""Who is asked about two values, by their kinds."""

from __future__ import annotations

from dynamo_capture.semantics.operators.pairs import Pairs
from dynamo_capture.values import Const, ListValue, SequenceValue, TupleValue


def test_the_first_declared_for_the_kinds_of_both_answers(tx):
    pairs = Pairs()
    asked = []

    def answering(name, found):
        def answer(tx, operator, lhs, rhs):
            asked.append(name)
            return found

        return answer

    pairs.both(SequenceValue)(answering("both", None))
    pairs.left(ListValue)(answering("left", Const("left")))
    pairs.either(TupleValue)(answering("either", Const("either")))
    items, pair, one = ListValue([]), TupleValue([]), Const(1)

    def found(lhs, rhs):
        asked.clear()
        answer = pairs.answer(tx, "+", lhs, rhs)
        return None if answer is None else answer.as_constant(), list(asked)

    for _ in range(2):  # what is asked about two classes is kept
        assert found(items, pair) == ("left", ["both", "left"])
        assert found(pair, items) == ("either", ["both", "either"])
        assert found(one, pair) == ("either", ["either"])
        assert found(one, items) == (None, [])
