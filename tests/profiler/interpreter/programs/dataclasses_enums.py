"""``dataclasses``, ``enum`` and typing forms."""

import dataclasses
import enum
from dataclasses import KW_ONLY, InitVar, asdict, astuple, dataclass, field, fields, is_dataclass, make_dataclass, replace
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum, auto, unique
from typing import Any, ClassVar, Literal, Optional, TypedDict, Union, get_args, get_origin, get_type_hints

r = []


@dataclass
class Config:
    name: str
    sizes: list[int] = field(default_factory=list)
    lr: float = 1e-3
    shared: ClassVar[int] = 5
    hidden: int = field(default=0, repr=False, compare=False)
    scale: InitVar[float] = 1.0

    def __post_init__(self, scale):
        self.lr *= scale


c = Config("a", [1], scale=2.0)
r.append([repr(c), c.lr, asdict(c), astuple(c), [f.name for f in fields(c)], is_dataclass(Config)])
r.append([replace(c, name="b", scale=1.0).name, c == Config("a", [1], 2e-3), Config("x").sizes is Config("y").sizes])


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0

    @property
    def text(self):
        return f"{self.major}.{self.minor}"


r.append([Version(1) < Version(1, 1), sorted([Version(2), Version(1, 5)])[0].text])


@dataclass(kw_only=True, slots=True)
class Kw:
    a: int
    b: int = 2


r.append([Kw(a=1).b, Kw(a=1)])


@dataclass
class Base:
    x: int = 1
    _: KW_ONLY
    flag: bool = False


@dataclass
class Child(Base):
    y: int = 2
    items: dict[str, "Child"] = field(default_factory=dict)


r.append([Child(5, 6, flag=True), Child().items, asdict(Child(items={"k": Child(3)}))])
M = make_dataclass("M", ["x", ("y", int, field(default=4))])
r.append(M(1))


class Color(Enum):
    RED = 1
    GREEN = 2
    ALIAS = 1

    @property
    def pretty(self):
        return self.name.lower()

    @classmethod
    def default(cls):
        return cls.GREEN


r.append([Color.RED.name, Color(2).name, Color["RED"].value, Color.ALIAS is Color.RED, [m.name for m in Color], len(Color), Color.RED.pretty, Color.default().name, Color.RED in Color])
r.append([str(Color.RED), repr(Color.RED), list(Color.__members__), isinstance(Color.RED, Color), {Color.RED: 1}[Color.RED]])
try:
    Color(9)
except ValueError as e:
    r.append(str(e))


class Level(IntEnum):
    LOW = auto()
    HIGH = auto()


r.append([Level.LOW + 1, Level.HIGH > Level.LOW, sorted(Level)[0].name, int(Level.HIGH), f"{Level.HIGH}", Level(1) == 1])


class Mode(StrEnum):
    TRAIN = auto()
    EVAL = "evaluate"


r.append([Mode.TRAIN == "train", f"{Mode.EVAL}", Mode("train").name, Mode.TRAIN.upper()])


class Perm(Flag):
    R = auto()
    W = auto()
    RW = R | W


r.append([(Perm.R | Perm.W) == Perm.RW, bool(Perm.R & Perm.W), Perm.R in Perm.RW, Perm.RW.value])


class Old(str, Enum):
    A = "a"

    def __str__(self):
        return self.value


r.append([Old.A == "a", str(Old.A), f"{Old.A}", Old("a") is Old.A, "-".join([Old.A])])


class Planet(Enum):
    EARTH = (5.97e24, 6.37e6)
    MARS = (6.42e23, 3.39e6)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    @classmethod
    def _missing_(cls, value):
        return cls.EARTH


r.append([Planet.EARTH.mass, Planet("anything").name, Planet.MARS.value[1]])
Animal = Enum("Animal", "CAT DOG")
r.append([Animal.CAT.value, [a.name for a in Animal]])


class TD(TypedDict, total=False):
    a: int


r.append([TD(a=1), get_args(Literal["x", "y"]), get_origin(list[int]) is list, get_args(dict[str, int])])


def hinted(a: int, b: "str" = "") -> Optional[float]: ...


r.append([get_type_hints(hinted)["a"] is int, sorted(hinted.__annotations__)])
r.append([Config.__annotations__["name"] if isinstance(Config.__annotations__["name"], str) else Config.__annotations__["name"].__name__, Config.__dataclass_fields__["lr"].default])
r.append([isinstance(1, int | str), isinstance("a", (int, str))])
r.append([f.default is dataclasses.MISSING for f in fields(Config)])
