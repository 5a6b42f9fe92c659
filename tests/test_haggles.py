"""Forms of consent, condition and refusal in haggles, one example each; bounds on labelled talks by their source."""

from __future__ import annotations

import pytest

from localsim.families.prices import find_prices
from localsim.families.shorthand import spelled_out
from tests.test_endings import ROOT, ending_of, measure_script

VOICES = ROOT / "tests" / "data" / "endings_voices.jsonl"
# Below what was measured on 2026-11-27. The development half shaped the rules.
BOUNDS = {
    ("people", "dev"): {"ending": 0.96, "deal_price": 0.94},
    ("people", "heldout"): {"ending": 0.77, "deal_price": 0.73},
    ("1.5B", "dev"): {"ending": 0.62, "deal_price": 0.76},
    ("1.5B", "heldout"): {"ending": 0.41, "deal_price": 0.6},
    ("0.5B", "dev"): {"ending": 0.7, "deal_price": 0.75},
    ("0.5B", "heldout"): {"ending": 0.66, "deal_price": 0.5},
}

FORMS = """
100 | 75 | B: id go 75 n pick up tmrw | S: k np
100 | 80 | B: 80 n we good | S: we good
100 | 85 | B: 80 | S: 90 | B: split it? | S: sure
100 | 90 | B: 80 | S: 90 w the case | B: dope deal
100 | 80 | B: 70? | S: I would like 80 for it. | B: I shall take it.
65 | 60 | B: 50? | S: I had someone offer 60, so I would need at least that. | B: I can match that.
100 | 90 | B: 75? | S: 90 | B: if you hold it til friday ok | S: ya i can hold it
100 | 80 | B: I could stretch to 80 if your husband helps me load it. | S: He lifts for a living, no problem.
100 | 60 | S: Make it 60 and I'll throw in the belt. | B: How can I say no to that!
1500 | 1400 | S: 14 footer, 1998 motor but it runs. | B: 1300? | S: 1400. | B: I could live with 1400.
900 | 800 | B: I'll have to walk, my limit's 800. Thanks anyway! | S: Wait. 800's fine. | B: Yes!
100 | 80 | B: i'd go 80 if you throw in the cover | S: you can have the cover
100 | 80 | B: 75? | S: 85 | B: what about in between? | S: 80 it is
100 | 75 | B: 75 is my max | S: I suppose I'll take what I can get
3000 | 2500 | B: two and a half grand? | S: ok
105 | 60 | B: Hi, how much for the chair? | S: It costs 60 dollars. | B: Ok i take it, deal!
105 | 70 | S: It costs 120 new. | B: 70? | S: deal
900 | 900 | B: is it negotiable | S: no sorry it's firm | B: ok i'll pay full price
900 | 800 | S: I'm asking 900 | B: 800? | S: Only because you're nice.
900 | 825 | S: I'm asking 900 | B: 800? | S: Add 25 and it's yours | B: ok
900 | 850 | S: i want 900 | B: take 50 off and i'll buy it now | S: deal
200 | 150 | B: 150? | S: 180 | B: 170? | S: You know what, your first offer is fine
120 | 105 | B: 90 | S: 105 | B: it's a deal, do you have change for 110?
120 | 95 | B: 95? | S: only if you come today | B: I'll come today
100 | 90 | B: 5% off? | S: 10% if you come today | B: I'll come today
50 | 40 | B: 40 is what I can spend | S: That is lower than I want but I guess it'll do.
20 | 16 | B: 15 | S: 18 | B: 16 cmon | S: geez ok
80 | 65 | B: 60 | S: 65 | B: I can't argue with that.
80 | 65 | B: 60 | S: 65 | B: 65?? Ok.
100 | 80 | B: Is possible to have for 80? | S: Yes my friend, is ok.
100 | 80 | B: 70? | S: 80. | B: Like you want.
100 | 80 | B: 70? | S: For 80 I give it. | B: Then give it.
100 | 80 | B: 30 off? | S: I can take 20 off, no more. | B: I can live with 20 off.
100 | 90 | B: Your ad last week said 90. I'll pay that. | S: Fine, 90.
400 | 380 | B: 350 | S: Pick it up and it's 380. | B: Pick up it is.
100 | 80 | B: 80? | S: Deal, though I could have gotten 95 for it.
100 | 80 | B: 80? | S: I was going to say 90 but 80 is fine.
100 | 90 | B: Instead of 100 how about 90? | S: sure
100 | 90 | B: I'd go 90 if it has all the parts, it says 100 in the ad. | S: it has all the parts | B: great 90 then
80 | 65 | S: i wanted 70 | B: meet me in the middle, 65 with tax lol | S: haha ok fine
100 | 80 | B: 80? | S: That's a bit low but I'll do it.
100 | 80 | B: 80? | S: I don't see why not.
100 | 85 | B: 80 | S: I'd lose money at 80. 85. | B: Can't have that. 85.
700 | 600 | B: is 600 too low? | S: no, its ok
700 | 650 | B: 600? | S: does 650 work for you | B: it does
700 | 650 | B: 600 | S: 650 includes the helmet | B: nice, text me your address
700 | 650 | B: 600 | S: 650 | B: I'd rather pay 600 but ok
700 | 650 | B: 600 | S: 650 | B: If that's the best you can do then I'll take it.
700 | 650 | B: 550 | S: I'd have to have 650 | B: I can get that much together by Friday.
700 | 600 | B: i have 600 in hand | S: 600 will have to do
700 | 660 | B: 660 | S: hmmmm | B: please | S: lol ok
700 | unknown | B: is 600 too low? | S: yes
125 | unknown | S: let's go with $87 | B: Oh no! $87 is way too much. | S: It looks good and sturdy.
240 | unknown | S: I'd do 220. | B: Hmm, let me measure my window first and I'll text you, okay? | S: Sure, stay cool!
200 | unknown | S: I can do 179. | B: Deal. | S: I need more time to consider. | B: Let me think about it too.
100 | unknown | B: 80? | S: 95 | B: the price is a bit more than i have
100 | no_deal | B: 90 | S: done | B: oh nah then im out sorry
220 | no_deal | B: 150? | S: I must ask for 200. | B: I understand. | S: I wish you luck in finding one.
95 | no_deal | B: 75? | S: ok | B: oh wait, i need 40 galons. sory i cant tak it then
100 | no_deal | B: 60 or nothing | S: nothing then
100 | no_deal | B: 70? | S: It is already given to other person.
100 | no_deal | B: 70 | S: ok 70 | B: Sorry, my wife doesn't like it.
100 | no_deal | B: 80, yes or no? | S: No. | B: Then we have nothing to talk about.
100 | no_deal | B: 80? | S: I do not sell under 90. | B: Too much for me, thank you, sorry.
100 | no_deal | B: 80? | S: ok | B: cool | S: sorry man a guy just came and paid 100
100 | no_deal | B: 80? | S: 95. | B: Then it's a no from me.
100 | no_deal | B: 85 last | S: I'll take my chances.
300 | no_deal | B: 220 | S: I have another buyer at 290 | B: then sell to them
"""


