"""What Python sees of a transport: requests, errors, and what is refused."""

import gc
import weakref
from collections.abc import Iterator

import groups
import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FakeProcessGroup

from gossamer import _core
from gossamer.workers import gloo_edges

Tag = _core.Tag


@pytest.fixture
def pair() -> Iterator[list[_core.Transport]]:
    transports = [_core.c10d_transport(r, 2, g) for r, g in enumerate(groups.pairs(2))]
    yield transports
    for transport in transports:
        transport.stop()


def test_tensors_of_any_type_arrive(pair: list[_core.Transport]) -> None:
    for step, dtype in enumerate((torch.float32, torch.bfloat16, torch.int8, torch.bool)):
        payload = torch.arange(1000).to(dtype)
        landing = torch.zeros(1000, dtype=dtype)
        received = pair[1].receive(0, landing, Tag(step), timeout_s=30)
        sent = pair[0].send(1, payload, Tag(step), timeout_s=30)
        pair[1].wait(received)
        pair[0].wait(sent)
        assert torch.equal(landing, payload)


def test_a_failed_request_says_who_what_and_how_long(pair: list[_core.Transport]) -> None:
    request = pair[0].receive(1, torch.zeros(4), Tag(1, 2, 3), timeout_s=0.05)
    with pytest.raises(_core.TransportError, match="nothing came from worker 1") as caught:
        pair[0].wait(request)
    error = caught.value
    assert (error.rank, error.peer, error.operation) == (0, 1, "receive")
    assert error.elapsed_s >= 0.049
    assert error.reason in str(error)
    assert isinstance(error, RuntimeError)
    with pytest.raises(ValueError, match="no such request"):
        pair[0].wait(request)  # wait has released it


def test_a_pending_request_keeps_its_tensor(pair: list[_core.Transport]) -> None:
    landing = torch.zeros(1000)
    alive = weakref.ref(landing)
    request = pair[0].receive(1, landing, Tag(), timeout_s=30)
    address = landing.data_ptr()
    del landing
    gc.collect()
    fresh = torch.zeros(1000)
    assert fresh.data_ptr() != address
    pair[0].release(request)
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan")])
def test_bad_timeouts_are_refused(pair: list[_core.Transport], timeout_s: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        pair[0].send(1, torch.zeros(1), Tag(), timeout_s=timeout_s)


def test_strided_tensors_are_refused(pair: list[_core.Transport]) -> None:
    with pytest.raises(ValueError, match="contiguous"):
        pair[0].send(1, torch.zeros(4, 4).T[1:], Tag(), timeout_s=1)


def test_a_stopped_transport_refuses_everything(pair: list[_core.Transport]) -> None:
    pair[0].stop()
    pair[0].stop()
    with pytest.raises(ValueError, match="stopped"):
        pair[0].send(1, torch.zeros(1), Tag(), timeout_s=1)


def test_no_thread_is_left_behind() -> None:
    before = groups.threads_of_this_process()
    transports = [_core.c10d_transport(r, 3, g) for r, g in enumerate(groups.pairs(3))]
    assert groups.threads_of_this_process() >= before + 3 * 5  # two per edge and a watch
    for transport in transports:
        transport.stop()
    del transports
    gc.collect()
    assert groups.threads_of_this_process() <= before


def test_what_is_no_gloo_group_is_refused() -> None:
    with pytest.raises(ValueError, match="process group of torch"):
        _core.c10d_transport(0, 2, {1: "gloo"})
    fake = FakeProcessGroup._create_internal(0, 2)
    with pytest.raises(ValueError, match=r"backend 'fake'.*gloo"):
        _core.c10d_transport(0, 2, {1: fake})
    empty = dist.ProcessGroup(dist.HashStore(), 0, 2)
    with pytest.raises(ValueError, match="gloo"):
        _core.c10d_transport(0, 2, {1: empty})


def test_groups_that_do_not_fit_are_refused() -> None:
    three = groups.shared(3)
    with pytest.raises(ValueError, match="two workers, or all"):
        _core.c10d_transport(1, 3, {0: three[0][1]})
    with pytest.raises(ValueError, match="two workers, or all"):
        _core.c10d_transport(0, 4, {1: three[0][1]})
    with pytest.raises(ValueError, match="another worker"):
        _core.c10d_transport(0, 3, {0: three[0][1]})
    with pytest.raises(ValueError, match="rank"):
        _core.c10d_transport(5, 3, {})


def test_a_peer_without_a_group_cannot_be_talked_to() -> None:
    transport = _core.c10d_transport(0, 3, {})
    with pytest.raises(ValueError, match="no edge"):
        transport.receive(1, torch.zeros(1), Tag(), timeout_s=1)


def test_a_peer_that_does_not_come_fails_the_connecting() -> None:
    with pytest.raises(_core.TransportError, match="connect with worker 1") as caught:
        gloo_edges.connect(0, [1], dist.HashStore(), address=groups.LOOPBACK, timeout_s=0.3)
    assert (caught.value.rank, caught.value.peer) == (0, 1)
    assert 0.2 < caught.value.elapsed_s < 30
