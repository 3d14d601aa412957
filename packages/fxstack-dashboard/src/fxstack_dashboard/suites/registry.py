"""The suites by name, and suites that a user writes in a Python file.

A file defines ``WORKLOADS``, a list of ``fxstack_dashboard.Workload``, or of tuples ``(name, make, inputs)``; and, if
it wishes, ``SUITE``, the name under which its results are kept (else the file's).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.suites import image_models, tiny, transformers_models
from fxstack_dashboard.suites.importing import import_torchvision
from fxstack_dashboard.suites.workload import PHASES, Workload


class Suite(NamedTuple):
    """A named table of models. ``requires``: the module that they are from, and which may not be installed."""

    name: str
    what: str
    requires: str | None
    workloads: Callable[[], list[Workload]]

    def missing(self) -> str | None:
        """Why the suite cannot be used here, with what to install; None: it can."""
        if self.requires is None:
            return None
        try:
            if self.requires in _NEED_TORCHVISION and importlib.util.find_spec(self.requires) is not None:
                import_torchvision()
            importlib.import_module(self.requires)
        except ModuleNotFoundError as error:
            if error.name == self.requires:
                return f"it needs {self.requires}: pip install 'fxstack-dashboard[{self.requires}]'"
            return f"{self.requires} does not load here: {error}"
        except Exception as error:  # a build for another torch fails in its own way
            return f"{self.requires} does not load here: {type(error).__name__}: {error}"
        return None


_NEED_TORCHVISION = ("timm", "torchvision")

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("tiny", "three small models that need nothing else", None, tiny.workloads),
        Suite(
            "transformers",
            "small configurations of Hugging Face transformers",
            "transformers",
            transformers_models.workloads,
        ),
        Suite("timm", "image classifiers of timm", "timm", image_models.timm_workloads),
        Suite(
            "torchvision",
            "image classifiers of torchvision",
            "torchvision",
            image_models.torchvision_workloads,
        ),
    )
}
"""Those of this package."""


def load_suite(name: str) -> tuple[str, dict[str, Workload]]:
    """The name under which results are kept, and the models by name, of a suite or of a file of a user's.

    DashboardError DSH101: no such suite or file; DSH102: a library is missing; DSH103: the file does not follow the
    protocol.
    """
    if name in SUITES:
        suite = SUITES[name]
        why = suite.missing()
        if why is not None:
            raise DashboardError("DSH102", f"the suite {name!r} cannot be used: {why}")
        return name, {one.name: one for one in suite.workloads()}
    if name.endswith(".py"):
        return _of_file(Path(name))
    raise DashboardError(
        "DSH101",
        f"no suite is named {name!r}",
        action=f"use one of {', '.join(SUITES)}, or the path of a .py file",
    )


def _of_file(path: Path) -> tuple[str, dict[str, Workload]]:
    if not path.is_file():
        raise DashboardError("DSH101", f"there is no file {str(path)!r}")
    try:
        found = _executed(path)
    except Exception as error:
        raise DashboardError(
            "DSH103", f"{path.name} raised while it was loaded: {type(error).__name__}: {error}"
        ) from error
    listed = found.get("WORKLOADS")
    if not isinstance(listed, Iterable) or isinstance(listed, (str, bytes)):
        raise DashboardError(
            "DSH103", f"{path.name} defines no WORKLOADS", action="see docs/dashboard.md, 'Your own models'"
        )
    made = [_workload(one, path) for one in listed]
    if len({one.name for one in made}) < len(made):
        raise DashboardError("DSH103", f"two workloads of {path.name} have one name")
    return str(found.get("SUITE", path.stem)), {one.name: one for one in made}


def _executed(path: Path) -> dict[str, Any]:
    """The names of a file that is run as a module, which may import those beside it."""
    name = f"dashboard_suite_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(path.resolve().parent))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def _workload(given: object, path: Path) -> Workload:
    made = given if isinstance(given, Workload) else None
    if made is None and isinstance(given, tuple) and len(given) == 3:
        made = Workload(*given)
    if made is not None and isinstance(made.name, str) and callable(made.make) and callable(made.inputs):
        if made.phases and set(made.phases) <= set(PHASES):
            return made
        raise DashboardError(
            "DSH103", f"phases of {made.name!r} in {path.name} are not among {', '.join(PHASES)}"
        )
    raise DashboardError(
        "DSH103", f"{given!r} in WORKLOADS of {path.name} is no workload", action="use (name, make, inputs)"
    )
