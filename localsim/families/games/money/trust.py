"""The trust game: one sends money, which is tripled on its way, and the other returns a part of it or nothing.

Of an endowment e the sender sends s and wins e - s + r, and the receiver wins own + factor * s - r, where r is what
comes back. Who wants money alone returns nothing, so nothing is sent; both win more if enough is sent and returned. The
default numbers ($10 for both, factor 3, played once) are those of Berg, Dickhaut and McCabe, Trust, reciprocity, and
social history, Games and Economic Behavior 10 (1995), 122-142. The receiver names percents instead of dollars.

With `decided`, the receiver has a private fact: the percents that come back. A sender who knows them sends everything
if factor * percents > 100, and nothing else; one who knows only that 0, 20, 40 and 60 are equally likely expects 90
cents for each dollar with the factor 3, and sends nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from localsim.families.games import base as g

PERCENTS = (0, 20, 40, 60)
"""What a receiver may have decided to return, in percents of what arrives, each equally likely."""
ARRIVED, EARNED = "arrived", "earned"
"""The first value of what the rules tell: after money was sent, and after a round."""


class Trust(g.Game):
    """A sender sends money that is multiplied, and a receiver returns a part of it."""

    name, version = "trust", "1"
    title = "Sending money and getting some back"
    about = "One sends a part of $10 to the other. It is tripled on its way, and the other returns a part of it."
    defaults = {
        "endowment": 10,
        "factor": 3,
        "receiver_has": 10,
        "rounds": 1,
        "decided": False,
        "talk": False,
    }
    how = (
        "Payoffs are in parts of the sender's money. Nothing forces the receiver to return anything. In trust_hidden "
        "the receiver has decided before how much comes back, and nobody else knows it."
    )
    tries = (
        "Compare -m scripted:trusting with -m scripted:optimal: both lose from looking after themselves alone.",
        "Run trust_hidden with -m scripted in agents and mindreaders: who knows the receiver sends the right sum.",
        "In trust_talk the receiver speaks first: do promises change what is sent, and are they kept?",
    )
    bundled = {
        "once": {},
        "talk": {"talk": True},
        "hidden": {"decided": True},
        "hidden_talk": {"decided": True, "talk": True},
        "five_rounds": {"rounds": 5},
    }
    measures = (
        g.Measure("payoff", "payoff", "what a player wins in a round, in parts of the sender's money", "payoff"),
        g.Measure("sender_payoff", "sender", "the same, of the sender", "payoff", side="sender", compared=True),
        g.Measure("receiver_payoff", "receiver", "the same, of the receiver", "payoff", side="receiver", compared=True),
        g.Measure("sent", "sent", "share of the sender's money that is sent", "sent", kind="share", compared=True),
        g.Measure("returned", "returned", "share of what arrived that is returned", "returned", kind="share"),
        g.Measure("both_gain", "both gain", "share of rounds after which both have more", "both_gain", kind="share"),
        g.Measure("departure", "departure", "distance of what is returned from what was decided", "departure"),
    )
    figure = ("sender_payoff", "receiver_payoff", "sent", "returned")
    references = (
        g.RANDOM,
        g.Reference("optimal", "selfish", "the best play for each alone: it returns nothing"),
        g.Reference("trusting", "trusting", "sends everything and returns half: both together win most"),
    )
    control_tasks = {"hidden": {"decided": True}}
    controls = (
        g.exactly("optimal", "sent", 0, "nothing would come back"),
        g.exactly("optimal", "returned", None, "nothing arrives"),
        g.exactly("optimal", "sender_payoff", 1, "the sender keeps everything"),
        g.exactly("optimal", "both_gain", 0, "nothing is sent"),
        g.exactly("trusting", "sent", 1, "everything is sent"),
        g.exactly("trusting", "returned", 0.5, "half of it comes back"),
        g.exactly("trusting", "sender_payoff", 1.5, "15 of 30 dollars come back"),
        g.exactly("trusting", "receiver_payoff", 2.5, "10 dollars, and 15 of 30"),
        g.exactly("trusting", "payoff", 2, "the mean of both"),
        g.exactly("trusting", "both_gain", 1, "both have more than 10 dollars"),
        g.exactly("cheat", "sender_payoff", 0, "everything is sent, and nothing comes back"),
        g.exactly("cheat", "receiver_payoff", 4, "10 dollars and 30"),
        g.exactly("half", "sender_payoff", 1.25, "5 dollars kept, and half of 15"),
        g.exactly("trusting", "departure", 0, "it keeps to what was decided", "hidden"),
        g.between("cheat", "departure", 0.1, 0.5, "on average 30 percent were decided", "hidden"),
        g.exactly("optimal", "sent", 0, "it expects 90 cents for a dollar", "hidden", ("agents",)),
        g.by_chance("optimal", "sent", 0.5, "two of four return enough", "hidden", ("script", "mindreaders")),
    )

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a scenario: the money of both, the factor, and what the receiver has decided, if anything."""
        chosen = g.merged(self.defaults, parameters, self.name)
        g.within(self, chosen, "endowment", 1, 1000)
        g.within(self, chosen, "receiver_has", 0, 1000)
        g.within(self, chosen, "factor", 2, 10)
        g.within(self, chosen, "rounds", 1, 100)
        sender, receiver = g.names_of(self, seed, 2)
        goal = "Get as much money as you can."
        facts: tuple[g.Fact, ...] = ()
        if chosen["decided"]:
            percents = g.chance(seed, self.name, "decided").choice(PERCENTS)
            text = f"{receiver} has decided to return {percents}% of what arrives."
            facts = (g.private(receiver, "percents", text, percents),)
        sends, returns = (g.number(0, chosen["endowment"]),), (g.number(0, 100),)
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{sender} can send money to {receiver}",
            setting=_setting(sender, receiver, chosen),
            agents=(
                g.Agent(name=sender, goal=goal),
                g.Agent(name=receiver, goal=f"{goal} Keep to what you have decided." if facts else goal, facts=facts),
            ),
            talk=chosen["talk"],
            moves=(
                g.Move(name="send", values=sends, text="no", by=(sender,), tell=f"To send dollars to {receiver}"),
                g.Move(
                    name="return", values=returns, text="no", by=(receiver,), tell="To return percents of what arrived"
                ),
            ),
            public={**chosen, **({"percents": list(PERCENTS)} if chosen["decided"] else {})},
            turns=2 * chosen["rounds"] + 2 * chosen["talk"],
            answer={"sender": sender},
        )

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """The receiver and the sender may speak; then in each round money is sent, arrives, and may come back."""
        public, (sender, receiver) = scenario.game["public"], scenario.names
        spoken = len(talk.of("speak"))
        if public["talk"] and spoken < 2:
            return g.act((receiver, sender)[spoken], "speak")
        last = talk.turns[-1] if talk.turns else None
        if last is not None and last.action.type == "send" and last.number:
            arrived = g.amount(public["factor"] * last.number)
            return g.Tell(f"${arrived} arrive at {receiver}.", values=(ARRIVED, arrived))
        if last is not None and last.told and last.value == ARRIVED:
            return g.act(receiver, "return")
        rounds = _rounds(talk)
        if last is not None and last.action.type in ("send", "return"):
            won = _won(public, rounds[-1])
            text = (
                f"Round {len(rounds)}: ${rounds[-1][0].value} sent, ${g.amount(_back(public, rounds[-1]))} returned. "
                f"{sender} has ${g.amount(won[0])} and {receiver} has ${g.amount(won[1])}."
            )
            return g.Tell(text, values=(EARNED, *map(g.amount, won)))
        return g.DONE if len(rounds) == public["rounds"] else g.act(sender, "send")

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return what was sent and returned, what both won, and how far that is from what was decided."""
        public, (sender, receiver) = scenario.game["public"], scenario.names
        rounds = [each for each in _rounds(transcript) if len(each) == 2 or not each[0].number]
        if not rounds:
            return []
        facts = scenario.agent(receiver).facts
        won = [_won(public, each) for each in rounds]
        sums = [sum(each) / public["endowment"] / len(rounds) for each in zip(*won, strict=True)]
        sent = [each[0].number / public["endowment"] for each in rounds]
        cited = [turn.index for each in rounds for turn in each]
        told = f"{sender} sent {100 * sum(sent) / len(sent):.0f}% of the money"
        scores = [
            *g.by_agent("payoff", dict(zip(scenario.names, sums, strict=True)), cited),
            g.Score("both_gain", _mean(a > public["endowment"] and b > public["receiver_has"] for a, b in won)),
        ]
        if returns := [each[1] for each in rounds if len(each) == 2]:
            shares = [turn.number / 100 for turn in returns]
            told += f", and {receiver} returned {100 * sum(shares) / len(shares):.0f}% of what arrived"
            scores.append(g.Score("returned", _mean(shares), turns=tuple(turn.index for turn in returns)))
            if facts:
                decided = float(facts[0].terms[0]) / 100
                scores.append(g.Score("departure", _mean(abs(share - decided) for share in shares)))
        return [g.Score("sent", _mean(sent), reason=told, turns=tuple(cited)), *scores]

    def side(self, agent: str, answer: g.AnswerKey) -> str:
        """Return `sender` or `receiver`."""
        return "sender" if agent == answer.answer.get("sender") else "receiver"

    def verdict(self, scores: Mapping[str, g.Score], answer: g.AnswerKey) -> g.Verdict | None:
        """Return what was sent and returned, in words; no outcome is right or wrong."""
        return g.Verdict(None, f"{scores['sent'].reason}.") if "sent" in scores else None

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        """Send what is right for this receiver; None if it is not known what was decided."""
        decided = g.known(seen, "percents", seen.agents[1].name)
        return _optimal(seen, rng) if decided is not None and seen.viewer == seen.agents[0].name else None


def _setting(sender: str, receiver: str, chosen: Mapping[str, Any]) -> str:
    own = f"${chosen['receiver_has']}" if chosen["receiver_has"] else "nothing"
    times = f" in each of {chosen['rounds']} rounds" if chosen["rounds"] > 1 else ""
    parts = [
        f"{sender} has ${chosen['endowment']} and {receiver} has {own}{times}. {sender} sends a part of it to "
        f"{receiver}, or nothing. Each dollar that is sent becomes {chosen['factor']}. Then {receiver} returns a part "
        "of what arrived, or nothing."
    ]
    if chosen["decided"]:
        options = " or ".join((", ".join(f"{each}%" for each in PERCENTS[:-1]), f"{PERCENTS[-1]}%"))
        parts.append(f"{receiver} has already decided what to return: {options}, each equally likely.")
    if chosen["talk"]:
        parts.append(f"Before that both say something, {receiver} first.")
    return " ".join(parts)


def _rounds(talk: g.Transcript) -> list[list[g.Turn]]:
    """Return the acts of each round: what was sent, and what was returned if something arrived."""
    rounds: list[list[g.Turn]] = []
    for turn in talk.of("send", "return"):
        if turn.action.type == "send":
            rounds.append([turn])
        else:
            rounds[-1].append(turn)
    return rounds


def _back(public: Mapping[str, Any], acts: list[g.Turn]) -> float:
    """Return the dollars that come back in a round."""
    return float(public["factor"] * acts[0].number * acts[1].number / 100) if len(acts) == 2 else 0.0


def _won(public: Mapping[str, Any], acts: list[g.Turn]) -> tuple[float, float]:
    """Return what sender and receiver have after a round."""
    sent, back = acts[0].number, _back(public, acts)
    return public["endowment"] - sent + back, public["receiver_has"] + public["factor"] * sent - back


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


# ---- players -------------------------------------------------------------------------------------------------------


def _player(part: float, percents: int, *, faithful: bool = True) -> g.Player:
    """Return a player that sends a part of its money, and returns so many percent.

    `faithful`: it returns what it has decided, if it has decided anything.
    """

    def play(seen: g.Observation, rng: random.Random) -> g.Action:
        if seen.may("speak"):
            return _words(seen)
        if seen.may("send"):
            return g.move("send", int(part * seen.game["endowment"]))
        return g.move("return", (g.known(seen, "percents") if faithful else None) or percents)

    return play


def _words(seen: g.Observation) -> g.Action:
    receives = seen.viewer == seen.agents[1].name
    return g.Action("speak", "You can trust me." if receives else "I hope that you return a part.")


def _optimal(seen: g.Observation, rng: random.Random) -> g.Action:
    """Send everything if more than that is expected back, else nothing; return what was decided, else nothing."""
    if seen.may("speak"):
        return _words(seen)
    if seen.may("return"):
        return g.move("return", g.known(seen, "percents") or 0)
    decided = g.known(seen, "percents", seen.agents[1].name)
    expected = float(decided) if decided is not None else _mean(seen.game.get("percents", [0]))
    return g.move("send", seen.game["endowment"] if seen.game["factor"] * expected > 100 else 0)


Trust.players = {
    "optimal": _optimal,
    "trusting": _player(1, 50),
    "half": _player(0.5, 50),
    "cheat": _player(1, 0, faithful=False),
}
Trust.sensible = "optimal"
