"""What the number of NVLinks between GPUs says: compared with siblings, never just held above zero.

Full numbers of links and the rate that `nvidia-smi nvlink -s` prints. Sources: NVIDIA data sheets (NVLink bandwidth
of both directions: V100 SXM2 300, A100 SXM4 600, A800 and H800 400, H100, H200 and H20 900, B200 and GB200 1,800 GB/s),
NVLink generations 2 to 5 with 25.781, 25, 26.562 and 53.125 GB/s a link and direction.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from clusterwright.model.observations import Weight
from clusterwright.readers.building import RunBuilder

_FULL: Final = (
    (re.compile(r"V100-SXM[23]"), 6), (re.compile(r"A100-SXM4"), 12), (re.compile(r"A800-SXM4"), 8),
    (re.compile(r"\bH800(?! PCIe)"), 8), (re.compile(r"\bH100 80GB HBM3|\bH100 SXM|\bGH200|\bH20\b"), 18),
    (re.compile(r"\bH200(?! NVL)"), 18), (re.compile(r"\bG?B[23]00\b"), 18),
)  # fmt: skip
#: GPUs of one NVLink domain that a whole machine or tray has.
_WHOLE: Final = frozenset({2, 4, 8, 16, 36, 72})


def full_links(product: str) -> int | None:
    """Links of a GPU on its NVSwitch or HGX board, None where bridges decide or the product is not known."""
    return next((count for form, count in _FULL if form.search(product)), None)


def say_links(
    builder: RunBuilder, links: dict[tuple[str, str], str], gpus: list[str], *, paths_only: bool = False
) -> None:
    """Notices over a matrix of links.

    Args:
        paths_only: whether the command (`topo -mp`) asks for PCIe paths, so that NVLink is never shown.
    """
    own = set(gpus)
    counts = {
        (a, b): int(link[2:]) for (a, b), link in links.items()
        if a in own and b in own and a != b and re.fullmatch(r"NV\d{1,3}", link)
    }  # fmt: skip
    if not counts:
        if paths_only:
            builder.notice("paths-only", "topo -mp shows PCIe paths only: NVLink is not shown", Weight.INFO)
        elif len(gpus) > 1:
            builder.notice(
                "no-nvlink", f"{len(gpus)} GPUs and no NVLink between any of them; topo -mp would hide it", Weight.INFO
            )
        return
    joined = {a for a, _ in counts}
    linked = [gpu for gpu in gpus if gpu in joined]
    totals = dict.fromkeys(linked, 0)
    for (gpu, _), count in counts.items():
        totals[gpu] += count
    if len(set(totals.values())) > 1:
        usual = max(counts.values())
        low = sorted({f"{min(a, b)}-{max(a, b)} NV{n}" for (a, b), n in counts.items() if n < usual})
        said = f"pairs with fewer links than NV{usual}: {', '.join(low[:16])}" if low else _spread(totals)
        builder.notice("nvlink-unequal", f"GPUs of one node have unequal NVLinks; {said}", Weight.ERROR)
    without = [gpu for gpu in gpus if gpu not in joined]
    if without:
        said = f"{', '.join(without[:16])}: no NVLink, while {len(linked)} other GPUs have it"
        builder.notice("nvlink-missing", said, Weight.WARNING)
    partners = Counter(a for a, _ in counts)
    mesh = all(partners[gpu] == len(linked) - 1 for gpu in linked)
    if not mesh and max(partners.values()) == 1:
        said = f"NVLink joins pairs only ({len(linked) // 2} of them): more than 2 GPUs cross PCIe"
        builder.notice("nvlink-pairs-only", said, Weight.INFO)
    if mesh and len(linked) == len(gpus) > 2 and len(gpus) not in _WHOLE:
        said = f"{len(gpus)} GPUs joined all to all, as no machine has them: probably the view from a container"
        builder.notice("container-view", f"{said}; it does not show that GPUs are missing", Weight.WARNING)


def say_counts(builder: RunBuilder, active: dict[str, int], listed: dict[str, int], products: dict[str, str]) -> None:
    """Notices over active and listed links of each GPU.

    Args:
        active, listed, products: by GPU index; only GPUs whose list is whole.
    """
    full = {gpu: count for gpu in active if (count := full_links(products.get(gpu, ""))) is not None}
    for gpu, count in active.items():
        if count < full.get(gpu, 0):
            said = f"GPU {gpu}: {count} of {full[gpu]} NVLinks are active on {products[gpu]}"
            builder.notice("nvlink-links-down", said, Weight.ERROR)
        elif count < listed[gpu] and gpu not in full:
            say_inactive(builder, gpu, listed[gpu] - count, listed[gpu])
    if len(set(active.values())) > 1:
        builder.notice("nvlink-unequal", f"GPUs of one node have unequal NVLinks; {_spread(active)}", Weight.ERROR)
    elif active and all(active[gpu] == full.get(gpu) for gpu in active):
        some = next(iter(active))
        said = f"GPUs {', '.join(active)}: {active[some]} of {full[some]} NVLinks active, all that {products[some]} has"
        builder.notice("nvlink-full", said, Weight.INFO)


def say_inactive(builder: RunBuilder, gpu: str, inactive: int, listed: int) -> None:
    """Inactive links where only the platform's bridges say how many there should be."""
    said = f"GPU {gpu}: {inactive} of {listed} listed NVLinks inactive; whether that is a fault depends on the platform"
    builder.notice("nvlink-inactive", said, Weight.WARNING)


def say_traffic(builder: RunBuilder, traffic: dict[str, float]) -> None:
    """A GPU that moved far more than the others: a different load, not an error."""
    if len(traffic) < 3:
        return
    ordered = sorted(traffic.values())
    middle = ordered[len(ordered) // 2]
    for gpu, moved in traffic.items():
        if middle > 0 and moved > 10 * middle:
            times = f"{moved / middle:.0f} times the bytes of the median GPU"
            said = f"GPU {gpu} moved {times}; this counts traffic, not errors"
            builder.notice("nvlink-traffic-uneven", said, Weight.INFO)


def _spread(totals: dict[str, int]) -> str:
    return ", ".join(f"{gpu}: {total}" for gpu, total in list(totals.items())[:16])
