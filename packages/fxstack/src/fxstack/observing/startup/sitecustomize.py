# mypy: ignore-errors
"""What ``site`` imports first in each Python that an observed program starts, because this folder is in PYTHONPATH.

When such a process has imported torch, ``fxstack.observing.processes`` records what it compiles. One that never imports
torch pays for a small module; the folder is taken off ``sys.path``, and a ``sitecustomize`` that is found without it is
imported too. Nothing is imported for types: each Python that is started pays for it.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


class _TorchFinder:
    """The first of the finders; it finds torch as the others do, and only that."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _TorchLoader(spec.loader)
                return spec
        return None


class _TorchLoader:
    """Loads torch as the loader that was found does, which is also the one that the module shows."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            from fxstack.observing.processes import observe_this_process
        except ImportError:  # another Python's packages: it runs as it would without fxstack
            return
        observe_this_process()


def _import_the_next() -> None:
    this = sys.modules.pop(__name__, None)
    try:
        __import__(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        if this is not None:
            sys.modules.setdefault(__name__, this)


if __name__ == "sitecustomize":  # as ``site`` imports it
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    sys.meta_path.insert(0, _TorchFinder())
    _import_the_next()
