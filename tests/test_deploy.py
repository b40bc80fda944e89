"""What stands in ``deploy/`` fits the program, and is what the tools that read it take."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from commands import loaded
from packaging.requirements import Requirement
from scraper.process import promtool
from typer.main import get_command

from streamdp.cli.app import app
from streamdp.engine import Engine
from streamdp.monitor.health import HealthServer
from streamdp.monitor.metrics import Metrics
from streamdp.monitor.table import METRICS as TABLE
from streamdp.monitor.table import Metric
from streamdp.run.interrupt import LIMIT
from streamdp.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OPTIONS = {name for option in get_command(app).commands["consume"].params for name in option.opts}  # type: ignore[attr-defined]
METRICS = {metric.served for metric in TABLE.values()}


def rules() -> list[dict[str, Any]]:
    found = yaml.safe_load((DEPLOY / "rules.yml").read_text("utf-8"))["groups"]
    return [rule for group in found for rule in group["rules"]]


def expressions(path: Path) -> Iterator[str]:
    for panel in json.loads(path.read_text("utf-8"))["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def test_the_rules_are_sound_and_do_what_they_should() -> None:
    for command in (("check", "rules", "rules.yml"), ("check", "config", "prometheus.yml")):
        checked = promtool(*command[:2], str(DEPLOY / command[2]))
        assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = promtool("test", "rules", str(DEPLOY / "rules_test.yml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_rule_is_tested() -> None:
    tests = (DEPLOY / "rules_test.yml").read_text("utf-8")
    for rule in rules():
        fires = f"alertname: {rule.get('alert')}\n        exp_alerts:\n          - exp_labels"
        assert fires in tests or (f"expr: {rule.get('record')}" in tests or f"({rule.get('record')}" in tests)


def test_every_alert_is_explained() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    told = re.findall(r"^\| `(Streamdp\w+)` \| .+ \| .+ \|$", page, re.M)
    assert told == [rule["alert"] for rule in rules() if "alert" in rule]


def test_every_metric_is_served_and_none_that_is_not_in_the_table() -> None:
    metrics = Metrics()
    engine = Engine(Settings())
    engine.advance(["storm over the coast"])
    metrics.update({**engine.counters(), **engine.levels()})
    metrics.source_up = True
    metrics.snapshot_written(0.1, 10)
    for name, metric in TABLE.items():
        if metric.labels:
            metrics.set(name, {tuple(metric.labels.split()): 1})
        elif name in ("doubts", "conflicts"):  # the run's own
            metrics.set(name, 1)
    text = metrics.render()[0].decode()
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE streamdp_")} == METRICS


def test_what_the_script_makes_is_up_to_date() -> None:
    made = dict(loaded(DEPLOY / "dashboards.py").files())
    assert {*DASHBOARDS} < {*made}
    assert {path: path.read_text("utf-8") for path in made} == made


def test_a_metric_is_a_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is served, described and shown in its panel."""
    toys = Metric("gauge", "toys", "short", "Live clusters", "thrown", "", "Toys on the floor.")
    monkeypatch.setitem(TABLE, "toys", toys)
    metrics = Metrics()
    metrics.update({"thrown": 3})
    assert "# HELP streamdp_toys Toys on the floor.\n" in metrics.render()[0].decode()
    assert "\nstreamdp_toys 3.0\n" in metrics.render()[0].decode()
    script = loaded(DEPLOY / "dashboards.py")
    assert "| `streamdp_toys` | gauge | toys on the floor |\n" in dict(script.files())[script.PAGE]
    (panel,) = (each for each in script.model()["Clusters"] if each["title"] == "Live clusters")
    assert panel["description"] == "Live clusters of the best hypothesis. Toys on the floor."
    assert panel["targets"][1]["expr"] == 'sum(streamdp_toys{job=~"$job", instance=~"$instance"})'


def test_the_panels_of_the_table_are_there() -> None:
    titles = {panel["title"] for path in DASHBOARDS for panel in json.loads(path.read_text())["panels"]}
    assert {metric.panel for metric in TABLE.values()} - {""} <= titles


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_works_with_any_prometheus(path: Path) -> None:
    board = json.loads(path.read_text("utf-8"))
    assert board["uid"] == path.stem
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids) > 10
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance"]
    for panel in board["panels"]:
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["datasource"]["uid"] == "${datasource}"
            assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


def test_the_documentation_names_only_what_is_served() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", DEPLOY / "rules_test.yml"]
    found = {name for page in pages for name in re.findall(r"\bstreamdp_\w+", page.read_text("utf-8"))}
    others = {"streamdp_connectors", "streamdp_redis", "streamdp_alerts_delivered"}  # of Python, and a prefix
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in found} - others <= METRICS


def test_only_what_is_served_is_asked_for() -> None:
    """And every metric is asked for somewhere, but for those that another of the kind stands for."""
    asked = [expression for path in DASHBOARDS for expression in expressions(path)]
    asked += [rule["expr"] for rule in rules()]
    found = set(re.findall(r"\bstreamdp_\w+", " ".join(asked)))
    served = {re.sub(r"_(bucket|count|sum)$", "", name) for name in found}
    assert served <= METRICS
    assert METRICS - served == {"streamdp_build_info"}  # it names jobs and instances


