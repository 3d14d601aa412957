"""Tensors whose classes take over operations, in ``__torch_function__`` or ``__torch_dispatch__``."""
