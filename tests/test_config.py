from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
import snowballstemmer
from commands import fail, succeed
from hypothesis import given
from hypothesis import strategies as st

from streamdp.errors import ConfigError
from streamdp.settings import Settings
from streamdp.settings.load import (
    LAYERED,
    checked,
    differences,
    gather,
    model_settings,
    resumed,
)
from streamdp.settings.schema import Stem, setting_fields


def load(flags: dict[str, Any], environ: dict[str, str], path: str | None) -> Settings:
    """The settings that all places together say."""
    return Settings(**gather((Settings,), flags, environ, path))


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str | bytes, name: str = "streamdp.toml") -> str:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


def error(
    flags: dict[str, Any] | None = None, environ: dict[str, str] | None = None, path: str | None = None
) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flags or {}, environ or {}, path)
    assert caught.value.exit_code == 78
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_defaults_without_any_source() -> None:
    settings = load({}, {"PATH": "/bin"}, None)
    assert settings == Settings()
    assert settings.beam == 8
    assert settings.concentration is None
    assert settings.keep == ()


def test_each_layer_overrides_the_one_below() -> None:
    write("beam = 2\nretain = 20\nsnapshot-keep = 7\n")
    settings = load({"beam": 4, "seed": None}, {"STREAMDP_BEAM": "3", "STREAMDP_RETAIN": "30"}, None)
    assert (settings.beam, settings.retain, settings.snapshot_keep, settings.seed) == (4, 30, 7, 0)


def test_file_by_path_and_both_spellings() -> None:
    path = write('max-lateness = 5\nmax_ahead = 1.5\nkeep = ["a", "b"]\nurls = false\n', "other.toml")
    settings = load({}, {}, path)
    assert (settings.max_lateness, settings.max_ahead) == (5.0, 1.5)
    assert isinstance(settings.max_lateness, float)
    assert settings.keep == ("a", "b")
    assert settings.urls is False
    assert load({}, {}, None) == Settings()


def test_strings_of_environment_and_flags_are_converted() -> None:
    environ = {
        "STREAMDP_KEEP": "source, lang,",
        "STREAMDP_URLS": "false",
        "STREAMDP_CONCENTRATION": " 1e2 ",
        "STREAMDP_STEM": "none",
        "STREAMDP_SEED": "",
    }
    settings = load({"max-words": "500", "forget": 1, "keep": None}, environ, None)
    assert settings.keep == ("source", "lang")
    assert settings.urls is False
    assert settings.concentration == 100.0
    assert (settings.max_words, settings.forget, settings.stem, settings.seed) == (500, 1.0, "none", 0)
    assert load({"keep": ""}, environ, None).keep == ()
    assert load({"keep": ("a",)}, environ, None).keep == ("a",)


NUMBERS = [".7", "5.", "+5", "1e3", "1E+2", " 3 ", "1_000", "007", "-0.", "\t2.5\n"]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_read_as_python_reads_them(text: str) -> None:
    wanted = float(text) or 0.0
    name = "concentration" if wanted else "max_lateness"
    assert getattr(load({name: text}, {}, None), name) == wanted
    assert getattr(load({}, {f"STREAMDP_{name.upper()}": text}, None), name) == wanted
    write(f"{name} = {json.dumps(text)}\n")
    assert getattr(load({}, {}, None), name) == wanted
    if wanted.is_integer() and wanted > 0:
        assert load({"retain": text}, {}, None).retain == wanted


@pytest.mark.parametrize(
    "text", [".", "5..", "0x10", "1__0", "1,5", "nan", "inf", "1e999", "-.7", "5. 1", "e3"]
)
def test_what_is_no_number_is_refused_as_it_was_written(text: str) -> None:
    told = f"{text!r} is not allowed, must be a finite number, above 0, or auto"
    assert error({"concentration": text}) == f"flag --concentration: {told}"
    assert error(environ={"STREAMDP_CONCENTRATION": text}).endswith(told)


