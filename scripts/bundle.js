// Configuration of the bundles.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, relative, sep } from 'node:path';
import { rolldown } from 'rolldown';
import { minify } from 'rolldown/utils';

const NODE = [/^node:/, ...builtinModules];
/** Packages that load a binary from their own folder. */
const NATIVE = ['better-sqlite3', 'sqlite-vec'];

const STACK = 'src/kit/process/async-disposable-stack.ts';

const OWN_DEFINITIONS = /[\\/]src[\\/](?:contracts|kit)[\\/]/;

/**
 * The CLI and the services share lazily loaded chunks. Runner and SDK are single files: sandboxed plugin processes may read
 * only the runner, and loading zod's eighty files would be a quarter of a plugin process's start.
 */
const BUNDLES = [
  {
    input: {
      cli: 'src/cli/main.ts',
      daemon: 'src/daemons/main.ts',
      evaluator: 'src/daemons/workflow/evaluation/main.ts',
      telemetry: 'src/store/telemetry/worker.ts',
      testing: 'src/testing/index.ts',
      textIndex: 'src/store/sqlite/svc/text-index/worker.ts',
      vectors: 'src/store/sqlite/state/vectors-worker.ts',
    },
    split: true,
    external: NATIVE,
  },
  { input: { runner: 'src/plugins/runner/main.ts' }, external: NATIVE },
  { input: { committer: 'src/store/sqlite/svc/committer/main.ts' }, external: NATIVE },
  { input: { sdk: 'src/sdk/index.ts' }, external: [] },
  { input: { contracts: 'src/contracts/index.ts' }, external: ['zod'] },
];

/** Omits Fastify's schema compilers, half of its size: routes have no schemas (`noCompiler` in src/http/server.ts). */
const withoutCompilers = {
  name: 'without-compilers',
  resolveId: (id) =>
    /^@fastify\/(?:ajv-compiler|fast-json-stringify-compiler)$/.test(id) ? `\0${id}` : null,
  load: (id) =>
    id.startsWith('\0@fastify/') ? 'module.exports = () => { throw new Error("not bundled") };' : null,
};

/** Omits the tables of nodemailer that the platform does not need: its mails have no attachments, its servers are configured. */
const MAIL_TABLES = {
  'mime-funcs/mime-types.js': `export const detectMimeType = () => 'application/octet-stream';
                               export const detectExtension = () => 'bin';`,
  'well-known/services.js': 'export const services = {};',
};

const withoutMailTables = {
  name: 'without-mail-tables',
  load: (id) => {
    const [, table] = /[\\/]nodemailer[\\/]dist[\\/]esm[\\/](.+)$/.exec(id) ?? [];
    return MAIL_TABLES[table?.replaceAll(sep, '/')] ?? null;
  },
};

/** Omits the parser of browser names in the client of S3, which runs only in browsers. */
const withoutBrowserNames = {
  name: 'without-browser-names',
  resolveId: (id) => (id === 'bowser' ? '\0bowser' : null),
  load: (id) => (id === '\0bowser' ? 'export const parse = () => ({});' : null),
};

