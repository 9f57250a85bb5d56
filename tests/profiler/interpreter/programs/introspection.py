"""What functions say of themselves."""

import functools
import inspect


def f(a, b=2, /, c=3, *args, d, e=5, **kwargs):
    """Doc."""
    local = a
    return local


code = f.__code__
r = [
    code.co_argcount,
    code.co_posonlyargcount,
    code.co_kwonlyargcount,
    code.co_varnames[: code.co_argcount],
    code.co_varnames,
    code.co_nlocals,
    code.co_name,
    code.co_flags & inspect.CO_VARARGS != 0,
    code.co_flags & inspect.CO_VARKEYWORDS != 0,
    f.__defaults__,
    f.__kwdefaults__,
    f.__name__,
    f.__doc__,
]
r.append(f.__code__.co_varnames[: f.__code__.co_argcount + f.__code__.co_kwonlyargcount])


def outer():
    x, y = 1, 2

    def inner(z):
        return x + y + z

    return inner


inner = outer()
r.append([inner.__code__.co_freevars, [c.cell_contents for c in inner.__closure__], f.__closure__])


def generator():
    yield


async def coroutine():
    pass


r.append([inspect.isgeneratorfunction(generator), inspect.iscoroutinefunction(coroutine), inspect.isfunction(f)])
signature = inspect.signature(f)
r.append([str(signature), list(signature.parameters)])
r.append([(p.name, p.kind.name, p.default is p.empty) for p in signature.parameters.values()])
bound = signature.bind(1, d=4)
bound.apply_defaults()
r.append(dict(bound.arguments))


class A:
    def __init__(self, width, depth: int = 2, **options):
        pass

    def method(self, x):
        return x

    @classmethod
    def make(cls, x):
        return cls

    @staticmethod
    def free(x):
        return x


r.append([str(inspect.signature(A)), list(inspect.signature(A.method).parameters)])
r.append([list(inspect.signature(A(1).method).parameters), list(inspect.signature(A.make).parameters)])
r.append(inspect.getfullargspec(A.__init__).args)
r.append([p for p, v in inspect.signature(A.__init__).parameters.items() if v.default is not inspect.Parameter.empty])
partial = functools.partial(f, 1, d=2)
r.append([partial.args, partial.keywords, partial.func is f])
r.append(list(inspect.signature(partial).parameters))


@functools.wraps(f)
def wrapped(*args, **kwargs):
    return f(*args, **kwargs)


r.append([wrapped.__name__, wrapped.__wrapped__ is f, wrapped.__doc__])
r.append(str(inspect.signature(wrapped)) == str(inspect.signature(f)))


def filtered(function, options):
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return function(**{k: v for k, v in options.items() if k in names})


def takes(width, depth):
    return width * depth


r.append(filtered(takes, {"width": 2, "depth": 3, "unused": 4}))
r.append([n for n, m in inspect.getmembers(A, inspect.isfunction) if not n.startswith("_")])
r.append(inspect.unwrap(wrapped) is f)
r.append([lambda x, y=1: x].pop().__code__.co_argcount)
f.__defaults__ = (7,)
r.append(f.__defaults__)
