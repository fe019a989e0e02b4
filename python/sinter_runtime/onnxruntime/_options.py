"""SessionOptions, RunOptions and their enumerations."""
from __future__ import annotations

import enum
import logging
import os
from typing import Any

from . import _notes


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


# The attributes of SessionOptions with onnxruntime's defaults.
_DEFAULTS: dict[str, Any] = {
    "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True, "enable_profiling": False,
    "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
    "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "inter_op_num_threads": 0, "intra_op_num_threads": 0,
    "log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "optimized_model_filepath": "",
    "profile_file_prefix": "onnxruntime_profile_", "use_deterministic_compute": False, "use_per_session_threads": True}
# Attributes that are honoured, or whose every value Sinter fulfils: a plan is deterministic and has one order of steps, and a
# session's memory is fixed.
_FULFILLED = {"intra_op_num_threads", "log_severity_level", "use_deterministic_compute", "enable_cpu_mem_arena", "enable_mem_pattern",
              "enable_mem_reuse", "use_per_session_threads"}
# Keys of session config entries that Sinter itself reads.
OWN_ENTRIES = {"sinter.fallback", "sinter.shapes", "sinter.cache"}
DIM_ENTRY, CONVERT_ENTRY = "sinter.dim.", "sinter.convert."


class _Attributes:
    """An object with a fixed set of typed attributes, as onnxruntime's are."""

    _defaults: dict[str, Any] = {}
    _entries: dict[str, str]
    log_severity_level: int
    log_verbosity_level: int
    logid: str

    def __init__(self) -> None:
        self.__dict__.update(self._defaults, _entries={})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            raise AttributeError(f"{type(self).__name__} does not have an attribute '{name}'")
        kind = type(self._defaults[name])
        if kind in (bool, str) and not isinstance(value, kind) or issubclass(kind, enum.Enum) and not isinstance(value, kind):
            raise TypeError(f"{type(self).__name__}.{name} is {kind.__name__}, not {value!r}")
        if kind is int:
            if isinstance(value, str) or not hasattr(value, "__index__"):
                raise TypeError(f"{type(self).__name__}.{name} is a whole number, not {value!r}")
            value = value.__index__()
        self.__dict__[name] = value

    def _add_entry(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("a configuration entry is a key and a value, both of them str")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions(_Attributes):
    """The options of a session. The number of threads, sizes of free dimensions, initializers and the log's severity are honoured;
    what has no meaning for Sinter is accepted, and named once in the log."""

    _defaults = _DEFAULTS
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool
    initializers: dict[str, Any]  # arrays by name, in place of the model's
    free_dims: dict[str, int]
    _calls: list[tuple[str, tuple[Any, ...]]]  # methods without a meaning for Sinter, for the real onnxruntime
    _kept: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self.__dict__.update(initializers={}, free_dims={}, _calls=[], _kept=[])

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self.free_dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        self._calls.append(("add_free_dimension_override_by_denotation", (denotation, size)))

    def add_initializer(self, name: str, value: Any) -> None:
        self.initializers[name] = value

    def add_external_initializers(self, names: list[str], values: list[Any]) -> None:
        self.initializers.update(zip(names, values))

    def register_custom_ops_library(self, path: str) -> None:
        self._calls.append(("register_custom_ops_library", (path,)))

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        self._calls.append(("add_provider", (name, options)))

    def has_providers(self) -> bool:
        return any(name == "add_provider" for name, _ in self._calls)

    @property
    def entries(self) -> dict[str, str]:
        return dict(self._entries)

    @property
    def ranges(self) -> dict[str, str]:
        """Sizes of dimensions, MIN..MAX, from the entries sinter.dim.NAME."""
        return {key[len(DIM_ENTRY):]: value for key, value in self._entries.items() if key.startswith(DIM_ENTRY)}

    @property
    def conversion(self) -> dict[str, Any]:
        """Options of the conversion, from the entries sinter.convert.OPTION."""
        return {key[len(CONVERT_ENTRY):]: {"True": True, "False": False}.get(value, value)
                for key, value in self._entries.items() if key.startswith(CONVERT_ENTRY)}

    @property
    def threads(self) -> int:
        """The threads of a run: 0 is one for each processor that the process may use."""
        if self.intra_op_num_threads > 0:
            return self.intra_op_num_threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def list_unused(self) -> None:
        """Names the options of this session that have no meaning, once in a process."""
        names = [name for name, default in self._defaults.items() if name not in _FULFILLED and getattr(self, name) != default]
        if self.inter_op_num_threads == 1:  # steps run one after the other
            names.remove("inter_op_num_threads")
        names += [name for name, _ in self._calls]
        names += [key for key in self._entries if key not in OWN_ENTRIES and not key.startswith((DIM_ENTRY, CONVERT_ENTRY))]
        for name in names:
            _notes.say_once(f"the session option {name} is accepted, but has no meaning for Sinter", logging.WARNING)

    def real(self, module: Any) -> Any:
        """Returns these options as the real onnxruntime has them."""
        options = module.SessionOptions()
        for name, default in self._defaults.items():
            value = getattr(self, name)
            if value != default and hasattr(options, name):
                kind = getattr(module, type(default).__name__, None) if isinstance(default, enum.Enum) else None
                setattr(options, name, getattr(kind, value.name) if kind is not None else value)
        for key, text in self._entries.items():
            if not key.startswith("sinter."):
                options.add_session_config_entry(key, text)
        for name, size in self.free_dims.items():
            options.add_free_dimension_override_by_name(name, size)
        for name, arguments in self._calls:
            getattr(options, name)(*arguments)
        if self.initializers:
            values = [module.OrtValue.ortvalue_from_numpy(_array(value)) for value in self.initializers.values()]
            options.add_external_initializers(list(self.initializers), [value._get_c_value() for value in values])
            self._kept.extend(values)  # onnxruntime refers to their memory
        return options


def _array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


class RunOptions(_Attributes):
    """The options of a run. `terminate` refuses runs that begin while it is set."""

    only_execute_path_to_fetches: bool
    terminate: bool

    _defaults = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "only_execute_path_to_fetches": False,
                 "terminate": False}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        return self._entry(key)

    def add_active_adapter(self, adapter: Any) -> None:
        raise RuntimeError("Sinter does not have adapters; merge the adapter into the model's weights before")
