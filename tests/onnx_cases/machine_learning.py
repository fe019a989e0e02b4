"""ai.onnx.ml: what scikit-learn, LightGBM and XGBoost are exported to. Random trees of every mode.

Expected: of onnxruntime where it follows the standard. Where it does not (the label of two classes with weights for both),
and for ZipMap, whose maps become a tensor: NumPy.
"""
import numpy as np
from case import Case, floats, graph, model, node, refused, rng
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ML = "ai.onnx.ml"
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
POSTS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def ml(op, ins, outs, **attributes):
    return node(op, ins, outs, domain=ML, name="here", **attributes)


def of(nodes, inputs, outputs="y", constants=None, version=3):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    return model(graph(nodes, inputs, outputs, constants), extra=[(ML, version)])


def case(name, nodes, x, outputs="y", constants=None, version=3, **kw):
    return Case(f"ml_{name}", of(nodes, {"x": x}, outputs, constants, version), {"x": x}, **kw)


class Forest:
    """Random trees. Thresholds are whole numbers of halves, so that features meet them exactly."""

    def __init__(self, name, trees, depth, features, modes, missing=False):
        self.r = rng(name)
        self.features, self.modes, self.missing = features, modes, missing
        self.rows, self.leaves = [], []
        for tree in range(trees):
            self.nodes = 0
            self.grow(tree, depth)

    def grow(self, tree, depth):
        at, self.nodes = self.nodes, self.nodes + 1
        row = dict(tree=tree, node=at, feature=0, mode="LEAF", value=0.0, yes=0, no=0, missing=0)
        self.rows.append(row)
        if depth == 0 or (at > 0 and self.r.random() < 0.2):
            self.leaves.append((tree, at))
            return at
        row.update(feature=int(self.r.integers(self.features)), mode=str(self.r.choice(self.modes)),
                   value=float(self.r.integers(-4, 5)) / 2, missing=int(self.missing and self.r.random() < 0.5))
        row["yes"] = self.grow(tree, depth - 1)
        row["no"] = self.grow(tree, depth - 1)
        return at

    def attributes(self):
        rows = self.rows
        return dict(nodes_treeids=[r["tree"] for r in rows], nodes_nodeids=[r["node"] for r in rows],
                    nodes_featureids=[r["feature"] for r in rows], nodes_modes=[r["mode"] for r in rows],
                    nodes_values=[r["value"] for r in rows], nodes_truenodeids=[r["yes"] for r in rows],
                    nodes_falsenodeids=[r["no"] for r in rows], nodes_hitrates=[1.0] * len(rows),
                    nodes_missing_value_tracks_true=[r["missing"] for r in rows])

    def weights(self, prefix, targets, per_leaf=None, low=-1.0):
        """`per_leaf` random targets for each leaf, by default all."""
        tree, where, which, weight = [], [], [], []
        for t, n in self.leaves:
            chosen = targets if per_leaf is None else list(self.r.choice(targets, per_leaf, replace=False))
            for k in chosen:
                tree.append(t), where.append(n), which.append(int(k)), weight.append(float(self.r.uniform(low, 1)))
        return {f"{prefix}_treeids": tree, f"{prefix}_nodeids": where, f"{prefix}_ids": which, f"{prefix}_weights": weight}


def halves(name, rows, features, dtype=np.float32, nan=False):
    r = rng(name)
    x = (r.integers(-5, 6, (rows, features)) / 2).astype(dtype)
    if nan:
        x[r.random(x.shape) < 0.3] = np.nan
    return x


