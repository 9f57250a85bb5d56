"""What scripts ask of a framework besides tensors.

Devices, seeds, flags, saving, compiling, profiling. None of it takes device memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oarlock_profiler.core.engine.dtypes import canonical, size_of
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Class,
    Context,
    Function,
    HostObject,
    Iteration,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays import (  # noqa: F401 - old names below point at their entries
    creation,
    elementwise,
    indexing,
    linear_algebra,
    reductions,
    shaping,
)
from oarlock_profiler.core.overlays.calling import dtype_name
from oarlock_profiler.core.overlays.devices import Device
from oarlock_profiler.core.overlays.registry import get, native_class, register
from oarlock_profiler.core.overlays.tensor_class import DTYPES

LIBRARIES = ("torch", "paddle", "torchvision")


def give(value: Value, *names: str) -> None:
    """Functions that answer ``value`` whatever they are asked."""
    for name in " ".join(names).split():
        if get(name) is MISSING:
            register(name, Native(name, lambda context, *args, **kwargs: value))


def unknown(hint: str, *names: str) -> None:
    """Functions whose answer depends on the machine or on files."""
    for name in " ".join(names).split():
        if get(name) is MISSING:
            register(
                name,
                Native(
                    name,
                    lambda context, *args, _name=name, **kwargs: Unknown(
                        f"{_name} depends on the machine", context.where, hint
                    ),
                ),
            )


class Quiet(HostObject):
    """An object of the framework that does nothing a reader needs: a context, a decorator, a handle, a writer."""

    def __init__(self, name: str) -> None:
        self.name = name

    def py_type(self) -> str:
        return self.name

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__enter__":
            return Native("__enter__", lambda c: self)
        if name == "__exit__":
            return Native("__exit__", lambda c, *args: False)
        if name == "__len__":
            return MISSING
        if name.startswith("__"):
            return MISSING
        return Native(
            f"{self.name}.{name}",
            lambda c, *args, **kwargs: (
                args[0] if args and isinstance(args[0], (Function, Class)) else Unknown(f"{self.name}.{name}", c.where)
            ),
        )

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        return True

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return args[0] if args and isinstance(args[0], (Function, Class, Native)) else self

    def py_getitem(self, context: Context, key: Value) -> Value:
        return self

    def py_iterate(self, context: Context) -> Iteration:
        return Iteration(iter(()))


def quiet(*names: str) -> None:
    """Makers of such objects."""
    for name in " ".join(names).split():
        if get(name) is MISSING:
            register(name, Native(name, lambda context, *args, _name=name, **kwargs: Quiet(_name)))


def transparent(*names: str) -> None:
    """What only wraps its first argument, as a call or as a decorator with options."""
    for name in " ".join(names).split():
        if get(name) is MISSING:
            register(name, Native(name, _wrap))


def _wrap(context: Context, wrapped: Value = None, *args: Value, **kwargs: Value) -> Value:
    if wrapped is None:
        for key in ("function", "model", "layer", "fn", "module", "obj", "func"):
            if key in kwargs:
                return kwargs[key]
        return Native("decorator", lambda c, fn=None: fn)
    if isinstance(wrapped, (str, int, float)):
        return Native("decorator", lambda c, fn=None: fn)
    return wrapped


# --- devices
# -----------------------------------------------------------------------------------------------------------
def device_count(context: Context, *args: Value) -> Value:
    """The devices that this process may use."""
    found = getattr(getattr(context, "request", None), "world_size", 1)
    return max(1, found if isinstance(found, int) else 1)


for _name in (
    "torch.cuda.device_count", "torch.accelerator.device_count", "torch.npu.device_count", "torch.xpu.device_count",
    "paddle.device.cuda.device_count", "paddle.base.core.get_cuda_device_count",
    "paddle.framework.core.get_cuda_device_count", "paddle.device.device_count",
    "paddle.fluid.core.get_cuda_device_count",
):  # fmt: skip
    register(_name, Native(_name, device_count))
give(
    True,
    """
    torch.cuda.is_available torch.accelerator.is_available torch.cuda.is_bf16_supported torch.cuda.is_initialized
    paddle.is_compiled_with_cuda paddle.device.is_compiled_with_cuda paddle.fluid.is_compiled_with_cuda
    paddle.fluid.core.is_compiled_with_cuda paddle.base.core.is_compiled_with_cuda
    paddle.framework.core.is_compiled_with_cuda paddle.base.core.is_compiled_with_dist paddle.in_dynamic_mode
    paddle.framework.in_dynamic_mode paddle.framework.in_dynamic_or_pir_mode paddle.base.framework.in_dygraph_mode
    paddle.fluid.framework.in_dygraph_mode paddle.in_dynamic_or_pir_mode paddle.device.cuda.is_available
    torch.backends.cudnn.is_available torch.backends.cuda.is_built torch.backends.mkldnn.is_available
    paddle.amp.is_bfloat16_supported paddle.amp.is_float16_supported torch.backends.opt_einsum.is_available
    paddle.fluid.in_dygraph_mode torch.backends.cuda.flash_sdp_enabled torch.backends.cuda.mem_efficient_sdp_enabled
    torch.backends.cuda.math_sdp_enabled paddle.in_dygraph_mode paddle.fluid.dygraph.enabled
    torch.cuda.nccl.is_available
    """,
)
give(
    False,
    """
    torch.backends.mps.is_available torch.backends.mps.is_built torch.xpu.is_available torch.npu.is_available
    torch.hpu.is_available torch.mlu.is_available torch.mps.is_available torch.xpu.is_bf16_supported
    torch.musa.is_available paddle.is_compiled_with_xpu paddle.is_compiled_with_rocm paddle.is_compiled_with_npu
    paddle.is_compiled_with_mlu paddle.is_compiled_with_ipu paddle.is_compiled_with_custom_device
    paddle.is_compiled_with_cinn paddle.device.is_compiled_with_xpu paddle.device.is_compiled_with_rocm
    paddle.device.is_compiled_with_custom_device paddle.device.is_compiled_with_npu
    paddle.base.core.is_compiled_with_xpu paddle.fluid.core.is_compiled_with_rocm
    paddle.fluid.core.is_compiled_with_xpu paddle.base.core.is_compiled_with_rocm paddle.framework.use_pir_api
    paddle.framework.in_pir_mode paddle.in_static_mode torch.jit.is_scripting torch.jit.is_tracing
    torch._C._get_tracing_state torch.onnx.is_in_onnx_export torch.compiler.is_compiling torch._dynamo.is_compiling
    torch.compiler.is_dynamo_compiling torch.compiler.is_exporting torch.are_deterministic_algorithms_enabled
    torch.is_deterministic_algorithms_warn_only_enabled torch.is_anomaly_enabled torch.is_warn_always_enabled
    paddle.incubate.jit.is_inference_mode paddle.distributed.in_auto_parallel_align_mode
    torch.overrides.has_torch_function torch.overrides.has_torch_function_unary torch.overrides.is_tensor_like
    torch.cuda.is_current_stream_capturing torch.cuda.amp.common.amp_definitely_not_available torch.is_storage
    torch.is_vulkan_available paddle.nn.layer.layers.in_declarative_mode paddle.jit.api.in_declarative_mode
    torch.distributed._tools.is_compiling torch.is_nonzero torch.is_conj torch.is_neg
    """,
)
give(
    None,
    """
    torch.cuda.set_device torch.cuda.empty_cache torch.cuda.synchronize torch.cuda.manual_seed
    torch.cuda.manual_seed_all torch.cuda.reset_peak_memory_stats torch.cuda.reset_max_memory_allocated
    torch.cuda.ipc_collect torch.cuda.init torch.cuda.set_per_process_memory_fraction torch.cuda.set_rng_state
    torch.cuda.set_rng_state_all torch.cuda.memory._record_memory_history torch.cuda.memory._dump_snapshot
    torch.cuda.memory._set_allocator_settings torch.cuda.reset_max_memory_cached torch.cuda.nvtx.range_push
    torch.cuda.nvtx.range_pop torch.cuda.nvtx.mark torch.cuda.profiler.start torch.cuda.profiler.stop
    torch.npu.set_device torch.npu.empty_cache torch.npu.synchronize torch.npu.manual_seed torch.npu.manual_seed_all
    torch.npu.set_compile_mode torch.xpu.empty_cache torch.xpu.manual_seed_all torch.xpu.set_device
    torch.xpu.synchronize torch.mps.empty_cache torch.mps.manual_seed torch.accelerator.set_device_index
    torch.accelerator.synchronize torch.accelerator.empty_cache torch.mlu.set_device
    torch.use_deterministic_algorithms torch.set_deterministic_debug_mode torch.set_float32_matmul_precision
    torch.set_num_threads torch.set_num_interop_threads torch.set_printoptions torch.set_flush_denormal
    torch.set_warn_always torch.autograd.set_detect_anomaly torch.set_rng_state torch.random.set_rng_state
    torch.backends.cuda.enable_flash_sdp torch.backends.cuda.enable_mem_efficient_sdp
    torch.backends.cuda.enable_math_sdp torch.backends.cuda.enable_cudnn_sdp
    torch.backends.cuda.preferred_linalg_library torch._dynamo.reset torch._dynamo.mark_dynamic torch.compiler.reset
    torch.compiler.cudagraph_mark_step_begin torch._C._log_api_usage_once torch._C._jit_set_profiling_executor
    torch._C._jit_set_profiling_mode torch._C._jit_override_can_fuse_on_cpu torch._C._jit_override_can_fuse_on_gpu
    torch._C._jit_set_texpr_fuser_enabled torch._C._jit_set_nvfuser_enabled torch._check torch._assert
    torch._check_is_size torch.testing.assert_close torch.testing.assert_allclose torch.save torch.jit.save
    torch.onnx.export torch.onnx._export torch.hub.download_url_to_file torch.hub._download_url_to_file
    torch.hub.set_dir torch.onnx.register_custom_op_symbolic torch.utils.swap_tensors
    torch.serialization.add_safe_globals torch.multiprocessing.set_start_method
    torch.multiprocessing.set_sharing_strategy torch.set_default_tensor_type
    torch.utils._pytree.register_pytree_node torch.set_autocast_enabled torch.set_autocast_gpu_dtype
    torch.set_autocast_cache_enabled torch.clear_autocast_cache torch.set_autocast_dtype torch._foreach_mul_
    torch._foreach_add_ torch._foreach_lerp_ torch._foreach_copy_ torch._foreach_zero_ torch._foreach_sub_
    torch._foreach_div_ torch._foreach_sqrt_ torch.cuda.set_stream torch._logging.set_logs
    torch.backends.cudnn.set_flags torch.ao.quantization.disable_observer
    torch.autograd.Variable._execution_engine.queue_callback torchvision.utils.save_image
    torchvision.disable_beta_transforms_warning torchvision.set_image_backend torchvision.io.write_video
    torchvision.io.write_png torchvision.io.write_jpeg torchvision.set_video_backend
    torch.cuda.memory.set_per_process_memory_fraction torch.library.define torch.ops.load_library
    torch.classes.load_library paddle.seed paddle.framework.seed paddle.framework.random._manual_program_seed
    paddle.save paddle.jit.save paddle.onnx.export paddle.enable_static paddle.disable_static
    paddle.device.cuda.empty_cache paddle.device.synchronize paddle.device.cuda.synchronize
    paddle.device.cuda.reset_max_memory_allocated paddle.device.empty_cache
    paddle.device.cuda.reset_max_memory_reserved paddle.device.cuda.reset_peak_memory_stats paddle.set_flags
    paddle.fluid.set_flags paddle.set_printoptions paddle.set_cuda_rng_state paddle.set_rng_state
    paddle.framework.random.set_cuda_rng_state paddle.disable_signal_handler paddle.framework._no_check_dy2st_diff
    paddle.jit.ignore_module paddle.jit.enable_to_static paddle.jit.set_code_level paddle.jit.set_verbosity
    paddle.jit.ProgramTranslator.enable paddle.utils.require_version paddle.utils.run_check
    paddle.utils.profiler.start_profiler paddle.utils.profiler.stop_profiler paddle.fluid.profiler.start_profiler
    paddle.fluid.profiler.stop_profiler paddle.static.save paddle.static.save_inference_model
    paddle.static.set_program_state paddle.static.load paddle.static.load_vars paddle.utils.unique_name.switch
    paddle.utils.cpp_extension.setup paddle.device.set_stream paddle.utils.download._decompress paddle.check_shape
    paddle.common_ops_import.check_variable_and_dtype paddle.common_ops_import.check_type
    paddle.common_ops_import.check_dtype paddle.fluid.io.save_persistables paddle.fluid.io.load_persistables
    paddle.fluid.io.load_params paddle.fluid.io.save_params paddle.fluid.io.load_vars
    paddle.fluid.io.save_inference_model paddle.fluid.clip.set_gradient_clip paddle.fluid.require_version
    paddle.distributed.transpiler.memory_optimize paddle.core.set_cudnn_switch paddle.set_grad_enabled_
    paddle.incubate.distributed.utils.io.save_for_auto_inference paddle.framework.core._set_prim_all_enabled
    paddle.base.core._set_prim_all_enabled paddle.base.core._set_prim_backward_blacklist
    paddle.base.core.nvprof_start paddle.base.core.nvprof_stop paddle.base.core.nvprof_nvtx_push
    paddle.base.core.nvprof_nvtx_pop paddle.inference.convert_to_mixed_precision paddle.fluid.memory_optimize
    paddle.nn.initializer.lazy_init.lazy_init_helper.enable paddle.fluid.enable_dygraph paddle.fluid.disable_dygraph
    paddle.distributed.fleet.utils.log_util.logger.info paddle.utils.deprecated_
    paddle.autograd.saved_tensors_hooks_
    paddle.utils.cpp_extension.extension_utils.load_op_meta_info_and_register_op paddle.core.globals_
    """,
)
give(
    0,
    """
    torch.cuda.current_device torch.accelerator.current_device_index torch.npu.current_device
    torch.cuda.memory_allocated torch.cuda.memory_reserved torch.cuda.memory_cached torch.cuda.max_memory_allocated
    torch.cuda.max_memory_reserved torch.cuda.max_memory_cached torch.npu.memory_allocated
    torch.npu.max_memory_allocated torch.npu.memory_reserved torch.npu.max_memory_reserved
    torch.accelerator.max_memory_allocated torch.accelerator.memory_allocated torch.mps.current_allocated_memory
    paddle.device.cuda.max_memory_allocated paddle.device.cuda.max_memory_reserved
    paddle.device.cuda.memory_allocated paddle.device.cuda.memory_reserved paddle.device.max_memory_allocated
    paddle.device.max_memory_reserved paddle.device.memory_allocated paddle.device.memory_reserved
    paddle.base.core.device_memory_stat_current_value paddle.base.core.device_memory_stat_peak_value
    paddle.base.core.host_memory_stat_current_value paddle.base.core.host_memory_stat_peak_value
    torch.cuda.utilization torch.cuda.temperature torch.initial_seed torch.get_num_threads_
    paddle.base.core.get_custom_device_count
    """,
)
give(
    8,
    """
    torch.get_num_threads torch.get_num_interop_threads
    """,
)
give(
    (8, 0),
    """
    torch.cuda.get_device_capability paddle.device.cuda.get_device_capability
    """,
)
give(
    "NVIDIA GPU",
    """
    torch.cuda.get_device_name paddle.device.cuda.get_device_name
    """,
)
give(
    [],
    "paddle.device.get_all_custom_device_type",
    "paddle.device.get_available_custom_device",
    "torch.cuda.get_arch_list",
)
give(["gpu:0"], "paddle.device.get_available_device")
give(
    "high",
    """
    torch.get_float32_matmul_precision
    """,
)
give(
    11000,
    """
    torch.backends.cudnn.version
    """,
)
give(
    8900,
    """
    paddle.get_cudnn_version paddle.device.get_cudnn_version
    """,
)
give(
    (2, 20, 5),
    """
    torch.cuda.nccl.version
    """,
)
give(
    "12.4",
    """
    paddle.version.cuda paddle.version.cudnn paddle.inference.get_version torch.__config__.show
    torch.__config__.parallel_info paddle.version.full_version_
    """,
)
give(
    "0.0.0",
    """
    paddle.inference.get_trt_runtime_version torch.cuda.memory_summary
    torch.utils.collect_env.get_pretty_env_info paddle.device.cuda.memory_summary
    """,
)
give(
    "~/.cache",
    """
    torch.hub.get_dir torch.hub._get_torch_home paddle.utils.download.get_weights_path_from_url
    paddle.utils.download.get_path_from_url paddle.dataset.common.download
    """,
)
give(
    True,
    """
    torch.__future__.get_swap_module_params_on_conversion
    """,
)
unknown(
    "dict",
    """
    torch.cuda.memory_stats torch.hub.load_state_dict_from_url torch.utils.model_zoo.load_url
    paddle.static.load_program_state torch.cuda.memory_snapshot torch.load paddle.load paddle.framework.load
    torch.hub.get_file_
    """,
)
unknown(
    "object",
    """
    torch.cuda.get_device_properties torch.xpu.get_device_properties paddle.device.cuda.get_device_properties
    torch.jit.load paddle.jit.load paddle.static.load_inference_model torch.hub.load torch.hub.list torch.hub.help
    torch.npu.get_device_properties paddle.inference.create_predictor torch.fx.symbolic_trace torch.export.export
    torch.fx.Graph torch._subclasses.fake_tensor.FakeTensorMode torch.get_rng_state torch.random.get_rng_state
    torch.cuda.get_rng_state torch.cuda.get_rng_state_all paddle.get_rng_state paddle.get_cuda_rng_state
    paddle.framework.random.get_cuda_rng_state torch.utils.cpp_extension.load torch.utils.cpp_extension.load_inline
    paddle.utils.cpp_extension.load torch.profiler._KinetoProfile paddle.flops paddle.summary torch.hub.urlparse
    torch.hub.HASH_REGEX.search torch._utils._get_device_index torch.serialization.default_restore_location
    paddle.framework.io._to_LodTensor paddle.framework.io._parse_every_object paddle.base.executor._fetch_var
    paddle.utils.download._get_unique_endpoints
    """,
)


def _bytes_free(context: Context, *args: Value) -> Value:
    one = Unknown("the memory of the device that the task will get", context.where, "int")
    return (one, one)


for _name in ("torch.cuda.mem_get_info", "paddle.device.cuda.mem_get_info"):
    register(_name, Native(_name, _bytes_free))


def _accelerator(context: Context, *args: Value) -> Value:
    return Device("torch", "cuda", None)


register("torch.get_default_device", Native("get_default_device", lambda context: Device("torch", "cpu")))
register("torch.accelerator.current_accelerator", Native("current_accelerator", _accelerator))
for _name in (
    "paddle.framework._current_expected_place",
    "paddle.framework._current_expected_place_",
    "paddle.base.framework._current_expected_place",
    "paddle.fluid.framework._current_expected_place",
):
    register(
        _name,
        Native(
            _name,
            lambda context: Device("paddle", "gpu" if context.engine.default_device.startswith("gpu") else "cpu", 0),
        ),
    )
for _name in (
    "paddle.static.cuda_places",
    "paddle.static.cpu_places",
    "paddle.static.xpu_places",
    "paddle.fluid.cuda_places",
):
    register(_name, Native(_name, lambda context, *args: [Device("paddle", "gpu", 0)]))

# --- objects that do nothing here
# --------------------------------------------------------------------------------------
quiet(
    """
    torch.Generator torch.cuda.Stream torch.cuda.Event torch.cuda.stream torch.cuda.current_stream
    torch.cuda.default_stream torch.Stream torch.Event torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.device
    torch.cuda.graphs.graph_pool_handle torch.cuda.MemPool torch.npu.Stream torch.npu.Event torch.npu.current_stream
    torch.profiler.profile torch.profiler.schedule torch.profiler.tensorboard_trace_handler
    torch.profiler.record_function torch.autograd.profiler.profile torch.autograd.profiler.record_function
    torch.autograd.profiler.emit_nvtx torch.utils.tensorboard.SummaryWriter
    torch.utils.tensorboard.writer.SummaryWriter torch.autograd.detect_anomaly torch.random.fork_rng
    torch.nn.attention.sdpa_kernel torch.backends.cuda.sdp_kernel torch.backends.cudnn.flags
    torch.serialization.safe_globals torch.nn.attention.flex_attention.create_block_mask torch.cuda.nvtx.range
    torch.autograd.graph.save_on_cpu torch.autograd.graph.saved_tensors_hooks
    torch.autograd.set_multithreading_enabled torch._dynamo.config.patch torch._inductor.config.patch
    torch.nn.parallel.parallel_apply torch.compiler.set_stance torch.nn.utils.stateless._reparametrize_module
    torch.utils.benchmark.Timer torch.overrides.TorchFunctionMode torch.fx.Interpreter paddle.Generator
    paddle.framework.core.default_cpu_generator paddle.base.core.default_cpu_generator
    paddle.base.core.default_cuda_generator paddle.base.core.default_custom_device_generator
    paddle.profiler.Profiler paddle.profiler.export_chrome_tracing paddle.profiler.make_scheduler
    paddle.profiler.RecordEvent paddle.profiler.utils._nvprof_range paddle.profiler.export_protobuf
    paddle.device.cuda.current_stream paddle.device.cuda.Stream paddle.device.cuda.Event paddle.device.Stream
    paddle.device.Event paddle.device.current_stream paddle.device.stream_guard paddle.device.cuda.stream_guard
    paddle.utils.unique_name.guard paddle.static.name_scope paddle.static.device_guard paddle.LazyGuard
    paddle.dtype_guard paddle.fluid.unique_name.guard paddle.fluid.dygraph.guard paddle.base.dygraph.guard
    paddle.autograd.saved_tensors_hooks paddle.inference.Config paddle.inference.PassBuilder
    paddle.framework._dygraph_tracer paddle.fluid.framework._dygraph_tracer paddle.base.framework._dygraph_tracer
    paddle.utils.cpp_extension.CUDAExtension paddle.utils.cpp_extension.CppExtension
    paddle.utils.cpp_extension.BuildExtension torch.utils.cpp_extension.CUDAExtension
    torch.utils.cpp_extension.CppExtension paddle.distributed.fleet.utils.timer_helper.get_timers
    paddle.callbacks.ProgBarLogger_ paddle.quantization.QuantConfig paddle.quantization.QAT paddle.quantization.PTQ
    paddle.quantization.quanters.FakeQuanterWithAbsMaxObserver paddle.static.amp.fp16_guard_ torch.fx.GraphModule
    torch.fx.Tracer torch.distributed.elastic.multiprocessing.errors.record
    torch.utils._python_dispatch.TorchDispatchMode torch.library.Library paddle.amp.debugging.TensorCheckerConfig
    paddle.hapi.static_flops.Table paddle.incubate.optimizer.functional_ torch.ao.quantization.QConfig
    torch.utils.flop_counter.FlopCounterMode
    """,
)
transparent(
    """
    torch.library.custom_op torch.library.register_fake torch.library.register_autograd torch.library.impl
    torch.library.triton_op torch.library.register_kernel torch.library.impl_abstract
    torch._dynamo.assume_constant_result torch.compile torch.jit.script torch.jit.trace torch.jit.ignore
    torch.jit.unused torch.jit.export
    torch.jit.interface torch.jit.freeze torch.jit.optimize_for_inference torch.jit.script_if_tracing
    torch.compiler.disable torch.compiler.allow_in_graph torch._dynamo.disable torch._dynamo.optimize
    torch._dynamo.allow_in_graph torch.fx.wrap torch.no_grad_ torch.jit._overload_method torch.jit.Final
    torch.quantization.convert torch.quantization.prepare torch.quantization.prepare_qat
    torch.quantization.fuse_modules torch.ao.quantization.convert torch.ao.quantization.prepare
    torch.ao.quantization.prepare_qat torch.overrides.wrap_torch_function torch.cuda.make_graphed_callables
    torch.nn.utils.skip_init_ torch.optim._functional_ torch.fx.experimental.optimization.fuse paddle.jit.to_static
    paddle.jit.not_to_static paddle.jit.api.to_static paddle.incubate.jit.inference paddle.jit.marker.unified
    paddle.utils.deprecated paddle.fluid.dygraph.declarative paddle.jit.dy2static.program_translator.to_static_
    paddle.fluid.dygraph.jit.declarative paddle.jit.sot.symbolic_translate
    """,
)
register("torch.jit.annotate", Native("annotate", lambda context, kind=None, value=None: value))
register(
    "paddle.utils.try_import",
    Native(
        "try_import", lambda context, name, *args: Unknown(f"module {name}", context.where, "module", name=str(name))
    ),
)


def _mapped(context: Context, fn: Value, tree: Value) -> Value:
    if isinstance(tree, (list, tuple)):
        made = [_mapped(context, fn, t) for t in tree]
        return made if isinstance(tree, list) else tuple(made)
    if isinstance(tree, dict):
        return {key: _mapped(context, fn, value) for key, value in tree.items()}
    return context.call(fn, (tree,)) if tree is not None else None


register("paddle.utils.map_structure", Native("map_structure", _mapped))
for _name in ("torch.utils._pytree.tree_map", "torch.utils._pytree.tree_map_only"):
    register(_name, Native(_name, lambda context, *args: _mapped(context, args[-2], args[-1])))


def _leaves(tree: Value) -> list[Value]:
    if isinstance(tree, (list, tuple)):
        return [leaf for t in tree for leaf in _leaves(t)]
    if isinstance(tree, dict):
        return [leaf for t in tree.values() for leaf in _leaves(t)]
    return [tree]


class _Spec:
    """The structure that ``tree_flatten`` took apart."""

    def __init__(self, tree: Value) -> None:
        self.tree = tree


def _rebuilt(tree: Value, leaves: list[Value]) -> Value:
    if isinstance(tree, (list, tuple)):
        made = [_rebuilt(t, leaves) for t in tree]
        return made if isinstance(tree, list) else tuple(made)
    if isinstance(tree, dict):
        return {key: _rebuilt(value, leaves) for key, value in tree.items()}
    return leaves.pop(0) if leaves else None


register(
    "torch.utils._pytree.tree_flatten",
    Native("tree_flatten", lambda context, tree, **kwargs: (_leaves(tree), _Spec(tree))),
)
register(
    "torch.utils._pytree.tree_unflatten",
    Native(
        "tree_unflatten",
        lambda context, leaves, spec: _rebuilt(spec.tree if isinstance(spec, _Spec) else None, list(leaves)),
    ),
)
register("torch.utils._pytree.tree_leaves", Native("tree_leaves", lambda context, tree, **kwargs: _leaves(tree)))


# --- types
# -------------------------------------------------------------------------------------------------------------
def default_dtype(context: Context) -> Value:
    """The type new floating tensors have."""
    name = context.engine.default_dtype
    return name if context.engine.framework == "paddle" else DTYPES["torch"][name]


def set_default_dtype(context: Context, dtype: Value = None) -> None:
    """Change it."""
    found = dtype_name(dtype)
    if found is not None:
        context.engine.default_dtype = found


for _name in ("torch.get_default_dtype", "paddle.get_default_dtype", "paddle.framework.get_default_dtype"):
    register(_name, Native(_name, default_dtype))
for _name in ("torch.set_default_dtype", "paddle.set_default_dtype", "paddle.framework.set_default_dtype"):
    register(_name, Native(_name, set_default_dtype))

_LIMITS = {
    "float64": (1.7976931348623157e308, 2.220446049250313e-16, 2.2250738585072014e-308),
    "float32": (3.4028234663852886e38, 1.1920928955078125e-07, 1.1754943508222875e-38),
    "float16": (65504.0, 0.0009765625, 6.103515625e-05),
    "bfloat16": (3.3895313892515355e38, 0.0078125, 1.1754943508222875e-38),
    "float8_e4m3fn": (448.0, 0.125, 0.015625),
    "float8_e5m2": (57344.0, 0.25, 6.103515625e-05),
}


class Limits(HostObject):
    """``finfo`` and ``iinfo``."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def py_getattr(self, context: Context, name: str) -> Value:
        bits = int(size_of(self.dtype) * 8)
        if name == "bits":
            return bits
        if name == "dtype":
            return self.dtype
        if self.dtype in _LIMITS:
            high, eps, tiny = _LIMITS[self.dtype]
            return {
                "max": high,
                "min": -high,
                "eps": eps,
                "tiny": tiny,
                "smallest_normal": tiny,
                "resolution": eps,
            }.get(name, MISSING)
        signed = not self.dtype.startswith("u")
        return {"max": 2 ** (bits - signed) - 1, "min": -(2 ** (bits - 1)) if signed else 0}.get(name, MISSING)


