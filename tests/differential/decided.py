"""Disagreements that were looked at: which oracle is wrong or alone, where, and why. A row covers one oracle's answer."""
import dataclasses
from collections.abc import Callable

import numpy as np

ORT, REF = "onnxruntime", "reference"
BOTH = (ORT, REF)


@dataclasses.dataclass(frozen=True)
class Row:
    ops: str
    wrong: tuple  # the oracles that it covers
    why: str  # "open": ONNX's text does not decide
    when: Callable = lambda case, text: True  # text: the difference of that oracle

    @property
    def name(self):
        return f"{self.ops}: {self.why}"


def large(case, text):
    """Integers whose sums and products leave the type, or float32's and float64's exact integers."""
    return any(a.size and a.dtype.kind in "iu" and float(np.abs(a.astype("f8")).max()) > 1000 for a in case.arrays.values())


def integers(case, text):
    return case.arrays[case.node.input[0]].dtype.kind in "iu"


def given(*names):
    return lambda case, text: any(case.attribute(n) not in (None, 0, []) for n in names)


def special(case, text):
    return any(a.dtype.kind == "f" and a.size and not np.isfinite(a).all() for a in case.arrays.values())


def same_dilated(case, text):
    return padded_same(case, text) and max(case.attribute("dilations") or [1]) > 1


def padded_same(case, text):
    return str(case.attribute("auto_pad", "")).startswith("SAME")


def uneven(case, text):
    return len(set(case.attribute("pads") or [])) > 1


def before(opset):
    return lambda case, text: case.opset < opset


def all_of(*conditions):
    return lambda case, text: all(c(case, text) for c in conditions)


def any_of(*conditions):
    return lambda case, text: any(c(case, text) for c in conditions)


def says(*words):
    return lambda case, text: any(w in text for w in words)


def size(of):
    return lambda case, text: of([list(case.arrays[x].shape) if x in case.arrays else [] for x in case.node.input])


def activations(*names):
    return lambda case, text: any(a.decode() in names for a in case.attribute("activations") or [])


def cancels(case, text):
    """Numbers that differ where the variance of a mean's elements is small beside the square of the mean."""
    x = case.arrays[case.node.input[0]].astype("f8")
    axes = tuple(range(2, x.ndim))
    if case.op == "MeanVarianceNormalization":
        axes = tuple(case.attribute("axes") or (0, 2, 3))
    elif case.op == "GroupNormalization":
        x, axes = x.reshape(x.shape[0], case.attribute("num_groups"), -1), (2,)
    return " differ, first at " in text and bool((x.var(axes) <= 2.0**-8 * x.mean(axes)**2).any())


def unsigned(case, text):
    return case.arrays[case.node.input[0]].dtype.kind == "u"


def empty(case, text):
    return any(a.size == 0 for a in case.arrays.values())


def strides_skip(case, text):
    """SAME where the window ends before the next begins: the sum of its pads would be negative."""
    kernel = case.attribute("kernel_shape")
    return padded_same(case, text) and any(s > k for s, k in zip(case.attribute("strides") or [1] * len(kernel), kernel))


def negative_axes(case, text):
    return any(a < 0 for a in case.attribute("axes") or [])


def scaled(case):
    """Length, scale, and start and end of the region, of each axis that Resize scales by numbers of the file."""
    x, roi, scales, sizes = ((case.arrays.get(n) for n in [*case.node.input, "", "", ""][:4]) if case.opset > 10 else
                             (case.arrays.get(case.node.input[0]), None, case.arrays.get(case.node.input[1]), None))
    axes = case.attribute("axes") or range(x.ndim)
    lengths = [x.shape[a] for a in axes]
    if scales is None or scales.size == 0:
        scales = [n / m for n, m in zip(sizes, lengths)]
    regions = [(0, 1)] * len(lengths) if roi is None or roi.size == 0 else zip(*np.split(roi.astype("f8"), 2))
    return list(zip(lengths, map(float, scales), regions))


def kept_length(case, text):
    """Scales that leave the length of an axis as it is."""
    return any(s != 1 and int(n * s) == n for n, s, _ in scaled(case))


def tie(case, text):
    """A nearest sample whose place is within float32's rounding of the middle between two, or of one."""
    places = []
    for n, s, (start, end) in scaled(case):
        at, last = np.arange(int(n * s)), max(int(n * s) - 1, 1)
        places += [(at + 0.5) / s - 0.5, at / s, at * (n - 1) / last, start * (n - 1) + at * (end - start) * (n - 1) / last,
                   [0.5 * (start + end) * (n - 1)]]
    places = np.concatenate(places)
    return case.attribute("mode", "nearest") == "nearest" and bool((np.abs(2 * places - np.round(2 * places)) < 1e-6 * (1 + abs(places))).any())


