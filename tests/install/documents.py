#!/usr/bin/env python3
"""Runs the commands of README.md and of the pages that it leads to, block after block, as someone does who has just run ./demo.

    documents.py --build FOLDER --sinter PROGRAM [PAGE]...

The tree is copied, and `build/release` there is FOLDER. A block of commands is indented or fenced and begins with a command; a
block with [optional] words is a synopsis and is not run. A fenced block that begins with a comment "NAME.cc: ..." or "NAME.py: ..." is that
file. Pages presume files, such as net.onnx: FILES makes them. LEFT_OUT has a
reason for each block that is not run. Other suites run the commands of devices.md (install.cross, microcontroller; those for a GPU
need a device) and python.md (python_package). 23 s of processor time, most of it the examples' compilation.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import wave

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = """README.md docs/cli.md examples/classify/README.md examples/classify_c/README.md examples/camera_c/README.md
examples/custom_op/README.md docs/application.md examples/chat/README.md examples/diffusion/README.md docs/data.md
docs/decoders.md docs/quantization.md docs/shapes.md docs/guides/pictures.md docs/guides/sound.md docs/guides/language.md""".split()
COMMAND = re.compile(r'^(sinter |cmake |\./|export |python |pip |scripts/|bench/|build/|qemu)')
NAMED = re.compile(r'(?://|#) (\w+\.(?:cc|py)): ')
# The beginning of a block: why it is not run.
LEFT_OUT = {
    './demo': 'CI runs ./test; this test begins after ./demo',
    'python examples/chat/train.py': 'needs torch, and hours',
    'python examples/diffusion/train.py': 'needs torch, and 12 minutes',
    'python -c': "needs files of optimum's exporter",
    'bench/': 'measures for hours, with data of the reader',
}


def blocks(page):
    """The page's blocks of commands, each a list of lines."""
    found, block, fence = [], None, False
    lines = open(os.path.join(ROOT, page)).read().split('\n')
    for before, line in zip([''] + lines, lines):
        if line.startswith('```'):
            if fence:
                found.append(block)
            fence, block = not fence, []
        elif fence:
            block.append(line)
        elif line.startswith('    ') and (block or before == ''):
            block = (block or []) + [line[4:]]
        elif block:
            found.append(block)
            block = None
    found = [[line for line in b if not line.startswith('pip install sinter_runtime-')] for b in found]  # tests/release installs it
    return [b for b in found if b and (COMMAND.match(b[0]) and not any(re.search(r' \[', line) for line in b) or NAMED.match(b[0]))]


def model(path, nodes, inputs, outputs, weights=()):
    info = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, 'documented', [info(*i) for i in inputs], [info(*o) for o in outputs],
                              [numpy_helper.from_array(w, n) for n, w in weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=9), path)


RNG = np.random.default_rng(1)


def digit_pictures():
    subprocess.run([sys.executable, 'examples/digits/pictures.py', 'pictures'], check=True)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def sequence(path='MODEL.onnx'):
    model(path, [helper.make_node('MatMul', ['x', 'w'], ['h']), helper.make_node('Relu', ['h'], ['y'])],
          [('x', ['batch', 'seq', 8])], [('y', ['batch', 'seq', 4])], [('w', normal(8, 4))])


def plain():
    model('MODEL.onnx', [helper.make_node('MatMul', ['x', 'w'], ['h']), helper.make_node('Relu', ['h'], ['y'])],
          [('x', [1, 8])], [('y', [1, 4])], [('w', normal(8, 4))])
    np.savez('IN.npz', x=normal(1, 8))


def digits():
    shutil.copy('examples/digits/digits.onnx', 'net.onnx')
    np.savez('samples.npz', image=np.load('examples/digits/digits_eval.npz')['image'][:64])