for _name in ("torch.finfo", "torch.iinfo", "paddle.finfo", "paddle.iinfo"):
    register(
        _name, Native(_name, lambda context, dtype=None: Limits(dtype_name(dtype) or context.engine.default_dtype))
    )
for _name in ("torch.promote_types", "torch.result_type"):
    register(
        _name,
        Native(_name, lambda context, a, b: DTYPES["torch"][dtype_name(a) or str(getattr(a, "dtype", "float32"))]),
    )
register("torch.can_cast", Native("can_cast", lambda context, a, b: True))


def _convert_dtype(context: Context, dtype: Value = None) -> Value:
    return dtype_name(dtype) or (canonical(str(dtype)) if dtype is not None else "float32")


for _name in (
    "paddle.common_ops_import.convert_dtype",
    "paddle.base.data_feeder.convert_dtype",
    "paddle.fluid.data_feeder.convert_dtype",
    "paddle.common_ops_import.convert_np_dtype_to_dtype_",
    "paddle.base.framework.convert_np_dtype_to_dtype_",
):
    register(_name, Native(_name, _convert_dtype))


def _autocast_dtype(context: Context, *args: Value) -> Value:
    autocast = context.engine.autocast
    return DTYPES["torch"][autocast.dtype if autocast is not None and autocast.dtype else "float16"]