def regressors():
    for i, mode in enumerate(MODES):
        for missing in (False, True):
            f = Forest(f"mode {mode} {missing}", 4, 4, 3, [mode], missing)
            yield case(f"trees_{mode.lower()}_{int(missing)}",
                       ml("TreeEnsembleRegressor", "x", "y", n_targets=1, **f.attributes(), **f.weights("target", [0])),
                       halves(mode, 9, 3, nan=missing))
    mixed = Forest("mixed", 7, 5, 4, MODES, True)
    x = halves("mixed", 11, 4, nan=True)
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        for targets, per_leaf in (([0], None), ([0, 1, 2], None), ([0, 1, 2], 2)):
            name = f"trees_{how.lower()}_{len(targets)}_{per_leaf or 'all'}"
            yield case(name, ml("TreeEnsembleRegressor", "x", "y", n_targets=len(targets), aggregate_function=how,
                                base_values=[0.5, -1.0, 2.0][:len(targets)], **mixed.attributes(),
                                **mixed.weights("target", targets, per_leaf)), x)
    for post in POSTS:
        low = 0.01 if post == "PROBIT" else -1.0
        small = Forest("post", 1, 3, 4, MODES[:4])
        yield case(f"trees_post_{post.lower()}",
                   ml("TreeEnsembleRegressor", "x", "y", n_targets=3, post_transform=post, **small.attributes(),
                      **small.weights("target", [0, 1, 2], low=low)), halves("post", 6, 4), rtol=1e-3, atol=1e-4)
    one = Forest("stump", 3, 0, 1, MODES)
    yield case("trees_leaves_only", ml("TreeEnsembleRegressor", "x", "y", n_targets=1, **one.attributes(),
                                       **one.weights("target", [0])), halves("stump", 3, 1))
    f = Forest("double", 5, 4, 3, MODES[:4])
    attributes = f.attributes()
    attributes.pop("nodes_values"), attributes.pop("nodes_hitrates")
    # Thresholds that float32 does not hold, and numbers that differ from them in float64 only.
    exact = np.array([r["value"] + 1e-12 for r in f.rows])
    weights = f.weights("target", [0])
    weights["target_weights_as_tensor"] = numpy_helper.from_array(np.array(weights.pop("target_weights")), "w")
    yield case("trees_double", ml("TreeEnsembleRegressor", "x", "y", n_targets=1, **attributes,
                                  nodes_values_as_tensor=numpy_helper.from_array(exact, "v"), **weights),
               halves("double", 9, 3, np.float64) + 1e-12 * rng("eps").integers(-1, 3, (9, 3)))


def classifiers():
    x = halves("classes", 10, 4)
    for post in POSTS:
        f = Forest(f"classes {post}", 1 if post == "PROBIT" else 6, 4, 4, MODES[:4])
        yield case(f"classes_{post.lower()}",
                   ml("TreeEnsembleClassifier", "x", "l y", post_transform=post, classlabels_int64s=[7, 3, 5, 9],
                      **f.attributes(), **f.weights("class", [0, 1, 2, 3], low=0.01 if post == "PROBIT" else -1.0)),
                   x, "l:l y", rtol=1e-3, atol=1e-4)
    for low in (0.0, -1.0):
        for post in ("NONE", "LOGISTIC"):
            for base in ([], [0.25]):
                f = Forest("binary", 3, 4, 4, MODES[:4])
                attributes = dict(f.attributes(), **f.weights("class", [0], low=low))
                if base:
                    attributes["base_values"] = base
                yield case(f"binary_{int(low)}_{post.lower()}_{len(base)}",
                           ml("TreeEnsembleClassifier", "x", "l y", post_transform=post, classlabels_int64s=[4, 8],
                              **attributes), x, "l:l y")
    # As scikit-learn's forests: probabilities of both classes. Onnxruntime's label is 1 whenever class 1 has any.
    f = Forest("both", 1, 3, 4, ["BRANCH_LEQ"])
    w = f.weights("class", [0, 1], low=0.0)
    leaf = {(t, n): [w["class_weights"][i] for i in range(len(w["class_ids"]))
                     if (w["class_treeids"][i], w["class_nodeids"][i]) == (t, n)] for t, n in f.leaves}
    rows = {(r["tree"], r["node"]): r for r in f.rows}

    def reached(sample):
        at = (0, 0)
        while rows[at]["mode"] != "LEAF":
            r = rows[at]
            at = (0, r["yes"] if sample[r["feature"]] <= r["value"] else r["no"])
        return leaf[at]

    scores = np.float32([reached(s) for s in x])
    yield case("both_classes", ml("TreeEnsembleClassifier", "x", "l y", classlabels_int64s=[4, 8], **f.attributes(), **w), x,
               "l:l y", expect="given", given={"l": np.array([4, 8])[scores.argmax(1)], "y": scores})
    yield case("string_labels", ml("TreeEnsembleClassifier", "x", "l y", classlabels_strings=["no", "yes"],
                                   **f.attributes(), **w), x, "l:l y", expect="given",
               given={"l": scores.argmax(1), "y": scores})
    zipped = [ml("TreeEnsembleClassifier", "x", "l p", classlabels_int64s=[4, 8], **f.attributes(), **w),
              ml("ZipMap", "p", "y", classlabels_int64s=[4, 8])]
    m = of(zipped, {"x": x}, "l:l y")
    m.graph.output[1].CopyFrom(helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(
        7, helper.make_tensor_type_proto(1, None)))))
    yield Case("ml_zipmap", m, {"x": x}, expect="given", given={"l": np.array([4, 8])[scores.argmax(1)], "y": scores})


