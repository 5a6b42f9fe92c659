"""localsim play, localsim class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from localsim import paths
from localsim.backends.open import chosen_model
from localsim.backends.person import NAME
from localsim.backends.scripted import PREFIX
from localsim.cli import completion
from localsim.cli.common import (
    HERE,
    Reassurance,
    clean,
    colour_of,
    db_option,
    language_option,
    say,
    serve_pages,
    store_of,
    web_options,
)
from localsim.conversation.episode import AgentView, Episode, EpisodeSpec, Mode, Observation
from localsim.conversation.prompts import relationship_lines
from localsim.conversation.requests import Request
from localsim.conversation.rules.lines import Bound, Way, described
from localsim.conversation.rules.values import Move
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, ActionType, Transcript, Turn, typed_move
from localsim.conversation.visibility import observe
from localsim.conversation.wording.personas import persona_lines
from localsim.conversation.wording.variants import SPACINGS
from localsim.errors import Interrupted, InvalidInput, suggest
from localsim.models.registry import labelled
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.runs.words import STOPS
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode, models_on
from localsim.store.queries import runs as queries

_COMMANDS: dict[str, ActionType] = {
    "/leave": "leave",
    "/do": "action",
    "/look": "non-verbal communication",
    "/pass": "none",
}
_HELP: dict[ActionType, str] = {
    "speak": "Type what you say.",
    "leave": "/leave [words] ends the conversation.",
    "action": "/do describes what you do.",
    "non-verbal communication": "/look describes a look or a gesture.",
    "none": "/pass does nothing.",
}


@click.command()
@click.argument("scenario", required=False, shell_complete=completion.scenarios)
@click.option("--as", "role", help="Play this role yourself.")
@click.option(
    "-m",
    "--model",
    shell_complete=completion.models,
    help="Let this model play the other roles [LOCALSIM_MODEL, else starter].",
)
@click.option(
    "--mode",
    type=click.Choice(["agents", "mindreaders"]),
    default="agents",
    help="Show each side only its own information (agents), or everything (mindreaders).",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, help="Draw from this seed.")
@click.option(
    "--browser",
    is_flag=True,
    help="Play in the browser, alone or with a second person; choose scenario and role there.",
)
@language_option
@web_options
@db_option
def play(
    scenario: str | None,
    role: str | None,
    model: str | None,
    mode: Mode,
    seed: int,
    browser: bool,
    language: str,
    host: str,
    port: int | None,
    open_browser: bool,
    db: str | None,
) -> None:
    """Play one role yourself. You see what an agent in that role sees; hidden goals and leaks are shown at the end.

    Your turns are stored like all others and marked human. Nothing else about you is stored. With --host, people on
    one network can play in pairs; each of them needs the printed address with its token.

    \b
    localsim play mutual_friends_01 --as Oscar
    localsim play craigslist_02 --as Ingrid --mode mindreaders
    localsim play --browser --open
    """
    name, store = chosen_model(model), store_of(db)
    if browser or open_browser or port is not None or host != HERE:
        if scenario is not None or role is not None:
            raise InvalidInput(
                "scenario and role are chosen on the page", hint="leave them out, or play in the terminal"
            )
        about = {"model": name, "parts": frozenset({"play"}), "language": language}
        serve_pages(store, host, port, "/play", open_browser=open_browser, **about)
        return
    if scenario is None or role is None:
        raise InvalidInput(
            "SCENARIO and --as ROLE are missing", hint="localsim scenarios list, or: localsim play --browser"
        )
    loaded = _one(scenario)
    role = _role(role, loaded)
    _in_terminal(Plan((loaded,), (mode,), model=name, roles={role: NAME}, seed=seed, parallel=1), role, store)


@click.command("class")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...", shell_complete=completion.scenarios)
@click.option(
    "--with",
    "partner",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Let every phone play with this model or scripted player, instead of with another phone.",
)
@click.option(
    "--against",
    metavar="RUN",
    help="Play against the talks of this run, an earlier class; the reveal shows who won.",
)
@click.option(
    "--replay",
    is_flag=True,
    help="Let every phone play a game with the decisions of the class of --against, instead of with another phone.",
)
@click.option(
    "--mode",
    type=click.Choice(["both", "agents", "mindreaders"]),
    default="both",
    help="Show players only their own side (agents), everything (mindreaders), or half of the talks each (both).",
)
@language_option
@click.option("--seats", type=click.IntRange(1, 200), default=200, help="Let at most this many phones join.")
@click.option(
    "--new",
    "fresh",
    is_flag=True,
    help="Begin another class, even if the one before has not ended; leave it out to go on with that one.",
)
@web_options
@db_option
def class_(
    scenarios: tuple[str, ...],
    partner: str | None,
    against: str | None,
    replay: bool,
    mode: str,
    language: str,
    seats: int,
    fresh: bool,
    host: str,
    port: int | None,
    open_browser: bool,
    db: str | None,
) -> None:
    """Let the phones of a class play in pairs, and show the results on a projector.

    Without a scenario the command opens a page on which all of this is chosen. Each phone gets a seat: a role in a
    talk with another phone, in agents or mindreaders mode. After the talk the players bet which mode needs fewer turns,
    read a talk of others and bet what those could see; the teacher shows the answer. Phones need --host with the
    address of this computer in the room's network; without it the command is a rehearsal in windows of this computer.
    Who waits for a partner is offered a scripted player. The same command continues a class that was stopped.

    \b
    localsim class --open
    localsim class mutual_friends_01 mutual_friends_02 --host 192.168.1.20 --language de
    localsim class craigslist_01 --with starter --host 192.168.1.20
    localsim class mutual_friends_01 --host 192.168.1.20 --against 20261123
    localsim class ultimatum_plain --host 192.168.1.20 --against 20261123 --replay
    """
    with Reassurance("reading the scenarios of the class"):
        with paths.needing("a class needs", "web"):
            from localsim.web.classroom.begin import serve_class, serve_form
            from localsim.web.classroom.hall import MOST_SEATS, Wish
            from localsim.web.classroom.seats import MODES
        alone = partner is not None
        computer = chosen_model(partner) if alone else PREFIX
        loaded = find_scenarios(list(scenarios)) if scenarios else []
    if computer == NAME:
        raise InvalidInput("--with names a model or scripted player", hint="leave it out to pair the phones")
    if replay and (against is None or alone):
        raise InvalidInput("--replay needs --against RUN, without --with", hint="localsim runs list shows all runs")
    if not loaded and (alone or against or replay or fresh or (mode, seats) != ("both", MOST_SEATS)):
        raise InvalidInput(
            "a SCENARIO is missing", hint="name one, or leave the other options out and choose all of it on a page"
        )
    modes = tuple(each for each in MODES if mode in ("both", each))
    wish = Wish(loaded, computer, alone, host, port, fresh, against, replay, modes, language, seats)
    serve = serve_class if loaded else serve_form
    serve(store_of(db), wish, say, open_browser=open_browser, during=Reassurance)


def _in_terminal(plan: Plan, role: str, store: Store) -> None:
    scenario = plan.scenarios[0].scenario
    _tell(observe(scenario, plan.modes[0], role, Transcript()))
    result = runner.start(plan, store, _Stage(role), say, partial(_asked, scenario.names), leaks=True)
    episode = queries.only_episode(store, result.run_id)
    _reveal(load_episode(store, episode), role)
    _models(store, scenario.id)


def _role(role: str, loaded: LoadedScenario) -> str:
    """Return the name of a role, however it is capitalised."""
    names = loaded.scenario.names
    found = next((name for name in names if name.casefold() == role.casefold()), None)
    if found is None:
        hint = suggest(role, names) or f"roles here: {', '.join(names)}"
        raise InvalidInput(f"{loaded.scenario.id} has no role {role!r}", hint=hint)
    return found


def _one(reference: str) -> LoadedScenario:
    found = find_scenarios([reference])
    if len(found) != 1:
        raise InvalidInput(
            f"{reference} holds {len(found)} scenarios, and only one can be played at a time", where=reference
        )
    return found[0]


def _asked(names: tuple[str, ...], request: Request) -> Action:
    """Ask the player for a turn."""
    seen = request.observation
    assert seen is not None
    while True:
        try:
            text = input(click.style(f"{request.speaker}: ", fg=colour_of(names, request.speaker)))
        except EOFError:
            raise Interrupted("the conversation was broken off; its turns are stored", hint="play again") from None
        try:
            return read_action(text, seen.allowed)
        except InvalidInput as error:
            say(f"{error.message}. {_help(seen.allowed)}")


def read_action(text: str, ways: Sequence[Way]) -> Action:
    """Return the action that a person typed. Raises InvalidInput."""
    word, _, rest = text.strip().partition(" ")
    kind: ActionType = "speak"
    move = next((way for way in ways if isinstance(way, Bound) and word.rstrip(":") == f"/{way.name}"), None)
    if move is not None:
        values, _, words = rest.partition(":")
        return typed_move(move, "" if word.endswith(":") else values, rest if word.endswith(":") else words)
    if word.startswith("/"):
        if word not in _COMMANDS:
            raise InvalidInput(f"{word} is not known")
        kind = _COMMANDS[word]
    else:
        rest = text.strip()
    if kind not in ways:
        raise InvalidInput(f"this scenario does not allow {kind} now")
    if not rest.strip() and kind not in ("leave", "none"):
        raise InvalidInput("there are no words")
    return Action(kind, "" if kind == "none" else rest.strip())


def _help(ways: Sequence[Way]) -> str:
    """Return how a person types the actions and moves that are allowed."""
    actions = [text for kind, text in _HELP.items() if kind in ways]
    moves = [way.move for way in ways if isinstance(way, Bound)]
    told = [f"Moves now: {', '.join(map(_typed, moves))}."] if moves else []
    words = ["Words follow after a colon."] if any(move.text != "no" for move in moves) else []
    return " ".join([*actions, *told, *words])


def _typed(move: Move) -> str:
    """Return a move with its values, as a person types it."""
    return f"/{move.name} {'; '.join(map(described, move.values))}".strip()


def _tell(seen: Observation) -> None:
    """Print the start of the conversation as the role sees it."""
    click.secho(f"\nYou are {seen.viewer}.", bold=True)
    click.echo(f"Setting: {clean(seen.setting)}")
    for line in relationship_lines(seen):
        click.echo(clean(line))
    _side(seen.me(), "Your")
    for agent in seen.agents:
        if agent.name != seen.viewer:
            _side(agent, f"{agent.name}'s")
    actions = [text for kind, text in _HELP.items() if kind in seen.actions]
    click.echo(f"\n{' '.join([f'At most {seen.turn_limit} turns.', *actions])}\n")
    for move in seen.moves:
        click.echo(f"{_typed(move)}: {move.tell}")


def _side(agent: AgentView, whose: str) -> None:
    """Print the visible side of an agent; goals and secrets in the words that the agent was given."""
    if agent.profile:
        click.echo(f"{whose} background: " + "; ".join(f"{label}: {clean(text)}" for label, text in agent.profile))
    for line in persona_lines(agent, SPACINGS[0], own=whose == "Your"):
        click.echo(clean(line))
    for label, text in (("goal", agent.goal), ("secret", agent.secret)):
        if text:
            click.echo(f"{whose} {label}: {clean(text)}")
    if agent.facts:
        click.echo(f"{whose} knowledge:")
        for fact in agent.facts:
            click.echo(f"  - {clean(fact.text)}")


class _Stage(Watcher):
    """Prints what the others do, as far as the player can read it."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._talk = Transcript()
        self._printed: set[int] = set()

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Print the turns that the player can read from now on; the player's own have been typed."""
        self._talk = self._talk.plus(turn)
        for each in observe(spec.scenario, spec.mode, self._role, self._talk).transcript.turns:
            if each.speaker != self._role and each.index not in self._printed:
                self._printed.add(each.index)
                head = each.who if each.doing == "speak" else f"{each.who} [{each.doing}]"
                words = f": {clean(each.action.text)}" if each.action.text or each.doing == "speak" else ""
                click.echo(click.style(head, fg=colour_of(spec.scenario.names, each.speaker)) + words)

    def ended(self, episode: Episode) -> None:
        """Print why the conversation is over."""
        if episode.error:
            say(f"the conversation broke off: {episode.error}")
        elif episode.stop_reason is not None:
            say(f"the conversation is over: {STOPS[episode.stop_reason]}")