/** Exports of undici that the sources use. The rest of undici, such as its mocks, caches and WebSocket, is not bundled. */
const UNDICI_EXPORTS = ['Agent', 'Pool', 'fetch'];
const USE_OF_UNDICI =
  /\{ ([\w, ]+) \} = await import\('undici'\)|import\('undici'\)\.then\(\s*\(\{ ([\w, ]+) \}\)|\bundici\.(\w+)/g;

const partOfUndici = {
  name: 'part-of-undici',
  resolveId: (id) => (id === 'undici' ? '\0undici' : null),
  load: (id) =>
    id === '\0undici'
      ? `import api from 'undici/lib/api/index.js';
         import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
         import web from 'undici/lib/web/fetch/index.js';
         export { default as Agent } from 'undici/lib/dispatcher/agent.js';
         export { default as Pool } from 'undici/lib/dispatcher/pool.js';
         export const { fetch } = web;
         // As in undici's index.js.
         Object.assign(Dispatcher.prototype, api);`
      : null,
  transform: (code, id) => {
    if (id.includes('node_modules') || !code.includes("import('undici')")) return;
    const used = [...code.matchAll(USE_OF_UNDICI)].flatMap(([, ...names]) =>
      names.filter(Boolean).join().split(/, /),
    );
    const missing = used.filter((name) => !UNDICI_EXPORTS.includes(name));
    if (used.length === 0 || missing.length > 0)
      throw new Error(
        `${id} uses ${missing.join(', ') || 'unknown parts'} of undici: add them to scripts/bundle.js`,
      );
  },
};

/**
 * Imports from Node's built-in modules directly: an `import` creates an ES module wrapper that evaluates every export, some
 * of which load a lot (`node:http` all of fetch, `node:fs` readline).
 */
const directBuiltins = {
  name: 'direct-builtins',
  renderChunk: (code) => ({
    code: code.replace(
      /^import (?:(?:\* as )?([\w$]+)(?:, | ))?(?:\{([^}]*)\} )?from "(node:[\w/]+)";$/gm,
      (_statement, whole, named, id) => {
        // Through globalThis, because a chunk may define its own `process`.
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

/** Start of a module in a chunk, or of the exports at the end of the chunk. */
const PART = /^(?=\/\/ (?:src|node_modules|\\0)|export \{)/m;
/** Names of functions and classes stay, because packages read them. Other parts of the chunk use the names of the top level. */
const COMPACT = {
  compress: false,
  mangle: { toplevel: false, keepNames: true },
  codegen: { removeWhitespace: true },
  module: true,
};

/**
 * Removes the white space of packages and shortens their local names. Own code keeps its lines and names, for readable
 * stack traces.
 */
const compactPackages = {
  name: 'compact-packages',
  async generateBundle(_options, files) {
    for (const chunk of Object.values(files)) {
      if (chunk.type !== 'chunk') continue;
      const parts = chunk.code.split(PART).map((part) => compactPart(chunk.fileName, part));
      chunk.code = (await Promise.all(parts)).join('');
    }
  },
};

async function compactPart(fileName, part) {
  // No text of the sources contains a tab.
  if (!part.startsWith('// node_modules/')) return part.replace(/^\t+/gm, '');
  const { code, errors } = await minify(fileName, part, COMPACT);
  if (errors.length > 0) throw new Error(`${part.split('\n', 1)} cannot be minified: ${errors[0].message}`);
  return `${code}\n`;
}

/**
 * Modules loaded by every command, and only by commands. Must not include imports of `main.ts`, or `svc --version` would
 * load all of them, and schemas would be created before compilation is disabled.
 */
const COMMAND = [
  ...[
    'command-arguments',
    'command-help',
    'context',
    'create-context',
    'define-command',
    'exit-codes',
    'gateway-client',
  ],
  ...[
    'light-fetch',
    'selected-gateway',
    'not-running',
    'output',
    'parse-args',
    'problem-text',
    'run-command',
  ],
  ...['saved-logins', 'style', 'ui'],
].map((name) => `src/cli/${name}.ts`);

/** What commands load of the supervisor: the client of its control socket, and paths of the data folder. */
const SUPERVISOR_CLIENT = [
  ...['control-client', 'data-folder', 'keys-file', 'node-http', 'process-identity', 'run-file'],
].map((name) => `src/supervisor/${name}.ts`);

/** Modules loaded first by services and commands: the configuration and its dependencies. */
const BASE = [
  ...['data/json', 'data/nearest', 'errors/errors', 'time/clock', 'time/duration'].map(
    (name) => `kit/${name}`,
  ),
  ...['config', 'env', 'find', 'merge', 'parse', 'problems', 'profile'].map((name) => `kit/config/${name}`),
  ...['adapters', 'common', 'config', 'endpoint', 'errors', 'host-target', 'ids', 'limits', 'role'].map(
    (name) => `contracts/${name}`,
  ),
  ...[
    'alert-config',
    'alert-kinds',
    'body-format',
    'provider-ids',
    'queue-settings',
    'source-config',
    'studio-config',
    'webhook-retry',
  ].map((name) => `contracts/${name}`),
].map((name) => `src/${name}.ts`);

const PACKAGES_OF_COMMAND = /[\\/]node_modules[\\/](?:chalk|commander)[\\/]/;

/** Groups modules into chunks: each separate file costs a third of a millisecond, and a command would load fifty. */
function chunkGroups(root) {
  const missing = [...COMMAND, ...BASE].filter((file) => !existsSync(join(root, file)));
  if (missing.length > 0)
    throw new Error(`scripts/bundle.js lists modules that do not exist: ${missing.join(', ')}`);
  const isOne = (id, names) => names.includes(relative(root, id).split(sep).join('/'));
  const isOfCommand = (id) => isOne(id, [...COMMAND, ...SUPERVISOR_CLIENT]) || PACKAGES_OF_COMMAND.test(id);
  return {
    includeDependenciesRecursively: false,
    groups: [
      { name: 'command', test: isOfCommand },
      { name: 'base', test: (id) => isOne(id, BASE) },
    ],
  };
}

/** Writes all bundles to `out`; resolves with the licences of bundled packages. */
export async function bundle(root, out) {
  const packages = new Set();
  for (const { input, split = false, external } of BUNDLES) {
    const entries = Object.entries(input).filter(([, file]) => existsSync(join(root, file)));
    if (entries.length === 0) continue;
    const build = await rolldown({
      cwd: root,
      input: Object.fromEntries(entries),
      platform: 'node',
      plugins: [
        withoutCompilers,
        withoutMailTables,
        withoutBrowserNames,
        partOfUndici,
        compactPackages,
        ...(split ? [directBuiltins] : []),
      ],
      external: [...NODE, ...external],
      tsconfig: false,
      // Required for chunk groups.
      ...(split ? { preserveEntrySignatures: 'allow-extension' } : {}),
      transform: {
        target: 'node22.19',
        // Node 22 lacks this class.
        inject: { AsyncDisposableStack: [join(root, STACK), 'AsyncDisposableStack'] },
      },
      // Our definition modules have no side effects, so unused exports need not be loaded.
      treeshake: { moduleSideEffects: [{ test: OWN_DEFINITIONS, sideEffects: false }] },
      onLog: (level, log, report) => {
        // Warnings about eval and `this` in CommonJS packages are not actionable.
        if (!log.id?.includes('node_modules')) report(level, log);
      },
    });
    const { output } = await build.write({
      dir: out,
      format: 'esm',
      codeSplitting: split && chunkGroups(root),
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

/** Prints each licence once, under the names and copyright lines of its packages. */
function licenceText(folders) {
  const byText = Map.groupBy(folders.map(readLicence), ({ key }) => key);
  const parts = [...byText.values()].map(
    (packages) => `${packages.map(({ heading }) => heading).join('\n')}\n\n${packages[0].text}\n`,
  );
  const rule = `\n${'-'.repeat(78)}\n\n`;
  return `The files of this folder contain the packages below.\n${rule}${parts.join(rule)}`;
}

function readLicence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^(?:licen[cs]e|copying)/i.test(entry));
  const whole = file ? readFileSync(join(folder, file), 'utf8').trim() : '(the package has no licence file)';
  const lines = whole.split(/\r?\n/);
  const isCopyright = (line) => /^\s*copyright (?:\(c\)|©|\d)/i.test(line);
  const copyrights = lines.filter(isCopyright).map((line) => `  ${line.trim()}`);
  const text = lines
    .filter((line) => !isCopyright(line))
    .join('\n')
    .trim();
  return {
    heading: [`${name} ${version} (${license})`, ...copyrights].join('\n'),
    text,
    key: text.replaceAll(/\s+/g, ' '),
  };
}
