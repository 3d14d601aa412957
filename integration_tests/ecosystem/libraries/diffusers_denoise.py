"""diffusers: denoising loops of a scheduler over small networks, a pipeline, and a training step."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step, training_step
from torch.nn import functional as F


def _unet() -> Any:
    from diffusers import UNet2DModel

    blocks = {
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
        "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    }
    return UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
        norm_num_groups=8, **blocks,
    )  # fmt: skip


def _transformer() -> Any:
    from diffusers import DiTTransformer2DModel

    return DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=16, in_channels=4, num_layers=2, sample_size=8,
        num_embeds_ada_norm=10, norm_num_groups=4,
    )  # fmt: skip


def _conditional() -> Any:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=8, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8, cross_attention_dim=32,
        attention_head_dim=8, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip


def _loop(predict: Any, scheduler: Any, shape: tuple[int, ...], count: int) -> Step:
    def step() -> Any:
        scheduler.set_timesteps(count)
        sample = torch.randn(shape)
        with torch.no_grad():
            for t in scheduler.timesteps:
                sample = scheduler.step(predict(sample, t), t, sample).prev_sample
        return sample

    return step


def unconditional(compile: Compile) -> Step:
    from diffusers import DDIMScheduler

    model = compile(_unet().eval())
    return _loop(lambda x, t: model(x, t).sample, DDIMScheduler(), (2, 3, 16, 16), 4)


def pipeline(compile: Compile) -> Step:
    """The pipeline itself, with a compiled network."""
    from diffusers import DDPMPipeline, DDPMScheduler

    made = DDPMPipeline(unet=_unet().eval(), scheduler=DDPMScheduler())
    made.unet = compile(made.unet)
    made.set_progress_bar_config(disable=True)

    def step() -> Any:
        images = made(batch_size=2, num_inference_steps=3, output_type="np").images
        return torch.from_numpy(images)

    return step


def guided(compile: Compile) -> Step:
    """Classifier-free guidance of a conditional network with Euler's method."""
    from diffusers import EulerDiscreteScheduler

    model, words = compile(_conditional().eval()), torch.randn(4, 6, 32)

    def predict(x: Any, t: Any) -> Any:
        without, given = model(torch.cat([x, x]), t, encoder_hidden_states=words).sample.chunk(2)
        return without + 3.0 * (given - without)

    return _loop(predict, EulerDiscreteScheduler(), (2, 4, 8, 8), 4)


def whole_step(compile: Compile) -> Step:
    """Network and scheduler are one compiled function."""
    from diffusers import DDIMScheduler

    model, scheduler = _transformer().eval(), DDIMScheduler()
    labels = torch.tensor([1, 2])

    @compile
    def denoise(x: Any, t: Any) -> Any:
        noise = model(x, timestep=t.expand(2), class_labels=labels).sample[:, :4]
        return scheduler.step(noise, t, x).prev_sample

    def step() -> Any:
        scheduler.set_timesteps(4)
        sample = torch.randn(2, 4, 8, 8)
        with torch.no_grad():
            for t in scheduler.timesteps:
                sample = denoise(sample, t)
        return sample

    return step


def training(compile: Compile) -> Step:
    from diffusers import DDPMScheduler

    model, scheduler = _unet(), DDPMScheduler()
    compiled, images = compile(model), torch.randn(4, 3, 16, 16)

    def loss() -> Any:
        noise, times = torch.randn_like(images), torch.randint(1000, (4,))
        return F.mse_loss(compiled(scheduler.add_noise(images, noise, times), times).sample, noise)

    return training_step(model, loss)


NEEDS = ("diffusers",)
PROGRAMS = (
    Program("diffusers, DDIM loop of a U-Net", unconditional, NEEDS),
    Program("diffusers, pipeline", pipeline, NEEDS),
    Program("diffusers, guidance with Euler", guided, NEEDS),
    Program("diffusers, DiT and scheduler in one", whole_step, NEEDS, 5, 1),
    Program("diffusers, training a U-Net", training, NEEDS),
)
