"""Vectors of texts: means of a table's token vectors, or what a function of the user's own returns."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import itertools
import logging
import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamdp.encode.beside import LONGEST
from streamdp.errors import ConfigError, Exit, StreamdpError, how_to_install
from streamdp.kernels.jit import entry
from streamdp.settings.load import UNNAMED
from streamdp.settings.registry import find

PACKAGES = {
    "wordllama": ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json")
}
"""Packages that carry a table: its file, and that of its tokenizer."""

_FETCHED = ["config*.json", "model.safetensors", "tokenizer.json", "0_StaticEmbedding/*"]
"""What model2vec reads of a repository of Hugging Face."""

_log = logging.getLogger("streamdp")


class EmbeddingError(ConfigError):
    """An embedding that cannot be used, or fails underway: a run goes on from its last snapshot then."""

    def __init__(self, message: str, code: Exit = Exit.CONFIG) -> None:
        super().__init__(f"embed: {message}", code)


def load_embedding(name: str) -> Embedding:
    """The embedding of a name: one of PACKAGES, a folder, MODULE:FUNCTION, or OWNER/NAME of Hugging Face.

    Raises EmbeddingError where it is not there, or is none, and for a function that only a state has named.
    Only a name of Hugging Face is fetched, if no copy is here.
    """
    named = name.removeprefix(UNNAMED)
    if not is_function(named):
        return _table(named)
    if named != name:
        how = f"say --embed {named}, or embed={named!r} to StreamDP.load"
        raise EmbeddingError(f"the state names {named}, which is imported only if you name it too: {how}")
    try:
        return _of_function(name, find({}, name))
    except Exception as error:
        raise EmbeddingError(str(error) if isinstance(error, ValueError) else _line(error)) from error


def is_function(name: str) -> bool:
    """Whether a name is MODULE:FUNCTION."""
    return ":" in name and not os.path.isdir(name)


@entry
def average(
    vectors: np.ndarray,
    places: np.ndarray,
    weights: np.ndarray,
    normalise: int,
    ids: np.ndarray,
    ends: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Write the mean of each text's token vectors; NaN where it has no known token, or no direction.

    The tokens of text i end at ``ends[i]`` in ``ids``; ``vectors[places[id]]`` is that of one, unless -1.
    """
    begin = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        row[:] = 0
        known, total = 0, 0.0
        for k in range(begin, ends[i]):
            place, weight = places[ids[k]], weights[ids[k]]
            if place >= 0:
                known += 1
                for d in range(row.shape[0]):
                    row[d] += weight * vectors[place, d]
        begin = ends[i]
        for d in range(row.shape[0]):
            row[d] /= np.float32(max(known, 1))
            total += np.float64(row[d]) ** 2
        length = np.float32(np.sqrt(total)) if normalise else np.float32(1)
        for d in range(row.shape[0]):
            row[d] = row[d] / length if total > 0 else np.nan


class _Shared:
    """A copy of what has it has the same: a table is large, and nothing is learned of it."""

    def __deepcopy__(self, memo: object) -> Self:
        return self


