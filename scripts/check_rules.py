#!/usr/bin/env python3
"""Audit many prompts of random scenarios with 2 to 8 agents, private and simultaneous turns, and all orders of phases.

.venv/bin/python scripts/check_rules.py                      # 100,000 prompts
.venv/bin/python scripts/check_rules.py --prompts 2000       # a short trial
.venv/bin/python scripts/check_rules.py --prompts 500 --stored   # through a database, as `localsim audit` does

Names are of eight scripts. A scripted player takes any allowed action, says sentences that occur nowhere else, passes
on what it heard or remembers, and puts the marks of six families of chat templates into its words. Some agents have
memories, some have minds, and some talks go on from another one. In a sample of the prompts, a text is planted that
must not be there: a turn that the viewer could not read, an item of another agent or what it wrote and did not say, the
answer key or the description for people. The audit must find it. Every prompt becomes the tokens of one of the six
families: it must hold as many marks as the same prompt with other words in place of all contents. The exit code is 1 if
the audit finds anything else or misses a planted text, or if a mark in somebody's words is alive.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.backends.scripted import ScriptedBackend  # noqa: E402
from localsim.conversation.episode import SIMULATED, SINGLE_AUTHOR, EpisodeSpec, Mode, Observation  # noqa: E402
from localsim.conversation.modes import MODES, Ask, Say, roles  # noqa: E402
from localsim.conversation.requests import Generation, Message, Request  # noqa: E402
from localsim.conversation.rules.forms import Listed, OneOf  # noqa: E402
from localsim.conversation.rules.steps import Rules  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.conversation.transcript import Action, Transcript, Turn  # noqa: E402
from localsim.conversation.wording.layouts import DEFAULT, FIRST  # noqa: E402
from localsim.errors import InvalidInput  # noqa: E402
from localsim.families.players import Player, any_way  # noqa: E402
from localsim.reports.audit import Readers, audit_run, found_in  # noqa: E402
from localsim.reports.audit.minds import NO_MINDS, Minds, Thoughts  # noqa: E402
from localsim.runs import runner  # noqa: E402
from localsim.runs.branches import branched  # noqa: E402
from localsim.runs.minds import mind_of  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.runs.scheduler import Watcher  # noqa: E402
from localsim.scenarios.parse import parse_scenario  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from tests import tiny_model  # noqa: E402

SCRIPTS = {
    "Latin": ("Ana", "Bo", "Zoë O’Neill", "Di", "Anabel", "Nguyễn An", "Gus-Peter", "J. R. Ha"),
    "Cyrillic": ("Иван", "Юлия", "Семён", "Ива", "Щука", "Пётр", "Анна-Мария", "Олег"),
    "Greek": ("Νίκος", "Άννα", "Μάρκος", "Σοφία", "Ηλίας", "Ελένη", "Κώστας", "Ζωή"),
    "Arabic": ("أحمد", "فاطمة", "علي", "نور", "يوسف", "مريم", "خالد", "هدى"),
    "Hebrew": ("דוד", "שָׂרָה", "יוסף", "רות", "נועם", "מרים", "אורי", "חנה"),
    "Devanagari": ("राम", "सीता", "अर्जुन", "गीता", "मोहन", "रीना", "किरण", "ज्योति"),
    "Thai": ("สมชาย", "มาลี", "นก", "ปิติ", "ชูใจ", "วีระ", "ดวงใจ", "แก้ว"),
    "Han, kana and Hangul": ("王", "王明", "さくら", "サクラコ", "김민수", "김", "李娜", "山田 太郎"),
}
"""Eight names of each script; some are parts of others."""
MIXED = tuple(names[place] for place, names in enumerate(SCRIPTS.values()))
SYLLABLES = "ba ce di fo gu ha ke li mo nu pa re si to vu wa xe yi zo".split()
_NEW = re.compile(r"\b(?:[a-z][aeiou]){4}\b")
"""A word of a `sentence`."""
PLANTED_EVERY = 10
"""A text is planted in one of up to so many prompts."""
MARKED = 0.3
"""Share of the new sentences that hold marks."""
GOES_ON, WITH_MINDS = 0.3, 0.4
"""Shares of the talks that go on from another one, and in which some agents have minds."""
STEPS = (
    *("immerse", "immerse(n=2,by=judge)", "drafts", "best(of=polite/kind,n=2)", "predict(of=agree/refuse)"),
    *("plan(acts=negotiation)", "tpe", "tpe(acts=support)", "reflect(every=2)", "loop(reflect(every=1)+tpe,times=2)"),
    "predict(of=agree/refuse)+branch(drafts,plan(acts=support),when=predict/agree)",
)
"""Steps of minds, as their names have them."""
MARKS = tuple(dict.fromkeys(mark for family in tiny_model.FAMILIES.values() for mark in family.specials))


def sentence(rng: random.Random, length: int = 5) -> str:
    """Return words that occur nowhere else."""
    return " ".join("".join(rng.choices(SYLLABLES, k=4)) for _ in range(length)).capitalize() + "."


def drawn(rng: random.Random) -> LoadedScenario:
    """Return a random scenario with moves and phases."""
    names = tuple(rng.sample(rng.choice([*SCRIPTS.values(), MIXED]), rng.randint(2, 8)))
    ballot, most = rng.choice(["all", "self"]), rng.choice([0, 5])
    agents = [
        {
            "name": name,
            "goal": sentence(rng),
            "secret": sentence(rng),
            "profile": {"public_info": sentence(rng), "personality_and_values": sentence(rng)},
            "facts": [{"id": f"f{place}_{number}", "text": sentence(rng)} for number in range(rng.randint(0, 2))],
            "memories": [{"text": sentence(rng), "age": rng.randint(0, 9)} for _ in range(rng.randint(0, most))],
        }
        for place, name in enumerate(names)
    ]
    moves: list[dict[str, Any]] = [
        {"name": "to", "tell": "To whisper", "values": [{"agents": "several"}], "text": "must", "readers": "named"},
        {"name": "hand", "tell": "To hand", "values": [{"number": [0, 9]}, {"agents": "one"}], "readers": "named"},
        {"name": "think", "tell": "To think", "text": "must", "readers": "self"},
        {"name": "note", "tell": "To note", "values": [{"words": 40}], "text": "no", "readers": "self"},
        {"name": "bid", "tell": "To bid", "values": [{"number": [0, 50], "step": "0.5"}], "text": "may"},
        {"name": "vote", "tell": "To vote", "values": [{"agents": "one"}], "text": "no", "readers": ballot},
        {"name": "next", "tell": "To give the floor", "values": [{"agents": "one"}]},
    ]  # fmt: skip
    count = rng.randint(0, 4)
    phases = [_phase(rng, names, number, last=number == count - 1) for number in range(count)]
    document = {
        "version": 1,
        "id": f"drawn_{rng.randrange(10**9)}",
        "title": "A random scenario",
        "info": {"what": sentence(rng)},
        "setting": sentence(rng),
        "relationship": rng.choice(["stranger", "acquaintance", "friend"]),
        "agents": agents,
        "moves": moves,
        "phases": phases,
        "recall": {"k": rng.randint(1, 3), "by": rng.choice(["words", "recency"])},
        "limits": {"turns": rng.randint(6, 40), "leave": rng.choice(["ends", "goes_on"]), "chars": 200},
        "answer": {"key": sentence(rng)},
    }
    return parse_scenario(yaml.safe_dump(document, sort_keys=False), "drawn.yaml")


def _phase(rng: random.Random, names: tuple[str, ...], number: int, *, last: bool) -> dict[str, Any]:
    order = rng.choice(["in_turn", "random", "addressed", "together", "together", "moderated"])
    who = list(names) if rng.random() < 0.6 else rng.sample(names, rng.randint(1, len(names)))
    phase: dict[str, Any] = {"name": f"phase_{number}", "order": order, "who": who}
    every = ["speak", "leave", "none", "action", "to", "hand", "think", "note", "bid", "vote"]
    if rng.random() < 0.7:
        phase["actions"] = [*rng.sample(every[4:], rng.randint(1, 4)), *rng.sample(every[:4], rng.randint(0, 2))]
    if order == "moderated":
        phase["moderator"] = rng.choice(names)
        phase["who"] = [name for name in who if name != phase["moderator"]] or [
            name for name in names if name != phase["moderator"]
        ]
    if order in ("addressed", "moderated") or rng.random() < 0.3:
        phase["turns"] = rng.randint(2, 10)
    else:
        phase["rounds"] = rng.randint(1, 3)
        phase["events"] = [
            {
                "round": rng.randint(1, phase["rounds"]),
                "to": rng.sample(names, rng.randint(0, 2)),
                "text": sentence(rng),
            }
            for _ in range(rng.randint(0, 2))
        ]
    if rng.random() < 0.4:
        phase["announce"] = sentence(rng)
    if rng.random() < 0.3:
        phase["ends_with"] = [rng.choice(phase.get("actions", every))]
    if rng.random() < 0.3 and "vote" in phase.get("actions", every):
        phase["count"] = "vote"
    if last and rng.random() < 0.2:
        phase.pop("turns", None)
    return phase


def chatter(seen: Observation, rng: random.Random) -> Action:
    """Take any allowed action with new words, or with words that were heard before; leave now and then."""
    for name, chance in (("leave", 0.05), ("none", 0.1)):
        if seen.may(name) and rng.random() < chance:
            return Action(name)
    heard = [turn.action.text for turn in seen.transcript.turns if turn.action.text and not turn.told]
    known = heard if rng.random() < 0.2 else seen.me().memories if rng.random() < 0.1 else ()
    return any_way(seen, rng, _marked(rng.choice(known) if known else sentence(rng), rng))


def _marked(words: str, rng: random.Random) -> str:
    marked = f"{words[:9]}{rng.choice(MARKS)}{words[9:]} {''.join(rng.choices(MARKS, k=2))}"
    return marked if rng.random() < MARKED else words


def thinker(request: Request) -> Generation:
    """Answer a step of a mind: with any of the words that it may choose, else with new words; now and then wrongly."""
    rng, form = random.Random(request.seed), request.form
    text = _marked(sentence(rng), rng)
    if isinstance(form, OneOf | Listed) and rng.random() < 0.95:
        most = min(form.most if isinstance(form, Listed) else 1, len(form.words))
        text = ", ".join(rng.sample(form.words, rng.randint(1, most)))
    return Generation(f" {text}", "finished", "chatter")


def minds_for(spec: EpisodeSpec, rng: random.Random) -> EpisodeSpec:
    """Give some agents minds with random steps, unless one author writes all."""
    if spec.mode in SINGLE_AUTHOR or rng.random() >= WITH_MINDS:
        return spec
    drew = {name: "+".join(rng.sample(STEPS, rng.randint(1, 3))) for name in spec.scenario.names if rng.random() < 0.5}
    return replace(spec, minds={name: mind_of(f"mind:{steps},chatter") for name, steps in drew.items()})


def played(
    loaded: LoadedScenario,
    mode: Mode,
    seed: int,
    player: Player = chatter,
    layout: str = FIRST,
    rules: Rules | None = None,
) -> tuple[list[Request], list[Turn]]:
    """Return the requests and turns of one episode."""
    return thought(_spec(loaded, mode, seed, layout, rules), player)[:2]


def _spec(loaded: LoadedScenario, mode: Mode, seed: int, layout: str, rules: Rules | None = None) -> EpisodeSpec:
    models, layouts = (dict.fromkeys(roles(mode, loaded.scenario.names), each) for each in ("chatter", layout))
    return EpisodeSpec(loaded.scenario, mode, models, 0, seed, layouts=layouts, rules=rules)


def thought(spec: EpisodeSpec, player: Player = chatter) -> tuple[list[Request], list[Turn], list[Minds]]:
    """Return the requests and turns of one episode, and what was thought before each request."""
    backend, play = ScriptedBackend("chatter", player=player), MODES[spec.mode](spec)
    requests: list[Request] = []
    turns: list[Turn] = []
    replies: list[str] = []
    said: set[int] = set()
    answer = None
    while True:
        try:
            step = play.send(answer)
        except StopIteration:
            return requests, turns, _before(spec, requests, replies, said)
        answer = None
        if isinstance(step, Say):
            turns.append(step.turn)
            if step.written:
                said.add(len(requests) - 1 - step.back)
        elif isinstance(step, Ask):
            requests.append(step.request)
            if not step.request.step:
                backend.submit(step.request)
            answer = thinker(step.request) if step.request.step else backend.poll()[0].result
            assert isinstance(answer, Generation)
            replies.append(answer.text)
        elif not requests[-1].step:
            raise AssertionError(step.reason)


def _before(spec: EpisodeSpec, requests: list[Request], replies: list[str], said: set[int]) -> list[Minds]:
    """Return what agents with minds wrote before each request, from the view of its speaker."""
    found: list[Minds] = []
    thoughts = Thoughts({("", name) for name in spec.minds}, [mind.stated() for mind in spec.minds.values()])
    for at, (request, reply) in enumerate(zip(requests, replies, strict=True)):
        found.append(thoughts.before("", request.speaker, spec.scenario.names))
        thoughts.add("", request.speaker, reply, said=at in said)
    return found


def talks(
    loaded: LoadedScenario, mode: Mode, layout: str, rng: random.Random
) -> Iterator[tuple[LoadedScenario, list[Request], list[Turn], list[Minds]]]:
    """Yield a talk, and now and then one that goes on from a place in it: its scenario and what `thought` returns."""
    spec = _spec(loaded, mode, rng.randrange(10**6), layout)
    found = thought(minds_for(spec, rng))
    yield loaded, *found
    places = range(1, len(found[1])) if rng.random() < GOES_ON else ()
    for at in rng.sample(places, len(places))[:5]:
        with suppress(InvalidInput):
            branch = LoadedScenario(*branched(loaded, Transcript(tuple(found[1])), spec.seed, at).split(), "on.yaml")
            yield branch, *thought(minds_for(replace(spec, scenario=branch.scenario), rng))
            return


def text_of(request: Request) -> str:
    """Return the whole prompt of a request."""
    return "\n\n".join([*(message.content for message in request.messages), request.note, request.prefill])


def audited(
    loaded: LoadedScenario, mode: Mode, requests: list[Request], turns: list[Turn], thoughts: Sequence[Minds] = ()
) -> Iterator[tuple[Request, str, str]]:
    """Yield (request, kind, text) for each violation in the prompts of an episode, and in what the rules told."""
    talk = Readers(loaded.scenario, Transcript(tuple(turns)))
    for turn, what, text in talk.differences():
        yield requests[0], f"turn {turn.index + 1}: {what}", text
    for turn in turns:
        if turn.told and talk.declared(turn) is None:
            yield requests[0], f"turn {turn.index + 1}", "the rules told something that is not in the file"
    for request, minds in zip(requests, thoughts or [NO_MINDS] * len(requests), strict=True):
        for what, text in found_in(text_of(request), loaded, mode, request.speaker, talk, request.turn, minds=minds):
            yield request, what, text


def plants(loaded: LoadedScenario, mode: Mode, request: Request, turns: list[Turn], minds: Minds) -> dict[str, str]:
    """Return texts that must not be in a prompt, by kind: turns that its viewer could not read, and items of others."""
    talk = Readers(loaded.scenario, Transcript(tuple(turns)))
    viewer, everything = request.speaker, mode != "agents"
    heard = talk.heard(viewer, request.turn, everything=everything, simultaneous=viewer == "writer")
    here = {turn.line: turn for turn in turns}
    found = {
        _kind(here[each.line], simultaneous="same beat" in each.what): each.line
        for each in heard.withheld
        if not any(each.line in line for line in heard.lines)
    }
    known = set(_NEW.findall("\n".join([*heard.lines, *minds.own]).lower()))
    for _, text in minds.others:
        if (new := set(_NEW.findall(text.lower()))) and not new & known:
            found["draft" if text.startswith((":", " [")) else "thought"] = text
    found["description for people"] = loaded.scenario.info.what
    found["answer key"] = loaded.answer.answer["key"]
    for agent in loaded.scenario.agents:
        if not everything and agent.name != viewer:
            found |= {"goal": agent.goal, "secret": agent.secret or ""}
            found |= {"fact": agent.facts[-1].text} if agent.facts else {}
            untold = [each.text for each in agent.memories if not known & set(_NEW.findall(each.text.lower()))]
            found |= {"memory": untold[-1]} if untold else {}
            if loaded.scenario.relationship == "stranger":
                found["profile"] = agent.profile.public_info or ""
    return found


def _kind(turn: Turn, *, simultaneous: bool) -> str:
    if turn.told:
        return "told to others"
    if simultaneous:
        return "of the same beat"
    return "thought or ballot" if turn.readers == (turn.speaker,) else "whisper"


def finds_planted(
    loaded: LoadedScenario, mode: Mode, request: Request, turns: list[Turn], rng: random.Random, minds: Minds = NO_MINDS
) -> tuple[str, bool]:
    """Plant one text of a kind drawn from those that are possible; return the kind, and True if the audit finds it."""
    kind, text = rng.choice(sorted(plants(loaded, mode, request, turns, minds).items()))
    talk = Readers(loaded.scenario, Transcript(tuple(turns)))
    prompt = f"{text_of(request)}\n\n{text}"
    return kind, any(True for _ in found_in(prompt, loaded, mode, request.speaker, talk, request.turn, minds=minds))


class Families:
    """Six families of chat templates, each on a tiny model."""

    def __init__(self, folder: Path) -> None:
        self._models = {
            name: LlamaModel(tiny_model.write(folder / f"{name}.gguf", family), vocab_only=True)
            for name, family in tiny_model.FAMILIES.items()
        }
        self._chats = {name: ChatTokenizer(model) for name, model in self._models.items()}

    def live(self, request: Request, family: str) -> int:
        """Return the number of marks in a prompt beyond those of the same prompt with other words."""
        plain = tuple(replace(each, content="-") for each in request.messages)
        return self._marks(family, request.messages, request) - self._marks(family, plain, replace(request, note="-"))

    def _marks(self, family: str, messages: Sequence[Message], request: Request) -> int:
        model, own = self._models[family], tiny_model.FAMILIES[family].specials
        tokens = self._chats[family].prompt(messages, request.prefill, note=request.note)
        return sum(model.token_text(token) in own for token in tokens)


@click.command()
@click.option("--prompts", default=100_000, show_default=True, help="Audit at least this many prompts.")
@click.option("--seed", default=1, show_default=True, help="Draw scenarios with this seed.")
@click.option("--stored", is_flag=True, help="Simulate into a database and audit what is stored.")
def main(prompts: int, seed: int, stored: bool) -> None:
    """Print the number of scenarios, prompts, violations and seconds, and of planted texts of each kind."""
    rng, began = random.Random(seed), time.monotonic()
    checked = scenarios = live = 0
    violations: Counter[str] = Counter()
    planted: dict[str, list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        families = Families(Path(scratch))
        while checked < prompts:
            if stored:
                found = _stored([drawn(rng) for _ in range(10)], seed + scenarios)
                checked, scenarios = checked + found[0], scenarios + 10
                violations.update(found[1])
            else:
                drew, scenarios = drawn(rng), scenarios + 1
                for mode in SIMULATED:
                    layout, family = rng.choice((FIRST, DEFAULT)), rng.choice(list(tiny_model.FAMILIES))
                    for loaded, requests, turns, thoughts in talks(drew, mode, layout, rng):
                        checked += len(requests)
                        wrong = audited(loaded, mode, requests, turns, thoughts)
                        violations.update(f"{mode}: {what}: {text}" for _, what, text in wrong)
                        live += sum(families.live(request, family) for request in requests)
                        for at in range(0, len(requests), rng.randint(1, PLANTED_EVERY)):
                            kind, hit = finds_planted(loaded, mode, requests[at], turns, rng, thoughts[at])
                            planted[kind].append(hit)
            if scenarios % 100 == 0:
                print(f"{checked} prompts, {sum(violations.values())} violations, {live} live marks", file=sys.stderr)
    for line, count in violations.most_common(20):
        print(f"{count} x {line}")
    print(
        f"{checked} prompts of {scenarios} scenarios, {sum(violations.values())} violations, {live} live marks; "
        f"{time.monotonic() - began:.0f} s"
    )
    for kind, hits in sorted(planted.items()):
        print(f"planted {kind}: {hits.count(True)} of {len(hits)} found")
    missed = not all(all(hits) for hits in planted.values())
    sys.exit(1 if violations or live or missed or not (planted or stored) else 0)


def _stored(scenarios: list[LoadedScenario], seed: int) -> tuple[int, list[str]]:
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "rules.duckdb")
        plan = Plan(tuple(scenarios), SIMULATED, "scripted", seed=seed)
        run_id = runner.start(plan, store, Watcher(), lambda _: None, leaks=False).run_id
        found = audit_run(store, run_id)
    return found.prompts_checked, [f"{each.mode}: {each.what}: {each.text}" for each in found.violations]


if __name__ == "__main__":
    main()