def test_auto_sets_back_what_a_lower_layer_set() -> None:
    write('concentration = 3.0\ndecay = "window"\n')
    assert load({"concentration": "auto", "decay": "auto"}, {}, None) == Settings()
    assert load({}, {"STREAMDP_CONCENTRATION": "auto"}, None).concentration is None
    write('slack = "auto"\nprior = "auto"\n')
    assert load({}, {}, None) == Settings()


def test_unknown_names_point_to_the_nearest() -> None:
    write("max-latenes = 3\n")
    assert error() == "streamdp.toml, key max-latenes: no such setting, did you mean max_lateness?"
    write("")
    assert error(environ={"STREAMDP_BEEM": "3"}) == (
        "environment variable STREAMDP_BEEM: no such setting, did you mean STREAMDP_BEAM?"
    )
    assert error({"snapshot_evry": 3}) == (
        "flag --snapshot-evry: no such setting, did you mean --snapshot-every?"
    )
    assert error({"qqqq": None}) == "flag --qqqq: no such setting"


def test_variables_that_are_no_settings() -> None:
    assert load({}, {"STREAMDP_TEST_SLOW": "x", "STREAMDP_CACHE_DIR": "/x"}, None) == Settings()
    assert "STREAMDP_CACHE_DIRS" in error(environ={"STREAMDP_CACHE_DIRS": "x"})
    assert "STREAMDP_TESTS" in error(environ={"STREAMDP_TESTS": "x"})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("beam = 0", "0 is not allowed, must be a whole number, at least 1 and at most 256"),
        ('beam = "16"', "'16' is not allowed, must be a whole number, at least 1 and at most 256"),
        ("beam = 16.0", "16.0 is not allowed, must be a whole number, at least 1 and at most 256"),
        ("beam = true", "True is not allowed, must be a whole number, at least 1 and at most 256"),
        ("discount = 1.0", "1.0 is not allowed, must be a finite number, at least 0 and below 1, or auto"),
        ("slack = inf", "inf is not allowed, must be a finite number, above 0, or auto"),
        ("max_lateness = nan", "nan is not allowed, must be a finite number, at least 0"),
        ('urls = "no"', "'no' is not allowed, must be true or false"),
        ('prior = "CRP"', "'CRP' is not allowed, must be one of auto, crp, distance-dependent"),
        ("keep = [1]", "[1] is not allowed, must be a list of names"),
        ('text_field = ""', "'' is not allowed, must be a name"),
        ("seed = 99999999999999999999999", "at least 0 and at most 4294967295"),
        ("id_field = 1979-05-27", "datetime.date(1979, 5, 27) is not allowed, must be a name"),
    ],
)
def test_wrong_values_in_the_file(line: str, told: str) -> None:
    write(line + "\n")
    message = error()
    assert message.startswith(f"streamdp.toml, key {line.split()[0]}: ")
    assert told in message


def test_wrong_values_elsewhere() -> None:
    assert error(environ={"STREAMDP_FORGET": "0"}) == (
        "environment variable STREAMDP_FORGET: '0' is not allowed, "
        "must be a finite number, above 0 and at most 1, or auto"
    )
    assert error({"beam": "many"}).startswith("flag --beam: 'many' is not allowed")
    assert error({"max_ahead": "inf"}).startswith("flag --max-ahead: 'inf' is not allowed")
    assert len(error({"beam": "9" * 10_000 + "\n\n"})) < 200


def test_a_wrong_value_is_told_even_when_overridden() -> None:
    write("beam = 0\n")
    assert "streamdp.toml, key beam" in error({"beam": 3})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("beam = 1\nseed 2\n", "streamdp.toml, line 2: not TOML: "),
        ("beam = 1\nbeam = 2", "streamdp.toml, line 2: not TOML: "),
        ("beam = 1\nbeam = 2\nseed = 1\n", "streamdp.toml, line 2: not TOML: "),
        ("keep = [\n", "streamdp.toml, line 1: not TOML: "),
        (b"beam = 1\n# \xff\n", "streamdp.toml, line 2: not UTF-8"),
        ("[search]\nbeam = 1\n", "streamdp.toml, key search: is a table"),
        ('"be\\nam" = 1\n', "streamdp.toml, key 'be\\nam': no such setting"),
        ("max-words = 1\nmax_words = 2\n", "streamdp.toml, key max_words: set twice"),
    ],
)
def test_broken_files(text: str | bytes, told: str) -> None:
    write(text)
    assert error().startswith(told)


