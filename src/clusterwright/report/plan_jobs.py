"""A job in lines of the plan: speed, failures, payload and cold start, checkpoints."""

from __future__ import annotations

from clusterwright.plan.results.payloads import PayloadPlan
from clusterwright.plan.results.refusals import Unplanned
from clusterwright.plan.results.trainings import CheckpointPlan, TrainingPlan
from clusterwright.report.plan_words import MARKS, band_words, line, show


def training_lines(training: TrainingPlan) -> list[str]:
    """Speed of a job with its band, time to the target, failures, losses."""
    if isinstance(training.tokens_per_s, Unplanned):
        lines = [line("speed", f"not planned: {training.tokens_per_s.reason}")]
    else:
        step = f", {show(training.step_time)} a step" if training.step_time else ""
        if training.step_time and training.network_time:
            step += f" (the network needs {show(training.network_time)} of it at least)"
        most = "at most " if training.upper_limit else ""
        lines = [line("speed", f"{most}{show(training.tokens_per_s)}{band_words(training.tokens_per_s)}{step}")]
    if training.time_to_target is not None:
        limit = f" of {show(training.deadline)}" if training.deadline else ""
        lines[-1] += f"; target in {show(training.time_to_target)}{limit}"
    if training.mttf is not None:
        share = f", {show(training.goodput)} of time is productive" if training.goodput else ""
        lines.append(line("failures", f"one in {show(training.mttf)}{band_words(training.mttf)}{share}"))
    return lines + [line("loss", loss.reason) for loss in training.losses]


def payload_lines(payload: PayloadPlan | Unplanned | None) -> list[str]:
    """What every replica loads, over which links, and the cold start."""
    if payload is None:
        return []
    if isinstance(payload, Unplanned):
        return [line("payload", f"not planned: {payload.reason}")]
    shown = [k for k in payload.links if k.kind in ("source", "network", "cache") or not k.enough]
    links = ", ".join(f"{k.words} {show(k.rate)}{'' if k.enough else ' TOO SLOW'}" for k in shown)
    lines = [
        line(
            "payload",
            f"{show(payload.required_rate)} needed ({payload.readers.value:.0f}{MARKS[payload.readers.origin]} × "
            f"{show(payload.size)} in {show(payload.within)}); {links or 'no link known'}",
        )
    ]
    if payload.cold_start is not None:
        limit = f" of {show(payload.target)}" if payload.target else ""
        cached = f", {show(payload.cold_start_cached)} from the cache" if payload.cold_start_cached else ""
        binds = f", bound by the {payload.binding.words}" if payload.binding else ""
        reference = f" ({payload.node_class} by NVIDIA's reference node)" if payload.node_class else ""
        band = band_words(payload.cold_start)
        lines.append(
            line("cold start", f"{show(payload.cold_start)}{band} from the source{limit}{cached}{binds}{reference}")
        )
        way = [f"{k.words} {show(k.time)}" for k in payload.links if k.kind != "cache"]
        lines.append(line("", f"{', '.join(way)}, each alone; process and engine start {show(payload.startup)} more"))
    return lines


def checkpoint_lines(checkpoint: CheckpointPlan | Unplanned | None) -> list[str]:
    """Size, interval and stall of checkpoints, the best interval, the productive share."""
    if checkpoint is None:
        return []
    if isinstance(checkpoint, Unplanned):
        return [line("checkpoint", f"not planned: {checkpoint.reason}")]
    parts = [f"{show(checkpoint.size)} every {show(checkpoint.every)}, {checkpoint.mode}"]
    for label, figure, limit, binds in (
        ("write", checkpoint.write_time, None, checkpoint.write_binding),
        ("stall", checkpoint.stall, checkpoint.stall_within, ""),
        ("restore", checkpoint.restore, checkpoint.restore_within, checkpoint.restore_binding),
        ("loses at most", checkpoint.lost_work, checkpoint.lost_work_target, ""),
    ):
        if figure is not None:
            allowed = f" of {show(limit)}" if limit else ""
            parts.append(f"{label} {show(figure)}{allowed}" + (f" (slowest: {binds})" if binds else ""))
    lines = [line("checkpoint", ", ".join(parts))]
    if checkpoint.best is not None and checkpoint.waste is not None and checkpoint.best_waste is not None:
        best = f"{show(checkpoint.best)} would be the best interval (Daly): {show(checkpoint.best_waste)} of time lost"
        lines.append(line("", f"{best}, {show(checkpoint.waste)} as declared"))
    if checkpoint.ettr is not None and checkpoint.ettr_exact is not None:
        shares = (
            f"{show(checkpoint.ettr)} by the published formula (ETTR), {show(checkpoint.ettr_exact)} of the process"
        )
        lines.append(line("", f"productive as declared: {shares}"))
    return lines
