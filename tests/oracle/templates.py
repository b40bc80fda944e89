"""Lines of a log as templates with holes, in plain Python, written for clarity and never for speed.

The formulas stand in docs/model.md. A token is a string of which each character stands for a byte.
"""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from tests.oracle.closing import DELIMITERS, OPEN, VERB, Closing, closed_tokens, shut
from tests.oracle.closing import WORDS as CLOSED

GROUPS = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789",
    ".",
    "/\\",
    ":",
    "-_",
)
"""Categories of characters; other ASCII is one more, and what is not ASCII the last."""
WEIGHTS = (26, 26, 1, 1, 2, 1, 2, 24, 128)
"""How many characters each category has once digits are folded."""
MASKED = [chr(0xF5 + k) for k in range(10)]
"""What stands for what a mask has matched, by the number of its name: bytes that are in no text."""
_GROUP = {char: number for number, group in enumerate(GROUPS) for char in group} | dict.fromkeys(MASKED, 2)
LETTERS, DIGIT, CAPITALS, CLASSES = 0b100000011, 0b100, 0b10, 511

WORDS = {
    "weekday": "Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?",
    "month": "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?"
    "|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?",
    "zone": "UTC|GMT|[ECMP][SD]T|CES?T|BST|AM|PM",
    "unit": "[KMGT]?B|[KMGT]iB|kB|bytes?|[num]?s|m?secs?|seconds?|mins?|minutes?|hours?|days?|milliseconds?",
}
END = "(?![0-9A-Za-z])"
DAY = f"(?:[0-9]{{4}}|[0-9]{{1,2}}){END}"
PART = (
    rf"(?:[0-9]+(?>(?::[0-9]+)+)(?>(?:[.,][0-9]+)?)|(?:19|20)[0-9][0-9](?!:[0-9])|[+-][0-9]{{4}}"
    rf"|(?:{WORDS['zone']})){END}"
)
DATE = re.compile(
    rf"(?<![0-9A-Za-z])(?:(?:{WORDS['weekday']}){END},?(?> +)|(?![0-9])|(?<![.:,/_+<>~-]))"
    rf"(?:(?:{WORDS['month']}){END}[ /-] ?|[0-9]{{1,2}}[ /-](?:{WORDS['month']}){END}[ /-])"
    rf"{DAY}(?:[ ,:T] ?{PART})*"
)
VALUE = re.compile(
    r"(?<![0-9A-Za-z_./-])(?:true|false|True|False|TRUE|FALSE)(?![0-9A-Za-z_/-]|\.[0-9A-Za-z\x00])"
    r"|(?:(?<=[=:(\[,|{])|(?<=[=:(\[,|{] ))(?:null|None|nil|NULL)(?![0-9A-Za-z_/-])"
)
FOLDED = "\x00"
COLONS = "\x01"  # of an address that ends with colons: a sign may follow
"""What stands for dates and values until numbers are folded."""
UNIT = re.compile(f"0 (?:{WORDS['unit']})(?![0-9A-Za-z_])")
HEX = re.compile(
    r"(?<![0-9A-Za-z\x00])(?:0[xX][0-9a-fA-F]+|[0-9a-fA-F]+(?:[:-][0-9a-fA-F]+)*)(?![0-9A-Za-z])"
)
NUMBER = re.compile(r"(?:(?<![0-9A-Za-z\x00])[-+<>~])?[0-9]+(?:[.:,/_-]+[0-9]+)*")
_MODALS = re.compile(
    "[Cc](?:an|annot|ould|ouldn)|[Ww](?:ill|ould|on|ouldn)|[Ss](?:hall|hould|houldn)|[Mm](?:ust|ay|ight|ustn)"
    "|[Dd](?:o|oes|id|on|oesn|idn)"
)
_TRIALS = re.compile(
    "(?:[Aa]|[Uu]na)ble|[Ff]ail(?:s|ed|ing|ure)?|[Tt]r(?:y|ies|ied|ying)|[Aa]ttempt(?:s|ed|ing)?"
    "|[Nn]eed(?:s|ed)?|[Ww]ant(?:s|ed)?|[Rr]efus(?:ed|es|ing)|[Gg]oing|[Rr]eady"
)
MESSAGE = re.compile(r"(?<![0-9A-Za-z])(?:msg|message|event)$", re.IGNORECASE)
BETWEEN = "\x1f"
"""What stands between the words of a value of several."""
TOKENS = re.compile(r"""[=:,;()\[\]"']|[^ \t\n\v\f\r=:,;()\[\]"']+""")

