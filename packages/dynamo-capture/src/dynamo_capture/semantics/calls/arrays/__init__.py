"""numpy inside of a program: arrays as nodes of the graph, known ones, functions and methods."""