def test_unreadable_files() -> None:
    assert error(path="missing.toml") == "missing.toml: cannot be read: No such file or directory"
    Path("streamdp.toml").mkdir()
    assert error() == "streamdp.toml: cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"beam": 0}, "setting beam: 0 is not allowed, must be a whole number, at least 1 and at most 256"),
        ({"beam": 16.0}, "setting beam: 16.0 is not allowed"),
        ({"beam": True}, "setting beam: True is not allowed"),
        ({"beam": None}, "setting beam: None is not allowed"),
        ({"beam": "16"}, "setting beam: '16' is not allowed"),
        ({"discount": 1.0}, "setting discount: 1.0 is not allowed"),
        ({"slack": math.inf}, "setting slack: inf is not allowed"),
        ({"max_lateness": np.float64("nan")}, "setting max_lateness: nan is not allowed"),
        ({"seed": np.int64(-1)}, "setting seed: -1 is not allowed"),
        ({"prior": "CRP"}, "setting prior: 'CRP' is not allowed, must be one of auto, crp"),
        ({"urls": 1}, "setting urls: 1 is not allowed, must be true or false"),
        ({"scale": np.ones(100)}, "setting scale: array([1., 1., 1., 1.,"),
        ({"text_field": ""}, "setting text_field: '' is not allowed, must be a name"),
    ],
)
def test_settings_from_python_are_checked(made: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(Settings(**made))
    assert caught.value.exit_code == 78
    assert caught.value.message.startswith(told)
    assert "\n" not in caught.value.message


def test_settings_from_python_become_plain() -> None:
    made = checked(
        Settings(
            beam=np.int64(4),
            concentration=np.float32(0.5),
            max_ahead=3,
            keep=["a"],  # type: ignore[arg-type]
            slack="auto",  # type: ignore[arg-type]
        )
    )
    assert made == Settings(beam=4, concentration=0.5, max_ahead=3.0, keep=("a",))
    assert [type(x) for x in (made.beam, made.concentration, made.max_ahead)] == [int, float, float]
    assert checked(made) == made
    assert checked(Settings()) == Settings()


def test_fields_describe_themselves() -> None:
    fields = setting_fields()
    assert tuple(field.name for field in fields) == Settings.__struct_fields__
    for field in fields:
        assert field.group in {"input", "text", "model", "search", "time", "engine", "log"}
        assert field.description
        assert "\n" not in field.description
        assert msgspec.convert(field.default, field.type) == field.default
    by_name = {field.name: field for field in fields}
    assert by_name["max_words"].flag == "--max-words"
    assert by_name["max_words"].variable == "STREAMDP_MAX_WORDS"


def test_stemmers_exist() -> None:
    assert set(get_args(Stem)) - {"auto", "none"} <= set(snowballstemmer.algorithms())


FREE = {
    "keep",
    "truth_field",
    "params",
    "snapshot_every",
    "snapshot_seconds",
    "snapshot_keep",
    "idle_timeout",
}


def test_a_state_goes_on_with_its_settings_where_none_are_written() -> None:
    before = model_settings(Settings(beam=16, urls=False, keep=("a",)))
    settings, changed, told = resumed(Settings(beam=4, retain=9), {"snapshot_keep"}, before)
    assert (settings.beam, settings.urls, settings.keep, settings.retain) == (16, False, (), 5000)
    assert (changed, told) == ([], ["urls false", "beam 16"])
    settings, changed, told = resumed(Settings(beam=4), {"beam"}, before)
    assert (changed, told) == (["beam: was 16, is 4"], ["urls false"])
    settings, changed, told = resumed(Settings(beam=8, seed=3), {"beam", "seed"}, {"beam": 8, "gone": 1})
    assert (settings.seed, told) == (3, [])
    assert changed == ["seed: was 0, is 3", "gone: was 1, is no setting"]


def test_a_yes_or_no_is_a_pair_of_flags_that_take_no_value(tmp_path: Path) -> None:
    switches = [each.name for each in setting_fields() if isinstance(each.default, bool)]
    assert {"normalise", "params", "urls", "mentions", "hashtags"} <= set(switches)
    for name in switches:
        more = () if name != "params" else ("--likelihood", "template")
        assert f"\n{name} = true\n" in shown(tmp_path, f"--{name.replace('_', '-')}", *more)
        assert f"\n{name} = false\n" in shown(tmp_path, f"--no-{name.replace('_', '-')}", **{name: "true"})
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    for _ in range(2):  # the second finds the output of the first
        succeed(tmp_path, "consume", "in.txt", "--overwrite", "--output", "out", "--no-follow")
    assert fail(tmp_path, "consume", "in.txt", "--output", "out", "--no-overwrite", overwrite="true")[0] == 73


def shown(folder: Path, *options: str, **settings: str) -> str:
    """The settings that are in force, before which each says whether it is at its default."""
    return succeed(folder, "check", *options, **settings).decode().replace("\n# ", "\n")


@pytest.mark.parametrize(
    "written",
    [("--normalise", "true"), ("--normalise", "False"), ("--normalise=true",), ("--no-normalise=yes",)],
)
@pytest.mark.parametrize("command", [("consume",), ("fit",), ("check",), ("serve",)])
def test_a_value_behind_a_switch_is_refused_in_one_line(
    tmp_path: Path, written: tuple[str, ...], command: tuple[str, ...]
) -> None:
    flag = written[0].partition("=")[0]
    line = f"streamdp: {flag} takes no value: write --normalise for yes, --no-normalise for no\n"
    assert fail(tmp_path, *command, *written, "in.jsonl") == (64, line)


def test_every_option_of_consume_may_stand_in_the_environment_or_the_file() -> None:
    write('topic = "news"\nuntil = "end"\nbeam = 3\n')
    environ = {"STREAMDP_OUTPUT": "out", "STREAMDP_PAGE": "80", "STREAMDP_FOLLOW": "true"}
    chosen = gather(LAYERED, {"topic": "more", "state": None}, environ, None)
    assert chosen == {
        "topic": "more", "until": "end", "beam": 3, "output": "out", "page": 80, "follow": True
    }  # fmt: skip
    assert gather((Settings,), {}, environ, None) == {"beam": 3}
    assert error(environ={"STREAMDP_PAGE": "-1"}).startswith("environment variable STREAMDP_PAGE: '-1'")
    write('until = "noon"\n')
    assert error() == "streamdp.toml, key until: 'noon' is not allowed, must be one of end, never"


def test_model_settings_leave_out_what_may_change() -> None:
    base = model_settings(Settings())
    assert base == model_settings(Settings(keep=("a",), snapshot_every=1, snapshot_keep=9))
    assert set(base) == set(Settings.__struct_fields__) - FREE
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(base)) == base


def test_differences_are_readable() -> None:
    old = model_settings(Settings(beam=16, urls=False))
    new = model_settings(Settings(concentration=2.5))
    assert differences(old, new) == [
        "urls: was false, is true",
        "concentration: was auto, is 2.5",
        "beam: was 16, is 8",
    ]
    assert differences(new, new) == []


def test_settings_that_one_side_does_not_know() -> None:
    new = model_settings(Settings())
    old = {name: value for name, value in new.items() if name != "beam"}
    assert differences(old, new) == []
    assert differences(old, {**new, "beam": 3}) == ["beam: was 8, is 3"]
    assert differences({**new, "gone": 3}, new) == ["gone: was 3, is no setting"]


@given(beam=st.integers(-5, 300), discount=st.floats() | st.none())
def test_what_loads_is_in_range(beam: int, discount: float | None) -> None:
    valid = 1 <= beam <= 256 and (discount is None or 0 <= discount < 1)
    flags = {"beam": beam, "discount": discount}
    if valid:
        assert (load(flags, {}, None).beam, load(flags, {}, None).discount) == (beam, discount)
    else:
        with pytest.raises(ConfigError):
            load(flags, {}, None)