def states():
    model('net.onnx', [helper.make_node('Add', ['x', 'h_in'], ['h_out']), helper.make_node('Relu', ['h_out'], ['y'])],
          [('x', [1, 8]), ('h_in', [1, 8])], [('y', [1, 8]), ('h_out', [1, 8])])
    np.savez('blocks.npz', x=normal(5, 1, 8))


def bindable():
    model('net.onnx', [helper.make_node('Mul', ['audio', 'gain'], ['mask'])], [('audio', [1, 8])], [('mask', [1, 8])],
          [('gain', normal(8))])


def caches():
    join = [helper.make_node('Concat', [f'past.{n}', f'{n}.new'], [f'present.{n}'], axis=1) for n in ('key', 'value')]
    cut = [helper.make_node('Slice', [f'joined.{n}', 'zero', 'end', 'axis'], [f'present.{n}']) for n in ('key', 'value')]
    for node, n in zip(join, ('key', 'value')):
        node.output[0] = f'joined.{n}'
    product = [helper.make_node('MatMul', ['x', f'w.{n}'], [f'{n}.new']) for n in ('key', 'value')]
    for node in cut:
        node.input[1], node.input[2] = 'begin', 'end'
    result = [helper.make_node('MatMul', ['x', 'w.key'], ['q']), helper.make_node('Transpose', ['present.key'], ['keys'], perm=[0, 2, 1]),
              helper.make_node('MatMul', ['q', 'keys'], ['scores']), helper.make_node('MatMul', ['scores', 'present.value'], ['y'])]
    model('decoder.onnx', product + join + cut + result,
          [('x', [1, 'seq', 8]), ('past.key', [1, 16, 8]), ('past.value', [1, 16, 8])],
          [('y', [1, 'seq', 8]), ('present.key', [1, 16, 8]), ('present.value', [1, 16, 8])],
          [('w.key', normal(8, 8)), ('w.value', normal(8, 8)), ('begin', np.array([-16])), ('end', np.array([2**31])),
           ('axis', np.array([1]))])


def pictures():
    files = os.path.join(ROOT, 'tests', 'data', 'files')
    for i, name in enumerate(('rgb.png', 'rgb.jpg')):
        for kind in ('cat', 'dog'):
            os.makedirs(os.path.join('photos', kind), exist_ok=True)
            shutil.copy(os.path.join(files, name), os.path.join('photos', kind, f'{i}{name[-4:]}'))
    shutil.copy(os.path.join(files, 'rgb.jpg'), 'cat.jpg')
    open('classes.txt', 'w').write('cat\ndog\n')
    classifier = [helper.make_node('Conv', ['x', 'w'], ['h'], strides=[4, 4]), helper.make_node('GlobalAveragePool', ['h'], ['p']),
                  helper.make_node('Flatten', ['p'], ['y'])]
    model('net.onnx', classifier, [('x', [1, 3, 32, 32])], [('y', [1, 2])], [('w', normal(2, 3, 4, 4))])


def converted_pictures():
    pictures()
    subprocess.run(['sinter', 'convert', 'net.onnx', '-o', 'net.sinter', '--quiet'], check=True)


METRIC = """import json, sys
import numpy as np
for sample in json.load(open(sys.argv[1]))['samples']:
    y = np.load(sample['outputs']['y'])
    print(10 * np.log10(1 / np.mean((y - y.mean()) ** 2)))
"""


def image_to_image():
    pictures()
    model('net.onnx', [helper.make_node('Conv', ['x', 'w'], ['y'], pads=[1, 1, 1, 1])], [('x', [1, 3, 17, 24])],
          [('y', [1, 3, 17, 24])], [('w', normal(3, 3, 3, 3))])
    open('psnr.py', 'w').write(METRIC)


def frame():
    if os.path.exists('frame.pgm'):
        return
    subprocess.run([sys.executable, os.path.join(ROOT, 'tests', 'install', 'frames.py'), 'frames', 'examples/digits/digits_eval.npz',
                    'frames'], check=True)
    shutil.copy('frames/00.pgm', 'frame.pgm')


