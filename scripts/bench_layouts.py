#!/usr/bin/env python3
"""Compare ways to write a conversation into prompts: tokens evaluated, seconds, and how well models take to each.

    .venv/bin/python scripts/bench_layouts.py                    # tokens, on the engine's workload *independent*
    .venv/bin/python scripts/bench_layouts.py --play scripted:auto
    .venv/bin/python scripts/bench_layouts.py --seconds
    .venv/bin/python scripts/bench_layouts.py --loss starter --loss smollm2-135m --free smollm2-135m

Tokens: conversations are held once, by --play in the present layout. Then the same words are written into each layout,
and the engine's caches are followed (scripts/layouts.py). All layouts are divided by the tokens that are written in the
present one. Openings, a session's first prompts, are counted apart.

Seconds: the limit of `bench_engine.py` for each layout's work, that is llama_decode alone with 8 conversations at a
time; and one token of a prompt part that holds one, two, four or eight turns.

Loss: the words of conversations of others are forced on a model in each layout. Searches and bargains are those of
scripted players; everyday conversations are those that were kept out of the starter's training. The loss of an end is
that of all tokens with which a line can end.

Free: the model plays searches and bargains in each layout, without a grammar (how many replies can be read) and with
it (how many succeed, and how many turns repeat one of the speaker's own). Layouts without names are left out: the
grammar asks for a colon.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.base import Backend, Done  # noqa: E402
from localsim.backends.llama import memory as planning  # noqa: E402
from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.engine import LlamaBackend  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.backends.llama.raw import RawContext  # noqa: E402
from localsim.backends.open import physical_cores  # noqa: E402
from localsim.backends.scripted import PREFIX, open_scripted  # noqa: E402
from localsim.conversation.episode import Episode, Sampling  # noqa: E402
from localsim.conversation.exchange import Request  # noqa: E402
from localsim.conversation.rules.grammar import ActionLines  # noqa: E402
from localsim.conversation.scenario import AnswerKey, LoadedScenario, Scenario  # noqa: E402
from localsim.conversation.transcript import Turn  # noqa: E402
from localsim.evaluators.style import STYLE  # noqa: E402
from localsim.families import EVERYDAY, FAMILIES, auto, family_of  # noqa: E402
from localsim.models import registry as models  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.runs.scheduler import Watcher  # noqa: E402
from localsim.stats import paired  # noqa: E402
from scripts.bench_engine import Bench, Shared, Work, limit_probes, simulate, workload  # noqa: E402
from scripts.bench_pace import ABREAST, DEPTH, Pace, Stopwatch  # noqa: E402
from scripts.check_rules import played  # noqa: E402
from scripts.layouts import LAYOUTS, PRESENT, Layout, Read, Tokens, reads  # noqa: E402
from scripts.starter import everyday  # noqa: E402
from scripts.tables import markdown_table, say  # noqa: E402

FIRST_SEED = 400
"""Seed of the first scenario for losses and free play; the others follow."""
CONTEXT = 4096
"""Tokens of the context in which words are forced on a model."""
TURNS_AT_ONCE = (1, 2, 4, 8)
PART = 28
"""Prompt tokens of one turn: its words, both names and the template's marks."""
Talk = tuple[Scenario, Sequence[Turn]]


class Collector(Watcher):
    """Keeps the episodes of a run."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []

    def ended(self, episode: Episode) -> None:
        """Keep an episode."""
        self.episodes.append(episode)


# ---- tokens --------------------------------------------------------------------------------------------------------


def held(bench: Bench, player: str) -> list[Talk]:
    """Let a scripted player or the bench's model hold the conversations of the workload."""
    backend = open_scripted(player) if player.startswith(PREFIX) else bench.backend(LlamaBackend, bench.parallel)
    kept = Collector()
    simulate(backend, bench.plan, bench.plan.specs(), bench.parallel, Stopwatch(bench.pace), kept)
    backend.close()
    return [(episode.spec.scenario, episode.transcript.turns) for episode in kept.episodes]


def work_of(talks: Sequence[Talk], layout: Layout, chat: Tokens) -> Work:
    """Return what the engine evaluates for the conversations in a layout."""
    work = Work()
    for scenario, turns in talks:
        for read in reads(scenario, turns, layout, chat):
            work.pieces.append((read.kept, len(read.prompt) - read.kept, read.opens))
            work.steps += range(len(read.prompt), len(read.prompt) + len(read.reply))
            work.by_episode[scenario.id] += len(read.reply)
    return work


