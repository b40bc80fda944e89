"""What every experiment of a paper gives: tables, a picture, and means with their intervals."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, TypeVar

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

Cells = Sequence[object]


class Table(NamedTuple):
    """Rows of cells under their columns; the first cell is a name, the others are figures."""

    columns: Sequence[str]
    rows: Sequence[Cells]
    title: str = ""

    def markdown(self) -> str:
        """As it stands on the page."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        title = [self.title + ":", ""] if self.title else []
        return "\n".join([*title, *("| " + " | ".join(map(_cell, line)) + " |" for line in lines)])


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass
class Result:
    """What an experiment has seen."""

    tables: list[Table] = field(default_factory=list)
    picture: Figure | None = None


class Experiment(NamedTuple):
    """One experiment of a paper, by the name that the command takes.

    ``where`` says what of the paper it is: "figure 3". A picture is written as ``papers-NAME.png``.
    """

    name: str
    where: str
    run: Callable[[], Result]

    def block(self, paper: str, folder: Path) -> str:
        """Run it, write its picture, and give its part of the page."""
        result = self.run()
        parts = [table.markdown() for table in result.tables]
        if result.picture is not None:
            folder.mkdir(parents=True, exist_ok=True)
            name = f"papers-{self.name.replace('_', '-')}.png"
            result.picture.savefig(folder / name, dpi=90, metadata={"Software": None})
            parts.insert(0, f"![{paper}, {self.where}](pictures/{name})")
        return "\n\n".join(parts)


def interval(values: Iterable[float], digits: int = 2) -> str:
    """The mean of independent values, and half the width of its 95 % interval by Student's t."""
    given = np.asarray(list(values), dtype=float)
    if len(given) < 2:
        return f"{given.mean():,.{digits}f}"
    width = float(student.ppf(0.975, len(given) - 1) * given.std(ddof=1) / math.sqrt(len(given)))
    return f"{given.mean():,.{digits}f} ± {width:,.{digits}f}"


def difference(values: Sequence[float], others: Sequence[float], digits: int = 2) -> str:
    """The same of the differences of values that belong together, such as those of one seed."""
    return interval(np.subtract(values, others), digits)


A = TypeVar("A")
R = TypeVar("R")


def on_all_cores(function: Callable[[A], R], arguments: Iterable[A]) -> list[R]:
    """The function's results, in order, computed in a process a core; it must stand in a module."""
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1), get_context("spawn")) as pool:
        return list(pool.map(function, arguments))
