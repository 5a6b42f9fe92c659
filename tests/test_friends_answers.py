"""Answers about a person in searches: which words affirm, deny, take back or pick, read with what they answer."""

from __future__ import annotations

import pytest

from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families.mutual_friends.answers import says_yes
from localsim.families.mutual_friends.lists import Lists
from localsim.families.mutual_friends.names import agreed, claims, friends_outcome
from localsim.families.mutual_friends.scoring import scores
from localsim.scenarios.find import shipped
from tests.conftest import generated


@pytest.mark.parametrize(
    "words",
    [
        "Wait, no, I was wrong: I do not know {}.",
        "Sorry, I made a mistake, {} is not my friend.",
        "Sorry, no, I do not know {} after all.",
    ],
)
def test_an_affirmation_can_be_taken_back(words: str) -> None:
    scenario = generated("mutual_friends", 5).scenario
    names = Lists.read(scenario).names
    one, other = names
    name = names[one][0]
    texts = (f"Do you know {name}?", f"Yes, I know {name}!", "Great!", words.format(name))
    turns = [Turn(number, (one, other)[number % 2], Action("speak", text)) for number, text in enumerate(texts)]
    assert name in agreed(turns[:3], names) and name not in agreed(turns, names)


AFFIRMED = [
    ("Jacob likes surfing. Is that someone you know?", "Yes, I know him."),
    ("Do you know Jacob? I can't think of anyone else.", "Yes, I know him well!"),
    ("Jacob works at BP. Is that one of your friends?", "Yes!"),
    ("Is it Jacob? My friend works at BP.", "Yes, that's the one."),
    ("Next name, Jacob. Is that someone you know?", "Yes, I do."),
    ("Do you know Jacob?", "Yes, we share a single friend, and it's Jacob."),
    ("Do you know Jacob?", "Yes, I know Jacob. We share no one else."),
    ("Do you know Jacob?", "Yes! Jacob surfs better than anybody else I know."),
    ("Do you know Jacob?", "Yes, I know nobody better than Jacob!"),
    ("Do you know Jacob?", "Yes, I know Jacob. I've never been introduced to his wife."),
    ("Do you know Jacob?", "Yes! But I cannot help you with the rest."),
    ("I know Jacob. Do you?", "You know Jacob too? So do I!"),
    ("Do you know Jacob?", "Jacob it is, yes. Isn't that lovely?"),
    ("Do you know Jacob?", "You've got it, Jacob is the one."),
    ("Do you know Jacob?", "Yes indeed, Jacob is someone I know."),
    ("Do you know Jacob?", "Hmm, let me think. Yes! We met at the pool."),
    ("Do you know Jacob?", "Maybe... tall, with a beard? Yes, we play chess."),
    ("Do you know Jacob?", "That sounds familiar. We went to school together, I believe."),
    ("Do you know Jacob?", "Sorry, I was distracted. Yes, sure."),
    ("Do you know Jacob?", "No! You're kidding! He's my best friend!"),
    ("Do you know Jacob?", "I don't believe it! He's my neighbour!"),
    ("Do you know Jacob?", "Yes! Not sure how you know him, though."),
    ("Do you know Jacob?", "He's my roommate! I didn't know you knew him."),
    ("Do you know Jacob?", "Yes, I know him! You might see him later."),
    ("Do you know Jacob? A friend at church introduced us.", "Yes, we play chess together."),
    ("Jacob? Someone told me you two are close.", "Yes, very close!"),
    ("Is it Jacob? I asked because one of my friends mentioned you.", "Yes! We met at uni."),
    ("I know Jacob, tall guy, works in a bank. Anyone you know?", "Yes, he's my brother's boss."),
    ("Jacob. Somebody who can fix anything.", "Yes, he fixed my car."),
    ("Do you know Jacob?", "Jacob from BP? We have lunch every day."),
    ("Do you know Jacob?", "Know him? I married his sister!"),
    ("Do you know Jacob?", "As a matter of fact, I do."),
    ("Do you know Jacob?", "Who doesn't know Jacob!"),
    ("Do you know Jacob?", "He's like a brother to me."),
    ("Does the name Jacob ring a bell?", "It certainly does."),
    ("I'm friends with Jacob.", "So am I!"),
    ("Is it Jacob?", "You've guessed it."),
    ("Jacob, the one at BP?", "The one and only!"),
    ("Is Jacob a friend of yours?", "Since childhood."),
    ("Do you know Jacob and Carol?", "The first one's mine as well."),
    ("Jacob or Carol?", "Just Jacob."),
    ("Carol and Jacob, do you know them?", "Both of them, yes!"),
]
NOT_AFFIRMED = [
    ("My friend Jacob likes surfing.", "So do I!"),
    ("I work with Jacob and I love hiking.", "So do I! Hiking is great."),
    ("My friend Jacob surfs a lot.", "Surfing is the one thing I like."),
    ("Do you know Jacob?", "No, I don't know Jacob. I don't think we have a friend in common."),
    ("Do you know Jacob?", "No, I don't know Jacob. So much for that, we haven't a friend in common."),
    ("Do you know Jacob?", "No, I don't know Jacob. My list is finished, and I found no one."),
    ("Do you know Jacob?", "No, I don't know Jacob. My friends are all used up, no luck."),
    ("Do you know Jacob?", "No, I don't know Jacob. Fine, I admit it, we share no friends."),
    ("Do you know Jacob?", "No, I don't know Jacob. I think we can stop, there's nobody we share."),
    ("Do you know Jacob?", "No, I don't know Jacob. It's a big world, we know different people."),
    ("Do you know Jacob?", "No, I don't know Jacob. Right, I'm off. Cheerio!"),
    ("Do you know Jacob?", "No, I don't know Jacob. My bus is coming, so goodbye!"),
    ("Do you know Jacob?", "I'm afraid not. Yes, it's a pity."),
    ("Do you know Jacob?", "I know of him, but we've never met."),
    ("Do you know Jacob?", "I know the name, but not the person."),
    ("Do you know Jacob?", "Jacob sounds like a great guy! Unfortunately we've never met."),
    ("Do you know Jacob?", "I'd love to meet Jacob!"),
    ("Do you know Jacob?", "My sister knows him, I don't."),
    ("Do you know Jacob?", "My memory for names is awful."),
    ("Do you know Jacob?", "I know a bald man with a beard, but his name is Rob."),
    ("Do you know Jacob?", "I know someone who surfs. Is that him?"),
    ("My friend Jacob likes surfing.", "That sounds fun! My friend works at BP."),
    ("My friend Jacob works at BP.", "My brother works at BP too!"),
    ("My friend Jacob works at BP.", "I'm jealous of him, I hate my job."),
    ("Do you know Jacob and Carol?", "The second one's mine as well."),
    ("Do you know Jacob and Carol?", "The first one no, the second one no."),
]
AFFIRMED += [
    # As one types to a partner.
    *(
        ("is jacob on ur list", words.strip())
        for words in """
        jup | jup!! | ye | yea | yeah he's mine | yh | yup | ye he is | he's on mine too | hes on my list | same here
        mine too | me too | i got him too | ofc, me 2 | ofc | ah ye hes mine too | ye lol | he is haha | got him 2
        hes mine | yeah thats my guy | ive got him on mine | i kno him 2 | ye ur right hes mine | mine aswell
        im friends w him | ye i dont know how u know him tho | same hes on mine | ye! who else do u have
        lol same | hes mine 2 | Ye! | Hes mine too. | yesss | yeahhh | yeee | yuup | 4 sure | aah ye | me2 | ik him
        its him | hes on here | i see him | mine also
        """.replace("\n", " | ").split(" | ")
        if words.strip()
    ),
]
NOT_AFFIRMED += [
    *(
        ("do you know jacob", words.strip())
        for words in """
        who is that?? | ye? who is he | ye i wish | no hes not mine | me neither | same hobby but another name | ofc not
        nah | ye but i dont know him | ye who is that | whos that | ye but hes not on my list | ye but hes not mine
        jacob? me neither | i dont | i wish lol | definitely not | hes not on my list | im not sure | ive never met him
        idk him | wait who | same job | u tell me
        yeah no | ye nah | hes not on here | i dont see him | cant find him
        """.replace("\n", " | ").split(" | ")
        if words.strip()
    ),
]


