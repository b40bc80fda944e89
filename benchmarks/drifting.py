"""A generated stream of words with known truth: stories are born, rise, drift, fade and die.

Only the uniform random numbers of Python's Mersenne Twister and arithmetic that IEEE 754 rounds
exactly are used, so a seed gives the same bytes on every platform and Python release. The words are written
for it: no person or event is meant.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import accumulate
from math import sqrt

import msgspec


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COMMON = _words("""
    the to of in a and for on is as at with after says from by over new it that his be has will not are more
    was up first who than out but no two about this how their may its could what year an against day week
    report told calls warns before into amid still since three back time say when now plans ahead last set
    between why off being under next despite were do or near if down former later month should people local
    national world top big key major latest update live photos analysis opinion morning night today tomorrow
    statement sources official officials residents crowd media reporters questions response move decision
    pressure talks hopes fears concern support deal rise fall expected confirmed announces reveals seeks
    faces urges denies admits agrees rejects welcomes begins continues remains
""")
"""Words of every story, the most frequent first."""

PLACES = _words("""
    Aberdeen Accra Adelaide Algiers Ankara Antwerp Athens Auckland Austin Baltimore Bangkok Barcelona Basel
    Beirut Belfast Bergen Bilbao Bogota Bologna Bordeaux Boston Brisbane Bristol Bucharest Budapest Cairo
    Calgary Cardiff Casablanca Chennai Chicago Cologne Copenhagen Cork Dakar Dallas Delhi Denver Detroit
    Dresden Dublin Dundee Durban Edinburgh Florence Galway Gdansk Geneva Genoa Ghent Glasgow Gothenburg
    Graz Halifax Hamburg Hanoi Havana Helsinki Houston Istanbul Izmir Jakarta Karachi Krakow Lagos Lahore
    Leeds Leipzig Lima Lisbon Liverpool Lyon Madrid Malmo Manila Marseille Melbourne Memphis Milan Montreal
    Mumbai Munich Nairobi Nantes Naples Odessa Osaka Oslo Ottawa Palermo Perth Porto Prague Quito Reykjavik
    Riga Rotterdam Salzburg Santiago Seattle Seville Sofia Tallinn Tampere Toronto Trieste Tunis Turin
    Utrecht Valencia Vienna Vilnius Warsaw Zagreb Zurich
""")

PEOPLE = _words("""
    Abbott Achebe Albrecht Alvarez Andersen Aoki Arslan Asante Bakker Banerjee Barbieri Bauer Becker
    Bennett Berg Bianchi Brandt Bukowski Callaghan Carvalho Castillo Chandra Chaudhry Cohen Conti Costa
    Dahl Danjuma Delgado Demir Dubois Dvorak Eklund Eriksson Farouk Ferrari Fischer Fontaine Fraser Gallo
    Garnier Gupta Haddad Hansen Hartmann Hayashi Herrera Hoffman Horvath Hughes Ibrahim Ivanova Jansen
    Jimenez Johansson Kaplan Kariuki Kaya Kelleher Khalil Kimura Kovacs Kowalski Kruger Laine Lambert
    Larsen Lefevre Lindgren Lombardi Lopes Macleod Mahlangu Malik Marchetti Marino Mbeki Mendes Meyer
    Moreau Morita Murray Nakamura Navarro Nguyen Nilsson Novak Nwosu Oakley Obi Okafor Oliveira Olsen
    Osei Ozturk Papadakis Park Pereira Petrov Quinn Rahman Ramirez Rasmussen Reyes Ricci Romero Rossi
    Sandoval Santos Sato Schneider Sharma Sokolov Sorensen Sullivan Suzuki Takeda Tanaka Tembo Toth Vargas
    Vasquez Virtanen Visser Wagner Walsh Watanabe Weber Yamada Yilmaz Zielinski Zimmermann
