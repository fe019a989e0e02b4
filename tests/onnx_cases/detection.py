"""What follows the network in torchvision's detectors (SSDlite, RetinaNet, FCOS, Faster, Mask and Keypoint R-CNN), with
the nodes that PyTorch's exporter writes for them, on small images; and the routing of a mixture of experts.

Feeds decide how many boxes survive: none, one, some, all. About 0.5 s a case.
"""
import sys

import numpy as np
from case import Case, arr64, floats, graph, model
from onnx import TensorProto, helper, numpy_helper

I64 = TensorProto.INT64


class Net:
    """Nodes as they are written down: net.Add(a, b) gives the name of its result."""

    def __init__(self, prefix="v"):
        self.nodes, self.constants, self.prefix = [], {}, prefix

    def name(self):
        return f"{self.prefix}{len(self.nodes)}_{len(self.constants)}"

    def constant(self, value):
        name = "c" + self.name()
        self.constants[name] = np.asarray(value)
        return name

    def operand(self, v):
        return v if isinstance(v, str) else self.constant(v)

    def __getattr__(self, op):
        def call(*ins, outs=1, **attributes):
            ins = [self.operand(v) for v in ins]
            names = [f"{self.name()}_{i}" for i in range(outs)]
            self.nodes.append(helper.make_node(op, ins, names, name=f"{op}_{len(self.nodes)}", **attributes))
            return names[0] if outs == 1 else names
        return call

    # ---- what the exporter writes for Python's indexing
    def mask_index(self, x, mask):
        """x[mask]"""
        return self.GatherND(x, self.Transpose(self.NonZero(mask), perm=[1, 0]))

    def where(self, mask):
        """torch.where(mask)[0]"""
        columns = self.Transpose(self.NonZero(mask), perm=[1, 0])
        return self.Squeeze(self.Gather(columns, arr64(0), axis=1), arr64(1))

    def dim(self, x, axis):
        return self.Gather(self.Shape(x), np.int64(axis), axis=0)

    def topk_min(self, x, most):
        """torchvision.models.detection._utils._topk_min"""
        both = self.Concat(arr64(most), self.Unsqueeze(self.dim(x, 0), arr64(0)), axis=0)
        return self.Reshape(self.ReduceMin(both, keepdims=0), arr64(1))

    def topk(self, x, k):
        return self.TopK(x, k, outs=2, axis=0, largest=1, sorted=1)

    def full_like(self, x, value, kind=np.int64):
        return self.ConstantOfShape(self.Shape(x), value=numpy_helper.from_array(np.array([value], kind)))

    def head(self, x, most):
        """x[:most]"""
        return self.Slice(x, arr64(0), arr64(most), arr64(0))

    def column(self, x, i):
        return self.Gather(x, np.int64(i), axis=1)

    def if_empty(self, x, empty, full):
        """torch.jit._script_if_tracing: if x.numel() == 0."""
        branches = []
        for k, fill in enumerate((empty, full)):
            inner = Net(f"b{len(self.nodes)}_{k}_")
            out = fill(inner)
            branches.append(helper.make_graph(inner.nodes, f"branch{k}", [], [helper.make_tensor_value_info(out, I64, None)],
                                              [numpy_helper.from_array(v, n) for n, v in inner.constants.items()]))
        name = self.name()
        empty_now = self.Equal(self.Size(x), np.int64(0))
        self.nodes.append(helper.make_node("If", [empty_now], [name], name=f"If_{len(self.nodes)}",
                                           then_branch=branches[0], else_branch=branches[1]))
        return name

    def nms(self, boxes, scores, iou):
        """torchvision.ops.nms"""
        found = self.NonMaxSuppression(self.Unsqueeze(boxes, arr64(0)), self.Unsqueeze(self.Unsqueeze(scores, arr64(0)), arr64(0)),
                                       arr64(sys.maxsize), np.array([iou], np.float32))
        return self.Squeeze(self.Gather(found, arr64(2), axis=1), arr64(1))

    def batched_nms(self, boxes, scores, labels, iou):
        """torchvision.ops.batched_nms: classes are moved apart."""
        def full(inner):
            far = inner.Add(inner.ReduceMax(boxes, keepdims=0), np.float32(1))
            offsets = inner.Mul(inner.Cast(labels, to=TensorProto.FLOAT), far)
            return inner.nms(inner.Add(boxes, inner.Unsqueeze(offsets, arr64(1))), scores, iou)
        return self.if_empty(boxes, lambda inner: inner.ConstantOfShape(arr64(0), value=helper.make_tensor("v", I64, [1], [0])),
                             full)

    def clip_boxes(self, boxes, height, width):
        """torchvision.ops.boxes.clip_boxes_to_image while tracing"""
        parts = []
        for i, limit in enumerate((width, height, width, height)):
            x = self.Slice(boxes, arr64(i), arr64(i + 1), arr64(1))
            parts.append(self.Min(self.Max(x, np.float32(0)), np.float32(limit)))
        return self.Concat(*parts, axis=1)

    def keep_large(self, boxes, least):
        """torchvision.ops.remove_small_boxes"""
        w, h = (self.Sub(self.column(boxes, i + 2), self.column(boxes, i)) for i in (0, 1))
        return self.where(self.And(self.GreaterOrEqual(w, np.float32(least)), self.GreaterOrEqual(h, np.float32(least))))

    def rows(self, x, index):
        return self.Gather(x, index, axis=0)

    def case(self, name, feeds, outputs, **kw):
        kinds = dict(word.partition(":")[::2] for word in outputs.split())
        m = model(graph(self.nodes, feeds[0], outputs, self.constants), 17)
        assert kinds
        return Case(f"detection_{name}", m, feeds[0], more=tuple(feeds[1:]), **kw)

    def rename(self, old, new):
        self.nodes.append(helper.make_node("Identity", [old], [new]))


