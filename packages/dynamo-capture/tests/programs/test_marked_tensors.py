"""Tensors that are marked as conjugated or negated, nested, made in inference mode, or begin inside of their memory:
what torch refuses or says of them."""

import warnings

import pytest
import torch

REFUSED = {
    "numpy": lambda c: c.conj().numpy(),
    "numpy of a negated view": lambda c: c.conj().imag.numpy(),
    "numpy of an adjoint view": lambda c: c.view(1, 1).H.squeeze().numpy(),
    "dlpack": lambda c: c.conj().__dlpack__(),
    "view_as_real": lambda c: torch.view_as_real(torch.conj(c)),
    "view": lambda c: c.conj().view(torch.float64),
    "view of a negated view": lambda c: c.conj().imag.view(torch.int32),
    "wider elements": lambda c: torch.arange(9.0)[1:].view(torch.float64),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_raises_though_nothing_uses_its_result(same, refused):
    def program(x, c):
        try:
            refused(c)
        except (RuntimeError, BufferError) as error:
            return x + 1, str(error)
        return x - 1, None

    same(program, (torch.ones(2), torch.tensor([1 + 2j])))


def test_inputs_that_are_marked(same):
    def program(x):
        try:
            x.numpy()
        except RuntimeError as error:
            return x + 1, str(error)
        return x - 1, None

    marked = torch.tensor([1 + 2j]).conj()
    same(program, (torch.tensor([1 + 2j]),), (marked,), (marked.imag,))


def test_views_by_wider_elements_of_inputs(same):
    def program(x, y):
        try:
            y.view(torch.float64)
        except RuntimeError as error:
            return x + 1, str(error)
        return x - 1, None

    same(program, (torch.ones(2), torch.arange(8.0)), (torch.ones(2), torch.arange(9.0)[1:]))


def test_a_complex_tensor_without_a_mark_is_an_array(whole):
    def program(x):
        return (x * 1j)[0].numpy() + 1, torch.view_as_real(x * 1j)

    whole(program, (torch.ones(2, 2),))


def test_functions_that_ask_for_marks(same):
    def program(x):
        marked = (x * 1j).conj()
        return torch.is_conj(marked), torch.is_neg(marked.imag), torch.is_conj(x), x + 1

    same(program, (torch.ones(2),))


def test_views_of_inference_tensors(same):
    """A view is what its base is, whatever the mode is in which it is taken."""

    def program(x):
        with torch.inference_mode():
            made = torch.ones(2)
            seen = x.view(1, 2)
        views = (made, made.view(1, 2), made[0], seen, seen.t())
        return [view.is_inference() for view in views], torch.is_inference(made.view(1, 2)), x + 1

    same(program, (torch.ones(2),))


def test_nested_tensors_without_a_layout_of_rows(same):
    def program(x):
        made = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        return made.is_nested, made.unbind()[1] + 1, x + 1

    with warnings.catch_warnings():  # torch gives it once in a process
        warnings.simplefilter("ignore")
        program(torch.ones(2))
    same(program, (torch.ones(2),))


def test_marks_that_are_resolved(same):
    """Resolving gives a marked tensor's content in memory of its own, and an unmarked tensor as it is."""

    def program(x):
        view = x.conj()
        view.mul_(2)
        negated = view.imag
        return (
            torch.view_as_real(view.resolve_conj()),
            negated.resolve_neg() + 1,
            x.resolve_conj() is x,
            x + 1,
        )

    same(program, (torch.tensor([1 + 2j]),))
