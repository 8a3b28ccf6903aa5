// Emits type declarations of the public API.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { run } from './run.js';

const ENTRIES = ['sdk/index', 'contracts/index', 'testing/index'];
/** A relative import in a declaration: `from './ids.ts'`, `import('./ids.ts')`. */
const RELATIVE = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])(\.[^'"]+?)\.ts\2/g;

/** Writes declarations to `<out>/types`. Type checks are part of `npm run typecheck`, not of the build. */
export async function emitTypes(root, out) {
  const config = join(out, 'tsconfig.json');
  await writeFile(
    config,
    JSON.stringify({
      extends: '../tsconfig.json',
      compilerOptions: {
        noEmit: false,
        noCheck: true,
        declaration: true,
        emitDeclarationOnly: true,
        rootDir: '../src',
        outDir: 'types',
      },
      files: ENTRIES.map((entry) => `../src/${entry}.ts`),
      include: [],
    }),
  );
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const code = await run(tsc, ['-p', config], { cwd: root, stdio: ['ignore', 2, 2] });
  rmSync(config);
  if (code !== 0) throw new Error(`tsc could not emit the declarations (exit code ${code}).`);
  keepReachable(join(out, 'types'));
}

/** Deletes unreachable declarations: tsc emits all imported sources, but the public API is a tenth of them. */
function keepReachable(folder) {
  const reached = new Set();
  const visit = (file) => {
    if (reached.has(file)) return;
    reached.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, , , path] of text.matchAll(RELATIVE)) visit(resolve(dirname(file), `${path}.d.ts`));
    // With the .js extension that every TypeScript version resolves, and without indentation, which is a seventh.
    const short = text.replace(RELATIVE, '$1$2$3.js$2').replace(/^ +/gm, '');
    // `z.core.$strip` is the default of this parameter.
    writeFileSync(file, short.replaceAll(', z.core.$strip>', '>'));
  };
  for (const entry of ENTRIES) visit(join(folder, `${entry}.d.ts`));
  for (const name of readdirSync(folder, { recursive: true })) {
    const file = join(folder, name);
    if (file.endsWith('.d.ts') && !reached.has(file)) rmSync(file);
  }
}
