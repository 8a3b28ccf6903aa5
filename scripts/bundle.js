// What is bundled into which file.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, relative, sep } from 'node:path';
import { rolldown } from 'rolldown';

const NODE = [/^node:/, ...builtinModules];
/** They load a binary from their own folders. */
const NATIVE = ['better-sqlite3', 'sqlite-vec'];

const OWN_DEFINITIONS = /[\\/]src[\\/](?:contracts|kit)[\\/]/;

/**
 * The command and the daemons share lazily loaded chunks, so that each start reads only what it needs. The
 * runner is one file: confined plugin processes may read it and nothing beside it. The SDK is one file too, zod
 * inside: loading zod's own eighty would be a quarter of a plugin process's start, and the runner checks a schema
 * by the schema's own methods, whichever copy made it.
 */
const BUNDLES = [
  {
    input: {
      cli: 'src/cli/main.ts',
      daemon: 'src/daemons/main.ts',
      evaluator: 'src/daemons/workflow/evaluation/main.ts',
      telemetry: 'src/store/sqlite/telemetry-worker.ts',
      testing: 'src/testing/index.ts',
      textIndex: 'src/store/sqlite/text-index/worker.ts',
      vectors: 'src/store/sqlite/vectors-worker.ts',
    },
    split: true,
    external: NATIVE,
  },
  { input: { runner: 'src/plugins/runner/main.ts' }, external: NATIVE },
  { input: { committer: 'src/store/sqlite/committer/main.ts' }, external: NATIVE },
  { input: { sdk: 'src/sdk/index.ts' }, external: [] },
  { input: { contracts: 'src/contracts/index.ts' }, external: ['zod'] },
];

/** What Fastify would load for route schemas, of which we have none (`noCompiler` in src/http/server.ts): half of its bytes. */
const withoutCompilers = {
  name: 'without-compilers',
  resolveId: (id) =>
    /^@fastify\/(?:ajv-compiler|fast-json-stringify-compiler)$/.test(id) ? `\0${id}` : null,
  load: (id) =>
    id.startsWith('\0@fastify/') ? 'module.exports = () => { throw new Error("not bundled") };' : null,
};

/**
 * Takes what is used of Node's own modules from them directly: importing one builds its face as an ES module, which reads
 * every export there is, and some of those load a great deal (`node:http` all of fetch, `node:fs` readline).
 */
const builtinsAsTheyAre = {
  name: 'builtins-as-they-are',
  renderChunk: (code) => ({
    code: code.replace(
      /^import (?:(?:\* as )?([\w$]+)(?:, | ))?(?:\{([^}]*)\} )?from "(node:[\w/]+)";$/gm,
      (_statement, whole, named, id) => {
        // By its global name: a chunk may have a `process` of its own.
        const from = `globalThis.process.getBuiltinModule("${id}")`;
        const names = named?.trim().replaceAll(' as ', ': ');
        return [
          ...(whole ? [`const ${whole} = ${from};`] : []),
          ...(names ? [`const { ${names} } = ${from};`] : []),
        ].join(' ');
      },
    ),
  }),
};

/**
 * What every command that does something loads, and nothing else does: what `main.ts` imports itself must not be among it, or
 * `svc --version` would load all of it too, and schemas would be made before they are told not to compile.
 */
const COMMAND = [
  ...['command-arguments', 'command-help', 'context', 'define-command', 'exit-codes', 'gateway-client'],
  ...['light-fetch', 'named-gateway', 'not-running', 'output', 'parse-args', 'problem-text', 'run-command'],
  ...[
    'saved-logins',
    'style',
    'ui',
    'supervisor/control-client',
    'supervisor/data-folder',
    'supervisor/keys-file',
  ],
  ...['supervisor/node-http', 'supervisor/process-identity', 'supervisor/run-file'],
].map((name) => `src/cli/${name}.ts`);

/** What services and commands alike load first: the configuration, and what it is made of. */
const BASE = [
  ...['clock', 'config', 'duration', 'errors', 'json', 'nearest'].map((name) => `kit/${name}`),
  ...['env', 'find', 'merge', 'parse', 'problems', 'profile'].map((name) => `kit/config/${name}`),
  ...['adapters', 'common', 'config', 'endpoint', 'errors', 'host-target', 'ids', 'limits'].map(
    (name) => `contracts/${name}`,
  ),
].map((name) => `src/${name}.ts`);

const PACKAGES_OF_COMMAND = /[\\/]node_modules[\\/](?:chalk|commander)[\\/]/;

/** Each file of its own costs a third of a millisecond to find and to link; a command would load fifty. */
function together(root) {
  const isOne = (id, names) => names.includes(relative(root, id).split(sep).join('/'));
  return {
    includeDependenciesRecursively: false,
    groups: [
      { name: 'command', test: (id) => isOne(id, COMMAND) || PACKAGES_OF_COMMAND.test(id) },
      { name: 'base', test: (id) => isOne(id, BASE) },
    ],
  };
}

/** Writes every bundle to `out`; resolves with the licences of the packages inside. */
export async function bundle(root, out) {
  const packages = new Set();
  for (const { input, split = false, external } of BUNDLES) {
    const entries = Object.entries(input).filter(([, file]) => existsSync(join(root, file)));
    if (entries.length === 0) continue;
    const build = await rolldown({
      cwd: root,
      input: Object.fromEntries(entries),
      platform: 'node',
      plugins: split ? [withoutCompilers, builtinsAsTheyAre] : [withoutCompilers],
      external: [...NODE, ...external],
      tsconfig: false,
      // What grouping files asks for.
      ...(split ? { preserveEntrySignatures: 'allow-extension' } : {}),
      transform: { target: 'node22.19' },
      // Our own modules do nothing when loaded but define: whoever uses one endpoint need not load them all.
      treeshake: { moduleSideEffects: [{ test: OWN_DEFINITIONS, sideEffects: false }] },
      onLog: (level, log, report) => {
        // CommonJS packages probe their surroundings with eval and this; none of it is ours to mend.
        if (!log.id?.includes('node_modules')) report(level, log);
      },
    });
    const { output } = await build.write({
      dir: out,
      format: 'esm',
      codeSplitting: split && together(root),
      entryFileNames: '[name].js',
      chunkFileNames: 'chunks/[name]-[hash].js',
      comments: { legal: false, annotation: false, jsdoc: false },
    });
    await build.close();
    for (const chunk of output) for (const id of chunk.moduleIds ?? []) packages.add(packageFolder(id));
  }
  packages.delete(undefined);
  return licenceText([...packages].sort());
}

function packageFolder(id) {
  const marker = `${sep}node_modules${sep}`;
  const at = id.lastIndexOf(marker);
  if (at < 0) return undefined;
  const [first, second] = id.slice(at + marker.length).split(sep);
  return id.slice(0, at + marker.length) + (first.startsWith('@') ? `${first}${sep}${second}` : first);
}

function licenceText(folders) {
  const parts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((entry) => /^(?:licen[cs]e|copying)/i.test(entry));
    const text = file ? readFileSync(join(folder, file), 'utf8').trim() : '(the package has no licence file)';
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  const rule = `\n${'-'.repeat(78)}\n\n`;
  return `The files of this folder contain the packages below.\n${rule}${parts.join(rule)}`;
}