def ensembles():
    """TreeEnsemble of version 5. Expected of ONNX's reference: onnxruntime tests for membership of whole numbers only."""
    t = numpy_helper.from_array
    x = np.float32([[1.2, 3.4], [-0.12, 1.66], [np.nan, 4.0], [7.0, np.nan], [4.5, 3.0], [-1.0, 3.0], [9.0, 1.0]])
    for missing in (0, 1):
        for how in range(4):
            c = case(f"ensemble_{missing}_{how}",
                     ml("TreeEnsemble", "x", "y", n_targets=2, aggregate_function=how, post_transform=0, tree_roots=[0, 3],
                        nodes_featureids=[0, 1, 0, 1], nodes_splits=t(np.float32([3.14, 42.0, 0.0, 2.0]), "s"),
                        nodes_modes=t(np.uint8([0, 6, 6, 2]), "m"), nodes_truenodeids=[1, 0, 2, 4],
                        nodes_falsenodeids=[2, 1, 3, 0], nodes_trueleafs=[0, 1, 1, 1], nodes_falseleafs=[0, 1, 1, 1],
                        nodes_missing_value_tracks_true=[missing, 0, missing, 0],
                        membership_values=t(np.float32([1.66, 3.4, 3.0, np.nan, 7.0, 4.5, np.nan]), "v"),
                        leaf_targetids=[0, 1, 0, 1, 1], leaf_weights=t(np.float32([5.23, 12.12, -12.23, 7.21, 0.5]), "w")),
                     x, version=5, expect="given")
            c.given = {"y": ReferenceEvaluator(c.model).run(None, c.feeds)[0].astype(np.float32)}
            # A target without a weight is 0, not the largest number.
            c.given["y"][np.abs(c.given["y"]) > 1e38] = 0
            yield c