def box_feed(rng, count):
    corners = rng.uniform(0, 24, (count, 2)).astype(np.float32)
    return np.concatenate([corners, corners + rng.uniform(2, 12, (count, 2)).astype(np.float32)], 1)


def score_feeds(name, boxes, classes, levels=(0.0, 0.02, 0.4, 1.0)):
    """Feeds whose scores pass a threshold of 0.5 never, rarely, often, always; no two are equal."""
    rng = np.random.default_rng(len(name))
    for share in levels:
        order = rng.permutation(boxes * classes).reshape(boxes, classes) / (boxes * classes)
        scores = np.where(order < share, 0.55 + 0.4 * order, 0.01 + 0.4 * order).astype(np.float32)
        yield {"boxes": box_feed(rng, boxes), "scores": scores}


def ssd():
    """SSD.postprocess_detections: for each class a threshold, the best few, then NMS of all and the best few of that."""
    g, boxes_out, scores_out, labels_out = Net(), [], [], []
    boxes = g.clip_boxes("boxes", 32, 32)
    for label in range(1, 4):
        score = g.column("scores", label)
        keep = g.Greater(score, np.float32(0.5))
        score, box = g.mask_index(score, keep), g.mask_index(boxes, keep)
        score, index = g.topk(score, g.topk_min(score, 8))
        boxes_out.append(g.rows(box, index))
        scores_out.append(score)
        labels_out.append(g.full_like(score, label))
    boxes, scores, labels = (g.Concat(*v, axis=0) for v in (boxes_out, scores_out, labels_out))
    keep = g.head(g.batched_nms(boxes, scores, labels, 0.4), 10)
    for name, v in dict(b=boxes, s=scores, l=labels).items():
        g.rename(g.rows(v, keep), name)
    yield g.case("ssdlite", list(score_feeds("ssd", 20, 4)), "b s l:l")


def retinanet(name="retinanet", fcos=False):
    """RetinaNet and FCOS: each level's flattened scores, a threshold, the best, then NMS."""
    g, parts = Net(), []
    feeds = []
    for at, share in enumerate((0.0, 0.02, 0.3, 1.0)):
        feed = {}
        for level, count in enumerate((18, 6)):
            f = list(score_feeds(f"{name}{level}{at}", count, 3, (share,)))[0]
            feed[f"logits{level}"], feed[f"anchors{level}"] = f["scores"], f["boxes"]
            feed[f"deltas{level}"] = floats(f"{name}{level}", count, 4, low=-0.2, high=0.2)
        feeds.append(feed)
    for level in range(2):
        flat = g.Reshape(f"logits{level}", arr64(-1))
        keep = g.Greater(flat, np.float32(0.5))
        scores, index = g.mask_index(flat, keep), g.where(keep)
        scores, order = g.topk(scores, g.topk_min(index, 7))
        index = g.rows(index, order)
        anchor = g.Cast(g.Floor(g.Div(g.Cast(index, to=TensorProto.FLOAT), np.float32(3))), to=I64) if fcos else g.Div(
            index, np.int64(3))
        label = g.Mod(index, np.int64(3), fmod=0)
        anchors, deltas = g.rows(f"anchors{level}", anchor), g.rows(f"deltas{level}", anchor)
        sizes = g.Sub(g.Slice(anchors, arr64(2), arr64(4), arr64(1)), g.Slice(anchors, arr64(0), arr64(2), arr64(1)))
        both = g.Concat(sizes, sizes, axis=1)
        boxes = g.clip_boxes(g.Add(anchors, g.Mul(deltas, both)), 32, 32)
        parts.append((boxes, scores, label))
    boxes, scores, labels = (g.Concat(*v, axis=0) for v in zip(*parts))
    keep = g.head(g.batched_nms(boxes, scores, labels, 0.5), 12)
    for out, v in dict(b=boxes, s=scores, l=labels).items():
        g.rename(g.rows(v, keep), out)
    yield g.case(name, feeds, "b s l:l")


