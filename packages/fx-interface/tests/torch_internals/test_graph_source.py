"""torch's text of a graph's code goes with the code."""

from __future__ import annotations

import gc
import linecache

import torch
from torch.fx import graph_module as torch_graphs
from torch.fx import symbolic_trace

from fx_interface.torch_internals.graph_source import release_source


def test_the_text_goes_with_the_code() -> None:
    module = symbolic_trace(lambda x: x + 1)
    name = type(module).forward.__code__.co_filename
    release_source(module)
    gc.collect()
    assert module(torch.ones(1)).item() == 2
    assert name in torch_graphs._loader.eval_cache
    linecache.getlines(name)
    del module
    gc.collect()
    assert name not in torch_graphs._loader.eval_cache
    assert name not in linecache.cache
