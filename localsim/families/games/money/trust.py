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
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

PERCENTS = (0, 20, 40, 60)
"""What a receiver may have decided to return, in percents of what arrives, each equally likely."""


class Trust(Replayed):
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
    allowed = {"endowment": (1, 1000), "receiver_has": (0, 1000), "factor": (2, 10), "rounds": (1, 100)}
    roles = ("sender", "receiver")
    outcome = "sent"
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
        g.mean("payoff", "payoff", "what a player wins in a round, in parts of the sender's money"),
        g.mean("sender_payoff", "sender", "the same, of the sender", "payoff", side="sender", compared=True),
        g.mean("receiver_payoff", "receiver", "the same, of the receiver", "payoff", side="receiver", compared=True),
        g.share("sent", "sent", "share of the sender's money that is sent", compared=True),
        g.share("returned", "returned", "share of what arrived that is returned"),
        g.share("both_gain", "both gain", "share of rounds after which both have more"),
        g.mean("departure", "departure", "distance of what is returned from what was decided"),
    )
    opened = "percents"
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

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (sender, receiver), rounds, public = names, chosen["rounds"], dict(chosen)
        secrets: list[Secret] = []
        own = f"${chosen['receiver_has']}" if chosen["receiver_has"] else "nothing"
        times = f" in each of {rounds} rounds" * (rounds > 1)
        setting = (
            f"{sender} has ${chosen['endowment']} and {receiver} has {own}{times}. {sender} sends a part of it to "
            f"{receiver}, or nothing. Each dollar that is sent becomes {chosen['factor']}. Then {receiver} returns a "
            "part of what arrived, or nothing."
        )
        if chosen["decided"]:
            percents = g.chance(seed, self.name, "decided").choice(PERCENTS)
            text = f"{receiver} has decided to return {percents}% of what arrives."
            secrets = [Secret(receiver, "percents", text, percents, "Keep to what you have decided.")]
            setting += f" {receiver} has already decided what to return: 0%, 20%, 40% or 60%, each equally likely."
            public["percents"] = list(PERCENTS)
        if chosen["talk"]:
            setting += f" Before that both say something, {receiver} first."
        return Scene(
            title=f"{sender} can send money to {receiver}",
            setting=setting,
            goal="Get as much money as you can.",
            secrets=secrets,
            moves=(
                g.can("send", f"To send dollars to {receiver}", g.number(0, chosen["endowment"]), by=sender),
                g.can("return", "To return percents of what arrived", g.number(0, 100), by=receiver),
            ),
            talk=chosen["talk"],
            public=public,
            turns=2 * rounds + 2 * chosen["talk"],
        )

    def prospect(self, seen: g.Observation, depth: int) -> g.Place | None:
        """Nothing, half or everything is sent, and a part of PERCENTS comes back, in this round and in later ones."""
        if not seen.may("send"):
            return None
        money, factor, (sender, receiver) = seen.game["endowment"], seen.game["factor"], (a.name for a in seen.agents)

        def sending(won: float, rounds: int) -> g.Place:
            sends = dict.fromkeys((0, money // 2, money))
            return g.Place(tuple(sent(sum_, won + money - sum_, rounds - 1) for sum_ in sends), "send")

        def sent(dollars: int, won: float, rounds: int) -> g.Option:
            back = ((part, won + dollars * factor * part / 100) for part in PERCENTS) if dollars else ()
            replies = tuple(
                g.Option(f"{part}%", f"{receiver} returns {part}%", later(all_, rounds)) for part, all_ in back
            )
            return g.Option(
                str(dollars), f"{sender} sends ${dollars}", g.Place(replies) if replies else later(won, rounds)
            )

        def later(won: float, rounds: int) -> g.Place | float:
            return sending(won, rounds) if rounds else won

        left = seen.game["rounds"] - len(seen.transcript.of("send"))
        return sending(0.0, min(depth, left))

    def play(self, table: Table) -> Course:
        (sender, receiver), public = table.names, table.public
        money, own, decided, told_back = public["endowment"], public["receiver_has"], table.secret(receiver), ""
        if public["talk"]:
            yield from table.speak(receiver, sender)
        for number in range(1, public["rounds"] + 1):
            acts = [(yield from table.act(sender, "send"))]
            sent, back = acts[0].number, 0.0
            arrived = public["factor"] * sent
            if arrived:
                yield from table.tell(f"${g.amount(arrived)} arrive at {receiver}.", "arrived", g.amount(arrived))
                acts.append((yield from table.act(receiver, "return")))
                share = acts[1].number / 100
                back = arrived * acts[1].number / 100
                mean = table.mean("returned", share, acts[1:])
                told_back = f", and {receiver} returned {mean:.0%} of what arrived"
                if decided is not None:
                    table.mean("departure", abs(share - float(decided) / 100))
            won = {sender: money - sent + back, receiver: own + arrived - back}
            for name, dollars in won.items():
                table.mean("payoff", dollars, acts, name, of=money)
            table.mean("both_gain", won[sender] > money and won[receiver] > own)
            mean = table.mean("sent", sent / money, acts)
            table.explain("sent", f"{sender} sent {mean:.0%} of the money{told_back}")
            has, had = map(g.amount, won.values())
            result = f"Round {number}: ${acts[0].value} sent, ${g.amount(back)} returned."
            yield from table.tell(f"{result} {sender} has ${has} and {receiver} has ${had}.", "earned", has, had)


# ---- players -------------------------------------------------------------------------------------------------------


_speaking = g.speaking("I hope that you return a part.", "You can trust me.")


def _player(seen: g.Observation, rng: random.Random, *, part: float, percents: int, faithful: bool = True) -> g.Action:
    """Send a part of the own money, and return so many percent; if `faithful`, what was decided, if anything was."""
    if seen.may("send"):
        return g.move("send", int(part * seen.game["endowment"]))
    return g.move("return", (g.known(seen, "percents") if faithful else None) or percents)


@_speaking
def _optimal(seen: g.Observation, rng: random.Random) -> g.Action:
    """Send everything if more than that is expected back, else nothing; return what was decided, else nothing."""
    if seen.may("return"):
        return g.move("return", g.known(seen, "percents") or 0)
    decided = g.known(seen, "percents", seen.agents[1].name)
    expected = float(decided) if decided is not None else fmean(seen.game.get("percents", [0]))
    return g.move("send", seen.game["endowment"] if seen.game["factor"] * expected > 100 else 0)


Trust.players = {
    "optimal": _optimal,
    "trusting": _speaking(partial(_player, part=1, percents=50)),
    "half": _speaking(partial(_player, part=0.5, percents=50)),
    "cheat": _speaking(partial(_player, part=1, percents=0, faithful=False)),
}
Trust.sensible = "optimal"