Line = tuple[str, ...]


class Folded(tuple[str, ...]):
    """The tokens of a line, and which of them have no blank before them."""

    glued: tuple[bool, ...]


@dataclass(frozen=True)
class Settings:
    """One setting for all logs.

    ``copies`` is the share of new templates that are copies of one that is there, ``mutation`` that of their
    slots which are not copied; ``elsewhere`` that of values of holes that are tokens known from other places;
    ``rho`` is the share of tokens of new lines that are values of holes, ``rho_word`` what of it is left to
    words that are no values by sight, ``placed`` the share of places of values, paths and identifiers with
    digits that are holes. Values of a hole have a strength and a discount.
    """

    concentration: float = 1.0
    discount: float = 0.3
    copies: float = 0.5
    mutation: float = 0.05
    line_strength: float = 0.5
    line_discount: float = 0.5
    class_strength: float = 0.3
    base_strength: float = 1.0
    base_discount: float = 0.5
    elsewhere: float = 0.3
    rho: float = 0.1
    rho_word: float = 1e-11
    placed: float = 0.9
    masks: int = 0
    """How many names of masks there are."""
    value_strength: float = 1.0
    value_discount: float = 0.6


Char = tuple[str, int, int]
"""A character, and where what it stands for begins and ends among the bytes of a line."""


def fold(text: str) -> str:
    """A text with every date, number with its unit, address, hexadecimal run, true, false and null as 0."""
    return "".join(char for char, *_ in folded([(char, i, i + 1) for i, char in enumerate(text)]))


def folded(chars: list[Char]) -> list[Char]:
    """The same of characters."""
    for spans, sign in (
        (DATE.finditer, FOLDED),
        (VALUE.finditer, FOLDED),
        (lambda text: [each for each in addresses(text) if text[each[1] - 1] != ":"], FOLDED),
        (lambda text: [each for each in addresses(text) if text[each[1] - 1] == ":"], COLONS),
        (hex_runs, "0"),
        (NUMBER.finditer, "0"),
        (UNIT.finditer, "0"),
    ):
        text = "".join(char for char, *_ in chars)
        chars = replaced(
            chars, [each if isinstance(each, tuple) else each.span() for each in spans(text)], sign
        )
    return [("0" if char in (FOLDED, COLONS) else char, begin, end) for char, begin, end in chars]


def replaced(chars: list[Char], spans: Iterable[tuple[int, int]], sign: str) -> list[Char]:
    """Characters with one sign in the place of each span."""
    found, at = [], 0
    for begin, end in spans:
        found += [*chars[at:begin], (sign, chars[begin][1], chars[end - 1][2])]
        at = end
    return found + chars[at:]


def addresses(text: str) -> Iterable[tuple[int, int]]:
    """Addresses of IPv6, each with zone, prefix length, or brackets and a port."""
    at = 0
    while at < len(text):
        if at and re.match("[0-9A-Za-z\x00]", text[at - 1]):
            at += 1
            continue
        port = re.compile(r"\]:[0-9]+(?![0-9A-Za-z])").match(text, address_end(text, at + 1))
        if text[at] == "[" and port is not None and address_end(text, at + 1) > at + 1:
            yield at, port.end()
            at = port.end()
        elif (end := address_end(text, at)) > at:
            yield at, end
            at = end
        else:
            run = HEX.match(text, at)
            one = run is not None and any(c.isdigit() for c in run[0]) and len(re.split("[:-]", run[0])) >= 4
            at = run.end() if run is not None and one else at + 1


