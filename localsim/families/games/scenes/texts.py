"""What the scenes are about: problems of clients, secrets of relatives, motions of debates, places."""

from __future__ import annotations

CASES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "cannot sleep",
        (
            ("{name} lies awake until three in the morning", "awake"),
            ("{name} made two bad mistakes with invoices", "invoices"),
            ("{name} no longer answers calls from friends", "calls"),
            ("{name} drinks wine alone every evening", "wine"),
            ("{name} has borrowed money and told nobody", "borrowed"),
        ),
    ),
    (
        "quarrels at home",
        (
            ("{name} shouts at the children about homework", "homework"),
            ("{name} works until nine on most evenings", "nine"),
            ("{name} and the spouse eat in separate rooms", "rooms"),
            ("{name} has found a flat to move out", "flat"),
            ("{name} fears to become like a violent father", "father"),
        ),
    ),
    (
        "is tired of studying",
        (
            ("{name} skips the morning lectures", "lectures"),
            ("{name} failed the chemistry exam twice", "chemistry"),
            ("{name} tells the family that all marks are good", "marks"),
            ("{name} would rather become a carpenter", "carpenter"),
            ("{name} chose medicine because a sister died", "sister"),
        ),
    ),
    (
        "is afraid of meetings",
        (
            ("{name} leaves each meeting with a headache", "headache"),
            ("{name} has said nothing in meetings since May", "May"),
            ("{name} was laughed at during a presentation", "presentation"),
            ("{name} has hidden a stammer since school", "stammer"),
            ("{name} has turned down a promotion because of it", "promotion"),
        ),
    ),
    (
        "has lost interest in everything",
        (
            ("{name} has given up the choir", "choir"),
            ("{name} stays in bed on Sundays until the evening", "Sundays"),
            ("{name} retired in spring and misses the workshop", "workshop"),
            ("{name} has not opened the letters from the hospital", "letters"),
            ("{name} feels guilty about a brother's accident", "accident"),
        ),
    ),
)
"""A problem in a few words, and the things behind it from the surface to the core: (sentence, word that tells it)."""

SECRETS = (
    "a lost job",
    "a wedding in secret",
    "a house that was sold",
    "a prize in the lottery",
    "a broken heirloom",
    "a plan to emigrate",
    "a failed exam",
    "a debt at the bank",
)
"""What somebody can hide from the family."""

MOTIONS = (
    "schools should begin at ten in the morning",
    "the town centre should be closed to cars",
    "offices should work four days a week",
    "museums should be free for everybody",
    "every pupil should learn to cook at school",
    "libraries should be open on Sundays",
    "telephones should be banned from classrooms",
    "the park should have a fenced area for dogs",
)
TOPICS = ("cost", "health", "fairness", "freedom")
"""What an argument can be about."""

PLACES = ("kitchen", "garden", "attic", "cellar", "library", "hall")
