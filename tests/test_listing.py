"""Clusters and fits as a notebook and a terminal show them: records are data, never markup."""

from __future__ import annotations

import copy
import pickle

from streamdp.answers import listing
from streamdp.answers.listing import SHOWN, ClusterList
from streamdp.engine import Engine
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.records import ClusterSummary, Record
from streamdp.settings import Settings

EVIL = "<script>alert('&')</script>"


def summary(cluster: int, **more: object) -> ClusterSummary:
    values = {
        "cluster": cluster,
        "size": 1234,
        "first_time": 1_767_571_200.0,
        "last_time": None,
        "first_seq": 0,
        "last_seq": 99,
        "weight": 1.0,
        "words": [(EVIL, 3), ("storm", 2)],
    }
    return ClusterSummary(**(values | more))  # type: ignore[arg-type]


def test_text_is_escaped() -> None:
    shown = ClusterList([summary(7)])._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt; storm" in shown
    assert "1,234" in shown
    assert "2026-01-05 00:00" in shown
    assert shown.count("<tr>") == 2
    assert listing.paragraph("a < b") == "<p>a &lt; b</p>"
    assert "&lt;i&gt;" in listing.table(["<i>"], [["<i>"]], "<i>")
    assert "<i>" not in listing.table(["<i>"], [["<i>"]], "<i>")


def test_a_terminal_sees_a_table() -> None:
    clusters = ClusterList([summary(7), summary(8, words=None, mean=[1.0, 0.25])])
    lines = repr(clusters).splitlines()
    assert lines[0] == "2 clusters"
    assert lines[1].split() == ["cluster", "size", "first", "last", "about"]
    assert lines[3].split()[:2] == ["8", "1,234"]
    assert lines[3].endswith("1 0.25")
    assert repr(ClusterList()) == "0 clusters"
    odd = ClusterList([summary(1, words=[("a\nb\x1b[2J", 1)])])
    assert repr(odd).splitlines()[2].endswith("a b [2J")


def test_long_lists_say_how_many_there_are() -> None:
    many = ClusterList(summary(i) for i in range(SHOWN + 5))
    assert repr(many).startswith(f"{SHOWN + 5} clusters, the first {SHOWN} of them")
    assert many._repr_html_().count("<tr>") == SHOWN + 1


def test_it_is_a_list() -> None:
    clusters = ClusterList([summary(1), summary(2), summary(3)])
    assert isinstance(clusters[:2], ClusterList)
    assert clusters[1].cluster == 2
    assert clusters == [summary(1), summary(2), summary(3)]
    assert pickle.loads(pickle.dumps(clusters)) == copy.deepcopy(clusters) == clusters


def test_engines_and_fits_show_themselves() -> None:
    words = (EVIL, "storm", "vote")
    records = [
        Record({words[i % 3]: 2.0, "shared": 1.0}, {"line": i + 1}, float(i), str(i)) for i in range(45)
    ]
    settings = Settings(likelihood="dirichlet-multinomial", prior="crp", concentration=1.0)
    engine = Engine(settings, with_events=True)
    engine.advance(records)
    assert isinstance(engine.clusters(), ClusterList)
    assert isinstance(engine.closed(), ClusterList)
    assert engine.clusters()._repr_html_().count("&lt;script&gt;") >= 1
    found = fit(records, settings, Plan("gibbs", rounds=40, seconds=None, chains=2))
    clusters = found.clusters()
    assert {c.cluster: c.size for c in clusters} == {
        label: int((found.labels == label).sum()) for label in set(found.labels.tolist())
    }
    assert {c.cluster: (c.first_seq, c.first_time) for c in clusters} == {
        label: (seq := found.labels.tolist().index(label), float(seq)) for label in set(found.labels.tolist())
    }
    shown = found._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert f"45 records in {len(clusters)} clusters; log joint {found.log_joint:,.2f} nats" in shown
    assert "R-hat" in shown
    alone = fit(records, settings, Plan("gibbs", rounds=20, seconds=None))
    assert "R-hat" not in alone._repr_html_()


def test_a_fit_of_vectors_tells_where_clusters_lie() -> None:
    records = [Record([9.0 * (i % 2) + 0.1 * (i % 7), 0.5 + 0.01 * i], {"line": i + 1}) for i in range(40)]
    found = fit(records, Settings(), Plan("gibbs", rounds=20, seconds=None))
    assert {round((c.mean or [5.0])[0]) for c in found.clusters()} == {0, 9}
    assert all(c.words is None and c.first_time is None for c in found.clusters())