def address_end(text: str, at: int) -> int:
    """Where an address ends that begins there; the place itself where none does."""
    if (text[:at].endswith(":") and text[at : at + 1] == ":") or text[:at].endswith("::"):
        return at
    found = re.compile(r"((?:[0-9a-fA-F]*:)*)([0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\d)|[0-9a-fA-F]*)").match(
        text, at
    )
    assert found is not None
    written, end = found[0], found.end()
    if re.fullmatch(".*[0-9a-fA-F]:", written):
        written, end = written[:-1], end - 1
    try:
        parts = ipaddress.IPv6Address(re.sub(r"[0-9]+(\.[0-9]+){3}", "1.2.3.4", written)) and written.split(
            ":"
        )
    except ValueError:
        return at
    pairs = len(parts) == 8 and all(len(part) == 2 for part in parts)
    word = len(parts[0]) < 4 and parts[0].isalpha() and len([part for part in parts if part]) < 3
    if pairs or word or (written != "::" and not any(c.isdigit() for c in written)):
        return at
    if re.compile("[0-9A-Za-z\x00]").match(text, end):
        return at
    more = re.compile(r"(%[0-9A-Za-z](?:[0-9A-Za-z._-]*[0-9A-Za-z])?)?(/[0-9]{1,3}(?![0-9A-Za-z]))?").match(
        text, end
    )
    assert more is not None
    return more.end()


def hex_runs(text: str) -> Iterable[tuple[int, int]]:
    """Four groups or more with a digit are one address; else each run for itself."""
    for found in HEX.finditer(text):
        digits = any(c.isdigit() for c in found[0])
        if found[0][1:2] in ("x", "X") or (digits and len(re.split("[:-]", found[0])) >= 4):
            yield found.span()
            continue
        for run in re.finditer("[0-9a-fA-F]+", found[0]):
            if _is_hex(run[0]):
                yield found.start() + run.start(), found.start() + run.end()


def _is_hex(run: str) -> bool:
    return len(run) >= 8 or (len(run) >= 4 and any(c.isdigit() for c in run))


def masked(line: str, masks: Sequence[tuple[str, str]]) -> list[Char]:
    """The bytes of a line; what an expression matches, in the order given, as the sign of its name.

    A match that holds part of one before it is none.
    """
    names, data = list(dict.fromkeys(name for name, _ in masks)), line.encode()
    owners, text = dict[int, Char](), line
    for name, expression in masks:
        shown, at = "", 0
        for found in re.finditer(expression, text, re.ASCII):
            if found[0] and not re.search("[\udc00-\udcff]", found[0]):
                shown += text[at : found.start()]
                begin, size = len(shown.encode("utf-8", "surrogateescape")), len(found[0].encode())
                owners[begin] = MASKED[names.index(name)], begin, begin + size
                shown, at = shown + "\udcff" * size, found.end()
        text = shown + text[at:]
    found_chars, place = list[Char](), 0
    while place < len(data):
        found_chars.append(owners.get(place, (chr(data[place]), place, place + 1)))
        place = found_chars[-1][2]
    return found_chars


def value_at(text: str, i: int) -> tuple[int, int] | None:
    """Where the value of several words begins and ends that the sign at a place opens."""
    text, end = text[: i + 4096], -1
    if text[i] == "?":
        found = re.compile(r"[0-9A-Za-z][^ \t\n\v\f\r\"')\]<>]*").match(text, i + 1)
        end = i + 1 + len(found[0].rstrip(DELIMITERS + ".")) if found and "=" in found[0] else -1
    elif i > 0 and text[i - 1] in DELIMITERS:
        end = text_end(text, i) if text[i] in "\"'" else list_end(text, i)
    if end < 0 or any(char in MASKED for char in text[i:end]):
        return None
    begin = i + (text[i] != "{")
    inside = text[begin:end].strip(" \t\n\v\f\r")
    begin = text.index(inside, begin) if inside else end
    return begin, begin + len(inside)


def text_end(text: str, i: int) -> int:
    """Where a text in quotes ends; -1 where it has one word, or is a message or a request."""
    sign = text[i]
    units = re.compile(rf"(?:\\.|[^\\{sign}]|{sign}(?=[0-9A-Za-z]))*", re.DOTALL).match(text, i + 1)
    assert units is not None
    at = units.end()
    singles = [unit.start() for unit in re.compile(r"\\.|.", re.DOTALL).finditer(text, i + 1, at)]
    blanks = [k for k in singles if text[k] in " \t\n\v\f\r"]
    if text[at : at + 1] != sign or not blanks or MESSAGE.search(text[:i].rstrip(DELIMITERS)):
        return -1
    return -1 if re.compile("[A-Z].?/", re.DOTALL).match(text, blanks[0] - 1) else at


