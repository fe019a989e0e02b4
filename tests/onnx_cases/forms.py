"""Forms of operators that ONNX's own tests omit: equations without an arrow, grids beyond the image, shapes that a run
gives. Expected: of NumPy where onnxruntime refuses the equation (scalars, capitals first), else of onnxruntime."""
import itertools

import numpy as np
from case import arr64, floats, graph, model, node, refused, simple


def equations():
    """Labels that one term repeats take the diagonal; without an arrow, only labels written once are results."""
    sizes = {"i": 3, "j": 4, "k": 2, "A": 2, "b": 3, "z": 5}
    for number, equation in enumerate((
            "ii", "iij", "iij,j", "...ii", "ii...", "iii", "ijij", "ii,jj", "ii,i", "ii,ii", "i...i,j", "ii...,...jj",
            "iij,jkk", "ij,jk,kk", " i i j ", "ij,ij,ij", "bA", "zAb,bi", ",ii", "ii->", "ii->i", "...ii->...i",
            "iij->ji", "iij,jjk->ik", "ii...,...jj->j...i")):
        terms = equation.replace(" ", "").split("->")[0].split(",")
        feeds = {}
        for at, term in enumerate(terms):
            # The ellipsis stands for two axes, of which a later term repeats the first.
            hidden = [1 if at else 2, 3]
            shape = [n for part in term.replace("...", ".") for n in (hidden if part == "." else [sizes[part]])]
            feeds[f"x{at}"] = floats(f"{equation}{at}", *shape)
        yield simple(f"einsum_{number}", node("Einsum", list(feeds), "y", equation=equation), feeds, expect="given",
                     given={"y": np.asarray(np.einsum(equation, *feeds.values()), np.float32)}, opset=13)
    m = model(graph([node("Einsum", "x", "y", name="here", equation="ii")], {"x": floats("uneven", 1, 3)}, "y"))
    yield refused("einsum_diagonal_of_1_and_3", m, "here", "Einsum", "diagonal")


def grids():
    """Each element that is read is taken to the border or reflected, not the point around which they are."""
    kinds = (("linear", "bilinear"), ("nearest", "nearest"), ("cubic", "bicubic"))
    for (mode, early), padding, align in itertools.product(kinds, ("zeros", "border", "reflection"), (0, 1)):
        attributes = dict(padding_mode=padding, align_corners=align)
        name = f"gridsample_{mode}_{padding}_{align}"
        x, g = floats("grid x", 2, 3, 4, 5), floats(f"{name} g", 2, 6, 3, 2, low=-2.5, high=2.5)
        yield simple(name, node("GridSample", "x g", "y", mode=mode, **attributes), {"x": x, "g": g}, opset=20, ir=9)
        yield simple(f"{name}_one_pixel", node("GridSample", "x g", "y", mode=early, **attributes),
                     {"x": x[:, :, :1, :2].copy(), "g": g}, opset=16)
        if mode != "cubic":
            yield simple(f"{name}_volume", node("GridSample", "x g", "y", mode=mode, **attributes),
                         {"x": floats("grid v", 1, 2, 3, 4, 2), "g": floats(f"{name} v", 1, 3, 2, 4, 3, low=-2.5, high=2.5)},
                         opset=20, ir=9)


def unknown_sizes():
    """Sizes that an exporter does not know all have one name, PaddlePaddle's "?", and differ."""
    x, z = floats("unknown x", 1, 3, 4, 6), floats("unknown z", 1, 3, 4, 1)
    declared = {"x": (x, ["?"] * 4), "z": (z, ["?"] * 4)}
    yield simple("sizes_named_alike", node("Add", "x z", "y"), declared, flags=("--shape", "x=1,3,4,6", "--shape", "z=1,3,4,1"))


def resized_lengths():
    """Resize by scales that give no whole length, to one element, and of a part of an axis."""
    x = floats("resized lengths", 1, 2, 5, 7)

    def resize(name, scales, shape=x.shape, roi=(), **attributes):
        part = {"r": np.array(roi, np.float32)} if roi else {}
        return simple(f"resize_{name}", node("Resize", ["x", "r" if roi else "", "s"], "y", **attributes),
                      {"x": floats("resized lengths", *shape)}, constants={"s": np.array(scales, np.float32), **part}, opset=19, ir=9)

    # 5 * 2.8 is 14 in float32, in which ONNX infers the shape.
    for mode in ("linear", "nearest", "cubic"):
        yield resize(f"{mode}_float32_length", [1, 1, 2.8, 1.6], mode=mode)
        yield resize(f"{mode}_asymmetric_length", [1, 1, 2.3, 0.7], mode=mode, coordinate_transformation_mode="asymmetric")
    yield simple("upsample_float32_length", node("Upsample", "x s", "y"), {"x": x}, constants={"s": np.array([1, 1, 2.8, 1], np.float32)}, opset=9)
    for mode in ("linear", "cubic"):
        yield resize(f"{mode}_to_one", [1, 1, 0.3, 0.5], (1, 2, 5, 3), mode=mode, coordinate_transformation_mode="pytorch_half_pixel")
    for mode in ("linear", "nearest"):
        yield resize(f"{mode}_part", [1, 1, 1.5, 1.3], roi=[0, 0, 0.25, 0.1, 1, 1, 0.9, 1], mode=mode, extrapolation_value=3.0,
                     coordinate_transformation_mode="tf_crop_and_resize")
    corners = dict(mode="linear", coordinate_transformation_mode="align_corners")
    halves = {"s": np.array([1, 1, 1.5, 1], np.float32)}
    yield refused("resize_corners_of_no_length", model(graph([node("Resize", ["x", "", "s"], "y", name="grow", **corners)], {"x": x}, "y", halves)),
                  "'grow'", "7.5 elements of axis 2", "onnxruntime takes the length 7", "give sizes", codes=(1,), flags=("--strict",))
    yield simple("resize_corners_by_sizes", node("Resize", ["x", "", "", "n"], "y", **corners), {"x": x}, constants={"n": arr64(1, 2, 7, 7)},
                 flags=("--strict",))


def cases():
    for group in (equations, grids, unknown_sizes, resized_lengths):
        yield from group()
