"""``torch.nn.Module`` and ``paddle.nn.Layer``: what every layer can do, and the containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oarlock_profiler.core.engine.dtypes import is_floating
from oarlock_profiler.core.engine.engine import flatten_tensors
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.descriptors import Property
from oarlock_profiler.core.interpreter.errors import Raised, exception
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Context,
    HostObject,
    Iteration,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.calling import dtype_name, engine_of, integers
from oarlock_profiler.core.overlays.devices import move_in_place, place_of, targets
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torch", "paddle")


class Handle(HostObject):
    """What registering a hook gives: ``remove()`` takes it off again."""

    def __init__(self, hooks: list[Value], hook: Value) -> None:
        self.hooks = hooks
        self.hook = hook

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "remove":
            return Native("remove", lambda c: self.hooks.remove(self.hook) if self.hook in self.hooks else None)
        return 0 if name == "id" else MISSING


def _listing(context: Context, items: Sequence[Value]) -> Value:
    """A list in PaddlePaddle, an iterator in PyTorch (given as something that is both)."""
    return list(items) if context.engine.framework == "paddle" else iterator(items)


def iterator(items: Sequence[Value]) -> Value:
    """A host iterator: the interpreter's ``next``, ``list`` and loops take it."""
    return iter(list(items))


# --- running
# -----------------------------------------------------------------------------------------------------------
def call_layer(context: Context, self: Value, *args: Value, **kwargs: Value) -> Value:
    """``layer(...)``: pre-hooks, ``forward``, hooks; notes what the layer gave.

    The arguments stay alive while ``forward`` runs, as the frameworks' own ``__call__`` holds them.
    """
    if not isinstance(self, LayerInstance):
        return context.unknown("a call of something that is no layer")
    engine = engine_of(context)
    if self.path is None or not engine.module_stack:
        if self.path is None:
            self.assign_paths()
        if not engine.module_stack:
            if self not in engine.roots:
                engine.release_dropped_models()
                engine.roots.append(self)
                self.assign_paths()
            if engine.trace.phase == "setup":
                engine.trace.phase = "forward"
            engine.note_inputs(self, [*args, *kwargs.values()])
    if len(engine.module_stack) > 200:
        return context.unknown("layers nested more than 200 deep")
    positional: list[Value] = list(args)
    del args
    for hook in list(self.pre_hooks):
        changed = context.call(hook, (self, tuple(positional)))
        if changed is not None and not isinstance(changed, Unknown):
            positional = list(changed) if isinstance(changed, tuple) else [changed]
    self.stats.calls += 1
    engine.module_stack.append(self)
    try:
        forward = self.attrs.get("forward", MISSING)
        if forward is MISSING:
            found = self.cls.lookup("forward")
            if found is MISSING:
                return context.unknown(f"{self.cls.qualname} has no forward")
            if type(found) is Native and found.name.startswith(("torch.", "paddle.")):
                result = _native_forward(context, self, found, positional, kwargs)
            else:
                bound = context.getattr(self, "forward")
                result = context.call(bound, positional, kwargs)
        else:
            result = context.call(forward, positional, kwargs)
    finally:
        engine.module_stack.pop()
    if self.stats.calls <= 1:
        for tensor in flatten_tensors(result)[:16]:
            if tensor.shape is not None:
                self.stats.output_shapes.append(tensor.shape)
    for hook in list(self.forward_hooks):
        changed = context.call(hook, (self, tuple(positional), result))
        if changed is not None and not isinstance(changed, Unknown):
            result = changed
    return result