def proposals(g, boxes, scores, most):
    """RegionProposalNetwork.filter_proposals for one image."""
    scores, index = g.topk(scores, g.topk_min(scores, 15))
    boxes = g.clip_boxes(g.rows(boxes, index), 32, 32)
    keep = g.keep_large(boxes, 2.5)
    boxes, scores = g.rows(boxes, keep), g.rows(scores, keep)
    keep = g.where(g.GreaterOrEqual(scores, np.float32(0.5)))
    boxes, scores = g.rows(boxes, keep), g.rows(scores, keep)
    keep = g.head(g.nms(boxes, scores, 0.7), most)
    return g.rows(boxes, keep)


def multiscale_roi_align(g, boxes, features, size):
    """torchvision.ops.MultiScaleRoIAlign and _onnx_merge_levels"""
    ids = g.full_like(g.Slice(boxes, arr64(0), arr64(1), arr64(1)), 0, np.float32)
    rois = g.Concat(ids, boxes, axis=1)
    area = g.Mul(g.Sub(g.column(boxes, 2), g.column(boxes, 0)), g.Sub(g.column(boxes, 3), g.column(boxes, 1)))
    level = g.Floor(g.Add(g.Div(g.Log(g.Div(g.Sqrt(area), np.float32(6))), np.float32(np.log(2))), np.float32(0.5)))
    level = g.Cast(g.Clip(level, np.float32(0), np.float32(1)), to=I64)
    pooled = []
    for i, (feature, scale) in enumerate(features):
        at = g.where(g.Equal(level, np.int64(i)))
        r = g.rows(rois, at)
        batch = g.Cast(g.Squeeze(g.Slice(r, arr64(0), arr64(1), arr64(1)), arr64(1)), to=I64)
        pooled.append(g.RoiAlign(feature, g.Slice(r, arr64(1), arr64(5), arr64(1)), batch, mode="avg", output_height=size,
                                 output_width=size, sampling_ratio=2, spatial_scale=scale))
    count = g.Unsqueeze(g.dim(level, 0), arr64(0))
    tail = [g.Unsqueeze(g.dim(pooled[0], k), arr64(0)) for k in (1, 2, 3)]
    result = g.ConstantOfShape(g.Concat(count, *tail, axis=0), value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0]))
    for i, p in enumerate(pooled):
        index = g.Reshape(g.where(g.Equal(level, np.int64(i))), arr64(-1, 1, 1, 1))
        shape = g.Concat(g.Unsqueeze(g.dim(index, 0), arr64(0)), *[g.Unsqueeze(g.dim(p, k), arr64(0)) for k in (1, 2, 3)],
                         axis=0)
        result = g.ScatterElements(result, g.Expand(index, shape), p, axis=0)
    return result


