"""The faults of a talk: each is a function from a talk to the turns that have it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from localsim.conversation.names import whole
from localsim.conversation.rules.farewells import says_farewell
from localsim.conversation.transcript import ACTION_TYPES, Turn
from localsim.evaluators.play import phrases
from localsim.evaluators.play.repeats import SHORT, Utterance, plain_words
from localsim.evaluators.play.talk import PlayedText
from localsim.families import family_of

PAIR = 2
"""Fewest people in a talk."""
MUTE = 3
"""Fewest turns of an agent who never speaks among others who do: one may leave at once."""
BACK = 60
"""Earlier utterances that one is compared with, so that the work does not grow with the square of a long talk."""
LOOP = 4
"""Fewest turns of a loop: A B A B."""
STUBBORN = 4
"""Times that a price may be repeated word by word."""
PLACES = 2
"""Own turns at the beginning, and at the end, in which polite words alone are in their place."""


@dataclass(frozen=True)
class Fault:
    """A fault, and how many turns with it a talk may have."""

    name: str
    """Its score is `play_NAME`."""
    label: str
    """What the talk does, in two to four words."""
    says: str
    """What its turns do: they ..."""
    find: Callable[[PlayedText], Sequence[int]]
    """Return the indices of its turns."""
    least: int
    """Fewest turns that spoil a talk."""
    share: float = 0.0
    """Least share of turns that spoils one."""
    english: bool = False
    """True if it is found by English phrases."""
    acts: bool = False
    """True if all turns of agents can have it, and not only those with speech."""

    def base(self, talk: PlayedText) -> int:
        """Return how many turns could have the fault."""
        return len(talk.own(talk.transcript.acts if self.acts else talk.said))

    def weight(self, turns: Sequence[int], talk: PlayedText) -> float:
        """Return the number of turns with the fault in parts of the least number that spoils a talk: 1 does."""
        return len(turns) / max(self.least, self.share * self.base(talk))


# ---- repeats -------------------------------------------------------------------------------------------------------


def own_repeats(talk: PlayedText) -> list[int]:
    """Return the turns whose speaker said nearly the same before, or says one sentence three times in them.

    Short answers may be equal.
    """
    found = {now.turn.index for now, before in _earlier(talk, own=True) if any(now.like(each) for each in before)}
    for turn in talk.said:
        sentences = [plain_words(each) for each in re.split(r"[.!?]+", turn.action.text)]
        if any(len(each) > 3 and sentences.count(each) > 2 for each in sentences):
            found.add(turn.index)
    return sorted(found)


def parroting(talk: PlayedText) -> list[int]:
    """Return the turns that say nearly what another said before; short answers and polite words may be equal."""
    found = []
    for now, before in _earlier(talk, own=False):
        heard = [each for each in before if each.turn.beat != now.turn.beat]
        if any(now.like(each) for each in heard) and not talk.is_polite(now.turn):
            found.append(now.turn.index)
    return found


def _earlier(talk: PlayedText, *, own: bool) -> Iterator[tuple[Utterance, list[Utterance]]]:
    """Yield each utterance that is not short, with those before it of the same speaker, or of the others."""
    for at, now in enumerate(talk.utterances):
        if len(now.words) >= SHORT:
            before = [each for each in talk.utterances[:at] if (each.turn.speaker == now.turn.speaker) is own]
            yield now, before[-BACK:]


def loops(talk: PlayedText) -> list[int]:
    """Return the turns of runs of LOOP or more in which each says nearly the same as one of the round before it.

    Two who stand by their prices are in no loop, and short polite words are counted elsewhere.
    """
    period = min(BACK, max(PAIR, len({turn.speaker for turn in talk.said})))
    found: list[int] = []
    run: list[int] = []
    for at, now in enumerate(talk.utterances):
        back = [each for each in range(max(0, at - period), at) if now.like(talk.utterances[each])]
        if back and not _stands_by(talk, at) and not (now.is_short and talk.is_polite(now.turn)):
            run = [*(run or range(back[0], at)), at]
        else:
            found += run if len(run) >= LOOP else []
            run = []
    found += run if len(run) >= LOOP else []
    return [talk.utterances[at].turn.index for at in dict.fromkeys(found)]


def _stands_by(talk: PlayedText, at: int) -> bool:
    """Return True for a short answer with a number, such as a price, that has been given a few times only."""
    now = talk.utterances[at]
    return now.is_short and now.has_number and sum(map(now.same, talk.utterances[:at])) < STUBBORN


def silence(talk: PlayedText) -> list[int]:
    """Return the turns of agents who never speak, where there is nothing to do but talk, or all if only one speaks.

    One may leave at once, with a goodbye.
    """
    if talk.scenario.moves or talk.scenario.phases:
        return []
    speakers, acts = {turn.speaker for turn in talk.said}, talk.transcript.acts
    if len(speakers) < PAIR:
        first, *more = acts
        leaves = not more and first.said and first.action.type == "leave"
        left_at_once = leaves and (not talk.is_english or says_farewell(first.action.text))
        return [] if left_at_once else [turn.index for turn in acts]
    counts = Counter(turn.speaker for turn in acts)
    return [turn.index for turn in acts if turn.speaker not in speakers and counts[turn.speaker] >= MUTE]


# ---- words of an assistant -----------------------------------------------------------------------------------------


def politeness(talk: PlayedText) -> list[int]:
    """Return the turns of polite words alone, but for the first and last ones of each agent, and late goodbyes."""
    found, late = [], farewells(talk)
    for name in talk.scenario.names:
        own = [turn for turn in talk.said if turn.speaker == name]
        found += [turn.index for turn in own[PLACES:-PLACES] if talk.is_polite(turn) and turn.index not in late]
    return sorted(found)


def assistant(talk: PlayedText) -> list[int]:
    """Return the turns that speak as an assistant does."""
    return [turn.index for turn in talk.said if phrases.ASSISTANT.search(phrases.simple(turn.action.text))]


def refusals(talk: PlayedText) -> list[int]:
    """Return the turns that refuse as an assistant does."""
    return [turn.index for turn in talk.said if phrases.REFUSAL.search(phrases.simple(turn.action.text))]


# ---- roles ---------------------------------------------------------------------------------------------------------


def other_role(talk: PlayedText) -> list[int]:
    """Return the turns whose speaker gives another's name or side as the own one, or names itself as another would."""
    return [turn.index for turn in talk.said if _as_another(turn, talk) and not _reads_out(turn, talk)]


