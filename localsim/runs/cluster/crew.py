"""The crew: one worker on each node of a Ray cluster, or one for each GPU of a node.

Each worker has at most one call under way, and `turn` waits for the first answers. So no thread is needed, a slow
worker holds up no other one, and a worker that joins late or is lost is an event like any other. `playing` and
`judging` say what ready workers do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from localsim.backends import called, person
from localsim.backends.open import is_file, is_scripted
from localsim.errors import BackendUnavailable, InvalidInput, LocalsimError, ModelMissing
from localsim.models.checksums import blocks_of
from localsim.runs.cluster import weights
from localsim.runs.cluster.connect import connected
from localsim.runs.cluster.messages import Found, Opened, Orders, Part, Wanted
from localsim.runs.cluster.worker import Worker
from localsim.runs.versions import versions

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
class Member:
    """A worker of a crew, from its start on."""

    name: str
    place: tuple[str, int]
    """Id of the node, and number of the worker on it."""
    host: str
    actor: Any
    call: Any
    """The call under way."""
    then: Callable[[Member, Any], None]
    """The handler of its answer."""
    parallel: int = 0
    ready: bool = False
    sent: set[Part] = field(default_factory=set)
    """Files that the driver has sent."""


@contextmanager
def gathered(address: str, orders: Orders, say: Notify, known: Mapping[str, str] | None = None) -> Iterator[Crew]:
    """Give a crew as soon as one worker is ready; the others join later.

    `orders` are without files and versions, which are those of this machine. `known` are the checksums that models must
    have (of a run that is resumed). Raises InvalidInput, ModelMissing or BackendUnavailable.
    """
    _refuse_unsharable(orders.models)
    wanted, places = weights.wanted_here(orders.models)
    for name, sha256 in (known or {}).items():
        if wanted.get(name, Wanted("")).sha256 != sha256:
            wanted[name] = Wanted(sha256)
    here = {name: number for name, number in versions().items() if name in SAME}
    with connected(address) as ray:
        say(f"gathering workers from the cluster ({address})")
        crew = Crew(ray, replace(orders, wanted=wanted, versions=here), places, say)
        try:
            crew.gather()
            yield crew
        except ConnectionError as error:
            raise BackendUnavailable(
                f"the connection to the cluster was lost: {error}",
                hint="localsim resume or score continues, with --cluster or without",
            ) from error
        finally:
            crew.dismiss()


def _refuse_unsharable(models: Sequence[str]) -> None:
    for name in models:
        if name.startswith(called.PREFIX):
            raise InvalidInput(f"{name} is a function of this process alone", hint="leave out cluster")
        if name == person.NAME:
            raise InvalidInput("a role is played by a person, and a cluster cannot ask one", hint="leave out --cluster")
        if is_scripted(name) and "@" in name:
            raise InvalidInput(
                f"{name}: the replies of a file are used in order, which several workers cannot do together",
                hint="leave out --cluster",
            )


class Staff(Protocol):
    """Who gives ready workers something to do."""

    def ready(self, member: Member) -> None:
        """Give a worker that has opened its models something to do (`Crew.call`)."""

    def lost(self, member: Member) -> int:
        """Take back what a lost worker had; return the number of its pieces of work."""


class Crew:
    """The workers of one command. `places` are the paths of the files that the driver can send, by model name."""

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
        self.members: dict[str, Member] = {}
        self._deaths: dict[tuple[str, int], int] = {}
        self._refused: dict[tuple[str, int], LocalsimError] = {}
        self._pieces: dict[Part, list[Any]] = {}
        self._started = 0
        self._looked = 0.0
        self._alone = time.monotonic()
        """The time since which no worker has been ready."""
        self._patient = True
        self._work: Staff | None = None
        self.identities: dict[str, Mapping[str, Any]] = {}
        """The identity of each model on the first worker."""
        self.parallel = 1
        """Episodes at a time on the first worker."""

    # ---- what a command calls --------------------------------------------------------------------------------------

    def gather(self) -> None:
        """Start workers and wait until one is ready. Raises the error of the first one if none can be used."""
        while not self.ready():
            self.turn()

    def begin(self, work: Staff) -> None:
        """Let all ready workers do this work from now on, and later ones when they are ready."""
        self._work = work
        for member in self.ready():
            work.ready(member)

    def call(self, member: Member, call: Any, then: Callable[[Member, Any], None]) -> None:
        """Let `then` handle the answer to a call of the member's actor."""
        member.call, member.then = call, then

    def ready(self) -> list[Member]:
        """Return the workers that have opened their models."""
        return [member for member in self.members.values() if member.ready]

    def dismiss(self) -> None:
        """End all workers."""
        for member in self.members.values():
            with suppress(Exception):  # the cluster may be gone
                self._ray.kill(member.actor)
        self.members.clear()

    # ---- workers come and go -----------------------------------------------------------------------------------

    def turn(self) -> None:
        """Look at the nodes from time to time, and handle the answers that have arrived."""
        now = time.monotonic()
        if now >= self._looked + LOOK_S:
            self._looked = now
            self._start_workers()
        self._check_hope(now)
        calls = {member.call: member for member in self.members.values() if member.call is not None}
        if not calls:
            time.sleep(0.1)
            return
        ready, rest = self._ray.wait(list(calls), num_returns=1, timeout=0.25)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for call in ready:
            member = calls[call]
            try:
                answer = self._ray.get(call)
            except self._ray.exceptions.RayError as error:
                self._handle(member, error)
                continue
            member.call = None
            member.then(member, answer)

    def _start_workers(self) -> None:
        taken = {member.place for member in self.members.values()}
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
        self.members[name] = Member(name, place, host, actor, actor.hello.remote(), self._greeted)

    def _handle(self, member: Member, error: Exception) -> None:
        """Handle an error of Ray: a worker without localsim is no use, any other one is lost."""
        if "No module named 'localsim" in str(error):
            reason = f"localsim is not installed on {member.host}, or another version of it"
            hint = "install the same version of localsim, with its extra ray, on every machine of the cluster"
            self._refuse(member, BackendUnavailable(reason, hint=hint))
        else:
            self.lose(member, str(error).strip().splitlines()[0].rstrip(".:"))

    def advance(self, place: tuple[str, int]) -> None:
        """Note that a worker at a place has finished something."""
        self._deaths[place] = 0

    def lose(self, member: Member, reason: str) -> None:
        """Take the work of a lost worker back; a new worker starts at its place, unless several were lost there."""
        del self.members[member.name]
        self._ray.kill(member.actor)
        back = self._work.lost(member) if self._work is not None else 0
        retried = f"; what it had ({back}) goes to other workers" if back else ""
        self._say(f"{member.name} was lost ({reason}){retried}")
        self._deaths[member.place] = self._deaths.get(member.place, 0) + 1
        if self._deaths[member.place] >= MOST_DEATHS:
            error = BackendUnavailable(f"{MOST_DEATHS} workers in a row were lost on {member.host}: {reason}")
            self._refused[member.place] = error
        self._looked = 0.0

    def _refuse(self, member: Member, error: LocalsimError) -> None:
        """Do without a place where no worker can play this run."""
        del self.members[member.name]
        self._ray.kill(member.actor)
        self._refused[member.place] = error
        self._say(f"{member.name} is not used: {error}")

    def _check_hope(self, now: float) -> None:
        """Raise an error if no worker can be expected any more; say so if it takes long until one is ready."""
        if self.ready():
            self._alone, self._patient = now, True
            return
        if self._refused and not self.members and self._work is None:
            raise next(iter(self._refused.values()))
        waited = now - self._alone
        if waited >= WAITING_S and self._patient:
            self._patient = False
            asked = (
                f"{len(self.members)} workers start, or wait for free processors"
                if self.members
                else "it has no free node"
            )
            self._say(f"waiting for the cluster: {asked} (`ray status` shows what is in use)")
        if waited >= GONE_S and not self.members:
            raise BackendUnavailable(
                "the cluster has no node left for a worker; nothing that was finished is lost",
                hint="`ray status` shows its nodes; localsim resume or score continues, with --cluster or without",
            )

    # ---- the way of one worker ---------------------------------------------------------------------------------

    def _greeted(self, member: Member, here: Mapping[str, str]) -> None:
        member.host = here["host"]
        for part, number in self._orders.versions.items():
            if here.get(part) != number:
                error = BackendUnavailable(
                    f"{member.host} has {part} {here.get(part)}, this machine {number}",
                    hint="install the same version of localsim on every machine of the cluster",
                )
                self._refuse(member, error)
                return
        member.call, member.then = member.actor.look.remote(self._orders), self._looked_for

    def _looked_for(self, member: Member, found: Found) -> None:
        """Send the files that a worker lacks, then let it open its models."""
        for name, sha256 in found.sha256.items():
            if name not in self._orders.wanted:  # this machine has no such file, so the first worker decides
                wanted = {**self._orders.wanted, name: Wanted(sha256)}
                self._orders = replace(self._orders, wanted=wanted)
            elif self._orders.wanted[name].sha256 != sha256:
                self._refuse(member, ModelMissing(f"{name} on {member.host} is not the file of the other workers"))
                return
        for name, reason in found.missing.items():
            parts = self._orders.wanted[name].parts if name in self._orders.wanted else ()
            missing = [part for part in parts if part not in member.sent]
            if not missing:
                hint = f"localsim models pull {name}, here or on the workers; a file that is here is sent to them"
                self._refuse(member, ModelMissing(f"{member.host}: {reason}", hint=hint))
                return
            self._send(member, missing[0])
            return
        member.call, member.then = member.actor.open.remote(self._orders), self._opened

    def _send(self, member: Member, part: Part) -> None:
        """Send a file through Ray's object store, which carries it to each node once."""
        self._say(f"sending {part.name} ({part.bytes / 1e6:.0f} MB) to {member.host}")
        if part not in self._pieces:
            data = blocks_of(self._paths[part], weights.PIECE)
            self._pieces[part] = [self._ray.put(np.frombuffer(piece, dtype=np.uint8)) for piece in data]
        member.sent.add(part)
        member.call, member.then = member.actor.receive.remote(part, *self._pieces[part]), self._received

    def _received(self, member: Member, reason: str) -> None:
        if reason:
            self._refuse(member, ModelMissing(f"{member.host}: {reason}"))
            return
        member.call, member.then = member.actor.look.remote(self._orders), self._looked_for

    def _opened(self, member: Member, opened: Opened | LocalsimError) -> None:
        if isinstance(opened, LocalsimError):
            self._refuse(member, opened)
            return
        member.ready, member.parallel = True, opened.parallel
        if all(each.ready for each in self.members.values() if each.sent):
            self._pieces.clear()  # the object store needs the room
        if not self.identities:
            self.identities, self.parallel = dict(opened.identities), opened.parallel
        self._say(f"{member.name} is ready: {_how(self._orders, member, opened)}")
        if self._work is not None:
            self._work.ready(member)


def _how(orders: Orders, member: Member, opened: Opened) -> str:
    """Say how many episodes a worker plays at a time, where its files are from, and whether it uses a GPU."""
    words = [f"{opened.parallel} at a time"]
    for name, identity in opened.identities.items():
        if identity.get("kind") == "llama":
            parts = orders.wanted[name].parts if name in orders.wanted else ()
            sent = any(part in member.sent for part in parts)
            layers = int(identity.get("gpu_layers", 0))
            device = "on its GPU" if layers else f"with {identity.get('threads')} threads"
            words.append(f"{Path(name).name} {'was sent there' if sent else 'was there'} and runs {device}")
    return ", ".join(words)
