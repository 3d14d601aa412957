"""Building the native evaluator of a guard set, and the native fetcher of a list of sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fx_guards import _native
from fx_guards.lower import Lowering, NodeTuple, derived_access
from fx_guards.torch_bridge import calibration, use_dict_versions_if_sound
from fx_guards.tree import GuardSet, TreeNode
from fx_interface.guard import Guard
from fx_interface.source import Source

SKIPS_BY_DICT_VERSION = use_dict_versions_if_sound()
"""Whether unchanged dicts are recognised, which makes most of a check unnecessary."""


def build(
    guards: Iterable[Guard] | GuardSet, *, varnames: Sequence[str] = (), freevars: Sequence[str] = ()
) -> _native.Evaluator:
    """The native evaluator. ``varnames`` and ``freevars`` are the code's ``co_varnames`` and ``co_freevars``.

    ``evaluator.check(scope)`` takes a Scope; ``evaluator.check_call(function, *slots)`` and the C entry
    (csrc/guards_api.h) take a frame's argument slots. ``evaluator.failed`` is then the index, in
    ``GuardSet(guards).guards``, of a guard that did not hold, or -1 if a value could not be read.
    """
    calibration()
    guard_set = guards if isinstance(guards, GuardSet) else GuardSet(guards)
    return _native.Evaluator(*Lowering(varnames, freevars).evaluator(guard_set))


def build_fetcher(sources: Iterable[Source]) -> _native.Fetcher:
    """The native fetcher: called with the values of ``fetcher.roots``, returns the sources' values as a tuple.

    Raises what the reads raise.
    """
    calibration()
    wanted = tuple(sources)
    tree = GuardSet(())
    places = [tree.add_slot(source) for source in wanted]
    roots = tuple([node.source for node in tree.roots])
    nodes = tuple([_fetch_node(node, root=True) for node in tree.roots])
    if places != list(range(len(wanted))):
        raise ValueError("a fetcher's sources must be distinct")
    return _native.Fetcher(nodes, len(wanted), roots)


def _fetch_node(node: TreeNode, root: bool = False) -> NodeTuple:
    access, key, index = (0, None, 0) if root else derived_access(node.source)
    children = tuple(map(_fetch_node, node.children))
    return (access, key, index, node.slot, False, (), children, len(children))
