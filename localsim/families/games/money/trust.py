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

from collections.abc import Iterable

from localsim.families.games.base import (
    DONE,
    RANDOM,
    Action,
    Agent,
    AnswerKey,
    Any,
    Fact,
    Game,
    Mapping,
    Measure,
    Move,
    Next,
    Observation,
    Player,
    Reference,
    Scenario,
    ScenarioFile,
    Score,
    Tell,
    Transcript,
    Turn,
    Verdict,
    act,
    amount,
    between,
    by_agent,
    by_chance,
    chance,
    exactly,
    known,
    merged,
    move,
    names_of,
    number,
    private,
    random,
    within,
)

PERCENTS = (0, 20, 40, 60)
"""What a receiver may have decided to return, in percents of what arrives, each equally likely."""
ARRIVED, EARNED = "arrived", "earned"
"""The first value of what the rules tell: after money was sent, and after a round."""


class Trust(Game):
    """A sender sends money that is multiplied, and a receiver returns a part of it."""

    name, version = "trust", "1"
    title = "Sending money and getting some back"
    about = "One sends a part of $10 to the other. It is tripled on its way, and the other returns a part of it."
    defaults: Mapping[str, Any] = {
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
        Measure("payoff", "payoff", "what a player wins in a round, in parts of the sender's money", "payoff"),
        Measure("sender_payoff", "sender", "the same, of the sender", "payoff", side="sender", compared=True),
        Measure("receiver_payoff", "receiver", "the same, of the receiver", "payoff", side="receiver", compared=True),
        Measure("sent", "sent", "share of the sender's money that is sent", "sent", kind="share", compared=True),
        Measure("returned", "returned", "share of what arrived that is returned", "returned", kind="share"),
        Measure("both_gain", "both gain", "share of rounds after which both have more", "both_gain", kind="share"),
        Measure("departure", "departure", "distance of what is returned from what was decided", "departure"),
    )
    figure = ("sender_payoff", "receiver_payoff", "sent", "returned")
    references = (
        RANDOM,
        Reference("optimal", "selfish", "the best play for each alone: it returns nothing"),
        Reference("trusting", "trusting", "sends everything and returns half: both together win most"),
    )
    control_tasks: Mapping[str, Mapping[str, Any]] = {"hidden": {"decided": True}}
    controls = (
        exactly("optimal", "sent", 0, "nothing would come back"),
        exactly("optimal", "returned", None, "nothing arrives"),
        exactly("optimal", "sender_payoff", 1, "the sender keeps everything"),
        exactly("optimal", "both_gain", 0, "nothing is sent"),
        exactly("trusting", "sent", 1, "everything is sent"),
        exactly("trusting", "returned", 0.5, "half of it comes back"),
        exactly("trusting", "sender_payoff", 1.5, "15 of 30 dollars come back"),
        exactly("trusting", "receiver_payoff", 2.5, "10 dollars, and 15 of 30"),
        exactly("trusting", "payoff", 2, "the mean of both"),
        exactly("trusting", "both_gain", 1, "both have more than 10 dollars"),
        exactly("cheat", "sender_payoff", 0, "everything is sent, and nothing comes back"),
        exactly("cheat", "receiver_payoff", 4, "10 dollars and 30"),
        exactly("half", "sender_payoff", 1.25, "5 dollars kept, and half of 15"),
        exactly("trusting", "departure", 0, "it keeps to what was decided", "hidden"),
        between("cheat", "departure", 0.1, 0.5, "on average 30 percent were decided", "hidden"),
        exactly("optimal", "sent", 0, "it expects 90 cents for a dollar", "hidden", ("agents",)),
        by_chance("optimal", "sent", 0.5, "two of four return enough", "hidden", ("script", "mindreaders")),
    )

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """Return a scenario: the money of both, the factor, and what the receiver has decided, if anything."""
        chosen = merged(self.defaults, parameters, self.name)
        within(self, chosen, "endowment", 1, 1000)
        within(self, chosen, "receiver_has", 0, 1000)
        within(self, chosen, "factor", 2, 10)
        within(self, chosen, "rounds", 1, 100)
        sender, receiver = names_of(self, seed, 2)
        goal = "Get as much money as you can."
        facts: tuple[Fact, ...] = ()
        if chosen["decided"]:
            percents = chance(seed, self.name, "decided").choice(PERCENTS)
            text = f"{receiver} has decided to return {percents}% of what arrives."
            facts = (private(receiver, "percents", text, percents),)
        sends, returns = (number(0, chosen["endowment"]),), (number(0, 100),)
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{sender} can send money to {receiver}",
            setting=_setting(sender, receiver, chosen),
            agents=(
                Agent(name=sender, goal=goal),
                Agent(name=receiver, goal=f"{goal} Keep to what you have decided." if facts else goal, facts=facts),
            ),
            talk=chosen["talk"],
            moves=(
                Move(name="send", values=sends, text="no", by=(sender,), tell=f"To send dollars to {receiver}"),
                Move(
                    name="return", values=returns, text="no", by=(receiver,), tell="To return percents of what arrived"
                ),
            ),
            public={**chosen, **({"percents": list(PERCENTS)} if chosen["decided"] else {})},
            turns=2 * chosen["rounds"] + 2 * chosen["talk"],
            answer={"sender": sender},
        )

    def step(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        """The receiver and the sender may speak; then in each round money is sent, arrives, and may come back."""
        public, (sender, receiver) = scenario.game["public"], scenario.names
        spoken = len(talk.of("speak"))
        if public["talk"] and spoken < 2:
            return act((receiver, sender)[spoken], "speak")
        last = talk.turns[-1] if talk.turns else None
        if last is not None and last.action.type == "send" and last.number:
            arrived = amount(public["factor"] * last.number)
            return Tell(f"${arrived} arrive at {receiver}.", values=(ARRIVED, arrived))
        if last is not None and last.told and last.value == ARRIVED:
            return act(receiver, "return")
        rounds = _rounds(talk)
        if last is not None and last.action.type in ("send", "return"):
            won = _won(public, rounds[-1])
            text = (
                f"Round {len(rounds)}: ${rounds[-1][0].value} sent, ${amount(_back(public, rounds[-1]))} returned. "
                f"{sender} has ${amount(won[0])} and {receiver} has ${amount(won[1])}."
            )
            return Tell(text, values=(EARNED, *map(amount, won)))
        return DONE if len(rounds) == public["rounds"] else act(sender, "send")

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
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
            *by_agent("payoff", dict(zip(scenario.names, sums, strict=True)), cited),
            Score("both_gain", _mean(a > public["endowment"] and b > public["receiver_has"] for a, b in won)),
        ]
        if returns := [each[1] for each in rounds if len(each) == 2]:
            shares = [turn.number / 100 for turn in returns]
            told += f", and {receiver} returned {100 * sum(shares) / len(shares):.0f}% of what arrived"
            scores.append(Score("returned", _mean(shares), turns=tuple(turn.index for turn in returns)))
            if facts:
                decided = float(facts[0].terms[0]) / 100
                scores.append(Score("departure", _mean(abs(share - decided) for share in shares)))
        return [Score("sent", _mean(sent), reason=told, turns=tuple(cited)), *scores]

    def side(self, agent: str, answer: AnswerKey) -> str:
        """Return `sender` or `receiver`."""
        return "sender" if agent == answer.answer.get("sender") else "receiver"

    def verdict(self, scores: Mapping[str, Score], answer: AnswerKey) -> Verdict | None:
        """Return what was sent and returned, in words; no outcome is right or wrong."""
        return Verdict(None, f"{scores['sent'].reason}.") if "sent" in scores else None

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        """Send what is right for this receiver; None if it is not known what was decided."""
        decided = known(seen, "percents", seen.agents[1].name)
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


