"""A broker that demands TLS, or TLS and a login, at ports of its own; its certificate is made here."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from pathlib import Path

from broker.process import Broker
from ports import free_port

USER, PASSWORD = "alice", "open-sesame-7"

_LISTENERS = """
listeners=PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},TLS://127.0.0.1:{tls},LOGIN://127.0.0.1:{login}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},TLS://127.0.0.1:{tls},LOGIN://127.0.0.1:{login}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,TLS:SSL,LOGIN:SASL_SSL
ssl.keystore.location={store}
ssl.keystore.type=PKCS12
ssl.keystore.password=of-the-store
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.login.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.login.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.login.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
"""  # noqa: E501 - properties have no other form


class Secured(Broker):
    """``bootstrap`` is plain, ``tls`` speaks TLS, ``login`` TLS and SASL; ``authority`` certifies them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        tls, login = free_port(), free_port()
        self.tls, self.login = f"127.0.0.1:{tls}", f"127.0.0.1:{login}"
        self.authority = folder / "authority.pem"
        store = folder / "broker.p12"
        known = ["-keystore", str(store), "-storepass", "of-the-store", "-alias", "broker"]
        made = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1"]
        subprocess.run(["keytool", *made, *known, "-storetype", "PKCS12"], check=True, capture_output=True)
        told = subprocess.run(["keytool", "-exportcert", "-rfc", *known], check=True, capture_output=True)
        self.authority.write_bytes(told.stdout)
        text = self.properties.read_text()
        controller = text.split("CONTROLLER://127.0.0.1:")[1].split("\n")[0]
        ports = {"plain": self.port, "controller": controller, "tls": tls, "login": login}
        text += _LISTENERS.format(**ports, store=store, user=USER, password=PASSWORD)
        self.properties.write_text(text)

    def format_with_users(self, cluster: str) -> None:
        """Make the storage, with the user's passwords in it as SCRAM keeps them."""
        users = []
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            users += ["--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]"]
        self.format(cluster, *users)


def token() -> str:
    """An unsigned one, as the broker takes them here."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 3600})
    coded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join(coded) + "."