@pytest.mark.parametrize(
    ("asked", "answered", "affirmed"),
    [*((*pair, True) for pair in AFFIRMED), *((*pair, False) for pair in NOT_AFFIRMED)],
)
def test_an_answer_is_read_with_what_it_answers(asked: str, answered: str, affirmed: bool) -> None:
    turns = [Turn(0, "Ann", Action("speak", asked)), Turn(1, "Bo", Action("speak", answered))]
    assert ("Jacob" in agreed(turns, {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]})) is affirmed


def test_an_answer_about_somebody_described_is_none_about_the_person_before() -> None:
    said = ["Do you know Carol?", "No. Do you know anyone who likes surfing?", "Yes, I know someone like that!"]
    turns = [Turn(index, ("Ann", "Bo")[index % 2], Action("speak", text)) for index, text in enumerate(said)]
    assert agreed(turns, {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}) == {}


@pytest.mark.parametrize("answer", ["You're right.", "Exactly.", "Right!"])
def test_an_agreeing_word_after_a_denial_is_no_yes(answer: str) -> None:
    said = ["Do you know Jacob?", "No.", "Then I guess we share nobody.", answer]
    turns = [Turn(index, ("Ann", "Bo")[index % 2], Action("speak", text)) for index, text in enumerate(said)]
    assert agreed(turns, {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}) == {}