def token_rows(works: Mapping[Layout, Work]) -> Iterator[list[str]]:
    """Yield for each layout: tokens written and tokens of prompts, a turn; the ratio; and tokens of openings."""
    written = len(works[PRESENT].steps)
    for layout, work in works.items():
        later = [count for _, count, opens in work.pieces if not opens]
        a_turn = (len(work.steps) / len(work.pieces), sum(later) / len(later))
        ratio = (sum(later) + len(work.steps)) / written
        openings = work.prompt_tokens - sum(later)
        yield [layout.name, *(f"{each:.1f}" for each in a_turn), f"{ratio:.2f}", str(openings)]


# ---- seconds -------------------------------------------------------------------------------------------------------


def rate_rows(bench: Bench, works: Mapping[Layout, Work]) -> Iterator[list[str]]:
    """Yield tokens a second of llama_decode alone; the tokens are those written in the present layout."""
    written, first = len(works[PRESENT].steps), 0.0
    for layout, work in works.items():
        rate = written / limit_probes(bench, work)["limit"] / bench.pace.reference
        first = first or rate
        say(f"{layout.name}: {rate:.1f} tokens/s")
        yield [layout.name, f"{rate:.1f}", f"{rate / first:.2f}"]


def batch_rows(bench: Bench) -> Iterator[list[str]]:
    """Yield the time of a prompt token if a session reads several turns at once."""
    raw = RawContext(Shared(bench.model), sequences=1, context=bench.context, threads=physical_cores())
    for turns in TURNS_AT_ONCE:
        spent = bench.pace.paced(raw.pieces([(DEPTH, turns * PART)] * 9))
        token = float(np.median(spent)) * bench.pace.reference / (turns * PART)
        say(f"{turns} turns at once: {1000 * token:.2f} ms a token")
        yield [str(turns), str(turns * PART), f"{1000 * token:.2f}"]
    raw.close()


# ---- loss ----------------------------------------------------------------------------------------------------------


class Forced(RawContext):
    """A context on which conversations are forced."""

    def __init__(self, model: LlamaModel) -> None:
        super().__init__(model, sequences=1, context=min(CONTEXT, model.n_ctx_train), threads=physical_cores())
        tokens = range(model.n_vocab)
        self._ends = [each for each in tokens if model.ends_text(each) or model.piece(each).startswith(b"\n")]

    def losses(self, read: Read, start: int) -> tuple[float, float]:
        """Nats of a turn's words, which begin `start` bytes after its label, and of its end."""
        self._deepen(0, read.kept)
        pending = [*read.prompt[read.kept :], *read.reply]
        first = len(pending) - len(read.reply) - 1
        for at in range(0, first, 512):
            part = pending[at : min(at + 512, first)]
            self._decode([(0, read.kept + at, len(part))], part)
        rest = pending[first:]
        self._decode([(0, read.kept + first, len(rest))], rest, all_logits=True)
        words, place = 0.0, 0
        for row, token in enumerate(read.reply):
            if place >= start:
                words -= self._log_probability(row, token)
            place += len(self._model.piece(token))
        pointer = self._lib.llama_get_logits_ith(self._context, len(read.reply))
        logits = np.ctypeslib.as_array(pointer, shape=(self._model.n_vocab,)).astype(np.float64)
        return words, float(np.logaddexp.reduce(logits) - np.logaddexp.reduce(logits[self._ends]))


@dataclass
class Loss:
    """Losses of one conversation in nats."""

    words: float = 0.0
    ends: float = 0.0
    count: int = 0
    """Number of words."""
    turns: int = 0


def loss_of(talk: Talk, layout: Layout, model: Forced, chat: Tokens) -> Loss:
    """Force a conversation on a model, once for each agent."""
    (scenario, turns), found = talk, Loss()
    every = list(reads(scenario, turns, layout, chat))
    for read in sorted(every, key=lambda read: read.turn.speaker):
        rest, text = layout.rest(read.turn.action), read.turn.action.text
        # The blank before the first word belongs to its token.
        words, end = model.losses(read, len(rest.encode()) - len(text.encode()) - rest.count(f" {text}"))
        if text:
            found.words += words
            found.ends += end
            found.count += len(text.split())
            found.turns += 1
    return found


