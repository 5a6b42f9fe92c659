"""Made-up first names, so that a model learns to look names up instead of knowing them."""

from __future__ import annotations

import random

from localsim.families.vocabulary import FIRST_NAMES

_STARTS = "b br c ch cl d dr f fl g gl gr h j k kl l m n p pr r s sh sk sl st t th tr v w y z".split()
_VOWELS = "a e i o u ai ea ee ia io oa".split()
_MIDDLES = "b d f g k l ll m mm n nn nd r rr rl s ss t th v z".split()
_ENDS = "a ah an ar as e el en er ey i ia ias ie ik in io is o ol on or os ra us y yn".split()
_KNOWN = {name.casefold() for name in FIRST_NAMES}
REAL = (
    "Aaron Abigail Alan Alice Amanda Amber Andrea Angela Anita Archie Arjun Arthur Ashley Barbara Ben Beth Blake "
    "Brenda Brian Bridget Callum Carl Carla Carol Charlie Chloe Claire Colin Connor Craig Daisy Dana Daniel Dean "
    "Debbie Derek Diana Donna Doris Dylan Eddie Edgar Eileen Elena Ellen Emma Eric Erin Ethan Eva Faith Farah Frank "
    "Gabriel Gail Gary Gerald Gina Glen Gloria Gordon Graham Hannah Harold Harvey Hassan Hazel Helen Henry Holly "
    "Howard Irene Isabel Jack Jamal Jane Jason Jenny Jerome Jessica Jill Joel Joyce Juan Karen Keith Kelly Kevin "
    "Kim Kyle Laura Lauren Lewis Liam Linda Logan Lorna Louise Luke Lydia Mabel Maria Marion Martin Maureen Megan "
    "Mia Miguel Mohan Molly Monica Nancy Neil Nicole Nigel Norma Oliver Pam Patrick Paul Paula Peggy Peter Phoebe "
    "Rachel Ralph Raymond Rebecca Rhys Robin Rosa Ross Ruby Russell Ruth Sally Samuel Sandra Sean Shane Sharon "
    "Sheila Simon Stella Steven Susan Tara Teresa Thomas Tina Toby Tracy Trevor Vera Victor Violet Walter Wayne "
    "Wendy Zoltan"
).split()


def names(rng: random.Random, count: int) -> list[str]:
    """Draw `count` distinct names, mostly made up, that no scenario of `localsim scenarios generate` uses."""
    found: dict[str, None] = {}
    while len(found) < count:
        name = rng.choice(REAL) if rng.random() < 0.3 else made_up(rng)
        if name.casefold() not in _KNOWN:
            found[name] = None
    return list(found)


def made_up(rng: random.Random) -> str:
    """Make up a pronounceable name of two or three syllables."""
    middle = "".join(rng.choice(_MIDDLES) + rng.choice(_VOWELS[:5]) for _ in range(rng.random() < 0.35))
    name = rng.choice(_STARTS) + rng.choice(_VOWELS) + middle + rng.choice(_MIDDLES) + rng.choice(_ENDS)
    return name.capitalize()