register("torch.get_autocast_gpu_dtype", Native("get_autocast_gpu_dtype", _autocast_dtype))
register("torch.get_autocast_cpu_dtype", Native("get_autocast_cpu_dtype", _autocast_dtype))
register("torch.get_autocast_dtype", Native("get_autocast_dtype", _autocast_dtype))
register(
    "torch.is_autocast_enabled",
    Native(
        "is_autocast_enabled",
        lambda context, *args: context.engine.autocast is not None and context.engine.autocast.dtype is not None,
    ),
)


# --- small facts
# -------------------------------------------------------------------------------------------------------
register("torch.__version__", "2.13.0")
register("paddle.__version__", "3.3.1")
register("torch.version.cuda", "12.8")
register("torch.version.hip", None)
register("torch.version.__version__", "2.13.0")
register("paddle.version.full_version", "3.3.1")
register("paddle.__git_commit__", "")
register("torch.pi", 3.141592653589793)
register("torch.e", 2.718281828459045)
for _framework in ("torch", "paddle"):
    register(f"{_framework}.inf", float("inf"))
    register(f"{_framework}.nan", float("nan"))
    register(f"{_framework}.newaxis", None)
register("paddle.pi", 3.141592653589793)
for _name in (
    "contiguous_format",
    "channels_last",
    "channels_last_3d",
    "preserve_format",
    "strided",
    "sparse_coo",
    "sparse_csr",
):
    register(f"torch.{_name}", _name)
