"""A family dinner with two secrets: whispers, open talk, and at the end everybody guesses who hides what.

A game of localsim's own, without a paper behind it. Two of n relatives hide a secret each. Everybody knows both
secrets, but not who hides them. The rules add what a whisperer knows, so no rumour is false, and who knows whose secret
is a fold over the whispers.

By chance: somebody who knows nothing and guesses among the n - 1 others is right with probability 1 / (n - 1).
Gossip: if everybody passes each secret on to the next person at the table once, it takes n - 1 whispers until all know
it, and all but the first of them are gossip.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Steps, Table

SECRETS = (
    "a lost job",
    "a wedding in secret",
    "a house that was sold",
    "a prize in the lottery",
    "a broken heirloom",
    "a plan to emigrate",
    "a failed exam",
    "a debt at the bank",
)
"""Secrets that a person can keep from the family."""
PASSING = ("confide", "announce")
"""The moves that pass on who hides a secret."""


class Dinner(Replayed):
    """A family at table, two of whom hide something."""

    name, version = "dinner", "1"
    title = "A family dinner with secrets"
    about = (
        "Relatives talk and whisper at dinner. Two of them hide a secret each. At the end, everybody guesses who hides "
        "which."
    )
    defaults = {"people": 5, "rounds": 3, "whispers": True}
    how = (
        "Each guesses in secret who hides each of the two secrets; guesses about oneself do not count. Beyond chance "
        "is 0 for blind guesses and 1 if all are right. A secret is kept if nobody was told it. Whispers of somebody "
        "else's secret are gossip."
    )
    tries = (
        "Compare agents with mindreaders: how often is the guess right though nobody was told?",
        "Compare -m scripted:gossip with -m scripted:confider: how far does a secret go in each?",
        "Add rounds (dinner_long) and count in SQL who was told what, and by whom.",
    )
    bundled = {
        "small": {"people": 4},
        "sunday": {},
        "large": {"people": 6},
        "long": {"rounds": 8},
        "open": {"whispers": False},
    }
    interests = "competitive"
    protocol = ("together",)
    allowed = {"people": (4, 6), "rounds": (1, 50)}
    number_of_agents = "people"
    outcome = "right"
    informed = (("discreet", "guessed", "", "1 of 4 by guessing, 1 if all is seen"),)
    measures = (
        g.share("guessed", "guessed right", "share of guesses about others that are right", compared=True),
        g.mean(
            "beyond",
            "beyond chance",
            "right guesses beyond those of people who know nothing",
            "guessed",
            summed="excess",
            per="chance",
            compared=True,
        ),
        g.share("kept", "secret kept", "share of secrets that nobody else was told", compared=True),
        g.share("told", "were told", "share of the others who were told a secret"),
        g.mean("whispers", "whispers", "whispers that tell a listener a secret that is new", bounds=(0, None)),
        g.mean("gossip", "gossip", "those of them whose secret is not the speaker's own", bounds=(0, None)),
    )
    figure = ("guessed", "kept", "told")
    references = (
        g.RANDOM,
        g.Reference(
            "discreet",
            "discreet",
            "tells nothing and guesses by what it knows: no play is best at keeping a secret and at sharing it",
        ),
        g.Reference("blabber", "open", "both tell their secrets to all"),
    )
    control_tasks = {"long": {"rounds": 7}}
    controls = (
        g.by_chance("blind", "guessed", 1 / 4, "one of four others is drawn"),
        g.by_chance("discreet", "guessed", 1 / 4, "nobody was told anything", modes=("agents",)),
        g.exactly("discreet", "guessed", 1, "who sees the secrets guesses right", modes=("script", "mindreaders")),
        g.exactly("discreet", "kept", 1, "nobody tells anything"),
        g.exactly("discreet", "told", 0, "nobody tells anything"),
        g.exactly("discreet", "whispers", 0, "nobody tells anything"),
        g.exactly("blabber", "kept", 0, "both tell all"),
        g.exactly("blabber", "told", 1, "both tell all"),
        g.exactly("blabber", "beyond", 1, "all were told both secrets"),
        g.exactly("confider", "whispers", 2, "each secret is whispered once"),
        g.exactly("confider", "gossip", 0, "nobody passes it on"),
        g.exactly("confider", "told", 1 / 4, "one of four others was told"),
        g.exactly("gossip", "whispers", 8, "4 whispers for each of two secrets", "long"),
        g.exactly("gossip", "gossip", 6, "all but the first whisper about a secret", "long"),
        g.exactly("gossip", "guessed", 1, "both secrets went round the table", "long"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        rng = random.Random(f"{self.name}/{seed}")
        secrets, holders = rng.sample(SECRETS, 2), rng.sample(names, 2)
        return Scene(
            title=f"{g.listed(names)} have dinner",
            setting=(
                f"{g.listed(names)} are a family at dinner. One of them hides {secrets[0]}, and another one hides "
                f"{secrets[1]}. Rounds: {chosen['rounds']}. Then all guess in secret who hides what."
            ),
            goal="Find out who hides what.",
            secrets=[
                Secret(name, "hides", f"{name} hides {hidden}.", hidden, "Do not let others find out about you.")
                for name, hidden in zip(holders, secrets, strict=True)
            ],
            talk=True,
            moves=_moves(names, secrets, whispers=chosen["whispers"]),
            public={"secrets": secrets, "rounds": chosen["rounds"], "whispers": chosen["whispers"]},
            turns=chosen["people"] * (chosen["rounds"] + 1),
            more={"relationship": "family"},
        )

    def play(self, table: Table) -> Course:
        names, public, hides = table.names, table.public, holders_of(table.scenario)
        knows = {secret: {holder} for secret, holder in hides.items()}
        ways = ("speak", "to", *PASSING) if public["whispers"] else ("speak", "announce")
        news: list[g.Turn] = []
        self._state(table, hides, knows, news)
        for name in names * public["rounds"]:
            turn = yield from table.act(name, *ways)
            if turn.action.type in PASSING:
                told = yield from self._passed_on(table, turn, hides, knows[turn.value])
                if told.values[3] not in ("", "nobody"):
                    news.append(told)
                    self._state(table, hides, knows, news)
        yield from table.tell("Dinner is over. All guess now who hides what.", "guess")
        right = of = 0
        for turn in (yield from table.together(names, "guess")):
            pairs = [(guess, hides[secret]) for guess, secret in zip(turn.values, public["secrets"], strict=True)]
            hits = [guess == holder for guess, holder in pairs if holder != turn.speaker]
            table.score("guessed", sum(hits) / len(hits), [turn], agent=turn.speaker)
            table.score("chance", 1 / (len(names) - 1), agent=turn.speaker)
            right, of = right + sum(hits), of + len(hits)
        table.score("right", right / of, reason=f"{right} of {of} guesses about others are right")

    def _passed_on(self, table: Table, turn: g.Turn, hides: Mapping[str, str], knows: set[str]) -> Steps[g.Turn]:
        """Tell listeners who hides a secret, if the speaker knows it; values: secret, speaker, holder, who is new."""
        secret, speaker = turn.value, turn.speaker
        listeners = turn.values[1:] or tuple(name for name in table.names if name != speaker)
        to = None if turn.action.type == "announce" else (speaker, *listeners)
        if speaker not in knows:
            text = f"{speaker} does not know who hides {secret}."
            return (yield from table.tell(text, secret, speaker, "", "", to=to))
        new = " and ".join(name for name in listeners if name not in knows) or "nobody"
        knows.update(listeners)
        text = f"{speaker} knows: {hides[secret]} hides {secret}."
        return (yield from table.tell(text, secret, speaker, hides[secret], new, to=to))

    def _state(
        self, table: Table, hides: Mapping[str, str], knows: Mapping[str, set[str]], news: Sequence[g.Turn]
    ) -> None:
        """State for each holder who was told, and how many whispers told somebody something new."""
        for secret, holder in hides.items():
            cited, others = [turn for turn in news if turn.value == secret], len(knows[secret]) - 1
            table.score("kept", others == 0, cited, agent=holder)
            table.score("told", others * (1 / (len(table.names) - 1)), cited, agent=holder)
        whispers = [turn for turn in news if turn.readers is not None]
        gossip = [turn for turn in whispers if turn.values[1] != hides[turn.value]]
        table.score("whispers", len(whispers), whispers)
        table.score("gossip", len(gossip), gossip)

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        return _discreet(seen, rng) if any(g.known(seen, "hides", name) for name in g.others(seen)) else None


def holders_of(scenario: g.Scenario) -> dict[str, str]:
    """Return secret -> who hides it."""
    return {fact.terms[0]: agent.name for agent in scenario.agents for fact in agent.facts}


def _moves(names: Sequence[str], secrets: Sequence[str], *, whispers: bool) -> tuple[g.Move, ...]:
    which = g.one_of(*secrets)
    private_ones = (
        g.Move(name="to", values=(g.Param(agents="several"),), text="must", readers="named", tell="To whisper"),
        g.Move(
            name="confide", values=(which, g.ONE_AGENT), readers="named", tell="To whisper to one who hides a secret"
        ),
    )
    tell = f"To guess at the end who hides {secrets[0]}, then who hides {secrets[1]}"
    return (
        *(private_ones if whispers else ()),
        g.Move(name="announce", values=(which,), tell="To tell all who hides a secret, if you know it"),
        g.Move(name="guess", values=(g.one_of(*names), g.one_of(*names)), text="no", readers="self", tell=tell),
    )


# ---- players -------------------------------------------------------------------------------------------------------


def _holders_seen(seen: g.Observation) -> dict[str, str]:
    """Return secret -> holder as the viewer knows it: by its own side, by what it sees, and by what it was told."""
    names = [agent.name for agent in seen.agents]
    found = {secret: name for name in names if (secret := g.known(seen, "hides", name)) is not None}
    for turn in seen.transcript.told:
        if len(values := turn.values) == 4 and values[2]:
            found[values[0]] = values[2]
    return found


def _guess(seen: g.Observation, rng: random.Random, *, blind: bool = False) -> g.Action:
    """Guess what the viewer knows; draw the rest among the others."""
    holders = {} if blind else _holders_seen(seen)
    free = [name for name in g.others(seen) if name not in holders.values()]
    drawn = iter(rng.sample(free, min(2, len(free))))
    return g.move("guess", *(holders[secret] if secret in holders else next(drawn) for secret in seen.game["secrets"]))


def _discreet(seen: g.Observation, rng: random.Random) -> g.Action:
    return _guess(seen, rng) if seen.may("guess") else g.Action("speak", "The soup is very good.")


def _blind(seen: g.Observation, rng: random.Random) -> g.Action:
    """Tell nothing, and guess at random among the others, whatever one sees."""
    return _guess(seen, rng, blind=True) if seen.may("guess") else g.Action("speak", "Please pass the bread.")


def _blabber(seen: g.Observation, rng: random.Random) -> g.Action:
    """Tell everybody one's own secret."""
    own = g.known(seen, "hides")
    if own is None or seen.may("guess") or _passed(seen):
        return _discreet(seen, rng)
    return g.move("announce", own, text="I must tell you something.")


