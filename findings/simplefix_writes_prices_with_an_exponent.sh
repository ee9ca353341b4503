#!/bin/sh
# Package:  simplefix 1.0.17 from PyPI.
# Expected: append_pair(tag, value) takes numbers; a price or a quantity that is a float becomes a FIX float, which has digits,
#           one decimal point and a sign (FIX 4.4 volume 1, data type float; no exponent in it).
# Instead:  the field is Python's str() of the number. Below 0.0001 and from 1e16 on that has an exponent, and a sum of
#           tenths has seventeen digits. A counterparty that parses by the standard rejects the message.
# Seen:     44=5e-05 from 0.00005; 38=1e+16 from 1e16; 44=0.30000000000000004 from 0.1 + 0.2
#           Decimal("0.00005") is written as 0.00005, Decimal("0.00000005") as 5E-8
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{ python3 -m venv "$dir/python" && "$dir/python/bin/pip" install --quiet simplefix==1.0.17; } >&2 || exit 77
"$dir/python/bin/python" - <<'PYTHON'
import sys
from decimal import Decimal
import simplefix

def written(tag, value):
    message = simplefix.FixMessage()
    message.append_pair(tag, value)
    return message.encode(raw=True).rstrip(b"\x01").decode()

seen = [written(44, 0.00005), written(38, 1e16), written(44, 0.1 + 0.2), written(44, Decimal("0.00005")), written(44, Decimal("0.00000005"))]
print(*seen, sep="\n")
sys.exit(seen != ["44=5e-05", "38=1e+16", "44=0.30000000000000004", "44=0.00005", "44=5E-8"])
PYTHON
