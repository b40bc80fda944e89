"""Embeddings of texts: tables of token vectors, and functions of the user's own."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import fail, succeed
from hypothesis import given, settings
from hypothesis import strategies as st
from model2vec import StaticModel
from tables_of_vectors import WORDS, forget_models, table, write_folder, write_package

from streamdp.encode.embedding import EmbeddingError, FunctionEmbedding, TableEmbedding, load_embedding
from streamdp.errors import ConfigError

TEXTS = [
    "refund my money",
    "",
    "nothing of this is known",
    "Parcel lost, parcel late, lost parcel",
    "login " * 40 + "password",
    "half \ud800 of a pair is late",
]


@pytest.fixture(autouse=True)
def fresh() -> None:
    forget_models()


def mean_of(text: str, vectors: np.ndarray) -> np.ndarray:
    """The mean of its known words' vectors, in plain terms."""
    known = [
        WORDS.index(word)
        for word in text.lower().replace(",", " ").split()
        if word in WORDS and word != "[UNK]"
    ]
    return vectors[known].mean(axis=0) if known else np.full(vectors.shape[1], np.nan)


@pytest.fixture(scope="module")
def embedding(tmp_path_factory: pytest.TempPathFactory) -> TableEmbedding:
    return TableEmbedding(str(write_folder(tmp_path_factory.mktemp("tables") / "tiny")))


def test_a_text_has_the_mean_of_its_known_tokens(embedding: TableEmbedding) -> None:
    rows = embedding.rows(TEXTS)
    assert rows.dtype == np.float32
    assert (embedding.dimension, embedding.from_function) == (4, False)
    np.testing.assert_allclose(rows, [mean_of(text, table()) for text in TEXTS], rtol=1e-5)
    assert np.isnan(rows[1:3]).all()
    assert embedding.rows([]).shape == (0, 4)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([*WORDS, "strange", ","]), max_size=9).map(" ".join), min_size=1, max_size=9
    ),
    st.data(),
)
def test_a_vector_does_not_depend_on_its_batch(
    embedding: TableEmbedding, texts: list[str], data: st.DataObject
) -> None:
    whole = embedding.rows(texts)
    cut = data.draw(st.integers(0, len(texts)))
    parts = np.concatenate([embedding.rows(texts[:cut]), embedding.rows(texts[cut:])])
    alone = np.concatenate([embedding.rows([text]) for text in texts])
    assert whole.tobytes() == parts.tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    ("vectors", "more", "config"),
    [
        (table(), {}, {"normalize": True}),
        (table().astype(np.float16), {}, {}),
        (np.round(20 * table()).astype(np.int8), {}, {}),
        (table(), {"weights": np.linspace(0.5, 2, len(WORDS))}, {}),
        (table()[:3], {"mapping": np.arange(len(WORDS)) % 3, "weights": np.linspace(1, 2, len(WORDS))}, {}),
        (table(), {}, {"max_length": 2}),
        (table(), {}, {"max_length": None}),
    ],
)
def test_vectors_are_those_of_model2vec(
    tmp_path: Path, vectors: np.ndarray, more: dict[str, np.ndarray], config: dict[str, object]
) -> None:
    folder = write_folder(tmp_path / "model", vectors, config, **more)
    theirs = StaticModel.from_pretrained(folder).encode(TEXTS[:5]).astype(float)
    ours = load_embedding(str(folder)).rows(TEXTS[:5])
    precision = 2e-3 if vectors.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(np.nan_to_num(ours), theirs, rtol=precision, atol=precision)


def test_the_hash_is_of_table_and_tokenizer(tmp_path: Path) -> None:
    first, same = (load_embedding(str(write_folder(tmp_path / name))).digest for name in "ab")
    assert first == same != ""
    changed = table()
    changed[3, 1] += 1e-3
    for i, (vectors, config) in enumerate([(changed, {}), (table(), {"normalize": True})]):
        assert load_embedding(str(write_folder(tmp_path / f"{i}", vectors, config))).digest != first
    other = write_folder(tmp_path / "c")
    tokens = other / "tokenizer.json"
    tokens.write_text(tokens.read_text("utf-8").replace("parcel", "packet"), "utf-8")
    assert load_embedding(str(other)).digest != first


