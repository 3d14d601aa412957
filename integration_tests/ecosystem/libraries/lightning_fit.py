"""Lightning: a compiled ``LightningModule`` is fitted and validated."""

from __future__ import annotations

import copy
import logging
from typing import Any

import torch
from programs import Compile, Program, Step
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def _module_class() -> Any:
    import pytorch_lightning

    class Classifier(pytorch_lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
            self.head = nn.Sequential(nn.Flatten(), nn.Linear(32 * 16 * 16, 64), nn.GELU(), nn.Linear(64, 5))
            self.losses: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.body(x))

        def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
            images, labels = batch
            loss = F.cross_entropy(self(images), labels)
            self.log("loss", loss)
            self.losses.append(loss.detach())
            return loss

        def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
            images, labels = batch
            self.log("accuracy", (self(images).argmax(-1) == labels).float().mean(), on_epoch=True)

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=1e-2, momentum=0.9, nesterov=True)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
            return {"optimizer": optimizer, "lr_scheduler": schedule}

    return Classifier


def _loader(count: int) -> Any:
    return DataLoader(TensorDataset(torch.randn(count, 3, 16, 16), torch.randint(5, (count,))), batch_size=8)


def _trainer(**how: Any) -> Any:
    import pytorch_lightning

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return pytorch_lightning.Trainer(
        accelerator="cpu", devices=1, enable_model_summary=False, barebones=False, **quiet, **how
    )


def _fit(compile: Compile, model: Any, plain: Any) -> Step:
    """``model`` is what is given to the trainer, ``plain`` holds parameters and losses."""
    train, validate, start = _loader(48), _loader(16), copy.deepcopy(plain.state_dict())

    def step() -> Any:
        plain.load_state_dict(start)
        plain.losses.clear()
        trainer = _trainer(max_epochs=2, gradient_clip_val=1.0)
        trainer.fit(model, train, validate)
        return list(plain.losses), [p.detach().clone() for p in plain.parameters()], trainer.callback_metrics

    return step


def compiled_module(compile: Compile) -> Step:
    plain = _module_class()()
    return _fit(compile, compile(plain), plain)


def compiled_parts(compile: Compile) -> Step:
    """Compiled where the module is configured: its body and head are."""
    plain = _module_class()()
    plain.body, plain.head = compile(plain.body), compile(plain.head)
    return _fit(compile, plain, plain)


NEEDS = ("pytorch_lightning",)
PROGRAMS = (
    Program("Lightning, fit of a compiled module", compiled_module, NEEDS, 2, rounds=7),
    Program("Lightning, fit with compiled parts", compiled_parts, NEEDS, 4, rounds=7),
)