def test_the_containers_of_compose_fit_the_program() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["mem_limit"], name
        assert service.get("read_only") or service["image"].startswith("apache/kafka"), name
        for volume in service.get("volumes", ()):
            if volume.startswith("."):
                assert (DEPLOY / volume.split(":")[0]).exists(), volume
    streamdp = services["streamdp"]
    check_arguments(streamdp["command"], 9464)
    assert "127.0.0.1:9464:9464" in streamdp["ports"]
    assert int(streamdp["stop_grace_period"].removesuffix("s")) > LIMIT
    targets = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    assert targets[0]["static_configs"][0]["targets"] == ["streamdp:9464"]
    produce = (DEPLOY / "produce_demo.py").read_text("utf-8")
    assert all(flag in produce for flag in services["demo"]["command"] if flag.startswith("--"))


def check_arguments(arguments: list[str], port: int) -> None:
    command, *given = arguments
    assert command == "consume"
    flags = dict(argument.partition("=")[::2] for argument in given)
    assert flags.keys() <= OPTIONS
    assert int(flags["--metrics-port"]) == port
    assert flags["--metrics-host"] == "0.0.0.0"
    assert "--state" in flags


def test_grafana_is_given_what_is_there() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    mounted = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    provisioning = DEPLOY / "grafana" / "provisioning"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "streamdp.yaml").read_text())["providers"]
    assert mounted["./grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./grafana/provisioning"] == "/etc/grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in services


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_manifests_are_as_kubernetes_wants_them(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text("utf-8"))
    if manifest["kind"] in ("PodMonitor", "Kustomization"):
        return  # no kinds of Kubernetes itself; the next test compares what they name
    kubernetes_validate.validate(manifest, "1.31", strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest | {"specs": {}}, "1.31", strict=True)


def test_manifests_fit_each_other_and_the_program() -> None:
    kinds = {
        manifest["kind"]: manifest for manifest in map(yaml.safe_load, (p.read_text() for p in KUBERNETES))
    }
    files = {path.name for path in KUBERNETES}
    assert set(kinds["Kustomization"]["resources"]) == files - {"kustomization.yaml"}
    stateful = kinds["StatefulSet"]["spec"]
    assert stateful["serviceName"] == kinds["Service"]["metadata"]["name"]
    pod = stateful["template"]
    labels = pod["metadata"]["labels"]
    assert kinds["Service"]["spec"]["selector"] == stateful["selector"]["matchLabels"] == labels
    assert kinds["PodMonitor"]["spec"]["selector"]["matchLabels"] == labels
    (container,) = pod["spec"]["containers"]
    (port,) = container["ports"]
    check_arguments(container["args"], port["containerPort"])
    (endpoint,) = kinds["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == port["name"]
    assert {"targetLabel": "job", "replacement": "streamdp"} in endpoint["relabelings"]
    health = HealthServer(Metrics(), port=0)
    try:
        probes = [container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
        assert [probe["path"] for probe in probes] == ["/livez", "/livez", "/readyz"]
        for path in (endpoint["path"], *(probe["path"] for probe in probes)):
            assert health.answer(path, "")[0] != 404
        assert {probe["port"] for probe in probes} == {port["name"]}
    finally:
        health.close()
    assert pod["spec"]["terminationGracePeriodSeconds"] > LIMIT
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (claim,) = stateful["volumeClaimTemplates"]
    state = mounts[claim["metadata"]["name"]]
    given = dict(argument.partition("=")[::2] for argument in container["args"])
    cache = {entry["name"]: entry["value"] for entry in container["env"]}["STREAMDP_CACHE_DIR"]
    assert given["--state"].startswith(f"{state}/")
    assert not f"{cache}/".startswith(f"{state}/")  # whoever may write the state must not write machine code
    assert cache in mounts.values()
    user = re.search(r"--uid (\d+)", (DEPLOY / "Dockerfile").read_text("utf-8"))
    assert user is not None
    assert pod["spec"]["securityContext"]["runAsUser"] == int(user[1])


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-build.txt"])
def test_what_the_image_installs_is_locked(name: str) -> None:
    """Every package that is needed is named by one version and the checksums of its files."""
    entries = (DEPLOY / name).read_text("utf-8").replace("\\\n", " ").splitlines()
    locked: dict[str, str] = {}
    for entry in entries:
        if entry and not entry.startswith("#"):
            found = re.fullmatch(r"([a-z0-9-]+)==(\S+)((?: +--hash=sha256:[0-9a-f]{64})+) *", entry)
            assert found is not None, entry
            locked[found[1]] = found[2]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = project["project"]["dependencies"] + extras["kafka"] + extras["metrics"] + extras["page"]
    if "build" in name:
        wanted = project["build-system"]["requires"]
    for line in wanted:
        needed = Requirement(line)
        assert needed.specifier.contains(locked[needed.name]), line
    image = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert f"pip install --require-hashes -r /src/deploy/{name}" in image
    assert f"!deploy/{name}\n" in (ROOT / ".dockerignore").read_text("utf-8")
    installed = re.findall(r"pip install (.+?)(?: \\)?$", image, re.M)
    assert all(each.startswith(("--require-hashes ", "--no-deps ")) for each in installed)


def test_the_image_serves_where_it_is_asked() -> None:
    image = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert "EXPOSE 9464" in image
    assert "127.0.0.1:9464/livez" in image
    (entry,) = re.findall(r"^ENTRYPOINT (.+)$", image, re.M)
    assert shlex.split(json.loads(entry)[0]) == ["streamdp"]