for _name, _value in (
    ("deterministic", False),
    ("benchmark", False),
    ("enabled", True),
    ("allow_tf32", True),
    ("benchmark_limit", 10),
):
    register(f"torch.backends.cudnn.{_name}", _value)
register("torch.backends.cuda.matmul.allow_tf32", False)
register("torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction", True)


def initial_seed(context: Context, seed: Value = 0) -> Value:
    """Seeding gives a generator."""
    return Quiet("torch.Generator")


for _name in ("torch.manual_seed", "torch.random.manual_seed"):
    register(_name, Native(_name, initial_seed))
register("torch.seed", Native("torch.seed", lambda context: Unknown("a random seed", context.where, "int")))


def _tuple_of(count: int) -> Native:
    def repeat(context: Context, value: Value) -> Value:
        if isinstance(value, (list, tuple)):
            return tuple(value)
        return (value,) * count

    return Native("ntuple", repeat)


for _name, _count in (("_single", 1), ("_pair", 2), ("_triple", 3), ("_quadruple", 4)):
    register(f"torch.nn.modules.utils.{_name}", _tuple_of(_count))
register(
    "torch.nn.modules.utils._ntuple",
    Native("_ntuple", lambda context, count, *args: _tuple_of(count if isinstance(count, int) else 2)),
)
for _name, _count in (("to_2tuple", 2), ("to_3tuple", 3)):
    for _owner in ("timm.models.layers", "timm.layers", "timm.models.layers.helpers", "timm.layers.helpers"):
        register(f"{_owner}.{_name}", _tuple_of(_count))