def rcnn(kind):
    """Faster, Mask and Keypoint R-CNN, from the proposals on."""
    g = Net()
    features = [("f0", 0.5), ("f1", 0.25)]
    boxes = proposals(g, "boxes", "objectness", 9)
    x = g.Flatten(multiscale_roi_align(g, boxes, features, 3), axis=1)
    x = g.Relu(g.Gemm(x, floats("w1", 27, 16), floats("b1", 16), transB=0))
    logits = g.Gemm(x, floats("w2", 16, 3) * 2, floats("b2", 3))
    deltas = g.Reshape(g.Gemm(x, floats("w3", 16, 12) * 0.1, floats("b3", 12) * 0.1), arr64(-1, 3, 4))
    sizes = g.Sub(g.Slice(boxes, arr64(2), arr64(4), arr64(1)), g.Slice(boxes, arr64(0), arr64(2), arr64(1)))
    moved = g.Add(g.Unsqueeze(boxes, arr64(1)), g.Mul(deltas, g.Unsqueeze(g.Concat(sizes, sizes, axis=1), arr64(1))))
    # RoIHeads.postprocess_detections
    scores = g.Softmax(logits, axis=-1)
    labels = g.Expand(g.Reshape(arr64(0, 1, 2), arr64(1, -1)), g.Shape(scores))
    moved = g.Reshape(g.Slice(moved, arr64(1), arr64(sys.maxsize), arr64(1)), arr64(-1, 4))
    scores, labels = (g.Reshape(g.Slice(v, arr64(1), arr64(sys.maxsize), arr64(1)), arr64(-1)) for v in (scores, labels))
    moved = g.clip_boxes(moved, 32, 32)
    for index in (lambda: g.where(g.Greater(scores, np.float32(0.2))), lambda: g.keep_large(moved, 0.01),
                  lambda: g.head(g.batched_nms(moved, scores, labels, 0.5), 6)):
        keep = index()
        moved, scores, labels = (g.rows(v, keep) for v in (moved, scores, labels))
    outputs = "b s l:l"
    for name, v in dict(b=moved, s=scores, l=labels).items():
        g.rename(v, name)
    if kind != "faster":
        x = multiscale_roi_align(g, moved, features, 4)
        x = g.Relu(g.Conv(x, floats("k1", 5, 3, 3, 3), floats("kb", 5), pads=[1, 1, 1, 1]))
        x = g.ConvTranspose(x, floats("k2", 5, 3, 2, 2), strides=[2, 2])
        if kind == "mask":
            # maskrcnn_inference: each box's mask of its own class
            prob = g.Sigmoid(x)
            row = g.Range(np.int64(0), g.dim(labels, 0), np.int64(1))
            pair = g.Concat(g.Unsqueeze(row, arr64(1)), g.Unsqueeze(labels, arr64(1)), axis=1)
            g.rename(g.Unsqueeze(g.GatherND(prob, pair), arr64(1)), "m")
        else:
            x = g.Resize(x, "", np.array([1, 1, 2, 2], np.float32), mode="linear", coordinate_transformation_mode="half_pixel")
            # The place of the largest, and its value
            flat = g.Reshape(x, g.Concat(g.Shape(x, start=0, end=2), arr64(256), axis=0))
            place = g.ArgMax(flat, axis=2, keepdims=0)
            value = g.ReduceMax(flat, axes=[2], keepdims=0)
            g.rename(g.Mod(place, np.int64(16)), "px")
            g.rename(value, "m")
            outputs += " px:l"
        outputs += " m"
    feeds = []
    for share in (0.0, 0.05, 0.5, 1.0):
        f = list(score_feeds("rcnn", 20, 1, (share,)))[0]
        feeds.append({"boxes": f["boxes"], "objectness": f["scores"][:, 0], "f0": floats("f0", 1, 3, 16, 16),
                      "f1": floats("f1", 1, 3, 8, 8)})
    yield g.case(f"{kind}_rcnn", feeds, outputs, atol=1e-4)


def kept_boxes(g):
    """Boxes with a score above a half, in whole pixels, and how many there are."""
    keep = g.where(g.Greater("scores", np.float32(0.5)))
    boxes = g.rows("boxes", keep)
    return keep, boxes, g.dim(boxes, 0)


