"""The proof as one self-contained HTML file for a desk, a phone and paper.

One module per section, over small builders (`elements` for markup, `drawing` for SVG, `derivations` for numbers with
their tree). What may not live here: any decision about an outcome, any number that the proof does not hold.
"""

from clusterwright.report.html.pages import render_proof

__all__ = ["render_proof"]
