"""The warning's class, apart from what raises it."""


class CheckWarning(UserWarning):
    """A compiled graph is not as good as eager (FXS401); it is not used."""
