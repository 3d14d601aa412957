"""sentence-transformers: a model built from modules, with random weights; encoding and a training step."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from programs import Compile, Program, Step, training_step

WORDS = tuple(chr(97 + first) + chr(97 + second) for first in range(4) for second in range(5))


def _model() -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tempfile.mkdtemp(prefix="ecosystem-sentences-")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    Path(folder, "vocab.txt").write_text("\n".join([*special, *WORDS]))
    BertTokenizer(str(Path(folder, "vocab.txt"))).save_pretrained(folder)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "vocab_size": 25}
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    BertModel(BertConfig(**sizes, **still, num_attention_heads=4)).save_pretrained(folder)
    words = Transformer(folder, max_seq_length=32)
    parts = [words, Pooling(128), Dense(128, 64), Normalize()]
    return SentenceTransformer(modules=parts, device="cpu")


def _sentences(count: int) -> list[str]:
    picks = torch.randint(len(WORDS), (count, 10)).tolist()
    return [" ".join(WORDS[word] for word in row) for row in picks]


def encoding(compile: Compile) -> Step:
    model, texts = _model().eval(), _sentences(16)
    compiled = compile(model)
    return lambda: compiled.encode(texts, batch_size=8, convert_to_tensor=True, show_progress_bar=False)


def encoding_by_forward(compile: Compile) -> Step:
    """Only ``forward`` is compiled, so that ``encode`` of the plain model calls compiled code."""
    model, texts = _model().eval(), _sentences(16)
    model.forward = compile(model.forward)
    return lambda: model.encode(texts, batch_size=8, convert_to_tensor=True, show_progress_bar=False)


def training(compile: Compile) -> Step:
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    model = _model()
    compiled = compile(MultipleNegativesRankingLoss(model))
    one, two = model.tokenize(_sentences(8)), model.tokenize(_sentences(8))
    return training_step(model, lambda: compiled([dict(one), dict(two)], None))


NEEDS = ("sentence_transformers", "transformers")
PROGRAMS = (
    Program("sentence-transformers, encode", encoding, NEEDS),
    Program("sentence-transformers, compiled forward", encoding_by_forward, NEEDS),
    Program("sentence-transformers, training", training, NEEDS),
)
