"""Recognises units of measurement: in cells, and after the names of columns."""

from __future__ import annotations

import re
from unicodedata import category

from webapp.imports.characters import in_ascii

_SYMBOL_WORDS = """
% ‰ %rh %rf ppm ppb ppt vol% wt% rh °c degc c ° deg degree degrees celsius °f degf f fahrenheit k kelvin degk
v mv uv µv kv volt volts a ma ua µa ka amp amps ampere w mw kw gw watt watts va kva mva var kvar mvar
wh kwh mwh gwh kwhr j kj mj gj ws vah kvah varh kvarh hz khz mhz ghz rpm 1/min u/min min-1 bpm
s sec secs second seconds ms msec us µs ns min mins minute minutes h hr hrs hour hours d day days
m mm cm dm km um µm nm in inch ft feet mile miles mi yd m2 m3 m² m³ cm2 cm3 mm2 mm3 ft2 ft3 l ml ul µl
liter litre liters litres gal nm3 sm3 nl sl g mg ug µg ng kg t to lb lbs oz
pa hpa kpa mpa gpa bar mbar psi atm mmhg torr inhg mh2o cmh2o n kn mn knm lx lux lm cd klx
ph db dba dbm mol mmol umol µmol nmol eq meq ohm kohm mohm ω kω µs/cm ms/cm us/cm s/m ntu fnu fts psu
g/l mg/l ug/l µg/l sccm slm m/s km/h mph knots kt m3/h m³/h l/h l/min l/s m3/s kg/h kg/s t/h g/s
w/m2 w/m² w/m^2 j/m2 kwh/m2 count counts cts pcs stk stück
yyyy-mm-dd hh:mm:ss hh:mm yyyy/mm/dd dd.mm.yyyy mm/dd/yyyy dd/mm/yyyy unix ts rn utc iso8601
- [-] () none unitless 1 bool boolean text
"""
_CURRENCY_WORDS = """
aed ars aud bgn brl cad chf clp cny cop czk dkk egp eur gbp hkd huf idr ils inr jpy krw mxn myr nok nzd
pen php pln ron rsd rub sar sek sgd thb try twd uah usd vnd zar fr fr. sfr sfr. kr kr. zł kč ft lei rs
rs. ct cent 元 円
"""
_AGGREGATE_WORDS = """
smp avg max min std tot wvc inst med sample average mean maximum minimum sum last first
"""
_TYPE_WORDS = """
bool boolean sint int dint lint usint uint udint word dword real lreal float float32 float64 double integer
int16 int32 int64 uint16 uint32 string varchar text timestamp datetime numeric
"""
TYPES = frozenset(_TYPE_WORDS.split())
"""The texts in a line of types below the names, as controllers and databases write it."""

_SYMBOLS = frozenset(_SYMBOL_WORDS.split())
_CURRENCIES = frozenset(_CURRENCY_WORDS.split())
_AGGREGATES = frozenset(_AGGREGATE_WORDS.split())
_PREFIXES = ("k", "M", "G", "T")  # 1.5k is 1500, so k is no unit
_TWO_NUMBERS = re.compile(r"\d[^\W_]")  # for example after the 1 of 1h30m
_BESIDE_NUMBER = re.compile(
    r"[(+-]? *[+-]? *(?P<before>[^\d\s().,+-][^\d()+-]{0,7})?[+-]? *"
    r"(?:[0-9][0-9.,'\u2019 ]*(?:[.,]-{1,2})?|[.,][0-9]+)(?:[eE][+-]?[0-9]{1,3}(?![0-9]))? *"
    r"(?P<behind>[^\d\s.,()+/-][^()]{0,19}?)? *[)+-]?"
)
_PART = re.compile(r"[/·*\s^⋅.()²³⁻¹0-9+-]+")
_BRACKETS = re.compile(r"^(?P<name>.*\S)\s*(?:\[(?P<square>[^\[\]]{1,30})\]|\((?P<round>[^()]{1,30})\))\s*$")
_DATE_ORDER = re.compile(r"[dmy]{2,4}[-/.][dmy]{2}|hh:?mm", re.IGNORECASE)
_DATE_LETTERS = re.compile(r"[dDMyYHhmsSat:./, -]+")  # dd.MM.yyyy HH:mm
_BEHIND = re.compile(r"^(?P<name>.*[^\s,]),\s+(?P<unit>\S.{0,20})$")


def is_unit(text: str) -> bool:
    """Returns whether the text is a unit, such as `m3/h`, `[bar]`, `deg C` or `EUR`."""
    text = text.strip().strip("[]()").strip()
    if _DATE_ORDER.search(text) and _DATE_LETTERS.fullmatch(text):
        return True
    if text.lower() in _SYMBOLS or re.sub("[. ]", "", text.lower()) in _SYMBOLS or is_currency(text):
        return True
    parts = [part for part in _PART.split(text.lower()) if part]
    return bool(parts) and len(text) <= 20 and all(part in _SYMBOLS or is_currency(part) for part in parts)


def is_currency(text: str) -> bool:
    """Returns whether the text is a currency, such as `€`, `US$`, `kr` or `CHF`."""
    text = text.strip()
    if text.lower() in _CURRENCIES:
        return True
    letters = text[:-1]
    return (
        text != "" and category(text[-1]) == "Sc" and len(letters) <= 3 and (letters.isalpha() or not letters)
    )


def unit_beside(text: str) -> str | None:
    """Returns the unit before or after the number in a text such as `-1.5 bar` or `($ 5)`, or None."""
    found = _BESIDE_NUMBER.fullmatch(in_ascii(text).strip())
    if found is None:
        return None
    before, behind = (found["before"] or "").strip(), (found["behind"] or "").strip()
    if before and not is_currency(before) and is_currency(before.rstrip(".,")):
        before = before.rstrip(".,")
    if behind and not before:
        is_one = behind not in _PREFIXES and not _TWO_NUMBERS.search(behind) and is_unit(behind)
        return behind if is_one else None
    return before if before and not behind and (is_currency(before) or before in "%‰") else None


_ITEM = re.compile(r"\S\[\d+\]$", re.ASCII)
"""The place of an item in a list, as in `d.pos[1]`."""


def is_aggregate(text: str) -> bool:
    """Returns whether the text names the aggregate by which a logger made its values: `Avg`, `Smp`."""
    return text.strip().lower() in _AGGREGATES


def without_unit(header: str) -> tuple[str, str | None]:
    """Returns the name and the unit of `Temperature [deg C]`, `BV (Volts)` or `Temp, °C`."""
    if _ITEM.search(header):
        return header, None
    found = _BRACKETS.match(header)
    if found:
        unit = found["square"] or found["round"]
        if _DATE_ORDER.search(unit):
            return found["name"].strip(), None
        # Any text in square brackets may be a unit. In round brackets, only a known unit counts.
        if (found["square"] and not re.search(r"\d{3}|:", unit)) or is_unit(unit):
            return found["name"].strip(), unit.strip()
        return header, None
    found = _BEHIND.match(header)
    if found and is_unit(found["unit"]):
        return found["name"].strip(), found["unit"].strip()
    return header, None
