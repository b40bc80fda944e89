from __future__ import annotations

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from streamdp.monitor.health import HealthError, HealthServer
from streamdp.monitor.metrics import Metrics

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
}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(clock=clock)


@pytest.fixture
def server(metrics: Metrics, clock: Clock) -> Iterator[HealthServer]:
    server = HealthServer(metrics, port=0, clock=clock)
    yield server
    server.close()


def get(server: HealthServer, path: str, **headers: str) -> tuple[int, str, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
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
    metrics.update(COUNTERS, lag=250, adapted=(40.5, 320.0))
    metrics.rejected("not_json")
    metrics.rejected("not_json")
    metrics.rejected("no_text")
    metrics.observe_batch(2.0)
    metrics.observe_advance(2e-4)
    metrics.snapshot_written()
    clock.now += 12.5
    found = scrape(server)
    expected = {
        "streamdp_records_total": 1_000_000,
        "streamdp_rejects_total[not_json]": 2,
        "streamdp_rejects_total[no_text]": 1,
        "streamdp_snapshots_total": 1,
        "streamdp_clusters_created_total": 19,
        "streamdp_clusters_closed_total": 15,
        "streamdp_clusters_retired_total": 12,
        "streamdp_second_looks_total": 40,
        "streamdp_records_moved_total": 6,
        "streamdp_clusters_merged_total": 2,
        "streamdp_lag_records": 250,
        "streamdp_concentration": 40.5,
        "streamdp_decay_scale": 320.0,
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


def test_totals_are_the_engines_even_where_they_go_back(server: HealthServer, metrics: Metrics) -> None:
    metrics.update(COUNTERS, lag=None)
    metrics.update(COUNTERS | {"records": 900_000}, lag=None)
    assert scrape(server)["streamdp_records_total"] == 900_000


def test_what_is_not_known_is_not_served(server: HealthServer, metrics: Metrics) -> None:
    found = scrape(server)
    assert not {"streamdp_records_total", "streamdp_snapshot_age_seconds"} & found.keys()
    assert found["streamdp_snapshots_total"] == 0
    metrics.update({"held_back": 0}, lag=None)  # an engine before its first record
    found = scrape(server)
    assert found["streamdp_records_total"] == 0
    assert not {"streamdp_lag_records", "streamdp_vocabulary_words"} & found.keys()


def test_age_starts_again_with_each_snapshot(server: HealthServer, metrics: Metrics, clock: Clock) -> None:
    for waited in (30.0, 4.0):
        metrics.snapshot_written()
        clock.now += waited
        assert scrape(server)["streamdp_snapshot_age_seconds"] == waited


def test_open_metrics_on_request(server: HealthServer, metrics: Metrics) -> None:
    metrics.update(COUNTERS, lag=1)
    _, text, content_type = get(server, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    parsed = openmetrics_parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    assert {"streamdp_records", "streamdp_lag_records"} <= {family.name for family in parsed}


def test_two_runs_share_nothing(metrics: Metrics) -> None:
    other = Metrics()
    metrics.rejected("not_json")
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


def test_gaps_are_counted_once(server: HealthServer, metrics: Metrics) -> None:
    for total in (0, 3, 3, 10):
        metrics.passed(total)
    assert "streamdp_gap_records_total 10.0" in get(server, "/metrics")[1]
    assert "streamdp_source_up" not in get(server, "/metrics")[1]


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