def list_end(text: str, i: int) -> int:
    """Where a list or an object in brackets ends; -1 where it is none."""
    depth = list(itertools.accumulate((c in "[{") - (c in "]}") for c in text[i:]))
    if 0 not in depth:
        return -1
    at = i + depth.index(0)
    inside = text[i + 1 : at]
    several = "," in inside or inside[:1] in ("", '"', "'") or (text[i] == "{" and ":" in inside)
    if not several or re.compile("[0-9A-Za-z]").match(text, at + 1):
        return -1
    return at + (text[i] == "{")


def joined(chars: list[Char]) -> tuple[list[Char], dict[str, list[Char]]]:
    """Characters with a sign for each value of several words; what those are that have no digit."""
    text, words, found, at = "".join(char for char, *_ in chars), dict[str, list[Char]](), list[Char](), 0
    for i, char in enumerate(text):
        span = value_at(text, i) if i >= at and char in "\"'[{?" else None
        if span is None:
            continue
        begin, end = span
        found += chars[at:begin]
        whole = chars[begin][1], chars[end - 1][2] if end > begin else chars[begin][1]
        own = [part for part in re.split(f"[{re.escape(DELIMITERS)}]+", text[begin:end]) if part]
        if re.search("[0-9]", text[begin:end]) or char in "{?" or text[begin : begin + 1] == "{" or not own:
            sign = FOLDED if re.match("[0-9A-Za-z]", text[end - 1]) else COLONS
        else:
            sign = chr(0xE100 + len(words))
            words[sign] = [(each, *whole) for each in BETWEEN.join(own)]
        found.append((sign, *whole))
        at = end
    return found + chars[at:], words


def tokens_of(line: str, masks: Sequence[tuple[str, str]] = (), closing: Closing = OPEN) -> Line:
    """The folded tokens of a line; of masks there are names and expressions."""
    chars, words = joined(masked(line, masks))
    chars, data = [own for char in folded(chars) for own in words.get(char[0], [char])], line.encode()
    found = list(TOKENS.finditer("".join(char for char, *_ in chars)))
    raw = []
    for match in found:
        own = chars[match.start() : match.end()]
        folds = [each for each in own if each[0] == "0" or each[0] in MASKED]
        part = data[folds[0][1] : folds[-1][2]] if folds else None
        raw.append((data[own[0][1] : own[-1][2]], part))
    tokens = Folded(closed_tokens([match[0] for match in found], raw, closing))
    ends = [-1, *(match.end() for match in found)]
    tokens.glued = tuple(match.start() == end for match, end in zip(found, ends, strict=False))
    return tokens


@cache
def class_of(token: str) -> int:
    """Which categories of characters it shows, as bits."""
    return sum(1 << g for g in {_GROUP.get(char, 7 if char < "\x80" else 8) for char in token})


def kind_of(shown: int) -> str:
    """What tokens of a class are: numbers, identifiers (letters with digits or punctuation), or words."""
    if shown & DIGIT and not shown & LETTERS:
        return "number"
    return "identifier" if shown & LETTERS and shown & ~LETTERS else "word"


def lettered(token: str) -> bool:
    """Whether it has a letter."""
    return bool(class_of(token) & LETTERS)


def wordy(token: str) -> bool:
    """Whether it has a letter and no digit, and is no path or address, file or host.

    Names of files and hosts have dots, and the last of their parts is short.
    """
    parts = token.split(".")
    if not lettered(token) or class_of(token) & DIGIT or re.search(r"[/\\@]", token):
        return False
    return len(parts) == 1 or not 0 < len(parts[-1]) <= 3


def is_verb(token: str) -> bool:
    """Whether it is a verb by its ending or as a word, or a method, level or state."""
    if len(token) > 4 and not class_of(token) & ~LETTERS and re.search("(ed|ing|[^s]s)$", token):
        return True
    return re.fullmatch("|".join([VERB, *CLOSED.values()]), token) is not None


def fixed(token: str) -> bool:
    """Whether it is never a value of a hole: closed, or an exception with its frame."""
    return shut(token) or re.search("(?:Error|ption|wable|panic|rrupt|Fault)@", token) is not None


def names_act(line: Sequence[str | None], i: int) -> bool:
    """Whether what is done stands at token i of a line, None for a hole.

    The first with a letter, or of a message in quotes; or behind words that a verb follows.
    """
    name = line[i - 3] if i > 2 and tuple(line[i - 2 : i]) == ("=", '"') else None
    if name is not None and MESSAGE.search(name):
        return True
    far, near = ([None, None, *line][k] or "" for k in (i, i + 1))
    modal = _MODALS.fullmatch(far) or far == "'"
    if (
        _MODALS.fullmatch(near)
        or (near in ("not", "t") and modal)
        or (near == "to" and _TRIALS.fullmatch(far))
    ):
        return True
    return not any(token is None or lettered(token) for token in line[:i])