class TableEmbedding(_Shared):
    """The mean of the vectors of a text's tokens; no other text of its batch matters."""

    from_function = False

    def __init__(self, name: str) -> None:
        model, files = _read(name)
        self.name, hashed = name, hashlib.sha256(repr((model.normalize, model.max_length)).encode())
        for file in files:
            hashed.update(file.read_bytes())
        self.digest = hashed.hexdigest()[:32]
        self._vectors = np.ascontiguousarray(model.embedding, np.float32)
        self._places = np.arange(len(model.tokens), dtype=np.int32)
        if model.token_mapping is not None:
            self._places = np.array(model.token_mapping, np.int32)
        if model.unk_token_id is not None:
            self._places[model.unk_token_id] = -1
        weights = np.ones(len(self._places)) if model.weights is None else model.weights
        self._weights = np.ascontiguousarray(weights, np.float32)
        ids, rows = max(model.tokenizer.get_vocab().values(), default=-1) + 1, len(self._vectors)
        sound = self._vectors.ndim == 2 and self._vectors.size and np.isfinite(self._vectors).all()
        if not sound or ids > min(len(self._places), len(self._weights)) or self._places.max() >= rows:
            raise EmbeddingError(f"{name} is damaged: its table has no row of finite numbers for each token")
        self._normalise, self._tokenizer = int(model.normalize), model.tokenizer
        self._longest = model.max_length and model.max_length * model.median_token_length
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # threads beside ours, for 10 us a text

    @property
    def dimension(self) -> int:
        """D."""
        return int(self._vectors.shape[1])

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Their vectors, shape (n, D), float32; NaN for a text without a known token."""
        whole = [text[: self._longest].encode("utf-8", "replace").decode() for text in texts]
        read = self._tokenizer.encode_batch_fast(whole, add_special_tokens=False)
        tokens = [each.ids for each in read]
        ids = np.fromiter(itertools.chain.from_iterable(tokens), np.int32)
        ends = np.cumsum(np.fromiter(map(len, tokens), np.int64))
        found = np.empty((len(tokens), self.dimension), np.float32)
        average(self._vectors, self._places, self._weights, self._normalise, ids, ends, found)
        return found


class FunctionEmbedding(_Shared):
    """What a function of the user's own returns for a list of texts, checked: as many rows of numbers."""

    from_function = True
    digest = ""

    def __init__(self, name: str, function: Callable[[list[str]], Any]) -> None:
        if not callable(function):
            raise ValueError(f"{name} is no function")
        self.name, self._function = name, function
        self.kept: Any = None  # KeptRows, of a run with a state
        self._dimension = 0

    @property
    def dimension(self) -> int:
        """D; where the function was not called yet, it is, with a text of ours."""
        if self._dimension == 0 and self.kept is not None:
            self._dimension = self.kept.dimension
        return self._dimension or int(self._ask(["text"]).shape[1])

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Their vectors. Raises EmbeddingError where the function fails, or returns something else."""
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        found: np.ndarray = self._ask(texts) if self.kept is None else self.kept.rows(texts, self._ask)
        return found

    def _ask(self, texts: Sequence[str]) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):  # a number too large is infinite, and refused as that
                found = np.ascontiguousarray(self._function(list(texts)), np.float32)
        except Exception as error:
            raise EmbeddingError(f"{self.name} failed: {_line(error)}", Exit.UNAVAILABLE) from error
        if found.ndim != 2 or len(found) != len(texts) or not 0 < found.shape[1] <= LONGEST:
            returned = f"was given {len(texts):,} texts, and returned an array of shape {found.shape}"
            wanted = f"a row for each, of {LONGEST:,} numbers at most"
            raise EmbeddingError(f"{self.name} {returned}; it must have {wanted}", Exit.UNAVAILABLE)
        _check_length(self.name, found, self._dimension or found.shape[1])
        self._dimension = found.shape[1]
        return found


class StoredEmbedding(_Shared):
    """The embedding of a state. One that only the state has named is loaded once a text needs it."""

    def __init__(self, name: str, digest: str, dimension: int) -> None:
        self.name, self.digest, self.dimension = name.removeprefix(UNNAMED), digest, dimension
        self.from_function = is_function(self.name)
        self._given, self._loaded = name, None if name.startswith(UNNAMED) else self._load(name)

    def _load(self, name: str) -> Embedding:
        loaded = load_embedding(name)
        if loaded.digest != self.digest:
            why = "vectors of the two cannot be compared: restore it, or name another --state"
            raise EmbeddingError(f"{self.name} is not what the state was made with, and {why}")
        return loaded

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Their vectors, of the state's dimension."""
        self._loaded = self._loaded or self._load(self._given)
        rows = self._loaded.rows(texts)
        _check_length(self.name, rows, self.dimension)
        return rows


Embedding = TableEmbedding | FunctionEmbedding | StoredEmbedding
"""What gives texts vectors. A NaN is a text without a known token where it is a table, else a fault."""

_table = lru_cache(maxsize=4)(TableEmbedding)
_of_function = lru_cache(maxsize=4)(FunctionEmbedding)  # one for all engines, which knows what is kept


def _check_length(name: str, rows: np.ndarray, dimension: int) -> None:
    if rows.shape[1] != dimension:
        now = f"returned vectors of {rows.shape[1]:,} numbers, and of {dimension:,} before"
        raise EmbeddingError(f"{name} {now}", Exit.UNAVAILABLE)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split()):.300}"


def _read(name: str) -> tuple[Any, list[Path]]:
    """The table and tokenizer of a name, as model2vec has them, and their files."""
    try:
        from model2vec import StaticModel
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError:
        needed = how_to_install("embed")
        raise EmbeddingError(f"{name} needs more packages: {needed}", Exit.UNAVAILABLE) from None
    try:
        if name in PACKAGES:
            spec = importlib.util.find_spec(name)  # which does not import it
            if spec is None or not spec.submodule_search_locations:
                raise EmbeddingError(f"{name} is not installed: pip install {name}", Exit.UNAVAILABLE)
            files = [Path(spec.submodule_search_locations[0], file) for file in PACKAGES[name]]
            (vectors,) = load_file(files[0]).values()
            return StaticModel(vectors, Tokenizer.from_file(str(files[1])), max_length=None), files
        folder = Path(name) if os.path.isdir(name) else _fetched(name)
        files = [file for kind in ("model.safetensors", "tokenizer.json") for file in folder.rglob(kind)]
        return StaticModel.from_pretrained(folder, force_download=False), sorted(files)
    except StreamdpError:
        raise
    except Exception as error:
        raise EmbeddingError(f"{name} holds no table that can be read: {_line(error)}") from error


def _fetched(name: str) -> Path:
    """The folder of a name of Hugging Face: a copy that is here, else what is fetched, after a line of it."""
    import huggingface_hub as hub

    if not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name):
        known = f"a folder, one of {', '.join(PACKAGES)}, MODULE:FUNCTION, or OWNER/NAME of Hugging Face"
        raise EmbeddingError(f"there is no folder {name}: name {known}")
    parts: dict[str, Any] = {"repo_id": name, "allow_patterns": _FETCHED}
    try:
        with contextlib.suppress(OSError):
            return Path(hub.snapshot_download(**parts, local_files_only=True))
        size = sum(file.file_size for file in hub.snapshot_download(**parts, dry_run=True)) / 2**20
        _log.warning("embed: fetching %s from Hugging Face, %.0f MiB", name, size)
        return Path(hub.snapshot_download(**parts))
    except Exception as error:
        why = f"there is no folder {name}, no copy of it here, and Hugging Face gave none"
        raise EmbeddingError(f"{why}: {_line(error)}", Exit.UNAVAILABLE) from error
