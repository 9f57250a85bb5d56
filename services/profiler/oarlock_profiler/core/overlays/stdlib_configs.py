"""Configuration objects: ``omegaconf``, ``hydra``, ``yacs``, ``easydict``, ``addict``, ``munch``, ``ml_collections``.

All are dictionaries whose keys are also attributes. Hydra composes YAML of the bundle with overrides from the command
line; a missing file is an unknown by name.
"""

# ruff: noqa: PLW0108 - tables

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from oarlock_profiler.core.interpreter.builtin_types import DICT, DictInstance
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS
from oarlock_profiler.core.interpreter.values import MISSING, Class, Function, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import entry, linearise, native_class, register
from oarlock_profiler.core.overlays.stdlib_classes import deep
from oarlock_profiler.core.overlays.stdlib_dataclasses import fields_of
from oarlock_profiler.core.overlays.stdlib_files import load_yaml, open_file

LIBRARIES = (
    "omegaconf", "hydra", "yacs", "easydict", "addict", "munch", "ml_collections", "box", "attrdict", "confection",
    "dotmap",
    "pyhocon", "configargparse", "dotenv",
)  # fmt: skip
_DEPTH = 60


def _config_class(qualname: str, forgiving: bool) -> Class:
    """A dictionary class with attribute access; ``forgiving`` ones make a nested dictionary for a missing key."""

    def get(m: Any, self: DictInstance, name: str) -> Value:
        if name in self:
            return resolved(m, self, dict.__getitem__(self, name))
        if forgiving and not name.startswith("__"):
            made = DictInstance(self.cls)
            dict.__setitem__(self, name, made)
            return made
        return MISSING

    def set_(m: Any, self: DictInstance, name: str, value: Value) -> None:
        dict.__setitem__(self, name, wrap(self.cls, value))

    def set_item(m: Any, self: DictInstance, key: Value, value: Value) -> None:
        m.host(dict.__setitem__, self, key, wrap(self.cls, value))

    def init(m: Any, self: DictInstance, *args: Value, **kwargs: Value) -> None:
        DICT.namespace["update"].call(m, self, *args[:1], **kwargs)
        for key, value in list(self.items()):
            dict.__setitem__(self, key, wrap(self.cls, value))

    def get_item(m: Any, self: DictInstance, key: Value) -> Value:
        if isinstance(key, Unknown):
            return m.part(key)
        if key in self.keys():
            return resolved(m, self, dict.__getitem__(self, key))
        return m.fail("KeyError", f"{key!r} is not in the configuration"[:200])

    cls = Class(
        qualname.rpartition(".")[2],
        qualname,
        (DICT,),
        {
            "__init__": Native(f"{qualname}.__init__", init),
            "__getattr__": Native(f"{qualname}.__getattr__", get),
            "__setattr__": Native(f"{qualname}.__setattr__", set_),
            "__setitem__": Native(f"{qualname}.__setitem__", set_item),
            "__getitem__": Native(f"{qualname}.__getitem__", get_item),
            "__delattr__": Native(f"{qualname}.__delattr__", lambda m, self, name: dict.pop(self, name, None) and None),
        },
    )
    cls.mro = linearise(cls)
    cls.make = DictInstance
    return cls


def wrap(cls: Class, value: Value, depth: int = 0) -> Value:
    """Nested plain dictionaries become configurations too."""
    if depth > _DEPTH:
        return value
    if type(value) is dict:
        made = DictInstance(cls)
        for key, item in value.items():
            dict.__setitem__(made, key, wrap(cls, item, depth + 1))
        return made
    if type(value) is list:
        return [wrap(cls, item, depth + 1) for item in value]
    return value


def unwrap(value: Value, depth: int = 0) -> Value:
    """Back to plain dictionaries and lists."""
    if depth > _DEPTH:
        return value
    if isinstance(value, dict):
        return {k: unwrap(v, depth + 1) for k, v in value.items()}
    return [unwrap(v, depth + 1) for v in value] if isinstance(value, (list, tuple)) else value