def grow(g, body, count, start, result, one):
    """for i in range(count): start = torch.cat((start, one), 0)"""
    joined = body.Concat("carried", one, axis=0)
    value = helper.make_tensor_value_info
    still = body.Identity("go")
    inner = helper.make_graph(body.nodes, "body", [value("i", I64, []), value("go", TensorProto.BOOL, []),
                                                   value("carried", TensorProto.FLOAT, None)],
                              [value(still, TensorProto.BOOL, []), value(joined, TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(v, n) for n, v in body.constants.items()])
    g.nodes.append(helper.make_node("Loop", [count, "", g.constant(start)], [result], name="around", body=inner))


def loop_feeds(name, count=5):
    rng = np.random.default_rng(len(name))
    for few in (0, 1, 3, count):
        corners = rng.integers(-3, 14, (count, 2))
        yield {"boxes": np.concatenate([corners, corners + rng.integers(1, 9, (count, 2))], 1).astype(np.int64),
               "scores": np.where(np.arange(count) < few, 0.9, 0.1).astype(np.float32),
               "maps": rng.uniform(-1, 1, (count, 2, 6, 6)).astype(np.float32)}


def pasted_masks():
    """roi_heads._onnx_paste_masks_in_image_loop: each mask is resized to its box and put into an image of 16 x 16."""
    g, size = Net(), np.int64(16)
    keep, boxes, count = kept_boxes(g)
    masks = g.rows("maps", keep)
    b = Net("body")
    box, mask = b.Gather(boxes, "i", axis=0), b.Gather(b.Gather(masks, "i", axis=0), np.int64(0), axis=0)
    side = [b.Slice(box, arr64(k), arr64(k + 1), arr64(0)) for k in range(4)]
    w, h = (b.ReduceMax(b.Concat(b.Add(b.Sub(side[k + 2], side[k]), arr64(1)), arr64(1), axis=0), keepdims=1) for k in (0, 1))
    image = b.Expand(mask, b.Concat(arr64(1, 1), b.Shape(mask), axis=0))
    image = b.Resize(image, "", "", b.Concat(arr64(1, 1), h, w, axis=0), mode="linear",
                     coordinate_transformation_mode="pytorch_half_pixel")
    resize = b.nodes[-1].name
    image = b.Gather(b.Gather(image, np.int64(0), axis=0), np.int64(0), axis=0)
    start = [b.ReduceMax(b.Concat(side[k], arr64(0), axis=0), keepdims=1) for k in (0, 1)]
    end = [b.ReduceMin(b.Concat(b.Add(side[k + 2], arr64(1)), arr64(size), axis=0), keepdims=1) for k in (0, 1)]
    image = b.Slice(image, b.Concat(b.Sub(start[1], side[1]), b.Sub(start[0], side[0]), axis=0),
                    b.Concat(b.Sub(end[1], side[1]), b.Sub(end[0], side[0]), axis=0), arr64(0, 1))
    bounds = [resize]

    def zeros(*dims):
        v = b.ConstantOfShape(b.Concat(*dims, axis=0), value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0]))
        bounds.append(b.nodes[-1].name)
        return v

    def along(v, k):
        return b.Unsqueeze(b.dim(v, k), arr64(0))

    image = b.Concat(zeros(start[1], along(image, 1)), image, zeros(b.Sub(arr64(size), end[1]), along(image, 1)), axis=0)
    image = b.Slice(image, arr64(0), arr64(size), arr64(0))
    image = b.Concat(zeros(along(image, 0), start[0]), image, zeros(along(image, 0), b.Sub(arr64(size), end[0])), axis=1)
    image = b.Slice(image, arr64(0), arr64(size), arr64(1))
    grow(g, b, count, np.zeros((0, size, size), np.float32), "y", b.Unsqueeze(image, arr64(0)))
    flags = [f for name in bounds for f in ("--bound", f"{name}=16")]
    yield g.case("pasted_masks", list(loop_feeds("masks")), "y", flags=tuple(flags))


def keypoints():
    """roi_heads._onnx_heatmaps_to_keypoints_loop: each heat map is resized to its box; where it is largest."""
    g = Net()
    keep, boxes, count = kept_boxes(g)
    maps = g.rows("maps", keep)
    b = Net("body")
    box = b.Gather(boxes, "i", axis=0)
    side = [b.Slice(box, arr64(k), arr64(k + 1), arr64(0)) for k in range(4)]
    w, h = (b.Max(b.Sub(side[k + 2], side[k]), arr64(1)) for k in (0, 1))
    heat = b.Unsqueeze(b.Gather(maps, "i", axis=0), arr64(1))
    heat = b.Resize(heat, "", "", b.Concat(arr64(2, 1), h, w, axis=0), mode="cubic", cubic_coeff_a=-0.75,
                    coordinate_transformation_mode="half_pixel")
    flags = ("--bound", f"{b.nodes[-1].name}=10")
    heat = b.Gather(heat, np.int64(0), axis=1)
    width = b.dim(heat, 2)
    place = b.ArgMax(b.Reshape(heat, arr64(2, -1)), axis=1, keepdims=0)
    x = b.Mod(place, width)
    y = b.Div(b.Sub(place, x), width)
    score = b.Gather(b.Gather(heat, y, axis=1), x, axis=2)
    score = b.Gather(b.Reshape(score, arr64(-1)), arr64(0, 7), axis=0)
    fx, fy = (b.Add(b.Cast(v, to=TensorProto.FLOAT), np.float32(0.5)) for v in (x, y))
    row = b.Unsqueeze(b.Concat(fx, fy, score, axis=0), arr64(0))
    grow(g, b, count, np.zeros((0, 6), np.float32), "y", row)
    yield g.case("keypoints", list(loop_feeds("keypoints")), "y", flags=flags)