def _as_another(turn: Turn, talk: PlayedText) -> bool:
    text = turn.action.text
    given = _I_AM.findall(text)
    if any(name != turn.speaker and name in talk.people for name in given) or _names_itself(text, turn.speaker):
        return True
    side, plain = talk.sides.get(turn.speaker), phrases.simple(text)
    others = {other for other in talk.sides.values() if other != side}
    claims = family_of(talk.scenario.family).claims
    return any(
        re.search(rf"\bi(?:'m| am) (?:also )?(?:an?|the) {re.escape(other)}\b", plain)
        or (other in claims and claims[other].search(plain))
        for other in others
    )


def _names_itself(text: str, name: str) -> bool:
    """Return True if a text holds its speaker's name, but for an introduction; at the start a name may be a word."""
    for place in whole(name).finditer(text):
        before, after = text[: place.start()], text[place.end() :]
        opens = not before.strip() or before.rstrip()[-1] in ".!?"
        presented = _PRESENTS.search(before) or _HERE.match(after)
        if not presented and not after.startswith("-") and (not opens or _ADDRESS.match(after)):
            return True
    return False


_I_AM = re.compile(r"\b(?:I['’]?m|I am|[Mm]y name is|[Mm]y name['’]s) ([^\W\d_]\w*)")
_PRESENTS = re.compile(r"(?:\b(?:am|['’]?m|is|['’]s|me|called|named|as)|[—–(-]) ?$", re.IGNORECASE)
_HERE = re.compile(r" (?:here|speaking)\b")
_ADDRESS = re.compile(r"['’,!?]")


# ---- form ----------------------------------------------------------------------------------------------------------


def read_out(talk: PlayedText) -> list[int]:
    """Return the turns that consist mostly of the own instructions, or list the own traits as a profile does."""
    return [turn.index for turn in talk.said if _reads_out(turn, talk)]


def _reads_out(turn: Turn, talk: PlayedText) -> bool:
    return talk.instructions[turn.speaker].read_out_in(turn.action.text)


def spill(talk: PlayedText) -> list[int]:
    """Return the turns in which the form of the prompt or of a chat has become text, that of gestures included."""
    names = "|".join(map(re.escape, talk.scenario.names))
    kinds = {*ACTION_TYPES, *(move.name for move in talk.scenario.moves)}
    form = re.compile(
        rf"(?<!\w)(?:{names})(?: \[[^\]]*\])?:|[.!?] (?:{names})$|^(?i:{phrases.ROLE_WORDS})(?: \[[^\]]*\])?:"
        rf"|\[(?:{'|'.join(map(re.escape, sorted(kinds)))})\b[^\]]*\]"
    )
    texts = ((turn.index, turn.action.text) for turn in talk.transcript.acts if turn.action.text)
    return [index for index, text in texts if form.search(text) or phrases.is_marked(text)]


# ---- goodbyes ------------------------------------------------------------------------------------------------------


def farewells(talk: PlayedText) -> list[int]:
    """Return the turns in which agents who have said goodbye go on with goodbyes and other small words.

    Another must have said goodbye, too. One that leaves does what it says. A question or anything longer takes the
    talk up again.
    """
    gone: set[str] = set()
    late: list[int] = []
    for now in talk.utterances:
        turn = now.turn
        bye, small = says_farewell(turn.action.text), now.is_short and "?" not in turn.action.text
        if not (bye or small or talk.is_polite(turn)):
            gone = set()
        elif turn.action.type != "leave" and turn.speaker in gone and len(gone) >= PAIR:
            late.append(turn.index)
        elif bye:
            gone.add(turn.speaker)
    return late


FAULTS = (
    Fault("silence", "says nothing", "belong to no talk, since somebody never speaks", silence, 1, acts=True),
    Fault("read_out", "reads out instructions", "read out the instructions", read_out, 2, 0.1),
    Fault("other_role", "speaks as another", "speak as another person", other_role, 2, english=True),
    Fault("refusals", "refuses as an assistant", "refuse as an assistant does", refusals, 3, 0.1, english=True),
    Fault("assistant", "speaks as an assistant", "speak as an assistant does", assistant, 2, 0.1, english=True),
    Fault("spill", "form spills into speech", "hold signs of a form that is no speech", spill, 2, 0.15, acts=True),
    Fault("loop", "goes in a loop", "go in a loop", loops, LOOP),
    Fault("own_repeats", "repeats itself", "repeat what their speaker said before", own_repeats, 2, 0.1),
    Fault("parroting", "repeats the other", "repeat what the other said", parroting, 3, 0.2),
    Fault("politeness", "polite words alone", "hold polite words alone", politeness, 4, 0.4, english=True),
    Fault("farewells", "goodbyes go on", "go on after both have said goodbye", farewells, 4, english=True),
)
"""The faults, the gravest first: of two that are equally far above their limits, the first names the talk."""