CONFIG = _config_class("omegaconf.DictConfig", False)


def resolved(m: Any, holder: DictInstance, value: Value) -> Value:
    """``${a.b}`` interpolations of OmegaConf, by absolute path."""
    if type(value) is list and any(isinstance(item, str) and "${" in item for item in value):
        return [resolved(m, holder, item) for item in value]
    if not isinstance(value, str) or "${" not in value or len(value) > 1000:
        return value
    root = m.state.get("omegaconf root")
    for _ in range(20):
        start = value.rfind("${")
        end = value.find("}", start)
        if start < 0 or end < 0:
            return value
        path = value[start + 2 : end]
        found = _interpolated(m, root if isinstance(root, dict) else holder, path)
        if found is MISSING:
            return Unknown(f"the interpolation ${{{path}}} of the configuration", m.where, None, name=path)
        if start == 0 and end == len(value) - 1:
            if not isinstance(found, str) or "${" not in found:
                return found
            value = found
            continue
        if isinstance(found, (dict, list, Unknown)):
            return Unknown(f"the interpolation ${{{path}}} of the configuration", m.where, "str", name=path)
        value = f"{value[:start]}{found}{value[end + 1 :]}"
    return value


def _interpolated(m: Any, root: Value, path: str) -> Value:
    if path.startswith("oc.env:"):
        name, _, default = path[7:].partition(",")
        return m.request.environment.get(name, default or MISSING)
    resolver = m.state.get("omegaconf resolvers", {}).get(path.partition(":")[0])
    if ":" in path:
        return (
            MISSING
            if resolver is None
            else m.call(resolver, [_scalar(a.strip()) for a in path.partition(":")[2].split(",")])
        )
    value = root
    for part in path.lstrip(".").replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict) and dict.__contains__(value, part):
            value = dict.__getitem__(value, part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def _scalar(text: str) -> Value:
    import yaml  # noqa: PLC0415

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _remember(m: Any, config: Value) -> Value:
    m.state.setdefault("omegaconf root", config)
    return config


@entry("omegaconf.OmegaConf.create", "omegaconf.OmegaConf.structured")
def create(m: Any, value: Value = None, *_args: Value, **_kw: Value) -> Value:
    if value is None:
        value = {}
    if isinstance(value, Unknown):
        return value
    if isinstance(value, str):
        value = load_yaml(m, value)
    if isinstance(value, Class) or (isinstance(value, Instance) and fields_of(m, value.cls)):
        value = _structured(m, value)
    return _remember(m, wrap(CONFIG, unwrap(value)))


def _structured(m: Any, value: Value) -> Value:
    made = m.call(value) if isinstance(value, Class) else value
    if not isinstance(made, Instance):
        return {}
    return {
        n: _structured(m, v) if isinstance(v, Instance) and fields_of(m, v.cls) else v for n, v in made.attrs.items()
    }


@entry("omegaconf.OmegaConf.load")
def load(m: Any, path: Value) -> Value:
    file = open_file(m, path) if isinstance(path, str) or not hasattr(path, "rest") else path
    value = load_yaml(m, file)
    return value if isinstance(value, Unknown) else _remember(m, wrap(CONFIG, value if value is not None else {}))


def merged(one: Value, other: Value, depth: int = 0) -> Value:
    """``other`` over ``one``, dictionaries key by key."""
    if not isinstance(one, dict) or not isinstance(other, dict) or depth > _DEPTH:
        return other
    out = dict(one)
    for key, value in other.items():
        out[key] = merged(out[key], value, depth + 1) if key in out else value
    return out


@entry("omegaconf.OmegaConf.merge", "omegaconf.OmegaConf.unsafe_merge")
def merge(m: Any, *configs: Value) -> Value:
    total: Value = {}
    for one in configs:
        if isinstance(one, Unknown):
            continue
        if isinstance(one, Class) or (isinstance(one, Instance) and not isinstance(one, dict)):
            one = _structured(m, one)
        total = merged(total, unwrap(one)) if isinstance(one, dict) else total
    config = wrap(CONFIG, total)
    m.state["omegaconf root"] = config
    return config


@entry("omegaconf.OmegaConf.to_container", "omegaconf.OmegaConf.to_object")
def to_container(m: Any, config: Value, *_args: Value, **_kw: Value) -> Value:
    return config if isinstance(config, Unknown) else _resolve_all(m, config, 0)


def _resolve_all(m: Any, value: Value, depth: int) -> Value:
    if depth > _DEPTH:
        return value
    if isinstance(value, DictInstance):
        return {k: _resolve_all(m, resolved(m, value, v), depth + 1) for k, v in value.items()}
    return [_resolve_all(m, v, depth + 1) for v in value] if isinstance(value, list) else value


@entry("omegaconf.OmegaConf.from_dotlist", "omegaconf.OmegaConf.from_cli")
def from_dotlist(m: Any, words: Value = None) -> Value:
    given = m.listed(words) if words is not None else list(m.request.arguments)
    out: dict[str, Value] = {}
    for word in given:
        if isinstance(word, str) and "=" in word:
            set_path(out, *_override(word))
    return wrap(CONFIG, out)


def _override(word: str) -> tuple[str, Value]:
    key, _, value = word.partition("=")
    return key.lstrip("+~-"), _scalar(value) if value else None


def set_path(config: dict[Any, Value], path: str, value: Value) -> None:
    """``a.b.c = value``, making what is missing on the way."""
    parts = path.split(".")
    for part in parts[:-1][:_DEPTH]:
        inner = config.get(part)
        if not isinstance(inner, dict):
            inner = {}
            dict.__setitem__(config, part, inner)
        config = inner
    dict.__setitem__(config, parts[-1], value)


@entry("omegaconf.OmegaConf.update")
def update(m: Any, config: Value, path: Value, value: Value = None, **_kw: Value) -> None:
    if isinstance(config, dict) and isinstance(path, str):
        set_path(config, path, wrap(CONFIG, value))


@entry("omegaconf.OmegaConf.select")
def select(m: Any, config: Value, path: Value, default: Value = None, **_kw: Value) -> Value:
    value = _interpolated(m, config, path) if isinstance(path, str) else MISSING
    return default if value is MISSING else value


@entry("omegaconf.OmegaConf.register_new_resolver", "omegaconf.OmegaConf.register_resolver")
def register_resolver(m: Any, name: Value, function: Value, *_args: Value, **_kw: Value) -> None:
    m.state.setdefault("omegaconf resolvers", {})[name] = function


register("omegaconf.OmegaConf.to_yaml", Native("to_yaml", lambda m, *_a, **_k: m.derived("YAML text", "str")))
for _name in ("set_struct", "set_readonly", "resolve", "save"):
    register(f"omegaconf.OmegaConf.{_name}", Native(_name, lambda _m, *_a, **_k: None))
register("omegaconf.OmegaConf.is_config", Native("is_config", lambda _m, value: isinstance(value, DictInstance)))
register("omegaconf.OmegaConf.is_missing", Native("is_missing", lambda _m, config, key: config.get(key) == "???"))
register("omegaconf.DictConfig", CONFIG)
register("omegaconf.ListConfig", native_class("omegaconf.ListConfig"))
register("omegaconf.MISSING", "???")
register("omegaconf.II", Native("II", lambda _m, path: f"${{{path}}}"))
register(
    "omegaconf.open_dict",
    Native("open_dict", lambda m, *_a: m.call(m.getattr(m.importer.load("contextlib"), "nullcontext"))),
)
register(
    "omegaconf.read_write",
    Native("read_write", lambda m, *_a: m.call(m.getattr(m.importer.load("contextlib"), "nullcontext"))),
)

# -- hydra -----------------------------------------------------------------------------------------------------------


def _yaml_file(m: Any, base: str, name: str) -> Value:
    for path in (posixpath.join(base, name), posixpath.join(base, f"{name}.yaml"), posixpath.join(base, f"{name}.yml")):
        folder = posixpath.dirname(m.request.entry)
        for candidate in (posixpath.normpath(posixpath.join(folder, path)), posixpath.normpath(path)):
            data = None if candidate.startswith("..") else m.sources.read(candidate)
            if data is not None:
                m.findings.fact("file read", candidate, m.where)
                return load_yaml(m, data)
    return m.unknown(f"the configuration {posixpath.join(base, name)} is not in the bundle", hint="dict", name=name)


def compose_config(m: Any, base: str, name: str, overrides: Sequence[str], depth: int = 0) -> Value:
    """Hydra's composition: the defaults list in order, the file's own keys at ``_self_``, then overrides."""
    own = _yaml_file(m, base, name)
    if not isinstance(own, dict):
        return own if isinstance(own, Unknown) else {}
    defaults = own.pop("defaults", None)
    chosen = {k: v for k, _, v in (o.lstrip("+").partition("=") for o in overrides)}
    total: Value = {}
    placed = False
    for item in defaults if isinstance(defaults, list) and depth < 20 else ():
        if item == "_self_":
            total, placed = merged(total, own), True
        elif isinstance(item, str):
            loaded = compose_config(m, base, item, (), depth + 1)
            group = posixpath.dirname(item.lstrip("/"))
            total = merged(total, _packaged(loaded, group))
        elif isinstance(item, dict):
            total = _group(m, base, item, chosen, total, depth)
    if not placed:
        total = merged(total, own)
    for word in overrides:
        key, equals, _ = word.partition("=")
        plain = key.lstrip("+")
        if not equals:
            continue
        if not key.startswith("+") and _is_group(m, base, plain):
            continue
        set_path(total, *_override(word))
    return total


def _packaged(value: Value, group: str) -> Value:
    if not isinstance(value, dict):
        return {}
    for part in reversed([p for p in group.split("/") if p]):
        value = {part: value}
    return value


def _is_group(m: Any, base: str, name: str) -> bool:
    folder = posixpath.dirname(m.request.entry)
    return any(list(m.sources.listdir(posixpath.normpath(posixpath.join(f, base, name)))) for f in {folder, ""})


def _group(m: Any, base: str, item: dict[str, Value], chosen: dict[str, str], total: Value, depth: int) -> Value:
    for key, value in item.items():
        words = str(key).split()
        group = words[-1]
        if words[0] == "override" or group.startswith("hydra"):
            continue
        group, _, package = group.partition("@")
        value = chosen.get(group, value)
        if value is None or value in ("null", "???"):
            if value == "???":
                m.findings.gap(f"configuration group {group}", m.where, "it must be chosen on the command line")
            continue
        for one in value if isinstance(value, list) else [value]:
            loaded = compose_config(m, posixpath.join(base, group.lstrip("/")), str(one), (), depth + 1)
            total = merged(total, _packaged(loaded, (package or group).replace(".", "/").lstrip("/")))
    return total


@entry("hydra.main")
def hydra_main(m: Any, config_path: Value = None, config_name: Value = None, *_args: Value, **_kw: Value) -> Value:
    if isinstance(config_path, Function):
        return config_path

    def decorate(m: Any, function: Value) -> Value:
        def run(m: Any, *given: Value, **_named: Value) -> Value:
            if given:
                return m.call(function, given)
            words = [w for w in m.request.arguments if "=" in w and not w.startswith("--")]
            base = config_path if isinstance(config_path, str) else ""
            name = config_name if isinstance(config_name, str) else None
            arguments = list(m.request.arguments)
            for flag in ("--config-name", "-cn"):
                if flag in arguments[:-1]:
                    name = arguments[arguments.index(flag) + 1]
            for word in arguments:
                if word.startswith("--config-name="):
                    name = word.partition("=")[2]
            stored = m.state.get("hydra store", {})
            if name is None:
                config: Value = {}
            elif name in stored:
                config = dict(stored[name])
                for word in words:
                    set_path(config, *_override(word))
            else:
                config = compose_config(m, base, name.removesuffix(".yaml"), words)
            if isinstance(config, Unknown):
                return m.call(function, [config])
            made = wrap(CONFIG, config)
            m.state["omegaconf root"] = made
            note_missing(m, made, "")
            return m.call(function, [made])

        return Native("hydra.main", run)

    return Native("hydra.main", decorate)


def note_missing(m: Any, config: Any, prefix: str, depth: int = 0) -> None:
    """``???`` values must be given on the command line."""
    for key, value in list(config.items()):
        path = f"{prefix}{key}"
        if value == "???":
            m.findings.gap(f"argument {path}", m.where, "it is required (???) and was not given")
            dict.__setitem__(config, key, Unknown(f"argument {path} was not given", m.where, None, name=path))
        elif isinstance(value, dict) and depth < _DEPTH:
            note_missing(m, value, f"{path}.", depth + 1)


class _Store(Instance):
    """``ConfigStore.instance()``."""


def _store(
    m: Any, self: Value, name: Value = None, node: Value = None, group: Value = None, *_args: Value, **_kw: Value
) -> None:
    if isinstance(name, str) and group is None:
        structured = _structured(m, node) if not isinstance(node, dict) else node
        m.state.setdefault("hydra store", {})[name] = unwrap(structured)


_STORE_CLASS = native_class("hydra.core.config_store.ConfigStore", store=_store)
register("hydra.core.config_store.ConfigStore", _STORE_CLASS)
register("hydra.core.config_store.ConfigStore.instance", Native("instance", lambda _m: _Store(_STORE_CLASS)))


@entry("hydra.compose")
def compose(m: Any, config_name: Value = None, overrides: Value = (), **_kw: Value) -> Value:
    base = m.state.get("hydra base", "")
    words = [w for w in m.listed(overrides) if isinstance(w, str)]
    config = compose_config(m, base, str(config_name).removesuffix(".yaml"), words)
    return _remember(m, wrap(CONFIG, config))


@entry("hydra.initialize", "hydra.initialize_config_dir", "hydra.experimental.initialize")
def initialize(m: Any, config_path: Value = "", *_args: Value, config_dir: Value = None, **_kw: Value) -> Value:
    given = config_dir if config_dir is not None else config_path
    m.state["hydra base"] = given.removeprefix("/bundle/") if isinstance(given, str) else ""
    return m.call(m.getattr(m.importer.load("contextlib"), "nullcontext"))


def _imported(m: Any, path: str) -> Value:
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        with m.quiet():
            module = m.importer.load(".".join(parts[:end]))
        if isinstance(module, Unknown) and end > 1:
            continue
        value = module
        for part in parts[end:]:
            value = m.getattr(value, part)
        return value
    return m.importer.load(path)


@entry("hydra.utils.instantiate", "hydra.utils.call")
def instantiate(m: Any, config: Value = None, *args: Value, **kwargs: Value) -> Value:
    """``_target_`` called with the other keys, nested ones first."""
    if isinstance(config, Unknown) or config is None:
        return config
    if isinstance(config, list):
        return [instantiate(m, one) for one in config]
    if not isinstance(config, dict):
        return config
    target = config.get("_target_")
    recursive = config.get("_recursive_", True)
    given: dict[str, Value] = {}
    for key in list(config):
        if isinstance(key, str) and not (key.startswith("_") and key.endswith("_")):
            value = (
                resolved(m, config, dict.__getitem__(config, key)) if isinstance(config, DictInstance) else config[key]
            )
            given[key] = instantiate(m, value) if recursive is not False and isinstance(value, (dict, list)) else value
    given.update(kwargs)
    if target is None:
        return wrap(CONFIG, given) if not kwargs and isinstance(config, DictInstance) else given
    function = _imported(m, target) if isinstance(target, str) else target
    if config.get("_partial_") is True:
        return m.call(m.getattr(m.importer.load("functools"), "partial"), [function, *args], given)
    positional = [*args, *(config.get("_args_") or [])]
    return m.call(function, positional, given)


for _name in ("get_class", "get_method", "get_object"):
    register(f"hydra.utils.{_name}", Native(f"hydra.utils.{_name}", lambda m, path: _imported(m, path)))
for _name in ("get_original_cwd",):
    register(f"hydra.utils.{_name}", Native(f"hydra.utils.{_name}", lambda _m: "/bundle"))
register("hydra.utils.to_absolute_path", Native("to_absolute_path", lambda _m, path: path))
register(
    "hydra.core.hydra_config.HydraConfig.get", Native("HydraConfig.get", lambda m: m.derived("hydra's own settings"))
)
register(
    "hydra.core.global_hydra.GlobalHydra.instance",
    Native("GlobalHydra.instance", lambda m: m.derived("hydra's own settings")),
)

# -- the others ------------------------------------------------------------------------------------------------------

for _name, _forgiving in (
    ("easydict.EasyDict", False),
    ("addict.Dict", True),
    ("munch.Munch", False),
    ("ml_collections.ConfigDict", False),
    ("box.Box", False),
    ("attrdict.AttrDict", False),
    ("dotmap.DotMap", True),
):
    register(_name, _config_class(_name, _forgiving))
register("ml_collections.config_dict.ConfigDict", _config_class("ml_collections.ConfigDict", False))
register("ml_collections.config_dict.placeholder", Native("placeholder", lambda _m, *_a, **_k: None))
_MUNCH = _config_class("munch.Munch", False)
register("munch.munchify", Native("munchify", lambda _m, value: wrap(_MUNCH, value)))
YACS = _config_class("yacs.config.CfgNode", False)


def _merge_file(m: Any, self: DictInstance, path: Value) -> None:
    loaded = load_yaml(m, open_file(m, path))
    if isinstance(loaded, dict):
        for key, value in merged(unwrap(self), loaded).items():
            dict.__setitem__(self, key, wrap(self.cls, value))


def _merge_list(m: Any, self: DictInstance, words: Value) -> None:
    given = m.listed(words) if words is not None else []
    for key, value in zip(given[::2], given[1::2], strict=False):
        if isinstance(key, str):
            set_path(self, key, wrap(self.cls, _scalar(value) if isinstance(value, str) else value))


def _merge_other(m: Any, self: DictInstance, other: Value) -> None:
    if isinstance(other, dict):
        for key, value in merged(unwrap(self), unwrap(other)).items():
            dict.__setitem__(self, key, wrap(self.cls, value))


YACS.namespace.update(
    {
        "merge_from_file": Native("CfgNode.merge_from_file", _merge_file),
        "merge_from_list": Native("CfgNode.merge_from_list", _merge_list),
        "merge_from_other_cfg": Native("CfgNode.merge_from_other_cfg", _merge_other),
        "freeze": Native("CfgNode.freeze", lambda _m, _self: None),
        "defrost": Native("CfgNode.defrost", lambda _m, _self: None),
        "is_frozen": Native("CfgNode.is_frozen", lambda _m, _self: False),
        "clone": Native("CfgNode.clone", lambda m, self: deep(m, self, {})),
        "dump": Native("CfgNode.dump", lambda m, *_a, **_k: m.derived("YAML text", "str")),
        "set_new_allowed": Native("CfgNode.set_new_allowed", lambda _m, *_a: None),
        "register_renamed_key": Native("CfgNode.register_renamed_key", lambda _m, *_a: None),
    }
)
register("yacs.config.CfgNode", YACS)
register("yacs.config.load_cfg", Native("load_cfg", lambda m, file: wrap(YACS, load_yaml(m, file))))
register("dotenv.load_dotenv", Native("load_dotenv", lambda _m, *_a, **_k: True))
_ERRORS = EXCEPTIONS
for _name in (
    "omegaconf.errors.ConfigAttributeError",
    "omegaconf.errors.ConfigKeyError",
    "hydra.errors.MissingConfigException",
):
    register(_name, _ERRORS["Exception"])
