"""The ultimatum game: one offers a part of a sum, and the other accepts it or both get nothing.

Güth, Schmittberger and Schwarze, An experimental analysis of ultimatum bargaining, Journal of Economic Behavior and
Organization 3 (1982), 367-388. If the responder wants money alone, the offer is the smallest that is more than nothing.

With a `hidden` limit the responder has a private fact, the smallest acceptable offer, which is one of ten equally
likely parts of the sum: 5%, 10% ... 50%. Who knows it offers exactly that and keeps 72.5% on average. Who does not
know it keeps (1 - x) * P(limit <= x) with an offer x, which is largest for x = 50%: it keeps 50%.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from localsim.families.games import base as g

KINDS = ("hidden", "plain", "dictator")
"""The responder has a private limit, or has none, or has no choice at all."""
UNIT = 20
"""The sum is a multiple of this, so that its twentieths are whole dollars."""


class Ultimatum(g.Game):
    """One offers a part of a sum, and the other accepts it or both get nothing."""

    name, version = "ultimatum", "1"
    title = "Take it or leave it"
    about = "One offers the other a part of a sum of money. If the other refuses, both get nothing."
    defaults = {"money": 100, "kind": "hidden", "talk": False}
    how = (
        "Payoffs are parts of the sum. In a scenario with a hidden limit only the responder knows the smallest offer "
        "that is acceptable, and the best offer is exactly that."
    )
    tries = (
        "Run ultimatum_hidden with -m scripted in agents and mindreaders: the proposer keeps 50% or about 72%.",
        "Compare ultimatum_plain with ultimatum_dictator: how much of an offer is fear of a refusal?",
        "In ultimatum_talk the responder speaks first: does it tell the limit, and is that true?",
    )
    bundled = {
        "hidden": {},
        "talk": {"talk": True},
        "plain": {"kind": "plain"},
        "dictator": {"kind": "dictator"},
        "thousand": {"money": 1000},
    }
    interests = "competitive"
    informed = (("optimal", "proposer_payoff", "", "0.5 without the limit of the other, 0.725 on average with it"),)
    measures = (
        g.SUCCESS,
        g.PAYOFF,
        g.Measure("proposer_payoff", "proposer", "what the proposer keeps", "payoff", side="proposer", compared=True),
        g.Measure(
            "responder_payoff", "responder", "what the responder gets", "payoff", side="responder", compared=True
        ),
        g.Measure("offer", "offer", "share of the sum that is offered", "offer", kind="share", compared=True),
        g.Measure("over", "over limit", "offer above the smallest acceptable one, in parts of the sum", "over"),
        g.Measure("kept_limit", "kept limit", "share of answers that follow the own limit", "kept_limit", kind="share"),
    )
    figure = ("success_rate", "proposer_payoff", "responder_payoff", "offer")
    references = (
        g.RANDOM,
        g.Reference("optimal", "optimal", "the best offer and answer for money alone"),
    )
    control_tasks = {"plain": {"kind": "plain"}, "dictator": {"kind": "dictator"}}
    controls = (
        g.exactly("half", "success_rate", 1, "no limit is above half"),
        g.exactly("half", "offer", 0.5, "half is offered"),
        g.exactly("half", "payoff", 0.5, "both get half"),
        g.exactly("refuser", "success_rate", 0, "nobody accepts"),
        g.exactly("refuser", "payoff", 0, "both get nothing"),
        g.exactly("yes-sayer", "proposer_payoff", 0.99, "one dollar is offered and taken"),
        g.exactly("yes-sayer", "responder_payoff", 0.01, "one dollar is offered and taken"),
        g.exactly("yes-sayer", "kept_limit", 0, "every limit is above one dollar"),
        g.exactly("optimal", "kept_limit", 1, "it accepts what is not below its limit"),
        g.exactly("optimal", "success_rate", 1, "the offer is never below the limit"),
        g.exactly("optimal", "proposer_payoff", 0.5, "who does not know the limit offers half", "", ("agents",)),
        g.exactly("optimal", "over", 0, "the offer is the limit", "", ("script", "mindreaders")),
        g.between("optimal", "over", 0.1, 0.4, "half, less 27.5% on average", "", ("agents",)),
        g.exactly("optimal", "offer", 0.01, "one dollar is more than nothing", "plain"),
        g.exactly("optimal", "kept_limit", None, "there is no limit", "plain"),
        g.exactly("optimal", "offer", 0, "the other cannot refuse", "dictator"),
        g.exactly("optimal", "success_rate", None, "the other cannot refuse", "dictator"),
    )

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a scenario: the sum, and the responder's smallest acceptable offer if it has one."""
        chosen = g.merged(self.defaults, parameters, self.name)
        g.among(self, chosen, "kind", KINDS)
        g.within(self, chosen, "money", UNIT, 1_000_000)
        if chosen["money"] % UNIT:
            raise g.InvalidInput(
                f"{self.name}: money = {chosen['money']} has no whole twentieths", hint="for example 100"
            )
        proposer, responder = g.names_of(self, seed, 2)
        goal = "Get as much money as you can."
        facts: tuple[g.Fact, ...] = ()
        if chosen["kind"] == "hidden":
            least = g.chance(seed, self.name, "least").choice(_limits(chosen["money"]))
            facts = (g.private(responder, "least", f"{responder} accepts no offer below ${least}.", least),)
        offers = g.Move(name="offer", values=(g.number(0, chosen["money"]),), text="no", by=(proposer,),
                      tell=f"To offer so many dollars to {responder}")  # fmt: skip
        answers = (
            g.Move(name="accept", text="no", by=(responder,), tell="To accept the offer"),
            g.Move(name="refuse", text="no", by=(responder,), tell="To refuse the offer"),
        )
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{proposer} offers {responder} a part of ${chosen['money']}",
            setting=_setting(proposer, responder, chosen),
            agents=(
                g.Agent(name=proposer, goal=goal),
                g.Agent(name=responder, goal=f"{goal} Keep to your smallest offer." if facts else goal, facts=facts),
            ),
            talk=chosen["talk"],
            moves=(offers, *(answers if chosen["kind"] != "dictator" else ())),
            public=chosen,
            turns=4 if chosen["talk"] else 2,
            answer={"proposer": proposer},
        )

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """The responder and the proposer may speak; then an offer, an answer, and what both get."""
        public, (proposer, responder) = scenario.game["public"], scenario.names
        spoken = len(talk.of("speak"))
        if public["talk"] and spoken < 2:
            return g.act((responder, proposer)[spoken], "speak")
        if not talk.of("offer"):
            return g.act(proposer, "offer")
        if public["kind"] != "dictator" and not talk.of("accept", "refuse"):
            return g.act(responder, "accept", "refuse")
        if talk.turns[-1].told:
            return g.DONE
        kept, got = _gains(scenario, talk)
        return g.Tell(f"{proposer} gets ${kept} and {responder} gets ${got}.", values=(str(kept), str(got)))

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return agreement, payoffs and the offer in parts of the sum, and how both compare with a hidden limit."""
        public, names = scenario.game["public"], scenario.names
        offers, answers = transcript.of("offer"), transcript.of("accept", "refuse")
        refusable = public["kind"] != "dictator"
        if not offers or (refusable and not answers):
            return []
        offer, cited = offers[-1].number, [turn.index for turn in (*offers, *answers)]
        parts = [gain / public["money"] for gain in _gains(scenario, transcript)]
        scores = [
            g.Score("offer", offer / public["money"], turns=(offers[-1].index,)),
            *g.by_agent("payoff", dict(zip(names, parts, strict=True)), cited),
        ]
        if not refusable:
            return scores
        accepted = transcript.last == "accept"
        told = f"{names[0]} offered ${offer:g} of ${public['money']}, and {names[1]} "
        told += "accepted" if accepted else "refused"
        if facts := scenario.agent(names[1]).facts:
            least = float(facts[0].terms[0])
            told += f", who accepts no offer below ${least:g}"
            scores.append(g.Score("over", (offer - least) / public["money"], turns=(offers[-1].index,)))
            scores.append(g.Score("kept_limit", float(accepted == (offer >= least)), turns=tuple(cited)))
        return [g.Score("success", float(accepted), reason=told, turns=tuple(cited)), *scores]

    def side(self, agent: str, answer: g.AnswerKey) -> str:
        """Return `proposer` or `responder`."""
        return "proposer" if agent == answer.answer.get("proposer") else "responder"

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        """Offer exactly the limit of the other; None if it is not known."""
        proposer, responder = (agent.name for agent in seen.agents)
        return _optimal(seen, rng) if seen.viewer == proposer and g.known(seen, "least", responder) else None


def _setting(proposer: str, responder: str, chosen: Mapping[str, Any]) -> str:
    money = chosen["money"]
    first = f"{proposer} has ${money} to share with {responder}. "
    if chosen["kind"] == "dictator":
        parts = [f"{first}{proposer} decides alone how much {responder} gets."]
    else:
        parts = [f"{first}{proposer} makes one offer. If {responder} refuses it, both get nothing."]
    if chosen["kind"] == "hidden":
        low, high = _limits(money)[0], _limits(money)[-1]
        parts.append(
            f"{responder} has a smallest offer to accept: ${low} to ${high} in steps of ${low}, equally likely."
        )
    if chosen["talk"]:
        parts.append(f"Before that both say something, {responder} first.")
    return " ".join(parts)


def _limits(money: int) -> tuple[int, ...]:
    """Return the smallest acceptable offers that a responder can have: 1 to 10 twentieths of the sum."""
    return tuple(money * part // UNIT for part in range(1, 11))


def _gains(scenario: g.Scenario, talk: g.Transcript) -> tuple[int, int]:
    """Return the dollars of proposer and responder after the offer and its answer."""
    offer = int(talk.of("offer")[-1].number)
    return (0, 0) if talk.of("refuse") else (scenario.game["public"]["money"] - offer, offer)


# ---- players -------------------------------------------------------------------------------------------------------


def _words(seen: g.Observation) -> g.Action:
    responds = seen.viewer == seen.agents[1].name
    return g.Action("speak", "I want a good offer." if responds else "I make you one offer.")


def best_offer(money: int) -> int:
    """Return the offer that keeps most on average if the limit of the other is not known."""
    limits = _limits(money)
    return max(limits, key=lambda offer: (money - offer) * sum(limit <= offer for limit in limits))


def _optimal(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer the limit of the other if it is known, else what keeps most on average; accept from the own limit on."""
    money, kind, own = seen.game["money"], seen.game["kind"], g.known(seen, "least")
    if seen.may("speak"):
        return _words(seen)
    if seen.may("offer"):
        least = g.known(seen, "least", seen.agents[1].name)
        unknown = {"hidden": best_offer(money), "plain": 1, "dictator": 0}[kind]
        return g.move("offer", unknown if least is None else least)
    return g.move("accept" if seen.transcript.of("offer")[-1].number >= float(own or 1) else "refuse")


def _half(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer half, and accept half or more."""
    if seen.may("speak"):
        return _words(seen)
    half = seen.game["money"] // 2
    if seen.may("offer"):
        return g.move("offer", half)
    return g.move("accept" if seen.transcript.of("offer")[-1].number >= half else "refuse")


def _yes_sayer(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer one dollar, and accept everything."""
    return _words(seen) if seen.may("speak") else g.move("offer", 1) if seen.may("offer") else g.move("accept")


def _refuser(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer nothing, and refuse everything."""
    return _words(seen) if seen.may("speak") else g.move("offer", 0) if seen.may("offer") else g.move("refuse")


Ultimatum.players = {"optimal": _optimal, "half": _half, "yes-sayer": _yes_sayer, "refuser": _refuser}
Ultimatum.sensible = "optimal"