def _native_forward(
    context: Context, self: LayerInstance, found: Native, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    return found.call(context, self, *args, **kwargs)


# --- members
# -----------------------------------------------------------------------------------------------------------
def _init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
    del args, kwargs
    self.where = self.where or context.where


def register_buffer(
    context: Context,
    self: LayerInstance,
    name: Value,
    tensor: Value = None,
    persistable: Value = True,
    persistent: Value = True,
) -> None:
    """A tensor that moves with the layer and is not trained."""
    if isinstance(name, str):
        self.attrs[name] = tensor
        self.buffer_names[name] = persistent is not False and persistable is not False
        if isinstance(tensor, Tensor) and tensor.storage is not None and tensor.storage.kind == "activation":
            tensor.storage.retag("buffer")
    del context


def register_parameter(
    context: Context, self: LayerInstance, name: Value, param: Value = None, parameter: Value = None
) -> Value:
    """A parameter under a name (None keeps the name free)."""
    del context
    given = param if param is not None else parameter
    if isinstance(name, str):
        if isinstance(given, Tensor):
            given.is_parameter = True
        self.attrs[name] = given
    return given


def add_module(
    context: Context, self: LayerInstance, name: Value, module: Value = None, sublayer: Value = None
) -> Value:
    """A child under a name."""
    del context
    given = module if module is not None else sublayer
    self.attrs[str(name)] = given
    return given


def create_parameter(
    context: Context,
    self: LayerInstance,
    shape: Value = None,
    attr: Value = None,
    dtype: Value = None,
    is_bias: Value = False,
    default_initializer: Value = None,
) -> Value:
    """PaddlePaddle's maker of parameters; ``attr`` False makes none."""
    del self, is_bias
    if attr is False:
        return None
    initializer = getattr(attr, "fields", {}).get("initializer") or default_initializer
    assigned = getattr(initializer, "shape", None)
    return parameter(context, assigned if assigned is not None else integers(shape), attr, dtype_name(dtype))


def create_tensor(
    context: Context, self: LayerInstance, name: Value = None, persistable: Value = None, dtype: Value = None
) -> Value:
    """An empty tensor for later."""
    del self, name, persistable
    return engine_of(context).tensor((0,), dtype_name(dtype))


def parameter(
    context: Context, shape: Sequence[int], attr: Value = None, dtype: str | None = None, device: str | None = None
) -> Tensor:
    """A new parameter, trainable unless its ``ParamAttr`` says otherwise."""
    engine = engine_of(context)
    made = engine.parameter(shape, dtype, device=device)
    trainable = getattr(attr, "trainable", True)
    if trainable is False:
        made.requires_grad = False
    name = getattr(attr, "parameter_name", None)
    made.name = name if isinstance(name, str) else None
    return made


def _owns(context: Context, layer: LayerInstance) -> None:
    owners = engine_of(context).owners
    if layer not in owners:
        owners.append(layer)


def parameters(context: Context, self: LayerInstance, recurse: Value = True, include_sublayers: Value = True) -> Value:
    """All parameters, each once."""
    if recurse is False or include_sublayers is False:
        return _listing(context, [p for _, p in self.own_parameters()])
    _owns(context, self)
    return _listing(context, [p for _, p in self.named_parameters()])


def named_parameters(
    context: Context,
    self: LayerInstance,
    prefix: Value = "",
    recurse: Value = True,
    remove_duplicate: Value = True,
    include_sublayers: Value = True,
) -> Value:
    """``(name, parameter)`` pairs."""
    start = prefix if isinstance(prefix, str) else ""
    if recurse is False or include_sublayers is False:
        return iterator([(f"{start}.{n}" if start else n, p) for n, p in self.own_parameters()])
    _owns(context, self)
    return iterator(list(self.named_parameters(start, remove_duplicate is not False)))


def buffers(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
    """All buffers."""
    del args, kwargs
    return _listing(context, [b for _, b in self.named_buffers()])


def named_buffers(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
    """``(name, buffer)`` pairs."""
    del context, args, kwargs
    return iterator(list(self.named_buffers()))


def children(context: Context, self: LayerInstance) -> Value:
    """Direct children."""
    del context
    return iterator([child for _, child in self.children()])


def named_children(context: Context, self: LayerInstance) -> Value:
    """``(name, child)`` pairs."""
    del context
    return iterator(list(self.children()))


def modules(context: Context, self: LayerInstance) -> Value:
    """This layer and all below."""
    del context
    return iterator([m for _, m in self.named_modules()])


def named_modules(
    context: Context, self: LayerInstance, memo: Value = None, prefix: Value = "", remove_duplicate: Value = True
) -> Value:
    """``(path, layer)`` pairs."""
    del context, memo
    return iterator(
        list(self.named_modules(prefix if isinstance(prefix, str) else "", None, remove_duplicate is not False))
    )


def sublayers(context: Context, self: LayerInstance, include_self: Value = False) -> Value:
    """All below, as a list."""
    del context
    found = [m for _, m in self.named_modules()]
    return found if include_self is True else found[1:]


def named_sublayers(
    context: Context, self: LayerInstance, prefix: Value = "", include_self: Value = False, layers_set: Value = None
) -> Value:
    """``(path, layer)`` pairs of all below."""
    del context, layers_set
    found = list(self.named_modules(prefix if isinstance(prefix, str) else ""))
    return iterator(found if include_self is True else found[1:])


def get_submodule(context: Context, self: LayerInstance, target: Value) -> Value:
    """The layer at a dotted path."""
    found: Value = self
    for part in str(target).split(".") if target else []:
        found = context.getattr(found, part)
    return found


def state_dict(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
    """Parameters and persistent buffers by path."""
    del context, args, kwargs
    found: dict[Value, Value] = dict(self.named_parameters(remove_duplicate=False))
    for path, module in self.named_modules():
        for name, buffer in module.own_buffers():
            if module.buffer_names.get(name, True):
                found[f"{path}.{name}" if path else name] = buffer
    return found


class Keys(HostObject):
    """The result of loading a state: which keys were missing is not known, so none."""

    def py_getattr(self, context: Context, name: str) -> Value:
        return [] if name in ("missing_keys", "unexpected_keys") else MISSING

    def py_iterate(self, context: Context) -> Iteration:
        return Iteration(iter([[], []]))

    def py_getitem(self, context: Context, key: Value) -> Value:
        return []


def load_state_dict(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
    """Contents are copied; sizes stay."""
    del context, self, args, kwargs
    return Keys()


# --- changing all
# ------------------------------------------------------------------------------------------------------
def apply(context: Context, self: LayerInstance, fn: Value) -> Value:
    """``fn`` on every layer, children first."""
    for _, child in list(self.children()):
        apply(context, child, fn)
    context.call(fn, (self,))
    return self


def _move(context: Context, self: LayerInstance, device: str | None, dtype: str | None) -> LayerInstance:
    seen: set[int] = set()
    for _, module in self.named_modules():
        for name, value in [*module.own_parameters(), *module.own_buffers()]:
            del name
            if id(value) in seen:
                continue
            seen.add(id(value))
            move_in_place(context, value, device, dtype if dtype is not None and is_floating(value.dtype) else None)
    return self


def to(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
    """To a device or a type, in place."""
    device, dtype = targets(context, args, kwargs)
    if args and isinstance(args[0], Unknown) and device is None and dtype is None:
        device = "gpu:0"
    return _move(context, self, device, dtype)


def cuda(context: Context, self: LayerInstance, device: Value = None) -> Value:
    """To the accelerator."""
    return _move(context, self, place_of(context, device) or "gpu:0", None)


def cpu(context: Context, self: LayerInstance) -> Value:
    """To the host."""
    return _move(context, self, "cpu", None)


def _typed(dtype: str) -> Callable[..., Value]:
    def call(context: Context, self: LayerInstance, **kwargs: Value) -> Value:
        del kwargs
        return _move(context, self, None, dtype)

    return call


def set_type(context: Context, self: LayerInstance, dtype: Value) -> Value:
    """To a type."""
    return _move(context, self, None, dtype_name(dtype))


def train(context: Context, self: LayerInstance, mode: Value = True) -> Value:
    """Training behaviour for all."""
    del context
    for _, module in self.named_modules():
        module.attrs["training"] = mode is not False
    return self


def evaluate(context: Context, self: LayerInstance) -> Value:
    """Evaluation behaviour for all."""
    return train(context, self, False)


def requires_grad_(context: Context, self: LayerInstance, requires_grad: Value = True) -> Value:
    """Freeze or unfreeze all parameters."""
    del context
    for _, value in self.named_parameters():
        value.requires_grad = requires_grad is not False
    return self


def zero_grad(context: Context, self: LayerInstance, set_to_none: Value = True) -> None:
    """Drop the gradients (or zero and keep them)."""
    del context
    for _, value in self.named_parameters():
        if set_to_none is not False:
            value.grad = None
            value.cleared = False


def clear_gradients(context: Context, self: LayerInstance, set_to_zero: Value = True) -> None:
    """PaddlePaddle zeroes the gradients and keeps their memory."""
    del context
    for _, value in self.named_parameters():
        if value.grad is None:
            continue
        if set_to_zero is False:
            value.grad, value.cleared = None, False
        else:
            value.cleared = True


def register_forward_hook(context: Context, self: LayerInstance, hook: Value, **kwargs: Value) -> Value:
    """Called after ``forward`` with (layer, inputs, output)."""
    del context
    if kwargs.get("with_kwargs") is True:
        given = hook
        hook = Native("hook", lambda c, layer, args, out: c.call(given, (layer, args, {}, out)))
    self.forward_hooks.append(hook)
    return Handle(self.forward_hooks, hook)


def register_forward_pre_hook(context: Context, self: LayerInstance, hook: Value, **kwargs: Value) -> Value:
    """Called before ``forward`` with (layer, inputs)."""
    del context
    if kwargs.get("with_kwargs") is True:
        return Handle([], hook)
    self.pre_hooks.append(hook)
    return Handle(self.pre_hooks, hook)


def _ignored_hook(context: Context, self: LayerInstance, hook: Value = None, **kwargs: Value) -> Value:
    del context, self, kwargs
    return Handle([], hook)


def full_name(context: Context, self: LayerInstance) -> Value:
    """A unique name."""
    del context
    return f"{self.cls.name.lower()}_0"


def deepcopy(context: Context, self: LayerInstance, memo: Value = None) -> Value:
    """A copy of the layer and all below, with memory of its own."""
    del memo
    return _copied(context, self, {})


def _copied(context: Context, value: Value, done: dict[int, Value]) -> Value:
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, Tensor):
        if value.shape is None or value.storage is None:
            return value
        made = engine_of(context).tensor(
            value.shape,
            value.dtype,
            kind=value.storage.kind,
            device=value.device,
            requires_grad=value.requires_grad,
            value=value.value,
        )
        made.is_parameter, made.name = value.is_parameter, value.name
        done[id(value)] = made
        return made
    if isinstance(value, LayerInstance):
        layer = LayerInstance(value.cls)
        done[id(value)] = layer
        layer.where = value.where
        layer.buffer_names = dict(value.buffer_names)
        layer.config = {k: _copied(context, v, done) for k, v in value.config.items()}
        layer.forward_hooks, layer.pre_hooks = list(value.forward_hooks), list(value.pre_hooks)
        for name, item in value.attrs.items():
            layer.attrs[name] = _copied(context, item, done)
        return layer
    if type(value) in (list, tuple):
        return type(value)(_copied(context, item, done) for item in value)
    if type(value) is dict:
        return {key: _copied(context, item, done) for key, item in value.items()}
    if isinstance(value, BoundMethod) and id(value.receiver) in done:
        return BoundMethod(value.function, done[id(value.receiver)])
    return value


def _missing(context: Context, self: LayerInstance, name: Value) -> Value:
    """A name that is nowhere; PaddlePaddle's layers keep much of what they were given behind an underscore."""
    del context
    layer = any(c.qualname.startswith("paddle.nn.") and c is not MODULE["paddle"] for c in self.cls.mro)
    if layer and isinstance(name, str) and name.startswith("_"):
        words = ("weight_attr", "param_attr") if name in ("_weight_attr", "_param_attr") else (name[1:],)
        for word in words:
            given = self.attrs.get(word, self.config.get("given", {}).get(word, MISSING))
            if given is not MISSING and not isinstance(given, Tensor | LayerInstance):
                return given
        if name.endswith("_attr") or name == "_name":
            return None
    raise Raised(exception("AttributeError", f"{self.cls.name} has no attribute {name!r}"), implicit=True)


def _view_of(read: Callable[[LayerInstance], Value]) -> Property:
    """A read-only attribute computed from the layer."""
    return Property(Native("attribute", lambda context, self: read(self)))


PROPERTIES = {
    "_modules": _view_of(lambda self: dict(self.children())),
    "_sub_layers": _view_of(lambda self: dict(self.children())),
    "_parameters": _view_of(lambda self: dict(self.own_parameters())),
    "_buffers": _view_of(lambda self: dict(self.own_buffers())),
    "_forward_hooks": _view_of(lambda self: {}),
    "_forward_pre_hooks": _view_of(lambda self: {}),
    "_backward_hooks": _view_of(lambda self: {}),
}

METHODS: dict[str, Callable[..., Value]] = {
    "__init__": _init, "__call__": call_layer, "__getattr__": _missing, "__deepcopy__": deepcopy,
    "register_buffer": register_buffer, "register_parameter": register_parameter, "add_parameter": register_parameter,
    "add_module": add_module, "register_module": add_module, "add_sublayer": add_module,
    "create_parameter": create_parameter, "create_tensor": create_tensor, "create_variable": create_tensor,
    "parameters": parameters, "named_parameters": named_parameters, "buffers": buffers, "named_buffers": named_buffers,
    "children": children, "named_children": named_children, "modules": modules, "named_modules": named_modules,
    "sublayers": sublayers, "named_sublayers": named_sublayers, "get_submodule": get_submodule,
    "get_sublayer": get_submodule, "get_parameter": get_submodule, "get_buffer": get_submodule,
    "state_dict": state_dict, "to_static_state_dict": state_dict, "load_state_dict": load_state_dict,
    "set_state_dict": load_state_dict, "set_dict": load_state_dict, "load_dict": load_state_dict, "apply": apply,
    "to": to, "_to_impl": to, "cuda": cuda, "npu": cuda, "xpu": cuda, "ipu": cuda, "cpu": cpu,
    "float": _typed("float32"), "double": _typed("float64"), "half": _typed("float16"), "float16": _typed("float16"),
    "bfloat16": _typed("bfloat16"), "type": set_type, "astype": set_type, "train": train, "eval": evaluate,
    "requires_grad_": requires_grad_, "zero_grad": zero_grad, "clear_gradients": clear_gradients,
    "register_forward_hook": register_forward_hook, "register_forward_post_hook": register_forward_hook,
    "register_forward_pre_hook": register_forward_pre_hook, "register_full_backward_hook": _ignored_hook,
    "register_backward_hook": _ignored_hook, "register_full_backward_pre_hook": _ignored_hook,
    "register_state_dict_pre_hook": _ignored_hook, "_register_load_state_dict_pre_hook": _ignored_hook,
    "_register_state_dict_hook": _ignored_hook, "register_load_state_dict_post_hook": _ignored_hook,
    "register_load_state_dict_pre_hook": _ignored_hook, "register_state_dict_hook": _ignored_hook,
    "register_state_dict_post_hook": _ignored_hook, "full_name": full_name, "to_empty": lambda context, self,
    device=None, **kwargs: to(context, self, device), "share_memory": lambda context, self: self, "_get_name": lambda
    context, self: self.cls.name, "extra_repr": lambda context, self: "", "compile": lambda context, self, *args,
    **kwargs: None, "__dir__": lambda context, self: list(self.attrs), "_named_members": named_parameters,
    "_load_from_state_dict": lambda context, self, *args, **kwargs: None, "_save_to_state_dict": lambda context, self,
    *args, **kwargs: None, "set_submodule": lambda context, self, target, module,
    *args: self.attrs.__setitem__(str(target), module),
}  # fmt: skip


def _module_class(qualname: str) -> Class:
    cls = native_class(qualname, make=LayerInstance)
    for name, function in METHODS.items():
        cls.namespace[name] = Native(f"{qualname}.{name}", function)
    return cls


MODULE: dict[str, Class] = {
    "torch": _module_class("torch.nn.Module"),
    "paddle": _module_class("paddle.nn.Layer"),
}
for _cls in MODULE.values():
    _cls.namespace.update(PROPERTIES)
    _cls.namespace["dump_patches"] = False
    _cls.namespace["_dtype"] = "float32"
for _name in ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"):
    register(_name, MODULE["torch"])
for _name in (
    "paddle.nn.Layer",
    "paddle.nn.layer.Layer",
    "paddle.nn.layer.layers.Layer",
    "paddle.fluid.dygraph.Layer",
    "paddle.base.dygraph.Layer",
    "paddle.nn.Module",
):
    register(_name, MODULE["paddle"])
