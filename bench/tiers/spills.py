#!/usr/bin/env python3
"""Lists the innermost loops of compiled kernels that keep vectors on the stack or copy them between registers.

    bench/tiers/spills.py [--all] [--minimum N] [--only TEXT]... [--tier NAME]... [--fail] [--json FILE] [FILE]...

FILE: an object, an archive or a program for x86-64 or 64-bit ARM, with symbols (default: the kernels of build/dev and
XNNPACK's). A loop is what a backward jump encloses within one function; an innermost one encloses no other. In it are
counted

    products    multiply-adds on vectors (vfmadd*, vpdp*, vpmadd*, fmla, smlal, sdot, ...), or multiplications where there
                are no multiply-adds
    stores      vectors written to the stack: an accumulator, or a value that another step of the loop needs
    loads       vectors read from the stack, operands of arithmetic included
    moves       copies of a whole register to another (not before AVX, whose instructions have two operands)
    pieces      extractions and insertions of single elements

A loop is listed when it has at least N products (4 by default) and stores at least one vector, or has more than one
move or piece to two products; --all lists every loop with products. The stack is %rsp, sp, and what `lea` made of them.
The tier is read from the name that Highway or XNNPACK gave to the function. --fail exits with 1 if a loop is listed,
and with 2 if no loop with N products has one of the names: for kernels that are known to be clean.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEFAULT = [*sorted(ROOT.glob('build/dev/platforms/*/lib*.a')), *sorted(ROOT.glob('build/deps/x86_64/lib/libsinter_xnnpack.a'))]

# Of the two syntaxes that objdump prints, with what the code reads of each.
VECTOR = {'x86': re.compile(r'%[xyz]mm\d+'), 'arm': re.compile(r'\b[qvz]\d+\b')}
MULTIPLY_ADD = {'x86': re.compile(r'v?(fn?m(add|sub)\w*|pdp\w+|pmadd\w+|dpbf16ps)$'),
                'arm': re.compile(r'(fmla|fmls|mla|mls|[su]mlal2?|[su]dot|usdot|[su]mmla|usmmla|bfdot|bfmmla)$')}
MULTIPLY = {'x86': re.compile(r'v?(mulp[sdh]|pmull[wd]|pmulhw|pmulhrsw|pmuldq)$'), 'arm': re.compile(r'(fmul|mul|sqrdmulh|[su]mull2?)$')}
PIECE = {'x86': re.compile(r'v?(p?(insr|extr)[bwdq]|insertps|extractps)$'), 'arm': re.compile(r'(ins|umov|smov)$')}
JUMP = {'x86': re.compile(r'j(?!mp\s*\*)\w+$'), 'arm': re.compile(r'(b|b\.\w+|cbn?z|tbn?z)$')}
TIERS = [(re.compile(p, re.I), name) for p, name in (
    (r'N_AVX3_SPR|avx512fp16|avx512bf16', 'avx512_spr'), (r'N_AVX3_ZEN4|N_AVX3_DL|avx512vnni|avx512vbmi', 'avx512_vbmi'),
    (r'N_AVX3|avx512', 'avx512'), (r'avxvnni', 'avxvnni'), (r'N_AVX2|fma3|avx2|f16c', 'avx2'), (r'avx', 'avx'),
    (r'N_SSE4|sse41', 'sse4'), (r'N_SSSE3|ssse3', 'ssse3'), (r'N_SSE2|sse', 'sse2'), (r'N_NEON|neon|asimd', 'neon'))]
HEADER = re.compile(r'^[0-9a-f]+ <(.*)>:$')
LINE = re.compile(r'^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$')
TARGET = re.compile(r'\b([0-9a-f]+) <')


def architecture(path):
    head = subprocess.run(['objdump', '-f', path], capture_output=True, text=True).stdout
    if 'x86-64' in head:
        return 'x86', 'objdump'
    return 'arm', 'aarch64-linux-gnu-objdump'


def functions_of(lines):
    """(name, [(address, instruction, operands)]) of every function; names as a programmer writes them."""
    name, body = None, []
    for line in lines:
        if header := HEADER.match(line):
            if body:
                yield name, body
            name, body = header.group(1), []
        elif match := LINE.match(line):
            mnemonic, operands = match.group(2), match.group(3)
            body.append((int(match.group(1), 16), mnemonic, operands.split('#')[0] if '%' in operands else operands))
    if body:
        yield name, body


def functions(path, tool):
    process = subprocess.Popen([tool, '-d', '-C', '--no-show-raw-insn', path], stdout=subprocess.PIPE, text=True)
    yield from functions_of(process.stdout)
    process.wait()


def innermost(body, kind):
    """(first, last) positions of loops that enclose no other."""
    at = {address: i for i, (address, _, _) in enumerate(body)}
    loops = set()
    for i, (_, mnemonic, operands) in enumerate(body):
        target = JUMP[kind].match(mnemonic) and (TARGET.search(operands) or re.search(r'([0-9a-f]+)', operands))
        to = at.get(int(target.group(1), 16)) if target else None
        if to is not None and to <= i:
            loops.add((to, i))
    # Of loops with the same start the longest is the loop; the others are its `continue`.
    ends = {}
    for first, last in loops:
        ends[first] = max(last, ends.get(first, last))
    loops = sorted(ends.items())
    return [(a, b) for a, b in loops if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in loops)]


def stack_registers(body, first, last, kind):
    """Registers that point into the stack in the whole loop."""
    if kind == 'arm':
        made, base = re.compile(r'^(x\d+), sp, '), {'sp'}
        writes = re.compile(r'^(x\d+)\b')
    else:
        made, base = re.compile(r'^-?(?:0x)?[0-9a-f]*\(%rsp\),(%\w+)$'), {'%rsp'}
        writes = re.compile(r'(?:^|,)(%r\w+)$')
    known = set(base)
    for _, mnemonic, operands in body[:first]:
        if (match := made.match(operands)) and mnemonic in ('lea', 'add'):
            known.add(match.group(1))
        elif mnemonic == 'mov' and operands == '%rsp,%rbp':
            known.add('%rbp')
        elif (match := writes.search(operands)) and match.group(1) not in base and mnemonic not in ('cmp', 'test', 'push'):
            known.discard(match.group(1))
    for _, mnemonic, operands in body[first:last + 1]:
        if (match := writes.search(operands)) and match.group(1) not in base and mnemonic not in ('cmp', 'test', 'str', 'stp'):
            known.discard(match.group(1))
    return known


def count(body, first, last, kind):
    stack = stack_registers(body, first, last, kind)
    n = collections.Counter()
    multiplications = 0
    for _, mnemonic, operands in body[first:last + 1]:
        if not VECTOR[kind].search(operands):
            continue
        n['vectors'] += 1
        if MULTIPLY_ADD[kind].match(mnemonic):
            n['products'] += 1
        elif MULTIPLY[kind].match(mnemonic):
            multiplications += 1
        if PIECE[kind].match(mnemonic):
            n['pieces'] += 1
        if kind == 'x86':
            memory = re.search(r'\(([^)]*)\)', operands)
            on_stack = memory and stack & set(memory.group(1).split(','))
            move = re.match(r'vmov[au]p|vmovdq[au]', mnemonic)
            if on_stack:
                n['stores' if operands.rstrip().endswith(')') else 'loads'] += 1
            elif move and not memory and '{' not in operands:
                n['moves'] += 1
        else:
            memory = re.search(r'\[(\w+)', operands)
            if memory and memory.group(1) in stack:
                n['stores' if mnemonic.startswith('st') else 'loads'] += 1
            elif mnemonic == 'mov' and re.match(r'v\d+\.16b, v\d+\.16b', operands):
                n['moves'] += 1
    if n['products'] == 0:
        n['products'] = multiplications
    return n


def tier_of(name):
    return next((tier for pattern, tier in TIERS if pattern.search(name)), '')


def short(name):
    """Without the arguments, the namespaces and what the compiler appended."""
    name = re.sub(r'\(anonymous namespace\)::|sinter::|simd::|N_\w+?::', '', name)
    head = re.match(r'(?:void |bool |long )?([\w~:]+(?:<[^()]*>)?)', name)
    return head.group(1) if head else name


def loops_of(path):
    kind, tool = architecture(path)
    for name, body in functions(path, tool):
        for index, (first, last) in enumerate(innermost(body, kind)):
            n = count(body, first, last, kind)
            yield dict(file=path.name, tier=tier_of(name), function=short(name), loop=index, symbol=name,
                       instructions=last - first + 1, offset=body[first][0] - body[0][0],
                       **{k: n[k] for k in ('products', 'stores', 'loads', 'moves', 'pieces')})


def spoiled(loop):
    return loop['stores'] > 0 or 2 * max(loop['moves'], loop['pieces']) > loop['products']


SELF_TEST = """
0000000000000000 <sinter::simd::N_AVX2::clean(float const*)>:
   0:\tsub    $0x40,%rsp
   4:\tlea    0x20(%rsp),%rdx
   9:\tvmovaps %ymm1,0x10(%rsp)
   f:\tvfmadd231ps (%rdi),%ymm0,%ymm1
  14:\tvfmadd231ps 0x20(%rdi),%ymm0,%ymm2
  1a:\tdec    %rcx
  1d:\tjne    f <sinter::simd::N_AVX2::clean(float const*)+0xf>
  1f:\tret
