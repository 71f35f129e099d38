"""gossip.hand_over: what a worker that comes back is given beside model and optimizer."""

import warnings
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

import gossamer
from gossamer.step.handed_over import HandedOver


class Kept:
    """Such as a moving average, or a tokenizer's place."""

    def __init__(self, **state: Any) -> None:
        self.state = state

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state


class Worker:
    def __init__(self, received: list[Any] | None = None) -> None:
        self.model = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1)
        self.gossip = gossamer.Gossip(self.model, self.optimizer)
        if received is not None:
            self.gossip._run.handed_over = HandedOver(received)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.ones(1, 2)).sum().backward()
        self.optimizer.step()

    def rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])


def warmup(optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    rise = lr_scheduler.LinearLR(optimizer, 0.01, total_iters=4)
    fall = lr_scheduler.CosineAnnealingLR(optimizer, 20)
    return lr_scheduler.SequentialLR(optimizer, [rise, fall], [4])


@pytest.mark.parametrize("make", [warmup, lambda o: lr_scheduler.OneCycleLR(o, 0.3, 30)])
def test_a_scheduler_goes_on_where_the_others_are(make: Any) -> None:
    donor, undisturbed = Worker(), Worker()
    scheduler, other = make(donor.optimizer), make(undisturbed.optimizer)
    donor.gossip.hand_over(scheduler=scheduler)
    states: list[Any] = []
    donor.gossip._run.after_step(lambda run: states.append(run.handed_over.states()))
    for _ in range(6):
        donor.step()
        scheduler.step()
    newcomer = Worker(states[4])  # from inside of the fifth step
    for _ in range(7):  # the one to begin with is later
        newcomer.step()
        undisturbed.step()
        other.step()
    late = make(newcomer.optimizer)
    assert newcomer.rate() != undisturbed.rate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        newcomer.gossip.hand_over(scheduler=late)
    for _ in range(3):
        assert newcomer.rate() == pytest.approx(undisturbed.rate(), rel=1e-12)
        for worker, its in ((newcomer, late), (undisturbed, other)):
            worker.step()
            its.step()
    for worker in (donor, undisturbed, newcomer):
        worker.gossip.close()


def test_one_that_is_stepped_by_epochs_keeps_the_epoch() -> None:
    donor = Worker()
    by_epoch = lr_scheduler.StepLR(donor.optimizer, 2)
    plateau = lr_scheduler.ReduceLROnPlateau(donor.optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    kept = Kept(shadow=torch.arange(3.0), place="a", deep=[{"x": 1}])
    donor.gossip.hand_over(by_epoch=by_epoch, plateau=plateau, scaler=scaler, kept=kept)
    for step in range(40):
        donor.step()
        if step % 8 == 7:
            by_epoch.step()
            plateau.step(1.0)
    newcomer = Worker(donor.gossip._run.handed_over.states())
    for _ in range(3):
        newcomer.step()
    mine = lr_scheduler.StepLR(newcomer.optimizer, 2)
    own = lr_scheduler.ReduceLROnPlateau(newcomer.optimizer)
    other_scaler, other = torch.amp.GradScaler("cpu", init_scale=2.0), Kept()
    newcomer.gossip.hand_over(by_epoch=mine, plateau=own, scaler=other_scaler, kept=other)
    assert mine.last_epoch == 5
    assert own.num_bad_epochs == plateau.num_bad_epochs == 4
    assert other_scaler.get_scale() == 8.0
    assert torch.equal(other.state["shadow"], torch.arange(3.0))
    assert (other.state["place"], other.state["deep"]) == ("a", [{"x": 1}])
    donor.gossip.close()
    newcomer.gossip.close()


def test_mistakes_are_named() -> None:
    worker = Worker()
    with pytest.raises(TypeError, match="got int as rate"):
        worker.gossip.hand_over(rate=3)
    with pytest.raises(ValueError, match="the state of kept has something else"):
        worker.gossip.hand_over(kept=Kept(call=Worker))
    worker.gossip.hand_over(kept=Kept(x=1))
    newcomer = Worker(worker.gossip._run.handed_over.states())
    with pytest.raises(ValueError, match=r"got \['other'\] here and \['kept'\]"):
        newcomer.gossip.hand_over(other=Kept())
    worker.gossip.close()
    newcomer.gossip.close()
