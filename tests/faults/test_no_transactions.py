"""A broker that allows no transactions: said at the start, and every answer once over a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.topics import contents, make_topic
from commands import call
from held import Held, assert_once, command, fill
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)
from live import Live


def deny(bootstrap: str, prefix: str) -> None:
    """Let nobody use transactional ids that begin so."""
    ids = ResourcePattern(ResourceType.TRANSACTIONAL_ID, prefix, ACLResourcePatternType.PREFIXED)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_acls([ACL("User:*", "*", ACLOperation.ALL, ACLPermissionType.DENY, ids)])
    finally:
        admin.close()


@pytest.mark.parametrize("prefix", ["locked", "none"])
def test_answers_come_once_over_a_crash(held: Held, tmp_path: Path, prefix: str) -> None:
    if prefix != "none":
        deny(held.bootstrap, prefix)
    topic, output = make_topic(held.bootstrap), make_topic(held.bootstrap)
    fill(held, topic, 5000)
    how = {"kafka_transactional_id_prefix": prefix, "snapshot_every": "500"}
    with Live(tmp_path, *command(held.bootstrap, topic, output), **how) as run:
        run.until(lambda: (run.metric("streamdp_records_total") or 0) >= 2000)
        run.kill()
        told = [line for line in run.said if "allows no transactions (TransactionalIdAuth" in line]
    assert len(told) == (prefix != "none")
    done = call(tmp_path, *command(held.bootstrap, topic, output), "--until", "end", **how)
    assert done.returncode == 0, done.stderr
    assert_once(held, output, 5000)
    found = contents(held.bootstrap, output)
    assert [record.offset for record in found] == list(range(len(found)))  # no markers in between
