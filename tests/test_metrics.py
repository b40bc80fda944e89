from __future__ import annotations

import ast
import http.client
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from feeds import assigned
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser
from streamdp_connectors.store.sink import StoreSink
from streamdp_connectors.store.tables import Bounds

import streamdp
from streamdp.monitor.health import HealthError, HealthServer
from streamdp.monitor.metrics import Histogram, Metrics, takes_openmetrics
from streamdp.monitor.stages import STAGES, Arrivals, Stages
from streamdp.monitor.table import AGES, METRICS
from streamdp.records import Answers
from streamdp.run.observers import Measured, reasons

COUNTERS = {
    "records": 1_000_000,
    "clusters_live": 7,
    "clusters_created": 19,
    "clusters_closed": 15,
    "clusters_retired": 12,
    "hypotheses": 30,
    "undecided": 64,
    "words": 4096,
    "held_back": 5,
    "switches": 3,
    "second_looks": 40,
    "records_moved": 6,
    "clusters_merged": 2,
    "revisions": 8,
    "stream_records": 1_000_500,
    "log_evidence": -2e6,
    "agreement": 0.75,
    "final_lag": 90,
}
PROMETHEUS = (  # what Prometheus 2 asks with
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(clock)


@pytest.fixture
def server(metrics: Metrics, clock: Clock) -> Iterator[HealthServer]:
    server = HealthServer(metrics, port=0, clock=clock)
    yield server
    server.close()


def get(server: HealthServer, path: str, **headers: str) -> tuple[int, str, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read().decode(), answer.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers["Content-Type"]


def scrape(server: HealthServer) -> dict[str, float]:
    status, text, content_type = get(server, "/metrics")
    assert status == 200
    assert content_type.startswith("text/plain; version=")
    return {
        sample.name + "".join(f"[{value}]" for value in sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_metric_is_served(server: HealthServer, metrics: Metrics, clock: Clock) -> None:
    metrics.update({})
    metrics.update(COUNTERS)
    metrics.set("lag_records", {("news", "0"): 250, ("news", "1"): 3})
    metrics.set("lag_seconds", lambda: {("news", "0"): 12.5})
    metrics.count("rejects", "not_json")
    metrics.count("rejects", "not_json")
    metrics.count("rejects", "no_text")
    metrics.observe("batch_seconds", 2.0)
    metrics.observe("advance_seconds", 2e-4)
    metrics.snapshot_written(0.02, 4000)
    metrics.count("snapshot_failures")
    metrics.observe("event_age_seconds", 90.0, 10)
    metrics.observe("answer_seconds", 0.2, 10)
    clock.now += 12.5
    found = scrape(server)
    expected = {
        "streamdp_records_total": 1_000_000,
        "streamdp_rejects_total[not_json]": 2,
        "streamdp_rejects_total[no_text]": 1,
        "streamdp_snapshot_seconds_count": 1,
        "streamdp_snapshot_seconds_bucket[0.03]": 1,
        "streamdp_snapshot_seconds_bucket[0.01]": 0,
        "streamdp_snapshot_failures_total": 1,
        "streamdp_snapshot_bytes": 4000,
        "streamdp_revisions_total": 8,
        "streamdp_switches_total": 3,
        "streamdp_stream_records": 1_000_500,
        "streamdp_log_evidence_nats": -2e6,
        "streamdp_beam_agreement": 0.75,
        "streamdp_final_lag_records": 90,
        "streamdp_event_age_seconds_bucket[100.0]": 10,
        "streamdp_event_age_seconds_bucket[30.0]": 0,
        "streamdp_event_age_seconds_sum": 900,
        "streamdp_answer_seconds_count": 10,
        "streamdp_clusters_created_total": 19,
        "streamdp_clusters_closed_total": 15,
        "streamdp_clusters_retired_total": 12,
        "streamdp_second_looks_total": 40,
        "streamdp_records_moved_total": 6,
        "streamdp_clusters_merged_total": 2,
        "streamdp_lag_records[0][news]": 250,
        "streamdp_lag_records[1][news]": 3,
        "streamdp_lag_seconds[0][news]": 12.5,
        "streamdp_lag_seconds[1][news]": None,
        "streamdp_clusters_live": 7,
        "streamdp_hypotheses": 30,
        "streamdp_undecided_records": 64,
        "streamdp_vocabulary_words": 4096,
        "streamdp_snapshot_age_seconds": 12.5,
        "streamdp_held_back_records": 5,
        "streamdp_batch_seconds_count": 1,
        "streamdp_batch_seconds_sum": 2.0,
        "streamdp_batch_seconds_bucket[1.0]": 0,
        "streamdp_batch_seconds_bucket[3.0]": 1,
        "streamdp_advance_seconds_count": 1,
        "streamdp_advance_seconds_bucket[0.0001]": 0,
        "streamdp_advance_seconds_bucket[0.00025]": 1,
    }
    assert {name: found.get(name) for name in expected} == expected


def test_totals_are_those_of_the_process(server: HealthServer, metrics: Metrics) -> None:
    """What the engine has counted before, in the state that it goes on from, is not counted again."""
    metrics.update(COUNTERS)
    found = scrape(server)
    totals = [metric.served for metric in METRICS.values() if metric.kind == "counter" and metric.counted]
    assert [found[name] for name in totals] == [0] * 22
    assert found["streamdp_stream_records"] == 1_000_500
    metrics.update(COUNTERS | {"records": 1_000_070})
    metrics.update(COUNTERS | {"records": 1_000_070, "clusters_created": 22})
    found = scrape(server)
    assert (found["streamdp_records_total"], found["streamdp_clusters_created_total"]) == (70, 3)


def test_what_is_not_known_is_not_served(server: HealthServer, metrics: Metrics) -> None:
    found = scrape(server)
    assert not {"streamdp_records_total", "streamdp_snapshot_age_seconds"} & found.keys()
    assert found["streamdp_snapshot_seconds_count"] == 0
    metrics.update({"held_back": 0})  # an engine before its first record
    found = scrape(server)
    assert found["streamdp_records_total"] == 0
    assert not any(name.startswith("streamdp_lag") for name in found)
    assert "streamdp_vocabulary_words" not in found


def test_the_process_and_the_build_are_told(server: HealthServer) -> None:
    found = scrape(server)
    assert found["process_resident_memory_bytes"] > 1e6
    assert any(name.startswith("streamdp_build_info") and streamdp.__version__ in name for name in found)


def test_every_reason_is_there_from_the_beginning() -> None:
    watch = Measured()
    text = watch.metrics.render()[0].decode()
    watch.close()
    found = {line.split('"')[1] for line in text.splitlines() if line.startswith("streamdp_rejects_total{")}
    assert found == set(reasons())
    assert all(line.endswith(" 0.0") for line in text.splitlines() if line.startswith("streamdp_rejects_t"))


def test_no_reason_is_left_out() -> None:
    """What the sources name as a reason, as a string, is in the list."""
    refusals = {"refuse": 1, "Reject": 1, "RefusedError": 0}
    named = set()
    for path in Path(streamdp.__path__[0]).rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in refusals:
                at = refusals[call.func.id]
                reason = call.args[at] if len(call.args) > at else None
                if isinstance(reason, ast.Constant):
                    named.add(reason.value)
    assert len(named) > 15
    assert named <= set(reasons())


def test_stages_are_counted_without_a_gap(clock: Clock) -> None:
    stages = Stages(clock)
    for stage, seconds in (("fetch", 2.0), ("decode", 3.0), ("fetch", 4.0), ("other", 0.0)):
        stages.enter(stage)
        clock.now += seconds
    stages.enter("other")
    assert stages.seconds() == dict.fromkeys(STAGES, 0.0) | {"fetch": 6.0, "decode": 3.0}


def test_ages_are_counted_by_the_batch() -> None:
    ages = Histogram()
    ages.observe(AGES[0], 5)
    ages.observe(-1.0, 2)
    ages.observe(1e9, 3)
    cumulative, total = ages.counts()
    assert [count for _, count in cumulative] == [7] * len(AGES) + [10]
    assert cumulative[-1][0] == "+Inf"
    assert total == pytest.approx(3e9 + 5 * AGES[0])


def test_the_nth_answer_is_set_against_the_nth_arrival() -> None:
    arrivals = Arrivals()
    arrivals.take(10, 1.0)
    assert arrivals.answer(4) == [(1.0, 6)]
    arrivals.take(10, 2.0)
    assert arrivals.answer(9) == [(1.0, 4), (2.0, 1)]
    assert arrivals.answer(20) == []  # records that a state held back before
    assert arrivals.answer(0) == [(2.0, 9)]
    assert arrivals.answer(0) == []


def test_age_starts_again_with_each_snapshot(server: HealthServer, metrics: Metrics, clock: Clock) -> None:
    for waited in (30.0, 4.0):
        metrics.snapshot_written(0.1, 10)
        clock.now += waited
        assert scrape(server)["streamdp_snapshot_age_seconds"] == waited


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=1.0.0", PROMETHEUS])
def test_open_metrics_on_request(server: HealthServer, metrics: Metrics, accept: str) -> None:
    metrics.update(COUNTERS)
    metrics.observe("batch_seconds", 1.0)
    metrics.observe("answer_seconds", 0.2, 10)
    _, text, content_type = get(server, "/metrics", Accept=accept)
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert text.endswith("# EOF\n")
    parsed = openmetrics_parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    assert {"streamdp_records", "streamdp_answer_seconds"} <= {family.name for family in parsed}


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("application/openmetrics-text", True),
        ("APPLICATION/OpenMetrics-text;version=1.0.0;charset=utf-8", True),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;version=rubbish", False),
        ("application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5", False),
        ("application/openmetrics-text;q=rubbish", False),
        ("text/plain;version=0.0.4", False),
        ("*/*", False),
        (",;=;,", False),
        ("", False),
    ],
)
def test_what_is_accepted(accept: str, wanted: bool) -> None:
    assert takes_openmetrics(accept) is wanted


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz", "/nowhere"])
def test_head_is_answered_as_get_is_without_a_body(server: HealthServer, path: str) -> None:
    found = []
    for method in ("GET", "HEAD"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        connection.request(method, path, headers={"Accept": PROMETHEUS})
        answer = connection.getresponse()
        found.append((answer.status, answer.getheader("Content-Type")))
        assert (len(answer.read()) == 0) is (method == "HEAD")
        assert int(answer.getheader("Content-Length") or 0) > 0
        connection.close()
    assert found[0] == found[1]


def test_scrapes_in_a_storm_are_all_answered(server: HealthServer, metrics: Metrics) -> None:
    done: list[int] = []

    def scrapes() -> None:
        done.extend(get(server, "/metrics", Accept=PROMETHEUS)[0] for _ in range(20))

    threads = [threading.Thread(target=scrapes) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(300):
        metrics.update(COUNTERS | {"records": number})
        metrics.observe("answer_seconds", 0.1)
        metrics.count("rejects", str(number))
    for thread in threads:
        thread.join(300)
    assert done == [200] * 160


def test_two_runs_share_nothing(metrics: Metrics) -> None:
    other = Metrics()
    metrics.count("rejects", "not_json")
    assert b"not_json" not in other.render()[0]


def test_readiness_flips(server: HealthServer, metrics: Metrics) -> None:
    assert get(server, "/readyz")[:2] == (503, "not ready\n")
    metrics.ready = True
    assert get(server, "/readyz")[:2] == (200, "ok\n")
    metrics.ready = False
    assert get(server, "/readyz")[0] == 503


def test_not_ready_while_the_source_is_down_or_something_is_in_the_way(
    metrics: Metrics, clock: Clock
) -> None:
    busy: list[str] = []
    server = HealthServer(metrics, port=0, clock=clock, busy=lambda: busy[0] if busy else None)
    metrics.ready = True
    metrics.source_up = False
    assert get(server, "/readyz")[:2] == (503, "source down\n")
    assert "streamdp_source_up 0.0" in get(server, "/metrics")[1]
    metrics.source_up = True
    assert get(server, "/readyz")[0] == 200
    assert "streamdp_source_up 1.0" in get(server, "/metrics")[1]
    busy.append("compiling")
    assert get(server, "/readyz")[:2] == (503, "compiling\n")
    server.close()


def test_gaps_and_what_is_skipped_are_served_from_the_beginning(
    server: HealthServer, metrics: Metrics
) -> None:
    assert "streamdp_gap_records_total 0.0" in get(server, "/metrics")[1]
    metrics.set("gap_records", 10)
    metrics.set("skipped", 20)
    assert "streamdp_gap_records_total 10.0" in get(server, "/metrics")[1]
    assert "streamdp_skipped_total 20.0" in get(server, "/metrics")[1]
    assert "streamdp_source_up" not in get(server, "/metrics")[1]


def test_what_leaves_a_store_is_counted(tmp_path: Path) -> None:
    sink, watch = StoreSink(str(tmp_path / "a.db"), bounds=Bounds(rows=10)), Measured()
    watch.opened(Mock(sinks=Mock(store=sink)))
    sink.write(Answers([assigned(seq) for seq in range(1500)], [], []))
    sink.flush(sync=False)
    assert b'streamdp_store_removed_total{table="records"} 1490.0' in watch.metrics.render()[0]
    sink.close()
    watch.close()


def test_liveness_goes_stale_and_returns(server: HealthServer, clock: Clock) -> None:
    clock.now += 1000
    assert get(server, "/livez")[:2] == (200, "ok\n")  # whatever the run waits for
    server.beat()
    clock.now += 60
    assert get(server, "/livez")[0] == 200
    clock.now += 0.5
    assert get(server, "/livez")[:2] == (503, "stalled\n")
    server.beat()
    assert get(server, "/livez")[0] == 200


@pytest.mark.parametrize("path", ["/", "/metrics/", "/healthz"])
def test_other_paths(server: HealthServer, path: str) -> None:
    assert get(server, path)[0] == 404


def test_queries_are_ignored_and_nothing_is_logged(
    server: HealthServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert get(server, "/livez?verbose")[0] == 200
    assert get(server, "/nowhere")[0] == 404
    assert capfd.readouterr() == ("", "")


def test_port_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HealthError) as caught:
            HealthServer(Metrics(), port=port)
    message = str(caught.value)
    assert f"port {port} " in message
    assert "--metrics-port" in message
    assert "\n" not in message
    assert caught.value.exit_code == 69


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("192.0.2.1", 0)])
def test_addresses_that_cannot_be_served(host: str, port: int) -> None:
    with pytest.raises(HealthError, match="--metrics-port"):
        HealthServer(Metrics(), host, port)


def test_closing_frees_the_port(metrics: Metrics) -> None:
    first = HealthServer(metrics, port=0)
    first.close()
    first.close()
    HealthServer(metrics, port=first.port).close()


def test_importing_costs_nothing() -> None:
    program = "import sys, streamdp.monitor.health; print('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_without_the_package_that_serves_a_run_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "streamdp.web.server", raising=False)
    with pytest.raises(HealthError, match="need one more package: pip install uvicorn"):
        Measured(at=("127.0.0.1", 0))


def test_metrics_are_only_read_and_on_one_connection_as_often_as_asked(server: HealthServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    found = []
    for method in ("GET", "POST", "GET"):
        connection.request(method, "/livez")
        answer = connection.getresponse()
        found.append((answer.status, answer.read()))
    connection.close()
    assert found == [(200, b"ok\n"), (405, b"metrics are only read\n"), (200, b"ok\n")]
