"""A Gossip by the name that commands take for its method."""

import re

import pytest
from gossip_support import mlp
from torch.optim import SGD, AdamW

import gossamer


def made(name: str, **arguments: object) -> gossamer.Gossip:
    model = mlp()
    optimizer = AdamW(model.parameters(), lr=0.1)
    return gossamer.Gossip(model, optimizer, topology=gossamer.Method(name), **arguments)


def test_a_name_says_all_that_arguments_do() -> None:
    with made("dsgd_ac@ring:bf16:local=2:backward:stagger=no:consensus=0.5") as gossip:
        settings = gossip._run.session.settings
        assert settings.pattern == "dsgd_ac"
        assert settings.pattern_options == {"consensus": 0.5}
        assert (settings.codec, settings.update, settings.stagger) == ("bf16", "backward", False)
        assert gossip._run.session.schedule.period == 2
    with made("ring:skip=3") as gossip:
        assert (gossip._run.session.settings.late, gossip._run.session.settings.staleness) == (
            "skip",
            3,
        )
    with made("allreduce:int8") as gossip:
        assert (gossip._run.session.settings.pattern, gossip._run.session.settings.codec) == (
            "allreduce",
            "int8",
        )


def test_what_a_name_says_is_not_said_twice() -> None:
    with pytest.raises(
        ValueError, match=r"Method\(\"ring\"\) says codec as well, got codec='int8'"
    ):
        made("ring", codec="int8")
    with pytest.raises(ValueError, match="DistributedDataParallel, which is what to use"):
        made("ddp")
    with pytest.raises(ValueError, match="leave group= out"):
        made("ring:group=ring")
    with pytest.raises(ValueError, match="did you mean 'ring'"):
        gossamer.Method("rign")


def test_a_pattern_still_has_its_conditions() -> None:
    model = mlp()
    with pytest.raises(ValueError, match="momentum"):
        gossamer.Gossip(
            model, SGD(model.parameters(), lr=0.1), topology=gossamer.Method("dmsgd@ring")
        )


@pytest.mark.parametrize("name", ["aer:int8", "gradient_gossip@ring"])
def test_a_methods_name_alone_says_how_to_give_it(name: str) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match=re.escape(f"topology=gossamer.Method({name!r})")):
        gossamer.Gossip(model, optimizer, topology=name)
    with pytest.raises(ValueError, match="unknown topology"):
        gossamer.Gossip(model, optimizer, topology="rign:int8")