def suppression():
    """NMS between a score threshold, a slice and a TopK."""
    for name in ("then_slice", "then_topk", "after_threshold"):
        g = Net()
        boxes, scores = "boxes", g.column("scores", 0)
        if name == "after_threshold":
            keep = g.where(g.Greater(scores, np.float32(0.5)))
            boxes, scores = g.rows(boxes, keep), g.rows(scores, keep)
        found = g.NonMaxSuppression(g.Unsqueeze(boxes, arr64(0)), g.Reshape(scores, arr64(1, 1, -1)), arr64(20),
                                    np.array([0.5], np.float32), np.array([0.2], np.float32))
        index = g.Squeeze(g.Slice(found, arr64(2), arr64(3), arr64(1)), arr64(1))
        if name == "then_slice":
            index = g.head(index, 12)
        kept = g.rows(scores, index)
        if name == "then_topk":
            kept, order = g.topk(kept, g.topk_min(kept, 5))
            index = g.rows(index, order)
        g.rename(g.rows(boxes, index), "b")
        g.rename(kept, "s")
        yield g.case(f"nms_{name}", list(score_feeds(name, 16, 1)), "b s")
    # Boxes of several classes by index triples, as YOLO exports have it.
    g = Net()
    found = g.NonMaxSuppression(g.Unsqueeze("boxes", arr64(0)), g.Unsqueeze(g.Transpose("scores", perm=[1, 0]), arr64(0)),
                                arr64(10), np.array([0.5], np.float32), np.array([0.5], np.float32))
    g.rename(g.Concat(g.rows("boxes", g.Reshape(g.Slice(found, arr64(2), arr64(3), arr64(1)), arr64(-1))),
                      g.Cast(g.Slice(found, arr64(1), arr64(2), arr64(1)), to=TensorProto.FLOAT), axis=1), "y")
    g.rename(g.Shape(found), "n")
    yield g.case("nms_rows", list(score_feeds("rows", 12, 3)), "y n:l")


def experts():
    """MixtralSparseMoeBlock: tokens go to the experts that their router chose, and the results are added up."""
    g = Net()
    tokens, hidden, count = 6, 5, 3
    weights = g.Softmax(g.MatMul("x", floats("router", hidden, count) * 2), axis=-1)
    weights, chosen = g.TopK(weights, arr64(2), outs=2, axis=-1)
    weights = g.Div(weights, g.ReduceSum(weights, arr64(1), keepdims=1))
    mask = g.Transpose(g.OneHot(chosen, np.int64(count), arr64(0, 1)), perm=[2, 1, 0])
    result = g.ConstantOfShape(g.Shape("x"), value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0]))
    for e in range(count):
        place = g.NonZero(g.Gather(mask, np.int64(e), axis=0))
        slot, token = (g.Gather(place, np.int64(k), axis=0) for k in (0, 1))
        state = g.Reshape(g.Gather("x", token, axis=0), arr64(-1, hidden))
        up = g.MatMul(state, floats(f"up{e}", hidden, 7))
        out = g.MatMul(g.Mul(up, g.Sigmoid(up)), floats(f"down{e}", 7, hidden))
        pair = g.Concat(g.Unsqueeze(token, arr64(-1)), g.Unsqueeze(slot, arr64(-1)), axis=-1)
        out = g.Mul(out, g.Unsqueeze(g.GatherND(weights, pair), arr64(-1)))
        # index_add_
        index = g.Expand(g.Unsqueeze(token, arr64(1)), g.Shape(out))
        result = g.ScatterElements(result, index, out, axis=0, reduction="add")
    g.rename(result, "y")
    same = np.tile(floats("token", 1, hidden), (tokens, 1))  # all go to the same two experts
    m = model(graph(g.nodes, {"x": same}, "y", g.constants), 18)
    yield Case("detection_experts", m, {"x": same}, more=({"x": floats("a", tokens, hidden)}, {"x": -same}))


def cases():
    yield from ssd()
    yield from retinanet()
    yield from retinanet("fcos", fcos=True)
    for kind in ("faster", "mask", "keypoint"):
        yield from rcnn(kind)
    yield from pasted_masks()
    yield from keypoints()
    yield from suppression()
    yield from experts()