def valued(line: Sequence[str | None], i: int, founders: Sequence[str]) -> bool:
    """Whether token i of a line, None for a hole, is a value for where it stands.

    Behind an equals sign; in brackets by itself; in quotes by itself, but as a key or the
    first of a line; behind a quotation mark, a word in capitals before a path: of holes as of the
    ``founders``.
    """
    before, behind = [None, None, *line[:i]], [*line[i + 1 :], None, None]
    quoted, after = before[-1] in ('"', "'"), "".join(founders[i + 1 : i + 2])
    if before[-1] == "=":
        return True
    if (before[-1], after) in (("(", ")"), ("[", "]")):
        return True
    if quoted and before[-1] == after and before[-2] is not None and behind[1] != ":":
        return True
    return quoted and class_of(founders[i]) == CAPITALS and len(founders[i]) > 2 and after.startswith("/")


@cache
def showing(shown: int) -> float:
    """Probability that a random spelling over the characters of a class shows every category of it."""
    groups = [g for g in range(9) if shown >> g & 1]
    size, total = sum(WEIGHTS[g] for g in groups), 0.0
    for subset in range(1 << len(groups)):
        part = sum(WEIGHTS[g] for j, g in enumerate(groups) if subset >> j & 1) / size
        sign = -1 if (len(groups) - subset.bit_count()) % 2 else 1
        total += sign * part / 8 / (1 - part * 7 / 8)
    return total


@cache
def spelling(token: str, masks: int = 0) -> float:
    """Probability of a token's letters given its class: a digit is 0 or a mask, of a closed token any."""
    shown = class_of(token)
    size = sum(WEIGHTS[g] for g in range(9) if shown >> g & 1)
    log = (len(token) - 1) * math.log(7 / 8) - math.log(8) - len(token) * math.log(size)
    each = 10 if shut(token) else 1 + masks
    digits = sum(_GROUP.get(char) == 2 for char in token)
    return math.exp(max(log - math.log(showing(shown)) - digits * math.log(each), -600.0))


class Restaurant:
    """A Pitman-Yor process with one table a type: counts, and the discount and strength that smooth them."""

    def __init__(self) -> None:
        self.counts: Counter[object] = Counter()
        self.total = 0

    def add(self, item: object) -> None:
        self.counts[item] += 1
        self.total += 1

    def probability(self, item: object, base: float, strength: float, discount: float) -> float:
        seen = max(self.counts[item] - discount, 0.0) if item in self.counts else 0.0
        spread = strength + discount * len(self.counts)
        return (seen + spread * base) / (self.total + strength)


