"""Words of grammar: articles, pronouns, prepositions, conjunctions, auxiliaries and the like, by language.

They say how a sentence is built and not what it is about. In a short text they are a third of all words, and
what they agree in would be taken for a topic ("what is the best way to ..."). Only closed classes are
listed, which hardly ever gain a word; nouns, adjectives and full verbs are none, however common. Nor are
negations, nor what tells a thing that is up from one that is down. The words are spelt as
:mod:`streamdp.encode.words` cuts them.
"""

# ruff: noqa: RUF001 - Russian letters look like others

from __future__ import annotations

import functools
import itertools
from typing import Final

from streamdp.encode.text import Tokenizer

_LISTS: Final = {
    "english": """
an the this that these those me my mine myself we us our ours ourselves you your yours yourself yourselves he
him his himself she her hers herself it its itself they them their theirs themselves who whom whose which what
where when why how whatever whoever whichever whenever wherever am is are was were be been being have has had
having do does did doing done will would shall should can could may might must ought cannot and or but so if
then else because as until till while although though unless whereas whether than of at by for with about
against between into through during before after above below to from in out on over under again further onto
upon within along across behind beyond near toward towards per via since among amongst around here there once
now just only also too very any each few more most other some such own same both all every either another much
many several enough ever never always often still yet even already almost quite rather perhaps maybe however
thus hence therefore get got getting gets let lets use using used im ive youre dont doesnt didnt isnt arent
wasnt werent wont wouldnt cant couldnt shouldnt hasnt havent hadnt
""",
    "german": """
der die das den dem des ein eine einer eines einem einen dieser diese dieses diesem diesen jener jene jenes
jenem jenen ich mich mir mein meine meiner meines meinem meinen du dich dir dein deine deiner deinem deinen er
ihn ihm sein seine seiner seines seinem seinen sie ihr ihre ihrer ihres ihrem ihren ihnen es wir uns unser
unsere unserer unserem unseren euch euer eure man sich selbst wer wen wem wessen was welcher welche welches
welchem welchen wo wohin woher wann warum weshalb wieso wie bin bist ist sind seid war warst waren wart
gewesen worden wird werden werde wurde wurden würde würden habe hast hat haben habt hatte hatten hätte hätten
kann kannst können könnt konnte konnten könnte könnten muss müssen musste mussten darf dürfen durfte soll
sollen sollte sollten will wollen wollte wollten mag mögen möchte möchten und oder aber denn sondern doch dass
weil wenn ob als obwohl damit während bevor nachdem bis seit um in im ins an am ans auf aus bei beim mit nach
von vom zu zum zur für durch gegen über unter vor hinter neben zwischen wegen trotz statt ab auch noch nur
schon sehr so da dann dort hier hin her nun jetzt ja nein mehr viel viele vielen alle allem allen aller alles
andere anderen anderer anderes einige einigen jede jedem jeden jeder jedes etwas wieder immer nie sowie also
""",
    "french": """
le la les un une des du de au aux ce cet cette ces je me moi mon ma mes tu te toi ton ta tes il elle lui se
soi son sa ses nous notre nos vous votre vos ils elles eux leur leurs on en qui que quoi dont où quel quelle
quels quelles lequel laquelle lesquels lesquelles qu quand comment pourquoi combien suis es est sommes êtes
sont étais était étions étiez étaient serai sera serons serez seront serait seraient été étant être ai as
avons avez ont avais avait avions avaient aura auront aurait auraient eu ayant avoir fait faire peut peux
peuvent pouvez pouvons pourrait pouvoir doit doivent devait devrait et ou mais donc or ni car si comme lorsque
puisque quoique afin ainsi alors dans par pour sur sous avec chez vers entre contre depuis pendant avant après
devant derrière dès jusque jusqu hors selon malgré parmi plus moins très trop peu aussi encore déjà toujours
jamais tout toute tous toutes autre autres même mêmes chaque plusieurs quelque quelques certains certaines ici
là cela ça ceci celui celle ceux celles cest
""",
    "spanish": """
el la los las lo un una unos unas al del este esta estos estas ese esa esos esas eso esto aquel aquella
aquellos aquellas yo me mi mis mí conmigo tú tu tus te ti contigo él ella ello su sus se sí nosotros nosotras
nos nuestro nuestra nuestros nuestras vosotros vosotras os vuestro vuestra ellos ellas usted ustedes le les
quien quién quienes qué que cual cuál cuales cuáles cuyo cuya donde dónde cuando cuándo como cómo cuánto
cuántos porque por soy eres es somos sois son era eras éramos eran fui fue fueron será serán sería serían sido
siendo ser estoy está estás estamos están estaba estaban estar he has ha hemos han había habían habrá haber
hay tengo tiene tienen tenía tener puede pueden puedo podría poder debe deben debería hacer hace ni pero sino
mas si pues aunque mientras ante bajo con contra de desde durante en entre hacia hasta para según sobre tras
algo alguien algún alguna alguno algunos algunas muy más menos mucho mucha muchos muchas poco poca pocos pocas
también tampoco ya aún todavía siempre nunca todo toda todos todas otro otra otros otras mismo misma mismos
mismas cada tan tanto así entonces aquí allí ahí
""",
    "italian": """
il lo la gli le un uno una del dello della dell dei degli delle al allo alla all ai agli alle dal dallo dalla
dall dai dagli dalle nel nello nella nell nei negli nelle sul sullo sulla sull sui sugli sulle col questo
questa questi queste quest quello quella quelli quelle quel quei quegli io me mi mio mia miei mie tu te ti tuo
tua tuoi tue lui lei egli ella esso essa sé si suo sua suoi sue noi ci nostro nostra nostri nostre voi vi
vostro vostra vostri vostre loro essi esse ne chi che cosa cui quale quali dove quando come perché perchè
quanto quanta quanti quante sono sei siamo siete ero era eravamo erano fui fu furono sarà saranno sarebbe
stato stata stati state essere ho hai ha abbiamo avete hanno aveva avevano avrà avrebbe avere avuto fa fare
può possono posso potrebbe deve devono dovrebbe ed od ma però anche se dunque quindi mentre poiché affinché di
in con su per tra fra da ad sotto sopra dentro fuori prima dopo contro verso durante più meno molto molta
molti molte poco tutto tutta tutti tutte altro altra altri altre ogni stesso stessa ancora già sempre mai qui
qua lì là così allora solo
""",
    "portuguese": """
os as um uma uns umas ao aos às do da dos das no na nos nas num numa pelo pela pelos pelas este esta estes
estas esse essa esses essas isso isto aquele aquela aqueles aquelas eu me mim meu minha meus minhas comigo tu
te ti teu tua teus tuas ele ela lhe lhes se si seu sua seus suas nós nosso nossa nossos nossas vós vos você
vocês eles elas dele dela deles delas quem que quê qual quais cujo cuja onde quando como porque porquê quanto
quantos sou és somos são era eram fui foi foram será serão seria seriam sido sendo ser estou está estamos
estão estava estavam estar tenho tem têm temos tinha tinham terá ter há havia haver pode podem posso poderia
poder deve devem deveria fazer faz ou mas pois embora enquanto em de para pra por com sob sobre entre contra
desde até após ante perante durante algo alguém algum alguma alguns algumas muito muita muitos muitas pouco
pouca mais menos também já ainda sempre nunca todo toda todos todas tudo outro outra outros outras mesmo mesma
cada tão tanto assim então aqui ali lá só
""",
    "dutch": """
de het een der den des dit dat deze die ik me mij mijn jij je jou jouw jullie hij hem zijn haar zij ze uw wij
we ons onze hen hun zich zelf wie wat welke welk waar wanneer waarom hoe ben bent is was waren geweest wordt
worden werd werden heb hebt heeft hebben had hadden gehad kan kun kunt kunnen kon konden zou zouden zal zullen
moet moeten moest mag mogen mocht wil willen wilde doe doet doen en of maar want dus omdat als dan terwijl
hoewel zodat toen in op aan van voor met bij uit naar over onder door tegen om te tot tussen na sinds achter
naast binnen buiten tijdens ook nog al nu wel zo er hier daar meer veel weinig alle alles iets iemand andere
ander elk elke ieder iedere zeer heel altijd nooit weer
""",
    "swedish": """
en ett den det de denna detta dessa jag mig min mitt mina du dig din ditt dina han honom hans hon henne hennes
sin sitt sina vi oss vår vårt våra ni er ert era dem deras man sig själv vem vad vilken vilket vilka var när
varför hur är vara varit blir bli blev blivit har hade ha haft kan kunde ska skall skulle ville vill måste får
fick och eller men utan för att om som så då medan eftersom än på av till från med vid ur in ut upp ner över
under mot genom mellan efter före innan sedan hos inom också även nu här där redan bara mycket mer mest alla
allt annan annat andra någon något några varje samma ju
""",
    "norwegian": """
en ei et den det de denne dette disse jeg meg min mitt mine du deg din ditt dine han ham hans hun henne hennes
sin sitt sine vi oss vår vårt våre dere deres dem man seg selv hvem hva hvilken hvilket hvilke hvor når
hvorfor hvordan er var være vært blir bli ble blitt har hadde ha hatt kan kunne skal skulle vil ville må måtte
får fikk og eller men for at om som så da mens fordi enn på av til fra med ved ut inn opp ned over under mot
gjennom mellom etter før siden hos også nå her der bare mye mer mest alle alt annen annet andre noen noe hver
samme jo
""",
    "danish": """
en et den det de denne dette disse jeg mig min mit mine du dig din dit dine han ham hans hun hende hendes sin
sit sine vi os vor vores jer jeres dem deres man sig selv hvem hvad hvilken hvilket hvilke hvor hvornår
hvorfor hvordan er var være været bliver blive blev blevet har havde have haft kan kunne skal skulle vil ville
må måtte får fik og eller men for at om som så da mens fordi end på af til fra med ved ud ind op ned over
under mod gennem mellem efter før siden hos også nu her der kun meget mere mest alle alt anden andet andre
nogen noget nogle hver samme jo
""",
    "polish": """
ten ta to te tego tej tych tym tymi tę tą ja mnie mi mną mój moja moje mojego ty ciebie cię ci tobą twój twoja
twoje on ona ono jego jej jemu mu nim nią niego niej ich im nich nimi my nas nam nami nasz nasza nasze wy was
wam wasz oni one się siebie sobie swój swoja swoje swoich kto kogo komu kim co czego czemu czym który która
które którego której których którym jaki jaka jakie gdzie kiedy dlaczego jak ile jestem jesteś jest jesteśmy
są był była było byli były być będzie będą mam ma mają miał miała mieć może mogą można musi trzeba oraz albo
lub ale lecz więc bo ponieważ że żeby aby jeśli jeżeli gdy gdyby choć czy we na do od ode po pod nad przed
przez przy za ze dla między ku tak też także już jeszcze tylko bardzo więcej tu tam teraz coś ktoś każdy każda
każde wszystko wszyscy wszystkie inny inna inne taki taka takie sam sama samo
""",
    "russian": """
меня мне мной мой моя моё мое мои моего моей моих ты тебя тебе тобой твой твоя твое твои он его ему им нем нём
она её ее ей ней ею оно мы нас нам нами наш наша наше наши вы вас вам вами ваш ваша ваше ваши они их ими них
ним ними себя себе собой свой своя свое своё свои своего своей своих этот эта это эти этого этой этих этом
этому тот та то те того той тех том тому кто кого кому кем что чего чему чем чём который которая которое
которые которого которой которых где куда откуда когда почему зачем как какой какая какое какие сколько есть
был была было были быть будет будут может могут можно надо нужно должен должна должны или но да же ли бы если
чтобы потому хотя пока либо тоже также на по за из от до для при под над про через между перед после около во
со ко об обо уже ещё еще только очень более больше здесь там тут так теперь сейчас всё все всех всего всем
весь вся каждый другой другие другая сам сама сами самый
""",
}