register(
    "torch.nn.functional._Reduction.get_enum",
    Native("get_enum", lambda context, reduction: {"none": 0, "mean": 1, "sum": 2}.get(str(reduction), 1)),
)


def _input_spec(
    context: Context, shape: Value = None, dtype: Value = "float32", name: Value = None, **kwargs: Value
) -> Value:
    return InputSpec(shape, dtype, name)


class InputSpec(HostObject):
    """``paddle.static.InputSpec``: shape and type of an input, not a tensor."""

    def __init__(self, shape: Value, dtype: Value, name: Value) -> None:
        self.fields = {"shape": shape, "dtype": dtype, "name": name}

    def py_type(self) -> str:
        return "paddle.static.InputSpec"

    def py_getattr(self, context: Context, name: str) -> Value:
        return self.fields.get(name, MISSING)


for _name in ("paddle.static.InputSpec", "paddle.static.input.InputSpec"):
    register(_name, Native(_name, _input_spec))


def accuracy(context: Context, input: Value = None, label: Value = None, *args: Value, **kwargs: Value) -> Value:
    """``paddle.metric.accuracy``: a small tensor."""
    return context.engine.tensor((1,), kind="temporary", op="accuracy")


for _name in ("paddle.metric.accuracy", "paddle.static.accuracy"):
    register(_name, Native(_name, accuracy))


