"""Architecture as code for GPU clusters, with proof.

The layers, lowest first: `lib`, `model` + `catalogue` + `physics`, `plan` + `queueing`, `review` +
`judging`, `report`, `ports`, `engines` + `store` + `files`, `app`, `cli`. Imports go downwards only.
"""

__version__ = "0.1.0"