def wave_operator():
    shutil.copy('build/custom_op/wave.so', 'wave.so')


def recording():
    if os.path.exists('wave.so'):  # of another page; Python would take it for its own module
        os.remove('wave.so')
    times = np.arange(48000) / 16000
    voiced = sum(np.sin(2 * np.pi * f * times) / f for f in (140, 280, 700)) * (np.sin(6 * np.pi * times) > 0)
    with wave.open('speech.wav', 'wb') as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(16000)
        f.writeframes((voiced * 2e6).astype(np.int16).tobytes())


def decoder():
    shutil.copy('examples/chat/model/chat_gptq.onnx', 'decoder.onnx')


# What a page presumes, by the first words of a block; '' for the page's first block.
FILES = {
    'README.md': {'': digit_pictures},
    'docs/cli.md': {'': plain},
    'examples/camera_c/README.md': {'': frame},
    'docs/application.md': {'sinter convert wave.onnx': wave_operator},
    'docs/data.md': {'': converted_pictures, 'sinter convert net.onnx -o net.sinter --evaluate photos --metric': image_to_image},
    'docs/decoders.md': {'': states, 'sinter convert net.onnx -o net.sinter --bindable': bindable, 'sinter convert decoder.onnx': decoder},
    'docs/guides/pictures.md': {'': frame},
    'docs/guides/sound.md': {'': recording},
    'docs/quantization.md': {'': digits},
    'docs/shapes.md': {'': sequence, 'sinter convert decoder.onnx': caches},
}


def run_page(page, environment):
    """The page's faults, each a text."""
    faults, ran = [], 0
    for number, block in enumerate(blocks(page)):
        reason = next((why for begin, why in LEFT_OUT.items() if block[0].startswith(begin)), None)
        if reason:
            print(f'{page}: left out: {block[0][:60]}: {reason}')
            continue
        for begin, make in FILES.get(page, {}).items():
            if number == 0 if begin == '' else block[0].startswith(begin):
                try:
                    make()
                except OSError as e:
                    faults.append(f'{page}: a file that the page presumes cannot be made: {e}')
        if named := NAMED.match(block[0]):
            with open(named.group(1), 'w') as f:
                f.write('\n'.join(block) + '\n')
            continue
        done = subprocess.run(['bash', '-euo', 'pipefail', '-c', '\n'.join(block)], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ran += 1
        if done.returncode != 0 and block[0].startswith('pip download'):
            print(f'{page}: the rest is left out: it needs a package that cannot be downloaded:\n{done.stdout[-300:]}')
            break
        if done.returncode != 0:
            faults.append('{}: exit code {}:\n{}\n{}'.format(page, done.returncode, '\n'.join('    ' + line for line in block),
                                                            done.stdout[-1500:]))
    print(f'{page}: {ran} blocks run')
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True)
    parser.add_argument('--sinter', required=True)
    parser.add_argument('pages', nargs='*', default=PAGES)
    args = parser.parse_args()
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', 'examples'], capture_output=True)
    if listed.returncode != 0:
        print('needs a checkout of git, for the list of its files')
        return 77
    faults = []
    with tempfile.TemporaryDirectory() as work:
        for name in listed.stdout.decode().split('\0'):
            if name and os.path.exists(os.path.join(ROOT, name)):
                os.makedirs(os.path.dirname(os.path.join(work, name)), exist_ok=True)
                shutil.copy(os.path.join(ROOT, name), os.path.join(work, name))
        os.makedirs(os.path.join(work, 'build'))
        os.symlink(os.path.abspath(args.build), os.path.join(work, 'build', 'release'))
        path = [os.path.dirname(os.path.abspath(args.sinter)), os.path.dirname(sys.executable), os.environ['PATH']]
        os.environ['PATH'] = os.pathsep.join(path)
        os.chdir(work)
        for page in args.pages:
            faults += run_page(page, os.environ)
        os.chdir(ROOT)
    print('\n'.join(faults))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