def auc(context: Context, *args: Value, **kwargs: Value) -> Value:
    """``paddle.static.auc``: of all batches, of the last ones, and the counts it keeps for both."""
    area, recent = (context.engine.tensor((1,), kind="temporary", op="auc") for _ in range(2))
    return (area, recent, [])


register("paddle.static.auc", Native("paddle.static.auc", auc))


def flatten_dense(context: Context, tensors: Value) -> Value:
    """Several tensors in one vector."""
    parts = (
        [t for t in tensors if isinstance(t, Tensor) and t.shape is not None]
        if isinstance(tensors, (list, tuple))
        else []
    )
    count = sum(t.nbytes for t in parts) // 4
    return context.engine.tensor((count,), op="flatten")


for _name in ("torch._utils._flatten_dense_tensors",):
    register(_name, Native(_name, flatten_dense))
register("torch._utils._unflatten_dense_tensors", Native("unflatten", lambda context, flat, tensors: tensors))
register("torch._utils._take_tensors", Native("_take_tensors", lambda context, tensors, size: [tensors]))


def static_layer(owner: str, names: str) -> None:
    """Static-graph programs and old ``fluid`` layers: named, not followed."""
    for name in (f"{owner}.{short}" for short in names.split()):
        if get(name) is MISSING:
            register(
                name,
                Native(
                    name,
                    lambda context, *args, _name=name, **kwargs: context.unknown(
                        f"{_name} builds a static graph, which is not followed", name=_name
                    ),
                ),
            )


