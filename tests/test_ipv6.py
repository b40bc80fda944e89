"""Addresses of IPv6 in lines: each is one hole with one value, and what only looks alike is none."""

from __future__ import annotations

import ipaddress
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle.templates import tokens_of

from streamdp.engine import Engine
from streamdp.lines.shown import Marker, pieces_of, values_of
from streamdp.settings import Settings

ADDRESSES = (
    "2001:db8::1",
    "2001:db8:0:1::7",
    "fe80::1ff:fe23:4567:890a",
    "fe80::",
    "::1",
    "::",
    "::ffff:192.0.2.128",
    "64:ff9b::192.0.2.33",
    "0:0:0:0:0:ffff:192.0.2.1",
    "fe80::1%eth0",
    "fe80::1%enp0s3.10",
    "[2001:db8::2]:443",
    "[::1]:8080",
    "[::]:80",
    "[fe80::1%2]:22",
    "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    "2001:DB8:85A3:0:0:8A2E:370:7334",
    "0:0:0:0:0:0:0:1",
    "fdab:cdef::1",
    "fdab::1",
    "2001:db8:85a3::8a2e:370:7334/64",
    "ff02::1",
    "::/0",
    "fc00::/7",
    "1:2:3:4:5:6:7::",
    "::2:3:4:5:6:7:8",
)
AROUND = (
    *("from {} port", "addr: {}, up", "unknown[{}]", "<{}>", "({})", "src={};", "ip6:{} up", "{}: no route"),
    *("at {}.", "host {}-", "eth0:{} is up"),
)


def holes(line: str) -> list[str]:
    marker = Marker()
    return values_of(line, [False] * len(pieces_of(line, marker)), marker)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_one_hole_and_one_value(address: str, around: str) -> None:
    if ("{}]" in around and "]" in address) or ("{}:" in around and address.endswith("::")):
        around = "from {} port"
    if address == "::" or (":{}" in around and address.startswith(":")):
        around = "on {} port"
    line, numbers = around.format(address), {"ip6": "6", "eth0": "0"}
    shown = around.format("<ip>").replace("ip6", "ip<num>").replace("eth0", "eth<num>")
    assert "".join(pieces_of(line, Marker())) == shown
    assert holes(line) == [*(numbers[name] for name in numbers if name in around), address]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("took 10:20:30 and", "took <time> and"),
        ("mac 00:1a:2b:3c:4d:5e up", "mac <hex> up"),
        ("wwn 50:06:01:60:3b:de:0e:dc", "wwn <hex>"),
        ("call a::b now", "call a::b now"),
        ("in std::vector<int>", "in std::vector<int>"),
        ("ace::f00(x)", "ace::f<num>(x)"),
        ("Foo::Bar::baz", "Foo::Bar::baz"),
        ("id deadbeef12 seen", "id <hex> seen"),
        ("dead::beef", "dead::beef"),
        ("1.2.3.4:80 open", "<ip> open"),
        ("a:::1", "a:::<num>"),
        ("ratio 1:2:3", "ratio <num>"),
        ("1:2:3:4:5:6:7:8:9", "<num>"),
    ],
)
def test_what_only_looks_alike_is_no_address(line: str, shown: str) -> None:
    assert "".join(pieces_of(line, Marker())) == shown


def test_lists_and_ranges_have_an_address_each() -> None:
    line = "10.0.0.1,2001:db8::1 and fe80::1-fe80::9 or ::1,::2"
    assert holes(line) == ["10.0.0.1", "2001:db8::1", "fe80::1", "fe80::9", "::1", "::2"]


@given(
    st.integers(0, 2**128 - 1),
    st.sampled_from(["short", "full", "quad"]),
    st.sampled_from(["", "%eth0", "/48"]),
)
def test_every_address_is_one(number: int, form: str, more: str) -> None:
    address = ipaddress.IPv6Address(number)
    written = str(address) if form == "short" else address.exploded
    if form == "quad":
        *groups, a, b = address.exploded.split(":")
        written = ":".join(groups) + ":" + ".".join(str(byte) for byte in bytes.fromhex(a + b))
    assume(any(char.isdigit() for char in written))  # else it may be a name of C++
    assert holes(f"peer {written}{more} is up") == [written + more]


@settings(max_examples=400)
@given(st.text(alphabet="0123abefg:::::.%/[]-, ", max_size=24).filter(str.strip))
def test_lines_are_cut_as_by_the_oracle(line: str) -> None:
    parts = Marker().parts(line.encode())
    assert len(parts) == len(tokens_of(line))
    folds = [sum(token.count("0") for token in tokens_of(line)), sum(len(part.folds) for part in parts)]
    assert folds[0] == folds[1]


def test_logins_from_anywhere_are_one_template() -> None:
    r = random.Random(3)
    lines = [
        f"Accepted publickey for deploy from {r.choice(ADDRESSES)} port {r.randrange(9999)}"
        for _ in range(200)
    ]
    lines += ["Accepted publickey for deploy from 10.0.0.1 port 50125"]
    answers = Engine(Settings(likelihood="template", params=True)).advance(lines).assignments
    assert {answer.template for answer in answers} == {"Accepted publickey for deploy from <ip> port <num>"}
    assert [answer.params for answer in answers] == [[line.split()[5], line.split()[7]] for line in lines]