LANGUAGES: Final = tuple(_LISTS)
"""Those that have a list, in the order in which one goes before another that has as many words of a text."""

_WORDS: Final = tuple(frozenset(words.split()) for words in _LISTS.values())


def stop_words(language: str) -> frozenset[str]:
    """The list of a language of ``LANGUAGES``. ValueError for another.

    >>> from streamdp.encode.stop_words import stop_words
    >>> sorted(stop_words("english"))[:5]
    ['about', 'above', 'across', 'after', 'again']
    """
    return _WORDS[LANGUAGES.index(language)]


@functools.cache
def _marks(stem: str) -> dict[str, int]:
    tokenizer, found = Tokenizer(stem=stem), dict[str, int]()
    for bit, words in enumerate(_WORDS):
        for token in itertools.chain.from_iterable(map(tokenizer.tokens, words)):
            found[token] = found.get(token, 0) | 1 << bit
    return found


def mark(token: str, stem: str = "none") -> int:
    """In which languages a token is a stop word, a bit each; a run of words is one where all of them are.

    ``stem`` is the tokenizer's.

    >>> from streamdp.encode.stop_words import mark
    >>> bin(mark("in")), mark("cluster")
    ('0b101001011', 0)
    """
    marks, found = _marks(stem), -1
    for word in token.split(" "):
        found &= marks.get(word, 0)
    return found