static_layer(
    "paddle.static",
    """
    Executor Program default_startup_program default_main_program BuildStrategy ExecutionStrategy CompiledProgram
    global_scope Scope scope_guard program_guard data ParallelExecutor IpuCompiledProgram IpuStrategy
    ipu_shard_guard quantization.PostTrainingQuantization amp.decorate nn.fc nn.cond nn.case nn.while_loop nn.conv2d
    nn.embedding nn.layer_norm nn.batch_norm nn.sequence_pool nn.sequence_expand nn.sequence_unpad normalize_program
    Variable gradients append_backward py_func accuracy auc Print nn.switch_case
    """,
)
static_layer(
    "paddle.fluid",
    """
    Program program_guard Executor default_startup_program default_main_program DataFeeder ParallelExecutor
    ExecutionStrategy BuildStrategy scope_guard global_scope data CompiledProgram executor._fetch_var io.PyReader
    io.is_persistable nets.sequence_conv_pool input.one_hot layers.fc layers.data layers.embedding
    layers.dynamic_lstm layers.create_py_reader_by_data layers.read_file layers.sequence_unpad
    layers.create_parameter layers.fill_constant_batch_size_like layers.py_reader embedding layers.accuracy
    layers.sequence_pool layers.sequence_expand io.save_vars optimizer.AdamOptimizer optimizer.Adam optimizer.SGD
    optimizer.SGDOptimizer contrib.mixed_precision.decorate layers.dynamic_gru layers.sequence_mask layers.lod_reset
    layers.While clip.GradientClipByGlobalNorm dygraph.parallel.ParallelEnv dygraph.DataParallel dygraph.to_variable
    dygraph.Linear dygraph.Conv2D dygraph.Pool2D dygraph.BatchNorm dygraph.Embedding
    """,
)