def _passes(seen: g.Observation, rng: random.Random, *, gossips: bool) -> g.Action:
    """Whisper the own secret to the next person at table, and others' secrets too if it `gossips`."""
    if not seen.may("confide"):
        return _discreet(seen, rng)
    names = [agent.name for agent in seen.agents]
    to = names[(names.index(seen.viewer) + 1) % len(names)]
    own, heard = g.known(seen, "hides"), _told_to(seen)
    mine = {own: seen.viewer} if own is not None else {}
    news = {**mine, **heard} if gossips else mine
    left = [secret for secret, holder in news.items() if secret not in _passed(seen) and holder != to]
    return g.move("confide", left[0], to, text="Keep it to yourself.") if left else _discreet(seen, rng)


def _told_to(seen: g.Observation) -> dict[str, str]:
    """Return secret -> holder as others told the viewer."""
    told = [turn for turn in seen.transcript.told if seen.viewer in (turn.readers or (seen.viewer,))]
    given = [turn.values for turn in told]
    return {values[0]: values[2] for values in given if len(values) == 4 and values[2]}


def _passed(seen: g.Observation) -> list[str]:
    return [turn.value for turn in seen.transcript.of(*PASSING) if turn.speaker == seen.viewer]


Dinner.players = {
    "discreet": _discreet,
    "blind": _blind,
    "blabber": _blabber,
    "confider": partial(_passes, gossips=False),
    "gossip": partial(_passes, gossips=True),
}
Dinner.sensible = "discreet"
