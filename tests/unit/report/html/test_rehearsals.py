"""Rehearsals are shown as what they are: checks, times beside targets, a line of what happened when."""

from __future__ import annotations

from dataclasses import replace

from builders.pages import Node, parse_page
from builders.proofs import example_proof, worker_loss
from clusterwright.lib.quantities import Quantity
from clusterwright.model.evidence import Check, Moment, MomentKind, Reading, Rehearsal, RehearsalOutcome
from clusterwright.report.html.rehearsals import render_rehearsals
from clusterwright.report.html.timelines import render_timeline


def shown(*rehearsals: Rehearsal) -> Node:
    return parse_page(render_rehearsals(replace(example_proof(), rehearsals=rehearsals)))


def test_times_stand_beside_their_targets() -> None:
    rows = [r.text for r in shown(worker_loss()).all("tr")]
    assert "detection time 2.1 s rehearsed ≤ 60 s declared finetune-detection" in rows
    assert "lost work 0.8 s rehearsed ≤ 30 min declared finetune-lost-work" in rows


def test_a_time_says_what_it_depends_on_here() -> None:
    lost = Reading("lost_work", Quantity(0.8, (("s", 1),), "800 ms"), (("checkpoints every", "1 s"),))
    rows = [r.text for r in shown(replace(worker_loss(), readings=(lost,))).all("tr")]
    assert "lost work 800 ms rehearsed here: checkpoints every 1 s ≤ 30 min declared finetune-lost-work" in rows


def test_targets_of_another_workload_are_not_shown() -> None:
    said = shown(worker_loss()).text
    assert "chat-detection" not in said


def test_a_reading_without_a_target_says_so_and_an_unreadable_one_is_no_zero() -> None:
    rehearsal = replace(worker_loss(), readings=(Reading("step_time", None, unreadable="?"),))
    assert "step time unreadable rehearsed none declared" in [r.text for r in shown(rehearsal).all("tr")]


def test_checks_that_hold_are_folded_and_others_are_in_sight() -> None:
    passed = shown(worker_loss())
    assert passed.one("summary").text == "all 3 checks passed"
    wrong = Check("fencing", "no overlap", "step 7 of epoch 1 after step 8 of epoch 2", holds=False)
    failed = shown(replace(worker_loss(), outcome=RehearsalOutcome.FAILED, checks=(*worker_loss().checks, wrong)))
    assert failed.one("summary").text == "3 checks passed"
    in_sight = [r.text for t in failed.all("table") for r in t.all("tr") if "fencing" in r.text]
    assert in_sight == ["fencing no overlap step 7 of epoch 1 after step 8 of epoch 2 ✕ failed"]
    assert "fencing" not in failed.one("details").text


def test_a_rehearsal_that_was_not_run_says_why() -> None:
    rehearsal = Rehearsal("worker-loss", RehearsalOutcome.NOT_RUN, "scope too small: 128 nodes")
    page = shown(rehearsal)
    assert page.one("h3").text == "Worker loss – not run"
    assert "scope too small: 128 nodes" in page.text
    assert not list(page.all("figure"))


def test_real_devices_are_not_called_virtual() -> None:
    page = shown(replace(worker_loss(), devices="real"))
    assert "VIRTUAL" not in page.text
    assert "NOT MEASURED ON THE DECLARED ENGINE" in page.text


def test_events_that_are_near_share_a_mark_and_none_is_lost() -> None:
    events = tuple(Moment(float(t), f"event {t}") for t in (0, 1, 1.01, 1.02, 5, 10))
    page = parse_page(render_timeline(replace(worker_loss(), timeline=events, readings=())))
    marks = [t.text for t in page.all("text", class_="mid") if t.text[0].isdigit() and not t.text.endswith("s")]
    assert marks == ["1", "2–4", "5", "6"]
    assert [li.text for li in page.all("li")][1:4] == ["1.00 s event 1", "1.01 s event 1.01", "1.02 s event 1.02"]


def test_spans_begin_with_the_loss() -> None:
    page = parse_page(render_timeline(worker_loss()))
    (found,) = page.all("rect", class_="found")
    (recovered,) = (r for r in page.all("rect", class_="virtual") if r.attributes["height"] == "14")
    left, width = (float(found.attributes[k].rstrip("%")) for k in ("x", "width"))
    assert abs(left - (4 + 92 * 5.0 / 12.3)) < 0.01
    assert abs(width - 92 * 2.1 / 12.3) < 0.01
    assert recovered.attributes["x"] == found.attributes["x"]
    assert "detection time 2.1 s" in page.text


def test_one_moment_alone_can_be_drawn() -> None:
    page = parse_page(render_timeline(replace(worker_loss(), timeline=(Moment(3.0, "lost", MomentKind.LOSS),))))
    assert page.one("li").text == "3.00 s lost"


def test_a_loss_is_known_by_its_kind_and_not_by_words() -> None:
    said = (Moment(0.0, "nobody was killed"), Moment(1.0, "a worker left", MomentKind.LOSS), Moment(4.0, "end"))
    page = parse_page(render_timeline(replace(worker_loss(), timeline=said)))
    (found,) = page.all("rect", class_="found")
    assert abs(float(found.attributes["x"].rstrip("%")) - (4 + 92 * 1.0 / 4.0)) < 0.01


def test_no_timeline_no_drawing() -> None:
    assert render_timeline(replace(worker_loss(), timeline=())) == ""