def _rounds(talk: Transcript) -> list[list[Turn]]:
    """Return the acts of each round: what was sent, and what was returned if something arrived."""
    rounds: list[list[Turn]] = []
    for turn in talk.of("send", "return"):
        if turn.action.type == "send":
            rounds.append([turn])
        else:
            rounds[-1].append(turn)
    return rounds


def _back(public: Mapping[str, Any], acts: list[Turn]) -> float:
    """Return the dollars that come back in a round."""
    return float(public["factor"] * acts[0].number * acts[1].number / 100) if len(acts) == 2 else 0.0


def _won(public: Mapping[str, Any], acts: list[Turn]) -> tuple[float, float]:
    """Return what sender and receiver have after a round."""
    sent, back = acts[0].number, _back(public, acts)
    return public["endowment"] - sent + back, public["receiver_has"] + public["factor"] * sent - back


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


# ---- players -------------------------------------------------------------------------------------------------------


def _player(part: float, percents: int, *, faithful: bool = True) -> Player:
    """Return a player that sends a part of its money, and returns so many percent.

    `faithful`: it returns what it has decided, if it has decided anything.
    """

    def play(seen: Observation, rng: random.Random) -> Action:
        if seen.may("speak"):
            return _words(seen)
        if seen.may("send"):
            return move("send", int(part * seen.game["endowment"]))
        return move("return", (known(seen, "percents") if faithful else None) or percents)

    return play


def _words(seen: Observation) -> Action:
    receives = seen.viewer == seen.agents[1].name
    return Action("speak", "You can trust me." if receives else "I hope that you return a part.")


def _optimal(seen: Observation, rng: random.Random) -> Action:
    """Send everything if more than that is expected back, else nothing; return what was decided, else nothing."""
    if seen.may("speak"):
        return _words(seen)
    if seen.may("return"):
        return move("return", known(seen, "percents") or 0)
    decided = known(seen, "percents", seen.agents[1].name)
    expected = float(decided) if decided is not None else _mean(seen.game.get("percents", [0]))
    return move("send", seen.game["endowment"] if seen.game["factor"] * expected > 100 else 0)


Trust.players = {
    "optimal": _optimal,
    "trusting": _player(1, 50),
    "half": _player(0.5, 50),
    "cheat": _player(1, 0, faithful=False),
}
Trust.sensible = "optimal"