0000000000000040 <sinter::simd::N_AVX3::spilled(float const*)>:
  40:\tlea    0x20(%rsp),%rdx
  44:\tvmovaps (%rdx),%zmm1
  48:\tvfmadd231ps (%rdi),%zmm0,%zmm1
  4e:\tvmovaps %zmm1,(%rdx)
  54:\tvmovdqa64 %zmm1,%zmm3
  58:\tdec    %rcx
  5b:\tjne    44 <sinter::simd::N_AVX3::spilled(float const*)+0x4>
  5d:\tjmp    40 <sinter::simd::N_AVX3::spilled(float const*)>
"""


def self_test():
    found = {}
    for name, body in functions_of(SELF_TEST.splitlines()):
        (first, last), = innermost(body, 'x86')
        found[short(name), tier_of(name)] = {k: n for k, n in count(body, first, last, 'x86').items() if n}
    expected = {('clean', 'avx2'): dict(vectors=2, products=2),
                ('spilled', 'avx512'): dict(vectors=4, products=1, loads=1, stores=1, moves=1)}
    if found != expected:
        sys.exit(f'the self-test found {found}, not {expected}')
    print('the self-test found what it should')


def fail_usage(text):
    print(text, file=sys.stderr)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='*', type=pathlib.Path)
    parser.add_argument('--all', action='store_true', help='every loop with products')
    parser.add_argument('--minimum', type=int, default=4, help='products of a loop that is listed')
    parser.add_argument('--only', action='append', help='a part of a function name; may be repeated')
    parser.add_argument('--tier', action='append', help='such as avx2; may be repeated')
    parser.add_argument('--fail', action='store_true')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    files = args.files or DEFAULT
    loops = [loop for path in files for loop in loops_of(path) if loop['products'] >= args.minimum
             and (not args.only or any(text in loop['symbol'] for text in args.only))
             and (not args.tier or loop['tier'] in args.tier)]
    if not loops:
        fail_usage(f'no innermost loop with {args.minimum} products has such a name; give other names to --only, or files')
    rows = [loop for loop in loops if args.all or spoiled(loop)]
    rows.sort(key=lambda r: (r['file'], r['function'], r['tier'], r['loop']))
    print('| file | function | tier | offset | products | stores | loads | moves | pieces | instructions |')
    print('| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
    for r in rows:
        print(f"| {r['file']} | {r['function']} | {r['tier']} | {r['offset']:#x} | {r['products']} | {r['stores']} | {r['loads']} | "
              f"{r['moves']} | {r['pieces']} | {r['instructions']} |")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')
    return 1 if rows and args.fail else 0


if __name__ == '__main__':
    sys.exit(main())