def crops(case, text):
    return case.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"


SAME = "output_shape[i] = ceil(input_shape[i] / strides[i]) for SAME, whatever the dilations; onnxruntime pads without them"
ROWS = [
    # Arithmetic of integers and of numbers that are not finite.
    Row("ReduceL1 ReduceL2 ReduceSumSquare ReduceSum ReduceProd ReduceMean ReduceLogSum CumSum CumProd Mean Sum", BOTH,
        "open: integers that leave their type; Sinter wraps sums, and means of integers are exact", large),
    Row("ReduceProd CumProd", BOTH, "open: a product of integers that leaves its type; Sinter wraps it", integers),
    Row("ReduceLogSum", BOTH, "open: a logarithm of an integer that is not above 0", integers),
    Row("ReduceLogSumExp", (ORT,), "exponentials of integers are cut to integers before they are added", integers),
    Row("QuantizeLinear LpNormalization", (REF,), "the quotient, and squares and sums, are rounded to float16 on the way",
        lambda case, text: case.arrays[case.node.input[0]].dtype == np.float16),
    Row("Einsum Erf GridSample Col2Im Attention Upsample Resize", BOTH, "sums and fractions of narrow or mixed types come in a wider type, with an entry in "
        "the report", says("type int32, want", "type float32, want", "type float64, want", "type int64, want bool")),
    Row("HannWindow HammingWindow BlackmanWindow", BOTH, "the sine of a rounded pi is not 0", says("want 9.5", "want 2.3")),
    Row("Pow", BOTH, "open: a power that is no integer of the type (too large, inf or NaN as an integer)", integers),
    Row("Shrink Gemm MatMul Einsum Conv Clip QuantizeLinear", (REF,), "integers beyond float32 are rounded or wrap", large),
    Row("Resize Upsample", BOTH, "open: an interpolated integer is rounded to the nearest, not cut; large ones in float64", integers),
    Row("MaxPool GlobalMaxPool", BOTH, "open: a NaN in a window; Sinter gives NaN as ReduceMax does", special),
    Row("Hardmax ArgMax ArgMin TopK Swish ReduceMin ReduceMax Min Max Softmax LogSoftmax ScatterElements ScatterND ReduceLogSumExp", BOTH,
        "open: order of a NaN, log(0), and -inf in x * sigmoid(x), whose limit is 0", special),
    Row("GroupNormalization InstanceNormalization MeanVarianceNormalization", BOTH,
        "the variance as E(x^2) - E(x)^2 in float32 loses its digits where it is small; Sinter's has no cancellation", cancels),
    Row("Clip", BOTH, "open: an absent bound leaves infinity as it is, as torch and numpy do; ONNX has the largest finite number there", special),
    Row("OneHot PRelu", (REF,), "infinity * 0 is NaN where a product stands for a choice", special),
    Row("Shrink Gemm", BOTH, "open: a number below 0 as an unsigned one; Sinter has 0", unsigned),
    Row("Einsum Mod", (ORT,), "64-bit integers go through float64", large),
    Row("ReduceMean", (REF,), "open: the mean of no integers; Sinter has 0", all_of(integers, empty)),
    Row("QLinearMatMul MatMulInteger", (ORT,), "a sum of no products is 0; onnxruntime leaves what was in memory", empty),
    Row("DynamicQuantizeLinear", (REF,), "the scale of zeros alone is 1 / 255, and 1 in onnxruntime and Sinter; open",
        lambda case, text: not any(a.any() for a in case.arrays.values())),
    # Recurrent layers.
    Row("LSTM GRU RNN", (REF,), "clip, activations and their alpha and beta, sequence_lens, input_forget and layout are not read",
        any_of(given("clip", "activations", "input_forget", "layout"), size(lambda s: len(s) > 4))),
    Row("LSTM GRU RNN", (ORT,), "activations without alpha and beta have those of the operators, not 0 and 0",
        activations("Affine", "ScaledTanh", "ThresholdedRelu")),
    Row("LSTM GRU RNN", (ORT,), "log(1 + exp(x)) overflows, and 0 * inf is NaN", all_of(activations("Softplus"), says("want nan", "want inf"))),
    Row("Attention", (REF,), "qk_matmul_output of mode 0 is the product before softcap",
        all_of(given("softcap"), lambda case, text: "output 0" not in text)),
    Row("Attention", (ORT,), "is_causal counts from the end of the past", all_of(given("is_causal"), size(lambda s: len(s) > 4))),
    # Windows.
    Row("AveragePool LpPool MaxPool Conv", (ORT,), SAME, same_dilated),
    Row("AveragePool LpPool MaxPool", (REF,), "pads of SAME, of ceil_mode, of dilations and of several numbers, storage_order and the offset of an image in "
        "Indices", any_of(given("ceil_mode", "dilations", "storage_order"), padded_same, uneven, says("output 1"))),
    Row("AveragePool LpPool MaxPool", (ORT,), "SAME pads nothing where a stride is above the kernel, as onnxruntime's Conv does; its pools refuse "
        "or crop", strides_skip),
    Row("ConvInteger", (REF,), "a zero point for each channel lies along the wrong axis", size(lambda s: len(s) > 3 and s[3] not in ([], [1]))),
    Row("ConvTranspose", (ORT,), "output_shape[i] = input_shape[i] * strides[i] for SAME", given("auto_pad")),
    Row("ConvTranspose", (REF,), "groups, output_shape, uneven and negative pads; onnxruntime agrees with Sinter where it has the type"),
    Row("Col2Im", (ORT,), "dilations of one axis; the reference agrees with Sinter", given("dilations")),
    Row("GridSample", (REF,), "cubic: the padding is that of each tap, as in torch and onnxruntime", lambda case, text:
        "cubic" in case.attribute("mode", "")),
    Row("LRN", (REF,), "it goes through as many channels as x has images"),
    Row("RoiAlign", (REF,), "onnxruntime agrees with Sinter; the reference alone differs, with one box and channel as well"),
    Row("QLinearConv", (REF,), "scales per channel lie along axis 1 of a result of rank 4 only"),
    Row("Resize", (ORT,), "align_corners and tf_crop_and_resize take the length before it is cut to an integer, as ONNX's test "
        "resize_downsample_scales_cubic_align_corners does", lambda case, text: case.attribute("coordinate_transformation_mode", "") in
        ("align_corners", "tf_crop_and_resize")),
    Row("Resize", (ORT,), "keep_aspect_ratio_policy does not reach negative axes", all_of(negative_axes, given("keep_aspect_ratio_policy"))),
    Row("Resize", (ORT,), "a scale that leaves the length as it is moves samples all the same", kept_length),
    Row("Resize", BOTH, "open: the place of a nearest sample is one sample's, or between two, in float32 or in float64 only", tie),
    Row("Resize", (REF,), "open: tf_crop_and_resize: whether the last sample is outside hangs on the order of roundings", crops),
    Row("GridSample", (REF,), "places are computed in float16", lambda case, text: case.arrays[case.node.input[1]].dtype == np.float16),
    Row("Resize", (REF,), "nearest has no sample outside whose weight exclude_outside could drop", given("exclude_outside")),
    # Shapes and places.
    Row("NonZero", (ORT,), "'for scalar input, NonZero produces output shape (0, N)'", size(lambda s: s[0] == [])),
    Row("Shape", (REF,), "start and end are clamped to [0, rank]: an empty shape where start is not before end"),
    Row("Slice", (ORT,), "a negative step from the front to the largest integer takes nothing; onnxruntime reads INT_MAX as no end"),
    Row("ReduceMean ReduceProd ReduceSum ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp ArgMax ArgMin", (ORT,),
        "a reduced axis of 0 elements has 1 element or goes", size(lambda s: 0 in s[0])),
    Row("Unique", (REF,), "with sorted = 0 elements are taken along axis 0, whatever axis is"),
    Row("Unsqueeze", (REF,), "the order of values in axes does not matter", before(13)),
    Row("AffineGrid", BOTH, "open: align_corners with one cell along an axis; Sinter's is in the middle, as torch's",
        lambda case, text: case.attribute("align_corners") == 1 and 1 in list(case.arrays[case.node.input[1]])[2:]),
    # Old versions.
    Row("Softmax LogSoftmax Hardmax", (REF,), "before 13 the input is coerced into 2-D at axis", before(13)),
    Row("BatchNormalization", (REF,), "inference uses mean and var as given, and mixes in no statistics of x", before(14)),
    Row("Dropout", (REF,), "the mask of inference is true everywhere", before(12)),
    Row("Resize Upsample", (ORT,), "before 11 nearest takes the sample before, also where it shrinks; onnxruntime the one after", before(11)),
    Row("LpNormalization", (REF,), "p = 1 is the sum of |x|", given("p")),
]


def find(case, oracle, text):
    """The row that decides this oracle's difference, or None."""
    for row in ROWS:
        if oracle in row.wrong and case.op in row.ops.split() and row.when(case, text):
            return row
    return None
