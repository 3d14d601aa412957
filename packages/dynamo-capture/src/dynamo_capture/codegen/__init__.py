"""From a finished trace to replacement bytecode: the graph's call, the values it leads to, the effects."""