class Base:
    """What tokens are like: those of founding lines, and those of holes by class."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.words, self.classes = Restaurant(), Restaurant()
        self.again: dict[int, Restaurant] = {}
        self.held: dict[int, Restaurant] = {}
        self.held_classes = Restaurant()
        self.clock = itertools.count()

    def _smooth(self, table: Restaurant | None, item: object, base: float) -> float:
        if table is None:
            return base
        return table.probability(item, base, self.settings.base_strength, self.settings.base_discount)

    def constant(self, token: str) -> float:
        """G_c: probability of a constant."""
        shown = class_of(token)
        base = self._smooth(self.classes, shown, 1 / CLASSES) * spelling(token, self.settings.masks)
        return self._smooth(self.words, token, base)

    def hole_class(self, shown: int) -> float:
        """R: probability that a value of a hole is of a class."""
        return self._smooth(self.held_classes, shown, 1 / CLASSES)

    def hole(self, token: str) -> float:
        """G_v: probability of a value of a hole given its class.

        Some are tokens that stand elsewhere as well: those which founding lines had twice.
        """
        shown, s = class_of(token), self.settings
        spelled = spelling(token, s.masks)
        elsewhere = self._smooth(self.again.get(shown), token, spelled)
        base = (1 - s.elsewhere) * spelled + s.elsewhere * elsewhere
        return self._smooth(self.held.get(shown), token, base)

    def terms(self, token: str, value: bool = False) -> tuple[float, float]:
        """Probability that a token of a new line is a constant and this; and that it is a hole's value."""
        shown, s = class_of(token), self.settings
        held, kind = self.hole(token) * self.hole_class(shown), kind_of(shown)
        constant, hole = (1 - s.rho) * self.constant(token), s.rho * held
        if kind == "word" and not value and not self.holds(token):
            constant, hole = constant + (s.rho - s.rho_word) * held, s.rho_word * held
        if kind != "number" and (value or (kind == "identifier" and not wordy(token))):
            hole += s.placed * constant
            constant *= 1 - s.placed
        return constant, hole

    def found(self, line: Line) -> None:
        """Count a founding line."""
        for token in line:
            if token not in self.words.counts:
                self.classes.add(class_of(token))
            else:
                self.again.setdefault(class_of(token), Restaurant()).add(token)
            self.words.add(token)

    def found_values(self, line: Line) -> None:
        """Know the words of a founding line as values that stand where values do."""
        for i, token in enumerate(line):
            if wordy(token) and valued(line, i, line) and not self.holds(token):
                self.hold(token)

    def hold(self, token: str) -> None:
        """Count a value that is new to a hole."""
        table = self.held.setdefault(class_of(token), Restaurant())
        if token not in table.counts:
            self.held_classes.add(class_of(token))
        table.add(token)

    def let_go(self, token: str) -> None:
        """Count a value once less: two holes that have it are one."""
        table = self.held[class_of(token)]
        table.counts[token] -= 1
        table.total -= 1

    def holds(self, token: str) -> bool:
        """Whether a token is a value of some hole."""
        table = self.held.get(class_of(token))
        return table is not None and token in table.counts

    def forget_founders(self) -> None:
        """Begin anew with founding lines."""
        self.again, self.words, self.classes = {}, Restaurant(), Restaurant()

    def forget(self, token: str) -> None:
        """Take a token out of what holes hold."""
        shown = class_of(token)
        table = self.held.get(shown)
        if table is None or token not in table.counts:
            return
        table.total -= table.counts.pop(token)
        if not table.counts:
            del self.held[shown]
        self.held_classes.counts[shown] -= 1
        self.held_classes.total -= 1
        if not self.held_classes.counts[shown]:
            del self.held_classes.counts[shown]


@dataclass
class Slot:
    """A place in a template: its values among distinct lines, and what it may be."""

    founder: str
    law: float
    """How likely it is a hole, before its second value."""
    values: Counter[str] = field(default_factory=Counter)
    hole: float = 0.0
    """The same after its values."""
    forgotten: int = 0
    """Distinct lines whose value has been forgotten."""
    births: dict[str, int] = field(default_factory=dict)
    """Of a hole, which of its values is newer."""
    glued: bool = False
    """Whether the founding line had no blank before it."""

    @property
    def constant(self) -> bool:
        return len(self.values) == 1

    def terms(self, token: str, base: Base) -> tuple[float, float]:
        """The predictive of a token in a constant, and in a hole."""
        s = base.settings
        distinct, lines = len(self.values), self.values.total() + self.forgotten
        alike = sum(class_of(w) == class_of(token) for w in self.values)
        a = s.class_strength
        g = (alike + a * base.hole_class(class_of(token))) / (distinct + a) * base.hole(token)
        seen = max(self.values[token] - s.value_discount, 0.0)
        fresh = (s.value_strength + s.value_discount * distinct + self.forgotten) * g
        same = 1.0 if self.constant and token == self.founder else 0.0
        return same, (seen + fresh) / (lines + s.value_strength)

    def predictive(self, token: str, base: Base) -> float:
        """q: the mixture of them."""
        same, hole = self.terms(token, base)
        return (1 - self.hole) * same + self.hole * hole

    def add(self, token: str, base: Base) -> list[str]:
        """Count a token of a distinct line; the first is the founder's. Which values are new to a hole."""
        if self.values:
            self.hole *= self.terms(token, base)[1] / self.predictive(token, base)
        else:
            self.hole = self.law
        self.values[token] += 1
        return self.bear([token], base)

    def bear(self, tokens: Iterable[str], base: Base) -> list[str]:
        """Note in which order values come, and which are new; a constant is no value of a hole."""
        new = []
        for token in tokens:
            if self.births or token != self.founder:
                new += [w for w in dict.fromkeys((self.founder, token)) if w not in self.births]
                self.births.update((w, next(base.clock)) for w in new if w not in self.births)
        return new

    def log_terms(self, base: Base) -> tuple[float, float]:
        """log of law times marginal as a constant and as a hole, of all values but the founder's.

        One table a value, as for words: a lower bound where values repeat.
        """
        s, values, lines = base.settings, self.values, self.values.total()
        a, b, d = s.class_strength, s.value_strength, s.value_discount
        hole, seen = math.log(self.law), Counter([class_of(self.founder)])
        for number, w in enumerate((w for w in values if w != self.founder), 1):
            shown = class_of(w)
            hole += math.log((seen[shown] + a * base.hole_class(shown)) / (number + a) * base.hole(w))
            seen[shown] += 1
        hole += sum(math.log(b + j * d) for j in range(1, len(values)))
        hole += sum(math.lgamma(m - d) - math.lgamma(1 - d) for m in values.values())
        hole += math.lgamma(b + 1) - math.lgamma(b + lines)
        return math.log(1 - self.law) if self.constant and self.law < 1 else -math.inf, hole

    def log_marginal(self, base: Base) -> float:
        """log of the sum of them."""
        logs = self.log_terms(base)
        return max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs))