def _reveal(found: StoredEpisode, role: str) -> None:
    """Print the others' goals and facts, the leaks, and the outcome."""
    click.secho("\n== The reveal", bold=True)
    for agent in found.scenario.agents:
        if agent.name != role:
            view = AgentView(agent.name, (), agent.goal, agent.secret, agent.facts)
            _side(view, f"{agent.name}'s")
    for leak in found.leaks:
        how = "without having been told it" if leak["kind"] == "omniscient" else "their own"
        click.echo(f"turn {leak['turn'] + 1}: {leak['speaker']} gave away {clean(leak['fact'])!r} ({how})")
    if found.status != "completed":
        click.echo("Leaks are looked for in completed conversations only.")
    elif not found.leaks:
        click.echo("The detector found no disclosed fact.")
    for score in found.scores:
        if score["evaluator"].startswith("outcome.") or score["name"] == "checks_passed":
            value = score["label"] if score["value"] is None else f"{score['value']:.3g}"
            whom = f" ({score['agent']})" if score["agent"] else ""
            click.echo(f"{score['name'].replace('_', ' ')}{whom}: {value}  {clean(score['reason'] or '')}")


def _models(store: Store, scenario_id: str) -> None:
    """Print the results of models in this scenario."""
    rows = models_on(store, scenario_id)
    for row in rows:
        rate = "no outcome" if row["success"] is None else f"success {row['success']:.0%}"
        model = labelled(row["model"], whole=False)
        click.echo(f"{model} in {row['mode']}: {row['talks']} conversations, {rate}, {row['turns']:.0f} turns")
    if not rows:
        click.echo(f"To compare with models: localsim run {scenario_id} --mode all -n 4")
