"""The crew of a run: one worker on each node of a Ray cluster, or one for each GPU of a node.

Each worker has one call under way at any time, and `_turn` waits for the first answers; so no thread is needed, a slow
worker holds up no other one, and a worker that joins late or is lost is an event like any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from localsim.backends import person
from localsim.backends.open import is_file, is_scripted, models_of
from localsim.conversation.episode import EpisodeSpec, counted
from localsim.conversation.scenario import AnswerKey
from localsim.errors import BackendUnavailable, InvalidInput, LocalsimError, ModelMissing
from localsim.runs.cluster import weights
from localsim.runs.cluster.connect import connected
from localsim.runs.cluster.ledger import Ledger
from localsim.runs.cluster.messages import Found, News, Opened, Orders, Part, Wanted
from localsim.runs.cluster.worker import Worker
from localsim.runs.plan import Plan
from localsim.runs.preview import needs_of
from localsim.runs.recorder import Recorder
from localsim.runs.scheduler import Summary, Watcher
from localsim.store.queries.runs import Recorded

Notify = Callable[[str], None]
SAME = ("localsim", "prompts", "llama-cpp-python")
"""The versions that a worker must share with the driver."""
LOOK_S = 3.0
"""Seconds between two looks at the nodes of the cluster."""
WAITING_S = 15.0
"""Seconds without any worker after which the driver says that it waits."""
GONE_S = 60.0
"""Seconds without any worker after which a run stops."""
MOST_DEATHS = 3
"""Workers that may be lost in a row at one place without having finished an episode; then the place is left."""


@dataclass
class _Player:
    """A worker, from its start on."""

    name: str
    place: tuple[str, int]
    """Id of the node, and number of the worker on it."""
    host: str
    actor: Any
    call: Any
    """The call under way."""
    then: Callable[[_Player, Any], None]
    """The handler of its answer."""
    parallel: int = 0
    ready: bool = False
    playing: bool = False
    running: int = 0
    sent: list[str] = field(default_factory=list)


@contextmanager
def gathered(
    address: str, plan: Plan, specs: Sequence[EpisodeSpec], say: Notify, identities: Mapping[str, Mapping[str, Any]]
) -> Iterator[Crew]:
    """Give the crew of a run as soon as one worker is ready; the others join while it plays.

    `identities` are those of the models of a run that is resumed, else empty. Raises InvalidInput, ModelMissing or
    BackendUnavailable.
    """
    from localsim.runs.runner import versions

    models = models_of(specs)
    _refuse_unsharable(models)
    wanted, places = weights.wanted_here(models)
    for name, identity in identities.items():
        if "sha256" in identity and wanted.get(name, Wanted("")).sha256 != identity["sha256"]:
            wanted[name] = Wanted(identity["sha256"])
    kinds = {(spec.scenario.hash, spec.mode, spec.variant, spec.grants): spec for spec in plan.specs()}
    alike = [replace(spec, rules=None) for spec in kinds.values()]
    needs = replace(needs_of(plan, 1), specs=alike)
    here = {name: number for name, number in versions().items() if name in SAME}
    orders = Orders(tuple(models), needs, plan.parallel, len(specs), wanted, here)
    with connected(address) as ray:
        crew = Crew(ray, orders, places, say)
        try:
            crew.gather()
            yield crew
        except ConnectionError as error:
            raise BackendUnavailable(
                f"the connection to the cluster was lost: {error}", hint="continue with: localsim resume"
            ) from error
        finally:
            crew.dismiss()


def _refuse_unsharable(models: Sequence[str]) -> None:
    for name in models:
        if name == person.NAME:
            raise InvalidInput("a role is played by a person, and a cluster cannot ask one", hint="leave out --cluster")
        if is_scripted(name) and "@" in name:
            raise InvalidInput(
                f"{name}: the replies of a file are used in order, which several workers cannot do together",
                hint="leave out --cluster",
            )


class Crew:
    """The workers of one run."""

    def __init__(self, ray: Any, orders: Orders, places: Mapping[str, Sequence[Path]], say: Notify) -> None:
        self._ray = ray
        self._orders = orders
        self._paths = {
            part: path
            for name, wanted in orders.wanted.items()
            for part, path in zip(wanted.parts, places.get(name, ()), strict=False)
        }
        self._say = say
        self._class = ray.remote(Worker)
        self._players: dict[str, _Player] = {}
        self._deaths: dict[tuple[str, int], int] = {}
        self._refused: dict[tuple[str, int], LocalsimError] = {}
        self._pieces: dict[Part, list[Any]] = {}
        self._started = 0
        self._looked = 0.0
        self._alone = time.monotonic()
        """The time since which no worker has been ready."""
        self._patient = True
        self._ledger: Ledger | None = None
        self._run_id = ""
        self._stopping = False
        self.identities: dict[str, Mapping[str, Any]] = {}
        """The identity of each model on the first worker."""
        self.parallel = 1
        """Episodes at a time on the first worker."""

    # ---- what a run calls --------------------------------------------------------------------------------------

    def gather(self) -> None:
        """Start workers and wait until one is ready. Raises the error of the first one if none can be used."""
        while not any(player.ready for player in self._players.values()):
            self._turn()

    def simulate(
        self,
        run_id: str,
        specs: Sequence[EpisodeSpec],
        recorded: Mapping[str, Sequence[Recorded]],
        answers: Mapping[str, AnswerKey],
        recorder: Recorder,
        watcher: Watcher,
        should_stop: Callable[[], bool],
    ) -> Summary:
        """Play all specs on the workers; if `should_stop` returns True, stop after the current turns."""
        ledger = self._ledger = Ledger(run_id, specs, recorded, answers, recorder, watcher)
        self._run_id = run_id
        watcher.begins(specs)
        for player in [player for player in self._players.values() if player.ready]:
            self._begin(player)
        while not ledger.done:
            self._stopping = self._stopping or should_stop()
            if self._stopping and not any(player.playing for player in self._players.values()):
                break
            self._turn()
        ledger.summary.stopped = not ledger.done
        return ledger.summary

    def dismiss(self) -> None:
        """End all workers."""
        for player in self._players.values():
            with suppress(Exception):  # the cluster may be gone
                self._ray.kill(player.actor)
        self._players.clear()

    # ---- workers come and go -----------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Look at the nodes from time to time, and handle the answers that have arrived."""
        now = time.monotonic()
        if now >= self._looked + LOOK_S:
            self._looked = now
            self._start_workers()
        self._check_hope(now)
        calls = {player.call: player for player in self._players.values() if player.call is not None}
        if not calls:
            time.sleep(0.1)
            return
        ready, rest = self._ray.wait(list(calls), num_returns=1, timeout=0.25)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for call in ready:
            player = calls[call]
            try:
                answer = self._ray.get(call)
            except self._ray.exceptions.RayError as error:
                self._handle(player, error)
                continue
            player.call = None
            player.then(player, answer)

    def _start_workers(self) -> None:
        """Start a worker at each place that has none."""
        taken = {player.place for player in self._players.values()}
        files = any(map(is_file, self._orders.models))
        for node in self._ray.nodes():
            cores, gpus = int(node["Resources"].get("CPU", 0)), int(node["Resources"].get("GPU", 0))
            if not node["Alive"] or not cores:
                continue
            gpus = min(gpus, cores) if files and self._orders.needs.gpu != "off" else 0
            number = max(1, gpus)
            for index in range(number):
                place = (node["NodeID"], index)
                if place not in taken and place not in self._refused:
                    self._start(place, node["NodeManagerHostname"], cores // number if files else 1, gpu=gpus > 0)

    def _start(self, place: tuple[str, int], host: str, cores: int, *, gpu: bool) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node_id=place[0], soft=False)
        needs = {"num_cpus": cores, "num_gpus": int(gpu), "max_restarts": 0, "scheduling_strategy": there}
        actor = self._class.options(**needs).remote(cores)
        self._started += 1
        name = f"worker {self._started} on {host}"
        self._players[name] = _Player(name, place, host, actor, actor.hello.remote(), self._greeted)

    def _handle(self, player: _Player, error: Exception) -> None:
        """Handle an error of Ray: a worker without localsim is no use, any other one is lost."""
        if "No module named 'localsim" in str(error):
            reason = f"localsim is not installed on {player.host}, or another version of it"
            hint = "install the same version of localsim, with its extra ray, on every machine of the cluster"
            self._refuse(player, BackendUnavailable(reason, hint=hint))
        else:
            self._lose(player, str(error).strip().splitlines()[0].rstrip(".:"))

    def _lose(self, player: _Player, reason: str) -> None:
        """Take the episodes of a lost worker back; a new worker starts at its place, unless several were lost there."""
        del self._players[player.name]
        self._ray.kill(player.actor)
        back = self._ledger.lose(player.name) if self._ledger is not None else 0
        retried = f"; {counted(back)} will be played again elsewhere" if back else ""
        self._say(f"{player.name} was lost ({reason}){retried}")
        self._deaths[player.place] = self._deaths.get(player.place, 0) + 1
        if self._deaths[player.place] >= MOST_DEATHS:
            error = BackendUnavailable(f"{MOST_DEATHS} workers in a row were lost on {player.host}: {reason}")
            self._refused[player.place] = error
        self._looked = 0.0

    def _refuse(self, player: _Player, error: LocalsimError) -> None:
        """Do without a place where no worker can play this run."""
        del self._players[player.name]
        self._ray.kill(player.actor)
        self._refused[player.place] = error
        self._say(f"{player.name} is not used: {error}")

    def _check_hope(self, now: float) -> None:
        """Raise an error if no worker can be expected any more; say so if it takes long until one is ready."""
        if any(player.ready for player in self._players.values()):
            self._alone, self._patient = now, True
            return
        if self._refused and not self._players and self._ledger is None:
            raise next(iter(self._refused.values()))
        waited = now - self._alone
        if waited >= WAITING_S and self._patient:
            self._patient = False
            asked = f"{len(self._players)} workers wait for free processors" if self._players else "no node is free"
            self._say(f"waiting for the cluster: {asked} (`ray status` shows what is in use)")
        if waited >= GONE_S and not self._players:
            hint = "`ray status` shows its nodes" + (f"; continue: localsim resume {self._run_id}" * bool(self._run_id))
            raise BackendUnavailable("the cluster has no node left on which a worker can play", hint=hint)

    # ---- the way of one worker ---------------------------------------------------------------------------------

    def _greeted(self, player: _Player, here: Mapping[str, str]) -> None:
        player.host = here["host"]
        for part, number in self._orders.versions.items():
            if here.get(part) != number:
                error = BackendUnavailable(
                    f"{player.host} has {part} {here.get(part)}, this machine {number}",
                    hint="install the same version of localsim on every machine of the cluster",
                )
                self._refuse(player, error)
                return
        player.call, player.then = player.actor.look.remote(self._orders), self._looked_for

    def _looked_for(self, player: _Player, found: Found) -> None:
        """Send the files that a worker lacks, then let it open its models."""
        for name, sha256 in found.sha256.items():
            if name not in self._orders.wanted:  # this machine has no such file, so the first worker decides
                wanted = {**self._orders.wanted, name: Wanted(sha256)}
                self._orders = replace(self._orders, wanted=wanted)
            elif self._orders.wanted[name].sha256 != sha256:
                self._refuse(player, ModelMissing(f"{name} on {player.host} is not the file of the other workers"))
                return
        for name, reason in found.missing.items():
            parts = self._orders.wanted[name].parts if name in self._orders.wanted else ()
            missing = [part for part in parts if part.name not in player.sent]
            if not missing:
                hint = f"localsim models pull {name}, here or on the workers; a file that is here is sent to them"
                self._refuse(player, ModelMissing(f"{player.host}: {reason}", hint=hint))
                return
            self._send(player, missing[0])
            return
        player.call, player.then = player.actor.open.remote(self._orders), self._opened

    def _send(self, player: _Player, part: Part) -> None:
        """Send a file through Ray's object store, which carries it to each node once."""
        self._say(f"sending {part.name} ({part.bytes / 1e6:.0f} MB) to {player.host}")
        if part not in self._pieces:
            data = weights.pieces_of(self._paths[part])
            self._pieces[part] = [self._ray.put(np.frombuffer(piece, dtype=np.uint8)) for piece in data]
        player.sent.append(part.name)
        player.call, player.then = player.actor.receive.remote(part, *self._pieces[part]), self._received

    def _received(self, player: _Player, reason: str) -> None:
        if reason:
            self._refuse(player, ModelMissing(f"{player.host}: {reason}"))
            return
        player.call, player.then = player.actor.look.remote(self._orders), self._looked_for

    def _opened(self, player: _Player, opened: Opened | LocalsimError) -> None:
        if isinstance(opened, LocalsimError):
            self._refuse(player, opened)
            return
        player.ready, player.parallel = True, opened.parallel
        if not self.identities:
            self.identities, self.parallel = dict(opened.identities), opened.parallel
        self._say(f"{player.name} is ready: {_how(self._orders, player, opened)}")
        if self._ledger is not None and not self._stopping:
            self._begin(player)

    # ---- playing -----------------------------------------------------------------------------------------------

    def _begin(self, player: _Player) -> None:
        player.playing = True
        player.call, player.then = player.actor.play.remote(self._run_id), self._begun

    def _begun(self, player: _Player, _none: None) -> None:
        self._exchange(player, 0)

    def _heard(self, player: _Player, news: News) -> None:
        assert self._ledger is not None
        ended = self._ledger.hear(player.name, news.events)
        player.running = news.running
        if ended:
            self._deaths[player.place] = 0
        self._ledger.tell(sum(each.running for each in self._players.values()))
        if news.error:
            self._lose(player, news.error)
        elif news.over:
            player.playing = player.ready = False
        else:
            self._exchange(player, ended)

    def _exchange(self, player: _Player, ended: int) -> None:
        assert self._ledger is not None
        workers = sum(each.playing for each in self._players.values())
        tasks = [] if self._stopping else self._ledger.take(player.name, player.parallel, ended, workers)
        player.call, player.then = player.actor.exchange.remote(tasks, self._stopping), self._heard


def _how(orders: Orders, player: _Player, opened: Opened) -> str:
    """Say how many episodes a worker plays at a time, where its files are from, and whether it uses a GPU."""
    words = [f"{opened.parallel} at a time"]
    for name, identity in opened.identities.items():
        if identity.get("kind") == "llama":
            parts = orders.wanted[name].parts if name in orders.wanted else ()
            sent = any(part.name in player.sent for part in parts)
            layers = int(identity.get("gpu_layers", 0))
            device = "on its GPU" if layers else f"on {identity.get('threads')} cores"
            words.append(f"{Path(name).name} {'was sent there' if sent else 'was there'} and runs {device}")
    return ", ".join(words)
