"""``contextvars``."""

import contextvars
from contextvars import ContextVar, Token, copy_context

mode: ContextVar[str] = ContextVar("mode", default="eval")
plain = ContextVar("plain")
r = [mode.get(), plain.get("fallback"), mode.name]
token = mode.set("train")
r.append([mode.get(), token.old_value is Token.MISSING, token.var is mode])
inner = mode.set("deep")
r.append([mode.get(), inner.old_value])
mode.reset(inner)
r.append(mode.get())
mode.reset(token)
r.append(mode.get())
try:
    plain.get()
except LookupError as error:
    r.append(type(error).__name__)
context = copy_context()


def change(value):
    mode.set(value)
    return mode.get()


r.append([context.run(change, "inside"), mode.get(), context[mode], mode in context])
r.append(context.get(plain, 3))
r.append(len(contextvars.Context()))
