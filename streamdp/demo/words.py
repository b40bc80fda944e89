"""The words of the demonstration stream, written for it. No person or event is meant."""

from __future__ import annotations


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
