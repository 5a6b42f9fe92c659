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
from collections.abc import Mapping
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.scenes.texts import SECRETS

PASSING = ("confide", "announce")
"""The moves that pass on who hides a secret."""
HIDING = " Do not let others find out about you."


class Dinner(g.Game):
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
    informed = (("discreet", "guessed", "", "1 of 4 by guessing, 1 if all is seen"),)
    measures = (
        g.Measure(
            "guessed",
            "guessed right",
            "share of guesses about others that are right",
            "guessed",
            kind="share",
            compared=True,
        ),
        g.Measure(
            "beyond",
            "beyond chance",
            "right guesses beyond those of people who know nothing",
            "guessed",
            summed="excess",
            per="chance",
            compared=True,
        ),
        g.Measure(
            "kept", "secret kept", "share of secrets that nobody else was told", "kept", kind="share", compared=True
        ),
        g.Measure("told", "were told", "share of the others who were told a secret", "told", kind="share"),
        g.Measure(
            "whispers", "whispers", "whispers that tell a listener a secret that is new", "whispers", bounds=(0, None)
        ),
        g.Measure(
            "gossip", "gossip", "those of them whose secret is not the speaker's own", "gossip", bounds=(0, None)
        ),
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

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a scenario: the people at table, the two secrets, and who hides them."""
        chosen = g.merged(self.defaults, parameters, self.name)
        if not 4 <= chosen["people"] <= 6:
            raise g.InvalidInput(f"dinner: people = {chosen['people']}", hint="from 4 to 6")
        if not 1 <= chosen["rounds"] <= 50:
            raise g.InvalidInput(f"dinner: rounds = {chosen['rounds']}", hint="from 1 to 50")
        rng = random.Random(f"{self.name}/{seed}")
        names = g.names_of(self, seed, chosen["people"])
        secrets, holders = rng.sample(SECRETS, 2), rng.sample(names, 2)
        hides = dict(zip(holders, secrets, strict=True))
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{g.listed(names)} have dinner",
            setting=(
                f"{g.listed(names)} are a family at dinner. One of them hides {secrets[0]}, and another one hides "
                f"{secrets[1]}. Rounds: {chosen['rounds']}. Then all guess in secret who hides what."
            ),
            relationship="family",
            agents=tuple(
                g.Agent(
                    name=name,
                    goal=f"Find out who hides what.{HIDING if name in hides else ''}",
                    facts=tuple(
                        g.private(name, "hides", f"{name} hides {hidden}.", hidden)
                        for hidden in hides.values()
                        if hides.get(name) == hidden
                    ),
                )
                for name in names
            ),
            talk=True,
            moves=_moves(names, secrets, whispers=chosen["whispers"]),
            public={"secrets": list(secrets), "rounds": chosen["rounds"], "whispers": chosen["whispers"]},
            turns=chosen["people"] * (chosen["rounds"] + 1),
        )

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """Everybody acts in turn; what is passed on is told; then all guess at the same time."""
        names, public = scenario.names, scenario.game["public"]
        last = talk.turns[-1] if talk.turns else None
        if last is not None and last.action.type in PASSING:
            return _passed_on(scenario, talk, last)
        if talk.last == "guess":
            return g.DONE
        turns = len(talk.acts)
        if turns < len(names) * public["rounds"]:
            ways = ("speak", "to", *PASSING) if public["whispers"] else ("speak", "announce")
            return g.act(names[turns % len(names)], *ways)
        if last is not None and last.action.values != ("guess",):
            return g.Tell("Dinner is over. All guess now who hides what.", values=("guess",))
        return g.act(names, "guess")

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return right guesses and their chance for each person, and for each holder who was told."""
        names, secrets = scenario.names, scenario.game["public"]["secrets"]
        hides, chance = holders_of(scenario), 1 / (len(names) - 1)
        told = [turn for turn in transcript.told if len(turn.action.values or ()) == 4 and _news(turn)]
        scores: list[g.Score] = []
        for secret, holder in hides.items():
            knowing = len(who_knows(scenario, transcript, secret)) - 1
            cited = tuple(turn.index for turn in told if (turn.action.values or ())[0] == secret)
            scores += g.by_agent("kept", {holder: float(knowing == 0)}, cited)
            scores += g.by_agent("told", {holder: knowing * chance}, cited)
        whispers = [turn for turn in told if turn.readers is not None]
        gossip = [turn for turn in whispers if (turn.action.values or ())[1] != hides[(turn.action.values or ())[0]]]
        scores.append(g.Score("whispers", float(len(whispers)), turns=tuple(turn.index for turn in whispers)))
        scores.append(g.Score("gossip", float(len(gossip)), turns=tuple(turn.index for turn in gossip)))
        right = of = 0
        for turn in transcript.of("guess"):
            pairs = [(guess, hides[secret]) for guess, secret in zip(turn.action.values or (), secrets, strict=True)]
            hits = [guess == holder for guess, holder in pairs if holder != turn.speaker]
            scores += g.by_agent("guessed", {turn.speaker: sum(hits) / len(hits)}, (turn.index,))
            scores += g.by_agent("chance", {turn.speaker: chance})
            right, of = right + sum(hits), of + len(hits)
        if of:
            scores.append(g.Score("right", right / of, reason=f"{right} of {of} guesses about others are right"))
        return scores

    def verdict(self, scores: Mapping[str, g.Score], answer: g.AnswerKey) -> g.Verdict | None:
        """Say how many guesses were right; there is no outcome that is right for all."""
        return g.Verdict(None, f"{scores['right'].reason}.") if "right" in scores else None

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        """Guess what is visible; None if no other secret is."""
        return _discreet(seen, rng) if any(g.known(seen, "hides", name) for name in g.others(seen)) else None


def holders_of(scenario: g.Scenario) -> dict[str, str]:
    """Return secret -> who hides it."""
    return {fact.terms[0]: agent.name for agent in scenario.agents for fact in agent.facts}


def who_knows(scenario: g.Scenario, talk: g.Transcript, secret: str) -> set[str]:
    """Return everybody who knows who hides a secret: its holder, and all whom somebody told."""
    found = {holders_of(scenario)[secret]}
    for turn in talk.told:
        if len(values := turn.action.values or ()) == 4 and values[0] == secret and values[3]:
            found |= set(scenario.names if turn.readers is None else turn.readers)
    return found


def _passed_on(scenario: g.Scenario, talk: g.Transcript, turn: g.Turn) -> g.Tell:
    """Tell the listeners who hides a secret, if the speaker knows it; values: secret, speaker, holder, who is new."""
    secret, speaker = turn.value, turn.speaker
    listeners = (turn.action.values or ())[1:] or tuple(name for name in scenario.names if name != speaker)
    readers = None if turn.action.type == "announce" else (speaker, *listeners)
    knows = who_knows(scenario, talk, secret)
    if speaker not in knows:
        return g.Tell(f"{speaker} does not know who hides {secret}.", readers, values=(secret, speaker, "", ""))
    holder = holders_of(scenario)[secret]
    new = " and ".join(name for name in listeners if name not in knows) or "nobody"
    return g.Tell(f"{speaker} knows: {holder} hides {secret}.", readers, values=(secret, speaker, holder, new))


def _news(turn: g.Turn) -> bool:
    return (turn.action.values or ())[3] not in ("", "nobody")


def _moves(names: list[str], secrets: list[str], *, whispers: bool) -> tuple[g.Move, ...]:
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
        if len(values := turn.action.values or ()) == 4 and values[2]:
            found[values[0]] = values[2]
    return found


def _guess(seen: g.Observation, rng: random.Random, *, blind: bool = False) -> g.Action:
    """Guess what the viewer knows; draw the rest among the others."""
    holders = {} if blind else _holders_seen(seen)
    free = [name for name in g.others(seen) if name not in holders.values()]
    drawn = iter(rng.sample(free, min(2, len(free))))
    return g.move("guess", *(holders[secret] if secret in holders else next(drawn) for secret in seen.game["secrets"]))


def _discreet(seen: g.Observation, rng: random.Random) -> g.Action:
    """Tell nothing, and guess what one knows."""
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


def _passes(*, gossips: bool) -> g.Player:
    """Return a player that whispers its own secret to the next person at table, and others' secrets if it gossips."""

    def play(seen: g.Observation, rng: random.Random) -> g.Action:
        if not seen.may("confide"):
            return _discreet(seen, rng)
        names = [agent.name for agent in seen.agents]
        to = names[(names.index(seen.viewer) + 1) % len(names)]
        own, heard = g.known(seen, "hides"), _told_to(seen)
        mine = {own: seen.viewer} if own is not None else {}
        news = {**mine, **heard} if gossips else mine
        left = [secret for secret, holder in news.items() if secret not in _passed(seen) and holder != to]
        return g.move("confide", left[0], to, text="Keep it to yourself.") if left else _discreet(seen, rng)

    return play


def _told_to(seen: g.Observation) -> dict[str, str]:
    """Return secret -> holder as others told the viewer."""
    told = [turn for turn in seen.transcript.told if seen.viewer in (turn.readers or (seen.viewer,))]
    given = [turn.action.values or () for turn in told]
    return {values[0]: values[2] for values in given if len(values) == 4 and values[2]}


def _passed(seen: g.Observation) -> list[str]:
    """Return the secrets that the viewer has passed on."""
    return [turn.value for turn in seen.transcript.of(*PASSING) if turn.speaker == seen.viewer]


Dinner.players = {
    "discreet": _discreet,
    "blind": _blind,
    "blabber": _blabber,
    "confider": _passes(gossips=False),
    "gossip": _passes(gossips=True),
}
Dinner.sensible = "discreet"
