"""Words that change from line to line as numbers do: in dates, units of numbers, true, false and null."""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import kernel

SPACE, DIGIT, LETTER, DELIMITER, JOINER, HEX, SIGN, OPENS = 1, 2, 4, 8, 16, 32, 64, 128
ALNUM = DIGIT | LETTER


def _kinds() -> np.ndarray:
    kinds = np.zeros(256, np.uint8)
    for chars, kind in (
        (b" \t\n\v\f\r", SPACE),
        (b"0123456789", DIGIT | HEX),
        (b"abcdefABCDEF", HEX),
        (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", LETTER),
        (b"=:,;()[]\"'", DELIMITER),
        (b".:,/_-", JOINER),
        (b"+-<>~", SIGN),
        (b"\"'[{?", OPENS),
    ):
        for char in chars:
            kinds[char] |= kind
    return kinds


KINDS = _kinds()
"""What each byte is."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
ZONES = (
    "UTC",
    "GMT",
    "EST",
    "EDT",
    "CST",
    "CDT",
    "MST",
    "MDT",
    "PST",
    "PDT",
    "CET",
    "CEST",
    "BST",
    "AM",
    "PM",
)
SIZES = ("B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "kB", "byte", "bytes")
DURATIONS = (
    *("ns", "us", "ms", "msec", "msecs", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute"),
    *("minutes", "hour", "hours", "day", "days", "milliseconds", "millisecond"),
)
VALUES = ("true", "false", "True", "False", "TRUE", "FALSE")
EMPTY_VALUES = ("null", "None", "nil", "NULL")
GROUPS = (
    tuple(name for day in WEEKDAYS for name in (day, day[:3])),
    tuple(name for month in MONTHS for name in (month, month[:3])),
    ZONES,
    SIZES + DURATIONS,
    VALUES,
    EMPTY_VALUES,
)
WEEKDAY, MONTH, ZONE, UNIT, VALUE, EMPTY_VALUE = range(6)
LONGEST = max(len(word) for group in GROUPS for word in group)


def _words() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All words by their first letter: bytes, lengths, groups; and where each letter's begin."""
    words = sorted((word.encode(), group) for group, of in enumerate(GROUPS) for word in dict.fromkeys(of))
    letters = np.zeros((len(words), LONGEST), np.uint8)
    for row, (word, _) in zip(letters, words, strict=True):
        row[: len(word)] = list(word)
    first = np.searchsorted(letters[:, 0], np.arange(257))
    lengths = np.array([len(word) for word, _ in words])
    return letters, lengths, np.array([group for _, group in words]), first


def _begin() -> np.ndarray:
    """Which two letters begin a word that is folded without a number before it."""
    begin = np.zeros((256, 256), bool)
    for group in (WEEKDAY, MONTH, VALUE, EMPTY_VALUE):
        for word in GROUPS[group]:
            begin[ord(word[0]), ord(word[1])] = True
    return begin


SPELLED, LENGTHS, GROUP, FIRST = _words()
BEGIN = _begin()


@kernel
def run_end(data: np.ndarray, at: int, stop: int, kind: int) -> int:
    """Where a run of bytes of a kind ends."""
    while at < stop and KINDS[data[at]] & kind:
        at += 1
    return at


@kernel
def ends(data: np.ndarray, at: int, stop: int) -> bool:
    """Whether no letter or digit is at a place."""
    return bool(at >= stop or not KINDS[data[at]] & ALNUM)


@kernel
def _word(data: np.ndarray, at: int, stop: int) -> tuple[int, int]:
    """The group of the word at a place, or -1; where it ends."""
    byte = data[at] if at < stop else np.uint8(0)
    if FIRST[byte] == FIRST[byte + 1]:
        return -1, at
    end = at + 1
    while end < stop and end - at <= LONGEST and KINDS[data[end]] & LETTER:
        end += 1
    if not ends(data, end, stop):
        return -1, at
    for word in range(FIRST[byte], FIRST[byte + 1]):
        if LENGTHS[word] == end - at:
            same = True
            for i in range(1, end - at):
                same = same and data[at + i] == SPELLED[word, i]
            if same:
                return int(GROUP[word]), end
    return -1, at


@kernel
def _day_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where a day or a year of one, two or four digits ends; ``at`` where there is none."""
    end = run_end(data, at, stop, DIGIT)
    return end if end - at in (1, 2, 4) and ends(data, end, stop) else at


@kernel
def _part_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where a time of day, a year, an offset or a time zone ends; ``at`` where there is none."""
    if at >= stop:
        return at
    if data[at] == 43 or data[at] == 45:
        end = run_end(data, at + 1, stop, DIGIT)
        return end if end - at == 5 and ends(data, end, stop) else at
    if KINDS[data[at]] & LETTER:
        group, end = _word(data, at, stop)
        return end if group == ZONE else at
    end = digits = run_end(data, at, stop, DIGIT)
    if end == at:
        return at
    while end + 1 < stop and data[end] == 58 and KINDS[data[end + 1]] & DIGIT:
        end = run_end(data, end + 1, stop, DIGIT)
    if end == digits:
        year = end - at == 4 and (
            (data[at] == 49 and data[at + 1] == 57) or (data[at] == 50 and data[at + 1] == 48)
        )
        return end if year and ends(data, end, stop) else at
    if end + 1 < stop and (data[end] == 46 or data[end] == 44) and KINDS[data[end + 1]] & DIGIT:
        end = run_end(data, end + 1, stop, DIGIT)
    return end if ends(data, end, stop) else at


@kernel
def date_end(data: np.ndarray, start: int, at: int, stop: int) -> int:
    """Where the date with a month's name that begins at a place ends; ``at`` where none does.

    A weekday may be before it; a time of day, a year and a time zone behind it.
    """
    i = at
    group, end = _word(data, i, stop)
    if group == WEEKDAY:
        if end < stop and data[end] == 44:
            end += 1
        i = end
        while i < stop and data[i] == 32:
            i += 1
        if i == end:
            return at
        group, end = _word(data, i, stop)
    elif KINDS[data[at]] & DIGIT and at > start and KINDS[data[at - 1]] & (JOINER | SIGN):
        return at
    day = -1
    if group != MONTH:
        day = _day_end(data, i, stop)
        if day == i or day - i > 2 or day >= stop or data[day] not in (32, 45, 47):
            return at
        group, end = _word(data, day + 1, stop)
        if group != MONTH:
            return at
    if end >= stop or data[end] not in (32, 45, 47):
        return at
    i = end + 1
    if day < 0 and i < stop and data[i] == 32:
        i += 1
    end = _day_end(data, i, stop)
    if end == i:
        return at
    while end < stop and data[end] in (32, 44, 58, 84):
        i = end + 1
        if i < stop and data[i] == 32:
            i += 1
        further = _part_end(data, i, stop)
        if further == i:
            break
        end = further
    return end


@kernel
def may_begin(data: np.ndarray, at: int, stop: int) -> bool:
    """Whether a date or a value may begin at a place with a letter or digit: most do not, as is soon seen."""
    if KINDS[data[at]] & DIGIT == 0:
        return bool(at + 1 < stop and BEGIN[data[at], data[at + 1]])
    i = at + 2 if at + 1 < stop and KINDS[data[at + 1]] & DIGIT else at + 1
    return bool(i + 1 < stop and data[i] in (32, 45, 47) and KINDS[data[i + 1]] & LETTER)


@kernel
def unit_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where the unit behind a number that ends at a place ends; ``at`` where there is none."""
    if at + 1 >= stop or data[at] != 32:
        return at
    group, end = _word(data, at + 1, stop)
    return end if group == UNIT and (end == stop or data[end] != 95) else at


@kernel
def word_end(data: np.ndarray, start: int, at: int, stop: int) -> int:
    """Where true or false, or null behind a sign that a value follows, ends; ``at`` where it is else."""
    group, end = _word(data, at, stop)
    if group != VALUE and group != EMPTY_VALUE:
        return at
    if end < stop and data[end] in (45, 47, 95):
        return at
    before = data[at - 1] if at > start else np.uint8(32)
    if group == VALUE:
        if before in (45, 46, 47, 95) or (
            end + 1 < stop and data[end] == 46 and not ends(data, end + 1, stop)
        ):
            return at
        return end
    if before == 32 and at - 1 > start:
        before = data[at - 2]
    return end if before in (40, 44, 58, 61, 91, 123, 124) else at
