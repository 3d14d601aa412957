"""Conditions: relations between sizes, joined by and, or and not."""

from __future__ import annotations

from typing import TypeAlias

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols.env import ShapeEnv
from fx_interface.symbols.relations import Relation


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of these conditions holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these conditions holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    part: Condition


Condition: TypeAlias = bool | Relation | AllOf | AnyOf | Not


def decide(condition: Condition, env: ShapeEnv) -> bool:
    """The answer for this compilation; what it rests on is recorded in ``env``."""
    match condition:
        case bool():
            return condition
        case Relation():
            return env.decide(condition)
        case AllOf(parts):
            return all(decide(part, env) for part in parts)
        case AnyOf(parts):
            return any(decide(part, env) for part in parts)
        case Not(part):
            return not decide(part, env)


def known(condition: Condition, env: ShapeEnv) -> bool | None:
    """The answer where ranges settle it, else None. Records nothing."""
    match condition:
        case bool():
            return condition
        case Relation():
            return env.known(condition)
        case AllOf(parts):
            answers = [known(part, env) for part in parts]
            return False if False in answers else None if None in answers else True
        case AnyOf(parts):
            answers = [known(part, env) for part in parts]
            return True if True in answers else None if None in answers else False
        case Not(part):
            answer = known(part, env)
            return None if answer is None else not answer


def expect(condition: Condition, env: ShapeEnv) -> bool:
    """As ``decide``, but what only data can tell is taken to hold and left to a check at run time."""
    match condition:
        case Relation():
            return env.expect(condition)
        case AllOf(parts):
            return all(expect(part, env) for part in parts)
    return decide(condition, env)


def hinted(condition: Condition, env: ShapeEnv) -> bool:
    """Whether no symbol in it comes from data."""
    match condition:
        case Relation():
            return all(env.symbols[atom].hint is not None for atom in condition.symbols)
        case AllOf(parts) | AnyOf(parts):
            return all(hinted(part, env) for part in parts)
        case Not(part):
            return hinted(part, env)
    return True
