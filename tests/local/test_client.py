"""The client, when the control plane does not do its part."""

from __future__ import annotations

import signal

import pytest

from clusterwright.app.running import ClusterHandle
from clusterwright.engines.local import client
from clusterwright.engines.local.identities import read_identity, send_signal
from clusterwright.engines.local.layout import Layout
from clusterwright.lib.errors import Unavailable
from clusterwright.model.jobs import JobSpec, TaskGroup

from .test_chaos import within

pytestmark = pytest.mark.local

SPEC = JobSpec("job", (TaskGroup(("true",)),))


def test_a_submission_without_an_answer_is_not_said_to_have_failed(
    cluster: ClusterHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE_S", 0.5)
    plane = read_identity(Layout(cluster.state_dir), "controlplane")
    assert plane is not None
    send_signal(plane, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="it may still carry out this submit: see `cw queue`"):
            cluster.engine.submit(SPEC)
        with pytest.raises(Unavailable, match=r"does not answer: timed out$"):
            cluster.engine.nodes()
    finally:
        send_signal(plane, signal.SIGCONT)
    monkeypatch.undo()
    within(60, lambda: [j.spec.name for j in cluster.engine.jobs()] == ["job"], "the job that was taken after all")
