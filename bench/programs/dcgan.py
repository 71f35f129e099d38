"""A generator against a discriminator: two models, two optimizers, two Gossips."""

from typing import Any

import torch
from job import Job
from parts import SIDE, images
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus
from torch.nn.parallel import DistributedDataParallel

NEEDS: tuple[str, ...] = ()
LR, STEPS, BATCH, NOISE = 1e-3, 60, 16, 16


def generator() -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 32, 4, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, 2, 1),
    )


def discriminator() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(32, 1, 4),
        nn.Flatten(0),
    )


def distance(made: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Between means and standard deviations of coarse pixels, their spectrum and their noise."""

    def features(pictures: torch.Tensor) -> torch.Tensor:
        coarse = nn.functional.avg_pool2d(pictures, 4).flatten(1)
        spectrum = torch.fft.rfft2(pictures).abs().flatten(1) / SIDE
        found = torch.cat([coarse, spectrum], 1)
        return torch.cat([found.mean(0), found.std(0)])

    return (features(made) - features(real)).square().mean().sqrt()


def train(job: Job) -> dict[str, Any]:
    own = job.own_batches()
    maker, judge = generator(), discriminator()
    for_maker, for_judge = (
        torch.optim.Adam(each.parameters(), LR * job.rate, betas=(0.5, 0.999))
        for each in (maker, judge)
    )
    if job.is_ddp:
        maker = DistributedDataParallel(maker)  # ddp
        judge = DistributedDataParallel(judge)  # ddp
    else:
        job.gossip(maker, for_maker)  # gossip
        job.gossip(judge, for_judge)  # gossip
    for _ in job.step_numbers(STEPS):
        real, _ = images(BATCH, own)
        for_judge.zero_grad()
        with torch.no_grad():
            made = maker(torch.randn(BATCH, NOISE, 1, 1, generator=own))
        scores = judge(torch.cat([real, made]))
        truth = torch.cat([torch.ones(BATCH), torch.zeros(BATCH)])
        binary_cross_entropy_with_logits(scores, truth).backward()
        for_judge.step()
        for_maker.zero_grad()
        softplus(-judge(maker(torch.randn(BATCH, NOISE, 1, 1, generator=own)))).mean().backward()
        for_maker.step()
    test = job.test_batches()
    with torch.no_grad(), job.averaged():  # changed
        made = maker(torch.randn(500, NOISE, 1, 1, generator=test))
    return {"loss": job.mean(distance(made, images(250, test)[0]))}
