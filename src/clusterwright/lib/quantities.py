"""Numbers with units, as people in this field write them.

A unit is a product of powers of base symbols: B (byte), b (bit), s, W, a currency, and counted things (GPU, node,
req, token, ...). `GB` is 10^9 bytes, `GiB` 2^30 bytes, `Gb` 10^9 bits; the case decides and is never guessed.
After a `/` everything joined by `-` or `·` divides: `$2.40/GPU-h` is dollars per (GPU times hour).

Source: decimal and binary prefixes as in IEC 80000-13:2008; a year is 8,760 h, a month a twelfth of it (730 h),
the convention of public cloud price lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

Powers = tuple[tuple[str, int], ...]

HOUR_S: Final = 3600.0
YEAR_S: Final = 8760 * HOUR_S

_DECIMAL: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY: Final = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}
CURRENCIES: Final = {"USD": "$", "EUR": "€", "GBP": "£"}


def _units() -> dict[str, tuple[float, Powers]]:
    units: dict[str, tuple[float, Powers]] = {}
    for prefix, scale in (_DECIMAL | _BINARY).items():
        units[prefix + "B"] = (scale, (("B", 1),))
        units[prefix + "b"] = (scale, (("b", 1),))
        units[prefix + "bit"] = (scale, (("b", 1),))
    for prefix, scale in _DECIMAL.items():
        for suffix, symbol in (("bps", "b"), ("Bps", "B")):
            units[prefix + suffix] = (scale, ((symbol, 1), ("s", -1)))
        units[prefix + "W"] = (scale, (("W", 1),))
        units[prefix + "Wh"] = (scale * HOUR_S, (("W", 1), ("s", 1)))
        units[prefix + "FLOP"] = (scale, (("FLOP", 1),))
        units[prefix + "FLOPS"] = (scale, (("FLOP", 1), ("s", -1)))
        units[prefix + "FLOP/s"] = (scale, (("FLOP", 1), ("s", -1)))
        units[prefix + "tok"] = units[prefix + "token"] = units[prefix + "tokens"] = (scale, (("token", 1),))
        units[prefix + "IOPS"] = (scale, (("op", 1), ("s", -1)))
        units[prefix + "Hz"] = (scale, (("Hz", 1),))
        units[prefix + "J"] = (scale, (("W", 1), ("s", 1)))
        units[prefix + "T/s"] = (scale, (("transfer", 1), ("s", -1)))
    durations = {
        "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0,
        "minute": 60.0, "h": HOUR_S, "hr": HOUR_S, "hour": HOUR_S, "d": 24 * HOUR_S, "day": 24 * HOUR_S,
        "week": 168 * HOUR_S, "month": YEAR_S / 12, "mo": YEAR_S / 12, "year": YEAR_S, "yr": YEAR_S, "y": YEAR_S,
    }  # fmt: skip
    for name, scale in durations.items():
        units[name] = (scale, (("s", 1),))
        if len(name) > 2 and not name.endswith("s"):
            units[name + "s"] = (scale, (("s", 1),))
    for name in ("GPU", "node", "req", "request", "image", "sample", "run", "job", "server", "rack", "person", "event"):
        base = "req" if name == "request" else name
        units[name] = units[name + "s"] = (1.0, ((base, 1),))
    for code, sign in CURRENCIES.items():
        units[code] = units[sign] = (1.0, ((code, 1),))
    units["¢"] = units["cent"] = (0.01, (("USD", 1),))
    units["%"] = (0.01, ())
    units["°C"] = (1.0, (("°C", 1),))
    units["op"] = units["ops"] = (1.0, (("op", 1),))
    return units


_UNITS: Final = _units()

#: Unit families a field may ask for: name -> (powers with `money` standing for any currency, example).
KINDS: Final[dict[str, tuple[Powers, str]]] = {
    "bytes": ((("B", 1),), "120 GB"),
    "byte rate": ((("B", 1), ("s", -1)), "10.7 GB/s"),
    "bit rate": ((("b", 1), ("s", -1)), "400 Gb/s"),
    "duration": ((("s", 1),), "90 s"),
    "power": ((("W", 1),), "10.2 kW"),
    "compute rate": ((("FLOP", 1), ("s", -1)), "989 TFLOP/s"),
    "operation rate": ((("op", 1), ("s", -1)), "500 kIOPS"),
    "tokens": ((("token", 1),), "2000 tokens"),
    "token rate": ((("s", -1), ("token", 1)), "2500 tokens/s"),
    "request rate": ((("req", 1), ("s", -1)), "50 req/s"),
    "event rate": ((("event", 1), ("s", -1)), "10 events/h"),
    "nodes": ((("node", 1),), "1 node"),
    "share": ((), "80%"),
    "money": ((("money", 1),), "$437000"),
    "money per time": ((("money", 1), ("s", -1)), "$12000/month"),
    "GPU time": ((("GPU", 1), ("s", 1)), "5000 GPU-h"),
    "money per GPU time": ((("GPU", -1), ("money", 1), ("s", -1)), "$2.40/GPU-h"),
    "money per node time": ((("money", 1), ("node", -1), ("s", -1)), "$19.20/node-h"),
    "money per power time": ((("W", -1), ("money", 1), ("s", -1)), "$170/kW-month"),
    "money per token": ((("money", 1), ("token", -1)), "$0.60/Mtok"),
    "money per bytes": ((("B", -1), ("money", 1)), "$0.09/GB"),
    "money per bytes time": ((("B", -1), ("money", 1), ("s", -1)), "$0.02/GB-month"),
}
# A price of energy, $/kWh, has the powers of a price of power over time ($/kW-h): one kind serves both.

_LIKELY: Final = {
    "m": "min (minutes) or month",
    "gb": "GB (bytes) or Gb (bits)",
    "mb": "MB (bytes) or Mb (bits)",
    "tb": "TB (bytes) or Tb (bits)",
    "gib": "GiB",
    "mib": "MiB",
    "kb": "kB (bytes) or kb (bits)",
    "KB": "kB (1,000 bytes) or KiB (1,024 bytes)",
    "G": "GB, GiB or Gb/s",
    "g": "GB, GiB or Gb/s",
    "Gi": "GiB",
    "T": "TB or TiB",
    "gbps": "Gb/s (bits) or GB/s (bytes)",
    "gb/s": "Gb/s (bits) or GB/s (bytes)",
    "mbps": "Mb/s (bits) or MB/s (bytes)",
    "kw": "kW",
    "kwh": "kWh",
    "gpu": "GPU",
    "rps": "req/s",
    "qps": "req/s",
    "tps": "tokens/s",
}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MAX_TEXT: Final = 200


class UnitError(ValueError):
    """A quantity that cannot be read; the message says what was found and the likely intention."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in base units (bytes, bits, seconds, watts, one unit of currency) with its powers.

    Args:
        value: magnitude in base units, finite.
        powers: sorted (base symbol, power) pairs; empty for a share.
        text: as the user wrote it, or "" if computed.
    """

    value: float
    powers: Powers
    text: str = ""

    @property
    def currency(self) -> str:
        """ISO code of the currency in the unit, or "" if it is not money."""
        return next((s for s, _ in self.powers if s in CURRENCIES), "")

    def to(self, unit: str) -> float:
        """Magnitude in `unit`; raises UnitError when the unit measures something else."""
        scale, powers = parse_unit(unit)
        if powers != self.powers:
            raise UnitError(f"{self} is not measured in {unit}")
        return self.value / scale

    def __str__(self) -> str:
        return self.text or format_base(self.value, self.powers)


@lru_cache(maxsize=1024)
def parse_unit(text: str) -> tuple[float, Powers]:
    """(scale to base units, powers) of a unit expression such as `GB/s` or `$/GPU-h`.

    Raises:
        UnitError: naming the unknown part and the likely intention.
    """
    scale, powers = 1.0, dict[str, int]()
    if text.strip() in _UNITS:
        factor, found = _UNITS[text.strip()]
        return factor, found
    for position, side in enumerate(text.split("/")):
        sign = 1 if position == 0 else -1
        for part in re.split(r"[-·*]", side):
            symbol = part.strip()
            if not symbol and position == 0 and "/" in text:
                continue  # "1/s"
            if symbol not in _UNITS:
                raise UnitError(_unknown_unit(symbol, text))
            factor, found = _UNITS[symbol]
            scale *= factor**sign
            for base, power in found:
                powers[base] = powers.get(base, 0) + sign * power
    return scale, tuple(sorted((b, p) for b, p in powers.items() if p))


def units_measuring(powers: Powers) -> tuple[str, ...]:
    """Every unit of one word with these powers, longest first: `GBps` and `B/s`, not `GB/s`, which is a quotient."""
    return tuple(sorted((name for name, (_, found) in _UNITS.items() if found == powers), key=lambda n: (-len(n), n)))


def _unknown_unit(symbol: str, whole: str) -> str:
    likely = _LIKELY.get(whole) or _LIKELY.get(symbol) or _LIKELY.get(symbol.lower())
    if likely is None:
        same = [u for u in _UNITS if u.lower() == symbol.lower()]
        likely = " or ".join(same[:3]) if same and symbol else None
    named = f"unknown unit '{symbol}'" if symbol else f"incomplete unit '{whole}'"
    return named + (f"; did you mean {likely}?" if likely else "")


def parse_quantity(text: str) -> Quantity:
    """Read `120 GB`, `$2.40/GPU-h`, `8 ¢/kWh`, `1 h 30 min`, `85%`.

    Raises:
        UnitError: if the number or the unit is missing or unknown; a bare number has no unit and is refused.
    """
    raw = text.strip()
    if len(raw) > _MAX_TEXT:
        raise UnitError("far too long for a quantity")
    sign = next((s for s in CURRENCIES.values() if raw.startswith(s)), "")
    body = raw[len(sign) :].strip()
    match = _NUMBER.match(body)
    if match is None or not any(c.isdigit() for c in match.group()):
        raise UnitError(f"'{raw}' does not start with a number")
    number = float(match.group().replace(",", "").replace("_", ""))
    rest = body[match.end() :].strip()
    if number in (float("inf"), float("-inf")):
        raise UnitError(f"'{raw}' is not a finite number")
    if sign:
        rest = sign + rest
    if not rest:
        raise UnitError(f"'{raw}' has no unit")
    compound = _compound_duration(body) if not sign else None
    if compound is not None:
        return Quantity(compound, (("s", 1),), raw)
    scale, powers = parse_unit(rest)
    if number * scale in (float("inf"), float("-inf")):
        raise UnitError(f"'{raw}' is too large")
    return Quantity(number * scale, powers, raw)


def _compound_duration(text: str) -> float | None:
    """Seconds of `1 h 30 min` or `1h30min`, None if it is not a sum of two or more durations."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", text)
    if len(parts) < 2 or "".join(n + u for n, u in parts) != re.sub(r"\s+", "", text):
        return None
    if any(u not in _UNITS or _UNITS[u][1] != (("s", 1),) for _, u in parts):
        return None
    return sum(float(n) * _UNITS[u][0] for n, u in parts)