def forced_talks(count: int) -> dict[str, list[Talk]]:
    """Return conversations of scripted players, and everyday ones on which no model was trained."""
    talks: dict[str, list[Talk]] = {}
    for family in FAMILIES.own:
        searched = (scenario_of(family, FIRST_SEED + number) for number in range(count))
        talks[family] = [(each.scenario, played(each, "agents", FIRST_SEED, auto)[1]) for each in searched]
    rng = random.Random(FIRST_SEED)
    drawn = (everyday.talk(rng, number, held_out=True) for number in range(count))
    talks[EVERYDAY.name] = [(document.split()[0], transcript.turns) for document, transcript in drawn]
    return talks


def scenario_of(family: str, seed: int) -> LoadedScenario:
    """Return an instance of a task family."""
    scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split()
    return LoadedScenario(scenario, answer, f"{family}.yaml")


def loss_rows(name: str, layouts: Sequence[Layout], count: int) -> Iterator[list[str]]:
    """Yield nats a word of each family's conversations under each layout, and the difference from the present one."""
    model = LlamaModel(models.resolve(name).path)
    forced, chat, talks = Forced(model), ChatTokenizer(model), forced_talks(count)
    usual: dict[str, list[Loss]] = {}
    for layout in layouts:
        cells = [name, layout.name]
        for family, each in talks.items():
            found = [loss_of(talk, layout, forced, chat) for talk in each]
            usual.setdefault(family, found)
            cells += loss_cells(found, usual[family])
        say(" | ".join(cells))
        yield cells
    forced.close()
    model.free()


def loss_cells(found: Sequence[Loss], usual: Sequence[Loss]) -> list[str]:
    """Return the loss of words with its difference from the usual layout, and the loss of ends."""
    words = sum(each.words for each in found) / sum(each.count for each in found)
    ends = sum(each.ends for each in found) / sum(each.turns for each in found)
    differences = {
        str(number): [(here.words - there.words) / here.count]
        for number, (here, there) in enumerate(zip(found, usual, strict=True))
    }
    compared = paired(differences, (None, None), number=True)
    if compared is None or compared.low is None or found is usual:
        return [f"{words:.2f}", f"{ends:.2f}"]
    return [f"{words:.2f} ({compared.difference:+.2f} [{compared.low:+.2f}, {compared.high:+.2f}])", f"{ends:.2f}"]


# ---- free play -----------------------------------------------------------------------------------------------------


@dataclass
class LaidOut:
    """A model that reads and writes in another layout."""

    inner: Backend
    layout: Layout
    asked: int = 0
    again: int = 0
    """Requests after a reply that could not be read."""
    name: str = ""
    identity: dict[str, Any] = field(default_factory=dict)

    def thinks(self) -> bool:
        """Return what the model says."""
        return self.inner.thinks()

    def submit(self, request: Request) -> int:
        """Ask for the same turn in the layout."""
        assert request.observation is not None and isinstance(request.form, ActionLines)
        self.asked += 1
        self.again += request.attempt > 0
        prompt = self.layout.prompt(request.observation)
        prefill = "".join(f"{line}\n" for line in prompt.lines) + prompt.start
        form = replace(request.form, given=len(prompt.lines))
        return self.inner.submit(replace(request, messages=prompt.messages, prefill=prefill, form=form))

    def poll(self) -> list[Done]:
        """Return the finished replies: what follows the start of a line is the same in every layout with names."""
        return self.inner.poll()

    def cancel(self, ticket: int) -> None:
        """Forget a request."""
        self.inner.cancel(ticket)

    def release(self, session: str) -> None:
        """Free a session."""
        self.inner.release(session)

    def close(self) -> None:
        """Free everything."""
        self.inner.close()


def free_rows(name: str, layouts: Sequence[Layout], count: int) -> Iterator[list[str]]:
    """Yield the share of replies that can be read without a grammar; successes and repeated turns with one."""
    model = LlamaModel(models.resolve(name).path)
    scenarios = [scenario_of(family, FIRST_SEED + number) for family in FAMILIES.own for number in range(count)]
    answers = {loaded.scenario.id: loaded.answer for loaded in scenarios}
    pace = Pace(Shared(model))
    for layout in (each for each in layouts if each.names != "none"):
        cells = [name, layout.name]
        for grammar in (False, True):
            plan = Plan(tuple(scenarios), ("agents",), model=name, seed=7, sampling=Sampling(grammar=grammar))
            bench = Bench("free", model, plan, planning.context_needed(plan.specs(), name, model), pace)
            backend, kept = LaidOut(bench.backend(LlamaBackend, ABREAST), layout), Collector()
            simulate(backend, plan, plan.specs(), ABREAST, Stopwatch(pace), kept)
            backend.close()
            cells += played_well(kept.episodes, answers) if grammar else read_of(backend, kept.episodes)
        say(" | ".join(cells))
        yield cells
    pace.close()
    model.free()


