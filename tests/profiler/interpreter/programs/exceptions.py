"""Exceptions: chains, finally, suppress, custom classes."""

import contextlib
import traceback

r = []


class AppError(Exception):
    code = 1

    def __init__(self, message, *, detail=None):
        super().__init__(message)
        self.detail = detail

    def __str__(self):
        return f"[{self.code}] {self.args[0]} {self.detail}"


class SubError(AppError):
    code = 2


try:
    raise SubError("bad", detail={"k": 1})
except AppError as e:
    r.append([str(e), repr(e), e.args, e.detail, type(e).__mro__[1].__name__, isinstance(e, Exception)])

try:
    try:
        {}["missing"]
    except KeyError as inner:
        raise RuntimeError("outer") from inner
except RuntimeError as e:
    r.append([repr(e.__cause__), e.__suppress_context__, str(e)])

try:
    try:
        int("x")
    except ValueError:
        raise TypeError("second")
except TypeError as e:
    r.append([type(e.__context__).__name__, e.__cause__])


def order():
    log = []
    try:
        log.append("try")
        return log
    finally:
        log.append("finally")


def override():
    try:
        return "try"
    finally:
        return "finally"


def loop():
    out = []
    for i in range(5):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            out.append(i)
        except Exception:
            out.append("never")
        else:
            out.append("else")
        finally:
            out.append("f")
    else:
        out.append("loop else")
    return out


r += [order(), override(), loop()]


def nested():
    log = []
    try:
        try:
            raise ValueError(1)
        finally:
            log.append("inner")
    except ValueError as e:
        log.append(e.args)
    return log


r.append(nested())


def reraise():
    try:
        try:
            raise KeyError("k")
        except KeyError as e:
            e.args = ("changed",)
            raise
    except LookupError as e:
        return e.args


r.append(reraise())

for make in (
    lambda: [][0], lambda: {}["k"], lambda: 1 / 0, lambda: int("q"), lambda: None.x, lambda: "a" + 1, lambda: [1, 2].index(3),
    lambda: next(iter(())), lambda: {1}.remove(2), lambda: [].pop(), lambda: float("z"), lambda: len(3), lambda: (1, 2)[5],
    lambda: [1].remove(4), lambda: "abc".index("z"), lambda: dict(a=1).pop("b"), lambda: undefined_name, lambda: iter(5),
    lambda: 3(), lambda: {}.popitem(), lambda: chr(-1), lambda: int([]), lambda: [1, 2] < ["a"], lambda: 1 << -1,
    lambda: range(0, 1, 0), lambda: "x".encode("ascii").decode("ascii")[3], lambda: object().nope, lambda: {[]: 1},
    lambda: max([]), lambda: sum(["a"]), lambda: b"\xff".decode(), lambda: "%d" % "x", lambda: "{}{}".format(1),
    lambda: (lambda a: a)(), lambda: (lambda: 1)(2), lambda: (lambda a: a)(b=1), lambda: list(zip([1], [1, 2], strict=True)),
):  # fmt: skip
    try:
        make()
        r.append("no error")
    except Exception as e:
        r.append(type(e).__name__)

with contextlib.suppress(KeyError, ValueError):
    {}["k"]
    r.append("never")
r.append("after suppress")

try:
    assert 1 > 2, f"message {1}"
except AssertionError as e:
    r.append(str(e))
try:
    assert False
except AssertionError as e:
    r.append(e.args)

try:
    a, b = 1, 2, 3
except ValueError as e:
    r.append(str(e))
try:
    a, b, c = [1]
except ValueError as e:
    r.append(str(e))


class Manager:
    def __init__(self, swallow):
        self.swallow = swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.kind = kind and kind.__name__
        self.value = value and value.args
        return self.swallow


with Manager(True) as m:
    raise ValueError("in with")
r.append([m.kind, m.value])
try:
    with Manager(False) as m:
        raise IndexError("out")
except IndexError as e:
    r.append([m.kind, str(e)])

stack_log = []
with contextlib.ExitStack() as stack:
    for n in range(3):
        stack.callback(stack_log.append, n)
    stack.enter_context(Manager(True))
r.append(stack_log)


@contextlib.contextmanager
def managed(log):
    log.append("in")
    try:
        yield "value"
    except ValueError as e:
        log.append(f"caught {e}")
    finally:
        log.append("out")


log = []
with managed(log) as v:
    log.append(v)
    raise ValueError("x")
r.append(log)


@managed(log2 := [])
def decorated():
    return "result"


r.append([decorated(), log2])
with (
    contextlib.nullcontext(1) as one,
    contextlib.nullcontext(2) as two,
):
    r.append(one + two)

try:
    raise StopIteration("value")
except StopIteration as e:
    r.append(e.value)
try:
    raise SystemExit(3)
except SystemExit as e:
    r.append(e.code)
try:
    raise OSError(2, "No such file", "name")
except OSError as e:
    r.append([e.errno, e.strerror, e.filename])
e = ValueError("note")
e.add_note("more")
r.append(e.__notes__)
r.append([issubclass(ModuleNotFoundError, ImportError), issubclass(KeyError, LookupError), issubclass(TimeoutError, OSError)])
r.append(ValueError("a", 2).args)
r.append(repr(KeyError("k")))
r.append(str(KeyError("k")))
r.append([str(ValueError()), repr(ValueError())])