@pytest.mark.parametrize("line", FORMS.strip().splitlines())
def test_forms(line: str) -> None:
    list_price, expected, talk = line.split(" | ", 2)
    ending = ending_of(float(list_price), talk)
    found = f"{ending.price:g}" if ending.price is not None else ending.kind
    assert found == expected, ending


@pytest.mark.parametrize(
    ("text", "list_price", "values"),
    [
        ("a grand and a half", 1700, [1500]),
        ("2 and a half thousand", 3000, [2500]),
        ("three and a half hundred", 400, [350]),
        ("800's good, it has a 60 w bulb, 20 gallons", 900, [800]),
        ("80 w the cover", 100, [80]),
        ("a 1998 motor, 2015 transmission", 1500, []),
        ("1998 it is", 2000, [1998]),
    ],
)
def test_prices_beside_units(text: str, list_price: float, values: list[float]) -> None:
    assert [price.value for price in find_prices(text, list_price=list_price)] == values


def test_shorthand_is_spelled_out() -> None:
    assert spelled_out("id do that n lmk, taht works 4 u") == "i'd do that and let me know, that works 4 you"
    assert spelled_out("well, it's a cool idea, we shall see") == "well, it's a cool idea, we will see"


def test_accuracy_by_source() -> None:
    """Whole voices and whole scenarios are held out; the halves were fixed before the rules were measured on them."""
    script = measure_script()
    rows = script.read_rows(VOICES)
    for (source, half), bounds in BOUNDS.items():
        part = [row for row in rows if (row["source"], row["half"]) == (source, half)]
        result = script.measure(part)
        accuracy = {name: result.tallies[name].accuracy for name in bounds}
        assert all(accuracy[name] >= bound for name, bound in bounds.items()), (source, half, accuracy)


def test_no_voice_or_scenario_is_in_both_halves() -> None:
    halves: dict[str, set[str]] = {}
    for row in measure_script().read_rows(VOICES):
        group = row["voice"] if row["source"] == "people" else row["id"].rpartition("-")[2]
        halves.setdefault(group, set()).add(row["half"])
    assert all(len(found) == 1 for found in halves.values())
    assert {group for group, found in halves.items() if not group.isdecimal() and "heldout" in found} == {
        "nonnative",
        "hard",
    }
