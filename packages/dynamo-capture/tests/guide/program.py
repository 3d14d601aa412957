"""The small program that docs/capture.md follows."""


class State:
    def __init__(self):
        self.scale, self.calls, self.seen = 2.0, 0, []


def program(state, x):
    y = x * state.scale
    state.calls += 1
    state.seen.append(y)
    return y.sum()


def broken(state, x):
    y = x * state.scale
    print("sum", y.sum().item())
    return y + 1
