"""The GBNF of the values of a move; a number has exactly the allowed range and steps."""

from __future__ import annotations

from localsim.conversation.rules.lines import SEPARATOR, Bound
from localsim.conversation.rules.values import Param

_MANY = 30


def literal(text: str) -> str:
    """Return a text as a GBNF literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def values_gbnf(way: Bound) -> str:
    """Return the GBNF of everything between the name of a move and its closing bracket; '' without values."""
    parts = [_value(param, way.others) for param in way.move.values]
    return f" {literal(SEPARATOR)} ".join(parts)


def _value(param: Param, others: tuple[str, ...]) -> str:
    if param.number is not None:
        return number_gbnf(param)
    if param.one_of is not None:
        return _either([literal(option) for option in param.one_of])
    if param.agents == "one":
        return _either([literal(name) for name in others])
    if param.agents == "several":
        return _some(others)
    assert param.words is not None
    return rf"[^ \x00-\x1f\x7f\[\]:] [^\x00-\x1f\x7f\[\]:]{{0,{param.words - 1}}}"


def _some(names: tuple[str, ...]) -> str:
    """Return the GBNF of one or more of the names in their order, each at most once.

    That takes a text that grows with the square of their number. Of many names, it admits any list, and a repetition
    is found when the line is read.
    """
    if len(names) > _MANY:
        one = _either([literal(name) for name in names])
        return f"{one} ({literal(SEPARATOR)} {one})*"
    ways = []
    for place, name in enumerate(names):
        later = " ".join(f"({literal(SEPARATOR + other)})?" for other in names[place + 1 :])
        ways.append(f"{literal(name)} {later}".rstrip())
    return _either(ways)


def number_gbnf(param: Param) -> str:
    """Return the GBNF of the numbers of a parameter, and of nothing else."""
    assert param.number is not None
    low, high = param.number
    if not param.is_decimal:
        return _either([literal(param.written(number)) for number in param.numbers()])
    # Whole numbers of steps; the decimal point, or the zeros of a step of 10 and more, complete their digits.
    first, last = int(low / param.step), int(high / param.step)
    exponent = param.step.normalize().as_tuple().exponent
    zeros = max(0, exponent) if isinstance(exponent, int) else 0
    ways = []
    if first < 0:
        smallest, largest = max(1, -last), -first
        ways.append(f'"-" {_either(_whole(smallest, largest, param.decimals, zeros))}')
    if last >= 0:
        ways += _whole(max(0, first), last, param.decimals, zeros)
    return _either(ways)


def _whole(first: int, last: int, decimals: int, zeros: int) -> list[str]:
    """Return the ways to write the steps first..last (0 or more), by their number of digits."""
    ways = []
    shortest = decimals + 1
    for digits in range(shortest, max(shortest, len(str(last))) + 1):
        low = max(first, 0 if digits == shortest else 10 ** (digits - 1))
        high = min(last, 10**digits - 1)
        if low > high:
            continue
        if zeros and low == 0:  # zero has no zeros behind it
            ways.append('"0"')
            low = 1
            if low > high:
                continue
        point = digits - decimals if decimals else -1
        tail = f" {literal('0' * zeros)}" if zeros else ""
        ways.append(f"{_digits(str(low).zfill(digits), str(high).zfill(digits), point)}{tail}")
    return ways


def _digits(low: str, high: str, point: int) -> str:
    """Return the GBNF of the numbers low..high of one length, with the decimal point before the digit `point`."""
    if not low:
        return ""
    dot = '"." ' if point == 0 else ""
    after = point - 1
    if low[0] == high[0]:
        return f"{dot}{literal(low[0])} {_digits(low[1:], high[1:], after)}".rstrip()
    rest = len(low) - 1
    nines, noughts = "9" * rest, "0" * rest
    ways = []
    first, last = int(low[0]), int(high[0])
    if low[1:] != noughts:
        ways.append(f"{literal(low[0])} {_digits(low[1:], nines, after)}".rstrip())
        first += 1
    ends = high[1:] != nines
    last -= ends
    if first <= last:
        one = f"[{first}-{last}]" if first < last else literal(str(first))
        ways.append(f"{one} {_any(rest, after)}".rstrip())
    if ends:
        ways.append(f"{literal(high[0])} {_digits(noughts, high[1:], after)}".rstrip())
    return f"{dot}{_either(ways)}"


def _any(count: int, point: int) -> str:
    """Return the GBNF of any `count` digits, with the decimal point before the digit `point`."""
    if count and 0 <= point < count:
        before = f"[0-9]{{{point}}} " if point else ""
        return f'{before}"." [0-9]{{{count - point}}}'
    return f"[0-9]{{{count}}}" if count else ""


def _either(ways: list[str]) -> str:
    return ways[0] if len(ways) == 1 else f"({' | '.join(ways)})"
