"""InferenceSession: a model that runs arrays of any shape that it allows."""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _notes, _real
from ._engine import Engine
from ._exceptions import Fail, InvalidArgument, NotImplemented
from ._io_binding import IOBinding
from ._options import RunOptions, SessionOptions
from ._source import Source
from ._values import Array, NodeArg, OrtValue, to_array

PROVIDER = "CPUExecutionProvider"


class ModelMetadata:
    """What the model's file states about itself."""

    __module__ = "onnxruntime.capi.onnxruntime_pybind11_state"

    def __init__(self, source: Source) -> None:
        facts = source.facts
        self.producer_name = facts.producer_name
        self.graph_name = facts.graph_name
        self.domain = facts.domain
        self.description = facts.description
        self.graph_description = facts.graph_description
        self.version = facts.version
        self.custom_metadata_map = dict(facts.metadata)


class Session:
    """The methods of a session; InferenceSession makes one."""

    _inputs: list[NodeArg]
    _outputs: list[NodeArg]
    _overridable: list[NodeArg]
    _meta: ModelMetadata
    _engine: Engine
    _sess_options: SessionOptions
    _args: dict[str, NodeArg]  # inputs and overridable initializers
    _required: set[str]
    _output_names: list[str]
    _only_real: _real.Session | None

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        return self._overridable

    def get_modelmeta(self) -> ModelMetadata:
        return self._meta

    def get_providers(self) -> list[str]:
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {PROVIDER: {}}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        check_providers(providers, provider_options)

    def enable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def disable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def end_profiling(self) -> str:
        """Returns no file: `sinter bench` measures the steps of a model."""
        return ""

    def get_profiling_start_time_ns(self) -> int:
        return 0

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        """Returns the outputs of these names, or all of them."""
        if isinstance(output_names, (str, bytes)):
            raise TypeError(f"run(): the names of outputs are a list, not {output_names!r}")
        missing = [arg.name for arg in self._inputs if arg.name not in input_feed and not arg.type.startswith("optional")]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        if run_options is not None and run_options.terminate:
            raise Fail("Exiting due to terminate flag being set to true.")
        names = list(output_names or self._output_names)
        for name in names:
            if name not in self._output_names:
                raise InvalidArgument(f"Invalid output name: {name}; the model has {', '.join(self._output_names)}")
        return self._compute(names, input_feed)

    def _compute(self, names: list[str], input_feed: Mapping[str, Any]) -> list[Any]:
        if self._only_real is not None:
            return self._only_real.run(names, dict(input_feed))
        feed: dict[str, Array] = {}
        overridden: dict[str, Array] = {}
        for name, value in input_feed.items():
            arg = self._args.get(name)
            if arg is None:
                raise InvalidArgument(f"Invalid input name: {name}; the model has {', '.join(self._args)}")
            if value is None:
                raise Fail(f"Missing Input: {name}; None is given for it")
            (feed if name in self._required else overridden)[name] = to_array(arg, value)
        result = self._engine.run(feed, overridden)
        if result is None:
            assert self._engine.real is not None
            return self._engine.real.run(names, dict(input_feed))
        return [result[name] for name in names]

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """Returns the outputs as OrtValues."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], object], user_data: Any, run_options: RunOptions | None = None) -> None:
        """Runs on a thread of its own, which calls `callback` with the outputs, `user_data` and the text of an error."""
        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as problem:
                results, error = [], str(problem)
            callback(results, user_data, error)

        threading.Thread(target=work, name="sinter-run").start()

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with bound inputs and outputs."""
        try:
            iobinding.compute(lambda names, feed: self.run(names, feed, run_options))
        except (Fail, InvalidArgument, ValueError) as error:
            raise RuntimeError(f"Error in execution: {str(error).split(' : ', 3)[-1]}") from error


class InferenceSession(Session):
    """A model of an ONNX file. Its shapes are converted when runs first have them."""

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is {type(sess_options).__name__}, not SessionOptions")
        options = sess_options or SessionOptions()
        if options.log_severity_level >= 0:
            _notes.set_severity(min(options.log_severity_level, 4))
        try:
            check_providers(providers, provider_options)
        except ValueError as error:  # the real one then runs on the CPU, too
            warnings.warn(f"{error}; Sinter runs on '{PROVIDER}'", stacklevel=2)
        options.list_unused()
        for name in kwargs:
            if name not in ("disabled_optimizers", "enable_fallback", "read_config_from_model"):
                _notes.say_once(f"the argument {name} of InferenceSession is accepted, but has no meaning for Sinter")
        self._sess_options = options
        source = Source(path_or_bytes)
        self._model_path, self._model_bytes = source.path, source.data
        self._meta = ModelMetadata(source)
        facts = source.facts
        args = [NodeArg(value, options.free_dims) for value in facts.inputs]
        self._inputs = [arg for arg in args if arg.name not in facts.initializers]
        # Before IR version 4, initializers that are inputs were constants.
        self._overridable = [arg for arg in args if arg.name in facts.initializers] if facts.ir_version >= 4 else []
        self._outputs = [NodeArg(value, options.free_dims) for value in facts.outputs]
        self._required = {arg.name for arg in self._inputs}
        self._args = {arg.name: arg for arg in [*self._inputs, *self._overridable]}
        self._output_names = [arg.name for arg in self._outputs]
        self._engine = Engine(source, self._inputs, options)
        self._only_real = self._real_for_values_that_are_no_tensors(source)
        if self._only_real is None and all(arg.ranked and all(isinstance(dim, int) for dim in arg.dims) for arg in self._inputs):
            self._engine.prepare()

    def _real_for_values_that_are_no_tensors(self, source: Source) -> _real.Session | None:
        for arg in self._inputs:
            if not arg.type.startswith("tensor("):
                reason = f"Input '{arg.name}' is {arg.type}, but Sinter takes tensors alone."
                real = _real.session(source.data if source.data is not None else str(source.path), self._sess_options, reason)
                if real is None:
                    raise NotImplemented(f"{reason} {_real.advice()}")
                return real
        return None


def check_providers(providers: Any, provider_options: Any = None) -> None:
    """Warns about providers that do not exist here, and raises ValueError about what is no list of providers."""
    if providers is None:
        return
    named = list(providers)  # TypeError where it is none
    if isinstance(providers, str):
        raise ValueError(f"'providers' is the text {providers!r}; give a list of names")
    if provider_options is not None:
        if len(provider_options) != len(named):
            raise ValueError("'providers' and 'provider_options' have different lengths")
        if not all(isinstance(options, dict) for options in provider_options) or not all(isinstance(name, str) for name in named):
            raise ValueError("with 'provider_options', which are dicts, 'providers' are names")
    names = []
    for provider in named:
        name, options = provider if isinstance(provider, tuple) and len(provider) == 2 else (provider, {})
        if not isinstance(name, str) or not isinstance(options, dict):
            raise ValueError(f"the provider {provider!r} is neither a name nor a pair of a name and a dict of options")
        names.append(name)
    for name in dict.fromkeys(names):
        if name != PROVIDER:
            warnings.warn(f"Specified provider '{name}' is not in available provider names; Sinter runs on '{PROVIDER}'", stacklevel=3)
        elif names.count(name) > 1:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring", stacklevel=3)
