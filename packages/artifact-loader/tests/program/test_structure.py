"""Arguments taken apart and results put together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fxstack_artifact import ArtifactError, ContractError
from fxstack_artifact.program.parameters import Parameters
from fxstack_artifact.program.structure import Record, leaf_names, maker, taker

LEAF: dict[str, Any] = {"leaf": None}


def leaves(node: Any, value: Any) -> list[Any]:
    found: list[Any] = []
    taker(node, "x")(value, found)
    return found


def test_leaves_come_in_the_order_of_the_description() -> None:
    node = {
        "tuple": [
            LEAF,
            {"list": [LEAF]},
            {"dict": [["b", LEAF], ["a", LEAF]]},
            {"record": ["P", [["f", LEAF]]]},
        ]
    }
    value = (1, [2], {"a": 4, "b": 3}, SimpleNamespace(f=5))
    assert leaves(node, value) == [1, 2, 3, 4, 5]
    assert leaf_names(node, "x") == ["x[0]", "x[1][0]", "x[2]['b']", "x[2]['a']", "x[3].f"]


@pytest.mark.parametrize(
    "node, value, words",
    [
        ({"tuple": [LEAF]}, [1], "x is a list, the artifact takes a tuple of 1"),
        ({"list": [LEAF]}, [1, 2], "the artifact takes a list of 1"),
        ({"dict": [["k", LEAF]]}, {"j": 1}, "a dict with the keys"),
        ({"record": ["P", [["f", LEAF]]]}, 3, "a P with the field f"),
        ({"const": 1}, True, "x is True, the artifact was made for 1"),
        ({"const": None}, 1, "made for None"),
    ],
)
def test_other_structures_are_refused(node: Any, value: Any, words: str) -> None:
    with pytest.raises(ContractError) as caught:
        leaves(node, value)
    assert words in str(caught.value)


def test_results_are_put_together() -> None:
    node = {
        "dict": [
            ["r", {"record": ["m.Out", [["a", {"leaf": 1}], ["b", {"const": None}]]]}],
            ["t", {"tuple": [{"leaf": 0}]}],
        ]
    }
    made = maker(node)(["zero", "one"])
    assert made["t"] == ("zero",)
    record = made["r"]
    assert isinstance(record, Record)
    assert (record.a, record["a"], record[0], record.b) == ("one", "one", "one", None)
    assert record.to_tuple() == ("one",)
    assert repr(record) == "m.Out(a='one', b=None)"
    with pytest.raises(AttributeError, match=r"m\.Out has no part 'c'"):
        _ = record.c


@pytest.mark.parametrize("node", [None, [], {}, {"leaf": 0, "const": 1}, {"call": "os.system"}])
def test_other_descriptions_are_refused(node: Any) -> None:
    with pytest.raises(ArtifactError, match="FXA108"):
        taker(node, "x")
    with pytest.raises(ArtifactError, match="FXA108"):
        maker(node)


def parameters() -> Parameters:
    return Parameters(
        [
            {"name": "x", "kind": "positional", "node": LEAF},
            {"name": "y", "kind": "either", "node": {"list": [LEAF]}},
            {"name": "flag", "kind": "either", "node": {"const": False}, "optional": True},
            {"name": "z", "kind": "keyword", "node": LEAF},
        ]
    )


def test_calls_are_bound_by_position_and_name() -> None:
    bound = parameters()
    for args, kwargs in (((1, [2]), {"z": 3}), ((1,), {"z": 3, "y": [2]}), ((1, [2], False), {"z": 3})):
        assert list(bound.leaves(args, kwargs)) == [1, 2, 3]
    assert bound.leaf_names == ["x", "y[0]", "z"]


@pytest.mark.parametrize(
    "args, kwargs, words",
    [
        ((1, [2]), {}, "the argument z is missing"),
        ((1, [2], False, 3), {}, "4 positional arguments were given, the artifact takes 3"),
        ((1, [2]), {"z": 3, "q": 4}, "the argument q was not there"),
        ((1, [2]), {"z": 3, "y": [4]}, "the argument y was given twice"),
        ((), {"x": 1, "y": [2], "z": 3}, "the argument x was not there"),
        ((1, [2], True), {"z": 3}, "flag is True"),
    ],
)
def test_calls_that_cannot_be_bound(args: Any, kwargs: Any, words: str) -> None:
    with pytest.raises(ContractError) as caught:
        parameters().leaves(args, kwargs)
    assert words in str(caught.value)