def parse_kind(text: str, *kinds: str) -> Quantity:
    """Read a quantity that must measure one of `kinds` (keys of KINDS).

    Raises:
        UnitError: with what was found, an example of what is expected, and the conversion when bits stand for bytes.
    """
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        raise UnitError(f"{error}; write for example {_examples(kinds)}") from None
    if any(_matches(quantity.powers, KINDS[k][0]) for k in kinds):
        return quantity
    raise UnitError(f"{_mismatch(quantity, kinds)}; write for example {_examples(kinds)}")


def is_kind(quantity: Quantity, kind: str) -> bool:
    """Whether the quantity measures `kind`, any currency counting as money."""
    return _matches(quantity.powers, KINDS[kind][0])


def _matches(powers: Powers, wanted: Powers) -> bool:
    plain = tuple(sorted(("money" if s in CURRENCIES else s, p) for s, p in powers))
    return plain == wanted


def _examples(kinds: tuple[str, ...]) -> str:
    return " or ".join(KINDS[k][1] for k in kinds)


def _mismatch(quantity: Quantity, kinds: tuple[str, ...]) -> str:
    bits = dict(quantity.powers)
    if "bit rate" in kinds and bits.get("B") == 1:
        return f"'{quantity}' counts bytes and this counts bits: it would be {quantity.value * 8 / 1e9:g} Gb/s"
    if "byte rate" in kinds and bits.get("b") == 1:
        return f"'{quantity}' counts bits and this counts bytes: it would be {quantity.value / 8e9:g} GB/s"
    if "bytes" in kinds and quantity.powers == (("b", 1),):
        return f"'{quantity}' counts bits and this counts bytes: it would be {quantity.value / 8e9:g} GB"
    found = next((k for k in KINDS if _matches(quantity.powers, KINDS[k][0])), "something else")
    return f"'{quantity}' measures {found}, this wants {' or '.join(kinds)}"