""")

Theme = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _theme(subjects: str, events: str, words: str) -> Theme:
    return _words(subjects), _words(events), _words(words)


THEMES: tuple[Theme, ...] = (
    _theme(
        "harbour rail dockers teachers nurses bus miners postal refuse airport",
        "strike walkout dispute lockout ballot",
        """union wages workers picket employers overtime pay negotiators pensions shift contract depot
        cargo commuters stoppage arbitration staff rota containers mediator timetable solidarity backlog
        freight replacement grievance members terms offer rally""",
    ),
    _theme(
        "council mayoral coalition parliament senate referendum cabinet budget border electoral",
        "vote crisis debate reform scandal",
        """minister party voters ballot polls opposition majority campaign candidate leader amendment
        committee bill lawmakers resignation speech turnout manifesto constitution alliance deputy
        district seats legislation spokesman veto motion recount ally chamber""",
    ),
    _theme(
        "cup league derby marathon tennis cycling rugby sailing athletics transfer",
        "final upset record ban semifinal",
        """coach striker goal penalty season fans stadium match injury keeper captain champions medal
        squad referee sprint title defender qualifier overtime kick tournament podium rival scorer draw
        substitute training finish relay""",
    ),
    _theme(
        "river coastal mountain forest desert island valley winter summer monsoon",
        "flood storm wildfire landslide drought",
        """rescue evacuation rainfall wind damage shelter roads bridge homes firefighters helicopter
        forecast levee warning volunteers power outage sandbags smoke debris victims village waters
        meteorologists crops gale embankment emergency tents cleanup""",
    ),
    _theme(
        "bank steel airline retail chip battery shipping brewery housing insurance",
        "merger takeover layoffs bankruptcy bailout",
        """shares investors profit market debt analysts chief quarter revenue factory bid regulator
        shareholders bonds prices loan auditors dividend supply customers exports jobs rating losses
        stake creditors billion plant rivals forecast""",
    ),
    _theme(
        "comet lunar telescope rocket genome fossil coral glacier fusion satellite",
        "discovery mission launch study breakthrough",
        """scientists researchers laboratory orbit data astronomers probe samples journal experiment
        planet species crew engine sensor observatory measurements theory evidence team university
        temperature ocean surface images instrument climate physicist survey particles""",
    ),
    _theme(
        "fraud murder bribery smuggling hacking poaching arson kidnapping forgery art",
        "trial verdict raid appeal inquiry",
        """judge court jury prosecutor lawyer defendant witness evidence police sentence charges
        detectives testimony prison guilty suspect arrest bail investigators victim warrant hearing
        confession detained gang accused seized officers documents plea""",
    ),
    _theme(
        "film opera museum jazz theatre book fashion gallery ballet television",
        "festival premiere award exhibition revival",
        """director actor audience critics stage singer novel paintings orchestra prize curator album
        designer script tickets sculpture playwright collection review dancer studio screen author
        applause portrait concert cast debut tour publisher""",
    ),
    _theme(
        "measles flu cholera hospital vaccine surgery cancer asthma diabetes dengue",
        "outbreak shortage recall trial screening",
        """doctors patients clinic virus health infection ward symptoms doses epidemic treatment nurses
        medicine cases immunity researchers ambulance surgeons children tests quarantine drug clinical
        beds pharmacy disease hygiene mosquitoes tablets guidelines""",
    ),
    _theme(
        "metro tunnel ferry tram motorway bridge bicycle railway runway lorry",
        "collapse delay opening closure crash",
        """passengers traffic engineers train drivers route station tracks construction concrete safety
        signal lanes contractor inspection detour vehicles platform carriage toll commuters cracks
        repairs crane junction brakes operator cables budget pier""",
    ),
    _theme(
        "phone privacy robot search chatbot cloud video satellite password payment",
        "outage breach lawsuit update rollout",
        """users software engineers data app hackers servers startup algorithm developers network
        customers code device encryption accounts screen camera patent platform messages feature glitch
        browser download regulators laptops malware subscribers chips""",
    ),
    _theme(
        "refugee peace hostage arms grain fishing nuclear climate embassy trade",
        "summit treaty talks sanctions ceasefire",
        """diplomats envoy ministers delegation border troops agreement president ambassador negotiators
        aid convoy mediators tariffs visas allies resolution camp council deadline embargo inspectors
        peacekeepers protest signing exports quota communique security withdrawal""",
    ),
)
"""Per theme: what a story is about, what happens, and further words, any of which a story may use."""


START = 1_767_571_200.0
"""Event time at which every stream begins: 5 January 2026, 00:00 UTC."""

_MINUTES_BETWEEN_BIRTHS = 120
_LIFE_HOURS = (4, 6, 8, 12, 18, 24, 36, 48, 72)
_SMALLEST, _LARGEST = 14, 600  # records of a story
_PEAK = 0.15  # of a story's life
_HEADLINE = 4  # words, which lead a story's list and stay
_MORE_WORDS = (4, 16)
_TURNOVER = 0.8  # of the other words, replaced over a story's life
_TEXT_WORDS = (6, 16)
_TOPIC_SHARE = 0.6  # of a text's words


class DemoRecord(msgspec.Struct, frozen=True):
    """One headline: event time in seconds since the epoch, and the story it truly belongs to."""

    time: float
    id: str
    text: str
    topic: str


class _Story(msgspec.Struct):
    """A story in progress: its words from the most to the least frequent, and how far it has come."""

    name: str
    theme: int
    words: list[str]
    size: int
    headlines: int = 0
    replaced: int = 0


def demo_stream(n: int, seed: int) -> Iterator[DemoRecord]:
    """The first ``n`` records of the stream of ``seed``, in time order.

    Stories are born at random, one in two hours (a Poisson process by the minute), and live four
    hours to three days with a fast rise and a slow decay; their sizes follow a power law between 14
    and 600 records. While a story runs, most of its words but the headline's are replaced. It may share
    its place or a person with a recent story, and further words with any story of its theme.

    ``topic`` is a story's number and headline, such as "17 harbour strike, Bergen, Okafor". A shorter
    stream is the beginning of a longer one. Raises ``ValueError`` for a negative argument.
    """
    if n < 0 or seed < 0:
        raise ValueError(f"n and seed must not be negative, got {n} and {seed}")
    return _records(n, random.Random(seed))


def _records(n: int, rng: random.Random) -> Iterator[DemoRecord]:
    # What is due, as (time, serial, story): the serial decides between equal times.
    due: list[tuple[float, int, _Story]] = []
    recent: deque[_Story] = deque(maxlen=8)
    stories = serial = 0
    birth = START
    for i in range(n):
        while not due or due[0][0] >= birth:
            story = _born(rng, stories, recent)
            recent.append(story)
            stories += 1
            for time in _times(rng, birth, story.size):
                heappush(due, (time, serial, story))
                serial += 1
            birth = _next_birth(rng, birth)
        time, _, story = heappop(due)
        yield DemoRecord(time=time, id=f"{i:06}", text=_headline(rng, story), topic=story.name)


def _below(rng: random.Random, k: int) -> int:
    """A whole number from 0 to k - 1."""
    return int(rng.random() * k)


def _one_of(rng: random.Random, choices: Sequence[str]) -> str:
    return choices[_below(rng, len(choices))]


def _between(rng: random.Random, ends: tuple[int, int]) -> int:
    return ends[0] + _below(rng, ends[1] - ends[0] + 1)


def _next_birth(rng: random.Random, birth: float) -> float:
    minutes = 1
    while rng.random() * _MINUTES_BETWEEN_BIRTHS >= 1.0:
        minutes += 1
    return birth + 60.0 * minutes


def _times(rng: random.Random, birth: float, size: int) -> list[float]:
    life = 3600.0 * _LIFE_HOURS[_below(rng, len(_LIFE_HOURS))]
    return [round(birth + life * min(_triangular(rng), _triangular(rng)), 3) for _ in range(size)]


def _triangular(rng: random.Random) -> float:
    u = rng.random()
    return sqrt(u * _PEAK) if u < _PEAK else 1.0 - sqrt((1.0 - u) * (1.0 - _PEAK))


def _born(rng: random.Random, number: int, recent: Sequence[_Story]) -> _Story:
    u = 1.0 - rng.random()
    # Pareto with exponent 2/3: its inverse distribution function needs a square root only.
    size = int(min(_SMALLEST / (u * sqrt(u)), _LARGEST))
    theme = _below(rng, len(THEMES))
    subjects, events, _ = THEMES[theme]
    place, person = _one_of(rng, PLACES), _one_of(rng, PEOPLE)
    if recent and rng.random() < 0.35:
        place = recent[_below(rng, len(recent))].words[2]
    if recent and rng.random() < 0.2:
        person = recent[_below(rng, len(recent))].words[3]
    words = [_one_of(rng, subjects), _one_of(rng, events), place, person]
    name = f"{number} {words[0]} {words[1]}, {place}, {person}"
    story = _Story(name=name, theme=theme, words=words, size=size)
    for _ in range(_between(rng, _MORE_WORDS)):
        words.append(_fresh_word(rng, story))
    return story


def _fresh_word(rng: random.Random, story: _Story) -> str:
    """A word that the story does not use now: mostly its theme's, else a name or a word of any theme."""
    while True:
        u = rng.random()
        if u < 0.7:
            word = _one_of(rng, THEMES[story.theme][2])
        elif u < 0.85:
            word = _one_of(rng, PEOPLE)
        else:
            word = _one_of(rng, THEMES[_below(rng, len(THEMES))][2])
        if word not in story.words:
            return word


