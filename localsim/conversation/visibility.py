"""The table of views. `observe` is the only function that decides what an agent or the writer of a script may know.

    what                      script, iterative (writer)   agents                          mindreaders
    setting, actions, turns   yes                          yes                             yes
    own profile, goal, ...    all agents'                  own                             own
    others' profile           full                         by relationship (PROFILE_SEEN)  full
    others' persona           yes                          no, unless profiles are granted yes
    own memories in mind      all agents'                  own                             own
    others' memories in mind  yes                          no                              yes
    others' goal              yes                          no, unless granted              yes
    others' secret, facts     yes                          no, unless granted              yes
    turns for some readers    yes                          readers                         yes
    turns of the same beat    earlier lines                no                              no
    turns after leaving       yes                          no                              no
    turns before `since`      yes                          no                              no
    answer key, info          no                           no                              no

In agents mode `grants` add items of others: goal, secret, facts, whole profile (with the relationships among the
others), and none of their turns. Levels follow Sotopia's table (get_bio; arXiv 2310.11667, appendix): a stranger sees
only the name in the list of participants. The answer key is not even an argument.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from localsim.conversation.episode import OMNISCIENT, SINGLE_AUTHOR, AgentView, Mode, Observation
from localsim.conversation.grants import EVERY, EVERYTHING, NOTHING, Grant, Grants, Sight, first_facts
from localsim.conversation.memories import Encode, Recall, recalled
from localsim.conversation.rules.deciding import every_way
from localsim.conversation.rules.lines import Way
from localsim.conversation.scenario import WRITER, Agent, RelationshipLevel, Scenario
from localsim.conversation.transcript import Transcript, Turn, fold_lines
from localsim.conversation.wording.decoys import decoy_of

_ACQUAINTED = ("age", "gender", "pronouns", "occupation", "public_info")
_MANY = 8
"""Of more agents with one relationship among all, prompts have one sentence instead of one for each pair."""
_CLOSE = (*_ACQUAINTED, "personality_and_values", "decision_making_style")

PROFILE_SEEN: dict[RelationshipLevel, tuple[str, ...]] = {
    "stranger": (),
    "know_by_name": (),
    "acquaintance": _ACQUAINTED,
    "friend": _CLOSE,
    "romantic": _CLOSE,
    "family": _CLOSE,
}
"""Profile fields that the other side sees at each relationship level."""


def observe(
    scenario: Scenario,
    mode: Mode,
    viewer: str,
    transcript: Transcript,
    grants: Grants = NOTHING,
    allowed: tuple[Way, ...] | None = None,
    since: int = 0,
    encode: Encode | None = None,
) -> Observation:
    """Return everything that `viewer` (an agent's name, or `writer` if one model writes all) may know now.

    `transcript` is the whole one; the observation holds its readable part. `allowed` are the ways in which the viewer
    can act now, by default all that it has at some time. `grants` count in agents mode only. An agent is shown no turn
    before `since`. `encode` compares meanings, if the scenario's `recall` does. Raises ValueError for a viewer that the
    mode does not have.
    """
    if (viewer == WRITER) != (mode in SINGLE_AUTHOR):
        raise ValueError(f"{viewer} has no view in {mode} mode")
    names = scenario.names
    omniscient = mode in OMNISCIENT or grants.open_to_all(names)
    granted = NOTHING if omniscient else grants
    grant = granted.of(viewer, names) if granted else Grant()
    views = tuple(
        _view(scenario, viewer, agent, EVERYTHING if omniscient or agent.name == viewer else grant)
        for agent in scenario.agents
    )
    heard = readable(transcript, viewer, everything=omniscient, goes_on=scenario.limits.leave == "goes_on")
    if since:
        heard = Transcript(tuple(turn for turn in heard.turns if turn.index >= since))
    if any(agent.memories for agent in scenario.agents):
        query = " ".join(turn.action.text for turn in _since_own(heard, viewer)) or scenario.setting
        views = tuple(
            replace(view, memories=_in_mind(agent, scenario.recall, query, encode))
            if omniscient or agent.name == viewer
            else view
            for view, agent in zip(views, scenario.agents, strict=True)
        )
    seen = Observation(
        viewer=viewer,
        setting=scenario.setting,
        relationships=_relationships(scenario, viewer, everybody=omniscient or grant.profile),
        agents=views,
        omniscient=omniscient,
        actions=scenario.actions,
        turn_limit=scenario.limits.turns,
        transcript=heard,
        family=scenario.family,
        moves=tuple(move for move in scenario.moves if viewer == WRITER or viewer in (move.by or (viewer,))),
        allowed=every_way(scenario, viewer) if allowed is None else allowed,
        phased=bool(scenario.phases or scenario.game),
        game=scenario.game.get("public", {}),
    )
    return _with_grants(seen, scenario, granted) if granted else seen


def _since_own(heard: Transcript, viewer: str) -> tuple[Turn, ...]:
    """Return what a viewer has heard since its own last turn; a writer, the last turn."""
    own = [place for place, turn in enumerate(heard.turns) if turn.speaker == viewer]
    return heard.turns[own[-1] + 1 :] if own else heard.turns[-1:] if viewer == WRITER else heard.turns


def _in_mind(agent: Agent, recall: Recall, query: str, encode: Encode | None) -> tuple[str, ...]:
    return tuple(fold_lines(memory.text) for memory in reversed(recalled(agent.memories, recall, query, encode)))


def impersonal(seen: Observation) -> Observation:
    """Return a view in which the viewer is told neither its profile nor its persona; alone, not even its goal."""
    alone = len(seen.agents) == 1
    me = seen.me()
    bare = replace(me, profile=(), persona=(), memories=(), goal=None if alone else me.goal)
    return replace(seen, agents=tuple(bare if view == me else view for view in seen.agents))


def _relationships(
    scenario: Scenario, viewer: str, *, everybody: bool
) -> tuple[tuple[str, str, RelationshipLevel], ...]:
    names = scenario.names
    if len(names) > _MANY and isinstance(scenario.relationship, str):
        return (("Everybody", "everybody else", scenario.relationship),)
    pairs = (pair for pair in combinations(names, 2) if everybody or viewer in pair)
    return tuple((one, other, scenario.level(one, other)) for one, other in pairs)


def readable(transcript: Transcript, viewer: str, *, everything: bool, goes_on: bool = False) -> Transcript:
    """Return the turns that a viewer can read, with the numbers that they have in the whole transcript.

    `everything` adds the turns for other readers, but no simultaneous ones: that nobody sees the others' acts of its
    beat is a rule, and no information. Of a beat that is over the viewer's own act comes first, as it was written
    first. `goes_on`: others go on when the viewer has left, who then reads nothing more.
    """
    turns = transcript.turns
    if viewer == WRITER or not turns:
        return transcript
    last = turns[-1].beat
    is_open = sum(turn.beat == last for turn in turns[-turns[-1].beat_size :]) < turns[-1].beat_size
    leaves = [turn.beat for turn in turns if turn.speaker == viewer and turn.action.type == "leave"] if goes_on else []
    left = leaves[0] if leaves else last

    def reads(turn: Turn) -> bool:
        if turn.speaker == viewer:
            return True
        if (is_open and turn.beat == last) or turn.beat > left:
            return False
        return everything or turn.readers is None or viewer in turn.readers

    kept = [turn for turn in turns if reads(turn)]
    return Transcript(tuple(sorted(kept, key=lambda turn: (turn.beat, turn.speaker != viewer, turn.index))))


def _view(scenario: Scenario, viewer: str, agent: Agent, grant: Grant) -> AgentView:
    """Return an agent as a viewer sees it with a grant."""
    fields = _CLOSE if grant.profile else PROFILE_SEEN[scenario.level(viewer, agent.name)]
    profile = tuple(
        (field.replace("_", " "), str(value))
        for field in fields
        if (value := getattr(agent.profile, field)) is not None
    )
    facts = agent.facts
    if grant.facts < EVERY:
        facts = first_facts(scenario.id, agent.name, facts, grant.facts) if grant.facts else ()
    goal, secret = agent.goal if grant.goal else None, agent.secret if grant.secret else None
    persona = persona_of(agent) if grant.profile else ()
    return AgentView(agent.name, profile, goal, secret, facts, persona)


def persona_of(agent: Agent) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what an agent would say and knows, as (field, texts) pairs of the fields that it has."""
    found = {
        "statements": agent.statements,
        "background": tuple(passage.text for passage in agent.background),
        "knows": agent.knows,
        "never_heard_of": agent.never_heard_of,
    }
    return tuple((field, texts) for field, texts in found.items() if texts)


def _with_grants(seen: Observation, scenario: Scenario, grants: Grants) -> Observation:
    """Return a view with everything that its viewer may know about the grants."""
    found = {name: _found(scenario, name, grants) for name in scenario.names}
    exposed = [(name, grant) for name, sight in found.items() for owner, grant in sight if owner == seen.viewer]
    decoys = [decoy_of(scenario, view) for view in seen.agents if view.name != seen.viewer] if grants.decoys else []
    return replace(
        seen,
        sees=found[seen.viewer],
        exposed=tuple(exposed),
        announced=tuple(found.items()) if grants.announced else (),
        decoys=tuple(decoy for decoy in decoys if decoy is not None),
    )


def _found(scenario: Scenario, viewer: str, grants: Grants) -> Sight:
    grant = grants.of(viewer, scenario.names)
    owners = [agent for agent in scenario.agents if agent.name != viewer]
    return tuple((owner.name, own) for owner in owners if (own := _existing(grant, owner)))


def _existing(grant: Grant, owner: Agent) -> Grant:
    """Return a grant without items that an owner lacks; all of its facts count as EVERY."""
    facts = EVERY if grant.facts >= len(owner.facts) else grant.facts
    return replace(grant, secret=grant.secret and bool(owner.secret), facts=facts if owner.facts else 0)


def transparency(scenario: Scenario, mode: Mode, viewer: str, grants: Grants = NOTHING) -> tuple[int, int]:
    """Return how many of the others' private items (goals, secrets, facts) a viewer sees, and how many there are.

    The first divided by the second is the index of transparency: 0 in agents mode, 1 in the omniscient modes, and
    between them what is granted. Profiles are not counted, because relationships show them in every mode.
    """
    views = observe(scenario, mode, viewer, Transcript(), grants).agents
    pairs = [(agent, view) for agent, view in zip(scenario.agents, views, strict=True) if agent.name != viewer]
    shown = sum(bool(view.goal) + bool(view.secret) + len(view.facts) for _, view in pairs)
    return shown, sum(1 + bool(agent.secret) + len(agent.facts) for agent, _ in pairs)
