"""Valid samples made invalid: as bytes, and, where they are JSON or YAML, value by value."""

import copy
import json
from random import Random
from typing import Any

import yaml

TOKENS = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u0000", b"\\ud800", b"\n", b"\r\n", b"\x00", b"\xff",
    b"\xc3",
]  # fmt: skip
TOKENS += [
    b"\xef\xbb\xbf", b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"0.1", b"-0", b"<!--",
    b"::error::",
]  # fmt: skip
TOKENS += [
    b"${A}", b"$${", b"{{a}}", b"@everyone", b"```", b"|", b"\x1b[31m", "\u2028".encode(), "\u202e".encode(),
    b"&a", b"*a", b"<<",
]  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**16, 10**400, 0.5, -0.0, 1e300, float("nan"), float("inf"),
)  # fmt: skip
VALUES += (
    "", " ", "0", "auto", "undefined", "\ud800", "\x00", "\x1b]0;x\x07", "x" * 5000, "../../etc", "con",
    "${A}", "{{a}}", "2026-11-21T09:30:00Z",
)  # fmt: skip
VALUES += ([], {}, [[]], [None], {"": None}, {"a": 1}, [{}], ["a", "a"])

MOST_BYTES = 100_000
_DEEPEST = 3000
_Loader, _Dumper = (
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
    getattr(yaml, "CSafeDumper", yaml.SafeDumper),
)
"""Compiled where they can be: most of the time would go into them."""


def mutated(samples: list[bytes], random: Random) -> bytes:
    """One of the samples with something wrong in it, now and then with much."""
    data = random.choice(samples)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        data = _changed(data, samples, random)[:MOST_BYTES]
    return data


def _changed(data: bytes, samples: list[bytes], random: Random) -> bytes:
    if random.random() < 0.7:
        try:
            return _in_values(data, samples, random)
        except (ValueError, RecursionError, yaml.YAMLError):
            pass
    return _in_bytes(data, samples, random)


def _in_bytes(data: bytes, samples: list[bytes], random: Random) -> bytes:
    start = random.randint(0, len(data))
    end = min(len(data), start + random.choice((0, 1, 1, 4, 40)))
    match random.randrange(7):
        case 0:
            middle = random.choice(TOKENS)
        case 1:
            middle = random.randbytes(random.choice((1, 2, 8)))
        case 2:
            middle = b""
        case 3:
            middle = data[start:end] * random.choice((2, 3, 100))
        case 4:
            other = random.choice(samples)
            cut = random.randint(0, len(other))
            return data[:start] + other[cut:]
        case 5:
            return data[:start]
        case _:
            middle = random.choice(TOKENS) * random.choice((2, 50, 2000))
    return data[:start] + middle + data[end:]


def _in_values(data: bytes, samples: list[bytes], random: Random) -> bytes:
    text = data.decode()
    is_json = text.lstrip()[:1] in ("{", "[")
    value = json.loads(text) if is_json else yaml.load(text, _Loader)
    if not isinstance(value, dict | list):
        raise ValueError("nothing to change in")  # noqa: TRY004  # a fault of the sample
    holder = {"": copy.deepcopy(value)}
    places = list(_places(holder))
    here, key = random.choice(places)
    match random.randrange(8):
        case 0 | 1 | 2:
            here[key] = copy.deepcopy(random.choice(VALUES))
        case 3:
            there, other = random.choice(places)
            here[key] = copy.deepcopy(there[other])
        case 4:
            here[key] = random.choice(
                ([here[key]], {"value": here[key]}, {"data": here[key]}, [here[key]] * 3)
            )
        case 5 if isinstance(here, dict) and isinstance(key, str) and here is not holder:
            new = random.choice((key.upper(), f"{key}s", "x-" + key, "value", "", "\ud800"))
            here[new] = here.pop(key)
        case 5 | 6 if len(places) > 1 and here is not holder:
            del here[key]
        case _ if random.random() < 0.1:
            deep: Any = here[key]
            for _ in range(random.choice((50, 150, _DEEPEST))):
                deep = [deep] if random.random() < 0.9 else {"a": deep}
            here[key] = deep
        case _:
            here[key] = f"{here[key]}"[:100] + random.choice(("", "\n", "\u200b", "'", "`|")) * 3
    if is_json:
        return json.dumps(holder[""], ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass")
    return yaml.dump(holder[""], Dumper=_Dumper, allow_unicode=True).encode(errors="surrogatepass")


def _places(value: Any) -> Any:
    """Each container with each of its keys or indices."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        for key in list(here) if isinstance(here, dict) else range(len(here)):
            yield here, key
            if isinstance(here[key], dict | list):
                waiting.append(here[key])
