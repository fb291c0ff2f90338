from pathlib import Path

from builders.corpus import read_file, values
from clusterwright.model.observations import NoValue, Outcome
from clusterwright.readers.reading import read_output

FIXTURES = Path(__file__).parents[2] / "fixtures" / "readers" / "cost-exports"


def messages(run, code):
    return [notice.message for notice in run.notices if notice.code == code]


def test_allocations_are_read_by_name_and_window():
    transcript = read_file(FIXTURES / "allocation.json")
    assert transcript.kind == "cost-exports"
    (run,) = transcript.runs
    assert values(run, "cost_gpu", allocation="team-a") == [230.4]
    assert values(run, "gpu_hours", allocation="team-a") == [96.0]
    assert values(run, "ram_gib_hours", allocation="team-a") == [1536.0]
    assert messages(run, "idle-cost")
    assert messages(run, "currency-not-printed")


def test_a_total_that_its_parts_do_not_make_is_an_error():
    (run,) = read_file(FIXTURES / "allocation.json").runs
    (text,) = messages(run, "parts-do-not-add-up")
    assert text == "__idle__: the parts sum to 122.2000, totalCost is 150.0000"


def test_a_nodes_parts_are_recomputed_against_its_price():
    (run,) = read_file(FIXTURES / "nodes.json").runs
    assert round(values(run, "parts_per_hour")[0], 9) == 10.0
    assert messages(run, "parts-do-not-add-up") == []
    assert messages(run, "default-price")
    text = (FIXTURES / "nodes.json").read_text().replace('"10.0"', '"9.0"')
    (run,) = read_output([text.encode()]).runs
    assert "exceed it by 11.1%" in messages(run, "parts-do-not-add-up")[0]


def test_a_gpu_without_a_name_and_one_without_a_price_are_said():
    text = (FIXTURES / "nodes.json").read_text().replace("NVIDIA-A100-SXM4-80GB", "")
    (run,) = read_output([text.encode()]).runs
    assert messages(run, "gpu-name-empty")
    text = (FIXTURES / "allocation.json").read_text().replace("230.4", "0")
    (run,) = read_output([text.encode()]).runs
    assert "96 GPU-hours at no cost" in messages(run, "gpu-without-cost")[0]


def test_metrics_keep_one_of_two_equal_series_and_reject_a_torn_one():
    (run,) = read_file(FIXTURES / "metrics.prom").runs
    assert values(run, "gpu_price_per_hour") == [2.4, 0.0]
    assert messages(run, "series-twice")
    assert isinstance(values(run, "cpu_price_per_hour")[0], NoValue)
    assert run.rejected == 1


def test_csv_is_read_by_column_and_a_blank_cell_is_absent():
    transcript = read_file(FIXTURES / "export.csv")
    assert transcript.outcome is Outcome.PARTLY
    (run,) = transcript.runs
    assert values(run, "cost_gpu", pod="serve-1") == [57.6]
    assert isinstance(values(run, "cost_gpu", pod="serve-2")[0], NoValue)
    assert run.rejected == 1


def test_columns_that_stand_twice_are_refused():
    transcript = read_output([b"Namespace,CPUCost,GPUCost,GPUCost,TotalCost\na,1,2,3,6\n"])
    assert "gpucost" in str(transcript.refusal)


def test_an_answer_that_is_an_error_is_refused():
    transcript = read_output([b'{"code": 500, "message": "no data", "data": []}'], kind="cost-exports")
    assert "answered 500" in str(transcript.refusal)


def test_prices_in_prose_are_refused():
    text = b"with GPU: node_cpu_hourly_cost 0.05 node_gpu_hourly_cost 0.05\n"
    transcript = read_output([text])
    assert transcript.kind == "cost-exports"
    assert "prose" in str(transcript.refusal)


def test_idle_cost_inside_an_allocation_is_kept():
    text = '{"data": [{"a": {"name": "c/a", "gpuCost": 8.0, "gpuCostIdle": 3.5, "totalCost": 8.0}}]}'
    (run,) = read_output([text.encode()], kind="cost-exports").runs
    assert values(run, "cost_gpu_idle", allocation="c/a") == [3.5]
