"""Distributed tensors in one process: one graph of operators on the part that it has. Several processes are tried in
``integration_tests/test_distributed.py``."""

import pytest
import torch

from dynamo_capture import optimize

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="torch without gloo",
)


@pytest.fixture(scope="module")
def mesh():
    from torch.distributed.device_mesh import init_device_mesh

    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


class Graphs:
    def __init__(self):
        self.made = []

    def __call__(self, graph_module, example_inputs):
        self.made.append(graph_module)
        return graph_module.forward


def _spread(mesh, placement):
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(torch.arange(12.0).reshape(3, 4), mesh, [placement])


def _graphs_of(function, *calls):
    graphs = Graphs()
    compiled = optimize(graphs, fullgraph=True)(function)
    for args in calls:
        expected, found = function(*args), compiled(*args)
        assert type(found) is type(expected)
        assert getattr(found, "placements", None) == getattr(expected, "placements", None)
        assert torch.equal(
            *(t.to_local() if hasattr(t, "to_local") else t for t in (found.detach(), expected.detach()))
        )
    return graphs.made


def test_the_graph_has_operators_on_the_part(mesh):
    from torch.distributed.tensor import Shard

    (graph,) = _graphs_of(lambda x: (x * 2).sum(0), (_spread(mesh, Shard(0)),))
    assert [n.name for n in graph.graph.nodes if n.op == "placeholder"] == ["x__local_tensor"]
    assert "_c10d_functional" not in graph.code  # a part of a sum, which nobody has asked for


def test_how_it_is_spread_is_guarded(mesh):
    from torch.distributed.tensor import Replicate, Shard

    calls = [(_spread(mesh, placement),) for placement in (Shard(0), Shard(1), Shard(0), Replicate())]
    assert len(_graphs_of(lambda x: x + len(str(x.placements[0].is_shard())), *calls)) == 3


def test_placements_are_constants(mesh):
    from torch.distributed.tensor import DTensor, Replicate, Shard

    def function(x, placements):
        if placements != (Shard(0),):
            placements = [Shard(0)]
        return DTensor.from_local(x, mesh, placements)

    x = torch.ones(2, 2)
    assert len(_graphs_of(function, (x, (Replicate(),)), (x, (Shard(0),)), (x, (Replicate(),)))) == 2


def test_views_of_a_part_are_part_of_the_graph(mesh):
    from torch.distributed.tensor import Shard

    def function(w):
        return (w * 2).to_local().view(-1)[1:].sin()

    w = _spread(mesh, Shard(0)).requires_grad_()
    assert len(_graphs_of(function, (w,))) == 1


def test_the_mesh_of_a_block_ends_the_graph(mesh):
    from torch.distributed.tensor import DTensor

    def function(x):
        with mesh:
            return DTensor.from_local(x + 1)

    compiled = optimize(Graphs())(function)
    assert compiled(torch.ones(2)).to_local().tolist() == [2, 2]