def test_a_friend_thought_known_is_taken_back_after_a_description() -> None:
    said = [
        "Do you know Jacob?",
        "Yes, I know him!",
        "With the beard?",
        "Oh, no, mine has no beard, I don't know yours.",
    ]
    turns = [Turn(index, ("Ann", "Bo")[index % 2], Action("speak", text)) for index, text in enumerate(said)]
    friends = {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}
    assert "Jacob" in agreed(turns[:2], friends) and "Jacob" not in agreed(turns, friends)


ASKED = "Do you know Jacob?"
CONFIRMING = [
    # "He" begins a sentence about what the person does, and takes nothing back.
    (ASKED, "Yes! He isn't in the office today."),
    (ASKED, "Sure! He doesn't have a car."),
    (ASKED, "Yes! He has no time for me lately."),
    (ASKED, "Yeah he's my flatmate. He's not my favourite, though."),
    (ASKED, "Of course! He's not in town now, though."),
    (ASKED, "Who doesn't know him?"),
    (ASKED, "Who doesn't!"),
    (ASKED, "I haven't seen Jacob in ages!"),
    (ASKED, "Not for years now, but yes, we are friends."),
    (ASKED, "Yes! Anybody else? No."),
    (ASKED, "Jacob? We grew up on one farm."),
    (ASKED, "For many years now."),
    (ASKED, "I can't believe you know Jacob!"),
    (ASKED, "No way, my Jacob!"),
    (ASKED, "Jacob? We go hiking on Sundays."),
    (ASKED, "Couldn't live without him."),
    (ASKED, "You're right, I do."),
    (ASKED, "That's the one I know from work."),
]
DENYING = [
    # A denial with "in years" is no aside.
    (ASKED, "I have never met a Jacob in years."),
    (ASKED, "I haven't met a Jacob in ages."),
    (ASKED, "I have not heard of a Jacob in years."),
    (ASKED, "I don't know why you ask me, I've never met Jacob!"),
    # A bare no takes back a firm yes.
    (ASKED, "Right, but no."),
    (ASKED, "Sure, I'd like to help, but no."),
    (ASKED, "Sure. No, sorry."),
    (ASKED, "Yes. I mean, no."),
    (ASKED, "Yes! Wait, no."),
    (ASKED, "You're right to ask, but no."),
    (ASKED, "It does. No."),
    ("Do you know Jacob? He works at BP. Does the name ring a bell?", "It does. No."),
]
NOT_CONFIRMING = [
    # Negated and distant verbs do not sound close.
    (ASKED, "I haven't seen him before."),
    (ASKED, "I haven't seen Jacob before!"),
    (ASKED, "I couldn't place him."),
    (ASKED, "I barely know him."),
    (ASKED, "I hardly know him."),
    (ASKED, "I've read about him."),
    (ASKED, "I have seen him on TV."),
    (ASKED, "I haven't a clue who he is."),
    (ASKED, "I wasn't introduced to him."),
    (ASKED, "My list doesn't include Jacob."),
    (ASKED, "Jacob is missing from my list."),
    (ASKED, "My brother knows Jacob."),
    (ASKED, "My mother met Jacob."),
    (ASKED, "My colleague mentioned Jacob."),
    (ASKED, "I saw him in the paper."),
    (ASKED, "I can't place Jacob."),
    (ASKED, "Jacob isn't ringing any bells!"),
    # "We" is the two who talk unless they share a life.
    (ASKED, "Jacob? We are getting nowhere."),
    (ASKED, "Jacob sounds nice. We are running out of time."),
    (ASKED, "Jacob, no luck. We keep trying."),
    # A question with "who" that is not about knowing.
    ("Do you know Jacob? He loves surfing.", "Who doesn't love surfing?"),
    ("Do you know Jacob? He loves surfing.", "Who doesn't!"),
    (ASKED, "Who isn't busy these days?"),
    ("My friend Jacob loves chess.", "Who doesn't love chess!"),
    # Words that begin as a yes does.
    (ASKED, "Since you ask, I went to school elsewhere."),
    (ASKED, "For years I have been alone."),
    (ASKED, "The same name as my dog!"),
    (ASKED, "Same name as my dog!"),
    (ASKED, "I'd do without him."),
    (ASKED, "Guilty of not knowing him."),
]
HOLDERS = {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}


