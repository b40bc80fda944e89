"""The defaults on real streams whose truth is known; the data is not part of the project."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from commands import call

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.mark.skipif(not DATA.exists(), reason=f"the public data sets are not at {DATA}")
@pytest.mark.parametrize(
    ("name", "least"), [("tweets_t", 0.94), ("tweets", 0.91), ("news_t", 0.91), ("news", 0.885)]
)
def test_first_announced_labels_agree_with_the_truth(tmp_path: Path, name: str, least: float) -> None:
    """Overall NMI (arithmetic) with no option but where the files are."""
    source = DATA / f"{name}.jsonl.gz"
    assert call(tmp_path, "consume", "--file", str(source), "--output", "out.jsonl").returncode == 0
    done = call(tmp_path, "score", "out.jsonl", "--truth", str(source), "--json")
    assert msgspec.json.decode(done.stdout)["first"]["nmi"] >= least