_FLUID = {
    "cast": "cast", "assign": "assign", "elementwise_mul": "multiply", "elementwise_add": "add",
    "elementwise_sub": "subtract", "elementwise_div": "divide", "softmax": "nn.functional.softmax", "argmax": "argmax",
    "reduce_sum": "sum", "reduce_mean": "mean", "mean": "mean", "concat": "concat", "reshape": "reshape",
    "matmul": "matmul", "slice": "slice", "one_hot": "one_hot", "unsqueeze": "unsqueeze", "squeeze": "squeeze",
    "stack": "stack", "gelu": "nn.functional.gelu", "relu": "nn.functional.relu", "equal": "equal", "gather": "gather",
    "transpose": "transpose", "scale": "scale", "sigmoid": "nn.functional.sigmoid", "split": "split", "expand": "tile",
    "zeros": "zeros", "ones": "ones", "log": "log", "exp": "exp", "sqrt": "sqrt", "abs": "abs", "square": "square",
    "tanh": "tanh", "shape": "shape", "topk": "topk", "where": "where", "clip": "clip",
}  # fmt: skip
for _old, _new in _FLUID.items():
    _found = get(f"paddle.{_new}")
    if _found is not MISSING and get(f"paddle.fluid.layers.{_old}") is MISSING:
        register(f"paddle.fluid.layers.{_old}", _found)
register(
    "paddle.base.layers.fill_constant_batch_size_like",
    Native(
        "fill_constant_batch_size_like", lambda context, *args, **kwargs: context.unknown("a static graph's constant")
    ),
)


def _param_groups(context: Context, model: Value, *args: Value) -> Value:
    """Parameters without decay for those of one dimension (timm)."""
    return (
        [p for _, p in model.named_parameters()]
        if isinstance(model, LayerInstance)
        else Unknown("parameters", context.where)
    )


for _owner in ("timm.optim.optim_factory", "timm.optim"):
    for _name in ("add_weight_decay", "param_groups_weight_decay"):
        register(f"{_owner}.{_name}", Native(_name, _param_groups))

NO_GENERATOR: Any = native_class("torch._C.Generator")
register("torch._C.Generator", NO_GENERATOR)