def linear():
    x = floats("ml x", 6, 4)
    yield case("scaler", ml("Scaler", "x", "y", offset=[0.5, -1.0, 2.0, 0.0], scale=[2.0, 0.25, -1.0, 3.0]), x)
    yield case("scaler_one", ml("Scaler", "x", "y", offset=[0.5], scale=[2.0]), x)
    yield case("scaler_int", ml("Scaler", "x", "y", offset=[0.5], scale=[2.0]), np.arange(12).reshape(3, 4))
    yield case("binarizer", ml("Binarizer", "x", "y", threshold=0.25), np.append(x, np.float32([[0.25, -0.0, np.inf, -np.inf]]), 0))
    yield case("binarizer_zero", ml("Binarizer", "x", "y"), x)
    zero = x.copy()
    zero[2] = 0
    for norm in ("MAX", "L1", "L2"):
        yield case(f"normalizer_{norm.lower()}", ml("Normalizer", "x", "y", norm=norm), zero)
    k = rng("ml coefficients")
    rows = lambda n: [float(v) for v in k.normal(0, 1, n)]  # noqa: E731
    for post in POSTS:
        if post != "PROBIT":
            yield case(f"linear_classes_{post.lower()}",
                       ml("LinearClassifier", "x", "l y", coefficients=rows(12), intercepts=rows(3), post_transform=post,
                          classlabels_ints=[5, 2, 9], multi_class=1), x, "l:l y")
            yield case(f"linear_targets_{post.lower()}",
                       ml("LinearRegressor", "x", "y", coefficients=rows(8), intercepts=rows(2), targets=2,
                          post_transform=post), x)
    for post in ("NONE", "LOGISTIC"):
        yield case(f"linear_binary_{post.lower()}",
                   ml("LinearClassifier", "x", "l y", coefficients=rows(4), intercepts=rows(1), post_transform=post,
                      classlabels_ints=[5, 2]), x, "l:l y")
    yield case("linear_target", ml("LinearRegressor", "x", "y", coefficients=rows(4), intercepts=rows(1)), x)
    yield case("columns", ml("ArrayFeatureExtractor", "x c", "y"), x, constants={"c": np.array([3, 0, 3])})
    yield case("columns_of_int", ml("ArrayFeatureExtractor", "x c", "y"), np.arange(8).reshape(2, 4), "y:l",
               {"c": np.array([[1, 2]])})


def refusals():
    x = floats("ml r", 2, 3)
    f = Forest("refused", 2, 3, 3, MODES[:1])
    good = dict(f.attributes(), **f.weights("target", [0]))

    def trees(name, *words, **changed):
        return refused(f"ml_{name}", of(ml("TreeEnsembleRegressor", "x", "y", **dict(good, **changed)), {"x": x}), "here",
                       *words)

    inner = next(i for i, r in enumerate(f.rows) if r["mode"] != "LEAF")
    broken = list(good["nodes_truenodeids"])
    broken[inner] = f.rows[inner]["node"]
    yield trees("cycle", "own nodes", nodes_truenodeids=broken)
    broken = list(broken)
    broken[inner] = 999
    yield trees("no_child", "999", nodes_truenodeids=broken)
    yield trees("mode", "SIDEWAYS", nodes_modes=["SIDEWAYS" if m != "LEAF" else m for m in good["nodes_modes"]])
    yield trees("feature", "feature 8 of 3", nodes_featureids=[8] * len(good["nodes_featureids"]))
    yield trees("short_list", "length", nodes_values=good["nodes_values"][1:])
    yield trees("target", "weight for 4", target_ids=[4] * len(good["target_ids"]))
    yield trees("single_post", "single score", post_transform="LOGISTIC")
    yield trees("aggregate", "MEDIAN", aggregate_function="MEDIAN")
    yield refused("ml_one_label", of(ml("TreeEnsembleClassifier", "x", "l y", classlabels_int64s=[1], **f.attributes(),
                                        **f.weights("class", [0])), {"x": x}, "l:l y"), "here", "single label")
    yield refused("ml_second_class", of(ml("TreeEnsembleClassifier", "x", "l y", classlabels_int64s=[1, 2], **f.attributes(),
                                           **f.weights("class", [1])), {"x": x}, "l:l y"), "here", "class 1 only")
    yield refused("ml_coefficients", of(ml("LinearRegressor", "x", "y", coefficients=[1.0, 2.0]), {"x": x}), "here",
                  "2 coefficients")
    yield refused("ml_column", of(ml("ArrayFeatureExtractor", "x c", "y"), {"x": x}, constants={"c": np.array([5])}), "here",
                  "column 5 of 3")


def cases():
    for group in (regressors, classifiers, ensembles, linear, refusals):
        yield from group()
