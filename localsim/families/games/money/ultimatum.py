"""The ultimatum game: one offers a part of a sum, and the other accepts it or both get nothing.

Güth, Schmittberger and Schwarze, An experimental analysis of ultimatum bargaining, Journal of Economic Behavior and
Organization 3 (1982), 367-388. If the responder wants money alone, the offer is the smallest that is more than nothing.

With a `hidden` limit the responder has a private fact, the smallest acceptable offer, which is one of ten equally
likely parts of the sum: 5%, 10% ... 50%. Who knows it offers exactly that and keeps 72.5% on average. Who does not
know it keeps (1 - x) * P(limit <= x) with an offer x, which is largest for x = 50%: it keeps 50%.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

KINDS = ("hidden", "plain", "dictator")
"""The responder has a private limit, or has none, or has no choice at all."""
UNIT = 20
"""The sum is a multiple of this, so that its twentieths are whole dollars."""


class Ultimatum(Replayed):
    """One offers a part of a sum, and the other accepts it or both get nothing."""

    name, version = "ultimatum", "1"
    title = "Take it or leave it"
    about = "One offers the other a part of a sum of money. If the other refuses, both get nothing."
    defaults = {"money": 100, "kind": "hidden", "talk": False}
    allowed = {"kind": KINDS, "money": (UNIT, 1_000_000)}
    roles = ("proposer", "responder")
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
        g.mean("proposer_payoff", "proposer", "what the proposer keeps", "payoff", side="proposer", compared=True),
        g.mean("responder_payoff", "responder", "what the responder gets", "payoff", side="responder", compared=True),
        g.share("offer", "offer", "share of the sum that is offered", compared=True),
        g.mean("over", "over limit", "offer above the smallest acceptable one, in parts of the sum"),
        g.share("kept_limit", "kept limit", "share of answers that follow the own limit"),
    )
    opened = "least"
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

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (proposer, responder), money, kind = names, chosen["money"], chosen["kind"]
        if money % UNIT:
            raise g.InvalidInput(f"{self.name}: money = {money} has no whole twentieths", hint="for example 100")
        secrets: list[Secret] = []
        rules = f"{proposer} makes one offer. If {responder} refuses it, both get nothing."
        moves = [
            g.can("offer", f"To offer so many dollars to {responder}", g.number(0, money), by=proposer),
            g.can("accept", "To accept the offer", by=responder),
            g.can("refuse", "To refuse the offer", by=responder),
        ]
        if kind == "dictator":
            rules, moves = f"{proposer} decides alone how much {responder} gets.", moves[:1]
        if kind == "hidden":
            low, *_, high = limits = _limits(money)
            least = g.chance(seed, self.name, "least").choice(limits)
            rules += f" {responder} has a smallest offer to accept: ${low} to ${high} in steps of ${low}, "
            rules += "equally likely."
            text = f"{responder} accepts no offer below ${least}."
            secrets = [Secret(responder, "least", text, least, "Keep to your smallest offer.")]
        if chosen["talk"]:
            rules += f" Before that both say something, {responder} first."
        return Scene(
            title=f"{proposer} offers {responder} a part of ${money}",
            setting=f"{proposer} has ${money} to share with {responder}. {rules}",
            goal="Get as much money as you can.",
            secrets=secrets,
            moves=moves,
            talk=chosen["talk"],
            turns=4 if chosen["talk"] else 2,
        )

    def prospect(self, seen: g.Observation, depth: int) -> g.Place | None:
        """Offers in tenths of the sum, and whether the other accepts."""
        if not seen.may("offer"):
            return None
        money, (proposer, responder) = seen.game["money"], (agent.name for agent in seen.agents)

        def offered(part: int) -> g.Option:
            offer = money * part // 10
            replies = (
                g.Option("accept", f"{responder} accepts", float(money - offer)),
                g.Option("refuse", f"{responder} refuses", 0.0),
            )
            after = float(money - offer) if seen.game["kind"] == "dictator" else g.Place(replies)
            return g.Option(str(offer), f"{proposer} offers {part}0% of the money", after)

        return g.Place(tuple(offered(part) for part in range(11)), "offer")

    def play(self, table: Table) -> Course:
        (proposer, responder), money = table.names, table.public["money"]
        if table.public["talk"]:
            yield from table.speak(responder, proposer)
        turn = yield from table.act(proposer, "offer")
        offer, cited, accepted = int(turn.number), [turn], True
        if table.public["kind"] != "dictator":
            cited.append((yield from table.act(responder, "accept", "refuse")))
            accepted = cited[-1].action.type == "accept"
            told = f"{proposer} offered ${offer} of ${money}, and {responder} {'accepted' if accepted else 'refused'}"
            if limit := table.secret(responder):
                least = float(limit)
                told += f", who accepts no offer below ${least:g}"
                table.score("over", (offer - least) / money, cited[:1])
                table.score("kept_limit", accepted == (offer >= least), cited)
            table.score("success", accepted, cited, told)
        kept, got = (money - offer, offer) if accepted else (0, 0)
        table.score("offer", offer / money, cited[:1])
        table.each("payoff", {proposer: kept / money, responder: got / money}, cited)
        yield from table.tell(f"{proposer} gets ${kept} and {responder} gets ${got}.", kept, got)


def _limits(money: int) -> tuple[int, ...]:
    """Return the smallest acceptable offers that a responder can have: 1 to 10 twentieths of the sum."""
    return tuple(money * part // UNIT for part in range(1, 11))


# ---- players -------------------------------------------------------------------------------------------------------


_speaking = g.speaking("I make you one offer.", "I want a good offer.")


def best_offer(money: int) -> int:
    """Return the offer that keeps most on average if the limit of the other is not known."""
    limits = _limits(money)
    return max(limits, key=lambda offer: (money - offer) * sum(limit <= offer for limit in limits))


@_speaking
def _optimal(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer the limit of the other if it is known, else what keeps most on average; accept from the own limit on."""
    money, kind, own = seen.game["money"], seen.game["kind"], g.known(seen, "least")
    if seen.may("offer"):
        least = g.known(seen, "least", seen.agents[1].name)
        unknown = {"hidden": best_offer(money), "plain": 1, "dictator": 0}[kind]
        return g.move("offer", unknown if least is None else least)
    return g.move("accept" if seen.transcript.of("offer")[-1].number >= float(own or 1) else "refuse")


@_speaking
def _half(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer half, and accept half or more."""
    half = seen.game["money"] // 2
    if seen.may("offer"):
        return g.move("offer", half)
    return g.move("accept" if seen.transcript.of("offer")[-1].number >= half else "refuse")


Ultimatum.players = {
    "optimal": _optimal,
    "half": _half,
    "yes-sayer": _speaking(g.taking(g.move("offer", 1), g.move("accept"))),
    "refuser": _speaking(g.taking(g.move("offer", 0), g.move("refuse"))),
}
Ultimatum.sensible = "optimal"
