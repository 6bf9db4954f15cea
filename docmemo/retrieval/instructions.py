"""Leaves out of a query what it says about the answer's form ("Give me an integer."): no page speaks of that.

Only after a question has been asked, so that a query that *is* an instruction ("Give the names of all suppliers.")
stays whole. English, German, French, Spanish and Chinese forms; what is not recognised merely stays in the query.
"""

from __future__ import annotations

import re

_VERB = (
    r"(?:write|give|return|format|express|round|provide|represent|answer|output|state|present|list it"
    r"|the answer should|antworte|gib|runde|schreibe|formatiere|réponds|répondez|donne[zr]?|arrondi[rs]\w*"
    r"|responde|da|escribe|redondea)"
)
_FORM = (
    r"(?:answers?|format(?:ted)?|integers?|int|floats?|decimals?|strings?|lists?|percentages?|nearest|e\.g"
    r"|for example|units?|millions?|thousands?|billions?|antwort|ganze?n? zahl|prozent|liste|réponse|entier"
    r"|pourcentage|respuesta|entero|porcentaje)"
)
_INSTRUCTION = re.compile(
    rf"(?<=[.?!;,])\s*(?:and\s+|please\s+|bitte\s+|veuillez\s+|por favor,?\s+)*\b{_VERB}\b[^?]*?\b{_FORM}\b[^?]*$",
    re.I,
)
_CHINESE = re.compile(r"(?<=[。？！，；?])\s*请?(?:用|以|将)?[^。？！]{0,12}(?:格式|整数|小数|百分比|列表)[^？]*$")
_ASKS = re.compile(
    r"\?|？|؟|\b(?:what|which|who|whose|whom|when|where|why|how|was|welche\w*|wer|wie|wann|wo|quel\w*|combien|cuál\w*|cuánt\w*)\b",
    re.I,
)


def without_answer_form(query: str) -> str:
    """`query` without closing instructions about the answer's form; unchanged where no question comes before them."""
    for pattern in (_INSTRUCTION, _CHINESE):
        match = pattern.search(query)
        if match and _ASKS.search(query[: match.start()]):
            query = query[: match.start()]
    return query
