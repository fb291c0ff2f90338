"""Arrivals, lengths, prefixes, cold starts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from builders.arrivals import Replica, Stream, carried, meet, replicas
from builders.serving import worker
from clusterwright.physics.serving.cold_starts import Loader, cold_start, needed_rate_bytes_s
from clusterwright.physics.serving.constants import Constants
from clusterwright.physics.serving.lengths import LARGEST_RATIO, fixed, lognormal, observed
from clusterwright.physics.serving.prefixes import prefix_reuse

CHAT = Stream(lognormal(1000.0, 2500.0), lognormal(300.0, 800.0))


def replica(**changed):
    return Replica(worker(), Constants(), **changed)


def test_an_idle_replica_answers_in_its_own_prefill():
    met = meet(replica(), Stream(fixed(1000.0), fixed(300.0)), 1e-6)
    own = float(replica().prompts_s(Stream(fixed(1000.0), fixed(300.0)))[0])
    assert met.ttft_s == pytest.approx(met.ttft_mean_s, rel=1e-3)
    assert met.ttft_s == pytest.approx(own + 0.040 + 0.5 * met.tpot_mean_s, rel=1e-3)


def test_fixed_lengths_wait_half_of_what_exponential_ones_do():
    stream = Stream(fixed(1000.0), fixed(1.0))
    rate = 0.5 / float(replica().prompts_s(stream)[0])
    met = meet(replica(), stream, rate)
    service = float(replica().prompts_s(stream)[0])
    assert met.busy == pytest.approx(0.5)
    assert met.ttft_mean_s - service - 0.040 - 0.5 * met.tpot_mean_s == pytest.approx(0.5 * service, rel=1e-6)


def test_a_rate_beyond_the_prefill_is_not_carried():
    assert math.isinf(meet(replica(), CHAT, 1e4).ttft_s)


def test_skewed_lengths_carry_less_than_equal_ones():
    equal = Stream(fixed(1000.0), fixed(300.0))
    assert carried(replica(), CHAT, 0.5, 0.03) < carried(replica(), equal, 0.5, 0.03)


def test_reused_prefixes_carry_more():
    reused = Stream(CHAT.prompt, CHAT.output, reused=0.6)
    assert carried(replica(), reused, 0.5, 0.03) > carried(replica(), CHAT, 0.5, 0.03)


def test_replicas_hold_the_targets_and_one_less_does_not():
    count = replicas(replica(), CHAT, 60.0, 0.6, 0.03)
    assert count is not None
    assert count > 1
    assert meet(replica(), CHAT, 60.0 / count).ttft_s <= 0.6
    short = meet(replica(), CHAT, 60.0 / (count - 1))
    assert short.ttft_s > 0.6 or short.tpot_s > 0.03
    assert replicas(replica(), CHAT, 60.0, 1e-3, 0.03) is None


def test_prefill_workers_apart_leave_decode_alone():
    apart = replica(first=worker(), prefill_workers=2)
    assert apart.felt_s(CHAT) == 0.0
    assert meet(apart, CHAT, 5.0).busy == pytest.approx(meet(replica(), CHAT, 5.0).busy / 2)


def test_a_lognormal_has_its_mean_and_p95():
    found = lognormal(1000.0, 2500.0)
    assert np.mean(found.points) == pytest.approx(1000.0)
    assert found.quantile(0.95) == pytest.approx(2500.0, rel=0.05)
    assert found.moment(2) > 1000.0**2


@pytest.mark.parametrize("ratio", [0.5, LARGEST_RATIO * 1.01])
def test_an_impossible_p95_is_refused(ratio):
    with pytest.raises(ValueError, match="log-normal needs"):
        lognormal(100.0, 100.0 * ratio)


def test_a_trace_gives_its_own_values():
    assert observed([10.0] * 50 + [1000.0] * 50).mean == 505.0
    with pytest.raises(ValueError, match="without requests"):
        observed([])


def test_prefix_blocks_are_found_from_the_start_only():
    reuse = prefix_reuse([(1024, [1, 2]), (1536, [1, 2, 3]), (1024, [9, 2])])
    assert reuse.cached_tokens == 1024
    assert (reuse.requests, reuse.hits) == (3, 1)
    assert reuse.share == 1024 / 3584


def test_the_last_token_is_always_computed():
    assert prefix_reuse([(512, [1]), (512, [1])]).cached_tokens == 511


def test_a_small_cache_forgets_the_least_recently_used():
    rows = [(512, [1]), (512, [2]), (512, [1])]
    assert prefix_reuse(rows, blocks=1).hits == 0
    assert prefix_reuse(rows, blocks=2).hits == 1


def test_a_cold_start_is_bytes_over_the_shared_rate_and_the_engine():
    found = cold_start(120e9, 10e9, replicas=8, loader=Loader(share=0.5, fixed_s=10.0, engine_s=30.0))
    assert dict(found.terms) == {"process": 10.0, "read": 96.0, "loader": 96.0, "engine": 30.0}
    assert found.total_s == 232.0
    with pytest.raises(ValueError, match="above 0"):
        cold_start(1.0, 0.0)


def test_the_needed_rate_gives_the_wanted_start():
    how = Loader(share=0.5, fixed_s=10.0, engine_s=30.0)
    rate = needed_rate_bytes_s(120e9, 130.0, 8, how)
    assert cold_start(120e9, rate, 8, how).total_s == pytest.approx(130.0)
    assert math.isinf(needed_rate_bytes_s(1.0, 20.0, loader=how))
