#!/usr/bin/env python3
"""Write docs/ops.md from the sources of truth: schemas/ops.def, the backends' lists, and the importer's rules.

    ops_doc.py            rewrites docs/ops.md
    ops_doc.py --check    exit code 1 if docs/ops.md is not what this would write

The device's operations: rows and comments of ops.def, in its order, with the lists of the platforms.
ONNX's operations: every rule of converter/import/lower/, with the first version of operator set, the
device operations that the rule's functions name, the operands that must be constants, and what the rule itself refuses.
"""
import os
import re
import sys

from generated_doc import ROOT, read, write_or_check

TARGET = "docs/ops.md"

# What a row means, where its comment in ops.def does not define it.
MEANING = {
    "Abs": "absolute value", "Neg": "negation", "Sign": "-1, 0 or 1", "Round": "`fn`: to nearest even, floor, ceil",
    "Sqrt": "square root", "Rsqrt": "1 / square root", "Exp": "e to the x", "Log": "natural logarithm",
    "Erf": "error function", "Trig": "`fn`: sin, cos, tan, their inverses and hyperbolic forms",
    "BitNot": "inverts bits; of bool: not", "Classify": "`mask`: is NaN, +infinity, -infinity",
    "Clamp": "min(max(x, min), max)", "Sigmoid": "1 / (1 + exp(-x))", "Tanh": "hyperbolic tangent",
    "HardSigmoid": "clamp(alpha * x + beta, 0, 1)", "HardSwish": "x * clamp(x / 6 + 0.5, 0, 1)",
    "Gelu": "x * normal distribution of x, by Erf or Tanh", "Silu": "x * sigmoid(alpha * x)",
    "LeakyRelu": "x < 0 ? alpha * x : x", "PRelu": "x < 0 ? slope * x : x", "Softplus": "log(1 + exp(x))",
    "Add": "sum", "Sub": "difference", "Mul": "product", "Div": "quotient",
    "Mod": "remainder, with the divisor's sign or (`fmod`) the dividend's", "Min": "the smaller", "Max": "the larger",
    "Compare": "`fn`: ==, !=, <, <=, >, >=; gives bool", "Bitwise": "`fn`: and, or, xor, shifts",
    "Where": "condition ? a : b", "Reduce": "`fn` over `axes`: sum, mean, max, min, product, sum of squares, L1, "
    "log-sum-exp", "Cumulate": "running sum or product along `axis`", "Softmax": "softmax, or its logarithm, along `axis`",
    "RmsNorm": "x / root mean square over dims axis..rank-1, times scale",
    "Lrn": "local response normalisation over the last axis", "MaxPool": "largest of each window",
    "AvgPool": "mean of each window", "Copy": "the same values", "Transpose": "permutes axes",
    "Concat": "joins along `axis`", "Tile": "repeats", "Broadcast": "repeats axes of one element",
    "GatherElements": "out[i..] = x[index[i..] along `axis`]", "GatherNd": "slices of x at index tuples",
    "ScatterElements": "x with elements replaced or reduced at indices along `axis`",
    "ScatterNd": "x with slices replaced or reduced at index tuples",
    "Pow": "power", "ArgReduce": "where the extreme is", "TopK": "the k largest or smallest",
    "LayerNorm": "mean 0 and deviation 1 over the last axes, times scale plus bias",
    "GroupNorm": "the same over groups of channels", "Conv": "convolution", "DepthwiseConv": "one input channel a group",
    "ConvTranspose": "transposed convolution", "FullyConnected": "product with constant or computed weights",
    "LowBitFullyConnected": "product with weights of 2 to 8 bits", "ExpertFullyConnected": "product with the weights of each row's expert",
    "LinearAttention": "attention by a state that every token updates", "QuantizeRows": "quantizes each row by its largest magnitude",
    "QConv": "Conv in integers", "QDepthwiseConv": "DepthwiseConv in integers", "QConvTranspose": "ConvTranspose in integers",
    "QFullyConnected": "FullyConnected in integers", "QMatMul": "MatMul in integers",
    "MatMul": "batched matrix product", "Attention": "softmax(scale * q k^T + bias) v", "Rope": "rotary position embedding",
    "Resize": "nearest, linear or cubic, with ONNX's coordinate rules", "GridSample": "samples x at positions",
    "RoiAlign": "mean or largest of bilinear samples in each bin of a region", "Pad": "constant, reflected, edge or wrapped",
    "View": "reshape, squeeze, bitcast", "Slice": "part of a tensor", "Gather": "slices of x at indices along `axis`",
    "CacheUpdate": "writes into a cache", "DynamicQuantize": "quantizes by the range that x has", "Lstm": "LSTM",
    "Gru": "GRU", "Rnn": "simple recurrence", "NonZero": "where x is not zero", "Nms": "non-maximum suppression",
    "Unique": "distinct elements or slices",
    "CheckLength": "fails the run where a length that depends on data does not fit", "If": "one of two subprograms", "Loop": "repeats a subprogram",
    "Dft": "discrete Fourier transform", "Custom": "an operator of the application",
    "ReverseSequence": "reverses the first n elements of every row", "Cast": "another element type",
    "Quantize": "x / scale + zero point, rounded half to even, saturated", "Dequantize": "(x - zero point) * scale",
}

# How a rule works, where the names of the operations do not show it.
NOTES = {
    "Attention": "written out; a later pass makes it one Attention step where that computes the same",
    "BatchNormalization": "folded into the Conv before it where it can be",
    "Conv": "one input channel a group: DepthwiseConv",
    "Dropout": "removed", "Identity": "removed",
    "If": "a condition known at conversion: only that branch, in place; readers of results of two ranks move into the branches",
    "Loop": "planned once for all iterations; unrolled where that cannot be or a sequence is carried, and the count is "
            "known; a count without a maximum needs `--max-trips`",
    "Slice": "starts or ends that are computed at run time: Gather, of a bounded length",
    **{f"Random{which}": "with a seed: a constant" for which in "Normal NormalLike Uniform UniformLike".split()},
    "Scan": "a Loop over the sequence",
    "ConcatFromSequence": "of a list or a stack", "SplitToSequence": "a list while converting; parts of one of a bounded axis: a stack",
    **{f"Sequence{what}": "a list while converting; a stack where the number or the position depends on data"
       for what in "At Construct Empty Erase Insert Length".split()},
    "Shape": "folded", "Size": "folded",
    "Gemm": "constant weights: FullyConnected", "MatMul": "constant right side: FullyConnected",
    "Einsum": "Transpose, View, MatMul, Mul and Reduce",
    "NonZero": "largest size, count beside it", "Unique": "largest size, count beside it",
    "ZipMap": "the tensor of probabilities",
    "Compress": "largest size, count beside it", "NonMaxSuppression": "largest size, count beside it",
}

# The domains' names in a row of kRules.
DOMAINS = {"": "", "kMicrosoft": "com.microsoft", "kMachineLearning": "ai.onnx.ml"}

# Operations of ai.onnx and ai.onnx.ml without a rule.
REFUSED = [
    ("Training", "Adagrad Adam Gradient Momentum NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"),
    ("Random numbers", "Bernoulli Multinomial, the others without a seed"),
    ("Sequence, Optional and Map values",
     "Optional OptionalGetElement OptionalHasElement SequenceMap, sequences as inputs or results of a graph"),
    ("Strings and text", "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer"),
    ("Image files", "ImageDecoder"),
    ("Preview domains", "FlexAttention"),
    ("Classical machine learning (ai.onnx.ml)",
     "CategoryMapper CastMap DictVectorizer FeatureVectorizer Imputer LabelEncoder OneHotEncoder SVMClassifier "
     "SVMRegressor"),
]

# The column `integers` of ops.def.
INTEGERS = {"None": "", "Same": "itself", "Table": "a table"}

# Operations that only arrange operands for the others.
PLUMBING = ["View", "Cast", "Transpose", "Broadcast", "Copy"]
SHORT_FORMS = {"reshape": "View", "unsqueeze": "View", "transpose": "Transpose", "cast": "Cast", "slice": "Slice",
               "broadcast": "Broadcast", "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "compare": "Compare",
               "where": "Where", "bitwise": "Bitwise", "reduce": "Reduce", "round": "Round"}


# ---- the device's operations

def device_ops():
    """[(section, [(name, id, inputs, outputs, attributes, integers, meaning)])]"""
    text = re.sub(r",\n\s+SINTER_ATTRS", ", SINTER_ATTRS", read("schemas/ops.def"))
    text = re.sub(r"\n\s{10,}", " ", text)
    sections, comment = [], []
    for line in text.split("\n"):
        if line.startswith("// ---- "):
            sections.append((line[8:], []))
            comment = []
        elif line.startswith("//"):
            comment.append(line[2:].strip())
        elif line.startswith("SINTER_OP("):
            m = re.fullmatch(r"SINTER_OP\((\w+), (\d+), \d+, (\d+), (-?\d+), (\d+), (-?\d+), (\w+), (\w+), ([\w| ]+), \w+, \w+, (\w+), "
                             r"SINTER_ATTRS\((.*)\)\)", line)
            name, number, i0, i1, o0, o1, _, _, _, integers, attrs = m.groups()
            result = re.sub(r" ?\(runtime/[\w/]+\.h[\w ]*\)", "", " ".join(comment))
            if not result and name not in MEANING:
                sys.exit(f"{name}: give it a comment in ops.def or a line in MEANING")
            sections[-1][1].append((name, number, span(i0, i1), span(o0, o1), attributes(attrs), INTEGERS.get(integers, integers),
                                    ". ".join(filter(None, (MEANING.get(name), result.rstrip("."))))))
            comment = []
        elif not line:
            comment = []
    return sections


def span(low, high):
    return low if low == high else f"{low}+" if high == "-1" else f"{low} to {high}"


def attributes(text):
    out = []
    for kind, name, rest in re.findall(r"SINTER_(INTS?|FLOATS?|TEXT|BYTES)\((\w+)(?:, ([^)]*))?\)", text):
        value, _, since = rest.partition(", ") if kind in ("INT", "FLOAT") else ("", "", rest)
        value = value.replace("kInfinity", "∞")
        added = f" (version {since})" if since else ""
        out.append((f"{name}={value}" if value else f"{name}[]") + added)
    return " ".join(out)


def backends():
    """platform -> the operations that it lists in operators.def or kernels.def; devices are left out."""
    found = {}
    for name in re.findall(r"^SINTER_PLATFORM\((\w+),", read("platforms/platforms.def"), re.M):
        lists = [p for p in (f"platforms/{name}/kernels.def", f"platforms/{name}/operators.def") if os.path.exists(os.path.join(ROOT, p))]
        if lists and not name.startswith("cuda"):
            found[name] = set(re.findall(r"^SINTER_\w+\((\w+)[,)]", read(lists[0]), re.M))
    return found


# ---- ONNX's operations

def functions(text):
    """name -> [body] of the functions at column 0."""
    found = {}
    for m in re.finditer(r"^(?:template <[^\n]*>\n)?[A-Za-z][\w:<>,*&\s]*?\b(\w+)\((?:[^;{}]|\{\})*?\)(?: const)? \{\n.*?^\}\n",
                         text, re.M | re.S):
        found.setdefault(m.group(1), []).append(m.group(0))
    for m in re.finditer(r"^[A-Za-z][^\n]*?\b(\w+)\([^;{}\n]*\) \{ .* \}\n", text, re.M):
        found.setdefault(m.group(1), []).append(m.group(0))
    return found


class Importer:
    # Shared helpers whose refusals and casts are not specific to the operation.
    QUIET = {"align_types", "as_float", "as_bool", "as_literal", "binary_operands", "within_reach", "ignore_legacy",
             "along_axis", "index_row", "find_operator"}

    # Refusals of nodes that ONNX's own checker rejects.
    MISSING = re.compile(r"(has no|needs|lacks) [^;]*(inputs?|body|seven inputs|attribute '?\w+'?|condition)$|has no \W*$|an operand is missing|"
                         r"has no \w+$|MatMul of a scalar")

    def __init__(self):
        folder = "converter/import/lower"
        self.files = {f: read(f"{folder}/{f}") for f in sorted(os.listdir(os.path.join(ROOT, folder))) if f.endswith(".cc")}
        self.local = {f: functions(t) for f, t in self.files.items()}
        self.shared = {}
        headers = [f for f in sorted(os.listdir(os.path.join(ROOT, folder))) if f.endswith(".h")]
        for f, known in self.local.items():
            for header in headers:
                names = set(re.findall(r"\b(\w+)\(", read(f"{folder}/{header}")))
                for name in names & set(known):
                    self.shared[name] = (f, known[name])

    def rules(self):
        """(domain, op, since, file, function)"""
        for f, text in self.files.items():
            table = re.search(r"kRules\[\] = \{(.*?)\};\n", text, re.S)
            if not table:
                continue
            rows = re.findall(r'\{"(\w+)",\s*(\d+),\s*([\w:<>]+),\s*"[^"]*",\s*[\w\s|]+(?:,\s*(?:""|(\w+)))?(?:,\s*[\w\s|]+)?\}', table.group(1))
            if len(rows) != table.group(1).count('{"'):
                sys.exit(f"{f}: a row of kRules is not as converter/import/onnx_operator.h shows it")
            for op, since, function, domain in rows:
                yield DOMAINS[domain], op, int(since), f, function

    def bodies(self, f, function):
        """The texts of a rule's function and of what it calls in this folder."""
        name, _, arguments = function.partition("<")
        seen, out, todo = set(), ([arguments] if arguments else []), [(f, name)]
        while todo:
            where, name = todo.pop(0)
            if name in self.QUIET or (where, name) in seen:
                continue
            seen.add((where, name))
            for body in self.local[where].get(name, []):
                out.append(body)
                inside = body.split("\n", 1)[1] if "\n" in body.rstrip("\n") else body
                for called in re.findall(r"(?<![.\w>])(\w+)(?:<[\w:]+>)?\(", inside):
                    if called in self.local[where] and called != name:
                        todo.append((where, called))
                    elif called in self.shared:
                        todo.append((self.shared[called][0], called))
        return out

    def describe(self, f, function):
        ops, refusals, constants = [], [], []
        bodies = self.bodies(f, function)
        if len(bodies) - ("<" in function) < 1:
            sys.exit(f"{f}: {function} is not found")
        for i, body in enumerate(bodies):
            names = re.findall(r"\b([A-Z]\w*?)Attrs\b|\bn\.(\w+)\(", body)
            for attrs, method in names:
                op = attrs or SHORT_FORMS.get(method, "")
                if op and op not in ("Op", "Spatial", "Scan") and op not in ops:
                    ops.append(op)
            # The advice of a refusal precedes its text: a string, a name or a call.
            plain = re.sub(r'refuse_advising\(\s*(?:"(?:[^"\\]|\\.)*"|\w+(?:\((?:[^()]|\([^()]*\))*\))?)\s*,', "refuse(", body)
            for m in re.finditer(r'refuse(?:_shapes)?\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', plain):
                text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', m.group(1)))
                text = re.sub(r"\{[^}]*\}", "…", text.replace('\\"', '"'))
                if text not in refusals and not self.MISSING.match(text):
                    refusals.append(text)
            for m in re.finditer(r"constant_(?:int|double)s?\((\d)\)", body):
                if int(m.group(1)) not in constants:
                    constants.append(int(m.group(1)))
        main = [op for op in ops if op not in PLUMBING] or ops
        if main == ["Cast"] and "cast" not in function:
            main = []  # of a constant
        return main, refusals, sorted(constants)


def cell(text):
    return text.replace("|", "\\|")


# Files used these before ai.onnx had them.
BEFORE_STANDARD = {"LayerNormalization", "MeanVarianceNormalization", "ThresholdedRelu"}


def check_with_onnx(rules):
    """With onnx at hand: every operation of ai.onnx and ai.onnx.ml is either read, from the version with which it came, or
    listed as refused."""
    try:
        import onnx.defs
    except ImportError:
        return
    known = {op for domain, op, *_ in rules if domain in ("", "ai.onnx.ml")}
    came = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            came[schema.name] = min(schema.since_version, came.get(schema.name, schema.since_version))
    for domain, op, since, f, _ in rules:
        expected = 1 if domain or op in BEFORE_STANDARD else came.get(op, 1)
        if since != expected:
            sys.exit(f"{f}: {op} came with version {expected}, not {since}")
    listed = {w.strip(",") for _, ops in REFUSED for w in ops.split()}
    for schema in onnx.defs.get_all_schemas():
        if schema.domain in ("", "ai.onnx.ml") and schema.name not in known and schema.name not in listed:
            sys.exit(f"{schema.name} of {schema.domain or 'ai.onnx'} has neither a rule nor a place in REFUSED")
    if listed & known:
        sys.exit(f"REFUSED lists {sorted(listed & known)}, which have rules")


def document():
    sections = device_ops()
    fast = backends()
    names = {row[0] for _, rows in sections for row in rows}
    for backend, ops in fast.items():
        if ops - names:
            sys.exit(f"{backend}: {sorted(ops - names)} are not operations")
    stale = set(MEANING) - names
    if stale:
        sys.exit(f"MEANING has {sorted(stale)}")
    importer = Importer()
    rules = list(importer.rules())
    known = {op for domain, op, *_ in rules if domain != "com.microsoft"}
    check_with_onnx(rules)
    for op in NOTES:
        if op not in known:
            sys.exit(f"NOTES has {op}, which has no rule")
    out = ["# Operations", "",
           "This page is generated; do not edit it.", "",
           "## What the device runs", "",
           f"{len(names)} operations. Each has a reference kernel for every type that it takes; *also* names the backends",
           "with a faster one for some of its calls (`sinter inspect --steps` shows which step took which). Spatial operations",
           "are channels-last. Shapes are fixed at conversion; an attribute without a default is a list. *On integers* names the",
           "row that computes it in an integer model where its types and attributes allow that: itself, another row, or a table",
           "of results; what has none is kept in float.", ""]
    for title, rows in sections:
        out += [f"### {title[0].upper() + title[1:]}", "", "| name | id | meaning | in | out | attributes | on integers | also |",
                "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for name, number, ins, outs, attrs, integers, meaning in rows:
            also = ", ".join(b for b in fast if name in fast[b])
            out.append(f"| {name} | {number} | {cell(meaning)} | {ins} | {outs} | {attrs} | {integers} | {also} |")
        out.append("")
    newest = int(re.search(r"kNewestOpset = (\d+);", read("converter/import/read/reader.h")).group(1))
    out += ["## What is read from ONNX", "",
            "Every version of operator set from the one named up to the last is read with that version's meaning. *Becomes*",
            "names the device operations that the rule may emit, apart from casts, transposes and views that arrange operands;",
            "what depends on constants alone is folded away. *Constant* numbers the operands that must be known at conversion",
            "(`--const` gives them). The last column is what the rule itself refuses; attributes and operands that no rule",
            "reads, types without a rule, and shapes that do not fit are refused for every operation, with the node's name.",
            ""]
    for domain, title in (("", "ai.onnx"), ("com.microsoft", "com.microsoft"), ("ai.onnx.ml", "ai.onnx.ml")):
        out += [f"### {title}", "", "| operation | versions | becomes | constant | refused |",
                "| --- | --- | --- | --- | --- |"]
        for d, op, since, f, function in sorted(r for r in rules if r[0] == domain):
            main, refusals, constants = importer.describe(f, function)
            becomes = ", ".join(main) or "a constant"
            note = NOTES.get(op) if domain != "com.microsoft" else None
            if note:
                becomes = f"{becomes} ({note})" if main else note
            versions = f"{since} to {newest}" if not domain else "1"
            out.append(f"| {op} | {versions} | {cell(becomes)} | {', '.join(map(str, constants))} | "
                       f"{cell('; '.join(refusals))} |")
        out.append("")
    out += ["Labels that are strings become their numbers, and the maps of ZipMap the tensor of probabilities; a warning lists the",
            "labels. Tree ensembles take every mode, missing values, and (TreeEnsemble) membership of sets. Where ONNX's definition",
            "and onnxruntime are known to differ, the model is refused, except for: the label of two classes that both have weights",
            "(ONNX's: the higher score), two classes with one score (onnxruntime's: that of the second class), NaN in BRANCH_NEQ",
            "(onnxruntime's: it differs from every number), and Normalizer with MAX (onnxruntime's: the largest element).", ""]
    out += ["A node that names a function of the model itself is read through the function's body, whatever its name.", "",
            "### Refused", "", "| why | operations |", "| --- | --- |"]
    out += [f"| {why} | {ops} |" for why, ops in REFUSED]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, document, __doc__))
