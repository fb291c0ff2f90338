"""The quota tree that a file declares, as the engine, the review and the simulator all read it."""

from __future__ import annotations

from clusterwright.model.scheduling import Scheduling
from clusterwright.queueing.quotas import Queue, QueueTree, Quota


def declared_tree(scheduling: Scheduling | None) -> QueueTree:
    """The queues of the file with their quotas by pool; the empty tree without a scheduling section.

    A `borrow` that is given limits the pools it names and forbids the others; one that is absent is unlimited.

    Raises:
        InvalidInput: on unknown parents and cycles.
    """
    if scheduling is None:
        return QueueTree()
    queues = []
    for name, queue in scheduling.queues.items():
        pools = dict.fromkeys((*queue.guarantee, *(queue.borrow or {}), *(queue.lend or {})))
        quotas = {
            pool: Quota(
                queue.guarantee.get(pool, 0),
                None if queue.borrow is None else queue.borrow.get(pool, 0),
                None if queue.lend is None else queue.lend.get(pool),
            )
            for pool in pools
        }
        queues.append(Queue(name, queue.parent, quotas, strict=queue.strategy == "strict", slack=queue.slack))
    return QueueTree(tuple(queues))
