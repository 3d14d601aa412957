"""A loop over places where a mask is true, of which each round would do nothing at another place: all are gone over."""

from __future__ import annotations

from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.skipping import left_as_it_is, run_branch, stored_names
from dynamo_capture.semantics.regions.steered.empty_branches import written_by_rows
from dynamo_capture.semantics.regions.steered.places import PlacesIterator, places_of
from dynamo_capture.values import NONE, Value


def over_all_places(frame: Frame, step: Step, owner: Value) -> PlacesIterator | None:
    """The iterator of a loop over ``owner``, behind ``step``, that goes over all places; None where it is not so."""
    loop = frame.steps[step.index + 1]
    if loop.opname != "FOR_ITER" or frame.is_generator:
        return None
    places = places_of(frame.tx, owner)
    names = None if places is None else stored_names(frame, loop.index + 1, loop.index, loop.handler)
    if places is None or names is None:
        return None
    stack = list(frame.stack)
    written: list[list[int]] = []
    for given in places.given:

        def run(item: Value = given) -> None:
            run_branch(frame, [*stack, NONE], [item], loop.index + 1, loop.index, names)

        with left_as_it_is(frame):
            found = written_by_rows(frame.tx, run)
        if found is None:
            return None
        written.append(found)
    return PlacesIterator(places, written, places.are_true(frame.tx))
