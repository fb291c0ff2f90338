import math

import pytest

from clusterwright.simulate.loading import Load, SharedStore

GB = 1e9


def ends(store: SharedStore) -> list[tuple[object, float]]:
    found = []
    while store.next_s < math.inf:
        at_s = store.next_s
        found.append((store.pop(), at_s))
    return found


def test_a_start_that_is_alone_has_the_smaller_of_both_rates() -> None:
    # 8 nodes x 120 GB in 90 s are 10.7 GB/s together; a node alone reads 4 GB/s at most (DGX H100 "good").
    store = SharedStore(100 * GB)
    store.begin("a", 5.0, Load(8, 120 * GB), 4 * GB)
    assert ends(store) == [("a", pytest.approx(35))]
    store = SharedStore(32 / 3 * GB)
    store.begin("a", 5.0, Load(8, 120 * GB), 4 * GB)
    assert ends(store) == [("a", pytest.approx(95))]


def test_starts_that_overlap_share_fairly() -> None:
    # a is alone until 10 and has 50 GB left, at 5 GB/s from then on; b has 50 GB left when a is done, at 10 GB/s.
    store = SharedStore(10 * GB)
    store.begin("a", 0.0, Load(1, 150 * GB))
    store.begin("b", 10.0, Load(1, 100 * GB))
    assert ends(store) == [("a", pytest.approx(20)), ("b", pytest.approx(25))]


def test_shares_are_by_reader_not_by_start() -> None:
    store = SharedStore(12 * GB)
    store.begin("wide", 0.0, Load(3, 30 * GB))
    store.begin("one", 0.0, Load(1, 30 * GB))
    assert ends(store) == [("wide", pytest.approx(10)), ("one", pytest.approx(10))]


def test_what_a_slow_reader_cannot_take_goes_to_the_others() -> None:
    store = SharedStore(10 * GB)
    store.begin("slow", 0.0, Load(1, 20 * GB), 2 * GB)
    store.begin("fast", 0.0, Load(1, 80 * GB), 50 * GB)
    assert ends(store) == [("slow", pytest.approx(10)), ("fast", pytest.approx(10))]


def test_a_start_that_is_cancelled_gives_its_share_back() -> None:
    store = SharedStore(10 * GB)
    store.begin("a", 0.0, Load(1, 100 * GB))
    store.begin("b", 0.0, Load(1, 100 * GB))
    store.cancel("a", 10.0)
    store.cancel("a", 10.0)
    store.begin("a", 10.0, Load(1, 10 * GB))
    assert ends(store) == [("a", pytest.approx(12)), ("b", pytest.approx(16))]


def test_the_store_is_busy_to_the_last_byte() -> None:
    store = SharedStore(10 * GB)
    for number in range(200):
        store.begin(number, 0.3 * number, Load(1 + number % 3, (1 + number % 7) * GB), (0.5 + number % 5) * GB)
    seen = ends(store)
    assert len(seen) == 200
    assert [at for _, at in seen] == sorted(at for _, at in seen)
    total = sum((1 + n % 3) * (1 + n % 7) for n in range(200))
    assert seen[-1][1] >= total / 10
    assert store.next_s == math.inf


def test_what_cannot_be_is_refused() -> None:
    store = SharedStore(GB)
    store.begin("a", 5.0, Load(1, GB))
    for wrong in (
        lambda: store.begin("a", 6.0, Load(1, GB)),
        lambda: store.begin("b", 6.0, Load(0, GB)),
        lambda: store.begin("b", 4.0, Load(1, GB)),
        lambda: SharedStore(0),
        lambda: SharedStore(GB).pop(),
    ):
        with pytest.raises(ValueError):
            wrong()
