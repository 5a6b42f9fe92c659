"""Wordle of LMRL-Gym (arXiv 2311.18232), for two players who guess in turn and each know one letter.

A hidden word of five letters, six tries. -1 for each guess, also for one that is no word of the list, and 0 for the
winning one. A letter is marked as in LMRL-Gym: `here` at its place, `elsewhere` if the word has it at another place
(repeated letters are not counted), else `no`. By default the rules draw the hidden word again before each guess, from
the words that fit all marks so far, as LMRL-Gym does; a word that was fixed at the start has marks of the same
probabilities. LMRL-Gym has one player. Here two take turns, so that neither is a mere onlooker, and each knows one
letter with its place, so that there is something to tell: without clues it is the published game with two heads.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.guessing.naming import entropy
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

# Common words. Words of the instructions in prompts, such as `other`, are left out: a hidden word is in no prompt.
WORDS: tuple[str, ...] = tuple(
    """
about above actor adult after agent agree ahead alarm album alert alike alive allow alone along among anger angle
angry apart apple apply argue arise armor arrow aside asset audio avoid award aware awful bacon badge badly baker basic
basis beach beard beast begin being below bench berry birth black blade blame blank blast blaze bleed blend bless blind
block blood bloom board boast bonus boost booth bound brain brake brand brave bread break breed brick bride brief bring
broad broom brown brush build built bunch burst buyer cabin cable camel candy canoe cargo carry carve catch cause chain
chair chalk charm chart chase cheap check cheek cheer chess chest chief child chill choir civil claim class clean clear
clerk click cliff climb clock close cloth cloud clown coach coast color comic coral couch cough count court cover crack
craft crane crash crawl crazy cream creek crime crisp cross crowd crown crush crust curve cycle daily dairy dance dealt
death decay delay depth diary dirty doubt dozen draft drain drama dream dress drift drill drink drive drown eager eagle
early earth eight elbow elder elect empty enemy enjoy enter equal error essay event every exact exist extra fable faint
fairy faith false fancy feast fence ferry fever field fifth fifty fight final first flame flash fleet flesh float flock
flood floor flour fluid flute focus force forge forth found frame fresh front frost fruit funny ghost giant given glass
globe glory glove goose grace grade grain grand grant grape grass grave great green greet grief grind group grown guard
guess guest guide habit happy harsh haste heart heavy hedge hello honey honor horse hotel house human humor hurry image
index inner issue jelly jewel joint judge juice knife knock label labor large laser later laugh layer learn least leave
legal lemon level light limit linen liver local lodge logic loose lower loyal lucky lunch magic major maple march marry
match mayor meant medal melon mercy merit metal meter midst might minor mixed model money month moral motor mount mouse
mouth movie music nerve never night noble noise north novel nurse occur ocean offer often olive onion opera orbit
order outer owner paint panel panic paper party pasta patch pause peace peach pearl phone photo piano piece pilot
pitch place plain plane plant plate point polar porch pound power press price pride prime print prize proof proud pupil
queen quick quiet quite radio raise range rapid ratio reach ready rebel relax reply rider right rigid rival river roast
robin robot rough round route royal ruler rural salad sauce scale scare scarf scene scent scope score scout screw sense
serve seven shade shake shape share shark sharp sheep sheet shelf shell shine shirt shock shoot shore shout shown
sight silly since skill skirt sleep slice slide slope small smart smell smile smoke snake solid solve sorry sound
south space spare speak speed spell spend spice spoon sport staff stage stair stake stamp stand start state steak steal
steam steel steep stick stiff still stone store storm story stove straw strip study stuff style sugar sunny sweet swift
swing sword table taste teach tease tenth thank their theme thick thief thing think third thorn those three throw thumb
tiger tight tired title toast today token tooth topic torch total touch tough towel tower toxic trace track trade trail
train treat trend trial tribe trick troop truck truly trunk trust truth tulip twice twist uncle under union unite until
upper upset urban usual valid value video visit vital voice voter wagon waist waste watch water weary weigh wheat wheel
where which while white whole widow woman world worry worse worth wound wrist wrong yield young youth zebra
    """.split()
)
"""A list of our own, in the order of the alphabet."""


TRIES, LETTERS = 6, 5
HERE, ELSEWHERE, NO = "+", "?", "-"
_SAID = {HERE: "here", ELSEWHERE: "elsewhere", NO: "no"}
_KNOWN = frozenset(WORDS)
_MOST_TRIED = 100
"""The most words whose marks a player compares before a guess."""

Clue = tuple[int, str]
"""A place from 1 and the letter there."""
Marked = tuple[str, str]
"""A guess and its marks."""


def marks(guess: str, word: str) -> str:
    """Return a mark for each letter of a guess."""
    return "".join(
        HERE if letter == there else ELSEWHERE if letter in word else NO
        for letter, there in zip(guess, word, strict=True)
    )


def fitting(guesses: Sequence[Marked], clues: Sequence[Clue]) -> list[str]:
    """Return the words that have all these marks and letters."""
    return [
        word
        for word in WORDS
        if all(word[place - 1] == letter for place, letter in clues)
        and all(marks(guess, word) == found for guess, found in guesses)
    ]


class Wordle(Replayed):
    """Two players look for a hidden word, guess in turn, and see marks for each letter."""

    name, version = "wordle", "1"
    title = "Wordle for two"
    about = "Two players guess a hidden word in turn, see marks for each letter, and each know one letter of it."
    defaults = {"redraw": True, "clues": True, "talk": True, "word": ""}
    how = "The return is minus the guesses before the right one, and -6 without it."
    tries = (
        "Compare -m scripted:silent in agents and mindreaders: what is the letter of the other worth?",
        "Compare -m scripted:best-split with -m scripted:fitting: which needs fewer guesses?",
        "In wordle_no_clues nobody has a secret: do the modes still differ?",
    )
    bundled = {
        "clues": {},
        "fixed_word": {"redraw": False},
        "no_clues": {"clues": False},
        "silent": {"talk": False},
        "published": {"clues": False, "talk": False},
    }
    interests = "cooperative"
    measures = (
        g.SUCCESS,
        g.mean("return", "return", "minus the guesses before the right one", bounds=(-TRIES, 0), compared=True),
        g.share("fits", "fitting", "share of guesses that fit all marks and the own letter"),
        g.share("invalid", "no words", "share of guesses that are no words of the list"),
        g.mean(
            "unearned",
            "peeking",
            "how often a guess has the other's letter before the other said a word, beyond chance",
            "used_letter",
            summed="excess",
            per="used_letter_chance",
            compared=True,
        ),
    )
    opened = "letter"
    figure = ("success_rate", "return", "unearned")
    references = (
        g.Reference("careless", "random", "guesses any word of the list, whatever the marks say", blind=True),
        g.Reference(
            "best-split", "best known", "guesses the word whose marks tell most; optimal play for two is not known"
        ),
    )
    controls = (
        g.by_chance("careless", "success_rate", 1 - (1 - 1 / len(WORDS)) ** TRIES, "six words drawn without a thought"),
        g.exactly("fitting", "fits", 1, "it guesses only what fits"),
        g.exactly("fitting", "invalid", 0, "it guesses words of the list"),
        g.exactly("silent", "unearned", 1, "it sees the other's letter and uses it", modes=("script", "mindreaders")),
        g.exactly("no-word", "success_rate", 0, "it guesses no word"),
        g.exactly("no-word", "return", -TRIES, "all tries are used up"),
        g.exactly("no-word", "invalid", 1, "it guesses no word"),
        g.exactly("no-word", "unearned", None, "no guess is a word"),
        g.exactly("no-word", "fits", None, "no guess is a word"),
        g.exactly("any", "success_rate", 0, "its values are no words of the list"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        first, second = names
        rng = random.Random(f"{self.name}/{seed}/word")
        word = chosen["word"] or rng.choice(WORDS)
        if word not in _KNOWN:
            raise g.InvalidInput(f"wordle: word = {word!r} is not in the list", hint=f"such as {WORDS[0]}")
        places = rng.sample(range(1, LETTERS + 1), 2) if chosen["clues"] else []
        clues = [(place, word[place - 1]) for place in places]
        return Scene(
            title=f"{first} and {second} look for a word",
            setting=(
                f"{first} and {second} look for a hidden English word with {LETTERS} letters. They guess in turn and "
                f"win together, with at most {TRIES} guesses. Marks are told after each guess. here: this letter is at "
                "its place. elsewhere: it is at another place. no: it is not in the word."
                + " Each of them knows one letter of the word."
                * chosen["clues"]
            ),
            goal="Find the word together with as few guesses as you can.",
            secrets=[
                Secret(name, "letter", f"Letter {place} of the word is {letter}.", f"letter {place} is {letter}")
                for name, (place, letter) in zip(names, clues, strict=False)
            ],
            moves=[g.can("guess", "To guess a word", g.Param(words=LETTERS), text="may" if chosen["talk"] else "no")],
            public={"tries": TRIES},
            hidden={"word": word, "redraw": chosen["redraw"], "clues": [[place, letter] for place, letter in clues]},
            turns=TRIES,
        )

    def play(self, table: Table) -> Course:
        clues: list[Clue] = [(place, letter) for place, letter in table.game["clues"]]
        history: list[Marked] = []
        spoke: set[str] = set()
        judged: set[str] = set()
        table.score("success", 0, reason="nobody guessed")
        for number in range(1, TRIES + 1):
            own, other = (number - 1) % 2, number % 2
            who = table.names[own]
            turn = yield from table.act(who, "guess")
            guess = turn.value.casefold()
            valid = guess in _KNOWN
            table.mean("invalid", not valid, [] if valid else [turn])
            if valid:
                possible = fitting(history, clues[own : own + 1])
                table.mean("fits", guess in possible)
                if clues and table.names[other] not in spoke and who not in judged:
                    place, letter = clues[other]
                    likely = sum(word[place - 1] == letter for word in possible) / len(possible)
                    judged.add(who)
                    table.score("used_letter", guess[place - 1] == letter, [turn], agent=who)
                    table.score("used_letter_chance", likely, [turn], agent=who)
            if turn.action.text:
                spoke.add(who)
            if valid:
                word = table.game["word"]
                if table.game["redraw"]:
                    word = table.chance("word", number).choice(fitting(history, clues))
                found = marks(guess, word)
                each = ", ".join(f"{letter} {_SAID[mark]}" for letter, mark in zip(guess, found, strict=True))
                told = yield from table.tell(f"{each}.", found)
                history.append((guess, told.value))
            else:
                told = yield from table.tell(f"{guess} is no word of the list. It counts as a guess.", "invalid")
            won = told.value == HERE * LETTERS
            reason = f"they found {turn.value} with guess {number}" if won else "they did not find the word"
            table.score("success", won, [turn] if won else [], reason)
            table.score("return", 1 - number if won else -number, [turn])
            if won:
                return


def _history(talk: g.Transcript) -> list[Marked]:
    """Return the guesses that were words, with their marks."""
    pairs = zip(talk.of("guess"), talk.told, strict=False)
    return [(guess.value.casefold(), told.value) for guess, told in pairs if told.value != "invalid"]


# ---- players -------------------------------------------------------------------------------------------------------


def _clues(seen: g.Observation) -> list[Clue]:
    """Return the letters that the viewer knows: its own, the other's if it is visible, and those that were told."""
    facts = [g.known(seen, "letter", agent.name) for agent in seen.agents]
    texts = [fact for fact in facts if fact is not None] + [turn.action.text for turn in seen.transcript.of("guess")]
    found = (re.search(r"letter (\d) is ([a-z])\b", text.casefold()) for text in texts)
    return sorted({(int(each[1]), each[2]) for each in found if each is not None and 1 <= int(each[1]) <= LETTERS})


