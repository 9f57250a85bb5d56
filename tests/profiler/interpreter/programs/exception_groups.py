"""``except*`` and exception groups (3.11)."""

r = []


def split(errors):
    seen = []
    try:
        raise ExceptionGroup("several", errors)
    except* ValueError as group:
        seen.append(("value", [str(e) for e in group.exceptions]))
    except* (TypeError, KeyError) as group:
        seen.append(("type", [type(e).__name__ for e in group.exceptions]))
    else:
        seen.append("else")
    finally:
        seen.append("finally")
    return seen


r.append(split([ValueError("a"), TypeError("b"), ValueError("c")]))
r.append(split([KeyError("k")]))
try:
    split([OSError("left"), ValueError("x")])
except ExceptionGroup as rest:
    r.append([type(e).__name__ for e in rest.exceptions])

try:
    raise ValueError("bare")
except* ValueError as group:
    r.append((type(group).__name__, [str(e) for e in group.exceptions]))

try:
    try:
        pass
    except* ValueError:
        r.append("no")
    else:
        r.append("else")
    finally:
        r.append("finally")
except Exception:
    r.append("never")

nested = ExceptionGroup("outer", [ValueError(1), ExceptionGroup("inner", [TypeError(2), ValueError(3)])])
match, rest = nested.split(ValueError)
r.append([len(match.exceptions), len(rest.exceptions), rest.exceptions[0].exceptions[0].args])
r.append(nested.subgroup(TypeError).exceptions[0].exceptions[0].args)
r.append(nested.message)
try:
    raise nested
except* TypeError as group:
    r.append(len(group.exceptions))
except* ValueError as group:
    r.append(len(group.exceptions))

loop = []
for n in range(3):
    try:
        if n == 1:
            raise ExceptionGroup("g", [ValueError(n)])
    except* ValueError:
        loop.append(n)
r.append(loop)
