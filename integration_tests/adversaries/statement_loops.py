"""Heads of loops over data, for ``statement_kinds``; the names in braces are filled in.

A loop variable may be an integer, a tensor, a tuple or an iterator; ``{i}`` is a number where ``COUNTS_ON`` says so.
"""

from __future__ import annotations

HEADS = """
for {i} in {items}:
for {i} in range({n}):
for {i}, {j} in enumerate({items}):
for {i} in {q}:
for {j}, {i} in enumerate({q}):
for {i}, {j} in zip({items}, {items2}):
for {i}, {j} in zip({q}, {items}):
for {i}, {j} in itertools.groupby({items}):
for {i}, {j} in itertools.groupby(enumerate({items}), lambda p: p[1]):
for {i} in itertools.chain({items}, {items2}):
for {i} in itertools.islice({items}, 1, 3):
for {i} in itertools.accumulate({items}):
for {i}, {j} in itertools.product({items}[:2], range(2)):
for {i}, {j} in itertools.pairwise({items}):
for {i} in map(lambda p: p * 2, {items}):
for {i} in filter(None, {items}):
for {i} in filter(lambda p: brk(p) != 1, {items}):
for {i} in reversed({items}):
for {i}, {j} in sorted(COUNTS.items(), key=repr):
for {i}, {j} in list(TABLE.items()):
for {i} in itertools.takewhile(lambda p: p < 2, {items}):
for {i} in (p + 1 for p in {items}):
for {i} in (brk(p) for p in {items}):
for {i}, {j} in itertools.zip_longest({items}, {items2}, fillvalue=0):
for {i} in map(brk, {items}):
for {i} in iter({items}):
for {i} in {t}.unbind(0):
for {i} in {q}.split(2):
for {i} in dict.fromkeys({items}):
for {i} in {{*{items}}}:
for {i}, *{j} in zip({items}, {items2}, {items}):
""".strip().splitlines()

COUNTS_ON = (" in range", "reversed", "islice")