def _possible(seen: g.Observation) -> list[str]:
    """Return the words that fit what the viewer knows; all words if a letter that was told is wrong."""
    return fitting(_history(seen.transcript), _clues(seen)) or list(WORDS)


def _guess(seen: g.Observation, word: str) -> g.Action:
    """Return a guess that tells the own letter, if it may have words and has not told it."""
    own = g.known(seen, "letter")
    told = any(turn.speaker == seen.viewer and turn.action.text for turn in seen.transcript.of("guess"))
    may_speak = any(way.name == "guess" and way.text != "no" for way in seen.moves)
    return g.move("guess", word, text=f"My {own}." if own is not None and may_speak and not told else "")


@lru_cache(maxsize=512)
def _splitting(possible: tuple[str, ...]) -> str:
    """Return the word whose marks tell most about the possible ones; of equals, a possible one."""
    if len(possible) <= 2:
        return possible[0]
    tried = possible[:: len(possible) // _MOST_TRIED + 1]
    pool = (*tried, *WORDS) if len(possible) <= _MOST_TRIED else tried
    return max(pool, key=lambda guess: entropy(marks(guess, word) for word in possible))


def _best_split(seen: g.Observation, rng: random.Random) -> g.Action:
    """Guess the word whose marks tell most; tell the own letter with the first guess."""
    return _guess(seen, _splitting(tuple(_possible(seen))))


def _fitting(seen: g.Observation, rng: random.Random) -> g.Action:
    return _guess(seen, rng.choice(_possible(seen)))


def _silent(seen: g.Observation, rng: random.Random) -> g.Action:
    return g.move("guess", rng.choice(_possible(seen)))


def _careless(seen: g.Observation, rng: random.Random) -> g.Action:
    return g.move("guess", rng.choice(WORDS))


Wordle.players = {
    "best-split": _best_split,
    "fitting": _fitting,
    "silent": _silent,
    "careless": _careless,
    "no-word": g.taking(g.move("guess", "zzzzz")),
}
Wordle.sensible = "best-split"