def two_turns(asked: str, answered: str) -> list[Turn]:
    """A question by Ann and an answer by Bo."""
    return [Turn(0, "Ann", Action("speak", asked)), Turn(1, "Bo", Action("speak", answered))]


@pytest.mark.parametrize(
    ("asked", "answered", "confirmed"),
    [
        *((*pair, True) for pair in CONFIRMING),
        *((*pair, False) for pair in (*DENYING, *NOT_CONFIRMING)),
    ],
)
def test_a_friend_is_confirmed_by_words_of_a_friend_alone(asked: str, answered: str, confirmed: bool) -> None:
    assert friends_outcome(two_turns(asked, answered), HOLDERS).confirmed is confirmed


@pytest.mark.parametrize(("asked", "answered"), DENYING)
def test_a_denial_counts_as_a_no(asked: str, answered: str) -> None:
    assert (1, "Jacob", False) in claims(two_turns(asked, answered), HOLDERS)


@pytest.mark.parametrize(
    ("words", "yes"),
    [
        ("You are right that I have none.", False),
        ("That's the person I'd like to meet.", False),
        ("You are right.", True),
        ("That's the person I know.", True),
    ],
)
def test_a_yes_is_told_from_words_that_begin_as_one(words: str, yes: bool) -> None:
    assert says_yes(words) is yes


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("The last two, yes.", {"Jacob", "Carol"}),
        ("The first two", {"Mia", "Jacob"}),
        ("The last one.", {"Carol"}),
        ("The second one.", {"Jacob"}),
    ],
)
def test_an_answer_picks_as_many_as_it_says(answer: str, names: set[str]) -> None:
    friends = {"Ann": ["Mia", "Jacob", "Carol"], "Bo": ["Mia", "Jacob", "Carol"]}
    assert set(agreed(two_turns("Do you know Mia, Jacob or Carol?", answer), friends)) == names


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("do you know anton / who is that?? / beekeeping, tidal power. look on ur list / ah ye hes mine too", True),
        ("do you know anton / whos that / he likes beekeeping and works at tidal power / oh ye mine too", True),
        ("do you know anton / who / my friend works at tidal power / ye", True),
        ("do you know anton / who is he? / someone who likes beekeeping / same here", True),
        ("do u know anton / ye? who is he / a beekeeper / ofc, me 2", True),
        ("is anton on ur list / jup", True),
        ("do you know anton / who is that?? / beekeeping, tidal power / no hes not mine", False),
        ("do you know anton / who is that?? / beekeeping, tidal power / ye i wish", False),
        ("do you know anton / who is that?? / idk, hes not on my list / me neither", False),
        ("do you know anton / who is that?? / beekeeper. r u tired? / ye", False),
        ("do you know anton / whos he / nvm, do you know someone who likes surfing? / ye", False),
        ("do you know anton / whos he / my brother. do u know anyone who likes surfing / ye", False),
        ("do you know anton / nah / do you know anyone who likes beekeeping? / ye", False),
    ],
)
def test_an_answer_after_a_question_back_is_about_the_friend_before(lines: str, found: bool) -> None:
    loaded = shipped()["mutual_friends_02"]
    said = [Turn(at, ("Quentin", "Marit")[at % 2], Action("speak", text)) for at, text in enumerate(lines.split(" / "))]
    scored = {each.name: each for each in scores(Transcript(tuple(said)), loaded.scenario, loaded.answer)}
    assert scored["success"].reason == f"they agree on {'Anton' if found else 'nobody'}"


