"""Training logs, and listings of the checkpoints that training leaves."""

from __future__ import annotations

from typing import Final

from clusterwright.readers.readers import Reader
from clusterwright.readers.training.listings import CHECKPOINTS
from clusterwright.readers.training.training_logs import TRAINING

READERS: Final[tuple[Reader, ...]] = (TRAINING, CHECKPOINTS)