def read_of(backend: LaidOut, episodes: Sequence[Episode]) -> list[str]:
    """Return the share of replies that could be read, and the number of episodes that were completed."""
    failed = sum(episode.status == "failed" for episode in episodes)
    unread = backend.again + failed
    return [f"{1 - unread / backend.asked:.0%} of {backend.asked}", f"{len(episodes) - failed} of {len(episodes)}"]


def played_well(episodes: Sequence[Episode], answers: Mapping[str, AnswerKey]) -> list[str]:
    """Return successes in each family, the mean share of turns that repeat an own one, and mean words a turn."""
    means: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        scenario, talk = episode.spec.scenario, episode.transcript
        scores = [*STYLE.score(talk, scenario, AnswerKey())]
        if episode.status == "completed":
            scores += family_of(scenario.family).score(talk, scenario, answers[scenario.id])
        for score in scores:
            if score.value is not None:
                means[f"{scenario.family} success" if score.name == "success" else score.name].append(score.value)
    won = [means[f"{family} success"] for family in FAMILIES.own]
    each = len(episodes) // len(won)
    return [
        *(f"{sum(found):.0f} of {each}" for found in won),
        f"{np.mean(means['own_repeated_turns']):.0%}",
        f"{np.mean(means['words_per_turn']):.1f}",
    ]


# ---- the whole -----------------------------------------------------------------------------------------------------


@click.command()
@click.option("--model", default="starter", show_default=True, help="The model whose tokens and template count.")
@click.option("--play", "player", help="Who holds the conversations: the model [default] or scripted:PLAYER.")
@click.option("--seconds", is_flag=True, help="Also measure the time of each layout's work.")
@click.option("--loss", "losing", multiple=True, help="Force conversations on this model in each layout.")
@click.option("--free", multiple=True, help="Let this model play in each layout.")
@click.option(
    "--layout",
    "named",
    multiple=True,
    type=click.Choice([layout.name for layout in LAYOUTS[1:]]),
    help="Layout to compare with the present one in seconds, loss and free play [all].",
)
@click.option("--talks", default=8, show_default=True, help="Conversations of each family for --loss and --free.")
def main(
    model: str,
    player: str | None,
    seconds: bool,
    losing: tuple[str, ...],
    free: tuple[str, ...],
    named: tuple[str, ...],
    talks: int,
) -> None:
    """Print tables of layouts."""
    loaded = LlamaModel(models.resolve(model).path)
    plan, pace = workload("independent", 1, model), Pace(Shared(loaded))
    bench = Bench("independent", loaded, plan, planning.context_needed(plan.specs(), model, loaded), pace)
    found, chat = held(bench, player or model), ChatTokenizer(loaded)
    works = {layout: work_of(found, layout, chat) for layout in LAYOUTS}
    heads = ["layout", "written a turn", "prompt tokens a turn", "evaluated per written", "tokens of openings"]
    turns = sum(len(each) for _, each in found)
    print(f"{len(found)} conversations, {turns} turns, held by {player or model}\n")
    print(markdown_table(heads, token_rows(works)))
    chosen = [layout for layout in LAYOUTS if not named or layout is PRESENT or layout.name in named]
    if seconds:
        heads, timed = ["layout", "limit, tokens/s", "to the present layout"], {each: works[each] for each in chosen}
        print("\n" + markdown_table(["turns read at once", "tokens", "ms a token"], batch_rows(bench)))
        print("\n" + markdown_table(heads, rate_rows(bench, timed)))
    pace.close()
    loaded.free()
    families = [part for name in (*FAMILIES.own, EVERYDAY.name) for part in (f"{name}, nats a word", "an end")]
    for name in losing:
        print("\n" + markdown_table(["model", "layout", *families], loss_rows(name, chosen, talks)))
    heads = ["model", "layout", "replies read", "completed", *FAMILIES.own, "own turns repeated", "words a turn"]
    for name in free:
        print("\n" + markdown_table(heads, free_rows(name, chosen, talks)))


if __name__ == "__main__":
    main()
