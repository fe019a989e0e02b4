// Runs a WebAssembly program with WASI under Node.js 20 or later; it has the files of the folder in which Node.js is started:
//
//     node --no-warnings toolchains/wasi.mjs PROGRAM.wasm [ARGUMENT]...
import { readFile } from 'node:fs/promises';
import { argv, env, exit } from 'node:process';
import { WASI } from 'node:wasi';

if (argv.length < 3) {
  console.error('usage: node wasi.mjs PROGRAM.wasm [ARGUMENT]...');
  exit(2);
}
const wasi = new WASI({ version: 'preview1', args: argv.slice(2), env, preopens: { '.': '.' } });
const module = await WebAssembly.compile(await readFile(argv[2]));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
exit(wasi.start(instance));
