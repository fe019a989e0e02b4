"""Which operands the runner gives as constants at conversion (`sinter convert --const`).

Sinter compiles for fixed shapes, so operands that decide a shape must be known; and many kernels want weights and
quantization parameters known. The policy is one: first the shape-like operands are constant, all else is a run-time
input; only if that is refused, weights and parameters are constant too.
"""

_REDUCE = ("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
           "ReduceSumSquare").split()

SHAPE_LIKE = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,),
    "CumProd": (1,), "CumSum": (1,), "DFT": (1, 2), "Expand": (1,), "HammingWindow": (0,), "HannWindow": (0,),
    "Loop": (0,), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4), "NonMaxSuppression": (2,), "OneHot": (1,),
    "Pad": (1, 3), "Range": (0, 1, 2), "Reshape": (1,), "Resize": (1, 2, 3), "Slice": (1, 2, 3, 4), "Split": (1,),
    "Squeeze": (1,), "STFT": (1, 3), "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,),
    "Upsample": (1,), **{op: (1,) for op in _REDUCE},
}

PARAMETERS = {
    "BatchNormalization": (1, 2, 3, 4), "CausalConvWithState": (1, 2), "Clip": (1, 2), "Conv": (1, 2),
    "ConvInteger": (1, 2, 3), "ConvTranspose": (1, 2), "DeformConv": (1, 3), "DequantizeLinear": (1, 2),
    "Dropout": (1, 2), "Gemm": (1, 2), "GRU": (1, 2, 3, 4), "GroupNormalization": (1, 2), "If": (0,),
    "InstanceNormalization": (1, 2), "LayerNormalization": (1, 2), "Loop": (1,), "LSTM": (1, 2, 3, 4, 7),
    "MatMul": (1,), "MatMulInteger": (1, 2, 3), "NonMaxSuppression": (3, 4), "OneHot": (2,), "Pad": (2,),
    "PRelu": (1,), "QLinearConv": (1, 2, 3, 4, 5, 6, 7, 8), "QLinearMatMul": (1, 2, 3, 4, 5, 6, 7),
    "QuantizeLinear": (1, 2), "ReverseSequence": (1,), "RMSNormalization": (1,), "RNN": (1, 2, 3, 4),
    "RotaryEmbedding": (1, 2), "STFT": (2,),
}


def names(model, table):
    """Names of the graph inputs that the table lists, over all nodes of the main graph."""
    inputs = {v.name for v in model.graph.input} - {i.name for i in model.graph.initializer}
    found = set()
    for node in model.graph.node:
        for i in table.get(node.op_type, ()) if node.domain in ("", "ai.onnx") else ():
            if i < len(node.input) and node.input[i] in inputs:
                found.add(node.input[i])
    return found
