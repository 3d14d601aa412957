"""Compiling and running from many threads, after a fork, and at the end of the stack."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch

from dynamo_capture import is_compiling, optimize, run_graph

X = torch.arange(12.0).reshape(4, 3)


def together(count, work):
    """Run ``work(i)`` in ``count`` threads that start at once; what they raised is raised here."""
    gate, errors = threading.Barrier(count), []

    def run(i):
        try:
            gate.wait(30)
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def slow_backend(graphs):
    def backend(module, inputs):
        graphs.append(module)
        time.sleep(0.05)
        return module.forward

    return backend


def test_one_thread_compiles_and_the_others_wait():
    graphs, paths = [], []
    fast = optimize(slow_backend(graphs))(lambda x: x + (1 if is_compiling() else 2))
    together(8, lambda i: paths.append(fast(X)[0, 0].item()))
    assert paths == [1.0] * 8
    assert len(graphs) == 1


def test_one_thread_compiles_and_the_others_run_eagerly():
    compiling, done = threading.Event(), threading.Event()

    def backend(module, inputs):
        compiling.set()
        assert done.wait(30)
        return module.forward

    fast = optimize(backend, concurrent="eager")(lambda x: x + (1 if is_compiling() else 2))

    def work(i):
        if i == 0:
            assert torch.equal(fast(X), X + 1)
            return
        assert compiling.wait(30)
        assert torch.equal(fast(X), X + 2)
        done.set()

    together(2, work)
    assert torch.equal(fast(X), X + 1)


def test_a_compilation_that_fails_leaves_the_others_alone():
    started = threading.Event()

    def backend(module, inputs):
        started.set()
        time.sleep(0.05)
        raise RuntimeError("no compiler today")

    fast = optimize(backend)(lambda x: x + 1)
    results = []

    def work(i):
        if i:
            assert started.wait(30)
        try:
            results.append(torch.equal(fast(X), X + 1))
        except Exception as error:
            results.append(type(error).__name__)

    together(3, work)
    assert set(results) <= {True, "BackendError"}
    assert "BackendError" in results


def test_many_functions_and_options_at_once():
    def make(i):
        def f(x, n):
            y = x * (i + 1)
            for _ in range(n):
                y = torch.sin(y) + y.sum().tolist() * 0
            return y, i

        return f, optimize(run_graph, dynamic=[None, True, False][i % 3])

    pairs = [make(i) for i in range(6)]

    def work(i):
        f, optimizer = pairs[i]
        fast = optimizer(f)
        for rows in (4, 3, 2, 4):
            for n in (0, 1, 2):
                expected, number = f(X[:rows], n)
                actual, same = fast(X[:rows], n)
                assert torch.equal(expected, actual)
                assert number == same == i

    together(6, work)


def test_one_function_on_many_inputs():
    def inner(x, log):
        log.append("in")
        n = x.sum().tolist()
        log.append(n)
        return x + n

    def f(x, scale):
        log = []
        try:
            y = inner(x * scale, log)
            if y.sum() < 0:
                raise ValueError("negative")
        except ValueError:
            log.append("caught")
            y = x
        return y, log

    fast = optimize(run_graph)(f)

    def work(i):
        for step in range(12):
            x = X[: 1 + (i + step) % 4] * (1 if step % 3 else -1)
            for scale in (1, 2, i + 3):
                expected, actual = f(x, scale), fast(x, scale)
                assert torch.equal(expected[0], actual[0])
                assert expected[1] == actual[1]

    together(6, work)


def test_gradients_and_modes_belong_to_their_thread():
    linear = torch.nn.Linear(3, 3)

    def f(x):
        with torch.no_grad():
            y = linear(x) + x.sum().tolist()
        return linear(y), torch.is_grad_enabled()

    fast = optimize(run_graph)(f)

    def work(i):
        with torch.set_grad_enabled(i % 2 == 0):
            for _ in range(5):
                result, enabled = fast(X)
                assert enabled == (i % 2 == 0)
                assert result.requires_grad == enabled
            assert torch.is_grad_enabled() == (i % 2 == 0)

    together(4, work)


def test_reset_while_others_run():
    optimizer = optimize(run_graph)
    fast = optimizer(lambda x: x.sum().tolist() + x)
    stop = threading.Event()

    def work(i):
        if i:
            for _ in range(30):
                assert torch.equal(fast(X), X.sum().item() + X)
            stop.set()
        else:
            while not stop.wait(0.002):
                optimizer.reset()

    together(3, work)


FORK = """
    import os, sys, threading, torch
    from dynamo_capture import optimize, run_graph, is_compiling
    from dynamo_capture.hook import frame_hook

    torch.set_num_threads(1)
    X = torch.arange(6.0)
    inside, leave = threading.Event(), threading.Event()

    def hold(graph, inputs):
        inside.set()
        leave.wait(30)
        return graph.forward

    first = optimize(run_graph)(lambda x: x + (1 if is_compiling() else 2))
    slow = optimize(hold)(lambda x: x * (3 if is_compiling() else 4))
    first(X)
    thread = threading.Thread(target=lambda: slow(X))
    thread.start()
    assert inside.wait(30)
    child = os.fork()
    if child == 0:
        leave.set()
        assert torch.equal(first(X), X + 1), "compiled before the fork"
        assert torch.equal(slow(X), X * 3), "was being compiled by a thread that is gone"
        assert torch.equal(optimize(run_graph)(lambda x: x - (5 if is_compiling() else 6))(X), X - 5)
        assert not frame_hook.is_installed(), "nothing is active in the child"
        os._exit(7)
    leave.set()
    thread.join()
    assert torch.equal(slow(X), X * 3)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_fork_after_compiling():
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORK)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 7, ran.stderr


@pytest.mark.parametrize("limit", [300, 3000])
def test_endless_recursion_with_breaks_is_a_recursion_error(limit):
    def down(x, n):
        y = x + x.sum().tolist() * 0
        return down(y, n + 1) + 1

    fast = optimize(run_graph)(down)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        for _ in range(2):
            with pytest.raises(RecursionError):
                fast(X, 0)
    finally:
        sys.setrecursionlimit(before)
    assert torch.equal(optimize(run_graph)(lambda x: x + 1)(X), X + 1)


def test_many_breaks_in_a_loop_need_no_deep_stack():
    def inner(x):
        return x + x.sum().tolist() * 0

    def f(x, n):
        count = 0
        while count < n:
            x = inner(x)
            count += 1
        return x, count

    before = sys.getrecursionlimit()
    fast = optimize(run_graph)(f)
    sys.setrecursionlimit(400)
    try:
        result, count = fast(X, 3000)
    finally:
        sys.setrecursionlimit(before)
    assert torch.equal(result, X)
    assert count == 3000
