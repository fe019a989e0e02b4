#!/usr/bin/env python3
"""Write converter/repair/onnx_types.def, the element types that ONNX's operators take, from the onnx package's schemas.

    onnx_types.py > converter/repair/onnx_types.def
"""
import re

import onnx
from onnx import defs

DOMAINS = ("", "ai.onnx.ml")
NUMBERS = {"bool": onnx.TensorProto.BOOL, "float": onnx.TensorProto.FLOAT, "double": onnx.TensorProto.DOUBLE}


def number(text):
    """ONNX's number of the elements of "tensor(T)", "seq(tensor(T))" or "optional(...)"; None: there are none."""
    found = re.search(r"tensor\((\w+)\)", text)
    return found and NUMBERS.get(found[1], getattr(onnx.TensorProto, found[1].upper(), None))


def mask(types):
    bits = 0
    for t in types:
        n = number(t)
        bits |= 1 << n if n else 0
    return bits


def port(p, names):
    many = "" if p.option != defs.OpSchema.FormalParameterOption.Variadic else "+" if p.is_homogeneous else "*"
    return (p.type_str if p.type_str in names else f"#{number(p.type_str) or 0}") + many


def signature(schema):
    names = {c.type_param_str: mask(c.allowed_type_strs) for c in schema.type_constraints}
    return (" ".join(port(p, names) for p in schema.inputs), " ".join(port(p, names) for p in schema.outputs),
            " ".join(f"{n}={bits:x}" for n, bits in sorted(names.items())))


def main():
    print("// The element types of ONNX's operators, one row for each version of one:\n"
          "// SINTER_ONNX_TYPES(domain, operator, version, operands, results, sets). An operand is the name of a set or #N,\n"
          "// ONNX's number of a type; + repeats it, and * repeats it for operands whose types may differ. A set is a mask with\n"
          "// bit N for type N. scripts/onnx_types.py writes this file from the schemas of the onnx package "
          f"{onnx.__version__}.\n")
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain in DOMAINS and not s.deprecated]
    for s in sorted(schemas, key=lambda s: (s.domain, s.name, s.since_version)):
        print(f'SINTER_ONNX_TYPES("{s.domain}", "{s.name}", {s.since_version}, '
              + ", ".join(f'"{part}"' for part in signature(s)) + ")")


if __name__ == "__main__":
    main()