DESCRIBED = "I have a friend who likes beekeeping and works at Tidal Power. You too?"
OTHER = "I have a friend who likes calligraphy and works at Tidal Power. You too?"
IDENTIFIED = [
    f"{DESCRIBED} / Yes, that is Anton! / Great, bye!",
    f"{DESCRIBED} / That must be Anton! / Great, bye!",
    f"{DESCRIBED} / Anton! / Wow. Bye!",
    f"{DESCRIBED} / Yes, Anton. / Wow. Bye!",
    f"{DESCRIBED} / That's my friend Anton. / Goodbye!",
    f"{DESCRIBED} / Yes, his name is Anton. / Goodbye!",
    f"{DESCRIBED} / Then we both know Anton. / Bye!",
    f"{DESCRIBED} / Hm, let me see. / So? / Yes! Anton it is. / Super!",
    "i know a beekeeper at tidal / yes thats anton / cool bye",
    "One of mine likes beekeeping. He works at Tidal Power. / Oh, it's Anton. / Nice, bye!",
    "Do you know someone who likes beekeeping and works at Tidal Power? / Yes, I know Anton! / Great!",
    "Do you know a beekeeper? / Yes, one, at Tidal Power. / Then it must be Anton! / Great, bye!",
    "Do you know a beekeeper? / Yes! Where does yours work? / At Tidal Power. / Then it's Anton! / Bye!",
    # A denied mistake about another friend does not count.
    f"{OTHER} / Yes, that is Anton! / No. {DESCRIBED} / Then that is Anton! / Bye!",
]
NOT_IDENTIFIED = [
    f"{DESCRIBED} / Is it Anton? / Great, bye!",
    f"{DESCRIBED} / Maybe it's Anton. / Great, bye!",
    f"{DESCRIBED} / It is not Anton. / Great, bye!",
    f"{DESCRIBED} / No, I only know Anton. / Great, bye!",
    f"{DESCRIBED} / Yes! / Great, bye!",
    f"{DESCRIBED} / Yes, Anton or Ulrich! / Great, bye!",
    f"{DESCRIBED} / My friend Anton likes surfing. / Great, bye!",
    f"{DESCRIBED} / Yes, that is Eleni! / Great, bye!",
    # Taken back.
    f"{DESCRIBED} / Yes, that is Anton! / No, it is not.",
    f"{DESCRIBED} / Yes, that is Anton! / Anton? I don't know Anton.",
    f"{DESCRIBED} / Yes, that is Anton! Wait, no, I don't know him. / Great, bye!",
    f"{DESCRIBED} / Yes, that is Anton! / Great! / Sorry, I mixed him up, I don't know Anton.",
    # Not described in full, not true, or not of a friend in common.
    "I have a friend who likes beekeeping. You too? / Yes, that is Anton! / Great, bye!",
    "I have a friend at Tidal Power. You too? / Yes, that is Anton! / Great, bye!",
    "I have a friend who likes beekeeping and works at Nordic Steel. / Yes, that is Anton! / Great, bye!",
    "I have a friend who likes beekeeping and works at Cobalt Games. / Yes, that is Ismail! / Great, bye!",
    "Somebody likes beekeeping and works at Redwood Motors. / Yes, that is Anton! / Great, bye!",
    "None of my friends likes beekeeping and works at Tidal Power. / Anton! / Great, bye!",
    f"{DESCRIBED} It is Anton. / Great, bye!",
    # Who affirms everybody finds nobody.
    f"{OTHER} / Yes, that is Anton! / {DESCRIBED} / Yes, that is Anton! / Bye!",
    f"{OTHER} / Yes, I know them! / {DESCRIBED} / Yes, that is Anton! / Bye!",
]


@pytest.mark.parametrize(
    ("lines", "found"), [*((line, True) for line in IDENTIFIED), *((line, False) for line in NOT_IDENTIFIED)]
)
def test_a_friend_is_found_by_a_full_description_and_a_name(lines: str, found: bool) -> None:
    loaded = shipped()["mutual_friends_02"]
    said = [Turn(at, ("Quentin", "Marit")[at % 2], Action("speak", text)) for at, text in enumerate(lines.split(" / "))]
    scored = {each.name: each for each in scores(Transcript(tuple(said)), loaded.scenario, loaded.answer)}
    assert (scored["success"].value, scored["confirmed"].value) == (found, found)
    assert scored["success"].reason == f"they agree on {'Anton' if found else 'nobody'}"


@pytest.mark.parametrize(
    ("lines", "star"),
    [
        ("Do you have a friend who likes calligraphy? / Yes, Jasper likes it.", False),
        ("Do you have a friend who likes caligraphy? / Yes, Jasper likes it.", False),
        ("Do you have a friend who likes calligarphy? / Yes, Jasper likes it.", False),
        ("Do you know a caligrapher? / Yes, Jasper.", False),
        ("do you know anyone at union textils / yes jasper", False),
        ("Do you know anyone at Unoin Textiles? / Yes, Jasper.", False),
        ("I have a friend who likes caligraphy and works at Union Textiles. / Is it Jasper?", False),
        ("Do you know Jaspar? / Yes, I know Jasper!", False),
        ("do you know jaspr / Do you mean Jasper?", False),
        # Something else was asked, or nothing that one could tell from; two errors are another word.
        ("Do you have a friend who likes jugling? / Yes, Jasper likes it.", True),
        ("Do you know anyone at Harbor Foods? / Yes, Jasper.", True),
        ("Do you have a friend who likes kaligraphie? / Yes, Jasper likes it.", True),
        ("Do you know Caspar? / No, but I know Jasper.", True),
        ("Do you know Ursla? / Yes, Ursula. And do you know Jasper?", True),
        ("Hello! / Jasper?", True),
        # A spelling error adds no star: what is read without the word counts, too.
        ("Do you know anyone at Harbour Foods or Union Textils? / Yes, Ursula and Jasper.", False),
        ("Do you know anyone at Union Textiles who likes jugling? / Yes, Jasper.", False),
    ],
)
def test_a_question_with_a_spelling_error_tells_as_much_as_one_without(lines: str, star: bool) -> None:
    loaded = shipped()["mutual_friends_01"]
    said = [Turn(at, ("Oscar", "Beatrix")[at % 2], Action("speak", text)) for at, text in enumerate(lines.split(" / "))]
    scored = {each.name: each for each in scores(Transcript(tuple(said)), loaded.scenario, loaded.answer)}
    assert scored["unearned_hits"].label == ("Jasper" if star else "")