@dataclass
class Cluster:
    """A template: slots, and how often each of its distinct lines came."""

    label: int
    slots: list[Slot]
    founded: float = 0.0
    """log p0 of its first line."""
    lines: Counter[Line] = field(default_factory=Counter)
    last: int = -1
    """The number of its last line."""
    forgotten: list[Line] = field(default_factory=list)
    """Stand-ins for lines that have been forgotten."""

    @property
    def size(self) -> int:
        return self.lines.total()

    def log_q(self, line: Line, base: Base) -> float:
        """log of the product of the slots' predictives."""
        return sum(math.log(slot.predictive(w, base)) for slot, w in zip(self.slots, line, strict=True))

    def log_predictive(self, line: Line, base: Base) -> float:
        """A cache of whole lines; the slots are for what is not in it."""
        s, norm = base.settings, math.log(self.size + base.settings.line_strength)
        if line in self.lines:
            return math.log(self.lines[line] - s.line_discount) - norm
        fresh = s.line_strength + s.line_discount * len(self.lines)
        fresh += sum(self.lines[gone] - s.line_discount for gone in self.forgotten)
        return math.log(fresh) + self.log_q(line, base) - norm

    def add(self, line: Line, base: Base, count: int = 1) -> None:
        """Count a line; only one that is new to the template counts in its slots."""
        if line not in self.lines:
            for slot, w in zip(self.slots, line, strict=True):
                for new in slot.add(w, base):
                    base.hold(new)
        self.lines[line] += count

    def log_marginal(self, base: Base) -> float:
        """log H of all lines."""
        s = base.settings
        b, d, n, t = s.line_strength, s.line_discount, self.size, len(self.lines)
        total = self.founded + sum(math.log(b + i * d) for i in range(1, t))
        total += sum(math.lgamma(m - d) - math.lgamma(1 - d) for m in self.lines.values())
        total -= math.lgamma(b + n) - math.lgamma(b + 1)
        return total + sum(slot.log_marginal(base) for slot in self.slots)


def united(group: list[Cluster], base: Base) -> Cluster:
    """One cluster of all lines of several: the oldest founded it, and any of them might have."""
    group = sorted(group, key=lambda c: c.label)
    whole = Cluster(group[0].label, [], group[0].founded)
    for i, first in enumerate(group[0].slots):
        slot = Slot(first.founder, sum(c.slots[i].law for c in group) / len(group), glued=first.glued)
        for c in group:
            slot.values.update(c.slots[i].values)
            slot.forgotten += c.slots[i].forgotten
        slot.births = dict(first.births)
        for c in group[1:]:
            other = c.slots[i]
            newest = sorted(other.births, key=other.births.__getitem__, reverse=True)
            slot.bear(newest or [other.founder], base)
        constant, hole = slot.log_terms(base)
        slot.hole = 1 / (1 + math.exp(constant - hole))
        whole.slots.append(slot)
    for c in group:
        whole.lines.update(c.lines)
        whole.forgotten += c.forgotten
        whole.last = max(whole.last, c.last)
    return whole