def test_a_package_is_read_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_package(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    embedding = load_embedding("wordllama")
    assert embedding.dimension == 4
    expected = [mean_of(text, table().astype(np.float16).astype(np.float32)) for text in TEXTS]
    np.testing.assert_allclose(embedding.rows(TEXTS), expected, rtol=1e-5)
    assert "wordllama" not in sys.modules
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"


def test_what_is_no_table_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: object, *parts: str) -> None:
        with pytest.raises(ConfigError) as raised:
            load_embedding(str(name))
        message = raised.value.message
        assert message.startswith("embed: ")
        assert "\n" not in message
        assert [part for part in parts if part not in message] == []

    refused("./nowhere", "there is no folder ./nowhere")
    refused("nothing", "wordllama", "MODULE:FUNCTION")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "holds no table")
    cut = write_folder(tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:99])
    refused(cut, "holds no table")
    refused(write_folder(tmp_path / "short", table()[:5]), "number of vectors (5)")
    broken = table()
    broken[2, 2] = np.inf
    refused(write_folder(tmp_path / "broken", broken), "damaged")
    refused(write_folder(tmp_path / "beyond", table()[:3], mapping=np.arange(len(WORDS))), "damaged")
    refused(write_folder(tmp_path / "few", mapping=np.arange(3)), "damaged")
    refused("nowhere:function", "No module named 'nowhere'")
    refused("os:nothing", "no attribute 'nothing'")
    refused("os:sep", "os:sep is no function")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    forget_models()
    refused("wordllama", "pip install wordllama")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    refused(cut, "pip install '.[embed]'")


def test_a_function_of_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def lengths(texts):\n    return [[len(text), 1] for text in texts]\n\n\nraised = 1 / 0\n", "utf-8"
    )
    (tmp_path / "in.txt").write_text("one\nanother\n", "utf-8")
    code, line = fail(tmp_path, "check", "in.txt", "--embed", "mine:lengths", process=True)
    assert (code, line) == (78, "streamdp: embed: ZeroDivisionError: division by zero\n")
    (tmp_path / "ours.py").write_text(
        "def lengths(texts):\n    return [[len(text), 1] for text in texts]\n", "utf-8"
    )
    said = succeed(tmp_path, "check", "in.txt", "--embed", "ours:lengths", process=True).decode()
    assert "beside them their meaning, by ours:lengths" in said


def test_a_function_is_checked() -> None:
    def returning(found: Any) -> FunctionEmbedding:
        return FunctionEmbedding("mine:embed", lambda texts: found)

    assert returning([[1, 2]]).dimension == 2
    asked: list[list[str]] = []
    kept = FunctionEmbedding("mine:embed", lambda texts: asked.append(texts) or np.eye(len(texts), 3))
    assert kept.rows(("a", "b")).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert kept.dimension == 3
    assert asked == [["a", "b"]]  # what the dimension is was known
    assert kept.rows([]).shape == (0, 3)
    bad = returning([[1.0, float("nan")], [1e300, 0.0]]).rows(["a", "b"])
    assert np.isnan(bad[0, 1])
    assert np.isinf(bad[1, 0])
    for found, why in (
        ([[1.0]], "was given 2 texts, and returned an array of shape (1, 1)"),
        ([1.0, 2.0], "shape (2,)"),
        (np.zeros((2, 0)), "shape (2, 0)"),
        (None, "mine:embed"),
        ([[1.0], [1.0, 2.0]], "failed: ValueError"),
        ([["a"], ["b"]], "failed: ValueError"),
    ):
        with pytest.raises(EmbeddingError) as raised:
            returning(found).rows(["a", "b"])
        assert why in raised.value.message
        assert "\n" not in raised.value.message
    grows = FunctionEmbedding("mine:embed", lambda texts: np.zeros((len(texts), len(texts))))
    grows.rows(["a"])
    with pytest.raises(EmbeddingError, match="returned vectors of 2 numbers, and of 1 before"):
        grows.rows(["a", "b"])

    def fails(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no answer\nfrom the service")

    with pytest.raises(
        EmbeddingError, match=r"^embed: mine:embed failed: ConnectionError: no answer from the"
    ):
        FunctionEmbedding("mine:embed", fails).rows(["a"])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of Hugging Face with one model, and no network."""
    hub = tmp_path / "hub"
    write_folder(hub / "models--me--tiny" / "snapshots" / "abc")
    (hub / "models--me--tiny" / "refs").mkdir()
    (hub / "models--me--tiny" / "refs" / "main").write_text("abc", "utf-8")
    monkeypatch.setenv("HF_HUB_CACHE", str(hub))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def test_a_name_of_which_no_copy_is_here_is_one_line_without_a_network(cache: Path) -> None:
    (cache / "in.txt").write_text("one\n", "utf-8")
    code, line = fail(cache, "check", "in.txt", "--embed", "me/other", process=True)
    assert code == 69
    assert "there is no folder me/other, no copy of it here, and Hugging Face gave none" in line


def test_what_is_fetched_is_said_with_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class File:
        file_size = 3 << 20

    def download(repo_id: str, allow_patterns: list[str], **how: bool) -> Any:
        if how.get("local_files_only"):
            raise FileNotFoundError
        return [File(), File()] if how.get("dry_run") else write_folder(tmp_path / repo_id)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with caplog.at_level(logging.WARNING, "streamdp"):
        assert load_embedding("me/fetched").dimension == 4
    assert [record.getMessage() for record in caplog.records] == [
        "embed: fetching me/fetched from Hugging Face, 6 MiB"
    ]
