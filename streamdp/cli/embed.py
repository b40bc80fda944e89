"""``streamdp check --embeddings``: which embeddings are here, and what each costs."""

from __future__ import annotations

import time

from rich.table import Table

from streamdp.cli.stories import console
from streamdp.demo.stream import demo_stream
from streamdp.encode.embedding import PACKAGES, TableEmbedding, load_embedding, names_here
from streamdp.errors import ConfigError, how_to_install
from streamdp.run.messages import say

TEXTS, MEASURED = 500, 1.0
"""Texts of a batch, and for how many seconds they are given vectors."""


def show_embeddings(model: str | None) -> None:
    """Print what one embedding costs, or each that is here. ConfigError where one cannot be used."""
    table = Table()
    table.add_column("model", overflow="fold")
    for column in ("dimension", "MiB", "us a text"):
        table.add_column(column, justify="right")
    texts = [record.text for record in demo_stream(TEXTS, 0)]
    for name in names_here() if model is None else [model]:
        try:
            embedding = load_embedding(name)
        except ConfigError as error:
            if model is not None:
                raise
            say(error.message, "warning")
            continue
        embedding.rows(texts)  # compiles, and loads what a function loads
        rounds, began, taken = 0, time.perf_counter(), 0.0
        while taken < MEASURED:
            embedding.rows(texts)
            rounds, taken = rounds + 1, time.perf_counter() - began
        size = f"{embedding.bytes / 2**20:,.0f}" if isinstance(embedding, TableEmbedding) else ""
        table.add_row(name, f"{embedding.dimension:,}", size, f"{1e6 * taken / rounds / TEXTS:,.0f}")
    if table.row_count:
        console().print(table, highlight=False)
    else:
        needed = f"{how_to_install('embed')}, then pip install {' or '.join(PACKAGES)}"
        print(f"no embedding is here: {needed}; or name a folder that model2vec loads, or MODULE:FUNCTION")
