"""Output of the scripts that an exported acceptance plan brings along: one line of JSON per report."""

from clusterwright.readers.probes import checkpoints, placements, processors

READERS = (checkpoints.READER, placements.READER, processors.READER)
