"""What stands in ``deploy/serve/`` fits the service, its alerts, and the tools that read it."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from alertmanager import Alertmanager
from commands import wait_for
from scraper.process import promtool
from serving import Served
from typer.main import get_command

from streamdp.cli.app import app
from streamdp.page.guard import HEALTH
from streamdp.run.interrupt import LIMIT
from streamdp.settings.alerts import Alerting
from streamdp.settings.io_options import Outputs, Service
from streamdp.settings.load import gather

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy" / "serve"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OPTIONS = {name for option in get_command(app).commands["serve"].params for name in option.opts}  # type: ignore[attr-defined]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
TOML = "/etc/streamdp/streamdp.toml"


def check_arguments(arguments: list[str], state: str) -> None:
    """They are those of ``serve``, from outside of a container, with state and store in a volume."""
    command, *given = arguments
    assert command == "serve"
    flags = dict(argument.partition("=")[::2] for argument in given)
    assert flags.keys() <= OPTIONS
    assert (flags["--host"], flags["--port"], flags["--config"]) == ("0.0.0.0", "8080", TOML)
    assert all(flags[name].startswith(f"{state}/") for name in ("--state", "--store"))
    structs = (Outputs, Service)
    names = {f"--{name.replace('_', '-')}": name for kind in structs for name in kind.__struct_fields__}
    chosen = {names[flag]: value for flag, value in flags.items() if flag in names}
    gather(structs, chosen, {}, str(DEPLOY / "streamdp.toml"))


def manifests() -> dict[str, dict[str, Any]]:
    """The manifests of Kubernetes, by kind."""
    found = [yaml.safe_load(path.read_text("utf-8")) for path in KUBERNETES]
    return {manifest["kind"]: manifest for manifest in found}


def test_the_containers_of_compose_fit_the_service() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["mem_limit"], name
        assert service["read_only"], name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), port
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    streamdp = services["streamdp"]
    check_arguments(streamdp["command"], "/state")
    assert f"./streamdp.toml:{TOML}:ro" in streamdp["volumes"]
    assert (DEPLOY / streamdp["build"]["context"]).resolve() == ROOT
    assert (ROOT / streamdp["build"]["dockerfile"]).exists()
    assert int(streamdp["stop_grace_period"].removesuffix("s")) > LIMIT
    (path,) = re.findall(r"127\.0\.0\.1:8080(/\w+)", streamdp["healthcheck"]["test"][-1])
    assert path in HEALTH  # which needs no token
    assert {"STREAMDP_TOKEN", "CHAT_URL"} == {*streamdp["environment"]}


def test_prometheus_asks_the_service_with_its_token_and_tells_the_alertmanager() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    services = COMPOSE["services"]
    (scrape,) = config["scrape_configs"]
    (target,) = scrape["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert services["streamdp"]["hostname"] == host  # other names are refused
    assert f"--port={port}" in services["streamdp"]["command"]
    secret = Path(scrape["authorization"]["credentials_file"])
    assert secret.parent == Path("/run/secrets")
    assert secret.name in services["prometheus"]["secrets"]
    assert COMPOSE["secrets"][secret.name] == {"environment": "STREAMDP_TOKEN"}
    (manager,) = config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert manager.split(":")[0] in services
    assert "../rules.yml:/etc/prometheus/rules.yml:ro" in services["prometheus"]["volumes"]
    checked = promtool("check", "config", "--syntax-only", str(DEPLOY / "prometheus.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_manifests_are_as_kubernetes_wants_them(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text("utf-8"))
    if manifest["kind"] not in ("PodMonitor", "Kustomization"):
        kubernetes_validate.validate(manifest, "1.31", strict=True)


def test_manifests_fit_each_other_and_the_service() -> None:
    kinds = manifests()
    assert {*kinds["Kustomization"]["resources"]} == {path.name for path in KUBERNETES} - {
        "kustomization.yaml"
    }
    stateful = kinds["StatefulSet"]["spec"]
    assert stateful["serviceName"] == kinds["Service"]["metadata"]["name"]
    assert kinds["Service"]["spec"]["clusterIP"] == "None"  # so that the pod has a full name
    pod = stateful["template"]
    labels = pod["metadata"]["labels"]
    assert kinds["Service"]["spec"]["selector"] == stateful["selector"]["matchLabels"] == labels
    monitor = kinds["PodMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"] == labels
    (container,) = pod["spec"]["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (claim,) = stateful["volumeClaimTemplates"]
    check_arguments(container["args"], mounts[claim["metadata"]["name"]])
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert {*mounts} == {*volumes, claim["metadata"]["name"]}
    settings = volumes["settings"]["configMap"]["name"]
    assert (settings, mounts["settings"]) == (kinds["ConfigMap"]["metadata"]["name"], str(Path(TOML).parent))
    (port,) = container["ports"]
    probes = [container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {probe["path"] for probe in probes} == {*HEALTH}
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert {probe["port"] for probe in probes} == {port["name"]} == {endpoint["port"]}
    secret = container["envFrom"][0]["secretRef"]["name"]
    assert endpoint["authorization"]["credentials"] == {"name": secret, "key": "STREAMDP_TOKEN"}
    assert {"targetLabel": "job", "replacement": "streamdp"} in endpoint["relabelings"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > LIMIT
    assert pod["spec"]["enableServiceLinks"] is False


def test_the_settings_of_the_config_map_are_read(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(manifests()["ConfigMap"]["data"]["streamdp.toml"])
    for path in (tmp_path / "f.toml", DEPLOY / "streamdp.toml"):
        alerts = gather((Alerting,), {}, {}, str(path))["tables"]
        assert [alert.name for alert in alerts] == ["StreamdpNewError", "StreamdpRate"]
        assert {alert.format for alert in alerts} == {"alertmanager"}


def test_the_unit_is_one_of_systemd(tmp_path: Path) -> None:
    text = (DEPLOY / "streamdp-serve.service").read_text("utf-8")
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(text)
    service = unit["Service"]
    program, command, *given = shlex.split(service["ExecStart"])
    assert command == "serve"
    assert {flag for flag in given if flag.startswith("--")} <= OPTIONS
    assert int(service["TimeoutStopSec"]) > LIMIT
    assert "MemoryDenyWriteExecute" not in service  # kernels are compiled
    cache = service["Environment"].partition("=")[2]
    assert not f"{cache}/".startswith(f"{service['WorkingDirectory']}/")
    if shutil.which("systemd-analyze") is None:
        return
    (tmp_path / "streamdp-serve.service").write_text(text.replace(program, sys.executable))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "streamdp-serve.service")],
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_what_stands_there_tells_a_real_alertmanager_of_a_new_error(tmp_path: Path) -> None:
    """The settings of compose, and its Alertmanager's, but for the addresses."""
    (tmp_path / "am").mkdir()
    with Alertmanager(tmp_path / "am", (DEPLOY / "alertmanager.yml").read_text("utf-8")) as manager:
        text = (DEPLOY / "streamdp.toml").read_text("utf-8").replace("http://alertmanager:9093", manager.url)
        (tmp_path / "streamdp.toml").write_text(text)
        made = Served(tmp_path, token="a-token-of-the-test", ready=False)
        head = {"authorization": "Bearer a-token-of-the-test"}
        wait_for(lambda: made.ask("GET", "/readyz")[0] == 200, made.process)
        usual = b"".join(b"2026-11-24 10:00:%d INFO user %d logged in\n" % (i, i) for i in range(10, 60))
        error = b"2026-11-24 10:01:00 ERROR disk sda is full\n"
        assert made.ask("POST", "/v1/records", usual, "text/plain")[0] == 401
        assert made.ask("POST", "/v1/records", usual, "text/plain", **head)[0] == 200
        assert made.ask("POST", "/v1/records", error, "text/plain", **head)[0] == 200
        wait_for(manager.alerts)
        assert made.stop() == 0
        (alert,) = manager.alerts()
    assert alert["labels"]["alertname"] == "StreamdpNewError"
    assert alert["generatorURL"] == f"http://127.0.0.1:8080/#cluster/{alert['labels']['story']}"
    assert tomllib.loads(text)["alert"][0]["link"] in alert["generatorURL"]
