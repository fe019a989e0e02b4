"""IOBinding: arrays that runs read and write."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._values import Array, OrtDevice, OrtValue, at_address

if TYPE_CHECKING:
    from ._session import Session


class IOBinding:
    """Inputs and outputs of a session that are bound to memory. An output without memory gets a new array in each run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def _check(self, name: str, known: Sequence[Any]) -> None:
        if all(arg.name != name for arg in known):
            raise RuntimeError(f"Failed to find NodeArg with name: {name}; the model has {', '.join(arg.name for arg in known)}")

    def _bind(self, name: str, value: OrtValue) -> None:
        self._check(name, [*self._session.get_inputs(), *self._session.get_overridable_initializers()])
        self._inputs[name] = value

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Binds an input to an array; runs read what it then holds."""
        if not isinstance(arr_on_cpu, np.ndarray):
            raise RuntimeError(f"input '{name}' is bound to {type(arr_on_cpu).__name__}; give a NumPy array")
        self._bind(name, OrtValue(arr_on_cpu))

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Binds an input to memory of the caller."""
        OrtDevice(device_type, device_id)
        self._bind(name, OrtValue(at_address(buffer_ptr, shape, element_type)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._bind(name, ortvalue)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Binds an output to memory of the caller, or asks for it."""
        OrtDevice(device_type, device_id)
        self._check(name, self._session.get_outputs())
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        if element_type is None or shape is None:
            raise ValueError("an output in memory of the caller needs its element_type and shape")
        self._outputs[name] = OrtValue(at_address(buffer_ptr, shape, element_type))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._check(name, self._session.get_outputs())
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Does nothing: the memory is the CPU's."""

    def synchronize_outputs(self) -> None:
        """Does nothing: the memory is the CPU's."""

    def compute(self, run: Callable[[list[str], dict[str, OrtValue]], list[Any]]) -> None:
        """Calls `run` with what is bound, and writes its results to where they are bound."""
        if not self._outputs:
            raise RuntimeError("Error in execution: no output is bound; call bind_output() for each that is needed")
        results = run(list(self._outputs), dict(self._inputs))
        kept = []
        for (name, bound), result in zip(self._outputs.items(), results):
            if bound is None:
                kept.append(OrtValue(result))
                continue
            if list(result.shape) != bound.shape() or result.dtype != bound._array.dtype:
                raise RuntimeError(f"Error in execution: output '{name}' is {result.dtype.name}{list(result.shape)}, but it is bound to "
                                   f"{bound._array.dtype.name}{bound.shape()}; bind it to memory of its type and shape")
            np.copyto(bound._array, result)
            kept.append(bound)
        self._results = kept

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the last run."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Returns copies of the outputs of the last run."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []
