#!/usr/bin/env python3
"""Decoders that keep their context (--max-context), against onnxruntime, whose caller carries caches that grow.

    decoders.py [--sinter PROGRAM] [--decode PROGRAM] [unittest options]

Needs numpy, onnx and onnxruntime. A few seconds.
"""
import dataclasses
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import builder_models  # noqa: E402
import decoder_models as models  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto  # noqa: E402
from program_case import ProgramCase, run_cases  # noqa: E402

BOUND = 16
SETS = "sequence_length=4; sequence_length=1"
DECODE = "run_decoder"  # --decode
RUNS = [[3, 5, 7, 9], [11], [2], [41, 3, 8, 1], [6], [6]]


def snr(found, wanted):
    return 10 * np.log10(np.sum(wanted ** 2) / max(np.sum((found - wanted) ** 2), 1e-30))


class Decoders(ProgramCase):
    def convert(self, model, *flags, name="net", sets=SETS, **more):
        onnx.save(model, self.path(name + ".onnx"))
        file = self.path(name + ".sinter")
        self.call("convert", self.path(name + ".onnx"), "-o", file, "--shapes", sets, "--max-context", str(BOUND), *flags, **more)
        return file

    def decode(self, file, *runs, fails=None):
        out = self.path("logits.bin")
        words = [run if isinstance(run, str) else ",".join(map(str, run)) for run in runs]
        r = subprocess.run([DECODE, file, out, *words], capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, 0 if fails is None else 1, r.stderr)
        if fails is not None:
            for word in fails:
                self.assertIn(word, r.stderr)
        return np.fromfile(out, np.float32).reshape(-1, models.SMALL.vocabulary)

    def answers(self, model, runs=RUNS, **more):
        growing = models.Growing(model, **more)
        return np.concatenate([growing(run)[0] for run in runs]).astype(np.float32)

    def expect_near(self, found, wanted, tolerance=2e-4):
        self.assertEqual(found.shape, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)

    def test_reads_a_prompt_and_goes_on(self):
        for number, attributes in enumerate(({}, dict(local_window_size=3), dict(softcap=2.0), dict(smooth_softmax=1),
                                             dict(rotary_interleaved=1), dict(by_cache=True))):
            with self.subTest(**attributes):
                model = models.with_group_query(seed=number, **attributes)
                for target in ("x86_64", "portable"):
                    self.expect_near(self.decode(self.convert(model, "--target", target), *RUNS), self.answers(model))

    def test_reads_caches_that_grow_by_concat(self):
        for kind, groups, tolerance in ((np.float32, 4, 2e-4), (np.float32, 2, 2e-4), (np.float16, 2, 2e-2)):
            with self.subTest(kind=kind.__name__, groups=groups):
                model = models.with_concat(kind, shape=dataclasses.replace(models.SMALL, groups=groups))
                for target in ("x86_64", "portable"):
                    file = self.convert(model, "--target", target)
                    self.expect_near(self.decode(file, *RUNS), self.answers(model), tolerance)
                self.expect_one_pass(file, groups, kind)
        for groups, more in ((2, dict(exported=True)), (2, dict(softcap=1.5)), (1, {}), (1, dict(exported=True, softcap=3.0)),
                             (4, dict(operator="bmm")), (4, dict(masks="two")), (2, dict(masks="slopes")), (2, dict(sinks=True)), (4, dict(sinks=True, masks="slopes")),
                             (4, dict(batched=True)),
                             (2, dict(rotated=6)), (4, dict(rotated=8, pairs=True)), (2, dict(pairs=True))):
            with self.subTest(groups=groups, **more):
                model = models.with_concat(shape=dataclasses.replace(models.SMALL, groups=groups), **more)
                file = self.convert(model)
                self.expect_near(self.decode(file, *RUNS), self.answers(model))
                self.expect_one_pass(file, groups, np.float32)
                steps = self.call("inspect", file, "--steps", "--entry", "1").out
                self.assertEqual(steps.count(" Rope "), 2 * models.SMALL.layers)
                self.assertNotIn(" GatherNd ", steps)  # the mask of ones

    def test_keeps_caches_in_the_type_of_their_inputs(self):
        for groups, flags, kind, tolerance in ((2, (), np.float16, 2e-3), (4, (), np.float16, 2e-3), (2, ("--kv-cache", "float16"), np.float16, 2e-3),
                                               (2, ("--kv-cache", "int8"), None, 0.2)):
            with self.subTest(groups=groups, flags=flags):
                model = models.with_concat(shape=dataclasses.replace(models.SMALL, groups=groups), half_past=True)
                file = self.convert(model, *flags)
                self.expect_near(self.decode(file, *RUNS), self.answers(model), tolerance)
                if kind:
                    self.expect_one_pass(file, groups, kind)
        # What else reads a cache gets no rounded rows.
        model.graph.node.append(onnx.helper.make_node("Cast", ["past_key_values.0.key"], ["wide"], to=onnx.TensorProto.FLOAT))
        model.graph.node.append(onnx.helper.make_node("ReduceMax", ["wide"], ["largest"], name="reader", keepdims=0))
        model.graph.output.append(models.value("largest", onnx.TensorProto.FLOAT, []))
        onnx.save(model, self.path("read.onnx"))
        self.call("convert", self.path("read.onnx"), "-o", self.path("read.sinter"), "--shapes", SETS, "--max-context", str(BOUND), code=3,
                  words=("past_key_values.0.key", "float16", "one type"))

    def test_names_the_option_for_states_of_fixed_size(self):
        g = models.Graph(1, np.float32)
        g.add("Add", "past.0.ssm", g.add("MatMul", "x", g.weight(8, 8)), name="present.0.ssm")
        ports = [models.value(n, onnx.TensorProto.FLOAT, [1, 8]) for n in ("x", "past.0.ssm", "present.0.ssm")]
        onnx.save(g.model(ports[:2], ports[2:]), self.path("ssm.onnx"))
        self.call("convert", self.path("ssm.onnx"), "-o", self.path("ssm.sinter"), "--max-context", "4", code=3, words=("--state auto",))
        self.call("convert", self.path("ssm.onnx"), "-o", self.path("ssm.sinter"), "--state", "auto")

    def test_reads_caches_of_the_attention_operator(self):
        for groups in (2, 4):
            for operator in ("keys", "past"):
                with self.subTest(groups=groups, operator=operator):
                    model = models.with_concat(shape=dataclasses.replace(models.SMALL, groups=groups), operator=operator)
                    for target in ("x86_64", "portable"):
                        file = self.convert(model, "--target", target)
                        self.expect_near(self.decode(file, *RUNS), self.answers(model))
                    self.expect_one_pass(file, groups, np.float32)
                    file = self.convert(model, "--kv-cache", "int8")
                    self.expect_narrow_rows(file, "int8")
                    self.assertGreater(snr(self.decode(file, *RUNS), self.answers(model)), 36)

    def expect_one_pass(self, file, groups, kind):
        """Attention reads the states where they are, and keys and values of several heads once."""
        steps = [s for s in self.call("inspect", file, "--steps", "--entry", "1").out.splitlines() if " Attention " in s]
        self.assertEqual(len(steps), models.SMALL.layers)
        for layer, step in enumerate(steps):
            self.assertIn(f"present.{layer}.key, present.{layer}.value", step)
        facts = json.loads(self.call("inspect", file, "--json").out)
        for s in facts["states"][:-1]:
            self.assertEqual((s["type"], s["bytes"], s["in_place"]),
                             (np.dtype(kind).name, groups * BOUND * models.SMALL.size * np.dtype(kind).itemsize, True))

    def test_reads_forms_of_the_model_builder(self):
        for options in (dict(open_rows=True), dict(two_tables=True), dict(rank_3=True), dict(convolution=True),
                        dict(open_rows=True, two_tables=True, convolution=True, local_window_size=5)):
            with self.subTest(**options):
                model = builder_models.grouped(**options)
                for target in ("x86_64", "portable"):
                    file = self.convert(model, "--target", target)
                    facts = json.loads(self.call("inspect", file, "--json").out)
                    self.assertEqual([i["name"] for i in facts["inputs"]], ["input_ids"])
                    self.assertEqual([o["name"] for o in facts["outputs"]], ["logits"])
                    # No branch copies a table.
                    self.assertNotIn(" If ", self.call("inspect", file, "--steps", "--entry", "1").out)
                    self.expect_near(self.decode(file, *RUNS), self.answers(model))
                    self.expect_near(self.decode(file, *RUNS, "reset", *RUNS)[-len(self.answers(model)):], self.answers(model))

    def test_a_window_of_rows_becomes_all_rows(self):
        # The caches keep every row, so that none is dropped; attention reads those of the window.
        plain = models.with_group_query(local_window_size=3)
        rolling = models.with_group_query(local_window_size=3, sliding_window_cache=1)
        self.expect_near(self.decode(self.convert(rolling), *RUNS), self.answers(plain))

    def test_reads_caches_of_multi_head_attention(self):
        shape = dataclasses.replace(models.SMALL, groups=models.SMALL.heads)
        for options in (dict(), dict(masked=True), dict(masked=True, mask_filter_value=-3.4e38)):
            with self.subTest(**options):
                model = builder_models.multi_head(shape=shape, **options)
                for target in ("x86_64", "portable"):
                    file = self.convert(model, "--target", target)
                    self.expect_near(self.decode(file, *RUNS), self.answers(model))
                self.expect_one_pass(self.convert(model), shape.groups, np.float32)

    def test_keeps_positions_of_pictures_as_an_input(self):
        # Embeddings may be of pictures, whose positions the converter does not know.
        model = builder_models.grouped(rank_3=True)
        embedding = next(n for n in model.graph.node if "input_ids" in n.input).input[0]
        nodes = [n for n in model.graph.node if "input_ids" not in n.input]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        x = next(n for n in nodes if n.op_type == "LayerNormalization").input[0]
        model.graph.input[0].CopyFrom(models.value(x, onnx.TensorProto.FLOAT, ["batch_size", "sequence_length", models.SMALL.hidden]))
        ports = {i.name: i for i in model.graph.input}
        for first in ("position_ids", x):  # in any order
            del model.graph.input[:]
            model.graph.input.extend(sorted(ports.values(), key=lambda i: i.name != first))
            file = self.convert(model, sets="sequence_length=1")
            facts = json.loads(self.call("inspect", file, "--json").out)
            self.assertEqual({i["name"] for i in facts["inputs"]}, {x, "position_ids"})
        tokens = np.concatenate(RUNS)
        table = onnx.numpy_helper.to_array(next(c for c in model.graph.initializer if c.name == embedding))
        data, out = self.path("embedded.npz"), self.path("out.npz")
        places = np.arange(len(tokens))[:, None, None, None].repeat(3, 1)
        cli.save_npz(data, {x: table[tokens][:, None, None], "position_ids": places})
        self.call("run", file, "--inputs", data, "--outputs", out, "--each", "--stateful")
        with np.load(out) as arrays:
            self.expect_near(arrays["logits"].reshape(len(tokens), -1), self.answers(builder_models.grouped(rank_3=True)))

    def test_what_an_encoder_computed_stays_an_input(self):
        tokens = [t for run in RUNS for t in run]
        drawn = np.random.default_rng(3)
        values = drawn.standard_normal((1, models.SMALL.groups, 6, models.SMALL.size), np.float32)
        mask = np.array([[1, 1, 1, 1, 0, 0]])
        wanted = self.answers(models.with_concat()) + np.sum(values * mask[:, None, :, None])
        encoded, hidden = "past_key_values.0.encoder.value", "encoder_hidden_states"
        renamed = models.with_encoder()  # the model gives back what it got, and no name holds a hint
        for ports in (renamed.graph.input, renamed.graph.output, *((n.input, n.output) for n in renamed.graph.node)):
            self.rename(ports, {"encoder_attention_mask": "attention_mask.1", encoded: "past_key_values.0.cross.value",
                                encoded.replace("past_key_values", "present"): "present.0.cross.value"})
        fixed = onnx.ModelProto.FromString(renamed.SerializeToString())
        for port in (*fixed.graph.input, *fixed.graph.output):
            for dim in port.type.tensor_type.shape.dim:
                if dim.dim_param == "encoder_length":
                    dim.dim_value = 6
        for model, given in ((models.with_encoder(), {"encoder_attention_mask": mask, encoded: values}),
                             (models.merged(), {"encoder_attention_mask": mask, encoded: values, hidden: values}),
                             (renamed, {"attention_mask.1": mask, "past_key_values.0.cross.value": values}),
                             (fixed, {"attention_mask.1": mask, "past_key_values.0.cross.value": values})):
            with self.subTest(inputs=list(given), fixed=model is fixed):
                file = self.convert(model, *([] if model is fixed else ["--dim", "encoder_length=6"]), sets="sequence_length=1")
                facts = json.loads(self.call("inspect", file, "--json").out)
                self.assertEqual({i["name"] for i in facts["inputs"]}, {"input_ids", *given})
                data, out = self.path("encoded.npz"), self.path("encoded.out.npz")
                cli.save_npz(data, {"input_ids": np.array(tokens).reshape(-1, 1, 1),
                                    **{n: np.stack([a] * len(tokens)) for n, a in given.items()}})
                self.call("run", file, "--inputs", data, "--outputs", out, "--each", "--stateful")
                with np.load(out) as arrays:
                    self.expect_near(arrays["logits"].reshape(len(tokens), -1), wanted, 1e-3)

    def rename(self, ports, names):
        for port in ports:
            if isinstance(port, onnx.ValueInfoProto):
                port.name = names.get(port.name, port.name)
            else:
                port[:] = [names.get(name, name) for name in port]

    def renamed(self, model, names):
        """The model with other names of inputs and outputs."""
        model = onnx.ModelProto.FromString(model.SerializeToString())
        for ports in (model.graph.input, model.graph.output, *((n.input, n.output) for n in model.graph.node)):
            self.rename(ports, names)
        return model

    def notes_of(self, model, *flags):
        report = self.path("notes.json")
        file = self.convert(model, "--report", report, *flags, sets="sequence_length=1")
        with open(report) as f:
            return file, f.read()

    def expect_answers(self, file, model, output="logits", **given):
        """Tokens one by one, against the model as it is; `given` are the inputs that remain, constant but for the tokens."""
        tokens = np.concatenate(RUNS)
        name = next(iter(given))
        inputs = [i["name"] for i in json.loads(self.call("inspect", file, "--json").out)["inputs"]]
        self.assertEqual(set(inputs), set(given))
        arrays = {n: np.stack([a] * len(tokens)) for n, a in given.items() if n != name}
        data, out = self.path("given.npz"), self.path("answers.npz")
        cli.save_npz(data, {name: tokens.reshape(-1, 1, 1), **arrays})
        self.call("run", file, "--inputs", data, "--outputs", out, "--each", "--stateful")
        with np.load(out) as arrays:
            self.expect_near(arrays[output].reshape(len(tokens), -1), self.answers(model, room=BOUND if model is self.room else 0), 1e-3)

    room = models.with_concat(room="ScatterND")

    def test_roles_do_not_need_names(self):
        shape = dataclasses.replace(models.SMALL, groups=models.SMALL.heads)
        for model in (models.with_concat(), models.with_concat(operator="keys"), models.with_group_query(), builder_models.multi_head(shape=shape, masked=True),
                      builder_models.grouped(rank_3=True), self.room):
            with self.subTest(first=model.graph.node[0].name, inputs=len(model.graph.input)):
                names = {p.name: f"{'xy'[k]}{i}" for k, ports in enumerate((model.graph.input, model.graph.output)) for i, p in enumerate(ports)}
                if any(len(p.type.tensor_type.shape.dim) == 3 and p.name == "position_ids" for p in model.graph.input):
                    names.pop("position_ids")  # positions of rank 3 may be of pictures: the name decides
                file, notes = self.notes_of(self.renamed(model, names))
                self.expect_answers(file, model, names["logits"], **{names["input_ids"]: None})
                # The bytes are those of the model with names, but for the names.
                with open(file, "rb") as a, open(self.convert(model, name="named", sets="sequence_length=1"), "rb") as b:
                    self.assertLess(abs(len(a.read()) - len(b.read())), 2048)

    def test_names_that_mislead(self):
        model = models.with_concat()
        swapped = self.renamed(model, {"attention_mask": "position_ids", "position_ids": "attention_mask"})
        file, notes = self.notes_of(swapped)
        self.expect_answers(file, model, input_ids=None)
        self.assertIn("input 'attention_mask' is computed as positions, in spite of its name", notes)
        self.assertIn("--shape attention_mask=D1,D2,... keeps it an input", notes)
        # Past keys that become nothing, and integers that mask and place nothing.
        for name, kind in (("pixel_mask", TensorProto.INT64), ("pos", TensorProto.INT64), ("window_mask", TensorProto.BOOL)):
            with self.subTest(name):
                other = onnx.ModelProto.FromString(model.SerializeToString())
                graph = other.graph
                next(n for n in graph.node if n.output[0] == "logits").output[0] = "own"
                graph.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 1), np.float32), "weights"))
                graph.node.extend([onnx.helper.make_node("Cast", [name], ["numbers"], to=TensorProto.FLOAT),
                                   onnx.helper.make_node("MatMul", ["numbers", "weights"], ["product"]),
                                   onnx.helper.make_node("ReduceSum", ["product"], ["sum"], keepdims=0),
                                   onnx.helper.make_node("Sub", ["sum", "sum"], ["nothing"]),
                                   onnx.helper.make_node("Add", ["own", "nothing"], ["logits"])])
                graph.input.append(models.value(name, kind, ["batch_size", 2]))
                file, notes = self.notes_of(other)
                self.expect_answers(file, model, input_ids=None, **{name: np.ones((1, 2), bool if kind == TensorProto.BOOL else np.int64)})
                self.assertIn(f"input '{name}' stays one: its name says", notes)
                self.assertIn(f"--const {name}=FILE.npy", notes)

    def test_names_decide_where_the_graph_does_not(self):
        file, notes = self.notes_of(models.with_group_query(by_cache=True))  # no result follows from the mask
        self.assertIn("input 'attention_mask' is a mask because of its name", notes)
        self.assertIn("--shape attention_mask=D1,D2,... keeps it an input", notes)
        # With --shape it stays, whatever the graph shows.
        file = self.convert(models.with_group_query(), "--shape", f"attention_mask=1,{BOUND}", sets="sequence_length=1")
        facts = json.loads(self.call("inspect", file, "--json").out)
        self.assertEqual({i["name"] for i in facts["inputs"]}, {"input_ids", "attention_mask"})

    def test_states_that_only_names_propose(self):
        g = models.Graph(1, np.float32)
        g.add("Relu", "h_in", name="y")
        g.add("MatMul", "x", g.weight(8, 8), name="h_out")
        ports = [models.value(n, TensorProto.FLOAT, [1, 8]) for n in ("x", "h_in", "y", "h_out")]
        onnx.save(g.model(ports[:2], ports[2:]), self.path("apart.onnx"))
        out, report = self.path("apart.sinter"), self.path("apart.json")
        said = self.call("convert", self.path("apart.onnx"), "-o", out).out
        self.assertNotIn("--state", said)
        self.call("convert", self.path("apart.onnx"), "-o", out, "--state", "auto", "--report", report)
        with open(report) as f:
            self.assertIn("input 'h_in' does not become output 'h_out', in spite of their names", f.read())
        self.assertEqual(json.loads(self.call("inspect", out, "--json").out).get("states", []), [])

    def test_pictures_with_names_of_decoders(self):
        for names in (("mask", "pos"), ("first", "second")):
            g = models.Graph(1, np.float32)
            g.add("Add", g.add("Conv", "pixels", g.weight(4, 3, 3, 3)), g.add("Add", *(g.add("Cast", n, to=TensorProto.FLOAT) for n in names)), name="y")
            inputs = [models.value("pixels", TensorProto.FLOAT, [1, 3, 8, 8]), *(models.value(n, TensorProto.INT64, [1, 6]) for n in names)]
            onnx.save(g.model(inputs, [models.value("y", TensorProto.FLOAT, [1, 4, 6, 6])]), self.path("picture.onnx"))
            self.call("convert", self.path("picture.onnx"), "-o", self.path("picture.sinter"))
            facts = json.loads(self.call("inspect", self.path("picture.sinter"), "--json").out)
            self.assertEqual([i["name"] for i in facts["inputs"]], ["pixels", *names])
            self.call("convert", self.path("picture.onnx"), "-o", self.path("picture.sinter"), "--max-context", "6", code=3, words=("no input of rank 4",))

    def test_caches_of_a_fixed_size(self):
        for room in ("ScatterND", "TensorScatter"):
            for groups in (2, 4):
                with self.subTest(room=room, groups=groups):
                    model = models.with_concat(shape=dataclasses.replace(models.SMALL, groups=groups), room=room)
                    wanted = self.answers(model, room=BOUND)
                    for target in ("x86_64", "portable"):
                        file = self.convert(model, "--target", target)
                        self.expect_near(self.decode(file, *RUNS), wanted)
                        back = self.decode(file, [3, 5, 7, 0], "at=3", [9], [11])
                        self.expect_near(back[[0, 1, 2, 4, 5]], wanted[:5])
                    facts = json.loads(self.call("inspect", file, "--json").out)
                    self.assertEqual([i["name"] for i in facts["inputs"]], ["input_ids"])
                    self.assertEqual([o["name"] for o in facts["outputs"]], ["logits"])
                    self.assertEqual({s["bytes"] for s in facts["states"]}, {groups * BOUND * models.SMALL.size * 4, 8})
                    # Rows are written in place, and attention reads those up to the position.
                    steps = self.call("inspect", file, "--steps", "--entry", "1").out.splitlines()
                    self.assertEqual(len([s for s in steps if " CacheUpdate " in s]), 2 * models.SMALL.layers)
                    self.assertFalse([s for s in steps if " ScatterNd " in s or " Transpose " in s])
                    for layer, step in enumerate(s for s in steps if " Attention " in s):
                        self.assertRegex(step, rf"present\.{layer}\.key, present\.{layer}\.value, \S+, \S+\)")

    def test_caches_whose_size_is_in_the_model(self):
        model = models.with_concat(room="ScatterND")
        for port in (*model.graph.input, *model.graph.output):
            for dim in port.type.tensor_type.shape.dim:
                if dim.dim_param == "cache_length":
                    dim.dim_value = BOUND
        file = self.convert(model)
        self.expect_near(self.decode(file, *RUNS), self.answers(models.with_concat(room="ScatterND"), room=BOUND))
        self.call("convert", self.path("net.onnx"), "-o", file, "--dim", "sequence_length=1", "--max-context", "8", code=3,
                  words=(f"the model's caches have {BOUND} rows", f"give --max-context {BOUND}"))

    def test_counts_that_are_not_of_the_tokens_are_refused(self):
        model = models.with_concat(room="ScatterND")
        count = next(n for n in model.graph.node if n.output[0] == "present.1.count")
        count.input[1] = count.input[0]
        self.convert(model, code=3, words=("'present.1.count' is not proven", "--state present.1.count=past_key_values.1.count"))

    def test_sizes_that_are_named_by_a_number(self):
        model = models.with_concat()
        for port in model.graph.input:
            if port.name.startswith("past"):
                dims = port.type.tensor_type.shape.dim
                dims[1].dim_param, dims[3].dim_param = str(models.SMALL.groups), str(models.SMALL.size)
        self.expect_near(self.decode(self.convert(model), *RUNS), self.answers(models.with_concat()))

    def test_the_caller_gives_tokens_only(self):
        report = self.path("report.json")
        file = self.convert(models.with_group_query(), "--report", report)
        with open(report) as f:
            self.assertIn("input 'attention_mask' is computed: 1 for every token so far", f.read())
        facts = json.loads(self.call("inspect", file, "--json").out)
        self.assertEqual([i["name"] for i in facts["inputs"]], ["input_ids"])
        self.assertEqual([o["name"] for o in facts["outputs"]], ["logits"])
        caches = [f"past_key_values.{layer}.{what}" for layer in range(models.SMALL.layers) for what in ("key", "value")]
        self.assertEqual([s["input"] for s in facts["states"]], caches + ["context_length"])
        rows = models.SMALL.groups * BOUND * models.SMALL.size * 4
        self.assertEqual([(s["bytes"], s["in_place"]) for s in facts["states"][:-1]], [(rows, True)] * len(caches))

    def test_begins_again_and_goes_back(self):
        model = models.with_group_query()
        file, wanted = self.convert(model), self.answers(model)
        found = self.decode(file, *RUNS, "reset", *RUNS)
        self.expect_near(found[:len(wanted)], wanted)
        self.expect_near(found[len(wanted):], wanted)
        # A prompt of three tokens, padded to four: the position is moved back.
        back = self.decode(file, [3, 5, 7, 0], "at=3", [9], [11])
        self.expect_near(back[[0, 1, 2, 4, 5]], wanted[:5])

    def test_more_tokens_than_the_bound_fail(self):
        file = self.convert(models.with_group_query())
        full = [[1, 2, 3, 4]] * (BOUND // 4)
        self.decode(file, *full)
        for run in ([1], [1, 2, 3, 4]):
            self.decode(file, *full, run, fails=("context_length", f"a length of {BOUND + len(run)}", f"0 to {BOUND}", "--max-context"))
        self.decode(file, "at=-1", [1], fails=("context_length",))

    def test_keeps_float16_as_the_model_does(self):
        model = models.with_group_query(np.float16)
        file = self.convert(model)
        facts = json.loads(self.call("inspect", file, "--json").out)
        self.assertEqual({s["type"] for s in facts["states"][:-1]}, {"float16"})
        self.assertTrue(all(s["in_place"] for s in facts["states"][:-1]))
        self.expect_near(self.decode(file, *RUNS), self.answers(model), 2e-2)

    def test_keeps_caches_in_narrow_types(self):
        model = models.with_group_query()
        wanted = self.decode(self.convert(model), *RUNS)
        for kind, minimum, elements in (("float16", 60, 2), ("bfloat16", 45, 2), ("int8", 38, 1), ("float8", 25, 1)):
            with self.subTest(kind):
                file = self.convert(model, "--kv-cache", kind)
                facts = json.loads(self.call("inspect", file, "--json").out)
                keys = [s for s in facts["states"] if s["input"].endswith("key")]
                self.assertEqual({s["bytes"] for s in keys}, {models.SMALL.groups * BOUND * models.SMALL.size * elements})
                self.assertTrue(all(s["in_place"] for s in facts["states"][:4]))
                scales = [s for s in facts["states"] if s["input"].endswith(".scales")]
                self.assertEqual(len(scales), 4 if kind == "int8" else 0)
                self.assertGreater(snr(self.decode(file, *RUNS), wanted), minimum)

    def test_narrows_caches_that_grow_by_concat(self):
        for groups in (2, 4):
            shape = dataclasses.replace(models.SMALL, groups=groups)
            wanted = self.answers(models.with_concat(shape=shape))
            for kind, minimum in (("float16", 60), ("bfloat16", 40), ("int8", 36), ("float8", 20)):
                for target in ("x86_64", "portable"):
                    with self.subTest(groups=groups, kind=kind, target=target):
                        file = self.convert(models.with_concat(shape=shape), "--kv-cache", kind, "--target", target)
                        self.expect_narrow_rows(file, kind)
                        self.assertGreater(snr(self.decode(file, *RUNS), wanted), minimum)

    def expect_narrow_rows(self, file, kind):
        """Attention reads the narrow states where they are, which are updated in place."""
        steps = [s for s in self.call("inspect", file, "--steps", "--entry", "1").out.splitlines() if " Attention " in s]
        self.assertEqual(len(steps), models.SMALL.layers)
        for layer, step in enumerate(steps):
            self.assertIn(f"present.{layer}.key, present.{layer}.value", step)
            self.assertEqual(f"present.{layer}.key.scales, present.{layer}.value.scales" in step, kind == "int8", step)
        states = json.loads(self.call("inspect", file, "--json").out)["states"]
        self.assertEqual(len(states), (8 if kind == "int8" else 4) + 1)
        self.assertTrue(all(s["in_place"] for s in states if s["input"] != "context_length"))

    def test_int8_rows_are_those_that_numpy_rounds(self):
        # onnxruntime computes with rounded rows in float; what remains are sums in another order, and roundings that these decide.
        for shape in (models.SMALL, dataclasses.replace(models.SMALL, groups=4)):
            file = self.convert(models.with_concat(shape=shape), "--kv-cache", "int8")
            self.assertGreater(snr(self.decode(file, *RUNS), self.answers(models.with_concat(shape=shape, rounded=True))), 65)

    def test_float16_models_keep_int8_rows(self):
        model = models.with_concat(np.float16)
        self.assertGreater(snr(self.decode(self.convert(model, "--kv-cache", "int8"), *RUNS), self.answers(model)), 35)

    def test_keeps_the_types_of_kept_caches(self):
        # A type that takes as many bytes as the model's is not worth a rounding.
        half = models.with_concat(np.float16)
        plain = self.convert(half, name="half")
        self.convert(half, "--kv-cache", "bfloat16", name="kept", words=("'past_key_values.0.key'", "takes no more bytes"))
        with open(plain, "rb") as a, open(self.path("kept.sinter"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_models_that_quantize_their_caches(self):
        for how in ("PER_TENSOR", "PER_CHANNEL"):
            for bits, elements in ((8, 1), (4, 2)):
                model = models.with_group_query(quantized=(how, bits))
                wanted = self.answers(model)
                for target in ("x86_64", "portable"):
                    with self.subTest(how=how, bits=bits, target=target):
                        file = self.convert(model, "--target", target)
                        states = json.loads(self.call("inspect", file, "--json").out)["states"][:-1]
                        self.assertEqual({s["bytes"] for s in states}, {models.SMALL.groups * BOUND * models.SMALL.size // elements})
                        self.assertTrue(all(s["in_place"] for s in states))
                        # A key that is near the middle of two steps may be rounded to the other one.
                        self.assertGreater(snr(self.decode(file, *RUNS), wanted), 60 if bits == 8 else 40)
        # onnxruntime's CPU provider has none of float8: near to the model without.
        for how in ("PER_TENSOR", "PER_CHANNEL"):
            for target in ("x86_64", "portable"):
                with self.subTest(how=how, target=target):
                    file = self.convert(models.with_group_query(quantized=(how, "float8")), "--target", target)
                    states = json.loads(self.call("inspect", file, "--json").out)["states"][:-1]
                    self.assertEqual({(s["type"], s["bytes"], s["in_place"]) for s in states},
                                     {("float8e4m3fn", models.SMALL.groups * BOUND * models.SMALL.size, True)})
                    self.assertGreater(snr(self.decode(file, *RUNS), self.answers(models.with_group_query())), 25)
        half = models.with_group_query(np.float16, quantized=("PER_CHANNEL", 8))
        self.assertGreater(snr(self.decode(self.convert(half), *RUNS), self.answers(half)), 30)
        self.convert(models.with_group_query(quantized=("PER_TENSOR", 8)), "--kv-cache", "float16", words=("takes no more bytes",))

    def test_commands_take_decoders(self):
        tokens = self.path("tokens.npz")
        cli.save_npz(tokens, {"input_ids": np.random.default_rng(1).integers(0, models.SMALL.vocabulary, (BOUND, 1, 1))})
        for make, flags in ((models.with_group_query, ()), (models.with_concat, ()), (models.with_group_query, ("--kv-cache", "int8")),
                            (models.with_group_query, ("--quantize", "int8w"))):
            file = self.convert(make(), *flags)
            self.call("compare", self.path("net.onnx"), file, "--inputs", tokens, "--each", "--stateful",
                      *(("--min-sqnr", "30") if flags else ()))
        # More runs than the context has room for.
        self.call("bench", file, "--entry", "1", "--seconds", "0.05", "--json", words=("median_ms",))

    def test_runs_whole_on_a_device(self):
        tokens = [3, 5, 7, 9, 11, 2, 41, 3, 8, 1]
        data = self.path("device.npz")
        cli.save_npz(data, {"input_ids": np.array(tokens).reshape(-1, 1, 1)})
        window = dict(local_window_size=3, softcap=2.0, smooth_softmax=1)
        for model, flags, minimum in ((models.with_group_query(), (), 90), (models.with_group_query(seed=2, **window), (), 90),
                                      (models.with_concat(), (), 90), (models.with_group_query(np.float16), (), 40),
                                      (models.with_group_query(), ("--kv-cache", "int8"), 38),
                                      (models.with_concat(), ("--kv-cache", "int8"), 36),
                                      (models.with_group_query(quantized=("PER_CHANNEL", 8)), (), 60),
                                      (models.with_group_query(quantized=("PER_CHANNEL", 4)), (), 40),
                                      (models.with_group_query(), ("--kv-cache", "float8", "--quantize", "int4w"), 10)):
            with self.subTest(flags=flags):
                file = self.convert(model, *flags, "--target", "cuda", "--backends", "cuda-emulated", sets="sequence_length=1")
                steps = self.call("inspect", file, "--steps").out
                self.assertNotIn(" on the host", "\n".join(s for s in steps.splitlines() if "Attention" in s or "FullyConnected" in s))
                facts = json.loads(self.call("inspect", file, "--json").out)
                self.assertEqual({s["memory"] for s in facts["states"] if "past" in s["input"]}, {"cuda-emulated"})
                out = self.path("device.out.npz")
                run = cli.call(self.sinter, "run", file, "--inputs", data, "--outputs", out, "--each", "--stateful", "--backend",
                               "cuda-emulated", timeout=120)
                if run.code == 2:
                    continue  # this program was built without the emulated device
                self.assertEqual(run.code, 0, run.why())
                with np.load(out) as arrays:
                    found = arrays["logits"].reshape(len(tokens), -1)
                self.assertGreater(snr(found, self.answers(model, [[t] for t in tokens])), minimum)
        # More runs than the context has room for, whose state is on the device alone.
        self.call("bench", file, "--backend", "cuda-emulated", "--seconds", "1", "--json", words=("median_ms",))

    def test_refuses_what_has_no_context(self):
        plain = models.without_caches()
        onnx.save(plain, self.path("plain.onnx"))
        out = self.path("no.sinter")
        self.call("convert", self.path("plain.onnx"), "-o", out, "--max-context", "8", code=3, words=("--max-context", "past"))
        self.convert(models.with_group_query(), sets="sequence_length=17", code=3, words=("a run has 17 tokens",))
        self.convert(models.with_group_query(), "--dim", "past_sequence_length=8", code=3, words=("past_sequence_length", "leave the --dim out"))
        self.call("convert", self.path("plain.onnx"), "-o", out, "--kv-cache", "int8", code=2, words=("--max-context",))


if __name__ == "__main__":
    if "--decode" in sys.argv:
        at = sys.argv.index("--decode")
        DECODE = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    run_cases()
