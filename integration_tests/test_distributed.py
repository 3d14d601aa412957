"""Compiled programs of two processes do what eager's do: values, gradients, the order of collectives, no hang."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from integration_tests.distributed import processes

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="torch without gloo",
)
COLLECTIVES = {
    "functional_collectives": 1,
    "collectives_in_place": 1,
    "unequal_parts": 1,
    "asynchronous": 1,
    "waiting_after_a_break": 2,
    "gradients": 1,
    "collectives_in_a_custom_function": 1,
    "a_history_that_autograd_keeps": None,
    "a_failure_after_a_collective": None,
    "groups_of_some": 3,
    "only_one_process_compiles": None,
    "layouts": 1,
    "other_sizes": None,
    "what_ends_the_graph": None,
    "a_group_that_is_gone": None,
    "a_result_that_was_not_waited_for": None,
    "arguments_that_wait": 1,
}
"""The programs, and in how many graphs each is captured."""
DATA_PARALLEL = {
    "one_bucket": None,
    "buckets": None,
    "gradients_are_views_of_buckets": None,
    "static_graph": None,
    "accumulated": None,
    "unused_parameters": None,
    "communication_hook": None,
    "under_autocast": None,
    "gradients_come_early": None,
    "sharded_blocks": None,
    "sharded_whole": None,
}
DISTRIBUTED_TENSORS = {
    "operators": 1,
    "redistributed": 1,
    "in_and_out": 1,
    "a_loss_in_parts": 1,
    "questions": 3,
    "written_to": 1,
    "gradients_of_another_kind": None,
    "losses_in_parts": 2,
    "plain_tensors_taken_for_whole_ones": None,
    "parts_of_parameters": 1,
    "tensor_parallel": 1,
    "sequence_parallel": 1,
    "what_ends_the_graph": None,
    "distributed_here": 1,
}

Records = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def collectives(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """What the programs gave."""
    return processes.run("integration_tests.distributed.collectives", tmp_path_factory.mktemp("collectives"))


@pytest.fixture(scope="module")
def data_parallel(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """What the programs gave."""
    return processes.run(
        "integration_tests.distributed.data_parallel", tmp_path_factory.mktemp("data_parallel")
    )


@pytest.fixture(scope="module")
def distributed_tensors(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """What the programs gave."""
    folder = tmp_path_factory.mktemp("distributed_tensors")
    return processes.run("integration_tests.distributed.distributed_tensors", folder)


def _check(records: Records, name: str, graphs: int | None) -> None:
    assert len(records[name]) == 2
    for record in records[name]:
        assert "raised" not in record, record["raised"]
        assert not record["wrong"]
        if graphs is not None:
            assert record["graphs"] == graphs


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(collectives: Records, name: str) -> None:
    _check(collectives, name, COLLECTIVES[name])


@pytest.mark.parametrize("name", DATA_PARALLEL)
def test_data_parallel(data_parallel: Records, name: str) -> None:
    _check(data_parallel, name, DATA_PARALLEL[name])


@pytest.mark.parametrize("name", DISTRIBUTED_TENSORS)
def test_distributed_tensors(distributed_tensors: Records, name: str) -> None:
    _check(distributed_tensors, name, DISTRIBUTED_TENSORS[name])


def test_varying_sizes_are_one_version(collectives: Records) -> None:
    assert all(record["versions"] == 2 for record in collectives["other_sizes"])


def test_all_programs_are_listed(
    collectives: Records, data_parallel: Records, distributed_tensors: Records
) -> None:
    assert set(collectives) == set(COLLECTIVES)
    assert set(data_parallel) == set(DATA_PARALLEL)
    assert set(distributed_tensors) == set(DISTRIBUTED_TENSORS)