def _drift(rng: random.Random, story: _Story) -> None:
    others = len(story.words) - _HEADLINE
    while story.replaced < int(_TURNOVER * others * story.headlines / story.size):
        fresh = _fresh_word(rng, story)
        del story.words[_HEADLINE + _below(rng, others)]
        story.words.insert(_HEADLINE + _below(rng, others), fresh)
        story.replaced += 1


def _headline(rng: random.Random, story: _Story) -> str:
    _drift(rng, story)
    story.headlines += 1
    length = _between(rng, _TEXT_WORDS)
    of_topic = sum(rng.random() < _TOPIC_SHARE for _ in range(length))
    of_topic = max(2, min(of_topic, len(story.words) - 1))
    words = _distinct(rng, story.words, of_topic) + _distinct(rng, COMMON, length - of_topic)
    for last in range(length - 1, 0, -1):
        other = _below(rng, last + 1)
        words[last], words[other] = words[other], words[last]
    return " ".join(words)


def _distinct(rng: random.Random, words: Sequence[str], count: int) -> list[str]:
    """``count`` different words, drawn by Zipf's law over their ranks."""
    totals = _zipf(len(words))
    drawn: list[str] = []
    while len(drawn) < count:
        word = words[bisect(totals, rng.random() * totals[-1])]
        if word not in drawn:
            drawn.append(word)
    return drawn


@cache
def _zipf(n: int) -> list[float]:
    return list(accumulate(1.0 / (rank + 3) for rank in range(n)))
