"""A small table of token vectors and its tokenizer, made here, as packages and folders lay them out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from streamdp.encode import embedding

WORDS = ["[UNK]", "refund", "money", "back", "parcel", "lost", "late", "login", "password"]


def forget_models() -> None:
    """Load every embedding anew, as another process does."""
    for name in ("mine", "ours", "wordllama"):
        sys.modules.pop(name, None)
    for known in (embedding._table, embedding._of_function):
        known.cache_clear()


def table(dimension: int = 4, seed: int = 0) -> np.ndarray:
    """A row for each of WORDS."""
    return np.random.default_rng(seed).normal(size=(len(WORDS), dimension)).astype(np.float32)


def tokenizer(words: Sequence[str] = WORDS) -> Tokenizer:
    """Of words in lower case, with settings of batches that nobody here wants."""
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.enable_padding(pad_id=1, pad_token=words[1])
    made.enable_truncation(3)
    return made


def write_folder(
    folder: Path,
    vectors: np.ndarray | None = None,
    config: dict[str, object] | None = None,
    words: Sequence[str] = WORDS,
    **more: np.ndarray,
) -> Path:
    """Write a folder as model2vec reads it; ``words`` are as many as WORDS."""
    folder.mkdir(parents=True)
    save_file({"embeddings": table() if vectors is None else vectors} | more, folder / "model.safetensors")
    tokenizer(words).save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec"} | (config or {})), "utf-8")
    return folder


def write_package(site: Path) -> Path:
    """Write a package as wordllama is laid out, which must not be imported."""
    package = site / "wordllama"
    for name in ("weights", "tokenizers"):
        (package / name).mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this asks the network')", "utf-8")
    weights = {"embedding.weight": table().astype(np.float16)}
    save_file(weights, package / "weights" / "l2_supercat_256.safetensors")
    tokenizer().save(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return package
