"""Encoders with a mask for padding give in its places what eager gives, where torch computes with nested tensors."""

import pytest
import torch

from dynamo_capture import optimize

PADDED = torch.tensor([[False, False, True], [False, True, True]])
MASKS = {
    "last": PADDED,
    "longer": torch.tensor([[False, False, False, True, True]]),
    "first": PADDED.flip(1),
    "a row of padding": torch.tensor([[False, False, False], [True, True, True]]),
    "none": None,
}


def encoder(norm):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    made = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(4) if norm else None).eval()
    if norm:
        torch.nn.init.ones_(made.norm.bias)
    return made


def given(mask):
    torch.manual_seed(1)
    return torch.randn(*((2, 3) if mask is None else mask.shape), 4)


@pytest.mark.parametrize("norm", [False, True])
def test_padding(norm) -> None:
    model = encoder(norm)

    @torch.no_grad()
    def program(x, mask):
        return model(x, src_key_padding_mask=mask)

    compiled = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)
    for mask in MASKS.values():
        torch.testing.assert_close(compiled(given(mask), mask), program(given(mask), mask))


def test_gradients_and_training() -> None:
    model = encoder(False)

    def program(x, mask):
        return model(x, src_key_padding_mask=mask)

    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    torch.testing.assert_close(compiled(given(PADDED), PADDED), program(given(PADDED), PADDED))
    model.requires_grad_(False)
    torch.testing.assert_close(compiled(given(PADDED), PADDED), program(given(PADDED), PADDED))


@pytest.mark.parametrize("made", [lambda model: model, lambda model: model.forward])
def test_the_encoder_itself(made) -> None:
    model = encoder(True).requires_grad_(False)
    compiled = optimize(lambda graph, inputs: graph.forward)(made(model))
    for mask in MASKS.values():
        expected = model(given(mask), src_key_padding_mask=mask)
        torch.testing.assert_close(compiled(given(mask), src_key_padding_mask=mask), expected)


def test_hooks_see_nested_tensors_and_numbers_are_no_padding() -> None:
    model, seen = encoder(False), []
    numbers = torch.tensor([[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])

    @torch.no_grad()
    def program(x, mask):
        return model(x, src_key_padding_mask=mask)

    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    torch.testing.assert_close(compiled(given(numbers), numbers), program(given(numbers), numbers))
    model.layers[0].register_forward_hook(lambda module, args, result: seen.append(result.is_nested))
    torch.testing.assert_close(compiled(given(PADDED), PADDED), program(given(PADDED), PADDED))
    assert seen == [True, True]


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (2, 3)])
@pytest.mark.parametrize("dynamic", [None, True])
def test_padding_that_torch_refuses(shape, dynamic) -> None:
    model = encoder(False)

    @torch.no_grad()
    def program(x, mask):
        return model(x, src_key_padding_mask=mask)

    compiled = optimize(lambda graph, inputs: graph.forward, dynamic=dynamic)(program)
    torch.testing.assert_close(compiled(given(PADDED), PADDED), program(given(PADDED), PADDED))
    refused = torch.ones(shape, dtype=torch.bool)
    with pytest.raises((IndexError, RuntimeError)) as expected:
        program(given(refused), refused)
    with pytest.raises(type(expected.value)) as found:
        compiled(given(refused), refused)
    assert str(found.value) == str(expected.value)
    torch.testing.assert_close(compiled(given(PADDED), PADDED), program(given(PADDED), PADDED))