_SCALES: Final[dict[Powers, tuple[str, ...]]] = {
    (("B", 1),): ("B", "kB", "MB", "GB", "TB", "PB", "EB"),
    (("B", 1), ("s", -1)): ("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"),
    (("b", 1), ("s", -1)): ("b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"),
    (("W", 1),): ("W", "kW", "MW", "GW"),
    (("s", 1),): ("µs", "ms", "s", "min", "h", "days"),
    (("FLOP", 1), ("s", -1)): ("FLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"),
    (("token", 1),): ("tokens", "ktokens", "Mtokens", "Gtokens", "Ttokens"),
}


def format_base(value: float, powers: Powers) -> str:
    """A base-unit magnitude for people, four significant digits, in the largest unit that leaves at least 1."""
    names = _SCALES.get(powers)
    if names is None:
        if not powers:
            return f"{value * 100:.4g}%"
        return f"{value:.6g} {_spell(powers)}"
    best = names[0]
    for name in names:
        if abs(value) >= parse_unit(name)[0]:
            best = name
    return f"{value / parse_unit(best)[0]:.4g} {best}"


def _spell(powers: Powers) -> str:
    over = "·".join(s if p == 1 else f"{s}^{p}" for s, p in powers if p > 0) or "1"
    under = "-".join(s if p == -1 else f"{s}^{-p}" for s, p in powers if p < 0)
    return f"{over}/{under}" if under else over
